/* blinkc show: a schedule or a machine as text, as a picture, or as input of Graphviz. */
#include "base/file.h"
#include "base/sort.h"
#include "graph/isomorphism.h"
#include "schedule/schedule.h"
#include "topology/topology.h"
#include "verb/request.h"
#include "verb/show_machine.h"
#include "verb/verb.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

/* A copy whose name is printable on one line. */
static Status
printable_name(Ctx *ctx, const Schedule *sched, Schedule **out)
{
	Topology *topo;
	TRY(NEW_EACH(ctx, 1, *out, topo));
	**out = *sched;
	*topo = *sched->topo;
	TRY(printable_line(ctx, topo->name, &topo->name));
	(*out)->topo = topo;
	return OK;
}

static Status
put_text(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	const Summary summary = { .sched = e->sched, .unproven = UNPROVEN_BOTH };
	TRY(summary_text(ctx, &summary, out));
	TRY(show_trees(ctx, e, ask, out));
	TRY(show_links(ctx, e, ask, out));
	return show_proof(ctx, e, out);
}

static Status
show_schedule(Ctx *ctx, const char *format, const char *label, const Schedule *sched, const ShowRequest *ask, Text *out)
{
	Explained e;
	Schedule *printable;
	TRY(printable_name(ctx, sched, &printable));
	TRY(explain(ctx, label, printable, &e));
	if (strcmp(format, "svg") == 0)
		return emit_svg(ctx, &e, ask, out);
	if (strcmp(format, "dot") == 0)
		return emit_dot(ctx, &e, ask, out);
	return put_text(ctx, &e, ask, out);
}

static Status
show_parse(Ctx *ctx, const Options *opt, const char *format, ShowRequest *ask)
{
	const char *layout = opt->value[OPT_LAYOUT];
	Collective coll;
	*ask = (ShowRequest){ .trees = opt->value[OPT_TREE] };
	TRY(request_collective(ctx, opt, &coll));
	if (opt->value[OPT_LINKS])
		TRY(request_links(ctx, opt->value[OPT_LINKS], &ask->classes));
	if (opt->value[OPT_LINKS] && strcmp(format, "text") != 0)
		return fail(ctx, USAGE, "--links: want it with --format text only");
	if (layout && strcmp(format, "svg") != 0)
		return fail(ctx, USAGE, "--layout: want it with --format svg only");
	if (layout && strcmp(layout, "own") != 0) {
		if (strcmp(layout, "dot") != 0 && strcmp(layout, "neato") != 0)
			return fail(ctx, USAGE, "--layout: %.40s: want own, dot or neato", layout);
		ask->layout = layout;
	}
	return OK;
}

/* ---- a directory of schedules ---- */

/* The requested job: GPUs of the machine of the index, order_of_ints and as they were asked for, and the root among
 * them. */
struct job {
	int n, *gpu, *asked;
	Collective coll;
	int root;		/* index in gpu; -1: none */
};

static Status
parse_job(Ctx *ctx, const Index *index, const Options *opt, struct job *job)
{
	Topology machine = { .name = index->name, .n_ranks = index->n_gpus };
	int root, root_gpu = -1;
	TRY(NEW_EACH(ctx, index->n_gpus, machine.vertex, job->gpu));
	for (int g = 0; g < index->n_gpus; g++)
		machine.vertex[g].id = index->gpu[g];
	TRY(request_collective(ctx, opt, &job->coll));
	TRY(request_gpus(ctx, &machine, opt->value[OPT_GPUS], job->gpu, &job->n));
	TRY(request_root(ctx, &machine, job->gpu, job->n, job->coll, opt->value[OPT_ROOT], &root));
	if (root >= 0)
		root_gpu = job->gpu[root];
	TRY(NEW(ctx, job->asked, job->n));
	memcpy(job->asked, job->gpu, (size_t)job->n * sizeof *job->gpu);
	qsort(job->gpu, (size_t)job->n, sizeof *job->gpu, order_of_ints);
	job->root = -1;
	for (int i = 0; i < job->n; i++)
		if (job->gpu[i] == root_gpu)
			job->root = i;
	return OK;
}

/* Of the entries for the job of this one, that which is for any size, or else for the largest. */
static const IndexEntry *
of_any_size(const Index *index, const IndexEntry *entry)
{
	int n;
	const IndexEntry *first = index_job(index, entry, &n);
	return index_of_size(first, n, -1);
}

