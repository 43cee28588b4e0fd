#ifndef BLINK_CHOICE_CANDIDATES_H
#define BLINK_CHOICE_CANDIDATES_H

#include "choice/choice.h"

/* out->candidate, planned and prepared. Fails: as choice_prepare. */
Status candidates_find(Ctx *ctx, const Job *job, Choices *out);

/* Those that are asked for, which name their algorithms; likewise. Fails: as choice_prepare_of. */
Status candidates_of(Ctx *ctx, const Job *job, const Ask *ask, int n, Choices *out);

#endif
