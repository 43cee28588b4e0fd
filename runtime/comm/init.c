/* A rank joins its communicator.
 *
 *	1. meet at the hub; exchange who is where				bootstrap_join
 *	2. make what others will see of this rank, and a network		backend->open, net->open
 *	3. exchange addresses							bootstrap_allgather
 *	4. map the memory of ranks on this server, take a GPU			backend->connect
 *	5. hear that all ranks have done so					bootstrap_allgather
 *
 * A rank that fails on the way tells the others by the hub, and all fail with its reason. */
#include "comm/comm.h"
#include "comm/memory.h"
#include "comm/places.h"
#include "support/debug.h"
#include "support/clock.h"
#include "support/error.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPINS = 2000, VERDICT_MS = 50 };

struct addresses {
	blinkUniqueId_t place;		/* of its port */
	unsigned char backend[BACKEND_ADDRESS];
	unsigned char net[NET_ADDRESS];
};

int64_t
rank_comm_deadline(const struct rank_comm *r)
{
	return now_ns() + r->self.timeout;
}

/* ---- events ---- */

/* Who ends because a peer has left is not to blame: the peer is, which this rank, too, waits for. But a peer that left
 * because of this failure, of which it heard first, is not. */
static void
on_failed(void *context, int code, int culprit, const char *text)
{
	struct rank_comm *r = context;
	int awaits = atomic_load(&r->self.awaits);
	const struct rank_peer *peer = awaits >= 0 ? &r->self.peer[awaits] : NULL;
	if (code == blinkRemoteError)
		atomic_store(&r->culprit, culprit);
	if (code == blinkRemoteError && peer && awaits != culprit && peer->left && atomic_load(&peer->gone_at) != 0)
		text = peer->gone;
	debug_say(DEBUG_WARN, r->self.rank, "%s", text);
	rank_fail(&r->self, code, text);
}

static void
on_left(void *context, int rank, uint64_t calls)
{
	struct rank_comm *r = context;
	char text[80];
	snprintf(text, sizeof text, "rank %d has left the communicator after %llu collectives", rank,
	    (unsigned long long)calls);
	r->self.peer[rank].left = true;
	rank_peer_gone(&r->self, rank, text);
}

static void
on_ask(void *context, struct rank_status *out)
{
	rank_status_of(&((struct rank_comm *)context)->self, out);
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
	debug_say(DEBUG_WARN, r->self.rank, "%s", err->text);
	if (culprit >= 0)
		snprintf(text, sizeof text, "%s", err->text);
	else
		snprintf(text, sizeof text, "rank %d: %.400s", r->self.rank, err->text);
	bootstrap_fail(r->bootstrap, err->code == blinkMismatch ? blinkMismatch : blinkRemoteError,
	    culprit >= 0 ? culprit : r->self.rank, text);
}

static int
exchange(void *context, const void *mine, size_t bytes, void *all, int64_t deadline, struct blink_error *err)
{
	return bootstrap_allgather(((struct rank_comm *)context)->bootstrap, mine, bytes, all, deadline, err);
}

static void
sign(void *context, const void *text, size_t bytes, unsigned char out[32])
{
	bootstrap_sign(((struct rank_comm *)context)->bootstrap, text, bytes, out);
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
	const char *name = net_name(&r->self.settings);
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
	struct rank_state *self = &r->self;
	struct net_events events = r->backend->net;
	events.context = r->of_backend;
	if (check_nets(hello, self->n_ranks, err) != blinkSuccess)
		return err->code;
	const struct net_kind *net = choose_net(r, err);
	if (!net)
		return err->code;
	bootstrap_address(r->bootstrap, self->keys.address);
	if (net->open(self->rank, self->n_ranks, &events, &self->keys, mine->net, &self->net_handle, err)
	    == blinkSuccess) {
		self->net = net;
		debug_say(DEBUG_INFO, self->rank, "net %s: %s", net->name, net->what);
	}
	return err->code;
}

