/* What libblink takes from the environment: settings, what the man page says of them, and debug lines. Prints TAP.
 * Run at the root of the repository. */
#include "support/debug.h"
#include "support/error.h"
#include "support/settings.h"
#include "tap.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- settings ---- */

static struct settings got;
static struct blink_error error;

static int
with(const char *variable, const char *value)
{
	error = (struct blink_error){ .code = blinkSuccess };
	setenv(variable, value, 1);
	int code = settings_read(&got, &error);
	unsetenv(variable);
	return code;
}

static bool
refuses(const char *variable, const char *value)
{
	char found[200];
	snprintf(found, sizeof found, "%s: \"%s\": want ", variable, value);
	return with(variable, value) == blinkInvalidArgument && strncmp(error.text, found, strlen(found)) == 0;
}

static void
test_defaults(void)
{
#define X(variable, member, how, preset, need, what) unsetenv(variable);
	SETTING_LIST(X)
#undef X
	bool good = settings_read(&got, &error) == blinkSuccess;
#define X(variable, member, how, preset, need, what)                                 \
	good = good && got.member == preset && with(variable, "") == blinkSuccess && got.member == preset;
	SETTING_LIST(X)
#undef X
	ok(good, "unset or empty: the default");
}

static void
test_values(void)
{
	ok(with("BLINK_SCHEDULES", "a:b") == blinkSuccess && strcmp(got.schedules, "a:b") == 0, "a text");
	ok(with("BLINK_TIMEOUT", "90") == blinkSuccess && got.timeout_ms == 90000, "a time in seconds");
	ok(with("BLINK_TIMEOUT", "1ms") == blinkSuccess && got.timeout_ms == 1, "ms");
	ok(with("BLINK_TIMEOUT", "90s") == blinkSuccess && got.timeout_ms == 90000, "s");
	ok(with("BLINK_TIMEOUT", "10m") == blinkSuccess && got.timeout_ms == 600000, "m");
	ok(with("BLINK_TIMEOUT", "8760h") == blinkSuccess && got.timeout_ms == INT64_C(31536000000), "h: a year");
	ok(with("BLINK_SMALL", "0") == blinkSuccess && got.small == 0, "no bytes");
	ok(with("BLINK_SMALL", "64K") == blinkSuccess && got.small == 65536, "K");
	ok(with("BLINK_CHUNK", "4m") == blinkSuccess && got.chunk == 4 << 20, "m of bytes");
	ok(with("BLINK_CHUNK", "1048576G") == blinkSuccess && got.chunk == INT64_C(1) << 50, "the most bytes");
	ok(with("BLINK_BLOCKS", "16") == blinkSuccess && got.blocks == 16 && refuses("BLINK_BLOCKS", "16K")
	    && refuses("BLINK_BLOCKS", "1000001"), "a number");
	ok(with("BLINK_TCP_ZEROCOPY", "auto") == blinkSuccess && got.zero_copy == 0
	    && with("BLINK_TCP_ZEROCOPY", "0") == blinkSuccess && got.zero_copy < 0
	    && with("BLINK_TCP_ZEROCOPY", "1") == blinkSuccess && got.zero_copy > 0, "auto, or a flag");
	ok(with("BLINK_COPY_ENGINES", "auto") == blinkSuccess && got.copy_engines == 0
	    && with("BLINK_COPY_ENGINES", "1") == blinkSuccess && got.copy_engines > 0
	    && refuses("BLINK_COPY_ENGINES", "2"), "copy engines");
	ok(with("BLINK_P2P", "0") == blinkSuccess && !got.p2p && with("BLINK_PIN", "0") == blinkSuccess && !got.pin
	    && with("BLINK_PIN", "1") == blinkSuccess && got.pin,
	    "a flag");
}

