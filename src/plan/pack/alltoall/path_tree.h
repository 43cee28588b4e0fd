#ifndef BLINK_PLAN_PACK_ALLTOALL_PATH_TREE_H
#define BLINK_PLAN_PACK_ALLTOALL_PATH_TREE_H

#include "model/model.h"

/* A path of n_links >= 1 links from rank to rank as a tree, which begins at the first and reaches those on the path in
 * their order. Links are copied. */
Status pack_path_tree(Ctx *ctx, const Topology *topo, const int *path, int n_links, Tree *out);

#endif
