/* Lengths of hubs of an allreduce that has the trees of an allgather, turned back. Each rank sums a part of the data,
 * and what enters it, at most its links' capacity, are the trees of all other hubs: so with the rate of its own trees
 * that makes up at least the rate R of all; and so with a server. As much for each rank is the least; what remains of R
 * is divided equally:
 *
 *     4 racks of 36 GPUs with 950 GB/s, one of which lost its     R = 956.3    trees of its own hub    56.3
 *     NIC and has 900                                                          of each other hub        6.3
 *
 * Where such trees would be deep, or more than a schedule may have, there are hubs of one length instead, and copies in
 * whole trees: of T trees k enter over a link, if k / T of the rate is no more than its capacity. Of all T that one is
 * taken with which the rate is highest:
 *
 *     16 racks of 72 GPUs, one of which lost a GPU    T = 1160    61 over the NIC and 1098 over the switch, and one
 *                                                                 of its own: 0.999993 of the bound */
#include "plan/pack/cluster/unequal_pieces.h"

#include <math.h>

/* ---- the least lengths ---- */

struct lengths {
	const struct plan *p;
	int64_t unit;		/* bytes/s, of which all capacities are multiples */
	double rate;		/* in units */
	double *inside;		/* of each rank: its link to its switch, both directions, in units */
	int64_t *room, *beside;	/* of each rank: weights for which that has room; that enter over uplinks */
	int64_t *enters;	/* over its switch */
	double *least;		/* of each rank: weight that it has as a hub; a whole number */
};

static Status
new_lengths(struct plan *p, struct lengths *out)
{
	const Cluster *c = &p->c;
	int n = p->topo->n_ranks;
	*out = (struct lengths){ .p = p, .unit = c->unit };
	TRY(TEMP_EACH(p->ctx, n, out->inside, out->least));
	TRY(TEMP_EACH(p->ctx, n, out->room, out->beside, out->enters));
	for (int v = 0; v < n; v++)
		out->unit = c->down[v] < 0 ? out->unit : gcd64(p->topo->link[c->down[v]].capacity, out->unit);
	for (int v = 0; v < n; v++)
		out->inside[v] = c->down[v] < 0 ? 0
		    : 2 * (double)(p->topo->link[c->down[v]].capacity / out->unit);
	out->rate = frac_double(p->rate) * (double)(c->unit / out->unit);
	return OK;
}

/* What enters a link, where a unit has room for this weight, in whole numbers. */
static double
room_of(double capacity, double times)
{
	return floor(capacity * times + 1e-9);
}

static double
uplink_units(const struct lengths *x, int i)
{
	return (double)x->p->c.uplink[UPLINK_IN][i].capacity * (double)(x->p->c.unit / x->unit);
}

/* Of the hubs of a server. Returns their sum. */
static double
server_lengths(struct lengths *x, const struct cluster_server *server, double all)
{
	const int *rank = x->p->c.rank + server->first;
	double outside = 0, sum = 0, more;
	for (int i = 0; i < server->n; i++) {
		outside += (double)x->beside[rank[i]];
		sum += x->least[rank[i]] = fmax(0, all - (double)(x->enters[rank[i]] + x->beside[rank[i]]));
	}
	more = fmax(0, all - outside - sum);
	sum += more;
	for (int i = 0; i < server->n; i++) {
		double part = ceil(more / (server->n - i));
		x->least[rank[i]] += part;
		more -= part;
	}
	return sum;
}

/* Of all hubs, which have `all` together, where a unit of capacity has room for `times`. Returns their sum. */
static double
least_lengths(struct lengths *x, double all, double times)
{
	const Cluster *c = &x->p->c;
	double sum = 0;
	for (int v = 0; v < x->p->topo->n_ranks; v++) {
		x->room[v] = (int64_t)room_of(x->inside[v], times);
		x->beside[v] = 0;
	}
	for (int i = 0; i < c->n_uplinks[UPLINK_IN]; i++)
		x->beside[c->uplink[UPLINK_IN][i].rank] += (int64_t)room_of(uplink_units(x, i), times);
	unequal_level(x->p, x->room, x->beside, x->enters);
	for (int s = 0; s < c->n_servers; s++)
		sum += server_lengths(x, &c->server[s], all);
	return sum;
}

