/* The parts of the UCX net; for its own files. */
#ifndef BLINK_UCX_INSIDE_H
#define BLINK_UCX_INSIDE_H

#include "transport/tcp_inside.h"

extern const struct net_kind net_ucx;

#if defined __has_include
#if __has_include(<ucp/api/ucp.h>)
#define BLINK_UCX 1
#endif
#endif

#ifdef BLINK_UCX
#include <ucp/api/ucp.h>

/* UCX carries the messages of ranks; what UCX needs for it goes by the TCP net, on whose thread this one rides:
 *
 *	hello	a rank's address in UCX, and a token		before its first message, and back
 *	credit	how many messages have been delivered		now and then
 *	bye	how many messages were sent in all		as a net closes
 *	heard	how many messages have arrived			in answer to a bye
 *
 * So the TCP net's handshake proves who belongs to the job, its connections tell of peers that end or vanish, and this
 * net has its names and its reasons. UCX itself asks nobody for a proof: a message has to bring the token that its
 * receiver gave to its sender. Tokens are random, one for each pair and direction.
 *
 * A receiver keeps at most UCX_WINDOW messages of a peer that it has not delivered: a sender has no more under way. Of
 * short ones it keeps the bytes, where there is no place for them; those of long ones stay with the sender, and UCX
 * fetches them into their place (a rendezvous). */
enum {
	UCX_WINDOW = 256,	/* messages */
	UCX_EAGER = 8 << 10,	/* most bytes that are sent before the receiver has said where to */
	UCX_TOKEN = 16,
	UCX_HELLO_MOST = 64 << 10,
	UCX_MESSAGE = 1		/* the number of UCX's handler */
};

/* Lanes of the TCP net. One with NET_DONE is dropped where the peer has left. */
enum { UCX_LANE_HELLO = 0 };
#define UCX_LANE_CREDIT (NET_DONE | 1)
#define UCX_LANE_BYE (NET_DONE | 2)
#define UCX_LANE_HEARD (NET_DONE | 3)

struct ucx_header {
	unsigned char token[UCX_TOKEN];
	uint32_t from;
	uint32_t order;		/* of the message in its lane, 0 upwards, modulo 2^32 */
	struct net_message m;
};

/* A message to a peer; its header is read until UCX has sent it. */
struct ucx_parcel {
	struct ucx_parcel *next;
	struct ucx_peer *peer;
	const void *payload;
	struct ucx_header header;
};

enum ucx_arrival_state { ARRIVAL_WAITS, ARRIVAL_MOVES, ARRIVAL_WHOLE, ARRIVAL_LOST };

/* A message of a peer that has no place yet, or of which not all is here, or whose turn in its lane has not come. */
struct ucx_arrival {
	struct ucx_arrival *next;	/* of its lane, by order */
	struct ucx_arrival *later;	/* that waits for a place, too; or is left of a broken peer */
	struct ucx *net;
	struct ucx_peer *peer;		/* NULL: it is broken, and UCX has not let go of the place */
	enum ucx_arrival_state state;
	uint32_t order;
	struct net_message m;
	void *remote;			/* how UCX fetches the bytes; NULL: they are here, or under way */
	unsigned char bytes[];
};

struct ucx_lane {
	uint32_t expected;
	struct ucx_arrival *ahead;
};

struct ucx_peer {
	struct ucx *net;
	int rank;
	atomic_bool attention;		/* another thread wants something of the thread */
	atomic_bool resumed, broken;
	atomic_int asking;		/* messages from it that wait for a place, or that are asked for */
	pthread_mutex_t lock;		/* of the members down to `n_orders` */
	struct ucx_parcel *head, **tail;
	uint32_t *order, n_orders;	/* of the next message to it, of each lane */
	/* of the thread */
	unsigned char *hello;		/* sent to it: the token that it has to bring, this rank's address */
	unsigned char *theirs;		/* its hello, and how long that is */
	size_t n_theirs;
	ucp_ep_h endpoint;
	ucs_status_t failure;		/* of the endpoint: UCX's reason, and when it was told */
	int64_t failed_at;
	uint64_t sent, delivered_there, under_way;	/* messages to it; those that UCX has not sent yet */
	uint64_t received, delivered, told;	/* messages from it; those that it knows to be delivered */
	uint64_t moving;			/* that UCX fetches */
	struct ucx_arrival *waiting, **waiting_tail;
	struct ucx_lane *lane;
	uint32_t n_lanes;
	bool left, gone, heard;		/* its bye is here; and all of its messages; it has all of this rank's */
	uint64_t total;			/* that its bye tells */
	int64_t bye_at;			/* 0: this rank's has not been sent */
	bool cut;			/* abandoned: not all that it was to get is sent, so that it hears no bye */
	bool ended;			/* broken, and nothing of it is kept any more */
};

