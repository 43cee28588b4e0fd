/* A schedule as an execution plan of MSCCL++.
 *
 * Pieces. Each segment is cut into as many equal pieces as threadblocks suffice for, at most PIECES, since one
 * threadblock does not fill a fast link. Pieces lie on the grid of segments (segments.h).
 *
 * Threadblocks. In the tree of a piece, a rank whose children send it summands has a threadblock that collects: it
 * reads them from the children's memory, adds its own, and writes the sum into its output, or scratch if it does not
 * need it. A rank that others copy from has a threadblock that forwards: it writes into their memory. At the root one
 * threadblock does both, in one operation, or two with a semaphore between them if it has too many children. All others
 * only say that they have begun, and wait for the end: of all pieces together in few threadblocks. So a leaf of a tree
 * does nothing.
 *
 *            collect                    collect and forward             forward
 *   input --> [rre] --> output ---------> [rres] --> outputs ----------> [put] --> outputs of leaves
 *               ^ inputs of leaves          ^ outputs, inputs of children
 *
 * Between servers, port channels put: summands into scratch of the parent, which adds them from there.
 *
 * Where a tree is a star whose switch copies, and adds if the collective does, the root has one operation by switch
 * channels to all ranks: glres, or gstore (NVLS, which needs GPUs from Hopper on).
 *
 * Units. All of it is in a pipeline: for each unit of the piece, a threadblock waits for those before it in the tree
 * and signals those after it. So deep trees work on many units at once. Leaves are signalled once, at the end.
 *
 * Begin and end. Nobody accesses the memory of a rank before a signal of it, and a rank ends after a signal of those
 * who have accessed its memory, as the next call may come at once. All signals of the begin come first, and in each
 * pipeline a threadblock waits only for those that are earlier in the tree: so there is no deadlock. */
#include "format/format.h"
#include "format/msccl/segments.h"
#include "format/mscclpp/mscclpp.h"
#include "format/mscclpp/packets.h"

#include "base/array.h"
#include "base/limits.h"
#include "mscclpp/mscclpp.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

enum { PIECES = 4, EASY_BLOCKS = 32 };

static const char *
name_of(const struct writer *w)
{
	return w->sched->topo->name;
}

/* ---- trees ---- */

/* Where a rank puts what it makes of the piece. */
static Status
make_place(struct writer *w, int p, int r)
{
	struct node *node = writer_node(w, p, r);
	int s = p / w->pieces, *scratch = &w->plan->gpu[r].chunks[MSCCLPP_SCRATCH];
	Extent extent;
	if (node->made)
		return OK;
	node->made = true;
	TRY(sched_segment_extent(w->ctx, w->sched, &w->sched->segment[s], &extent));
	node->buffer = segment_serves(w->sched, s, r) ? MSCCLPP_OUTPUT : MSCCLPP_SCRATCH;
	node->place = ((int)extent.recv_block * w->block_chunks + w->offset[s]) * w->pieces
	    + p % w->pieces * w->count[s];
	if (node->buffer == MSCCLPP_OUTPUT)
		return OK;
	node->place = *scratch;
	*scratch += w->count[s];
	if (*scratch > LIMIT_MSCCL_CHUNKS)
		writer_full(w, r, "chunks of scratch");
	return OK;
}

/* Does the first link of the hop come from a switch that copies; or the last lead to one that adds? */
static bool
is_shared(const struct writer *w, const Edge *e, bool up)
{
	const Link *link = &w->sched->topo->link[e->link[up ? e->n_links - 1 : 0]];
	int vertex = up ? link->to : link->from;
	const Vertex *v = &w->sched->topo->vertex[vertex];
	return vertex >= w->n && (up ? v->reduce : v->multicast);
}

/* The root of a star over all ranks of one server, all but one of whose hops share a link, up (if it adds) and down;
 * -1: it is none. */
