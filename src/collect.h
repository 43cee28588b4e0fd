/* What `blinkc check` is given: files, those below directories, and what indexes say of them. */
#ifndef BLINK_COLLECT_H
#define BLINK_COLLECT_H

#include "base/text.h"
#include "model.h"

typedef struct {
	const char *path;
	int named;		/* files that were named before it; -1: it was found below a directory, or by an index */
	bool directory;		/* one in which nothing could be found */
	int book;		/* the index that it is; -1: it is none */
	int group;		/* what an index says of it; -1: nothing */
	Status status;		/* what is known to be wrong with it already, */
	const char *text;	/* and how */
} Item;

/* All that one index says of one file. */
typedef struct {
	const char *path;
	int book;
	int first, n;		/* Collection.entry[first .. first + n - 1] */
	int item;		/* -1: there is no such file */
	int next;		/* group of another index for the same file; -1: none */
} Group;

typedef struct {
	const char *path;
	const char *directory;	/* what the paths of its entries are appended to */
	const Index *index;
	int first_group, n_groups;
} Book;

typedef struct {
	int n_items, n_named, n_books, n_groups;
	bool many;		/* a directory or an index is among what was named */
	Item *item;		/* as they were named, those of a directory by their paths, and then what else indexes name */
	Book *book;
	Group *group;
	const IndexEntry **entry;
} Collection;

/* operand: n names of files and directories, of which a directory stands for all *.json below it. Files called index.json that say
 * that they are indexes are read as such. What is wrong with an operand or an index is said in its item.
 * Fails: NO_MEMORY; LIMIT too many entries. */
Status collect(Ctx *ctx, char **operand, int n, Collection **out);

/* Is it below the directory of some index? */
bool collection_covers(const Collection *all, const char *path);

/* Does a JSON text say early that it has this format? Only a guess, by which a reader is chosen. */
bool format_seems(const Text *in, const char *format);

/* What a message says after the path with which it begins, if it does. */
const char *text_behind_path(const char *text, const char *path);

#endif
