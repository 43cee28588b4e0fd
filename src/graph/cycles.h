/* All Hamiltonian cycles over links. */
#ifndef BLINK_GRAPH_CYCLES_H
#define BLINK_GRAPH_CYCLES_H

#include "graph/finder.h"

struct cycle_list {
	int n, *hop;		/* n cycles of n_ranks hops each, from rank 0 on */
	bool all;		/* there are no others */
};

/* All cycles whose hops are links, if they are few; and the most of them at once. */
Status list_cycles(struct finder *p, struct cycle_list *out);
Status choose_cycles(struct finder *p, const struct cycle_list *cycles);

#endif
