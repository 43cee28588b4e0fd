/* Who gets at the memory of a rank, and whose it takes: a peer that proves by its key that it is of the job. The peer
 * is played here byte by byte. */
#include "tap.h"
#include "transport/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PEER = 0, OWN = 1, BYTES = 8192 };

/* A peer, right in all but what the case says. */
struct peer {
	const char *says;
	bool wrong_key, unsealed, no_memory, small, as_another;
	unsigned char address[SHM_ADDRESS];
	int memory, got;		/* its descriptor; that of the rank, -1: it was not handed over */
	_Atomic int stop;		/* the rank has closed the connection */
};

struct hello {
	int32_t from, to;
	unsigned char nonce[16];
};

static int64_t
in_seconds(int s)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (t.tv_sec + s) * INT64_C(1000000000) + t.tv_nsec;
}

/* In place of an HMAC: all bytes of the text and of the key count, each in its place. */
static void
sign(void *key, const void *text, size_t bytes, unsigned char out[32])
{
	uint64_t h = *(const uint64_t *)key;
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ ((const unsigned char *)text)[i]) * 0x100000001b3u;
	for (int i = 0; i < 32; i++, h = h * 0x9e3779b97f4a7c15u + 1)
		out[i] = (unsigned char)(h >> 56);
}

static uint64_t key = 1234567, other_key = 7654321;

static void
prove(const struct peer *p, const struct hello *mine, const struct hello *theirs, unsigned char mac[32])
{
	unsigned char text[32] = "shm-fd:";
	memcpy(text + 8, &mine->from, 4);
	memcpy(text + 12, &mine->to, 4);
	memcpy(text + 16, theirs->nonce, 16);
	sign(p->wrong_key ? &other_key : &key, text, sizeof text, mac);
}

static void
send_with(int socket, const void *data, size_t bytes, int fd)
{
	struct iovec part = { (void *)data, bytes };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	if (fd >= 0) {
		m.msg_control = control.space;
		m.msg_controllen = sizeof control.space;
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
		    .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof fd);
	}
	if (sendmsg(socket, &m, MSG_NOSIGNAL) < 0 && errno != EPIPE)
		perror("sendmsg");
}

/* So many bytes of the rank, and a descriptor if it sends one. */
static bool
receive_with(int socket, void *data, size_t bytes, int *fd)
{
	struct iovec part = { data, bytes };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space,
	    .msg_controllen = sizeof control.space };
	bool got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC) == (ssize_t)bytes;
	if (got && CMSG_FIRSTHDR(&m))
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof *fd);
	return got;
}

/* The part of the peer until one of both ends it. */
static void
converse(struct peer *p, int fd)
{
	struct hello mine = { p->as_another ? PEER + 7 : PEER, OWN, "random" }, theirs;
	unsigned char mac[32];
	char byte;
	send_with(fd, &mine, sizeof mine, -1);
	if (!receive_with(fd, &theirs, sizeof theirs, &p->got))
		return;
	prove(p, &mine, &theirs, mac);
	send_with(fd, mac, sizeof mac, -1);
	if (!receive_with(fd, mac, sizeof mac, &p->got))
		return;
	send_with(fd, "", 1, p->no_memory ? -1 : p->memory);
	if (receive_with(fd, &byte, 1, &p->got))
		receive_with(fd, &byte, 1, &p->got);
}

static void *
play(void *arg)
{
	struct peer *p = arg;
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "blink-%.*s", SHM_ADDRESS,
	    (const char *)p->address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	length += (int)offsetof(struct sockaddr_un, sun_path) + 1;
	if (connect(fd, (struct sockaddr *)&name, (socklen_t)length) == 0)
		converse(p, fd);
	else
		perror("connect");
	atomic_store(&p->stop, 1);
	close(fd);
	return NULL;
}

/* The rank takes the peer's memory, and nobody else's. */
static void
test_peer(struct peer *p, bool taken)
{
	const struct net_keys keys = { .context = &key, .sign = sign };
	struct blink_error err = { 0 };
	struct shm *own = NULL;
	struct shm_peer peer = { .rank = PEER, .least = BYTES };
	pthread_t thread;
	p->got = -1;
	p->memory = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->memory < 0 || ftruncate(p->memory, p->small ? BYTES - 1 : BYTES) != 0
	    || pwrite(p->memory, "theirs", 6, 100) != 6
	    || (!p->unsealed && fcntl(p->memory, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
	    || shm_open_own(BYTES, &keys, p->address, &own, &err) != blinkSuccess
	    || pthread_create(&thread, NULL, play, p) != 0)
		return ok(false, "no memory or thread");
	shm_exchange(own, OWN, &peer, 1, in_seconds(30), &p->stop, &err);
	pthread_join(thread, NULL);
	if (taken)
		ok(err.code == blinkSuccess && peer.memory && strcmp((char *)peer.memory + 100, "theirs") == 0,
		    p->says);
	else
		ok(err.code == blinkAborted && !peer.memory && strstr(err.text, "rank 0"), p->says);
	bool may = !p->as_another && !p->wrong_key;
	ok((p->got >= 0) == may, may ? "and gets the rank's own" : "and gets none");
	if (p->got >= 0)
		close(p->got);
	close(p->memory);
	shm_close(own);
}

/* ---- full queues ---- */

enum { SILENT_MOST = 5000, NOBODY = 65534 };

/* Connections to the socket of that address, which say nothing, until its queue is full. */
static int
fill_queue(const unsigned char *address, int *fd)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = 0, length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "blink-%.*s", SHM_ADDRESS,
	    (const char *)address);
	length += (int)offsetof(struct sockaddr_un, sun_path) + 1;
	while (n < SILENT_MOST) {
		fd[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd[n] < 0 || connect(fd[n], (struct sockaddr *)&name, (socklen_t)length) != 0)
			break;
		n++;
	}
	if (n < SILENT_MOST && fd[n] >= 0)
		close(fd[n]);
	return n;
}

