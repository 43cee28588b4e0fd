/* The rules for execution plans of MSCCL++. Its loader takes most plans that break them, and its kernel then hangs, or
 * reads and writes elsewhere; so each rule has a name. */
#include "base/array.h"
#include "mscclpp/mscclpp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const Rule mscclpp_rule_rows[N_MSCCLPP_RULES] = {
#define X(rule, text, is_wrong) { text, is_wrong, rule >= MSCCLPP_RULE_DEADLOCK && rule <= MSCCLPP_RULE_RESULT },
	MSCCLPP_RULE_LIST(X)
#undef X
};

Status
mscclpp_find(Ctx *ctx, RuleFindings *list, MscclppRule rule, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	Status status = findings_add(ctx, list, (RuleFinding){ .rule = (int)rule }, format, args);
	va_end(args);
	return status;
}

struct rules {
	Ctx *ctx;
	const Mscclpp *plan;
	RuleFindings *list;
	const MscclppGpu *gpu;		/* the current ones */
	const MscclppBlock *block;
	const MscclppOp *op, *pipeline;
	bool sound;
};

/* A plan with this finding does not run. */
#define BROKEN(r, rule, ...) ((r)->sound = false, mscclpp_find((r)->ctx, (r)->list, rule, __VA_ARGS__))
#define BROKEN_OP(r, rule, format, ...) BROKEN(r, rule, "gpu %d, tb %d, op %d, %s: " format, (r)->gpu->id, \
	(r)->block->id, (int)((r)->op - (r)->block->op), mscclpp_ops[(r)->op->kind].name, __VA_ARGS__)

/* ---- the head and GPUs ---- */

static Status
check_head(struct rules *r)
{
	const Mscclpp *p = r->plan;
	if (p->min_bytes > INT32_MAX)
		TRY(BROKEN(r, MSCCLPP_RULE_SIZES, "min_message_size: %lld: want at most %d, as the loader keeps an int",
		    (long long)p->min_bytes, INT32_MAX));
	if ((uint64_t)p->min_bytes > p->max_bytes)
		TRY(BROKEN(r, MSCCLPP_RULE_SIZES, "max_message_size: %llu: want at least min_message_size, %lld",
		    (unsigned long long)p->max_bytes, (long long)p->min_bytes));
	if (p->alignment % 16)
		TRY(BROKEN(r, MSCCLPP_RULE_SIZES, "buffer_alignment: %d: want a multiple of 16", p->alignment));
	if (mscclpp_has_packets(p) && !p->double_scratch)
		TRY(BROKEN(r, MSCCLPP_RULE_PACKETS, "use_double_scratch_buffer: false: want true, as the next call "
		    "would write over packets that are not read%s", ""));
	if (collective_rooted(p->coll))
		TRY(mscclpp_find(r->ctx, r->list, MSCCLPP_RULE_ROOT, "collective: %s: the executor runs it for every "
		    "root, but it is for one", p->coll_name));
	return OK;
}

