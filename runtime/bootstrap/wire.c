#include "bootstrap/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- signatures: each kind begins with another word ---- */

void
mac_of_hub(const unsigned char secret[SECRET_BYTES], const struct nonces *n, unsigned char out[HMAC_BYTES])
{
	struct hmac h;
	hmac_begin(&h, secret, SECRET_BYTES);
	hmac_add(&h, "blinkhub", 8);
	hmac_add(&h, n, sizeof *n);
	hmac_end(&h, out);
}

void
mac_of_rank(const unsigned char secret[SECRET_BYTES], const struct nonces *n, const struct proof *p,
    unsigned char out[HMAC_BYTES])
{
	struct hmac h;
	hmac_begin(&h, secret, SECRET_BYTES);
	hmac_add(&h, "blinkrnk", 8);
	hmac_add(&h, n, sizeof *n);
	hmac_add(&h, p, offsetof(struct proof, mac));
	hmac_end(&h, out);
}

void
mac_of_text(const unsigned char secret[SECRET_BYTES], const void *text, size_t bytes, unsigned char out[HMAC_BYTES])
{
	struct hmac h;
	hmac_begin(&h, secret, SECRET_BYTES);
	hmac_add(&h, "blinktxt", 8);
	hmac_add(&h, text, bytes);
	hmac_end(&h, out);
}

/* ---- reading ---- */

static bool
allowed(const struct reader *r)
{
	static const struct { size_t least, most; } size[] = {
#define FRAME_SIZE(kind, least, most) { least, most },
		FRAME_LIST(FRAME_SIZE)
#undef FRAME_SIZE
	};
	return r->head.kind < FRAME_KINDS && (r->head.kind >= FRAME_FIRST_OF_HUB) == r->of_hub &&
	    r->head.bytes >= size[r->head.kind].least && r->head.bytes <= size[r->head.kind].most &&
	    (r->head.kind != FRAME_ALL || r->head.bytes <= r->most);
}

/* The head is there: room for the body, with a NUL behind it. */
static bool
begin_body(struct reader *r)
{
	if (!allowed(r)) {
		errno = EPROTO;
		return false;
	}
	r->body = malloc((size_t)r->head.bytes + 1);
	if (r->body)
		r->body[r->head.bytes] = 0;
	return r->body;
}

enum read
reader_read(struct reader *r, int fd)
{
	for (;;) {
		if (r->got == sizeof r->head && !r->body && !begin_body(r))
			return READ_END;
		if (r->body && r->got == sizeof r->head + r->head.bytes)
			return READ_FRAME;
		char *to = r->body ? r->body + (r->got - sizeof r->head) : (char *)&r->head + r->got;
		size_t want = r->body ? sizeof r->head + r->head.bytes - r->got : sizeof r->head - r->got;
		ssize_t got = recv(fd, to, want, 0);
		if (got > 0) {
			r->got += (size_t)got;
		} else if (got == 0 || errno != EINTR) {
			if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
				return READ_LATER;
			errno = got ? errno : 0;
			return READ_END;
		}
	}
}

bool
failure_valid(const struct failure *f, int n)
{
	return f->code > blinkSuccess && f->code < blinkInProgress && f->culprit >= -1 && f->culprit < n;
}

void
reader_next(struct reader *r)
{
	free(r->body);
	r->body = NULL;
	r->got = 0;
}

/* ---- writing ---- */

struct queued {
	struct packet *packet;
	struct queued *next;
};

struct packet *
packet_new(enum frame_kind kind, const void *body, size_t bytes)
{
	struct packet *p = malloc(sizeof *p + bytes);
	if (!p)
		return NULL;
	*p = (struct packet){ .users = 1, .bytes = sizeof p->head + bytes,
		.head = { .kind = kind, .bytes = (uint32_t)bytes } };
	if (body && bytes)
		memcpy(p->body, body, bytes);
	return p;
}

void
packet_drop(struct packet *p)
{
	if (p && --p->users == 0)
		free(p);
}

bool
writer_add(struct writer *w, struct packet *p)
{
	struct queued *q = p ? malloc(sizeof *q) : NULL;
	if (!q)
		return false;
	*q = (struct queued){ p, NULL };
	p->users++;
	if (w->last)
		w->last->next = q;
	else
		w->first = q;
	w->last = q;
	return true;
}

static void
first_done(struct writer *w)
{
	struct queued *q = w->first;
	w->first = q->next;
	if (!w->first)
		w->last = NULL;
	w->sent = 0;
	packet_drop(q->packet);
	free(q);
}

bool
writer_flush(struct writer *w, int fd)
{
	while (w->first) {
		const struct packet *p = w->first->packet;
		ssize_t sent = send(fd, (const char *)p + offsetof(struct packet, all) + w->sent, p->bytes - w->sent,
		    MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		w->sent += (size_t)sent;
		if (w->sent == p->bytes)
			first_done(w);
	}
	return true;
}

void
writer_free(struct writer *w)
{
	while (w->first)
		first_done(w);
}
