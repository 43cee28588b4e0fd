/* Compact schedules (schedule/images.h) against lists of all their trees: what is folded and expanded again is the
 * same, each rank's program is the same of both forms, and a compact schedule is valid exactly if its list is, also
 * after it was changed at random. Prints TAP. Arguments: seed, changes of each schedule, times 20. */
#include "equal.h"
#include "graph/graph.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/templates/templates.h"
#include "plan/plan.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const lines[] = {
	"server:4 gpu:4 switch:300 net:25 rails", "server:3 gpu:2 mesh:20 net:7", "gpu:6 ring:25", "gpu:5 mesh:25",
	"server:4 gpu:4 switch:300 nic:2@25 pcie:24", "server:6 gpu:2 switch:50 net:25 leaf:3 oversubscription:2",
	"server:2 gpu:4 switch:100 net:10 multicast reduce",
};

static const Collective collectives[] = { ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL };

static void
ok(bool good, const char *what, const char *line, Collective coll)
{
	printf("%s %s: %s: %s\n", good ? "ok" : "not ok", line, collective_name(coll), what);
}

/* ---- random changes ---- */

static Schedule *
copy(Ctx *ctx, const Schedule *in)
{
	Schedule *out;
	Symmetry *sym;
	must(ctx, NEW(ctx, out, 1));
	*out = *in;
	must(ctx, NEW(ctx, out->segment, in->n_segments + 1));
	for (int t = 0; t < in->n_segments; t++) {
		out->segment[t] = in->segment[t];
		must(ctx, tree_image(ctx, &in->segment[t].tree, NULL, NULL, &out->segment[t].tree));
	}
	must(ctx, NEW(ctx, sym, 1));
	*sym = *in->symmetry;
	must(ctx, NEW(ctx, sym->map, sym->n_maps));
	for (int m = 0; m < sym->n_maps; m++) {
		size_t n = (size_t)in->topo->n_vertices, l = (size_t)in->topo->n_links;
		int *vertex, *link;
		must(ctx, NEW(ctx, vertex, n));
		must(ctx, NEW(ctx, link, l));
		memcpy(vertex, in->symmetry->map[m].vertex, n * sizeof *vertex);
		memcpy(link, in->symmetry->map[m].link, l * sizeof *link);
		sym->map[m] = (SymmetryMap){ .order = in->symmetry->map[m].order, .vertex = vertex, .link = link };
	}
	out->symmetry = sym;
	return out;
}

/* Every other element of a map alone: a group, of half the size. */
static void
halve(Ctx *ctx, const Topology *topo, Symmetry *sym, SymmetryMap *map)
{
	int *vertex, *link;
	if (map->order % 2 || map->order < 4)
		return;
	must(ctx, NEW(ctx, vertex, topo->n_vertices));
	must(ctx, NEW(ctx, link, topo->n_links));
	for (int v = 0; v < topo->n_vertices; v++)
		vertex[v] = map->vertex[map->vertex[v]];
	for (int l = 0; l < topo->n_links; l++)
		link[l] = map->link[map->link[l]];
	map->order /= 2;
	sym->size /= 2;
	map->vertex = vertex;
	map->link = link;
}

