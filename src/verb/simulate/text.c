/* Simulated times as a table for people, and as CSV. */
#include "verb/simulate/simulation.h"

/* Numbers for people: four digits. */
static void
put_number(Text *out, int width, double value)
{
	text_printf(out, value < 1e6 ? "  %*.4g" : "  %*.0f", width, value);
}

static void
put_row(const Simulation *s, const SimRow *row, Text *out)
{
	double us = (double)row->result.time / 1e6, least = (double)row->least / 1e6;
	double bound = frac_double(s->plan->sched->bound.rate);
	text_printf(out, "%14lld  %12lld", (long long)row->m, (long long)row->result.chunk);
	put_number(out, 9, us);
	put_number(out, 8, frac_double(row->algorithm) / 1e9);
	put_number(out, 8, frac_double(row->bus) / 1e9);
	put_number(out, 8, bound > 0 ? frac_double(row->algorithm) / bound * 100 : 0);
	put_number(out, 9, least);
	if (row->bottleneck >= 0) {
		put_number(out, 5, row->use * 100);
		text_put(out, " %  ");
		put_link(out, s->plan->sched->topo, row->bottleneck);
	}
	static const char *const ways[] = { [SIM_CHUNKS] = "", [SIM_PACKETS] = "  (packets)",
		[SIM_LINES] = "  (lines)" };
	text_printf(out, "%s%s%s\n", ways[row->result.protocol], s->plan->too_large ? "  (at least)" : "",
	    row->result.limited ? "  (smaller chunks are not tried)" : "");
}

static void
put_head(const Simulation *s, Text *out)
{
	const Schedule *sched = s->plan->sched;
	unsigned assumed = assumed_latency(s);
	text_put(out, !s->program ? "schedule    " : s->program->msccl ? "algorithm   " : "plan        ");
	text_put(out, collective_name(sched->coll));
	text_printf(out, " over %d ranks of ", sched->topo->n_ranks);
	text_printable(out, sched->topo->name);
	text_put(out, ", ");
	text_printable(out, sched->algorithm);
	if (s->program && s->program->msccl)
		text_printf(out, ": %d channels, %d threadblocks, bound ", s->program->msccl->algo->n_channels,
		    s->plan->n_hops);
	else if (s->program)
		text_printf(out, ": %d threadblocks, bound ", s->program->mscclpp->n_blocks);
	else
		text_printf(out, ": %lld tree%s, bound ", (long long)sched_trees(sched),
		    sched_trees(sched) == 1 ? "" : "s");
	text_gb(out, sched->bound.rate);
	text_printf(out, " GB/s\nexecutor    %s; algbw and busbw in GB/s\n", executor_names.name[s->executor]);
	if (s->plan->too_large)
		text_printf(out, "at least    so long it takes: more than %d hops are not simulated\n",
		    (int)LIMIT_TREE_EDGES);
	if (assumed)
		text_printf(out, "assumed     latency of %s, which the file does not give: docs/simulator.md\n",
		    link_classes_text(assumed).text);
}

void
simulation_text(const Simulation *s, Text *out)
{
	put_head(s, out);
	text_printf(out, "%14s  %12s  %9s  %8s  %8s  %8s  %9s  %7s  %s\n", "bytes", what_moves(s), "us", "algbw",
	    "busbw", "% bound", "least us", "in use", "of the busiest link");
	for (int i = 0; i < s->n_rows; i++)
		put_row(s, &s->row[i], out);
}

void
simulation_csv(const Simulation *s, Text *out)
{
	text_put(out, "bytes,chunk,chunks,steps,us,algbw,busbw,least_us\n");
	for (int i = 0; i < s->n_rows; i++) {
		const SimRow *row = &s->row[i];
		text_printf(out, "%lld,%lld,%lld,%lld,", (long long)row->m, (long long)row->result.chunk,
		    (long long)row->result.n_chunks, (long long)row->result.n_steps);
		text_number(out, (double)row->result.time / 1e6);
		text_put(out, ",");
		text_gb(out, row->algorithm);
		text_put(out, ",");
		text_gb(out, row->bus);
		text_put(out, ",");
		text_number(out, (double)row->least / 1e6);
		text_put(out, "\n");
	}
}
