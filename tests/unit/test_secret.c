/* BLINK_SECRET_FILE: who has the id, and not the secret, does not join. Each rank is a process. Prints TAP. */
#include "blink.h"
#include "tap.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 2000, PATIENT_MS = 20000 };

struct shared {
	blinkUniqueId_t id;
	atomic_bool has_id;
	int code[2];
	char text[2][600];
};

static struct shared *shared;
static char folder[] = "/tmp/blink-secret-XXXXXX";
static const char text[] = "sixteen bytes or more\n", other[] = "sixteen bytes, others\n";

static const char *
path_of(const char *name)
{
	static char path[2][200];
	static int turn;
	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static void
put(const char *name, const char *what, size_t bytes, mode_t mode)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, what, bytes) != (ssize_t)bytes || fchmod(fd, mode) != 0)
		ok(false, "files can be written");
	close(fd);
}

/* ---- two ranks ---- */

static int
sum(blinkComm_t comm)
{
	float one = 1;
	blinkResult_t code = blinkAllReduce(&one, &one, 1, blinkFloat32, blinkSum, comm, NULL);
	code = code == blinkSuccess ? blinkCommWait(comm, 0) : code;
	return code == blinkSuccess && one != 2 ? (int)blinkInternalError : (int)code;
}

/* All ways to a communicator. */
static int
use(blinkComm_t comm, int rank, blinkError_t *err)
{
	blinkComm_t split = NULL, shrunk = NULL;
	int none = 0, code = sum(comm);
	if (code == blinkSuccess && (code = blinkCommSplit(comm, 0, rank, &split, NULL, err)) == blinkSuccess)
		code = sum(split);
	if (code == blinkSuccess
	    && (code = blinkCommShrink(comm, &none, 0, blinkShrinkDefault, &shrunk, NULL, err)) == blinkSuccess)
		code = sum(shrunk);
	blinkCommDestroy(shrunk);
	blinkCommDestroy(split);
	return code;
}

static void
be_rank(int rank, const char *file, int timeout_ms)
{
	const blinkConfig_t config = { .timeoutMs = timeout_ms };
	blinkError_t err = { "" };
	blinkComm_t comm = NULL;
	int code = blinkSuccess;
	alarm(60);
	setenv("BLINK_SOCKET_IFNAME", "lo", 1);
	if (file)
		setenv("BLINK_SECRET_FILE", path_of(file), 1);
	if (rank == 0) {
		code = blinkGetUniqueId(&shared->id, &err);
		shared->has_id = true;
	}
	while (!shared->has_id)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (code == blinkSuccess)
		code = blinkCommInitRank(&comm, 2, &shared->id, rank, &config, &err);
	if (code == blinkSuccess)
		code = use(comm, rank, &err);
	blinkCommDestroy(comm);
	shared->code[rank] = code;
	snprintf(shared->text[rank], sizeof shared->text[rank], "%.599s", err.text);
	_exit(0);
}

/* timeout_ms: of rank 0. Rank 1 has PATIENT_MS: a busy machine may start it late, and no case relies on its timeout. */
static void
play(const char *file0, const char *file1, int timeout_ms)
{
	pid_t pid[2];
	memset(shared, 0, sizeof *shared);
	for (int r = 0; r < 2; r++) {
		pid[r] = fork();
		if (pid[r] == 0)
			be_rank(r, r ? file1 : file0, r ? PATIENT_MS : timeout_ms);
	}
	for (int r = 0; r < 2; r++)
		waitpid(pid[r], NULL, 0);
}

static void
is_let_in(const char *name, const char *file)
{
	play(file, file, PATIENT_MS);
	check(shared->code[0] == blinkSuccess && shared->code[1] == blinkSuccess, name, "%d: %s; %d: %s",
	    shared->code[0], shared->text[0], shared->code[1], shared->text[1]);
}

static void
stays_out(const char *name, const char *file0, const char *file1)
{
	play(file0, file1, TIMEOUT_MS);
	check(shared->code[0] == blinkTimeout && strstr(shared->text[0], "rank 1 of 2 has not come")
	    && shared->code[1] == blinkSystemError && strstr(shared->text[1], "who listens there does not know the "
	    "secret of this id, or has another BLINK_SECRET_FILE"), name, "%d: %s; %d: %s", shared->code[0],
	    shared->text[0], shared->code[1], shared->text[1]);
}

/* ---- files ---- */

static void
is_refused(const char *name, const char *file, const char *why)
{
	blinkError_t err = { "" };
	blinkUniqueId_t id;
	setenv("BLINK_SECRET_FILE", path_of(file), 1);
	int code = blinkGetUniqueId(&id, &err);
	unsetenv("BLINK_SECRET_FILE");
	check(code == blinkInvalidArgument && strstr(err.text, "BLINK_SECRET_FILE: ") && strstr(err.text, why), name,
	    "%d: %s", code, err.text);
}

int
main(void)
{
	static char long_text[1025];
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || !mkdtemp(folder))
		return 1;
	put("secret", text, strlen(text), 0600);
	put("other", other, strlen(other), 0600);
	put("open", text, strlen(text), 0640);
	put("short", text, 15, 0600);
	put("long", long_text, sizeof long_text, 0600);
	is_let_in("two ranks without a secret", NULL);
	is_let_in("two ranks with one", "secret");
	stays_out("a rank with the id and no secret", "secret", NULL);
	stays_out("a rank with another secret", "secret", "other");
	stays_out("a rank with a secret, where the job has none", NULL, "secret");
	is_refused("a file that others can read", "open", ": mode 640: want a file of 16 to 1024 bytes, of this user");
	is_refused("a file that is too short", "short", ": too short: ");
	is_refused("a file that is too long", "long", ": too long: ");
	is_refused("a file that is not there", "none", ": No such file or directory: ");
	is_refused("a directory", ".", ": not a regular file: ");
	if (geteuid() == 0 && chown(path_of("other"), 65534, 65534) == 0)
		is_refused("a file of another user", "other", ": of user 65534: ");
	for (const char *const *f = (const char *const[]){ "secret", "other", "open", "short", "long", NULL }; *f; f++)
		unlink(path_of(*f));
	rmdir(folder);
	return end_tests();
}
