/* How two peers leave each other: each says how many messages it has sent, and hears when all of them have come. */
#include "transport/ucx_inside.h"

#ifdef BLINK_UCX

enum { MS = 1000000, BYE_MS = 1000 };

void
ucx_check_gone(struct ucx_peer *peer)
{
	if (!peer->left || peer->gone || peer->received != peer->total || peer->moving || atomic_load(&peer->broken))
		return;
	peer->gone = true;
	ucx_tell(peer, UCX_LANE_HEARD, peer->total);
	if (ucx_out_needed(peer))
		ucx_break(peer, " has left, and a message to it waits");
	ucx_out_drop(peer);
}

bool
ucx_leaving_done(struct ucx_peer *peer)
{
	int64_t now = now_ns();
	if (!peer->hello || peer->gone || peer->heard || peer->cut || atomic_load(&peer->broken))
		return true;
	pthread_mutex_lock(&peer->lock);
	bool idle = !peer->head && peer->under_way == 0;
	pthread_mutex_unlock(&peer->lock);
	if (idle && !peer->bye_at) {
		peer->bye_at = now;
		ucx_tell(peer, UCX_LANE_BYE, peer->sent);
		tcp_look_by(ucx_tcp(peer), now + (int64_t)BYE_MS * MS);
	}
	return peer->bye_at && now - peer->bye_at >= (int64_t)BYE_MS * MS;
}
#endif
