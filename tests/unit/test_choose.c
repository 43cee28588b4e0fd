/* Built-in schedules: of all collectives, forms and numbers of ranks, verified as a whole; and what each rank makes for
 * itself against their projections. Prints TAP. Arguments: seed, effort: from 100 on up to 2048 ranks. */
#include "built_in_schedule.h"
#include "quick.h"
#include "random_schedule.h"

#include <malloc.h>
#include <unistd.h>

enum { ROOM = 4096 };

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

/* Two servers, one of them with a third of the ranks or so. */
static struct job
uneven_job(int n)
{
	struct job job = job_of(n, 1);
	for (int r = 1; r < n; r++)
		server[r] = below(3) != 0;
	server[1] = 1;
	job.n_servers = 2;
	return job;
}

/* ---- the same programs ---- */

static bool
same_frac(Frac a, Frac b)
{
	return a.num == b.num && a.den == b.den;
}

static bool
same_extent(const Extent *a, const Extent *b)
{
	return a->send_block == b->send_block && a->recv_block == b->recv_block && a->part == b->part
	    && same_frac(a->begin, b->begin) && same_frac(a->end, b->end);
}

static bool
same_lanes(const RankLane *a, const RankLane *b, int n)
{
	bool same = true;
	for (int i = 0; i < n && same; i++)
		same = a[i].rank == b[i].rank && a[i].lane == b[i].lane && a[i].ring == b[i].ring;
	return same;
}

static bool
same_task(const RankTask *a, const RankTask *b)
{
	return a->segment == b->segment && a->extent == b->extent && a->own == b->own && a->output == b->output
	    && a->complete == b->complete && a->ring == b->ring && a->n_from == b->n_from && a->n_to == b->n_to
	    && same_lanes(a->from, b->from, a->n_from) && same_lanes(a->to, b->to, a->n_to);
}

static bool
same_program(const RankProgram *a, const RankProgram *b)
{
	bool same = a->coll == b->coll && a->root == b->root && a->n_ranks == b->n_ranks && a->rank == b->rank
	    && a->keep_input == b->keep_input && a->n_parts == 1 && b->n_parts == 1 && !a->part_end && !b->part_end
	    && same_frac(a->longest[0], b->longest[0]) && a->n_extents == b->n_extents && a->n_tasks == b->n_tasks
	    && a->n_rings == b->n_rings && a->rings_max == b->rings_max && a->n_peers == b->n_peers
	    && a->lanes_max == b->lanes_max;
	for (int i = 0; i < a->n_extents && same; i++)
		same = same_extent(&a->extent[i], &b->extent[i]);
	for (int i = 0; i < a->n_tasks && same; i++)
		same = same_task(&a->task[i], &b->task[i]);
	return same && memcmp(a->peer, b->peer, (size_t)a->n_peers * sizeof *a->peer) == 0;
}

/* Of some ranks, spread over all. */
static bool
projects(Ctx *ctx, const struct job *job, const struct built_in *which, const Schedule *sched, int some)
{
	bool good = true;
	for (int i = 0; i < some && good; i++) {
		RankProgram *want, *got;
		int rank = some == job->n_ranks ? i : below(job->n_ranks);
		good = sched_project(ctx, sched, rank, &want) == OK
		    && built_in_program(ctx, job, which, rank, &got) == OK && same_program(want, got);
		if (!good)
			printf("# rank %d: another program\n", rank);
	}
	return good;
}

/* It is verified, and its programs of so many ranks are what these ranks make. */
static bool
is_right(const struct job *job, Collective coll, bool small, int some)
{
	Ctx ctx;
	Schedule *sched;
	struct built_in which = { coll, below(job->n_ranks), small };
	ctx_init(&ctx);
	bool good = built_in_schedule(&ctx, job, &which, &sched) == OK
	    && (job->n_ranks == 1 || sched_verify(&ctx, "built in", sched) == OK)
	    && projects(&ctx, job, &which, sched, some);
	if (!good)
		printf("# %s, %d ranks, %d servers, root %d, small %d: %s\n", collective_name(coll), job->n_ranks,
		    job->n_servers, which.root, small, ctx.error.text);
	ctx_free(&ctx);
	return good;
}

