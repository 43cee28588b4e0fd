#include "topology/topology.h"
#include "verb/chosen.h"
#include "verb/idle.h"
#include "verb/relays.h"
#include "verb/progress.h"
#include "verb/verb.h"

#include <string.h>
#include <unistd.h>

static Status
print_pareto(Ctx *ctx, const Topology *machine, const int *gpu, int n_gpus, const Ask *ask)
{
	Job job;
	Bound bound;
	ParetoPoint *point;
	int n;
	TRY(job_induce(ctx, machine, gpu, n_gpus, ask, &job));
	TRY(job_pareto(ctx, &job, &bound, &point, &n));
	progress_hide();
	printf("trees  depth    rate GB/s  ratio to the bound of %.6g GB/s\n", frac_double(bound.rate) / 1e9);
	for (int i = 0; i < n; i++)
		printf("%5d  %5d  %11.6g  %.3f\n", point[i].trees, point[i].depth, frac_double(point[i].rate) / 1e9,
		    frac_double(point[i].rate) / frac_double(bound.rate));
	if (ctx->cut_short)
		fprintf(stderr, "budget      %g s, which first cut short \"%s\": there may be better plans\n",
		    (double)progress_budget() / 1000, ctx->at);
	return OK;
}

/* What the budget cost. */
static void
put_budget(Text *out, const Ctx *ctx, const Schedule *sched)
{
	double most = frac_double(sched->bound.rate) / frac_double(sched->achieved);
	text_printf(out, "budget      %g s, which first cut short \"%s\": ", (double)progress_budget() / 1000, ctx->at);
	if (frac_cmp(sched->achieved, sched->bound.rate) >= 0)
		text_put(out, "the rate is at the bound, but trees may be more or deeper\n");
	else
		text_printf(out, "more time may find up to %.4g times the rate, or a lower bound\n", most);
}

/* What the trees of one algorithm, or those by the route of each pair, can do; those of the schedule may be fewer, and
 * do a little less. */
static Status
put_best(Ctx *ctx, Text *out, const Ask *ask, const Compiled *made)
{
	const Algorithm *algorithm;
	Frac best = made->best;
	bool pairs = made->routes == ROUTES_PAIR,
	    reached = frac_cmp(made->sched->achieved, made->sched->bound.rate) >= 0;
	if (ask->hybrid || ask->matrix || (!ask->algorithm && (!pairs || reached)))
		return OK;
	TRY(algorithm_find(ctx, ask->algorithm, ask->coll, &algorithm));
	if (best.num > 0)
		text_printf(out, "best        %.6g GB/s of %s%s, %s\n", frac_double(best) / 1e9, algorithm->trees,
		    pairs ? " by the route of each pair" : "", algorithm->proof);
	else
		text_printf(out, "best        of %s%s: not proven\n", algorithm->trees,
		    pairs ? " by the route of each pair" : "");
	return OK;
}

/* What limits cost. */
static void
put_limits(Text *out, const Unlimited *other)
{
	if (other->rate.num > 0)
		text_printf(out, "limits      without them %.6g GB/s by %d trees, depth %d\n",
		    frac_double(other->rate) / 1e9, other->trees, other->depth);
	else if (other->too_large)
		text_printf(out, "limits      trees at the bound would have more than %d edges\n", LIMIT_TREE_EDGES);
}

/* What is compiled: GPUs of a machine, and what is asked of them. */
struct compile_request {
	const Topology *machine;
	int *gpu, n;
	Ask ask;
	Sizes sizes;
	ChoiceRequest choice;
	Chosen chosen;		/* if it is wanted */
	const Options *opt;
	const char *format;	/* of the output */
};

/* What planning has left open, should the rate be below the bound. */
static const char *
unproven(const Ask *ask, const Compiled *made)
{
	if (!made->reached)
		return made->best.num > 0 ? "that the bound can be reached" : UNPROVEN_BOTH;
	if (made->best.num > 0)
		return NULL;
	return ask->max_depth || ask->max_trees ? "that no schedule within these limits is faster"
	    : "that no schedule of this kind is faster";
}

