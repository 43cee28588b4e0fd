/* MSCCL XML to Msccl. */
#include "format/doc.h"
#include "format/msccl/msccl.h"
#include "format/sniff.h"

#include <stdio.h>
#include <string.h>

static const char *const plural[] = { "gpu", "gpus", "tb", "tbs", "step", "steps", NULL };

enum { VALUE_MAX = 254 };	/* bytes of an attribute that executors have room for */

struct reader {
	Ctx *ctx;
	const char *label;
	Msccl *algo;
	int n_steps;
};

bool
msccl_is(const char *data, size_t size)
{
	return sniff_element(data, size, "algo");
}

/* ---- attributes ---- */

/* An integer; one that is not there is the element's first missing one, and `otherwise`. */
static Status
take_int(struct reader *r, const Doc *at, const char *name, int64_t most, int otherwise, const char **missing, int *out)
{
	const Doc *value = doc_get(at, name);
	int64_t number = otherwise;
	if (value && value->kind == DOC_STRING)
		TRY(doc_int(r->ctx, r->label, value, -most, most, &number));
	else if (missing && !*missing)
		*missing = name;
	*out = (int)number;
	return OK;
}

static Status
take_text(const Doc *at, const char *name, const char **missing, const char **out)
{
	const Doc *value = doc_get(at, name);
	bool there = value && value->kind == DOC_STRING;
	if (!there && missing && !*missing)
		*missing = name;
	*out = there ? value->text : "";
	return OK;
}

static Status
take_op(struct reader *r, const Doc *at, MscclStep *step)
{
	const char *text;
	TRY(take_text(at, "type", &step->missing, &text));
	for (int op = 0; op < N_MSCCL_OPS; op++) {
		if (strcmp(msccl_ops[op].name, text) == 0) {
			step->op = (MscclOp)op;
			return OK;
		}
	}
	step->op = MSCCL_NOP;
	return *text ? doc_want(r->ctx, r->label, doc_get(at, "type"),
	    "s, r, rcs, rrc, rrs, rrcs, cpy, re or nop") : OK;
}

static Status
take_buffer(struct reader *r, const Doc *at, const char *name, MscclStep *step, MscclBuffer *out)
{
	const char *text;
	TRY(take_text(at, name, &step->missing, &text));
	*out = MSCCL_INPUT;
	for (int b = 0; b < N_MSCCL_BUFFERS; b++) {
		if (strcmp(msccl_buffers[b], text) == 0) {
			*out = (MscclBuffer)b;
			return OK;
		}
	}
	return *text ? doc_want(r->ctx, r->label, doc_get(at, name), "i, o or s") : OK;
}

/* ---- elements ---- */

/* The child elements of a name; NULL: none. */
static const Doc *
elements(const Doc *at, const char *name)
{
	const Doc *list = doc_get(at, name);
	return list && list->kind == DOC_ARRAY ? list : NULL;
}

static Status
read_step(struct reader *r, const Doc *at, MscclStep *step)
{
	const char **missing = &step->missing;
	int has_dep;
	step->line = at->line;
	TRY(take_int(r, at, "s", INT32_MAX, 0, missing, &step->number));
	TRY(take_op(r, at, step));
	TRY(take_buffer(r, at, "srcbuf", step, &step->src));
	TRY(take_int(r, at, "srcoff", LIMIT_MSCCL_CHUNKS, 0, missing, &step->src_offset));
	TRY(take_buffer(r, at, "dstbuf", step, &step->dst));
	TRY(take_int(r, at, "dstoff", LIMIT_MSCCL_CHUNKS, 0, missing, &step->dst_offset));
	TRY(take_int(r, at, "cnt", LIMIT_MSCCL_CHUNKS, 0, missing, &step->count));
	TRY(take_int(r, at, "depid", INT32_MAX, -1, missing, &step->dep_block));
	TRY(take_int(r, at, "deps", INT32_MAX, -1, missing, &step->dep_step));
	TRY(take_int(r, at, "hasdep", 1, 0, missing, &has_dep));
	step->has_dep = has_dep != 0;
	return OK;
}

