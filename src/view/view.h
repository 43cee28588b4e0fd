/* One schedule for people: its loads, names and trees, as text, as a picture, and for Graphviz. */
#ifndef BLINK_VIEW_VIEW_H
#define BLINK_VIEW_VIEW_H

#include "base/text.h"
#include "model/model.h"

#include <stdio.h>

/* ---- its summary, as compile, check and show print it ---- */

/* All that a file alone proves is the bound. */
#define UNPROVEN_BOTH "that no schedule is faster, and that the bound can be reached"

/* Link classes of the machine between the GPUs of a job that its schedule does not use, and what they would add. Rates
 * in bytes/s; FRAC_ZERO: not known. */
typedef struct {
	unsigned classes;	/* 0: none is idle */
	Frac hybrid;		/* of --hybrid, whose parts carry messages together from hybrid_from bytes on */
	double hybrid_from;
	Frac pairs;		/* of --routes pair, if higher */
	Frac bound;		/* that no algorithm exceeds over all links */
} Idle;

/* A line; nothing where no class is idle. */
void summary_text_idle(const Idle *idle, Text *out);

/* GPUs that are no ranks and forward data. */
typedef struct {
	const char **gpu;	/* ids of those that carry any */
	int n;
	bool connected;		/* without them the links connect the job, at `rate` */
	Frac rate;		/* bytes/s */
} RelayGain;

void summary_text_relays(const Schedule *sched, const RelayGain *relays, Text *out);

/* What takes messages of that size another way. */
typedef struct {
	char name[24];		/* "nccl-2.8", "nccl-2.30.7" */
	char by[48];		/* "rings", "tree, LL, its choice" */
	int64_t time;		/* ps, simulated */
} OtherWay;

/* What was chosen for messages of a size. Times in ps. */
typedef struct {
	const char *way;	/* "knomial, radix 4" */
	int n_ways;		/* of which it is the best */
	const char *executor;
	int64_t bytes, chunk;
	int64_t time, least;	/* simulated; below which no algorithm goes */
	bool at_least;		/* the time is what it takes at least, and there is no chunk */
	int n_others;
	OtherWay other[LIMIT_BASELINES + 1];
} Chosen;

typedef struct {
	const char *file;		/* of the schedule, as it was named; NULL: none was read */
	const Schedule *sched;
	const char *unproven;		/* what is not proven where the rate misses the bound by more than rounding
					 * takes; NULL: nothing is open */
	const char *doubt;		/* what is implausible about the machine; NULL: nothing that is known */
	Frac best;			/* the optimum of the trees `best_of`, bytes/s; FRAC_ZERO: not proven */
	const int64_t *size;
	int n_sizes;
	const char *best_of;		/* what trees `best` is of; NULL: of no trees of their own kind */
	int other_trees, other_depth;	/* of a plan of the same rate; 0: there is none */
	const char *cut_at;		/* the step that a budget cut short; NULL: none */
	double budget;			/* s */
	const Idle *idle;		/* NULL: the machine is not known */
	const RelayGain *relays;	/* NULL: there are none */
	const Chosen *chosen;		/* NULL: nothing was */
	bool rates;			/* in text, also where something was chosen for its time */
} Summary;

/* Topology, trees, rate and bound, and a line for each size of a message in bytes: how it is divided, time and rate. Of
 * what was chosen for a size times instead, beside those of other ways. Fails: LIMIT parts whose division needs too
 * large numbers. */
Status summary_text(Ctx *ctx, const Summary *summary, Text *out);

/* For programs: one line of JSON (schemas/summary.schema.json). */
Status summary_json(Ctx *ctx, const Summary *summary, Text *out);

/* ---- what it does ---- */

typedef struct {
	const Schedule *sched;	/* NULL: of explain_machine */
	const Topology *topo;	/* its own, or the machine */
	const char **name;	/* of each vertex: its id, after its server where ids repeat; no control characters */
	const char **short_name;	/* of each rank: digits of its name, or its number: "3", "1/3" */
	bool shows_ranks;	/* names of GPUs do not end in their ranks, so ranks are printed too */
	int n_servers;
	int *server;		/* of each vertex, by its links: 0 .. n_servers-1, or -1: of none */
	int *device;		/* of each vertex: the first vertex whose id differs at most in :in or :out */
	double *load;		/* of each link, GB/s at the achieved rate */
	bool *saturated;	/* of each link: it carries exactly its capacity, a bottleneck */
	bool counts_entering;	/* the certificate counts what enters its side or parts, not what leaves */
	bool *tight;		/* of each link: it counts in the certificate of the bound */
} Explained;

