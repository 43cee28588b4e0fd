/* Regions that ranks share: what one writes, the other reads, by every route. */
#include "play.h"
#include "cuda/regions.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Places of a pair: those in the reader's memory, which the publisher writes, and those in the publisher's. */
enum { IN_READER = 12, IN_PUBLISHER = 4, PLACES = IN_READER + IN_PUBLISHER };

static void
places_of(const struct gpu *g, int publisher, int reader, enum gpu_route route, void *place[PLACES])
{
	const struct gpu_layout *l = &g->layout;
	struct gpu_pair p;
	struct gpu_channels c;
	gpu_pair_of(g, publisher, reader, route, &p);
	gpu_channels_of(g, publisher, reader, route, &c);
	void *const all[PLACES] = { &p.ready[0].value, &p.ready[GPU_FLAGS - 1].signature[1], p.packets[0],
	    p.packets[0] + l->packet_bytes - 8, p.packets[1], p.ring[0], p.ring[1], p.ring[1] + l->ring_bytes - 8,
	    &c.in[0].ready.value, &c.in[GPU_CHANNELS - 1].bytes[1], c.slots,
	    c.slots + (size_t)l->channels * l->channel_bytes - 8, &p.done[0], &p.done[GPU_FLAGS - 1], c.done,
	    (char *)c.done + (GPU_CHANNELS - 1) * sizeof(struct gpu_channel) };
	memcpy(place, all, sizeof all);
}

static uint64_t
number_of(int publisher, int reader, enum gpu_route route, int place)
{
	int pair = (publisher * MOST + reader) * 2 + (int)route;
	return UINT64_C(0x1234567800000000) + (uint64_t)(pair * PLACES + place);
}

/* Everyone waits on memory of its own. */
static bool
is_at_owner(const struct rank *r, int owner, enum gpu_route route, const void *place)
{
	const struct gpu *g = gpu_of(r);
	const char *own = g->own[route];
	bool here = (const char *)place >= own && (const char *)place < own + g->layout.bytes;
	return here == (owner == r->number);
}

/* Write what belongs to the other of a pair, or compare what the other has written here. */
static bool
move_pair(struct rank *r, int publisher, int reader, enum gpu_route route, bool writes)
{
	struct gpu *g = gpu_of(r);
	struct blink_error err = { 0 };
	void *place[PLACES];
	places_of(g, publisher, reader, route, place);
	for (int i = 0; i < PLACES; i++) {
		int owner = i < IN_READER ? reader : publisher, writer = i < IN_READER ? publisher : reader;
		uint64_t number = number_of(publisher, reader, route, i), found = 1;
		if (!is_at_owner(r, owner, route, place[i]))
			return printf("# rank %d: place %d is not at rank %d\n", r->number, i, owner), false;
		if ((writes ? writer : owner) != r->number)
			continue;
		if (writes ? gpu_copy(g, place[i], &number, 8, &err) : gpu_copy(g, &found, place[i], 8, &err)) {
			printf("# rank %d: %s\n", r->number, err.text);
			return false;
		}
		if (!writes && found != number) {
			printf("# rank %d: %d to %d, route %d, place %d: %llx\n", r->number, publisher, reader,
			    (int)route, i, (unsigned long long)found);
			return false;
		}
	}
	return true;
}

static bool
has_route(const struct gpu *g, int a, int b, enum gpu_route route)
{
	int rank = g->self->rank, other = a == rank ? b : a;
	return other == rank ? g->own[route] != NULL : g->peer[other].region[route] != NULL;
}

static bool
move_all(struct rank *r, bool writes)
{
	struct gpu *g = gpu_of(r);
	bool good = true;
	for (int peer = 0; peer < r->n; peer++)
		for (enum gpu_route route = GPU_ROUTE_DIRECT; route <= GPU_ROUTE_HOST; route++)
			if (has_route(g, r->number, peer, route))
				good = good && move_pair(r, r->number, peer, route, writes)
				    && (peer == r->number || move_pair(r, peer, r->number, route, writes));
	return good;
}

/* Flags and packets of all peers are 0 at first: the first and the last of what is cleared. */
static bool
is_clear(struct rank *r)
{
	struct blink_error err = { 0 };
	void *place[PLACES];
	bool clear = true;
	for (int peer = 0; peer < r->n; peer++) {
		places_of(gpu_of(r), peer, r->number, GPU_ROUTE_DIRECT, place);
		for (int i = 0; i < 5; i++) {
			uint64_t found = 1;
			clear = gpu_copy(gpu_of(r), &found, place[i], 8, &err) == blinkSuccess && found == 0 && clear;
		}
	}
	return clear;
}

bool
regions(struct rank *r)
{
	WANT(r, is_clear(r));
	WANT(r, meet(r));
	WANT(r, move_all(r, true));
	WANT(r, meet(r));
	WANT(r, move_all(r, false));
	WANT(r, meet(r));
	return true;
}

