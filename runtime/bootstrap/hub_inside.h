/* What the files of the hub share: hub.c has the thread and what ranks say, door.c strangers, hub_say.c what the hub
 * says. */
#ifndef BLINK_HUB_INSIDE_H
#define BLINK_HUB_INSIDE_H

#include "bootstrap/crowd.h"
#include "bootstrap/verdict.h"
#include "bootstrap/wire.h"

#define SECOND INT64_C(1000000000)
enum { NEVER = 0 };			/* a time */

/* ns that a hub stays at most once the job has failed, or the last of the ranks in its process has left: to tell those
 * who come late, or still work, who is to blame. It ends at once when all ranks have come and gone. Its thread, its
 * descriptors and its memory end with it. */
#define HUB_STAYS INT64_C(10000000000)

enum state { STRANGER, CHALLENGED, GUEST, MEMBER };

struct connection {
	struct stranger stranger;		/* as long as it is one */
	struct descriptor socket;
	enum state state;
	int rank;				/* of a member */
	unsigned char address[ADDRESS_BYTES];
	bool waits;				/* to be writable */
	struct connection *next, **back;	/* of those that are let in; of those closed: next alone */
	struct nonces nonces;
	size_t got;				/* of `said`, which a stranger says */
	union {
		struct hello hello;
		struct proof proof;
	} said;
	struct reader in;
	struct writer out;
};

struct member {
	struct connection *connection;		/* NULL: not come yet, or gone */
	bool come, here, gave;			/* here: in the hub's process */
	unsigned char address[ADDRESS_BYTES];
	int64_t stuck_until, patience;		/* NEVER: not stuck */
	int64_t unanswered_since;		/* the first question; NEVER: all are answered */
};

struct hub {
	struct descriptor listener, epoll, spare;
	struct id id;
	bool listens;				/* the listener is in the epoll */
	int n;					/* 0: no rank has come */
	uint32_t first_bytes;			/* what each contributes to the first exchange */
	struct member *member;
	struct witness *witness;
	int n_come, n_left, n_connected;	/* members and guests; members; members and guests that are there */
	int first_come;				/* the rank whose n and bytes others are held against */
	struct connection *inside, *closed;
	struct crowd crowd;
	int64_t crowded_until;			/* NEVER: not */

	uint64_t exchanges;			/* that are done: the first is the join */
	struct packet *all;			/* NULL: nobody has contributed to the next */
	int n_gave, first_gave;
	uint32_t bytes;

	int64_t asked_at;

	bool failed;
	struct failure failure;
	int64_t end;				/* of the thread, whoever is still connected; NEVER: not known yet */
};

/* ---- hub_say.c: nothing here closes a connection; one that fails is noticed when it is read ---- */

bool hub_watch(struct hub *h, struct connection *c, int operation);	/* EPOLL_CTL_ADD, _MOD; false: errno */
void hub_flush(struct hub *h, struct connection *c);
void hub_give_frame(struct hub *h, struct connection *c, enum frame_kind kind, const void *body, size_t bytes);

/* To all members, but not to rank `except`. */
void hub_give_all(struct hub *h, struct packet *p, int except);
void hub_give_frame_to_all(struct hub *h, enum frame_kind kind, const void *body, size_t bytes, int except);

/* Nobody needs the hub for longer than HUB_STAYS from now. */
void hub_end_soon(struct hub *h);

/* The first failure is the one that members hear of. */
void hub_fail_with(struct hub *h, const struct failure *f, int except);
__attribute__((format(printf, 4, 5))) void hub_fail(struct hub *h, int code, int culprit, const char *format, ...);

/* A rank has waited too long for an exchange. */
void hub_late(struct hub *h, int64_t patience);

/* ---- door.c ---- */

void door_listen(struct hub *h);		/* again, if it had paused and is not shut */
void door_forget(struct hub *h, struct connection *c);	/* no stranger any more */
void door_accept(struct hub *h);
void door_release(struct hub *h, struct connection *c);	/* whoever it was goes; to be freed later */
void door_drop(struct hub *h, int64_t now);	/* strangers whose time is up */
void door_shut(struct hub *h);			/* for ever */
bool door_hear(struct hub *h, struct connection *c);	/* false: not one of ours, to be closed */

#endif
