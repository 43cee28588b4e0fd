/* What goes wrong between ranks (transport/net.h), over loopback: a peer that ends, leaves, refuses, says nothing or
 * sends nonsense is told once, and in time; strangers do no harm. Prints TAP. test_net_broken [SEED]. */
#include "net_ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* In place of the C library's: a thread that sends comes back as late as a loaded machine may let it. */
static atomic_int linger_ms;
static bool full;			/* the full test */

ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t n = syscall(SYS_sendmsg, fd, message, flags);
	int code = errno, ms = atomic_exchange(&linger_ms, 0);
	if (ms)
		pause_ms(ms);
	errno = code;
	return n;
}

/* ---- the end of a peer ---- */

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

/* A call has failed while its messages waited for a place: their memory is the caller's again, whatever it does with
 * it, and the net closes at once. What was sent before is right. */
static void
test_abandoned(int zero)
{
	enum { N = 12, BYTES = 6 << 20 };
	struct end e[2];
	char *payload[N + 2];
	zero_copy = zero;
	bool good = open_ends(e, 2, AF_INET, 20000);
	good = good && send_one(&e[0], 1, 0, 1, 100, &payload[N]) == blinkSuccess
	    && await(&e[1], &e[1].arrived, 1, 5000);
	atomic_store(&e[1].closed, true);
	for (int i = 0; i < N && good; i++)
		good = send_one(&e[0], 1, 1 + (uint32_t)i % (LANES - 1), (uint64_t)i / (LANES - 1) + 1, BYTES,
		    &payload[i]) == blinkSuccess;
	pause_ms(100);
	int64_t begun = now();
	kind->abandon(e[0].net);
	ok(now() - begun < SECOND, "a call that has failed takes its memory back");
	for (int i = 0; i < N && good; i++)
		memset(payload[i], 0x3c, BYTES);
	atomic_store(&e[1].closed, false);
	kind->resume(e[1].net, 0);
	pause_ms(200);
	ok(good && e[1].wrong == 0 && count(&e[1], &e[1].arrived) < N + 1, "messages of a failed call are not sent");
	ok(send_one(&e[0], 1, 0, 2, 100, &payload[N + 1]) == blinkRemoteError, "nor any other");
	begun = now();
	close_end(&e[0]);
	ok(now() - begun < 5 * SECOND, "a net that was abandoned waits for nobody");
	ok(await(&e[1], &e[1].broken[0], 1, 5000) && e[1].wrong == 0, "its peer hears that it has ended");
	close_end(&e[1]);
	for (int i = 0; i < N + 2; i++)
		free(payload[i]);
}

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

static void *
leave_after_second(void *of)
{
	struct end *e = of;
	await(e, &e->arrived, 2, 5000);
	kind->close(e->net, now() + 10 * SECOND);
	return NULL;
}

/* The peer has the message and has said farewell before the thread that sent it knows. */
static void
test_left_at_once(void)
{
	struct end e[2];
	char *payload[3];
	pthread_t other;
	bool good = open_ends(e, 2, AF_INET, 5000) && send_one(&e[0], 1, 0, 1, 100, &payload[0]) == blinkSuccess
	    && send_one(&e[1], 0, 0, 1, 100, &payload[1]) == blinkSuccess && await(&e[1], &e[1].arrived, 1, 5000)
	    && await(&e[0], &e[0].arrived, 1, 5000);
	pthread_create(&other, NULL, leave_after_second, &e[1]);
	atomic_store(&linger_ms, 300);
	good = good && send_one(&e[0], 1, 0, 2, 100, &payload[2]) == blinkSuccess;
	pthread_join(other, NULL);
	pause_ms(50);
	bool lingered = atomic_exchange(&linger_ms, 0) == 0 || strcmp(kind->name, "tcp") != 0;
	ok(told(e, 1, good && lingered && count(&e[0], &e[0].broken[1]) == 0),
	    "a peer may leave before a message to it is known to have been sent");
	free_end(&e[1]);
	close_end(&e[0]);
	for (int i = 0; i < 3; i++)
		free(payload[i]);
}

/* The peer does not come, for that reason, within that time. */
static void
fails_to_connect(struct end *e, const char all[2 * NET_ADDRESS], const char *reason, int64_t least, int64_t most,
    const char *what)
{
	struct blink_error err;
	char *payload = NULL;
	int64_t begun = now();
	bool good = kind->connect(e->net, all, &err) == blinkSuccess
	    && send_one(e, 1, 0, 1, 100, &payload) == blinkSuccess && await(e, &e->broken[1], 1, 5000);
	ok(good && strstr(e->reason[1], reason) && now() - begun >= least && now() - begun <= most, what);
	close_end(e);
	free(payload);
}

