#include "support/debug.h"
#include "base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {
	[DEBUG_NONE] = "NONE", [DEBUG_SETTING] = "WARN", [DEBUG_WARN] = "WARN", [DEBUG_INFO] = "INFO",
	[DEBUG_TRACE] = "TRACE"
};

enum { N_LEVELS = sizeof level_names / sizeof *level_names, UNREAD = -1, LINE = 1024 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int level = UNREAD;		/* atomic */
static int file = STDERR_FILENO;	/* atomic */
static char host[64];

/* ---- lines ---- */

/* A reader that has gone is no reason for the job to end by SIGPIPE. */
static ssize_t
write_quietly(int fd, const char *data, size_t size)
{
	sigset_t pipe, pending, before;
	const struct timespec now = { 0, 0 };
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	ssize_t n;
	do
		n = write(fd, data, size);
	while (n < 0 && errno == EINTR);
	int error = errno;
	if (n < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return n;
}

/* "host:pid:tid [rank] BLINK INFO ", and how much of it fits. */
static size_t
put_head(char *line, enum debug_level at, int rank)
{
	char of_rank[16] = "";
	if (rank >= 0)
		snprintf(of_rank, sizeof of_rank, " [%d]", rank);
	return (size_t)snprintf(line, LINE, "%s:%d:%ld%s BLINK %s ", host, (int)getpid(), syscall(SYS_gettid), of_rank,
	    level_names[at]);
}

/* One write for a line, so that lines of threads and processes do not mix. */
static void
put_line(int fd, enum debug_level at, int rank, const char *format, va_list args)
{
	char line[LINE + 1];
	size_t n = put_head(line, at, rank);
	vsnprintf(line + n, LINE - n, format, args);
	make_printable(line + n);
	n += strlen(line + n);
	line[n++] = '\n';
	ssize_t put = write_quietly(fd, line, n);
	if (put < 0 && errno != EAGAIN && fd != STDERR_FILENO) {
		__atomic_store_n(&file, STDERR_FILENO, __ATOMIC_RELAXED);
		write_quietly(STDERR_FILENO, line, n);
	}
}

static void
say(enum debug_level at, int rank, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	put_line(__atomic_load_n(&file, __ATOMIC_RELAXED), at, rank, format, args);
	va_end(args);
}

/* ---- the environment ---- */

/* %h and %p; another % stands for itself. False: too long. */
static bool
expand(const char *pattern, char *out, size_t room)
{
	size_t n = 0;
	for (const char *at = pattern; *at && n < room; at++) {
		bool named = at[0] == '%' && (at[1] == 'h' || at[1] == 'p');
		if (!named)
			out[n++] = *at;
		else if (*++at == 'h')
			n += (size_t)snprintf(out + n, room - n, "%s", host);
		else
			n += (size_t)snprintf(out + n, room - n, "%d", (int)getpid());
	}
	if (n >= room)
		return false;
	out[n] = '\0';
	return true;
}

/* A pipe that nobody reads is an error, not a wait. */
static void
open_file(const char *pattern)
{
	char path[1024];
	if (!expand(pattern, path, sizeof path)) {
		say(DEBUG_WARN, -1, "BLINK_DEBUG_FILE: longer than %d bytes: messages go to standard error",
		    (int)sizeof path - 1);
		return;
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
	if (fd < 0)
		say(DEBUG_WARN, -1, "BLINK_DEBUG_FILE: %s: %s: messages go to standard error", path, strerror(errno));
	else
		__atomic_store_n(&file, fd, __ATOMIC_RELAXED);
}

static void
read_environment(void)
{
	const char *wanted = getenv("BLINK_DEBUG"), *path = secure_getenv("BLINK_DEBUG_FILE");
	int found = DEBUG_SETTING;
	if (gethostname(host, sizeof host - 1) != 0 || !*host)
		strcpy(host, "localhost");
	host[strcspn(host, ".")] = '\0';
	if (wanted && *wanted) {
		found = N_LEVELS - 1;
		while (found >= 0 && strcasecmp(level_names[found], wanted) != 0)
			found--;
		if (found != DEBUG_NONE && path && *path)
			open_file(path);
		if (found < 0) {
			found = DEBUG_WARN;
			say(DEBUG_WARN, -1, "BLINK_DEBUG: \"%.100s\": want NONE, WARN, INFO or TRACE", wanted);
		}
	}
	__atomic_store_n(&level, found, __ATOMIC_RELEASE);
}

int
debug_on(enum debug_level at)
{
	int now = __atomic_load_n(&level, __ATOMIC_ACQUIRE);
	if (now == UNREAD) {
		pthread_once(&once, read_environment);
		now = __atomic_load_n(&level, __ATOMIC_ACQUIRE);
	}
	return at != DEBUG_NONE && (int)at <= now;
}

void
debug_say(enum debug_level at, int rank, const char *format, ...)
{
	va_list args;
	int error = errno;
	if (debug_on(at)) {
		va_start(args, format);
		put_line(__atomic_load_n(&file, __ATOMIC_RELAXED), at, rank, format, args);
		va_end(args);
	}
	errno = error;
}
