/* Messages from peers. A short one that comes in its turn, and has a place, is copied there at once; others have a
 * record in their lane until they are delivered. */
#include "transport/ucx_inside.h"

#ifdef BLINK_UCX
#include <stdlib.h>
#include <string.h>

static struct ucx_lane *
lane_of(struct ucx_peer *peer, uint32_t lane)
{
	uint32_t number = tcp_lane_number(lane);
	struct ucx_lane *table = tcp_reach(peer->lane, &peer->n_lanes, sizeof *table, number);
	if (!table)
		return NULL;
	peer->lane = table;
	return &table[number];
}

/* ---- deliver ---- */

static void
deliver_one(struct ucx_peer *peer, struct ucx_lane *lane, const struct net_message *m)
{
	struct ucx *u = peer->net;
	lane->expected++;
	peer->delivered++;
	if (peer->delivered - peer->told >= UCX_WINDOW / 4) {
		peer->told = peer->delivered;
		ucx_tell(peer, UCX_LANE_CREDIT, peer->delivered);
	}
	u->events.arrived(u->events.context, peer->rank, m);
}

/* Messages that are whole, as long as it is their turn. */
static void
deliver(struct ucx_peer *peer, struct ucx_lane *lane)
{
	struct ucx_arrival *a;
	while ((a = lane->ahead) && a->order == lane->expected && a->state == ARRIVAL_WHOLE) {
		lane->ahead = a->next;
		deliver_one(peer, lane, &a->m);
		free(a);
	}
}

/* ---- places ---- */

/* NULL: none yet, or the peer is broken. It is counted before the events are asked: where they had no place, the thread
 * that has one sees the number. */
static void *
ask_place(struct ucx_peer *peer, const struct net_message *m)
{
	struct ucx *u = peer->net;
	void *place = u->events.place(u->events.context, peer->rank, m);
	if (place == NET_REFUSED)
		ucx_break(peer, " sent a message that does not fit");
	return place == NET_REFUSED ? NULL : place;
}

/* UCX has let go of the place. */
static void
end_left(struct ucx_arrival *a)
{
	struct ucx_arrival **at = &a->net->left;
	while (*at != a)
		at = &(*at)->later;
	*at = a->later;
	free(a);
}

static void
on_received(void *request, ucs_status_t status, size_t bytes, void *of)
{
	struct ucx_arrival *a = of;
	struct ucx_peer *peer = a->peer;
	(void)bytes;
	a->net->api->ucp_request_free_(request);
	if (!peer) {
		end_left(a);
		return;
	}
	peer->moving--;
	a->state = status == UCS_OK ? ARRIVAL_WHOLE : ARRIVAL_LOST;
	if (status != UCS_OK)
		ucx_failed(peer, status);
	else if (!atomic_load(&peer->broken))
		deliver(peer, lane_of(peer, a->m.lane));
	ucx_check_gone(peer);
}

/* UCX fetches the bytes. Its descriptor is UCX's from here on, whatever comes of it. */
static void
fetch(struct ucx_arrival *a, void *place)
{
	struct ucx *u = a->net;
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA
		    | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.cb.recv_am = on_received, .user_data = a, .memory_type = UCS_MEMORY_TYPE_HOST,
	};
	void *remote = a->remote;
	a->remote = NULL;
	ucs_status_ptr_t request = u->api->ucp_am_recv_data_nbx_(u->worker, remote, place, a->m.bytes, &param);
	if (UCS_PTR_IS_PTR(request)) {
		a->state = ARRIVAL_MOVES;
		a->peer->moving++;
		return;
	}
	a->state = request ? ARRIVAL_LOST : ARRIVAL_WHOLE;
	if (request)
		ucx_failed(a->peer, UCS_PTR_STATUS(request));
}

static void
fill(struct ucx_arrival *a, void *place)
{
	struct ucx_peer *peer = a->peer;
	atomic_fetch_sub(&peer->asking, 1);
	if (a->remote) {
		fetch(a, place);
	} else {
		memcpy(place, a->bytes, a->m.bytes);
		a->state = ARRIVAL_WHOLE;
	}
	deliver(peer, lane_of(peer, a->m.lane));
}

/* Those that still have none stay, in their order. */
void
ucx_in_resume(struct ucx_peer *peer)
{
	struct ucx_arrival *a = peer->waiting;
	peer->waiting = NULL;
	peer->waiting_tail = &peer->waiting;
	for (struct ucx_arrival *later; a; a = later) {
		later = a->later;
		a->later = NULL;
		void *place = atomic_load(&peer->broken) ? NULL : ask_place(peer, &a->m);
		if (place) {
			fill(a, place);
		} else {
			*peer->waiting_tail = a;
			peer->waiting_tail = &a->later;
		}
	}
	ucx_check_gone(peer);
}

/* ---- what comes ---- */

