/* The page of `blinkc report`: report.html, with report.css and report.js in it, and at each {{name}} there what a function here writes. It
 * can be read without scripts, and its script needs nothing but the page. Names come from files that anybody may have written: they are
 * text wherever they stand. */
#include "emit/html.h"

#include "base/digest.h"
#include "report_page.h"	/* report_html, report_css and report_js, made by the Makefile */

#include <stdio.h>
#include <string.h>

enum { MOST_CLASSES = 1000 };	/* rows of the table that needs no script */

/* ---- words ---- */

void
html_text(Text *out, const char *string)
{
	for (const char *c = string; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 127)
			text_put(out, "\xef\xbf\xbd");
		else if (*c == '&')
			text_put(out, "&amp;");
		else if (*c == '<')
			text_put(out, "&lt;");
		else if (*c == '>')
			text_put(out, "&gt;");
		else if (*c == '"')
			text_put(out, "&quot;");
		else
			text_add(out, c, 1);
	}
}

void
html_json(Text *out, const char *string)
{
	text_put(out, "\"");
	for (const char *c = string; *c; c++) {
		if (strncmp(c, "\xe2\x80\xa8", 3) == 0 || strncmp(c, "\xe2\x80\xa9", 3) == 0) {
			/* Lines end there in some scripts. */
			text_put(out, c[2] == '\xa8' ? "\\u2028" : "\\u2029");
			c += 2;
		} else if ((unsigned char)*c < ' ' || strchr("\"\\<>&\177", *c)) {
			text_printf(out, "\\u%04x", (unsigned char)*c);
		} else {
			text_add(out, c, 1);
		}
	}
	text_put(out, "\"");
}

void
html_count(Text *out, long long n)
{
	if (n >= 1000) {
		html_count(out, n / 1000);
		text_printf(out, ",%03lld", n % 1000);
	} else {
		text_printf(out, "%lld", n);
	}
}

void
html_plural(Text *out, long long n, const char *one)
{
	html_count(out, n);
	text_printf(out, n == 1 ? " %s" : " %ss", one);
}

void
html_rate(Text *out, Frac bytes)
{
	char digits[48];
	decimal_text(bytes.num, (Wide)bytes.den * BYTES_PER_GB, 6, digits);
	text_put(out, digits);
}

void
html_ratio(Text *out, Frac achieved, Frac bound)
{
	char digits[16];
	double ratio = bound.num ? frac_double(achieved) / frac_double(bound) : 1;
	bool below = frac_cmp(achieved, bound) < 0;
	int thousandths = (int)(ratio * 1000 + 0.5);
	if (below && thousandths >= 1000)
		thousandths = 999;
	snprintf(digits, sizeof digits, "%d.%03d", thousandths / 1000, thousandths % 1000);
	text_put(out, digits);
}

void
html_gpus(Text *out, const int *gpu, int n, bool brief)
{
	for (int i = 0, next; i < n; i = next) {
		for (next = i + 1; brief && next < n && gpu[next] == gpu[next - 1] + 1;)
			next++;
		text_put(out, i ? "," : "");
		text_int(out, gpu[i]);
		if (next - i == 2)
			next = i + 1;
		if (next - i > 2) {
			text_put(out, "-");
			text_int(out, gpu[next - 1]);
		}
	}
}

/* As encodeURIComponent of JavaScript. */
static void
put_encoded(Text *out, const char *string)
{
	for (const char *c = string; *c; c++) {
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("-_.!~*()", *c);
		if (plain)
			text_add(out, c, 1);
		else
			text_printf(out, "%%%02X", (unsigned char)*c);
	}
}

void
html_place(Text *out, const Page *page, int series, const IndexEntry *job)
{
	text_put(out, collective_name(job->coll));
	text_put(out, "/");
	html_gpus(out, job->gpu, job->n, false);
	if (job->root >= 0)
		text_printf(out, "/%d", job->gpu[job->root]);
	if (page->n_series > 1) {
		text_put(out, job->root >= 0 ? "/" : "//");
		put_encoded(out, page->series[series].label);
	}
}

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
		if (coll < 0 || page->file[f].coll == (Collective)coll)
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

