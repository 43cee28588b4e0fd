/* The bootstrap (runtime/bootstrap/bootstrap.h) with ranks as threads. Prints TAP. */
#include "quick.h"
#include "ranks.h"
#include "bootstrap/verdict.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <netinet/in.h>

static int
leave(struct rank *r)
{
	bootstrap_leave(r->b, (uint64_t)r->number);
	return blinkSuccess;
}

static void
joins(int n_jobs)
{
	static struct rank r[RANKS];
	for (int n = 1; n <= RANKS; n++) {
		blinkUniqueId_t id = new_id();
		job(r, &id, n, 20000 * MS, leave);
		ok(all_are(r, n, blinkSuccess), "%d ranks join and leave", n);
	}
	int64_t begin = now_ns();
	bool good = true;
	for (int i = 0; i < n_jobs && good; i++) {
		blinkUniqueId_t id = new_id();
		job(r, &id, 4, 20000 * MS, leave);
		good = all_are(r, 4, blinkSuccess);
	}
	ok(good, "%d jobs of 4 ranks, one after the other", n_jobs);
	printf("# %.2f ms each\n", (double)(now_ns() - begin) / (n_jobs * 1e6));
}

/* Of each rank. */
static size_t n_exchanges = 100;

static int
exchange(struct rank *r)
{
	static const size_t sizes[] = { 4, 0, 128, 65536, 1 };
	unsigned char *mine = malloc(65536), *all = malloc((size_t)r->n * 65536);
	int code = mine && all ? blinkSuccess : blinkOutOfMemory;
	for (size_t s = 0; s < n_exchanges && code == blinkSuccess; s++) {
		size_t bytes = sizes[s % 5];
		memset(mine, r->number * 7 + (int)s, bytes);
		code = bootstrap_allgather(r->b, mine, bytes, all, now_ns() + 20000 * MS, &r->err);
		for (size_t i = 0; code == blinkSuccess && i < bytes * (size_t)r->n; i++)
			if (all[i] != (unsigned char)((int)(i / bytes) * 7 + (int)s))
				code = -1;
	}
	free(mine);
	free(all);
	bootstrap_leave(r->b, 0);
	return code;
}

static void
exchanges(void)
{
	static struct rank r[RANKS];
	blinkUniqueId_t id = new_id();
	job(r, &id, 8, 20000 * MS, exchange);
	ok(all_are(r, 8, blinkSuccess), "%zu exchanges of 8 ranks, from 0 to 65536 bytes", n_exchanges);
}

static void
many_jobs(void)
{
	enum { JOBS = 8, N = 4 };
	static struct rank r[JOBS * N];
	for (int j = 0; j < JOBS; j++) {
		blinkUniqueId_t id = new_id();
		for (int i = 0; i < N; i++) {
			rank_init(&r[j * N + i], &id, N, i, 20000 * MS);
			r[j * N + i].play = exchange;
		}
	}
	ranks_start(r, JOBS * N);
	ranks_end(r, JOBS * N);
	ok(all_are(r, JOBS * N, blinkSuccess), "8 jobs of one process at once");
}

/* ---- who does not come ---- */

/* The text, and then how long was waited: a thread that comes late to its call waits for a little less. */
static bool
says_within(const char *text, const char *begins, int most_ms)
{
	size_t n = strlen(begins);
	char *end;
	if (strncmp(text, begins, n) != 0)
		return false;
	long ms = strtol(text + n, &end, 10);
	return strcmp(end, " ms") == 0 && ms > most_ms / 2 && ms <= most_ms;
}

