/* Bar charts of the page. A chart has the classes of one collective and one number of GPUs; all charts of a collective
 * have the same scale. The box of a bar is the bound; the bar in it is the rate, dark up to that of the worst root,
 * light up to that of the best. */
#include "verb/report/report.h"

#include <math.h>
#include <string.h>

enum {
	LEFT = 40, TOP = 18, HEIGHT = 150, RIGHT = 6,	/* around the bars, and their height, px */
	/* width of a box, what its bar leaves of it on each side, between classes */
	BAR = 13, INSET = 3, GAP = 9,
	RING = 5, RING_GAP = 1,				/* width of the bar of a baseline, and what is left of it */
	LABEL = 7, LONGEST = 26,			/* px of a letter; letters */
	MAX_BARS = 240					/* of one chart */
};

struct chart {
	const Page *page;
	Collective coll;
	const PageClass *class;
	int n;
	double top;		/* GB/s at HEIGHT */
	double step;		/* between lines */
};

static double
gb(Frac rate)
{
	return frac_double(rate) / 1e9;
}

/* A step of 1, 2 or 5 times a power of ten, so that about five steps reach `most`. */
static void
choose_scale(struct chart *chart, double most)
{
	static const double nice[] = { 1, 2, 5, 10 };
	double power = 1;
	while (power * 50 < most)
		power *= 10;
	while (power > 1e-6 && power * 5 >= most)
		power /= 10;
	chart->step = power;
	for (int i = 0; i < 4 && chart->step * 5 < most; i++)
		chart->step = power * nice[i];
	chart->top = chart->step;
	while (chart->top < most)
		chart->top += chart->step;
}

/* Tenths of a px. */
static int
height(const struct chart *chart, Frac rate)
{
	return (int)(gb(rate) / chart->top * HEIGHT * 10 + 0.5);
}

static void
put_tenths(Text *out, const char *name, int value)
{
	text_printf(out, " %s=\"%d.%d\"", name, value / 10, value % 10);
}

static void
put_rect(Text *out, const struct chart *chart, const char *class, int series, int x, int width, Frac rate)
{
	int h = height(chart, rate);
	text_printf(out, "<rect class=\"%s c%d\" x=\"%d\" width=\"%d\"", class, series % 6, x, width);
	put_tenths(out, "y", (TOP + HEIGHT) * 10 - h);
	put_tenths(out, "height", h);
	text_put(out, " data-value=\"");
	text_gb(out, rate);
	text_put(out, "\"/>");
}

static void
put_bar_title(Text *out, const struct chart *chart, const PageClass *class, int s)
{
	const Page *page = chart->page;
	const PageList *set = &page->set[class->set];
	const PageFile *best = &page->file[class->best[s].file], *worst = &page->file[class->worst[s].file];
	const IndexEntry *job = class->best[s].job;
	text_put(out, "<title>GPUs ");
	html_gpus(out, set->value, set->n, false);
	if (class->n_sets > 1) {
		text_put(out, " and ");
		html_plural(out, class->n_sets - 1, "isomorphic set");
	}
	text_put(out, "\n");
	html_text(out, page->series[s].label);
	text_put(out, ": ");
	html_rate(out, best->achieved);
	text_put(out, " GB/s");
	if (job->root >= 0 && frac_cmp(worst->achieved, best->achieved) != 0) {
		text_printf(out, " from the best root, GPU %d; ", job->gpu[job->root]);
		html_rate(out, worst->achieved);
		text_printf(out, " GB/s from the worst, GPU %d", class->worst[s].job->gpu[class->worst[s].job->root]);
	}
	text_put(out, "\nbound: ");
	html_rate(out, best->bound);
	text_put(out, " GB/s, ratio ");
	html_ratio(out, best->achieved, best->bound);
	text_put(out, "</title>");
}

static void
put_pair(Text *out, const struct chart *chart, const PageClass *class, int s, int x)
{
	const PageFile *file = chart->page->file;
	Frac best, worst;
	if (class->best[s].file < 0)
		return;
	best = file[class->best[s].file].achieved;
	worst = file[class->worst[s].file].achieved;
	text_put(out, "<a tabindex=\"-1\" href=\"#");
	html_place(out, chart->page, s, class->best[s].job);
	text_put(out, "\">");
	put_bar_title(out, chart, class, s);
	text_printf(out, "<rect class=\"hit\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", x, TOP, BAR, HEIGHT);
	put_rect(out, chart, "rate", s, x + INSET, BAR - 2 * INSET, best);
	if (frac_cmp(worst, best) != 0)
		put_rect(out, chart, "worst", s, x + INSET, BAR - 2 * INSET, worst);
	else
		put_rect(out, chart, "all", s, x + INSET, BAR - 2 * INSET, best);
	put_rect(out, chart, "bound", s, x, BAR, file[class->best[s].file].bound);
	text_put(out, "</a>\n");
}

