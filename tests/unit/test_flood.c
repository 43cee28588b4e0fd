/* Strangers who connect to every port of a job, as many as they can, for as long as it lasts, and say nothing: the job
 * goes on, and its processes keep most of their descriptors. Each rank is a process with few of them, on a server of
 * its own. Prints TAP. */
#include "blink.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 2, COMMS_MOST = 3, PORTS = 16, CALLS = 10, HELD_MOST = 16000, COUNT = 1 << 16, FLOODED_MS = 500 };

struct flood {
	int limit, comms, held;		/* descriptors of a rank; its communicators; connections of the strangers */
	bool full;			/* in the full test alone */
};

struct shared {
	blinkUniqueId_t id;
	atomic_bool has_id, flooded;
	atomic_int ready, ended;
	int n_ports[RANKS];
	in_port_t port[RANKS][PORTS];
	int free[RANKS];		/* descriptors that the program could still open */
	char text[RANKS][600];		/* what went wrong */
};

static struct shared *shared;

static void
nap(int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static int64_t
now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* ---- a rank ---- */

static void
find_ports(int rank, int limit)
{
	for (int fd = 0; fd < limit; fd++) {
		struct sockaddr_in a;
		int listens = 0;
		socklen_t size = sizeof listens, length = sizeof a;
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens
		    && getsockname(fd, (struct sockaddr *)&a, &length) == 0 && a.sin_family == AF_INET
		    && shared->n_ports[rank] < PORTS)
			shared->port[rank][shared->n_ports[rank]++] = a.sin_port;
	}
}

static int
count_free(int limit)
{
	int *fd = calloc((size_t)limit, sizeof *fd), n = 0;
	while (n < limit && (fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		close(fd[i]);
	free(fd);
	return n;
}

static bool
call_all(blinkComm_t comm, int rank, float *data)
{
	for (int i = 0; i < COUNT; i++)
		data[i] = (float)(rank + 1);
	blinkResult_t code = blinkAllReduce(data, data, COUNT, blinkFloat32, blinkSum, comm, NULL);
	if (code == blinkSuccess)
		code = blinkCommWait(comm, 0);
	bool right = code == blinkSuccess && data[0] == 3 && data[COUNT - 1] == 3;
	if (!right)
		snprintf(shared->text[rank], sizeof shared->text[rank], "code %d: %s", (int)code,
		    blinkCommGetError(comm));
	return right;
}

static void
be_rank(int rank, const struct flood *f)
{
	static float data[COUNT];
	blinkError_t err = { "" };
	blinkComm_t comm[COMMS_MOST] = { NULL };
	struct rlimit files = { (rlim_t)f->limit, (rlim_t)f->limit };
	setrlimit(RLIMIT_NOFILE, &files);
	setenv("BLINK_HOST_ID", rank ? "b" : "a", 1);
	setenv("BLINK_SOCKET_IFNAME", "lo", 1);
	alarm(120);
	if (rank == 0) {
		blinkGetUniqueId(&shared->id, &err);
		shared->has_id = true;
	}
	while (!shared->has_id)
		nap(1);
	int code = blinkCommInitRank(&comm[0], RANKS, &shared->id, rank, NULL, &err);
	for (int i = 1; i < f->comms && code == blinkSuccess; i++)
		code = blinkCommSplit(comm[0], 0, rank, &comm[i], NULL, &err);
	if (code != blinkSuccess)
		snprintf(shared->text[rank], sizeof shared->text[rank], "init: %.500s", err.text);
	find_ports(rank, f->limit);
	shared->ready++;
	while (!shared->flooded)
		nap(1);
	nap(FLOODED_MS);
	shared->free[rank] = count_free(f->limit);
	bool good = code == blinkSuccess;
	for (int i = 0; i < CALLS && good; i++)
		for (int k = 0; k < f->comms && good; k++)
			good = call_all(comm[k], rank, data);
	for (int k = f->comms - 1; k >= 0; k--)
		blinkCommDestroy(comm[k]);
	shared->ended++;
	_exit(!good);
}

/* ---- the strangers ---- */

static int
dial(in_port_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		connect(fd, (struct sockaddr *)&to, sizeof to);
	return fd;
}

/* Whoever is dropped comes again, until the ranks have ended. The number of connections. */
static long
flood(const struct flood *f)
{
	static int fd[HELD_MOST];
	in_port_t port[RANKS * PORTS];
	int n_ports = 0;
	long made = 0;
	for (int r = 0; r < RANKS; r++)
		for (int i = 0; i < shared->n_ports[r]; i++)
			port[n_ports++] = shared->port[r][i];
	for (int i = 0; i < f->held; i++)
		fd[i] = -1;
	for (int64_t until = now_ms() + 60000; n_ports && shared->ended < RANKS && now_ms() < until;) {
		for (int i = 0; i < f->held && shared->ended < RANKS; i++) {
			char byte;
			if (fd[i] >= 0 && recv(fd[i], &byte, 1, MSG_DONTWAIT) < 0
			    && (errno == EAGAIN || errno == EWOULDBLOCK))
				continue;
			if (fd[i] >= 0)
				close(fd[i]);
			fd[i] = dial(port[made % n_ports]);
			made++;
		}
		shared->flooded = true;
	}
	shared->flooded = true;
	for (int i = 0; i < f->held; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return made;
}

static void
play(const struct flood *f)
{
	pid_t pid[RANKS];
	int status[RANKS];
	bool good = true;
	char name[128];
	memset(shared, 0, sizeof *shared);
	for (int r = 0; r < RANKS; r++) {
		pid[r] = fork();
		if (pid[r] == 0)
			be_rank(r, f);
	}
	while (shared->ready < RANKS)
		nap(1);
	long made = flood(f);
	for (int r = 0; r < RANKS; r++) {
		waitpid(pid[r], &status[r], 0);
		good &= status[r] == 0;
	}
	snprintf(name, sizeof name, "%d descriptors, %d communicators, %d strangers at a time", f->limit, f->comms,
	    f->held);
	check(good, name, "rank 0: %s; rank 1: %s", shared->text[0], shared->text[1]);
	/* A communicator has some ten of its own. */
	for (int r = 0; r < RANKS; r++) {
		snprintf(name, sizeof name, "%d descriptors, %d communicators: rank %d keeps three quarters", f->limit,
		    f->comms, r);
		check(shared->free[r] >= f->limit / 4 * 3 - 15 - 15 * f->comms, name, "it could open %d more files",
		    shared->free[r]);
	}
	printf("# %ld connections\n", made);
}

/* argv[2]: more than 15 in the full test. */
int
main(int argc, char **argv)
{
	static const struct flood floods[] = { { 256, 1, 1200, false }, { 256, 3, 1200, true },
		{ 1024, 1, 6000, true }, { 1024, 3, 6000, false }, { 256, 1, 9000, true }, { 256, 3, 9000, true },
		{ 1024, 1, HELD_MOST, true }, { 1024, 3, HELD_MOST, true } };
	bool full = argc > 2 && atoi(argv[2]) > 15;
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) {
		if (floods[i].full && !full)
			continue;
		if (files.rlim_cur >= (rlim_t)floods[i].held + 64)
			play(&floods[i]);
		else
			printf("skip %d strangers hold as many descriptors: ulimit -n is %d\n", floods[i].held,
			    (int)files.rlim_cur);
	}
	return end_tests();
}
