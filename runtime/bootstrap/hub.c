/* One thread and an epoll. A connection is first a stranger, which has a second to prove that it knows the secret; then
 * a member: the one of its rank; or a guest: it has proved itself, but comes too late or is not wanted, and hears why.
 *
 * Strangers cost a descriptor and some hundred bytes each; there are at most STRANGERS_MAX. When another comes, the
 * oldest goes that has said nothing (a rank speaks at once), else the oldest that is there for CROWDED. So whoever
 * floods the port can make ranks wait a moment or try again, which they do, but neither fill the memory nor use up
 * the descriptors. When all ranks have come the port is closed.
 *
 * What ranks contribute is collected in the packet that is then sent to all of them; nothing is kept of it. The first
 * failure is the one that all hear of. The thread ends when all members have gone, or if some never come, a while after
 * the job has failed. */
#include "bootstrap/hub.h"

#include "base/printable.h"
#include "bootstrap/verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define SECOND INT64_C(1000000000)
#define CROWDED (SECOND / 10)
#define LINGER (60 * SECOND)		/* ranks that come after a failure hear of it */
enum { STRANGERS_MAX = 256, BACKLOG = 4096, EVENTS = 64, NEVER = 0 };

enum state { STRANGER, CHALLENGED, GUEST, MEMBER };

struct connection {
	struct descriptor socket;
	enum state state;
	int rank;				/* of a member */
	unsigned char address[ADDRESS_BYTES];
	bool waits;				/* to be writable */
	int64_t until;				/* a stranger: when its time is up */
	struct connection *next, **back;	/* strangers, by age; or those that are closed and not yet freed */
	struct nonces nonces;
	size_t got;				/* of `said`, which a stranger says */
	union {
		struct hello hello;
		struct proof proof;
	} said;
	struct reader in;
	struct writer out;
};

struct member {
	struct connection *connection;		/* NULL: not come yet, or gone */
	bool come, here, gave;			/* here: in the hub's process */
	unsigned char address[ADDRESS_BYTES];
	int64_t stuck_until, patience;		/* NEVER: not stuck */
	int64_t unanswered_since;		/* the first question; NEVER: all are answered */
};

struct hub {
	struct descriptor listener, epoll, spare;
	struct id id;
	bool listens;				/* the listener is in the epoll */
	int n;					/* 0: no rank has come */
	uint32_t first_bytes;			/* what each contributes to the first exchange */
	struct member *member;
	struct witness *witness;
	int n_come, n_left, n_connected;	/* members; those; members and guests */
	int first_come;				/* the rank whose n and bytes others are held against */
	struct connection *strangers, **strangers_end, *closed;
	int n_strangers;
	int64_t crowded_until;			/* NEVER: not */

	uint64_t exchanges;			/* that are done: the first is the join */
	struct packet *all;			/* NULL: nobody has contributed to the next */
	int n_gave, first_gave;
	uint32_t bytes;

	int64_t asked_at;

	bool failed;
	struct failure failure;
	int64_t end;				/* of a failed job */
};

static void hear(struct hub *h, struct connection *c);

/* ---- failure ---- */

static void
watch(struct hub *h, struct connection *c, int operation)
{
	struct epoll_event e = { .events = EPOLLIN | (c->waits ? EPOLLOUT : 0), .data.ptr = c };
	epoll_ctl(h->epoll.fd, operation, c->socket.fd, &e);
}

/* Write what can be written. A connection that fails here is noticed when it is read: nothing is closed now. */
static void
flush(struct hub *h, struct connection *c)
{
	bool good = writer_flush(&c->out, c->socket.fd);
	if (!good)
		writer_free(&c->out);
	bool waits = c->out.first;
	if (waits != c->waits) {
		c->waits = waits;
		watch(h, c, EPOLL_CTL_MOD);
	}
}

/* Without memory for it the connection ends: its rank then says that the hub has gone. */
static void
give(struct hub *h, struct connection *c, struct packet *p)
{
	if (writer_add(&c->out, p))
		flush(h, c);
	else
		shutdown(c->socket.fd, SHUT_RDWR);
}

