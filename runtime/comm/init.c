/* A rank joins its communicator.
 *
 *	1. meet at the hub; exchange who is where				bootstrap_join
 *	2. make memory for as many ranks as are on this server, and a network	shm_open_own, net->open
 *	3. exchange their addresses						bootstrap_allgather
 *	4. map the peers' memory						shm_exchange
 *	5. the same for memory of GPUs, if the backend is cuda			gpu_open
 *	6. hear that all ranks have done so					bootstrap_allgather
 *
 * A rank that fails on the way tells the others by the hub, and all fail with its reason. */
#include "base/hash.h"
#include "comm/comm.h"
#include "comm/windows.h"
#include "cuda/gpu.h"
#include "cuda/relay.h"
#include "debug.h"
#include "error.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { HOST_BYTES = 32, NET_NAME = 16, SPINS = 2000, VERDICT_MS = 50 };

/* What ranks tell each other first. Ranks are on one server if `host` is the same: one kernel, one network
 * namespace. They share memory if they want to, which all of a server have to agree on. */
struct hello {
	unsigned char host[HOST_BYTES];
	int32_t shm;
	int32_t cuda;			/* 1: the backend is cuda */
	char gpu[GPU_BYTES];
	char net[NET_NAME];		/* the network between servers */
	char machine[MACHINE_BYTES];
	struct gpu_card card;
};

struct addresses {
	blinkUniqueId_t place;		/* of its port */
	unsigned char shm[SHM_ADDRESS];
	unsigned char net[NET_ADDRESS];
};

int64_t
rank_comm_deadline(const struct rank_comm *r)
{
	return now_ns() + r->engine.timeout;
}

/* ---- events ---- */

void
rank_comm_stop(struct rank_comm *r)
{
	pthread_mutex_lock(&r->gpu_lock);
	if (r->gpu_hears)
		gpu_stop(r->cuda);
	pthread_mutex_unlock(&r->gpu_lock);
}

/* Who ends because a peer has left is not to blame: the peer is, which this rank, too, waits for. But a peer that left
 * because of this failure, of which it heard first, is not. */
static void
on_failed(void *context, int code, int culprit, const char *text)
{
	struct rank_comm *r = context;
	struct engine *e = &r->engine;
	int peer = atomic_load(&e->awaits);
	if (code == blinkRemoteError)
		atomic_store(&r->culprit, culprit);
	if (code == blinkRemoteError && peer >= 0 && peer != culprit && e->peer[peer].left
	    && atomic_load(&e->peer[peer].gone_at) != 0)
		text = e->peer[peer].gone;
	debug_say(DEBUG_WARN, e->rank, "%s", text);
	engine_fail(e, code, text);
	rank_comm_stop(r);
}

static void
on_left(void *context, int rank, uint64_t calls)
{
	struct rank_comm *r = context;
	char text[80];
	snprintf(text, sizeof text, "rank %d has left the communicator after %llu collectives", rank,
	    (unsigned long long)calls);
	r->engine.peer[rank].left = true;
	engine_peer_gone(&r->engine, rank, text);
}

static void
on_ask(void *context, struct rank_status *out)
{
	struct rank_comm *r = context;
	pthread_mutex_lock(&r->gpu_lock);
	if (r->gpu_hears)
		gpu_status_of(r->cuda, out);
	else
		engine_status(&r->engine, out);
	pthread_mutex_unlock(&r->gpu_lock);
}

static void
on_stuck(void *context, int64_t deadline, int64_t patience)
{
	bootstrap_stuck(((struct rank_comm *)context)->bootstrap, deadline, patience);
}

static void
on_progress(void *context)
{
	bootstrap_progress(((struct rank_comm *)context)->bootstrap);
}

static void
on_failed_here(void *context, const struct blink_error *err, int culprit)
{
	struct rank_comm *r = context;
	char text[sizeof err->text];
	debug_say(DEBUG_WARN, r->engine.rank, "%s", err->text);
	if (culprit >= 0)
		snprintf(text, sizeof text, "%s", err->text);
	else
		snprintf(text, sizeof text, "rank %d: %.400s", r->engine.rank, err->text);
	bootstrap_fail(r->bootstrap, err->code == blinkMismatch ? blinkMismatch : blinkRemoteError,
	    culprit >= 0 ? culprit : r->engine.rank, text);
}

