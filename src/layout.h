/* Where a picture shows GPUs, switches and servers. */
#ifndef BLINK_LAYOUT_H
#define BLINK_LAYOUT_H

#include "explain.h"

/* A GPU, what forwards, or a server as one where a picture has room for no more. x, y: its middle; w, h: its extent. */
typedef struct {
	int rank;		/* -1: no GPU */
	int vertex;		/* what it is; of a server its first GPU */
	int server;		/* or -1 */
	bool whole;		/* stands for all of its server */
	const char *label;
	double x, y, w, h;
} Spot;

/* All links of a class between two places; [0] from a to b, [1] back. */
typedef struct {
	int a, b;
	LinkClass class;
	double capacity[2], load[2];	/* GB/s */
	bool full[2], tight[2];	/* some link of it is */
	double bend;		/* its middle is so much higher than that of its ends, to go around what lies between them */
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
	bool aggregated;	/* servers as one place each */
	int left_out;		/* GPUs, or servers if they are one place each, that are not drawn */
	double w, h;
} Layout;

enum { LAYOUT_WIDTH = 696 };	/* no picture is wider */

/* GPUs of a server on a circle, those with links to each other near each other; the way over PCIe inside of it, or outside where
 * GPUs have links of their own; other switches between servers. Deterministic, by sums, products and roots alone.
 * *out: in the run arena. */
Status layout_own(Ctx *ctx, const Explained *e, Layout *out);

/* As Graphviz places it: engine "dot" or "neato". Fails: USAGE its library is not there; INTERNAL it gives up. */
Status layout_graphviz(Ctx *ctx, const Explained *e, const char *engine, Layout *out);

#endif
