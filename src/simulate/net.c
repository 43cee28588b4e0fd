/* What is simulated: all of a plan, or one hop, value, link and GPU of each class. */
#include "simulate/run.h"

static int64_t
weight_of(const SimAsk *ask, int64_t bytes, int64_t longest)
{
	int64_t weight = WEIGHT_ONE;
	if (ask->p.by_length && longest > 0)
		weight = (int64_t)((Wide)bytes * WEIGHT_ONE / longest);
	return weight > 0 ? weight : 1;
}

static int64_t
path_latency(const SimPlan *plan, const SimAsk *ask, const SimHop *hop)
{
	int64_t latency = 0;
	SimProtocol protocol = sim_protocol(plan, &ask->p, ask->m);
	for (int i = 0; i < hop->n_path; i++)
		latency += sim_link_latency(&ask->p, protocol, &plan->sched->topo->link[hop->path[i]]);
	return latency;
}

static Status
whole_hops(Ctx *ctx, const SimAsk *ask, struct net *net)
{
	const SimPlan *plan = net->plan;
	int64_t longest = 0, n_places = 0;
	for (int s = 0; s < plan->sched->n_segments; s++)
		longest = net->bytes[s] > longest ? net->bytes[s] : longest;
	for (int h = 0; h < plan->n_hops; h++)
		n_places += plan->hop[h].n_links;
	TRY(TEMP(ctx, net->hop, plan->n_hops));
	TRY(TEMP(ctx, net->place, n_places));
	for (int h = 0, place = 0; h < plan->n_hops; h++) {
		const SimHop *hop = &plan->hop[h];
		net->hop[h] = (struct net_hop){ .segment = hop->segment, .src = hop->src, .from = hop->from,
			.to = hop->to, .feeder = hop->feeder, .turn = hop->turn, .first_place = place,
			.n_places = hop->n_links, .adds = hop->adds,
			.add_rate = sim_add_rate(&ask->p, plan->sched->topo, hop),
			.latency = path_latency(plan, ask, hop),
			.weight = weight_of(ask, net->bytes[hop->segment], longest) };
		for (int i = 0; i < hop->n_links; i++)
			net->place[place++] = (struct net_place){ hop->link[i], 1 };
	}
	return OK;
}

static Status
whole_links(Ctx *ctx, const SimAsk *ask, struct net *net)
{
	const Topology *topo = net->plan->sched->topo;
	TRY(TEMP_EACH(ctx, topo->n_links, net->rate, net->link_class));
	for (int l = 0; l < topo->n_links; l++) {
		net->rate[l] = sim_link_rate(&ask->p, &topo->link[l]);
		net->link_class[l] = l;
	}
	return OK;
}

static Status
whole(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, struct net *out)
{
	*out = (struct net){ .plan = plan, .n_hops = plan->n_hops, .n_values = plan->n_values,
		.n_links = plan->sched->topo->n_links, .n_gpus = plan->sched->topo->n_ranks,
		.first_in = plan->first_in, .in = plan->in, .first_out = plan->first_out, .out = plan->out,
		.first_follower = plan->first_follower, .follower = plan->follower,
		.first_issue = plan->first_issue, .issue = plan->issue, .value_segment = plan->value_segment };
	TRY(TEMP(ctx, out->bytes, plan->sched->n_segments));
	sim_segment_bytes(plan, ask->m, out->bytes);
	TRY(whole_hops(ctx, ask, out));
	return whole_links(ctx, ask, out);
}

Status
net_bare(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, struct net *out)
{
	*out = (struct net){ .plan = plan, .n_hops = plan->n_hops, .n_links = plan->sched->topo->n_links,
		.n_gpus = plan->sched->topo->n_ranks };
	TRY(TEMP(ctx, out->bytes, plan->n_hops));
	TRY(whole_hops(ctx, ask, out));
	TRY(whole_links(ctx, ask, out));
	return flows_find(ctx, out);
}

/* ---- one of each class ---- */

struct folding {
	Ctx *ctx;
	const struct net *whole;
	const SimAsk *ask;
	const struct classes *classes;
	struct net *out;
	int *mark;		/* of each class of hops: the list that it is in, + 1 */
};

/* Lists of the hops of each thing, as the lists of the first members of their classes. Without `twice` each class is in
 * a list once. */
static Status
fold_list(struct folding *f, Kind kind, const int *first, const int *list, int **out_first, int **out_list)
{
	const struct partition *things = &f->classes->of[kind];
	int n = 0, all = 0;
	for (int c = 0; c < things->n_classes; c++)
		all += first[things->member[c] + 1] - first[things->member[c]];
	TRY(TEMP(f->ctx, *out_first, things->n_classes + 1));
	TRY(TEMP(f->ctx, *out_list, all));
	for (int c = 0; c < f->classes->of[KIND_HOP].n_classes; c++)
		f->mark[c] = 0;
	for (int c = 0; c < things->n_classes; c++) {
		int thing = things->member[c];
		bool twice = kind == KIND_VALUE && list == f->whole->in && net_is_serial(f->whole, f->ask, thing);
		for (int i = first[thing]; i < first[thing + 1]; i++) {
			int hop = class_of(f->classes, KIND_HOP, list[i]);
			if (f->mark[hop] != c + 1 || twice)
				(*out_list)[n++] = hop;
			f->mark[hop] = c + 1;
		}
		(*out_first)[c + 1] = n;
	}
	return OK;
}

