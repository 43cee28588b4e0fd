/* Two sets of links for one message: NVLink and PCIe (Blink 3.4). Each is planned for itself, on the topology of its link
 * classes, and the packings are joined into one schedule: of every block the parts get shares in proportion to their rates, so
 * that in a large message all end together. What smaller messages get, when a part takes time to set up, split.c says.
 *
 * Blink's way (peer) gives up peer access over NVLink for a while, and so PCIe needs a setup. The other way (host) leaves peer
 * access as it is, and sends through the memory of the host: a GPU copies to a CPU, and another GPU from there. Then data cannot
 * turn round in a PCIe switch. So the topology is planned with each PCIe switch cut in two, a copy that leads up, towards CPUs,
 * and one that leads down:
 *
 *	    cpu0                     cpu0
 *	     |                      /    \
 *	    plx0        becomes   plx0   plx0      gpu0 -> plx0 -> cpu0 -> plx0 -> gpu1
 *	    /  \                  /  \   /  \
 *	gpu0    gpu1           gpu0 gpu1 gpu0 gpu1
 *
 * A link, which has one direction, belongs to one copy, so that capacities stay what they are; and copies have the id of the
 * switch, so that a link is known by its ends. */
#include "passes.h"

#include <string.h>

enum { LINK_BUS = 1u << LINK_PCIE | 1u << LINK_QPI };

bool
hybrid_parse(const char *text, HybridKind *out)
{
	static const char *const names[] = {
#define X(name, text, what) text,
		HYBRID_LIST(X)
#undef X
	};
	for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (HybridKind)i;
			return true;
		}
	}
	return false;
}

static bool
is_bus(const Link *link)
{
	return (unsigned)LINK_BUS >> link->class & 1;
}

/* The default classes of a machine without PCIe. */
static Status
other_classes(Ctx *ctx, const Topology *machine, const int *gpu, int n, unsigned *out)
{
	Topology *rest;
	TRY(NEW(ctx, rest, 1));
	*rest = *machine;
	rest->n_links = 0;
	TRY(NEW(ctx, rest->link, machine->n_links));
	for (int l = 0; l < machine->n_links; l++)
		if (!is_bus(&machine->link[l]))
			rest->link[rest->n_links++] = machine->link[l];
	TRY(topo_index(ctx, rest));
	return topo_default_classes(ctx, rest, gpu, n, out);
}

Status
hybrid_parts(Ctx *ctx, const Topology *machine, const int *gpu, int n, HybridKind kind, Part part[2])
{
	for (int i = 1; i < n; i++)
		if (machine->vertex[gpu[i]].node != machine->vertex[gpu[0]].node)
			return fail(ctx, INFEASIBLE, "--hybrid: %s and %s: want GPUs of one server", machine->vertex[gpu[0]].id, machine->vertex[gpu[i]].id);
	part[0] = (Part){ .setup = 0 };
	part[1] = (Part){ .classes = LINK_BUS };
	TRY(other_classes(ctx, machine, gpu, n, &part[0].classes));
	if (!part[0].classes)
		return fail(ctx, INFEASIBLE, "--hybrid: %s: no links but of pcie and qpi: want others beside them", machine->name);
	if (kind == HYBRID_PEER && !topo_peer_access(machine, n, &part[1].setup))
		return fail(ctx, BAD_INPUT, "--hybrid: %s: no peer_accesses: want the time to switch peer access, or --hybrid=host",
		    machine->name);
	return OK;
}

/* ---- through the host ---- */

