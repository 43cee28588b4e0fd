/* The topologies that come along with blinkc, which have names: that of their file without its ending. */
#ifndef BLINK_VERB_SHIPPED_H
#define BLINK_VERB_SHIPPED_H

#include "base/status.h"
#include "base/text.h"

/* Where they are: beside the program, as installed or as built. Ended by NULL. */
const char *const *topology_dirs(void);

/* The XML Schema of topologies, which comes along with them, too; NULL: it is not there. Room: FILE_PATH_ROOM. */
const char *topology_schema(char *space);

typedef struct {
	const char *name, *path;
} Shipped;

/* Those in topology_dirs(), by name; of one name, that of the first directory, and XML before JSON.
 * Fails: IO a directory cannot be read; NO_MEMORY. */
Status shipped_list(Ctx *ctx, Shipped **out, int *n);

/* The file of a topology that an argument names. What is there in the current directory wins; a word without a slash is
 * else the name of one that comes along, or of its file; with `say` the path is printed on standard error.
 * *out: the argument itself, or the path of that file.
 * Fails: IO there is neither, with the name that may have been meant. */
Status topology_file(Ctx *ctx, bool say, const char *argument, const char **out);

/* The bytes of a file that is to be a schedule. Fails: as file_read; BAD_INPUT a topology that comes along. */
Status schedule_file(Ctx *ctx, const char *argument, Text *out);

/* Does one come along that has this name? */
bool names_shipped(Ctx *ctx, const char *argument);

#endif