/* Each class of links once. */
static void
fold_places(struct folding *f, const struct net_hop *from, struct net_hop *to, int *n_places)
{
	to->first_place = *n_places;
	for (int i = 0; i < from->n_places; i++) {
		int link = class_of(f->classes, KIND_LINK, f->whole->place[from->first_place + i].link), k;
		for (k = to->first_place; k < *n_places && f->out->place[k].link != link; k++)
			;
		if (k == *n_places)
			f->out->place[(*n_places)++] = (struct net_place){ link, 0 };
	}
	to->n_places = *n_places - to->first_place;
}

static Status
fold_hops(struct folding *f)
{
	const struct partition *hops = &f->classes->of[KIND_HOP];
	int n_places = 0;
	for (int c = 0; c < hops->n_classes; c++)
		n_places += f->whole->hop[hops->member[c]].n_places;
	TRY(TEMP(f->ctx, f->out->hop, hops->n_classes));
	TRY(TEMP(f->ctx, f->out->place, n_places));
	n_places = 0;
	for (int c = 0; c < hops->n_classes; c++) {
		const struct net_hop *from = &f->whole->hop[hops->member[c]];
		struct net_hop *to = &f->out->hop[c];
		*to = *from;
		to->src = class_of(f->classes, KIND_GPU, from->src);
		to->from = class_of(f->classes, KIND_VALUE, from->from);
		to->to = class_of(f->classes, KIND_VALUE, from->to);
		to->feeder = from->feeder < 0 ? -1 : class_of(f->classes, KIND_HOP, from->feeder);
		fold_places(f, from, to, &n_places);
	}
	for (int g = 0; g < f->out->n_gpus; g++)
		for (int i = f->out->first_issue[g]; i < f->out->first_issue[g + 1]; i++)
			f->out->hop[f->out->issue[i]].turn = i - f->out->first_issue[g];
	return OK;
}

/* How often each class of hops uses the first member of each class of links. */
static void
count_places(struct folding *f)
{
	const struct partition *links = &f->classes->of[KIND_LINK];
	for (int h = 0; h < f->whole->n_hops; h++) {
		const struct net_hop *from = &f->whole->hop[h];
		struct net_hop *to = &f->out->hop[class_of(f->classes, KIND_HOP, h)];
		for (int i = from->first_place; i < from->first_place + from->n_places; i++) {
			int link = f->whole->place[i].link, class = links->class[link], k = to->first_place;
			if (links->member[class] != link)
				continue;
			while (f->out->place[k].link != class)
				k++;
			f->out->place[k].times++;
		}
	}
}

static Status
fold_links(struct folding *f)
{
	const struct partition *links = &f->classes->of[KIND_LINK];
	TRY(TEMP(f->ctx, f->out->rate, links->n_classes));
	for (int c = 0; c < links->n_classes; c++)
		f->out->rate[c] = f->whole->rate[links->member[c]];
	f->out->link_class = links->class;
	return OK;
}

static Status
fold(struct folding *f)
{
	const struct net *whole = f->whole;
	const struct partition *of = f->classes->of;
	struct net *out = f->out;
	*out = (struct net){ .plan = whole->plan, .bytes = whole->bytes,
		.n_hops = of[KIND_HOP].n_classes, .n_values = of[KIND_VALUE].n_classes,
		.n_links = of[KIND_LINK].n_classes, .n_gpus = of[KIND_GPU].n_classes };
	TRY(TEMP(f->ctx, f->mark, out->n_hops));
	TRY(fold_list(f, KIND_VALUE, whole->first_in, whole->in, &out->first_in, &out->in));
	TRY(fold_list(f, KIND_VALUE, whole->first_out, whole->out, &out->first_out, &out->out));
	TRY(fold_list(f, KIND_HOP, whole->first_follower, whole->follower, &out->first_follower, &out->follower));
	TRY(fold_list(f, KIND_GPU, whole->first_issue, whole->issue, &out->first_issue, &out->issue));
	TRY(TEMP(f->ctx, out->value_segment, out->n_values));
	for (int v = 0; v < out->n_values; v++)
		out->value_segment[v] = whole->value_segment[of[KIND_VALUE].member[v]];
	TRY(fold_hops(f));
	count_places(f);
	return fold_links(f);
}

Status
net_new(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, struct net *out)
{
	struct net all;
	struct classes classes;
	bool found = false;
	TRY(whole(ctx, plan, ask, &all));
	*out = all;
	/* Ranks that wait for each other's processors, or take from each other what a bucket has left, cannot be
	 * simulated as one for all of a class; nor is it known of steps that wait for room. */
	if (!ask->steps && ask->p.cores == 0 && ask->p.burst == 0 && !ask->p.in_order)
		TRY(alike_find(ctx, &all, ask, &classes, &found));
	struct folding f = { .ctx = ctx, .whole = &all, .ask = ask, .classes = &classes, .out = out };
	if (found)
		TRY(fold(&f));
	return flows_find(ctx, out);
}
