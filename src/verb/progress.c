/* One line on a terminal, written anew in its place. It is shorter than the terminal is wide, so that it takes one row,
 * and the cursor then goes back to its first column. So what there is to erase is at the cursor and below, also if the
 * terminal has become narrower and has broken the line into several: nothing above is touched, nothing below stays. */
#include "verb/progress.h"
#include "base/printable.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define HOUR INT64_C(3600000)	/* ms */

enum { SHOW_AFTER = 500, SHOW_EVERY = 100, BAR = 30 };	/* ms, ms, characters */
enum { USUAL_WIDTH = 80, LEAST_WIDTH = 8, LINE_ROOM = 1024 };	/* columns, columns, bytes */

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

/* Erase from the first column on, and all rows below. */
#define ERASE "\r\033[J"

void
progress_hide(void)
{
	if (watch.shown)
		fputs(ERASE, stderr);
	watch.shown = 0;
}

/* Columns that a line may take. It is asked each time, as the width may change. */
static int
free_columns(void)
{
	struct winsize size;
	bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
	return (known ? size.ws_col : USUAL_WIDTH) - 1;
}

/* `line`, cut so that all of `end` has room behind it. */
static void
show(const char *line, const char *end)
{
	char text[LINE_ROOM];
	int columns = free_columns(), taken;
	if (columns < LEAST_WIDTH)
		return;
	size_t n = bytes_of_columns(end, columns, &taken);
	int head = (int)bytes_of_columns(line, columns - taken, &taken);
	/* In one piece, as others may write to the terminal, too. */
	snprintf(text, sizeof text, ERASE "%.*s%.*s\r", head, line, (int)n, end);
	fputs(text, stderr);
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
	char end[32];
	if (line && due(now)) {
		snprintf(end, sizeof end, ", %.1f s", (double)(now - watch.start) / 1000);
		show(line, end);
	}
	return (int)left;
}

/* " 12 of 40, 1.5 s, about 3.5 s left", in up to so many columns. */
static void
put_numbers(char *out, size_t room, int64_t n, int64_t all, double seconds, int columns)
{
	int used = snprintf(out, room, " %lld of %lld, %.1f s", (long long)n, (long long)all, seconds);
	char left[48] = "";
	if (n > 0 && n < all)
		snprintf(left, sizeof left, ", about %.1f s left", seconds * (double)(all - n) / (double)n);
	if (used + (int)strlen(left) <= columns)
		snprintf(out + used, room - (size_t)used, "%s", left);
}

/* " [####....]", with as many characters as there is room for; or nothing. */
static void
put_bar(char *out, size_t room, int64_t n, int64_t all, int columns)
{
	int size = columns - 3 < BAR ? columns - 3 : BAR;
	*out = 0;
	if (size < 3)
		return;
	char bar[BAR + 1] = { 0 };
	for (int i = 0; i < size; i++)
		bar[i] = (int64_t)i * all < n * size ? '#' : '.';
	snprintf(out, room, " [%s]", bar);
}

void
progress_bar(const char *what, int64_t n, int64_t all)
{
	int64_t now = now_ms();
	if (watch.bar != what) {
		watch.bar = what;
		watch.bar_start = watch.bar_start ? now : watch.start;
	}
	int64_t passed = now - watch.bar_start;
	if (!due(now))
		return;
	char bar[BAR + 8], numbers[128], end[sizeof bar + sizeof numbers];
	int columns = free_columns() - (int)strlen(what);
	put_numbers(numbers, sizeof numbers, n, all, (double)passed / 1000, columns);
	put_bar(bar, sizeof bar, n, all, columns - (int)strlen(numbers));
	snprintf(end, sizeof end, "%s%s", bar, numbers);
	show(what, end);
}
