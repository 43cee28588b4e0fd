/* Parameters of an executor from measured times: a search along one parameter after the other.
 *
 * What is made small is the mean of |log (simulated / measured)|, each at most LOG_MOST: so a measurement that
 * something else disturbed does not draw the rest. Every parameter is tried some times larger and smaller, the factors
 * becoming smaller once none of them helps. Simulated times have jumps, by which derivatives say little. */
#include "simulate/fit.h"

#include <math.h>
#include <stdlib.h>

#define LOG_MOST 2.0
#define WITHIN 0.15
#define GAIN 1e-5			/* less of it is none */

static const double factors[] = { 1.6, 1.25, 1.1, 1.04 };

enum { N_FACTORS = sizeof factors / sizeof *factors, ROUNDS = 4, FREE_MOST = 32 };

/* A parameter that is looked for. */
struct free_one {
	int64_t *value, least, most;
};

struct fitting {
	Ctx *ctx;
	const SimMeasured *measured;
	int n;
	SimParameters *p;
	struct free_one one[FREE_MOST];
	int n_free;
};

static const struct {
	size_t at;
	int64_t first;			/* in the place of 0 */
	bool shared;
} searched[] = {
	{ offsetof(SimParameters, call), 1000, true }, { offsetof(SimParameters, task), 300, true },
	{ offsetof(SimParameters, lane), 50, true }, { offsetof(SimParameters, wake), 3000, true },
	{ offsetof(SimParameters, turn), 1000, true }, { offsetof(SimParameters, reduce_step), 100, true },
	{ offsetof(SimParameters, exchange), 60 * BYTES_PER_GB, true },
	{ offsetof(SimParameters, memory_alone), 40 * BYTES_PER_GB, true },
	{ offsetof(SimParameters, stream), 40 * BYTES_PER_GB, true },
	{ offsetof(SimParameters, cache), 32 << 20, true },
	{ offsetof(SimParameters, memory), 20 * BYTES_PER_GB, true },
	{ offsetof(SimParameters, cached), 50 * BYTES_PER_GB, true },
	{ offsetof(SimParameters, reduce), 60 * BYTES_PER_GB, true },
	{ offsetof(SimParameters, call), 1000, false }, { offsetof(SimParameters, step), 1000, false },
};

static void
add_free(struct fitting *f, int64_t *value, int64_t least, int64_t most, int64_t first)
{
	if (*value == 0)
		*value = first;
	f->one[f->n_free++] = (struct free_one){ value, least, most };
}

/* Classes of links that any of the schedules uses. */
static unsigned
classes_used(const struct fitting *f)
{
	unsigned classes = 0;
	for (int i = 0; i < f->n; i++) {
		const SimPlan *plan = f->measured[i].plan;
		for (int h = 0; h < plan->n_hops; h++)
			for (int k = 0; k < plan->hop[h].n_links; k++)
				classes |= 1u << plan->sched->topo->link[plan->hop[h].link[k]].class;
	}
	return classes;
}

static void
find_free(struct fitting *f)
{
	bool shared = f->p->by_memory;
	unsigned classes = shared ? 0 : classes_used(f);
	for (size_t k = 0; k < sizeof searched / sizeof *searched; k++) {
		const SimParameter *row = sim_parameters;
		while (row->at != searched[k].at)
			row++;
		if (searched[k].shared == shared)
			add_free(f, (int64_t *)((char *)f->p + row->at), 1, row->most, searched[k].first);
	}
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		if (!(classes >> c & 1))
			continue;
		add_free(f, &f->p->efficiency[c], 1, PPM, PPM);
		add_free(f, &f->p->latency[c], 1, LIMIT_LATENCY_NS, 1000);
	}
}

static Status
simulate_one(const struct fitting *f, const SimMeasured *measured, double *ratio)
{
	ArenaMark mark = arena_mark(&f->ctx->run);
	const SimAsk ask = { .p = *f->p, .m = measured->m, .timed = true };
	SimResult result;
	TRY(sim_run_best(f->ctx, measured->plan, &ask, &result));
	arena_release(&f->ctx->run, mark);
	*ratio = (double)(result.time > 0 ? result.time : 1) / (double)measured->time;
	return OK;
}

/* At most `most` is of interest. */
static Status
look(const struct fitting *f, double most, SimFit *out)
{
	double sum = 0, worst = 0;
	*out = (SimFit){ .worst = 0 };
	for (int i = 0; i < f->n && sum <= most * f->n; i++) {
		double ratio;
		TRY(simulate_one(f, &f->measured[i], &ratio));
		double off = fabs(log(ratio));
		sum += off < LOG_MOST ? off : LOG_MOST;
		out->within += fabs(ratio - 1) <= WITHIN;
		if (off > worst) {
			worst = off;
			out->worst = i;
			out->ratio = ratio;
		}
	}
	out->within /= f->n;
	out->off = sum / f->n;
	return OK;
}

static Status
try_value(const struct fitting *f, const struct free_one *one, double value, SimFit *best, bool *better)
{
	int64_t before = *one->value;
	SimFit fit;
	value = floor(value + 0.5);
	value = value < (double)one->least ? (double)one->least : value > (double)one->most ? (double)one->most : value;
	*one->value = (int64_t)value;
	*better = false;
	if (*one->value == before)
		return OK;
	TRY(look(f, best->off, &fit));
	*better = fit.off < best->off - GAIN;
	if (*better)
		*best = fit;
	else
		*one->value = before;
	return OK;
}

/* Of all parameters once. A direction that helps is kept to. */
static Status
search(const struct fitting *f, double factor, SimFit *best, bool *any)
{
	*any = false;
	for (int k = 0; k < f->n_free; k++) {
		const struct free_one *one = &f->one[k];
		bool better = true;
		int n = 0;
		for (; better; n += better)
			TRY(try_value(f, one, (double)*one->value * factor, best, &better));
		for (better = n == 0; better; n += better)
			TRY(try_value(f, one, (double)*one->value / factor, best, &better));
		*any = *any || n > 0;
	}
	return OK;
}

Status
sim_fit(Ctx *ctx, const SimMeasured *measured, int n, SimParameters *p, SimFit *out)
{
	struct fitting f = { .ctx = ctx, .measured = measured, .n = n, .p = p };
	find_free(&f);
	TRY(look(&f, INFINITY, out));
	for (int k = 0; k < N_FACTORS; k++) {
		bool any = true;
		for (int round = 0; round < ROUNDS && any; round++)
			TRY(search(&f, factors[k], out, &any));
	}
	return look(&f, INFINITY, out);
}
