/* blinkc hierarchy: the best hierarchies of rings for a job by their cost, each simulated, beside a flat ring and what
 * blinkc plans. */
#include "verb/hierarchy/hierarchies.h"
#include "base/file.h"
#include "compile.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/simulate/simulation.h"
#include "verb/verb.h"

#include <string.h>

#define DEFAULT_SIZE (INT64_C(128) << 20)

enum { DEFAULT_TOP = 5, TOP_MOST = 1000 };

struct hierarchy_request {
	const Options *opt;
	const Topology *machine;
	int *gpu, n;
	Ask ask;
};

static Status
request_message(Ctx *ctx, const char *text, int64_t *out)
{
	Sizes sizes;
	*out = DEFAULT_SIZE;
	if (!text)
		return OK;
	TRY(request_sizes(ctx, text, &sizes));
	if (sizes.n != 1 || sizes.m[0] > LIMIT_MESSAGE)
		return fail(ctx, USAGE, "--size: %.40s: want one size of at most 2^53 bytes", text);
	*out = sizes.m[0];
	return OK;
}

/* "alpha=4.8", of n bytes. */
static bool
parse_cost(const char *text, size_t n, HierarchyCost *cost)
{
	const char *value = memchr(text, '=', n);
	size_t name = value ? (size_t)(value - text) : n;
	const HierarchyParameter *row = hierarchy_parameters;
	int64_t number;
	while (row->name && (strlen(row->name) != name || memcmp(row->name, text, name) != 0))
		row++;
	if (!value || !row->name || !decimal_parse(value + 1, n - name - 1, row->unit, &number) || number < row->least
	    || number > row->most)
		return false;
	*hierarchy_parameter(cost, row) = number;
	return true;
}

static Status
request_cost(Ctx *ctx, const char *text, HierarchyCost *out)
{
	hierarchy_defaults(out);
	while (text && *text) {
		size_t n = strcspn(text, ",");
		if (!parse_cost(text, n, out))
			return fail(ctx, USAGE, "--cost: %.*s: want alpha or layer (us, up to 1000000), steps (1 to "
			    "16), server or network (up to 1000), as alpha=4.8", n < 40 ? (int)n : 40, text);
		text += n + (text[n] == ',');
	}
	return OK;
}

static Status
fit_cost(Ctx *ctx, const Options *opt, Hierarchies *h)
{
	const char *path = opt->value[OPT_MEASUREMENTS];
	Measurement *list;
	Text in = { 0 };
	int n;
	if (!path)
		return OK;
	TRY(file_read(ctx, path, &in));
	Status status = measurements_read(ctx, path, in.data ? in.data : "", in.size, &list, &n);
	text_free(&in);
	TRY(status);
	return hierarchy_fit(ctx, path, h->model.machine, list, n, &h->model.cost, &h->fit);
}

/* ---- simulation ---- */

/* Of a schedule as it is planned by `ask`; none, where it has none or is too large. */
static Status
simulate_ask(Ctx *ctx, const struct hierarchy_request *req, const Ask *ask, const Hierarchies *h, int64_t *time,
    int64_t *least)
{
	SimAsk sim = { .p = h->p, .m = h->model.m, .chunk = h->chunk };
	SimResult result;
	SimPlan *plan;
	Compiled made = { 0 };
	Status status = compile(ctx, req->machine, req->gpu, req->n, ask, &made);
	text_free(&made.json);
	if (status == OK)
		status = sim_prepare(ctx, made.sched, &plan);
	if (status == OK)
		status = h->chunk ? sim_run(ctx, plan, &sim, &result) : sim_run_best(ctx, plan, &sim, &result);
	if (status == OK && least)
		status = sim_least_time(ctx, plan, &sim, least);
	if (status == OK)
		*time = result.time;
	if (status == INFEASIBLE || status == LIMIT)
		status = ctx->error.status = OK;
	return status;
}

