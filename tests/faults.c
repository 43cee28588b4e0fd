/* Preloaded into a program, to run it many times and let one system call fail in each, as oom.c does with allocations.
 * Before main, it reads requests from standard input until there are no more, and forks for each: the number of the
 * call to fail (-1: none), and how. The exit status, as of waitpid, is the answer on standard output. What the program
 * writes goes to the files $FAULTS.out and $FAULTS.err; a line for each call that it or a child of it makes, with the
 * path that it is about, to $FAULTS.log. Calls that libc makes by itself, as for stdio, are not seen. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds: of CPU time, and until a program that waits for ever is killed. */
enum { CPU_LIMIT = 60, ALARM = 100 };

/* A count that is smaller than asked for, or an error; the numbers are those of suite/faults.sh. */
enum { NONE, SHORT };
static const int errors[] = { 0, 0, EINTR, EIO, ENOSPC, EAGAIN };

static atomic_long *calls;	/* shared with children */
static long at = -1;
static int how;
static int log_fd = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void
redirect(int fd, const char *prefix, const char *suffix, int flags)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s", prefix, suffix);
	int file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0666);
	if (file < 0 || dup2(file, fd) < 0)
		_exit(126);
	syscall(SYS_close, file);
}

static void
become_program(const char *prefix, const long request[2])
{
	const struct rlimit limit = { CPU_LIMIT, CPU_LIMIT };
	char path[PATH_MAX];
	setrlimit(RLIMIT_CPU, &limit);
	alarm(ALARM);
	redirect(0, "/dev/null", "", O_RDONLY);
	redirect(1, prefix, ".out", O_WRONLY | O_CREAT | O_TRUNC);
	redirect(2, prefix, ".err", O_WRONLY | O_CREAT | O_TRUNC);
	snprintf(path, sizeof path, "%s.log", prefix);
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	log_fd = fcntl(fd, F_DUPFD_CLOEXEC, 500);
	syscall(SYS_close, fd);
	atomic_store(calls, 0);
	how = (int)request[1];
	at = request[0];
}

__attribute__((constructor)) static void
serve(void)
{
	const char *prefix = getenv("FAULTS");
	long request[2];
	if (!prefix)
		return;
	calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	while (syscall(SYS_read, 0, request, sizeof request) == sizeof request) {
		int status;
		pid_t pid = REAL(fork)();
		if (pid == 0) {
			become_program(prefix, request);
			return;
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid
		    || syscall(SYS_write, 1, &status, sizeof status) != sizeof status)
			_exit(126);
	}
	_exit(0);
}

/* The fault of this call, 0 for none. path: NULL: that of fd, if there is one. */
static int
fault(const char *name, int fd, const char *path)
{
	char line[2 * PATH_MAX], of[PATH_MAX] = "", link[64];
	if (log_fd < 0)
		return NONE;
	long n = atomic_fetch_add(calls, 1);
	if (!path && fd >= 0) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, of, sizeof of - 1);
		of[size > 0 ? size : 0] = 0;
	}
	int size = snprintf(line, sizeof line, "%s %s%s\n", name, path ? path : of, n == at ? " FAULT" : "");
	syscall(SYS_write, log_fd, line, (size_t)size);
	if (n != at)
		return NONE;
	errno = errors[how];
	return how;
}

#define COUNTED(name, parameters, arguments)                                                 \
	ssize_t name parameters;                                                                                       \
	ssize_t name parameters                                                                                        \
	{                                                                                                              \
		int f = fault(#name, fd, NULL);                                                                        \
		if (f == SHORT && size > 1)                                                                            \
			size = (size + 1) / 2;                                                                         \
		return f > SHORT ? -1 : REAL(name) arguments;                                                          \
	}
COUNTED(read, (int fd, void *buffer, size_t size), (fd, buffer, size))
COUNTED(write, (int fd, const void *buffer, size_t size), (fd, buffer, size))
COUNTED(pread, (int fd, void *buffer, size_t size, off_t from), (fd, buffer, size, from))
COUNTED(pwrite, (int fd, const void *buffer, size_t size, off_t to), (fd, buffer, size, to))

/* A call that fails and does nothing. */
#define PLAIN(type, bad, name, fd, path, parameters, arguments)                                                        \
	type name parameters;                                                                                          \
	type name parameters                                                                                           \
	{                                                                                                              \
		return fault(#name, fd, path) > SHORT ? bad : REAL(name) arguments;                                    \
	}
PLAIN(int, -1, fsync, fd, NULL, (int fd), (fd))
PLAIN(int, -1, syncfs, fd, NULL, (int fd), (fd))
PLAIN(int, -1, fchmod, fd, NULL, (int fd, mode_t mode), (fd, mode))
PLAIN(int, -1, flock, fd, NULL, (int fd, int operation), (fd, operation))
PLAIN(int, -1, rename, -1, to, (const char *from, const char *to), (from, to))
PLAIN(int, -1, mkdir, -1, path, (const char *path, mode_t mode), (path, mode))
PLAIN(int, -1, mkostemp, -1, path, (char *path, int flags), (path, flags))
PLAIN(int, -1, pipe2, -1, NULL, (int fd[2], int flags), (fd, flags))
PLAIN(pid_t, -1, fork, -1, NULL, (void), ())
PLAIN(DIR *, NULL, opendir, -1, path, (const char *path), (path))
PLAIN(struct dirent *, NULL, readdir, dirfd(dir), NULL, (DIR *dir), (dir))
PLAIN(int, -1, stat, -1, path, (const char *path, struct stat *out), (path, out))
PLAIN(int, -1, fstat, fd, NULL, (int fd, struct stat *out), (fd, out))

int open(const char *path, int flags, ...);
int
open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return fault("open", -1, path) > SHORT ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int __open_2(const char *path, int flags);
int
__open_2(const char *path, int flags)
{
	return open(path, flags);
}

/* The descriptor is closed, whatever is returned. */
int
close(int fd)
{
	int f = fault("close", fd, NULL), error = errno, result = (int)syscall(SYS_close, fd);
	if (f <= SHORT)
		return result;
	errno = error;
	return -1;
}

int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	int f = fault("pthread_create", -1, "");
	return f > SHORT ? errors[f] : REAL(pthread_create)(thread, attr, start, arg);
}
