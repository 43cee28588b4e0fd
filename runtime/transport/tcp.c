/* The TCP net: its thread, and its row of the table. The parts are in tcp.h. */
#include "support/error.h"
#include "transport/tcp_inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	STACK = 256 << 10, RIDER_STACK = 1 << 20, EVENTS = 32, MS = 1000000, PATIENCE_MS = 20000, RESET_MS = 1000
};

/* What ranks exchange. */
struct address {
	char magic[4];
	unsigned char socket[28];
};
static const char magic[4] = "tcp1";

/* ---- the thread ---- */

static void
attend(struct tcp *t)
{
	uint64_t count;
	while (read(t->wake, &count, sizeof count) < 0 && errno == EINTR)
		;
	for (int i = 0; i < t->n_ranks; i++) {
		struct tcp_peer *peer = &t->peer[i];
		if (!atomic_exchange(&peer->attention, false))
			continue;
		for (int k = 0; k < TCP_WAYS; k++)
			tcp_out_attend(t, &peer->out[k]);
		if (!atomic_exchange(&peer->resumed, false))
			continue;
		for (struct tcp_in *in = t->in; in; in = in->next)
			if (in->peer == peer)
				tcp_in_resume(t, in);
	}
}

static void
dispatch(struct tcp *t, const struct epoll_event *event)
{
	switch (*(const enum tcp_source *)event->data.ptr) {
	case SOURCE_WAKE:
		attend(t);
		break;
	case SOURCE_LISTENER:
		tcp_accept(t);
		break;
	case SOURCE_IN:
		tcp_in_ready(t, event->data.ptr);
		break;
	case SOURCE_OUT:
		tcp_out_ready(t, event->data.ptr, event->events);
		break;
	case SOURCE_RIDER:	/* its turn comes before the thread sleeps again */
		break;
	}
}

static void
tick(struct tcp *t)
{
	int64_t now = now_ns();
	t->tick = INT64_MAX;
	for (int i = 0; i < t->n_ranks; i++)
		for (int k = 0; k < TCP_WAYS; k++)
			tcp_out_tick(t, &t->peer[i].out[k], now);
	for (struct tcp_in *in = t->in; in; in = in->next)
		tcp_in_tick(t, in, now);
	tcp_crowd_tick(t, now);
}

/* No event of the last batch refers to them any more. */
static void
free_ended(struct tcp *t)
{
	struct tcp_in **at = &t->in;
	t->ended = false;
	while (*at) {
		struct tcp_in *in = *at;
		if (in->state == IN_ENDED) {
			*at = in->next;
			if (in->fd >= 0)
				close(in->fd);
			free(in);
		} else {
			at = &in->next;
		}
	}
}

static bool
flushed(struct tcp *t)
{
	for (int i = 0; i < t->n_ranks; i++)
		for (int k = 0; k < TCP_WAYS; k++)
			if (!tcp_out_idle(t, &t->peer[i].out[k]))
				return false;
	return true;
}

/* True: the thread may end. */
static bool
leaving(struct tcp *t, bool *said)
{
	if (!atomic_load(&t->closing))
		return false;
	for (int i = 0; i < t->n_ranks && !*said; i++)
		for (int k = 0; k < TCP_WAYS; k++)
			tcp_out_farewell(t, &t->peer[i].out[k]);
	*said = true;
	tcp_look_by(t, t->deadline);
	return flushed(t) || now_ns() >= t->deadline;
}

