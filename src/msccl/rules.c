/* The rules for files of MSCCL. Executors load most files that break them, and then hang or compute garbage; so each
 * rule has a name, and the dialects that it is for. */
#include "base/array.h"
#include "base/limits.h"
#include "base/text.h"
#include "msccl/msccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CHANNELS_MAX = 32, DEPID_MAX = 127, COUNT_MAX = 71, NODES_MAX = 4096, CHILDREN_MAX = 1024 };
enum { AZURE = 1 << MSCCL_AZURE, RCCL = 1 << MSCCL_RCCL, MICROSOFT = 1 << MSCCL_MICROSOFT };

const Rule msccl_rule_rows[N_MSCCL_RULES] = {
#define X(rule, text, is_wrong) { text, is_wrong, rule >= MSCCL_RULE_DEADLOCK && rule <= MSCCL_RULE_RESULT },
	MSCCL_RULE_LIST(X)
#undef X
};

const char *
msccl_dialects_text(unsigned dialects, char text[64])
{
	static const char *const names[] = { MSCCL_DIALECT_LIST(ROW_TEXT) };
	int n = 0;
	*text = 0;
	for (int d = 0; d < N_MSCCL_DIALECTS; d++)
		if (dialects & 1u << d)
			n += snprintf(text + n, (size_t)(64 - n), "%s%s", n ? ", " : "", names[d]);
	return text;
}

Status
msccl_find(Ctx *ctx, RuleFindings *list, MscclRule rule, unsigned dialects, int line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	Status status = findings_add(ctx, list, (RuleFinding){ (int)rule, dialects, line, NULL }, format, args);
	va_end(args);
	return status;
}

struct rules {
	Ctx *ctx;
	const Msccl *algo;
	RuleFindings *list;
	const MscclGpu *gpu;		/* the current ones */
	const MscclBlock *block;
	const MscclStep *step;
	int index;			/* of the step */
	bool sound;
};

/* Where: the current step, threadblock or GPU. A file with this finding does not run. */
#define BROKEN(r, rule, line, ...) \
	((r)->sound = false, msccl_find((r)->ctx, (r)->list, rule, MSCCL_ALL, line, __VA_ARGS__))

/* ---- the head ---- */

static Status
check_head(struct rules *r)
{
	const Msccl *a = r->algo;
	if (a->missing)
		TRY(BROKEN(r, MSCCL_RULE_ATTRIBUTES, a->line, "algo: no attribute %s: want one", a->missing));
	if (a->n_channels < 1 || a->n_channels > CHANNELS_MAX)
		TRY(BROKEN(r, MSCCL_RULE_CHANNEL, a->line, "nchannels: %d: want 1 to %d", a->n_channels, CHANNELS_MAX));
	if (a->chunks < 1 || (r->sound && msccl_block_chunks(a) < 1))
		TRY(BROKEN(r, MSCCL_RULE_CHUNKS, a->line, "nchunksperloop: %d: want %s", a->chunks,
		    a->chunks < 1 ? "1 at least" : "a multiple of ngpus"));
	if (!a->in_place && !a->out_of_place)
		TRY(BROKEN(r, MSCCL_RULE_PLACE, a->line, "inplace and outofplace: both 0: want one of them 1"));
	return OK;
}

