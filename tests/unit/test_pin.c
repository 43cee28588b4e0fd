/* Pinning: each rank of a server gets its share of the cores, on machines that libhwloc makes up (HWLOC_SYNTHETIC), to
 * which it binds nobody, and on this one. */
#include "engine/pin.h"
#include "tap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static void
shares(int rank, int n_local, bool bound, const char *want)
{
	char text[96], name[160];
	bool done = pin_thread(rank, n_local, text, sizeof text);
	snprintf(name, sizeof name, "rank %d of %d: %s", rank, n_local, want);
	check(done == bound && strcmp(text, want) == 0, name, "%d: %s", done, text);
}

static void
test_shares(void)
{
	setenv("HWLOC_SYNTHETIC", "package:2 core:4 pu:2", 1);
	setenv("HWLOC_THISSYSTEM", "0", 1);
	shares(0, 2, true, "cores 0 to 3 of 8");
	shares(1, 2, true, "cores 4 to 7 of 8");
	shares(1, 3, true, "cores 2 to 4 of 8");
	shares(2, 3, true, "cores 5 to 7 of 8");
	shares(3, 4, true, "cores 6 to 7 of 8");
	shares(0, 1, true, "cores 0 to 7 of 8");
	shares(4, 5, false, "8 cores for 5 ranks: not pinned");
	setenv("HWLOC_SYNTHETIC", "package:4 pu:1", 1);
	shares(0, 1, false, "0 cores for 1 ranks: not pinned");
	unsetenv("HWLOC_SYNTHETIC");
	unsetenv("HWLOC_THISSYSTEM");
}

/* As the kernel sees it: one rank has all cores, which are as many as before; of two each has a part, and threads of a
 * core stay together. */
static void
test_kernel(void)
{
	cpu_set_t all, own[2], both;
	char text[96];
	bool bound[2];
	sched_getaffinity(0, sizeof all, &all);
	pin_thread(0, 1, text, sizeof text);
	sched_getaffinity(0, sizeof both, &both);
	check(CPU_EQUAL(&both, &all), "one rank has all cores of this machine", "%s", text);
	for (int r = 0; r < 2; r++) {
		sched_setaffinity(0, sizeof all, &all);
		bound[r] = pin_thread(r, 2, text, sizeof text);
		sched_getaffinity(0, sizeof own[r], &own[r]);
	}
	sched_setaffinity(0, sizeof all, &all);
	CPU_AND(&both, &own[0], &own[1]);
	if (bound[0] && bound[1])
		check(CPU_COUNT(&both) == 0 && CPU_COUNT(&own[0]) + CPU_COUNT(&own[1]) == CPU_COUNT(&all),
		    "two ranks divide the cores of this machine", "%d and %d of %d, %d common", CPU_COUNT(&own[0]),
		    CPU_COUNT(&own[1]), CPU_COUNT(&all), CPU_COUNT(&both));
	else
		check(!bound[0] && !bound[1] && CPU_EQUAL(&both, &all) && strstr(text, "not pinned"),
		    "two ranks on this machine: too few cores, none is pinned", "%s", text);
}

int
main(void)
{
	test_shares();
	test_kernel();
	return end_tests();
}
