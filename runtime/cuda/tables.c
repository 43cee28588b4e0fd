/* Tables: the program of a plan as kernels read it, uploaded when the plan is first used. */
#include "cuda/calls.h"
#include "cuda/multicast.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

/* Part of a schedule that has others for NVLink go through the host, so that they take links of their own. */
enum gpu_route
gpu_route_of(const struct gpu *g, const RankProgram *prog, int part, int peer)
{
	const struct gpu_peer *p = &g->peer[peer];
	bool planned = prog->classes && !(prog->classes[part] >> LINK_NVLINK & 1);
	if (p->local < 0)
		return GPU_ROUTE_NET;
	if (!p->region[GPU_ROUTE_HOST])
		return GPU_ROUTE_DIRECT;
	return planned || !p->direct ? GPU_ROUTE_HOST : GPU_ROUTE_DIRECT;
}

/* ---- a program ---- */

/* The same memory on the host, where it is made, and on the GPU, where its pointers point to. */
struct image {
	const struct gpu *g;
	const RankProgram *prog;
	size_t bytes;
	char *host;
	CUdeviceptr device, partners_at;
	struct gpu_task *task;
	struct gpu_lane *lane;
	struct gpu_partner *partner;
	uint16_t *order;		/* [GPU_COUNTED], at the end */
	int n_lanes, n_publishes, n_partners;
	int *trees;			/* of a switched program: of each root, so far; NULL: it is none */
	int roots_trees;		/* the most of them */
	int root, tree, segment;	/* of the last task: which of the root's trees, for which segment */
};

/* The other end of a lane, by the lane's route. */
static void
put_partner(struct image *im, const RankLane *lane, enum gpu_route route)
{
	struct gpu_meeting *own = gpu_meeting_of(im->g, im->prog->rank, lane->rank, route);
	int i = 0;
	while (i < im->n_partners && im->partner[i].own != own)
		i++;
	if (i == im->n_partners)
		im->partner[im->n_partners++] = (struct gpu_partner){ .own = own,
		    .theirs = gpu_meeting_of(im->g, lane->rank, im->prog->rank, route), .peer = lane->rank };
	if (lane->lane >= im->partner[i].n_lanes)
		im->partner[i].n_lanes = lane->lane + 1;
}

/* The number of the tree in a switched program: all ranks take part in all of its trees, so theirs is the same. */
static void
count_tree(struct image *im, const RankTask *task)
{
	bool is_root = task->own && (task->n_from > 0 || !collective_reduces(im->prog->coll));
	im->root = is_root ? im->prog->rank : task->own ? task->to[0].rank : task->from[0].rank;
	if (task->segment != im->segment) {
		im->segment = task->segment;
		im->tree = im->trees[im->root]++;
	}
	im->roots_trees = im->tree < im->roots_trees ? im->roots_trees : im->tree + 1;
}

/* A lane of such a tree has its number: of an allreduce's two, the first goes up. Its ring is at the same place in the
 * memory of all ranks. */
static void
put_switched(const struct image *im, int reader, struct gpu_lane *out)
{
	int stages = gpu_multicast_stages(im->prog->coll);
	out->lane = im->tree * stages + (stages > 1 && reader != im->root);
	for (int half = 0; half < 2; half++)
		out->pair.ring[half] = gpu_multicast_ring(im->g, im->root, half);
}

static void
put_lane(struct image *im, const RankLane *lane, int part, bool publishes)
{
	const struct gpu *g = im->g;
	int me = im->prog->rank;
	struct gpu_lane *out = &im->lane[im->n_lanes++];
	enum gpu_route route = im->trees ? GPU_ROUTE_DIRECT : gpu_route_of(g, im->prog, part, lane->rank);
	*out = (struct gpu_lane){ .peer = lane->rank, .lane = lane->lane };
	gpu_pair_of(g, publishes ? me : lane->rank, publishes ? lane->rank : me, route, &out->pair);
	if (im->trees)
		put_switched(im, publishes ? lane->rank : me, out);
	else if (g->copies && !collective_reduces(im->prog->coll))
		put_partner(im, lane, route);
}

static void
put_task(struct image *im, const RankTask *task, struct gpu_task *out)
{
	const Extent *x = &im->prog->extent[task->extent];
	if (im->trees)
		count_tree(im, task);
	*out = (struct gpu_task){ .send_block = x->send_block, .recv_block = x->recv_block,
	    .begin = (int64_t)x->begin.num, .begin_of = x->begin.den, .end = (int64_t)x->end.num,
	    .end_of = x->end.den, .part = x->part, .n_from = task->n_from, .n_to = task->n_to, .from = im->n_lanes,
	    .to = im->n_lanes + task->n_from, .publishes = im->n_publishes, .own = task->own,
	    .output = task->output, .complete = task->complete };
	for (int i = 0; i < task->n_from; i++)
		put_lane(im, &task->from[i], x->part, false);
	for (int i = 0; i < task->n_to; i++)
		put_lane(im, &task->to[i], x->part, true);
	im->n_publishes += task->n_to;
}

/* Links of a GPU: one to each rank that it stores to, and one to the host. */
static int
link_of(const struct gpu *g, const RankProgram *prog, const RankTask *task)
{
	if (task->n_to == 0)
		return 0;
	int peer = task->to[0].rank;
	return gpu_route_of(g, prog, prog->extent[task->extent].part, peer) == GPU_ROUTE_DIRECT ? peer : prog->n_ranks;
}

