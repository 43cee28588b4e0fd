/* The search for a chunk size: on curves with one best size it ends near it, within few trials; it ends on any input;
 * and what a tuner's file keeps is what it reads. */
#include "tap.h"
#include "tune/tuner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds by chunk: a curve with its least at `at`, as start-up against filling a pipeline makes it:
 * c / at + at / c. */
static int64_t
search(double at, int64_t most, int *trials)
{
	struct miad m;
	miad_start(&m, most);
	while (!m.settled && m.trials < 100) {
		double c = (double)m.chunk;
		miad_report(&m, c / at + at / c);
	}
	*trials = m.trials;
	return m.chunk;
}

static void
test_curves(void)
{
	bool near = true, few = true, ends = true;
	int trials;
	for (double at = 12e3; at < 14e6; at *= 1.37) {
		double c = (double)search(at, (int64_t)1 << 30, &trials), cost = c / at + at / c;
		double least = at < MIAD_LEAST ? MIAD_LEAST / at + at / MIAD_LEAST : 2;
		near = near && cost < 1.10 * least;
		few = few && trials <= 20;
	}
	ok(near, "within a tenth of the least time, wherever that is");
	ok(few, "at most 20 trials");
	srand(1);
	for (int i = 0; i < 2000; i++) {
		struct miad m;
		miad_start(&m, 1 + rand());
		while (!m.settled && m.trials < 200)
			miad_report(&m, rand() / 1e9);
		ends = ends && m.settled && m.chunk >= MIAD_LEAST && m.chunk <= MIAD_MOST;
	}
	ok(ends, "ends on noise");
	struct miad m;
	miad_start(&m, 1 << 24);
	miad_report(&m, 1);
	miad_report(&m, 0.99);
	ok(m.best == MIAD_LEAST && m.lowers, "a hundredth is noise");
	struct miad small;
	miad_start(&small, 1000);
	ok(small.settled && small.chunk == MIAD_LEAST, "a small message is not searched");
}

/* Two ranks that see other times stay together, since they agree before they report. */
static void
test_tuner(void)
{
	struct tuner *t[2] = { calloc(1, sizeof *t[0]), calloc(1, sizeof *t[1]) };
	bool together = true;
	int agreements = 0;
	int64_t now = 0;
	for (int call = 0; call < 200; call++) {
		int64_t chunk[2], bytes = (1 << 20) + call;
		struct search *s[2] = { tuner_find(t[0], ALLREDUCE, bytes), tuner_find(t[1], ALLREDUCE, bytes) };
		bool go[2];
		for (int r = 0; r < 2; r++)
			go[r] = tuner_begin(t[r], s[r], bytes, now, &chunk[r]);
		together = together && go[0] == go[1];
		if (!go[0]) {
			double all = t[0]->mine > t[1]->mine ? t[0]->mine : t[1]->mine;
			t[0]->all = t[1]->all = all;
			agreements++;
			for (int r = 0; r < 2; r++)
				together = tuner_begin(t[r], s[r], bytes, now, &chunk[r]) && together;
		}
		together = together && chunk[0] == chunk[1];
		for (int r = 0; r < 2; r++)
			tuner_end(t[r], now + 1000 + llabs(chunk[r] - (r ? 200000 : 20000)));
		now += 1000000;
	}
	ok(together && agreements > 3, "ranks use the same sizes");
	ok(tuner_find(t[0], ALLREDUCE, 1 << 20)->miad.settled && !tuner_find(t[0], BROADCAST, 1 << 20)->began,
	    "each collective and size is searched by itself, and settles");
	free(t[0]);
	free(t[1]);
}

/* Noise makes calls longer, never shorter. */
static void
test_trial(void)
{
	struct tuner *t = calloc(1, sizeof *t);
	struct search *s = tuner_find(t, ALLREDUCE, 1 << 20);
	static const int64_t took[TUNER_CALLS] = { 5000, 1000, 9000 };
	int64_t chunk;
	for (int i = 0; i < TUNER_CALLS; i++) {
		tuner_begin(t, s, 1 << 20, 0, &chunk);
		tuner_end(t, took[i]);
	}
	ok(!tuner_begin(t, s, 1 << 20, 0, &chunk) && fabs(t->mine - 1e-6) < 1e-9, "a trial is its shortest call");
	free(t);
}

static void
test_file(void)
{
	char path[] = "/tmp/blink-chunks-XXXXXX";
	TunerChunks *a = calloc(2, sizeof *a);
	Ctx ctx;
	ctx_init(&ctx);
	int fd = mkstemp(path);
	close(fd);
	unlink(path);
	ok(tuner_load(&ctx, path, 8, 1, a[1]) == OK && a[1][ALLREDUCE][20] == 0, "no file: nothing is known");
	a[0][ALLREDUCE][20] = 65536;
	a[0][GATHER][3] = 16384;
	ok(tuner_save(&ctx, path, 8, 1, a[0]) == OK, "written");
	a[0][ALLREDUCE][20] = 131072;
	ok(tuner_save(&ctx, path, 4, 2, a[0]) == OK, "written for another job");
	ok(tuner_load(&ctx, path, 8, 1, a[1]) == OK && a[1][ALLREDUCE][20] == 65536 && a[1][GATHER][3] == 16384
	    && a[1][GATHER][4] == 0, "what was written is read");
	ok(tuner_load(&ctx, path, 4, 2, a[1]) == OK && a[1][ALLREDUCE][20] == 131072, "of each job its own");
	FILE *f = fopen(path, "w");
	fputs("{\"format\":\"blink-chunks\",\"version\":1,\"chunks\":[{\"ranks\":8,\"servers\":1,"
	    "\"collective\":\"dance\",\"log2_bytes\":1,\"chunk_bytes\":1}]}", f);
	fclose(f);
	ok(tuner_load(&ctx, path, 8, 1, a[1]) == BAD_INPUT && strstr(ctx.error.text, "dance"), "a bad file is refused");
	unlink(path);
	free(a);
	ctx_free(&ctx);
}

int
main(void)
{
	test_curves();
	test_tuner();
	test_trial();
	test_file();
	return end_tests();
}
