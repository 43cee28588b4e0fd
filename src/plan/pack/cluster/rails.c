/* Trees whose edges are on several rails. How many places a tree has at each server is known (few_trees.c); here each
 * place gets an uplink of its server, and then edges join places on one rail:
 *
 *     server a    hub of a tree       out on rails 0, 1, 2       and of other trees: in on rail 3
 *     b, c, d     enter it            in on rail 0, 1, 2 each    in, out on others
 *
 * A tree of n servers has n - 1 places out, of the hubs that lead to other servers, and n - 1 in. The edges exist if
 * each tree has as many out as in on each rail, but for the order in which hubs come. So places are put where the
 * tree misses some, server by server, and then differences are repaired: a place moves to an uplink of another rail
 * that has room, or changes its rail with another place of its server, of any tree, where the sum of all differences
 * falls; where none does, a change that keeps the sum carries a difference to another tree. With direction this is the
 * colouring of the edges of a bipartite graph; as one rail takes places of both kinds, it need not exist, and the
 * search for it ends after LOOKS for each place. */
#include "plan/pack/cluster/rails.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum {
	LOOKS = 128,		/* at places, for each of them, on the whole */
	LOOKED_AT = 64		/* places for one step, and others of the server of each */
};

struct place {
	int tree, uplink;
	int sign;		/* 1: out, -1: in */
};

struct rails {
	struct rail_trees *r;
	int n_servers, n_places, *first;	/* of each server, and one more: in `place` */
	struct place *place;
	int *first_of_tree, *of_tree;	/* places by tree */
	int *root;		/* of each tree */
	int *balance;		/* [tree * n_planes + plane]: places out less places in */
	int off;		/* the sum of their absolute values */
	int *global;		/* of each plane: of all trees */
	uint64_t draw;
	int64_t looks;
	/* Of a tree, while servers join it: places out by plane, next: the first that is free. */
	int *first_open, *n_open, *next, *open, *queue;
	int *first_at;		/* of each server, and one more: in of_tree */
};

static int
plane_of(const struct rails *q, int uplink)
{
	return q->r->plane[q->r->c->uplink[0][uplink].network];
}

static int
server_of(const struct rails *q, int uplink)
{
	return q->r->c->of[q->r->c->uplink[0][uplink].rank];
}

static int *
balance_at(const struct rails *q, int tree, int plane)
{
	return &q->balance[(size_t)tree * (size_t)q->r->n_planes + (size_t)plane];
}

/* How much more is missing or left over, if the balance changes by `by`. */
static int
cost(const struct rails *q, int tree, int plane, int by)
{
	int now = *balance_at(q, tree, plane);
	return abs(now + by) - abs(now);
}

static void
change(struct rails *q, int tree, int plane, int by)
{
	q->off += cost(q, tree, plane, by);
	*balance_at(q, tree, plane) += by;
	q->global[plane] += by;
}

/* ---- the first choice ---- */

/* The server with most places leads. */
static void
choose_root(struct rails *q, int t)
{
	const int *places = q->r->places + (size_t)t * (size_t)q->n_servers;
	int best = 0;
	for (int s = 1; s < q->n_servers; s++)
		best = places[s] > places[best] ? s : best;
	q->root[t] = best;
}

/* The uplink with room where the place is missed most, by its tree, then by all; and then where there is most room. */
static int
best_uplink(const struct rails *q, int s, int t, int sign)
{
	const struct cluster_server *server = &q->r->c->server[s];
	int best = -1, least = 0, all = 0;
	for (int i = 0; i < server->n_uplinks[0]; i++) {
		int w = server->first_uplink[0] + i, g = plane_of(q, w);
		if (q->r->room[w] <= 0)
			continue;
		int now = sign * *balance_at(q, t, g), sum = sign * q->global[g];
		if (best >= 0 && (now > least || (now == least && (sum > all || (sum == all
		    && q->r->room[w] <= q->r->room[best])))))
			continue;
		best = w;
		least = now;
		all = sum;
	}
	return best;
}

