/* Places of trees at the uplinks of a cluster's servers (few_trees.c has the idea). */
#include "base/array.h"
#include "plan/pack/cluster/places.h"
#include "plan/pack/cluster/rails.h"

#include <string.h>

void
places_set_kind(struct few *f, bool mixed)
{
	const Cluster *c = &f->c;
	f->mixed = mixed;
	f->n_planes = mixed ? 1 : f->n_rails;
	for (int k = 0; k < c->n_networks; k++)
		f->plane[k] = mixed ? 0 : f->rail[k];
	memset(f->servers, 0, (size_t)f->n_rails * sizeof *f->servers);
	for (int s = 0; s < c->n_servers; s++)
		for (int i = 0; i < c->server[s].n_uplinks[0]; i++) {
			int w = c->server[s].first_uplink[0] + i, before = 0;
			while (before < i && places_plane(f, w - i + before) != places_plane(f, w))
				before++;
			f->servers[places_plane(f, w)] += before == i;
		}
	for (int w = 0; w < c->n_uplinks[0] && !mixed; w++)
		f->alone[w] = f->servers[places_plane(f, w)] < 2;
	for (int g = 0; g < f->n_planes; g++)
		f->servers[g] = f->servers[g] < 2 ? 2 : f->servers[g];
}

Status
places_new(struct few *f)
{
	Ctx *ctx = f->ctx;
	size_t n = (size_t)f->most * (size_t)f->c.n_servers;
	TRY(TEMP(ctx, f->capacity, f->c.n_uplinks[0]));
	TRY(TEMP(ctx, f->room, f->c.n_uplinks[0]));
	TRY(TEMP(ctx, f->left, f->n_planes));
	TRY(TEMP(ctx, f->reach, f->n_planes));
	TRY(TEMP(ctx, f->servers, f->n_planes));
	TRY(TEMP(ctx, f->alone, f->c.n_uplinks[0]));
	TRY(TEMP(ctx, f->rail, f->c.n_networks));
	memcpy(f->rail, f->plane, (size_t)f->c.n_networks * sizeof *f->rail);
	f->n_rails = f->n_planes;
	TRY(TEMP(ctx, f->sum, (size_t)f->n_planes * (size_t)f->c.n_servers));
	TRY(TEMP(ctx, f->uplink, n));
	TRY(TEMP(ctx, f->partner, n));
	TRY(TEMP(ctx, f->parent, n));
	TRY(TEMP(ctx, f->from, n));
	TRY(TEMP(ctx, f->main, f->most));
	return TEMP(ctx, f->first_extra, f->most + 1);
}

/* The uplink of server s on this plane with most places; -1: none has one. */
static int
roomy_uplink(const struct few *f, int s, int plane)
{
	const struct cluster_server *server = &f->c.server[s];
	int best = -1;
	for (int i = 0; i < server->n_uplinks[0]; i++) {
		int w = server->first_uplink[0] + i;
		if (places_plane(f, w) == plane && f->room[w] > 0 && (best < 0 || f->room[w] > f->room[best]))
			best = w;
	}
	return best;
}

/* The uplink of server s with places on the plane that has most left. */
static int
other_uplink(const struct few *f, int s, int plane)
{
	const struct cluster_server *server = &f->c.server[s];
	int best = -1;
	for (int i = 0; i < server->n_uplinks[0]; i++) {
		int w = server->first_uplink[0] + i;
		if (places_plane(f, w) != plane && f->room[w] > 0
		    && (best < 0 || f->left[places_plane(f, w)] > f->left[places_plane(f, best)]))
			best = w;
	}
	return best;
}

static void
use_places(struct few *f, int uplink, int64_t n)
{
	int s = f->c.of[f->c.uplink[0][uplink].rank], plane = places_plane(f, uplink);
	int64_t *sum = &f->sum[(size_t)plane * (size_t)f->c.n_servers + (size_t)s];
	f->reach[plane] += (*sum - n > 0) - (*sum > 0);
	f->room[uplink] -= n;
	*sum -= n;
}

/* A place at each server. *others: of servers that are on another plane. False: some server has none. */
static bool
enter_servers(struct few *f, int t, int *others)
{
	int n = f->c.n_servers, *uplink = f->uplink + (size_t)t * (size_t)n, plane = f->main[t];
	*others = 0;
	for (int s = 0; s < n; s++) {
		uplink[s] = roomy_uplink(f, s, plane);
		if (uplink[s] < 0) {
			uplink[s] = other_uplink(f, s, plane);
			++*others;
		}
		if (uplink[s] < 0)
			return false;
		use_places(f, uplink[s], 1);
		int at = places_plane(f, uplink[s]);
		f->left[at] -= at == plane ? 1 : 2;
	}
	f->left[plane] -= n - *others - 2;
	return n - *others >= 2 && f->left[plane] >= 0;
}

