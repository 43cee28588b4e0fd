/* A verb with its options and files, in this process. The first line is the command line, without the program's name;
 * double quotes hold blanks together. Each file follows a line "== NAME". The verb fails with one line and a
 * status that it documents; or what it prints reads again: a schedule is verified, a topology is valid, no simulated
 * message is faster than its floor.
 *
 * Files are in a directory of the input's own: no option names a path. What would take long is passed over, by the size
 * of machines, schedules and messages; processes are one. */
#define COST_FLOOR_MS 10000
#define COST_FLOOR_BYTES (256 << 20)
#include "json_mutator.h"
#include "scratch.h"
#include "table_mutator.h"
#include "xml_mutator.h"
#include "format/doc.h"
#include "format/file_kind.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <getopt.h>
#include <sys/mman.h>

static size_t verb_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed);

const Mutator mutators[] = { verb_mutate, NULL };

const char *const dictionary[] = {
#define X(bit, name, ...) #name,
	VERB_LIST(X)
#undef X
#define X(name, text, ...) "--" text,
	OPTION_LIST(X)
#undef X
	"a", "b", "-", "out", "what-if", "json", "text", "csv", "xml", "svg", "dot", "slurm", "cu", "msccl", "chakra",
	"nccl-graph", "allreduce", "broadcast", "alltoall", "all", "trees", "ring", "hierarchical-ring", "onehop",
	"0-3", "0,1", "gpu0-gpu1", "gpu0-gpu1:1", "gpu3", "1K", "64K", "1K-16K", "auto", "copy", "host", "kernel",
	"pair", "any", "rest", "2x2", "best", "canonical", "mwu", "exact", "0.05", "10s", "1/2", "V100-SXM2", "nccl",
	"hwloc", "alpha=4.8,layer=0", "\"gpu:4 mesh:25\"", "\"server:2 gpu:2 switch:50 net:12\"", NULL };

enum { WORDS = 64, FILES = 4, RANKS_MOST = 4, LINKS_MOST = 40, TEXT_MOST = 1 << 14, CHUNKS_MOST = 128 };

/* ---- the parts of an input ---- */

struct part {
	char name[16];
	const uint8_t *data;
	size_t size;
};

/* The command line, as part 0, and files. The number of parts; 0: it is no such input. */
static int
split(const uint8_t *data, size_t size, struct part part[FILES + 1])
{
	const uint8_t *end = data + size, *at = data;
	int n = 0;
	for (;; n++) {
		const uint8_t *next = memmem(at, (size_t)(end - at), "\n== ", 4);
		const uint8_t *stop = next ? next + 1 : end;
		part[n].data = at;
		part[n].size = (size_t)(stop - at);
		if (!next)
			return n + 1;
		const uint8_t *feed = memchr(next + 4, '\n', (size_t)(end - next - 4));
		size_t length = feed ? (size_t)(feed - next - 4) : 0;
		if (n == FILES || length == 0 || length >= sizeof part->name)
			return 0;
		memcpy(part[n + 1].name, next + 4, length);
		part[n + 1].name[length] = 0;
		at = feed + 1;
	}
}

/* One part is changed, as what it is. */
static size_t
verb_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	static uint8_t copy[INPUT_MAX], room[INPUT_MAX];
	static const Mutator all[] = { json_mutate, xml_mutate, table_mutate };
	struct part part[FILES + 1];
	if (size > sizeof copy)
		return 0;
	memcpy(copy, data, size);
	int n = split(copy, size, part), k = n ? (int)(seed / 7 % (uint64_t)(n + 1)) % n : 0;
	if (n == 0)
		return 0;
	size_t others = size - part[k].size, made = 0;
	memcpy(room, part[k].data, part[k].size);
	for (size_t i = k ? 0 : 2; i < sizeof all / sizeof *all && !made && others < most; i++)
		made = all[i](room, part[k].size, most - others - 1, seed);
	if (!made || (k + 1 < n && room[made - 1] != '\n'))
		room[made++] = '\n';
	size_t before = (size_t)(part[k].data - copy), behind = before + part[k].size;
	if (before + made + size - behind > most)
		return 0;
	memcpy(data + before, room, made);
	memcpy(data + before + made, copy + behind, size - behind);
	return before + made + size - behind;
}

