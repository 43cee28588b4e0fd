/* Rates to exact segments. */
#include "schedule/images.h"

#include <stdlib.h>
#include <string.h>

static Status
build_parts(Ctx *ctx, const Packing *pack, Schedule *sched)
{
	sched->n_parts = pack->n_parts;
	TRY(NEW(ctx, sched->part, pack->n_parts));
	memcpy(sched->part, pack->part, (size_t)pack->n_parts * sizeof *sched->part);
	for (int t = 0; t < pack->n_trees; t++)
		sched->segment[t].part = pack->part_of[t];
	return sched_parts(ctx, sched->topo->name, sched, sched->part);
}

/* Trees that serve one rank each have all of the buffer. */
static Status
serve_alone(Ctx *ctx, const Packing *pack, Schedule *sched)
{
	for (int t = 0; t < pack->n_trees; t++) {
		Segment *segment = &sched->segment[t];
		*segment = (Segment){ .offset = FRAC_ZERO, .length = FRAC_ONE, .tree = pack->tree[t], .n_to = 1 };
		TRY(NEW(ctx, segment->to, 1));
		segment->to[0] = pack->serves[t];
	}
	return OK;
}

/* A demand's trees share its block by weight; a collective without blocks has one, the buffer. */
static Status
share_blocks(Ctx *ctx, const Packing *pack, Schedule *sched)
{
	const Topology *topo = sched->topo;
	int64_t total = 0, at = 0, blocks = collective_blocks(sched->coll, topo->n_ranks), block = 0;
	int demand = -1;
	for (int t = 0; t < pack->n_trees; t++)
		total += pack->weight[t];
	total /= collective_demands(sched->coll, topo->n_ranks);
	for (int t = 0; t < pack->n_trees; t++) {
		Segment *segment = &sched->segment[t];
		int d = pack->demand ? pack->demand[t] : 0;
		if (d != demand) {
			demand = d;
			at = 0;
			block = collective_demand(sched->coll, topo->n_ranks, sched->root, d).block;
		}
		segment->tree = pack->tree[t];
		if (!frac_make((Wide)block * total + at, (Wide)blocks * total, &segment->offset)
		    || !frac_make(pack->weight[t], (Wide)blocks * total, &segment->length))
			return fail(ctx, LIMIT, "%s: segments need more than 64 bits", topo->name);
		at += pack->weight[t];
	}
	return OK;
}

/* Trees of one demand follow each other, each with all of its images there: one, if its block is moved. */
static Status
share_images(Ctx *ctx, const Packing *pack, Schedule *sched)
{
	int n = sched->topo->n_ranks, size = pack->symmetry->size;
	int64_t blocks = collective_blocks(sched->coll, n), before = 0, total = 0;
	RankOrbits orbits;
	TRY(rank_orbits(ctx, sched->topo->name, sched->topo, pack->symmetry, &orbits));
	for (int t = 0; t < pack->n_trees; t++) {
		Segment *segment = &sched->segment[t];
		int64_t block = collective_demand(sched->coll, n, sched->root, pack->demand[t]).block;
		int images = block_stays(&orbits, sched->coll, block) ? size : 1;
		if (t == 0 || pack->demand[t] != pack->demand[t - 1]) {
			before = total = 0;
			for (int u = t; u < pack->n_trees && pack->demand[u] == pack->demand[t]; u++)
				total += pack->weight[u];
		}
		segment->tree = pack->tree[t];
		if (!frac_make((Wide)block * total + before, (Wide)blocks * total, &segment->offset)
		    || !frac_make(pack->weight[t], (Wide)blocks * total * images, &segment->length))
			return fail(ctx, LIMIT, "%s: segments need more than 64 bits", sched->topo->name);
		before += pack->weight[t];
	}
	return OK;
}

Status
sched_build(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, const char *algorithm,
    const Packing *pack, Schedule **out)
{
	Schedule *sched;
	TRY(NEW(ctx, sched, 1));
	*sched = (Schedule){ .generator = "blinkc", .version = BLINK_VERSION, .topo = topo, .coll = ask->coll,
		.root = ask->root, .algorithm = algorithm, .bound = *bound, .n_segments = pack->n_trees,
		.symmetry = pack->symmetry, .n_in_trees = pack->n_in_trees, .in_tree = pack->in_tree,
		.n_edges = pack->n_edges, .edge = pack->edge };
	TRY(NEW(ctx, sched->segment, pack->n_trees));
	TRY(pack->symmetry ? share_images(ctx, pack, sched) : pack->serves ? serve_alone(ctx, pack, sched)
	    : share_blocks(ctx, pack, sched));
	TRY(sched_achieved(ctx, topo->name, sched, &sched->achieved));
	if (pack->n_parts)
		TRY(build_parts(ctx, pack, sched));
	*out = sched;
	return OK;
}
