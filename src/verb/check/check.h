/* The inputs of `blinkc check`: files, those below directories, and what indexes state of them. */
#ifndef BLINK_VERB_CHECK_CHECK_H
#define BLINK_VERB_CHECK_CHECK_H

#include "base/text.h"
#include "model/model.h"

typedef struct {
	const char *path;
	int named;		/* its number among the files named; -1: found below a directory, or by an index */
	bool directory;		/* one in which nothing was found */
	int index_file;		/* the index that it is; -1: none */
	int group;		/* the first group for it; -1: no index names it */
	Status status;		/* of an input that is known to be invalid already, */
	const char *text;	/* and why */
} Item;

/* All entries of one index for one file. */
typedef struct {
	const char *path;
	int index_file;
	int first, n;		/* Inputs.entry[first .. first + n - 1] */
	int item;		/* -1: there is no such file */
	int next;		/* group of another index for the same file; -1: none */
} Group;

typedef struct {
	const char *path;
	const char *directory;	/* prefix of the paths of its entries */
	const Index *index;
	const char *lookup_error;	/* why its lookup file is not valid; NULL: it is, or there is none */
	int first_group, n_groups;
} IndexFile;

typedef struct {
	int n_items, n_named, n_indexes, n_groups;
	bool many;		/* a directory or an index was named */
	/* as they were named, those of a directory by path; then further files that indexes name */
	Item *item;
	IndexFile *index_file;
	Group *group;
	const IndexEntry **entry;
} Inputs;

/* operand: n names of files and directories; a directory stands for all *.json below it. A file index.json or
 * index.NAME.json whose format is that of an index is read as one. An invalid operand or index is recorded in its item.
 * Fails: NO_MEMORY; LIMIT too many entries. */
Status find_inputs(Ctx *ctx, char **operand, int n, Inputs **out);

/* Is it below the directory of an index? */
bool below_an_index(const Inputs *all, const char *path);

/* What a message says after the path with which it begins, if it does. */
const char *text_after_path(const char *text, const char *path);

#endif
