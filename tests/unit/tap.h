/* Results of a test program, as TAP: a line for each case. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stdio.h>

static int n_tests, n_failed;

/* Written at once: processes that the test starts may write, too. */
static void
ok(bool good, const char *what)
{
	n_tests++;
	n_failed += !good;
	printf("%sok %d - %s\n", good ? "" : "not ", n_tests, what);
	fflush(stdout);
}

/* After the last case: the exit code of the program. */
static int
end_tests(void)
{
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}

#endif
