/* Bounds. All exact: maximum flows of integers (Dinic), over 128 bits where they are scaled.
 *
 * Broadcast, reduce: the least capacity that leaves a side with the root (enters it), over all other ranks.
 *
 * Allreduce: the least over partitions of the ranks into k >= 2 parts of (capacity leaving the parts) / (2 (k - 1)).
 * Newton's method on mu = sum f(part) / (k - 1), where f(A) is the least capacity that leaves the ranks A together
 * with any set of switches: for the mu at hand find the partition that minimises sum (f(part) - mu); while that is
 * below -mu, what one single part gives, the partition has a smaller ratio, which is the next mu. f is submodular, so
 * that minimum is a Dilworth truncation and greedy finds it: rank j gets
 *     x(j) = min over A with j in A, A within 0..j, of f(A) - mu - x(A \ j)
 * and joins the parts that the minimising A touches (Cunningham 1985, Barahona 1992). One maximum flow per rank.
 *
 * Where a group of symmetries moves every rank to every other, one part is enough: of all the partitions that are best the finest
 * is its own image, so its parts are images of the part A of one rank, and the ratio is n f(A) / (n - |A|) over the n ranks. That
 * is least where f(A) + mu |A| / n is, which is one maximum flow, and the smallest such A meets no image of it but itself, as f
 * is submodular. A hundred racks cost a few flows.
 *
 * Allgather, reducescatter, gather, scatter: the least capacity of a cut by the blocks that must cross it, by Newton's
 * method, too. Alltoall: cuts around single ranks; no cut need be tight.
 *
 * On one-way or lopsided links a directed cut may be lower: all data leaves every side at least once, so prices of 1
 * on its links are a certificate too. */
#include "passes.h"

#include <string.h>

#define INFINITE ((Wide)1 << 120)

struct arc {
	int to;
	Wide room;		/* what can still flow; arc a ^ 1 is the way back */
};

/* Arcs 2l, 2l + 1 are link l; then for each vertex v an arc s -> v and an arc v -> t. */
struct flow {
	const Topology *topo;
	int n, s, t;
	struct arc *arc;
	int *first, *list;	/* arcs by vertex */
	int *level, *next, *queue;
};

static int
arc_from_s(const struct flow *f, int v)
{
	return 2 * (f->topo->n_links + v);
}

static int
arc_to_t(const struct flow *f, int v)
{
	return 2 * (f->topo->n_links + f->topo->n_vertices + v);
}

static Status
flow_new(Ctx *ctx, const Topology *topo, struct flow *f)
{
	int n_arcs = 2 * (topo->n_links + 2 * topo->n_vertices);
	*f = (struct flow){ .topo = topo, .n = topo->n_vertices + 2, .s = topo->n_vertices, .t = topo->n_vertices + 1 };
	TRY(TEMP(ctx, f->arc, n_arcs));
	TRY(TEMP(ctx, f->first, f->n + 1));
	TRY(TEMP(ctx, f->list, n_arcs));
	TRY(TEMP(ctx, f->level, f->n));
	TRY(TEMP(ctx, f->next, f->n));
	TRY(TEMP(ctx, f->queue, f->n));
	for (int l = 0; l < topo->n_links; l++) {
		f->arc[2 * l].to = topo->link[l].to;
		f->arc[2 * l + 1].to = topo->link[l].from;
	}
	for (int v = 0; v < topo->n_vertices; v++) {
		f->arc[arc_from_s(f, v)].to = v;
		f->arc[arc_from_s(f, v) + 1].to = f->s;
		f->arc[arc_to_t(f, v)].to = f->t;
		f->arc[arc_to_t(f, v) + 1].to = v;
	}
	for (int a = 0; a < n_arcs; a++)
		f->first[f->arc[a ^ 1].to + 1]++;
	for (int v = 0; v < f->n; v++)
		f->first[v + 1] += f->first[v];
	memcpy(f->next, f->first, (size_t)f->n * sizeof *f->next);
	for (int a = 0; a < n_arcs; a++)
		f->list[f->next[f->arc[a ^ 1].to]++] = a;
	return OK;
}

