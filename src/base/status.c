#include "base/status.h"

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

Status
fail(Ctx *ctx, Status status, const char *format, ...)
{
	if (ctx->error.status != OK)
		return ctx->error.status;
	va_list args;
	va_start(args, format);
	vsnprintf(ctx->error.text, sizeof ctx->error.text, format, args);
	va_end(args);
	/* One line, whatever a file put into a name. */
	for (char *c = ctx->error.text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	return ctx->error.status = status;
}

Status
fail_memory(Ctx *ctx)
{
	return fail(ctx, NO_MEMORY, "out of memory");
}

void
talk(Ctx *ctx, const char *format, ...)
{
	if (!ctx->talk)
		return;
	char line[512];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	ctx->talk(ctx->talk_to, line);
}