static void
sign(void *context, const void *text, size_t bytes, unsigned char out[32])
{
	bootstrap_sign(((struct rank_comm *)context)->bootstrap, text, bytes, out);
}

/* ---- who is where ---- */

/* BLINK_HOST_ID; else the kernel's boot id and the network namespace. */
static void
identify_host(const struct rank_comm *r, unsigned char host[HOST_BYTES])
{
	char text[128] = "", digest[DIGEST_ROOM];
	struct stat net;
	FILE *f = r->settings.host_id ? NULL : fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && !fgets(text, sizeof text, f))
		text[0] = 0;
	if (f)
		fclose(f);
	size_t n = strlen(text);
	if (r->settings.host_id)
		snprintf(text, sizeof text, "%s", r->settings.host_id);
	else if (stat("/proc/self/ns/net", &net) == 0)
		snprintf(text + n, sizeof text - n, " %llu", (unsigned long long)net.st_ino);
	digest_of(text, strlen(text), digest);
	memcpy(host, digest + sizeof "sha256:" - 1, HOST_BYTES);
}

/* In server[i], the first rank whose `host` is that of rank i: by a hash table. */
static int
find_hosts(const struct hello *all, int n, int *server, struct blink_error *err)
{
	size_t room = 2;
	while (room < 2 * (size_t)n)
		room *= 2;
	int *slot = malloc(room * sizeof *slot);
	if (!slot)
		return set_error_memory(err);
	memset(slot, -1, room * sizeof *slot);
	for (int i = 0; i < n; i++) {
		uint64_t key;
		memcpy(&key, all[i].host, sizeof key);
		size_t at = hash64(key) & (room - 1);
		while (slot[at] >= 0 && memcmp(all[slot[at]].host, all[i].host, HOST_BYTES) != 0)
			at = (at + 1) & (room - 1);
		if (slot[at] < 0)
			slot[at] = i;
		server[i] = slot[at];
	}
	free(slot);
	return blinkSuccess;
}

/* Servers in the order of their lowest ranks, and the GPUs of all ranks. */
static int
place_ranks(struct rank_comm *r, const struct hello *all, struct blink_error *err)
{
	int n = r->engine.n_ranks;
	size_t ranks = (size_t)n;
	r->gpus = calloc(ranks, sizeof *r->gpus);
	r->gpu_of = calloc(ranks, sizeof *r->gpu_of);
	r->server = calloc(ranks, sizeof *r->server);
	if (!r->gpus || !r->gpu_of || !r->server)
		return set_error_memory(err);
	r->job = (struct job){ .n_ranks = n, .gpu = r->gpu_of, .server = r->server };
	if (find_hosts(all, n, r->server, err) != blinkSuccess)
		return err->code;
	for (int i = 0; i < n; i++) {
		int first = r->server[i];
		memcpy(r->gpus[i], all[i].gpu, GPU_BYTES - 1);
		r->gpu_of[i] = r->gpus[i];
		r->server[i] = first < i ? r->server[first] : r->job.n_servers++;
		r->engine.n_local += memcmp(all[i].host, all[r->engine.rank].host, HOST_BYTES) == 0;
	}
	for (int i = 1; i < n; i++)
		if (all[i].cuda != all[0].cuda)
			return set_error(err, blinkMismatch, "backend: rank %d has %s, rank 0 has %s: want the same on "
			    "all ranks", i, all[i].cuda ? "cuda" : "host", all[0].cuda ? "cuda" : "host");
	for (int i = 0; i < n; i++)
		if (r->server[i] == r->server[r->engine.rank] && all[i].shm != all[r->engine.rank].shm)
			return set_error(err, blinkMismatch, "BLINK_SHM: rank %d has %d, rank %d on its server %d: "
			    "want the same", r->engine.rank, (int)all[r->engine.rank].shm, i, (int)all[i].shm);
	return blinkSuccess;
}

