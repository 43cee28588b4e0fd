/* A rank is tested: the player is its hub, which has the secret. */
#ifndef BLINK_FUZZ_FRAMES_RANK_H
#define BLINK_FUZZ_FRAMES_RANK_H

enum { GIVE_MOST = 16 << 10 };

static struct {
	struct id id;
	int listener;
	struct line line;
	size_t got;			/* of what the rank says: of handshake, then of frames */
	char said[sizeof(struct frame) + EXCHANGE_MAX];
	bool proved, met;		/* met: the rank is through the handshake */
	struct hello hello;
	struct challenge challenge;
	uint32_t gave;			/* bytes of its last contribution */
	int n_gave;			/* contributions without an answer */
	char give[GIVE_MOST];
	int exchanges;
} hub;

static void
hub_open(void)
{
	memset(&hub, 0, sizeof hub);
	hub.line.fd = -1;
	memcpy(hub.id.magic, ID_MAGIC, sizeof hub.id.magic);
	memcpy(hub.id.secret, "the secret of the job", 22);
	strcpy(hub.id.interface, "lo");
	hub.listener = listen_at(hub.id.address);
}

static void
hub_shut(void)
{
	line_close(&hub.line);
	if (hub.listener >= 0)
		close(hub.listener);
	hub.listener = -1;
}

/* The next part of the handshake, where it is there; true: it was. */
static bool
hub_greet(void)
{
	struct nonces n;
	if (!hub.hello.magic[0] && heard(&hub.line, &hub.hello, sizeof hub.hello)) {
		memcpy(n.rank, hub.hello.nonce, NONCE_BYTES);
		memcpy(hub.challenge.nonce, "hub", 3);
		memcpy(n.hub, hub.challenge.nonce, NONCE_BYTES);
		mac_of_hub(hub.id.secret, &n, hub.challenge.mac);
		say(&hub.line, &hub.challenge, sizeof hub.challenge);
		return true;
	}
	struct proof p;
	if (hub.hello.magic[0] && !hub.met && heard(&hub.line, &p, sizeof p)) {
		hub.met = true;
		say(&hub.line, WELCOME, WELCOME_BYTES);
		return true;
	}
	return false;
}

/* Whole frames of the rank: of its contributions the last is kept. */
static void
hub_hears(void)
{
	struct frame f;
	size_t room = sizeof hub.said - hub.got;
	ssize_t n = hub.line.fd < 0 ? 0 : recv(hub.line.fd, hub.said + hub.got, room, MSG_DONTWAIT);
	hub.got += n > 0 ? (size_t)n : 0;
	while (hub.got >= sizeof f) {
		memcpy(&f, hub.said, sizeof f);
		REQUIRE(f.kind < FRAME_FIRST_OF_HUB && f.bytes <= EXCHANGE_MAX, "a rank says %u, %u", f.kind, f.bytes);
		if (hub.got < sizeof f + f.bytes)
			return;
		if (f.kind == FRAME_GIVE) {
			hub.gave = f.bytes;
			hub.n_gave++;
			memcpy(hub.give, hub.said + sizeof f, f.bytes < GIVE_MOST ? f.bytes : GIVE_MOST);
		}
		hub.got -= sizeof f + f.bytes;
		memmove(hub.said, hub.said + sizeof f + f.bytes, hub.got);
	}
}

