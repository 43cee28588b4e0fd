/* Allgathers and reducescatters as trees of numbered edges (schedule/root_trees.h) against lists of all their trees:
 * what is made of a planned list has the loads, the rate, the depth and the latency of that list, its own list has the
 * same edges, each rank's part is the same of both forms, and both give the same bytes. After random changes what is
 * valid is so as a list, with the same rate. Prints TAP. Arguments: seed, changes of each schedule, times 20. */
#include "changed_trees.h"

static void
ok(bool good, const char *what, const char *line, Collective coll)
{
	printf("%s %s: %s: %s\n", good ? "ok" : "not ok", line, collective_name(coll), what);
}

/* ---- from a list ---- */

/* The number of an edge in the table, to which it is added where it is new. */
static int
number_of(Schedule *sched, const Edge *edge)
{
	Edge *all = (Edge *)sched->edge;
	int e = 0;
	while (e < sched->n_edges && !tree_same_edges(&all[e], edge, 1))
		e++;
	if (e == sched->n_edges)
		all[sched->n_edges++] = *edge;
	return e;
}

/* What differs from the tree before; number: of each rank, the edge of the tree before, -1 where there is none. */
static void
list_numbers(Ctx *ctx, Schedule *sched, const Tree *from, int *number, InTree *tree)
{
	int n = sched->topo->n_ranks, *of, *out;
	must(ctx, NEW(ctx, out, n));
	must(ctx, NEW(ctx, of, n));
	for (int e = 0; e < from->n_down + from->n_up; e++) {
		const Edge *edge = tree_edge(from, e);
		of[sched->coll == ALLGATHER ? edge->dst : edge->src] = number_of(sched, edge);
	}
	tree->link = out;
	for (int r = 0; r < n; r++)
		if (r != from->root && of[r] != number[r])
			out[tree->n_links++] = number[r] = of[r];
}

/* The trees of a list that has them by roots and offsets. */
static Schedule *
from_list(Ctx *ctx, const Schedule *list)
{
	int n = list->topo->n_ranks, n_edges = 0, *number;
	Schedule *sched;
	InTree *tree;
	Edge *edge;
	for (int t = 0; t < list->n_segments; t++)
		n_edges += list->segment[t].tree.n_down + list->segment[t].tree.n_up;
	must(ctx, NEW(ctx, sched, 1));
	must(ctx, NEW(ctx, tree, list->n_segments));
	must(ctx, NEW(ctx, edge, n_edges));
	must(ctx, NEW(ctx, number, n));
	*sched = *list;
	sched->segment = NULL;
	sched->n_segments = 0;
	sched->edge = edge;
	for (int t = 0; t < list->n_segments; t++) {
		const Segment *segment = &list->segment[t];
		int64_t block = sched_segment_block(list, segment);
		Frac begin;
		if (block != segment->tree.root || !frac_make(block, n, &begin)
		    || !frac_sub(segment->offset, begin, &tree[t].offset)
		    || !frac_mul(tree[t].offset, (Frac){ n, 1 }, &tree[t].offset)
		    || !frac_mul(segment->length, (Frac){ n, 1 }, &tree[t].length))
			must(ctx, INTERNAL);
		tree[t].root = segment->tree.root;
		for (int r = 0; r < n && (t == 0 || tree[t - 1].root != tree[t].root); r++)
			number[r] = -1;
		list_numbers(ctx, sched, &segment->tree, number, &tree[t]);
	}
	sched->n_in_trees = list->n_segments;
	sched->in_tree = tree;
	return sched;
}

/* ---- random changes ---- */

/* Another edge of the same rank: often a tree again. */
static int
other_edge(const Schedule *sched, int e)
{
	int rank = in_tree_vertex(sched, e), first = below(sched->n_edges), at = first;
	do
		at = (at + 1) % sched->n_edges;
	while (at != first && in_tree_vertex(sched, at) != rank);
	return in_tree_vertex(sched, at) == rank ? at : e;
}

static void
change_once(Schedule *sched)
{
	InTree *all = (InTree *)sched->in_tree;
	Edge *edge = (Edge *)&sched->edge[below(sched->n_edges)];
	int t = below(sched->n_in_trees);
	InTree *tree = &all[t];
	int *number = (int *)tree->link, i = tree->n_links ? below(tree->n_links) : 0;
	switch (below(10)) {
	case 0:
		tree->root = below(sched->topo->n_ranks);
		break;
	case 1:
		frac_mul(tree->length, (Frac){ 1 + below(3), 1 + below(3) }, &tree->length);
		break;
	case 2:
		if (tree->n_links)
			number[i] = number[--tree->n_links];
		break;
	case 3:
		edge->dst = below(sched->topo->n_ranks);
		break;
	case 4:
		*edge = sched->edge[below(sched->n_edges)];
		break;
	case 5:
		halve(sched, all, t);
		break;
	default:
		if (tree->n_links)
			number[i] = other_edge(sched, number[i]);
	}
}

static void
change(Schedule *sched)
{
	for (int i = below(3); i >= 0; i--)
		change_once(sched);
}

/* ---- tests ---- */

