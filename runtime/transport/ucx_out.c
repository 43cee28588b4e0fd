/* Messages to peers: they wait in a list of the peer until the net's thread hands them to UCX. */
#include "transport/ucx_inside.h"

#ifdef BLINK_UCX
#include <stdlib.h>

static bool
take_order(struct ucx_peer *peer, uint32_t lane, uint32_t *order)
{
	uint32_t number = tcp_lane_number(lane);
	uint32_t *table = tcp_reach(peer->order, &peer->n_orders, sizeof *table, number);
	if (table) {
		peer->order = table;
		*order = table[number]++;
	}
	return table != NULL;
}

int
ucx_out_send(struct ucx_peer *peer, const struct net_message *m, const void *payload)
{
	struct ucx_parcel *parcel = malloc(sizeof *parcel);
	if (!parcel)
		return blinkOutOfMemory;
	*parcel = (struct ucx_parcel){ .peer = peer, .payload = payload,
		.header = { .from = (uint32_t)peer->net->rank, .m = *m } };
	pthread_mutex_lock(&peer->lock);
	bool good = take_order(peer, m->lane, &parcel->header.order);
	if (good) {
		*peer->tail = parcel;
		peer->tail = &parcel->next;
	}
	pthread_mutex_unlock(&peer->lock);
	if (!good) {
		free(parcel);
		return blinkOutOfMemory;
	}
	ucx_attend(peer);
	return blinkSuccess;
}

static struct ucx_parcel *
take(struct ucx_peer *peer)
{
	pthread_mutex_lock(&peer->lock);
	struct ucx_parcel *parcel = peer->head;
	if (parcel)
		peer->head = parcel->next;
	if (!peer->head)
		peer->tail = &peer->head;
	pthread_mutex_unlock(&peer->lock);
	return parcel;
}

static void
on_sent(void *request, ucs_status_t status, void *of)
{
	struct ucx_parcel *parcel = of;
	struct ucx_peer *peer = parcel->peer;
	peer->under_way--;
	free(parcel);
	peer->net->api->ucp_request_free_(request);
	if (status != UCS_OK)
		ucx_failed(peer, status);
}

static void
post(struct ucx_peer *peer, struct ucx_parcel *parcel)
{
	uint64_t bytes = parcel->header.m.bytes;
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS
		    | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.flags = bytes > UCX_EAGER ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER,
		.cb.send = on_sent, .user_data = parcel, .memory_type = UCS_MEMORY_TYPE_HOST,
	};
	for (int i = 0; i < UCX_TOKEN; i++)
		parcel->header.token[i] = peer->theirs[i];
	peer->sent++;
	peer->under_way++;
	ucs_status_ptr_t request = peer->net->api->ucp_am_send_nbx_(peer->endpoint, UCX_MESSAGE, &parcel->header,
	    sizeof parcel->header, bytes ? parcel->payload : NULL, bytes, &param);
	if (UCS_PTR_IS_PTR(request))
		return;
	peer->under_way--;
	free(parcel);
	if (UCS_PTR_IS_ERR(request))
		ucx_failed(peer, UCS_PTR_STATUS(request));
}

void
ucx_out_post(struct ucx_peer *peer)
{
	struct ucx_parcel *parcel;
	while (peer->endpoint && !peer->failed_at && peer->sent - peer->delivered_there < UCX_WINDOW
	    && (parcel = take(peer)))
		post(peer, parcel);
}

bool
ucx_out_needed(struct ucx_peer *peer)
{
	bool needed = false;
	pthread_mutex_lock(&peer->lock);
	for (const struct ucx_parcel *parcel = peer->head; parcel; parcel = parcel->next)
		needed = needed || !(parcel->header.m.lane & NET_DONE);
	pthread_mutex_unlock(&peer->lock);
	return needed;
}

void
ucx_out_drop(struct ucx_peer *peer)
{
	struct ucx_parcel *parcel;
	while ((parcel = take(peer)))
		free(parcel);
}
#endif
