/* Is an execution plan of MSCCL++ right? Rules that its executor needs but does not check, and one run of it that
 * stands for all. */
#ifndef BLINK_MSCCLPP_MSCCLPP_H
#define BLINK_MSCCLPP_MSCCLPP_H

#include "model/mscclpp.h"
#include "msccl/findings.h"

/* name; is the plan wrong (blinkc check refuses it), or is it only refused by the executor, or not of use there (blinkc
 * lint lists it) */
#define MSCCLPP_RULE_LIST(X)                                                   \
	X(MSCCLPP_RULE_GPU_IDS, "gpu-ids", true)                               \
	X(MSCCLPP_RULE_BLOCK_IDS, "tb-ids", true)                              \
	X(MSCCLPP_RULE_CHUNKS, "chunks", true)                                 \
	X(MSCCLPP_RULE_PEER, "peer", true)                                     \
	X(MSCCLPP_RULE_CHANNEL, "channel", true)                               \
	X(MSCCLPP_RULE_REMOTE, "remote-buffer", true)                          \
	X(MSCCLPP_RULE_OPERATIONS, "operations", true)                         \
	X(MSCCLPP_RULE_ARGUMENTS, "arguments", true)                           \
	X(MSCCLPP_RULE_OFFSET, "offset", true)                                 \
	X(MSCCLPP_RULE_GET, "get", true)                                       \
	X(MSCCLPP_RULE_PACKETS, "packets", true)                               \
	X(MSCCLPP_RULE_PIPELINE, "pipeline", true)                             \
	X(MSCCLPP_RULE_CONNECTION, "connection", true)                         \
	X(MSCCLPP_RULE_SIGNALS, "signals", true)                               \
	X(MSCCLPP_RULE_SEMAPHORE, "semaphore", true)                           \
	X(MSCCLPP_RULE_BARRIER, "barrier", true)                               \
	X(MSCCLPP_RULE_SIZES, "sizes", true)                                   \
	X(MSCCLPP_RULE_DEADLOCK, "deadlock", true)                             \
	X(MSCCLPP_RULE_ENTRY, "entry", true)                                   \
	X(MSCCLPP_RULE_RACE, "race", true)                                     \
	X(MSCCLPP_RULE_EXIT, "exit", true)                                     \
	X(MSCCLPP_RULE_AHEAD, "ahead", true)                                   \
	X(MSCCLPP_RULE_RESULT, "result", true)                                 \
	X(MSCCLPP_RULE_ZERO, "zero-chunks", false)                             \
	X(MSCCLPP_RULE_SWITCH, "switch-buffer", false)                         \
	X(MSCCLPP_RULE_FLUSH, "flush", false)                                  \
	X(MSCCLPP_RULE_BLOCKS, "threadblocks", false)                          \
	X(MSCCLPP_RULE_ROOT, "root", false)

typedef enum { MSCCLPP_RULE_LIST(ROW_NAME) N_MSCCLPP_RULES } MscclppRule;

extern const Rule mscclpp_rule_rows[N_MSCCLPP_RULES];

/* All that is wrong: rules, in the order of the file; if none of them prevents it, deadlocks, races and wrong results.
 * plan: as the reader made it, nothing in it is trusted. Fails: LIMIT, NO_MEMORY.
 * Cost: chunks that operations move, times threadblocks. */
Status mscclpp_lint(Ctx *ctx, const char *label, const Mscclpp *plan, RuleFindings *out);

/* Fails with the first finding that is wrong: BAD_INPUT a rule; UNVERIFIED what a run shows. */
Status mscclpp_check(Ctx *ctx, const char *label, const Mscclpp *plan, RuleFindings *out);

/* ---- between the files of this folder ---- */

/* Of the executor, at commit 1f5f065. */
enum { MSCCLPP_MAX_CHANNELS = 16, MSCCLPP_MAX_OP_CHANNELS = 8, MSCCLPP_MAX_OPS = 64, MSCCLPP_MAX_SEMAPHORES = 16,
	MSCCLPP_MAX_BARRIERS = 16, MSCCLPP_MAX_RANGES = 10, MSCCLPP_MAX_BLOCKS = 108 };
#define MSCCLPP_SCRATCH_BYTES (INT64_C(1) << 26)	/* of plans that reuse it */

Status mscclpp_find(Ctx *ctx, RuleFindings *list, MscclppRule rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The rules. *sound: it can run. */
Status mscclpp_rules(Ctx *ctx, const Mscclpp *plan, RuleFindings *list, bool *sound);

/* One run; see run.c. */
Status mscclpp_run(Ctx *ctx, const char *label, const Mscclpp *plan, RuleFindings *list);

#endif
