/* A main for a fuzz target, which needs no fuzzing engine: it replays the files given, then mutates them.
 *
 *   fuzz_NAME [--seconds N] [--runs N] [--seed N|random] FILE...
 *
 * A FILE that ends in .list holds one directory per line, relative to itself: every file there is replayed, too. The
 * same seed gives the same inputs in the same order. An input that crashes, or that takes longer than TIME_LIMIT, is
 * saved as ./crash-TARGET-HASH.
 *
 * What guides it instead of coverage is what the target says of an input, its `outcome`: what the message wants that
 * refuses it, or the size of what it accepts. The first input of each outcome joins the pool that is mutated.
 *
 * A target defines `dictionary` (tokens, ended by NULL) and test_input, which sets `outcome` and counts in n_accepted.
 * What an input may cost is in cost.h. If there is an LLVMFuzzerCustomMutator, half of the mutants are its. Built with
 * FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION (`make fuzz CC=clang`), the main and the mutations of libFuzzer take over.
 */
#ifndef BLINK_FUZZ_DRIVER_H
#define BLINK_FUZZ_DRIVER_H

#include "base/status.h"
#include "base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) __attribute__((weak));

static void test_input(const uint8_t *data, size_t size);
extern const char *const dictionary[];
static uint64_t outcome;
static long n_accepted;

/* What must hold. The message goes first: abort() ends at the handler that saves the input. */
#define REQUIRE(condition, ...)                                                                                        \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			fprintf(stderr, __VA_ARGS__);                                                                  \
			fputc('\n', stderr);                                                                           \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

static inline uint64_t
hash_bytes(uint64_t hash, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* A refusal is one clean line that starts with the label. Its outcome is what it
 * wants, without numbers; else its number of words. */
static inline void
judge_refusal(const Ctx *ctx, Status status, unsigned allowed, const char *label)
{
	const char *text = ctx->error.text;
	REQUIRE(allowed >> status & 1, "status %d: %s", (int)status, text);
	REQUIRE(ctx->error.status == status, "status %d, but the error is %d: %s", (int)status, (int)ctx->error.status,
	    text);
	REQUIRE(strncmp(text, label, strlen(label)) == 0, "%s", text);
	REQUIRE(utf8_valid(text, strlen(text)) == strlen(text), "%s", text);
	for (const char *c = text; *c; c++)
		REQUIRE((unsigned char)*c >= ' ' && *c != 127, "%s", text);
	const char *want = strstr(text, ": want ");
	outcome = (uint64_t)status;
	for (const char *c = want ? want : text; *c; c++)
		if (want ? !isdigit((unsigned char)*c) : *c == ' ')
			outcome = hash_bytes(outcome, c, 1);
}

#include "cost.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	outcome = 0;
	cost_begin();
	test_input(data, size);
	cost_end(size);
	return 0;
}

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

enum { POOL = 1024, TIME_LIMIT = 30, OUTCOMES = 1 << 14 };

struct input {
	uint8_t *data;
	size_t size;
};

static struct input pool[POOL];
static int n_pool, n_files;		/* the files come first and stay */
static uint64_t seen[OUTCOMES];
static int n_seen;
static struct input current;
static const char *target;
static uint64_t state;

/* ---- a crash ---- */

/* Async-signal-safe but for snprintf of an integer. */
static void
save_current(void)
{
	static volatile sig_atomic_t saved;
	char path[128];
	if (saved || !current.data)
		return;
	saved = 1;
	snprintf(path, sizeof path, "crash-%.40s-%016" PRIx64, target, hash_bytes(1, current.data, current.size));
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0 || write(fd, current.data, current.size) != (ssize_t)current.size)
		dprintf(2, "%s: cannot save the input\n", path);
	else
		dprintf(2, "the input is saved as %s\n", path);
	if (fd >= 0)
		close(fd);
}

static void
on_signal(int number)
{
	if (number == SIGALRM)
		dprintf(2, "an input takes longer than %d s\n", TIME_LIMIT);
	save_current();
	signal(number, SIG_DFL);
	raise(number);
}

