/* A schedule as Chakra execution traces: a graph of nodes for each rank, in a file of its own, as ASTRA-sim's custom
 * collectives take them (all-reduce-implementation-custom and its likes). The file is a row of messages of protocol
 * buffers, each after its length: one GlobalMetadata, then the Nodes.
 *
 * Each chunk of a segment goes its own way. A hop is a node that sends at one end and one that receives at the other,
 * with a tag that no other message has; a sum is a node that computes, after what arrived and what it is added to. A
 * node that sends waits for the one that made the value, or for none at a leaf. Links keep the order of chunks, so
 * there are no dependencies for that.
 *
 * Numbers of fields and of kinds of nodes are those of the format, Chakra 0.0.4. */
#include "format/format.h"

#include "schedule/schedule.h"

#include <string.h>

/* Wire types, messages and kinds of nodes. */
enum { VARINT = 0, BYTES = 2 };
enum { METADATA_VERSION = 1, NODE_ID = 1, NODE_NAME = 2, NODE_TYPE = 3, NODE_DATA_DEPS = 5, NODE_DURATION = 7,
	NODE_ATTRIBUTE = 10 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_INT32 = 7, ATTRIBUTE_INT64 = 9, ATTRIBUTE_BOOL = 27 };
enum { COMP_NODE = 4, COMM_SEND_NODE = 5, COMM_RECV_NODE = 6 };
enum { NO_NODE = -1 };

struct trace {
	const Schedule *sched;
	int rank, chunks;
	int64_t bytes;
	Text *out;
	Text node, attribute;	/* under construction */
	int64_t next_id, tag;
	int64_t maker;		/* the node that made what the rank has of the current chunk */
	bool *has;		/* does a rank have a value of it? */
};

/* ---- protocol buffers ---- */

static void
put_varint(Text *out, uint64_t value)
{
	char byte;
	for (; value >= 0x80; value >>= 7) {
		byte = (char)(value | 0x80);
		text_add(out, &byte, 1);
	}
	byte = (char)value;
	text_add(out, &byte, 1);
}

static void
put_number(Text *out, int field, uint64_t value)
{
	put_varint(out, (uint64_t)field << 3 | VARINT);
	put_varint(out, value);
}

static void
put_bytes(Text *out, int field, const char *data, size_t size)
{
	put_varint(out, (uint64_t)field << 3 | BYTES);
	put_varint(out, size);
	text_add(out, data, size);
}

static void
put_attribute(struct trace *t, const char *name, int field, int64_t value)
{
	t->attribute.size = 0;
	put_bytes(&t->attribute, ATTRIBUTE_NAME, name, strlen(name));
	put_number(&t->attribute, field, (uint64_t)value);
	put_bytes(&t->node, NODE_ATTRIBUTE, t->attribute.data ? t->attribute.data : "", t->attribute.size);
}

static void
put_message(struct trace *t)
{
	put_varint(t->out, t->node.size);
	text_add(t->out, t->node.data ? t->node.data : "", t->node.size);
}

/* ---- nodes ---- */

/* Dependencies are one field that holds all of them. */
static void
put_dependencies(struct trace *t, int64_t one, int64_t other)
{
	t->attribute.size = 0;
	if (one != NO_NODE)
		put_varint(&t->attribute, (uint64_t)one);
	if (other != NO_NODE)
		put_varint(&t->attribute, (uint64_t)other);
	if (t->attribute.size)
		put_bytes(&t->node, NODE_DATA_DEPS, t->attribute.data, t->attribute.size);
}

static int64_t
begin_node(struct trace *t, const char *name, int type, int64_t one, int64_t other)
{
	t->node.size = 0;
	put_number(&t->node, NODE_ID, (uint64_t)t->next_id);
	put_bytes(&t->node, NODE_NAME, name, strlen(name));
	put_number(&t->node, NODE_TYPE, (uint64_t)type);
	put_dependencies(t, one, other);
	put_attribute(t, "is_cpu_op", ATTRIBUTE_BOOL, 0);
	return t->next_id++;
}

static int64_t
put_transfer(struct trace *t, const Edge *e, bool sends, int64_t size, int64_t after)
{
	int64_t id = begin_node(t, sends ? "send" : "receive", sends ? COMM_SEND_NODE : COMM_RECV_NODE, after, NO_NODE);
	put_attribute(t, "comm_size", ATTRIBUTE_INT64, size);
	put_attribute(t, "comm_src", ATTRIBUTE_INT32, e->src);
	put_attribute(t, "comm_dst", ATTRIBUTE_INT32, e->dst);
	put_attribute(t, "comm_tag", ATTRIBUTE_INT32, t->tag);
	put_message(t);
	return id;
}

