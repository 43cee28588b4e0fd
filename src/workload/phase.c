/* A phase: the shares of links that each group gets, its trees within them, and the images of these. */
#include "workload/planning.h"

#include <string.h>

static const char *const schedules[] = { GROUP_SCHEDULES_LIST(ROW_TEXT) };
const Names group_schedules_names = { N_GROUP_SCHEDULES, schedules };

/* ---- levels ---- */

int
phase_level(const Phase *phase, int call)
{
	unsigned before = 0;
	int level = 0;
	for (int c = 0; c < phase->n_calls; c++)
		if (phase->call[c].priority < phase->call[call].priority)
			before |= 1u << phase->call[c].priority;
	for (; before; before &= before - 1)
		level++;
	return level;
}

/* ---- the program ---- */

/* Bytes of demands as weights: over what divides all, or, where that leaves too much, rounded, to none less than 1. */
static Status
weigh_demands(struct planning *p, const struct planned *of, Concurrent *out)
{
	const Wide most = INT64_C(1) << (CONCURRENT_WEIGHT_BITS - 1);
	const GroupCall *call = &p->phase->call[of->call];
	int n = of->joined->job.topo->n_ranks, n_demands = collective_demands(call->coll, n);
	int64_t *weight, unit = 0;
	Wide sum = 0;
	TRY(NEW(p->ctx, weight, n_demands));
	for (int d = 0; d < n_demands; d++) {
		weight[d] = of->matrix[collective_demand(call->coll, n, -1, d).block];
		unit = gcd64(weight[d], unit);
		sum += weight[d];
	}
	if (sum / unit >= most)
		unit = (int64_t)(sum / most) + 1;
	for (int d = 0; d < n_demands; d++)
		weight[d] = weight[d] == 0 ? 0 : weight[d] < unit ? 1 : (weight[d] + unit / 2) / unit;
	out->weight = weight;
	out->bytes = unit * call->times;
	return OK;
}

/* alone: with the plan of each as if it were alone. */
static Status
list_groups(struct planning *p, bool alone)
{
	const Workload *w = p->in->workload;
	int room = 0;
	for (int c = 0; c < p->phase->n_calls; c++)
		room += w->kind[p->phase->call[c].kind].n_groups;
	TRY(NEW(p->ctx, p->of, room));
	TRY(NEW(p->ctx, p->concurrent, room));
	for (int c = 0; c < p->phase->n_calls; c++) {
		const GroupCall *call = &p->phase->call[c];
		const GroupKind *kind = &w->kind[call->kind];
		for (int g = 0; g < kind->n_groups; g++) {
			const JoinedGroup *joined = &p->in->group[call->kind][g];
			struct planned *of = &p->of[p->n];
			Concurrent *concurrent = &p->concurrent[p->n];
			int64_t copies = 0;
			int *row;
			if (joined->like != g || kind->group[g].n < 2)
				continue;
			for (int h = 0; h < kind->n_groups; h++)
				copies += p->in->group[call->kind][h].like == g;
			*of = (struct planned){ .call = c, .kind = call->kind, .group = g, .joined = joined,
				.matrix = call->matrix ? call->matrix[g] : NULL };
			if (alone)
				TRY(plan_alone(p, of));
			TRY(NEW(p->ctx, row, joined->job.topo->n_links));
			for (int l = 0; l < joined->job.topo->n_links; l++)
				row[l] = p->in->sym->link_orbit[joined->shared[l]];
			*concurrent = (Concurrent){ .topo = joined->job.topo, .row = row, .coll = call->coll,
				.root = call->root, .bytes = bytes_of(call), .level = phase_level(p->phase, c),
				.copies = copies, .known = of->alone.pack };
			if (of->matrix)
				TRY(weigh_demands(p, of, concurrent));
			TRY(find_orbits(p, of, concurrent));
			p->n++;
			progress(p->ctx, "%s: plans of groups alone: %d", p->phase->name, p->n);
		}
	}
	return OK;
}

static Status
share_links(struct planning *p, ConcurrentPlan *out)
{
	const Symmetry *sym = p->in->sym;
	int64_t *capacity;
	TRY(NEW(p->ctx, capacity, sym->n_orbits));
	for (int l = 0; l < p->in->topo->n_links; l++)
		capacity[sym->link_orbit[l]] += p->in->topo->link[l].capacity;
	p->links = (SharedLinks){ .n_rows = sym->n_orbits, .links = sym->orbit_size, .capacity = capacity };
	return pack_concurrent(p->ctx, p->concurrent, p->n, &p->links, out);
}

/* ---- what comes out ---- */