static Status
take(struct few *f, int uplink, int64_t n)
{
	TRY(GROW_TEMP(f->ctx, f->extra, f->n_extras, f->extra_room));
	f->extra[f->n_extras++] = (struct extra){ uplink, (int)n };
	use_places(f, uplink, n);
	return OK;
}

/* The server on the tree's plane with most places there. -1: none has one. */
static int
roomy_server(struct few *f, int t, int plane, int64_t *most)
{
	int n = f->c.n_servers, best = -1;
	const int *uplink = f->uplink + (size_t)t * (size_t)n;
	*most = 0;
	for (int s = 0; s < n; s++) {
		int64_t room = f->sum[(size_t)plane * (size_t)n + (size_t)s];
		if (room <= *most || places_plane(f, uplink[s]) != f->main[t])
			continue;
		*most = room;
		best = s;
	}
	f->work += n;
	return best;
}

/* Hubs of a tree, those with most places first. */
static Status
take_hubs(struct few *f, int t, int64_t need, bool *good)
{
	int64_t most;
	while (need > 0 && *good) {
		int s = roomy_server(f, t, f->main[t], &most), w;
		*good = s >= 0 && (f->hubs == ANY_HUBS || most >= need);
		while (*good && need > 0 && (w = roomy_uplink(f, s, f->main[t])) >= 0) {
			int64_t n = f->room[w] < need ? f->room[w] : need;
			TRY(take(f, w, n));
			need -= n;
		}
	}
	return OK;
}

/* All of its edges leave one uplink. */
static Status
take_uplink(struct few *f, int t, int64_t need, bool *good)
{
	int n = f->c.n_servers, *uplink = f->uplink + (size_t)t * (size_t)n, best = -1;
	for (int w = 0; w < f->c.n_uplinks[0]; w++)
		if (places_plane(f, w) == f->main[t] && (best < 0 || f->room[w] > f->room[best]))
			best = w;
	int *at = best < 0 ? NULL : &uplink[f->c.of[f->c.uplink[0][best].rank]];
	*good = at && places_plane(f, *at) == f->main[t];
	if (!*good)
		return OK;
	use_places(f, *at, -1);
	*good = f->room[best] > need;
	use_places(f, best, 1);
	*at = best;
	return *good && need > 0 ? take(f, best, need) : OK;
}

/* Servers on other planes hang on an uplink there of some server of the tree: of its hub, if that has one. */
static void
join_others(struct few *f, int t, bool *good)
{
	int n = f->c.n_servers, *partner = f->partner + (size_t)t * (size_t)n;
	const int *uplink = f->uplink + (size_t)t * (size_t)n;
	int extra = f->first_extra[t];
	int hub = extra < f->n_extras ? f->c.of[f->c.uplink[0][f->extra[extra].uplink].rank] : -1;
	for (int s = 0; s < n && *good; s++) {
		int64_t most;
		int plane = places_plane(f, uplink[s]), from;
		partner[s] = -1;
		if (plane == f->main[t])
			continue;
		partner[s] = hub < 0 ? -1 : roomy_uplink(f, hub, plane);
		from = partner[s] < 0 ? roomy_server(f, t, plane, &most) : -1;
		if (from >= 0)
			partner[s] = roomy_uplink(f, from, plane);
		*good = partner[s] >= 0;
		if (*good)
			use_places(f, partner[s], 1);
	}
}

static Status
finish_tree(struct few *f, int t, int others, bool *good)
{
	int64_t need = f->c.n_servers - others - 2;
	f->first_extra[t] = f->n_extras;
	TRY((f->hubs == ONE_WAY ? take_uplink : take_hubs)(f, t, need, good));
	if (*good)
		join_others(f, t, good);
	f->first_extra[t + 1] = f->n_extras;
	return OK;
}

/* The plane that reaches most servers, of those with places for a tree, and then that with most left. */
static int
widest_plane(const struct few *f)
{
	int best = -1;
	for (int g = 0; g < f->n_planes; g++) {
		if (f->left[g] < 2 * (int64_t)(f->reach[g] - 1))
			continue;
		if (best < 0 || f->reach[g] > f->reach[best]
		    || (f->reach[g] == f->reach[best] && f->left[g] > f->left[best]))
			best = g;
	}
	return best < 0 ? 0 : best;
}

