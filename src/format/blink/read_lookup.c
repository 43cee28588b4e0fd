/* Search in the lookup file of an index, by reads of a few bytes each. Nothing in the file is trusted: each offset is
 * held against its section, and each section against the size of the file. */
#include "format/blink/index_reader.h"
#include "format/blink/lookup.h"
#include "base/limits.h"
#include "base/printable.h"
#include "format/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct group {
	int n, n_entries;
	uint64_t at;		/* of its first record, in records */
};

struct Lookup {
	const char *path;
	int fd, width, n_gpus, n_entries, n_groups;
	struct stat file;	/* when it was opened */
	uint64_t json_size;
	struct section {
		uint64_t at, size;
	} section[N_LOOKUP_SECTIONS];
	struct group *group;	/* ascending */
	char digest[DIGEST_ROOM];
};

/* ---- bytes ---- */

static Status
fail_damaged(Ctx *ctx, const Lookup *lookup, const char *what)
{
	return fail(ctx, BAD_INPUT, "%s: %s: damaged: want what blinkc convert makes of its index", lookup->path, what);
}

/* Is it the file that was opened? A program may have closed what is not its own, and the number is another file's. */
static bool
is_same(const Lookup *lookup)
{
	struct stat now;
	return fstat(lookup->fd, &now) == 0 && now.st_dev == lookup->file.st_dev && now.st_ino == lookup->file.st_ino
	    && now.st_size == lookup->file.st_size && now.st_mtim.tv_sec == lookup->file.st_mtim.tv_sec
	    && now.st_mtim.tv_nsec == lookup->file.st_mtim.tv_nsec;
}

static bool
read_bytes(int fd, uint64_t at, void *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(at + done));
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Bytes of a section, which must have them. */
static Status
get(Ctx *ctx, const Lookup *lookup, enum lookup_section section, uint64_t at, void *to, size_t size)
{
	const struct section *in = &lookup->section[section];
	if (at > in->size || size > in->size - at)
		return fail_damaged(ctx, lookup, "an offset past the end of its section");
	if (!read_bytes(lookup->fd, in->at + at, to, size))
		return fail(ctx, IO, "%s: cut short since it was opened, or not readable", lookup->path);
	return OK;
}

/* ---- open ---- */

/* The sections follow each other from the header to the end of the file. */
static bool
take_header(Lookup *lookup, const unsigned char *header)
{
	uint64_t at = HEADER_BYTES, entries = lookup_get(header + HEADER_ENTRIES, 8);
	if (memcmp(header, LOOKUP_MAGIC, LOOKUP_MAGIC_BYTES) != 0
	    || lookup_get(header + HEADER_VERSION, 4) != LOOKUP_VERSION
	    || lookup_get(header + HEADER_SIZE, 8) != (uint64_t)lookup->file.st_size || entries > LIMIT_INDEX)
		return false;
	for (int s = 0; s < N_LOOKUP_SECTIONS; s++) {
		struct section *section = &lookup->section[s];
		section->at = lookup_get(header + HEADER_SECTIONS + 16 * s, 8);
		section->size = lookup_get(header + HEADER_SECTIONS + 16 * s + 8, 8);
		if (section->at != at || section->size > (uint64_t)lookup->file.st_size - at)
			return false;
		at += section->size;
	}
	lookup->width = (int)lookup_get(header + HEADER_WIDTH, 4);
	lookup->n_entries = (int)entries;
	lookup->json_size = lookup_get(header + HEADER_JSON_SIZE, 8);
	memcpy(lookup->digest, header + HEADER_DIGEST, DIGEST_ROOM);
	return at == (uint64_t)lookup->file.st_size && (lookup->width == 1 || lookup->width == 2);
}

