/* Nets between ranks (transport/net.h), over loopback: what is sent arrives, whole and in the order of its lane, also
 * where many send at once, begin at the same time, or wait for a place; strangers do no harm; a peer that ends, leaves,
 * refuses, says nothing or sends nonsense is told once, and in time. Prints TAP. test_net [SEED]. */
#include "transport/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 8, LANES = 6, MESSAGES = 400, LIMIT_S = 300, MS = 1000000 };
#define SECOND INT64_C(1000000000)

/* ThreadSanitizer makes the bytes of large messages slow. */
#if defined __has_feature
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif
#if defined __SANITIZE_THREAD__ || HAS(thread_sanitizer)
enum { LARGE = 1 << 20 };
#else
enum { LARGE = 8 << 20 };
#endif

static int n_tests, n_failed;
static const struct net_kind *kind;

static void
ok(bool good, const char *what)
{
	n_tests++;
	n_failed += !good;
	printf("%sok %d - %s: %s\n", good ? "" : "not ", n_tests, kind->name, what);
	fflush(stdout);
}

static uint64_t seed;

static uint64_t
random64(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static int64_t
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static void
pause_ms(int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * MS }, NULL);
}

static void *
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
static void
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

static int
lane_number(uint32_t lane)
{
	return (int)(lane & ~(NET_DONE | NET_CHANNEL)) * 4 + (int)(lane >> 30);
}

static void *
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

static bool
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

static void
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

static void
broken(void *context, int peer, const char *reason)
{
	struct end *e = context;
	pthread_mutex_lock(&e->lock);
	e->broken[peer]++;
	snprintf(e->reason[peer], sizeof e->reason[peer], "%s", reason);
	pthread_mutex_unlock(&e->lock);
}

/* Not a signature that anybody should use. */
static void
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

static void
loopback(int family, unsigned char out[28])
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	memset(out, 0, 28);
	memcpy(out, family == AF_INET ? (const void *)&four : &six, family == AF_INET ? sizeof four : sizeof six);
}

static bool
open_end(struct end *e, int rank, int n, int family, int patience_ms)
{
	struct blink_error err = { 0 };
	*e = (struct end){ .rank = rank, .n = n, .refuse = -1, .secret = 42 };
	struct net_events events = { e, place, arrived, broken };
	struct net_keys keys = { .context = e, .sign = sign, .patience = (int64_t)patience_ms * MS };
	loopback(family, keys.address);
	pthread_mutex_init(&e->lock, NULL);
	bool good = kind->open(rank, n, &events, &keys, e->address, &e->net, &err) == blinkSuccess;
	if (!good)
		printf("# %s\n", err.text);
	return good;
}

static bool
open_ends(struct end *e, int n, int family, int patience_ms)
{
	char all[RANKS * NET_ADDRESS];
	struct blink_error err;
	bool good = true;
	for (int r = 0; r < n; r++) {
		good = open_end(&e[r], r, n, family, patience_ms) && good;
		memcpy(all + r * NET_ADDRESS, e[r].address, NET_ADDRESS);
	}
	for (int r = 0; r < n && good; r++)
		good = kind->connect(e[r].net, all, &err) == blinkSuccess;
	return good;
}

static void
free_end(struct end *e)
{
	for (int r = 0; r < e->n; r++)
		for (struct message *m = e->placed[r], *next; m; m = next) {
			next = m->next;
			free(m->bytes);
			free(m);
		}
}

static void
close_end(struct end *e)
{
	kind->close(e->net, now() + 10 * SECOND);
	e->net = NULL;
	free_end(e);
}

static int
count(struct end *e, const int *what)
{
	pthread_mutex_lock(&e->lock);
	int n = *what;
	pthread_mutex_unlock(&e->lock);
	return n;
}

/* Until it is so many, or the time is over. */
static bool
await(struct end *e, const int *what, int n, int ms)
{
	int64_t until = now() + (int64_t)ms * MS;
	while (count(e, what) < n && now() < until)
		pause_ms(1);
	return count(e, what) == n;
}