/* Capacities times `scale`, and nothing from s or to t. against: every link leads the other way. */
static void
flow_reset_either(struct flow *f, int64_t scale, bool against)
{
	const Topology *topo = f->topo;
	for (int l = 0; l < topo->n_links; l++) {
		f->arc[2 * l + against].room = (Wide)topo->link[l].capacity * scale;
		f->arc[2 * l + !against].room = 0;
	}
	for (int a = 2 * topo->n_links; a < 2 * (topo->n_links + 2 * topo->n_vertices); a++)
		f->arc[a].room = 0;
}

static void
flow_reset(struct flow *f, int64_t scale)
{
	flow_reset_either(f, scale, false);
}

/* Levels from s in the residual graph; afterwards level[v] >= 0 marks the source side of a minimum cut. */
static bool
flow_levels(struct flow *f)
{
	int head = 0, tail = 0;
	for (int v = 0; v < f->n; v++)
		f->level[v] = -1;
	f->level[f->s] = 0;
	f->queue[tail++] = f->s;
	while (head < tail) {
		int v = f->queue[head++];
		for (int i = f->first[v]; i < f->first[v + 1]; i++) {
			const struct arc *arc = &f->arc[f->list[i]];
			if (arc->room > 0 && f->level[arc->to] < 0) {
				f->level[arc->to] = f->level[v] + 1;
				f->queue[tail++] = arc->to;
			}
		}
	}
	return f->level[f->t] >= 0;
}

/* One augmenting path along the levels, with an explicit stack in `queue`; 0: none is left. */
static Wide
flow_augment(struct flow *f)
{
	int depth = 0, v = f->s;
	while (v != f->t) {
		if (f->next[v] == f->first[v + 1]) {
			if (depth == 0)
				return 0;
			int a = f->queue[--depth];
			v = f->arc[a ^ 1].to;
			f->next[v]++;
			continue;
		}
		int a = f->list[f->next[v]];
		if (f->arc[a].room > 0 && f->level[f->arc[a].to] == f->level[v] + 1) {
			f->queue[depth++] = a;
			v = f->arc[a].to;
		} else {
			f->next[v]++;
		}
	}
	Wide least = f->arc[f->queue[0]].room;
	for (int i = 1; i < depth; i++)
		if (f->arc[f->queue[i]].room < least)
			least = f->arc[f->queue[i]].room;
	for (int i = 0; i < depth; i++) {
		f->arc[f->queue[i]].room -= least;
		f->arc[f->queue[i] ^ 1].room += least;
	}
	return least;
}

static Wide
flow_max(struct flow *f)
{
	Wide total = 0;
	while (flow_levels(f)) {
		memcpy(f->next, f->first, (size_t)f->n * sizeof *f->next);
		for (Wide more; (more = flow_augment(f)) > 0;)
			total += more;
	}
	return total;
}

/* Capacity between two ranks. */
static int64_t
flow_between(struct flow *f, int from, int to)
{
	flow_reset(f, 1);
	f->arc[arc_from_s(f, from)].room = INFINITE;
	f->arc[arc_to_t(f, to)].room = INFINITE;
	return (int64_t)flow_max(f);
}

/* ---- rooted collectives ---- */

static Status
rooted_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, Bound *bound)
{
	struct flow f;
	int64_t least = INT64_MAX;
	TRY(flow_new(ctx, topo, &f));
	for (int i = 0; i < sym->n_leads; i++) {
		int r = sym->lead[i];
		if (r == root)
			continue;
		int64_t between = coll == BROADCAST ? flow_between(&f, root, r) : flow_between(&f, r, root);
		if (between >= least)
			continue;
		least = between;
		for (int v = 0; v < topo->n_vertices; v++)
			bound->part[v] = (f.level[v] >= 0) == (coll == BROADCAST);
	}
	bound->kind = CERTIFICATE_CUT;
	bound->rate = (Frac){ least, 1 };
	return OK;
}

/* ---- allreduce ---- */

