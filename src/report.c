/* What people read: the summary of a schedule, and tables. */
#include "report.h"

#include "watch.h"

#include <string.h>

void
report_pareto(const Bound *bound, const ParetoPoint *point, int n)
{
	printf("trees  depth    rate GB/s  ratio to the bound of %.6g GB/s\n", frac_double(bound->rate) / 1e9);
	for (int i = 0; i < n; i++)
		printf("%5d  %5d  %11.6g  %.3f\n", point[i].trees, point[i].depth, frac_double(point[i].rate) / 1e9,
		    frac_double(point[i].rate) / frac_double(bound->rate));
}

/* "pcie,qpi" */
static const char *
classes_text(unsigned classes, char text[64])
{
	size_t n = 0;
	text[0] = 0;
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (classes >> c & 1)
			n += (size_t)snprintf(text + n, 64 - n, "%s%s", n ? "," : "", link_class_name((LinkClass)c));
	return text;
}

/* Rates, and what a part waits for; up to which size the part that waits least goes alone. */
static void
print_parts(FILE *to, const Schedule *sched, const PartEnd *split)
{
	char name[64];
	int least = 0;
	fprintf(to, "hybrid     ");
	for (int i = 0; i < sched->n_parts; i++) {
		fprintf(to, "%s %s %.6g", i ? " +" : "", classes_text(sched->part[i].classes, name), frac_double(sched->part[i].rate) / 1e9);
		least = sched->part[i].setup < sched->part[least].setup ? i : least;
	}
	fprintf(to, " GB/s");
	for (int i = 0; i < sched->n_parts; i++)
		if (sched->part[i].setup > 0)
			fprintf(to, "; %.6g us to set up %s", (double)sched->part[i].setup / 1e3, classes_text(sched->part[i].classes, name));
	if (sched->n_parts > 1 && split[sched->n_parts - 1].from > 0)
		fprintf(to, "; messages up to %.4g MB go over %s alone", (double)split[sched->n_parts - 1].from / 1e6,
		    classes_text(sched->part[least].classes, name));
	fprintf(to, "\n");
}

/* A line for each size: bytes of each part, time, rate, and what the parts behind the first add to that. */
static void
print_sizes(FILE *to, const Schedule *sched, const PartEnd *split, const Sizes *sizes)
{
	int64_t end[N_LINK_CLASSES];
	char name[64];
	fprintf(to, "%12s", "bytes");
	for (int i = 0; i < sched->n_parts; i++)
		fprintf(to, "  %12s", classes_text(sched->part[i].classes, name));
	fprintf(to, "  %10s  %8s%s\n", "time us", "GB/s", sched->n_parts ? "      gain" : "");
	for (int s = 0; s < sizes->n; s++) {
		int64_t m = sizes->m[s];
		double seconds = split_seconds(sched, m), rate = (double)m / seconds / 1e9;
		fprintf(to, "%12lld", (long long)m);
		if (sched->n_parts)
			split_message(split, sched->n_parts, m, end);
		for (int i = 0; i < sched->n_parts; i++)
			fprintf(to, "  %12lld", (long long)(end[i] - (i ? end[i - 1] : 0)));
		fprintf(to, "  %10.6g  %8.6g", seconds * 1e6, rate);
		if (sched->n_parts) {
			const Part *first = &sched->part[0];
			double alone = (double)first->setup / 1e9 + (double)m / frac_double(first->rate);
			fprintf(to, "  %8.4g", alone > seconds * (1 + 1e-12) ? rate - (double)m / alone / 1e9 : 0);
		}
		fprintf(to, "\n");
	}
}

