/* Messages to and from single ranks: all of a group in one kernel, if they fit.
 *
 * A kernel has a block for each peer and direction, and its list of messages lies in memory of the host, which the GPU
 * reads: nothing is uploaded. A list belongs to its launch until that has ended; in a capture, for ever.
 *
 * Groups with more messages than a list has room for, or more peers than there are blocks, take several kernels. Two
 * ranks must then not wait for each other's later ones, so messages go in an order that both know: first by their
 * number among those of the same pair and direction, a few at a time, then by the distance between the ranks. Of a
 * class of these, all ranks' messages match, and of several classes, all ranks finish the same one first. */
#include "cuda/launch.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

enum { TABLES = 16 };

struct gpu_pool {
	void *memory;
	struct gpu_pool *next;
};

/* ---- tables ---- */

int
gpu_messages_grow(struct gpu *g, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	struct gpu_pool *pool = calloc(1, sizeof *pool);
	size_t table = GPU_MESSAGES * sizeof(struct gpu_message);
	int n = TABLES;
	for (struct gpu_pool *p = l->pool; p; p = p->next)
		n += TABLES;
	struct gpu_message **grown = realloc(l->table_free, (size_t)n * sizeof *grown);
	l->table_free = grown ? grown : l->table_free;
	if (!pool || !grown) {
		free(pool);
		return set_error_memory(err);
	}
	if (driver_check(g->d, g->d->host_alloc(&pool->memory, TABLES * table, CU_MEMHOSTALLOC_PORTABLE |
	    CU_MEMHOSTALLOC_DEVICEMAP), err, "allocate %zu bytes of the host", TABLES * table) != blinkSuccess) {
		free(pool);
		return err->code;
	}
	pool->next = l->pool;
	l->pool = pool;
	for (int i = 0; i < TABLES; i++)
		l->table_free[l->n_table_free++] = (struct gpu_message *)((char *)pool->memory + (size_t)i * table);
	return blinkSuccess;
}

static struct gpu_message *
take_table(struct gpu *g, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	struct gpu_message *out = NULL;
	pthread_mutex_lock(&l->lock);
	if (l->n_table_free == 0)
		gpu_reap(g);
	if (l->n_table_free > 0 || gpu_messages_grow(g, err) == blinkSuccess)
		out = l->table_free[--l->n_table_free];
	pthread_mutex_unlock(&l->lock);
	return out;
}

void
gpu_table_return(struct gpu *g, struct gpu_message *messages)
{
	struct gpu_launches *l = g->launches;
	l->table_free[l->n_table_free++] = messages;
}

void
gpu_messages_close(struct gpu *g, bool forked)
{
	struct gpu_launches *l = g->launches;
	while (l->pool) {
		struct gpu_pool *next = l->pool->next;
		if (!forked)
			g->d->host_free(l->pool->memory);
		free(l->pool);
		l->pool = next;
	}
	free(l->table_free);
}

/* ---- groups ---- */

/* A group while it is launched. */
struct group {
	struct gpu *g;
	struct call *call;
	const struct gpu_target *to;
	int per_pair, distances;	/* of a class: messages of a pair and direction, peers */
	int n_left;
};

static int
distance(const struct engine *e, const struct message *m)
{
	int ahead = m->sends ? m->peer - e->rank : e->rank - m->peer;
	return (ahead + e->n_ranks) % e->n_ranks;
}

/* What both ends of a message know to be the same; 0 would not be compared. */
static uint64_t
signature_of(const struct message *m)
{
	return m->bytes * 64 + m->signature + 1;
}

static void
put(struct gpu *g, const struct message *m, struct gpu_message *out)
{
	int me = g->comm->engine.rank;
	const struct gpu_peer *peer = &g->peer[m->peer];
	enum gpu_route route = peer->local < 0 ? GPU_ROUTE_NET
	    : peer->direct || !peer->region[GPU_ROUTE_HOST] ? GPU_ROUTE_DIRECT : GPU_ROUTE_HOST;
	*out = (struct gpu_message){ .data = m->data, .bytes = m->bytes, .signature = signature_of(m),
	    .peer = m->peer, .sends = m->sends };
	out->in = gpu_channel_of(g, m->sends ? me : m->peer, m->sends ? m->peer : me, route, &out->done);
}

/* The messages of a class, by direction and peer; of a pair in their order. Returns how many there are. */
static int
collect(struct group *group, int turn, int from, struct gpu_message *out, int *n_blocks)
{
	struct gpu *g = group->g;
	const struct engine *e = &g->comm->engine;
	int n = 0;
	for (int k = 0; k < 2 * e->n_ranks; k++) {
		int peer = k / 2, i = 0, before = n;
		for (struct message *m = group->call->message; m; m = m->next) {
			if (m->peer != peer || m->sends != (k % 2 == 0) || m->bytes == 0)
				continue;
			int away = distance(e, m);
			if (i++ / group->per_pair == turn && away >= from && away < from + group->distances)
				put(g, m, &out[n++]);
		}
		*n_blocks += n > before;
	}
	return n;
}

static int
launch(struct group *group, struct gpu_message *table, int n, int n_blocks, struct blink_error *err)
{
	struct gpu *g = group->g;
	struct gpu_exchange p = { .state = g->state, .status = g->status, .n = n, .message = table };
	void *parameters[] = { &p };
	CUfunction kernel;
	if (gpu_function(g, "move", 1, &kernel, err) != blinkSuccess || gpu_order(g, group->to, err) != blinkSuccess
	    || driver_check(g->d, g->d->launch(kernel, (unsigned)n_blocks, 1, 1, (unsigned)g->threads, 1, 1, 0,
	    group->to->stream, parameters, NULL), err, "launch the kernel of messages") != blinkSuccess)
		return err->code;
	return gpu_launched(g, group->to, group->call->number, n, table, err);
}

static int
launch_class(struct group *group, int turn, int from, struct blink_error *err)
{
	int n_blocks = 0;
	struct gpu_message *table = take_table(group->g, err);
	if (!table)
		return err->code;
	int n = collect(group, turn, from, table, &n_blocks);
	group->n_left -= n;
	if (n > 0)
		return launch(group, table, n, n_blocks, err);
	pthread_mutex_lock(&group->g->launches->lock);
	gpu_table_return(group->g, table);
	pthread_mutex_unlock(&group->g->launches->lock);
	return blinkSuccess;
}

int
gpu_submit_messages(struct gpu *g, struct call *call, const struct gpu_target *to, struct blink_error *err)
{
	const struct engine *e = &g->comm->engine;
	struct group group = { .g = g, .call = call, .to = to, .per_pair = call->n_messages, .distances = e->n_ranks };
	for (const struct message *m = call->message; m; m = m->next)
		group.n_left += m->bytes > 0;
	if (call->n_messages > GPU_MESSAGES || 2 * e->n_ranks > g->blocks) {
		int most = g->blocks / 2 < GPU_MESSAGES / 2 ? g->blocks / 2 : GPU_MESSAGES / 2;
		group.distances = most > e->n_ranks ? e->n_ranks : most > 1 ? most : 1;
		group.per_pair = GPU_MESSAGES / 2 / group.distances;
	}
	for (int turn = 0; group.n_left > 0; turn++)
		for (int from = 0; from < e->n_ranks; from += group.distances)
			if (launch_class(&group, turn, from, err) != blinkSuccess)
				return err->code;
	return blinkSuccess;
}
