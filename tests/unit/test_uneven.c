/* An alltoall of uneven blocks: how ranks tell each other their counts, and which blocks come with these. The ranks are
 * engines of this process; what one tells is copied to the others here. */
#include "comm/uneven.h"
#include "engine/engine.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { N = 3, MOST = 40000 };

static const struct net_kind net = { .name = "none" };
static struct rank_state self[N];
static struct engine e[N];
static struct call *call[N], *before[N];
static size_t counts[N][N], displs[N];
static int32_t sent[N][N * MOST], received[N][N * MOST];

static void
hear(void)
{
	for (int r = 0; r < N; r++) {
		size_t bytes = (size_t)before[r]->count;
		for (int k = 0; k < N; k++)
			memcpy((char *)before[r]->recv + (size_t)k * bytes,
			    (const char *)before[k]->send + (before[k]->coll == ALLTOALL ? (size_t)r * bytes : 0),
			    bytes);
	}
}

/* What each rank does before its plan is chosen. False: it is refused. */
static bool
begin(struct blink_error *err)
{
	bool good = true;
	for (int r = 0; r < N; r++) {
		struct reduction reduction;
		size_t expected[N];
		for (int k = 0; k < N; k++)
			expected[k] = counts[k][r];
		reduction_make(blinkInt32, blinkSum, N, &reduction);
		struct side side[2] = { { "send", sent[r], counts[r], displs },
			{ "recv", received[r], expected, displs } };
		memset(received[r], 0, sizeof received[r]);
		call[r] = uneven_call(&self[r], side, &reduction, err);
		before[r] = call[r] ? uneven_exchange(&e[r], call[r], err) : NULL;
		good = good && before[r];
	}
	if (good)
		hear();
	for (int r = 0; r < N && good; r++)
		good = uneven_counts(&e[r], call[r], err) == blinkSuccess;
	return good;
}

static void
end(void)
{
	for (int r = 0; r < N; r++) {
		call_free(call[r]);
		call_free(before[r]);
	}
}

/* Blocks that have come whole, and those that all agree are left; -1: something is neither. */
static int
come(int *left)
{
	int n = 0;
	*left = 0;
	for (int from = 0; from < N; from++) {
		for (int to = 0; to < N; to++) {
			size_t bytes = counts[from][to] * sizeof(int32_t);
			bool here = memcmp(received[to] + from * MOST, sent[from] + to * MOST, bytes) == 0;
			int64_t count = call[0]->uneven->count[from * N + to];
			for (int r = 1; r < N; r++)
				if (call[r]->uneven->count[from * N + to] != count)
					return -1;
			if (here ? count != 0 : count != (int64_t)counts[from][to])
				return -1;
			n += here;
			*left += count != 0;
		}
	}
	return n;
}

static bool
comes(int along, int left, Collective coll)
{
	struct blink_error err = { 0 };
	int found_left = -1;
	bool good = begin(&err) && come(&found_left) == along && found_left == left && before[0]->coll == coll;
	good = good && (left > 0) == (call[0]->count > 0) && (left > 0) == (call_message_bytes(call[1], N) > 0);
	end();
	return good;
}

static void
all_send(size_t n)
{
	for (int i = 0; i < N * N; i++)
		counts[i / N][i % N] = n + (size_t)i;
}

static void
test_along(bool over_network)
{
	for (int r = 0; r < N; r++) {
		self[r] = (struct rank_state){ .n_ranks = N, .rank = r, .net = over_network ? &net : NULL };
		displs[r] = (size_t)r * MOST;
		free(e[r].exchange_memory);
		e[r] = (struct engine){ .self = &self[r] };
		for (int i = 0; i < N * MOST; i++)
			sent[r][i] = r * N * MOST + i + 1;
	}
	all_send(100);
	ok(comes(0, N * N, ALLGATHER), "first the counts alone");
	ok(comes(N * N, 0, ALLGATHER), "then short blocks with them, and nothing is left");
	counts[1][2] = 300;
	ok(comes(2 * N, N, ALLGATHER), "but for those of a rank that has more than it had");
	ok(comes(N * N, 0, ALLGATHER), "the next time they have room");
	memset(counts, 0, sizeof counts);
	ok(comes(N * N, 0, ALLGATHER), "blocks of no elements");
	all_send(15000);
	ok(comes(0, N * N, ALLGATHER), "long ones do not go to all");
	ok(over_network ? comes(N * N, 0, ALLTOALL) : comes(0, N * N, ALLGATHER), "to each its own over a network");
	counts[2][0] = 30000;
	ok(over_network ? comes(N * N - 1, 1, ALLTOALL) : comes(0, N * N, ALLGATHER), "but for a longer one");
	ok(comes(0, N * N, ALLGATHER), "not where one is much longer than others");
	all_send(MOST - N * N);
	ok(comes(0, N * N, ALLGATHER) && comes(0, N * N, ALLGATHER), "nor where all are long");
}

static void
test_forwards(void)
{
	struct blink_error err = { 0 };
	all_send(50);
	ok(begin(&err) && !uneven_all_along(&e[0], call[0]), "others wait for what a rank has not told");
	end();
	ok(begin(&err) && uneven_all_along(&e[0], call[0]), "and for nothing more where all goes along");
	end();
}

int
main(void)
{
	test_along(false);
	test_along(true);
	test_forwards();
	for (int r = 0; r < N; r++)
		free(e[r].exchange_memory);
	return end_tests();
}
