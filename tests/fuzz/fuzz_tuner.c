/* Files that tuners read. The sizes of chunks that libblink found: refused, or kept as they are when some are written
 * again. What BLINK_SCHEDULES names, to the plugin for NCCL: a table of costs that it changes only where it knows
 * rings, to times that are above 0. */
#include "json_mutator.h"
#include "scratch.h"
#include "nccl_tuner/abi.h"
#include "tune/tuner.h"

#include <math.h>

const Mutator mutators[] = { json_mutate, NULL };

const char *const dictionary[] = { "\"blink-chunks\"", "\"chunks\": [", "\"ranks\": ", "\"servers\": ",
	"\"collective\": ", "\"log2_bytes\": ", "\"chunk_bytes\": ", "\"allreduce\"", "\"alltoall\"", "0", "1", "40",
	"41", "1073741824", "1073741825", "{", "}", "\"blink-schedule\"", "\"algorithm\": \"ring\"",
	"\"blink-index\"", NULL };

extern const NcclTunerV5 ncclTunerPlugin_v5;

enum { RANKS = 4, SERVERS = 1 };

static void
chunks(const char *path)
{
	static TunerChunks found, again;
	Ctx ctx;
	ctx_init(&ctx);
	Status status = tuner_load(&ctx, path, RANKS, SERVERS, found);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT, path);
	} else {
		n_accepted++;
		for (int c = 0; c < N_COLLECTIVES; c++)
			for (int k = 0; k < TUNER_CLASSES; k++) {
				REQUIRE(found[c][k] >= 0 && found[c][k] <= 1 << 30, "%lld", (long long)found[c][k]);
				outcome += found[c][k] > 0;
			}
		outcome++;
		REQUIRE(tuner_save(&ctx, path, RANKS, SERVERS, (const int64_t(*)[TUNER_CLASSES])found) == OK
			&& tuner_load(&ctx, path, RANKS, SERVERS, again) == OK, "%s", ctx.error.text);
		REQUIRE(memcmp(found, again, sizeof found) == 0, "others were read again");
	}
	ctx_free(&ctx);
}

static void
costs(const char *path)
{
	void *context = NULL;
	setenv("BLINK_SCHEDULES", path, 1);
	unsetenv("BLINK_MACHINE");
	unsetenv("BLINK_GPUS");
	REQUIRE(ncclTunerPlugin_v5.init(&context, 0, RANKS, SERVERS, NULL, NULL, NULL) == NCCL_SUCCESS, "init");
	for (int func = 0; func < N_NCCL_FUNCS; func++)
		for (int k = 0; k <= 40; k += 8) {
			float cost[7][N_NCCL_PROTOS];
			int channels = 0;
			for (int i = 0; i < 7 * N_NCCL_PROTOS; i++)
				cost[i / N_NCCL_PROTOS][i % N_NCCL_PROTOS] = 10;
			REQUIRE(ncclTunerPlugin_v5.choose(context, func, (size_t)1 << k, 1, (NcclCosts)(void *)cost, 7,
				    N_NCCL_PROTOS, 0, &channels) == NCCL_SUCCESS, "choose");
			for (int i = 0; i < 7 * N_NCCL_PROTOS; i++) {
				float now = cost[i / N_NCCL_PROTOS][i % N_NCCL_PROTOS];
				bool ring = i == NCCL_ALGO_RING * N_NCCL_PROTOS + NCCL_PROTO_SIMPLE;
				REQUIRE(ring ? now > 0 && isfinite(now) : !(now < 10) && !(now > 10), "%d: %g", i,
				    (double)now);
				outcome += now < 10 || now > 10 ? 1 << 16 : 0;
			}
		}
	ncclTunerPlugin_v5.destroy(context);
}

static void
test_input(const uint8_t *data, size_t size)
{
	char path[256];
	scratch_begin();
	scratch_write("input.json", data, size);
	snprintf(path, sizeof path, "%s/input.json", scratch);
	costs(path);
	chunks(path);
	scratch_clear();
}
