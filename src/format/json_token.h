/* Tokens of JSON, for readers of long lists: a reader asks for what it expects next, and no Doc is made. What is not as
 * it expects, it reads as Docs (doc_list_next), whose messages say what is wrong; so nothing here fails with a message,
 * and what is accepted here means the same there.
 *
 * Most of a schedule file is numbers of one to four digits. They are read where they lie, a few ns each. */
#ifndef BLINK_JSON_TOKEN_H
#define BLINK_JSON_TOKEN_H

#include "base/frac.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The text from `at` on. */
typedef struct {
	const char *at, *end;
} JsonTokens;

static inline const char *
json_skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

/* Of a string: up to what ends it, an escape or a control character. */
static inline const char *
json_skip_plain(const char *at, const char *end)
{
	while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= ' ')
		at++;
	return at;
}

static inline bool
json_is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

enum { JSON_DIGITS = 9 };	/* of a number that an int holds, whatever they are */

/* The end of a whole number of 1 to JSON_DIGITS digits without sign; NULL: it is none, or another number. */
static inline const char *
json_skip_digits(const char *at, const char *end)
{
	const char *first = at;
	while (at < end && json_is_digit(*at))
		at++;
	size_t n = (size_t)(at - first);
	if (n == 0 || n > JSON_DIGITS || (n > 1 && *first == '0')
	    || (at < end && (*at == '.' || *at == 'e' || *at == 'E')))
		return NULL;
	return at;
}

/* Each of these goes past what it found, and else stays where it is, or behind blanks. */

static inline bool
json_token(JsonTokens *t, char token)
{
	t->at = json_skip_blanks(t->at, t->end);
	if (t->at == t->end || *t->at != token)
		return false;
	t->at++;
	return true;
}

/* lo to hi, both included. As json_skip_digits has them. */
static inline bool
json_token_int(JsonTokens *t, int lo, int hi, int *out)
{
	const char *at = json_skip_blanks(t->at, t->end), *first = at, *most;
	unsigned value = 0, digit;
	most = t->end - at > JSON_DIGITS ? at + JSON_DIGITS : t->end;
	while (at < most && (digit = (unsigned)(unsigned char)*at - '0') < 10) {
		value = 10 * value + digit;
		at++;
	}
	if (at == first || (int)value < lo || (int)value > hi || (*first == '0' && at - first > 1))
		return false;
	if (at < t->end && (json_is_digit(*at) || *at == '.' || *at == 'e' || *at == 'E'))
		return false;
	t->at = at;
	*out = (int)value;
	return true;
}

/* A number of at most 15 digits, without sign and exponent: both the digits and the power of ten are exact as doubles,
 * so their quotient is the double nearest to the number, as strtod's (Clinger, How to Read Floating Point Numbers
 * Accurately, 1990, section 2). */
static inline bool
json_token_number(JsonTokens *t, double *out)
{
	const char *at = json_skip_blanks(t->at, t->end);
	int64_t digits = 0, scale = 0;
	int n = 0;
	for (; at < t->end && (json_is_digit(*at) || (*at == '.' && !scale && n > 0)); at++) {
		if (*at == '.') {
			scale = 1;
			continue;
		}
		if (++n > 15)
			return false;
		digits = 10 * digits + (*at - '0');
		scale *= 10;
	}
	if (n == 0 || (at < t->end && (*at == 'e' || *at == 'E')))
		return false;
	t->at = at;
	*out = scale ? (double)digits / (double)scale : (double)digits;
	return true;
}

/* 0 to hi, which is at most 2^53: where a double says which number is meant. */
static inline bool
json_token_int64(JsonTokens *t, int64_t hi, int64_t *out)
{
	const char *at = json_skip_blanks(t->at, t->end), *first = at;
	int64_t value = 0;
	for (; at < t->end && json_is_digit(*at) && at - first < 17; at++)
		value = 10 * value + (*at - '0');
	bool ends = at == t->end || (!json_is_digit(*at) && *at != '.' && *at != 'e' && *at != 'E');
	if (at == first || value > hi || !ends)
		return false;
	t->at = at;
	*out = value;
	return true;
}

static inline bool
json_token_null(JsonTokens *t)
{
	const char *at = json_skip_blanks(t->at, t->end);
	if (t->end - at < 4 || memcmp(at, "null", 4) != 0)
		return false;
	t->at = at + 4;
	return true;
}

/* A string without escapes: where its characters are, and how many. */
static inline bool
json_token_string(JsonTokens *t, const char **out, size_t *length)
{
	const char *at = json_skip_blanks(t->at, t->end);
	if (at == t->end || *at != '"')
		return false;
	const char *first = ++at;
	at = json_skip_plain(at, t->end);
	if (at == t->end || *at != '"')
		return false;
	*out = first;
	*length = (size_t)(at - first);
	t->at = at + 1;
	return true;
}

/* "name": */
static inline bool
json_token_key(JsonTokens *t, const char **name, size_t *length)
{
	return json_token_string(t, name, length) && json_token(t, ':');
}

/* A name that a reader knows, and its length. */
struct json_name {
	const char *text;
	size_t length;
};

/* The place of a name among n; n: unknown. first: where the search begins, as members mostly have one order. */
static inline int
json_find_name(const struct json_name *names, int n, int first, const char *text, size_t length)
{
	for (int i = 0; i < n; i++) {
		int at = first + i < n ? first + i : first + i - n;
		if (names[at].length == length && memcmp(names[at].text, text, length) == 0)
			return at;
	}
	return n;
}

/* An object while it is read, of which a reader knows n members, at most 31. Begins as { names, n, .at = -1 }.
 *
 *	while (json_token_member(t, &m))
 *		if (!take_member(m.at))
 *			return false;
 *	return m.ended; */
struct json_members {
	const struct json_name *names;
	int n, at;		/* the current member */
	unsigned seen;		/* a bit set */
	bool ended;		/* by its brace, after at least one member */
};

/* Up to the value of the next member, the first time from the brace on. False: the object has ended, or is not as
 * expected: the next name is unknown, or was there before. */
static inline bool
json_token_member(JsonTokens *t, struct json_members *m)
{
	const char *name;
	size_t length;
	if (!json_token(t, m->at < 0 ? '{' : ',')) {
		m->ended = m->at >= 0 && json_token(t, '}');
		return false;
	}
	if (!json_token_key(t, &name, &length))
		return false;
	m->at = json_find_name(m->names, m->n, m->at + 1, name, length);
	if (m->at == m->n || m->seen >> m->at & 1)
		return false;
	m->seen |= 1u << m->at;
	return true;
}

#endif
