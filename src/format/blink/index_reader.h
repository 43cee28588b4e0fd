/* Parts of the reader of indexes. */
#ifndef BLINK_FORMAT_INDEX_READER_H
#define BLINK_FORMAT_INDEX_READER_H

#include "format/doc.h"
#include "model/index.h"

/* index->machine, from the member `machine`. index: with name and digest. Fails: BAD_INPUT also where its digest is
 * another. */
Status index_read_machine(Ctx *ctx, const char *label, const Doc *machine, Index *index);

#endif
