/* One of two ranks of a net (transport/net.h), each a process, perhaps on servers of their own: net_pair RANK ADDRESS
 * FOLDER MODE [MESSAGES [BYTES]]. They tell each other their addresses by files in the folder. BLINK_NET: the kind;
 * `net_pair kinds` prints which there are, "tcp", and why one cannot be used, "ucx: not installed".
 *
 *	check		messages of many sizes go both ways, and are compared
 *	latency		8 bytes go to and fro between the threads of both nets; prints us for one way
 *	rate		rank 0 sends, a few messages at a time; rank 1 prints GB/s
 *	cut		as rate, until the other is broken; prints ms since `touch FOLDER/cut`, and the reason
 *
 * Exits 0 if all is as it should be. */
#include "support/settings.h"
#include "transport/net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LANES = 4, AHEAD = 2 * LANES, MS = 1000000, LIMIT_S = 120, PATIENCE_MS = 3000 };

static const struct net_kind *kind;
static void *net;
static int rank;
static const char *folder;
static char *memory[AHEAD];	/* received messages lie here by turns */
static uint64_t most = 8;
static atomic_ullong arrived_messages, done_flag[LANES];
static uint64_t echoes;		/* so many are answered at once */
static atomic_bool gone;
static bool compare;
static atomic_int wrong;
static char reason[512];

static int64_t
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void
nap(int us)
{
	nanosleep(&(struct timespec){ 0, us * 1000L }, NULL);
}

static void
die(const char *what)
{
	fprintf(stderr, "net_pair %d: %s\n", rank, what);
	exit(1);
}

/* ---- events: flag f is the f-th message ---- */

static char
byte_of(uint64_t flag, uint64_t i)
{
	return (char)(flag * 31 + i * 7 + i / 251);
}

static void *
place(void *context, int from, const struct net_message *m)
{
	(void)context, (void)from;
	return m->bytes <= most ? memory[m->flag % AHEAD] : NET_REFUSED;
}

static void
arrived(void *context, int from, const struct net_message *m)
{
	(void)context;
	if (m->lane & NET_DONE) {
		atomic_store(&done_flag[m->lane % LANES], m->flag);
		return;
	}
	if (atomic_fetch_add(&arrived_messages, 1) + 1 <= echoes) {
		struct net_message back = { .flag = m->flag + 1, .bytes = m->bytes };
		kind->send(net, from, &back, memory[0]);
		return;
	}
	for (uint64_t i = 0; compare && i < m->bytes; i++)
		if (memory[m->flag % AHEAD][i] != byte_of(m->flag, i)) {
			atomic_fetch_add(&wrong, 1);
			break;
		}
	struct net_message done = { .lane = m->lane | NET_DONE, .flag = m->flag };
	kind->send(net, from, &done, NULL);
}

static void
broken(void *context, int peer, const char *why)
{
	(void)context, (void)peer;
	snprintf(reason, sizeof reason, "%s", why);
	atomic_store(&gone, true);
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

/* ---- meet ---- */

static void
path_of(char *out, size_t size, const char *name, int of)
{
	snprintf(out, size, "%s/%s%d", folder, name, of);
}

static void
tell(const char *name, const void *text, size_t bytes)
{
	char path[512], new[512];
	path_of(path, sizeof path, name, rank);
	path_of(new, sizeof new, "new", rank);
	int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, text, bytes) != (ssize_t)bytes || close(fd) != 0 || rename(new, path) != 0)
		die("cannot write to the folder");
}

static void
hear(const char *name, void *text, size_t bytes)
{
	char path[512];
	int fd;
	path_of(path, sizeof path, name, 1 - rank);
	while ((fd = open(path, O_RDONLY)) < 0)
		nap(1000);
	if (read(fd, text, bytes) != (ssize_t)bytes)
		die("cannot read from the folder");
	close(fd);
}

static void
meet(const char *address)
{
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct net_events events = { NULL, place, arrived, broken, NULL };
	struct net_keys keys = { .sign = sign, .patience = (int64_t)PATIENCE_MS * MS };
	struct settings settings;
	struct blink_error err = { 0 };
	char all[2][NET_ADDRESS];
	if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
		memcpy(keys.address, &four, sizeof four);
	else if (inet_pton(AF_INET6, address, &six.sin6_addr) == 1)
		memcpy(keys.address, &six, sizeof six);
	else
		die("bad address");
	if (settings_read(&settings, &err) != blinkSuccess)
		die(err.text);
	keys.zero_copy = settings.zero_copy;
	if (kind->open(rank, 2, &events, &keys, all[rank], &net, &err) != blinkSuccess)
		die(err.text);
	tell("address", all[rank], NET_ADDRESS);
	hear("address", all[1 - rank], NET_ADDRESS);
	if (kind->connect(net, all, &err) != blinkSuccess)
		die(err.text);
}

/* Both have come here. */
static void
barrier(const char *name)
{
	char byte = 0;
	tell(name, &byte, 1);
	hear(name, &byte, 1);
}

/* ---- modes ---- */

static void
await(atomic_ullong *what, uint64_t n)
{
	while (atomic_load(what) < n && !atomic_load(&gone))
		nap(50);
}

