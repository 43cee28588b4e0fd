/* blinkc simulate: how long messages of several sizes take. */
#include "base/file.h"
#include "format/file_kind.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "verb/check/fits_machine.h"
#include "verb/progress.h"
#include "verb/simulate/phases.h"
#include "verb/simulate/simulation.h"
#include "verb/verb.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_SIZES "1K,4K,16K,64K,256K,1M,4M,16M,64M,256M,1G"

/* A message from which the size of a chunk is chosen has a whole number of bytes, as 64K. */
Status
simulation_chunk(Ctx *ctx, const char *text, int64_t *out)
{
	Sizes sizes;
	*out = 0;
	if (!text || strcmp(text, "auto") == 0)
		return OK;
	if (strpbrk(text, ",-") || request_sizes(ctx, text, &sizes) != OK) {
		ctx->error.status = OK;
		return fail(ctx, USAGE, "--chunk: %.40s: want auto, or bytes as 65536, 64K or 4M", text);
	}
	*out = sizes.m[0];
	return OK;
}

/* Is the schedule for the machine of --topology? */
static Status
check_machine(Ctx *ctx, const Options *opt, const char *label, const Schedule *sched, Simulation *s)
{
	const char *path;
	Topology *machine;
	Match match;
	if (!opt->value[OPT_TOPOLOGY])
		return OK;
	TRY(read_machine_of(ctx, opt, &path, &machine));
	sim_parameters_for(s->executor, &machine->parameters, &s->given, &s->p);
	return match_schedule(ctx, label, machine, sched, &match);
}

/* Blocks of --matrix are one message. */
static Status
prepare_matrix(Ctx *ctx, const Options *opt, const char *label, const Schedule *sched, Sizes *sizes, SimPlan **out)
{
	const int64_t *bytes;
	if (sched->coll != ALLTOALL)
		return fail(ctx, USAGE, "--matrix: %s is a schedule of %s: want one of alltoall", label,
		    collective_name(sched->coll));
	if (opt->value[OPT_SIZE])
		return fail(ctx, USAGE, "--matrix: want no --size with it: the matrix has the bytes");
	TRY(request_bytes(ctx, opt->value[OPT_MATRIX], sched->topo->n_ranks, &bytes));
	sizes->n = 1;
	return sim_prepare_matrix(ctx, sched, bytes, out, &sizes->m[0]);
}

static Status
read_schedule(Ctx *ctx, const Options *opt, const char *label, const Text *in, Sizes *sizes, Simulation *s)
{
	Schedule *sched;
	SimPlan *plan;
	if (opt->value[OPT_GPUS])
		return fail(ctx, USAGE, "--gpus: %s is a schedule, which names its GPUs", label);
	TRY(sched_read_verified(ctx, label, in->data ? in->data : "", in->size, &sched));
	TRY(check_machine(ctx, opt, label, sched, s));
	if (opt->value[OPT_MATRIX])
		TRY(prepare_matrix(ctx, opt, label, sched, sizes, &plan));
	else
		TRY(sim_prepare_any(ctx, sched, &plan));
	s->plan = plan;
	return OK;
}

/* Messages of an algorithm of MSCCL are as long as its protocol has them, unless another length is asked for; those of
 * a plan of MSCCL++ as the plan has them. */
static Status
read_program(Ctx *ctx, const Options *opt, const char *label, const Text *in, Simulation *s)
{
	SimProgram *program;
	const Topology *machine;
	TRY(NEW(ctx, program, 1));
	TRY(program_read(ctx, opt, label, in, &machine, program));
	sim_parameters_for(s->executor, &machine->parameters, &s->given, &s->p);
	s->program = program;
	s->plan = program_plan(program);
	if (program->mscclpp) {
		s->p = sim_mscclpp_parameters(program->mscclpp->of, &s->p);
		return opt->value[OPT_CHUNK] ? fail(ctx, USAGE, "--chunk: %s is a plan of MSCCL++, which has its units",
		    label) : OK;
	}
	s->p = sim_msccl_parameters(program->msccl->algo, &s->p);
	if (!opt->value[OPT_CHUNK])
		s->chunk = sim_msccl_slice(program->msccl->algo);
	return OK;
}