/* What rings would give the job of a class: the best of the roots, as they do not depend on it. */
static void
put_baseline(Text *out, const struct chart *chart, const PageClass *class, int number, int x)
{
	const Page *page = chart->page;
	for (int s = 0; s < page->n_series; s++) {
		const PageFile *file = class->best[s].file < 0 ? NULL : &page->file[class->best[s].file];
		const Baseline *baseline = file ? page_baseline(page, file, number) : NULL;
		if (!baseline)
			continue;
		int h = (int)(baseline->rate / chart->top * HEIGHT * 10 + 0.5);
		text_put(out, "<g class=\"baseline\"><title>");
		html_text(out, baseline->name);
		text_printf(out, baseline->rings ? ": %.6g GB/s by rings</title>" : ": no ring</title>",
		    baseline->rate);
		text_printf(out, "<rect class=\"ring r%d\" x=\"%d\" width=\"%d\"", number % 2, x, RING);
		put_tenths(out, "y", (TOP + HEIGHT) * 10 - h);
		put_tenths(out, "height", h);
		text_put(out, " data-value=\"");
		text_number(out, baseline->rate);
		text_put(out, "\"/></g>\n");
		return;
	}
}

/* 0-2,5, cut where it is too long. Without memory *out fails. */
static size_t
label_text(Text *out, const struct chart *chart, const PageClass *class, char label[LONGEST + 4])
{
	const PageList *set = &chart->page->set[class->set];
	Text text = { 0 };
	html_gpus(&text, set->value, set->n, true);
	size_t n = text.failed ? 0 : text.size < LONGEST ? text.size : LONGEST;
	if (n > 0)
		memcpy(label, text.data, n);
	strcpy(label + n, !text.failed && text.size > n ? "..." : "");
	text_drop(out, &text);
	return strlen(label);
}

static void
put_axis(Text *out, const struct chart *chart, int width)
{
	text_printf(out, "<text class=\"unit\" x=\"%d\" y=\"10\">GB/s</text>", LEFT - 6);
	for (int i = 0; i * chart->step <= chart->top * 1.0001; i++) {
		int y = TOP + HEIGHT - (int)(i * chart->step / chart->top * HEIGHT + 0.5);
		text_printf(out, "<path class=\"%s\" d=\"M%d %d.5H%d\"/><text class=\"tick\" x=\"%d\" y=\"%d\">",
		    i ? "line" : "axis", LEFT, y, width, LEFT - 6, y + 4);
		text_number(out, i * chart->step);
		text_put(out, "</text>");
	}
	text_put(out, "\n");
}

/* Of more classes than fit, a sample at equal distances, from the highest bound to the lowest. */
static const PageClass *
shown_class(const struct chart *chart, int i, int n_shown)
{
	return &chart->class[n_shown == chart->n ? i : (int)((int64_t)i * (chart->n - 1) / (n_shown - 1))];
}

static void
put_class(Text *out, const struct chart *chart, const PageClass *class, int x, int wide)
{
	char label[LONGEST + 4];
	int n_series = chart->page->n_series;
	label_text(out, chart, class, label);
	text_printf(out,
	    "<g class=\"class\"><text class=\"gpus\" transform=\"translate(%d %d) rotate(-90)\">%s</text>\n",
	    x + wide / 2 + 4, TOP + HEIGHT + 8, label);
	for (int s = 0; s < n_series; s++)
		put_pair(out, chart, class, s, x + s * BAR);
	for (int k = 0; k < chart->page->n_baselines; k++)
		put_baseline(out, chart, class, k, x + n_series * BAR + k * (RING + RING_GAP) + RING_GAP);
	text_put(out, "</g>\n");
}

static void
put_svg(Text *out, const struct chart *chart, int n_shown)
{
	char label[LONGEST + 4];
	size_t longest = 0;
	int wide = chart->page->n_series * BAR + chart->page->n_baselines * (RING + RING_GAP), slot = wide + GAP,
	    width = LEFT + n_shown * slot + RIGHT;
	for (int i = 0; i < n_shown; i++) {
		size_t n = label_text(out, chart, shown_class(chart, i, n_shown), label);
		longest = n > longest ? n : longest;
	}
	int all = TOP + HEIGHT + 12 + (int)longest * LABEL;
	text_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"group\" width=\"%d\" height=\"%d\" "
	    "viewBox=\"0 0 %d %d\" ",
	    width, all, width, all);
	text_printf(out, "aria-label=\"%s over %d GPUs: rate and bound of each isomorphism class, GB/s\">\n",
	    collective_name(chart->coll), chart->page->set[chart->class->set].n);
	put_axis(out, chart, width);
	for (int i = 0; i < n_shown; i++)
		put_class(out, chart, shown_class(chart, i, n_shown), LEFT + i * slot + GAP / 2, wide);
	text_put(out, "</svg>");
}

