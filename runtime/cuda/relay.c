/* Between servers: a thread of each communicator relays what kernels say.
 *
 * A kernel cannot call a network, and it does not know that a peer is far away: it has the same rings, flags and
 * channels, but both ends of a pair are in memory of their own hosts, pinned and mapped for the GPU (struct
 * gpu_remote). The publisher's kernel writes chunks into its own host's ring and sets `ready` there; the reader's waits
 * for `ready` of its own host. What is between them moves as between ranks on the host (engine/remote.c):
 *
 *	publisher's GPU		its relay		net's thread of the reader	reader's GPU
 *	chunk, fence, ready ->	sees ready, sends ->	puts chunk, sets ready ->	polls ready, fence, reads
 *	polls done <-		net's thread sets <-	the relay sees, sends <-	fence, done
 *
 * Nothing of a call is told to the relay by the host: it looks at flags, which have the call's number, so that a graph
 * is relayed as often as it is replayed. Where a chunk lies, and how long it is, is in the strip's letter, which the
 * kernel writes before the first chunk's flag. The ring has the same layout on both sides, so that a message says where
 * it belongs, and it always has a place: a publisher writes only where its reader has done with what was there.
 *
 * Between two looks a strip may go from a call k - 1 to the next one, k, but not further: a kernel k + 1 begins when
 * the readers of call k - 1 are done, and they are not before all of it has been relayed. So there are letters of two
 * calls, by parity, and who sees a flag of call k sends what is left of k - 1 first. The letter of k - 1 is read only
 * while some of its chunks have not been sent; until then nobody writes another one over it.
 *
 * Memory. Kernels store 16 bytes at a time into the ring, meet at a barrier, and the thread that sets the flag fences
 * for the whole system before it does (device.h). That is CUDA's release at the scope of the system, which threads of
 * the host are in: who loads the flag here with acquire sees letter and chunk. The other way, the net's thread stores
 * the flag with release after the chunk; the kernel polls it with volatile loads, fences, and loads the chunk past its
 * first-level cache. Flags are 8 bytes, aligned, stored and loaded as a whole, and no more than that is asked of memory
 * that host and GPU share: no atomic operation that reads and writes.
 *
 * The thread sleeps while nothing is under way. It polls while calls are, without sleep at first where there are CPUs
 * for it, then with naps; and seldom once graphs have been captured, which run without a call. */
#include "cuda/relay.h"
#include "cuda/calls.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/thread.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ns: of a wait without sleep; the longest nap while calls are under way, and while graphs may be. */
#define SPIN_NS ((int64_t)100000)
#define NAP_NS ((int64_t)100000)
#define IDLE_NS ((int64_t)500000)

/* A message says where a chunk belongs in units of these bytes. */
enum { UNIT = 16, NAPS_OF_WAIT = 8, STACK = 128 << 10 };

/* What of a strip has been sent. */
struct strip {
	uint64_t seen;			/* its flag, when it was looked at */
	uint64_t told;			/* `done` of the other direction */
	struct gpu_letter letter;	/* of the last call that was begun */
	uint64_t chunks, n_chunks;	/* of that call: sent, and in all */
};

struct relay_peer {
	struct gpu_remote *out, *in;	/* what this rank publishes, and what it reads */
	struct strip *strip;		/* [GPU_FLAGS]; NULL: it is on this server */
	uint64_t sent[GPU_CHANNELS], told[GPU_CHANNELS];
};

struct gpu_relay {
	struct rank_state *self;
	size_t half;			/* bytes of rings */
	int channels;
	size_t slot_bytes;		/* of their slots */
	void *memory;
	struct relay_peer *peer;	/* of each rank */
	_Atomic int64_t strips;		/* of a pair: the most of any call so far */
	pthread_cond_t wake;
	pthread_t thread;
	bool has_thread, idle, quit;
};

