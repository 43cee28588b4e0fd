/* An alltoall over machines so large and so symmetric that a schedule is a few paths and their images: a path for each
 * pair of ranks of which the first stands for its orbit. A group that moves every rank, each to as many as it has
 * elements, takes these pairs to all others:
 *
 *     2048 ranks in servers of 8, one orbit of ranks:  4192256 pairs, images of 2047
 *     the same with two kinds of GPUs in a server:     4192256 pairs, images of 4094
 *
 * Paths are the cheapest under prices of links, from each representative to all others in one search (Dijkstra), over
 * switches and ranks, which then pass data on; of those that cost the same one with the fewest hops. Prices follow
 * loads, round by round, as in templates.c: all images of a path load the links of an orbit equally. The rounds so far
 * with the highest rate are the packing, in which paths that several rounds have found are one, of more weight.
 *
 * Cuts around what the group's maps make of a representative, as its server and its row of servers, often prove that no
 * rate is higher, where cuts around single ranks do not. */
#include "base/array.h"
#include "base/heap.h"
#include "graph/flow.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/alltoall/path_tree.h"
#include "schedule/schedule.h"

#include <string.h>

enum { ROUNDS = 256, MOST_FOUND = 1 << 22, PRICE_BITS = 28, STEEP = 1000 };

/* The cheapest path from the representative. */
struct label {
	int64_t cost;
	int hops, by;		/* between ranks; the last link, -1: none */
	bool done;
};

struct waiting {
	int64_t cost;
	int hops, vertex;
};

/* A path of a demand: links[first] to links[first + n - 1]. */
struct known {
	int first, n, next;	/* another one of this demand; -1: none */
	int64_t weight;		/* rounds that have it */
};

struct search {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	int64_t *price, *load;		/* of each link; of each orbit: uses by paths of representatives, so far */
	int64_t *capacity;		/* of all links of an orbit */
	struct label *label;
	struct waiting *waiting;
	int n_waiting, waiting_room;
	int n_demands;			/* pairs that begin at a representative */
	int *head;			/* of each demand: its known paths, in the order in which they were found */
	int n_known, known_room, n_links, links_room;
	struct known *known;
	int *link;
	int *found[ROUNDS];		/* of each demand: what the round found */
	Frac best;			/* the rate of a demand with the rounds that are kept */
	int n_kept;
};

/* ---- the cheapest paths ---- */

static bool
before(const struct waiting *a, const struct waiting *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return a->hops != b->hops ? a->hops < b->hops : a->vertex < b->vertex;
}

#define BEFORE(of, a, b) before(&(a), &(b))
HEAP(put_waiting, struct search, struct waiting, BEFORE, HEAP_UNMOVED)

static Status
push(struct search *s, struct waiting one)
{
	TRY(GROW_TEMP(s->ctx, s->waiting, s->n_waiting, s->waiting_room));
	s->n_waiting++;
	put_waiting(s, s->waiting, s->n_waiting, s->n_waiting - 1, one);
	return OK;
}

static struct waiting
pop(struct search *s)
{
	struct waiting top = s->waiting[0];
	if (--s->n_waiting > 0)
		put_waiting(s, s->waiting, s->n_waiting, 0, s->waiting[s->n_waiting]);
	return top;
}

static Status
find_labels(struct search *s, int source)
{
	const Topology *topo = s->topo;
	for (int v = 0; v < topo->n_vertices; v++)
		s->label[v] = (struct label){ .cost = INT64_MAX, .by = -1 };
	s->label[source].cost = s->n_waiting = 0;
	TRY(push(s, (struct waiting){ 0, 0, source }));
	while (s->n_waiting > 0) {
		struct waiting at = pop(s);
		if (s->label[at.vertex].done)
			continue;
		s->label[at.vertex].done = true;
		for (int i = topo->first_out[at.vertex]; i < topo->first_out[at.vertex + 1]; i++) {
			int l = topo->out[i], v = topo->link[l].to, hops = at.hops + (v < topo->n_ranks);
			struct label *label = &s->label[v];
			int64_t cost = at.cost + s->price[l];
			if (label->done || cost > label->cost || (cost == label->cost && hops >= label->hops))
				continue;
			*label = (struct label){ .cost = cost, .hops = hops, .by = l };
			TRY(push(s, (struct waiting){ cost, hops, v }));
		}
	}
	return OK;
}

