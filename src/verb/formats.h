/* The formats that each verb writes, from the tables of format/: for --format, the ending of -o, help and
 * completion. */
#ifndef BLINK_VERB_FORMATS_H
#define BLINK_VERB_FORMATS_H

#include "base/text.h"

#define FORMAT_LOOKUP "lookup"	/* of an index */
#define FORMAT_OMPI_RULES "ompi-rules"	/* of Open MPI, by tune */

enum { FORMATS_MAX = 32 };

/* A format is also chosen by its suffix, without the dot. */
typedef struct {
	const char *name, *suffix;
} FormatName;

/* Those of a verb, a bit of verb_bits.h. *otherwise: the one without --format and suffix. Returns how many. */
int formats_of(int verb, FormatName out[FORMATS_MAX], const char **otherwise);

/* The names of those of topologies that are read. Returns how many. */
int formats_read(const char *name[FORMATS_MAX]);

/* The help of --from. */
void formats_from_help(Text *out);

/* The help of --format: of one verb, or of several. */
void formats_help(int verbs, Text *out);

#endif
