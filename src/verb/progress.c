#include "verb/progress.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

#define HOUR INT64_C(3600000)	/* ms */

enum { SHOW_AFTER = 500, SHOW_EVERY = 100, BAR = 30 };	/* ms, ms, characters */

static struct {
	int64_t start, limit;	/* ms; limit 0: an hour */
	bool terminal;
	int64_t shown;		/* when a line was last shown; 0: none is there */
	const char *bar;	/* what the last bar was of, and since when */
	int64_t bar_start;
} watch;

static int64_t
now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void
progress_start(bool terminal)
{
	watch.start = now_ms();
	watch.terminal = terminal;
}

void
progress_limit(int64_t ms)
{
	watch.limit = ms;
}

int64_t
progress_budget(void)
{
	return watch.limit ? watch.limit : HOUR;
}

int64_t
progress_ms(void)
{
	return now_ms() - watch.start;
}

void
progress_hide(void)
{
	if (watch.shown)
		fprintf(stderr, "\r\033[K");
	watch.shown = 0;
}

/* Is it time for another line? */
static bool
due(int64_t now)
{
	if (!watch.terminal || now - watch.start <= SHOW_AFTER || now - watch.shown <= SHOW_EVERY)
		return false;
	watch.shown = now;
	return true;
}

int
progress_step(void *of, const char *line)
{
	(void)of;
	int64_t now = now_ms(), left = watch.start + progress_budget() - now;
	if (line && due(now))
		fprintf(stderr, "\r\033[K%.70s, %.1f s", line, (double)(now - watch.start) / 1000);
	return (int)left;
}

void
progress_bar(const char *what, int64_t n, int64_t all)
{
	int64_t now = now_ms();
	char bar[BAR + 1] = { 0 };
	if (watch.bar != what) {
		watch.bar = what;
		watch.bar_start = watch.bar_start ? now : watch.start;
	}
	int64_t passed = now - watch.bar_start;
	if (!due(now))
		return;
	for (int i = 0; i < BAR; i++)
		bar[i] = (int64_t)i * all < n * BAR ? '#' : '.';
	fprintf(stderr, "\r\033[K%s [%s] %lld of %lld, %.1f s", what, bar, (long long)n, (long long)all,
	    (double)passed / 1000);
	if (n > 0 && n < all)
		fprintf(stderr, ", about %.1f s left", (double)passed / 1000 * (double)(all - n) / (double)n);
}
