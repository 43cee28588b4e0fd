/* Calls of Open MPI's collectives, whose results are checked: calls COLLECTIVE BYTES... Bytes are those of a whole
 * message, as blink-schedule(5) counts them. Rank 0 is the root. Exit status 1: a wrong result. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, n, wrong;

/* What rank r has at element i. */
static int
value(int r, int i)
{
	return (r + 1) * 1000 + i % 997;
}

static int
sum(int i)
{
	return 1000 * n * (n + 1) / 2 + n * (i % 997);
}

static void
fill(int *data, int elements)
{
	for (int i = 0; i < elements; i++)
		data[i] = value(rank, i);
}

static void
want(int got, int value)
{
	wrong += got != value;
}

/* Of blocks of `part` elements, of which rank r has number `at`. */
static void
want_blocks(const int *got, int part, int at)
{
	for (int r = 0; r < n; r++)
		for (int i = 0; i < part; i++)
			want(got[r * part + i], value(r, at * part + i));
}

static void
call(const char *coll, int *in, int *out, int count)
{
	int part = count / n, *parts = malloc((size_t)n * sizeof *parts);
	for (int r = 0; r < n; r++)
		parts[r] = part;
	memset(out, 0, (size_t)count * sizeof *out);
	fill(in, count);
	if (strcmp(coll, "broadcast") == 0) {
		MPI_Bcast(in, count, MPI_INT, 0, MPI_COMM_WORLD);
		for (int i = 0; i < count; i++)
			want(in[i], value(0, i));
	} else if (strcmp(coll, "reduce") == 0) {
		MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
		for (int i = 0; i < count && rank == 0; i++)
			want(out[i], sum(i));
	} else if (strcmp(coll, "allreduce") == 0) {
		MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < count; i++)
			want(out[i], sum(i));
	} else if (strcmp(coll, "reducescatter") == 0) {
		MPI_Reduce_scatter(in, out, parts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < part; i++)
			want(out[i], sum(rank * part + i));
	} else if (strcmp(coll, "allgather") == 0) {
		MPI_Allgather(in, part, MPI_INT, out, part, MPI_INT, MPI_COMM_WORLD);
		want_blocks(out, part, 0);
	} else if (strcmp(coll, "gather") == 0) {
		MPI_Gather(in, part, MPI_INT, out, part, MPI_INT, 0, MPI_COMM_WORLD);
		if (rank == 0)
			want_blocks(out, part, 0);
	} else if (strcmp(coll, "scatter") == 0) {
		MPI_Scatter(in, part, MPI_INT, out, part, MPI_INT, 0, MPI_COMM_WORLD);
		for (int i = 0; i < part; i++)
			want(out[i], value(0, rank * part + i));
	} else {
		MPI_Alltoall(in, part, MPI_INT, out, part, MPI_INT, MPI_COMM_WORLD);
		want_blocks(out, part, rank);
	}
	free(parts);
}

int
main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int i = 2; i < argc; i++) {
		int count = atoi(argv[i]) / (int)sizeof(int) / n * n;
		int *in = malloc((size_t)count * sizeof *in), *out = malloc((size_t)count * sizeof *out);
		call(argv[1], in, out, count);
		free(in);
		free(out);
	}
	if (wrong)
		fprintf(stderr, "rank %d: %d wrong elements\n", rank, wrong);
	MPI_Finalize();
	return wrong > 0;
}