static void
add_place(struct rails *q, int s, int t, int sign, bool *good)
{
	int w = best_uplink(q, s, t, sign);
	*good = *good && w >= 0;
	if (!*good)
		return;
	q->place[q->n_places++] = (struct place){ t, w, sign };
	q->r->room[w]--;
	change(q, t, plane_of(q, w), sign);
}

/* Of each server first the places out, of which the others follow. */
static void
add_places(struct rails *q, bool *good)
{
	for (int t = 0; t < q->r->n_trees; t++)
		choose_root(q, t);
	for (int s = 0; s < q->n_servers && *good; s++) {
		q->first[s] = q->n_places;
		for (int t = 0; t < q->r->n_trees && *good; t++) {
			int n = q->r->places[(size_t)t * (size_t)q->n_servers + (size_t)s] - (q->root[t] != s);
			for (int i = 0; i < n && *good; i++)
				add_place(q, s, t, 1, good);
		}
		for (int t = 0; t < q->r->n_trees && *good; t++)
			if (q->root[t] != s)
				add_place(q, s, t, -1, good);
	}
	q->first[q->n_servers] = q->n_places;
}

static void
list_by_tree(struct rails *q)
{
	int n = q->r->n_trees;
	memset(q->first_of_tree, 0, (size_t)(n + 1) * sizeof *q->first_of_tree);
	for (int i = 0; i < q->n_places; i++)
		q->first_of_tree[q->place[i].tree + 1]++;
	for (int t = 0; t < n; t++)
		q->first_of_tree[t + 1] += q->first_of_tree[t];
	for (int i = q->n_places - 1; i >= 0; i--)
		q->of_tree[--q->first_of_tree[q->place[i].tree + 1]] = i;
	for (int t = 0; t < n; t++)
		q->first_of_tree[t] = q->first_of_tree[t + 1];
	q->first_of_tree[n] = q->n_places;
}

/* ---- repair ---- */

/* A place takes another uplink, which has room, or which it takes from place `other`; -1: none. */
struct move {
	int place, uplink, other, cost;
};

static int
draw(struct rails *q, int n)
{
	return (int)(hash64(q->draw++) % (uint64_t)n);
}

/* Places x and y change their uplinks: what else it costs, besides what x does alone. */
static int
cost_of_both(struct rails *q, const struct place *x, const struct place *y)
{
	int a = plane_of(q, x->uplink), b = plane_of(q, y->uplink);
	if (x->tree != y->tree)
		return cost(q, y->tree, b, -y->sign) + cost(q, y->tree, a, y->sign);
	*balance_at(q, x->tree, a) -= x->sign;
	*balance_at(q, x->tree, b) += x->sign;
	int sum = cost(q, y->tree, b, -y->sign) + cost(q, y->tree, a, y->sign);
	*balance_at(q, x->tree, a) += x->sign;
	*balance_at(q, x->tree, b) -= x->sign;
	return sum;
}

/* Better moves replace it; of equal ones each with equal chance. */
static void
offer(struct rails *q, const struct move *move, struct move *best, int *n)
{
	if (*n > 0 && move->cost > best->cost)
		return;
	*n = *n > 0 && move->cost == best->cost ? *n + 1 : 1;
	if (draw(q, *n) == 0)
		*best = *move;
}

/* Of a place that its tree has too many of on its rail. */
static void
find_moves(struct rails *q, int i, struct move *best, int *n)
{
	const struct place *x = &q->place[i];
	int s = server_of(q, x->uplink), a = plane_of(q, x->uplink), start = cost(q, x->tree, a, -x->sign);
	const struct cluster_server *server = &q->r->c->server[s];
	for (int k = 0; k < server->n_uplinks[0]; k++) {
		int w = server->first_uplink[0] + k, b = plane_of(q, w);
		if (q->r->room[w] > 0 && b != a)
			offer(q, &(struct move){ i, w, -1, start + cost(q, x->tree, b, x->sign) }, best, n);
	}
	int n_places = q->first[s + 1] - q->first[s], start_at = draw(q, n_places);
	int most = n_places < LOOKED_AT ? n_places : LOOKED_AT;
	for (int j = 0; j < most; j++) {
		int k = q->first[s] + (start_at + j) % n_places;
		const struct place *y = &q->place[k];
		int b = plane_of(q, y->uplink);
		if (b == a || (y->tree == x->tree && y->sign == x->sign))
			continue;
		int sum = start + cost(q, x->tree, b, x->sign);
		if (sum <= 2)
			offer(q, &(struct move){ i, y->uplink, k, sum + cost_of_both(q, x, y) }, best, n);
	}
	q->looks += server->n_uplinks[0] + most;
}

