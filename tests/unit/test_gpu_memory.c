/* Memory of ranks on virtual GPUs (tests/virtual_gpu): what peers see of it, by every route, as threads and as
 * processes; what each rank is given; and every call of the driver failing once. Prints TAP. Each case is a process,
 * since the virtual driver reads its environment once: this program starts itself, with the name of the case. */
#include "gpu_memory/play.h"
#include "cuda/kernels.h"
#include "quick.h"
#include "tap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* In place of the library's: nothing here is launched. The code is for GPUs of capability 7.0, as those of the virtual
 * driver are where no topology says more. */
static char ptx[] = ".version 6.0 .target sm_60 .entry blink_move() { } .entry blink_messages() { } "
    ".entry blink_copies_begin() { } .entry blink_copies_end() { } .entry blink_measure() { }";
static const uint32_t cubins[] = { 0xba55ed50, 0x00100001, 64, 0, 0x01010002, 64, 0, 0, 0, 0, 0, 70, 0, 0, 0, 0, 0, 0,
    0, 0 };
const struct kernel_module kernel_modules[] = {
	{ "move", ptx, NULL, cubins },
	{ .name = NULL }
};
const char *const kernel_multicast = NULL;

/* Without PTX that a driver could compile. */
static bool
runs_code(bool fits)
{
	struct rank r;
	*ptx = '\0';
	if (fits)
		return threads_play(1, caller_memory);
	as_threads(&r, 1, NULL);
	return all_refuse(&r, 1, blinkSystemError, "cuda: load the kernels for move: ");
}

/* ---- failures ---- */

/* Calls of the driver fail, each once: every rank of that communicator hears of it, or of what it did later, and the
 * next one of the process finds out about the next call, until none fails. A call that only frees may fail unheard. */
static bool
failures(int n)
{
	struct rank r[MOST];
	for (int turn = 0; turn < 100; turn++) {
		int joined = 0, content = 0;
		as_threads(r, n, caller_memory);
		for (int i = 0; i < n; i++) {
			joined += r[i].result == blinkSuccess;
			content += r[i].result == blinkSuccess && !r[i].wrong;
			if (r[i].result != blinkSuccess && !strstr(r[i].error.text, "cuda: "))
				return printf("# rank %d: %s\n", i, r[i].error.text), false;
		}
		if (joined > 0 && joined < n)
			return printf("# %d of %d ranks have joined\n", joined, n), false;
		if (content == n)
			return true;
	}
	return printf("# no end of failures\n"), false;
}

/* ---- cases ---- */

static bool
play_case(const char *name)
{
#define CASE(text, expression)                                                 \
	if (strcmp(name, text) == 0)                                           \
		return expression;
	CASE("threads", threads_play(4, threads_direct))
	CASE("processes", processes_play(4, processes_direct))
	CASE("shared threads", threads_play(4, shared_gpu))
	CASE("shared processes", processes_play(4, shared_gpu))
	CASE("least", threads_play(3, least_blocks))
	CASE("capped", threads_play(2, capped_blocks))
	CASE("some threads", threads_play(8, some_direct))
	CASE("some processes", processes_play(8, some_direct))
	CASE("ipc threads", (without_vmm(), threads_play(4, ipc)))
	CASE("ipc processes", (processes.lack_vmm = true, processes_play(3, ipc)))
	CASE("unseen", (processes.see_own_gpu = true, processes_play(4, unseen_direct)))
	CASE("unseen ipc", (processes.see_own_gpu = processes.lack_vmm = true, processes_play(3, unseen_direct)))
	CASE("some unseen", (processes.see_own_gpu = true, processes_play(8, some_direct)))
	CASE("off", threads_play(3, none_direct))
	CASE("off processes", processes_play(3, none_direct))
	CASE("lost", threads_play(4, lost_is_found))
	CASE("lost unseen", (processes.see_own_gpu = true, processes_play(4, lost_is_found)))
	CASE("leave", threads_play(3, one_leaves))
	CASE("leave ipc", (without_vmm(), threads_play(2, one_leaves)))
	CASE("leave ipc processes", one_leaves_ipc())
	CASE("memory", threads_play(2, caller_memory))
	CASE("alone", threads_play(1, caller_memory))
	CASE("split", threads_play(4, split))
	CASE("current", devices_of_threads())
	CASE("map short", refuses_map("BLINK_DEVICE_MAP: \"3\": no device for rank 1 of this server: want a number "
	    "from 0 to 7"))
	CASE("map large", refuses_map("BLINK_DEVICE_MAP: \"0,8\": no device for rank 1"))
	CASE("map text", refuses_map("BLINK_DEVICE_MAP: \"0,1x\": no device for rank 1"))
	CASE("servers", (processes.on_servers = true, processes_play(3, on_servers)))
	CASE("backends", backends_differ())
	CASE("backend", unknown_backend())
	CASE("code", runs_code(true))
	CASE("other code", runs_code(false))
	CASE("fork", threads_play(1, child_destroys))
	CASE("failures", failures(2))
	return false;
}

/* ---- the program that starts them ---- */

