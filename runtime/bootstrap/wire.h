/* What ranks and their hub say to each other: the id, the handshake, frames; and how they are read and written without
 * waiting. Numbers are in the byte order of the machines, which are all of one kind. */
#ifndef BLINK_BOOTSTRAP_WIRE_H
#define BLINK_BOOTSTRAP_WIRE_H

#include "base/hmac.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/system.h"

#include <assert.h>

enum {
	WIRE_VERSION = 1,	/* of the frames; the handshake stays as it is, so that versions can tell each other */
	SECRET_BYTES = 32,
	NONCE_BYTES = 32,
	RANKS_MAX = 65536,
	JOIN_MAX = 4096,	/* bytes that a rank contributes */
	EXCHANGE_MAX = 65536
};

/* ---- the id ---- */

#define ID_MAGIC "blinkid1"

struct id {
	char magic[8];
	uint64_t process;			/* process_number of the hub's */
	unsigned char secret[SECRET_BYTES];
	unsigned char address[ADDRESS_BYTES];	/* with port */
	char interface[16];			/* of a link-local address; its number differs between servers */
	uint8_t later;				/* 1: nobody may listen there yet */
	unsigned char zero[35];
};
_Static_assert(sizeof(struct id) == sizeof(blinkUniqueId_t), "the id is what users pass on");

/* ---- the handshake ----
 *
 *	rank to hub	hello		a random number
 *	hub to rank	challenge	another; and proof that it knows the secret
 *	rank to hub	proof		the same, and who the rank is
 *	hub to rank	WELCOME		the proof was good; a rank that does not hear it tries again
 *
 * Each proof is an HMAC by the secret over both random numbers and over who gives it. So a recorded one serves nobody
 * later, that of a hub cannot be sent back to it as that of a rank, and what a rank says of itself cannot be changed.
 * What follows is neither secret nor signed: who can change packets between servers is not kept out. */

#define HELLO_MAGIC "blinkhi1"
#define WELCOME "blinkok1"
enum { WELCOME_BYTES = 8 };

struct hello {
	char magic[8];
	unsigned char nonce[NONCE_BYTES];
};

struct challenge {
	unsigned char nonce[NONCE_BYTES];
	unsigned char mac[HMAC_BYTES];
};

struct proof {
	uint32_t version;
	char library[20];			/* its version */
	uint64_t process;
	int32_t n, rank;
	uint32_t bytes;				/* that it contributes to the first exchange */
	uint32_t zero;
	unsigned char mac[HMAC_BYTES];		/* also over the members before it */
};

struct nonces {
	unsigned char rank[NONCE_BYTES], hub[NONCE_BYTES];
};

void mac_of_hub(const unsigned char secret[SECRET_BYTES], const struct nonces *n, unsigned char out[HMAC_BYTES]);
void mac_of_rank(const unsigned char secret[SECRET_BYTES], const struct nonces *n, const struct proof *p,
    unsigned char out[HMAC_BYTES]);
void mac_of_text(const unsigned char secret[SECRET_BYTES], const void *text, size_t bytes,
    unsigned char out[HMAC_BYTES]);

/* ---- frames ---- */

struct farewell {
	uint64_t calls;
};
struct late {
	int64_t patience;		/* how long the rank has waited for an exchange */
};
struct stuck {
	int64_t left, patience;		/* time to the deadline; see bootstrap_stuck */
};
struct answer {
	struct rank_status status;
};
struct failure {
	int32_t code, culprit;
	char text[504];
};
struct joined {
	int32_t hub_rank;
	int32_t zero;
};
struct left {
	uint64_t calls;
	int32_t rank;
	uint32_t hub_may_end;		/* no rank is left in the hub's process */
};

/* kind, bytes: at least, at most */
#define FRAME_LIST(X)                                                          \
	/* to the hub */                                                       \
	X(FRAME_GIVE, 0, EXCHANGE_MAX)                                         \
	X(FRAME_LATE, sizeof(struct late), sizeof(struct late))                \
	X(FRAME_FAIL, sizeof(struct failure), sizeof(struct failure))          \
	X(FRAME_STUCK, sizeof(struct stuck), sizeof(struct stuck))             \
	X(FRAME_PROGRESS, 0, 0)                                                \
	X(FRAME_ANSWER, sizeof(struct answer), sizeof(struct answer))          \
	X(FRAME_FAREWELL, sizeof(struct farewell), sizeof(struct farewell))    \
	/* to a rank */                                                        \
	X(FRAME_JOINED, sizeof(struct joined), sizeof(struct joined))          \
	X(FRAME_ALL, 0, UINT32_MAX)	/* and reader.most */                  \
	X(FRAME_FAILED, sizeof(struct failure), sizeof(struct failure))        \
	X(FRAME_LEFT, sizeof(struct left), sizeof(struct left))                \
	X(FRAME_ASK, 0, 0)

#define FRAME_KIND(kind, least, most) kind,
enum frame_kind { FRAME_LIST(FRAME_KIND) FRAME_KINDS };
#undef FRAME_KIND
enum { FRAME_FIRST_OF_HUB = FRAME_JOINED };

struct frame {
	uint32_t kind, bytes;
};

/* A frame that is being read. */
struct reader {
	bool of_hub;			/* which side writes what we read */
	size_t most;			/* bytes that a FRAME_ALL may have now */
	struct frame head;
	char *body;
	size_t got;			/* of head and body */
};

/* Is it one that ranks 0 to n - 1 and their hub may tell of? */
bool failure_valid(const struct failure *f, int n);

enum read { READ_LATER, READ_FRAME, READ_END };

/* READ_FRAME: head and body are there until reader_next. READ_END: errno is 0 at the end of the connection, EPROTO for
 * a frame that is not allowed. */
enum read reader_read(struct reader *r, int fd);
void reader_next(struct reader *r);	/* also to free at the end */

/* Frames that wait to be written: one may be in the queues of many connections. */
struct packet {
	int users;
	size_t bytes;
	union {
		struct frame head;
		char all[sizeof(struct frame)];
	};
	char body[];
};
_Static_assert(offsetof(struct packet, body) == offsetof(struct packet, all) + sizeof(struct frame), "in one piece");

struct queued;

struct writer {
	struct queued *first, *last;
	size_t sent;			/* of the first */
};

/* NULL: no memory. The caller is its first user. body NULL: left for the caller to fill. */
struct packet *packet_new(enum frame_kind kind, const void *body, size_t bytes);
void packet_drop(struct packet *p);

bool writer_add(struct writer *w, struct packet *p);	/* false: no memory */
bool writer_flush(struct writer *w, int fd);		/* false: the connection has ended, errno says why */
void writer_free(struct writer *w);

#endif
