/* Disjoint sets of numbers: each leads to another one of its set, or is its root. At first set[a] = a. */
#ifndef BLINK_DISJOINT_H
#define BLINK_DISJOINT_H

static inline int
set_root(int *set, int a)
{
	while (set[a] != a)
		a = set[a] = set[set[a]];
	return a;
}

static inline void
set_join(int *set, int a, int b)
{
	set[set_root(set, a)] = set_root(set, b);
}

#endif
