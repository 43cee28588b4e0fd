/* MSCCL XML: algorithms of MSCCL, as Azure's executor, RCCL and microsoft/msccl load them. */
#ifndef BLINK_FORMAT_MSCCL_H
#define BLINK_FORMAT_MSCCL_H

#include "base/text.h"
#include "model/msccl.h"

bool msccl_is(const char *data, size_t size);

/* A file. Attributes may be missing (member `missing`), and what numbers mean is not checked: msccl/msccl.h does that.
 * label: what messages call it. *out: GPUs and threadblocks are sorted by their ids, if these are numbers from 0 on,
 * each once. Fails: BAD_INPUT not XML, no number where one belongs, an unknown type, buffer or collective; LIMIT;
 * NO_MEMORY. */
Status msccl_read(Ctx *ctx, const char *label, const char *data, size_t size, Msccl **out);

/* As executors read it: no prolog, single spaces. */
void msccl_write(const Msccl *algo, Text *out);

#endif
