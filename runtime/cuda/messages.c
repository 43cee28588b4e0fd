/* Messages to and from single ranks: all of a group in one kernel, if they fit.
 *
 * A kernel has a block for each peer and direction, and its list of messages lies in memory of the host, which the GPU
 * reads: nothing is uploaded. A list belongs to its launch until that has ended; in a capture, for ever.
 *
 * Groups with more messages than a list has room for, or more peers than there are blocks, take several kernels. Two
 * ranks must then not wait for each other's later ones, so messages go in an order that both know: first by their
 * number among those of the same pair and direction, a few at a time, then by the distance between the ranks. Of a
 * class of these, all ranks' messages match, and of several classes, all ranks finish the same one first. */
#include "cuda/calls.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

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
distance(const struct rank_state *self, const struct message *m)
{
	int ahead = m->sends ? m->peer - self->rank : self->rank - m->peer;
	return (ahead + self->n_ranks) % self->n_ranks;
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
	int me = g->self->rank;
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
	const struct rank_state *self = g->self;
	int n = 0;
	for (int k = 0; k < 2 * self->n_ranks; k++) {
		int peer = k / 2, i = 0, before = n;
		for (struct message *m = group->call->message; m; m = m->next) {
			if (m->peer != peer || m->sends != (k % 2 == 0) || m->bytes == 0)
				continue;
			int away = distance(self, m);
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
	const struct rank_state *self = g->self;
	struct group group = { .g = g, .call = call, .to = to, .per_pair = call->n_messages,
	    .distances = self->n_ranks };
	for (const struct message *m = call->message; m; m = m->next)
		group.n_left += m->bytes > 0;
	if (call->n_messages > GPU_MESSAGES || 2 * self->n_ranks > g->blocks) {
		int most = g->blocks / 2 < GPU_MESSAGES / 2 ? g->blocks / 2 : GPU_MESSAGES / 2;
		group.distances = most > self->n_ranks ? self->n_ranks : most > 1 ? most : 1;
		group.per_pair = GPU_MESSAGES / 2 / group.distances;
	}
	for (int turn = 0; group.n_left > 0; turn++)
		for (int from = 0; from < self->n_ranks; from += group.distances)
			if (launch_class(&group, turn, from, err) != blinkSuccess)
				return err->code;
	return blinkSuccess;
}
