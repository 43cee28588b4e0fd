#include "base/file.h"
#include "format/format.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const *
topology_dirs(void)
{
	static char installed[4200], built[4200], checked[4200];
	static const char *const dirs[] = { installed, built, checked, NULL };
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	program[n > 0 ? n : 0] = 0;
	char *slash = strrchr(program, '/');
	*(slash ? slash : program) = 0;
	snprintf(installed, sizeof installed, "%s/../share/blinkc/topologies", program);
	snprintf(built, sizeof built, "%s/../topologies", program);
	/* A build with sanitizers lies in build/asan. */
	snprintf(checked, sizeof checked, "%s/../../topologies", program);
	return dirs;
}

Status
input_topology(Ctx *ctx, const Options *opt, const char **label, Text *out)
{
	bool synthetic = opt->value[OPT_SYNTHETIC];
	if (opt->n_files != !synthetic)
		return fail(ctx, USAGE, "%d topology files: want %s; see blinkc --help", opt->n_files,
		    synthetic ? "none with --synthetic" : "one");
	*label = synthetic ? "--synthetic" : opt->file[0];
	return synthetic ? synthetic_write(ctx, opt->value[OPT_SYNTHETIC], out) : file_read(ctx, *label, out);
}

/* --from is of the servers' files where the topology itself is made of the command line: by blinkc topology. */
Status
read_topology(Ctx *ctx, const Options *opt, const char *label, const Text *in, Topology **out)
{
	TopologyHints hints = { .dirs = topology_dirs(), .gpu_model = opt->value[OPT_GPU_MODEL],
		.from_files = opt->value[OPT_SERVERS] || (opt->n_files > 1 && !opt->value[OPT_TOPOLOGY]) };
	TRY(request_from(ctx, opt, &hints.from));
	TRY(topo_read_as(ctx, label, &hints, in->data ? in->data : "", in->size, out));
	if (opt->value[OPT_QUIET] || (*out)->n_notes == 0)
		return OK;
	progress_hide();
	for (int i = 0; i < (*out)->n_notes; i++) {
		fputs("assumed     ", stderr);
		print_name(stderr, (*out)->note[i]);
		fputc('\n', stderr);
	}
	return OK;
}

const char *
output_path(const Options *opt)
{
	return opt->value[OPT_OUTPUT] ? opt->value[OPT_OUTPUT] : "-";
}

Status
output_schedule(Ctx *ctx, const char *format, const Schedule *sched, const Text *json, const char *path)
{
	const ScheduleFormat *row = schedule_format(format);
	Text out = { 0 };
	if (!row->write)
		return file_write(ctx, path, json);
	Status status = row->write(ctx, sched, json, &out);
	if (status == OK)
		status = file_write(ctx, path, &out);
	text_free(&out);
	return status;
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