static void
change(Ctx *ctx, Schedule *sched)
{
	const Topology *topo = sched->topo;
	Symmetry *sym = (Symmetry *)sched->symmetry;
	SymmetryMap *map = &sym->map[below(sym->n_maps)];
	Segment *s = &sched->segment[below(sched->n_segments)];
	int n_edges = s->tree.n_down + s->tree.n_up;
	Edge *edge = n_edges ? (Edge *)tree_edge(&s->tree, below(n_edges)) : NULL;
	switch (below(12)) {
	case 0:
		s->tree.root = below(topo->n_ranks);
		break;
	case 1:
		frac_mul(s->length, (Frac){ 1 + below(3), 1 + below(3) }, &s->length);
		break;
	case 2:
		frac_add(s->offset, s->length, &s->offset);
		break;
	case 3:
		if (edge)
			*edge = *tree_edge(&s->tree, below(n_edges));
		break;
	case 4:
		if (sched->n_segments > 1)
			*s = sched->segment[--sched->n_segments];
		break;
	case 5:
		sched->segment[sched->n_segments++] = *s;
		break;
	case 6:
		halve(ctx, topo, sym, map);
		break;
	case 7:
		swap((int *)&map->vertex[below(topo->n_ranks)], (int *)&map->vertex[below(topo->n_ranks)]);
		break;
	case 8:
		swap((int *)&map->link[below(topo->n_links)], (int *)&map->link[below(topo->n_links)]);
		break;
	case 9:
		map->order = 2 + below(topo->n_ranks - 1);
		break;
	case 10:
		sched->stated_achieved *= 1 + below(2);
		break;
	default:
		if (s->tree.n_down)
			s->tree.n_down--;
		break;
	}
}

struct counts {
	int refused, valid, invalid;	/* by sched_check; then by sched_verify */
	bool agree;
};

/* rank_orbits trusts that sizes are products of orders, as the reader makes them. */
static bool
sizes_are_products(const Symmetry *sym)
{
	int64_t size = 1;
	for (int m = 0; m < sym->n_maps && size <= sym->size; m++)
		size *= sym->map[m].order;
	return size == sym->size;
}

static void
try_change(const Schedule *from, struct counts *counts)
{
	Ctx ctx, other;
	ctx_init(&ctx);
	ctx_init(&other);
	Schedule *sched = copy(&ctx, from), *all;
	change(&ctx, sched);
	if (below(3) == 0)
		change(&ctx, sched);
	if (!sizes_are_products(sched->symmetry) || sched_check(&ctx, "x", sched) != OK) {
		counts->refused++;
	} else {
		must(&ctx, symmetry_find_orbits(&ctx, sched->topo, (Symmetry *)sched->symmetry));
		must(&ctx, sched_expand(&ctx, "x", sched, &all));
		bool compact = sched_verify(&ctx, "x", sched) == OK, listed = sched_verify(&other, "x", all) == OK;
		if (compact != listed)
			printf("# compact %d: %s; listed %d: %s\n", compact, ctx.error.text, listed, other.error.text);
		counts->agree = counts->agree && compact == listed;
		counts->valid += compact;
		counts->invalid += !compact;
	}
	ctx_free(&ctx);
	ctx_free(&other);
}

/* ---- tests ---- */

static void
test(const char *line, Collective coll, int changes, struct counts *counts)
{
	Ctx ctx;
	Schedule *listed, *compact, *read, *all;
	Text text = { 0 };
	ctx_init(&ctx);
	listed = schedule_of_all(&ctx, line, coll, -1, &text);
	text_free(&text);
	Status status = compile_compact(&ctx, "", listed, &compact);
	if (status == INFEASIBLE) {
		printf("# %s: %s: no compact form\n", line, collective_name(coll));
		ctx_free(&ctx);
		return;
	}
	must(&ctx, status);
	sched_write_json(compact, &text);
	must(&ctx, sched_read_compact(&ctx, "x", text.data, text.size, &read));
	ok(read->symmetry && read->n_segments < listed->n_segments && sched_trees(read) == listed->n_segments,
	    "it is read with its symmetry", line, coll);
	ok(sched_verify(&ctx, "x", read) == OK, "and is valid", line, coll);
	must(&ctx, sched_expand(&ctx, "x", read, &all));
	ok(same_schedule(all, listed), "its list of trees is that which was folded", line, coll);
	ok(sched_verify(&ctx, "x", all) == OK, "which is valid", line, coll);
	must(&ctx, sched_read(&ctx, "x", text.data, text.size, &all));
	ok(!all->symmetry && same_schedule(all, listed), "and is what other readers get", line, coll);
	ok(same_programs(&ctx, read, all), "each rank's part is the same of both", line, coll);
	ok(same_bits(&ctx, listed, &text), "both give the same bits", line, coll);
	Schedule *other = relabelled(&ctx, read);
	ok(sched_verify(&ctx, "x", other) == OK, "it is valid in other ranks", line, coll);
	must(&ctx, sched_expand(&ctx, "x", other, &all));
	ok(sched_verify(&ctx, "x", all) == OK && same_programs(&ctx, other, all), "and so is its list there", line,
	    coll);
	for (int i = 0; i < changes; i++)
		try_change(read, counts);
	text_free(&text);
	ctx_free(&ctx);
}

