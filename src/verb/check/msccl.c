#include "verb/check/msccl.h"

#include "format/msccl/msccl.h"
#include "msccl/msccl.h"

#include <stdio.h>

/* Dialects for which there is no finding, as text. */
static const char *
loaders(const MscclFindings *found, char text[64])
{
	unsigned refused = 0;
	for (int i = 0; i < found->n; i++)
		if (found->finding[i].rule != MSCCL_RULE_ROOT && found->finding[i].rule != MSCCL_RULE_ONE_SLOT)
			refused |= found->finding[i].dialects;
	return refused == MSCCL_ALL ? "none of them" : msccl_dialects_text(MSCCL_ALL & ~refused, text);
}

static bool
needs_slots(const MscclFindings *found)
{
	for (int i = 0; i < found->n; i++)
		if (found->finding[i].rule == MSCCL_RULE_ONE_SLOT)
			return true;
	return false;
}

static void
summarise(const Msccl *algo, const MscclFindings *found, char *out, size_t room)
{
	int blocks = 0, steps = 0;
	char text[64], root[24] = "";
	for (int g = 0; g < algo->n_gpus; g++) {
		blocks += algo->gpu[g].n_blocks;
		for (int t = 0; t < algo->gpu[g].n_blocks; t++)
			steps += algo->gpu[g].block[t].n_steps;
	}
	if (found->root >= 0)
		snprintf(root, sizeof root, ", root %d", found->root);
	snprintf(out, room, "collective  %s%s, %s\n"
	    "algorithm   of MSCCL: %d gpus, %d channel%s, %d threadblocks, %d steps, %d chunk%s\n"
	    "deadlock    none in any order, with %d slots for a connection%s\n"
	    "loaded by   %s\n",
	    collective_name(algo->coll), root, !algo->out_of_place ? "in place" : algo->in_place
	    ? "in place and out of place" : "out of place", algo->n_gpus, algo->n_channels,
	    algo->n_channels == 1 ? "" : "s", blocks, steps, algo->chunks, algo->chunks == 1 ? "" : "s", found->slots,
	    needs_slots(found) ? "; one with one slot" : " or one", loaders(found, text));
}

Status
check_msccl(Ctx *ctx, const char *data, size_t size, char *summary, size_t room)
{
	Msccl *algo;
	MscclFindings found;
	TRY(msccl_read(ctx, "", data, size, &algo));
	TRY(msccl_check(ctx, "", algo, &found));
	if (summary)
		summarise(algo, &found, summary, room);
	return OK;
}
