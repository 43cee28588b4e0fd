/* Collectives and messages of a job on one server, beside what else moves the same bytes between the same processes.
 *
 * A line for each call and size: the time of one until it is done on all ranks, in us, by
 *
 *	memory		what no program can leave out, by the same processes at the same time, without any of the
 *			waits: of an allgather each rank copies the n - 1 blocks of the others from their memory into
 *			its own; of a broadcast of M bytes each rank but the root copies M bytes from the root's
 *			memory; of an allreduce of M bytes each rank reads its n-th part of all n ranks, writes the
 *			sum, and copies the n - 1 other parts of the sum from those that have it. memcpy, and additions
 *			of floats in one pass, from memory that the processes share. A process gives way after each
 *			call: where ranks share CPUs, it would else find in the caches what the calls of the others put
 *			out of them. Of the other calls: not measured
 *	blink		libblink with any memory: calloc's
 *	registered	libblink with memory of blinkMemAlloc and blinkCommRegister
 *	open mpi	MPI_Allreduce and so on over shared memory, by mpirun, with mpi_yield_when_idle or without,
 *			whichever is faster for the line
 *	mpich		the same, polling or giving way
 *	gloo		torch.distributed, which has no reducescatter and no alltoall by gloo
 *	oneccl		oneCCL, by its C++ interface, where it has the call
 *
 * and how many times as long as the faster of blink's two the fastest of the others takes. Calls are waited for one by
 * one. A pass runs all methods, each in new processes: every time is the median of the passes, in which it is the
 * median of five rounds, so that a machine that is slow for a while does not favour one. On a machine with other work:
 * chrt -r 10 make bench-peers.
 *
 *	peers [-n RANKS] [-v SERVERS] [-p PASSES] [-c COLLECTIVE] [-s SMALLEST] [-m LARGEST] [-t SECONDS]
 *		[-O OPENMPI-COMMAND] [-M MPICH-COMMAND] [-g GLOO-COMMAND] [-C ONECCL-COMMAND]
 *
 * -v: libblink takes ranks to be on so many servers, with TCP between these. Commands run a program that prints
 * "COLLECTIVE BYTES US" with the arguments SMALLEST LARGEST COLLECTIVE added; %d in one is the number of ranks. -t: so
 * long has each at most; what it has printed by then counts. */
#include "peers.h"

#include "../job/job.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PASSES = 15 };
enum method { MEMORY, BLINK, REGISTERED, MPI_SPINS, MPI_YIELDS, MPICH_SPINS, MPICH_YIELDS, GLOO, ONECCL, N_METHODS };

static const char *const method_names[] = { "memory", "blink", "registered", "open mpi", "open mpi, yielding", "mpich",
	"mpich, yielding", "gloo", "oneccl" };