Status
report_summary(Ctx *ctx, FILE *to, const Sizes *sizes, const Schedule *sched)
{
	PartEnd *split = NULL;
	const Topology *topo = sched->topo;
	unsigned classes = 0;
	int depth;
	TRY(sched_depth(ctx, sched, &depth));
	for (int l = 0; l < topo->n_links; l++)
		classes |= 1u << topo->link[l].class;
	fprintf(to, "topology    %s, %d ranks:", topo->name, topo->n_ranks);
	for (int r = 0; r < topo->n_ranks && r < 16; r++)
		fprintf(to, " %s", topo->vertex[r].id);
	fprintf(to, "%s; links:", topo->n_ranks > 16 ? " ..." : "");
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (classes >> c & 1)
			fprintf(to, " %s", link_class_name((LinkClass)c));
	fprintf(to, "\ncollective  %s", collective_name(sched->coll));
	if (sched->root >= 0)
		fprintf(to, " from root %d (%s)", sched->root, topo->vertex[sched->root].id);
	fprintf(to, "\ntrees       %d, depth %d\n", sched->n_segments, depth);
	if (sched->n_parts) {
		TRY(sched_split(ctx, topo->name, sched, &split));
		print_parts(to, sched, split);
	}
	double unit = (double)topo_link_unit(topo);
	fprintf(to, "rate        %.6g GB/s algorithm bandwidth", frac_double(sched->achieved) / 1e9);
	if (frac_double(sched->achieved) < 1000 * unit)
		fprintf(to, " = %.4g x %.6g GB/s", frac_double(sched->achieved) / unit, unit / 1e9);
	static const char *const proofs[] = { "a cut", "a partition", "prices", "lengths" };
	fprintf(to, "\nbound       %.6g GB/s, proven by %s\n", frac_double(sched->bound.rate) / 1e9, proofs[sched->bound.kind]);
	double ratio = frac_double(sched->achieved) / frac_double(sched->bound.rate);
	/* 1.000 is for what reaches the bound. */
	bool nearly = ratio >= 0.9995 && frac_cmp(sched->achieved, sched->bound.rate) < 0;
	fprintf(to, "ratio       %.*f\n", nearly ? 6 : 3, nearly && ratio > 0.999999 ? 0.999999 : ratio);
	if (sizes->n)
		print_sizes(to, sched, split, sizes);
	return OK;
}

void
report_best(const Request *ask, Frac best)
{
	const char *trees = algorithm_trees(ask->algorithm);
	if (ask->algorithm == ALGORITHM_TREES)
		return;
	if (best.num > 0)
		fprintf(stderr, "best        %.6g GB/s of %s, by the linear program\n", frac_double(best) / 1e9, trees);
	else
		fprintf(stderr, "best        of %s: not proven\n", trees);
}

/* ---- batches ---- */

enum { MOST_COLUMNS = 6 };

/* Classes of sets by the links that they use: a column for each. */
struct columns {
	int n_columns;
	unsigned links[MOST_COLUMNS];
	int width[MOST_COLUMNS];
};

static int
column_of(const struct columns *k, unsigned links)
{
	int c = 0;
	while (c < k->n_columns && k->links[c] != links)
		c++;
	return c;
}

static void
print_classes_row(FILE *to, const struct columns *k, int size, int sets, const int *count)
{
	if (size)
		fprintf(to, "%5d  %6d", size, sets);
	else
		fprintf(to, "  all  %6d", sets);
	for (int c = 0; c < k->n_columns; c++)
		fprintf(to, "  %*d", k->width[c], count[c]);
	fprintf(to, "\n");
}

/* For each number of GPUs: sets, and classes of sets. */
static void
print_classes(FILE *to, const Batch *b)
{
	struct columns k = { 0 };
	int sets = 0, count[MOST_COLUMNS + 1] = { 0 }, all[MOST_COLUMNS + 1] = { 0 };
	char name[64];
	fprintf(to, " GPUs    sets");
	for (int s = 0; s < b->n_sets; s++) {
		SetClass class = batch_class(b, s);
		if (class.apart || k.n_columns == MOST_COLUMNS || column_of(&k, class.links) < k.n_columns)
			continue;
		k.links[k.n_columns] = class.links;
		k.width[k.n_columns++] = fprintf(to, "  classes on %s", classes_text(class.links, name)) - 2;
	}
	fprintf(to, "\n");
	for (int s = 0; s < b->n_sets; s++) {
		SetClass class = batch_class(b, s);
		sets++;
		count[column_of(&k, class.links)] += class.first;
		if (s + 1 < b->n_sets && b->set[s + 1].n == b->set[s].n)
			continue;
		print_classes_row(to, &k, b->set[s].n, sets, count);
		for (int c = 0; c < k.n_columns; c++)
			all[c] += count[c];
		memset(count, 0, sizeof count);
		sets = 0;
	}
	print_classes_row(to, &k, 0, b->n_sets, all);
}