/* Hops to the nearest CPU over PCIe, by others than GPUs; -1: there is none. */
static Status
find_levels(Ctx *ctx, const Topology *topo, int *level)
{
	int *queue, head = 0, tail = 0;
	TRY(TEMP(ctx, queue, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		level[v] = topo->vertex[v].kind == VERTEX_CPU ? 0 : -1;
		if (level[v] == 0)
			queue[tail++] = v;
	}
	while (head < tail) {
		int v = queue[head++], n_out = topo->first_out[v + 1] - topo->first_out[v];
		for (int i = 0; i < n_out + topo->first_in[v + 1] - topo->first_in[v]; i++) {
			int l = i < n_out ? topo->out[topo->first_out[v] + i] : topo->in[topo->first_in[v] + i - n_out];
			int w = topo->link[l].from == v ? topo->link[l].to : topo->link[l].from;
			if (!is_bus(&topo->link[l]) || w < topo->n_ranks || level[w] >= 0)
				continue;
			level[w] = level[v] + 1;
			queue[tail++] = w;
		}
	}
	return OK;
}

/* Does a link between v, which is split, and w lead up from v, rather than down? */
static Status
leads_up(Ctx *ctx, const Topology *topo, const int *level, int v, int w, bool *up)
{
	const char *name = topo->vertex[v].id;
	if (level[v] < 0)
		return fail(ctx, BAD_INPUT, "--hybrid=host: %s: %s: no CPU above it over pcie: want one to pass", topo->name, name);
	if (w >= topo->n_ranks && level[w] == level[v])
		return fail(ctx, BAD_INPUT, "--hybrid=host: %s: %s and %s: equally far from a CPU: want one above the other", topo->name,
		    name, topo->vertex[w].id);
	*up = w >= topo->n_ranks && level[w] < level[v];
	return OK;
}

/* GPUs and CPUs are whole; another vertex v is copy[v] for links of other classes, then the copy that leads up, then the one that
 * leads down. */
static Status
copy_of_end(Ctx *ctx, const Topology *topo, const int *level, const int *copy, int v, int w, bool leaves, int *out)
{
	bool up = false;
	*out = copy[v];
	if (v < topo->n_ranks || topo->vertex[v].kind == VERTEX_CPU)
		return OK;
	TRY(leads_up(ctx, topo, level, v, w, &up));
	*out += up == leaves ? 1 : 2;
	return OK;
}

/* Every PCIe switch cut in two; links of PCIe between two GPUs go. */
static Status
cut_switches(Ctx *ctx, const Topology *topo, Topology **out)
{
	Topology *cut;
	int *level, *copy;
	TRY(NEW(ctx, cut, 1));
	*cut = *topo;
	TRY(TEMP(ctx, level, topo->n_vertices));
	TRY(TEMP(ctx, copy, topo->n_vertices));
	TRY(NEW(ctx, cut->vertex, 3 * (size_t)topo->n_vertices));
	TRY(NEW(ctx, cut->link, topo->n_links));
	TRY(find_levels(ctx, topo, level));
	cut->n_vertices = cut->n_links = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		bool whole = v < topo->n_ranks || topo->vertex[v].kind == VERTEX_CPU;
		copy[v] = cut->n_vertices;
		for (int i = 0; i < (whole ? 1 : 3); i++) {
			cut->vertex[cut->n_vertices] = topo->vertex[v];
			/* What a PCIe switch could do to data that turns round in it. */
			if (i > 0)
				cut->vertex[cut->n_vertices].multicast = cut->vertex[cut->n_vertices].reduce = false;
			cut->n_vertices++;
		}
	}
	for (int l = 0; l < topo->n_links; l++) {
		Link link = topo->link[l];
		bool bus = is_bus(&link);
		if (bus && link.from < topo->n_ranks && link.to < topo->n_ranks)
			continue;
		link.from = copy[topo->link[l].from];
		link.to = copy[topo->link[l].to];
		if (bus) {
			TRY(copy_of_end(ctx, topo, level, copy, topo->link[l].from, topo->link[l].to, true, &link.from));
			TRY(copy_of_end(ctx, topo, level, copy, topo->link[l].to, topo->link[l].from, false, &link.to));
		}
		cut->link[cut->n_links++] = link;
	}
	*out = cut;
	return topo_index(ctx, cut);
}

/* Copies made one again; links keep their numbers. */
static Status
join_switches(Ctx *ctx, const Topology *cut, Topology **out)
{
	Topology *topo;
	int *whole;
	TRY(NEW(ctx, topo, 1));
	*topo = *cut;
	TRY(TEMP(ctx, whole, cut->n_vertices));
	TRY(NEW(ctx, topo->vertex, cut->n_vertices));
	TRY(NEW(ctx, topo->link, cut->n_links));
	topo->n_vertices = 0;
	for (int v = 0; v < cut->n_vertices; v++) {
		/* Copies follow each other. */
		if (topo->n_vertices == 0 || topo->vertex[topo->n_vertices - 1].id != cut->vertex[v].id)
			topo->vertex[topo->n_vertices++] = cut->vertex[v];
		whole[v] = topo->n_vertices - 1;
	}
	for (int l = 0; l < cut->n_links; l++) {
		topo->link[l] = cut->link[l];
		topo->link[l].from = whole[cut->link[l].from];
		topo->link[l].to = whole[cut->link[l].to];
	}
	*out = topo;
	return topo_index(ctx, topo);
}

