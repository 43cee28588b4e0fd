/* The page of `blinkc report`: report.html with report.css and report.js, in which each {{name}} is replaced by what
 * PART_LIST has for it. It is readable without scripts, and its script loads nothing else. Names come from untrusted
 * files, so they are escaped everywhere. */
#include "verb/report/report.h"

#include "base/digest.h"
#include "report_page.h"	/* report_html, report_css and report_js, made by the Makefile */

#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 1000 };	/* rows of the table that needs no script */

/* ---- parts of the page ---- */

static long long
jobs_of(const Page *page, int coll)
{
	long long n = 0;
	for (int f = 0; f < page->n_files; f++)
		if (coll < 0 || page->file[f].facts.coll == (Collective)coll)
			n += page->file[f].n_jobs;
	return n;
}

static void
put_jobs(Text *out, const Page *page)
{
	bool any = false;
	html_plural(out, jobs_of(page, -1), "job");
	text_put(out, " over ");
	html_plural(out, page->n_sets, "set");
	text_put(out, " of GPUs: ");
	for (int c = 0; c < N_COLLECTIVES; c++) {
		long long n = jobs_of(page, c);
		if (!n)
			continue;
		text_put(out, any ? ", " : "");
		html_count(out, n);
		text_printf(out, " %s", collective_name((Collective)c));
		any = true;
	}
}

/* The generators of the files, each once. */
static void
put_generators(Text *out, const Page *page)
{
	const char *seen[8];
	int n = 0;
	for (int f = 0; f < page->n_files && n < 8; f++) {
		bool known = false;
		for (int i = 0; i < n; i++)
			known = known || strcmp(seen[i], page->file[f].generator) == 0;
		if (known)
			continue;
		text_put(out, n ? ", <bdi>" : "<bdi>");
		html_text(out, page->file[f].generator);
		text_put(out, "</bdi>");
		seen[n++] = page->file[f].generator;
	}
}

static void
put_gpu_names(Text *out, const Page *page)
{
	for (int g = 0; g < page->n_gpus; g++) {
		text_printf(out, "<li><b>%d</b> <bdi>", g);
		html_text(out, page->gpu[g]);
		text_put(out, "</bdi></li>\n");
	}
}

/* Of one series and collective: the numbers of jobs, of files and of jobs at the bound, and extremes. */
static void
put_summary_row(Text *out, const Page *page, int s, Collective coll)
{
	const PageSeries *series = &page->series[s];
	const PageFile *least = NULL;
	int n_jobs = 0, n_files = 0, n_at_bound = 0, trees = 0, depth = 0;
	for (int f = series->first_file; f < series->first_file + series->n_files; f++) {
		const PageFile *file = &page->file[f];
		if (file->facts.coll != coll)
			continue;
		n_jobs += file->n_jobs;
		n_files++;
		n_at_bound += frac_cmp(file->achieved, file->bound) == 0 ? file->n_jobs : 0;
		trees = file->facts.trees > trees ? file->facts.trees : trees;
		depth = file->facts.depth > depth ? file->facts.depth : depth;
		if (!least || frac_double(file->achieved) * frac_double(least->bound) < frac_double(least->achieved)
		    * frac_double(file->bound))
			least = file;
	}
	if (!least)
		return;
	text_printf(out, "<tr><th scope=\"row\">%s</th><td><bdi>", collective_name(coll));
	html_text(out, series->label);
	text_put(out, "</bdi></td><td class=\"n\">");
	html_count(out, n_jobs);
	text_put(out, "</td><td class=\"n\">");
	html_count(out, n_files);
	text_put(out, "</td><td class=\"n\">");
	html_count(out, n_at_bound);
	text_put(out, "</td><td class=\"n\">");
	html_ratio(out, least->achieved, least->bound);
	text_printf(out, "</td><td class=\"n\">%d</td><td class=\"n\">%d</td></tr>\n", trees, depth);
}

static void
put_summary(Text *out, const Page *page)
{
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int s = 0; s < page->n_series; s++)
			put_summary_row(out, page, s, (Collective)c);
}

