/* The load of each link, or of each kind of link, as text. */
#include "view/parts.h"
#include "base/sort.h"

#include <inttypes.h>
#include <string.h>

enum {
	MANY_LINKS = 128,	/* up to here each link has a line */
	BAR = 10		/* cells */
};

/* filled: with blanks, as something follows. */
static void
put_bar(Text *out, double use, bool filled)
{
	static const char *const part[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	int eighths = (int)(use * 8 * BAR + 0.5);
	eighths = eighths > 8 * BAR ? 8 * BAR : eighths;
	for (int i = 0; i < eighths / 8; i++)
		text_put(out, "█");
	text_put(out, part[eighths % 8]);
	if (filled)
		text_printf(out, "%*s", BAR - (eighths + 7) / 8, "");
}

/* ---- each link ---- */

struct ranked {
	const Explained *e;
	int link;
};

/* Saturated links first, then by use, then by number. */
static int
by_use(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	double u = explain_use(x->e, x->link), v = explain_use(y->e, y->link);
	if (x->e->saturated[x->link] != y->e->saturated[y->link])
		return x->e->saturated[x->link] ? -1 : 1;
	return u > v ? -1 : u < v ? 1 : (x->link > y->link) - (x->link < y->link);
}

static void
put_mark(Text *out, const Explained *e, int l)
{
	const Bound *bound = &e->sched->bound;
	if (!e->tight[l])
		return;
	text_printf(out, "  %s", bound->kind == CERTIFICATE_PRICES ? "price"
	    : bound->kind == CERTIFICATE_LENGTHS ? "length"
	    : certificate_name(bound->kind));
	if (bound->kind == CERTIFICATE_PRICES || bound->kind == CERTIFICATE_LENGTHS)
		text_printf(out, " %" PRId64 "/%" PRId64, (int64_t)bound->price[l].num, bound->price[l].den);
}

static int
widest_name(const Explained *e)
{
	size_t widest = 4;
	for (int v = 0; v < e->topo->n_vertices; v++)
		widest = strlen(e->name[v]) > widest ? strlen(e->name[v]) : widest;
	return (int)widest;
}

static void
put_link(Text *out, const Explained *e, int l, int width)
{
	const Link *link = &e->topo->link[l];
	text_printf(out, "%-*s  %-*s  %-6s  %13.6g  %9.6g  %5.4g %%  ", width, e->name[link->from], width,
	    e->name[link->to], link_class_name(link->class), explain_capacity(e, l), e->load[l],
	    per_cent(explain_use(e, l), e->saturated[l]));
	put_bar(out, explain_use(e, l), e->tight[l]);
	put_mark(out, e, l);
	while (out->size && out->data[out->size - 1] == ' ')
		out->data[--out->size] = 0;
	text_put(out, "\n");
}

static Status
put_each_link(Ctx *ctx, const Explained *e, unsigned classes, Text *out)
{
	const Topology *topo = e->topo;
	int width = widest_name(e), n = 0;
	struct ranked *ranked;
	TRY(TEMP(ctx, ranked, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		if (classes >> topo->link[l].class & 1)
			ranked[n++] = (struct ranked){ e, l };
	sort_array(ranked, n, sizeof *ranked, by_use);
	text_printf(out, "%-*s  %-*s  class   capacity GB/s  load GB/s      use\n", width, "from", width, "to");
	for (int i = 0; i < n; i++)
		put_link(out, e, ranked[i].link, width);
	return OK;
}

/* ---- kinds of links ---- */

/* A schedule only says which vertices are GPUs; the links of the others tell what they are. */
static const char *
vertex_kind(const Explained *e, int v)
{
	const Topology *topo = e->topo;
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
	int n, saturated, tight;
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
	kind->saturated += one->saturated;
	kind->tight += one->tight;
	kind->sum += one->sum;
	kind->least = one->least < kind->least ? one->least : kind->least;
	kind->most = one->most > kind->most ? one->most : kind->most;
}

/* Links with ends of the same kinds, the same class and capacity; in the order of their first links. */
static Status
find_kinds(Ctx *ctx, const Explained *e, struct kind **out, int *n)
{
	const Topology *topo = e->topo;
	const char **name;
	struct kind *kind;
	TRY(TEMP(ctx, name, topo->n_vertices));
	TRY(TEMP(ctx, kind, topo->n_links));
	for (int v = 0; v < topo->n_vertices; v++)
		name[v] = vertex_kind(e, v);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		double load = e->load[l];
		kind[l] = (struct kind){ name[link->from], name[link->to], link->class, link->capacity, l, 1,
		    e->saturated[l], e->tight[l], load, load, load };
	}
	sort_array(kind, topo->n_links, sizeof *kind, by_kind);
	*n = 0;
	for (int l = 0; l < topo->n_links; l++) {
		if (*n > 0 && kind_order(&kind[*n - 1], &kind[l]) == 0)
			add_to_kind(&kind[*n - 1], &kind[l]);
		else
			kind[(*n)++] = kind[l];
	}
	sort_array(kind, *n, sizeof *kind, by_first);
	*out = kind;
	return OK;
}

static Status
put_each_kind(Ctx *ctx, const Explained *e, Text *out)
{
	struct kind *kind;
	int n;
	TRY(find_kinds(ctx, e, &kind, &n));
	text_put(out,
	    "from     to       class   capacity GB/s    links  saturated    tight  least use  average use  most use\n");
	for (int k = 0; k < n; k++) {
		double capacity = (double)kind[k].capacity / 1e9;
		bool all = kind[k].saturated == kind[k].n;
		text_printf(out, "%-7s  %-7s  %-6s  %13.6g  %7d  %9d  %7d  ", kind[k].from, kind[k].to,
		    link_class_name(kind[k].class), capacity, kind[k].n, kind[k].saturated, kind[k].tight);
		text_printf(out, "%7.4g %%  %9.4g %%  %6.4g %%\n", per_cent(kind[k].least / capacity, all),
		    per_cent(kind[k].sum / kind[k].n / capacity, all),
		    per_cent(kind[k].most / capacity, kind[k].saturated > 0));
	}
	text_put(out, "--links all prints a line for each link\n");
	return OK;
}

Status
show_links(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = e->topo;
	int used = 0, saturated = 0;
	for (int l = 0; l < topo->n_links; l++) {
		used += e->load[l] > 0;
		saturated += e->saturated[l];
	}
	text_printf(out, "\nlinks: %d, of which %d carry data and %d are saturated\n\n", topo->n_links, used,
	    saturated);
	if (ask->classes || topo->n_links <= MANY_LINKS)
		TRY(put_each_link(ctx, e, ask->classes ? ask->classes : ~0u, out));
	else
		TRY(put_each_kind(ctx, e, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
