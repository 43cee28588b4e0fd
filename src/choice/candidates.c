/* The candidates of a job: each row of plan/algorithm.c that serves the collective, with the options that it obeys.
 *
 * What options are worth trying. A radix is a trade of steps against messages in a step: small ones, and powers of two.
 * A hierarchy is what the machine suggests, and for few ranks one of all divisions into two layers. Trees are planned
 * without limits, for the rate; as shallow as there are any, for the latency, and each depth in between; and with
 * fewer of them, since a GPU sends a limited number of steps at once. */
#include "choice/candidates.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

enum {
	DIVIDED_RANKS = 64,
	KEPT_HOPS = 1 << 23	/* of all candidates together, some 300 bytes each: no more are added beyond */
};

struct list {
	Ctx *ctx;
	const Job *job;
	JobShared shared;
	KnownPlans known[2];
	bool all;		/* algorithms that were not asked for, which are to be planned soon */
	Choices *out;
	int64_t n_hops;		/* of all candidates */
	Error first;		/* of candidates that cannot be had: the first */
};

static void
name_candidate(Candidate *c)
{
	const Ask *ask = &c->job.ask;
	int n = snprintf(c->name, sizeof c->name, "%s", c->job.algorithm->name);
	if (ask->radix)
		snprintf(c->name + n, sizeof c->name - (size_t)n, ", radix %d", ask->radix);
	else if (ask->layers.n)
		snprintf(c->name + n, sizeof c->name - (size_t)n, ", %.40s", hierarchy_text(&ask->layers).text);
	else if (ask->max_trees)
		snprintf(c->name + n, sizeof c->name - (size_t)n, ", %d", ask->max_trees);
	if (ask->max_depth) {
		n = (int)strlen(c->name);
		snprintf(c->name + n, sizeof c->name - (size_t)n, ", depth %d", ask->max_depth);
	}
}

/* ---- the same schedule ---- */

static bool
same_schedule(const Schedule *a, const Schedule *b)
{
	if (a->n_segments != b->n_segments || a->n_in_trees || b->n_in_trees)
		return false;
	for (int s = 0; s < a->n_segments; s++) {
		const Segment *x = &a->segment[s], *y = &b->segment[s];
		if (frac_cmp(x->length, y->length) != 0 || x->n_to != y->n_to || x->tree.n_up != y->tree.n_up
		    || x->tree.n_down != y->tree.n_down || !tree_same_edges(x->tree.up, y->tree.up, x->tree.n_up)
		    || !tree_same_edges(x->tree.down, y->tree.down, x->tree.n_down))
			return false;
	}
	return true;
}

/* ---- one candidate ---- */

static Status
plan_candidate(struct list *l, Candidate *c)
{
	Ctx *ctx = l->ctx;
	Schedule *sched;
	TRY(job_plan(ctx, &c->job, &l->shared, &c->plan));
	TRY(job_build(ctx, &c->job, &c->plan, &sched));
	c->sched = sched;
	c->trees = (int)sched_trees(sched);
	TRY(sched_depth(ctx, sched, &c->depth));
	c->rate = sched->achieved;
	for (int i = 0; i < l->out->n; i++)
		if (same_schedule(l->out->candidate[i].sched, sched))
			return INFEASIBLE;
	return sim_prepare_any(ctx, sched, &c->sim);
}

/* Adds it, if it can be had, and is not there yet. *added: whether it was. */
static Status
try_candidate(struct list *l, const Algorithm *row, const Ask *ask, bool *added)
{
	Ctx *ctx = l->ctx;
	ArenaMark scratch = arena_mark(&ctx->scratch);
	Candidate *c = &l->out->candidate[l->out->n];
	*added = false;
	if (l->out->n == CANDIDATES_MOST || l->n_hops >= KEPT_HOPS)
		return OK;
	*c = (Candidate){ .job = *l->job };
	c->job.ask = *ask;
	c->job.algorithm = row;
	c->job.ask.algorithm = row == algorithm_row(0) ? NULL : row->name;
	name_candidate(c);
	l->shared.soon = l->all && (row != l->job->algorithm || ask->max_depth != l->job->ask.max_depth);
	Status status = plan_candidate(l, c);
	arena_release(&ctx->scratch, scratch);
	if (status == INFEASIBLE || status == LIMIT) {
		if (l->first.status == OK)
			l->first = ctx->error;
		ctx->error = (Error){ .status = OK };
		return OK;
	}
	TRY(status);
	l->out->n++;
	l->n_hops += c->sim->n_hops;
	*added = true;
	return OK;
}

