/* In an MPI program: MPI starts the ranks and hands the id to all, libblink moves the data.
 *
 *	mpicc mpi.c $(pkg-config --cflags --libs blink) -o mpi
 *	mpirun -n 8 ./mpi */
#include <blink.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

static void
check(blinkResult_t result, const char *text)
{
	if (result == blinkSuccess)
		return;
	fprintf(stderr, "mpi: %s: %s\n", blinkGetErrorString(result), text);
	MPI_Abort(MPI_COMM_WORLD, result);
}

/* Read after the call: arguments are evaluated in any order. */
static void
check_call(blinkResult_t result, blinkComm_t comm)
{
	check(result, blinkCommGetError(comm));
}

int
main(int argc, char **argv)
{
	int rank, n, wrong = 0;
	blinkUniqueId_t id;
	blinkComm_t comm;
	blinkError_t error;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);

	if (rank == 0)
		check(blinkGetUniqueId(&id, &error), error.text);
	MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
	check(blinkCommInitRank(&comm, n, &id, rank, NULL, &error), error.text);

	float *numbers = (float *)malloc(COUNT * sizeof *numbers), want = (float)(n * (n + 1) / 2);
	if (!numbers)
		check(blinkOutOfMemory, "");
	for (int i = 0; i < COUNT; i++)
		numbers[i] = (float)(rank + 1);
	check_call(blinkAllReduce(numbers, numbers, COUNT, blinkFloat32, blinkSum, comm, NULL), comm);
	check_call(blinkCommWait(comm, 0), comm);
	for (int i = 0; i < COUNT; i++)
		wrong += numbers[i] != want;
	if (rank == 0 || wrong)
		printf("rank %d of %d: sum %g, %d wrong\n", rank, n, want, wrong);

	free(numbers);
	check(blinkCommDestroy(comm), "destroy");
	MPI_Finalize();
	return wrong != 0;
}
