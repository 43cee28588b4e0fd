/* What the files that write the page of `blinkc report` share. */
#ifndef BLINK_EMIT_HTML_H
#define BLINK_EMIT_HTML_H

#include "page.h"

/* As text, or as an attribute in double quotes; control characters become U+FFFD. */
void html_text(Text *out, const char *string);

/* A string of JSON that neither ends a script nor begins a comment in one. */
void html_json(Text *out, const char *string);

void html_count(Text *out, long long n);		/* 1,263 */
void html_plural(Text *out, long long n, const char *one);	/* 1 file, 1,263 files */
void html_rate(Text *out, Frac bytes);			/* GB/s, 6 significant digits */
void html_ratio(Text *out, Frac achieved, Frac bound);	/* 1.000 is for what reaches the bound */

/* GPUs by their numbers in the machine: 0,1,2,5; short: 0-2,5 */
void html_gpus(Text *out, const int *gpu, int n, bool brief);

/* Where the page shows a job: allreduce/0,1,4 or broadcast/0,1,4/1, where 1 is the root's GPU; with more than one series its
 * label behind that. */
void html_place(Text *out, const Page *page, int series, const IndexEntry *job);

/* Achieved rate and bound of each class: a chart for each number of GPUs and collective. */
void html_charts(const Page *page, Text *out);

/* What its colours mean. */
void html_legend(const Page *page, Text *out);

#endif
