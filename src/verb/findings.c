/* Findings as lines for people, as JUnit XML, and as workflow commands of GitHub Actions.
 *
 * JUnit XML, which Jenkins, GitLab and others read, has no standard. This is the subset that all of them accept:
 * testsuites, testsuite, testcase, and at most one failure in a test case, with `file` for those that show it. A note
 * is output of a test that passed.
 *
 * A workflow command is a line of its own, "::error file=F,title=T::message". Its reader decodes %25, %0D and %0A as %,
 * CR and LF, and in properties %3A and %2C as the colon and the comma that would end them. */
#include "verb/findings.h"
#include "base/xml_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
put_failure(XmlWriter *w, const Finding *finding)
{
	char place[64] = "";
	if (finding->line > 0)
		snprintf(place, sizeof place, finding->column > 0 ? "line %d, column %d: " : "line %d: ", finding->line,
		    finding->column);
	xml_begin(w, "failure");
	xml_attribute_joined(w, "message", (const char *const[]){ place, finding->message, NULL });
	xml_attribute(w, "type", finding->type);
	if (finding->detail)
		xml_text(w, finding->detail);
	xml_end(w);
}

static void
put_note(XmlWriter *w, const Finding *finding)
{
	xml_begin(w, "system-out");
	xml_text(w, finding->message);
	if (finding->detail) {
		xml_text(w, "\n");
		xml_text(w, finding->detail);
	}
	xml_end(w);
}

/* nth: of those with this file and part, from 1. */
static void
put_case(XmlWriter *w, const char *suite, const Finding *finding, int nth)
{
	char number[24] = "";
	if (nth > 1)
		snprintf(number, sizeof number, " (%d)", nth);
	xml_begin(w, "testcase");
	xml_attribute_joined(w, "name", (const char *const[]){ finding->file ? finding->file : "",
	    finding->part ? ": " : "", finding->part ? finding->part : "", number, NULL });
	xml_attribute(w, "classname", suite);
	xml_attribute(w, "file", finding->file);
	if (finding->kind == FINDING_ERROR || finding->kind == FINDING_COUNTED)
		put_failure(w, finding);
	else if (finding->kind == FINDING_NOTE)
		put_note(w, finding);
	xml_end(w);
}

static int
count_wrong(const Finding *finding, int n)
{
	int wrong = 0;
	for (int i = 0; i < n; i++)
		wrong += finding[i].kind == FINDING_ERROR || finding[i].kind == FINDING_COUNTED;
	return wrong;
}

static int
name_order(const Finding *a, const Finding *b)
{
	int order = strcmp(a->file ? a->file : "", b->file ? b->file : "");
	return order ? order : strcmp(a->part ? a->part : "", b->part ? b->part : "");
}

static int
by_name(const void *a, const void *b)
{
	const Finding *p = *(const Finding *const *)a, *q = *(const Finding *const *)b;
	int order = name_order(p, q);
	return order ? order : (p > q) - (p < q);
}

/* Names of test cases are unique. nth: n entries. False: no memory. */
static bool
number_names(const Finding *finding, int n, int *nth)
{
	const Finding **order = calloc((size_t)n + 1, sizeof *order);
	if (!order)
		return false;
	for (int i = 0; i < n; i++)
		order[i] = &finding[i];
	qsort(order, (size_t)n, sizeof *order, by_name);
	for (int i = 0, first = 0; i < n; i++) {
		first = name_order(order[first], order[i]) == 0 ? first : i;
		nth[order[i] - finding] = i - first + 1;
	}
	free(order);
	return true;
}

void
findings_write_junit(const char *suite, const Finding *finding, int n, Text *out)
{
	XmlWriter w = { .out = out };
	int wrong = count_wrong(finding, n), *nth = calloc((size_t)n + 1, sizeof *nth);
	if (!nth || !number_names(finding, n, nth)) {
		free(nth);
		out->failed = true;
		return;
	}
	xml_declaration(&w);
	for (int level = 0; level < 2; level++) {
		xml_begin(&w, level == 0 ? "testsuites" : "testsuite");
		xml_attribute(&w, "name", suite);
		xml_attribute_int(&w, "tests", n);
		xml_attribute_int(&w, "failures", wrong);
		xml_attribute_int(&w, "errors", 0);
	}
	xml_attribute_int(&w, "skipped", 0);
	xml_elements(&w);
	for (int i = 0; i < n; i++)
		put_case(&w, suite, &finding[i], nth[i]);
	xml_end(&w);
	xml_end(&w);
	free(nth);
}

static void
put_escaped(Text *out, const char *string, const char *special)
{
	for (size_t n; *string; string += n) {
		int32_t code;
		n = character_at(string, CHARACTER_MOST, &code);
		if (strchr(special, *string))
			text_printf(out, "%%%02X", (unsigned char)*string);
		else if (!is_printable(code))
			text_put(out, "?");
		else
			text_add(out, string, n);
	}
}

static void
put_command(Text *out, const char *command, const char *title, const Finding *finding)
{
	static const char in_property[] = "%\r\n:,", in_data[] = "%\r\n";
	const char *file = finding->file;
	text_printf(out, "::%s ", command);
	/* The path is relative to the root of the repository. */
	while (file && file[0] == '.' && file[1] == '/')
		file += 2;
	if (file) {
		text_put(out, "file=");
		put_escaped(out, file, in_property);
		text_put(out, ",");
	}
	if (finding->line > 0)
		text_printf(out, "line=%d,", finding->line);
	if (finding->column > 0)
		text_printf(out, "col=%d,", finding->column);
	text_put(out, "title=");
	put_escaped(out, title, in_property);
	text_put(out, "::");
	if (finding->part) {
		put_escaped(out, finding->part, in_data);
		text_put(out, ": ");
	}
	put_escaped(out, finding->message, in_data);
	if (finding->detail) {
		put_escaped(out, "\n", in_data);
		put_escaped(out, finding->detail, in_data);
	}
	text_put(out, "\n");
}

void
findings_write_github(const char *title, const Finding *finding, int n, const char *summary, Text *out)
{
	for (int i = 0; i < n; i++)
		if (finding[i].kind != FINDING_VALID && finding[i].kind != FINDING_COUNTED)
			put_command(out, finding[i].kind == FINDING_ERROR ? "error" : "warning", title, &finding[i]);
	put_command(out, "notice", title, &(Finding){ .message = summary });
}

void
finding_place(const char *text, Finding *found)
{
	int length = 0;
	if (sscanf(text, ":%9d:%9d: %n", &found->line, &found->column, &length) < 2 || length == 0) {
		found->column = 0;
		if (sscanf(text, ":%9d: %n", &found->line, &length) < 1 || length == 0)
			found->line = 0;
	}
	text += length;
	text += length == 0 && *text == ':';
	found->message = text + (*text == ' ');
}

void
finding_text(Text *out, const char *string)
{
	text_printable(out, string);
}

void
finding_line(Text *out, const Finding *finding)
{
	finding_text(out, finding->file);
	if (finding->line > 0)
		text_printf(out, finding->column > 0 ? ":%d:%d" : ":%d", finding->line, finding->column);
	text_put(out, ": ");
	if (finding->part) {
		finding_text(out, finding->part);
		text_put(out, ": ");
	}
	finding_text(out, finding->message ? finding->message : "valid");
}
