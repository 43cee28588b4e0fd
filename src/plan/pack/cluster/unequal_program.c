/* Where rails miss a GPU here and there, lengths of hubs and pieces for types of servers, from a linear program:
 *
 *     maximise    sum of servers(H) l(H, a)                     l: length of the hub of uplink a of a server of type H
 *     such that   sum over a of e(H, T, a) = sum of l(H, a) over uplinks a that T has no like of  for all types H, T
 *                 what enters and leaves over uplink b of T <= its capacity
 *
 * where trees of the hub of uplink a enter servers of T over its like uplink (unequal_like_uplink); where it has none
 * they enter over other uplinks, e(H, T, a) of them over the like of a. Where each rank is a hub, all have one length:
 * l(H, a) is that times the ranks whose own uplink is a, and some may have none. The optimum is a basis, which is
 * solved in fractions if it is small, and else rounded to whole weights. */
#include "base/array.h"
#include "base/linear.h"
#include "plan/pack/cluster/unequal_pieces.h"
#include "plan/pack/lp/glpk.h"

#include <math.h>
#include <string.h>

enum {
	MOST_COLUMNS = 1 << 15,
	MOST_EXACT = 300,	/* columns of a basis that is solved in fractions: 0.1 s */
	LENGTH_BITS = 46
};

struct type {
	int server, n_servers;	/* the first of it */
	int first_uplink[2], n_uplinks[2];	/* of that server */
	int first_row[2];	/* of its uplinks; of an allreduce those of both sides are the same */
	int column;		/* the first of l */
};

/* e(H, T, a): the column of the first, and the row of their sum; -1: none are needed. */
struct extra {
	int column, row;
};

struct program {
	struct plan *p;
	int n_types, n_columns, n_rows, n_limits;	/* rows of uplinks come first; the others are sums of 0 */
	struct type *type;
	struct extra *extra;	/* [H * n_types + T] */
	int *order, *first_hub;	/* hubs by server */
	int64_t *limit, *worth;	/* of rows of uplinks; of columns */
	int n_entries, capacity[3];	/* entries from 1, by column */
	int *row, *column;
	double *value;
	int64_t *sum;		/* of each row: entries of the current column */
	int n_touched, *touched;
	/* The optimum: which rows are tight, which columns are in the basis. */
	bool solved;
	bool *tight, *basic;
	double rate, *solution;
	int64_t *weight;	/* of columns, in whole weights */
};

/* The like uplink of type T, counted from its first; -1: none. */
static int
like(const struct program *q, int h, int a, int t)
{
	const struct plan *p = q->p;
	const struct type *from = &q->type[h], *to = &q->type[t];
	int uplink = a < 0 ? -1 : unequal_like_uplink(p, from->first_uplink[p->hub_side] + a, from->server, to->server);
	return uplink < 0 ? -1 : uplink - to->first_uplink[p->leaf_side];
}

/* Servers of type T besides one of type H. */
static int
others(const struct program *q, int h, int t)
{
	return q->type[t].n_servers - (h == t);
}

/* The own uplink of a hub, counted from the first of its server; -1: none. */
static int
own_uplink(const struct plan *p, const struct hub *hub)
{
	return hub->uplink < 0 ? -1 : hub->uplink - p->c.server[hub->server].first_uplink[p->hub_side];
}

