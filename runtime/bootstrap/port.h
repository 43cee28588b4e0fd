/* Ports that are kept for a hub that may be needed later, when the one of the communicator may be gone. */
#ifndef BLINK_BOOTSTRAP_PORT_H
#define BLINK_BOOTSTRAP_PORT_H

#include "bootstrap/bootstrap.h"

struct bootstrap_port;

/* A port of this process, on the interface of its connection to the hub, and the id by which ranks meet there. Nobody
 * listens there until bootstrap_open_port: who joins by the id before that tries again, until his deadline. */
int bootstrap_keep_port(const struct bootstrap *b, struct bootstrap_port **out, blinkUniqueId_t *id,
    struct blink_error *err);

/* Start a hub there. id: that of the port, or one that bootstrap_id_of made of it. secret: as for bootstrap_join.
 * A port may have several hubs, one after the other. */
int bootstrap_open_port(const struct bootstrap_port *port, const blinkUniqueId_t *id, const char *secret,
    struct blink_error *err);

/* False: a port of this host that nobody keeps any more: its process has ended, or has closed it. Of ports of other
 * hosts nothing is known: true. */
bool bootstrap_port_kept(const blinkUniqueId_t *id);
void bootstrap_close_port(struct bootstrap_port *port);	/* NULL is allowed; also in a forked child */

/* Another secret for the same place: only who has made the same text of the same id can meet there. */
void bootstrap_id_of(blinkUniqueId_t *id, const void *text, size_t bytes);

#endif
