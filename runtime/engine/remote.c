/* What the net's thread does with messages of ranks on other servers: it puts data where tasks look for it, and sets
 * the same flags that peers on this server would set. */
#include "engine/engine.h"

#include <stddef.h>

/* A channel's slot comes with its header; what it may hold at most is known. */
static void *
channel_place(struct peer *peer, const struct net_message *m)
{
	struct channel_slot *slot = &peer->in->slot[(m->flag - 1) % CALL_SLOTS];
	return m->bytes <= sizeof *slot ? slot : NULL;
}

/* NULL until this rank is in that call. A message that does not fit into it comes of another call than this rank's: it
 * stays where it is, and so does the call, until the hub has found out. */
static void *
lane_place(struct engine *e, int from, const struct net_message *m)
{
	if (m->flag >> 24 != e->net_collective || !e->net_lanes || m->bytes > (uint64_t)e->net_slot_bytes)
		return NULL;
	int mirror = lanes_mirror(e->net_lanes, from, (int)m->lane);
	uint64_t chunk = (m->flag & CHUNKS_MAX) - 1;
	if (mirror < 0)
		return NULL;
	size_t slots = (size_t)e->net_slots;
	return e->mirror + ((size_t)mirror * slots + (size_t)chunk % slots) * (size_t)e->net_slot_bytes;
}

void *
remote_place(void *engine, int from, const struct net_message *m)
{
	struct engine *e = engine;
	void *place = NULL;
	if (m->place != 0)
		return NET_REFUSED;
	pthread_mutex_lock(&e->net_lock);
	if (e->peer[from].mine && !e->peer[from].theirs && m->flag != 0)
		place = m->lane == NET_CHANNEL ? channel_place(&e->peer[from], m) : lane_place(e, from, m);
	pthread_mutex_unlock(&e->net_lock);
	return place;
}

/* `done` may come when nobody waits for it any more, but never before this rank has published something, so that the
 * flags exist. */
void
remote_arrived(void *engine, int from, const struct net_message *m)
{
	struct engine *e = engine;
	struct region_peer *mine = e->peer[from].mine;
	uint32_t lane = m->lane & ~(NET_DONE | NET_CHANNEL);
	if (!mine || lane >= LANES_MAX)
		return;
	if (m->lane & NET_CHANNEL) {
		_Atomic uint64_t *flag = m->lane & NET_DONE ? &mine->channel.done : &mine->channel.ready.value;
		atomic_store_explicit(flag, m->flag, memory_order_release);
	} else if (m->lane & NET_DONE) {
		atomic_store_explicit(&mine->done[lane], m->flag, memory_order_release);
	} else {
		atomic_store_explicit(&mine->ready[lane].first[(m->flag >> 24) % CALLS].signature, m->signature,
		    memory_order_relaxed);
		atomic_store_explicit(&mine->ready[lane].value, m->flag, memory_order_release);
	}
	bell_ring_always(e->bell);
}

void
remote_broken(void *engine, int peer, const char *reason)
{
	rank_peer_gone(((struct engine *)engine)->self, peer, reason);
}

void
remote_short_of(void *engine, int error)
{
	atomic_store(&((struct engine *)engine)->self->shortage, error);
}