static void
measure_types(struct program *q)
{
	const struct plan *p = q->p;
	const Cluster *c = &p->c;
	for (int s = c->n_servers - 1; s >= 0; s--) {
		const struct cluster_server *server = &c->server[s];
		struct type *type = &q->type[server->type];
		*type = (struct type){ .server = s, .n_servers = type->n_servers + 1,
		    .first_uplink = { server->first_uplink[0], server->first_uplink[1] },
		    .n_uplinks = { server->n_uplinks[0], server->n_uplinks[1] } };
	}
	for (int t = 0; t < q->n_types; t++) {
		struct type *type = &q->type[t];
		bool both = p->coll == ALLREDUCE;
		type->first_row[0] = q->n_rows;
		type->first_row[1] = q->n_rows + (both ? 0 : type->n_uplinks[0]);
		q->n_rows += type->n_uplinks[0] + (both ? 0 : type->n_uplinks[1]);
		type->column = both ? q->n_columns : 0;
		q->n_columns += both ? type->n_uplinks[0] : 0;
	}
	q->n_columns += p->coll == ALLREDUCE ? 0 : 1;
	q->n_limits = q->n_rows;
}

/* Hubs by server: those of server s are order[first_hub[s]] and so on. */
static Status
order_hubs(struct program *q)
{
	const struct plan *p = q->p;
	TRY(TEMP(p->ctx, q->order, p->n_hubs));
	TRY(TEMP(p->ctx, q->first_hub, p->c.n_servers + 1));
	for (int h = 0; h < p->n_hubs; h++)
		q->first_hub[p->hub[h].server + 1]++;
	for (int s = 0; s < p->c.n_servers; s++)
		q->first_hub[s + 1] += q->first_hub[s];
	for (int h = p->n_hubs - 1; h >= 0; h--)
		q->order[--q->first_hub[p->hub[h].server + 1]] = h;
	for (int s = 0; s < p->c.n_servers; s++)
		q->first_hub[s] = q->first_hub[s + 1];
	q->first_hub[p->c.n_servers] = p->n_hubs;
	return OK;
}

/* Has some hub of H no like uplink in T? */
static bool
is_missing(const struct program *q, int h, int t)
{
	const struct plan *p = q->p;
	int s = q->type[h].server;
	bool missing = false;
	for (int i = q->first_hub[s]; i < q->first_hub[s + 1] && !missing; i++)
		missing = like(q, h, own_uplink(p, &p->hub[q->order[i]]), t) < 0;
	return missing && others(q, h, t) > 0;
}

static Status
lay_out(struct program *q)
{
	const struct plan *p = q->p;
	int n = q->n_types = p->c.n_types;
	TRY(TEMP(p->ctx, q->type, n));
	TRY(TEMP(p->ctx, q->extra, (size_t)n * (size_t)n));
	measure_types(q);
	TRY(order_hubs(q));
	for (int h = 0; h < n; h++)
		for (int t = 0; t < n && q->n_columns <= MOST_COLUMNS; t++) {
			bool missing = is_missing(q, h, t);
			q->extra[h * n + t] = (struct extra){ missing ? q->n_columns : -1, q->n_rows };
			q->n_columns += missing ? q->type[h].n_uplinks[p->hub_side] : 0;
			q->n_rows += missing;
		}
	return OK;
}

/* ---- the linear program ---- */

static void
add(struct program *q, int row, int64_t value)
{
	if (q->sum[row] == 0)
		q->touched[q->n_touched++] = row;
	q->sum[row] += value;
}

static Status
room_for_entry(struct program *q, int n)
{
	Ctx *ctx = q->p->ctx;
	TRY(GROW_TEMP(ctx, q->row, n, q->capacity[0]));
	TRY(GROW_TEMP(ctx, q->column, n, q->capacity[1]));
	return GROW_TEMP(ctx, q->value, n, q->capacity[2]);
}

static Status
put_column(struct program *q, int column, int64_t worth)
{
	q->worth[column] = worth;
	for (int i = 0; i < q->n_touched; i++) {
		int n = ++q->n_entries, r = q->touched[i];
		TRY(room_for_entry(q, n));
		q->row[n] = r + 1;
		q->column[n] = column + 1;
		q->value[n] = (double)q->sum[r];
		q->sum[r] = 0;
	}
	q->n_touched = 0;
	return OK;
}

