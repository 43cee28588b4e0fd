/* What a job does that got some of a machine's GPUs: look up their schedule, and run it. Here the root, the first GPU, sends its
 * data to the others:
 *
 *	blinkc batch topologies/dgx1v.xml --collectives broadcast -o schedules
 *	cc lookup.c $(pkg-config --cflags --libs blink) -o lookup
 *	./lookup schedules 3 0 5
 *
 * GPUs are numbered as the machine has them, and ranked as they are given: GPU 3 is rank 0. */
#include <blink.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 16, MAX_GPUS = 64 };

static void
check(blinkResult_t result, const char *text)
{
	if (result == blinkSuccess)
		return;
	fprintf(stderr, "lookup: %s: %s\n", blinkGetErrorString(result), text);
	exit(result);
}

/* What only the root may hold before. */
static int
element(int i)
{
	return 7 * i + 3;
}

int
main(int argc, char **argv)
{
	static int root_data[COUNT], data[MAX_GPUS][COUNT];
	const void *send[MAX_GPUS] = { root_data };
	void *recv[MAX_GPUS];
	int gpus[MAX_GPUS], n = argc - 2, wrong = 0;
	blinkIndex_t index;
	blinkIndexInfo_t info;
	blinkIndexEntry_t entry;
	blinkSchedule_t sched;
	blinkComm_t comm;
	blinkError_t error;
	if (n < 2 || n > MAX_GPUS) {
		fprintf(stderr, "usage: lookup schedules GPU GPU...\n");
		return blinkInvalidArgument;
	}
	for (int i = 0; i < n; i++) {
		gpus[i] = atoi(argv[2 + i]);
		recv[i] = data[i];
	}
	for (int i = 0; i < COUNT; i++)
		root_data[i] = element(i);

	check(blinkIndexLoad(argv[1], &index, &error), error.text);
	check(blinkIndexGetInfo(index, &info), "");
	check(blinkIndexGetEntry(index, gpus, n, blinkCollBroadcast, 0, &entry, NULL, &error), error.text);
	check(blinkIndexFind(index, gpus, n, blinkCollBroadcast, 0, &sched, &error), error.text);
	check(blinkCommCreate(sched, NULL, &comm, &error), error.text);
	check(blinkRun(comm, send, recv, COUNT, blinkInt32, blinkSum), blinkCommGetError(comm));

	for (int r = 0; r < n; r++)
		for (int i = 0; i < COUNT; i++)
			wrong += data[r][i] != element(i);
	printf("%s, broadcast from %s: %s, trees: %d, %g GB/s: %d wrong\n", info.topology, info.gpus[gpus[0]], entry.file, entry.nTrees,
	    entry.rate, wrong);
	blinkCommDestroy(comm);
	blinkScheduleDestroy(sched);
	blinkIndexDestroy(index);
	return wrong ? blinkUnverified : 0;
}
