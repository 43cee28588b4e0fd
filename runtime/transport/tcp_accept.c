/* Connections that others open. Who does not prove within a second that it belongs to the job is dropped; how many may
 * be in that state, and who goes for another, is in bootstrap/crowd.h. */
#include "transport/tcp_inside.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MS = 1000000,
	ACCEPTS = 64		/* at a time: others want their turn */
};

/* ---- the listener ---- */

/* It rests until one of the strangers has left, or the next tick. */
static void
pause_listener(struct tcp *t)
{
	t->listening = !tcp_watch(t, t->listener, &t->listener_source, 0);
	tcp_look_by(t, now_ns() + 50 * MS);
}

/* Again, if it had paused. */
static void
listen_again(struct tcp *t)
{
	if (t->listening)
		return;
	t->listening = tcp_watch(t, t->listener, &t->listener_source, EPOLLIN);
	if (!t->listening)
		tcp_look_by(t, now_ns() + 50 * MS);
}

/* ---- the handshake ---- */

static void
end_in(struct tcp *t, struct tcp_in *in)
{
	if (in->state == IN_HELLO || in->state == IN_PROOF) {
		crowd_leave(&t->crowd, &in->stranger);
		listen_again(t);
	}
	tcp_in_end(t, in);
}

static bool
answer_hello(struct tcp *t, struct tcp_in *in)
{
	unsigned char answer[sizeof in->ours + TCP_PROOF];
	memcpy(&in->theirs, in->buffer, sizeof in->theirs);
	const struct tcp_hello *h = &in->theirs;
	if (!tcp_hello_good(h) || h->to != (uint32_t)t->rank || h->from == h->to || h->from >= (uint32_t)t->n_ranks
	    || h->way >= TCP_WAYS_MOST)
		return false;
	if (!tcp_hello(&in->ours, t->rank, (int)h->from, h->way))
		return false;
	memcpy(answer, &in->ours, sizeof in->ours);
	tcp_prove(t, tcp_accepts, &in->theirs, &in->ours, answer + sizeof in->ours);
	in->state = IN_PROOF;
	in->stranger.spoke = true;
	return send(in->fd, answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer;
}

static bool
accept_proof(struct tcp *t, struct tcp_in *in)
{
	char welcome = BACK_WELCOME;
	struct tcp_peer *peer = &t->peer[in->theirs.from];
	if (!tcp_proved(t, tcp_connects, &in->theirs, &in->ours, in->buffer))
		return false;
	if (atomic_load(&peer->broken) || send(in->fd, &welcome, 1, MSG_NOSIGNAL) != 1)
		return false;
	in->peer = peer;
	in->state = IN_READY;
	crowd_leave(&t->crowd, &in->stranger);
	listen_again(t);
	return true;
}

/* A hello and a proof have a fixed length each: they are read when that many bytes are there. */
void
tcp_stranger_ready(struct tcp *t, struct tcp_in *in)
{
	size_t want = in->state == IN_HELLO ? sizeof in->theirs : TCP_PROOF;
	ssize_t n = recv(in->fd, in->buffer + in->end, want - in->end, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	bool good = n > 0;
	if (good)
		in->end += (size_t)n;
	if (good && in->end == want) {
		good = in->state == IN_HELLO ? answer_hello(t, in) : accept_proof(t, in);
		in->end = 0;
	}
	if (!good)
		end_in(t, in);
}

static struct tcp_in *
in_of(struct stranger *s)
{
	return (struct tcp_in *)((char *)s - offsetof(struct tcp_in, stranger));
}

/* Its descriptor is free at once; what an event may refer to, later. False: all are too young. */
static bool
evict(struct tcp *t)
{
	struct stranger *s = crowd_evict(&t->crowd, now_ns());
	if (!s)
		return false;
	struct tcp_in *in = in_of(s);
	end_in(t, in);
	close(in->fd);
	in->fd = -1;
	return true;
}

static void
new_stranger(struct tcp *t, int fd)
{
	struct tcp_in *in = malloc(sizeof *in);
	if (!in) {
		close(fd);
		return;
	}
	*in = (struct tcp_in){ .source = SOURCE_IN, .fd = fd, .next = t->in };
	t->in = in;
	crowd_enter(&t->crowd, &in->stranger, now_ns());
	tcp_options(t, fd);
	tcp_look_by(t, in->stranger.since + CROWD_TIME);
	if (tcp_watch(t, fd, in, EPOLLIN))
		tcp_stranger_ready(t, in);
	else
		end_in(t, in);
}

/* Tell the job why connections of its peers may fail: no descriptor is left, or strangers take them. */
static void
tell_shortage(struct tcp *t, int shortage)
{
	if (shortage == 0 && crowd_presses(&t->crowd, now_ns()))
		shortage = EUSERS;
	if (shortage != t->shortage && t->events.short_of)
		t->events.short_of(t->events.context, shortage);
	t->shortage = shortage;
}

void
tcp_accept(struct tcp *t)
{
	int error = 0;
	for (int i = 0; i < ACCEPTS && t->listening; i++) {
		if (crowd_full(&t->crowd) && !evict(t)) {
			pause_listener(t);
			break;
		}
		int fd = accept4(t->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			new_stranger(t, fd);
			continue;
		}
		error = errno;
		if (error == EAGAIN || error == EWOULDBLOCK)
			error = 0;
		if (error == 0)
			break;
		if (error == ECONNABORTED || error == EINTR || evict(t))
			continue;
		pause_listener(t);
	}
	tell_shortage(t, error == ECONNABORTED || error == EINTR ? 0 : error);
}

void
tcp_crowd_tick(struct tcp *t, int64_t now)
{
	listen_again(t);
	if (t->shortage != EUSERS)
		return;
	if (crowd_presses(&t->crowd, now))
		tcp_look_by(t, now + CROWD_TIME);
	else
		tell_shortage(t, 0);
}

/* Its time is over, unless this thread was late and the answer is there. */
void
tcp_stranger_tick(struct tcp *t, struct tcp_in *in, int64_t now)
{
	enum tcp_in_state before = in->state;
	if (now - in->stranger.since < CROWD_TIME) {
		tcp_look_by(t, in->stranger.since + CROWD_TIME);
		return;
	}
	tcp_stranger_ready(t, in);
	if (in->state == before)
		end_in(t, in);
	else if (in->state == IN_PROOF)
		tcp_look_by(t, now + CROWD_PATIENCE);
}
