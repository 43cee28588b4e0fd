/* The load of each link and the rate that follows from it; the depth of a schedule. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

/* num / den, not in lowest terms: den is a multiple of each denominator so far. num <= den * 2^40, since it is a sum
 * of at most LIMIT_TREE_EDGES * LIMIT_ROUTE_LINKS lengths of at most LIMIT_RANKS each. */
struct load {
	Wide num;
	int64_t den;
};

static Status
add_load(Ctx *ctx, const char *label, int link, Frac length, struct load *load)
{
	/* Lengths of one file have few denominators: usually only the numerator changes. */
	if (load->den != length.den && load->den % length.den != 0) {
		Wide den = (Wide)(load->den / gcd64(load->den, length.den)) * length.den;
		Frac sum;
		if (den > INT64_MAX) {
			/* In lowest terms the sum may still fit. */
			if (!frac_make(load->num, load->den, &sum) || !frac_add(sum, length, &sum))
				return fail(ctx, LIMIT, "%s: trees: the load of link %d needs more than 64 bits", label,
				    link);
			*load = (struct load){ sum.num, sum.den };
			return OK;
		}
		load->num *= (int64_t)den / load->den;
		load->den = (int64_t)den;
	}
	load->num += (Wide)length.num * (load->den / length.den);
	return OK;
}

static Status
add_loads(Ctx *ctx, const char *label, const Edge *edge, int n, Frac length, struct load *load)
{
	for (int e = 0; e < n; e++)
		for (int i = 0; i < edge[e].n_links; i++)
			TRY(add_load(ctx, label, edge[e].link[i], length, &load[edge[e].link[i]]));
	return OK;
}

/* Of the trees of one part, or, -1, of all, in lowest terms. */
static Status
loads_of(Ctx *ctx, const char *label, const Schedule *sched, int part, Frac *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = sched->topo;
	struct load *load;
	TRY(TEMP(ctx, load, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		load[l].den = 1;
	for (int t = 0; t < sched->n_segments; t++) {
		const Segment *s = &sched->segment[t];
		Frac length = s->length;
		if (part >= 0 && s->part != part)
			continue;
		/* Of alltoall's n * n blocks one rank sends n: M counts those. */
		if (sched->coll == ALLTOALL && !frac_mul(length, (Frac){ topo->n_ranks, 1 }, &length))
			return fail(ctx, LIMIT, "%s: trees[%d].segment: needs more than 64 bits", label, t);
		TRY(add_loads(ctx, label, s->tree.down, s->tree.n_down, length, load));
		TRY(add_loads(ctx, label, s->tree.up, s->tree.n_up, length, load));
	}
	for (int l = 0; l < topo->n_links; l++)
		if (!frac_make(load[l].num, load[l].den, &out[l]))
			return fail(ctx, LIMIT, "%s: trees: the load of link %d needs more than 64 bits", label, l);
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
sched_loads(Ctx *ctx, const char *label, const Schedule *sched, Frac *load)
{
	return loads_of(ctx, label, sched, -1, load);
}

/* By the trees of one part, or, -1, by all. */
static Status
achieved_by(Ctx *ctx, const char *label, const Schedule *sched, int part, Frac *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = sched->topo;
	Frac *load, achieved;
	TRY(TEMP(ctx, load, topo->n_links));
	TRY(loads_of(ctx, label, sched, part, load));
	/* The rate over link l is capacity / load: its numerator may need 126 bits, the least of them only what it
	 * needs in lowest terms. */
	Wide num = 0, den = 1;
	for (int l = 0; l < topo->n_links; l++) {
		Wide over = (Wide)topo->link[l].capacity * load[l].den;
		if (load[l].num > 0 && (num == 0 || ratio_cmp(over, load[l].num, num, den) < 0)) {
			num = over;
			den = load[l].num;
		}
	}
	if (!frac_make(num, den, &achieved))
		return fail(ctx, LIMIT, "%s: trees: the rate that they achieve needs more than %d bits", label,
		    (int)FRAC_BITS);
	arena_release(&ctx->scratch, mark);
	*out = achieved;
	return OK;
}

Status
sched_achieved(Ctx *ctx, const char *label, const Schedule *sched, Frac *out)
{
	return achieved_by(ctx, label, sched, -1, out);
}

/* The trees of a part carry its share of the buffer; of a whole one their loads would be larger by that. */
Status
sched_parts(Ctx *ctx, const char *label, const Schedule *sched, Part *part)
{
	Frac achieved, share;
	sched_part_spans(sched, part);
	for (int i = 0; i < sched->n_parts; i++) {
		TRY(achieved_by(ctx, label, sched, i, &achieved));
		if (achieved.num == 0)
			return fail(ctx, BAD_INPUT, "%s: parts[%d]: its trees have no edge: want some that move data",
			    label, i);
		if (!frac_sub(part[i].end, part[i].begin, &share) || !frac_mul(achieved, share, &part[i].rate))
			return fail(ctx, LIMIT, "%s: parts[%d]: its rate needs more than 64 bits", label, i);
	}
	return OK;
}

Status
sched_depth(Ctx *ctx, const Schedule *sched, int *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *work, deepest = 0;
	TRY(TEMP(ctx, work, sched->topo->n_ranks));
	for (int t = 0; t < sched->n_segments; t++) {
		int depth = tree_depth(&sched->segment[t].tree, work);
		deepest = depth > deepest ? depth : deepest;
	}
	arena_release(&ctx->scratch, mark);
	*out = deepest;
	return OK;
}
