/* The findings of a verb about files, in the formats that CI systems read. */
#ifndef BLINK_FINDINGS_H
#define BLINK_FINDINGS_H

#include "base/text.h"

typedef enum {
	FINDING_VALID,
	FINDING_NOTE,		/* valid, but to be reviewed */
	FINDING_ERROR,
	FINDING_COUNTED		/* an error that another finding states for several files: not shown by itself */
} FindingKind;

/* Texts may have any bytes: they are escaped where they are written, and characters that the format does not allow
 * are replaced. */
typedef struct {
	FindingKind kind;
	const char *file;	/* as named by the user, or found below a directory that was */
	const char *part;	/* of the file; NULL: all of it */
	const char *type;	/* kind of error, as "unverified" */
	int line, column;	/* of the file, from 1; 0: unknown */
	const char *message;	/* one line, without the file; NULL if it is valid */
	const char *detail;	/* more lines, for reports alone; NULL: none */
} Finding;

/* What follows the name of the file in an error: ":14:84: message", ":14: message", ": message" or "message". */
void finding_place(const char *text, Finding *found);

/* A name, which may hold anything but NUL, on one line: without control characters. */
void finding_text(Text *out, const char *string);

/* "file:line:column: part: message", or "file: part: right", without control characters and without a newline. */
void finding_line(Text *out, const Finding *finding);

/* JUnit XML: a test suite of this name with a test case for each finding. No times: the same findings are the same
 * bytes. */
void findings_write_junit(const char *suite, const Finding *finding, int n, Text *out);

/* Workflow commands of GitHub Actions: an error or a warning for each finding that is not valid, and a notice with
 * the summary. */
void findings_write_github(const char *title, const Finding *finding, int n, const char *summary, Text *out);

#endif
