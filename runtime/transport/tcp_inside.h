/* The parts of the TCP net; for its own files. */
#ifndef BLINK_TCP_INSIDE_H
#define BLINK_TCP_INSIDE_H

#include "bootstrap/crowd.h"
#include "support/clock.h"
#include "support/thread.h"
#include "transport/net.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* A connection carries messages one way: the rank that sends opens it, when it first has something to send. So both
 * ranks of a pair may begin at the same time, and neither waits for the other. The way back carries the answers of
 * the handshake (tcp_hello.h), and single bytes.
 *
 * A rank sends to a peer over several connections. The first is for short messages, which so never wait behind the
 * bytes of a long one. Long messages are cut into parts, one for each of the others: a single connection is bound to
 * one path through a network of many paths, and often to less than the rate of the link. What overtakes on the way
 * waits at the receiver for its turn in its lane. */
enum {
	TCP_SHORT = 16 << 10,	/* most bytes of a message of the first connection */
	TCP_PART = 256 << 10,	/* parts have at least so many bytes: less do not repay another system call */
	TCP_LONG = 4,		/* connections for long messages */
	TCP_WAYS = 1 + TCP_LONG,
	TCP_WAYS_MOST = 64,	/* that a peer may open */
	TCP_BUFFER = 4096	/* headers and short messages are read through a buffer of this size */
};

/* The bytes on the way back: the end of the handshake; the engine has no place, and has one; farewell. */
enum { BACK_WELCOME = 'k', BACK_WAIT = 'w', BACK_GO = 'g', BACK_BYE = 'b' };

/* What precedes the bytes of each part. One byte order: the handshake compares a number of 32 bits. */
struct tcp_frame {
	uint32_t kind;
	uint32_t order;		/* of the message in its lane, 0 upwards, modulo 2^32 */
	struct net_message m;
	uint64_t offset, bytes;	/* of the part */
};
enum { FRAME_PART = 1, FRAME_BYE = 2 };

struct tcp_hello {
	char magic[8];
	uint32_t order, from, to, way;
	unsigned char random[32];
};

/* What epoll reports. */
enum tcp_source { SOURCE_WAKE, SOURCE_LISTENER, SOURCE_IN, SOURCE_OUT, SOURCE_RIDER };

struct tcp_part {
	struct tcp_part *next;
	const char *payload;
	uint64_t sent;		/* of the header and the bytes */
	bool copied;		/* not by zero copy, which the kernel has refused */
	struct tcp_frame frame;
};

enum tcp_out_state {
	OUT_IDLE, OUT_WANTED, OUT_CONNECTING, OUT_HELLO, OUT_PROVED, OUT_READY,
	OUT_ENDED		/* by the peer's farewell, or as it broke */
};

/* Of a connection, with its lock; tcp_zero.c. */
enum tcp_zero_state {
	ZERO_OFF,		/* it cannot be, or does not pay here */
	ZERO_TRY,		/* the next long part, to see what the kernel says of it */
	ZERO_TRIED,		/* it is under way; others are copied */
	ZERO_ON
};

struct tcp_zero {
	enum tcp_zero_state state;
	uint32_t begun, ended;	/* system calls without a copy; those of which the kernel has let go. Modulo 2^32 */
	int refused;		/* in a row */
	bool reset;		/* the connection, by tcp_zero_reset */
};

/* A connection to a peer. The thread alone changes `state`, but for OUT_IDLE to OUT_WANTED. */
struct tcp_out {
	enum tcp_source source;
	int fd;
	struct tcp_peer *peer;
	uint32_t way;
	pthread_mutex_t lock;		/* of the members down to `state` */
	bool writing;			/* some thread writes, without the lock */
	bool armed;			/* the thread will write when there is room */
	bool cut;			/* abandoned: not all that was begun is sent */
	int error;			/* that writing met */
	struct tcp_part *head, **tail;
	struct tcp_zero zero;
	_Atomic(enum tcp_out_state) state;
	/* of the thread */
	int64_t since, retry;		/* first wanted; when to try again */
	int64_t heard, looked;		/* of the host of the peer; the last look */
	bool held;			/* the peer's engine has no place: acknowledgements may be rare */
	size_t n_answer;
	struct tcp_hello ours;
	unsigned char answer[sizeof(struct tcp_hello) + 32];
};

