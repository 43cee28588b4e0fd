/* The hub is tested: the player is its ranks, which have the secret. */
#ifndef BLINK_FUZZ_FRAMES_HUB_H
#define BLINK_FUZZ_FRAMES_HUB_H

enum { CALLERS = 6 };

struct caller {
	struct line line;
	uint32_t bytes;			/* that it said it would contribute */
	int n;				/* ranks that it believes in */
	bool joined, lost;		/* lost: the rest of a frame of the hub has not come */
};

static struct id hub_id;

/* Handshake, up to the word of the hub. */
static struct caller
call_hub(const struct proof *as)
{
	struct caller c = { .line = line_to(address_port(hub_id.address)), .bytes = as->bytes, .n = as->n };
	struct hello h = { .magic = "blinkhi1", .nonce = "caller" };
	struct challenge answer;
	struct nonces n = { { 0 }, { 0 } };
	struct proof p = *as;
	say(&c.line, &h, sizeof h);
	world_settle();
	if (!heard(&c.line, &answer, sizeof answer)) {
		line_close(&c.line);
		return c;
	}
	memcpy(n.rank, h.nonce, NONCE_BYTES);
	memcpy(n.hub, answer.nonce, NONCE_BYTES);
	mac_of_rank(hub_id.secret, &n, &p, p.mac);
	say(&c.line, &p, sizeof p);
	world_settle();
	return c;
}

static struct proof
any_proof(void)
{
	struct proof p = { .version = (uint32_t)next_number(), .process = next_byte() % 2 ? process_number() : 1,
		.n = (int32_t)next_number(), .rank = (int32_t)next_number(), .bytes = (uint32_t)next_number() };
	memset(p.library, (int)next_byte(), sizeof p.library);
	if (p.n > 4096 && p.n <= RANKS_MAX)		/* all are asked one after the other: that costs time alone */
		p.n = 4096;
	return p;
}

/* What the hub says: failures with numbers that a rank takes; the rest is of no use here. */
static void
drain(struct caller *c)
{
	struct frame head;
	struct failure f;
	char room[4096];
	while (!c->lost && heard(&c->line, &head, sizeof head)) {
		if (memcmp(&head, WELCOME, WELCOME_BYTES) == 0)
			continue;
		REQUIRE(head.kind >= FRAME_FIRST_OF_HUB && head.kind < FRAME_KINDS, "the hub says %u", head.kind);
		c->joined = c->joined || head.kind == FRAME_JOINED;
		if (head.kind == FRAME_FAILED) {
			c->lost = !heard(&c->line, &f, sizeof f);
			REQUIRE(c->lost || (f.code > blinkSuccess && f.code < blinkInProgress && f.culprit >= -1
				&& f.culprit < (c->joined ? c->n : RANKS_MAX)),
			    "the hub tells of failure %d, rank %d of %d", f.code, f.culprit, c->n);
			continue;
		}
		for (size_t n; head.bytes > 0 && !c->lost; head.bytes -= (uint32_t)n) {
			n = head.bytes < sizeof room ? head.bytes : sizeof room;
			c->lost = !heard(&c->line, room, n);
		}
	}
	while (c->line.fd >= 0 && recv(c->line.fd, room, sizeof room, MSG_DONTWAIT) > 0)
		c->lost = true;
}

static void
any_answer(struct line *l)
{
	struct answer a = { { .calls = next_number(), .signature = next_number(), .before = next_number(),
		.in_call = (uint32_t)next_number(), .awaits = (int32_t)next_number(),
		.shortage = (int32_t)next_number() } };
	unsigned fill = next_byte();
	memset(a.status.text, (int)fill, fill % 2 ? sizeof a.status.text : 8);
	say_frame(l, FRAME_ANSWER, sizeof a, &a, sizeof a);
}

static void
hub_step(struct caller *c, int *at)
{
	static const char nothing[16 << 10];
	struct line *l = &c[*at].line;
	struct proof p = { .version = WIRE_VERSION, .library = "fuzz", .process = 1, .n = program.n,
		.rank = *at % program.n, .bytes = 8 };
	struct failure f;
	uint64_t number;
	switch (next_byte() % 16) {
	case 0:
	case 1:
		line_close(l);
		c[*at] = call_hub(&p);
		break;
	case 2:
		p = any_proof();
		line_close(l);
		c[*at] = call_hub(&p);
		break;
	case 3:
		*at = (int)(next_byte() % CALLERS);
		break;
	case 4:
		say_frame(l, FRAME_GIVE, c[*at].bytes, nothing, c[*at].bytes);
		break;
	case 5:
		number = next_number() % 20000;
		say_frame(l, FRAME_GIVE, (uint32_t)number, nothing, number);
		break;
	case 6:
		say_frame(l, FRAME_LATE, 8, (number = next_number(), &number), 8);
		break;
	case 7:
		f = next_failure();
		say_frame(l, FRAME_FAIL, sizeof f, &f, sizeof f);
		break;
	case 8: {
		struct stuck s = { .left = (int64_t)next_number(), .patience = (int64_t)next_number() };
		say_frame(l, FRAME_STUCK, sizeof s, &s, sizeof s);
		break;
	}
	case 9:
		say_frame(l, FRAME_PROGRESS, 0, NULL, 0);
		break;
	case 10:
		any_answer(l);
		break;
	case 11:
		say_frame(l, FRAME_FAREWELL, 8, (number = next_number(), &number), 8);
		break;
	case 12:
		say_any_frame(l);
		break;
	case 13:
		l->piece = next_byte();
		break;
	case 14:
		line_close(l);
		break;
	default:
		world_pass(next_time());
	}
	world_settle();
	drain(&c[*at]);
}

/* One that never had a rank has one now, and loses it, so that its job fails. */
static void
end_hub(struct caller *c)
{
	struct proof p = { .version = WIRE_VERSION, .process = 1, .n = 2 };
	for (int i = 0; i < CALLERS; i++)
		line_close(&c[i].line);
	world_settle();
	if (world_rests())
		return;
	struct caller last = call_hub(&p);
	line_close(&last.line);
}

static void
test_hub(void)
{
	static const unsigned char address[ADDRESS_BYTES] = { AF_INET, 0, 0, 0, 127, 0, 0, 1 };
	struct caller c[CALLERS];
	struct blink_error err = { 0 };
	blinkUniqueId_t id;
	int at = 0;
	for (int i = 0; i < CALLERS; i++)
		c[i] = (struct caller){ .line.fd = -1 };
	REQUIRE(hub_start(address, "lo", NULL, &id, &err) == blinkSuccess, "%s", err.text);
	memcpy(&hub_id, &id, sizeof hub_id);
	for (int i = 0; i < STEPS_MOST && program.at < program.end; i++)
		hub_step(c, &at);
	end_hub(c);
	world_end(200 * INT64_C(1000000000));
	n_accepted++;
}

#endif