/* The partition of the ranks that minimises sum (f(part) - num/den), in part[0 .. n_ranks-1]; everything times den. */
static int
truncate_at(struct flow *f, Frac mu, Wide *x, int *part)
{
	int n = f->topo->n_ranks, n_parts = 0;
	for (int j = 0; j < n; j++) {
		Wide positive = 0;
		flow_reset(f, mu.den);
		f->arc[arc_from_s(f, j)].room = INFINITE;
		for (int u = 0; u < j; u++) {
			if (x[u] > 0) {
				f->arc[arc_from_s(f, u)].room = x[u];
				positive += x[u];
			} else {
				f->arc[arc_to_t(f, u)].room = -x[u];
			}
		}
		for (int u = j + 1; u < n; u++)
			f->arc[arc_to_t(f, u)].room = INFINITE;
		x[j] = flow_max(f) - positive - mu.num;
		part[j] = j;
		for (int u = 0; u < j; u++) {
			/* Parts are named after their last rank. */
			if (f->level[u] < 0 || part[u] == j)
				continue;
			for (int w = 0, old = part[u]; w < j; w++)
				if (part[w] == old)
					part[w] = j;
		}
	}
	/* Number them by first rank; below 0 until all are. */
	for (int r = 0; r < n; r++) {
		if (part[r] < 0)
			continue;
		for (int w = r, name = part[r]; w < n; w++)
			if (part[w] == name)
				part[w] = -1 - n_parts;
		n_parts++;
	}
	for (int r = 0; r < n; r++)
		part[r] = -1 - part[r];
	return n_parts;
}

/* Capacity that leaves each part together with the switches that make it least; those switches join the part, the
 * first that claims them. Where switches forward as much as they take, no two do; elsewhere the partition found may not be
 * the least, but what its certificate says is what counts. */
static int64_t
leaving_parts(struct flow *f, int n_parts, int *part)
{
	const Topology *topo = f->topo;
	int64_t sum = 0;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		part[v] = -1;
	for (int p = 0; p < n_parts; p++) {
		flow_reset(f, 1);
		for (int r = 0; r < topo->n_ranks; r++)
			f->arc[part[r] == p ? arc_from_s(f, r) : arc_to_t(f, r)].room = INFINITE;
		sum += (int64_t)flow_max(f);
		for (int v = topo->n_ranks; v < topo->n_vertices; v++)
			if (part[v] < 0 && f->level[v] >= 0)
				part[v] = p;
	}
	return sum;
}

/* The least mu that parts alike have, by Newton's method from single ranks: side[v] marks the part of rank 0 then. against: of the
 * capacity that enters parts. */
static Frac
part_of_lead(struct flow *f, bool against, bool *side)
{
	const Topology *topo = f->topo;
	int n = topo->n_ranks;
	Frac mu = { INT64_MAX, 1 }, next;
	for (bool first = true;; first = false) {
		/* In units of 1 / (n * den): a rank in A costs num, and all of them what no part costs. Alone at first. */
		flow_reset_either(f, first ? 1 : mu.den * n, against);
		f->arc[arc_from_s(f, 0)].room = INFINITE;
		for (int r = 1; r < n; r++)
			f->arc[arc_to_t(f, r)].room = first ? INFINITE : mu.num;
		Wide least = flow_max(f);
		int64_t leaving = 0;
		int inside = 0;
		for (int l = 0; l < topo->n_links; l++)
			if ((f->level[topo->link[l].from] >= 0) != against && (f->level[topo->link[l].to] >= 0) == against)
				leaving += topo->link[l].capacity;
		for (int r = 0; r < n; r++)
			inside += f->level[r] >= 0;
		if (!first && least >= (Wide)mu.num * (n - 1))
			return mu;
		if (!frac_make((Wide)leaving * n, n - inside, &next) || frac_cmp(next, mu) >= 0)
			return mu;
		mu = next;
		for (int v = 0; v < topo->n_vertices; v++)
			side[v] = f->level[v] >= 0;
	}
}

