/* Shared memory is handed from process to process.
 *
 * Of two ranks the lower one connects to the higher one's socket and says who it is; both sign what the other drew at
 * random; and only who has seen the other's signature sends its descriptor: the sockets' names can be read by everybody
 * on the server. One thread serves all its peers at once by poll, so that no order of ranks can block. The sockets are
 * closed afterwards.
 *
 * The queue of a socket may be full: of ranks, or of strangers. Who connects tries again until the deadline, also where
 * the connection is dropped. Connections of other users are dropped as they are accepted; of the user's own, the oldest
 * that has not said who it is, when there are too many. */
#include "transport/shm_inside.h"
#include "bootstrap/system.h"
#include "support/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	NONCE = 16,
	MAC = 32,
	STRANGERS = 32,
	LOOK_MS = 20,		/* between looks whether to stop */
	RETRY_MS = 2		/* between attempts to connect */
};

/* What goes over a socket, in both directions: HELLO; once the other's has come, PROOF; and once that of the other has,
 * one byte with the descriptor. */
struct hello {
	int32_t from, to;
	unsigned char nonce[NONCE];
};

struct proof {
	unsigned char mac[MAC];
};

enum state { SAY_HELLO, HEAR_HELLO, SAY_PROOF, HEAR_PROOF, SAY_MEMORY, HEAR_MEMORY, DONE, CONNECT };

struct link {
	int fd;
	enum state state;
	bool ready;			/* to be looked at: it is new, or poll says so */
	bool dropped;			/* it has been connected before */
	struct hello mine, theirs;
	int peer;			/* index of the peer; -1: it has not said who it is */
};

/* ---- one socket ---- */

/* What the other end drew, and who says so to whom. */
static void
sign(const struct shm *own, const struct hello *from, const struct hello *nonce_of, unsigned char mac[MAC])
{
	unsigned char text[8 + 8 + NONCE] = "shm-fd:";
	memcpy(text + 8, &from->from, 4);
	memcpy(text + 12, &from->to, 4);
	memcpy(text + 16, nonce_of->nonce, NONCE);
	own->keys->sign(own->keys->context, text, sizeof text, mac);
}

/* 1: sent; 0: later; -1: the other end is not a peer. */
static int
send_packet(int socket, const void *data, size_t bytes, int fd)
{
	struct iovec part = { (void *)data, bytes };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	if (fd >= 0) {
		m.msg_control = control.space;
		m.msg_controllen = sizeof control.space;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
		    .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	ssize_t n = sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR || errno == ENOTCONN ? 0 : -1;
	return n == (ssize_t)bytes ? 1 : -1;
}

/* *fd: the descriptor that came with it, which the caller closes; -1: none; NO_ROOM: this process may have no more. */
enum { NO_ROOM = -2 };

static int
receive_packet(int socket, void *data, size_t bytes, int *fd)
{
	struct iovec part = { data, bytes };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space,
	    .msg_controllen = sizeof control.space };
	ssize_t n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	*fd = -1;
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	else if (n > 0 && m.msg_flags & MSG_CTRUNC)
		*fd = NO_ROOM;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR || errno == ENOTCONN ? 0 : -1;
	return n == (ssize_t)bytes && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? 1 : -1;
}

static int
add_mapping(struct shm *own, struct shm_peer *peer, void *memory, size_t bytes, struct shm *same)
{
	struct mapping *m = calloc(1, sizeof *m);
	if (!m)
		return -1;
	*m = (struct mapping){ memory, bytes, same, own->mapped };
	own->mapped = m;
	peer->memory = memory;
	return 1;
}

/* A peer's memory has all that is read there, and cannot shrink (its seals). */
static int
map_peer(struct shm *own, struct shm_peer *peer, int fd)
{
	off_t bytes = lseek(fd, 0, SEEK_END);
	int seals = fcntl(fd, F_GET_SEALS);
	if (bytes <= 0 || (size_t)bytes < peer->least || seals < 0 || !(seals & F_SEAL_SHRINK))
		return -1;
	void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -1;
	if (add_mapping(own, peer, memory, (size_t)bytes, NULL) == 1)
		return 1;
	munmap(memory, (size_t)bytes);
	return -1;
}

/* One that comes with a descriptor is no peer's. */
static int
receive_plain(int socket, void *data, size_t bytes)
{
	int fd, got = receive_packet(socket, data, bytes, &fd);
	if (fd < 0)
		return got;
	close(fd);
	return -1;
}

/* What it has, has come. */
static bool
is_here(const struct shm_peer *peer)
{
	return peer->memory || peer->fd >= 0;
}

static int
hear_hello(struct link *link, const struct shm_peer *peer, int n_peers, int rank)
{
	int got = receive_plain(link->fd, &link->theirs, sizeof link->theirs);
	if (got != 1)
		return got;
	for (int i = 0; i < n_peers && link->peer < 0; i++)
		if (peer[i].rank == link->theirs.from && peer[i].rank < rank && !is_here(&peer[i]))
			link->peer = i;
	if (link->peer < 0 || link->theirs.to != rank || link->theirs.from != peer[link->peer].rank)
		return -1;
	link->mine.to = link->theirs.from;
	return 1;
}

