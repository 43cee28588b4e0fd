/* Built-in schedules as a whole, with the edges of all ranks: what the programs that runtime/choose/built_in.c makes
 * for one rank must be projections of. Each tree is written down by place: its ranks, parents first. The forms are
 * those of built_in.c; the two share no code. */
#include "choose/choose.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

enum {
	MOST_EDGES = 1 << 17,		/* of a schedule whose number of trees is free: its table is some 20 MB */
	STAR = LIMIT_COMM_RANKS,		/* an arity */
	NEAR = 8, FAR = 4		/* arity in a server, and between servers, for small messages */
};

/* Of a link of the topology, which serves alone to state routes: nothing depends on it. */
#define CAPACITY INT64_C(1000000000)

struct maker {
	Ctx *ctx;
	const struct job *job;
	Schedule *sched;
	int n, n_servers;
	int near, far;			/* arities */
	int *member, *first;		/* ranks of server q, ascending: member[first[q] .. first[q + 1] - 1] */
	int *server, *index;		/* of a rank: its server, and which of its ranks it is */
	/* A tree: its ranks by place, parents first; the place of each one's parent; is it a leader? */
	int *rank, *parent;
	bool *leads;
	int *leader_at;			/* place of the p-th server's leader */
};

/* Do blocks go straight to the one rank that needs them? */
static bool
is_direct(Collective coll)
{
	return coll == GATHER || coll == SCATTER || coll == ALLTOALL;
}

/* ---- the job and its topology ---- */

static Status
group_ranks(struct maker *m)
{
	int *next;
	TRY(TEMP(m->ctx, m->member, m->n));
	TRY(TEMP(m->ctx, m->server, m->n));
	TRY(TEMP(m->ctx, m->index, m->n));
	TRY(TEMP(m->ctx, m->first, m->n_servers + 1));
	TRY(TEMP(m->ctx, next, m->n_servers));
	for (int r = 0; r < m->n; r++) {
		m->server[r] = m->n_servers > 1 ? m->job->server[r] : 0;
		m->index[r] = next[m->server[r]]++;
	}
	for (int q = 0; q < m->n_servers; q++)
		m->first[q + 1] = m->first[q] + next[q];
	for (int r = 0; r < m->n; r++)
		m->member[m->first[m->server[r]] + m->index[r]] = r;
	return OK;
}

static Status
print_id(Ctx *ctx, const char *what, int i, const char **out)
{
	char text[32];
	snprintf(text, sizeof text, "%s%d", what, i);
	*out = arena_text(&ctx->run, text, strlen(text));
	return *out ? OK : fail_memory(ctx);
}

static int
link_out(int rank)
{
	return 2 * rank;
}

static int
link_in(int rank)
{
	return 2 * rank + 1;
}

/* One switch that all ranks are at. */
static Status
make_topology(struct maker *m, const Topology **out)
{
	Ctx *ctx = m->ctx;
	Topology *topo;
	TRY(NEW(ctx, topo, 1));
	*topo = (Topology){ .name = "built in", .digest = "", .n_ranks = m->n, .n_vertices = m->n + 1,
		.n_links = 2 * m->n, .n_nodes = m->n_servers };
	TRY(NEW(ctx, topo->node, m->n_servers));
	TRY(NEW(ctx, topo->vertex, topo->n_vertices));
	TRY(NEW(ctx, topo->link, topo->n_links));
	for (int q = 0; q < m->n_servers; q++)
		TRY(print_id(ctx, "server", q, &topo->node[q]));
	LinkClass class = m->n_servers > 1 ? LINK_NET : LINK_PCIE;
	for (int r = 0; r < m->n; r++) {
		topo->vertex[r] = (Vertex){ .kind = VERTEX_GPU, .node = m->server[r] };
		TRY(print_id(ctx, "rank", r, &topo->vertex[r].id));
		Link link = { .from = r, .to = m->n, .class = class, .count = 1, .capacity = CAPACITY };
		topo->link[link_out(r)] = link;
		link.from = m->n;
		link.to = r;
		topo->link[link_in(r)] = link;
	}
	topo->vertex[m->n] = (Vertex){ .id = "switch", .kind = VERTEX_SWITCH, .node = -1 };
	*out = topo;
	return topo_index(ctx, topo);
}

/* ---- trees ---- */

static int
size_of(const struct maker *m, int q)
{
	return m->first[q + 1] - m->first[q];
}

/* The i-th leader that a server can have; a rank that is not to be one, if there is another: `but`. */
static int
leader_of(const struct maker *m, int q, int i, int but)
{
	int n = size_of(m, q);
	if (but < 0 || m->server[but] != q || n == 1)
		return m->member[m->first[q] + i % n];
	return m->member[m->first[q] + (m->index[but] + 1 + i % (n - 1)) % n];
}

static int
add_place(struct maker *m, int place, int rank, int parent, bool leads)
{
	m->rank[place] = rank;
	m->parent[place] = parent;
	m->leads[place] = leads;
	return place + 1;
}

