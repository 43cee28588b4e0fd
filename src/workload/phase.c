/* A phase: the shares of links that each group gets, its trees within them, and the images of these. */
#include "base/disjoint.h"
#include "format/format.h"
#include "plan/pack/concurrent/concurrent.h"
#include "plan/pack/flow/flow.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A call of a group that is the first of its orbit; the others are its images. */
struct planned {
	int call, kind, group;
	const JoinedGroup *joined;
	Ask ask;
	Plan alone;
	Packing *pack;		/* what is sent */
	int *part;		/* n_links: the orbit of each of its links under symmetries that keep the group */
	int *part_size;		/* of such an orbit, how many links it has */
	double *sent, *alone_sent, *ring_sent;	/* n_links: bytes over each; of rings NULL: there are none */
};

struct planning {
	Ctx *ctx;
	const JoinedWorkload *in;
	const Phase *phase;
	int n;
	struct planned *of;
	Concurrent *concurrent;
	PhasePlan *out;
};

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

int
phase_levels(const Phase *phase)
{
	int most = 0;
	for (int c = 0; c < phase->n_calls; c++) {
		int level = phase_level(phase, c);
		most = level > most ? level : most;
	}
	return most + 1;
}

/* ---- one group ---- */

static int64_t
bytes_of(const GroupCall *call)
{
	return call->bytes * call->times;
}

/* Bytes that trees of a message of `bytes` send over each link. */
static Status
count_bytes(Ctx *ctx, const Topology *topo, Collective coll, const Packing *pack, double bytes, double **out)
{
	double *sent, total = 0;
	TRY(NEW(ctx, sent, topo->n_links));
	for (int t = 0; t < pack->n_trees; t++)
		total += (double)pack->weight[t];
	total /= collective_demands(coll, topo->n_ranks);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		for (int i = 0; i < tree->n_down + tree->n_up; i++)
			for (int k = 0; k < tree_edge(tree, i)->n_links; k++)
				sent[tree_edge(tree, i)->link[k]] += (double)pack->weight[t];
	}
	for (int l = 0; l < topo->n_links; l++)
		sent[l] *= bytes / (total * collective_shares(coll, topo->n_ranks));
	*out = sent;
	return OK;
}

static Status
fail_long(Ctx *ctx, Collective coll, int n_ranks)
{
	return fail(ctx, LIMIT, "%s over %d ranks: groups at once want a list of all trees, which is too long",
	    collective_name(coll), n_ranks);
}

static Status
plan_alone(struct planning *p, struct planned *of)
{
	const GroupCall *call = &p->phase->call[of->call];
	const Topology *topo = of->joined->job.topo;
	Job job = of->joined->job;
	JobShared shared = { 0 };
	Plan rings;
	job.ask.coll = call->coll;
	job.ask.root = call->root;
	of->ask = job.ask;
	TRY(job_plan(p->ctx, &job, &shared, &of->alone));
	if (of->alone.pack->symmetry)
		return fail_long(p->ctx, call->coll, topo->n_ranks);
	TRY(count_bytes(p->ctx, topo, call->coll, of->alone.pack, (double)bytes_of(call), &of->alone_sent));
	if (!collective_has_rings(call->coll)) {
		of->ring_sent = of->alone_sent;
		return OK;
	}
	JobShared other = { 0 };
	job.ask.algorithm = "ring";
	TRY(algorithm_find(p->ctx, "ring", call->coll, &job.algorithm));
	Status status = job_plan(p->ctx, &job, &other, &rings);
	if (status == INFEASIBLE) {
		p->ctx->error.status = OK;
		return OK;
	}
	TRY(status);
	return count_bytes(p->ctx, topo, call->coll, rings.pack, (double)bytes_of(call), &of->ring_sent);
}

/* ---- orbits within a group ---- */

/* Images of the group's own links, ranks and bundles under an element that keeps it. rank: of each, its image. */
static void
join_images(const struct planned *of, const SymmetryWalk *walk, const int *rank, const GroupCall *call, int *links,
    int *bundles)
{
	const Topology *topo = of->joined->job.topo;
	int n = topo->n_ranks;
	for (int l = 0; l < topo->n_links; l++)
		set_join(links, joined_link(of->joined, walk->link[of->joined->shared[l]]), l);
	for (int b = 0, d = 0; b < concurrent_bundles(call->coll, n); b++) {
		Demand demand = collective_demand(call->coll, n, call->root, d);
		int image = collective_demand_of(call->coll, n, call->root, demand.from < 0 ? -1 : rank[demand.from],
		    demand.to < 0 ? -1 : rank[demand.to]);
		set_join(bundles, concurrent_bundle_of(call->coll, n, image), b);
		d += call->coll == ALLTOALL ? n - 1 : 1;
	}
}

