/* What changed in meaning, for people: a line for each difference, its kind first (blinkc(1), Differences). */
#include "diff.h"

#include <stdio.h>

enum { SHOWN = 8 };	/* of each kind */

/* Names and texts of files are foreign: what could be an escape of a terminal goes. */
static void
put_clean(Text *out, const char *string)
{
	for (const char *c = string; *c; c++)
		text_add(out, (unsigned char)*c < ' ' || *c == 127 ? "?" : c, 1);
}

static void
put_line(Text *out, bool indented, const char *kind, const char *line)
{
	text_printf(out, "%s%-10s  ", indented ? "  " : "", kind);
	put_clean(out, line);
	text_put(out, "\n");
}

static void
put_more(Text *out, bool indented, DifferenceKind kind, int n)
{
	char line[64];
	snprintf(line, sizeof line, "and %d more, which -v shows", n);
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
		put_clean(out, comparison->file);
		text_put(out, "\n");
	}
	for (int i = 0, end; i < list->n; i = end) {
		DifferenceKind kind = list->difference[i].kind;
		for (end = i; end < list->n && list->difference[end].kind == kind; end++)
			if (all || end < i + SHOWN)
				put_line(out, named, difference_name(kind), list->difference[end].text);
		if (!all && end > i + SHOWN)
			put_more(out, named, kind, end - i - SHOWN);
	}
	if (list->n == 0)
		put_line(out, named, "same", "in meaning");
	for (int i = 0; i < list->n_notes && all; i++)
		put_line(out, named, "note", list->note[i]);
}

void
emit_diff_text_summary(const DiffSummary *summary, Text *out)
{
	int n = 0;
	char line[128];
	for (int s = 0; s < N_DIFF_STATES; s++)
		n += summary->count[s];
	text_printf(out, "files       %d: ", n);
	for (int s = 0; s < N_DIFF_STATES; s++)
		text_printf(out, s ? ", %d %s" : "%d %s", summary->count[s], diff_state_name((DiffState)s));
	text_put(out, "\n");
	if (summary->n_rates == 0)
		return;
	text_printf(out, "rate        %d lower, %d higher of %d; ", summary->lower, summary->higher, summary->n_rates);
	if (summary->worst < 1) {
		text_put(out, "worst ");
		text_per_cent(out, summary->worst - 1);
		text_put(out, " in ");
		put_clean(out, summary->worst_file);
		text_put(out, "; ");
	}
	snprintf(line, sizeof line, "geometric mean of new / old %.4f\n", summary->mean);
	text_put(out, line);
}