/* There only with a sanitizer. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void
catch_crashes(void)
{
	static const int caught[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM };
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		if (!__sanitizer_set_death_callback || caught[i] == SIGABRT || caught[i] == SIGALRM)
			signal(caught[i], on_signal);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(save_current);
}

/* ---- randomness ---- */

static uint64_t
draw(void)
{
	/* splitmix64 */
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static size_t
below(size_t n)
{
	return n ? (size_t)(draw() % n) : 0;
}

/* ---- mutations ---- */

/* Replace data[at .. at + n - 1]. */
static void
replace(struct input *in, size_t at, size_t n, const void *with, size_t n_with)
{
	if (in->size - n + n_with > INPUT_MAX)
		return;
	uint8_t *copy = malloc(n_with + 1);	/* it may lie in the input itself */
	if (!copy)
		abort();
	memcpy(copy, with, n_with);
	memmove(in->data + at + n_with, in->data + at + n, in->size - at - n);
	memcpy(in->data + at, copy, n_with);
	in->size += n_with - n;
	free(copy);
}

static bool
in_word(uint8_t c)
{
	return isalnum(c) || c == '.' || c == '-' || c == '+' || c == '_' || c == '/';
}

/* A run of word characters at or behind a random place; false: there is none. */
static bool
any_token(const struct input *in, bool number, size_t *at, size_t *n)
{
	size_t i = below(in->size);
	while (i > 0 && in_word(in->data[i - 1]))
		i--;
	while (i < in->size && !(in_word(in->data[i]) && (!number || isdigit(in->data[i]))))
		i++;
	*at = i;
	while (i < in->size && in_word(in->data[i]))
		i++;
	*n = i - *at;
	return *n > 0;
}

/* From a random opening bracket or tag to what closes it, with a comma behind it if there is one. */
static bool
any_group(const struct input *in, size_t *at, size_t *n)
{
	size_t i = below(in->size);
	int depth = 0;
	while (i < in->size && !strchr("[{<", in->data[i]))
		i++;
	if (i == in->size || !in->data[i])
		return false;
	*at = i;
	do {
		depth += in->data[i] == '[' || in->data[i] == '{' || in->data[i] == '<';
		depth -= in->data[i] == ']' || in->data[i] == '}' || in->data[i] == '>';
	} while (++i < in->size && depth);
	if (i < in->size && in->data[i] == ',')
		i++;
	*n = i - *at;
	return true;
}

static const char *
any_number(char room[64])
{
	static const char *const odd[] = { "0", "1", "-1", "2", "3", "8", "25", "32", "33", "63", "64", "65", "255",
		"256", "1024", "1025", "4095", "4096", "4097", "65535", "65536", "1048576", "2147483647", "2147483648",
		"4294967296", "-2147483649", "9007199254740992", "9007199254740993", "9223372036854775807",
		"9223372036854775808", "18446744073709551616", "1e308", "1e309", "1e-308", "1e-400", "4.9e-324", "0.1",
		"0.5", "1.5", "0.000001", "0.0000005", "1000000", "1000000.0000001", "1e6", "1e15", "0e0", "-0", "0.0",
		"1E+2", "12.3456789012345", "0/1", "1/1", "1/2", "1/3", "2/3", "1/4", "3/4", "1/64", "2/4",
		"1/9223372036854775807", "9223372036854775806/9223372036854775807",
		"4611686018427387904/9223372036854775807", "1/0", "7/3" };
	switch (below(4)) {
	case 0:
		snprintf(room, 64, "%d", (int)below(12));
		return room;
	case 1:
		snprintf(room, 64, "%d/%d", (int)below(8), (int)below(12));
		return room;
	case 2:
		snprintf(room, 64, "%" PRIu64, draw() >> below(64));
		return room;
	default:
		return odd[below(sizeof odd / sizeof *odd)];
	}
}

static const char *
any_word(void)
{
	size_t n = 0;
	while (dictionary[n])
		n++;
	return dictionary[below(n)];
}

static void
swap_parts(struct input *in, size_t a, size_t n_a, size_t b, size_t n_b)
{
	if (a > b) {
		swap_parts(in, b, n_b, a, n_a);
	} else if (a + n_a <= b) {
		uint8_t *copy = malloc(n_a + 1);
		if (!copy)
			abort();
		memcpy(copy, in->data + a, n_a);
		replace(in, a, n_a, in->data + b, n_b);
		replace(in, b + n_b - n_a, n_b, copy, n_a);
		free(copy);
	}
}

static void
mutate_once(struct input *in)
{
	size_t at, n, at2, n2;
	char room[64];
	const char *text;
	const struct input *other = &pool[below((size_t)n_pool)];
	uint8_t byte = (uint8_t)draw();
	switch (below(16)) {
	case 0:		/* a bit */
		if (in->size)
			in->data[below(in->size)] ^= (uint8_t)(1 << below(8));
		break;
	case 1:		/* a byte */
		replace(in, below(in->size + 1), 0, &byte, 1);
		break;
	case 2:		/* a cut end */
		in->size = below(in->size + 1);
		break;
	case 3:		/* a piece goes */
		at = below(in->size);
		replace(in, at, below(in->size - at < 64 ? in->size - at : 64), "", 0);
		break;
	case 4:		/* a piece of another */
		at = below(other->size);
		replace(in, below(in->size + 1), 0, other->data + at,
		    below(other->size - at < 400 ? other->size - at : 400));
		break;
	case 5:		/* the end of another */
		at = below(in->size + 1);
		at2 = below(other->size + 1);
		replace(in, at, in->size - at, other->data + at2, other->size - at2);
		break;
	case 6:
	case 7:
	case 8:		/* a number */
		if (any_token(in, true, &at, &n)) {
			text = any_number(room);
			replace(in, at, n, text, strlen(text));
		}
		break;
	case 9:		/* a word */
		if (any_token(in, false, &at, &n)) {
			text = any_word();
			replace(in, at, n, text, strlen(text));
		}
		break;
	case 10:	/* a word where there was none */
		text = any_word();
		replace(in, below(in->size + 1), 0, text, strlen(text));
		break;
	case 11:	/* one token for another */
		if (any_token(in, below(2), &at, &n) && any_token(other, below(2), &at2, &n2))
			replace(in, at, n, other->data + at2, n2);
		break;
	case 12:	/* two tokens change places */
		if (any_token(in, true, &at, &n) && any_token(in, true, &at2, &n2))
			swap_parts(in, at, n, at2, n2);
		break;
	case 13:	/* two groups change places */
		if (any_group(in, &at, &n) && any_group(in, &at2, &n2))
			swap_parts(in, at, n, at2, n2);
		break;
	case 14:	/* a group twice, or of another */
		if (any_group(in, &at, &n) && any_group(other, &at2, &n2))
			replace(in, at, below(2) ? n : 0, other->data + at2, n2);
		break;
	default:	/* a group goes */
		if (any_group(in, &at, &n))
			replace(in, at, n, "", 0);
		break;
	}
}

/* ---- the pool ---- */

static void
add_input(const uint8_t *data, size_t size, bool file)
{
	int at = n_pool;
	if (n_pool == POOL) {
		if (file || n_files == POOL)
			return;
		at = n_files + (int)below((size_t)(POOL - n_files));
		free(pool[at].data);
	} else {
		n_pool++;
		n_files += file;
	}
	pool[at] = (struct input){ malloc(size + 1), size };
	if (!pool[at].data)
		abort();
	memcpy(pool[at].data, data, size);
}

/* A hash table with open addresses; 0 is an empty place. */
static bool
is_new(uint64_t what)
{
	size_t at = what % OUTCOMES;
	for (; seen[at]; at = (at + 1) % OUTCOMES)
		if (seen[at] == what)
			return false;
	if (what == 0 || n_seen == OUTCOMES / 2)
		return false;
	seen[at] = what;
	n_seen++;
	return true;
}

/* In memory of just its size, so that a read behind its end shows. */
static void
run_input(const uint8_t *data, size_t size)
{
	current = (struct input){ malloc(size ? size : 1), size };
	if (!current.data)
		abort();
	memcpy(current.data, data, size);
	alarm(TIME_LIMIT);
	LLVMFuzzerTestOneInput(current.data, size);
	alarm(0);
	free(current.data);
	current.data = NULL;
}

static void
load_file(const char *path)
{
	static uint8_t data[8 << 20];
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		exit(2);
	}
	size_t size = fread(data, 1, sizeof data, file);
	fclose(file);
	run_input(data, size);
	is_new(outcome);
	if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) {
		fprintf(stderr, "%s leaks\n", path);
		exit(1);
	}
	if (size <= INPUT_MAX)
		add_input(data, size, true);
}

