/* Broadcast and reduce over clusters hardly below the bound, by few trees.
 *
 * Trees of one rate take slots of links (rooted.c), and where parts are lost, few trees at the bound leave a rest of
 * links that they need: with a bound of 473.31 GB/s and 450 from each GPU to its switch, 2761 trees leave none. At a
 * rate hardly below the bound some link has no rest for fewer trees:
 *
 *     bound 462, 450 to the switch, 24 of a NIC for two GPUs      77 trees of 6.00: 75 slots, and 4
 *                                                     461.84:     39 trees of 11.84: 38 slots, and 2
 *
 * Tried are the fewest trees for which links of the certificate have enough slots, and then all links, by a flow. Links
 * get these slots as their capacities, so that each is shared by whole numbers of them, and the bound is the number of
 * trees. */
#include "base/limits.h"
#include "graph/hops.h"
#include "plan/pack/cluster/cluster.h"

#include <string.h>

enum { LEAST_TREES = 8, MOST_TREES = 256, MOST_KINDS = 16, TRIES = 3 };

/* At least this part of the bound, thousandths, one after the other. */
static const int parts[] = { 999, 1000, 997, 995, 992, 990, 987, 985, 980, 975, 970, 965, 960 };

struct slots {
	Ctx *ctx;
	const Topology *topo;
	const Bound *bound;
	Collective coll;
	int root;
	int n_kinds;		/* of links, by their capacities */
	int64_t capacity[MOST_KINDS], counted[MOST_KINDS];	/* counted: that many are in the certificate */
	int64_t ranks;		/* that each tree enters over these */
	bool tried[MOST_TREES + 1];	/* this number of trees */
	bool *cut;		/* work space */
	Topology by_slots;
};

static int64_t
slots_in(int64_t capacity, Frac slot)
{
	return (int64_t)((Wide)capacity * slot.den / slot.num);
}

/* Is the link in the certificate? */
static bool
is_counted(const struct slots *s, int l)
{
	const Link *link = &s->topo->link[l];
	const int *part = s->bound->part;
	if (s->bound->kind == CERTIFICATE_PRICES)
		return s->bound->price[l].num > 0;
	return part[s->coll == REDUCE ? link->to : link->from] == 1
	    && part[s->coll == REDUCE ? link->from : link->to] != 1;
}

/* False: they are of too many kinds. */
static bool
list_kinds(struct slots *s)
{
	const Topology *topo = s->topo;
	s->ranks = 1;
	for (int l = 0; l < topo->n_links; l++) {
		int i = 0;
		while (i < s->n_kinds && s->capacity[i] != topo->link[l].capacity)
			i++;
		if (i == MOST_KINDS)
			return false;
		s->n_kinds += i == s->n_kinds;
		s->capacity[i] = topo->link[l].capacity;
		if (!is_counted(s, l))
			continue;
		s->counted[i]++;
		if (s->bound->kind == CERTIFICATE_PRICES)
			s->ranks = s->bound->price[l].den / s->bound->price[l].num;
	}
	return true;
}

/* The largest slot for which a link of this kind has no rest, and n trees are no more than the bound; *rate: of all. */
static bool
find_slot(const struct slots *s, int n, int kind, Frac *slot, Frac *rate)
{
	Frac most, number;
	if (!frac_div(s->bound->rate, (Frac){ n, 1 }, &most)
	    || !frac_div((Frac){ s->capacity[kind], 1 }, most, &number))
		return false;
	return frac_make(s->capacity[kind], number.num / number.den + (number.num % number.den > 0), slot)
	    && frac_mul(*slot, (Frac){ n, 1 }, rate);
}

/* Have links of the certificate room for n trees? */
static bool
has_room(const struct slots *s, int n, Frac slot)
{
	Wide sum = 0;
	for (int i = 0; i < s->n_kinds; i++)
		sum += (Wide)s->counted[i] * slots_in(s->capacity[i], slot);
	return sum >= (Wide)n * s->ranks;
}

/* Links by their slots. */
static void
count_slots(struct slots *s, Frac slot)
{
	for (int l = 0; l < s->topo->n_links; l++) {
		s->by_slots.link[l].count = 1;
		s->by_slots.link[l].capacity = slots_in(s->topo->link[l].capacity, slot);
	}
}

/* The fewest trees that links have room for at a rate of at least `least`, of numbers that were not tried, and
 * s->by_slots for them. *n: 0: there are none. */
static Status
find_fewest(struct slots *s, Frac least, int *n)
{
	for (*n = LEAST_TREES; *n <= MOST_TREES && *n <= LIMIT_TREE_EDGES / (s->topo->n_ranks - 1); ++*n)
		for (int kind = 0; kind < s->n_kinds; kind++) {
			Frac slot, rate;
			int n_short;
			if (s->tried[*n] || !find_slot(s, *n, kind, &slot, &rate) || frac_cmp(rate, least) < 0
			    || !has_room(s, *n, slot))
				continue;
			count_slots(s, slot);
			TRY(hops_cut(s->ctx, &s->by_slots, s->coll == REDUCE, s->root, false, (Frac){ *n, 1 }, s->cut,
			    &n_short));
			if (n_short == 0) {
				s->tried[*n] = true;
				return OK;
			}
		}
	*n = 0;
	return OK;
}

Status
pack_rooted_below(Ctx *ctx, const Topology *topo, Collective coll, int root, const Bound *bound, Frac rate,
    Packing **out)
{
	enum { N_TRIES = TRIES * (int)(sizeof parts / sizeof *parts) };
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct slots s = { .ctx = ctx, .topo = topo, .bound = bound, .coll = coll, .root = root, .by_slots = *topo };
	int64_t *load;
	*out = NULL;
	if (!list_kinds(&s))
		return OK;
	TRY(TEMP(ctx, load, topo->n_links));
	TRY(TEMP(ctx, s.cut, topo->n_links));
	TRY(TEMP(ctx, s.by_slots.link, topo->n_links));
	memcpy(s.by_slots.link, topo->link, (size_t)topo->n_links * sizeof *topo->link);
	for (int i = 0; i < N_TRIES && !*out; i++) {
		ArenaMark run = arena_mark(&ctx->run);
		Packing *pack;
		Frac least, more;
		int n;
		if (!frac_mul(bound->rate, (Frac){ parts[i / TRIES], 1000 }, &least) || frac_cmp(least, rate) <= 0)
			break;
		TRY(find_fewest(&s, least, &n));
		if (n == 0)
			continue;
		if (out_of_time(ctx, (int64_t)n * topo->n_ranks * 100))
			break;
		TRY(pack_rooted(ctx, &s.by_slots, coll, root, &(Bound){ .rate = { n, 1 } }, &pack));
		if (pack && pack_widest_unit(topo, pack, load, &pack->unit)
		    && pack_rate(pack, coll, topo->n_ranks, &more) && frac_cmp(more, least) >= 0)
			*out = pack;
		else
			arena_release(&ctx->run, run);
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