static void
put(struct rails *q, struct place *x, int uplink)
{
	change(q, x->tree, plane_of(q, x->uplink), -x->sign);
	x->uplink = uplink;
	change(q, x->tree, plane_of(q, uplink), x->sign);
}

static void
make_move(struct rails *q, const struct move *move)
{
	struct place *x = &q->place[move->place];
	int before = x->uplink;
	put(q, x, move->uplink);
	if (move->other >= 0) {
		put(q, &q->place[move->other], before);
		return;
	}
	q->r->room[before]++;
	q->r->room[move->uplink]--;
}

static bool
is_off(const struct rails *q, int t)
{
	int g = 0;
	while (g < q->r->n_planes && *balance_at(q, t, g) == 0)
		g++;
	return g < q->r->n_planes;
}

/* The next step for tree t: of some of its places the best move, unless it makes the sum larger. */
static void
step(struct rails *q, int t)
{
	int n = q->first_of_tree[t + 1] - q->first_of_tree[t], start = draw(q, n), found = 0, looked = 0;
	struct move best = { 0, 0, -1, 0 };
	for (int i = 0; i < n && looked < LOOKED_AT && !(found > 0 && best.cost < 0); i++) {
		int at = q->of_tree[q->first_of_tree[t] + (start + i) % n];
		const struct place *x = &q->place[at];
		if (x->sign * *balance_at(q, t, plane_of(q, x->uplink)) <= 0)
			continue;
		looked++;
		find_moves(q, at, &best, &found);
	}
	q->looks += n / 8;
	if (found > 0 && best.cost <= 0)
		make_move(q, &best);
}

static void
repair(struct rails *q)
{
	int64_t most = (int64_t)q->n_places * LOOKS;
	for (int t = 0; q->off > 0 && q->looks < most; t = (t + 1) % q->r->n_trees, q->looks++)
		if (is_off(q, t))
			step(q, t);
}

/* ---- edges ---- */

/* Places out of a server that has joined the tree. */
static void
open_places(struct rails *q, int s)
{
	for (int i = q->first_at[s]; i < q->first_at[s + 1]; i++) {
		const struct place *x = &q->place[q->of_tree[i]];
		int g = plane_of(q, x->uplink);
		if (x->sign > 0)
			q->open[q->first_open[g] + q->n_open[g]++] = x->uplink;
	}
}

/* The uplink by which the tree enters a server; of its root, one by which it leaves: the last place, as it comes after
 * those that lead to others. */
static int
uplink_in(const struct rails *q, int s)
{
	return q->place[q->of_tree[q->first_at[s + 1] - 1]].uplink;
}

static void
join(struct rails *q, int t, int s, int uplink)
{
	size_t at = (size_t)t * (size_t)q->n_servers + (size_t)s;
	int g = plane_of(q, uplink), from = q->open[q->first_open[g] + q->next[g]++];
	q->r->uplink[at] = uplink;
	q->r->from[at] = from;
	q->r->parent[at] = server_of(q, from);
}

/* Servers besides the root: those with most places come first. */
static int
order_servers(struct rails *q, int t)
{
	const int *places = q->r->places + (size_t)t * (size_t)q->n_servers;
	int n = 0, most = 0;
	for (int s = 0; s < q->n_servers; s++)
		most = places[s] > most ? places[s] : most;
	/* There are few numbers of places besides 1. */
	for (int k = most, less; k > 0; k = less) {
		less = 0;
		for (int s = 0; s < q->n_servers; s++) {
			if (places[s] == k && s != q->root[t])
				q->queue[n++] = s;
			less = places[s] < k && places[s] > less ? places[s] : less;
		}
	}
	return n;
}

