/* Positions of a server's parts as a tree: CPUs on top, what they lead to in rows below them. Each vertex stands over
 * the middle of what it leads to; NICs of one switch stand in a column. All numbers come from additions and
 * divisions. */
#include "view/parts.h"

#include <math.h>

enum {
	GAP = 12,		/* between two in a row */
	ROW = 70,
	STACK = 26		/* between NICs in a column */
};

struct tree {
	Layout *out;
	const Topology *topo;
	int *parent, *depth;	/* of each spot; -1: a root, not reached yet */
	int *order, n;		/* spots, parents before what they lead to */
	int *nics;		/* leaves in the column of NICs below each */
	double *width;		/* of all that stands below, with itself */
	double *left, *next;	/* of the space for that, and of what is free of it */
	double *column;		/* where the column of NICs begins; -1: not yet */
};

static bool
is_leaf_nic(const struct tree *t, int p)
{
	int other, n = 0;
	for (int c = 0; c < t->out->n_cables; c++)
		n += cable_joins(&t->out->cable[c], p, &other);
	return n == 1 && t->parent[p] >= 0 && t->topo->vertex[t->out->spot[p].vertex].kind == VERTEX_NIC;
}

static void
add_root(struct tree *t, int p)
{
	t->depth[p] = 0;
	t->order[t->n++] = p;
}

/* What is reached first from the roots that are in the order already. */
static void
grow(struct tree *t, int head)
{
	int other;
	for (; head < t->n; head++)
		for (int c = 0; c < t->out->n_cables; c++)
			if (cable_joins(&t->out->cable[c], t->order[head], &other) && t->depth[other] < 0) {
				t->parent[other] = t->order[head];
				t->depth[other] = t->depth[t->order[head]] + 1;
				t->order[t->n++] = other;
			}
}

/* All CPUs are roots; and where they do not lead, switches, and the rest. */
static void
find_order(struct tree *t)
{
	static const VertexKind kinds[] = { VERTEX_SWITCH, VERTEX_GPU, VERTEX_NIC };
	for (int p = 0; p < t->out->n_spots; p++)
		if (t->topo->vertex[t->out->spot[p].vertex].kind == VERTEX_CPU)
			add_root(t, p);
	grow(t, 0);
	for (int k = 0; k < 3; k++)
		for (int p = 0; p < t->out->n_spots; p++)
			if (t->topo->vertex[t->out->spot[p].vertex].kind == kinds[k] && t->depth[p] < 0) {
				add_root(t, p);
				grow(t, t->n - 1);
			}
}

static void
measure(struct tree *t)
{
	for (int i = t->n - 1; i >= 0; i--) {
		int p = t->order[i], parent = t->parent[p];
		t->width[p] = fmax(t->width[p], t->out->spot[p].w + GAP);
		if (parent < 0)
			continue;
		if (!is_leaf_nic(t, p))
			t->width[parent] += t->width[p];
		else if (t->nics[parent]++ == 0)
			t->width[parent] += t->width[p];
	}
}

static double
place(struct tree *t, double x)
{
	double bottom = 0;
	for (int i = 0; i < t->n; i++) {
		int p = t->order[i], parent = t->parent[p];
		Spot *spot = &t->out->spot[p];
		double y = t->depth[p] * ROW + 20;
		if (parent < 0) {
			t->left[p] = x;
			x += t->width[p];
		} else if (is_leaf_nic(t, p) && t->column[parent] >= 0) {
			t->left[p] = t->column[parent];
			y += STACK * --t->nics[parent];
		} else {
			t->left[p] = t->next[parent];
			t->next[parent] += t->width[p];
			if (is_leaf_nic(t, p)) {
				t->column[parent] = t->left[p];
				y += STACK * --t->nics[parent];
			}
		}
		t->next[p] = t->left[p];
		spot->x = t->left[p] + t->width[p] / 2;
		spot->y = y;
		bottom = fmax(bottom, y + spot->h / 2);
	}
	t->out->w = x;
	return bottom;
}

/* A line between two of a row goes above what stands between them. */
static void
bend(Layout *out)
{
	for (int c = 0; c < out->n_cables; c++) {
		const Spot *a = &out->spot[out->cable[c].a], *b = &out->spot[out->cable[c].b];
		for (int p = 0; p < out->n_spots && fabs(a->y - b->y) < 1; p++) {
			const Spot *s = &out->spot[p];
			if (s != a && s != b && fabs(s->y - a->y) < STACK && (s->x - a->x) * (s->x - b->x) < 0)
				out->cable[c].bend = 24;
		}
	}
}

Status
layout_tree(Ctx *ctx, const Explained *e, Layout *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct tree t = { .out = out, .topo = e->topo };
	TRY(layout_spots(ctx, e, out));
	TRY(TEMP_EACH(ctx, out->n_spots, t.parent, t.depth, t.order, t.nics, t.width, t.left, t.next, t.column));
	for (int p = 0; p < out->n_spots; p++) {
		t.parent[p] = t.depth[p] = -1;
		t.column[p] = -1;
	}
	find_order(&t);
	measure(&t);
	out->h = place(&t, 0);
	bend(out);
	out->scale = out->w > LAYOUT_WIDTH ? LAYOUT_WIDTH / out->w : 1;
	arena_release(&ctx->scratch, mark);
	return OK;
}
