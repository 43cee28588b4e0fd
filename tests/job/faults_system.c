/* Strangers at the ports, little memory, and few files. */
#include "faults.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- strangers at the ports ---- */

/* Ports on which a process listens: its sockets by inode, found in the table of the network. */
static bool
owns_socket(pid_t pid, unsigned long inode)
{
	char path[64], link[64], want[64];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	snprintf(want, sizeof want, "socket:[%lu]", inode);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir && !found && (e = readdir(dir)) != NULL;) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
		found = n > 0 && (size_t)n == strlen(want) && memcmp(link, want, (size_t)n) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Their addresses, at most `most`. IPv4 alone. */
static int
listening(pid_t pid, struct sockaddr_in *out, int most)
{
	char line[512];
	unsigned address, port, state;
	unsigned long inode;
	int n = 0;
	FILE *file = fopen("/proc/net/tcp", "r");
	while (file && n < most && fgets(line, sizeof line, file)) {
		if (sscanf(line, " %*d: %x:%x %*x:%*x %x %*s %*s %*s %*s %*s %lu", &address, &port, &state, &inode)
		    != 4)
			continue;
		if (state != 10 || !owns_socket(pid, inode))
			continue;
		out[n] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
		out[n++].sin_addr.s_addr = address ? address : htonl(INADDR_LOOPBACK);
	}
	if (file)
		fclose(file);
	return n;
}

/* A stranger: a connection that sends some bytes by chance, or none, and stays. */
static int
connect_garbage(const struct sockaddr_in *to, uint64_t *state)
{
	char bytes[512];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to) != 0)
		return fd;
	size_t n = next_random(state) % 3 ? next_random(state) % sizeof bytes : 0;
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)next_random(state);
	if (n && send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EBADF)
		return -1;
	return fd;
}

enum { STRANGERS = 300 };

void
speak_garbage(struct job *job, struct run *run)
{
	static int fds[STRANGERS];
	struct sockaddr_in ports[16];
	int n_ports = 0;
	uint64_t state = run->seed;
	job_await(job->board, READY, 1);
	for (int i = 0; i < STRANGERS; i++) {
		if (i % 50 == 0) {
			n_ports = 0;
			for (int r = 0; r < run->n; r++)
				n_ports += listening(job->pid[r], ports + n_ports, 16 - n_ports);
		}
		fds[i] = n_ports ? connect_garbage(&ports[next_random(&state) % (uint64_t)n_ports], &state) : -1;
		job_add(job->board, GARBAGE, fds[i] >= 0);
		if (i == STRANGERS / 2)
			job_set(job->board, READY_TOO, 1);
		if (i > STRANGERS / 2)
			sleep_ms(1);
	}
	job_await(job->board, FAILED, (uint64_t)run->n);
	for (int i = 0; i < STRANGERS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void
meet_strangers(struct rank *me)
{
	struct counts before = count();
	blinkConfig_t config = config_of(me);
	blinkUniqueId_t id;
	config.timeoutMs = (int64_t)(5000 * job_slack());
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	if (!job_id(me, 0, 0, &id))
		return;
	job_set(me->board, READY, 1);
	job_at(me, "wait for the strangers");
	job_await(me->board, READY_TOO, 1);
	job_at(me, "init among strangers");
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	job_need(me, result == blinkSuccess, "init: %d: %s", (int)result, error.text);
	for (uint64_t i = 0; comm && i < 60; i++) {
		flight_run(me, comm, 10, 1025, i);
		sleep_ms(2);
	}
	job_need(me, job_get(me->board, GARBAGE) > STRANGERS / 2, "%d strangers",
	    (int)job_get(me->board, GARBAGE));
	blinkCommDestroy(comm);
	job_add(me->board, FAILED, 1);
	expect_counts(me, before, false);
}

/* ---- little memory, few files ---- */

static long
virtual_pages(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (file && fscanf(file, "%ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages;
}

/* Join and call, with errors where there are any; nothing ends the process or hangs. */
void
try_all(struct rank *me)
{
	const struct run *run = me->arg;
	blinkConfig_t config = config_of(me);
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	blinkUniqueId_t id;
	if (!job_id(me, 0, run->victim ? 0 : 1, &id))
		return;
	job_barrier(me, READY_TOO, me->n);
	struct rlimit limit;
	int resource = strcmp(run->fault->name, "few files") == 0 ? RLIMIT_NOFILE : RLIMIT_AS;
	rlim_t most = resource == RLIMIT_NOFILE ? (rlim_t)(count_files() + run->limit)
	    : (rlim_t)virtual_pages() * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)run->limit << 18);
	getrlimit(resource, &limit);
	limit.rlim_cur = most;
	if (me->rank == run->victim)
		job_need(me, setrlimit(resource, &limit) == 0, "setrlimit");
	int64_t began = job_now();
	job_at(me, "init with limit %d", run->limit);
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	if (result == blinkSuccess) {
		began = job_now();
		job_at(me, "calls with limit %d", run->limit);
		result = flight_try(me, comm, 5, 1025, 1);
		snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	}
	limit.rlim_cur = limit.rlim_max;
	setrlimit(resource, &limit);
	expect_error(me, result, error.text, began, ANY | 1 << blinkSuccess,
	    me->rank == run->victim ? -1 : run->victim);
	blinkCommDestroy(comm);
	go_on(me, all_but(run));
}

/* Shared memory of 32 pages for all. */
void
little_shm(struct rank *me)
{
	blinkConfig_t config = config_of(me);
	blinkError_t error = { "" };
	blinkComm_t comm = NULL;
	blinkUniqueId_t id;
	if (!job_id(me, 0, 0, &id))
		return;
	job_at(me, "init in little shared memory");
	int64_t began = job_now();
	blinkResult_t result = blinkCommInitRank(&comm, me->n, &id, me->rank, &config, &error);
	if (result == blinkSuccess) {
		began = job_now();
		result = flight_try(me, comm, 10, 40001, 1);
		snprintf(error.text, sizeof error.text, "%s", blinkCommGetError(comm));
	}
	expect_error(me, result, error.text, began, ANY | 1 << blinkSuccess, -1);
	blinkCommDestroy(comm);
}
