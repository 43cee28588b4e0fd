/* Files by reference (blink-topology(5)): entries of `nodes` that name the file of a server and how many of it there
 * are.
 *
 * Such a file is read as a topology of its own, once, and grafted: its GPUs follow the GPUs so far, its other vertices
 * follow those, and its switches in no node follow all nodes. Ids begin with the id of the entry. So a cluster file has
 * the digest of the flat file with the same vertices and links. */
#include "base/array.h"
#include "base/file_read.h"
#include "format/blink/topology_reader.h"

#include <stdio.h>
#include <string.h>

/* ---- reading ---- */

/* A relative path that cannot leave the directories in which files are searched for. */
static bool
is_below(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
	for (const char *at = name;; at++) {
		size_t n = strspn(at, letters);
		if (n == 0 || (at[0] == '.' && (n == 1 || (n == 2 && at[1] == '.'))))
			return false;
		at += n;
		if (*at != '/')
			return !*at;
	}
}

static Status
join_path(Ctx *ctx, const char *dir, size_t n, const char *name, const char **out)
{
	char *path;
	TRY(NEW(ctx, path, n + strlen(name) + 2));
	memcpy(path, dir, n);
	snprintf(path + n, strlen(name) + 2, "%s%s", n && dir[n - 1] != '/' ? "/" : "", name);
	*out = path;
	return OK;
}

/* Beside the file that names it, or in one of the directories. */
static Status
find_file(struct reading *r, const Doc *at, const char **out)
{
	const char *slash = strrchr(r->label, '/'), *path;
	TRY(join_path(r->ctx, r->label, slash ? (size_t)(slash - r->label) + 1 : 0, at->text, &path));
	for (const char *const *dir = r->files->dirs; *dir && !file_is_there(path); dir++)
		TRY(join_path(r->ctx, *dir, strlen(*dir), at->text, &path));
	*out = path;
	return file_is_there(path) ? OK : doc_fail(r->ctx, r->label, at, BAD_INPUT,
	    "%s: no such file next to this one or in the topologies of blinkc", doc_found(at).text);
}

static Status
read_file(struct reading *r, const char *path, const Topology **out)
{
	struct topology_file *file;
	Topology *topo;
	Text text = { 0 };
	for (file = r->files->first; file; file = file->next) {
		if (strcmp(file->path, path) == 0) {
			*out = file->topo;
			return OK;
		}
	}
	TRY(file_read_regular(r->ctx, path, &text));
	r->files->depth++;
	Status status = r->files->read(r->ctx, path, r->files, text.data ? text.data : "", text.size, &topo);
	r->files->depth--;
	text_free(&text);
	TRY(status);
	TRY(NEW(r->ctx, file, 1));
	*file = (struct topology_file){ path, topo, r->files->first };
	r->files->first = file;
	*out = topo;
	return OK;
}

/* An entry that names a file. */
static Status
read_entry(struct reading *r, const Doc *object, struct server *out)
{
	static const char *const members[] = { "id", "file", "count", NULL };
	const Doc *at = doc_get(object, "file");
	const char *name, *path;
	TRY(doc_only(r->ctx, r->label, object, members));
	TRY(doc_string(r->ctx, r->label, object, "file", &name));
	if (!r->files->dirs)
		return doc_want(r->ctx, r->label, at, "no file by reference here");
	if (r->files->depth == LIMIT_FILE_LEVELS)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%s: want files at most %d levels deep",
		    doc_found(at).text, LIMIT_FILE_LEVELS);
	if (!is_below(name))
		return doc_want(r->ctx, r->label, at,
		    "the name of a file, in this directory or below, of A-Z a-z 0-9 _.+- and /");
	out->numbered = doc_get(object, "count");
	TRY(read_count(r, object, LIMIT_NODES, &out->copies));
	TRY(find_file(r, at, &path));
	return read_file(r, path, &out->topo);
}

/* Limits hold before the next file is read, since the topology of each file stays in memory. */
static Status
check_limits(struct reading *r, const Doc *at, int64_t n_nodes, int64_t n_vertices, int64_t n_links)
{
	if (n_nodes > LIMIT_NODES)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%lld nodes: want at most %d", (long long)n_nodes,
		    LIMIT_NODES);
	if (n_vertices > LIMIT_VERTICES)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%lld GPUs, CPUs, switches and NICs: want at most %d",
		    (long long)n_vertices, LIMIT_VERTICES);
	if (n_links > LIMIT_LINKS)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%lld links, one for each direction: want at most %d",
		    (long long)n_links, LIMIT_LINKS);
	return OK;
}

Status
servers_read(struct reading *r, const Doc *nodes)
{
	int64_t n_nodes = 0, n_vertices = 0, n_links = 0;
	r->n_servers = nodes->n;
	TRY(TEMP(r->ctx, r->server, nodes->n));
	for (int i = 0; i < nodes->n; i++) {
		struct server *server = &r->server[i];
		server->copies = 1;
		if (doc_get(nodes->child[i], "file"))
			TRY(read_entry(r, nodes->child[i], server));
		n_nodes += (int64_t)server->copies * (server->topo ? server->topo->n_nodes : 1);
		n_vertices += (int64_t)server->copies * (server->topo ? server->topo->n_vertices : 0);
		n_links += (int64_t)server->copies * (server->topo ? server->topo->n_links : 0);
		TRY(check_limits(r, nodes->child[i], n_nodes, n_vertices, n_links));
	}
	return OK;
}

/* ---- grafting ---- */

