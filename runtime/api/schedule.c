/* Schedules: a file is read, checked and verified, and lowered when a communicator of all ranks needs its steps; a
 * shared object has its table already. */
#include "api/schedule.h"
#include "all_ranks/exec.h"
#include "base/file_read.h"
#include "schedule/schedule.h"
#include "support/give.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
free_schedule(struct blinkSchedule *sched)
{
	if (sched->object)
		dlclose(sched->object);
	pthread_mutex_destroy(&sched->lock);
	ctx_free(&sched->ctx);
	free(sched);
}

static void
fill_info(struct blinkSchedule *sched)
{
	const struct blink_program *p = sched->program;
	sched->info = (blinkScheduleInfo_t){
		.collective = (blinkCollective_t)p->collective,
		.nRanks = p->n_ranks,
		.root = p->root,
		.nTrees = p->n_trees,
		.nParts = p->n_parts,
		.collectiveName = collective_name((Collective)p->collective),
		.algorithm = p->algorithm,
		.topology = p->topology,
		.digest = p->digest,
		.backend = p->backend,
	};
}

/* found: NULL where no index names the file. */
static Status
read_json(struct blinkSchedule *sched, const char *name, const char *json, size_t size, const struct found *found,
    Schedule **out)
{
	digest_of(json, size, sched->digest);
	return schedule_parse(&sched->ctx, name, json, size, found, out);
}

/* Without its text in memory, if it is laid out for that; else *out is not set. */
static Status
read_file(struct blinkSchedule *sched, const char *path, int fd, Schedule **out)
{
	SchedulePart all;
	bool done;
	TRY(sched_read_file(&sched->ctx, path, fd, &all, &done));
	if (done) {
		*out = all.sched;
		memcpy(sched->digest, all.digest, sizeof sched->digest);
	}
	return OK;
}

static Status
keep_read(struct blinkSchedule *sched, const Schedule *read)
{
	TRY(exec_describe(&sched->ctx, read, sched->digest, &sched->built));
	sched->program = &sched->built;
	sched->read = read;
	return OK;
}

static Status
lower(struct blinkSchedule *sched)
{
	Ctx *ctx = &sched->ctx;
	const Schedule *listed = sched->read;
	Schedule *all;
	Program *prog;
	if (!sched_is_list(listed)) {
		TRY(sched_expand(ctx, listed->topo->name, listed, &all));
		listed = all;
	}
	TRY(sched_lower(ctx, listed, &prog));
	return exec_program(ctx, prog, sched->digest, &sched->lowered);
}

/* Under the lock; afterwards it does not change. */
static Status
lower_once(struct blinkSchedule *sched, struct blink_error *err)
{
	Ctx *ctx = &sched->ctx;
	if (!sched->read || sched->is_lowered)
		return OK;
	ArenaMark mark = arena_mark(&ctx->run);
	Status status = lower(sched);
	arena_free(&ctx->scratch);
	sched->is_lowered = status == OK;
	if (status != OK) {
		*err = (struct blink_error){ .code = (int)status };
		snprintf(err->text, sizeof err->text, "%.500s", ctx->error.text);
		ctx->error.status = OK;
		arena_release(&ctx->run, mark);
	}
	return status;
}

Status
schedule_lower(blinkSchedule_t sched, const struct blink_program **out, struct blink_error *err)
{
	pthread_mutex_lock(&sched->lock);
	Status status = lower_once(sched, err);
	*out = sched->is_lowered ? &sched->lowered : sched->program;
	pthread_mutex_unlock(&sched->lock);
	return status;
}

static Status
load_object(struct blinkSchedule *sched, const char *path)
{
	Ctx *ctx = &sched->ctx;
	char *full = NULL;
	/* dlopen searches for a name without a slash in the system's directories. */
	if (asprintf(&full, "%s%s", strchr(path, '/') ? "" : "./", path) < 0)
		return fail_memory(ctx);
	sched->object = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	free(full);
	if (!sched->object)
		return fail(ctx, BAD_INPUT, "%s: %s", path, dlerror());
	const struct blink_program *p = dlsym(sched->object, "blink_program");
	if (!p)
		return fail(ctx, BAD_INPUT,
		    "%s: no symbol blink_program: want an object compiled from code of blinkc", path);
	if (p->abi != BLINK_PROGRAM_ABI)
		return fail(ctx, BAD_INPUT, "%s: program ABI %u: want %u: compile it with this libblink's headers",
		    path, (unsigned)p->abi, (unsigned)BLINK_PROGRAM_ABI);
	if (p->n_ranks < 1 || p->n_ranks > LIMIT_RANKS || p->collective < 0 || p->collective >= N_COLLECTIVES
	    || p->n_parts < 1 || p->n_parts > BLINK_PARTS_MAX)
		return fail(ctx, BAD_INPUT, "%s: blink_program: %d ranks, collective %d, %d parts: not a schedule",
		    path, p->n_ranks, p->collective, p->n_parts);
	sched->program = p;
	return OK;
}