static Status
check_dialects(struct rules *r)
{
	const Msccl *a = r->algo;
	static const struct { unsigned bit; const char *name; } sizes[] = { { MSCCL_HAS_OUT_OF_PLACE, "outofplace" },
		{ MSCCL_HAS_MIN_BYTES, "minBytes" }, { MSCCL_HAS_MAX_BYTES, "maxBytes" } };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (!(a->given & sizes[i].bit))
			TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_SIZES, AZURE | RCCL, a->line,
			    "algo: no attribute %s: want one", sizes[i].name));
	bool spelled = strcmp(a->coll_name, "reduce_scatter") == 0;
	bool known = a->coll != GATHER && a->coll != SCATTER && (spelled || a->coll != REDUCESCATTER);
	if (spelled || !known)
		TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_COLLECTIVE, spelled ? AZURE | RCCL : MICROSOFT, a->line,
		    "coll: %s: want %s", a->coll_name, spelled ? "reducescatter"
		    : a->coll == REDUCESCATTER ? "reduce_scatter" : "a collective that it has"));
	if (strcmp(a->protocol, "Simple") != 0 && strcmp(a->protocol, "LL") != 0 && strcmp(a->protocol, "LL128") != 0)
		TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_PROTOCOL, MSCCL_ALL, a->line,
		    "proto: want Simple, LL or LL128"));
	if (collective_rooted(a->coll))
		TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_ROOT, MSCCL_ALL, a->line,
		    "coll: %s: executors run it for every root, but it is for one", a->coll_name));
	return OK;
}

static Status
check_syntax(struct rules *r)
{
	const Msccl *a = r->algo;
	if (a->prolog_line)
		TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_SYNTAX, MSCCL_ALL, a->prolog_line,
		    "a prolog: want <algo> first"));
	if (a->blank_line)
		TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_SYNTAX, MSCCL_ALL, a->blank_line,
		    "a tab, line break or two spaces inside a tag: want single spaces"));
	if (a->long_line)
		TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_SYNTAX, MSCCL_ALL, a->long_line,
		    "an attribute: want at most 254 characters"));
	return OK;
}

/* ---- GPUs and threadblocks ---- */

static Status
check_chunks(struct rules *r)
{
	for (int b = MSCCL_INPUT; b <= MSCCL_OUTPUT; b++) {
		int found = r->gpu->chunks[b], want = msccl_expected_chunks(r->algo, b);
		if (found != 0 && found != want)
			TRY(BROKEN(r, MSCCL_RULE_CHUNKS, r->gpu->line,
			    "gpu %d: %s_chunks: %d: want %d, or 0 if it has none", r->gpu->id, msccl_buffers[b], found,
			    want));
	}
	return OK;
}

static Status
check_gpu_id(struct rules *r, bool *seen)
{
	int id = r->gpu->id;
	if (r->gpu->missing)
		return BROKEN(r, MSCCL_RULE_ATTRIBUTES, r->gpu->line, "gpu: no attribute %s: want one",
		    r->gpu->missing);
	if (id < 0 || id >= r->algo->n_gpus || seen[id])
		return BROKEN(r, MSCCL_RULE_GPU_IDS, r->gpu->line, "gpu: id: %d: want 0 to %d, each once", id,
		    r->algo->n_gpus - 1);
	seen[id] = true;
	return OK;
}

static Status
check_block_ids(struct rules *r)
{
	for (int t = 0; t < r->gpu->n_blocks; t++) {
		const MscclBlock *block = &r->gpu->block[t];
		if (block->missing)
			TRY(BROKEN(r, MSCCL_RULE_ATTRIBUTES, block->line, "gpu %d: tb: no attribute %s: want one",
			    r->gpu->id, block->missing));
		else if (block->id != t)
			return BROKEN(r, MSCCL_RULE_BLOCK_IDS, block->line,
			    "gpu %d: tb: id: %d: want 0 to %d, each once", r->gpu->id, block->id,
			    r->gpu->n_blocks - 1);
	}
	return OK;
}

