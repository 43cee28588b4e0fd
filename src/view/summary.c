/* The summary of a schedule that compile, check and show print. */
#include "schedule/schedule.h"
#include "view/view.h"

#include <string.h>

/* Rates, and the setup of a part; up to which size the part of the shortest setup carries messages alone. */
static void
print_parts(Text *out, const Schedule *sched, const PartEnd *split)
{
	int least = 0;
	text_put(out, "hybrid     ");
	for (int i = 0; i < sched->n_parts; i++) {
		text_printf(out, "%s %s %.6g", i ? " +" : "", link_classes_text(sched->part[i].classes).text,
		    frac_double(sched->part[i].rate) / 1e9);
		least = sched->part[i].setup < sched->part[least].setup ? i : least;
	}
	text_put(out, " GB/s");
	for (int i = 0; i < sched->n_parts; i++)
		if (sched->part[i].setup > 0)
			text_printf(out, "; %.6g us to set up %s", (double)sched->part[i].setup / 1e3,
			    link_classes_text(sched->part[i].classes).text);
	if (sched->n_parts > 1 && split[sched->n_parts - 1].from > 0)
		text_printf(out, "; messages up to %.4g MB go over %s alone",
		    (double)split[sched->n_parts - 1].from / 1e6,
		    link_classes_text(sched->part[least].classes).text);
	text_put(out, "\n");
}

/* What is added to the time of bytes, and what the file lacks for it. */
static void
print_latency(Text *out, const Schedule *sched, const int64_t *latency)
{
	unsigned without = sched_without_latency(sched);
	int64_t most = latency[0];
	for (int i = 1; i < sched->n_parts; i++)
		most = latency[i] > most ? latency[i] : most;
	if (most == 0) {
		text_printf(out, "latency     none given for %s: times are of bytes alone\n",
		    link_classes_text(without).text);
		return;
	}
	text_printf(out, "latency     %.6g us along the longest path of the trees", (double)most / 1e3);
	if (without)
		text_printf(out, "; none given for %s, counted as 0", link_classes_text(without).text);
	text_put(out, "\n");
}

/* A line for each size: bytes of each part, time, rate, and what the other parts add to the rate of the first. */
static void
print_sizes(Text *out, const Schedule *sched, const PartEnd *split, const int64_t *latency, const int64_t *size,
    int n_sizes)
{
	int64_t end[N_LINK_CLASSES];
	text_printf(out, "%12s", "bytes");
	for (int i = 0; i < sched->n_parts; i++)
		text_printf(out, "  %12s", link_classes_text(sched->part[i].classes).text);
	text_printf(out, "  %10s  %8s%s\n", "time us", "GB/s", sched->n_parts ? "      gain" : "");
	for (int s = 0; s < n_sizes; s++) {
		int64_t m = size[s];
		double seconds = sched_seconds(sched, split, latency, m), rate = (double)m / seconds / 1e9;
		text_printf(out, "%12lld", (long long)m);
		if (sched->n_parts)
			split_message(split, sched->n_parts, m, end);
		for (int i = 0; i < sched->n_parts; i++)
			text_printf(out, "  %12lld", (long long)(end[i] - (i ? end[i - 1] : 0)));
		text_printf(out, "  %10.6g  %8.6g", seconds * 1e6, rate);
		if (sched->n_parts) {
			double alone = sched_seconds_alone(sched, latency, m);
			text_printf(out, "  %8.4g", alone > seconds * (1 + 1e-12) ? rate - (double)m / alone / 1e9 : 0);
		}
		text_put(out, "\n");
	}
}

static void
print_topology(Text *out, const Topology *topo)
{
	unsigned classes = topo_classes(topo);
	text_put(out, "topology    ");
	text_printable(out, topo->name);
	text_printf(out, ", %d ranks:", topo->n_ranks);
	for (int r = 0; r < topo->n_ranks && r < 16; r++)
		text_printf(out, " %s", topo->vertex[r].id);
	text_printf(out, "%s; links:", topo->n_ranks > 16 ? " ..." : "");
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (classes >> c & 1)
			text_printf(out, " %s", link_class_name((LinkClass)c));
	text_put(out, "\n");
}