/* ---- the options of an algorithm ---- */

static Status
with_radices(struct list *l, const Algorithm *row)
{
	static const int radices[] = { 2, 3, 4, 8, 16 };
	Ask ask = l->job->ask;
	bool added;
	if (ask.radix)
		return try_candidate(l, row, &ask, &added);
	for (size_t i = 0; i < sizeof radices / sizeof *radices; i++)
		if (radices[i] < l->job->topo->n_ranks || i == 0) {
			ask.radix = radices[i];
			TRY(try_candidate(l, row, &ask, &added));
		}
	return OK;
}

static Status
with_layers(struct list *l, const Algorithm *row)
{
	Ask ask = l->job->ask;
	int n = l->job->topo->n_ranks;
	bool added;
	TRY(try_candidate(l, row, &ask, &added));
	for (int inner = 2; !l->job->ask.layers.n && n <= DIVIDED_RANKS && inner <= n / 2; inner++)
		if (n % inner == 0) {
			ask.layers = (Hierarchy){ .n = 2, .size = { inner, n / inner } };
			TRY(try_candidate(l, row, &ask, &added));
		}
	return OK;
}

/* Depths below that of the best trees, from it down. In larger jobs a search from each rank alone takes minutes. */
enum { SHALLOW_RANKS = 512 };
static Status
shallow_trees(struct list *l, const Algorithm *row)
{
	Ask ask = l->job->ask;
	bool added;
	int depth, trees, from;
	TRY(try_candidate(l, row, &ask, &added));
	if (!added || ask.packing != PACKING_EXACT || l->job->topo->n_ranks > SHALLOW_RANKS)
		return OK;
	from = l->out->candidate[l->out->n - 1].depth;
	TRY(plan_least(l->ctx, l->job->topo, &ask, &depth, &trees));
	for (int most = from - 1; most >= depth; most--) {
		ask.max_depth = most;
		TRY(try_candidate(l, row, &ask, &added));
		/* Shallower than they have to be; within their own depth there may be others. */
		if (added && l->out->candidate[l->out->n - 1].depth < most)
			most = l->out->candidate[l->out->n - 1].depth + 1;
	}
	return OK;
}

static Status
with_options(struct list *l, const Algorithm *row)
{
	bool added;
	if (row == algorithm_row(0))
		return shallow_trees(l, row);
	if (row->options && strcmp(row->options, "radix") == 0)
		return with_radices(l, row);
	if (row->options && strcmp(row->options, "hierarchy") == 0)
		return with_layers(l, row);
	return try_candidate(l, row, &l->job->ask, &added);
}

static Status
list_new(Ctx *ctx, const Job *job, Choices *out, struct list *l)
{
	*l = (struct list){ .ctx = ctx, .job = job, .out = out };
	l->shared.known = l->known;
	return NEW(ctx, out->candidate, CANDIDATES_MOST);
}

/* Those that have too many hops to be simulated are no match for others. Fails where it is empty. */
static Status
list_end(const struct list *l)
{
	int n = 0;
	for (int i = 0; i < l->out->n; i++)
		if (!l->out->candidate[i].sim->too_large)
			l->out->candidate[n++] = l->out->candidate[i];
	l->out->n = n ? n : l->out->n;
	if (l->out->n == 0)
		l->ctx->error = l->first;
	return l->out->n == 0 ? l->first.status : OK;
}

Status
candidates_find(Ctx *ctx, const Job *job, Choices *out)
{
	struct list l;
	const Ask *ask = &job->ask;
	TRY(list_new(ctx, job, out, &l));
	l.all = true;
	for (int i = 0; i < algorithm_count(); i++) {
		const Algorithm *row = algorithm_row(i);
		bool limited = ask->max_depth || ask->max_trees || ask->packing != PACKING_EXACT;
		if (!row->serves(ask->coll) || (ask->algorithm && row != job->algorithm) || (limited && i > 0))
			continue;
		TRY(with_options(&l, row));
	}
	return list_end(&l);
}

Status
candidates_of(Ctx *ctx, const Job *job, const Ask *ask, int n, Choices *out)
{
	struct list l;
	const Algorithm *row;
	bool added;
	TRY(list_new(ctx, job, out, &l));
	for (int i = 0; i < n; i++) {
		TRY(algorithm_find(ctx, ask[i].algorithm, ask[i].coll, &row));
		TRY(try_candidate(&l, row, &ask[i], &added));
	}
	return list_end(&l);
}