static void
missing(void)
{
	static struct rank r[4], late;
	blinkUniqueId_t id = new_id();
	static const int comes[] = { 0, 1, 3 };
	for (int i = 0; i < 3; i++)
		rank_init(&r[i], &id, 4, comes[i], 400 * MS);
	int64_t begin = now_ns();
	ranks_start(r, 3);
	ranks_end(r, 3);
	int64_t took = now_ns() - begin;
	bool good = all_are(r, 3, blinkTimeout);
	for (int i = 0; i < 3; i++)
		good &= says_within(r[i].err.text, "rank 2 of 4 has not come within ", 400);
	ok(good && took >= 400 * MS && took < 5000 * MS, "a rank does not come: %s", r[0].err.text);
	rank_init(&late, &id, 4, 2, 5000 * MS);
	ok(rank_join(&late) == blinkTimeout && strcmp(late.err.text, r[0].err.text) == 0,
	    "it hears the same when it comes");

	id = new_id();
	for (int i = 0; i < 2; i++)
		rank_init(&r[i], &id, 16, i ? 7 : 12, i ? 20000 * MS : 300 * MS);
	ranks_start(r, 2);
	ranks_end(r, 2);
	static const char want[] = "ranks 0, 1, 2, 3, 4, 5, 6, 8 and 6 more of 16 have not come";
	ok(all_are(r, 2, blinkTimeout) && strstr(r[1].err.text, want), "many do not come: %s", r[1].err.text);
}

static int
exchange_in_part(struct rank *r)
{
	char mine = 0, all[RANKS];
	int code = r->number == 1 ? hears(r, 10000 * MS) ? r->code : -1
	    : bootstrap_allgather(r->b, &mine, 1, all, now_ns() + 300 * MS, &r->err);
	bootstrap_leave(r->b, 0);
	return code;
}

static int
exchange_with_one_gone(struct rank *r)
{
	char mine = 0, all[RANKS];
	int code = r->number == 1 ? blinkRemoteError
	    : bootstrap_allgather(r->b, &mine, 1, all, now_ns() + 20000 * MS, &r->err);
	bootstrap_leave(r->b, 3);
	return code;
}

static int
exchange_unequal(struct rank *r)
{
	char mine[2] = { 0 }, all[2 * RANKS];
	int code = bootstrap_allgather(r->b, mine, r->number == 1 ? 2 : 1, all, now_ns() + 20000 * MS, &r->err);
	bootstrap_leave(r->b, 0);
	return code;
}

static void
exchanges_that_fail(void)
{
	static struct rank r[4];
	blinkUniqueId_t id = new_id();
	job(r, &id, 4, 20000 * MS, exchange_in_part);
	ok(all_are(r, 4, blinkTimeout) && strcmp(r[0].err.text, r[1].text) == 0 &&
	    says_within(r[0].err.text, "rank 1 of 4 has not come to an exchange of all ranks within ", 300),
	    "a rank does not come to an exchange: %s", r[0].err.text);
	id = new_id();
	job(r, &id, 4, 20000 * MS, exchange_with_one_gone);
	ok(all_are(r, 4, blinkRemoteError) && strstr(r[0].err.text, "rank 1 has left; rank "),
	    "a rank has left before an exchange: %s", r[0].err.text);
	id = new_id();
	job(r, &id, 4, 20000 * MS, exchange_unequal);
	ok(all_are(r, 4, blinkMismatch), "an exchange of unequal sizes: %s", r[0].err.text);
}

/* ---- ranks that do not fit ---- */

static void
unfit(void)
{
	static struct rank r[5];
	blinkUniqueId_t id = new_id();
	for (int i = 0; i < 4; i++)
		rank_init(&r[i], &id, 5, i < 3 ? i : 1, 20000 * MS);
	ranks_start(r, 4);
	ranks_end(r, 4);
	ok(all_are(r, 4, blinkInvalidArgument) &&
	    strstr(r[0].err.text, "two ranks have come as rank 1, from 127.0.0.1:") &&
	    strcmp(r[0].err.text, r[3].err.text) == 0, "two with one number: %s", r[0].err.text);
	id = new_id();
	for (int i = 0; i < 3; i++)
		rank_init(&r[i], &id, i == 2 ? 5 : 4, i, 20000 * MS);
	ranks_start(r, 3);
	ranks_end(r, 3);
	ok(all_are(r, 3, blinkInvalidArgument) && strstr(r[0].err.text, "want the same number"),
	    "another number of ranks: %s", r[2].err.text);
	rank_init(&r[0], &id, 4, 4, 20000 * MS);
	ok(rank_join(&r[0]) == blinkInvalidArgument, "a rank past the last: %s", r[0].err.text);
	rank_init(&r[0], &id, 4, 0, 20000 * MS);
	r[0].id.internal[3] ^= 1;
	ok(rank_join(&r[0]) == blinkInvalidArgument, "no id: %s", r[0].err.text);
}

