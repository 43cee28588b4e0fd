/* Ends of a net for its tests: ranks of this process over loopback, and what their events have seen. */
#include "transport/net.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 8, LANES = 6, LIMIT_S = 300, MS = 1000000 };
#define SECOND INT64_C(1000000000)

static int n_tests, n_failed;
static const struct net_kind *kind;
static int zero_copy;	/* of ends that are opened: net_keys */

BLINK_FN void
ok(bool good, const char *what)
{
	n_tests++;
	n_failed += !good;
	printf("%sok %d - %s: %s\n", good ? "" : "not ", n_tests, kind->name, what);
	fflush(stdout);
}

static uint64_t seed;

BLINK_FN uint64_t
random64(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

BLINK_FN int64_t
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

BLINK_FN void
pause_ms(int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * MS }, NULL);
}

BLINK_FN void *
need(void *p)
{
	if (!p) {
		printf("Bail out! out of memory\n");
		exit(1);
	}
	return p;
}

/* ---- an end: a net, and what its events have seen ---- */

struct message {
	struct message *next;
	struct net_message m;
	char *bytes;
};

struct end {
	int rank, n;
	void *net;
	unsigned char secret;
	char address[NET_ADDRESS];
	pthread_mutex_t lock;
	atomic_bool closed;			/* no place for anything */
	atomic_int refuse;			/* a lane whose messages do not fit */
	uint64_t expected[RANKS][4 * LANES];	/* flags count from 1 in each lane */
	struct message *placed[RANKS];
	int arrived, wrong, broken[RANKS];
	atomic_int asked;
	char reason[RANKS][512];
};

/* The bytes of a message, which its ends both know. */
BLINK_FN void
fill(char *out, int from, int to, const struct net_message *m)
{
	uint64_t state = (uint64_t)from * 1000003 + (uint64_t)to * 10007 + m->lane * UINT64_C(77777777) + m->flag;
	uint64_t bytes = m->bytes, i = 0;
	for (; i + 8 <= bytes; i += 8) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		memcpy(out + i, &state, 8);
	}
	for (; i < bytes; i++)
		out[i] = (char)(state >> i % 8);
}

BLINK_FN int
lane_number(uint32_t lane)
{
	return (int)(lane & ~(NET_DONE | NET_CHANNEL)) * 4 + (int)(lane >> 30);
}

BLINK_FN void *
place(void *context, int from, const struct net_message *m)
{
	struct end *e = context;
	void *bytes = NULL;
	atomic_fetch_add(&e->asked, 1);
	if (atomic_load(&e->closed))
		return NULL;
	if ((int)m->lane == atomic_load(&e->refuse))
		return NET_REFUSED;
	pthread_mutex_lock(&e->lock);
	struct message *at = e->placed[from];
	while (at && (at->m.lane != m->lane || at->m.flag != m->flag))
		at = at->next;
	if (!at) {
		at = need(malloc(sizeof *at));
		*at = (struct message){ .next = e->placed[from], .m = *m, .bytes = need(malloc(m->bytes)) };
		memset(at->bytes, 0x5a, m->bytes);
		e->placed[from] = at;
	}
	bytes = at->bytes;
	pthread_mutex_unlock(&e->lock);
	return bytes;
}

BLINK_FN bool
right(struct end *e, int from, const struct net_message *m)
{
	struct message **at = &e->placed[from];
	if (m->bytes == 0)
		return true;
	while (*at && ((*at)->m.lane != m->lane || (*at)->m.flag != m->flag))
		at = &(*at)->next;
	struct message *found = *at;
	if (!found || found->m.bytes != m->bytes || found->m.signature != m->signature)
		return false;
	char *want = need(malloc(m->bytes));
	fill(want, from, e->rank, m);
	bool good = memcmp(want, found->bytes, m->bytes) == 0;
	*at = found->next;
	free(want);
	free(found->bytes);
	free(found);
	return good;
}

BLINK_FN void
arrived(void *context, int from, const struct net_message *m)
{
	struct end *e = context;
	pthread_mutex_lock(&e->lock);
	bool known = (m->lane & ~(NET_DONE | NET_CHANNEL)) < LANES;
	if (!known || m->flag != ++e->expected[from][lane_number(m->lane)] || !right(e, from, m))
		e->wrong++;
	e->arrived++;
	pthread_mutex_unlock(&e->lock);
}

