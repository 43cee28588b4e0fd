/* Hops, values, links and GPUs that go through the same states at the same times, found before anything is simulated,
 * so that one of each class is simulated for all.
 *
 * What decides about a thing:
 *
 *	hop	its bytes, latency and adding; the classes of its two values, of its sender and its links, of the hop
 *		that it follows and of those that follow it; and its turn, if its sender has more hops than it issues
 *		at once
 *	value	its bytes and when its input is there; the classes of the hops into and out of it; if those into it are
 *		added one after the other, their order
 *	link	its rate; the classes of the hops on it, with their number
 *	GPU	the classes of the hops that it issues, with their number
 *
 * A partition in which members of a class agree in all of that is stable: by induction over the events, whatever
 * happens to one happens at the same time to all others, since what it depends on has been alike until then. This needs
 * no symmetry of the machine; but a symmetry that keeps the order in which GPUs issue gives such a partition, its
 * orbits. That is why each GPU begins with the segments whose root it is (plan.c), not with the first of the file.
 *
 * The coarsest one is looked for by refinement: each hop has a colour, a hash of what decides about it, anew in each
 * round with the colours of the last one, until a round finds no more colours than the one before. The first and the
 * second sweep of a round follow the trees down and up, so that few rounds are needed. Colours may collide; so at last
 * all members are compared with the first of their class, and if two differ, nothing is folded.
 *
 * Where more than half of the hops differ, all of them are simulated. */
#include "simulate/run.h"

enum { ROUNDS_MOST = 64, ROUND_NS = 100 };	/* of a hop, about */

struct sums {
	uint64_t in, out;	/* of a value: its hops */
};

struct colouring {
	Ctx *ctx;
	const struct net *net;
	const SimAsk *ask;
	uint64_t *hop;
	struct sums *value;
	uint64_t *link, *gpu, *followers;
	int n_keys;		/* of the table by which colours are counted: a power of two */
	uint64_t *key;
	int *class_of_key;
	int *count;		/* of each class of hops, zero between comparisons */
	struct classes *out;
};

static inline uint64_t
mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
	a = (a ^ a >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return a ^ a >> 32;
}

static bool
is_ordered(const struct net *net, const SimAsk *ask, int gpu)
{
	return ask->p.at_once > 0 && net->first_issue[gpu + 1] - net->first_issue[gpu] > ask->p.at_once;
}

static int64_t
begin_of(const struct net *net, int value)
{
	return net->plan->begin ? net->plan->begin[net->value_segment[value]] : 0;
}

/* ---- colours ---- */

static void
first_colours(struct colouring *c)
{
	const struct net *net = c->net;
	for (int h = 0; h < net->n_hops; h++) {
		const struct net_hop *hop = &net->hop[h];
		uint64_t what = mix((uint64_t)net->bytes[hop->segment], (uint64_t)hop->latency);
		c->hop[h] = mix(what, hop->adds ? (uint64_t)hop->add_rate + 1 : 0);
		if (hop->feeder < 0 && is_ordered(net, c->ask, hop->src))
			c->hop[h] = mix(c->hop[h], (uint64_t)hop->turn);
	}
	for (int v = 0; v < net->n_values; v++)
		for (int i = net->first_in[v]; i < net->first_in[v + 1] && net_is_serial(net, c->ask, v); i++)
			c->hop[net->in[i]] = mix(c->hop[net->in[i]], (uint64_t)(i - net->first_in[v]));
}

/* Of links and GPUs: of the hops on them. */
static void
colour_links(struct colouring *c)
{
	const struct net *net = c->net;
	for (int l = 0; l < net->n_links; l++)
		c->link[l] = mix((uint64_t)net->rate[l], 1);
	for (int g = 0; g < net->n_gpus; g++)
		c->gpu[g] = 0;
	for (int h = 0; h < net->n_hops; h++) {
		const struct net_hop *hop = &net->hop[h];
		uint64_t one = mix(c->hop[h], 2);
		for (int i = hop->first_place; i < hop->first_place + hop->n_places; i++)
			c->link[net->place[i].link] += one;
		if (hop->feeder < 0)
			c->gpu[hop->src] += one;
	}
}

/* Down the trees: of the links, the sender, and the hops into the value that is sent. */
static void
sweep_down(struct colouring *c)
{
	const struct net *net = c->net;
	for (int v = 0; v < net->n_values; v++)
		c->value[v] = (struct sums){ mix((uint64_t)begin_of(net, v), 3), 0 };
	for (int h = 0; h < net->n_hops; h++) {
		const struct net_hop *hop = &net->hop[h];
		uint64_t colour = mix(mix(c->hop[h], c->gpu[hop->src]), c->value[hop->from].in);
		for (int i = hop->first_place; i < hop->first_place + hop->n_places; i++)
			colour = mix(colour, c->link[net->place[i].link]);
		if (hop->feeder >= 0)
			colour = mix(colour, c->hop[hop->feeder]);
		c->hop[h] = colour;
		c->value[hop->to].in += mix(colour, 4);
	}
}