/* The images of the part of rank 0, numbered by their first ranks; a switch joins the first that claims it. */
static Status
image_parts(Ctx *ctx, const Topology *topo, const Symmetry *sym, const bool *side, int *n_parts, int *part)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SymmetryWalk walk;
	int *of, *number, n = 0;
	TRY(TEMP(ctx, of, topo->n_vertices));
	TRY(TEMP(ctx, number, topo->n_ranks));
	memset(of, -1, (size_t)topo->n_vertices * sizeof *of);
	TRY(symmetry_walk(ctx, topo, sym, &walk));
	do {
		if (of[walk.vertex[0]] >= 0)
			continue;
		for (int v = 0; v < topo->n_vertices; v++)
			if (side[v] && of[walk.vertex[v]] < 0)
				of[walk.vertex[v]] = n;
		n++;
	} while (symmetry_next(&walk));
	memset(number, -1, (size_t)topo->n_ranks * sizeof *number);
	*n_parts = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		if (of[v] >= 0 && number[of[v]] < 0)
			number[of[v]] = (*n_parts)++;
		part[v] = of[v] < 0 ? -1 : number[of[v]];
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* The partition bound where all ranks are alike. *found: the certificate says what the flows do, and no directed cut is lower:
 * a side of at most half of the ranks lets mu / 2 out, and one of at least half is entered by what leaves the others. */
static Status
alike_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, struct flow *f, Bound *bound, bool *found)
{
	Frac leaving, entering, half;
	bool *side, *other;
	TRY(TEMP(ctx, side, topo->n_vertices));
	TRY(TEMP(ctx, other, topo->n_vertices));
	*found = false;
	entering = part_of_lead(f, true, other);
	leaving = part_of_lead(f, false, side);
	if (frac_cmp(entering, leaving) < 0)
		return OK;
	bound->kind = CERTIFICATE_PARTITION;
	TRY(image_parts(ctx, topo, sym, side, &bound->n_parts, bound->part));
	TRY(bound_from_certificate(ctx, topo->name, topo, ALLREDUCE, -1, bound, &bound->rate));
	*found = frac_div(leaving, (Frac){ 2, 1 }, &half) && frac_cmp(half, bound->rate) == 0;
	return OK;
}

/* Switches that add or copy belong to parts, since between parts there may be only forwarding: each to the part that then
 * leaves least. */
static void
absorb_active(const Topology *topo, int n_parts, int *part)
{
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		int64_t best = INT64_MAX;
		int to = 0;
		if (part[v] >= 0 || (!topo->vertex[v].multicast && !topo->vertex[v].reduce))
			continue;
		for (int p = 0; p < n_parts; p++) {
			int64_t more = 0;
			for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++)
				more += part[topo->link[topo->out[i]].to] == p ? 0 : topo->link[topo->out[i]].capacity;
			for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++)
				more -= part[topo->link[topo->in[i]].from] == p ? topo->link[topo->in[i]].capacity : 0;
			if (more < best) {
				best = more;
				to = p;
			}
		}
		part[v] = to;
	}
}

/* The servers as parts, with what is in them. Returns how many; 0: some rank is in none. */
static int
server_parts(const Topology *topo, int *number, int *part)
{
	int n_parts = 0;
	for (int s = 0; s < topo->n_nodes; s++)
		number[s] = -1;
	for (int v = 0; v < topo->n_vertices; v++) {
		int node = topo->vertex[v].node;
		if (v < topo->n_ranks && node >= 0 && number[node] < 0)
			number[node] = n_parts++;
		part[v] = node < 0 ? -1 : number[node];
		if (v < topo->n_ranks && node < 0)
			return 0;
	}
	return n_parts;
}

/* A partition whose certificate is lower than the bound at hand replaces it. */
static Status
try_parts(Ctx *ctx, const Topology *topo, int n_parts, int *part, Bound *bound)
{
	Bound other = { .kind = CERTIFICATE_PARTITION, .n_parts = n_parts, .part = part };
	TRY(bound_from_certificate(ctx, topo->name, topo, ALLREDUCE, -1, &other, &other.rate));
	if (bound->rate.num > 0 && frac_cmp(other.rate, bound->rate) >= 0)
		return OK;
	bound->rate = other.rate;
	bound->n_parts = n_parts;
	memcpy(bound->part, part, (size_t)topo->n_vertices * sizeof *part);
	return OK;
}

