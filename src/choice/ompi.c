#include "choice/ompi.h"
#include "plan/plan.h"

#include <string.h>

/* Of Open MPI: the number of a collective (COLLTYPE in coll_base_functions.h), and of an algorithm for it. */
static const struct row {
	Collective coll;
	int id, number;
	const char *name;
	const char *algorithm;	/* ours */
	int radix;
	RankOrder order;	/* in which ours sends what theirs does; of powers of two */
	bool segments;		/* it divides messages into segments */
} rows[] = {
	{ ALLREDUCE, 2, 3, "recursive_doubling", "recursive-doubling", 0, ORDER_RANKS, false },
	{ ALLREDUCE, 2, 4, "ring", "ring", 0, ORDER_RANKS, false },
	{ ALLREDUCE, 2, 6, "rabenseifner", "halving-doubling", 0, ORDER_RANKS, false },
	{ BROADCAST, 7, 1, "basic_linear", "direct", 0, ORDER_RANKS, false },
	{ BROADCAST, 7, 3, "pipeline", "chain", 0, ORDER_RANKS, true },
	{ BROADCAST, 7, 6, "binomial", "knomial", 2, ORDER_BITS, true },
	{ BROADCAST, 7, 7, "knomial", "knomial", 4, ORDER_RANKS, true },
	{ BROADCAST, 7, 9, "scatter_allgather_ring", "scatter-allgather", 0, ORDER_RANKS, false },
	{ REDUCE, 11, 3, "pipeline", "chain", 0, ORDER_RANKS, true },
	{ REDUCE, 11, 5, "binomial", "knomial", 2, ORDER_RANKS, true },
	{ ALLGATHER, 0, 2, "bruck", "bruck", 2, ORDER_BACKWARDS, false },
	{ ALLGATHER, 0, 3, "recursive_doubling", "halving-doubling", 0, ORDER_BITS, false },
	{ ALLGATHER, 0, 4, "ring", "ring", 0, ORDER_RANKS, false },
	{ REDUCESCATTER, 12, 2, "recursive_halving", "halving-doubling", 0, ORDER_BITS, false },
	{ REDUCESCATTER, 12, 3, "ring", "ring", 0, ORDER_RANKS, false },
	{ GATHER, 9, 1, "basic_linear", "direct", 0, ORDER_RANKS, false },
	{ GATHER, 9, 2, "binomial", "knomial", 2, ORDER_RANKS, false },
	{ SCATTER, 15, 1, "basic_linear", "direct", 0, ORDER_RANKS, false },
	{ SCATTER, 15, 2, "binomial", "knomial", 2, ORDER_RANKS, false },
	{ ALLTOALL, 3, 0, "Open MPI chooses", "direct", 0, ORDER_RANKS, false },	/* linear or pairwise */
	{ ALLTOALL, 3, 3, "modified_bruck", "bruck", 2, ORDER_RANKS, false },
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* Open MPI's allgather by recursive doubling is for powers of two; for other numbers it takes another. */
static bool
serves(const struct row *row, int n_ranks)
{
	return row->coll != ALLGATHER || row->number != 3 || (n_ranks & (n_ranks - 1)) == 0;
}

static Ask
ask_of(const struct row *row, const Job *job)
{
	Ask ask = job->ask;
	ask.algorithm = row->algorithm;
	ask.radix = row->radix;
	ask.order = row->order;
	return ask;
}

static const struct row *
row_of(const Ask *ask)
{
	for (int i = 0; i < N_ROWS; i++)
		if (rows[i].coll == ask->coll && rows[i].radix == ask->radix
		    && strcmp(rows[i].algorithm, ask->algorithm) == 0)
			return &rows[i];
	return NULL;
}

static void
add_rule(const Choices *choices, const ChoicePoint *point, OmpiRules *out)
{
	const struct row *row = row_of(&choices->candidate[point->best].job.ask);
	const OmpiRule *last = out->n ? &out->rule[out->n - 1] : NULL;
	int64_t segment = row->segments && point->chunk < point->m ? point->chunk : 0;
	if (!last || last->algorithm != row->number || last->segment != segment)
		out->rule[out->n++] = (OmpiRule){ point->m, row->number, row->name, segment, point->time,
			point->least };
}

Status
ompi_rules_find(Ctx *ctx, const Job *job, const SimParameters *p, const int64_t *size, int n_sizes, OmpiRules *out)
{
	Ask ask[N_ROWS];
	Choices *choices;
	ChoicePoint point;
	int n = 0;
	*out = (OmpiRules){ .coll = job->ask.coll, .n_ranks = job->topo->n_ranks };
	for (int i = 0; i < N_ROWS; i++)
		if (rows[i].coll == job->ask.coll && serves(&rows[i], job->topo->n_ranks))
			ask[n++] = ask_of(&rows[i], job);
	Status status = choice_prepare_of(ctx, job, ask, n, p, &choices);
	if (status == INFEASIBLE) {
		ctx->error = (Error){ .status = OK };
		return OK;
	}
	TRY(status);
	TRY(NEW(ctx, out->rule, OMPI_RULES));
	for (int i = 0; i < n_sizes && out->n < OMPI_RULES; i++) {
		TRY(choice_of_size(ctx, choices, size[i], &point));
		add_rule(choices, &point, out);
	}
	return OK;
}

/* ---- the file ---- */

static int
id_of(Collective coll)
{
	int i = 0;
	while (rows[i].coll != coll)
		i++;
	return rows[i].id;
}

static void
put_rule(Text *out, int64_t from, int algorithm, int64_t segment, const char *comment)
{
	text_printf(out, "%lld %d 0 %lld # %s\n", (long long)from, algorithm, (long long)segment, comment);
}

/* What messages and numbers of ranks without a rule get: Open MPI's own choice. */
static void
put_own(Text *out, int n_ranks)
{
	text_printf(out, "%d # ranks and more\n1 # rule\n", n_ranks);
	put_rule(out, 0, 0, 0, "Open MPI chooses");
}

/* Of 0 bytes a message seems to be whose data is in place: Open MPI looks at what a rank sends. */
static void
put_ranks(Text *out, const OmpiRules *rules)
{
	text_printf(out, "%d # ranks\n%d # rules: from bytes, algorithm, 0, bytes of a segment\n", rules->n_ranks,
	    rules->n + 1);
	put_rule(out, 0, 0, 0, "Open MPI chooses");
	for (int i = 0; i < rules->n; i++)
		put_rule(out, i ? rules->rule[i].from : 1, rules->rule[i].algorithm, rules->rule[i].segment,
		    rules->rule[i].name);
}

/* Those of a collective begin at rules[0]; n: how many. Between numbers of ranks that are not neighbours Open MPI's own
 * choice. */
static void
put_collective(Text *out, const OmpiRules *rules, int n)
{
	int entries = rules[0].n_ranks > 1;
	for (int i = 0; i < n; i++)
		entries += i + 1 < n && rules[i + 1].n_ranks == rules[i].n_ranks + 1 ? 1 : 2;
	text_printf(out, "\n%d # %s\n%d # numbers of ranks\n", id_of(rules[0].coll), collective_name(rules[0].coll),
	    entries);
	put_own(out, 0);
	for (int i = 0; i < n; i++) {
		put_ranks(out, &rules[i]);
		if (!(i + 1 < n && rules[i + 1].n_ranks == rules[i].n_ranks + 1))
			put_own(out, rules[i].n_ranks + 1);
	}
}

void
ompi_rules_write(const OmpiRules *rules, int n, const char *machine, Text *out)
{
	int collectives = 0;
	for (int i = 0; i < n; i++)
		collectives += i == 0 || rules[i].coll != rules[i - 1].coll;
	text_printf(out, "# Rules for Open MPI, 4.1 and 5.0: mpirun --mca coll_tuned_use_dynamic_rules 1\n"
	    "# --mca coll_tuned_dynamic_rules_filename FILE. For %s, rank i of a job on its i-th GPU.\n"
	    "%d # collectives\n", machine, collectives);
	for (int i = 0, end; i < n; i = end) {
		for (end = i; end < n && rules[end].coll == rules[i].coll; end++)
			;
		put_collective(out, &rules[i], end - i);
	}
}
