/* The state of one simulation, for the files of this folder. */
#ifndef BLINK_SIMULATE_RUN_H
#define BLINK_SIMULATE_RUN_H

#include "simulate/queue.h"
#include "simulate/simulate.h"

enum { WEIGHT_ONE = 1 << 20, RATE_BITS = 20, LEVEL_BITS = 12 };

struct net_hop {
	int segment;
	int src, from, to;		/* a GPU, values */
	int feeder;			/* a hop, or -1 */
	int turn;			/* in the order in which src issues */
	int first_place, n_places;
	bool adds;
	int64_t add_rate;		/* bytes/s at which its receiver adds; 0: in no time */
	int64_t latency;		/* ps, of its path */
	int64_t weight;			/* of its share of a link */
	int flow;
};

/* A link of a hop. */
struct net_place {
	int link;
	int times;			/* hops of this class on one link of that class */
};

/* Hops over the same links: flows.c. */
struct net_flow {
	int first_place, n_places;	/* of net->flow_place: those of one of its hops */
};

/* A plan with the quantities of a message and an executor: all of it, or one of each class. Lists as those of the plan,
 * without hops of one class twice, but for values whose hops are added one after the other. */
struct net {
	const SimPlan *plan;
	int64_t *bytes;			/* of each segment */
	int n_hops, n_flows, n_values, n_links, n_gpus;
	struct net_hop *hop;
	struct net_flow *flow;
	struct net_place *place;	/* of hops */
	struct net_place *flow_place;	/* of flows: without links that another one stands for */
	int *first_in, *in, *first_out, *out;
	int *first_follower, *follower;
	int *first_issue, *issue;
	int *value_segment;
	int64_t *rate;			/* bytes/s of each link */
	int *link_class;		/* of each link of the topology: that which is simulated for it */
};

/* net.c. For any size of chunks, but otherwise as asked. In scratch memory. */
Status net_new(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, struct net *out);

/* Hops and links alone, of a schedule without segments: all of them, with equal weights. bytes: of each hop, 0. */
Status net_bare(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, struct net *out);

/* flows.c: those of all hops, of which places and weights are set; net->link_class then has one link of those that have
 * the same flows. In scratch memory. */
Status flows_find(Ctx *ctx, struct net *net);

/* Which things go through the same states at the same times: classes[kind], a partition of each. */
typedef enum { KIND_HOP, KIND_VALUE, KIND_LINK, KIND_GPU, N_KINDS } Kind;

struct partition {
	int n, n_classes;
	int *class;		/* of each thing */
	int *member;		/* of each class: the first */
};

struct classes {
	struct partition of[N_KINDS];
};

/* alike.c. net: all of a plan. *found: hops share classes, half of them or more. In scratch memory. */
Status alike_find(Ctx *ctx, const struct net *net, const SimAsk *ask, struct classes *out, bool *found);

static inline int
class_of(const struct classes *classes, Kind kind, int thing)
{
	return classes->of[kind].class[thing];
}

/* Are the hops into a value added one after the other, beside the next step? */
static inline bool
net_is_serial(const struct net *net, const SimAsk *ask, int value)
{
	bool adds = false;
	for (int i = net->first_in[value]; i < net->first_in[value + 1]; i++)
		adds |= net->hop[net->in[i]].adds;
	return adds && !ask->p.fused;
}

/* ps for bytes, rounded up; rate: bytes/s, 0: in no time. */
static inline int64_t
time_at_rate(int64_t bytes, int64_t rate)
{
	Wide time = rate ? ((Wide)bytes * PS_PER_S - 1) / rate + 1 : 0;
	return time > SIM_TIME_MOST ? SIM_TIME_MOST : (int64_t)time;
}

/* simulate.c. most: ps; if it takes longer, out->time is INT64_MAX, and nothing else is known but n_steps: those that
 * were simulated until that was certain. */
Status sim_run_net(Ctx *ctx, const struct net *net, const SimAsk *ask, int64_t most, SimResult *out);

