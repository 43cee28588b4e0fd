/* Zero copy (MSG_ZEROCOPY): the kernel sends a long part from the memory in which it lies, and tells in the socket's
 * error queue when it has let go of it. The head of a part is copied as ever, since its memory is used again at once.
 *
 * Whether it pays, the kernel says itself. It pins pages, which is dearer than a copy of few bytes; and where packets
 * stay on this machine or are looked at (loopback, veth, a capture) it makes the copy after all, later and dearer, and
 * says so (SO_EE_CODE_ZEROCOPY_COPIED). So a connection sends one part without a copy, goes on with copies until it
 * hears of that one, and then knows. Where the memory that a user may lock is used up, or the pages cannot be pinned,
 * the kernel refuses, and that part is copied.
 *
 * When may the memory change? Not when the kernel lets go, but when the reader has said `done`, which is often sooner:
 * the reader has the bytes then, so its kernel has taken them, in order. Until the acknowledgement is here this kernel
 * may send them again, with other contents by now; the reader's kernel drops what it has, unseen. Pages that are freed
 * meanwhile stay with the kernel until it lets go. So nobody waits for the kernel in the ordinary course of things; its
 * word serves to know what it does, and to keep the error queue empty, for which memory is limited as well.
 *
 * It is otherwise when a call fails. The caller takes its memory back, though a peer may not have all of it, and that
 * peer may not have failed yet: with other bytes it could end its call in good order and be wrong. What is written by
 * copy is the kernel's own, and goes out as it was. For the rest the connection is reset, which drops what is queued;
 * packets that the network card has already been given cannot be taken back, so their end is awaited, no longer than a
 * second: a card does not keep packets for so long, unless its link is down. The same holds for a net that is closed
 * with bytes not acknowledged when its time is over. */
#include "support/debug.h"
#include "transport/tcp_inside.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <stdalign.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

enum {
	LEAST = 32 << 10,	/* bytes of a system call without a copy */
	REFUSALS = 8,		/* in a row are enough */
	NAP_NS = 100000
};

/* Each once. */
#define SAY_LIST(X)                                                            \
	X(USED, "long messages are sent without a copy")                       \
	X(UNWANTED, "no zero copy: BLINK_TCP_ZEROCOPY=0")                      \
	X(COPIED, "no zero copy: the kernel copies on this path, as on loopback and to containers") \
	X(FORCED, "zero copy, though the kernel copies on this path: BLINK_TCP_ZEROCOPY=1") \
	X(NONE, "no zero copy: the kernel has none")                           \
	X(REFUSED, "no zero copy: the kernel refuses; often by ulimit -l, memory that may be locked")

#define ENUM(name, text) SAY_##name,
enum say { SAY_LIST(ENUM) };

static void
say(struct tcp *t, enum say what)
{
#define TEXT(name, text) text,
	static const char *const texts[] = { SAY_LIST(TEXT) };
	if (!(atomic_fetch_or(&t->zero_said, 1u << what) & 1u << what))
		debug_say(DEBUG_INFO, t->rank, "net tcp: %s", texts[what]);
}

void
tcp_zero_open(struct tcp *t, struct tcp_out *out)
{
	int on = 1, wanted = t->keys.zero_copy;
	out->zero = (struct tcp_zero){ .state = ZERO_OFF };
	if (out->way == 0)
		return;
	if (wanted < 0)
		say(t, SAY_UNWANTED);
	else if (setsockopt(out->fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0)
		say(t, SAY_NONE);
	else
		out->zero.state = wanted > 0 ? ZERO_ON : ZERO_TRY;
}

bool
tcp_zero_pays(const struct tcp_out *out, const struct tcp_part *part, uint64_t bytes)
{
	return bytes >= LEAST && !part->copied && (out->zero.state == ZERO_TRY || out->zero.state == ZERO_ON);
}

/* ---- a system call ---- */

void
tcp_zero_begin(struct tcp_out *out)
{
	out->zero.begun++;
}

/* An error that is not about zero copy comes again by copy. */
int
tcp_zero_end(struct tcp *t, struct tcp_out *out, int code)
{
	struct tcp_zero *z = &out->zero;
	if (!code) {
		z->refused = 0;
		z->state = z->state == ZERO_TRY ? ZERO_TRIED : z->state;
		return 0;
	}
	z->begun--;
	if (code == EAGAIN || code == EINTR)
		return code;
	out->head->copied = true;
	if (++z->refused >= REFUSALS && t->keys.zero_copy == 0) {
		z->state = ZERO_OFF;
		say(t, SAY_REFUSED);
	}
	return EINTR;
}

/* ---- what the kernel says ---- */

bool
tcp_zero_range(struct tcp_zero *z, uint32_t first, uint32_t last)
{
	uint32_t n = last - first + 1;
	if (n == 0 || n > z->begun - z->ended)
		return false;
	z->ended += n;
	return true;
}

static void
take(struct tcp *t, struct tcp_out *out, const struct sock_extended_err *e)
{
	struct tcp_zero *z = &out->zero;
	if (e->ee_origin != SO_EE_ORIGIN_ZEROCOPY || e->ee_errno != 0 || !tcp_zero_range(z, e->ee_info, e->ee_data))
		return;
	if (!(e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED)) {
		z->state = z->state == ZERO_OFF ? ZERO_OFF : ZERO_ON;
		say(t, SAY_USED);
	} else if (t->keys.zero_copy > 0) {
		say(t, SAY_FORCED);
	} else {
		z->state = ZERO_OFF;
		say(t, SAY_COPIED);
	}
}

bool
tcp_zero_read(struct tcp *t, struct tcp_out *out)
{
	alignas(struct cmsghdr) char control[256];
	bool some = false;
	for (;;) {
		struct msghdr h = { .msg_control = control, .msg_controllen = sizeof control };
		if (recvmsg(out->fd, &h, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return some;
		some = true;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
			struct sock_extended_err e;
			if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR)
			    || (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
				memcpy(&e, CMSG_DATA(c), sizeof e);
				take(t, out, &e);
			}
		}
	}
}

/* ---- take memory back ---- */

bool
tcp_zero_lent(const struct tcp_out *out)
{
	int left = 0;
	return out->zero.begun != out->zero.ended && (ioctl(out->fd, SIOCOUTQ, &left) != 0 || left > 0);
}

void
tcp_zero_reset(struct tcp_out *out)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	connect(out->fd, &none, sizeof none);
	out->zero.reset = true;
}

void
tcp_zero_await(struct tcp *t, struct tcp_out *out, int64_t deadline)
{
	pthread_mutex_lock(&out->lock);
	while (out->zero.reset && out->zero.begun != out->zero.ended && now_ns() < deadline) {
		if (tcp_zero_read(t, out))
			continue;
		pthread_mutex_unlock(&out->lock);
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		pthread_mutex_lock(&out->lock);
	}
	pthread_mutex_unlock(&out->lock);
}
