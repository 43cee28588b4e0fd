/* Homes of ranks, and the routes between these, found backwards from each home. */
#include "plan/pack/cluster/home_network.h"

#include <string.h>

enum {
	MOST_LINKS = 8,		/* of a route */
	MOST_WAYS = 1 << 14,	/* begun at one home */
	MOST_ROUTES = 1 << 20,
	MOST_ROUTE_LINKS = 4 * MOST_ROUTES
};

/* Each tree looks at each route: seconds; and where there are no fewer routes, most of a minute. */
#define MOST_LOOKS (INT64_C(1) << 30)
#define LAST_LOOKS (INT64_C(3) << 30)

/* Which routes there are: the first that are not too many. */
enum choice {
	ALL,			/* the fewest links, through homes that are switches, too: trees have the fewest hops */
	ONE,			/* of these one from each home to each */
	NEXT,			/* those that pass no home */
	N_CHOICES
};

/* Links out of a vertex, or into it, as data pass them. */
static const int *
links_at(const HomeNetwork *net, int v, bool enter, int *n)
{
	const Topology *topo = net->topo;
	bool in = enter != net->into;
	const int *first = in ? topo->first_in : topo->first_out;
	*n = first[v + 1] - first[v];
	return (in ? topo->in : topo->out) + first[v];
}

/* The vertex where a rank is at home; *out, *in: its links there and back, or -1. */
static int
find_home(const HomeNetwork *net, int rank, int *out, int *in)
{
	int n_out, n_in;
	const int *leave = links_at(net, rank, false, &n_out), *enter = links_at(net, rank, true, &n_in);
	*out = *in = -1;
	if (n_out != 1 || n_in != 1)
		return rank;
	int to = home_head(net, leave[0]);
	if (to < net->topo->n_ranks || to != home_tail(net, enter[0])
	    || net->topo->vertex[to].kind != VERTEX_SWITCH)
		return rank;
	*out = leave[0];
	*in = enter[0];
	return to;
}

/* number: of each vertex that is a home its number; -1. */
static Status
find_homes(Ctx *ctx, HomeNetwork *net, int *number)
{
	int n = net->topo->n_ranks, *vertex;
	TRY(TEMP_EACH(ctx, n, vertex, net->vertex, net->of, net->member, net->out, net->in));
	memset(number, -1, (size_t)net->topo->n_vertices * sizeof *number);
	for (int r = 0; r < n; r++) {
		vertex[r] = find_home(net, r, &net->out[r], &net->in[r]);
		if (number[vertex[r]] < 0) {
			net->vertex[net->n_homes] = vertex[r];
			number[vertex[r]] = net->n_homes++;
		}
		net->of[r] = number[vertex[r]];
	}
	TRY(TEMP(ctx, net->first, net->n_homes + 2));
	for (int r = 0; r < n; r++)
		net->first[net->of[r] + 2]++;
	for (int h = 0; h < net->n_homes; h++)
		net->first[h + 2] += net->first[h + 1];
	for (int r = 0; r < n; r++)
		net->member[net->first[net->of[r] + 1]++] = r;
	return OK;
}

/* The end of a route: from its tail to what `after` leads on to. */
struct way {
	int link, after, hops;
};

struct search {
	HomeNetwork *net;
	const int *number;
	struct way *way;
	int n_ways;
	enum choice choice;
	int *level, *seen, mark;	/* of each vertex: links from there to home number `mark` */
	int room_routes, room_links, n_links;
	bool full;
};

/* A way that began at a home is a route. */
static void
keep_route(struct search *s, int at)
{
	HomeNetwork *net = s->net;
	int n = s->way[at].hops;
	s->full |= net->n_routes == s->room_routes || s->n_links + n > s->room_links;
	if (s->full)
		return;
	if (net->route) {
		net->route[net->n_routes] = (HomeRoute){ s->number[home_tail(net, s->way[at].link)], n, s->n_links };
		for (int w = at, i = 0; w >= 0; w = s->way[w].after)
			net->links[s->n_links + i++] = s->way[w].link;
	}
	net->n_routes++;
	s->n_links += n;
}

/* Over all links into a vertex, from where way number `at` leads on. */
static void
step_back(struct search *s, int v, int at)
{
	int n, hops = at < 0 ? 1 : s->way[at].hops + 1;
	const int *link = links_at(s->net, v, true, &n);
	for (int i = 0; i < n && hops <= MOST_LINKS && !s->full; i++) {
		int l = link[(i + s->mark) % n], from = home_tail(s->net, l);
		bool rank = from < s->net->topo->n_ranks;
		if ((rank && s->number[from] < 0)
		    || (s->seen[from] == s->mark && (s->choice == ONE || s->level[from] < hops)))
			continue;
		s->seen[from] = s->mark;
		s->level[from] = hops;
		s->full |= s->n_ways == MOST_WAYS;
		if (s->full)
			return;
		s->way[s->n_ways] = (struct way){ l, at, hops };
		if (s->number[from] >= 0)
			keep_route(s, s->n_ways);
		s->n_ways++;
	}
}

/* All routes; where net->route is NULL they are counted. */
static void
find_routes(struct search *s)
{
	HomeNetwork *net = s->net;
	net->n_routes = s->n_links = s->mark = 0;
	memset(s->seen, 0, (size_t)net->topo->n_vertices * sizeof *s->seen);
	for (int h = 0; h < net->n_homes && !s->full; h++) {
		s->mark++;
		s->n_ways = 0;
		s->seen[net->vertex[h]] = s->mark;
		s->level[net->vertex[h]] = 0;
		if (net->route)
			net->first_route[h] = net->n_routes;
		step_back(s, net->vertex[h], -1);
		for (int at = 0; at < s->n_ways && !s->full; at++) {
			int from = home_tail(net, s->way[at].link);
			if (s->number[from] < 0 || (from >= net->topo->n_ranks && s->choice != NEXT))
				step_back(s, from, at);
		}
	}
}

Status
home_network(Ctx *ctx, const Topology *topo, bool into, int n_trees, HomeNetwork *out, bool *is_one)
{
	HomeNetwork net = { .topo = topo, .into = into };
	struct search s = { .net = &net, .room_routes = MOST_ROUTES, .room_links = MOST_ROUTE_LINKS };
	int *number;
	*is_one = false;
	TRY(TEMP_EACH(ctx, topo->n_vertices, number, s.level, s.seen));
	TRY(find_homes(ctx, &net, number));
	if (net.n_homes < 2)
		return OK;
	s.number = number;
	TRY(TEMP(ctx, s.way, MOST_WAYS));
	do {
		s.full = false;
		find_routes(&s);
		s.full |= (int64_t)net.n_routes * n_trees > (s.choice == NEXT ? LAST_LOOKS : MOST_LOOKS);
	} while (s.full && ++s.choice < N_CHOICES);
	if (s.full)
		return OK;
	TRY(TEMP(ctx, net.first_route, net.n_homes + 1));
	TRY(TEMP(ctx, net.route, net.n_routes));
	TRY(TEMP(ctx, net.links, s.n_links));
	find_routes(&s);
	net.first_route[net.n_homes] = net.n_routes;
	*out = net;
	*is_one = true;
	return OK;
}
