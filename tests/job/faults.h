/* What the files of this program share. faults.c has the list of faults and those by chance; faults_ranks.c what a rank
 * expects; the others what goes wrong: by the caller, by a peer, by the system. */
#ifndef FAULTS_H
#define FAULTS_H

#include "flight.h"

enum { TIMEOUT_MS = 300, MARGIN_MS = 1000 };

/* Flags of the board. */
enum { READY, READY_TOO, FAILED, STRUCK_AT, GARBAGE, LEFT_OVER, AGAIN, REPORTED };	/* the last: of each rank */

struct fault;

struct run {
	const struct fault *fault;
	const char *directory;
	int n, victim, servers, limit;
	uint64_t seed;
	int timeout_ms;
	bool stops;			/* a trial: the signal is SIGSTOP */
	bool kills;			/* trials: no stops among them */
};

struct fault {
	const char *name;
	job_body *body;
	void (*strike)(struct rank *me, blinkComm_t comm);	/* what the victim does in its place */
	void (*direct)(struct job *job, struct run *run);	/* what the program does meanwhile */
	unsigned codes;			/* that the others may get: bits */
	bool ends;			/* the victim does not live on */
	bool spares_0;			/* rank 0, which made the id, is not the victim */
};

enum {
	REMOTE = 1 << blinkRemoteError, TIMEOUT = 1 << blinkTimeout, MISMATCH = 1 << blinkMismatch,
	ARGUMENT = 1 << blinkInvalidArgument,
	ANY = ~(1 << blinkSuccess | 1 << blinkInternalError | 1 << blinkInProgress)
};

/* ---- what a rank expects ---- */

void expect_error(struct rank *me, blinkResult_t result, const char *text, int64_t began, unsigned codes, int victim);

/* Does it name the victim, or a rank that has reported an error before, and left for it? halves: by the numbers in a
 * split into even and odd ranks. */
bool blames(const struct rank *me, const char *text, int victim, bool halves);
blinkConfig_t config_of(const struct rank *me);

struct counts {
	int files, threads;
};

struct counts count(void);

/* Files and threads as before; those of a hub end when all ranks have come and left. Where some never come to an id,
 * its hub stays for a while, to tell them. */
void expect_counts(struct rank *me, struct counts before, bool hub_stays);

/* The same, where hubs of ids to which some never came may be left: of three descriptors and a thread. */
void expect_hubs(struct rank *me, struct counts before, int most);

/* The ranks of the mask make another communicator, and use it. */
void go_on(struct rank *me, uint64_t mask);
uint64_t all_but(const struct run *run);

/* ns that a rank waits for what the others find out, and so hear in their timeout. */
int64_t patience_ns(const struct rank *me);

/* Until the communicator fails, for so long at most. */
blinkResult_t await_failure(struct rank *me, blinkComm_t comm, blinkError_t *error);

/* Join with other arguments than the rest, and hear that it does not work. */
void init_with(struct rank *me, int n, int rank, const blinkConfig_t *config, const blinkUniqueId_t *id);

/* ---- bodies of faults ---- */

void in_call(struct rank *me);
void dies_at_init(struct rank *me);
void other_root(struct rank *me);
void message_missing(struct rank *me);
void message_size(struct rank *me);
void init_differs(struct rank *me);
void shm_differs(struct rank *me);
void other_schedules(struct rank *me);
void init_refused(struct rank *me);
void meet_strangers(struct rank *me);
void try_all(struct rank *me);
void little_shm(struct rank *me);

/* ---- by chance ---- */

int play_trials(struct run *run, int n_trials);

/* ---- what the victim does in a call ---- */

void be_killed(struct rank *me, blinkComm_t comm);
void exit_early(struct rank *me, blinkComm_t comm);
void be_stopped(struct rank *me, blinkComm_t comm);
void be_late(struct rank *me, blinkComm_t comm);
void leave_early(struct rank *me, blinkComm_t comm);
void make_no_call(struct rank *me, blinkComm_t comm);
void call_more(struct rank *me, blinkComm_t comm);
void call_less(struct rank *me, blinkComm_t comm);
void call_nothing(struct rank *me, blinkComm_t comm);
void call_type(struct rank *me, blinkComm_t comm);
void call_op(struct rank *me, blinkComm_t comm);
void call_collective(struct rank *me, blinkComm_t comm);
void call_in_other_order(struct rank *me, blinkComm_t comm);
void send_instead(struct rank *me, blinkComm_t comm);

/* ---- what the program does meanwhile ---- */

void wake_victim(struct job *job, struct run *run);
void speak_garbage(struct job *job, struct run *run);

#endif
