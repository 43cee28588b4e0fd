/* What versions of NCCL count of a machine, and which machines they are not modelled for. */
#include "choice/nccl_beside.h"

/* NVLinks of the GPU that has most of them, and the slowest of these, bytes/s. */
static int
nvlinks(const Topology *machine, int64_t *rate)
{
	int most = 0;
	*rate = 0;
	for (int g = 0; g < machine->n_ranks; g++) {
		int n = 0;
		for (int i = machine->first_out[g]; i < machine->first_out[g + 1]; i++) {
			const Link *link = &machine->link[machine->out[i]];
			if (link->class != LINK_NVLINK)
				continue;
			n += link->count;
			if (*rate == 0 || link->capacity / link->count < *rate)
				*rate = link->capacity / link->count;
		}
		most = n > most ? n : most;
	}
	return most;
}

/* Topologies do not say what GPUs they have, but NVLinks of 20 GB/s are those of the P100, of 50 those of the B200; of
 * 25 a V100 has up to 6, an A100 up to 12, an H100 18. Without NVLinks only PCIe counts, which is the same for all. */
static NcclGpu
gpu_of(const Topology *machine)
{
	enum { VOLTA_LINKS = 6, AMPERE_LINKS = 12 };
	int64_t rate;
	int n = nvlinks(machine, &rate);
	if (n == 0)
		return NCCL_VOLTA;
	if (rate < 23 * (int64_t)BYTES_PER_GB)
		return NCCL_PASCAL;
	if (rate > 40 * (int64_t)BYTES_PER_GB)
		return NCCL_BLACKWELL;
	return n <= VOLTA_LINKS ? NCCL_VOLTA : n <= AMPERE_LINKS ? NCCL_AMPERE : NCCL_HOPPER;
}

/* GB/s that a version counts for the capacity of a link: its own figure for an NVLink, for others that of the topology,
 * which is effective. */
static double
counted(const Topology *machine, int version, const Link *link)
{
	int64_t one;
	if (link->class != LINK_NVLINK)
		return (double)link->capacity / BYTES_PER_GB;
	nvlinks(machine, &one);
	return (double)link->capacity / (double)one * nccl_nvlink_speed(version, gpu_of(machine));
}

static bool
same_order(const Cycle *a, const Cycle *b, int n)
{
	int at = 0;
	while (b->edge[at].src != a->edge[0].src)
		at++;
	for (int i = 0; i < n; i++)
		if (a->edge[i].dst != b->edge[(at + i) % n].dst)
			return false;
	return true;
}

struct hops {
	double narrowest;	/* GB/s */
	double scale;		/* of that link: counted by capacity, GB/s per byte/s */
	bool nvlink, switched;
};

static void
look_at_hop(const Topology *machine, int version, const Topology *topo, const Edge *edge, struct hops *out)
{
	for (int i = 0; i < edge->n_links; i++) {
		const Link *link = &topo->link[edge->link[i]];
		double speed = counted(machine, version, link);
		out->nvlink = out->nvlink && link->class == LINK_NVLINK;
		out->switched = out->switched || link->to >= topo->n_ranks;
		if (out->narrowest > 0 && speed >= out->narrowest)
			continue;
		out->narrowest = speed;
		out->scale = speed / (double)link->capacity;
	}
}

static void
look_at_hops(const Topology *machine, int version, const RingPacking *rings, struct hops *out)
{
	*out = (struct hops){ .nvlink = true };
	for (int i = 0; i < rings->n; i++)
		for (int e = 0; e < rings->topo->n_ranks; e++)
			look_at_hop(machine, version, rings->topo, &rings->ring[i].edge[e], out);
}

static void
make_graph(const Topology *machine, int version, NcclGpu gpu, const RingPacking *rings, NcclGraph *out)
{
	struct hops hops;
	look_at_hops(machine, version, rings, &hops);
	*out = (NcclGraph){ .nvlink = hops.nvlink, .through = rings->through, .same = true };
	for (int i = 1; i < rings->n && !(hops.nvlink && hops.switched); i++)
		out->same = out->same && same_order(&rings->ring[0], &rings->ring[i], rings->topo->n_ranks);
	nccl_channels(version, gpu, frac_double(rings->rate) * hops.scale, hops.narrowest,
	    hops.nvlink && hops.switched, out);
}

