/* The rate that a certificate proves, recomputed from the topology alone: a few additions for a cut or a partition; for
 * prices the cheapest hops into ranks, and where these cost less than 1, the cheapest trees. docs/bounds.md has the
 * proofs. */
#include "graph/graph.h"
#include "schedule/schedule.h"

#include <string.h>

/* Capacity that leaves (enters) the side. topo_check keeps every such sum inside 64 bits. */
static int64_t
boundary(const Topology *topo, const int *part, bool enters)
{
	int64_t sum = 0;
	for (int l = 0; l < topo->n_links; l++) {
		bool from = part[topo->link[l].from] == 1, to = part[topo->link[l].to] == 1;
		sum += from != to && from != enters ? topo->link[l].capacity : 0;
	}
	return sum;
}

/* The fraction of M that must cross the cut, with `inside` and `outside` ranks: the rate is at most the capacity
 * divided by it. Broadcast leaves a side with the root, reduce enters it; in an allreduce something of every element
 * leaves every side. Blocks: the root scatters those of the ranks outside and gathers them; what ranks inside hold of
 * an allgather leaves, what they need of a reducescatter enters; each of them sends an alltoall's n-th part of its M
 * to each rank outside. */
static bool
crossing(Collective coll, int64_t inside, int64_t outside, Frac *out)
{
	int64_t n = inside + outside;
	switch (coll) {
	case BROADCAST:
	case REDUCE:
	case ALLREDUCE:
		*out = FRAC_ONE;
		return true;
	case GATHER:
	case SCATTER:
		return frac_make(outside, n, out);
	case ALLGATHER:
	case REDUCESCATTER:
		return frac_make(inside, n, out);
	default:
		return frac_make((Wide)inside * outside, n, out);
	}
}

static Status
cut_rate(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root, const Bound *bound, Frac *out)
{
	int inside = 0;
	Frac part;
	for (int r = 0; r < topo->n_ranks; r++)
		inside += bound->part[r] == 1;
	if (inside < 1 || inside == topo->n_ranks)
		return fail(ctx, UNVERIFIED,
		    "%s: rate.certificate.side: holds %d of %d ranks: want some on either side", label,
		    inside, topo->n_ranks);
	if (collective_rooted(coll) && bound->part[root] != 1)
		return fail(ctx, UNVERIFIED, "%s: rate.certificate.side: does not hold root %d", label, root);
	if (!crossing(coll, inside, topo->n_ranks - inside, &part)
	    || !frac_div((Frac){ boundary(topo, bound->part, bound_enters(topo, coll, bound)), 1 }, part, out))
		return fail(ctx, LIMIT, "%s: rate.bound: needs more than %d bits", label, (int)FRAC_BITS);
	return OK;
}

/* Inside a part anything may add and copy. Switches outside all parts may add what parts send, or copy what parts
 * receive, but not both: then each message that is received is one that was sent. Where they copy, messages are
 * counted as they enter a part, else as they leave one. */
static Status
check_outside(Ctx *ctx, const char *label, const Topology *topo, const Bound *bound)
{
	int copies = -1, adds = -1;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		if (bound->part[v] >= 0)
			continue;
		copies = copies < 0 && topo->vertex[v].multicast ? v : copies;
		adds = adds < 0 && topo->vertex[v].reduce ? v : adds;
	}
	return copies < 0 || adds < 0 ? OK
	    : fail(ctx, UNVERIFIED, "%s: rate.certificate.parts: %s multicasts, %s reduces: want one of them in a part",
		label, topo->vertex[copies].id, topo->vertex[adds].id);
}

bool
bound_enters(const Topology *topo, Collective coll, const Bound *bound)
{
	if (bound->kind == CERTIFICATE_CUT)
		return coll == REDUCE || coll == GATHER || coll == REDUCESCATTER;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		if (bound->part[v] < 0 && topo->vertex[v].multicast)
			return true;
	return false;
}