/* A step that is under way at its sender, in slots that are used again. */
typedef enum { STEP_STARTING, STEP_QUEUED, STEP_MOVING, STEP_ADDING } StepState;

enum { NO_SLOT = -1 };

struct active {
	Wide end;			/* what each weight of its flow has got when its bytes have moved */
	int hop, step, cause;		/* cause: the step that let it begin */
	int next;			/* the slot that ends next of its flow; of what waits, that which is next */
	StepState state;
};

/* The steps of a flow get the same for each weight. The clock of a link counts what each weight that it bounds gets, in
 * ps * bytes/s << 2 * RATE_BITS; steps go by the clock of a link that bounds them. */
struct flow_run {
	Wide ahead;			/* what each weight has got since the flow began, less what that clock shows */
	int64_t weights;		/* of its steps that move */
	int first_place, n_places;
	int head, tail;			/* slots of these steps, in the order in which they end */
	int bound;			/* a link that bounds them */
	int clock;			/* the link by whose clock they go, `bound` once links have shared */
	int at;				/* in the heap of that link */
	bool stale;			/* in the list of flows whose clock may be another one */
};

/* A link of a flow, and where the flow is in the list of that link. */
struct place {
	int link, at, times;
};

enum { NO_LINK = -1, SEVERAL = -2 };

/* A flow in the list of a link. */
struct entry {
	int64_t weight, other_weight;	/* of its steps, as often as they use the link, and the other one */
	int flow;
	int place;			/* where the link is among those of the flow */
	int other;			/* the other link of the flow, NO_LINK or SEVERAL */
};

/* When the first step of a flow ends, by the clock of its link. */
struct end {
	Wide end;
	int flow;
};

/* Of a flow that a link might bound: the least level of its other links. */
struct other {
	Wide level;
	int64_t weight;
};

/* At most one chunk of a hop is under way at its sender: they follow one another. */
struct hop_run {
	int64_t begun, moved, arrived;	/* chunks that have begun, whose bytes have begun to move, that have arrived */
	int64_t ready;			/* when it began to wait */
	bool busy;			/* a step is under way, or waits */
	int cause;			/* of what waits */
};

struct value_run {
	int64_t there;		/* chunks that are complete */
	int have;		/* hops that have brought the next one */
	bool serial;		/* hops are added one after the other, beside the next step */
	bool adding;
	int next;		/* serial: of its hops, the one that is added next */
};

/* First what its neighbours look at, then what a new level needs. */
struct link_run {
	Wide level;		/* to each weight that it bounds: 2^-(2 * RATE_BITS + LEVEL_BITS) bytes/s */
	Wide left;		/* of its rate, by flows that others bound, at levels below its own */
	Wide below;		/* of those others none has a higher level */
	int64_t taken_weights;	/* of those others */
	int n_bound;		/* flows that it bounds: the first of its list */
	bool due;		/* its level is to be found again */
	bool changed;		/* what moves on it */
	bool stale;		/* in the list of links whose next end may be sooner */
	bool early;		/* its time in run->clocks is that of the next end, or sooner */

	Wide clock;		/* at `read` */
	Wide fastest;		/* the level up to which its next end is not before that time */
	int64_t read;
	int64_t weights;	/* of the flows that it bounds */
	int first;		/* of the list of flows that move on it, and of the heap of ends */
	int n;			/* of that list */
	int n_ends;		/* of the heap */

	int64_t since, busy;	/* since: something moves on it, or nothing does */
	int64_t tokens;		/* bytes that it lets pass at once */
	int first_queued, last_queued;	/* slots of steps that begin with it and wait for room; NO_SLOT: none does */
	Wide moved;
	double to_move, byte;	/* bytes whose move has not begun; ps that each of them takes at least */
};

struct gpu_run {
	int sending;
	int freed_by;		/* the step that ended last */
	bool touched;
	Keys waiting;		/* chunk << TURN_BITS | turn */
};

enum { TURN_BITS = 23 };

/* Links, each once. */
struct links {
	int n;
	int *link;
};

