/* Which of this server's addresses a hub listens on. */
#ifndef BLINK_INTERFACE_H
#define BLINK_INTERFACE_H

#include "bootstrap/system.h"

/* Does a list in the syntax of BLINK_SOCKET_IFNAME choose the interface? "eth,ib": one of the prefixes; "=eth0":
 * exactly; "^docker,lo": none of them; "^=eth0". */
bool interface_chosen(const char *list, const char *name);

/* Of the interfaces that are up and chosen the first that has an IPv4 address; if none has, IPv6, link-local last. list
 * NULL or empty: not loopback or docker; else loopback. Address without port. name[16]: the interface. */
int interface_find(const char *list, unsigned char address[ADDRESS_BYTES], char name[16], struct blink_error *err);

#endif
