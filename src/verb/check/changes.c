#include "verb/check/changes.h"
#include "base/sort.h"
#include "base/pool.h"
#include "compile.h"
#include "verb/diff/diff.h"
#include "verb/check/fits_machine.h"

#include <stdatomic.h>
#include <string.h>

enum { SLOTS = 1 << 14, LINE_ROOM = 256, MOST_TRIED = 64 };
enum { SLOT_FREE, SLOT_TAKEN, SLOT_WRITTEN };

/* A table of lines by their hash. A line may be in it twice, if two workers write it at once: so it is sorted later. */
struct Changes {
	atomic_int n_schedules, n_with_links;
	atomic_bool full;
	struct slot {
		atomic_int state;
		char line[LINE_ROOM];
	} slot[SLOTS];
};

Changes *
changes_new(void)
{
	return shared_array(1, sizeof(Changes));
}

void
changes_free(Changes *changes)
{
	shared_free(changes);
}

/* ---- in a worker ---- */

static unsigned
hash_line(const char *line)
{
	unsigned hash = 2166136261u;
	for (; *line; line++)
		hash = (hash ^ (unsigned char)*line) * 16777619u;
	return hash;
}

static void
put_line(Changes *changes, const char *line)
{
	char text[LINE_ROOM];
	snprintf(text, sizeof text, "%s", line);
	make_printable(text);
	unsigned at = hash_line(text);
	for (int i = 0; i < MOST_TRIED; i++, at++) {
		struct slot *slot = &changes->slot[at % SLOTS];
		int state = SLOT_FREE;
		if (atomic_compare_exchange_strong(&slot->state, &state, SLOT_TAKEN)) {
			memcpy(slot->line, text, sizeof text);
			atomic_store(&slot->state, SLOT_WRITTEN);
			return;
		}
		if (state == SLOT_WRITTEN && strcmp(slot->line, text) == 0)
			return;
	}
	atomic_store(&changes->full, true);
}

static const char *
server_of(const Topology *topo, int v)
{
	return topo->vertex[v].node >= 0 ? topo->node[topo->vertex[v].node] : "none";
}

/* Servers that are called otherwise; *now: a copy in which they are called as before. */
static Status
note_servers(Ctx *ctx, Changes *changes, const Topology *was, Topology *now)
{
	Topology copy = *now;
	char line[LINE_ROOM];
	TRY(NEW(ctx, copy.vertex, now->n_vertices));
	memcpy(copy.vertex, now->vertex, (size_t)now->n_vertices * sizeof *copy.vertex);
	for (int r = 0; r < was->n_ranks; r++) {
		copy.vertex[r].node = was->vertex[r].node;
		if (strcmp(server_of(was, r), server_of(now, r)) == 0)
			continue;
		snprintf(line, sizeof line, "server %s, was %s", server_of(now, r), server_of(was, r));
		put_line(changes, line);
	}
	for (int v = was->n_ranks; v < copy.n_vertices; v++)
		copy.vertex[v].node = -1;
	copy.node = was->node;
	copy.n_nodes = was->n_nodes;
	*now = copy;
	return OK;
}

/* The difference in the machine itself is the digest, which is known. */
static Status
note_links(Ctx *ctx, Changes *changes, const Topology *was, const Topology *job)
{
	Topology now = *job;
	Differences list = { 0 };
	int *old_number, *new_number;
	now.digest = was->digest;
	TRY(note_servers(ctx, changes, was, &now));
	TRY(NEW(ctx, old_number, was->n_links));
	TRY(NEW(ctx, new_number, now.n_links));
	TRY(diff_links(ctx, was, &now, old_number, new_number));
	TRY(diff_topologies(ctx, was, &now, old_number, new_number, &list));
	for (int i = 0; i < list.n; i++)
		put_line(changes, list.difference[i].text);
	if (list.n > 0)
		atomic_fetch_add(&changes->n_with_links, 1);
	return OK;
}

static bool
has_link(const Topology *machine, int from, int to, LinkClass class)
{
	for (int i = machine->first_out[from]; i < machine->first_out[from + 1]; i++) {
		const Link *link = &machine->link[machine->out[i]];
		if (link->to == to && link->class == class)
			return true;
	}
	return false;
}

/* Between its GPUs there is no job any more: the GPUs, and the links between GPUs, that the machine does not have. */
static Status
note_lost(Ctx *ctx, Changes *changes, const Topology *machine, const int *gpu, const Topology *was)
{
	Text line = { 0 };
	for (int r = 0; r < was->n_ranks; r++) {
		if (gpu[r] >= 0)
			continue;
		text_printf(&line, "%s: removed", was->vertex[r].id);
		put_line(changes, line.data ? line.data : "");
		line.size = 0;
	}
	for (int l = 0; l < was->n_links; l++) {
		const Link *link = &was->link[l];
		if (link->from >= was->n_ranks || link->to >= was->n_ranks || gpu[link->from] < 0 || gpu[link->to] < 0
		    || has_link(machine, gpu[link->from], gpu[link->to], link->class))
			continue;
		text_printf(&line, "link %s -> %s, %s: removed, had ", was->vertex[link->from].id,
		    was->vertex[link->to].id, link_class_name(link->class));
		text_gb(&line, (Frac){ link->capacity, 1 });
		text_put(&line, " GB/s");
		put_line(changes, line.data ? line.data : "");
		line.size = 0;
	}
	bool failed = line.failed;
	text_free(&line);
	atomic_fetch_add(&changes->n_with_links, 1);
	return failed ? fail_memory(ctx) : OK;
}

Status
changes_note(Ctx *ctx, Changes *changes, const Topology *machine, const Ask *ask, const Schedule *sched)
{
	const Topology *was = sched->topo;
	Job job;
	int *gpu;
	bool all = true;
	atomic_fetch_add(&changes->n_schedules, 1);
	TRY(NEW(ctx, gpu, was->n_ranks));
	TRY(find_gpus(ctx, machine, was, gpu));
	for (int r = 0; r < was->n_ranks; r++)
		all = all && gpu[r] >= 0;
	Status status = all ? job_induce(ctx, machine, gpu, was->n_ranks, ask, &job) : INFEASIBLE;
	if (status == NO_MEMORY)
		return status;
	return status == OK ? note_links(ctx, changes, was, job.topo) : note_lost(ctx, changes, machine, gpu, was);
}

/* ---- in the parent ---- */

static int
by_number_in_text(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

Status
changes_list(Ctx *ctx, const Changes *changes, ChangesList *out)
{
	int n = 0, kept = 0;
	for (int i = 0; i < SLOTS; i++)
		n += changes->slot[i].state == SLOT_WRITTEN;
	*out = (ChangesList){ .n_schedules = changes->n_schedules, .n_with_links = changes->n_with_links,
		.more = changes->full };
	TRY(NEW(ctx, out->line, n));
	for (int i = 0; i < SLOTS; i++)
		if (changes->slot[i].state == SLOT_WRITTEN)
			out->line[out->n++] = changes->slot[i].line;
	sort_array(out->line, n, sizeof *out->line, by_number_in_text);
	for (int i = 0; i < n; i++)
		if (i == 0 || strcmp(out->line[i], out->line[kept - 1]) != 0)
			out->line[kept++] = out->line[i];
	out->n = kept;
	return OK;
}