static int
hear_proof(const struct shm *own, struct link *link)
{
	struct proof proof;
	unsigned char want[MAC], differs = 0;
	int got = receive_plain(link->fd, &proof, sizeof proof);
	if (got != 1)
		return got;
	sign(own, &link->theirs, &link->mine, want);
	for (int i = 0; i < MAC; i++)
		differs |= want[i] ^ proof.mac[i];
	return differs ? -1 : 1;
}

static int
hear_memory(struct shm *own, struct link *link, struct shm_peer *peer)
{
	char byte;
	int fd, got = receive_packet(link->fd, &byte, sizeof byte, &fd);
	if (got == 1 && (fd < 0 || is_here(peer)))
		got = -1;
	if (got == 1 && own->handle)
		return peer->fd = fd, 1;
	if (got == 1)
		got = map_peer(own, peer, fd);
	if (fd == NO_ROOM)
		own->lack = EMFILE;
	if (fd >= 0)
		close(fd);
	return got;
}

/* The lower rank speaks first, so that the other knows whom it answers. */
static enum state
next_state(enum state state, bool first)
{
	if (state == SAY_HELLO)
		return first ? HEAR_HELLO : SAY_PROOF;
	if (state == HEAR_HELLO)
		return first ? SAY_PROOF : SAY_HELLO;
	return state + 1;
}

/* As far as a link goes: 1 done, 0 it waits, -1 it is no peer's. */
static int
serve(struct shm *own, int rank, struct link *link, struct shm_peer *peer, int n_peers)
{
	int went = 1;
	struct proof proof;
	bool first = link->mine.to > rank;
	while (went == 1 && link->state != DONE) {
		switch (link->state) {
		case SAY_HELLO:
			went = send_packet(link->fd, &link->mine, sizeof link->mine, -1);
			break;
		case HEAR_HELLO:
			went = hear_hello(link, peer, n_peers, rank);
			break;
		case SAY_PROOF:
			sign(own, &link->mine, &link->theirs, proof.mac);
			went = send_packet(link->fd, &proof, sizeof proof, -1);
			break;
		case HEAR_PROOF:
			went = hear_proof(own, link);
			break;
		case SAY_MEMORY:
			went = send_packet(link->fd, "", 1, own->fd);
			break;
		default:
			went = hear_memory(own, link, &peer[link->peer]);
		}
		if (went == 1)
			link->state = next_state(link->state, first);
	}
	return went;
}

/* ---- all sockets ---- */

static int
new_link(struct link *link, int fd, int from, int to, int peer)
{
	*link = (struct link){ .fd = fd, .peer = peer, .state = peer >= 0 ? CONNECT : HEAR_HELLO, .ready = true };
	link->mine.from = from;
	link->mine.to = to;
	return getrandom(link->mine.nonce, NONCE, 0) == NONCE ? 0 : -1;
}

/* One of ours, which is not connected yet. */
static int
open_link(struct link *link, int rank, const struct shm_peer *peer, int index, struct blink_error *err)
{
	char reason[REASON_ROOM];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return set_error(err, blinkSystemError, "a Unix socket: %s", reason_of(errno, reason));
	if (new_link(link, fd, rank, peer->rank, index) != 0) {
		set_error(err, blinkSystemError, "getrandom: %s", strerror(errno));
		close(fd);
	}
	return err->code;
}

/* EAGAIN: the queue of the peer's socket is full. A peer that has been there may have ended: the hub tells. */
static int
connect_link(struct link *link, const struct shm_peer *peer, struct blink_error *err)
{
	struct sockaddr_un name;
	socklen_t length = shm_name(peer->address, &name);
	link->ready = connect(link->fd, (struct sockaddr *)&name, length) == 0;
	if (link->ready)
		link->state = SAY_HELLO;
	else if (errno != EAGAIN && errno != EINTR && !link->dropped)
		set_error(err, blinkSystemError, "rank %d on this server: %s: shared memory needs the same network and "
		    "user namespace, or BLINK_SHM=0", peer->rank, strerror(errno));
	return err->code;
}

/* Ranks of one job are one user's. */
static bool
is_ours(int fd)
{
	struct ucred who;
	socklen_t size = sizeof who;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && (who.uid == geteuid() || who.uid == 0);
}

/* The oldest that has not said who it is; there are always some where all places are taken. */
static void
evict(struct link *link, int *n_links)
{
	int i = 0;
	while (i < *n_links && link[i].peer >= 0)
		i++;
	if (i == *n_links)
		return;
	close(link[i].fd);
	memmove(&link[i], &link[i + 1], (size_t)(--*n_links - i) * sizeof *link);
}