/* The places of a tree. first: the server at its top; which: of the leaders of each server; root: the tree's, -1: the
 * leader of the first server, which no other root is. */
static void
place_ranks(struct maker *m, int first, int which, int root, bool root_leads)
{
	int at = 0;
	for (int p = 0; p < m->n_servers; p++) {
		int q = (first + p) % m->n_servers;
		int leader = p == 0 && root_leads ? root : leader_of(m, q, which, root_leads ? -1 : root);
		if (p == 0 && root >= 0 && root != leader)
			at = add_place(m, at, root, -1, true);
		int top = m->leader_at[p] = at;
		at = add_place(m, at, leader, p > 0 ? m->leader_at[(p - 1) / m->far] : top - 1, true);
		for (int i = 1, n = size_of(m, q); i < n; i++) {
			int rank = m->member[m->first[q] + (m->index[leader] + i) % n];
			if (rank != root)
				at = add_place(m, at, rank, top + (at - top - 1) / m->near, false);
		}
	}
}

static void
make_edge(Edge *edge, int *link, int src, int dst)
{
	link[0] = link_out(src);
	link[1] = link_in(dst);
	*edge = (Edge){ .src = src, .dst = dst, .n_links = 2, .link = link };
}

static Status
new_edges(struct maker *m, int n, Edge **edge, int **link)
{
	TRY(NEW(m->ctx, *edge, n));
	return NEW(m->ctx, *link, 2 * (size_t)n);
}

/* To leaders first, since they have farther to go. */
static Status
make_down(struct maker *m, Tree *tree)
{
	int *link;
	TRY(new_edges(m, m->n - 1, &tree->down, &link));
	for (int leads = 1; leads >= 0; leads--)
		for (int i = 1; i < m->n; i++)
			if (m->leads[i] == leads) {
				make_edge(&tree->down[tree->n_down], link, m->rank[m->parent[i]], m->rank[i]);
				tree->n_down++;
				link += 2;
			}
	return OK;
}

/* By parent, the last one first, and then by child, the first one first. */
static Status
make_up(struct maker *m, Tree *tree)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	int *link, *next;
	TRY(new_edges(m, m->n - 1, &tree->up, &link));
	TRY(TEMP(m->ctx, next, m->n + 1));
	for (int i = 1; i < m->n; i++)
		next[m->parent[i]]++;
	for (int i = m->n - 1; i >= 0; i--)
		next[i] += next[i + 1];
	/* next[p]: edges into the places p and on; of those, the ones into p come last. */
	for (int i = m->n - 1; i > 0; i--) {
		int e = --next[m->parent[i]];
		make_edge(&tree->up[e], link + 2 * (size_t)e, m->rank[i], m->rank[m->parent[i]]);
	}
	tree->n_up = m->n - 1;
	arena_release(&m->ctx->scratch, mark);
	return OK;
}

static Segment *
add_segment(struct maker *m, int64_t begin, int64_t of)
{
	Segment *s = &m->sched->segment[m->sched->n_segments++];
	int64_t common = gcd64(begin, of);
	s->offset = (Frac){ begin / common, of / common };
	s->length = (Frac){ 1, of };
	return s;
}

/* Part `begin` of `of` goes along the tree that is in place. */
static Status
add_tree(struct maker *m, int64_t begin, int64_t of)
{
	Collective coll = m->sched->coll;
	Segment *s = add_segment(m, begin, of);
	s->tree.root = m->rank[0];
	if (collective_reduces(coll))
		TRY(make_up(m, &s->tree));
	if (coll != REDUCE && coll != REDUCESCATTER)
		TRY(make_down(m, &s->tree));
	return OK;
}

/* ---- collectives ---- */

static int
largest_server(const struct maker *m)
{
	int most = 0;
	for (int q = 0; q < m->n_servers; q++)
		if (size_of(m, q) > most)
			most = size_of(m, q);
	return most;
}

