/* The UCX net (transport/ucx.h), beyond what test_net.c asks of every net: it leaves the process's signals and memory
 * functions alone; a message without the token of its sender is dropped; a peer that breaks the rules of messages is
 * broken, for that reason. The rank that breaks them is a net of this process, whose events send by UCX itself. Prints
 * TAP. */
#include "transport/ucx_inside.h"

#include <stdio.h>

#ifndef BLINK_UCX

int
main(void)
{
	printf("skip UCX: ucp/api/ucp.h is not here\n1..0\n");
	return 0;
}

#else

#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 300, ROOM = 64 << 10, SIGNALS = 32, MS = 1000000 };

static void
pause_ms(int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * MS }, NULL);
}

/* ---- two nets: rank 0 is the victim, rank 1 attacks ---- */

typedef void (*attack)(struct ucx *u);

struct end {
	struct ucx *net;
	char address[NET_ADDRESS], place[ROOM], reason[256];
	atomic_int arrived, broken, asked;
	atomic_bool closed;
	attack attack;
};

static void *
place(void *context, int from, const struct net_message *m)
{
	struct end *e = context;
	(void)from;
	atomic_fetch_add(&e->asked, 1);
	return m->bytes > ROOM ? NET_REFUSED : atomic_load(&e->closed) ? NULL : e->place;
}

static void
arrived(void *context, int from, const struct net_message *m)
{
	struct end *e = context;
	(void)from, (void)m;
	atomic_fetch_add(&e->arrived, 1);
	if (e->attack)
		e->attack(e->net);
}

static void
broken(void *context, int peer, const char *reason)
{
	struct end *e = context;
	(void)peer;
	snprintf(e->reason, sizeof e->reason, "%s", reason);
	atomic_fetch_add(&e->broken, 1);
}

static void
sign(void *context, const void *text, size_t bytes, unsigned char out[32])
{
	uint64_t h = 7;
	(void)context;
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ ((const unsigned char *)text)[i]) * UINT64_C(0x100000001b3);
	for (int i = 0; i < 32; i++)
		out[i] = (unsigned char)(h >> i);
}

static bool
open_pair(struct end e[2], attack by)
{
	const struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char all[2][NET_ADDRESS];
	struct blink_error err = { 0 };
	bool good = true;
	for (int i = 0; i < 2; i++) {
		void *net = NULL;
		struct net_events events = { &e[i], place, arrived, broken, NULL };
		struct net_keys keys = { .sign = sign };
		memcpy(keys.address, &here, sizeof here);
		memset(&e[i], 0, sizeof e[i]);
		good = good && net_ucx.open(i, 2, &events, &keys, all[i], &net, &err) == blinkSuccess;
		e[i].net = net;
	}
	e[1].attack = by;
	for (int i = 0; i < 2 && good; i++)
		good = net_ucx.connect(e[i].net, all, &err) == blinkSuccess;
	if (!good)
		printf("# %s\n", err.text);
	return good;
}

static void
close_pair(struct end e[2])
{
	for (int i = 0; i < 2; i++)
		net_ucx.close(e[i].net, now_ns() + INT64_C(5000) * MS);
}

/* Until it is so many, or five seconds are over. */
static bool
await(atomic_int *what, int n)
{
	for (int i = 0; i < 5000 && atomic_load(what) < n; i++)
		pause_ms(1);
	return atomic_load(what) == n;
}

static bool
trigger(struct end e[2], uint64_t flag)
{
	struct net_message m = { .flag = flag };
	return net_ucx.send(e[0].net, 1, &m, NULL) == blinkSuccess;
}

/* ---- by UCX itself ---- */

static char bytes[ROOM];

static void
on_sent(void *request, ucs_status_t status, void *of)
{
	(void)status;
	((struct ucx *)of)->api->ucp_request_free_(request);
}

