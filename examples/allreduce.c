/* The sum of what eight GPUs have, in every one of them, along the trees of a schedule:
 *
 *	blinkc compile topologies/dgx1v.xml -c allreduce -o allreduce.json
 *	cc allreduce.c $(pkg-config --cflags --libs blink) -o allreduce
 *	./allreduce allreduce.json
 *
 * It also takes an allreduce program, the shared object compiled from what `blinkc compile --format cu` wrote. */
#include <blink.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

static void
check(blinkResult_t result, const char *text)
{
	if (result == blinkSuccess)
		return;
	fprintf(stderr, "allreduce: %s: %s\n", blinkGetErrorString(result), text);
	exit(result);
}

int
main(int argc, char **argv)
{
	blinkSchedule_t sched;
	blinkScheduleInfo_t info;
	blinkComm_t comm;
	blinkError_t error;
	size_t bytes = COUNT * sizeof(float);
	if (argc != 2) {
		fprintf(stderr, "usage: allreduce schedule.json|program.so\n");
		return blinkInvalidArgument;
	}

	check(blinkScheduleLoad(argv[1], &sched, &error), error.text);
	check(blinkScheduleGetInfo(sched, &info), "");
	if (info.collective != blinkCollAllReduce)
		check(blinkInvalidArgument, info.collectiveName);
	check(blinkCommCreate(sched, NULL, &comm, &error), error.text);

	/* Every rank has memory of its own; rank r fills it with r + 1. */
	void **data = (void **)calloc((size_t)info.nRanks, sizeof *data);
	float *host = (float *)malloc(bytes);
	if (!data || !host)
		check(blinkOutOfMemory, "");
	for (int r = 0; r < info.nRanks; r++) {
		for (int i = 0; i < COUNT; i++)
			host[i] = (float)(r + 1);
		check(blinkMemAlloc(comm, r, bytes, &data[r]), blinkCommGetError(comm));
		check(blinkCopyIn(comm, r, data[r], host, bytes), blinkCommGetError(comm));
	}

	/* In place: each rank receives where it sends from. */
	check(blinkRun(comm, (const void *const *)data, data, COUNT, blinkFloat32, blinkSum), blinkCommGetError(comm));

	float want = (float)(info.nRanks * (info.nRanks + 1) / 2);
	int wrong = 0;
	for (int r = 0; r < info.nRanks; r++) {
		check(blinkCopyOut(comm, r, host, data[r], bytes), blinkCommGetError(comm));
		for (int i = 0; i < COUNT; i++)
			wrong += host[i] != want;
		check(blinkMemFree(comm, r, data[r]), blinkCommGetError(comm));
	}
	printf("%d ranks, %d trees, backend %s: sum %g in every rank, %d wrong\n", info.nRanks, info.nTrees, info.backend, want,
	    wrong);
	free(data);
	free(host);
	blinkCommDestroy(comm);
	blinkScheduleDestroy(sched);
	return wrong ? blinkUnverified : 0;
}
