/* The kinds of network between servers; the first is used where BLINK_NET does not name one. */
#include "transport/net.h"
#include "transport/tcp_inside.h"
#include "transport/ucx_inside.h"

const struct net_kind *const net_kinds[] = { &net_tcp, &net_ucx, NULL };
