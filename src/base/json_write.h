/* JSON, value by value: the writer puts commas, line breaks, indentation and escapes. Bytes depend neither on the
 * locale nor on a library. */
#ifndef BLINK_JSON_WRITE_H
#define BLINK_JSON_WRITE_H

#include "base/limits.h"
#include "base/names.h"
#include "base/text.h"

/* How an array or object is laid out. */
typedef enum {
	JSON_TIGHT,	/* {"a":1,"b":[1,2]} */
	JSON_LINE,	/* { "a": 1, "b": [1, 2] } */
	JSON_BLOCK,	/* a line for each entry, indented by two blanks a level */
	JSON_ROWS	/* a line for each entry, not indented */
} JsonStyle;

enum { JSON_DEPTH = LIMIT_DEPTH + 2 };	/* what was read can be written */

/* Begins as { .out = text }. */
typedef struct {
	Text *out;
	int indent;		/* levels that the root value is indented by, where it is part of other text */
	bool in_script;		/* strings neither end a script of HTML nor begin a comment in it */
	bool new_line;
	int depth;
	struct {
		JsonStyle style;
		bool object, any;
	} open[JSON_DEPTH];
} JsonWriter;

/* name: key in an object; NULL in an array and at the root. Every array and object is ended by json_end. */
void json_object(JsonWriter *w, const char *name, JsonStyle style);
void json_array(JsonWriter *w, const char *name, JsonStyle style);
void json_end(JsonWriter *w);

/* The root object of a file with its format and version 1, and its end with a newline. */
void json_file(JsonWriter *w, JsonStyle style, const char *format);
void json_file_end(JsonWriter *w);

void json_string(JsonWriter *w, const char *name, const char *value);	/* NULL: null */
void json_int(JsonWriter *w, const char *name, int value);
void json_rank(JsonWriter *w, const char *name, int rank);	/* null below 0: there is none */
void json_int64(JsonWriter *w, const char *name, int64_t value);
void json_bool(JsonWriter *w, const char *name, bool value);
void json_null(JsonWriter *w, const char *name);
void json_gb(JsonWriter *w, const char *name, Frac bytes);		/* as text_gb */
void json_us(JsonWriter *w, const char *name, int64_t ns);		/* as text_us */
void json_ps(JsonWriter *w, const char *name, int64_t ps);		/* in us; null below 0: there is none */
void json_number(JsonWriter *w, const char *name, double value);	/* as text_number */
void json_frac(JsonWriter *w, const char *name, Frac value);		/* "p/q" */
void json_raw(JsonWriter *w, const char *name, const char *json);	/* a value that is JSON already */

/* Arrays in one line: of numbers; of those of the names that a bit set has. */
void json_ints(JsonWriter *w, const char *name, const int *value, int n);
void json_names(JsonWriter *w, const char *name, Names names, unsigned set);

/* A value that the caller appends to w->out. */
void json_value(JsonWriter *w, const char *name);

/* The next entry begins a line. */
void json_new_line(JsonWriter *w);

#endif
