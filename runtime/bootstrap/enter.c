#include "bootstrap/enter.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct attempt {
	struct descriptor *socket;
	int64_t deadline;
	struct nonces nonces;
	struct hello hello;
	struct challenge challenge;
	struct proof proof;
	bool refused;			/* nobody listens there, or it is another: no use to try again */
	char why[160];
};

static void
why(struct attempt *a, const char *what, int error)
{
	char reason[REASON_ROOM];
	snprintf(a->why, sizeof a->why, "%s%s", what, error ? reason_of(error, reason) : "");
}

/* A link-local address is on the interface of the same name here; without one, on that of the same number. */
static socklen_t
address_here(const struct id *id, struct sockaddr_storage *out)
{
	socklen_t length = address_length(id->address);
	memset(out, 0, sizeof *out);
	memcpy(out, id->address, length);
	struct sockaddr_in6 *a = (struct sockaddr_in6 *)(void *)out;
	if (out->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr)) {
		unsigned scope = if_nametoindex(id->interface);
		a->sin6_scope_id = scope ? scope : a->sin6_scope_id;
	}
	return length;
}

static bool
wait_for(const struct attempt *a, short events)
{
	struct pollfd p = { .fd = a->socket->fd, .events = events };
	for (;;) {
		int64_t left = a->deadline - now_ns();
		struct timespec t = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
		int n = left > 0 ? ppoll(&p, 1, &t, NULL) : 0;
		if (n > 0)
			return true;
		if (n == 0 || errno != EINTR) {
			errno = n ? errno : ETIMEDOUT;
			return false;
		}
	}
}

/* Who keeps it does not share it, but those who ask at the same time do. */
bool
place_is_kept(const struct id *id)
{
	struct sockaddr_storage address;
	socklen_t length = address_here(id, &address);
	struct descriptor d;
	const int shares = 1;
	bool nobody = descriptor_socket(&d, address.ss_family) &&
	    setsockopt(d.fd, SOL_SOCKET, SO_REUSEADDR, &shares, sizeof shares) == 0 &&
	    bind(d.fd, (struct sockaddr *)&address, length) == 0;
	descriptor_close(&d);
	return !nobody;
}

static bool
make_connection(struct attempt *a, const struct id *id)
{
	struct sockaddr_storage address;
	socklen_t length = address_here(id, &address);
	int error = 0;
	socklen_t size = sizeof error;
	if (!descriptor_socket(a->socket, address.ss_family)) {
		a->refused = errno == EMFILE || errno == ENFILE || errno == EAFNOSUPPORT;
		why(a, "socket: ", errno);
		return false;
	}
	socket_tune(a->socket->fd);
	if (connect(a->socket->fd, (struct sockaddr *)&address, length) && errno != EINPROGRESS && errno != EINTR)
		error = errno;
	else if (!wait_for(a, POLLOUT) || getsockopt(a->socket->fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	a->refused = error == ECONNREFUSED && (!id->later || !place_is_kept(id));
	if (error)
		why(a, error == ETIMEDOUT ? "does not answer" : "", error == ETIMEDOUT ? 0 : error);
	if (error == ECONNREFUSED)
		why(a, id->later ? "nobody listens there" : "nobody listens there: the job's ranks have all come, or "
		    "it has failed, or the process that made the id has ended", 0);
	return !error;
}

/* After a failed call: can it be made again? */
static bool
go_on(const struct attempt *a, short events)
{
	return errno == EINTR || ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_for(a, events));
}

static bool
put(struct attempt *a, const void *what, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = send(a->socket->fd, (const char *)what + done, bytes - done, MSG_NOSIGNAL);
		if (n > 0)
			done += (size_t)n;
		else if (!go_on(a, POLLOUT))
			return false;
	}
	return true;
}

static bool
take(struct attempt *a, void *what, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = recv(a->socket->fd, (char *)what + done, bytes - done, 0);
		if (n == 0)
			errno = ECONNRESET;
		if (n > 0)
			done += (size_t)n;
		else if (!go_on(a, POLLIN))
			return false;
	}
	return true;
}

static void
why_it_ends(struct attempt *a)
{
	if (errno == ETIMEDOUT)
		why(a, "does not answer", 0);
	else
		why(a, "the connection ends: ", errno);
}

static bool
handshake(struct attempt *a, const struct id *id)
{
	unsigned char mac[HMAC_BYTES];
	char welcome[WELCOME_BYTES];
	memcpy(a->hello.magic, HELLO_MAGIC, sizeof a->hello.magic);
	if (!random_bytes(a->hello.nonce, NONCE_BYTES)) {
		why(a, "random numbers: ", errno);
		return false;
	}
	if (!put(a, &a->hello, sizeof a->hello) || !take(a, &a->challenge, sizeof a->challenge)) {
		why_it_ends(a);
		return false;
	}
	memcpy(a->nonces.rank, a->hello.nonce, NONCE_BYTES);
	memcpy(a->nonces.hub, a->challenge.nonce, NONCE_BYTES);
	mac_of_hub(id->secret, &a->nonces, mac);
	if (!hmac_equal(mac, a->challenge.mac)) {
		a->refused = !id->later;
		why(a, "who listens there does not know the secret of this id, or has another "
		    "BLINK_SECRET_FILE", 0);
		return false;
	}
	mac_of_rank(id->secret, &a->nonces, &a->proof, a->proof.mac);
	if (put(a, &a->proof, sizeof a->proof) && take(a, welcome, sizeof welcome) &&
	    memcmp(welcome, WELCOME, sizeof welcome) == 0)
		return true;
	why_it_ends(a);
	return false;
}

static void
pause_until(int64_t t)
{
	struct timespec at = { .tv_sec = t / 1000000000, .tv_nsec = t % 1000000000 };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

int
enter(const struct id *id, const struct proof *who, int64_t deadline, int64_t patience, struct descriptor *out,
    struct blink_error *err)
{
	struct attempt a = { .socket = out, .deadline = deadline, .proof = *who };
	char name[ADDRESS_ROOM], time[DURATION_ROOM];
	int64_t pause = 10000000, most = 320000000;
	for (;;) {
		if (make_connection(&a, id) && handshake(&a, id))
			return err->code = blinkSuccess;
		descriptor_close(out);
		if (a.refused || now_ns() + pause >= deadline)
			break;
		pause_until(now_ns() + pause);
		pause = pause < most ? 2 * pause : most;
	}
	address_text(id->address, true, name);
	err->code = a.refused ? blinkSystemError : blinkTimeout;
	if (a.refused)
		snprintf(err->text, sizeof err->text, "the meeting place of the unique id, %s: %s", name, a.why);
	else
		snprintf(err->text, sizeof err->text, "the meeting place of the unique id, %s: %s: tried for %s", name,
		    a.why, duration(patience, time));
	return err->code;
}