/* ---- what rounds find ---- */

/* A path that ends the list of links may be known already. Where the number of it goes. */
static Status
keep_path(struct search *s, int demand, int n, int *out)
{
	const int *link = s->link + s->n_links;
	int *end = &s->head[demand];
	for (; *end >= 0; end = &s->known[*end].next) {
		const struct known *k = &s->known[*end];
		if (k->n == n && memcmp(s->link + k->first, link, (size_t)n * sizeof *link) == 0) {
			*out = *end;
			return OK;
		}
	}
	*out = *end = s->n_known;
	TRY(GROW_TEMP(s->ctx, s->known, s->n_known, s->known_room));
	s->known[s->n_known++] = (struct known){ s->n_links, n, -1, 0 };
	s->n_links += n;
	return OK;
}

static Status
take_path(struct search *s, int demand, int to, int *out)
{
	const Topology *topo = s->topo;
	int n = 0, between = 0;
	for (int v = to; s->label[v].by >= 0; v = topo->link[s->label[v].by].from, n++) {
		between = v < topo->n_ranks ? 1 : between + 1;
		if (between > LIMIT_ROUTE_LINKS)
			return fail(s->ctx, LIMIT, "%s: a route needs more than %d links", topo->name,
			    LIMIT_ROUTE_LINKS);
		TRY(GROW_TEMP(s->ctx, s->link, s->n_links + n, s->links_room));
	}
	for (int v = to, at = s->n_links + n; s->label[v].by >= 0; v = topo->link[s->label[v].by].from) {
		s->link[--at] = s->label[v].by;
		s->load[s->sym->link_orbit[s->label[v].by]] += s->sym->size;
	}
	return keep_path(s, demand, n, out);
}

/* Prices of an orbit: as the capacity of its links has it, and up to 1 + STEEP times that where the load is highest,
 * with the eighth power of the load: links that are far from the highest cost little, as none in the optimum. */
static void
set_prices(struct search *s)
{
	const Topology *topo = s->topo;
	int64_t unit = topo_link_unit(topo), most = 0;
	for (int o = 0; o < s->sym->n_orbits; o++) {
		int64_t load = (int64_t)(((Wide)s->load[o] << 20) / (s->capacity[o] / unit + 1));
		most = load > most ? load : most;
	}
	for (int l = 0; l < topo->n_links; l++) {
		int o = s->sym->link_orbit[l];
		int64_t load = (int64_t)(((Wide)s->load[o] << 20) / (s->capacity[o] / unit + 1));
		int64_t part = most ? (int64_t)(((Wide)load << 10) / most) : 0;
		int64_t square = part * part >> 10, fourth = square * square >> 10;
		Wide base = ((Wide)1 << PRICE_BITS) / (topo->link[l].capacity / unit) + 1;
		s->price[l] = (int64_t)(base * ((1 << 20) + STEEP * fourth * fourth) >> 20);
	}
}

/* *good: false: some rank is not reached. */
static Status
one_round(struct search *s, int round, bool *good)
{
	int demand = 0;
	set_prices(s);
	TRY(TEMP(s->ctx, s->found[round], s->n_demands));
	for (int i = 0; i < s->sym->n_representatives; i++) {
		int from = s->sym->representative[i];
		TRY(find_labels(s, from));
		for (int to = 0; to < s->topo->n_ranks && *good; to++) {
			if (to == from)
				continue;
			*good = s->label[to].done;
			if (*good)
				TRY(take_path(s, demand, to, &s->found[round][demand]));
			demand++;
		}
	}
	return OK;
}

