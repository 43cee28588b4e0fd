/* Ranks of a job for tests of the bootstrap: threads of this process, or processes of their own. */
#include "bootstrap/bootstrap.h"
#include "bootstrap/hub.h"
#include "bootstrap/interface.h"
#include "bootstrap/wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 16 };
#define MS INT64_C(1000000)

/* A rank, and what it has heard. */
struct rank {
	int n, number;
	blinkUniqueId_t id;
	struct bootstrap *b;
	struct blink_error err;
	pthread_t thread;
	pthread_mutex_t lock;
	int n_failed, code, culprit;
	char text[512];
	int64_t heard_at;
	int n_left;
	uint64_t calls[RANKS];		/* with which each has left, plus 1 */
	struct rank_status status;
	int (*play)(struct rank *);	/* what it does once it is part of the job */
	int64_t patience;		/* to join, ns */
	int result;
};

static int n_tests, n_bad;

BLINK_FN __attribute__((format(printf, 2, 3))) void
ok(bool good, const char *format, ...)
{
	char what[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	n_tests++;
	n_bad += !good;
	printf("%sok %d - %s\n", good ? "" : "not ", n_tests, what);
	fflush(stdout);
}

BLINK_FN void
on_failed(void *context, int code, int culprit, const char *text)
{
	struct rank *r = context;
	pthread_mutex_lock(&r->lock);
	if (r->n_failed++ == 0) {
		r->code = code;
		r->culprit = culprit;
		snprintf(r->text, sizeof r->text, "%s", text);
		r->heard_at = now_ns();
	}
	pthread_mutex_unlock(&r->lock);
}

BLINK_FN void
on_left(void *context, int rank, uint64_t calls)
{
	struct rank *r = context;
	pthread_mutex_lock(&r->lock);
	r->n_left++;
	r->calls[rank] = calls + 1;
	pthread_mutex_unlock(&r->lock);
}

BLINK_FN void
on_ask(void *context, struct rank_status *out)
{
	struct rank *r = context;
	pthread_mutex_lock(&r->lock);
	*out = r->status;
	pthread_mutex_unlock(&r->lock);
}

BLINK_FN void
rank_init(struct rank *r, const blinkUniqueId_t *id, int n, int number, int64_t patience)
{
	*r = (struct rank){ .n = n, .number = number, .id = *id, .patience = patience, .culprit = -2 };
	pthread_mutex_init(&r->lock, NULL);
}

/* Joins with its number as contribution, and finds that of all. */
BLINK_FN int
rank_join(struct rank *r)
{
	struct bootstrap_events events = { r, on_failed, on_left, on_ask };
	int64_t mine[2] = { r->number, r->n }, all[RANKS][2];
	int code = bootstrap_join(&r->id, NULL, r->n, r->number, mine, sizeof mine, all, now_ns() + r->patience,
	    &events, &r->b, &r->err);
	for (int i = 0; code == blinkSuccess && i < r->n; i++)
		if (all[i][0] != i || all[i][1] != r->n)
			return -1;
	return code;
}

BLINK_FN bool
has_failed(struct rank *r)
{
	pthread_mutex_lock(&r->lock);
	bool failed = r->n_failed;
	pthread_mutex_unlock(&r->lock);
	return failed;
}

BLINK_FN void
nap(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	nanosleep(&t, NULL);
}

/* The failure is heard within that time. */
BLINK_FN bool
hears(struct rank *r, int64_t within)
{
	for (int64_t end = now_ns() + within; now_ns() < end; nap(MS))
		if (has_failed(r))
			return true;
	return has_failed(r);
}

BLINK_FN void *
rank_run(void *of)
{
	struct rank *r = of;
	r->result = rank_join(r);
	if (r->result == blinkSuccess && r->play)
		r->result = r->play(r);
	return NULL;
}

BLINK_FN void
ranks_start(struct rank *r, int n)
{
	for (int i = 0; i < n; i++)
		if (pthread_create(&r[i].thread, NULL, rank_run, &r[i]))
			abort();
}

BLINK_FN void
ranks_end(struct rank *r, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(r[i].thread, NULL);
}

/* n ranks as threads. */
BLINK_FN void
job(struct rank *r, const blinkUniqueId_t *id, int n, int64_t patience, int (*play)(struct rank *))
{
	for (int i = 0; i < n; i++) {
		rank_init(&r[i], id, n, i, patience);
		r[i].play = play;
	}
	ranks_start(r, n);
	ranks_end(r, n);
}

/* All ranks of a job have come, and stay. */
BLINK_FN bool
job_stays(struct rank *r, const blinkUniqueId_t *id, int n)
{
	job(r, id, n, 20000 * MS, NULL);
	for (int i = 0; i < n; i++)
		if (r[i].result != blinkSuccess)
			printf("# rank %d: %s\n", i, r[i].err.text);
		else if (i == n - 1)
			return true;
	return false;
}

BLINK_FN void
all_leave(struct rank *r, int n)
{
	for (int i = 0; i < n; i++) {
		bootstrap_leave(r[i].b, 0);
		r[i].b = NULL;
	}
}

/* ranks[n] at the end of a job: their results all `code` */
BLINK_FN bool
all_are(const struct rank *r, int n, int code)
{
	for (int i = 0; i < n; i++)
		if (r[i].result != code) {
			printf("# rank %d: %d %s %s\n", i, r[i].result, r[i].err.text, r[i].text);
			return false;
		}
	return true;
}

/* All of them but `except` hear of this failure, of which the text has that. */
BLINK_FN bool
all_hear(struct rank *r, int n, int except, int code, int culprit, const char *text)
{
	bool good = true;
	for (int i = 0; i < n; i++) {
		if (i == except)
			continue;
		bool heard = hears(&r[i], 10000 * MS);
		pthread_mutex_lock(&r[i].lock);
		if (!heard || r[i].n_failed != 1 || r[i].code != code || r[i].culprit != culprit ||
		    !strstr(r[i].text, text)) {
			printf("# rank %d: %d times code %d, rank %d: %s\n", i, r[i].n_failed, r[i].code, r[i].culprit,
			    r[i].text);
			good = false;
		}
		pthread_mutex_unlock(&r[i].lock);
	}
	return good;
}

BLINK_FN blinkUniqueId_t
new_id(void)
{
	blinkUniqueId_t id;
	struct blink_error err;
	if (bootstrap_make_id("lo", NULL, &id, &err) != blinkSuccess) {
		printf("not ok - make_id: %s\n", err.text);
		exit(1);
	}
	return id;
}
