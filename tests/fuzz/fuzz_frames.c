/* What a broken or malicious hub, rank or peer says after its handshake: frames in any order, with any numbers, in any
 * pieces. Nobody reads or writes outside its memory, waits for ever, leaks memory or descriptors, or takes memory for a
 * length before it is checked; errors are a code and a line. Who is tested runs as it is, with its threads, in a world
 * of its own (world.h). */
#define COST_FLOOR_BYTES (24 << 20)
#include "driver.h"
#include "world.h"

#include "bootstrap/hub.h"
#include "frames_program.h"
#include "frames_hub.h"
#include "frames_rank.h"

const char *const dictionary[] = { "\x20", NULL };

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
	world_begin();
	switch (who % 2) {
	case 0:
		test_hub();
		break;
	default:
		test_rank(how);
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
	REQUIRE(atomic_load(&cost_live) == live, "%ld bytes of memory are left", atomic_load(&cost_live) - live);
	see_files(after, from);
	REQUIRE(memcmp(before, after, sizeof before) == 0, "a descriptor is left");
}