static void
test_bad_values(void)
{
	static const char *const times[] = { "0", "0ms", "-1", "+1", " 1", "1 ", "1.5s", "1d", "s", "8761h", "1e3",
		"9999999999999999999999", "92233720368547758070ms" };
	static const char *const sizes[] = { "-1", "x", "K", "1KB", "64KiB", "1048577G", "18446744073709551616" };
	static const char *const flags[] = { "2", "yes", "-0", "01x" };
	bool good = true;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		good = good && refuses("BLINK_TIMEOUT", times[i]);
	ok(good, "no times");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		good = good && refuses("BLINK_SMALL", sizes[i]);
	ok(good, "no sizes");
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		good = good && refuses("BLINK_SHM", flags[i]) && refuses("BLINK_TCP_ZEROCOPY", flags[i]);
	ok(good, "no flags");
}

static void
test_unknown(void)
{
	char names[100];
#define X(variable, member, how, preset, need, what) setenv(variable, "1", 1);
	SETTING_LIST(X)
#undef X
	setenv("BLINK_DEBUG", "", 1);
	settings_unknown(names, sizeof names);
	ok(*names == '\0', "all settings are known");
	setenv("BLINK_PORT", "1", 1);
	setenv("BLINK_TIMEOUTS", "1", 1);
	setenv("BLINK_of\033", "1", 1);
	settings_unknown(names, sizeof names);
	ok(strstr(names, "BLINK_PORT") && strstr(names, "BLINK_TIMEOUTS") && strlen(names) == 26,
	    "others are named, if a name can be one of ours");
	settings_unknown(names, 20);
	ok(*names && strlen(names) <= 14, "as many as there is room for");
	unsetenv("BLINK_PORT");
	unsetenv("BLINK_TIMEOUTS");
	unsetenv("BLINK_of\033");
#define X(variable, member, how, preset, need, what) unsetenv(variable);
	SETTING_LIST(X)
#undef X
}

static void
test_needs(void)
{
	char names[100];
	setenv("BLINK_BLOCKS", "4", 1);
	setenv("BLINK_P2P", "", 1);
	setenv("BLINK_NVLS", "0", 1);
	settings_that_need(NEEDS_GPUS, names, sizeof names);
	ok(strcmp(names, "BLINK_BLOCKS, BLINK_NVLS") == 0, "what is set and needs GPUs");
	settings_that_need(NEEDS_GPUS, names, 16);
	ok(strcmp(names, "BLINK_BLOCKS") == 0, "as many as there is room for");
	settings_that_need(NEEDS_INDEX, names, sizeof names);
	ok(*names == '\0', "nothing that is set needs an index");
	unsetenv("BLINK_BLOCKS");
	unsetenv("BLINK_P2P");
	unsetenv("BLINK_NVLS");
}

/* ---- the man page ---- */

static char page[1 << 20];

/* Letters and digits of a text in lower case, other characters left out, to the end of the text or of `out`. */
static void
letters(const char *text, size_t size, char *out, size_t room)
{
	size_t n = 0;
	for (size_t i = 0; i < size && n + 1 < room; i++)
		if (text[i] == '\\' && text[i + 1] == '(')
			i += 3;	/* a character by its name: \(ha */
		else if (isalnum((unsigned char)text[i]))
			out[n++] = (char)tolower((unsigned char)text[i]);
	out[n] = '\0';
}

/* The item of a variable in the section: from its line to the next item. */
static const char *
item_of(const char *section, const char *variable, size_t *size)
{
	char line[80];
	snprintf(line, sizeof line, "\n.It Ev %s\n", variable);
	const char *item = strstr(section, line);
	if (!item)
		return NULL;
	item += strlen(line);
	const char *next = strstr(item, "\n.It "), *end = strstr(item, "\n.El");
	*size = (size_t)((next && next < end ? next : end) - item);
	return item;
}

