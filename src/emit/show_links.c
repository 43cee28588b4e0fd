/* What each link carries, and why no schedule is faster, as text. */
#include "explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	MANY_LINKS = 128,	/* a line for each of so many */
	NAMES = 16,		/* of a list of names */
	TERMS = 16,		/* of a sum */
	BAR = 10		/* cells */
};

static void
put_gbs(Text *out, double value)
{
	put_figures(out, value);
	text_put(out, " GB/s");
}

/* Columns of the text from `start` on: UTF-8 takes one for each character. */
static void
pad(Text *out, size_t start, int width, bool right)
{
	int columns = 0;
	for (size_t i = start; i < out->size; i++)
		columns += ((unsigned char)out->data[i] & 0xc0) != 0x80;
	int missing = width - columns;
	size_t length = out->size - start;
	if (missing <= 0)
		return;
	text_printf(out, "%*s", missing, "");
	if (right && !out->failed) {
		memmove(out->data + start + missing, out->data + start, length);
		memset(out->data + start, ' ', (size_t)missing);
	}
}

static void
put_bar(Text *out, double use)
{
	static const char *const part[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	int eighths = (int)(use * 8 * BAR + 0.5);
	eighths = eighths > 8 * BAR ? 8 * BAR : eighths;
	for (int i = 0; i < eighths / 8; i++)
		text_put(out, "█");
	text_put(out, part[eighths % 8]);
}

/* ---- each link ---- */

struct ranked { const Explained *e; int link; };

/* Full ones first, then by use, and by number. */
static int
by_use(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	double u = explain_use(x->e, x->link), v = explain_use(y->e, y->link);
	if (x->e->full[x->link] != y->e->full[y->link])
		return x->e->full[x->link] ? -1 : 1;
	return u > v ? -1 : u < v ? 1 : (x->link > y->link) - (x->link < y->link);
}

static void
put_mark(Text *out, const Explained *e, int l)
{
	const Bound *bound = &e->sched->bound;
	if (!e->tight[l])
		return;
	text_printf(out, "  %s", bound->kind == CERTIFICATE_PRICES ? "price" : bound->kind == CERTIFICATE_LENGTHS ? "length"
	    : certificate_name(bound->kind));
	if (bound->kind == CERTIFICATE_PRICES || bound->kind == CERTIFICATE_LENGTHS)
		text_printf(out, " %" PRId64 "/%" PRId64, bound->price[l].num, bound->price[l].den);
}

static int
widest_name(const Explained *e)
{
	size_t widest = 4;
	for (int v = 0; v < e->sched->topo->n_vertices; v++)
		widest = strlen(e->name[v]) > widest ? strlen(e->name[v]) : widest;
	return (int)widest;
}

static void
put_link(Text *out, const Explained *e, int l, int width)
{
	const Link *link = &e->sched->topo->link[l];
	size_t at = out->size;
	text_printf(out, "%-*s  ", width, e->name[link->from]);
	text_printf(out, "%-*s  ", width, e->name[link->to]);
	text_printf(out, "%-6s  ", link_class_name(link->class));
	at = out->size;
	put_figures(out, explain_capacity(e, l));
	pad(out, at, 13, true);
	text_put(out, "  ");
	at = out->size;
	put_figures(out, e->load[l]);
	pad(out, at, 9, true);
	text_put(out, "  ");
	at = out->size;
	put_percent(out, explain_use(e, l), e->full[l]);
	pad(out, at, 7, true);
	text_put(out, "  ");
	at = out->size;
	put_bar(out, explain_use(e, l));
	if (e->tight[l])
		pad(out, at, BAR, false);
	put_mark(out, e, l);
	while (out->size && out->data[out->size - 1] == ' ')
		out->data[--out->size] = 0;
	text_put(out, "\n");
}

static Status
each_link(Ctx *ctx, const Explained *e, unsigned classes, Text *out)
{
	const Topology *topo = e->sched->topo;
	int width = widest_name(e), n = 0;
	struct ranked *ranked;
	TRY(TEMP(ctx, ranked, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		if (classes >> topo->link[l].class & 1)
			ranked[n++] = (struct ranked){ e, l };
	if (n > 0)
		qsort(ranked, (size_t)n, sizeof *ranked, by_use);
	text_printf(out, "%-*s  %-*s  class   capacity GB/s  load GB/s      use\n", width, "from", width, "to");
	for (int i = 0; i < n; i++)
		put_link(out, e, ranked[i].link, width);
	return OK;
}

/* ---- kinds of links ---- */

/* A schedule does not say what its vertices are, but for GPUs; their links do. */
static const char *
kind_of(const Explained *e, int v)
{
	const Topology *topo = e->sched->topo;
	bool net = false, qpi = false, other = false;
	if (v < topo->n_ranks)
		return "gpu";
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
		net = net || topo->link[topo->out[i]].class == LINK_NET;
		qpi = qpi || topo->link[topo->out[i]].class == LINK_QPI;
		other = other || topo->link[topo->out[i]].class != LINK_NET;
	}
	for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
		net = net || topo->link[topo->in[i]].class == LINK_NET;
		qpi = qpi || topo->link[topo->in[i]].class == LINK_QPI;
		other = other || topo->link[topo->in[i]].class != LINK_NET;
	}
	return net ? other ? "nic" : "network" : qpi ? "cpu" : "switch";
}

struct kind {
	const char *from, *to;
	LinkClass class;
	int64_t capacity;
	int first;			/* link */
	int n, full, tight;
	double least, most, sum;	/* of loads, GB/s */
};

static int
kind_order(const struct kind *a, const struct kind *b)
{
	int order = strcmp(a->from, b->from);
	order = order ? order : strcmp(a->to, b->to);
	order = order ? order : (a->class > b->class) - (a->class < b->class);
	return order ? order : (a->capacity > b->capacity) - (a->capacity < b->capacity);
}

static int
by_first(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

static int
by_kind(const void *a, const void *b)
{
	int order = kind_order(a, b);
	return order ? order : by_first(a, b);
}

static void
add_to_kind(struct kind *kind, const struct kind *one)
{
	kind->n++;
	kind->full += one->full;
	kind->tight += one->tight;
	kind->sum += one->sum;
	kind->least = one->least < kind->least ? one->least : kind->least;
	kind->most = one->most > kind->most ? one->most : kind->most;
}

/* In the order of their first links. */
static Status
find_kinds(Ctx *ctx, const Explained *e, struct kind **out, int *n)
{
	const Topology *topo = e->sched->topo;
	const char **name;
	struct kind *kind;
	TRY(TEMP(ctx, name, topo->n_vertices));
	TRY(TEMP(ctx, kind, topo->n_links));
	for (int v = 0; v < topo->n_vertices; v++)
		name[v] = kind_of(e, v);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		double load = e->load[l];
		kind[l] = (struct kind){ name[link->from], name[link->to], link->class, link->capacity, l, 1, e->full[l], e->tight[l], load, load, load };
	}
	if (topo->n_links > 0)
		qsort(kind, (size_t)topo->n_links, sizeof *kind, by_kind);
	*n = 0;
	for (int l = 0; l < topo->n_links; l++) {
		if (*n > 0 && kind_order(&kind[*n - 1], &kind[l]) == 0)
			add_to_kind(&kind[*n - 1], &kind[l]);
		else
			kind[(*n)++] = kind[l];
	}
	if (*n > 0)
		qsort(kind, (size_t)*n, sizeof *kind, by_first);
	*out = kind;
	return OK;
}

static Status
each_kind(Ctx *ctx, const Explained *e, Text *out)
{
	struct kind *kind;
	int n;
	TRY(find_kinds(ctx, e, &kind, &n));
	text_put(out, "from     to       class   capacity GB/s    links     full    tight  least use  average use  most use\n");
	for (int k = 0; k < n; k++) {
		double capacity = (double)kind[k].capacity / 1e9;
		text_printf(out, "%-7s  %-7s  %-6s  ", kind[k].from, kind[k].to, link_class_name(kind[k].class));
		size_t at = out->size;
		put_figures(out, capacity);
		pad(out, at, 13, true);
		text_printf(out, "  %7d  %7d  %7d  ", kind[k].n, kind[k].full, kind[k].tight);
		at = out->size;
		put_percent(out, kind[k].least / capacity, kind[k].full == kind[k].n);
		pad(out, at, 9, true);
		text_put(out, "  ");
		at = out->size;
		put_percent(out, kind[k].sum / kind[k].n / capacity, kind[k].full == kind[k].n);
		pad(out, at, 11, true);
		text_put(out, "  ");
		at = out->size;
		put_percent(out, kind[k].most / capacity, kind[k].full > 0);
		pad(out, at, 8, true);
		text_put(out, "\n");
	}
	text_put(out, "--links all has a line for each link\n");
	return OK;
}

Status
show_links(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = e->sched->topo;
	int used = 0, full = 0;
	for (int l = 0; l < topo->n_links; l++) {
		used += e->load[l] > 0;
		full += e->full[l];
	}
	text_printf(out, "\nlinks: %d, of which %d carry data and %d are full\n\n", topo->n_links, used, full);
	TRY(ask->classes || topo->n_links <= MANY_LINKS ? each_link(ctx, e, ask->classes ? ask->classes : ~0u, out) : each_kind(ctx, e, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- the bound ---- */

/* "gpu0, gpu1 and 6 more" */
static void
put_names(Text *out, const Explained *e, const int *part, int p)
{
	int n = 0;
	for (int v = 0; v < e->sched->topo->n_vertices; v++)
		if (part[v] == p && n++ < NAMES)
			text_printf(out, n > 1 ? ", %s" : "%s", e->name[v]);
	if (n > NAMES)
		text_printf(out, " and %d more", n - NAMES);
}

static int
ranks_of(const Explained *e, int p)
{
	int n = 0;
	for (int r = 0; r < e->sched->topo->n_ranks; r++)
		n += e->sched->bound.part[r] == p;
	return n;
}

/* GB/s and number of links that leave a part; of a cut, those that are tight. */
static int64_t
leaving(const Explained *e, int p, int *n)
{
	const Topology *topo = e->sched->topo;
	int64_t sum = 0;
	*n = 0;
	for (int l = 0; l < topo->n_links; l++) {
		if (!e->tight[l] || (e->sched->bound.kind == CERTIFICATE_PARTITION && e->sched->bound.part[topo->link[l].from] != p))
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

/* What of the buffer must cross, and by what a capacity is multiplied for that. */
static void
put_cut_arithmetic(Text *out, const Explained *e)
{
	const Schedule *sched = e->sched;
	int n = sched->topo->n_ranks, s = ranks_of(e, 1), t = n - s, links;
	double sum = gb(leaving(e, 1, &links));
	switch (sched->coll) {
	case BROADCAST:
		text_put(out, "all of the buffer must leave the side of the root: at most ");
		break;
	case REDUCE:
		text_put(out, "all of the result needs what lies outside: at most ");
		break;
	case ALLREDUCE:
		text_put(out, "all of the result outside needs what lies inside: at most ");
		break;
	case ALLGATHER:
	case REDUCESCATTER:
		text_printf(out, sched->coll == ALLGATHER ? "%d of %d blocks must leave the side: at most "
		    : "%d of %d blocks need what lies outside: at most ", s, n);
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
	put_gbs(out, sum);
	if (sched->coll != BROADCAST && sched->coll != REDUCE && sched->coll != ALLREDUCE) {
		text_put(out, " = ");
		put_gbs(out, frac_double(sched->bound.rate) / 1e9);
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
		return;
	case CERTIFICATE_PARTITION:
		for (int p = 0; p < bound->n_parts; p++)
			sum += leaving(e, p, &links);
		text_printf(out, "between %d parts an allreduce moves its buffer 2 x (%d - 1) times: at most ", bound->n_parts, bound->n_parts);
		put_gbs(out, gb(sum));
		text_printf(out, " / (2 x (%d - 1)) = ", bound->n_parts);
		put_gbs(out, rate);
		return;
	default:
		text_printf(out, bound->kind == CERTIFICATE_PRICES ? "no tree costs less than 1 at these prices: at most the sum of capacity x price = "
		    : "the cheapest trees of all blocks together cost at least 1: at most the sum of capacity x length = ");
		put_gbs(out, rate);
		return;
	}
}

static void
put_cut(Text *out, const Explained *e)
{
	const Topology *topo = e->sched->topo;
	bool enters = e->sched->coll == REDUCE || e->sched->coll == GATHER || e->sched->coll == REDUCESCATTER;
	int n, terms = 0, inside = ranks_of(e, 1);
	int64_t sum = leaving(e, 1, &n);
	text_put(out, "side: ");
	put_names(out, e, e->sched->bound.part, 1);
	text_printf(out, " (%d of %d ranks)\nrest: ", inside, topo->n_ranks);
	put_names(out, e, e->sched->bound.part, 0);
	text_printf(out, "\n%d links %s the side: ", n, enters ? "enter" : "leave");
	for (int l = 0; l < topo->n_links; l++) {
		if (!e->tight[l] || terms++ >= TERMS)
			continue;
		text_put(out, terms > 1 ? " + " : "");
		put_figures(out, explain_capacity(e, l));
	}
	if (n > TERMS)
		text_printf(out, " + %d more", n - TERMS);
	text_put(out, " = ");
	put_gbs(out, gb(sum));
	text_put(out, "\n");
}

static void
put_partition(Text *out, const Explained *e)
{
	const Bound *bound = &e->sched->bound;
	int64_t sum = 0, others = 0;
	for (int p = 0; p < bound->n_parts; p++) {
		int n;
		int64_t one = leaving(e, p, &n);
		sum += one;
		if (p >= NAMES) {
			others += one;
			continue;
		}
		text_printf(out, "part %d: ", p);
		put_names(out, e, bound->part, p);
		text_printf(out, ": %d links leave it, ", n);
		put_gbs(out, gb(one));
		text_put(out, "\n");
	}
	if (bound->n_parts > NAMES) {
		text_printf(out, "%d more parts: ", bound->n_parts - NAMES);
		put_gbs(out, gb(others));
		text_put(out, "\n");
	}
	text_put(out, "sum: ");
	put_gbs(out, gb(sum));
	text_put(out, "\n");
}

struct priced { int64_t capacity; Frac price; int first, n; };

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

/* Links of one capacity and one price are one term. */
static Status
put_prices(Ctx *ctx, Text *out, const Explained *e)
{
	const Topology *topo = e->sched->topo;
	struct priced *priced;
	int n = 0, n_tight = 0;
	TRY(TEMP(ctx, priced, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		if (e->tight[l])
			priced[n_tight++] = (struct priced){ topo->link[l].capacity, e->sched->bound.price[l], l, 1 };
	if (n_tight > 0)
		qsort(priced, (size_t)n_tight, sizeof *priced, by_price);
	for (int i = 0; i < n_tight; i++) {
		if (n > 0 && price_order(&priced[n - 1], &priced[i]) == 0)
			priced[n - 1].n++;
		else
			priced[n++] = priced[i];
	}
	if (n > 0)
		qsort(priced, (size_t)n, sizeof *priced, by_first_priced);
	for (int k = 0; k < n && k < 4 * TERMS; k++) {
		text_printf(out, "%d links of ", priced[k].n);
		put_gbs(out, gb(priced[k].capacity));
		text_printf(out, " x %" PRId64 "/%" PRId64 " = ", priced[k].price.num, priced[k].price.den);
		put_gbs(out, priced[k].n * gb(priced[k].capacity) * frac_double(priced[k].price));
		text_put(out, "\n");
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
	text_put(out, "\nbound: ");
	put_gbs(out, frac_double(bound->rate) / 1e9);
	text_printf(out, ", by %s\n\n", proofs[bound->kind]);
	if (bound->kind == CERTIFICATE_CUT)
		put_cut(out, e);
	else if (bound->kind == CERTIFICATE_PARTITION)
		put_partition(out, e);
	else
		TRY(put_prices(ctx, out, e));
	put_arithmetic(out, e);
	text_printf(out, "; no %s is faster\n", collective_name(e->sched->coll));
	arena_release(&ctx->scratch, mark);
	return OK;
}