/* The least capacity by load of any orbit, times the rounds. */
static void
keep_rounds(struct search *s, int rounds)
{
	Wide num = 0, den = 1;
	for (int o = 0; o < s->sym->n_orbits; o++)
		if (s->load[o] > 0 && (num == 0 || ratio_cmp(s->capacity[o], s->load[o], num, den) < 0)) {
			num = s->capacity[o];
			den = s->load[o];
		}
	Frac rate;
	if (num == 0 || !frac_make(num * rounds, den, &rate) || frac_cmp(rate, s->best) <= 0)
		return;
	s->best = rate;
	s->n_kept = rounds;
}

/* ---- the packing ---- */

static int
count_kept(struct search *s)
{
	int n = 0;
	for (int k = 0; k < s->n_known; k++)
		s->known[k].weight = 0;
	for (int i = 0; i < s->n_kept; i++)
		for (int d = 0; d < s->n_demands; d++)
			s->known[s->found[i][d]].weight++;
	for (int k = 0; k < s->n_known; k++)
		n += s->known[k].weight > 0;
	return n;
}

/* n: paths that are kept. */
static Status
make_packing(struct search *s, int n, Packing **out)
{
	Packing *pack;
	TRY(pack_new(s->ctx, n, true, &pack));
	pack->unit = FRAC_ONE;
	pack->symmetry = s->sym;
	int ranks = s->topo->n_ranks;
	for (int d = 0; d < s->n_demands; d++) {
		int from = s->sym->representative[d / (ranks - 1)], to = d % (ranks - 1);
		for (int k = s->head[d]; k >= 0; k = s->known[k].next) {
			if (s->known[k].weight == 0)
				continue;
			TRY(pack_path_tree(s->ctx, s->topo, s->link + s->known[k].first, s->known[k].n,
			    &pack->tree[pack->n_trees]));
			pack->demand[pack->n_trees] = collective_demand_of(ALLTOALL, ranks, -1, from,
			    to + (to >= from));
			pack->weight[pack->n_trees++] = s->known[k].weight;
		}
	}
	*out = pack;
	return OK;
}

/* ---- the bound ---- */

struct side {
	Ctx *ctx;
	const Topology *topo;
	Flow flow;
	bool *inside;		/* of each rank */
	int *part;
};

/* The least capacity between the ranks inside and the others. */
static Status
try_side(struct side *side, Bound *proof)
{
	const Topology *topo = side->topo;
	Bound cut = { .kind = CERTIFICATE_CUT };
	int inside = 0;
	for (int r = 0; r < topo->n_ranks; r++)
		inside += side->inside[r];
	if (inside == 0 || inside == topo->n_ranks)
		return OK;
	flow_reset(&side->flow, 1, false);
	for (int r = 0; r < topo->n_ranks; r++)
		(side->inside[r] ? flow_from_source : flow_to_sink)(&side->flow, r, FLOW_INFINITE);
	flow_max(&side->flow);
	cut.part = side->part;
	for (int v = 0; v < topo->n_vertices; v++)
		cut.part[v] = flow_side(&side->flow, v);
	TRY(bound_from_certificate(side->ctx, topo->name, topo, ALLTOALL, -1, &cut, &cut.rate));
	if (frac_cmp(cut.rate, proof->rate) >= 0)
		return OK;
	TRY(NEW(side->ctx, cut.part, topo->n_vertices));
	memcpy(cut.part, side->part, (size_t)topo->n_vertices * sizeof *cut.part);
	*proof = cut;
	return OK;
}

/* Those that maps `first` to `last` - 1 make of a rank, with all ranks of their servers, or without. */
static void
grow_side(struct side *side, const Symmetry *sym, int first, int last, int rank, int *queue, bool *node)
{
	const Topology *topo = side->topo;
	int n = 0;
	memset(side->inside, 0, (size_t)topo->n_ranks * sizeof *side->inside);
	queue[n++] = rank;
	side->inside[rank] = true;
	for (int at = 0; at < n; at++)
		for (int m = first; m < last; m++) {
			int image = sym->map[m].vertex[queue[at]];
			if (!side->inside[image])
				queue[n++] = image;
			side->inside[image] = true;
		}
	if (!node)
		return;
	memset(node, 0, (size_t)topo->n_nodes * sizeof *node);
	for (int r = 0; r < topo->n_ranks; r++)
		if (side->inside[r] && topo->vertex[r].node >= 0)
			node[topo->vertex[r].node] = true;
	for (int r = 0; r < topo->n_ranks; r++)
		if (topo->vertex[r].node >= 0)
			side->inside[r] = node[topo->vertex[r].node];
}

