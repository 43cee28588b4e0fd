/* A schedule file is refused by libblink, or executed on the host: every rank's result is what its collective asks of
 * the input, out of place and in place, whatever the size of the chunks. */
#include "schedule_mutator.h"
#include "api/schedule.h"
#include "schedule/schedule.h"

const Mutator mutators[] = { schedule_mutate, NULL };

const char *const dictionary[] = { "broadcast", "reduce", "allreduce", "gather", "scatter", "allgather",
	"reducescatter", "alltoall", "null", "\"0/1\"", "\"1/2\"", "\"1/3\"", "[0, 1, [0]]", "[1, 0, [1]]",
	"\"to\": [0],", "[]", NULL };

enum { RANKS_MAX = 16, COUNT = 23 };

static const char label[] = "input";

/* Blocks that rank r sends and receives. */
static void
blocks_of(const blinkScheduleInfo_t *info, int r, int *sends, int *receives)
{
	static const struct {
		char sends, receives;	/* '0': only the root one; '1': one; 'n': one a rank; 'N': only the root */
	} of[] = { { '0', '1' }, { '1', '0' }, { '1', '1' }, { '1', 'N' }, { 'N', '1' }, { '1', 'n' }, { 'n', '1' },
		{ 'n', 'n' } };
	int n = info->nRanks, root = r == info->root;
	char s = of[info->collective].sends, t = of[info->collective].receives;
	*sends = s == '0' ? root : s == '1' ? 1 : s == 'n' ? n : root ? n : 0;
	*receives = t == '0' ? root : t == '1' ? 1 : t == 'n' ? n : root ? n : 0;
}

/* Element k of block b that rank r sends. */
static int64_t
sent(int r, int b, int k)
{
	return (int64_t)(r + 1) * 1000003 + b * 10007 + k * 101;
}

static int64_t
summed(int n, int b, int k)
{
	int64_t sum = 0;
	for (int r = 0; r < n; r++)
		sum += sent(r, b, k);
	return sum;
}

/* Element k of block b that rank r receives. */
static int64_t
expected(const blinkScheduleInfo_t *info, int r, int b, int k)
{
	switch (info->collective) {
	case blinkCollBroadcast:
		return sent(info->root, 0, k);
	case blinkCollScatter:
		return sent(info->root, r, k);
	case blinkCollReduce:
	case blinkCollAllReduce:
		return summed(info->nRanks, 0, k);
	case blinkCollReduceScatter:
		return summed(info->nRanks, r, k);
	case blinkCollAlltoAll:
		return sent(b, r, k);
	default:
		return sent(b, 0, k);
	}
}

static void
run(blinkComm_t comm, const blinkScheduleInfo_t *info, int count)
{
	static int64_t send[RANKS_MAX][RANKS_MAX * COUNT], recv[RANKS_MAX][RANKS_MAX * COUNT];
	const void *from[RANKS_MAX];
	void *to[RANKS_MAX];
	int sends, receives;
	for (int r = 0; r < info->nRanks; r++) {
		blocks_of(info, r, &sends, &receives);
		for (int b = 0; b < sends; b++)
			for (int k = 0; k < count; k++)
				send[r][b * count + k] = sent(r, b, k);
		memset(recv[r], 0x55, sizeof recv[r]);
		from[r] = sends ? send[r] : NULL;
		to[r] = receives ? recv[r] : NULL;
	}
	blinkResult_t result = blinkRun(comm, from, to, (size_t)count, blinkInt64, blinkSum);
	REQUIRE(result == blinkSuccess, "%d: %s", (int)result, blinkCommGetError(comm));
	for (int r = 0; r < info->nRanks; r++) {
		blocks_of(info, r, &sends, &receives);
		for (int b = 0; b < receives; b++)
			for (int k = 0; k < count; k++)
				REQUIRE(recv[r][b * count + k] == expected(info, r, b, k),
				    "%s: rank %d, block %d, element %d of %d: %lld", info->collectiveName, r, b, k,
				    count, (long long)recv[r][b * count + k]);
	}
}

static void
test_input(const uint8_t *data, size_t size)
{
	blinkSchedule_t sched;
	blinkScheduleInfo_t info;
	blinkError_t error;
	blinkResult_t result = blinkScheduleParse(label, (const char *)data, size, &sched, &error);
	if (result) {
		Ctx ctx;
		ctx_init(&ctx);
		ctx.error.status = (Status)result;
		snprintf(ctx.error.text, sizeof ctx.error.text, "%s", error.text);
		judge_refusal(&ctx, (Status)result, 1u << BAD_INPUT | 1u << LIMIT | 1u << UNVERIFIED, label);
		return;
	}
	blinkScheduleGetInfo(sched, &info);
	for (int chunk = 8; chunk <= 64 && info.nRanks <= RANKS_MAX; chunk *= 8) {
		blinkConfig_t config = { .chunkBytes = (size_t)chunk, .threads = 1 };
		blinkComm_t comm;
		REQUIRE(blinkCommCreate(sched, &config, &comm, &error) == blinkSuccess, "%s", error.text);
		for (int count = 1; count <= COUNT; count += 11)
			run(comm, &info, count);
		blinkCommDestroy(comm);
	}
	outcome = (uint64_t)info.collective << 24 | (uint64_t)info.nTrees << 8 | (uint64_t)info.nRanks;
	n_accepted++;
	blinkScheduleDestroy(sched);
}