/* What trees from uplink a of type H put on it, and on the like uplink of a server of T. */
static void
add_loads(struct program *q, int h, int a, int t)
{
	const struct plan *p = q->p;
	int b = like(q, h, a, t);
	if (b < 0 || others(q, h, t) == 0)
		return;
	add(q, q->type[h].first_row[p->hub_side] + a, others(q, h, t));
	add(q, q->type[t].first_row[p->leaf_side] + b, others(q, t, h));
}

/* The same of a hub of type H, whose own uplink this is; -1: none. */
static void
add_hub(struct program *q, int h, int a)
{
	for (int t = 0; t < q->n_types; t++) {
		const struct extra *extra = &q->extra[h * q->n_types + t];
		add_loads(q, h, a, t);
		if (extra->column >= 0 && like(q, h, a, t) < 0)
			add(q, extra->row, -1);
	}
}

/* Columns of l: of each uplink, or one. */
static Status
put_lengths(struct program *q)
{
	const struct plan *p = q->p;
	bool one = p->coll != ALLREDUCE;
	for (int h = 0; h < q->n_types; h++) {
		const struct type *from = &q->type[h];
		int s = from->server;
		for (int a = 0; a < from->n_uplinks[0] && !one; a++) {
			add_hub(q, h, a);
			TRY(put_column(q, from->column + a, from->n_servers));
		}
		for (int i = q->first_hub[s]; i < q->first_hub[s + 1] && one; i++)
			add_hub(q, h, own_uplink(p, &p->hub[q->order[i]]));
	}
	return one ? put_column(q, 0, p->n_hubs) : OK;
}

/* Rows of type H, and columns of e. */
static Status
put_type(struct program *q, int h)
{
	const struct plan *p = q->p;
	const struct type *from = &q->type[h];
	for (int side = 0; side < 2; side++)
		for (int a = 0; a < from->n_uplinks[side]; a++)
			q->limit[from->first_row[side] + a] = p->c.uplink[side][from->first_uplink[side] + a].capacity;
	for (int t = 0; t < q->n_types; t++) {
		const struct extra *extra = &q->extra[h * q->n_types + t];
		for (int a = 0; a < from->n_uplinks[p->hub_side] && extra->column >= 0; a++) {
			add_loads(q, h, a, t);
			if (like(q, h, a, t) >= 0)
				add(q, extra->row, 1);
			TRY(put_column(q, extra->column + a, 0));
		}
	}
	return OK;
}

static Status
put_all(struct program *q)
{
	Ctx *ctx = q->p->ctx;
	TRY(TEMP(ctx, q->limit, q->n_limits));
	TRY(TEMP(ctx, q->worth, q->n_columns));
	TRY(TEMP(ctx, q->sum, q->n_rows));
	TRY(TEMP(ctx, q->touched, q->n_rows));
	TRY(TEMP(ctx, q->tight, q->n_rows));
	TRY(TEMP(ctx, q->basic, q->n_columns));
	TRY(TEMP(ctx, q->solution, q->n_columns));
	TRY(TEMP(ctx, q->weight, q->n_columns));
	TRY(room_for_entry(q, 0));
	TRY(put_lengths(q));
	for (int h = 0; h < q->n_types; h++)
		TRY(put_type(q, h));
	return OK;
}

static void
load(struct program *q, glp_prob *lp)
{
	glp_set_obj_dir(lp, GLP_MAX);
	glp_add_rows(lp, q->n_rows);
	glp_add_cols(lp, q->n_columns);
	for (int r = 0; r < q->n_rows; r++)
		glp_set_row_bnds(lp, r + 1, r < q->n_limits ? GLP_UP : GLP_FX, 0,
		    r < q->n_limits ? (double)q->limit[r] : 0);
	for (int i = 0; i < q->n_columns; i++) {
		/* Without entries: no uplink has a like one. */
		glp_set_col_bnds(lp, i + 1, GLP_FX, 0, 0);
		glp_set_obj_coef(lp, i + 1, (double)q->worth[i]);
	}
	for (int i = 1; i <= q->n_entries; i++)
		glp_set_col_bnds(lp, q->column[i], GLP_LO, 0, 0);
	glp_load_matrix(lp, q->n_entries, q->row, q->column, q->value);
}

