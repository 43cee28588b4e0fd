/* One run of an algorithm that stands for all.
 *
 * A step waits for fixed events alone: the step before it in its threadblock, the step that it depends on, and for each
 * chunk the message k of a connection (to receive it), or the receipt of message k - slots (to send it). Messages of a
 * connection keep their order, and one threadblock alone sends, another alone receives. Nothing chooses. So the events
 * and their waits are one graph, the same in all interleavings: a run that goes on while anything can ends with exactly
 * the events that do not wait, directly or not, for a cycle. If it ends before the last step, every run hangs, and the
 * cycle is found by asking each threadblock what it waits for. Executors repeat the steps for further slices of each
 * chunk; runs of slices one after the other are such runs, too, so one slice suffices.
 *
 * Fewer slots only add waits, and so does a connection that carries a step of several chunks one by one (executors join
 * them where messages are small). This run moves single chunks: it is the strictest.
 *
 * Races: two accesses to the same chunk, one of them a write, by threadblocks of one GPU that no chain of steps,
 * dependencies and messages orders. Each threadblock has a vector clock, which messages and dependencies carry. That a
 * sender waits for a free slot orders things, too, but does not count: how many there are is up to the executor.
 * Without races all runs have the same result, so the values of this one are those of all.
 *
 * A value is the place in the message that it belongs to and the set of ranks that have contributed; a rank that is in
 * it twice stays wrong forever, as sums only grow. */
#include "base/limits.h"
#include "msccl/msccl.h"

#include <stdio.h>
#include <string.h>

enum { PLACE_NONE = -1, PLACE_MIXED = -2 };	/* nothing was written; sums of different places */
enum { NOT_TWICE = -1 };

typedef struct {
	int place, twice;	/* twice: a rank that contributed more than once */
	uint64_t ranks[];
} Value;

struct access {
	int block, clock, step;	/* of which threadblock, when; block -1: none */
	struct access *next;
};

struct cell {
	struct access wrote, *reads;	/* since then */
};

/* From one threadblock to another: a ring of chunks in flight, with the clocks of their senders. */
struct connection {
	int from, to;
	int64_t n_sent, n_received;
	char *value;
	int *clock;
};

struct block {
	const MscclBlock *block;
	int gpu, first;		/* first: number of the first threadblock of the GPU */
	int at, unit;		/* the current step, and its current chunk */
	struct connection *in, *out;
	int *clock;		/* n_blocks */
	int **posted;		/* of each step: the clock at its end, if others wait for it; else NULL */
	int next;		/* in the queue of those that may go on; QUEUED_NOT: it is not in it */
};

enum { QUEUED_NOT = -2, QUEUED_LAST = -1 };

struct run {
	Ctx *ctx;
	const char *label;
	const Msccl *algo;
	MscclFindings *list;
	int slots, words, n_blocks, first_queued, last_queued;
	bool in_place, raced;
	size_t value_size;
	struct block *block;
	int64_t *base;		/* of each GPU and buffer: its first cell */
	char *value;		/* of each cell */
	struct cell *cell;
	struct access *unused;
};

int
msccl_slots(const Msccl *algo)
{
	return strncmp(algo->protocol, "LL", 2) == 0 ? 8 : 2;
}

/* ---- memory: cells of buffers, which may be the same ---- */

static int
most(int a, int b)
{
	return a > b ? a : b;
}

/* In place: at which chunk of the output does the input begin; below 0: the output begins that far inside the input. */
static int
input_inside_output(const struct run *run, int gpu)
{
	int block = msccl_block_chunks(run->algo);
	switch (run->algo->coll) {
	case ALLGATHER:
	case GATHER:
		return gpu * block;
	case REDUCESCATTER:
	case SCATTER:
		return -gpu * block;
	default:
		return 0;
	}
}

/* A rank that is not the root has only the small buffer of a gather or scatter. */
static bool
buffers_are_one(const struct run *run, const MscclGpu *gpu)
{
	if (!run->in_place)
		return false;
	return (run->algo->coll != GATHER || gpu->chunks[MSCCL_OUTPUT] > 0)
	    && (run->algo->coll != SCATTER || gpu->chunks[MSCCL_INPUT] > 0);
}