/* As make sees it, or else by all bytes, where files were copied in another order. */
static bool
is_made_from(const Lookup *lookup, int json)
{
	struct stat of;
	char digest[DIGEST_ROOM];
	const struct timespec *made = &lookup->file.st_mtim;
	if (fstat(json, &of) != 0 || !S_ISREG(of.st_mode) || (uint64_t)of.st_size != lookup->json_size)
		return false;
	if (made->tv_sec > of.st_mtim.tv_sec
	    || (made->tv_sec == of.st_mtim.tv_sec && made->tv_nsec >= of.st_mtim.tv_nsec))
		return true;
	return digest_of_file(json, digest) && memcmp(digest, lookup->digest, strlen(digest) + 1) == 0;
}

/* Groups in ascending order, each with its records one after the other. */
static Status
read_groups(Ctx *ctx, Lookup *lookup, bool *good)
{
	const struct section *of = &lookup->section[LOOKUP_GROUPS];
	uint64_t at = 0, entries = 0;
	*good = of->size % GROUP_BYTES == 0 && of->size / GROUP_BYTES <= LIMIT_RANKS;
	if (!*good)
		return OK;
	lookup->n_groups = (int)(of->size / GROUP_BYTES);
	TRY(NEW(ctx, lookup->group, lookup->n_groups));
	for (int g = 0; g < lookup->n_groups && *good; g++) {
		unsigned char blob[GROUP_BYTES];
		struct group *group = &lookup->group[g];
		*good = read_bytes(lookup->fd, of->at + (uint64_t)g * GROUP_BYTES, blob, sizeof blob);
		uint64_t n = lookup_get(blob, 4), n_entries = lookup_get(blob + 4, 4);
		*good = *good && n >= 2 && n <= (uint64_t)lookup->n_gpus && n_entries >= 1 && n_entries <= LIMIT_INDEX
		    && lookup_get(blob + 8, 8) == at && (g == 0 || (int)n > group[-1].n);
		if (!*good)
			return OK;
		*group = (struct group){ (int)n, (int)n_entries, at };
		at += n_entries * lookup_record_bytes((int)n, lookup->width);
		entries += n_entries;
	}
	*good = at == lookup->section[LOOKUP_RECORDS].size && entries == (uint64_t)lookup->n_entries;
	return OK;
}

/* The index without entries. */
static Status
read_head(Ctx *ctx, Lookup *lookup, Index **head, bool *good)
{
	const struct section *of = &lookup->section[LOOKUP_HEAD];
	char *text;
	*good = of->size <= LIMIT_FILE_BYTES;
	if (!*good)
		return OK;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(TEMP(ctx, text, of->size + 1));
	*good = read_bytes(lookup->fd, of->at, text, (size_t)of->size);
	Status status = *good ? index_read(ctx, lookup->path, text, (size_t)of->size, head) : OK;
	arena_release(&ctx->scratch, mark);
	if (status == NO_MEMORY)
		return status;
	*good = *good && status == OK && (*head)->n_entries == 0;
	if (status != OK)
		ctx->error = (Error){ .status = OK };
	return OK;
}

static Status
open_opened(Ctx *ctx, Lookup *lookup, int json, Index **head, bool *good)
{
	unsigned char header[HEADER_BYTES];
	*good = fstat(lookup->fd, &lookup->file) == 0 && S_ISREG(lookup->file.st_mode)
	    && read_bytes(lookup->fd, 0, header, sizeof header) && take_header(lookup, header)
	    && is_made_from(lookup, json);
	if (!*good)
		return OK;
	TRY(read_head(ctx, lookup, head, good));
	if (!*good)
		return OK;
	lookup->n_gpus = (*head)->n_gpus;
	return read_groups(ctx, lookup, good);
}

Status
lookup_open(Ctx *ctx, const char *path, int json, Lookup **out, Index **head)
{
	Lookup *lookup;
	bool good;
	*out = NULL;
	TRY(NEW(ctx, lookup, 1));
	lookup->path = arena_text(&ctx->run, path, strlen(path));
	if (!lookup->path)
		return fail_memory(ctx);
	/* Opening a pipe would wait for its writer. */
	lookup->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (lookup->fd < 0)
		return OK;
	Status status = open_opened(ctx, lookup, json, head, &good);
	if (status == OK && good)
		*out = lookup;
	else
		close(lookup->fd);
	return status;
}