/* ---- events ---- */

static bool
hears_of_farewell(struct rank *r, int from)
{
	uint64_t calls = 0;
	for (int64_t end = now_ns() + 10000 * MS; !calls && now_ns() < end; nap(MS)) {
		pthread_mutex_lock(&r->lock);
		calls = r->calls[from];
		pthread_mutex_unlock(&r->lock);
	}
	return calls == (uint64_t)(10 + from) + 1;
}

static void
farewells(void)
{
	static struct rank r[4];
	blinkUniqueId_t id = new_id();
	bool good = job_stays(r, &id, 4);
	ok(good, "ranks of several processes join");
	bool signs = true, addresses = true;
	for (int i = 0; i < 4; i++) {
		unsigned char address[28], other[28], sum[32], same[32];
		bootstrap_sign(r[i].b, "text", 4, sum);
		bootstrap_sign(r[(i + 1) % 4].b, "text", 4, same);
		signs &= memcmp(sum, same, 32) == 0;
		bootstrap_sign(r[i].b, "tex", 3, same);
		signs &= memcmp(sum, same, 32) != 0;
		bootstrap_address(r[i].b, address);
		bootstrap_address(r[0].b, other);
		addresses &= memcmp(address, other, 28) == 0 && address_length(address) == sizeof(struct sockaddr_in);
	}
	ok(signs, "all sign alike");
	ok(addresses, "all have the address of the loopback interface, without port");
	for (int i = 0; i < 4; i++) {
		bootstrap_leave(r[i].b, (uint64_t)(10 + i));
		for (int j = i + 1; j < 4; j++)
			good &= hears_of_farewell(&r[j], i) && !r[j].n_failed;
	}
	ok(good, "ranks hear who leaves, and after how many calls");
}

static void
failures(void)
{
	static struct rank r[4];
	blinkUniqueId_t id = new_id();
	bool good = job_stays(r, &id, 4);
	bootstrap_fail(r[2].b, blinkAborted, 2, "rank 2: abort was called\x1b[0m\n");
	bootstrap_fail(r[2].b, blinkSystemError, 2, "twice");
	ok(good && all_hear(r, 4, 2, blinkAborted, 2, "rank 2: abort was called?[0m?") && !r[2].n_failed,
	    "all others hear of a failure: %s", r[0].text);
	char mine = 0, all[4];
	ok(bootstrap_allgather(r[2].b, &mine, 1, all, now_ns() + 5000 * MS, &r[2].err) == blinkAborted &&
	    bootstrap_allgather(r[1].b, &mine, 1, all, now_ns() + 5000 * MS, &r[1].err) == blinkAborted,
	    "no exchange after a failure: %s", r[1].err.text);
	all_leave(r, 4);
}

/* ---- ranks that are stuck ---- */

struct play {
	const char *what;
	int code, culprit;
	const char *text;
	/* calls 0: left, after `signature`. in_call 2: and accepts no connections; 3: strangers crowd its port. */
	struct { uint64_t calls, signature; int in_call, awaits; } rank[4];
};