static int
place_of(const RankGroup *group, int rank)
{
	int i = 0;
	while (group->rank[i] != rank)
		i++;
	return i;
}

/* Where each rank of a group goes in the group that is its image. */
static void
image_ranks(const struct planning *p, const struct planned *of, const SymmetryWalk *walk, int image, int *rank)
{
	const GroupKind *kind = &p->in->workload->kind[of->kind];
	for (int i = 0; i < kind->group[of->group].n; i++)
		rank[i] = place_of(&kind->group[image], walk->vertex[kind->group[of->group].rank[i]]);
}

/* Sets as orbits, numbered by their first members: of each member its orbit, and sizes. Returns how many. */
static int
number_orbits(int *set, int n, int *orbit, int *size)
{
	int count = 0;
	for (int i = 0; i < n; i++)
		orbit[i] = -1;
	for (int i = 0; i < n; i++) {
		int root = set_root(set, i);
		orbit[root] = orbit[root] < 0 ? count++ : orbit[root];
		size[orbit[root]]++;
	}
	for (int i = 0; i < n; i++)
		orbit[i] = orbit[set_root(set, i)];
	return count;
}

static Status
find_orbits(struct planning *p, struct planned *of, Concurrent *concurrent)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	const GroupCall *call = &p->phase->call[of->call];
	const Topology *topo = of->joined->job.topo;
	int n_bundles = concurrent_bundles(call->coll, topo->n_ranks), *links, *bundles, *rank, *orbit, *alike, *first;
	SymmetryWalk walk;
	TRY(TEMP(p->ctx, links, topo->n_links));
	TRY(TEMP_EACH(p->ctx, n_bundles, bundles, orbit));
	TRY(TEMP(p->ctx, rank, topo->n_ranks));
	TRY(NEW_EACH(p->ctx, topo->n_links, of->part, of->part_size));
	TRY(NEW_EACH(p->ctx, n_bundles, alike, first));
	for (int l = 0; l < topo->n_links; l++)
		links[l] = l;
	for (int b = 0; b < n_bundles; b++)
		bundles[b] = b;
	TRY(symmetry_walk(p->ctx, p->in->topo, p->in->sym, &walk));
	while (symmetry_next(&walk)) {
		int root = p->in->workload->kind[of->kind].group[of->group].rank[0];
		if (p->in->group_of[of->kind][walk.vertex[root]] != of->group)
			continue;
		image_ranks(p, of, &walk, of->group, rank);
		join_images(of, &walk, rank, call, links, bundles);
	}
	number_orbits(links, topo->n_links, of->part, of->part_size);
	concurrent->n_bundles = number_orbits(bundles, n_bundles, orbit, alike);
	for (int b = n_bundles - 1; b >= 0; b--)
		first[orbit[b]] = b;
	concurrent->bundle = first;
	concurrent->alike = alike;
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* ---- the program ---- */

static Status
list_groups(struct planning *p)
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
			*of = (struct planned){ .call = c, .kind = call->kind, .group = g, .joined = joined };
			TRY(plan_alone(p, of));
			TRY(NEW(p->ctx, row, joined->job.topo->n_links));
			for (int l = 0; l < joined->job.topo->n_links; l++)
				row[l] = p->in->sym->link_orbit[joined->shared[l]];
			*concurrent = (Concurrent){ .topo = joined->job.topo, .row = row, .coll = call->coll,
			    .root = call->root,
				.bytes = bytes_of(call), .level = phase_level(p->phase, c), .copies = copies,
				.known = of->alone.pack };
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
	SharedLinks links = { .n_rows = sym->n_orbits, .links = sym->orbit_size };
	int64_t *capacity;
	TRY(NEW(p->ctx, capacity, sym->n_orbits));
	for (int l = 0; l < p->in->topo->n_links; l++)
		capacity[sym->link_orbit[l]] += p->in->topo->link[l].capacity;
	links.capacity = capacity;
	return pack_concurrent(p->ctx, p->concurrent, p->n, &links, out);
}