static Status
check_gpu(struct rules *r)
{
	const MscclppGpu *gpu = r->gpu;
	int n = r->plan->n_gpus, g = (int)(gpu - r->plan->gpu);
	if (gpu->id != g)
		TRY(BROKEN(r, MSCCLPP_RULE_GPU_IDS, "gpus[%d]: id: %d: want %d", g, gpu->id, g));
	int scratch = r->plan->gpu[0].chunks[MSCCLPP_SCRATCH];
	if (mscclpp_has_packets(r->plan) && gpu->chunks[MSCCLPP_SCRATCH] != scratch)
		return BROKEN(r, MSCCLPP_RULE_PACKETS, "gpu %d: scratch_chunks: %d: want %d, as gpu 0 has: who writes "
		    "packets takes its own half of scratch for that of the other", g, gpu->chunks[MSCCLPP_SCRATCH],
		    scratch);
	for (int t = 0; t < gpu->n_blocks; t++)
		if (gpu->block[t].id != t)
			return BROKEN(r, MSCCLPP_RULE_BLOCK_IDS, "gpu %d, threadblocks[%d]: id: %d: want %d", g, t,
			    gpu->block[t].id, t);
	for (int t = 0; t <= MSCCLPP_PORT; t++)
		for (int k = 0; k < gpu->n_channels[t]; k++)
			if (gpu->peer[t][k] >= n || gpu->peer[t][k] == g)
				return BROKEN(r, MSCCLPP_RULE_PEER, "gpu %d: %s channel %d: connected to %d: want "
				    "another gpu", g, mscclpp_channels[t], k, gpu->peer[t][k]);
	for (int i = 0; i < gpu->n_remotes; i++)
		if (gpu->remote[i].rank >= n || gpu->remote[i].rank == g)
			return BROKEN(r, MSCCLPP_RULE_PEER, "gpu %d, remote_buffers[%d]: rank: %d: want another gpu", g,
			    i, gpu->remote[i].rank);
	for (int i = 0; i < gpu->n_switches; i++)
		for (int k = 0; k < gpu->multicast[i].n_ranks; k++)
			if (gpu->multicast[i].rank[k] >= n)
				return BROKEN(r, MSCCLPP_RULE_PEER, "gpu %d, switch channel %d: rank %d: want a gpu",
				    g, i, gpu->multicast[i].rank[k]);
	return OK;
}

static Status
check_chunks(struct rules *r)
{
	bool zero = false;
	for (int b = MSCCLPP_INPUT; b <= MSCCLPP_OUTPUT; b++) {
		int found = r->gpu->chunks[b], want = mscclpp_expected_chunks(r->plan, b);
		zero |= found == 0;
		if (want == 0 || (found != 0 && found != want))
			return BROKEN(r, MSCCLPP_RULE_CHUNKS, "gpu %d: %s_chunks: %d: want %s%d", r->gpu->id,
			    b == MSCCLPP_INPUT ? "input" : "output", found, want ? "" : "a multiple of ",
			    want ? want : r->plan->n_gpus);
	}
	return zero ? mscclpp_find(r->ctx, r->list, MSCCLPP_RULE_ZERO, "gpu %d: input_chunks or output_chunks: 0: want "
	    "1 at least, as the loader divides by both", r->gpu->id) : OK;
}

static Status
check_switches(struct rules *r)
{
	for (int i = 0; i < r->gpu->n_switches; i++)
		if (r->gpu->multicast[i].old_name)
			return mscclpp_find(r->ctx, r->list, MSCCLPP_RULE_SWITCH, "gpu %d, switch channel %d: no "
			    "buffer_type, but buff: want buffer_type, as the loader reads", r->gpu->id, i);
	return OK;
}

/* ---- threadblocks ---- */

static Status
check_block(struct rules *r)
{
	const MscclppBlock *b = r->block;
	for (int t = 0; t < N_MSCCLPP_CHANNELS; t++) {
		int have = t == MSCCLPP_SWITCH ? r->gpu->n_switches : r->gpu->n_channels[t];
		if (b->n_channels[t] > MSCCLPP_MAX_CHANNELS)
			return BROKEN(r, MSCCLPP_RULE_CHANNEL, "gpu %d, tb %d: %d %s channels: want at most %d",
			    r->gpu->id, b->id, b->n_channels[t], mscclpp_channels[t], MSCCLPP_MAX_CHANNELS);
		for (int k = 0; k < b->n_channels[t]; k++)
			if (b->channel[t][k] >= have)
				return BROKEN(r, MSCCLPP_RULE_CHANNEL, "gpu %d, tb %d: %s channel %d: want one of the "
				    "%d of its gpu", r->gpu->id, b->id, mscclpp_channels[t], b->channel[t][k], have);
	}
	for (int t = 0; t <= MSCCLPP_PORT; t++) {
		if (b->n_remotes[t] > MSCCLPP_MAX_CHANNELS)
			return BROKEN(r, MSCCLPP_RULE_REMOTE, "gpu %d, tb %d: %d remote buffers by %s channels: want "
			    "at most %d", r->gpu->id, b->id, b->n_remotes[t], mscclpp_channels[t],
			    MSCCLPP_MAX_CHANNELS);
		for (int k = 0; k < b->n_remotes[t]; k++)
			if (b->remote[t][k] >= r->gpu->n_remotes
			    || !(r->gpu->remote[b->remote[t][k]].types >> t & 1))
				return BROKEN(r, MSCCLPP_RULE_REMOTE, "gpu %d, tb %d: remote buffer %d by %s channels: "
				    "want one of its gpu with this type of access", r->gpu->id, b->id,
				    b->remote[t][k], mscclpp_channels[t]);
	}
	return b->n_ops <= MSCCLPP_MAX_OPS ? OK : BROKEN(r, MSCCLPP_RULE_OPERATIONS, "gpu %d, tb %d: %d operations: "
	    "want at most %d", r->gpu->id, b->id, b->n_ops, MSCCLPP_MAX_OPS);
}

