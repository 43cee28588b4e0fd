/* Messages to peers. A thread that sends writes at once if nothing waits on that connection, so that a short message
 * costs one system call and no change of threads; what does not fit into the socket, and what comes while another
 * thread writes, waits in a list, which the net's thread writes as there is room.
 *
 * A connection whose network is cut has bytes that nobody acknowledges; the kernel goes on for a quarter of an hour.
 * The net's thread looks at the kernel's counters a few times within `patience`: bytes under way, and no
 * acknowledgement since then, and the peer is broken. A receiver without a place closes its window, and may after a
 * while acknowledge once in minutes only; it says so first (BACK_WAIT), and is then left to the kernel.
 *
 * Who reads the memory of a message? This file, until all of it is written; and where it is written without a copy the
 * kernel, even longer than until the reader says `done`, which tcp_zero.c shows to be no harm. After a failed call the
 * caller has its memory back at once (tcp_out_abandon). By then no thread is in `send`, and what waits in lists is
 * dropped. What was written by copy needs nothing more: it is the kernel's, and goes out as it was. */
#include "transport/tcp_inside.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PARTS_AT_ONCE = 8, BYTES_AT_ONCE = 4 << 20, PAGE = 4096, MS = 1000000, NAP_NS = 20000, ZERO_MOST = 1 << 20 };

/* ---- write ---- */

/* What one system call writes: parts as they follow; but bytes that are not copied alone, after what is before them. */
static int
gather(const struct tcp_out *out, struct iovec *v, int *flags)
{
	int n = 0;
	const struct tcp_part *part = out->head;
	*flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	for (int i = 0; part && i < PARTS_AT_ONCE; i++, part = part->next) {
		uint64_t header = sizeof part->frame, sent = part->sent;
		uint64_t at = sent > header ? sent - header : 0, left = part->frame.bytes - at;
		bool zero = tcp_zero_pays(out, part, left);
		if (sent < header)
			v[n++] = (struct iovec){ (char *)&part->frame + sent, header - sent };
		if (zero && n > 0) {
			*flags |= MSG_MORE;
			break;
		}
		if (zero && left > ZERO_MOST)
			left = ZERO_MOST;
		if (left)
			v[n++] = (struct iovec){ (void *)(part->payload + at), left };
		if (zero) {
			*flags |= MSG_ZEROCOPY;
			break;
		}
	}
	return n;
}

/* So many bytes have been written. True: `last` among them. */
static bool
advance(struct tcp_out *out, uint64_t bytes, const struct tcp_part *last)
{
	bool done = false;
	while (out->head) {
		struct tcp_part *part = out->head;
		uint64_t rest = sizeof part->frame + part->frame.bytes - part->sent;
		if (bytes < rest) {
			part->sent += bytes;
			break;
		}
		bytes -= rest;
		done = done || part == last;
		out->head = part->next;
		if (!out->head)
			out->tail = &out->head;
		free(part);
	}
	return done;
}

/* Until `last` has been written; NULL: a fair share. With the lock, which it gives up as it writes. */
static void
write_out(struct tcp *t, struct tcp_out *out, const struct tcp_part *last)
{
	uint64_t all = 0;
	bool done = false;
	out->writing = true;
	while (out->head && !done && out->state == OUT_READY && !out->error && !out->cut) {
		struct iovec v[2 * PARTS_AT_ONCE];
		int flags;
		struct msghdr h = { .msg_iov = v, .msg_iovlen = (size_t)gather(out, v, &flags) };
		if (flags & MSG_ZEROCOPY)
			tcp_zero_begin(out);
		pthread_mutex_unlock(&out->lock);
		ssize_t n = sendmsg(out->fd, &h, flags);
		int code = n < 0 ? errno : 0;
		pthread_mutex_lock(&out->lock);
		if (flags & MSG_ZEROCOPY)
			code = tcp_zero_end(t, out, code);
		if (code == EAGAIN)
			break;
		if (code && code != EINTR)
			out->error = code;
		if (n > 0)
			done = advance(out, (uint64_t)n, last) || (all += (uint64_t)n) >= BYTES_AT_ONCE;
	}
	out->writing = false;
	bool arm = out->head && out->state == OUT_READY && !out->error;
	if (arm != out->armed && out->state == OUT_READY
	    && !tcp_watch(t, out->fd, out, EPOLLIN | (arm ? EPOLLOUT : 0u)))
		out->error = errno;
	out->armed = arm;
	if (out->error || out->state == OUT_ENDED)
		tcp_attend(t, out->peer);
}

