/* Runs of tasks. In an alltoall, a rank sends one block after the other to one rank after the other; in an allreduce by
 * trees of one hop, each segment has an up and a down task. A compiler takes longer than linear time over a function of
 * thousands of cases, so such tasks become one case with the number of the group in it.
 *
 * Greedy: the longest run from the first task that is in none. Extents have fractions in lowest terms; in a run they
 * get the denominator of the first two, of which those of all others are divisors, since steps are equal. */
#include "format/cu_runs.h"
#include "base/array.h"

#include <inttypes.h>

enum {
	PERIOD_MAX = 4,
	TIMES_MIN = 3,			/* two always have equal steps */
	NUMBERS = 4			/* of a task: those that are whole */
};

static const int64_t DENOMINATOR_MAX = 1 << 30;

/* ---- steps ---- */

static void
numbers_of(const struct kernel_task *t, int64_t out[NUMBERS])
{
	out[0] = t->extent->send_block;
	out[1] = t->extent->recv_block;
	out[2] = t->first_lane;
	out[3] = t->publishes;
}

/* Is c as far from b as b is from a? */
static bool
is_even(Frac a, Frac b, Frac c)
{
	Frac first, second;
	return frac_sub(b, a, &first) && frac_sub(c, b, &second) && frac_cmp(first, second) == 0;
}

static bool
have_equal_steps(const struct kernel_task *a, const struct kernel_task *b, const struct kernel_task *c)
{
	int64_t x[NUMBERS], y[NUMBERS], z[NUMBERS];
	numbers_of(a, x);
	numbers_of(b, y);
	numbers_of(c, z);
	for (int i = 0; i < NUMBERS; i++)
		if (z[i] - y[i] != y[i] - x[i])
			return false;
	return is_even(a->extent->begin, b->extent->begin, c->extent->begin)
	    && is_even(a->extent->end, b->extent->end, c->extent->end);
}

/* Of two fractions; 0: it is too large. */
static int64_t
common_denominator(Frac a, Frac b)
{
	if (a.den > DENOMINATOR_MAX || b.den > DENOMINATOR_MAX)
		return a.den == b.den ? a.den : 0;
	int64_t of = a.den / gcd64(a.den, b.den) * b.den;
	return of <= DENOMINATOR_MAX ? of : 0;
}

static bool
is_alike(const struct kernel_task *a, const struct kernel_task *b)
{
	const RankTask *x = a->task, *y = b->task;
	return x->own == y->own && x->output == y->output && x->complete == y->complete && x->n_from == y->n_from
	    && x->n_to == y->n_to && a->shape == b->shape && a->extent->part == b->extent->part
	    && common_denominator(a->extent->begin, b->extent->begin) > 0
	    && common_denominator(a->extent->end, b->extent->end) > 0;
}

/* ---- runs ---- */

static int
times_of(const struct kernel_task *task, int n, int period)
{
	int i = period;
	while (i < n && is_alike(&task[i - period], &task[i])
	    && (i < 2 * period || have_equal_steps(&task[i - 2 * period], &task[i - period], &task[i])))
		i++;
	return i / period;
}

static struct task_run
longest_run(const struct kernel_task *task, int first, int n)
{
	struct task_run best = { first, 1, 1 };
	for (int period = 1; period <= PERIOD_MAX && period <= n - first; period++) {
		int times = times_of(task + first, n - first, period);
		if (times >= TIMES_MIN && times * period > best.times * best.period)
			best = (struct task_run){ first, period, times };
	}
	return best;
}

Status
cu_runs_of(Ctx *ctx, const struct kernel_task *task, int n, struct task_run **out, int *n_out)
{
	int capacity = 0;
	*out = NULL;
	*n_out = 0;
	for (int i = 0; i < n;) {
		TRY(GROW_TEMP(ctx, *out, *n_out, capacity));
		struct task_run run = longest_run(task, i, n);
		(*out)[(*n_out)++] = run;
		i += run.period * run.times;
	}
	return OK;
}

/* ---- text ---- */

/* "7, ", "i, ", "7 + 2 * i, " */
static void
put_stepping(Text *out, int64_t first, int64_t second)
{
	int64_t step = second - first;
	if (first != 0 || step <= 0)
		text_printf(out, "%" PRId64 "%s", first, step > 0 ? " + " : step < 0 ? " - " : "");
	if (step < -1 || step > 1)
		text_printf(out, "%" PRId64 " * ", step > 0 ? step : -step);
	text_put(out, step != 0 ? "i, " : ", ");
}

static void
put_fraction(Text *out, Frac first, Frac second)
{
	int64_t of = common_denominator(first, second);
	put_stepping(out, (int64_t)first.num * (of / first.den), (int64_t)second.num * (of / second.den));
	text_printf(out, "%" PRId64 ", ", of);
}

void
cu_put_run_task(Text *out, const struct kernel_task *task, const struct task_run *run, int k)
{
	const struct kernel_task *a = &task[run->first + k], *b = run->times > 1 ? a + run->period : a;
	int64_t first[NUMBERS], second[NUMBERS];
	numbers_of(a, first);
	numbers_of(b, second);
	text_printf(out, "%d, ", a->shape);
	put_stepping(out, first[0], second[0]);
	put_stepping(out, first[1], second[1]);
	text_printf(out, "%d, ", a->extent->part);
	put_fraction(out, a->extent->begin, b->extent->begin);
	put_fraction(out, a->extent->end, b->extent->end);
	put_stepping(out, first[2], second[2]);
	text_printf(out, "%d, %d, ", a->task->n_from, a->task->n_to);
	put_stepping(out, first[3], second[3]);
	text_printf(out, "%d, %d, %d", a->task->own, a->task->output, a->task->complete);
}