/* 1.000 is for what reaches the bound; below it, what is not proven. */
static void
print_ratio(Text *out, const Schedule *sched, const char *unproven)
{
	double achieved = frac_double(sched->achieved), ratio = achieved / frac_double(sched->bound.rate);
	bool reached = frac_cmp(sched->achieved, sched->bound.rate) >= 0, rounded = ratio >= 1 - RATE_ROUNDING;
	if (!reached && rounded)
		text_printf(out, "ratio       1.000, rounded down by less than %g\n", RATE_ROUNDING);
	else
		text_printf(out, "ratio       %.*f\n", ratio >= 0.9995 && !reached ? 6 : 3,
		    ratio > 0.999999 && !reached ? 0.999999 : ratio);
	if (unproven && !reached && !rounded)
		text_printf(out, "unproven    %s\n", unproven);
}

static void
print_rate(Text *out, const Schedule *sched, const char *unproven)
{
	static const char *const proofs[] = { "a cut", "a partition", "prices", "lengths" };
	double unit = (double)topo_link_unit(sched->topo);
	text_printf(out, "rate        %.6g GB/s algorithm bandwidth", frac_double(sched->achieved) / 1e9);
	if (frac_double(sched->achieved) < 1000 * unit)
		text_printf(out, " = %.4g x %.6g GB/s", frac_double(sched->achieved) / unit, unit / 1e9);
	put_assumed(out, bound_assumed(sched->topo, sched->coll, &sched->bound));
	text_printf(out, "\nbound       %.6g GB/s, proven by %s for any algorithm%s\n",
	    frac_double(sched->bound.rate) / 1e9, proofs[sched->bound.kind], bound_claim(&sched->bound, sched->coll));
	print_ratio(out, sched, unproven);
}

/* For the bytes that it was planned for. The rates below are those of blocks of one length. */
static void
print_matrix(Text *out, const Schedule *sched)
{
	const ByteMatrix *matrix = sched->matrix;
	int n = sched->topo->n_ranks;
	int64_t sum = 0;
	for (int i = 0; i < n * n; i++)
		sum += i / n == i % n ? 0 : matrix->bytes[i];
	text_printf(out, "matrix      %.6g us for %.6g MB between ranks; bound %.6g us, proven by lengths for any "
	    "algorithm that forwards blocks; ratio %.3f\n"
	    "rates       of blocks of one length, by these paths:\n", matrix->time, (double)sum / 1e6, matrix->bound,
	    matrix->bound / matrix->time);
}

/* What other methods give, a line for each. Where a baseline uses no link class of the schedule, that has no ring. */
static void
print_baselines(Text *out, const Schedule *sched)
{
	unsigned classes = topo_classes(sched->topo);
	if (!sched->n_baselines && collective_has_rings(sched->coll))
		text_put(out, "baselines   none known\n");
	for (int i = 0; i < sched->n_baselines; i++) {
		const Baseline *baseline = &sched->baseline[i];
		text_printf(out, "%-11s ", baseline->name);
		if (!baseline->classes) {
			text_put(out, "no ring\n");
			continue;
		}
		text_printf(out, "%.6g GB/s by rings over %s", baseline->rate,
		    link_classes_text(baseline->classes).text);
		if (!(baseline->classes & classes))
			text_printf(out, ", as %s has none", link_classes_text(classes).text);
		if (baseline->through)
			text_put(out, ", some hops through a GPU");
		text_printf(out, "; %s %.3gx\n", strstr(sched->algorithm, "ring") ? "this plan" : "trees",
		    frac_double(sched->achieved) / 1e9 / baseline->rate);
	}
}