static Status
lay_out(struct run *run, int64_t *n_cells)
{
	const Msccl *algo = run->algo;
	*n_cells = 0;
	TRY(TEMP(run->ctx, run->base, algo->n_gpus * N_MSCCL_BUFFERS));
	for (int g = 0; g < algo->n_gpus; g++) {
		const MscclGpu *gpu = &algo->gpu[g];
		int64_t *base = &run->base[g * N_MSCCL_BUFFERS];
		int input = most(gpu->chunks[MSCCL_INPUT], msccl_expected_chunks(algo, MSCCL_INPUT));
		int output = most(gpu->chunks[MSCCL_OUTPUT], msccl_expected_chunks(algo, MSCCL_OUTPUT));
		int inside = input_inside_output(run, g);
		bool one = buffers_are_one(run, gpu);
		base[MSCCL_INPUT] = *n_cells + (one && inside > 0 ? inside : 0);
		base[MSCCL_OUTPUT] = *n_cells + (one ? inside < 0 ? -inside : 0 : input);
		base[MSCCL_SCRATCH] = *n_cells + input + output + (one ? most(inside, -inside) : 0);
		*n_cells = base[MSCCL_SCRATCH] + gpu->chunks[MSCCL_SCRATCH];
		if (*n_cells > LIMIT_MSCCL_CELLS)
			return fail(run->ctx, LIMIT, "%s: more than %d chunks in all buffers", run->label,
			    LIMIT_MSCCL_CELLS);
	}
	return OK;
}

static Value *
value_of(const struct run *run, int64_t cell)
{
	return (Value *)(run->value + (size_t)cell * run->value_size);
}

/* What rank g's input holds at chunk c: a place of the whole message, unless each rank has its own. */
static int
input_place(const Msccl *algo, int g, int c)
{
	return algo->coll == ALLGATHER || algo->coll == GATHER ? g * msccl_block_chunks(algo) + c : c;
}

static Status
fill(struct run *run, int64_t n_cells)
{
	const Msccl *algo = run->algo;
	int n = msccl_expected_chunks(algo, MSCCL_INPUT);
	run->words = (algo->n_gpus + 63) / 64;
	run->value_size = sizeof(Value) + (size_t)run->words * sizeof(uint64_t);
	if (n_cells * (int64_t)run->value_size > LIMIT_MSCCL_BYTES)
		return fail(run->ctx, LIMIT, "%s: %lld chunks in all buffers, of %d GPUs", run->label,
		    (long long)n_cells, algo->n_gpus);
	TRY(TEMP(run->ctx, run->value, (size_t)n_cells * run->value_size));
	TRY(TEMP(run->ctx, run->cell, n_cells));
	for (int64_t c = 0; c < n_cells; c++) {
		value_of(run, c)->place = PLACE_NONE;
		value_of(run, c)->twice = NOT_TWICE;
		run->cell[c].wrote.block = -1;
	}
	for (int g = 0; g < algo->n_gpus; g++) {
		if ((algo->coll == SCATTER) && algo->gpu[g].chunks[MSCCL_INPUT] == 0)
			continue;
		for (int c = 0; c < n; c++) {
			Value *value = value_of(run, run->base[g * N_MSCCL_BUFFERS + MSCCL_INPUT] + c);
			value->place = input_place(algo, g, c);
			value->ranks[g / 64] |= UINT64_C(1) << g % 64;
		}
	}
	return OK;
}

/* to = to op from */
static void
reduce(const struct run *run, Value *to, const Value *from)
{
	if (to->place == PLACE_NONE || from->place == PLACE_NONE)
		to->place = PLACE_NONE;
	else if (to->place != from->place)
		to->place = PLACE_MIXED;
	if (from->twice != NOT_TWICE)
		to->twice = from->twice;
	for (int w = 0; w < run->words; w++) {
		uint64_t both = to->ranks[w] & from->ranks[w];
		if (both && to->twice == NOT_TWICE)
			to->twice = w * 64 + __builtin_ctzll(both);
		to->ranks[w] |= from->ranks[w];
	}
}

/* ---- races ---- */

