#include "format/json_scan.h"

#include "base/limits.h"

#include <string.h>

static Status
unexpected(JsonScan *s, const char *want)
{
	if (s->at == s->size)
		return doc_fail_byte(s->ctx, s->label, s->data, s->at, BAD_INPUT, "end of file: want %s", want);
	size_t more = 1;
	while (s->at + more < s->size && ((unsigned char)s->data[s->at + more] & 0xc0) == 0x80)
		more++;
	return doc_fail_byte(s->ctx, s->label, s->data, s->at, BAD_INPUT, "'%.*s': want %s", (int)more,
	    s->data + s->at, want);
}

static inline char
next_token(JsonScan *s)
{
	s->at = (size_t)(json_skip_blanks(s->data + s->at, s->data + s->size) - s->data);
	return s->at < s->size ? s->data[s->at] : 0;
}

/* The four hex digits of an escape; -1: they are not. */
static int
hex4(const JsonScan *s, size_t at)
{
	int value = 0;
	if (s->size - at < 4)
		return -1;
	for (size_t i = at; i < at + 4; i++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF", *digit = strchr(digits, s->data[i]);
		if (!digit)
			return -1;
		value = value * 16 + (int)((digit - digits) % 16);
	}
	return value;
}

static Status
scan_escape(JsonScan *s)
{
	s->at++;
	if (s->at == s->size || !strchr("\"\\/bfnrtu", s->data[s->at]))
		return unexpected(s, "an escape of JSON");
	if (s->data[s->at++] != 'u')
		return OK;
	int unit = hex4(s, s->at), low = -1;
	if (unit < 0)
		return unexpected(s, "four hex digits");
	if (unit == 0)
		return unexpected(s, "text without NUL");
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return unexpected(s, "the first half of a surrogate pair");
	s->at += 4;
	if (unit < 0xd800 || unit > 0xdbff)
		return OK;
	if (s->size - s->at >= 2 && s->data[s->at] == '\\' && s->data[s->at + 1] == 'u')
		low = hex4(s, s->at + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return unexpected(s, "the second half of a surrogate pair");
	s->at += 6;
	return OK;
}

static Status
scan_string(JsonScan *s)
{
	s->at++;
	for (;;) {
		s->at = (size_t)(json_skip_plain(s->data + s->at, s->data + s->size) - s->data);
		if (s->at == s->size || s->data[s->at] == '"')
			break;
		if ((unsigned char)s->data[s->at] < ' ')
			return doc_fail_byte(s->ctx, s->label, s->data, s->at, BAD_INPUT,
			    "control character 0x%02x in a string: want an escape", s->data[s->at]);
		if (s->data[s->at] == '\\')
			TRY(scan_escape(s));
	}
	if (s->at == s->size)
		return unexpected(s, "'\"'");
	s->at++;
	return OK;
}

static Status
scan_key(JsonScan *s)
{
	if (next_token(s) != '"')
		return unexpected(s, "a key in double quotes");
	const char *key = s->data + s->at + 1;
	TRY(scan_string(s));
	size_t length = (size_t)(s->data + s->at - 1 - key);
	/* Only the first array of that name: duplicates are for doc_check_unique to report. */
	s->list.due = s->depth == 1 && s->list.name && !s->list.begin && strlen(s->list.name) == length
	    && memcmp(key, s->list.name, length) == 0;
	if (next_token(s) != ':')
		return unexpected(s, "':'");
	s->at++;
	return OK;
}

static Status
scan_scalar(JsonScan *s)
{
	static const char *const word[] = { "null", "true", "false" };
	const char *text = s->data + s->at, *rest = json_skip_digits(text, s->data + s->size);
	size_t left = s->size - s->at;
	if (rest) {
		s->at = (size_t)(rest - s->data);
		return OK;
	}
	if (left && *text == '"')
		return scan_string(s);
	size_t length = doc_number_length(text, left);
	for (int i = 0; i < 3 && length == 0; i++)
		if (left >= strlen(word[i]) && memcmp(text, word[i], strlen(word[i])) == 0)
			length = strlen(word[i]);
	if (length == 0)
		return unexpected(s, left && strchr("-0123456789", *text) ? "a number in JSON syntax"
		    : "a JSON value");
	if (length > LIMIT_NUMBER_BYTES)
		return doc_fail_byte(s->ctx, s->label, s->data, s->at, BAD_INPUT,
		    "a number of %zu characters: want at most %d", length, LIMIT_NUMBER_BYTES);
	s->at += length;
	return OK;
}

/* Before a value. An entry that was released counts as one value. */
static Status
count_value(JsonScan *s)
{
	if (s->children && s->depth > 0)
		s->children[s->open[s->depth - 1]]++;
	if (s->list.inside && s->depth == 2) {
		s->n_values = s->list.before + s->list.n++;
		s->n_open = 0;
	}
	return ++s->n_values <= LIMIT_DOC_VALUES ? OK
	    : doc_fail_byte(s->ctx, s->label, s->data, s->at, LIMIT, "more than %d values", LIMIT_DOC_VALUES);
}

static void
begin_list(JsonScan *s)
{
	s->list.inside = true;
	s->list.begin = s->at;
	s->list.before = s->n_values;
	s->n_rest = s->n_open;
}

static void
end_list(JsonScan *s)
{
	s->list.inside = false;
	s->list.end = s->at;
	s->n_open = s->n_rest;
}

/* An array or object with content. */
static void
push(JsonScan *s, bool object)
{
	if (s->children)
		s->children[s->n_open] = 0;
	s->open[s->depth] = s->n_open++;
	s->object[s->depth++] = object;
	if (s->list.inside && s->n_open > s->list.most_open)
		s->list.most_open = s->n_open;
}

/* Numbers of an array and their commas, up to the last number or what is none, as scan_value and scan_after would take
 * them one by one. */
static void
scan_numbers(JsonScan *s)
{
	const char *at = s->data + s->at, *end = s->data + s->size, *next;
	int most = LIMIT_DOC_VALUES - s->n_values - 1, n = 0;
	while (n < most && (next = json_skip_digits(at, end))) {
		next = json_skip_blanks(next, end);
		if (next == end || *next != ',')
			break;
		at = json_skip_blanks(next + 1, end);
		n++;
	}
	s->at = (size_t)(at - s->data);
	s->n_values += n;
	if (s->children)
		s->children[s->open[s->depth - 1]] += n;
}

/* An array of numbers alone, as [3,14], at once, as the links of an edge are; false: it is none, nothing is taken. */
static bool
scan_flat(JsonScan *s)
{
	const char *at = s->data + s->at, *end = s->data + s->size;
	int most = LIMIT_DOC_VALUES - s->n_values, n = 0;
	do {
		at = json_skip_digits(json_skip_blanks(at + 1, end), end);
		if (!at || ++n > most)
			return false;
		at = json_skip_blanks(at, end);
	} while (at < end && *at == ',');
	if (at == end || *at != ']')
		return false;
	s->at = (size_t)(at + 1 - s->data);
	s->n_values += n;
	s->n_open++;
	if (s->list.inside && s->n_open > s->list.most_open)
		s->list.most_open = s->n_open;
	return true;
}

/* One value up to the first value inside it: a scalar, {} or [], or the start of one with content. */
static Status
scan_value(JsonScan *s, bool *opened)
{
	char c = next_token(s);
	bool due = s->list.due && c == '[';
	s->list.due = *opened = false;
	if (json_is_digit(c) && s->depth > 0 && !s->object[s->depth - 1] && !(s->list.inside && s->depth == 2)) {
		scan_numbers(s);
		c = next_token(s);
	}
	TRY(count_value(s));
	if (c != '{' && c != '[')
		return scan_scalar(s);
	if (s->depth == LIMIT_DEPTH)
		return doc_fail_byte(s->ctx, s->label, s->data, s->at, LIMIT, "nesting: want at most %d deep",
		    LIMIT_DEPTH);
	if (c == '[' && !s->children && !due && scan_flat(s))
		return OK;
	s->at++;
	if (next_token(s) == c + 2) {	/* '}' is '{' + 2, as ']' is '[' + 2 */
		s->at++;
		return OK;
	}
	push(s, c == '{');
	*opened = true;
	if (s->children && s->list.begin && s->at == s->list.begin) {
		s->at = s->list.end;
		*opened = false;
	}
	if (due)
		begin_list(s);
	return c == '{' ? scan_key(s) : OK;
}

/* After a value: close what ends here, up to the next value or the end. */
static Status
scan_after(JsonScan *s)
{
	while (s->depth) {
		bool object = s->object[s->depth - 1];
		char c = next_token(s);
		if (c == ',') {
			s->at++;
			return object ? scan_key(s) : OK;
		}
		if (c != (object ? '}' : ']'))
			return unexpected(s, object ? "',' or '}'" : "',' or ']'");
		if (s->list.inside && s->depth == 2)
			end_list(s);
		s->at++;
		s->depth--;
	}
	return OK;
}

Status
json_scan_value(JsonScan *s)
{
	do {
		bool opened;
		TRY(scan_value(s, &opened));
		if (!opened)
			TRY(scan_after(s));
	} while (s->depth);
	return OK;
}

Status
json_scan_file(JsonScan *s)
{
	TRY(json_scan_value(s));
	next_token(s);
	return s->at == s->size ? OK : unexpected(s, "the end of the file");
}