void
lookup_close(Lookup *lookup)
{
	if (lookup && is_same(lookup))
		close(lookup->fd);
}

int
lookup_entries(const Lookup *lookup)
{
	return lookup->n_entries;
}

/* ---- entries ---- */

static Status
read_file_name(Ctx *ctx, const Lookup *lookup, uint64_t at, const char **out)
{
	unsigned char length[2];
	TRY(get(ctx, lookup, LOOKUP_FILES, at, length, sizeof length));
	size_t n = (size_t)lookup_get(length, 2);
	if (n > LIMIT_TEXT_BYTES)
		return fail_damaged(ctx, lookup, "a path");
	char *file = arena_raw(&ctx->run, n + 1, 1);
	if (!file)
		return fail_memory(ctx);
	TRY(get(ctx, lookup, LOOKUP_FILES, at + 2, file, n));
	file[n] = 0;
	if (strlen(file) != n || utf8_valid(file, n) != n || !index_path_is_inside(file))
		return fail_damaged(ctx, lookup, "a path");
	*out = file;
	return OK;
}

static Status
read_value(Ctx *ctx, const Lookup *lookup, uint64_t value, IndexEntry *entry)
{
	unsigned char blob[VALUE_BYTES];
	double rate[2];
	uint64_t trees, depth, from, to;
	TRY(get(ctx, lookup, LOOKUP_VALUES, value * VALUE_BYTES, blob, sizeof blob));
	for (int i = 0; i < 2; i++) {
		uint64_t bits = lookup_get(blob + VALUE_RATE + 8 * i, 8);
		memcpy(&rate[i], &bits, sizeof bits);
	}
	trees = lookup_get(blob + VALUE_TREES, 4);
	depth = lookup_get(blob + VALUE_DEPTH, 4);
	from = lookup_get(blob + VALUE_FROM, 8);
	to = lookup_get(blob + VALUE_TO, 8);
	if (!(rate[0] >= 0 && rate[0] <= 1e15 && rate[1] >= 0 && rate[1] <= 1e15) || trees < 1
	    || trees > LIMIT_TREES || depth < 1 || depth > 2 * LIMIT_RANKS || from > to || to > LIMIT_MESSAGE
	    || lookup_get(blob + VALUE_SIZED, 4) > 1)
		return fail_damaged(ctx, lookup, "a value");
	entry->rate = rate[0];
	entry->bound = rate[1];
	entry->trees = (int)trees;
	entry->depth = (int)depth;
	entry->sized = lookup_get(blob + VALUE_SIZED, 4);
	entry->from = (int64_t)from;
	entry->to = (int64_t)to;
	entry->form = lookup_get(blob + VALUE_FORM, 8);
	return read_file_name(ctx, lookup, lookup_get(blob + VALUE_FILE, 4), &entry->file);
}

static void
get_numbers(const Lookup *lookup, const unsigned char *from, int n, int *to)
{
	for (int i = 0; i < n; i++)
		to[i] = (int)lookup_get(from + (size_t)i * (size_t)lookup->width, lookup->width);
}

/* A whole record: its list of GPUs, its collective and its root. */
static void
take_job(const Lookup *lookup, const unsigned char *record, int n, int *gpu, IndexEntry *out)
{
	const unsigned char *tail = record + lookup_record_bytes(n, lookup->width) - RECORD_TAIL;
	int root = (int)lookup_get(tail, 2);
	get_numbers(lookup, record, n, gpu);
	*out = (IndexEntry){ .n = n, .gpu = gpu, .coll = (Collective)tail[2],
	    .root = root == LOOKUP_NO_ROOT ? -1 : root };
}

