/* libblink in threads and processes of others: the stack that each call needs, threads of its own, and handles after
 * fork (libblink(3), Threads and Processes). Prints TAP. Run at the root of the repository. */
#include "all_ranks/all_ranks.h"
#include "api/schedule.h"
#include "comm/comm.h"
#include "support/process.h"
#include "blink_device.h"
#include "tap.h"

#include <glob.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { STACK = 1 << 20, GUARD = 1 << 20, NEED_MAX = 16 << 10, CHAIN = 1024 };
#define PAINT UINT64_C(0xa5a5a5a5a5a5a5a5)

#if defined __has_feature
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || HAS(address_sanitizer) || HAS(thread_sanitizer) \
    || HAS(memory_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* ---- a stack that shows what was used of it ---- */

static char *stack_low;			/* of the thread that measures */
static size_t most;
static char most_of[128];

/* Bytes of stack that a call writes below its caller. */
static __attribute__((noinline)) void
measure(const char *what, void (*call)(void *), void *of)
{
	char *frame = __builtin_frame_address(0);
	volatile uint64_t *low = (volatile uint64_t *)stack_low, *top = low + (frame - 512 - stack_low) / 8;
	for (volatile uint64_t *word = low; word < top; word++)
		*word = PAINT;
	call(of);
	const volatile uint64_t *used = low;
	while (used < top && *used == PAINT)
		used++;
	size_t need = (size_t)(frame - (const volatile char *)used);
	if (need > NEED_MAX)
		printf("# %s: %zu bytes of stack\n", what, need);
	if (need > most) {
		most = need;
		snprintf(most_of, sizeof most_of, "%s", what);
	}
}

/* On a stack of `size` bytes above memory that must not be touched. */
static bool
on_stack(size_t size, void *(*body)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;
	char *memory = mmap(NULL, GUARD + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory, GUARD, PROT_NONE) != 0)
		return false;
	stack_low = memory + GUARD;
	pthread_attr_init(&attr);
	bool good = pthread_attr_setstack(&attr, stack_low, size) == 0
	    && pthread_create(&thread, &attr, body, NULL) == 0 && pthread_join(thread, NULL) == 0;
	pthread_attr_destroy(&attr);
	munmap(memory, GUARD + size);
	return good;
}

/* ---- every call, on files that are valid and files that are not ---- */

static struct {
	const char *path, *text;
	size_t size;
	blinkSchedule_t sched;
	blinkIndex_t index;
	blinkComm_t comm;
	blinkError_t error;		/* not on the stack of the caller: it is his */
	blinkResult_t result;
	int64_t data[8][64];
	void *buffer[8];
	int type, op, gpus[8];
} job;

static void call_load(void *of) { (void)of; job.result = blinkScheduleLoad(job.path, &job.sched, &job.error); }
static void call_data(void *of) { (void)of; job.result = blinkScheduleLoadData(job.path, &job.sched, &job.error); }
static void
call_parse(void *of)
{
	(void)of;
	job.result = blinkScheduleParse("text", job.text, job.size, &job.sched, &job.error);
}
static void call_index(void *of) { (void)of; job.result = blinkIndexLoad(job.path, &job.index, &job.error); }
static void call_destroy(void *of) { (void)of; blinkScheduleDestroy(job.sched); }
static void call_index_destroy(void *of) { (void)of; blinkIndexDestroy(job.index); }
static void call_comm(void *of) { job.result = blinkCommCreate(job.sched, of, &job.comm, &job.error); }
static void call_comm_destroy(void *of) { (void)of; blinkCommDestroy(job.comm); }

static void
call_run(void *of)
{
	job.result = blinkRun(job.comm, of ? NULL : (const void *const *)job.buffer, job.buffer, 32,
	    (blinkDataType_t)job.type, (blinkRedOp_t)job.op);
}

static void
call_memory(void *of)
{
	void *memory = NULL;
	(void)of;
	blinkMemAlloc(job.comm, 0, 100, &memory);
	blinkCopyIn(job.comm, 0, memory, job.data, 100);
	blinkCopyOut(job.comm, 0, job.data, memory, 100);
	blinkMemFree(job.comm, 0, memory);
	blinkMemAlloc(job.comm, 0, SIZE_MAX, &memory);
	blinkCommGetError(job.comm);
}