struct rank {
	struct shm *own;
	struct shm_peer peer;
	int number, result;
	_Atomic int stop;
	struct blink_error err;
};

static void *
exchange(void *of)
{
	struct rank *r = of;
	r->result = shm_exchange(r->own, r->number, &r->peer, 1, in_seconds(30), &r->stop, &r->err);
	return NULL;
}

/* By a process of another user, which keeps its connections until it is killed. */
static pid_t
fill_queue_as(uid_t user, const unsigned char *address, int *n, int *fd)
{
	int told[2];
	if (pipe(told) != 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		alarm(60);
		int made = setgroups(0, NULL) == 0 && setgid(user) == 0 && setuid(user) == 0
		    ? fill_queue(address, fd) : 0;
		if (write(told[1], &made, sizeof made) != sizeof made)
			_exit(1);
		for (;;)
			pause();
	}
	*n = 0;
	if (read(told[0], n, sizeof *n) != sizeof *n)
		*n = 0;
	close(told[0]);
	close(told[1]);
	return child;
}

/* Two ranks, of which the second begins late, in a process of its own; strangers have filled its queue before, of this
 * user or of another one. */
static void
test_full_queue(bool another)
{
	const struct net_keys keys = { .context = &key, .sign = sign };
	static int fd[SILENT_MOST];
	struct blink_error err = { 0 };
	struct rank r[2] = { { .number = 0, .peer.rank = 1 }, { .number = 1, .peer.rank = 0 } };
	int address[2], status = -1;
	if (pipe(address) != 0 || shm_open_own(BYTES, &keys, r[1].peer.address, &r[0].own, &err) != blinkSuccess)
		return ok(false, "no memory or pipe");
	pid_t child = fork();
	if (child == 0) {
		alarm(60);
		shm_open_own(BYTES, &keys, r[0].peer.address, &r[1].own, &err);
		if (write(address[1], r[0].peer.address, SHM_ADDRESS) != SHM_ADDRESS)
			_exit(2);
		usleep(300000);
		exchange(&r[1]);
		_exit(r[1].result != blinkSuccess || strcmp((char *)r[1].peer.memory, "rank 0") != 0);
	}
	strcpy(shm_memory(r[0].own), "rank 0");
	if (read(address[0], r[0].peer.address, SHM_ADDRESS) != SHM_ADDRESS)
		return ok(false, "no address");
	int n;
	pid_t stranger = another ? fill_queue_as(NOBODY, r[0].peer.address, &n, fd) : -1;
	if (!another)
		n = fill_queue(r[0].peer.address, fd);
	exchange(&r[0]);
	waitpid(child, &status, 0);
	check(n > 32 && r[0].result == blinkSuccess && status == 0,
	    another ? "a rank whose queue another user has filled" : "a rank whose queue strangers have filled",
	    "%d strangers, result %d: %s, child %d", n, r[0].result, r[0].err.text, status);
	for (int i = 0; i < n && !another; i++)
		close(fd[i]);
	if (stranger > 0) {
		kill(stranger, SIGKILL);
		waitpid(stranger, &status, 0);
	}
	close(address[0]);
	close(address[1]);
	shm_close(r[0].own);
}

/* Ranks of one process: each has the other's memory as it is, until it forgets it. */
static void
test_threads(void)
{
	const struct net_keys keys = { .context = &key, .sign = sign };
	struct blink_error err = { 0 };
	struct shm *shm[2] = { NULL, NULL };
	struct shm_peer peer[2] = { { .rank = 0 }, { .rank = 1 } };
	_Atomic int stop = 0;
	for (int i = 0; i < 2; i++)
		shm_open_own(BYTES, &keys, peer[i].address, &shm[i], &err);
	ok(err.code == blinkSuccess && shm_exchange(shm[0], 0, &peer[1], 1, in_seconds(30), &stop, &err)
	    == blinkSuccess && peer[1].memory == shm_memory(shm[1]), "a thread's memory is where the thread has it");
	if (err.code != blinkSuccess)
		return;
	shm_close(shm[1]);
	strcpy(peer[1].memory, "still there");
	shm_forget_peers(shm[0]);
	unsigned char pages[BYTES / 4096];
	ok(mincore(peer[1].memory, BYTES, pages) != 0, "gone when its rank has closed and the peer forgotten it");
	shm_close(shm[0]);
}

int
main(void)
{
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	test_peer(&(struct peer){ .says = "a peer's memory is mapped" }, true);
	test_peer(&(struct peer){ .says = "not of one that has another key", .wrong_key = true }, false);
	test_peer(&(struct peer){ .says = "not if it may shrink", .unsealed = true }, false);
	test_peer(&(struct peer){ .says = "not if it is smaller than what is read there", .small = true }, false);
	test_peer(&(struct peer){ .says = "not if there is none", .no_memory = true }, false);
	test_peer(&(struct peer){ .says = "not of a rank that is none of the peers", .as_another = true }, false);
	test_threads();
	test_full_queue(false);
	if (geteuid() == 0)
		test_full_queue(true);
	else
		printf("skip a rank whose queue another user has filled: not root\n");
	return end_tests();
}
