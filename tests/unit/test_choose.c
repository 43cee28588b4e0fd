/* Choice of a schedule: built-in ones of all collectives, forms and numbers of ranks, verified and executed; those of
 * a library. Prints TAP. Arguments: seed, effort: from 100 on up to 2048 ranks. */
#include "buffers.h"
#include "choose/choose.h"

#include <unistd.h>

/* ---- built-in schedules ---- */

enum { ROOM = 2048 };

static int server[ROOM];

/* Ranks on servers in order, dealt out in turn, or at random; each has one. */
static struct job
job_of(int n, int n_servers)
{
	int how = below(3);
	for (int r = 0; r < n; r++)
		server[r] = how == 0 ? (int)((int64_t)r * n_servers / n) : how == 1 || r < n_servers ? r % n_servers
		    : below(n_servers);
	return (struct job){ .n_ranks = n, .server = server, .n_servers = n_servers };
}

static bool
verifies(const struct job *job, Collective coll, bool small)
{
	Ctx ctx;
	Schedule *sched;
	Program *prog;
	int root = below(job->n_ranks);
	ctx_init(&ctx);
	bool good = built_in_schedule(&ctx, job, coll, root, small, &sched) == OK;
	good = good && (job->n_ranks == 1 || sched_verify(&ctx, "built in", sched) == OK);
	good = good && sched_lower(&ctx, sched, &prog) == OK;
	if (!good)
		printf("# %s, %d ranks, %d servers, root %d, small %d: %s\n", collective_name(coll), job->n_ranks,
		    job->n_servers, root, small, ctx.error.text);
	ctx_free(&ctx);
	return good;
}

/* all: also jobs of hundreds of ranks. */
static void
test_verified(bool all)
{
	static const int large[] = { 64, 72, 100, 256, 511 };
	int most = all ? 40 : 24, n_large = all ? 5 : 2;
	for (int c = 0; c < N_COLLECTIVES; c++) {
		bool good = true;
		char what[80];
		for (int n = 1; n <= most && good; n++)
			for (int servers = 1; servers <= n && good; servers += 1 + servers / 3) {
				struct job job = job_of(n, servers);
				good = verifies(&job, (Collective)c, false) && verifies(&job, (Collective)c, true);
			}
		for (int i = 0; i < n_large && good; i++)
			for (int k = 0; k < 3 && good; k++) {
				struct job job = job_of(large[i], k == 0 ? 1 : k == 1 ? large[i] / 8 : large[i]);
				good = verifies(&job, (Collective)c, false) && verifies(&job, (Collective)c, true);
			}
		snprintf(what, sizeof what, "built in %s: verified", collective_name((Collective)c));
		ok(good, what);
	}
}

/* An alltoall of so many has four million trees. */
static void
test_largest(int n)
{
	for (int c = 0; c < N_COLLECTIVES; c++) {
		Ctx ctx;
		Schedule *sched;
		struct job job = job_of(n, c % 2 ? n / 8 : 1);
		char what[80];
		ctx_init(&ctx);
		bool good = built_in_schedule(&ctx, &job, (Collective)c, n - 7, false, &sched) == OK
		    && sched_verify(&ctx, "built in", sched) == OK;
		if (!good)
			printf("# %s\n", ctx.error.text);
		ctx_free(&ctx);
		snprintf(what, sizeof what, "built in %s: %d ranks", collective_name((Collective)c), n);
		ok(good, what);
	}
}

static bool
open_program(Ctx *ctx, const struct job *job, Collective coll, int root, bool small, struct blinkSchedule *s)
{
	Schedule *sched;
	Program *prog;
	*s = (struct blinkSchedule){ 0 };
	s->program = &s->built;
	return built_in_schedule(ctx, job, coll, root, small, &sched) == OK && sched_lower(ctx, sched, &prog) == OK
	    && exec_program(ctx, prog, sched->topo->digest, &s->built) == OK;
}

static bool
runs(const struct job *job, Collective coll, bool small)
{
	Ctx ctx;
	struct blinkSchedule s;
	blinkComm_t comm;
	blinkConfig_t config = { .chunkBytes = 64, .threads = below(4) };
	ctx_init(&ctx);
	bool good = open_program(&ctx, job, coll, below(job->n_ranks), small, &s)
	    && blinkCommCreate(&s, &config, &comm, NULL) == blinkSuccess;
	if (good) {
		for (int i = 0; i < 2 && good; i++)
			good = try_call(comm, s.program, -1);
		blinkCommDestroy(comm);
	}
	ctx_free(&ctx);
	return good;
}