/* A message of a peer of which not all has arrived, or whose turn in its lane has not come. */
struct tcp_arrival {
	struct tcp_arrival *next;
	uint32_t order;
	struct net_message m;
	char *place;
	uint64_t unclaimed, left;	/* bytes whose part has not begun; that have not arrived */
};

struct tcp_lane {
	uint32_t expected;
	struct tcp_arrival *ahead;	/* by order */
};

enum tcp_in_state { IN_HELLO, IN_PROOF, IN_READY, IN_NO_PLACE, IN_ENDED };

/* A connection from somebody; from a peer once it has proved it. All is the thread's. */
struct tcp_in {
	enum tcp_source source;
	int fd;
	struct tcp_in *next;
	struct tcp_peer *peer;
	enum tcp_in_state state;
	struct stranger stranger;	/* until the peer has proved itself */
	int64_t since;			/* without a place */
	bool asking;			/* it is one of those of its peer */
	bool told;			/* the sender knows that it has to wait */
	struct tcp_hello theirs, ours;
	struct tcp_frame frame;		/* of the part that is being read */
	struct tcp_arrival *arrival;	/* that it belongs to; NULL: the part is a message whose turn it is */
	char *to;
	uint64_t left;			/* bytes of the part */
	size_t at, end;			/* of what is in the buffer */
	unsigned char buffer[TCP_BUFFER];
};

struct tcp_peer {
	int rank;
	struct sockaddr_in6 address;	/* or a sockaddr_in */
	atomic_bool attention;		/* another thread wants something of the thread: this or that */
	atomic_bool resumed, broken;
	atomic_int asking;		/* connections from it whose message waits for a place, or is asked for */
	bool gone;			/* it has said farewell */
	pthread_mutex_t lock;		/* of orders */
	uint32_t *order, n_orders;	/* of the next message to it, of each lane */
	struct tcp_lane *lane;		/* from it */
	uint32_t n_lanes, n_arrivals;
	struct tcp_out out[TCP_WAYS];
};

/* Another net that this one serves: it has its thread, and its connections as a way for messages about messages. */
struct tcp_rider {
	void *context;
	int fd;				/* to be looked at when it can be read */
	/* By the thread, before it sleeps: whatever can be done now. True: there is more, do not sleep. */
	bool (*turn)(void *context);
	void (*end)(void *context);	/* by the thread, as the last it does */
};

struct tcp {
	enum tcp_source wake_source, listener_source, rider_source;
	struct tcp_rider rider;		/* turn NULL: none */
	int rank, n_ranks;
	struct net_events events;
	struct net_keys keys;
	pid_t owner;
	int epoll, wake, listener;
	bool listening;			/* as far as epoll is concerned */
	struct crowd crowd;		/* connections in the handshake */
	int shortage;			/* why connections cannot be accepted: an errno; 0: they can */
	struct tcp_peer *peer;
	struct tcp_in *in;
	pthread_t thread;
	bool started;
	int64_t tick;			/* when to look at times next */
	bool ended;			/* some connection in the list has */
	atomic_bool abandoned, closing;
	atomic_uint zero_said;		/* for BLINK_DEBUG=INFO */
	int64_t deadline;		/* of the close; set before closing */
};

extern const struct net_kind net_tcp;

/* As the row's `open`, with a rider; NULL: none. */
int tcp_open_with(const struct tcp_rider *rider, int rank, int n_ranks, const struct net_events *events,
    const struct net_keys *keys, void *address, void **net, struct blink_error *err);

/* ---- tcp_peer.c ---- */

