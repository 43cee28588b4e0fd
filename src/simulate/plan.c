/* A schedule as hops and values. A value is a segment on a rank, on the way up or on the way down: it is there once all
 * hops into it have arrived, and then goes out. At a root the two are one value. Values without a hop into them are
 * input. */
#include "model/blocks.h"
#include "model/line_room.h"
#include "schedule/schedule.h"
#include "simulate/run.h"

#include <string.h>

/* The last hop of this phase through each switch, and for which rank. */
struct passing {
	int mark, rank, hop;
};

struct build {
	SimPlan *plan;
	const Topology *topo;
	struct passing *last;	/* of each vertex */
	int *up, *down;		/* of each rank: its values of the segment that is at hand; -1: none */
	bool reduces;
};

static int
value_of(struct build *b, int *at, int segment)
{
	if (*at < 0) {
		*at = b->plan->n_values++;
		b->plan->value_segment[*at] = segment;
	}
	return *at;
}

static void
pass(struct build *b, const Edge *edge, int rank, int mark, int hop)
{
	for (int i = 0; i < edge->n_links; i++) {
		const Link *link = &b->topo->link[edge->link[i]];
		b->last[link->from] = b->last[link->to] = (struct passing){ mark, rank, hop };
	}
}

/* Where the links of a path have entered, or for `leaves` leave, vertex v: that many of them lie before. */
static int
cut_at(const Topology *topo, const SimHop *hop, int v, bool leaves)
{
	int i = 0;
	while (i < hop->n_path && (leaves ? topo->link[hop->path[i]].from : topo->link[hop->path[i]].to) != v)
		i++;
	return leaves ? i : i + 1;
}

/* path = the first `n` links of a, then those of b. */
static Status
join_paths(Ctx *ctx, SimHop *hop, const int *a, int n_a, const int *b, int n_b)
{
	int *path;
	TRY(NEW(ctx, path, n_a + n_b));
	for (int i = 0; i < n_a; i++)
		path[i] = a[i];
	for (int i = 0; i < n_b; i++)
		path[n_a + i] = b[i];
	hop->path = path;
	hop->n_path = n_a + n_b;
	return OK;
}

/* An edge down that begins at a switch takes what another hop brings there. */
static Status
follow(Ctx *ctx, struct build *b, SimHop *hop)
{
	int v = b->topo->link[hop->link[0]].from;
	if (v == hop->src)
		return OK;
	const SimHop *before = &b->plan->hop[b->last[v].hop];
	while (b->topo->link[before->link[0]].from == v && before->feeder >= 0)
		before = &b->plan->hop[before->feeder];
	hop->feeder = (int)(before - b->plan->hop);
	return join_paths(ctx, hop, before->path, cut_at(b->topo, before, v, false), hop->link, hop->n_links);
}

/* An edge up that ends at a switch is added there to what another hop takes on. */
static Status
merge(Ctx *ctx, struct build *b, SimHop *hop)
{
	int v = b->topo->link[hop->link[hop->n_links - 1]].to;
	if (v == hop->dst)
		return OK;
	const SimHop *before = &b->plan->hop[b->last[v].hop];
	int skip = cut_at(b->topo, before, v, true);
	hop->adds = false;
	return join_paths(ctx, hop, hop->link, hop->n_links, before->path + skip, before->n_path - skip);
}

static Status
add_hop(Ctx *ctx, struct build *b, int segment, int e, int mark)
{
	const Tree *tree = &b->plan->sched->segment[segment].tree;
	const Edge *edge = tree_edge(tree, e);
	SimHop *hop = &b->plan->hop[b->plan->n_hops];
	bool up = e >= tree->n_down;
	*hop = (SimHop){ .segment = segment, .src = edge->src, .dst = edge->dst, .edge = e, .up = up,
		.adds = up && b->reduces, .n_links = edge->n_links, .link = edge->link, .n_path = edge->n_links,
		.path = edge->link, .feeder = -1 };
	TRY(up ? merge(ctx, b, hop) : follow(ctx, b, hop));
	hop->from = value_of(b, up || edge->src == tree->root ? &b->up[edge->src] : &b->down[edge->src], segment);
	hop->to = value_of(b, up ? &b->up[edge->dst] : &b->down[edge->dst], segment);
	pass(b, edge, up ? edge->dst : edge->src, mark, b->plan->n_hops++);
	return OK;
}