struct bench {
	int n, servers, passes;
	size_t smallest, largest;
	int coll;			/* the only one; -1: all */
	int seconds;			/* of each command */
	const char *command[N_METHODS];	/* NULL: there is none */
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
	return (b->coll < 0 || b->coll == coll) && sizes[size] >= b->smallest && sizes[size] <= b->largest
	    && has_blocks(coll, sizes[size], b->n);
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
move_memory(struct side *s, int coll, size_t bytes)
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

static void
pingpong(struct side *s, size_t bytes)
{
	int other = 1 - s->me->rank;
	for (int i = 0; i < 2 && other >= 0; i++) {
		if (i == s->me->rank)
			need(s, blinkSend(s->send, bytes, blinkInt8, other, s->comm, NULL), "send");
		else
			need(s, blinkRecv(s->recv, bytes, blinkInt8, other, s->comm, NULL), "receive");
		need(s, blinkCommWait(s->comm, 0), "wait");
	}
}

/* An allgather sends from where its block is received, a broadcast is in place; the others have two buffers. */
static void
call(struct side *s, int coll, size_t bytes)
{
	size_t part = bytes / (size_t)s->bench->n, counts[JOB_RANKS], displs[JOB_RANKS];
	blinkResult_t result = blinkSuccess;
	for (int r = 0; r < s->bench->n; r++) {
		counts[r] = part;
		displs[r] = (size_t)r * part;
	}
	switch (coll) {
	case ALLREDUCE:
		result = blinkAllReduce(s->send, s->recv, bytes / 4, blinkFloat32, blinkSum, s->comm, NULL);
		break;
	case ALLGATHER:
		result = blinkAllGather(s->recv + (size_t)s->me->rank * part, s->recv, part, blinkInt8, s->comm, NULL);
		break;
	case BROADCAST:
		result = blinkBroadcast(s->recv, s->recv, bytes, blinkInt8, 0, s->comm, NULL);
		break;
	case REDUCE:
		result = blinkReduce(s->send, s->recv, bytes / 4, blinkFloat32, blinkSum, 0, s->comm, NULL);
		break;
	case REDUCESCATTER:
		result = blinkReduceScatter(s->send, s->recv, part / 4, blinkFloat32, blinkSum, s->comm, NULL);
		break;
	case ALLTOALL:
		result = blinkAlltoAll(s->send, s->recv, part, blinkInt8, s->comm, NULL);
		break;
	case ALLTOALLV:
		result = blinkAlltoAllv(s->send, counts, displs, s->recv, counts, displs, blinkInt8, s->comm, NULL);
		break;
	case GATHER:
		result = blinkGather(s->send, s->recv, part, blinkInt8, 0, s->comm, NULL);
		break;
	case SCATTER:
		result = blinkScatter(s->send, s->recv, part, blinkInt8, 0, s->comm, NULL);
		break;
	default:
		pingpong(s, bytes);
	}
	need(s, result, coll_names[coll]);
	need(s, blinkCommWait(s->comm, 0), "wait");
}

/* us from when the first rank begins a round until the last is done. A round is some calls; the first warms up. */
static double
measure(struct side *s, int coll, size_t bytes)
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
	job_server(me, b->servers);
	if (b->method != MEMORY && !(s.comm = job_join(me, NULL)))
		exit(1);
	take_buffers(&s);
	for (int c = 0; c < N_COLLS; c++) {
		for (int i = 0; i < N_SIZES; i++) {
			if (!is_wanted(b, c, i) || (b->method == MEMORY && c > BROADCAST))
				continue;
			double us = measure(&s, c, sizes[i]);
			if (me->rank == 0)
				b->us[b->method][c][i][b->passes] = us;
		}
	}
	blinkCommDestroy(s.comm);
}

/* ---- the others ---- */

/* Their programs print lines: collective, bytes, us. */
static bool
read_line(struct bench *b, enum method method, const char *line)
{
	char name[32];
	size_t bytes;
	double us;
	if (sscanf(line, "%31s %zu %lf", name, &bytes, &us) != 3 || coll_of(name) == N_COLLS)
		return false;
	for (int i = 0, c = coll_of(name); i < N_SIZES; i++)
		if (bytes == sizes[i] && is_wanted(b, c, i))
			b->us[method][c][i][b->passes] = us;
	return true;
}

/* A method that is slow is cut off. */
static bool
run_command(struct bench *b, enum method method)
{
	const char *start = b->command[method], *ranks = start ? strstr(start, "%d") : NULL;
	char command[2048], line[256];
	int n = 0;
	if (!ranks)
		return false;
	snprintf(command, sizeof command, "%s timeout %d %.*s%d%s %zu %zu %s 2>/dev/null", method == MPI_YIELDS
	    ? "OMPI_MCA_mpi_yield_when_idle=1" : method == MPICH_YIELDS ? "MPIR_CVAR_POLLS_BEFORE_YIELD=1" : "",
	    b->seconds, (int)(ranks - start), start, b->n, ranks + 2, b->smallest, b->largest,
	    b->coll >= 0 ? coll_names[b->coll] : "");
	FILE *from = popen(command, "r");
	while (from && fgets(line, sizeof line, from))
		n += read_line(b, method, line);
	if (from)
		pclose(from);
	return n > 0;
}

