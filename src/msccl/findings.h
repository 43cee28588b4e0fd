/* What rules find in a program of others, for algorithms of MSCCL and plans of MSCCL++. */
#ifndef BLINK_MSCCL_FINDINGS_H
#define BLINK_MSCCL_FINDINGS_H

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>

typedef struct {
	const char *name;
	bool wrong;		/* blinkc check refuses the program; else blinkc lint lists it */
	bool runs;		/* what a run shows */
} Rule;

typedef struct {
	int rule;
	unsigned dialects;	/* of MSCCL: a bit for each MscclDialect that refuses the file, or does it wrong */
	int line;		/* of the file; 0: none */
	const char *text;	/* where: what was found: what is wanted */
} RuleFinding;

typedef struct {
	RuleFinding *finding;
	int n, room;
	int root;		/* of a rooted collective: the rank that its result is right for; -1: none */
	int slots;		/* of MSCCL: chunks that a connection was taken to buffer */
} RuleFindings;

/* finding.text: by the format. Fails: NO_MEMORY. */
Status findings_add(Ctx *ctx, RuleFindings *list, RuleFinding finding, const char *format, va_list args);

/* Fails with the first one that is wrong: BAD_INPUT a rule; UNVERIFIED what a run shows. */
Status findings_check(Ctx *ctx, const char *label, const RuleFindings *list, const Rule *rules);

#endif