static void
solve(void *of)
{
	struct program *q = of;
	glp_prob *lp = glp_create_prob();
	glp_smcp how;
	glp_init_smcp(&how);
	how.msg_lev = GLP_MSG_OFF;
	how.it_lim = LIMIT_LP_STEPS;
	how.tm_lim = progress(q->p->ctx, "shares of networks: %d rows, %d columns", q->n_rows, q->n_columns);
	how.tm_lim = how.tm_lim < 1 ? 1 : how.tm_lim;
	load(q, lp);
	q->solved = glp_simplex(lp, &how) == 0 && glp_get_status(lp) == GLP_OPT;
	q->rate = q->solved ? glp_get_obj_val(lp) : 0;
	for (int i = 0; i < q->n_columns && q->solved; i++) {
		q->solution[i] = glp_get_col_prim(lp, i + 1);
		q->basic[i] = glp_get_col_stat(lp, i + 1) == GLP_BS;
	}
	for (int r = 0; r < q->n_rows && q->solved; r++)
		q->tight[r] = glp_get_row_stat(lp, r + 1) != GLP_BS;
	glp_delete_prob(lp);
}

/* ---- whole weights ---- */

/* So small a part of the rate is rounding. */
static void
round_weights(struct program *q)
{
	for (int i = 0; i < q->n_columns; i++) {
		double part = q->solution[i] / q->rate;
		q->weight[i] = part < ldexp(1, 12 - LENGTH_BITS) ? 0 : (int64_t)llround(ldexp(part, LENGTH_BITS));
	}
}

/* Fractions in whole units of the least of them; false: too many digits. */
static bool
clear_denominators(struct program *q, const Frac *x, const int *place)
{
	Wide common = 1, sum = 0;
	for (int i = 0; i < q->n_columns; i++) {
		if (place[i] < 0)
			continue;
		const Frac *f = &x[place[i]];
		common = common / gcd64((int64_t)common, f->den) * f->den;
		if (common >> LENGTH_BITS != 0)
			return false;
	}
	for (int i = 0; i < q->n_columns; i++) {
		Wide weight = place[i] < 0 ? 0 : x[place[i]].num * (common / x[place[i]].den);
		sum += weight * (q->worth[i] ? q->worth[i] : 1);
		if (weight < 0 || weight >> LENGTH_BITS != 0 || sum >> LENGTH_BITS != 0)
			return false;
		q->weight[i] = (int64_t)weight;
	}
	return true;
}

/* The basis once more, in fractions. *exact: false: it is large, or they have too many digits. */
static Status
solve_exactly(struct program *q, bool *exact)
{
	Ctx *ctx = q->p->ctx;
	int n = 0, n_tight = 0, *place, *row_place;
	int64_t *matrix, *spare;
	Frac *x;
	*exact = false;
	TRY(TEMP(ctx, place, q->n_columns));
	TRY(TEMP(ctx, row_place, q->n_rows));
	for (int i = 0; i < q->n_columns; i++)
		place[i] = q->basic[i] ? n++ : -1;
	for (int r = 0; r < q->n_rows; r++)
		row_place[r] = q->tight[r] ? n_tight++ : -1;
	if (n != n_tight || n == 0 || n > MOST_EXACT)
		return OK;
	TRY(TEMP(ctx, matrix, (size_t)n * (size_t)(n + 1)));
	TRY(TEMP(ctx, spare, linear_spare(n)));
	TRY(TEMP(ctx, x, n));
	for (int i = 1; i <= q->n_entries; i++) {
		int r = row_place[q->row[i] - 1], c = place[q->column[i] - 1];
		if (r >= 0 && c >= 0)
			matrix[r * (n + 1) + c] = (int64_t)q->value[i];
	}
	for (int r = 0; r < q->n_limits; r++)
		if (row_place[r] >= 0)
			matrix[row_place[r] * (n + 1) + n] = q->limit[r];
	*exact = linear_solve(matrix, spare, n, x) && clear_denominators(q, x, place);
	return OK;
}

