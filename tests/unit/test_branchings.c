/* Packings without a linear program, of 500 irregular machines of up to 64 GPUs each. By maximum flows: the optimum is
 * found here by augmenting paths in a matrix (Ford and Fulkerson), and for blocks by taking the worst cut of the rate
 * so far until no cut is violated. Trees are walked, and their loads added up, one by one; and again where they have
 * exchanged edges to be less deep. */
#include "plan/pack/flow/flow.h"
#include "plan/pack/linear/linear.h"
#include "plan/plan.h"
#include "quick.h"
#include "random.h"
#include "topology/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINES = 500, MOST = 64, MOST_VERTICES = MOST + 6, MOST_LINKS = MOST * 8, SOURCE = MOST, FEW = 12 };

struct machine {
	Topology topo;
	Vertex vertex[MOST_VERTICES];
	Link link[MOST_LINKS];
};

static int64_t room[MOST + 1][MOST + 1];
static int before[MOST + 1];
static int failures;

static void
ok(bool right, int machine, Collective coll, const char *what)
{
	if (!right)
		printf("# machine %d, %s: not so: %s\n", machine, collective_name(coll), what);
	failures += !right;
}

static void
join(struct machine *m, int from, int to, int capacity)
{
	if (from == to || m->topo.n_links == MOST_LINKS)
		return;
	for (int l = 0; l < m->topo.n_links; l++)
		if (m->link[l].from == from && m->link[l].to == to)
			return;
	m->link[m->topo.n_links++] = (Link){ .from = from, .to = to, .count = 1, .capacity = capacity * 1000 };
}

/* A link each way, of the same capacity. */
static void
join_both(struct machine *m, int a, int b, int capacity)
{
	join(m, a, b, capacity);
	join(m, b, a, capacity);
}

/* Without links. */
static void
clear(struct machine *m, int n, int switches)
{
	m->topo = (Topology){ .name = "machine", .n_nodes = 1, .n_ranks = n, .n_vertices = n + switches,
		.vertex = m->vertex, .link = m->link };
	for (int v = 0; v < n + switches; v++)
		m->vertex[v] = v < n ? (Vertex){ .id = "v", .kind = VERTEX_GPU, .node = 0 }
		    : (Vertex){ .id = "v", .kind = VERTEX_SWITCH, .node = -1 };
}

/* Neighbours of earlier ranks both ways, and other links: of capacities that differ, or all of one. */
static Status
make(Ctx *ctx, struct machine *m, int n)
{
	int widest = below(2) ? 1 : 7;
	clear(m, n, 0);
	for (int v = 1; v < n; v++) {
		int u = below(v);
		join(m, u, v, 1 + below(widest));
		join(m, v, u, 1 + below(widest));
	}
	for (int more = below(5 * n); more > 0; more--)
		join(m, below(n), below(n), 1 + below(widest));
	return topo_index(ctx, &m->topo);
}

/* One path of breadth-first search at a time; before[v] is -1 beyond the cut in the end. */
static int64_t
flow_into(int sink)
{
	for (int64_t total = 0;;) {
		int queue[MOST + 1], head = 0, tail = 0;
		int64_t most = INT64_MAX;
		memset(before, -1, sizeof before);
		before[SOURCE] = SOURCE;
		queue[tail++] = SOURCE;
		while (head < tail && before[sink] < 0) {
			int v = queue[head++];
			for (int w = 0; w <= MOST; w++) {
				if (before[w] < 0 && room[v][w] > 0) {
					before[w] = v;
					queue[tail++] = w;
				}
			}
		}
		if (before[sink] < 0)
			return total;
		for (int v = sink; v != SOURCE; v = before[v])
			most = room[before[v]][v] < most ? room[before[v]][v] : most;
		for (int v = sink; v != SOURCE; v = before[v]) {
			room[before[v]][v] -= most;
			room[v][before[v]] += most;
		}
		total += most;
	}
}

/* Each link has `times` its capacity, and from the source `own` goes to each rank, or to the root alone. */
static int64_t
flow_of(const struct machine *m, bool against, int64_t times, int root, int64_t own, int sink)
{
	memset(room, 0, sizeof room);
	for (int l = 0; l < m->topo.n_links; l++) {
		const Link *link = &m->link[l];
		room[against ? link->to : link->from][against ? link->from : link->to] = link->capacity * times;
	}
	for (int v = 0; v < m->topo.n_ranks; v++)
		room[SOURCE][v] = root < 0 || v == root ? own : 0;
	return flow_into(sink);
}

