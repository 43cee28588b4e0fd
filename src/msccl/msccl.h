/* Is an algorithm of MSCCL right? Rules that executors need but do not check, and one run of it that stands for all. */
#ifndef BLINK_MSCCL_MSCCL_H
#define BLINK_MSCCL_MSCCL_H

#include "model/msccl.h"
#include "msccl/findings.h"

/* The programs that load such files. A rule is for one or more of them. */
#define MSCCL_DIALECT_LIST(X)                                                  \
	X(MSCCL_AZURE, "azure", "Azure/msccl-executor-nccl")                   \
	X(MSCCL_RCCL, "rccl", "RCCL up to 2.27.7 (ROCm 7.2)")                  \
	X(MSCCL_MICROSOFT, "msccl", "microsoft/msccl")

typedef enum { MSCCL_DIALECT_LIST(ROW_NAME) N_MSCCL_DIALECTS } MscclDialect;

/* name, is the file wrong (blinkc check refuses it), or is it only refused by some executors (blinkc lint lists it) */
#define MSCCL_RULE_LIST(X)                                                     \
	X(MSCCL_RULE_ATTRIBUTES, "attributes", true)                           \
	X(MSCCL_RULE_GPU_IDS, "gpu-ids", true)                                 \
	X(MSCCL_RULE_BLOCK_IDS, "tb-ids", true)                                \
	X(MSCCL_RULE_CHANNEL, "channel", true)                                 \
	X(MSCCL_RULE_PEER, "peer", true)                                       \
	X(MSCCL_RULE_CONNECTION, "connection", true)                           \
	X(MSCCL_RULE_MESSAGES, "messages", true)                               \
	X(MSCCL_RULE_STEP_NUMBER, "step-number", true)                         \
	X(MSCCL_RULE_COUNT, "count", true)                                     \
	X(MSCCL_RULE_CHUNKS, "chunks", true)                                   \
	X(MSCCL_RULE_OFFSET, "offset", true)                                   \
	X(MSCCL_RULE_DEPENDENCY, "dependency", true)                           \
	X(MSCCL_RULE_HASDEP, "hasdep", true)                                   \
	X(MSCCL_RULE_NOP, "nop", true)                                         \
	X(MSCCL_RULE_PLACE, "place", true)                                     \
	X(MSCCL_RULE_DEADLOCK, "deadlock", true)                               \
	X(MSCCL_RULE_RACE, "race", true)                                       \
	X(MSCCL_RULE_RESULT, "result", true)                                   \
	X(MSCCL_RULE_SIZES, "sizes", false)                                    \
	X(MSCCL_RULE_COLLECTIVE, "collective", false)                          \
	X(MSCCL_RULE_PROTOCOL, "protocol", false)                              \
	X(MSCCL_RULE_STEPS, "steps", false)                                    \
	X(MSCCL_RULE_BLOCKS, "threadblocks", false)                            \
	X(MSCCL_RULE_NODES, "nodes", false)                                    \
	X(MSCCL_RULE_SYNTAX, "syntax", false)                                  \
	X(MSCCL_RULE_INPUT, "input", false)                                    \
	X(MSCCL_RULE_ROOT, "root", false)                                      \
	X(MSCCL_RULE_ONE_SLOT, "one-slot", false)

typedef enum { MSCCL_RULE_LIST(ROW_NAME) N_MSCCL_RULES } MscclRule;

extern const Rule msccl_rule_rows[N_MSCCL_RULES];

/* "azure, rccl" */
const char *msccl_dialects_text(unsigned dialects, char text[64]);

/* All that is wrong: rules, in the order of the file; if none of them prevents it, deadlocks, races and wrong results.
 * algo: as the reader made it, nothing in it is trusted. Fails: LIMIT, NO_MEMORY.
 * Cost: chunks that steps move, times threadblocks of a GPU at worst. */
Status msccl_lint(Ctx *ctx, const char *label, const Msccl *algo, RuleFindings *out);

/* Fails with the first finding that is wrong: BAD_INPUT a rule; UNVERIFIED deadlock, race, result. */
Status msccl_check(Ctx *ctx, const char *label, const Msccl *algo, RuleFindings *out);

/* ---- between the files of this folder ---- */

Status msccl_find(Ctx *ctx, RuleFindings *list, MscclRule rule, unsigned dialects, int line, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

enum { MSCCL_ALL = (1 << N_MSCCL_DIALECTS) - 1 };

/* The rules. *sound: it can run. */
Status msccl_rules(Ctx *ctx, const Msccl *algo, RuleFindings *list, bool *sound);

/* One run; see run.c. `slots` of each connection; races and results are for in_place or not. */
Status msccl_run(Ctx *ctx, const char *label, const Msccl *algo, int slots, bool in_place, RuleFindings *list);

/* Chunks that a connection buffers at least: of Simple two, of LL and LL128 eight. */
int msccl_slots(const Msccl *algo);

#endif
