/* Findings as lines for people, as JUnit XML, and as workflow commands of GitHub Actions.
 *
 * JUnit XML is what Jenkins, GitLab and others read; no standard says what it is. What is written here is what all of them take:
 * testsuites, testsuite, testcase, and at most one failure in a test case, with `file` for those that show it. What is no failure
 * is output of a test that passed.
 *
 * A workflow command is a line of its own, "::error file=F,title=T::message". Its reader takes %25, %0D and %0A for %, CR and LF,
 * and in properties %3A and %2C for what would end them. */
#include "findings.h"

#include <string.h>

/* As content, where newlines are themselves, or as the value of an attribute. U+FFFD for what XML 1.0 has no way to say: most control
 * characters, U+FFFE, U+FFFF, and bytes that are no UTF-8. */
static void
put_xml(Text *out, const char *string, bool content)
{
	static const char instead[] = "\xef\xbf\xbd";
	size_t size = strlen(string), n;
	for (size_t i = 0; i < size; i += n) {
		const char *c = string + i;
		char one[8] = { 0 };
		for (n = 1; n < 4 && n < size - i && ((unsigned char)c[n] & 0xc0) == 0x80;)
			n++;
		if (utf8_valid(c, n) != n)
			n = 1;
		memcpy(one, c, n);
		if (utf8_valid(one, n) != n || ((unsigned char)*one < ' ' && !strchr("\t\n\r", *one))
		    || strcmp(one, "\xef\xbf\xbe") == 0 || strcmp(one, "\xef\xbf\xbf") == 0)
			text_put(out, instead);
		else if (content && *one == '\n')
			text_put(out, "\n");
		else
			text_xml(out, one);
	}
}

static void
put_attribute(Text *out, const char *name, const char *value)
{
	text_printf(out, " %s=\"", name);
	put_xml(out, value, false);
	text_put(out, "\"");
}

static void
put_case(Text *out, const char *suite, const Finding *finding)
{
	text_put(out, "    <testcase name=\"");
	put_xml(out, finding->file, false);
	if (finding->part) {
		text_put(out, ": ");
		put_xml(out, finding->part, false);
	}
	text_put(out, "\"");
	put_attribute(out, "classname", suite);
	put_attribute(out, "file", finding->file);
	if (finding->kind == FINDING_RIGHT) {
		text_put(out, "/>\n");
		return;
	}
	if (finding->kind == FINDING_WRONG) {
		text_put(out, ">\n      <failure");
		text_put(out, " message=\"");
		if (finding->line > 0)
			text_printf(out, finding->column > 0 ? "line %d, column %d: " : "line %d: ", finding->line, finding->column);
		put_xml(out, finding->message, false);
		text_put(out, "\"");
		put_attribute(out, "type", finding->type);
		text_put(out, finding->detail ? ">" : "/>");
		if (finding->detail) {
			put_xml(out, finding->detail, true);
			text_put(out, "</failure>");
		}
		text_put(out, "\n    </testcase>\n");
	} else {
		text_put(out, ">\n      <system-out>");
		put_xml(out, finding->message, true);
		if (finding->detail) {
			text_put(out, "\n");
			put_xml(out, finding->detail, true);
		}
		text_put(out, "</system-out>\n    </testcase>\n");
	}
}

static int
count_wrong(const Finding *finding, int n)
{
	int wrong = 0;
	for (int i = 0; i < n; i++)
		wrong += finding[i].kind == FINDING_WRONG;
	return wrong;
}

void
emit_junit(const char *suite, const Finding *finding, int n, Text *out)
{
	int wrong = count_wrong(finding, n);
	text_put(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
	put_attribute(out, "name", suite);
	text_printf(out, " tests=\"%d\" failures=\"%d\" errors=\"0\">\n  <testsuite", n, wrong);
	put_attribute(out, "name", suite);
	text_printf(out, " tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"0\">\n", n, wrong);
	for (int i = 0; i < n; i++)
		put_case(out, suite, &finding[i]);
	text_put(out, "  </testsuite>\n</testsuites>\n");
}

static void
put_escaped(Text *out, const char *string, const char *special)
{
	for (const char *c = string; *c; c++) {
		if (strchr(special, *c))
			text_printf(out, "%%%02X", (unsigned char)*c);
		else
			text_add(out, (unsigned char)*c < ' ' || *c == 127 ? "?" : c, 1);
	}
}

static void
put_command(Text *out, const char *command, const char *title, const Finding *finding)
{
	static const char in_property[] = "%\r\n:,", in_data[] = "%\r\n";
	const char *file = finding->file;
	text_printf(out, "::%s ", command);
	/* It is looked for in the repository by its path from there. */
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
emit_github(const char *title, const Finding *finding, int n, const char *summary, Text *out)
{
	for (int i = 0; i < n; i++)
		if (finding[i].kind != FINDING_RIGHT)
			put_command(out, finding[i].kind == FINDING_WRONG ? "error" : "warning", title, &finding[i]);
	put_command(out, "notice", title, &(Finding){ .message = summary });
}

void
finding_text(Text *out, const char *string)
{
	put_escaped(out, string, "");
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
	finding_text(out, finding->message ? finding->message : "right");
}
