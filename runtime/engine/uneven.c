/* Blocks of an alltoall that differ in length: before chunks, rings and plans are chosen, which are the same on all
 * ranks, each has to know what all send to all. So a call of the library's own comes first, in which each tells its row
 * of the counts.
 *
 * Where blocks are short that call takes as long as all the rest. They go along with it then: as much room for them as
 * those of the call before would have taken, since all ranks know these. What has no room goes after it, as all does in
 * the first call. Few bytes go to all ranks, by an allgather, which has the fewest messages; more to each its own, by
 * an alltoall, where they are of about one length and go over a network, since on one server the counts cost less than
 * a copy of the blocks. */
#include "engine/engine.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

enum {
	ALL_MOST = 64 << 10,		/* bytes of all ranks together that go to all */
	EACH_MOST = 64 << 10		/* of a block that goes to each */
};

/* Elements of a rank for others. */
static int64_t
sent(const struct uneven *u, int n, int rank)
{
	int64_t sum = 0;
	for (int r = 0; r < n; r++)
		sum += r != rank ? u->count[rank * n + r] : 0;
	return sum;
}

/* Do blocks go along with the counts: this one, of a rank that sends `sum`? */
static bool
is_along(const struct call *call, int64_t sum, int64_t block)
{
	const struct told *told = &call->uneven->told;
	return (told->to_each ? block : sum) <= told->room / (int64_t)call->reduction.size;
}

bool
uneven_is_told(const struct engine *e, const struct call *call)
{
	const struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	bool told = true;
	for (int r = 0; r < n; r++)
		told = told && is_along(call, sent(u, n, me), u->count[me * n + r]);
	return told;
}

/* ---- before ---- */

static void
tell(const struct engine *e, const struct call *call, int64_t bytes)
{
	const struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	const int64_t *row = u->count + me * n;
	int64_t sum = sent(u, n, me);
	size_t counts = (size_t)n * sizeof *row, size = call->reduction.size;
	char *to = u->tells;
	for (int r = 0; r < (u->told.to_each ? n : 1); r++)
		memcpy(u->tells + r * bytes, row, counts);
	for (int r = 0; r < n; r++) {
		if (u->told.to_each)
			to = u->tells + r * bytes;
		if (r == me || row[r] == 0 || !is_along(call, sum, row[r]))
			continue;
		memcpy(to + counts, (const char *)call->send + (size_t)u->send_at[r] * size, (size_t)row[r] * size);
		to += (size_t)row[r] * size;
	}
}

/* Memory of what is told and heard, kept from call to call. */
static bool
take_memory(struct engine *e, struct uneven *u, size_t told, size_t heard)
{
	if (told + heard > e->told_bytes) {
		free(e->told_memory);
		e->told_memory = calloc(told + heard, 1);
		e->told_bytes = e->told_memory ? told + heard : 0;
	}
	u->tells = e->told_memory;
	u->hears = u->tells + told;
	return u->tells != NULL;
}

struct call *
uneven_tells(struct engine *e, struct call *call, struct blink_error *err)
{
	struct uneven *u = call->uneven;
	int64_t n = e->self->n_ranks, bytes = n * (int64_t)sizeof u->count[0] + e->told.room;
	size_t blocks = e->told.to_each ? (size_t)n : 1;
	struct call *before = calloc(1, sizeof *before);
	u->told = e->told;
	if (!before || !take_memory(e, u, blocks * (size_t)bytes, (size_t)(n * bytes))) {
		free(before);
		set_error_memory(err);
		return NULL;
	}
	tell(e, call, bytes);
	*before = (struct call){ .coll = u->told.to_each ? ALLTOALL : ALLGATHER, .root = -1, .send = u->tells,
	    .recv = u->hears, .count = bytes, .internal = true, .tells_counts = true };
	reduction_make(blinkInt8, blinkSum, (int)n, &before->reduction);
	u->known = true;
	return before;
}

/* ---- after ---- */