static void
send_message(uint64_t flag, uint64_t bytes, char *payload)
{
	struct net_message m = { .lane = (uint32_t)(flag % LANES), .flag = flag, .bytes = bytes };
	for (uint64_t i = 0; compare && i < bytes; i++)
		payload[i] = byte_of(flag, i);
	kind->send(net, 1 - rank, &m, payload);
}

/* So many are under way at a time that neither their memory nor their place is used twice. */
static void
stream(uint64_t n, char *payload[LANES], uint64_t (*size)(uint64_t))
{
	for (uint64_t f = 1; f <= n && !atomic_load(&gone); f++) {
		if (f > LANES)
			await(&done_flag[f % LANES], f - LANES);
		send_message(f, size(f), payload[f % LANES]);
	}
	for (uint64_t f = n > LANES ? n - LANES + 1 : 1; f <= n && !atomic_load(&gone); f++)
		await(&done_flag[f % LANES], f);
}

static uint64_t all_bytes(uint64_t flag) { (void)flag; return most; }
static uint64_t many_sizes(uint64_t flag) { return flag % 3 == 0 ? flag % 100 : flag * 7919 * flag % (most + 1); }

static void
mode_check(uint64_t n, char *payload[])
{
	compare = true;
	stream(n, payload, many_sizes);
	await(&arrived_messages, n);
	if (atomic_load(&wrong) || atomic_load(&arrived_messages) != n)
		die("messages are lost or wrong");
}

static void
mode_latency(uint64_t n, char *payload[])
{
	echoes = n;
	barrier("ready");
	int64_t begun = now();
	if (rank == 0)
		send_message(1, 8, payload[0]);
	await(&arrived_messages, n);
	if (rank == 0)
		printf("%.2f us\n", (double)(now() - begun) / 1000 / 2 / (double)n);
}

static void
mode_rate(uint64_t n, char *payload[])
{
	barrier("ready");
	int64_t begun = now();
	if (rank == 0) {
		stream(n, payload, all_bytes);
		return;
	}
	await(&arrived_messages, n);
	printf("%.3f GB/s\n", (double)n * (double)most / (double)(now() - begun));
}

/* The time of the cut is that of a file, which both see. */
static void
mode_cut(uint64_t n, char *payload[])
{
	(void)n;
	char path[512];
	struct stat file;
	if (rank == 0)
		stream(UINT64_MAX, payload, all_bytes);
	await(&arrived_messages, 2 * LANES);
	tell("flows", "", 0);
	while (!atomic_load(&gone))
		nap(1000);
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	snprintf(path, sizeof path, "%s/cut", folder);
	if (stat(path, &file) != 0)
		die(reason);
	printf("%lld ms: %s\n", (long long)(t.tv_sec - file.st_mtim.tv_sec) * 1000
	    + (t.tv_nsec - file.st_mtim.tv_nsec) / MS, reason);
}

static int
print_kinds(void)
{
	char why[256];
	for (int i = 0; net_kinds[i]; i++) {
		bool good = net_kinds[i]->available(why);
		printf("%s%s%s\n", net_kinds[i]->name, good ? "" : ": ", good ? "" : why);
	}
	return 0;
}

static void
choose_kind(void)
{
	const char *name = getenv("BLINK_NET");
	char why[256];
	int i = 0;
	while (net_kinds[i] && strcmp(net_kinds[i]->name, name ? name : "tcp") != 0)
		i++;
	kind = net_kinds[i];
	if (!kind)
		die("no such network");
	if (!kind->available(why))
		die(why);
}

static void
run(const char *mode, uint64_t n, char *payload[])
{
	static const struct {
		const char *name;
		void (*run)(uint64_t, char *[]);
	} modes[] = { { "check", mode_check }, { "latency", mode_latency }, { "rate", mode_rate },
		{ "cut", mode_cut } };
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (strcmp(mode, modes[i].name) == 0) {
			modes[i].run(n, payload);
			return;
		}
	die("no such mode");
}

int
main(int argc, char **argv)
{
	char *payload[LANES];
	if (argc == 2 && strcmp(argv[1], "kinds") == 0)
		return print_kinds();
	if (argc < 5)
		die("want RANK ADDRESS FOLDER MODE [MESSAGES [BYTES]]");
	const char *mode = argv[4];
	uint64_t n = argc > 5 ? strtoull(argv[5], NULL, 10) : 100;
	most = argc > 6 ? strtoull(argv[6], NULL, 10) : 1 << 20;
	rank = atoi(argv[1]) == 1;
	folder = argv[3];
	choose_kind();
	alarm(LIMIT_S);
	for (int i = 0; i < AHEAD; i++)
		memory[i] = calloc(1, most);
	for (int i = 0; i < LANES; i++)
		payload[i] = calloc(1, most);
	meet(argv[2]);
	run(mode, n, payload);
	if (atomic_load(&gone) && strcmp(mode, "cut") != 0)
		die(reason);
	if (!atomic_load(&gone))
		barrier("done");
	kind->close(net, now() + INT64_C(2000000000));
	for (int i = 0; i < AHEAD; i++)
		free(memory[i]);
	for (int i = 0; i < LANES; i++)
		free(payload[i]);
	return 0;
}