/* The machines that ranks state, each once, in the order of the ranks. */
static int
collect_machines(struct rank_comm *r, const struct hello *all, struct blink_error *err)
{
	int *n = &r->job.n_stated;
	for (int i = 0; i < r->engine.n_ranks; i++) {
		int at = 0;
		while (at < *n && strncmp(r->stated[at].machine, all[i].machine, MACHINE_BYTES) != 0)
			at++;
		if (at < *n || !all[i].machine[0])
			continue;
		struct stated *grown = realloc(r->stated, (size_t)(*n + 1) * sizeof *grown);
		if (!grown)
			return set_error_memory(err);
		r->stated = grown;
		grown[*n] = (struct stated){ .rank = i };
		memcpy(grown[(*n)++].machine, all[i].machine, MACHINE_BYTES - 1);
	}
	r->job.stated = r->stated;
	return blinkSuccess;
}

/* Of use only where all ranks know theirs. */
static void
use_cards(struct rank_comm *r)
{
	bool all = true;
	for (int i = 0; i < r->engine.n_ranks; i++)
		all = all && r->cards[i].known;
	r->job.card = all ? r->cards : NULL;
}

static int
collect_cards(struct rank_comm *r, const struct hello *all, struct blink_error *err)
{
	size_t n = (size_t)r->engine.n_ranks;
	r->cards = calloc(n, sizeof *r->cards);
	if (!r->cards)
		return set_error_memory(err);
	for (size_t i = 0; i < n; i++)
		r->cards[i] = all[i].card;
	use_cards(r);
	return blinkSuccess;
}

/* ---- memory and network ---- */

/* All ranks have to use the same, and not all may be able to use more than the first of the table. */
static const char *
net_name(const struct settings *s)
{
	return s->net && strcmp(s->net, "auto") != 0 ? s->net : net_kinds[0]->name;
}

static const struct net_kind *
choose_net(struct rank_comm *r, struct blink_error *err)
{
	char why[256] = "no such network";
	const char *name = net_name(&r->settings);
	for (int i = 0; net_kinds[i]; i++)
		if (strcmp(name, net_kinds[i]->name) == 0 && net_kinds[i]->available(why))
			return net_kinds[i];
	set_error(err, blinkSystemError, "BLINK_NET: %s: %s", name, why);
	return NULL;
}

/* The same text on all ranks. */
static int
check_nets(const struct hello *hello, int n, struct blink_error *err)
{
	for (int i = 1; i < n && err->code == blinkSuccess; i++)
		if (strncmp(hello[i].net, hello[0].net, NET_NAME) != 0)
			set_error(err, blinkMismatch, "BLINK_NET: rank %d has %.*s, rank 0 has %.*s: want the same on "
			    "all ranks", i, NET_NAME, hello[i].net, NET_NAME, hello[0].net);
	return err->code;
}

static int
open_net(struct rank_comm *r, const struct hello *hello, struct addresses *mine, struct blink_error *err)
{
	struct engine *e = &r->engine;
	const struct net_events of_hosts = { e, remote_place, remote_arrived, remote_broken, remote_short_of },
	    of_gpus = { r, gpu_relay_place, gpu_relay_arrived, gpu_relay_broken, gpu_relay_short_of };
	if (check_nets(hello, e->n_ranks, err) != blinkSuccess)
		return err->code;
	const struct net_kind *net = choose_net(r, err);
	if (!net)
		return err->code;
	bootstrap_address(r->bootstrap, r->keys.address);
	if (net->open(e->rank, e->n_ranks, r->wants_gpu ? &of_gpus : &of_hosts, &r->keys, mine->net, &e->net_handle,
	    err) == blinkSuccess) {
		e->net = net;
		debug_say(DEBUG_INFO, e->rank, "net %s: %s", net->name, net->what);
	}
	return err->code;
}