/* How often a rank looks before it gives way or sleeps: not at all where it would keep a peer from running. Threads are
 * bound where there are cores for all; to know which takes libhwloc some 10 ms. */
static void
use_cpus(struct rank_state *self)
{
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
	self->spins = n >= self->n_local ? SPINS : 0;
	self->yields = n <= self->n_local;
	self->pins = self->settings.pin && self->n_local > 1 && n >= 2 * self->n_local;
}

/* Where this rank can be met when the hub is gone. Without a port all but a shrink goes well. */
static int
keep_port(struct rank_comm *r, blinkUniqueId_t *place, struct blink_error *err)
{
	struct blink_error why = { 0 };
	r->place = calloc((size_t)r->self.n_ranks, sizeof *r->place);
	if (!r->place)
		return set_error_memory(err);
	if (r->self.n_ranks > 1 && bootstrap_keep_port(r->bootstrap, &r->port, place, &why) != blinkSuccess)
		debug_say(DEBUG_WARN, r->self.rank, "no port for a shrink: %s", why.text);
	return blinkSuccess;
}

static int
connect_net(struct rank_state *self, const struct addresses *all, struct blink_error *err)
{
	char (*net)[NET_ADDRESS] = calloc((size_t)self->n_ranks, sizeof *net);
	if (!net)
		return set_error_memory(err);
	for (int i = 0; i < self->n_ranks; i++)
		memcpy(net[i], all[i].net, NET_ADDRESS);
	self->net->connect(self->net_handle, net, err);
	free(net);
	return err->code;
}

static int
connect_ranks(struct rank_comm *r, const struct hello *hello, struct addresses *all, struct blink_error *err)
{
	struct rank_state *self = &r->self;
	struct addresses mine = { 0 };
	if (place_ranks(r, hello, err) != blinkSuccess || collect_machines(r, hello, err) != blinkSuccess
	    || collect_cards(r, hello, err) != blinkSuccess)
		return err->code;
	use_cpus(self);
	if (r->backend->open(self, mine.backend, &r->of_backend, err) != blinkSuccess
	    || keep_port(r, &mine.place, err) != blinkSuccess)
		return err->code;
	rank_hears(self, r->backend, r->of_backend);
	if (self->n_local < self->n_ranks && open_net(r, hello, &mine, err) != blinkSuccess)
		return err->code;
	if (bootstrap_allgather(r->bootstrap, &mine, sizeof mine, all, self->deadline, err) != blinkSuccess)
		return err->code;
	for (int i = 0; i < self->n_ranks; i++)
		r->place[i] = all[i].place;
	if (self->net && connect_net(self, all, err) != blinkSuccess)
		return err->code;
	return r->backend->connect(r->of_backend, all[0].backend, sizeof all[0], err);
}

/* The card of the GPU that the rank works on. It stays unknown where NVIDIA's driver does not tell, which is no
 * error. */
static void
ask_for_gpu(struct rank_comm *r)
{
	Ctx *ctx = r->self.device[0] ? malloc(sizeof *ctx) : NULL;
	if (!ctx)
		return;
	ctx_init(ctx);
	if (probe_gpu(ctx, r->self.device, &r->card) != OK)
		debug_say(DEBUG_INFO, r->self.rank, "%s", ctx->error.text);
	ctx_free(ctx);
	free(ctx);
}

/* Where nobody says which GPU it has, an index is searched for the GPUs that the ranks work on. An exchange of all
 * ranks, whatever schedules each has. */
static int
see_gpus(struct rank_comm *r, struct blink_error *err)
{
	bool stated = r->job.n_stated > 0;
	for (int i = 0; i < r->self.n_ranks; i++)
		stated = stated || *r->gpu_of[i];
	if (stated || !r->backend->on_device)
		return blinkSuccess;
	if (r->schedules)
		ask_for_gpu(r);
	if (bootstrap_allgather(r->bootstrap, &r->card, sizeof r->card, r->cards, r->self.deadline, err)
	    == blinkSuccess)
		use_cards(r);
	return err->code;
}