static Status
add_segment(Ctx *ctx, struct build *b, int s)
{
	const Tree *tree = &b->plan->sched->segment[s].tree;
	for (int e = 0; e < tree->n_up; e++)
		TRY(add_hop(ctx, b, s, tree->n_down + e, 2 * s + 1));
	for (int e = 0; e < tree->n_down; e++)
		TRY(add_hop(ctx, b, s, e, 2 * s + 2));
	for (int e = 0; e < tree->n_up + tree->n_down; e++) {
		const Edge *edge = tree_edge(tree, e);
		b->up[edge->src] = b->up[edge->dst] = b->down[edge->src] = b->down[edge->dst] = -1;
	}
	b->up[tree->root] = -1;
	return OK;
}

/* list[first[k] .. first[k + 1] - 1]: hops whose key is k, in order. Hops without a key have -1. */
static Status
list_by(Ctx *ctx, const SimPlan *plan, int n_keys, int (*key)(const SimHop *hop), int **first, int **list)
{
	TRY(NEW(ctx, *first, n_keys + 1));
	TRY(NEW(ctx, *list, plan->n_hops));
	for (int h = 0; h < plan->n_hops; h++)
		if (key(&plan->hop[h]) >= 0)
			(*first)[key(&plan->hop[h]) + 1]++;
	for (int k = 0; k < n_keys; k++)
		(*first)[k + 1] += (*first)[k];
	for (int h = 0; h < plan->n_hops; h++)
		if (key(&plan->hop[h]) >= 0)
			(*list)[(*first)[key(&plan->hop[h])]++] = h;
	/* Each has become the one after it. */
	for (int k = n_keys; k > 0; k--)
		(*first)[k] = (*first)[k - 1];
	(*first)[0] = 0;
	return OK;
}

static int
key_to(const SimHop *hop)
{
	return hop->to;
}

/* A hop that follows another one is no concern of its sender. */
static int
key_from(const SimHop *hop)
{
	return hop->feeder < 0 ? hop->from : -1;
}

static int
key_feeder(const SimHop *hop)
{
	return hop->feeder;
}

/* Hops by their turns, which are below n; of equal ones the order stays. count: n + 1. */
static void
sort_by_turn(const SimPlan *plan, int n, int *count, int *order, int *sorted)
{
	memset(count, 0, (size_t)(n + 1) * sizeof *count);
	for (int h = 0; h < plan->n_hops; h++)
		count[plan->hop[h].turn + 1]++;
	for (int t = 0; t < n; t++)
		count[t + 1] += count[t];
	for (int i = 0; i < plan->n_hops; i++)
		sorted[count[plan->hop[order[i]].turn]++] = order[i];
	memcpy(order, sorted, (size_t)plan->n_hops * sizeof *order);
}

/* Each rank begins with the segments whose root it is. Of one root, where blocks have paths of their own, it begins
 * with those whose next rank comes after it, around, so that not all send to the same rank first; else those first in
 * the file come first. Ranks that have the same place in their blocks so have the same order. */
static Status
order_issue(Ctx *ctx, SimPlan *plan)
{
	const Schedule *sched = plan->sched;
	int n_ranks = sched->topo->n_ranks, *count, *order, *sorted, *end;
	Blocks blocks;
	TRY(blocks_find(ctx, sched->topo, &blocks));
	TRY(TEMP(ctx, count, n_ranks + 1));
	TRY(TEMP_EACH(ctx, plan->n_hops, order, sorted));
	TRY(TEMP(ctx, end, n_ranks));
	TRY(NEW(ctx, plan->first_issue, n_ranks + 1));
	TRY(NEW(ctx, plan->issue, plan->n_hops));
	for (int h = 0; h < plan->n_hops; h++) {
		SimHop *hop = &plan->hop[h];
		order[h] = h;
		hop->turn = blocks_turns(&blocks, hop->src, hop->dst);
		plan->first_issue[hop->src + 1] += hop->feeder < 0;
	}
	if (collective_demand(sched->coll, n_ranks, sched->root, 0).kind == DEMAND_PATH)
		sort_by_turn(plan, n_ranks, count, order, sorted);
	for (int h = 0; h < plan->n_hops; h++) {
		SimHop *hop = &plan->hop[h];
		hop->turn = blocks_turns(&blocks, hop->src, sched->segment[hop->segment].tree.root);
	}
	sort_by_turn(plan, n_ranks, count, order, sorted);
	for (int r = 0; r < n_ranks; r++) {
		plan->first_issue[r + 1] += plan->first_issue[r];
		end[r] = plan->first_issue[r];
	}
	for (int i = 0; i < plan->n_hops; i++) {
		SimHop *hop = &plan->hop[order[i]];
		hop->turn = hop->feeder < 0 ? end[hop->src] - plan->first_issue[hop->src] : 0;
		if (hop->feeder < 0)
			plan->issue[end[hop->src]++] = order[i];
	}
	return OK;
}

