/* What the files of view/ share: numbers and names, drawings of trees, pieces of SVG, pieces of layouts. */
#ifndef BLINK_VIEW_PARTS_H
#define BLINK_VIEW_PARTS_H

#include "view/view.h"

/* ---- explain.c, names.c ---- */

double explain_capacity(const Explained *e, int link);	/* GB/s */
double explain_use(const Explained *e, int link);	/* load divided by capacity */
double explain_rate(const Explained *e, int tree);	/* GB/s that a tree carries */

/* Fill name, short_name, shows_ranks and device. */
Status name_vertices(Ctx *ctx, Explained *e);

/* Length of an id without ":in" and ":out". */
size_t device_length(const char *id);

/* Numbers of trees, comma separated: chosen[n_trees] is set for these, or for all where text is NULL. Fails: USAGE. */
Status parse_trees(Ctx *ctx, const Explained *e, const char *text, bool *chosen);

/* ---- words.c ---- */

double per_cent(double value, bool whole);		/* at most 99.99; 100 if whole, and only then */
void put_rank(Text *out, const Explained *e, int rank);	/* "gpu4", or "gpu4 [0]" */

/* "0/1 to 1/6 of the buffer", "block of gpu3", "0/1 to 1/2 of the block from gpu0 to gpu1" */
void put_segment(Text *out, const Explained *e, int tree);

/* "nvlink", "nvlink via nvswitch", "pcie, net via plx0, nic0, ib": the route of an edge, seen from its child. up: it
 * leaves the child. */
void put_route(Text *out, const Explained *e, const Edge *edge, bool up);

/* ---- drawing.c ---- */

/* A phase of a tree, or both phases where each rank has the same parent in both. */
typedef struct {
	int root;
	bool up, down;
	int n;			/* ranks in it */
	int *parent, *first, *next;	/* of each rank: parent, first child, next sibling; -1: none */
	/* of each rank but the root: the edge between it and its parent; up_edge: that of up, if both are shown */
	const Edge **edge, **up_edge;
	uint64_t *hash;		/* of each rank: equal for isomorphic subtrees with equal routes to their parents */
	int *n_isomorphic;	/* of each rank: how many of its next siblings have the same hash */
	int *size;		/* of each rank: ranks of its subtree, with itself */
	int *order;		/* n ranks, parents first */
} Drawing;

/* Work space for draw_tree, in the run arena. */
Status drawing_new(Ctx *ctx, const Explained *e, Drawing drawing[2]);

/* Fills one drawing of a tree, or two; returns how many. */
int draw_tree(const Explained *e, int tree, Drawing drawing[2]);

bool drawing_is_path(const Drawing *d);

/* ---- svg_parts.c: for a page that has svg_style() in it once ---- */

/* A <style> element: colours of classes, light and dark. */
void svg_style(Text *out);

/* A number with one decimal; two coordinates, each after a text. */
void svg_number(Text *out, double value);
void svg_pair(Text *out, const char *a, double x, const char *b, double y);

enum {
	SVG_COLUMNS = 108,	/* of a line of text */
	SVG_PARTS = 6		/* colours of the sides of a cut, or the parts of a partition */
};

/* A line of text; or lines broken at blanks, `height` apart. Returns the y of the next line. */
void svg_text(Text *out, const char *class, double x, double y, const char *text);
double svg_wrapped(Text *out, const char *class, double x, double y, double height, const char *text);

/* ---- svg_tree.c ---- */

/* Pictures of trees, one after the other: work space, and the current one. */
typedef struct {
	const Explained *e;
	Drawing drawing[2];
	int n_drawings;
	bool flat;		/* a path, drawn from left to right */
	double *x, *y;		/* of each rank of a drawing */
	int *slots, *depth;
	bool *hidden;
	const int *same;	/* the trees that the current picture stands for, */
	int n_same;		/* and how many: 1, or more of one form and one share of the buffer */
	double w, h;		/* of the current picture, with its caption */
} TreePicture;

