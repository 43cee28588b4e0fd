/* How many others entries of trees send to (unequal_counts.c): of 2000 random sets of groups whose ranks have just the
 * room for counts that were drawn, so that there are such counts, and of some in which one rank has less. */
#include "base/status.h"
#include "plan/pack/cluster/unequal_pieces.h"
#include "random.h"

#include <string.h>

enum { CASES = 2000, MOST_RANKS = 12, MOST_GROUPS = 30 };

static int failures, n_groups, n_ranks;
static int first[MOST_GROUPS + 1], need[MOST_GROUPS], room[MOST_RANKS];
static struct entry entry[MOST_GROUPS * MOST_RANKS];

static void
ok(bool right, int number, const char *what)
{
	if (!right)
		printf("# case %d: not so: %s\n", number, what);
	failures += !right;
}

static void
draw(void)
{
	n_groups = 1 + below(MOST_GROUPS);
	n_ranks = 2 + below(MOST_RANKS - 1);
	memset(room, 0, sizeof room);
	memset(need, 0, sizeof need);
	for (int g = 0; g < n_groups; g++) {
		int n = first[g];
		for (int v = 0; v < n_ranks; v++) {
			int count = below(3) ? 0 : below(8);
			if (below(2))
				continue;
			entry[n++] = (struct entry){ .rank = v };
			need[g] += count;
			room[v] += count;
		}
		first[g + 1] = n;
	}
}

/* less: one rank has room for one less, so that in all there is one too few. */
static void
check(Ctx *ctx, int number, bool less)
{
	int total = 0, v = below(n_ranks), over = 0, left[MOST_RANKS];
	for (int r = 0; r < n_ranks; r++)
		total += room[r];
	room[v] -= less && total > 0;
	memcpy(left, room, sizeof left);
	ok(unequal_count_sends(ctx, n_groups, first, need, n_ranks, left, entry) == OK, number, "it ends");
	for (int g = 0; g < n_groups; g++) {
		int sum = 0;
		for (int i = first[g]; i < first[g + 1]; i++) {
			ok(entry[i].count >= 0, number, "no count is below 0");
			sum += entry[i].count;
			room[entry[i].rank] -= entry[i].count;
		}
		ok(sum == need[g], number, "a group has what it needs");
	}
	for (int r = 0; r < n_ranks; r++)
		over -= left[r] < 0 ? left[r] : 0;
	ok(memcmp(left, room, (size_t)n_ranks * sizeof *room) == 0, number, "what is left is told");
	ok(over == (less && total > 0), number, "no rank has too much, unless all together have");
}

int
main(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	for (int number = 0; number < CASES; number++) {
		draw();
		check(&ctx, number, number % 4 == 3);
	}
	ctx_free(&ctx);
	return report(failures, "counts of entries by a flow");
}