/* Channels over several servers begin at a card each, so they have one order only where there is one card. GPUs without
 * a ring in their server have its chains through the host. */
static void
make_net_graph(const Job *job, const NcclBeside *beside, int version, const RingPacking *inner, NcclGraph *out)
{
	struct hops hops;
	NcclGpu gpu = gpu_of(job->machine);
	double total = beside->cards.speed, narrowest = beside->cards.speed;
	int64_t rate;
	*out = (NcclGraph){ .through = inner->through, .same = beside->cards.n == 1, .far = beside->far };
	if (inner->n > 0) {
		look_at_hops(job->machine, version, inner, &hops);
		total = frac_double(inner->rate) * hops.scale;
		narrowest = hops.narrowest;
		out->nvlink = hops.nvlink;
	} else {
		out->nvlink = beside->servers.gpus == 1 && nvlinks(job->machine, &rate) > 0;
	}
	nccl_net_channels(version, gpu, &beside->cards, total, narrowest, out);
}

/* Do NVLinks, or switches of them, join servers? */
static bool
nvlink_joins_servers(const Topology *machine)
{
	for (int l = 0; l < machine->n_links; l++) {
		const Link *link = &machine->link[l];
		if (link->class == LINK_NVLINK && machine->vertex[link->from].node != machine->vertex[link->to].node)
			return true;
	}
	return false;
}

const char *
nccl_why_not(const Job *job, const NcclBeside *beside, bool equal)
{
	const Topology *machine = job->machine;
	for (int l = 0; l < machine->n_links; l++)
		if (machine->link[l].class == LINK_XGMI)
			return "the model is of NCCL, and these GPUs have RCCL";
	if (!equal)
		return "the model of NCCL has the same number of GPUs in each server";
	if (beside->servers.n > 1 && nvlink_joins_servers(machine))
		return "the model of NCCL has no NVLink between servers";
	if (beside->servers.n > 1 && beside->cards.n == 0)
		return "the topology has no network cards";
	return NULL;
}

const char *
nccl_left_out(const Job *job, const NcclBeside *beside)
{
	const Topology *machine = job->machine;
	bool one_each = beside->servers.n > 1 && beside->servers.gpus == 1;
	if (one_each && (job->ask.coll == ALLGATHER || job->ask.coll == REDUCESCATTER))
		return "PAT";
	for (int v = machine->n_ranks; v < machine->n_vertices; v++)
		if (machine->vertex[v].multicast || machine->vertex[v].reduce)
			return "NVLS";
	for (int v = machine->n_ranks; v < machine->n_vertices && gpu_of(machine) >= NCCL_HOPPER; v++)
		for (int i = machine->first_out[v]; i < machine->first_out[v + 1]; i++)
			if (machine->link[machine->out[i]].class == LINK_NVLINK)
				return "NVLS";
	return NULL;
}

/* 2.4.8 has the rings of the first row, others those of the second. Topologies do not say what CPUs they have: servers
 * of A100 are counted as those of a DGX A100, which has AMD's, and others as those of the other DGX. */
void
nccl_set_versions(const Job *job, NcclBeside *out)
{
	NcclGpu gpu = gpu_of(job->machine);
	for (int v = 0; v < N_NCCL_VERSIONS; v++) {
		out->row[v] = v == 0 ? 0 : 1;
		out->job[v] = (NcclJob){ .gpu = gpu, .n_ranks = job->topo->n_ranks, .n_servers = out->servers.n,
			.cpu = gpu == NCCL_AMPERE ? NCCL_AMD : NCCL_INTEL };
		const NcclRings *of = out->rings[out->row[v]];
		if (of->rings.n && out->servers.n > 1)
			make_net_graph(job, out, v, &of->inner, &out->job[v].graph);
		else if (of->rings.n)
			make_graph(job->machine, v, gpu, &of->rings, &out->job[v].graph);
	}
}