static int
is_input(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);
	return entry->d_name[0] != '.' && !(n > 4 && strcmp(entry->d_name + n - 4, ".err") == 0);
}

static void
load_list(const char *list)
{
	char line[256], path[4096];
	const char *slash = strrchr(list, '/');
	FILE *file = fopen(list, "r");
	if (!file) {
		perror(list);
		exit(2);
	}
	while (fgets(line, sizeof line, file)) {
		struct dirent **entry;
		line[strcspn(line, "\n")] = 0;
		snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - list) + 1 : 0, list, line);
		int n = scandir(path, &entry, is_input, alphasort);
		if (n < 0) {
			perror(path);
			exit(2);
		}
		size_t used = strlen(path);
		for (int i = 0; i < n; i++) {
			snprintf(path + used, sizeof path - used, "/%s", entry[i]->d_name);
			load_file(path);
			free(entry[i]);
		}
		free(entry);
	}
	fclose(file);
}

/* ---- main ---- */

static double
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
fuzz(double seconds, long most)
{
	static uint8_t room[INPUT_MAX];
	struct input in = { room, 0 };
	double start = now();
	long runs = 0, accepted = n_accepted;
	for (; runs < most && now() - start < seconds; runs++) {
		/* Half of them from the files themselves. */
		const struct input *from = &pool[below((size_t)(below(2) ? n_files : n_pool))];
		memcpy(in.data, from->data, from->size);
		in.size = from->size;
		size_t made = LLVMFuzzerCustomMutator && below(2)
		    ? LLVMFuzzerCustomMutator(in.data, in.size, INPUT_MAX, (unsigned)draw()) : 0;
		if (made)
			in.size = made;
		for (size_t n = made ? 0 : 1 + below(below(4) ? 3 : 12); n > 0; n--)
			mutate_once(&in);
		run_input(in.data, in.size);
		if (is_new(outcome))
			add_input(in.data, in.size, false);
	}
	printf("%s: %d files, %ld mutants in %.1f s, %ld accepted, %d outcomes\n", target, n_files, runs, now() - start,
	    n_accepted - accepted, n_seen);
}

