#include "model/mscclpp.h"

#include <string.h>

const MscclppOpKind mscclpp_ops[N_MSCCLPP_OPS] = {
#define X(name, text, src, dst) { text, src, dst },
	MSCCLPP_OP_LIST(X)
#undef X
};

const char *const mscclpp_buffers[N_MSCCLPP_BUFFERS] = { "i", "o", "s" };
const char *const mscclpp_channels[N_MSCCLPP_CHANNELS] = { "memory", "port", "switch" };

bool
mscclpp_has_packets(const Mscclpp *plan)
{
	return strcmp(plan->protocol, "LL") == 0;
}

static bool
has_every_block(Collective coll, MscclppBuffer buffer)
{
	return coll == ALLTOALL || ((coll == ALLGATHER || coll == GATHER) && buffer == MSCCLPP_OUTPUT)
	    || ((coll == REDUCESCATTER || coll == SCATTER) && buffer == MSCCLPP_INPUT);
}

/* A buffer of an input or output of 0 chunks is not used. */
int
mscclpp_block_chunks(const Mscclpp *plan)
{
	for (int b = MSCCLPP_INPUT; b <= MSCCLPP_OUTPUT; b++) {
		int chunks = plan->gpu[0].chunks[b], blocks = has_every_block(plan->coll, b) ? plan->n_gpus : 1;
		if (chunks > 0)
			return chunks % blocks ? 0 : chunks / blocks;
	}
	return 0;
}

int
mscclpp_expected_chunks(const Mscclpp *plan, MscclppBuffer buffer)
{
	return mscclpp_block_chunks(plan) * (has_every_block(plan->coll, buffer) ? plan->n_gpus : 1);
}
