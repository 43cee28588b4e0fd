/* The hub of an id: a thread to which all ranks of a job are connected. */
#ifndef BLINK_HUB_H
#define BLINK_HUB_H

#include "bootstrap/wire.h"

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