/* ---- trees ---- */

/* Hubs whose trees have no weight stay, without pieces. */
static Status
set_lengths(struct program *q)
{
	struct plan *p = q->p;
	struct hub *hub;
	TRY(TEMP(p->ctx, hub, p->n_hubs));
	memcpy(hub, p->hub, (size_t)p->n_hubs * sizeof *hub);
	for (int h = 0; h < p->n_hubs; h++) {
		const struct type *type = &q->type[p->c.server[hub[h].server].type];
		hub[h].length = q->weight[type->column + (p->coll == ALLREDUCE ? own_uplink(p, &hub[h]) : 0)];
	}
	p->hub = hub;
	return OK;
}

/* Hubs of one server enter server s. The last piece takes what rounding leaves. */
static Status
enter(struct program *q, int own, int s)
{
	struct plan *p = q->p;
	int h = p->c.server[own].type, t = p->c.server[s].type;
	const struct extra *extra = &q->extra[h * q->n_types + t];
	int a = -1, last = q->type[h].n_uplinks[p->hub_side] - 1;
	int64_t left = 0;
	while (extra->column >= 0 && last > 0 && q->weight[extra->column + last] == 0)
		last--;
	for (int i = q->first_hub[own]; i < q->first_hub[own + 1]; i++) {
		const struct hub *hub = &p->hub[q->order[i]];
		int uplink = hub->uplink < 0 ? -1 : unequal_like_uplink(p, hub->uplink, own, s);
		for (int64_t rest = hub->length, part; rest > 0; rest -= part, left -= uplink < 0 ? part : 0) {
			int out = hub->uplink;
			while (uplink < 0 && left <= 0 && a < last)
				left = q->weight[extra->column + ++a];
			part = uplink >= 0 || a == last || rest < left ? rest : left;
			if (uplink < 0)
				out = p->c.server[own].first_uplink[p->hub_side] + a;
			int in = uplink < 0 ? unequal_like_uplink(p, out, own, s) : uplink;
			TRY(unequal_add_piece(p, q->order[i], s, in, out, part));
		}
	}
	return OK;
}

static Status
make_pieces(struct program *q)
{
	struct plan *p = q->p;
	size_t n = (size_t)p->n_hubs * (size_t)p->c.n_servers;
	p->n_pieces = 0;
	TRY(TEMP(p->ctx, p->first, n));
	TRY(TEMP(p->ctx, p->last, n));
	memset(p->first, -1, n * sizeof *p->first);
	memset(p->last, -1, n * sizeof *p->last);
	for (int own = 0; own < p->c.n_servers; own++)
		for (int s = 0; s < p->c.n_servers; s++)
			if (s != own)
				TRY(enter(q, own, s));
	return OK;
}

Status
unequal_by_program(struct plan *p, bool *good)
{
	struct program q = { .p = p };
	bool exact;
	*good = false;
	TRY(lay_out(&q));
	if (q.n_columns > MOST_COLUMNS)
		return OK;
	TRY(put_all(&q));
	TRY(lp_guard(p->ctx, solve, &q));
	lp_release();
	if (!q.solved || q.rate <= 0)
		return OK;
	TRY(solve_exactly(&q, &exact));
	if (!exact)
		round_weights(&q);
	struct plan other = *p;
	q.p = &other;
	other.piece = NULL;
	other.piece_room = 0;
	TRY(set_lengths(&q));
	TRY(make_pieces(&q));
	*p = other;
	*good = true;
	return OK;
}
