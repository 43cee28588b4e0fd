/* Links of a topology by the ids of their ends: which of them is each link of another topology of the same machine? */
#ifndef BLINK_WORKLOAD_LINKS_H
#define BLINK_WORKLOAD_LINKS_H

#include "model/model.h"

typedef struct {
	int n;
	const struct named_link *link;	/* sorted */
} LinkNames;

/* In the scratch arena, as long as topo is there. */
Status link_names(Ctx *ctx, const Topology *topo, LinkNames *out);

/* of[l]: the link with the ends and class of link l of topo, and as many of the same before it; -1: there is none.
 * "plx0:out" and "plx0:in" are copies of plx0 (topo_nic_paths) where no link has such an end itself. */
Status link_names_find(Ctx *ctx, const LinkNames *names, const Topology *topo, int *of);

#endif
