/* The bound of an allreduce: the least over partitions of the ranks into k >= 2 parts of (capacity leaving the parts)
 * / (2 (k - 1)).
 *
 * Newton's method on mu = sum f(part) / (k - 1), where f(A) is the least capacity that leaves the ranks A together
 * with any set of switches: for the current mu find the partition that minimises sum (f(part) - mu); while that is
 * below -mu, what one single part gives, the partition has a smaller ratio, which is the next mu. f is submodular, so
 * that minimum is a Dilworth truncation and greedy finds it: rank j gets
 *     x(j) = min over A with j in A, A within 0..j, of f(A) - mu - x(A \ j)
 * and joins the parts that the minimising A touches (Cunningham 1985, Barahona 1992). One maximum flow per rank.
 *
 * Where a group of symmetries moves every rank to every other, one part is enough: of all optimal partitions the
 * finest is its own image, so its parts are images of the part A of one rank, and the ratio is n f(A) / (n - |A|)
 * over the n ranks. That is least where f(A) + mu |A| / n is, which is one maximum flow, and the smallest such A
 * meets no image of it but itself, as f is submodular. A hundred racks cost a few flows.
 *
 * More ranks than tables of pairs have, without such a group, have whole servers as parts, or single ranks: no flow.
 *
 * Where capacities differ in the two directions a directed cut may be lower: all data leaves every side at least once.
 *
 * Between parts switches may also add, but then not copy: what leaves parts counts as before. Or they may copy, but not
 * add: then what enters parts counts. */
#include "plan/partition.h"
#include "graph/flow.h"
#include "graph/graph.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

#include <string.h>

/* Parts get the numbers 0, 1, ... in order of their first ranks; negative while some have none. Returns the number of
 * parts. */
