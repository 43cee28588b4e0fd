/* What a batch prints. */
#include "verb/batch/batch.h"
#include "verb/progress.h"

#include <string.h>

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
	fprintf(to, " GPUs    sets");
	for (int s = 0; s < b->n_sets; s++) {
		SetClass class = batch_class(b, s);
		if (class.disconnected || k.n_columns == MOST_COLUMNS || column_of(&k, class.links) < k.n_columns)
			continue;
		const char *title = k.n_columns ? "on" : "isomorphism classes on";
		k.links[k.n_columns] = class.links;
		k.width[k.n_columns++] = fprintf(to, "  %s %s", title, link_classes_text(class.links).text) - 2;
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

/* A line for each schedule: how many jobs it is for, its size and rate. */
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
			fprintf(to, "%7d  %5d  %5d  %11.6g  %.3f  %s%s\n", jobs, r->trees, r->depth,
			    frac_double(r->rate) / 1e9, frac_double(r->rate) / frac_double(r->bound),
			    b->plan[p].file, r->kept ? ", kept" : "");
	}
}

static void
print_index(FILE *to, const Batch *b, const Index *index)
{
	int jobs[N_COLLECTIVES] = { 0 };
	fprintf(to, "index       %d jobs:", index->n_entries);
	for (int i = 0; i < index->n_entries; i++)
		jobs[index->entry[i].coll]++;
	for (int c = 0; c < N_COLLECTIVES; c++)
		if (jobs[c])
			fprintf(to, " %s %d", collective_name((Collective)c), jobs[c]);
	fprintf(to, "; %.4g MB\n", (double)b->index_bytes / 1e6);
}

/* How many of the schedules are for what is left of the machine, and how many losses change no job. */
static void
print_failures(FILE *to, const Batch *b, const Index *index)
{
	int plans = 0, same = 0;
	if (b->n_machines < 2)
		return;
	for (int p = 0; p < b->n_plans; p++)
		plans += b->plan[p].set >= b->n_sets && b->result[p].trees;
	for (int i = 0; index && i < index->n_changes; i++)
		same += strcmp(index->change[i].file, "index.json") == 0;
	fprintf(to, "failures    %d single losses: %d schedules more", b->n_machines - 1, plans);
	if (index)
		fprintf(to, "; %d of them change no job", same);
	fprintf(to, "\n");
}

/* How many there are, and the lowest rate divided by its bound. */
static void
print_schedules(FILE *to, const Batch *b)
{
	int planned = 0, kept = 0, lowest = -1;
	double least = 2;
	for (int p = 0; p < b->n_plans; p++) {
		const BatchResult *r = &b->result[p];
		double ratio = r->trees ? frac_double(r->rate) / frac_double(r->bound) : 2;
		planned += r->trees && !r->kept;
		kept += r->kept;
		lowest = ratio < least ? p : lowest;
		least = ratio < least ? ratio : least;
	}
	fprintf(to, "schedules   %d of %d: %d planned, %d kept", planned + kept, b->n_plans, planned, kept);
	if (b->n_shards > 1)
		fprintf(to, "; part %d of %d, no index yet", b->shard + 1, b->n_shards);
	fprintf(to, "\n");
	if (lowest >= 0)
		fprintf(to, "ratio       at least %.3f of the bound, in %s\n", least, b->plan[lowest].file);
}

void
batch_print(FILE *to, const Batch *b, bool verbose, const Index *index)
{
	int disconnected = 0;
	for (int s = 0; s < b->n_sets; s++)
		disconnected += batch_class(b, s).disconnected;
	fprintf(to, "machine     ");
	print_name(to, b->machine->name);
	fprintf(to, ", %d GPUs\n", b->machine->n_ranks);
	print_classes(to, b);
	if (disconnected)
		fprintf(to, "left out    %d sets that the links do not connect\n", disconnected);
	print_notes(to, b);
	if (verbose)
		print_plans(to, b, index);
	print_schedules(to, b);
	print_failures(to, b, index);
	if (index)
		print_index(to, b, index);
	fprintf(to, "time        %.2f s\n", (double)progress_ms() / 1000);
}
