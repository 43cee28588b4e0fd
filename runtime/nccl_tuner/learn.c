/* From schedules to costs. NCCL tells a plugin how many ranks and servers a communicator has, and not which GPUs: these
 * are what BLINK_GPUS lists, or all of the machine, if there are as many ranks. For any other number of ranks nothing
 * is known, as for a communicator that the program has split off.
 *
 * A schedule says what NCCL will do only if it is of rings, which NCCL reads from a file of --format nccl-graph. The
 * time of its rings is
 *
 *     least + latency + bytes / rate        8.4 µs + 14 hops of 3.4 µs + 64 MiB / 85.7 GB/s = 839 µs
 *
 * where `least` is what NCCL counts for any call by ring and Simple, and the others are of the schedule. */
#include "nccl_tuner/tuner.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NCCL's constant for a call by ring and Simple, µs: versions before 5 of the interface do not give it. */
static const double LEAST = 8.4;

/* The job, and what is looked for. */
struct learning {
	struct tuner *tuner;
	struct library *lib;
	struct job job;
};

/* ---- the job ---- */

/* The GPUs of a list, as texts; false: not one for each rank. */
static Status
split_gpus(Ctx *ctx, const char *list, int n, const char ***out, bool *right)
{
	int i = 0;
	TRY(NEW(ctx, *out, n));
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL, i++) {
		if (i < n && !((*out)[i] = arena_text(&ctx->run, at, strcspn(at, ","))))
			return fail_memory(ctx);
	}
	*right = i == n;
	return OK;
}

/* Which GPUs are the ranks? Says so in `what` where it cannot be told. */
static Status
find_gpus(struct learning *l, const struct tuner_request *ask, bool *known)
{
	struct tuner *t = l->tuner;
	const char **gpu;
	int *server, of_machine = library_gpus(l->lib, &l->job);
	*known = false;
	TRY(NEW(&t->ctx, server, ask->n_ranks));
	for (int r = 0; r < ask->n_ranks; r++)
		server[r] = (int)((int64_t)r * ask->n_servers / ask->n_ranks);
	l->job.server = server;
	if (ask->gpus && *ask->gpus) {
		TRY(split_gpus(&t->ctx, ask->gpus, ask->n_ranks, &gpu, known));
		l->job.gpu = gpu;
		if (*known)
			return OK;
	}
	*known = of_machine == 0 || of_machine == ask->n_ranks;
	l->job.gpu = NULL;
	if (!*known)
		snprintf(t->what, sizeof t->what, "%d ranks, of a machine with %d GPUs: BLINK_GPUS does not say which "
		    "GPUs they have", ask->n_ranks, of_machine);
	return OK;
}

static Status
state_machine(struct learning *l, const char *machine)
{
	struct stated *stated;
	if (!machine || !*machine)
		return OK;
	if (!machine_valid(machine) || strlen(machine) >= MACHINE_BYTES)
		return fail(&l->tuner->ctx, USAGE, "BLINK_MACHINE: %.80s: want a name, or 12 hex digits of a digest",
		    machine);
	TRY(NEW(&l->tuner->ctx, stated, 1));
	strcpy(stated->machine, machine);
	l->job.stated = stated;
	l->job.n_stated = 1;
	return OK;
}

/* ---- costs ---- */

/* Servers that ranks of a schedule are in. */
static int
count_servers(const Topology *topo)
{
	int n = 0;
	for (int r = 0; r < topo->n_ranks; r++) {
		int q = 0;
		while (topo->vertex[q].node != topo->vertex[r].node)
			q++;
		n += q == r;
	}
	return n;
}

/* Nothing, where NCCL would run something else than the schedule. */
static Status
add_costs(struct learning *l, int func, const Choice *choice)
{
	struct tuner *t = l->tuner;
	const Schedule *sched = choice->sched;
	int64_t latency;
	if (!sched || strcmp(sched->algorithm, "ring") != 0 || sched->n_parts > 0 ||
	    count_servers(sched->topo) != l->job.n_servers)
		return OK;
	TRY(sched_latency(&t->reading, sched, &latency));
	t->cost[func][t->n[func]++] = (struct ring_costs){ .from = choice->from, .to = choice->to,
		.latency = (double)latency / 1e3, .rate = frac_double(sched->achieved) / 1e6 };
	return OK;
}

