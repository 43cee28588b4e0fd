/* Results of a test program, as TAP: a line for each case. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int n_tests, n_failed;

/* Written at once: processes that the test starts may write, too. */
__attribute__((unused)) static void
ok(bool good, const char *what)
{
	n_tests++;
	n_failed += !good;
	printf("%sok %d - %s\n", good ? "" : "not ", n_tests, what);
	fflush(stdout);
}

/* The same without a number; why not: printed where it failed. */
__attribute__((unused, format(printf, 3, 4))) static void
check(bool good, const char *name, const char *why, ...)
{
	va_list args;
	n_tests++;
	if (good) {
		printf("ok %s\n", name);
		return;
	}
	n_failed++;
	printf("not ok %s: ", name);
	va_start(args, why);
	vprintf(why, args);
	va_end(args);
	printf("\n");
}

/* After the last case: the exit code of the program. */
static int
end_tests(void)
{
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}

#endif