/* Times of one size, ours and others'. A time depends on latencies, too. */
static void
print_chosen(Text *out, const Schedule *sched, const Chosen *chosen)
{
	Assumed assumed = bound_assumed(sched->topo, sched->coll, &sched->bound);
	assumed.most = false;
	text_printf(out, "time        %s%.5g us for %lld bytes by %s, ", chosen->at_least ? "at least " : "",
	    (double)chosen->time / 1e6, (long long)chosen->bytes, chosen->way);
	text_printf(out, chosen->n_ways == 1 ? "the only way" : "the fastest of %d ways", chosen->n_ways);
	put_assumed(out, assumed);
	if (chosen->at_least)
		text_printf(out, "; too many hops to simulate\n");
	else
		text_printf(out, "\nchunks      of up to %lld bytes, executed by %s\n", (long long)chosen->chunk,
		    chosen->executor);
	for (int i = 0; i < chosen->n_others; i++)
		text_printf(out, "%-11s %.5g us by %s: %.3g times that\n", chosen->other[i].name,
		    (double)chosen->other[i].time / 1e6, chosen->other[i].by,
		    (double)chosen->other[i].time / (double)chosen->time);
	text_printf(out, "least       %.5g us: no algorithm takes less time\n", (double)chosen->least / 1e6);
}

Status
summary_text(Ctx *ctx, const Summary *s, Text *out)
{
	const Schedule *sched = s->sched;
	PartEnd *split = NULL;
	int64_t latency[N_LINK_CLASSES];
	int depth;
	TRY(sched_depth(ctx, sched, &depth));
	TRY(sched_latency(ctx, sched, latency));
	print_topology(out, sched->topo);
	text_printf(out, "collective  %s", collective_name(sched->coll));
	if (sched->root >= 0)
		text_printf(out, " from root %d (%s)", sched->root, sched->topo->vertex[sched->root].id);
	text_printf(out, "\ntrees       %lld, depth %d", (long long)sched_trees(sched), depth);
	if (sched->symmetry)
		text_printf(out, "; images of %d under a group of %d", sched->n_segments, sched->symmetry->size);
	if (sched->n_in_trees)
		text_put(out, sched->coll == ALLGATHER ? " from each rank" : " into each rank");
	text_put(out, "\n");
	if (sched->n_parts) {
		TRY(sched_split(ctx, sched->topo->name, sched, &split));
		print_parts(out, sched, split);
	}
	if (s->chosen)
		print_chosen(out, sched, s->chosen);
	if (s->doubt)
		text_printf(out, "doubtful    %s\n", s->doubt);
	if (!s->chosen || s->rates) {
		if (sched->matrix)
			print_matrix(out, sched);
		print_rate(out, sched, sched->matrix ? NULL : s->unproven);
		print_baselines(out, sched);
	}
	if (s->n_sizes && !s->chosen) {
		print_latency(out, sched, latency);
		print_sizes(out, sched, split, latency, s->size, s->n_sizes);
	}
	return OK;
}

void
summary_text_idle(const Idle *idle, Text *out)
{
	if (!idle->classes)
		return;
	text_printf(out, "idle        %s", names_text(link_class_names, idle->classes, ", ", ", ").text);
	if (idle->hybrid.num > 0)
		text_printf(out, "; --hybrid: %.6g GB/s from %.4g MB on", frac_double(idle->hybrid) / 1e9,
		    idle->hybrid_from / 1e6);
	if (idle->pairs.num > 0)
		text_printf(out, "; --routes pair: %.6g GB/s", frac_double(idle->pairs) / 1e9);
	if (idle->bound.num > 0)
		text_printf(out, "; -l all: at most %.6g GB/s", frac_double(idle->bound) / 1e9);
	text_put(out, "\n");
}

void
summary_text_relays(const Schedule *sched, const RelayGain *relays, Text *out)
{
	enum { MOST = 16 };
	text_put(out, "relays     ");
	for (int i = 0; i < relays->n && i < MOST; i++)
		text_printf(out, " %s", relays->gpu[i]);
	if (relays->n > MOST)
		text_printf(out, " and %d more", relays->n - MOST);
	text_printf(out, relays->n ? "; " : " none; ");
	if (!relays->connected)
		text_put(out, "without relays no links connect the job\n");
	else
		text_printf(out, "%.6g GB/s without relays: %.3g times that\n", frac_double(relays->rate) / 1e9,
		    frac_double(sched->achieved) / frac_double(relays->rate));
}
