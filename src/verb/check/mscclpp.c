#include "verb/check/mscclpp.h"

#include "base/json_write.h"
#include "format/mscclpp/mscclpp.h"
#include "mscclpp/mscclpp.h"

static void
count(const Mscclpp *plan, int *blocks, int *ops)
{
	*blocks = *ops = 0;
	for (int g = 0; g < plan->n_gpus; g++) {
		*blocks += plan->gpu[g].n_blocks;
		for (int t = 0; t < plan->gpu[g].n_blocks; t++)
			*ops += plan->gpu[g].block[t].n_ops;
	}
}

/* Without findings that the executor minds. */
static bool
is_loaded(const RuleFindings *found)
{
	for (int i = 0; i < found->n; i++)
		if (found->finding[i].rule == MSCCLPP_RULE_ZERO || found->finding[i].rule == MSCCLPP_RULE_SWITCH)
			return false;
	return true;
}

static void
put_text(const Mscclpp *plan, const RuleFindings *found, Text *out)
{
	int blocks, ops;
	count(plan, &blocks, &ops);
	text_printf(out, "collective  %s", collective_name(plan->coll));
	if (found->root >= 0)
		text_printf(out, ", root %d", found->root);
	text_printf(out, ", %s\n", plan->in_place ? "in place" : "out of place");
	text_printf(out, "plan        of MSCCL++: %d gpus, %d threadblocks, %d operations, %d chunk%s of a block%s\n",
	    plan->n_gpus, blocks, ops, mscclpp_block_chunks(plan), mscclpp_block_chunks(plan) == 1 ? "" : "s",
	    mscclpp_has_packets(plan) ? ", packets" : "");
	text_put(out, "deadlock    none in any order\n");
	text_printf(out, "loaded by   %s\n", is_loaded(found) ? "MSCCL++ 0.9.0" : "no MSCCL++ since 0.9.0; see blinkc "
	    "lint");
}

static void
put_json(const char *path, const Mscclpp *plan, const RuleFindings *found, Text *out)
{
	JsonWriter w = { .out = out };
	int blocks, ops;
	count(plan, &blocks, &ops);
	json_file(&w, JSON_TIGHT, "blink-mscclpp-summary");
	json_string(&w, "file", path);
	json_string(&w, "name", plan->name);
	json_string(&w, "collective", collective_name(plan->coll));
	json_rank(&w, "root", found->root);
	json_bool(&w, "in_place", plan->in_place);
	json_string(&w, "protocol", plan->protocol);
	json_int(&w, "gpus", plan->n_gpus);
	json_int(&w, "threadblocks", blocks);
	json_int(&w, "operations", ops);
	json_int(&w, "chunks", mscclpp_block_chunks(plan));
	json_bool(&w, "loads", is_loaded(found));
	json_file_end(&w);
}

Status
check_mscclpp(Ctx *ctx, const char *path, const Text *in, bool json, Text *summary)
{
	Mscclpp *plan;
	RuleFindings found;
	TRY(mscclpp_read(ctx, "", in->data, in->size, &plan));
	TRY(mscclpp_check(ctx, "", plan, &found));
	if (json)
		put_json(path, plan, &found, summary);
	else
		put_text(plan, &found, summary);
	return summary->failed ? fail_memory(ctx) : OK;
}
