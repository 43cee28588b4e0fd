/* Floors.
 *
 * Along a path of hops a segment of k chunks is a pipeline. Hop h sends its chunks one after the other, each in
 * s_h + c / r_h (start-up, and bytes at the full rate of its slowest link), and each is there l_h later. So the first
 * chunk does not come to h before it has passed all hops before, and when h has sent all of them the last chunk still
 * has to pass those behind. In the order of a tree's hops
 *
 *     first(to) = max over hops into it of  first(from) + s + c / r + l
 *     last(to)  = max over hops into it of  first(from) + k s + S / r + l,  last(from) + s + c' / r + l
 *
 * with c' the last chunk, and the segment is done no sooner than the greatest last. Next to that, a link carries no
 * more bytes than its rate allows, and a GPU has no more than `at_once` steps under way: what it sends takes at least
 * the sum of its steps by that number. All are exact where nothing waits for anything else: chains, rings, and trees
 * that share no link.
 *
 * Doubles, less a billionth for their rounding. */
#include "simulate/floor.h"
#include "schedule/schedule.h"
#include "simulate/run.h"

struct slow_hop {
	int segment, from, to, src;
	bool follows;		/* a switch copies to it */
	bool adds;
	double add;		/* ps for a byte */
	double byte;		/* ps, on the slowest of its links */
	double latency[SIM_LINES + 1];	/* ps, by the protocol */
};

struct slow_link {
	int first, n;		/* of hops */
	double byte;
};

struct Floor {
	const SimPlan *plan;
	const SimParameters *p;
	struct slow_hop *hop;
	struct slow_link *link;
	int *of_link;		/* hops of each link */
	double *first, *last;	/* of values */
	double *sends;		/* of ranks */
	int64_t *bytes;		/* of segments */
	SimProtocol protocol;
	double links;		/* ps: what the slowest link takes for its bytes */
};

static void
slow_hop(const Floor *f, const SimHop *hop, struct slow_hop *out)
{
	const Link *link = f->plan->sched->topo->link;
	*out = (struct slow_hop){ .segment = hop->segment, .from = hop->from, .to = hop->to, .src = hop->src,
		.follows = hop->feeder >= 0, .adds = hop->adds };
	int64_t add_rate = sim_add_rate(f->p, f->plan->sched->topo, hop);
	out->add = add_rate ? (double)PS_PER_S / (double)add_rate : 0;
	for (int i = 0; i < hop->n_links; i++) {
		double byte = (double)PS_PER_S / (double)sim_link_rate(f->p, &link[hop->link[i]]);
		out->byte = byte > out->byte ? byte : out->byte;
	}
	for (SimProtocol of = SIM_CHUNKS; of <= SIM_LINES; of++)
		for (int i = 0; i < hop->n_path; i++)
			out->latency[of] += (double)sim_link_latency(f->p, of, &link[hop->path[i]]);
}

/* Hops of each link. */
static Status
list_links(Ctx *ctx, Floor *f)
{
	const Topology *topo = f->plan->sched->topo;
	int n = 0;
	TRY(NEW(ctx, f->link, topo->n_links));
	for (int h = 0; h < f->plan->n_hops; n += f->plan->hop[h++].n_links)
		for (int i = 0; i < f->plan->hop[h].n_links; i++)
			f->link[f->plan->hop[h].link[i]].n++;
	TRY(NEW(ctx, f->of_link, n));
	n = 0;
	for (int l = 0; l < topo->n_links; l++) {
		f->link[l].byte = (double)PS_PER_S / (double)sim_link_rate(f->p, &topo->link[l]);
		f->link[l].first = n;
		n += f->link[l].n;
		f->link[l].n = 0;
	}
	for (int h = 0; h < f->plan->n_hops; h++)
		for (int i = 0; i < f->plan->hop[h].n_links; i++) {
			struct slow_link *link = &f->link[f->plan->hop[h].link[i]];
			f->of_link[link->first + link->n++] = h;
		}
	return OK;
}

