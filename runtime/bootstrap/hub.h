/* The hub of an id: a thread to which all ranks of a job are connected. */
#ifndef BLINK_HUB_H
#define BLINK_HUB_H

#include "bootstrap/wire.h"

/* ns that a hub stays at most once the job has failed, or the last of the ranks in its process has left: to tell those
 * who come late, or still work, who is to blame. It ends at once when all ranks have come and gone. Its thread, its
 * descriptors and its memory end with it. */
#define HUB_STAYS INT64_C(10000000000)

/* Start one that listens on that address, on any free port. interface: of a link-local address.
 * secret: as secret_add takes it; the id that is handed out is the one without. */
int hub_start(const unsigned char address[ADDRESS_BYTES], const char *interface, const char *secret,
    blinkUniqueId_t *id, struct blink_error *err);

/* In two steps: an id and its port, which is taken, but where nobody listens; and a hub there, on a copy of the port.
 * The port may serve several, one after the other. */
int hub_reserve(const unsigned char address[ADDRESS_BYTES], const char *interface, struct descriptor *port,
    struct id *id, struct blink_error *err);
int hub_start_at(const struct descriptor *port, const struct id *id, struct blink_error *err);

#endif