static int
number_parts(int n, int *part)
{
	int n_parts = 0;
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

/* The partition of the ranks that minimises sum (f(part) - num/den), in part[0 .. n_ranks-1]; everything times den.
 * entering: f is of the capacity that enters. */
static int
truncate_at(Flow *f, bool entering, Frac mu, Wide *x, int *part)
{
	int n = f->topo->n_ranks;
	for (int j = 0; j < n; j++) {
		Wide positive = 0;
		if (out_of_time(f->ctx, FLOW_WORK(f->topo)))
			return 0;
		flow_reset(f, mu.den, entering);
		flow_from_source(f, j, FLOW_INFINITE);
		for (int u = 0; u < j; u++) {
			if (x[u] > 0) {
				flow_from_source(f, u, x[u]);
				positive += x[u];
			} else {
				flow_to_sink(f, u, -x[u]);
			}
		}
		for (int u = j + 1; u < n; u++)
			flow_to_sink(f, u, FLOW_INFINITE);
		x[j] = flow_max(f) - positive - mu.num;
		part[j] = j;
		for (int u = 0; u < j; u++) {
			/* Parts are named after their last rank. */
			if (!flow_side(f, u) || part[u] == j)
				continue;
			for (int w = 0, old = part[u]; w < j; w++)
				if (part[w] == old)
					part[w] = j;
		}
	}
	return number_parts(n, part);
}

/* Capacity that leaves (enters) each part together with the switches that make it least; those join the part, the
 * first that claims them. Where every switch can send as much as it can receive no two parts claim one; elsewhere the
 * partition found may not be optimal, but its rate is what its certificate proves. */
static int64_t
close_parts(Flow *f, bool entering, int n_parts, int *part)
{
	const Topology *topo = f->topo;
	int64_t sum = 0;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		part[v] = -1;
	for (int p = 0; p < n_parts && !out_of_time(f->ctx, FLOW_WORK(topo)); p++) {
		flow_reset(f, 1, entering);
		for (int r = 0; r < topo->n_ranks; r++)
			(part[r] == p ? flow_from_source : flow_to_sink)(f, r, FLOW_INFINITE);
		sum += (int64_t)flow_max(f);
		for (int v = topo->n_ranks; v < topo->n_vertices; v++)
			if (part[v] < 0 && flow_side(f, v))
				part[v] = p;
	}
	return sum;
}

/* The least mu over partitions whose parts are images of each other, by Newton's method from single ranks; side[v]: v
 * is in the part of rank 0. reversed: by the capacity that enters parts. */
static Frac
part_of_representative(Flow *f, bool reversed, bool *side)
{
	const Topology *topo = f->topo;
	int n = topo->n_ranks;
	Frac mu = { INT64_MAX, 1 }, next;
	for (bool first = true;; first = false) {
		/* In units of 1 / (n * den), each rank in A but the first costs num. At first A holds one rank. */
		flow_reset(f, first ? 1 : mu.den * n, reversed);
		flow_from_source(f, 0, FLOW_INFINITE);
		for (int r = 1; r < n; r++)
			flow_to_sink(f, r, first ? FLOW_INFINITE : mu.num);
		Wide least = flow_max(f);
		int64_t leaving = 0;
		int inside = 0;
		for (int l = 0; l < topo->n_links; l++)
			if (flow_side(f, topo->link[l].from) != reversed && flow_side(f, topo->link[l].to) == reversed)
				leaving += topo->link[l].capacity;
		for (int r = 0; r < n; r++)
			inside += flow_side(f, r);
		if (!first && least >= (Wide)mu.num * (n - 1))
			return mu;
		if (!frac_make((Wide)leaving * n, n - inside, &next) || frac_cmp(next, mu) >= 0)
			return mu;
		mu = next;
		for (int v = 0; v < topo->n_vertices; v++)
			side[v] = flow_side(f, v);
	}
}

/* Which image of the part each vertex is in, -1: none, in the order of the elements: a walk over these moves all
 * vertices and links. */
static Status
claim_walking(Ctx *ctx, const Topology *topo, const Symmetry *sym, const bool *side, int *of)
{
	SymmetryWalk walk;
	int n = 0;
	TRY(symmetry_walk(ctx, topo, sym, &walk));
	do {
		if (of[walk.vertex[0]] >= 0)
			continue;
		for (int v = 0; v < topo->n_vertices; v++)
			if (side[v] && of[walk.vertex[v]] < 0)
				of[walk.vertex[v]] = n;
		n++;
	} while (symmetry_next(&walk));
	return OK;
}

/* The same from the images of the few vertices of the part alone. */
static Status
claim_listing(Ctx *ctx, const Topology *topo, const Symmetry *sym, const bool *side, int inside, int *of)
{
	size_t size = (size_t)sym->size;
	int *image, n = 0, m = 0;
	TRY(TEMP(ctx, image, size * (size_t)inside));
	for (int v = 0; v < topo->n_vertices; v++) {
		int *of_v = image + size * (size_t)m;
		if (!side[v])
			continue;
		m++;
		of_v[0] = v;
		for (int i = 0, known = 1; i < sym->n_maps; known *= sym->map[i++].order)
			for (int e = known; e < known * sym->map[i].order; e++)
				of_v[e] = sym->map[i].vertex[of_v[e - known]];
	}
	for (size_t e = 0; e < size; e++) {
		if (of[image[e]] >= 0)
			continue;
		for (int i = 0; i < inside; i++)
			if (of[image[size * (size_t)i + e]] < 0)
				of[image[size * (size_t)i + e]] = n;
		n++;
	}
	return OK;
}

/* The images of the part of rank 0, numbered by their first ranks; a switch joins the first that claims it. */
static Status
image_parts(Ctx *ctx, const Topology *topo, const Symmetry *sym, const bool *side, int *n_parts, int *part)
{
	enum { MOST_LISTED = 1 << 24 };
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *of, *number, inside = 0;
	TRY(TEMP(ctx, of, topo->n_vertices));
	TRY(TEMP(ctx, number, topo->n_ranks));
	memset(of, -1, (size_t)topo->n_vertices * sizeof *of);
	for (int v = 0; v < topo->n_vertices; v++)
		inside += side[v];
	if ((int64_t)inside * sym->size <= MOST_LISTED)
		TRY(claim_listing(ctx, topo, sym, side, inside, of));
	else
		TRY(claim_walking(ctx, topo, sym, side, of));
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

/* The bound where all ranks are in one orbit. *found: the certificate proves the rate that the flows found, and no
 * directed cut is
 * lower: at least mu / 2 leaves a side of at most half of the ranks, and enters the other side of a larger one. */
static Status
symmetric_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, Flow *f, Bound *bound, bool *found)
{
	Frac leaving, entering, half;
	bool *side, *other;
	TRY(TEMP(ctx, side, topo->n_vertices));
	TRY(TEMP(ctx, other, topo->n_vertices));
	*found = false;
	entering = part_of_representative(f, true, other);
	leaving = part_of_representative(f, false, side);
	if (frac_cmp(entering, leaving) < 0)
		return OK;
	bound->kind = CERTIFICATE_PARTITION;
	TRY(image_parts(ctx, topo, sym, side, &bound->n_parts, bound->part));
	TRY(bound_from_certificate(ctx, topo->name, topo, ALLREDUCE, -1, bound, &bound->rate));
	*found = frac_div(leaving, (Frac){ 2, 1 }, &half) && frac_cmp(half, bound->rate) == 0;
	return OK;
}

/* What part p counts more if v joins it. */
static int64_t
count_with(const Topology *topo, bool entering, const int *part, int v, int p)
{
	int64_t more = 0;
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
		const Link *link = &topo->link[topo->out[i]];
		bool inside = part[link->to] == p;
		more += entering && inside ? -link->capacity : !entering && !inside ? link->capacity : 0;
	}
	for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
		const Link *link = &topo->link[topo->in[i]];
		bool inside = part[link->from] == p;
		more += entering && !inside ? link->capacity : !entering && inside ? -link->capacity : 0;
	}
	return more;
}

