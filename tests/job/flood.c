/* Strangers who connect to every Unix socket of a job, as fast as they can, from before its ranks meet until after its
 * last call: the job's results are right. One is a process of the user, another of another user, where the program is
 * root's. Prints TAP. */
#include "job.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 8, SPLITS = 5, CALLS = 5, COUNT = 1 << 14, NAMES = 256, SECONDS = 60 };

/* Of each stranger: connections to each socket, half of which stay until they are dropped, while the others come and
 * go; and how many it has made before ranks go on. */
enum { EACH = 100, MADE_LEAST = 2000, NOBODY = 65534 };

enum { FLOODED, ENDED };		/* flags of the job */

/* Sockets of the ranks that listen, as the finder finds them, one after the other. */
struct sockets {
	atomic_bool looks;
	atomic_int n, n_strangers;
	struct sockaddr_un name[NAMES];
	socklen_t length[NAMES];
	atomic_long made[2];		/* connections, of each stranger */
};

/* ---- a rank ---- */

static bool
call_all(struct rank *me, blinkComm_t comm, int n, float *data, const char *of)
{
	bool good = true;
	for (int call = 0; call < CALLS && good; call++) {
		for (int i = 0; i < COUNT; i++)
			data[i] = (float)(i % 100);
		job_at(me, "call %d of %s", call, of);
		blinkResult_t result = blinkAllReduce(data, data, COUNT, blinkFloat32, blinkSum, comm, NULL);
		if (result == blinkSuccess)
			result = blinkCommWait(comm, 0);
		good = job_need(me, result == blinkSuccess, "%s: %d: %s", of, (int)result, blinkCommGetError(comm));
		for (int i = 0; i < COUNT && good; i++)
			good = job_need(me, data[i] == (float)(i % 100 * n), "%s: [%d] is %g", of, i, data[i]);
	}
	return good;
}

/* The strangers have been at all sockets that ranks have now. */
static void
await_flood(struct rank *me, const struct sockets *s, int n_sockets)
{
	int64_t until = job_now() + (int64_t)(job_margin(20000) * 1e6);
	job_at(me, "wait for strangers");
	while (s->n < n_sockets && job_now() < until)
		sleep_ms(0.5);
	for (int i = 0; i < s->n_strangers; i++) {
		long before = s->made[i];
		while (s->made[i] < before + MADE_LEAST && job_now() < until)
			sleep_ms(0.5);
	}
	job_need(me, job_now() < until, "%d sockets, %ld and %ld connections of strangers: want %d sockets, and %d "
	    "more connections", s->n, s->made[0], s->made[1], n_sockets, MADE_LEAST);
}

/* Memory has a socket of its own, from when it is made on. */
static void
use_memory(struct rank *me, blinkComm_t comm, const struct sockets *s)
{
	void *memory = NULL, *handle = NULL;
	blinkResult_t result = blinkMemAlloc(comm, me->rank, COUNT * sizeof(float), &memory);
	if (!job_need(me, result == blinkSuccess, "blinkMemAlloc: %d: %s", (int)result, blinkCommGetError(comm)))
		return;
	await_flood(me, s, 2 * RANKS);
	job_barrier(me, FLOODED, RANKS);	/* what they wait for strangers is not for the communicator's timeout */
	job_at(me, "register memory");
	result = blinkCommRegister(comm, memory, COUNT * sizeof(float), &handle);
	if (job_need(me, result == blinkSuccess, "blinkCommRegister: %d: %s", (int)result, blinkCommGetError(comm)))
		call_all(me, comm, RANKS, memory, "registered memory");
	blinkCommDeregister(comm, handle);
	blinkMemFree(comm, me->rank, memory);
}

static void
body(struct rank *me)
{
	static float data[COUNT];
	blinkError_t error = { "" };
	struct sockets *s = me->arg;
	while (!s->looks)
		sleep_ms(0.5);
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	call_all(me, comm, RANKS, data, "all ranks");
	use_memory(me, comm, s);
	for (int i = 0; i < SPLITS; i++) {
		blinkComm_t half = NULL;
		job_at(me, "split %d", i);
		blinkResult_t result = blinkCommSplit(comm, me->rank % 2, me->rank, &half, NULL, &error);
		if (!job_need(me, result == blinkSuccess, "split %d: %d: %s", i, (int)result, error.text))
			break;
		call_all(me, half, RANKS / 2, data, "half of them");
		job_leave(me, half);
	}
	job_barrier(me, ENDED, RANKS);
	job_leave(me, comm);
}