static Status
read_one(Ctx *ctx, const Options *opt, const char *label, const Text *in, Sizes *sizes, Simulation *s)
{
	if (opt->value[OPT_PHASE] || opt->value[OPT_OFFSET])
		return fail(ctx, USAGE, "%s: %s has no phases: want what blinkc job -o writes",
		    opt->value[OPT_PHASE] ? "--phase" : "--offset", label);
	FileKind kind = file_kind(in->data, in->size);
	if (kind != FILE_MSCCL && kind != FILE_MSCCLPP)
		return read_schedule(ctx, opt, label, in, sizes, s);
	return opt->value[OPT_MATRIX] ? fail(ctx, USAGE, "--matrix: %s is no schedule: want one of alltoall", label)
	    : read_program(ctx, opt, label, in, s);
}

/* Of a directory of a job its phases. */
static Status
find_phases(Ctx *ctx, const char **label)
{
	char path[FILE_PATH_ROOM];
	if (!file_is_directory(*label) || snprintf(path, sizeof path, "%s/phases.json", *label) >= (int)sizeof path
	    || !file_is_there(path))
		return OK;
	*label = arena_text(&ctx->run, path, strlen(path));
	return *label ? OK : fail_memory(ctx);
}

static Status
run_size(Ctx *ctx, const Simulation *s, const SimAsk *ask, SimResult *out)
{
	if (s->program && s->program->mscclpp)
		return sim_mscclpp_run(ctx, s->program->mscclpp, ask, out);
	if (s->program)
		return s->chunk ? sim_msccl_run(ctx, s->program->msccl, ask, out)
		    : sim_msccl_run_best(ctx, s->program->msccl, ask, out);
	return s->chunk ? sim_run(ctx, s->plan, ask, out) : sim_run_best(ctx, s->plan, ask, out);
}

/* Steps are kept in a second run, of all hops and with that size of chunks. */
static Status
keep_steps(Ctx *ctx, const Simulation *s, const SimAsk *of, SimResult *result)
{
	SimAsk ask = *of;
	bool limited = result->limited;
	ask.steps = true;
	if (s->program)
		return run_size(ctx, s, &ask, result);
	ask.chunk = result->chunk > 0 ? result->chunk : 1;
	TRY(sim_run(ctx, s->plan, &ask, result));
	result->limited = limited;
	return OK;
}

static Status
simulate_size(Ctx *ctx, const Simulation *s, int64_t m, int64_t most_kept, SimRow *row)
{
	SimAsk ask = { .p = s->p, .m = m, .chunk = s->chunk, .steps = most_kept == INT64_MAX, .timed = true };
	const Topology *topo = s->plan->sched->topo;
	*row = (SimRow){ .m = m, .bottleneck = -1 };
	progress(ctx, "message of %lld bytes", (long long)m);
	TRY(run_size(ctx, s, &ask, &row->result));
	if (!ask.steps && row->result.n_steps <= most_kept)
		TRY(keep_steps(ctx, s, &ask, &row->result));
	TRY(sim_least_time(ctx, s->plan, &ask, &row->least));
	row->algorithm = sim_algorithm_rate(m, row->result.time);
	row->bus = sim_bus_rate(s->plan->sched, row->algorithm);
	for (int l = 0; l < topo->n_links; l++)
		if (row->result.moved[l] && link_use(s, row, l) > row->use) {
			row->use = link_use(s, row, l);
			row->bottleneck = l;
		}
	return OK;
}

/* Is the critical path of one size printed? */
static bool
has_path(const Simulation *s, const char *format)
{
	return !s->p.by_memory && !s->plan->too_large && strcmp(format, "text") == 0;
}

