#include "base/file.h"
#include "schedule/schedule.h"
#include "verb/idle.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "dgx1v allreduce", where the collective is an option. */
static const char *
collective_among(const Options *opt)
{
	Collective coll;
	for (int i = 0; i < opt->n_files; i++)
		if (collective_parse_spelled(opt->file[i], &coll) && access(opt->file[i], F_OK) != 0)
			return opt->file[i];
	return NULL;
}

Status
input_topology(Ctx *ctx, const Options *opt, const char **label, Text *out)
{
	bool synthetic = opt->value[OPT_SYNTHETIC];
	if (opt->n_files == 0 && !synthetic)
		return fail(ctx, USAGE,
		    "no topology file: want one, or a name that blinkc list has; see blinkc --help");
	const char *coll = opt->n_files == 2 ? collective_among(opt) : NULL;
	if (coll)
		return fail(ctx, USAGE, "%s: a collective: want -c %s", coll, coll);
	if (opt->n_files != !synthetic)
		return fail(ctx, USAGE, "%d topology files: want %s; see blinkc --help", opt->n_files,
		    synthetic ? "none with --synthetic" : "one");
	*label = "--synthetic";
	if (!synthetic)
		TRY(topology_file(ctx, opt->value[OPT_VERBOSE], opt->file[0], label));
	return synthetic ? synthetic_write(ctx, opt->value[OPT_SYNTHETIC], out) : file_read(ctx, *label, out);
}

void
print_notes(const Options *opt, const Topology *topo)
{
	if (opt->value[OPT_QUIET] || topo->n_notes == 0)
		return;
	progress_hide();
	for (int i = 0; i < topo->n_notes; i++) {
		fputs("assumed     ", stderr);
		print_name(stderr, topo->note[i]);
		fputc('\n', stderr);
	}
}

Routes
choose_routes(const Ctx *ctx, const Options *opt, const Topology *machine, const Ask *ask)
{
	PairGain gain;
	Routes routes = routes_default(ctx, machine, ask, &gain);
	/* A summary for programs is a line of its own. */
	const char *summary = opt->value[OPT_SUMMARY];
	if (!gain.taken || opt->value[OPT_QUIET] || (summary && strcmp(summary, "json") == 0))
		return routes;
	NamesText links = link_classes_text(gain.links);
	progress_hide();
	fprintf(stderr, "routes      pair: an allreduce over all GPUs has %.6g GB/s, over %s alone at most %.6g; "
	    "--routes any goes back\n", frac_double(gain.pairs) / 1e9, links.text, frac_double(gain.fastest) / 1e9);
	return routes;
}

/* Variables of hwloc could put another machine in the place of this one, or print to stderr. */
static Status
clear_environment(Ctx *ctx)
{
	for (char **entry = environ; *entry;) {
		char name[64];
		size_t n = strcspn(*entry, "=");
		bool hwloc = strncmp(*entry, "HWLOC_", 6) == 0 && n < sizeof name;
		snprintf(name, sizeof name, "%.*s", hwloc ? (int)n : 0, *entry);
		if (hwloc && unsetenv(name) != 0)
			return fail(ctx, IO, "%s: cannot be taken out of the environment: %s", name, strerror(errno));
		entry = hwloc ? environ : entry + 1;
	}
	return setenv("HWLOC_HIDE_ERRORS", "2", 1) == 0 ? OK : fail_memory(ctx);
}

Status
read_live(Ctx *ctx, bool measure, Text *out)
{
	TRY(clear_environment(ctx));
	return live_write(ctx, measure, out);
}

/* --from is of the servers' files where the topology itself is made of the command line: by blinkc topology. */
Status
read_topology(Ctx *ctx, const Options *opt, const char *label, const Text *in, Topology **out)
{
	TopologyHints hints = { .dirs = topology_dirs(), .gpu_model = opt->value[OPT_GPU_MODEL],
		.cpu = opt->value[OPT_CPU],
		.from_files = opt->value[OPT_SERVERS] || (opt->n_files > 1 && !opt->value[OPT_TOPOLOGY]) };
	const char *cpu_ranks = opt->value[OPT_CPU_RANKS];
	hints.cpu_ranks = cpu_ranks != NULL;
	TRY(request_from(ctx, opt, &hints.from));
	TRY(request_count(ctx, "cpu-ranks", cpu_ranks && *cpu_ranks ? cpu_ranks : NULL, LIMIT_RANKS,
	    &hints.n_cpu_ranks));
	TRY(request_gb(ctx, "cpu-link", opt->value[OPT_CPU_LINK], " (GB/s)", LIMIT_CAPACITY_MIN, LIMIT_CAPACITY_MAX,
	    &hints.cpu_link));
	TRY(topo_read_as(ctx, label, &hints, in->data ? in->data : "", in->size, out));
	print_notes(opt, *out);
	return OK;
}

