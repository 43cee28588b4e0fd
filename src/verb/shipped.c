#include "verb/shipped.h"
#include "base/sort.h"
#include "base/array.h"
#include "base/file.h"
#include "base/names.h"
#include "base/printable.h"
#include "verb/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const endings[] = { ".xml", ".json" };

enum { N_ENDINGS = sizeof endings / sizeof *endings };

const char *const *
topology_dirs(void)
{
	static char installed[4200], built[4200], checked[4200];
	static const char *const dirs[] = { installed, built, checked, NULL };
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	program[n > 0 ? n : 0] = 0;
	char *slash = strrchr(program, '/');
	*(slash ? slash : program) = 0;
	snprintf(installed, sizeof installed, "%s/../share/blinkc/topologies", program);
	snprintf(built, sizeof built, "%s/../topologies", program);
	/* A build with sanitizers lies in build/asan. */
	snprintf(checked, sizeof checked, "%s/../../topologies", program);
	return dirs;
}

const char *
topology_schema(char *space)
{
	for (const char *const *dir = topology_dirs(); *dir; dir++) {
		int n = snprintf(space, FILE_PATH_ROOM, "%s/../schemas/topology.xsd", *dir);
		if (n < FILE_PATH_ROOM && file_is_there(space))
			return space;
	}
	return NULL;
}

/* ---- the list ---- */

/* A file of a directory, how late its directory and its ending come, and its name. */
struct file {
	const char *name, *path;
	int order;
};

static int
by_name(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* A path without "." and "..", where it can be had. */
static const char *
real_path(Ctx *ctx, const char *path)
{
	char *real = realpath(path, NULL);
	const char *kept = arena_text(&ctx->run, real ? real : path, strlen(real ? real : path));
	free(real);
	return kept;
}

/* The files of one directory, not of those below it. */
static Status
add_directory(Ctx *ctx, const char *directory, int e, int order, struct file **file, int *n, int *room)
{
	const char **path;
	int n_paths;
	size_t ending = strlen(endings[e]);
	TRY(file_list(ctx, directory, endings[e], &path, &n_paths));
	for (int i = 0; i < n_paths; i++) {
		const char *name = path[i] + strlen(directory) + 1;
		size_t length = strlen(name);
		if (strchr(name, '/') || length <= ending)
			continue;
		TRY(GROW(ctx, *file, *n, *room));
		(*file)[*n] = (struct file){ arena_text(&ctx->run, name, length - ending), real_path(ctx, path[i]),
			order };
		if (!(*file)[*n].name || !(*file)[*n].path)
			return fail_memory(ctx);
		(*n)++;
	}
	return OK;
}

Status
shipped_list(Ctx *ctx, Shipped **out, int *n_out)
{
	struct file *file = NULL;
	int n = 0, room = 0, order = 0;
	for (const char *const *dir = topology_dirs(); *dir; dir++)
		for (int e = 0; e < N_ENDINGS; e++)
			if (file_is_directory(*dir))
				TRY(add_directory(ctx, *dir, e, order++, &file, &n, &room));
	sort_array(file, n, sizeof *file, by_name);
	TRY(NEW(ctx, *out, n));
	*n_out = 0;
	for (int i = 0; i < n; i++)
		if (i == 0 || strcmp(file[i].name, file[i - 1].name) != 0)
			(*out)[(*n_out)++] = (Shipped){ file[i].name, file[i].path };
	return OK;
}

/* ---- names ---- */

/* Anything but a directory: a topology may also come through a pipe. */
static bool
is_there(const char *path)
{
	struct stat at;
	return stat(path, &at) == 0 && !S_ISDIR(at.st_mode);
}

/* Its file, by its name or by that of the file. NULL: none, or no memory. */
static const char *
find(Ctx *ctx, const char *argument)
{
	char path[FILE_PATH_ROOM];
	if (!*argument || strchr(argument, '/') || *argument == '.')
		return NULL;
	for (const char *const *dir = topology_dirs(); *dir; dir++)
		for (int e = 0; e <= N_ENDINGS; e++) {
			int n = snprintf(path, sizeof path, "%s/%s%s", *dir, argument, e < N_ENDINGS ? endings[e] : "");
			if (n < FILE_PATH_ROOM && file_is_there(path))
				return real_path(ctx, path);
		}
	return NULL;
}

/* Names that have `text` in them: H100 means dgx-h100 and others. */
static int
names_with(Names names, const char *text, const char **found, int most)
{
	int n = 0;
	for (int i = 0; i < names.n && n < most && strlen(text) >= 3; i++)
		if (strcasestr(names.name[i], text))
			found[n++] = names.name[i];
	return n;
}

static Status
fail_unknown(Ctx *ctx, const char *argument)
{
	Shipped *list;
	const char **name, *near[3];
	char meant[256] = "";
	int n;
	TRY(shipped_list(ctx, &list, &n));
	TRY(NEW(ctx, name, n));
	for (int i = 0; i < n; i++)
		name[i] = list[i].name;
	int n_near = names_like_all((Names){ n, name }, argument, near, 3);
	if (n_near == 0)
		n_near = names_with((Names){ n, name }, argument, near, 3);
	size_t at = 0;
	for (int i = 0; i < n_near && at < sizeof meant; i++)
		at += (size_t)snprintf(meant + at, sizeof meant - at, "%s%.60s",
		    i == 0 ? "did you mean " : i + 1 < n_near ? ", " : " or ", near[i]);
	return fail(ctx, IO,
	    "%.200s: no such file, and no topology of that name: %s%sblinkc list has those that come along",
	    argument, meant, n_near ? "? " : "");
}

Status
schedule_file(Ctx *ctx, const char *argument, Text *out)
{
	if (strcmp(argument, "-") != 0 && !is_there(argument) && find(ctx, argument))
		return fail(ctx, BAD_INPUT, "%s: a machine that comes along: want a schedule; blinkc %s -o FILE "
		    "compiles one", argument, argument);
	return file_read(ctx, argument, out);
}

bool
names_shipped(Ctx *ctx, const char *argument)
{
	return find(ctx, argument);
}

Status
topology_file(Ctx *ctx, bool say, const char *argument, const char **out)
{
	*out = argument;
	if (strcmp(argument, "-") == 0 || is_there(argument))
		return OK;
	const char *path = find(ctx, argument);
	if (!path) {
		/* What has a path is no name: reading it fails with the system's reason. */
		bool name = *argument && !strchr(argument, '/') && !file_is_directory(argument);
		return name ? fail_unknown(ctx, argument) : OK;
	}
	*out = path;
	if (!say)
		return OK;
	progress_hide();
	fputs("taken       ", stderr);
	print_name(stderr, path);
	fputc('\n', stderr);
	return OK;
}