static uint64_t
load64(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void
store64(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

/* ---- what kernels see ---- */

static struct gpu_remote *
end_of(const struct gpu *g, int publisher, int reader)
{
	const struct relay_peer *peer = g->relay->peer;
	return publisher == g->self->rank ? peer[reader].out : peer[publisher].in;
}

void
gpu_remote_pair(const struct gpu *g, int publisher, int reader, struct gpu_pair *out)
{
	struct gpu_remote *end = end_of(g, publisher, reader);
	*out = (struct gpu_pair){ .ready = end->ready, .done = end->done, .ring = { end->ring,
	    end->ring + g->layout.ring_bytes }, .letter = publisher == g->self->rank ? end->letter : NULL };
}

void
gpu_remote_channels(const struct gpu *g, int publisher, int reader, struct gpu_channels *out)
{
	struct gpu_remote *end = end_of(g, publisher, reader);
	*out = (struct gpu_channels){ .in = end->channel, .done = &end->channel->done,
	    .slots = end->ring + 2 * g->layout.ring_bytes };
}

/* ---- sending ---- */

static void
send_chunk(struct gpu_relay *r, int to, uint32_t number, const struct strip *s)
{
	struct gpu_remote *out = r->peer[to].out;
	const struct gpu_letter *l = &s->letter;
	uint64_t at = l->at + s->chunks % l->slots * l->slot_bytes, left = l->bytes - s->chunks * l->chunk_bytes;
	const struct net_message m = { .lane = number, .place = (uint32_t)(at / UNIT),
	    .flag = GPU_FLAG(l->call, s->chunks + 1), .signature = out->ready[number].signature[l->call & 1],
	    .bytes = left < l->chunk_bytes ? left : l->chunk_bytes };
	rank_send(r->self, to, &m, out->ring + (l->call & 1) * r->half + at);
}

/* The chunks of the letter's call up to `chunks`. */
static void
send_up_to(struct gpu_relay *r, int to, uint32_t number, struct strip *s, uint64_t chunks)
{
	for (; s->chunks < chunks && s->chunks < s->n_chunks; s->chunks++)
		send_chunk(r, to, number, s);
}

static void
take_letter(struct strip *s, const struct gpu_letter *letter)
{
	s->letter = *letter;
	s->chunks = 0;
	s->n_chunks = letter->bytes ? (letter->bytes + letter->chunk_bytes - 1) / letter->chunk_bytes : 1;
}

/* The call before is finished first, whether some of it has been seen or nothing. */
static bool
relay_strip(struct gpu_relay *r, int to, uint32_t number)
{
	struct strip *s = &r->peer[to].strip[number];
	const struct gpu_remote *out = r->peer[to].out;
	uint64_t value = load64(&out->ready[number].value), call = value >> 24;
	const struct gpu_letter *letter = &out->letter[2 * number];
	if (value == s->seen)
		return false;
	s->seen = value;
	if (s->letter.call < call) {
		const struct gpu_letter *before = &letter[(call - 1) & 1];
		send_up_to(r, to, number, s, s->n_chunks);
		if (s->letter.call < call - 1 && load64(&before->call) == call - 1) {
			take_letter(s, before);
			send_up_to(r, to, number, s, s->n_chunks);
		}
		take_letter(s, &letter[call & 1]);
	}
	send_up_to(r, to, number, s, value & GPU_CHUNKS_MAX);
	return true;
}

static bool
relay_done(struct gpu_relay *r, int to, uint32_t number)
{
	uint64_t *told = &r->peer[to].strip[number].told, value = load64(&r->peer[to].in->done[number]);
	const struct net_message m = { .lane = number | NET_DONE, .flag = value };
	if (value == *told)
		return false;
	*told = value;
	rank_send(r->self, to, &m, NULL);
	return true;
}

/* Of chunk `count` of a channel. */
static char *
slot_of(const struct gpu_relay *r, struct gpu_remote *end, uint32_t channel, uint64_t count)
{
	return end->ring + 2 * r->half + (channel * GPU_CHANNEL_SLOTS + count % GPU_CHANNEL_SLOTS) * r->slot_bytes;
}

static bool
relay_channel(struct gpu_relay *r, int to, uint32_t number)
{
	struct relay_peer *peer = &r->peer[to];
	struct gpu_channel *out = &peer->out->channel[number];
	uint64_t *sent = &peer->sent[number], *told = &peer->told[number];
	uint64_t ready = load64(&out->ready.value), done = load64(&peer->in->channel[number].done);
	bool moved = *sent < ready || *told < done;
	for (; *sent < ready; ++*sent) {
		const struct net_message m = { .lane = number | NET_CHANNEL, .flag = *sent + 1,
		    .signature = out->ready.signature[*sent % GPU_CHANNEL_SLOTS],
		    .bytes = out->bytes[*sent % GPU_CHANNEL_SLOTS] };
		rank_send(r->self, to, &m, slot_of(r, peer->out, number, *sent));
	}
	if (*told < done) {
		const struct net_message m = { .lane = number | NET_CHANNEL | NET_DONE, .flag = done };
		*told = done;
		rank_send(r->self, to, &m, NULL);
	}
	return moved;
}

/* One look at all flags: has any changed? */
static bool
look(struct gpu_relay *r)
{
	bool moved = false;
	uint32_t strips = (uint32_t)atomic_load(&r->strips);
	for (int i = 0; i < r->self->n_ranks; i++) {
		if (!r->peer[i].strip)
			continue;
		for (uint32_t s = 0; s < strips; s++) {
			moved = relay_strip(r, i, s) || moved;
			moved = relay_done(r, i, s) || moved;
		}
		for (uint32_t c = 0; c < (uint32_t)r->channels; c++)
			moved = relay_channel(r, i, c) || moved;
	}
	return moved;
}

/* ---- what arrives ---- */

static struct relay_peer *
peer_of(struct gpu_relay *r, int rank)
{
	return r && r->peer[rank].strip ? &r->peer[rank] : NULL;
}

void *
gpu_relay_place(void *gpu, int from, const struct net_message *m)
{
	struct gpu_relay *r = atomic_load(&((struct gpu *)gpu)->hears);
	struct relay_peer *peer = peer_of(r, from);
	uint64_t at = (uint64_t)m->place * UNIT, call = m->flag >> 24;
	if (!peer || m->flag == 0)
		return NET_REFUSED;
	if ((m->lane & NET_CHANNEL) && (m->lane & ~NET_CHANNEL) < (uint32_t)r->channels && m->place == 0
	    && m->bytes <= r->slot_bytes)
		return slot_of(r, peer->in, m->lane & ~NET_CHANNEL, m->flag - 1);
	if (m->lane >= GPU_FLAGS || at > r->half || m->bytes > r->half - at)
		return NET_REFUSED;
	return peer->in->ring + (call & 1) * r->half + at;
}

void
gpu_relay_arrived(void *gpu, int from, const struct net_message *m)
{
	struct relay_peer *peer = peer_of(atomic_load(&((struct gpu *)gpu)->hears), from);
	uint32_t number = m->lane & ~(NET_DONE | NET_CHANNEL);
	if (!peer || number >= (m->lane & NET_CHANNEL ? GPU_CHANNELS : GPU_FLAGS))
		return;
	if ((m->lane & NET_CHANNEL) && (m->lane & NET_DONE)) {
		store64(&peer->out->channel[number].done, m->flag);
	} else if (m->lane & NET_CHANNEL) {
		struct gpu_flag *ready = &peer->in->channel[number].ready;
		store64(&ready->signature[(m->flag - 1) % GPU_CHANNEL_SLOTS], m->signature);
		store64(&ready->value, m->flag);
	} else if (m->lane & NET_DONE) {
		store64(&peer->out->done[number], m->flag);
	} else {
		struct gpu_flag *ready = &peer->in->ready[number];
		store64(&ready->signature[m->flag >> 24 & 1], m->signature);
		store64(&ready->value, m->flag);
	}
}

void
gpu_relay_broken(void *gpu, int peer, const char *reason)
{
	rank_peer_gone(((struct gpu *)gpu)->self, peer, reason);
}

void
gpu_relay_short_of(void *gpu, int error)
{
	atomic_store(&((struct gpu *)gpu)->self->shortage, error);
}

/* ---- the thread ---- */

/* The lock is held. */
static bool
is_under_way(const struct gpu *g)
{
	return g->launches->first || load64(&g->status->begun) != load64(&g->status->done);
}

static void
pause_for(const struct gpu_relay *r, int64_t waited, bool under_way)
{
	int64_t nap = waited / NAPS_OF_WAIT, most = under_way ? NAP_NS : IDLE_NS;
	if (waited < SPIN_NS && r->self->spins > 0)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = nap < most ? nap : most }, NULL);
}

