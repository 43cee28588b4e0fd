/* A job is refused; or its groups are within their ranks, no rank is in two of a kind, bytes fit, and small ones are
 * joined on a machine, where links of a group are those of its image under a symmetry. What was planned of a job is
 * refused; or within its limits, and written and read again it is the same. */
#define COST_FLOOR_MS 1000	/* symmetries are searched for */
#include "json_mutator.h"
#include "format/format.h"
#include "topology/topology.h"
#include "workload/workload.h"

const Mutator mutators[] = { json_mutate, NULL };

const char *const dictionary[] = { "\"grid\": {", "\"grid\": [", "\"order\": \"tp-dp\"", "\"groups\": \"tp-dp\"",
	"\"groups\": {", "\"ep\": 2", "\"root\": 1", "\"priority\": 2", "\"times\": 3", "\"bytes\": 9007199254740992",
	"\"collective\": \"alltoall\"", "\"collective\": \"gather\"", "[[0, 1], [2, 3]]", "[0, 7]", "\"prices\": [[",
	    NULL };

static const char label[] = "input";

static struct {
	Ctx ctx;
	Topology *machine;
} fixed;

static void
prepare(void)
{
	Text text = { 0 };
	if (fixed.machine)
		return;
	ctx_init(&fixed.ctx);
	Status status = synthetic_write(&fixed.ctx, "server:2 gpu:4 mesh:50 net:25", &text);
	if (status == OK)
		status = topo_read(&fixed.ctx, label, NULL, text.data, text.size, &fixed.machine);
	REQUIRE(status == OK, "%s", fixed.ctx.error.text);
	text_free(&text);
}

static void
check_group(const RankGroup *group, int n_ranks, bool *used)
{
	REQUIRE(group->n >= 1, "an empty group");
	for (int i = 0; i < group->n; i++) {
		int rank = group->rank[i];
		REQUIRE(rank >= 0 && rank < n_ranks && !used[rank], "rank %d of %d", rank, n_ranks);
		used[rank] = true;
	}
}

static void
check_kinds(Ctx *ctx, const Workload *w)
{
	for (int k = 0; k < w->n_kinds; k++) {
		bool *used;
		REQUIRE(TEMP(ctx, used, w->n_ranks) == OK, "no memory");
		for (int g = 0; g < w->kind[k].n_groups; g++)
			check_group(&w->kind[k].group[g], w->n_ranks, used);
	}
	for (int p = 0; p < w->n_phases; p++)
		for (int c = 0; c < w->phase[p].n_calls; c++) {
			const GroupCall *call = &w->phase[p].call[c];
			REQUIRE(call->kind >= 0 && call->kind < w->n_kinds, "kind %d", call->kind);
			REQUIRE(call->bytes >= 1 && call->bytes <= LIMIT_MESSAGE / call->times, "bytes");
			REQUIRE((call->root >= 0) == collective_rooted(call->coll), "root %d", call->root);
			REQUIRE(phase_level(&w->phase[p], c) < w->phase[p].n_calls, "level");
			for (int g = 0; g < w->kind[call->kind].n_groups; g++)
				REQUIRE(call->root < w->kind[call->kind].group[g].n, "root %d", call->root);
		}
}

static void
check_joined(const JoinedWorkload *in)
{
	const Workload *w = in->workload;
	for (int k = 0; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; g++) {
			const JoinedGroup *group = &in->group[k][g], *first = &in->group[k][group->like];
			REQUIRE(group->like <= g && first->like == group->like, "group %d is like %d", g, group->like);
			REQUIRE(w->kind[k].group[g].n == w->kind[k].group[group->like].n, "sizes");
			for (int l = 0; group->shared && l < group->job.topo->n_links; l++)
				REQUIRE(joined_link(group, group->shared[l]) == l, "link %d", l);
			if (group->shared)
				REQUIRE(group->job.topo->n_links == first->job.topo->n_links, "links");
		}
}

static void
test_job(Ctx *ctx, const uint8_t *data, size_t size)
{
	static const int gpu[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const Ask ask = { .coll = ALLREDUCE, .root = -1, .epsilon = { 1, 20 }, .tolerance = FRAC_ZERO,
	    .minimise = true };
	Workload *w;
	JoinedWorkload in;
	Status status = workload_read(ctx, label, (const char *)data, size, &w);
	if (status != OK) {
		judge_refusal(ctx, status, 1u << BAD_INPUT | 1u << LIMIT, label);
		return;
	}
	n_accepted++;
	check_kinds(ctx, w);
	outcome = hash_bytes(outcome, &w->n_ranks, sizeof w->n_ranks);
	if (w->n_ranks > 8)
		return;
	status = workload_join(ctx, w, fixed.machine, gpu, &ask, &in);
	REQUIRE(status == OK, "%s", ctx->error.text);
	check_joined(&in);
	outcome = hash_bytes(outcome, &in.sym->size, sizeof in.sym->size);
}

static void
test_phases(Ctx *ctx, const uint8_t *data, size_t size)
{
	Phases *phases, *again;
	Text text = { 0 }, other = { 0 };
	Status status = phases_read(ctx, label, (const char *)data, size, &phases);
	if (status != OK) {
		judge_refusal(ctx, status, 1u << BAD_INPUT | 1u << LIMIT, label);
		return;
	}
	n_accepted++;
	phases_write(phases, &text);
	REQUIRE(!text.failed && phases_read(ctx, label, text.data, text.size, &again) == OK, "%s\nfor\n%s",
	    ctx->error.text, text.data);
	phases_write(again, &other);
	REQUIRE(!other.failed && text.size == other.size && memcmp(text.data, other.data, text.size) == 0,
	    "other bytes");
	outcome = hash_bytes(outcome, &phases->n_phases, sizeof phases->n_phases);
	text_free(&text);
	text_free(&other);
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	prepare();
	ctx_init(&ctx);
	if (memmem(data, size, "blink-phases", 12))
		test_phases(&ctx, data, size);
	else
		test_job(&ctx, data, size);
	ctx_free(&ctx);
}
