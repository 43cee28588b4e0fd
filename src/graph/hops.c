/* Hops into ranks have links together that one link cannot have twice, as a NIC behind PCIe of two ranks.
 *
 *     gpu0 --150--> switch --150--> gpu0      A cut around one GPU has 150 + 24, but both together receive at most
 *     gpu1 --150--> switch --150--> gpu1      2 * 150 + 24: 162 each.
 *            nic --24--> plx --24--> gpu0, gpu1
 *
 * Ranks pass nothing on: a hop goes from the outgoing side of a rank to the incoming side of another. So what hops
 * into a set A of ranks have is a cut between the outgoing sides of all ranks and the incoming sides of A. The A for
 * which this is least for each rank is found by Newton's method, as each cut has the A of the next. */
#include "graph/hops.h"
#include "graph/flow.h"

struct hops {
	Ctx *ctx;
	const Topology *topo;
	Topology sides;		/* vertex n_vertices + r is the side of rank r that hops enter */
	bool reversed;		/* data pass links the other way */
	Flow flow;
	bool *cut;		/* links */
	int n;			/* ranks of A; 0: no cut was found */
};

/* Only the flow sees it: links and numbers of vertices are all that it has. */
static Status
split_ranks(struct hops *h)
{
	const Topology *topo = h->topo;
	h->sides = (Topology){ .name = topo->name, .n_ranks = topo->n_ranks,
		.n_vertices = topo->n_vertices + topo->n_ranks, .n_links = topo->n_links };
	TRY(TEMP(h->ctx, h->sides.link, topo->n_links));
	for (int l = 0; l < topo->n_links; l++) {
		Link *link = &h->sides.link[l];
		*link = topo->link[l];
		int *into = h->reversed ? &link->from : &link->to;
		*into += *into < topo->n_ranks ? topo->n_vertices : 0;
	}
	return flow_new(h->ctx, &h->sides, &h->flow);
}

/* Keeps the cut of the last flow. Returns its capacity. */
static int64_t
keep_cut(struct hops *h, int root)
{
	int64_t capacity = 0;
	for (int l = 0; l < h->topo->n_links; l++) {
		const Link *link = &h->sides.link[l];
		h->cut[l] = flow_side(&h->flow, h->reversed ? link->to : link->from)
		    && !flow_side(&h->flow, h->reversed ? link->from : link->to);
		capacity += h->cut[l] ? link->capacity : 0;
	}
	h->n = 0;
	for (int r = 0; r < h->topo->n_ranks; r++)
		h->n += r != root && !flow_side(&h->flow, h->topo->n_vertices + r);
	return capacity;
}

static Status
find_cut(struct hops *h, int root, bool all, Frac each)
{
	const int n = h->topo->n_ranks;
	for (bool lower = true; lower && !out_of_time(h->ctx, FLOW_WORK(&h->sides));) {
		flow_reset(&h->flow, each.den, h->reversed);
		for (int r = 0; r < n; r++) {
			flow_from_source(&h->flow, r, FLOW_INFINITE);
			if (r != root)
				flow_to_sink(&h->flow, h->topo->n_vertices + r, all ? FLOW_INFINITE : each.num);
		}
		if (flow_max(&h->flow) >= (Wide)each.num * (n - (root >= 0)))
			return OK;
		int64_t capacity = keep_cut(h, root);
		lower = frac_make(capacity, h->n, &each) && !all;
	}
	return OK;
}

Status
hops_cut(Ctx *ctx, const Topology *topo, bool reversed, int root, bool all, Frac each, bool *cut, int *n)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct hops h = { .ctx = ctx, .topo = topo, .reversed = reversed, .cut = cut };
	TRY(split_ranks(&h));
	TRY(find_cut(&h, root, all, each));
	*n = h.n;
	arena_release(&ctx->scratch, mark);
	return OK;
}
