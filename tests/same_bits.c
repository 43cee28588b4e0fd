/* A schedule file on the host and its program on GPUs: do they give the same bits, of all types and operations?
 * Numbers are any, so that sums and products depend on their order and on each rounding; none is a NaN.
 *
 *	same_bits schedule.json program.so seed
 *
 * Prints a line for the first call that differs or fails, and exits with 1. */
#include "api/schedule.h"
#include "blink_device.h"
#include "unit/numbers.h"

#include <unistd.h>

enum { SECONDS = 120, MOST_COUNT = 3000, MOST_RANKS = 16 };

struct call {
	const struct blink_program *program;
	size_t count, size;
	int type, op;
	char *send[MOST_RANKS], *here[MOST_RANKS], *there[MOST_RANKS];	/* there: what GPUs gave */
};

static uint64_t state;
static int n_calls;

static uint64_t
random64(void)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return state ^ state >> 29;
}

static size_t
bytes_of(const struct call *c, int r, bool recv)
{
	struct blink_layout l = blink_layout_of(c->program, r);
	return (size_t)(recv ? l.recv : l.send) * c->count * c->size;
}

static void
make(struct call *c)
{
	for (int r = 0; r < c->program->n_ranks; r++) {
		size_t sent = bytes_of(c, r, false), received = bytes_of(c, r, true);
		c->send[r] = blink_array(sent, 1);
		c->here[r] = blink_array(received, 1);
		c->there[r] = blink_array(received, 1);
		if (!c->send[r] || !c->here[r] || !c->there[r])
			abort();
		for (size_t i = 0; i < sent; i += c->size)
			put_number(c->type, random64(), c->send[r] + i);
	}
}

static void
drop(struct call *c)
{
	for (int r = 0; r < c->program->n_ranks; r++) {
		free(c->send[r]);
		free(c->here[r]);
		free(c->there[r]);
	}
}

static bool
failed(const struct call *c, const char *what, const char *why)
{
	printf("%s: count %zu, type %d, op %d: %s\n", what, c->count, c->type, c->op, why);
	return false;
}

static bool
run_here(blinkComm_t comm, struct call *c)
{
	return blinkRun(comm, (const void *const *)c->send, (void *const *)c->here, c->count, (blinkDataType_t)c->type,
	    (blinkRedOp_t)c->op) == blinkSuccess || failed(c, "host", blinkCommGetError(comm));
}

/* A buffer of a rank on its GPU, NULL where it has none. */
static bool
place(blinkComm_t comm, int r, const char *from, size_t bytes, void **out)
{
	return bytes == 0 || (blinkMemAlloc(comm, r, bytes, out) == blinkSuccess &&
	    blinkCopyIn(comm, r, *out, from, bytes) == blinkSuccess);
}

static bool
run_there(blinkComm_t comm, struct call *c)
{
	void *send[MOST_RANKS] = { NULL }, *recv[MOST_RANKS] = { NULL };
	int n = c->program->n_ranks;
	bool good = true;
	for (int r = 0; r < n && good; r++)
		good = place(comm, r, c->send[r], bytes_of(c, r, false), &send[r]) &&
		    place(comm, r, c->there[r], bytes_of(c, r, true), &recv[r]);
	good = good && blinkRun(comm, (const void *const *)send, recv, c->count, (blinkDataType_t)c->type,
	    (blinkRedOp_t)c->op) == blinkSuccess;
	for (int r = 0; r < n && good; r++)
		good = !recv[r] || blinkCopyOut(comm, r, c->there[r], recv[r], bytes_of(c, r, true)) == blinkSuccess;
	if (!good)
		failed(c, "GPUs", blinkCommGetError(comm));
	for (int r = 0; r < n; r++) {
		good = (!send[r] || blinkMemFree(comm, r, send[r]) == blinkSuccess) && good;
		good = (!recv[r] || blinkMemFree(comm, r, recv[r]) == blinkSuccess) && good;
	}
	return good;
}

static bool
same(const struct call *c)
{
	for (int r = 0; r < c->program->n_ranks; r++)
		if (memcmp(c->here[r], c->there[r], bytes_of(c, r, true)) != 0)
			return failed(c, "a rank", "other bits");
	return true;
}

static bool
try_one(blinkComm_t host, blinkComm_t gpus, const struct blink_program *program, int type, int op)
{
	struct call c = { .program = program, .count = 1 + (size_t)(random64() % MOST_COUNT), .type = type, .op = op,
		.size = blink_type_size(type) };
	make(&c);
	bool good = run_here(host, &c) && run_there(gpus, &c) && same(&c);
	drop(&c);
	n_calls++;
	return good;
}

static bool
try_all(blinkComm_t host, blinkComm_t gpus, const struct blink_program *program)
{
	int ops = blink_reduces(program->collective) ? blinkAvg : blinkSum;
	for (int type = 0; type <= blinkFloat8e5m2; type++)
		for (int op = blinkSum; op <= ops; op++)
			if (!try_one(host, gpus, program, type, op))
				return false;
	return true;
}

int
main(int argc, char **argv)
{
	blinkSchedule_t file = NULL, object = NULL;
	blinkComm_t host = NULL, gpus = NULL;
	const blinkConfig_t small_chunks = { .chunkBytes = 1000 };
	blinkError_t error = { "" };
	alarm(SECONDS);
	if (argc != 4)
		return 2;
	state = (uint64_t)atoll(argv[3]);
	bool good = blinkScheduleLoad(argv[1], &file, &error) == blinkSuccess &&
	    blinkScheduleLoad(argv[2], &object, &error) == blinkSuccess &&
	    blinkCommCreate(file, NULL, &host, &error) == blinkSuccess &&
	    blinkCommCreate(object, &small_chunks, &gpus, &error) == blinkSuccess;
	if (!good)
		printf("%s\n", error.text);
	good = good && file->program->n_ranks <= MOST_RANKS && try_all(host, gpus, file->program);
	blinkCommDestroy(gpus);
	blinkCommDestroy(host);
	blinkScheduleDestroy(object);
	blinkScheduleDestroy(file);
	printf("%d calls\n", n_calls);
	return good ? 0 : 1;
}
