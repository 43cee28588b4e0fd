/* blinkc check of an algorithm of MSCCL. */
#ifndef BLINK_VERB_CHECK_MSCCL_H
#define BLINK_VERB_CHECK_MSCCL_H

#include "base/status.h"
#include "base/text.h"

/* *summary: what is printed of a valid file, lines for people or one of JSON (schemas/msccl-summary.schema.json), which
 * names the file as `path`. Fails: as msccl_read and msccl_check, without a label: ":12: race: ...". */
Status check_msccl(Ctx *ctx, const char *path, const Text *in, bool json, Text *summary);

#endif
