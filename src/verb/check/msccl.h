/* blinkc check of an algorithm of MSCCL. */
#ifndef BLINK_VERB_CHECK_MSCCL_H
#define BLINK_VERB_CHECK_MSCCL_H

#include "base/status.h"

/* summary: room for what is printed of a valid file; NULL: nothing is. Fails: as msccl_read and msccl_check, without a
 * label: ":12: race: ...". */
Status check_msccl(Ctx *ctx, const char *data, size_t size, char *summary, size_t room);

#endif
