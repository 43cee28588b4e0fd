#include "format/json_reader.h"

#include "base/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fail with a message about the next byte. */
#define FAIL_HERE(r, ...) doc_fail_byte((r)->ctx, (r)->label, (r)->data, (size_t)((r)->at - (r)->data), __VA_ARGS__)

static Status
unexpected(JsonReader *r, const char *want)
{
	int more = 1;
	if (r->at == r->end)
		return FAIL_HERE(r, BAD_INPUT, "end of file: want %s", want);
	while (r->end - r->at > more && ((unsigned char)r->at[more] & 0xc0) == 0x80)
		more++;
	return FAIL_HERE(r, BAD_INPUT, "'%.*s': want %s", more, r->at, want);
}

static inline char
next_token(JsonReader *r)
{
	r->at = json_skip_blanks(r->at, r->end);
	return r->at < r->end ? *r->at : 0;
}

/* ---- strings ---- */

/* The four hex digits of an escape; -1: they are not. */
static int
hex4(const char *at, const char *end)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	int value = 0;
	for (int i = 0; i < 4; i++) {
		const char *digit = at + i < end && at[i] ? strchr(digits, at[i]) : NULL;
		if (!digit)
			return -1;
		value = value * 16 + (int)((digit - digits) % 16);
	}
	return value;
}

static Status
check_escape(JsonReader *r)
{
	r->at++;
	if (r->at == r->end || !strchr("\"\\/bfnrtu", *r->at))
		return unexpected(r, "an escape of JSON");
	if (*r->at++ != 'u')
		return OK;
	int unit = hex4(r->at, r->end), low = -1;
	if (unit < 0)
		return unexpected(r, "four hex digits");
	if (unit == 0)
		return unexpected(r, "text without NUL");
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return unexpected(r, "the first half of a surrogate pair");
	r->at += 4;
	if (unit < 0xd800 || unit > 0xdbff)
		return OK;
	if (r->end - r->at >= 2 && r->at[0] == '\\' && r->at[1] == 'u')
		low = hex4(r->at + 2, r->end);
	if (low < 0xdc00 || low > 0xdfff)
		return unexpected(r, "the second half of a surrogate pair");
	r->at += 6;
	return OK;
}

/* From its quote on; *escaped: it has escapes. */
static Status
check_string(JsonReader *r, bool *escaped)
{
	*escaped = false;
	for (r->at++; (r->at = json_skip_plain(r->at, r->end)) < r->end && *r->at != '"';) {
		if ((unsigned char)*r->at < ' ')
			return FAIL_HERE(r, BAD_INPUT, "control character 0x%02x in a string: want an escape",
			    (unsigned char)*r->at);
		*escaped = true;
		TRY(check_escape(r));
	}
	if (r->at == r->end)
		return unexpected(r, "'\"'");
	r->at++;
	return OK;
}

