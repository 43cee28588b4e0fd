/* What a schedule of an alltoall takes for blocks of other lengths than one: the matrix that it was planned for.
 *
 * The time is that of its links alone: the most that one carries, over its capacity, where each block goes by the
 * shares of its trees. Nothing that forwards blocks takes less than
 *
 *     sum over pairs of bytes * distance / sum over links of capacity * length
 *
 * whatever lengths links have: bytes that go from rank i to rank j load links whose lengths add up to the distance of
 * i and j at least, and in time t links carry no more than capacity * t (the dual of the maximum concurrent flow). */
#include "graph/demand_cost.h"
#include "schedule/by_tree.h"

Status
sched_matrix_loads(Ctx *ctx, const char *label, const Schedule *sched, const int64_t *bytes, Frac *load)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct loading l;
	TRY(loads_begin(&l, ctx, label, sched));
	l.bytes = bytes;
	for (int t = 0; t < sched->n_segments; t++)
		TRY(loads_tree(&l, t));
	TRY(loads_end(&l, load));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
sched_matrix_time(Ctx *ctx, const char *label, const Schedule *sched, const int64_t *bytes, double *us)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = sched->topo;
	Frac *load;
	double most = 0;
	TRY(TEMP(ctx, load, topo->n_links));
	TRY(sched_matrix_loads(ctx, label, sched, bytes, load));
	for (int i = 0; i < topo->n_links; i++) {
		double time = frac_double(load[i]) / (double)topo->link[i].capacity;
		most = time > most ? time : most;
	}
	arena_release(&ctx->scratch, mark);
	*us = most * 1e6;
	return OK;
}

/* Sums stay below 2^126: bytes together are at most 2^53, distances less than 2^56, capacities less than 2^63. */
Status
sched_matrix_bound(Ctx *ctx, const char *label, const Topology *topo, const ByteMatrix *matrix, double *us)
{
	Wide need, room = 0;
	TRY(pairs_cost(ctx, label, topo, matrix->bytes, matrix->length, &need));
	for (int l = 0; l < topo->n_links; l++)
		room += (Wide)topo->link[l].capacity * matrix->length[l];
	*us = room > 0 ? (double)need / (double)room * 1e6 : 0;
	return OK;
}

Status
sched_add_matrix(Ctx *ctx, const int64_t *bytes, const int64_t *length, Schedule *sched)
{
	ByteMatrix *matrix;
	TRY(NEW(ctx, matrix, 1));
	*matrix = (ByteMatrix){ .bytes = bytes, .length = length };
	TRY(sched_matrix_time(ctx, sched->topo->name, sched, bytes, &matrix->time));
	TRY(sched_matrix_bound(ctx, sched->topo->name, sched->topo, matrix, &matrix->bound));
	/* Of both, only the last digits of doubles differ where they are equal. */
	matrix->bound = matrix->bound > matrix->time ? matrix->time : matrix->bound;
	sched->matrix = matrix;
	return OK;
}

static bool
states(double stated, double us)
{
	return stated >= us * (1 - MATRIX_ROUNDING) && stated <= us * (1 + MATRIX_ROUNDING);
}

Status
sched_check_matrix(Ctx *ctx, const char *label, const Schedule *sched)
{
	const ByteMatrix *matrix = sched->matrix;
	double time, bound;
	if (!matrix)
		return OK;
	TRY(sched_matrix_time(ctx, label, sched, matrix->bytes, &time));
	TRY(sched_matrix_bound(ctx, label, sched->topo, matrix, &bound));
	if (!states(matrix->time, time))
		return fail(ctx, UNVERIFIED, "%s: matrix.time: %.15g: the trees take %.15g us", label, matrix->time,
		    time);
	if (!states(matrix->bound, bound))
		return fail(ctx, UNVERIFIED, "%s: matrix.bound: %.15g: the lengths prove %.15g us", label,
		    matrix->bound, bound);
	if (bound > time * (1 + MATRIX_ROUNDING))
		return fail(ctx, UNVERIFIED, "%s: matrix.time: %.15g us is below the bound of %.15g us", label, time,
		    bound);
	return OK;
}