static Status
keep_levels(struct planning *p, const ConcurrentPlan *plan)
{
	const Topology *topo = p->in->topo;
	int n_rows = p->in->sym->n_orbits;
	p->out->n_levels = plan->n_levels;
	TRY(NEW(p->ctx, p->out->level, plan->n_levels));
	for (int level = 0; level < plan->n_levels; level++) {
		PhaseLevel *out = &p->out->level[level];
		TRY(NEW(p->ctx, out->price, (size_t)(level + 1) * (size_t)topo->n_links));
		for (int c = 0; c < p->phase->n_calls; c++)
			if (phase_level(p->phase, c) == level)
				out->priority = p->phase->call[c].priority;
		for (int j = 0; j <= level; j++)
			for (int l = 0; l < topo->n_links; l++)
				out->price[j * topo->n_links + l] = plan->price[level][j * n_rows
				    + p->in->sym->link_orbit[l]];
	}
	return OK;
}

/* Is there a link with a price that is one of several groups? */
static Status
find_shared(struct planning *p)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	int *groups, n = p->in->topo->n_links;
	const PhaseLevel *last = &p->out->level[p->out->n_levels - 1];
	TRY(TEMP(p->ctx, groups, n));
	for (int c = 0; c < p->phase->n_calls; c++) {
		int kind = p->phase->call[c].kind;
		for (int g = 0; g < p->in->workload->kind[kind].n_groups; g++) {
			const JoinedGroup *group = &p->in->group[kind][g];
			for (int l = 0; group->shared && l < group->job.topo->n_links; l++)
				groups[group->shared[l]]++;
		}
	}
	for (int i = 0; i < p->out->n_levels * n; i++)
		p->out->shares |= last->price[i] > 0 && groups[i % n] > 1;
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* What the schedules take, and what is proven. */
static Status
state_times(struct planning *p)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	PhasePlan *out = p->out;
	PhaseGroups all = { .topo = p->in->topo, .n_calls = p->phase->n_calls };
	TRY(TEMP(p->ctx, all.call, all.n_calls));
	for (int c = 0; c < all.n_calls; c++) {
		const GroupCall *call = &p->phase->call[c];
		PhaseCall *of = &all.call[c];
		*of = (PhaseCall){ .level = phase_level(p->phase, c), .bytes = bytes_of(call), .times = call->times,
			.by_matrix = call->matrix != NULL, .n_groups = p->in->workload->kind[call->kind].n_groups };
		TRY(TEMP(p->ctx, of->group, of->n_groups));
		for (int g = 0; g < of->n_groups; g++)
			of->group[g] = (CallingGroup){ out->group[c][g].sched, p->in->group[call->kind][g].shared };
	}
	for (int level = 0; level < out->n_levels; level++) {
		TRY(phase_seconds(p->ctx, &all, level, &out->level[level].seconds));
		TRY(phase_bound(p->ctx, p->phase->name, &all, out->level, level, &out->level[level].bound));
	}
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

Status
phase_plan(Ctx *ctx, const JoinedWorkload *in, const Phase *phase, PhasePlan *out)
{
	struct planning p = { .ctx = ctx, .in = in, .phase = phase, .out = out };
	ConcurrentPlan plan;
	*out = (PhasePlan){ .phase = phase };
	TRY(NEW(ctx, out->group, phase->n_calls));
	for (int c = 0; c < phase->n_calls; c++)
		TRY(NEW(ctx, out->group[c], in->workload->kind[phase->call[c].kind].n_groups));
	TRY(list_groups(&p, true));
	if (p.n == 0)
		return fail(ctx, BAD_INPUT, "%s: groups of one rank alone: want two or more in some", phase->name);
	TRY(share_links(&p, &plan));
	TRY(keep_levels(&p, &plan));
	TRY(plan_groups(&p, &plan));
	TRY(build_all(&p));
	TRY(find_shared(&p));
	return state_times(&p);
}

Status
phase_least(Ctx *ctx, const JoinedWorkload *in, const Phase *phase, double *out, int64_t *price)
{
	struct planning p = { .ctx = ctx, .in = in, .phase = phase };
	ConcurrentPlan plan;
	*out = 0;
	memset(price, 0, (size_t)in->topo->n_links * sizeof *price);
	TRY(list_groups(&p, false));
	if (p.n == 0)
		return OK;
	TRY(share_links(&p, &plan));
	*out = plan.seconds;
	for (int l = 0; l < in->topo->n_links; l++)
		price[l] = plan.price[plan.n_levels - 1][(plan.n_levels - 1) * p.links.n_rows + in->sym->link_orbit[l]];
	return OK;
}

void
phase_free(const JoinedWorkload *in, PhasePlan *phase)
{
	for (int c = 0; phase->group && c < phase->phase->n_calls; c++)
		for (int g = 0; phase->group[c] && g < in->workload->kind[phase->phase->call[c].kind].n_groups; g++)
			text_free(&phase->group[c][g].json);
}
