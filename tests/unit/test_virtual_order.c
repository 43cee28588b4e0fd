/* Random work in streams of the virtual GPUs, with events between them, and with the legacy stream: what must come
 * after something else begins when that has ended; also captured, and replayed. */
#include "virtual.h"

enum { WORK_MOST = 60, STREAMS = 6, EVENTS = 8, LEGACY = 0, BLOCKING = 2 };	/* 1, 2: blocking; then: not */

struct work {
	uint64_t before;		/* a bit of each work that must have ended */
	long sleep_ns;
	bool ended;
	int executed;
};

static struct {
	struct work work[WORK_MOST];
	int n;
	int violations;
	bool captures;
	CUstream stream[STREAMS];	/* of two devices, in turn */
	CUevent event[EVENTS];
	int device[STREAMS], event_device[EVENTS];
	uint64_t of_stream[STREAMS], of_event[EVENTS];
	bool recorded[EVENTS];
} all;

static uint64_t random_state;

static unsigned
draw(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((random_state >> 33) % n);
}

static void
execute(void *data)
{
	struct work *w = data;
	for (int i = 0; i < WORK_MOST; i++)
		if (w->before >> i & 1 && !__atomic_load_n(&all.work[i].ended, __ATOMIC_ACQUIRE))
			__atomic_fetch_add(&all.violations, 1, __ATOMIC_RELAXED);
	if (w->sleep_ns)
		nanosleep(&(struct timespec){ .tv_nsec = w->sleep_ns }, NULL);
	w->executed++;
	__atomic_store_n(&w->ended, true, __ATOMIC_RELEASE);
}

/* Any item of a stream: those of the legacy stream and of blocking ones of its device are in order. */
static void
item_of(int s)
{
	if (all.captures)
		return;
	for (int t = 1; t <= BLOCKING; t++)
		if (all.device[t] == all.device[LEGACY]) {
			if (s == LEGACY)
				all.of_stream[LEGACY] |= all.of_stream[t];
			if (s == t)
				all.of_stream[t] |= all.of_stream[LEGACY];
		}
}

static void
add_work(int s)
{
	struct work *w = &all.work[all.n];
	item_of(s);
	*w = (struct work){ .before = all.of_stream[s], .sleep_ns = draw(3) ? 0 : (long)draw(200000) };
	all.of_stream[s] |= UINT64_C(1) << all.n++;
	must(cuLaunchHostFunc(all.stream[s], execute, w));
}

static void
record(int e, int s)
{
	item_of(s);
	all.of_event[e] = all.of_stream[s];
	all.recorded[e] = true;
	use(all.device[s]);
	must(cuEventRecord(all.event[e], all.stream[s]));
	use(0);
}

static void
wait(int s, int e)
{
	if (!all.recorded[e])
		return;
	item_of(s);
	all.of_stream[s] |= all.of_event[e];
	must(cuStreamWaitEvent(all.stream[s], all.event[e], 0));
}

/* first: the streams are this one and those behind it. */
static void
add_random(int first)
{
	int s = first + (int)draw(STREAMS - (unsigned)first), e = (int)draw(EVENTS);
	switch (draw(4)) {
	case 0:
		while (all.event_device[e] != all.device[s])
			e = (e + 1) % EVENTS;
		return record(e, s);
	case 1:
		return wait(s, e);
	default:
		if (all.n < WORK_MOST)
			add_work(s);
	}
}

static void
forget(void)
{
	all.n = 0;
	memset(all.of_stream, 0, sizeof all.of_stream);
	memset(all.recorded, 0, sizeof all.recorded);
}

static int
wrong_counts(int want)
{
	int wrong = 0;
	for (int i = 0; i < all.n; i++)
		wrong += all.work[i].executed != want;
	return wrong;
}

static void
finish(void)
{
	for (int i = 0; i < STREAMS; i++)
		must(cuStreamSynchronize(all.stream[i]));
}

static int
execute_random(void)
{
	all.captures = false;
	forget();
	for (int i = 0; i < 120; i++)
		add_random(LEGACY);
	finish();
	return all.violations + wrong_counts(1);
}

/* The first stream that does not block captures; the others are forked from it and joined. */
static int
replay_random(void)
{
	int origin = BLOCKING + 1, replays = 3;
	CUgraph graph;
	CUgraphExec exec;
	all.captures = true;
	forget();
	must(cuStreamBeginCapture_v2(all.stream[origin], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	record(all.device[origin], origin);
	for (int s = origin + 1; s < STREAMS; s++)
		wait(s, all.device[origin]);
	for (int i = 0; i < 120; i++)
		add_random(origin);
	for (int s = origin + 1; s < STREAMS; s++) {
		record(all.device[s], s);
		wait(origin, all.device[s]);
	}
	must(cuStreamEndCapture(all.stream[origin], &graph));
	must(cuGraphInstantiateWithFlags(&exec, graph, 0));
	must(cuGraphDestroy(graph));
	for (int i = 0; i < replays; i++) {
		for (int k = 0; k < all.n; k++)
			all.work[k].ended = false;
		must(cuGraphLaunch(exec, all.stream[origin + i % 2]));
		finish();
	}
	must(cuGraphExecDestroy(exec));
	return all.violations + wrong_counts(replays);
}

static void
make_streams(void)
{
	for (int i = 0; i < STREAMS; i++) {
		all.device[i] = i <= BLOCKING ? 0 : i % 2;
		use(all.device[i]);
		if (i != LEGACY)
			all.stream[i] = new_stream(i <= BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
	}
	for (int i = 0; i < EVENTS; i++) {	/* number 0 of device 0, 1 of 1 */
		all.event_device[i] = i % 2;
		use(all.event_device[i]);
		all.event[i] = new_event(CU_EVENT_DISABLE_TIMING);
	}
	use(0);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 30, bad = 0;
	random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	setenv("VIRTUAL_GPU_DELAY", argc > 1 ? argv[1] : "1", 1);
	begin();
	make_streams();
	for (int i = 0; i < rounds && !bad; i++) {
		bad = execute_random();
		if (bad)
			printf("# round %d: %d violations\n", i, bad);
	}
	ok(!bad, "random work is executed once, in order");
	for (int i = 0; i < rounds && !bad; i++) {
		bad = replay_random();
		if (bad)
			printf("# replays of round %d: %d violations\n", i, bad);
	}
	ok(!bad, "so is random work of graphs, by each launch");
	return end_tests();
}
