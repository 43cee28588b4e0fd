/* blinkc simulate of the phases of a job (phases.json). */
#ifndef BLINK_VERB_SIMULATE_PHASES_H
#define BLINK_VERB_SIMULATE_PHASES_H

#include "verb/simulate/simulation.h"

/* The text of all phases, or of --phase, and with --trace that; label: the file, which `in` is of, beside the schedules
 * that it names. Fails: as phases_load, sim_join and sim_run; USAGE what makes no sense for phases. */
Status simulate_phases(Ctx *ctx, const Options *opt, const char *label, const Text *in, const char *format,
    Simulation *s, Text *out, Text *trace);

#endif