/* ---- operations ---- */

/* The letter of its k-th range: see MSCCLPP_OP_LIST; 0: it has no such. */
static char
letter_of(const char *pattern, int k)
{
	int n = (int)strlen(pattern);
	bool many = n > 0 && pattern[n - 1] == '*';
	n -= many;
	return k < n ? pattern[k] : many ? pattern[n - 1] : 0;
}

static int
least_ranges(const char *pattern)
{
	int n = (int)strlen(pattern);
	return n - (n > 0 && pattern[n - 1] == '*');
}

static bool
is_pairwise(MscclppKind kind)
{
	return kind == MSCCLPP_PUT || kind == MSCCLPP_PUT_SIGNAL || kind == MSCCLPP_PUT_SIGNAL_FLUSH
	    || kind == MSCCLPP_GET || kind == MSCCLPP_PUT_PACKETS;
}

/* Its chunks, in each buffer that it stands for. */
static Status
check_offset(struct rules *r, const MscclppRange *range)
{
	const MscclppBlock *b = r->block;
	const MscclppSwitch *group = NULL;
	const MscclppGpu *gpu = r->gpu;
	MscclppBuffer buffer = range->buffer;
	if (range->where == MSCCLPP_REMOTE) {
		const MscclppRemote *remote = &gpu->remote[b->remote[r->op->type][range->id]];
		gpu = &r->plan->gpu[remote->rank];
		buffer = remote->buffer;
	} else if (range->where == MSCCLPP_MULTICAST) {
		group = &gpu->multicast[b->channel[MSCCLPP_SWITCH][range->id]];
		buffer = group->buffer;
	}
	for (int i = 0; i < (group ? group->n_ranks : 1); i++) {
		const MscclppGpu *of = group ? &r->plan->gpu[group->rank[i]] : gpu;
		if (range->size < 1 || range->index + range->size > of->chunks[buffer])
			return BROKEN_OP(r, MSCCLPP_RULE_OFFSET, "index: %d, size: %d: want chunks of the %d of buffer "
			    "%s of gpu %d", range->index, range->size, of->chunks[buffer], mscclpp_buffers[buffer],
			    of->id);
	}
	return OK;
}