static void
test_executed(void)
{
	for (int c = 0; c < N_COLLECTIVES; c++) {
		bool good = true;
		char what[80];
		for (int n = 1; n <= MOST_RANKS && good; n += 1 + n / 4)
			for (int servers = 1; servers <= n && good; servers += 1 + servers / 2) {
				struct job job = job_of(n, servers);
				good = runs(&job, (Collective)c, false) && runs(&job, (Collective)c, true);
			}
		snprintf(what, sizeof what, "built in %s: executed", collective_name((Collective)c));
		ok(good, what);
	}
}

/* Sums of floats depend on their order: all ranks have the same bits only if they have the same order. */
static bool
agree(const struct job *job, bool small)
{
	Ctx ctx;
	struct blinkSchedule s;
	blinkComm_t comm;
	blinkConfig_t config = { .chunkBytes = 64 };
	struct buffers b = { .count = 331, .size = 4, .type = blinkFloat32, .op = blinkSum };
	ctx_init(&ctx);
	bool good = open_program(&ctx, job, ALLREDUCE, 0, small, &s)
	    && blinkCommCreate(&s, &config, &comm, NULL) == blinkSuccess;
	if (good) {
		b.program = s.program;
		make_buffers(&b, true);
		good = blinkRun(comm, b.send, b.recv, b.count, blinkFloat32, blinkSum) == blinkSuccess;
		for (int r = 1; r < job->n_ranks; r++)
			good = good && memcmp(b.recv[0], b.recv[r], b.count * b.size) == 0;
		free_buffers(&b);
		blinkCommDestroy(comm);
	}
	ctx_free(&ctx);
	return good;
}

static void
test_same_bits(void)
{
	bool good = true;
	for (int n = 2; n <= MOST_RANKS && good; n++)
		for (int servers = 1; servers <= n && good; servers += 3) {
			struct job job = job_of(n, servers);
			good = agree(&job, false) && agree(&job, true);
		}
	ok(good, "built in allreduce: the same bits on every rank");
}

static bool
same_trees(const Schedule *a, const Schedule *b)
{
	bool same = a->n_segments == b->n_segments && strcmp(a->topo->digest, b->topo->digest) == 0;
	for (int t = 0; t < a->n_segments && same; t++) {
		const Tree *x = &a->segment[t].tree, *y = &b->segment[t].tree;
		same = x->root == y->root && x->n_down == y->n_down && x->n_up == y->n_up;
		for (int e = 0; e < x->n_down + x->n_up && same; e++)
			same = tree_edge(x, e)->src == tree_edge(y, e)->src
			    && tree_edge(x, e)->dst == tree_edge(y, e)->dst;
	}
	return same;
}

/* Every rank makes it by itself: from the same job, the same; and no more links than two of each rank. */
static void
test_form(void)
{
	Ctx ctx;
	Schedule *sched = NULL, *again = NULL, *other = NULL;
	struct job job = job_of(24, 3);
	int depth = 0;
	ctx_init(&ctx);
	bool made = built_in_schedule(&ctx, &job, ALLREDUCE, 5, false, &sched) == OK
	    && built_in_schedule(&ctx, &job, ALLREDUCE, 7, false, &again) == OK
	    && built_in_schedule(&ctx, &job, ALLREDUCE, 0, true, &other) == OK;
	ok(made && same_trees(sched, again), "built in: the same for every rank, and any root where there is none");
	ok(made && strcmp(sched->topo->digest, other->topo->digest) != 0, "built in: another digest for another form");
	ok(made && sched->topo->n_links == 48, "built in: two links of each rank");
	job.n_servers = 1;
	ok(made && built_in_schedule(&ctx, &job, ALLREDUCE, 0, false, &sched) == OK
	    && sched_depth(&ctx, sched, &depth) == OK && depth == 2 && sched->n_segments == 24
	    && strcmp(sched->algorithm, "onehop") == 0, "built in: one hop up and one down on one server");
	job.n_ranks = 2;
	ok(built_in_schedule(&ctx, &job, BROADCAST, 2, true, &sched) == USAGE, "built in: a root that there is not");
	ctx_free(&ctx);
}

int
main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(300);
	test_form();
	bool all = argc > 2 && atoi(argv[2]) >= 100;
	test_verified(all);
	test_executed();
	test_same_bits();
	test_largest(all ? ROOM : 300);
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
