/* A schedule as packets, for small messages: each few bytes carry a flag, and who reads them waits for that. So nobody
 * waits for anything else, and data of a whole piece goes up and down its tree at once.
 *
 * Each hop has a place for its packets in scratch of its dst. A rank has one threadblock for the tree of a piece:
 *
 *   leaf    ppkt: its summand to the parent                  upkt: what comes down to its output
 *   inner   respkt: its sum with those of its children       rppkt: on to its children;  upkt
 *   root    respkt: the sum into its output and to its children
 *
 * That a sender is not two calls ahead of a receiver must follow from packets that it gets: so an allreduce, allgather
 * or alltoall, where all hear of all. */
#include "base/limits.h"
#include "format/mscclpp/packets.h"

#include <string.h>

Status
writer_check_packets(struct writer *w)
{
	const Schedule *sched = w->sched;
	if (sched->coll != ALLREDUCE && sched->coll != ALLGATHER && sched->coll != ALLTOALL)
		return fail(w->ctx, INFEASIBLE, "%s: a %s in packets: a rank would not hear of those that it sends to: "
		    "want an allreduce, allgather or alltoall, or --format mscclpp", sched->topo->name,
		    collective_name(sched->coll));
	for (int r = 0; r < w->n; r++)
		if (writer_is_port(w, 0, r))
			return fail(w->ctx, INFEASIBLE, "%s: packets between servers: want --format mscclpp",
			    sched->topo->name);
	for (int s = 0; s < sched->n_segments; s++)
		if (sched->segment[s].n_to > 0)
			return fail(w->ctx, INFEASIBLE, "%s: packets of sums that not all ranks need: want another "
			    "--algorithm, or --format mscclpp", sched->topo->name);
	return OK;
}

/* Ranges of a rank in the tree of a piece: packets that came, and where packets go. */
struct ends {
	int n_up, n_down;		/* from children; to children */
	MscclppRange *up, *down, to_parent, from_parent;
};

static MscclppRange
range_of(const struct writer *w, int p, MscclppBuffer buffer, int index)
{
	return (MscclppRange){ .buffer = buffer, .index = index, .size = writer_count(w, p) };
}

static Status
remote_of(struct writer *w, struct work *work, int rank, int index, MscclppRange *out)
{
	int id;
	TRY(writer_get_remote(w, work, MSCCLPP_MEMORY, rank, MSCCLPP_SCRATCH, &id));
	*out = (MscclppRange){ .where = MSCCLPP_REMOTE, .id = id, .index = index,
		.size = writer_count(w, work->piece) };
	return OK;
}

/* place: of each hop, in scratch of its dst. */
static Status
list_ends(struct writer *w, struct work *work, const int *place, struct ends *e)
{
	int p = work->piece, r = work->rank;
	*e = (struct ends){ 0 };
	TRY(TEMP(w->ctx, e->up, w->n));
	TRY(TEMP(w->ctx, e->down, w->n));
	for (int i = 0; i < w->n_hops[p]; i++) {
		const struct hop *hop = &w->hop[p][i];
		MscclppRange here = range_of(w, p, MSCCLPP_SCRATCH, place[i]), there;
		if (hop->src == r)
			TRY(remote_of(w, work, hop->dst, place[i], &there));
		if (hop->src == r && hop->reduces)
			e->to_parent = there;
		else if (hop->src == r)
			e->down[e->n_down++] = there;
		else if (hop->dst == r && hop->reduces)
			e->up[e->n_up++] = here;
		else if (hop->dst == r)
			e->from_parent = here;
	}
	return OK;
}

static Status
add(struct writer *w, struct work *work, MscclppKind kind, const MscclppRange *src, int n_src, const MscclppRange *dst,
    int n_dst)
{
	MscclppOp *op;
	TRY(writer_add_op(w, work, kind, &op));
	TRY(TEMP(w->ctx, op->src, n_src));
	TRY(TEMP(w->ctx, op->dst, n_dst));
	memcpy(op->src, src, (size_t)n_src * sizeof *src);
	memcpy(op->dst, dst, (size_t)n_dst * sizeof *dst);
	op->n_src = n_src;
	op->n_dst = n_dst;
	op->type = dst[n_dst - 1].where == MSCCLPP_REMOTE ? MSCCLPP_MEMORY : -1;
	return OK;
}