static Status
read_block(struct reader *r, const Doc *at, MscclBlock *block)
{
	const Doc *steps = elements(at, "steps");
	block->line = at->line;
	TRY(take_int(r, at, "id", INT32_MAX, -1, &block->missing, &block->id));
	TRY(take_int(r, at, "send", INT32_MAX, -1, &block->missing, &block->send));
	TRY(take_int(r, at, "recv", INT32_MAX, -1, &block->missing, &block->recv));
	TRY(take_int(r, at, "chan", INT32_MAX, 0, &block->missing, &block->channel));
	block->n_steps = steps ? steps->n : 0;
	if (block->n_steps > LIMIT_MSCCL_STEPS - r->n_steps)
		return doc_fail(r->ctx, r->label, at, LIMIT, "more than %d steps in all", LIMIT_MSCCL_STEPS);
	r->n_steps += block->n_steps;
	TRY(NEW(r->ctx, block->step, block->n_steps));
	for (int i = 0; i < block->n_steps; i++)
		TRY(read_step(r, steps->child[i], &block->step[i]));
	return OK;
}

/* By id, if these are 0 to n - 1, each once; else as they are. */
static Status
sort_blocks(struct reader *r, MscclGpu *gpu)
{
	MscclBlock *sorted;
	TRY(NEW(r->ctx, sorted, gpu->n_blocks));
	for (int t = 0; t < gpu->n_blocks; t++) {
		int id = gpu->block[t].id;
		if (id < 0 || id >= gpu->n_blocks || sorted[id].line)
			return OK;
		sorted[id] = gpu->block[t];
	}
	gpu->block = sorted;
	return OK;
}

static Status
sort_gpus(struct reader *r)
{
	MscclGpu *sorted;
	TRY(NEW(r->ctx, sorted, r->algo->n_listed));
	for (int g = 0; g < r->algo->n_listed; g++) {
		int id = r->algo->gpu[g].id;
		if (id < 0 || id >= r->algo->n_listed || sorted[id].line)
			return OK;
		sorted[id] = r->algo->gpu[g];
	}
	r->algo->gpu = sorted;
	return OK;
}

static Status
read_gpu(struct reader *r, const Doc *at, MscclGpu *gpu)
{
	static const char *const names[] = { "i_chunks", "o_chunks", "s_chunks" };
	const Doc *blocks = elements(at, "tbs");
	gpu->line = at->line;
	TRY(take_int(r, at, "id", INT32_MAX, -1, &gpu->missing, &gpu->id));
	for (int b = 0; b < N_MSCCL_BUFFERS; b++) {
		TRY(take_int(r, at, names[b], LIMIT_MSCCL_CHUNKS, 0, &gpu->missing, &gpu->chunks[b]));
		if (gpu->chunks[b] < 0)
			return doc_fail(r->ctx, r->label, doc_get(at, names[b]), BAD_INPUT, "%d: want 0 to %d",
			    gpu->chunks[b], LIMIT_MSCCL_CHUNKS);
	}
	gpu->n_blocks = blocks ? blocks->n : 0;
	if (gpu->n_blocks > LIMIT_MSCCL_BLOCKS)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%d elements tb: want at most %d", gpu->n_blocks,
		    LIMIT_MSCCL_BLOCKS);
	TRY(NEW(r->ctx, gpu->block, gpu->n_blocks));
	for (int t = 0; t < gpu->n_blocks; t++)
		TRY(read_block(r, blocks->child[t], &gpu->block[t]));
	return sort_blocks(r, gpu);
}

static Status
read_collective(struct reader *r, const Doc *at)
{
	Msccl *algo = r->algo;
	TRY(take_text(at, "coll", &algo->missing, &algo->coll_name));
	algo->coll = ALLREDUCE;
	if (!*algo->coll_name || collective_parse(algo->coll_name, &algo->coll))
		return OK;
	if (strcmp(algo->coll_name, "reduce_scatter") != 0)
		return doc_want(r->ctx, r->label, doc_get(at, "coll"), names_wanted(collective_names).text);
	algo->coll = REDUCESCATTER;
	return OK;
}

static Status
take_bytes(struct reader *r, const Doc *at, const char *name, unsigned bit, int64_t *out)
{
	const Doc *value = doc_get(at, name);
	if (!value || value->kind != DOC_STRING)
		return OK;
	r->algo->given |= bit;
	return doc_int(r->ctx, r->label, value, 0, LIMIT_MESSAGE, out);
}

