/* The links of a topology by pairs of vertices: what people count as one connection. */
#include "topology/topology.h"

#include <stdlib.h>

/* A link by the pair of its ends; lead: the first link of its pair and class. */
struct end_key {
	int a, b, link, lead;
	LinkClass class;
};

static int
by_ends(const void *x, const void *y)
{
	const struct end_key *p = x, *q = y;
	if (p->a != q->a)
		return p->a - q->a;
	if (p->b != q->b)
		return p->b - q->b;
	return p->class != q->class ? (int)p->class - (int)q->class : p->link - q->link;
}

static int
by_lead(const void *x, const void *y)
{
	const struct end_key *p = x, *q = y;
	return p->lead != q->lead ? p->lead - q->lead : p->link - q->link;
}

static bool
same_pair(const struct end_key *p, const struct end_key *q)
{
	return p->a == q->a && p->b == q->b && p->class == q->class;
}

Status
topo_link_pairs(Ctx *ctx, const Topology *topo, LinkPair **out, int *n)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct end_key *key;
	TRY(NEW(ctx, *out, topo->n_links));
	TRY(TEMP(ctx, key, topo->n_links));
	for (int l = 0; l < topo->n_links; l++) {
		int from = topo->link[l].from, to = topo->link[l].to;
		key[l] = (struct end_key){ from < to ? from : to, from < to ? to : from, l, l, topo->link[l].class };
	}
	qsort(key, (size_t)topo->n_links, sizeof *key, by_ends);
	for (int i = 1; i < topo->n_links; i++)
		if (same_pair(&key[i - 1], &key[i]))
			key[i].lead = key[i - 1].lead;
	qsort(key, (size_t)topo->n_links, sizeof *key, by_lead);
	*n = 0;
	for (int i = 0; i < topo->n_links; i++) {
		const Link *link = &topo->link[key[i].link];
		bool back = link->from != key[i].a;
		if (i == 0 || key[i].lead != key[i - 1].lead)
			(*out)[(*n)++] = (LinkPair){ .a = key[i].a, .b = key[i].b, .class = key[i].class,
				.first = { -1, -1 } };
		LinkPair *pair = &(*out)[*n - 1];
		if (pair->first[back] < 0)
			pair->first[back] = key[i].link;
		pair->links[back]++;
		pair->count[back] += link->count;
		pair->capacity[back] += link->capacity;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
