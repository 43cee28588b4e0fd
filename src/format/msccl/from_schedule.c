/* A schedule as an algorithm of MSCCL.
 *
 * Chunks. The executors cut the message into chunks of equal size, so segments lie on a common grid (segments.h).
 *
 * Steps. Each hop of a tree is a step that sends, at one end, and one that receives, or receives and reduces, at the
 * other. Leaves send from the input; sums and what a rank needs lie in the output, all else in scratch of its own. A
 * step waits for the one that made what it sends, or the sum that it adds to.
 *
 * Order. A hop happens at time 1 + the latest of the hops that it needs, and all threadblocks have their steps in the
 * order of time, then of trees. Everything that a step waits for, also the free slot of a connection, comes earlier in
 * this one order. So there is no deadlock, even with one slot.
 *
 * Channels. A threadblock does its steps one after the other, for each slice of the message anew: one that serves a
 * tree early and another late waits in between. So each tree has its own channel for each direction as long as no GPU
 * needs more threadblocks than RCCL has; else several trees share a channel, and their hops between two GPUs a
 * threadblock. */
#include "format/format.h"
#include "format/msccl/msccl.h"
#include "format/msccl/segments.h"

#include "base/array.h"
#include "base/limits.h"
#include "msccl/msccl.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of RCCL 2.27.7, whose limits are the narrowest. */
enum { CHANNELS = 32, BLOCKS = 64, STEPS = 64, COUNT = 71, ELEMENTS = 4096 };
#define MAX_BYTES (INT64_C(1) << 40)

/* Where the value of a segment lies at a rank, and the step that put it there. */
struct value {
	bool there;
	MscclBuffer buffer;
	int offset;
	int block, step;	/* -1: it was there from the beginning */
};

struct hop {
	int time, segment, index;	/* index: among all edges, up before down */
	bool up;
	const Edge *edge;
};

struct writer {
	Ctx *ctx;
	const Schedule *sched;
	int n, block_chunks, n_channels, n_hops;
	struct hop *hop;
	struct value *value;	/* of each segment and rank */
	int *offset, *count;	/* of each segment: chunks of its block */
	Msccl *algo;
	int *block_room;	/* of each GPU: room for threadblocks */
	int **step_room;	/* of each GPU, of each threadblock: room for steps */
};

static const char *
name_of(const struct writer *w)
{
	return w->sched->topo->name;
}

/* ---- the order ---- */

static int
by_time(const void *a, const void *b)
{
	const struct hop *x = a, *y = b;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->segment != y->segment ? x->segment - y->segment : x->index - y->index;
}

static Status
list_hops(struct writer *w, int s, int *time, bool *has)
{
	const Tree *tree = &w->sched->segment[s].tree;
	int holder = segment_holder(w->sched, s);
	for (int r = 0; r < w->n; r++) {
		time[r] = 0;
		has[r] = holder == EVERY_RANK || holder == r;
	}
	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		bool up = i < tree->n_up;
		const Edge *e = tree_hop(tree, i);
		if (!hop_moves(w->sched, e, up, has))
			continue;
		int after = up && time[e->dst] > time[e->src] ? time[e->dst] : time[e->src];
		time[e->dst] = after + 1;
		has[e->dst] = true;
		w->hop[w->n_hops++] = (struct hop){ after + 1, s, i, up, e };
	}
	return OK;
}

static Status
order_hops(struct writer *w)
{
	int n = 0, *time;
	bool *has;
	for (int s = 0; s < w->sched->n_segments; s++)
		n += w->sched->segment[s].tree.n_up + w->sched->segment[s].tree.n_down;
	TRY(TEMP(w->ctx, w->hop, n));
	TRY(TEMP(w->ctx, time, w->n));
	TRY(TEMP(w->ctx, has, w->n));
	for (int s = 0; s < w->sched->n_segments; s++)
		TRY(list_hops(w, s, time, has));
	if (w->n_hops > 0)
		qsort(w->hop, (size_t)w->n_hops, sizeof *w->hop, by_time);
	return OK;
}

/* ---- threadblocks and steps ---- */

/* The one of a GPU for a peer and channel; both peers -1: the one that copies within the GPU. */
static Status
get_block(struct writer *w, int g, int send, int recv, int channel, MscclBlock **out)
{
	MscclGpu *gpu = &w->algo->gpu[g];
	for (int t = 0; t < gpu->n_blocks; t++) {
		MscclBlock *b = &gpu->block[t];
		if (b->send == send && b->recv == recv && b->channel == channel) {
			*out = b;
			return OK;
		}
	}
	TRY(GROW_TEMP(w->ctx, gpu->block, gpu->n_blocks, w->block_room[g]));
	if (!w->step_room[g])
		TRY(TEMP(w->ctx, w->step_room[g], BLOCKS + 1));
	*out = &gpu->block[gpu->n_blocks];
	**out = (MscclBlock){ .id = gpu->n_blocks++, .send = send, .recv = recv, .channel = channel };
	return gpu->n_blocks <= BLOCKS ? OK : LIMIT;
}