BLINK_FN void
broken(void *context, int peer, const char *reason)
{
	struct end *e = context;
	pthread_mutex_lock(&e->lock);
	e->broken[peer]++;
	snprintf(e->reason[peer], sizeof e->reason[peer], "%s", reason);
	pthread_mutex_unlock(&e->lock);
}

/* Not a signature that anybody should use. */
BLINK_FN void
sign(void *context, const void *text, size_t bytes, unsigned char out[32])
{
	const struct end *e = context;
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ e->secret;
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ ((const unsigned char *)text)[i]) * UINT64_C(0x100000001b3);
	for (int i = 0; i < 4; i++) {
		uint64_t word = random64(&h);
		memcpy(out + 8 * i, &word, 8);
	}
}

BLINK_FN void
loopback(int family, unsigned char out[28])
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	memset(out, 0, 28);
	memcpy(out, family == AF_INET ? (const void *)&four : &six, family == AF_INET ? sizeof four : sizeof six);
}

BLINK_FN bool
open_end(struct end *e, int rank, int n, int family, int patience_ms)
{
	struct blink_error err = { 0 };
	*e = (struct end){ .rank = rank, .n = n, .refuse = -1, .secret = 42 };
	struct net_events events = { e, place, arrived, broken, NULL };
	struct net_keys keys = { .context = e, .sign = sign, .patience = (int64_t)patience_ms * MS,
		.zero_copy = zero_copy };
	loopback(family, keys.address);
	pthread_mutex_init(&e->lock, NULL);
	bool good = kind->open(rank, n, &events, &keys, e->address, &e->net, &err) == blinkSuccess;
	if (!good)
		printf("# %s\n", err.text);
	return good;
}

BLINK_FN bool
open_ends(struct end *e, int n, int family, int patience_ms)
{
	char all[RANKS * NET_ADDRESS];
	struct blink_error err = { 0 };
	bool good = true;
	for (int r = 0; r < n; r++) {
		good = open_end(&e[r], r, n, family, patience_ms) && good;
		memcpy(all + r * NET_ADDRESS, e[r].address, NET_ADDRESS);
	}
	for (int r = 0; r < n && good; r++)
		good = kind->connect(e[r].net, all, &err) == blinkSuccess;
	return good;
}

BLINK_FN void
free_end(struct end *e)
{
	for (int r = 0; r < e->n; r++)
		for (struct message *m = e->placed[r], *next; m; m = next) {
			next = m->next;
			free(m->bytes);
			free(m);
		}
}

BLINK_FN void
close_end(struct end *e)
{
	kind->close(e->net, now() + 10 * SECOND);
	e->net = NULL;
	free_end(e);
}

BLINK_FN int
count(struct end *e, const int *what)
{
	pthread_mutex_lock(&e->lock);
	int n = *what;
	pthread_mutex_unlock(&e->lock);
	return n;
}

/* Until it is so many, or the time is over. */
BLINK_FN bool
await(struct end *e, const int *what, int n, int ms)
{
	int64_t until = now() + (int64_t)ms * MS;
	while (count(e, what) < n && now() < until)
		pause_ms(1);
	return count(e, what) == n;
}

/* What went wrong, where a test finds that something did. */
BLINK_FN bool
told(struct end *e, int n, bool good)
{
	for (int r = 0; r < n && !good; r++) {
		printf("# rank %d: %d arrived, %d wrong\n", r, count(&e[r], &e[r].arrived), e[r].wrong);
		for (int p = 0; p < e[r].n; p++)
			if (count(&e[r], &e[r].broken[p]))
				printf("# rank %d: %s\n", r, e[r].reason[p]);
	}
	return good;
}

BLINK_FN int
send_one(struct end *e, int to, uint32_t lane, uint64_t flag, uint64_t bytes, char **payload)
{
	struct net_message m = { .lane = lane, .flag = flag, .signature = flag * 3, .bytes = bytes };
	*payload = need(malloc(bytes + 1));
	fill(*payload, e->rank, to, &m);
	return kind->send(e->net, to, &m, *payload);
}

/* Before the first check. */
BLINK_FN void
begin(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	kind = net_kinds[0];
	alarm(LIMIT_S);
}

/* With each kind of net that can be used here. */
BLINK_FN void
each_kind(void (*test)(void))
{
	char why[256];
	for (int i = 0; net_kinds[i]; i++) {
		kind = net_kinds[i];
		if (kind->available(why))
			test();
		else
			printf("skip %s: %s\n", kind->name, why);
	}
}

BLINK_FN int
finish(void)
{
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