/* A call that has ended has set its flags: after the look that began when nothing was under way, nothing is left. The
 * same holds for the end. */
static void *
run(void *gpu)
{
	struct gpu *g = gpu;
	struct gpu_launches *l = g->launches;
	struct gpu_relay *r = g->relay;
	int64_t moved_at = now_ns();
	for (bool quit = false; !quit;) {
		pthread_mutex_lock(&l->lock);
		bool under_way = is_under_way(g), captured = l->has_captured;
		quit = r->quit;
		pthread_mutex_unlock(&l->lock);
		if (look(r)) {
			moved_at = now_ns();
		} else if (under_way || captured) {
			pause_for(r, now_ns() - moved_at, under_way);
		} else if (!quit) {
			pthread_mutex_lock(&l->lock);
			r->idle = !is_under_way(g) && !l->has_captured && !r->quit;
			while (r->idle)
				pthread_cond_wait(&r->wake, &l->lock);
			pthread_mutex_unlock(&l->lock);
			moved_at = now_ns();
		}
	}
	return NULL;
}

void
gpu_relay_wake(struct gpu *g)
{
	struct gpu_relay *r = g->relay;
	if (r && r->idle) {
		r->idle = false;
		pthread_cond_signal(&r->wake);
	}
}

void
gpu_relay_expect(struct gpu *g, int64_t strips)
{
	if (g->relay && strips > atomic_load(&g->relay->strips))
		atomic_store(&g->relay->strips, strips);
}

