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

bool
mscclpp_has_every_block(Collective coll, MscclppBuffer buffer)
{
	return coll == ALLTOALL || ((coll == ALLGATHER || coll == GATHER) && buffer == MSCCLPP_OUTPUT)
	    || ((coll == REDUCESCATTER || coll == SCATTER) && buffer == MSCCLPP_INPUT);
}

/* A buffer of an input or output of 0 chunks is not used. */
int
mscclpp_block_chunks(const Mscclpp *plan)
{
	for (int b = MSCCLPP_INPUT; b <= MSCCLPP_OUTPUT; b++) {
		int chunks = plan->gpu[0].chunks[b], blocks = mscclpp_has_every_block(plan->coll, b) ? plan->n_gpus : 1;
		if (chunks > 0)
			return chunks % blocks ? 0 : chunks / blocks;
	}
	return 0;
}

int
mscclpp_expected_chunks(const Mscclpp *plan, MscclppBuffer buffer)
{
	return mscclpp_block_chunks(plan) * (mscclpp_has_every_block(plan->coll, buffer) ? plan->n_gpus : 1);
}

int
mscclpp_other_end(const Mscclpp *plan, int g, int type, int k)
{
	const MscclppGpu *gpu = &plan->gpu[g], *peer = &plan->gpu[gpu->peer[type][k]];
	int nth = 0;
	for (int i = 0; i < k; i++)
		nth += gpu->peer[type][i] == gpu->peer[type][k];
	for (int i = 0; i < peer->n_channels[type]; i++)
		if (peer->peer[type][i] == g && nth-- == 0)
			return i;
	return -1;
}

bool
mscclpp_is_packets(const MscclppOp *op, bool src, int k)
{
	switch (op->kind) {
	case MSCCLPP_PUT_PACKETS:
		return !src || op->type == MSCCLPP_PORT;
	case MSCCLPP_READ_PUT_PACKETS:
	case MSCCLPP_STORE_PACKETS:
		return true;
	case MSCCLPP_COPY_PACKETS:
		return !src;
	case MSCCLPP_UNPACK_PACKETS:
		return src;
	case MSCCLPP_REDUCE_PACKETS:
	case MSCCLPP_REDUCE_COPY_PACKETS:
	case MSCCLPP_REDUCE_SEND_PACKETS:
	case MSCCLPP_REDUCE_COPY_SEND_PACKETS:
		return k > 0;
	default:
		return false;
	}
}