Status
hybrid_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Part part[2], HybridKind kind, Topology **plane,
    Topology **job)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	unsigned classes = part[0].classes | part[1].classes;
	Topology *cut = NULL;
	if (kind == HYBRID_HOST) {
		TRY(cut_switches(ctx, machine, &cut));
		TRY(topo_induce(ctx, cut, gpu, n, classes, plane));
		TRY(join_switches(ctx, *plane, job));
	} else {
		TRY(topo_induce(ctx, machine, gpu, n, classes, plane));
		*job = *plane;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- a plan for each part ---- */

struct plan {
	Topology *topo;
	int *link;		/* of each of its links: which one of the plane it is */
	Packing *pack;
	Frac rate;		/* bytes/s, as its own schedule achieves it */
	int64_t sum;		/* of the weights for one demand */
	int64_t times;		/* in the joined packing weights are so many times as large */
};

/* What induction left over is in the same order, so that one walk over both finds each link: by its ends, whose ids are the
 * same pointers, and its class. Of links that are alike in this all stay, or none. */
static Status
map_links(Ctx *ctx, const Topology *plane, struct plan *plan)
{
	TRY(NEW(ctx, plan->link, plan->topo->n_links));
	for (int l = 0, at = 0; l < plan->topo->n_links; l++, at++) {
		const Link *link = &plan->topo->link[l];
		while (plane->vertex[plane->link[at].from].id != plan->topo->vertex[link->from].id
		    || plane->vertex[plane->link[at].to].id != plan->topo->vertex[link->to].id || plane->link[at].class != link->class)
			at++;
		plan->link[l] = at;
	}
	return OK;
}

/* "dgx1v over pcie,qpi": what messages of a part call its topology. */
static Status
name_part(Ctx *ctx, const char *name, const Part *part, const char **out)
{
	Text text = { 0 };
	const char *between = " over ";
	text_put(&text, name);
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		if (!(part->classes >> c & 1))
			continue;
		text_put(&text, between);
		text_put(&text, link_class_name((LinkClass)c));
		between = ",";
	}
	*out = text.failed ? NULL : arena_text(&ctx->run, text.data, text.size);
	text_free(&text);
	return *out ? OK : fail_memory(ctx);
}

static Status
plan_part(Ctx *ctx, const Topology *plane, const Part *part, const Request *ask, struct plan *plan)
{
	Topology named = *plane;
	Symmetry *sym;
	Bound bound, proof;
	Schedule *sched;
	Frac unused;
	int *gpu;
	TRY(NEW(ctx, gpu, plane->n_ranks));
	for (int r = 0; r < plane->n_ranks; r++)
		gpu[r] = r;
	TRY(name_part(ctx, plane->name, part, &named.name));
	TRY(topo_induce(ctx, &named, gpu, plane->n_ranks, part->classes, &plan->topo));
	TRY(map_links(ctx, plane, plan));
	TRY(topo_symmetry(ctx, plan->topo, ask->root, plan_by_symmetry(plan->topo, ask), &sym));
	TRY(bound_compute(ctx, plan->topo, sym, ask->coll, ask->root, &bound));
	TRY(plan_algorithm(ctx, plan->topo, sym, &bound, ask, &plan->pack, &proof, &unused));
	TRY(sched_build(ctx, plan->topo, &proof, ask, algorithm_name(ask->algorithm), plan->pack, &sched));
	plan->rate = sched->achieved;
	for (int t = 0; t < plan->pack->n_trees; t++)
		plan->sum += plan->pack->weight[t];
	plan->sum /= collective_demands(ask->coll, plan->topo->n_ranks);
	talk(ctx, "hybrid: %s: %d trees, %.6g GB/s", plan->topo->name, plan->pack->n_trees, frac_double(plan->rate) / 1e9);
	return OK;
}

/* ---- one schedule of all ---- */

/* By how much a unit of weight must be more than one of the first part, for shares in proportion to rates. */
static bool
times_of(const struct plan *first, const struct plan *plan, Frac *out)
{
	Frac rates, sums;
	return frac_div(plan->rate, first->rate, &rates) && frac_make(first->sum, plan->sum, &sums) && frac_mul(rates, sums, out);
}

/* These brought to whole numbers, the least. */
static Status
scale_weights(Ctx *ctx, const char *label, struct plan *plan, int n, int n_demands)
{
	Frac times;
	int64_t common = 1;
	Wide total = 0;
	bool fits = true;
	for (int i = 0; i < n && fits; i++) {
		Wide least = 0;
		fits = times_of(&plan[0], &plan[i], &times);
		if (fits)
			least = (Wide)common * (times.den / gcd64(common, times.den));
		fits = fits && least <= INT64_MAX;
		common = fits ? (int64_t)least : 1;
	}
	for (int i = 0; i < n && fits; i++) {
		Wide whole = times_of(&plan[0], &plan[i], &times) ? (Wide)times.num * (common / times.den) : 0;
		fits = whole >> PACKING_BITS == 0;
		total += fits ? whole * plan[i].sum * n_demands : 0;
		fits = fits && total >> PACKING_BITS == 0;
		plan[i].times = fits ? (int64_t)whole : 0;
	}
	return fits ? OK : fail(ctx, LIMIT, "%s: the rates of the parts have no common unit of %d bits", label, (int)PACKING_BITS);
}

