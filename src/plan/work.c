/* Estimates of what packers take. Their factors are from times, beside which tests/bench/packers.py prints them. What
 * a packer takes differs by an order of magnitude, as it may end at once: an estimate is of the slow ones. */
#include "plan/work.h"

#include <time.h>

static const double MOST_SECONDS = 5;	/* of one row, by its estimate */
static const double MOST_UNEQUAL = 3.2;	/* of trees over unequal servers, where edges are not many */
static const double MOST_PARENTS = 18;	/* of ranks that move over direct links: ten tries of 2^27 looks each */

/* Each edge of the trees of some ranks is written down. */
double
work_edges(const Planning *in)
{
	return 5e-7 * in->topo->n_ranks * in->topo->n_ranks;
}

/* Trees over unequal servers: of an allreduce five times, an allgather's and its own, of any lengths and of one, which
 * have about as many edges over few ranks as over many. */
double
work_unequal(const Planning *in)
{
	double edges = work_edges(in), each = 8e-3 * in->topo->n_ranks;
	each = each < MOST_UNEQUAL ? each : MOST_UNEQUAL;
	return in->ask->coll == ALLREDUCE && each > edges ? each : edges;
}

/* A few lists of slots, and the edges of a few trees. */
double
work_rooted(const Planning *in)
{
	return 1e-4 * in->topo->n_ranks;
}

/* The same some times. */
double
work_rooted_below(const Planning *in)
{
	return 10 * work_rooted(in);
}

/* Searches from each rank over all links. */
double
work_searches(const Planning *in)
{
	return 3e-8 * in->topo->n_ranks * in->topo->n_links;
}

/* Two searches from each rank in a table of all pairs, once for all ranks, and some dozen times for a few. */
double
work_pairs(const Planning *in)
{
	double n = in->topo->n_ranks;
	return 3.5e-8 * n * n * n;
}

/* Searches over all links, a dozen times. */
double
work_balanced(const Planning *in)
{
	return 12 * work_searches(in);
}

/* A linear program of paths, priced by such searches. */
double
work_paths(const Planning *in)
{
	return 1e-5 * in->topo->n_ranks * in->topo->n_links;
}

/* Each link of a tree is looked for by flows, which are longer through switches. An allreduce whose links have
 * directions that differ divides them by a linear program. */
double
work_flows(const Planning *in)
{
	const Ask *ask = in->ask;
	bool rooted = collective_rooted(ask->coll), direct = in->topo->n_vertices == in->topo->n_ranks;
	return (!direct ? 4e-6 : rooted ? 2e-7 : ask->coll == ALLREDUCE ? 4e-6 : 2e-6)
	    * in->topo->n_ranks * in->topo->n_links;
}

/* Over direct links tries at several rates and depths, each of which ends after as many looks; through switches units
 * are few. */
double
work_parents(const Planning *in)
{
	double flows = work_flows(in);
	if (in->topo->n_vertices > in->topo->n_ranks)
		return work_searches(in);
	return flows < MOST_PARENTS ? flows : MOST_PARENTS;
}

/* Rows of a linear program: one for each orbit of links, of which there are about as many for each rank. */
static double
orbit_links(const Planning *in)
{
	return (double)in->topo->n_links * in->sym->n_representatives / in->topo->n_ranks;
}

/* Steps grow like rows, and each like what of the basis is dense; then trees of all images are written down. */
double
work_program(const Planning *in)
{
	double rows = orbit_links(in), trees = collective_demands(in->ask->coll, in->topo->n_ranks);
	return 3e-5 * rows * rows + 5e-7 * in->topo->n_ranks * trees;
}

/* The cheapest tree over routes through switches is looked for in a table of all pairs of ranks. */
static double
table_searches(const Planning *in)
{
	const Topology *topo = in->topo;
	const Collective coll = in->ask->coll;
	if (topo->n_vertices == topo->n_ranks || (collective_has_blocks(coll) && collective_rooted(coll)))
		return 0;
	return 3e-6 * topo->n_ranks * topo->n_ranks;
}

double
work_programs(const Planning *in)
{
	return work_program(in) + table_searches(in);
}

double
work_steps(const Planning *in)
{
	double steps = 3e-6 * WORK_SOON_PIVOTS * in->sym->n_representatives, all = work_program(in);
	return steps < all ? steps : all;
}

/* Trees of all ranks, some times of an allreduce. */
double
work_homes(const Planning *in)
{
	return in->topo->n_vertices > in->topo->n_ranks ? work_edges(in) : 1.01 * work_balanced(in);
}

double
work_entries(const Planning *in)
{
	return (in->ask->coll == ALLREDUCE ? 8 : 1) * work_edges(in);
}

bool
work_is_long(double seconds)
{
	return seconds > MOST_SECONDS;
}

Status
work_check_soon(Ctx *ctx, const Planning *in)
{
	if (!in->soon || !work_is_long(work_programs(in)))
		return OK;
	return fail(ctx, LIMIT, "%s: %s over %d ranks, %d of them with no image: a linear program of minutes",
	    in->topo->name, in->row->trees, in->topo->n_ranks, in->sym->n_representatives);
}

double
work_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double
work_lap(Ctx *ctx)
{
	double now = work_seconds(), took = now - ctx->told;
	ctx->told = now;
	return took > 0 ? took : 0;
}

void
work_tell(Ctx *ctx, const Topology *topo, const Packing *pack, const char *way)
{
	if (!ctx->log || topo->n_ranks <= LIMIT_ILP_RANKS)
		return;
	int n = !pack ? 0 : pack->n_in_trees ? pack->n_in_trees : pack->n_trees;
	double took = work_lap(ctx);
	if (n == 0)
		log_verbose(ctx, "%s: no trees, %.3g s", way, took);
	else if (pack->symmetry && pack->symmetry->size > 1)
		log_verbose(ctx, "%s: %d tree%s, each with %d images, %.3g s", way, n, n == 1 ? "" : "s",
		    pack->symmetry->size, took);
	else
		log_verbose(ctx, "%s: %d tree%s, %.3g s", way, n, n == 1 ? "" : "s", took);
}

void
work_done(Ctx *ctx, const Topology *topo, const char *step)
{
	if (ctx->log && topo->n_ranks > LIMIT_ILP_RANKS)
		log_verbose(ctx, "%s: %.3g s", step, work_lap(ctx));
}