/* Of the cut that the last flow found: what enters, by the roots that are outside. */
static void
take_cut(const struct machine *m, bool against, int64_t *num, int64_t *den)
{
	*num = *den = 0;
	for (int l = 0; l < m->topo.n_links; l++) {
		int from = against ? m->link[l].to : m->link[l].from, to = against ? m->link[l].from : m->link[l].to;
		*num += before[from] >= 0 && before[to] < 0 ? m->link[l].capacity : 0;
	}
	for (int v = 0; v < m->topo.n_ranks; v++)
		*den += before[v] >= 0;
}

/* Bytes/s of each root: num / den. */
static void
optimum(const struct machine *m, Collective coll, int root, int64_t *num, int64_t *den)
{
	bool against = collective_reduces(coll), again = true;
	*num = INT64_MAX;
	*den = 1;
	for (int v = 0; v < m->topo.n_ranks && root >= 0; v++) {
		int64_t flow = v == root ? INT64_MAX : flow_of(m, against, 1, root, INT64_MAX, v);
		*num = flow < *num ? flow : *num;
	}
	if (root < 0)
		*num = INT32_MAX;
	while (root < 0 && again) {
		again = false;
		for (int v = 0; v < m->topo.n_ranks && !again; v++) {
			again = flow_of(m, against, *den, -1, *num, v) < *num * m->topo.n_ranks;
			if (again)
				take_cut(m, against, num, den);
		}
	}
}

/* Does each rank but the root have one edge that leads away from it, to or from a rank that had one? */
static bool
spans(const Tree *tree, int n, int root, bool against)
{
	bool has[MOST] = { false };
	int edges = against ? tree->n_up : tree->n_down;
	has[root] = true;
	for (int i = 0; i < edges; i++) {
		const Edge *e = against ? &tree->up[edges - 1 - i] : &tree->down[i];
		int near = against ? e->dst : e->src, far = against ? e->src : e->dst;
		if (!has[near] || has[far])
			return false;
		has[far] = true;
	}
	return edges == n - 1;
}

/* Its links are a walk from one end to the other, over switches. */
static bool
add_edge(const struct machine *m, const Edge *edge, int64_t weight, Wide *load)
{
	int at = edge->src;
	for (int i = 0; i < edge->n_links; i++) {
		const Link *link = &m->link[edge->link[i]];
		if (link->from != at || (i > 0 && at < m->topo.n_ranks))
			return false;
		at = link->to;
		load[edge->link[i]] += weight;
	}
	return at == edge->dst;
}

static void
check_packing(const struct machine *m, int machine, const Ask *ask, const Packing *pack, int64_t num, int64_t den)
{
	static Wide load[MOST_LINKS];
	Wide sent[MOST] = { 0 };
	bool against = collective_reduces(ask->coll), fits = true, full = true, trees = true;
	memset(load, 0, sizeof load);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		int root = ask->root < 0 ? pack->demand[t] : ask->root;
		trees = trees && spans(tree, m->topo.n_ranks, root, against);
		sent[root] += pack->weight[t];
		for (int i = 0; i < tree->n_down + tree->n_up; i++)
			trees = add_edge(m, tree_edge(tree, i), pack->weight[t], load) && trees;
	}
	for (int l = 0; l < m->topo.n_links; l++)
		fits = fits && load[l] * pack->unit.num <= (Wide)m->link[l].capacity * pack->unit.den;
	for (int v = 0; v < m->topo.n_ranks; v++)
		full = full && ((ask->root >= 0 && v != ask->root)
		    || sent[v] * pack->unit.num * den == (Wide)num * pack->unit.den);
	ok(trees, machine, ask->coll, "each tree is one");
	ok(fits, machine, ask->coll, "no link carries more than it can");
	ok(full, machine, ask->coll, "each root has the optimum");
}

/* Depths of all packings, before and after trees exchanged edges. */
static int64_t deep, less_deep, exact_trees, near_trees;

