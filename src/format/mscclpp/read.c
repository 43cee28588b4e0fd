/* Execution plans of MSCCL++ to Mscclpp. */
#include "format/doc.h"
#include "format/mscclpp/mscclpp.h"

#include <string.h>

enum { OPS_PER_BLOCK = 256, IDS = 4096 };	/* far above what executors have room for */

struct reader {
	Ctx *ctx;
	const char *label;
	Mscclpp *plan;
	int n_ops;
};

/* ---- members ---- */

static Status
take_int(struct reader *r, const Doc *at, const char *name, int64_t lo, int64_t hi, int *out)
{
	const Doc *value;
	int64_t number;
	TRY(doc_need(r->ctx, r->label, at, name, DOC_NUMBER, &value));
	TRY(doc_int(r->ctx, r->label, value, lo, hi, &number));
	*out = (int)number;
	return OK;
}

/* Absent: *out stays. */
static Status
take_bool(struct reader *r, const Doc *at, const char *name, bool *out)
{
	const Doc *value = doc_get(at, name);
	if (value && value->kind != DOC_BOOL)
		return doc_want(r->ctx, r->label, value, "true or false");
	*out = value ? value->flag : *out;
	return OK;
}

static Status
take_optional(struct reader *r, const Doc *at, const char *name, int64_t lo, int64_t hi, int64_t *out)
{
	const Doc *value = doc_get(at, name);
	return value ? doc_int(r->ctx, r->label, value, lo, hi, out) : OK;
}

/* An array; NULL: none. */
static Status
take_array(struct reader *r, const Doc *at, const char *name, int most, const Doc **out)
{
	*out = doc_get(at, name);
	if (*out && (*out)->kind != DOC_ARRAY)
		return doc_want(r->ctx, r->label, *out, "an array");
	return *out && (*out)->n > most ? doc_fail(r->ctx, r->label, *out, LIMIT, "%d entries: want at most %d",
	    (*out)->n, most) : OK;
}

static Status
need_array(struct reader *r, const Doc *at, const char *name, int most, const Doc **out)
{
	TRY(doc_need(r->ctx, r->label, at, name, DOC_ARRAY, out));
	return take_array(r, at, name, most, out);
}

static Status
take_ints(struct reader *r, const Doc *list, int hi, int **out)
{
	TRY(NEW(r->ctx, *out, list->n));
	for (int i = 0; i < list->n; i++) {
		int64_t number;
		TRY(doc_int(r->ctx, r->label, list->child[i], 0, hi, &number));
		(*out)[i] = (int)number;
	}
	return OK;
}

static Status
take_name(struct reader *r, const Doc *at, const char *name, const char *const *names, int n, const char *want,
    int *out)
{
	const char *text;
	TRY(doc_string(r->ctx, r->label, at, name, &text));
	for (*out = 0; *out < n; (*out)++)
		if (strcmp(names[*out], text) == 0)
			return OK;
	return doc_want(r->ctx, r->label, doc_get(at, name), want);
}

static Status
take_buffer(struct reader *r, const Doc *at, const char *name, MscclppBuffer *out)
{
	int buffer;
	TRY(take_name(r, at, name, mscclpp_buffers, N_MSCCLPP_BUFFERS, "i, o or s", &buffer));
	*out = (MscclppBuffer)buffer;
	return OK;
}

static Status
take_channel(struct reader *r, const Doc *at, const char *name, int *out)
{
	return take_name(r, at, name, mscclpp_channels, N_MSCCLPP_CHANNELS, "memory, port or switch", out);
}

/* ---- operations ---- */

static Status
read_range(struct reader *r, const Doc *at, MscclppRange *range)
{
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "an object");
	TRY(take_int(r, at, "index", 0, LIMIT_MSCCL_CHUNKS, &range->index));
	TRY(take_int(r, at, "size", 0, LIMIT_MSCCL_CHUNKS, &range->size));
	if (doc_get(at, "switch_channel_id")) {
		range->where = MSCCLPP_MULTICAST;
		return take_int(r, at, "switch_channel_id", 0, IDS, &range->id);
	}
	if (doc_get(at, "buffer_id")) {
		range->where = MSCCLPP_REMOTE;
		return take_int(r, at, "buffer_id", 0, IDS, &range->id);
	}
	range->where = MSCCLPP_LOCAL;
	return take_buffer(r, at, "type", &range->buffer);
}

