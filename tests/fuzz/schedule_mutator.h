/* Mutations that know what a schedule is: a tree gets another edge, segment or root, trees change places, a certificate
 * changes, ranks change names; some are of any JSON. */
#ifndef BLINK_FUZZ_SCHEDULE_MUTATOR_H
#define BLINK_FUZZ_SCHEDULE_MUTATOR_H

#include "json_mutator.h"

/* An edge [from, to, [link...]]: another end, another link, turned round, or away. */
static void
schedule_edge(int tree)
{
	int edges = json_member(tree, tree_below(2) ? "down" : "up"), edge = json_any(edges);
	if (edge < 0)
		return;
	int from = node[edge].first, to = from < 0 ? -1 : node[from].next, links = to < 0 ? -1 : node[to].next;
	switch (tree_below(6)) {
	case 0:
		json_set(from, "%d", (int)tree_below(9));
		break;
	case 1:
		json_set(to, "%d", (int)tree_below(9));
		break;
	case 2:
		json_set(json_any(links), "%d", (int)tree_below(32));
		break;
	case 3:
		tree_swap(from, to, false);
		break;
	case 4:
		tree_twice(edge);
		break;
	default:
		tree_drop(json_any(edges));
		break;
	}
}

/* Ranks a and b change names in every edge, link and certificate: mostly still a schedule. */
static void
schedule_rename_ranks(int root)
{
	int a = (int)tree_below(8), b = (int)tree_below(8), links = json_member(json_member(root, "topology"), "links");
	for (int l = links < 0 ? -1 : node[links].first; l >= 0; l = node[l].next) {
		int end[2] = { json_member(l, "from"), json_member(l, "to") };
		for (int k = 0; k < 2; k++)
			if (end[k] >= 0 && node[end[k]].text && node[end[k]].size == 1) {
				int value = *node[end[k]].text - '0';
				json_set(end[k], "%d", value == a ? b : value == b ? a : value);
			}
	}
}

static void
schedule_change(int root)
{
	int trees = json_member(root, "trees"), tree = json_any(trees), rate = json_member(root, "rate");
	int certificate = json_member(rate, "certificate"), topology = json_member(root, "topology");
	int links = json_member(topology, "links");
	static const char *const collectives[] = { "\"broadcast\"", "\"reduce\"", "\"allreduce\"", "\"gather\"",
		"\"scatter\"", "\"allgather\"", "\"reducescatter\"", "\"alltoall\"" };
	switch (tree_below(18)) {
	case 0:
	case 1:
	case 2:
		schedule_edge(tree);
		break;
	case 3:
		json_set(
		    json_any(json_member(tree, "segment")), "\"%d/%d\"", (int)tree_below(5), 1 + (int)tree_below(6));
		break;
	case 4:
		json_set(json_member(tree_below(2) ? tree : root, "root"), "%d", (int)tree_below(5));
		break;
	case 5:
		json_extreme(json_any(json_any(certificate)));
		break;
	case 6:
		tree_swap(json_any(certificate), json_any(certificate), false);
		break;
	case 7:
		tree_twice(json_any(json_any(certificate)));
		break;
	case 8:
		tree_swap(tree, json_any(trees), false);
		break;
	case 9:
		tree_twice(tree);
		break;
	case 10:
		tree_drop(json_any(tree_below(2) ? trees : links));
		break;
	case 11:
		json_set(json_member(root, "collective"), "%s", collectives[tree_below(8)]);
		break;
	case 12:
		json_set(json_member(json_any(links), "capacity"), "%d.%0*d", 1 + (int)tree_below(60),
		    (int)tree_below(9) + 1, (int)tree_below(10));
		break;
	case 13:
		schedule_rename_ranks(root);
		break;
	default:
		json_change(root);
		break;
	}
}

static inline size_t
schedule_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	static const Format format = { json_parse, json_put, schedule_change };
	return tree_mutate(&format, data, size, most, seed);
}

#endif
