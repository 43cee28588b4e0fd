/* What all files of UCX may say of a peer, and to it. */
#include "transport/ucx_inside.h"

#ifdef BLINK_UCX
#include <stdarg.h>
#include <stdio.h>

void
ucx_attend(struct ucx_peer *peer)
{
	struct ucx *u = peer->net;
	atomic_store(&peer->attention, true);
	if (!atomic_exchange(&u->attention, true) && !atomic_load(&u->awake))
		tcp_wake(atomic_load(&u->tcp));
}

void
ucx_break(struct ucx_peer *peer, const char *format, ...)
{
	char text[200];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	tcp_break(ucx_tcp(peer), &ucx_tcp(peer)->peer[peer->rank], "%s", text);
}

void
ucx_failed(struct ucx_peer *peer, ucs_status_t status)
{
	if (peer->failed_at || peer->cut)
		return;
	peer->failure = status;
	peer->failed_at = now_ns();
	peer->net->trouble = true;
}

void
ucx_tell(struct ucx_peer *peer, uint32_t lane, uint64_t value)
{
	struct net_message m = { .lane = lane, .flag = value };
	if (net_tcp.send(ucx_tcp(peer), peer->rank, &m, NULL) == blinkOutOfMemory)
		ucx_break(peer, ": no memory for what it is sent");
}
#endif
