/* Whether `make check` runs the test: there, fewer of the cases that are alike are enough; by hand, they all run. */
#include <stdbool.h>
#include <stdlib.h>

static bool
quick_check(void)
{
	const char *full = getenv("full");	/* of tests/runner.py */
	return full && !*full;
}
