/* What a schedule does, for those who show it to people: names, servers, loads, which links are the narrow ones and why, and
 * trees in a form that can be drawn. */
#ifndef BLINK_EXPLAIN_H
#define BLINK_EXPLAIN_H

#include "passes.h"

typedef struct {
	const Schedule *sched;
	const char **name;	/* of each vertex: its id, with its server where others have the same; no control characters */
	const char **shortly;	/* of each rank: digits of its name, or its number: "3", "1/3" */
	bool numbered;		/* names of GPUs do not end in their ranks, so both are said */
	int n_servers;
	int *server;		/* of each vertex, by its links: 0 .. n_servers-1, or -1: of none */
	int *twin;		/* of each vertex: the first with its id, but for :in and :out */
	double *load;		/* of each link, GB/s at the achieved rate */
	bool *full;		/* of each link: it carries its capacity, exactly */
	bool *tight;		/* of each link: the certificate counts it */
} Explained;

/* sched: read. *out: in the run arena. Fails: LIMIT loads out of 64 bits. */
Status explain(Ctx *ctx, const char *label, const Schedule *sched, Explained *out);

/* Of what is one line: control characters become "?". */
Status explain_line(Ctx *ctx, const char *text, const char **out);

/* ---- numbers and names ---- */

double explain_capacity(const Explained *e, int link);	/* GB/s */
double explain_use(const Explained *e, int link);	/* load by capacity */
double explain_rate(const Explained *e, int tree);	/* GB/s of what goes along a tree */
void put_figures(Text *out, double value);		/* six of them: "85.7143" */
void put_percent(Text *out, double value, bool whole);	/* "99.99 %": 100 is for what is whole */
void put_rank(Text *out, const Explained *e, int rank);	/* "gpu4", or "gpu4 [0]" */

/* "0/1 to 1/6 of the buffer", "block of gpu3", "0/1 to 1/2 of the block from gpu0 to gpu1" */
void put_segment(Text *out, const Explained *e, int tree);

/* "nvlink", "nvlink via nvswitch", "pcie, net via plx0, nic0, ib": the way of an edge, seen from its child. up: it leaves the child. */
void put_way(Text *out, const Explained *e, const Edge *edge, bool up);

/* ---- trees ---- */

/* A phase of a tree, or both where they mirror each other: each rank has the same parent. */
typedef struct {
	int root;
	bool up, down;
	int n;			/* ranks in it */
	int *parent, *first, *next;	/* of each rank: parent, first child, next sibling; -1: none */
	const Edge **hop, **back;	/* of each rank but the root: the edge between it and its parent; back: up, where both are shown */
	uint64_t *shape;	/* of each rank: like that of others whose subtrees and ways are alike */
	int *alike;		/* of each rank: so many of its next siblings have the same subtree, in the same way, as it has */
	int *weight;		/* ranks of its subtree, with itself */
	int *order;		/* n ranks, parents first */
} Drawing;

/* One or two drawings of a tree. Their arrays are work space that is made once. */
Status drawing_new(Ctx *ctx, const Explained *e, Drawing drawing[2]);
int draw_tree(const Explained *e, int tree, Drawing drawing[2]);

/* Each rank has one child at most. */
bool drawing_is_path(const Drawing *d);

/* ---- text ---- */

typedef struct {
	const char *trees;	/* "3,5", or NULL: from the first on, while they are not too many */
	const char *layout;	/* "dot" or "neato": Graphviz places what the picture shows; NULL: layout.c does */
	unsigned classes;	/* a line for each link of these, as bits; 0: for all, or where they are many for each kind */
} ShowRequest;

/* Each is behind an empty line. */
Status show_trees(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);
Status show_links(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);
Status show_proof(Ctx *ctx, const Explained *e, Text *out);

/* The last line of the proof: its arithmetic. */
void put_arithmetic(Text *out, const Explained *e);

/* Numbers of trees, comma separated: n_trees entries of chosen are set, or all where text is NULL. Fails: USAGE. */
Status parse_trees(Ctx *ctx, const Explained *e, const char *text, bool *chosen);

#endif
