#include "base/near.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

enum { NEAR_MOST = 64 };

static int
letter(char c)
{
	return c == '_' ? '-' : tolower((unsigned char)c);
}

static int
least(int a, int b)
{
	return a < b ? a : b;
}

/* Rows of the table of distances between beginnings of a and b: the current one and the two before it. */
int
near_distance(const char *a, const char *b)
{
	int row[3][NEAR_MOST + 1] = { { 0 } };
	size_t n = strlen(a), m = strlen(b);
	if (n > NEAR_MOST || m > NEAR_MOST)
		return INT_MAX;
	for (size_t j = 0; j <= m; j++)
		row[0][j] = (int)j;
	for (size_t i = 1; i <= n; i++) {
		int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		now[0] = (int)i;
		for (size_t j = 1; j <= m; j++) {
			bool same = letter(a[i - 1]) == letter(b[j - 1]);
			now[j] = least(least(now[j - 1], last[j]) + 1, last[j - 1] + !same);
			if (i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2]) && letter(a[i - 2]) == letter(b[j - 1]))
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return row[n % 3][m];
}

int
near_names(const char *text, const char *const *name, int n, const char **found, int most)
{
	int third = (int)(strlen(text) / 3), nearest = third < 1 ? 1 : third, n_found = 0;
	for (int i = 0; i < n; i++) {
		int distance = near_distance(text, name[i]);
		if (distance > nearest)
			continue;
		n_found = distance < nearest ? 0 : n_found;
		nearest = distance;
		if (n_found < most)
			found[n_found++] = name[i];
	}
	return n_found;
}