/* One method; false: there is none here, or it failed. */
static bool
run_method(struct bench *b, enum method method)
{
	if (method > REGISTERED)
		return run_command(b, method);
	b->method = method;
	return job_run("bench", b->n, false, 600, body, &b) == 0;
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
		printf(" %10s", "-");
	else
		printf(" %10.*f", digits, x);
}

/* Three digits, about. */
static void
print_time(double us)
{
	print_number(us, us < 10 ? 2 : us < 100 ? 1 : 0);
}

static void
print_table(struct bench *b)
{
	printf("%-13s %9s %10s %10s %10s %10s %10s %10s %10s %10s\n", "us a call", "bytes", "memory", "blink",
	    "registered", "open mpi", "mpich", "gloo", "oneccl", "best/blink");
	for (int c = 0; c < N_COLLS; c++) {
		for (int i = 0; i < N_SIZES; i++) {
			double us[N_METHODS];
			if (!is_wanted(b, c, i))
				continue;
			for (int m = 0; m < N_METHODS; m++)
				us[m] = time_of(b, (enum method)m, c, i);
			double open = fmin(us[MPI_SPINS], us[MPI_YIELDS]), blink = fmin(us[BLINK], us[REGISTERED]);
			double mpich = fmin(us[MPICH_SPINS], us[MPICH_YIELDS]);
			printf("%-13s %9zu", coll_names[c], sizes[i]);
			print_time(us[MEMORY]);
			print_time(us[BLINK]);
			print_time(us[REGISTERED]);
			print_time(open);
			print_time(mpich);
			print_time(us[GLOO]);
			print_time(us[ONECCL]);
			print_number(fmin(fmin(open, mpich), fmin(us[GLOO], us[ONECCL])) / blink, 2);
			printf("\n");
		}
	}
}

int
main(int argc, char **argv)
{
	struct bench *b = shared_memory(sizeof *b);
	pthread_barrierattr_t attr;
	bool missing[N_METHODS] = { false };
	int passes = 3;
	b->n = 8;
	b->servers = 1;
	b->coll = -1;
	b->seconds = 60;
	b->largest = sizes[N_SIZES - 1];
	for (int o; (o = getopt(argc, argv, "n:v:p:c:s:m:t:O:M:g:C:")) != -1;) {
		switch (o) {
		case 'n': b->n = atoi(optarg); break;
		case 'v': b->servers = atoi(optarg); break;
		case 'p': passes = atoi(optarg); break;
		case 'c': b->coll = coll_of(optarg); break;
		case 's': b->smallest = (size_t)atol(optarg); break;
		case 'm': b->largest = (size_t)atol(optarg); break;
		case 't': b->seconds = atoi(optarg); break;
		case 'O': b->command[MPI_SPINS] = b->command[MPI_YIELDS] = optarg; break;
		case 'M': b->command[MPICH_SPINS] = b->command[MPICH_YIELDS] = optarg; break;
		case 'g': b->command[GLOO] = optarg; break;
		case 'C': b->command[ONECCL] = optarg; break;
		default: return 2;
		}
	}
	if (b->n < 2 || b->n > JOB_RANKS || b->servers < 1 || passes < 1 || passes > MOST_PASSES || b->coll == N_COLLS)
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
	printf("%d ranks, each a process, on %d servers, %ld CPUs; the median of %d passes\n", b->n, b->servers,
	    sysconf(_SC_NPROCESSORS_ONLN), passes);
	print_table(b);
	for (int m = 0; m < N_METHODS; m++)
		if (missing[m])
			printf("missing: %s: %s\n", method_names[m], m <= REGISTERED || b->command[m]
			    ? "it failed, or none was done in time" : "not installed");
	return missing[BLINK] || missing[MEMORY];
}