/* ---- open and close ---- */

static int
take_machine(struct rank_comm *r, struct blink_error *err)
{
	const char *machine = r->self.settings.machine ? r->self.settings.machine : "";
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
	char names[64] = "";
	size_t n = 0;
	r->backend = name ? NULL : backends[0];
	for (int i = 0; backends[i]; i++) {
		if (name && strcmp(name, backends[i]->name) == 0)
			r->backend = backends[i];
		n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? " or " : "", backends[i]->name);
	}
	if (!r->backend)
		set_error(err, blinkInvalidArgument, "backend: \"%.100s\": want %s", name, names);
	return err->code;
}

/* Which needs of settings (SETTING_NEED_LIST) this communicator meets. */
static void
find_needs(const struct rank_comm *r, bool has[N_SETTING_NEEDS])
{
	const struct settings *s = &r->self.settings;
	bool index = library_has_index(r->library), on_device = r->backend->on_device;
	bool network = r->job.n_servers > 1 || (r->self.n_ranks > 1 && !s->shm);
	has[NEEDS_NOTHING] = true;
	has[NEEDS_GPUS] = on_device;
	has[NEEDS_HOST] = !on_device;
	has[NEEDS_INDEX] = index;
	has[NEEDS_GPU_LIST] = index || (r->schedules && probe_is_address(r->gpu));
	has[NEEDS_NETWORK] = network;
	has[NEEDS_TCP] = network && strcmp(net_name(s), "tcp") == 0;
	has[NEEDS_SEARCH] = !on_device && s->chunk == 0;
}

/* What the program has set otherwise, by blinkConfig_t, which counts. */
static void
settings_overridden(const blinkConfig_t *config, char *out, size_t room)
{
	struct blink_error err = { 0 };
	struct settings s;
	size_t n = 0;
	*out = '\0';
	if (!config || settings_read(&s, &err) != blinkSuccess)
		return;
#define DIFFERS(member) (config->member && s.member && strcmp(config->member, s.member) != 0)
	const struct {
		const char *variable;
		bool differs;
	} all[] = { { "BLINK_SCHEDULES", DIFFERS(schedules) }, { "BLINK_GPU", DIFFERS(gpu) },
		{ "BLINK_BACKEND", DIFFERS(backend) }, { "BLINK_CHUNK", config->chunkBytes && s.chunk
		    && (int64_t)config->chunkBytes != s.chunk },
		{ "BLINK_TIMEOUT", config->timeoutMs && getenv("BLINK_TIMEOUT")
		    && config->timeoutMs != s.timeout_ms } };
#undef DIFFERS
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].differs)
			n += (size_t)snprintf(out + n, room - n, "%s%s", n ? ", " : "", all[i].variable);
}

/* Rank 0 says once for a job what it cannot know of, and what has no effect. */
static void
warn_of_settings(const struct rank_comm *r, const blinkConfig_t *config)
{
	enum { UNKNOWN = N_SETTING_NEEDS, OVERRIDDEN };
	static atomic_uint said;	/* of this process: a bit for each line */
	bool has[N_SETTING_NEEDS];
	char names[200];
	if (r->self.rank != 0 || !debug_on(DEBUG_SETTING))
		return;
	settings_unknown(names, sizeof names);
	if (*names && !(atomic_fetch_or(&said, 1u << UNKNOWN) & 1u << UNKNOWN))
		debug_say(DEBUG_SETTING, 0, "%s: no such setting: libblink(3) has them all", names);
	settings_overridden(config, names, sizeof names);
	if (*names && debug_on(DEBUG_WARN) && !(atomic_fetch_or(&said, 1u << OVERRIDDEN) & 1u << OVERRIDDEN))
		debug_say(DEBUG_WARN, 0, "%s: no effect, as the program sets another value", names);
	find_needs(r, has);
	for (int i = 0; i < N_SETTING_NEEDS; i++) {
		settings_that_need((enum setting_need)i, names, sizeof names);
		/* One server or buffers on hosts may be right; to name a GPU of no index never is. */
		enum debug_level at = i == NEEDS_INDEX || i == NEEDS_GPU_LIST ? DEBUG_SETTING : DEBUG_WARN;
		if (!has[i] && *names && debug_on(at) && !(atomic_fetch_or(&said, 1u << i) & 1u << i))
			debug_say(at, 0, "%s: no effect without %s", names, setting_need_text((enum setting_need)i));
	}
}