static int
star_root(const struct writer *w, const Tree *tree)
{
	bool adds = collective_reduces(w->sched->coll);
	int root = tree->n_down > 0 ? tree->down[0].src : -1, shared = 0;
	if (w->n < 3 || tree->n_down != w->n - 1 || tree->n_up != (adds ? w->n - 1 : 0))
		return -1;
	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		bool up = i < tree->n_up;
		const Edge *e = tree_hop(tree, i);
		if ((up ? e->dst : e->src) != root || writer_is_port(w, e->src, e->dst))
			return -1;
		shared += is_shared(w, e, up);
	}
	return shared == (tree->n_down - 1) * (adds ? 2 : 1) ? root : -1;
}

static Status
list_hops(struct writer *w, int p, bool *has)
{
	int s = p / w->pieces, holder = segment_holder(w->sched, s);
	const Tree *tree = &w->sched->segment[s].tree;
	Extent extent;
	TRY(sched_segment_extent(w->ctx, w->sched, &w->sched->segment[s], &extent));
	for (int r = 0; r < w->n; r++) {
		has[r] = holder == EVERY_RANK || holder == r;
		*writer_node(w, p, r) = (struct node){ .holds = has[r], .from = -1, .parent = -1, .collect = -1,
			.forward = -1, .input = ((int)extent.send_block * w->block_chunks + w->offset[s]) * w->pieces
			    + p % w->pieces * w->count[s] };
	}
	w->n_hops[p] = 0;
	TRY(TEMP(w->ctx, w->hop[p], tree->n_up + tree->n_down));
	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		bool up = i < tree->n_up;
		const Edge *e = tree_hop(tree, i);
		if (!hop_moves(w->sched, e, up, has))
			continue;
		has[e->dst] = true;
		struct hop *hop = &w->hop[p][w->n_hops[p]++];
		*hop = (struct hop){ e->src, e->dst, up && collective_reduces(w->sched->coll),
			writer_is_port(w, e->src, e->dst) };
		if (hop->reduces)
			writer_node(w, p, e->src)->parent = e->dst;
		else
			writer_node(w, p, e->dst)->from = e->src;
		TRY(make_place(w, p, e->dst));
	}
	w->star[p] = w->sched->segment[s].n_to == 0 && !w->packets ? star_root(w, tree) : -1;
	return w->star[p] < 0 ? OK : make_place(w, p, w->star[p]);
}

/* ---- threadblocks ---- */

/* Two threadblocks do one after the other what is too much for one. */
static Status
add_semaphore(struct writer *w, struct work *first, struct work *second)
{
	MscclppGpu *gpu = &w->plan->gpu[first->rank];
	TRY(GROW_TEMP(w->ctx, gpu->semaphore, gpu->n_semaphores, w->semaphore_room[first->rank]));
	gpu->semaphore[gpu->n_semaphores] = 0;
	first->release = second->acquire = gpu->n_semaphores++;
	return OK;
}

/* Who collects, and who forwards. A leaf whose parent is in another server puts. */
static Status
list_work(struct writer *w, int p)
{
	for (int r = 0; r < w->n; r++) {
		struct node *node = writer_node(w, p, r);
		bool puts = node->parent >= 0 && writer_is_port(w, r, node->parent);
		int collects = puts, forwards = 0;
		for (int i = 0; i < w->n_hops[p]; i++) {
			collects += w->hop[p][i].reduces && w->hop[p][i].dst == r;
			forwards += !w->hop[p][i].reduces && w->hop[p][i].src == r;
		}
		if (collects)
			TRY(writer_add_work(w, r, p, &node->collect));
		if (w->star[p] == r && collects)
			node->forward = node->collect;
		else if (forwards && (!collects || node->from >= 0 || collects + forwards > MSCCLPP_MAX_CHANNELS))
			TRY(writer_add_work(w, r, p, &node->forward));
		else if (forwards)
			node->forward = node->collect;
		if (collects)
			w->work[node->collect].collects = true;
		if (forwards)
			w->work[node->forward].forwards = true;
		if (collects && forwards && node->from < 0 && node->forward != node->collect)
			TRY(add_semaphore(w, &w->work[node->collect], &w->work[node->forward]));
	}
	return OK;
}

/* ---- copies within a rank ---- */

