/* A world for one thread: the threads of libblink are fibers, time is a number, and TCP is sockets of this process. So
 * a run is the same each time, costs no thread and no port, and waits for nothing: world_settle runs all fibers until
 * each waits for something that only the player, who is the main thread, can bring about; world_pass lets time pass.
 *
 * The linker puts the functions below in the place of what they are named after (--wrap, Makefile). Outside of a world
 * they are what they were: the fuzzing engine and the sanitizers do not notice. */
#ifndef BLINK_FUZZ_WORLD_H
#define BLINK_FUZZ_WORLD_H

#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <ucontext.h>

#if defined __has_feature
#if __has_feature(address_sanitizer)
#define WORLD_ASAN(x) x
#endif
#elif defined __SANITIZE_ADDRESS__
#define WORLD_ASAN(x) x
#endif
#ifdef WORLD_ASAN
#include <sanitizer/common_interface_defs.h>
#else
#define WORLD_ASAN(x)
#endif

enum {
	FIBERS = 32, FIBER_STACK = 512 << 10,
	FILES = 1024,			/* descriptors that have a port */
	FIRST_PORT = 20000,
	ROUNDS_MOST = 10000,		/* of all fibers until they rest: more are a loop without end */
	ALARMS_MOST = 100000		/* in one world_pass */
};

struct fiber {
	ucontext_t context;
	char *stack;
	void *(*run)(void *);
	void *of, *result;
	bool used, begun, ended, detached, is_ready;
	bool (*ready)(void *of);	/* what it waits for; NULL: nothing but time */
	void *awaited;
	int64_t until;			/* when it goes on whatever happens */
	WORLD_ASAN(void *asan;)
};

static struct {
	bool on, moved;
	int64_t now;			/* ns */
	uint64_t signals;		/* of all condition variables */
	struct fiber fiber[FIBERS], *current;
	ucontext_t player;
	int ports;
	uint16_t port[FILES];
	WORLD_ASAN(void *asan; const void *stack; size_t bytes;)
} world;

/* ---- fibers ---- */

static void
to_player(bool ends)
{
	struct fiber *f = world.current;
	int error = errno;
	(void)ends;
	WORLD_ASAN(__sanitizer_start_switch_fiber(ends ? NULL : &f->asan, world.stack, world.bytes);)
	swapcontext(&f->context, &world.player);
	WORLD_ASAN(__sanitizer_finish_switch_fiber(f->asan, &world.stack, &world.bytes);)
	errno = error;
}

static void
to_fiber(struct fiber *f)
{
	world.current = f;
	WORLD_ASAN(__sanitizer_start_switch_fiber(&world.asan, f->stack, FIBER_STACK);)
	swapcontext(&world.player, &f->context);
	WORLD_ASAN(__sanitizer_finish_switch_fiber(world.asan, NULL, NULL);)
	world.current = NULL;
}

static void
fiber_main(void)
{
	struct fiber *f = world.current;
	WORLD_ASAN(__sanitizer_finish_switch_fiber(NULL, &world.stack, &world.bytes);)
	f->result = f->run(f->of);
	f->ended = world.moved = true;
	f->used = !f->detached;
	to_player(true);
}