/* sched: read. *out: in the run arena. Fails: LIMIT loads out of 64 bits. */
Status explain(Ctx *ctx, const char *label, const Schedule *sched, Explained *out);

/* A copy of text in which control characters are "?", so that it stays on its line. */
Status printable_line(Ctx *ctx, const char *text, const char **out);

/* ---- as text, as SVG, for Graphviz (blinkc-show(1)) ---- */

typedef struct {
	const char *trees;	/* "3,5", or NULL: from the first on, as many as fit */
	const char *layout;	/* "dot" or "neato": Graphviz places the vertices; NULL: layout.c does */
	/* a line for each link of these classes, as bits; 0: for all links, or where they are many for each kind */
	unsigned classes;
} ShowRequest;

/* Each begins with an empty line. Fails: USAGE no such tree. */
Status show_trees(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);
Status show_links(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);
Status show_proof(Ctx *ctx, const Explained *e, Text *out);

/* ", decided by an assumed link (CPU to CPU): state it with --cpu-link"; nothing where no link is assumed. */
void put_assumed(Text *out, Assumed assumed);

/* "*           decided by ...", a line for the rates of a table that have a star. */
void put_starred(Text *out, Assumed assumed);

/* The arithmetic from the certificate to the bound, the last line of show_proof. */
void put_arithmetic(Text *out, const Explained *e);

/* A page of its own: the topology with the load of each link, and a picture of each tree.
 * Fails: USAGE no such tree, a layout that this blinkc lacks. */
Status emit_svg(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);

/* Input of Graphviz: the topology, and the edges of trees. Fails: USAGE no such tree. */
Status emit_dot(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);

/* ---- a machine, by itself ---- */

/* Its names and servers; each link at its capacity. *out: in the run arena. */
Status explain_machine(Ctx *ctx, const Topology *machine, Explained *out);

/* Its parts, links by kind, and for each different server the matrix that nvidia-smi topo -m prints, with a legend. */
Status machine_text(Ctx *ctx, const Explained *e, Text *out);

/* A page with the machine alone. layout: as in ShowRequest. */
Status machine_svg(Ctx *ctx, const Explained *e, const char *layout, Text *out);

/* Input of Graphviz: each pair of vertices that links join. */
Status machine_dot(Ctx *ctx, const Explained *e, Text *out);

/* ---- positions of GPUs, switches and servers in a picture ---- */

/* A GPU, a switch, or a whole server where servers are drawn as one; also several of them that have one form. x, y: its
 * middle; w, h: its extent. */
typedef struct {
	int rank;		/* -1: not a GPU */
	int vertex;		/* of a server: its first GPU */
	int server;		/* or -1 */
	bool is_server;
	int n_same;		/* servers or switches that it stands for */
	const char *label;
	double x, y, w, h;
} Spot;

/* All links of a class between two spots; [0] from a to b, [1] back. */
typedef struct {
	int a, b;
	LinkClass class;
	int count[2];		/* physical links */
	bool mixed[2];		/* of several capacities */
	double capacity[2], load[2];	/* GB/s */
	bool saturated[2], tight[2];	/* one of its links is */
	double bend;		/* how much higher its middle is than its ends, to go around what lies between them */
} Cable;

typedef struct {
	const char *label;
	double x, y, w, h;	/* x, y: its upper left corner */
} Frame;

typedef struct {
	int n_spots, n_cables, n_frames;
	Spot *spot;
	int *spot_of;		/* of each vertex; -1: left out */
	Cable *cable;
	Frame *frame;		/* servers, where there are several */
	bool aggregated;	/* each server is one spot, or part of one */
	int left_out;		/* GPUs, or servers if aggregated, that are not drawn */
	double w, h;
	double scale;		/* of the whole, so that it fits into LAYOUT_WIDTH */
} Layout;

enum { LAYOUT_WIDTH = 696 };	/* px, of the widest picture once it is scaled */

/* GPUs of a server on a circle, those with links to each other near each other; PCIe inside the circle, or outside it
 * where GPUs are linked directly; other switches between servers. Deterministic: sums, products and square roots only.
 * *out: in the run arena. */
Status layout_own(Ctx *ctx, const Explained *e, Layout *out);

#endif