/* ---- the command line ---- */

/* False: more words than WORDS. */
static bool
split_words(char *line, char *word[WORDS + 1], int *n)
{
	char *to = line;
	for (*n = 0; *line && *n < WORDS; ++*n) {
		while (*line && strchr(" \t\r\n", *line))
			line++;
		if (!*line)
			break;
		bool quoted = false;
		word[*n] = to;
		for (; *line && (quoted || !strchr(" \t\r\n", *line)); line++) {
			if (*line == '"')
				quoted = !quoted;
			else
				*to++ = *line;
		}
		line += *line != 0;
		*to++ = 0;
	}
	word[*n] = NULL;
	return *n < WORDS;
}

/* A path in the scratch directory. False: it is one elsewhere. */
static bool
place(Ctx *ctx, const char **path)
{
	char text[256];
	if (!*path || strcmp(*path, "-") == 0 || !**path)
		return true;
	if (strchr(*path, '/') || **path == '.' || strlen(*path) > 40)
		return false;
	int n = snprintf(text, sizeof text, "%s/%s", scratch, *path);
	return (*path = arena_text(&ctx->run, text, (size_t)n)) != NULL;
}

static bool
place_all(Ctx *ctx, const Verb *verb, Options *opt)
{
	static const int paths[] = { OPT_OUTPUT, OPT_TRACE, OPT_JUNIT, OPT_TOPOLOGY, OPT_PARAMETERS, OPT_MEASUREMENTS };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (!place(ctx, &opt->value[paths[i]]))
			return false;
	if ((verb->bit & (BATCH | TUNE | ADVISE | WHATIF)) && !place(ctx, &opt->value[OPT_GPUS]))
		return false;
	for (int i = 0; i < opt->n_files; i++) {
		const char *path = opt->file[i];
		if (!place(ctx, &path))
			return false;
		opt->file[i] = (char *)(uintptr_t)path;
	}
	return true;
}

/* ---- what would take long ---- */

static bool
is_small(const Topology *topo)
{
	return topo->n_ranks <= RANKS_MOST && topo->n_links <= LINKS_MOST;
}

static bool
file_is_small(const struct part *part)
{
	Ctx ctx;
	Topology *topo;
	Schedule *sched;
	ctx_init(&ctx);
	const char *data = (const char *)part->data;
	bool small = part->size <= TEXT_MOST;
	if (small && topo_read(&ctx, "", NULL, data, part->size, &topo) == OK)
		small = is_small(topo);
	ctx.error.status = OK;
	bool schedule = small && file_kind(data, part->size) == FILE_SCHEDULE;
	if (schedule && sched_read(&ctx, "", data, part->size, &sched) == OK)
		small = is_small(sched->topo);
	ctx_free(&ctx);
	return small;
}

/* Few chunks: without --size, messages are of up to 1 GB. */
static bool
sizes_are_small(Ctx *ctx, const Options *opt)
{
	const char *each = opt->value[OPT_CHUNK];
	Sizes sizes, chunk;
	int64_t bytes = 8192;
	if (!opt->value[OPT_SIZE])
		return false;
	if (each && strcmp(each, "auto") != 0 && request_sizes(ctx, each, &chunk) == OK)
		bytes = chunk.m[0];
	if (request_sizes(ctx, opt->value[OPT_SIZE], &sizes) != OK)
		return true;
	for (int i = 0; i < sizes.n; i++)
		if (sizes.m[i] / bytes > CHUNKS_MOST)
			return false;
	return sizes.n <= 3;
}

