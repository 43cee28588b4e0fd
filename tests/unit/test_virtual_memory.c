/* The virtual driver's devices, contexts and memory: what CUDA allows, and what it refuses; memory of other processes;
 * failures on request. Other processes, and those with another environment, are this program again, by a role. Its
 * parts are in virtual_memory/. */
#include "unit/virtual_memory/virtual_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

enum { SECONDS_MOST = 240 };

int n_tests;
static int n_failed;
static const char *program;

void
ok(bool good, const char *name)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_tests, name);
	n_failed += !good;
}

bool
is(CUresult got, CUresult want, const char *what)
{
	if (got != want)
		printf("# %s: %d: want %d\n", what, (int)got, (int)want);
	return got == want;
}

/* ---- other processes ---- */

pid_t
start(const char *role, const char *variable, const char *value, int socket)
{
	fflush(stdout);
	pid_t child = fork();
	if (child != 0)
		return child;
	if (variable)
		setenv(variable, value, 1);
	if (socket >= 0)
		fcntl(dup2(socket, SOCKET), F_SETFD, 0);
	execl(program, program, "role", role, (char *)NULL);
	_exit(127);
}

int
ended(pid_t child)
{
	int status = -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

bool
exits(const char *role, const char *variable, const char *value, int want)
{
	int status = ended(start(role, variable, value, -1));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != want)
		printf("# %s with %s=%s: status %x: want exit %d\n", role, variable, value, (unsigned)status, want);
	return WIFEXITED(status) && WEXITSTATUS(status) == want;
}

/* ---- roles ---- */

static const struct role {
	const char *name;
	bool (*run)(void);
} roles[] = {
	{ "fails-each", role_fails_each }, { "fails-second", role_fails_second }, { "lost", role_lost },
	{ "refused", role_refused },
	{ "refused-late", role_refused_late }, { "works", role_works }, { "touches", role_touches },
	{ "owner", role_owner }, { "visible", role_visible }, { "no-device", role_no_device },
	{ "multicast", role_multicast },
};

static int
run_role(const char *name)
{
	if (strncmp(name, "refused", 7) == 0 && !freopen("/dev/null", "w", stderr))
		return 1;
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (strcmp(roles[i].name, name) == 0)
			return roles[i].run() ? 0 : 1;
	return 1;
}

int
main(int argc, char **argv)
{
	alarm(SECONDS_MOST);
	program = argv[0];
	if (argc == 3 && strcmp(argv[1], "role") == 0)
		return run_role(argv[2]);
	setenv("VIRTUAL_GPU_TOPOLOGY", "topologies/dgx1v.xml", 1);
	setenv("VIRTUAL_GPU_MEMORY", "268435456", 1);
	test_devices();
	test_names();
	test_addresses();
	test_without_context();
	test_contexts();
	test_peers();
	test_sticky();
	test_memory();
	test_addresses_of_freed();
	test_host();
	test_registered();
	test_attributes();
	test_reserve();
	test_create();
	test_map();
	test_capture();
	test_multicast();
	test_random(argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
	test_processes();
	test_visible();
	test_threads();
	test_speed();
	test_fork();
	test_requests();
	test_environment();
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