static void
put_chart(Text *out, const struct chart *chart)
{
	int n_sets = 0, n_shown = chart->n < MAX_BARS ? chart->n : MAX_BARS;
	for (int i = 0; i < chart->n; i++)
		n_sets += chart->class[i].n_sets;
	text_put(out, "<figure><figcaption><b>");
	html_plural(out, chart->page->set[chart->class->set].n, "GPU");
	text_put(out, "</b> ");
	html_plural(out, n_sets, "set");
	if (n_sets > 1) {
		text_put(out, chart->n < n_sets ? ", " : ", no two isomorphic");
		if (chart->n < n_sets)
			text_printf(out, chart->n > 1 ? "%d isomorphism classes" : "all isomorphic", chart->n);
	}
	if (n_shown < chart->n)
		text_printf(out, "; %d are shown, evenly spaced by bound", n_shown);
	text_put(out, "</figcaption>\n");
	put_svg(out, chart, n_shown);
	text_put(out, "</figure>\n");
}

static double
highest(const Page *page, const PageClass *class, int n)
{
	double most = 0;
	for (int i = 0; i < n; i++) {
		for (int s = 0; s < page->n_series; s++) {
			const PageFile *file = class[i].best[s].file < 0 ? NULL : &page->file[class[i].best[s].file];
			most = file ? fmax(most, gb(file->bound)) : most;
			for (int k = 0; file && k < file->facts.n_baselines; k++)
				most = fmax(most, file->facts.baseline[k].rate);
		}
	}
	return most;
}

void
html_charts(const Page *page, Text *out)
{
	for (int begin = 0, end; begin < page->n_classes; begin = end) {
		const PageClass *class = &page->class[begin];
		struct chart chart = { .page = page, .coll = class->coll };
		for (end = begin + 1; end < page->n_classes && page->class[end].coll == class->coll;)
			end++;
		choose_scale(&chart, highest(page, class, end - begin));
		text_printf(out, "<h3>%s</h3>\n<div class=\"charts\">\n", collective_name(class->coll));
		for (int i = begin, next; i < end; i = next) {
			int n = page->set[page->class[i].set].n;
			for (next = i + 1; next < end && page->set[page->class[next].set].n == n;)
				next++;
			chart.class = &page->class[i];
			chart.n = next - i;
			put_chart(out, &chart);
		}
		text_put(out, "</div>\n");
	}
}

static void
put_swatch(Text *out, const char *class, int series, int x, int width, int y)
{
	text_printf(out, "<rect class=\"%s c%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", class, series % 6, x,
	    y, width, 18 - y);
}

void
html_legend(const Page *page, Text *out)
{
	bool rooted = false;
	for (int c = 0; c < page->n_classes; c++)
		rooted = rooted || collective_rooted(page->class[c].coll);
	text_put(out, "<ul class=\"legend\">\n");
	for (int s = 0; s < page->n_series; s++) {
		text_put(out,
		    "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"14\" height=\"18\" aria-hidden=\"true\">");
		put_swatch(out, "all", s, 3, 8, 3);
		text_put(out, "</svg><span>rate of <bdi>");
		html_text(out, page->series[s].label);
		text_put(out, rooted ? "</bdi>, from the worst root</span></li>\n" : "</bdi></span></li>\n");
	}
	if (rooted) {
		text_put(out,
		    "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"14\" height=\"18\" aria-hidden=\"true\">");
		put_swatch(out, "rate", 0, 3, 8, 3);
		text_put(out, "</svg> from the best root</li>\n");
	}
	text_put(out, "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"14\" height=\"18\" aria-hidden=\"true\">");
	put_swatch(out, "bound", 0, 1, 12, 1);
	text_put(out, "</svg> bound: proven, as each row says</li>\n");
	for (int k = 0; k < page->n_baselines; k++) {
		text_printf(out,
		    "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"14\" height=\"18\" aria-hidden=\"true\">"
		    "<rect class=\"ring r%d\" x=\"4\" y=\"3\" width=\"%d\" height=\"15\"/></svg><span>rings of <bdi>",
		    k % 2, RING);
		html_text(out, page->baseline[k]);
		text_put(out, "</bdi></span></li>\n");
	}
	text_put(out, "</ul>\n");
}
