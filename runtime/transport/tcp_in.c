/* Messages that come by connections that peers have opened (tcp_accept.c).
 *
 * Bytes go straight to their place: one system call reads what is left of a part, and behind it the headers and the
 * short messages that follow, through a small buffer. Most messages are one part, and come when it is their turn in
 * their lane: those need no memory here. For others there is a record in their lane (struct tcp_arrival). */
#include "transport/tcp_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
	READ_ONCE = 1 << 20,	/* bytes of one system call: others want their turn */
	READS = 4,
	ARRIVALS = 1 << 20	/* records of a peer: more are a defect */
};

/* ---- messages ---- */

static struct tcp_lane *
lane_of(struct tcp_peer *peer, uint32_t lane)
{
	uint32_t number = tcp_lane_number(lane);
	struct tcp_lane *table = tcp_reach(peer->lane, &peer->n_lanes, sizeof *table, number);
	if (!table)
		return NULL;
	peer->lane = table;
	return &table[number];
}

/* Messages that are whole, as long as it is their turn. */
static void
deliver(struct tcp *t, struct tcp_peer *peer, uint32_t lane)
{
	for (;;) {
		struct tcp_lane *l = lane_of(peer, lane);
		struct tcp_arrival *a = l->ahead;
		if (!a || a->order != l->expected || a->left)
			return;
		l->ahead = a->next;
		l->expected++;
		peer->n_arrivals--;
		t->events.arrived(t->events.context, peer->rank, &a->m);
		free(a);
	}
}

static void
finish_part(struct tcp *t, struct tcp_in *in)
{
	struct tcp_peer *peer = in->peer;
	uint32_t lane = in->frame.m.lane;
	if (in->arrival) {
		in->arrival->left -= in->frame.bytes;
	} else {
		t->events.arrived(t->events.context, peer->rank, &in->frame.m);
		lane_of(peer, lane)->expected++;
	}
	in->arrival = NULL;
	deliver(t, peer, lane);
}

/* What is wrong with the frame; NULL: nothing. */
static const char *
wrong(const struct tcp_frame *f)
{
	if (f->kind != FRAME_PART)
		return "a message of no known kind";
	if (!tcp_lane_good(f->m.lane))
		return "a message of a lane that is not";
	if (f->bytes > f->m.bytes || f->offset > f->m.bytes - f->bytes || (f->bytes == 0 && f->m.bytes != 0))
		return "a part that is not within its message";
	return NULL;
}

static struct tcp_arrival **
find_arrival(struct tcp_lane *lane, uint32_t order)
{
	struct tcp_arrival **at = &lane->ahead;
	while (*at && (int32_t)((*at)->order - order) < 0)
		at = &(*at)->next;
	return at;
}

static struct tcp_arrival *
new_arrival(struct tcp_peer *peer, const struct tcp_frame *f, char *place, struct tcp_arrival **at)
{
	struct tcp_arrival *a = peer->n_arrivals < ARRIVALS ? malloc(sizeof *a) : NULL;
	if (!a)
		return NULL;
	*a = (struct tcp_arrival){ .next = *at, .order = f->order, .m = f->m, .place = place, .unclaimed = f->m.bytes,
		.left = f->m.bytes };
	*at = a;
	peer->n_arrivals++;
	return a;
}

static void
wait_for_place(struct tcp *t, struct tcp_in *in)
{
	if (in->state != IN_NO_PLACE) {
		in->state = IN_NO_PLACE;
		in->since = now_ns();
		in->told = false;
		if (!tcp_watch(t, in->fd, in, 0))
			tcp_break(t, in->peer, ": %s", strerror(errno));
	}
	tcp_look_by(t, in->since + t->keys.patience / 8);
}

/* NULL: none yet, or the peer is broken. */
static char *
ask_place(struct tcp *t, struct tcp_in *in)
{
	if (!in->asking)
		atomic_fetch_add(&in->peer->asking, 1);
	in->asking = true;
	char *place = t->events.place(t->events.context, in->peer->rank, &in->frame.m);
	if (place == NET_REFUSED)
		tcp_break(t, in->peer, " sent a message that does not fit");
	else if (!place)
		wait_for_place(t, in);
	return place == NET_REFUSED ? NULL : place;
}

/* The part has a place from here on. */
static void
begin_bytes(struct tcp *t, struct tcp_in *in, char *place)
{
	if (in->asking)
		atomic_fetch_sub(&in->peer->asking, 1);
	in->asking = false;
	in->state = IN_READY;
	in->to = place + in->frame.offset;
	in->left = in->frame.bytes;
	if (in->left == 0)
		finish_part(t, in);
}

/* The record that the part needs, if it needs one; *place: where its message belongs. False: not now. */
static bool
find_record(struct tcp *t, struct tcp_in *in, struct tcp_lane *lane, struct tcp_arrival **record, char **place)
{
	const struct tcp_frame *f = &in->frame;
	struct tcp_arrival **at = find_arrival(lane, f->order);
	*record = *at && (*at)->order == f->order ? *at : NULL;
	*place = *record ? (*record)->place : (char *)in->buffer;
	if (!*record && f->m.bytes && !(*place = ask_place(t, in)))
		return false;
	if (*record || (f->bytes == f->m.bytes && f->order == lane->expected))
		return true;
	*record = new_arrival(in->peer, f, *place, at);
	if (!*record)
		tcp_break(t, in->peer, ": no memory for what it sends");
	return *record != NULL;
}