static void
give_frame(struct hub *h, struct connection *c, enum frame_kind kind, const void *body, size_t bytes)
{
	struct packet *p = packet_new(kind, body, bytes);
	give(h, c, p);
	packet_drop(p);
}

static void
give_all(struct hub *h, struct packet *p, int except)
{
	for (int r = 0; r < h->n; r++)
		if (h->member[r].connection && r != except)
			give(h, h->member[r].connection, p);
}

static void
give_frame_to_all(struct hub *h, enum frame_kind kind, const void *body, size_t bytes, int except)
{
	struct packet *p = packet_new(kind, body, bytes);
	give_all(h, p, except);
	packet_drop(p);
}

static void
fail_with(struct hub *h, const struct failure *f, int except)
{
	if (h->failed)
		return;
	h->failed = true;
	h->failure = *f;
	h->failure.text[sizeof h->failure.text - 1] = 0;
	make_printable(h->failure.text);
	h->end = now_ns() + LINGER;
	packet_drop(h->all);
	h->all = NULL;
	give_frame_to_all(h, FRAME_FAILED, &h->failure, sizeof h->failure, except);
}

__attribute__((format(printf, 4, 5))) static void
fail(struct hub *h, int code, int culprit, const char *format, ...)
{
	struct failure f = { .code = code, .culprit = culprit };
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(f.text, sizeof f.text, format, arguments);
	va_end(arguments);
	fail_with(h, &f, -1);
}

/* ---- connections begin and end ---- */

static void
listen_again(struct hub *h)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = h };
	h->crowded_until = NEVER;
	if (!h->listens && h->listener.fd >= 0)
		h->listens = epoll_ctl(h->epoll.fd, EPOLL_CTL_ADD, h->listener.fd, &e) == 0;
}

static void
listen_pause(struct hub *h)
{
	epoll_ctl(h->epoll.fd, EPOLL_CTL_DEL, h->listener.fd, NULL);
	h->listens = false;
}

static void
stranger_forget(struct hub *h, struct connection *c)
{
	*c->back = c->next;
	if (c->next)
		c->next->back = c->back;
	else
		h->strangers_end = c->back;
	h->n_strangers--;
	listen_again(h);
}

/* Freed later: an event for it may be under way. */
static void
connection_close(struct hub *h, struct connection *c)
{
	if (c->state == STRANGER || c->state == CHALLENGED)
		stranger_forget(h, c);
	else
		h->n_connected--;
	epoll_ctl(h->epoll.fd, EPOLL_CTL_DEL, c->socket.fd, NULL);
	descriptor_close(&c->socket);
	reader_next(&c->in);
	writer_free(&c->out);
	c->next = h->closed;
	h->closed = c;
	listen_again(h);
}

static void
free_closed(struct hub *h)
{
	while (h->closed) {
		struct connection *c = h->closed;
		h->closed = c->next;
		free(c);
	}
}

/* False: there is none that is old enough. */
static bool
evict(struct hub *h)
{
	struct connection *c = h->strangers;
	while (c && c->state != STRANGER)
		c = c->next;
	if (!c && h->strangers && h->strangers->until - SECOND + CROWDED <= now_ns())
		c = h->strangers;
	if (c)
		connection_close(h, c);
	return c;
}

/* There are too many, all young. */
static void
crowded(struct hub *h)
{
	listen_pause(h);
	h->crowded_until = h->strangers->until - SECOND + CROWDED;
}

static void
stranger_new(struct hub *h, struct descriptor *d, const unsigned char address[ADDRESS_BYTES])
{
	struct connection *c = calloc(1, sizeof *c);
	if (!c) {
		descriptor_close(d);
		return;
	}
	descriptor_move(&c->socket, d);
	socket_tune(c->socket.fd);
	memcpy(c->address, address, ADDRESS_BYTES);
	c->until = now_ns() + SECOND;
	c->back = h->strangers_end;
	*h->strangers_end = c;
	h->strangers_end = &c->next;
	h->n_strangers++;
	watch(h, c, EPOLL_CTL_ADD);
	hear(h, c);
}