/* What blinkc lint finds implausible in the links of the schedule, for the model of the GPUs: the first of it. */
static Status
find_doubt(Ctx *ctx, const struct compile_request *req, const Schedule *sched, const char **out)
{
	LintFinding *found;
	Text text = { 0 };
	int n;
	*out = NULL;
	TRY(topo_lint_model(ctx, req->machine, topo_classes(sched->topo), &found, &n));
	if (n == 0)
		return OK;
	text_printf(&text, "%s%s%s", found[0].at, *found[0].at ? ": " : "", found[0].text);
	if (n > 1)
		text_printf(&text, "; and %d more: blinkc lint", n - 1);
	*out = text_keep(&ctx->run, &text);
	return *out ? OK : fail_memory(ctx);
}

static Status
put_summary(Ctx *ctx, Text *out, const struct compile_request *req, const Compiled *made, const Summary *summary)
{
	TRY(summary_text(ctx, summary, out));
	if (!sched_is_list(made->sched) && !req->ask.compact)
		text_printf(out, "compact     a list of all trees would be too long: version %d of the format\n",
		    made->sched->n_in_trees ? 3 : 2);
	if (made->cut_short)
		put_budget(out, ctx, made->sched);
	if (!summary->chosen || summary->rates) {
		if (made->other_trees > 0)
			text_printf(out, "also        %d trees, depth %d at the same rate, by --max-depth %d\n",
			    made->other_trees, made->other_depth, made->other_depth);
		put_limits(out, &made->unlimited);
		TRY(put_best(ctx, out, &req->ask, made));
		summary_text_idle(summary->idle, out);
	}
	TRY(format_note(ctx, req->opt, req->format, made->sched, out));
	if (req->ask.relays)
		summary_text_relays(made->sched, summary->relays, out);
	return OK;
}

/* What is printed once the file is there. All that may fail comes before. */
static Status
summarise(Ctx *ctx, const Options *opt, const struct compile_request *req, const Compiled *made,
    const RelayGain *relays, Text *out)
{
	const Ask *ask = &req->ask;
	const Algorithm *algorithm = NULL;
	const char *doubt;
	Idle idle;
	bool json;
	TRY(request_summary(ctx, opt, &json));
	if (ask->algorithm && !ask->hybrid)
		TRY(algorithm_find(ctx, ask->algorithm, ask->coll, &algorithm));
	idle_find(ctx, req->machine, req->gpu, req->n, ask, made, &idle);
	TRY(find_doubt(ctx, req, made->sched, &doubt));
	const Summary summary = { .sched = made->sched, .unproven = unproven(ask, made), .doubt = doubt,
		.best = made->best, .size = req->sizes.m, .n_sizes = req->sizes.n,
		.best_of = algorithm ? algorithm->trees : NULL, .other_trees = made->other_trees,
		.other_depth = made->other_depth, .cut_at = made->cut_short ? ctx->at : NULL,
		.budget = (double)progress_budget() / 1000, .idle = &idle, .relays = ask->relays ? relays : NULL,
		.chosen = req->choice.wanted ? &req->chosen : NULL, .rates = opt->value[OPT_VERBOSE] };
	TRY(json ? summary_json(ctx, &summary, out) : put_summary(ctx, out, req, made, &summary));
	return out->failed ? fail_memory(ctx) : OK;
}

/* The machine without what --without names, and the GPUs in its numbers. *gpu: all that are left, unless --gpus lists
 * some. */
static Status
take_losses(Ctx *ctx, const Options *opt, Topology **machine, struct compile_request *req)
{
	const Topology *whole = *machine;
	Loss *loss;
	int n_losses, n_left = 0;
	const int *now;
	TRY(topo_losses(ctx, whole, opt->value[OPT_WITHOUT], &loss, &n_losses));
	TRY(topo_losses_name(ctx, whole, loss, n_losses, &req->ask.without));
	TRY(topo_without(ctx, whole, loss, n_losses, machine, &now));
	for (int i = 0; i < req->n; i++) {
		if (now[req->gpu[i]] >= 0)
			req->gpu[n_left++] = now[req->gpu[i]];
		else if (opt->value[OPT_GPUS])
			return fail(ctx, BAD_INPUT, "--gpus: %s: --without takes it out: want GPUs that are left",
			    whole->vertex[req->gpu[i]].id);
	}
	req->n = n_left;
	return n_left >= 2 ? OK : fail(ctx, BAD_INPUT,
	    "--without: %.200s has %d GPUs: want at least 2 for a collective", (*machine)->name, n_left);
}