/* The entry for these GPUs, in any order; libblink instead looks for a list, whose order is that of the ranks. */
static Status
find_entry(Ctx *ctx, const Index *index, const struct job *job, const IndexEntry **out)
{
	int *gpu;
	TRY(NEW(ctx, gpu, index->n_gpus));
	for (int i = 0; i < index->n_entries; i++) {
		const IndexEntry *entry = &index->entry[i];
		if (entry->n != job->n || entry->coll != job->coll
		    || (job->root >= 0 && entry->gpu[entry->root] != job->gpu[job->root]))
			continue;
		memcpy(gpu, entry->gpu, (size_t)entry->n * sizeof *gpu);
		qsort(gpu, (size_t)entry->n, sizeof *gpu, order_of_ints);
		if (memcmp(gpu, job->gpu, (size_t)entry->n * sizeof *gpu) != 0)
			continue;
		*out = of_any_size(index, entry);
		return OK;
	}
	*out = NULL;
	return OK;
}

static Status
fail_absent(Ctx *ctx, const char *label, const Index *index, const struct job *job)
{
	return fail(ctx, BAD_INPUT, "%s: no %s over these %d GPUs%s%s: want a job of the index", label,
	    collective_name(job->coll), job->n, job->root >= 0 ? " from root " : "",
	    job->root >= 0 ? index->gpu[job->gpu[job->root]] : "");
}

/* The entry with its GPUs as they were asked for: rank i of the job is the GPU that is named at i. */
static Status
order_entry(Ctx *ctx, const struct job *job, const IndexEntry *entry, const IndexEntry **out)
{
	IndexEntry *own;
	int *rank, *now;
	TRY(NEW(ctx, own, 1));
	TRY(NEW(ctx, rank, job->n));
	TRY(NEW(ctx, now, entry->n));
	for (int i = 0; i < job->n; i++) {
		for (int k = 0; k < entry->n; k++)
			if (entry->gpu[k] == job->asked[i])
				now[k] = i;
	}
	for (int k = 0; k < entry->n; k++)
		rank[now[k]] = entry->rank[k];
	*own = *entry;
	own->gpu = job->asked;
	own->rank = rank;
	own->root = entry->root >= 0 ? now[entry->root] : -1;
	*out = own;
	return OK;
}

/* Isomorphic sets of GPUs share a file: its ranks get the names of the GPUs of this set. */
static Status
rename_gpus(Ctx *ctx, const char *label, const Index *index, const IndexEntry *entry, Schedule *sched)
{
	Topology *topo;
	TRY(NEW(ctx, topo, 1));
	*topo = *sched->topo;
	if (!index_same_job(entry, sched) || !index_has_digest(index, topo->digest))
		return fail(ctx, BAD_INPUT,
		    "%s: not the job of its entry in the index: want the file that was indexed", label);
	TRY(NEW(ctx, topo->vertex, topo->n_vertices));
	memcpy(topo->vertex, sched->topo->vertex, (size_t)topo->n_vertices * sizeof *topo->vertex);
	for (int i = 0; i < entry->n; i++)
		topo->vertex[entry->rank[i]].id = index->gpu[entry->gpu[i]];
	sched->topo = topo;
	return OK;
}

/* ---- the verb ---- */

/* Of a compact schedule all trees are shown; where these are too many, those of representatives. */
static Status
list_trees(Ctx *ctx, const char *label, Schedule **sched)
{
	const Error error = ctx->error;
	if (sched_is_list(*sched))
		return OK;
	Status status = sched_expand(ctx, label, *sched, sched);
	if (status != LIMIT)
		return status;
	ctx->error = error;
	return OK;
}

/* One file; with an entry of an index, its GPUs have the names and the ranks that the entry gives them. */
static Status
show_text(Ctx *ctx, const char *format, const char *label, const Text *in, const Index *index, const IndexEntry *entry,
    const ShowRequest *ask, Text *out)
{
	Schedule *sched;
	const char *line;
	TRY(sched_read_verified(ctx, label, in->data, in->size, &sched));
	TRY(list_trees(ctx, label, &sched));
	if (entry)
		TRY(rename_gpus(ctx, label, index, entry, sched));
	if (entry)
		TRY(sched_relabel(ctx, sched, entry->rank, &sched));
	if (entry && strcmp(format, "text") == 0) {
		TRY(printable_line(ctx, label, &line));
		text_put(out, "file        ");
		text_put(out, line);
		text_put(out, ", with the GPUs of this job; servers and switches are those of the file\n");
	}
	return show_schedule(ctx, format, label, sched, ask, out);
}

