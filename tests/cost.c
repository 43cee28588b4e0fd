/* What commands cost. Of each line of standard input, a command with tabs between its arguments, it prints a line: CPU
 * time in us, peak memory in KiB, the exit code (128 and more: a signal) and the first line of the standard error.
 *
 * usage: cost SECONDS     of CPU time for each command
 *
 * A small program, since the peak of a process begins with that of its parent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

enum { ARGUMENTS = 64 };

static void
run(char *line, rlim_t seconds, int error)
{
	char *argument[ARGUMENTS + 1] = { NULL };
	int n = 0, null = open("/dev/null", O_RDWR);
	struct rlimit limit = { seconds, seconds + 1 };
	for (char *at = strtok(line, "\t\n"); at && n < ARGUMENTS; at = strtok(NULL, "\t\n"))
		argument[n++] = at;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(error, STDERR_FILENO);
	setrlimit(RLIMIT_CPU, &limit);
	if (n > 0)
		execvp(argument[0], argument);
	_exit(127);
}

int
main(int argc, char **argv)
{
	char *line = NULL, text[512];
	size_t room = 0;
	int error = memfd_create("stderr", MFD_CLOEXEC);
	rlim_t seconds = argc > 1 ? (rlim_t)atoi(argv[1]) : 60;
	while (getline(&line, &room, stdin) > 0) {
		struct rusage usage;
		int status;
		if (ftruncate(error, 0) != 0)
			return 1;
		lseek(error, 0, SEEK_SET);
		pid_t child = fork();
		if (child == 0)
			run(line, seconds, error);
		if (child < 0 || wait4(child, &status, 0, &usage) != child)
			return 1;
		ssize_t n = pread(error, text, sizeof text - 1, 0);
		text[n > 0 ? n : 0] = 0;
		text[strcspn(text, "\n")] = 0;
		printf("%lld %ld %d %s\n",
		    (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL + usage.ru_utime.tv_usec
		    + usage.ru_stime.tv_usec, usage.ru_maxrss,
		    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text);
		fflush(stdout);
	}
	free(line);
	return 0;
}
