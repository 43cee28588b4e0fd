/* A cluster on the command line: its servers, and their files as a cluster file names them, below its own folder. */
#include "base/file.h"
#include "verb/request.h"
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

/* Names of the files relative to a folder that all of them are in or below, into servers[i].file; *label: a path in
 * that folder. */
static Status
cluster_paths(Ctx *ctx, const Options *opt, const char **label, ClusterServers *servers)
{
	char **path;
	TRY(NEW(ctx, path, opt->n_files));
	for (int i = 0; i < opt->n_files; i++) {
		const char *found;
		TRY(topology_file(ctx, opt->value[OPT_VERBOSE], opt->file[i], &found));
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

/* ---- what is asked ---- */

/* "4", for each file, or "4,2". */
static Status
parse_servers(Ctx *ctx, const char *text, int n_files, ClusterServers *servers)
{
	const char *at = text ? text : "1";
	int64_t value;
	int n = 0, sum = 0;
	for (;; at++) {
		size_t digits = strspn(at, "0123456789");
		if (n == n_files || !digits || !decimal_parse(at, digits, 1, &value) || value < 1
		    || value > LIMIT_NODES)
			break;
		servers[n++].count = (int)value;
		at += digits;
		if (*at != ',')
			break;
	}
	for (int i = 0; i < n_files; i++) {
		servers[i].count = n == 1 ? servers[0].count : servers[i].count;
		sum = servers[i].count > LIMIT_NODES - sum ? LIMIT_NODES + 1 : sum + servers[i].count;
	}
	if (!*at && (n == 1 || n == n_files) && sum <= LIMIT_NODES)
		return OK;
	return fail(ctx, USAGE, "--servers: %.40s: want a whole number, 1 to %d%s", text ? text : "1", LIMIT_NODES,
	    n_files > 1 ? " in all, one for all files or one for each, as 4,2" : "");
}

/* "4 x dgx1v, 2 x dgx1p" */
static void
name_cluster(const ClusterServers *servers, int n, char *name, size_t room)
{
	size_t used = 0;
	for (int i = 0; i < n && used < room; i++) {
		const char *slash = strrchr(servers[i].file, '/'), *file = slash ? slash + 1 : servers[i].file;
		used += (size_t)snprintf(name + used, room - used, "%s%d x %.*s", i ? ", " : "", servers[i].count,
		    (int)strcspn(file, "."), file);
	}
}

Status
request_cluster(Ctx *ctx, const Options *opt, const char **label, ClusterRequest *ask)
{
	static char name[256];
	ClusterServers *servers;
	*ask = (ClusterRequest){ .name = name, .n_files = opt->n_files, .rails = opt->value[OPT_RAILS] };
	for (int i = 0; i < opt->n_files; i++)
		if (strcmp(opt->file[i], "-") == 0)
			return fail(ctx, USAGE, "-: want topology files of servers, and not standard input");
	if (opt->n_files < 1 || opt->n_files > LIMIT_NODES)
		return fail(ctx, USAGE, "%d topology files: want one, of a server, or several", opt->n_files);
	TRY(NEW(ctx, servers, opt->n_files));
	TRY(cluster_paths(ctx, opt, label, servers));
	if (!opt->value[OPT_SERVERS] && opt->n_files == 1)
		return fail(ctx, USAGE, "--servers: missing: want a whole number, 1 to %d", LIMIT_NODES);
	TRY(parse_servers(ctx, opt->value[OPT_SERVERS], opt->n_files, servers));
	TRY(request_count(ctx, "leaf", opt->value[OPT_LEAF], LIMIT_NODES, &ask->leaf));
	TRY(request_gb(ctx, "nic-rate", opt->value[OPT_NIC_RATE], " (GB/s)", LIMIT_CAPACITY_MIN, LIMIT_CAPACITY_MAX,
	    &ask->nic_rate));
	TRY(request_gb(ctx, "oversubscription", opt->value[OPT_OVERSUBSCRIPTION], "", BYTES_PER_GB / 1000,
	    BYTES_PER_GB * 1000, &ask->oversubscription));
	if (ask->oversubscription && !ask->leaf && !ask->rails)
		return fail(ctx, USAGE, "--oversubscription: want it with --leaf or --rails");
	ask->servers = servers;
	name_cluster(servers, opt->n_files, name, sizeof name);
	return OK;
}