/* The packing after that; the same one where it is no less deep. */
static const Packing *
shallower(Ctx *ctx, const struct machine *m, int machine, Collective coll, const Packing *pack)
{
	int work[MOST], before_depth = pack_depth(pack, work), depth = before_depth;
	bool same = true;
	Packing *less;
	if (pack_shallower(ctx, &m->topo, pack, &less) != OK)
		exit(1);
	for (int t = 0; less && t < pack->n_trees; t++)
		same = same && less->weight[t] == pack->weight[t] && less->tree[t].root == pack->tree[t].root;
	depth = less ? pack_depth(less, work) : depth;
	ok(!less || (depth < before_depth && less->n_trees == pack->n_trees && same), machine, coll,
	    "exchanges make trees less deep, and leave weights and roots");
	deep += before_depth;
	less_deep += depth;
	return less ? less : pack;
}

static void
check_machine(int machine)
{
	static const Collective colls[] = { BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER };
	static struct machine m;
	int n = 3 + machine % (MOST - 2);
	Collective coll = colls[machine / 3 % 4];
	const Ask ask = { .coll = coll, .root = collective_rooted(coll) ? below(n) : -1, .packing = PACKING_EXACT,
		.minimise = true };
	Ctx ctx;
	Symmetry *none;
	Packing *pack = NULL;
	Bound bound = { .kind = CERTIFICATE_CUT }, ours;
	int64_t num, den;
	ctx_init(&ctx);
	if (make(&ctx, &m, n) != OK || topo_symmetry(&ctx, &m.topo, -1, SYMMETRY_NONE, &none) != OK)
		exit(1);
	optimum(&m, coll, ask.root, &num, &den);
	if (!frac_make((Wide)num * collective_shares(coll, n), den, &bound.rate))
		exit(1);
	ok(pack_branchings(&ctx, &m.topo, &bound, &ask, &pack) == OK && pack, machine, coll, "there is a packing");
	if (pack) {
		check_packing(&m, machine, &ask, pack, num, den);
		check_packing(&m, machine, &ask, shallower(&ctx, &m, machine, coll, pack), num, den);
	}
	ok(bound_compute(&ctx, &m.topo, none, coll, ask.root, &ours) == OK && frac_cmp(ours.rate, bound.rate) == 0,
	    machine, coll, "the bound is the optimum");
	/* A rate above it has none: one more byte/s. */
	pack = NULL;
	if (frac_add(bound.rate, FRAC_ONE, &bound.rate))
		ok(pack_branchings(&ctx, &m.topo, &bound, &ask, &pack) == OK && !pack, machine, coll, "none is better");
	ctx_free(&ctx);
}

static Status
bound_of(Ctx *ctx, const struct machine *m, Collective coll, int root, Symmetry **none, Bound *bound)
{
	TRY(topo_symmetry(ctx, &m->topo, -1, SYMMETRY_NONE, none));
	return bound_compute(ctx, &m->topo, *none, coll, root, bound);
}

/* ---- switches ---- */

/* Each GPU is on a switch, and some on others, too, or on each other; the switches are a tree. even: as much capacity
 * into each switch as out of it. */
static Status
make_switched(Ctx *ctx, struct machine *m, int n, bool even)
{
	int widest = below(3) ? 7 : 1, switches = 1 + below(n / 2 < 6 ? n / 2 : 6);
	clear(m, n, switches);
	for (int w = 1; w < switches; w++)
		join_both(m, n + below(w), n + w, 1 + below(3 * widest));
	for (int v = 0; v < n; v++)
		join_both(m, v, n + below(switches), 1 + below(widest));
	for (int more = below(2 * n); more > 0; more--)
		join_both(m, below(n), below(n + switches), 1 + below(widest));
	for (int more = even ? 0 : 1 + below(4); more > 0; more--)
		m->link[below(m->topo.n_links)].capacity = (1 + below(widest)) * 1000;
	return topo_index(ctx, &m->topo);
}

/* The rate of the linear program over all trees, exactly. */
static bool
by_program(Ctx *ctx, const struct machine *m, const Bound *bound, const Ask *ask, Frac *rate)
{
	Ask exact = *ask;
	Symmetry *none;
	Packing *pack;
	Bound proof = *bound;
	exact.minimise = false;
	if (topo_symmetry(ctx, &m->topo, -1, SYMMETRY_NONE, &none) != OK
	    || pack_exact(ctx, &m->topo, none, bound, NULL, &exact, &pack, &proof) != OK || !pack)
		exit(1);
	return proof.reached && pack_rate(pack, ask->coll, m->topo.n_ranks, rate);
}

