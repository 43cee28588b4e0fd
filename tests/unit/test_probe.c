/* The machine that this runs on, as NVIDIA's driver and libhwloc tell of it: a virtual NVML and a virtual libhwloc,
 * beside the tests, tell of the machines in topologies/, and what comes out must be these. Run at the root of the
 * repository. */
#include "base/file_read.h"
#include "format/format.h"
#include "format/nvml/driver.h"
#include "probe/probe.h"
#include "topology/topology.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#define CUDA_HEADER
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#define CUDA_HEADER
#endif
#if __has_include(<nvml.h>)
#include <nvml.h>
#define NVML_HEADER
#elif __has_include("/usr/local/cuda/include/nvml.h")
#include "/usr/local/cuda/include/nvml.h"
#define NVML_HEADER
#endif

static struct {
	void *nvml;
	int (*export)(void *topology, char **xml, int *size, unsigned long flags);
	NvmlResult (*shutdown)(void);
} virtual;
static Ctx ctx;
static int n_failed;

static void
ok(bool good, const char *name)
{
	if (!good)
		printf("# %s\n", ctx.error.text);
	printf("%s %s\n", good ? "ok" : "not ok", name);
	n_failed += !good;
}

static void
begin(void)
{
	ctx_free(&ctx);
	ctx_init(&ctx);
}

/* ---- our declarations ---- */

static void
test_header(void)
{
#ifdef NVML_HEADER
#define X(name, value) _Static_assert((int)NV_##name == (int)NVML_##name, #name);
	NVML_RESULT_LIST(X)
	NVML_CONSTANT_LIST(X)
#undef X
	_Static_assert(sizeof(NvmlPci) == sizeof(nvmlPciInfo_t), "nvmlPciInfo_t");
	_Static_assert(offsetof(NvmlPci, bus) == offsetof(nvmlPciInfo_t, bus), "nvmlPciInfo_t.bus");
	_Static_assert(offsetof(NvmlPci, busId) == offsetof(nvmlPciInfo_t, busId), "nvmlPciInfo_t.busId");
	_Static_assert(sizeof(NvmlField) == sizeof(nvmlFieldValue_t), "nvmlFieldValue_t");
	_Static_assert(offsetof(NvmlField, nvmlReturn) == offsetof(nvmlFieldValue_t, nvmlReturn), "nvmlReturn");
	_Static_assert(offsetof(NvmlField, value) == offsetof(nvmlFieldValue_t, value), "nvmlFieldValue_t.value");
	_Static_assert(NV_NVLINK_MAX_LINKS >= NVML_NVLINK_MAX_LINKS, "NVML_NVLINK_MAX_LINKS");
	_Static_assert(sizeof(nvmlEnableState_t) == sizeof(unsigned), "nvmlEnableState_t");
	_Static_assert(sizeof(nvmlIntNvLinkDeviceType_t) == sizeof(unsigned), "nvmlIntNvLinkDeviceType_t");
	_Static_assert(sizeof(nvmlNvLinkCapability_t) == sizeof(unsigned), "nvmlNvLinkCapability_t");
	_Static_assert(sizeof(nvmlGpuP2PCapsIndex_t) == sizeof(unsigned), "nvmlGpuP2PCapsIndex_t");
	_Static_assert(sizeof(nvmlGpuP2PStatus_t) == sizeof(unsigned), "nvmlGpuP2PStatus_t");
	_Static_assert(sizeof(nvmlReturn_t) == sizeof(NvmlResult), "nvmlReturn_t");
	ok(true, "constants and structures are those of nvml.h");
#else
	printf("skip constants and structures are those of nvml.h: there is none\n");
#endif
#ifdef CUDA_HEADER
#define X(name, value) _Static_assert((int)BY_##name == (int)name, #name);
	CUDA_CONSTANT_LIST(X)
#undef X
	_Static_assert(sizeof(CUdevice) == sizeof(int) && sizeof(CUresult) == sizeof(int), "CUdevice, CUresult");
	ok(true, "constants are those of cuda.h");
#else
	printf("skip constants are those of cuda.h: there is none\n");
#endif
}

/* ---- machines ---- */