static void
see_peer(struct rank_comm *r, int rank, char *memory)
{
	struct engine *e = &r->engine;
	struct region *theirs = (void *)memory;
	struct peer *peer = &e->peer[rank];
	peer->mine = &e->region->peer[local_index(r, rank)];
	peer->theirs = &theirs->peer[local_index(r, e->rank)];
	peer->in = &peer->theirs->channel;
	peer->bell = &theirs->bell;
	peer->arena = memory + region_arena_offset(e->n_local);
}

static int
map_peers(struct rank_comm *r, const struct addresses *all, struct blink_error *err)
{
	struct engine *e = &r->engine;
	char **memory = calloc((size_t)e->n_ranks, sizeof *memory);
	if (!memory)
		return set_error_memory(err);
	map_local(r, r->shm, all[0].shm, sizeof all[0], region_bytes(e->n_local), r->deadline, memory, err);
	for (int i = 0; i < e->n_ranks && err->code == blinkSuccess; i++)
		if (memory[i])
			see_peer(r, i, memory[i]);
	free(memory);
	return err->code;
}

/* A rank alone on its server, or without shared memory, has an arena of its own all the same. */
static int
open_memory(struct rank_comm *r, struct addresses *mine, struct blink_error *err)
{
	struct engine *e = &r->engine;
	if (!r->settings.shm)
		e->n_local = 1;
	size_t bytes = region_bytes(e->n_local);
	if (shm_open_own(bytes, &r->keys, mine->shm, &r->shm, err) != blinkSuccess)
		return err->code;
	e->region = shm_memory(r->shm);
	e->arena = (char *)e->region + region_arena_offset(e->n_local);
	return blinkSuccess;
}

/* The bell moves into shared memory: an error that comes meanwhile is seen by the next step. */
static void
see_own_memory(struct rank_comm *r)
{
	struct engine *e = &r->engine;
	int own = r->settings.shm ? local_index(r, e->rank) : 0;
	struct peer *self = &e->peer[e->rank];
	pthread_mutex_lock(&e->lock);
	e->bell = &e->region->bell;
	pthread_mutex_unlock(&e->lock);
	*self = (struct peer){ .mine = &e->region->peer[own], .theirs = &e->region->peer[own],
	    .in = &e->region->peer[own].channel, .bell = e->bell, .arena = e->arena };
}

/* How often a rank looks before it sleeps: not at all where it would keep a peer from running. Threads are bound where
 * there are cores for all; to know which takes libhwloc some 10 ms. */
static void
use_cpus(struct rank_comm *r)
{
	struct engine *e = &r->engine;
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
	e->spins = n > e->n_local ? SPINS : 0;
	e->local_index = r->settings.shm ? local_index(r, e->rank) : 0;
	if (r->settings.pin && e->n_local > 1 && n >= 2 * e->n_local)
		engine_pin(e);
}

/* Where this rank can be met when the hub is gone. Without a port all but a shrink goes well. */
static int
keep_port(struct rank_comm *r, blinkUniqueId_t *place, struct blink_error *err)
{
	struct blink_error why = { 0 };
	r->place = calloc((size_t)r->engine.n_ranks, sizeof *r->place);
	if (!r->place)
		return set_error_memory(err);
	if (r->engine.n_ranks > 1 && bootstrap_keep_port(r->bootstrap, &r->port, place, &why) != blinkSuccess)
		debug_say(DEBUG_WARN, r->engine.rank, "no port for a shrink: %s", why.text);
	return blinkSuccess;
}