/* Its text begins with what the list says, names the default, and what the variable needs. */
static bool
documents(const char *section, const char *variable, const char *what, const char *preset, enum setting_need need)
{
	char wanted[300], has[2000], without[200], needed[200];
	size_t size;
	const char *item = item_of(section, variable, &size);
	letters(what, strcspn(what, "("), wanted, sizeof wanted);
	if (item)
		letters(item, size, has, sizeof has);
	snprintf(without, sizeof without, "no effect without %s", setting_need_text(need));
	letters(without, strlen(without), needed, sizeof needed);
	bool good = item && strncmp(has, wanted, strlen(wanted)) == 0 && strstr(has + strlen(wanted), preset)
	    && (strstr(has, needed) != NULL) == (need != NEEDS_NOTHING);
	if (!good)
		printf("# %s: want \"%s\", then \"%s\" and \"%s\"\n", variable, what, preset, without);
	return good;
}

#define PRESET_TEXT(value) ""
#define PRESET_MS(value) text_of((value) / 60000)
#define PRESET_BYTES(value) text_of(value)
#define PRESET_NUMBER(value) text_of(value)
#define PRESET_FLAG(value) text_of(value)
#define PRESET_AUTO(value) ((value) < 0 ? "default0" : (value) > 0 ? "default1" : "defaultauto")

static const char *
text_of(int64_t value)
{
	static char text[40];
	snprintf(text, sizeof text, "default%lld", (long long)value);
	return text;
}

