/* A job whose processes a launcher starts, one for each rank: torchrun, Slurm, mpirun, or a loop of the shell. All get
 * their sums.
 *
 *	cc launched.c $(pkg-config --cflags --libs blink) -o launched
 *	srun --ntasks=8 ./launched /shared/job.$SLURM_JOB_ID
 *	RANK=0 WORLD_SIZE=2 ./launched /tmp/id & RANK=1 WORLD_SIZE=2 ./launched /tmp/id; wait
 *
 * Rank 0 writes the id to the file, which all ranks can read and nobody else: who has the id can join. A file of another
 * user, or that others can read or write, is not taken. Any way to hand over 128 bytes does, such as the launcher's own
 * store. COUNT: of the numbers. CALLS: how many allreduces. */
#include <blink.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ID_SECONDS = 60 };

static void
check(blinkResult_t result, int rank, const char *text)
{
	if (result == blinkSuccess)
		return;
	fprintf(stderr, "launched: rank %d: %s: %s\n", rank, blinkGetErrorString(result), text);
	exit(result);
}

/* Read after the call: arguments are evaluated in any order. */
static void
check_call(blinkResult_t result, int rank, blinkComm_t comm)
{
	check(result, rank, blinkCommGetError(comm));
}

/* The first of these variables that is set: of torchrun, Slurm, Open MPI and MPICH. -1: none is. */
static int
from_launcher(const char *const names[4])
{
	for (int i = 0; i < 4; i++)
		if (getenv(names[i]))
			return atoi(getenv(names[i]));
	return -1;
}

/* The name appears when the whole id is there. */
static int
write_id(const char *path, const blinkUniqueId_t *id)
{
	char made[4096];
	snprintf(made, sizeof made, "%s.new", path);
	unlink(made);
	int fd = open(made, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return -1;
	int good = write(fd, id, sizeof *id) == (ssize_t)sizeof *id;
	return close(fd) == 0 && good ? rename(made, path) : -1;
}

static int
read_id(const char *path, blinkUniqueId_t *id)
{
	const struct timespec pause = { 0, 20000000 };
	time_t until = time(NULL) + ID_SECONDS;
	struct stat file;
	int fd;
	while ((fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)) < 0 && time(NULL) < until)
		nanosleep(&pause, NULL);
	if (fd < 0)
		return -1;
	int good = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid()
	    && (file.st_mode & 077) == 0 && read(fd, id, sizeof *id) == (ssize_t)sizeof *id;
	close(fd);
	return good ? 0 : -1;
}

int
main(int argc, char **argv)
{
	static const char *const ranks[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK" };
	static const char *const sizes[] = { "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };
	int rank = from_launcher(ranks), n = from_launcher(sizes), wrong = 0;
	int count = argc > 2 ? atoi(argv[2]) : 1 << 20, calls = argc > 3 ? atoi(argv[3]) : 1;
	blinkUniqueId_t id;
	blinkComm_t comm;
	blinkError_t error;
	if (argc < 2 || rank < 0 || n < 1 || count < 1) {
		fprintf(stderr, "usage: RANK=R WORLD_SIZE=N launched FILE [COUNT [CALLS]]\n");
		return blinkInvalidArgument;
	}

	if (rank == 0)
		check(blinkGetUniqueId(&id, &error), rank, error.text);
	if ((rank == 0 ? write_id(argv[1], &id) : read_id(argv[1], &id)) != 0)
		check(blinkSystemError, rank, argv[1]);
	blinkResult_t joined = blinkCommInitRank(&comm, n, &id, rank, NULL, &error);
	if (rank == 0)
		unlink(argv[1]);
	check(joined, rank, error.text);

	float *numbers = (float *)malloc((size_t)count * sizeof *numbers), want = (float)(n * (n + 1) / 2);
	if (!numbers)
		check(blinkOutOfMemory, rank, "");
	for (int call = 0; call < calls; call++) {
		for (int i = 0; i < count; i++)
			numbers[i] = (float)(rank + 1);
		check_call(blinkAllReduce(numbers, numbers, (size_t)count, blinkFloat32, blinkSum, comm, NULL), rank, comm);
		check_call(blinkCommWait(comm, 0), rank, comm);
		for (int i = 0; i < count; i++)
			wrong += numbers[i] != want;
	}
	if (rank == 0 || wrong)
		printf("rank %d of %d: sum %g, %d wrong\n", rank, n, want, wrong);
	free(numbers);
	check(blinkCommDestroy(comm), rank, "destroy");
	return wrong ? blinkUnverified : 0;
}
