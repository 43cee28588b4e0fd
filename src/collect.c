#include "collect.h"

#include "base/file.h"
#include "passes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

const char *
text_behind_path(const char *text, const char *path)
{
	size_t n = strlen(path);
	/* fail() writes ? for what is not to be in a message. */
	for (size_t i = 0; i < n; i++)
		if (text[i] != path[i] && text[i] != '?')
			return text;
	return text + n;
}

bool
format_seems(const Text *in, const char *format)
{
	static const char key[] = "\"format\"", space[] = " \t\r\n";
	const char *at = in->size ? memmem(in->data, in->size, key, sizeof key - 1) : NULL;
	size_t n = strlen(format);
	if (!at)
		return false;
	at += sizeof key - 1;
	at += strspn(at, space);
	at += *at == ':';
	at += strspn(at, space);
	return *at == '"' && strncmp(at + 1, format, n) == 0 && at[1 + n] == '"';
}

/* ---- items ---- */

struct collecting {
	Ctx *ctx;
	Collection *all;
	int item_room, book_room;
};

/* Twice the room of an array of the run arena, with what was in it. */
static Status
more_room(Ctx *ctx, void **array, size_t size, int *room)
{
	int more = *room ? 2 * *room : 64;
	void *grown = *room < INT_MAX / 4 ? arena_array(&ctx->run, (size_t)more, size) : NULL;
	if (!grown)
		return fail_memory(ctx);
	memcpy(grown, *array ? *array : grown, (size_t)*room * size);
	*array = grown;
	*room = more;
	return OK;
}

static Status
add_item(struct collecting *c, const char *path, bool named, Item **out)
{
	Collection *all = c->all;
	void *array = all->item;
	if (all->n_items == c->item_room) {
		TRY(more_room(c->ctx, &array, sizeof *all->item, &c->item_room));
		all->item = array;
	}
	*out = &all->item[all->n_items++];
	**out = (Item){ .path = path, .named = named ? all->n_named++ : -1, .book = -1, .group = -1 };
	return OK;
}

/* What has just failed is wrong with this item alone. */
static Status
blame(Ctx *ctx, Item *item, Status status)
{
	const char *text = text_behind_path(ctx->error.text, item->path);
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

/* An item that is an index, or is to be one. */
static Status
add_book(struct collecting *c, Item *item, const Text *in)
{
	Ctx *ctx = c->ctx;
	Collection *all = c->all;
	Index *index;
	void *array = all->book;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = index_read(ctx, "", in->data, in->size, &index);
	arena_release(&ctx->scratch, mark);
	if (status != OK)
		return status == NO_MEMORY ? status : blame(ctx, item, status);
	if (all->n_books == c->book_room) {
		TRY(more_room(ctx, &array, sizeof *all->book, &c->book_room));
		all->book = array;
	}
	const char *directory = arena_text(&ctx->run, item->path, (size_t)(name_of(item->path) - item->path));
	if (!directory)
		return fail_memory(ctx);
	item->book = all->n_books;
	all->book[all->n_books++] = (Book){ .path = item->path, .directory = directory, .index = index };
	return OK;
}

static Status
add_file(struct collecting *c, const char *path, bool named)
{
	Text in = { 0 };
	Item *item;
	TRY(add_item(c, path, named, &item));
	if (strcmp(name_of(path), "index.json") != 0 || !file_is_there(path))
		return OK;
	Status status = file_read(c->ctx, path, &in);
	if (status != OK)
		return status == NO_MEMORY ? status : blame(c->ctx, item, status);
	if (format_seems(&in, "blink-index")) {
		c->all->many = true;
		status = add_book(c, item, &in);
	}
	text_free(&in);
	return status;
}

static Status
add_directory(struct collecting *c, const char *path)
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
		return blame(c->ctx, item, status);
	}
	for (int i = 0; i < n && status == OK; i++)
		status = add_file(c, file[i], false);
	return status;
}

/* ---- what indexes say ---- */

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

/* Entries of a book, those for one file side by side. */
static Status
group_entries(Ctx *ctx, Collection *all, int b, int *n_entries)
{
	Book *book = &all->book[b];
	const IndexEntry **entry = all->entry + *n_entries;
	int n = book->index->n_entries;
	for (int i = 0; i < n; i++)
		entry[i] = &book->index->entry[i];
	if (n > 0)
		qsort(entry, (size_t)n, sizeof *entry, by_file);
	book->first_group = all->n_groups;
	for (int i = 0; i < n; i++) {
		if (i == 0 || strcmp(entry[i]->file, entry[i - 1]->file) != 0) {
			size_t room = strlen(book->directory) + strlen(entry[i]->file) + 1;
			char *path = arena_array(&ctx->run, room, 1);
			if (!path)
				return fail_memory(ctx);
			snprintf(path, room, "%s%s", book->directory, entry[i]->file);
			all->group[all->n_groups++] = (Group){ .path = path, .book = b, .first = *n_entries + i, .item = -1, .next = -1 };
		}
		all->group[all->n_groups - 1].n++;
	}
	book->n_groups = all->n_groups - book->first_group;
	*n_entries += n;
	return OK;
}

/* Files that are named twice are told of once. */
static void
attach(Collection *all, int g, int i)
{
	all->group[g].item = i;
	all->group[g].next = all->item[i].group;
	all->item[i].group = g;
}

static Status
find_files(struct collecting *c)
{
	Collection *all = c->all;
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

/* Files that only an index names. */
static Status
add_found(struct collecting *c)
{
	Collection *all = c->all;
	Group **group;
	Item *item;
	int n = 0;
	TRY(NEW(c->ctx, group, all->n_groups));
	for (int g = 0; g < all->n_groups; g++)
		if (all->group[g].item < 0 && file_is_there(all->group[g].path))
			group[n++] = &all->group[g];
	if (n > 0)
		qsort(group, (size_t)n, sizeof *group, by_group_path);
	for (int i = 0; i < n; i++) {
		if (i == 0 || strcmp(group[i]->path, group[i - 1]->path) != 0)
			TRY(add_item(c, group[i]->path, false, &item));
		attach(all, (int)(group[i] - all->group), all->n_items - 1);
	}
	return OK;
}

static Status
group_files(struct collecting *c)
{
	Collection *all = c->all;
	int n_entries = 0;
	for (int b = 0; b < all->n_books; b++) {
		if (all->book[b].index->n_entries > INT_MAX - n_entries)
			return fail(c->ctx, LIMIT, "%s: too many entries with those before it", all->book[b].path);
		n_entries += all->book[b].index->n_entries;
	}
	TRY(NEW(c->ctx, all->entry, n_entries));
	TRY(NEW(c->ctx, all->group, n_entries));
	n_entries = 0;
	for (int b = 0; b < all->n_books; b++)
		TRY(group_entries(c->ctx, all, b, &n_entries));
	TRY(find_files(c));
	return add_found(c);
}

Status
collect(Ctx *ctx, char **operand, int n, Collection **out)
{
	struct collecting c = { .ctx = ctx };
	TRY(NEW(ctx, c.all, 1));
	for (int i = 0; i < n; i++)
		TRY(file_is_directory(operand[i]) ? add_directory(&c, operand[i]) : add_file(&c, operand[i], true));
	TRY(group_files(&c));
	*out = c.all;
	return OK;
}

bool
collection_covers(const Collection *all, const char *path)
{
	bool here = *path != '/' && strncmp(path, "../", 3) != 0;
	for (int b = 0; b < all->n_books; b++) {
		const char *directory = all->book[b].directory;
		if (*directory ? strncmp(path, directory, strlen(directory)) == 0 : here)
			return true;
	}
	return false;
}
