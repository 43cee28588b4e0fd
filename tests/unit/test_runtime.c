/* Lowering and the host backend, against a plain oracle: random schedules of all collectives, what calls refuse,
 * several threads. Prints TAP. Arguments: seed, schedules to try of each collective. */
#include "buffers.h"

/* A schedule in memory as libblink has one. */
static bool
open_schedule(struct blinkSchedule *s, Ctx *ctx, const Schedule *sched)
{
	Program *prog;
	*s = (struct blinkSchedule){ 0 };
	if (sched_lower(ctx, sched, &prog) != OK || exec_program(ctx, prog, "sha256:0", &s->built) != OK)
		return false;
	s->program = &s->built;
	return true;
}

static bool
try_schedule(Collective coll, int n, bool parts)
{
	static const size_t chunks[] = { 0, 1, 8, 24, 100, 1000 };
	Ctx ctx;
	struct blinkSchedule s;
	blinkComm_t comm;
	blinkConfig_t config = { .chunkBytes = chunks[below(6)], .threads = below(6) };
	ctx_init(&ctx);
	const Schedule *sched = random_schedule(&ctx, coll, n, parts);
	bool good = open_schedule(&s, &ctx, sched) && blinkCommCreate(&s, &config, &comm, NULL) == blinkSuccess;
	if (good) {
		for (int i = 0; i < 4 && good; i++)
			good = try_call(comm, s.program, -1);
		blinkCommDestroy(comm);
	}
	ctx_free(&ctx);
	return good;
}

static void
test_collectives(int n_schedules)
{
	for (int c = 0; c < N_COLLECTIVES; c++) {
		uint64_t seed = state;
		bool good = true;
		char what[80];
		for (int i = 0; i < n_schedules && good; i++) {
			seed = state;
			good = try_schedule((Collective)c, i == 0 ? 1 : 2 + below(MAX_RANKS - 1), i % 3 == 2);
		}
		if (!good)
			printf("# generator state %llu\n", (unsigned long long)seed);
		snprintf(what, sizeof what, "%s: %d random schedules", collective_name((Collective)c), n_schedules);
		ok(good, what);
	}
}

static bool
says(blinkComm_t comm, blinkResult_t result, const char *part)
{
	bool good = result == blinkInvalidArgument && strstr(blinkCommGetError(comm), part);
	if (!good)
		printf("# result %d: %s\n", (int)result, blinkCommGetError(comm));
	return good;
}

static void
test_arguments(void)
{
	Ctx ctx;
	struct blinkSchedule s;
	blinkComm_t comm = NULL;
	blinkError_t error = { "" };
	blinkConfig_t many = { .chunkBytes = 0, .threads = 1000 };
	float data[64] = { 0 };
	const void *send[3] = { data, data + 16, data + 32 };
	void *recv[3] = { data, data + 16, data + 32 };
	ctx_init(&ctx);
	bool made = open_schedule(&s, &ctx, random_schedule(&ctx, ALLREDUCE, 3, false));
	ok(made && blinkCommCreate(&s, &many, &comm, &error) == blinkInvalidArgument && strstr(error.text, "threads"),
	    "too many threads");
	if (made && blinkCommCreate(&s, NULL, &comm, NULL) == blinkSuccess) {
		ok(blinkRun(comm, send, recv, 8, blinkFloat32, blinkSum) == blinkSuccess, "a good call");
		recv[1] = data + 17;
		ok(says(comm, blinkRun(comm, send, recv, 8, blinkFloat32, blinkSum),
		       "rank 1: send and receive buffer overlap"),
		    "buffers that overlap");
		recv[1] = NULL;
		ok(says(comm, blinkRun(comm, send, recv, 8, blinkFloat32, blinkSum), "rank 1: receive buffer: NULL"),
		    "no buffer");
		ok(blinkRun(comm, send, recv, 0, blinkFloat32, blinkSum) == blinkSuccess, "no buffer for no elements");
		recv[1] = (char *)data + 65;
		ok(says(comm, blinkRun(comm, send, recv, 2, blinkFloat32, blinkSum), "not aligned"),
		    "a buffer that is not aligned");
		recv[1] = data + 16;
		ok(says(comm, blinkRun(comm, send, recv, 8, (blinkDataType_t)12, blinkSum), "type: 12"),
		    "no such type");
		ok(says(comm, blinkRun(comm, send, recv, 8, blinkFloat32, (blinkRedOp_t)5), "op: 5"),
		    "no such operation");
		ok(says(comm, blinkRun(comm, send, recv, SIZE_MAX / 2, blinkFloat32, blinkSum), "count"),
		    "a count too large");
		ok(blinkRun(comm, send, recv, 8, blinkFloat32, blinkSum) == blinkSuccess && !*blinkCommGetError(comm),
		    "a good call after bad ones");
		blinkCommDestroy(comm);
	}
	ctx_free(&ctx);
}

struct user {
	struct blinkSchedule *sched;
	pthread_t thread;
	bool good;
};

