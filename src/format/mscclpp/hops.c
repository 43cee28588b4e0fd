/* Which threadblocks reach which others, and what they read and write there, for each hop of a tree. */
#include "base/array.h"
#include "base/limits.h"
#include "format/mscclpp/writer.h"

/* ---- channels ---- */

static void
list_add(struct list *list, int type, int id)
{
	if (list->n[type] < MSCCLPP_MAX_CHANNELS)
		list->id[type][list->n[type]++] = id;
}

/* At one end: the number of the channel in its threadblock. */
static Status
add_end(struct writer *w, struct work *work, int type, int peer, int *id)
{
	MscclppGpu *gpu = &w->plan->gpu[work->rank];
	MscclppBlock *b = work->block;
	TRY(GROW_TEMP(w->ctx, gpu->peer[type], gpu->n_channels[type], w->peer_room[2 * work->rank + type]));
	gpu->peer[type][gpu->n_channels[type]] = peer;
	*id = b->n_channels[type];
	if (*id == MSCCLPP_MAX_CHANNELS)
		writer_full(w, work->rank, type == MSCCLPP_PORT ? "port channels of a threadblock"
		    : "memory channels of a threadblock");
	else
		b->channel[type][b->n_channels[type]++] = gpu->n_channels[type];
	gpu->n_channels[type]++;
	return OK;
}

static Status
connect(struct writer *w, int a, int b, int type, int *id_a, int *id_b)
{
	TRY(add_end(w, &w->work[a], type, w->work[b].rank, id_a));
	return add_end(w, &w->work[b], type, w->work[a].rank, id_b);
}

/* A rank that only begins and ends, for this threadblock of another: one channel for all that there is between them. */
static Status
connect_passive(struct writer *w, int a, int rank, int type)
{
	int id, other, *idle = &w->idle[rank];
	if (w->work[a].passive[type * w->n + rank])
		return OK;
	if (*idle < 0 || w->work[*idle].block->n_channels[type] == MSCCLPP_MAX_CHANNELS)
		TRY(writer_add_work(w, rank, -1, idle));
	TRY(connect(w, a, *idle, type, &id, &other));
	w->work[a].passive[type * w->n + rank] = id + 1;
	list_add(&w->work[a].begin_wait, type, id);
	list_add(&w->work[a].end_signal, type, id);
	list_add(&w->work[*idle].begin_signal, type, other);
	list_add(&w->work[*idle].end_wait, type, other);
	return OK;
}

static Status
add_range(struct writer *w, struct ranges *ranges, MscclppRange range, int channel)
{
	TRY(GROW_TEMP(w->ctx, ranges->range, ranges->n, ranges->room));
	TRY(GROW_TEMP(w->ctx, ranges->channel, ranges->n, ranges->channel_room));
	ranges->range[ranges->n] = range;
	ranges->channel[ranges->n++] = channel;
	return OK;
}

static Status
add_remote(struct writer *w, struct work *work, struct ranges *ranges, int type, int rank, MscclppBuffer buffer,
    int index, int channel)
{
	int id;
	TRY(writer_get_remote(w, work, type, rank, buffer, &id));
	return add_range(w, ranges, (MscclppRange){ .where = MSCCLPP_REMOTE, .id = id, .index = index,
		.size = writer_count(w, work->piece) }, channel);
}

/* ---- hops ---- */

/* The parent reads a summand from memory. The child may end when it has. */
static Status
add_read(struct writer *w, int p, const struct hop *hop)
{
	struct node *child = writer_node(w, p, hop->src);
	int parent = writer_node(w, p, hop->dst)->collect, id, other;
	bool inner = child->collect >= 0;
	if (!inner)
		TRY(connect_passive(w, parent, hop->src, MSCCLPP_MEMORY));
	TRY(add_remote(w, &w->work[parent], &w->work[parent].read, MSCCLPP_MEMORY, hop->src,
	    inner ? child->buffer : MSCCLPP_INPUT, inner ? child->place : child->input, 0));
	if (!inner)
		return OK;
	TRY(connect(w, parent, child->collect, MSCCLPP_MEMORY, &id, &other));
	list_add(&w->work[parent].unit_wait, MSCCLPP_MEMORY, id);
	list_add(&w->work[parent].end_signal, MSCCLPP_MEMORY, id);
	list_add(&w->work[child->collect].unit_signal, MSCCLPP_MEMORY, other);
	list_add(&w->work[child->collect].end_wait, MSCCLPP_MEMORY, other);
	return OK;
}

