#include "verb/check/msccl.h"

#include "base/json_write.h"
#include "format/msccl/msccl.h"
#include "msccl/msccl.h"

/* Dialects for which there is no finding. */
static unsigned
loaders(const RuleFindings *found)
{
	unsigned refused = 0;
	for (int i = 0; i < found->n; i++)
		if (found->finding[i].rule != MSCCL_RULE_ROOT && found->finding[i].rule != MSCCL_RULE_ONE_SLOT)
			refused |= found->finding[i].dialects;
	return MSCCL_ALL & ~refused;
}

static bool
needs_slots(const RuleFindings *found)
{
	for (int i = 0; i < found->n; i++)
		if (found->finding[i].rule == MSCCL_RULE_ONE_SLOT)
			return true;
	return false;
}

static void
count(const Msccl *algo, int *blocks, int *steps)
{
	*blocks = *steps = 0;
	for (int g = 0; g < algo->n_gpus; g++) {
		*blocks += algo->gpu[g].n_blocks;
		for (int t = 0; t < algo->gpu[g].n_blocks; t++)
			*steps += algo->gpu[g].block[t].n_steps;
	}
}

static void
put_text(const Msccl *algo, const RuleFindings *found, Text *out)
{
	char dialects[64];
	int blocks, steps;
	count(algo, &blocks, &steps);
	text_printf(out, "collective  %s", collective_name(algo->coll));
	if (found->root >= 0)
		text_printf(out, ", root %d", found->root);
	text_printf(out, ", %s\n", !algo->out_of_place ? "in place" : algo->in_place ? "in place and out of place"
	    : "out of place");
	text_printf(out, "algorithm   of MSCCL: %d gpus, %d channel%s, %d threadblocks, %d steps, %d chunk%s\n",
	    algo->n_gpus, algo->n_channels, algo->n_channels == 1 ? "" : "s", blocks, steps, algo->chunks,
	    algo->chunks == 1 ? "" : "s");
	text_printf(out, "deadlock    none in any order, with %d slots for a connection%s\n", found->slots,
	    needs_slots(found) ? "; one with one slot" : " or one");
	text_printf(out, "loaded by   %s\n", loaders(found) ? msccl_dialects_text(loaders(found), dialects)
	    : "none of them");
}

static void
put_loaders(JsonWriter *w, unsigned dialects)
{
	static const char *const names[] = { MSCCL_DIALECT_LIST(ROW_TEXT) };
	json_array(w, "loaded_by", JSON_TIGHT);
	for (int d = 0; d < N_MSCCL_DIALECTS; d++)
		if (dialects >> d & 1)
			json_string(w, NULL, names[d]);
	json_end(w);
}

static void
put_json(const char *path, const Msccl *algo, const RuleFindings *found, Text *out)
{
	JsonWriter w = { .out = out };
	int blocks, steps;
	count(algo, &blocks, &steps);
	json_file(&w, JSON_TIGHT, "blink-msccl-summary");
	json_string(&w, "file", path);
	json_string(&w, "name", algo->name);
	json_string(&w, "collective", collective_name(algo->coll));
	json_rank(&w, "root", found->root);
	json_bool(&w, "in_place", algo->in_place);
	json_bool(&w, "out_of_place", algo->out_of_place);
	json_string(&w, "protocol", algo->protocol);
	json_int(&w, "gpus", algo->n_gpus);
	json_int(&w, "channels", algo->n_channels);
	json_int(&w, "threadblocks", blocks);
	json_int(&w, "steps", steps);
	json_int(&w, "chunks", algo->chunks);
	json_int(&w, "slots", found->slots);
	json_bool(&w, "one_slot", !needs_slots(found));
	put_loaders(&w, loaders(found));
	json_file_end(&w);
}

Status
check_msccl(Ctx *ctx, const char *path, const Text *in, bool json, Text *summary)
{
	Msccl *algo;
	RuleFindings found;
	TRY(msccl_read(ctx, "", in->data, in->size, &algo));
	TRY(msccl_check(ctx, "", algo, &found));
	if (json)
		put_json(path, algo, &found, summary);
	else
		put_text(algo, &found, summary);
	return summary->failed ? fail_memory(ctx) : OK;
}