static Status
map_edges(Ctx *ctx, const struct plan *plan, const Edge *edge, int n, Edge **out)
{
	int n_links = 0, *link;
	for (int e = 0; e < n; e++)
		n_links += edge[e].n_links;
	TRY(NEW(ctx, *out, n));
	TRY(NEW(ctx, link, n_links));
	for (int e = 0; e < n; e++) {
		(*out)[e] = (Edge){ edge[e].src, edge[e].dst, edge[e].n_links, link };
		for (int i = 0; i < edge[e].n_links; i++)
			*link++ = plan->link[edge[e].link[i]];
	}
	return OK;
}

/* Demand by demand, and within a demand part by part. part_of: of each tree. */
static Status
join_packings(Ctx *ctx, const Topology *job, const struct plan *plan, int n, Collective coll, Packing *all, int *part_of)
{
	int next[N_LINK_CLASSES] = { 0 }, n_demands = collective_demands(coll, job->n_ranks);
	for (int d = 0; d < n_demands; d++) {
		for (int i = 0; i < n; i++) {
			const Packing *pack = plan[i].pack;
			for (; next[i] < pack->n_trees && (!pack->demand || pack->demand[next[i]] == d); next[i]++) {
				const Tree *from = &pack->tree[next[i]];
				int t = all->n_trees++;
				all->tree[t] = *from;
				TRY(map_edges(ctx, &plan[i], from->down, from->n_down, &all->tree[t].down));
				TRY(map_edges(ctx, &plan[i], from->up, from->n_up, &all->tree[t].up));
				all->demand[t] = d;
				all->weight[t] = pack->weight[next[i]] * plan[i].times;
				part_of[t] = i;
			}
		}
	}
	return OK;
}

static Status
check_count(Ctx *ctx, const Topology *job, const struct plan *plan, int n, int *trees)
{
	int64_t edges = 0;
	*trees = 0;
	for (int i = 0; i < n; i++) {
		*trees += plan[i].pack->n_trees;
		for (int t = 0; t < plan[i].pack->n_trees; t++)
			edges += plan[i].pack->tree[t].n_down + plan[i].pack->tree[t].n_up;
	}
	if (*trees > LIMIT_TREES || edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: the parts have %d trees with %lld edges: want at most %d and %d", job->name, *trees,
		    (long long)edges, LIMIT_TREES, LIMIT_TREE_EDGES);
	return OK;
}

/* What no algorithm exceeds that uses all links at once. Where the parts reach the bound there is no more to prove. */
static Status
prove(Ctx *ctx, const Topology *job, const struct plan *plan, int n, const Request *ask, Bound *out)
{
	Symmetry *sym;
	Bound bound;
	Packing *unused;
	Request any = *ask;
	Frac sum = FRAC_ZERO;
	bool known = true;
	any.algorithm = ALGORITHM_TREES;
	any.max_depth = 0;
	any.minimise = false;
	for (int i = 0; i < n; i++)
		known = known && frac_add(sum, plan[i].rate, &sum);
	TRY(topo_symmetry(ctx, job, ask->root, plan_by_symmetry(job, &any), &sym));
	TRY(bound_compute(ctx, job, sym, ask->coll, ask->root, &bound));
	*out = bound;
	if (known && frac_cmp(sum, bound.rate) >= 0)
		return OK;
	talk(ctx, "hybrid: what all links together could do:");
	return pack_exact(ctx, job, sym, &bound, NULL, &any, &unused, out);
}

Status
plan_hybrid(Ctx *ctx, const Topology *plane, const Topology *job, const Part *part, int n, const Request *ask, Schedule **out)
{
	struct plan plan[N_LINK_CLASSES] = { { 0 } };
	Packing all = { .unit = FRAC_ONE };
	Bound proof;
	Schedule *sched;
	int *part_of, n_trees;
	for (int i = 0; i < n; i++)
		TRY(plan_part(ctx, plane, &part[i], ask, &plan[i]));
	TRY(check_count(ctx, job, plan, n, &n_trees));
	TRY(scale_weights(ctx, job->name, plan, n, collective_demands(ask->coll, job->n_ranks)));
	TRY(NEW(ctx, all.tree, n_trees));
	TRY(NEW(ctx, all.demand, n_trees));
	TRY(NEW(ctx, all.weight, n_trees));
	TRY(NEW(ctx, part_of, n_trees));
	TRY(join_packings(ctx, job, plan, n, ask->coll, &all, part_of));
	TRY(prove(ctx, job, plan, n, ask, &proof));
	TRY(sched_build(ctx, job, &proof, ask, algorithm_name(ask->algorithm), &all, &sched));
	sched->n_parts = n;
	TRY(NEW(ctx, sched->part, n));
	memcpy(sched->part, part, (size_t)n * sizeof *part);
	for (int t = 0; t < n_trees; t++)
		sched->segment[t].part = part_of[t];
	TRY(sched_parts(ctx, job->name, sched, sched->part));
	*out = sched;
	return OK;
}
