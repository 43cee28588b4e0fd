/* The UCX net: its part of the TCP net's thread, and its row of the table. The parts are in ucx.h. */
#include "transport/ucx_inside.h"

#include <stdio.h>
#include <string.h>

static const char what[] = "UCX: InfiniBand, RoCE, shared memory or TCP, as UCX chooses";

#ifndef BLINK_UCX

static bool
ucx_available(char reason[256])
{
	snprintf(reason, 256, "not built in: ucp/api/ucp.h was not there");
	return false;
}

const struct net_kind net_ucx = { .name = "ucx", .what = what, .available = ucx_available };

#else

#include "support/error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ROUNDS = 64, MS = 1000000, END_MS = 1000, FILES = 64 };

/* What ranks exchange: as the TCP net's, of another name. */
enum { MAGIC = 4 };
static const char magic[MAGIC] = "ucx1", tcp_magic[MAGIC] = "tcp1";

/* ---- the thread ---- */

static void
attend(struct ucx_peer *peer)
{
	if (peer->endpoint && atomic_load(&peer->net->connected) && !atomic_load(&peer->broken))
		ucx_greet(peer);
	if (atomic_exchange(&peer->resumed, false))
		ucx_in_resume(peer);
	pthread_mutex_lock(&peer->lock);
	bool waits = peer->head != NULL;
	pthread_mutex_unlock(&peer->lock);
	if (!waits)
		return;
	if (peer->gone && !atomic_load(&peer->broken) && ucx_out_needed(peer))
		ucx_break(peer, " has left, and a message to it was sent");
	if (peer->gone || atomic_load(&peer->broken)) {
		ucx_out_drop(peer);
		return;
	}
	ucx_greet(peer);
	ucx_out_post(peer);
}

/* Did somebody ask for something? */
static bool
attend_peers(struct ucx *u)
{
	if (!atomic_exchange(&u->attention, false))
		return false;
	for (int i = 0; i < u->n_ranks; i++)
		if (atomic_exchange(&u->peer[i].attention, false))
			attend(&u->peer[i]);
	return true;
}

static void
look_after_peers(struct ucx *u)
{
	int64_t now = now_ns();
	if (!u->trouble)
		return;
	u->trouble = false;
	for (int i = 0; i < u->n_ranks; i++)
		ucx_look_after(&u->peer[i], now);
}

static void
say(struct ucx *u, bool *word)
{
	pthread_mutex_lock(&u->lock);
	*word = true;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

/* A call has failed. Where UCX does not let go in time, close_library ends it. */
static void
let_go(struct ucx *u)
{
	bool all = u->closing_endpoints == 0;
	if (!atomic_load(&u->abandoned) || u->let_go)
		return;
	for (int i = 0; i < u->n_ranks && !u->letting_go; i++)
		ucx_let_go(&u->peer[i]);
	u->letting_go = u->letting_go ? u->letting_go : now_ns();
	for (int i = 0; i < u->n_ranks; i++)
		all = all && u->peer[i].under_way == 0;
	if (all || now_ns() - u->letting_go >= (int64_t)END_MS * MS)
		say(u, &u->let_go);
	else
		tcp_look_by(atomic_load(&u->tcp), u->letting_go + (int64_t)END_MS * MS);
}

/* A net that closes waits until its peers have heard all. */
static void
leave(struct ucx *u)
{
	bool all = true;
	if (!atomic_load(&u->closing))
		return;
	for (int i = 0; i < u->n_ranks; i++)
		all = ucx_leaving_done(&u->peer[i]) && all;
	tcp_look_by(atomic_load(&u->tcp), u->deadline);
	if (!all && now_ns() < u->deadline)
		return;
	say(u, &u->drained);
}

/* UCX may be armed only when it has nothing more to do; and it may be busy all the same. */
static bool
turn(void *of)
{
	struct ucx *u = of;
	bool more = true;
	atomic_store(&u->awake, true);
	look_after_peers(u);
	let_go(u);
	for (int i = 0; i < ROUNDS && more; i++) {
		more = attend_peers(u);
		more = u->api->ucp_worker_progress_(u->worker) != 0 || more;
	}
	let_go(u);
	leave(u);
	atomic_store(&u->awake, false);
	return more || u->api->ucp_worker_arm_(u->worker) != UCS_OK || atomic_load(&u->attention) || u->trouble;
}

/* ---- open ---- */

static bool
ucx_available(char reason[256])
{
	return ucx_library(reason) != NULL;
}

static ucs_status_t
open_context(struct ucx *u)
{
	ucp_config_t *config;
	const ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
		.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, .estimated_num_eps = (size_t)u->n_ranks };
	ucs_status_t status = u->api->ucp_config_read_(NULL, NULL, &config);
	if (status != UCS_OK)
		return status;
	status = u->api->ucp_init_version_(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &u->context);
	u->api->ucp_config_release_(config);
	return status;
}

