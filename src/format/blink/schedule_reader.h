/* The files that read a schedule file together: read_schedule.c has the order of things, the others a member each. */
#ifndef BLINK_FORMAT_SCHEDULE_READER_H
#define BLINK_FORMAT_SCHEDULE_READER_H

#include "format/doc.h"
#include "format/format.h"

/* A schedule file that is being read. */
struct reader {
	Ctx *ctx;
	const char *label;
	Topology *topo;
	Schedule *sched;
	struct named { const char *id; int vertex; } *named;	/* switches and NICs by id, ascending */
	int n_named;
	int version;
	DocList trees, edges;	/* edges: of trees of numbered edges */
	int n_edges;		/* of all trees so far */
	struct tree_work {	/* of schedule_tree_tokens: a list of edges, and one of links or ranks */
		Edge *edge;
		int *number;
		int edge_room, number_room;
	} work;
};

/* ---- schedule_members.c: all fail with BAD_INPUT or LIMIT, naming the place in the file ---- */

Status bad(struct reader *r, const Doc *at, const char *found, const char *want);

/* A member that must be there, of this kind or of any. */
Status need(struct reader *r, const Doc *object, const char *name, DocKind kind, const Doc **out);
Status need_any(struct reader *r, const Doc *object, const char *name, const Doc **out);

Status read_int(struct reader *r, const Doc *at, int lo, int hi, int *out);

/* "p/q" in lowest terms, at most `most`; want: what the message asks for. */
Status read_fraction(struct reader *r, const Doc *at, int64_t most, const char *want, Frac *out);

/* At most `limit` entries, of n or of the array itself. */
Status within(struct reader *r, const Doc *array, int n, int limit);
Status count_within(struct reader *r, const Doc *array, int limit);

/* ---- read_schedule.c ---- */

/* A reader and its schedule, of which nothing is there; then, of its file's root, all members but trees, parts and
 * symmetry. */
Status schedule_new_reader(Ctx *ctx, const char *label, struct reader *out);
Status schedule_read_members(struct reader *r, const Doc *root);

/* ---- read_schedule_topology.c ---- */

Status schedule_read_topology(struct reader *r, const Doc *root);

/* A rank, or the id of a switch or NIC that a link names. */
Status schedule_vertex(struct reader *r, const Doc *at, int *out);

/* ---- read_schedule_symmetry.c ---- */

Status schedule_read_symmetry(struct reader *r, const Doc *root);

/* ---- read_schedule_in_trees.c ---- */

Status schedule_read_in_trees(struct reader *r, const Doc *root);

/* ---- schedule_tree_tokens.c ---- */

/* The next tree, if it has known members alone, each once and within its limits: *done. Else nothing is taken, and its
 * Doc says what is wrong. Fails: NO_MEMORY. */
Status schedule_tree_tokens(struct reader *r, Segment *segment, bool *done);

/* Likewise the tree whose text begins here; *at goes past it. */
Status schedule_tree_at(struct reader *r, JsonTokens *at, Segment *segment, bool *done);

/* All of r->edges, likewise. */
Status schedule_edge_tokens(struct reader *r, Edge **out, bool *done);

/* ---- read_schedule_trees.c, read_schedule_rate.c ---- */

/* An edge. link: room for its links, LIMIT_ROUTE_LINKS or as many as there are. */
Status schedule_read_edge(struct reader *r, const Doc *at, int *link, Edge *out);

Status schedule_read_parts(struct reader *r, const Doc *root);
Status schedule_read_trees(struct reader *r, const Doc *root);
Status schedule_read_rate(struct reader *r, const Doc *root);
Status schedule_read_baselines(struct reader *r, const Doc *root);

/* ---- read_matrix.c ---- */

/* An array of n rows of n numbers; *out: in the run arena. */
Status matrix_read_rows(Ctx *ctx, const char *label, const Doc *array, int n, int64_t **out);

Status schedule_read_matrix(struct reader *r, const Doc *root);

#endif
