/* Mscclpp to JSON: a line for each operation. */
#include "format/mscclpp/mscclpp.h"
#include "base/json_write.h"

static void
write_ranges(JsonWriter *w, const char *name, const MscclppRange *range, int n)
{
	if (n == 0)
		return;
	json_array(w, name, JSON_LINE);
	for (int i = 0; i < n; i++) {
		json_object(w, NULL, JSON_LINE);
		if (range[i].where == MSCCLPP_LOCAL)
			json_string(w, "type", mscclpp_buffers[range[i].buffer]);
		else
			json_int(w, range[i].where == MSCCLPP_REMOTE ? "buffer_id" : "switch_channel_id", range[i].id);
		json_int(w, "index", range[i].index);
		json_int(w, "size", range[i].size);
		json_end(w);
	}
	json_end(w);
}

static bool
reduces(MscclppKind kind)
{
	return (kind >= MSCCLPP_REDUCE && kind <= MSCCLPP_READ_REDUCE_SEND)
	    || (kind >= MSCCLPP_REDUCE_PACKETS && kind <= MSCCLPP_REDUCE_COPY_SEND_PACKETS);
}

static void
write_op(JsonWriter *w, const MscclppOp *op)
{
	bool pipeline = op->kind == MSCCLPP_PIPELINE;
	json_object(w, NULL, pipeline ? JSON_BLOCK : JSON_LINE);
	json_string(w, "name", mscclpp_ops[op->kind].name);
	if (op->n_channels)
		json_ints(w, "channel_ids", op->channel, op->n_channels);
	if (op->type >= 0)
		json_string(w, "channel_type", mscclpp_channels[op->type]);
	write_ranges(w, "src_buff", op->src, op->n_src);
	write_ranges(w, "dst_buff", op->dst, op->n_dst);
	if (reduces(op->kind))
		json_string(w, "reduce_op", "sum");
	if (op->n_semaphores)
		json_ints(w, "semaphore_ids", op->semaphore, op->n_semaphores);
	if (op->barrier >= 0) {
		json_int(w, "barrier_id", op->barrier);
		json_int(w, "num_threadblocks", op->n_blocks);
	}
	if (op->n_shares > 1) {
		json_object(w, "tbg_info", JSON_LINE);
		json_int(w, "tb_id", op->share);
		json_int(w, "tbg_size", op->n_shares);
		json_end(w);
	}
	if (pipeline) {
		json_object(w, "iter_context", JSON_LINE);
		json_int64(w, "unit_size", op->unit);
		json_int(w, "num_chunks", op->n_chunks);
		json_end(w);
		json_array(w, "ops", JSON_BLOCK);
		for (int i = 1; i <= op->n_inner; i++)
			write_op(w, op + i);
		json_end(w);
	}
	json_end(w);
}

/* Lists of ids by type of channel, of those types that have any. */
static void
write_ids(JsonWriter *w, const char *name, const char *type_name, const char *ids_name, int n_types, const int *n,
    int *const *id)
{
	json_array(w, name, JSON_LINE);
	for (int t = 0; t < n_types; t++) {
		if (n[t] == 0)
			continue;
		json_object(w, NULL, JSON_LINE);
		json_string(w, type_name, mscclpp_channels[t]);
		json_ints(w, ids_name, id[t], n[t]);
		json_end(w);
	}
	json_end(w);
}

static void
write_block(JsonWriter *w, const MscclppBlock *b)
{
	json_object(w, NULL, JSON_BLOCK);
	json_int(w, "id", b->id);
	json_array(w, "ops", JSON_BLOCK);
	for (int i = 0; i < b->n_ops; i += 1 + b->op[i].n_inner)
		write_op(w, &b->op[i]);
	json_end(w);
	write_ids(w, "channels", "channel_type", "channel_ids", N_MSCCLPP_CHANNELS, b->n_channels, b->channel);
	write_ids(w, "remote_buffer_refs", "access_channel_type", "remote_buffer_ids", MSCCLPP_PORT + 1, b->n_remotes,
	    b->remote);
	json_end(w);
}