/* What went wrong, where a test finds that something did. */
static bool
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

static int
send_one(struct end *e, int to, uint32_t lane, uint64_t flag, uint64_t bytes, char **payload)
{
	struct net_message m = { .lane = lane, .flag = flag, .signature = flag * 3, .bytes = bytes };
	*payload = need(malloc(bytes + 1));
	fill(*payload, e->rank, to, &m);
	return kind->send(e->net, to, &m, *payload);
}

/* ---- what is sent arrives ---- */

struct sender {
	struct end *e;
	uint64_t state;
	int first_lane, n_lanes, messages;
	uint64_t most;
	char *payload[MESSAGES];
	int failed;
};

static uint64_t
some_size(struct sender *s)
{
	uint64_t r = random64(&s->state), of = random64(&s->state);
	return r % 4 == 0 ? 0 : r % 40 == 1 ? of % (s->most + 1) : r % 3 == 1 ? of % 300000 : of % 5000;
}

/* Some flags go to ranks in lanes of this thread. */
static void *
send_all(void *of)
{
	struct sender *s = of;
	uint64_t flag[RANKS][4 * LANES] = { 0 };
	for (int i = 0; i < s->messages; i++) {
		int to = (int)(random64(&s->state) % (uint64_t)s->e->n);
		uint32_t lane = (uint32_t)(s->first_lane + (int)(random64(&s->state) % (uint64_t)s->n_lanes));
		lane |= (uint32_t)(random64(&s->state) % 4) << 30;
		if (to == s->e->rank)
			to = (to + 1) % s->e->n;
		uint64_t bytes = i == 7 ? s->most : some_size(s);
		s->failed += send_one(s->e, to, lane, ++flag[to][lane_number(lane)], bytes, &s->payload[i])
		    != blinkSuccess;
	}
	return NULL;
}

/* Each end sends by `threads` threads, which begin as it connects. */
static void
traffic(int n, int family, int threads, int messages, uint64_t most, const char *what)
{
	struct end e[RANKS];
	struct sender *s = need(calloc((size_t)(n * threads), sizeof *s));
	pthread_t thread[RANKS * LANES];
	bool good = open_ends(e, n, family, 20000);
	for (int i = 0; i < n * threads && good; i++) {
		s[i] = (struct sender){ .e = &e[i / threads], .state = seed * 1000 + (uint64_t)i, .messages = messages,
			.first_lane = i % threads * (LANES / threads), .n_lanes = LANES / threads, .most = most };
		good = pthread_create(&thread[i], NULL, send_all, &s[i]) == 0;
	}
	for (int i = 0; i < n * threads && good; i++)
		pthread_join(thread[i], NULL);
	int sent = n * threads * messages, got = 0, wrong = 0, failed = 0, ended = 0;
	for (int64_t until = now() + 60 * SECOND; good && got < sent && now() < until; pause_ms(2)) {
		got = 0;
		for (int r = 0; r < n; r++)
			got += count(&e[r], &e[r].arrived);
	}
	for (int r = 0; r < n; r++) {
		close_end(&e[r]);
		wrong += e[r].wrong;
		for (int p = 0; p < n; p++)
			ended += e[r].broken[p];
	}
	for (int i = 0; i < n * threads; i++) {
		failed += s[i].failed;
		for (int k = 0; k < messages; k++)
			free(s[i].payload[k]);
	}
	free(s);
	if (got != sent || failed)
		printf("# %d of %d arrived, %d not sent\n", got, sent, failed);
	good = good && got == sent && !wrong && !failed && !ended;
	ok(told(e, n, good), what);
}

/* ---- no place ---- */

