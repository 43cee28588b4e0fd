#include "verb/check/check.h"
#include "base/sort.h"
#include "base/array.h"
#include "base/file.h"
#include "format/file_kind.h"
#include "format/format.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

const char *
text_after_path(const char *text, const char *path)
{
	size_t n = strlen(path);
	/* fail() writes ? for control characters. */
	for (size_t i = 0; i < n; i++)
		if (text[i] != path[i] && text[i] != '?')
			return text;
	return text[n] == ':' ? text + n : text;
}

/* ---- items ---- */

struct finding {
	Ctx *ctx;
	Inputs *all;
	int item_capacity, index_capacity;
};

static Status
add_item(struct finding *c, const char *path, bool named, Item **out)
{
	Inputs *all = c->all;
	TRY(GROW(c->ctx, all->item, all->n_items, c->item_capacity));
	*out = &all->item[all->n_items++];
	**out = (Item){ .path = path, .named = named ? all->n_named++ : -1, .index_file = -1, .group = -1 };
	return OK;
}

/* The error of ctx is of this item alone. */
static Status
keep_error(Ctx *ctx, Item *item, Status status)
{
	const char *text = text_after_path(ctx->error.text, item->path);
	item->status = status;
	item->text = arena_text(&ctx->run, text, strlen(text));
	ctx->error = (Error){ .status = OK };
	return item->text ? OK : fail_memory(ctx);
}

static const char *
name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Is the lookup file of an index, if there is one, what lookup_write makes of it? */
static Status
check_lookup(Ctx *ctx, const char *path, const Index *index, const Text *in, const char **error)
{
	Text found = { 0 }, want = { 0 };
	const char *beside;
	*error = NULL;
	TRY(lookup_path(ctx, path, &beside));
	if (!beside || !file_is_there(beside)) {
		*error = beside && file_is_directory(beside) ? "a directory: want a file, or none" : NULL;
		return OK;
	}
	Status status = lookup_write(ctx, index, in->data, in->size, &want);
	if (status == OK && file_read_regular(ctx, beside, &found) != OK)
		*error = "not readable";
	else if (status == OK && (found.size != want.size || memcmp(found.data, want.data, want.size) != 0))
		*error = "not of this index, or damaged: want what blinkc convert makes of it";
	if (status == OK)
		ctx->error = (Error){ .status = OK };
	text_free(&found);
	text_free(&want);
	return status;
}

/* An item whose format is that of an index. */
static Status
add_index(struct finding *c, Item *item, const Text *in)
{
	Ctx *ctx = c->ctx;
	Inputs *all = c->all;
	Index *index;
	const char *lookup_error;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = index_read(ctx, "", in->data, in->size, &index);
	arena_release(&ctx->scratch, mark);
	if (status == OK)
		status = check_lookup(ctx, item->path, index, in, &lookup_error);
	if (status != OK)
		return status == NO_MEMORY ? status : keep_error(ctx, item, status);
	TRY(GROW(ctx, all->index_file, all->n_indexes, c->index_capacity));
	const char *directory = arena_text(&ctx->run, item->path, (size_t)(name_of(item->path) - item->path));
	if (!directory)
		return fail_memory(ctx);
	item->index_file = all->n_indexes;
	all->index_file[all->n_indexes++] = (IndexFile){ .path = item->path, .directory = directory, .index = index,
	    .lookup_error = lookup_error };
	return OK;
}

static Status
add_file(struct finding *c, const char *path, bool named)
{
	Text in = { 0 };
	Item *item;
	TRY(add_item(c, path, named, &item));
	if (!index_file_name(path) || !file_is_there(path))
		return OK;
	Status status = file_read_regular(c->ctx, path, &in);
	if (status != OK)
		return status == NO_MEMORY ? status : keep_error(c->ctx, item, status);
	if (file_kind(in.data, in.size) == FILE_INDEX) {
		c->all->many = true;
		status = add_index(c, item, &in);
	}
	text_free(&in);
	return status;
}

static Status
add_directory(struct finding *c, const char *path)
{
	const char **file;
	Item *item;
	int n;
	c->all->many = true;
	Status status = file_list(c->ctx, path, ".json", &file, &n);
	if (status == OK && n == 0)
		status = fail(c->ctx, BAD_INPUT, "%s: no file that ends in .json: want schedules", path);
	if (status != OK && status != NO_MEMORY) {
		TRY(add_item(c, path, false, &item));
		item->directory = true;
		return keep_error(c->ctx, item, status);
	}
	for (int i = 0; i < n && status == OK; i++)
		status = add_file(c, file[i], false);
	return status;
}

/* ---- entries of indexes ---- */

static int
by_file(const void *a, const void *b)
{
	const IndexEntry *x = *(const IndexEntry *const *)a, *y = *(const IndexEntry *const *)b;
	int order = strcmp(x->file, y->file);
	return order ? order : index_order(x, y);
}