static void
open_virtual(const char *program)
{
	char path[512];
	const char *end = strrchr(program, '/');
	int n = end ? (int)(end - program) : 1;
	program = end ? program : ".";
	snprintf(path, sizeof path, "%.*s/../virtual_gpu/" NVML_SONAME, n, program);
	virtual.nvml = dlopen(path, RTLD_NOW);
	snprintf(path, sizeof path, "%.*s/../virtual_gpu/hwloc/libhwloc.so.15", n, program);
	void *hwloc = dlopen(path, RTLD_NOW);
	if (virtual.nvml)
		*(void **)&virtual.shutdown = dlsym(virtual.nvml, "nvmlShutdown");
	if (hwloc)
		*(void **)&virtual.export = dlsym(hwloc, "hwloc_topology_export_xmlbuffer");
	if (!virtual.shutdown || !virtual.export) {
		printf("Bail out! %s\n", dlerror());
		exit(1);
	}
}

/* What the machine of a file tells; keep: NULL, or GPUs that stay. */
static Status
probe(const char *path, const char *sysfs, const int *keep, int n, Topology **out)
{
	char *xml;
	int size;
	Text hwloc = { 0 };
	SeenGpus gpus;
	MachineSeen seen = { &gpus, &hwloc, sysfs };
	setenv("VIRTUAL_GPU_TOPOLOGY", path, 1);
	TRY(gpus_see(&ctx, &gpus));
	if (keep)
		gpus_keep(&gpus, keep, n);
	if (virtual.export((void *)&size, &xml, &size, 0) != 0)
		return fail(&ctx, IO, "the virtual libhwloc fails");
	text_add(&hwloc, xml, (size_t)size - 1);
	free(xml);
	Status status = topo_of_machine(&ctx, "this machine", &seen, NULL, out);
	text_free(&hwloc);
	return status;
}

static Topology *
shipped(const char *path)
{
	static const char *const beside[] = { NULL };
	Text text = { 0 };
	Topology *topo;
	if (file_read_regular(&ctx, path, &text) != OK
	    || topo_read(&ctx, path, beside, text.data, text.size, &topo) != OK) {
		printf("Bail out! %s\n", ctx.error.text);
		exit(1);
	}
	text_free(&text);
	return topo;
}

static bool
same_form(const Topology *a, const Topology *b)
{
	unsigned char form[2][CANONICAL_FORM_BYTES];
	return topo_canonical_form(&ctx, a, NULL, form[0], NULL, NULL) == OK
	    && topo_canonical_form(&ctx, b, NULL, form[1], NULL, NULL) == OK
	    && memcmp(form[0], form[1], sizeof form[0]) == 0;
}

/* Links, rates and latencies of all classes, switches of PCIe, NICs and CPUs: up to names. */
static void
test_shipped(void)
{
	static const char *const names[] = { "dgx1p", "dgx1v", "dgx2", "dgx-a100", "dgx-h100", "hgx-b200", "p4d",
		"pcie-8gpu", "abci", "kesch" };
	char path[64], text[128];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		Topology *topo;
		begin();
		snprintf(path, sizeof path, "topologies/%s.xml", names[i]);
		snprintf(text, sizeof text, "%s: probed, it has the form of the file", names[i]);
		ok(probe(path, "/nowhere", NULL, 0, &topo) == OK && same_form(topo, shipped(path)), text);
	}
}

static int
nvlinks(const Topology *topo, int a, int b)
{
	for (int l = 0; l < topo->n_links; l++)
		if (topo->link[l].class == LINK_NVLINK && topo->link[l].from == a && topo->link[l].to == b)
			return topo->link[l].count;
	return 0;
}

static void
test_subset(void)
{
	static const int keep[] = { 0, 3, 4, 7 };
	const char *path = "topologies/dgx1v.xml";
	Topology *topo;
	int wrong = 0;
	begin();
	bool good = probe(path, "/nowhere", keep, 4, &topo) == OK && topo->n_ranks == 4;
	const Topology *whole = shipped(path);
	for (int a = 0; good && a < 4; a++) {
		wrong += strcmp(topo->vertex[a].id, whole->vertex[keep[a]].id) != 0;
		for (int b = 0; b < 4; b++)
			wrong += nvlinks(topo, a, b) != nvlinks(whole, keep[a], keep[b]);
	}
	ok(good && wrong == 0, "some of the GPUs: their ids and NVLinks");
}

/* POWER9: NVLinks to CPUs; and GPUs that hwloc does not have. */
static void
test_cpu_links(void)
{
	Topology *topo;
	begin();
	bool good = probe("topologies/summit.xml", "/nowhere", NULL, 0, &topo) == OK;
	int to_cpus = 0;
	for (int l = 0; good && l < topo->n_links; l++)
		if (topo->link[l].class == LINK_NVLINK && topo->vertex[topo->link[l].to].kind == VERTEX_CPU)
			to_cpus += topo->link[l].count;
	ok(good && to_cpus == 12 && nvlinks(topo, 0, 2) == 2 && nvlinks(topo, 0, 3) == 0, "NVLinks to CPUs");
}

