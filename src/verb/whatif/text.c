/* What a loss costs, for people: a line for each job of one loss, or for each of many losses. */
#include "verb/whatif/whatif.h"
#include "view/view.h"

enum { MOST_ROWS = 20 };

static void
put_machine(const WhatIf *w, const char *without, Text *out)
{
	text_put(out, "machine     ");
	text_printable(out, w->b->machine->name);
	text_printf(out, ", %d GPUs%s%s\n", w->b->machine->n_ranks, without ? ", without " : "",
	    without ? without : "");
}

static void
put_more(int n, const char *what, Text *out)
{
	text_printf(out, "  ...   %d %s more: -v\n", n, what);
}

/* ---- one loss ---- */

static void
put_counts(const WhatIf *w, const LossCost *cost, Text *out)
{
	text_printf(out, "jobs        %d sets of GPUs, %s%s: %d slower", cost->n_jobs, collective_name(w->coll),
	    collective_rooted(w->coll) ? " from the best root" : "", cost->count[JOB_SLOWER]);
	if (cost->count[JOB_FASTER])
		text_printf(out, ", %d faster", cost->count[JOB_FASTER]);
	text_printf(out, ", %d not connected any more, ", cost->count[JOB_DISCONNECTED]);
	if (cost->count[JOB_LOST])
		text_printf(out, "%d with a GPU that is lost, ", cost->count[JOB_LOST]);
	text_printf(out, "%d as before\n", cost->count[JOB_SAME]);
	text_printf(out, "mean loss %5.1f %% of the rate of a job\n", cost->mean * 100);
}

static void
put_job(const WhatIf *w, const JobChange *job, Text *out)
{
	char star = job->guessed[0].classes ? '*' : ' ';
	text_printf(out, "%11.6g%c", frac_double(job->before) / 1e9, star);
	star = job->guessed[1].classes ? '*' : ' ';
	if (job->after.num > 0)
		text_printf(out, "%11.6g%c", frac_double(job->after) / 1e9, star);
	else
		text_printf(out, "%11s ", job->state == JOB_LOST ? "lost" : "none");
	text_printf(out, "%6.1f %%  ", job->loss * 100);
	set_name(&w->b->set[job->set], out);
	text_put(out, "\n");
}

static void
put_jobs(const WhatIf *w, const LossCost *cost, bool all, Text *out)
{
	int changed = cost->n_jobs - cost->count[JOB_SAME], shown = 0;
	if (changed == 0)
		return;
	text_put(out, "before GB/s  after GB/s     loss  GPUs\n");
	for (int i = 0; i < cost->n_jobs; i++) {
		if (cost->job[i].state == JOB_SAME)
			continue;
		if (!all && shown == MOST_ROWS && changed > MOST_ROWS + 1) {
			put_more(changed - shown, "jobs", out);
			return;
		}
		put_job(w, &cost->job[i], out);
		shown++;
	}
}

/* ---- many ---- */

static void
put_loss(const WhatIf *w, const LossCost *cost, Text *out)
{
	text_printf(out, "%7.1f %%%8d%8d%6d", cost->mean * 100, cost->count[JOB_SLOWER],
	    cost->count[JOB_DISCONNECTED], cost->count[JOB_LOST]);
	text_printf(out, "%8.1f %%  %-20s ", cost->n_jobs ? cost->job[0].loss * 100 : 0, cost->machine->without);
	if (cost->n_jobs && cost->job[0].loss > 0)
		set_name(&w->b->set[cost->job[0].set], out);
	else
		text_put(out, "-");
	text_put(out, "\n");
}

/* Of the jobs that a loss leaves, the first is the one that it costs most. */
static void
put_ranking(const WhatIf *w, bool all, Text *out)
{
	int n = 0;
	put_machine(w, w->b->base.without, out);
	text_printf(out, "jobs        %d sets of GPUs, %s%s\n", w->n ? w->cost[0].n_jobs : 0, collective_name(w->coll),
	    collective_rooted(w->coll) ? " from the best root" : "");
	while (n < w->n && w->cost[n].count[JOB_SAME] < w->cost[n].n_jobs)
		n++;
	text_printf(out, "losses      %d: %d change jobs\n", w->n, n);
	text_put(out, "mean loss  slower  unconn.  lost    worst  without              worst job, GPUs\n");
	for (int i = 0; i < (all ? w->n : n); i++) {
		if (!all && i == MOST_ROWS && n > MOST_ROWS + 1) {
			put_more(n - i, "losses", out);
			return;
		}
		put_loss(w, &w->cost[i], out);
	}
}

/* Of all jobs that a loss changes; stars: their rates are there to have one. */
static void
put_guesses(const WhatIf *w, Text *out)
{
	Assumed all = { 0 };
	for (int i = 0; i < w->n; i++) {
		for (int k = 0; k < 2 * w->cost[i].n_jobs; k++) {
			const JobChange *job = &w->cost[i].job[k / 2];
			Assumed one = job->state == JOB_SAME ? (Assumed){ 0 } : job->guessed[k % 2];
			all.classes |= one.classes;
			all.most |= one.classes && one.most;
			all.of_cores |= one.of_cores;
		}
	}
	if (!all.classes)
		return;
	if (!w->ranked) {
		put_starred(out, all);
		return;
	}
	text_put(out, "rates       of some jobs");
	put_assumed(out, all);
	text_put(out, "\n");
}

void
whatif_text(const WhatIf *w, bool all, Text *out)
{
	if (w->ranked) {
		put_ranking(w, all, out);
	} else {
		put_machine(w, w->cost[0].machine->without, out);
		put_counts(w, &w->cost[0], out);
		put_jobs(w, &w->cost[0], all, out);
	}
	put_guesses(w, out);
}