static void
call_ask(void *of)
{
	static blinkScheduleInfo_t info;
	static size_t part[BLINK_PARTS_MAX];
	(void)of;
	blinkScheduleGetInfo(job.sched, &info);
	blinkScheduleSplit(job.sched, 1000, blinkFloat32, part);
	blinkGetErrorString(blinkBadInput);
	blinkTypeSize(blinkInt8);
	blinkVersion();
}

static void
call_find(void *of)
{
	static blinkIndexInfo_t info;
	static blinkIndexEntry_t entry;
	int n = *(int *)of;
	blinkIndexGetInfo(job.index, &info);
	job.result = blinkIndexGetEntry(job.index, job.gpus, n, blinkCollAllReduce, 0, &entry, NULL, &job.error);
	job.result = blinkIndexFind(job.index, job.gpus, n, blinkCollAllReduce, 0, &job.sched, &job.error);
}

static void
use_schedule(const char *name)
{
	blinkConfig_t config = { .chunkBytes = 64, .threads = 3 }, wrong = { .chunkBytes = 0, .threads = -1 };
	int n = job.sched->info.nRanks;
	measure(name, call_ask, NULL);
	measure(name, call_comm, &wrong);
	measure(name, call_comm, &config);
	if (job.result == blinkSuccess) {
		for (int r = 0; r < 8; r++)
			job.buffer[r] = job.data[r];
		measure(name, call_memory, NULL);
		measure(name, call_run, &job);
		for (job.type = 0; job.type <= 8 && n <= 8; job.type++)
			for (job.op = 0; job.op <= 4; job.op++)
				measure(name, call_run, NULL);
		measure(name, call_comm_destroy, NULL);
	}
	measure(name, call_destroy, NULL);
}

static int n_loaded, n_refused;

static void
load_all(const char *pattern, void (*load)(void *))
{
	glob_t found;
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		job.path = found.gl_pathv[i];
		measure(job.path, load, NULL);
		n_loaded += job.result == blinkSuccess;
		n_refused += job.result != blinkSuccess;
		if (job.result == blinkSuccess)
			use_schedule(job.path);
	}
	globfree(&found);
}

/* A broadcast along a chain of ranks, as deep as a tree can be. */
static void
put_chain(Text *out, int n, bool broken)
{
	text_put(out, "{\"format\": \"blink-schedule\", \"version\": 1, ");
	text_put(out, "\"topology\": {\"name\": \"chain\", \"digest\": \"sha256:");
	for (int i = 0; i < 64; i++)
		text_put(out, "0");
	text_put(out, "\", \"ranks\": [");
	for (int r = 0; r < n; r++)
		text_printf(out, "%s{\"gpu\": \"g%d\", \"node\": \"n\"}", r ? ", " : "", r);
	text_put(out, "], \"links\": [");
	for (int r = 0; r < n - 1; r++)
		text_printf(out,
		    "%s{\"from\": %d, \"to\": %d, \"class\": \"nvlink\", \"capacity\": 10, \"latency\": 1}",
		    r ? ", " : "", r, r + 1);
	text_put(out,
	    "]}, \"collective\": \"broadcast\", \"root\": 0, \"algorithm\": \"hand\", \"rate\": {\"achieved\": 10, "
	    "\"bound\": 10, \"certificate\": {\"kind\": \"cut\", \"side\": [0]}}, "
	    "\"trees\": [{\"segment\": [\"0/1\", \"1/1\"], \"root\": 0, \"down\": [");
	for (int r = 0; r < n - 1; r++)
		text_printf(out, "%s[%d, %d, [%d]]", r ? ", " : "", r, r + 1, broken && r == n - 2 ? 0 : r);
	text_put(out, "]}]}");
}

static void
parse(const char *name, const Text *text)
{
	job.text = text->data;
	job.size = text->size;
	measure(name, call_parse, NULL);
	if (job.result == blinkSuccess)
		use_schedule(name);
}

