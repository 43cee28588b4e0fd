/* Measured times of hierarchies, a line each. */
#include "hierarchy/hierarchy.h"

#include <stdio.h>
#include <string.h>

#define MEASURED_MOST INT64_C(1000000000000000)		/* ns: 11 days */

/* A line of the text. */
struct line {
	const char *label, *text;
	int number, size;
};

static Status
fail_line(Ctx *ctx, const struct line *line, const char *wanted)
{
	char found[41];
	snprintf(found, sizeof found, "%.*s", line->size < 40 ? line->size : 40, line->text);
	return fail(ctx, BAD_INPUT, "%.200s:%d: %s: want %s", line->label, line->number, line->size ? found : "empty",
	    wanted);
}

/* The field up to a comma or the end, without blanks around it; *at: what follows. False: none, or too long. */
static bool
next_field(const char **at, const char *end, char *field, size_t room)
{
	const char *first = *at, *comma = first < end ? memchr(first, ',', (size_t)(end - first)) : NULL;
	const char *last = comma ? comma : end;
	*at = comma ? comma + 1 : end;
	while (first < last && (*first == ' ' || *first == '\t'))
		first++;
	while (last > first && (last[-1] == ' ' || last[-1] == '\t'))
		last--;
	size_t n = (size_t)(last - first);
	if (n == 0 || n >= room || memchr(first, '\0', n))
		return false;
	memcpy(field, first, n);
	field[n] = '\0';
	return true;
}

static Status
read_line(Ctx *ctx, const struct line *line, Measurement *out)
{
	char field[3][80];
	const char *at = line->text, *end = at + line->size;
	for (int i = 0; i < 3; i++)
		if (!next_field(&at, end, field[i], sizeof field[i]))
			return fail_line(ctx, line, "hierarchy,bytes,us, as 4x8x4,134217728,16400");
	if (at < end || line->text[line->size - 1] == ',')
		return fail_line(ctx, line, "three values: hierarchy,bytes,us");
	*out = (Measurement){ .line = line->number };
	if (!hierarchy_parse(field[0], &out->layers))
		return fail_line(ctx, line, "a hierarchy first: numbers from 2 on, as 4x8x4");
	if (!decimal_parse(field[1], strlen(field[1]), 1, &out->m) || out->m < 1 || out->m > LIMIT_MESSAGE)
		return fail_line(ctx, line, "bytes second: a number from 1 to 2^53");
	if (!decimal_parse(field[2], strlen(field[2]), NS_PER_US, &out->time) || out->time < 1
	    || out->time > MEASURED_MOST)
		return fail_line(ctx, line, "us third: a number above 0, at most 1e12");
	return OK;
}

static bool
is_head(const struct line *line)
{
	static const char head[] = "hierarchy,bytes,us";
	size_t n = sizeof head - 1;
	return line->number == 1 && line->size == (int)n && memcmp(line->text, head, n) == 0;
}

Status
measurements_read(Ctx *ctx, const char *label, const char *text, size_t size, Measurement **out, int *n)
{
	const char *end = text + size;
	struct line line = { .label = label };
	int used = 0, lines = 1;
	for (const char *at = text; at < end; at++)
		lines += *at == '\n';
	if (lines > LIMIT_MEASUREMENTS)
		return fail(ctx, LIMIT, "%.200s: %d lines: want at most %d", label, lines, LIMIT_MEASUREMENTS);
	TRY(NEW(ctx, *out, lines));
	while (text < end) {
		const char *feed = memchr(text, '\n', (size_t)(end - text)), *stop = feed ? feed : end;
		line.number++;
		line.text = text;
		line.size = (int)(stop - text);
		line.size -= line.size > 0 && stop[-1] == '\r';
		text = feed ? feed + 1 : end;
		if (line.size > 0 && line.text[0] != '#' && !is_head(&line))
			TRY(read_line(ctx, &line, &(*out)[used++]));
	}
	*n = used;
	return used > 0 ? OK : fail(ctx, BAD_INPUT, "%.200s: no measurement: want lines of hierarchy,bytes,us", label);
}