static int
connect_ranks(struct rank_comm *r, const struct hello *hello, struct addresses *all, struct blink_error *err)
{
	struct engine *e = &r->engine;
	struct addresses mine = { 0 };
	int n = e->n_ranks;
	char (*net)[NET_ADDRESS] = NULL;
	if (place_ranks(r, hello, err) != blinkSuccess || collect_machines(r, hello, err) != blinkSuccess
	    || collect_cards(r, hello, err) != blinkSuccess || open_memory(r, &mine, err) != blinkSuccess
	    || keep_port(r, &mine.place, err) != blinkSuccess)
		return err->code;
	see_own_memory(r);
	if (e->n_local < n && open_net(r, hello, &mine, err) != blinkSuccess)
		return err->code;
	if (bootstrap_allgather(r->bootstrap, &mine, sizeof mine, all, r->deadline, err) != blinkSuccess)
		return err->code;
	for (int i = 0; i < n; i++)
		r->place[i] = all[i].place;
	if (e->net) {
		net = calloc((size_t)n, sizeof *net);
		for (int i = 0; i < n && net; i++)
			memcpy(net[i], all[i].net, NET_ADDRESS);
		if (net)
			e->net->connect(e->net_handle, net, err);
		else
			set_error_memory(err);
		free(net);
	}
	if (err->code == blinkSuccess && r->settings.shm)
		map_peers(r, all, err);
	use_cpus(r);
	return err->code;
}

static void
gpu_hear(struct rank_comm *r, bool hears)
{
	pthread_mutex_lock(&r->gpu_lock);
	r->gpu_hears = hears;
	pthread_mutex_unlock(&r->gpu_lock);
}

/* The card of the GPU that the rank works on. It stays unknown where NVIDIA's driver does not tell, which is no
 * error. */
static void
ask_for_gpu(struct rank_comm *r)
{
	char address[32] = "";
	Ctx *ctx = malloc(sizeof *ctx);
	if (!ctx)
		return;
	ctx_init(ctx);
	if (r->cuda->d->device_pci_id(address, sizeof address, r->cuda->device) == 0
	    && probe_gpu(ctx, address, &r->card) != OK)
		debug_say(DEBUG_INFO, r->engine.rank, "%s", ctx->error.text);
	ctx_free(ctx);
	free(ctx);
}

/* Where nobody says which GPU it has, an index is searched for the GPUs that the ranks work on. An exchange of all
 * ranks, whatever schedules each has. */
static int
see_gpus(struct rank_comm *r, struct blink_error *err)
{
	bool stated = r->job.n_stated > 0;
	for (int i = 0; i < r->engine.n_ranks; i++)
		stated = stated || *r->gpu_of[i];
	if (stated)
		return blinkSuccess;
	if (r->schedules)
		ask_for_gpu(r);
	if (bootstrap_allgather(r->bootstrap, &r->card, sizeof r->card, r->cards, r->deadline, err) == blinkSuccess)
		use_cards(r);
	return err->code;
}

/* An event that came before the GPU was ready has been missed there: what has failed is stopped now. */
static int
open_gpu(struct rank_comm *r, struct blink_error *err)
{
	if (!r->wants_gpu || gpu_open(r, -1, &r->cuda, err) != blinkSuccess
	    || gpu_launches_open(r->cuda, err) != blinkSuccess || gpu_share_blocks(r->cuda, err) != blinkSuccess
	    || see_gpus(r, err) != blinkSuccess)
		return err->code;
	r->on_gpu = true;
	gpu_hear(r, true);
	if (atomic_load(&r->engine.stop))
		rank_comm_stop(r);
	return blinkSuccess;
}

/* ---- open and close ---- */

static int
take_machine(struct rank_comm *r, struct blink_error *err)
{
	const char *machine = r->settings.machine ? r->settings.machine : "";
	if (strlen(machine) >= MACHINE_BYTES || !machine_valid(machine))
		return set_error(err, blinkInvalidArgument, "BLINK_MACHINE: \"%.100s\": want the name of a machine, of "
		    "at most %d bytes, or its digest, 12 hex digits at least", machine, MACHINE_BYTES - 1);
	snprintf(r->machine, sizeof r->machine, "%s", machine);
	return blinkSuccess;
}

/* A GPU by its PCI address is one that NVIDIA's driver knows. */
static int
take_gpu(struct rank_comm *r, const char *gpu, struct blink_error *err)
{
	if (strlen(gpu) >= GPU_BYTES)
		return set_error(err, blinkInvalidArgument, "gpu: %.80s: want at most %d bytes", gpu, GPU_BYTES - 1);
	snprintf(r->gpu, sizeof r->gpu, "%s", gpu);
	if (!probe_is_address(gpu) || probe_gpu(&r->ctx, gpu, &r->card) == OK)
		return blinkSuccess;
	return set_error(err, (int)r->ctx.error.status, "%.500s", r->ctx.error.text);
}

