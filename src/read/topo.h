/* What topo.c and cluster.c share: a topology file while it is read. */
#ifndef BLINK_READ_TOPO_H
#define BLINK_READ_TOPO_H

#include "passes.h"
#include "read/doc.h"

/* A vertex or node by its id: sorted, for look-up. */
struct named {
	const char *id;
	int vertex;
	const Doc *at;		/* where the file says it */
};

/* An entry of `nodes`: a server that it spells out, or those of another file, so many times. */
struct server {
	const Topology *topo;	/* NULL: it is spelled out */
	bool numbered;		/* ids begin with the entry's id and a number */
	int copies;
	int n_gpus, n_others, n_fabric;	/* of a copy: others in its nodes, switches in none */
};

/* Switches that join ports of all servers (blink-topology(5), Fabrics). */
struct fabric {
	const Doc *at;
	const char *id, *source;
	LinkClass class;
	VertexKind port;
	int64_t capacity;	/* of a physical link, bytes/s; 0: the port's own, or its class's */
	int64_t latency;	/* ns; -1: that of the class */
	int count;
	bool rails, multicast, reduce;
	int servers;		/* of a leaf; 0: all */
	bool spined;		/* a spine joins the leaves */
	int64_t over;		/* capacity of a leaf's ports by that of its uplink, in millionths */
	int n_leaves, first;	/* vertices of the leaves: first, first + 1, ..., and of the spine behind them */
	int n_ports, *vertex, *leaf;
};

/* Files that were read, so that none is read twice. */
struct file {
	const char *path;
	const Topology *topo;
	struct file *next;
};

struct reading {
	Ctx *ctx;
	const char *label;
	const char *const *dirs;	/* where files by reference are looked for, after that of this file; NULL: nowhere */
	int depth;			/* of files within files */
	struct file **files;
	const Doc *root;
	Topology *topo;
	int next_node, next_rank, next_other, next_fabric;	/* what gets the next node, GPU, anything else in a node, and in none */
	int n_servers;
	struct server *server;
	struct named *named, *node;	/* n_vertices, n_nodes */
	int n_fabrics;
	struct fabric *fabric;
	int n_grafted;
	Link *grafted;			/* links of files by reference */
	int64_t capacity_sum;
};

/* ---- topo.c ---- */

Status topo_read_within(Ctx *ctx, const char *label, const char *const *dirs, int depth, struct file **files, const char *data,
    size_t size, const Topology **out);

/* An array of objects; without it, an empty one. */
Status read_children(struct reading *r, const Doc *object, const char *name, const Doc **out);
Status read_text(struct reading *r, const Doc *object, const char *name, const char **out);
Status read_flag(struct reading *r, const Doc *object, const char *member, bool *out);
Status read_id(struct reading *r, const Doc *object, const char **out);
Status read_capacity(struct reading *r, const Doc *at, int64_t *out);
Status read_latency(struct reading *r, const Doc *at, int64_t *out);
Status read_class_name(struct reading *r, const Doc *object, const char *member, LinkClass *out);
Status read_count(struct reading *r, const Doc *object, int most, int *out);

/* Capacities of all links so far stay below the limit. */
Status read_capacity_sum(struct reading *r, const Doc *at, int64_t more);

/* ---- cluster.c ---- */

/* An entry of `nodes` that names a file: read it. */
Status server_read(struct reading *r, const Doc *object, struct server *out);

/* Its nodes and vertices, as often as it says. */
Status server_graft(struct reading *r, const Doc *object, const struct server *server);

/* Links of all files by reference, in r->grafted. */
Status servers_link(struct reading *r);

/* What the file says of fabrics, before its vertices are known. *room: at least the switches that they will have. */
Status fabrics_read(struct reading *r, int n_nodes, const int *most_ports, int64_t *room);

/* Their switches, after all other vertices; how many links they need; those links. */
Status fabrics_join(struct reading *r);
int64_t fabrics_links(const struct reading *r);
Status fabrics_link(struct reading *r, Link *link);

#endif