static int
check_net_name(const struct settings *s, struct blink_error *err)
{
	const char *name = net_name(s);
	for (int i = 0; net_kinds[i]; i++)
		if (strcmp(name, net_kinds[i]->name) == 0)
			return blinkSuccess;
	return set_error(err, blinkInvalidArgument, "BLINK_NET: \"%.100s\": want auto, tcp or ucx", name);
}

static int
read_settings(struct rank_comm *r, const blinkConfig_t *config, struct blink_error *err)
{
	static const blinkConfig_t defaults;
	struct rank_state *self = &r->self;
	if (settings_read(&r->self.settings, err) != blinkSuccess
	    || check_net_name(&r->self.settings, err) != blinkSuccess)
		return err->code;
	config = config ? config : &defaults;
	if (config->timeoutMs < 0 || config->timeoutMs > INT64_MAX / 4000000)
		return set_error(err, blinkInvalidArgument, "timeoutMs: want 0 to 2^60");
	if (config->threads < 0 || config->chunkBytes > (size_t)1 << 40)
		return set_error(err, blinkInvalidArgument, "threads or chunkBytes: not valid");
	self->timeout = (config->timeoutMs ? config->timeoutMs : self->settings.timeout_ms) * 1000000;
	self->settings.chunk = config->chunkBytes ? (int64_t)config->chunkBytes : self->settings.chunk;
	self->chunk_bytes = self->settings.chunk;
	const char *gpu = config->gpu ? config->gpu : self->settings.gpu ? self->settings.gpu : "";
	const char *schedules = config->schedules ? config->schedules : self->settings.schedules;
	if (take_gpu(r, gpu, err) != blinkSuccess)
		return err->code;
	r->schedules = schedules ? strdup(schedules) : NULL;
	if (schedules && !r->schedules)
		return set_error_memory(err);
	return take_backend(r, config->backend ? config->backend : r->self.settings.backend, err) != blinkSuccess
	    ? err->code : take_machine(r, err);
}

static void
set_state(struct rank_comm *r, const struct rank_comm *parent)
{
	struct rank_state *self = &r->self;
	self->events = (struct rank_events){ .context = r, .plan = plans_choose, .stuck = on_stuck,
	    .progress = on_progress, .failed = on_failed_here, .exchange = exchange, .has_routes = plans_have_routes };
	self->keys = (struct net_keys){ .context = r, .sign = sign, .patience = self->timeout,
		.zero_copy = self->settings.zero_copy };
	if (parent && parent->backend == r->backend)
		self->parent = parent->of_backend;
}

/* Where nobody says which GPU a rank has, it keeps the one that its number in the parent stands for, if an index has
 * that many. Buffers on a GPU show which it is. */
static void
keep_gpu(struct rank_comm *r, const struct rank_comm *parent)
{
	if (parent && !*r->gpu && *parent->gpu)
		memcpy(r->gpu, parent->gpu, GPU_BYTES);
	else if (parent && !*r->gpu && !r->backend->on_device)
		snprintf(r->gpu, sizeof r->gpu, "=%d", parent->self.rank);
}

