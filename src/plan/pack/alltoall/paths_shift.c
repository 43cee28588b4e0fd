/* Paths at a bound that is known, from paths whose fullest links are a little above it. Each link may carry what the
 * bound allows; a link with more is rid of it by a chain of shifts, each of which moves a part of a demand to another
 * path:
 *
 *     a -> b carries too much             part of demand 1 leaves it for a path over c -> d, which is full
 *     c -> d carries as much as before    as much of demand 2 leaves it for a path over e -> f, which has room
 *
 * The shortest chain is found by a search over full links (Ford and Fulkerson 1956, with paths in place of links).
 * Other paths of a demand are the cheapest where full links are dear; where that finds no chain, where one costs more
 * than all links with room. First whole demands move, until no link has more than what the bound allows, rounded up;
 * then parts of some, until none has more than that. This need not end at the bound, as chains are not all that can be
 * moved: then the linear program goes on.
 * Under a group (paths.h) links are rows, and only demands that move weigh as much as a whole one. */
#include "base/array.h"
#include "plan/pack/alltoall/paths.h"

#include <math.h>
#include <string.h>

enum { MOST_USES = 1 << 24, SEARCHES = 8 };	/* of links by paths; searches for each source */

#define TRIFLE 1e-10		/* of a path: no load */
#define HOP ((int64_t)16)	/* prices: of a link with room, and of one to a rank besides; */
#define FULL (5 * HOP)	/* of a full one: less than a hop more between ranks, there and back; */
#define FULLER ((int64_t)1 << 24)	/* more than any path */
#define TAKEN ((int64_t)1 << 40)	/* and of one that the search has been at */

/* What one path carries of its demand. */
struct part {
	int demand;
	double x;
	struct path path;
};

/* A part uses a link; the next one that does. */
struct use {
	int part, next;
};

/* A full row that is relieved by moving a part of a demand to the path. */
struct step {
	int row, before;	/* step whose new path needs the room; -1: none */
	int part;		/* of the step before, which moves to `path` over this row */
	struct path path;
};

struct shift {
	struct paths *p;
	double *limit, *load;	/* of rows, in paths */
	double least;		/* load that moves */
	struct part *part;
	int n_parts, parts_room;
	int *first;		/* use of each row; -1: none */
	struct use *use;
	int n_uses, uses_room;
	int *more;		/* of each row: how much more often a path is on it than the one that a part leaves */
	int64_t left;		/* searches */

	/* The search. */
	struct step *step;	/* the first, one for each other row, and the last */
	int n_steps;
	bool *taken;
	int64_t full, *price;	/* of a full row; of each link now */
};

static Status
use_links(struct shift *s, int part)
{
	const struct path *path = &s->part[part].path;
	for (int i = 0; i < path->n; i++) {
		int *first = &s->first[s->p->row[path->link[i]]];
		TRY(GROW_TEMP(s->p->ctx, s->use, s->n_uses, s->uses_room));
		s->use[s->n_uses] = (struct use){ part, *first };
		*first = s->n_uses++;
	}
	return OK;
}

static Status
add_part(struct shift *s, int demand, double x, const struct path *path)
{
	TRY(GROW_TEMP(s->p->ctx, s->part, s->n_parts, s->parts_room));
	s->part[s->n_parts] = (struct part){ demand, x, *path };
	return use_links(s, s->n_parts++);
}

static void
add_load(struct shift *s, const struct path *path, double x)
{
	for (int i = 0; i < path->n; i++)
		s->load[s->p->row[path->link[i]]] += x;
}

static double
room(const struct shift *s, int row)
{
	return s->limit[row] - s->load[row];
}

static double
weight_of(const struct shift *s, int part)
{
	return s->p->weight[s->part[part].demand];
}

/* ---- the search for a chain ---- */

static int64_t
price_of(const struct shift *s, int l)
{
	const Topology *topo = s->p->topo;
	int row = s->p->row[l];
	if (s->taken[row])
		return TAKEN;
	if (room(s, row) < s->least)
		return s->full;
	return HOP + (topo->link[l].to < topo->n_ranks ? HOP : 0) + (int64_t)(s->load[row] / s->limit[row] * HOP);
}