static char *
put_utf8(char *to, unsigned c)
{
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (int i = n - 1; i > 0; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(first[n > 1 ? n : 0] | c);
	return to + n;
}

/* An escape, behind its backslash: at most as long as what it stands for. */
static char *
unescape(const char **from, const char *end, char *to)
{
	static const char plain[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	char c = *(*from)++;
	if (c != 'u') {
		*to = means[strchr(plain, c) - plain];
		return to + 1;
	}
	unsigned unit = (unsigned)hex4(*from, end);
	*from += 4;
	if (unit >= 0xd800 && unit <= 0xdbff) {
		unit = 0x10000 + ((unit - 0xd800) << 10) + ((unsigned)hex4(*from + 2, end) - 0xdc00);
		*from += 6;
	}
	return put_utf8(to, unit);
}

/* like: NULL, or a text to be shared where it is the same. out: NULL: it is checked only. */
static Status
take_string(JsonReader *r, const char *like, const char **out)
{
	bool escaped;
	const char *from = r->at + 1;
	TRY(check_string(r, &escaped));
	if (!out)
		return OK;
	const char *end = r->at - 1;
	size_t length = (size_t)(end - from);
	if (like && !escaped && strncmp(like, from, length) == 0 && like[length] == 0) {
		*out = like;
		return OK;
	}
	char *to = arena_text(r->texts, from, length);
	if (!to)
		return fail_memory(r->ctx);
	*out = to;
	while (escaped && from < end) {
		char c = *from++;
		if (c == '\\')
			to = unescape(&from, end, to);
		else
			*to++ = c;
	}
	if (escaped)
		*to = 0;
	return OK;
}

/* ---- other scalars ---- */

/* A whole number of more than 2^53, which a double may take for another one. */
static bool
is_rounded(const char *text, double number)
{
	const char *digits = text + (*text == '-');
	return fabs(number) >= 0x1p53 && strspn(digits, "0123456789") == strlen(digits)
	    && strcmp(digits, "9007199254740992") != 0;
}

Status
json_read_number(JsonReader *r, const char *text, size_t length, Doc *out)
{
	char copy[LIMIT_NUMBER_BYTES + 1];
	int64_t whole = 0;
	size_t digits = 0;
	/* Most are short and whole. */
	while (digits < length && digits < 15 && json_is_digit(text[digits]))
		whole = 10 * whole + (text[digits++] - '0');
	out->kind = DOC_NUMBER;
	out->number = (double)whole;
	if (digits == length)
		return OK;
	memcpy(copy, text, length);
	copy[length] = 0;
	out->number = strtod_l(copy, NULL, r->c);
	if (is_rounded(copy, out->number) && !(out->text = arena_text(r->texts, copy, length)))
		return fail_memory(r->ctx);
	return isfinite(out->number) ? OK : doc_fail(r->ctx, r->label, out, BAD_INPUT, "a number beyond 1.8e308");
}

static Status
take_number(JsonReader *r, Doc *to)
{
	const char *text = r->at, *short_end = json_skip_digits(text, r->end);
	size_t left = (size_t)(r->end - text);
	size_t length = short_end ? (size_t)(short_end - text) : doc_number_length(text, left);
	if (length == 0)
		return unexpected(r, "a number in JSON syntax");
	if (length > LIMIT_NUMBER_BYTES)
		return FAIL_HERE(r, BAD_INPUT, "a number of %zu characters: want at most %d", length,
		    LIMIT_NUMBER_BYTES);
	r->at += length;
	return to ? json_read_number(r, text, length, to) : OK;
}

static Status
take_word(JsonReader *r, Doc *to)
{
	static const struct {
		const char *text;
		Doc value;
	} words[] = { { "null", { .kind = DOC_NULL } }, { "true", { .kind = DOC_BOOL, .flag = true } },
		{ "false", { .kind = DOC_BOOL } } };
	size_t left = (size_t)(r->end - r->at);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t length = strlen(words[i].text);
		if (left < length || memcmp(r->at, words[i].text, length) != 0)
			continue;
		r->at += length;
		if (to) {
			to->kind = words[i].value.kind;
			to->flag = words[i].value.flag;
		}
		return OK;
	}
	return unexpected(r, "a JSON value");
}

/* ---- arrays and objects ---- */

static Status take_value(JsonReader *r, Doc *to, const Doc *like);

/* The list of that name whose entries are left out; NULL: there is none. */
__attribute__((noinline)) static DocList *
list_of(JsonReader *r, const char *key, size_t length)
{
	/* Only the first array of that name: duplicates are for doc_check_unique to report. */
	for (int l = 0; l < DOC_LISTS && r->depth == 1; l++)
		if (r->list_name[l] && !r->list[l].text && strlen(r->list_name[l]) == length
		    && memcmp(key, r->list_name[l], length) == 0)
			return &r->list[l];
	return NULL;
}

/* The key of a member, and its colon; *list: of that name; NULL: of another. Not a part of take_value, whose frame
 * is on the stack for each level. */
__attribute__((noinline)) static Status
take_key(JsonReader *r, const Doc *like, int i, const char **out, DocList **list)
{
	if (next_token(r) != '"')
		return unexpected(r, "a key in double quotes");
	const char *key = r->at + 1;
	bool known = like && like->kind == DOC_OBJECT && i < like->n;
	TRY(take_string(r, known ? like->child[i]->name : NULL, out));
	size_t length = (size_t)(r->at - 1 - key);
	*list = list_of(r, key, length);
	if (next_token(r) != ':')
		return unexpected(r, "':'");
	r->at++;
	return OK;
}

/* Behind a value: true: a comma, another one follows; false: the end of its array or object, or an error. */
static bool
goes_on(JsonReader *r, bool object, Status *status)
{
	char c = next_token(r);
	*status = c == ',' || c == (object ? '}' : ']') ? OK : unexpected(r, object ? "',' or '}'" : "',' or ']'");
	r->at += *status == OK;
	return *status == OK && c == ',';
}

/* The entries of a list, which are checked only. An entry that was released counts as one value. */
static Status
pass_list(JsonReader *r, DocList *list)
{
	int before = ++r->n_values;
	Status status;
	r->at++;
	if (next_token(r) == ']') {
		r->at++;
		return OK;
	}
	list->text = r->at;
	r->depth++;
	do {
		next_token(r);
		r->n_values = before + list->n++;
		TRY(take_value(r, NULL, NULL));
	} while (goes_on(r, false, &status));
	r->depth--;
	list->size = (size_t)(r->at - 1 - list->text);
	return status;
}

static Status
add_child(JsonReader *r, Doc *parent, Doc **out)
{
	*out = arena_raw(&r->ctx->scratch, 1, sizeof **out);
	if (!*out)
		return fail_memory(r->ctx);
	**out = (Doc){ .parent = parent, .index = parent->n++ };
	return OK;
}

/* Each has the one before it as its parent. */
static Status
end_children(JsonReader *r, Doc *to, Doc *last)
{
	to->child = arena_raw(&r->ctx->scratch, (size_t)to->n, sizeof(Doc *));
	if (!to->child)
		return fail_memory(r->ctx);
	for (Doc *child = last, *before; child; child = before) {
		before = (Doc *)child->parent;
		child->parent = to;
		to->child[child->index] = child;
	}
	return to->kind == DOC_OBJECT ? doc_check_unique(r->ctx, r->label, to) : OK;
}

/* Behind the bracket of an array or object with content. Recurses as deep as LIMIT_DEPTH. How many values there are is
 * known at the end: until then those that have ended are a list, in their `parent`, since a schedule has millions. */
static Status
take_children(JsonReader *r, Doc *to, bool object, const Doc *like)
{
	Doc *before = NULL;
	DocList *list = NULL;
	Status status;
	int i = 0;
	do {
		Doc *doc = NULL;
		TRY(to ? add_child(r, to, &doc) : OK);
		if (object)
			TRY(take_key(r, like, i++, doc ? &doc->name : NULL, &list));
		if (list && !to && next_token(r) == '[')
			TRY(pass_list(r, list));
		else
			TRY(take_value(r, doc, before));
		if (doc) {
			doc->parent = before;
			before = doc;
		}
	} while (goes_on(r, object, &status));
	TRY(status);
	return to ? end_children(r, to, before) : OK;
}

static Status
take_nested(JsonReader *r, Doc *to, const Doc *like)
{
	bool object = *r->at == '{';
	if (r->depth == LIMIT_DEPTH)
		return FAIL_HERE(r, LIMIT, "nesting: want at most %d deep", LIMIT_DEPTH);
	if (to)
		to->kind = object ? DOC_OBJECT : DOC_ARRAY;
	r->at++;
	next_token(r);
	for (int l = 0; l < DOC_LISTS && to; l++)
		if (r->at == r->list[l].text)
			r->at += r->list[l].size;
	if (next_token(r) == (object ? '}' : ']')) {
		r->at++;
		return OK;
	}
	r->depth++;
	TRY(take_children(r, to, object, like));
	r->depth--;
	return OK;
}

/* to: NULL: it is checked only. like: NULL, or a value whose names it may share. */
static Status
take_value(JsonReader *r, Doc *to, const Doc *like)
{
	char c = next_token(r);
	if (r->n_values++ == LIMIT_DOC_VALUES)
		return FAIL_HERE(r, LIMIT, "more than %d values", LIMIT_DOC_VALUES);
	if (json_is_digit(c) || c == '-')
		return take_number(r, to);
	if (c == '{' || c == '[')
		return take_nested(r, to, like);
	if (c != '"')
		return take_word(r, to);
	if (to)
		to->kind = DOC_STRING;
	return take_string(r, NULL, to ? &to->text : NULL);
}

/* ---- files ---- */

Status
json_check(Ctx *ctx, const char *label, const char *data, size_t size, const char *const list_name[DOC_LISTS],
    JsonReader *out)
{
	TRY(doc_check_bytes(ctx, label, data, size));
	const char *first = data + (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
	*out = (JsonReader){ .ctx = ctx, .label = label, .data = data, .at = first, .end = data + size };
	memcpy(out->list_name, list_name, sizeof out->list_name);
	TRY(take_value(out, NULL, NULL));
	if (next_token(out))
		return unexpected(out, "the end of the file");
	out->at = first;
	return OK;
}

/* The value at r->at, of text that was checked. newlocale("C") takes no memory. */
static Status
take_docs(JsonReader *r, Arena *texts, Doc *out)
{
	r->texts = texts;
	r->depth = r->n_values = 0;
	r->c = newlocale(LC_ALL_MASK, "C", NULL);
	if (!r->c)
		return fail_memory(r->ctx);
	Status status = take_value(r, out, NULL);
	freelocale(r->c);
	return status;
}

Status
doc_read_json_lists(Ctx *ctx, const char *label, const char *data, size_t size, const char *const name[DOC_LISTS],
    Doc **out, DocList list[DOC_LISTS])
{
	JsonReader r;
	Doc *root;
	TRY(json_check(ctx, label, data, size, name, &r));
	TRY(TEMP(ctx, root, 1));
	TRY(take_docs(&r, &ctx->run, root));
	for (int l = 0; l < DOC_LISTS; l++) {
		list[l] = r.list[l];
		list[l].array = name[l] ? doc_get(root, name[l]) : NULL;
		if (!list[l].text && list[l].array && list[l].array->kind == DOC_ARRAY)
			list[l].n = list[l].array->n;
	}
	*out = root;
	return OK;
}

Status
doc_read_json_list(Ctx *ctx, const char *label, const char *data, size_t size, const char *name, Doc **out,
    DocList *list)
{
	DocList all[DOC_LISTS];
	TRY(doc_read_json_lists(ctx, label, data, size, (const char *const[DOC_LISTS]){ name }, out, all));
	if (name)
		*list = all[0];
	return OK;
}

/* Only blanks lie between the entry and its comma. */
static void
pass_entry(DocList *list, const char *at)
{
	const char *end = list->text + list->size;
	while (at < end && *at++ != ',')
		;
	list->text = at;
	list->size = (size_t)(end - at);
}

Status
doc_list_next(Ctx *ctx, const char *label, DocList *list, const Doc **out)
{
	Doc *entry;
	if (!list->text) {
		*out = list->array->child[list->next++];
		return OK;
	}
	TRY(TEMP(ctx, entry, 1));
	*entry = (Doc){ .parent = list->array, .index = list->next++ };
	JsonReader r = { .ctx = ctx, .label = label, .data = list->text, .at = list->text,
		.end = list->text + list->size };
	TRY(take_docs(&r, &ctx->scratch, entry));
	pass_entry(list, r.at);
	*out = entry;
	return OK;
}

JsonTokens
doc_list_tokens(const DocList *list)
{
	return (JsonTokens){ list->text, list->text ? list->text + list->size : NULL };
}

void
doc_list_took(DocList *list, const char *at)
{
	list->next++;
	pass_entry(list, at);
}