static int
ms_to_tick(const struct tcp *t)
{
	int64_t left = (t->tick - now_ns()) / MS + 1;
	return t->tick == INT64_MAX ? -1 : left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void *
serve(void *of)
{
	struct tcp *t = of;
	struct epoll_event event[EVENTS];
	bool said = false;
	while (!leaving(t, &said)) {
		bool more = t->rider.turn && t->rider.turn(t->rider.context);
		int n = epoll_wait(t->epoll, event, EVENTS, more ? 0 : ms_to_tick(t));
		for (int i = 0; i < n; i++)
			dispatch(t, &event[i]);
		if (now_ns() >= t->tick)
			tick(t);
		if (t->ended)
			free_ended(t);
	}
	for (struct tcp_in *in = t->in; in; in = in->next)
		tcp_in_farewell(in);
	if (t->rider.end)
		t->rider.end(t->rider.context);
	return NULL;
}

/* ---- the row ---- */

static bool
tcp_available(char why[256])
{
	why[0] = '\0';
	return true;
}

static void
drain_back(int fd)
{
	char text[64];
	while (recv(fd, text, sizeof text, MSG_DONTWAIT) > 0)
		;
}

/* Of connections that have been reset: what the kernel has already given away. */
static void
await_resets(struct tcp *t)
{
	int64_t deadline = now_ns() + (int64_t)RESET_MS * MS;
	for (int i = 0; i < t->n_ranks; i++)
		for (int k = 0; k < TCP_WAYS; k++)
			tcp_zero_await(t, &t->peer[i].out[k], deadline);
}

/* What came back and was not read would make the kernel reset the connection, and drop what is still to be sent. */
static void
free_peer(struct tcp_peer *peer, bool child)
{
	for (int k = 0; k < TCP_WAYS; k++) {
		struct tcp_out *out = &peer->out[k];
		if (out->fd >= 0 && !child)
			drain_back(out->fd);
		if (out->fd >= 0)
			close(out->fd);
		tcp_drop_parts(out);
	}
	tcp_drop_arrivals(peer);
	free(peer->lane);
	free(peer->order);
}

static void
free_tcp(struct tcp *t)
{
	bool child = t->owner != getpid();
	for (int i = 0; i < t->n_ranks && t->peer; i++)
		free_peer(&t->peer[i], child);
	for (struct tcp_in *in = t->in, *next; in; in = next) {
		next = in->next;
		if (in->fd >= 0)
			close(in->fd);
		free(in);
	}
	crowd_close(&t->crowd);
	int fds[] = { t->listener, t->wake, t->epoll };
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(t->peer);
	free(t);
}

static void
tcp_abandon(void *net)
{
	struct tcp *t = net;
	atomic_store(&t->abandoned, true);
	for (int i = 0; i < t->n_ranks; i++)
		for (int k = 0; k < TCP_WAYS; k++)
			tcp_out_abandon(&t->peer[i].out[k]);
	await_resets(t);
}

static void
tcp_close(void *net, int64_t deadline)
{
	struct tcp *t = net;
	if (!t)
		return;
	if (t->started && t->owner == getpid()) {
		t->deadline = deadline;
		atomic_store(&t->closing, true);
		tcp_wake(t);
		pthread_join(t->thread, NULL);
		tcp_abandon(t);
	}
	free_tcp(t);
}

static struct tcp *
new_tcp(int rank, int n_ranks, const struct net_events *events, const struct net_keys *keys)
{
	struct tcp *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	*t = (struct tcp){ .wake_source = SOURCE_WAKE, .listener_source = SOURCE_LISTENER,
		.rider_source = SOURCE_RIDER, .rank = rank, .n_ranks = n_ranks, .events = *events, .keys = *keys,
		.owner = getpid(), .epoll = -1, .wake = -1, .listener = -1, .listening = true, .tick = INT64_MAX };
	crowd_open(&t->crowd);
	if (t->keys.patience <= 0)
		t->keys.patience = (int64_t)PATIENCE_MS * MS;
	t->peer = calloc((size_t)n_ranks, sizeof *t->peer);
	for (int i = 0; i < n_ranks && t->peer; i++) {
		t->peer[i].rank = i;
		pthread_mutex_init(&t->peer[i].lock, NULL);
		for (uint32_t k = 0; k < TCP_WAYS; k++) {
			struct tcp_out *out = &t->peer[i].out[k];
			*out = (struct tcp_out){ .source = SOURCE_OUT, .fd = -1, .peer = &t->peer[i], .way = k };
			out->tail = &out->head;
			pthread_mutex_init(&out->lock, NULL);
		}
	}
	if (!t->peer) {
		crowd_close(&t->crowd);
		free(t);
		return NULL;
	}
	return t;
}

static socklen_t
size_of(const unsigned char address[28])
{
	struct sockaddr a;
	memcpy(&a, address, sizeof a);
	return a.sa_family == AF_INET ? sizeof(struct sockaddr_in) : a.sa_family == AF_INET6 ? 28 : 0;
}

/* On any port; *address: with it. */
static int
listen_on(struct tcp *t, unsigned char address[28])
{
	struct sockaddr_storage to = { 0 };
	socklen_t size = size_of(t->keys.address);
	memcpy(&to, t->keys.address, sizeof t->keys.address);
	if (size == 0) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	t->listener = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&to, size) != 0
	    || listen(t->listener, SOMAXCONN) != 0 || getsockname(t->listener, (struct sockaddr *)&to, &size) != 0)
		return -1;
	memcpy(address, &to, 28);
	return 0;
}

