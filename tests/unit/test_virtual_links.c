/* Data cross the links of virtual GPUs as fast as the topology says, together, in all threads and processes. Rates are
 * measured by the wall clock: a loaded machine makes them lower, so that of several tries one has to be right; none may
 * be too fast. */
#include "virtual_gpu/virtual_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FLOWS_MOST = 8, WINDOW_MS = 200, TRIES = 15, SECONDS_MOST = 240, KIB = 1 << 10, MIB = 1 << 20 };

static int n_tests, n_failed;
static const char *program;

static void
ok(bool good, const char *name)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_tests, name);
	n_failed += !good;
}

static double
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Data from a device to another, in requests of some bytes, and the MB/s that they shall have; `rate` is what they
 * had. */
struct flow {
	int from, to;
	size_t bytes;
	double wanted, rate;
	pthread_barrier_t *begin;
};

static void *
cross(void *of)
{
	struct flow *f = of;
	size_t crossed = 0;
	double began, ended;
	if (f->begin)
		pthread_barrier_wait(f->begin);
	began = now();
	do {
		link_cross(f->from, f->to, f->bytes);
		crossed += f->bytes;
		ended = now();
	} while (ended - began < WINDOW_MS / 1e3);
	f->rate = (double)crossed / (ended - began) / 1e6;
	return NULL;
}

/* All at once. Each is right to some percent, and none is faster. */
static bool
run_flows(struct flow *flow, int n, double percent, bool *fast)
{
	pthread_t thread[FLOWS_MOST];
	pthread_barrier_t begin;
	bool good = true;
	pthread_barrier_init(&begin, NULL, (unsigned)n);
	for (int i = 0; i < n; i++) {
		flow[i].begin = &begin;
		if (pthread_create(&thread[i], NULL, cross, &flow[i]) != 0)
			exit(1);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(thread[i], NULL);
		good = good && flow[i].rate > flow[i].wanted * (1 - percent / 100);
		*fast = *fast || flow[i].rate > flow[i].wanted * (1 + percent / 100);
	}
	pthread_barrier_destroy(&begin);
	return good;
}

static void
test_flows(const char *name, struct flow *flow, int n, double percent)
{
	bool good = false, fast = false;
	for (int try = 0; try < TRIES && !good && !fast; try++)
		good = run_flows(flow, n, percent, &fast);
	for (int i = 0; i < n && (!good || fast); i++)
		printf("# %d to %d: %.2f MB/s: want %.2f\n", flow[i].from, flow[i].to, flow[i].rate, flow[i].wanted);
	ok(good && !fast, name);
}
#define TEST_FLOWS(name, percent, ...)                                         \
	test_flows(name, (struct flow[]){ __VA_ARGS__ },                       \
	    (int)(sizeof((struct flow[]){ __VA_ARGS__ }) / sizeof(struct flow)), percent)

/* This program again, in a role. */
static pid_t
start(const char *role, const char *variable, const char *value)
{
	fflush(stdout);
	pid_t child = fork();
	if (child != 0)
		return child;
	if (variable)
		setenv(variable, value, 1);
	execl(program, program, "role", role, (char *)NULL);
	_exit(127);
}

