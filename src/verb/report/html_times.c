/* Charts over the size of messages: of each class one of time, both axes logarithmic, and one of bus bandwidth; and a
 * table of the same numbers. Curves differ in dashes and marks, so that they can be told apart without colours. */
#include "verb/report/report.h"

#include <math.h>

enum {
	/* around the curves, and their size, px */
	LEFT = 52, TOP = 18, WIDTH = 400, HEIGHT = 200, BELOW = 36, RIGHT = 14,
	MARK = 3,					/* half of a mark */
	MOST_CURVES = LIMIT_BASELINES + N_NCCL_VERSIONS + 2,
	STYLES = 6					/* of curves, in report.css */
};

/* What a curve shows: a style, and which time of a point. */
typedef enum { OURS, RING, NCCL, LEAST } CurveKind;

struct curve {
	CurveKind kind;
	int of;			/* the row, or the version */
	int style;
};

struct plot {
	const PageTimes *times;
	const struct curve *curve;
	int n_curves;
	bool bandwidth;		/* else time */
	double x_first, x_last;	/* powers of two of bytes */
	double bottom, top, step;	/* of bandwidth GB/s, of time powers of ten of us */
};

static int64_t
time_of(const PagePoint *point, const struct curve *curve)
{
	switch (curve->kind) {
	case OURS:
		return point->ours;
	case RING:
		return point->ring[curve->of];
	case NCCL:
		return point->nccl_time[curve->of];
	default:
		return point->least;
	}
}

/* All curves of the page; of NCCL's versions the first and the last, as the others are in the table. */
static int
list_curves(const PageTimes *times, struct curve curve[MOST_CURVES])
{
	int n = 0;
	curve[n++] = (struct curve){ OURS, 0, 0 };
	for (int i = 0; i < times->n_rings; i++)
		curve[n++] = (struct curve){ RING, i, 1 + i % 2 };
	if (!times->why_not) {
		curve[n++] = (struct curve){ NCCL, 0, 3 };
		curve[n++] = (struct curve){ NCCL, N_NCCL_VERSIONS - 1, 4 };
	}
	curve[n++] = (struct curve){ LEAST, 0, STYLES - 1 };
	return n;
}

static void
put_curve_name(Text *out, const struct curve *curve)
{
	switch (curve->kind) {
	case OURS:
		text_put(out, "ours");
		break;
	case RING:
		text_printf(out, "rings of %s", baseline_name(curve->of));
		break;
	case NCCL:
		text_printf(out, "choice of NCCL %s", nccl_version_name[curve->of]);
		break;
	default:
		text_put(out, "least of any algorithm");
	}
}

/* Bus bandwidth by time and size, as nccl-tests has it. */
static double
bus_factor(const PageTimes *times)
{
	double n = times->job->n;
	switch (times->job->coll) {
	case ALLREDUCE:
		return 2 * (n - 1) / n;
	case BROADCAST:
	case REDUCE:
		return 1;
	default:
		return (n - 1) / n;
	}
}

/* GB/s; time above 0. */
static double
bus_rate(const PageTimes *times, int64_t m, int64_t time)
{
	return (double)m * bus_factor(times) / (double)time * 1e3;
}

static double
us(int64_t time)
{
	return (double)time / 1e6;
}

/* 1024: 1K; what no such unit divides in full. */
static void
put_size(Text *out, int64_t m)
{
	static const char unit[] = "\0KMG";
	int k = 0;
	while (k < 3 && m % 1024 == 0) {
		m /= 1024;
		k++;
	}
	text_printf(out, "%lld", (long long)m);
	if (k)
		text_add(out, &unit[k], 1);
}

/* ---- scales ---- */

static void
scale_times(struct plot *plot)
{
	double least = INFINITY, most = 0;
	for (int i = 0; i < plot->times->n_points; i++)
		for (int c = 0; c < plot->n_curves; c++) {
			int64_t time = time_of(&plot->times->point[i], &plot->curve[c]);
			least = time > 0 ? fmin(least, us(time)) : least;
			most = fmax(most, us(time));
		}
	plot->bottom = least < INFINITY ? floor(log10(least)) : 0;
	plot->top = fmax(plot->bottom + 1, ceil(log10(fmax(most, 1e-6))));
	plot->step = 1;
}

/* At most six steps of 1, 2 or 5 times a power of ten. */
static void
scale_rates(struct plot *plot)
{
	static const double nice[] = { 1, 2, 5 };
	double most = 1e-3, power = 1e-4;
	for (int i = 0; i < plot->times->n_points; i++)
		for (int c = 0; c < plot->n_curves; c++) {
			const PagePoint *point = &plot->times->point[i];
			int64_t time = time_of(point, &plot->curve[c]);
			most = time > 0 ? fmax(most, bus_rate(plot->times, point->m, time)) : most;
		}
	for (int i = 0; 6 * plot->step < most; i++) {
		power *= i && i % 3 == 0 ? 10 : 1;
		plot->step = power * nice[i % 3];
	}
	plot->top = ceil(most / plot->step) * plot->step;
}

