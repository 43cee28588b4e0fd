/* Which hierarchy of rings is best for an allreduce: Ueno and Yokota's cost of p1 x ... x ph ranks, with the rate of
 * each layer from the machine; the search over all of them; and the cost's parameters from measurements.
 *
 * Ranks are in the order of the job: the ring of a layer from blocks of P ranks to blocks of P p ranks has every P-th
 * rank of such a block. Quantities are integers, times ps; the fit alone is in floating point. */
#ifndef BLINK_HIERARCHY_H
#define BLINK_HIERARCHY_H

#include "model/model.h"

#define HIERARCHY_PPM INT64_C(1000000)

/* member, name in options, unit (a divisor of that in memory), least, most, default, what it is, where that is from.
 * Times are ns, others numbers or millionths. docs/hierarchy.md has the same table, held to it by a test. */
#define HIERARCHY_COST_LIST(X) \
	X(alpha, "alpha", NS_PER_US, 0, LIMIT_LATENCY_NS, 4800, "start-up of a message (us)", \
	    "Ueno and Yokota, on ABCI") \
	X(steps, "steps", 1, 1, 16, 2, "start-ups in each step of a ring, s", "Ueno and Yokota, on ABCI") \
	X(layer, "layer", NS_PER_US, 0, LIMIT_LATENCY_NS, 100000, "start-up of each layer, both ways (us)", \
	    "an estimate: with 96 to 172 the published hierarchies of 128, 512, 1024 and 2048 GPUs are best; " \
	    "the paper's formula has 0") \
	X(server, "server", HIERARCHY_PPM, 1, 1000 * HIERARCHY_PPM, HIERARCHY_PPM, \
	    "time of a byte in layers within a server, by that of the links", "1: as the simulator's host") \
	X(network, "network", HIERARCHY_PPM, 1, 1000 * HIERARCHY_PPM, HIERARCHY_PPM, \
	    "time of a byte in layers between servers, by that of the links", \
	    "1: as the simulator's host, 9.3 of 12.5 GB/s of EDR, Ueno and Yokota")

typedef struct {
#define X(member, ...) int64_t member;
	HIERARCHY_COST_LIST(X)
#undef X
} HierarchyCost;

/* A row of the table. */
typedef struct {
	const char *name;
	int64_t unit, least, most, otherwise;
	size_t at;			/* offset in HierarchyCost */
	const char *what, *source;
} HierarchyParameter;

extern const HierarchyParameter hierarchy_parameters[];	/* ended by a row without a name */

void hierarchy_defaults(HierarchyCost *out);
int64_t *hierarchy_parameter(HierarchyCost *cost, const HierarchyParameter *row);

/* What the cost needs of a machine. */
typedef struct {
	int n_ranks;
	int server;		/* ranks of each server; 1: they have different numbers, or one each */
	int n_sizes;
	int *size;		/* divisors of n_ranks, ascending: those of blocks */
	int64_t *rate;		/* [i * n_sizes + j]: bytes/s that each rank sends, when the rings from blocks of
				 * size[i] to blocks of size[j] are all in use; 0: size[j] is no larger multiple */
} HierarchyMachine;

/* topo: of the job. *out: in the run arena. Cost: a maximum flow for each divisor of the number of ranks. */
Status hierarchy_machine(Ctx *ctx, const Topology *topo, HierarchyMachine *out);

/* The cost of messages of m bytes, 1 to LIMIT_MESSAGE. */
typedef struct {
	const HierarchyMachine *machine;
	HierarchyCost cost;
	int64_t m;
} HierarchyModel;

/* Number of a size; -1: no divisor. */
int hierarchy_size(const HierarchyMachine *machine, int64_t size);

/* May hierarchies have this layer? Rings are within servers, or have one rank in each. */
bool hierarchy_allows(const HierarchyMachine *machine, int i, int j);

/* Time of the layer from blocks of size[i] to blocks of size[j], both ways. */
int64_t hierarchy_layer_time(const HierarchyModel *model, int i, int j);

/* Time of all layers, their product a divisor of the number of ranks. A flat ring is one layer. */
int64_t hierarchy_time(const HierarchyModel *model, const Hierarchy *layers);

typedef struct {
	Hierarchy layers;
	int64_t time;
} HierarchyTime;

/* The best `most` hierarchies of all ranks, the best first: by time, then fewer layers, then longer inner rings.
 * out: `most` entries, of which *n are used. *tried: layers, or with `exhaustive` hierarchies, that were looked at.
 * exhaustive: one after the other; else the best of each number of ranks from the best of its divisors, which comes to
 * the same. Memory: scratch. */
Status hierarchy_search(Ctx *ctx, const HierarchyModel *model, int most, bool exhaustive, HierarchyTime *out, int *n,
    int64_t *tried);

/* ---- measurements ---- */

typedef struct {
	Hierarchy layers;
	int64_t m;		/* bytes */
	int64_t time;		/* ns */
	int line;
} Measurement;

/* A line "4x8x4,134217728,16400" for each: hierarchy, bytes, us. Empty lines, those that begin with # and a first line
 * "hierarchy,bytes,us" are passed over. *out: in the run arena, n >= 1.
 * Fails: BAD_INPUT with the line; LIMIT more than LIMIT_MEASUREMENTS. */
Status measurements_read(Ctx *ctx, const char *label, const char *text, size_t size, Measurement **out, int *n);

typedef struct {
	int n;			/* measurements */
	double rms, worst;	/* of (cost - measured) / measured */
	int line;		/* of the worst */
	bool fitted[8];		/* by row of the table: no layer that was measured needs the others */
} HierarchyFit;

/* alpha, layer, server and network with the least sum of squares of (cost - measured) / measured, none below 0; `steps`
 * stays. What no measurement has a layer for stays, too. *cost: changed.
 * Fails: BAD_INPUT a hierarchy does not divide the ranks, or the measurements do not tell the parameters apart. */
Status hierarchy_fit(Ctx *ctx, const char *label, const HierarchyMachine *machine, const Measurement *list, int n,
    HierarchyCost *cost, HierarchyFit *out);

#endif