static bool
succeeds(pid_t child)
{
	int status = -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void
direct(int a, int b)
{
	__atomic_store_n(&context_of(a)->peer[b], true, __ATOMIC_RELAXED);
}

/* A thousandth of a DGX-1V: 25 GB/s of NVLink, 50 of two, 12 of PCIe, 6 between sockets. */
static void
test_rates(void)
{
	TEST_FLOWS("without peer access over PCIe", 5, { 0, 1, 256 * KIB, 12, 0, NULL });
	direct(0, 1), direct(0, 3);
	TEST_FLOWS("over a link", 5, { 0, 1, 256 * KIB, 25, 0, NULL });
	TEST_FLOWS("over two links, in small pieces", 5, { 3, 0, 128, 50, 0, NULL });
	TEST_FLOWS("to the host, and between sockets", 5, { 4, HOST, 64 * KIB, 12, 0, NULL },
	    { HOST, 6, 64 * KIB, 12, 0, NULL }, { 0, 5, 4 * KIB, 6, 0, NULL });
	TEST_FLOWS("both directions, and other links", 5, { 0, 1, 64 * KIB, 25, 0, NULL },
	    { 1, 0, 64 * KIB, 25, 0, NULL }, { 0, 3, 64 * KIB, 50, 0, NULL });
}

static void
test_shares(void)
{
	TEST_FLOWS("two share a link", 15, { 0, 1, 64 * KIB, 12.5, 0, NULL }, { 0, 1, 64 * KIB, 12.5, 0, NULL });
	TEST_FLOWS("much at once gets no more than little", 15, { 0, 1, MIB / 2, 12.5, 0, NULL },
	    { 0, 1, 512, 12.5, 0, NULL });
	TEST_FLOWS("five share a link", 15, { 0, 1, 4 * KIB, 5, 0, NULL }, { 0, 1, 16 * KIB, 5, 0, NULL },
	    { 0, 1, 32 * KIB, 5, 0, NULL }, { 0, 1, 4 * KIB, 5, 0, NULL }, { 0, 1, 16 * KIB, 5, 0, NULL });
	TEST_FLOWS("a longer route shares one", 15, { 0, 5, 16 * KIB, 6, 0, NULL }, { HOST, 4, 64 * KIB, 6, 0, NULL });
	TEST_FLOWS("two routes share a link", 15, { 2, HOST, 16 * KIB, 6, 0, NULL }, { 3, HOST, 16 * KIB, 6, 0, NULL },
	    { 6, HOST, 16 * KIB, 12, 0, NULL });
}

/* What an idle link has waits for nobody. */
static void
test_idle(void)
{
	double began = now();
	struct timespec pause = { .tv_nsec = 3000000 };
	for (int i = 0; i < 20; i++) {
		nanosleep(&pause, NULL);
		link_cross(0, 1, 64);
		link_cross(1, 1, MIB);
	}
	ok(now() - began < 20, "a message over an idle link");
}

/* Each process has half; one begins before the other. */
static bool
role_half(void)
{
	bool fast = false;
	struct flow flow = { 0, 1, 16 * KIB, 12.5, 0, NULL };
	direct(0, 1);
	for (int try = 0; try < 4; try++)
		cross(&flow);
	fast = flow.rate > 16;
	if (fast)
		printf("# %.2f MB/s of 25, of two processes\n", flow.rate);
	return !fast;
}

static void
test_processes(void)
{
	char path[] = "/tmp/virtual-gpu-XXXXXX";
	int fd = mkstemp(path);
	bool good = false;
	for (int try = 0; fd >= 0 && try < 5 && !good; try++) {
		pid_t a = start("half", "VIRTUAL_GPU_STATE", path), b = start("half", "VIRTUAL_GPU_STATE", path);
		good = succeeds(a);
		good = succeeds(b) && good;
	}
	ok(good, "two processes share a link");
	close(fd);
	unlink(path);
}

/* A thousandth of a DGX A100: 300 GB/s to and from the switch. */
static bool
role_switch(void)
{
	direct(0, 2), direct(1, 2);
	TEST_FLOWS("through a switch", 5, { 0, 2, MIB, 300, 0, NULL });
	TEST_FLOWS("two to one", 15, { 0, 2, MIB, 150, 0, NULL }, { 1, 2, MIB, 150, 0, NULL });
	return n_failed == 0 && linked(0, 7) && device_capability(0) == 80;
}

/* No limit, and PCIe alone: GPUs of a socket are peers. */
static bool
role_pcie(void)
{
	double began = now();
	link_cross(0, 7, (size_t)1 << 50);
	return now() - began < 20 && linked(0, 3) && !linked(0, 4);
}

static bool
role_mesh(void)
{
	return devices() == 3 && linked(0, 2) && device_capability(2) == 70 &&
	    strcmp(device_pci_id(1), "0000:11:00.0") == 0;
}

static bool
role_one(void)
{
	return devices() == 1;
}

static const struct role {
	const char *name;
	bool (*run)(void);
} roles[] = {
	{ "half", role_half }, { "switch", role_switch }, { "pcie", role_pcie }, { "mesh", role_mesh },
	{ "one", role_one },
};

static int
run_role(const char *name)
{
	if (cuInit(0) != CUDA_SUCCESS)
		return 1;
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (strcmp(roles[i].name, name) == 0)
			return roles[i].run() ? 0 : 1;
	return 1;
}

static void
test_topologies(void)
{
	setenv("VIRTUAL_GPU_TOPOLOGY", "topologies/dgx-a100.xml", 1);
	pid_t child = start("switch", NULL, NULL);
	ok(succeeds(child), "a switch");
	setenv("VIRTUAL_GPU_TOPOLOGY", "topologies/pcie-8gpu.xml", 1);
	ok(succeeds(start("pcie", "VIRTUAL_GPU_SCALE", "0")), "PCIe alone, without a limit");
	setenv("VIRTUAL_GPU_TOPOLOGY", "", 1);
	ok(succeeds(start("mesh", "VIRTUAL_GPU_COUNT", "3")) && succeeds(start("one", "VIRTUAL_GPU_COUNT", "1")),
	    "a number of GPUs without a topology");
}

int
main(int argc, char **argv)
{
	alarm(SECONDS_MOST);
	program = argv[0];
	if (argc == 3 && strcmp(argv[1], "role") == 0)
		return run_role(argv[2]);
	setenv("VIRTUAL_GPU_TOPOLOGY", "topologies/dgx1v.xml", 1);
	setenv("VIRTUAL_GPU_SCALE", "1000", 1);
	if (cuInit(0) != CUDA_SUCCESS)
		return 1;
	test_rates();
	test_shares();
	test_idle();
	test_processes();
	test_topologies();
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