static Status
list_hops(Ctx *ctx, SimPlan *plan)
{
	TRY(list_by(ctx, plan, plan->n_values, key_to, &plan->first_in, &plan->in));
	TRY(list_by(ctx, plan, plan->n_values, key_from, &plan->first_out, &plan->out));
	TRY(list_by(ctx, plan, plan->n_hops, key_feeder, &plan->first_follower, &plan->follower));
	return order_issue(ctx, plan);
}

static Status
count_edges(Ctx *ctx, const Schedule *sched, int *out)
{
	int64_t n = 0;
	for (int s = 0; s < sched->n_segments; s++)
		n += sched->segment[s].tree.n_up + sched->segment[s].tree.n_down;
	if (n > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: %lld edges: want at most %d", sched->topo->name, (long long)n,
		    (int)LIMIT_TREE_EDGES);
	*out = (int)n;
	return OK;
}

static Status
add_segments(Ctx *ctx, struct build *b)
{
	const Topology *topo = b->topo;
	TRY(TEMP(ctx, b->last, topo->n_vertices));
	TRY(TEMP_EACH(ctx, topo->n_ranks, b->up, b->down));
	for (int r = 0; r < topo->n_ranks; r++)
		b->up[r] = b->down[r] = -1;
	for (int s = 0; s < b->plan->sched->n_segments; s++)
		TRY(add_segment(ctx, b, s));
	return OK;
}

#define LINE_RATE (23 * BYTES_PER_GB)

/* As libblink has lines: NVLinks of 20 GB/s are those of the P100, whose warps do not store 128 bytes at once. */
static bool
hop_has_lines(const Topology *topo, const SimHop *hop)
{
	bool lines = hop->feeder < 0 && hop->n_path == hop->n_links
	    && topo->vertex[hop->src].node == topo->vertex[hop->dst].node;
	for (int i = 0; i < hop->n_links; i++) {
		const Link *link = &topo->link[hop->link[i]];
		lines = lines && link->class == LINK_NVLINK && link->capacity / link->count >= LINE_RATE;
	}
	return lines;
}

static bool
has_lines(const SimPlan *plan)
{
	bool lines = true;
	for (int h = 0; h < plan->n_hops; h++)
		lines = lines && hop_has_lines(plan->sched->topo, &plan->hop[h]);
	return lines;
}

/* Hops from one rank to another, at most. */
static Status
lanes_of_pair(Ctx *ctx, const SimPlan *plan, int *out)
{
	int *count, n = plan->sched->topo->n_ranks;
	TRY(TEMP(ctx, count, n));
	*out = 1;
	for (int r = 0; r < n; r++) {
		for (int i = plan->first_issue[r]; i < plan->first_issue[r + 1]; i++) {
			int *lanes = &count[plan->hop[plan->issue[i]].dst];
			*out = ++*lanes > *out ? *lanes : *out;
		}
		for (int i = plan->first_issue[r]; i < plan->first_issue[r + 1]; i++)
			count[plan->hop[plan->issue[i]].dst] = 0;
	}
	return OK;
}

static bool
has_room(const SimPlan *plan, int lanes, int64_t m, int64_t *bytes)
{
	int64_t longest = 0;
	sim_segment_bytes(plan, m, bytes);
	for (int s = 0; s < plan->sched->n_segments; s++)
		longest = bytes[s] > longest ? bytes[s] : longest;
	return protocol_bytes(SIM_LINES, longest) <= line_room(plan->sched->topo->n_ranks) / lanes;
}

/* The longest message for whose lines a pair has room; 0: none. */
static Status
find_lines(Ctx *ctx, SimPlan *plan)
{
	int64_t *bytes, least = 0, most = LIMIT_MESSAGE;
	int lanes;
	if (plan->n_hops == 0 || !has_lines(plan))
		return OK;
	TRY(lanes_of_pair(ctx, plan, &lanes));
	TRY(TEMP(ctx, bytes, plan->sched->n_segments));
	if (plan->bytes) {
		plan->lines = has_room(plan, lanes, 1, bytes) ? LIMIT_MESSAGE : 0;
		return OK;
	}
	while (least < most) {
		int64_t middle = least + (most - least + 1) / 2;
		if (has_room(plan, lanes, middle, bytes))
			least = middle;
		else
			most = middle - 1;
	}
	plan->lines = least;
	return OK;
}