/* Outside the parts switches may add, where what leaves parts is counted, or copy, where what enters them is: those
 * that do the other have to be in parts. Each joins the part whose count is then the least. */
static void
absorb_active(const Topology *topo, bool entering, int n_parts, int *part)
{
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		int64_t best = INT64_MAX;
		int to = 0;
		if (part[v] >= 0 || !(entering ? topo->vertex[v].reduce : topo->vertex[v].multicast))
			continue;
		for (int p = 0; p < n_parts; p++) {
			int64_t more = count_with(topo, entering, part, v, p);
			if (more < best) {
				best = more;
				to = p;
			}
		}
		part[v] = to;
	}
}

/* Each server as a part. Returns their number; 0: some rank is in no server. */
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

/* A partition whose certificate proves a lower bound than the current one replaces it. */
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

/* Switches that only forward leave their part as long as it then counts less. */
static void
shed_switches(const Topology *topo, bool entering, int *part)
{
	enum { PASSES = 8 };
	bool changed = true;
	for (int i = 0; i < PASSES && changed; i++) {
		changed = false;
		for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
			int p = part[v];
			if (p < 0 || topo->vertex[v].multicast || topo->vertex[v].reduce)
				continue;
			part[v] = -1;
			bool less = count_with(topo, entering, part, v, p) > 0;
			part[v] = less ? -1 : p;
			changed = changed || less;
		}
	}
}

/* Whole servers as parts. shed: but for switches without which they count less. */
static Status
try_servers(Ctx *ctx, const Topology *topo, bool entering, bool shed, Bound *bound)
{
	int *number, *part;
	TRY(TEMP(ctx, number, topo->n_nodes));
	TRY(TEMP(ctx, part, topo->n_vertices));
	int n_servers = server_parts(topo, number, part);
	if (n_servers < 2)
		return OK;
	if (shed)
		shed_switches(topo, entering, part);
	absorb_active(topo, entering, n_servers, part);
	return try_parts(ctx, topo, n_servers, part, bound);
}

/* By Newton's method, from single ranks. entering: what enters parts counts, not what leaves them. It assumes that
 * switches only forward; where they do more, servers may be better parts. */
