/* What inputs of fuzz_frames are: a byte that says who is tested, one with its circumstances, and steps: a byte for
 * what is done, and the numbers that it needs. Whatever is missing at the end is 0. Lines: what the player says over a
 * socket, whole or in pieces. */
#ifndef BLINK_FUZZ_FRAMES_PROGRAM_H
#define BLINK_FUZZ_FRAMES_PROGRAM_H

enum { SMALL_LEAST = 32, RAW_LEAST = 192, STEPS_MOST = 400 };

static struct {
	const uint8_t *at, *end;
	int n, rank;			/* ranks of the job; the one that is tested */
	bool said_all;			/* the player has answered an exchange */
} program;

static unsigned
next_byte(void)
{
	return program.at < program.end ? *program.at++ : 0;
}

/* One byte for most: a number that is odd somewhere, or a small one; else the bytes of a number follow. */
static uint64_t
next_number(void)
{
	const int64_t n = program.n, odd[SMALL_LEAST] = { -1, n, n + 1, n - 1, -2, INT32_MAX, INT32_MIN, UINT32_MAX,
		INT64_MAX, INT64_MIN, INT64_C(1) << 32, 65535, 65536, 65537, 4095, 4096, 4097, 1 << 14, 1 << 18,
		1 << 20, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, 1 << 25, (2 << 24) + 1, 1 << 28, 1 << 30,
		INT64_C(1) << 31, (INT64_C(1) << 31) + 1, (INT64_C(3) << 30), INT64_C(1) << 40, -1000000 };
	unsigned b = next_byte();
	uint64_t raw = 0;
	if (b < SMALL_LEAST)
		return (uint64_t)odd[b];
	if (b < RAW_LEAST)
		return b - SMALL_LEAST;
	for (unsigned i = 0; i <= (b & 7); i++)
		raw |= (uint64_t)next_byte() << 8 * i;
	return raw;
}

static int64_t
next_time(void)
{
	static const int ms[] = { 1, 10, 60, 110, 300, 600, 1100, 5000 };
	return ms[next_byte() % 8] * INT64_C(1000000);
}

/* What errors may be, and what they say. */
static void
judge(int code, const char *text)
{
	REQUIRE(code >= blinkSuccess && code < blinkInProgress, "code %d: %s", code, text);
	REQUIRE(utf8_valid(text, strlen(text)) == strlen(text), "%s", text);
	for (const char *c = text; *c; c++)
		REQUIRE((unsigned char)*c >= ' ' && *c != 127, "%s", text);
	outcome = hash_bytes(outcome, &code, sizeof code);
	for (const char *c = text; *c; c++)
		if (!isdigit((unsigned char)*c) && *c != '-')
			outcome = hash_bytes(outcome, c, 1);
}

/* ---- lines ---- */

struct line {
	int fd;				/* -1: closed */
	unsigned piece;			/* bytes at a time; 0: all */
};

static void
line_close(struct line *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

/* What finds no room does not go out. */
static void
say(struct line *l, const void *what, size_t bytes)
{
	const char *at = what;
	while (bytes > 0 && l->fd >= 0) {
		size_t n = l->piece && l->piece < bytes ? l->piece : bytes;
		ssize_t sent = send(l->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0)
			break;
		at += sent;
		bytes -= (size_t)sent;
		if (l->piece)
			world_settle();
	}
}

/* That many bytes that the other end has said; false: they are not there. */
static bool
heard(struct line *l, void *out, size_t bytes)
{
	return l->fd >= 0 && recv(l->fd, out, bytes, MSG_DONTWAIT) == (ssize_t)bytes;
}

static struct line
line_to(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct line l = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
	REQUIRE(l.fd >= 0, "no socket");
	if (connect(l.fd, (struct sockaddr *)&a, sizeof a))
		line_close(&l);
	return l;
}

/* A listener, and where. */
static int
listen_at(unsigned char address[28])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&a, size) == 0 && listen(fd, 64) == 0, "no listener");
	getsockname(fd, (struct sockaddr *)&a, &size);
	memset(address, 0, 28);
	memcpy(address, &a, sizeof a);
	return fd;
}

/* A frame of the bootstrap: whatever its head says, `there` bytes follow. */
static void
say_frame(struct line *l, uint32_t kind, uint32_t bytes, const void *body, size_t there)
{
	struct { struct frame head; char body[16 << 10]; } all = { .head = { kind, bytes } };
	program.said_all = program.said_all || kind == FRAME_ALL;
	if (there > sizeof all.body)
		there = sizeof all.body;
	if (there)
		memcpy(all.body, body, there);
	say(l, &all, sizeof all.head + there);
}

/* Of any kind and length, and as much of it as the next number says. */
static void
say_any_frame(struct line *l)
{
	static char body[16 << 10];
	uint32_t kind = (uint32_t)next_number(), bytes = (uint32_t)next_number();
	size_t there = next_number() % sizeof body;
	memset(body, (int)next_byte(), there);
	say_frame(l, kind, bytes, body, there < bytes ? there : bytes);
}

static struct failure
next_failure(void)
{
	struct failure f = { .code = (int32_t)next_number(), .culprit = (int32_t)next_number() };
	unsigned fill = next_byte();
	memset(f.text, (int)fill, fill % 2 ? sizeof f.text : 8);
	return f;
}

#endif
