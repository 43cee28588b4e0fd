/* What a file is, by its first bytes. */
#ifndef BLINK_FORMAT_SNIFF_H
#define BLINK_FORMAT_SNIFF_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Is this XML whose first element has this name? Comments, processing instructions and a DOCTYPE may come before. */
bool sniff_element(const char *data, size_t size, const char *name);

/* *data without a DOCTYPE that declares nothing and comes before the first element, which doc_read_xml would refuse: a
 * copy in the scratch arena with blanks in its place; else unchanged. */
Status sniff_no_doctype(Ctx *ctx, const char **data, size_t size);

/* The name of a file without folders and what follows its first dot: "dgx1v" of "a/dgx1v.xml"; "machine" where it has
 * none, as standard input. Returns `space`. */
const char *sniff_name(const char *path, char *space, size_t room);

#endif