static void
push(struct tcp *t, struct tcp_out *out, struct tcp_part *part)
{
	pthread_mutex_lock(&out->lock);
	bool first = !out->head;
	*out->tail = part;
	out->tail = &part->next;
	if (out->state == OUT_IDLE)
		out->state = OUT_WANTED;
	if (out->state == OUT_WANTED || out->state == OUT_ENDED)
		tcp_attend(t, out->peer);
	else if (out->state == OUT_READY && first && !out->writing)
		write_out(t, out, part);
	pthread_mutex_unlock(&out->lock);
}

/* ---- send ---- */

static struct tcp_part *
new_part(uint32_t kind, const struct net_message *m, const char *payload, uint64_t offset, uint64_t bytes)
{
	struct tcp_part *part = malloc(sizeof *part);
	if (part)
		*part = (struct tcp_part){ .payload = bytes ? payload + offset : NULL,
			.frame = { .kind = kind, .m = *m, .offset = offset, .bytes = bytes } };
	return part;
}

static int
parts_of(const struct net_message *m)
{
	return m->bytes < 2 * TCP_PART ? 1 : m->bytes < TCP_LONG * TCP_PART ? (int)(m->bytes / TCP_PART) : TCP_LONG;
}

/* n parts in a list; NULL: no memory. */
static struct tcp_part *
cut(const struct net_message *m, const char *payload, int n)
{
	uint64_t bytes = n == 1 ? m->bytes : (m->bytes / (uint64_t)n + PAGE - 1) / PAGE * PAGE;
	struct tcp_part *list = NULL;
	for (int i = n - 1; i >= 0; i--) {
		uint64_t at = (uint64_t)i * bytes;
		struct tcp_part *part = new_part(FRAME_PART, m, payload, at, i == n - 1 ? m->bytes - at : bytes);
		if (part)
			part->next = list;
		if (!part) {
			tcp_free_parts(list);
			return NULL;
		}
		list = part;
	}
	return list;
}

static bool
take_order(struct tcp_peer *peer, uint32_t lane, uint32_t *order)
{
	uint32_t number = tcp_lane_number(lane);
	pthread_mutex_lock(&peer->lock);
	uint32_t *table = tcp_reach(peer->order, &peer->n_orders, sizeof *table, number);
	if (table) {
		peer->order = table;
		*order = table[number]++;
	}
	pthread_mutex_unlock(&peer->lock);
	return table != NULL;
}

int
tcp_out_send(struct tcp *t, struct tcp_peer *peer, const struct net_message *m, const void *payload)
{
	int n = parts_of(m);
	uint32_t order, way = m->bytes <= TCP_SHORT ? 0 : 1 + m->lane % TCP_LONG;
	struct tcp_part *part = cut(m, payload, n);
	if (!part)
		return blinkOutOfMemory;
	if (!take_order(peer, m->lane, &order)) {
		tcp_free_parts(part);
		return blinkOutOfMemory;
	}
	for (struct tcp_part *next; part; part = next) {
		next = part->next;
		part->next = NULL;
		part->frame.order = order;
		push(t, &peer->out[way], part);
		way = way == TCP_LONG ? 1 : way + 1;
	}
	return blinkSuccess;
}

/* A peer that waits for the rest of a message waits until the net is closed, and hears the reason from elsewhere first:
 * the connection is left as it is, unless the kernel itself sends from memory of the caller (tcp_zero.c). */
void
tcp_out_abandon(struct tcp_out *out)
{
	pthread_mutex_lock(&out->lock);
	out->cut = out->cut || out->head;
	while (out->writing) {
		pthread_mutex_unlock(&out->lock);
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		pthread_mutex_lock(&out->lock);
	}
	tcp_drop_parts(out);
	if (tcp_zero_lent(out)) {
		out->cut = true;
		tcp_zero_reset(out);
	}
	pthread_mutex_unlock(&out->lock);
}

/* Only where something has been sent, and nothing is missing: other connections need no farewell. */
void
tcp_out_farewell(struct tcp *t, struct tcp_out *out)
{
	struct net_message none = { 0 };
	pthread_mutex_lock(&out->lock);
	bool wanted = out->state != OUT_IDLE && out->state != OUT_ENDED && !out->cut;
	pthread_mutex_unlock(&out->lock);
	struct tcp_part *part = wanted ? new_part(FRAME_BYE, &none, NULL, 0, 0) : NULL;
	if (part)
		push(t, out, part);
}