/* A range is of the kind that the executor takes it for. */
static Status
check_range(struct rules *r, const MscclppRange *range, char letter, bool src, int k)
{
	const MscclppOp *op = r->op;
	bool remote = letter == 'R' || letter == 'P';
	MscclppBuffer buffer = range->buffer;
	if (range->where != (letter == 'L' ? MSCCLPP_LOCAL : letter == 'W' ? MSCCLPP_MULTICAST : MSCCLPP_REMOTE))
		return BROKEN_OP(r, MSCCLPP_RULE_ARGUMENTS, "%s_buff[%d]: want %s", src ? "src" : "dst", k,
		    letter == 'L' ? "type" : letter == 'W' ? "switch_channel_id" : "buffer_id");
	if (remote && op->type != MSCCLPP_MEMORY && !(letter == 'P' && op->type == MSCCLPP_PORT))
		return BROKEN_OP(r, MSCCLPP_RULE_ARGUMENTS, "channel_type: want memory%s",
		    letter == 'P' ? " or port" : "");
	if (remote && range->id >= r->block->n_remotes[op->type])
		return BROKEN_OP(r, MSCCLPP_RULE_REMOTE, "buffer_id: %d: want 0 to %d", range->id,
		    r->block->n_remotes[op->type] - 1);
	if (letter == 'W' && range->id >= r->block->n_channels[MSCCLPP_SWITCH])
		return BROKEN_OP(r, MSCCLPP_RULE_CHANNEL, "switch_channel_id: %d: want 0 to %d", range->id,
		    r->block->n_channels[MSCCLPP_SWITCH] - 1);
	if (remote)
		buffer = r->gpu->remote[r->block->remote[op->type][range->id]].buffer;
	else if (letter == 'W')
		buffer = r->gpu->multicast[r->block->channel[MSCCLPP_SWITCH][range->id]].buffer;
	if (mscclpp_is_packets(op, src, k) ? buffer != MSCCLPP_SCRATCH || !mscclpp_has_packets(r->plan)
	    : buffer == MSCCLPP_SCRATCH && mscclpp_has_packets(r->plan))
		return BROKEN_OP(r, MSCCLPP_RULE_PACKETS, "%s_buff[%d]: want packets to lie in scratch, alone there, "
		    "with protocol LL", src ? "src" : "dst", k);
	return check_offset(r, range);
}

static Status
check_sizes_of(struct rules *r)
{
	const MscclppOp *op = r->op;
	bool pairs = is_pairwise(op->kind);
	if (pairs && op->n_src != op->n_dst)
		return BROKEN_OP(r, MSCCLPP_RULE_ARGUMENTS, "%d sources, %d destinations: want as many", op->n_src,
		    op->n_dst);
	for (int i = 0; i < op->n_src + op->n_dst; i++) {
		const MscclppRange *range = i < op->n_src ? &op->src[i] : &op->dst[i - op->n_src];
		int want = op->src[pairs ? i % op->n_src : 0].size;
		if (range->size != want || (r->pipeline && range->size != r->pipeline->n_chunks))
			return BROKEN_OP(r, r->pipeline ? MSCCLPP_RULE_PIPELINE : MSCCLPP_RULE_ARGUMENTS,
			    "size: %d: want %d", range->size, r->pipeline ? r->pipeline->n_chunks : want);
		if (pairs && op->kind != MSCCLPP_GET && i < op->n_src && range->buffer != op->src->buffer)
			return BROKEN_OP(r, MSCCLPP_RULE_ARGUMENTS, "src_buff[%d]: want sources of one buffer", i);
	}
	for (int i = 0; op->kind == MSCCLPP_GET && i < op->n_src; i++)
		if (op->src[i].index != op->dst[i].index)
			return BROKEN_OP(r, MSCCLPP_RULE_GET, "index: %d from, %d to: want the same, as the executor "
			    "exchanges them", op->src[i].index, op->dst[i].index);
	return OK;
}

/* Channels of put by port are those of the destinations. */
static Status
check_ports(struct rules *r)
{
	const MscclppOp *op = r->op;
	if (op->type != MSCCLPP_PORT)
		return OK;
	if (op->n_channels != op->n_dst)
		return BROKEN_OP(r, MSCCLPP_RULE_CHANNEL, "%d channels, %d destinations: want as many", op->n_channels,
		    op->n_dst);
	for (int i = 0; i < op->n_dst; i++) {
		int peer = r->gpu->peer[MSCCLPP_PORT][r->block->channel[MSCCLPP_PORT][op->channel[i]]];
		int rank = r->gpu->remote[r->block->remote[MSCCLPP_PORT][op->dst[i].id]].rank;
		if (peer != rank)
			return BROKEN_OP(r, MSCCLPP_RULE_CHANNEL, "channel_ids[%d]: to gpu %d: want one to gpu %d", i,
			    peer, rank);
	}
	return OK;
}