Status
sim_prepare(Ctx *ctx, const Schedule *sched, SimPlan **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimPlan *plan;
	PartEnd *split = NULL;
	int n = 0;
	if (!sched_is_list(sched)) {
		Schedule *all;
		TRY(sched_expand(ctx, sched->topo->name, sched, &all));
		sched = all;
	}
	TRY(count_edges(ctx, sched, &n));
	if (sched->n_parts)
		TRY(sched_split(ctx, sched->topo->name, sched, &split));
	TRY(NEW(ctx, plan, 1));
	*plan = (SimPlan){ .sched = sched, .split = split };
	if (sched->n_parts) {
		int64_t *begin;
		TRY(NEW(ctx, begin, sched->n_segments));
		for (int s = 0; s < sched->n_segments; s++)
			begin[s] = sched->part[sched->segment[s].part].setup;
		plan->begin = begin;
	}
	TRY(NEW(ctx, plan->hop, n));
	TRY(NEW(ctx, plan->value_segment, 2 * (size_t)n + 1));
	struct build b = { .plan = plan, .topo = sched->topo, .reduces = collective_reduces(sched->coll) };
	TRY(add_segments(ctx, &b));
	TRY(list_hops(ctx, plan));
	TRY(find_lines(ctx, plan));
	arena_release(&ctx->scratch, mark);
	*out = plan;
	return OK;
}

Status
sim_prepare_any(Ctx *ctx, const Schedule *sched, SimPlan **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimPlan *plan;
	Status status = sim_prepare(ctx, sched, out);
	if (status != LIMIT || sched->n_parts)
		return status;
	ctx->error.status = OK;
	arena_release(&ctx->scratch, mark);
	TRY(NEW(ctx, plan, 1));
	*plan = (SimPlan){ .sched = sched, .too_large = true };
	*out = plan;
	return OK;
}

/* ---- several at once ---- */

static Status
map_links(Ctx *ctx, const int *link, int n, const int *of, const int **out)
{
	int *mapped;
	TRY(NEW(ctx, mapped, n));
	for (int i = 0; i < n; i++)
		mapped[i] = of[link[i]];
	*out = mapped;
	return OK;
}

/* The hops and segments of a part come after those of the parts before it. */
static Status
add_part(Ctx *ctx, const SimPart *part, SimPlan *plan, Schedule *sched, int64_t *bytes, int64_t *begin)
{
	const SimPlan *from = part->plan;
	int segment = sched->n_segments, hop = plan->n_hops;
	sim_segment_bytes(from, part->m, &bytes[segment]);
	for (int s = 0; s < from->sched->n_segments; s++) {
		Segment *to = &sched->segment[sched->n_segments++];
		*to = from->sched->segment[s];
		to->part = 0;
		to->tree.root = part->rank[to->tree.root];
		begin[segment + s] = part->begin + (from->begin ? from->begin[s] : 0);
	}
	for (int h = 0; h < from->n_hops; h++) {
		SimHop *to = &plan->hop[plan->n_hops++];
		*to = from->hop[h];
		to->segment += segment;
		to->src = part->rank[to->src];
		to->dst = part->rank[to->dst];
		to->from += plan->n_values;
		to->to += plan->n_values;
		to->feeder += to->feeder < 0 ? 0 : hop;
		TRY(map_links(ctx, to->link, to->n_links, part->link, &to->link));
		TRY(map_links(ctx, to->path, to->n_path, part->link, &to->path));
	}
	for (int v = 0; v < from->n_values; v++)
		plan->value_segment[plan->n_values + v] = from->value_segment[v] + segment;
	plan->n_values += from->n_values;
	return OK;
}

