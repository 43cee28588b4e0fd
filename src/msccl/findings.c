#include "msccl/findings.h"

#include "base/array.h"

#include <stdio.h>
#include <string.h>

Status
findings_add(Ctx *ctx, RuleFindings *list, RuleFinding finding, const char *format, va_list args)
{
	char text[640];
	vsnprintf(text, sizeof text, format, args);
	TRY(GROW(ctx, list->finding, list->n, list->room));
	finding.text = arena_text(&ctx->run, text, strlen(text));
	list->finding[list->n++] = finding;
	return finding.text ? OK : fail_memory(ctx);
}

Status
findings_check(Ctx *ctx, const char *label, const RuleFindings *list, const Rule *rules)
{
	for (int i = 0; i < list->n; i++) {
		const RuleFinding *f = &list->finding[i];
		const Rule *rule = &rules[f->rule];
		char line[16] = "";
		if (f->line)
			snprintf(line, sizeof line, ":%d", f->line);
		if (rule->wrong)
			return fail(ctx, rule->runs ? UNVERIFIED : BAD_INPUT, "%s%s: %s: %s", label, line, rule->name,
			    f->text);
	}
	return OK;
}
