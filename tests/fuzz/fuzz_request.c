/* Text of the command line: the first line describes a machine as --synthetic does, the second is a list as --gpus
 * takes. A machine that is described is a topology that reads; a list is refused, or has each GPU once. */
#define COST_FLOOR_MS 2000	/* the largest cluster has 4096 GPUs */
#define COST_FLOOR_BYTES (512 << 20)
#include "table_mutator.h"
#include "format/format.h"
#include "topology/topology.h"
#include "verb/request.h"

const Mutator mutators[] = { table_mutate, NULL };

const char *const dictionary[] = { "gpu:", "server:", "switch:", "mesh:", "ring:", "net:", "nic:", "pcie:", "leaf:",
	"rails", "torus:", "oversubscription:", "multicast", "reduce", "cpu:", "@", "gpu:2 ring:5", "server:2", "gpu0",
	"s0/gpu1", "0,1", "0-3", ",", "/", "-1", "4096", "2147483648", "0.5", "1e9", "\n", NULL };

static const char label[] = "input";

static void
choose(Ctx *ctx, const Topology *machine, const char *list)
{
	int *gpu, n = 0;
	REQUIRE(TEMP(ctx, gpu, machine->n_ranks + 1) == OK, "no memory");
	Status status = request_gpus(ctx, machine, *list ? list : NULL, gpu, &n);
	if (status != OK) {
		judge_refusal(ctx, status, 1u << BAD_INPUT | 1u << USAGE | 1u << LIMIT, "");
		return;
	}
	REQUIRE(n >= 1 && n <= machine->n_ranks, "%d GPUs", n);
	for (int i = 0; i < n && n <= 64; i++)
		for (int k = 0; k <= i; k++)
			REQUIRE(
			    gpu[i] >= 0 && gpu[i] < machine->n_ranks && (gpu[k] != gpu[i] || k == i), "GPU %d", gpu[i]);
	outcome = (uint64_t)machine->n_ranks << 16 | (uint64_t)n;
	n_accepted++;
}

static void
test_input(const uint8_t *data, size_t size)
{
	char line[512], list[512];
	Text text = { 0 };
	Topology *machine;
	Ctx ctx;
	const uint8_t *end = memchr(data, '\n', size);
	size_t first = end ? (size_t)(end - data) : size, rest = end ? size - first - 1 : 0;
	if (first >= sizeof line || rest >= sizeof list || memchr(data, 0, size))
		return;
	memcpy(line, data, first);
	line[first] = 0;
	memcpy(list, data + size - rest, rest);
	list[rest] = 0;
	ctx_init(&ctx);
	Status status = synthetic_write(&ctx, line, &text);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << USAGE | 1u << LIMIT | 1u << BAD_INPUT, "");
	} else {
		status = topo_read(&ctx, label, NULL, text.data, text.size, &machine);
		REQUIRE(status == OK || status == LIMIT, "%s\n%s\n%s", ctx.error.text, line, text.data);
		if (status == OK)
			choose(&ctx, machine, list);
	}
	text_free(&text);
	ctx_free(&ctx);
}