static Status
report_race(struct run *run, const struct block *b, const struct access *other, int64_t cell, bool writes, bool wrote)
{
	const struct block *o = &run->block[other->block];
	const int64_t *base = &run->base[b->gpu * N_MSCCL_BUFFERS];
	const MscclStep *step = &b->block->step[b->at];
	int buffer = cell >= base[MSCCL_SCRATCH] ? MSCCL_SCRATCH : MSCCL_OUTPUT;
	if (buffer == MSCCL_OUTPUT && (cell < base[MSCCL_OUTPUT] || (base[MSCCL_INPUT] > base[MSCCL_OUTPUT]
	    && cell >= base[MSCCL_INPUT] && step->src == MSCCL_INPUT && !writes)))
		buffer = MSCCL_INPUT;
	if (run->raced)
		return OK;
	run->raced = true;
	return msccl_find(run->ctx, run->list, MSCCL_RULE_RACE, MSCCL_ALL, step->line,
	    "gpu %d, tb %d, step %d: %s chunk %lld of %s, which step %d of tb %d %s: want a dependency between them%s",
	    b->gpu, b->block->id, b->at, writes ? "writes" : "reads", (long long)(cell - base[buffer]),
	    msccl_buffers[buffer], other->step, o->block->id, wrote ? "writes" : "reads",
	    run->in_place ? " (in place)" : "");
}

static bool
is_before(const struct block *b, const struct access *access)
{
	return access->block < 0 || b->clock[access->block] >= access->clock;
}

static Status
note_read(struct run *run, struct block *b, int self, int64_t at)
{
	struct cell *cell = &run->cell[at];
	struct access *read = cell->reads;
	if (!is_before(b, &cell->wrote))
		TRY(report_race(run, b, &cell->wrote, at, false, true));
	while (read && read->block != self)
		read = read->next;
	if (!read) {
		read = run->unused;
		if (read)
			run->unused = read->next;
		else
			TRY(TEMP(run->ctx, read, 1));
		read->next = cell->reads;
		cell->reads = read;
	}
	read->block = self;
	read->clock = b->clock[self];
	read->step = b->at;
	return OK;
}

static Status
note_write(struct run *run, struct block *b, int self, int64_t at)
{
	struct cell *cell = &run->cell[at];
	if (!is_before(b, &cell->wrote))
		TRY(report_race(run, b, &cell->wrote, at, true, true));
	while (cell->reads) {
		struct access *read = cell->reads;
		if (!is_before(b, read))
			TRY(report_race(run, b, read, at, true, false));
		cell->reads = read->next;
		read->next = run->unused;
		run->unused = read;
	}
	cell->wrote = (struct access){ self, b->clock[self], b->at, NULL };
	return OK;
}

static void
join(const struct run *run, int *clock, const int *other)
{
	for (int t = 0; t < run->n_blocks; t++)
		clock[t] = most(clock[t], other[t]);
}

/* ---- steps ---- */

static void
enqueue(struct run *run, int t)
{
	if (run->block[t].next != QUEUED_NOT)
		return;
	run->block[t].next = QUEUED_LAST;
	if (run->first_queued < 0)
		run->first_queued = t;
	else
		run->block[run->last_queued].next = t;
	run->last_queued = t;
}

/* What the current step waits for: the end of a step of another threadblock. */
static const struct block *
dependency_of(const struct run *run, const struct block *b, int *step)
{
	const MscclStep *s = &b->block->step[b->at];
	*step = -1;
	if (s->dep_block < 0)
		return NULL;
	const struct block *on = &run->block[b->first + s->dep_block];
	*step = s->dep_step;
	return on;
}

static bool
is_full(const struct run *run, const struct connection *to)
{
	return to->n_sent - to->n_received >= run->slots;
}

static bool
is_empty(const struct connection *from)
{
	return from->n_sent == from->n_received;
}

static bool
can_go_on(const struct run *run, const struct block *b)
{
	const MscclOpKind *op = &msccl_ops[b->block->step[b->at].op];
	int step;
	const struct block *on = dependency_of(run, b, &step);
	return (!on || on->at > step) && !(op->receives && is_empty(b->in)) && !(op->sends && is_full(run, b->out));
}

static Value *
message(const struct run *run, const struct connection *c, int64_t k)
{
	return (Value *)(c->value + (size_t)(k % run->slots) * run->value_size);
}