/* A peer whose address is one where nobody listens, somebody says nothing, somebody else of this job is. */
static void
test_bad_address(void)
{
	struct end e[2];
	char all[2 * NET_ADDRESS];
	struct sockaddr_in mute = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof mute;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool good = open_ends(e, 2, AF_INET, 1000) && bind(fd, (struct sockaddr *)&mute, size) == 0
	    && getsockname(fd, (struct sockaddr *)&mute, &size) == 0;
	memcpy(all, e[0].address, NET_ADDRESS);
	memcpy(all + NET_ADDRESS, e[1].address, NET_ADDRESS);
	memcpy(all + NET_ADDRESS + 4, &mute, sizeof mute);
	ok(good, "an address where nobody listens");
	fails_to_connect(&e[0], all, "refused", 0, SECOND, "a peer that refuses");
	ok(open_end(&e[0], 0, 2, AF_INET, 1000) && listen(fd, 5) == 0, "an address where somebody says nothing");
	fails_to_connect(&e[0], all, "", SECOND / 2, 3 * SECOND, "a peer that says nothing");
	open_end(&e[0], 0, 2, AF_INET, 5000);
	e[1].secret = 1;
	memcpy(all + NET_ADDRESS, e[1].address, NET_ADDRESS);
	fails_to_connect(&e[0], all, "does not belong", 0, 5 * SECOND, "a peer that does not know the secret");
	ok(count(&e[1], &e[1].arrived) == 0, "hears nothing");
	close_end(&e[1]);
	close(fd);
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
test_garbage(struct end *e)
{
	char garbage[4096];
	int wrong = 0;
	uint64_t state = seed;
	for (int i = 0; i < 20; i++) {
		int stranger = dial(e);
		for (size_t k = 0; k < sizeof garbage; k++)
			garbage[k] = (char)random64(&state);
		send(stranger, garbage, (size_t)(i * 200 + 60), MSG_NOSIGNAL);
		wrong += !dropped(stranger, 0);
	}
	ok(wrong == 0, "garbage is dropped at once, without an answer");
}

static void
test_bad_hello(struct end *e)
{
	enum { BAD = 6 };
	struct hello bad[BAD] = { from_1, from_1, from_1, from_1, from_1, from_1 };
	char answer[88];
	int wrong = 0;
	bad[0].from = 0, bad[1].from = 2, bad[2].to = 2, bad[3].way = 1000;
	bad[4].magic[0]++, bad[5].order = __builtin_bswap32(bad[5].order);
	for (int i = 0; i < BAD; i++) {
		int stranger = dial(e);
		send(stranger, &bad[i], sizeof bad[i], MSG_NOSIGNAL);
		wrong += !dropped(stranger, 0);
	}
	ok(wrong == 0, "ranks that do not exist, or are not meant; another protocol, another byte order");
	int stranger = dial(e);
	bool good = send(stranger, &from_1, sizeof from_1, 0) == (ssize_t)sizeof from_1
	    && recv(stranger, answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer
	    && send(stranger, answer + sizeof from_1, 32, 0) == 32;
	ok(good && dropped(stranger, 0), "the other side's signature sent back is none");
	int64_t begun = now();
	stranger = dial(e);
	send(stranger, &from_1, 20, 0);
	ok(dropped(stranger, 0) && now() - begun > SECOND / 2 && now() - begun < 3 * SECOND,
	    "who stops within the handshake is dropped after a second");
}

static void
test_strangers(void)
{
	enum { SILENT = 60 };
	struct end e[2];
	char *payload[2];
	int fd[SILENT], wrong = 0;
	bool good = open_ends(e, 2, AF_INET, 5000);
	for (int i = 0; i < SILENT; i++)
		fd[i] = dial(&e[0]);
	good = good && send_one(&e[1], 0, 0, 1, 1000000, &payload[0]) == blinkSuccess
	    && await(&e[0], &e[0].arrived, 1, 5000);
	ok(good, "silent strangers do not keep a peer from connecting");
	test_garbage(&e[0]);
	test_bad_hello(&e[0]);
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
	struct net_message m = { .flag = 1, .bytes = 1000 }, far = m, none = { .flag = 1 };
	bool good = open_end(&e, 0, RANKS, AF_INET, 5000);
	far.lane = NET_LANES;
	struct frame kinds = { 3, 0, m, 0, 1000 }, lanes = { 1, 0, far, 0, 1000 }, past = { 1, 0, m, 1, 1000 },
	    wraps = { 1, 0, m, UINT64_MAX, 10 },
	    twice[] = { { 1, 0, none, 0, 0 }, { 1, 0, none, 0, 0 } },
	    over[] = { { 1, 5, m, 0, 600 }, { 1, 5, m, 300, 600 } };
	ok(good && nonsense(&e, 1, &kinds, 1, "no known kind"), "a frame of no known kind");
	ok(nonsense(&e, 2, &lanes, 1, "a lane"), "a lane that is not");
	ok(nonsense(&e, 3, &past, 1, "not within"), "a part past the end of its message");
	ok(nonsense(&e, 4, &wraps, 1, "not within"), "a part before the beginning of its message");
	ok(nonsense(&e, 5, twice, 2, kind == net_kinds[0] ? "twice" : "no known kind"), "a message twice");
	ok(nonsense(&e, 6, over, 2, "do not fit together"), "parts that overlap");
	close_end(&e);
}

static void
test_nonsense_parts(void)
{
	struct end e;
	struct net_message m = { .flag = 1, .bytes = 1000 }, other = { .flag = 2, .bytes = 1000 };
	struct frame longer = { 1, 0, m, 0, 1001 }, empty = { 1, 0, m, 500, 0 },
	    mixed[] = { { 1, 5, m, 0, 600 }, { 1, 5, other, 600, 400 } };
	bool good = open_end(&e, 0, RANKS, AF_INET, 5000);
	ok(good && nonsense(&e, 1, &longer, 1, "not within"), "a part that is longer than its message");
	ok(nonsense(&e, 2, &empty, 1, "not within"), "a part without bytes of a message that has some");
	ok(nonsense(&e, 3, mixed, 2, "do not fit together"), "parts of two messages of one number");
	close_end(&e);
}

/* Messages that are ahead of their turn, the last of the lane first: more than a receiver has records for. */
static void
test_too_many_ahead(void)
{
	enum { MOST = 1 << 20, AT_ONCE = 1024 };
	static struct frame f[AT_ONCE];
	struct end e;
	bool good = open_end(&e, 0, RANKS, AF_INET, 5000);
	int fd = join(&e, 1, 0);
	for (uint32_t order = MOST + AT_ONCE; order > 0 && good; order -= AT_ONCE) {
		for (uint32_t i = 0; i < AT_ONCE; i++)
			f[i] = (struct frame){ .kind = 1, .order = order - i, .m.flag = 1 };
		good = send(fd, f, sizeof f, MSG_NOSIGNAL) == (ssize_t)sizeof f;
	}
	ok(await(&e, &e.broken[1], 1, 20000) && strstr(e.reason[1], "no memory"), "too many messages that are ahead");
	close(fd);
	close_end(&e);
}

/* ---- processes ---- */

/* Rank 1 in a process of its own, which sends, has no place for anything, and is then killed. */
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
	atomic_store(&e.closed, true);
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
test_killed(int zero)
{
	struct end e;
	struct blink_error err;
	int in = -1, out = -1;
	char all[2 * NET_ADDRESS], *payload[3];
	zero_copy = zero;
	pid_t pid = start_child(&in, &out);
	bool good = pid > 0 && open_end(&e, 0, 2, AF_INET, 5000);
	memcpy(all, e.address, NET_ADDRESS);
	good = good && read(in, all + NET_ADDRESS, NET_ADDRESS) == NET_ADDRESS
	    && kind->connect(e.net, all, &err) == blinkSuccess
	    && write(out, all, sizeof all) == (ssize_t)sizeof all;
	ok(good && await(&e, &e.arrived, 1, 10000) && e.wrong == 0, "from a process to another");
	good = send_one(&e, 1, 1, 1, 20 << 20, &payload[0]) == blinkSuccess;
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

static void
test_kind(void)
{
	test_killed(-1);
	test_killed(1);
	test_does_not_fit();
	test_abandoned(-1);
	test_abandoned(1);
	zero_copy = 0;
	test_left();
	test_left_at_once();
	test_bad_address();
	test_strangers();
	test_nonsense();
	test_nonsense_parts();
	if (full && kind == net_kinds[0])
		test_too_many_ahead();
}

int
main(int argc, char **argv)
{
	full = argc > 2 && atoi(argv[2]) > 15;
	begin(argc, argv);
	each_kind(test_kind);
	return finish();
}