/* A link whose level is to be found, in a heap by the levels that they have, about. */
struct due {
	int64_t level;
	int link;
};

struct run {
	Ctx *ctx;
	const struct net *net;
	const SimAsk *ask;
	SimProtocol protocol;		/* by which links carry bytes; of threadblocks, which count them: chunks */
	SimResult *out;
	int64_t now;
	int64_t most;			/* ps: beyond that, nothing need be known */
	bool late;			/* it will be beyond */
	int64_t n_begun;		/* steps */
	int64_t n_starting;		/* start-ups that processors are at */
	int first_late, last_late;	/* slots that wait for a processor; NO_SLOT: none does */
	int n_queued;			/* steps that wait for room, `in_order` */
	int64_t n_steps;		/* to simulate: of a folded net one for each class */
	int64_t work;			/* since the last run_spend, in ns, about */
	int64_t *chunks;		/* of each segment: their number */
	struct hop_run *hop;
	struct value_run *value;
	struct link_run *link;
	struct gpu_run *gpu;
	struct active *active;		/* slots */
	int *free_slot, n_free;
	struct flow_run *flow;
	struct place *place;		/* of flows */
	struct entry *moving;		/* lists of links */
	struct end *end;		/* heaps of links */
	struct other *other;		/* work space of a link whose level is looked for */
	struct links changed, stale;
	int *stale_flow, n_stale_flows;
	struct due *due;
	int n_due;
	int *touched, n_touched;	/* GPUs */
	Clocks clocks;			/* of links: when the bytes of the next step that goes by them have moved */
	Events events;			/* ids: hops, whose chunks arrive; n_hops + a value, which has added or
					 * is input; n_hops + n_values + a slot, which goes on to its next state */
	int64_t *first_step;		/* steps are kept: of each hop, of its places in step_at */
	int *step_at;			/* the step of each chunk of each hop */
	int n_kept;
};

/* When something happens next. False: nothing does. */
static inline bool
run_next_time(const struct run *run, int64_t *out)
{
	int64_t clock = clocks_time(&run->clocks), event = events_time(&run->events);
	*out = clock < event ? clock : event;
	return *out < INT64_MAX;
}

/* A number of steps for a message: more_than(n), at_most(n). */
static inline const char *
more_than(Wide n)
{
	return n > INT64_MAX ? "more than " : "";
}

static inline long long
at_most(Wide n)
{
	return n > INT64_MAX ? (long long)INT64_MAX : (long long)n;
}

/* spend.c: about that number of ns were spent. Fails: LIMIT the time of ask->timed is over. */
Status run_spend(struct run *run, int64_t work);

/* links.c */
Status links_new(struct run *run);
void links_enter(struct run *run, int slot);	/* its bytes begin to move */
int links_leave(struct run *run);		/* the slot of which they have, now: that of the first of the clocks */
Status links_share(struct run *run);		/* new rates and ends of what moves on links that changed */

/* *out = moved, what a link has carried of a message of m bytes. name: what was simulated.
 * Fails: LIMIT 2^63 bytes or more. */
Status links_carried(Ctx *ctx, const char *name, int64_t m, Wide moved, int64_t *out);

static inline int64_t
chunk_bytes(const struct run *run, int segment, int64_t chunk)
{
	int64_t all = run->net->bytes[segment], size = run->ask->chunk, left = all - chunk * size;
	return left < size ? left : size;
}

/* ns before the bytes of a step move. */
static inline int64_t
protocol_step(const SimParameters *p, SimProtocol protocol)
{
	return protocol == SIM_CHUNKS ? p->step : p->packet_step;
}

/* Bytes on links, with flags. */
static inline int64_t
protocol_bytes(SimProtocol protocol, int64_t bytes)
{
	return protocol == SIM_PACKETS ? 2 * bytes : protocol == SIM_LINES ? bytes + (bytes + 14) / 15 : bytes;
}

/* sim_run of a plan that has too many hops: at_least.c. */
Status sim_at_least(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out);

#endif
