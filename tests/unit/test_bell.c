/* A bell wakes who sleeps for a flag when that flag changes, and not when another does. A wrong number costs a rank a
 * tenth of a second, when it wakes by itself, and no more: results are right, so that no other test sees it. */
#include "engine/engine.h"
#include "tap.h"

#include <stdio.h>

enum { SLEEPER = 0, RINGER = 1, LANE = 5 };

static bool
wakes(struct bell *bell, uint32_t state, uint32_t flag)
{
	bell_lie_down(bell, state);
	bell_ring(bell, flag);
	bool woken = atomic_load(&bell->state) == BELL_AWAKE;
	bell_wake_up(bell);
	return woken;
}

/* Who lies down for one flag, and for any. */
static void
test_numbers(void)
{
	struct bell bell = { 0 };
	const uint32_t some[] = { 0, 1, 2, FLAG_DONE, flag_number(LIMIT_COMM_RANKS - 1, FLAG_CHANNEL_DONE) };
	bool own = true, other = false, any = true, always = true;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		own = own && wakes(&bell, BELL_FLAG + some[i], some[i]);
		any = any && wakes(&bell, BELL_ANY, some[i]);
		other = other || wakes(&bell, BELL_FLAG + some[i], some[i] + 1) ||
		    wakes(&bell, BELL_FLAG + some[i] + 1, some[i]);
		bell_lie_down(&bell, BELL_FLAG + some[i]);
		bell_ring_always(&bell);
		always = always && atomic_load(&bell.state) == BELL_AWAKE;
	}
	ok(own, "woken by its flag");
	ok(!other, "not woken by another");
	ok(any, "by any, if it lies down for any");
	ok(always, "by a failure, whatever it lies down for");
}

static void *
sleep_long(void *bell)
{
	bell_sleep(bell, BELL_FLAG + 7, INT64_C(60000000000));
	return NULL;
}

static void
test_sleep(void)
{
	struct bell bell = { 0 };
	pthread_t thread;
	bell_lie_down(&bell, BELL_FLAG + 7);
	if (pthread_create(&thread, NULL, sleep_long, &bell) != 0)
		return ok(false, "a thread");
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	int64_t began = now_ns();
	bell_ring(&bell, 6);
	bell_ring(&bell, 7);
	pthread_join(thread, NULL);
	ok(now_ns() - began < INT64_C(30000000000), "who sleeps in the kernel is woken by its flag");
}

/* What a rank sets for another rings for the number by which that one waits: of a chunk, of a slot, and of what a
 * later call waits for. */
static void
test_engines(void)
{
	struct bell bell = { 0 };
	struct peer peers[2] = { { .bell = &bell }, { 0 } };
	struct rank_state ringers = { .rank = RINGER, .n_ranks = 2 };
	struct engine ringer = { .self = &ringers, .peer = peers };
	struct pending pending = { .peer = RINGER, .lane = LANE };
	struct lanes lanes = { .n_to = 1 };
	struct engine sleeper = { .pending = { &pending }, .n_pending = { 1 }, .collective = CALLS, .small = true,
		.lanes = &lanes };
	struct flag ready = { 0 };
	_Atomic uint64_t done = 0;
	const struct plan_lane to = { .peer = SLEEPER, .lane = LANE, .ready = &ready };
	const struct plan_lane from = { .peer = SLEEPER, .lane = LANE, .done = &done };
	int peer = -1;
	uint32_t flag = 0;
	ringer.collective = 2;
	bell_lie_down(&bell, BELL_FLAG + flag_number(RINGER, LANE));
	release(&ringer, &from, 1);
	ok(done != 0 && atomic_load(&bell.state) != BELL_AWAKE, "a slot that is free does not wake who wants a chunk");
	publish(&ringer, &to, 1, 0, NULL, 0);
	ok(ready.value != 0 && atomic_load(&bell.state) == BELL_AWAKE, "a chunk does");
	ok(collective_awaits(&sleeper, &peer, &flag) && peer == RINGER, "a call waits for readers of one before it");
	bell_lie_down(&bell, BELL_FLAG + flag);
	publish(&ringer, &to, 2, 0, NULL, 0);
	ok(atomic_load(&bell.state) != BELL_AWAKE, "a chunk does not wake it");
	release(&ringer, &from, 2);
	ok(atomic_load(&bell.state) == BELL_AWAKE, "a slot that is free does");
}

int
main(void)
{
	test_numbers();
	test_sleep();
	test_engines();
	return end_tests();
}