/* What is to be done with `count` chunks, in pieces that a step may have. The last step becomes that of *made. */
static Status
add_steps(struct writer *w, int g, MscclBlock *b, MscclStep step, int count, struct value *made)
{
	for (int done = 0; done < count; done += step.count) {
		TRY(GROW_TEMP(w->ctx, b->step, b->n_steps, w->step_room[g][b->id]));
		step.count = count - done < COUNT ? count - done : COUNT;
		step.number = b->n_steps;
		b->step[b->n_steps++] = step;
		step.src_offset += step.count;
		step.dst_offset += step.count;
		step.dep_block = step.dep_step = -1;
	}
	if (made) {
		made->block = b->id;
		made->step = b->n_steps - 1;
	}
	return OK;
}

/* Before a step of threadblock b: what made the value. */
static void
wait_for(struct writer *w, int g, const MscclBlock *b, const struct value *value, MscclStep *step)
{
	step->dep_block = step->dep_step = -1;
	if (value->block < 0 || value->block == b->id)
		return;
	step->dep_block = value->block;
	step->dep_step = value->step;
	w->algo->gpu[g].block[value->block].step[value->step].has_dep = true;
}

/* Where a rank puts what it makes of the segment. */
static Status
make_place(struct writer *w, int s, int r, struct value *out)
{
	Extent extent;
	int *scratch = &w->algo->gpu[r].chunks[MSCCL_SCRATCH];
	TRY(sched_segment_extent(w->ctx, w->sched, &w->sched->segment[s], &extent));
	*out = (struct value){ .there = true, .buffer = MSCCL_OUTPUT, .block = -1, .step = -1,
		.offset = (int)extent.recv_block * w->block_chunks + w->offset[s] };
	if (segment_serves(w->sched, s, r))
		return OK;
	out->buffer = MSCCL_SCRATCH;
	out->offset = *scratch;
	*scratch += w->count[s];
	return *scratch <= LIMIT_MSCCL_CHUNKS ? OK : fail(w->ctx, LIMIT, "%s: rank %d needs %d chunks of scratch: want "
	    "at most %d, as offsets in MSCCL XML have 16 bits", name_of(w), r, *scratch, LIMIT_MSCCL_CHUNKS);
}

static Status
add_hop(struct writer *w, const struct hop *hop)
{
	int s = hop->segment, src = hop->edge->src, dst = hop->edge->dst, channel = (2 * s + !hop->up) % w->n_channels;
	struct value *from = &w->value[s * w->n + src], *to = &w->value[s * w->n + dst], was = *to;
	bool reduces = hop->up && collective_reduces(w->sched->coll);
	MscclBlock *sender, *receiver;
	TRY(get_block(w, src, dst, -1, channel, &sender));
	TRY(get_block(w, dst, -1, src, channel, &receiver));
	MscclStep send = { .op = MSCCL_SEND, .src = from->buffer, .src_offset = from->offset,
		.dst = from->buffer, .dst_offset = from->offset };
	wait_for(w, src, sender, from, &send);
	TRY(add_steps(w, src, sender, send, w->count[s], NULL));
	if (!to->there || to->buffer == MSCCL_INPUT)
		TRY(make_place(w, s, dst, to));
	MscclStep take = { .op = reduces ? MSCCL_RECV_REDUCE_COPY : MSCCL_RECV, .dst = to->buffer,
		.dst_offset = to->offset, .src = reduces ? was.buffer : to->buffer,
		.src_offset = reduces ? was.offset : to->offset, .dep_block = -1, .dep_step = -1 };
	if (reduces)
		wait_for(w, dst, receiver, &was, &take);
	return add_steps(w, dst, receiver, take, w->count[s], to);
}

/* Ranks that need what they hold: from input to output. In place these are the same. */
static Status
add_copy(struct writer *w, int s, int r)
{
	struct value *from = &w->value[s * w->n + r], to;
	MscclBlock *block;
	TRY(get_block(w, r, -1, -1, 0, &block));
	TRY(make_place(w, s, r, &to));
	MscclStep copy = { .op = MSCCL_COPY, .src = from->buffer, .src_offset = from->offset, .dst = to.buffer,
		.dst_offset = to.offset, .dep_block = -1, .dep_step = -1 };
	return add_steps(w, r, block, copy, w->count[s], NULL);
}

