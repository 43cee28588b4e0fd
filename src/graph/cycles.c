/* All Hamiltonian cycles over links, and the most of them at once: branch and bound (hamiltonian.c). */
#include "graph/cycles.h"

#include <string.h>

enum { MOST_UNITS = 64 };	/* of all rings, where a choice of more is searched: GPUs have up to 18 links */

/* A walk in depth from rank 0 over the hops, which are links. */
Status
list_cycles(struct finder *p, struct cycle_list *out)
{
	int n = p->topo->n_ranks, depth = 0, *path, *next, most = LIMIT_RINGS / n;
	bool *visited;
	TRY(TEMP(p->ctx, out->hop, most * n));
	TRY(TEMP_EACH(p->ctx, n, path, next, visited));
	out->n = 0;
	for (int64_t steps = 0; depth >= 0; steps++) {
		int at = depth ? p->search.hop[path[depth - 1]].dst : 0;
		int h = search_hop_at(&p->search, at, next[depth]++, false);
		if (steps >= LIMIT_RING_STEPS || (out->n == most && h >= 0))
			break;
		if (h < 0) {
			next[depth--] = 0;
			visited[at] = false;
			continue;
		}
		int to = p->search.hop[h].dst;
		if (visited[to] || (to == 0) != (depth == n - 1))
			continue;
		path[depth] = h;
		if (to == 0) {
			memcpy(out->hop + out->n++ * n, path, (size_t)n * sizeof *path);
			continue;
		}
		visited[to] = true;
		depth++;
	}
	out->all = depth < 0;
	return OK;
}

struct choice {
	const struct finder *p;
	const struct cycle_list *cycles;
	int64_t *left;		/* of each link, units */
	int *taken, n_taken;	/* cycles, in order of choice */
	int64_t steps;		/* cycles looked at */
};

static bool
is_open(const struct choice *c, int cycle)
{
	int n = c->p->topo->n_ranks;
	for (int i = 0; i < n; i++)
		if (c->left[c->p->search.hop[c->cycles->hop[cycle * n + i]].link] < 1)
			return false;
	return true;
}

static void
take(struct choice *c, int cycle, int sign)
{
	int n = c->p->topo->n_ranks;
	for (int i = 0; i < n; i++)
		c->left[c->p->search.hop[c->cycles->hop[cycle * n + i]].link] -= sign;
	if (sign > 0)
		c->taken[c->n_taken++] = cycle;
	else
		c->n_taken--;
}

/* A link that some of the `more` rings to come must use, as they need all that is left at one of its ends; -1: there is
 * none. *enough: no rank has too little left. */
static int
forced_link(const struct choice *c, int64_t more, bool *enough)
{
	const Topology *topo = c->p->topo;
	int forced = -1;
	*enough = true;
	for (int side = 0; side < 2; side++) {
		const int *first = side ? topo->first_in : topo->first_out, *list = side ? topo->in : topo->out;
		for (int r = 0; r < topo->n_ranks; r++) {
			int64_t sum = 0;
			int open = -1;
			for (int i = first[r]; i < first[r + 1]; i++) {
				sum += c->left[list[i]];
				open = c->left[list[i]] > 0 ? list[i] : open;
			}
			*enough = *enough && sum >= more;
			forced = sum == more && forced < 0 ? open : forced;
		}
	}
	return forced;
}

static bool
passes(const struct choice *c, int cycle, int link)
{
	int n = c->p->topo->n_ranks;
	for (int i = 0; i < n; i++)
		if (c->p->search.hop[c->cycles->hop[cycle * n + i]].link == link)
			return true;
	return false;
}

/* Take `more` cycles, numbered `first` or above. */
static bool
take_more(struct choice *c, int64_t more, int first)
{
	bool enough;
	int forced = forced_link(c, more, &enough);
	if (more == 0 || !enough)
		return more == 0;
	for (int i = first; i < c->cycles->n && c->steps < LIMIT_RING_STEPS; i++) {
		c->steps++;
		if (!is_open(c, i) || (forced >= 0 && !passes(c, i, forced)))
			continue;
		take(c, i, 1);
		/* Without a forced link the cycles are taken in order, each set of them once. */
		if (take_more(c, more - 1, forced >= 0 ? first : i))
			return true;
		take(c, i, -1);
	}
	return false;
}

/* Each cycle in turn, as wide as the links that are left allow. */
static Status
choose_widest(struct finder *p, const struct cycle_list *cycles)
{
	int n = p->topo->n_ranks;
	for (int i = 0; i < cycles->n && p->n_rings < p->most_rings; i++) {
		const int *hop = cycles->hop + i * n;
		int64_t width = INT64_MAX;
		for (int k = 0; k < n; k++) {
			int64_t left = p->left[p->search.hop[hop[k]].link];
			width = left < width ? left : width;
		}
		if (width > 0)
			TRY(add_ring(p, hop, width));
	}
	return OK;
}

/* The cycles taken, in place of the rings so far. */
static Status
take_all(struct finder *p, const struct choice *c)
{
	p->n_rings = 0;
	p->units = 0;
	for (int i = 0; i < c->n_taken; i++) {
		if (i == 0 || c->taken[i] != c->taken[i - 1]) {
			TRY(add_ring(p, c->cycles->hop + c->taken[i] * p->topo->n_ranks, 1));
		} else {
			p->ring[p->n_rings - 1].width++;
			p->units++;
		}
	}
	return OK;
}

/* First any choice, then one of a unit more, until there is none; p->proven: the search has excluded it, or the ranks
 * have no capacity for more. */
Status
choose_cycles(struct finder *p, const struct cycle_list *cycles)
{
	struct choice c = { .p = p, .cycles = cycles };
	int64_t top = units_of_ranks(p), *whole;
	TRY(TEMP(p->ctx, c.taken, MOST_UNITS));
	TRY(TEMP_EACH(p->ctx, p->topo->n_links, c.left, whole));
	memcpy(whole, p->left, (size_t)p->topo->n_links * sizeof *whole);
	TRY(choose_widest(p, cycles));
	bool more = true;
	while (more && p->units < top && p->units < MOST_UNITS && p->units < p->most_rings) {
		memcpy(c.left, whole, (size_t)p->topo->n_links * sizeof *whole);
		c.n_taken = 0;
		more = take_more(&c, p->units + 1, 0);
		if (more)
			TRY(take_all(p, &c));
	}
	p->proven = p->units == top || (!more && cycles->all && c.steps < LIMIT_RING_STEPS);
	return OK;
}
