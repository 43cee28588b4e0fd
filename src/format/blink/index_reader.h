/* Parts of the reader of indexes. */
#ifndef BLINK_FORMAT_INDEX_READER_H
#define BLINK_FORMAT_INDEX_READER_H

#include "format/doc.h"
#include "model/index.h"

enum { KEPT_FILES = 1024 };

/* An index that is being read. */
struct index_reader {
	Ctx *ctx;
	const char *label;
	Index *index;
	DocList entries;
	bool *seen;		/* work: n_gpus, all false in between */
	int *number;		/* work: 2 * n_gpus */
	int n_names;		/* of baselines so far, each kept once */
	const char *name[LIMIT_BASELINES];
	const char **file;	/* of entries, KEPT_FILES by their hash: neighbours often have the same */
	const IndexEntry *before;	/* the last entry with baselines, which its neighbours often have, too */
};

/* ---- index_members.c ---- */

/* Texts that are kept once for entries that have the same. Memory: run arena. */
Status index_keep_name(struct index_reader *r, const char *name, const char **out);
Status index_keep_file(struct index_reader *r, const char *path, size_t length, const char **out);

/* Does a path stay in the directory of the index? */
bool index_path_is_inside(const char *path);

/* ---- index_entry_tokens.c ---- */

/* The next entry, if it has known members alone, each once and as they are to be: *done. Else nothing is taken, and its
 * Doc says what is wrong. Fails: NO_MEMORY. */
Status index_entry_tokens(struct index_reader *r, IndexEntry *entry, bool *done);

/* ---- read_index_machine.c ---- */

/* index->machine, from the member `machine`. index: with name and digest. Fails: BAD_INPUT also where its digest is
 * another. */
Status index_read_machine(Ctx *ctx, const char *label, const Doc *machine, Index *index);

#endif
