/* The topology, and how long data take.
 *
 * Data from one device to another, or to the host, take all shortest routes of one kind at once: where a switch has
 * two successors each gets a part, in proportion to its capacity. So a route is a set of directed links, each with the
 * time that a byte of the route costs there.
 *
 * A link has a clock: when it will be free. A transfer moves the clocks of all its links by what it costs there (the
 * bytes are on all of them at the same time), and goes on when the last of these clocks is due; a little earlier, so
 * that threads that wake up late waste nothing. Clocks are atomic numbers in shared memory, so that transfers of all
 * threads and processes queue up behind each other.
 *
 * Who takes much at once would get more of a link than who takes little. So all take the same number of bytes of it, a
 * quantum, in turn; what a thread does not use of its last one it keeps for its next bytes. Quanta are small while a
 * link is idle, so that a small message leaves no large gap; and who has a flag to store takes no more than that, and
 * does not wait for it.
 *
 * A few bytes from or to the host are what kernels report, or ask, every ms: by the clock, which no scale makes slower.
 * They take no time, or at a large scale they would take all of it. */
#include "virtual_gpu.h"

#include "base/file_read.h"
#include "base/limits.h"
#include "format/format.h"
#include "format/gpu_models.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ENDS = DEVICES_MOST + 1, LINKS_MOST = 4096, NAME_BYTES = 64, DEFAULT_COUNT = 8, DEFAULT_CAPABILITY = 70 };

/* ns: what a quantum takes on the slowest link, unless it has very few bytes, and how far clocks are in the future
 * when whose turn it is goes on, and when a link is said to be busy. A link that was free for no longer than LATE
 * waited for threads that woke up late, and they do not lose that time. A clock that is very far in the future is one
 * of another boot. */
enum { QUANTUM_IDLE = 50000, QUANTUM_BUSY = 1000000, AHEAD = 2000000, BUSY = 1000000, LATE = 4000000 };
enum { QUANTUM_BYTES = 4096, FEW_BYTES = 256 };
#define CLOCK_WRONG INT64_C(60000000000)
#define FAST (1u << LINK_NVLINK | 1u << LINK_XGMI)

/* Links that data of a pair take. cost: ns of a byte. */
struct route {
	int n;
	struct crossing {
		int link;
		double cost;
	} *crossing;
	bool fast;			/* over NVLink or xGMI alone */
};

/* How data of two devices go: what peer access has, and what copies take without. */
enum way { WAY_DIRECT, WAY_HOST, N_WAYS };

/* By the devices' numbers in all processes. */
static struct {
	bool limited;
	int n;				/* devices */
	int number[DEVICES_MOST];	/* of the devices of this process */
	bool linked[DEVICES_MOST][DEVICES_MOST];
	int64_t capacity[DEVICES_MOST][DEVICES_MOST];	/* of the first links of the direct route */
	char pci[DEVICES_MOST][NAME_BYTES], name[DEVICES_MOST][NAME_BYTES];
	int capability;
	bool multicasts;		/* a switch adds and copies */
	struct route route[ENDS][ENDS][N_WAYS];	/* the host is the last of ENDS */
	double slowest[2];		/* of all links of routes that are not fast, and that are: bytes/ns */
	int64_t *clock;			/* of each link: when it is free, ns */
} all;

/* ---- routes ---- */

/* Work space: of each vertex how far it is from where data begin (-1: not known), whether it leads on to where they
 * end, and how much of the data it has. */
struct walk {
	const Topology *topo;
	unsigned classes;
	int *distance;
	bool *leads;
	double *share;
};

/* Is this vertex where data of an end begin or end? The host's are in memory of the first CPU, so that those which
 * GPUs of two sockets exchange by it cross from one to the other. */
static bool
is_end(const Topology *topo, int v, int end)
{
	int cpu = topo->n_ranks;
	while (cpu < topo->n_vertices && topo->vertex[cpu].kind != VERTEX_CPU)
		cpu++;
	return v == (end == DEVICES_MOST ? cpu : end);
}