/* Up the trees: of the hops out of the value that is brought, and those that follow. */
static void
sweep_up(struct colouring *c)
{
	const struct net *net = c->net;
	for (int h = 0; h < net->n_hops; h++)
		c->followers[h] = 0;
	for (int h = net->n_hops - 1; h >= 0; h--) {
		const struct net_hop *hop = &net->hop[h];
		c->hop[h] = mix(mix(c->hop[h], c->value[hop->to].out), c->followers[h]);
		if (hop->feeder >= 0)
			c->followers[hop->feeder] += mix(c->hop[h], 5);
		else
			c->value[hop->from].out += mix(c->hop[h], 6);
	}
}

static uint64_t
colour_of_value(const struct colouring *c, int v)
{
	return mix(c->value[v].in, c->value[v].out);
}

/* All that meets at the two values. */
static void
sweep_values(struct colouring *c)
{
	const struct net *net = c->net;
	for (int h = 0; h < net->n_hops; h++) {
		uint64_t from = colour_of_value(c, net->hop[h].from), to = colour_of_value(c, net->hop[h].to);
		c->hop[h] = mix(mix(c->hop[h], from), to);
	}
}

/* ---- classes ---- */

static uint64_t
colour_of(const struct colouring *c, Kind kind, int thing)
{
	switch (kind) {
	case KIND_HOP:
		return c->hop[thing];
	case KIND_VALUE:
		return colour_of_value(c, thing);
	case KIND_LINK:
		return c->link[thing];
	default:
		return c->gpu[thing];
	}
}

/* The place of a colour in the table; 0 stands for what is free. */
static int
key_of(const struct colouring *c, uint64_t colour)
{
	uint64_t at = colour;
	while (c->key[at & (uint64_t)(c->n_keys - 1)] && c->key[at & (uint64_t)(c->n_keys - 1)] != colour)
		at++;
	return (int)(at & (uint64_t)(c->n_keys - 1));
}

/* Classes in the order of their first members. */
static void
number_classes(struct colouring *c, Kind kind)
{
	struct partition *of = &c->out->of[kind];
	of->n_classes = 0;
	for (int k = 0; k < c->n_keys; k++)
		c->key[k] = 0;
	for (int i = 0; i < of->n; i++) {
		uint64_t colour = colour_of(c, kind, i) | 1;
		int key = key_of(c, colour);
		if (!c->key[key]) {
			c->key[key] = colour;
			c->class_of_key[key] = of->n_classes;
			of->member[of->n_classes++] = i;
		}
		of->class[i] = c->class_of_key[key];
	}
}

/* Fewer than two hops of a class, on average, are not worth it. */
static bool
refine(struct colouring *c)
{
	struct partition *hops = &c->out->of[KIND_HOP];
	first_colours(c);
	for (int round = 0, before = 0; round < ROUNDS_MOST; round++) {
		if (c->ask->timed && out_of_time(c->ctx, ROUND_NS * (int64_t)hops->n))
			return false;		/* the simulation fails */
		colour_links(c);
		sweep_down(c);
		sweep_up(c);
		sweep_values(c);
		number_classes(c, KIND_HOP);
		if (hops->n_classes > hops->n / 2)
			return false;
		if (hops->n_classes == before)
			return true;
		before = hops->n_classes;
	}
	return false;
}

/* ---- proof ---- */

/* Two lists of hops have each class equally often. */
static bool
same_hops(struct colouring *c, const int *a, int n_a, const int *b, int n_b)
{
	bool same = n_a == n_b;
	for (int i = 0; i < n_a && same; i++)
		c->count[class_of(c->out, KIND_HOP, a[i])]++;
	for (int i = 0; i < n_b && same; i++)
		same = --c->count[class_of(c->out, KIND_HOP, b[i])] >= 0;
	return same;
}

static bool
same_list(struct colouring *c, const int *first, const int *list, int a, int b)
{
	return same_hops(c, list + first[a], first[a + 1] - first[a], list + first[b], first[b + 1] - first[b]);
}

static bool
same_hop(struct colouring *c, int a, int b)
{
	const struct net *net = c->net;
	const struct net_hop *x = &net->hop[a], *y = &net->hop[b];
	bool same = net->bytes[x->segment] == net->bytes[y->segment] && x->latency == y->latency &&
	    x->adds == y->adds && x->add_rate == y->add_rate && x->n_places == y->n_places &&
	    (x->feeder < 0) == (y->feeder < 0) &&
	    class_of(c->out, KIND_VALUE, x->from) == class_of(c->out, KIND_VALUE, y->from) &&
	    class_of(c->out, KIND_VALUE, x->to) == class_of(c->out, KIND_VALUE, y->to) &&
	    class_of(c->out, KIND_GPU, x->src) == class_of(c->out, KIND_GPU, y->src);
	for (int i = 0; same && i < x->n_places; i++)
		same = class_of(c->out, KIND_LINK, net->place[x->first_place + i].link) ==
		    class_of(c->out, KIND_LINK, net->place[y->first_place + i].link);
	if (same && x->feeder >= 0)
		same = class_of(c->out, KIND_HOP, x->feeder) == class_of(c->out, KIND_HOP, y->feeder);
	else if (same && is_ordered(net, c->ask, x->src))
		same = x->turn == y->turn;
	return same && same_list(c, net->first_follower, net->follower, a, b);
}