int
main(int argc, char **argv)
{
	double seconds = 0;
	long runs = -1;
	target = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	state = 1;
	catch_crashes();
	for (int i = 1; i < argc; i++) {
		size_t n = strlen(argv[i]);
		bool more = i + 1 < argc;
		if (more && strcmp(argv[i], "--seconds") == 0) {
			seconds = atof(argv[++i]);
		} else if (more && strcmp(argv[i], "--runs") == 0) {
			runs = atol(argv[++i]);
		} else if (more && strcmp(argv[i], "--seed") == 0) {
			i++;
			state = strcmp(argv[i], "random") == 0 ? (uint64_t)time(NULL) : strtoull(argv[i], NULL, 10);
		} else if (argv[i][0] == '-') {
			fprintf(stderr, "usage: %s [--seconds N] [--runs N] [--seed N|random] FILE...\n", target);
			return 2;
		} else if (n > 5 && strcmp(argv[i] + n - 5, ".list") == 0) {
			load_list(argv[i]);
		} else {
			load_file(argv[i]);
		}
	}
	if (runs >= 0 && seconds == 0)
		seconds = 1e9;
	printf("%s: seed %" PRIu64 "\n", target, state);
	fflush(stdout);
	if (n_files)
		fuzz(seconds, runs >= 0 ? runs : INT64_MAX);
	for (int i = 0; i < n_pool; i++)
		free(pool[i].data);
	return 0;
}

#endif

#endif
