/* Chunks over a network, by the rate that calls have shown. */
#include "engine/engine.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

static struct rank_state self = { .n_ranks = 8 };
static struct engine e = { .self = &self, .size = 4 };

static int64_t
chunk_at(double rate, int depth, int rings, int64_t message, int64_t longest)
{
	RankProgram prog = { .depth = depth, .rings_max = rings };
	e.pace.agreed = 1 / rate;
	e.message_bytes = message;
	return pace_chunk(&e, &prog, longest);
}

static void
test_sizes(void)
{
	int64_t slow = chunk_at(16e6, 8, 6, 16 * MIB, 4 * MIB), fast = chunk_at(1e9, 8, 6, 16 * MIB, 4 * MIB);
	ok(llabs(slow - (int64_t)sqrt(4.0 * MIB * (6 * 30e-6 * 4e6 + 192) / 7)) <= 1, "of the square root");
	ok(fast > slow, "longer on a faster network");
	ok(chunk_at(16e6, 2, 6, 16 * MIB, 4 * MIB) > slow, "and over fewer hops");
	ok(chunk_at(1e12, 8, 6, 1024 * MIB, 512 * MIB) == 256 << 10, "up to a bound");
	chunk_at(16e6, 8, 6, 16 * MIB, 4 * MIB);
	ok(pace_slots(&e, 4 * MIB, 16384, 32) == SLOTS_LEAST + 1, "few slots where little is under way");
	chunk_at(1e9, 8, 6, 16 * MIB, 4 * MIB);
	ok(pace_slots(&e, 4 * MIB, 16384, 32) == 32, "many where much is, up to a bound");
}

/* Of segments of a call, each chunk is as long as its share: of some 1/24 of the longest, too. */
static void
test_shares(void)
{
	e.chunk = 4096;
	e.chunks = 256;
	ok(pace_share(&e, (int64_t)256 * 4096) == 4096, "the longest segment has chunks of the whole length");
	ok(pace_share(&e, (int64_t)256 * 512) == 512, "one of an eighth an eighth");
	ok(pace_share(&e, (int64_t)256 * 500) == 512, "of whole lines");
	ok(pace_share(&e, 10) == 16 && pace_share(&e, 0) > 0, "and at least one");
	ok(pace_share(&e, (int64_t)257 * 4096) == 4096, "and never more than a slot holds");
}

/* A call of so many bytes, of 1 ms. True: the ranks agree before it. */
static bool
calls(int64_t bytes)
{
	struct call call = { .coll = ALLREDUCE };
	struct blink_error err = { 0 };
	struct call *before = pace_before(&e, &call, &err);
	bool agree = before != NULL;
	if (before) {
		e.pace.agreed = e.pace.seen;
		call_free(before);
	}
	e.message_bytes = bytes;
	e.pace.began = now_ns() - 1000000;
	pace_end(&e, &call);
	return agree;
}

static void
test_agreement(void)
{
	static const struct net_kind net = { .name = "none" };
	int agreed = 0;
	e.pace = (struct pace){ 0 };
	ok(!calls(MIB) && !calls(MIB), "no network, no agreement");
	self.net = &net;
	e.pace = (struct pace){ 0 };
	ok(!calls(1000) && !calls(1000), "a short call tells nothing");
	ok(!calls(MIB) && calls(MIB) && calls(MIB), "the ranks agree after the first that does, and the second");
	ok(e.pace.agreed >= 1e-3 / MIB && e.pace.agreed < 1e-2 / MIB, "on what it took");
	for (int i = 3; i < 64; i++)
		agreed += calls(MIB);
	ok(agreed == 4, "then after the 4th, 8th, 16th and 32nd");
	self.chunk_bytes = 4096;
	e.pace = (struct pace){ 0 };
	ok(!calls(MIB) && !calls(MIB), "and not where the size was given");
}

int
main(void)
{
	test_sizes();
	test_shares();
	test_agreement();
	return end_tests();
}
