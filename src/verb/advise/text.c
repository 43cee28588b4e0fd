/* Advice for people: a table of classes, and the best and the worst sets. */
#include "verb/advise/advise.h"
#include "view/view.h"

#include <stdio.h>

enum { MOST_ROWS = 20, MOST_SETS = 12 };

static void
put_class(const Advice *a, int c, Text *out)
{
	const AdvisedClass *class = &a->class[c];
	text_printf(out, "%5d  %4d  %6d", c + 1, class->n, class->n_sets);
	if (class->planned) {
		text_printf(out, "  %9.6g%c %5d %%  %10.6g", frac_double(class->rate) / 1e9,
		    class->assumed.classes ? '*' : ' ', (int)(class->share * 100 + 0.5),
		    frac_double(class->bound) / 1e9);
	} else {
		text_printf(out, "  %9s  %7s  %10s", "none", "-", "-");
	}
	text_printf(out, "  %-15s ", link_classes_text(class->links).text);
	set_name(&a->b->set[class->set[0]], out);
	if (class->root >= 0)
		text_printf(out, " from %s", a->b->machine->vertex[a->b->set[class->set[0]].gpu[class->root]].id);
	text_put(out, "\n");
}

/* "best        2 of 70 sets of 4 GPUs, 75 GB/s: 0-3 4-7": the sets of classes first .. last. */
static void
put_sets(const Advice *a, const char *name, int first, int last, int all_sets, bool all, Text *out)
{
	const AdvisedClass *class = &a->class[first];
	char rate[40];
	int n = 0, shown = 0;
	for (int c = first; c <= last; c++)
		n += a->class[c].n_sets;
	snprintf(rate, sizeof rate, "%.6g GB/s", frac_double(class->rate) / 1e9);
	text_printf(out, "%-11s %d of %d sets of %d GPUs, %s:", name, n, all_sets, class->n,
	    class->planned ? rate : "no schedule");
	for (int c = first; c <= last; c++)
		for (int i = 0; i < a->class[c].n_sets && (all || shown < MOST_SETS); i++, shown++) {
			text_put(out, " ");
			set_name(&a->b->set[a->class[c].set[i]], out);
		}
	if (shown < n)
		text_printf(out, " and %d more", n - shown);
	text_put(out, "\n");
}

static bool
same_rate(const AdvisedClass *a, const AdvisedClass *b)
{
	return a->planned == b->planned && (!a->planned || frac_cmp(a->rate, b->rate) == 0);
}

/* Classes first .. end - 1 have as many GPUs. */
static void
put_extremes(const Advice *a, int first, int end, bool all, Text *out)
{
	int best = first, worst = end - 1, n = 0;
	for (int c = first; c < end; c++)
		n += a->class[c].n_sets;
	while (best + 1 < end && same_rate(&a->class[best + 1], &a->class[first]))
		best++;
	while (worst > first && same_rate(&a->class[worst - 1], &a->class[end - 1]))
		worst--;
	put_sets(a, "best", first, best, n, all, out);
	if (best < end - 1)
		put_sets(a, "worst", worst, end - 1, n, all, out);
}

void
advise_text(const Advice *a, bool all, Text *out)
{
	const Batch *b = a->b;
	Assumed assumed = { 0 };
	text_put(out, "machine     ");
	text_printable(out, b->base.topo->name);
	text_printf(out, ", %d GPUs\n", b->base.topo->n_ranks);
	text_printf(out, "sets        %d in %d isomorphism classes; %s%s\n", b->n_sets - a->n_disconnected,
	    a->n_classes, collective_name(a->coll), collective_rooted(a->coll) ? " from the best root" : "");
	if (a->n_disconnected)
		text_printf(out, "left out    %d sets that the links do not connect\n", a->n_disconnected);
	if (a->n_classes == 0)
		return;
	text_put(out, "class  GPUs    sets  rate GB/s   of best  bound GB/s  links            for example\n");
	for (int c = 0, row = 0; c < a->n_classes; c++, row++) {
		if (!all && row == MOST_ROWS && a->n_classes > MOST_ROWS + 1) {
			text_printf(out, "  ...   %d classes more: -v\n", a->n_classes - MOST_ROWS);
			break;
		}
		put_class(a, c, out);
		assumed.classes |= a->class[c].assumed.classes;
		assumed.most |= a->class[c].assumed.classes && a->class[c].assumed.most;
		assumed.of_cores |= a->class[c].assumed.of_cores;
	}
	put_starred(out, assumed);
	for (int first = 0, end; first < a->n_classes; first = end) {
		for (end = first + 1; end < a->n_classes && a->class[end].n == a->class[first].n; end++)
			;
		put_extremes(a, first, end, all, out);
	}
}