/* Rank 0 has left, and others have still to tell it what they have done with. */
bool
one_leaves(struct rank *r)
{
	WANT(r, meet(r));
	if (r->number == 0)
		return true;
	for (int i = 0; i < SECONDS * 100 && *n_left == 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	WANT(r, *n_left > 0);
	WANT(r, move_pair(r, 0, r->number, GPU_ROUTE_DIRECT, true));
	WANT(r, move_pair(r, r->number, 0, GPU_ROUTE_DIRECT, true));
	WANT(r, !gpu_of(r)->own[GPU_ROUTE_HOST] || move_pair(r, 0, r->number, GPU_ROUTE_HOST, true));
	return true;
}

/* As it does between processes without VMM: what one of them has open, the driver does not free. */
bool
one_leaves_ipc(void)
{
	char line[64];
	FILE *calls;
	bool freed = false;
	processes.lack_vmm = processes.stay = true;
	if (!processes_play(3, one_leaves) || !(calls = fopen(getenv("VIRTUAL_GPU_CALLS"), "r")))
		return false;
	while (fgets(line, sizeof line, calls))
		freed |= strcmp(line, "freed while others have it open\n") == 0;
	fclose(calls);
	return !freed;
}

static bool
state_is_clear(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	struct blink_error err = { 0 };
	struct gpu_state *copy = calloc(1, sizeof *copy);
	uint64_t counts[2 * MOST * GPU_CHANNELS];
	int n = r->n * GPU_CHANNELS;
	bool good = copy && gpu_copy(g, copy, g->state, sizeof *copy, &err) == blinkSuccess && copy->calls == 0
	    && copy->n_pending[0] == 0 && copy->received == copy->sent + n
	    && gpu_copy(g, counts, copy->sent, 2 * (size_t)n * 8, &err) == blinkSuccess;
	for (int i = 0; i < 2 * n; i++)
		good = good && counts[i] == 0;
	free(copy);
	return good && g->status->stop == 0 && g->status->awaits == -1;
}

static bool
all_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, g->peer[i].direct && (i == r->number || g->peer[i].region[GPU_ROUTE_DIRECT]));
	WANT(r, !g->own[GPU_ROUTE_HOST]);
	WANT(r, g->regions->sharing == GPU_SHARING_VMM);
	WANT(r, (int)g->device == r->number && g->blocks == 16 && g->threads == GPU_THREADS);
	WANT(r, state_is_clear(r));
	return regions(r);
}

/* ranks as threads find each other's memory at its own address */
bool
threads_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, i == r->number || !g->regions->import[i].memory);
	return all_direct(r);
}

bool
processes_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, i == r->number || g->regions->import[i].memory);
	return all_direct(r);
}

bool
ipc(struct rank *r)
{
	WANT(r, gpu_of(r)->regions->sharing == GPU_SHARING_IPC);
	WANT(r, !gpu_of(r)->own[GPU_ROUTE_HOST]);
	return regions(r);
}

/* GPU 0 of a DGX-1V reaches 1, 2, 3 and 6 by NVLink, and not 5 and 7. */
bool
some_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	int n = 0;
	for (int i = 0; i < r->n; i++) {
		n += g->peer[i].direct;
		WANT(r, !g->peer[i].direct == !(i == r->number || g->peer[i].region[GPU_ROUTE_DIRECT]));
		WANT(r, i == r->number || g->peer[i].region[GPU_ROUTE_HOST]);
	}
	WANT(r, n > 1 && n < r->n && g->own[GPU_ROUTE_HOST] && g->own[GPU_ROUTE_DIRECT]);
	return regions(r);
}

/* Each process sees its own GPU alone, and has the memory of the others' all the same. */
bool
unseen_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	WANT(r, g->device == 0);
	for (int i = 0; i < r->n; i++)
		WANT(r, g->peer[i].direct && (i == r->number || g->regions->import[i].memory));
	WANT(r, !g->own[GPU_ROUTE_HOST]);
	return regions(r);
}

bool
none_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, i == r->number || (!g->peer[i].direct && g->peer[i].region[GPU_ROUTE_HOST]));
	return regions(r);
}

/* What GPU 0 writes to GPU 2 does not arrive: neither of the two takes the direct way, others do. */
bool
lost_is_found(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, g->peer[i].direct == ((i != 0 || r->number != 2) && (i != 2 || r->number != 0)));
	WANT(r, meet(r));
	for (int writes = 1; writes >= 0; writes--) {
		for (int i = 0; i < r->n; i++) {
			enum gpu_route route = g->peer[i].direct ? GPU_ROUTE_DIRECT : GPU_ROUTE_HOST;
			WANT(r, move_pair(r, r->number, i, route, writes));
			WANT(r, move_pair(r, i, r->number, route, writes));
		}
		WANT(r, meet(r));
	}
	return true;
}
