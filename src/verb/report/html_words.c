/* Names and numbers of the page: escaped, with units. */
#include "verb/report/report.h"

#include <string.h>

void
html_text(Text *out, const char *string)
{
	size_t n;
	for (const char *c = string; *c; c += n) {
		int32_t code;
		n = character_at(c, CHARACTER_MOST, &code);
		if (!is_printable(code))
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
			text_add(out, c, n);
	}
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
	double ratio = bound.num ? frac_double(achieved) / frac_double(bound) : 1;
	bool below = frac_cmp(achieved, bound) < 0;
	int thousandths = (int)(ratio * 1000 + 0.5);
	if (below && thousandths >= 1000)
		thousandths = 999;
	text_printf(out, "%d.%03d", thousandths / 1000, thousandths % 1000);
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
			text_printf(out, "-%d", gpu[next - 1]);
		}
	}
}

/* As encodeURIComponent of JavaScript. */
static void
put_encoded(Text *out, const char *string)
{
	for (const char *c = string; *c; c++) {
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')
		    || strchr("-_.!~*()", *c);
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
