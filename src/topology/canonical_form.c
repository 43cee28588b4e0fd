/* Canonical forms: two topologies are isomorphic, the same machine up to names and numbers of vertices, if and only
 * if their forms are equal. The form is the list of vertices and links, renumbered by places that do not depend on
 * names and numbers; nauty's Traces finds the places (McKay and Piperno 2014, "Practical graph isomorphism, II").
 *
 * Traces takes undirected graphs whose vertices have colours. So a link becomes a vertex whose colour is all that the
 * link has:
 *
 * 	a ---- (nvlink, 25 GB/s, both directions) ---- b	two links that differ in direction only
 * 	a ---- (from: pcie, 12) ---- (to: pcie, 12) ---- b	a link without an opposite one
 *
 * and a server one that is joined to its vertices. The colour of a vertex is its kind, what a switch can do, and the
 * mark of a rank.
 *
 * The digest is taken of the renumbered topology itself, by this file. So where digests are equal the places are an
 * isomorphism, whatever nauty does; if it failed, isomorphic topologies would only count as different. */
#include "base/digest.h"
#include "topology/topology.h"

#include <nauty/traces.h>
#include <nauty/naurng.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { COLOUR = 7 };

/* A vertex of the graph by its colour. */
struct dot {
	int64_t colour[COLOUR];	/* what it is, then what that has */
	int at;			/* its number in the graph */
};

enum { DOT_RANK, DOT_VERTEX, DOT_SERVER, DOT_DUPLEX, DOT_TAIL, DOT_HEAD };

/* A link for sorting: those of the same ends and colour side by side, one direction before the other. */
struct sorted {
	int a, b, l;		/* a < b */
	bool back;		/* from b to a */
	const Link *link;
};

struct form {
	Ctx *ctx;
	const Topology *topo;
	const int *mark;		/* n_ranks; NULL: none is marked */
	int n, n_edges;		/* dots; entries of pair */
	struct dot *dot;
	int (*pair)[2];
};

static int
compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int
by_ends(const void *x, const void *y)
{
	const struct sorted *a = x, *b = y;
	const int64_t keys[][2] = { { a->a, b->a }, { a->b, b->b }, { a->link->class, b->link->class },
	    { a->link->count, b->link->count },
		{ a->link->capacity, b->link->capacity }, { a->link->latency, b->link->latency }, { a->back, b->back },
		    { a->l, b->l } };
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i][0] != keys[i][1])
			return compare(keys[i][0], keys[i][1]);
	return 0;
}

static bool
same_but_direction(const struct sorted *a, const struct sorted *b)
{
	const Link *k = a->link, *l = b->link;
	return a->a == b->a && a->b == b->b && k->class == l->class && k->count == l->count
	    && k->capacity == l->capacity
	    && k->latency == l->latency;
}

static int
by_colour(const void *x, const void *y)
{
	const struct dot *a = x, *b = y;
	for (int i = 0; i < COLOUR; i++)
		if (a->colour[i] != b->colour[i])
			return compare(a->colour[i], b->colour[i]);
	return compare(a->at, b->at);
}

static int
new_dot(struct form *f, int what, const Link *link)
{
	struct dot *dot = &f->dot[f->n];
	*dot = (struct dot){ .colour = { what }, .at = f->n };
	if (link) {
		const int64_t colour[] = { what, link->class, link->count, link->capacity, link->latency };
		memcpy(dot->colour, colour, sizeof colour);
	}
	return f->n++;
}

static void
join(struct form *f, int a, int b)
{
	f->pair[f->n_edges][0] = a;
	f->pair[f->n_edges++][1] = b;
}

static void
add_one_way(struct form *f, const struct sorted *s)
{
	int tail = new_dot(f, DOT_TAIL, s->link), head = new_dot(f, DOT_HEAD, s->link);
	join(f, s->link->from, tail);
	join(f, tail, head);
	join(f, head, s->link->to);
}

/* Links that differ in direction only are paired, one of each direction. */
static void
add_parallel(struct form *f, const struct sorted *s, int n)
{
	int there = 0, both;
	while (there < n && !s[there].back)
		there++;
	both = there < n - there ? there : n - there;
	for (int i = 0; i < both; i++) {
		int dot = new_dot(f, DOT_DUPLEX, s[i].link);
		join(f, s[i].a, dot);
		join(f, s[i].b, dot);
	}
	for (int i = both; i < there; i++)
		add_one_way(f, &s[i]);
	for (int i = there + both; i < n; i++)
		add_one_way(f, &s[i]);
}

static Status
add_links(struct form *f)
{
	const Topology *topo = f->topo;
	struct sorted *s;
	TRY(TEMP(f->ctx, s, topo->n_links));
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		bool back = link->from > link->to;
		s[l] = (struct sorted){ back ? link->to : link->from, back ? link->from : link->to, l, back, link };
	}
	qsort(s, (size_t)topo->n_links, sizeof *s, by_ends);
	for (int l = 0, end; l < topo->n_links; l = end) {
		for (end = l + 1; end < topo->n_links && same_but_direction(&s[l], &s[end]); end++)
			;
		add_parallel(f, s + l, end - l);
	}
	return OK;
}