Status
sim_join(Ctx *ctx, const Topology *topo, const SimPart *part, int n, SimPlan **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimPlan *plan;
	Schedule *sched;
	int64_t edges = 0, *bytes, *begin;
	size_t segments = 0, values = 0;
	for (int i = 0; i < n; i++) {
		edges += part[i].plan->n_hops;
		segments += (size_t)part[i].plan->sched->n_segments;
		values += (size_t)part[i].plan->n_values;
	}
	if (edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: %lld edges of %d schedules: want at most %d", topo->name,
		    (long long)edges, n, (int)LIMIT_TREE_EDGES);
	TRY(NEW(ctx, plan, 1));
	TRY(NEW(ctx, sched, 1));
	TRY(NEW(ctx, sched->segment, segments));
	TRY(NEW_EACH(ctx, segments, bytes, begin));
	TRY(NEW(ctx, plan->hop, edges));
	TRY(NEW(ctx, plan->value_segment, values));
	sched->topo = topo;
	sched->root = -1;
	plan->lines = LIMIT_MESSAGE;
	for (int i = 0; i < n; i++)
		plan->lines = part[i].m > part[i].plan->lines ? 0 : plan->lines;
	for (int i = 0; i < n; i++)
		TRY(add_part(ctx, &part[i], plan, sched, bytes, begin));
	plan->sched = sched;
	plan->bytes = bytes;
	plan->begin = begin;
	TRY(list_hops(ctx, plan));
	arena_release(&ctx->scratch, mark);
	*out = plan;
	return OK;
}

/* Rounded up. */
static int64_t
part_of(const Schedule *sched, const Segment *segment, int64_t length)
{
	Frac begin, end, part;
	if (!sched_extent(sched, segment, &begin, &end))
		return length;
	if (!frac_sub(end, begin, &part))
		return frac_floor_mul(end, length) - frac_floor_mul(begin, length);
	int64_t whole = frac_floor_mul(part, length);
	return whole + ((Wide)whole * part.den < part.num * length);
}

/* Blocks and segments are rounded up, so that no more than M is never less, and segments of one fraction are equal;
 * libblink rounds where they begin, which makes some of them a byte shorter. */
void
sim_segment_bytes(const SimPlan *plan, int64_t m, int64_t *bytes)
{
	const Schedule *sched = plan->sched;
	int64_t n = collective_has_blocks(sched->coll) ? sched->topo->n_ranks : 1, block = (m - 1) / n + 1;
	int64_t part_end[N_LINK_CLASSES] = { m };
	if (plan->bytes) {
		memcpy(bytes, plan->bytes, (size_t)sched->n_segments * sizeof *bytes);
		return;
	}
	if (sched->n_parts)
		split_message(plan->split, sched->n_parts, m, part_end);
	for (int s = 0; s < sched->n_segments; s++) {
		const Segment *segment = &sched->segment[s];
		int64_t length = block;
		if (sched->n_parts) {
			int p = segment->part;
			int64_t upto = (int64_t)((Wide)part_end[p] * block / m);
			length = upto - (p ? (int64_t)((Wide)part_end[p - 1] * block / m) : 0);
		}
		bytes[s] = part_of(sched, segment, length);
	}
}

/* ---- blocks of lengths of their own ---- */

/* No time is less than what the lengths prove, but for its last digits. */
static Status
bound_matrix(Ctx *ctx, const Schedule *sched, const int64_t *bytes, int64_t m, Schedule *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *length;
	double us;
	TRY(TEMP(ctx, length, sched->topo->n_links));
	for (int l = 0; l < sched->topo->n_links; l++)
		length[l] = sched->matrix ? sched->matrix->length[l] : 1;
	const ByteMatrix matrix = { .bytes = bytes, .length = length };
	TRY(sched_matrix_bound(ctx, sched->topo->name, sched->topo, &matrix, &us));
	int64_t time = (int64_t)(us * 1000 * PS_PER_NS * (1 - 1e-9));
	*out = *sched;
	out->bound.rate = sim_algorithm_rate(m, time > 0 ? time : 1);
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
sim_prepare_matrix(Ctx *ctx, const Schedule *sched, const int64_t *bytes, SimPlan **out, int64_t *m)
{
	int64_t *own;
	Schedule *bounded;
	if (sched->n_parts > 1)
		return fail(ctx, INFEASIBLE, "%s: parts over several link classes: want a schedule without, for "
		    "blocks of other lengths", sched->topo->name);
	*m = alltoall_message(bytes, sched->topo->n_ranks);
	TRY(NEW(ctx, bounded, 1));
	TRY(bound_matrix(ctx, sched, bytes, *m, bounded));
	TRY(sim_prepare(ctx, bounded, out));
	TRY(NEW(ctx, own, (*out)->sched->n_segments));
	for (int s = 0; s < (*out)->sched->n_segments; s++) {
		const Segment *segment = &(*out)->sched->segment[s];
		own[s] = part_of((*out)->sched, segment, bytes[sched_segment_block((*out)->sched, segment)]);
	}
	(*out)->bytes = own;
	(*out)->lines = 0;
	return find_lines(ctx, *out);
}