/* ---- open and close ---- */

static size_t
end_bytes(const struct gpu *g)
{
	size_t slots = (size_t)g->layout.channels * g->layout.channel_bytes;
	return sizeof(struct gpu_remote) + 2 * g->layout.ring_bytes + slots;
}

/* Rings are not read before they are written. */
static int
place_peer(struct gpu *g, int rank, char *at, struct blink_error *err)
{
	struct relay_peer *peer = &g->relay->peer[rank];
	if (!(peer->strip = calloc(GPU_FLAGS, sizeof *peer->strip)))
		return set_error_memory(err);
	peer->out = (struct gpu_remote *)at;
	peer->in = (struct gpu_remote *)(at + end_bytes(g));
	memset(peer->out, 0, sizeof *peer->out);
	memset(peer->in, 0, sizeof *peer->in);
	return blinkSuccess;
}

int
gpu_relay_open(struct gpu *g, struct blink_error *err)
{
	int n = g->self->n_ranks;
	size_t bytes = 2 * end_bytes(g) * (size_t)(n - g->layout.n_local);
	struct gpu_relay *r = bytes ? calloc(1, sizeof *r) : NULL;
	if (!bytes)
		return blinkSuccess;
	if (!r)
		return set_error_memory(err);
	g->relay = r;
	*r = (struct gpu_relay){ .self = g->self, .half = g->layout.ring_bytes,
	    .channels = g->layout.channels, .slot_bytes = g->layout.slot_bytes };
	pthread_cond_init(&r->wake, NULL);
	if (!(r->peer = calloc((size_t)n, sizeof *r->peer)))
		return set_error_memory(err);
	if (gpu_take_host(g, bytes, true, &r->memory, err) != blinkSuccess)
		return err->code;
	char *at = r->memory;
	for (int i = 0; i < n && err->code == blinkSuccess; i++)
		if (g->peer[i].local < 0) {
			place_peer(g, i, at, err);
			at += 2 * end_bytes(g);
		}
	if (err->code == blinkSuccess)
		atomic_store(&g->hears, r);
	return err->code;
}

int
gpu_relay_start(struct gpu *g, struct blink_error *err)
{
	struct gpu_relay *r = g->relay;
	int failed = r ? start_thread(&r->thread, STACK, run, g) : 0;
	if (failed)
		return set_error(err, blinkSystemError, "a thread: %s", strerror(failed));
	if (r)
		r->has_thread = true;
	return blinkSuccess;
}

void
gpu_relay_end(struct gpu *g)
{
	struct gpu_relay *r = g->relay;
	if (!r || !r->has_thread)
		return;
	pthread_mutex_lock(&g->launches->lock);
	r->quit = true;
	r->idle = false;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&g->launches->lock);
	pthread_join(r->thread, NULL);
	r->has_thread = false;
}

void
gpu_relay_close(struct gpu *g, bool forked)
{
	struct gpu_relay *r = g->relay;
	if (!r)
		return;
	atomic_store(&g->hears, NULL);
	for (int i = 0; i < r->self->n_ranks && r->peer; i++)
		free(r->peer[i].strip);
	if (r->memory && !forked)
		gpu_give_host(g, r->memory);
	free(r->peer);
	free(r);
	g->relay = NULL;
}