/* What a step does with one chunk. */
static Status
move(struct run *run, struct block *b, int self, Value *moved)
{
	const MscclStep *s = &b->block->step[b->at];
	const MscclOpKind *op = &msccl_ops[s->op];
	const int64_t *base = &run->base[b->gpu * N_MSCCL_BUFFERS];
	int64_t src = base[s->src] + s->src_offset + b->unit, dst = base[s->dst] + s->dst_offset + b->unit;
	b->clock[self]++;
	if (op->receives) {
		join(run, b->clock, b->in->clock + (size_t)(b->in->n_received % run->slots) * (size_t)run->n_blocks);
		memcpy(moved, message(run, b->in, b->in->n_received++), run->value_size);
		enqueue(run, b->in->from);
	}
	/* A chunk that is copied to itself, in place, stays as it is. */
	if (s->op == MSCCL_COPY && src == dst)
		return OK;
	if (op->reads) {
		TRY(note_read(run, b, self, src));
		if (op->receives)
			reduce(run, moved, value_of(run, src));
		else
			memcpy(moved, value_of(run, src), run->value_size);
	}
	if (op->writes) {
		TRY(note_write(run, b, self, dst));
		if (s->op == MSCCL_REDUCE)
			reduce(run, value_of(run, dst), moved);
		else
			memcpy(value_of(run, dst), moved, run->value_size);
	}
	if (op->sends) {
		memcpy(b->out->clock + (size_t)(b->out->n_sent % run->slots) * (size_t)run->n_blocks, b->clock,
		    (size_t)run->n_blocks * sizeof(int));
		memcpy(message(run, b->out, b->out->n_sent++), moved, run->value_size);
		enqueue(run, b->out->to);
	}
	return OK;
}

static void
end_step(struct run *run, struct block *b)
{
	if (b->posted[b->at])
		memcpy(b->posted[b->at], b->clock, (size_t)run->n_blocks * sizeof(int));
	if (b->block->step[b->at].has_dep)
		for (int t = b->first; t < run->n_blocks && run->block[t].gpu == b->gpu; t++)
			enqueue(run, t);
	b->at++;
	b->unit = 0;
}

static Status
go_on(struct run *run, int self, Value *moved)
{
	struct block *b = &run->block[self];
	while (b->at < b->block->n_steps && can_go_on(run, b)) {
		const MscclStep *s = &b->block->step[b->at];
		int step;
		const struct block *on = dependency_of(run, b, &step);
		if (on && b->unit == 0)
			join(run, b->clock, on->posted[step]);
		if (s->op != MSCCL_NOP)
			TRY(move(run, b, self, moved));
		if (s->op == MSCCL_NOP || ++b->unit == s->count)
			end_step(run, b);
	}
	return OK;
}

/* ---- deadlock ---- */

/* The threadblock that this one waits for. */
static int
waits_for(const struct run *run, const struct block *b)
{
	const MscclOpKind *op = &msccl_ops[b->block->step[b->at].op];
	int step;
	const struct block *on = dependency_of(run, b, &step);
	if (on && on->at <= step)
		return (int)(on - run->block);
	return op->receives && is_empty(b->in) ? b->in->from : b->out->to;
}

/* "gpu 0, tb 1, step 2 waits for gpu 1, tb 0, step 3, which waits for ..." around the cycle, from its first threadblock
 * on. */
static Status
report_deadlock(struct run *run, int t)
{
	enum { SHOWN = 6 };
	char text[512];
	int n = 0, first, at, length = 1;
	for (int i = 0; i < run->n_blocks; i++)
		t = waits_for(run, &run->block[t]);
	for (first = t, at = waits_for(run, &run->block[t]); at != t; at = waits_for(run, &run->block[at]), length++)
		first = at < first ? at : first;
	at = first;
	for (int i = 0; i < length && i < SHOWN; i++) {
		at = waits_for(run, &run->block[at]);
		const struct block *b = &run->block[at];
		n += snprintf(text + n, sizeof text - (size_t)n, "%sgpu %d, tb %d, step %d", i ? ", that for " : "",
		    b->gpu, b->block->id, b->at);
	}
	const struct block *b = &run->block[first];
	return msccl_find(run->ctx, run->list, run->slots == 1 ? MSCCL_RULE_ONE_SLOT : MSCCL_RULE_DEADLOCK, MSCCL_ALL,
	    b->block->step[b->at].line, "gpu %d, tb %d, step %d waits for %s%s: in every order of execution, if "
	    "connections buffer %d chunk%s", b->gpu, b->block->id, b->at, text,
	    length > SHOWN ? ", and so on, back to it" : "", run->slots, run->slots == 1 ? "" : "s");
}

/* ---- results ---- */

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

static Status
check_result(struct run *run)
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

/* ---- all of it ---- */