static bool
synthetic_is_small(Ctx *ctx, const char *line)
{
	Text text = { 0 };
	Topology *topo;
	bool small = !line || synthetic_write(ctx, line, &text) != OK
	    || topo_read(ctx, "", NULL, text.data, text.size, &topo) != OK || is_small(topo);
	text_free(&text);
	return small;
}

static bool
options_are_small(const Verb *verb, const Options *opt)
{
	static const int left_out[] = { OPT_LIVE, OPT_HELP, OPT_VERSION, OPT_BUDGET, OPT_PARETO, OPT_LAYOUT };
	const char *servers = opt->value[OPT_SERVERS];
	Ctx ctx;
	if (verb->bit & (TUNE | REPORT | PROBE | COMPLETION | HELP | LIST))
		return false;
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		if (opt->value[left_out[i]])
			return false;
	if ((servers && strlen(servers) > 1) || ((verb->bit & COMPILE) && opt->value[OPT_SIZE]))
		return false;
	ctx_init(&ctx);
	bool small = synthetic_is_small(&ctx, opt->value[OPT_SYNTHETIC])
	    && (!(verb->bit & (SIMULATE | HIERARCHY)) || sizes_are_small(&ctx, opt));
	ctx_free(&ctx);
	return small;
}

/* ---- what comes out ---- */

/* Standard output goes to a file in memory, what verbs say on standard error to nobody. */
static int out_fd = -1, real_out = -1;
static FILE *nobody, *real_error;

static void
take_output(void)
{
	if (out_fd < 0) {
		out_fd = memfd_create("out", MFD_CLOEXEC);
		real_out = dup(STDOUT_FILENO);
		int null = open("/dev/null", O_RDONLY);
		nobody = fopen("/dev/null", "w");
		real_error = stderr;
		REQUIRE(nobody && out_fd >= 0 && real_out >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO,
		    "descriptors");
		close(null);
	}
	fflush(stdout);
	REQUIRE(ftruncate(out_fd, 0) == 0 && lseek(out_fd, 0, SEEK_SET) == 0, "memfd");
	dup2(out_fd, STDOUT_FILENO);
	stderr = nobody;
}

static void
give_output(Text *out)
{
	stderr = real_error;
	fflush(stdout);
	dup2(real_out, STDOUT_FILENO);
	off_t size = lseek(out_fd, 0, SEEK_END);
	REQUIRE(size >= 0 && text_reserve(out, (size_t)size), "no memory");
	REQUIRE(pread(out_fd, out->data, (size_t)size, 0) == size, "memfd");
	out->size = (size_t)size;
	out->data[size] = 0;
}

static double
number_of(const Doc *object, const char *name)
{
	const Doc *at = doc_get(object, name);
	REQUIRE(at && at->kind == DOC_NUMBER, "no number %s", name);
	return at->number;
}

/* JSON, and what simulate and hierarchy have in it. */
static void
judge_json(Ctx *ctx, const Verb *verb, const Text *out)
{
	Doc *root;
	REQUIRE(doc_read_json(ctx, "output", out->data, out->size, &root) == OK, "%s\n%s", ctx->error.text, out->data);
	const Doc *sizes = verb->bit == SIMULATE ? doc_get(root, "sizes") : NULL;
	for (int i = 0; sizes && i < sizes->n; i++)
		REQUIRE(number_of(sizes->child[i], "time_ps") >= number_of(sizes->child[i], "least_ps"), "%s",
		    out->data);
}