/* The child puts a summand into scratch of its parent, which has begun. */
static Status
add_port_summand(struct writer *w, int p, const struct hop *hop)
{
	int parent = writer_node(w, p, hop->dst)->collect, child = writer_node(w, p, hop->src)->collect, id, other;
	int *scratch = &w->plan->gpu[hop->dst].chunks[MSCCLPP_SCRATCH], place = *scratch;
	*scratch += writer_count(w, p);
	if (*scratch > LIMIT_MSCCL_CHUNKS)
		writer_full(w, hop->dst, "chunks of scratch");
	TRY(connect(w, parent, child, MSCCLPP_PORT, &id, &other));
	list_add(&w->work[parent].begin_signal, MSCCLPP_PORT, id);
	list_add(&w->work[parent].unit_wait, MSCCLPP_PORT, id);
	list_add(&w->work[child].begin_wait, MSCCLPP_PORT, other);
	TRY(add_range(w, &w->work[parent].add, (MscclppRange){ .buffer = MSCCLPP_SCRATCH, .index = place,
		.size = writer_count(w, p) }, 0));
	return add_remote(w, &w->work[child], &w->work[child].put_signal, MSCCLPP_PORT, hop->dst, MSCCLPP_SCRATCH,
	    place, other);
}

static Status
add_copy(struct writer *w, int p, const struct hop *hop)
{
	struct node *to = writer_node(w, p, hop->dst);
	int a = writer_node(w, p, hop->src)->forward, type = hop->port ? MSCCLPP_PORT : MSCCLPP_MEMORY, id, other;
	bool inner = to->forward >= 0;
	struct work *from = &w->work[a];
	if (!inner) {
		TRY(connect_passive(w, a, hop->dst, type));
		from = &w->work[a];
		id = from->passive[type * w->n + hop->dst] - 1;
	} else {
		TRY(connect(w, a, to->forward, type, &id, &other));
		list_add(&from->begin_wait, type, id);
		list_add(&w->work[to->forward].begin_signal, type, other);
		list_add(&w->work[to->forward].unit_wait, type, other);
		if (!hop->port)
			list_add(&from->unit_signal, type, id);
	}
	return add_remote(w, from, !hop->port ? &from->write : inner ? &from->put_signal : &from->put, type, hop->dst,
	    to->buffer, to->place, id);
}

/* All that there is between the root of a star and the others: they begin, and wait for the end. */
static Status
add_star(struct writer *w, int p)
{
	struct work *root;
	for (int r = 0; r < w->n; r++)
		if (r != w->star[p])
			TRY(connect_passive(w, writer_node(w, p, w->star[p])->forward, r, MSCCLPP_MEMORY));
	root = &w->work[writer_node(w, p, w->star[p])->forward];
	w->has_stars = true;
	for (int b = MSCCLPP_INPUT; b <= MSCCLPP_OUTPUT; b++)
		root->block->channel[MSCCLPP_SWITCH][root->block->n_channels[MSCCLPP_SWITCH]++] = b;
	return OK;
}

Status
writer_add_hops(struct writer *w, int p)
{
	if (w->star[p] >= 0)
		return add_star(w, p);
	for (int i = 0; i < w->n_hops[p]; i++) {
		const struct hop *hop = &w->hop[p][i];
		TRY(!hop->reduces ? add_copy(w, p, hop) : hop->port ? add_port_summand(w, p, hop)
		    : add_read(w, p, hop));
	}
	return OK;
}