static Status
partition_bound(Ctx *ctx, const Topology *topo, struct flow *f, Bound *bound)
{
	int n = topo->n_ranks, *part, *number;
	Frac mu;
	Wide *x;
	TRY(TEMP(ctx, number, topo->n_nodes));
	TRY(TEMP(ctx, x, n));
	TRY(TEMP(ctx, part, topo->n_vertices));
	bound->kind = CERTIFICATE_PARTITION;
	bound->n_parts = n;
	for (int r = 0; r < n; r++)
		bound->part[r] = r;
	frac_make(leaving_parts(f, n, bound->part), n - 1, &mu);
	absorb_active(topo, n, bound->part);
	TRY(bound_from_certificate(ctx, topo->name, topo, ALLREDUCE, -1, bound, &bound->rate));
	/* The search below knows of forwarding only; where switches do more, servers may be the better parts. */
	int n_servers = topo_active(topo) ? server_parts(topo, number, part) : 0;
	if (n_servers > 1) {
		absorb_active(topo, n_servers, part);
		TRY(try_parts(ctx, topo, n_servers, part, bound));
	}
	for (;;) {
		int n_parts = truncate_at(f, mu, x, part);
		Frac next;
		if (n_parts < 2)
			break;
		frac_make(leaving_parts(f, n_parts, part), n_parts - 1, &next);
		absorb_active(topo, n_parts, part);
		TRY(try_parts(ctx, topo, n_parts, part, bound));
		if (frac_cmp(next, mu) >= 0)
			break;
		mu = next;
	}
	return OK;
}

