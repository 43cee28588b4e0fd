/* The proof of the bound, as text. */
#include "view/parts.h"
#include "base/sort.h"
#include "schedule/schedule.h"

#include <inttypes.h>

enum {
	NAMES = 16,		/* of a list of names */
	TERMS = 16		/* of a sum */
};

/* "gpu0, gpu1 and 6 more" */
static void
put_names(Text *out, const Explained *e, const int *part, int p)
{
	int n = 0;
	for (int v = 0; v < e->topo->n_vertices; v++)
		if (part[v] == p && n++ < NAMES)
			text_printf(out, n > 1 ? ", %s" : "%s", e->name[v]);
	if (n > NAMES)
		text_printf(out, " and %d more", n - NAMES);
}

static int
ranks_of(const Explained *e, int p)
{
	int n = 0;
	for (int r = 0; r < e->topo->n_ranks; r++)
		n += e->sched->bound.part[r] == p;
	return n;
}

/* Capacity and number of the links that count for a part; of a cut, of those that cross it. */
static int64_t
counted_capacity(const Explained *e, int p, int *n)
{
	const Topology *topo = e->topo;
	int64_t sum = 0;
	*n = 0;
	for (int l = 0; l < topo->n_links; l++) {
		int inner = e->counts_entering ? topo->link[l].to : topo->link[l].from;
		if (!e->tight[l] || (e->sched->bound.kind == CERTIFICATE_PARTITION && e->sched->bound.part[inner] != p))
			continue;
		sum += topo->link[l].capacity;
		(*n)++;
	}
	return sum;
}

static double
gb(int64_t bytes)
{
	return (double)bytes / 1e9;
}

/* Which share of the buffer must cross the cut, and the factor that follows for its capacity. */
static void
put_cut_arithmetic(Text *out, const Explained *e)
{
	const Schedule *sched = e->sched;
	int n = sched->topo->n_ranks, s = ranks_of(e, 1), t = n - s, links;
	double sum = gb(counted_capacity(e, 1, &links));
	switch (sched->coll) {
	case BROADCAST:
		text_put(out, "all of the buffer must leave the side of the root: at most ");
		break;
	case REDUCE:
		text_put(out, "all of the result needs data from outside: at most ");
		break;
	case ALLREDUCE:
		text_put(out, "the result outside needs data from inside: at most ");
		break;
	case ALLGATHER:
	case REDUCESCATTER:
		text_printf(out, sched->coll == ALLGATHER ? "%d of %d blocks must leave the side: at most "
		    : "%d of %d blocks need data from outside: at most ", s, n);
		text_printf(out, "%d/%d x ", n, s);
		break;
	case GATHER:
	case SCATTER:
		text_printf(out, sched->coll == GATHER ? "%d of %d blocks must enter the side of the root: at most "
		    : "%d of %d blocks must leave the side of the root: at most ", t, n);
		text_printf(out, "%d/%d x ", n, t);
		break;
	default:
		text_printf(out, "each of %d ranks inside sends 1/%d of its buffer to each of ", s, n);
		text_printf(out, "%d outside: at most %d/(%d x %d) x ", t, n, s, t);
		break;
	}
	text_printf(out, "%.6g GB/s", sum);
	if (sched->coll != BROADCAST && sched->coll != REDUCE && sched->coll != ALLREDUCE) {
		text_printf(out, " = %.6g GB/s", frac_double(sched->bound.rate) / 1e9);
	}
}

void
put_arithmetic(Text *out, const Explained *e)
{
	const Bound *bound = &e->sched->bound;
	double rate = frac_double(bound->rate) / 1e9;
	int64_t sum = 0;
	int links;
	switch (bound->kind) {
	case CERTIFICATE_CUT:
		put_cut_arithmetic(out, e);
		break;
	case CERTIFICATE_PARTITION:
		for (int p = 0; p < bound->n_parts; p++)
			sum += counted_capacity(e, p, &links);
		text_printf(out, "between %d parts an allreduce moves its buffer 2 x (%d - 1) times: at most ",
		    bound->n_parts, bound->n_parts);
		text_printf(out, "%.6g GB/s / (2 x (%d - 1)) = %.6g GB/s", gb(sum), bound->n_parts, rate);
		break;
	default:
		text_printf(out, bound->kind == CERTIFICATE_PRICES
		    ? "no tree costs less than 1 at these prices: at most the sum of capacity x price = "
		    : "the cheapest trees of all blocks together cost at least 1: "
			"at most the sum of capacity x length = ");
		text_printf(out, "%.6g GB/s", rate);
		break;
	}
	put_assumed(out, bound_assumed(e->topo, e->sched->coll, bound));
}

