#include "bootstrap/system.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- time, random bytes ---- */

static int64_t
between(int64_t least, int64_t t, int64_t most)
{
	return t < least ? least : t < most ? t : most;
}

#define MS INT64_C(1000000)

int64_t
time_to_answer(int64_t patience)
{
	return patience == 0 ? 1000 * MS : between(300 * MS, patience / 16, 1000 * MS);
}

int64_t
grace_of(int64_t patience)
{
	return patience == 0 ? 2000 * MS : between(500 * MS, patience / 10, INT64_MAX);
}

const char *
duration(int64_t ns, char out[DURATION_ROOM])
{
	int64_t ms = ns / 1000000 + (ns % 1000000 >= 500000);	/* any ns: ranks say some of them */
	if (ms < 1000)
		snprintf(out, DURATION_ROOM, "%d ms", (int)ms);
	else if (ms % 1000 < 50 || ms >= 60000)
		snprintf(out, DURATION_ROOM, "%lld s", (long long)(ms / 1000));
	else
		snprintf(out, DURATION_ROOM, "%lld.%d s", (long long)(ms / 1000), (int)(ms % 1000 / 100));
	return out;
}

bool
random_bytes(void *out, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t more = getrandom((char *)out + got, bytes - got, 0);
		if (more < 0 && errno != EINTR)
			return false;
		got += more > 0 ? (size_t)more : 0;
	}
	return true;
}

uint64_t
process_number(void)
{
	static _Atomic uint64_t number;		/* random; the low half: the process whose number it is */
	uint64_t pid = (uint32_t)getpid(), found = atomic_load(&number);
	while ((uint32_t)found != pid) {
		uint32_t high = 0;
		random_bytes(&high, sizeof high);
		if (atomic_compare_exchange_strong(&number, &found, (uint64_t)high << 32 | pid))
			found = (uint64_t)high << 32 | pid;
	}
	return found;
}

/* ---- addresses ---- */

union address {
	unsigned char bytes[ADDRESS_BYTES];
	sa_family_t family;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};
_Static_assert(sizeof(struct sockaddr_in6) == ADDRESS_BYTES, "both kinds fit");

static union address
address_of(const unsigned char bytes[ADDRESS_BYTES])
{
	union address a;
	memcpy(&a, bytes, ADDRESS_BYTES);
	return a;
}

socklen_t
address_length(const unsigned char address[ADDRESS_BYTES])
{
	union address a = address_of(address);
	return a.family == AF_INET ? sizeof a.v4 : a.family == AF_INET6 ? sizeof a.v6 : 0;
}

int
address_port(const unsigned char address[ADDRESS_BYTES])
{
	union address a = address_of(address);
	return ntohs(a.family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

void
address_set_port(unsigned char address[ADDRESS_BYTES], int port)
{
	union address a = address_of(address);
	if (a.family == AF_INET)
		a.v4.sin_port = htons((uint16_t)port);
	else
		a.v6.sin6_port = htons((uint16_t)port);
	memcpy(address, &a, ADDRESS_BYTES);
}

const char *
address_text(const unsigned char address[ADDRESS_BYTES], bool port, char out[ADDRESS_ROOM])
{
	union address a = address_of(address);
	char host[INET6_ADDRSTRLEN] = "?", scope[IF_NAMESIZE + 1] = "";
	if (a.family == AF_INET)
		inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof host);
	else if (a.family == AF_INET6)
		inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof host);
	if (a.family == AF_INET6 && a.v6.sin6_scope_id && if_indextoname(a.v6.sin6_scope_id, scope + 1))
		scope[0] = '%';
	bool brackets = port && a.family == AF_INET6;
	int at = snprintf(out, ADDRESS_ROOM, "%s%s%s%s", brackets ? "[" : "", host, scope, brackets ? "]" : "");
	if (port)
		snprintf(out + at, (size_t)(ADDRESS_ROOM - at), ":%d", address_port(address));
	return out;
}

/* ---- descriptors ---- */

static struct {
	pthread_mutex_t lock;		/* held while one is opened, so that a child has none that is not on the list */
	pthread_once_t once;
	int failed;			/* pthread_atfork: an errno */
	struct descriptor *first;
} list = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void
before_fork(void)
{
	pthread_mutex_lock(&list.lock);
}

static void
after_fork(void)
{
	pthread_mutex_unlock(&list.lock);
}

static void
after_fork_in_child(void)
{
	for (struct descriptor *d = list.first; d; d = d->next) {
		close(d->fd);
		d->fd = -1;
	}
	list.first = NULL;
	pthread_mutex_unlock(&list.lock);
}

static void
at_fork(void)
{
	list.failed = pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void
list_begin(void)
{
	pthread_once(&list.once, at_fork);
	pthread_mutex_lock(&list.lock);
}

static bool
list_end(struct descriptor *d, int fd)
{
	int error = errno;
	if (fd >= 0 && list.failed) {
		close(fd);
		fd = -1;
		error = list.failed;
	}
	d->fd = fd;
	if (fd >= 0) {
		d->next = list.first;
		d->back = &list.first;
		if (d->next)
			d->next->back = &d->next;
		list.first = d;
	}
	pthread_mutex_unlock(&list.lock);
	errno = error;
	return fd >= 0;
}

bool
descriptor_socket(struct descriptor *d, int family)
{
	list_begin();
	return list_end(d, socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool
descriptor_accept(struct descriptor *d, int listener, unsigned char address[ADDRESS_BYTES])
{
	union address a = { { 0 } };
	socklen_t length = sizeof a;
	list_begin();
	bool good = list_end(d, accept4(listener, (struct sockaddr *)&a, &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
	memcpy(address, &a, ADDRESS_BYTES);
	return good;
}

bool
descriptor_event(struct descriptor *d)
{
	list_begin();
	return list_end(d, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

bool
descriptor_epoll(struct descriptor *d)
{
	list_begin();
	return list_end(d, epoll_create1(EPOLL_CLOEXEC));
}

bool
descriptor_copy(struct descriptor *d, const struct descriptor *of)
{
	list_begin();
	return list_end(d, fcntl(of->fd, F_DUPFD_CLOEXEC, 0));
}

bool
descriptor_spare(struct descriptor *d)
{
	list_begin();
	return list_end(d, open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void
descriptor_close(struct descriptor *d)
{
	if (d->fd < 0)
		return;
	pthread_mutex_lock(&list.lock);
	*d->back = d->next;
	if (d->next)
		d->next->back = d->back;
	close(d->fd);
	d->fd = -1;
	pthread_mutex_unlock(&list.lock);
}

void
descriptor_move(struct descriptor *to, struct descriptor *from)
{
	pthread_mutex_lock(&list.lock);
	*to = *from;
	*to->back = to;
	if (to->next)
		to->next->back = &to->next;
	from->fd = -1;
	pthread_mutex_unlock(&list.lock);
}

void
socket_tune(int fd)
{
	enum { IDLE_S = 10, EVERY_S = 5, TIMES = 4, UNANSWERED_MS = 30000 };
	const struct { int level, name, value; } options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, EVERY_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, TIMES },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, UNANSWERED_MS },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

const char *
reason_of(int error, char out[REASON_ROOM])
{
	struct rlimit most;
	char room[96];
	const char *text = strerror_r(error, room, sizeof room);
	if (error == EMFILE && !getrlimit(RLIMIT_NOFILE, &most))
		snprintf(out, REASON_ROOM, "%s (ulimit -n is %llu)", text, (unsigned long long)most.rlim_cur);
	else
		snprintf(out, REASON_ROOM, "%s", text);
	return out;
}