/* What depends on neither number nor name. */
static void
vertex_colour(const struct form *f, int v, int64_t colour[COLOUR])
{
	const Vertex *vertex = &f->topo->vertex[v];
	const int64_t own[] = { v < f->topo->n_ranks ? DOT_RANK : DOT_VERTEX, vertex->kind, vertex->multicast,
	    vertex->reduce,
		f->mark && v < f->topo->n_ranks ? f->mark[v] : 0, vertex->node >= 0 };
	memset(colour, 0, COLOUR * sizeof *colour);
	memcpy(colour, own, sizeof own);
}

static Status
build(struct form *f)
{
	const Topology *topo = f->topo;
	int *server;
	size_t most = (size_t)topo->n_vertices + (size_t)topo->n_nodes + 2 * (size_t)topo->n_links;
	TRY(TEMP(f->ctx, f->dot, most));
	TRY(TEMP(f->ctx, f->pair, (size_t)topo->n_vertices + 3 * (size_t)topo->n_links));
	TRY(TEMP(f->ctx, server, topo->n_nodes));
	for (int v = 0; v < topo->n_vertices; v++)
		vertex_colour(f, v, f->dot[new_dot(f, DOT_VERTEX, NULL)].colour);
	for (int v = 0; v < topo->n_vertices; v++) {
		int node = topo->vertex[v].node;
		if (node < 0)
			continue;
		if (!server[node])
			server[node] = new_dot(f, DOT_SERVER, NULL);	/* never 0: that is a rank */
		join(f, server[node], v);
	}
	return add_links(f);
}

/* The graph as nauty has it. */
static Status
to_sparse(const struct form *f, sparsegraph *out)
{
	size_t *v;
	int *d, *e;
	size_t at = 0;
	TRY(TEMP(f->ctx, v, f->n + 1));
	TRY(TEMP(f->ctx, d, f->n + 1));
	TRY(TEMP(f->ctx, e, 2 * (size_t)f->n_edges + 1));
	for (int i = 0; i < f->n_edges; i++)
		for (int end = 0; end < 2; end++)
			d[f->pair[i][end]]++;
	for (int i = 0; i < f->n; at += (size_t)d[i++])
		v[i] = at;
	memset(d, 0, (size_t)f->n * sizeof *d);
	for (int i = 0; i < f->n_edges; i++)
		for (int end = 0; end < 2; end++) {
			int x = f->pair[i][end];
			e[v[x] + (size_t)d[x]++] = f->pair[i][1 - end];
		}
	*out = (sparsegraph){ .nv = f->n, .nde = 2 * (size_t)f->n_edges, .v = v, .d = d, .e = e,
	    .vlen = (size_t)f->n, .dlen = (size_t)f->n,
		.elen = 2 * (size_t)f->n_edges };
	return OK;
}

/* ---- random numbers ---- */

/* Places of symmetric vertices must not depend on earlier calls, so nauty's random numbers begin anew for each graph,
 * which takes longer than all else. But most graphs need none: then the next number is the one that is expected. As the
 * generator itself, this is of the whole process. */
static struct {
	bool known;
	int drawn;
	long number[64];	/* the first ones */
} generator;

enum { NUMBERS = sizeof generator.number / sizeof *generator.number };

/* True: anew. */
static bool
begin_numbers(void)
{
	if (generator.known && generator.drawn < NUMBERS)
		return false;
	ran_init(1);
	for (int i = 0; i < NUMBERS && !generator.known; i++)
		generator.number[i] = ran_nextran();
	if (!generator.known)
		ran_init(1);
	generator.known = true;
	generator.drawn = 0;
	return true;
}

static bool
were_taken(void)
{
	bool taken = ran_nextran() != generator.number[generator.drawn++];
	if (taken)
		generator.drawn = NUMBERS;
	return taken;
}

/* ---- nauty without memory ---- */

/* Where memory runs out nauty mostly calls one of two functions, which must not return, and are its own where a program
 * has no others; for some small things it ends the process. What it holds then is lost, and sizes that it keeps for its
 * next call are wrong: there is none. */
static jmp_buf escape;
static bool nauty_is_lost;

static void __attribute__((noreturn))
give_up(void)
{
	nauty_is_lost = true;
	longjmp(escape, 1);
}

/* Weak: a static nauty may bring its own. A header of it takes one of the names for the other. */
#undef alloc_error
#define NAUTY_CALLS __attribute__((weak, visibility("default"), noreturn))
NAUTY_CALLS void gt_abort(const char *why);
NAUTY_CALLS void alloc_error(const char *why);

void
gt_abort(const char *why)
{
	(void)why;
	give_up();
}

void
alloc_error(const char *why)
{
	(void)why;
	give_up();
}

