#include "model/msccl.h"

const MscclOpKind msccl_ops[N_MSCCL_OPS] = {
#define X(name, text, receives, sends, reads, writes) { text, receives, sends, reads, writes },
	MSCCL_OP_LIST(X)
#undef X
};

const char *const msccl_buffers[N_MSCCL_BUFFERS] = { "i", "o", "s" };

/* Executors divide the message of a gather or scatter by what one rank sends or receives; microsoft/msccl by what the
 * root has. The file tells by its largest buffer. */
static bool
counts_one_block(const Msccl *algo)
{
	int64_t most = 0;
	for (int g = 0; g < algo->n_listed; g++)
		for (int b = MSCCL_INPUT; b <= MSCCL_OUTPUT; b++)
			most = algo->gpu[g].chunks[b] > most ? algo->gpu[g].chunks[b] : most;
	return most > algo->chunks;
}

int
msccl_block_chunks(const Msccl *algo)
{
	switch (algo->coll) {
	case GATHER:
	case SCATTER:
		if (counts_one_block(algo))
			return algo->chunks;
		/* fall through */
	case ALLGATHER:
	case REDUCESCATTER:
	case ALLTOALL:
		return algo->chunks % algo->n_gpus ? 0 : algo->chunks / algo->n_gpus;
	default:
		return algo->chunks;
	}
}

int
msccl_expected_chunks(const Msccl *algo, MscclBuffer buffer)
{
	int block = msccl_block_chunks(algo);
	bool many = algo->coll == ALLTOALL
	    || ((algo->coll == ALLGATHER || algo->coll == GATHER) && buffer == MSCCL_OUTPUT)
	    || ((algo->coll == REDUCESCATTER || algo->coll == SCATTER) && buffer == MSCCL_INPUT);
	return many ? block * algo->n_gpus : block;
}