static Status
read_ranges(struct reader *r, const Doc *at, const char *name, int *n, MscclppRange **out)
{
	const Doc *list;
	TRY(take_array(r, at, name, IDS, &list));
	*n = list ? list->n : 0;
	TRY(NEW(r->ctx, *out, *n));
	for (int i = 0; i < *n; i++)
		TRY(read_range(r, list->child[i], &(*out)[i]));
	return OK;
}

static Status
read_lists(struct reader *r, const Doc *at, MscclppOp *op)
{
	const Doc *list;
	TRY(take_array(r, at, "channel_ids", IDS, &list));
	op->n_channels = list ? list->n : 0;
	if (list)
		TRY(take_ints(r, list, IDS, &op->channel));
	TRY(take_array(r, at, "semaphore_ids", IDS, &list));
	op->n_semaphores = list ? list->n : 0;
	if (list)
		TRY(take_ints(r, list, IDS, &op->semaphore));
	TRY(read_ranges(r, at, "src_buff", &op->n_src, &op->src));
	return read_ranges(r, at, "dst_buff", &op->n_dst, &op->dst);
}

static Status
read_kind(struct reader *r, const Doc *at, MscclppOp *op)
{
	const char *text;
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "an object");
	TRY(doc_string(r->ctx, r->label, at, "name", &text));
	for (int k = 0; k < N_MSCCLPP_OPS; k++)
		if (strcmp(mscclpp_ops[k].name, text) == 0) {
			op->kind = (MscclppKind)k;
			return OK;
		}
	return doc_want(r->ctx, r->label, doc_get(at, "name"), "an operation of MSCCL++, for example put");
}

static Status
read_op(struct reader *r, const Doc *at, MscclppOp *op)
{
	const Doc *share = doc_get(at, "tbg_info");
	*op = (MscclppOp){ .type = -1, .barrier = -1, .n_shares = 1 };
	TRY(read_kind(r, at, op));
	if (doc_get(at, "channel_type"))
		TRY(take_channel(r, at, "channel_type", &op->type));
	TRY(read_lists(r, at, op));
	if (doc_get(at, "barrier_id"))
		TRY(take_int(r, at, "barrier_id", 0, IDS, &op->barrier));
	if (doc_get(at, "num_threadblocks"))
		TRY(take_int(r, at, "num_threadblocks", 0, IDS, &op->n_blocks));
	if (share && share->kind == DOC_OBJECT) {
		TRY(take_int(r, share, "tbg_size", 1, LIMIT_MSCCLPP_SHARES, &op->n_shares));
		TRY(take_int(r, share, "tb_id", 0, op->n_shares - 1, &op->share));
	}
	return OK;
}

/* Operations of a list, and those inside its pipelines, one level deep: the executor has no more. */
static Status
read_ops(struct reader *r, const Doc *list, MscclppBlock *block, bool inner)
{
	for (int i = 0; i < list->n; i++) {
		const Doc *at = list->child[i], *context, *ops;
		MscclppOp *op = &block->op[block->n_ops++];
		TRY(read_op(r, at, op));
		if (op->kind != MSCCLPP_PIPELINE)
			continue;
		if (inner)
			return doc_fail(r->ctx, r->label, at, BAD_INPUT, "a pipeline in a pipeline: want none");
		TRY(doc_need(r->ctx, r->label, at, "iter_context", DOC_OBJECT, &context));
		int unit;
		TRY(take_int(r, context, "unit_size", 1, INT32_MAX, &unit));
		op->unit = unit;
		TRY(take_int(r, context, "num_chunks", 1, LIMIT_MSCCL_CHUNKS, &op->n_chunks));
		TRY(need_array(r, at, "ops", OPS_PER_BLOCK, &ops));
		op->n_inner = ops->n;
		TRY(read_ops(r, ops, block, true));
	}
	return OK;
}