/* Where no switch has more on one side, trees are at the bound; elsewhere most of those that are. Of few GPUs the
 * linear program knows. */
static void
check_switched(int machine, int n, bool even, int *missed)
{
	static const Collective colls[] = { BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER };
	static struct machine m;
	Collective coll = colls[machine % 4];
	const Ask ask = { .coll = coll, .root = collective_rooted(coll) ? below(n) : -1, .packing = PACKING_EXACT,
		.minimise = true };
	Ctx ctx;
	Symmetry *none;
	Packing *pack = NULL;
	Bound bound;
	Frac rate, part;
	ctx_init(&ctx);
	if (make_switched(&ctx, &m, n, even) != OK || bound_of(&ctx, &m, coll, ask.root, &none, &bound) != OK
	    || !frac_div(bound.rate, (Frac){ collective_shares(coll, n), 1 }, &part))
		exit(1);
	ok(pack_branchings(&ctx, &m.topo, &bound, &ask, &pack) == OK && (pack || !even), machine, coll,
	    "there is a packing with switches");
	if (pack) {
		check_packing(&m, machine, &ask, pack, (int64_t)part.num, part.den);
		check_packing(&m, machine, &ask, shallower(&ctx, &m, machine, coll, pack), (int64_t)part.num, part.den);
	}
	if (n <= FEW) {
		bool known = by_program(&ctx, &m, &bound, &ask, &rate), same = known && frac_cmp(rate, bound.rate) == 0;
		ok(same || !pack, machine, coll, "the linear program has the same rate");
		*missed += same && !pack;
	}
	ctx_free(&ctx);
}

/* ---- allreduce ---- */

static Status
make_duplex(Ctx *ctx, struct machine *m, int n)
{
	int widest = below(2) ? 1 : 7;
	clear(m, n, 0);
	for (int v = 1; v < n; v++)
		join_both(m, below(v), v, 1 + below(widest));
	for (int more = below(2 * n); more > 0; more--)
		join_both(m, below(n), below(n), 1 + below(widest));
	return topo_index(ctx, &m->topo);
}

static void
check_allreduce(const struct machine *m, int machine, const Bound *bound, const Packing *pack)
{
	static Wide load[MOST_LINKS];
	bool trees = true, fits = true;
	Frac rate;
	memset(load, 0, sizeof load);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		trees = trees && spans(tree, m->topo.n_ranks, tree->root, false)
		    && spans(tree, m->topo.n_ranks, tree->root, true);
		for (int i = 0; i < tree->n_down + tree->n_up; i++)
			trees = add_edge(m, tree_edge(tree, i), pack->weight[t], load) && trees;
	}
	for (int l = 0; l < m->topo.n_links; l++)
		fits = fits && load[l] * pack->unit.num <= (Wide)m->link[l].capacity * pack->unit.den;
	ok(trees, machine, ALLREDUCE, "each tree leads up and down");
	ok(fits, machine, ALLREDUCE, "no link carries more than it can");
	ok(pack_rate(pack, ALLREDUCE, m->topo.n_ranks, &rate) && frac_cmp(rate, bound->rate) == 0, machine, ALLREDUCE,
	    "the rate is the bound");
}

/* With a tolerance the rate is within it, and trees may be fewer. */
static void
check_tolerance(Ctx *ctx, const struct machine *m, int machine, const Bound *bound, const Packing *exact)
{
	const Ask ask = { .coll = ALLREDUCE, .root = -1, .packing = PACKING_EXACT, .tolerance = { 1, 10 },
		.minimise = true };
	Packing *pack = NULL;
	Frac rate, least;
	ok(pack_branchings(ctx, &m->topo, bound, &ask, &pack) == OK && pack, machine, ALLREDUCE,
	    "there is a packing within a tolerance");
	if (!pack || !frac_mul(bound->rate, (Frac){ 9, 10 }, &least))
		return;
	ok(pack_rate(pack, ALLREDUCE, m->topo.n_ranks, &rate) && frac_cmp(rate, least) >= 0
	    && frac_cmp(rate, bound->rate) <= 0, machine, ALLREDUCE, "the rate is within the tolerance");
	exact_trees += exact->n_trees;
	near_trees += pack->n_trees;
}

/* An allreduce over full-duplex links, behind switches or direct ones, is at its bound: of a partition that is computed
 * elsewhere. */