static void
test_page(void)
{
	FILE *file = fopen("man/libblink.3", "r");
	size_t n = file ? fread(page, 1, sizeof page - 1, file) : 0;
	char *section = strstr(page, "\n.Sh ENVIRONMENT\n"), *end = section ? strstr(section + 1, "\n.Sh ") : NULL;
	int items = 0, wanted = 2;
	ok(n > 0 && section && end, "the page has a section");
	if (file)
		fclose(file);
	if (!section || !end)
		return;
	*end = '\0';
#define X(variable, member, how, preset, need, what)                                 \
	wanted++;                                                              \
	ok(documents(section, variable, what, PRESET_##how(preset), NEEDS_##need), variable);
	SETTING_LIST(X)
#undef X
	ok(documents(section, "BLINK_DEBUG", "lines for people", "", NEEDS_NOTHING)
	    && documents(section, "BLINK_DEBUG_FILE", "the file", "", NEEDS_NOTHING),
	    "BLINK_DEBUG and BLINK_DEBUG_FILE");
	for (const char *at = section; (at = strstr(at, "\n.It Ev ")); at++)
		items++;
	ok(items == wanted, "no variable that there is not");
}

/* ---- debug lines ---- */

static char folder[] = "/tmp/test_settings.XXXXXX";

enum { THREADS = 4, LINES = 200 };

static void *
say_much(void *number)
{
	char long_text[300];
	memset(long_text, 'a' + *(int *)number, sizeof long_text);
	long_text[sizeof long_text - 1] = '\0';
	for (int i = 0; i < LINES; i++)
		debug_say(DEBUG_INFO, *(int *)number, "%d %s", i, long_text);
	return NULL;
}

static void
say_all(void)
{
	pthread_t thread[THREADS];
	int number[THREADS];
	debug_say(DEBUG_WARN, -1, "one\ntwo %d", 2);
	debug_say(DEBUG_TRACE, 3, "trace");
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		if (pthread_create(&thread[i], NULL, say_much, &number[i]) != 0)
			_exit(9);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static size_t
read_all(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(page, 1, sizeof page - 1, file) : 0;
	page[n] = '\0';
	if (file)
		fclose(file);
	return n;
}

/* What a child says whose standard error is a file, into `page`; the child's pid. 0: it failed. */
static pid_t
say_in_child(const char *level, const char *path)
{
	char errors[100];
	int status;
	snprintf(errors, sizeof errors, "%s/stderr", folder);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		setenv("BLINK_DEBUG", level, 1);
		setenv("BLINK_DEBUG_FILE", path, 1);
		alarm(60);
		if (!freopen(errors, "w", stderr))
			_exit(8);
		say_all();
		_exit(0);
	}
	bool good = child > 0 && waitpid(child, &status, 0) == child && status == 0;
	read_all(errors);
	return good ? child : 0;
}

static int
count(const char *part)
{
	int n = 0;
	for (const char *at = page; (at = strstr(at, part)); at++)
		n++;
	return n;
}

/* Every line whole: "host:pid:tid [rank] BLINK INFO number text", its text of one letter. */
static bool
lines_are_whole(pid_t pid)
{
	int n = 0, rank, of_pid, number;
	long thread;
	char host[80], text[400], level[10];
	for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n")) {
		if (strstr(line, " BLINK WARN "))
			continue;
		if (sscanf(line, "%79[^:]:%d:%ld [%d] BLINK %9s %d %399s", host, &of_pid, &thread, &rank, level,
		        &number, text) != 7 || of_pid != pid || strcmp(level, "INFO") != 0 || strlen(text) != 299
		    || strspn(text, (char[]){ (char)('a' + rank), '\0' }) != 299)
			return false;
		n++;
	}
	return n == THREADS * LINES;
}

static void
test_debug(void)
{
	char path[200], pattern[200];
	pid_t pid = say_in_child("", "");
	ok(pid && !*page, "nothing unless BLINK_DEBUG asks for it");
	pid = say_in_child("WARN", "");
	ok(pid && count("\n") == 1 && strstr(page, " BLINK WARN one?two 2\n"), "WARN: one line for a warning");
	pid = say_in_child("trace", "");
	ok(pid && count("\n") == 2 + THREADS * LINES && strstr(page, " [3] BLINK TRACE trace\n"), "TRACE: everything");
	pid = say_in_child("INFO", "");
	ok(pid && count("TRACE") == 0 && lines_are_whole(pid), "INFO: lines of threads do not mix");
	pid = say_in_child("loud", "");
	ok(pid && count("\n") == 2 && strstr(page, "BLINK_DEBUG: \"loud\": want NONE, WARN, INFO or TRACE\n"),
	    "an unknown level");
	snprintf(pattern, sizeof pattern, "%s/log.%%p.%%x.%%h", folder);
	pid = say_in_child("INFO", pattern);
	gethostname(path, sizeof path);
	path[strcspn(path, ".")] = '\0';
	char host[100];
	snprintf(host, sizeof host, "%.90s", path);
	snprintf(path, sizeof path, "%s/log.%d.%%x.%s", folder, (int)pid, host);
	ok(pid && !*page && read_all(path) && lines_are_whole(pid), "a file by host and process");
	snprintf(path, sizeof path, "%s/absent/log", folder);
	pid = say_in_child("INFO", path);
	ok(pid && count("BLINK_DEBUG_FILE") == 1 && strstr(page, "absent/log: No such file") && lines_are_whole(pid),
	    "a file that cannot be made: standard error, and once why");
	snprintf(path, sizeof path, "%s/pipe", folder);
	ok(mkfifo(path, 0600) == 0 && (pid = say_in_child("WARN", path)) && strstr(page, "BLINK WARN one"),
	    "a pipe that nobody reads");
	ok((pid = say_in_child("INFO", "/dev/full")) && lines_are_whole(pid),
	    "a file that takes nothing: standard error");
}

int
main(void)
{
	char command[100];
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(120);
	if (!mkdtemp(folder))
		return 1;
	unsetenv("BLINK_DEBUG");
	unsetenv("BLINK_DEBUG_FILE");
	/* First, while no process has read its environment: a child has what its parent read. */
	test_debug();
	ok(!debug_on(DEBUG_WARN) && !debug_on(DEBUG_NONE), "no level is on by itself");
	test_defaults();
	test_values();
	test_bad_values();
	test_unknown();
	test_needs();
	test_page();
	snprintf(command, sizeof command, "rm -r %s", folder);
	int failed = end_tests();
	return system(command) != 0 || failed;
}
