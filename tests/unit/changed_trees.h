/* Random changes of schedules of version 3: is what is valid after them valid as a list, too, with the same rate? */
#ifndef BLINK_TEST_CHANGED_TREES_H
#define BLINK_TEST_CHANGED_TREES_H

#include "equal.h"
#include "schedule/in_trees.h"

struct counts {
	int refused, valid;
	bool agree;
};

static Schedule *
copy(Ctx *ctx, const Schedule *in)
{
	Schedule *out;
	InTree *tree;
	Edge *edge;
	must(ctx, NEW(ctx, out, 1));
	must(ctx, NEW(ctx, tree, in->n_in_trees + 1));
	must(ctx, NEW(ctx, edge, in->n_edges));
	*out = *in;
	for (int e = 0; e < in->n_edges; e++)
		edge[e] = in->edge[e];
	for (int t = 0; t < in->n_in_trees; t++) {
		int *number;
		tree[t] = in->in_tree[t];
		must(ctx, NEW(ctx, number, tree[t].n_links + 1));
		for (int i = 0; i < tree[t].n_links; i++)
			number[i] = in->in_tree[t].link[i];
		tree[t].link = number;
	}
	out->in_tree = tree;
	out->edge = edge;
	return out;
}

/* The tree in two halves. */
static void
halve(Schedule *sched, InTree *all, int t)
{
	memmove(&all[t + 1], &all[t], (size_t)(sched->n_in_trees - t) * sizeof *all);
	sched->n_in_trees++;
	frac_mul(all[t].length, (Frac){ 1, 2 }, &all[t].length);
	all[t + 1].length = all[t].length;
	frac_add(all[t].offset, all[t].length, &all[t + 1].offset);
	all[t + 1].n_links = 0;
}

static void
try_change(const Schedule *from, void (*change)(Schedule *sched), struct counts *counts)
{
	Ctx ctx;
	ctx_init(&ctx);
	Schedule *sched = copy(&ctx, from), *all;
	change(sched);
	if (sched_check(&ctx, "x", sched) != OK) {
		counts->refused++;
	} else {
		Frac compact, listed;
		counts->valid++;
		must(&ctx, sched_expand(&ctx, "x", sched, &all));
		must(&ctx, sched_achieved(&ctx, "x", sched, &compact));
		must(&ctx, sched_achieved(&ctx, "x", all, &listed));
		all->stated_achieved = frac_double(listed) / 1e9;
		bool valid = sched_verify(&ctx, "x", all) == OK;
		if (!valid || frac_cmp(compact, listed) != 0)
			printf("# listed: %s, %g of %g\n", ctx.error.text, frac_double(compact), frac_double(listed));
		counts->agree = counts->agree && valid && frac_cmp(compact, listed) == 0;
	}
	ctx_free(&ctx);
}

#endif