Status svg_tree_new(Ctx *ctx, const Explained *e, TreePicture *out);

/* Make tree[0] the current one, for all n of them, and compute w and h. */
void svg_tree_size(TreePicture *picture, const int *tree, int n);

/* The current one as a <g>, its upper left corner at x, y. */
void svg_tree(TreePicture *picture, double x, double y, Text *out);

/* Trees that have one form, in one place: tree[0 .. n-1] is permuted so that those of group g are
 * tree[first[g] .. first[g + 1] - 1], ascending, groups by their first trees. Small groups are divided into single
 * trees: which GPU is where says more than that they have one form. first: n + 1. Returns the number of groups.
 * Cost: the edges of all trees. */
int svg_tree_groups(TreePicture *picture, int *tree, int n, uint64_t *form, int *first);

/* ---- dot.c ---- */

/* A text in double quotes, for Graphviz; the colour of a class. */
void dot_quoted(Text *out, const char *text);
const char *dot_colour(LinkClass class);

/* ---- svg_topology.c, svg.c ---- */

enum { SVG_PAGE = 728, SVG_MARGIN = 16 };

/* A <g> in which coordinates are those of the layout, whose upper left corner is at x, y. */
void svg_place(Text *out, const char *class, const Layout *layout, double x, double y);

/* Lanes of links, GPUs, switches and servers, of a schedule or a machine. */
void svg_topology(const Explained *e, const Layout *layout, double x, double y, Text *out);

/* Width of the lane of a cable. Cost: that of a look at all cables. */
double svg_lane_width(const Layout *layout, double capacity);

/* "2 x 25", the links of a cable and what each has, GB/s; or all of them together. */
void svg_cable_label(Text *out, const Cable *cable, int direction);

/* Class for the colour of a side of the cut, or of a part of the partition where parts have several GPUs; "": none. */
const char *svg_part_class(const Explained *e, const Spot *spot);

/* Is one of the lanes tight, or not tight? Ticks are drawn only if there are both. */
bool svg_any_lane(const Layout *layout, bool tight);

/* A page of this height: its title, body and style. body: is freed. */
void svg_document(Text *out, const char *title, double height, Text *body);

/* ---- layout_server.c, graphviz.c ---- */

enum {
	DETAILED_GPUS = 32,	/* up to here GPUs are drawn one by one */
	LAYOUT_LEVELS = 8
};

struct layout_work {
	const Explained *e;
	Layout *out;
	int *level;		/* of each spot: hops from a GPU of its server, or between servers from a server */
};

/* Servers and switches that have one form become one spot. out: spots without places, servers first, and all cables,
 * which are to be found anew. Cost: a sort of the spots, and the GPUs for each server. */
Status layout_merge_same(Ctx *ctx, const Explained *e, Layout *out);

/* GPUs, switches and the like one by one, without places, and the cables between them; of many only the first. */
Status layout_spots(Ctx *ctx, const Explained *e, Layout *out);

/* A single server as a tree, CPUs on top. *out: in the run arena. */
Status layout_tree(Ctx *ctx, const Explained *e, Layout *out);

/* Positions within server s, around 0, 0. */
Status layout_server(Ctx *ctx, struct layout_work *work, int s);

/* Positions by Graphviz: engine "dot" or "neato". Fails: USAGE its library is not installed; INTERNAL it finds none. */
Status layout_graphviz(Ctx *ctx, const Explained *e, const char *engine, Layout *out);

/* Does a cable end at spot p? other: its other end. */
static inline bool
cable_joins(const Cable *cable, int p, int *other)
{
	*other = cable->a == p ? cable->b : cable->a;
	return cable->a == p || cable->b == p;
}

/* machine_matrix.c: of each different server of a machine, up to a few. */
Status machine_matrices(Ctx *ctx, const Topology *topo, Text *out);

#endif