/* "s3/gpu0" for gpu0 of copy 3 of the entry s; "s3" where id is NULL. */
static Status
id_within(struct reading *r, const Doc *object, const struct server *server, int copy, const char *id, const char **out)
{
	const char *entry;
	char text[4 * LIMIT_ID_BYTES], number[16] = "";
	TRY(read_id(r, object, &entry));
	if (server->numbered)
		snprintf(number, sizeof number, "%d", copy);
	snprintf(text, sizeof text, "%s%s%s%s", entry, number, id ? "/" : "", id ? id : "");
	if (!topo_id_valid(text))
		return doc_fail(r->ctx, r->label, doc_get(object, "id"), LIMIT, "\"%s\": want ids of at most %d bytes",
		    text, LIMIT_ID_BYTES);
	*out = arena_text(&r->ctx->run, text, strlen(text));
	return *out ? OK : fail_memory(r->ctx);
}

/* A copy: its GPUs, other vertices and switches in no node begin at these vertices. */
struct graft {
	int rank, other, fabric;
};

static int
grafted_vertex(const struct server *server, const struct graft *at, int v)
{
	return v < server->n_gpus ? at->rank + v
	    : v < server->n_gpus + server->n_others ? at->other + v - server->n_gpus
	    : at->fabric + v - server->n_gpus - server->n_others;
}

/* A note of a file by reference: "node.xml: ..." */
static Status
note_within(Ctx *ctx, const char *file, const char *note, const char **out)
{
	Text text = { 0 };
	text_put(&text, file);
	text_put(&text, ": ");
	text_put(&text, note);
	if (text.size > LIMIT_TEXT_BYTES)
		text.size = utf8_valid(text.data, LIMIT_TEXT_BYTES);
	*out = text_keep(&ctx->run, &text);
	return *out ? OK : fail_memory(ctx);
}

static bool
has_note(const Topology *topo, const char *note)
{
	int i = 0;
	while (i < topo->n_notes && strcmp(topo->note[i], note) != 0)
		i++;
	return i < topo->n_notes;
}

static Status
graft_notes(struct reading *r, const Doc *object, const Topology *from)
{
	Topology *topo = r->topo;
	for (int i = 0; i < from->n_notes; i++) {
		const char *note;
		TRY(note_within(r->ctx, doc_get(object, "file")->text, from->note[i], &note));
		if (has_note(topo, note))
			continue;
		if (topo->n_notes == LIMIT_NOTES)
			return doc_fail(r->ctx, r->label, object, LIMIT, "more than %d notes", LIMIT_NOTES);
		TRY(GROW(r->ctx, topo->note, topo->n_notes, r->room_notes));
		topo->note[topo->n_notes++] = note;
	}
	return OK;
}

Status
server_graft(struct reading *r, const Doc *object, const struct server *server)
{
	const Topology *from = server->topo;
	for (int copy = 0; copy < server->copies; copy++) {
		struct graft at = { r->next_rank, r->next_other, r->next_fabric };
		for (int i = 0; i < from->n_nodes; i++) {
			const char **id = &r->topo->node[r->next_node + i];
			TRY(id_within(r, object, server, copy, from->n_nodes > 1 ? from->node[i] : NULL, id));
			r->node[r->next_node + i] = (struct named){ *id, r->next_node + i, doc_get(object, "id") };
		}
		for (int v = 0; v < from->n_vertices; v++) {
			int w = grafted_vertex(server, &at, v);
			Vertex *vertex = &r->topo->vertex[w];
			*vertex = from->vertex[v];
			vertex->node += vertex->node < 0 ? 0 : r->next_node;
			TRY(id_within(r, object, server, copy, from->vertex[v].id, &vertex->id));
			r->named[w] = (struct named){ vertex->id, w, doc_get(object, "id") };
		}
		r->next_node += from->n_nodes;
		r->next_rank += server->n_gpus;
		r->next_other += server->n_others;
		r->next_fabric += server->n_fabric;
	}
	TRY(graft_notes(r, object, from));
	/* Classes, peer accesses and parameters that this file does not give. */
	if (r->topo->n_peer_accesses == 0) {
		r->topo->n_peer_accesses = from->n_peer_accesses;
		r->topo->peer_access = from->peer_access;
	}
	if (r->topo->parameters.n == 0)
		r->topo->parameters = from->parameters;
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (!r->topo->class[c].given)
			r->topo->class[c] = from->class[c];
	return OK;
}

/* A link whose numbers come from its class keeps their source where this file has another source for the class. */
static const char *
source_of(const struct reading *r, const Topology *from, const Link *link)
{
	const char *source = from->class[link->class].source;
	return link->source || text_same(source, r->topo->class[link->class].source) ? link->source : source;
}

Status
servers_link(struct reading *r)
{
	const Doc *nodes;
	struct graft at = { 0, r->topo->n_ranks, r->topo->n_ranks };
	int64_t n = 0;
	TRY(read_children(r, r->root, "nodes", &nodes));
	for (int i = 0; i < r->n_servers; i++) {
		at.fabric += r->server[i].copies * r->server[i].n_others;
		n += r->server[i].topo ? (int64_t)r->server[i].copies * r->server[i].topo->n_links : 0;
	}
	TRY(TEMP(r->ctx, r->grafted, n));
	for (int i = 0; i < r->n_servers; i++) {
		const struct server *server = &r->server[i];
		for (int copy = 0; copy < server->copies; copy++) {
			for (int l = 0; server->topo && l < server->topo->n_links; l++) {
				const Link *link = &server->topo->link[l];
				Link *graft = &r->grafted[r->n_grafted++];
				*graft = *link;
				graft->from = grafted_vertex(server, &at, link->from);
				graft->to = grafted_vertex(server, &at, link->to);
				graft->source = source_of(r, server->topo, link);
				TRY(read_capacity_sum(r, nodes->child[i], link->capacity));
			}
			at.rank += server->n_gpus;
			at.other += server->n_others;
			at.fabric += server->n_fabric;
		}
	}
	return OK;
}
