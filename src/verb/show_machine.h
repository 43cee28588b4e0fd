/* blinkc show of a topology file. */
#ifndef BLINK_VERB_SHOW_MACHINE_H
#define BLINK_VERB_SHOW_MACHINE_H

#include "base/text.h"
#include "verb/options.h"

/* Is it a topology, of whatever format, rather than a schedule? By its content; what is neither is none. */
bool is_machine(const Text *in);

/* The machine, or what it has of the GPUs of -g, in a format of show. Fails: as read_topology; BAD_INPUT unknown GPUs;
 * USAGE options that are for schedules. */
Status show_machine(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in, Text *out);

#endif