/* all: also jobs of hundreds of ranks. */
static void
test_collective(Collective coll, bool all)
{
	static const int large[] = { 64, 120, 72, 256, 511 };
	int most = all ? 40 : quick_check() ? 14 : 24, n_large = all ? 5 : quick_check() ? 1 : 2;
	bool good = true;
	char what[80];
	for (int n = 1; n <= most && good; n++)
		for (int servers = 1; servers <= n && good; servers += 1 + servers / 3) {
			struct job job = job_of(n, servers);
			good = is_right(&job, coll, false, n) && is_right(&job, coll, true, n);
		}
	for (int i = 0; i < n_large && good; i++)
		for (int k = 0; k < 4 && good; k++) {
			int servers = k == 0 ? 1 : k == 1 ? large[i] / 8 : k == 2 ? large[i] : 2;
			struct job job = servers == 2 ? uneven_job(large[i]) : job_of(large[i], servers);
			int some = i == 0 ? job.n_ranks : 3;
			good = is_right(&job, coll, false, some) && is_right(&job, coll, true, some);
		}
	snprintf(what, sizeof what, "built in %s: verified, and each rank's part of it", collective_name(coll));
	ok(good, what);
}

/* An alltoall of so many has four million trees. */
static void
test_largest(int n)
{
	for (int c = 0; c < N_COLLECTIVES; c++) {
		struct job job = job_of(n, c % 2 ? n / 8 : 1);
		char what[80];
		snprintf(what, sizeof what, "built in %s: %d ranks", collective_name((Collective)c), n);
		ok(is_right(&job, (Collective)c, c % 4 < 2, 1), what);
	}
}

/* A rank holds its own part alone: of 4096 ranks no collective takes a page for each of them. */
static void
test_memory(void)
{
	size_t most = 0;
	for (int i = 0; i < 6 * N_COLLECTIVES; i++) {
		Ctx ctx;
		RankProgram *prog;
		struct built_in which = { (Collective)(i / 6), 5, i % 2 };
		struct job job = job_of(ROOM, i / 2 % 3 == 0 ? 1 : i / 2 % 3 == 1 ? ROOM / 8 : ROOM);
		size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
		ctx_init(&ctx);
		bool made = built_in_program(&ctx, &job, &which, 5, &prog) == OK;
		size_t bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		most = !made ? SIZE_MAX : bytes > most ? bytes : most;
		ctx_free(&ctx);
	}
	printf("# %zu bytes at most\n", most);
	ok(most < (size_t)ROOM << 10, "built in: 4096 ranks, each collective: less than a kilobyte for each of them");
}

/* Every rank makes it by itself: from the same job, the same. */
static void
test_names(void)
{
	Ctx ctx;
	char digest[DIGEST_ROOM], again[DIGEST_ROOM], other[DIGEST_ROOM];
	struct job job = job_of(24, 3);
	struct built_in a = { ALLREDUCE, 5, false }, b = { ALLREDUCE, 7, false }, c = { ALLREDUCE, 0, true };
	ctx_init(&ctx);
	bool made = built_in_digest(&ctx, &job, &a, digest) == OK && built_in_digest(&ctx, &job, &b, again) == OK
	    && built_in_digest(&ctx, &job, &c, other) == OK;
	ok(made && strcmp(digest, again) == 0, "built in: the same for any root where there is none");
	ok(made && strcmp(digest, other) != 0, "built in: another digest for another form");
	a.coll = b.coll = REDUCE;
	ok(built_in_digest(&ctx, &job, &a, digest) == OK && built_in_digest(&ctx, &job, &b, again) == OK
	    && strcmp(digest, again) != 0, "built in: another digest for another root");
	job.n_servers = 1;
	ok(strcmp(built_in_form(&job, &a), "onehop") == 0 && strcmp(built_in_form(&job, &c), "levels") == 0,
	    "built in: forms on one server");
	ctx_free(&ctx);
}

int
main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(300);
	test_names();
	bool all = argc > 2 && atoi(argv[2]) >= 100;
	for (int c = 0; c < N_COLLECTIVES; c++)
		test_collective((Collective)c, all);
	test_memory();
	test_largest(all ? 2048 : quick_check() ? 100 : 300);
	return end_tests();
}