static Status
check_block(struct rules *r)
{
	const MscclBlock *b = r->block;
	const int peer[2] = { b->send, b->recv };
	if (b->channel < 0 || b->channel >= CHANNELS_MAX || b->channel >= r->algo->n_channels)
		TRY(BROKEN(r, MSCCL_RULE_CHANNEL, b->line, "gpu %d, tb %d: chan: %d: want 0 to %d", r->gpu->id, b->id,
		    b->channel, r->algo->n_channels - 1));
	for (int i = 0; i < 2; i++)
		if (peer[i] < -1 || peer[i] >= r->algo->n_gpus || peer[i] == r->gpu->id)
			TRY(BROKEN(r, MSCCL_RULE_PEER, b->line, "gpu %d, tb %d: %s: %d: want another gpu, or -1",
			    r->gpu->id, b->id, i ? "recv" : "send", peer[i]));
	for (const MscclBlock *o = r->gpu->block; o < b; o++)
		if (o->channel == b->channel && ((b->send >= 0 && o->send == b->send)
		    || (b->recv >= 0 && o->recv == b->recv)))
			return BROKEN(r, MSCCL_RULE_CONNECTION, b->line, "gpu %d, tb %d: %s gpu %d on channel %d, as "
			    "tb %d: want one threadblock for it", r->gpu->id, b->id,
			    b->send >= 0 && o->send == b->send ? "sends to" : "receives from",
			    b->send >= 0 && o->send == b->send ? b->send : b->recv, b->channel, o->id);
	return OK;
}

/* ---- steps ---- */

#define BROKEN_STEP(r, rule, format, ...) BROKEN(r, rule, (r)->step->line, "gpu %d, tb %d, step %d: " format, \
	(r)->gpu->id, (r)->block->id, (r)->index, __VA_ARGS__)

static Status
check_range(struct rules *r, MscclBuffer buffer, int offset, const char *name)
{
	int room = r->gpu->chunks[buffer];
	if (offset >= 0 && r->step->count <= room && offset <= room - r->step->count)
		return OK;
	return BROKEN_STEP(r, MSCCL_RULE_OFFSET, "%s: %d, cnt: %d: want chunks of the %d that %s_chunks gives", name,
	    offset, r->step->count, room, msccl_buffers[buffer]);
}

static Status
check_dependency(struct rules *r)
{
	const MscclStep *s = r->step;
	if (s->dep_block == -1)
		return s->op == MSCCL_NOP ? BROKEN_STEP(r, MSCCL_RULE_NOP,
		    "depid: %d: want a threadblock, as it is a nop", -1) : OK;
	if (s->dep_block < 0 || s->dep_block > DEPID_MAX || s->dep_block >= r->gpu->n_blocks
	    || s->dep_block == r->block->id)
		return BROKEN_STEP(r, MSCCL_RULE_DEPENDENCY, "depid: %d: want another threadblock, at most %d, or -1",
		    s->dep_block, DEPID_MAX);
	const MscclBlock *on = &r->gpu->block[s->dep_block];
	if (s->dep_step < 0 || s->dep_step >= on->n_steps)
		return BROKEN_STEP(r, MSCCL_RULE_DEPENDENCY, "deps: %d: want 0 to %d, a step of tb %d", s->dep_step,
		    on->n_steps - 1, on->id);
	if (!on->step[s->dep_step].has_dep || on->step[s->dep_step].op == MSCCL_NOP)
		return BROKEN_STEP(r, MSCCL_RULE_HASDEP, "waits for step %d of tb %d, which %s", s->dep_step, on->id,
		    on->step[s->dep_step].has_dep ? "is a nop: want another" : "has hasdep=\"0\": want 1");
	return OK;
}

/* Dependencies of nops belong to the next step, which must have one itself. */
static Status
check_nop(struct rules *r)
{
	const MscclStep *next = r->step + 1;
	if (r->step->op != MSCCL_NOP)
		return OK;
	if (r->index + 1 == r->block->n_steps || (next->op != MSCCL_NOP && next->dep_block == -1))
		return BROKEN_STEP(r, MSCCL_RULE_NOP, "a nop %s: want a step with a depid after it",
		    r->index + 1 == r->block->n_steps ? "at the end" : "before a step without depid");
	return OK;
}