static void
send_raw(struct ucx *u, const struct ucx_header *h, size_t n_header, size_t n, uint32_t flags)
{
	const ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA
		| UCP_OP_ATTR_FIELD_FLAGS, .flags = flags, .cb.send = on_sent, .user_data = u };
	static struct ucx_header kept[16];	/* UCX reads them later */
	static int at;
	struct ucx_header *mine = &kept[at++ % 16];
	*mine = *h;
	u->api->ucp_am_send_nbx_(u->peer[0].endpoint, UCX_MESSAGE, mine, n_header, n ? bytes : NULL, n, &param);
}

static struct ucx_header
header_of(const struct ucx *u, uint64_t n)
{
	struct ucx_header h = { .from = 1, .m = { .flag = 1, .bytes = n } };
	memcpy(h.token, u->peer[0].theirs, UCX_TOKEN);
	return h;
}

/* None of them from a member of the job; then one that is. */
static void
without_token(struct ucx *u)
{
	struct ucx_header h = header_of(u, 0), bad = h;
	bad.token[UCX_TOKEN - 1] ^= 1;
	send_raw(u, &bad, sizeof bad, 0, UCP_AM_SEND_FLAG_EAGER);
	bad.m.bytes = ROOM;
	send_raw(u, &bad, sizeof bad, ROOM, UCP_AM_SEND_FLAG_RNDV);
	bad = h;
	bad.from = 0;
	send_raw(u, &bad, sizeof bad, 0, UCP_AM_SEND_FLAG_EAGER);
	bad.from = 2;
	send_raw(u, &bad, sizeof bad, 0, UCP_AM_SEND_FLAG_EAGER);
	bad.from = UINT32_MAX;
	send_raw(u, &bad, sizeof bad, 0, UCP_AM_SEND_FLAG_EAGER);
	send_raw(u, &h, sizeof h - 1, 0, UCP_AM_SEND_FLAG_EAGER);
	send_raw(u, &h, sizeof h, 0, UCP_AM_SEND_FLAG_EAGER);
}

static void
shorter(struct ucx *u)
{
	struct ucx_header h = header_of(u, 100);
	send_raw(u, &h, sizeof h, 99, UCP_AM_SEND_FLAG_EAGER);
}

static void
longer(struct ucx *u)
{
	struct ucx_header h = header_of(u, ROOM / 2);
	send_raw(u, &h, sizeof h, ROOM, UCP_AM_SEND_FLAG_RNDV);
}

static void
long_at_once(struct ucx *u)
{
	struct ucx_header h = header_of(u, UCX_EAGER + 1);
	send_raw(u, &h, sizeof h, UCX_EAGER + 1, UCP_AM_SEND_FLAG_EAGER);
}

static void
far_lane(struct ucx *u)
{
	struct ucx_header h = header_of(u, 0);
	h.m.lane = NET_LANES;
	send_raw(u, &h, sizeof h, 0, UCP_AM_SEND_FLAG_EAGER);
}

static void
delivered_twice(struct ucx *u)
{
	struct ucx_header h = header_of(u, 0);
	send_raw(u, &h, sizeof h, 0, UCP_AM_SEND_FLAG_EAGER);
	send_raw(u, &h, sizeof h, 0, UCP_AM_SEND_FLAG_EAGER);
}

static void
waiting_twice(struct ucx *u)
{
	struct ucx_header h = header_of(u, 0);
	h.order = 5;
	send_raw(u, &h, sizeof h, 0, UCP_AM_SEND_FLAG_EAGER);
	send_raw(u, &h, sizeof h, 0, UCP_AM_SEND_FLAG_EAGER);
}

/* The first of the lane never comes. */
static void
too_many(struct ucx *u)
{
	struct ucx_header h = header_of(u, 0);
	for (h.order = 1; h.order <= UCX_WINDOW + 1; h.order++)
		send_raw(u, &h, sizeof h, 0, UCP_AM_SEND_FLAG_EAGER);
}

static void
too_much_credit(struct ucx *u)
{
	ucx_tell(&u->peer[0], UCX_LANE_CREDIT, 1000);
}

static void
false_bye(struct ucx *u)
{
	struct ucx_header h = header_of(u, 0);
	send_raw(u, &h, sizeof h, 0, UCP_AM_SEND_FLAG_EAGER);
	ucx_tell(&u->peer[0], UCX_LANE_CREDIT, 0);
	pause_ms(100);
	ucx_tell(&u->peer[0], UCX_LANE_BYE, 0);
}

