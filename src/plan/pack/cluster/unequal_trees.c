/* Trees of hubs (unequal.c), once their pieces are known. */
#include "plan/pack/cluster/unequal_pieces.h"

#include <string.h>

struct maker {
	struct plan *p;
	int *at;		/* of each server: the piece that trees are at */
	struct edges edges;
	Packing *pack;
};

Status
unequal_add_near(struct edges *m, int src, int dst)
{
	const struct plan *p = m->p;
	if (p->coll != REDUCESCATTER)
		TRY(cluster_near_edge(&p->c, src, dst, &m->there[m->n]));
	if (p->coll != ALLGATHER)
		TRY(cluster_near_edge(&p->c, dst, src, &m->back[m->n]));
	m->n++;
	return OK;
}

Status
unequal_add_far(struct edges *m, int own, int uplink)
{
	const struct plan *p = m->p;
	if (p->coll != REDUCESCATTER)
		TRY(cluster_far_edge(&p->c, own, uplink, &m->there[m->n]));
	if (p->coll != ALLGATHER)
		TRY(cluster_far_edge(&p->c, uplink, own, &m->back[m->n]));
	m->n++;
	return OK;
}

static void
rename_ranks(const int *name, Edge *edge, int n)
{
	for (int e = 0; e < n; e++) {
		edge[e].src = name[edge[e].src];
		edge[e].dst = name[edge[e].dst];
	}
}

/* A tree of the edges: the first of equal ranks is the lowest one, or the next one. */
Status
unequal_arrange(const struct edges *m, int rank, Tree *out)
{
	const struct plan *p = m->p;
	int n = p->topo->n_ranks;
	bool into = p->coll == REDUCESCATTER;
	for (int r = 0; m->turns && r < n; r++) {
		m->place[r] = blocks_turns(&m->blocks, rank, r);
		m->rank[m->place[r]] = r;
	}
	if (m->turns) {
		rename_ranks(m->place, m->there, m->n);
		rename_ranks(m->place, m->back, m->n);
	}
	TRY(tree_arrange(p->ctx, n, into ? REDUCE : p->coll == ALLREDUCE ? ALLREDUCE : BROADCAST,
	    m->turns ? 0 : rank, into ? m->back : m->there, into ? m->there : m->back, m->n, out));
	if (m->turns) {
		out->root = m->rank[out->root];
		rename_ranks(m->rank, out->down, out->n_down);
		rename_ranks(m->rank, out->up, out->n_up);
	}
	return OK;
}

static Status
add_tree(struct maker *m, const struct hub *hub, int64_t weight)
{
	const struct plan *p = m->p;
	const Cluster *c = &p->c;
	Packing *pack = m->pack;
	m->edges.n = 0;
	for (int s = 0; s < c->n_servers; s++) {
		int entry = s == hub->server ? hub->rank : c->uplink[p->leaf_side][p->piece[m->at[s]].uplink].rank;
		if (s != hub->server)
			TRY(unequal_add_far(&m->edges, p->piece[m->at[s]].own, p->piece[m->at[s]].uplink));
		for (int i = 0; i < c->server[s].n; i++)
			if (c->rank[c->server[s].first + i] != entry)
				TRY(unequal_add_near(&m->edges, entry, c->rank[c->server[s].first + i]));
	}
	pack->demand[pack->n_trees] = p->coll == ALLREDUCE ? 0 : hub->rank;
	pack->weight[pack->n_trees] = weight;
	return unequal_arrange(&m->edges, hub->rank, &pack->tree[pack->n_trees++]);
}

/* Trees of hub h, or their number alone. */
static Status
make_hub(struct maker *m, int h, int *n)
{
	const struct plan *p = m->p;
	const struct hub *hub = &p->hub[h];
	size_t at = (size_t)h * (size_t)p->c.n_servers;
	memcpy(m->at, p->first + at, (size_t)p->c.n_servers * sizeof *m->at);
	for (int64_t begin = 0, end; begin < hub->length; begin = end) {
		end = hub->length;
		for (int s = 0; s < p->c.n_servers; s++)
			if (s != hub->server && p->piece[m->at[s]].end < end)
				end = p->piece[m->at[s]].end;
		if (m->pack)
			TRY(add_tree(m, hub, end - begin));
		++*n;
		for (int s = 0; s < p->c.n_servers; s++)
			if (s != hub->server && p->piece[m->at[s]].end == end)
				m->at[s] = p->piece[m->at[s]].next;
	}
	return OK;
}

bool
unequal_may_have(const struct plan *p, int n)
{
	int64_t edges = (int64_t)n * (p->topo->n_ranks - 1)
	    * (p->coll == ALLREDUCE || p->turned ? 2 : 1);
	return n <= LIMIT_TREES && edges <= LIMIT_TREE_EDGES;
}

Status
unequal_count_trees(struct plan *p, int *n, bool *good)
{
	struct maker m = { .p = p };
	*n = 0;
	TRY(TEMP(p->ctx, m.at, p->c.n_servers));
	for (int h = 0; h < p->n_hubs && *n <= LIMIT_TREES; h++)
		TRY(make_hub(&m, h, n));
	*good = unequal_may_have(p, *n);
	return OK;
}

Status
unequal_new_edges(const struct plan *p, struct edges *out)
{
	int n = p->topo->n_ranks;
	*out = (struct edges){ .p = p };
	TRY(blocks_find(p->ctx, p->topo, &out->blocks));
	/* Servers of equal sizes, in units of servers? */
	out->turns = out->blocks.n > 2;
	for (int s = 1; s < p->c.n_servers; s++)
		out->turns &= p->c.server[s].n == p->c.server[0].n;
	TRY(TEMP(p->ctx, out->place, n));
	TRY(TEMP(p->ctx, out->rank, n));
	TRY(TEMP(p->ctx, out->there, n));
	return TEMP(p->ctx, out->back, n);
}

Status
unequal_make_trees(struct plan *p, int n, Packing *pack)
{
	struct maker m = { .p = p, .pack = pack };
	int again = 0;
	TRY(unequal_new_edges(p, &m.edges));
	TRY(TEMP(p->ctx, m.at, p->c.n_servers));
	TRY(pack_room(p->ctx, n, true, pack));
	for (int h = 0; h < p->n_hubs; h++)
		TRY(make_hub(&m, h, &again));
	return OK;
}