/* Earlier files that were planned anew, and why. */
static void
print_notes(FILE *to, const Batch *b)
{
	enum { MOST = 5 };
	int n = 0;
	for (int p = 0; p < b->n_plans; p++)
		if (*b->result[p].note && n++ < MOST)
			fprintf(to, "replaced    %s\n", b->result[p].note);
	if (n > MOST)
		fprintf(to, "replaced    %d more\n", n - MOST);
}

/* A line for each schedule: for how many jobs it is, and what it is worth. */
static void
print_plans(FILE *to, const Batch *b, const Index *index)
{
	fprintf(to, "   jobs  trees  depth    rate GB/s  ratio  file\n");
	for (int p = 0; p < b->n_plans; p++) {
		const BatchResult *r = &b->result[p];
		int jobs = 0;
		for (int i = 0; index && i < index->n_entries; i++)
			jobs += index->entry[i].file == b->plan[p].file;
		if (r->trees)
			fprintf(to, "%7d  %5d  %5d  %11.6g  %.3f  %s%s\n", jobs, r->trees, r->depth, frac_double(r->rate) / 1e9,
			    frac_double(r->rate) / frac_double(r->bound), b->plan[p].file, r->kept ? ", kept" : "");
	}
}

void
report_batch(FILE *to, const Batch *b, const Index *index, int64_t index_bytes)
{
	int planned = 0, kept = 0, apart = 0, lowest = -1;
	int jobs[N_COLLECTIVES] = { 0 };
	double least = 2;
	for (int s = 0; s < b->n_sets; s++)
		apart += batch_class(b, s).apart;
	for (int p = 0; p < b->n_plans; p++) {
		const BatchResult *r = &b->result[p];
		double ratio = r->trees ? frac_double(r->rate) / frac_double(r->bound) : 2;
		planned += r->trees && !r->kept;
		kept += r->kept;
		lowest = ratio < least ? p : lowest;
		least = ratio < least ? ratio : least;
	}
	fprintf(to, "machine     %s, %d GPUs\n", b->machine->name, b->machine->n_ranks);
	print_classes(to, b);
	if (apart)
		fprintf(to, "left out    %d sets that the links do not connect\n", apart);
	print_notes(to, b);
	if (b->opt->value[OPT_VERBOSE])
		print_plans(to, b, index);
	fprintf(to, "schedules   %d of %d: %d planned, %d kept", planned + kept, b->n_plans, planned, kept);
	if (b->n_shards > 1)
		fprintf(to, "; part %d of %d, no index yet", b->shard + 1, b->n_shards);
	fprintf(to, "\n");
	if (lowest >= 0)
		fprintf(to, "ratio       at least %.3f of the bound, in %s\n", least, b->plan[lowest].file);
	if (index) {
		fprintf(to, "index       %d jobs:", index->n_entries);
		for (int i = 0; i < index->n_entries; i++)
			jobs[index->entry[i].coll]++;
		for (int c = 0; c < N_COLLECTIVES; c++)
			if (jobs[c])
				fprintf(to, " %s %d", collective_name((Collective)c), jobs[c]);
		fprintf(to, "; %.4g MB\n", (double)index_bytes / 1e6);
	}
	fprintf(to, "time        %.2f s\n", (double)watch_ms() / 1000);
}
