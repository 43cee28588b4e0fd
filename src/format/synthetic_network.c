/* Networks of synthetic topologies: the switches and links of a shape, in the terms of the papers that describe it.
 *
 * A GPU is a port, and in a torus or on a board of HammingMesh the router, too. A switch stands for what does not block
 * at its ports: a router; in a fat tree a whole level of switches above the same ports, with one link of the sum of
 * their capacities (Leiserson 1985, "Fat-Trees: Universal Networks for Hardware-Efficient Supercomputing"). */
#include "format/synthetic_network.h"
#include "model/topology.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- links ---- */

__attribute__((format(printf, 3, 4))) static void
put_id(JsonWriter *w, const char *name, const char *format, ...)
{
	char id[LIMIT_ID_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(id, sizeof id, format, args);
	va_end(args);
	json_string(w, name, id);
}

static void
put_gpu(JsonWriter *w, const struct synthetic_network *net, const char *name, int port)
{
	put_id(w, name, "s%d/gpu%d", port / net->gpus, port % net->gpus);
}

static void
end_link(JsonWriter *w, int count, int64_t capacity)
{
	json_string(w, "class", link_class_name(LINK_NET));
	if (count > 1)
		json_int(w, "count", count);
	json_gb(w, "capacity", (Frac){ capacity, 1 });
	json_end(w);
}

static void
put_gpu_link(JsonWriter *w, const struct synthetic_network *net, int from, int to)
{
	json_object(w, NULL, JSON_LINE);
	put_gpu(w, net, "from", from);
	put_gpu(w, net, "to", to);
	end_link(w, 1, net->capacity);
}

/* ---- tori: Dally 1990, "Performance Analysis of k-ary n-cube Interconnection Networks" ---- */

/* Rows of GPUs in each dimension, the last of which is the one whose numbers follow each other. */
static void
put_torus(JsonWriter *w, const struct synthetic_network *net, int ports)
{
	for (int port = 0; port < ports; port++) {
		int stride = ports;
		for (int d = 0; d < net->n_sides; d++) {
			int side = net->side[d];
			stride /= side;
			int at = port / stride % side;
			bool closed = d < net->n_sides - net->open && side > 2;
			if (at + 1 < side)
				put_gpu_link(w, net, port, port + stride);
			else if (closed)
				put_gpu_link(w, net, port, port - at * stride);
		}
	}
}

/* ---- dragonflies ----
 * Kim et al. 2008, "Technology-Driven, Highly-Scalable Dragonfly Topology": p GPUs at each router, a routers in a
 * group, all joined, h links of each router to other groups. Shpiner et al. 2017, "Dragonfly+: Low Cost Topology for
 * Scaling Datacenters": a group has leaves, at which GPUs are, and spines, which lead to other groups; each leaf is
 * joined to each spine. Of g groups, link j of one to others leads to the group whose number is 1 + j mod (g - 1)
 * higher, mod g, and ends at a link of that group with the same quotient j / (g - 1). So all groups have the same
 * wiring, and as many links join every two. Links of a group beyond the last multiple of g - 1 are not used. */

struct group {
	int leaves, ports;	/* GPUs of each leaf */
	int routers, global;	/* that lead to other groups; links of each to these */
	const char *leaf, *router;
};

static struct group
group_of(const struct synthetic_network *net)
{
	const int *side = net->side;
	if (net->kind == DRAGONFLY)
		return (struct group){ side[1], side[0], side[1], side[2], "router", "router" };
	return (struct group){ side[1], side[0], side[2], side[3], "leaf", "spine" };
}

static void
put_router_link(JsonWriter *w, const struct synthetic_network *net, const char *const kind[2], const int group[2],
    const int router[2])
{
	json_object(w, NULL, JSON_LINE);
	put_id(w, "from", "g%d/%s%d", group[0], kind[0], router[0]);
	put_id(w, "to", "g%d/%s%d", group[1], kind[1], router[1]);
	end_link(w, 1, net->capacity);
}

static void
put_inside(JsonWriter *w, const struct synthetic_network *net, const struct group *group, int g)
{
	bool plus = net->kind == DRAGONFLY_PLUS;
	for (int i = 0; i < group->leaves; i++)
		for (int j = plus ? 0 : i + 1; j < group->routers; j++)
			put_router_link(w, net, (const char *const[]){ group->leaf, group->router }, (int[]){ g, g },
			    (int[]){ i, j });
}

/* Of a group, those to groups with higher numbers. */
static void
put_global(JsonWriter *w, const struct synthetic_network *net, const struct group *group, int g)
{
	const int others = net->groups - 1, turns = others ? group->routers * group->global / others : 0;
	for (int j = 0; j < turns * others; j++) {
		int further = j % others, block = j / others, other = (g + 1 + further) % net->groups;
		int back = (block * others + others - 1 - further) / group->global;
		if (other < g)
			continue;
		put_router_link(w, net, (const char *const[]){ group->router, group->router }, (int[]){ g, other },
		    (int[]){ j / group->global, back });
	}
}

static void
put_dragonfly(JsonWriter *w, const struct synthetic_network *net)
{
	const struct group group = group_of(net);
	for (int g = 0; g < net->groups; g++) {
		for (int i = 0; i < group.leaves * group.ports; i++) {
			json_object(w, NULL, JSON_LINE);
			put_gpu(w, net, "from", g * group.leaves * group.ports + i);
			put_id(w, "to", "g%d/%s%d", g, group.leaf, i / group.ports);
			end_link(w, 1, net->capacity);
		}
		put_inside(w, net, &group, g);
		put_global(w, net, &group, g);
	}
}

/* ---- fat trees ---- */

/* Capacity of the link above a switch of a level, from 1: what is below, less the taper of each level; rounded down. */
static __int128
uplink(const struct synthetic_network *net, int level)
{
	__int128 up = net->capacity;
	for (int d = 0; d < level && up <= LIMIT_CAPACITY_MAX; d++)
		up = up * net->side[d] * BYTES_PER_GB / net->taper;
	return up;
}

static void
put_fat_tree(JsonWriter *w, const struct synthetic_network *net, int ports)
{
	for (int port = 0; port < ports; port++) {
		json_object(w, NULL, JSON_LINE);
		put_gpu(w, net, "from", port);
		put_id(w, "to", "level1/%d", port / net->side[0]);
		end_link(w, 1, net->capacity);
	}
	for (int level = 1, n = ports / net->side[0]; level < net->n_sides; n /= net->side[level++])
		for (int i = 0; i < n; i++) {
			json_object(w, NULL, JSON_LINE);
			put_id(w, "from", "level%d/%d", level, i);
			put_id(w, "to", "level%d/%d", level + 1, i / net->side[level]);
			end_link(w, 1, (int64_t)uplink(net, level));
		}
}

/* ---- HammingMesh: Hoefler et al. 2022, "HammingMesh: A Network Topology for Large-Scale Deep Learning" ----
 * Boards of a x b GPUs, each with its neighbours on the board; x rows of y boards. The GPUs at both ends of a line of
 * a board have a link to the fat tree of that line, over all boards in it; it does not block, so it is one switch. */

static void
put_edge(JsonWriter *w, const struct synthetic_network *net, int port, const char *kind, int line, int count)
{
	json_object(w, NULL, JSON_LINE);
	put_gpu(w, net, "from", port);
	put_id(w, "to", "%s%d", kind, line);
	end_link(w, count, net->capacity);
}

/* A GPU with its neighbours to the right and below, and with the switches of its row and column. */
static void
put_board_links(JsonWriter *w, const struct synthetic_network *net, int port)
{
	const int a = net->side[0], b = net->side[1], y = net->side[3];
	int board = port / (a * b), row = port / b % a, column = port % b;
	if (column + 1 < b)
		put_gpu_link(w, net, port, port + 1);
	if (row + 1 < a)
		put_gpu_link(w, net, port, port + b);
	if (column == 0 || column == b - 1)
		put_edge(w, net, port, "row", board / y * a + row, b == 1 ? 2 : 1);
	if (row == 0 || row == a - 1)
		put_edge(w, net, port, "column", board % y * b + column, a == 1 ? 2 : 1);
}

/* ---- all ---- */

static int64_t
ports_of(const struct synthetic_network *net)
{
	int64_t ports = 1;
	if (net->kind == DRAGONFLY || net->kind == DRAGONFLY_PLUS)
		return (int64_t)net->groups * net->side[0] * net->side[1];
	for (int d = 0; d < net->n_sides && ports <= LIMIT_RANKS; d++)
		ports *= net->side[d];
	return ports;
}

/* Both directions, at most. */
static int64_t
links_of(const struct synthetic_network *net, int64_t ports)
{
	if (net->kind != DRAGONFLY && net->kind != DRAGONFLY_PLUS)
		return 2 * ports * (net->n_sides > 4 ? net->n_sides : 4);
	const struct group group = group_of(net);
	return 2 * (ports + (int64_t)net->groups * group.routers * (group.leaves + group.global));
}

/* As many as there are links of a group to others, and itself, unless fewer are given. */
static Status
check_groups(Ctx *ctx, struct synthetic_network *net)
{
	const struct group group = group_of(net);
	int64_t most = (int64_t)group.routers * group.global + 1;
	if (net->groups > most)
		return fail(ctx, USAGE, "--synthetic: groups:%d: want at most %lld, 1 more than the links of a group "
		    "to others", net->groups, (long long)most);
	if (!net->groups)
		net->groups = most <= LIMIT_RANKS ? (int)most : LIMIT_RANKS + 1;
	return OK;
}

Status
network_check(Ctx *ctx, struct synthetic_network *net, int *ports)
{
	if (net->kind == DRAGONFLY || net->kind == DRAGONFLY_PLUS)
		TRY(check_groups(ctx, net));
	if (net->open > net->n_sides)
		return fail(ctx, USAGE, "--synthetic: open:%d: want at most the %d dimensions of the torus", net->open,
		    net->n_sides);
	int64_t n = ports_of(net), links = links_of(net, n);
	if (n > LIMIT_RANKS)
		return fail(ctx, LIMIT, "--synthetic: more than %d GPUs: want at most that many", LIMIT_RANKS);
	if (links > LIMIT_LINKS || n / net->gpus > LIMIT_NODES)
		return fail(ctx, LIMIT, "--synthetic: %lld servers, about %lld links: want at most %d and %d",
		    (long long)n / net->gpus, (long long)links, LIMIT_NODES, LIMIT_LINKS);
	if (n % net->gpus != 0)
		return fail(ctx, USAGE, "--synthetic: gpu:%d: want a divisor of the %lld GPUs of the network",
		    net->gpus, (long long)n);
	for (int level = 1; net->kind == FAT_TREE && level < net->n_sides; level++) {
		__int128 up = uplink(net, level);
		if (up < LIMIT_CAPACITY_MIN || up > LIMIT_CAPACITY_MAX)
			return fail(ctx, LIMIT, "--synthetic: the link above a switch of level %d: want 1e-6 to 1e6 "
			    "GB/s", level);
	}
	*ports = (int)n;
	return OK;
}

/* "KIND0" and so on, after a prefix. */
static void
put_switches(JsonWriter *w, const char *prefix, const char *kind, int n)
{
	for (int i = 0; i < n; i++) {
		json_object(w, NULL, JSON_LINE);
		put_id(w, "id", "%s%s%d", prefix, kind, i);
		json_end(w);
	}
}

void
network_put_switches(JsonWriter *w, const struct synthetic_network *net)
{
	const int *side = net->side;
	char prefix[LIMIT_ID_BYTES];
	switch (net->kind) {
	case TORUS:
		break;
	case DRAGONFLY:
	case DRAGONFLY_PLUS:
		for (int g = 0; g < net->groups; g++) {
			const struct group group = group_of(net);
			snprintf(prefix, sizeof prefix, "g%d/", g);
			put_switches(w, prefix, group.leaf, group.leaves);
			if (net->kind == DRAGONFLY_PLUS)
				put_switches(w, prefix, group.router, group.routers);
		}
		break;
	case FAT_TREE:
		for (int level = 1, n = (int)ports_of(net); level <= net->n_sides; level++) {
			n /= side[level - 1];
			snprintf(prefix, sizeof prefix, "level%d/", level);
			put_switches(w, prefix, "", n);
		}
		break;
	case HAMMINGMESH:
		put_switches(w, "", "row", side[0] * side[2]);
		put_switches(w, "", "column", side[1] * side[3]);
		break;
	}
}

void
network_put_links(JsonWriter *w, const struct synthetic_network *net)
{
	int ports = (int)ports_of(net);
	switch (net->kind) {
	case TORUS:
		put_torus(w, net, ports);
		break;
	case DRAGONFLY:
	case DRAGONFLY_PLUS:
		put_dragonfly(w, net);
		break;
	case FAT_TREE:
		put_fat_tree(w, net, ports);
		break;
	case HAMMINGMESH:
		for (int port = 0; port < ports; port++)
			put_board_links(w, net, port);
		break;
	}
}