Status
read_machine(Ctx *ctx, const Options *opt, const char **label, Topology **out)
{
	Text in = { 0 };
	Status status = input_topology(ctx, opt, label, &in);
	if (status == OK)
		status = read_topology(ctx, opt, *label, &in, out);
	text_free(&in);
	return status;
}

Status
read_machine_of(Ctx *ctx, const Options *opt, const char **label, Topology **out)
{
	Text in = { 0 };
	TRY(topology_file(ctx, opt->value[OPT_VERBOSE], opt->value[OPT_TOPOLOGY], label));
	TRY(file_read(ctx, *label, &in));
	Status status = read_topology(ctx, opt, *label, &in, out);
	text_free(&in);
	return status;
}

Status
check_batch_directory(Ctx *ctx, const char *path)
{
	char index[FILE_PATH_ROOM];
	if (access(path, F_OK) != 0)
		return fail(ctx, IO, "%s: %s", path, strerror(errno));
	if (!file_is_directory(path))
		return fail(ctx, IO, "%s: not a directory: want one that blinkc batch wrote", path);
	if (snprintf(index, sizeof index, "%s/index.json", path) < (int)sizeof index && access(index, F_OK) != 0)
		return fail(ctx, IO, "%s: a directory without index.json: want one that blinkc batch wrote", path);
	return OK;
}

const char *
output_path(const Options *opt)
{
	return opt->value[OPT_OUTPUT] ? opt->value[OPT_OUTPUT] : "-";
}

Status
output_text(Ctx *ctx, const Options *opt, Status status, Text *out)
{
	progress_hide();
	if (status == OK)
		status = out->failed ? fail_memory(ctx) : file_write(ctx, output_path(opt), out);
	text_free(out);
	return status;
}

/* A file PREFIX.RANK.SUFFIX for each rank. */
static Status
output_ranks(Ctx *ctx, const ScheduleFormat *row, const char *prefix, const Schedule *sched, FormatInput *in)
{
	char path[FILE_PATH_ROOM];
	for (in->rank = 0; in->rank < sched->topo->n_ranks; in->rank++) {
		Text out = { 0 };
		int n = snprintf(path, sizeof path, "%s.%d.%s", prefix, in->rank, row->of_ranks);
		Status status = n < (int)sizeof path ? row->write(ctx, sched, in, &out)
		    : fail(ctx, USAGE, "-o: %.80s...: a path of more than %d bytes", prefix, FILE_PATH_ROOM - 1);
		if (status == OK)
			status = file_write(ctx, path, &out);
		text_free(&out);
		TRY(status);
	}
	return OK;
}

Status
output_schedule(Ctx *ctx, const Options *opt, const char *format, const Schedule *sched, const Text *json)
{
	const ScheduleFormat *row = schedule_format(format);
	FormatInput in = { .json = json, .server = opt->value[OPT_SERVER],
		.in_place = opt->value[OPT_IN_PLACE] };
	const char *path = output_path(opt);
	Text out = { 0 };
	TRY(request_chunks(ctx, opt, format, &in));
	if (row->write && !sched_is_list(sched)) {
		Schedule *all;
		TRY(sched_expand(ctx, sched->topo->name, sched, &all));
		sched = all;
	}
	if (row->of_ranks)
		return output_ranks(ctx, row, path, sched, &in);
	if (!row->write)
		return file_write(ctx, path, json);
	return output_text(ctx, opt, row->write(ctx, sched, &in, &out), &out);
}

Status
format_note(Ctx *ctx, const Options *opt, const char *format, const Schedule *sched, Text *out)
{
	const ScheduleFormat *row = schedule_format(format);
	const FormatInput in = { .server = opt->value[OPT_SERVER],
		.in_place = opt->value[OPT_IN_PLACE] };
	return row && row->note ? row->note(ctx, sched, &in, out) : OK;
}

Status
output_findings(Ctx *ctx, const Options *opt, const char *title, const Finding *finding, int n, const char *summary)
{
	Text github = { 0 }, junit = { 0 };
	Status status = OK;
	if (opt->value[OPT_GITHUB])
		findings_write_github(title, finding, n, summary, &github);
	if (opt->value[OPT_JUNIT])
		findings_write_junit(title, finding, n, &junit);
	if (github.failed || junit.failed)
		status = fail_memory(ctx);
	else if (github.data)
		fputs(github.data, stdout);
	if (status == OK && opt->value[OPT_JUNIT]) {
		fflush(stdout);
		status = file_write(ctx, opt->value[OPT_JUNIT], &junit);
	}
	text_free(&github);
	text_free(&junit);
	return status;
}

Status
output_topology(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in, const char *path)
{
	const TopologyFormat *row = topology_format(format);
	Text out = { 0 };
	Topology *topo;
	TRY(read_topology(ctx, opt, label, in, &topo));
	if (!row)
		return file_write(ctx, path, in);
	row->write(topo, &out);
	Status status = file_write(ctx, path, &out);
	text_free(&out);
	return status;
}