static int
count_ops(const Doc *list)
{
	int n = list->n;
	for (int i = 0; i < list->n; i++) {
		const Doc *inner = list->child[i]->kind == DOC_OBJECT ? doc_get(list->child[i], "ops") : NULL;
		n += inner && inner->kind == DOC_ARRAY ? inner->n : 0;
	}
	return n;
}

/* ---- threadblocks ---- */

/* The ids of all entries of a type, one after the other. */
static Status
read_ids(struct reader *r, const Doc *at, const char *name, const char *type_name, const char *ids_name, int n_types,
    int *n, int **out)
{
	const Doc *list, *ids;
	TRY(take_array(r, at, name, IDS, &list));
	for (int pass = 0; pass < 2; pass++) {
		for (int t = 0; t < n_types && pass; t++)
			TRY(NEW(r->ctx, out[t], n[t]));
		memset(n, 0, (size_t)n_types * sizeof *n);
		for (int i = 0; list && i < list->n; i++) {
			int type, *id;
			if (list->child[i]->kind != DOC_OBJECT)
				return doc_want(r->ctx, r->label, list->child[i], "an object");
			TRY(take_channel(r, list->child[i], type_name, &type));
			TRY(need_array(r, list->child[i], ids_name, IDS, &ids));
			if (type >= n_types)
				continue;
			if (ids->n > IDS - n[type])
				return doc_fail(r->ctx, r->label, ids, LIMIT, "more than %d in all", IDS);
			if (pass) {
				TRY(take_ints(r, ids, IDS, &id));
				memcpy(out[type] + n[type], id, (size_t)ids->n * sizeof *id);
			}
			n[type] += ids->n;
		}
	}
	return OK;
}

static Status
read_block(struct reader *r, const Doc *at, MscclppBlock *block)
{
	const Doc *ops;
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "an object");
	TRY(take_int(r, at, "id", 0, INT32_MAX, &block->id));
	TRY(read_ids(r, at, "channels", "channel_type", "channel_ids", N_MSCCLPP_CHANNELS, block->n_channels,
	    block->channel));
	TRY(read_ids(r, at, "remote_buffer_refs", "access_channel_type", "remote_buffer_ids", MSCCLPP_PORT + 1,
	    block->n_remotes, block->remote));
	TRY(need_array(r, at, "ops", OPS_PER_BLOCK, &ops));
	int n = count_ops(ops);
	if (n > OPS_PER_BLOCK || n > LIMIT_MSCCL_STEPS - r->n_ops)
		return doc_fail(r->ctx, r->label, ops, LIMIT, "%d operations: want at most %d", n, OPS_PER_BLOCK);
	r->n_ops += n;
	TRY(NEW(r->ctx, block->op, n));
	return read_ops(r, ops, block, false);
}

/* ---- GPUs ---- */

static Status
read_peers(struct reader *r, const Doc *at, int *n, int **out)
{
	const Doc *peers;
	int *more, *peer;
	TRY(need_array(r, at, "connected_to", IDS, &peers));
	if (peers->n > IDS - *n)
		return doc_fail(r->ctx, r->label, peers, LIMIT, "more than %d channels of a type", IDS);
	TRY(NEW(r->ctx, more, *n + peers->n));
	TRY(take_ints(r, peers, LIMIT_MSCCL_GPUS, &peer));
	if (*n > 0)
		memcpy(more, *out, (size_t)*n * sizeof *more);
	memcpy(more + *n, peer, (size_t)peers->n * sizeof *more);
	*out = more;
	*n += peers->n;
	return OK;
}

