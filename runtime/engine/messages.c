/* Messages between two ranks: a channel for each ordered pair, whose slots carry them one after the other.
 *
 * Both ranks count chunks since the communicator began, so that flags are never cleared. A message begins in a slot of
 * its own, and every slot says how long its message is: where sender and receiver disagree, both hear of it. Messages
 * of one group proceed together, but for those of one pair in one direction, which keep their order. */
#include "engine/engine.h"
#include "support/error.h"

#include <string.h>

static uint64_t *
counter(struct engine *e, const struct message *m)
{
	return m->sends ? &e->sent[m->peer] : &e->received[m->peer];
}

int
messages_begin(struct engine *e, struct call *call, struct blink_error *err)
{
	for (struct message *m = call->message; m; m = m->next) {
		if (peer_open(e, m->peer, err) != blinkSuccess)
			return err->code;
		m->first = *counter(e, m);
		m->n_chunks = (m->bytes + CHANNEL_BYTES - 1) / CHANNEL_BYTES;
		*counter(e, m) += m->n_chunks;
	}
	return blinkSuccess;
}

static size_t
chunk_bytes(const struct message *m)
{
	uint64_t left = m->bytes - m->chunk * CHANNEL_BYTES;
	return left < CHANNEL_BYTES ? (size_t)left : CHANNEL_BYTES;
}

static bool
is_brief(const struct message *m)
{
	return m->bytes <= sizeof ((struct channel_slot *)0)->brief;
}

/* What the peer has read is asked only where what is known of it does not do. */
static bool
has_slot(struct peer *peer, uint64_t k)
{
	if (k >= CALL_SLOTS + peer->n_read)
		peer->n_read = atomic_load_explicit(&peer->mine->channel.done, memory_order_acquire);
	return k < CALL_SLOTS + peer->n_read;
}

static bool
send_chunk(struct engine *e, struct message *m)
{
	struct peer *peer = &e->peer[m->peer];
	struct channel *mine = &peer->mine->channel;
	uint64_t k = m->first + m->chunk;
	size_t n = chunk_bytes(m);
	if (!has_slot(peer, k))
		return false;
	struct channel_slot *slot = &mine->slot[k % CALL_SLOTS];
	slot->signature = m->signature;
	slot->bytes = m->bytes;
	memcpy(is_brief(m) ? slot->brief : slot->data, m->data + m->chunk * CHANNEL_BYTES, n);
	m->chunk++;
	if (peer->theirs) {
		atomic_store_explicit(&peer->theirs->channel.ready.value, k + 1, memory_order_release);
		bell_ring(peer->bell, flag_number(e->self->rank, FLAG_CHANNEL_READY));
	} else {
		struct net_message message = { NET_CHANNEL, 0, k + 1, m->signature,
			sizeof *slot - CHANNEL_BYTES + (is_brief(m) ? 0 : n) };
		rank_send(e->self, m->peer, &message, slot);
	}
	return true;
}

static int
wrong_message(const struct engine *e, const struct message *m, const struct channel_slot *slot, struct blink_error *err)
{
	if (slot->bytes != m->bytes)
		return set_error(err, blinkMismatch, "rank %d sends %llu bytes; rank %d receives %llu", m->peer,
		    (unsigned long long)slot->bytes, e->self->rank, (unsigned long long)m->bytes);
	return set_error(err, blinkMismatch, "rank %d sends another type than rank %d receives", m->peer,
	    e->self->rank);
}

static bool
receive_chunk(struct engine *e, struct message *m, struct blink_error *err)
{
	struct peer *peer = &e->peer[m->peer];
	uint64_t k = m->first + m->chunk;
	if (!flag_reached(&peer->mine->channel.ready.value, k + 1))
		return false;
	const struct channel_slot *slot = &peer->in->slot[k % CALL_SLOTS];
	if (slot->signature != m->signature || slot->bytes != m->bytes) {
		wrong_message(e, m, slot, err);
		return false;
	}
	memcpy(m->data + m->chunk * CHANNEL_BYTES, is_brief(m) ? slot->brief : slot->data, chunk_bytes(m));
	m->chunk++;
	if (peer->theirs) {
		atomic_store_explicit(&peer->in->done, k + 1, memory_order_release);
		bell_ring(peer->bell, flag_number(e->self->rank, FLAG_CHANNEL_DONE));
	} else {
		struct net_message message = { NET_CHANNEL | NET_DONE, 0, k + 1, 0, 0 };
		rank_send(e->self, m->peer, &message, NULL);
	}
	return true;
}

/* Is a message of the same pair and direction before it? Groups are short, or have one message of each pair. */
static bool
is_first(const struct call *call, const struct message *m)
{
	for (const struct message *before = call->message; before != m; before = before->next)
		if (before->peer == m->peer && before->sends == m->sends && before->chunk < before->n_chunks)
			return false;
	return true;
}

bool
messages_progress(struct engine *e, struct call *call, struct blink_error *err)
{
	bool moved = false;
	for (struct message *m = call->message; m && err->code == blinkSuccess; m = m->next) {
		if (m->chunk == m->n_chunks || !is_first(call, m))
			continue;
		while (m->chunk < m->n_chunks && (m->sends ? send_chunk(e, m) : receive_chunk(e, m, err)))
			moved = true;
	}
	return moved;
}

bool
messages_done(const struct call *call)
{
	for (const struct message *m = call->message; m; m = m->next)
		if (m->chunk < m->n_chunks)
			return false;
	return true;
}

int
messages_await(const struct call *call)
{
	for (const struct message *m = call->message; m; m = m->next)
		if (m->chunk < m->n_chunks)
			return m->peer;
	return -1;
}

int
engine_probe(void *of, int from, size_t *bytes, struct blink_error *err)
{
	struct engine *e = of;
	struct peer *peer = &e->peer[from];
	int code = blinkInProgress;
	pthread_mutex_lock(&e->self->lock);
	if (e->self->error.code != blinkSuccess) {
		*err = e->self->error;
		code = err->code;
	} else if (!e->first && peer_open(e, from, err) != blinkSuccess) {
		code = err->code;
	} else if (!e->first && flag_reached(&peer->mine->channel.ready.value, e->received[from] + 1)) {
		*bytes = peer->in->slot[e->received[from] % CALL_SLOTS].bytes;
		code = blinkSuccess;
	}
	pthread_mutex_unlock(&e->self->lock);
	return code;
}