/* Reductions take no time of their own: ASTRA-sim counts a nanosecond. */
static int64_t
put_sum(struct trace *t, int64_t arrived, int64_t with)
{
	int64_t id = begin_node(t, "reduce", COMP_NODE, arrived, with);
	put_number(&t->node, NODE_DURATION, 0);
	put_message(t);
	return id;
}

/* ---- schedule ---- */

/* Bytes up to a fraction of the buffer; of an alltoall M is what one rank sends, and the buffer is that of all. */
static int64_t
bytes_to(const struct trace *t, Frac end)
{
	int times = t->sched->coll == ALLTOALL ? t->sched->topo->n_ranks : 1;
	return frac_floor_mul(end, t->bytes * times);
}

static int64_t
chunk_size(const struct trace *t, const Segment *s, int c)
{
	Frac end = FRAC_ONE;
	frac_add(s->offset, s->length, &end);
	int64_t begin = bytes_to(t, s->offset), size = bytes_to(t, end) - begin;
	return (int64_t)((Wide)size * (c + 1) / t->chunks) - (int64_t)((Wide)size * c / t->chunks);
}

static void
put_hop(struct trace *t, const Edge *e, bool reduces, int64_t size)
{
	if (e->src == t->rank)
		put_transfer(t, e, true, size, t->maker);
	if (e->dst == t->rank) {
		int64_t arrived = put_transfer(t, e, false, size, NO_NODE);
		t->maker = reduces ? put_sum(t, arrived, t->maker) : arrived;
	}
}

static void
put_chunk(struct trace *t, const Segment *s, int64_t size)
{
	const Tree *tree = &s->tree;
	Collective coll = t->sched->coll;
	int n = t->sched->topo->n_ranks;
	int holder = collective_holder(coll, n, t->sched->root, sched_segment_block(t->sched, s));
	t->maker = NO_NODE;
	for (int r = 0; r < n; r++)
		t->has[r] = holder == EVERY_RANK || holder == r;
	for (int i = 0; i < tree->n_up + tree->n_down; i++, t->tag++) {
		const Edge *e = tree_hop(tree, i);
		bool reduces = i < tree->n_up && collective_reduces(coll);
		if (!collective_reduces(coll) && (!t->has[e->src] || t->has[e->dst]))
			continue;
		t->has[e->dst] = true;
		put_hop(t, e, reduces, size);
	}
}

static void
put_metadata(struct trace *t)
{
	static const char version[] = "0.0.4";
	t->node.size = 0;
	put_bytes(&t->node, METADATA_VERSION, version, sizeof version - 1);
	put_message(t);
}

static Status
check_input(Ctx *ctx, const Schedule *sched, const FormatInput *in)
{
	int64_t hops = 0;
	for (int s = 0; s < sched->n_segments; s++)
		hops += sched->segment[s].tree.n_up + sched->segment[s].tree.n_down;
	if (sched->n_parts > 1)
		return fail(ctx, INFEASIBLE, "chakra: %s: parts over several link classes: want one",
		    sched->topo->name);
	if (hops * in->chunks > INT32_MAX)
		return fail(ctx, LIMIT, "chakra: %s: %lld hops of %d chunks: want fewer than 2^31 messages",
		    sched->topo->name, (long long)hops, in->chunks);
	if (sched->coll == ALLTOALL && in->bytes > INT64_MAX / sched->topo->n_ranks)
		return fail(ctx, LIMIT, "chakra: %s: a message of %lld bytes", sched->topo->name, (long long)in->bytes);
	return OK;
}

Status
sched_write_chakra(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	struct trace t = { .sched = sched, .rank = in->rank, .chunks = in->chunks, .bytes = in->bytes, .out = out };
	TRY(check_input(ctx, sched, in));
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(TEMP(ctx, t.has, sched->topo->n_ranks));
	put_metadata(&t);
	for (int c = 0; c < in->chunks; c++) {
		for (int s = 0; s < sched->n_segments; s++) {
			int64_t size = chunk_size(&t, &sched->segment[s], c);
			if (size > 0)
				put_chunk(&t, &sched->segment[s], size);
			else
				t.tag += sched->segment[s].tree.n_up + sched->segment[s].tree.n_down;
		}
	}
	bool failed = out->failed || t.node.failed || t.attribute.failed;
	text_free(&t.node);
	text_free(&t.attribute);
	arena_release(&ctx->scratch, mark);
	return failed ? fail_memory(ctx) : OK;
}