static Status
check_step(struct rules *r)
{
	const MscclStep *s = r->step;
	const MscclOpKind *op = &msccl_ops[s->op];
	if (s->missing)
		return BROKEN_STEP(r, MSCCL_RULE_ATTRIBUTES, "no attribute %s: want one", s->missing);
	if (s->number != r->index)
		TRY(BROKEN_STEP(r, MSCCL_RULE_STEP_NUMBER, "s: %d: want %d", s->number, r->index));
	TRY(check_dependency(r));
	TRY(check_nop(r));
	if (s->op == MSCCL_NOP)
		return OK;
	if (s->count < 1 || s->count > COUNT_MAX)
		return BROKEN_STEP(r, MSCCL_RULE_COUNT, "cnt: %d: want 1 to %d", s->count, COUNT_MAX);
	if ((op->sends && r->block->send < 0) || (op->receives && r->block->recv < 0))
		TRY(BROKEN_STEP(r, MSCCL_RULE_PEER, "type: %s: want a threadblock that %s", op->name,
		    op->sends && r->block->send < 0 ? "sends" : "receives"));
	if (op->reads)
		TRY(check_range(r, s->src, s->src_offset, "srcoff"));
	return op->writes ? check_range(r, s->dst, s->dst_offset, "dstoff") : OK;
}

/* ---- messages: what one side sends and the other receives ---- */

static const MscclStep *
next_message(const MscclBlock *block, int *at, bool sends)
{
	for (; block && *at < block->n_steps; (*at)++)
		if (sends ? msccl_ops[block->step[*at].op].sends : msccl_ops[block->step[*at].op].receives)
			return &block->step[(*at)++];
	return NULL;
}

static const MscclBlock *
find_block(const MscclGpu *gpu, int peer, int channel, bool sends)
{
	for (int t = 0; t < gpu->n_blocks; t++)
		if (gpu->block[t].channel == channel && (sends ? gpu->block[t].send : gpu->block[t].recv) == peer)
			return &gpu->block[t];
	return NULL;
}

/* What this threadblock sends, or receives, against what its peer does. Pairs are reported by the sender, if there is
 * one. */
static Status
check_messages(struct rules *r, bool sends)
{
	int peer = sends ? r->block->send : r->block->recv, mine = 0, theirs = 0;
	if (peer < 0)
		return OK;
	const MscclBlock *other = find_block(&r->algo->gpu[peer], r->gpu->id, r->block->channel, !sends);
	if (!sends && other)
		return OK;
	for (;;) {
		const MscclStep *one = next_message(r->block, &mine, sends);
		const MscclStep *two = next_message(other, &theirs, !sends);
		if (!one && !two)
			return OK;
		if (one && two && one->count == two->count)
			continue;
		if (one && two)
			return BROKEN(r, MSCCL_RULE_MESSAGES, one->line,
			    "gpu %d, tb %d, step %d: cnt: %d: gpu %d, tb %d, step %d %s it on channel %d: want %d",
			    r->gpu->id, r->block->id, mine - 1, one->count, peer, other->id, theirs - 1,
			    sends ? "receives" : "sends", r->block->channel, two->count);
		return BROKEN(r, MSCCL_RULE_MESSAGES, one ? one->line : two->line, "gpu %d, tb %d, step %d: type: %s: "
		    "gpu %d has no step for it on channel %d", one ? r->gpu->id : peer, one ? r->block->id : other->id,
		    (one ? mine : theirs) - 1, msccl_ops[one ? one->op : two->op].name, one ? peer : r->gpu->id,
		    r->block->channel);
	}
}

/* ---- what only some executors load ---- */

