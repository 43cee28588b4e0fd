/* The rank's side: a thread for each connection, which writes what callers leave for it under the lock, and hears the
 * hub. Joining is the first exchange. Whatever a rank waits for, its own clock ends the wait: at the deadline it tells
 * the hub, which knows whose fault it is; if the hub does not say so within grace_of(patience), the hub is at fault. */
#include "bootstrap/bootstrap_inside.h"

#include "base/printable.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEAVE_WAIT SECOND		/* for the hub to close its side */

/* ---- failures ---- */

/* The first one counts. Callers of exchanges get it, and the engine hears of it unless it has said so itself. */
static void
declare(struct bootstrap *b, int code, int culprit, const char *text)
{
	pthread_mutex_lock(&b->lock);
	bool first = b->failure.code == blinkSuccess, tell = first && b->joined && !b->leaving;
	if (first) {
		b->failure.code = code;
		snprintf(b->failure.text, sizeof b->failure.text, "%s", text);
		pthread_cond_broadcast(&b->change);
	}
	pthread_mutex_unlock(&b->lock);
	if (tell)
		b->events.failed(b->events.context, code, culprit, text);
}

/* "rank 0", or what is known of a hub that is no rank's. */
static const char *
hub_name(const struct bootstrap *b, char *out, size_t room)
{
	char address[ADDRESS_ROOM];
	address_text(b->hub, b->hub_rank < 0, address);
	if (b->hub_rank >= 0)
		snprintf(out, room, "rank %d (%s)", b->hub_rank, address);
	else
		snprintf(out, room, "the process that made the id (%s)", address);
	return out;
}

static void
hub_silent(struct bootstrap *b)
{
	char name[128], text[256];
	b->no_answer = true;
	snprintf(text, sizeof text, "%s does not answer: stopped, or cut off", hub_name(b, name, sizeof name));
	declare(b, blinkTimeout, b->hub_rank, text);
}

static void
hub_gone(struct bootstrap *b, int error)
{
	char name[128], reason[REASON_ROOM], text[320];
	b->gone = true;
	descriptor_close(&b->socket);
	writer_free(&b->out);
	pthread_mutex_lock(&b->lock);
	bool expected = b->leaving || b->hub_may_end;
	pthread_mutex_unlock(&b->lock);
	if (expected)
		return;
	hub_name(b, name, sizeof name);
	if (error == 0 || error == ECONNRESET || error == EPIPE)
		snprintf(text, sizeof text, "%s has ended%s", name, b->hub_rank >= 0 ? " without leaving the job" : "");
	else
		snprintf(text, sizeof text, "the connection to %s is lost: %s", name, reason_of(error, reason));
	declare(b, blinkRemoteError, b->hub_rank, text);
}

/* ---- what the hub says ---- */

/* That all ranks contribute to the exchange that this one waits for. */
static size_t
all_bytes(struct bootstrap *b)
{
	pthread_mutex_lock(&b->lock);
	size_t bytes = b->exchanging ? (size_t)b->n * b->exchange.bytes : 0;
	pthread_mutex_unlock(&b->lock);
	return bytes;
}

static void
hear_all(struct bootstrap *b)
{
	pthread_mutex_lock(&b->lock);
	struct exchange *e = &b->exchange;
	bool good = b->exchanging && b->in.head.bytes == (uint64_t)b->n * e->bytes;
	if (good) {
		if (b->in.head.bytes)
			memcpy(e->all, b->in.body, b->in.head.bytes);
		e->done = true;
		b->exchanging = false;
		b->joined = true;
		pthread_cond_broadcast(&b->change);
	}
	pthread_mutex_unlock(&b->lock);
	if (!good)
		hub_gone(b, EPROTO);
}

static void
hear_ask(struct bootstrap *b)
{
	struct answer a = { { 0 } };
	b->events.ask(b->events.context, &a.status);
	struct packet *p = packet_new(FRAME_ANSWER, &a, sizeof a);
	if (!writer_add(&b->out, p))
		hub_gone(b, ENOMEM);
	packet_drop(p);
	pthread_mutex_lock(&b->lock);
	b->stuck.asked_at = now_ns();
	pthread_mutex_unlock(&b->lock);
}

union said_by_hub {
	struct joined joined;
	struct left left;
	struct failure failure;
};