static const struct play plays[] = {
	{ "ranks call differently", blinkMismatch, 2, "rank 2 called text 8 as call 17; rank 0 called text 7",
		{ { 17, 7, 1, 2 }, { 17, 7, 1, 0 }, { 17, 8, 1, 3 }, { 17, 7, 1, 1 } } },
	{ "two against two", blinkMismatch, 0, "rank 0 called text 7 as call 17; rank 2 called text 8",
		{ { 17, 7, 1, 2 }, { 17, 7, 1, 0 }, { 17, 8, 1, 3 }, { 17, 8, 1, 1 } } },
	{ "three kinds", blinkMismatch, 1, "rank 1 called text 8 as call 17; rank 0 called text 7",
		{ { 17, 7, 1, 2 }, { 17, 8, 1, 0 }, { 17, 9, 1, 3 }, { 17, 7, 1, 1 } } },
	{ "a rank has not called yet", blinkTimeout, 3, "rank 3 has not made call 17 (text 7) yet; it has made 16",
		{ { 17, 7, 1, 1 }, { 17, 7, 1, 2 }, { 17, 7, 1, 3 }, { 16, 5, 0, -1 } } },
	{ "two have not, one is further behind", blinkTimeout, 2,
		"rank 2 has not made call 16 (text 5) yet; it has made 15",
		{ { 17, 7, 1, 1 }, { 16, 5, 0, -1 }, { 15, 4, 0, -1 }, { 17, 7, 1, 2 } } },
	{ "a rank has left", blinkRemoteError, 1, "rank 1 has left after 16 calls, without call 17 (text 7)",
		{ { 17, 7, 1, 1 }, { 0, 16, 0, 0 }, { 17, 7, 1, 3 }, { 17, 7, 1, 1 } } },
	{ "a chain", blinkTimeout, 2, "rank 2 makes no progress in call 17 (text 7); rank 1 waits for it",
		{ { 17, 7, 1, 3 }, { 17, 7, 1, 2 }, { 17, 7, 1, -1 }, { 17, 7, 1, 1 } } },
	{ "a chain to a rank in no call", blinkTimeout, 3, "rank 3 is in no call; it has made 17; rank 0 waits for it",
		{ { 17, 7, 1, 3 }, { 17, 7, 1, 0 }, { 17, 7, 1, 0 }, { 17, 7, 0, -1 } } },
	{ "nobody says for whom he waits", blinkTimeout, 2, "rank 2 is in no call; it has made 17",
		{ { 17, 7, 1, -1 }, { 17, 7, 1, -1 }, { 17, 7, 0, -1 }, { 17, 7, 1, -1 } } },
	{ "a rank has no descriptors left", blinkRemoteError, 1,
		"rank 1 cannot accept connections: Too many open files",
		{ { 17, 7, 1, 2 }, { 17, 7, 2, 0 }, { 17, 7, 1, 0 }, { 16, 5, 0, -1 } } },
	{ "strangers at the port of a rank", blinkTimeout, 2,
		"rank 2 is in no call; it has made 17; strangers crowd the port of rank 1",
		{ { 17, 7, 1, -1 }, { 17, 7, 3, -1 }, { 17, 7, 0, -1 }, { 17, 7, 1, -1 } } },
	{ "a ring", blinkTimeout, 1, "rank 1 waits in call 17 (text 7) for rank 2; rank 3 waits for it",
		{ { 17, 7, 1, 3 }, { 17, 7, 1, 2 }, { 17, 7, 1, 3 }, { 17, 7, 1, 1 } } },
	{ "calls that are not compared", blinkTimeout, 1, "rank 1 makes no progress in call 17 (text 0)",
		{ { 17, 0, 1, 1 }, { 17, 0, 1, -1 }, { 17, 7, 1, 0 }, { 17, 0, 1, 0 } } },
	{ "the last differs, the lowest call counts", blinkMismatch, 1,
		"rank 1 called text 8 as call 16; rank 0 called text 7",
		{ { 16, 7, 1, 1 }, { 16, 8, 1, -1 }, { 17, 9, 1, 0 }, { 16, 7, 1, 0 } } },
};

static struct rank_status
status_of(const struct play *p, int i)
{
	struct rank_status s = { .calls = p->rank[i].calls, .signature = p->rank[i].signature,
		.in_call = p->rank[i].in_call != 0, .awaits = p->rank[i].awaits,
		.shortage = p->rank[i].in_call == 2 ? EMFILE : p->rank[i].in_call == 3 ? EUSERS : 0 };
	snprintf(s.text, sizeof s.text, "text %d", (int)p->rank[i].signature);
	return s;
}

static void
set_status(struct rank *r, const struct play *p)
{
	pthread_mutex_lock(&r->lock);
	r->status = status_of(p, r->number);
	pthread_mutex_unlock(&r->lock);
}

