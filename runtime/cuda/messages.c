/* Messages to and from single ranks: all of a group in one kernel, if they fit.
 *
 * A message is cut into strips, which go through as many channels of its pair; the strips of a channel in one
 * direction are a queue. A kernel has a block for each queue, as long as there are enough, or blocks take turns with
 * theirs. Its messages and queues are on a sheet (flights.c), which belongs to the launch until that has ended.
 *
 * Groups with more messages or queues than a kernel has room for take several. Two ranks must then not wait for each
 * other's later ones, so messages go in an order that both know: first by their number among those of the same pair
 * and direction, a few at a time, then by the distance between the ranks. Of a class of these, all ranks' messages
 * match, and of several classes, all ranks finish the same one first. A rank whose messages fit into one kernel has
 * all of them under way at once, and waits for no class. */
#include "cuda/calls.h"
#include "cuda/sizes.h"
#include "support/debug.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

/* A group while it is launched. */
struct group {
	struct gpu *g;
	struct call *call;
	const struct gpu_target *to;
	int per_pair, distances;	/* of a class: messages of a pair and direction, peers */
	int n_left;
};

/* What both ends of a message know to be the same; 0 would not be compared. */
static uint64_t
signature_of(const struct message *m)
{
	return m->bytes * 64 + m->signature + 1;
}

static struct gpu_message_sizes
sizes_of(const struct gpu *g, const struct message *m)
{
	struct gpu_message_sizes sizes;
	gpu_message_sizes_choose((int64_t)m->bytes, g->layout.channels, (int64_t)g->layout.slot_bytes, &sizes);
	return sizes;
}

static void
put(struct gpu *g, const struct message *m, struct gpu_message *out)
{
	int me = g->self->rank;
	const struct gpu_peer *peer = &g->peer[m->peer];
	enum gpu_route route = peer->local < 0 ? GPU_ROUTE_NET
	    : peer->direct || !peer->region[GPU_ROUTE_HOST] ? GPU_ROUTE_DIRECT : GPU_ROUTE_HOST;
	struct gpu_message_sizes sizes = sizes_of(g, m);
	*out = (struct gpu_message){ .data = m->data, .bytes = m->bytes, .strip = (uint64_t)sizes.strip,
	    .chunk = (uint64_t)sizes.chunk, .signature = signature_of(m), .peer = m->peer, .sends = m->sends };
	gpu_channels_of(g, m->sends ? me : m->peer, m->sends ? m->peer : me, route, &out->channels);
}

/* Those of a class between this rank and a peer in one direction, in their order, from number n of the table on.
 * Returns how many there are then. channels: what they take. */
static int
collect_pair(struct group *group, int peer, bool sends, int turn, struct gpu_message *out, int n, uint8_t *channels)
{
	int i = 0;
	*channels = 0;
	for (const struct message *m = group->call->message; m; m = m->next) {
		if (m->peer != peer || m->sends != sends || m->bytes == 0 || i++ / group->per_pair != turn)
			continue;
		int needs = sizes_of(group->g, m).channels;
		*channels = needs > *channels ? (uint8_t)needs : *channels;
		put(group->g, m, &out[n++]);
	}
	return n;
}

/* The messages of a class: how many there are, and their queues. A block has queues of one peer, or of few, so that
 * each link has blocks of its own at any time, as in collectives (kernels/strips.h), and as much comes into each
 * rank. */
static int
collect(struct group *group, int turn, int from, struct gpu_messages *out, int *n_queues)
{
	uint16_t first[2 * GPU_RANKS + 1] = { 0 };
	uint8_t channels[2 * GPU_RANKS];
	int rank = group->g->self->rank, ranks = group->g->self->n_ranks, n = 0, queues = 0, number = 0;
	for (int away = from; away < from + group->distances && away < ranks; away++)
		for (int sends = 0; sends < 2; sends++) {
			int end = collect_pair(group, (rank + (sends ? away : ranks - away)) % ranks, sends, turn,
			    out->message, first[n], &channels[n]);
			queues += channels[n];
			first[++n] = (uint16_t)end;
		}
	int blocks = queues < group->g->blocks ? queues : group->g->blocks;
	for (int i = 0; i < n; i += 2)
		for (int c = 0; c < 2 * GPU_CHANNELS; c++) {
			int k = i + c % 2;
			if (c / 2 < channels[k])
				out->queue[gpu_queue_place(number++, queues, blocks)] = (struct gpu_queue){
				    .first = first[k], .end = first[k + 1], .channel = (uint16_t)(c / 2) };
		}
	*n_queues = queues;
	return first[n];
}

static int
launch(struct group *group, struct gpu_sheet *sheet, int n, int n_queues, struct blink_error *err)
{
	struct gpu *g = group->g;
	struct gpu_exchange p = { .state = g->state, .status = g->status, .messages = sheet->gpu,
	    .slot_bytes = g->layout.slot_bytes, .n_queues = n_queues };
	unsigned blocks = (unsigned)(n_queues < g->blocks ? n_queues : g->blocks);
	void *parameters[] = { &p };
	CUfunction kernel;
	if (gpu_sheet_put(g, sheet, err) != blinkSuccess
	    || gpu_function(g, "move", 1, &kernel, err) != blinkSuccess || gpu_order(g, group->to, err) != blinkSuccess
	    || driver_check(g->d, g->d->launch(kernel, blocks, 1, 1, (unsigned)g->threads, 1, 1, 0, group->to->stream,
	    parameters, NULL), err, "launch the kernel of messages") != blinkSuccess)
		return err->code;
	debug_say(DEBUG_TRACE, g->self->rank, "%d messages: %u blocks, %d queues", n, blocks, n_queues);
	return gpu_launched(g, group->to, group->call->number, n, sheet, err);
}

static int
launch_class(struct group *group, int turn, int from, struct blink_error *err)
{
	int n_queues = 0;
	struct gpu_sheet *sheet = gpu_sheet_take(group->g, group->to->capturing, err);
	if (!sheet)
		return err->code;
	int n = collect(group, turn, from, sheet->host, &n_queues);
	group->n_left -= n;
	if (n > 0)
		return launch(group, sheet, n, n_queues, err);
	gpu_sheet_return(group->g, sheet);
	return blinkSuccess;
}

/* Peers of a class, so that its messages and queues have room whatever their lengths. */
static int
distances_of(const struct gpu *g)
{
	int queues = g->blocks * GPU_QUEUES_OF_BLOCK / g->layout.channels;
	int most = (queues < GPU_MESSAGES ? queues : GPU_MESSAGES) / 2;
	return most < g->self->n_ranks ? most : g->self->n_ranks;
}

int
gpu_submit_messages(struct gpu *g, struct call *call, const struct gpu_target *to, struct blink_error *err)
{
	const struct rank_state *self = g->self;
	struct group group = { .g = g, .call = call, .to = to, .per_pair = call->n_messages,
	    .distances = self->n_ranks };
	int queues = 0;			/* or more */
	for (const struct message *m = call->message; m; m = m->next) {
		group.n_left += m->bytes > 0;
		queues += m->bytes > 0 ? sizes_of(g, m).channels : 0;
	}
	if (group.n_left > GPU_MESSAGES || queues > GPU_QUEUES_OF_BLOCK * g->blocks) {
		group.distances = distances_of(g);
		group.per_pair = GPU_MESSAGES / 2 / group.distances;
	}
	for (int turn = 0; group.n_left > 0; turn++)
		for (int from = 0; from < self->n_ranks; from += group.distances)
			if (launch_class(&group, turn, from, err) != blinkSuccess)
				return err->code;
	return blinkSuccess;
}