static Status
check_data(struct rules *r)
{
	const MscclppOp *op = r->op;
	const MscclppOpKind *kind = &mscclpp_ops[op->kind];
	for (int side = 0; side < 2; side++) {
		const char *pattern = side ? kind->dst : kind->src;
		int n = side ? op->n_dst : op->n_src, least = least_ranges(pattern);
		if (n < least || n > MSCCLPP_MAX_RANGES || !(n == least || letter_of(pattern, n - 1)))
			return BROKEN_OP(r, MSCCLPP_RULE_ARGUMENTS, "%d entries of %s_buff: want %s%d", n,
			    side ? "dst" : "src", letter_of(pattern, least) ? "at least " : "",
			    least);
		for (int k = 0; k < n; k++) {
			TRY(check_range(r, side ? &op->dst[k] : &op->src[k], letter_of(pattern, k), side == 0, k));
			if (!r->sound)
				return OK;
		}
	}
	TRY(check_sizes_of(r));
	if (r->pipeline && (op->n_shares > 1 || op->kind >= MSCCLPP_PUT_PACKETS) && op->kind
	    != MSCCLPP_LOAD_REDUCE_STORE && op->kind != MSCCLPP_STORE)
		TRY(BROKEN_OP(r, MSCCLPP_RULE_PIPELINE, "want no packets and no tbg_info in a pipeline%s", ""));
	if (!r->pipeline && r->plan->reuse_scratch && op->n_shares > 1)
		TRY(BROKEN_OP(r, MSCCLPP_RULE_PIPELINE, "want no tbg_info where scratch is reused%s", ""));
	return check_ports(r);
}

static Status
check_channels(struct rules *r)
{
	const MscclppOp *op = r->op;
	bool data = *mscclpp_ops[op->kind].src;
	int least = data ? 0 : 1, have = op->type < 0 ? 0 : r->block->n_channels[op->type];
	if ((!data && op->type != MSCCLPP_PORT && (op->type != MSCCLPP_MEMORY || op->kind == MSCCLPP_FLUSH)))
		return BROKEN_OP(r, MSCCLPP_RULE_ARGUMENTS, "channel_type: want %s",
		    op->kind == MSCCLPP_FLUSH ? "port" : "memory or port");
	if (op->n_channels < least || op->n_channels > MSCCLPP_MAX_OP_CHANNELS)
		return BROKEN_OP(r, MSCCLPP_RULE_CHANNEL, "%d channels: want %d to %d", op->n_channels, least,
		    MSCCLPP_MAX_OP_CHANNELS);
	for (int i = 0; i < op->n_channels; i++)
		for (int k = 0; k <= i; k++)
			if (op->channel[i] >= have || (k < i && !data && op->channel[k] == op->channel[i]))
				return BROKEN_OP(r, MSCCLPP_RULE_CHANNEL, "channel_ids[%d]: %d: want one of the %d of "
				    "the threadblock, each once", i, op->channel[i], have);
	return OK;
}

static Status
check_semaphores(struct rules *r)
{
	const MscclppOp *op = r->op;
	if (op->n_semaphores < 1 || op->n_semaphores > MSCCLPP_MAX_SEMAPHORES)
		return BROKEN_OP(r, MSCCLPP_RULE_SEMAPHORE, "%d semaphores: want 1 to %d", op->n_semaphores,
		    MSCCLPP_MAX_SEMAPHORES);
	for (int i = 0; i < op->n_semaphores; i++)
		for (int k = 0; k <= i; k++)
			if (op->semaphore[i] >= r->gpu->n_semaphores || (k < i && op->semaphore[k] == op->semaphore[i]))
				return BROKEN_OP(r, MSCCLPP_RULE_SEMAPHORE, "semaphore_ids[%d]: %d: want one of the %d "
				    "of the gpu, each once", i, op->semaphore[i], r->gpu->n_semaphores);
	return OK;
}