/* The first server of the order joins that can; again and again. False: none can. */
static bool
join_all(struct rails *q, int t)
{
	int n_planes = q->r->n_planes, n = order_servers(q, t);
	memset(q->n_open, 0, (size_t)n_planes * sizeof *q->n_open);
	memset(q->next, 0, (size_t)n_planes * sizeof *q->next);
	memset(q->first_open, 0, (size_t)n_planes * sizeof *q->first_open);
	memset(q->first_at, 0, (size_t)(q->n_servers + 1) * sizeof *q->first_at);
	for (int i = q->first_of_tree[t]; i < q->first_of_tree[t + 1]; i++) {
		const struct place *x = &q->place[q->of_tree[i]];
		int g = plane_of(q, x->uplink);
		q->first_at[server_of(q, x->uplink) + 1]++;
		if (x->sign > 0 && g + 1 < n_planes)
			q->first_open[g + 1]++;
	}
	q->first_at[0] = q->first_of_tree[t];
	for (int s = 0; s < q->n_servers; s++)
		q->first_at[s + 1] += q->first_at[s];
	for (int g = 1; g < n_planes; g++)
		q->first_open[g] += q->first_open[g - 1];
	open_places(q, q->root[t]);
	size_t root = (size_t)t * (size_t)q->n_servers + (size_t)q->root[t];
	q->r->parent[root] = -1;
	q->r->uplink[root] = uplink_in(q, q->root[t]);
	for (int begin = 0, i = 0; begin < n; i = begin) {
		int uplink = -1, s = -1;
		for (; i < n && uplink < 0; i++) {
			s = q->queue[i];
			uplink = uplink_in(q, s);
			uplink = q->next[plane_of(q, uplink)] < q->n_open[plane_of(q, uplink)] ? uplink : -1;
		}
		if (uplink < 0)
			return false;
		join(q, t, s, uplink);
		open_places(q, s);
		/* It is taken out; those before it move on. */
		memmove(q->queue + begin + 1, q->queue + begin, (size_t)(i - 1 - begin) * sizeof *q->queue);
		begin++;
	}
	return true;
}

static Status
new_rails(struct rails *q)
{
	Ctx *ctx = q->r->ctx;
	size_t n = (size_t)q->r->n_trees, places = 2 * n * (size_t)(q->n_servers - 1);
	size_t planes = (size_t)q->r->n_planes;
	TRY(TEMP(ctx, q->first, q->n_servers + 1));
	TRY(TEMP(ctx, q->place, places));
	TRY(TEMP(ctx, q->first_of_tree, n + 1));
	TRY(TEMP(ctx, q->of_tree, places));
	TRY(TEMP(ctx, q->root, n));
	TRY(TEMP(ctx, q->balance, n * planes));
	TRY(TEMP(ctx, q->global, planes));
	TRY(TEMP(ctx, q->first_open, planes));
	TRY(TEMP(ctx, q->n_open, planes));
	TRY(TEMP(ctx, q->next, planes));
	TRY(TEMP(ctx, q->open, q->n_servers));
	TRY(TEMP(ctx, q->first_at, q->n_servers + 1));
	return TEMP(ctx, q->queue, q->n_servers);
}

Status
cluster_over_rails(struct rail_trees *r, bool *good)
{
	struct rails q = { .r = r, .n_servers = r->c->n_servers };
	TRY(new_rails(&q));
	*good = true;
	add_places(&q, good);
	if (*good) {
		list_by_tree(&q);
		repair(&q);
		*good = q.off == 0;
	}
	for (int t = 0; t < r->n_trees && *good; t++)
		*good = join_all(&q, t);
	r->work += q.looks + q.n_places;
	return OK;
}
