/* Baselines: to add one, write a function that finds its rings, and give it a row here.
 *
 * NCCL until 2.7 builds rings over NVLink, and where there is no such ring over PCIe. From 2.8 on a hop between two
 * GPUs without an NVLink may lead over two of them, through another GPU of the job; and rings take PCIe for hops that
 * have neither. Its searches are bounded. Here a baseline has the best rings of its kind, proven, so that what a
 * schedule is worth beside them is not exaggerated: NCCL's rings have no higher rate. */
#include "plan/baseline.h"

#include "plan/plan.h"
#include "topology/topology.h"

#include <string.h>

enum {
	FAST = 1u << LINK_NVLINK | 1u << LINK_XGMI,
	BUS = 1u << LINK_PCIE | 1u << LINK_QPI,
	ANY = FAST | BUS | 1u << LINK_C2C,
	NET = 1u << LINK_NET
};

struct finder {
	Ctx *ctx;
	const BaselineJob *job;
	unsigned beside;	/* NET where the job has several servers */
	RingPacking direct;	/* over FAST */
};

/* What hops may be over, and whether each pair keeps to its one route: NVLink, or else PCIe. */
struct tier {
	unsigned classes;
	bool pairs;
};

static Status
induce(const struct finder *f, struct tier tier, const Topology **out)
{
	const BaselineJob *job = f->job;
	unsigned classes = tier.classes | f->beside;
	JobLinks links;
	Topology *topo;
	if (job->topo && job->classes == classes && job->pairs == tier.pairs) {
		*out = job->topo;
		return OK;
	}
	if (tier.pairs) {
		TRY(topo_induce_pairs(f->ctx, job->machine, job->gpu, job->n, classes, &topo));
	} else {
		TRY(topo_nic_paths(f->ctx, job->machine, job->gpu, job->n, classes, NULL, &links));
		TRY(topo_induce(f->ctx, job->machine, job->gpu, job->n, &links, &topo));
	}
	*out = topo;
	return OK;
}

/* Rings over some links; none where these do not connect the GPUs. */
static Status
rings_over(const struct finder *f, struct tier tier, bool through, RingPacking *out)
{
	const Topology *topo;
	Status status = induce(f, tier, &topo);
	*out = (RingPacking){ .rate = FRAC_ZERO, .proven = true };
	if (status == INFEASIBLE) {
		f->ctx->error = (Error){ .status = OK };
		return OK;
	}
	TRY(status);
	return pack_rings(f->ctx, topo, through, out);
}

/* Where there is no ring yet, over the first of these that have one. */
static Status
rings_over_first(const struct finder *f, const struct tier *tier, int n, RingPacking *out)
{
	for (int i = 0; i < n && out->n == 0 && out->proven; i++)
		TRY(rings_over(f, tier[i], false, out));
	return OK;
}

/* ---- the table ---- */

static Status
rings_until_2_7(const struct finder *f, RingPacking *out)
{
	static const struct tier tiers[] = { { BUS, false }, { ANY, false } };
	*out = f->direct;
	return rings_over_first(f, tiers, 2, out);
}

static Status
rings_from_2_8(const struct finder *f, RingPacking *out)
{
	static const struct tier fast = { FAST, false }, tiers[] = { { ANY, true }, { ANY, false } };
	RingPacking through;
	*out = f->direct;
	if (!out->at_cut) {
		TRY(rings_over(f, fast, true, &through));
		*out = through.proven && frac_cmp(through.rate, out->rate) == 0 ? *out : through;
	}
	return rings_over_first(f, tiers, 2, out);
}

static const struct {
	char name[BASELINE_NAME];
	Status (*find)(const struct finder *f, RingPacking *out);
} rows[] = {
	{ "nccl-2.4", rings_until_2_7 },
	{ "nccl-2.8", rings_from_2_8 },
};

enum { N_ROWS = sizeof rows / sizeof *rows };	/* at most LIMIT_BASELINES */

/* Rings of y bytes/s over each hop: of the bytes of n blocks n - 1 pass each hop, and of an allreduce twice as many. */
static double
algorithm_bandwidth(Collective coll, int n, Frac y)
{
	double rate = frac_double(y) / 1e9;
	switch (coll) {
	case ALLREDUCE:
		return rate * n / (2 * (n - 1));
	case ALLGATHER:
	case REDUCESCATTER:
		return rate * n / (n - 1);
	default:
		return rate;
	}
}

/* Those that are known. */
static Status
find_all(struct finder *f, Collective coll, Baseline *out, int *n)
{
	static const struct tier fast = { FAST, false };
	*n = 0;
	TRY(rings_over(f, fast, false, &f->direct));
	for (int i = 0; i < N_ROWS; i++) {
		RingPacking rings;
		TRY(rows[i].find(f, &rings));
		if (!rings.proven)
			continue;
		out[*n] = (Baseline){ .classes = rings.classes, .rings = rings.n, .through = rings.through,
			.rate = algorithm_bandwidth(coll, f->job->n, rings.rate) };
		strcpy(out[(*n)++].name, rows[i].name);
	}
	return OK;
}

static unsigned
network_beside(const BaselineJob *job)
{
	const Topology *machine = job->machine;
	for (int i = 1; i < job->n; i++)
		if (machine->vertex[job->gpu[i]].node != machine->vertex[job->gpu[0]].node)
			return NET;
	return 0;
}

Status
baselines_find(Ctx *ctx, const BaselineJob *job, Collective coll, Baseline **out, int *n)
{
	struct finder f = { .ctx = ctx, .job = job, .beside = network_beside(job) };
	int (*step)(void *of, const char *line) = ctx->step;
	*n = 0;
	if (!collective_has_rings(coll) || job->n > BASELINE_RANKS)
		return OK;
	TRY(NEW(ctx, *out, N_ROWS));
	/* They take little time, and no part of a budget. */
	ctx->step = NULL;
	Status status = find_all(&f, coll, *out, n);
	ctx->step = step;
	return status;
}

static Status
find_row(struct finder *f, int row, RingPacking *out)
{
	static const struct tier fast = { FAST, false };
	TRY(rings_over(f, fast, false, &f->direct));
	return rows[row].find(f, out);
}

Status
baseline_rings(Ctx *ctx, const BaselineJob *job, int row, RingPacking *out)
{
	struct finder f = { .ctx = ctx, .job = job, .beside = network_beside(job) };
	int (*step)(void *of, const char *line) = ctx->step;
	ctx->step = NULL;
	Status status = find_row(&f, row, out);
	ctx->step = step;
	return status;
}

const char *
baseline_name(int row)
{
	return row >= 0 && row < N_ROWS ? rows[row].name : NULL;
}