static Status
simulate_rows(Ctx *ctx, const struct hierarchy_request *req, Hierarchies *h)
{
	Ask ask = req->ask;
	if (!h->simulate)
		return OK;
	progress(ctx, "simulating the planner's trees");
	TRY(simulate_ask(ctx, req, &ask, h, &h->trees.simulated, &h->least));
	ask.algorithm = "ring";
	progress(ctx, "simulating a flat ring");
	TRY(simulate_ask(ctx, req, &ask, h, &h->ring.simulated, NULL));
	ask.algorithm = "hierarchical-ring";
	for (int i = 0; i < h->n_rows; i++) {
		ask.layers = h->row[i].layers;
		progress(ctx, "simulating %s", hierarchy_text(&ask.layers).text);
		TRY(simulate_ask(ctx, req, &ask, h, &h->row[i].simulated, NULL));
	}
	return OK;
}

/* ---- the search ---- */

static Status
search(Ctx *ctx, int top, Hierarchies *h)
{
	const HierarchyMachine *machine = h->model.machine;
	HierarchyTime *best;
	TRY(NEW(ctx, best, top));
	TRY(hierarchy_search(ctx, &h->model, top, h->exhaustive, best, &h->n_rows, &h->tried));
	TRY(NEW(ctx, h->row, h->n_rows));
	for (int i = 0; i < h->n_rows; i++)
		h->row[i] = (HierarchyRow){ best[i].layers, best[i].time, -1 };
	Hierarchy flat = { 1, { machine->n_ranks } };
	h->ring = (HierarchyRow){ flat, hierarchy_time(&h->model, &flat), -1 };
	h->trees = (HierarchyRow){ .cost = -1, .simulated = -1 };
	h->least = -1;
	return OK;
}

static Status
write_hierarchies(Ctx *ctx, const Options *opt, const Hierarchies *h, const char *format)
{
	Text out = { 0 };
	if (strcmp(format, "json") == 0)
		hierarchies_json(h, &out);
	else
		hierarchies_text(h, &out);
	return output_text(ctx, opt, OK, &out);
}

static Status
read_job(Ctx *ctx, const Options *opt, struct hierarchy_request *req)
{
	const char *label;
	Topology *machine;
	TRY(read_machine(ctx, opt, &label, &machine));
	req->machine = machine;
	return request_job(ctx, opt, label, machine, &req->gpu, &req->n);
}

static Status
find_hierarchies(Ctx *ctx, const struct hierarchy_request *req, int top, Hierarchies *h)
{
	HierarchyMachine *machine;
	Job job;
	h->machine = req->machine;
	TRY(NEW(ctx, machine, 1));
	TRY(job_induce(ctx, req->machine, req->gpu, req->n, &req->ask, &job));
	TRY(hierarchy_machine(ctx, job.topo, machine));
	h->model.machine = machine;
	TRY(fit_cost(ctx, req->opt, h));
	h->simulate = !req->opt->value[OPT_NO_SIMULATE] && req->n <= HIERARCHY_SIMULATED;
	TRY(search(ctx, top, h));
	return simulate_rows(ctx, req, h);
}

Status
verb_hierarchy(Ctx *ctx, const Options *opt)
{
	struct hierarchy_request req = { .opt = opt };
	Hierarchies h = { .exhaustive = opt->value[OPT_EXHAUSTIVE] };
	const char *format;
	Parameters given;
	int top = DEFAULT_TOP;
	TRY(request_format(ctx, opt, HIERARCHY, &format));
	TRY(request_count(ctx, "top", opt->value[OPT_TOP], TOP_MOST, &top));
	TRY(request_message(ctx, opt->value[OPT_SIZE], &h.model.m));
	TRY(request_cost(ctx, opt->value[OPT_COST], &h.model.cost));
	TRY(simulation_chunk(ctx, opt->value[OPT_CHUNK], &h.chunk));
	TRY(request_executor(ctx, opt->value[OPT_EXECUTOR], &h.executor));
	TRY(request_parameters(ctx, opt->value[OPT_PARAMETERS], &given));
	TRY(request_parse(ctx, opt, ALLREDUCE, &req.ask));
	ctx->step = progress_step;
	TRY(read_job(ctx, opt, &req));
	sim_parameters_for(h.executor, &req.machine->parameters, &given, &h.p);
	TRY(find_hierarchies(ctx, &req, top, &h));
	return write_hierarchies(ctx, opt, &h, format);
}
