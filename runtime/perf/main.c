/* blink-perf: time collectives as nccl-tests time NCCL's, and check every element that arrives (data.c).
 *
 * The same table is measured in two ways. Either this process drives all ranks by one schedule (one.c), or it starts a
 * job (job.c), in which each rank is a process or thread (rank.c) that measures the same rows; they meet before each
 * run and share its time and what was wrong, and rank 0 prints (output.c). */
#include "perf/job.h"
#include "perf/perf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
	struct perf p = { 0 };
	int code = take_options(&p.opt, argc, argv);
	if (code == MORE)
		code = p.opt.ranks ? job_perf(&p.opt) : one_perf(&p);
	if (fflush(stdout) || ferror(stdout))
		return complain(blinkSystemError, "standard output: %s", strerror(errno));
	return code;
}