static int
take_backend(struct rank_comm *r, const char *name, struct blink_error *err)
{
	r->wants_gpu = name && strcmp(name, "cuda") == 0;
	if (name && !r->wants_gpu && strcmp(name, "host") != 0)
		set_error(err, blinkInvalidArgument, "backend: \"%.100s\": want host or cuda", name);
	return err->code;
}

static int
read_settings(struct rank_comm *r, const blinkConfig_t *config, struct blink_error *err)
{
	static const blinkConfig_t defaults;
	struct engine *e = &r->engine;
	if (settings_read(&r->settings, err) != blinkSuccess)
		return err->code;
	config = config ? config : &defaults;
	if (config->timeoutMs < 0 || config->timeoutMs > INT64_MAX / 4000000)
		return set_error(err, blinkInvalidArgument, "timeoutMs: want 0 to 2^60");
	if (config->threads < 0 || config->chunkBytes > (size_t)1 << 40)
		return set_error(err, blinkInvalidArgument, "threads or chunkBytes: not valid");
	e->timeout = (config->timeoutMs ? config->timeoutMs : r->settings.timeout_ms) * 1000000;
	e->chunk_bytes = config->chunkBytes ? (int64_t)config->chunkBytes : r->settings.chunk;
	const char *gpu = config->gpu ? config->gpu : r->settings.gpu ? r->settings.gpu : "";
	const char *schedules = config->schedules ? config->schedules : r->settings.schedules;
	if (take_gpu(r, gpu, err) != blinkSuccess)
		return err->code;
	r->schedules = schedules ? strdup(schedules) : NULL;
	if (schedules && !r->schedules)
		return set_error_memory(err);
	return take_backend(r, config->backend ? config->backend : r->settings.backend, err) != blinkSuccess
	    ? err->code : take_machine(r, err);
}

static int
open_engine(struct rank_comm *r, int n, int rank, struct blink_error *err)
{
	struct engine *e = &r->engine;
	e->rank = rank;
	e->n_ranks = n;
	e->bell = &r->early_bell;
	e->events = (struct engine_events){ .context = r, .plan = plans_choose, .stuck = on_stuck,
	    .progress = on_progress, .failed = on_failed_here };
	r->keys = (struct net_keys){ .context = r, .sign = sign, .patience = e->timeout,
		.zero_copy = r->settings.zero_copy };
	e->peer = calloc((size_t)n, sizeof *e->peer);
	if (!e->peer)
		return set_error_memory(err);
	return engine_open(e, true, err);
}

