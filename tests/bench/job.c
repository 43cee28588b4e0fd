/* Collectives of a job on one server, beside what else moves the same bytes between the same processes.
 *
 * A line for each collective and size: the time of one call until it is done on all ranks, in us, by
 *
 *	memory		what no program can leave out, by the same processes at the same time, without any of the
 *			waits: of an allgather each rank copies the n - 1 blocks of the others from their memory into
 *			its own; of a broadcast of M bytes each rank but the root copies M bytes from the root's
 *			memory; of an allreduce of M bytes each rank reads its n-th part of all n ranks, writes the
 *			sum, and copies the n - 1 other parts of the sum from those that have it. memcpy, and additions
 *			of floats in one pass, from memory that the processes share. A process gives way after each
 *			call: where ranks share CPUs, it would else find in the caches what the calls of the others put
 *			out of them
 *	blink		libblink with any memory: calloc's
 *	registered	libblink with memory of blinkMemAlloc and blinkCommRegister
 *	open mpi	MPI_Allreduce and so on over shared memory, by mpirun, with mpi_yield_when_idle or without,
 *			whichever is faster for the line
 *	gloo		torch.distributed
 *
 * and how many times as long as the faster of blink's two the others take. Sizes are of the whole message: of an
 * allgather what a rank receives.
 * Calls are waited for one by one. A pass runs all methods, each in new processes: every time is the median of the
 * passes, in which it is the median of five rounds, so that a machine that is slow for a while does not favour one.
 *
 *	job [-n RANKS] [-p PASSES] [-c COLLECTIVE] [-s SMALLEST] [-m LARGEST] [-M MPI-PROGRAM] [-g GLOO-COMMAND] */
#include "../job/job.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 5, MOST_PASSES = 15, N_SIZES = 9 };
enum coll { ALLREDUCE, ALLGATHER, BROADCAST, N_COLLS };
enum method { MEMORY, BLINK, REGISTERED, MPI_YIELDS, MPI_SPINS, GLOO, N_METHODS };

static const char *const coll_names[] = { "allreduce", "allgather", "broadcast" };
static const size_t sizes[N_SIZES] = { 8, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20, 128 << 20,
	256 << 20 };

struct bench {
	int n, passes;
	size_t smallest, largest;
	int coll;			/* the only one; -1: all */
	const char *mpi, *gloo;
	enum method method;		/* of this job */
	pthread_barrier_t barrier;
	int64_t began[JOB_RANKS], ended[JOB_RANKS];	/* of a round */
	char *shared, *summed;		/* of MEMORY: what all ranks send, and the sum */
	double us[N_METHODS][N_COLLS][N_SIZES][MOST_PASSES];	/* 0: not measured */
};

/* A rank's buffers, and what it calls. */
struct side {
	const struct rank *me;
	struct bench *bench;
	blinkComm_t comm;
	char *send, *recv;
	void *handles[2];
};

static bool
is_wanted(const struct bench *b, int coll, int size)
{
	return (b->coll < 0 || b->coll == coll) && sizes[size] >= b->smallest && sizes[size] <= b->largest;
}

static int
coll_of(const char *name)
{
	int c = 0;
	while (c < N_COLLS && strcmp(coll_names[c], name) != 0)
		c++;
	return c;
}

/* ---- what cannot be left out ---- */

static void
sum_part(const struct bench *b, char *to, size_t at, size_t bytes)
{
	float *out = (float *)(to + at);
	for (size_t i = 0; i < bytes / sizeof *out; i++) {
		float sum = 0;
		for (int r = 0; r < b->n; r++)
			sum += ((const float *)(b->shared + (size_t)r * b->largest + at))[i];
		out[i] = sum;
	}
}

static void
move_memory(struct side *s, enum coll coll, size_t bytes)
{
	const struct bench *b = s->bench;
	size_t part = bytes / (size_t)b->n;
	int rank = s->me->rank;
	if (coll == BROADCAST && rank)
		memcpy(s->recv, b->shared, bytes);
	if (coll == ALLREDUCE)
		sum_part(b, b->summed, (size_t)rank * part, part);
	for (int r = 0; r < b->n && coll != BROADCAST; r++) {
		const char *from = coll == ALLREDUCE ? b->summed + (size_t)r * part
		    : b->shared + (size_t)r * b->largest;
		if (r != rank)
			memcpy(s->recv + (size_t)r * part, from, part);
	}
}

/* ---- calls ---- */