static void
check_oriented(int machine, bool direct)
{
	static struct machine m;
	const Ask ask = { .coll = ALLREDUCE, .root = -1, .packing = PACKING_EXACT, .minimise = true };
	int n = 3 + machine % (MOST - 2);
	Symmetry *none;
	Packing *pack = NULL;
	Bound bound;
	Ctx ctx;
	ctx_init(&ctx);
	if ((direct ? make_duplex(&ctx, &m, n) : make_switched(&ctx, &m, n, true)) != OK
	    || bound_of(&ctx, &m, ALLREDUCE, -1, &none, &bound) != OK)
		exit(1);
	ok(pack_branchings(&ctx, &m.topo, &bound, &ask, &pack) == OK && pack, machine, ALLREDUCE,
	    direct ? "there is a packing over direct links" : "there is a packing with switches");
	if (pack) {
		check_allreduce(&m, machine, &bound, pack);
		check_allreduce(&m, machine, &bound, shallower(&ctx, &m, machine, ALLREDUCE, pack));
		check_tolerance(&ctx, &m, machine, &bound, pack);
	}
	/* A rate above it has no trees: one more byte/s. */
	pack = NULL;
	if (frac_add(bound.rate, FRAC_ONE, &bound.rate))
		ok(pack_branchings(&ctx, &m.topo, &bound, &ask, &pack) == OK && !pack, machine, ALLREDUCE,
		    "none is better");
	ctx_free(&ctx);
}

/* Weights of an allreduce are halves of a byte/s where capacities have no unit but 1: beyond 2^PACKING_BITS there is no
 * packing, and no error. */
static void
check_weights(int64_t capacity, bool fits)
{
	static struct machine m;
	const Ask ask = { .coll = ALLREDUCE, .root = -1, .packing = PACKING_EXACT };
	Symmetry *none;
	Packing *pack = NULL;
	Bound bound;
	Ctx ctx;
	ctx_init(&ctx);
	clear(&m, 3, 0);
	join_both(&m, 0, 1, 1);
	join_both(&m, 1, 2, 1);
	for (int l = 0; l < m.topo.n_links; l++)
		m.link[l].capacity = capacity + l / 2;
	if (topo_index(&ctx, &m.topo) != OK || bound_of(&ctx, &m, ALLREDUCE, -1, &none, &bound) != OK)
		exit(1);
	ok(pack_branchings(&ctx, &m.topo, &bound, &ask, &pack) == OK && (pack != NULL) == fits, -1, ALLREDUCE,
	    fits ? "weights up to 2^50 have a packing" : "larger ones have none");
	if (pack)
		check_allreduce(&m, -1, &bound, pack);
	ctx_free(&ctx);
}

/* Each rank has one link, to one of some switches, which another joins with half of what they have, or a little more;
 * or with less, which limits trees. */
static Status
make_fabric(Ctx *ctx, struct machine *m, int n, bool narrow)
{
	int leaves = below(4) ? 3 + below(3) : 1;
	clear(m, n, 6);
	for (int v = 0; v < n; v++)
		join_both(m, v, n + v % leaves, 2);
	for (int w = 0; w < 5; w++)
		join_both(m, n + w, n + 5, narrow ? 1 : n / leaves + 3 + below(9));
	return topo_index(ctx, &m->topo);
}

/* Where links of ranks limit an allreduce, numbers of children alone give trees at the bound; where switches do, these
 * carry no more than they can. */
static void
check_children(int machine)
{
	static struct machine m;
	const Ask ask = { .coll = ALLREDUCE, .root = -1, .packing = PACKING_EXACT };
	bool narrow = machine % 4 == 0;
	int n = 6 + machine % (MOST - 5);
	Symmetry *none;
	Packing *pack = NULL;
	Bound bound;
	Ctx ctx;
	ctx_init(&ctx);
	if (make_fabric(&ctx, &m, n, narrow) != OK || bound_of(&ctx, &m, ALLREDUCE, -1, &none, &bound) != OK
	    || pack_children(&ctx, &m.topo, &bound, &ask, &pack) != OK)
		exit(1);
	ok(pack || narrow, machine, ALLREDUCE, "numbers of children give a packing");
	if (pack)
		check_allreduce(&m, machine, &bound, pack);
	ctx_free(&ctx);
}

