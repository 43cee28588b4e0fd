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
	DocList trees;
	int n_edges;		/* of all trees so far */
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

/* ---- read_schedule_topology.c ---- */

Status schedule_read_topology(struct reader *r, const Doc *root);

/* A rank, or the id of a switch or NIC that a link names. */
Status schedule_vertex(struct reader *r, const Doc *at, int *out);

/* ---- read_schedule_trees.c, read_schedule_rate.c ---- */

Status schedule_read_parts(struct reader *r, const Doc *root);
Status schedule_read_trees(struct reader *r, const Doc *root);
Status schedule_read_rate(struct reader *r, const Doc *root);
Status schedule_read_baselines(struct reader *r, const Doc *root);

#endif
