/* GPUs of a machine that have the NVLinks of a job's: a search with backtracking, a server at a time. The driver's own
 * numbers are tried first, so that where the machine is the one that was planned for there is nothing to search. */
#include "probe/probe.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MOST = 100000 };

/* A server of the machine. */
struct node {
	int n;
	int *gpu;			/* of the machine */
	int *links;			/* n * n: NVLinks between two */
	int *to_switch;			/* of each */
	int64_t *rate;			/* of a link, bytes/s; 0: it has none */
};

struct matching {
	Ctx *ctx;
	const Topology *machine;
	const struct gpu_card *card;
	int *place;			/* of each vertex of the machine: its number in its server */
	int n;				/* ranks on the server that is matched */
	int *rank;
	int *at;			/* of each of these: its GPU's number in the node; -1: none yet */
	bool *used;			/* GPUs of the node */
	bool *taken;			/* servers of the machine */
};

/* ---- the machine ---- */

static Status
read_node(struct matching *m, int node, struct node *out)
{
	const Topology *machine = m->machine;
	TRY(TEMP(m->ctx, out->gpu, machine->n_ranks));
	out->n = 0;
	for (int g = 0; g < machine->n_ranks; g++) {
		if (machine->vertex[g].node != node)
			continue;
		m->place[g] = out->n;
		out->gpu[out->n++] = g;
	}
	TRY(TEMP(m->ctx, out->links, out->n * out->n));
	TRY(TEMP(m->ctx, out->to_switch, out->n));
	TRY(TEMP(m->ctx, out->rate, out->n));
	for (int l = 0; l < machine->n_links; l++) {
		const Link *link = &machine->link[l];
		bool own = link->from < machine->n_ranks && machine->vertex[link->from].node == node;
		if (link->class != LINK_NVLINK || !own)
			continue;
		int g = m->place[link->from];
		out->rate[g] = link->capacity / link->count;
		if (machine->vertex[link->to].kind == VERTEX_SWITCH)
			out->to_switch[g] += link->count;
		else if (link->to < machine->n_ranks && machine->vertex[link->to].node == node)
			out->links[g * out->n + m->place[link->to]] += link->count;
	}
	return OK;
}

/* ---- does a GPU fit? ---- */

static int
card_peers(const struct gpu_card *card)
{
	return card->n_peers < CARD_PEERS ? card->n_peers : CARD_PEERS;
}

static int
links_of_card(const struct gpu_card *card)
{
	int n = 0;
	for (int i = 0; i < card_peers(card); i++)
		n += card->peer[i].links;
	return n;
}

static int
links_to(const struct gpu_card *card, const struct gpu_card *other)
{
	for (int i = 0; i < card_peers(card); i++)
		if (card_peer_same(&card->peer[i], &other->self))
			return card->peer[i].links;
	return 0;
}

static int
links_of_gpu(const struct node *node, int g)
{
	int n = 0;
	for (int i = 0; i < node->n; i++)
		n += node->links[g * node->n + i];
	return n;
}

static bool
same_rate(const struct gpu_card *card, int64_t rate)
{
	int64_t told = (int64_t)card->mbytes * 1000000;
	return told == 0 || rate == 0 || (told > rate / 100 * 88 && told < rate / 100 * 112);
}

/* Rank i of the server as GPU g of the node, next to the ranks before it. */
static bool
fits(const struct matching *m, const struct node *node, int i, int g)
{
	const struct gpu_card *card = &m->card[m->rank[i]];
	int links = links_of_card(card);
	if (m->used[g] || links != links_of_gpu(node, g) || card->to_switch != node->to_switch[g]
	    || !same_rate(card, node->rate[g]))
		return false;
	if (links + card->to_switch == 0 && !(card->shown == node->n && card->number == g))
		return false;
	for (int j = 0; j < i; j++) {
		const struct gpu_card *other = &m->card[m->rank[j]];
		int between = node->links[g * node->n + m->at[j]];
		if (links_to(card, other) != between || links_to(other, card) != between)
			return false;
	}
	return true;
}

