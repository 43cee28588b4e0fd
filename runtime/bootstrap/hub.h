/* The hub of an id: a thread to which all ranks of a job are connected. */
#ifndef BLINK_HUB_H
#define BLINK_HUB_H

#include "bootstrap/wire.h"

/* Start one that listens on that address, on any free port. interface: of a link-local address. */
int hub_start(const unsigned char address[ADDRESS_BYTES], const char *interface, blinkUniqueId_t *id,
    struct blink_error *err);

#endif
