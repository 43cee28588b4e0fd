/* What the rings of each layer get of a machine, and the cost
 *
 *     T = sum over layers of  layer + 2 s alpha (p_i - 1) + 2 n beta_i (p_i - 1) / (p_1 ... p_i)
 *
 * which with layer = 0 is that of Ueno and Yokota: 2 s alpha (sum p_i - h) + 2 n sum beta_i (p_i - 1) / prod p_j.
 *
 * beta_i comes from cuts. All rings of a layer are in use at once, and each rank sends to the next of its ring. Of the
 * first B ranks, F send to others, through what the links let out of these B, C: no rank can have more than C / F. The
 * least over all B that divide the ranks is the rate. ABCI, 4 GPUs and two NICs of 9.3 GB/s a server, 4 x 8 x 4:
 *
 *     second layer, 4 to 32:   B = 4: 4 ranks send to others, over 18.6 GB/s: 4.65 GB/s each
 *     a flat ring, 1 to 128:   B = 4: 1 rank does: 18.6 GB/s, as if rings took turns in who leaves the server
 *
 * Within a server there is one more: what a GPU has to the others of its ring, through no third GPU, and by NVLink
 * alone where that leads to them. On ABCI rings of 2 have the 2 NVLinks of this pair, those of 4 all 6.
 *
 * With one beta the bytes of 4x8 and 8x4 are equal: (p - 1) / (P p) = 1/P - 1/(P p), so terms cancel. Times are such
 * differences of whole numbers, so that equal hierarchies stay equal. */
#include "hierarchy/hierarchy.h"
#include "graph/flow.h"
#include "simulate/simulate.h"

const HierarchyParameter hierarchy_parameters[] = {
#define X(member, text, unit, least, most, otherwise, what, source) \
	{ text, unit, least, most, otherwise, offsetof(HierarchyCost, member), what, source },
	HIERARCHY_COST_LIST(X)
#undef X
	{ .name = NULL },
};

int64_t *
hierarchy_parameter(HierarchyCost *cost, const HierarchyParameter *row)
{
	return (int64_t *)((char *)cost + row->at);
}

void
hierarchy_defaults(HierarchyCost *out)
{
	for (const HierarchyParameter *row = hierarchy_parameters; row->name; row++)
		*hierarchy_parameter(out, row) = row->otherwise;
}

/* ---- rates ---- */

/* Ranks of each server, if they are one after the other and as many in each; else 1. */
static int
server_ranks(const Topology *topo)
{
	int n = topo->n_ranks, ranks = 1;
	while (ranks < n && topo->vertex[ranks].node == topo->vertex[0].node)
		ranks++;
	if (n % ranks)
		return 1;
	for (int r = 0; r < n; r++)
		if (topo->vertex[r].node != topo->vertex[r / ranks * ranks].node
		    || (r % ranks == 0 && r > 0 && topo->vertex[r].node == topo->vertex[r - 1].node))
			return 1;
	return ranks;
}

/* Arcs as the links are measured, of these classes; but none that leave a rank beyond the first `senders`. */
static void
flow_measured(Flow *f, const SimParameters *p, unsigned classes, int senders)
{
	const Topology *topo = f->topo;
	flow_reset(f, 1, false);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		bool open = (classes >> link->class & 1) && (link->from >= topo->n_ranks || link->from < senders);
		f->arc[2 * l].capacity = open ? (Wide)link->capacity * p->efficiency[link->class] / PPM : 0;
	}
}

/* What leaves the first `ranks` for others, bytes/s. */
static Wide
capacity_out(Flow *f, const SimParameters *p, int ranks)
{
	flow_measured(f, p, ~0u, ranks);
	for (int r = 0; r < f->topo->n_ranks; r++) {
		if (r < ranks)
			flow_from_source(f, r, FLOW_INFINITE);
		else
			flow_to_sink(f, r, FLOW_INFINITE);
	}
	return flow_max(f);
}

/* What rank 0 has to the others of its ring, every `from`-th below `to`: over links of NVLink alone if these lead
 * there, and so on, as RouteKind has it. */
static Wide
capacity_in_ring(Flow *f, const SimParameters *p, int from, int to)
{
	Wide found = 0;
	for (RouteKind kind = ROUTE_NVLINK; kind < N_ROUTE_KINDS && found == 0; kind++) {
		flow_measured(f, p, route_classes(kind), 1);
		flow_from_source(f, 0, FLOW_INFINITE);
		for (int r = from; r < to; r += from)
			flow_to_sink(f, r, FLOW_INFINITE);
		found = flow_max(f);
	}
	return found;
}

