/* Whether phases are what they say (blink-phases(5)). */
#ifndef BLINK_WORKLOAD_CHECK_H
#define BLINK_WORKLOAD_CHECK_H

#include "model/model.h"

/* Each schedule that they name is right, and for its group; all together take the time that is stated, and the prices
 * prove the bound. directory: where phases.json is, "" or with a slash at its end.
 * Fails: BAD_INPUT, UNVERIFIED, naming the file or phase; IO. */
Status phases_check(Ctx *ctx, const char *label, const char *directory, const Phases *phases);

#endif