/* What each rank holds before, in its input. */
static Status
add_inputs(struct writer *w, int s)
{
	const Segment *seg = &w->sched->segment[s];
	int holder = segment_holder(w->sched, s);
	Extent extent;
	TRY(sched_segment_extent(w->ctx, w->sched, seg, &extent));
	for (int r = 0; r < w->n; r++) {
		w->value[s * w->n + r] = (struct value){ .there = holder == EVERY_RANK || holder == r,
			.buffer = MSCCL_INPUT, .block = -1, .step = -1,
			.offset = (int)extent.send_block * w->block_chunks + w->offset[s] };
		if (holder == r && segment_serves(w->sched, s, r))
			TRY(add_copy(w, s, r));
	}
	return OK;
}

/* Blocks that move nowhere have no tree, in a gather, scatter or alltoall. */
static Status
copy_own_blocks(struct writer *w)
{
	Collective coll = w->sched->coll;
	int k = w->block_chunks;
	if (coll != GATHER && coll != SCATTER && coll != ALLTOALL)
		return OK;
	for (int r = 0; r < w->n; r++) {
		MscclBlock *block;
		if (coll != ALLTOALL && r != w->sched->root)
			continue;
		TRY(get_block(w, r, -1, -1, 0, &block));
		MscclStep copy = { .op = MSCCL_COPY, .src = MSCCL_INPUT, .dst = MSCCL_OUTPUT,
			.src_offset = coll == GATHER ? 0 : r * k, .dst_offset = coll == SCATTER ? 0 : r * k,
			.dep_block = -1, .dep_step = -1 };
		block->n_steps = 0;
		TRY(add_steps(w, r, block, copy, k, NULL));
	}
	return OK;
}

/* ---- the algorithm ---- */

/* Not where a rank still sends its input to sums of others, as in recursive doubling, while its own sum is made; and
 * not an alltoall. */
static bool
works_in_place(const Schedule *sched)
{
	bool once = true;
	for (int s = 0; s < sched->n_segments; s++)
		once &= sched->coll != ALLREDUCE || sched->segment[s].n_to == 0;
	return once && sched->coll != ALLTOALL;
}

static void
set_buffers(struct writer *w)
{
	Msccl *algo = w->algo;
	Collective coll = algo->coll;
	int n = w->n, root = w->sched->root;
	algo->chunks = w->block_chunks * (coll == ALLGATHER || coll == REDUCESCATTER || coll == ALLTOALL ? n : 1);
	for (int g = 0; g < n; g++) {
		int in = w->block_chunks, out = w->block_chunks;
		in *= coll == REDUCESCATTER || coll == ALLTOALL ? n : coll == SCATTER ? (g == root) * n : 1;
		out *= coll == ALLGATHER || coll == ALLTOALL ? n : coll == GATHER ? (g == root) * n
		    : coll == REDUCE ? g == root : 1;
		algo->gpu[g].chunks[MSCCL_INPUT] = in;
		algo->gpu[g].chunks[MSCCL_OUTPUT] = out;
	}
}

/* All of it, with a number of channels. LIMIT without an error: a GPU has too many threadblocks. */
static Status
build(struct writer *w, int n_channels)
{
	w->n_channels = w->algo->n_channels = n_channels;
	for (int g = 0; g < w->n; g++) {
		w->algo->gpu[g] = (MscclGpu){ .id = g };
		w->block_room[g] = 0;
		w->step_room[g] = NULL;
	}
	for (int s = 0; s < w->sched->n_segments; s++)
		TRY(add_inputs(w, s));
	TRY(copy_own_blocks(w));
	for (int i = 0; i < w->n_hops; i++)
		TRY(add_hop(w, &w->hop[i]));
	set_buffers(w);
	return OK;
}

static Status
check_limits(struct writer *w)
{
	for (int g = 0; g < w->n; g++) {
		const MscclGpu *gpu = &w->algo->gpu[g];
		int elements = 1 + w->n + gpu->n_blocks;
		for (int t = 0; t < gpu->n_blocks; t++) {
			elements += gpu->block[t].n_steps;
			if (gpu->block[t].n_steps > STEPS)
				return fail(w->ctx, LIMIT, "%s: rank %d has %d steps in one threadblock, with %d "
				    "channels: RCCL has at most %d; see --max-trees", name_of(w), g,
				    gpu->block[t].n_steps, w->n_channels, STEPS);
		}
		if (elements > ELEMENTS)
			return fail(w->ctx, LIMIT, "%s: rank %d would read %d elements: RCCL has room for %d",
			    name_of(w), g, elements, ELEMENTS);
	}
	return OK;
}

