/* Built-in schedules: for any job, of its ranks and servers alone. What one rank does is made without the rest: nobody
 * writes down the edges of all ranks.
 *
 * Every tree but the paths of gather, scatter and alltoall has one form. One rank of each server is its leader. The
 * servers are a heap: the leader of the one at place p has as children the leaders of those at places p * arity + 1
 * and on. In each server its other ranks are a heap below the leader, likewise. A heap of arity 1 is a chain, one of
 * any number a star. Large messages have a chain of servers with a star in each, so that each tree crosses each
 * server's network once and stays one hop inside; many trees with other leaders share the work. A broadcast on one
 * server needs no others, as all ranks read the root's memory themselves. Small messages have one tree of small arity,
 * or one for each block.
 *
 *   allreduce, 2 servers of 3 ranks, tree 1, chain begins at server 1:      4 -> 1      leaders are 1 and 4
 *                                                                          5 3  2 0
 * Order of additions: a rank adds to its own value those of the ranks of its server, as it has them as children, and
 * then those of other servers. So all ranks get the same bits of an allreduce: one rank has added them. Children are
 * in ascending order of ranks, cyclic from the leader. Values that go down are first for other servers, since they have
 * farther to go. */
#include "choose/built_in_trees.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

enum {
	RANKS_COUNTED = 256,		/* lanes of all pairs of as many as GPUs have; of more, rings stand for them */
	MOST_EDGES = 1 << 17,		/* of a schedule whose number of trees is free */
	STAR = LIMIT_COMM_RANKS,		/* an arity */
	NEAR = 8, FAR = 4		/* arity in a server, and between servers, for small messages */
};

/* Do blocks go straight to the one rank that needs them? */
static bool
is_direct(Collective coll)
{
	return coll == GATHER || coll == SCATTER || coll == ALLTOALL;
}

/* ---- the job ---- */

static Status
group_ranks(struct maker *m)
{
	int *next;
	TRY(TEMP(m->ctx, m->member, m->n));
	TRY(TEMP(m->ctx, m->server, m->n));
	TRY(TEMP(m->ctx, m->index, m->n));
	TRY(TEMP(m->ctx, m->first, m->n_servers + 1));
	TRY(TEMP(m->ctx, next, m->n_servers));
	for (int r = 0; r < m->n; r++) {
		m->server[r] = m->n_servers > 1 ? m->job->server[r] : 0;
		m->index[r] = next[m->server[r]]++;
	}
	for (int q = 0; q < m->n_servers; q++) {
		m->first[q + 1] = m->first[q] + next[q];
		m->largest = next[q] > m->largest ? next[q] : m->largest;
	}
	for (int r = 0; r < m->n; r++)
		m->member[m->first[m->server[r]] + m->index[r]] = r;
	return OK;
}

/* ---- trees ---- */

/* Of a server; not the root, unless that leads or is alone there. */
static int
leader_of(const struct maker *m, const struct tree *t, int q)
{
	int n = size_of(m, q), root = t->root;
	if (root < 0 || m->server[root] != q)
		return m->member[m->first[q] + (t->which < n ? t->which : t->which % n)];
	return m->root_leads || n == 1 ? root : member_at(m, root, 1 + t->which % (n - 1));
}

static int
server_at(const struct maker *m, const struct tree *t, int place)
{
	int q = t->first + place;
	return q < m->n_servers ? q : q - m->n_servers;
}

static int
place_of(const struct maker *m, const struct tree *t, int q)
{
	return q - t->first + (q < t->first ? m->n_servers : 0);
}

/* -1: of the top. */
static int
parent_of(const struct maker *m, const struct tree *t, int rank)
{
	int q = m->server[rank], leader = leader_of(m, t, q), place = place_of(m, t, q);
	if (rank == t->top)
		return -1;
	if (rank == leader)
		return place > 0 ? leader_of(m, t, server_at(m, t, (place - 1) / m->far)) : t->root;
	int i = m->index[rank] - m->index[leader];
	return member_at(m, leader, ((i < 0 ? i + size_of(m, q) : i) - 1) / m->near);
}

/* Into child: the i-th rank of the server, which the root may be, has children there. */
static int
children_near(const struct maker *m, const struct tree *t, int leader, int i, int *child)
{
	int n = 0, size = size_of(m, m->server[leader]);
	for (int64_t k = (int64_t)i * m->near + 1; k <= ((int64_t)i + 1) * m->near && k < size; k++) {
		child[n] = member_at(m, leader, (int)k);
		n += child[n] != t->root;
	}
	return n;
}