/* Units of pipelines: one for all, as a run has a number of them for each chunk. */
static Status
check_pipeline(struct rules *r)
{
	static const int64_t align = 16;
	const MscclppOp *op = r->op;
	int64_t scratch = r->gpu->chunks[MSCCLPP_SCRATCH];
	if (op->unit % align)
		return BROKEN_OP(r, MSCCLPP_RULE_PIPELINE, "unit_size: %lld: want a multiple of %d",
		    (long long)op->unit, (int)align);
	for (int g = 0; g < r->plan->n_gpus; g++)
		for (int t = 0; t < r->plan->gpu[g].n_blocks; t++)
			for (int i = 0; i < r->plan->gpu[g].block[t].n_ops; i++) {
				const MscclppOp *other = &r->plan->gpu[g].block[t].op[i];
				if (other->kind == MSCCLPP_PIPELINE && other->unit != op->unit)
					return BROKEN_OP(r, MSCCLPP_RULE_PIPELINE, "unit_size: %lld, elsewhere %lld: "
					    "want one", (long long)op->unit, (long long)other->unit);
			}
	if (r->plan->reuse_scratch && scratch > 0 && MSCCLPP_SCRATCH_BYTES % (scratch * op->unit))
		return BROKEN_OP(r, MSCCLPP_RULE_PIPELINE, "unit_size: %lld: want one that divides a chunk of scratch",
		    (long long)op->unit);
	return OK;
}

static Status
check_op(struct rules *r)
{
	const MscclppOp *op = r->op;
	switch (op->kind) {
	case MSCCLPP_NOP:
		return OK;
	case MSCCLPP_PIPELINE:
		return check_pipeline(r);
	case MSCCLPP_BARRIER:
		return op->barrier >= 0 && op->barrier < MSCCLPP_MAX_BARRIERS && !r->pipeline ? OK
		    : BROKEN_OP(r, MSCCLPP_RULE_BARRIER, "barrier_id: %d: want 0 to %d, outside of pipelines",
		    op->barrier, MSCCLPP_MAX_BARRIERS - 1);
	case MSCCLPP_ACQUIRE:
	case MSCCLPP_RELEASE:
		return check_semaphores(r);
	case MSCCLPP_FLUSH:
		if (op->n_dst == 0)
			TRY(mscclpp_find(r->ctx, r->list, MSCCLPP_RULE_FLUSH, "gpu %d, tb %d, op %d: flush without "
			    "dst_buff: want an entry for each channel, as the executor counts them", r->gpu->id,
			    r->block->id, (int)(op - r->block->op)));
		return check_channels(r);
	case MSCCLPP_SIGNAL:
	case MSCCLPP_WAIT:
	case MSCCLPP_RELAXED_SIGNAL:
	case MSCCLPP_RELAXED_WAIT:
		return check_channels(r);
	default:
		TRY(check_channels(r));
		return r->sound ? check_data(r) : OK;
	}
}

static Status
check_ops(struct rules *r)
{
	const MscclppOp *end = NULL;
	r->pipeline = NULL;
	for (int i = 0; i < r->block->n_ops && r->sound; i++) {
		r->op = &r->block->op[i];
		if (r->pipeline && r->op == end)
			r->pipeline = NULL;
		TRY(check_op(r));
		if (r->op->kind == MSCCLPP_PIPELINE) {
			r->pipeline = r->op;
			end = r->op + 1 + r->op->n_inner;
		}
	}
	return OK;
}

/* ---- signals, semaphores and barriers: what one side does, the other does as often ---- */

/* Times that an operation runs: 1, or a number that depends on the message, by the pipeline. Sums of these numbers are
 * equal for all messages where they are sums of the same pipelines; weights make a difference all but certain. */
static uint64_t
times_of(const MscclppOp *pipeline)
{
	uint64_t x = pipeline ? (uint64_t)pipeline->n_chunks * UINT64_C(0x9e3779b97f4a7c15) : 1;
	return pipeline ? (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) | 1 : 1;
}

struct count {
	int block;		/* that does it; -1: none; -2: several */
	uint64_t times;
};

