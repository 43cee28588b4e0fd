/* Lengths of hubs of an allreduce that has the trees of an allgather, turned back. Each rank sums a part of the data,
 * and what enters it, at most its links' capacity, are the trees of all other hubs: so with the rate of its own trees
 * that makes up at least the rate R of all; and so with a server. As much for each rank is the least; what remains of R
 * is divided equally. GPUs of a server have as much each (unequal_level.c):
 *
 *     4 racks of 36 GPUs with 950 GB/s, one of which lost a    R = 956.3    trees of a hub in its rack    7.7
 *     NIC and has 900                                                       of each other hub             6.3 */
#include "plan/pack/cluster/unequal_pieces.h"

#include <math.h>

struct lengths {
	const struct plan *p;
	int64_t unit;		/* bytes/s, of which all capacities are multiples */
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