/* The path of the last search to a rank, in the scratch arena. n: 0: a route on it is too long. */
static Status
take_path(const struct shift *s, int to, struct path *out)
{
	const struct paths *p = s->p;
	int n = 0, between = 0, *link;
	*out = (struct path){ 0 };
	for (int v = to; p->enter[v] >= 0; v = p->topo->link[p->enter[v]].from, n++) {
		between = v < p->n_ranks ? 1 : between + 1;
		if (between > LIMIT_ROUTE_LINKS)
			return OK;
	}
	TRY(TEMP(p->ctx, link, n));
	*out = (struct path){ n, link };
	for (int v = to; p->enter[v] >= 0; v = p->topo->link[p->enter[v]].from)
		link[--n] = p->enter[v];
	return OK;
}

static void
count_path(struct shift *s, const struct path *path, int by)
{
	for (int i = 0; i < path->n; i++)
		s->more[s->p->row[path->link[i]]] += by;
}

/* In s->more, until it is called with sign -1. */
static void
compare_paths(struct shift *s, const struct path *own, const struct path *path, int sign)
{
	count_path(s, path, sign);
	count_path(s, own, -sign);
}

/* What is full of what the path has and the part's own has not: a row; -1: nothing; -2: several, or a taken one. */
static int
full_row(struct shift *s, const struct path *own, const struct path *path)
{
	int full = -1;
	compare_paths(s, own, path, 1);
	for (int i = 0; i < path->n; i++) {
		int row = s->p->row[path->link[i]];
		if (s->more[row] > 0 && row != full
		    && (s->taken[row] || room(s, row) < s->more[row] * s->least))
			full = full == -1 && !s->taken[row] ? row : -2;
	}
	compare_paths(s, own, path, -1);
	return full;
}

/* The part leaves the row of step `at`. *end: its new path needs no room. */
static Status
try_part(struct shift *s, int at, int part, int to, bool *end)
{
	ArenaMark mark = arena_mark(&s->p->ctx->scratch);
	struct path path;
	TRY(take_path(s, to, &path));
	int full = path.n > 0 ? full_row(s, &s->part[part].path, &path) : -2;
	*end = full == -1;
	if (full == -2) {
		arena_release(&s->p->ctx->scratch, mark);
		return OK;
	}
	s->step[s->n_steps++] = (struct step){ full, at, part, path };
	if (full >= 0)
		s->taken[full] = true;
	return OK;
}

/* All parts over the row of step `at`. */
static Status
relieve(struct shift *s, int at, bool *end)
{
	struct paths *p = s->p;
	int searched = -1;
	for (int u = s->first[s->step[at].row]; u >= 0 && !*end; u = s->use[u].next) {
		const struct part *part = &s->part[s->use[u].part];
		if (part->x * weight_of(s, s->use[u].part) < s->least)
			continue;
		int from = paths_from_rank(p, part->demand), to = paths_to_rank(p, part->demand);
		if (from != searched) {
			if (s->left-- <= 0 || out_of_time(p->ctx, 10 * (int64_t)p->topo->n_links))
				return OK;
			for (int l = 0; l < p->topo->n_links; l++)
				s->price[l] = price_of(s, l);
			search_link_paths(&p->search, s->price, from, p->distance, p->enter);
			searched = from;
		}
		if (p->distance[to] < TAKEN)
			TRY(try_part(s, at, s->use[u].part, to, end));
	}
	return OK;
}

/* ---- shifts ---- */

/* How much load of a part may move to the path, at most `most`. */
static double
may_move(struct shift *s, const struct step *step, double most)
{
	const struct path *own = &s->part[step->part].path;
	most = fmin(most, s->part[step->part].x * weight_of(s, step->part));
	compare_paths(s, own, &step->path, 1);
	for (int i = 0; i < step->path.n; i++) {
		int row = s->p->row[step->path.link[i]];
		if (s->more[row] > 0)
			most = fmin(most, room(s, row) / s->more[row]);
	}
	compare_paths(s, own, &step->path, -1);
	return most;
}

static Status
move(struct shift *s, const struct step *step, double load)
{
	struct part *part = &s->part[step->part];
	double x = fmin(part->x, load / weight_of(s, step->part));
	add_load(s, &part->path, -load);
	add_load(s, &step->path, load);
	part->x -= x;
	return add_part(s, part->demand, x, &step->path);
}

/* The steps of a chain from its last one on, which makes room for the one before. *moved: some did. */
static Status
move_chain(struct shift *s, int last, bool *moved)
{
	int start = s->step[0].row;
	double most = s->least >= 1 ? 1 : fmin(1, -room(s, start));
	*moved = false;
	for (int i = last; s->step[i].before >= 0; i = s->step[i].before) {
		most = may_move(s, &s->step[i], most);
		if (most < s->least)
			return OK;
		TRY(move(s, &s->step[i], most));
		*moved = true;
	}
	return OK;
}