/* Rings have the same costs from every root: those of the first that the library has. */
static Status
choose(struct learning *l, Collective coll, int64_t bytes, Choice *out)
{
	int n_roots = collective_rooted(coll) ? l->job.n_ranks : 1;
	Status status = OK;
	out->sched = NULL;
	for (int root = 0; root < n_roots && status == OK && !out->sched; root++)
		status = library_choose(&l->tuner->reading, l->lib, &l->job, coll, root, bytes, out);
	return status;
}

static Status
learn_collective(struct learning *l, int func, Collective coll)
{
	struct tuner *t = l->tuner;
	Status status = OK;
	Choice choice = { .to = 0 };
	while (status == OK && choice.to < INT64_MAX && t->n[func] < RING_RANGES) {
		ctx_init(&t->reading);
		status = choose(l, coll, choice.to + 1, &choice);
		if (status == OK)
			status = add_costs(l, func, &choice);
		if (status != OK)
			fail(&t->ctx, status, "%s", t->reading.error.text);
		ctx_free(&t->reading);
	}
	return status;
}

static void
describe(struct tuner *t, int n_ranks)
{
	size_t used = (size_t)snprintf(t->what, sizeof t->what, "%d ranks: ", n_ranks), before = used;
	const char *const name[] = {
#define X(func, number, coll) collective_name(coll),
		NCCL_FUNC_LIST(X)
#undef X
	};
	for (int func = 0; func < N_NCCL_FUNCS; func++) {
		if (t->n[func] == 0)
			continue;
		const struct ring_costs *cost = &t->cost[func][t->n[func] - 1];
		used += (size_t)snprintf(t->what + used, sizeof t->what - used, "%s%s %.4g GB/s after %.4g us",
		    used > before ? ", " : "rings for ", name[func], cost->rate / 1e3, t->least + cost->latency);
	}
	if (used == before)
		snprintf(t->what + used, sizeof t->what - used, "no schedule of rings for them in BLINK_SCHEDULES");
}

static Status
learn(struct learning *l, const struct tuner_request *ask)
{
	bool known;
	TRY(state_machine(l, ask->machine));
	TRY(find_gpus(l, ask, &known));
	if (!known)
		return OK;
#define X(func, number, coll) TRY(learn_collective(l, func, coll));
	NCCL_FUNC_LIST(X)
#undef X
	describe(l->tuner, ask->n_ranks);
	return OK;
}

Status
tuner_learn(struct tuner *out, const struct tuner_request *ask)
{
	struct learning l = { .tuner = out, .job = { .n_ranks = ask->n_ranks, .n_servers = ask->n_servers } };
	ctx_init(&out->ctx);
	out->least = ask->least > 0 ? ask->least : LEAST;
	snprintf(out->what, sizeof out->what, "BLINK_SCHEDULES names nothing");
	if (!ask->schedules || !*ask->schedules || ask->n_ranks < 2 || ask->n_servers < 1)
		return OK;
	TRY(library_open(&out->ctx, ask->schedules, 0, &l.lib));
	Status status = learn(&l, ask);
	library_close(l.lib);
	if (status != OK)
		memset(out->n, 0, sizeof out->n);
	return status;
}

void
tuner_free(struct tuner *tuner)
{
	ctx_free(&tuner->ctx);
}

const struct ring_costs *
tuner_costs(const struct tuner *tuner, int func, size_t bytes)
{
	if (func < 0 || func >= N_NCCL_FUNCS || bytes > INT64_MAX)
		return NULL;
	for (int i = 0; i < tuner->n[func]; i++) {
		const struct ring_costs *cost = &tuner->cost[func][i];
		if (cost->from <= (int64_t)bytes && (int64_t)bytes <= cost->to)
			return cost;
	}
	return NULL;
}

double
tuner_time(const struct tuner *tuner, const struct ring_costs *cost, size_t bytes, int ops)
{
	return (tuner->least + cost->latency) * (ops > 1 ? ops : 1) + (double)bytes / cost->rate;
}
