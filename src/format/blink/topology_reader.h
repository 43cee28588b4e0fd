/* The files that read a topology file together: read_topology.c has the order of things, the others a member each. */
#ifndef BLINK_FORMAT_TOPOLOGY_READER_H
#define BLINK_FORMAT_TOPOLOGY_READER_H

#include "format/doc.h"
#include "format/format.h"

/* A vertex or node by its id: sorted, for look-up. */
struct named {
	const char *id;
	int vertex;
	const Doc *at;		/* its place in the file */
};

/* An entry of `nodes`: a server with its vertices, or copies of the servers of another file. */
struct server {
	const Topology *topo;	/* of the other file; NULL: the entry has the vertices */
	bool numbered;		/* ids begin with the entry's id and a number */
	int copies;
	int n_gpus, n_others, n_fabric;	/* of a copy: GPUs, other vertices in its nodes, switches in no node */
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
	int64_t over;		/* capacity of a leaf's ports divided by that of its uplink, in millionths */
	int n_leaves, first;	/* vertices of the leaves: first, first + 1, ..., and of the spine after them */
	int n_ports, *vertex, *leaf;
};

/* A topology file that is being read. */
struct reading {
	Ctx *ctx;
	const char *label;
	TopologyFiles *files;
	const Doc *root;
	Topology *topo;
	int next_node, next_rank;	/* number of the next node, GPU, */
	int next_other, next_fabric;	/* other vertex in a node, switch in no node */
	int n_servers;
	struct server *server;
	struct named *named, *node;	/* n_vertices, n_nodes */
	int n_fabrics;
	struct fabric *fabric;
	int n_grafted;
	Link *grafted;			/* links of files by reference */
	int64_t capacity_sum;
	int room_notes;
};

/* ---- topology_members.c: all fail with BAD_INPUT or LIMIT, naming the place in the file ---- */

/* An array of objects; an empty one where the object has no such member. */
Status read_children(struct reading *r, const Doc *object, const char *name, const Doc **out);

/* One line of text without control characters: a value, or the member of an object. */
Status read_line(struct reading *r, const Doc *at, const char **out);
Status read_text(struct reading *r, const Doc *object, const char *name, const char **out);

/* As read_text, of the member `source`; *out stays as it is where there is none. */
Status read_source(struct reading *r, const Doc *object, const char **out);

/* true or false, which XML spells as text; *out stays as it is where there is no such member. */
Status read_flag(struct reading *r, const Doc *object, const char *member, bool *out);

Status read_id(struct reading *r, const Doc *object, const char **out);
Status read_class_name(struct reading *r, const Doc *object, const char *member, LinkClass *out);

/* The member `count`, 1 to `most`; 1 where there is none. */
Status read_count(struct reading *r, const Doc *object, int most, int *out);

/* The members `capacity`, GB/s in the file and bytes/s in *out, and `latency`, us in the file and ns in *out, which
 * stays as it is where there is none. */
Status read_capacity(struct reading *r, const Doc *object, int64_t *out);
Status read_latency(struct reading *r, const Doc *object, int64_t *out);

/* Add to the capacities of all links so far. Fails: LIMIT. */
Status read_capacity_sum(struct reading *r, const Doc *at, int64_t more);

/* ---- read_parameters.c ---- */

/* The member `parameters` of the root; *out stays as it is where there is none. */
Status parameters_member(Ctx *ctx, const char *label, const Doc *root, Parameters *out);

/* ---- read_servers.c ---- */

/* The entries of `nodes`, into r->server: files by reference are read. */
Status servers_read(struct reading *r, const Doc *nodes);

/* Nodes and vertices of each copy of an entry by reference. */
Status server_graft(struct reading *r, const Doc *object, const struct server *server);

/* Links of all files by reference, into r->grafted. */
Status servers_link(struct reading *r);

/* ---- read_fabrics.c ---- */

/* The member `fabrics`, before vertices are known. *most: at least the number of switches that they will have. */
Status fabrics_read(struct reading *r, int n_nodes, const int *most_ports, int64_t *most);

/* Their switches, which follow all other vertices; how many links they need; those links. */
Status fabrics_join(struct reading *r);
int64_t fabrics_links(const struct reading *r);
Status fabrics_link(struct reading *r, Link *link);

/* ---- read_vertices.c, read_links.c ---- */

/* Nodes and vertices, of this file and by reference, and the switches of fabrics. */
Status vertices_read(struct reading *r);

/* The vertex with this id; -1: none has it. */
int vertex_find(const struct reading *r, const char *id);

/* All links, after vertices. */
Status links_read(struct reading *r);

#endif