/* Of each channel of a GPU, or of its semaphores. gives: signals, or releases. */
static void
count_uses(const MscclppGpu *gpu, int type, bool gives, struct count *count)
{
	for (int t = 0; t < gpu->n_blocks; t++) {
		const MscclppBlock *b = &gpu->block[t];
		const MscclppOp *pipeline = NULL;
		for (int i = 0; i < b->n_ops; i++) {
			const MscclppOp *op = &b->op[i];
			bool is_put = op->kind == MSCCLPP_PUT_SIGNAL || op->kind == MSCCLPP_PUT_SIGNAL_FLUSH;
			bool does = type < 0 ? op->kind == (gives ? MSCCLPP_RELEASE : MSCCLPP_ACQUIRE)
			    : op->type == type && (gives ? op->kind == MSCCLPP_SIGNAL
			    || op->kind == MSCCLPP_RELAXED_SIGNAL || (is_put && type == MSCCLPP_PORT)
			    : op->kind == MSCCLPP_WAIT || op->kind == MSCCLPP_RELAXED_WAIT);
			if (op->kind == MSCCLPP_PIPELINE)
				pipeline = op;
			else if (pipeline && op > pipeline + pipeline->n_inner)
				pipeline = NULL;
			for (int k = 0; does && k < (type < 0 ? op->n_semaphores : op->n_channels); k++) {
				int id = type < 0 ? op->semaphore[k] : b->channel[type][op->channel[k]];
				struct count *c = &count[id];
				c->block = c->block == -1 || c->block == t ? t : -2;
				c->times += times_of(pipeline);
			}
		}
	}
}

static Status
make_counts(Ctx *ctx, const MscclppGpu *gpu, int type, bool gives, struct count **out)
{
	int n = type < 0 ? gpu->n_semaphores : gpu->n_channels[type];
	TRY(TEMP(ctx, *out, n));
	for (int k = 0; k < n; k++)
		(*out)[k].block = -1;
	count_uses(gpu, type, gives, *out);
	return OK;
}

static Status
check_signals(struct rules *r, int g, int type, struct count *const *given, struct count *const *taken)
{
	const MscclppGpu *gpu = &r->plan->gpu[g];
	for (int k = 0; k < gpu->n_channels[type]; k++) {
		int other = mscclpp_other_end(r->plan, g, type, k), peer = gpu->peer[type][k];
		const struct count *gives = &given[g][k], *takes = other < 0 ? NULL : &taken[peer][other];
		if (gives->block == -2 || taken[g][k].block == -2)
			return BROKEN(r, MSCCLPP_RULE_CONNECTION, "gpu %d, %s channel %d: several threadblocks %s: "
			    "want one", g, mscclpp_channels[type], k, gives->block == -2 ? "signal" : "wait");
		if (!takes && (gives->times || taken[g][k].times))
			return BROKEN(r, MSCCLPP_RULE_CONNECTION, "gpu %d, %s channel %d: gpu %d has no channel for it",
			    g, mscclpp_channels[type], k, peer);
		if (takes && gives->times != takes->times)
			return BROKEN(r, MSCCLPP_RULE_SIGNALS, "gpu %d, %s channel %d: gpu %d, channel %d waits for "
			    "another number of signals: want as many", g, mscclpp_channels[type], k, peer, other);
	}
	return OK;
}

static Status
check_all_signals(struct rules *r, int type)
{
	struct count **given, **taken;
	int n = r->plan->n_gpus;
	TRY(TEMP(r->ctx, given, n));
	TRY(TEMP(r->ctx, taken, n));
	for (int g = 0; g < n; g++) {
		TRY(make_counts(r->ctx, &r->plan->gpu[g], type, true, &given[g]));
		TRY(make_counts(r->ctx, &r->plan->gpu[g], type, false, &taken[g]));
	}
	for (int g = 0; g < n && r->sound; g++)
		TRY(check_signals(r, g, type, given, taken));
	return OK;
}