/* ---- trees within shares ---- */

/* What the program has of each link of group i, in its units, over a common denominator. False: numbers are too
 * large. */
static Status
shares_of(struct planning *p, const ConcurrentPlan *plan, int i, Wide *share, bool *exact)
{
	const struct planned *of = &p->of[i];
	const Topology *topo = of->joined->job.topo;
	Wide *sum, multiple = 1;
	TRY(TEMP(p->ctx, sum, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		sum[of->part[l]] += plan->sent[i][l];
	*exact = true;
	for (int l = 0; l < topo->n_links; l++) {
		int size = of->part_size[of->part[l]];
		if (sum[of->part[l]] == 0)
			continue;
		multiple = multiple / gcd64((int64_t)multiple, size) * size;
		*exact = *exact && multiple >> 30 == 0;
		multiple = *exact ? multiple : 1;
	}
	for (int l = 0; l < topo->n_links; l++)
		share[l] = *exact ? sum[of->part[l]] * (multiple / of->part_size[of->part[l]])
		    : sum[of->part[l]] / of->part_size[of->part[l]];
	return OK;
}

static Wide
gcd_wide(Wide a, Wide b)
{
	while (b) {
		Wide rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Shares as capacities that a planner takes: in proportion, whole numbers from LIMIT_CAPACITY_MIN on. */
static void
scale_shares(Wide *share, int n)
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
	while (times < LIMIT_CAPACITY_MIN && top * times * 10 <= limit)
		times *= 10;
	for (int l = 0; l < n; l++)
		share[l] = top * times <= limit ? share[l] * times
		    : (Wide)((double)share[l] / (double)top * (double)limit);
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
	scale_shares(share, topo->n_links);
	TRY(shared_topology(p->ctx, topo, share, &shares, link));
	job.topo = shares;
	job.ask = of->ask;
	TRY(job_plan(p->ctx, &job, &shared, &plan));
	if (plan.pack->symmetry)
		return fail_long(p->ctx, of->ask.coll, topo->n_ranks);
	of->pack = plan.pack;
	return map_trees(p->ctx, of->pack, link);
}

/* The trees of the program itself, less deep where they exchange edges, within what they send over each link: fractions
 * that were rounded make planners slow. */
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
	const int64_t *capacity;	/* of a row */
	double *sent;		/* [level * n_rows + row] */
	double *seconds;	/* of a level */
};

/* sent: bytes of a group over each of its links; NULL: take them away. */
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
room_in(const struct loads *loads, int level, int row)
{
	double least = INFINITY;
	for (; level < loads->n_levels; level++)
		least = fmin(least, (double)loads->capacity[row] * loads->seconds[level]
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
		double more = room_in(loads, group->level, row) / ((double)group->copies * links[row]);
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
	double scale = (double)group->bytes / collective_shares(group->coll, group->topo->n_ranks)
	    / (double)plan->each[i];
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
	const Symmetry *sym = p->in->sym;
	int64_t *capacity;
	*out = (struct loads){ .n_levels = plan->n_levels, .n_rows = sym->n_orbits };
	TRY(TEMP(p->ctx, capacity, sym->n_orbits));
	TRY(TEMP(p->ctx, out->sent, (size_t)plan->n_levels * (size_t)sym->n_orbits));
	TRY(TEMP(p->ctx, out->seconds, plan->n_levels));
	for (int l = 0; l < p->in->topo->n_links; l++)
		capacity[sym->link_orbit[l]] += p->in->topo->link[l].capacity;
	out->capacity = capacity;
	for (int i = 0; i < p->n; i++) {
		TRY(share_bytes(p, plan, i, &share[i]));
		add_sent(p, i, share[i], 1, out);
	}
	for (int level = 0; level < out->n_levels; level++)
		for (int row = 0; row < out->n_rows; row++)
			out->seconds[level] = fmax(out->seconds[level],
			    out->sent[level * out->n_rows + row] / (double)capacity[row]);
	return OK;
}

/* Groups one after the other: its own best schedule where that fits, else one within its shares. */
static Status
plan_groups(struct planning *p, const ConcurrentPlan *plan)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	struct loads loads;
	double **share;
	int alone = 0;
	TRY(TEMP(p->ctx, share, p->n));
	TRY(new_loads(p, plan, share, &loads));
	for (int i = 0; i < p->n; i++) {
		struct planned *of = &p->of[i];
		Wide *whole;
		bool fits, exact;
		TRY(fits_alone(p, i, share[i], &loads, &fits));
		alone += fits;
		if (fits) {
			of->pack = of->alone.pack;
			of->sent = of->alone_sent;
		} else if (!plan->exact && plan->pack[i]) {
			TRY(take_trees(p, of, plan->pack[i]));
			TRY(count_bytes(p->ctx, of->joined->job.topo, of->ask.coll, of->pack,
			    (double)p->concurrent[i].bytes, &of->sent));
		} else {
			TRY(TEMP(p->ctx, whole, of->joined->job.topo->n_links));
			TRY(shares_of(p, plan, i, whole, &exact));
			TRY(plan_in_shares(p, of, whole));
			TRY(count_bytes(p->ctx, of->joined->job.topo, of->ask.coll, of->pack,
			    (double)p->concurrent[i].bytes, &of->sent));
		}
		add_sent(p, i, share[i], -1, &loads);
		add_sent(p, i, of->sent, 1, &loads);
		progress(p->ctx, "%s: plans of groups at once: %d of %d", p->phase->name, i + 1, p->n);
	}
	log_verbose(p->ctx, "%s: %d of %d groups that are no images keep their own best schedule", p->phase->name,
	    alone, p->n);
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* ---- images ---- */

struct image_tree {
	int demand, at;
	int64_t weight;
	Tree tree;
};

static int
by_demand(const void *a, const void *b)
{
	const struct image_tree *x = a, *y = b;
	return x->demand != y->demand ? (x->demand > y->demand) - (x->demand < y->demand)
	    : (x->at > y->at) - (x->at < y->at);
}

/* The packing of a group that is the image of another. rank, link: where these go. */
static Status
image_packing(Ctx *ctx, const Packing *pack, Collective coll, int root, int n, const int *rank, const int *link,
    Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct image_tree *image;
	Packing *made;
	TRY(TEMP(ctx, image, pack->n_trees));
	for (int t = 0; t < pack->n_trees; t++) {
		Demand demand = collective_demand(coll, n, root, pack->demand ? pack->demand[t] : 0);
		TRY(tree_image(ctx, &pack->tree[t], rank, link, &image[t].tree));
		image[t].weight = pack->weight[t];
		image[t].at = t;
		image[t].demand = collective_demand_of(coll, n, root, demand.from < 0 ? -1 : rank[demand.from],
		    demand.to < 0 ? -1 : rank[demand.to]);
	}
	qsort(image, (size_t)pack->n_trees, sizeof *image, by_demand);
	TRY(NEW(ctx, made, 1));
	*made = *pack;
	TRY(pack_room(ctx, pack->n_trees, pack->demand != NULL, made));
	made->n_trees = pack->n_trees;
	for (int t = 0; t < pack->n_trees; t++) {
		made->tree[t] = image[t].tree;
		made->weight[t] = image[t].weight;
		if (made->demand)
			made->demand[t] = image[t].demand;
	}
	arena_release(&ctx->scratch, mark);
	*out = made;
	return OK;
}

/* The schedule of a group by the packing of its own links. Its rate and bound are those of the group alone. */
static Status
build(struct planning *p, const struct planned *of, const JoinedGroup *group, Packing *pack, const Bound *bound,
    GroupPlan *out)
{
	static const char label[] = "the schedule of a group";
	Job job = group->job;
	Plan plan = { .pack = pack, .proof = *bound };
	int64_t *load;
	Schedule *sched;
	job.ask = of->ask;
	TRY(TEMP(p->ctx, load, job.topo->n_links));
	/* A unit of its own: weights are what schedules are made of. */
	if (!pack_widest_unit(job.topo, pack, load, &pack->unit))
		return fail(p->ctx, LIMIT, "%s: a rate needs more than 64 bits", job.topo->name);
	TRY(job_build(p->ctx, &job, &plan, &sched));
	sched_write_json(sched, &out->json);
	if (out->json.failed)
		return fail_memory(p->ctx);
	return sched_read_verified(p->ctx, label, out->json.data, out->json.size, &out->sched);
}

/* The certificate of a group, for its image: vertices go where the ends of links go. */
static Status
image_bound(Ctx *ctx, const Bound *in, const Topology *from, const Topology *to, const int *link, Bound *out)
{
	*out = *in;
	if (in->part)
		TRY(NEW(ctx, out->part, to->n_vertices));
	if (in->price)
		TRY(NEW(ctx, out->price, to->n_links));
	for (int l = 0; l < from->n_links; l++) {
		if (in->part) {
			out->part[to->link[link[l]].from] = in->part[from->link[l].from];
			out->part[to->link[link[l]].to] = in->part[from->link[l].to];
		}
		if (in->price)
			out->price[link[l]] = in->price[l];
	}
	return OK;
}

/* Bytes over the shared links, by the current element of the walk. */
static void
add_links(const struct planned *of, const SymmetryWalk *walk, const double *sent, double *sum)
{
	for (int l = 0; l < of->joined->job.topo->n_links && sent; l++)
		sum[walk->link[of->joined->shared[l]]] += sent[l];
}

static Status
build_image(struct planning *p, const struct planned *of, int image, const SymmetryWalk *walk)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	const JoinedGroup *group = &p->in->group[of->kind][image];
	const Topology *topo = of->joined->job.topo;
	int *rank, *link;
	Packing *pack;
	Bound bound;
	TRY(TEMP(p->ctx, rank, topo->n_ranks));
	TRY(TEMP(p->ctx, link, topo->n_links));
	image_ranks(p, of, walk, image, rank);
	for (int l = 0; l < topo->n_links; l++)
		link[l] = joined_link(group, walk->link[of->joined->shared[l]]);
	TRY(image_packing(p->ctx, of->pack, of->ask.coll, of->ask.root, topo->n_ranks, rank, link, &pack));
	TRY(image_bound(p->ctx, &of->alone.proof, topo, group->job.topo, link, &bound));
	TRY(build(p, of, group, pack, &bound, &p->out->group[of->call][image]));
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

static double
longest(const Topology *topo, const double *sent)
{
	double seconds = 0;
	for (int l = 0; l < topo->n_links; l++)
		seconds = fmax(seconds, sent[l] / (double)topo->link[l].capacity);
	return seconds;
}

/* All groups, as images of those that are planned; and what others would take. */
static Status
build_all(struct planning *p)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	const Topology *topo = p->in->topo;
	double *alone, *rings;
	bool have_rings = true;
	SymmetryWalk walk;
	int element = 0;
	TRY(TEMP_EACH(p->ctx, topo->n_links, alone, rings));
	TRY(symmetry_walk(p->ctx, topo, p->in->sym, &walk));
	do {
		for (int i = 0; i < p->n; i++) {
			const struct planned *of = &p->of[i];
			for (int h = 0; h < p->in->workload->kind[of->kind].n_groups; h++) {
				const JoinedGroup *group = &p->in->group[of->kind][h];
				if (group->like != of->group || group->element != element)
					continue;
				add_links(of, &walk, of->alone_sent, alone);
				add_links(of, &walk, of->ring_sent, rings);
				have_rings = have_rings && of->ring_sent;
				TRY(build_image(p, of, h, &walk));
			}
		}
		progress(p->ctx, "%s: schedules of images: %d of %d", p->phase->name, ++element, p->in->sym->size);
	} while (symmetry_next(&walk));
	p->out->alone = longest(topo, alone);
	p->out->rings = have_rings ? longest(topo, rings) : -1;
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

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
				out->price[j * topo->n_links + l] = plan->level[level].price[j * n_rows
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
		*of = (PhaseCall){ .level = phase_level(p->phase, c), .bytes = bytes_of(call),
			.n_groups = p->in->workload->kind[call->kind].n_groups };
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
	TRY(list_groups(&p));
	if (p.n == 0)
		return fail(ctx, BAD_INPUT, "%s: groups of one rank alone: want two or more in some", phase->name);
	TRY(share_links(&p, &plan));
	TRY(keep_levels(&p, &plan));
	TRY(plan_groups(&p, &plan));
	TRY(build_all(&p));
	TRY(find_shared(&p));
	return state_times(&p);
}

void
phase_free(const JoinedWorkload *in, PhasePlan *phase)
{
	for (int c = 0; phase->group && c < phase->phase->n_calls; c++)
		for (int g = 0; phase->group[c] && g < in->workload->kind[phase->phase->call[c].kind].n_groups; g++)
			text_free(&phase->group[c][g].json);
}
