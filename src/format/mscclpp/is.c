/* Alone, so that libblink, which tells files apart, needs no reader of JSON. */
#include "format/mscclpp/mscclpp.h"

#include <string.h>

/* Three members that no other JSON has together, among the first bytes: files begin with them. */
bool
mscclpp_is(const char *data, size_t size)
{
	size_t n = size < 4096 ? size : 4096;
	return memmem(data, n, "\"collective\"", 12) && memmem(data, n, "\"protocol\"", 10)
	    && memmem(data, n, "\"inplace\"", 9) && !memmem(data, n, "\"format\"", 8);
}