/* At most as many as there are places for strangers, so that each is heard before it can be dropped. */
static void
accept_links(struct shm *own, int rank, struct link *link, int *n_links, int capacity)
{
	for (int accepted = 0; accepted < STRANGERS; accepted++) {
		int fd = accept4(own->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			own->lack = errno;
		if (fd < 0)
			return;
		if (is_ours(fd) && *n_links == capacity)
			evict(link, n_links);
		if (is_ours(fd) && *n_links < capacity && new_link(&link[*n_links], fd, rank, -1, -1) == 0)
			++*n_links;
		else
			close(fd);
	}
}

/* It has ended. One of ours, to a peer whose memory is not here, is to be connected again. False: it is not needed. */
static bool
reopen(struct link *link, int rank, const struct shm_peer *peer, struct blink_error *err)
{
	int index = link->peer;
	bool done = link->state == DONE || index < 0 || peer[index].rank < rank || is_here(&peer[index]);
	close(link->fd);
	if (done || open_link(link, rank, &peer[index], index, err) != blinkSuccess)
		return false;
	link->dropped = true;
	return true;
}

/* Links that are done or no peer's are closed and taken out. */
static void
serve_all(struct shm *own, int rank, struct link *link, int *n_links, struct shm_peer *peer, int n_peers,
    struct blink_error *err)
{
	int kept = 0;
	for (int i = 0; i < *n_links; i++) {
		struct link *l = &link[i];
		if (l->state == CONNECT && err->code == blinkSuccess)
			connect_link(l, &peer[l->peer], err);
		bool serves = l->state != CONNECT && l->ready;
		if (!serves || serve(own, rank, l, peer, n_peers) == 0 || reopen(l, rank, peer, err))
			link[kept++] = *l;
	}
	*n_links = kept;
}

static const struct shm_peer *
missing(const struct shm_peer *peer, int n_peers)
{
	for (int i = 0; i < n_peers; i++)
		if (!is_here(&peer[i]))
			return &peer[i];
	return NULL;
}

static void
wait_for_sockets(const struct shm *own, struct link *link, int n_links, struct pollfd *poll_of, int64_t deadline)
{
	int64_t ms = (deadline - now_ns()) / 1000000 + 1, most = LOOK_MS;
	poll_of[0] = (struct pollfd){ own->listener, POLLIN, 0 };
	for (int i = 0; i < n_links; i++) {
		bool connects = link[i].state == CONNECT, says = link[i].state % 2 == SAY_HELLO % 2;
		poll_of[i + 1] = (struct pollfd){ connects ? -1 : link[i].fd, says ? POLLOUT : POLLIN, 0 };
		most = connects ? RETRY_MS : most;
	}
	poll(poll_of, (nfds_t)n_links + 1, ms < 0 ? 0 : ms > most ? (int)most : (int)ms);
	for (int i = 0; i < n_links; i++)
		link[i].ready = poll_of[i + 1].revents != 0;
}

/* Of peers that are threads of this process; memory of the others stays NULL. */
static int
exchange_here(struct shm *own, struct shm_peer *peer, int n_peers, struct blink_error *err)
{
	for (int i = 0; i < n_peers; i++) {
		struct shm *same = shm_find_open(peer[i].address);
		peer[i].fd = -1;
		if (same && add_mapping(own, &peer[i], same->memory, same->bytes, same) != 1) {
			shm_drop(same);
			return set_error_memory(err);
		}
	}
	return err->code;
}

static int
exchange(struct shm *own, int rank, struct shm_peer *peer, int n_peers, struct link *link, struct pollfd *poll_of,
    int64_t deadline, const _Atomic int *stop, struct blink_error *err)
{
	int n_links = 0;
	char reason[REASON_ROOM];
	own->lack = 0;
	exchange_here(own, peer, n_peers, err);
	for (int i = 0; i < n_peers && err->code == blinkSuccess; i++)
		if (!peer[i].memory && peer[i].rank > rank
		    && open_link(&link[n_links], rank, &peer[i], i, err) == blinkSuccess)
			n_links++;
	while (err->code == blinkSuccess && missing(peer, n_peers)) {
		accept_links(own, rank, link, &n_links, n_peers + STRANGERS);
		serve_all(own, rank, link, &n_links, peer, n_peers, err);
		const struct shm_peer *late = missing(peer, n_peers);
		if (err->code != blinkSuccess)
			break;
		if (late && atomic_load(stop))
			set_error(err, blinkAborted, "the job has failed before rank %d handed over its memory",
			    late->rank);
		else if (late && own->lack)
			set_error(err, blinkSystemError, "the memory of rank %d on this server: %s", late->rank,
			    reason_of(own->lack, reason));
		else if (late && now_ns() >= deadline)
			set_error(err, blinkTimeout, "rank %d on this server does not hand over its memory",
			    late->rank);
		else if (late)
			wait_for_sockets(own, link, n_links, poll_of, deadline);
	}
	for (int i = 0; i < n_links; i++)
		close(link[i].fd);
	return err->code;
}

int
shm_exchange(struct shm *own, int rank, struct shm_peer *peer, int n_peers, int64_t deadline,
    const _Atomic int *stop, struct blink_error *err)
{
	size_t most = (size_t)n_peers + STRANGERS;
	struct link *link = calloc(most, sizeof *link);
	struct pollfd *poll_of = calloc(most + 1, sizeof *poll_of);
	if (link && poll_of)
		exchange(own, rank, peer, n_peers, link, poll_of, deadline, stop, err);
	else
		set_error_memory(err);
	free(link);
	free(poll_of);
	return err->code;
}