/* The receiver has no place for longer than its host may be silent; others go on. */
static void
test_no_place(void)
{
	enum { N = 12 };
	struct end e[3];
	char *payload[N + 1];
	bool good = open_ends(e, 3, AF_INET, 1000);
	atomic_store(&e[1].closed, true);
	for (int i = 0; i < N && good; i++)
		good = send_one(&e[0], 1, (uint32_t)i % LANES, (uint64_t)i / LANES + 1, 3 << 20, &payload[i])
		    == blinkSuccess;
	good = good && send_one(&e[0], 2, 0, 1, 100000, &payload[N]) == blinkSuccess;
	ok(good && await(&e[2], &e[2].arrived, 1, 5000), "a rank without a place does not keep others");
	pause_ms(2500);
	ok(count(&e[1], &e[1].arrived) == 0 && atomic_load(&e[1].asked) > 0, "nothing arrives where there is no place");
	kind->resume(e[1].net, 0);
	pause_ms(20);
	ok(count(&e[1], &e[1].arrived) == 0, "resumed, and still no place");
	atomic_store(&e[1].closed, false);
	kind->resume(e[1].net, 0);
	ok(await(&e[1], &e[1].arrived, N, 20000) && e[1].wrong == 0, "and then all arrives");
	ok(count(&e[0], &e[0].broken[1]) == 0 && count(&e[1], &e[1].broken[0]) == 0, "and none was given up");
	for (int r = 0; r < 3; r++)
		close_end(&e[r]);
	for (int i = 0; i <= N; i++)
		free(payload[i]);
}

static void
test_does_not_fit(void)
{
	struct end e[2];
	char *payload;
	bool good = open_ends(e, 2, AF_INET, 5000);
	atomic_store(&e[1].refuse, 3);
	good = good && send_one(&e[0], 1, 3, 1, 1000, &payload) == blinkSuccess;
	ok(good && await(&e[1], &e[1].broken[0], 1, 5000) && strstr(e[1].reason[0], "does not fit")
	    && await(&e[0], &e[0].broken[1], 1, 5000), "a message that does not fit ends the pair");
	for (int r = 0; r < 2; r++)
		close_end(&e[r]);
	free(payload);
}

static void
test_arguments(void)
{
	struct end e[2];
	struct blink_error err = { 0 };
	char all[2 * NET_ADDRESS] = "ucx", *payload[4];
	bool good = open_ends(e, 2, AF_INET, 5000);
	ok(good && send_one(&e[0], 0, 0, 1, 1, &payload[0]) == blinkInvalidArgument
	    && send_one(&e[0], 2, 0, 1, 1, &payload[1]) == blinkInvalidArgument
	    && send_one(&e[0], -1, 0, 1, 1, &payload[2]) == blinkInvalidArgument
	    && send_one(&e[0], 1, NET_LANES, 1, 1, &payload[3]) == blinkInvalidArgument,
	    "ranks and lanes that do not exist");
	ok(kind->connect(e[1].net, all, &err) == blinkMismatch && strstr(err.text, "rank 0"),
	    "the address of another kind of net");
	for (int i = 0; i < 4; i++)
		free(payload[i]);
	for (int r = 0; r < 2; r++)
		close_end(&e[r]);
	kind->close(NULL, 0);
}

/* Ranks do not connect at the same time: one may send before the other has its address. */
static void
test_early(void)
{
	struct end e[2];
	struct blink_error err;
	char all[2 * NET_ADDRESS], *payload[2];
	bool good = open_end(&e[0], 0, 2, AF_INET, 5000) && open_end(&e[1], 1, 2, AF_INET, 5000);
	for (int r = 0; r < 2; r++)
		memcpy(all + r * NET_ADDRESS, e[r].address, NET_ADDRESS);
	good = good && kind->connect(e[0].net, all, &err) == blinkSuccess
	    && send_one(&e[0], 1, 0, 1, 1000, &payload[0]) == blinkSuccess;
	pause_ms(50);
	good = good && kind->connect(e[1].net, all, &err) == blinkSuccess
	    && send_one(&e[1], 0, 0, 1, 1000, &payload[1]) == blinkSuccess;
	good = good && await(&e[1], &e[1].arrived, 1, 5000) && await(&e[0], &e[0].arrived, 1, 5000);
	ok(told(e, 2, good && e[0].wrong + e[1].wrong == 0), "a message before its receiver connects");
	for (int r = 0; r < 2; r++) {
		close_end(&e[r]);
		free(payload[r]);
	}
}