static void
put_cut(Text *out, const Explained *e)
{
	const Topology *topo = e->topo;
	int n, terms = 0, inside = ranks_of(e, 1);
	int64_t sum = counted_capacity(e, 1, &n);
	text_put(out, "side: ");
	put_names(out, e, e->sched->bound.part, 1);
	text_printf(out, " (%d of %d ranks)\nrest: ", inside, topo->n_ranks);
	put_names(out, e, e->sched->bound.part, 0);
	text_printf(out, "\n%d links %s the side: ", n, e->counts_entering ? "enter" : "leave");
	for (int l = 0; l < topo->n_links; l++) {
		if (!e->tight[l] || terms++ >= TERMS)
			continue;
		text_put(out, terms > 1 ? " + " : "");
		text_printf(out, "%.6g", explain_capacity(e, l));
	}
	if (n > TERMS)
		text_printf(out, " + %d more", n - TERMS);
	text_printf(out, " = %.6g GB/s\n", gb(sum));
}

static void
put_partition(Text *out, const Explained *e)
{
	const Bound *bound = &e->sched->bound;
	int64_t sum = 0, others = 0;
	for (int p = 0; p < bound->n_parts; p++) {
		int n;
		int64_t one = counted_capacity(e, p, &n);
		sum += one;
		if (p >= NAMES) {
			others += one;
			continue;
		}
		text_printf(out, "part %d: ", p);
		put_names(out, e, bound->part, p);
		text_printf(out, ": %d links %s it, %.6g GB/s\n", n, e->counts_entering ? "enter" : "leave", gb(one));
	}
	if (bound->n_parts > NAMES) {
		text_printf(out, "%d more parts: %.6g GB/s\n", bound->n_parts - NAMES, gb(others));
	}
	text_printf(out, "sum: %.6g GB/s\n", gb(sum));
}

struct priced {
	int64_t capacity;
	Frac price;
	int first, n;		/* links */
};

static int
price_order(const struct priced *a, const struct priced *b)
{
	return a->capacity != b->capacity ? (a->capacity < b->capacity ? -1 : 1) : frac_cmp(a->price, b->price);
}

static int
by_first_priced(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

static int
by_price(const void *a, const void *b)
{
	int order = price_order(a, b);
	return order ? order : by_first_priced(a, b);
}

/* Links of equal capacity and price are one term. */
static Status
put_prices(Ctx *ctx, Text *out, const Explained *e)
{
	const Topology *topo = e->topo;
	struct priced *priced;
	int n = 0, n_tight = 0;
	TRY(TEMP(ctx, priced, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		if (e->tight[l])
			priced[n_tight++] = (struct priced){ topo->link[l].capacity, e->sched->bound.price[l], l, 1 };
	sort_array(priced, n_tight, sizeof *priced, by_price);
	for (int i = 0; i < n_tight; i++) {
		if (n > 0 && price_order(&priced[n - 1], &priced[i]) == 0)
			priced[n - 1].n++;
		else
			priced[n++] = priced[i];
	}
	sort_array(priced, n, sizeof *priced, by_first_priced);
	for (int k = 0; k < n && k < 4 * TERMS; k++) {
		text_printf(out, "%d links of %.6g GB/s", priced[k].n, gb(priced[k].capacity));
		text_printf(out, " x %" PRId64 "/%" PRId64 " = ", (int64_t)priced[k].price.num, priced[k].price.den);
		text_printf(out, "%.6g GB/s\n", priced[k].n * gb(priced[k].capacity) * frac_double(priced[k].price));
	}
	if (n > 4 * TERMS)
		text_printf(out, "and %d more terms\n", n - 4 * TERMS);
	return OK;
}

Status
show_proof(Ctx *ctx, const Explained *e, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Bound *bound = &e->sched->bound;
	static const char *const proofs[] = { "a cut", "a partition", "prices of links", "lengths of links" };
	text_printf(out, "\nbound: %.6g GB/s, by %s\n\n", frac_double(bound->rate) / 1e9, proofs[bound->kind]);
	if (bound->kind == CERTIFICATE_CUT)
		put_cut(out, e);
	else if (bound->kind == CERTIFICATE_PARTITION)
		put_partition(out, e);
	else
		TRY(put_prices(ctx, out, e));
	put_arithmetic(out, e);
	text_printf(out, "; no %s%s is faster\n", collective_name(e->sched->coll), bound_claim(bound, e->sched->coll));
	arena_release(&ctx->scratch, mark);
	return OK;
}
