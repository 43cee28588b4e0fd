/* System calls that fail, one at a time. Preloaded into a program, it runs it many times, as oom.c does with
 * allocations; linked with a test, it does what that says (faults.h).
 *
 * Preloaded, before main, it reads requests from standard input until there are no more, and forks for each: a struct
 * request. The exit status, as of waitpid, is the answer on standard output. What the program writes goes to the files
 * $FAULTS.out and $FAULTS.err; a line for each call that it or a child of it makes, with the file whose code makes it
 * and the path that it is about, to $FAULTS.log. Calls that libc makes by itself, as for stdio, are not seen. With
 * $FAULTS_TERMINAL standard output and error are called a terminal, and a second passes between two looks at the time.
 *
 * Each function that is here can fail, and with these errors: suite/faults.sh holds this list against what our binaries
 * import, and against what was failed. */
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds: of CPU time, and until a program that waits for ever is killed. */
enum { CPU_LIMIT = 60, ALARM = 100 };

enum { NONE = 0 };

/* Call number `at` of function number `site` fails (-1: none), and how: an errno, or FAULTS_SHORT. So do later calls
 * of function `then`, all; -1: of none. */
struct request {
	long site, at, how, then, then_how;
};

/* Of a program that is run many times. */
static struct state {
	atomic_long calls[FAULTS_SITES], n_then;
	atomic_bool failed;
} *state;				/* shared with children */
static struct request asked = { .site = -1, .then = -1 };
static int log_fd = -1;

/* Of a test. */
static struct faults_plan plan;
static uintptr_t code_begin, code_end;	/* of the library */
static atomic_bool begun;

#define REAL(name) ({                                                                                                  \
	static __typeof__(&name) real;                                                                                 \
	if (!real)                                                                                                     \
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                     \
	real;                                                                                                          \
})
#define raw REAL(syscall)

/* ---- a program ---- */

static void
redirect(int fd, const char *prefix, const char *suffix, int flags)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s%s", prefix, suffix);
	int file = (int)raw(SYS_openat, AT_FDCWD, path, flags, 0666);
	if (file < 0 || dup2(file, fd) < 0)
		_exit(126);
	raw(SYS_close, file);
}

static void
become_program(const char *prefix, const struct request *request)
{
	const struct rlimit limit = { CPU_LIMIT, CPU_LIMIT };
	char path[PATH_MAX];
	setrlimit(RLIMIT_CPU, &limit);
	alarm(ALARM);
	redirect(0, "/dev/null", "", O_RDONLY);
	redirect(1, prefix, ".out", O_WRONLY | O_CREAT | O_TRUNC);
	redirect(2, prefix, ".err", O_WRONLY | O_CREAT | O_TRUNC);
	snprintf(path, sizeof path, "%s.log", prefix);
	int fd = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	log_fd = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 500);
	raw(SYS_close, fd);
	memset(state, 0, sizeof *state);
	asked = *request;
}

__attribute__((constructor)) static void
serve(void)
{
	const char *prefix = getenv("FAULTS");
	struct request request;
	if (!prefix)
		return;
	state = REAL(mmap)(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	while (raw(SYS_read, 0, &request, sizeof request) == sizeof request) {
		int status;
		pid_t pid = REAL(fork)();
		if (pid == 0) {
			become_program(prefix, &request);
			return;
		}
		if (pid < 0 || REAL(waitpid)(pid, &status, 0) != pid
		    || raw(SYS_write, 1, &status, sizeof status) != sizeof status)
			_exit(126);
	}
	_exit(0);
}

static const char *
file_of(const void *code)
{
	Dl_info info = { 0 };
	const char *file = dladdr(code, &info) && info.dli_fname ? info.dli_fname : "?";
	return strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
}

/* FAULTS_IN: only calls of files whose names begin so. */
static bool
is_counted(const void *caller)
{
	const char *only = getenv("FAULTS_IN");
	return log_fd >= 0 && (!only || strncmp(file_of(caller), only, strlen(only)) == 0);
}

/* path: NULL: that of fd, if there is one. */
static void
log_call(const char *name, const void *caller, int fd, const char *path, const char *end)
{
	char line[3 * PATH_MAX], of[PATH_MAX] = "", link[64];
	if (!path && fd >= 0) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		ssize_t size = raw(SYS_readlinkat, AT_FDCWD, link, of, sizeof of - 1);
		of[size > 0 ? size : 0] = 0;
	}
	int size = snprintf(line, sizeof line, "%s %s %s%s\n", name, file_of(caller), path ? path : of,
	    end);
	raw(SYS_write, log_fd, line, (size_t)size);
}