/* ---- strangers ---- */

/* Other tests have sockets, too. */
static bool
is_of_job(const struct job *job, unsigned long inode)
{
	char want[48], path[64], link[48];
	snprintf(want, sizeof want, "socket:[%lu]", inode);
	for (int r = 0; r < job->n; r++) {
		for (int fd = 0; fd < 100; fd++) {
			snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)job->pid[r], fd);
			ssize_t n = readlink(path, link, sizeof link - 1);
			link[n < 0 ? 0 : n] = 0;
			if (strcmp(link, want) == 0)
				return true;
		}
	}
	return false;
}

static bool
is_known(const struct sockets *s, const char *path, size_t length)
{
	for (int i = 0; i < s->n; i++)
		if (s->length[i] == offsetof(struct sockaddr_un, sun_path) + length
		    && strncmp(s->name[i].sun_path + 1, path + 1, length - 1) == 0)
			return true;
	return false;
}

/* A line is: address, uses, protocol, flags, type, state, inode, path. An abstract path begins with @ here. */
static void
find_sockets(const struct job *job, struct sockets *s)
{
	enum { LISTENS = 0x10000 };
	char line[256], path[sizeof s->name->sun_path];
	FILE *file = fopen("/proc/net/unix", "re");
	while (file && fgets(line, sizeof line, file) && s->n < NAMES) {
		unsigned flags;
		unsigned long inode;
		if (sscanf(line, "%*s %*s %*s %x %*s %*s %lu %107s", &flags, &inode, path) != 3 || !(flags & LISTENS)
		    || is_known(s, path, strlen(path)) || !is_of_job(job, inode))
			continue;
		s->name[s->n] = (struct sockaddr_un){ .sun_family = AF_UNIX };
		memcpy(s->name[s->n].sun_path, path, strlen(path));
		if (path[0] == '@')
			s->name[s->n].sun_path[0] = 0;
		s->length[s->n] = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
		s->n++;
	}
	if (file)
		fclose(file);
}

static void
be_finder(const struct job *job, struct sockets *s)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		find_sockets(job, s);
		s->looks = true;
		sleep_ms(1);
	}
}

/* A queue that is full counts, too: a rank takes from it only when it exchanges memory. */
static void
dial(struct sockets *s, int i, int *fd, bool another)
{
	if (*fd >= 0)
		close(*fd);
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connect(*fd, (struct sockaddr *)&s->name[i], s->length[i]) == 0 || errno == EAGAIN)
		s->made[another]++;
}

/* Whoever is dropped comes again. */
static void
be_stranger(struct sockets *s, bool another)
{
	static int fd[NAMES][EACH];
	memset(fd, -1, sizeof fd);
	if (another && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* whoever becomes another user loses it */
	for (;;) {
		for (int i = 0; i < s->n; i++) {
			for (int k = 0; k < EACH; k++) {
				char byte;
				bool stays = k % 2 && recv(fd[i][k], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
				if (!stays)
					dial(s, i, &fd[i][k], another);
			}
		}
		if (s->n == 0)
			sleep_ms(0.1);
	}
}

/* 0: the finder; 1 and 2: strangers. They end with this process, however long the job takes. */
static pid_t
start(const struct job *job, struct sockets *s, int who)
{
	pid_t pid = fork();
	if (pid == 0 && who == 0)
		be_finder(job, s);
	if (pid == 0)
		be_stranger(s, who == 2);
	return pid;
}

int
main(void)
{
	struct job job = { .name = "strangers at its Unix sockets", .n = RANKS, .seconds = SECONDS };
	struct sockets *s = shared_memory(sizeof *s);
	pid_t other[3];
	s->n_strangers = geteuid() == 0 ? 2 : 1;
	job_start(&job, body, s);
	for (int i = 0; i <= s->n_strangers; i++)
		other[i] = start(&job, s, i);
	int wrong = job_wait(&job);
	for (int i = 0; i <= s->n_strangers; i++) {
		kill(other[i], SIGKILL);
		waitpid(other[i], NULL, 0);
	}
	printf("# %d sockets; connections: %ld of the user, %ld of another one\n", s->n, s->made[0], s->made[1]);
	return job_report(job.name, wrong);
}