/* Data pass through no GPU. */
static bool
usable(const struct walk *w, const Link *link)
{
	return w->classes >> link->class & 1 &&
	    (link->from >= w->topo->n_ranks || w->distance[link->from] == 0);
}

/* On a shortest way from the beginning? */
static bool
shortest(const struct walk *w, const Link *link)
{
	return usable(w, link) && w->distance[link->from] >= 0 &&
	    w->distance[link->to] == w->distance[link->from] + 1;
}

/* Hops to the nearest end; -1: it cannot be reached. */
static int
measure(struct walk *w, int from, int to)
{
	const Topology *topo = w->topo;
	for (int v = 0; v < topo->n_vertices; v++)
		w->distance[v] = is_end(topo, v, from) ? 0 : -1;
	for (int d = 0; d < topo->n_vertices; d++) {
		for (int v = 0; v < topo->n_vertices; v++)
			if (w->distance[v] == d && is_end(topo, v, to))
				return d;
		for (int l = 0; l < topo->n_links; l++)
			if (w->distance[topo->link[l].from] == d && usable(w, &topo->link[l]) &&
			    w->distance[topo->link[l].to] < 0)
				w->distance[topo->link[l].to] = d + 1;
	}
	return -1;
}

/* Which vertices lead to the nearest ends, at `hops`. */
static void
find_leads(struct walk *w, int to, int hops)
{
	const Topology *topo = w->topo;
	for (int v = 0; v < topo->n_vertices; v++)
		w->leads[v] = w->distance[v] == hops && is_end(topo, v, to);
	for (int d = hops - 1; d >= 0; d--)
		for (int l = 0; l < topo->n_links; l++)
			if (w->distance[topo->link[l].from] == d && shortest(w, &topo->link[l]) &&
			    w->leads[topo->link[l].to])
				w->leads[topo->link[l].from] = true;
}

/* What leaves a vertex: of its share each link has a part in proportion to its capacity. */
static void
divide(struct walk *w, int v, double scale, struct route *out)
{
	const Topology *topo = w->topo;
	double capacity = 0;
	for (int l = 0; l < topo->n_links; l++)
		if (topo->link[l].from == v && shortest(w, &topo->link[l]) && w->leads[topo->link[l].to])
			capacity += (double)topo->link[l].capacity;
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		if (link->from != v || !shortest(w, link) || !w->leads[link->to])
			continue;
		double part = w->share[v] * (double)link->capacity / capacity;
		w->share[link->to] += part;
		double rate = (double)link->capacity / (1e9 * scale), *slowest = &all.slowest[out->fast];
		out->crossing[out->n++] = (struct crossing){ l, part / rate };
		*slowest = *slowest == 0 || rate < *slowest ? rate : *slowest;
	}
}

/* n 0: there is none. */
static Status
find_route(Ctx *ctx, struct walk *w, unsigned classes, int from, int to, double scale, struct route *out)
{
	int begins = 0;
	w->classes = classes;
	*out = (struct route){ .fast = (classes & ~FAST) == 0 };
	int hops = measure(w, from, to);
	if (hops <= 0)
		return OK;
	TRY(NEW(ctx, out->crossing, w->topo->n_links));
	find_leads(w, to, hops);
	for (int v = 0; v < w->topo->n_vertices; v++)
		begins += w->distance[v] == 0 && w->leads[v];
	for (int v = 0; v < w->topo->n_vertices; v++)
		w->share[v] = w->distance[v] == 0 && w->leads[v] ? 1.0 / begins : 0;
	for (int d = 0; d < hops; d++)
		for (int v = 0; v < w->topo->n_vertices; v++)
			if (w->distance[v] == d && w->leads[v])
				divide(w, v, scale, out);
	return OK;
}