static struct fiber *
fiber_start(void *(*run)(void *), void *of, bool detached)
{
	struct fiber *f = world.fiber;
	while (f < world.fiber + FIBERS && f->used)
		f++;
	REQUIRE(f < world.fiber + FIBERS, "more than %d threads", (int)FIBERS);
	if (!f->stack)
		f->stack = mmap(NULL, FIBER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(f->stack != MAP_FAILED, "no stack");
	*f = (struct fiber){ .stack = f->stack, .run = run, .of = of, .used = true, .detached = detached,
		.until = INT64_MAX };
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = FIBER_STACK;
	makecontext(&f->context, fiber_main, 0);
	f->context.uc_stack.ss_size = 0;	/* AddressSanitizer would clear its shadow at each switch */
	return f;
}

/* The fiber waits until ready(of), or until that time: false. The player looks, so that what waits costs no switch. */
static bool
fiber_waits(bool (*ready)(void *of), void *of, int64_t until)
{
	struct fiber *f = world.current;
	bool is_ready = ready && ready(of);
	if (!is_ready && world.now < until) {
		f->ready = ready;
		f->awaited = of;
		f->until = until;
		f->is_ready = false;
		to_player(false);
		f->until = INT64_MAX;
		is_ready = f->is_ready;
	}
	return is_ready;
}

static bool
fiber_goes(struct fiber *f)
{
	if (!f->used || f->ended)
		return false;
	f->is_ready = f->begun && f->ready && f->ready(f->awaited);
	return !f->begun || f->is_ready || world.now >= f->until;
}

/* ---- the player's ---- */

static void
world_settle(void)
{
	int rounds = 0;
	do {
		world.moved = false;
		for (struct fiber *f = world.fiber; f < world.fiber + FIBERS; f++) {
			if (!fiber_goes(f))
				continue;
			world.moved = f->begun = true;
			to_fiber(f);
		}
	} while (world.moved && ++rounds < ROUNDS_MOST);
	REQUIRE(rounds < ROUNDS_MOST, "some thread runs for ever");
}

static bool
world_rests(void)
{
	for (const struct fiber *f = world.fiber; f < world.fiber + FIBERS; f++)
		if (f->used && !f->ended)
			return false;
	return true;
}

/* Time passes, until all have ended. */
static void
world_pass(int64_t ns)
{
	int64_t to = world.now + ns, next = world.now;
	world_settle();
	for (int i = 0; i < ALARMS_MOST && !world_rests(); i++) {
		next = to;
		for (const struct fiber *f = world.fiber; f < world.fiber + FIBERS; f++)
			if (f->used && !f->ended && f->until < next)
				next = f->until;
		world.now = next > world.now ? next : world.now;
		world_settle();
		if (next == to)
			return;
	}
	REQUIRE(world_rests(), "some thread wakes for ever");
}

static void
world_begin(void)
{
	world.on = true;
	world.now = INT64_C(1000000000000);
	world.ports = 0;
	memset(world.port, 0, sizeof world.port);
}

/* All has to come to its end, within so long. */
static void
world_end(int64_t ns)
{
	world_pass(ns);
	REQUIRE(world_rests(), "some thread does not end");
	for (struct fiber *f = world.fiber; f < world.fiber + FIBERS; f++)
		f->used = false;
	world.on = false;
}

/* ---- threads ---- */

#define REAL(type, name, ...) type __real_##name(__VA_ARGS__); type __wrap_##name(__VA_ARGS__)

REAL(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *of);
int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *of)
{
	int detached = PTHREAD_CREATE_JOINABLE;
	if (!world.on)
		return __real_pthread_create(thread, attr, run, of);
	if (attr)
		pthread_attr_getdetachstate(attr, &detached);
	*thread = (pthread_t)fiber_start(run, of, detached == PTHREAD_CREATE_DETACHED);
	return 0;
}

static bool
has_ended(void *f)
{
	return ((struct fiber *)f)->ended;
}

REAL(int, pthread_join, pthread_t thread, void **result);
int
__wrap_pthread_join(pthread_t thread, void **result)
{
	struct fiber *f = (struct fiber *)thread;
	if (!world.on)
		return __real_pthread_join(thread, result);
	if (world.current)
		fiber_waits(has_ended, f, INT64_MAX);
	REQUIRE(f->ended, "the player cannot wait for a thread");
	f->used = false;
	if (result)
		*result = f->result;
	return 0;
}

REAL(pthread_t, pthread_self, void);
pthread_t
__wrap_pthread_self(void)
{
	return world.on && world.current ? (pthread_t)world.current : __real_pthread_self();
}

static bool
is_signalled(void *before)
{
	return world.signals != *(uint64_t *)before;
}

static int
cond_wait(pthread_mutex_t *lock, int64_t until)
{
	uint64_t before = world.signals;
	pthread_mutex_unlock(lock);
	bool signalled = fiber_waits(is_signalled, &before, until);
	pthread_mutex_lock(lock);
	return signalled ? 0 : ETIMEDOUT;
}

REAL(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *lock);
int
__wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	return world.on ? cond_wait(lock, INT64_MAX) : __real_pthread_cond_wait(cond, lock);
}

