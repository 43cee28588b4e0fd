/* What an operation does with data, cell by cell, and what must come before it. */
#include "base/limits.h"
#include "mscclpp/state.h"

#include <stdio.h>
#include <string.h>

/* A range at one GPU. */
struct place {
	int gpu;
	MscclppBuffer buffer;
	bool packets;
	int64_t cell;
	int n;
};

/* Of the i-th GPU of a range; false: it has no more. */
static bool
place_of(const struct run *run, const struct block *b, const MscclppOp *op, const MscclppRange *range, bool src, int k,
    int i, struct place *out)
{
	const MscclppGpu *gpu = &run->plan->gpu[b->gpu];
	*out = (struct place){ .gpu = b->gpu, .buffer = range->buffer, .packets = mscclpp_is_packets(op, src, k) };
	if (range->where == MSCCLPP_REMOTE) {
		const MscclppRemote *remote = &gpu->remote[b->block->remote[op->type][range->id]];
		out->gpu = remote->rank;
		out->buffer = remote->buffer;
	} else if (range->where == MSCCLPP_MULTICAST) {
		const MscclppSwitch *group = &gpu->multicast[b->block->channel[MSCCLPP_SWITCH][range->id]];
		if (i >= group->n_ranks)
			return false;
		out->gpu = group->rank[i];
		out->buffer = group->buffer;
		i = 0;
	}
	out->cell = mscclpp_cells(run, b, op, range, out->gpu, out->buffer, out->packets, &out->n);
	return i == 0;
}

bool
packets_are_there(const struct run *run, const struct block *b, const MscclppOp *op)
{
	struct place p;
	for (int k = 0; k < op->n_src; k++)
		for (int i = 0; place_of(run, b, op, &op->src[k], true, k, i, &p); i++)
			for (int c = 0; p.packets && c < p.n; c++)
				if (!run->packet_clock[p.cell + c])
					return false;
	return true;
}

/* Who accesses: the threadblock, or the port that it told to. */
struct mover {
	struct run *run;
	struct block *b;
	const MscclppOp *op;
	int actor, time;
	const Clock *known;
	int *causal;		/* that, and what packets that it read tell */
	int *told;		/* the clock of the packets that it writes */
};

const char *
mscclpp_where(const struct run *run, int actor, int serial, char text[64])
{
	if (actor >= run->n_blocks) {
		int g = 0, port = actor - run->n_blocks;
		while (g + 1 < run->plan->n_gpus && run->first_proxy[g + 1] <= port)
			g++;
		snprintf(text, 64, "port channel %d of gpu %d", port - run->first_proxy[g], g);
	} else {
		const struct block *b = &run->block[actor];
		snprintf(text, 64, "gpu %d, tb %d, op %d", b->gpu, b->block->id, b->done[serial - 1]);
	}
	return text;
}

/* Once for each rule: others follow from the first. */
#define REPORT(m, rule, format, ...) ((m)->run->found[rule] ? OK : ((m)->run->found[rule] = true, \
	mscclpp_find((m)->run->ctx, (m)->run->list, rule, "gpu %d, tb %d, op %d, %s: " format, (m)->b->gpu, \
	(m)->b->block->id, (int)((m)->op - (m)->b->block->op), mscclpp_ops[(m)->op->kind].name, __VA_ARGS__)))

static Status
report_race(const struct mover *m, const struct place *p, int c, const Access *other, bool writes, bool wrote)
{
	char where[64];
	int64_t first = m->run->base[p->gpu * N_MSCCLPP_BUFFERS + p->buffer];
	int per_chunk = (p->buffer == MSCCLPP_SCRATCH && !p->packets ? m->run->scratch_units : m->run->units)
	    * m->run->parts;
	return REPORT(m, MSCCLPP_RULE_RACE, "%s chunk %lld of %s of gpu %d, which %s %s: want a nop, and signals or "
	    "semaphores if that is another threadblock, between them", writes ? "writes" : "reads",
	    (long long)((p->cell + c - first) / per_chunk), mscclpp_buffers[p->buffer], p->gpu,
	    mscclpp_where(m->run, other->actor, other->time, where), wrote ? "writes" : "reads");
}

