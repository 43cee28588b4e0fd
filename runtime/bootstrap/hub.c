/* One thread and an epoll. A connection is first a stranger, which has a second to prove that it knows the secret; then
 * a member: the one of its rank; or a guest: it has proved itself, but comes too late or is not wanted, and hears why.
 *
 * What ranks contribute is collected in the packet that is then sent to all of them; nothing is kept of it. The first
 * failure is the one that all hear of. The thread ends when as many as the job has ranks have come and gone: so all
 * have heard. If some never come, or are stopped and never go, HUB_STAYS after the job has failed or the ranks of this
 * process have left. */
#include "bootstrap/hub.h"
#include "bootstrap/hub_inside.h"
#include "bootstrap/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { BACKLOG = 4096, EVENTS = 64 };
#define ASK_LEAST (SECOND / 100)	/* between two questions, whatever patience a rank states */

/* ---- connections ---- */

static void
go_out(struct hub *h, struct connection *c)
{
	*c->back = c->next;
	if (c->next)
		c->next->back = c->back;
	h->n_connected--;
}

/* It is freed later: an event for it may be under way. */
static void
hub_close(struct hub *h, struct connection *c)
{
	if (c->state == STRANGER || c->state == CHALLENGED)
		door_forget(h, c);
	else
		go_out(h, c);
	door_release(h, c);
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
		hub_give_frame_to_all(h, FRAME_JOINED, &j, sizeof j, -1);
		door_shut(h);
	}
	struct packet *p = h->all;
	h->all = NULL;
	h->n_gave = 0;
	for (int r = 0; r < h->n; r++)
		h->member[r].gave = false;
	hub_give_all(h, p, -1);
	packet_drop(p);
}

/* An exchange in which a rank that has left would have to take part never ends. */
static void
exchange_without(struct hub *h)
{
	for (int r = 0; r < h->n && h->n_left && h->all; r++)
		if (h->witness[r].left)
			hub_fail(h, blinkRemoteError, r, "rank %d has left; rank %d calls for an exchange of all ranks",
			    r, h->first_gave);
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
		hub_fail(h, blinkOutOfMemory, -1, "the process that made the id: no memory for %u bytes of %d ranks",
		    bytes, h->n);
	} else if (m->gave || (!h->exchanges && bytes != h->first_bytes)) {
		hub_fail(h, blinkInternalError, c->rank, "rank %d contributes to an exchange out of turn", c->rank);
	} else if (bytes != h->bytes) {
		hub_fail(h, blinkMismatch, c->rank, "rank %d exchanges %u bytes, rank %d %u", c->rank, bytes,
		    h->first_gave, h->bytes);
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

/* ---- ranks that are stuck ---- */

/* All ranks are asked at once, and again and again until the deadline: a rank may make the call that others wait for,
 * and meet another obstacle. One that has not answered yet has a question to read: another would only take memory. At
 * the deadline those are silent that have not answered, if they had time to. */

static void
ask_all(struct hub *h)
{
	h->asked_at = now_ns();
	for (int r = 0; r < h->n; r++) {
		struct member *m = &h->member[r];
		if (m->unanswered_since != NEVER || h->witness[r].left)
			continue;
		m->unanswered_since = h->asked_at;
		if (m->connection)
			hub_give_frame(h, m->connection, FRAME_ASK, NULL, 0);
	}
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
	int64_t every = m && m->patience / 4 > ASK_LEAST ? m->patience / 4 : ASK_LEAST;
	int64_t next = h->asked_at + every;
	return m && next < m->stuck_until - m->patience / 8 ? next : INT64_MAX;
}

static void
give_verdict(struct hub *h)
{
	struct verdict v;
	for (int r = 0; r < h->n; r++)
		h->witness[r].silent = h->member[r].unanswered_since != NEVER;
	verdict_find(h->witness, h->n, (int)(first_stuck(h) - h->member), &v);
	hub_fail(h, v.code, v.culprit, "%s", v.text);
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
	if (l.hub_may_end)
		hub_end_soon(h);
	if (h->exchanges)
		hub_give_frame_to_all(h, FRAME_LEFT, &l, sizeof l, -1);
	else
		hub_fail(h, blinkRemoteError, r, "rank %d has left before all have come", r);
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
		hub_late(h, body.late.patience);
	} else if (c->in.head.kind == FRAME_FAIL) {
		hub_fail_with(h, &body.failure, c->rank);
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
		hub_fail(h, blinkRemoteError, c->rank, "rank %d (%s) has ended without leaving the job", c->rank, from);
	else
		hub_fail(h, blinkRemoteError, c->rank, "the connection to rank %d (%s) is lost: %s", c->rank, from,
		    reason_of(error, reason));
}

/* The numbers that ranks may say are checked where they are used, but for a failure, which is passed on as it is. */
static bool
valid(const struct hub *h, const struct connection *c)
{
	struct failure f;
	if (c->in.head.kind != FRAME_FAIL)
		return true;
	memcpy(&f, c->in.body, sizeof f);
	return failure_valid(&f, h->n);
}

static void
hub_hear(struct hub *h, struct connection *c)
{
	if (!door_hear(h, c)) {
		hub_close(h, c);
		return;
	}
	while (c->state == GUEST || c->state == MEMBER) {
		enum read got = reader_read(&c->in, c->socket.fd);
		if (got == READ_LATER)
			return;
		bool good = got == READ_FRAME && valid(h, c), leaves = good && c->in.head.kind == FRAME_FAREWELL;
		if (c->state == MEMBER && !good)
			member_gone(h, c, got == READ_FRAME ? EPROTO : errno);
		else if (c->state == MEMBER && leaves)
			farewell(h, c);
		else if (c->state == MEMBER && !h->failed)
			obey(h, c);
		if (!good || leaves) {
			hub_close(h, c);
			return;
		}
		reader_next(&c->in);
	}
}

/* ---- the thread ---- */

static int64_t
next_timer(const struct hub *h)
{
	int64_t next = verdict_at(h), ask = ask_again_at(h);
	if (h->crowd.first && h->crowd.first->since + CROWD_TIME < next)
		next = h->crowd.first->since + CROWD_TIME;
	if (ask < next)
		next = ask;
	if (h->crowded_until != NEVER && h->crowded_until < next)
		next = h->crowded_until;
	if (h->end != NEVER && h->end < next)
		next = h->end;
	return next;
}

static void
timers(struct hub *h)
{
	int64_t now = now_ns();
	door_drop(h, now);
	if (h->crowded_until != NEVER && h->crowded_until <= now)
		door_listen(h);
	if (ask_again_at(h) <= now)
		ask_all(h);
	if (verdict_at(h) <= now)
		give_verdict(h);
}

static bool
over(const struct hub *h)
{
	return (h->n_connected == 0 && h->n && h->n_come >= h->n) || (h->end != NEVER && now_ns() >= h->end);
}

static void
hub_free(struct hub *h)
{
	door_shut(h);
	while (h->inside)
		hub_close(h, h->inside);
	free_closed(h);
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
				door_accept(h);
				continue;
			}
			if (c->socket.fd >= 0 && event[i].events & EPOLLOUT)
				hub_flush(h, c);
			if (c->socket.fd >= 0 && event[i].events & ~(uint32_t)EPOLLOUT)
				hub_hear(h, c);
		}
		timers(h);
		free_closed(h);
	}
	hub_free(h);
	return NULL;
}