static bool
is_before(const struct gpu *g, const RankProgram *prog, int a, int b)
{
	const RankTask *x = &prog->task[a], *y = &prog->task[b];
	int deals = gpu_deal_of(x) - gpu_deal_of(y), links = link_of(g, prog, x) - link_of(g, prog, y);
	return deals < 0 || (deals == 0 && (links < 0 || (links == 0 && a < b)));
}

static void
order_tasks(const struct gpu *g, const RankProgram *prog, uint16_t order[GPU_COUNTED])
{
	for (int t = 0; t < prog->n_tasks && prog->n_tasks <= GPU_COUNTED; t++) {
		int at = t;
		for (; at > 0 && is_before(g, prog, t, order[at - 1]); at--)
			order[at] = order[at - 1];
		order[at] = (uint16_t)t;
	}
}

static size_t
lanes_of(const RankProgram *prog)
{
	size_t lanes = 0;
	for (int t = 0; t < prog->n_tasks; t++)
		lanes += (size_t)(prog->task[t].n_from + prog->task[t].n_to);
	return lanes;
}

static void
fill(struct image *im)
{
	size_t lanes = (size_t)im->prog->n_tasks * sizeof *im->task;
	size_t partners = lanes + lanes_of(im->prog) * sizeof *im->lane;
	im->order = (uint16_t *)(im->host + im->bytes - GPU_COUNTED * sizeof(uint16_t));
	im->task = (struct gpu_task *)im->host;
	im->lane = (struct gpu_lane *)(im->host + lanes);
	im->partner = (struct gpu_partner *)(im->host + partners);
	for (int t = 0; t < im->prog->n_tasks; t++)
		put_task(im, &im->prog->task[t], &im->task[t]);
	order_tasks(im->g, im->prog, im->order);
	im->partners_at = im->device + partners;
}

static size_t
image_bytes(const RankProgram *prog)
{
	return ((size_t)prog->n_tasks + 1) * sizeof(struct gpu_task)
	    + lanes_of(prog) * (sizeof(struct gpu_lane) + sizeof(struct gpu_partner))
	    + GPU_COUNTED * sizeof(uint16_t);
}

static int
widest(const RankProgram *prog)
{
	int most = 0;
	for (int t = 0; t < prog->n_tasks; t++) {
		int n = prog->task[t].n_from + prog->task[t].n_to;
		most = n > most ? n : most;
	}
	return most;
}

/* The same on all ranks. Parts that are not for NVLink may go by the host. */
static bool
has_lines(const struct gpu *g, const RankProgram *prog)
{
	int n = prog->n_ranks;
	bool has = true;
	for (int i = 0; i < n * n && has; i++)
		has = i / n == i % n || (prog->joined && !prog->joined[i])
		    || (g->has_lines[i] && g->has_lines[i % n * n + i / n]);
	for (int i = 0; i < prog->n_parts && has && prog->classes; i++)
		has = prog->classes[i] >> LINK_NVLINK & 1;
	return has;
}

static int
make_table(struct gpu *g, const struct plan *plan, bool switched, struct gpu_table *out, struct blink_error *err)
{
	struct image im = { .g = g, .prog = plan->prog, .bytes = image_bytes(plan->prog), .segment = -1 };
	if (widest(plan->prog) > GPU_LANES)
		return set_error(err, blinkLimit, "%d ranks next to one in a tree: want at most %d on GPUs",
		    widest(plan->prog), (int)GPU_LANES);
	im.host = calloc(1, im.bytes);
	im.trees = switched ? calloc((size_t)plan->prog->n_ranks, sizeof *im.trees) : NULL;
	if (!im.host || (switched && !im.trees))
		set_error_memory(err);
	else if (gpu_keep(g, im.bytes, &im.device, err) == blinkSuccess) {
		fill(&im);
		gpu_upload(g, im.device, im.host, im.bytes, err);
	}
	const struct gpu_task *task = (const struct gpu_task *)im.device;
	*out = (struct gpu_table){ .plan = plan, .program = { plan->prog->n_tasks, im.n_publishes, task,
	    (const struct gpu_lane *)(task + plan->prog->n_tasks) },
	    .partner = (const struct gpu_partner *)im.partners_at, .switched = switched,
	    .has_lines = has_lines(g, plan->prog), .roots_trees = im.roots_trees, .n_partners = im.n_partners,
	    .order_at = (const uint16_t *)(im.device + im.bytes - sizeof out->order) };
	if (im.order)
		memcpy(out->order, im.order, sizeof out->order);
	free(im.host);
	free(im.trees);
	return err->code;
}

int
gpu_table_of(struct gpu *g, const struct plan *plan, bool switched, const struct gpu_table **out,
    struct blink_error *err)
{
	struct gpu_table **at = &g->launches->table, *table;
	while (*at && ((*at)->plan != plan || (*at)->switched != switched))
		at = &(*at)->next;
	if (!*at) {
		if (!(table = calloc(1, sizeof *table)))
			return set_error_memory(err);
		if (make_table(g, plan, switched, table, err) != blinkSuccess) {
			free(table);
			return err->code;
		}
		*at = table;
	}
	*out = *at;
	return blinkSuccess;
}

void
gpu_tables_close(struct gpu *g)
{
	struct gpu_launches *l = g->launches;
	while (l->table) {
		struct gpu_table *next = l->table->next;
		free(l->table);
		l->table = next;
	}
}