static Status
find_places(Ctx *ctx, sparsegraph *graph, int *lab, int *ptn, int *orbit)
{
	DEFAULTOPTIONS_TRACES(options);
	TracesStats stats;
	SG_DECL(canonical);
	options.getcanon = TRUE;
	options.defaultptn = FALSE;
	if (!nauty_is_lost && setjmp(escape) == 0) {
		Traces(graph, lab, ptn, orbit, &options, &stats, &canonical);
		SG_FREE(canonical);
	}
	return nauty_is_lost ? fail(ctx, NO_MEMORY, "a canonical form failed: out of memory") : OK;
}

/* place[i] of dot i; colours come in order, so ranks have the first places, and after them the other vertices.
 * orbit[i]: the first dot that an automorphism takes to i. */
static Status
label(const struct form *f, int *place, int *orbit)
{
	sparsegraph graph;
	int *lab, *ptn;
	struct dot *dot;
	bool anew;
	TRY(to_sparse(f, &graph));
	TRY(TEMP(f->ctx, lab, f->n));
	TRY(TEMP(f->ctx, ptn, f->n));
	TRY(TEMP(f->ctx, dot, f->n));
	memcpy(dot, f->dot, (size_t)f->n * sizeof *dot);
	qsort(dot, (size_t)f->n, sizeof *dot, by_colour);
	do {
		for (int i = 0; i < f->n; i++) {
			lab[i] = dot[i].at;
			ptn[i] = i + 1 < f->n && memcmp(dot[i].colour, dot[i + 1].colour, sizeof dot->colour) == 0;
		}
		anew = begin_numbers();
		TRY(find_places(f->ctx, &graph, lab, ptn, orbit));
	} while (were_taken() && !anew);
	for (int i = 0; i < f->n; i++)
		place[lab[i]] = i;
	return OK;
}

/* ---- the digest ---- */

struct placed {
	int64_t key[6];		/* from, to, class, count, capacity, latency */
};

static int
by_key(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;
	for (int i = 0; i < 6; i++)
		if (a->key[i] != b->key[i])
			return compare(a->key[i], b->key[i]);
	return 0;
}

/* Servers by the first place that one of their vertices has. */
static void
renumber_servers(const struct form *f, const int *at, int *server)
{
	int n = 0;
	for (int s = 0; s < f->topo->n_nodes; s++)
		server[s] = -1;
	for (int i = 0; i < f->topo->n_vertices; i++) {
		int node = f->topo->vertex[at[i]].node;
		if (node >= 0 && server[node] < 0)
			server[node] = n++;
	}
}

static Status
digest(const struct form *f, const int *place, unsigned char out[CANONICAL_FORM_BYTES])
{
	const Topology *topo = f->topo;
	struct placed *links;
	int *at, *server;
	Digest sum;
	const int64_t sizes[] = { topo->n_ranks, topo->n_vertices, topo->n_links };
	TRY(TEMP(f->ctx, links, topo->n_links));
	TRY(TEMP(f->ctx, at, topo->n_vertices));
	TRY(TEMP(f->ctx, server, topo->n_nodes));
	for (int v = 0; v < topo->n_vertices; v++)
		at[place[v]] = v;
	renumber_servers(f, at, server);
	digest_begin(&sum);
	digest_add(&sum, (const char *)sizes, sizeof sizes);
	/* Which route each pair has follows from the links; that there is one for each does not. */
	if (topo->route)
		digest_add(&sum, "routes", 6);
	for (int i = 0; i < topo->n_vertices; i++) {
		int node = topo->vertex[at[i]].node;
		int64_t colour[COLOUR];
		vertex_colour(f, at[i], colour);
		colour[COLOUR - 1] = node < 0 ? -1 : server[node];
		digest_add(&sum, (const char *)colour, sizeof colour);
	}
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		links[l] = (struct placed){ { place[link->from], place[link->to], link->class, link->count,
		    link->capacity, link->latency } };
	}
	qsort(links, (size_t)topo->n_links, sizeof *links, by_key);
	digest_add(&sum, (const char *)links, (size_t)topo->n_links * sizeof *links);
	SHA256Final(out, &sum.sha);
	return OK;
}

Status
topo_canonical_form(Ctx *ctx, const Topology *topo, const int *mark, unsigned char form[CANONICAL_FORM_BYTES],
    int *place, int *orbit)
{
	ArenaMark arena = arena_mark(&ctx->scratch);
	struct form f = { .ctx = ctx, .topo = topo, .mark = mark };
	int *all, *orbits;
	TRY(build(&f));
	TRY(TEMP(ctx, all, f.n));
	TRY(TEMP(ctx, orbits, f.n));
	TRY(label(&f, all, orbits));
	TRY(digest(&f, all, form));
	if (place)
		memcpy(place, all, (size_t)topo->n_vertices * sizeof *place);
	if (orbit)
		memcpy(orbit, orbits, (size_t)topo->n_ranks * sizeof *orbit);
	arena_release(&ctx->scratch, arena);
	return OK;
}