/* ---- the start ---- */

static int
start_failed(struct blink_error *err, const unsigned char address[ADDRESS_BYTES], int error)
{
	char name[ADDRESS_ROOM], reason[REASON_ROOM];
	err->code = error == ENOMEM ? blinkOutOfMemory : blinkSystemError;
	snprintf(err->text, sizeof err->text, "unique id: listen on %s: %s", address_text(address, false, name),
	    reason_of(error, reason));
	return err->code;
}

/* Any port of that address, which is written there. */
static bool
take_port(struct descriptor *port, unsigned char address[ADDRESS_BYTES])
{
	socklen_t length = address_length(address);
	struct sockaddr_storage a = { 0 };
	memcpy(&a, address, length);
	if (!descriptor_socket(port, a.ss_family) || bind(port->fd, (struct sockaddr *)&a, length) ||
	    getsockname(port->fd, (struct sockaddr *)&a, &length))
		return false;
	memcpy(address, &a, length);
	return true;
}

static bool
open_all(struct hub *h)
{
	if (listen(h->listener.fd, BACKLOG) || !descriptor_epoll(&h->epoll) || !descriptor_spare(&h->spare))
		return false;
	door_listen(h);
	return h->listens;
}

/* Takes the port, whatever it returns. */
static int
start_on(struct descriptor *port, const struct id *id, struct blink_error *err)
{
	struct hub *h = calloc(1, sizeof *h);
	err->code = blinkSuccess;
	if (!h) {
		descriptor_close(port);
		*err = (struct blink_error){ blinkOutOfMemory, "out of memory" };
		return err->code;
	}
	h->listener.fd = h->epoll.fd = h->spare.fd = -1;
	crowd_open(&h->crowd);
	h->id = *id;
	descriptor_move(&h->listener, port);
	int failed = !open_all(h) ? errno : start_thread(NULL, BOOTSTRAP_STACK, hub_run, h);
	if (!failed)
		return blinkSuccess;
	hub_free(h);
	return start_failed(err, id->address, failed);
}

int
hub_reserve(const unsigned char address[ADDRESS_BYTES], const char *interface, struct descriptor *port,
    struct id *id, struct blink_error *err)
{
	*id = (struct id){ .process = process_number() };
	port->fd = -1;
	memcpy(id->magic, ID_MAGIC, sizeof id->magic);
	memcpy(id->address, address, ADDRESS_BYTES);
	snprintf(id->interface, sizeof id->interface, "%s", interface);
	err->code = blinkSuccess;
	if (random_bytes(id->secret, SECRET_BYTES) && take_port(port, id->address))
		return blinkSuccess;
	start_failed(err, address, errno);
	descriptor_close(port);
	return err->code;
}

int
hub_start_at(const struct descriptor *port, const struct id *id, struct blink_error *err)
{
	struct descriptor copy;
	if (!descriptor_copy(&copy, port))
		return start_failed(err, id->address, errno);
	return start_on(&copy, id, err);
}

int
hub_start(const unsigned char address[ADDRESS_BYTES], const char *interface, const char *secret, blinkUniqueId_t *id,
    struct blink_error *err)
{
	struct descriptor port;
	struct id made;
	if (hub_reserve(address, interface, &port, &made, err) != blinkSuccess)
		return err->code;
	memcpy(id, &made, sizeof *id);
	if (secret_add(&made, secret, err) == blinkSuccess)
		return start_on(&port, &made, err);
	descriptor_close(&port);
	return err->code;
}