/* Are the numbers of the frame ones that a hub may say now? Ranks index memory of those who hear of them. A job that
 * never began may have failed because of a rank that believes in more of them. */
static bool
valid(const struct bootstrap *b, const union said_by_hub *body)
{
	switch (b->in.head.kind) {
	case FRAME_JOINED:
		return !b->joined && body->joined.hub_rank >= -1 && body->joined.hub_rank < b->n;
	case FRAME_FAILED:
		return failure_valid(&body->failure, b->joined ? b->n : RANKS_MAX);
	case FRAME_LEFT:
		return b->joined && body->left.rank >= 0 && body->left.rank < b->n && body->left.rank != b->rank;
	case FRAME_ASK:
		return b->joined;
	default:
		return true;
	}
}

static void
hear_frame(struct bootstrap *b)
{
	union said_by_hub body;
	if (b->in.head.bytes <= sizeof body)
		memcpy(&body, b->in.body, b->in.head.bytes);
	if (!valid(b, &body)) {
		hub_gone(b, EPROTO);
		return;
	}
	pthread_mutex_lock(&b->lock);
	bool leaving = b->leaving;
	pthread_mutex_unlock(&b->lock);
	if (b->in.head.kind == FRAME_ALL) {
		hear_all(b);
	} else if (b->in.head.kind == FRAME_JOINED) {
		b->hub_rank = body.joined.hub_rank;
	} else if (b->in.head.kind == FRAME_FAILED) {
		body.failure.text[sizeof body.failure.text - 1] = 0;
		make_printable(body.failure.text);
		declare(b, body.failure.code, body.failure.culprit, body.failure.text);
	} else if (b->in.head.kind == FRAME_LEFT) {
		b->hub_may_end |= body.left.hub_may_end != 0;
		if (!leaving)
			b->events.left(b->events.context, body.left.rank, body.left.calls);
	} else if (b->in.head.kind == FRAME_ASK && !leaving) {
		hear_ask(b);
	}
}

static void
hear(struct bootstrap *b)
{
	enum read got = READ_FRAME;
	while (!b->gone) {
		b->in.most = all_bytes(b);
		if ((got = reader_read(&b->in, b->socket.fd)) != READ_FRAME)
			break;
		hear_frame(b);
		reader_next(&b->in);
	}
	if (got == READ_END)
		hub_gone(b, errno);
}

/* ---- messages to the hub ---- */

bool
bootstrap_tell(struct bootstrap *b, enum frame_kind kind, const void *body, size_t bytes)
{
	struct packet *p = packet_new(kind, body, bytes);
	bool good = writer_add(&b->out, p);
	packet_drop(p);
	return good;
}

static bool
tell_stuck(struct bootstrap *b)
{
	struct investigation *i = &b->stuck;
	bool told = i->told;
	i->changed = false;
	i->told = i->wanted;
	if (i->wanted) {
		struct stuck s = { .left = i->deadline - now_ns(), .patience = i->patience };
		return bootstrap_tell(b, FRAME_STUCK, &s, sizeof s);
	}
	return !told || bootstrap_tell(b, FRAME_PROGRESS, NULL, 0);
}

/* What callers want said. With the lock. False: no memory. */
static bool
tell_wanted(struct bootstrap *b)
{
	struct exchange *e = &b->exchange;
	bool good = true;
	if (b->exchanging && !e->given) {
		e->given = true;
		good &= bootstrap_tell(b, FRAME_GIVE, e->mine, e->bytes);
	}
	if (b->exchanging && !e->late && now_ns() >= e->deadline) {
		struct late l = { e->patience };
		e->late = true;
		good &= bootstrap_tell(b, FRAME_LATE, &l, sizeof l);
	}
	if (b->stuck.changed)
		good &= tell_stuck(b);
	if (b->fail_wanted) {
		b->fail_wanted = false;
		good &= bootstrap_tell(b, FRAME_FAIL, &b->fail, sizeof b->fail);
	}
	if (b->leaving && !b->said_farewell) {
		struct farewell f = { b->calls };
		b->said_farewell = true;
		b->leave_until = now_ns() + (b->no_answer ? 0 : LEAVE_WAIT);
		good &= bootstrap_tell(b, FRAME_FAREWELL, &f, sizeof f);
	}
	return good;
}