static bool
has_note(const Topology *topo, const char *words)
{
	bool found = false;
	for (int i = 0; i < topo->n_notes; i++)
		found |= strstr(topo->note[i], words) != NULL;
	return found;
}

/* A machine whose environment has one more variable. */
static Topology *
odd(const char *variable, const char *value)
{
	Topology *topo = NULL;
	begin();
	setenv(variable, value, 1);
	Status status = probe("topologies/dgx1v.xml", "/nowhere", NULL, 0, &topo);
	unsetenv(variable);
	return status == OK ? topo : NULL;
}

static void
test_odd(void)
{
	Topology *topo = odd("VIRTUAL_GPU_DOWN", "0:2");
	ok(topo && nvlinks(topo, 0, 3) == 1 && nvlinks(topo, 3, 0) == 1 && has_note(topo, "1 NVLinks that are down"),
	    "a link that one end says is down");
	topo = odd("VIRTUAL_GPU_DOWN", "3:0");
	ok(topo && nvlinks(topo, 0, 3) == 1 && nvlinks(topo, 3, 0) == 1, "a link that the other end says is down");
	topo = odd("VIRTUAL_GPU_MIG", "3");
	ok(topo && topo->n_ranks == 8 && nvlinks(topo, 0, 3) == 0 && nvlinks(topo, 0, 4) == 2
	    && has_note(topo, "GPU 3 is in MIG mode"), "a GPU in MIG mode");
	topo = odd("VIRTUAL_GPU_SHOW", "0,3,6");
	ok(topo && topo->n_ranks == 3 && nvlinks(topo, 0, 1) == 2 && nvlinks(topo, 0, 2) == 0
	    && has_note(topo, "NVLinks to GPUs that are not written"), "a container with some of the GPUs");
	topo = odd("VIRTUAL_GPU_NAME", "Tesla\033]0;V100\n\"<&>");
	ok(topo && nvlinks(topo, 0, 3) == 2, "a name with control characters");
	topo = odd("VIRTUAL_GPU_TOLD", "12000");
	ok(topo && topo->class[LINK_NVLINK].capacity == 12000000000 && has_note(topo, "12 GB/s, as the driver says"),
	    "NVLinks of another rate than the model has");
	topo = odd("VIRTUAL_GPU_FAIL", "nvmlDeviceGetNvLinkRemoteDeviceType:0:13");
	ok(topo && nvlinks(topo, 0, 3) == 2, "a driver that does not say what links lead to");
	topo = odd("VIRTUAL_GPU_FAIL", "nvmlDeviceGetFieldValues:0:3");
	ok(topo && topo->class[LINK_NVLINK].capacity == 25000000000, "a driver that does not say how fast links are");
	topo = odd("VIRTUAL_GPU_FAIL", "nvmlDeviceGetNvLinkState:0:3");
	ok(topo && nvlinks(topo, 0, 3) == 0, "a driver without NVLinks");
	topo = odd("VIRTUAL_GPU_NO_PCI", "1");
	ok(topo && topo->n_ranks == 8 && nvlinks(topo, 0, 3) == 2
	    && has_note(topo, "is not among the PCI devices of hwloc"), "hwloc without PCI devices");
}

/* ---- failures ---- */

static bool
is_line(const char *text)
{
	return *text && !strchr(text, '\n') && !strchr(text, '\033');
}

/* The 1st, 2nd, 3rd, ... call fails, until there are no more: each time one error, and the library is shut down. */
static void
test_each_call(void)
{
	enum { MOST = 2000 };
	int wrong = 0, n = 1;
	for (; n < MOST; n++) {
		Topology *topo;
		char fault[32];
		begin();
		snprintf(fault, sizeof fault, "any:%d", n);
		setenv("VIRTUAL_GPU_FAIL", fault, 1);
		Status status = probe("topologies/abci.xml", "/nowhere", NULL, 0, &topo);
		unsetenv("VIRTUAL_GPU_FAIL");
		NvmlResult closed = virtual.shutdown();
		/* The last call is that of nvmlShutdown, whose failure changes nothing but that it stays open. */
		if (status == OK)
			break;
		wrong += status != IO || !is_line(ctx.error.text) || closed != NV_ERROR_UNINITIALIZED;
	}
	ok(wrong == 0 && n > 100 && n < MOST, "each call of NVML that fails");
}