/* How many of the first `ranks` send to others. */
static int
senders_out(int from, int to, int ranks)
{
	int n = 0;
	for (int r = 0; r < ranks; r++) {
		int next = r % to + from < to ? r + from : r + from - to;
		n += next >= ranks;
	}
	return n;
}

static int64_t
layer_rate(Flow *f, const SimParameters *p, const HierarchyMachine *machine, const Wide *out, int from, int to)
{
	Wide least = FLOW_INFINITE;
	if (to <= machine->server)
		least = capacity_in_ring(f, p, from, to);
	for (int k = 0; k < machine->n_sizes && machine->size[k] < to; k++) {
		int n = senders_out(from, to, machine->size[k]);
		if (n > 0 && out[k] / n < least)
			least = out[k] / n;
	}
	return least < 1 ? 1 : (int64_t)least;
}

static Status
find_rates(Ctx *ctx, const Topology *topo, HierarchyMachine *machine)
{
	SimParameters p;
	Flow flow;
	Wide *out;
	int n = machine->n_sizes;
	sim_defaults(EXECUTOR_HOST, &p);
	TRY(flow_new(ctx, topo, &flow));
	TRY(TEMP(ctx, out, n));
	for (int k = 0; k + 1 < n; k++)
		out[k] = capacity_out(&flow, &p, machine->size[k]);
	for (int i = 0; i < n; i++)
		for (int j = i + 1; j < n; j++)
			if (machine->size[j] % machine->size[i] == 0)
				machine->rate[i * n + j] = layer_rate(&flow, &p, machine, out, machine->size[i],
				    machine->size[j]);
	return OK;
}

Status
hierarchy_machine(Ctx *ctx, const Topology *topo, HierarchyMachine *out)
{
	HierarchyMachine machine = { .n_ranks = topo->n_ranks, .server = server_ranks(topo) };
	for (int d = 1; d <= topo->n_ranks; d++)
		machine.n_sizes += topo->n_ranks % d == 0;
	TRY(NEW(ctx, machine.size, machine.n_sizes));
	TRY(NEW(ctx, machine.rate, machine.n_sizes * machine.n_sizes));
	for (int d = 1, k = 0; d <= topo->n_ranks; d++)
		if (topo->n_ranks % d == 0)
			machine.size[k++] = d;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = find_rates(ctx, topo, &machine);
	arena_release(&ctx->scratch, mark);
	*out = machine;
	return status;
}

/* ---- the cost ---- */

/* ps: three days for the bytes of a layer, so that MOST_LAYERS of them fit. */
#define LAYER_MOST ((Wide)1 << 58)

int
hierarchy_size(const HierarchyMachine *machine, int64_t size)
{
	for (int k = 0; k < machine->n_sizes; k++)
		if (machine->size[k] == size)
			return k;
	return -1;
}

bool
hierarchy_allows(const HierarchyMachine *machine, int i, int j)
{
	int server = machine->server, from = machine->size[i], to = machine->size[j];
	return server == 1 || (to <= server && server % to == 0) || from % server == 0;
}

/* 2 n beta / blocks */
static Wide
bytes_time(const HierarchyModel *model, int64_t rate, int64_t slower, int blocks)
{
	return (Wide)2 * model->m * PS_PER_S * slower / ((Wide)rate * blocks * HIERARCHY_PPM);
}

int64_t
hierarchy_layer_time(const HierarchyModel *model, int i, int j)
{
	const HierarchyMachine *machine = model->machine;
	const HierarchyCost *cost = &model->cost;
	int from = machine->size[i], to = machine->size[j];
	int64_t rate = machine->rate[i * machine->n_sizes + j];
	int64_t slower = to <= machine->server ? cost->server : cost->network;
	int64_t start = (2 * cost->steps * cost->alpha * (to / from - 1) + cost->layer) * PS_PER_NS;
	Wide bytes = bytes_time(model, rate, slower, from) - bytes_time(model, rate, slower, to);
	return start + (int64_t)(bytes < LAYER_MOST ? bytes : LAYER_MOST);
}

int64_t
hierarchy_time(const HierarchyModel *model, const Hierarchy *layers)
{
	int64_t time = 0, product = 1;
	for (int l = 0, i = 0; l < layers->n; l++) {
		product *= layers->size[l];
		int j = hierarchy_size(model->machine, product);
		time += hierarchy_layer_time(model, i, j);
		i = j;
	}
	return time;
}