/* ---- pairs ---- */

/* Peer access needs NVLink, xGMI, or PCIe alone. */
static Status
find_pair(Ctx *ctx, struct walk *w, int a, int b, RouteKind kind, double scale)
{
	unsigned local = route_classes(ROUTE_LOCAL);
	struct route pcie, *direct = &all.route[a][b][WAY_DIRECT], *host = &all.route[a][b][WAY_HOST];
	TRY(find_route(ctx, w, 1u << LINK_PCIE, a, b, scale, &pcie));
	TRY(find_route(ctx, w, local & ~FAST, a, b, scale, host));
	TRY(find_route(ctx, w, route_classes(kind) & local, a, b, scale, direct));
	if (host->n == 0)
		*host = *direct;
	all.linked[a][b] = kind == ROUTE_NVLINK || kind == ROUTE_XGMI || pcie.n > 0;
	for (int i = 0; i < direct->n; i++)
		if (w->topo->link[direct->crossing[i].link].from == a)
			all.capacity[a][b] += w->topo->link[direct->crossing[i].link].capacity;
	return OK;
}

static Status
find_pairs(Ctx *ctx, const Topology *topo, double scale)
{
	struct walk w = { .topo = topo };
	unsigned local = route_classes(ROUTE_LOCAL);
	unsigned char *kind;
	TRY(NEW(ctx, w.distance, topo->n_vertices));
	TRY(NEW(ctx, w.leads, topo->n_vertices));
	TRY(NEW(ctx, w.share, topo->n_vertices));
	TRY(NEW(ctx, kind, topo->n_ranks * topo->n_ranks));
	TRY(topo_pair_routes(ctx, topo, kind));
	for (int a = 0; a < topo->n_ranks; a++) {
		for (int b = 0; b < topo->n_ranks; b++)
			if (a != b)
				TRY(find_pair(ctx, &w, a, b, (RouteKind)kind[a * topo->n_ranks + b], scale));
		TRY(find_route(ctx, &w, local, a, DEVICES_MOST, scale, &all.route[a][DEVICES_MOST][WAY_DIRECT]));
		TRY(find_route(ctx, &w, local, DEVICES_MOST, a, scale, &all.route[DEVICES_MOST][a][WAY_DIRECT]));
	}
	return OK;
}

/* ---- the file ---- */