static void
investigate(const struct play *p, int64_t patience)
{
	static struct rank r[4];
	blinkUniqueId_t id = new_id();
	int gone = -1;
	bool good = job_stays(r, &id, 4);
	for (int i = 0; i < 4; i++) {
		set_status(&r[i], p);
		if (p->rank[i].calls == 0) {
			bootstrap_leave(r[i].b, p->rank[i].signature);
			r[i].b = NULL;
			gone = i;
		}
	}
	int64_t deadline = now_ns() + patience, heard = INT64_MAX;
	for (int i = 0; i < 4; i++)
		if (p->rank[i].calls && p->rank[i].in_call)
			bootstrap_stuck(r[i].b, deadline + i * MS, patience);
	good &= all_hear(r, 4, gone, p->code, p->culprit, p->text);
	for (int i = 0; i < 4; i++)
		if (i != gone && r[i].heard_at < heard)
			heard = r[i].heard_at;
	ok(good && heard >= deadline && heard < deadline + 3000 * MS, "%s%s: %s", p->what, patience ? "" : ", at once",
	    r[gone == 0].text);
	all_leave(r, 4);
}

/* Which rank is the first to ask depends on the network, the verdict does not. */
static void
whoever_asks(const struct play *p)
{
	struct witness w[4] = { 0 };
	bool good = true;
	for (int i = 0; i < 4; i++) {
		w[i].left = p->rank[i].calls == 0;
		w[i].status = status_of(p, i);
		if (w[i].left)
			w[i].status.calls = p->rank[i].signature;
	}
	for (int i = 0; i < 4; i++) {
		struct verdict v;
		if (w[i].left || !p->rank[i].in_call)
			continue;
		verdict_find(w, 4, i, &v);
		good &= v.code == p->code && v.culprit == p->culprit && strncmp(v.text, p->text, strlen(p->text)) == 0;
		if (!good)
			printf("# rank %d asks: code %d, rank %d: %s\n", i, v.code, v.culprit, v.text);
	}
	ok(good, "%s, whoever asks", p->what);
}

static void
stuck(void)
{
	for (size_t i = 0; i < sizeof plays / sizeof *plays; i++)
		whoever_asks(&plays[i]);
	for (size_t i = 0; i < sizeof plays / sizeof *plays; i++)
		investigate(&plays[i], 300 * MS);
	investigate(&plays[0], 0);

	static struct rank r[3];
	blinkUniqueId_t id = new_id();
	bool good = job_stays(r, &id, 3);
	for (int i = 0; i < 3; i++)
		set_status(&r[i], &plays[3]);
	for (int times = 0; times < 3; times++) {
		for (int i = 0; i < 3; i++)
			bootstrap_stuck(r[i].b, now_ns() + 300 * MS, 300 * MS);
		nap(100 * MS);
		for (int i = 0; i < 3; i++)
			bootstrap_progress(r[i].b);
	}
	nap(600 * MS);
	for (int i = 0; i < 3; i++)
		good &= !has_failed(&r[i]);
	ok(good, "no verdict on ranks that go on in time");
	all_leave(r, 3);
}

/* ---- addresses ---- */

static void
addresses(void)
{
	static struct rank r[4];
	unsigned char v6[ADDRESS_BYTES] = { 0 };
	struct sockaddr_in6 loopback = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	blinkUniqueId_t id;
	struct blink_error err;
	memcpy(v6, &loopback, sizeof loopback);
	if (hub_start(v6, "lo", NULL, &id, &err) == blinkSuccess) {
		job(r, &id, 4, 20000 * MS, exchange);
		ok(all_are(r, 4, blinkSuccess), "a hub on ::1");
	} else {
		printf("skip a hub on ::1: %s\n", err.text);
	}
	struct ifaddrs *all = NULL;
	getifaddrs(&all);
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		const struct sockaddr_in6 *a = (const void *)i->ifa_addr;
		if (!a || a->sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr))
			continue;
		memcpy(v6, a, sizeof *a);
		bool good = hub_start(v6, i->ifa_name, NULL, &id, &err) == blinkSuccess;
		if (good)
			job(r, &id, 4, 20000 * MS, exchange);
		ok(good && all_are(r, 4, blinkSuccess), "a hub on a link-local address");
		break;
	}
	freeifaddrs(all);
}

