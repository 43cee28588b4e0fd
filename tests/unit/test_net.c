/* Messages between ranks (transport/net.h), over loopback: what is sent arrives, whole and in the order of its lane,
 * also where many send at once, begin at the same time, or wait for a place; and a forked child does no harm. What
 * breaks is in test_net_broken.c. Prints TAP. test_net [SEED]. */
#include "net_ends.h"
#include "quick.h"

#include <sys/socket.h>
#include <sys/wait.h>

enum { MESSAGES = 400 };

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

/* ---- fork ---- */

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
	int part = quick_check() ? 3 : 1;
	traffic(2, AF_INET, 1, MESSAGES / part, LARGE, "two ranks send to each other");
	traffic(4, AF_INET, 1, 150 / part, LARGE, "four ranks send to each other");
	traffic(3, AF_INET, 3, 120 / part, LARGE / 4, "three ranks of three threads each");
	if (has_ipv6())
		traffic(2, AF_INET6, 1, 100 / part, LARGE, "over IPv6");
	else
		printf("skip over IPv6: no ::1 here\n");
	test_no_place();
	test_arguments();
	test_early();
	test_forked();
}

int
main(int argc, char **argv)
{
	begin(argc, argv);
	each_kind(test_kind);
	return finish();
}