static void
choose_scales(struct plot *plot)
{
	const PageTimes *times = plot->times;
	double least = INFINITY, most = 0;
	for (int i = 0; i < times->n_points; i++) {
		least = fmin(least, log2((double)times->point[i].m));
		most = fmax(most, log2((double)times->point[i].m));
	}
	plot->x_first = most > least ? least : least - 1;
	plot->x_last = most > least ? most : most + 1;
	if (plot->bandwidth)
		scale_rates(plot);
	else
		scale_times(plot);
}

/* Tenths of a px. */
static int
x_of(const struct plot *plot, double power)
{
	return (int)((LEFT + (power - plot->x_first) / (plot->x_last - plot->x_first) * WIDTH) * 10 + .5);
}

static int
y_of(const struct plot *plot, double value)
{
	return (int)((TOP + HEIGHT - (value - plot->bottom) / (plot->top - plot->bottom) * HEIGHT) * 10 + .5);
}

static int
y_of_time(const struct plot *plot, const PagePoint *point, int64_t time)
{
	return y_of(plot, plot->bandwidth ? bus_rate(plot->times, point->m, time) : log10(us(time)));
}

/* ---- one chart ---- */

static void
put_x_axis(Text *out, const struct plot *plot)
{
	int y = TOP + HEIGHT, step = plot->x_last - plot->x_first > 12 ? 5 : 2;
	for (int power = (int)ceil(plot->x_first); power <= plot->x_last; power++) {
		int x = x_of(plot, power);
		if (power % step && plot->x_last - plot->x_first > 2)
			continue;
		text_printf(out, "<path class=\"line\" d=\"M%d.%d %dV%d\"/><text class=\"size\" x=\"%d\" y=\"%d\">",
		    x / 10, x % 10, TOP, y, x / 10, y + 15);
		put_size(out, INT64_C(1) << power);
		text_put(out, "</text>");
	}
	text_printf(out, "<text class=\"size\" x=\"%d\" y=\"%d\">size of the message, bytes</text>\n",
	    LEFT + WIDTH / 2, y + 31);
}

static void
put_y_axis(Text *out, const struct plot *plot)
{
	text_printf(out, "<text class=\"unit\" x=\"%d\" y=\"10\">%s</text>", LEFT - 6, plot->bandwidth ? "GB/s" : "us");
	for (int i = 0; plot->bottom + i * plot->step <= plot->top * 1.0001; i++) {
		double value = plot->bottom + i * plot->step;
		int y = y_of(plot, value) / 10;
		text_printf(out, "<path class=\"%s\" d=\"M%d %d.5H%d\"/><text class=\"tick\" x=\"%d\" y=\"%d\">",
		    i ? "line" : "axis", LEFT, y, LEFT + WIDTH, LEFT - 6, y + 4);
		text_printf(out, "%g</text>", plot->bandwidth ? value : pow(10, value));
	}
	text_put(out, "\n");
}

/* A circle, a square, or a triangle, about a point in tenths of a px; the others have none. */
static void
put_mark(Text *out, const struct curve *curve, int x, int y)
{
	const char *shape = curve->kind == OURS ? "a3 3 0 1 1 0 .01z" : curve->of ? "l3 6h-6z" : "h3v6h-6v-6z";
	int left = curve->kind == OURS ? MARK * 10 : 0, above = curve->kind == OURS ? 0 : MARK * 10;
	if (curve->kind != OURS && curve->kind != NCCL)
		return;
	x += left;
	y -= above;
	text_printf(out, "<path class=\"mark m%d\" d=\"M%d.%d %d.%d%s\"/>", curve->style, x / 10, x % 10, y / 10,
	    y % 10, shape);
}

static void
put_curve(Text *out, const struct plot *plot, const struct curve *curve)
{
	bool open = false;
	text_printf(out, "<g><title>");
	put_curve_name(out, curve);
	text_printf(out, "</title><path class=\"curve k%d\" d=\"", curve->style);
	for (int i = 0; i < plot->times->n_points; i++) {
		const PagePoint *point = &plot->times->point[i];
		int64_t time = time_of(point, curve);
		if (time > 0) {
			int x = x_of(plot, log2((double)point->m)), y = y_of_time(plot, point, time);
			text_printf(out, "%s%d.%d %d.%d", open ? "L" : "M", x / 10, x % 10, y / 10, y % 10);
		}
		open = time > 0;
	}
	text_put(out, "\"/>");
	for (int i = 0; i < plot->times->n_points; i++) {
		const PagePoint *point = &plot->times->point[i];
		int64_t time = time_of(point, curve);
		if (time > 0)
			put_mark(out, curve, x_of(plot, log2((double)point->m)), y_of_time(plot, point, time));
	}
	text_put(out, "</g>\n");
}