static Status
check_sizes(struct rules *r)
{
	int nodes = 1 + r->algo->n_gpus + r->gpu->n_blocks;
	for (int t = 0; t < r->gpu->n_blocks; t++) {
		const MscclBlock *b = &r->gpu->block[t];
		nodes += b->n_steps;
		if (b->n_steps > 64)
			TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_STEPS, b->n_steps > 256 ? MSCCL_ALL : AZURE | RCCL,
			    b->line, "gpu %d, tb %d: %d steps: want at most %d", r->gpu->id, b->id, b->n_steps,
			    b->n_steps > 256 ? 256 : 64));
	}
	if (r->gpu->n_blocks > 64)
		TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_BLOCKS, r->gpu->n_blocks > 1024 ? MSCCL_ALL
		    : r->gpu->n_blocks > 216 ? RCCL | MICROSOFT : RCCL, r->gpu->line,
		    "gpu %d: %d threadblocks: want at most %d", r->gpu->id, r->gpu->n_blocks,
		    r->gpu->n_blocks > 1024 ? 1024 : r->gpu->n_blocks > 216 ? 216 : 64));
	if (nodes > NODES_MAX || r->gpu->n_blocks > CHILDREN_MAX)
		TRY(msccl_find(r->ctx, r->list, MSCCL_RULE_NODES, MSCCL_ALL, r->gpu->line,
		    "gpu %d: %d elements: want at most %d in a file as its rank reads it", r->gpu->id,
		    nodes, NODES_MAX));
	return OK;
}

/* A rank's input is the caller's: nobody else may write there. */
static Status
check_input(struct rules *r)
{
	const MscclStep *s = r->step;
	if (!r->algo->out_of_place || !msccl_ops[s->op].writes || s->dst != MSCCL_INPUT)
		return OK;
	return msccl_find(r->ctx, r->list, MSCCL_RULE_INPUT, MSCCL_ALL, s->line,
	    "gpu %d, tb %d, step %d: dstbuf: i: want o or s, as the caller's input stays out of place", r->gpu->id,
	    r->block->id, r->index);
}

/* ---- all of them ---- */

static Status
for_blocks(struct rules *r, Status (*check)(struct rules *r))
{
	for (int t = 0; t < r->gpu->n_blocks; t++) {
		r->block = &r->gpu->block[t];
		TRY(check(r));
	}
	return OK;
}

static Status
check_steps(struct rules *r)
{
	for (r->index = 0; r->index < r->block->n_steps; r->index++) {
		r->step = &r->block->step[r->index];
		TRY(check_step(r));
		TRY(check_input(r));
	}
	return OK;
}

static Status
check_pairs(struct rules *r)
{
	TRY(check_messages(r, true));
	return check_messages(r, false);
}

static Status
for_gpus(struct rules *r, Status (*check)(struct rules *r), bool of_blocks)
{
	for (int g = 0; g < r->algo->n_listed; g++) {
		r->gpu = &r->algo->gpu[g];
		TRY(of_blocks ? for_blocks(r, check) : check(r));
	}
	return OK;
}

/* Ids first: where they are wrong, numbers in the file mean nothing. */
static Status
check_ids(struct rules *r)
{
	bool *seen;
	TRY(NEW(r->ctx, seen, r->algo->n_gpus));
	for (int g = 0; g < r->algo->n_listed; g++) {
		r->gpu = &r->algo->gpu[g];
		TRY(check_gpu_id(r, seen));
		TRY(check_block_ids(r));
	}
	if (r->sound && r->algo->n_listed != r->algo->n_gpus)
		TRY(BROKEN(r, MSCCL_RULE_GPU_IDS, r->algo->line, "algo: %d elements gpu: want %d, as ngpus says",
		    r->algo->n_listed, r->algo->n_gpus));
	return OK;
}

Status
msccl_rules(Ctx *ctx, const Msccl *algo, RuleFindings *list, bool *sound)
{
	struct rules r = { .ctx = ctx, .algo = algo, .list = list, .sound = true };
	TRY(check_syntax(&r));
	TRY(check_head(&r));
	TRY(check_dialects(&r));
	TRY(check_ids(&r));
	if (r.sound) {
		TRY(for_gpus(&r, check_chunks, false));
		TRY(for_gpus(&r, check_block, true));
		TRY(for_gpus(&r, check_steps, true));
	}
	if (r.sound)
		TRY(for_gpus(&r, check_pairs, true));
	TRY(for_gpus(&r, check_sizes, false));
	*sound = r.sound;
	return OK;
}
