/* A whole communicator is tested, from blinkCommInitRank to blinkCommDestroy: the player is its hub and the other
 * ranks, on other servers. These connect to its data port and take its connections, with the secret; what they say
 * there are parts of messages with any numbers, and echoes of what it sends, which let its calls go on. */
#ifndef BLINK_FUZZ_FRAMES_COMM_H
#define BLINK_FUZZ_FRAMES_COMM_H

enum { LINES = 8, PAYLOAD = 300 << 10, FLOATS = 1 << 16, ORDERS = 64 };

/* What ranks tell each other second (comm/init.c): a place to meet, and addresses of memory and of the net. */
struct told {
	blinkUniqueId_t place;
	unsigned char shm[SHM_ADDRESS];
	char kind[4];
	unsigned char net[NET_ADDRESS - 4];
};

enum hearing { HEARS_NOTHING, HEARS_HELLO, HEARS_PROOF, HEARS_FRAMES };

/* A data connection, of either direction. */
struct data {
	struct line line;
	enum hearing hears;		/* of one that the rank has opened */
	struct tcp_hello theirs;
	size_t got;			/* of a head */
	struct tcp_frame head;
	uint64_t skip;			/* bytes of a part */
	size_t owed;			/* bytes of a part that the player has held back */
};

static struct {
	int listener;
	unsigned char address[28], rank[28];	/* the player's, and that of the rank that is tested */
	struct data data[LINES];
	int at;
	struct tcp_frame last;		/* that the rank has sent */
	uint32_t order[ORDERS];
	bool busy, ends;
	unsigned call;			/* what the caller is to do; 0: nothing */
	float send[FLOATS], recv[FLOATS];
} job;

static const char payload[PAYLOAD];

static void
sign_job(void *context, const void *text, size_t bytes, unsigned char out[32])
{
	(void)context;
	mac_of_text(hub.id.secret, text, bytes, out);
}

static const struct tcp key = { .keys = { .sign = sign_job } };

/* ---- the other ranks, as they meet ---- */

static void
be_another(char *of_rank, int rank)
{
	struct told told;
	if (hub.exchanges == 0 && hub.gave > 32)
		of_rank[0] ^= (char)(1 + rank);		/* its host */
	if (hub.exchanges != 1 || hub.gave != sizeof told)
		return;
	memcpy(&told, of_rank, sizeof told);
	memcpy(job.rank, told.net, sizeof job.rank);
	memcpy(told.net, job.address, sizeof job.address);
	memcpy(of_rank, &told, sizeof told);
}

/* ---- connections ---- */

static struct data *
free_data(void)
{
	for (int i = 0; i < LINES; i++)
		if (job.data[i].line.fd < 0)
			return &job.data[i];
	line_close(&job.data[0].line);
	return &job.data[0];
}

static void
hear_data(struct data *d)
{
	unsigned char answer[sizeof(struct tcp_hello) + TCP_PROOF], proof[TCP_PROOF];
	struct tcp_hello ours;
	ssize_t n;
	if (d->hears == HEARS_HELLO && heard(&d->line, &d->theirs, sizeof d->theirs)) {
		tcp_hello(&ours, (int)d->theirs.to, (int)d->theirs.from, d->theirs.way);
		memcpy(answer, &ours, sizeof ours);
		tcp_prove(&key, tcp_accepts, &d->theirs, &ours, answer + sizeof ours);
		say(&d->line, answer, sizeof answer);
		d->hears = HEARS_PROOF;
		world.moved = true;
	} else if (d->hears == HEARS_PROOF && heard(&d->line, proof, sizeof proof)) {
		say(&d->line, "k", 1);
		d->hears = HEARS_FRAMES;
		world.moved = true;
	}
	static char room[64 << 10];
	while (d->line.fd >= 0 && d->hears == HEARS_FRAMES) {
		void *to = d->skip ? room : (char *)&d->head + d->got;
		size_t want = d->skip ? d->skip < sizeof room ? d->skip : sizeof room : sizeof d->head - d->got;
		if ((n = recv(d->line.fd, to, want, MSG_DONTWAIT)) <= 0)
			break;
		if (d->skip)
			d->skip -= (uint64_t)n;
		else if ((d->got += (size_t)n) == sizeof d->head) {
			d->got = 0;
			d->skip = d->head.bytes;
			job.last = d->head;
		}
	}
}