/* Those of this rank: *n_near in its server, then those in others. */
static int
list_children(const struct maker *m, const struct tree *t, int *n_near)
{
	int q = m->server[m->me], leader = leader_of(m, t, q), i = m->index[m->me] - m->index[leader];
	int place = place_of(m, t, q), n;
	*n_near = 0;
	if (m->me == t->root && m->me != leader) {
		m->child[0] = leader;
		return 1;
	}
	n = *n_near = children_near(m, t, leader, i < 0 ? i + size_of(m, q) : i, m->child);
	for (int p = place * m->far + 1; m->me == leader && p <= (place + 1) * m->far && p < m->n_servers; p++)
		m->child[n++] = leader_of(m, t, server_at(m, t, p));
	return n;
}

/* ---- tasks ---- */

/* Its lanes are those of m->from and m->to. */
static Status
add_task(struct maker *m, RankTask made)
{
	RankProgram *prog = m->prog;
	RankTask *task = &prog->task[prog->n_tasks++];
	made.extent = prog->n_extents - 1;
	*task = made;
	TRY(NEW(m->ctx, task->from, made.n_from));
	TRY(NEW(m->ctx, task->to, made.n_to));
	memcpy(task->from, m->from, (size_t)made.n_from * sizeof *task->from);
	memcpy(task->to, m->to, (size_t)made.n_to * sizeof *task->to);
	return OK;
}

static RankLane
lane_from(struct maker *m, int rank, int ring)
{
	return (RankLane){ rank, m->lanes_in[rank]++, ring };
}

static RankLane
lane_to(struct maker *m, int rank, int ring)
{
	return (RankLane){ rank, m->lanes_out[rank]++, ring };
}

/* Those down the tree: far ones first. */
static void
lanes_down(struct maker *m, int n, int n_near, int ring)
{
	for (int i = 0; i < n; i++)
		m->to[i] = lane_to(m, m->child[i < n - n_near ? n_near + i : i - (n - n_near)], ring);
}

/* What a rank does with what comes up a tree. */
static Status
add_task_up(struct maker *m, int s, int parent, int n, int n_near)
{
	RankTask task = { .segment = s, .own = true, .ring = -1, .n_from = n };
	int ring = rings_of(m, m->me);
	for (int i = 0; i < n; i++)
		m->from[i] = lane_from(m, m->child[i], rings_of(m, m->child[i]));
	if (parent >= 0) {
		m->to[0] = lane_to(m, parent, ring);
		task.n_to = 1;
	} else {
		task.output = task.complete = true;
		if (m->down)
			lanes_down(m, n, n_near, ring);
		task.n_to = m->down ? n : 0;
	}
	if (task.n_to > 0)
		task.ring = ring;
	return add_task(m, task);
}

/* Edges that what goes down has come over. */
static int
depth_of(const struct maker *m, const struct tree *t, int rank)
{
	int depth = 0;
	while ((rank = parent_of(m, t, rank)) >= 0)
		depth++;
	return depth;
}

/* With what goes down, unless the top has done so with what came up. */
static Status
add_task_down(struct maker *m, int s, const struct tree *t, int parent, int n, int n_near)
{
	RankTask task = { .segment = s, .own = parent < 0, .output = parent >= 0, .complete = true,
	    .hops = m->up ? 0 : depth_of(m, t, m->me), .n_from = parent >= 0, .n_to = n };
	int ring = rings_of(m, m->me) + m->up;
	if (m->up && parent < 0)
		return OK;
	if (parent >= 0)
		m->from[0] = lane_from(m, parent, rings_of(m, parent) + (m->up && parent != t->top));
	task.ring = n > 0 ? ring : -1;
	lanes_down(m, n, n_near, ring);
	return add_task(m, task);
}

static void
count_pair(struct maker *m, int from, int to)
{
	int lanes = ++m->pair[from * m->n + to];
	m->prog->pair_lanes_max = lanes > m->prog->pair_lanes_max ? lanes : m->prog->pair_lanes_max;
}

static void
count_pairs(struct maker *m, const struct tree *t)
{
	for (int r = 0; r < m->n && m->pair; r++) {
		int parent = parent_of(m, t, r);
		if (parent >= 0 && m->up)
			count_pair(m, r, parent);
		if (parent >= 0 && m->down)
			count_pair(m, parent, r);
	}
}

/* The next segment goes along this tree. */
static Status
add_tree(struct maker *m, const Extent *extent, int first, int which, int root)
{
	int s = m->n_trees, n, n_near;
	struct tree t = { .first = first, .which = which, .root = root };
	t.top = root >= 0 ? root : leader_of(m, &t, first);
	m->prog->extent[m->prog->n_extents++] = *extent;
	int parent = parent_of(m, &t, m->me);
	n = list_children(m, &t, &n_near);
	if (m->up)
		TRY(add_task_up(m, s, parent, n, n_near));
	if (m->down)
		TRY(add_task_down(m, s, &t, parent, n, n_near));
	count_pairs(m, &t);
	rings_count(m, &t);
	return OK;
}