void tcp_wake(struct tcp *t);
void tcp_attend(struct tcp *t, struct tcp_peer *peer);	/* the thread is to look after the peer */
void tcp_look_by(struct tcp *t, int64_t when);		/* at times; the thread's */
/* Options of a connection: no delay, and probes of an idle one until the host of the peer is silent too long. */
void tcp_options(const struct tcp *t, int fd);
bool tcp_watch(const struct tcp *t, int fd, void *source, uint32_t events);	/* false: errno says why */
/* The peer is broken: end what concerns it, and tell. The thread's. format: what follows the peer's name. */
void tcp_break(struct tcp *t, struct tcp_peer *peer, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The peer has said farewell. It needs no `done` any more. */
void tcp_gone(struct tcp *t, struct tcp_peer *peer);
bool tcp_out_needed(const struct tcp_out *out);	/* does anything but `done` wait there? With the lock */
void tcp_in_end(struct tcp *t, struct tcp_in *in);
void tcp_free_parts(struct tcp_part *list);
void tcp_drop_parts(struct tcp_out *out);
void tcp_drop_arrivals(struct tcp_peer *peer);

static inline bool
tcp_lane_good(uint32_t lane)
{
	return (lane & ~(NET_DONE | NET_CHANNEL)) < NET_LANES;
}

/* Number of a lane in tables: four kinds of lanes have the same numbers. */
static inline uint32_t
tcp_lane_number(uint32_t lane)
{
	return (lane & ~(NET_DONE | NET_CHANNEL)) * 4 + (lane >> 30);
}

/* A table of *n elements of `size` bytes that has element `at`, the new ones 0; NULL: no memory. */
void *tcp_reach(void *table, uint32_t *n, size_t size, uint32_t at);

/* ---- tcp_hello.c ---- */

enum { TCP_PROOF = 32 };
extern const char tcp_connects[], tcp_accepts[];	/* who proves */

bool tcp_hello(struct tcp_hello *out, int from, int to, uint32_t way);
bool tcp_hello_good(const struct tcp_hello *h);
void tcp_prove(const struct tcp *t, const char *who, const struct tcp_hello *connects, const struct tcp_hello *accepts,
    unsigned char out[TCP_PROOF]);
bool tcp_proved(const struct tcp *t, const char *who, const struct tcp_hello *connects,
    const struct tcp_hello *accepts, const unsigned char proof[TCP_PROOF]);

/* ---- tcp_out.c ---- */

int tcp_out_send(struct tcp *t, struct tcp_peer *peer, const struct net_message *m, const void *payload);
void tcp_out_ready(struct tcp *t, struct tcp_out *out, uint32_t events);	/* epoll says so */
void tcp_out_attend(struct tcp *t, struct tcp_out *out);	/* what other threads want of this one */
/* Deadlines, retries, silence. Says when to look next. */
void tcp_out_tick(struct tcp *t, struct tcp_out *out, int64_t now);
void tcp_out_abandon(struct tcp_out *out);
void tcp_out_farewell(struct tcp *t, struct tcp_out *out);	/* the last message of all */
bool tcp_out_idle(struct tcp *t, struct tcp_out *out);		/* nothing waits to be sent. The thread's */

/* ---- tcp_zero.c ---- all with the lock of the connection, but for tcp_zero_await */

void tcp_zero_open(struct tcp *t, struct tcp_out *out);		/* it is ready */
/* Shall the kernel send these bytes of a message without a copy? */
bool tcp_zero_pays(const struct tcp_out *out, const struct tcp_part *part, uint64_t bytes);
void tcp_zero_begin(struct tcp_out *out);	/* such a call, for bytes of the first part, and its end: */
int tcp_zero_end(struct tcp *t, struct tcp_out *out, int code);	/* errno; EINTR where the part is to be copied */
/* The kernel reads the memory of calls `first` to `last`, modulo 2^32, no more. False: there were not so many calls. */
bool tcp_zero_range(struct tcp_zero *z, uint32_t first, uint32_t last);
bool tcp_zero_read(struct tcp *t, struct tcp_out *out);		/* what the kernel says; true: something */
/* May bytes that a peer lacks still be read from memory that was given to `send`? */
bool tcp_zero_lent(const struct tcp_out *out);
void tcp_zero_reset(struct tcp_out *out);	/* they are dropped: the connection has ended */
void tcp_zero_await(struct tcp *t, struct tcp_out *out, int64_t deadline);	/* until it is so */

/* ---- tcp_accept.c ---- */

void tcp_accept(struct tcp *t);
void tcp_crowd_tick(struct tcp *t, int64_t now);
void tcp_stranger_ready(struct tcp *t, struct tcp_in *in);	/* a connection that has not proved itself */
void tcp_stranger_tick(struct tcp *t, struct tcp_in *in, int64_t now);

/* ---- tcp_in.c ---- */

void tcp_in_ready(struct tcp *t, struct tcp_in *in);
void tcp_in_resume(struct tcp *t, struct tcp_in *in);
void tcp_in_tick(struct tcp *t, struct tcp_in *in, int64_t now);
void tcp_in_farewell(struct tcp_in *in);

#endif