static int
by_path(const void *a, const void *b)
{
	const Item *x = *(const Item *const *)a, *y = *(const Item *const *)b;
	int order = strcmp(x->path, y->path);
	return order ? order : (x > y) - (x < y);
}

static int
path_to_item(const void *key, const void *item)
{
	return strcmp(key, (*(const Item *const *)item)->path);
}

/* Sort the entries of an index by their files, and make a group for each file. */
static Status
group_entries(Ctx *ctx, Inputs *all, int x, int *n_entries)
{
	IndexFile *file = &all->index_file[x];
	const IndexEntry **entry = all->entry + *n_entries;
	int n = file->index->n_entries;
	for (int i = 0; i < n; i++)
		entry[i] = &file->index->entry[i];
	sort_array(entry, n, sizeof *entry, by_file);
	file->first_group = all->n_groups;
	for (int i = 0; i < n; i++) {
		if (i == 0 || strcmp(entry[i]->file, entry[i - 1]->file) != 0) {
			size_t room = strlen(file->directory) + strlen(entry[i]->file) + 1;
			char *path = arena_array(&ctx->run, room, 1);
			if (!path)
				return fail_memory(ctx);
			snprintf(path, room, "%s%s", file->directory, entry[i]->file);
			all->group[all->n_groups++] = (Group){ .path = path, .index_file = x, .first = *n_entries + i,
			    .item = -1, .next = -1 };
		}
		all->group[all->n_groups - 1].n++;
	}
	file->n_groups = all->n_groups - file->first_group;
	*n_entries += n;
	return OK;
}

/* A file that is named twice is reported once. */
static void
attach(Inputs *all, int g, int i)
{
	all->group[g].item = i;
	all->group[g].next = all->item[i].group;
	all->item[i].group = g;
}

static Status
find_files(struct finding *c)
{
	Inputs *all = c->all;
	Item **sorted;
	int n = all->n_items;
	TRY(NEW(c->ctx, sorted, n));
	for (int i = 0; i < n; i++)
		sorted[i] = &all->item[i];
	qsort(sorted, (size_t)n, sizeof *sorted, by_path);
	for (int g = 0; g < all->n_groups; g++) {
		Item *const *found = bsearch(all->group[g].path, sorted, (size_t)n, sizeof *sorted, path_to_item);
		while (found && found > sorted && strcmp(found[-1]->path, (*found)->path) == 0)
			found--;
		if (found)
			attach(all, g, (int)(*found - all->item));
	}
	return OK;
}

static int
by_group_path(const void *a, const void *b)
{
	const Group *x = *(Group *const *)a, *y = *(Group *const *)b;
	int order = strcmp(x->path, y->path);
	return order ? order : (x > y) - (x < y);
}

/* Items for files that only an index names. */
static Status
add_found(struct finding *c)
{
	Inputs *all = c->all;
	Group **group;
	Item *item;
	int n = 0;
	TRY(NEW(c->ctx, group, all->n_groups));
	for (int g = 0; g < all->n_groups; g++)
		if (all->group[g].item < 0 && file_is_there(all->group[g].path))
			group[n++] = &all->group[g];
	sort_array(group, n, sizeof *group, by_group_path);
	for (int i = 0; i < n; i++) {
		if (i == 0 || strcmp(group[i]->path, group[i - 1]->path) != 0)
			TRY(add_item(c, group[i]->path, false, &item));
		attach(all, (int)(group[i] - all->group), all->n_items - 1);
	}
	return OK;
}

static Status
group_files(struct finding *c)
{
	Inputs *all = c->all;
	int n_entries = 0;
	for (int x = 0; x < all->n_indexes; x++) {
		if (all->index_file[x].index->n_entries > INT_MAX - n_entries)
			return fail(c->ctx, LIMIT, "%s: too many entries, together with the indexes before it",
			    all->index_file[x].path);
		n_entries += all->index_file[x].index->n_entries;
	}
	TRY(NEW_EACH(c->ctx, n_entries, all->entry, all->group));
	n_entries = 0;
	for (int x = 0; x < all->n_indexes; x++)
		TRY(group_entries(c->ctx, all, x, &n_entries));
	TRY(find_files(c));
	return add_found(c);
}

Status
find_inputs(Ctx *ctx, char **operand, int n, Inputs **out)
{
	struct finding c = { .ctx = ctx };
	TRY(NEW(ctx, c.all, 1));
	for (int i = 0; i < n; i++)
		TRY(file_is_directory(operand[i]) ? add_directory(&c, operand[i]) : add_file(&c, operand[i], true));
	TRY(group_files(&c));
	*out = c.all;
	return OK;
}

bool
below_an_index(const Inputs *all, const char *path)
{
	bool here = *path != '/' && strncmp(path, "../", 3) != 0;
	for (int x = 0; x < all->n_indexes; x++) {
		const char *directory = all->index_file[x].directory;
		if (*directory ? strncmp(path, directory, strlen(directory)) == 0 : here)
			return true;
	}
	return false;
}