static Status
show_file(Ctx *ctx, const char *format, const char *path, const Index *index, const IndexEntry *entry,
    const ShowRequest *ask, Text *out)
{
	Text in = { 0 };
	TRY(file_read_regular(ctx, path, &in));
	Status status = show_text(ctx, format, path, &in, index, entry, ask, out);
	text_free(&in);
	return status;
}

static Status
path_below(Ctx *ctx, const char *directory, const char *name, char path[FILE_PATH_ROOM])
{
	if (snprintf(path, FILE_PATH_ROOM, "%s/%s", directory, name) < FILE_PATH_ROOM)
		return OK;
	return fail(ctx, LIMIT, "%s/%s: a path longer than %d bytes", directory, name, FILE_PATH_ROOM - 1);
}

static Status
read_index(Ctx *ctx, const char *directory, const char *name, char path[FILE_PATH_ROOM], const Index **out)
{
	Text in = { 0 };
	Index *index;
	TRY(path_below(ctx, directory, name, path));
	TRY(file_read_regular(ctx, path, &in));
	Status status = index_read(ctx, path, in.data ? in.data : "", in.size, &index);
	text_free(&in);
	if (status == OK)
		*out = index;
	return status;
}

/* With --without, the index beside it for what is left of the machine. */
static Status
find_index(Ctx *ctx, const char *directory, const char *without, char path[FILE_PATH_ROOM], const Index **out)
{
	TRY(read_index(ctx, directory, "index.json", path, out));
	const IndexChange *change = without ? index_change(*out, without) : NULL;
	if (!without)
		return OK;
	if (!change)
		return fail(ctx, BAD_INPUT,
		    "%s: no schedules without %.200s: want a loss that batch --failures planned", path, without);
	if (strcmp(change->file, "index.json") == 0)
		return OK;
	TRY(read_index(ctx, directory, change->file, path, out));
	if (strcmp((*out)->digest, change->digest) != 0)
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: want that of its change, %.80s", path,
		    (*out)->digest, change->digest);
	return OK;
}

/* The machine of the index, by which jobs are found that it does not list: its own, or that of --topology. NULL:
 * none. */
static Status
machine_of(Ctx *ctx, const Options *opt, const Index *index, const Topology **out)
{
	const char *path = opt->value[OPT_TOPOLOGY];
	Topology *machine;
	Loss *loss;
	const int *gpu;
	int n;
	Text in = { 0 };
	*out = index->machine;
	if (!path)
		return OK;
	TRY(file_read(ctx, path, &in));
	Status status = read_topology(ctx, opt, path, &in, &machine);
	text_free(&in);
	TRY(status);
	if (index->without && strcmp(machine->digest, index->digest) != 0) {
		TRY(request_blame(ctx, topo_losses(ctx, machine, index->without, &loss, &n)));
		TRY(topo_without(ctx, machine, loss, n, &machine, &gpu));
	}
	if (strcmp(machine->digest, index->digest) != 0)
		return fail(ctx, BAD_INPUT, "--topology: %s: its digest is %.80s: want that of the index, %.80s", path,
		    machine->digest, index->digest);
	*out = machine;
	return OK;
}

/* Is the job that of the file? *out: then its entry, with the GPUs and the root of the job. */
static Status
match_file(Ctx *ctx, const char *path, const Index *index, const IndexEntry *entry, const struct job *job,
    const Topology *topo, const IndexEntry **out)
{
	Text in = { 0 };
	Schedule *sched;
	IndexEntry *own;
	int *rank;
	bool found = false;
	TRY(NEW(ctx, own, 1));
	TRY(NEW(ctx, rank, job->n));
	TRY(file_read_regular(ctx, path, &in));
	Status status = sched_read(ctx, path, in.data ? in.data : "", in.size, &sched);
	text_free(&in);
	TRY(status);
	const IndexEntry *any = of_any_size(index, entry);
	if (index_same_job(entry, sched))
		TRY(index_match(ctx, path, topo, job->root, sched, rank, &found));
	if (found)
		TRY(index_rank_again(ctx, entry, any, rank));
	*own = *any;
	own->gpu = job->gpu;
	own->rank = rank;
	own->root = job->root;
	*out = found ? own : NULL;
	return OK;
}