/* Trees as large machines have them (templates.c, path_templates.c), of small ones: valid, in both forms, and not above
 * what the linear program finds. least: of its rate, or of the bound, in percent. */
static void
test_templates(const char *line, Collective coll, int least)
{
	const Ask ask = { .coll = coll, .root = -1 };
	Ctx ctx;
	Text text = { 0 };
	const Topology *topo;
	Symmetry *sym;
	Bound bound;
	Packing *pack;
	Schedule *sched, *all, *best;
	ctx_init(&ctx);
	topo = synthetic_machine(&ctx, line);
	must(&ctx, topo_symmetry(&ctx, topo, -1, SYMMETRY_ANY, &sym));
	must(&ctx, bound_compute(&ctx, topo, sym, coll, -1, &bound));
	Frac top = bound.rate;
	if (coll == ALLTOALL) {
		best = schedule_of_all(&ctx, line, coll, -1, &text);
		text_free(&text);
		top = best->achieved;
		must(&ctx, pack_path_templates(&ctx, topo, sym, &pack, &bound));
		ok(frac_cmp(bound.rate, top) >= 0, "cuts are no lower than the linear program", line, coll);
	} else {
		must(&ctx, pack_templates(&ctx, topo, sym, coll, &bound, &pack));
	}
	ok(pack, "there are trees without a table of pairs", line, coll);
	if (pack) {
		must(&ctx, sched_build(&ctx, topo, &bound, &ask, "trees", pack, &sched));
		double part = 100 * frac_double(sched->achieved) / frac_double(top);
		ok(frac_cmp(sched->achieved, top) <= 0, "their rate is no higher than the optimum", line, coll);
		sched_write_json(sched, &text);
		must(&ctx, sched_read_compact(&ctx, "x", text.data, text.size, &sched));
		ok(sched_verify(&ctx, "x", sched) == OK, "they are valid", line, coll);
		must(&ctx, sched_expand(&ctx, "x", sched, &all));
		ok(sched_verify(&ctx, "x", all) == OK && same_programs(&ctx, sched, all), "as a list, too", line, coll);
		ok(same_bits(&ctx, all, &text), "they run, to the same bits as a list", line, coll);
		printf("%s %s: %s: %.1f %% of the optimum: at least %d\n", part >= least ? "ok" : "not ok", line,
		    collective_name(coll), part, least);
		text_free(&text);
	}
	ctx_free(&ctx);
}