Status
floor_prepare(Ctx *ctx, const SimPlan *plan, const SimParameters *p, Floor **out)
{
	Floor *f;
	TRY(NEW(ctx, f, 1));
	*f = (Floor){ .plan = plan, .p = p };
	TRY(NEW(ctx, f->hop, plan->n_hops));
	TRY(NEW_EACH(ctx, plan->n_values, f->first, f->last));
	TRY(NEW(ctx, f->sends, plan->sched->topo->n_ranks));
	TRY(NEW(ctx, f->bytes, plan->sched->n_segments));
	for (int h = 0; h < plan->n_hops; h++)
		slow_hop(f, &plan->hop[h], &f->hop[h]);
	TRY(list_links(ctx, f));
	*out = f;
	return OK;
}

/* Bytes as they go over links. */
static double
on_links(const Floor *f, double bytes)
{
	return f->protocol == SIM_PACKETS ? 2 * bytes : f->protocol == SIM_LINES ? bytes / 15 * 16 : bytes;
}

int64_t
floor_of_message(Floor *f, int64_t m)
{
	int64_t longest = 0;
	sim_segment_bytes(f->plan, m, f->bytes);
	f->protocol = sim_protocol(f->plan, f->p, m);
	f->links = 0;
	for (int s = 0; s < f->plan->sched->n_segments; s++)
		longest = f->bytes[s] > longest ? f->bytes[s] : longest;
	for (int l = 0; l < f->plan->sched->topo->n_links; l++) {
		double bytes = 0;
		for (int i = 0; i < f->link[l].n; i++)
			bytes += (double)f->bytes[f->hop[f->of_link[f->link[l].first + i]].segment];
		double time = on_links(f, bytes) * f->link[l].byte;
		f->links = time > f->links ? time : f->links;
	}
	return longest;
}

/* The sender's time for some steps, and bytes in them. */
static double
sending(const Floor *f, const struct slow_hop *hop, double steps, double bytes)
{
	double start = (double)(protocol_step(f->p, f->protocol) * PS_PER_NS);
	double add = hop->adds && f->p->fused ? hop->add : 0;
	return steps * start + on_links(f, bytes) * hop->byte + bytes * add;
}

/* Until its receiver has it, added. */
static double
arriving(const Floor *f, const struct slow_hop *hop, double bytes)
{
	double add = !hop->adds || f->p->fused ? 0 : (double)(f->p->reduce_step * PS_PER_NS) + bytes * hop->add;
	return hop->latency[f->protocol] + add;
}

static void
raise(double *value, double to)
{
	*value = to > *value ? to : *value;
}

static void
pass_hop(const Floor *f, const struct slow_hop *hop, double chunk)
{
	double all = (double)f->bytes[hop->segment], first = chunk < all ? chunk : all;
	int64_t chunks = ((int64_t)all - 1) / (int64_t)chunk + 1;
	double last = all - (double)(chunks - 1) * chunk;
	if (hop->follows) {
		raise(&f->first[hop->to], f->first[hop->from] + hop->latency[f->protocol]);
		raise(&f->last[hop->to], f->last[hop->from] + hop->latency[f->protocol]);
		return;
	}
	double sent = sending(f, hop, (double)chunks, all);
	raise(&f->first[hop->to], f->first[hop->from] + sending(f, hop, 1, first) + arriving(f, hop, first));
	raise(&f->last[hop->to], f->first[hop->from] + sent + arriving(f, hop, last));
	raise(&f->last[hop->to], f->last[hop->from] + sending(f, hop, 1, last) + arriving(f, hop, last));
	f->sends[hop->src] += sent;
}

int64_t
floor_of_chunk(const Floor *f, int64_t chunk)
{
	int n_ranks = f->plan->sched->topo->n_ranks;
	double most = f->links;
	if (f->p->by_memory || f->p->burst > 0)	/* nothing is known of such ranks, or links */
		return 0;
	for (int v = 0; v < f->plan->n_values; v++)
		f->first[v] = f->last[v] = 0;
	for (int r = 0; r < n_ranks; r++)
		f->sends[r] = 0;
	for (int h = 0; h < f->plan->n_hops; h++)
		if (f->bytes[f->hop[h].segment] > 0)
			pass_hop(f, &f->hop[h], (double)chunk);
	for (int v = 0; v < f->plan->n_values; v++)
		raise(&most, f->last[v]);
	for (int r = 0; r < n_ranks && f->p->at_once; r++)
		raise(&most, f->sends[r] / (double)f->p->at_once);
	double time = (most + (double)(f->p->call * PS_PER_NS)) * (1 - 1e-9);
	return time < (double)SIM_TIME_MOST ? (int64_t)time : SIM_TIME_MOST;
}