Status
unequal_set_lengths(struct plan *p, bool *good)
{
	const double most = (double)(INT64_C(1) << 53);
	int n = p->topo->n_ranks;
	struct lengths x;
	Frac rate;
	bool equal = true;
	TRY(new_lengths(p, &x));
	*good = frac_mul(p->rate, (Frac){ p->c.unit / x.unit, 1 }, &rate)
	    && (double)rate.num * n < most && (double)rate.den * n < most;
	if (!*good)
		return OK;
	double all = (double)rate.num * n, rest = all - least_lengths(&x, all, (double)rate.den * n);
	for (int v = 0; v < n; v++)
		equal &= x.least[v] * n <= all;
	for (int v = 0; v < n; v++)
		p->hub[v].length = equal ? 1 : (int64_t)(x.least[v] + fmax(0, floor(rest / n)));
	return OK;
}

/* ---- hubs of one length ---- */

/* Have trees of this rate, T of them of one length, room for all? */
static bool
slots_fit(struct lengths *x, int n_slots, double rate)
{
	return least_lengths(x, n_slots, n_slots / rate) <= n_slots;
}

/* The highest rate of T trees, if it is higher than `rate`. */
static double
slots_rate(struct lengths *x, int n_slots, double rate)
{
	enum { HALVINGS = 40 };
	double low = rate, high = x->rate;
	if (!slots_fit(x, n_slots, low))
		return rate;
	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;
		bool fits = slots_fit(x, n_slots, middle);
		low = fits ? middle : low;
		high = fits ? high : middle;
	}
	return low;
}

/* Lowers *rate to capacity * n_slots / k, k the slots that this link has at it. */
static bool
lower_rate(double capacity, int n_slots, double slots_of_unit, Frac *rate)
{
	Frac exact;
	int64_t k = (int64_t)room_of(capacity, slots_of_unit);
	if (k > 0 && !frac_make((Wide)capacity * n_slots, k, &exact))
		return false;
	*rate = k > 0 && (rate->num == 0 || frac_cmp(exact, *rate) < 0) ? exact : *rate;
	return true;
}

/* The rate, in units of c.unit, which some link bounds. */
static Status
set_rate(struct plan *p, const struct lengths *x, int n_slots, double rate, bool *good)
{
	Frac least = FRAC_ZERO;
	for (int v = 0; v < p->topo->n_ranks && *good; v++)
		*good = lower_rate(x->inside[v], n_slots, n_slots / rate, &least);
	for (int i = 0; i < p->c.n_uplinks[UPLINK_IN] && *good; i++)
		*good = lower_rate(uplink_units(x, i), n_slots, n_slots / rate, &least);
	*good = *good && frac_mul(least, (Frac){ x->unit, p->c.unit }, &least)
	    && frac_cmp(least, p->rate) <= 0;
	p->rate = *good ? least : p->rate;
	return OK;
}

Status
unequal_set_slots(struct plan *p, bool *good)
{
	const double gain = 1e-6;	/* for which trees are more */
	int n = p->topo->n_ranks, most = 2 * n, n_slots = 0;
	struct lengths x;
	struct hub *hub;
	TRY(new_lengths(p, &x));
	while (!unequal_may_have(p, most))
		most--;
	double rate = x.rate / 2;
	for (int slots = most / 2; slots <= most; slots++) {
		double found = slots_rate(&x, slots, rate * (1 + gain));
		n_slots = found > rate * (1 + gain) ? slots : n_slots;
		rate = n_slots == slots ? found : rate;
	}
	*good = n_slots > 0;
	if (!*good)
		return OK;
	TRY(set_rate(p, &x, n_slots, rate, good));
	double rest = n_slots - least_lengths(&x, n_slots, n_slots / rate);
	TRY(TEMP(p->ctx, hub, n_slots));
	p->n_hubs = 0;
	for (int v = 0; v < n; v++) {
		double more = floor(rest * (v + 1) / n) - floor(rest * v / n);
		for (double k = x.least[v] + more; k > 0 && p->n_hubs < n_slots; k--) {
			hub[p->n_hubs] = p->hub[v];
			hub[p->n_hubs++].length = 1;
		}
	}
	p->hub = hub;
	return OK;
}
