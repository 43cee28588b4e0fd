/* Schedules as pictures. */
#ifndef BLINK_DRAW_H
#define BLINK_DRAW_H

#include "explain.h"
#include "layout.h"

/* ---- pieces of SVG, for a page of any kind that has svg_style() in it once ---- */

/* A <style> element: colours of classes, light and dark. */
void svg_style(Text *out);

/* What a picture of a tree, and then a list of them, needs: work space. */
typedef struct {
	const Explained *e;
	Drawing drawing[2];
	int n_drawings;
	bool flat;		/* a path, from left to right */
	double *x, *y;		/* of each rank of a drawing */
	int *slots, *depth;
	bool *hidden;
	double w, h;		/* of the picture at hand, with its caption */
} TreePicture;

Status svg_tree_new(Ctx *ctx, const Explained *e, TreePicture *out);

/* Make tree t the one at hand: w and h say how much room it takes. */
void svg_tree_size(TreePicture *picture, int t);

/* The tree at hand as a <g>, its upper left corner at x, y. */
void svg_tree(TreePicture *picture, int t, double x, double y, Text *out);

/* The topology: lanes as wide as capacities, filled as they are used; its upper left corner at x, y. */
void svg_topology(const Explained *e, const Layout *layout, double x, double y, Text *out);

/* ---- whole files ---- */

/* A page that stands for itself: the topology with what each link carries, and a picture of each tree (blinkc(1)).
 * Fails: USAGE trees that are not there, a layout that this blinkc has not. */
Status emit_svg(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);

/* For Graphviz: the topology, and the edges of trees. */
Status emit_dot(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);

#endif