bool
bound_counts(const Topology *topo, const Bound *bound, bool enters, int l)
{
	const Link *link = &topo->link[l];
	if (bound->kind == CERTIFICATE_PRICES || bound->kind == CERTIFICATE_LENGTHS)
		return bound->price[l].num > 0;
	int inner = bound->part[enters ? link->to : link->from], outer = bound->part[enters ? link->from : link->to];
	return inner != outer && (bound->kind == CERTIFICATE_CUT ? inner == 1 : inner >= 0);
}

Assumed
bound_assumed(const Topology *topo, Collective coll, const Bound *bound)
{
	bool priced = bound->kind == CERTIFICATE_PRICES || bound->kind == CERTIFICATE_LENGTHS,
	    enters = !priced && bound->part && bound_enters(topo, coll, bound);
	int n = bound->part || bound->price ? topo->n_links : 0;
	double all = 0, guessed = 0;
	Assumed out = { 0 };
	for (int l = 0; l < n; l++) {
		if (!bound_counts(topo, bound, enters, l))
			continue;
		double weight = (double)topo->link[l].capacity * (priced ? frac_double(bound->price[l]) : 1);
		all += weight;
		guessed += topo->link[l].assumed ? weight : 0;
		if (!topo->link[l].assumed)
			continue;
		out.classes |= 1u << topo->link[l].class;
		out.of_cores |= topo->link[l].class == LINK_QPI
		    && (topo->link[l].from < topo->n_ranks || topo->link[l].to < topo->n_ranks);
	}
	out.most = 2 * guessed >= all;
	return out;
}

static Status
partition_rate(Ctx *ctx, const char *label, const Topology *topo, Collective coll, const Bound *bound, Frac *out)
{
	int64_t sum = 0;
	bool enters = bound_enters(topo, coll, bound);
	bool *has_rank;
	if (coll != ALLREDUCE)
		return fail(ctx, UNVERIFIED, "%s: rate.certificate.kind: \"partition\" proves nothing for %s", label,
		    collective_name(coll));
	TRY(check_outside(ctx, label, topo, bound));
	if (bound->n_parts < 2)
		return fail(ctx, UNVERIFIED, "%s: rate.certificate.parts: %d: want at least 2", label, bound->n_parts);
	for (int r = 0; r < topo->n_ranks; r++)
		if (bound->part[r] < 0)
			return fail(ctx, UNVERIFIED, "%s: rate.certificate.parts: rank %d is in none", label, r);
	TRY(TEMP(ctx, has_rank, bound->n_parts));
	for (int r = 0; r < topo->n_ranks; r++)
		has_rank[bound->part[r]] = true;
	for (int p = 0; p < bound->n_parts; p++)
		if (!has_rank[p])
			return fail(ctx, UNVERIFIED, "%s: rate.certificate.parts[%d]: holds no rank", label, p);
	for (int l = 0; l < topo->n_links; l++) {
		int from = bound->part[topo->link[l].from], to = bound->part[topo->link[l].to];
		if (from != to && (enters ? to : from) >= 0)
			sum += topo->link[l].capacity;
	}
	return frac_make(sum, 2 * (Wide)(bound->n_parts - 1), out) ? OK
	    : fail(ctx, LIMIT, "%s: rate.bound: needs more than %d bits", label, (int)FRAC_BITS);
}

static const char *
price_name(const Bound *bound)
{
	return bound->kind == CERTIFICATE_LENGTHS ? "length" : "price";
}