static void
need(const struct side *s, blinkResult_t result, const char *what)
{
	if (result == blinkSuccess)
		return;
	fprintf(stderr, "bench: rank %d: %s: %s: %s\n", s->me->rank, what, blinkGetErrorString(result),
	    s->comm ? blinkCommGetError(s->comm) : "");
	exit(1);
}

/* An allgather sends from where its block is received, a broadcast is in place; an allreduce has two buffers. */
static void
call(struct side *s, enum coll coll, size_t bytes)
{
	size_t part = bytes / (size_t)s->bench->n;
	if (coll == ALLREDUCE)
		need(s, blinkAllReduce(s->send, s->recv, bytes / 4, blinkFloat32, blinkSum, s->comm, NULL),
		    "allreduce");
	else if (coll == ALLGATHER)
		need(s, blinkAllGather(s->recv + (size_t)s->me->rank * part, s->recv, part, blinkInt8, s->comm, NULL),
		    "allgather");
	else
		need(s, blinkBroadcast(s->recv, s->recv, bytes, blinkInt8, 0, s->comm, NULL), "broadcast");
	need(s, blinkCommWait(s->comm, 0), "wait");
}

static int
repeats(size_t bytes)
{
	size_t n = ((size_t)16 << 20) / (bytes + (64 << 10));
	return n < 1 ? 1 : n > 200 ? 200 : (int)n;
}

static int
ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static double
median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof *values, ascending);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* us from when the first rank begins a round until the last is done. A round is some calls; the first warms up. */
static double
measure(struct side *s, enum coll coll, size_t bytes)
{
	struct bench *b = s->bench;
	double rounds[ROUNDS + 1];
	int k = repeats(bytes);
	for (int round = 0; round <= ROUNDS; round++) {
		pthread_barrier_wait(&b->barrier);
		int64_t first = INT64_MAX, last = 0;
		b->began[s->me->rank] = job_now();
		for (int i = 0; i < k; i++) {
			if (b->method == MEMORY) {
				move_memory(s, coll, bytes);
				sched_yield();
			} else {
				call(s, coll, bytes);
			}
		}
		b->ended[s->me->rank] = job_now();
		pthread_barrier_wait(&b->barrier);
		for (int r = 0; r < b->n; r++) {
			first = b->began[r] < first ? b->began[r] : first;
			last = b->ended[r] > last ? b->ended[r] : last;
		}
		rounds[round] = (double)(last - first) / 1e3 / k;
	}
	return median(rounds + 1, ROUNDS);
}

static void
take_buffers(struct side *s)
{
	char **buffer[] = { &s->send, &s->recv };
	for (int i = 0; i < 2; i++) {
		void *memory = NULL;
		if (s->bench->method == REGISTERED) {
			need(s, blinkMemAlloc(s->comm, s->me->rank, s->bench->largest, &memory), "memory");
			need(s, blinkCommRegister(s->comm, memory, s->bench->largest, &s->handles[i]), "register");
		} else if (posix_memalign(&memory, 64, s->bench->largest) != 0) {
			need(s, blinkOutOfMemory, "memory");
		}
		*buffer[i] = memory;
		memset(memory, 1, s->bench->largest);	/* there are pages, of its own */
	}
}

static void
body(struct rank *me)
{
	struct bench *b = *(struct bench **)me->arg;
	struct side s = { .me = me, .bench = b };
	if (b->method != MEMORY && !(s.comm = job_join(me, NULL)))
		exit(1);
	take_buffers(&s);
	for (int c = 0; c < N_COLLS; c++) {
		for (int i = 0; i < N_SIZES; i++) {
			if (!is_wanted(b, c, i))
				continue;
			double us = measure(&s, (enum coll)c, sizes[i]);
			if (me->rank == 0)
				b->us[b->method][c][i][b->passes] = us;
		}
	}
	blinkCommDestroy(s.comm);
}

/* ---- the others ---- */

/* Their programs print lines: collective, bytes, us. */
static bool
read_times(struct bench *b, enum method method, const char *command)
{
	char line[256], name[32];
	size_t bytes;
	double us;
	int n = 0;
	FILE *from = popen(command, "r");
	while (from && fgets(line, sizeof line, from)) {
		if (sscanf(line, "%31s %zu %lf", name, &bytes, &us) != 3)
			continue;
		for (int c = 0; c < N_COLLS; c++)
			for (int i = 0; i < N_SIZES; i++)
				if (strcmp(name, coll_names[c]) == 0 && bytes == sizes[i]) {
					b->us[method][c][i][b->passes] = us;
					n++;
				}
	}
	return from && (pclose(from) == 0 || n > 0);	/* a method that is slow is cut off */
}

