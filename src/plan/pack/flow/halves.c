/* Weights of trees that fall by halves (halves.h). */
#include "plan/pack/flow/halves.h"

enum { EACH_WEIGHT = 16 };	/* trees; of 8 what is left often finds no place */

Status
halves_choose(Ctx *ctx, int n_ranks, int64_t units, int64_t **out, int *n_trees)
{
	int most = LIMIT_TREE_EDGES / (2 * (n_ranks - 1)), n = 0;
	int64_t left = units, *weight;
	TRY(TEMP(ctx, weight, most));
	for (int64_t each = 1; left > 0 && n < most; each *= 2) {
		int wanted = each == 1 ? 2 * EACH_WEIGHT : EACH_WEIGHT;
		for (int i = 0; (i < wanted || left / each < EACH_WEIGHT) && left > 0 && n < most; i++) {
			weight[n] = left < 2 * each ? left : each;
			left -= weight[n++];
		}
	}
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && weight[k] > weight[k - 1]; k--) {
			int64_t lighter = weight[k - 1];
			weight[k - 1] = weight[k];
			weight[k] = lighter;
		}
	*n_trees = left > 0 ? 0 : n;
	*out = weight;
	return OK;
}
