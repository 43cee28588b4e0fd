/* GLPK behind a guard: it prints nothing, and where it would end the process, for want of memory among others, only
 * the current work is given up. */
#ifndef BLINK_PLAN_PACK_LP_GLPK_H
#define BLINK_PLAN_PACK_LP_GLPK_H

#include "base/status.h"

#include <glpk.h>

/* Do work(with). It may call GLPK; it may not own anything that only it could free, since an error inside GLPK leaves
 * it by longjmp and takes all of GLPK's objects along. Fails: NO_MEMORY then. */
Status lp_guard(Ctx *ctx, void (*work)(void *), void *with);

/* Everything that GLPK holds, of this thread. */
void lp_release(void);

#endif