/* No descriptor is left. If no stranger has one, the job cannot begin: the spare one lets the others in, one at a
 * time, to hear why. */
static void
exhausted(struct hub *h, int error)
{
	char reason[REASON_ROOM];
	if (h->strangers) {
		crowded(h);
		return;
	}
	fail(h, blinkSystemError, -1, "the process that made the id cannot accept all ranks: %s", reason_of(error, reason));
	if (h->spare.fd >= 0) {
		descriptor_close(&h->spare);
		return;
	}
	listen_pause(h);
}

static void
accept_some(struct hub *h)
{
	for (int i = 0; i < EVENTS && h->listens; i++) {
		unsigned char address[ADDRESS_BYTES];
		struct descriptor d;
		if (h->n_strangers == STRANGERS_MAX && !evict(h))
			crowded(h);
		else if (descriptor_accept(&d, h->listener.fd, address))
			stranger_new(h, &d, address);
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		else if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) && !evict(h)) {
			exhausted(h, errno);
			return;
		}
	}
}

/* ---- the handshake ---- */

static bool
challenge(struct hub *h, struct connection *c)
{
	struct challenge out;
	memcpy(c->nonces.rank, c->said.hello.nonce, NONCE_BYTES);
	if (!random_bytes(c->nonces.hub, NONCE_BYTES))
		return false;
	memcpy(out.nonce, c->nonces.hub, NONCE_BYTES);
	mac_of_hub(h->id.secret, &c->nonces, out.mac);
	c->state = CHALLENGED;
	return send(c->socket.fd, &out, sizeof out, MSG_NOSIGNAL) == (ssize_t)sizeof out;
}

/* The first rank says how many there are. */
static bool
make_members(struct hub *h, const struct proof *p)
{
	h->member = calloc((size_t)p->n, sizeof *h->member);
	h->witness = calloc((size_t)p->n, sizeof *h->witness);
	if (!h->member || !h->witness) {
		free(h->member);
		free(h->witness);
		h->member = NULL;
		h->witness = NULL;
		fail(h, blinkOutOfMemory, -1, "the process that made the id: no memory for %d ranks", p->n);
		return false;
	}
	h->n = p->n;
	h->first_come = p->rank;
	h->first_bytes = p->bytes;
	return true;
}

static bool
right_version(struct hub *h, const struct proof *p)
{
	if (p->version == WIRE_VERSION)
		return true;
	fail(h, blinkInvalidArgument, p->rank, "rank %d has libblink %.*s, which speaks version %u of the bootstrap; the "
	    "process that made the id has %s, version %d", p->rank, (int)sizeof p->library, p->library, p->version,
	    BLINK_VERSION, WIRE_VERSION);
	return false;
}

/* Is it one of this job's ranks, and not there yet? If not, the job fails. */
static bool
welcome(struct hub *h, const struct connection *c, const struct proof *p)
{
	char here[ADDRESS_ROOM], there[ADDRESS_ROOM];
	if (h->failed || !right_version(h, p))
		return false;
	if (p->n < 1 || p->n > RANKS_MAX || p->rank < 0 || p->rank >= p->n || p->bytes > JOIN_MAX) {
		fail(h, blinkInvalidArgument, p->rank, "rank %d of %d with %u bytes: not valid", p->rank, p->n, p->bytes);
		return false;
	}
	if (!h->n && !make_members(h, p))
		return false;
	const struct member *m = p->rank < h->n ? &h->member[p->rank] : NULL;
	if (p->n != h->n)
		fail(h, blinkInvalidArgument, p->rank, "rank %d has come with %d ranks, rank %d with %d: want the same number",
		    p->rank, p->n, h->first_come, h->n);
	else if (p->bytes != h->first_bytes)
		fail(h, blinkInvalidArgument, p->rank, "rank %d contributes %u bytes, rank %d %u: want the same number",
		    p->rank, p->bytes, h->first_come, h->first_bytes);
	else if (m->come)
		fail(h, blinkInvalidArgument, p->rank, "two ranks have come as rank %d, from %s and from %s", p->rank,
		    address_text(m->address, true, here), address_text(c->address, true, there));
	return !h->failed;
}