REAL(int, pthread_cond_timedwait, pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until);
int
__wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
	return world.on ? cond_wait(lock, until->tv_sec * INT64_C(1000000000) + until->tv_nsec)
	    : __real_pthread_cond_timedwait(cond, lock, until);
}

REAL(int, pthread_cond_broadcast, pthread_cond_t *cond);
int
__wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	world.signals++;
	return world.on ? 0 : __real_pthread_cond_broadcast(cond);
}

REAL(int, pthread_cond_signal, pthread_cond_t *cond);
int
__wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	world.signals++;
	return world.on ? 0 : __real_pthread_cond_signal(cond);
}

/* One CPU: nobody looks at a flag again and again. */
REAL(int, sched_getaffinity, pid_t pid, size_t size, cpu_set_t *set);
int
__wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	errno = ENOSYS;
	return world.on ? -1 : __real_sched_getaffinity(pid, size, set);
}

REAL(int, sched_yield, void);
int
__wrap_sched_yield(void)
{
	return world.on ? 0 : __real_sched_yield();
}

/* ---- time ---- */

REAL(int, clock_gettime, clockid_t clock, struct timespec *out);
int
__wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	if (!world.on || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return __real_clock_gettime(clock, out);
	*out = (struct timespec){ world.now / 1000000000, world.now % 1000000000 };
	return 0;
}

REAL(int, nanosleep, const struct timespec *time, struct timespec *left);
int
__wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	if (!world.on)
		return __real_nanosleep(time, left);
	fiber_waits(NULL, NULL, world.now + time->tv_sec * INT64_C(1000000000) + time->tv_nsec);
	return 0;
}

REAL(int, clock_nanosleep, clockid_t clock, int flags, const struct timespec *time, struct timespec *left);
int
__wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	if (!world.on)
		return __real_clock_nanosleep(clock, flags, time, left);
	fiber_waits(NULL, NULL,
	    (flags & TIMER_ABSTIME ? 0 : world.now) + time->tv_sec * INT64_C(1000000000) + time->tv_nsec);
	return 0;
}

/* ---- waits for descriptors and flags ---- */

REAL(int, poll, struct pollfd *of, nfds_t n, int ms);

struct polled {
	struct pollfd *of;
	nfds_t n;
	int n_ready;
};

static bool
is_polled(void *of)
{
	struct polled *p = of;
	return (p->n_ready = __real_poll(p->of, p->n, 0)) != 0;
}

static int
poll_until(struct pollfd *of, nfds_t n, int64_t until)
{
	struct polled p = { .of = of, .n = n };
	fiber_waits(is_polled, &p, until);
	return p.n_ready;
}

static int64_t
ms_from_now(int ms)
{
	return ms < 0 ? INT64_MAX : world.now + ms * INT64_C(1000000);
}

int
__wrap_poll(struct pollfd *of, nfds_t n, int ms)
{
	return world.on && world.current ? poll_until(of, n, ms_from_now(ms)) : __real_poll(of, n, ms);
}

/* Fortified objects call it by another name. */
REAL(int, __poll_chk, struct pollfd *of, nfds_t n, int ms, size_t bytes);
int
__wrap___poll_chk(struct pollfd *of, nfds_t n, int ms, size_t bytes)
{
	return world.on && world.current ? poll_until(of, n, ms_from_now(ms)) : __real___poll_chk(of, n, ms, bytes);
}

static int
ppoll_now(struct pollfd *of, nfds_t n, const struct timespec *time)
{
	return poll_until(of, n, time ? world.now + time->tv_sec * INT64_C(1000000000) + time->tv_nsec : INT64_MAX);
}

REAL(int, ppoll, struct pollfd *of, nfds_t n, const struct timespec *time, const sigset_t *mask);
int
__wrap_ppoll(struct pollfd *of, nfds_t n, const struct timespec *time, const sigset_t *mask)
{
	return world.on && world.current ? ppoll_now(of, n, time) : __real_ppoll(of, n, time, mask);
}

REAL(int, __ppoll_chk, struct pollfd *of, nfds_t n, const struct timespec *time, const sigset_t *mask, size_t bytes);
int
__wrap___ppoll_chk(struct pollfd *of, nfds_t n, const struct timespec *time, const sigset_t *mask, size_t bytes)
{
	return world.on && world.current ? ppoll_now(of, n, time) : __real___ppoll_chk(of, n, time, mask, bytes);
}

