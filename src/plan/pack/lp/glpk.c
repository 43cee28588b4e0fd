#include "plan/pack/lp/glpk.h"

#include <setjmp.h>
#include <stdlib.h>

static void
on_error(void *escape)
{
	longjmp(*(jmp_buf *)escape, 1);
}

/* Errors go to stdout even with the terminal off, so nothing that GLPK says is printed. */
static int
say_nothing(void *info, const char *text)
{
	(void)info, (void)text;
	return 1;
}

Status
lp_guard(Ctx *ctx, void (*work)(void *), void *with)
{
	jmp_buf escape;
	if (glp_init_env() == 2)
		return fail_memory(ctx);
	glp_term_out(GLP_OFF);
	glp_term_hook(say_nothing, NULL);
	if (setjmp(escape)) {
		glp_error_hook(NULL, NULL);
		glp_free_env();
		return fail(ctx, NO_MEMORY, "the linear program failed: out of memory");
	}
	glp_error_hook(on_error, &escape);
	work(with);
	glp_error_hook(NULL, NULL);
	return OK;
}

void
lp_release(void)
{
	glp_free_env();
}