/* "0000:1a:00.0", where ids of the topology are such; else one by number. */
static void
name_devices(const Topology *topo, const char *model)
{
	for (int i = 0; i < topo->n_ranks; i++) {
		unsigned domain, bus, slot, function;
		const char *id = topo->vertex[i].id;
		if (sscanf(id, "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) == 4)
			snprintf(all.pci[i], NAME_BYTES, "%s", id);
		else
			snprintf(all.pci[i], NAME_BYTES, "0000:%02x:00.0", (unsigned)(0x10 + i));
		snprintf(all.name[i], NAME_BYTES, "Virtual %s", model);
	}
}

/* The first word of the topology's name and source that is a model of NVIDIA. */
static void
find_model(const Topology *topo)
{
	char text[1024], *rest = text, *word;
	const GpuModel *model = NULL;
	int capability;
	snprintf(text, sizeof text, "%s %s", topo->name, topo->source ? topo->source : "");
	for (char *c = text; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : ' ';
	while (!model && (word = strsep(&rest, " "))) {
		if (strlen(word) > 2)
			model = gpu_model_find(word);
		if (model && sscanf(model->arch, "sm%d", &capability) != 1)
			model = NULL;
	}
	all.capability = model ? capability : DEFAULT_CAPABILITY;
	name_devices(topo, model ? model->name : "GPU");
}

static const char *variable = "VIRTUAL_GPU_TOPOLOGY";

/* Beside the file there may be those that it names. */
static Status
read_topology(Ctx *ctx, const char *path, Topology **out)
{
	static const char *const dirs[] = { NULL };
	Text text = { 0 };
	Status status = path ? file_read(ctx, path, &text) : OK;
	if (!path) {
		char line[64];
		int count = (int)setting("VIRTUAL_GPU_COUNT", DEFAULT_COUNT);
		variable = "VIRTUAL_GPU_COUNT";
		snprintf(line, sizeof line, count == 1 ? "gpu:%d" : "gpu:%d mesh:25", count);
		status = synthetic_write(ctx, line, &text);
	}
	if (status == OK)
		status = topo_read(ctx, path ? path : "virtual", dirs, text.data ? text.data : "", text.size, out);
	text_free(&text);
	return status;
}

/* As CUDA: what is behind a number that no device has, or that comes twice, does not count. Those that are not visible
 * follow. Returns how many are. */
static int
choose_visible(void)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	bool seen[DEVICES_MOST] = { false };
	int n = 0;
	while (text && *text) {
		char *end;
		long number = strtol(text, &end, 10);
		if (end == text || (*end && *end != ',') || number < 0 || number >= all.n || seen[number])
			break;
		seen[number] = true;
		all.number[n++] = (int)number;
		text = *end ? end + 1 : end;
	}
	for (int i = 0, hidden = n; i < all.n; i++)
		if (!seen[i])
			all.number[hidden++] = i;
	return text ? n : all.n;
}

int
device_number(int device)
{
	return all.number[device];
}

int
device_of_number(int number)
{
	for (int i = 0; i < all.n; i++)
		if (all.number[i] == number)
			return i;
	return -1;
}

/* Clocks of the links: of this process, or in a file. */
static bool
open_clocks(int n_links)
{
	const char *path = getenv("VIRTUAL_GPU_STATE");
	size_t bytes = (size_t)n_links * sizeof *all.clock;
	int fd = -1;
	if (path && *path) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0)
			return false;
	}
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (fd >= 0)
		close(fd);
	all.clock = at;
	return at != MAP_FAILED;
}

static CUresult
use_topology(Ctx *ctx, const Topology *topo)
{
	int64_t scale = setting("VIRTUAL_GPU_SCALE", 0);
	if (topo->n_ranks < 1 || topo->n_ranks > DEVICES_MOST || topo->n_nodes > 1)
		return setting_refused(variable, "%d GPUs, %d servers: want 1 to %d GPUs of one server", topo->n_ranks,
		    topo->n_nodes, DEVICES_MOST);
	if (find_pairs(ctx, topo, (double)scale) != OK)
		return setting_refused(variable, "%s", ctx->error.text);
	if (scale > 0 && topo->n_links > 0 && !open_clocks(topo->n_links))
		return setting_refused("VIRTUAL_GPU_STATE", "%m");
	find_model(topo);
	for (int v = topo->n_ranks; v < topo->n_vertices; v++)
		all.multicasts = all.multicasts || (topo->vertex[v].multicast && topo->vertex[v].reduce);
	all.n = topo->n_ranks;
	all.limited = scale > 0 && topo->n_links > 0;
	return CUDA_SUCCESS;
}