struct ucx {
	int rank, n_ranks;
	struct net_events events;
	pid_t owner;
	const struct ucx_api *api;
	_Atomic(struct tcp *) tcp;
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_address_t *address;
	size_t n_address;
	struct ucx_peer *peer;
	atomic_bool connected;		/* peers' addresses are known, so that they can be answered */
	atomic_bool attention;		/* some peer has it */
	atomic_bool awake;		/* the thread will look at `attention` before it sleeps */
	bool trouble;			/* some peer is to be looked after: it failed, or is broken */
	int closing_endpoints;
	struct ucx_arrival *left;	/* by `later`: of broken peers, whose places UCX has not let go of */
	atomic_bool abandoned, closing;
	int64_t letting_go;		/* since when; 0: not yet. The thread's */
	int64_t deadline;		/* of the close; set before closing */
	pthread_mutex_t lock;		/* of the members down to `drained` */
	pthread_cond_t changed;
	bool let_go, drained;		/* no memory of a failed call is read; peers have heard all */
};

/* ---- ucx_library.c ---- */

/* All that is used of UCX, by its own names. */
#define UCX_FUNCTIONS(X) \
	X(ucp_config_read) X(ucp_config_release) X(ucp_init_version) X(ucp_cleanup) X(ucp_worker_create) \
	X(ucp_worker_destroy) X(ucp_worker_get_address) X(ucp_worker_release_address) X(ucp_worker_get_efd) \
	X(ucp_worker_arm) X(ucp_worker_progress) X(ucp_worker_set_am_recv_handler) X(ucp_ep_create) \
	X(ucp_ep_close_nbx) X(ucp_am_send_nbx) X(ucp_am_recv_data_nbx) X(ucp_am_data_release) X(ucp_request_free) \
	X(ucs_status_string)

struct ucx_api {
#define UCX_POINTER(name) __typeof__(&name) name##_;
	UCX_FUNCTIONS(UCX_POINTER)
#undef UCX_POINTER
};

/* NULL: it cannot be used; why[256] says so. Opened once, and never closed. */
const struct ucx_api *ucx_library(char why[256]);

/* What opens and closes UCX runs aside (support/thread.h): the threads that UCX then starts get no signals. */
enum { UCX_STACK = 1 << 20 };

/* ---- ucx_say.c ---- */

static inline struct tcp *
ucx_tcp(const struct ucx_peer *peer)
{
	return atomic_load(&peer->net->tcp);
}

void ucx_attend(struct ucx_peer *peer);		/* by any thread: the thread is to look after it */
/* Of the thread from here on. */
void ucx_failed(struct ucx_peer *peer, ucs_status_t status);	/* UCX says so */
/* The peer is broken. format: what follows the peer's name. */
void ucx_break(struct ucx_peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ucx_tell(struct ucx_peer *peer, uint32_t lane, uint64_t value);

/* ---- ucx_out.c ---- */

int ucx_out_send(struct ucx_peer *peer, const struct net_message *m, const void *payload);	/* by any thread */
void ucx_out_post(struct ucx_peer *peer);	/* what can be sent now */
bool ucx_out_needed(struct ucx_peer *peer);	/* does anything but `done` wait there? */
void ucx_out_drop(struct ucx_peer *peer);

/* ---- ucx_bye.c ---- */

void ucx_check_gone(struct ucx_peer *peer);	/* has all come that it sent, where it has said how much? */
bool ucx_leaving_done(struct ucx_peer *peer);	/* for a net that closes: nothing is to be awaited of the peer */

/* ---- ucx_in.c ---- */

ucs_status_t ucx_in_message(void *net, const void *header, size_t n_header, void *data, size_t bytes,
    const ucp_am_recv_param_t *param);
void ucx_in_resume(struct ucx_peer *peer);
void ucx_in_drop(struct ucx_peer *peer);

/* ---- ucx_peer.c ---- */

void ucx_greet(struct ucx_peer *peer);		/* send the hello, if it has not been */
void ucx_let_go(struct ucx_peer *peer);		/* a call has failed: nothing more is sent to it */
void ucx_look_after(struct ucx_peer *peer, int64_t now);	/* a peer that has failed, or is broken */
void ucx_drop(struct ucx_peer *peer);		/* all that is kept of its messages and of those to it */
void ucx_close_endpoint(struct ucx_peer *peer);
/* What the TCP net tells. */
void *ucx_place(void *net, int from, const struct net_message *m);
void ucx_arrived(void *net, int from, const struct net_message *m);
void ucx_broken(void *net, int peer, const char *reason);
void ucx_short_of(void *net, int error);

#endif
#endif
