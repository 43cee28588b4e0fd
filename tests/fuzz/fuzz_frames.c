/* What a broken or malicious hub, rank or peer says after its handshake: frames in any order, with any numbers, in any
 * pieces. Nobody reads or writes outside its memory, waits for ever, leaks memory or descriptors, or takes memory for a
 * length before it is checked; errors are a code and a line. Who is tested runs as it is, with its threads, in a world
 * of its own (world.h). */
#define COST_FLOOR_BYTES (24 << 20)
#include "driver.h"
#include "world.h"

#include "blink.h"
#include "bootstrap/hub.h"
#include "transport/shm.h"
#include "transport/tcp_inside.h"
#include "frames_program.h"
#include "frames_hub.h"
#include "frames_rank.h"
#include "frames_comm.h"

/* Steps and numbers as bytes: zeros are at the end of what follows. */
const char *const dictionary[] = { "\1\1", "\4\46\40", "\5\43\1", "\5\43\32", "\13\1", "\13\11", "\15", "\20",
	"\21", "\16\1\1\1\1\43", "\12\5", NULL };

/* ---- mutations: of steps, not of bytes ---- */

enum { ROLES = 4, HEAD = 2, STEP_MOST = 12 };

/* A step of the role, with numbers; how long it is. */
static size_t
draw_step(uint8_t *out, unsigned role, uint64_t *drawn)
{
	static const uint8_t usual_start[] = { 0, 0, 0 };
	size_t n = 1 + (size_t)(*drawn >> 40) % (STEP_MOST - 1);
	for (size_t i = 0; i < n; i++) {
		*drawn = *drawn * UINT64_C(6364136223846793005) + 1442695040888963407u;
		uint8_t any = (uint8_t)(*drawn >> 56), odd = any % SMALL_LEAST, small = SMALL_LEAST + any % 8;
		out[i] = i == 0 ? any % (role < 2 ? 16 : 24) : *drawn >> 33 & 1 ? small : *drawn >> 34 & 1 ? odd : any;
	}
	if (role && *drawn >> 35 & 1)
		memcpy(out, usual_start, n < 3 ? n : 3);
	return n;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
	uint8_t step[STEP_MOST];
	uint64_t drawn = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	if (size < HEAD || size + HEAD + 8 * STEP_MOST > most)
		return 0;
	for (unsigned i = 0; i < 1 + seed / 16 % 4; i++) {
		size_t n = draw_step(step, data[0] % ROLES, &drawn);
		size_t at = HEAD + (size_t)(drawn >> 20) % (size - HEAD + 1);
		size_t gone = (drawn >> 50) % 3 == 0 ? 0 : n < size - at ? n : size - at;
		if ((drawn >> 45) % 8 == 0)
			n = 0;
		if ((drawn >> 55) % 32 == 0)
			data[1] = (uint8_t)drawn;
		memmove(data + at + n, data + at + gone, size - at - gone);
		memcpy(data + at, step, n);
		size += n - gone;
	}
	return size;
}

/* ---- the target ---- */

/* The descriptors from the first free one on. */
enum { WATCHED = 64 };

static void
see_files(bool *open, int from)
{
	struct pollfd p[WATCHED];
	for (int i = 0; i < WATCHED; i++)
		p[i] = (struct pollfd){ .fd = from + i };
	poll(p, WATCHED, 0);
	for (int i = 0; i < WATCHED; i++)
		open[i] = !(p[i].revents & POLLNVAL);
}

static void
run_program(const uint8_t *data, size_t size)
{
	program.at = data;
	program.end = data + size;
	unsigned who = next_byte(), how = next_byte();
	program.n = 2 + (int)(how & 1);
	program.rank = (int)(how >> 1 & 1);
	program.said_all = false;
	world_begin();
	switch (who % ROLES) {
	case 0:
		test_hub();
		break;
	case 1:
		test_rank(how);
		break;
	default:
		test_comm();
		break;
	}
}

static void
test_input(const uint8_t *data, size_t size)
{
	bool before[WATCHED], after[WATCHED];
	static bool begun;
	if (!begun)			/* what is made once for a process */
		run_program((const uint8_t *)"\1\0", 2);
	begun = true;
	int from = dup(0);
	close(from);
	see_files(before, from);
	long live = atomic_load(&cost_live);
	run_program(data, size);
	/* Without a sanitizer memory of aligned_alloc is not counted (cost.h). */
	REQUIRE(!__sanitizer_install_malloc_and_free_hooks || atomic_load(&cost_live) == live,
	    "%ld bytes of memory are left", atomic_load(&cost_live) - live);
	see_files(after, from);
	for (int i = 0; i < WATCHED; i++)
		REQUIRE(before[i] == after[i], "descriptor %d is left, or gone", from + i);
}