static void *
use(void *at)
{
	struct user *user = at;
	blinkComm_t comm;
	blinkConfig_t config = { .chunkBytes = 64, .threads = 2 };
	if (blinkCommCreate(user->sched, &config, &comm, NULL) != blinkSuccess)
		return NULL;
	user->good = true;
	for (int i = 0; i < 20; i++) {
		int32_t data[5][97], *buffer[5];
		for (int r = 0; r < 5; r++) {
			for (int k = 0; k < 97; k++)
				data[r][k] = r + k;
			buffer[r] = data[r];
		}
		user->good = user->good
		    && blinkRun(comm, (const void *const *)buffer, (void *const *)buffer, 97, blinkInt32, blinkSum)
			== blinkSuccess;
		for (int r = 0; r < 5; r++)
			for (int k = 0; k < 97; k++)
				user->good = user->good && data[r][k] == 10 + 5 * k;
	}
	blinkCommDestroy(comm);
	return NULL;
}

/* Several threads, each with a communicator, share a schedule. */
static void
test_threads(void)
{
	Ctx ctx;
	struct blinkSchedule s;
	struct user user[3] = { { NULL, 0, false } };
	ctx_init(&ctx);
	bool good = open_schedule(&s, &ctx, random_schedule(&ctx, ALLREDUCE, 5, false));
	for (int i = 0; i < 3 && good; i++) {
		user[i].sched = &s;
		good = pthread_create(&user[i].thread, NULL, use, &user[i]) == 0;
	}
	for (int i = 0; i < 3 && good; i++)
		pthread_join(user[i].thread, NULL);
	ok(good && user[0].good && user[1].good && user[2].good, "communicators of three threads at once");
	ctx_free(&ctx);
}

/* What blink.h promises of single elements. */
static void
test_elements(void)
{
	float nan = __builtin_nanf(""), one = 1, z = 0;
	int8_t a = 127, b = 127, c = 0;
	int64_t most = INT64_MAX, least = 0;
	bool good = true;
	for (int op = blinkMax; op <= blinkMin; op++) {
		blink_combine(blinkFloat32, op, &z, &nan, &one, 1);
		good = good && z != z;
		blink_combine(blinkFloat32, op, &z, &one, &nan, 1);
		good = good && z != z;
	}
	ok(good, "min and max of NaN are NaN");
	blink_combine(blinkInt8, blinkProd, &c, &a, &b, 1);
	blink_combine(blinkInt64, blinkSum, &least, &most, &most, 1);
	ok(c == 1 && least == -2, "integers wrap");
}

/* A program whose stream waits for an event that nobody records. */
static int
run_stuck(void *device, const struct blink_call *call, struct blink_error *err)
{
	struct blink_run now;
	if (blink_begin(&now, device, call, err) == blinkSuccess) {
		struct blink_chunk k;
		if (blink_chunk(&now, 0, 0, &k)) {
			blink_wait(&k, 0, 0);
			blink_copy(&k, 0, blink_output(&k, 1), blink_input(&k, 0));
			blink_record(&k, 0, 1);
			blink_wait(&k, 1, 1);
			blink_record(&k, 1, 0);
		}
	}
	return blink_end(&now);
}

static void
test_stuck(void)
{
	static const struct blink_tree tree = { 0, 0, 0, 0, 1, 1, 1 };
	static const int stream_rank[] = { 0, 1 };
	static const struct blink_program program = { BLINK_PROGRAM_ABI, "host", "", "", "", blinkCollBroadcast, 0, 2,
		0, 1, 1, 2, 0, 2, NULL, &tree, stream_rank, NULL, NULL, blink_open, blink_close, blink_memory_new,
		blink_memory_free, blink_memory_copy, run_stuck };
	struct blinkSchedule s = { .program = &program };
	char data[2] = { 1, 2 };
	const void *send[2] = { data, NULL };
	void *recv[2] = { data, data + 1 };
	for (int threads = 1; threads <= 3; threads++) {
		blinkConfig_t config = { .chunkBytes = 0, .threads = threads };
		blinkComm_t comm;
		bool good = blinkCommCreate(&s, &config, &comm, NULL) == blinkSuccess;
		for (int i = 0; i < 2 && good; i++)
			good = blinkRun(comm, send, recv, 1, blinkInt8, blinkSum) == blinkInternalError &&
			    strstr(blinkCommGetError(comm), "wait for each other");
		if (good)
			blinkCommDestroy(comm);
		ok(good, "steps that wait for each other are an error, not a hang");
	}
}

/* Each result has a text of its own, and no text is of the command line. */
static void
test_results(void)
{
	static const blinkResult_t results[] = { blinkSuccess, blinkInternalError, blinkInvalidArgument, blinkBadInput,
		blinkLimit, blinkInfeasible, blinkUnverified, blinkOutOfMemory, blinkSystemError, blinkRemoteError,
		blinkTimeout, blinkMismatch, blinkAborted, blinkInProgress };
	enum { N = sizeof results / sizeof *results };
	const char *unknown = blinkGetErrorString((blinkResult_t)999);
	bool good = true;
	for (int i = 0; i < N; i++) {
		const char *text = blinkGetErrorString(results[i]);
		good = good && strcmp(text, unknown) != 0 && !strstr(text, "option");
		for (int before = 0; before < i; before++)
			good = good && strcmp(text, blinkGetErrorString(results[before])) != 0;
	}
	ok(good, "every result has a text of its own");
}

int
main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_results();
	test_elements();
	test_arguments();
	test_stuck();
	test_threads();
	test_collectives(argc > 2 ? atoi(argv[2]) : 150);
	return end_tests();
}