/* The next GPU to try for rank i: first the driver's number, -1, then all in turn. */
static int
gpu_of_try(const struct matching *m, const struct node *node, int i, int try)
{
	const struct gpu_card *card = &m->card[m->rank[i]];
	if (try >= 0)
		return try;
	return card->shown == node->n && card->number < node->n ? card->number : 0;
}

/* try: room for a number for each rank. */
static bool
search(struct matching *m, const struct node *node, int *try)
{
	int i = 0;
	if (m->n > node->n)
		return false;
	memset(m->used, 0, (size_t)node->n * sizeof *m->used);
	try[0] = -1;
	for (int steps = 0; i >= 0 && i < m->n && steps < STEPS_MOST; steps++) {
		int g = try[i] < node->n ? gpu_of_try(m, node, i, try[i]) : -1;
		if (g < 0) {
			if (--i >= 0)
				m->used[m->at[i]] = false;
			continue;
		}
		try[i]++;
		if (!fits(m, node, i, g))
			continue;
		m->at[i++] = g;
		m->used[g] = true;
		if (i < m->n)
			try[i] = -1;
	}
	return i == m->n;
}

/* ---- the job ---- */

static Status
match_server(struct matching *m, int *gpu, bool *found)
{
	*found = false;
	for (int nd = 0; nd < m->machine->n_nodes && !*found; nd++) {
		ArenaMark mark = arena_mark(&m->ctx->scratch);
		struct node node;
		int *try;
		if (m->taken[nd])
			continue;
		TRY(read_node(m, nd, &node));
		TRY(TEMP(m->ctx, try, m->n));
		*found = m->taken[nd] = search(m, &node, try);
		for (int i = 0; *found && i < m->n; i++)
			gpu[m->rank[i]] = node.gpu[m->at[i]];
		arena_release(&m->ctx->scratch, mark);
	}
	return OK;
}

static Status
match(struct matching *m, const int *server, int n_ranks, int *gpu, bool *found)
{
	TRY(TEMP(m->ctx, m->place, m->machine->n_vertices));
	TRY(TEMP(m->ctx, m->rank, n_ranks));
	TRY(TEMP(m->ctx, m->at, n_ranks));
	TRY(TEMP(m->ctx, m->used, m->machine->n_ranks));
	TRY(TEMP(m->ctx, m->taken, m->machine->n_nodes));
	*found = true;
	for (int s = 0, left = n_ranks; left > 0 && *found; s++) {
		m->n = 0;
		for (int r = 0; r < n_ranks; r++)
			if (server[r] == s)
				m->rank[m->n++] = r;
		left -= m->n;
		TRY(match_server(m, gpu, found));
	}
	return OK;
}

Status
probe_match(Ctx *ctx, const Topology *machine, const struct gpu_card *card, const int *server, int n_ranks, int *gpu,
    bool *found)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct matching m = { .ctx = ctx, .machine = machine, .card = card };
	Status status = match(&m, server, n_ranks, gpu, found);
	arena_release(&ctx->scratch, mark);
	return status;
}

/* ---- a schedule's links ---- */

static int
links_of_topology(const Topology *topo, int from, int to)
{
	int n = 0;
	for (int i = topo->first_out[from]; i < topo->first_out[from + 1]; i++) {
		const Link *link = &topo->link[topo->out[i]];
		bool is_there = to < 0 ? topo->vertex[link->to].kind == VERTEX_SWITCH : link->to == to;
		n += link->class == LINK_NVLINK && is_there ? link->count : 0;
	}
	return n;
}

bool
probe_lacks(const Topology *topo, const struct gpu_card *card, const int *server, struct probe_lack *out)
{
	for (int from = 0; from < topo->n_ranks; from++)
		for (int to = -1; to < topo->n_ranks; to++) {
			int found = to < 0 ? card[from].to_switch
			    : server[from] == server[to] ? links_to(&card[from], &card[to]) : 0;
			int wanted = to == from ? 0 : links_of_topology(topo, from, to);
			*out = (struct probe_lack){ from, to, wanted, found };
			if (out->wanted > out->found && card[from].mbytes > 0)
				return true;
		}
	return false;
}
