/* Alltoalls as trees into each rank (schedule/in_trees.h) against lists of all their paths: of machines that lost parts
 * rate and bound are near those of the linear program, each rank's part is the same of both forms, both give the same
 * bytes, and what is valid after random changes is so as a list, with the same rate. Prints TAP. Arguments: seed,
 * changes of each schedule. */
#include "changed_trees.h"
#include "graph/graph.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/plan.h"
#include "topology/topology.h"

static void
ok(bool good, const char *what, const char *line)
{
	printf("%s %s: %s\n", good ? "ok" : "not ok", line, what);
}

/* ---- random changes ---- */

static void
change(Schedule *sched)
{
	InTree *all = (InTree *)sched->in_tree;
	int t = below(sched->n_in_trees);
	InTree *tree = &all[t];
	int *link = (int *)tree->link, i = tree->n_links ? below(tree->n_links) : 0;
	switch (below(8)) {
	case 0:
		tree->root = below(sched->topo->n_ranks);
		break;
	case 1:
		frac_mul(tree->length, (Frac){ 1 + below(3), 1 + below(3) }, &tree->length);
		break;
	case 2:
		frac_add(tree->offset, tree->length, &tree->offset);
		break;
	case 3:
		if (tree->n_links)
			link[i] = link[--tree->n_links];
		break;
	case 4:
		halve(sched, all, t);
		break;
	default: {
		/* Another link of the same vertex: often a tree again. */
		const Topology *topo = sched->topo;
		int v = tree->n_links ? topo->link[link[i]].from : 0, first = topo->first_out[v];
		if (tree->n_links)
			link[i] = topo->out[first + below(topo->first_out[v + 1] - first)];
	}
	}
}

/* ---- tests ---- */

/* Is no link listed that is the only one of its vertex? */
static bool
lists_choices(const Schedule *sched)
{
	const Topology *topo = sched->topo;
	for (int t = 0; t < sched->n_in_trees; t++)
		for (int i = 0; i < sched->in_tree[t].n_links; i++) {
			int v = topo->link[sched->in_tree[t].link[i]].from;
			if (topo->first_out[v + 1] == topo->first_out[v] + 1)
				return false;
		}
	return true;
}

/* least: of the optimum, and the optimum of the bound. */
static void
test(const char *line, const char *lost, double least, int changes, struct counts *counts)
{
	const Ask ask = { .coll = ALLTOALL, .root = -1 };
	Ctx ctx;
	Text text = { 0 };
	Symmetry *sym;
	Bound bound, proof;
	Packing *pack, *best;
	Schedule *sched, *all, *listed, *read;
	int depth, listed_depth;
	int64_t latency, listed_latency;
	ctx_init(&ctx);
	const Topology *topo = machine_without(&ctx, line, lost);
	must(&ctx, topo_symmetry(&ctx, topo, -1, SYMMETRY_NONE, &sym));
	must(&ctx, bound_compute(&ctx, topo, sym, ALLTOALL, -1, &bound));
	proof = bound;
	must(&ctx, pack_paths(&ctx, topo, NULL, false, &best, &bound));
	must(&ctx, sched_build(&ctx, topo, &bound, &ask, "trees", best, &listed));
	must(&ctx, pack_in_trees(&ctx, topo, &pack, &proof));
	must(&ctx, sched_build(&ctx, topo, &proof, &ask, "trees", pack, &sched));
	double part = frac_double(sched->achieved) / frac_double(listed->achieved),
	    top = frac_double(proof.rate) / frac_double(listed->achieved);
	printf("# %s without %s: %.6f of the optimum, bound %.6f of it, %d trees\n", line, lost, part, top,
	    sched->n_in_trees);
	ok(part >= least && part < 1 + 1e-6, "the rate is near the optimum", line);
	ok(top > 1 - 1e-6 && top <= 2 - least, "so is the bound", line);
	ok(lists_choices(sched), "links without an alternative are not listed", line);
	sched_write_json(sched, &text);
	must(&ctx, sched_read_compact(&ctx, "x", text.data, text.size, &read));
	ok(read->n_in_trees == sched->n_in_trees, "it is read as it was written", line);
	ok(sched_verify(&ctx, "x", read) == OK, "it is valid", line);
	must(&ctx, sched_read(&ctx, "x", text.data, text.size, &all));
	ok(sched_is_list(all) && sched_verify(&ctx, "x", all) == OK, "so is the list that other readers get", line);
	must(&ctx, sched_depth(&ctx, read, &depth));
	must(&ctx, sched_depth(&ctx, all, &listed_depth));
	must(&ctx, sched_latency(&ctx, read, &latency));
	must(&ctx, sched_latency(&ctx, all, &listed_latency));
	ok(depth == listed_depth && latency == listed_latency, "depth and latency are those of the list", line);
	ok(same_programs(&ctx, read, all), "each rank's part is the same of both", line);
	ok(same_bits(&ctx, all, &text), "both give the same bits", line);
	Schedule *other = relabelled(&ctx, read);
	ok(sched_verify(&ctx, "x", other) == OK, "it is valid in other ranks", line);
	must(&ctx, sched_expand(&ctx, "x", other, &all));
	ok(sched_verify(&ctx, "x", all) == OK && same_programs(&ctx, other, all), "and so is its list there", line);
	for (int i = 0; i < changes; i++)
		try_change(read, change, counts);
	text_free(&text);
	ctx_free(&ctx);
}

int
main(int argc, char **argv)
{
	struct counts counts = { .agree = true };
	state = argc > 1 ? (uint64_t)atoll(argv[1]) : 1;
	int changes = argc > 2 ? 20 * atoi(argv[2]) : 300;
	test("torus:4x4x2@25", "s5/gpu0", 0.99, changes, &counts);
	test("torus:5x4@25 open:1", "s3/gpu0", 0.99, changes, &counts);
	test("dragonfly:2x3x1@25", "s5/gpu0", 0.99, changes, &counts);
	test("hammingmesh:2x2x2x3@25", "s5/gpu0", 0.99, changes, &counts);
	test("server:3 gpu:4 ring:30 net:25", "s2/gpu1-s2/gpu2,s0/gpu0", 0.98, changes, &counts);
	test("server:4 gpu:4 switch:300 net:25 rails", "s0/gpu2-net/rail2", 0.98, changes, &counts);
	printf("# changed: %d refused, %d valid\n", counts.refused, counts.valid);
	return report(!counts.agree || counts.refused < 100 || counts.valid < 100,
	    "changed at random, trees that are valid are so as a list");
}