static Status
connect(struct run *run, struct block *b, int self)
{
	const MscclGpu *peer = b->block->send >= 0 ? &run->algo->gpu[b->block->send] : NULL;
	for (int t = 0; t < run->n_blocks && peer; t++) {
		struct block *o = &run->block[t];
		struct connection *c;
		if (o->gpu != peer->id || o->block->recv != b->gpu || o->block->channel != b->block->channel)
			continue;
		TRY(TEMP(run->ctx, c, 1));
		TRY(TEMP(run->ctx, c->value, (size_t)run->slots * run->value_size));
		TRY(TEMP(run->ctx, c->clock, (size_t)run->slots * (size_t)run->n_blocks));
		c->from = self;
		c->to = t;
		b->out = o->in = c;
		return OK;
	}
	return OK;
}

/* Room for the clocks of steps that others wait for. */
static Status
make_posts(struct run *run)
{
	for (int t = 0; t < run->n_blocks; t++) {
		const struct block *b = &run->block[t];
		for (int i = 0; i < b->block->n_steps; i++) {
			const MscclStep *s = &b->block->step[i];
			struct block *on = s->dep_block < 0 ? NULL : &run->block[b->first + s->dep_block];
			if (on && !on->posted[s->dep_step])
				TRY(TEMP(run->ctx, on->posted[s->dep_step], run->n_blocks));
		}
	}
	return OK;
}

static Status
make_blocks(struct run *run)
{
	const Msccl *algo = run->algo;
	int64_t steps = 0, units = 0, t = 0;
	for (int g = 0; g < algo->n_gpus; g++)
		run->n_blocks += algo->gpu[g].n_blocks;
	TRY(TEMP(run->ctx, run->block, run->n_blocks));
	for (int g = 0; g < algo->n_gpus; g++) {
		int first = (int)t;
		for (int i = 0; i < algo->gpu[g].n_blocks; i++, t++) {
			const MscclBlock *b = &algo->gpu[g].block[i];
			run->block[t] = (struct block){ .block = b, .gpu = g, .first = first, .next = QUEUED_NOT };
			TRY(TEMP(run->ctx, run->block[t].posted, b->n_steps));
			steps += b->n_steps;
			for (int k = 0; k < b->n_steps; k++)
				units += b->step[k].count;
		}
	}
	if ((steps + 4 * run->n_blocks) * (run->n_blocks + 1) > LIMIT_MSCCL_CLOCKS)
		return fail(run->ctx, LIMIT, "%s: %lld steps in %d threadblocks: more than a search for races takes",
		    run->label, (long long)steps, run->n_blocks);
	if (units * (4 + run->n_blocks) > LIMIT_VERIFY_STEPS)
		return fail(run->ctx, LIMIT, "%s: steps move %lld chunks in %d threadblocks", run->label,
		    (long long)units, run->n_blocks);
	for (t = 0; t < run->n_blocks; t++)
		TRY(TEMP(run->ctx, run->block[t].clock, run->n_blocks));
	return OK;
}

static Status
run_all(struct run *run)
{
	int64_t n_cells;
	Value *moved;
	TRY(lay_out(run, &n_cells));
	TRY(fill(run, n_cells));
	TRY(make_blocks(run));
	moved = arena_array(&run->ctx->scratch, 1, run->value_size);
	if (!moved)
		return fail_memory(run->ctx);
	for (int t = 0; t < run->n_blocks; t++)
		TRY(connect(run, &run->block[t], t));
	TRY(make_posts(run));
	for (int t = 0; t < run->n_blocks; t++)
		enqueue(run, t);
	while (run->first_queued >= 0) {
		int t = run->first_queued;
		run->first_queued = run->block[t].next;
		run->block[t].next = QUEUED_NOT;
		TRY(go_on(run, t, moved));
	}
	for (int t = 0; t < run->n_blocks; t++)
		if (run->block[t].at < run->block[t].block->n_steps)
			return report_deadlock(run, t);
	return run->raced || run->slots == 1 ? OK : check_result(run);
}

Status
msccl_run(Ctx *ctx, const char *label, const Msccl *algo, int slots, bool in_place, MscclFindings *list)
{
	struct run run = { .ctx = ctx, .label = label, .algo = algo, .list = list, .slots = slots,
		.in_place = in_place, .first_queued = -1, .raced = slots == 1 };
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = run_all(&run);
	arena_release(&ctx->scratch, mark);
	return status;
}