bool
tcp_out_idle(struct tcp *t, struct tcp_out *out)
{
	pthread_mutex_lock(&out->lock);
	bool ended = out->state == OUT_ENDED, lent = !ended && tcp_zero_lent(out);
	bool idle = ended || (!out->head && !out->writing && !lent);
	pthread_mutex_unlock(&out->lock);
	if (lent)
		tcp_look_by(t, now_ns() + 5 * MS);
	return idle;
}

/* ---- connect ---- */

static void
set_state(struct tcp_out *out, enum tcp_out_state state)
{
	pthread_mutex_lock(&out->lock);
	out->state = state;
	pthread_mutex_unlock(&out->lock);
}

/* A peer listens before others know its address, so one that refuses has ended. Other troubles may pass. */
static void
again(struct tcp *t, struct tcp_out *out, int code, const char *what)
{
	const char *why = code ? strerror(code) : "connection closed";
	if (out->fd >= 0)
		close(out->fd);
	out->fd = -1;
	out->n_answer = 0;
	if (code == ECONNREFUSED || now_ns() - out->since >= t->keys.patience) {
		tcp_break(t, out->peer, ": cannot %s: %s", what, why);
		return;
	}
	set_state(out, OUT_WANTED);
	out->retry = now_ns() + 50 * MS;
	tcp_look_by(t, out->retry);
}

static void
start(struct tcp *t, struct tcp_out *out)
{
	struct tcp_peer *peer = out->peer;
	int family = peer->address.sin6_family;
	socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof peer->address;
	out->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (out->fd < 0) {
		again(t, out, errno, "open a socket");
		return;
	}
	tcp_options(t, out->fd);
	if ((connect(out->fd, (const struct sockaddr *)&peer->address, size) != 0 && errno != EINPROGRESS)
	    || !tcp_watch(t, out->fd, out, EPOLLOUT)) {
		again(t, out, errno, "connect");
		return;
	}
	set_state(out, OUT_CONNECTING);
	tcp_look_by(t, out->since + t->keys.patience);
}