/* Do paths of one of each orbit cost what all do, where links of an orbit have one length? */
static bool
costs_alike(Ctx *ctx, const Topology *topo, const Symmetry *sym)
{
	int64_t *price;
	Wide few, all;
	must(ctx, NEW(ctx, price, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		price[l] = 1 + sym->link_orbit[l] % 7;
	must(ctx, demands_cost(ctx, "x", topo, ALLTOALL, -1, sym, price, &few));
	must(ctx, demands_cost(ctx, "x", topo, ALLTOALL, -1, NULL, price, &all));
	return few == all && all > 0;
}

/* A machine that lost parts, and a group that leaves some ranks where they are. lost: as --without. stay: ranks that
 * are not moved. */
static const Topology *
machine_that_lost(Ctx *ctx, const char *line, const char *lost, int stay, Collective coll, Symmetry **sym)
{
	const Topology *topo = machine_without(ctx, line, lost);
	int stays = 0;
	must(ctx, topo_symmetry(ctx, topo, -1, SYMMETRY_WHOLE_SERVERS, sym));
	for (int r = 0; r < topo->n_ranks; r++)
		stays += !symmetry_moves(*sym, r);
	ok((*sym)->size > 1 && stays == stay, "servers that lost something stay, the others move", line, coll);
	return topo;
}

/* A compact schedule that was built, as it is read: valid in both forms, and the same to each rank. */
static void
check_both_forms(Ctx *ctx, const Schedule *built, const char *line, Collective coll)
{
	Text text = { 0 };
	Schedule *sched, *all;
	sched_write_json(built, &text);
	must(ctx, sched_read_compact(ctx, "x", text.data, text.size, &sched));
	ok(sched_verify(ctx, "x", sched) == OK, "it is valid", line, coll);
	must(ctx, sched_expand(ctx, "x", sched, &all));
	ok(sched_verify(ctx, "x", all) == OK && frac_cmp(all->achieved, sched->achieved) == 0, "as a list, too", line,
	    coll);
	ok(same_programs(ctx, sched, all), "each rank's part is the same of both", line, coll);
	ok(same_bits(ctx, all, &text), "both give the same bits", line, coll);
	text_free(&text);
}

/* An alltoall over a machine that lost parts: at the optimum. */
static void
test_lost(const char *line, const char *lost, int stay)
{
	const Ask ask = { .coll = ALLTOALL, .root = -1 };
	Ctx ctx;
	Symmetry *sym;
	Bound bound, listed_bound;
	Packing *pack, *best;
	Schedule *sched, *listed;
	ctx_init(&ctx);
	const Topology *topo = machine_that_lost(&ctx, line, lost, stay, ALLTOALL, &sym);
	ok(costs_alike(&ctx, topo, sym), "lengths are added up once for ranks that stay", line, ALLTOALL);
	must(&ctx, bound_compute(&ctx, topo, sym, ALLTOALL, -1, &bound));
	listed_bound = bound;
	must(&ctx, pack_paths(&ctx, topo, NULL, false, &best, &listed_bound));
	must(&ctx, sched_build(&ctx, topo, &listed_bound, &ask, "trees", best, &listed));
	must(&ctx, pack_paths(&ctx, topo, sym, false, &pack, &bound));
	must(&ctx, sched_build(&ctx, topo, &bound, &ask, "trees", pack, &sched));
	double part = frac_double(sched->achieved) / frac_double(listed->achieved),
	    top = frac_double(bound.rate) / frac_double(listed_bound.rate);
	printf("# %s without %s: %.9f of the rate of a list, %.9f of its bound, %d paths for %d\n", line, lost, part,
	    top, pack->n_trees, best->n_trees);
	ok(part > 1 - 1e-6 && part < 1 + 1e-6 && top > 1 - 1e-6 && top < 1 + 1e-6
	    && frac_cmp(sched->achieved, bound.rate) <= 0, "rate and bound are those of a list", line, ALLTOALL);
	check_both_forms(&ctx, sched, line, ALLTOALL);
	ctx_free(&ctx);
}

/* An allgather or reducescatter likewise (images.c). least: of the bound, in percent. */
static void
test_images(const char *line, const char *lost, int stay, Collective coll, double least)
{
	const Ask ask = { .coll = coll, .root = -1 };
	enum { MOST_DEPTH = 6 };
	Ctx ctx;
	Symmetry *sym;
	Bound bound;
	Packing *pack;
	Schedule *sched;
	int depth[64];
	bool serves;
	ctx_init(&ctx);
	const Topology *topo = machine_that_lost(&ctx, line, lost, stay, coll, &sym);
	must(&ctx, pack_images_serves(&ctx, topo, sym, &serves));
	ok(serves, "a few trees are enough", line, coll);
	must(&ctx, bound_compute(&ctx, topo, sym, coll, -1, &bound));
	must(&ctx, pack_images(&ctx, topo, sym, coll, &bound, &pack));
	if (!pack) {
		ok(false, "there are trees", line, coll);
		ctx_free(&ctx);
		return;
	}
	must(&ctx, sched_build(&ctx, topo, &bound, &ask, "trees", pack, &sched));
	double part = 100 * frac_double(sched->achieved) / frac_double(bound.rate);
	printf("# %s without %s: %.6f %% of the bound, %d trees\n", line, lost, part, pack->n_trees);
	ok(part >= least && frac_cmp(sched->achieved, bound.rate) <= 0, "the rate is near the bound, not above it",
	    line, coll);
	ok(pack_depth(pack, depth) <= MOST_DEPTH, "trees have few hops", line, coll);
	check_both_forms(&ctx, sched, line, coll);
	ctx_free(&ctx);
}

int
main(int argc, char **argv)
{
	struct counts counts = { .agree = true };
	state = argc > 1 ? (uint64_t)atoll(argv[1]) : 1;
	int changes = 20 * (argc > 2 ? atoi(argv[2]) : 15);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		for (size_t c = 0; c < sizeof collectives / sizeof *collectives; c++)
			test(lines[i], collectives[c], changes, &counts);
	for (size_t c = 0; c < 4; c++) {
		test_templates("server:4 gpu:4 switch:300 net:25 rails", collectives[c], 100);
		test_templates("server:4 gpu:4 switch:300 nic:4@25 pcie:50 rails", collectives[c], 99);
		test_templates("server:8 gpu:2 switch:50 net:25 leaf:2 oversubscription:2", collectives[c], 99);
		test_templates("server:4 gpu:4 ring:50 net:10", collectives[c], 99);
		test_templates("server:2 gpu:4 mesh:20 net:40", collectives[c], 99);
		test_templates("server:4 gpu:8 switch:100 nic:2@25 pcie:24", collectives[c], 90);
		test_templates("server:3 gpu:4 ring:10 net:40", collectives[c], 90);
		test_templates("server:4 gpu:4 switch:60 mesh:10 net:40 rails", collectives[c], 90);
	}
	test_lost("server:5 gpu:4 switch:300 net:25", "s1/gpu2", 3);
	test_lost("server:5 gpu:4 switch:300 net:25 rails", "s0/gpu2-net/rail2", 4);
	test_lost("server:5 gpu:4 switch:300 nic:4@25 pcie:50 rails", "s0/nic1,s4/gpu0", 7);
	test_lost("server:6 gpu:3 switch:40 net:25 rails", "net/rail1,s2/gpu0-s2/switch:1", 3);
	test_lost("server:5 gpu:4 ring:30 net:25", "s2/gpu1-s2/gpu2,s3/gpu0", 7);
	test_lost("server:7 gpu:2 switch:50 net:25 leaf:2 oversubscription:2", "s3/gpu1", 5);
	for (size_t c = 1; c < 3; c++) {
		test_images("server:5 gpu:4 switch:300 net:25", "s1/gpu2", 3, collectives[c], 99.99);
		test_images("server:5 gpu:4 switch:75 net:25 rails", "s0/gpu2-net/rail2", 4, collectives[c], 99.99);
		test_images("server:6 gpu:3 switch:2@20 net:25 rails", "net/rail1,s2/gpu0-s2/switch:1", 3,
		    collectives[c], 99.99);
		test_images("server:6 gpu:8 switch:90 net:25", "s3/gpu1,s3/gpu2", 6, collectives[c], 99.99);
		test_images("server:7 gpu:2 switch:50 net:25 leaf:2 oversubscription:2", "s3/gpu1", 5, collectives[c],
		    80);
	}
	printf("# changed: %d refused, %d valid, %d invalid\n", counts.refused, counts.valid, counts.invalid);
	return report(!counts.agree || counts.refused < 100 || counts.valid < 10 || counts.invalid < 100,
	    "changed at random, compact schedules are valid where their lists are");
}