/* The same range to each of these, GROUP at a time: memory as packets, or packets on. */
static Status
add_puts(struct writer *w, struct work *work, MscclppRange at, const MscclppRange *to, int n)
{
	MscclppRange same[GROUP];
	for (int i = 0; i < GROUP; i++)
		same[i] = at;
	for (int i = 0; i < n; i += GROUP) {
		int count = n - i < GROUP ? n - i : GROUP;
		bool packets = at.buffer == MSCCLPP_SCRATCH;
		TRY(add(w, work, packets ? MSCCLPP_READ_PUT_PACKETS : MSCCLPP_PUT_PACKETS, same, packets ? 1 : count,
		    to + i, count));
	}
	return OK;
}

/* Sums with what came from children, GROUP at a time; the last goes on to the first of `to`. */
static Status
add_sums(struct writer *w, struct work *work, MscclppRange at, MscclppRange sum, const struct ends *e,
    const MscclppRange *to, int n_to, int *n_sent)
{
	MscclppRange src[1 + GROUP], dst[1 + GROUP] = { sum };
	for (int i = 0; i < e->n_up; i += GROUP) {
		int count = e->n_up - i < GROUP ? e->n_up - i : GROUP;
		bool last = i + GROUP >= e->n_up;
		*n_sent = !last ? 0 : n_to < GROUP ? n_to : GROUP;
		src[0] = i ? sum : at;
		memcpy(src + 1, e->up + i, (size_t)count * sizeof *src);
		memcpy(dst + 1, to, (size_t)*n_sent * sizeof *dst);
		TRY(writer_add_nop(w, work));
		TRY(add(w, work, *n_sent ? MSCCLPP_REDUCE_SEND_PACKETS : MSCCLPP_REDUCE_PACKETS, src, 1 + count, dst,
		    1 + *n_sent));
	}
	return OK;
}

static Status
add_rank(struct writer *w, struct work *work, const int *place)
{
	struct ends e;
	int p = work->piece, n_sent = 0;
	const struct node *node = writer_node(w, p, work->rank);
	MscclppRange at = range_of(w, p, MSCCLPP_INPUT, node->input), out = range_of(w, p, MSCCLPP_OUTPUT, node->place);
	TRY(list_ends(w, work, place, &e));
	const MscclppRange *to = node->parent >= 0 ? &e.to_parent : e.down;
	int n_to = node->parent >= 0 ? 1 : node->from < 0 ? e.n_down : 0;
	TRY(add_sums(w, work, at, out, &e, to, n_to, &n_sent));
	if (n_to > n_sent) {
		TRY(writer_add_nop(w, work));
		TRY(add_puts(w, work, e.n_up ? out : at, to + n_sent, n_to - n_sent));
	}
	if (node->from < 0)
		return OK;
	TRY(add_puts(w, work, e.from_parent, e.down, e.n_down));
	TRY(writer_add_nop(w, work));
	return node->buffer == MSCCLPP_OUTPUT ? add(w, work, MSCCLPP_UNPACK_PACKETS, &e.from_parent, 1, &out, 1) : OK;
}

static Status
add_tree(struct writer *w, int p)
{
	int *place, id;
	TRY(TEMP(w->ctx, place, w->n_hops[p]));
	for (int i = 0; i < w->n_hops[p]; i++) {
		int *scratch = &w->plan->gpu[w->hop[p][i].dst].chunks[MSCCLPP_SCRATCH];
		place[i] = *scratch;
		*scratch += writer_count(w, p);
		if (*scratch > LIMIT_MSCCL_CHUNKS)
			writer_full(w, w->hop[p][i].dst, "chunks of scratch");
	}
	for (int r = 0; r < w->n && !w->too_many; r++) {
		TRY(writer_add_work(w, r, p, &id));
		struct work *work = &w->work[id];
		TRY(add_rank(w, work, place));
		w->plan->gpu[r].block[work->block->id] = *work->block;
	}
	return OK;
}

/* Chunks of scratch of relays, which the pipelines would use, are not: all that they get is packets. All ranks have as
 * many, since who writes takes its own half of scratch for that of the other. */
Status
writer_add_packets(struct writer *w)
{
	for (int r = 0; r < w->n; r++)
		w->plan->gpu[r].chunks[MSCCLPP_SCRATCH] = 0;
	for (int p = 0; p < w->n_pieces && !w->too_many; p++)
		TRY(add_tree(w, p));
	int most = 0;
	for (int r = 0; r < w->n; r++)
		most = w->plan->gpu[r].chunks[MSCCLPP_SCRATCH] > most ? w->plan->gpu[r].chunks[MSCCLPP_SCRATCH] : most;
	for (int r = 0; r < w->n; r++)
		w->plan->gpu[r].chunks[MSCCLPP_SCRATCH] = most;
	return OK;
}