/* Each that made one of the files, once. */
static void
put_makers(const struct part *part)
{
	const Page *page = part->page;
	const char *seen[8];
	int n = 0;
	for (int f = 0; f < page->n_files && n < 8; f++) {
		bool known = false;
		for (int i = 0; i < n; i++)
			known = known || strcmp(seen[i], page->file[f].maker) == 0;
		if (known)
			continue;
		text_put(part->out, n ? ", <bdi>" : "<bdi>");
		html_text(part->out, page->file[f].maker);
		text_put(part->out, "</bdi>");
		seen[n++] = page->file[f].maker;
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

/* Of one series and collective: jobs, files, how many jobs are at the bound, and extremes. */
static void
put_summary_row(const struct part *part, int s, Collective coll)
{
	const PageSeries *series = &part->page->series[s];
	const PageFile *least = NULL;
	int n_jobs = 0, n_files = 0, n_at_bound = 0, trees = 0, depth = 0;
	for (int f = series->first_file; f < series->first_file + series->n_files; f++) {
		const PageFile *file = &part->page->file[f];
		if (file->coll != coll)
			continue;
		n_jobs += file->n_jobs;
		n_files++;
		n_at_bound += frac_cmp(file->achieved, file->bound) == 0 ? file->n_jobs : 0;
		trees = file->trees > trees ? file->trees : trees;
		depth = file->depth > depth ? file->depth : depth;
		if (!least || frac_double(file->achieved) * frac_double(least->bound) < frac_double(least->achieved) * frac_double(file->bound))
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
put_class(const struct part *part, const PageFile *file)
{
	Text *out = part->out;
	const IndexEntry *job = file->first;
	text_put(out, "<tr><th scope=\"row\">");
	html_gpus(out, job->gpu, job->n, false);
	text_printf(out, "</th><td>%s</td><td class=\"n\">", collective_name(file->coll));
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
	text_printf(out, "</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td class=\"n\">", file->trees, file->depth);
	html_count(out, file->n_jobs);
	text_put(out, "</td><td><bdi>");
	html_text(out, file->path);
	text_put(out, "</bdi></td></tr>\n");
}

static void
put_classes(const struct part *part)
{
	for (int f = 0; f < part->page->n_files && f < MOST_CLASSES; f++)
		put_class(part, &part->page->file[f]);
	if (part->page->n_files > MOST_CLASSES) {
		text_put(part->out, "<tr><td colspan=\"11\">and ");
		html_count(part->out, part->page->n_files - MOST_CLASSES);
		text_put(part->out, " more</td></tr>\n");
	}
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

/* ---- what the script reads ---- */

/* "0,1;0,2": a list of lists takes a fifth of its time to parse as one string. */
static void
put_lists(Text *out, const char *name, const PageList *list, int n)
{
	text_printf(out, "\"%s\": \"", name);
	for (int i = 0; i < n; i++) {
		text_put(out, i ? ";" : "");
		html_gpus(out, list[i].value, list[i].n, false);
	}
	text_put(out, "\",\n");
}

/* A number for each job, by series: its set, its order or its file, as the difference to that of the job before it. */
static void
put_column(Text *out, const Page *page, const char *name, size_t of)
{
	int last = 0;
	text_printf(out, "\"%s\": [", name);
	for (int s = 0; s < page->n_series; s++) {
		const PageSeries *series = &page->series[s];
		const int *value = *(int *const *)((const char *)series + of);
		for (int i = 0; i < series->index->n_entries; i++) {
			text_put(out, s || i ? "," : "");
			text_int(out, value[i] - last);
			last = value[i];
		}
	}
	text_put(out, "],\n");
}

static void
put_file_names(Text *out, const Page *page)
{
	text_put(out, "\"file\": [");
	for (int f = 0; f < page->n_files; f++) {
		text_put(out, f ? ",\n[" : "\n[");
		text_int(out, page->file[f].series);
		text_put(out, ",");
		text_int(out, page->file[f].depth);
		text_put(out, ",");
		html_json(out, page->file[f].path);
		text_put(out, "]");
	}
	text_put(out, "],\n");
}

static void
put_data(const struct part *part)
{
	const Page *page = part->page;
	Text *out = part->out;
	text_put(out, "{\n\"collective\": [");
	for (int c = 0; c < N_COLLECTIVES; c++)
		text_printf(out, "%s\"%s\"", c ? ", " : "", collective_name((Collective)c));
	text_put(out, "],\n\"linkClass\": [");
	for (int c = 0; c < N_LINK_CLASSES; c++)
		text_printf(out, "%s\"%s\"", c ? ", " : "", link_class_name((LinkClass)c));
	text_put(out, "],\n\"series\": [");
	for (int s = 0; s < page->n_series; s++) {
		text_put(out, s ? ", " : "");
		html_json(out, page->series[s].label);
	}
	text_put(out, "],\n\"gpu\": [");
	for (int g = 0; g < page->n_gpus; g++) {
		text_put(out, g ? ", " : "");
		html_json(out, page->gpu[g]);
	}
	text_put(out, "],\n");
	put_lists(out, "set", page->set, page->n_sets);
	put_lists(out, "order", page->order, page->n_orders);
	put_column(out, page, "jobSet", offsetof(PageSeries, set));
	put_column(out, page, "jobOrder", offsetof(PageSeries, order));
	put_column(out, page, "jobFile", offsetof(PageSeries, file));
	put_file_names(out, page);
	text_put(out, "\"schedule\": ");
	text_add(out, part->drawing->data, part->drawing->size);
	text_put(out, "\n}");
}

/* An array of numbers; edges as src, dst, number of links, links. */
static void
put_edges(Text *out, const char *name, const Edge *edge, int n)
{
	if (!n)
		return;
	text_printf(out, ",\"%s\":[", name);
	for (int e = 0; e < n; e++) {
		text_put(out, e ? "," : "");
		text_int(out, edge[e].src);
		text_put(out, ",");
		text_int(out, edge[e].dst);
		text_put(out, ",");
		text_int(out, edge[e].n_links);
		for (int l = 0; l < edge[e].n_links; l++) {
			text_put(out, ",");
			text_int(out, edge[e].link[l]);
		}
	}
	text_put(out, "]");
}

static void
put_tree(Text *out, const Segment *segment)
{
	text_printf(out, "{\"o\":\"%lld/%lld\",\"l\":\"%lld/%lld\",\"r\":%d", (long long)segment->offset.num, (long long)segment->offset.den,
	    (long long)segment->length.num, (long long)segment->length.den, segment->tree.root);
	put_edges(out, "u", segment->tree.up, segment->tree.n_up);
	put_edges(out, "d", segment->tree.down, segment->tree.n_down);
	if (segment->n_to) {
		text_put(out, ",\"to\":[");
		html_gpus(out, segment->to, segment->n_to, false);
		text_put(out, "]");
	}
	text_put(out, "}");
}

/* The part of each vertex, or the price of each link, and what follows from it. */
static void
put_proof(Text *out, const Explained *e)
{
	const Bound *bound = &e->sched->bound;
	bool parts = bound->kind == CERTIFICATE_CUT || bound->kind == CERTIFICATE_PARTITION;
	Text why = { 0 };
	text_printf(out, "\"k\":\"%s\",\"proof\":[", certificate_name(bound->kind));
	for (int i = 0; i < (parts ? e->sched->topo->n_vertices : e->sched->topo->n_links); i++) {
		text_put(out, i ? "," : "");
		if (parts)
			text_int(out, bound->part[i]);
		else
			text_printf(out, "\"%lld/%lld\"", (long long)bound->price[i].num, (long long)bound->price[i].den);
	}
	text_put(out, "],\"why\":");
	put_arithmetic(&why, e);
	html_json(out, why.data ? why.data : "");
	out->failed = out->failed || why.failed;
	text_free(&why);
}

/* Where a picture has the middle of each vertex; none of machines of which it would leave something out. */
static void
put_layout(Text *out, const Topology *topo, const Layout *layout)
{
	if (layout->aggregated || layout->left_out)
		return;
	for (int v = 0; v < topo->n_vertices; v++)
		if (layout->spot_of[v] < 0)
			return;
	text_put(out, "\"at\":[");
	for (int v = 0; v < topo->n_vertices; v++) {
		const Spot *spot = &layout->spot[layout->spot_of[v]];
		text_printf(out, "%s%d,%d", v ? "," : "", (int)(spot->x + 0.5), (int)(spot->y + 0.5));
	}
	text_put(out, "],");
}

void
html_schedule(const Explained *e, const Layout *layout, Text *out)
{
	const Schedule *sched = e->sched;
	const Topology *topo = sched->topo;
	text_printf(out, "{\"c\":%d,\"root\":%d,\"n\":%d,\"x\":", (int)sched->coll, sched->root, topo->n_ranks);
	text_gb(out, sched->achieved);
	text_put(out, ",\"b\":");
	text_gb(out, sched->bound.rate);
	text_put(out, ",\"gpu\":[");
	for (int v = 0; v < topo->n_vertices; v++) {
		text_put(out, v ? "," : "");
		html_json(out, topo->vertex[v].id);
	}
	text_put(out, "],\"link\":[");
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		text_printf(out, "%s%d,%d,%d,", l ? "," : "", link->from, link->to, (int)link->class);
		text_gb(out, (Frac){ link->capacity, 1 });
	}
	text_put(out, "],");
	put_layout(out, topo, layout);
	put_proof(out, e);
	text_put(out, ",\"tree\":[");
	for (int t = 0; t < sched->n_segments; t++) {
		text_put(out, t ? "," : "");
		put_tree(out, &sched->segment[t]);
	}
	text_put(out, "]}");
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

/* Base64 of the SHA-256 that a policy knows a style or a script by. */
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
	{ "name", put_name }, { "digest", put_digest }, { "n-gpus", put_n_gpus }, { "gpu-names", put_gpu_names }, { "jobs", put_jobs },
	{ "files", put_files }, { "makers", put_makers }, { "version", put_version }, { "summary", put_summary }, { "legend", put_legend },
	{ "charts", put_charts }, { "classes", put_classes }, { "data", put_data }, { "style", put_style }, { "script", put_script },
	{ "style-hash", put_style_hash }, { "script-hash", put_script_hash },
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