static void
judge_output(const Verb *verb, const Options *opt, const Text *out)
{
	Ctx ctx;
	Topology *topo;
	Schedule *sched;
	ctx_init(&ctx);
	REQUIRE(utf8_valid(out->data, out->size) == out->size, "%s", out->data);
	for (size_t i = 0; i < out->size; i++) {
		unsigned char c = (unsigned char)out->data[i];
		REQUIRE(c == '\n' || c == '\t' || (c >= ' ' && c != 127), "0x%02x in %s", c, out->data);
	}
	FileKind kind = file_kind(out->data, out->size);
	const char *format = opt->value[OPT_FORMAT];
	if (kind == FILE_SCHEDULE)
		REQUIRE(sched_read_verified(&ctx, "output", out->data, out->size, &sched) == OK, "%s\n%s",
		    ctx.error.text, out->data);
	else if (kind == FILE_TOPOLOGY && !(verb->bit & TOPOLOGY) && !(format && strcmp(format, "canonical") == 0))
		REQUIRE(topo_read(&ctx, "output", NULL, out->data, out->size, &topo) == OK, "%s\n%s", ctx.error.text,
		    out->data);
	else if (format && strcmp(format, "json") == 0 && *out->data == '{')
		judge_json(&ctx, verb, out);
	ctx_free(&ctx);
}

/* One clean line, with a status of the verb; a few state what they found in their results instead. */
static void
judge_status(const Ctx *ctx, const Verb *verb, Status status)
{
	REQUIRE(verb->exits >> status & 1 && status != INTERNAL && status != NO_MEMORY, "%s: status %d: %s", verb->name,
	    (int)status, ctx->error.text);
	if (ctx->error.status != OK)
		judge_refusal(ctx, status, verb->exits, "");
	else
		REQUIRE(status == OK || (verb->bit & (CHECK | DIFF | LINT)), "%s: status %d without a message",
		    verb->name, (int)status);
	outcome = hash_bytes(outcome, &verb->bit, sizeof verb->bit);
}

static void
run_verb(Ctx *ctx, const Verb *verb, Options *opt)
{
	Text out = { 0 };
	opt->value[OPT_QUIET] = "";
	opt->value[OPT_VERBOSE] = NULL;
	if (opt->value[OPT_JOBS] || (verb->bit & (BATCH | CHECK | DIFF | ADVISE | WHATIF)))
		opt->value[OPT_JOBS] = "1";
	progress_start(false);
	take_output();
	Status status = verb->run(ctx, opt);
	give_output(&out);
	judge_status(ctx, verb, status);
	if (status == OK) {
		n_accepted++;
		outcome = hash_bytes(outcome, &out.size, sizeof out.size);
	}
	if (out.size > 0)
		judge_output(verb, opt, &out);
	text_free(&out);
}

static void
test_input(const uint8_t *data, size_t size)
{
	struct part part[FILES + 1];
	char line[2048], *word[WORDS + 2] = { (char[]){ "blinkc" } };
	int n_words, n = size <= INPUT_MAX ? split(data, size, part) : 0;
	Options opt;
	Ctx ctx;
	if (n == 0 || part[0].size >= sizeof line || memchr(part[0].data, 0, part[0].size))
		return;
	memcpy(line, part[0].data, part[0].size);
	line[part[0].size] = 0;
	scratch_begin();
	if (!split_words(line, word, &n_words) || n_words == 0)
		return;
	const Verb *verb = verb_find(word[0]);
	if (!verb)
		return;
	ctx_init(&ctx);
	optind = 0;	/* getopt begins anew */
	Status status = options_parse(&ctx, n_words, word, verb->name, verb->bit, verbs_text, &opt);
	bool small = status == OK && options_are_small(verb, &opt) && place_all(&ctx, verb, &opt);
	for (int i = 1; i < n && small; i++)
		small = file_is_small(&part[i]) && !strchr(part[i].name, '/') && part[i].name[0] != '.';
	if (status != OK)
		judge_status(&ctx, verb, status);
	for (int i = 1; i < n && small; i++)
		scratch_write(part[i].name, part[i].data, part[i].size);
	if (small) {
		run_verb(&ctx, verb, &opt);
		scratch_clear();
	}
	ctx_free(&ctx);
}