/* A peer that has just ended is not reached, and the hub tells why: its word counts, if it comes soon. */
static bool
hub_knows_better(struct rank_comm *r, struct blink_error *err)
{
	struct blink_error told = { 0 };
	for (int i = 0; i < VERDICT_MS && !atomic_load(&r->engine.stop); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	engine_error(&r->engine, &told);
	if (told.code != blinkSuccess)
		*err = told;
	return told.code != blinkSuccess;
}

static void
introduce(const struct rank_comm *r, struct hello *mine)
{
	identify_host(r, mine->host);
	mine->shm = r->settings.shm;
	mine->cuda = r->wants_gpu;
	memcpy(mine->gpu, r->gpu, GPU_BYTES);
	snprintf(mine->net, sizeof mine->net, "%s", net_name(&r->settings));
	memcpy(mine->machine, r->machine, MACHINE_BYTES);
	mine->card = r->card;
}

static int
join(struct rank_comm *r, const blinkUniqueId_t *id, struct blink_error *err)
{
	struct engine *e = &r->engine;
	const struct bootstrap_events events = { r, on_failed, on_left, on_ask };
	struct hello *hello = calloc((size_t)e->n_ranks + 1, sizeof *hello), *mine = hello + e->n_ranks;
	struct addresses *all = calloc((size_t)e->n_ranks, sizeof *all);
	struct blink_error here = { 0 };
	char done = 1;
	r->deadline = rank_comm_deadline(r);
	if (hello)
		introduce(r, mine);
	if (!hello || !all) {
		set_error_memory(err);
	} else if (bootstrap_join(id, r->settings.secret, e->n_ranks, e->rank, mine, sizeof *mine, hello, r->deadline,
	    &events, &r->bootstrap, err) == blinkSuccess) {
		if (connect_ranks(r, hello, all, &here) == blinkSuccess && tuning_open(r, &here) == blinkSuccess
		    && open_gpu(r, &here) == blinkSuccess)
			bootstrap_allgather(r->bootstrap, &done, sizeof done, all, r->deadline, err);
		else if (!hub_knows_better(r, &here))
			on_failed_here(r, &here, -1);
		set_error(err, here.code, "%s", here.text);
	}
	free(hello);
	free(all);
	return err->code;
}

int
rank_comm_open(struct rank_comm *r, int n, const blinkUniqueId_t *id, int rank, const blinkConfig_t *config,
    struct blink_error *err)
{
	ctx_init(&r->ctx);
	atomic_init(&r->culprit, -1);
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->gpu_lock, NULL);
	if (read_settings(r, config, err) != blinkSuccess || open_engine(r, n, rank, err) != blinkSuccess
	    || plans_open(r, err) != blinkSuccess || join(r, id, err) != blinkSuccess)
		return err->code;
	debug_say(DEBUG_INFO, rank, "rank %d of %d, %d servers, %d ranks on this one, kernels %s", rank, n,
	    r->job.n_servers, r->engine.n_local, reduction_kernels());
	return blinkSuccess;
}

/* What the GPU's threads say goes to the hub, which they need longer than the hub them. */
static void
close_gpu(struct rank_comm *r, bool forked)
{
	if (!forked)
		gpu_hear(r, false);
	if (r->cuda)
		gpu_launches_close(r->cuda, forked);
	windows_close(r, forked);
	gpu_close(r->cuda, forked);
}

/* Collectives that this rank has begun. Of a GPU those of graphs count, too. */
static uint64_t
calls_begun(const struct rank_comm *r, bool forked)
{
	struct rank_status status;
	if (!r->on_gpu || forked)
		return r->engine.collective;
	gpu_status_of(r->cuda, &status);
	return status.calls;
}

/* What is not sent when a communicator has failed is not waited for. */
static void
close_net(struct rank_comm *r)
{
	struct engine *e = &r->engine;
	struct blink_error failed = { 0 };
	engine_error(e, &failed);
	if (r->on_gpu && failed.code != blinkSuccess)
		e->net->abandon(e->net_handle);
	e->net->close(e->net_handle, now_ns() + e->timeout);
}

/* The worker first, which may still be in a call that has failed, and what the GPU has still to send; then the network:
 * what it brings is for the engine. Then the hub, whose events are. */
void
rank_comm_close(struct rank_comm *r, bool forked)
{
	struct engine *e = &r->engine;
	if (!forked)
		engine_stop(e);
	if (!forked)
		gpu_relay_end(r->cuda);
	if (e->net && !forked)
		close_net(r);
	uint64_t calls = calls_begun(r, forked);
	close_gpu(r, forked);
	bootstrap_leave(r->bootstrap, calls);
	engine_close(e, forked);
	if (!forked)
		tuning_close(r);
	plans_close(r);
	for (int i = 0; i < e->n_ranks && e->peer; i++)
		if (e->peer[i].mine && !e->peer[i].theirs)
			peer_close(&e->peer[i]);
	shm_close(r->shm);
	bootstrap_close_port(r->port);
	free(r->place);
	free(e->peer);
	free(r->gpus);
	free(r->gpu_of);
	free(r->server);
	free(r->stated);
	free(r->cards);
	free(r->schedules);
	ctx_free(&r->ctx);
	free(r);
}