static void
unknown_word(struct ucx *u)
{
	ucx_tell(&u->peer[0], UCX_LANE_CREDIT + 10, 0);
}

static const struct {
	attack by;
	const char *what, *reason;
} rules[] = {
	{ shorter, "fewer bytes than it says", "another size" },
	{ longer, "more bytes than it says", "another size" },
	{ long_at_once, "a long message that its receiver did not ask for", "another size" },
	{ far_lane, "a lane that is not", "a lane" },
	{ delivered_twice, "a message that has been delivered", "twice" },
	{ waiting_twice, "a message that waits", "twice" },
	{ too_many, "more messages than the window has", "more messages than it may" },
	{ too_much_credit, "credit for what was not sent", "more messages than it was sent" },
	{ false_bye, "a bye that does not count all", "more messages than it says" },
	{ unknown_word, "a word of no known kind", "no known kind" },
};

static void
test_rules(void)
{
	struct end e[2];
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		bool good = open_pair(e, rules[i].by) && trigger(e, 1) && await(&e[0].broken, 1)
		    && await(&e[1].broken, 1) && strstr(e[0].reason, rules[i].reason);
		if (!good)
			printf("# %s: want %s\n", e[0].reason, rules[i].reason);
		ok(good && strstr(e[0].reason, "rank 1 (127.0.0.1, port "), rules[i].what);
		close_pair(e);
	}
}

static void
test_token(void)
{
	struct end e[2];
	bool good = open_pair(e, without_token) && trigger(e, 1) && await(&e[0].arrived, 1);
	pause_ms(50);
	ok(good && atomic_load(&e[0].arrived) == 1 && atomic_load(&e[0].asked) == 0 && !atomic_load(&e[0].broken)
	    && !atomic_load(&e[1].broken), "messages without the token are dropped");
	close_pair(e);
}

/* ---- memory ---- */

/* A sender has no more than the window under way, whatever it is asked to send. */
static void
test_window(void)
{
	enum { N = 3 * UCX_WINDOW };
	struct end e[2];
	struct net_message m = { .bytes = UCX_EAGER };
	bool good = open_pair(e, NULL);
	atomic_store(&e[1].closed, true);
	for (m.flag = 1; m.flag <= N && good; m.flag++)
		good = net_ucx.send(e[0].net, 1, &m, bytes) == blinkSuccess;
	ok(good && await(&e[1].asked, UCX_WINDOW), "a sender stops at the window");
	pause_ms(50);
	ok(atomic_load(&e[1].asked) == UCX_WINDOW, "and stays there");
	atomic_store(&e[1].closed, false);
	net_ucx.resume(e[1].net, 0);
	ok(await(&e[1].arrived, N) && !atomic_load(&e[1].broken), "until there is a place");
	close_pair(e);
}

/* ---- the process ---- */

typedef void (*signal_handler)(int);

static signal_handler
handler_of(int number)
{
	struct sigaction now;
	return sigaction(number, NULL, &now) == 0 ? now.sa_handler : SIG_DFL;
}

static void
test_process(const signal_handler before[SIGNALS], const void *code)
{
	struct end e[2];
	bool good = open_pair(e, NULL);
	int changed = 0;
	for (int i = 1; i < SIGNALS; i++)
		changed += handler_of(i) != before[i];
	ok(good && changed == 0, "the signals are the program's");
	ok(good && memcmp(code, (const void *)(uintptr_t)&munmap, 16) == 0, "munmap is the C library's");
	close_pair(e);
}

int
main(void)
{
	char why[256], code[16];
	signal_handler before[SIGNALS];
	alarm(LIMIT_S);
	for (int i = 1; i < SIGNALS; i++)
		before[i] = handler_of(i);
	memcpy(code, (const void *)(uintptr_t)&munmap, sizeof code);
	if (net_ucx.available(why)) {
		test_process(before, code);
		test_token();
		test_rules();
		test_window();
	} else {
		printf("skip UCX: %s\n", why);
	}
	return end_tests();
}
#endif
