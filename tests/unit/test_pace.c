/* Chunks over a network, by the rate that calls have shown. */
#include "engine/engine.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

static struct rank_state self = { .n_ranks = 8 };
static RankTask task = { .n_from = 1, .n_to = 1 };
static struct plan_task of_task = { .task = &task, .n_chunks = 4 };
static struct lanes lanes = { .task = &of_task };
static struct engine e = { .self = &self, .size = 4, .lanes = &lanes };

static int64_t
chunk_at(double rate, int depth, int rings, int64_t message, int64_t longest)
{
	RankProgram prog = { .depth = depth, .rings_max = rings };
	lanes.pace.agreed = 1 / rate;
	e.message_bytes = message;
	return pace_chunk(&e, &prog, longest);
}

/* Rounding to powers of four changes chunks by a factor of two at most. */
static bool
within(int64_t chunk, double exact)
{
	return (double)chunk >= exact / 2 && (double)chunk <= exact * 2;
}

static void
test_sizes(void)
{
	int64_t slow = chunk_at(16e6, 8, 6, 16 * MIB, 4 * MIB), fast = chunk_at(1e9, 8, 6, 16 * MIB, 4 * MIB);
	double cost = 6 * 50e-6 * 1e9 / 4, header = 192;
	ok(within(fast, sqrt(4.0 * MIB * (cost + header) / 7)), "about the square root");
	cost = 6 * 50e-6 * 16e6 / 4;
	ok(within(slow, sqrt(64 * cost * cost + 4.0 * MIB * header / 7)), "where the network is slow, of headers");
	ok(fast == 4 * MIB / 16 && slow == 4 * MIB / 256, "a power of four of them");
	ok(chunk_at(7e6, 3, 4, 32 * MIB, 8 * MIB) == 8 * MIB / 256
	    && chunk_at(6e6, 3, 12, 16 * MIB, 2 * MIB) == 2 * MIB / 256, "so the same in groups that share links");
	ok(chunk_at(16e6, 2, 6, 16 * MIB, 9001) == (int64_t)sqrt(9001.0 * header), "but not where chunks are few");
	ok(fast > slow, "longer on a faster network");
	ok(chunk_at(16e6, 2, 6, 16 * MIB, 2 * MIB) > chunk_at(16e6, 8, 6, 16 * MIB, 2 * MIB), "and over fewer hops");
	ok(chunk_at(100e6, 8, 6, MIB, MIB / 4) >= 32 << 10, "not short where a processor is what takes long");
	lanes.pace.agreed = 0;
	ok(pace_chunk(&e, &(RankProgram){ .depth = 8 }, 1000) == 16 << 10, "and not short before the rate is known");
	ok(chunk_at(1e12, 8, 6, 1024 * MIB, 512 * MIB) == 256 << 10, "up to a bound");
	chunk_at(16e6, 8, 6, 16 * MIB, 4 * MIB);
	ok(pace_slots(&e, 4 * MIB, 16384, 32) == 3, "few slots where little is under way");
	chunk_at(1e9, 8, 6, 16 * MIB, 4 * MIB);
	ok(pace_slots(&e, 4 * MIB, 16384, 32) == 32, "many where much is, up to a bound");
}

/* Of segments of a call, each chunk is as long as its share: of some 1/24 of the longest, too. */
static void
test_shares(void)
{
	e.chunk = 4096;
	e.chunks = 256;
	ok(pace_share(&e, (int64_t)256 * 4096, false) == 4096, "the longest segment has chunks of the whole length");
	ok(pace_share(&e, (int64_t)256 * 512, false) == 512, "one of an eighth an eighth");
	ok(pace_share(&e, (int64_t)256 * 500, false) == 512, "of whole lines");
	ok(pace_share(&e, 10, false) == 16 && pace_share(&e, 0, false) > 0, "and at least one");
	ok(pace_share(&e, (int64_t)257 * 4096, false) == 4096, "and never more than a slot holds");
	ok(pace_share(&e, 10, true) == 256, "of uneven blocks 1 KiB or more");
}

/* A call that takes 1 ms. bytes: of its message. True: the ranks agree before it. */
static bool
calls(int64_t bytes)
{
	RankProgram prog = { .n_tasks = 1 };
	struct plan plan = { .prog = &prog };
	struct call call = { .coll = ALLREDUCE, .plan = &plan };
	struct blink_error err = { 0 };
	struct call *before = pace_before(&e, &call, &err);
	bool agree = before != NULL;
	if (before) {
		lanes.pace.agreed = lanes.pace.seen;
		call_free(before);
	}
	e.message_bytes = bytes;
	e.began = now_ns() - 1000000;
	pace_end(&e, &call);
	return agree;
}

static void
test_agreement(void)
{
	static const struct net_kind net = { .name = "none" };
	int agreed = 0;
	lanes.pace = (struct pace){ 0 };
	ok(!calls(MIB) && !calls(MIB), "no network, no agreement");
	self.net = &net;
	lanes.pace = (struct pace){ 0 };
	ok(!calls(1000) && !calls(1000), "a short call tells nothing");
	ok(!calls(MIB) && calls(MIB) && calls(MIB), "the ranks agree after the first that does, and the second");
	ok(lanes.pace.agreed >= 1e-3 / MIB && lanes.pace.agreed < 1e-2 / MIB, "on what it took");
	for (int i = 3; i < 64; i++)
		agreed += calls(MIB);
	ok(agreed == 4, "then after the 4th, 8th, 16th and 32nd");
	task.n_from = 0;
	lanes.pace = (struct pace){ 0 };
	ok(!calls(MIB) && calls(MIB) && isinf(lanes.pace.agreed), "a rank that sends copies and waits for nobody tells "
	    "nothing");
	ok(pace_slots(&e, MIB, 16384, 32) == 32, "so that the pace is not known");
	of_task.direct = "";
	ok(calls(MIB) && lanes.pace.seen < 1, "but it tells where others take from its memory");
	self.chunk_bytes = 4096;
	lanes.pace = (struct pace){ 0 };
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