static void
nest(Text *text, int depth, const char *inside)
{
	for (int i = 0; i < depth; i++)
		text_put(text, i % 2 ? "{\"a\": " : "[");
	text_put(text, inside);
	for (int i = depth; i-- > 0;)
		text_put(text, i % 2 ? "}" : "]");
}

static void
load_texts(void)
{
	Text text = { 0 };
	put_chain(&text, CHAIN, false);
	parse("a chain of ranks", &text);
	text.size = 0;
	put_chain(&text, CHAIN, true);
	parse("a chain with a wrong link", &text);
	for (int depth = 30; depth <= 40; depth++) {
		text.size = 0;
		nest(&text, depth,
		    "1e-300, 1.7976931348623157e308, 0.000000000000000000000000000000000000000000000000000001");
		parse("nested values", &text);
	}
	text_free(&text);
}

static void *
measure_all(void *unused)
{
	(void)unused;
	load_all("tests/fuzz/corpus/fuzz_schedule/*.json", call_load);
	load_all("tests/golden/diff/*/*/*.json", call_data);
	load_all("tests/bad/schedule/*.json", call_load);
	job.path = "tests/golden/diff/new";
	measure("an index", call_index, NULL);
	for (int n = 1; n <= 8 && job.result != blinkBadInput; n++) {
		for (int i = 0; i < n; i++)
			job.gpus[i] = n - 1 - i;
		measure("a job of an index", call_find, &n);
		if (job.result == blinkSuccess)
			use_schedule("a schedule of an index");
		job.result = blinkSuccess;
	}
	measure("an index", call_index_destroy, NULL);
	load_texts();
	return NULL;
}

/* What one thread with little stack does: all that a program needs, from the file to the result. */
static bool small_good;

static void *
use_little(void *unused)
{
	static blinkConfig_t config = { .chunkBytes = 64, .threads = 3 };
	(void)unused;
	job.path = "tests/fuzz/corpus/fuzz_schedule/allreduce-triangle.json";
	job.type = blinkInt64;
	job.op = blinkSum;
	for (int r = 0; r < 8; r++) {
		job.buffer[r] = job.data[r];
		job.data[r][31] = r + 1;
	}
	if (blinkScheduleLoad(job.path, &job.sched, &job.error) == blinkSuccess
	    && blinkCommCreate(job.sched, &config, &job.comm, &job.error) == blinkSuccess) {
		call_run(NULL);
		small_good = job.result == blinkSuccess && job.data[0][31] == 6 && job.data[2][31] == 6;
		blinkCommDestroy(job.comm);
		blinkScheduleDestroy(job.sched);
	}
	return NULL;
}

static void
test_stack(void)
{
	char line[256];
	/* glibc keeps a thread's data on its stack, too. */
	size_t data = ((size_t)sysconf(_SC_THREAD_STACK_MIN) + BLINK_PAGE - 1) / BLINK_PAGE * BLINK_PAGE;
	if (SANITIZED) {
		printf("# stack: not measured under sanitizers, which make frames larger\n");
		return;
	}
	bool made = on_stack(STACK, measure_all);
	ok(made && n_loaded > 20 && n_refused > 50, "calls on a stack that is measured");
	snprintf(line, sizeof line, "a call needs at most 16 KiB of stack: %zu bytes, for %s", most, most_of);
	ok(made && most > 500 && most <= NEED_MAX, line);
	ok(on_stack(data + NEED_MAX, use_little) && small_good, "from file to result on a thread with 16 KiB");
}

/* ---- the library's own threads ---- */

static blinkComm_t
make_comm(int threads)
{
	blinkConfig_t config = { .chunkBytes = 64, .threads = threads };
	blinkComm_t comm = NULL;
	job.path = "tests/fuzz/corpus/fuzz_schedule/allreduce-triangle.json";
	for (int r = 0; r < 8; r++)
		job.buffer[r] = job.data[r];
	job.type = blinkInt64;
	job.op = blinkSum;
	if (blinkScheduleLoad(job.path, &job.sched, &job.error) == blinkSuccess)
		blinkCommCreate(job.sched, &config, &comm, &job.error);
	return job.comm = comm;
}

