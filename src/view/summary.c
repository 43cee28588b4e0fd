/* The summary of a schedule that compile, check and show print. */
#include "schedule/schedule.h"
#include "view/view.h"

/* Rates, and the setup of a part; up to which size the part of the shortest setup carries messages alone. */
static void
print_parts(FILE *to, const Schedule *sched, const PartEnd *split)
{
	int least = 0;
	fprintf(to, "hybrid     ");
	for (int i = 0; i < sched->n_parts; i++) {
		fprintf(to, "%s %s %.6g", i ? " +" : "", link_classes_text(sched->part[i].classes).text,
		    frac_double(sched->part[i].rate) / 1e9);
		least = sched->part[i].setup < sched->part[least].setup ? i : least;
	}
	fprintf(to, " GB/s");
	for (int i = 0; i < sched->n_parts; i++)
		if (sched->part[i].setup > 0)
			fprintf(to, "; %.6g us to set up %s", (double)sched->part[i].setup / 1e3,
			    link_classes_text(sched->part[i].classes).text);
	if (sched->n_parts > 1 && split[sched->n_parts - 1].from > 0)
		fprintf(to, "; messages up to %.4g MB go over %s alone", (double)split[sched->n_parts - 1].from / 1e6,
		    link_classes_text(sched->part[least].classes).text);
	fprintf(to, "\n");
}

/* What is added to the time of bytes, and what the file lacks for it. */
static void
print_latency(FILE *to, const Schedule *sched, const int64_t *latency)
{
	unsigned without = sched_without_latency(sched);
	int64_t most = latency[0];
	for (int i = 1; i < sched->n_parts; i++)
		most = latency[i] > most ? latency[i] : most;
	if (most == 0) {
		fprintf(to, "latency     none given for %s: times are of bytes alone\n",
		    link_classes_text(without).text);
		return;
	}
	fprintf(to, "latency     %.6g us along the longest path of the trees", (double)most / 1e3);
	if (without)
		fprintf(to, "; none given for %s, counted as 0", link_classes_text(without).text);
	fprintf(to, "\n");
}

/* A line for each size: bytes of each part, time, rate, and what the other parts add to the rate of the first. */
static void
print_sizes(FILE *to, const Schedule *sched, const PartEnd *split, const int64_t *latency, const int64_t *size,
    int n_sizes)
{
	int64_t end[N_LINK_CLASSES];
	fprintf(to, "%12s", "bytes");
	for (int i = 0; i < sched->n_parts; i++)
		fprintf(to, "  %12s", link_classes_text(sched->part[i].classes).text);
	fprintf(to, "  %10s  %8s%s\n", "time us", "GB/s", sched->n_parts ? "      gain" : "");
	for (int s = 0; s < n_sizes; s++) {
		int64_t m = size[s];
		double seconds = sched_seconds(sched, split, latency, m), rate = (double)m / seconds / 1e9;
		fprintf(to, "%12lld", (long long)m);
		if (sched->n_parts)
			split_message(split, sched->n_parts, m, end);
		for (int i = 0; i < sched->n_parts; i++)
			fprintf(to, "  %12lld", (long long)(end[i] - (i ? end[i - 1] : 0)));
		fprintf(to, "  %10.6g  %8.6g", seconds * 1e6, rate);
		if (sched->n_parts) {
			double alone = sched_seconds_alone(sched, latency, m);
			fprintf(to, "  %8.4g", alone > seconds * (1 + 1e-12) ? rate - (double)m / alone / 1e9 : 0);
		}
		fprintf(to, "\n");
	}
}

static void
print_topology(FILE *to, const Topology *topo)
{
	unsigned classes = topo_classes(topo);
	fprintf(to, "topology    ");
	print_name(to, topo->name);
	fprintf(to, ", %d ranks:", topo->n_ranks);
	for (int r = 0; r < topo->n_ranks && r < 16; r++)
		fprintf(to, " %s", topo->vertex[r].id);
	fprintf(to, "%s; links:", topo->n_ranks > 16 ? " ..." : "");
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (classes >> c & 1)
			fprintf(to, " %s", link_class_name((LinkClass)c));
	fprintf(to, "\n");
}

/* 1.000 is for what reaches the bound; below it, what is not proven. */
static void
print_ratio(FILE *to, const Schedule *sched, const char *unproven)
{
	double achieved = frac_double(sched->achieved), ratio = achieved / frac_double(sched->bound.rate);
	bool reached = frac_cmp(sched->achieved, sched->bound.rate) >= 0, rounded = ratio >= 1 - RATE_ROUNDING;
	if (!reached && rounded)
		fprintf(to, "ratio       1.000, rounded down by less than %g\n", RATE_ROUNDING);
	else
		fprintf(to, "ratio       %.*f\n", ratio >= 0.9995 && !reached ? 6 : 3,
		    ratio > 0.999999 && !reached ? 0.999999 : ratio);
	if (unproven && !reached && !rounded)
		fprintf(to, "unproven    %s\n", unproven);
}