static char self[PATH_MAX], place[PATH_MAX];

/* A process of its own; variable: "NAME=value", NULL: none. */
static bool
runs(const char *name, const char *variable)
{
	char path[PATH_MAX + 40], twins[PATH_MAX + 40];
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		snprintf(path, sizeof path, "%s/../virtual_gpu", place);
		snprintf(twins, sizeof twins, "%s/../cuda/twins.so", place);
		setenv("LD_LIBRARY_PATH", path, 1);
		setenv("VIRTUAL_GPU_KERNELS", twins, 1);
		if (variable)
			putenv((char *)variable);
		execl(self, self, "case", name, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	if (status != 0)
		printf("# %s, %s: status %x\n", name, variable ? variable : "", (unsigned)status);
	return status == 0;
}

/* All calls that there are, FAILURES at a time: call number k of each. */
static bool
all_failures(int k)
{
#define NAME(member, name, must, parameters) #name,
	static const char *const names[] = { DRIVER_LIST(NAME) };
#undef NAME
	enum { FAILURES = 16, N = sizeof names / sizeof *names };
	bool good = true;
	for (int i = 0; i < N; i += FAILURES) {
		char text[FAILURES * 60] = "VIRTUAL_GPU_FAIL=";
		for (int f = i; f < N && f < i + FAILURES; f++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%d", f > i ? "," : "", names[f],
			    k);
		good = runs("failures", text) && good;
	}
	return good;
}

int
main(int argc, char **argv)
{
	bool good = true;
	char calls[PATH_MAX + 40];
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(600);
	n_left = mmap(NULL, sizeof *n_left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n_left == MAP_FAILED)
		return 1;
	if (argc == 3 && strcmp(argv[1], "case") == 0)
		return !play_case(argv[2]);
	if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
		return 1;
	memcpy(place, self, sizeof place);
	*strrchr(place, '/') = '\0';
	snprintf(calls, sizeof calls, "VIRTUAL_GPU_CALLS=/tmp/test_gpu_memory.%d", (int)getpid());
	unsetenv("BLINK_DEVICE_MAP");
	unsetenv("BLINK_BLOCKS");
	setenv("VIRTUAL_GPU_COUNT", "8", 1);
	ok(runs("threads", NULL), "regions of threads");
	ok(runs("processes", NULL), "regions of processes, by descriptors");
	ok(runs("ipc threads", NULL) && runs("ipc processes", NULL), "regions where the driver has no VMM");
	ok(runs("shared threads", "BLINK_DEVICE_MAP=0,0,1,1")
	    && (quick_check() || runs("shared processes", "BLINK_DEVICE_MAP=0,0,1,1")),
	    "two ranks on a GPU");
	ok(runs("least", "BLINK_DEVICE_MAP=1,1,0") && runs("capped", "BLINK_BLOCKS=7"), "blocks: the least of all");
	ok(runs("some threads", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml"),
	    "GPUs without peer access: through the host, threads");
	if (!quick_check())
		ok(runs("some processes", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml"),
		    "GPUs without peer access: through the host, processes");
	ok(runs("unseen", NULL) && (quick_check() || runs("unseen ipc", NULL)),
	    "each process sees its own GPU alone: peers' memory is mapped");
	ok(runs("some unseen", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml"), "so where only some GPUs have access");
	ok(runs("off", "BLINK_P2P=0") && (quick_check() || runs("off processes", "BLINK_P2P=0")),
	    "BLINK_P2P=0: through the host");
	ok(runs("lost", "VIRTUAL_GPU_LOST=0:2") && (quick_check() || runs("lost unseen", "VIRTUAL_GPU_LOST=0:2")),
	    "what is written to a peer and does not arrive: through the host");
	ok(runs("leave", "BLINK_DEVICE_MAP=0,1,1") && runs("leave", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1p.xml")
	    && runs("leave ipc", NULL) && runs("leave ipc processes", calls),
	    "memory of a rank that has left stays for its peers");
	ok(runs("memory", NULL) && runs("alone", NULL), "memory of the caller");
	ok(runs("split", NULL) && runs("current", NULL), "the device of the parent, and of the current context");
	ok(runs("map short", "BLINK_DEVICE_MAP=3") && runs("map large", "BLINK_DEVICE_MAP=0,8")
	    && runs("map text", "BLINK_DEVICE_MAP=0,1x"), "a map that has no device for a rank");
	ok(runs("servers", "BLINK_DEVICE_MAP=5,6"), "ranks on two servers");
	ok(runs("backends", NULL) && runs("backend", NULL), "backends that differ, or are none");
	ok(runs("code", NULL) && runs("other code", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1p.xml")
	    && runs("alone", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1p.xml"), "kernels as code for a GPU; else as PTX");
	ok(runs("fork", NULL), "a forked child destroys its copy");
	for (int k = 1; k <= (quick_check() ? 1 : 4); k++)
		good = all_failures(k) && good;
	ok(good, "each call of the driver fails once: all ranks hear of it");
	unlink(strchr(calls, '=') + 1);
	return end_tests();
}
