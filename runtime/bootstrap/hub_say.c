#include "base/printable.h"
#include "bootstrap/hub_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>

bool
hub_watch(struct hub *h, struct connection *c, int operation)
{
	struct epoll_event e = { .events = EPOLLIN | (c->waits ? EPOLLOUT : 0), .data.ptr = c };
	return epoll_ctl(h->epoll.fd, operation, c->socket.fd, &e) == 0;
}

/* Write what can be written. A connection that fails here is noticed when it is read: nothing is closed now. */
void
hub_flush(struct hub *h, struct connection *c)
{
	bool good = writer_flush(&c->out, c->socket.fd);
	if (!good)
		writer_free(&c->out);
	bool waits = c->out.first;
	if (waits != c->waits) {
		c->waits = waits;
		if (!hub_watch(h, c, EPOLL_CTL_MOD))
			shutdown(c->socket.fd, SHUT_RDWR);
	}
}

/* Without memory for it the connection ends: its rank then says that the hub has gone. */
static void
give(struct hub *h, struct connection *c, struct packet *p)
{
	if (writer_add(&c->out, p))
		hub_flush(h, c);
	else
		shutdown(c->socket.fd, SHUT_RDWR);
}

void
hub_give_frame(struct hub *h, struct connection *c, enum frame_kind kind, const void *body, size_t bytes)
{
	struct packet *p = packet_new(kind, body, bytes);
	give(h, c, p);
	packet_drop(p);
}

/* Ranks of this process come last: one that hears of a failure may end the process before the others have heard. */
void
hub_give_all(struct hub *h, struct packet *p, int except)
{
	for (int here = 0; here <= 1; here++)
		for (int r = 0; r < h->n; r++)
			if (h->member[r].connection && r != except && h->member[r].here == here)
				give(h, h->member[r].connection, p);
}

void
hub_give_frame_to_all(struct hub *h, enum frame_kind kind, const void *body, size_t bytes, int except)
{
	struct packet *p = packet_new(kind, body, bytes);
	hub_give_all(h, p, except);
	packet_drop(p);
}

void
hub_end_soon(struct hub *h)
{
	if (h->end == NEVER)
		h->end = now_ns() + HUB_STAYS;
}

void
hub_fail_with(struct hub *h, const struct failure *f, int except)
{
	if (h->failed)
		return;
	h->failed = true;
	h->failure = *f;
	h->failure.text[sizeof h->failure.text - 1] = 0;
	make_printable(h->failure.text);
	hub_end_soon(h);
	packet_drop(h->all);
	h->all = NULL;
	hub_give_frame_to_all(h, FRAME_FAILED, &h->failure, sizeof h->failure, except);
}

void
hub_fail(struct hub *h, int code, int culprit, const char *format, ...)
{
	struct failure f = { .code = code, .culprit = culprit };
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(f.text, sizeof f.text, format, arguments);
	va_end(arguments);
	hub_fail_with(h, &f, -1);
}

void
hub_late(struct hub *h, int64_t patience)
{
	char names[160] = "", time[DURATION_ROOM], dropped[80] = "";
	int missing = 0, first = -1, at = 0;
	enum { NAMED = 8, TENTH = 100000000 };
	if (!h->all)
		return;					/* it has just been done */
	for (int r = 0; r < h->n; r++) {
		if (h->member[r].gave)
			continue;
		if (missing++ < NAMED)
			at += snprintf(names + at, sizeof names - (size_t)at, "%s%d", missing > 1 ? ", " : "", r);
		first = first < 0 ? r : first;
	}
	/* The rank that asks may have come a little late itself. A frame may say anything. */
	if (patience >= TENTH && patience <= INT64_MAX - TENTH)
		patience = (patience + TENTH - 1) / TENTH * TENTH;
	if (missing > NAMED)
		snprintf(names + at, sizeof names - (size_t)at, " and %d more", missing - NAMED);
	if (!h->exchanges && h->crowd.n_evicted)
		snprintf(dropped, sizeof dropped, "; %llu connections of strangers crowded them out",
		    (unsigned long long)h->crowd.n_evicted);
	hub_fail(h, blinkTimeout, first, "rank%s %s of %d ha%s not come%s %s%s%s", missing > 1 ? "s" : "", names, h->n,
	    missing > 1 ? "ve" : "s", h->exchanges ? " to an exchange of all ranks" : "",
	    patience > 0 ? "within " : "in time", patience > 0 ? duration(patience, time) : "", dropped);
}