static bool
run_mpi(struct bench *b, enum method method)
{
	char command[2048];
	snprintf(command, sizeof command, "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun "
	    "--oversubscribe --bind-to none --mca btl self,vader --mca mpi_yield_when_idle %d -n %d %s %zu 2>/dev/null",
	    method == MPI_YIELDS, b->n, b->mpi, b->largest);
	return read_times(b, method, command);
}

static bool
run_gloo(struct bench *b)
{
	char command[2048];
	snprintf(command, sizeof command, "timeout 60 %s %d %zu 2>/dev/null", b->gloo, b->n, b->largest);
	return read_times(b, GLOO, command);
}

static bool
run_job(struct bench *b, enum method method)
{
	b->method = method;
	return job_run("bench", b->n, false, 600, body, &b) == 0;
}

/* One method; false: there is none here, or it failed. */
static bool
run_method(struct bench *b, enum method method)
{
	if (method == GLOO)
		return b->gloo && run_gloo(b);
	if (method == MPI_SPINS || method == MPI_YIELDS)
		return b->mpi && run_mpi(b, method);
	return run_job(b, method);
}

/* ---- the table ---- */

static double
time_of(struct bench *b, enum method method, int c, int i)
{
	double us = median(b->us[method][c][i], b->passes);
	return us > 0 ? us : NAN;
}

static void
print_number(double x, int digits)
{
	if (isnan(x))
		printf(" %11s", "-");
	else
		printf(" %11.*f", digits, x);
}

static void
print_table(struct bench *b)
{
	printf("%-10s %10s %11s %11s %11s %11s %11s   times as long as blink:\n",
		    "us a call", "bytes", "memory", "blink",
	    "registered", "open mpi", "gloo");
	printf("%-81s %11s %11s %11s\n", "", "memory", "open mpi", "gloo");
	for (int c = 0; c < N_COLLS; c++) {
		for (int i = 0; i < N_SIZES; i++) {
			double us[N_METHODS];
			if (!is_wanted(b, c, i))
				continue;
			for (int m = 0; m < N_METHODS; m++)
				us[m] = time_of(b, (enum method)m, c, i);
			double mpi = fmin(us[MPI_SPINS], us[MPI_YIELDS]), blink = fmin(us[BLINK], us[REGISTERED]);
			printf("%-10s %10zu", coll_names[c], sizes[i]);
			print_number(us[MEMORY], 1);
			print_number(us[BLINK], 1);
			print_number(us[REGISTERED], 1);
			print_number(mpi, 1);
			print_number(us[GLOO], 1);
			print_number(us[MEMORY] / blink, 2);
			print_number(mpi / blink, 2);
			print_number(us[GLOO] / blink, 2);
			printf("\n");
		}
	}
}

int
main(int argc, char **argv)
{
	static const char *const names[] = { "memory", "blink", "registered", "open mpi, yielding", "open mpi",
			"gloo" };
	struct bench *b = shared_memory(sizeof *b);
	pthread_barrierattr_t attr;
	bool missing[N_METHODS] = { false };
	int passes = 3;
	b->n = 8;
	b->coll = -1;
	b->largest = sizes[N_SIZES - 1];
	for (int o; (o = getopt(argc, argv, "n:p:c:s:m:M:g:")) != -1;) {
		switch (o) {
		case 'n': b->n = atoi(optarg); break;
		case 'p': passes = atoi(optarg); break;
		case 'c': b->coll = coll_of(optarg); break;
		case 's': b->smallest = (size_t)atol(optarg); break;
		case 'm': b->largest = (size_t)atol(optarg); break;
		case 'M': b->mpi = optarg; break;
		case 'g': b->gloo = optarg; break;
		default: return 2;
		}
	}
	if (b->n < 2 || b->n > JOB_RANKS || passes < 1 || passes > MOST_PASSES
	    || b->coll == N_COLLS)
		return 2;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&b->barrier, &attr, (unsigned)b->n);
	b->shared = shared_memory((size_t)b->n * b->largest);
	b->summed = shared_memory(b->largest);
	memset(b->shared, 1, (size_t)b->n * b->largest);
	for (; b->passes < passes; b->passes++)
		for (int m = 0; m < N_METHODS; m++)
			missing[m] |= !missing[m] && !run_method(b, (enum method)m);
	printf("%d ranks, each a process, on %ld CPUs; the median of %d passes\n", b->n,
	    sysconf(_SC_NPROCESSORS_ONLN), passes);
	print_table(b);
	for (int m = 0; m < N_METHODS; m++)
		if (missing[m])
			printf("missing: %s\n", names[m]);
	return missing[BLINK] || missing[MEMORY];
}