/* ---- the end of a peer ---- */

static void
test_left(void)
{
	struct end e[2];
	char *payload[4];
	bool good = open_ends(e, 2, AF_INET, 5000);
	good = good && send_one(&e[0], 1, 0, 1, 100, &payload[0]) == blinkSuccess
	    && send_one(&e[1], 0, 0, 1, 5 << 20, &payload[1]) == blinkSuccess;
	good = good && await(&e[1], &e[1].arrived, 1, 5000);
	kind->close(e[1].net, now() + 10 * SECOND);
	bool all = good && await(&e[0], &e[0].arrived, 1, 5000) && e[0].wrong == 0;
	pause_ms(50);
	send_one(&e[0], 1, NET_DONE, 1, 0, &payload[2]);
	ok(told(e, 2, all), "a peer that leaves has sent all");
	pause_ms(50);
	ok(count(&e[0], &e[0].broken[1]) == 0, "and is not broken, also where a `done` is late");
	send_one(&e[0], 1, 0, 2, 100, &payload[3]);
	ok(await(&e[0], &e[0].broken[1], 1, 5000) && strstr(e[0].reason[1], "rank 1"), "unless it is needed");
	free_end(&e[1]);
	close_end(&e[0]);
	for (int i = 0; i < 4; i++)
		free(payload[i]);
}

/* A peer whose address is one where nobody listens, somebody says nothing, somebody else of this job is. */
static void
test_bad_address(void)
{
	struct end e[2], other;
	struct blink_error err;
	char all[2 * NET_ADDRESS], *payload[3];
	struct sockaddr_in mute = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof mute;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool good = open_ends(e, 2, AF_INET, 1000) && bind(fd, (struct sockaddr *)&mute, size) == 0
	    && getsockname(fd, (struct sockaddr *)&mute, &size) == 0;
	memcpy(all, e[0].address, NET_ADDRESS);
	memcpy(all + NET_ADDRESS, e[1].address, NET_ADDRESS);
	memcpy(all + NET_ADDRESS + 4, &mute, sizeof mute);
	good = good && kind->connect(e[0].net, all, &err) == blinkSuccess;
	int64_t begun = now();
	good = good && send_one(&e[0], 1, 0, 1, 100, &payload[0]) == blinkSuccess;
	ok(good && await(&e[0], &e[0].broken[1], 1, 5000) && strstr(e[0].reason[1], "refused")
	    && now() - begun < SECOND, "a peer that refuses");
	close_end(&e[0]);
	good = open_end(&e[0], 0, 2, AF_INET, 1000) && listen(fd, 5) == 0
	    && kind->connect(e[0].net, all, &err) == blinkSuccess;
	begun = now();
	good = good && send_one(&e[0], 1, 0, 1, 100, &payload[1]) == blinkSuccess;
	ok(good && await(&e[0], &e[0].broken[1], 1, 5000) && now() - begun > SECOND / 2 && now() - begun < 3 * SECOND,
	    "a peer that says nothing");
	close_end(&e[0]);
	open_end(&other, 0, 2, AF_INET, 1000);
	open_end(&e[0], 0, 2, AF_INET, 5000);
	e[1].secret = 1;
	memcpy(all + NET_ADDRESS, e[1].address, NET_ADDRESS);
	good = kind->connect(e[0].net, all, &err) == blinkSuccess
	    && send_one(&e[0], 1, 0, 1, 100, &payload[2]) == blinkSuccess;
	ok(good && await(&e[0], &e[0].broken[1], 1, 5000) && strstr(e[0].reason[1], "does not belong")
	    && count(&e[1], &e[1].arrived) == 0, "a peer that does not know the secret");
	close_end(&e[0]);
	close_end(&e[1]);
	close_end(&other);
	close(fd);
	for (int i = 0; i < 3; i++)
		free(payload[i]);
}

