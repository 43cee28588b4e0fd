/* Hierarchies as a table for people. */
#include "verb/hierarchy/hierarchies.h"

static void
put_cost(const Hierarchies *h, Text *out)
{
	HierarchyCost cost = h->model.cost;
	text_put(out, "cost        ");
	for (const HierarchyParameter *row = hierarchy_parameters; row->name; row++) {
		double value = (double)*hierarchy_parameter(&cost, row) / (double)row->unit;
		text_printf(out, "%s%s %.6g%s%s", row == hierarchy_parameters ? "" : ", ", row->name, value,
		    row->unit == NS_PER_US ? " us" : "", h->fit.fitted[row - hierarchy_parameters] ? " (fitted)" : "");
	}
	text_put(out, "\n");
	if (h->fit.n > 0)
		text_printf(out, "fit         %d measurements, rms %.2f %%, worst %+.2f %% in line %d\n", h->fit.n,
		    h->fit.rms * 100, h->fit.worst * 100, h->fit.line);
}

static void
put_head(const Hierarchies *h, Text *out)
{
	const HierarchyMachine *machine = h->model.machine;
	text_put(out, "machine     ");
	text_printable(out, h->machine->name);
	text_printf(out, ", %d of %d GPUs", machine->n_ranks, h->machine->n_ranks);
	if (machine->server > 1)
		text_printf(out, ", %d in each server", machine->server);
	text_printf(out, "\nmessage     allreduce of %lld bytes\n", (long long)h->model.m);
	put_cost(h, out);
	text_printf(out, "search      %lld %s%s\n", (long long)h->tried,
	    h->exhaustive ? "hierarchies, all that there are" : h->tried == 1 ? "layer" : "layers",
	    h->exhaustive ? "" : ", of the best of each number of ranks");
	if (h->simulate)
		text_printf(out, "simulated   by %s\n", executor_names.name[h->executor]);
	else if (machine->n_ranks > HIERARCHY_SIMULATED)
		text_printf(out, "simulated   none: the job has more than %d GPUs\n", HIERARCHY_SIMULATED);
}

/* A time, ms, and that of the ring by it. */
static void
put_time(int64_t time, int64_t ring, Text *out)
{
	if (time < 0) {
		text_printf(out, "  %12s  %6s", "-", "-");
		return;
	}
	text_printf(out, "  %12.6g  ", (double)time / 1e9);
	if (ring > 0 && time > 0)
		text_printf(out, "%5.2fx", (double)ring / (double)time);
	else
		text_printf(out, "%6s", "-");
}

static void
put_row(const Hierarchies *h, const HierarchyRow *row, const char *name, Text *out)
{
	put_time(row->cost, h->ring.cost, out);
	put_time(row->simulated, h->ring.simulated, out);
	text_printf(out, "  %s\n", name);
}

void
hierarchies_text(const Hierarchies *h, Text *out)
{
	put_head(h, out);
	text_printf(out, "   #  %12s  %6s  %12s  %6s  hierarchy\n", "cost ms", "x ring", "simulated ms", "x ring");
	for (int i = 0; i < h->n_rows; i++) {
		text_printf(out, "%4d  ", i + 1);
		put_row(h, &h->row[i], hierarchy_text(&h->row[i].layers).text, out);
	}
	text_put(out, "      ");
	put_row(h, &h->ring, "ring: flat, over all GPUs", out);
	if (h->simulate) {
		text_put(out, "      ");
		put_row(h, &h->trees, "trees: what blinkc plans", out);
	}
	if (h->least >= 0) {
		const HierarchyRow least = { .cost = -1, .simulated = h->least };
		text_put(out, "      ");
		put_row(h, &least, "least time of any algorithm", out);
	}
}