/* ---- collectives ---- */

static int
most_trees(const struct maker *m, int wanted)
{
	int edges = m->prog->coll == ALLREDUCE ? 2 * (m->n - 1) : m->n - 1;
	int most = edges > 0 ? MOST_EDGES / edges : 1;
	return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

static Status
new_trees(struct maker *m, int n)
{
	m->prog->segments_max = n;
	TRY(NEW(m->ctx, m->prog->extent, n));
	return NEW(m->ctx, m->prog->task, 2 * (size_t)n);
}

/* Part `begin` of `of`. */
static Extent
part_extent(int begin, int of)
{
	Extent extent = { .begin = FRAC_ZERO, .end = FRAC_ONE };
	frac_make(begin, of, &extent.begin);
	frac_make(begin + 1, of, &extent.end);
	return extent;
}

/* Tree t of a large allreduce: each rank of the largest server leads some; chains begin at several servers, so that
 * the load of their ends, which is less, is shared. */
static Status
make_allreduce(struct maker *m, bool small)
{
	int largest = m->largest, leaders = small ? 1 : most_trees(m, largest);
	int starts = small ? 1 : most_trees(m, leaders * m->n_servers) / leaders, n = leaders * starts;
	TRY(new_trees(m, n));
	frac_make(1, n, &m->prog->longest[0]);
	for (int t = 0; t < n && m->n > 1; t++) {
		Extent extent = part_extent(t, n);
		TRY(add_tree(m, &extent, (int)((int64_t)(t / leaders) * m->n_servers / starts),
		    (int)((int64_t)(t % leaders) * largest / leaders), -1));
	}
	return OK;
}

/* Broadcast, and reduce, which is its reverse. Large messages go by a leader that is not the root, so that every rank
 * sends, or adds, as much as the root; where the root leads there is one tree. */
static Status
make_rooted(struct maker *m)
{
	int root = m->prog->root, largest = m->largest;
	int n = m->root_leads ? 1 : most_trees(m, m->n_servers > 1 ? largest : largest - 1);
	TRY(new_trees(m, n));
	frac_make(1, n, &m->prog->longest[0]);
	for (int t = 0; t < n && m->n > 1; t++) {
		Extent extent = part_extent(t, n);
		TRY(add_tree(m, &extent, m->server[root], (int)((int64_t)t * largest / n), root));
	}
	return OK;
}

/* Allgather and reducescatter. */
static Status
make_blocks(struct maker *m)
{
	Extent extent = part_extent(0, 1);
	TRY(new_trees(m, m->n));
	m->prog->longest[0] = FRAC_ONE;
	for (int r = 0; r < m->n && m->n > 1; r++) {
		*(m->up ? &extent.send_block : &extent.recv_block) = r;
		TRY(add_tree(m, &extent, m->server[r], m->index[r], r));
	}
	return OK;
}

/* Is there a block that goes from one of these ranks to the other? */
static bool
has_path(const struct maker *m, int from, int to)
{
	int root = m->prog->root;
	return from != to && (root < 0 || (m->prog->coll == GATHER ? to : from) == root);
}

/* A publisher has a ring for each of its blocks. */
static Status
add_path(struct maker *m, int from, int to)
{
	RankProgram *prog = m->prog;
	bool sends = from == m->me;
	int ring = prog->coll == GATHER ? 0 : to - (to > from);
	RankTask task = { .segment = collective_demand_of(prog->coll, m->n, prog->root, from, to), .own = sends,
	    .output = !sends, .complete = true, .ring = sends ? ring : -1, .hops = !sends, .n_from = !sends,
	    .n_to = sends };
	Extent *extent = &prog->extent[prog->n_extents++];
	*extent = part_extent(0, 1);
	extent->send_block = prog->coll == GATHER ? 0 : to;
	extent->recv_block = prog->coll == SCATTER ? 0 : from;
	if (sends)
		m->to[0] = lane_to(m, to, ring);
	else
		m->from[0] = lane_from(m, from, ring);
	return add_task(m, task);
}

static Status
make_paths(struct maker *m)
{
	RankProgram *prog = m->prog;
	int me = m->me;
	TRY(new_trees(m, 2 * m->n));
	m->prog->segments_max = (prog->root < 0 ? 2 : 1) * (m->n - 1);
	prog->keep_input = prog->coll == ALLTOALL && m->n > 1;
	prog->depth = 1;
	prog->longest[0] = m->n > 1 ? FRAC_ONE : FRAC_ZERO;
	for (int from = 0; from < m->n; from++) {
		for (int to = 0; to < m->n && from == me; to++)
			if (has_path(m, me, to))
				TRY(add_path(m, me, to));
		if (has_path(m, from, me))
			TRY(add_path(m, from, me));
	}
	prog->rings_max = m->n == 1 ? 0 : prog->coll == GATHER ? 1 : m->n - 1;
	prog->pair_lanes_max = m->n > 1;
	prog->n_rings = prog->root < 0 || (prog->coll == GATHER) != (prog->root == me) ? prog->rings_max : 0;
	return OK;
}

static Status
make_trees(struct maker *m, bool small)
{
	Ctx *ctx = m->ctx;
	RankProgram *prog = m->prog;
	TRY(group_ranks(m));
	TRY(rings_new(m));
	TRY(TEMP(ctx, m->child, m->n));
	if (m->n <= RANKS_COUNTED)
		TRY(TEMP(ctx, m->pair, m->n * m->n));
	if (prog->coll == ALLREDUCE)
		TRY(make_allreduce(m, small));
	else if (prog->root >= 0)
		TRY(make_rooted(m));
	else
		TRY(make_blocks(m));
	for (int r = 0; r < m->n; r++)
		prog->rings_max = rings_of(m, r) > prog->rings_max ? rings_of(m, r) : prog->rings_max;
	prog->n_rings = rings_of(m, m->me);
	if (!m->pair)
		prog->pair_lanes_max = prog->rings_max;
	prog->depth = 2 * m->n_servers;
	for (int n = 1; small && n < m->n; n *= 2)
		prog->depth += 2;
	return OK;
}

static Status
make(struct maker *m, bool small)
{
	Ctx *ctx = m->ctx;
	TRY(TEMP(ctx, m->lanes_out, m->n));
	TRY(TEMP(ctx, m->lanes_in, m->n));
	TRY(TEMP(ctx, m->from, m->n));
	TRY(TEMP(ctx, m->to, m->n));
	TRY(NEW(ctx, m->prog->longest, 1));
	TRY(is_direct(m->prog->coll) ? make_paths(m) : make_trees(m, small));
	return sched_list_peers(ctx, m->lanes_out, m->lanes_in, m->prog);
}

/* ---- what others ask ---- */

/* Do all read what its root has, on one server? */
static bool
is_read_by_all(const struct job *job, Collective coll)
{
	return coll == BROADCAST && job->n_servers <= 1;
}

Status
built_in_program(Ctx *ctx, const struct job *job, const struct built_in *which, int rank, RankProgram **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	RankProgram *prog;
	Collective coll = which->coll;
	TRY(NEW(ctx, prog, 1));
	*prog = (RankProgram){ .coll = coll, .root = collective_rooted(coll) ? which->root : -1,
	    .n_ranks = job->n_ranks, .rank = rank, .n_parts = 1 };
	struct maker m = { .ctx = ctx, .job = job, .prog = prog, .n = job->n_ranks, .me = rank,
		.n_servers = job->n_servers > 1 ? job->n_servers : 1, .near = which->small ? NEAR : STAR,
		.far = which->small ? FAR : 1,
		.root_leads = which->small || !collective_rooted(coll) || is_read_by_all(job, coll),
		.up = collective_reduces(coll), .down = coll != REDUCE && coll != REDUCESCATTER };
	TRY(make(&m, which->small));
	arena_release(&ctx->scratch, mark);
	*out = prog;
	return OK;
}

const char *
built_in_form(const struct job *job, const struct built_in *which)
{
	if (is_direct(which->coll))
		return "direct";
	if (job->n_servers > 1)
		return which->small ? "levels" : "chains";
	if (which->small && job->n_ranks > 1 + NEAR)
		return "levels";
	return which->small || is_read_by_all(job, which->coll) ? "star" : "onehop";
}

Status
built_in_digest(Ctx *ctx, const struct job *job, const struct built_in *which, char digest[DIGEST_ROOM])
{
	Text text = { 0 };
	text_printf(&text, "blink built in 1: %s, %s, root %d, servers", built_in_form(job, which),
	    collective_name(which->coll), collective_rooted(which->coll) ? which->root : -1);
	for (int r = 0; r < job->n_ranks; r++)
		text_printf(&text, " %d", job->n_servers > 1 ? job->server[r] : 0);
	bool failed = text.failed;
	if (!failed)
		digest_of(text.data, text.size, digest);
	text_free(&text);
	return failed ? fail_memory(ctx) : OK;
}
