/* blinkc: the command line, and which verb it is for. The verbs are in verb/, and the pipeline, from a machine and the
 * GPUs of a job to a verified schedule, in compile.c. Only this file exits. */
#include "base/file_read.h"
#include "verb/verb.h"
#include "verb/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
say(void *to, const char *line)
{
	fprintf(to, "%s\n", line);
}

static int
exit_code(Status status)
{
	switch (status) {
#define X(name, code, text)                                                                                            \
	case name:                                                                                                     \
		return code;
		STATUS_LIST(X)
#undef X
	}
	return 1;
}

/* Where standard output is closed, no file that is opened later may take its number: reading and writing still fail. */
static void
hold_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return;
}

int
main(int argc, char **argv)
{
	Options opt;
	Ctx ctx;
	ctx_init(&ctx);
	hold_standard();
	/* A write that cannot be done is an error like any other, after which the temporary file is removed. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* Who started this may have had it ignored: then nobody hears how a process ended. */
	signal(SIGCHLD, SIG_DFL);
	const Verb *verb = argc > 1 ? verb_find(argv[1]) : NULL;
	bool named = verb != NULL;
	verb = named ? verb : verb_rows;
	Status status = named || argc < 2 ? OK : verb_check_word(&ctx, argv[1], argv[2]);
	if (status == OK)
		status = options_parse(&ctx, argc - named, argv + named, verb->name, verb->bit, verbs_text, &opt);
	if (status == OK && !named && opt.n_files > 0 && verb_find(opt.file[0]) && !file_is_there(opt.file[0]))
		status = fail(&ctx, USAGE, "%s: want the verb first, before options: blinkc %s ...", opt.file[0],
		    opt.file[0]);
	if (status == OK && opt.value[OPT_HELP]) {
		help_print(named ? verb : NULL);
	} else if (status == OK && opt.value[OPT_VERSION]) {
		printf("blinkc %s\n", BLINK_VERSION);
	} else if (status == OK) {
		progress_start(isatty(STDERR_FILENO) && !opt.value[OPT_QUIET] && !opt.value[OPT_VERBOSE]);
		if (opt.value[OPT_VERBOSE]) {
			ctx.log = say;
			ctx.log_to = stderr;
		}
		status = verb->run(&ctx, &opt);
	}
	progress_hide();
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == OK)
		status = fail(&ctx, IO, "standard output: cannot be written");
	/* A status without a message: the results of the verb state what is wrong. */
	if (ctx.error.status != OK)
		fprintf(stderr, "blinkc: %s\n", ctx.error.text);
	ctx_free(&ctx);
	return exit_code(status);
}