static Status
prove(Ctx *ctx, const Topology *topo, const Symmetry *sym, Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct side side = { .ctx = ctx, .topo = topo };
	int *queue;
	bool *node;
	TRY(flow_new(ctx, topo, &side.flow));
	TRY(TEMP(ctx, side.inside, topo->n_ranks));
	TRY(TEMP(ctx, side.part, topo->n_vertices));
	TRY(TEMP(ctx, queue, topo->n_ranks));
	TRY(TEMP(ctx, node, topo->n_nodes));
	for (int i = 0; i < sym->n_representatives; i++) {
		int rank = sym->representative[i];
		for (int m = 0; m <= sym->n_maps && !out_of_time(ctx, 4 * FLOW_WORK(topo)); m++) {
			grow_side(&side, sym, 0, m, rank, queue, NULL);
			TRY(try_side(&side, proof));
			grow_side(&side, sym, 0, m, rank, queue, node);
			TRY(try_side(&side, proof));
			grow_side(&side, sym, m, sym->n_maps, rank, queue, NULL);
			TRY(try_side(&side, proof));
			grow_side(&side, sym, m, sym->n_maps, rank, queue, node);
			TRY(try_side(&side, proof));
		}
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- all of it ---- */

static Status
new_search(struct search *s)
{
	const Topology *topo = s->topo;
	size_t m = (size_t)topo->n_links;
	TRY(TEMP(s->ctx, s->price, m));
	TRY(TEMP(s->ctx, s->load, m));
	TRY(TEMP(s->ctx, s->capacity, m));
	TRY(TEMP(s->ctx, s->label, topo->n_vertices));
	TRY(TEMP(s->ctx, s->head, s->n_demands));
	memset(s->head, -1, (size_t)s->n_demands * sizeof *s->head);
	for (int l = 0; l < topo->n_links; l++)
		s->capacity[s->sym->link_orbit[l]] += topo->link[l].capacity;
	return OK;
}

Status
pack_path_templates(Ctx *ctx, const Topology *topo, const Symmetry *sym, Packing **out, Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t n = topo->n_ranks, demands = (int64_t)sym->n_representatives * (n - 1);
	struct search s = { .ctx = ctx, .topo = topo, .sym = sym, .n_demands = (int)demands, .best = FRAC_ZERO };
	Frac top;
	bool good = true;
	*out = NULL;
	if (sym->size < 2 || (int64_t)sym->n_representatives * sym->size != n || demands > LIMIT_TREES
	    || n * (n - 1) > LIMIT_PATH_IMAGES || topo->route)
		return OK;
	TRY(prove(ctx, topo, sym, proof));
	TRY(new_search(&s));
	if (!frac_div(proof->rate, (Frac){ collective_shares(ALLTOALL, topo->n_ranks), 1 }, &top))
		return OK;
	for (int i = 0; i < ROUNDS && i <= MOST_FOUND / demands && good && (i == 0 || frac_cmp(s.best, top) < 0)
	    && progress(ctx, "paths of %d GPUs: round %d", topo->n_ranks, i + 1) > 0; i++) {
		TRY(one_round(&s, i, &good));
		/* The more paths the larger is the file, and what a reader lists. */
		if (good && s.n_known <= LIMIT_TREES && (int64_t)s.n_known * sym->size <= LIMIT_PATH_IMAGES)
			keep_rounds(&s, i + 1);
	}
	if (s.n_kept > 0)
		TRY(make_packing(&s, count_kept(&s), out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