/* Have they the same segments, with trees of the same edges in any order? */
static bool
same_trees(const Schedule *a, const Schedule *b)
{
	bool same = a->n_segments == b->n_segments;
	for (int t = 0; t < a->n_segments && same; t++) {
		const Segment *s = &a->segment[t], *u = &b->segment[t];
		same = frac_cmp(s->offset, u->offset) == 0 && frac_cmp(s->length, u->length) == 0
		    && s->tree.root == u->tree.root && s->tree.n_down == u->tree.n_down && s->tree.n_up == u->tree.n_up
		    && tree_hash(&s->tree) == tree_hash(&u->tree);
	}
	return same;
}

static bool
same_numbers(Ctx *ctx, const Schedule *a, const Schedule *b)
{
	int depth[2], n = a->topo->n_links;
	int64_t latency[2];
	Frac *load = NULL, *other = NULL;
	bool same = frac_cmp(a->achieved, b->achieved) == 0;
	must(ctx, NEW_EACH(ctx, n, load, other));
	must(ctx, sched_depth(ctx, a, &depth[0]));
	must(ctx, sched_depth(ctx, b, &depth[1]));
	must(ctx, sched_latency(ctx, a, &latency[0]));
	must(ctx, sched_latency(ctx, b, &latency[1]));
	must(ctx, sched_loads(ctx, "x", a, load));
	must(ctx, sched_loads(ctx, "x", b, other));
	for (int l = 0; l < n; l++)
		same = same && frac_cmp(load[l], other[l]) == 0;
	return same && depth[0] == depth[1] && latency[0] == latency[1];
}

static void
test(const char *line, Collective coll, int changes, struct counts *counts)
{
	Ctx ctx;
	Text text = { 0 }, again = { 0 };
	Schedule *sched, *read, *all, *other;
	ctx_init(&ctx);
	const Schedule *list = schedule_of_all(&ctx, line, coll, -1, &text);
	text_free(&text);
	sched = from_list(&ctx, list);
	printf("# %s: %d trees, %d edges\n", line, sched->n_in_trees, sched->n_edges);
	sched_write_json(sched, &text);
	must(&ctx, sched_read_compact(&ctx, "x", text.data, text.size, &read));
	ok(sched_verify(&ctx, "x", read) == OK, "it is valid", line, coll);
	sched_write_json(read, &again);
	ok(read->n_edges == sched->n_edges && again.size == text.size && memcmp(again.data, text.data, text.size) == 0,
	    "it is read as it was written", line, coll);
	ok(same_numbers(&ctx, list, read), "loads, rate, depth and latency are those of the plan", line, coll);
	must(&ctx, sched_read(&ctx, "x", text.data, text.size, &all));
	ok(sched_is_list(all) && sched_verify(&ctx, "x", all) == OK, "its list is valid", line, coll);
	ok(same_trees(list, all), "and has the trees of the plan", line, coll);
	ok(same_numbers(&ctx, all, read), "loads, rate, depth and latency are those of the list", line, coll);
	ok(same_programs(&ctx, read, all), "each rank's part is the same of both", line, coll);
	ok(same_bits(&ctx, all, &text), "both give the same bits", line, coll);
	other = relabelled(&ctx, read);
	ok(sched_verify(&ctx, "x", other) == OK, "it is valid in other ranks", line, coll);
	must(&ctx, sched_expand(&ctx, "x", other, &all));
	ok(sched_verify(&ctx, "x", all) == OK && same_programs(&ctx, other, all), "and so is its list there", line,
	    coll);
	for (int i = 0; i < changes; i++)
		try_change(read, change, counts);
	text_free(&text);
	text_free(&again);
	ctx_free(&ctx);
}

/* Of more ranks lanes of other pairs are not counted. */
static void
test_many(const char *line, Collective coll)
{
	Ctx ctx;
	Text text = { 0 };
	Schedule *all;
	bool same = true;
	ctx_init(&ctx);
	const Schedule *sched = from_list(&ctx, schedule_of_all(&ctx, line, coll, -1, &text));
	must(&ctx, sched_expand(&ctx, "x", sched, &all));
	for (int r = 0; r < sched->topo->n_ranks && same; r += 29) {
		RankProgram *p, *q;
		must(&ctx, sched_project(&ctx, sched, r, &p));
		must(&ctx, sched_project(&ctx, all, r, &q));
		same = same_program(p, q) && p->n_tasks > 0;
	}
	ok(same, "each rank's part is the same of both", line, coll);
	text_free(&text);
	ctx_free(&ctx);
}

int
main(int argc, char **argv)
{
	static const char *const lines[] = { "server:2 gpu:4 ring:30 net:25", "gpu:6 ring:25", "torus:3x4@25",
		"server:3 gpu:4 switch:300 net:25", "server:4 gpu:4 switch:300 nic:2@25 pcie:24" };
	struct counts counts = { .agree = true };
	state = argc > 1 ? (uint64_t)atoll(argv[1]) : 1;
	int changes = argc > 2 ? 20 * atoi(argv[2]) : 150;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		test(lines[i], ALLGATHER, changes, &counts);
		test(lines[i], REDUCESCATTER, changes, &counts);
	}
	test_many("server:33 gpu:8 switch:300 net:25", ALLGATHER);
	test_many("server:33 gpu:8 switch:300 net:25", REDUCESCATTER);
	printf("# changed: %d refused, %d valid\n", counts.refused, counts.valid);
	return report(!counts.agree || counts.refused < 100 || counts.valid < 100,
	    "changed at random, trees that are valid are so as a list");
}