/* Of ranks that need what they hold: a threadblock for as many operations as it has room for. */
static Status
copy_here(struct writer *w, int rank, int from, int to, int size)
{
	MscclppGpu *gpu = &w->plan->gpu[rank];
	struct work *work = NULL;
	MscclppOp *op;
	for (int i = 0; i < w->n_work; i++)
		if (w->work[i].rank == rank && w->work[i].piece == -2
		    && w->work[i].block->n_ops < MSCCLPP_MAX_OPS)
			work = &w->work[i];
	if (!work) {
		int id;
		TRY(writer_add_work(w, rank, -2, &id));
		work = &w->work[id];
	}
	TRY(writer_add_op(w, work, MSCCLPP_COPY, &op));
	TRY(TEMP(w->ctx, op->src, 1));
	TRY(TEMP(w->ctx, op->dst, 1));
	op->n_src = op->n_dst = 1;
	*op->src = (MscclppRange){ .buffer = MSCCLPP_INPUT, .index = from, .size = size };
	*op->dst = (MscclppRange){ .buffer = MSCCLPP_OUTPUT, .index = to, .size = size };
	gpu->block[work->block->id] = *work->block;
	return OK;
}

/* Blocks that move nowhere have no tree, in a gather, scatter or alltoall. */
static Status
copy_own(struct writer *w)
{
	Collective coll = w->sched->coll;
	int k = w->block_chunks * w->pieces;
	for (int s = 0; s < w->sched->n_segments && !w->in_place; s++) {
		int holder = segment_holder(w->sched, s);
		Extent extent;
		if (holder == EVERY_RANK || w->star[s * w->pieces] >= 0 || !segment_serves(w->sched, s, holder))
			continue;
		TRY(sched_segment_extent(w->ctx, w->sched, &w->sched->segment[s], &extent));
		TRY(copy_here(w, holder, ((int)extent.send_block * w->block_chunks + w->offset[s]) * w->pieces,
		    ((int)extent.recv_block * w->block_chunks + w->offset[s]) * w->pieces,
		    w->count[s] * w->pieces));
	}
	for (int r = 0; r < w->n && (coll == GATHER || coll == SCATTER || coll == ALLTOALL); r++)
		if (coll == ALLTOALL || r == w->sched->root)
			TRY(copy_here(w, r, coll == GATHER ? 0 : r * k, coll == SCATTER ? 0 : r * k, k));
	return OK;
}

/* ---- the plan ---- */

/* Switch channels are made by all ranks together: each has those of all inputs, and of all outputs. */
static Status
add_switches(struct writer *w)
{
	for (int g = 0; g < w->n && w->has_stars; g++) {
		MscclppGpu *gpu = &w->plan->gpu[g];
		gpu->n_switches = MSCCLPP_OUTPUT + 1;
		TRY(TEMP(w->ctx, gpu->multicast, gpu->n_switches));
		for (int b = MSCCLPP_INPUT; b <= MSCCLPP_OUTPUT; b++) {
			gpu->multicast[b] = (MscclppSwitch){ .buffer = b, .n_ranks = w->n };
			TRY(TEMP(w->ctx, gpu->multicast[b].rank, w->n));
			for (int r = 0; r < w->n; r++)
				gpu->multicast[b].rank[r] = r;
		}
	}
	return OK;
}

/* The largest message: offsets in buffers have 32 bits. */
static void
set_sizes(struct writer *w)
{
	Mscclpp *plan = w->plan;
	Collective coll = w->sched->coll;
	int k = w->block_chunks * w->pieces, most = k;
	for (int g = 0; g < w->n; g++)
		for (int b = 0; b < N_MSCCLPP_BUFFERS; b++) {
			if (b != MSCCLPP_SCRATCH)
				plan->gpu[g].chunks[b] = k * (mscclpp_has_every_block(coll, b) ? w->n : 1);
			most = plan->gpu[g].chunks[b] > most ? plan->gpu[g].chunks[b] : most;
		}
	int64_t chunk = (int64_t)UINT32_MAX / (w->packets ? 4 : 1) / most / ALIGNMENT * ALIGNMENT;
	plan->max_bytes = (uint64_t)(chunk * plan->gpu[0].chunks[coll == ALLGATHER ? MSCCLPP_OUTPUT : MSCCLPP_INPUT]);
}

