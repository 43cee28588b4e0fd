/* What the tests over random graphs and systems share: numbers that are always the same, and a line for each test. */
#include <stdint.h>
#include <stdio.h>

static uint64_t state = 1;

static int
below(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (uint64_t)n);
}

static int
report(int wrong, const char *name)
{
	printf(wrong ? "not ok %s: %d wrong\n" : "ok %s\n", name, wrong);
	return wrong != 0;
}