/* Prices as whole numbers of common/den without a common divisor. */
static Status
whole_prices(Ctx *ctx, const char *label, const Topology *topo, const Bound *bound, int64_t *price, int64_t *common,
    int64_t *den)
{
	*den = 1;
	*common = 0;
	for (int l = 0; l < topo->n_links; l++) {
		Wide multiple = (Wide)*den / gcd64(*den, bound->price[l].den) * bound->price[l].den;
		if (multiple > INT64_MAX)
			return fail(ctx, LIMIT, "%s: rate.certificate.%s[%d]: denominators are too large", label,
			    price_name(bound), l);
		*den = (int64_t)multiple;
	}
	for (int l = 0; l < topo->n_links; l++) {
		Wide whole = bound->price[l].num * (*den / bound->price[l].den);
		price[l] = whole < 0 || whole > INT64_MAX ? INT64_MAX : (int64_t)whole;
		*common = gcd64(price[l], *common);
	}
	*common = *common ? *common : 1;
	for (int l = 0; l < topo->n_links; l++) {
		price[l] /= *common;
		if (price[l] >> SEARCH_PRICE_BITS)
			return fail(ctx, LIMIT, "%s: rate.certificate.%s[%d]: out of range", label, price_name(bound),
			    l);
	}
	return OK;
}

static Status
prices_rate(Ctx *ctx, const char *label, const Topology *topo, Collective coll, const Bound *bound, Frac *out)
{
	int64_t den, common, *price;
	Wide sum = 0;
	Frac unit;
	if ((bound->kind == CERTIFICATE_LENGTHS) != (collective_has_blocks(coll)))
		return fail(ctx, UNVERIFIED, "%s: rate.certificate.kind: \"%s\" proves nothing for %s", label,
		    certificate_name(bound->kind), collective_name(coll));
	/* Where trees share links they may cost less than the cheapest tree that shares none. */
	if (tree_shares(topo, coll))
		return fail(ctx, UNVERIFIED,
		    "%s: rate.certificate.kind: \"%s\" proves nothing for %s where switches %s", label,
		    certificate_name(bound->kind), collective_name(coll),
		    coll == ALLREDUCE ? "multicast or reduce" : collective_reduces(coll) ? "reduce" : "multicast");
	TRY(TEMP(ctx, price, topo->n_links));
	TRY(whole_prices(ctx, label, topo, bound, price, &common, &den));
	for (int l = 0; l < topo->n_links; l++)
		sum += (Wide)topo->link[l].capacity * price[l];
	return frac_make(common, den, &unit) && frac_mul((Frac){ sum, 1 }, unit, out) ? OK
	    : fail(ctx, LIMIT, "%s: rate.bound: needs more than %d bits", label, (int)FRAC_BITS);
}

Status
certificate_check(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root, const Symmetry *sym,
    const Bound *bound)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *price, common, den;
	Wide cost;
	if (bound->kind == CERTIFICATE_CUT || bound->kind == CERTIFICATE_PARTITION)
		return OK;
	TRY(TEMP(ctx, price, topo->n_links));
	TRY(whole_prices(ctx, label, topo, bound, price, &common, &den));
	const Wide need = (Wide)den * collective_shares(coll, topo->n_ranks);
	TRY(demands_least(ctx, label, topo, coll, root, price, &cost));
	if (ratio_cmp(cost, 1, need, common) < 0)
		TRY(demands_cost(ctx, label, topo, coll, root, sym, price, &cost));
	if (cost < 0)
		return fail(ctx, UNVERIFIED, "%s: rate.certificate: no tree over topology.links reaches the ranks",
		    label);
	if (ratio_cmp(cost, 1, need, common) < 0)
		return fail(ctx, UNVERIFIED, "%s: rate.certificate.%s: a tree costs less than 1", label,
		    price_name(bound));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
bound_from_certificate(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root, const Bound *bound,
    Frac *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	switch (bound->kind) {
	case CERTIFICATE_CUT:
		TRY(cut_rate(ctx, label, topo, coll, root, bound, out));
		break;
	case CERTIFICATE_PARTITION:
		TRY(partition_rate(ctx, label, topo, coll, bound, out));
		break;
	default:
		TRY(prices_rate(ctx, label, topo, coll, bound, out));
		break;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
