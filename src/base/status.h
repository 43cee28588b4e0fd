/* Status codes, the context that every pass takes first, and the one error that it keeps. */
#ifndef BLINK_STATUS_H
#define BLINK_STATUS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, exit code of the programs, meaning. USAGE is for programs, and DIFFERENT and IMPLAUSIBLE are for the
 * exits of `blinkc diff` and `blinkc lint` alone. */
#define STATUS_LIST(X)                                                         \
	X(OK, 0, "success") \
	X(INTERNAL, 1, "a defect of the program itself") \
	X(USAGE, 2, "bad usage: an unknown option or a bad value") \
	X(BAD_INPUT, 3, "an input file or a choice of GPUs is not valid") \
	X(LIMIT, 4, "an input is too large, or a search did not end within its limit") \
	X(INFEASIBLE, 5, "the links do not connect the ranks, or not within the limits asked for") \
	X(UNVERIFIED, 6, "a schedule does not do what its collective asks") \
	X(NO_MEMORY, 7, "memory ran out") \
	X(IO, 8, "a file could not be read or written") \
	X(DIFFERENT, 9, "two schedules differ in meaning") \
	X(IMPLAUSIBLE, 10, "a topology has what machines seldom have")

typedef enum {
#define X(name, code, text) name = code,
	STATUS_LIST(X)
#undef X
} Status;

const char *status_text(Status status);
const char *status_name(Status status);		/* "BAD_INPUT" */

typedef struct {
	Status status;
	const char *asked;	/* the member of a request that cannot be met: "max_depth"; NULL: the text says where */
	char text[1024];	/* one line, lower case: where: what was found: what is allowed */
} Error;

/* What a pass may use. `run` keeps what it returns; `scratch` is given back when it returns (arena_mark and
 * arena_release). `log`, if set, receives one line for -v, without its newline. `step`, if set, receives the current
 * step of long work, or NULL where it is the same one, and returns how many ms are left. At `reserve`, which is kept
 * for what follows the work, and below, the work is late and ends with the best result so far. `steps`: of
 * count_steps() so far; no more than `most_steps`. */
typedef struct Ctx {
	Arena run, scratch;
	Error error;
	void (*log)(void *to, const char *line);
	void *log_to;
	int (*step)(void *of, const char *line);
	void *step_of;
	int reserve;
	bool late;
	bool cut_short;		/* some work was late */
	char at[96];		/* the current step, or the one that was cut short first */
	double told;		/* CPU time of this process when a line for -v last had the time of what was done, s */
	int64_t unasked;	/* work since the clock was last looked at */
	int64_t steps, most_steps;
	int64_t pivots;		/* steps of the simplex method that are left: at 1 time is over; 0: any number */
} Ctx;

void ctx_init(Ctx *ctx);
void ctx_free(Ctx *ctx);

/* Keep the first error and return its status. */
Status fail(Ctx *ctx, Status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
Status fail_memory(Ctx *ctx);

/* The same for a request that cannot be met. `asked` is its member, by the name in C; a program puts the name of the
 * option before the text. asked: outlives ctx. */
Status fail_asked(Ctx *ctx, Status status, const char *asked, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void log_verbose(Ctx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Count steps before they are taken, of work that a file asks for: the same number on every machine, where time is not.
 * A step takes about a ns. limit_steps: from now on at most these; 0: any. Fails: LIMIT (label: where). */
void limit_steps(Ctx *ctx, int64_t most_steps);
Status count_steps(Ctx *ctx, const char *label, int64_t steps);

/* Milliseconds that are left for this work, INT_MAX without a limit. */
int progress(Ctx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Work is late from now on. */
void time_is_over(Ctx *ctx);

/* For inner loops: is the time over? `work`, since the last call: about the number of ns; the clock is looked at only
 * every few ms of it. Once it is over it stays so. */
bool out_of_time(Ctx *ctx, int64_t work);

/* The only macro that changes control flow. */
#define TRY(call)                                                              \
	do {                                                                   \
		Status try_status = (call);                                    \
		if (try_status != OK)                                          \
			return try_status;                                     \
	} while (0)

/* Status of p = n zeroed elements from the run or the scratch arena: TRY(NEW(ctx, p, n)). */
#define NEW(ctx, p, n) (((p) = arena_array(&(ctx)->run, (size_t)(n), sizeof *(p))) ? OK : fail_memory(ctx))
#define TEMP(ctx, p, n) (((p) = arena_array(&(ctx)->scratch, (size_t)(n), sizeof *(p))) ? OK : fail_memory(ctx))

/* Likewise of two to eight arrays of n elements each: TRY(TEMP_EACH(ctx, n, p, q)). */
#define NEW_EACH(ctx, n, ...) EACH(__VA_ARGS__)(NEW, ctx, n, __VA_ARGS__)
#define TEMP_EACH(ctx, n, ...) EACH(__VA_ARGS__)(TEMP, ctx, n, __VA_ARGS__)
#define EACH(...) EACH_OF(__VA_ARGS__, EACH_8, EACH_7, EACH_6, EACH_5, EACH_4, EACH_3, EACH_2, )
#define EACH_OF(a, b, c, d, e, f, g, h, each, ...) each
#define EACH_2(one, ctx, n, p, q) (one(ctx, p, n) != OK ? NO_MEMORY : one(ctx, q, n))
#define EACH_3(one, ctx, n, p, ...) (one(ctx, p, n) != OK ? NO_MEMORY : EACH_2(one, ctx, n, __VA_ARGS__))
#define EACH_4(one, ctx, n, p, ...) (one(ctx, p, n) != OK ? NO_MEMORY : EACH_3(one, ctx, n, __VA_ARGS__))
#define EACH_5(one, ctx, n, p, ...) (one(ctx, p, n) != OK ? NO_MEMORY : EACH_4(one, ctx, n, __VA_ARGS__))
#define EACH_6(one, ctx, n, p, ...) (one(ctx, p, n) != OK ? NO_MEMORY : EACH_5(one, ctx, n, __VA_ARGS__))
#define EACH_7(one, ctx, n, p, ...) (one(ctx, p, n) != OK ? NO_MEMORY : EACH_6(one, ctx, n, __VA_ARGS__))
#define EACH_8(one, ctx, n, p, ...) (one(ctx, p, n) != OK ? NO_MEMORY : EACH_7(one, ctx, n, __VA_ARGS__))

#endif
