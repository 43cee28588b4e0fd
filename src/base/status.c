#include "base/status.h"

#include "base/printable.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

const char *
status_text(Status status)
{
	switch (status) {
#define X(name, code, text)                                                    \
	case name:                                                             \
		return text;
		STATUS_LIST(X)
#undef X
	}
	return "unknown status";
}

const char *
status_name(Status status)
{
	switch (status) {
#define X(name, code, text)                                                    \
	case name:                                                             \
		return #name;
		STATUS_LIST(X)
#undef X
	}
	return "unknown";
}

void
ctx_init(Ctx *ctx)
{
	*ctx = (Ctx){ 0 };
}

void
ctx_free(Ctx *ctx)
{
	arena_free(&ctx->run);
	arena_free(&ctx->scratch);
}

static Status __attribute__((format(printf, 4, 0)))
keep_error(Ctx *ctx, Status status, const char *asked, const char *format, va_list args)
{
	if (ctx->error.status != OK)
		return ctx->error.status;
	vsnprintf(ctx->error.text, sizeof ctx->error.text, format, args);
	ctx->error.asked = asked;
	/* One line of UTF-8, whatever the bytes of a name from a file, even if it was cut inside a character. */
	make_printable(ctx->error.text);
	return ctx->error.status = status;
}

Status
fail(Ctx *ctx, Status status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	status = keep_error(ctx, status, NULL, format, args);
	va_end(args);
	return status;
}

Status
fail_asked(Ctx *ctx, Status status, const char *asked, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	status = keep_error(ctx, status, asked, format, args);
	va_end(args);
	return status;
}

Status
fail_memory(Ctx *ctx)
{
	return fail(ctx, NO_MEMORY, "out of memory");
}

void
log_verbose(Ctx *ctx, const char *format, ...)
{
	if (!ctx->log)
		return;
	char line[512];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	make_printable(line);
	ctx->log(ctx->log_to, line);
}

void
time_is_over(Ctx *ctx)
{
	ctx->late = ctx->cut_short = true;
}

/* ms until the reserve begins. */
static int
time_left(Ctx *ctx, const char *line)
{
	int64_t left = ctx->step(ctx->step_of, line);
	if (left == INT_MAX)
		return INT_MAX;
	left -= ctx->reserve;
	if (left <= 0)
		time_is_over(ctx);
	return (int)(left < INT_MIN ? INT_MIN : left);
}

void
limit_steps(Ctx *ctx, int64_t most_steps)
{
	ctx->steps = 0;
	ctx->most_steps = most_steps;
}

Status
count_steps(Ctx *ctx, const char *label, int64_t steps)
{
	ctx->steps += steps;
	if (ctx->most_steps == 0 || ctx->steps <= ctx->most_steps)
		return OK;
	return fail(ctx, LIMIT,
	    "%s: more than %lld steps to verify it: want a smaller schedule, or a cut as certificate", label,
	    (long long)ctx->most_steps);
}

int
progress(Ctx *ctx, const char *format, ...)
{
	char line[256];
	va_list args;
	if (!ctx->step)
		return INT_MAX;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	make_printable(line);
	if (!ctx->cut_short)
		snprintf(ctx->at, sizeof ctx->at, "%.95s", line);
	return time_left(ctx, line);
}

bool
out_of_time(Ctx *ctx, int64_t work)
{
	enum { ASK_EVERY = 4000000 };
	ctx->unasked += work;
	if (ctx->late || !ctx->step || ctx->unasked < ASK_EVERY)
		return ctx->late;
	ctx->unasked = 0;
	time_left(ctx, NULL);
	return ctx->late;
}