static void
expect_failure(const char *variable, const char *value, Status want, const char *words)
{
	char name[160];
	Topology *topo;
	begin();
	setenv(variable, value, 1);
	Status status = probe("topologies/dgx1v.xml", "/nowhere", NULL, 0, &topo);
	unsetenv(variable);
	snprintf(name, sizeof name, "%s=%s: %s", variable, value, words);
	ok(status == want && is_line(ctx.error.text) && strstr(ctx.error.text, words), name);
}

static void
test_failures(void)
{
	expect_failure("VIRTUAL_GPU_FAIL", "nvmlInit_v2:1:9", IO, "kernel module of NVIDIA's driver is not loaded");
	expect_failure("VIRTUAL_GPU_FAIL", "nvmlInit_v2:1:18", IO, "not of the version of the kernel module");
	expect_failure("VIRTUAL_GPU_FAIL", "nvmlInit_v2:1:4", IO, "want access to /dev/nvidia*");
	expect_failure("VIRTUAL_GPU_FAIL", "nvmlDeviceGetName:6:15", IO, "GPU 5: lost");
	expect_failure("VIRTUAL_GPU_FAIL", "nvmlDeviceGetUUID:2:77", IO,
	    "GPU 1: NVML: nvmlDeviceGetUUID: Odd?[2J Error");
	expect_failure("VIRTUAL_GPU_SHOW", "", BAD_INPUT, "no GPU");
	expect_failure("VIRTUAL_GPU_SHOW", "0,2,2", BAD_INPUT, "GPU 2: its PCI address is that of GPU 1");
}

/* ---- a job's GPUs, by their NVLinks ---- */

enum { JOB_MOST = 16 };
static const int one_server[JOB_MOST];

static const char *
path_of(const char *name)
{
	static char path[80];
	snprintf(path, sizeof path, *name == '/' ? "%s" : "topologies/%s.xml", name);
	return path;
}

/* The cards of ranks on these GPUs of a machine. */
static bool
deal(const char *name, const int *gpu, int n, struct gpu_card *card)
{
	SeenGpus gpus;
	bool good;
	setenv("VIRTUAL_GPU_TOPOLOGY", path_of(name), 1);
	good = gpus_see(&ctx, &gpus) == OK;
	for (int r = 0; good && r < n; r++) {
		char address[32];
		const PciAddress *at = &gpus.gpu[gpu[r]].pci;
		snprintf(address, sizeof address, "%04x:%02X:%02x.0", at->domain, at->bus, at->device);
		good = probe_is_address(address) && probe_gpu(&ctx, address, &card[r]) == OK && card[r].known;
	}
	return good;
}

/* Have the GPUs of the machine the links of those that the job is on? */
static bool
alike(const Topology *machine, const int *found, const Topology *own, const int *gpu, int n)
{
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++)
			if ((a == b) != (found[a] == found[b])
			    || nvlinks(machine, found[a], found[b]) != nvlinks(own, gpu[a], gpu[b]))
				return false;
	return true;
}

/* A job on GPUs of one machine, looked for in another. want: NULL: any that are alike; else these; n 0: none. */
static void
expect_match(const char *text, const char *on, const char *in, const int *gpu, int n, bool found, const int *want)
{
	struct gpu_card card[JOB_MOST];
	int got[JOB_MOST];
	bool there = !found;
	Topology *own;
	begin();
	bool good = deal(on, gpu, n, card) && probe(path_of(on), "/nowhere", NULL, 0, &own) == OK;
	const Topology *machine = shipped(path_of(in));
	good = good && probe_match(&ctx, machine, card, one_server, n, got, &there) == OK && there == found;
	if (good && found)
		good = alike(machine, got, own, gpu, n) && (!want || memcmp(got, want, (size_t)n * sizeof *got) == 0);
	ok(good, text);
}

