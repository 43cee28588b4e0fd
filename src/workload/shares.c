/* Trees of each group within what the program gives it of each link. */
#include "plan/pack/flow/flow.h"
#include "workload/planning.h"

#include <math.h>

/* What the program has of each link of group i, in proportion: whole numbers, rounded where these would be too
 * large. */
static Status
shares_of(struct planning *p, const ConcurrentPlan *plan, int i, Wide *share)
{
	const struct planned *of = &p->of[i];
	const Topology *topo = of->joined->job.topo;
	Wide *sum, multiple = 1;
	bool exact = true;
	TRY(TEMP(p->ctx, sum, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		sum[of->part[l]] += plan->sent[i][l];
	for (int l = 0; l < topo->n_links; l++) {
		int size = of->part_size[of->part[l]];
		if (sum[of->part[l]] == 0)
			continue;
		multiple = multiple / gcd64((int64_t)multiple, size) * size;
		exact = exact && multiple >> 30 == 0;
		multiple = exact ? multiple : 1;
	}
	for (int l = 0; l < topo->n_links; l++)
		share[l] = exact ? sum[of->part[l]] * (multiple / of->part_size[of->part[l]])
		    : sum[of->part[l]] / of->part_size[of->part[l]];
	return OK;
}

/* Shares as capacities that a planner takes: in proportion, whole numbers from LIMIT_CAPACITY_MIN on. all: links
 * without a share have that little, so that blocks without bytes have paths, too. */
static void
scale_shares(Wide *share, int n, bool all)
{
	const Wide most = LIMIT_CAPACITY_SUM / 2 / (n + 1);
	Wide common = 0, top = 0, limit = most < LIMIT_CAPACITY_MAX ? most : LIMIT_CAPACITY_MAX;
	for (int l = 0; l < n; l++)
		common = gcd_wide(common, share[l]);
	for (int l = 0; l < n; l++) {
		share[l] /= common;
		top = share[l] > top ? share[l] : top;
	}
	int64_t times = 1;
	while ((all || times < LIMIT_CAPACITY_MIN) && top * times * 10 <= limit)
		times *= 10;
	for (int l = 0; l < n; l++)
		share[l] = top * times <= limit ? share[l] * times
		    : (Wide)((double)share[l] / (double)top * (double)limit);
	for (int l = 0; l < n && all; l++)
		share[l] = share[l] < LIMIT_CAPACITY_MIN ? LIMIT_CAPACITY_MIN : share[l];
}

/* The topology of its shares: links without any are left out. of: of each link its number in the whole. */
static Status
shared_topology(Ctx *ctx, const Topology *topo, const Wide *share, Topology **out, int *of)
{
	Topology *made;
	TRY(NEW(ctx, made, 1));
	*made = *topo;
	made->n_links = 0;
	TRY(NEW(ctx, made->link, topo->n_links));
	for (int l = 0; l < topo->n_links; l++) {
		if (share[l] < LIMIT_CAPACITY_MIN)
			continue;
		Link *link = &made->link[made->n_links];
		*link = topo->link[l];
		link->count = 1;
		link->capacity = (int64_t)share[l];
		of[made->n_links++] = l;
	}
	*out = made;
	return topo_index(ctx, made);
}

static Status
map_trees(Ctx *ctx, Packing *pack, const int *link)
{
	for (int t = 0; t < pack->n_trees; t++)
		TRY(tree_image(ctx, &pack->tree[t], NULL, link, &pack->tree[t]));
	return OK;
}

/* The usual planner, on the group's shares as if they were its links. */
static Status
plan_in_shares(struct planning *p, struct planned *of, Wide *share)
{
	const Topology *topo = of->joined->job.topo;
	Topology *shares;
	Job job = of->joined->job;
	JobShared shared = { 0 };
	Plan plan;
	int *link;
	TRY(NEW(p->ctx, link, topo->n_links));
	scale_shares(share, topo->n_links, of->matrix != NULL);
	TRY(shared_topology(p->ctx, topo, share, &shares, link));
	job.topo = shares;
	job.ask = of->ask;
	TRY(job_plan(p->ctx, &job, &shared, &plan));
	if (plan.pack->symmetry || plan.pack->n_in_trees)
		return fail_long(p->ctx, of->ask.coll, topo->n_ranks);
	of->pack = plan.pack;
	return map_trees(p->ctx, of->pack, link);
}

/* The trees of the program itself, less deep where they exchange edges, within what they send over each link: fractions
 * that were rounded make planners slow. Those of blocks of unequal lengths stay as they are. */
static Status
take_trees(struct planning *p, struct planned *of, Packing *pack)
{
	const Topology *topo = of->joined->job.topo;
	Topology *shares;
	Packing *less;
	Wide *share;
	int *link, *number;
	TRY(TEMP(p->ctx, share, topo->n_links));
	TRY(TEMP(p->ctx, number, topo->n_links));
	TRY(NEW(p->ctx, link, topo->n_links));
	for (int t = 0; t < pack->n_trees; t++)
		for (int i = 0; i < pack->tree[t].n_down + pack->tree[t].n_up; i++)
			for (int k = 0; k < tree_edge(&pack->tree[t], i)->n_links; k++)
				share[tree_edge(&pack->tree[t], i)->link[k]] += (Wide)pack->weight[t]
				    * LIMIT_CAPACITY_MIN;
	of->pack = pack;
	if (of->matrix)
		return OK;
	for (int l = 0; l < topo->n_links; l++)
		if (share[l] > LIMIT_CAPACITY_SUM / topo->n_links)
			return OK;
	TRY(shared_topology(p->ctx, topo, share, &shares, link));
	for (int l = 0; l < shares->n_links; l++)
		number[link[l]] = l;
	TRY(map_trees(p->ctx, pack, number));
	pack->unit = (Frac){ LIMIT_CAPACITY_MIN, 1 };
	TRY(pack_shallower(p->ctx, shares, pack, &less));
	of->pack = less ? less : pack;
	return map_trees(p->ctx, of->pack, link);
}

/* Bytes that are sent over each row of links up to the end of each level, and when that is. */
struct loads {
	int n_levels, n_rows;
	double *sent;		/* [level * n_rows + row] */
	double *seconds;	/* of a level */
};

/* sent: bytes of a group over each of its links; sign: -1: take them away. */
static void
add_sent(const struct planning *p, int i, const double *sent, double sign, struct loads *loads)
{
	const Concurrent *group = &p->concurrent[i];
	for (int level = group->level; level < loads->n_levels; level++)
		for (int l = 0; l < group->topo->n_links; l++)
			loads->sent[level * loads->n_rows + group->row[l]] += sign * sent[l] * (double)group->copies;
}

/* What all links of a row could send besides, before the levels that it counts in are done. */
static double
room_in(const struct loads *loads, const SharedLinks *links, int level, int row)
{
	double least = INFINITY;
	for (; level < loads->n_levels; level++)
		least = fmin(least, (double)links->capacity[row] * loads->seconds[level]
		    - loads->sent[level * loads->n_rows + row]);
	return fmax(least, 0);
}

/* Does the group's own best schedule use no more of each link than its share, and than what nobody has? */
static Status
fits_alone(const struct planning *p, int i, const double *share, const struct loads *loads, bool *out)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	const Concurrent *group = &p->concurrent[i];
	int *links;
	TRY(TEMP(p->ctx, links, loads->n_rows));
	for (int l = 0; l < group->topo->n_links; l++)
		links[group->row[l]]++;
	*out = true;
	for (int l = 0; l < group->topo->n_links && *out; l++) {
		int row = group->row[l];
		double more = room_in(loads, &p->links, group->level, row) / ((double)group->copies * links[row]);
		*out = p->of[i].alone_sent[l] <= (share[l] + more) * (1 + 1e-12);
	}
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* Shares in bytes: what the program has of each demand is all of its bytes. */
static Status
share_bytes(struct planning *p, const ConcurrentPlan *plan, int i, double **out)
{
	const Concurrent *group = &p->concurrent[i];
	double *share, *of_link;
	TRY(TEMP(p->ctx, share, group->topo->n_links));
	TRY(NEW(p->ctx, of_link, group->topo->n_links));
	double scale = (double)group->bytes / concurrent_shares(group) / (double)plan->each[i];
	for (int l = 0; l < group->topo->n_links; l++)
		share[p->of[i].part[l]] += (double)plan->sent[i][l];
	for (int l = 0; l < group->topo->n_links; l++)
		of_link[l] = share[p->of[i].part[l]] / p->of[i].part_size[p->of[i].part[l]] * scale;
	*out = of_link;
	return OK;
}

static Status
new_loads(struct planning *p, const ConcurrentPlan *plan, double **share, struct loads *out)
{
	*out = (struct loads){ .n_levels = plan->n_levels, .n_rows = p->links.n_rows };
	TRY(TEMP(p->ctx, out->sent, (size_t)plan->n_levels * (size_t)out->n_rows));
	TRY(TEMP(p->ctx, out->seconds, plan->n_levels));
	for (int i = 0; i < p->n; i++) {
		TRY(share_bytes(p, plan, i, &share[i]));
		add_sent(p, i, share[i], 1, out);
	}
	for (int level = 0; level < out->n_levels; level++)
		for (int row = 0; row < out->n_rows; row++)
			out->seconds[level] = fmax(out->seconds[level],
			    out->sent[level * out->n_rows + row] / (double)p->links.capacity[row]);
	return OK;
}

/* Of each group its own best schedule, or its rings. */
static Status
take_own(struct planning *p)
{
	bool rings = p->in->schedules == SCHEDULES_RINGS;
	for (int i = 0; i < p->n; i++) {
		struct planned *of = &p->of[i];
		of->pack = rings ? of->rings : of->alone.pack;
		of->sent = rings ? of->ring_sent : of->alone_sent;
		if (!of->pack)
			return fail(p->ctx, INFEASIBLE, "%s: %s groups: no rings over the links of each",
			    p->phase->name, p->in->workload->kind[of->kind].name);
	}
	return OK;
}

Status
plan_groups(struct planning *p, const ConcurrentPlan *plan)
{
	if (p->in->schedules != SCHEDULES_TOGETHER)
		return take_own(p);
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	struct loads loads;
	double **share;
	int alone = 0;
	TRY(TEMP(p->ctx, share, p->n));
	TRY(new_loads(p, plan, share, &loads));
	for (int i = 0; i < p->n; i++) {
		struct planned *of = &p->of[i];
		Wide *whole;
		bool fits;
		TRY(fits_alone(p, i, share[i], &loads, &fits));
		alone += fits;
		if (fits) {
			of->pack = of->alone.pack;
			of->sent = of->alone_sent;
		} else if ((!plan->exact || of->matrix) && plan->pack[i]) {
			TRY(take_trees(p, of, plan->pack[i]));
		} else {
			TRY(TEMP(p->ctx, whole, of->joined->job.topo->n_links));
			TRY(shares_of(p, plan, i, whole));
			TRY(plan_in_shares(p, of, whole));
		}
		if (!fits)
			TRY(count_bytes(p, of, of->pack, &of->sent));
		add_sent(p, i, share[i], -1, &loads);
		add_sent(p, i, of->sent, 1, &loads);
		progress(p->ctx, "%s: plans of groups at once: %d of %d", p->phase->name, i + 1, p->n);
	}
	log_verbose(p->ctx, "%s: %d of %d groups that are no images keep their own best schedule", p->phase->name,
	    alone, p->n);
	arena_release(&p->ctx->scratch, mark);
	return OK;
}