static void
put_plot(Text *out, struct plot *plot)
{
	int width = LEFT + WIDTH + RIGHT, height = TOP + HEIGHT + BELOW;
	choose_scales(plot);
	text_printf(out, "<figure><figcaption>%s</figcaption>\n<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
	    "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" aria-label=\"%s over the size of the message: the table "
	    "below has the numbers\">\n", plot->bandwidth ? "bus bandwidth" : "time", width, height, width, height,
	    plot->bandwidth ? "Bus bandwidth, GB/s," : "Time, us,");
	put_x_axis(out, plot);
	put_y_axis(out, plot);
	for (int c = plot->n_curves - 1; c >= 0; c--)
		put_curve(out, plot, &plot->curve[c]);
	text_put(out, "</svg></figure>\n");
}

/* ---- the table ---- */

static void
put_time(Text *out, int64_t time)
{
	if (time < 0)
		text_put(out, "none");
	else
		text_printf(out, "%.2f", us(time));
}

static void
put_point(Text *out, const PageTimes *times, const PagePoint *point)
{
	text_put(out, "<tr><th scope=\"row\" class=\"n\">");
	put_size(out, point->m);
	text_put(out, "</th><td>");
	html_text(out, point->name);
	text_put(out, "</td><td class=\"n\">");
	put_time(out, point->ours);
	text_printf(out, "</td><td class=\"n\">%.4g</td>",
	    point->ours > 0 ? bus_rate(times, point->m, point->ours) : 0.);
	for (int i = 0; i < times->n_rings; i++) {
		text_put(out, "<td class=\"n\">");
		put_time(out, point->ring[i]);
		text_put(out, "</td>");
	}
	for (int v = 0; v < N_NCCL_VERSIONS && !times->why_not; v++) {
		text_printf(out, "<td>%s, %s</td><td class=\"n\">", nccl_algorithm_name[point->nccl[v].algorithm],
		    nccl_protocol_name[point->nccl[v].protocol]);
		put_time(out, point->nccl_time[v]);
		text_put(out, "</td>");
	}
	text_put(out, "<td class=\"n\">");
	put_time(out, point->least);
	text_put(out, "</td></tr>\n");
}

static void
put_table(Text *out, const PageTimes *times)
{
	text_put(out, "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\" class=\"n\">bytes</th>"
	    "<th scope=\"col\">ours</th><th scope=\"col\" class=\"n\">us</th><th scope=\"col\" class=\"n\">GB/s</th>");
	for (int i = 0; i < times->n_rings; i++)
		text_printf(out, "<th scope=\"col\" class=\"n\">rings of %s, us</th>", baseline_name(i));
	for (int v = 0; v < N_NCCL_VERSIONS && !times->why_not; v++)
		text_printf(out, "<th scope=\"col\">NCCL %s</th><th scope=\"col\" class=\"n\">us</th>",
		    nccl_version_name[v]);
	text_put(out, "<th scope=\"col\" class=\"n\">least, us</th></tr></thead>\n<tbody>\n");
	for (int i = 0; i < times->n_points; i++)
		put_point(out, times, &times->point[i]);
	text_put(out, "</tbody>\n</table></div>\n");
}

/* ---- a class ---- */

static void
put_notes(Text *out, const PageTimes *times)
{
	if (times->why_not)
		text_printf(out, "<p>Without choices of NCCL: %s.</p>\n", times->why_not);
	else if (times->left_out)
		text_printf(out, "<p>NCCL also has %s here, which is left out.</p>\n", times->left_out);
}

static void
put_class(Text *out, const PageClass *class, const PageTimes *times)
{
	struct curve curve[MOST_CURVES];
	int n = list_curves(times, curve);
	const IndexEntry *job = times->job;
	text_put(out, "<details><summary>GPUs ");
	html_gpus(out, job->gpu, job->n, false);
	if (job->root >= 0)
		text_printf(out, ", root GPU %d", job->gpu[job->root]);
	if (class->n_sets > 1) {
		text_put(out, ", and ");
		html_plural(out, class->n_sets - 1, "isomorphic set");
	}
	text_put(out, "</summary>\n");
	put_notes(out, times);
	text_put(out, "<div class=\"charts\">\n");
	for (int bandwidth = 0; bandwidth < 2; bandwidth++)
		put_plot(out, &(struct plot){ .times = times, .curve = curve, .n_curves = n,
		    .bandwidth = bandwidth });
	text_put(out, "</div>\n");
	put_table(out, times);
	text_put(out, "</details>\n");
}

