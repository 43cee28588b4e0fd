/* Networks of a synthetic topology that are more than one switch: tori, dragonflies, fat trees and HammingMesh. */
#ifndef BLINK_SYNTHETIC_NETWORK_H
#define BLINK_SYNTHETIC_NETWORK_H

#include "base/json_write.h"
#include "base/status.h"

enum { NETWORK_SIDES = 8 };	/* numbers of a shape at most */

typedef enum { TORUS, DRAGONFLY, DRAGONFLY_PLUS, FAT_TREE, HAMMINGMESH } NetworkKind;

/* As blinkc-topology(1) has it. */
struct synthetic_network {
	NetworkKind kind;
	int n_sides, side[NETWORK_SIDES];
	int64_t capacity;	/* of a link, bytes/s */
	int open;		/* of a torus: dimensions, the last ones, in which the last is not next to the first */
	int groups;		/* of a dragonfly; 0: as many as there may be */
	int64_t taper;		/* of a fat tree: capacity into a switch from below by that to above, times 1e9 */
	int gpus;		/* of a server: ports in order are those of its GPUs */
};

/* Checks the numbers, and sets groups. *ports: of GPUs, in whole servers. Fails: USAGE, naming the item; LIMIT, where
 * ports or links are too many. */
Status network_check(Ctx *ctx, struct synthetic_network *net, int *ports);

void network_put_switches(JsonWriter *w, const struct synthetic_network *net);	/* entries of "switches" */
void network_put_links(JsonWriter *w, const struct synthetic_network *net);	/* of "links" */

#endif