/* ---- a test ---- */

extern struct faults_site __start_faults[], __stop_faults[];

int
faults_sites(void)
{
	return (int)(__stop_faults - __start_faults);
}

struct faults_site *
faults_site(int i)
{
	return &__start_faults[i];
}

static int
find_code(struct dl_phdr_info *info, size_t size, void *library)
{
	const char *name = strrchr(info->dlpi_name, '/');
	(void)size;
	if (!name || strncmp(name + 1, library, strlen(library)) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			code_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			code_end = code_begin + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

void
faults_begin(const struct faults_plan *wanted)
{
	plan = *wanted;
	code_begin = code_end = 0;
	dl_iterate_phdr(find_code, (void *)wanted->library);
	for (int i = 0; i < faults_sites(); i++) {
		struct faults_site *site = faults_site(i);
		atomic_store(&site->calls, 0);
		atomic_store(&site->failed, 0);
		site->chosen = plan.at >= 0 && strcmp(site->name, plan.name) == 0;
		site->also = plan.also && strcmp(site->name, plan.also) == 0;
	}
	atomic_store(&begun, code_end > 0);
}

void
faults_end(void)
{
	atomic_store(&begun, false);
}

/* Call number n from the first on that fails: nobody is interrupted for ever. */
static bool
passes(int error, long n)
{
	return (error == EINTR || error == FAULTS_SHORT) && n % 2;
}

static int
fault_of_test(struct faults_site *site)
{
	long n = atomic_fetch_add(&site->calls, 1);
	int error = site->chosen ? plan.error : plan.also_error;
	long from = site->chosen ? plan.at : 0;
	if (!(site->chosen || site->also) || n < from || (n > from && site->chosen && !plan.on)
	    || passes(error, n - from))
		return NONE;
	if (error == FAULTS_DIES)
		REAL(kill)(getpid(), SIGKILL);
	atomic_fetch_add(&site->failed, 1);
	return error;
}

static int
fault_of_program(struct faults_site *site, const void *caller, int fd, const char *path)
{
	long i = site - __start_faults, n = atomic_fetch_add(&state->calls[i], 1);
	const char *end = "";
	int f = NONE;
	if (i == asked.then && atomic_load(&state->failed)
	    && !passes((int)asked.then_how, atomic_fetch_add(&state->n_then, 1))) {
		f = (int)asked.then_how;
		end = " THEN";
	} else if (i == asked.site && n == asked.at) {
		f = (int)asked.how;
		end = " FAULT";
		atomic_store(&state->failed, true);
	}
	log_call(site->name, caller, fd, path, end);
	return f;
}

/* The fault of this call: NONE, FAULTS_SHORT, or errno, which is set. */
static int
fault(struct faults_site *site, const void *caller, int fd, const char *path)
{
	int before = errno, f = NONE;
	if (atomic_load(&begun) && (uintptr_t)caller - code_begin < code_end - code_begin)
		f = fault_of_test(site);
	else if (is_counted(caller))
		f = fault_of_program(site, caller, fd, path);
	errno = f > 0 ? f : before;
	return f;
}

/* ---- the functions ---- */

#pragma GCC visibility push(default)	/* also of a program: for the libraries that it loads */

#define SITE(function, ...)                                                                                            \
	static struct faults_site site_##function __attribute__((section("faults"), used)) = { .name = #function,      \
		.errors = { __VA_ARGS__ } };
#define ERRORS(...) __VA_ARGS__
#define FAULT(name, fd, path) fault(&site_##name, __builtin_return_address(0), fd, path)

/* A call that fails and does nothing. */
#define FAILS(type, bad, name, errors, fd, path, parameters, arguments)                                                \
	SITE(name, errors)                                                                                             \
	type name parameters;                                                                                          \
	type name parameters                                                                                           \
	{                                                                                                              \
		return FAULT(name, fd, path) > 0 ? bad : REAL(name) arguments;                                         \
	}

/* A count that may be smaller than asked for. The 8 bytes of an eventfd are whole. */
#define COUNTED(name, errors, parameters, arguments)                                                                   \
	SITE(name, FAULTS_SHORT, errors)                                                                               \
	ssize_t name parameters;                                                                                       \
	ssize_t name parameters                                                                                        \
	{                                                                                                              \
		int f = FAULT(name, fd, NULL);                                                                         \
		if (f == FAULTS_SHORT && size > 1 && size != sizeof(uint64_t))                                         \
			size = (size + 1) / 2;                                                                         \
		return f > 0 ? -1 : REAL(name) arguments;                                                              \
	}

/* What it is to undo is undone, whatever is returned. */
#define UNDOES(name, errors, fd, parameters, arguments)                                                                \
	SITE(name, errors)                                                                                             \
	int name parameters;                                                                                           \
	int name parameters                                                                                            \
	{                                                                                                              \
		int f = FAULT(name, fd, NULL), error = errno, result = REAL(name) arguments;                           \
		if (f <= 0)                                                                                            \
			return result;                                                                                 \
		errno = error;                                                                                         \
		return -1;                                                                                             \
	}

/* The error is what it returns. */
#define RETURNS(name, errors, parameters, arguments)                                                                   \
	SITE(name, errors)                                                                                             \
	int name parameters;                                                                                           \
	int name parameters                                                                                            \
	{                                                                                                              \
		int f = FAULT(name, -1, "");                                                                           \
		return f > 0 ? f : REAL(name) arguments;                                                               \
	}

/* files */
COUNTED(read, ERRORS(EINTR, EIO), (int fd, void *buffer, size_t size), (fd, buffer, size))

/* A write to an eventfd of which the counter is not full does not fail. */
static bool
is_event(int fd, size_t size)
{
	char link[64], of[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = size == sizeof(uint64_t) ? raw(SYS_readlinkat, AT_FDCWD, link, of, sizeof of - 1) : 0;
	of[n > 0 ? n : 0] = 0;
	return strstr(of, "eventfd") != NULL;
}

SITE(write, FAULTS_SHORT, EINTR, EIO, ENOSPC, EPIPE)
ssize_t
write(int fd, const void *buffer, size_t size)
{
	int f = is_event(fd, size) ? NONE : FAULT(write, fd, NULL);
	return f > 0 ? -1 : REAL(write)(fd, buffer, f == FAULTS_SHORT && size > 1 ? (size + 1) / 2 : size);
}

COUNTED(pread, ERRORS(EINTR, EIO), (int fd, void *buffer, size_t size, off_t from), (fd, buffer, size, from))
COUNTED(pwrite, ERRORS(EINTR, EIO, ENOSPC), (int fd, const void *buffer, size_t size, off_t to), (fd, buffer, size, to))
UNDOES(close, ERRORS(EINTR, EIO), fd, (int fd), (fd))
UNDOES(closedir, ERRORS(EIO), dirfd(dir), (DIR *dir), (dir))
UNDOES(fclose, ERRORS(EIO, ENOSPC), -1, (FILE *file), (file))

/* A stream into memory that has room does not fail. */
SITE(fflush, EIO, ENOSPC)
int
fflush(FILE *file)
{
	int f = file && fileno(file) < 0 ? NONE : FAULT(fflush, -1, NULL), error = errno, result = REAL(fflush)(file);
	errno = f > 0 ? error : errno;
	return f > 0 ? EOF : result;
}

FAILS(int, -1, fsync, ERRORS(EIO, ENOSPC), fd, NULL, (int fd), (fd))
FAILS(int, -1, syncfs, ERRORS(EIO, ENOSPC), fd, NULL, (int fd), (fd))
FAILS(int, -1, fchmod, ERRORS(EIO), fd, NULL, (int fd, mode_t mode), (fd, mode))
FAILS(int, -1, flock, ERRORS(EINTR, EIO), fd, NULL, (int fd, int operation), (fd, operation))
FAILS(int, -1, ftruncate, ERRORS(ENOSPC, EINTR), fd, NULL, (int fd, off_t size), (fd, size))
FAILS(off_t, -1, lseek, ERRORS(EINVAL), fd, NULL, (int fd, off_t to, int from), (fd, to, from))
FAILS(int, -1, rename, ERRORS(EIO, ENOSPC), -1, to, (const char *from, const char *to), (from, to))
FAILS(int, -1, unlink, ERRORS(EIO), -1, path, (const char *path), (path))
FAILS(int, -1, mkdir, ERRORS(EIO, ENOSPC), -1, path, (const char *path, mode_t mode), (path, mode))
FAILS(int, -1, mkostemp, ERRORS(EIO, ENOSPC), -1, path, (char *path, int flags), (path, flags))
FAILS(int, -1, pipe2, ERRORS(EIO), -1, NULL, (int fd[2], int flags), (fd, flags))
FAILS(DIR *, NULL, opendir, ERRORS(EIO), -1, path, (const char *path), (path))
FAILS(struct dirent *, NULL, readdir, ERRORS(EIO), dirfd(dir), NULL, (DIR *dir), (dir))
FAILS(int, -1, stat, ERRORS(EIO), -1, path, (const char *path, struct stat *out), (path, out))
FAILS(int, -1, lstat, ERRORS(EIO), -1, path, (const char *path, struct stat *out), (path, out))
FAILS(int, -1, fstat, ERRORS(EIO), fd, NULL, (int fd, struct stat *out), (fd, out))
FAILS(int, -1, fstatfs, ERRORS(EIO), fd, NULL, (int fd, struct statfs *out), (fd, out))
FAILS(int, -1, access, ERRORS(EIO), -1, path, (const char *path, int mode), (path, mode))
static bool
has_terminal(void)
{
	return log_fd >= 0 && getenv("FAULTS_TERMINAL");
}

SITE(isatty, ENOTTY)
int
isatty(int fd)
{
	return FAULT(isatty, fd, NULL) > 0 ? 0 : (fd > 0 && fd < 3 && has_terminal()) || REAL(isatty)(fd);
}

int
clock_gettime(clockid_t clock, struct timespec *out)
{
	static atomic_long looks;
	int result = REAL(clock_gettime)(clock, out);
	out->tv_sec += has_terminal() ? atomic_fetch_add(&looks, 1) : 0;
	return result;
}

FAILS(ssize_t, -1, readlink, ERRORS(EIO), -1, path, (const char *path, char *out, size_t size), (path, out, size))
FAILS(char *, NULL, realpath, ERRORS(EIO), -1, path, (const char *path, char *out), (path, out))

/* $FAULTS_PORT: what the kernel has of a port of a NIC. */
SITE(fopen, EMFILE, EIO)
FILE *
fopen(const char *path, const char *mode)
{
	bool port_of_nic = strncmp(path, "/sys/class/infiniband/", 22) == 0 && log_fd >= 0;
	const char *port = port_of_nic ? getenv("FAULTS_PORT") : NULL;
	return FAULT(fopen, -1, path) > 0 ? NULL : REAL(fopen)(port ? port : path, mode);
}

FAILS(FILE *, NULL, fmemopen, ERRORS(ENOMEM), -1, NULL, (void *buffer, size_t size, const char *mode),
    (buffer, size, mode))
FAILS(FILE *, NULL, open_memstream, ERRORS(ENOMEM), -1, NULL, (char **out, size_t *size), (out, size))
FAILS(char *, NULL, fgets, ERRORS(EIO), -1, NULL, (char *out, int size, FILE *file), (out, size, file))

SITE(open, EINTR, EIO, EMFILE)
int open(const char *path, int flags, ...);
int
open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return FAULT(open, -1, path) > 0 ? -1 : (int)raw(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* The fortified names are the same calls. */
int __open_2(const char *path, int flags);
int
__open_2(const char *path, int flags)
{
	return FAULT(open, -1, path) > 0 ? -1 : (int)raw(SYS_openat, AT_FDCWD, path, flags, 0);
}

ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t from, size_t room);
ssize_t
__pread_chk(int fd, void *buffer, size_t size, off_t from, size_t room)
{
	int f = FAULT(pread, fd, NULL);
	if (size > room)
		abort();
	return f > 0 ? -1 : REAL(pread)(fd, buffer, f == FAULTS_SHORT && size > 1 ? (size + 1) / 2 : size, from);
}

SITE(fcntl, EMFILE, EINVAL)
int fcntl(int fd, int command, ...);
int
fcntl(int fd, int command, ...)
{
	va_list args;
	va_start(args, command);
	void *value = va_arg(args, void *);
	va_end(args);
	return FAULT(fcntl, fd, NULL) > 0 ? -1 : REAL(fcntl)(fd, command, value);
}

SITE(ioctl, ENOTTY)
int ioctl(int fd, unsigned long request, ...);
int
ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	va_start(args, request);
	void *value = va_arg(args, void *);
	va_end(args);
	return FAULT(ioctl, fd, NULL) > 0 ? -1 : REAL(ioctl)(fd, request, value);
}

/* memory */
FAILS(void *, MAP_FAILED, mmap, ERRORS(ENOMEM, EPERM), fd, NULL,
    (void *where, size_t size, int how_mapped, int flags, int fd, off_t from),
    (where, size, how_mapped, flags, fd, from))
UNDOES(munmap, ERRORS(ENOMEM), -1, (void *where, size_t size), (where, size))
FAILS(int, -1, madvise, ERRORS(EINVAL, EAGAIN), -1, NULL, (void *where, size_t size, int advice), (where, size, advice))
FAILS(int, -1, memfd_create, ERRORS(EMFILE, ENOMEM, EPERM), -1, NULL, (const char *name, unsigned flags), (name, flags))
FAILS(locale_t, (locale_t)0, newlocale, ERRORS(ENOMEM), -1, NULL, (int mask, const char *name, locale_t base),
    (mask, name, base))
FAILS(int, -1, setenv, ERRORS(ENOMEM), -1, name, (const char *name, const char *value, int replace),
    (name, value, replace))
FAILS(int, -1, unsetenv, ERRORS(EINVAL), -1, name, (const char *name), (name))

/* sockets */
FAILS(int, -1, socket, ERRORS(EMFILE, ENOMEM, EACCES), -1, NULL, (int family, int type, int protocol),
    (family, type, protocol))
FAILS(int, -1, bind, ERRORS(EADDRINUSE, EADDRNOTAVAIL), fd, NULL, (int fd, const struct sockaddr *to, socklen_t size),
    (fd, to, size))
FAILS(int, -1, listen, ERRORS(EADDRINUSE), fd, NULL, (int fd, int backlog), (fd, backlog))
FAILS(int, -1, connect, ERRORS(ECONNREFUSED, EAGAIN, EINTR, EADDRNOTAVAIL, ENETUNREACH), fd, NULL,
    (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
FAILS(int, -1, accept4, ERRORS(EMFILE, ECONNABORTED, EINTR, ENOBUFS), fd, NULL,
    (int fd, struct sockaddr *restrict from, socklen_t *restrict size, int flags), (fd, from, size, flags))
FAILS(int, -1, shutdown, ERRORS(ENOTCONN), fd, NULL, (int fd, int end), (fd, end))
FAILS(int, -1, setsockopt, ERRORS(ENOBUFS, ENOPROTOOPT), fd, NULL,
    (int fd, int level, int option, const void *value, socklen_t size), (fd, level, option, value, size))
FAILS(int, -1, getsockopt, ERRORS(ENOPROTOOPT, ENOBUFS), fd, NULL,
    (int fd, int level, int option, void *restrict value, socklen_t *restrict size), (fd, level, option, value, size))
FAILS(int, -1, getsockname, ERRORS(ENOBUFS), fd, NULL,
    (int fd, struct sockaddr *restrict out, socklen_t *restrict size), (fd, out, size))
COUNTED(send, ERRORS(ECONNRESET, EAGAIN, EINTR, ENOBUFS, EPIPE), (int fd, const void *buffer, size_t size, int flags),
    (fd, buffer, size, flags))
COUNTED(recv, ERRORS(ECONNRESET, EAGAIN, EINTR, ENOMEM), (int fd, void *buffer, size_t size, int flags),
    (fd, buffer, size, flags))

/* A message of its first part alone, or half of that, where there are no descriptors. */
SITE(sendmsg, FAULTS_SHORT, ECONNRESET, EAGAIN, EINTR, ENOBUFS, EPIPE)
ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct msghdr less = *message;
	struct iovec first = less.msg_iovlen ? less.msg_iov[0] : (struct iovec){ 0 };
	int f = FAULT(sendmsg, fd, NULL);
	if (f > 0)
		return -1;
	if (f == NONE || first.iov_len < 2 || message->msg_controllen)
		return REAL(sendmsg)(fd, message, flags);
	first.iov_len = (first.iov_len + 1) / 2;
	less.msg_iov = &first;
	less.msg_iovlen = 1;
	return REAL(sendmsg)(fd, &less, flags);
}

FAILS(ssize_t, -1, recvmsg, ERRORS(ECONNRESET, EAGAIN, EINTR, ENOMEM), fd, NULL,
    (int fd, struct msghdr *message, int flags), (fd, message, flags))

SITE(readv, FAULTS_SHORT, ECONNRESET, EAGAIN, EINTR)
ssize_t
readv(int fd, const struct iovec *parts, int n)
{
	struct iovec first = n > 0 ? parts[0] : (struct iovec){ 0 };
	int f = FAULT(readv, fd, NULL);
	if (f > 0)
		return -1;
	if (f == NONE || first.iov_len < 2)
		return REAL(readv)(fd, parts, n);
	first.iov_len = (first.iov_len + 1) / 2;
	return REAL(readv)(fd, &first, 1);
}

FAILS(int, -1, getifaddrs, ERRORS(EMFILE, ENOMEM), -1, NULL, (struct ifaddrs **out), (out))
FAILS(unsigned, 0, if_nametoindex, ERRORS(ENODEV, EMFILE), -1, name, (const char *name), (name))
FAILS(char *, NULL, if_indextoname, ERRORS(ENXIO, EMFILE), -1, NULL, (unsigned number, char out[IF_NAMESIZE]),
    (number, out))
FAILS(int, -1, gethostname, ERRORS(ENAMETOOLONG), -1, NULL, (char *out, size_t size), (out, size))
FAILS(ssize_t, -1, getrandom, ERRORS(EINTR, EAGAIN, ENOSYS), -1, NULL, (void *out, size_t size, unsigned flags),
    (out, size, flags))

/* events and time */
FAILS(int, -1, epoll_create1, ERRORS(EMFILE, ENOMEM), -1, NULL, (int flags), (flags))
FAILS(int, -1, epoll_ctl, ERRORS(ENOMEM, ENOSPC), fd, NULL,
    (int epoll, int operation, int fd, struct epoll_event *event), (epoll, operation, fd, event))
FAILS(int, -1, epoll_wait, ERRORS(EINTR), epoll, NULL, (int epoll, struct epoll_event *out, int most, int ms),
    (epoll, out, most, ms))
FAILS(int, -1, poll, ERRORS(EINTR, ENOMEM), -1, NULL, (struct pollfd *fds, nfds_t n, int ms), (fds, n, ms))
FAILS(int, -1, ppoll, ERRORS(EINTR, ENOMEM), -1, NULL,
    (struct pollfd *fds, nfds_t n, const struct timespec *most, const sigset_t *mask), (fds, n, most, mask))
FAILS(int, -1, eventfd, ERRORS(EMFILE, ENOMEM), -1, NULL, (unsigned count, int flags), (count, flags))
FAILS(int, -1, nanosleep, ERRORS(EINTR), -1, NULL, (const struct timespec *wanted, struct timespec *left),
    (wanted, left))
FAILS(int, -1, sigtimedwait, ERRORS(EAGAIN, EINTR), -1, NULL,
    (const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict most), (set, info, most))
RETURNS(clock_nanosleep, ERRORS(EINTR),
    (clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left), (clock, flags, wanted, left))
RETURNS(pthread_cond_timedwait, ERRORS(ETIMEDOUT),
    (pthread_cond_t *restrict cond, pthread_mutex_t *restrict lock, const struct timespec *restrict until),
    (cond, lock, until))

/* Of raw system calls only the wait for a futex. */
SITE(syscall, EAGAIN, EINTR)
long
syscall(long number, ...)
{
	long a[6];
	va_list args;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	bool wait = number == SYS_futex && (a[1] & 127) == 0;
	if (wait && FAULT(syscall, -1, "futex") > 0)
		return -1;
	return raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* threads and processes */
RETURNS(pthread_create, ERRORS(EAGAIN, EINVAL),
    (pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *of),
    (thread, attributes, start, of))
RETURNS(pthread_attr_init, ERRORS(ENOMEM), (pthread_attr_t *attributes), (attributes))
RETURNS(pthread_attr_setstacksize, ERRORS(EINVAL), (pthread_attr_t *attributes, size_t size), (attributes, size))
FAILS(int, -1, sched_getaffinity, ERRORS(EINVAL), -1, NULL, (pid_t pid, size_t size, cpu_set_t *out),
    (pid, size, out))
FAILS(long, -1, sysconf, ERRORS(EINVAL), -1, NULL, (int name), (name))
FAILS(int, -1, getrlimit, ERRORS(EINVAL), -1, NULL, (__rlimit_resource_t what, struct rlimit *out), (what, out))
FAILS(pid_t, -1, fork, ERRORS(EAGAIN), -1, NULL, (void), ())
FAILS(pid_t, -1, waitpid, ERRORS(EINTR, ECHILD), -1, NULL, (pid_t pid, int *status, int options),
    (pid, status, options))
FAILS(int, -1, kill, ERRORS(ESRCH), -1, NULL, (pid_t pid, int number), (pid, number))

SITE(prctl, EINVAL)
int
prctl(int option, ...)
{
	unsigned long a[4];
	va_list args;
	va_start(args, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, unsigned long);
	va_end(args);
	return FAULT(prctl, -1, NULL) > 0 ? -1 : REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}

/* So that dlerror says something, as after any failure. */
SITE(dlopen, ENOENT)
void *
dlopen(const char *path, int flags)
{
	return REAL(dlopen)(FAULT(dlopen, -1, path ? path : "") > 0 ? "/no such object" : path, flags);
}
