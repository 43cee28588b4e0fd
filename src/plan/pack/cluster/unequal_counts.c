/* How many others of its server each entry of a tree sends to, where all trees have one length (unequal_spread.c). A
 * GPU has room for so many in all trees; those of a tree and server have to send to all others there:
 *
 *     tree 1    a, b    send to 4 others    a 3  b 1      a has room for 4 in all, b for 2, c for 2
 *     tree 2    a, c    send to 4 others    a 1  c 3      so c is over by one: a takes one more of tree 2,
 *                                                         and b one of tree 1 from a
 *
 * Counts begin equal, and move along shortest chains of entries from GPUs that are over to some with room: a maximum
 * flow (Edmonds and Karp 1972). */
#include "plan/pack/cluster/unequal_pieces.h"

#include <string.h>

struct counts {
	int n_groups, n_ranks;
	const int *first;	/* entry of each group */
	struct entry *entry;
	int *of_rank;		/* the last entry of each rank; -1: none */
	int *left;		/* of each rank: room for more */
	int n_queued, *queue;	/* ranks */
	int *gives, *takes;	/* of each of them but the first: entries of one group, of a rank before it and of it */
};

static Status
new_counts(struct counts *c, Ctx *ctx)
{
	TRY(TEMP_EACH(ctx, c->n_ranks, c->of_rank, c->queue, c->gives, c->takes));
	memset(c->of_rank, -1, (size_t)c->n_ranks * sizeof *c->of_rank);
	return OK;
}

/* Of a group, those that are no helpers. */
static int
n_entries(const struct counts *c, int g)
{
	int n = 0;
	for (int i = c->first[g]; i < c->first[g + 1]; i++)
		n += !c->entry[i].helps;
	return n;
}

/* Helpers have none at first. */
static void
begin_equal(struct counts *c, const int *need)
{
	for (int g = 0; g < c->n_groups; g++)
		for (int i = c->first[g], n = n_entries(c, g); i < c->first[g + 1]; i++) {
			struct entry *e = &c->entry[i];
			int at = i - c->first[g];
			e->count = at < n ? need[g] * (at + 1) / n - need[g] * at / n : 0;
			e->group = g;
			e->next = c->of_rank[e->rank];
			c->of_rank[e->rank] = i;
			c->left[e->rank] -= e->count;
		}
}

static int
movable(const struct entry *e)
{
	return e->count - e->least;
}

/* Ranks that could send instead of rank v. Returns one with room; -1: none. */
static int
add_others(struct counts *c, int v)
{
	for (int i = c->of_rank[v]; i >= 0; i = c->entry[i].next) {
		int g = c->entry[i].group;
		for (int k = c->first[g]; k < c->first[g + 1] && movable(&c->entry[i]) > 0; k++) {
			int w = c->entry[k].rank;
			if (c->takes[w] >= 0 || w == c->queue[0])
				continue;
			c->gives[w] = i;
			c->takes[w] = k;
			c->queue[c->n_queued++] = w;
			if (c->left[w] > 0)
				return w;
		}
	}
	return -1;
}

/* A chain from rank v to one with room. False: there is none. */
static bool
relieve(struct counts *c, int v)
{
	int end = -1, most = -c->left[v];
	memset(c->takes, -1, (size_t)c->n_ranks * sizeof *c->takes);
	c->n_queued = 1;
	c->queue[0] = v;
	for (int at = 0; at < c->n_queued && end < 0; at++)
		end = add_others(c, c->queue[at]);
	if (end < 0)
		return false;
	most = c->left[end] < most ? c->left[end] : most;
	for (int w = end; w != v; w = c->entry[c->gives[w]].rank)
		most = movable(&c->entry[c->gives[w]]) < most ? movable(&c->entry[c->gives[w]]) : most;
	for (int w = end; w != v; w = c->entry[c->gives[w]].rank) {
		c->entry[c->takes[w]].count += most;
		c->entry[c->gives[w]].count -= most;
	}
	c->left[end] -= most;
	c->left[v] += most;
	return true;
}

Status
unequal_count_sends(Ctx *ctx, int n_groups, const int *first, const int *need, int n_ranks, int *room,
    struct entry *entry)
{
	struct counts c = { .n_groups = n_groups, .n_ranks = n_ranks, .first = first, .entry = entry,
	    .left = room };
	TRY(new_counts(&c, ctx));
	begin_equal(&c, need);
	for (int v = 0; v < n_ranks; v++)
		while (c.left[v] < 0 && relieve(&c, v))
			;
	return OK;
}