static bool
same_value(struct colouring *c, int a, int b)
{
	const struct net *net = c->net;
	bool same = net->bytes[net->value_segment[a]] == net->bytes[net->value_segment[b]] &&
	    begin_of(net, a) == begin_of(net, b) && same_list(c, net->first_in, net->in, a, b) &&
	    same_list(c, net->first_out, net->out, a, b);
	int n = net->first_in[a + 1] - net->first_in[a];
	for (int i = 0; same && i < n && net_is_serial(net, c->ask, a); i++)
		same = class_of(c->out, KIND_HOP, net->in[net->first_in[a] + i]) ==
		    class_of(c->out, KIND_HOP, net->in[net->first_in[b] + i]);
	return same;
}

static bool
same_gpu(struct colouring *c, int a, int b)
{
	return same_list(c, c->net->first_issue, c->net->issue, a, b);
}

/* The hops on each link: list[first[l] .. first[l + 1] - 1]. */
static Status
hops_of_links(struct colouring *c, int **first, int **list)
{
	const struct net *net = c->net;
	int n = 0;
	TRY(TEMP(c->ctx, *first, net->n_links + 2));
	for (int h = 0; h < net->n_hops; h++)
		for (int i = 0; i < net->hop[h].n_places; i++, n++)
			(*first)[net->place[net->hop[h].first_place + i].link + 2]++;
	TRY(TEMP(c->ctx, *list, n));
	for (int l = 0; l < net->n_links; l++)
		(*first)[l + 2] += (*first)[l + 1];
	for (int h = 0; h < net->n_hops; h++)
		for (int i = 0; i < net->hop[h].n_places; i++)
			(*list)[(*first)[net->place[net->hop[h].first_place + i].link + 1]++] = h;
	return OK;
}

/* Each member agrees with the first of its class. */
static bool
all_same(struct colouring *c, Kind kind, bool (*same)(struct colouring *c, int a, int b))
{
	const struct partition *of = &c->out->of[kind];
	for (int i = 0; i < of->n; i++)
		if (of->member[of->class[i]] != i && !same(c, of->member[of->class[i]], i))
			return false;
	return true;
}

static Status
prove(struct colouring *c, bool *out)
{
	const struct partition *links = &c->out->of[KIND_LINK];
	int *first, *list;
	TRY(hops_of_links(c, &first, &list));
	*out = all_same(c, KIND_HOP, same_hop) && all_same(c, KIND_VALUE, same_value) &&
	    all_same(c, KIND_GPU, same_gpu);
	for (int l = 0; *out && l < links->n; l++) {
		int member = links->member[links->class[l]];
		*out = c->net->rate[l] == c->net->rate[member] && same_list(c, first, list, member, l);
	}
	return OK;
}

static Status
new_colouring(struct colouring *c)
{
	const struct net *net = c->net;
	int n[N_KINDS] = { net->n_hops, net->n_values, net->n_links, net->n_gpus }, most = 0;
	for (int kind = 0; kind < N_KINDS; kind++) {
		struct partition *of = &c->out->of[kind];
		*of = (struct partition){ .n = n[kind] };
		TRY(TEMP_EACH(c->ctx, of->n, of->class, of->member));
		most = of->n > most ? of->n : most;
	}
	for (c->n_keys = 2; c->n_keys < 2 * most; c->n_keys *= 2)
		;
	TRY(TEMP_EACH(c->ctx, c->n_keys, c->key, c->class_of_key));
	TRY(TEMP_EACH(c->ctx, net->n_hops, c->hop, c->followers));
	TRY(TEMP(c->ctx, c->value, net->n_values));
	TRY(TEMP(c->ctx, c->link, net->n_links));
	TRY(TEMP(c->ctx, c->gpu, net->n_gpus));
	return TEMP(c->ctx, c->count, net->n_hops);
}

/* Sums of the last colours, which are those that classes are numbered by. */
static void
sum_up(struct colouring *c)
{
	const struct net *net = c->net;
	colour_links(c);
	for (int v = 0; v < net->n_values; v++)
		c->value[v] = (struct sums){ mix(mix((uint64_t)begin_of(net, v), 3),
		    (uint64_t)net->bytes[net->value_segment[v]]), 0 };
	for (int h = 0; h < net->n_hops; h++) {
		c->value[net->hop[h].to].in += mix(c->hop[h], 4);
		if (net->hop[h].feeder < 0)
			c->value[net->hop[h].from].out += mix(c->hop[h], 6);
	}
}

Status
alike_find(Ctx *ctx, const struct net *net, const SimAsk *ask, struct classes *out, bool *found)
{
	struct colouring c = { .ctx = ctx, .net = net, .ask = ask, .out = out };
	TRY(new_colouring(&c));
	*found = refine(&c);
	if (!*found)
		return OK;
	sum_up(&c);
	for (int kind = KIND_VALUE; kind < N_KINDS; kind++)
		number_classes(&c, (Kind)kind);
	return prove(&c, found);
}
