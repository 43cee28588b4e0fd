/* What a run leaves in the output of each rank, against what the collective asks. */
#include "msccl/state.h"

#include <stdio.h>

/* What chunk c of rank g's output has to hold: `place`, of one rank or of all; false: anything. */
static bool
wanted(const Msccl *algo, int root, int g, int c, int *place, int *rank)
{
	int block = msccl_block_chunks(algo);
	*place = c;
	*rank = EVERY_RANK;
	switch (algo->coll) {
	case BROADCAST:
		*rank = root;
		return true;
	case REDUCE:
		return g == root;
	case ALLREDUCE:
		return true;
	case GATHER:
		*rank = c / block;
		return g == root;
	case ALLGATHER:
		*rank = c / block;
		return true;
	case SCATTER:
		*rank = root;
		*place = g * block + c;
		return true;
	case REDUCESCATTER:
		*place = g * block + c;
		return true;
	default:
		*rank = c / block;
		*place = g * block + c % block;
		return true;
	}
}

static bool
has_rank(const Value *value, int r)
{
	return value->ranks[r / 64] >> r % 64 & 1;
}

/* The first rank that is missing, or is in it and must not be; -1: none. */
static int
odd_rank(const Msccl *algo, const Value *value, int rank)
{
	for (int r = 0; r < algo->n_gpus; r++)
		if (has_rank(value, r) != (rank == EVERY_RANK || rank == r))
			return r;
	return -1;
}

static bool
is_right(const struct run *run, const Value *value, int place, int rank)
{
	return value->place == place && value->twice == NOT_TWICE && odd_rank(run->algo, value, rank) < 0;
}

static void
describe(const struct run *run, const Value *value, int place, int rank, char text[200])
{
	int odd = odd_rank(run->algo, value, rank);
	if (value->place == PLACE_NONE)
		snprintf(text, 200, "nothing that was ever set");
	else if (value->place == PLACE_MIXED)
		snprintf(text, 200, "a sum of different chunks");
	else if (value->twice != NOT_TWICE)
		snprintf(text, 200, "what rank %d has, twice", value->twice);
	else if (odd >= 0 && rank == EVERY_RANK)
		snprintf(text, 200, "a sum without rank %d", odd);
	else if (odd >= 0)
		snprintf(text, 200, "what %s rank %d has", has_rank(value, rank) ? "also" : "not the right",
		    has_rank(value, rank) ? odd : rank);
	else
		snprintf(text, 200, "chunk %d of the message where chunk %d belongs", value->place, place);
}

/* How many chunks are wrong if this is the root; the first of them. */
static int
count_wrong(const struct run *run, int root, int *gpu, int *chunk)
{
	int n = msccl_expected_chunks(run->algo, MSCCL_OUTPUT), wrong = 0, place, rank;
	for (int g = run->algo->n_gpus - 1; g >= 0; g--)
		for (int c = n - 1; c >= 0; c--)
			if (wanted(run->algo, root, g, c, &place, &rank) && !is_right(run,
			    value_of(run, run->base[g * N_MSCCL_BUFFERS + MSCCL_OUTPUT] + c), place, rank)) {
				wrong++;
				*gpu = g;
				*chunk = c;
			}
	return wrong;
}

/* A root with the fewest wrong chunks: files do not say which rank it is. */
static int
guess_root(const struct run *run)
{
	int best = -1, least = 0, gpu, chunk;
	for (int r = 0; collective_rooted(run->algo->coll) && r < run->algo->n_gpus; r++) {
		int wrong = count_wrong(run, r, &gpu, &chunk);
		if (best < 0 || wrong < least) {
			best = r;
			least = wrong;
		}
	}
	return best;
}

Status
run_check_result(struct run *run)
{
	int root = guess_root(run), g = 0, c = 0, place, rank;
	char text[200], where[80] = "";
	run->list->root = root;
	int wrong = count_wrong(run, root, &g, &c);
	if (wrong == 0)
		return OK;
	int64_t cell = run->base[g * N_MSCCL_BUFFERS + MSCCL_OUTPUT] + c;
	const struct access *wrote = &run->cell[cell].wrote;
	int line = run->algo->gpu[g].line;
	wanted(run->algo, root, g, c, &place, &rank);
	describe(run, value_of(run, cell), place, rank, text);
	if (wrote->block >= 0) {
		const MscclBlock *b = run->block[wrote->block].block;
		line = b->step[wrote->step].line;
		snprintf(where, sizeof where, ", tb %d, step %d", b->id, wrote->step);
	}
	char want[60];
	snprintf(want, sizeof want, rank == EVERY_RANK ? "every rank once" : "chunk %d of rank %d", place, rank);
	return msccl_find(run->ctx, run->list, MSCCL_RULE_RESULT, MSCCL_ALL, line,
	    "gpu %d%s: chunk %d of its output holds %s: want %s (%d chunk%s wrong%s)", g, where, c, text, want, wrong,
	    wrong == 1 ? " is" : "s are", run->in_place ? ", in place" : "");
}
