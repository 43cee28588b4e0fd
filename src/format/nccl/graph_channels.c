/* One speed for all channels, where rings have rates of their own: a ring of rate r takes floor(r / s) channels of
 * speed s, and what is left over is lost. The best s is a rate divided by a number of channels, since at any other
 * more could be carried by the same channels:
 *
 *     rings of 50 and 30 GB/s     s = 30: 1 + 1 channels carry 60     s = 10: 5 + 3 carry 80
 *
 * Of speeds that carry the same, the highest that is not above 25 GB/s: NCCL divides faster channels itself, because
 * a block of threads cannot fill one. */
#include "format/nccl/graph.h"

enum { FASTEST = 25000, ALIKE = 1000 };	/* MB/s; carrying less by one part in so many is no loss */

/* MB/s that channels of this speed carry together. n_channels: how many. */
static int64_t
carried(const NcclGraph *graph, int64_t speed, int *n_channels)
{
	int64_t n = 0;
	for (int i = 0; i < graph->n_rings && n < NCCL_GRAPH_CHANNELS; i++)
		n += graph->ring[i].rate / speed;
	*n_channels = n < NCCL_GRAPH_CHANNELS ? (int)n : NCCL_GRAPH_CHANNELS;
	return *n_channels * speed;
}

static bool
better(int64_t speed, int64_t other)
{
	if (speed <= FASTEST && other <= FASTEST)
		return speed > other;
	return speed < other;
}

/* Rings have at least 1 MB/s, so that a speed of that order carries something. */
static int64_t
best_speed(const NcclGraph *graph)
{
	int64_t most = 0, best = 0;
	int n_channels;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < graph->n_rings; i++) {
			for (int copies = 1; copies <= NCCL_GRAPH_CHANNELS; copies++) {
				int64_t speed = graph->ring[i].rate / copies;
				int64_t now = speed > 0 ? carried(graph, speed, &n_channels) : 0;
				if (pass == 0 && now > most)
					most = now;
				if (pass == 1 && now > 0 && now >= most - most / ALIKE &&
				    (best == 0 || better(speed, best)))
					best = speed;
			}
		}
	}
	return best;
}

void
nccl_graph_channels(NcclGraph *graph)
{
	int left;
	graph->speed = best_speed(graph);
	graph->lost = -carried(graph, graph->speed, &left);
	graph->n_channels = left;
	for (int i = 0; i < graph->n_rings; i++) {
		int64_t copies = graph->ring[i].rate / graph->speed;
		graph->ring[i].copies = copies < left ? (int)copies : left;
		left -= graph->ring[i].copies;
		graph->lost += graph->ring[i].rate;
	}
}