/* What does not depend on the machine. */
static Status
parse_options(Ctx *ctx, const Options *opt, const char *format, Ask *ask, Sizes *sizes, ChoiceRequest *choice)
{
	Collective coll;
	bool json;
	TRY(request_summary(ctx, opt, &json));
	TRY(request_collective(ctx, opt, &coll));
	TRY(request_parse(ctx, opt, coll, ask));
	ask->compact = strcmp(format, SCHEDULE_COMPACT) == 0;
	TRY(request_sizes(ctx, opt->value[OPT_SIZE], sizes));
	TRY(request_choice(ctx, opt, ask, format, sizes, choice));
	return request_time(ctx, opt->value[OPT_BUDGET]);
}

/* On a terminal the schedule, hundreds of lines, would push the summary out of sight: it is printed there only where an
 * option says what is to be printed. */
static bool
wants_summary_alone(const Options *opt)
{
	return !opt->value[OPT_OUTPUT] && !opt->value[OPT_FORMAT] && !opt->value[OPT_QUIET] && !opt->value[OPT_SUMMARY]
	    && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
}

static Status
plan_request(Ctx *ctx, struct compile_request *req, Compiled *out)
{
	if (!req->choice.wanted)
		return compile(ctx, req->machine, req->gpu, req->n, &req->ask, out);
	return compile_chosen(ctx, req->machine, req->gpu, req->n, &req->choice, req->sizes.m[0],
	    !req->opt->value[OPT_QUIET], &req->ask, out, &req->chosen);
}

static Status
compile_text(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in, Text *summary,
    Compiled *out)
{
	struct compile_request req;
	Topology *machine;
	TRY(parse_options(ctx, opt, format, &req.ask, &req.sizes, &req.choice));
	TRY(read_topology(ctx, opt, label, in, &machine));
	TRY(request_job(ctx, opt, label, machine, &req.gpu, &req.n));
	if (opt->value[OPT_WITHOUT])
		TRY(take_losses(ctx, opt, &machine, &req));
	/* Shares of trees by the routes of pairs are seldom multiples of what offsets of 16 bits can say. */
	if (!req.choice.wanted && !opt->value[OPT_RELAY] && strcmp(format, SCHEDULE_MSCCL) != 0
	    && strncmp(format, SCHEDULE_MSCCLPP, strlen(SCHEDULE_MSCCLPP)) != 0)
		req.ask.routes = choose_routes(ctx, opt, machine, &req.ask);
	if (opt->value[OPT_RELAY])
		TRY(request_relays(ctx, machine, opt->value[OPT_RELAY], req.gpu, req.n, &req.ask.relays));
	TRY(request_root(ctx, machine, req.gpu, req.n, req.ask.coll, opt->value[OPT_ROOT], &req.ask.root));
	TRY(request_matrix(ctx, opt, req.n, &req.ask));
	req.machine = machine;
	req.opt = opt;
	req.format = format;
	if (opt->value[OPT_PARETO] && req.choice.wanted)
		return print_candidates(ctx, machine, req.gpu, req.n, &req.choice, &req.sizes, &req.ask);
	if (opt->value[OPT_PARETO])
		return print_pareto(ctx, machine, req.gpu, req.n, &req.ask);
	TRY(plan_request(ctx, &req, out));
	RelayGain relays = { 0 };
	if (req.ask.relays && !opt->value[OPT_QUIET])
		TRY(relays_find(ctx, machine, req.gpu, req.n, &req.ask, out->sched, &relays));
	Status status = opt->value[OPT_QUIET] ? OK : summarise(ctx, opt, &req, out, &relays, summary);
	bool alone = wants_summary_alone(opt);
	if (status == OK && !alone)
		status = output_schedule(ctx, opt, format, out->sched, &out->json);
	progress_hide();
	if (status == OK && summary->data)
		fputs(summary->data, stderr);
	if (status == OK && alone)
		fputs("file        none: -o FILE writes the schedule, -o - prints it here\n", stderr);
	return status;
}

Status
verb_compile(Ctx *ctx, const Options *opt)
{
	const char *format, *label;
	Text in = { 0 }, summary = { 0 };
	Compiled made = { 0 };
	TRY(request_format(ctx, opt, COMPILE, &format));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK)
		status = request_blame(ctx, compile_text(ctx, opt, format, label, &in, &summary, &made));
	text_free(&in);
	text_free(&summary);
	text_free(&made.json);
	return status;
}
