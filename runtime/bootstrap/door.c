/* The door of a hub: strangers (crowd.h), and the handshake that makes members of them. When all ranks have come the
 * port is closed. */
#include "bootstrap/hub_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { ACCEPT_MOST = 64 };

/* ---- connections ---- */

void
door_listen(struct hub *h)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = h };
	h->crowded_until = NEVER;
	if (!h->listens && h->listener.fd >= 0)
		h->listens = epoll_ctl(h->epoll.fd, EPOLL_CTL_ADD, h->listener.fd, &e) == 0;
	if (!h->listens && h->listener.fd >= 0)
		h->crowded_until = now_ns() + CROWD_PATIENCE;	/* to try again */
}

static void
listen_pause(struct hub *h)
{
	epoll_ctl(h->epoll.fd, EPOLL_CTL_DEL, h->listener.fd, NULL);
	h->listens = false;
}

void
door_forget(struct hub *h, struct connection *c)
{
	crowd_leave(&h->crowd, &c->stranger);
	door_listen(h);
}

static struct connection *
connection_of(struct stranger *s)
{
	_Static_assert(offsetof(struct connection, stranger) == 0, "a stranger begins a connection");
	return (struct connection *)s;
}

void
door_release(struct hub *h, struct connection *c)
{
	epoll_ctl(h->epoll.fd, EPOLL_CTL_DEL, c->socket.fd, NULL);
	descriptor_close(&c->socket);
	reader_next(&c->in);
	writer_free(&c->out);
	c->next = h->closed;
	h->closed = c;
	door_listen(h);
}

static void
send_away(struct hub *h, struct connection *c)
{
	door_forget(h, c);
	door_release(h, c);
}

/* False: there is none that is old enough. */
static bool
evict(struct hub *h)
{
	struct stranger *s = crowd_evict(&h->crowd, now_ns());
	if (s)
		send_away(h, connection_of(s));
	return s;
}

/* There are too many, all young. */
static void
crowded(struct hub *h)
{
	listen_pause(h);
	h->crowded_until = crowd_room_at(&h->crowd);
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
	crowd_enter(&h->crowd, &c->stranger, now_ns());
	if (!hub_watch(h, c, EPOLL_CTL_ADD) || !door_hear(h, c))
		send_away(h, c);
}

/* No descriptor is left. If no stranger has one, the job cannot begin: the spare one lets the others in, one at a
 * time, to hear why. */
static void
exhausted(struct hub *h, int error)
{
	char reason[REASON_ROOM];
	if (h->crowd.first) {
		crowded(h);
		return;
	}
	hub_fail(h, blinkSystemError, -1, "the process that made the id cannot accept all ranks: %s",
	    reason_of(error, reason));
	if (h->spare.fd >= 0) {
		descriptor_close(&h->spare);
		return;
	}
	listen_pause(h);
}

void
door_drop(struct hub *h, int64_t now)
{
	while (h->crowd.first && now - CROWD_TIME >= h->crowd.first->since)
		send_away(h, connection_of(h->crowd.first));
}

void
door_shut(struct hub *h)
{
	descriptor_close(&h->listener);		/* also those that are not accepted yet */
	descriptor_close(&h->spare);
	h->listens = false;
	door_drop(h, INT64_MAX);
	crowd_close(&h->crowd);
}

void
door_accept(struct hub *h)
{
	for (int i = 0; i < ACCEPT_MOST && h->listens; i++) {
		unsigned char address[ADDRESS_BYTES];
		struct descriptor d;
		if (crowd_full(&h->crowd) && !evict(h))
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
	c->stranger.spoke = true;
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
		hub_fail(h, blinkOutOfMemory, -1, "the process that made the id: no memory for %d ranks", p->n);
		return false;
	}
	h->n = p->n;
	h->first_come = p->rank;
	h->first_bytes = p->bytes;
	return true;
}

/* Of a failure that ranks hear of: they take it only with a number that a rank may have. */
static int
culprit_of(const struct proof *p)
{
	return p->rank >= 0 && p->rank < RANKS_MAX ? p->rank : -1;
}

static bool
right_version(struct hub *h, const struct proof *p)
{
	if (p->version == WIRE_VERSION)
		return true;
	hub_fail(h, blinkInvalidArgument, culprit_of(p), "rank %d has libblink %.*s, which speaks version %u of the "
	    "bootstrap; the process that made the id has %s, version %d", p->rank, (int)sizeof p->library, p->library,
	    p->version, BLINK_VERSION, WIRE_VERSION);
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
		hub_fail(h, blinkInvalidArgument, culprit_of(p), "rank %d of %d with %u bytes: not valid", p->rank,
		    p->n, p->bytes);
		return false;
	}
	if (!h->n && !make_members(h, p))
		return false;
	const struct member *m = p->rank < h->n ? &h->member[p->rank] : NULL;
	if (p->n != h->n)
		hub_fail(h, blinkInvalidArgument, p->rank, "rank %d has come with %d ranks, rank %d with %d: want the "
		    "same number", p->rank, p->n, h->first_come, h->n);
	else if (p->bytes != h->first_bytes)
		hub_fail(h, blinkInvalidArgument, p->rank, "rank %d contributes %u bytes, rank %d %u: want the same "
		    "number", p->rank, p->bytes, h->first_come, h->first_bytes);
	else if (m->come)
		hub_fail(h, blinkInvalidArgument, p->rank, "two ranks have come as rank %d, from %s and from %s",
		    p->rank, address_text(m->address, true, here), address_text(c->address, true, there));
	return !h->failed;
}

static bool
admit(struct hub *h, struct connection *c)
{
	unsigned char mac[HMAC_BYTES];
	const struct proof *p = &c->said.proof;
	mac_of_rank(h->id.secret, &c->nonces, p, mac);
	if (!hmac_equal(mac, p->mac) || send(c->socket.fd, WELCOME, WELCOME_BYTES, MSG_NOSIGNAL) != WELCOME_BYTES)
		return false;
	door_forget(h, c);
	c->next = h->inside;
	c->back = &h->inside;
	if (c->next)
		c->next->back = &c->next;
	h->inside = c;
	h->n_connected++;
	h->n_come++;
	c->state = GUEST;
	if (!welcome(h, c, p)) {
		hub_give_frame(h, c, FRAME_FAILED, &h->failure, sizeof h->failure);
		return true;
	}
	struct member *m = &h->member[p->rank];
	*m = (struct member){ .connection = c, .come = true, .here = p->process == h->id.process };
	memcpy(m->address, c->address, ADDRESS_BYTES);
	c->state = MEMBER;
	c->rank = p->rank;
	return true;
}

bool
door_hear(struct hub *h, struct connection *c)
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
