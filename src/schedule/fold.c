/* From a list of all trees to representatives: those that would be are chosen by their places, and their images
 * compared with the list. */
#include "schedule/images.h"

static bool
same_segment(const Segment *a, const Segment *b)
{
	return frac_cmp(a->offset, b->offset) == 0 && frac_cmp(a->length, b->length) == 0
	    && a->tree.root == b->tree.root && a->tree.n_down == b->tree.n_down && a->tree.n_up == b->tree.n_up
	    && tree_same_edges(a->tree.down, b->tree.down, a->tree.n_down)
	    && tree_same_edges(a->tree.up, b->tree.up, a->tree.n_up);
}

/* Which trees would be representatives: those of the blocks that stand for their orbits, and of blocks that stay each
 * first one of as many as there are images. */
static Status
choose_representatives(Ctx *ctx, const RankOrbits *o, const Schedule *in, Schedule *out)
{
	int64_t before = -1;
	TRY(NEW(ctx, out->segment, in->n_segments));
	out->n_segments = 0;
	for (int t = 0, in_block = 0; t < in->n_segments; t++, in_block++) {
		int64_t block = sched_segment_block(in, &in->segment[t]);
		in_block = block == before ? in_block : 0;
		before = block;
		if (block_stays(o, in->coll, block) ? in_block % o->sym->size == 0
		    : block_representative(o, in->coll, block) == block)
			out->segment[out->n_segments++] = in->segment[t];
	}
	return OK;
}

Status
sched_fold(Ctx *ctx, const Schedule *in, const Symmetry *sym, Schedule **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Error error = ctx->error;
	RankOrbits o;
	Schedule *sched, *all;
	*out = NULL;
	if (in->n_parts || in->segment[0].n_to || sym->size < 2)
		return OK;
	TRY(NEW(ctx, sched, 1));
	*sched = *in;
	sched->matrix = NULL;	/* a matrix has seldom the symmetry that its paths have */
	sched->symmetry = sym;
	/* Where it is no group that schedules may have, or the images are too many, they have no compact form. */
	Status status = rank_orbits(ctx, "", in->topo, sym, &o);
	if (status == OK)
		status = choose_representatives(ctx, &o, in, sched);
	if (status == OK)
		status = sched_check_symmetry(ctx, "", sched);
	bool same = status == OK && sched_trees(sched) == in->n_segments;
	if (same)
		status = sched_expand(ctx, "", sched, &all);
	if (status == BAD_INPUT || status == LIMIT) {
		ctx->error = error;
		return OK;
	}
	TRY(status);
	for (int t = 0; t < in->n_segments && same; t++)
		same = in->segment[t].n_to == 0 && same_segment(&in->segment[t], &all->segment[t]);
	arena_release(&ctx->scratch, mark);
	*out = same ? sched : NULL;
	return OK;
}