static void
begin_part(struct tcp *t, struct tcp_in *in)
{
	const struct tcp_frame *f = &in->frame;
	struct tcp_lane *lane = lane_of(in->peer, f->m.lane);
	struct tcp_arrival *a;
	char *place;
	if (!lane) {
		tcp_break(t, in->peer, ": no memory for what it sends");
		return;
	}
	if ((int32_t)(f->order - lane->expected) < 0) {
		tcp_break(t, in->peer, " sent a message twice");
		return;
	}
	if (!find_record(t, in, lane, &a, &place))
		return;
	if (a && (memcmp(&a->m, &f->m, sizeof a->m) != 0 || f->bytes > a->unclaimed)) {
		tcp_break(t, in->peer, " sent parts that do not fit together");
		return;
	}
	if (a)
		a->unclaimed -= f->bytes;
	in->arrival = a;
	begin_bytes(t, in, place);
}

static void
begin_frame(struct tcp *t, struct tcp_in *in)
{
	const char *why = in->frame.kind == FRAME_BYE ? NULL : wrong(&in->frame);
	if (in->frame.kind == FRAME_BYE) {
		tcp_in_end(t, in);
		tcp_gone(t, in->peer);
	} else if (why) {
		tcp_break(t, in->peer, " sent %s", why);
	} else {
		begin_part(t, in);
	}
}

/* ---- bytes ---- */

/* The part that is being read takes what the buffer has. */
static void
absorb(struct tcp *t, struct tcp_in *in)
{
	size_t n = in->end - in->at;
	if (in->left == 0 || in->state != IN_READY)
		return;
	if (n > in->left)
		n = (size_t)in->left;
	memcpy(in->to, in->buffer + in->at, n);
	in->at += n;
	in->to += n;
	in->left -= n;
	if (in->left == 0)
		finish_part(t, in);
}

static void
take_buffer(struct tcp *t, struct tcp_in *in)
{
	while (in->state == IN_READY && in->left == 0 && in->end - in->at >= sizeof in->frame) {
		memcpy(&in->frame, in->buffer + in->at, sizeof in->frame);
		in->at += sizeof in->frame;
		begin_frame(t, in);
		absorb(t, in);
	}
	memmove(in->buffer, in->buffer + in->at, in->end - in->at);
	in->end -= in->at;
	in->at = 0;
}

/* 0: nothing more now. */
static ssize_t
read_some(struct tcp *t, struct tcp_in *in)
{
	bool large = in->left > READ_ONCE;
	struct iovec v[2] = { { in->to, large ? READ_ONCE : (size_t)in->left },
		{ in->buffer + in->end, TCP_BUFFER - in->end } };
	ssize_t n = in->left ? readv(in->fd, v, large ? 1 : 2) : readv(in->fd, v + 1, 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0)
		return n;
	if (n == 0)
		tcp_break(t, in->peer, " has ended: connection closed");
	else
		tcp_break(t, in->peer, ": %s", strerror(errno));
	return 0;
}

static void
read_messages(struct tcp *t, struct tcp_in *in)
{
	for (int i = 0; i < READS && in->state == IN_READY; i++) {
		size_t before = in->left > READ_ONCE ? READ_ONCE : (size_t)in->left;
		ssize_t n = read_some(t, in);
		if (n == 0)
			return;
		size_t direct = (size_t)n < before ? (size_t)n : before;
		if (direct)
			in->to += direct;
		in->left -= direct;
		in->end += (size_t)n - direct;
		if (direct && in->left == 0)
			finish_part(t, in);
		take_buffer(t, in);
		if ((size_t)n < before)
			return;
	}
}

void
tcp_in_resume(struct tcp *t, struct tcp_in *in)
{
	char go = BACK_GO;
	if (in->state != IN_NO_PLACE)
		return;
	begin_part(t, in);
	if (in->state != IN_READY)
		return;
	if (in->told)
		send(in->fd, &go, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	in->told = false;
	absorb(t, in);
	take_buffer(t, in);
	if (in->state == IN_READY && !tcp_watch(t, in->fd, in, EPOLLIN))
		tcp_break(t, in->peer, ": %s", strerror(errno));
}

/* ---- events ---- */

void
tcp_in_ready(struct tcp *t, struct tcp_in *in)
{
	int code = 0;
	socklen_t size = sizeof code;
	switch (in->state) {
	case IN_HELLO:
	case IN_PROOF:
		tcp_stranger_ready(t, in);
		break;
	case IN_READY:
		read_messages(t, in);
		break;
	case IN_NO_PLACE:
		getsockopt(in->fd, SOL_SOCKET, SO_ERROR, &code, &size);
		tcp_break(t, in->peer, " has ended: %s", code ? strerror(code) : "connection closed");
		break;
	case IN_ENDED:
		break;
	}
}

void
tcp_in_tick(struct tcp *t, struct tcp_in *in, int64_t now)
{
	char wait = BACK_WAIT;
	int64_t patience = t->keys.patience / 8;
	if (in->state == IN_HELLO || in->state == IN_PROOF) {
		tcp_stranger_tick(t, in, now);
	} else if (in->state == IN_NO_PLACE && !in->told && now - in->since < patience) {
		tcp_look_by(t, in->since + patience);
	} else if (in->state == IN_NO_PLACE && !in->told) {
		in->told = true;
		send(in->fd, &wait, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

void
tcp_in_farewell(struct tcp_in *in)
{
	char bye = BACK_BYE;
	if (in->state == IN_READY || in->state == IN_NO_PLACE)
		send(in->fd, &bye, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}