/* Does what all have said fit what this rank expects? */
static int
check_counts(const struct engine *e, const struct call *call, struct blink_error *err)
{
	const struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	int64_t many = INT64_MAX / 4 / n / (int64_t)call->reduction.size;
	for (int i = 0; i < n * n; i++)
		if (u->count[i] < 0 || u->count[i] > many)
			return set_error(err, blinkMismatch, "rank %d sends %lld elements to rank %d: want at most "
			    "%lld", i / n, (long long)u->count[i], i % n, (long long)many);
	for (int r = 0; r < n; r++)
		if (u->count[r * n + me] != u->expected[r])
			return set_error(err, blinkMismatch, "rank %d sends %lld elements to rank %d, which expects "
			    "%lld", r, (long long)u->count[r * n + me], me, (long long)u->expected[r]);
	return err->code;
}

/* What the next call has room for: what this one would have had to. */
static void
choose_room(struct engine *e, const struct call *call)
{
	const struct uneven *u = call->uneven;
	int64_t n = e->self->n_ranks, size = (int64_t)call->reduction.size, most = 0, longest = 0, all = 0;
	for (int r = 0; r < n; r++) {
		int64_t sum = sent(u, (int)n, r);
		most = sum > most ? sum : most;
		all += sum;
		for (int k = 0; k < n; k++)
			longest = k != r && u->count[r * n + k] > longest ? u->count[r * n + k] : longest;
	}
	e->told = (struct told){ .to_each = false };
	if (most <= ALL_MOST / n / size)
		e->told.room = most * size + most * size / 4;
	else if (e->self->net && longest <= EACH_MOST / size && longest * n * (n - 1) <= all + all / 2)
		e->told = (struct told){ true, longest * size + longest * size / 8 };
	e->told.room = (e->told.room + LINE - 1) / LINE * LINE;
}

/* From one rank: its block, where it has come. */
static void
take(const struct engine *e, const struct call *call, int from, int64_t bytes)
{
	const struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	const int64_t *row = u->count + from * n;
	size_t size = call->reduction.size;
	const char *at = u->hears + from * bytes + n * (int64_t)sizeof *row;
	for (int r = 0; r < me && !u->told.to_each; r++)
		at += r != from ? (size_t)row[r] * size : 0;
	if (from == me)
		at = (const char *)call->send + (size_t)u->send_at[me] * size;
	char *to = (char *)call->recv + (size_t)u->recv_at[from] * size;
	if (row[me] > 0 && to != at)
		memcpy(to, at, (size_t)row[me] * size);
}

/* Blocks that have come are counted no more. */
static void
take_along(const struct engine *e, const struct call *call, int64_t bytes)
{
	struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	for (int r = 0; r < n; r++) {
		int64_t sum = sent(u, n, r), *row = u->count + r * n;
		if (is_along(call, sum, row[me])) {
			take(e, call, r, bytes);
			u->expected[r] = 0;
		}
		for (int k = 0; k < n; k++)
			row[k] = is_along(call, sum, row[k]) ? 0 : row[k];
	}
}

/* What is left. */
static void
add_up(const struct engine *e, struct call *call)
{
	struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	for (int r = 0; r < n; r++) {
		int64_t sum = 0, received = 0;
		for (int k = 0; k < n; k++) {
			int64_t count = u->count[r * n + k];
			if (k == me)
				u->before[r] = sum;
			sum += count;
			received += u->count[k * n + r];
			call->count = count > call->count ? count : call->count;
		}
		u->most_sent = sum > u->most_sent ? sum : u->most_sent;
		u->most = received > u->most ? received : u->most;
	}
	u->most = u->most_sent > u->most ? u->most_sent : u->most;
}

int
uneven_counts(struct engine *e, struct call *call, struct blink_error *err)
{
	struct uneven *u = call->uneven;
	int n = e->self->n_ranks;
	int64_t counts = n * (int64_t)sizeof u->count[0], bytes = counts + u->told.room;
	for (int r = 0; r < n; r++)
		memcpy(u->count + r * n, u->hears + r * bytes, (size_t)counts);
	if (check_counts(e, call, err) != blinkSuccess)
		return err->code;
	choose_room(e, call);
	take_along(e, call, bytes);
	add_up(e, call);
	return blinkSuccess;
}
