/* Links before a simulation. */
#include "simulate/link_clocks.h"

int64_t
sim_link_rate(const SimParameters *p, const Link *link)
{
	int64_t rate = (int64_t)((Wide)link->capacity * p->efficiency[link->class] / PPM);
	return rate > 0 ? rate : 1;
}

int64_t
sim_add_rate(const SimParameters *p, const Topology *topo, const SimHop *hop)
{
	int64_t least = p->reduce ? p->reduce : INT64_MAX;
	for (int i = 0; p->reduce_by_link && i < hop->n_links; i++) {
		Wide rate = (Wide)sim_link_rate(p, &topo->link[hop->link[i]]) * p->reduce_by_link / PPM;
		if (rate < least)
			least = rate > 0 ? (int64_t)rate : 1;
	}
	return least < INT64_MAX ? least : 0;
}

SimProtocol
sim_protocol(const SimPlan *plan, const SimParameters *p, int64_t m)
{
	if (m <= plan->lines && m > p->line_above && m <= p->line_most)
		return SIM_LINES;
	return m <= p->packet_most ? SIM_PACKETS : SIM_CHUNKS;
}

int64_t
sim_link_latency(const SimParameters *p, SimProtocol protocol, const Link *link)
{
	int64_t ps = (link->latency ? link->latency : p->latency[link->class]) * PS_PER_NS;
	int64_t part = protocol == SIM_PACKETS ? p->packet_hop : protocol == SIM_LINES ? p->line_hop : PPM;
	return ps / PPM * part + ps % PPM * part / PPM;
}

/* A slot for each step that can be under way at once. */
static Status
new_slots(struct run *run)
{
	const struct net *net = run->net;
	int64_t most = run->ask->p.at_once ? run->ask->p.at_once * net->n_gpus : net->n_hops;
	for (int h = 0; h < net->n_hops; h++)
		most += net->hop[h].feeder >= 0;
	int n = most < net->n_hops ? (int)most : net->n_hops;
	TRY(TEMP_EACH(run->ctx, n, run->active, run->free_slot));
	for (run->n_free = 0; run->n_free < n; run->n_free++)
		run->free_slot[run->n_free] = n - 1 - run->n_free;
	return OK;
}

/* With the room that the list of each link takes: all flows over it. */
static Status
new_flows(struct run *run)
{
	const struct net *net = run->net;
	int all = 0;
	for (int f = 0; f < net->n_flows; f++)
		all += net->flow[f].n_places;
	TRY(TEMP_EACH(run->ctx, net->n_flows, run->flow, run->other, run->stale_flow));
	TRY(TEMP_EACH(run->ctx, all, run->place, run->moving, run->end));
	all = 0;
	for (int f = 0; f < net->n_flows; f++) {
		const struct net_flow *flow = &net->flow[f];
		const struct net_place *from = &net->flow_place[flow->first_place];
		run->flow[f] = (struct flow_run){ .head = NO_SLOT, .first_place = all, .n_places = flow->n_places };
		for (int i = 0; i < flow->n_places; i++) {
			run->place[all++] = (struct place){ from[i].link, 0, from[i].times };
			run->link[from[i].link].n++;
		}
	}
	return OK;
}

/* Bytes that each link is to carry. */
static void
count_bytes(struct run *run, const struct net_hop *hop)
{
	const struct net_flow *flow = &run->net->flow[hop->flow];
	const struct net_place *place = &run->net->flow_place[flow->first_place];
	for (int i = 0; i < flow->n_places; i++)
		run->link[place[i].link].to_move += (double)run->net->bytes[hop->segment] * place[i].times;
}

Status
links_new(struct run *run)
{
	const struct net *net = run->net;
	TRY(TEMP_EACH(run->ctx, net->n_links, run->link, run->changed.link, run->stale.link, run->due));
	TRY(clocks_new(run->ctx, net->n_links, &run->clocks));
	TRY(new_flows(run));
	for (int h = 0; h < net->n_hops; h++)
		count_bytes(run, &net->hop[h]);
	for (int l = 0, first = 0; l < net->n_links; l++) {
		run->link[l].first = first;
		first += run->link[l].n;
		run->link[l].n = 0;
		run->link[l].level = UNBOUND;
		run->link[l].left = work_of_link(run, l);
		run->link[l].tokens = run->ask->p.burst;
		run->link[l].first_queued = NO_SLOT;
		run->link[l].to_move -= (double)run->ask->p.burst;
		run->link[l].byte = (double)protocol_bytes(run->protocol, PS_PER_S) / (double)net->rate[l];
	}
	return new_slots(run);
}