/* DGX-1V whose GPUs are numbered in another order. */
static const char *
turned_machine(void)
{
	static char path[64];
	static const int order[] = { 5, 2, 7, 0, 3, 6, 1, 4 };
	Text in = { 0 }, out = { 0 };
	snprintf(path, sizeof path, "/tmp/test_probe.%d.xml", (int)getpid());
	if (file_read_regular(&ctx, "topologies/dgx1v.xml", &in) != OK)
		return "dgx1v";
	/* Every gpuN that is not in the list of ids. */
	for (size_t i = 0; i < in.size; i++) {
		bool id = i + 4 < in.size && memcmp(in.data + i, "\"gpu", 4) == 0
		    && !(i >= 8 && memcmp(in.data + i - 8, "<gpu id=", 8) == 0);
		text_add(&out, in.data + i, id ? 4 : 1);
		if (id)
			text_printf(&out, "%d", order[in.data[i + 4] - '0']);
		i += id ? 4 : 0;
	}
	FILE *f = fopen(path, "w");
	if (f) {
		fwrite(out.data, 1, out.size, f);
		fclose(f);
	}
	text_free(&in);
	text_free(&out);
	return path;
}

/* Whom NVLink joins to GPU 0 of a machine, of its GPUs 0 to n - 1, as text: "0111". */
static const char *
joined_to_first(const char *name, int n)
{
	static char text[JOB_MOST + 1];
	char address[JOB_MOST][24];
	const char *peer[JOB_MOST];
	bool joined[JOB_MOST];
	for (int i = 0; i < n; i++)
		peer[i] = (snprintf(address[i], sizeof address[i], "0000:%02x:00.0", (unsigned)(0x10 + i)), address[i]);
	setenv("VIRTUAL_GPU_TOPOLOGY", path_of(name), 1);
	begin();
	if (probe_joined(&ctx, peer[0], peer + 1, n - 1, joined) != OK)
		return ctx.error.text;
	for (int i = 0; i < n - 1; i++)
		text[i] = joined[i] ? '1' : '0';
	text[n - 1] = 0;
	return text;
}

static void
test_joined(void)
{
	ok(strcmp(joined_to_first("dgx1v", 8), "1111000") == 0, "a DGX-1V: GPU 0 is joined to 1, 2, 3 and 4");
	ok(strcmp(joined_to_first("dgx2", 16), "111111111111111") == 0, "a DGX-2: by its switches to all");
	ok(strcmp(joined_to_first("pcie-8gpu", 8), "0000000") == 0, "PCIe joins none");
	setenv("VIRTUAL_GPU_SHOW", "0,3", 1);
	ok(strcmp(joined_to_first("dgx1v", 5), "0010") == 0, "those that the driver does not show are not");
	setenv("VIRTUAL_GPU_SHOW", "1,3", 1);
	ok(strstr(joined_to_first("dgx1v", 5), "0000:10:00.0: NVML: nvmlDeviceGetHandleByPciBusId_v2"),
	    "nor is the first");
	unsetenv("VIRTUAL_GPU_SHOW");
	setenv("VIRTUAL_GPU_FAIL", "nvmlDeviceGetP2PStatus:2", 1);
	ok(strstr(joined_to_first("dgx1v", 5), "nvmlDeviceGetP2PStatus: Unknown Error"), "a driver that cannot tell");
	unsetenv("VIRTUAL_GPU_FAIL");
	ok(virtual.shutdown() == NV_ERROR_UNINITIALIZED, "NVML is shut down each time");
}

