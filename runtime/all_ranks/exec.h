/* Programs that the host backend executes, made of schedules. */
#ifndef BLINK_EXEC_H
#define BLINK_EXEC_H

#include "blink_program.h"
#include "model/model.h"

/* The table of a schedule without its steps; it may be compact. digest: of the file. Memory: run arena. */
Status exec_describe(Ctx *ctx, const Schedule *sched, const char *digest, struct blink_program *out);

/* The table of a lowered schedule, executed by the host backend. digest: of the file. Memory: run arena. */
Status exec_program(Ctx *ctx, const Program *prog, const char *digest, struct blink_program *out);

#endif
