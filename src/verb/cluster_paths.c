/* Files of servers, as a cluster file names them: below its own folder. */
#include "verb/cluster_paths.h"
#include "base/file.h"
#include "verb/shipped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the folder of a path, with its last slash; 0: none is named. */
static size_t
folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool
same_folder(char *const *path, int n)
{
	size_t length = folder_length(path[0]);
	for (int i = 1; i < n; i++)
		if (folder_length(path[i]) != length || memcmp(path[i], path[0], length) != 0)
			return false;
	return true;
}

static Status
real_path(Ctx *ctx, const char *path, char **out)
{
	char *real = realpath(path, NULL);
	if (!real)
		return fail(ctx, IO, "%s: no such file: want the topology file of a server", path);
	*out = arena_text(&ctx->run, real, strlen(real));
	free(real);
	return *out ? OK : fail_memory(ctx);
}

/* The folder that all of them are below, with its slash. */
static size_t
common_folder(char *const *path, int n)
{
	size_t length = folder_length(path[0]);
	for (int i = 1; i < n; i++) {
		size_t same = 0;
		while (same < length && path[i][same] == path[0][same])
			same++;
		while (same > 0 && path[0][same - 1] != '/')
			same--;
		length = same;
	}
	return length;
}

Status
cluster_paths(Ctx *ctx, const Options *opt, const char **label, ClusterServers *servers)
{
	char **path;
	TRY(NEW(ctx, path, opt->n_files));
	for (int i = 0; i < opt->n_files; i++) {
		const char *found;
		TRY(topology_file(ctx, opt->value[OPT_QUIET], opt->file[i], &found));
		if (!file_is_there(found))
			return fail(ctx, IO, "%s: %s: want the topology file of a server", found,
			    file_is_directory(found) ? "a directory" : "no such file");
		path[i] = arena_text(&ctx->run, found, strlen(found));
		if (!path[i])
			return fail_memory(ctx);
	}
	if (!same_folder(path, opt->n_files))
		for (int i = 0; i < opt->n_files; i++)
			TRY(real_path(ctx, path[i], &path[i]));
	*label = path[0];
	size_t length = common_folder(path, opt->n_files);
	for (int i = 0; i < opt->n_files; i++)
		servers[i].file = path[i] + length;
	/* Only the folder of the label counts. */
	if (folder_length(*label) != length) {
		char *own;
		TRY(NEW(ctx, own, length + sizeof "cluster"));
		memcpy(own, path[0], length);
		strcpy(own + length, "cluster");
		*label = own;
	}
	return OK;
}