/* Routes stay in the arena, as long as the process lives. */
CUresult
links_open(int *n)
{
	static Ctx ctx;
	const char *path = getenv(variable);
	Topology *topo;
	ctx_init(&ctx);
	CUresult result = read_topology(&ctx, path && *path ? path : NULL, &topo) != OK ?
	    setting_refused(variable, "%s", ctx.error.text) : use_topology(&ctx, topo);
	if (result != CUDA_SUCCESS) {
		ctx_free(&ctx);
		return result;
	}
	*n = choose_visible();
	return *n > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

bool
linked(int from, int to)
{
	from = all.number[from], to = all.number[to];
	return all.linked[from][to] && all.linked[to][from];
}

bool
fast_link(int from, int to)
{
	const struct route *route = &all.route[all.number[from]][all.number[to]][WAY_DIRECT];
	return linked(from, to) && route->fast;
}

/* VIRTUAL_GPU_LOST: "0:3,3:0": whether what device 0 writes to 3 is lost. Numbers are of the topology. */
static bool lost[DEVICES_MOST][DEVICES_MOST];
static pthread_once_t lost_once = PTHREAD_ONCE_INIT;

static void
read_lost(void)
{
	const char *text = getenv("VIRTUAL_GPU_LOST");
	int from, to, n;
	for (; text && sscanf(text, "%d:%d%n", &from, &to, &n) == 2; text += n + (text[n] == ','))
		if (from >= 0 && from < DEVICES_MOST && to >= 0 && to < DEVICES_MOST)
			lost[from][to] = true;
	if (text && *text)
		setting_refused("VIRTUAL_GPU_LOST", "want pairs of devices, as 0:3,3:0");
}

bool
link_loses(int from, int to)
{
	pthread_once(&lost_once, read_lost);
	return from >= 0 && to >= 0 && lost[all.number[from]][all.number[to]];
}

/* 0: none of all pairs has more capacity; each capacity below counts. */
int
link_rank(int from, int to)
{
	int rank = 0;
	for (int64_t above = all.capacity[all.number[from]][all.number[to]], next; ; above = next, rank++) {
		next = INT64_MAX;
		for (int a = 0; a < all.n; a++)
			for (int b = 0; b < all.n; b++)
				if (all.linked[a][b] && all.capacity[a][b] > above && all.capacity[a][b] < next)
					next = all.capacity[a][b];
		if (next == INT64_MAX)
			return rank;
	}
}

const char *
device_pci_id(int device)
{
	return all.pci[all.number[device]];
}

const char *
device_name(int device)
{
	return all.name[all.number[device]];
}

int
device_capability(int device)
{
	(void)device;
	return all.capability;
}

bool
device_multicasts(int device)
{
	(void)device;
	return all.multicasts;
}

/* ---- time ---- */

static int64_t
now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void
sleep_until(int64_t ns)
{
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

/* The defaults: of a hop over NVLink by fences and flags, 3.4 us in NCCL 2.30.7's model, a fence has 2 and a flag 1;
 * what is left is barriers, which cost nothing here. A launch: about what an empty kernel takes in a stream. */
int64_t
cost_ns(enum cost of)
{
	static const struct { const char *variable; int64_t ns; } costs[] = {
		[COST_FENCE] = { "VIRTUAL_GPU_FENCE", 2000 }, [COST_FLAG] = { "VIRTUAL_GPU_FLAG", 1000 },
		[COST_LAUNCH] = { "VIRTUAL_GPU_LAUNCH", 3000 },
	};
	static int64_t known[COSTS];	/* and 1 */
	int64_t ns = __atomic_load_n(&known[of], __ATOMIC_RELAXED);
	if (ns == 0) {
		ns = all.limited ? setting(costs[of].variable, costs[of].ns) * setting("VIRTUAL_GPU_SCALE", 0) : 0;
		ns++;
		__atomic_store_n(&known[of], ns, __ATOMIC_RELAXED);
	}
	return ns - 1;
}

void
pay_cost(enum cost of)
{
	int64_t ns = cost_ns(of);
	if (ns > 0)
		sleep_until(now_ns() + ns);
}

/* Move the clock of a link; returns where it is then. */
static int64_t
occupy(int link, int64_t now, int64_t ns)
{
	int64_t *clock = &all.clock[link], was = __atomic_load_n(clock, __ATOMIC_RELAXED), next;
	do {
		next = (was < now - LATE || was > now + CLOCK_WRONG ? now : was) + ns;
	} while (!__atomic_compare_exchange_n(clock, &was, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return next;
}

static bool
busy(const struct route *r, int64_t now)
{
	for (int i = 0; i < r->n; i++)
		if (__atomic_load_n(&all.clock[r->crossing[i].link], __ATOMIC_RELAXED) > now + BUSY)
			return true;
	return false;
}

/* What a thread moves over a route: bytes that it has paid and not used, and when its next turn is. */
struct turn {
	const struct route *route;
	int64_t *paid, bytes, at;
};

/* Take a quantum of the route; the next one not before all others had theirs. */
static void
take_quantum(struct turn *t)
{
	const struct route *r = t->route;
	int64_t now = now_ns(), due = now;
	double bytes = (busy(r, now) ? QUANTUM_BUSY : QUANTUM_IDLE) * all.slowest[r->fast];
	bytes = bytes < QUANTUM_BYTES ? QUANTUM_BYTES : (double)(int64_t)bytes;
	bool few = t->bytes - *t->paid <= FEW_BYTES;
	if (few)
		bytes = (double)(t->bytes - *t->paid);
	for (int i = 0; i < r->n; i++) {
		int64_t free_at = occupy(r->crossing[i].link, now, (int64_t)(bytes * r->crossing[i].cost + 0.5));
		due = free_at > due ? free_at : due;
	}
	int64_t ahead = (int64_t)(bytes / all.slowest[r->fast]);
	ahead = ahead > AHEAD ? ahead : AHEAD;
	*t->paid += (int64_t)bytes;
	t->at = few ? now : due - ahead;
}

static __thread int64_t paid[ENDS][ENDS][N_WAYS];

/* False: these bytes cross no link. */
static bool
begin_turn(const struct crossing_bytes *c, struct turn *out)
{
	if (c->from == c->to || c->bytes == 0 || ((c->from == HOST || c->to == HOST) && c->bytes <= FEW_BYTES))
		return false;
	int way = c->from != HOST && c->to != HOST && !memory_direct(c->from, c->to) ? WAY_HOST : WAY_DIRECT;
	int from = c->from == HOST ? DEVICES_MOST : all.number[c->from];
	int to = c->to == HOST ? DEVICES_MOST : all.number[c->to];
	*out = (struct turn){ &all.route[from][to][way], &paid[from][to][way], (int64_t)c->bytes, 0 };
	return out->route->n > 0;
}

/* Routes take their turns independently of each other: next is that whose turn is first. */
void
links_cross(const struct crossing_bytes *crossing, int n)
{
	struct turn turn[ENDS];
	int n_turns = 0;
	for (int i = 0; i < n && all.limited; i++)
		n_turns += begin_turn(&crossing[i], &turn[n_turns]);
	while (n_turns > 0) {
		struct turn *first = &turn[0];
		for (int i = 1; i < n_turns; i++)
			first = turn[i].at < first->at ? &turn[i] : first;
		if (first->at > 0)
			sleep_until(first->at);
		if (*first->paid < first->bytes) {
			take_quantum(first);
		} else {
			*first->paid -= first->bytes;
			*first = turn[--n_turns];
		}
	}
}

void
link_cross(int from, int to, size_t bytes)
{
	links_cross(&(struct crossing_bytes){ from, to, bytes }, 1);
}

/* ---- chance ---- */

/* Half of the time nothing, often a turn for other threads, sometimes up to half a ms. */
void
random_delay(void)
{
	static int64_t seed = -1;
	static unsigned threads;
	static __thread uint64_t state;
	int64_t s = __atomic_load_n(&seed, __ATOMIC_RELAXED);
	if (s < 0) {
		s = setting("VIRTUAL_GPU_DELAY", 0);
		__atomic_store_n(&seed, s, __ATOMIC_RELAXED);
	}
	if (s == 0)
		return;
	if (state == 0)
		state = ((uint64_t)s << 32) + __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	unsigned dice = (unsigned)(state >> 40);
	if (dice % 32 == 0)
		sleep_until(now_ns() + (dice >> 5) % 500000);
	else if (dice % 2)
		sched_yield();
}