/* ---- the thread ---- */

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Until when the hub's word on a wait that is too long is waited for. It asks four times until the deadline: if it has
 * done so of late it lives, and is given more time; if not, it has been silent for long already. */
static int64_t
stuck_until(const struct bootstrap *b)
{
	const struct investigation *i = &b->stuck;
	int64_t from = later(i->deadline, i->since), grace = grace_of(i->patience);
	if (b->gone)
		return from;
	if (i->asked_at > from - i->patience / 2)
		return from + grace + i->patience;
	return later(from + later(SECOND / 10, i->patience / 10), later(i->asked_at, i->since) + grace);
}

/* With the lock. */
static int64_t
next_timer(const struct bootstrap *b)
{
	int64_t next = INT64_MAX;
	if (b->leaving)
		return b->leave_until;
	if (b->failure.code != blinkSuccess)
		return next;
	if (b->exchanging)
		next = b->exchange.deadline + (b->exchange.late ? grace_of(b->exchange.patience) : 0);
	if (b->stuck.wanted && stuck_until(b) < next)
		next = stuck_until(b);
	return next;
}

/* The hub has ended as it may, but we need it. */
static void
missed(struct bootstrap *b, bool stuck)
{
	char name[128], text[320];
	hub_name(b, name, sizeof name);
	snprintf(text, sizeof text, stuck ? "no rank can be asked why this one waits too long: %s has left"
	    : "%s has left; this rank calls for an exchange of all ranks", name);
	declare(b, stuck ? blinkTimeout : blinkRemoteError, stuck ? -1 : b->hub_rank, text);
}

/* The hub has not said in time who is to blame. */
static void
timers(struct bootstrap *b)
{
	int64_t now = now_ns();
	pthread_mutex_lock(&b->lock);
	bool open = b->failure.code == blinkSuccess && !b->leaving;
	bool exchange = open && b->exchanging;
	bool late = exchange && b->exchange.late && b->exchange.deadline + grace_of(b->exchange.patience) <= now;
	bool stuck = open && b->stuck.wanted && stuck_until(b) <= now;
	pthread_mutex_unlock(&b->lock);
	if (b->gone && (exchange || stuck))
		missed(b, stuck);
	else if (late || stuck)
		hub_silent(b);
}

static void
wait_for_work(struct bootstrap *b, int64_t until)
{
	struct pollfd p[2] = {
		{ .fd = b->wake.fd, .events = POLLIN },
		{ .fd = b->socket.fd, .events = (short)(POLLIN | (b->out.first ? POLLOUT : 0)) },
	};
	int64_t left = until - now_ns();
	left = left < 0 ? 0 : left;
	struct timespec t = { .tv_sec = left / SECOND, .tv_nsec = left % SECOND };
	uint64_t count;
	ppoll(p, 2, until == INT64_MAX ? NULL : &t, NULL);
	if (p[0].revents && read(b->wake.fd, &count, sizeof count) < 0)
		return;			/* EAGAIN: nothing to be reset */
}

/* Who told the hub of a failure may go on, and end the process. */
static void
note_said(struct bootstrap *b)
{
	pthread_mutex_lock(&b->lock);
	if (b->fail.code != blinkSuccess && !b->fail_wanted && !b->fail_said && (b->gone || !b->out.first)) {
		b->fail_said = true;
		pthread_cond_broadcast(&b->change);
	}
	pthread_mutex_unlock(&b->lock);
}

static bool
farewell_done(const struct bootstrap *b)
{
	return b->said_farewell && (b->gone || now_ns() >= b->leave_until);
}

void *
bootstrap_run(void *of)
{
	struct bootstrap *b = of;
	while (!farewell_done(b)) {
		pthread_mutex_lock(&b->lock);
		bool good = b->gone || tell_wanted(b);
		b->said_farewell |= b->leaving;
		pthread_mutex_unlock(&b->lock);
		if (!good)
			hub_gone(b, ENOMEM);
		else if (!b->gone && !writer_flush(&b->out, b->socket.fd))
			hub_gone(b, errno);
		note_said(b);
		timers(b);
		pthread_mutex_lock(&b->lock);
		int64_t until = next_timer(b);
		pthread_mutex_unlock(&b->lock);
		if (farewell_done(b))
			break;
		wait_for_work(b, until);
		if (!b->gone)
			hear(b);
	}
	return NULL;
}