static Status
read_switch(struct reader *r, const Doc *at, MscclppGpu *gpu)
{
	const Doc *groups, *ranks;
	MscclppBuffer buffer;
	bool old = !doc_get(at, "buffer_type") && doc_get(at, "buff");
	TRY(take_buffer(r, at, old ? "buff" : "buffer_type", &buffer));
	TRY(need_array(r, at, "rank_groups", IDS, &groups));
	if (groups->n > IDS - gpu->n_switches)
		return doc_fail(r->ctx, r->label, groups, LIMIT, "more than %d switch channels", IDS);
	MscclppSwitch *more;
	TRY(NEW(r->ctx, more, gpu->n_switches + groups->n));
	if (gpu->n_switches > 0)
		memcpy(more, gpu->multicast, (size_t)gpu->n_switches * sizeof *more);
	gpu->multicast = more;
	for (int i = 0; i < groups->n; i++) {
		MscclppSwitch *one = &gpu->multicast[gpu->n_switches++];
		if (groups->child[i]->kind != DOC_OBJECT)
			return doc_want(r->ctx, r->label, groups->child[i], "an object");
		TRY(need_array(r, groups->child[i], "ranks", LIMIT_MSCCL_GPUS, &ranks));
		*one = (MscclppSwitch){ .buffer = buffer, .old_name = old, .n_ranks = ranks->n };
		TRY(take_ints(r, ranks, LIMIT_MSCCL_GPUS, &one->rank));
	}
	return OK;
}

static Status
read_channels(struct reader *r, const Doc *at, MscclppGpu *gpu)
{
	const Doc *list;
	TRY(need_array(r, at, "channels", IDS, &list));
	for (int i = 0; i < list->n; i++) {
		int type;
		if (list->child[i]->kind != DOC_OBJECT)
			return doc_want(r->ctx, r->label, list->child[i], "an object");
		TRY(take_channel(r, list->child[i], "channel_type", &type));
		TRY(type == MSCCLPP_SWITCH ? read_switch(r, list->child[i], gpu)
		    : read_peers(r, list->child[i], &gpu->n_channels[type], &gpu->peer[type]));
	}
	return OK;
}

static Status
read_remotes(struct reader *r, const Doc *at, MscclppGpu *gpu)
{
	const Doc *list, *types;
	TRY(need_array(r, at, "remote_buffers", IDS, &list));
	gpu->n_remotes = list->n;
	TRY(NEW(r->ctx, gpu->remote, list->n));
	for (int i = 0; i < list->n; i++) {
		MscclppRemote *remote = &gpu->remote[i];
		if (list->child[i]->kind != DOC_OBJECT)
			return doc_want(r->ctx, r->label, list->child[i], "an object");
		TRY(take_int(r, list->child[i], "rank", 0, LIMIT_MSCCL_GPUS, &remote->rank));
		TRY(take_buffer(r, list->child[i], "type", &remote->buffer));
		TRY(need_array(r, list->child[i], "access_channel_types", IDS, &types));
		for (int k = 0; k < types->n; k++)
			for (int type = 0; type < N_MSCCLPP_CHANNELS; type++)
				if (types->child[k]->kind == DOC_STRING
				    && strcmp(types->child[k]->text, mscclpp_channels[type]) == 0)
					remote->types |= 1u << type;
	}
	return OK;
}

static Status
read_semaphores(struct reader *r, const Doc *at, MscclppGpu *gpu)
{
	const Doc *list;
	TRY(take_array(r, at, "semaphores", IDS, &list));
	gpu->n_semaphores = list ? list->n : 0;
	TRY(NEW(r->ctx, gpu->semaphore, gpu->n_semaphores));
	for (int i = 0; i < gpu->n_semaphores; i++) {
		if (list->child[i]->kind != DOC_OBJECT)
			return doc_want(r->ctx, r->label, list->child[i], "an object");
		TRY(take_int(r, list->child[i], "init_value", 0, INT32_MAX, &gpu->semaphore[i]));
	}
	return OK;
}