static void
put_class_row(Text *out, const Page *page, const PageFile *file)
{
	const IndexEntry *job = file->first;
	text_put(out, "<tr><th scope=\"row\">");
	html_gpus(out, job->gpu, job->n, false);
	text_printf(out, "</th><td>%s</td><td class=\"n\">", collective_name(file->facts.coll));
	if (job->root >= 0)
		text_int(out, job->gpu[job->root]);
	text_put(out, "</td><td><bdi>");
	html_text(out, page->series[file->series].label);
	text_put(out, "</bdi></td><td class=\"n\">");
	html_rate(out, file->achieved);
	put_assumed(out, file->assumed);
	text_put(out, "</td><td class=\"n\">");
	html_rate(out, file->bound);
	text_put(out, "</td><td class=\"n\">");
	html_ratio(out, file->achieved, file->bound);
	text_printf(out, "</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td>", file->facts.trees,
	    file->facts.depth);
	for (int i = 0; i < file->facts.n_baselines; i++) {
		const Baseline *baseline = &file->facts.baseline[i];
		text_put(out, i ? "; " : "");
		html_text(out, baseline->name);
		text_printf(out, baseline->rings ? " %.6g" : " none", baseline->rate);
	}
	text_put(out, "</td><td class=\"n\">");
	html_count(out, file->n_jobs);
	text_put(out, "</td><td><bdi>");
	html_text(out, file->path);
	text_put(out, "</bdi></td></tr>\n");
}

static void
put_classes(Text *out, const Page *page)
{
	for (int f = 0; f < page->n_files && f < MAX_ROWS; f++)
		put_class_row(out, page, &page->file[f]);
	if (page->n_files > MAX_ROWS) {
		text_put(out, "<tr><td colspan=\"12\">and ");
		html_count(out, page->n_files - MAX_ROWS);
		text_put(out, " more</td></tr>\n");
	}
}

/* ---- the whole ---- */

/* Base64 of the SHA-256 by which a Content-Security-Policy allows a style or a script. */
static void
put_hash(Text *out, const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char hex[DIGEST_ROOM];
	unsigned byte[33] = { 0 };
	digest_of(text, strlen(text), hex);
	for (int i = 0; i < 32; i++)
		sscanf(hex + strlen("sha256:") + 2 * i, "%2x", &byte[i]);
	text_put(out, "'sha256-");
	for (int i = 0; i < 33; i += 3) {
		unsigned three = byte[i] << 16 | byte[i + 1] << 8 | byte[i + 2];
		for (int k = 0; k < 4; k++)
			text_printf(out, "%c", i == 30 && k == 3 ? '=' : letters[three >> (18 - 6 * k) & 63]);
	}
	text_put(out, "'");
}

/* name between the braces, what is written there */
#define PART_LIST(X) \
	X("name", html_text(out, page->name)) \
	X("digest", html_text(out, page->digest)) \
	X("n-gpus", html_count(out, page->n_gpus)) \
	X("gpu-names", put_gpu_names(out, page)) \
	X("jobs", put_jobs(out, page)) \
	X("files", html_plural(out, page->n_files, "file")) \
	X("makers", put_generators(out, page)) \
	X("version", html_text(out, "blinkc " BLINK_VERSION)) \
	X("times", html_times(page, out)) \
	X("summary", put_summary(out, page)) \
	X("legend", html_legend(page, out)) \
	X("charts", html_charts(page, out)) \
	X("classes", put_classes(out, page)) \
	X("data", html_data(page, drawing, out)) \
	X("style", text_put(out, report_css)) \
	X("script", text_put(out, report_js)) \
	X("style-hash", put_hash(out, report_css)) \
	X("script-hash", put_hash(out, report_js))

Status
emit_html(Ctx *ctx, const Page *page, const Text *drawing, Text *out)
{
	for (const char *at = report_html, *open; *at; at = strstr(open, "}}") + 2) {
		open = strstr(at, "{{");
		text_add(out, at, open ? (size_t)(open - at) : strlen(at));
		if (!open)
			break;
#define X(name, put) \
		if (strncmp(open, "{{" name "}", strlen("{{" name "}")) == 0) \
			put;
		PART_LIST(X)
#undef X
	}
	return out->failed ? fail_memory(ctx) : OK;
}