/* What trees take from the capacity of uplinks. */
static void
take_capacity(struct few *f, int from, int to, int64_t weight)
{
	for (int t = from; t < to; t++) {
		for (int s = 0; s < f->c.n_servers; s++) {
			size_t at = (size_t)t * (size_t)f->c.n_servers + (size_t)s;
			f->capacity[f->uplink[at]] -= weight;
			if (f->partner[at] >= 0)
				f->capacity[f->partner[at]] -= weight;
		}
		for (int i = f->first_extra[t]; i < f->first_extra[t + 1]; i++)
			f->capacity[f->extra[i].uplink] -= weight * f->extra[i].n;
	}
}

/* The same where trees use all planes: edges for the places that they have at servers. */
static Status
join_places(struct few *f, int from, int to, int64_t weight, bool *good)
{
	int n = f->c.n_servers, *places;
	size_t first = (size_t)from * (size_t)n;
	TRY(TEMP(f->ctx, places, (size_t)(to - from) * (size_t)n));
	for (int t = from; t < to; t++) {
		int *of = places + (size_t)(t - from) * (size_t)n;
		for (int s = 0; s < n; s++)
			of[s] = 1;
		for (int i = f->first_extra[t]; i < f->first_extra[t + 1]; i++)
			of[f->c.of[f->c.uplink[0][f->extra[i].uplink].rank]] += f->extra[i].n;
	}
	for (int w = 0; w < f->c.n_uplinks[0]; w++)
		f->room[w] = f->capacity[w] / weight;
	struct rail_trees r = { .ctx = f->ctx, .c = &f->c, .n_planes = f->n_rails, .plane = f->rail,
		.n_trees = to - from, .places = places, .room = f->room, .parent = f->parent + first,
		.from = f->from + first, .uplink = f->uplink + first };
	TRY(cluster_over_rails(&r, good));
	f->work += r.work;
	for (int w = 0; w < f->c.n_uplinks[0] && *good; w++)
		f->capacity[w] = f->capacity[w] % weight + f->room[w] * weight;
	return OK;
}

/* Trees `from` to `to` of one weight in what capacity is left, which they take. */
static Status
place(struct few *f, int from, int to, int64_t weight, bool *good)
{
	int64_t sum = 0;
	int *others;
	TRY(TEMP(f->ctx, others, to - from + 1));
	size_t servers = (size_t)f->c.n_servers;
	memset(f->left, 0, (size_t)f->n_planes * sizeof *f->left);
	memset(f->reach, 0, (size_t)f->n_planes * sizeof *f->reach);
	memset(f->sum, 0, (size_t)f->n_planes * servers * sizeof *f->sum);
	for (int w = 0; w < f->c.n_uplinks[0]; w++) {
		f->room[w] = 0;
		use_places(f, w, -(f->capacity[w] / weight));
		f->left[places_plane(f, w)] += f->room[w];
		sum += f->room[w];
	}
	*good = sum >= 2 * (int64_t)(f->c.n_servers - 1) * (to - from);
	for (int t = from; t < to && *good; t++) {
		f->main[t] = widest_plane(f);
		*good = enter_servers(f, t, &others[t - from]);
		if (*good && f->hubs != ANY_HUBS)
			TRY(finish_tree(f, t, others[t - from], good));
	}
	for (int t = from; t < to && *good && f->hubs == ANY_HUBS; t++)
		TRY(finish_tree(f, t, others[t - from], good));
	if (*good && f->mixed)
		TRY(join_places(f, from, to, weight, good));
	else if (*good)
		take_capacity(f, from, to, weight);
	f->work += (int64_t)f->c.n_uplinks[0] + 2 * (int64_t)f->c.n_servers * (to - from);
	return OK;
}

Status
places_take(struct few *f, const struct choice *choice, bool *good)
{
	f->extra = NULL;
	f->n_extras = f->extra_room = 0;
	for (int w = 0; w < f->c.n_uplinks[0]; w++) {
		Wide room = (Wide)f->c.uplink[0][w].capacity * choice->scale / choice->unit;
		f->capacity[w] = room >> 60 ? (int64_t)1 << 60 : f->mixed && f->alone[w] ? 0 : (int64_t)room;
	}
	TRY(place(f, 0, choice->p, choice->first, good));
	if (*good && choice->q > 0)
		TRY(place(f, choice->p, choice->p + choice->q, choice->second, good));
	return OK;
}
