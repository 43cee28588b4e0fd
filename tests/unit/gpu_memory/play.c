#include "play.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct processes processes;
_Atomic int *n_left;

struct gpu *
gpu_of(const struct rank *r)
{
	return r->comm->rank->of_backend;
}

bool
meet(struct rank *r)
{
	struct blink_error err = { 0 };
	struct rank_comm *comm = r->comm->rank;
	char mine = 0, all[MOST];
	return bootstrap_allgather(comm->bootstrap, &mine, 1, all, rank_comm_deadline(comm), &err) == blinkSuccess;
}

void
init(struct rank *r)
{
	const blinkConfig_t config = { .timeoutMs = SECONDS * 1000 / 2, .backend = r->backend };
	r->result = blinkCommInitRank(&r->comm, r->n, r->id, r->number, &config, &r->error);
}

static void *
run(void *rank)
{
	struct rank *r = rank;
	init(r);
	if (r->result != blinkSuccess)
		return NULL;
	if (r->play && !r->play(r) && !r->wrong)
		r->wrong = "play";
	blinkCommDestroy(r->comm);
	++*n_left;
	return NULL;
}

void
make_id(blinkUniqueId_t *id)
{
	blinkError_t error = { "" };
	if (blinkGetUniqueId(id, &error) != blinkSuccess) {
		printf("# %s\n", error.text);
		exit(1);
	}
}

bool
content(const struct rank *r)
{
	if (r->result != blinkSuccess)
		printf("# rank %d: %d %s\n", r->number, (int)r->result, r->error.text);
	else if (r->wrong)
		printf("# rank %d: not so: %s\n", r->number, r->wrong);
	return r->result == blinkSuccess && !r->wrong;
}

void
without_vmm(void)
{
	struct blink_error err = { 0 };
	const struct driver *d = NULL;
	if (driver_open(&d, &err) != blinkSuccess)
		exit(1);
	((struct driver *)(uintptr_t)d)->vmm_create = NULL;
}

void
as_threads(struct rank *r, int n, bool (*play)(struct rank *))
{
	static blinkUniqueId_t id;
	make_id(&id);
	for (int i = 0; i < n; i++) {
		r[i] = (struct rank){ .number = i, .n = n, .id = &id, .play = play, .backend = "cuda" };
		if (pthread_create(&r[i].thread, NULL, run, &r[i]))
			abort();
	}
	for (int i = 0; i < n; i++)
		pthread_join(r[i].thread, NULL);
}

bool
threads_play(int n, bool (*play)(struct rank *))
{
	struct rank r[MOST];
	bool good = true;
	as_threads(r, n, play);
	for (int i = 0; i < n; i++)
		good = content(&r[i]) && good;
	return good;
}

pid_t
fork_rank(int to_child[2], blinkUniqueId_t *id)
{
	if (pipe(to_child) != 0)
		abort();
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		alarm(SECONDS);
		if (read(to_child[0], id, sizeof *id) != (ssize_t)sizeof *id)
			_exit(1);
	}
	return child;
}

bool
ends_well(pid_t child)
{
	int status;
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

bool
processes_play(int n, bool (*play)(struct rank *))
{
	blinkUniqueId_t id;
	pid_t child[MOST];
	int to_child[MOST][2];
	bool good = true;
	for (int i = 0; i < n; i++) {
		child[i] = fork_rank(to_child[i], &id);
		if (child[i] == 0) {
			struct rank r = { .number = i, .n = n, .id = &id, .play = play, .backend = "cuda" };
			if (processes.see_own_gpu) {
				char number[16];
				snprintf(number, sizeof number, "%d", i);
				setenv("CUDA_VISIBLE_DEVICES", number, 1);
			}
			if (processes.lack_vmm)
				without_vmm();
			if (processes.on_servers)
				setenv("BLINK_HOST_ID", i < 2 ? "one" : "another", 1);
			run(&r);
			int failed = !content(&r);
			fflush(stdout);
			while (processes.stay && !failed && *n_left < n)
				nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
			_exit(failed);
		}
	}
	make_id(&id);
	for (int i = 0; i < n; i++)
		good = write(to_child[i][1], &id, sizeof id) == (ssize_t)sizeof id && good;
	for (int i = 0; i < n; i++)
		good = ends_well(child[i]) && good;
	return good;
}