/* By the first bytes of a file that can be read twice, unlike a pipe. */
static Status
is_object(Ctx *ctx, const char *path, int fd, bool *object)
{
	char magic[4] = "";
	ssize_t n = 0;
	for (size_t at = 0; at < sizeof magic; at += n > 0 ? (size_t)n : 0) {
		n = pread(fd, magic + at, sizeof magic - at, (off_t)at);
		if (n < 0 && errno != EINTR && errno != ESPIPE)
			return fail(ctx, IO, "%s: %s", path, strerror(errno));
		if (n == 0 || (n < 0 && errno == ESPIPE))
			break;
	}
	*object = memcmp(magic, "\177ELF", sizeof magic) == 0;
	return OK;
}

static Status
load_path(struct blinkSchedule *sched, const char *path, bool data_only, const struct found *found)
{
	Ctx *ctx = &sched->ctx;
	Text text = { 0 };
	Schedule *read = NULL;
	bool object = false;
	int fd;
	TRY(found ? file_open_regular(ctx, path, &fd) : file_open(ctx, path, &fd));
	Status status = is_object(ctx, path, fd, &object);
	if (status == OK && object) {
		status = data_only ? fail(ctx, BAD_INPUT, "%s: a shared object: want a schedule file", path)
		    : load_object(sched, path);
	} else if (status == OK && !found) {
		status = read_file(sched, path, fd, &read);
	}
	if (status == OK && !object && !read)
		status = file_rest(ctx, path, fd, &text);
	if (status == OK && !object && !read)
		status = read_json(sched, path, text.data ? text.data : "", text.size, found, &read);
	text_free(&text);
	close(fd);
	return status == OK && read ? keep_read(sched, read) : status;
}

/* Where a schedule comes from. */
struct source {
	const char *path;		/* NULL: from memory */
	bool data_only;			/* a shared object is refused */
	const struct found *found;	/* the entry of an index that names the path, or NULL */
	const char *name, *json;	/* from memory: `size` bytes of text, and what messages call it */
	size_t size;
};

static Status
load_memory(struct blinkSchedule *sched, const struct source *from)
{
	Schedule *read;
	TRY(read_json(sched, from->name, from->json, from->size, NULL, &read));
	return keep_read(sched, read);
}

static blinkResult_t
load(const struct source *from, blinkSchedule_t *out, blinkError_t *error)
{
	struct blinkSchedule *sched = calloc(1, sizeof *sched);
	if (!sched)
		return give_error(error, NO_MEMORY, "out of memory");
	ctx_init(&sched->ctx);
	pthread_mutex_init(&sched->lock, NULL);
	Status status = from->path ? load_path(sched, from->path, from->data_only, from->found)
	    : load_memory(sched, from);
	arena_free(&sched->ctx.scratch);
	if (status != OK) {
		give_error(error, status, sched->ctx.error.text);
		free_schedule(sched);
		return (blinkResult_t)status;
	}
	fill_info(sched);
	*out = sched;
	return blinkSuccess;
}

blinkResult_t
schedule_load(const char *path, const struct found *found, blinkSchedule_t *out, blinkError_t *error)
{
	/* An index is data: what it names is not executed. */
	return load(&(struct source){ .path = path, .data_only = true, .found = found }, out, error);
}

blinkResult_t
blinkScheduleLoad(const char *path, blinkSchedule_t *sched, blinkError_t *error)
{
	if (!path || !sched)
		return give_error(error, USAGE, "an argument is NULL");
	return load(&(struct source){ .path = path }, sched, error);
}

blinkResult_t
blinkScheduleLoadData(const char *path, blinkSchedule_t *sched, blinkError_t *error)
{
	if (!path || !sched)
		return give_error(error, USAGE, "an argument is NULL");
	return load(&(struct source){ .path = path, .data_only = true }, sched, error);
}

blinkResult_t
blinkScheduleParse(const char *name, const char *json, size_t size, blinkSchedule_t *sched, blinkError_t *error)
{
	if (!name || !json || !sched)
		return give_error(error, USAGE, "an argument is NULL");
	return load(&(struct source){ .name = name, .json = json, .size = size }, sched, error);
}

blinkResult_t
blinkScheduleGetInfo(blinkSchedule_t sched, blinkScheduleInfo_t *info)
{
	if (!sched || !info)
		return blinkInvalidArgument;
	*info = sched->info;
	return blinkSuccess;
}

blinkResult_t
blinkScheduleSplit(blinkSchedule_t sched, size_t count, blinkDataType_t type, size_t *elements)
{
	int64_t end[BLINK_PARTS_MAX], size = (int64_t)blinkTypeSize(type);
	if (!sched || !elements || size == 0 || count > (size_t)(INT64_MAX / 4 / sched->program->n_ranks / size))
		return blinkInvalidArgument;
	blink_part_ends(sched->program, (int64_t)count, size, end);
	for (int i = 0; i < sched->program->n_parts; i++)
		elements[i] = (size_t)(end[i] - (i > 0 ? end[i - 1] : 0));
	return blinkSuccess;
}

blinkResult_t
blinkScheduleDestroy(blinkSchedule_t sched)
{
	if (sched)
		free_schedule(sched);
	return blinkSuccess;
}
