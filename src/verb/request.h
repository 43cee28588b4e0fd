/* Text of the command line to what it asks for. All fail with USAGE, naming the option, and where one does not go
 * with others. */
#ifndef BLINK_REQUEST_H
#define BLINK_REQUEST_H

#include "format/format.h"
#include "model/model.h"
#include "verb/options.h"

enum { SIZES_MAX = 64 };

/* Of messages, bytes. */
typedef struct {
	int n;
	int64_t m[SIZES_MAX];
} Sizes;

/* --collective, or allreduce. */
Status request_collective(Ctx *ctx, const Options *opt, Collective *out);

/* All that is asked of a plan for this collective but the root, which is -1. */
Status request_parse(Ctx *ctx, const Options *opt, Collective coll, Ask *ask);

/* What fails because it cannot be had as asked (fail_asked) names the option: "--max-depth: 1: ...". Returns
 * `status`. */
Status request_blame(Ctx *ctx, Status status);

/* text: NULL: no sizes. */
Status request_sizes(Ctx *ctx, const char *text, Sizes *out);
Status request_summary(Ctx *ctx, const Options *opt, bool *json);

/* --budget, NULL: an hour, for work from now on. Fails: USAGE. */
Status request_time(Ctx *ctx, const char *text);

/* The same status; where the work failed as its time was over, the error names --budget and its value. */
Status request_in_time(Ctx *ctx, const Options *opt, Status status);

/* A whole number from 1 to `most`, of the option of this name; text NULL: *out stays. */
Status request_count(Ctx *ctx, const char *name, const char *text, int most, int *out);

/* A bit set of link classes. */
Status request_links(Ctx *ctx, const char *text, unsigned *out);

/* GPUs as gpu_list.h has them: "1,4-6", "gpu3,gpu0", "s0:0-2". NULL: all, in order. machine: its name and GPUs; one
 * without servers has those that its ids name. gpu: n_ranks entries. Fails: BAD_INPUT unknown, duplicate or none. */
Status request_gpus(Ctx *ctx, const Topology *machine, const char *text, int *gpu, int *n);

/* --gpus of a job, two or more. *gpu: in the run arena. label: of the machine. Fails: BAD_INPUT also 1 GPU. */
Status request_job(Ctx *ctx, const Options *opt, const char *label, const Topology *machine, int **gpu, int *n);

/* A rank, or the id of one of the job's GPUs; text NULL: rank 0. *out: -1, if the collective has none.
 * Fails: BAD_INPUT no such GPU. */
Status request_root(Ctx *ctx, const Topology *machine, const int *gpu, int n, Collective coll, const char *text,
    int *out);

/* --matrix, of n ranks, as it goes with what is asked; or none. Fails: also as matrix_read. */
Status request_matrix(Ctx *ctx, const Options *opt, int n, Ask *ask);

/* The bytes that the file --matrix has, of n ranks. Fails: as matrix_read, IO. */
Status request_bytes(Ctx *ctx, const char *path, int n, const int64_t **out);

/* GPUs that forward, as Ask has them: "rest", or ids. gpu: the n ranks, which may not be among them.
 * Fails: BAD_INPUT no such GPU, or a rank. */
Status request_relays(Ctx *ctx, const Topology *machine, const char *text, const int *gpu, int n, const char **out);

/* request_format.c: the name of a format of this verb: by --format, else by the ending of the output, else its
 * default. */
Status request_format(Ctx *ctx, const Options *opt, int verb, const char **out);

/* Of formats with a file for each rank, which are for one size of message: --size and --chunks. Fails: USAGE. */
Status request_chunks(Ctx *ctx, const Options *opt, const char *format, FormatInput *in);

/* --from: the name of a format of topologies that is read; NULL: not given. */
Status request_from(Ctx *ctx, const Options *opt, const char **out);

/* cluster.c: servers of files that are there. label: of the cluster's own file. Fails: IO. */
Status request_cluster(Ctx *ctx, const Options *opt, const char **label, ClusterRequest *ask);

/* Sizes of sets, as "2-8" or "3,5-7": sizes[k] for 0 <= k <= n; text NULL: 2 to n. */
Status request_set_sizes(Ctx *ctx, const char *text, int n, bool *sizes);

/* A bit set of collectives; text NULL: allreduce. */
Status request_collectives(Ctx *ctx, const char *text, unsigned *out);

/* "I/N", 1 <= I <= N: *shard is I - 1; text NULL: 0 of 1. */
Status request_shard(Ctx *ctx, const char *text, int *shard, int *n_shards);

/* A number of GB/s, or of another unit, times 1e9; text NULL: *out stays. lo, hi: likewise. unit: for messages. */
Status request_gb(Ctx *ctx, const char *name, const char *text, const char *unit, int64_t lo, int64_t hi,
    int64_t *out);

/* --jobs, or the CPUs that there are. */
Status request_jobs(Ctx *ctx, const Options *opt, int *out);

#endif
