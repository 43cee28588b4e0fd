/* Errors as callers get them. */
#ifndef BLINK_GIVE_H
#define BLINK_GIVE_H

#include "base/status.h"
#include "blink.h"

/* Fill `error`, unless it is NULL; returns the result. */
blinkResult_t give_error(blinkError_t *error, Status status, const char *text);

#endif