/* Memory of another GPU, whose kernel must have begun, and must not end before. */
static Status
note_foreign(const struct mover *m, const struct place *p, bool writes)
{
	struct run *run = m->run;
	bool port = m->actor >= run->n_blocks;
	if (p->packets) {
		run->sent[m->b->gpu * run->plan->n_gpus + p->gpu] |= p->gpu != m->b->gpu;
		return OK;
	}
	if (p->gpu != m->b->gpu && !m->known->causal[run->n_actors + p->gpu])
		TRY(REPORT(m, MSCCLPP_RULE_ENTRY, "%s buffer %s of gpu %d, which may not have begun: want a signal of "
		    "it before", writes ? "writes" : "reads", mscclpp_buffers[p->buffer], p->gpu));
	if (p->gpu != m->b->gpu || port)
		run->foreign[writes][m->actor * run->plan->n_gpus + p->gpu] = m->time;
	return OK;
}

/* Packets wait for who wrote them, and are not ordered by anything else. Ports copy them as they are. */
static Status
read_cell(struct mover *m, const struct place *p, int c, Value *into, bool first)
{
	struct run *run = m->run;
	const Value *value = values_at(&run->values, p->cell + c);
	Access other = { .actor = -1 }, now = { .actor = m->actor, .time = m->time, .step = m->time };
	if (!p->packets || m->actor >= run->n_blocks)
		TRY(cells_read(run->ctx, &run->cells, p->cell + c, now, m->known->visible, &other));
	if (other.actor >= 0)
		TRY(report_race(m, p, c, &other, false, true));
	if (first)
		memcpy(into, value, run->values.size);
	else
		values_reduce(&run->values, into, value);
	return OK;
}

static Status
write_cell(struct mover *m, const struct place *p, int c, const Value *from)
{
	struct run *run = m->run;
	Access other = { .actor = -1 }, now = { .actor = m->actor, .time = m->time, .step = m->time };
	bool wrote = false;
	if (p->packets && run->packet_clock[p->cell + c])
		TRY(REPORT(m, MSCCLPP_RULE_RACE, "writes packets %d of scratch of gpu %d once more: want others, as a "
		    "reader cannot tell them", (int)((p->cell + c
		    - run->base[p->gpu * N_MSCCLPP_BUFFERS + MSCCLPP_SCRATCH]) / (run->units * run->parts)), p->gpu));
	cells_write(&run->cells, p->cell + c, now, m->known->visible, m->causal, &other, &wrote);
	if (!p->packets && other.actor >= 0)
		TRY(report_race(m, p, c, &other, true, wrote));
	if (p->packets)
		run->packet_clock[p->cell + c] = m->told;
	memcpy(values_at(&run->values, p->cell + c), from, run->values.size);
	return OK;
}

/* From the sources from..from+n_src-1, reduced, to the destinations to..to+n_dst-1. The cells of all of them are read
 * before any is written only one by one, as each thread does. */
static Status
move_ranges(struct mover *m, int from, int n_src, int to, int n_dst)
{
	struct run *run = m->run;
	const MscclppOp *op = m->op;
	struct place p;
	Value *moved = run->moved;
	for (int k = from; k < from + n_src; k++)
		for (int i = 0; place_of(run, m->b, op, &op->src[k], true, k, i, &p); i++)
			TRY(note_foreign(m, &p, false));
	for (int k = to; k < to + n_dst; k++)
		for (int i = 0; place_of(run, m->b, op, &op->dst[k], false, k, i, &p); i++)
			TRY(note_foreign(m, &p, true));
	place_of(run, m->b, op, &op->src[from], true, from, 0, &p);
	for (int c = 0, n = p.n; c < n; c++) {
		bool first = true;
		for (int k = from; k < from + n_src; k++)
			for (int i = 0; place_of(run, m->b, op, &op->src[k], true, k, i, &p); i++, first = false)
				TRY(read_cell(m, &p, c, moved, first));
		for (int k = to; k < to + n_dst; k++)
			for (int i = 0; place_of(run, m->b, op, &op->dst[k], false, k, i, &p); i++)
				TRY(write_cell(m, &p, c, moved));
	}
	return OK;
}