static void
write_channels(JsonWriter *w, const MscclppGpu *gpu)
{
	json_array(w, "channels", JSON_BLOCK);
	for (int t = 0; t <= MSCCLPP_PORT; t++) {
		if (gpu->n_channels[t] == 0)
			continue;
		json_object(w, NULL, JSON_LINE);
		json_string(w, "channel_type", mscclpp_channels[t]);
		json_ints(w, "connected_to", gpu->peer[t], gpu->n_channels[t]);
		json_end(w);
	}
	for (int i = 0; i < gpu->n_switches; i++) {
		const MscclppSwitch *one = &gpu->multicast[i];
		json_object(w, NULL, JSON_LINE);
		json_string(w, "channel_type", mscclpp_channels[MSCCLPP_SWITCH]);
		json_string(w, "buffer_type", mscclpp_buffers[one->buffer]);
		json_array(w, "rank_groups", JSON_LINE);
		json_object(w, NULL, JSON_LINE);
		json_int(w, "size", one->n_ranks);
		json_ints(w, "ranks", one->rank, one->n_ranks);
		json_end(w);
		json_end(w);
		json_end(w);
	}
	json_end(w);
}

static void
write_gpu(JsonWriter *w, const MscclppGpu *gpu)
{
	json_object(w, NULL, JSON_BLOCK);
	json_int(w, "id", gpu->id);
	json_int(w, "input_chunks", gpu->chunks[MSCCLPP_INPUT]);
	json_int(w, "output_chunks", gpu->chunks[MSCCLPP_OUTPUT]);
	json_int(w, "scratch_chunks", gpu->chunks[MSCCLPP_SCRATCH]);
	json_array(w, "threadblocks", JSON_BLOCK);
	for (int t = 0; t < gpu->n_blocks; t++)
		write_block(w, &gpu->block[t]);
	json_end(w);
	write_channels(w, gpu);
	json_array(w, "remote_buffers", JSON_BLOCK);
	for (int i = 0; i < gpu->n_remotes; i++) {
		json_object(w, NULL, JSON_LINE);
		json_int(w, "rank", gpu->remote[i].rank);
		json_string(w, "type", mscclpp_buffers[gpu->remote[i].buffer]);
		json_array(w, "access_channel_types", JSON_LINE);
		for (int t = 0; t < N_MSCCLPP_CHANNELS; t++)
			if (gpu->remote[i].types >> t & 1)
				json_string(w, NULL, mscclpp_channels[t]);
		json_end(w);
		json_end(w);
	}
	json_end(w);
	json_array(w, "semaphores", JSON_LINE);
	for (int i = 0; i < gpu->n_semaphores; i++) {
		json_object(w, NULL, JSON_LINE);
		json_int(w, "init_value", gpu->semaphore[i]);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}

void
mscclpp_write(const Mscclpp *plan, Text *out)
{
	JsonWriter w = { .out = out };
	json_object(&w, NULL, JSON_BLOCK);
	json_string(&w, "name", plan->name);
	json_string(&w, "collective", plan->coll_name);
	json_string(&w, "protocol", plan->protocol);
	json_bool(&w, "inplace", plan->in_place);
	json_bool(&w, "reuse_resources", plan->reuse_scratch);
	json_array(&w, "gpus", JSON_BLOCK);
	for (int g = 0; g < plan->n_gpus; g++)
		write_gpu(&w, &plan->gpu[g]);
	json_end(&w);
	json_int(&w, "num_threads_per_block", plan->n_threads);
	json_bool(&w, "use_double_scratch_buffer", plan->double_scratch);
	json_int(&w, "buffer_alignment", plan->alignment);
	json_int64(&w, "min_message_size", plan->min_bytes);
	json_value(&w, "max_message_size");
	text_printf(out, "%llu", (unsigned long long)plan->max_bytes);
	json_file_end(&w);
}