static bool
admit(struct hub *h, struct connection *c)
{
	unsigned char mac[HMAC_BYTES];
	const struct proof *p = &c->said.proof;
	mac_of_rank(h->id.secret, &c->nonces, p, mac);
	if (!hmac_equal(mac, p->mac))
		return false;
	stranger_forget(h, c);
	h->n_connected++;
	c->state = GUEST;
	if (!welcome(h, c, p)) {
		give_frame(h, c, FRAME_FAILED, &h->failure, sizeof h->failure);
		return true;
	}
	struct member *m = &h->member[p->rank];
	*m = (struct member){ .connection = c, .come = true, .here = p->process == h->id.process };
	memcpy(m->address, c->address, ADDRESS_BYTES);
	c->state = MEMBER;
	c->rank = p->rank;
	h->n_come++;
	return true;
}

/* False: not one of ours, to be closed. */
static bool
hear_stranger(struct hub *h, struct connection *c)
{
	while (c->state == STRANGER || c->state == CHALLENGED) {
		size_t want = c->state == STRANGER ? sizeof c->said.hello : sizeof c->said.proof;
		ssize_t got = recv(c->socket.fd, (char *)&c->said + c->got, want - c->got, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
		c->got += (size_t)got;
		if (c->state == STRANGER && memcmp(c->said.hello.magic, HELLO_MAGIC, c->got < 8 ? c->got : 8) != 0)
			return false;
		if (c->got < want)
			continue;
		c->got = 0;
		if (!(c->state == STRANGER ? challenge(h, c) : admit(h, c)))
			return false;
	}
	return true;
}

/* ---- exchanges ---- */

static int
lowest_here(const struct hub *h)
{
	for (int r = 0; r < h->n; r++)
		if (h->member[r].here && !h->witness[r].left)
			return r;
	return -1;
}

static void
exchange_done(struct hub *h)
{
	if (h->exchanges++ == 0) {
		struct joined j = { .hub_rank = lowest_here(h) };
		give_frame_to_all(h, FRAME_JOINED, &j, sizeof j, -1);
		descriptor_close(&h->listener);		/* also those that are not accepted yet */
		descriptor_close(&h->spare);
		h->listens = false;
		while (h->strangers)
			connection_close(h, h->strangers);
	}
	struct packet *p = h->all;
	h->all = NULL;
	h->n_gave = 0;
	for (int r = 0; r < h->n; r++)
		h->member[r].gave = false;
	give_all(h, p, -1);
	packet_drop(p);
}

/* An exchange in which a rank that has left would have to take part never ends. */
static void
exchange_without(struct hub *h)
{
	for (int r = 0; r < h->n && h->n_left && h->all; r++)
		if (h->witness[r].left)
			fail(h, blinkRemoteError, r, "rank %d has left; rank %d calls for an exchange of all ranks", r,
			    h->first_gave);
}

static void
contribution(struct hub *h, struct connection *c)
{
	struct member *m = &h->member[c->rank];
	uint32_t bytes = c->in.head.bytes;
	if (!h->all) {
		size_t total = (size_t)h->n * bytes;
		h->all = total <= UINT32_MAX ? packet_new(FRAME_ALL, NULL, total) : NULL;
		h->bytes = bytes;
		h->first_gave = c->rank;
	}
	if (!h->all) {
		fail(h, blinkOutOfMemory, -1, "the process that made the id: no memory for %u bytes of %d ranks", bytes, h->n);
	} else if (m->gave || (!h->exchanges && bytes != h->first_bytes)) {
		fail(h, blinkInternalError, c->rank, "rank %d contributes to an exchange out of turn", c->rank);
	} else if (bytes != h->bytes) {
		fail(h, blinkMismatch, c->rank, "rank %d exchanges %u bytes, rank %d %u", c->rank, bytes, h->first_gave,
		    h->bytes);
	} else {
		if (bytes)
			memcpy(h->all->body + (size_t)c->rank * bytes, c->in.body, bytes);
		m->gave = true;
		if (++h->n_gave == h->n)
			exchange_done(h);
		else
			exchange_without(h);
	}
}

/* A rank has waited too long for an exchange. */
static void
late(struct hub *h, int64_t patience)
{
	char names[160] = "", time[DURATION_ROOM];
	int missing = 0, first = -1, at = 0;
	enum { NAMED = 8 };
	if (!h->all)
		return;					/* it has just been done */
	for (int r = 0; r < h->n; r++) {
		if (h->member[r].gave)
			continue;
		if (missing++ < NAMED)
			at += snprintf(names + at, sizeof names - (size_t)at, "%s%d", missing > 1 ? ", " : "", r);
		first = first < 0 ? r : first;
	}
	if (missing > NAMED)
		snprintf(names + at, sizeof names - (size_t)at, " and %d more", missing - NAMED);
	fail(h, blinkTimeout, first, "rank%s %s of %d ha%s not come%s within %s", missing > 1 ? "s" : "", names, h->n,
	    missing > 1 ? "ve" : "s", h->exchanges ? " to an exchange of all ranks" : "", duration(patience, time));
}

/* ---- ranks that are stuck ---- */

/* All ranks are asked at once, and again and again until the deadline: a rank may make the call that others wait for,
 * and meet another obstacle. At the deadline those are silent that have not answered, if they had time to. */

static void
ask_all(struct hub *h)
{
	h->asked_at = now_ns();
	give_frame_to_all(h, FRAME_ASK, NULL, 0, -1);
	for (int r = 0; r < h->n; r++)
		if (h->member[r].unanswered_since == NEVER && !h->witness[r].left)
			h->member[r].unanswered_since = h->asked_at;
}

/* The stuck rank whose deadline is first; NULL: none. */
static const struct member *
first_stuck(const struct hub *h)
{
	const struct member *first = NULL;
	for (int r = 0; r < h->n && !h->failed; r++)
		if (h->member[r].stuck_until != NEVER && (!first || h->member[r].stuck_until < first->stuck_until))
			first = &h->member[r];
	return first;
}

static void
stuck(struct hub *h, struct member *m, const struct stuck *s)
{
	const struct member *others = first_stuck(h);
	int64_t most = INT64_MAX / 4;
	m->stuck_until = now_ns() + (s->left < 0 ? 0 : s->left < most ? s->left : most);
	m->patience = s->patience < 0 ? 0 : s->patience < most ? s->patience : most;
	if (others)
		return;
	for (int r = 0; r < h->n; r++)
		h->member[r].unanswered_since = NEVER;
	ask_all(h);
}

/* When there is a verdict: at the deadline, but not before all have answered or had time to. */
static int64_t
verdict_at(const struct hub *h)
{
	const struct member *m = first_stuck(h);
	if (!m)
		return INT64_MAX;
	int64_t at = m->stuck_until, time = time_to_answer(m->patience);
	for (int r = 0; r < h->n; r++)
		if (h->member[r].unanswered_since != NEVER && h->member[r].unanswered_since + time > at)
			at = h->member[r].unanswered_since + time;
	return at;
}

static int64_t
ask_again_at(const struct hub *h)
{
	const struct member *m = first_stuck(h);
	int64_t next = m ? h->asked_at + m->patience / 4 : 0;
	return m && next < m->stuck_until - m->patience / 8 ? next : INT64_MAX;
}

static void
give_verdict(struct hub *h)
{
	struct verdict v;
	for (int r = 0; r < h->n; r++)
		h->witness[r].silent = h->member[r].unanswered_since != NEVER;
	verdict_find(h->witness, h->n, (int)(first_stuck(h) - h->member), &v);
	fail(h, v.code, v.culprit, "%s", v.text);
}

/* ---- members ---- */

static void
farewell(struct hub *h, struct connection *c)
{
	int r = c->rank;
	struct farewell f;
	memcpy(&f, c->in.body, sizeof f);
	struct left l = { .calls = f.calls, .rank = r };
	h->witness[r] = (struct witness){ .left = true, .status.calls = f.calls };
	h->n_left++;
	h->member[r].stuck_until = h->member[r].unanswered_since = NEVER;
	h->member[r].connection = NULL;
	l.hub_may_end = h->member[r].here && lowest_here(h) < 0;
	if (h->exchanges)
		give_frame_to_all(h, FRAME_LEFT, &l, sizeof l, -1);
	else
		fail(h, blinkRemoteError, r, "rank %d has left before all have come", r);
	exchange_without(h);
}

/* One frame of a job that has not failed. */
static void
obey(struct hub *h, struct connection *c)
{
	struct member *m = &h->member[c->rank];
	union {
		struct late late;
		struct stuck stuck;
		struct answer answer;
		struct failure failure;
	} body;
	if (c->in.head.bytes <= sizeof body)
		memcpy(&body, c->in.body, c->in.head.bytes);
	if (c->in.head.kind == FRAME_GIVE) {
		contribution(h, c);
	} else if (c->in.head.kind == FRAME_LATE) {
		late(h, body.late.patience);
	} else if (c->in.head.kind == FRAME_FAIL) {
		fail_with(h, &body.failure, c->rank);
	} else if (c->in.head.kind == FRAME_PROGRESS) {
		m->stuck_until = NEVER;
	} else if (c->in.head.kind == FRAME_STUCK) {
		stuck(h, m, &body.stuck);
	} else if (c->in.head.kind == FRAME_ANSWER) {
		m->unanswered_since = NEVER;
		h->witness[c->rank].status = body.answer.status;
	}
}

static void
member_gone(struct hub *h, struct connection *c, int error)
{
	char from[ADDRESS_ROOM], reason[REASON_ROOM];
	struct member *m = &h->member[c->rank];
	m->connection = NULL;
	m->stuck_until = NEVER;
	address_text(c->address, false, from);
	if (error == 0 || error == ECONNRESET || error == EPIPE)
		fail(h, blinkRemoteError, c->rank, "rank %d (%s) has ended without leaving the job", c->rank, from);
	else
		fail(h, blinkRemoteError, c->rank, "the connection to rank %d (%s) is lost: %s", c->rank, from,
		    reason_of(error, reason));
}

static void
hear(struct hub *h, struct connection *c)
{
	if (!hear_stranger(h, c)) {
		connection_close(h, c);
		return;
	}
	while (c->state == GUEST || c->state == MEMBER) {
		enum read got = reader_read(&c->in, c->socket.fd);
		if (got == READ_LATER)
			return;
		if (got == READ_END) {
			if (c->state == MEMBER)
				member_gone(h, c, errno);
			connection_close(h, c);
			return;
		}
		if (c->in.head.kind == FRAME_FAREWELL) {
			if (c->state == MEMBER)
				farewell(h, c);
			connection_close(h, c);
			return;
		}
		if (c->state == MEMBER && !h->failed)
			obey(h, c);
		reader_next(&c->in);
	}
}

/* ---- the thread ---- */

static int64_t
next_timer(const struct hub *h)
{
	int64_t next = verdict_at(h), ask = ask_again_at(h);
	if (h->strangers && h->strangers->until < next)
		next = h->strangers->until;
	if (ask < next)
		next = ask;
	if (h->crowded_until != NEVER && h->crowded_until < next)
		next = h->crowded_until;
	if (h->failed && !h->n_connected && h->end < next)
		next = h->end;
	return next;
}

static void
timers(struct hub *h)
{
	int64_t now = now_ns();
	while (h->strangers && h->strangers->until <= now)
		connection_close(h, h->strangers);
	if (h->crowded_until != NEVER && h->crowded_until <= now)
		listen_again(h);
	if (ask_again_at(h) <= now)
		ask_all(h);
	if (verdict_at(h) <= now)
		give_verdict(h);
}

static bool
over(const struct hub *h)
{
	return h->n_connected == 0 && ((h->n && h->n_come == h->n) || (h->failed && now_ns() >= h->end));
}

static void
hub_free(struct hub *h)
{
	while (h->strangers)
		connection_close(h, h->strangers);
	free_closed(h);
	descriptor_close(&h->listener);
	descriptor_close(&h->spare);
	descriptor_close(&h->epoll);
	packet_drop(h->all);
	free(h->member);
	free(h->witness);
	explicit_bzero(&h->id, sizeof h->id);
	free(h);
}

static int
wait_ms(int64_t until)
{
	int64_t ms = until == INT64_MAX ? -1 : (until - now_ns() + 999999) / 1000000;
	return until == INT64_MAX ? -1 : ms < 0 ? 0 : ms > 3600000 ? 3600000 : (int)ms;
}

static void *
hub_run(void *of)
{
	struct hub *h = of;
	struct epoll_event event[EVENTS];
	while (!over(h)) {
		int n = epoll_wait(h->epoll.fd, event, EVENTS, wait_ms(next_timer(h)));
		for (int i = 0; i < n; i++) {
			struct connection *c = event[i].data.ptr;
			if (event[i].data.ptr == h) {
				accept_some(h);
				continue;
			}
			if (c->socket.fd >= 0 && event[i].events & EPOLLOUT)
				flush(h, c);
			if (c->socket.fd >= 0 && event[i].events & ~(uint32_t)EPOLLOUT)
				hear(h, c);
		}
		timers(h);
		free_closed(h);
	}
	hub_free(h);
	return NULL;
}

/* ---- the start ---- */

static bool
open_all(struct hub *h)
{
	socklen_t length = address_length(h->id.address);
	struct sockaddr_storage a = { 0 };
	memcpy(&a, h->id.address, length);
	if (!descriptor_socket(&h->listener, a.ss_family) || bind(h->listener.fd, (struct sockaddr *)&a, length) ||
	    listen(h->listener.fd, BACKLOG) || getsockname(h->listener.fd, (struct sockaddr *)&a, &length) ||
	    !descriptor_epoll(&h->epoll) || !descriptor_spare(&h->spare))
		return false;
	memcpy(h->id.address, &a, length);
	listen_again(h);
	return h->listens;
}

int
hub_start(const unsigned char address[ADDRESS_BYTES], const char *interface, blinkUniqueId_t *id,
    struct blink_error *err)
{
	struct hub *h = calloc(1, sizeof *h);
	char name[ADDRESS_ROOM], reason[REASON_ROOM];
	pthread_t thread;
	if (!h) {
		*err = (struct blink_error){ blinkOutOfMemory, "out of memory" };
		return err->code;
	}
	h->listener.fd = h->epoll.fd = h->spare.fd = -1;
	h->strangers_end = &h->strangers;
	memcpy(h->id.magic, ID_MAGIC, sizeof h->id.magic);
	memcpy(h->id.address, address, ADDRESS_BYTES);
	snprintf(h->id.interface, sizeof h->id.interface, "%s", interface);
	h->id.process = process_number();
	err->code = blinkSuccess;
	int failed = !random_bytes(h->id.secret, SECRET_BYTES) || !open_all(h) ? errno : 0;
	if (!failed) {
		memcpy(id, &h->id, sizeof *id);
		failed = thread_start(&thread, true, hub_run, h);
	}
	if (failed) {
		err->code = failed == ENOMEM ? blinkOutOfMemory : blinkSystemError;
		snprintf(err->text, sizeof err->text, "unique id: listen on %s: %s", address_text(address, false, name),
		    reason_of(failed, reason));
		hub_free(h);
	}
	return err->code;
}