static Status
add_pipelines(struct writer *w)
{
	for (int p = 0; p < w->n_pieces; p++)
		TRY(list_work(w, p));
	for (int p = 0; p < w->n_pieces && !w->too_many; p++)
		TRY(writer_add_hops(w, p));
	for (int i = 0; i < w->n_work && !w->too_many; i++)
		TRY(writer_add_ops(w, &w->work[i]));
	return OK;
}

/* All of it, with a number of pieces for each segment. */
static Status
build(struct writer *w, int pieces)
{
	bool *has;
	w->pieces = pieces;
	w->n_pieces = w->sched->n_segments * pieces;
	w->n_work = w->work_room = 0;
	w->too_many = NULL;
	w->has_stars = false;
	TRY(TEMP(w->ctx, has, w->n));
	TRY(TEMP(w->ctx, w->node, (size_t)w->n_pieces * (size_t)w->n));
	TRY(TEMP(w->ctx, w->hop, w->n_pieces));
	TRY(TEMP(w->ctx, w->n_hops, w->n_pieces));
	TRY(TEMP(w->ctx, w->star, w->n_pieces));
	TRY(TEMP(w->ctx, w->idle, w->n));
	TRY(TEMP(w->ctx, w->block_room, w->n));
	TRY(TEMP(w->ctx, w->remote_room, w->n));
	TRY(TEMP(w->ctx, w->semaphore_room, w->n));
	TRY(TEMP(w->ctx, w->peer_room, 2 * w->n));
	for (int g = 0; g < w->n; g++) {
		w->plan->gpu[g] = (MscclppGpu){ .id = g };
		w->idle[g] = -1;
	}
	for (int p = 0; p < w->n_pieces; p++)
		TRY(list_hops(w, p, has));
	TRY(w->packets ? writer_add_packets(w) : add_pipelines(w));
	if (!w->too_many)
		TRY(copy_own(w));
	TRY(add_switches(w));
	set_sizes(w);
	return OK;
}

static int
most_blocks(const struct writer *w)
{
	int most = 0;
	for (int g = 0; g < w->n; g++)
		most = w->plan->gpu[g].n_blocks > most ? w->plan->gpu[g].n_blocks : most;
	return most;
}

static Status
build_any(struct writer *w)
{
	int chunks = w->block_chunks * (collective_has_blocks(w->sched->coll) ? w->n : 1);
	for (int pieces = w->packets ? 1 : PIECES; pieces > 1; pieces /= 2) {
		if (chunks * pieces > LIMIT_MSCCL_CHUNKS)
			continue;
		TRY(build(w, pieces));
		if (!w->too_many && most_blocks(w) <= EASY_BLOCKS)
			return OK;
	}
	TRY(build(w, 1));
	return w->too_many ? fail(w->ctx, LIMIT, "%s: rank %d needs more %s than MSCCL++ has: want fewer trees, by "
	    "--max-trees, or trees with fewer children of a rank, by --algorithm ring", name_of(w), w->at_rank,
	    w->too_many) : OK;
}

/* A rank that others relay for would write over what it has not sent. */
static Status
check_in_place(struct writer *w)
{
	Collective coll = w->sched->coll;
	if (w->in_place && (coll == GATHER || coll == SCATTER || coll == ALLTOALL))
		return fail(w->ctx, INFEASIBLE, "%s: %s in place: want it out of place, without --in-place",
		    name_of(w), collective_name(coll));
	return OK;
}

