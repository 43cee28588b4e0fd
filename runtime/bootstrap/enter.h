/* A rank connects to the hub of an id, and both prove that they know its secret. */
#ifndef BLINK_ENTER_H
#define BLINK_ENTER_H

#include "bootstrap/wire.h"

/* who: all but the mac. Tries again until the deadline if the connection cannot be made or ends before the hub has
 * proved itself; patience: the time that was given, for the text. Waits in the caller's thread. */
int enter(const struct id *id, const struct proof *who, int64_t deadline, int64_t patience, struct descriptor *out,
    struct blink_error *err);

/* False: an address of this host, whose port nobody has: its process has ended. Of other hosts nothing is known:
 * true. */
bool place_is_kept(const struct id *id);

#endif