static void
job_serve(void)
{
	hub_serve();
	for (int i = 0; i < LINES; i++) {
		int fd = accept4(job.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			break;
		*free_data() = (struct data){ .line = { .fd = fd }, .hears = HEARS_HELLO };
		world_settle();
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < LINES; i++)
			hear_data(&job.data[i]);
		world_settle();
	}
	hub_serve();
}

static void
connect_data(void)
{
	struct data *d = free_data();
	struct tcp_hello ours, theirs;
	unsigned char answer[sizeof theirs + TCP_PROOF], proof[TCP_PROOF];
	int from = (program.rank + 1 + (int)(next_byte() % (unsigned)(program.n - 1))) % program.n;
	uint32_t way = next_byte() % 6;
	*d = (struct data){ .line = job.rank[0] ? line_to(address_port(job.rank)) : (struct line){ .fd = -1 } };
	job.at = (int)(d - job.data);
	tcp_hello(&ours, from, program.rank, way);
	say(&d->line, &ours, sizeof ours);
	world_settle();
	if (!heard(&d->line, answer, sizeof answer))
		return;
	memcpy(&theirs, answer, sizeof theirs);
	tcp_prove(&key, tcp_connects, &ours, &theirs, proof);
	say(&d->line, proof, sizeof proof);
	world_settle();
	heard(&d->line, proof, 1);
}

/* ---- messages ---- */

static uint32_t
next_order(uint32_t lane)
{
	return job.order[(lane ^ lane >> 26) % ORDERS]++;
}

/* half: the other one comes later, or never. */
static void
say_part(const struct tcp_frame *f, bool half)
{
	struct data *d = &job.data[job.at];
	size_t bytes = f->bytes < PAYLOAD ? f->bytes : PAYLOAD;
	d->owed = half ? bytes / 2 : 0;
	say(&d->line, f, sizeof *f);
	say(&d->line, payload, bytes - d->owed);
}

static uint32_t
next_lane(void)
{
	unsigned b = next_byte();
	static const uint32_t of[] = { 0, NET_CHANNEL, NET_DONE, NET_CHANNEL | NET_DONE };
	return b < 240 ? of[b % 4] | (b & 4 && b % 4 != 1 ? b / 4 % 4 : 0) : (uint32_t)next_number();
}

static void
any_part(bool half)
{
	unsigned usual = next_byte();
	struct tcp_frame f = { .kind = FRAME_PART, .m = { .lane = next_lane(), .signature = job.last.m.signature } };
	f.m.flag = usual & 1 ? (uint64_t)(next_byte() % 8) << 24 | next_byte() % 8 : next_number();
	f.bytes = f.m.bytes = next_number();
	f.order = usual & 2 ? (uint32_t)next_number() : next_order(f.m.lane);
	if (usual & 4)
		f.offset = next_number();
	if (usual & 8)
		f.bytes = next_number();
	if ((usual & 0x70) == 0x70)
		f.kind = (uint32_t)next_number();
	if (usual & 0x80)
		f.m.place = (uint32_t)next_number();
	say_part(&f, half);
}

/* As the rank itself has sent: both do the same in many calls. */
static void
echo(void)
{
	struct tcp_frame f = job.last;
	f.order = next_order(f.m.lane);
	f.offset = 0;
	f.bytes = f.m.bytes;
	if (f.kind == FRAME_PART && f.m.bytes <= PAYLOAD)
		say_part(&f, false);
}

static void
echo_done(void)
{
	struct tcp_frame f = { .kind = FRAME_PART,
		.m = { .lane = job.last.m.lane | NET_DONE, .flag = job.last.m.flag } };
	f.order = next_order(f.m.lane);
	say_part(&f, false);
}