/* ---- strangers, and peers that send nonsense ---- */

static int
dial(const struct end *e)
{
	struct sockaddr_in to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(&to, e->address + 4, sizeof to);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 5, 0 }, sizeof(struct timeval));
	return connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? fd : -1;
}

/* The other side closes it, and says no more than so many bytes. */
static bool
dropped(int fd, int most)
{
	char text[256];
	ssize_t n;
	int all = 0;
	while ((n = recv(fd, text, sizeof text, 0)) > 0)
		all += (int)n;
	bool good = (n == 0 || errno == ECONNRESET) && all <= most;
	close(fd);
	return good;
}

struct hello {
	char magic[8];
	uint32_t order, from, to, way;
	unsigned char random[32];
};

static const struct hello from_1 = { "blinkt1", 0x01020304, 1, 0, 0, "0123456789abcdef0123456789abcde" };

static void
test_strangers(void)
{
	enum { SILENT = 60 };
	struct end e[2];
	char garbage[4096], *payload[2], answer[88];
	int fd[SILENT], wrong = 0;
	uint64_t state = seed;
	bool good = open_ends(e, 2, AF_INET, 5000);
	for (int i = 0; i < SILENT; i++)
		fd[i] = dial(&e[0]);
	good = good && send_one(&e[1], 0, 0, 1, 1000000, &payload[0]) == blinkSuccess
	    && await(&e[0], &e[0].arrived, 1, 5000);
	ok(good, "silent strangers do not keep a peer from connecting");
	for (int i = 0; i < 20; i++) {
		int stranger = dial(&e[0]);
		for (size_t k = 0; k < sizeof garbage; k++)
			garbage[k] = (char)random64(&state);
		send(stranger, garbage, (size_t)(i * 200 + 60), MSG_NOSIGNAL);
		wrong += !dropped(stranger, 0);
	}
	ok(wrong == 0, "garbage is dropped at once, without an answer");
	struct hello bad[] = { from_1, from_1, from_1, from_1 };
	bad[0].from = 0, bad[1].from = 2, bad[2].to = 1, bad[3].way = 1000;
	for (int i = 0; i < 4; i++) {
		int stranger = dial(&e[0]);
		send(stranger, &bad[i], sizeof bad[i], MSG_NOSIGNAL);
		wrong += !dropped(stranger, 0);
	}
	ok(wrong == 0, "ranks that do not exist, or are not meant");
	int stranger = dial(&e[0]);
	good = send(stranger, &from_1, sizeof from_1, 0) == (ssize_t)sizeof from_1
	    && recv(stranger, answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer
	    && send(stranger, answer + sizeof from_1, 32, 0) == 32;
	ok(good && dropped(stranger, 0), "the other side's signature sent back is none");
	int64_t begun = now();
	stranger = dial(&e[0]);
	send(stranger, &from_1, 20, 0);
	ok(dropped(stranger, 0) && now() - begun > SECOND / 2 && now() - begun < 3 * SECOND,
	    "who stops within the handshake is dropped after a second");
	for (int i = 0; i < SILENT; i++)
		wrong += !dropped(fd[i], 0);
	ok(wrong == 0, "and who says nothing");
	good = send_one(&e[1], 0, 0, 2, 1000, &payload[1]) == blinkSuccess;
	ok(good && await(&e[0], &e[0].arrived, 2, 5000) && e[0].wrong == 0 && e[0].broken[1] == 0,
	    "none of it did any harm");
	for (int r = 0; r < 2; r++)
		close_end(&e[r]);
	for (int i = 0; i < 2; i++)
		free(payload[i]);
}

struct frame {
	uint32_t kind, order;
	struct net_message m;
	uint64_t offset, bytes;
};

/* As a rank that knows the secret; -1: not let in. */
static int
join(struct end *e, uint32_t rank, uint32_t way)
{
	struct hello hello = from_1;
	unsigned char text[8 + 2 * sizeof hello] = "connects", proof[32], welcome;
	int fd = dial(e);
	hello.from = rank;
	hello.way = way;
	memcpy(text + 8, &hello, sizeof hello);
	if (send(fd, &hello, sizeof hello, 0) != (ssize_t)sizeof hello
	    || recv(fd, text + 8 + sizeof hello, sizeof hello, MSG_WAITALL) != (ssize_t)sizeof hello
	    || recv(fd, proof, sizeof proof, MSG_WAITALL) != (ssize_t)sizeof proof)
		return -1;
	sign(e, text, sizeof text, proof);
	if (send(fd, proof, sizeof proof, 0) != (ssize_t)sizeof proof || recv(fd, &welcome, 1, 0) != 1)
		return -1;
	return fd;
}

/* Rank `rank` sends these frames, each with its bytes; it is broken, for that reason. */
static bool
nonsense(struct end *e, int rank, const struct frame *f, int n, const char *reason)
{
	char bytes[4096] = { 0 };
	int fd = join(e, (uint32_t)rank, 0);
	for (int i = 0; i < n; i++) {
		send(fd, &f[i], sizeof f[i], MSG_NOSIGNAL);
		send(fd, bytes, f[i].bytes < sizeof bytes ? f[i].bytes : sizeof bytes, MSG_NOSIGNAL);
	}
	bool good = await(e, &e->broken[rank], 1, 5000) && strstr(e->reason[rank], reason);
	good = dropped(fd, 0) && good;
	pause_ms(5);
	if (!good)
		printf("# %d: %s: want %s\n", rank, e->reason[rank], reason);
	return good && count(e, &e->broken[rank]) == 1;
}

static void
test_nonsense(void)
{
	struct end e;
	struct net_message m = { .flag = 1, .bytes = 1000 }, far = m, reserved = m, none = { .flag = 1 };
	bool good = open_end(&e, 0, RANKS, AF_INET, 5000);
	far.lane = NET_LANES;
	reserved.reserved = 1;
	struct frame kinds = { 3, 0, m, 0, 1000 }, lanes = { 1, 0, far, 0, 1000 }, past = { 1, 0, m, 1, 1000 },
	    wraps = { 1, 0, m, UINT64_MAX, 10 }, fields = { 1, 0, reserved, 0, 1000 },
	    twice[] = { { 1, 0, none, 0, 0 }, { 1, 0, none, 0, 0 } },
	    over[] = { { 1, 5, m, 0, 600 }, { 1, 5, m, 300, 600 } };
	ok(good && nonsense(&e, 1, &kinds, 1, "no known kind"), "a frame of no known kind");
	ok(nonsense(&e, 2, &lanes, 1, "a lane"), "a lane that is not");
	ok(nonsense(&e, 3, &past, 1, "not within"), "a part past the end of its message");
	ok(nonsense(&e, 4, &wraps, 1, "not within"), "a part before the beginning of its message");
	ok(nonsense(&e, 5, &fields, 1, "no known kind"), "a member that must be 0");
	ok(nonsense(&e, 6, twice, 2, kind == net_kinds[0] ? "twice" : "no known kind"), "a message twice");
	ok(nonsense(&e, 7, over, 2, "do not fit together"), "parts that overlap");
	close_end(&e);
}

/* ---- processes ---- */

/* Rank 1 in a process of its own, which sends and is then killed. */
static void
child_rank(int in, int out)
{
	struct end e;
	struct blink_error err;
	char all[2 * NET_ADDRESS], *payload;
	alarm(60);
	if (!open_end(&e, 1, 2, AF_INET, 5000) || write(out, e.address, NET_ADDRESS) != NET_ADDRESS
	    || read(in, all, sizeof all) != (ssize_t)sizeof all || kind->connect(e.net, all, &err) != blinkSuccess)
		_exit(1);
	send_one(&e, 0, 2, 1, 2000000, &payload);
	for (;;)
		pause();
}

static pid_t
start_child(int *in, int *out)
{
	int down[2], up[2];
	if (pipe(down) != 0 || pipe(up) != 0)
		return -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(down[1]);
		close(up[0]);
		child_rank(down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	*in = up[0];
	*out = down[1];
	return pid;
}

static void
test_killed(void)
{
	struct end e;
	struct blink_error err;
	int in = -1, out = -1;
	char all[2 * NET_ADDRESS], *payload[3];
	pid_t pid = start_child(&in, &out);
	bool good = pid > 0 && open_end(&e, 0, 2, AF_INET, 5000);
	memcpy(all, e.address, NET_ADDRESS);
	good = good && read(in, all + NET_ADDRESS, NET_ADDRESS) == NET_ADDRESS
	    && kind->connect(e.net, all, &err) == blinkSuccess
	    && write(out, all, sizeof all) == (ssize_t)sizeof all;
	ok(good && await(&e, &e.arrived, 1, 10000) && e.wrong == 0, "from a process to another");
	good = send_one(&e, 1, 1, 1, 300000, &payload[0]) == blinkSuccess;
	pause_ms(20);
	kill(pid, SIGKILL);
	ok(good && await(&e, &e.broken[1], 1, 2000), "a peer that is killed is broken");
	ok(send_one(&e, 1, 1, 2, 100, &payload[1]) == blinkRemoteError, "nothing is sent to it any more");
	pause_ms(50);
	ok(count(&e, &e.broken[1]) == 1 && strstr(e.reason[1], "rank 1 (127.0.0.1, port "), "once, with its name");
	waitpid(pid, NULL, 0);
	close(in);
	close(out);
	close_end(&e);
	free(payload[0]);
	free(payload[1]);
}

/* A forked child that frees its copy ends nothing of its parent. */
static void
test_forked(void)
{
	struct end e[2];
	char *payload[2];
	int status = 1;
	bool good = open_ends(e, 2, AF_INET, 5000)
	    && send_one(&e[0], 1, 0, 1, 1000, &payload[0]) == blinkSuccess && await(&e[1], &e[1].arrived, 1, 5000);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(20);
		kind->close(e[0].net, now() + 10 * SECOND);
		kind->close(e[1].net, now() + 10 * SECOND);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	good = good && send_one(&e[0], 1, 0, 2, 1000, &payload[1]) == blinkSuccess;
	ok(good && status == 0 && await(&e[1], &e[1].arrived, 2, 5000) && e[1].wrong == 0 && e[0].broken[1] == 0,
	    "a forked child frees its copy");
	close_end(&e[0]);
	close_end(&e[1]);
	for (int i = 0; i < 2; i++)
		free(payload[i]);
}

static bool
has_ipv6(void)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool good = fd >= 0 && bind(fd, (struct sockaddr *)&six, sizeof six) == 0;
	if (fd >= 0)
		close(fd);
	return good;
}

static void
test_kind(void)
{
	test_killed();
	traffic(2, AF_INET, 1, MESSAGES, LARGE, "two ranks send to each other");
	traffic(4, AF_INET, 1, 150, LARGE, "four ranks send to each other");
	traffic(3, AF_INET, 3, 120, LARGE / 4, "three ranks of three threads each");
	if (has_ipv6())
		traffic(2, AF_INET6, 1, 100, LARGE, "over IPv6");
	else
		printf("skip over IPv6: no ::1 here\n");
	test_no_place();
	test_does_not_fit();
	test_arguments();
	test_early();
	test_left();
	test_bad_address();
	test_strangers();
	test_nonsense();
	test_forked();
}

int
main(int argc, char **argv)
{
	char why[256];
	const char *only = argc > 3 ? argv[3] : "";
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	alarm(LIMIT_S);
	for (int i = 0; net_kinds[i]; i++) {
		kind = net_kinds[i];
		if (*only && strcmp(only, kind->name) != 0)
			continue;
		if (kind->available(why))
			test_kind();
		else
			printf("skip %s: %s\n", kind->name, why);
	}
	ok(strcmp(net_kinds[0]->name, "tcp") == 0 && net_kinds[0]->available(why), "TCP is there");
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