/* A peer that has just ended is not reached, and the hub tells why: its word counts, if it comes soon. */
static bool
hub_knows_better(struct rank_comm *r, struct blink_error *err)
{
	struct blink_error told = { 0 };
	for (int i = 0; i < VERDICT_MS && !atomic_load(&r->self.stop); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	rank_error(&r->self, &told);
	if (told.code != blinkSuccess)
		*err = told;
	return told.code != blinkSuccess;
}

static void
introduce(const struct rank_comm *r, struct hello *mine)
{
	identify_host(r, mine->host);
	mine->shm = r->self.settings.shm;
	while (backends[mine->backend] != r->backend)
		mine->backend++;
	mine->tunes = tuning_wanted(r);
	memcpy(mine->gpu, r->gpu, GPU_BYTES);
	snprintf(mine->net, sizeof mine->net, "%s", net_name(&r->self.settings));
	memcpy(mine->machine, r->machine, MACHINE_BYTES);
	mine->card = r->card;
}

static int
join(struct rank_comm *r, const blinkUniqueId_t *id, struct blink_error *err)
{
	struct rank_state *self = &r->self;
	const struct bootstrap_events events = { r, on_failed, on_left, on_ask };
	struct hello *hello = calloc((size_t)self->n_ranks + 1, sizeof *hello), *mine = hello + self->n_ranks;
	struct addresses *all = calloc((size_t)self->n_ranks, sizeof *all);
	struct blink_error here = { 0 };
	char done = 1;
	r->self.deadline = rank_comm_deadline(r);
	if (hello)
		introduce(r, mine);
	if (!hello || !all) {
		set_error_memory(err);
	} else if (bootstrap_join(id, self->settings.secret, self->n_ranks, self->rank, mine, sizeof *mine, hello,
	    self->deadline, &events, &r->bootstrap, err) == blinkSuccess) {
		if (connect_ranks(r, hello, all, &here) == blinkSuccess && tuning_open(r, &here) == blinkSuccess
		    && see_gpus(r, &here) == blinkSuccess)
			bootstrap_allgather(r->bootstrap, &done, sizeof done, all, r->self.deadline, err);
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
    const struct rank_comm *parent, struct blink_error *err)
{
	ctx_init(&r->ctx);
	atomic_init(&r->culprit, -1);
	pthread_mutex_init(&r->lock, NULL);
	r->self.rank = rank;
	r->self.n_ranks = n;
	if (rank_open(&r->self, err) != blinkSuccess || read_settings(r, config, err) != blinkSuccess)
		return err->code;
	set_state(r, parent);
	keep_gpu(r, parent);
	if (plans_open(r, err) != blinkSuccess || join(r, id, err) != blinkSuccess)
		return err->code;
	if (!parent)
		warn_of_settings(r, config);
	debug_say(DEBUG_INFO, rank, "rank %d of %d, %d servers, %d ranks on this one, kernels %s", rank, n,
	    r->job.n_servers, r->self.n_local, reduction_kernels());
	return blinkSuccess;
}

/* Its threads first, and what it has still to send; then the network: what it brings is for the backend. Then the hub,
 * whose events are, and which the backend's threads need longer than the hub them. */
static void
close_backend(struct rank_comm *r, bool forked)
{
	struct rank_state *self = &r->self;
	if (!forked && r->of_backend)
		r->backend->finish(r->of_backend);
	if (!forked && self->net)
		self->net->close(self->net_handle, now_ns() + self->timeout);
	uint64_t calls = r->of_backend && !forked ? r->backend->begun(r->of_backend) : 0;
	if (!forked)
		rank_hears(self, NULL, NULL);
	memory_close_all(r, forked);
	if (r->of_backend)
		r->backend->close(r->of_backend, forked);
	bootstrap_leave(r->bootstrap, calls);
}

void
rank_comm_close(struct rank_comm *r, bool forked)
{
	close_backend(r, forked);
	if (!forked)
		tuning_close(r);
	plans_close(r);
	bootstrap_close_port(r->port);
	free(r->place);
	free(r->gpus);
	free(r->gpu_of);
	free(r->server);
	free(r->stated);
	free(r->cards);
	free(r->schedules);
	rank_close(&r->self);
	ctx_free(&r->ctx);
	free(r);
}