static void
test_match(void)
{
	static const int some[] = { 1, 4, 5, 6 }, all[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, pair[] = { 7, 2 };
	static const int shown[] = { 0, 1, 2, 3 };
	expect_match("four GPUs of a DGX-1V: their own numbers", "dgx1v", "dgx1v", some, 4, true, some);
	expect_match("all of a DGX-1P", "dgx1p", "dgx1p", all, 8, true, all);
	expect_match("two of a DGX A100", "dgx-a100", "dgx-a100", pair, 2, true, pair);
	expect_match("a DGX-1V is no DGX-1P", "dgx1v", "dgx1p", some, 4, false, NULL);
	expect_match("an A100 is no H100", "dgx-a100", "dgx-h100", pair, 2, false, NULL);
	expect_match("an H100 is no B200, by the rate of its links", "dgx-h100", "hgx-b200", pair, 2, false, NULL);
	expect_match("more GPUs than there are", "dgx1v", "abci", all, 8, false, NULL);
	expect_match("GPUs without NVLinks, by their numbers", "pcie-8gpu", "pcie-8gpu", some, 4, true, some);
	const char *turned = turned_machine();
	expect_match("GPUs in another order", turned, "dgx1v", all, 8, true, NULL);
	expect_match("some GPUs in another order", turned, "dgx1v", some, 4, true, NULL);
	unlink(turned);
	setenv("VIRTUAL_GPU_SHOW", "0,1,2,3", 1);
	expect_match("a container with four of the GPUs", "dgx1v", "dgx1v", shown, 4, true, NULL);
	expect_match("a container with GPUs without NVLinks", "pcie-8gpu", "pcie-8gpu", shown, 4, false, NULL);
	unsetenv("VIRTUAL_GPU_SHOW");
}

/* Servers are matched each with one of its own; and bytes of a rank may be any. */
static void
test_match_servers(void)
{
	static const int some[] = { 1, 4, 5, 6 }, server[] = { 0, 1, 0, 1 };
	struct gpu_card card[4];
	int got[4];
	bool found = false;
	begin();
	bool good = deal("dgx1v", some, 4, card);
	const Topology *two = shipped("topologies/two-dgx1v.xml"), *one = shipped("topologies/dgx1v.xml");
	good = good && probe_match(&ctx, two, card, server, 4, got, &found) == OK && found;
	for (int r = 0; good && r < 4; r++)
		good = two->vertex[got[r]].node == server[r] && got[r] == some[r] + 8 * server[r];
	ok(good, "two servers");
	good = probe_match(&ctx, one, card, server, 4, got, &found) == OK && !found;
	ok(good, "two servers, and a machine of one");
	memset(card, 0xff, sizeof card);
	ok(probe_match(&ctx, two, card, server, 4, got, &found) == OK && !found, "cards of any bytes");
}

static void
test_addresses(void)
{
	static const char *const good[] = { "0000:3b:00.0", "00000000:3B:1f.0", "10000:00:00.0" };
	static const char *const bad[] = { "", "gpu3", "3", "3b:00.0", "0000:3b:00.0 ", "0000:3b:00", "0000:3b:00.0:1",
		"s0:0-2", "node0:gpu3" };
	struct gpu_card card;
	int wrong = 0;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		wrong += !probe_is_address(good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		wrong += probe_is_address(bad[i]);
	ok(wrong == 0, "what is a PCI address");
	begin();
	setenv("VIRTUAL_GPU_TOPOLOGY", "topologies/dgx1v.xml", 1);
	ok(probe_gpu(&ctx, "0000:fe:00.0", &card) == BAD_INPUT
	    && strstr(ctx.error.text, "GPU 0000:fe:00.0: NVIDIA's driver shows 8 GPUs, and not this one"),
	    "a GPU that the driver does not show");
}

/* ---- ports of NICs ---- */

static void
put_file(const char *root, const char *path, const char *text)
{
	char name[512];
	snprintf(name, sizeof name, "%s/%s", root, path);
	for (char *at = name + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		mkdir(name, 0700);
	}
	FILE *f = fopen(name, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void
test_ports(void)
{
	char root[] = "/tmp/test_probe.XXXXXX", command[64];
	Topology *topo;
	begin();
	if (!mkdtemp(root)) {
		ok(false, "a directory");
		return;
	}
	put_file(root, "class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	put_file(root, "class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
	put_file(root, "class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
	put_file(root, "class/infiniband/mlx5_1/ports/1/rate", "10 Gb/sec (4X)\n");
	put_file(root, "class/infiniband/mlx5_1/ports/2/state", "4: ACTIVE\n");
	put_file(root, "class/infiniband/mlx5_1/ports/2/rate", "2.5 Gb/sec (1X SDR)\n");
	put_file(root, "class/infiniband/mlx5_2/ports/1/state", "4: ACTIVE\n");
	put_file(root, "class/infiniband/mlx5_2/ports/1/rate", "many\n");
	put_file(root, "class/net/mlx5_3/speed", "25000\n");
	bool good = probe("topologies/dgx1v.xml", root, NULL, 0, &topo) == OK;
	const int64_t want[] = { 12500000000, 312500000, 0, 3125000000 };
	for (int v = 0, n = 0; good && v < topo->n_vertices; v++)
		if (topo->vertex[v].kind == VERTEX_NIC)
			good = topo->vertex[v].port == want[n++];
	ok(good && has_note(topo, "mlx5_2: no port that is up"), "rates of NICs' ports");
	snprintf(command, sizeof command, "rm -r %s", root);
	if (system(command) != 0)
		printf("# %s stays\n", root);
}

int
main(int argc, char **argv)
{
	(void)argc;
	alarm(120);
	ctx_init(&ctx);
	open_virtual(argv[0]);
	test_header();
	test_shipped();
	test_subset();
	test_cpu_links();
	test_odd();
	test_each_call();
	test_failures();
	test_joined();
	test_match();
	test_match_servers();
	test_addresses();
	test_ports();
	ctx_free(&ctx);
	return n_failed > 0;
}
