/* How long the first byte takes through the trees: hops up to the root and down again, one after the other. */
#include "schedule/in_trees.h"

static int64_t
edge_latency(const Topology *topo, const Edge *edge)
{
	int64_t sum = 0;
	for (int i = 0; i < edge->n_links; i++)
		sum += topo->link[edge->link[i]].latency;
	return sum;
}

/* at: n_ranks, when data of the tree reaches each rank. An edge comes after those that feed it. */
static int64_t
tree_latency(const Topology *topo, const Tree *tree, int64_t *at)
{
	int64_t latest = 0;
	for (int r = 0; r < topo->n_ranks; r++)
		at[r] = 0;
	for (int e = 0; e < tree->n_up + tree->n_down; e++) {
		const Edge *edge = tree_hop(tree, e);
		int64_t then = at[edge->src] + edge_latency(topo, edge);
		at[edge->dst] = e >= tree->n_up || then > at[edge->dst] ? then : at[edge->dst];
		latest = then > latest ? then : latest;
	}
	return latest;
}

Status
sched_latency(Ctx *ctx, const Schedule *sched, int64_t *latency)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *at;
	if (sched->n_in_trees)
		return in_trees_latency(ctx, sched, latency);
	TRY(TEMP(ctx, at, sched->topo->n_ranks));
	for (int i = 0; i < (sched->n_parts ? sched->n_parts : 1); i++)
		latency[i] = 0;
	for (int t = 0; t < sched->n_segments; t++) {
		const Segment *segment = &sched->segment[t];
		int64_t one = tree_latency(sched->topo, &segment->tree, at);
		latency[segment->part] = one > latency[segment->part] ? one : latency[segment->part];
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

unsigned
sched_without_latency(const Schedule *sched)
{
	unsigned classes = 0;
	for (int l = 0; l < sched->topo->n_links; l++)
		if (sched->topo->link[l].latency == 0)
			classes |= 1u << sched->topo->link[l].class;
	return classes;
}

/* What size m takes in the parts that carry some of it; they end together but for their latencies. */
double
sched_seconds(const Schedule *sched, const PartEnd *split, const int64_t *latency, int64_t m)
{
	int64_t end[N_LINK_CLASSES], most = latency[0];
	if (sched->n_parts) {
		most = 0;
		split_message(split, sched->n_parts, m, end);
	}
	for (int i = 0; i < sched->n_parts; i++)
		if (end[i] > (i ? end[i - 1] : 0) && latency[i] > most)
			most = latency[i];
	return split_seconds(sched, m) + (double)most / 1e9;
}

double
sched_seconds_alone(const Schedule *sched, const int64_t *latency, int64_t m)
{
	const Part *first = &sched->part[0];
	return (double)(first->setup + latency[0]) / 1e9 + (double)m / frac_double(first->rate);
}