static int
open_epoll(struct tcp *t)
{
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->epoll < 0 || t->wake < 0)
		return -1;
	if (!tcp_watch(t, t->wake, &t->wake_source, EPOLLIN)
	    || !tcp_watch(t, t->listener, &t->listener_source, EPOLLIN)
	    || (t->rider.turn && !tcp_watch(t, t->rider.fd, &t->rider_source, EPOLLIN)))
		return -1;
	errno = start_thread(&t->thread, t->rider.turn ? RIDER_STACK : STACK, serve, t);
	t->started = errno == 0;
	return errno ? -1 : 0;
}

int
tcp_open_with(const struct tcp_rider *rider, int rank, int n_ranks, const struct net_events *events,
    const struct net_keys *keys, void *address, void **net, struct blink_error *err)
{
	struct address mine = { 0 };
	struct tcp *t = new_tcp(rank, n_ranks, events, keys);
	if (!t)
		return set_error(err, blinkOutOfMemory, "tcp: out of memory");
	if (rider)
		t->rider = *rider;
	memcpy(mine.magic, magic, sizeof magic);
	bool listens = listen_on(t, mine.socket) == 0;
	if (!listens || open_epoll(t) != 0) {
		int code = errno;
		tcp_close(t, 0);
		return set_error(err, blinkSystemError, "tcp: cannot %s: %s", listens ? "start its thread" : "listen",
		    strerror(code));
	}
	memset(address, 0, NET_ADDRESS);
	memcpy(address, &mine, sizeof mine);
	*net = t;
	return blinkSuccess;
}

static int
tcp_open(int rank, int n_ranks, const struct net_events *events, const struct net_keys *keys, void *address,
    void **net, struct blink_error *err)
{
	return tcp_open_with(NULL, rank, n_ranks, events, keys, address, net, err);
}

/* An address that is valid on its link only is reached by our own interface of that link. */
static int
tcp_connect(void *net, const void *addresses, struct blink_error *err)
{
	struct tcp *t = net;
	struct sockaddr_in6 own = { 0 };
	memcpy(&own, t->keys.address, 28);
	for (int i = 0; i < t->n_ranks; i++) {
		struct address a;
		struct tcp_peer *peer = &t->peer[i];
		memcpy(&a, (const char *)addresses + (size_t)i * NET_ADDRESS, sizeof a);
		if (i == t->rank)
			continue;
		if (memcmp(a.magic, magic, sizeof magic) != 0 || size_of(a.socket) == 0)
			return set_error(err, blinkMismatch, "tcp: rank %d has another kind of net: want the same "
			    "BLINK_NET on all ranks", i);
		memcpy(&peer->address, a.socket, sizeof a.socket);
		if (peer->address.sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&peer->address.sin6_addr))
			peer->address.sin6_scope_id = own.sin6_scope_id;
	}
	return blinkSuccess;
}

static int
tcp_send(void *net, int to, const struct net_message *m, const void *payload)
{
	struct tcp *t = net;
	if (to < 0 || to >= t->n_ranks || to == t->rank || !tcp_lane_good(m->lane))
		return blinkInvalidArgument;
	if (atomic_load(&t->peer[to].broken) || atomic_load(&t->abandoned))
		return blinkRemoteError;
	return tcp_out_send(t, &t->peer[to], m, payload);
}

/* A connection is counted before the events are asked: where they had no place, this thread sees the number. */
static void
tcp_resume(void *net, int from)
{
	struct tcp *t = net;
	if (atomic_load(&t->peer[from].asking) == 0)
		return;
	atomic_store(&t->peer[from].resumed, true);
	tcp_attend(t, &t->peer[from]);
}

const struct net_kind net_tcp = { "tcp", "TCP, several connections for each pair of ranks", tcp_available, tcp_open,
	tcp_connect, tcp_send, tcp_abandon, tcp_resume, tcp_close };