/* What is wrong with it; NULL: nothing. */
static const char *
wrong(const struct ucx_peer *peer, const struct net_message *m, size_t bytes, bool remote)
{
	if (!tcp_lane_good(m->lane))
		return "a message of a lane that is not";
	if (m->bytes != bytes || (remote ? bytes == 0 : bytes > UCX_EAGER))
		return "a message of another size than it says";
	return peer->received - peer->delivered > UCX_WINDOW ? "more messages than it may" : NULL;
}

static struct ucx_arrival *
new_arrival(struct ucx_peer *peer, struct ucx_lane *lane, const struct ucx_header *h, void *data, bool remote)
{
	struct ucx_arrival *a = malloc(sizeof *a + (remote ? 0 : h->m.bytes)), **at = &lane->ahead;
	while (*at && (int32_t)((*at)->order - h->order) < 0)
		at = &(*at)->next;
	if (!a) {
		ucx_break(peer, ": no memory for what it sends");
		return NULL;
	}
	if (*at && (*at)->order == h->order) {
		ucx_break(peer, " sent a message twice");
		free(a);
		return NULL;
	}
	*a = (struct ucx_arrival){ .next = *at, .peer = peer, .net = peer->net, .order = h->order, .m = h->m,
		.state = h->m.bytes ? ARRIVAL_WAITS : ARRIVAL_WHOLE, .remote = remote ? data : NULL };
	if (!remote)
		memcpy(a->bytes, data, h->m.bytes);
	*at = a;
	return a;
}

/* Of a short message whose turn it is. */
static void
take_now(struct ucx_peer *peer, struct ucx_lane *lane, const struct net_message *m, const void *data, void *place)
{
	if (m->bytes)
		memcpy(place, data, m->bytes);
	deliver_one(peer, lane, m);
	deliver(peer, lane);
}

/* True: UCX is to keep `data`. */
static bool
take(struct ucx_peer *peer, const struct ucx_header *h, void *data, bool remote)
{
	struct ucx_lane *lane = lane_of(peer, h->m.lane);
	void *place = NULL;
	if (!lane) {
		ucx_break(peer, ": no memory for what it sends");
		return false;
	}
	if ((int32_t)(h->order - lane->expected) < 0) {
		ucx_break(peer, " sent a message twice");
		return false;
	}
	if (h->m.bytes) {
		atomic_fetch_add(&peer->asking, 1);
		place = ask_place(peer, &h->m);
	}
	if (atomic_load(&peer->broken))
		return false;
	if (!remote && h->order == lane->expected && (place || !h->m.bytes)) {
		if (place)
			atomic_fetch_sub(&peer->asking, 1);
		take_now(peer, lane, &h->m, data, place);
		return false;
	}
	struct ucx_arrival *a = new_arrival(peer, lane, h, data, remote);
	if (!a)
		return false;
	if (place) {
		fill(a, place);
	} else if (h->m.bytes) {
		*peer->waiting_tail = a;
		peer->waiting_tail = &a->later;
	}
	return remote;
}

/* Whose it is; NULL: who sent it does not know the token. The comparison takes the same time wherever they differ. */
static struct ucx_peer *
find_sender(struct ucx *u, const struct ucx_header *h)
{
	struct ucx_peer *peer = h->from < (uint32_t)u->n_ranks ? &u->peer[h->from] : NULL;
	unsigned char differ = 0;
	if (!peer || !peer->hello)
		return NULL;
	for (int i = 0; i < UCX_TOKEN; i++)
		differ |= (unsigned char)(peer->hello[i] ^ h->token[i]);
	return differ || atomic_load(&peer->broken) ? NULL : peer;
}

ucs_status_t
ucx_in_message(void *net, const void *header, size_t n_header, void *data, size_t bytes,
    const ucp_am_recv_param_t *param)
{
	struct ucx_header h;
	bool remote = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV, keep = false;
	memcpy(&h, header, n_header == sizeof h ? sizeof h : 0);
	struct ucx_peer *peer = n_header == sizeof h ? find_sender(net, &h) : NULL;
	if (peer) {
		peer->received++;
		const char *why = wrong(peer, &h.m, bytes, remote);
		if (why)
			ucx_break(peer, " sent %s", why);
		else
			keep = take(peer, &h, data, remote);
		ucx_check_gone(peer);
	}
	return keep ? UCS_INPROGRESS : remote ? UCS_ERR_REJECTED : UCS_OK;
}

/* ---- the end ---- */

/* Places that UCX is filling are its own until it lets go of them. */
void
ucx_in_drop(struct ucx_peer *peer)
{
	struct ucx *u = peer->net;
	for (uint32_t i = 0; i < peer->n_lanes; i++) {
		for (struct ucx_arrival *a = peer->lane[i].ahead, *next; a; a = next) {
			next = a->next;
			if (a->remote && u->worker)
				u->api->ucp_am_data_release_(u->worker, a->remote);
			a->peer = NULL;
			if (a->state == ARRIVAL_MOVES) {
				a->later = u->left;
				u->left = a;
			} else {
				free(a);
			}
		}
		peer->lane[i].ahead = NULL;
	}
	peer->waiting = NULL;
	peer->waiting_tail = &peer->waiting;
}
#endif