REAL(int, epoll_wait, int fd, struct epoll_event *event, int most, int ms);

struct epolled {
	int fd, most, n_ready;
	struct epoll_event *event;
};

static bool
is_epolled(void *of)
{
	struct epolled *p = of;
	return (p->n_ready = __real_epoll_wait(p->fd, p->event, p->most, 0)) != 0;
}

int
__wrap_epoll_wait(int fd, struct epoll_event *event, int most, int ms)
{
	struct epolled p = { .fd = fd, .most = most, .event = event };
	if (!world.on || !world.current)
		return __real_epoll_wait(fd, event, most, ms);
	fiber_waits(is_epolled, &p, ms_from_now(ms));
	return p.n_ready;
}

struct word {
	const _Atomic uint32_t *at;
	uint32_t value;
};

static bool
is_changed(void *of)
{
	const struct word *w = of;
	return *w->at != w->value;
}

static long
futex(const _Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *time)
{
	int64_t until = time ? world.now + time->tv_sec * INT64_C(1000000000) + time->tv_nsec : INT64_MAX;
	if (operation == FUTEX_WAIT && world.current)
		fiber_waits(is_changed, &(struct word){ word, value }, until);
	return 0;
}

REAL(long, syscall, long number, ...);
long
__wrap_syscall(long number, ...)
{
	long a[6];
	va_list args;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (world.on && number == SYS_futex)
		return futex((const _Atomic uint32_t *)a[0], (int)a[1], (uint32_t)a[2], (const struct timespec *)a[3]);
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- TCP: sockets of this process, by their ports ---- */

static socklen_t
name_of_port(int port, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "blink-fuzz-%d-%d", (int)getpid(), port);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void
address_of_port(int port, void *out, socklen_t *size)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	memcpy(out, &a, *size < sizeof a ? *size : sizeof a);
	*size = sizeof a;
}

static int
port_of(const struct sockaddr *address)
{
	struct sockaddr_in a;
	memcpy(&a, address, sizeof a);
	return ntohs(a.sin_port);
}

REAL(int, socket, int family, int type, int protocol);
int
__wrap_socket(int family, int type, int protocol)
{
	bool ours = world.on && (family == AF_INET || family == AF_INET6);
	int fd = __real_socket(ours ? AF_UNIX : family, type, protocol);
	if (ours && fd >= 0 && fd < FILES)
		world.port[fd] = 0;
	return fd;
}

REAL(int, bind, int fd, const struct sockaddr *address, socklen_t size);
int
__wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sockaddr_un name;
	if (!world.on || address->sa_family == AF_UNIX)
		return __real_bind(fd, address, size);
	int port = port_of(address) ? port_of(address) : FIRST_PORT + world.ports++;
	if (fd < FILES)
		world.port[fd] = (uint16_t)port;
	size = name_of_port(port, &name);
	return __real_bind(fd, (struct sockaddr *)&name, size);
}

REAL(int, connect, int fd, const struct sockaddr *address, socklen_t size);
int
__wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sockaddr_un name;
	if (!world.on || address->sa_family == AF_UNIX)
		return __real_connect(fd, address, size);
	size = name_of_port(port_of(address), &name);
	return __real_connect(fd, (struct sockaddr *)&name, size);
}

REAL(int, getsockname, int fd, struct sockaddr *out, socklen_t *size);
int
__wrap_getsockname(int fd, struct sockaddr *out, socklen_t *size)
{
	if (!world.on)
		return __real_getsockname(fd, out, size);
	address_of_port(fd < FILES ? world.port[fd] : 0, out, size);
	return 0;
}

REAL(int, accept4, int fd, struct sockaddr *out, socklen_t *size, int flags);
int
__wrap_accept4(int fd, struct sockaddr *out, socklen_t *size, int flags)
{
	if (!world.on)
		return __real_accept4(fd, out, size, flags);
	int accepted = __real_accept4(fd, NULL, NULL, flags);
	if (accepted >= 0 && out)
		address_of_port(0, out, size);
	return accepted;
}

#endif