static Status
check_balance(struct rules *r)
{
	struct count *given, *taken;
	TRY(make_counts(r->ctx, r->gpu, -1, true, &given));
	TRY(make_counts(r->ctx, r->gpu, -1, false, &taken));
	for (int k = 0; k < r->gpu->n_semaphores; k++) {
		if (given[k].block == -2 || taken[k].block == -2)
			return BROKEN(r, MSCCLPP_RULE_SEMAPHORE, "gpu %d, semaphore %d: several threadblocks %s it: "
			    "want one", r->gpu->id, k, given[k].block == -2 ? "release" : "acquire");
		if (given[k].times != taken[k].times)
			return BROKEN(r, MSCCLPP_RULE_SEMAPHORE, "gpu %d, semaphore %d: releases and acquisitions "
			    "differ in number: want as many, as it keeps its value for the next call", r->gpu->id, k);
	}
	return OK;
}

static Status
check_barriers(struct rules *r)
{
	for (int id = 0; id < MSCCLPP_MAX_BARRIERS; id++) {
		int blocks = 0, times = 0, want = -1;
		for (int t = 0; t < r->gpu->n_blocks; t++) {
			int n = 0;
			for (int i = 0; i < r->gpu->block[t].n_ops; i++) {
				const MscclppOp *op = &r->gpu->block[t].op[i];
				if (op->kind != MSCCLPP_BARRIER || op->barrier != id)
					continue;
				n++;
				want = want < 0 ? op->n_blocks : want;
				if (op->n_blocks != want)
					want = 0;
			}
			blocks += n > 0;
			times = times ? times : n;
			if (n > 0 && n != times)
				want = 0;
		}
		if (blocks > 0 && want != blocks)
			return BROKEN(r, MSCCLPP_RULE_BARRIER, "gpu %d, barrier %d: %d threadblocks come to it: want "
			    "num_threadblocks to say so, and each to come as often", r->gpu->id, id, blocks);
	}
	return OK;
}

/* ---- all of them ---- */

static Status
for_gpus(struct rules *r, Status (*check)(struct rules *r))
{
	for (int g = 0; g < r->plan->n_gpus; g++) {
		r->gpu = &r->plan->gpu[g];
		TRY(check(r));
	}
	return OK;
}

static Status
for_blocks(struct rules *r, Status (*check)(struct rules *r))
{
	for (int g = 0; g < r->plan->n_gpus; g++) {
		r->gpu = &r->plan->gpu[g];
		for (int t = 0; t < r->gpu->n_blocks; t++) {
			r->block = &r->gpu->block[t];
			TRY(check(r));
		}
	}
	return OK;
}

static Status
check_room(struct rules *r)
{
	return r->gpu->n_blocks <= MSCCLPP_MAX_BLOCKS ? OK : mscclpp_find(r->ctx, r->list, MSCCLPP_RULE_BLOCKS,
	    "gpu %d: %d threadblocks: want at most %d, as all must run at once, each on a multiprocessor",
	    r->gpu->id, r->gpu->n_blocks, MSCCLPP_MAX_BLOCKS);
}

/* Each set of rules relies on those before it. */
static Status
check_in_order(struct rules *r)
{
	TRY(check_head(r));
	TRY(for_gpus(r, check_gpu));
	if (r->sound)
		TRY(for_gpus(r, check_chunks));
	TRY(for_gpus(r, check_switches));
	TRY(for_gpus(r, check_room));
	if (r->sound)
		TRY(for_blocks(r, check_block));
	if (r->sound)
		TRY(for_blocks(r, check_ops));
	for (int type = 0; type <= MSCCLPP_PORT && r->sound; type++)
		TRY(check_all_signals(r, type));
	if (r->sound)
		TRY(for_gpus(r, check_balance));
	return r->sound ? for_gpus(r, check_barriers) : OK;
}

Status
mscclpp_rules(Ctx *ctx, const Mscclpp *plan, RuleFindings *list, bool *sound)
{
	struct rules r = { .ctx = ctx, .plan = plan, .list = list, .sound = true };
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = check_in_order(&r);
	arena_release(&ctx->scratch, mark);
	*sound = r.sound;
	return status;
}
