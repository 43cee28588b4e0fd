/* cJSON, which reads documents, writes none. It has two layouts: all in one line, or a line for each member, with tabs.
 * Of the 13 kinds of documents that blinkc writes it would write one with the same bytes, the summary of `check`; files
 * of schedules and topologies would change. A schedule of 2048 ranks, 63 MB, takes 2.3 s of CPU as a tree of cJSON that
 * is printed, and 1.2 GB; here it takes 0.25 s, and 67 MB for the text. libblink and blink-perf write JSON without
 * cJSON, so two writers would stand beside each other. */
#include "base/json_write.h"

#include <assert.h>
#include <string.h>

static void
put_line_break(JsonWriter *w, int level)
{
	text_put(w->out, "\n");
	for (int i = 0; i < level + w->indent; i++)
		text_add(w->out, "  ", 2);
}

/* What stands between the value before and this one; true: a blank follows the colon of a key. */
static bool
separate(JsonWriter *w)
{
	if (w->depth == 0)
		return true;
	JsonStyle style = w->open[w->depth - 1].style;
	bool object = w->open[w->depth - 1].object, any = w->open[w->depth - 1].any;
	w->open[w->depth - 1].any = true;
	if (any)
		text_add(w->out, ", ", style == JSON_LINE ? 2 : 1);
	else if (object && style == JSON_LINE)
		text_add(w->out, " ", 1);
	if (style == JSON_BLOCK)
		put_line_break(w, w->depth);
	else if (style == JSON_ROWS || w->new_line)
		text_add(w->out, "\n", 1);
	w->new_line = false;
	return style != JSON_TIGHT;
}

/* Lines end at U+2028 and U+2029 in some scripts; '<', '>' and '&' could begin an end tag, a comment or an entity. */
static void
put_script_string(Text *out, const char *string)
{
	text_put(out, "\"");
	size_t n;
	for (const char *c = string; *c; c += n) {
		int32_t code;
		n = character_at(c, CHARACTER_MOST, &code);
		if (!is_printable(code))
			text_put(out, "\\ufffd");
		else if (strchr("\"\\<>&", *c))
			text_printf(out, "\\u%04x", (unsigned char)*c);
		else
			text_add(out, c, n);
	}
	text_put(out, "\"");
}

void
json_value(JsonWriter *w, const char *name)
{
	bool blank = separate(w);
	if (!name)
		return;
	text_json(w->out, name);
	text_add(w->out, ": ", blank ? 2 : 1);
}

static void
begin(JsonWriter *w, const char *name, JsonStyle style, bool object)
{
	json_value(w, name);
	text_add(w->out, object ? "{" : "[", 1);
	assert(w->depth < JSON_DEPTH);
	w->open[w->depth].style = style;
	w->open[w->depth].object = object;
	w->open[w->depth++].any = false;
}

void
json_object(JsonWriter *w, const char *name, JsonStyle style)
{
	begin(w, name, style, true);
}

void
json_array(JsonWriter *w, const char *name, JsonStyle style)
{
	begin(w, name, style, false);
}

void
json_end(JsonWriter *w)
{
	JsonStyle style = w->open[--w->depth].style;
	bool object = w->open[w->depth].object;
	if (style == JSON_BLOCK || style == JSON_ROWS)
		put_line_break(w, w->depth);
	else if (style == JSON_LINE && object)
		text_add(w->out, " ", 1);
	text_add(w->out, object ? "}" : "]", 1);
}

void
json_raw(JsonWriter *w, const char *name, const char *json)
{
	json_value(w, name);
	text_put(w->out, json);
}

void
json_string(JsonWriter *w, const char *name, const char *value)
{
	json_value(w, name);
	if (!value)
		text_put(w->out, "null");
	else if (w->in_script)
		put_script_string(w->out, value);
	else
		text_json(w->out, value);
}

void
json_int(JsonWriter *w, const char *name, int value)
{
	json_value(w, name);
	text_int(w->out, value);
}

void
json_int64(JsonWriter *w, const char *name, int64_t value)
{
	json_value(w, name);
	text_printf(w->out, "%lld", (long long)value);
}

void
json_bool(JsonWriter *w, const char *name, bool value)
{
	json_raw(w, name, value ? "true" : "false");
}

void
json_null(JsonWriter *w, const char *name)
{
	json_raw(w, name, "null");
}

void
json_rank(JsonWriter *w, const char *name, int rank)
{
	if (rank < 0)
		json_null(w, name);
	else
		json_int(w, name, rank);
}

void
json_gb(JsonWriter *w, const char *name, Frac bytes)
{
	json_value(w, name);
	text_gb(w->out, bytes);
}

void
json_us(JsonWriter *w, const char *name, int64_t ns)
{
	json_value(w, name);
	text_us(w->out, ns);
}

void
json_ps(JsonWriter *w, const char *name, int64_t ps)
{
	if (ps < 0)
		json_null(w, name);
	else
		json_number(w, name, (double)ps / 1e6);
}

void
json_number(JsonWriter *w, const char *name, double value)
{
	json_value(w, name);
	text_number(w->out, value);
}

void
json_frac(JsonWriter *w, const char *name, Frac value)
{
	json_value(w, name);
	text_printf(w->out, "\"%lld/%lld\"", (long long)value.num, (long long)value.den);
}

void
json_ints(JsonWriter *w, const char *name, const int *value, int n)
{
	bool tight = w->depth && w->open[w->depth - 1].style == JSON_TIGHT;
	json_value(w, name);
	text_add(w->out, "[", 1);
	for (int i = 0; i < n; i++) {
		if (i)
			text_add(w->out, ", ", tight ? 1 : 2);
		text_int(w->out, value[i]);
	}
	text_add(w->out, "]", 1);
}

void
json_names(JsonWriter *w, const char *name, Names names, unsigned set)
{
	json_array(w, name, JSON_LINE);
	for (int i = 0; i < names.n; i++)
		if (set >> i & 1)
			json_string(w, NULL, names.name[i]);
	json_end(w);
}

void
json_new_line(JsonWriter *w)
{
	w->new_line = true;
}

void
json_file(JsonWriter *w, JsonStyle style, const char *format)
{
	json_object(w, NULL, style);
	json_string(w, "format", format);
	json_int(w, "version", 1);
}

void
json_file_end(JsonWriter *w)
{
	json_end(w);
	text_put(w->out, "\n");
}