/* An allreduce where the directions of links differ is at its bound, but for rounding, nearly wherever the linear
 * program over all trees is. */
static void
check_unequal(int machine, int *reached, int *missed)
{
	static Wide load[MOST_LINKS];
	static struct machine m;
	const Ask ask = { .coll = ALLREDUCE, .root = -1, .packing = PACKING_EXACT };
	int n = 3 + machine % (FEW - 2);
	bool trees = true, fits = true;
	Symmetry *none;
	Packing *pack = NULL, *best = NULL;
	Bound bound, proof;
	Frac rate;
	Ctx ctx;
	ctx_init(&ctx);
	if (make(&ctx, &m, n) != OK || bound_of(&ctx, &m, ALLREDUCE, -1, &none, &bound) != OK
	    || pack_branchings(&ctx, &m.topo, &bound, &ask, &pack) != OK
	    || pack_exact(&ctx, &m.topo, none, &bound, NULL, &ask, &best, &proof) != OK)
		exit(1);
	bool at_bound = best && pack_rate(best, ALLREDUCE, n, &rate)
	    && frac_double(rate) >= frac_double(bound.rate) * (1 - 1e-9);
	*reached += at_bound;
	*missed += at_bound && !pack;
	memset(load, 0, sizeof load);
	for (int t = 0; pack && t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		trees = trees && spans(tree, n, tree->root, false) && spans(tree, n, tree->root, true);
		for (int i = 0; i < tree->n_down + tree->n_up; i++)
			load[tree_edge(tree, i)->link[0]] += pack->weight[t];
	}
	for (int l = 0; pack && l < m.topo.n_links; l++)
		fits = fits && load[l] * pack->unit.num <= (Wide)m.link[l].capacity * pack->unit.den;
	ok(trees, machine, ALLREDUCE, "each pair leads up and down");
	ok(fits, machine, ALLREDUCE, "no link carries more than it can in either direction");
	ok(!pack || (pack_rate(pack, ALLREDUCE, n, &rate) && frac_cmp(rate, bound.rate) <= 0
	    && frac_double(rate) >= frac_double(bound.rate) * (1 - 1e-9)), machine, ALLREDUCE,
	    "pairs are at the bound");
	ok(at_bound || !pack, machine, ALLREDUCE, "the linear program finds what flows find");
	ctx_free(&ctx);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* A fifth also under a sanitizer, which takes thrice the time. */
static int
n_machines(void)
{
	return SANITIZED || quick_check() ? MACHINES / 5 : MACHINES;
}

int
main(void)
{
	int machines = n_machines(), missed = 0, reached = 0, missed_pairs = 0;
	for (int machine = 0; machine < machines; machine++)
		check_machine(machine);
	for (int machine = 0; machine < machines; machine++) {
		check_switched(machine, 3 + machine / 4 % (FEW - 2), true, &missed);
		check_switched(machine, 3 + machine / 4 % (FEW - 2), false, &missed);
		check_switched(machine, 3 + machine / 4 % (MOST - 2), true, &missed);
	}
	ok(missed <= machines / 50, -1, BROADCAST, "few trees at the bound are missed");
	for (int machine = 0; machine < machines / 5; machine++)
		check_unequal(machine, &reached, &missed_pairs);
	for (int machine = 0; machine < machines; machine++)
		check_oriented(machine, machine % 2);
	for (int machine = 0; machine < machines; machine++)
		check_children(machine);
	check_weights((INT64_C(1) << (PACKING_BITS - 1)) - 1, true);
	check_weights((INT64_C(1) << (PACKING_BITS - 1)) + 1, false);
	ok(reached > machines / 10 && missed_pairs <= reached / 6, -1, ALLREDUCE, "few pairs at the bound are missed");
	ok(near_trees < exact_trees * 9 / 10, -1, ALLREDUCE, "a tolerance makes trees fewer");
	ok(less_deep < deep * 19 / 20, -1, BROADCAST, "exchanges make trees less deep");
	printf("# trees together: %lld, and %lld with a tolerance\n", (long long)exact_trees, (long long)near_trees);
	printf("# depths together: %lld, and %lld after exchanges\n", (long long)deep, (long long)less_deep);
	printf("# %d machines of each kind; missed behind uneven switches: %d, pairs: %d of %d\n", machines, missed,
	    missed_pairs, reached);
	return report(failures, "packings by maximum flows, and by exchanges");
}
