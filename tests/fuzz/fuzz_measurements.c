/* Measured times of hierarchies are refused; or the cost that fits them is within its limits, and both searches find
 * the same best hierarchies by it, the best one first. */
#include "table_mutator.h"
#include "format/format.h"
#include "hierarchy/hierarchy.h"
#include "topology/topology.h"

#include <math.h>

const Mutator mutators[] = { table_mutate, NULL };

const char *const dictionary[] = { "hierarchy,bytes,us", "#", "2x4,", "4x2,", "2x2x2,", "8,", "4,", "2,", "x", ",",
	"134217728", "1024", "1", "9007199254740992", "16400", "0.001", "1e12", "1e-3", "\r", "\n", "\t", "-1", NULL };

enum { BEST = 5 };

static const char label[] = "input";

static struct {
	Ctx ctx;
	HierarchyMachine machine;
} fixed;

/* Two servers of four GPUs. */
static void
prepare(void)
{
	static const int gpu[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	Text text = { 0 };
	Topology *machine, *topo;
	JobLinks links;
	if (fixed.machine.n_ranks)
		return;
	ctx_init(&fixed.ctx);
	Status status = synthetic_write(&fixed.ctx, "server:2 gpu:4 mesh:50 net:25", &text);
	if (status == OK)
		status = topo_read(&fixed.ctx, label, NULL, text.data, text.size, &machine);
	if (status == OK)
		status = topo_of_job(&fixed.ctx, machine, gpu, 8, 0, ROUTES_CHOSEN, false, &links, &topo);
	if (status == OK)
		status = hierarchy_machine(&fixed.ctx, topo, &fixed.machine);
	REQUIRE(status == OK, "%s", fixed.ctx.error.text);
	text_free(&text);
}

static void
check_search(Ctx *ctx, const HierarchyModel *model)
{
	HierarchyTime best[2][BEST];
	int64_t tried;
	int n[2];
	for (int exhaustive = 0; exhaustive < 2; exhaustive++)
		REQUIRE(hierarchy_search(ctx, model, BEST, exhaustive, best[exhaustive], &n[exhaustive], &tried) == OK,
		    "%s", ctx->error.text);
	REQUIRE(n[0] == n[1] && n[0] > 0, "%d and %d hierarchies", n[0], n[1]);
	for (int i = 0; i < n[0]; i++) {
		REQUIRE(best[0][i].time == best[1][i].time, "%d: %lld and %lld ps", i, (long long)best[0][i].time,
		    (long long)best[1][i].time);
		REQUIRE(best[0][i].time == hierarchy_time(model, &best[0][i].layers), "%d", i);
		REQUIRE(best[0][i].time >= 0 && (i == 0 || best[0][i].time >= best[0][i - 1].time), "%d", i);
	}
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	Measurement *list;
	HierarchyFit fit;
	HierarchyModel model = { .machine = &fixed.machine };
	int n;
	prepare();
	ctx_init(&ctx);
	hierarchy_defaults(&model.cost);
	Status status = measurements_read(&ctx, label, (const char *)data, size, &list, &n);
	if (status == OK)
		status = hierarchy_fit(&ctx, label, &fixed.machine, list, n, &model.cost, &fit);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT, label);
		ctx_free(&ctx);
		return;
	}
	n_accepted++;
	outcome = (uint64_t)n + 1;
	for (const HierarchyParameter *row = hierarchy_parameters; row->name; row++) {
		int64_t value = *hierarchy_parameter(&model.cost, row);
		REQUIRE(value >= row->least && value <= row->most, "%s: %lld", row->name, (long long)value);
		outcome = outcome * 2 + fit.fitted[row - hierarchy_parameters];
	}
	REQUIRE(fit.n == n && fit.rms >= 0 && isfinite(fit.rms) && fit.rms <= fabs(fit.worst) * (1 + 1e-9),
	    "%d measurements: %g, at most %g", fit.n, fit.rms, fit.worst);
	model.m = list[0].m;
	check_search(&ctx, &model);
	ctx_free(&ctx);
}
