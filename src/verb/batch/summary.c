/* What a batch prints. */
#include "verb/batch/batch.h"
#include "verb/progress.h"

#include <string.h>

enum { MOST_COLUMNS = 1 << N_LINK_CLASSES, COLUMNS_OF_TABLE = 6 };

/* Classes of sets by the links that they use: a column for each. */
struct columns {
	int n;
	unsigned links[MOST_COLUMNS];
};

static int
column_of(const struct columns *k, unsigned links)
{
	int c = 0;
	while (c < k->n && k->links[c] != links)
		c++;
	return c;
}

/* In the order in which they come. */
static void
find_columns(const Batch *b, struct columns *k)
{
	k->n = 0;
	for (int s = 0; s < b->n_sets; s++) {
		SetClass class = batch_class(b, s);
		int c = column_of(k, class.links);
		if (!class.disconnected && c == k->n)
			k->links[k->n++] = class.links;
	}
}

static void
print_row(FILE *to, const char *size, int sets, int n, const int *count, const int *width)
{
	fprintf(to, "%5s  %6d", size, sets);
	for (int c = 0; c < n; c++)
		fprintf(to, "  %*d", width[c], count[c]);
	fprintf(to, "\n");
}

/* Columns `first` to first + n - 1, for each number of GPUs. */
static void
print_table(FILE *to, const Batch *b, const struct columns *k, int first, int n)
{
	int sets = 0, count[MOST_COLUMNS + 1] = { 0 }, all[MOST_COLUMNS + 1] = { 0 }, width[COLUMNS_OF_TABLE];
	char size[16];
	fprintf(to, " GPUs    sets");
	for (int c = 0; c < n; c++)
		width[c] = fprintf(to, "  %s %s", c ? "on" : "isomorphism classes on",
		    link_classes_text(k->links[first + c]).text) - 2;
	fprintf(to, "\n");
	for (int s = 0; s < b->n_sets; s++) {
		SetClass class = batch_class(b, s);
		int c = class.disconnected ? MOST_COLUMNS : column_of(k, class.links);
		sets++;
		count[c] += class.first;
		all[c] += class.first;
		if (s + 1 < b->n_sets && b->set[s + 1].n == b->set[s].n)
			continue;
		snprintf(size, sizeof size, "%d", b->set[s].n);
		print_row(to, size, sets, n, count + first, width);
		memset(count, 0, sizeof count);
		sets = 0;
	}
	print_row(to, "all", b->n_sets, n, all + first, width);
}

/* Sets, and classes of sets; more columns than a line has room for are in further tables. */
static void
print_classes(FILE *to, const Batch *b)
{
	struct columns k;
	find_columns(b, &k);
	for (int first = 0; first == 0 || first < k.n; first += COLUMNS_OF_TABLE)
		print_table(to, b, &k, first, k.n - first < COLUMNS_OF_TABLE ? k.n - first : COLUMNS_OF_TABLE);
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
	fprintf(to, "index       %d %s:", index->n_entries, b->tuning ? "entries" : "jobs");
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