static bool
is_valid(const Lookup *lookup, const IndexEntry *entry, bool *seen)
{
	bool good = (int)entry->coll < N_COLLECTIVES
	    && (collective_rooted(entry->coll) ? entry->root >= 0 && entry->root < entry->n : entry->root < 0);
	for (int i = 0; i < entry->n && good; i++) {
		int rank = entry->rank[i];
		good = entry->gpu[i] < lookup->n_gpus && rank < entry->n && !seen[rank];
		if (good)
			seen[rank] = true;
	}
	return good;
}

/* Record `i` of a group, with all that an entry has but its baselines. */
static Status
read_record(Ctx *ctx, const Lookup *lookup, const struct group *group, int i, IndexEntry *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	size_t bytes = lookup_record_bytes(group->n, lookup->width);
	unsigned char *record;
	bool *seen;
	int *gpu, *rank;
	TRY(TEMP(ctx, record, bytes));
	TRY(TEMP(ctx, seen, group->n));
	TRY(NEW(ctx, gpu, group->n));
	TRY(NEW(ctx, rank, group->n));
	TRY(get(ctx, lookup, LOOKUP_RECORDS, group->at + (uint64_t)i * bytes, record, bytes));
	take_job(lookup, record, group->n, gpu, out);
	get_numbers(lookup, record + (size_t)group->n * (size_t)lookup->width, group->n, rank);
	out->rank = rank;
	if (!is_valid(lookup, out, seen))
		return fail_damaged(ctx, lookup, "an entry");
	Status status = read_value(ctx, lookup, lookup_get(record + bytes - 4, 4), out);
	arena_release(&ctx->scratch, mark);
	return status;
}

static const struct group *
find_group(const Lookup *lookup, int n)
{
	int g = 0;
	while (g < lookup->n_groups && lookup->group[g].n != n)
		g++;
	return g < lookup->n_groups ? &lookup->group[g] : NULL;
}

/* How record i of the group compares to a job. */
static Status
compare(Ctx *ctx, const Lookup *lookup, const struct group *group, int i, const IndexEntry *want, int *order)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	size_t bytes = lookup_record_bytes(group->n, lookup->width);
	unsigned char *record;
	IndexEntry job;
	int *gpu;
	TRY(TEMP(ctx, record, bytes));
	TRY(TEMP(ctx, gpu, group->n));
	TRY(get(ctx, lookup, LOOKUP_RECORDS, group->at + (uint64_t)i * bytes, record, bytes));
	take_job(lookup, record, group->n, gpu, &job);
	*order = index_job_order(&job, want);
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* The first record that does not come before the job, and how many are the job's. */
static Status
find_records(Ctx *ctx, const Lookup *lookup, const struct group *group, const IndexEntry *want, int *first, int *n)
{
	int low = 0, high = group->n_entries, order;
	while (low < high) {
		int middle = low + (high - low) / 2;
		TRY(compare(ctx, lookup, group, middle, want, &order));
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*first = low;
	for (*n = 0; low + *n < group->n_entries; ++*n) {
		TRY(compare(ctx, lookup, group, low + *n, want, &order));
		if (order != 0)
			break;
	}
	return OK;
}

static Status
check_same(Ctx *ctx, const Lookup *lookup)
{
	return is_same(lookup) ? OK
	    : fail(ctx, IO, "%s: not the file that was opened, or changed since", lookup->path);
}

Status
lookup_job(Ctx *ctx, const Lookup *lookup, const IndexEntry *want, const IndexEntry **out, int *n)
{
	const struct group *group = find_group(lookup, want->n);
	IndexEntry *entry;
	int first;
	*out = NULL;
	*n = 0;
	TRY(check_same(ctx, lookup));
	if (!group)
		return OK;
	TRY(find_records(ctx, lookup, group, want, &first, n));
	TRY(NEW(ctx, entry, *n));
	for (int i = 0; i < *n; i++)
		TRY(read_record(ctx, lookup, group, first + i, &entry[i]));
	*out = *n > 0 ? entry : NULL;
	return OK;
}

/* ---- isomorphic jobs ---- */

struct candidates {
	Ctx *ctx;
	const Lookup *lookup;
	const struct group *group;
	Collective coll;
	uint64_t form;
	const IndexEntry **list;
	int n;
};

static Status
get_candidate(Ctx *ctx, const Lookup *lookup, uint64_t i, uint32_t field[4])
{
	unsigned char blob[CANDIDATE_BYTES];
	TRY(get(ctx, lookup, LOOKUP_CANDIDATES, i * CANDIDATE_BYTES, blob, sizeof blob));
	for (int f = 0; f < 4; f++)
		field[f] = (uint32_t)lookup_get(blob + 4 * f, 4);
	return OK;
}

/* The first that is not before this number of GPUs and collective. */
static Status
first_candidate(Ctx *ctx, const Lookup *lookup, uint32_t n, uint32_t coll, uint64_t *out)
{
	uint64_t low = 0, high = lookup->section[LOOKUP_CANDIDATES].size / CANDIDATE_BYTES;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		uint32_t field[4];
		TRY(get_candidate(ctx, lookup, middle, field));
		if (field[0] < n || (field[0] == n && field[1] < coll))
			low = middle + 1;
		else
			high = middle;
	}
	*out = low;
	return OK;
}