/* A job that the index does not list, by one that is isomorphic. *out: NULL: there is none. */
static Status
find_isomorphic(Ctx *ctx, const Options *opt, const Index *index, const struct job *job, const IndexEntry **out)
{
	const Topology *machine;
	const IndexEntry **candidate;
	Topology *topo;
	uint64_t form;
	char *path;
	int n;
	*out = NULL;
	TRY(NEW(ctx, path, FILE_PATH_ROOM));
	TRY(machine_of(ctx, opt, index, &machine));
	if (!machine)
		return OK;
	TRY(topo_of_index_job(ctx, index, machine, job->gpu, job->n, &topo));
	limit_steps(ctx, LIMIT_MATCH_STEPS);
	TRY(topo_invariant(ctx, topo, job->root, &form));
	TRY(index_candidates(ctx, index, job->coll, job->n, form, &candidate, &n));
	for (int i = 0; i < n && !*out; i++) {
		TRY(path_below(ctx, opt->file[0], candidate[i]->file, path));
		TRY(match_file(ctx, path, index, candidate[i], job, topo, out));
	}
	limit_steps(ctx, 0);
	return OK;
}

static Status
show_directory(Ctx *ctx, const char *format, const Options *opt, const ShowRequest *ask, Text *out)
{
	char path[FILE_PATH_ROOM];
	const Index *index;
	const IndexEntry *entry = NULL;
	struct job job;
	TRY(check_batch_directory(ctx, opt->file[0]));
	TRY(find_index(ctx, opt->file[0], opt->value[OPT_WITHOUT], path, &index));
	TRY(parse_job(ctx, index, opt, &job));
	TRY(find_entry(ctx, index, &job, &entry));
	if (!entry)
		TRY(find_isomorphic(ctx, opt, index, &job, &entry));
	if (!entry)
		return fail_absent(ctx, path, index, &job);
	TRY(order_entry(ctx, &job, entry, &entry));
	TRY(path_below(ctx, opt->file[0], entry->file, path));
	return show_file(ctx, format, path, index, entry, ask, out);
}

/* Options that choose a job of a directory are refused with a file. */
static Status
check_job_options(Ctx *ctx, const Options *opt)
{
	static const int job[] = { OPT_GPUS, OPT_COLLECTIVE, OPT_ROOT, OPT_WITHOUT, OPT_TOPOLOGY };
	for (size_t i = 0; i < sizeof job / sizeof *job; i++)
		if (opt->value[job[i]])
			return fail(ctx, USAGE,
			    "%s: a schedule: want -g, -c, -r, --without and --topology only with a directory, -g also "
			    "with a topology", opt->file[0]);
	return OK;
}

/* A schedule or a machine: a file, one that comes along, or that of a line. */
static Status
show_input(Ctx *ctx, const char *format, const Options *opt, const ShowRequest *ask, Text *out)
{
	const char *label;
	Text in = { 0 };
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK && (opt->value[OPT_SYNTHETIC] || is_machine(&in))) {
		status = show_machine(ctx, opt, format, label, &in, out);
	} else if (status == OK) {
		status = check_job_options(ctx, opt);
		if (status == OK)
			status = show_text(ctx, format, label, &in, NULL, NULL, ask, out);
	}
	text_free(&in);
	return status;
}

Status
verb_show(Ctx *ctx, const Options *opt)
{
	const char *format;
	ShowRequest ask;
	Text out = { 0 };
	if (opt->value[OPT_SVG] && opt->value[OPT_FORMAT] && strcmp(opt->value[OPT_FORMAT], "svg") != 0)
		return fail(ctx, USAGE, "--svg: want no --format with it");
	if (opt->value[OPT_SVG])
		format = "svg";
	else
		TRY(request_format(ctx, opt, SHOW, &format));
	TRY(show_parse(ctx, opt, format, &ask));
	if (opt->n_files != !opt->value[OPT_SYNTHETIC])
		return fail(ctx, USAGE, "%d files: want %s", opt->n_files, opt->value[OPT_SYNTHETIC]
		    ? "none with --synthetic" : "a schedule or a topology, or a directory of schedules");
	Status status = opt->n_files == 1 && file_is_directory(opt->file[0])
	    ? show_directory(ctx, format, opt, &ask, &out) : show_input(ctx, format, opt, &ask, &out);
	return output_text(ctx, opt, status, &out);
}
