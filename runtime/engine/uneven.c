/* Blocks of an alltoall that differ in length: before chunks, rings and plans are chosen, which are the same on all
 * ranks, each has to know what all send to all. So a call of the library's own comes first, in which ranks exchange
 * their rows of the counts.
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
	const struct count_exchange *exchange = &call->uneven->exchange;
	return (exchange->to_each ? block : sum) <= exchange->room / (int64_t)call->reduction.size;
}

bool
uneven_all_along(const struct engine *e, const struct call *call)
{
	const struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	bool all = true;
	for (int r = 0; r < n; r++)
		all = all && is_along(call, sent(u, n, me), u->count[me * n + r]);
	return all;
}

/* ---- before ---- */

/* What this rank sends in the exchange: its row of the counts, and blocks that go along. */
static void
fill_out(const struct engine *e, const struct call *call, int64_t bytes)
{
	const struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	const int64_t *row = u->count + me * n;
	int64_t sum = sent(u, n, me);
	size_t counts = (size_t)n * sizeof *row, size = call->reduction.size;
	char *to = u->counts_out;
	for (int r = 0; r < (u->exchange.to_each ? n : 1); r++)
		memcpy(u->counts_out + r * bytes, row, counts);
	for (int r = 0; r < n; r++) {
		if (u->exchange.to_each)
			to = u->counts_out + r * bytes;
		if (r == me || row[r] == 0 || !is_along(call, sum, row[r]))
			continue;
		memcpy(to + counts, (const char *)call->send + (size_t)u->send_at[r] * size, (size_t)row[r] * size);
		to += (size_t)row[r] * size;
	}
}

/* Buffers of the exchange of counts, which stay from call to call. */
static bool
take_memory(struct engine *e, struct uneven *u, size_t out, size_t in)
{
	if (out + in > e->exchange_bytes) {
		free(e->exchange_memory);
		e->exchange_memory = calloc(out + in, 1);
		e->exchange_bytes = e->exchange_memory ? out + in : 0;
	}
	u->counts_out = e->exchange_memory;
	u->counts_in = u->counts_out + out;
	return u->counts_out != NULL;
}

struct call *
uneven_exchange(struct engine *e, struct call *call, struct blink_error *err)
{
	struct uneven *u = call->uneven;
	int64_t n = e->self->n_ranks, bytes = n * (int64_t)sizeof u->count[0] + e->exchange.room;
	size_t blocks = e->exchange.to_each ? (size_t)n : 1;
	struct call *before = calloc(1, sizeof *before);
	u->exchange = e->exchange;
	if (!before || !take_memory(e, u, blocks * (size_t)bytes, (size_t)(n * bytes))) {
		free(before);
		set_error_memory(err);
		return NULL;
	}
	fill_out(e, call, bytes);
	*before = (struct call){ .coll = u->exchange.to_each ? ALLTOALL : ALLGATHER, .root = -1, .send = u->counts_out,
	    .recv = u->counts_in, .count = bytes, .internal = true, .exchanges_counts = true };
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
	e->exchange = (struct count_exchange){ .to_each = false };
	if (most <= ALL_MOST / n / size)
		e->exchange.room = most * size + most * size / 4;
	else if (e->self->net && longest <= EACH_MOST / size && longest * n * (n - 1) <= all + all / 2)
		e->exchange = (struct count_exchange){ true, longest * size + longest * size / 8 };
	e->exchange.room = (e->exchange.room + LINE - 1) / LINE * LINE;
}

/* From one rank: its block, where it has come. */
static void
take(const struct engine *e, const struct call *call, int from, int64_t bytes)
{
	const struct uneven *u = call->uneven;
	int n = e->self->n_ranks, me = e->self->rank;
	const int64_t *row = u->count + from * n;
	size_t size = call->reduction.size;
	const char *at = u->counts_in + from * bytes + n * (int64_t)sizeof *row;
	for (int r = 0; r < me && !u->exchange.to_each; r++)
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
	int64_t counts = n * (int64_t)sizeof u->count[0], bytes = counts + u->exchange.room;
	for (int r = 0; r < n; r++)
		memcpy(u->count + r * n, u->counts_in + r * bytes, (size_t)counts);
	if (check_counts(e, call, err) != blinkSuccess)
		return err->code;
	choose_room(e, call);
	take_along(e, call, bytes);
	add_up(e, call);
	return blinkSuccess;
}