static Status
search_partitions(Ctx *ctx, const Topology *topo, Flow *f, bool entering, Bound *bound)
{
	int n = topo->n_ranks, *part;
	Frac mu;
	Wide *x;
	TRY(TEMP(ctx, x, n));
	TRY(TEMP(ctx, part, topo->n_vertices));
	for (int r = 0; r < n; r++)
		part[r] = r;
	frac_make(close_parts(f, entering, n, part), n - 1, &mu);
	absorb_active(topo, entering, n, part);
	TRY(try_parts(ctx, topo, n, part, bound));
	if (topo_active(topo))
		TRY(try_servers(ctx, topo, entering, false, bound));
	for (;;) {
		int n_parts = truncate_at(f, entering, mu, x, part);
		Frac next;
		if (n_parts < 2)
			return OK;
		frac_make(close_parts(f, entering, n_parts, part), n_parts - 1, &next);
		absorb_active(topo, entering, n_parts, part);
		TRY(try_parts(ctx, topo, n_parts, part, bound));
		if (frac_cmp(next, mu) >= 0)
			return OK;
		mu = next;
	}
}

/* Single ranks and whole servers as parts, without a flow. */
static Status
plain_partitions(Ctx *ctx, const Topology *topo, Bound *bound)
{
	int *part;
	TRY(TEMP(ctx, part, topo->n_vertices));
	bound->kind = CERTIFICATE_PARTITION;
	for (int entering = 0; entering < 2; entering++) {
		for (int v = 0; v < topo->n_vertices; v++)
			part[v] = v < topo->n_ranks ? v : -1;
		absorb_active(topo, entering, topo->n_ranks, part);
		TRY(try_parts(ctx, topo, topo->n_ranks, part, bound));
		TRY(try_servers(ctx, topo, entering, true, bound));
		if (!topo_active(topo))
			break;
	}
	return OK;
}

/* A directed cut below the current bound, if there is one. */
static Status
directed_cut(Ctx *ctx, const Topology *topo, Flow *f, Bound *bound)
{
	int64_t least = INT64_MAX;
	bool *side, *known;
	TRY(TEMP(ctx, side, topo->n_vertices));
	TRY(TEMP(ctx, known, topo->n_ranks));
	known[0] = true;
	for (int r = 1; r < topo->n_ranks; known[r++] = true) {
		for (int back = 0; back < 2 && (least == INT64_MAX || !out_of_time(ctx, FLOW_WORK(topo))); back++) {
			int64_t between = flow_past(f, known, r, back);
			if (between >= least)
				continue;
			least = between;
			for (int v = 0; v < topo->n_vertices; v++)
				side[v] = flow_side(f, v);
		}
	}
	if (bound->rate.num > 0 && frac_cmp((Frac){ least, 1 }, bound->rate) >= 0)
		return OK;
	bound->rate = (Frac){ least, 1 };
	bound->kind = CERTIFICATE_CUT;
	for (int v = 0; v < topo->n_vertices; v++)
		bound->part[v] = side[v];
	return OK;
}

static Status
general_bound(Ctx *ctx, const Topology *topo, Flow *f, Bound *bound)
{
	bool mirrored;
	bound->kind = CERTIFICATE_PARTITION;
	TRY(search_partitions(ctx, topo, f, false, bound));
	if (topo_active(topo))
		TRY(search_partitions(ctx, topo, f, true, bound));
	/* Where capacities are equal in both directions, a cut is a partition into two parts. */
	TRY(topo_twinned(ctx, topo, &mirrored));
	return mirrored && !topo_active(topo) ? OK : directed_cut(ctx, topo, f, bound);
}

Status
partition_bound(Ctx *ctx, const Topology *topo, const Symmetry *sym, Bound *bound)
{
	Flow f;
	bool found = false;
	TRY(flow_new(ctx, topo, &f));
	if (sym->n_representatives == 1 && !topo_active(topo))
		TRY(symmetric_bound(ctx, topo, sym, &f, bound, &found));
	if (found)
		return OK;
	/* A flow for each part and each rank, a few times over, would take minutes. */
	if (topo->n_ranks > LIMIT_PAIR_RANKS)
		return plain_partitions(ctx, topo, bound);
	TRY(general_bound(ctx, topo, &f, bound));
	return ctx->late && bound->kind == CERTIFICATE_PARTITION ? plain_partitions(ctx, topo, bound) : OK;
}
