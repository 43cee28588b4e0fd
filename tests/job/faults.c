/* Faults in a job: a rank that is killed, stopped, late, or leaves; that makes another call than the others, or joins
 * with other arguments; strangers at the ports; little memory and few files. Every other rank must hear of it within
 * the timeout, with a text that names the rank; afterwards the ranks that are left make another communicator, use it,
 * and leave no files, threads or shared memory behind.
 *
 *	faults [-n RANKS] [-s SERVERS] [-d DIRECTORY] [-S SEED] [-r TRIALS [-k]] [FAULT...]
 *
 * -d: has allreduce.json, a schedule of RANKS ranks. -r: so many jobs in which a rank by chance is killed or stopped at
 * a moment by chance, instead of the faults by name; -k: killed alone. Without names: all. */
#include "faults.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* ---- by name ---- */

static const struct fault faults[] = {
	{ "killed", in_call, be_killed, NULL, REMOTE, true, false },
	{ "exits", in_call, exit_early, NULL, REMOTE, true, false },
	{ "stopped", in_call, be_stopped, wake_victim, TIMEOUT, false, false },
	{ "late", in_call, be_late, NULL, TIMEOUT, false, false },
	{ "leaves", in_call, leave_early, NULL, REMOTE, false, false },
	{ "no call", in_call, make_no_call, NULL, TIMEOUT | MISMATCH, false, false },
	{ "larger count", in_call, call_more, NULL, MISMATCH | TIMEOUT, false, false },
	{ "smaller count", in_call, call_less, NULL, MISMATCH | TIMEOUT, false, false },
	{ "no elements", in_call, call_nothing, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other type", in_call, call_type, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other operation", in_call, call_op, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other collective", in_call, call_collective, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other order", in_call, call_in_other_order, NULL, MISMATCH | TIMEOUT, false, false },
	{ "a message instead", in_call, send_instead, NULL, MISMATCH | TIMEOUT, false, false },
	{ "other root", other_root, NULL, NULL, 0, false, false },
	{ "message missing", message_missing, NULL, NULL, 0, false, false },
	{ "message of other size", message_size, NULL, NULL, 0, false, false },
	{ "other number of ranks", init_differs, NULL, NULL, ARGUMENT, false, false },
	{ "same rank twice", init_differs, NULL, NULL, ARGUMENT, false, false },
	{ "never comes", init_differs, NULL, NULL, TIMEOUT, false, false },
	{ "wrong secret", init_differs, NULL, NULL, TIMEOUT | 1 << blinkSystemError | ARGUMENT | REMOTE, false, true },
	{ "dies at init", dies_at_init, NULL, NULL, TIMEOUT, true, true },
	{ "other shared memory", shm_differs, NULL, NULL, MISMATCH, false, false },
	{ "other schedules", other_schedules, NULL, NULL, 0, false, false },
	{ "refused at init", init_refused, NULL, NULL, 0, false, false },
	{ "strangers", meet_strangers, NULL, speak_garbage, 0, false, false },
	{ "few files", try_all, NULL, NULL, 0, false, false },
	{ "little memory", try_all, NULL, NULL, 0, false, false },
	{ "little shared memory", little_shm, NULL, NULL, 0, false, false },
};

enum { N_FAULTS = sizeof faults / sizeof *faults };

static int
run_fault(struct run *run)
{
	struct job job = { .name = run->fault->name, .n = run->n, .seconds = 20 };
	int shm = count_shm();
	job.doomed[run->victim] = run->fault->ends;
	job_start(&job, run->fault->body, run);
	if (run->fault->direct)
		run->fault->direct(&job, run);
	int wrong = job_wait(&job);
	if (count_shm() > shm && ++wrong)
		printf("# %d more files in /dev/shm\n", count_shm() - shm);
	if (wrong)
		printf("# %s: victim %d of %d, limit %d\n", run->fault->name, run->victim, run->n, run->limit);
	return wrong;
}

/* The victim is rank 0, which made the id, another, and the last. Of limits many are tried. */
static int
play_victims(struct run *run)
{
	static const int few[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20 };
	static const int little[] = { 0, 1, 3, 8, 20, 34, 40, 64, 100, 200, 400 };
	bool files = strcmp(run->fault->name, "few files") == 0;
	bool memory = strcmp(run->fault->name, "little memory") == 0;
	int n_limits = files ? (int)(sizeof few / sizeof *few) : memory ? (int)(sizeof little / sizeof *little) : 1;
	bool any = strcmp(run->fault->name, "strangers") == 0 || strcmp(run->fault->name, "refused at init") == 0;
	int victims[] = { 0, 1, run->n - 1 }, wrong = 0;
	for (int v = 0; v < (any ? 1 : files || memory ? 2 : 3); v++) {
		run->victim = victims[v];
		if ((v == 0 && run->fault->spares_0) || (v == 2 && run->n == 2))
			continue;
		for (int i = 0; i < n_limits; i++) {
			run->limit = files ? few[i] : memory ? little[i] : 0;
			wrong += run_fault(run);
		}
	}
	return wrong;
}

static int
play(struct run *run)
{
	char name[128];
	const char *where = run->servers > 1 ? "several servers" : "one server";
	snprintf(name, sizeof name, "%s, %d ranks, %s", run->fault->name, run->n, where);
	if (run->fault->body == other_schedules && !run->directory) {
		printf("skip %s: no schedules\n", name);
		return 0;
	}
	if (run->fault->body == try_all && job_slack() >= 5 && strcmp(run->fault->name, "little memory") == 0) {
		printf("skip %s: a sanitizer takes much\n", name);
		return 0;
	}
	if (run->fault->body != little_shm)
		return job_report(name, play_victims(run));
	/* In a place of its own, where nobody else sees what is mounted. */
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
	    || mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=128k") != 0) {
		printf("skip %s: %s\n", name, strerror(errno));
		return 0;
	}
	int wrong = play_victims(run);
	umount("/dev/shm");
	return job_report(name, wrong);
}

int
main(int argc, char **argv)
{
	struct run run = { .n = 4, .servers = 1, .seed = 1, .timeout_ms = (int)(TIMEOUT_MS * job_load()) };
	int n_trials = 0, failed = 0, n_played = 0;
	for (int c; (c = getopt(argc, argv, "n:s:d:S:r:k")) != -1;) {
		switch (c) {
		case 'n': run.n = atoi(optarg); break;
		case 's': run.servers = atoi(optarg); break;
		case 'd': run.directory = optarg; break;
		case 'S': run.seed = (uint64_t)atol(optarg); break;
		case 'r': n_trials = atoi(optarg); break;
		case 'k': run.kills = true; break;
		default: return 2;
		}
	}
	if (n_trials)
		return play_trials(&run, n_trials);
	for (int i = 0; i < N_FAULTS; i++) {
		bool wanted = optind == argc;
		for (int a = optind; a < argc; a++)
			wanted |= strcmp(argv[a], faults[i].name) == 0;
		if (!wanted)
			continue;
		run.fault = &faults[i];
		n_played++;
		failed |= play(&run);
	}
	if (!n_played)
		printf("not ok faults: no such fault\n");
	return failed || !n_played;
}