/* As many channels as there are trees, up and down, and fewer where threadblocks do not suffice. */
static Status
build_any(struct writer *w)
{
	int most = 2 * w->sched->n_segments < CHANNELS ? 2 * w->sched->n_segments : CHANNELS;
	for (int n_channels = most > 0 ? most : 1; n_channels > 0; n_channels--) {
		Status status = build(w, n_channels);
		if (status != LIMIT || w->ctx->error.status != OK)
			return status == OK ? check_limits(w) : status;
	}
	return fail(w->ctx, LIMIT, "%s: a rank has more than %d neighbours that it sends to or receives from: RCCL has "
	    "at most %d threadblocks", name_of(w), BLOCKS - 1, BLOCKS);
}

static Status
start(struct writer *w)
{
	Ctx *ctx = w->ctx;
	const Schedule *sched = w->sched;
	char name[64];
	segments_plan_name(sched, name);
	if (sched->n_parts > 1)
		return fail(ctx, INFEASIBLE, "%s: parts over several link classes: MSCCL XML has no parts, as their "
		    "sizes depend on the message", name_of(w));
	if ((int64_t)sched->n_segments * w->n > LIMIT_MSCCL_CELLS || w->n > LIMIT_MSCCL_GPUS)
		return fail(ctx, LIMIT, "%s: %d trees over %d ranks: RCCL has no room for their steps", name_of(w),
		    sched->n_segments, w->n);
	TRY(TEMP(ctx, w->algo, 1));
	TRY(TEMP(ctx, w->algo->gpu, w->n));
	TRY(TEMP(ctx, w->offset, sched->n_segments));
	TRY(TEMP(ctx, w->count, sched->n_segments));
	TRY(TEMP(ctx, w->value, sched->n_segments * w->n));
	TRY(TEMP(ctx, w->block_room, w->n));
	TRY(TEMP(ctx, w->step_room, w->n));
	*w->algo = (Msccl){ .name = arena_text(&ctx->run, name, strlen(name)), .protocol = "Simple",
		.coll = sched->coll, .coll_name = collective_name(sched->coll), .n_gpus = w->n, .n_listed = w->n,
		.gpu = w->algo->gpu,
		.in_place = works_in_place(sched), .out_of_place = true, .max_bytes = MAX_BYTES,
		.given = MSCCL_HAS_IN_PLACE | MSCCL_HAS_OUT_OF_PLACE | MSCCL_HAS_MIN_BYTES | MSCCL_HAS_MAX_BYTES };
	return w->algo->name ? OK : fail_memory(ctx);
}

/* What we write is checked as if another program had written it. */
static Status
convert(struct writer *w)
{
	RuleFindings found;
	TRY(start(w));
	TRY(segments_grid(w->ctx, w->sched, LIMIT_MSCCL_CHUNKS, "as offsets in MSCCL XML have 16 bits",
	    &w->block_chunks, w->offset, w->count));
	TRY(order_hops(w));
	TRY(build_any(w));
	Status status = msccl_check(w->ctx, name_of(w), w->algo, &found);
	return status == BAD_INPUT || status == UNVERIFIED ? INTERNAL : status;
}

/* Memory of *out: scratch. */
static Status
algorithm_of(Ctx *ctx, const Schedule *sched, Msccl **out)
{
	struct writer w = { .ctx = ctx, .sched = sched, .n = sched->topo->n_ranks };
	TRY(convert(&w));
	*out = w.algo;
	return OK;
}

Status
sched_write_msccl(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	(void)in;
	Msccl *algo;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = algorithm_of(ctx, sched, &algo);
	if (status == OK)
		msccl_write(algo, out);
	arena_release(&ctx->scratch, mark);
	return status == OK && out->failed ? fail_memory(ctx) : status;
}

Status
sched_note_msccl(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	(void)in;
	Msccl *algo;
	int most = 0;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = algorithm_of(ctx, sched, &algo);
	for (int g = 0; status == OK && g < algo->n_gpus; g++)
		most = algo->gpu[g].n_blocks > most ? algo->gpu[g].n_blocks : most;
	if (status == OK)
		text_printf(out, "msccl       %d channel%s, %d threadblocks of a GPU at most; for messages of a "
		    "multiple of %d elements\n", algo->n_channels, algo->n_channels == 1 ? "" : "s", most,
		    algo->chunks);
	arena_release(&ctx->scratch, mark);
	return status == OK && out->failed ? fail_memory(ctx) : status;
}
