/* What the files of this program share. gpu.c has the list of scenarios; the others what a rank does in them. */
#ifndef GPU_H
#define GPU_H

#include "driver/driver.h"
#include "device.h"
#include "flight.h"

enum { TIMEOUT_MS = 4000, MARGIN_MS = 4000 };

/* The rank that fails. */
enum { VICTIM = 1 };

struct test {
	job_body *body;
	int replays, servers;
	bool threads;
	uint64_t seed;
	const char *fails;		/* FUNCTION:N, or COLLECTIVE:N */
	double timeout_ms;		/* of init, too, where a loaded machine starts many threads */
};

/* ---- gpu_calls.c ---- */

job_body graph, graph_forked, graph_uneven, graph_beside_call, streams, default_stream, two_communicators, one_thread;

/* ---- gpu_messages.c ---- */

job_body messages;

/* ---- gpu_failures.c ---- */

job_body killed, stopped, killed_in_queue, killed_in_step, unlike, late, crossed, idle, leaves, differs;
job_body message_differs, aborted, bad_pointer, stream_refused, driver_fails;

#endif