static Status
read_gpu(struct reader *r, const Doc *at, MscclppGpu *gpu)
{
	static const char *const names[] = { "input_chunks", "output_chunks", "scratch_chunks" };
	const Doc *blocks;
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "an object");
	TRY(take_int(r, at, "id", 0, INT32_MAX, &gpu->id));
	for (int b = 0; b < N_MSCCLPP_BUFFERS; b++)
		TRY(take_int(r, at, names[b], 0, LIMIT_MSCCL_CHUNKS, &gpu->chunks[b]));
	TRY(read_channels(r, at, gpu));
	TRY(read_remotes(r, at, gpu));
	TRY(read_semaphores(r, at, gpu));
	TRY(need_array(r, at, "threadblocks", LIMIT_MSCCL_BLOCKS, &blocks));
	gpu->n_blocks = blocks->n;
	TRY(NEW(r->ctx, gpu->block, blocks->n));
	for (int t = 0; t < blocks->n; t++)
		TRY(read_block(r, blocks->child[t], &gpu->block[t]));
	return OK;
}

/* ---- the plan ---- */

static Status
read_collective(struct reader *r, const Doc *at)
{
	Mscclpp *plan = r->plan;
	TRY(doc_string(r->ctx, r->label, at, "collective", &plan->coll_name));
	if (collective_parse(plan->coll_name, &plan->coll))
		return OK;
	return doc_want(r->ctx, r->label, doc_get(at, "collective"), names_wanted(collective_names).text);
}

/* 2^64 - 1, which is no number of a double. */
static Status
read_max(struct reader *r, const Doc *at)
{
	const Doc *value = doc_get(at, "max_message_size");
	int64_t number;
	r->plan->max_bytes = UINT64_MAX;
	if (!value || (value->kind == DOC_NUMBER && value->text && strcmp(value->text, "18446744073709551615") == 0))
		return OK;
	TRY(doc_int(r->ctx, r->label, value, 0, INT64_MAX, &number));
	r->plan->max_bytes = (uint64_t)number;
	return OK;
}

static Status
read_head(struct reader *r, const Doc *at)
{
	Mscclpp *plan = r->plan;
	int64_t threads = 1024, alignment = 16;
	TRY(doc_string(r->ctx, r->label, at, "name", &plan->name));
	TRY(doc_string(r->ctx, r->label, at, "protocol", &plan->protocol));
	TRY(read_collective(r, at));
	if (!doc_get(at, "inplace"))
		return doc_missing(r->ctx, r->label, at, "inplace", "true or false");
	TRY(take_bool(r, at, "inplace", &plan->in_place));
	TRY(take_bool(r, at, "reuse_resources", &plan->reuse_scratch));
	TRY(take_bool(r, at, "use_double_scratch_buffer", &plan->double_scratch));
	TRY(take_optional(r, at, "num_threads_per_block", 1, INT32_MAX, &threads));
	TRY(take_optional(r, at, "buffer_alignment", 1, 1 << 20, &alignment));
	TRY(take_optional(r, at, "min_message_size", 0, INT64_MAX, &plan->min_bytes));
	TRY(read_max(r, at));
	plan->n_threads = (int)threads;
	plan->alignment = (int)alignment;
	return OK;
}

static Status
read_plan(struct reader *r, const Doc *at)
{
	const Doc *gpus;
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "an object");
	TRY(read_head(r, at));
	TRY(need_array(r, at, "gpus", LIMIT_MSCCL_GPUS, &gpus));
	if (gpus->n == 0)
		return doc_fail(r->ctx, r->label, gpus, BAD_INPUT, "no GPU: want at least one");
	r->plan->n_gpus = gpus->n;
	TRY(NEW(r->ctx, r->plan->gpu, gpus->n));
	for (int g = 0; g < gpus->n; g++)
		TRY(read_gpu(r, gpus->child[g], &r->plan->gpu[g]));
	return OK;
}

Status
mscclpp_read(Ctx *ctx, const char *label, const char *data, size_t size, Mscclpp **out)
{
	struct reader r = { .ctx = ctx, .label = label };
	Doc *root;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(NEW(ctx, r.plan, 1));
	Status status = doc_read_json(ctx, label, data, size, &root);
	if (status == OK)
		status = read_plan(&r, root);
	arena_release(&ctx->scratch, mark);
	if (status == OK)
		*out = r.plan;
	return status;
}