static Status
start(struct writer *w)
{
	Ctx *ctx = w->ctx;
	const Schedule *sched = w->sched;
	char name[64];
	segments_plan_name(sched, name);
	if (sched->n_parts > 1)
		return fail(ctx, INFEASIBLE, "%s: parts over several link classes: plans of MSCCL++ have no parts, as "
		    "their sizes depend on the message", name_of(w));
	if ((int64_t)sched->n_segments * w->n > LIMIT_MSCCL_CELLS || w->n > LIMIT_MSCCL_GPUS)
		return fail(ctx, LIMIT, "%s: %d trees over %d ranks: MSCCL++ has no room for their operations",
		    name_of(w), sched->n_segments, w->n);
	TRY(TEMP(ctx, w->plan, 1));
	TRY(TEMP(ctx, w->plan->gpu, w->n));
	TRY(TEMP(ctx, w->offset, sched->n_segments));
	TRY(TEMP(ctx, w->count, sched->n_segments));
	*w->plan = (Mscclpp){ .name = arena_text(&ctx->run, name, strlen(name)), .coll = sched->coll,
		.coll_name = collective_name(sched->coll), .protocol = w->packets ? "LL" : "Simple",
		.in_place = w->in_place, .double_scratch = w->packets, .n_threads = 1024,
		.alignment = ALIGNMENT, .n_gpus = w->n, .gpu = w->plan->gpu };
	return w->plan->name ? OK : fail_memory(ctx);
}

/* What we write is checked as if another program had written it. In place, who adds for several others at once may
 * write over its own input, which some of them have not read. */
static Status
convert(struct writer *w)
{
	RuleFindings found;
	TRY(start(w));
	TRY(check_in_place(w));
	if (w->packets)
		TRY(writer_check_packets(w));
	TRY(segments_grid(w->ctx, w->sched, LIMIT_MSCCL_CHUNKS, "as offsets of chunks have 16 bits", &w->block_chunks,
	    w->offset, w->count));
	TRY(build_any(w));
	Status status = mscclpp_check(w->ctx, name_of(w), w->plan, &found);
	if (status == UNVERIFIED && w->in_place) {
		w->ctx->error.status = OK;
		return fail(w->ctx, INFEASIBLE, "%s: in place, a rank would write over its input before all have read "
		    "it: want another --algorithm, or none of --in-place", name_of(w));
	}
	return status == BAD_INPUT || status == UNVERIFIED ? INTERNAL : status;
}

Status
mscclpp_from_schedule(Ctx *ctx, const Schedule *sched, bool packets, bool in_place, Mscclpp **out)
{
	struct writer w = { .ctx = ctx, .sched = sched, .n = sched->topo->n_ranks, .packets = packets,
		.in_place = in_place };
	TRY(convert(&w));
	*out = w.plan;
	return OK;
}

static Status
write_plan(Ctx *ctx, const Schedule *sched, const FormatInput *in, bool packets, Text *out)
{
	Mscclpp *plan;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = mscclpp_from_schedule(ctx, sched, packets, in->in_place, &plan);
	if (status == OK)
		mscclpp_write(plan, out);
	arena_release(&ctx->scratch, mark);
	return status == OK && out->failed ? fail_memory(ctx) : status;
}

static Status
note_plan(Ctx *ctx, const Schedule *sched, const FormatInput *in, bool packets, Text *out)
{
	Mscclpp *plan;
	int most = 0;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = mscclpp_from_schedule(ctx, sched, packets, in->in_place, &plan);
	for (int g = 0; status == OK && g < plan->n_gpus; g++)
		most = plan->gpu[g].n_blocks > most ? plan->gpu[g].n_blocks : most;
	if (status == OK)
		text_printf(out, "mscclpp     %d threadblocks of a GPU at most; for inputs of a multiple of %d bytes, "
		    "messages up to %llu\n", most, plan->gpu[0].chunks[MSCCLPP_INPUT] * plan->alignment,
		    (unsigned long long)plan->max_bytes);
	arena_release(&ctx->scratch, mark);
	return status == OK && out->failed ? fail_memory(ctx) : status;
}

Status
sched_write_mscclpp(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	return write_plan(ctx, sched, in, false, out);
}

Status
sched_note_mscclpp(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	return note_plan(ctx, sched, in, false, out);
}

Status
sched_write_mscclpp_packets(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	return write_plan(ctx, sched, in, true, out);
}

Status
sched_note_mscclpp_packets(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	return note_plan(ctx, sched, in, true, out);
}
