/* Preloaded into a program, to run it many times and let an allocation fail in each. Before main, it reads requests
 * from standard input until there are no more, and forks for each: the number of the allocation to fail (-1: none),
 * and whether all later ones fail, too. The exit status, as of waitpid, is the answer on standard output. What the
 * program itself writes goes to the files $OOM.out and $OOM.err; two numbers to $OOM.count: allocations tried, and
 * blocks that are not freed. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds of CPU time, for a program that never ends. */
enum { CPU_LIMIT = 60 };

static char count_path[PATH_MAX];
static atomic_long calls, live;
static long at = -1;
static int on;

static void
redirect(int fd, const char *prefix, const char *suffix, int flags)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s", prefix, suffix);
	int file = open(path, flags, 0666);
	if (file < 0 || dup2(file, fd) < 0)
		_exit(126);
	close(file);
}

static void
become_program(const char *prefix, const long request[2])
{
	const struct rlimit limit = { CPU_LIMIT, CPU_LIMIT };
	setrlimit(RLIMIT_CPU, &limit);
	redirect(0, "/dev/null", "", O_RDONLY);
	redirect(1, prefix, ".out", O_WRONLY | O_CREAT | O_TRUNC);
	redirect(2, prefix, ".err", O_WRONLY | O_CREAT | O_TRUNC);
	snprintf(count_path, sizeof count_path, "%s.count", prefix);
	on = request[1] != 0;
	atomic_store(&calls, 0);
	at = request[0];
}

__attribute__((constructor)) static void
serve(void)
{
	const char *prefix = getenv("OOM");
	long request[2];
	while (prefix && read(0, request, sizeof request) == sizeof request) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			become_program(prefix, request);
			return;
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || write(1, &status, sizeof status) != sizeof status)
			_exit(126);
	}
	if (prefix)
		_exit(0);
}

__attribute__((destructor)) static void
report(void)
{
	long n = atomic_load(&calls), left = atomic_load(&live);
	at = -1;
	FILE *file = *count_path ? fopen(count_path, "w") : NULL;
	if (file) {
		fprintf(file, "%ld %ld\n", n, left);
		fclose(file);
	}
}

static int
fails(void)
{
	long n = atomic_fetch_add(&calls, 1);
	return at >= 0 && (n == at || (on && n > at));
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
void free(void *p);

static void *
counted(void *p)
{
	if (p)
		atomic_fetch_add(&live, 1);
	return p;
}

void *
malloc(size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return counted(__libc_malloc(size));
}

void *
calloc(size_t n, size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return counted(__libc_calloc(n, size));
}

void *
realloc(void *p, size_t size)
{
	if (fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return p ? __libc_realloc(p, size) : counted(__libc_realloc(p, size));
}

void
free(void *p)
{
	if (p)
		atomic_fetch_sub(&live, 1);
	__libc_free(p);
}
