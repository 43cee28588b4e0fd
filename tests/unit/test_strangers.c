/* Who connects to a hub without knowing the secret of its id, or answers in its place, does no harm. Prints TAP. */
#include "quick.h"
#include "ranks.h"

#include <netinet/in.h>
#include <sys/resource.h>

/* ---- HMAC ---- */

static bool
hmac_is(const char *key, size_t bytes, const char *text, const char *want)
{
	struct hmac h;
	unsigned char sum[HMAC_BYTES];
	char hex[2 * HMAC_BYTES + 1];
	hmac_begin(&h, key, bytes);
	for (const char *c = text; *c; c++)
		hmac_add(&h, c, 1);
	hmac_end(&h, sum);
	for (int i = 0; i < HMAC_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", sum[i]);
	return strcmp(hex, want) == 0;
}

static void
hmacs(void)
{
	unsigned char a[HMAC_BYTES] = { 0 }, b[HMAC_BYTES] = { 0 };
	bool differ = hmac_equal(a, b);
	b[HMAC_BYTES - 1] = 1;
	differ &= !hmac_equal(a, b);
	ok(hmac_is("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", 20, "Hi There",
	    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7") &&
	    hmac_is("Jefe", 4, "what do ya want for nothing?",
	    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843") && differ,
	    "HMAC-SHA-256, as in RFC 4231");
}

/* ---- a client and a server without the library ---- */

static int
dial(const blinkUniqueId_t *id)
{
	struct id where;
	memcpy(&where, id, sizeof where);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval patience = { .tv_sec = 10 };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (connect(fd, (const struct sockaddr *)(void *)where.address, sizeof(struct sockaddr_in))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool
put(int fd, const void *what, size_t bytes)
{
	return send(fd, what, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool
take(int fd, void *what, size_t bytes)
{
	return recv(fd, what, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

/* The hub closes within two seconds, and says nothing more. */
static bool
is_shut(int fd)
{
	char c;
	int64_t begin = now_ns();
	ssize_t got = recv(fd, &c, 1, 0);
	close(fd);
	return got <= 0 && (got == 0 || errno == ECONNRESET) && now_ns() - begin < 5000 * MS;
}

static struct hello
hello_of(const char *random)
{
	struct hello h = { .magic = "blinkhi" };
	memcpy(h.magic, HELLO_MAGIC, sizeof h.magic);
	snprintf((char *)h.nonce, sizeof h.nonce, "%s", random);
	return h;
}

static struct nonces
nonces_of(const struct hello *h, const struct challenge *c)
{
	struct nonces n;
	memcpy(n.rank, h->nonce, NONCE_BYTES);
	memcpy(n.hub, c->nonce, NONCE_BYTES);
	return n;
}

static struct proof
proof_of(const blinkUniqueId_t *id, const struct hello *h, const struct challenge *c, int n, int rank, uint32_t version)
{
	struct id where;
	struct proof p = { .version = version, .library = "9.9.9", .n = n, .rank = rank, .bytes = 16 };
	struct nonces nonces = nonces_of(h, c);
	memcpy(&where, id, sizeof where);
	mac_of_rank(where.secret, &nonces, &p, p.mac);
	return p;
}

/* A rank without the library, as far as the hub's challenge. */
static int
greet(const blinkUniqueId_t *id, const struct hello *h, struct challenge *c)
{
	int fd = dial(id);
	if (fd >= 0 && put(fd, h, sizeof *h) && take(fd, c, sizeof *c))
		return fd;
	close(fd);
	return -1;
}

/* ---- what the hub refuses ---- */

static void
handshakes(void)
{
	static struct rank r[2];
	blinkUniqueId_t id = new_id(), other = new_id();
	struct hello h = hello_of("one");
	struct challenge c, again;
	int fd = greet(&id, &h, &c);
	struct proof p = proof_of(&id, &h, &c, 2, 0, WIRE_VERSION);
	p.mac[31] ^= 1;
	ok(put(fd, &p, sizeof p) && is_shut(fd), "a wrong proof");
	p = proof_of(&other, &h, &c, 2, 0, WIRE_VERSION);
	fd = greet(&id, &h, &c);
	ok(put(fd, &p, sizeof p) && is_shut(fd), "a proof by the secret of another id");

	fd = greet(&id, &h, &c);
	p = proof_of(&id, &h, &c, 2, 0, WIRE_VERSION);
	int second = greet(&id, &h, &again);
	ok(memcmp(&c, &again, sizeof c) != 0 && put(second, &p, sizeof p) && is_shut(second),
	    "a proof that was given elsewhere, after the same hello");
	second = greet(&id, &h, &again);
	memcpy(p.mac, again.mac, sizeof p.mac);
	ok(put(second, &p, sizeof p) && is_shut(second), "the hub's own proof, sent back");
	p = proof_of(&id, &h, &c, 2, 0, WIRE_VERSION);
	p.rank = 1;
	ok(put(fd, &p, sizeof p) && is_shut(fd), "another rank than was proved");

	fd = dial(&id);
	ok(put(fd, "GET / HTTP/1.1\r\n\r\n", 18) && is_shut(fd), "another protocol");
	fd = dial(&id);
	int64_t begin = now_ns();
	ok(is_shut(fd) && now_ns() - begin > 500 * MS, "nothing at all, for a second");
	fd = dial(&id);
	begin = now_ns();
	ok(put(fd, &h, sizeof h - 1) && is_shut(fd) && now_ns() - begin > 500 * MS, "half a hello, for a second");
	job(r, &id, 2, 20000 * MS, NULL);
	ok(all_are(r, 2, blinkSuccess), "the ranks join after all that");
	ok(dial(&id) == -1, "nobody else can connect then");
	all_leave(r, 2);
}

/* A recorded session, word for word: hello, proof and contribution. */
static void
replay(void)
{
	static struct rank r[2];
	blinkUniqueId_t id = new_id();
	struct hello h = hello_of("recorded");
	struct challenge c;
	struct frame give = { FRAME_GIVE, 16 };
	int64_t mine[2] = { 0, 2 };
	int fd = greet(&id, &h, &c);
	struct proof p = proof_of(&id, &h, &c, 2, 0, WIRE_VERSION);
	put(fd, &p, sizeof p);
	put(fd, &give, sizeof give);
	put(fd, mine, sizeof mine);
	rank_init(&r[1], &id, 2, 1, 20000 * MS);
	ranks_start(r + 1, 1);
	struct {
		char welcome[WELCOME_BYTES];
		struct frame head;
		struct joined joined;
		struct frame all;
		int64_t of[2][2];
	} answer;
	bool good = take(fd, &answer, sizeof answer) && answer.all.kind == FRAME_ALL && answer.of[1][0] == 1;
	ranks_end(r + 1, 1);
	ok(good && r[1].result == blinkSuccess, "a rank without the library joins");
	close(fd);
	ok(hears(&r[1], 5000 * MS) && r[1].culprit == 0, "and dies: %s", r[1].text);
	bootstrap_leave(r[1].b, 0);

	id = new_id();
	for (int i = 0; i < 3; i++) {
		fd = dial(&id);
		put(fd, &h, sizeof h);
		put(fd, &p, sizeof p);
		put(fd, &give, sizeof give);
		put(fd, mine, sizeof mine);
		good &= take(fd, &c, sizeof c) && is_shut(fd);
	}
	job(r, &id, 2, 20000 * MS, NULL);
	ok(good && all_are(r, 2, blinkSuccess), "the same words are refused by the next hub");
	all_leave(r, 2);
}

static void
versions(void)
{
	static struct rank r[2];
	blinkUniqueId_t id = new_id();
	struct hello h = hello_of("version");
	struct challenge c;
	struct { char welcome[WELCOME_BYTES]; struct frame head; struct failure failure; } answer;
	rank_init(&r[0], &id, 3, 0, 20000 * MS);
	ranks_start(r, 1);
	int fd = greet(&id, &h, &c);
	struct proof p = proof_of(&id, &h, &c, 3, 2, WIRE_VERSION + 1);
	bool good = put(fd, &p, sizeof p) && take(fd, &answer, sizeof answer);
	ranks_end(r, 1);
	ok(good && r[0].result == blinkInvalidArgument && strcmp(r[0].err.text, answer.failure.text) == 0,
	    "a rank of another version: %s", r[0].err.text);
	close(fd);
}

/* A rank that has proved itself, and then breaks the rules: it is as if it had died. */
static void
bad_frames(void)
{
	static const struct { const char *what; struct frame frame; } rows[] = {
		{ "an unknown kind", { 1000, 0 } },
		{ "a frame of the hub", { FRAME_FAILED, sizeof(struct failure) } },
		{ "too long a contribution", { FRAME_GIVE, EXCHANGE_MAX + 1 } },
		{ "a frame of 4 GiB", { FRAME_GIVE, UINT32_MAX } },
		{ "too short a farewell", { FRAME_FAREWELL, 7 } },
	};
	static struct rank r[2];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		blinkUniqueId_t id = new_id();
		struct hello h = hello_of("rules");
		struct challenge c;
		rank_init(&r[0], &id, 2, 0, 20000 * MS);
		ranks_start(r, 1);
		int fd = greet(&id, &h, &c);
		struct proof p = proof_of(&id, &h, &c, 2, 1, WIRE_VERSION);
		bool good = put(fd, &p, sizeof p) && put(fd, &rows[i].frame, sizeof rows[i].frame);
		ranks_end(r, 1);
		ok(good && r[0].result == blinkRemoteError && strstr(r[0].err.text, "rank 1"), "%s: %s", rows[i].what,
		    r[0].err.text);
		close(fd);
	}
}

/* ---- many of them ---- */

enum { MANY = 1000 };
static int held[MANY];

static void
many_dial(const blinkUniqueId_t *id, int kind)
{
	struct hello h = hello_of("many");
	for (int i = 0; i < MANY; i++) {
		held[i] = dial(id);
		if (kind == 1)
			put(held[i], "garbage garbage garbage garbage garbage garbage", 48);
		if (kind == 2)
			put(held[i], &h, sizeof h);
	}
}

static void
many_hang_up(void)
{
	for (int i = 0; i < MANY; i++)
		close(held[i]);
}

static long
resident_kib(void)
{
	long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%ld %ld", &pages, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void
many(void)
{
	static const char *const kinds[] = { "silent", "talking garbage", "that say hello and no more" };
	static struct rank r[4];
	for (int kind = 0; kind < 3; kind++) {
		blinkUniqueId_t id = new_id();
		long before = resident_kib();
		many_dial(&id, kind);
		int64_t begin = now_ns();
		job(r, &id, 4, 20000 * MS, NULL);
		double took = (double)(now_ns() - begin) / 1e6;
		long grown = resident_kib() - before;
		ok(all_are(r, 4, blinkSuccess) && took < 5000, "%d strangers %s, and a job of 4", MANY, kinds[kind]);
		printf("# joined in %.1f ms; %ld KiB more\n", took, grown);
		all_leave(r, 4);
		many_hang_up();
	}
}

struct flood {
	blinkUniqueId_t id;
	_Atomic bool stop;
	int times;
};

static void *
flood(void *of)
{
	struct flood *f = of;
	char garbage[200];
	while (!f->stop) {
		int fd = dial(&f->id);
		random_bytes(garbage, sizeof garbage);
		if (f->times++ % 2)
			memcpy(garbage, HELLO_MAGIC, 8);
		if (fd >= 0) {
			put(fd, garbage, (size_t)garbage[100] & 127);
			close(fd);
		}
	}
	return NULL;
}

static void
during_join(void)
{
	static struct rank r[8];
	bool good = true;
	int times = 0, jobs = quick_check() ? 6 : 20;
	for (int i = 0; i < jobs; i++) {
		struct flood f = { .id = new_id() };
		pthread_t thread;
		pthread_create(&thread, NULL, flood, &f);
		job(r, &f.id, 8, 20000 * MS, NULL);
		good &= all_are(r, 8, blinkSuccess);
		all_leave(r, 8);
		f.stop = true;
		pthread_join(thread, NULL);
		times += f.times;
	}
	ok(good, "%d jobs while somebody talks garbage to their hubs", jobs);
	printf("# %d connections\n", times);
}

/* ---- false hubs ---- */

struct false_hub {
	struct id id;
	int listener, kind;
	struct challenge recorded;
};

static void *
false_hub(void *of)
{
	struct false_hub *f = of;
	char garbage[4096];
	int fd;
	memset(garbage, 'x', sizeof garbage);
	while ((fd = accept(f->listener, NULL, NULL)) >= 0) {
		if (f->kind == 1)
			put(fd, garbage, sizeof garbage);
		if (f->kind == 2)
			put(fd, &f->recorded, sizeof f->recorded);
		if (f->kind == 3)
			nap(700 * MS);
		close(fd);
	}
	return NULL;
}

static void
false_hubs(void)
{
	static const struct { const char *what, *text; int code; } rows[] = {
		{ "closes", "the connection ends: ", blinkTimeout },
		{ "talks garbage", "does not know the secret of this id", blinkSystemError },
		{ "says what a hub has said before", "does not know the secret of this id", blinkSystemError },
		{ "says nothing", "does not answer: tried for 300 ms", blinkTimeout },
	};
	static struct rank r;
	for (int kind = 0; kind < 4; kind++) {
		struct false_hub f = { .kind = kind, .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
		socklen_t length = sizeof(struct sockaddr_in);
		struct hello h = hello_of("false");
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		pthread_t thread;
		blinkUniqueId_t id = new_id();
		close(greet(&id, &h, &f.recorded));
		if (bind(f.listener, (struct sockaddr *)&a, length) || listen(f.listener, 5) ||
		    getsockname(f.listener, (struct sockaddr *)&a, &length))
			abort();
		memcpy(&f.id, &id, sizeof f.id);
		memcpy(f.id.address, &a, sizeof a);
		memcpy(&id, &f.id, sizeof id);
		pthread_create(&thread, NULL, false_hub, &f);
		bool good = false;
		/* Where time is over while it is being answered, it has not been. */
		for (int try = 0; try < 5 && !good; try++) {
			rank_init(&r, &id, 2, 0, 300 * MS);
			int64_t begin = now_ns();
			int code = rank_join(&r);
			good = code == rows[kind].code && strstr(r.err.text, rows[kind].text)
			    && now_ns() - begin < 5000 * MS;
		}
		ok(good, "who listens in the hub's place %s: %s", rows[kind].what, r.err.text);
		shutdown(f.listener, SHUT_RDWR);
		pthread_join(thread, NULL);
		close(f.listener);
		rank_init(&r, &id, 2, 0, 20000 * MS);
		if (kind == 0)
			ok(rank_join(&r) == blinkSystemError && strstr(r.err.text, "nobody listens there"),
			    "nobody: %s", r.err.text);
	}
}

/* ---- a hub that knows the secret, and says numbers that are not ---- */

struct bad_hub {
	struct id id;
	int listener;
	bool late;			/* after all have come */
	struct frame frame;
	char body[sizeof(struct failure)];
};

/* Two ranks, of which it plays one. */
static void *
bad_hub(void *of)
{
	struct bad_hub *b = of;
	struct hello h;
	struct proof p;
	struct challenge c = { .nonce = "bad hub" };
	struct { struct frame head; int64_t mine[2]; } give;
	struct { struct frame head; struct joined joined; } joined = { { FRAME_JOINED, sizeof joined.joined },
		{ 0, 0 } };
	struct { struct frame head; int64_t of[2][2]; } all = { { FRAME_ALL, sizeof all.of }, { { 0, 2 }, { 1, 2 } } };
	int fd = accept(b->listener, NULL, NULL);
	take(fd, &h, sizeof h);
	struct nonces nonces = nonces_of(&h, &c);
	mac_of_hub(b->id.secret, &nonces, c.mac);
	put(fd, &c, sizeof c);
	take(fd, &p, sizeof p);
	put(fd, WELCOME, WELCOME_BYTES);
	take(fd, &give, sizeof give);
	if (b->late) {
		put(fd, &joined, sizeof joined);
		put(fd, &all, sizeof all);
	}
	put(fd, &b->frame, sizeof b->frame);
	put(fd, b->body, b->frame.bytes < sizeof b->body ? b->frame.bytes : sizeof b->body);
	is_shut(fd);
	return NULL;
}

static void
bad_numbers(void)
{
	static const struct {
		const char *what;
		bool late;
		enum frame_kind kind;
		uint64_t calls;
		int32_t a, b;
	} rows[] = {
		{ "a hub at rank 5 of 2", false, FRAME_JOINED, 0, 5, 0 },
		{ "a hub at rank -5", false, FRAME_JOINED, 0, -5, 0 },
		{ "that all have come, twice", true, FRAME_JOINED, 0, 0, 0 },
		{ "that a rank has left before all have come", false, FRAME_LEFT, 1, 0, 0 },
		{ "that rank 268435456 has left", true, FRAME_LEFT, 5, 0x10000000, 1 },
		{ "that rank -1000000 has left", true, FRAME_LEFT, 5, -1000000, 1 },
		{ "that rank 2 of 2 has left", true, FRAME_LEFT, 5, 2, 1 },
		{ "that the rank itself has left", true, FRAME_LEFT, 5, 1, 1 },
		{ "a failure by rank 100000000", true, FRAME_FAILED, 0, blinkRemoteError, 100000000 },
		{ "a failure by rank 2 of 2", true, FRAME_FAILED, 0, blinkRemoteError, 2 },
		{ "a failure by rank -2", true, FRAME_FAILED, 0, blinkRemoteError, -2 },
		{ "a failure by rank 65536, before", false, FRAME_FAILED, 0, blinkRemoteError, RANKS_MAX },
		{ "a failure of code 0", true, FRAME_FAILED, 0, 0, 0 },
		{ "a failure of code 99", true, FRAME_FAILED, 0, 99, 0 },
		{ "a question before all have come", false, FRAME_ASK, 0, 0, 0 },
		{ "what all give, a MiB that nobody asked for", true, FRAME_ALL, 0, 0, 0 },
		{ "a frame of no known kind", true, (enum frame_kind)0x40000000, 0, 0, 0 },
	};
	static struct rank r;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct bad_hub b = { .late = rows[i].late, .frame.kind = rows[i].kind,
			.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t length = sizeof a;
		blinkUniqueId_t id = new_id();
		pthread_t thread;
		struct joined joined = { rows[i].a, rows[i].b };
		struct left left = { rows[i].calls, rows[i].a, (uint32_t)rows[i].b };
		struct failure failure = { rows[i].a, rows[i].b, "made up" };
		switch (rows[i].kind) {
		case FRAME_JOINED:
			memcpy(b.body, &joined, b.frame.bytes = sizeof joined);
			break;
		case FRAME_LEFT:
			memcpy(b.body, &left, b.frame.bytes = sizeof left);
			break;
		case FRAME_FAILED:
			memcpy(b.body, &failure, b.frame.bytes = sizeof failure);
			break;
		case FRAME_ALL:
			b.frame.bytes = 1 << 20;
			break;
		default:
			break;
		}
		if (bind(b.listener, (struct sockaddr *)&a, length) || listen(b.listener, 5)
		    || getsockname(b.listener, (struct sockaddr *)&a, &length))
			abort();
		memcpy(&b.id, &id, sizeof b.id);
		memcpy(b.id.address, &a, sizeof a);
		memcpy(&id, &b.id, sizeof id);
		pthread_create(&thread, NULL, bad_hub, &b);
		rank_init(&r, &id, 2, 1, 20000 * MS);
		int code = rank_join(&r);
		bool good = b.late ? code == blinkSuccess && hears(&r, 5000 * MS) && r.n_left == 0
		    : code == blinkRemoteError;
		const char *text = b.late ? r.text : r.err.text;
		ok(good && strstr(text, "Protocol error"), "a hub says %s: %s", rows[i].what, text);
		if (r.b)
			bootstrap_leave(r.b, 0);
		pthread_join(thread, NULL);
		close(b.listener);
	}
}

/* A rank that blames one that is not. */
static void
bad_blame(void)
{
	static const struct failure rows[] = { { blinkRemoteError, 2, "made up" }, { blinkRemoteError, -7, "made up" },
		{ blinkInProgress, 0, "made up" }, { -1, 0, "made up" } };
	static struct rank r[2];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		blinkUniqueId_t id = new_id();
		struct hello h = hello_of("blame");
		struct challenge c;
		struct frame head = { FRAME_FAIL, sizeof rows[i] };
		rank_init(&r[0], &id, 2, 0, 20000 * MS);
		ranks_start(r, 1);
		int fd = greet(&id, &h, &c);
		struct proof p = proof_of(&id, &h, &c, 2, 1, WIRE_VERSION);
		bool good = put(fd, &p, sizeof p) && put(fd, &head, sizeof head) && put(fd, &rows[i], sizeof rows[i]);
		ranks_end(r, 1);
		ok(good && r[0].result == blinkRemoteError && strstr(r[0].err.text, "rank 1")
		    && strstr(r[0].err.text, "Protocol error"), "failure %d by rank %d of 2: %s", rows[i].code,
		    rows[i].culprit, r[0].err.text);
		close(fd);
	}
}

int
main(void)
{
	struct rlimit files;
	alarm(300);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &files);
	hmacs();
	handshakes();
	replay();
	versions();
	bad_frames();
	if (files.rlim_cur >= 2 * MANY)
		many();
	else
		printf("skip %d strangers: ulimit -n is %d\n", MANY, (int)files.rlim_cur);
	during_join();
	false_hubs();
	bad_numbers();
	bad_blame();
	printf("1..%d\n", n_tests);
	return n_bad != 0;
}
