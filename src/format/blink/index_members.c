/* Texts of the entries of an index, whether they are read from Docs or from tokens. */
#include "base/hash.h"
#include "format/blink/index_reader.h"

#include <string.h>

bool
index_path_is_inside(const char *path)
{
	if (!*path || *path == '/')
		return false;
	for (const char *at = path; *at; at += strcspn(at, "/"), at += *at == '/') {
		size_t n = strcspn(at, "/");
		if (n == 0 || (n == 1 && *at == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)at[i] < ' ' || at[i] == 127)
				return false;
	}
	return path[strlen(path) - 1] != '/';
}

Status
index_keep_file(struct index_reader *r, const char *path, size_t length, const char **out)
{
	const char **kept = &r->file[hash_bytes(path, length) % KEPT_FILES];
	if (!*kept || strncmp(*kept, path, length) != 0 || (*kept)[length])
		*kept = arena_text(&r->ctx->run, path, length);
	*out = *kept;
	return *out ? OK : fail_memory(r->ctx);
}

/* Entries have the same few names. */
Status
index_keep_name(struct index_reader *r, const char *name, const char **out)
{
	for (int i = 0; i < r->n_names; i++) {
		if (strcmp(r->name[i], name) == 0) {
			*out = r->name[i];
			return OK;
		}
	}
	*out = arena_text(&r->ctx->run, name, strlen(name));
	if (!*out)
		return fail_memory(r->ctx);
	if (r->n_names < LIMIT_BASELINES)
		r->name[r->n_names++] = *out;
	return OK;
}
