/* What the bootstrap takes from the operating system: time, random bytes, sockets. */
#ifndef BLINK_BOOTSTRAP_SYSTEM_H
#define BLINK_BOOTSTRAP_SYSTEM_H

#include "blink_program.h"
#include "support/clock.h"
#include "support/thread.h"

#include <stdbool.h>
#include <sys/socket.h>

enum { BOOTSTRAP_STACK = 256 << 10 };		/* of a thread of the bootstrap */

/* Of a rank that has waited for `patience`, and then asks the hub who is to blame: how long others have for an answer,
 * even on a busy machine; and how long it waits for the hub's word after its deadline. 0: it asks at once. */
int64_t time_to_answer(int64_t patience);
int64_t grace_of(int64_t patience);

/* "30 s", "1.5 s", "250 ms" */
enum { DURATION_ROOM = 32 };
const char *duration(int64_t ns, char out[DURATION_ROOM]);

bool random_bytes(void *out, size_t bytes);

/* A number of this process that others hardly share: by it a rank knows that the hub of its id is a thread of its own
 * process. A forked child has another. */
uint64_t process_number(void);

/* ---- addresses: a sockaddr_in or sockaddr_in6 in 28 bytes, zero padded ---- */

enum { ADDRESS_BYTES = 28, ADDRESS_ROOM = 80 };

socklen_t address_length(const unsigned char address[ADDRESS_BYTES]);	/* 0: neither of the two */
int address_port(const unsigned char address[ADDRESS_BYTES]);
void address_set_port(unsigned char address[ADDRESS_BYTES], int port);

/* "10.0.0.1", "fe80::1%eth0"; with a port "10.0.0.1:4000", "[::1]:4000" */
const char *address_text(const unsigned char address[ADDRESS_BYTES], bool port, char out[ADDRESS_ROOM]);

/* ---- descriptors that a forked child closes by itself ----
 *
 * A child that a rank forks holds copies of its sockets, and would keep the connections of a dead parent open: others
 * would not hear of the death. So all sockets are on one list, and pthread_atfork closes them in the child. Programs
 * that are executed do not get them (CLOEXEC). */
struct descriptor {
	int fd;				/* -1: closed */
	struct descriptor *next, **back;
};

/* All set d->fd, or leave -1 and return false with errno set. Sockets do not block. */
bool descriptor_socket(struct descriptor *d, int family);
bool descriptor_accept(struct descriptor *d, int listener, unsigned char address[ADDRESS_BYTES]);
bool descriptor_event(struct descriptor *d);
bool descriptor_epoll(struct descriptor *d);
bool descriptor_copy(struct descriptor *d, const struct descriptor *of);
bool descriptor_spare(struct descriptor *d);	/* of no use but to be closed when there are no others left */
void descriptor_move(struct descriptor *to, struct descriptor *from);
void descriptor_close(struct descriptor *d);	/* also of one that is closed */

/* Small messages at once; a peer whose network is cut is noticed after half a minute. */
void socket_tune(int fd);

/* "Too many open files (ulimit -n is 1024)" or as strerror has it. */
enum { REASON_ROOM = 128 };
const char *reason_of(int error, char out[REASON_ROOM]);

#endif
