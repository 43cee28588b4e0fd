/* The cheapest ring that visits one server after the other, against all orders of the ranks of each. */
#include "plan/pack/rings/server_ring.h"
#include "random.h"

#include <string.h>

enum { SERVERS = 3, MOST = 8 };

struct job {
	Topology topo;
	Vertex vertex[MOST];
	int64_t cost[MOST * MOST];
	int order[MOST], n;	/* of a ring under way */
	bool taken[MOST];
};

static void
make(struct job *j, int servers)
{
	memset(j, 0, sizeof *j);
	for (int s = 0; s < servers; s++)
		j->topo.n_ranks += 1 + below(MOST / servers);
	j->topo.n_nodes = servers;
	j->topo.vertex = j->vertex;
	for (int r = 0; r < j->topo.n_ranks; r++)	/* numbers of a server need not be in a row */
		j->vertex[r] = (Vertex){ .kind = VERTEX_GPU, .node = r < servers ? servers - 1 - r : below(servers) };
	for (int i = 0; i < j->topo.n_ranks * j->topo.n_ranks; i++)
		j->cost[i] = below(4) ? below(50) : SERVER_RING_NONE;
}

static int64_t
sum_of(const struct job *j, const int *order)
{
	int64_t sum = 0;
	int n = j->topo.n_ranks;
	for (int i = 0; i < n; i++) {
		int64_t hop = j->cost[order[i] * n + order[(i + 1) % n]];
		if (hop >= SERVER_RING_NONE)
			return SERVER_RING_NONE;
		sum += hop;
	}
	return sum;
}

/* Every rank of server `at` that is left comes next, and after the last one the server behind it. */
static int64_t
brute(struct job *j, int at)
{
	int64_t least = SERVER_RING_NONE;
	bool left = false;
	if (j->n == j->topo.n_ranks)
		return sum_of(j, j->order);
	for (int r = 0; r < j->topo.n_ranks; r++) {
		if (j->taken[r] || j->vertex[r].node != at)
			continue;
		left = j->taken[r] = true;
		j->order[j->n++] = r;
		int64_t sum = brute(j, at);
		least = sum < least ? sum : least;
		j->n--;
		j->taken[r] = false;
	}
	return left ? least : brute(j, at + 1);
}

/* Each rank once, each server once. */
static bool
is_ring(const struct job *j, const int *order)
{
	bool seen[MOST] = { false };
	int n = j->topo.n_ranks, changes = 0;
	for (int i = 0; i < n; i++) {
		if (order[i] < 0 || order[i] >= n || seen[order[i]])
			return false;
		seen[order[i]] = true;
		changes += j->vertex[order[i]].node != j->vertex[order[(i + 1) % n]].node;
	}
	return changes == j->topo.n_nodes;
}

int
main(void)
{
	Ctx ctx;
	int wrong = 0, rings = 0;
	ctx_init(&ctx);
	for (int round = 0; round < 1000; round++) {
		ArenaMark mark = arena_mark(&ctx.scratch);
		struct job j;
		ServerRing of;
		bool fits;
		int order[MOST];
		make(&j, 2 + below(SERVERS - 1));
		if (j.topo.n_ranks < j.topo.n_nodes || server_ring_new(&ctx, &j.topo, &of, &fits) != OK || !fits) {
			wrong++;
			continue;
		}
		int64_t want = brute(&j, 0), got = server_ring_cheapest(&of, j.cost, order);
		wrong += got != want || (want < SERVER_RING_NONE && (!is_ring(&j, order) || sum_of(&j, order) != want));
		rings += want < SERVER_RING_NONE;
		arena_release(&ctx.scratch, mark);
	}
	wrong += rings < 400;
	ctx_free(&ctx);
	return report(wrong, "the cheapest rings through servers");
}