static void
connected(struct tcp *t, struct tcp_out *out)
{
	int code = 0;
	socklen_t size = sizeof code;
	if (getsockopt(out->fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
		code = errno;
	if (!code && !tcp_hello(&out->ours, t->rank, out->peer->rank, out->way))
		code = errno;
	if (!code && send(out->fd, &out->ours, sizeof out->ours, MSG_NOSIGNAL) != (ssize_t)sizeof out->ours)
		code = errno ? errno : EIO;
	if (!code && !tcp_watch(t, out->fd, out, EPOLLIN))
		code = errno;
	if (code)
		again(t, out, code, "connect");
	else
		set_state(out, OUT_HELLO);
}

static void
answered(struct tcp *t, struct tcp_out *out)
{
	struct tcp_hello theirs;
	unsigned char proof[TCP_PROOF];
	memcpy(&theirs, out->answer, sizeof theirs);
	if (!tcp_hello_good(&theirs) || theirs.from != (uint32_t)out->peer->rank || theirs.to != (uint32_t)t->rank
	    || !tcp_proved(t, tcp_accepts, &out->ours, &theirs, out->answer + sizeof theirs)) {
		tcp_break(t, out->peer, ": who answers does not belong to this job");
		return;
	}
	tcp_prove(t, tcp_connects, &out->ours, &theirs, proof);
	if (send(out->fd, proof, sizeof proof, MSG_NOSIGNAL) != (ssize_t)sizeof proof) {
		again(t, out, errno, "connect");
		return;
	}
	out->n_answer = 0;
	set_state(out, OUT_PROVED);
}

static void
welcomed(struct tcp *t, struct tcp_out *out)
{
	out->heard = out->looked = now_ns();
	tcp_look_by(t, out->heard + t->keys.patience / 8);
	pthread_mutex_lock(&out->lock);
	out->state = OUT_READY;
	tcp_zero_open(t, out);
	write_out(t, out, NULL);
	pthread_mutex_unlock(&out->lock);
}

static void
read_answer(struct tcp *t, struct tcp_out *out)
{
	size_t want = out->state == OUT_HELLO ? sizeof out->answer : 1;
	ssize_t n = recv(out->fd, out->answer + out->n_answer, want - out->n_answer, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		again(t, out, n < 0 ? errno : 0, "connect");
		return;
	}
	out->n_answer += (size_t)n;
	if (out->n_answer < want)
		return;
	if (out->state == OUT_HELLO)
		answered(t, out);
	else if (out->answer[0] == BACK_WELCOME)
		welcomed(t, out);
	else
		tcp_break(t, out->peer, ": its answer to a connection is not understood");
}

/* ---- events ---- */

/* After this rank's own farewell a peer closes each connection as it comes to its end. One that was abandoned is no
 * matter any more. */
static void
ended(struct tcp *t, struct tcp_out *out, const char *why)
{
	pthread_mutex_lock(&out->lock);
	bool good = (atomic_load(&t->closing) || out->cut) && !out->head;
	if (good) {
		out->state = OUT_ENDED;
		epoll_ctl(t->epoll, EPOLL_CTL_DEL, out->fd, NULL);
	}
	pthread_mutex_unlock(&out->lock);
	if (!good)
		tcp_break(t, out->peer, " has ended: %s", why);
}

static void
read_back(struct tcp *t, struct tcp_out *out)
{
	char text[64];
	ssize_t n = recv(out->fd, text, sizeof text, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		ended(t, out, n < 0 ? strerror(errno) : "connection closed");
	for (ssize_t i = 0; i < n && out->state == OUT_READY; i++) {
		out->held = text[i] == BACK_WAIT;
		if (text[i] == BACK_BYE)
			tcp_gone(t, out->peer);
		else if (text[i] != BACK_WAIT && text[i] != BACK_GO)
			tcp_break(t, out->peer, ": its answer to a message is not understood");
	}
}

/* True: it is all that has happened. */
static bool
hear_kernel(struct tcp *t, struct tcp_out *out, uint32_t events)
{
	if (!(events & EPOLLERR))
		return false;
	pthread_mutex_lock(&out->lock);
	bool some = tcp_zero_read(t, out);
	pthread_mutex_unlock(&out->lock);
	return some && !(events & ~(uint32_t)(EPOLLOUT | EPOLLERR));
}

void
tcp_out_ready(struct tcp *t, struct tcp_out *out, uint32_t events)
{
	if (out->state == OUT_CONNECTING)
		connected(t, out);
	else if (out->state == OUT_HELLO || out->state == OUT_PROVED)
		read_answer(t, out);
	else if (out->state == OUT_READY && events & ~(uint32_t)EPOLLOUT && !hear_kernel(t, out, events))
		read_back(t, out);
	if (out->state == OUT_READY && events & EPOLLOUT) {
		pthread_mutex_lock(&out->lock);
		if (!out->writing)
			write_out(t, out, NULL);
		pthread_mutex_unlock(&out->lock);
	}
}

void
tcp_out_attend(struct tcp *t, struct tcp_out *out)
{
	pthread_mutex_lock(&out->lock);
	enum tcp_out_state state = out->state;
	int error = out->error;
	bool needed = !out->writing && tcp_out_needed(out);
	if (state == OUT_ENDED && !out->writing)
		tcp_drop_parts(out);
	pthread_mutex_unlock(&out->lock);
	if (atomic_load(&out->peer->broken))
		return;
	if (error)
		tcp_break(t, out->peer, ": %s", strerror(error));
	else if (needed && out->peer->gone)
		tcp_break(t, out->peer, " has left, and a message to it was sent");
	else if (state == OUT_WANTED && out->since == 0 && !out->peer->gone) {
		out->since = now_ns();
		start(t, out);
	}
}

/* Has the host of the peer been silent for too long, with bytes under way? */
static bool
silent(struct tcp *t, struct tcp_out *out, int64_t now)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof info;
	if (getsockopt(out->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || out->held || info.tcpi_unacked == 0
	    || now - (int64_t)info.tcpi_last_ack_recv * MS >= out->looked)
		out->heard = now;
	out->looked = now;
	tcp_look_by(t, now + t->keys.patience / 8);
	return now - out->heard >= t->keys.patience;
}

void
tcp_out_tick(struct tcp *t, struct tcp_out *out, int64_t now)
{
	if (out->state == OUT_READY) {
		if (silent(t, out, now))
			tcp_break(t, out->peer, " has not answered for %lld ms: the network or its host is down",
			    (long long)(t->keys.patience / MS));
	} else if (out->state == OUT_WANTED && out->since != 0) {
		if (now >= out->retry)
			start(t, out);
		else
			tcp_look_by(t, out->retry);
	} else if (out->state != OUT_IDLE && out->state != OUT_WANTED && out->state != OUT_ENDED) {
		if (now - out->since >= t->keys.patience)
			tcp_break(t, out->peer, " has not answered a connection for %lld ms",
			    (long long)(t->keys.patience / MS));
		else
			tcp_look_by(t, out->since + t->keys.patience);
	}
}