/* A directed cut below the bound at hand, if there is one, as prices of its links; where switches reduce or copy, as a cut. */
static Status
directed_cut(Ctx *ctx, const Topology *topo, struct flow *f, Bound *bound)
{
	int64_t least = INT64_MAX;
	bool *side;
	TRY(TEMP(ctx, side, topo->n_vertices));
	for (int r = 1; r < topo->n_ranks; r++) {
		for (int back = 0; back < 2; back++) {
			int64_t between = back ? flow_between(f, r, 0) : flow_between(f, 0, r);
			if (between >= least)
				continue;
			least = between;
			for (int v = 0; v < topo->n_vertices; v++)
				side[v] = f->level[v] >= 0;
		}
	}
	if (bound->rate.num > 0 && frac_cmp((Frac){ least, 1 }, bound->rate) >= 0)
		return OK;
	bound->rate = (Frac){ least, 1 };
	if (topo_active(topo)) {
		bound->kind = CERTIFICATE_CUT;
		for (int v = 0; v < topo->n_vertices; v++)
			bound->part[v] = side[v];
		return OK;
	}
	bound->kind = CERTIFICATE_PRICES;
	TRY(NEW(ctx, bound->price, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		bound->price[l] = side[topo->link[l].from] && !side[topo->link[l].to] ? FRAC_ONE : FRAC_ZERO;
	return OK;
}

static Status
general_bound(Ctx *ctx, const Topology *topo, struct flow *f, Bound *bound)
{
	bool mirrored;
	TRY(partition_bound(ctx, topo, f, bound));
	/* Where links are alike both ways, a cut is a partition into two parts. */
	TRY(topo_twinned(ctx, topo, &mirrored));
	return mirrored && !topo_active(topo) ? OK : directed_cut(ctx, topo, f, bound);
}

/* ---- collectives of blocks ---- */

/* The side of the last flow becomes the certificate, if what it proves is lower. */
static Status
keep_side(Ctx *ctx, const Topology *topo, const struct flow *f, Collective coll, int root, Bound *bound, bool *lower)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Bound cut = { .kind = CERTIFICATE_CUT };
	int inside = 0;
	TRY(TEMP(ctx, cut.part, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		cut.part[v] = f->level[v] >= 0;
		inside += v < topo->n_ranks && cut.part[v];
	}
	*lower = false;
	if (inside > 0 && inside < topo->n_ranks) {
		TRY(bound_from_certificate(ctx, topo->name, topo, coll, root, &cut, &cut.rate));
		*lower = bound->rate.num == 0 || frac_cmp(cut.rate, bound->rate) < 0;
	}
	if (*lower) {
		bound->rate = cut.rate;
		memcpy(bound->part, cut.part, (size_t)topo->n_vertices * sizeof *cut.part);
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Each rank, and each set of all but one, by itself. */
static Status
single_cuts(Ctx *ctx, const Topology *topo, const Symmetry *sym, struct flow *f, Collective coll, int root, Bound *bound)
{
	bool against = coll == GATHER || coll == REDUCESCATTER, lower;
	for (int i = 0; i < sym->n_leads; i++) {
		int r = sym->lead[i];
		for (int others = 0; others < 2; others++) {
			if (collective_rooted(coll) && (r == root) == others)
				continue;
			flow_reset_either(f, 1, against);
			for (int v = 0; v < topo->n_ranks; v++)
				f->arc[(v == r) != others ? arc_from_s(f, v) : arc_to_t(f, v)].room = INFINITE;
			flow_max(f);
			TRY(keep_side(ctx, topo, f, coll, root, bound, &lower));
		}
	}
	return OK;
}

/* Newton's method on mu = capacity / ranks counted: the cut that minimises capacity - mu * ranks, by one maximum flow for
 * each rank that may be left out (allgather, reducescatter: ranks inside count; scatter, gather: ranks outside do, and the
 * root is inside). Everything times the denominator of mu. */
static Status
ratio_cuts(Ctx *ctx, const Topology *topo, const Symmetry *sym, struct flow *f, Collective coll, int root, Bound *bound)
{
	bool against = coll == GATHER || coll == REDUCESCATTER, rooted = collective_rooted(coll), lower;
	do {
		Frac mu;
		lower = false;
		if (!frac_div(bound->rate, (Frac){ topo->n_ranks, 1 }, &mu))
			return fail(ctx, LIMIT, "%s: the bound needs more than 64 bits", topo->name);
		for (int i = 0; i < (rooted ? 1 : sym->n_leads) && !lower; i++) {
			int out = sym->lead[i];
			flow_reset_either(f, mu.den, against);
			for (int v = 0; v < topo->n_ranks; v++) {
				if (rooted)
					f->arc[v == root ? arc_from_s(f, v) : arc_to_t(f, v)].room = v == root ? INFINITE : mu.num;
				else
					f->arc[v == out ? arc_to_t(f, v) : arc_from_s(f, v)].room = v == out ? INFINITE : mu.num;
			}
			flow_max(f);
			TRY(keep_side(ctx, topo, f, coll, root, bound, &lower));
		}
	} while (lower);
	return OK;
}

static Status
block_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, Bound *bound)
{
	struct flow f;
	TRY(flow_new(ctx, topo, &f));
	TRY(single_cuts(ctx, topo, sym, &f, coll, root, bound));
	return coll == ALLTOALL ? OK : ratio_cuts(ctx, topo, sym, &f, coll, root, bound);
}

Status
bound_compute(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, Bound *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Bound bound = { .rate = FRAC_ZERO };
	TRY(NEW(ctx, bound.part, topo->n_vertices));
	if (topo->n_ranks > 1 && (coll == BROADCAST || coll == REDUCE)) {
		TRY(rooted_bound(ctx, topo, sym, coll, root, &bound));
	} else if (topo->n_ranks > 1 && coll == ALLREDUCE) {
		struct flow f;
		bool found = false;
		TRY(flow_new(ctx, topo, &f));
		if (sym->n_leads == 1 && !topo_active(topo))
			TRY(alike_bound(ctx, topo, sym, &f, &bound, &found));
		if (!found)
			TRY(general_bound(ctx, topo, &f, &bound));
	} else if (topo->n_ranks > 1) {
		TRY(block_bound(ctx, topo, sym, coll, root, &bound));
	}
	arena_release(&ctx->scratch, mark);
	*out = bound;
	return OK;
}
