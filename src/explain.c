/* Names, servers, loads and trees of a schedule, for those who show it. */
#include "explain.h"

#include "base/mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

Status
explain_line(Ctx *ctx, const char *text, const char **out)
{
	char *line = arena_text(&ctx->run, text, strlen(text));
	if (!line)
		return fail_memory(ctx);
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	/* U+0080 to U+009F are control characters, too. */
	for (unsigned char *c = (unsigned char *)line; *c; c++)
		if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[0] = c[1] = '?';
	*out = line;
	return OK;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static Status
all_differ(Ctx *ctx, const char *const *name, int n, bool *out)
{
	const char **sorted;
	TRY(TEMP(ctx, sorted, n));
	memcpy(sorted, name, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, by_text);
	*out = true;
	for (int i = 1; i < n; i++)
		*out = *out && strcmp(sorted[i - 1], sorted[i]) != 0;
	return OK;
}

/* The id; with the server in front of all where two servers call a GPU alike. */
static Status
name_vertices(Ctx *ctx, Explained *e)
{
	const Topology *topo = e->sched->topo;
	bool differ;
	for (int v = 0; v < topo->n_vertices; v++)
		TRY(explain_line(ctx, topo->vertex[v].id, &e->name[v]));
	TRY(all_differ(ctx, e->name, topo->n_ranks, &differ));
	for (int r = 0; r < topo->n_ranks && !differ; r++) {
		char name[2 * LIMIT_ID_BYTES + 8];
		int node = topo->vertex[r].node;
		snprintf(name, sizeof name, "%.64s/%.64s", node < 0 ? "" : topo->node[node], topo->vertex[r].id);
		TRY(explain_line(ctx, name, &e->name[r]));
	}
	for (int r = 0; r < topo->n_ranks; r++) {
		size_t n = strlen(e->name[r]);
		while (n > 0 && e->name[r][n - 1] >= '0' && e->name[r][n - 1] <= '9')
			n--;
		const char *digits = e->name[r] + n;
		e->numbered = e->numbered || !*digits || strlen(digits) > 5 || atoi(digits) != r;
	}
	return OK;
}

/* Groups of digits, if these are few and tell all ranks apart. */
static Status
name_shortly(Ctx *ctx, Explained *e)
{
	int n = e->sched->topo->n_ranks;
	bool fit = true, differ;
	for (int r = 0; r < n; r++) {
		char digits[8];
		size_t k = 0;
		for (const char *c = e->name[r]; *c && k < 6; c++) {
			if (*c >= '0' && *c <= '9')
				digits[k++] = *c;
			else if (k > 0 && digits[k - 1] != '/')
				digits[k++] = '/';
		}
		fit = fit && k > 0 && k < 6;
		while (k > 0 && digits[k - 1] == '/')
			k--;
		if (!(e->shortly[r] = arena_text(&ctx->run, digits, k)))
			return fail_memory(ctx);
	}
	TRY(all_differ(ctx, e->shortly, n, &differ));
	for (int r = 0; r < n && !(fit && differ); r++) {
		char digits[16];
		int k = snprintf(digits, sizeof digits, "%d", r);
		if (!(e->shortly[r] = arena_text(&ctx->run, digits, (size_t)k)))
			return fail_memory(ctx);
	}
	return OK;
}

static size_t
base_length(const char *id)
{
	size_t n = strlen(id);
	if (n > 4 && strcmp(id + n - 4, ":out") == 0)
		return n - 4;
	return n > 3 && strcmp(id + n - 3, ":in") == 0 ? n - 3 : n;
}

struct based { const char *id; size_t length; int vertex; };

static int
by_base(const void *a, const void *b)
{
	const struct based *x = a, *y = b;
	int order = strncmp(x->id, y->id, x->length < y->length ? x->length : y->length);
	if (order || x->length != y->length)
		return order ? order : x->length < y->length ? -1 : 1;
	return (x->vertex > y->vertex) - (x->vertex < y->vertex);
}

/* What lies on the way to the network is there twice, as plx0:out and plx0:in. */
static Status
find_twins(Ctx *ctx, Explained *e)
{
	const Topology *topo = e->sched->topo;
	struct based *based;
	int n = 0;
	TRY(TEMP(ctx, based, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		e->twin[v] = v;
		if (v >= topo->n_ranks)
			based[n++] = (struct based){ topo->vertex[v].id, base_length(topo->vertex[v].id), v };
	}
	qsort(based, (size_t)n, sizeof *based, by_base);
	for (int i = 1; i < n; i++)
		if (based[i].length == based[i - 1].length && strncmp(based[i].id, based[i - 1].id, based[i].length) == 0)
			e->twin[based[i].vertex] = e->twin[based[i - 1].vertex];
	return OK;
}

/* ---- servers ---- */

/* A schedule says of GPUs only which server they are in. What else the nearest GPUs, not over the network, agree on. */
static Status
find_servers(Ctx *ctx, Explained *e)
{
	const Topology *topo = e->sched->topo;
	int *distance, *queue, head = 0, tail = 0;
	TRY(TEMP(ctx, distance, topo->n_vertices));
	TRY(TEMP(ctx, queue, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		distance[v] = v < topo->n_ranks ? 0 : -1;
		e->server[v] = v < topo->n_ranks ? topo->vertex[v].node : -1;
		if (v < topo->n_ranks)
			queue[tail++] = v;
		e->n_servers = e->server[v] >= e->n_servers ? e->server[v] + 1 : e->n_servers;
	}
	while (head < tail) {
		int v = queue[head++];
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1] + topo->first_in[v + 1] - topo->first_in[v]; i++) {
			bool out = i < topo->first_out[v + 1];
			const Link *link = &topo->link[out ? topo->out[i] : topo->in[i - topo->first_out[v + 1] + topo->first_in[v]]];
			int w = out ? link->to : link->from;
			if (link->class == LINK_NET || (distance[w] >= 0 && distance[w] <= distance[v]))
				continue;
			if (distance[w] < 0) {
				distance[w] = distance[v] + 1;
				e->server[w] = e->server[v];
				queue[tail++] = w;
			} else if (e->server[w] != e->server[v]) {
				e->server[w] = -1;
			}
		}
	}
	return OK;
}

/* ---- links ---- */

static Status
find_loads(Ctx *ctx, const char *label, Explained *e)
{
	const Schedule *sched = e->sched;
	const Topology *topo = sched->topo;
	Frac *load, whole;
	TRY(TEMP(ctx, load, topo->n_links));
	TRY(sched_loads(ctx, label, sched, load));
	for (int l = 0; l < topo->n_links; l++) {
		e->load[l] = frac_double(load[l]) * frac_double(sched->achieved) / 1e9;
		/* The rate is the least of these; what needs more than 64 bits is another. */
		e->full[l] = load[l].num > 0 && frac_div((Frac){ topo->link[l].capacity, 1 }, load[l], &whole)
		    && frac_cmp(whole, sched->achieved) == 0;
		if (e->full[l])
			e->load[l] = explain_capacity(e, l);
	}
	return OK;
}

static bool
is_tight(const Explained *e, int l)
{
	const Bound *bound = &e->sched->bound;
	const Link *link = &e->sched->topo->link[l];
	bool enters = e->sched->coll == REDUCE || e->sched->coll == GATHER || e->sched->coll == REDUCESCATTER;
	switch (bound->kind) {
	case CERTIFICATE_CUT:
		return bound->part[enters ? link->to : link->from] == 1 && bound->part[enters ? link->from : link->to] != 1;
	case CERTIFICATE_PARTITION:
		return bound->part[link->from] >= 0 && bound->part[link->from] != bound->part[link->to];
	default:
		return bound->price[l].num > 0;
	}
}

Status
explain(Ctx *ctx, const char *label, const Schedule *sched, Explained *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = sched->topo;
	Explained *e = out;
	*e = (Explained){ .sched = sched };
	TRY(NEW(ctx, e->name, topo->n_vertices));
	TRY(NEW(ctx, e->shortly, topo->n_ranks));
	TRY(NEW(ctx, e->server, topo->n_vertices));
	TRY(NEW(ctx, e->twin, topo->n_vertices));
	TRY(NEW(ctx, e->load, topo->n_links));
	TRY(NEW(ctx, e->full, topo->n_links));
	TRY(NEW(ctx, e->tight, topo->n_links));
	TRY(name_vertices(ctx, e));
	TRY(name_shortly(ctx, e));
	TRY(find_twins(ctx, e));
	TRY(find_servers(ctx, e));
	TRY(find_loads(ctx, label, e));
	for (int l = 0; l < topo->n_links; l++)
		e->tight[l] = is_tight(e, l);
	arena_release(&ctx->scratch, mark);
	return OK;
}

double
explain_capacity(const Explained *e, int link)
{
	return (double)e->sched->topo->link[link].capacity / 1e9;
}

double
explain_use(const Explained *e, int link)
{
	return e->load[link] / explain_capacity(e, link);
}

double
explain_rate(const Explained *e, int tree)
{
	const Schedule *sched = e->sched;
	double shares = sched->coll == ALLTOALL ? sched->topo->n_ranks : 1;
	return frac_double(sched->segment[tree].length) * shares * frac_double(sched->achieved) / 1e9;
}

/* ---- words ---- */

void
put_figures(Text *out, double value)
{
	char figures[32];
	snprintf(figures, sizeof figures, "%.6g", value);
	text_put(out, figures);
}

void
put_percent(Text *out, double value, bool whole)
{
	char figures[32];
	double percent = whole ? 100 : value * 100 > 99.99 ? 99.99 : value * 100;
	snprintf(figures, sizeof figures, "%.4g %%", percent);
	text_put(out, figures);
}

void
put_rank(Text *out, const Explained *e, int rank)
{
	text_put(out, e->name[rank]);
	if (e->numbered)
		text_printf(out, " [%d]", rank);
}

static void
put_span(Text *out, Frac begin, Frac end)
{
	if (begin.num == 0 && frac_cmp(end, FRAC_ONE) == 0)
		return;
	text_printf(out, "%lld/%lld to %lld/%lld of ", (long long)begin.num, (long long)begin.den, (long long)end.num, (long long)end.den);
}

void
put_segment(Text *out, const Explained *e, int tree)
{
	const Schedule *sched = e->sched;
	const Segment *segment = &sched->segment[tree];
	int n = sched->topo->n_ranks;
	int64_t blocks = collective_blocks(sched->coll, n), block;
	Frac begin = segment->offset, end = FRAC_ONE, length = segment->length;
	if (blocks > 1) {
		frac_mul(begin, (Frac){ blocks, 1 }, &begin);
		frac_mul(length, (Frac){ blocks, 1 }, &length);
	}
	block = begin.num / begin.den;
	begin.num %= begin.den;
	begin = begin.num ? begin : FRAC_ZERO;
	frac_add(begin, length, &end);
	put_span(out, begin, end);
	if (blocks == 1) {
		text_put(out, begin.num == 0 && frac_cmp(end, FRAC_ONE) == 0 ? "all of the buffer" : "the buffer");
	} else if (sched->coll == ALLTOALL) {
		text_printf(out, "the block from %s to ", e->name[block / n]);
		text_put(out, e->name[block % n]);
	} else {
		text_printf(out, "the block of %s", e->name[block]);
	}
}

/* Vertices that it passes, seen from the child; "plx0:out" and "plx0:in" are both plx0. */
static int
vertex_on_way(const Explained *e, const Edge *edge, bool up, int i)
{
	const Link *link = &e->sched->topo->link[edge->link[up ? i : edge->n_links - 1 - i]];
	return up ? link->to : link->from;
}

void
put_way(Text *out, const Explained *e, const Edge *edge, bool up)
{
	const Topology *topo = e->sched->topo;
	unsigned seen = 0;
	bool any = false;
	for (int i = 0; i < edge->n_links; i++) {
		LinkClass class = topo->link[edge->link[up ? i : edge->n_links - 1 - i]].class;
		if (!(seen >> class & 1))
			text_printf(out, seen ? ", %s" : "%s", link_class_name(class));
		seen |= 1u << class;
	}
	for (int i = 0; i < edge->n_links; i++) {
		int v = vertex_on_way(e, edge, up, i);
		if (v < topo->n_ranks)
			continue;
		text_put(out, any ? ", " : " via ");
		text_add(out, e->name[v], base_length(e->name[v]));
		any = true;
	}
	/* An edge that ends at a switch shares what lies behind it with another. */
	int v = vertex_on_way(e, edge, up, edge->n_links - 1);
	if (v >= topo->n_ranks)
		text_put(out, up ? ", where it is added" : ", which copies it");
}

/* ---- trees ---- */

Status
drawing_new(Ctx *ctx, const Explained *e, Drawing drawing[2])
{
	int n = e->sched->topo->n_ranks;
	for (int i = 0; i < 2; i++) {
		Drawing *d = &drawing[i];
		TRY(NEW(ctx, d->parent, n));
		TRY(NEW(ctx, d->first, n));
		TRY(NEW(ctx, d->next, n));
		TRY(NEW(ctx, d->hop, n));
		TRY(NEW(ctx, d->back, n));
		TRY(NEW(ctx, d->shape, n));
		TRY(NEW(ctx, d->alike, n));
		TRY(NEW(ctx, d->weight, n));
		TRY(NEW(ctx, d->order, n));
	}
	return OK;
}

/* The ranks of a phase, parents first, in the order of the edges of the tree drawn. */
static void
add_edges(const Tree *tree, bool down, Drawing *d)
{
	int n = down ? tree->n_down : tree->n_up;
	d->order[d->n++] = tree->root;
	for (int i = 0; i < n; i++) {
		const Edge *edge = down ? &tree->down[i] : &tree->up[n - 1 - i];
		int parent = down ? edge->src : edge->dst, child = down ? edge->dst : edge->src;
		d->parent[child] = parent;
		d->hop[child] = edge;
		d->order[d->n++] = child;
	}
	/* From behind, so that first children come first. */
	for (int i = d->n - 1; i > 0; i--) {
		int child = d->order[i], parent = d->parent[child];
		d->next[child] = d->first[parent];
		d->first[parent] = child;
		d->weight[parent] += d->weight[child];
	}
}

/* Of a subtree with the hop above it: classes and lengths of ways, whatever the order of children. */
static uint64_t
shape_of(const Explained *e, const Drawing *d, int r)
{
	uint64_t shape = d->shape[r];
	for (int i = 0; d->hop[r] && i < d->hop[r]->n_links; i++)
		shape = mix64(shape + (uint64_t)e->sched->topo->link[d->hop[r]->link[i]].class + 1);
	return mix64(shape ^ (uint64_t)d->weight[r]);
}

/* Siblings that come later are later in the order, too. */
static void
find_alike(const Explained *e, Drawing *d)
{
	for (int i = d->n - 1; i >= 0; i--) {
		int r = d->order[i], next = d->next[r];
		d->shape[r] = shape_of(e, d, r);
		if (d->parent[r] >= 0)
			d->shape[d->parent[r]] += mix64(d->shape[r]);
		d->alike[r] = next >= 0 && d->shape[next] == d->shape[r] ? d->alike[next] + 1 : 0;
	}
}

static void
draw_phase(const Explained *e, const Tree *tree, bool down, Drawing *d)
{
	int n = e->sched->topo->n_ranks;
	for (int r = 0; r < n; r++) {
		d->parent[r] = d->first[r] = d->next[r] = -1;
		d->hop[r] = d->back[r] = NULL;
		d->shape[r] = 0;
		d->weight[r] = 1;
	}
	d->root = tree->root;
	d->n = 0;
	d->down = down;
	d->up = !down;
	add_edges(tree, down, d);
	find_alike(e, d);
}

/* Does the way up lead back along the same tree? */
static bool
mirrors(const Tree *tree, const Drawing *down)
{
	if (tree->n_up != tree->n_down)
		return false;
	for (int i = 0; i < tree->n_up; i++)
		if (down->parent[tree->up[i].src] != tree->up[i].dst)
			return false;
	return true;
}

int
draw_tree(const Explained *e, int t, Drawing drawing[2])
{
	const Tree *tree = &e->sched->segment[t].tree;
	int n = 0;
	if (tree->n_up || !tree->n_down)
		draw_phase(e, tree, false, &drawing[n++]);
	if (!tree->n_down)
		return n;
	draw_phase(e, tree, true, &drawing[n]);
	if (!n || !mirrors(tree, &drawing[n]))
		return n + 1;
	draw_phase(e, tree, true, &drawing[0]);
	drawing[0].up = true;
	for (int i = 0; i < tree->n_up; i++)
		drawing[0].back[tree->up[i].src] = &tree->up[i];
	return 1;
}

bool
drawing_is_path(const Drawing *d)
{
	for (int i = 0; i < d->n; i++)
		if (d->next[d->order[i]] >= 0)
			return false;
	return true;
}

Status
parse_trees(Ctx *ctx, const Explained *e, const char *text, bool *chosen)
{
	int n = e->sched->n_segments;
	int64_t tree;
	for (const char *at = text; at; at = strchr(at, ',')) {
		at += *at == ',';
		size_t digits = strspn(at, "0123456789");
		if (digits == 0 || digits > 9 || (at[digits] && at[digits] != ',') || !decimal_parse(at, digits, 1, &tree) || tree >= n)
			return fail(ctx, USAGE, "--tree: %.40s: want numbers of trees, 0 to %d, comma separated", text, n - 1);
		chosen[tree] = true;
	}
	for (int t = 0; t < n && !text; t++)
		chosen[t] = true;
	return OK;
}