/* ---- the calls ---- */

static int
make_call(blinkComm_t comm, unsigned call)
{
	static const size_t counts[] = { 1, 16, 1000, 5000, 20000, FLOATS / 4 };
	size_t count = counts[call / 16 % 6];
	int peer = (program.rank + 1) % program.n;
	switch (call % 16) {
	case 1:
	case 2:
		return blinkAllReduce(job.send, job.recv, count, blinkFloat32, blinkSum, comm, NULL);
	case 3:
		return blinkBroadcast(job.send, job.recv, count, blinkFloat32, peer, comm, NULL);
	case 4:
		return blinkAllGather(job.send, job.recv, count, blinkFloat32, comm, NULL);
	case 5:
		return blinkSend(job.send, count, blinkFloat32, peer, comm, NULL);
	case 6:
		return blinkRecv(job.recv, count, blinkFloat32, peer, comm, NULL);
	case 7:
		return blinkCommAbort(comm);
	case 8:
		return blinkReduceScatter(job.send, job.recv, count, blinkFloat32, blinkSum, comm, NULL);
	default:
		return blinkCommWait(comm, 0);
	}
}

static bool
is_called(void *of)
{
	(void)of;
	return job.call || job.ends;
}

static void *
be_caller(void *of)
{
	const blinkConfig_t config = { .timeoutMs = 2000 };
	blinkComm_t comm = NULL;
	blinkError_t error = { 0 };
	blinkUniqueId_t id;
	(void)of;
	memcpy(&id, &hub.id, sizeof id);
	int code = blinkCommInitRank(&comm, program.n, &id, program.rank, &config, &error);
	judge(code, code == blinkSuccess ? "" : error.text);
	while (code == blinkSuccess && fiber_waits(is_called, NULL, INT64_MAX) && !job.ends) {
		job.busy = true;
		int got = make_call(comm, job.call);
		judge(got, got == blinkSuccess ? "" : blinkCommGetError(comm));
		n_accepted += got == blinkSuccess;
		job.call = 0;
		job.busy = false;
	}
	blinkCommDestroy(comm);
	return NULL;
}

static void
comm_step(void)
{
	unsigned what = next_byte() % 24;
	struct data *d = &job.data[job.at];
	struct line *l = &d->line;
	char byte;
	if (say_as_hub(what, be_another))
		return;
	switch (what) {
	case 11:
	case 12:
		byte = (char)next_byte();
		if (!job.busy)
			job.call = (unsigned char)byte;
		break;
	case 13:
		connect_data();
		break;
	case 14:
	case 15:
		any_part(what == 15);
		break;
	case 16:
		echo();
		break;
	case 17:
		echo_done();
		break;
	case 18:
		say(l, &(struct tcp_frame){ .kind = FRAME_BYE }, sizeof(struct tcp_frame));
		break;
	case 19:
		byte = "kwgb"[next_byte() % 4];
		say(l, &byte, 1);
		break;
	case 20:
		job.at = (int)(next_byte() % LINES);
		break;
	case 21:
		l->piece = next_byte();
		break;
	case 22:
		line_close(l);
		break;
	default:
		say(l, payload, d->owed);
		d->owed = 0;
	}
}

static void
test_comm(void)
{
	memset(&job, 0, offsetof(__typeof__(job), send));
	for (int i = 0; i < LINES; i++)
		job.data[i].line.fd = -1;
	hub_open();
	job.listener = listen_at(job.address);
	fiber_start(be_caller, NULL, true);
	job_serve();
	for (int i = 0; i < STEPS_MOST && program.at < program.end; i++) {
		comm_step();
		job_serve();
	}
	job.ends = true;
	job_serve();
	hub_shut();
	for (int i = 0; i < LINES; i++)
		line_close(&job.data[i].line);
	close(job.listener);
	world_end(120 * INT64_C(1000000000));
}

#endif