/* What is printed. */
static Status
rows_text(Ctx *ctx, const Simulation *s, const char *format, Text *out)
{
	if (strcmp(format, "json") == 0)
		simulation_json(s, out);
	else if (strcmp(format, "csv") == 0)
		simulation_csv(s, out);
	else
		simulation_text(s, out);
	if (s->n_rows == 1 && has_path(s, format))
		TRY(critical_path_text(ctx, s, &s->row[0], out));
	return out->failed ? fail_memory(ctx) : OK;
}

/* Nothing is written before all is known. */
static Status
write_all(Ctx *ctx, const Options *opt, Status status, Text *rows, Text *trace)
{
	const char *path = opt->value[OPT_TRACE];
	progress_hide();
	if (status == OK && path)
		status = file_write(ctx, path, trace);
	if (status == OK)
		status = file_write(ctx, output_path(opt), rows);
	text_free(rows);
	text_free(trace);
	return status;
}

/* Steps are kept for one size: where a trace is written, which fails if there are too many, or its path is printed. */
static Status
simulate_all(Ctx *ctx, const Options *opt, const Sizes *sizes, const char *format, Simulation *s)
{
	int64_t most_kept = -1;
	if (s->p.by_memory && opt->value[OPT_TRACE])
		return fail(ctx, USAGE, "--trace: ranks share memory, by their parameters: want ranks that have links");
	if (sizes->n == 1 && has_path(s, format))
		most_kept = LIMIT_SIM_KEPT;
	if (sizes->n == 1 && opt->value[OPT_TRACE])
		most_kept = INT64_MAX;
	TRY(NEW(ctx, s->row, sizes->n));
	for (s->n_rows = 0; s->n_rows < sizes->n; s->n_rows++)
		TRY(simulate_size(ctx, s, sizes->m[s->n_rows], most_kept, &s->row[s->n_rows]));
	return OK;
}

static Status
simulate_one(Ctx *ctx, const Options *opt, const char *label, const Text *in, Sizes *sizes, const char *format,
    Simulation *s, Text *rows, Text *trace)
{
	TRY(read_one(ctx, opt, label, in, sizes, s));
	if (opt->value[OPT_TRACE] && sizes->n != 1)
		return fail(ctx, USAGE, "--trace: %d sizes: want one, by --size", sizes->n);
	TRY(simulate_all(ctx, opt, sizes, format, s));
	TRY(rows_text(ctx, s, format, rows));
	return opt->value[OPT_TRACE] ? trace_write(ctx, s, &s->row[0], trace) : OK;
}

Status
verb_simulate(Ctx *ctx, const Options *opt)
{
	Simulation s = { .n_rows = 0 };
	Sizes sizes;
	Text in = { 0 }, rows = { 0 }, trace = { 0 };
	const char *label, *format, *text = opt->value[OPT_SIZE] ? opt->value[OPT_SIZE] : DEFAULT_SIZES;
	TRY(request_format(ctx, opt, SIMULATE, &format));
	TRY(request_sizes(ctx, text, &sizes));
	TRY(simulation_chunk(ctx, opt->value[OPT_CHUNK], &s.chunk));
	TRY(request_executor(ctx, opt->value[OPT_EXECUTOR], &s.executor));
	TRY(request_from(ctx, opt, &(const char *){ NULL }));
	if (opt->n_files != 1)
		return fail(ctx, USAGE, "%d files: want one", opt->n_files);
	label = opt->file[0];
	TRY(request_time(ctx, opt->value[OPT_BUDGET]));
	TRY(request_parameters(ctx, opt->value[OPT_PARAMETERS], &s.given));
	sim_parameters_for(s.executor, NULL, &s.given, &s.p);
	TRY(find_phases(ctx, &label));
	TRY(schedule_file(ctx, label, &in));
	Status status = file_kind(in.data, in.size) == FILE_PHASES
	    ? simulate_phases(ctx, opt, label, &in, format, &s, &rows, &trace)
	    : simulate_one(ctx, opt, label, &in, &sizes, format, &s, &rows, &trace);
	text_free(&in);
	return write_all(ctx, opt, request_in_time(ctx, opt, status), &rows, &trace);
}