/* One chain from a row. *moved: there was one. */
static Status
shift_from(struct shift *s, int row, int64_t full, bool *moved)
{
	bool end = false;
	s->full = full;
	memset(s->taken, 0, (size_t)s->p->n_rows * sizeof *s->taken);
	s->step[0] = (struct step){ .row = row, .before = -1 };
	s->n_steps = 1;
	s->taken[row] = true;
	*moved = false;
	for (int at = 0; at < s->n_steps && !end; at++)
		TRY(relieve(s, at, &end));
	return end ? move_chain(s, s->n_steps - 1, moved) : OK;
}

/* Until no row has more than its limit. *done: none has. */
static Status
shift_all(struct shift *s, bool *done)
{
	*done = false;
	for (int row = 0; row < s->p->n_rows; row++)
		while (room(s, row) <= -s->least) {
			bool moved;
			TRY(shift_from(s, row, FULL, &moved));
			if (!moved)
				TRY(shift_from(s, row, FULLER, &moved));
			if (!moved)
				return OK;
		}
	*done = true;
	return OK;
}

/* ---- all of it ---- */

static Status
shift_new(struct shift *s, struct paths *p, int uses)
{
	*s = (struct shift){ .p = p, .left = (int64_t)SEARCHES * p->n_sources,
		.parts_room = p->n_demands + p->n_demands / 8, .uses_room = uses + uses / 8 };
	TRY(TEMP(p->ctx, s->part, s->parts_room));
	TRY(TEMP(p->ctx, s->use, s->uses_room));
	TRY(TEMP_EACH(p->ctx, p->n_rows, s->limit, s->load, s->first, s->more, s->taken));
	TRY(TEMP(p->ctx, s->price, p->topo->n_links));
	TRY(TEMP(p->ctx, s->step, p->n_rows + 2));
	memset(s->first, -1, (size_t)p->n_rows * sizeof *s->first);
	for (int d = 0; d < p->n_demands; d++) {
		if (!paths_has(p, d))
			continue;
		TRY(add_part(s, d, 1, &p->key[d]));
		add_load(s, &p->key[d], p->weight[d]);
	}
	return OK;
}

static int
count_parts(const struct shift *s)
{
	int n = 0;
	for (int i = 0; i < s->n_parts; i++)
		n += s->part[i].x >= TRIFLE;
	return n;
}

/* Parts as key paths and detours. */
static Status
keep_parts(struct shift *s)
{
	struct paths *p = s->p;
	bool *has_key;
	TRY(TEMP(p->ctx, has_key, p->n_demands));
	p->n_detours = 0;
	for (int i = 0; i < s->n_parts; i++) {
		const struct part *part = &s->part[i];
		if (part->x < TRIFLE)
			continue;
		if (!has_key[part->demand]) {
			has_key[part->demand] = true;
			p->key[part->demand] = part->path;
			continue;
		}
		TRY(GROW_TEMP(p->ctx, p->detour, p->n_detours, p->room));
		p->detour[p->n_detours++] = (struct detour){ .demand = part->demand, .x = part->x, .path = part->path };
	}
	return OK;
}

/* Limits of rows, rounded up or not, and shifts within them. */
static Status
shift_within(struct shift *s, bool whole, bool *done)
{
	const struct paths *p = s->p;
	s->least = whole ? 1 : TRIFLE;
	for (int i = 0; i < p->n_rows; i++) {
		double limit = p->known * p->capacity[i];
		s->limit[i] = whole ? ceil(limit - TRIFLE) : limit;
	}
	return shift_all(s, done);
}

static Status
shift(struct shift *s)
{
	struct paths *p = s->p;
	bool done;
	TRY(shift_within(s, true, &done));
	if (done)
		TRY(shift_within(s, false, &done));
	p->reached = done && count_parts(s) <= LIMIT_TREES;
	return p->reached ? keep_parts(s) : OK;
}

Status
paths_shift(struct paths *p)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	struct shift s;
	int64_t uses = 0;
	for (int d = 0; d < p->n_demands; d++)
		uses += p->key[d].n;
	if (p->known <= 0 || p->by_hops || uses > MOST_USES)
		return OK;
	TRY(shift_new(&s, p, (int)uses));
	TRY(shift(&s));
	if (!p->reached)
		arena_release(&p->ctx->scratch, mark);
	return OK;
}