/* A link-local address on no interface of this machine: it has no name in a text, and its number is kept. */
static void
strange_interfaces(void)
{
	static struct rank r;
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_scope_id = INT32_MAX };
	blinkUniqueId_t unique = new_id();
	struct id *id = (struct id *)(void *)&unique;
	char text[ADDRESS_ROOM];
	inet_pton(AF_INET6, "fe80::1", &a.sin6_addr);
	memcpy(id->address, &a, sizeof a);
	strcpy(id->interface, "nosuch");
	ok(strcmp(address_text(id->address, true, text), "[fe80::1]:9") == 0, "an interface without a name");
	rank_init(&r, &unique, 2, 1, 300 * MS);
	blinkResult_t result = rank_join(&r);
	ok(result != blinkSuccess && strstr(r.err.text, "[fe80::1]:9"), "an interface without a number: %s",
	    r.err.text);
}

static void
interfaces(void)
{
	static const struct { const char *list, *name; bool chosen; } rows[] = {
		{ "eth", "eth0", true }, { "eth", "ib0", false }, { "=eth", "eth0", false }, { "=eth0", "eth0", true },
		{ "ib,eth", "eth1", true }, { "^docker,lo", "lo", false }, { "^docker,lo", "docker0", false },
		{ "^docker,lo", "eth0", true }, { "^=lo", "lo", false }, { "^=lo", "lo1", true },
		{ "=ib0,eth0", "eth0", true },
		{ ",eth", "eth0", true }, { ",", "eth0", false }, { "^", "lo", true },
	};
	bool good = true;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (interface_chosen(rows[i].list, rows[i].name) != rows[i].chosen) {
			printf("# %s %s\n", rows[i].list, rows[i].name);
			good = false;
		}
	ok(good, "interfaces are chosen by prefix, by name, and by what they are not");
	unsigned char address[ADDRESS_BYTES];
	char name[16], text[ADDRESS_ROOM];
	struct blink_error err;
	ok(interface_find("nosuch", address, name, &err) == blinkInvalidArgument && strstr(err.text, "nosuch") &&
	    strstr(err.text, "lo"), "no such interface: %s", err.text);
	ok(interface_find("=lo", address, name, &err) == blinkSuccess && strcmp(name, "lo") == 0 &&
	    strcmp(address_text(address, false, text), "127.0.0.1") == 0, "the loopback interface, by name");
	ok(interface_find(NULL, address, name, &err) == blinkSuccess && strncmp(name, "docker", 6) != 0,
	    "some interface, by default");
}

/* ---- what is left ---- */

static int
entries(const char *directory)
{
	int n = 0;
	DIR *d = opendir(directory);
	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

/* No more than so many are left, or their number has not changed for a while. */
static void
threads_end(int most)
{
	for (int64_t end = now_ns() + 10000 * MS; now_ns() < end && entries("/proc/self/task") > most; nap(10 * MS)) {
		int n = entries("/proc/self/task");
		nap(300 * MS);
		if (entries("/proc/self/task") == n)
			return;
	}
}

int
main(int argc, char **argv)
{
	alarm(300);
	n_exchanges = quick_check() ? 20 : n_exchanges;
	static struct rank first;
	blinkUniqueId_t id = new_id();
	job(&first, &id, 1, 20000 * MS, leave);		/* what threads need once, as of a sanitizer, is there then */
	threads_end(0);
	int files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
	joins(argc > 2 ? 2 * atoi(argv[2]) : 200);
	exchanges();
	many_jobs();
	exchanges_that_fail();
	farewells();
	failures();
	stuck();
	addresses();
	interfaces();
	threads_end(threads);
	ok(entries("/proc/self/task") == threads && entries("/proc/self/fd") == files,
	    "of %d threads and %d descriptors %d and %d are there in the end", threads, files,
	    entries("/proc/self/task"), entries("/proc/self/fd"));
	strange_interfaces();
	missing();
	unfit();
	printf("1..%d\n", n_tests);
	return n_bad != 0;
}