static void
put_sample(Text *out, const struct curve *curve)
{
	text_printf(out,
	    "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"44\" height=\"12\" aria-hidden=\"true\">"
	    "<path class=\"curve k%d\" d=\"M1 6H43\"/>", curve->style);
	put_mark(out, curve, 220, 60);
	text_put(out, "</svg><span>");
	put_curve_name(out, curve);
	text_put(out, "</span></li>\n");
}

/* Of the class with most curves. */
static void
put_samples(Text *out, const Page *page)
{
	struct curve curve[MOST_CURVES], most[MOST_CURVES];
	int n_most = 0;
	for (int i = 0; i < page->n_times; i++) {
		int n = list_curves(&page->times[i], curve);
		for (int c = 0; n > n_most && c < n; c++)
			most[c] = curve[c];
		n_most = n > n_most ? n : n_most;
	}
	text_put(out, "<ul class=\"legend\">\n");
	for (int c = 0; c < n_most; c++)
		put_sample(out, &most[c]);
	text_put(out, "</ul>\n");
}

void
html_times(const Page *page, Text *out)
{
	if (!page->n_times)
		return;
	text_put(out, "<section aria-labelledby=\"h-times\">\n"
	    "<h2 id=\"h-times\">Time over the size of messages</h2>\n");
	text_printf(out, "<p>Simulated, of the first set of each class, from its best root; executor: %s. "
	    "<em>Ours</em> is the algorithm with the least time at each size. Rings are executed as ours are; what "
	    "NCCL would choose has its protocols. The least time holds for any algorithm over these links: no "
	    "measurement, but what the links allow.</p>\n", page->executor);
	put_samples(out, page);
	for (int i = 0; i < page->n_times; i++) {
		const PageClass *class = &page->class[i];
		if (i == 0 || class[-1].coll != class->coll)
			text_printf(out, "<h3>%s</h3>\n", collective_name(class->coll));
		put_class(out, class, &page->times[i]);
	}
	if (page->n_times < page->n_classes) {
		text_put(out, "<p>and ");
		html_count(out, page->n_classes - page->n_times);
		text_put(out, " more classes</p>\n");
	}
	text_put(out, "</section>\n");
}

/* ---- as JSON ---- */

static void
put_point_data(JsonWriter *w, const PageTimes *times, const PagePoint *point)
{
	json_object(w, NULL, JSON_TIGHT);
	json_int64(w, "size", point->m);
	json_string(w, "algorithm", point->name);
	json_ps(w, "us", point->ours);
	json_ps(w, "least_us", point->least);
	json_array(w, "rings_us", JSON_TIGHT);
	for (int i = 0; i < times->n_rings; i++)
		json_ps(w, NULL, point->ring[i]);
	json_end(w);
	json_array(w, "nccl", JSON_TIGHT);
	for (int v = 0; v < N_NCCL_VERSIONS && !times->why_not; v++) {
		const NcclChoice *choice = &point->nccl[v];
		json_object(w, NULL, JSON_TIGHT);
		json_string(w, "algorithm", nccl_algorithm_name[choice->algorithm]);
		json_string(w, "protocol", nccl_protocol_name[choice->protocol]);
		json_int(w, "channels", choice->channels);
		if (choice->time > 0)
			json_number(w, "expects_us", choice->time);
		json_ps(w, "us", point->nccl_time[v]);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}

static void
put_class_data(JsonWriter *w, const PageTimes *times)
{
	const IndexEntry *job = times->job;
	json_new_line(w);
	json_object(w, NULL, JSON_TIGHT);
	json_string(w, "collective", collective_name(job->coll));
	json_ints(w, "gpus", job->gpu, job->n);
	json_rank(w, "root", job->root);
	json_string(w, "without_nccl", times->why_not);
	json_string(w, "left_out", times->left_out);
	json_array(w, "points", JSON_TIGHT);
	for (int i = 0; i < times->n_points; i++)
		put_point_data(w, times, &times->point[i]);
	json_end(w);
	json_end(w);
}

void
html_times_data(JsonWriter *w, const Page *page)
{
	if (!page->n_times)
		return;
	json_array(w, "rings", JSON_LINE);
	for (int i = 0; baseline_name(i); i++)
		json_string(w, NULL, baseline_name(i));
	json_end(w);
	json_array(w, "nccl", JSON_LINE);
	for (int v = 0; v < N_NCCL_VERSIONS; v++)
		json_string(w, NULL, nccl_version_name[v]);
	json_end(w);
	json_array(w, "times", JSON_TIGHT);
	for (int i = 0; i < page->n_times; i++)
		put_class_data(w, &page->times[i]);
	json_end(w);
}