/* Those of one file follow each other, by their place in the index: the first that has the form stands for the file. */
static Status
add_candidate(struct candidates *c, uint32_t value, uint32_t place)
{
	IndexEntry probe = { .n = 0 }, *entry;
	ArenaMark mark = arena_mark(&c->ctx->run);
	TRY(read_value(c->ctx, c->lookup, value, &probe));
	bool wanted = !c->form || !probe.form || probe.form == c->form;
	bool same = c->n > 0 && strcmp(c->list[c->n - 1]->file, probe.file) == 0;
	arena_release(&c->ctx->run, mark);
	if (!wanted || same)
		return OK;
	if (place >= (uint32_t)c->group->n_entries)
		return fail_damaged(c->ctx, c->lookup, "a candidate");
	TRY(NEW(c->ctx, entry, 1));
	TRY(read_record(c->ctx, c->lookup, c->group, (int)place, entry));
	if (entry->coll != c->coll)
		return fail_damaged(c->ctx, c->lookup, "a candidate");
	c->list[c->n++] = entry;
	return OK;
}

Status
lookup_candidates(Ctx *ctx, const Lookup *lookup, Collective coll, int n, uint64_t form, const IndexEntry ***out,
    int *n_out)
{
	struct candidates c = { .ctx = ctx, .lookup = lookup, .group = find_group(lookup, n), .coll = coll,
		.form = form };
	uint64_t first = 0, end = 0;
	TRY(check_same(ctx, lookup));
	if (c.group) {
		TRY(first_candidate(ctx, lookup, (uint32_t)n, (uint32_t)coll, &first));
		TRY(first_candidate(ctx, lookup, (uint32_t)n, (uint32_t)coll + 1, &end));
	}
	TRY(NEW(ctx, c.list, end > first ? end - first : 0));
	for (uint64_t i = first; i < end; i++) {
		uint32_t field[4];
		TRY(get_candidate(ctx, lookup, i, field));
		TRY(add_candidate(&c, field[2], field[3]));
	}
	*out = c.list;
	*n_out = c.n;
	return OK;
}

Status
lookup_path(Ctx *ctx, const char *index_path, const char **out)
{
	size_t n = strlen(index_path), ending = strlen(".json");
	*out = NULL;
	if (!index_file_name(index_path))
		return OK;
	char *path = arena_raw(&ctx->run, n - ending + sizeof ".lookup", 1);
	if (!path)
		return fail_memory(ctx);
	memcpy(path, index_path, n - ending);
	strcpy(path + n - ending, ".lookup");
	*out = path;
	return OK;
}
