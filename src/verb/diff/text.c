/* What changed in meaning, as text: a line for each difference, its kind first (blinkc-diff(1)). */
#include "model/model.h"
#include "verb/diff/comparison.h"

#include <stdio.h>

enum { MAX_SHOWN = 8 };	/* of each kind */

static void
put_line(Text *out, bool indented, const char *kind, const char *line)
{
	text_printf(out, "%s%-10s  ", indented ? "  " : "", kind);
	text_printable(out, line);
	text_put(out, "\n");
}

static void
put_more(Text *out, bool indented, DifferenceKind kind, int n)
{
	char line[64];
	snprintf(line, sizeof line, "%d more; -v shows them", n);
	put_line(out, indented, difference_name(kind), line);
}

void
emit_diff_text(const Comparison *comparison, bool all, Text *out)
{
	const Differences *list = &comparison->list;
	bool named = comparison->file;
	if (list->n == 0 && !all)
		return;
	if (named) {
		text_printable(out, comparison->file);
		text_put(out, "\n");
	}
	for (int i = 0, end; i < list->n; i = end) {
		DifferenceKind kind = list->difference[i].kind;
		for (end = i; end < list->n && list->difference[end].kind == kind; end++)
			if (all || end < i + MAX_SHOWN)
				put_line(out, named, difference_name(kind), list->difference[end].text);
		if (!all && end > i + MAX_SHOWN)
			put_more(out, named, kind, end - i - MAX_SHOWN);
	}
	if (list->n == 0)
		put_line(out, named, "same", "in meaning");
	for (int i = 0; i < list->n_notes && all; i++)
		put_line(out, named, "note", list->note[i]);
}

DifferenceKind
emit_diff_finding(const Comparison *comparison, unsigned fail_on, Text *message, Text *detail)
{
	const Differences *list = &comparison->list;
	int first = 0;
	while (first < list->n && !difference_fails(&list->difference[first], fail_on))
		first++;
	const Difference *difference = &list->difference[first < list->n ? first : 0];
	text_printf(message, "%s: ", difference_name(difference->kind));
	text_printable(message, difference->text);
	if (list->n > 1) {
		Comparison unnamed = *comparison;
		unnamed.file = NULL;
		text_printf(message, "; %d differences", list->n);
		emit_diff_text(&unnamed, false, detail);
	}
	return difference->kind;
}

static int
count_files(const DiffSummary *summary)
{
	int n = 0;
	for (int s = 0; s < N_DIFF_STATES; s++)
		n += summary->count[s];
	return n;
}

/* "3 same, 1 changed, ..." */
static void
put_states(Text *out, const DiffSummary *summary)
{
	for (int s = 0; s < N_DIFF_STATES; s++)
		text_printf(out, s ? ", %d %s" : "%d %s", summary->count[s], diff_state_name((DiffState)s));
}

/* "1 lower, 0 higher of 4; ..." */
static void
put_rates(Text *out, const DiffSummary *summary)
{
	char mean[64];
	text_printf(out, "%d lower, %d higher of %d; ", summary->lower, summary->higher, summary->n_rates);
	if (summary->worst < 1) {
		text_put(out, "worst ");
		text_per_cent(out, summary->worst - 1);
		if (summary->worst_file) {
			text_put(out, " in ");
			text_printable(out, summary->worst_file);
		}
		text_put(out, "; ");
	}
	snprintf(mean, sizeof mean, "geometric mean of new / old %.4f", summary->mean);
	text_put(out, mean);
}

void
emit_diff_text_summary(const DiffSummary *summary, Text *out)
{
	text_printf(out, "files       %d: ", count_files(summary));
	put_states(out, summary);
	text_put(out, "\n");
	if (summary->n_rates == 0)
		return;
	text_put(out, "rate        ");
	put_rates(out, summary);
	text_put(out, "\n");
}

void
emit_diff_line(const DiffSummary *summary, Text *out)
{
	int n = count_files(summary);
	text_printf(out, "%d file%s: ", n, n == 1 ? "" : "s");
	put_states(out, summary);
	if (summary->n_rates) {
		text_put(out, "; rates: ");
		put_rates(out, summary);
	}
}
