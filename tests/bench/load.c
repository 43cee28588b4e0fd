/* What libblink takes before a first call: a job looked up in an index, by its lookup file and without; a schedule file
 * loaded as a whole, and a rank's part of it. CPU time and memory, each in a process of its own. Nothing is asserted.
 *
 *	load index DIRECTORY	of `blinkc batch`, with a lookup file, which is away meanwhile
 *	load schedule FILE... */
#include "choose/choose.h"
#include "choose/index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static blinkError_t error;

static bool
look_up(const char *directory)
{
	static const int gpus[] = { 0, 1, 2 };
	blinkIndex_t index;
	blinkIndexEntry_t entry;
	return blinkIndexLoad(directory, &index, &error) == blinkSuccess
	    && blinkIndexGetEntry(index, gpus, 3, blinkCollAllReduce, 0, &entry, NULL, &error) == blinkSuccess;
}

static bool
load(const char *path)
{
	blinkSchedule_t sched;
	return blinkScheduleLoad(path, &sched, &error) == blinkSuccess;
}

/* Of the last rank. */
static bool
load_part(const char *path, int n_ranks)
{
	static Ctx ctx;
	struct library *lib;
	Status status = library_open_part(&ctx, path, 0, n_ranks, n_ranks - 1, &lib);
	snprintf(error.text, sizeof error.text, "%.500s", ctx.error.text);
	return status == OK;
}

/* Ranks of a schedule file; others than blinkc's are not needed here. */
static int
ranks_of(const char *path)
{
	int n[2], ranks = 0;
	if (pipe(n) != 0)
		return 0;
	if (fork() == 0) {
		blinkSchedule_t sched;
		blinkScheduleInfo_t info = { .nRanks = 0 };
		if (blinkScheduleLoad(path, &sched, &error) == blinkSuccess)
			blinkScheduleGetInfo(sched, &info);
		_exit(write(n[1], &info.nRanks, sizeof info.nRanks) != sizeof info.nRanks);
	}
	if (read(n[0], &ranks, sizeof ranks) != sizeof ranks)
		ranks = 0;
	wait(NULL);
	return ranks;
}

/* ranks: of a part; 0: the whole schedule; -1: an index. */
static int
row(const char *what, const char *path, int ranks)
{
	struct rusage used;
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		bool good = ranks < 0 ? look_up(path) : ranks ? load_part(path, ranks) : load(path);
		if (!good)
			fprintf(stderr, "load: %s\n", error.text);
		_exit(!good);
	}
	if (child < 0 || wait4(child, &status, 0, &used) < 0 || status != 0)
		return 1;
	double ms = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3
	    + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
	printf("%-44s %9.1f %9.1f\n", what, ms, (double)used.ru_maxrss / 1024);
	return 0;
}

static int
rows_of_index(const char *directory)
{
	char lookup[500], away[sizeof lookup + 8];
	snprintf(lookup, sizeof lookup, "%s/index.lookup", directory);
	snprintf(away, sizeof away, "%s.away", lookup);
	int failed = row("a job in an index, by index.lookup", directory, -1);
	if (rename(lookup, away) != 0)
		return 1;
	failed += row("the same by index.json", directory, -1);
	return failed + (rename(away, lookup) != 0);
}

int
main(int argc, char **argv)
{
	int failed = argc < 3;
	printf("%-44s %9s %9s\n", "", "CPU ms", "peak MiB");
	for (int i = 2; i < argc && strcmp(argv[1], "index") == 0; i++)
		failed += rows_of_index(argv[i]);
	for (int i = 2; i < argc && strcmp(argv[1], "schedule") == 0; i++) {
		const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
		int ranks = ranks_of(argv[i]);
		char what[100];
		snprintf(what, sizeof what, "%.40s, %d ranks: all", name, ranks);
		failed += row(what, argv[i], 0);
		snprintf(what, sizeof what, "%.40s, %d ranks: one's part", name, ranks);
		failed += row(what, argv[i], ranks);
	}
	return failed > 0;
}
