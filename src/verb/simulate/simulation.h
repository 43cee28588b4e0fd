/* blinkc simulate: what it is asked, and what it writes. */
#ifndef BLINK_VERB_SIMULATION_H
#define BLINK_VERB_SIMULATION_H

#include "base/json_write.h"
#include "base/text.h"
#include "verb/request.h"
#include "verb/simulate/program.h"

typedef struct {
	int64_t m;
	SimResult result;
	int64_t least;		/* sim_least_time */
	Frac algorithm, bus;	/* bytes/s */
	int bottleneck;		/* the link with the largest part of its time in use; -1: none is used */
	double use;		/* of it: bytes carried by capacity and time */
} SimRow;

typedef struct {
	const SimPlan *plan;
	const char **segment_name;	/* of phases: what traces call the steps of a segment; NULL: a schedule */
	const SimProgram *program;		/* whose plan it is; NULL: a schedule */
	Executor executor;
	Parameters given;	/* --parameters */
	SimParameters p;
	int64_t chunk;		/* 0: the best one */
	int n_rows;
	SimRow *row;
} Simulation;

/* --executor; text NULL: kernel. Fails: USAGE. */
Status request_executor(Ctx *ctx, const char *text, Executor *out);

/* What the file --parameters has (schemas/simulate-parameters.schema.json); path NULL: no file.
 * Fails: BAD_INPUT, LIMIT, IO. */
Status request_parameters(Ctx *ctx, const char *path, Parameters *out);

/* --chunk, 0 for the best one. Fails: USAGE. */
Status simulation_chunk(Ctx *ctx, const char *text, int64_t *out);

/* Of a link: bytes that it carried, divided by what its capacity allows in this time. */
double link_use(const Simulation *s, const SimRow *row, int link);

/* "gpu0 -> gpu3"; with "s0:" before each where there are several servers. */
void put_link(Text *out, const Topology *topo, int link);

/* "tree 2 up"; of an algorithm of MSCCL "channel 3"; of a plan of MSCCL++ "tb 3 op 5 put, memory". */
void put_hop(Text *out, const Simulation *s, const SimHop *hop);

/* What a hop carries: "chunk"; of a program "message". */
const char *what_moves(const Simulation *s);

/* Link classes whose links have the latency of the table, since their topology has none: a bit set. */
unsigned assumed_latency(const Simulation *s);

void simulation_text(const Simulation *s, Text *out);
void simulation_csv(const Simulation *s, Text *out);
/* As files of parameters have them, and the JSON of a simulation. */
void simulation_parameters(JsonWriter *w, const char *name, const SimParameters *p);
void simulation_json(const Simulation *s, Text *out);

/* A run of steps of the critical path: chunks first to last of one hop, one after the other, or one chunk. */
typedef struct {
	int hop;
	int64_t first, last;	/* chunks */
	int64_t begin, end;	/* ps: until the next run of the path begins */
	bool waited;		/* for a GPU that had too many steps under way */
} PathRun;

/* Fails: NO_MEMORY. */
Status critical_path_text(Ctx *ctx, const Simulation *s, const SimRow *row, Text *out);

/* The steps of a row as Chrome's trace events, which Perfetto reads: a row for each link. Fails: NO_MEMORY. */
Status trace_write(Ctx *ctx, const Simulation *s, const SimRow *row, Text *out);

#endif
