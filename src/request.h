/* What the options of a verb ask for. All fail with USAGE, naming the option, and where it is said with others. */
#ifndef BLINK_REQUEST_H
#define BLINK_REQUEST_H

#include "options.h"
#include "passes.h"

enum { SIZES_MAX = 64 };

/* Of messages, bytes. */
typedef struct {
	int n;
	int64_t m[SIZES_MAX];
} Sizes;

/* Everything that a plan depends on but the GPUs, the links and the root. */
Status request_parse(Ctx *ctx, const Options *opt, Request *ask);
Status request_hybrid(Ctx *ctx, const Options *opt, HybridKind *out);

/* text: NULL: no sizes. */
Status request_sizes(Ctx *ctx, const char *text, Sizes *out);
Status request_budget(Ctx *ctx, const char *text, int64_t *ms);

/* A bit set of link classes. */
Status request_links(Ctx *ctx, const char *text, unsigned *out);

/* A rank, or the id of one of the job's GPUs; text NULL: rank 0. *out: -1, if the collective has none. Fails: BAD_INPUT no such GPU. */
Status request_root(Ctx *ctx, const Topology *job, Collective coll, const char *text, int *out);

/* One of `formats`, ended by NULL: by --format, else by the ending of the output, else `otherwise`. */
Status request_format(Ctx *ctx, const Options *opt, const char *const *formats, const char *otherwise, const char **out);

/* Servers of a file that is there. Fails: IO. */
Status request_cluster(Ctx *ctx, const Options *opt, ClusterRequest *ask);

/* What was asked, with defaults filled in, so that the file can be made again: the options of the schedule. */
Status request_record(Ctx *ctx, const Options *opt, const Request *ask, unsigned classes, HybridKind hybrid, Schedule *sched);

/* Sizes of sets, as "2-8" or "3,5-7": sizes[k] for 0 <= k <= n; text NULL: 2 to n. */
Status request_set_sizes(Ctx *ctx, const char *text, int n, bool *sizes);

/* A bit set of collectives; text NULL: allreduce. */
Status request_collectives(Ctx *ctx, const char *text, unsigned *out);

/* "I/N", 1 <= I <= N: *shard is I - 1; text NULL: 0 of 1. */
Status request_shard(Ctx *ctx, const char *text, int *shard, int *n_shards);

/* --jobs, or the CPUs that there are. */
Status request_jobs(Ctx *ctx, const Options *opt, int *out);

#endif
