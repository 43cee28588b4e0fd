/* What connections of both directions share; and the end of a peer. */
#include "transport/tcp_inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void
tcp_wake(struct tcp *t)
{
	uint64_t one = 1;
	while (write(t->wake, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void
tcp_attend(struct tcp *t, struct tcp_peer *peer)
{
	if (!atomic_exchange(&peer->attention, true))
		tcp_wake(t);
}

void
tcp_look_by(struct tcp *t, int64_t when)
{
	if (t->tick > when)
		t->tick = when;
}

/* A host that vanishes is noticed by three probes of an idle connection. Not TCP_USER_TIMEOUT for the others: it also
 * ends a connection whose receiver lives, and has not read for so long. What has been sent is looked after in
 * tcp_out.c. */
void
tcp_options(const struct tcp *t, int fd)
{
	int on = 1, seconds = (int)(t->keys.patience / 1000000000), probes = 3;
	int idle = seconds > 4 ? seconds / 2 : 1, gap = seconds > 8 ? seconds / 6 : 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &gap, sizeof gap);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

bool
tcp_watch(const struct tcp *t, int fd, void *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };
	return epoll_ctl(t->epoll, EPOLL_CTL_MOD, fd, &event) == 0
	    || (errno == ENOENT && epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

void *
tcp_reach(void *table, uint32_t *n, size_t size, uint32_t at)
{
	if (at < *n)
		return table;
	uint32_t more = at < 2 * *n ? 2 * *n : at + 8;
	char *grown = realloc(table, more * size);
	if (!grown)
		return NULL;
	memset(grown + *n * size, 0, (more - *n) * size);
	*n = more;
	return grown;
}

/* ---- the end ---- */

void
tcp_free_parts(struct tcp_part *list)
{
	for (struct tcp_part *next; list; list = next) {
		next = list->next;
		free(list);
	}
}

void
tcp_drop_parts(struct tcp_out *out)
{
	tcp_free_parts(out->head);
	out->head = NULL;
	out->tail = &out->head;
}

void
tcp_drop_arrivals(struct tcp_peer *peer)
{
	for (uint32_t i = 0; i < peer->n_lanes; i++) {
		for (struct tcp_arrival *a = peer->lane[i].ahead, *next; a; a = next) {
			next = a->next;
			free(a);
		}
		peer->lane[i].ahead = NULL;
	}
}

void
tcp_in_end(struct tcp *t, struct tcp_in *in)
{
	in->state = IN_ENDED;
	t->ended = true;
}

bool
tcp_out_needed(const struct tcp_out *out)
{
	for (const struct tcp_part *part = out->head; part; part = part->next)
		if (part->frame.kind == FRAME_PART && !(part->frame.m.lane & NET_DONE))
			return true;
	return false;
}

/* The descriptor stays open until the net is closed: another thread may be about to write to it. What that thread
 * writes stays in the list, too: some or all of it may have arrived, and the thread sees to what is left (tcp_out.c).
 * True: a message waited to be sent. */
static bool
end_out(const struct tcp *t, struct tcp_out *out, bool shut)
{
	pthread_mutex_lock(&out->lock);
	bool needed = !out->writing && tcp_out_needed(out);
	out->state = OUT_ENDED;
	if (!out->writing)
		tcp_drop_parts(out);
	if (out->fd >= 0 && shut)
		shutdown(out->fd, SHUT_RDWR);
	if (out->fd >= 0)
		epoll_ctl(t->epoll, EPOLL_CTL_DEL, out->fd, NULL);
	pthread_mutex_unlock(&out->lock);
	return needed;
}

/* "rank 3 (10.0.0.3, port 4001)". */
static int
name_of(const struct tcp_peer *peer, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "?";
	const struct sockaddr_in *four = (const struct sockaddr_in *)&peer->address;
	const struct sockaddr_in6 *six = &peer->address;
	int family = six->sin6_family;
	inet_ntop(family, family == AF_INET ? (const void *)&four->sin_addr : &six->sin6_addr, text, sizeof text);
	return snprintf(out, size, "rank %d (%s, port %d)", peer->rank, text,
	    ntohs(family == AF_INET ? four->sin_port : six->sin6_port));
}

void
tcp_break(struct tcp *t, struct tcp_peer *peer, const char *format, ...)
{
	char text[256];
	va_list args;
	if (atomic_exchange(&peer->broken, true))
		return;
	int n = name_of(peer, text, sizeof text);
	va_start(args, format);
	vsnprintf(text + n, sizeof text - (size_t)n, format, args);
	va_end(args);
	for (int i = 0; i < TCP_WAYS; i++)
		end_out(t, &peer->out[i], true);
	for (struct tcp_in *in = t->in; in; in = in->next)
		if (in->peer == peer)
			tcp_in_end(t, in);
	tcp_drop_arrivals(peer);
	t->events.broken(t->events.context, peer->rank, text);
}

/* It may still send on other connections, and would take their end here for a failure. */
void
tcp_gone(struct tcp *t, struct tcp_peer *peer)
{
	bool needed = false;
	if (peer->gone || atomic_load(&peer->broken))
		return;
	peer->gone = true;
	for (int i = 0; i < TCP_WAYS; i++)
		needed |= end_out(t, &peer->out[i], false);
	if (needed)
		tcp_break(t, peer, " has left, and a message to it waits");
}
