/* blinkc check of a plan of MSCCL++. */
#ifndef BLINK_VERB_CHECK_MSCCLPP_H
#define BLINK_VERB_CHECK_MSCCLPP_H

#include "base/status.h"
#include "base/text.h"

/* *summary: what is printed of a valid file, lines for people or one of JSON (schemas/mscclpp-summary.schema.json) that
 * names the file as `path`. Fails: as mscclpp_read and mscclpp_check, without a label: ": race: ...". */
Status check_mscclpp(Ctx *ctx, const char *path, const Text *in, bool json, Text *summary);

#endif
