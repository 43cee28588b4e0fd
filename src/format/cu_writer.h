/* The files that write source code together. */
#ifndef BLINK_FORMAT_CU_WRITER_H
#define BLINK_FORMAT_CU_WRITER_H

#include "format/format.h"

struct cu_writer {
	const Program *prog;
	const Schedule *sched;
	Text *out;
	int next_stream, next_ring, next_event;			/* that get a name */
	int *parent, *first_child, *next_child, *last_child;	/* the tree that is drawn, by rank; -1: none */
	const Edge **down_edge, **up_edge;			/* between a rank and its parent, or NULL */
};

/* ---- cu.c ---- */

/* The inner lines of a comment that say what the schedule is. Every text from a file is made safe for it. */
void cu_put_about(Text *out, const Schedule *sched, const char *digest);

/* ---- cu_drawing.c ---- */

/* Space for drawings, in the scratch arena. */
Status cu_drawing_new(Ctx *ctx, struct cu_writer *w);

/* The comment with tree s. */
void cu_put_drawing(struct cu_writer *w, int s);

/* "link 4 nvlink", "links 4 9 pcie" */
void cu_put_links(struct cu_writer *w, const Edge *edge);

/* ---- cu_tree.c ---- */

/* All of tree s, in ascending order of s. */
void cu_put_tree(struct cu_writer *w, int s);

#endif