static void
hub_serve(void)
{
	world_settle();
	if (hub.listener >= 0 && hub.line.fd < 0 && !hub.met)
		hub.line.fd = accept4(hub.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (hub.line.fd >= 0 && !hub.met && hub_greet())
		world_settle();
	if (hub.met)
		hub_hears();
}

/* What all give: each as the rank itself, but for what `change` does. Some bytes of them may be others. */
static void
say_all(void (*change)(char *of_rank, int rank), unsigned patches)
{
	static char all[GIVE_MOST];
	size_t n = (size_t)program.n, bytes = hub.gave;
	if (n * bytes > sizeof all)
		bytes = sizeof all / n;
	for (int r = 0; r < program.n; r++) {
		memcpy(all + (size_t)r * bytes, hub.give, bytes);
		if (change && r != program.rank)
			change(all + (size_t)r * bytes, r);
	}
	for (unsigned i = 0; i < patches && bytes; i++) {
		uint64_t at = next_number() % (n * bytes), value = next_number();
		memcpy(all + at, &value, at + 8 <= n * bytes && next_byte() % 2 ? 8 : 1);
	}
	say_frame(&hub.line, FRAME_ALL, (uint32_t)(n * bytes), all, n * bytes);
	hub.n_gave = 0;
	hub.exchanges++;
}

/* False: the step is none of a hub's. */
static bool
say_as_hub(unsigned what, void (*change)(char *of_rank, int rank))
{
	switch (what) {
	case 0:
	case 1:
		if (hub.exchanges == 0)
			say_frame(&hub.line, FRAME_JOINED, 8, &(struct joined){ 0, 0 }, 8);
		say_all(change, 0);
		break;
	case 2:
		say_all(change, 1 + next_byte() % 4);
		break;
	case 3: {
		struct joined j = { .hub_rank = (int32_t)next_number() };
		say_frame(&hub.line, FRAME_JOINED, sizeof j, &j, sizeof j);
		break;
	}
	case 4: {
		struct failure f = next_failure();
		say_frame(&hub.line, FRAME_FAILED, sizeof f, &f, sizeof f);
		break;
	}
	case 5: {
		struct left l = { .calls = next_number(), .rank = (int32_t)next_number(),
			.hub_may_end = next_byte() % 2 };
		say_frame(&hub.line, FRAME_LEFT, sizeof l, &l, sizeof l);
		break;
	}
	case 6:
		say_frame(&hub.line, FRAME_ASK, 0, NULL, 0);
		break;
	case 7:
		say_any_frame(&hub.line);
		break;
	case 8:
		hub.line.piece = next_byte();
		break;
	case 9:
		line_close(&hub.line);
		break;
	case 10:
		world_pass(next_time());
		break;
	default:
		return false;
	}
	hub_serve();
	return true;
}

/* ---- the bootstrap alone ---- */

static struct {
	struct bootstrap *b;
	bool joins, ends;
	int go;				/* exchanges that the player wants */
	uint32_t bytes;
	int n_failed;
	char all[GIVE_MOST];
} member;

static void
on_failed(void *context, int code, int culprit, const char *text)
{
	(void)context;
	REQUIRE(code > blinkSuccess, "%s", text);
	judge(code, text);
	REQUIRE(culprit >= -1 && culprit < program.n, "rank %d: %s", culprit, text);
	REQUIRE(member.n_failed++ == 0, "a second failure: %s", text);
}

static void
on_left(void *context, int rank, uint64_t calls)
{
	(void)context, (void)calls;
	REQUIRE(rank >= 0 && rank < program.n && rank != program.rank, "rank %d", rank);
	REQUIRE(program.said_all, "rank %d has left a job that has not begun", rank);
	outcome = hash_bytes(outcome, &rank, 1);
}

static void
on_ask(void *context, struct rank_status *out)
{
	(void)context;
	REQUIRE(program.said_all, "asked before the job has begun");
	out->calls = 1;
}

static bool
is_wanted(void *of)
{
	(void)of;
	return member.go > 0 || member.ends;
}

static void *
be_member(void *of)
{
	const struct bootstrap_events events = { NULL, on_failed, on_left, on_ask };
	const int64_t patience = 2000 * INT64_C(1000000);
	struct blink_error err = { 0 };
	static const char mine[4096];
	blinkUniqueId_t id;
	(void)of;
	memcpy(&id, &hub.id, sizeof id);
	int code = bootstrap_join(&id, NULL, program.n, program.rank, mine, member.bytes, member.all,
	    now_ns() + patience, &events, &member.b, &err);
	judge(code, err.text);
	member.joins = false;
	while (code == blinkSuccess && fiber_waits(is_wanted, NULL, INT64_MAX) && !member.ends) {
		member.go--;
		code = bootstrap_allgather(member.b, mine, member.bytes, member.all, now_ns() + patience, &err);
		judge(code, err.text);
		n_accepted += code == blinkSuccess;
	}
	struct bootstrap *b = member.b;
	member.b = NULL;
	bootstrap_leave(b, 3);
	return NULL;
}

static void *
fail_member(void *of)
{
	(void)of;
	bootstrap_fail(member.b, blinkRemoteError, program.rank, "made up");
	return NULL;
}

static void
rank_step(void)
{
	unsigned what = next_byte() % 16;
	if (say_as_hub(what, NULL))
		return;
	if (what == 11 || what == 12)
		member.go += !member.joins;
	else if (what == 13 && member.b)
		bootstrap_stuck(member.b, world.now + next_time(), next_time());
	else if (what == 14 && member.b)
		bootstrap_progress(member.b);
	else if (what == 15 && member.b)
		fiber_start(fail_member, NULL, true);
	hub_serve();
}

static void
test_rank(unsigned how)
{
	memset(&member, 0, sizeof member);
	member.joins = true;
	member.bytes = how & 128 ? 0 : 24;
	hub_open();
	fiber_start(be_member, NULL, true);
	hub_serve();
	for (int i = 0; i < STEPS_MOST && program.at < program.end; i++)
		rank_step();
	member.ends = true;
	hub_serve();
	hub_shut();
	world_end(60 * INT64_C(1000000000));
}

#endif