static void
test_workers(void)
{
	blinkComm_t comm = make_comm(3);
	const struct blink_device *device = comm ? comm->all->device : NULL;
	pthread_attr_t attr;
	size_t size = 0;
	bool good = device && device->backend.n_threads == 2;
	for (int i = 0; i < 2 && good; i++) {
		good = pthread_getattr_np(device->backend.thread[i], &attr) == 0
		    && pthread_attr_getstacksize(&attr, &size) == 0 && (SANITIZED || size == BLINK_WORKER_STACK);
		pthread_attr_destroy(&attr);
	}
	ok(good, "workers have a stack of their own size");
	blinkCommDestroy(comm);
	blinkScheduleDestroy(job.sched);
}

/* ---- fork ---- */

/* Exit status of what a child does; it must end within seconds of CPU time, and of sleep. */
static int
in_child(int (*body)(void))
{
	int status = -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		_exit(body());
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static bool
refused(blinkResult_t result)
{
	return result == blinkInvalidArgument && strstr(blinkCommGetError(job.comm), "parent of this process");
}

static int
child_uses(void)
{
	void *memory = job.data;
	call_run(NULL);
	bool good = refused(job.result) && refused(blinkMemAlloc(job.comm, 0, 8, &memory)) && memory == job.data
	    && refused(blinkCopyIn(job.comm, 0, memory, job.data, 8)) && refused(blinkMemFree(job.comm, 0, NULL))
	    && refused(blinkCopyOut(job.comm, 0, job.data, memory, 8));
	return good && blinkCommDestroy(job.comm) == blinkSuccess ? 0 : 1;
}

static int
child_destroys(void)
{
	return blinkCommDestroy(job.comm) != blinkSuccess || blinkScheduleDestroy(job.sched) != blinkSuccess;
}

/* The parent's schedule, with a communicator of the child. */
static int
child_makes(void)
{
	blinkConfig_t config = { .chunkBytes = 64, .threads = SANITIZED ? 1 : 3 };
	if (blinkCommDestroy(job.comm) != blinkSuccess
	    || blinkCommCreate(job.sched, &config, &job.comm, NULL) != blinkSuccess)
		return 1;
	for (int r = 0; r < 3; r++)
		job.data[r][31] = r + 1;
	call_run(NULL);
	if (job.result != blinkSuccess || job.data[1][31] != 6 || child_destroys() != 0)
		return 2;
	return make_comm(SANITIZED ? 1 : 3) ? child_destroys() : 3;
}

static void *
run_on(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
		call_run(NULL);
	return NULL;
}

/* Children that destroy a communicator that a thread of the parent was using at the time of the fork. */
static void
test_running(void)
{
	pthread_t thread;
	bool stop = false, good = pthread_create(&thread, NULL, run_on, &stop) == 0;
	int n = 0;
	for (; n < 200 && good; n++)
		good = in_child(child_destroys) == 0;
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	ok(good && n == 200, "a child destroys a communicator that was running");
}

static int
child_knows_itself(void)
{
	return process_id() == getpid() && process_id() == getpid() ? 0 : 1;
}

static int
child_has_child(void)
{
	return child_knows_itself() == 0 && in_child(child_knows_itself) == 0 ? 0 : 1;
}

static void
test_fork(void)
{
	ok(child_has_child() == 0 && in_child(child_has_child) == 0, "a process, its child and its grandchild tell "
	    "themselves apart");
	blinkComm_t comm = make_comm(3);
	ok(comm && in_child(child_uses) == 0, "in a child, calls on a communicator of the parent are refused");
	ok(comm && in_child(child_destroys) == 0, "a child destroys what the parent made");
	ok(comm && in_child(child_makes) == 0,
	    "a child makes a communicator of the parent's schedule, and loads another");
	call_run(NULL);
	ok(comm && job.result == blinkSuccess, "the parent goes on");
	if (comm && !SANITIZED)
		test_running();
	blinkCommDestroy(comm);
	blinkScheduleDestroy(job.sched);
}

int
main(void)
{
	test_stack();
	test_workers();
	test_fork();
	return end_tests();
}
