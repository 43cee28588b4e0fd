/* Ports that are kept for a hub that may be needed later. */
#include "bootstrap/port.h"

#include "bootstrap/enter.h"
#include "bootstrap/hub.h"
#include "bootstrap/secret.h"

#include <stdlib.h>
#include <string.h>

struct bootstrap_port {
	struct descriptor socket;
};

int
bootstrap_keep_port(const struct bootstrap *b, struct bootstrap_port **out, blinkUniqueId_t *id,
    struct blink_error *err)
{
	struct bootstrap_port *port = calloc(1, sizeof *port);
	unsigned char address[ADDRESS_BYTES];
	struct descriptor socket;
	struct id made;
	if (!port) {
		*err = (struct blink_error){ blinkOutOfMemory, "out of memory" };
		return err->code;
	}
	bootstrap_address(b, address);
	if (hub_reserve(address, bootstrap_interface(b), &socket, &made, err) != blinkSuccess) {
		free(port);
		return err->code;
	}
	made.later = 1;
	descriptor_move(&port->socket, &socket);
	memcpy(id, &made, sizeof *id);
	*out = port;
	return blinkSuccess;
}

int
bootstrap_open_port(const struct bootstrap_port *port, const blinkUniqueId_t *id, const char *secret,
    struct blink_error *err)
{
	struct id where;
	memcpy(&where, id, sizeof where);
	if (secret_add(&where, secret, err) == blinkSuccess)
		hub_start_at(&port->socket, &where, err);
	return err->code;
}

bool
bootstrap_port_kept(const blinkUniqueId_t *id)
{
	struct id where;
	memcpy(&where, id, sizeof where);
	return place_is_kept(&where);
}

void
bootstrap_close_port(struct bootstrap_port *port)
{
	if (port)
		descriptor_close(&port->socket);
	free(port);
}

void
bootstrap_id_of(blinkUniqueId_t *id, const void *text, size_t bytes)
{
	struct id where;
	unsigned char secret[HMAC_BYTES];
	_Static_assert((int)HMAC_BYTES == (int)SECRET_BYTES, "a MAC is a secret");
	memcpy(&where, id, sizeof where);
	mac_of_text(where.secret, text, bytes, secret);
	memcpy(where.secret, secret, sizeof secret);
	memcpy(id, &where, sizeof *id);
}