static Status
read_places(struct reader *r, const Doc *at)
{
	Msccl *algo = r->algo;
	int in_place, out_of_place;
	TRY(take_int(r, at, "inplace", 1, 0, &algo->missing, &in_place));
	TRY(take_int(r, at, "outofplace", 1, 0, NULL, &out_of_place));
	algo->in_place = in_place != 0;
	algo->given |= doc_get(at, "outofplace") ? MSCCL_HAS_OUT_OF_PLACE : 0;
	algo->out_of_place = algo->given & MSCCL_HAS_OUT_OF_PLACE ? out_of_place != 0 : !algo->in_place;
	TRY(take_bytes(r, at, "minBytes", MSCCL_HAS_MIN_BYTES, &algo->min_bytes));
	return take_bytes(r, at, "maxBytes", MSCCL_HAS_MAX_BYTES, &algo->max_bytes);
}

static Status
read_algo(struct reader *r, const Doc *at)
{
	Msccl *algo = r->algo;
	const Doc *gpus = elements(at, "gpus");
	algo->line = at->line;
	TRY(take_text(at, "name", NULL, &algo->name));
	TRY(take_text(at, "proto", &algo->missing, &algo->protocol));
	TRY(take_int(r, at, "nchannels", INT32_MAX, 1, &algo->missing, &algo->n_channels));
	TRY(take_int(r, at, "nchunksperloop", LIMIT_MSCCL_CHUNKS, 1, &algo->missing, &algo->chunks));
	TRY(take_int(r, at, "ngpus", INT32_MAX, 1, &algo->missing, &algo->n_gpus));
	if (algo->n_gpus < 1 || algo->n_gpus > LIMIT_MSCCL_GPUS)
		return doc_fail(r->ctx, r->label, doc_get(at, "ngpus"), algo->n_gpus < 1 ? BAD_INPUT : LIMIT,
		    "%d: want 1 to %d", algo->n_gpus, LIMIT_MSCCL_GPUS);
	TRY(read_collective(r, at));
	TRY(read_places(r, at));
	algo->n_listed = gpus ? gpus->n : 0;
	if (algo->n_listed > LIMIT_MSCCL_GPUS)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%d elements gpu: want at most %d", algo->n_listed,
		    LIMIT_MSCCL_GPUS);
	TRY(NEW(r->ctx, algo->gpu, algo->n_listed));
	for (int g = 0; g < algo->n_listed; g++)
		TRY(read_gpu(r, gpus->child[g], &algo->gpu[g]));
	return sort_gpus(r);
}

/* ---- what executors' own parsers do not read ---- */

static void
set_first(int *line, int found)
{
	if (*line == 0)
		*line = found;
}

/* data: well-formed XML. Tags, and comments, which they skip. */
static void
note_syntax(const char *data, size_t size, Msccl *algo)
{
	bool in_tag = false, quoted = false;
	size_t value = 0;
	int line = 1;
	for (size_t i = 0; i < size; i++) {
		char c = data[i];
		const char *end = !in_tag && size - i > 4 && memcmp(data + i, "<!--", 4) == 0
		    ? memmem(data + i, size - i, "-->", 3) : NULL;
		for (; end && data + i < end; i++)
			line += data[i] == '\n';
		c = data[i];
		if (!in_tag && c == '<' && i + 1 < size && data[i + 1] == '?')
			set_first(&algo->prolog_line, line);
		bool blank = c == '\t' || c == '\n' || c == '\r' || (c == ' ' && i + 1 < size && data[i + 1] == ' ');
		if (in_tag && !quoted && blank)
			set_first(&algo->blank_line, line);
		if (in_tag && c == '"') {
			quoted = !quoted;
			value = i;
		} else if (quoted && i - value > VALUE_MAX) {
			set_first(&algo->long_line, line);
		}
		in_tag = in_tag ? quoted || c != '>' : c == '<';
		line += c == '\n';
	}
}

Status
msccl_read(Ctx *ctx, const char *label, const char *data, size_t size, Msccl **out)
{
	struct reader r = { .ctx = ctx, .label = label };
	Doc *root;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(NEW(ctx, r.algo, 1));
	Status status = doc_read_xml(ctx, label, data, size, plural, &root);
	if (status == OK && (!root->text || strcmp(root->text, "algo") != 0))
		status = doc_fail(ctx, label, root, BAD_INPUT, "want <algo>");
	if (status == OK)
		status = read_algo(&r, root);
	arena_release(&ctx->scratch, mark);
	if (status == OK) {
		note_syntax(data, size, r.algo);
		*out = r.algo;
	}
	return status;
}
