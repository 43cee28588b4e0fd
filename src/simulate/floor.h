/* Floors: times that a simulation of a schedule does not go below, without simulating it. */
#ifndef BLINK_SIMULATE_FLOOR_H
#define BLINK_SIMULATE_FLOOR_H

#include "simulate/simulate.h"

/* *out: in the run arena; keeps plan and p. */
Status floor_prepare(Ctx *ctx, const SimPlan *plan, const SimParameters *p, Floor **out);

/* For messages of m bytes from now on. Returns the bytes of the longest segment. */
int64_t floor_of_message(Floor *floor, int64_t m);

/* With chunks of this size, ps. Cost: a few ns for each hop. */
int64_t floor_of_chunk(const Floor *floor, int64_t chunk);

#endif
