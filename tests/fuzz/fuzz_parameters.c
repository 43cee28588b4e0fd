/* Parameters of executors are refused; or they are within their limits, survive as a part of a topology in both of our
 * formats, and no message takes less time with them than the floor of its schedule. */
#define COST_FLOOR_MS 2000	/* messages are simulated */
#include "json_mutator.h"
#include "compile.h"
#include "format/format.h"
#include "simulate/simulate.h"
#include "topology/topology.h"

const Mutator mutators[] = { json_mutate, NULL };

const char *const dictionary[] = {
#define X(name, text, what) "\"" text "\": {",
	EXECUTOR_LIST(X)
#undef X
#define X(member, text, ...) "\"" text "\": ",
	SIM_PARAMETER_LIST(X)
#undef X
#define X(name, text, what) "\"" text "\": 0.5",
	LINK_CLASS_LIST(X)
#undef X
	"\"efficiency\": {", "\"latency\": {", "0", "1", "0.000001", "1e6", "1000000", "9007199254740992", "}", NULL };

static const char label[] = "input";

static struct {
	Ctx ctx;
	Topology *machine;
	SimPlan *plan;
} fixed;

/* An allreduce over GPUs of two servers. */
static void
prepare(void)
{
	static const int gpu[] = { 0, 1, 2, 3 };
	const Ask ask = { .algorithm = "trees", .coll = ALLREDUCE, .root = -1, .epsilon = { 1, 20 },
		.tolerance = FRAC_ZERO, .minimise = true };
	Compiled made = { 0 };
	Text text = { 0 };
	if (fixed.plan)
		return;
	ctx_init(&fixed.ctx);
	Status status = synthetic_write(&fixed.ctx, "server:2 gpu:2 mesh:50 net:25", &text);
	if (status == OK)
		status = topo_read(&fixed.ctx, label, NULL, text.data, text.size, &fixed.machine);
	if (status == OK)
		status = compile(&fixed.ctx, fixed.machine, gpu, 4, &ask, &made);
	if (status == OK)
		status = sim_prepare(&fixed.ctx, made.sched, &fixed.plan);
	REQUIRE(status == OK, "%s", fixed.ctx.error.text);
	text_free(&made.json);
	text_free(&text);
}

static void
check_limits(const SimParameters *p)
{
	for (const SimParameter *row = sim_parameters; row->name; row++) {
		int64_t value = *(const int64_t *)((const char *)p + row->at);
		REQUIRE(value >= row->least && value <= row->most, "%s: %lld", row->name, (long long)value);
	}
	for (int c = 0; c < N_LINK_CLASSES; c++)
		REQUIRE(p->efficiency[c] >= 1 && p->efficiency[c] <= PPM && p->latency[c] >= 0
			&& p->latency[c] <= LIMIT_LATENCY_NS, "class %d", c);
}

static void
simulate(Ctx *ctx, const SimParameters *p)
{
	static const int64_t sizes[] = { 1, 4096, 1 << 20 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		SimAsk ask = { .p = *p, .m = sizes[i] };
		SimResult result;
		int64_t least;
		Status status = sim_run_best(ctx, fixed.plan, &ask, &result);
		REQUIRE(status == OK || status == LIMIT, "%s", ctx->error.text);
		if (status == OK && sim_least_time(ctx, fixed.plan, &ask, &least) == OK)
			REQUIRE(result.time >= least, "%lld bytes: %lld ps: less than %lld", (long long)sizes[i],
			    (long long)result.time, (long long)least);
		ctx->error.status = OK;
	}
}

/* As a part of a topology. */
static void
survives(Ctx *ctx, const Parameters *own, void (*write)(const Topology *topo, Text *out))
{
	Topology machine = *fixed.machine, *again;
	Text text = { 0 };
	machine.parameters = *own;
	write(&machine, &text);
	REQUIRE(!text.failed && topo_read(ctx, label, NULL, text.data, text.size, &again) == OK, "%s\nfor\n%s",
	    ctx->error.text, text.data);
	for (int x = 0; x < N_EXECUTORS; x++) {
		SimParameters p, q;
		sim_parameters_for((Executor)x, own, NULL, &p);
		sim_parameters_for((Executor)x, &again->parameters, NULL, &q);
		REQUIRE(memcmp(&p, &q, sizeof p) == 0, "executor %d: others in\n%s", x, text.data);
	}
	text_free(&text);
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	Parameters own;
	prepare();
	ctx_init(&ctx);
	Status status = parameters_read(&ctx, label, (const char *)data, size, &own);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT, label);
	} else {
		n_accepted++;
		outcome = (uint64_t)own.n + 1;
		for (int x = 0; x < N_EXECUTORS; x++) {
			SimParameters p;
			sim_parameters_for((Executor)x, NULL, &own, &p);
			check_limits(&p);
			simulate(&ctx, &p);
			outcome = hash_bytes(outcome, &p.at_once, sizeof p.at_once);
		}
		survives(&ctx, &own, topo_write_json);
		survives(&ctx, &own, topo_write_xml);
	}
	ctx_free(&ctx);
}