/* One thread at a time uses it: that which opens it, then the TCP net's, which closes it, too. */
static ucs_status_t
open_worker(struct ucx *u, int *fd)
{
	const ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED };
	const ucp_am_handler_param_t handler = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS
		    | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = UCX_MESSAGE, .flags = UCP_AM_FLAG_WHOLE_MSG, .cb = ucx_in_message, .arg = u,
	};
	ucs_status_t status = u->api->ucp_worker_create_(u->context, &params, &u->worker);
	if (status == UCS_OK)
		status = u->api->ucp_worker_set_am_recv_handler_(u->worker, &handler);
	if (status == UCS_OK)
		status = u->api->ucp_worker_get_efd_(u->worker, fd);
	if (status == UCS_OK)
		status = u->api->ucp_worker_get_address_(u->worker, &u->address, &u->n_address);
	return status == UCS_OK && u->n_address > UCX_HELLO_MOST - UCX_TOKEN ? UCS_ERR_BUFFER_TOO_SMALL : status;
}

/* UCX ends the process where it runs out of descriptors as it opens. */
static bool
has_files(void)
{
	int fd[FILES], n = 0;
	while (n < FILES && (fd[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		close(fd[i]);
	return n == FILES;
}

struct opening {
	struct ucx *net;
	int fd;
	ucs_status_t status;
	const char *what;
};

static void
open_aside(void *of)
{
	struct opening *o = of;
	o->what = "find a transport";
	o->status = open_context(o->net);
	if (o->status != UCS_OK)
		return;
	o->what = "start";
	o->status = open_worker(o->net, &o->fd);
}

static struct ucx *
new_ucx(int rank, int n_ranks, const struct net_events *events, const struct ucx_api *api)
{
	struct ucx *u = calloc(1, sizeof *u);
	struct ucx_peer *peer = calloc((size_t)n_ranks, sizeof *peer);
	if (!u || !peer) {
		free(u);
		free(peer);
		return NULL;
	}
	*u = (struct ucx){ .rank = rank, .n_ranks = n_ranks, .events = *events, .owner = getpid(),
		.api = api, .peer = peer };
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->changed, NULL);
	for (int i = 0; i < n_ranks; i++) {
		peer[i].net = u;
		peer[i].rank = i;
		peer[i].tail = &peer[i].head;
		peer[i].waiting_tail = &peer[i].waiting;
		pthread_mutex_init(&peer[i].lock, NULL);
	}
	return u;
}

/* ---- close ---- */

static void
close_library(void *of)
{
	struct ucx *u = of;
	int64_t until = now_ns() + (int64_t)END_MS * MS;
	for (int i = 0; i < u->n_ranks; i++) {
		ucx_drop(&u->peer[i]);
		ucx_close_endpoint(&u->peer[i]);
	}
	while (u->closing_endpoints && now_ns() < until)
		u->api->ucp_worker_progress_(u->worker);
	if (u->address)
		u->api->ucp_worker_release_address_(u->worker, u->address);
	if (u->worker)
		u->api->ucp_worker_destroy_(u->worker);
	if (u->context)
		u->api->ucp_cleanup_(u->context);
	u->worker = NULL;
	u->context = NULL;
}

/* What UCX has in a forked child stays: it belongs to the parent's devices and files. Where the TCP net's thread has
 * not begun, and no other can, the caller's stack has to do. */
static void
free_ucx(struct ucx *u)
{
	if (u->owner != getpid())
		u->worker = NULL;
	else if (u->context && !run_aside(UCX_STACK, close_library, u))
		close_library(u);
	for (int i = 0; i < u->n_ranks; i++) {
		ucx_drop(&u->peer[i]);
		free(u->peer[i].order);
		free(u->peer[i].lane);
		free(u->peer[i].hello);
		free(u->peer[i].theirs);
	}
	for (struct ucx_arrival *a = u->left, *later; a; a = later) {
		later = a->later;
		free(a);
	}
	free(u->peer);
	free(u);
}

static void
ucx_close(void *net, int64_t deadline)
{
	struct ucx *u = net;
	struct tcp *tcp = u ? atomic_load(&u->tcp) : NULL;
	if (!u)
		return;
	if (tcp && u->owner == getpid()) {
		u->deadline = deadline;
		atomic_store(&u->closing, true);
		tcp_wake(tcp);
		pthread_mutex_lock(&u->lock);
		while (!u->drained)
			pthread_cond_wait(&u->changed, &u->lock);
		pthread_mutex_unlock(&u->lock);
	}
	net_tcp.close(tcp, deadline);
	free_ucx(u);
}

/* ---- the row ---- */

static int
ucx_open(int rank, int n_ranks, const struct net_events *events, const struct net_keys *keys, void *address,
    void **net, struct blink_error *err)
{
	char why[256];
	const struct ucx_api *api = ucx_library(why);
	struct ucx *u = api ? new_ucx(rank, n_ranks, events, api) : NULL;
	const struct net_events mine = { u, ucx_place, ucx_arrived, ucx_broken, ucx_short_of };
	struct opening o = { .net = u, .fd = -1, .status = UCS_ERR_NO_MEMORY, .what = "start a thread" };
	void *tcp = NULL;
	if (!api)
		return set_error(err, blinkSystemError, "ucx: %s", why);
	if (!u)
		return set_error(err, blinkOutOfMemory, "ucx: out of memory");
	if (!has_files())
		set_error(err, blinkSystemError, "ucx: %s: want %d more descriptors", strerror(errno), FILES);
	else if (!run_aside(UCX_STACK, open_aside, &o) || o.status != UCS_OK)
		set_error(err, blinkSystemError, "ucx: cannot %s: %s", o.what, u->api->ucs_status_string_(o.status));
	const struct tcp_rider rider = { u, o.fd, turn, close_library };
	if (o.status == UCS_OK && tcp_open_with(&rider, rank, n_ranks, &mine, keys, address, &tcp, err) == blinkSuccess)
		atomic_store(&u->tcp, tcp);
	if (!tcp) {
		ucx_close(u, 0);
		return err->code;
	}
	memcpy(address, magic, MAGIC);
	*net = u;
	return blinkSuccess;
}

static int
ucx_connect(void *net, const void *addresses, struct blink_error *err)
{
	struct ucx *u = net;
	size_t bytes = (size_t)u->n_ranks * NET_ADDRESS;
	char *of_tcp = malloc(bytes);
	if (!of_tcp)
		return set_error(err, blinkOutOfMemory, "ucx: out of memory");
	memcpy(of_tcp, addresses, bytes);
	err->code = blinkSuccess;
	for (int i = 0; i < u->n_ranks && err->code == blinkSuccess; i++) {
		char *at = of_tcp + (size_t)i * NET_ADDRESS;
		if (i != u->rank && memcmp(at, magic, MAGIC) != 0)
			set_error(err, blinkMismatch, "ucx: rank %d has another kind of net: want the same BLINK_NET "
			    "on all ranks", i);
		memcpy(at, tcp_magic, MAGIC);
	}
	if (err->code == blinkSuccess)
		net_tcp.connect(atomic_load(&u->tcp), of_tcp, err);
	free(of_tcp);
	if (err->code != blinkSuccess)
		return err->code;
	atomic_store(&u->connected, true);
	for (int i = 0; i < u->n_ranks; i++)
		ucx_attend(&u->peer[i]);
	return err->code;
}

static int
ucx_send(void *net, int to, const struct net_message *m, const void *payload)
{
	struct ucx *u = net;
	if (to < 0 || to >= u->n_ranks || to == u->rank || !tcp_lane_good(m->lane))
		return blinkInvalidArgument;
	if (atomic_load(&u->peer[to].broken) || atomic_load(&u->abandoned))
		return blinkRemoteError;
	return ucx_out_send(&u->peer[to], m, payload);
}

static void
ucx_abandon(void *net)
{
	struct ucx *u = net;
	atomic_store(&u->abandoned, true);
	tcp_wake(atomic_load(&u->tcp));
	pthread_mutex_lock(&u->lock);
	while (!u->let_go)
		pthread_cond_wait(&u->changed, &u->lock);
	pthread_mutex_unlock(&u->lock);
}

/* A message is counted before the events are asked: where they had no place, this thread sees the number. */
static void
ucx_resume(void *net, int from)
{
	struct ucx *u = net;
	if (atomic_load(&u->peer[from].asking) == 0)
		return;
	atomic_store(&u->peer[from].resumed, true);
	ucx_attend(&u->peer[from]);
}

const struct net_kind net_ucx = { "ucx", what, ucx_available, ucx_open, ucx_connect, ucx_send, ucx_abandon,
	ucx_resume, ucx_close };
#endif
