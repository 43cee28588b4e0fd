/* What a verb has to say of files, in the forms that CI systems read. */
#ifndef BLINK_FINDINGS_H
#define BLINK_FINDINGS_H

#include "base/text.h"

typedef enum {
	FINDING_RIGHT,
	FINDING_NOTED,		/* right, but somebody should look */
	FINDING_WRONG
} FindingKind;

/* Any text may have any bytes: where it goes it is escaped, and what cannot be said there is replaced. */
typedef struct {
	FindingKind kind;
	const char *file;	/* as it was named, or found below what was */
	const char *part;	/* of the file; NULL: all of it */
	const char *type;	/* a word or two for what is wrong, as "unverified" */
	int line, column;	/* of the file, from 1; 0: not said */
	const char *message;	/* one line, without the file; NULL if it is right */
	const char *detail;	/* more lines, for reports alone; NULL: none */
} Finding;

/* A name, which may hold anything but NUL, on one line: without control characters. */
void finding_text(Text *out, const char *string);

/* "file:line:column: part: message", or "file: part: right", without control characters and without a newline. */
void finding_line(Text *out, const Finding *finding);

/* JUnit XML: a test suite of this name with a test case for each finding. No times: the same findings are the same bytes. */
void emit_junit(const char *suite, const Finding *finding, int n, Text *out);

/* Workflow commands of GitHub Actions: an error or a warning for each finding that is not right, and a notice with the summary. */
void emit_github(const char *title, const Finding *finding, int n, const char *summary, Text *out);

#endif
