/* All rules and runs of an algorithm of MSCCL. */
#include "msccl/msccl.h"

/* With the slots of its protocol it must not hang; whether one would do is of interest for other executors. */
static Status
run_places(Ctx *ctx, const char *label, const Msccl *algo, RuleFindings *out)
{
	int before = out->n;
	out->slots = msccl_slots(algo);
	if (algo->out_of_place)
		TRY(msccl_run(ctx, label, algo, out->slots, false, out));
	if (algo->in_place && out->n == before)
		TRY(msccl_run(ctx, label, algo, out->slots, true, out));
	return out->n > before ? OK : msccl_run(ctx, label, algo, 1, !algo->out_of_place, out);
}

Status
msccl_lint(Ctx *ctx, const char *label, const Msccl *algo, RuleFindings *out)
{
	bool sound;
	*out = (RuleFindings){ .root = -1 };
	TRY(msccl_rules(ctx, algo, out, &sound));
	return sound ? run_places(ctx, label, algo, out) : OK;
}

Status
msccl_check(Ctx *ctx, const char *label, const Msccl *algo, RuleFindings *out)
{
	TRY(msccl_lint(ctx, label, algo, out));
	return findings_check(ctx, label, out, msccl_rule_rows);
}
