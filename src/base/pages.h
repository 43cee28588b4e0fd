/* Memory by pages, large ones where the system has them: 2 MiB then cost one page fault, not 512. */
#ifndef BLINK_PAGES_H
#define BLINK_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Less than this is for malloc. */
enum { PAGES_LEAST = 2 << 20 };

/* *size bytes or more, as it says then, all zero, until pages_free. sparse: few of them will be written, so that no
 * large pages are taken for them. NULL: no memory. */
void *pages_new(size_t *size, bool sparse);
void pages_free(void *data, size_t size);

/* Of memory from malloc: that nearly all of these bytes will be written. */
void pages_large(void *data, size_t size);

#endif
