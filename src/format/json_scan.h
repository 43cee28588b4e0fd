/* The grammar of JSON (RFC 8259), read strictly: no memory, no recursion, and the line and column of a fault. */
#ifndef BLINK_JSON_SCAN_H
#define BLINK_JSON_SCAN_H

#include "format/doc.h"

/* The array of the root object whose entries are read one by one. */
struct json_span {
	const char *name;	/* NULL: none is wanted */
	bool due, inside;	/* the next value is that of the name; the scan is between begin and end */
	size_t begin, end;	/* after '[', and at ']'; 0: not found, or empty */
	int n;			/* entries */
	int before;		/* values of the file before the first of them */
	int most_open;		/* arrays and objects with content of one entry, at most */
};

typedef struct {
	Ctx *ctx;
	const char *label, *data;
	size_t size, at;
	int depth, n_values;
	bool object[LIMIT_DEPTH];	/* of each open value: an object, not an array */
	struct json_span list;
	int n_open;		/* arrays and objects with content so far: of the entry, inside the list; of the rest */
	int n_rest;		/* of the rest, while the scan is inside the list */
	/* If `children` is set: how many children each of them has, in the order in which they begin; the entries of
	 * the list are skipped. */
	int *children, open[LIMIT_DEPTH];
} JsonScan;

/* A whole file from `at` on. */
Status json_scan_file(JsonScan *scan);

/* One value, of text that was scanned before; `at` is then behind it. */
Status json_scan_value(JsonScan *scan);

#endif
