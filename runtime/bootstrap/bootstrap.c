/* What callers ask of a connection to the hub: they leave it for the connection's thread (bootstrap_thread.c), under
 * the lock, and wake that. */
#include "bootstrap/bootstrap_inside.h"

#include "bootstrap/enter.h"
#include "bootstrap/hub.h"
#include "bootstrap/interface.h"
#include "bootstrap/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- joining and leaving ---- */

static void
wake(struct bootstrap *b)
{
	uint64_t one = 1;
	while (write(b->wake.fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

int
bootstrap_make_id(const char *interface, const char *secret, blinkUniqueId_t *id, struct blink_error *err)
{
	unsigned char address[ADDRESS_BYTES];
	char name[16];
	if (interface_find(interface, address, name, err) != blinkSuccess)
		return err->code;
	return hub_start(address, name, secret, id, err);
}

static int
say(struct blink_error *err, int code, const char *text)
{
	err->code = code;
	snprintf(err->text, sizeof err->text, "%s", text);
	return code;
}

static int
check_join(const struct id *id, int n, int rank, size_t bytes, struct blink_error *err)
{
	char text[128];
	if (memcmp(id->magic, ID_MAGIC, sizeof id->magic) != 0 || !address_length(id->address) ||
	    !memchr(id->interface, 0, sizeof id->interface))
		return say(err, blinkInvalidArgument, "unique id: not one that blinkGetUniqueId of this version made");
	snprintf(text, sizeof text, "rank %d of %d: want 1 to %d ranks, and a rank from 0 to one less", rank, n,
	    (int)RANKS_MAX);
	if (n < 1 || n > RANKS_MAX || rank < 0 || rank >= n)
		return say(err, blinkInvalidArgument, text);
	if (bytes > JOIN_MAX)
		return say(err, blinkInternalError, "join: more than 4096 bytes");
	return err->code = blinkSuccess;
}

/* Releases all; the thread has ended, or was never started. */
static void
release(struct bootstrap *b)
{
	descriptor_close(&b->socket);
	descriptor_close(&b->wake);
	reader_next(&b->in);
	writer_free(&b->out);
	pthread_cond_destroy(&b->change);
	pthread_mutex_destroy(&b->lock);
	explicit_bzero(b->secret, sizeof b->secret);
	free(b);
}

static struct bootstrap *
bootstrap_new(const struct id *id, int n, int rank, const struct bootstrap_events *events)
{
	struct bootstrap *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->owner = getpid();
	b->socket.fd = b->wake.fd = -1;
	b->n = n;
	b->rank = rank;
	b->hub_rank = -1;
	b->in.of_hub = true;
	b->events = *events;
	memcpy(b->secret, id->secret, SECRET_BYTES);
	memcpy(b->hub, id->address, ADDRESS_BYTES);
	memcpy(b->interface, id->interface, sizeof b->interface);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->change, NULL);
	return b;
}

static void
find_own_address(struct bootstrap *b)
{
	struct sockaddr_storage own = { 0 };
	socklen_t length = sizeof own;
	if (getsockname(b->socket.fd, (struct sockaddr *)&own, &length) == 0)
		memcpy(b->own, &own, ADDRESS_BYTES);
	address_set_port(b->own, 0);
}

/* The thread is there: wait until it has done the exchange. With the lock, which is released. */
static int
wait_for_exchange(struct bootstrap *b, struct blink_error *err)
{
	while (!b->exchange.done && b->failure.code == blinkSuccess)
		pthread_cond_wait(&b->change, &b->lock);
	b->exchanging = false;
	if (!b->exchange.done)
		*err = b->failure;
	pthread_mutex_unlock(&b->lock);
	return err->code;
}

static struct exchange
exchange_of(const void *mine, size_t bytes, void *all, int64_t deadline)
{
	return (struct exchange){ .mine = mine, .bytes = bytes, .all = all, .deadline = deadline,
		.patience = deadline - now_ns() };
}

/* Others shall hear why this rank goes. */
static int
cannot_start(struct bootstrap *b, int error, struct blink_error *err)
{
	char reason[REASON_ROOM];
	struct failure f = { .code = error == ENOMEM ? blinkOutOfMemory : blinkSystemError, .culprit = b->rank };
	snprintf(f.text, sizeof f.text, "rank %d: thread of the bootstrap: %s", b->rank, reason_of(error, reason));
	if (bootstrap_tell(b, FRAME_FAIL, &f, sizeof f))
		writer_flush(&b->out, b->socket.fd);
	say(err, f.code, f.text);
	release(b);
	return err->code;
}

static int
start(struct bootstrap *b, const struct exchange *first, struct blink_error *err)
{
	b->exchange = *first;
	b->exchanging = true;
	int failed = !descriptor_event(&b->wake) ? errno : start_thread(&b->thread, BOOTSTRAP_STACK, bootstrap_run, b);
	if (failed)
		return cannot_start(b, failed, err);
	pthread_mutex_lock(&b->lock);
	if (wait_for_exchange(b, err) != blinkSuccess)
		bootstrap_leave(b, 0);
	return err->code;
}

int
bootstrap_join(const blinkUniqueId_t *id, const char *secret, int n, int rank, const void *mine, size_t bytes,
    void *all, int64_t deadline, const struct bootstrap_events *events, struct bootstrap **out,
    struct blink_error *err)
{
	struct id where;
	memcpy(&where, id, sizeof where);
	if (check_join(&where, n, rank, bytes, err) != blinkSuccess || secret_add(&where, secret, err) != blinkSuccess)
		return err->code;
	struct bootstrap *b = bootstrap_new(&where, n, rank, events);
	if (!b)
		return say(err, blinkOutOfMemory, "out of memory");
	struct exchange first = exchange_of(mine, bytes, all, deadline);
	struct proof who = { .version = WIRE_VERSION, .library = BLINK_VERSION, .process = process_number(), .n = n,
		.rank = rank, .bytes = (uint32_t)bytes };
	if (enter(&where, &who, deadline, first.patience, &b->socket, err) != blinkSuccess) {
		release(b);
		return err->code;
	}
	find_own_address(b);
	if (start(b, &first, err) == blinkSuccess)
		*out = b;
	return err->code;
}

int
bootstrap_allgather(struct bootstrap *b, const void *mine, size_t bytes, void *all, int64_t deadline,
    struct blink_error *err)
{
	if (b->owner != getpid())
		return say(err, blinkInvalidArgument, "made by the parent of this process: want one made after fork");
	if (bytes > EXCHANGE_MAX)
		return say(err, blinkInternalError, "exchange: more than 65536 bytes");
	pthread_mutex_lock(&b->lock);
	b->exchange = exchange_of(mine, bytes, all, deadline);
	b->exchanging = true;
	wake(b);
	return wait_for_exchange(b, err);
}

void
bootstrap_leave(struct bootstrap *b, uint64_t calls)
{
	if (!b)
		return;
	if (b->owner != getpid()) {		/* descriptors are closed; what the thread held may be anything */
		free(b);
		return;
	}
	pthread_mutex_lock(&b->lock);
	b->leaving = true;
	b->calls = calls;
	b->leave_until = now_ns();
	pthread_mutex_unlock(&b->lock);
	wake(b);
	pthread_join(b->thread, NULL);
	release(b);
}

/* ---- while the job runs ---- */

/* The program may end the process as soon as it hears of the failure: by then the hub has been told, or a tenth of a
 * second has passed. */
static void
wait_until_said(struct bootstrap *b)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += SECOND / 10;
	until.tv_sec += until.tv_nsec / SECOND;
	until.tv_nsec %= SECOND;
	pthread_mutex_lock(&b->lock);
	while (!b->fail_said && pthread_cond_timedwait(&b->change, &b->lock, &until) == 0)
		;
	pthread_mutex_unlock(&b->lock);
}

void
bootstrap_fail(struct bootstrap *b, int code, int culprit, const char *text)
{
	if (b->owner != getpid())
		return;
	pthread_mutex_lock(&b->lock);
	bool first = b->failure.code == blinkSuccess;
	if (first) {
		b->failure.code = code;
		snprintf(b->failure.text, sizeof b->failure.text, "%s", text);
		b->fail = (struct failure){ .code = code, .culprit = culprit };
		snprintf(b->fail.text, sizeof b->fail.text, "%s", text);
		b->fail_wanted = true;
		pthread_cond_broadcast(&b->change);
	}
	pthread_mutex_unlock(&b->lock);
	if (first)
		wake(b);
	if (first && !pthread_equal(pthread_self(), b->thread))
		wait_until_said(b);
}

void
bootstrap_stuck(struct bootstrap *b, int64_t deadline, int64_t patience)
{
	if (b->owner != getpid())
		return;
	pthread_mutex_lock(&b->lock);
	b->stuck = (struct investigation){ .wanted = true, .told = b->stuck.told, .changed = true, .deadline = deadline,
		.patience = patience, .since = now_ns() };
	pthread_mutex_unlock(&b->lock);
	wake(b);
}

void
bootstrap_progress(struct bootstrap *b)
{
	if (b->owner != getpid())
		return;
	pthread_mutex_lock(&b->lock);
	bool change = b->stuck.wanted;
	b->stuck.wanted = false;
	b->stuck.changed |= change;
	pthread_mutex_unlock(&b->lock);
	if (change)
		wake(b);
}

void
bootstrap_address(const struct bootstrap *b, unsigned char out[28])
{
	memcpy(out, b->own, ADDRESS_BYTES);
}

const char *
bootstrap_interface(const struct bootstrap *b)
{
	return b->interface;
}

void
bootstrap_sign(const struct bootstrap *b, const void *text, size_t bytes, unsigned char out[32])
{
	mac_of_text(b->secret, text, bytes, out);
}
