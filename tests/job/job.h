/* A job of ranks for tests: processes, or threads of one process, which an alarm ends where one of them hangs.
 *
 *	static void body(struct rank *me) { blinkComm_t comm = job_join(me, NULL); ... }
 *	struct job job = { .name = "two ranks", .n = 2, .seconds = 10 };
 *	job_start(&job, body, NULL);
 *	wrong += job_wait(&job);
 *
 * The program that starts jobs calls libblink in jobs alone: it has one thread when it forks. */
#ifndef JOB_H
#define JOB_H

#include "blink.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { JOB_RANKS = 32, JOB_IDS = 64, JOB_FLAGS = 64, JOB_NOTE = 160 };

struct board;				/* memory that all ranks and the program share */

struct rank {
	int rank, n;
	void *arg;
	struct board *board;
	char pad[64];			/* the ranks of a job of threads do not share cache lines */
};

struct job {
	const char *name;
	int n;
	bool threads;			/* else processes */
	int seconds;			/* an alarm after so many ends all of it; scaled as job_margin does */
	bool doomed[JOB_RANKS];		/* that a signal ends this process is no fault */
	/* made by job_start */
	pid_t pid[JOB_RANKS];		/* of each rank's process; of threads, all in the first; 0: ended */
	struct board *board;
	int64_t deadline;
	double seconds_scaled;
};

typedef void job_body(struct rank *me);

void job_start(struct job *job, job_body *body, void *arg);

/* Wait until all have ended; kill them at the alarm, and print which hang and what they did. Returns how many faults
 * there were; each has a line of its own on stdout: "# rank 3: why". */
int job_wait(struct job *job);

/* Both. */
int job_run(const char *name, int n, bool threads, int seconds, job_body *body, void *arg);

/* ---- for ranks ---- */

/* As one of n ranks on so many servers, told apart by BLINK_HOST_ID of its process. One server: nothing. */
void job_server(const struct rank *me, int servers);

/* What the rank does now, for the alarm. */
void job_at(struct rank *me, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Count and print a fault unless `good`, which it returns. At most 20 of a job are printed. */
bool job_need(struct rank *me, bool good, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Id number `slot` of the job, which rank `maker` makes and the others wait for; false: none came in time. */
bool job_id(struct rank *me, int slot, int maker, blinkUniqueId_t *id);

/* Is it there already? */
bool job_have_id(const struct rank *me, int slot, blinkUniqueId_t *id);

/* The communicator of the ranks of the mask, in order, by id `slot`, which their lowest makes; and that of all ranks,
 * by id 0. NULL after a fault. */
blinkComm_t job_join_some(struct rank *me, int slot, uint64_t mask, const blinkConfig_t *config);
blinkComm_t job_join(struct rank *me, const blinkConfig_t *config);

/* Destroy it; a fault where that fails. */
void job_leave(struct rank *me, blinkComm_t comm);

/* The job's number `slot` among those of flags: set it; wait until it is at least `value`, false: at the job's
 * deadline. Ranks that are dead set none, so that a test chooses whom it waits for. */
void job_set(struct board *board, int slot, uint64_t value);
uint64_t job_add(struct board *board, int slot, uint64_t value);
uint64_t job_get(struct board *board, int slot);
bool job_await(struct board *board, int slot, uint64_t value);

/* Until n ranks came to it; each number is for one use. */
bool job_barrier(struct rank *me, int slot, int n);

/* ---- for all ---- */

/* Memory that forked processes share; zeroed. */
void *shared_memory(size_t bytes);
int64_t job_now(void);
void sleep_ms(double ms);

/* Limits of time are multiplied by it: JOB_SLACK of the environment, larger under a sanitizer. */
double job_slack(void);

/* 1 to 8: runnable threads for each CPU here, in the last minute or now. Another time it is another number. */
double job_load(void);

/* What may take `ms` on an idle machine may take so long here. For limits on what is measured: what ranks must agree
 * on, as a timeout of the communicator, has job_slack alone, or a number made before the ranks are. */
double job_margin(double ms);

/* Of this process: open files and threads. Of the machine: files of libblink in /dev/shm. */
int count_files(void);
int count_threads(void);
int count_shm(void);

/* Random numbers: each step, and a function of three numbers. */
uint64_t next_random(uint64_t *state);
uint64_t mixed(uint64_t a, uint64_t b, uint64_t c);

/* "ok NAME" or "not ok NAME: n wrong" on stdout; returns whether there was a fault. */
int job_report(const char *name, int wrong);

#endif
