/* GLPK, silent and tame: it prints nothing, and where it would end the process, out of memory among the reasons, the
 * work at hand is given up instead. Only lp.c, minimise.c and exact.c include this. */
#ifndef BLINK_LP_H
#define BLINK_LP_H

#include "base/status.h"

#include <glpk.h>

/* Do work(with). It may call GLPK; it may not own anything that only it could free, since an error inside GLPK leaves it
 * by longjmp and takes all of GLPK's objects along. Fails: NO_MEMORY then. */
Status lp_guard(Ctx *ctx, void (*work)(void *), void *with);

/* Everything that GLPK holds, of this thread. */
void lp_release(void);

#endif
