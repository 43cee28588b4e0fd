/* The kinds of network between servers, best first. */
#include "transport/net.h"
#include "transport/tcp.h"

const struct net_kind *const net_kinds[] = { &net_tcp, NULL };
