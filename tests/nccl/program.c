/* A program that uses NCCL's interface as NCCL's documentation shows it, linked with libblink-nccl.so. Ranks are on
 * GPUs of the CUDA driver, or on the host with BLINK_BACKEND=host. Prints TAP.
 *
 *	program RANKS SCENARIO...	as in `scenarios` */
#include "blink_program.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(struct rank *r); } scenarios[] = {
		{ "processes", processes }, { "threads", threads }, { "one_thread", one_thread }, { "groups", groups },
		{ "nonblocking", nonblocking },
		{ "scalable", scalable }, { "deaths", deaths }, { "servers", servers }, { "shrink", shrink },
		{ "split", split }, { "operations", operations },
		{ "errors", errors }, { "failing", failing },
	};
	static struct rank r[MOST + 1];
	struct blink_error err = { 0 };
	const char *backend = getenv("BLINK_BACKEND");
	alarm(300);
	n_ranks = argc > 1 ? atoi(argv[1]) : 0;
	if (n_ranks < 1 || n_ranks > MOST)
		return 2;
	for (int a = 2; a < argc; a++) {
		for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
			if (strcmp(argv[a], scenarios[i].name) != 0)
				continue;
			bool forks = scenarios[i].run == processes || scenarios[i].run == deaths ||
			    scenarios[i].run == servers;
			if (!forks && !driver && (!backend || strcmp(backend, "host") != 0) &&
			    (driver_open(&driver, &err) != blinkSuccess || driver->init(0) != CUDA_SUCCESS)) {
				printf("Bail out! %s\n", err.text);
				return 1;
			}
			scenarios[i].run(r);
		}
	}
	printf("1..%d\n", n_cases());
	return 0;
}
