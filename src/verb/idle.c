#include "verb/idle.h"
#include "topology/topology.h"

enum {
	BUS = 1u << LINK_PCIE | 1u << LINK_QPI,
	FEW_PLANNED = 16,	/* GPUs of which other plans are made */
	FEW_BOUND = 32		/* and of which the bound is computed */
};

struct idle {
	FILE *to;
	const Topology *machine;
	const int *gpu;
	int n;
	const Ask *ask;
	const Compiled *made;
	bool first;		/* nothing was said yet of what they would add */
};

static unsigned
classes_of(const Topology *topo)
{
	unsigned classes = 0;
	for (int l = 0; l < topo->n_links; l++)
		classes |= 1u << topo->link[l].class;
	return classes;
}

static bool
one_server(const struct idle *idle)
{
	for (int i = 1; i < idle->n; i++)
		if (idle->machine->vertex[idle->gpu[i]].node != idle->machine->vertex[idle->gpu[0]].node)
			return false;
	return true;
}

/* The rate of another plan for these GPUs, without a search for fewer trees; FRAC_ZERO: there is none. */
static Frac
rate_with(const Ctx *ctx, const struct idle *idle, unsigned links, Routes routes)
{
	Ctx own;
	Ask ask = *idle->ask;
	Job job;
	Compiled made = { 0 };
	Frac rate = FRAC_ZERO;
	ctx_init(&own);
	own.step = ctx->step;
	own.step_of = ctx->step_of;
	ask.links = links;
	ask.routes = routes;
	ask.minimise = false;
	if (job_induce(&own, idle->machine, idle->gpu, idle->n, &ask, &job) == OK
	    && job_compile(&own, &job, &made) == OK && !made.cut_short)
		rate = made.sched->achieved;
	text_free(&made.json);
	ctx_free(&own);
	return rate;
}

static void
begin(struct idle *idle, const char *option)
{
	fprintf(idle->to, "; %s", option);
	idle->first = false;
}

/* The parts of a hybrid schedule: this one, and trees over PCIe, which can start after a setup. */
static void
print_hybrid(Ctx *ctx, struct idle *idle)
{
	double rate = frac_double(idle->made->sched->achieved), setup;
	int64_t time;
	Frac bus = rate_with(ctx, idle, BUS, ROUTES_ANY);
	if (bus.num == 0)
		return;
	if (!topo_peer_access(idle->machine, idle->n, &time)) {
		begin(idle, "--hybrid: the topology has no peer_accesses, --hybrid=host needs none");
		return;
	}
	setup = (double)time / 1e9;
	begin(idle, "--hybrid");
	fprintf(idle->to, ": %.6g GB/s from %.4g MB on", (rate + frac_double(bus)) / 1e9, rate * setup / 1e6);
}

static void
print_pairs(Ctx *ctx, struct idle *idle)
{
	Frac pairs = rate_with(ctx, idle, 0, ROUTES_PAIR);
	if (frac_cmp(pairs, idle->made->sched->achieved) <= 0)
		return;
	begin(idle, "--routes pair");
	fprintf(idle->to, ": %.6g GB/s", frac_double(pairs) / 1e9);
}

/* What no algorithm exceeds over all links. */
static void
print_bound(Ctx *own, struct idle *idle, const Topology *all)
{
	const Schedule *sched = idle->made->sched;
	Symmetry *sym;
	Bound bound;
	if (topo_symmetry(own, all, sched->root, SYMMETRY_ANY, &sym) != OK
	    || bound_compute(own, all, sym, sched->coll, sched->root, &bound) != OK)
		return;
	begin(idle, "-l all");
	fprintf(idle->to, ": at most %.6g GB/s", frac_double(bound.rate) / 1e9);
}

/* Every class, for the links that are idle. Of one server the network, which leads out of it, does not count. */
static Status
induce_all(Ctx *ctx, const struct idle *idle, Topology **out)
{
	unsigned classes = classes_of(idle->machine);
	JobLinks links;
	classes &= one_server(idle) ? ~(1u << LINK_NET) : ~0u;
	TRY(topo_nic_paths(ctx, idle->machine, idle->gpu, idle->n, classes, NULL, &links));
	return topo_induce(ctx, idle->machine, idle->gpu, idle->n, &links, out);
}

/* all: the job over every class. */
static void
print_line(Ctx *own, struct idle *idle, const Topology *all)
{
	const Ask *ask = idle->ask;
	unsigned classes = classes_of(all) & ~classes_of(idle->made->sched->topo);
	bool whole = !idle->made->cut_short, few = one_server(idle) && idle->n <= FEW_PLANNED,
	    chosen = !ask->links && ask->routes == ROUTES_CHOSEN && !ask->algorithm && !ask->max_depth
	    && !ask->max_trees && ask->packing == PACKING_EXACT;
	if (!classes)
		return;
	fprintf(idle->to, "idle        %s", names_text(link_class_names, classes, ", ", ", ").text);
	if (whole && chosen && few && classes & BUS)
		print_hybrid(own, idle);
	if (whole && chosen && few)
		print_pairs(own, idle);
	if (whole && idle->first && idle->n <= FEW_BOUND)
		print_bound(own, idle, all);
	fprintf(idle->to, "\n");
}

void
idle_print(Ctx *ctx, FILE *to, const Topology *machine, const int *gpu, int n, const Ask *ask, const Compiled *made)
{
	struct idle idle = { to, machine, gpu, n, ask, made, true };
	Topology *all;
	Ctx own;
	if (ask->hybrid)
		return;
	ctx_init(&own);
	own.step = ctx->step;
	own.step_of = ctx->step_of;
	if (induce_all(&own, &idle, &all) == OK)
		print_line(&own, &idle, all);
	ctx_free(&own);
}