/* What packets told is known to who reads them, and those that it writes tell it, and what it has done. */
static Status
run_mover(struct mover *m, int from, int n_src, int to, int n_dst)
{
	struct run *run = m->run;
	struct place p;
	m->causal = m->known->causal;
	if (!mscclpp_has_packets(run->plan))
		return move_ranges(m, from, n_src, to, n_dst);
	TRY(TEMP(run->ctx, m->causal, run->n_known));
	memcpy(m->causal, m->known->causal, (size_t)run->n_known * sizeof(int));
	for (int k = from; k < from + n_src; k++)
		for (int i = 0; place_of(run, m->b, m->op, &m->op->src[k], true, k, i, &p); i++)
			for (int c = 0; p.packets && c < p.n; c++) {
				const int *clock = run->packet_clock[p.cell + c];
				for (int j = 0; clock && j < run->n_known; j++)
					m->causal[j] = m->causal[j] > clock[j] ? m->causal[j] : clock[j];
			}
	TRY(TEMP(run->ctx, m->told, run->n_known));
	memcpy(m->told, m->causal, (size_t)run->n_known * sizeof(int));
	m->told[m->actor] = m->time;
	return move_ranges(m, from, n_src, to, n_dst);
}

static bool
is_put(MscclppKind kind)
{
	return kind == MSCCLPP_PUT || kind == MSCCLPP_PUT_SIGNAL || kind == MSCCLPP_PUT_SIGNAL_FLUSH
	    || kind == MSCCLPP_PUT_PACKETS || kind == MSCCLPP_READ_PUT_PACKETS;
}

/* Each of the first threads tells its port. */
static Status
move_by_ports(struct run *run, struct block *b, const MscclppOp *op)
{
	for (int i = 0; i < op->n_dst; i++) {
		int port = b->block->channel[MSCCLPP_PORT][op->channel[i]], p = run->first_proxy[b->gpu] + port;
		struct proxy *proxy = &run->proxy[p];
		struct mover m = { run, b, op, run->n_blocks + p, ++proxy->serial, &proxy->base, NULL, NULL };
		Clock *lane;
		TRY(lane_get(run, b, i, &lane));
		proxy_tell(run, b, i, lane, proxy);
		TRY(run_mover(&m, op->kind == MSCCLPP_READ_PUT_PACKETS ? 0 : i, 1, i, 1));
		proxy->base.visible[m.actor] = proxy->base.causal[m.actor] = proxy->serial;
		if (op->kind == MSCCLPP_PUT_SIGNAL || op->kind == MSCCLPP_PUT_SIGNAL_FLUSH) {
			int peer = run->plan->gpu[b->gpu].peer[MSCCLPP_PORT][port];
			int other = mscclpp_other_end(run->plan, b->gpu, MSCCLPP_PORT, port);
			TRY(queue_put(run, &run->queue[MSCCLPP_PORT][peer][other], &proxy->base, false));
		}
		if (op->kind == MSCCLPP_PUT_SIGNAL_FLUSH)
			clock_join(run, lane, &proxy->base);
	}
	return OK;
}

static Status
move_here(struct run *run, struct block *b, int self, const MscclppOp *op)
{
	struct mover m = { run, b, op, self, b->serial, &b->base, NULL, NULL };
	bool pairs = is_put(op->kind) && op->kind != MSCCLPP_READ_PUT_PACKETS;
	pairs |= op->kind == MSCCLPP_GET;
	for (int i = 0; pairs && i < op->n_src; i++)
		TRY(run_mover(&m, i, 1, i, 1));
	if (!pairs)
		TRY(run_mover(&m, 0, op->n_src, 0, op->n_dst));
	if (mscclpp_has_packets(run->plan)) {
		Clock *lane;
		TRY(lane_get(run, b, 0, &lane));
		for (int i = 0; i < run->n_known; i++)
			lane->causal[i] = lane->causal[i] > m.causal[i] ? lane->causal[i] : m.causal[i];
	}
	return OK;
}

Status
move_data(struct run *run, struct block *b, int self, const MscclppOp *op)
{
	return op->type == MSCCLPP_PORT && is_put(op->kind) ? move_by_ports(run, b, op)
	    : move_here(run, b, self, op);
}