static int
most_trees(const struct maker *m, int wanted)
{
	int edges = m->sched->coll == ALLREDUCE ? 2 * (m->n - 1) : m->n - 1;
	int most = edges > 0 ? MOST_EDGES / edges : 1;
	return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

/* Tree t of a large allreduce: each rank of the largest server leads some; chains begin at several servers, so that
 * the load of their ends, which is less, is shared. */
static Status
make_allreduce(struct maker *m, bool small)
{
	int leaders = small ? 1 : most_trees(m, largest_server(m));
	int starts = small ? 1 : most_trees(m, leaders * m->n_servers) / leaders;
	TRY(NEW(m->ctx, m->sched->segment, leaders * starts));
	for (int t = 0; t < leaders * starts; t++) {
		int first = (int)((int64_t)(t / leaders) * m->n_servers / starts);
		place_ranks(m, first, (int)((int64_t)(t % leaders) * largest_server(m) / leaders), -1, false);
		TRY(add_tree(m, t, leaders * starts));
	}
	return OK;
}

/* Broadcast, and reduce, which is its reverse. Large messages go by a leader that is not the root, so that every rank
 * sends as much as the root. */
static Status
make_rooted(struct maker *m, bool small)
{
	int root = m->sched->root, n = largest_server(m);
	small = small || (m->sched->coll == BROADCAST && m->n_servers == 1);
	int trees = small ? 1 : most_trees(m, m->n_servers > 1 ? n : n - 1);
	TRY(NEW(m->ctx, m->sched->segment, trees));
	for (int t = 0; t < trees; t++) {
		place_ranks(m, m->server[root], (int)((int64_t)t * n / trees), root, small);
		TRY(add_tree(m, t, trees));
	}
	return OK;
}

static Status
make_blocks(struct maker *m)
{
	TRY(NEW(m->ctx, m->sched->segment, m->n));
	for (int r = 0; r < m->n; r++) {
		place_ranks(m, m->server[r], m->index[r], r, true);
		TRY(add_tree(m, r, m->n));
	}
	return OK;
}

static Status
make_paths(struct maker *m)
{
	Schedule *sched = m->sched;
	int n = m->n > 1 ? collective_demands(sched->coll, m->n) : 0, *link;
	int64_t blocks = collective_blocks(sched->coll, m->n);
	Edge *edge;
	TRY(NEW(m->ctx, sched->segment, n));
	TRY(new_edges(m, n, &edge, &link));
	for (int d = 0; d < n; d++) {
		Demand demand = collective_demand(sched->coll, m->n, sched->root, d);
		Segment *s = add_segment(m, demand.block, blocks);
		make_edge(&edge[d], link + 2 * (size_t)d, demand.from, demand.to);
		s->tree = (Tree){ .root = demand.from, .n_down = 1, .down = &edge[d] };
	}
	return OK;
}

static Status
make_trees(struct maker *m, bool small)
{
	Ctx *ctx = m->ctx;
	TRY(TEMP(ctx, m->rank, m->n));
	TRY(TEMP(ctx, m->parent, m->n));
	TRY(TEMP(ctx, m->leads, m->n));
	TRY(TEMP(ctx, m->leader_at, m->n_servers));
	switch (m->sched->coll) {
	case ALLREDUCE:
		return make_allreduce(m, small);
	case BROADCAST:
	case REDUCE:
		return make_rooted(m, small);
	case ALLGATHER:
	case REDUCESCATTER:
		return make_blocks(m);
	default:
		return make_paths(m);
	}
}

/* Its rates over the links that it has, and the cut around one rank as their bound: what sched_verify asks. */
static Status
state_rates(Ctx *ctx, Schedule *sched)
{
	int n = sched->topo->n_ranks;
	if (n < 2)
		return OK;
	sched->bound.kind = CERTIFICATE_CUT;
	TRY(NEW(ctx, sched->bound.part, n + 1));
	sched->bound.part[sched->root < 0 ? 0 : sched->root] = 1;
	/* Of an alltoall's paths there are too many to add up. */
	if (!is_direct(sched->coll))
		TRY(sched_achieved(ctx, "built in", sched, &sched->achieved));
	else if (!frac_make(CAPACITY * n, n - 1, &sched->achieved))
		return fail(ctx, LIMIT, "built in: its rate needs more than 64 bits");
	TRY(bound_from_certificate(ctx, "built in", sched->topo, sched->coll, sched->root, &sched->bound,
	    &sched->bound.rate));
	sched->stated_achieved = frac_double(sched->achieved) / 1e9;
	sched->stated_bound = frac_double(sched->bound.rate) / 1e9;
	return OK;
}

static Status
make(struct maker *m, const struct built_in *which)
{
	Ctx *ctx = m->ctx;
	Schedule *sched = m->sched;
	TRY(group_ranks(m));
	*sched = (Schedule){ .generator = "libblink", .version = BLINK_VERSION, .coll = which->coll,
		.root = collective_rooted(which->coll) ? which->root : -1,
		.algorithm = built_in_form(m->job, which), .bound = { .rate = FRAC_ZERO }, .achieved = FRAC_ZERO };
	TRY(make_topology(m, &sched->topo));
	TRY(make_trees(m, which->small));
	return state_rates(ctx, sched);
}

static Status
built_in_schedule(Ctx *ctx, const struct job *job, const struct built_in *which, Schedule **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Schedule *sched;
	TRY(NEW(ctx, sched, 1));
	struct maker m = { .ctx = ctx, .job = job, .sched = sched, .n = job->n_ranks,
		.n_servers = job->n_servers > 1 ? job->n_servers : 1, .near = which->small ? NEAR : STAR,
		.far = which->small ? FAR : 1 };
	TRY(make(&m, which));
	arena_release(&ctx->scratch, mark);
	*out = sched;
	return OK;
}
