/* The page of `blinkc report`: report.html with report.css and report.js, in which each {{name}} is replaced by what a
 * function here writes. It is readable without scripts, and its script loads nothing else. Names come from untrusted
 * files, so they are escaped everywhere. */
#include "verb/report/report.h"

#include "base/digest.h"
#include "report_page.h"	/* report_html, report_css and report_js, made by the Makefile */

#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 1000 };	/* rows of the table that needs no script */

/* ---- parts of the page ---- */

struct part {
	const Page *page;
	const Text *drawing;
	Text *out;
};

static void
put_name(const struct part *part)
{
	html_text(part->out, part->page->name);
}

static void
put_digest(const struct part *part)
{
	html_text(part->out, part->page->digest);
}

static void
put_n_gpus(const struct part *part)
{
	html_count(part->out, part->page->n_gpus);
}

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
put_jobs(const struct part *part)
{
	bool any = false;
	html_plural(part->out, jobs_of(part->page, -1), "job");
	text_put(part->out, " over ");
	html_plural(part->out, part->page->n_sets, "set");
	text_put(part->out, " of GPUs: ");
	for (int c = 0; c < N_COLLECTIVES; c++) {
		long long n = jobs_of(part->page, c);
		if (!n)
			continue;
		text_put(part->out, any ? ", " : "");
		html_count(part->out, n);
		text_printf(part->out, " %s", collective_name((Collective)c));
		any = true;
	}
}

static void
put_files(const struct part *part)
{
	html_plural(part->out, part->page->n_files, "file");
}

/* The generators of the files, each once. */
static void
put_generators(const struct part *part)
{
	const Page *page = part->page;
	const char *seen[8];
	int n = 0;
	for (int f = 0; f < page->n_files && n < 8; f++) {
		bool known = false;
		for (int i = 0; i < n; i++)
			known = known || strcmp(seen[i], page->file[f].generator) == 0;
		if (known)
			continue;
		text_put(part->out, n ? ", <bdi>" : "<bdi>");
		html_text(part->out, page->file[f].generator);
		text_put(part->out, "</bdi>");
		seen[n++] = page->file[f].generator;
	}
}

static void
put_version(const struct part *part)
{
	html_text(part->out, "blinkc " BLINK_VERSION);
}

static void
put_gpu_names(const struct part *part)
{
	for (int g = 0; g < part->page->n_gpus; g++) {
		text_printf(part->out, "<li><b>%d</b> <bdi>", g);
		html_text(part->out, part->page->gpu[g]);
		text_put(part->out, "</bdi></li>\n");
	}
}

/* Of one series and collective: the numbers of jobs, of files and of jobs at the bound, and extremes. */
static void
put_summary_row(const struct part *part, int s, Collective coll)
{
	const PageSeries *series = &part->page->series[s];
	const PageFile *least = NULL;
	int n_jobs = 0, n_files = 0, n_at_bound = 0, trees = 0, depth = 0;
	for (int f = series->first_file; f < series->first_file + series->n_files; f++) {
		const PageFile *file = &part->page->file[f];
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
	text_printf(part->out, "<tr><th scope=\"row\">%s</th><td><bdi>", collective_name(coll));
	html_text(part->out, series->label);
	text_put(part->out, "</bdi></td><td class=\"n\">");
	html_count(part->out, n_jobs);
	text_put(part->out, "</td><td class=\"n\">");
	html_count(part->out, n_files);
	text_put(part->out, "</td><td class=\"n\">");
	html_count(part->out, n_at_bound);
	text_put(part->out, "</td><td class=\"n\">");
	html_ratio(part->out, least->achieved, least->bound);
	text_printf(part->out, "</td><td class=\"n\">%d</td><td class=\"n\">%d</td></tr>\n", trees, depth);
}

static void
put_summary(const struct part *part)
{
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int s = 0; s < part->page->n_series; s++)
			put_summary_row(part, s, (Collective)c);
}

static void
put_class_row(const struct part *part, const PageFile *file)
{
	Text *out = part->out;
	const IndexEntry *job = file->first;
	text_put(out, "<tr><th scope=\"row\">");
	html_gpus(out, job->gpu, job->n, false);
	text_printf(out, "</th><td>%s</td><td class=\"n\">", collective_name(file->facts.coll));
	if (job->root >= 0)
		text_int(out, job->gpu[job->root]);
	text_put(out, "</td><td><bdi>");
	html_text(out, part->page->series[file->series].label);
	text_put(out, "</bdi></td><td class=\"n\">");
	html_rate(out, file->achieved);
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
put_classes(const struct part *part)
{
	for (int f = 0; f < part->page->n_files && f < MAX_ROWS; f++)
		put_class_row(part, &part->page->file[f]);
	if (part->page->n_files > MAX_ROWS) {
		text_put(part->out, "<tr><td colspan=\"12\">and ");
		html_count(part->out, part->page->n_files - MAX_ROWS);
		text_put(part->out, " more</td></tr>\n");
	}
}

static void
put_data(const struct part *part)
{
	html_data(part->page, part->drawing, part->out);
}

static void
put_charts(const struct part *part)
{
	html_charts(part->page, part->out);
}

static void
put_legend(const struct part *part)
{
	html_legend(part->page, part->out);
}

static void
put_times(const struct part *part)
{
	html_times(part->page, part->out);
}

/* ---- the whole ---- */

static void
put_style(const struct part *part)
{
	text_put(part->out, report_css);
}

static void
put_script(const struct part *part)
{
	text_put(part->out, report_js);
}

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

static void
put_style_hash(const struct part *part)
{
	put_hash(part->out, report_css);
}

static void
put_script_hash(const struct part *part)
{
	put_hash(part->out, report_js);
}

static const struct {
	const char *name;
	void (*put)(const struct part *part);
} parts[] = {
	{ "name", put_name }, { "digest", put_digest }, { "n-gpus", put_n_gpus }, { "gpu-names", put_gpu_names },
	{ "jobs", put_jobs }, { "files", put_files }, { "makers", put_generators }, { "version", put_version },
	{ "times", put_times }, { "summary", put_summary }, { "legend", put_legend }, { "charts", put_charts },
	{ "classes", put_classes }, { "data", put_data }, { "style", put_style }, { "script", put_script },
	{ "style-hash", put_style_hash },
	{ "script-hash", put_script_hash },
};

Status
emit_html(Ctx *ctx, const Page *page, const Text *drawing, Text *out)
{
	struct part part = { page, drawing, out };
	for (const char *at = report_html, *open; *at; at = strstr(open, "}}") + 2) {
		open = strstr(at, "{{");
		text_add(out, at, open ? (size_t)(open - at) : strlen(at));
		if (!open)
			break;
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
			size_t n = strlen(parts[i].name);
			if (strncmp(open + 2, parts[i].name, n) == 0 && open[2 + n] == '}')
				parts[i].put(&part);
		}
	}
	return out->failed ? fail_memory(ctx) : OK;
}
