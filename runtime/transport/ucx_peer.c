/* What the TCP net carries for UCX; and the end of a peer.
 *
 * A peer that ends is told by its TCP connections, and then also by UCX, which may be first and does not know whether
 * the peer had closed in order. So what UCX tells counts only where nothing else has come of it for a while. */
#include "transport/ucx_inside.h"

#ifdef BLINK_UCX
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { MS = 1000000, GRACE_MS = 1000 };

/* ---- the end ---- */

/* UCX may be in the middle of a call: the rest is for ucx_look_after. */
void
ucx_broken(void *net, int rank, const char *reason)
{
	struct ucx *u = net;
	atomic_store(&u->peer[rank].broken, true);
	u->trouble = true;
	u->events.broken(u->events.context, rank, reason);
}

void
ucx_short_of(void *net, int error)
{
	const struct ucx *u = net;
	if (u->events.short_of)
		u->events.short_of(u->events.context, error);
}

static void
on_closed(void *request, ucs_status_t status, void *net)
{
	struct ucx *u = net;
	(void)status;
	u->api->ucp_request_free_(request);
	u->closing_endpoints--;
}

void
ucx_close_endpoint(struct ucx_peer *peer)
{
	struct ucx *u = peer->net;
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE, .cb.send = on_closed, .user_data = u,
	};
	if (peer->endpoint && UCS_PTR_IS_PTR(u->api->ucp_ep_close_nbx_(peer->endpoint, &param)))
		u->closing_endpoints++;
	peer->endpoint = NULL;
}

void
ucx_drop(struct ucx_peer *peer)
{
	ucx_out_drop(peer);
	ucx_in_drop(peer);
}

void
ucx_look_after(struct ucx_peer *peer, int64_t now)
{
	int64_t until = peer->failed_at + (int64_t)GRACE_MS * MS;
	if (peer->failed_at && !peer->gone && !atomic_load(&peer->broken)) {
		if (now >= until)
			ucx_break(peer, ": UCX: %s", peer->net->api->ucs_status_string_(peer->failure));
		else
			tcp_look_by(ucx_tcp(peer), until);
		peer->net->trouble = true;
	}
	if (atomic_load(&peer->broken) && !peer->ended) {
		peer->ended = true;
		ucx_drop(peer);
		ucx_close_endpoint(peer);
	}
}

/* What is under way is cancelled with its endpoint. Without a farewell by the TCP net the peer finds that this rank has
 * ended, where it has not heard so from elsewhere. */
void
ucx_let_go(struct ucx_peer *peer)
{
	struct tcp_peer *of_tcp = &ucx_tcp(peer)->peer[peer->rank];
	pthread_mutex_lock(&peer->lock);
	peer->cut = peer->head || peer->under_way;
	pthread_mutex_unlock(&peer->lock);
	ucx_out_drop(peer);
	if (peer->under_way)
		ucx_close_endpoint(peer);
	for (int i = 0; i < TCP_WAYS && peer->cut; i++) {
		pthread_mutex_lock(&of_tcp->out[i].lock);
		of_tcp->out[i].cut = true;
		pthread_mutex_unlock(&of_tcp->out[i].lock);
	}
}

/* ---- hello ---- */

/* To a peer that has left it is not sent, unless a message is waiting for it. */
void
ucx_greet(struct ucx_peer *peer)
{
	struct ucx *u = peer->net;
	size_t bytes = UCX_TOKEN + u->n_address;
	struct net_message m = { .lane = UCX_LANE_HELLO, .bytes = bytes };
	if (peer->hello)
		return;
	peer->hello = malloc(bytes);
	if (!peer->hello || getrandom(peer->hello, UCX_TOKEN, 0) != UCX_TOKEN) {
		ucx_break(peer, ": no memory for what it is sent");
		return;
	}
	memcpy(peer->hello + UCX_TOKEN, u->address, u->n_address);
	if (net_tcp.send(ucx_tcp(peer), peer->rank, &m, peer->hello) == blinkOutOfMemory)
		ucx_break(peer, ": no memory for what it is sent");
}

/* UCX itself tells of an endpoint that has ended. */
static void
on_error(void *of, ucp_ep_h endpoint, ucs_status_t status)
{
	(void)endpoint;
	ucx_failed(of, status);
}

static void
meet(struct ucx_peer *peer)
{
	struct ucx *u = peer->net;
	const ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
		    | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = (const ucp_address_t *)(peer->theirs + UCX_TOKEN),
		.err_mode = UCP_ERR_HANDLING_MODE_PEER, .err_handler = { on_error, peer },
	};
	ucs_status_t status = u->api->ucp_ep_create_(u->worker, &params, &peer->endpoint);
	if (status != UCS_OK) {
		peer->endpoint = NULL;
		ucx_break(peer, ": UCX cannot reach it: %s", u->api->ucs_status_string_(status));
	}
	ucx_attend(peer);
}

/* ---- what the TCP net tells ---- */

void *
ucx_place(void *net, int from, const struct net_message *m)
{
	struct ucx *u = net;
	struct ucx_peer *peer = &u->peer[from];
	if (m->lane != UCX_LANE_HELLO || m->bytes <= UCX_TOKEN || m->bytes > UCX_HELLO_MOST || peer->theirs)
		return NET_REFUSED;
	peer->n_theirs = m->bytes;
	peer->theirs = malloc(m->bytes);
	return peer->theirs ? (void *)peer->theirs : NET_REFUSED;
}

static void
take_bye(struct ucx_peer *peer, uint64_t total)
{
	peer->left = true;
	peer->total = total;
	if (peer->received > total)
		ucx_break(peer, " sent more messages than it says");
	ucx_check_gone(peer);
}

static void
take_credit(struct ucx_peer *peer, uint64_t delivered)
{
	if (delivered > peer->sent || delivered < peer->delivered_there) {
		ucx_break(peer, " has more messages than it was sent");
		return;
	}
	peer->delivered_there = delivered;
	ucx_attend(peer);
}

void
ucx_arrived(void *net, int from, const struct net_message *m)
{
	struct ucx *u = net;
	struct ucx_peer *peer = &u->peer[from];
	if (m->lane == UCX_LANE_HELLO && m->bytes && !peer->endpoint)
		meet(peer);
	else if (m->lane == UCX_LANE_CREDIT && peer->theirs)
		take_credit(peer, m->flag);
	else if (m->lane == UCX_LANE_BYE && peer->theirs && !peer->left)
		take_bye(peer, m->flag);
	else if (m->lane == UCX_LANE_HEARD && peer->bye_at)
		peer->heard = true;
	else
		ucx_break(peer, " sent a message of no known kind");
}
#endif
