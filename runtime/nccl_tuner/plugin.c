/* The objects that NCCL looks for. Each communicator has its own context, and no call but the first reads a file or
 * takes a lock. What is not known leaves NCCL's own choice as it is.
 *
 * Where NCCL has a table of costs, only that of ring with the Simple protocol is set: a schedule knows how fast links
 * are, and nothing of the protocols LL and LL128, which trade rate for latency. The number of channels stays NCCL's,
 * which knows how many there are. */
#include "nccl_tuner/tuner.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

/* NCCL makes a cost a thousand times larger where rings would lose precision: that, and all else that is so far from
 * what is predicted, is left as it is. */
enum { FAR = 32 };

/* How much longer than an empty message one takes where only rates count. */
enum { LARGE = 10 };

static void
say(NcclLog say_it, int level, const char *what)
{
	if (say_it)
		say_it(level, NCCL_SUBSYS_TUNING, __FILE__, __LINE__, "blink: %s", what);
}

/* ---- init and destroy ---- */

/* least: µs of any call by ring and Simple; 0: not given. */
static int
init(size_t n_ranks, size_t n_servers, double least, NcclLog log, void **context)
{
	if (!context)
		return NCCL_INVALID_ARGUMENT;
	struct tuner *tuner = calloc(1, sizeof *tuner);
	if (!tuner)
		return NCCL_SYSTEM_ERROR;
	const struct tuner_request ask = { .n_ranks = n_ranks <= LIMIT_COMM_RANKS ? (int)n_ranks : 0,
		.n_servers = n_servers <= n_ranks ? (int)n_servers : 0, .schedules = getenv("BLINK_SCHEDULES"),
		.machine = getenv("BLINK_MACHINE"), .gpus = getenv("BLINK_GPUS"), .least = least };
	Status status = tuner_learn(tuner, &ask);
	say(log, status == OK ? NCCL_LOG_INFO : NCCL_LOG_WARN, status == OK ? tuner->what : tuner->ctx.error.text);
	*context = tuner;
	return NCCL_SUCCESS;
}

static int
init_v2(size_t n_ranks, size_t n_servers, NcclLog log, void **context)
{
	return init(n_ranks, n_servers, 0, log, context);
}

static int
init_v5(void **context, uint64_t id, size_t n_ranks, size_t n_servers, NcclLog log, const void *domains,
    const double *constants)
{
	(void)id;
	(void)domains;
	return init(n_ranks, n_servers, constants ? constants[NCCL_ALGO_RING * N_NCCL_PROTOS + NCCL_PROTO_SIMPLE] : 0,
	    log, context);
}

static int
destroy(void *context)
{
	if (context)
		tuner_free(context);
	free(context);
	return NCCL_SUCCESS;
}

/* ---- choice ---- */

static int
set_costs(void *context, int func, size_t bytes, int ops, NcclCosts costs, int n_algos, int n_protos)
{
	const struct tuner *tuner = context;
	const struct ring_costs *known = tuner && costs ? tuner_costs(tuner, func, bytes) : NULL;
	if (!known || n_algos <= NCCL_ALGO_RING || n_protos <= NCCL_PROTO_SIMPLE)
		return NCCL_SUCCESS;
	float *cost = (float *)(void *)costs + NCCL_ALGO_RING * n_protos + NCCL_PROTO_SIMPLE;
	double time = tuner_time(tuner, known, bytes, ops);
	if (*cost > 0 && time < *cost * (double)FAR && *cost < time * FAR)
		*cost = (float)time;
	return NCCL_SUCCESS;
}

/* Without a table: where only the rate counts, and nothing can be faster than rings. */
static int
choose_v2(void *context, int func, size_t bytes, int collnet, int nvls, int ops, int *algo, int *proto, int *channels)
{
	const struct tuner *tuner = context;
	const struct ring_costs *known = tuner && algo && proto ? tuner_costs(tuner, func, bytes) : NULL;
	(void)channels;
	if (!known || collnet || nvls)
		return NCCL_SUCCESS;
	if (tuner_time(tuner, known, bytes, ops) < LARGE * tuner_time(tuner, known, 0, ops))
		return NCCL_SUCCESS;
	*algo = NCCL_ALGO_RING;
	*proto = NCCL_PROTO_SIMPLE;
	return NCCL_SUCCESS;
}

static int
choose_v3(void *context, int func, size_t bytes, int ops, NcclCosts costs, int n_algos, int n_protos, int *channels)
{
	(void)channels;
	return set_costs(context, func, bytes, ops, costs, n_algos, n_protos);
}

static int
choose_v4(void *context, int func, size_t bytes, int ops, NcclCosts costs, int n_algos, int n_protos, int registered,
    int *channels)
{
	(void)registered;
	(void)channels;
	return set_costs(context, func, bytes, ops, costs, n_algos, n_protos);
}

EXPORT const NcclTunerV2 ncclTunerPlugin_v2 = { "blink", init_v2, choose_v2, destroy };
EXPORT const NcclTunerV3 ncclTunerPlugin_v3 = { "blink", init_v2, choose_v3, destroy };
EXPORT const NcclTunerV4 ncclTunerPlugin_v4 = { "blink", init_v2, choose_v4, destroy };
EXPORT const NcclTunerV5 ncclTunerPlugin_v5 = { "blink", init_v5, choose_v4, destroy };
EXPORT const NcclTunerV6 ncclTunerPlugin_v6 = { { "blink", init_v5, choose_v4, destroy }, NULL };
