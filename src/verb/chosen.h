/* compile --size: the algorithm that takes messages of this size the least time. */
#ifndef BLINK_VERB_CHOSEN_H
#define BLINK_VERB_CHOSEN_H

#include "choice/choice.h"
#include "verb/request.h"
#include "view/view.h"

/* What is asked for. */
typedef struct {
	bool wanted;		/* one --size, and nothing that says which trees; with --pareto any sizes */
	Executor executor;
	Parameters given;	/* --parameters */
} ChoiceRequest;

/* format: of the output; for those with a file for each rank a size is that of their message alone. Fails: USAGE;
 * as request_parameters. */
Status request_choice(Ctx *ctx, const Options *opt, const Ask *ask, const char *format, const Sizes *sizes,
    ChoiceRequest *out);

/* As compile, for messages of m bytes. beside: with what NCCL takes. *ask: becomes that of the candidate, with which it
 * can be planned again. *made: begins as zeros. */
Status compile_chosen(Ctx *ctx, const Topology *machine, const int *gpu, int n, const ChoiceRequest *request, int64_t m,
    bool beside, Ask *ask, Compiled *made, Chosen *out);

/* --pareto with --size: a line for each candidate that no other equals in latency and rate and betters in one, with
 * its time at each size. */
Status print_candidates(Ctx *ctx, const Topology *machine, const int *gpu, int n, const ChoiceRequest *request,
    const Sizes *sizes, const Ask *ask);

#endif