static void
print_rate(FILE *to, const Schedule *sched, const char *unproven)
{
	static const char *const proofs[] = { "a cut", "a partition", "prices", "lengths" };
	double unit = (double)topo_link_unit(sched->topo);
	fprintf(to, "rate        %.6g GB/s algorithm bandwidth", frac_double(sched->achieved) / 1e9);
	if (frac_double(sched->achieved) < 1000 * unit)
		fprintf(to, " = %.4g x %.6g GB/s", frac_double(sched->achieved) / unit, unit / 1e9);
	fprintf(to, "\nbound       %.6g GB/s, proven by %s for any algorithm%s\n", frac_double(sched->bound.rate) / 1e9,
	    proofs[sched->bound.kind], bound_claim(&sched->bound, sched->coll));
	print_ratio(to, sched, unproven);
}

/* What other methods give, a line for each. Where a baseline uses no link class of the schedule, that has no ring. */
static void
print_baselines(FILE *to, const Schedule *sched)
{
	unsigned classes = topo_classes(sched->topo);
	if (!sched->n_baselines && collective_has_rings(sched->coll))
		fprintf(to, "baselines   none known\n");
	for (int i = 0; i < sched->n_baselines; i++) {
		const Baseline *baseline = &sched->baseline[i];
		fprintf(to, "%-11s ", baseline->name);
		if (!baseline->classes) {
			fprintf(to, "no ring\n");
			continue;
		}
		fprintf(to, "%.6g GB/s by rings over %s", baseline->rate, link_classes_text(baseline->classes).text);
		if (!(baseline->classes & classes))
			fprintf(to, ", as %s has none", link_classes_text(classes).text);
		if (baseline->through)
			fprintf(to, ", some hops through a GPU");
		fprintf(to, "; trees %.3gx\n", frac_double(sched->achieved) / 1e9 / baseline->rate);
	}
}

Status
summary_print(Ctx *ctx, FILE *to, const Schedule *sched, const char *unproven, const int64_t *size, int n_sizes)
{
	PartEnd *split = NULL;
	int64_t latency[N_LINK_CLASSES];
	int depth;
	TRY(sched_depth(ctx, sched, &depth));
	TRY(sched_latency(ctx, sched, latency));
	print_topology(to, sched->topo);
	fprintf(to, "collective  %s", collective_name(sched->coll));
	if (sched->root >= 0)
		fprintf(to, " from root %d (%s)", sched->root, sched->topo->vertex[sched->root].id);
	fprintf(to, "\ntrees       %lld, depth %d", (long long)sched_trees(sched), depth);
	if (sched->symmetry)
		fprintf(to, "; images of %d under a group of %d", sched->n_segments, sched->symmetry->size);
	fprintf(to, "\n");
	if (sched->n_parts) {
		TRY(sched_split(ctx, sched->topo->name, sched, &split));
		print_parts(to, sched, split);
	}
	print_rate(to, sched, unproven);
	print_baselines(to, sched);
	if (n_sizes) {
		print_latency(to, sched, latency);
		print_sizes(to, sched, split, latency, size, n_sizes);
	}
	return OK;
}

void
summary_print_idle(FILE *to, const Idle *idle)
{
	if (!idle->classes)
		return;
	fprintf(to, "idle        %s", names_text(link_class_names, idle->classes, ", ", ", ").text);
	if (idle->hybrid.num > 0)
		fprintf(to, "; --hybrid: %.6g GB/s from %.4g MB on", frac_double(idle->hybrid) / 1e9,
		    idle->hybrid_from / 1e6);
	if (idle->no_peer_access)
		fprintf(to, "; --hybrid: the topology has no peer_accesses, --hybrid=host needs none");
	if (idle->pairs.num > 0)
		fprintf(to, "; --routes pair: %.6g GB/s", frac_double(idle->pairs) / 1e9);
	if (idle->bound.num > 0)
		fprintf(to, "; -l all: at most %.6g GB/s", frac_double(idle->bound) / 1e9);
	fprintf(to, "\n");
}

void
summary_print_relays(FILE *to, const Schedule *sched, const RelayGain *relays)
{
	enum { MOST = 16 };
	fprintf(to, "relays     ");
	for (int i = 0; i < relays->n && i < MOST; i++)
		fprintf(to, " %s", relays->gpu[i]);
	if (relays->n > MOST)
		fprintf(to, " and %d more", relays->n - MOST);
	fprintf(to, relays->n ? "; " : " none; ");
	if (!relays->connected)
		fprintf(to, "without relays no links connect the job\n");
	else
		fprintf(to, "%.6g GB/s without relays: %.3g times that\n", frac_double(relays->rate) / 1e9,
		    frac_double(sched->achieved) / frac_double(relays->rate));
}

void
summary_print_chosen(FILE *to, const Chosen *chosen)
{
	fprintf(to, "chosen      %s, of %d way%s: %.5g us for %lld bytes, by %s, in chunks of up to %lld bytes\n",
	    chosen->way, chosen->n_ways, chosen->n_ways == 1 ? "" : "s", (double)chosen->time / 1e6,
	    (long long)chosen->bytes, chosen->executor, (long long)chosen->chunk);
	fprintf(to, "least       %.5g us: no algorithm takes less time for %lld bytes\n", (double)chosen->least / 1e6,
	    (long long)chosen->bytes);
}
