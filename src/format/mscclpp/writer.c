#include "format/mscclpp/writer.h"
#include "base/array.h"

void
writer_full(struct writer *w, int rank, const char *what)
{
	if (!w->too_many) {
		w->too_many = what;
		w->at_rank = rank;
	}
}

bool
writer_is_port(const struct writer *w, int a, int b)
{
	return w->sched->topo->vertex[a].node != w->sched->topo->vertex[b].node;
}

struct node *
writer_node(const struct writer *w, int p, int r)
{
	return &w->node[(int64_t)p * w->n + r];
}

int
writer_count(const struct writer *w, int p)
{
	return w->count[p / w->pieces];
}

Status
writer_add_work(struct writer *w, int rank, int piece, int *out)
{
	MscclppGpu *gpu = &w->plan->gpu[rank];
	if (gpu->n_blocks == BLOCKS)
		writer_full(w, rank, "threadblocks");
	TRY(GROW_TEMP(w->ctx, w->work, w->n_work, w->work_room));
	TRY(GROW_TEMP(w->ctx, gpu->block, gpu->n_blocks, w->block_room[rank]));
	struct work *work = &w->work[w->n_work];
	*work = (struct work){ .rank = rank, .piece = piece, .release = -1, .acquire = -1 };
	TRY(TEMP(w->ctx, work->passive, 2 * w->n));
	TRY(TEMP(w->ctx, work->block, 1));
	work->block->id = gpu->n_blocks++;
	for (int t = 0; t < N_MSCCLPP_CHANNELS; t++)
		TRY(TEMP(w->ctx, work->block->channel[t], MSCCLPP_MAX_CHANNELS));
	for (int t = 0; t <= MSCCLPP_PORT; t++)
		TRY(TEMP(w->ctx, work->block->remote[t], MSCCLPP_MAX_CHANNELS));
	*out = w->n_work++;
	return OK;
}

Status
writer_get_remote(struct writer *w, struct work *work, int type, int rank, MscclppBuffer buffer, int *id)
{
	MscclppGpu *gpu = &w->plan->gpu[work->rank];
	MscclppBlock *b = work->block;
	int i = 0;
	while (i < gpu->n_remotes && (gpu->remote[i].rank != rank || gpu->remote[i].buffer != buffer
	    || gpu->remote[i].types != 1u << type))
		i++;
	if (i == gpu->n_remotes) {
		TRY(GROW_TEMP(w->ctx, gpu->remote, gpu->n_remotes, w->remote_room[work->rank]));
		gpu->remote[gpu->n_remotes++] = (MscclppRemote){ rank, buffer, 1u << type };
	}
	for (*id = 0; *id < b->n_remotes[type]; (*id)++)
		if (b->remote[type][*id] == i)
			return OK;
	if (*id == MSCCLPP_MAX_CHANNELS)
		writer_full(w, work->rank, "buffers of other ranks that a threadblock accesses");
	else
		b->remote[type][b->n_remotes[type]++] = i;
	return OK;
}

Status
writer_add_op(struct writer *w, struct work *work, MscclppKind kind, MscclppOp **out)
{
	MscclppBlock *b = work->block;
	TRY(GROW_TEMP(w->ctx, b->op, b->n_ops, work->op_room));
	*out = &b->op[b->n_ops++];
	**out = (MscclppOp){ .kind = kind, .type = -1, .barrier = -1, .n_shares = 1 };
	return OK;
}

Status
writer_add_nop(struct writer *w, struct work *work)
{
	MscclppOp *op;
	const MscclppBlock *b = work->block;
	if (b->n_ops > 0 && b->op[b->n_ops - 1].kind == MSCCLPP_NOP)
		return OK;
	return writer_add_op(w, work, MSCCLPP_NOP, &op);
}
