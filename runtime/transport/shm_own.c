/* Shared memory of a rank: a memfd, or what a descriptor stands for, with a socket where peers ask for it
 * (shm_exchange.c). */
#include "transport/shm_inside.h"
#include "support/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* Memory of this process that is not closed: peers that are threads of it find each other's here, and share the
 * mapping. A forked child has none. */
static struct {
	pthread_mutex_t lock;
	pid_t process;
	struct shm *first;
} open_here = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- memory of this process ---- */

static void
lock_open(void)
{
	pthread_mutex_lock(&open_here.lock);
	if (open_here.process != getpid())
		open_here.first = NULL;
	open_here.process = getpid();
}

static void
list_open(struct shm *own)
{
	lock_open();
	own->next = open_here.first;
	open_here.first = own;
	pthread_mutex_unlock(&open_here.lock);
}

/* Nobody finds it any more, but those who have it keep it. Not in a forked child: who knows who held the lock then. */
static void
unlist_open(const struct shm *own)
{
	if (own->process != getpid())
		return;
	lock_open();
	struct shm **at = &open_here.first;
	while (*at && *at != own)
		at = &(*at)->next;
	if (*at)
		*at = own->next;
	pthread_mutex_unlock(&open_here.lock);
}

struct shm *
shm_find_open(const unsigned char address[SHM_ADDRESS])
{
	lock_open();
	struct shm *found = open_here.first;
	while (found && memcmp(found->address, address, SHM_ADDRESS) != 0)
		found = found->next;
	if (found)
		found->users++;
	pthread_mutex_unlock(&open_here.lock);
	return found;
}

/* ---- one's own ---- */

socklen_t
shm_name(const unsigned char address[SHM_ADDRESS], struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "blink-%.*s", SHM_ADDRESS, (const char *)address);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(out->sun_path + 1));
}

static int
open_listener(unsigned char address[SHM_ADDRESS], struct blink_error *err)
{
	unsigned char random[SHM_ADDRESS / 2 - 1];
	struct sockaddr_un name;
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return set_error(err, blinkSystemError, "getrandom: %s", strerror(errno)), -1;
	memset(address, 0, SHM_ADDRESS);
	for (size_t i = 0; i < sizeof random; i++)
		snprintf((char *)address + 2 * i, 3, "%02x", random[i]);
	socklen_t length = shm_name(address, &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, length) != 0 || listen(fd, SOMAXCONN) != 0) {
		set_error(err, blinkSystemError, "a Unix socket: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static struct shm *
new_own(void *memory, int fd, const struct net_keys *keys)
{
	struct shm *own = calloc(1, sizeof *own);
	if (own)
		*own = (struct shm){ .users = 1, .process = getpid(), .keys = keys, .memory = memory, .fd = fd,
		    .listener = -1 };
	return own;
}

/* To the caller, or closed if it is not whole. */
static int
give_own(struct shm *own, const unsigned char address[SHM_ADDRESS], struct shm **out, struct blink_error *err)
{
	if (err->code != blinkSuccess) {
		shm_close(own);
		return err->code;
	}
	memcpy(own->address, address, SHM_ADDRESS);
	list_open(own);
	*out = own;
	return blinkSuccess;
}

int
shm_open_own(size_t bytes, const struct net_keys *keys, unsigned char address[SHM_ADDRESS], struct shm **out,
    struct blink_error *err)
{
	struct shm *own = new_own(MAP_FAILED, -1, keys);
	if (!own)
		return set_error_memory(err);
	own->bytes = bytes;
	own->fd = memfd_create("blink", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (own->fd < 0 || ftruncate(own->fd, (off_t)bytes) != 0
	    || fcntl(own->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		set_error(err, blinkSystemError, "%zu bytes of shared memory: %s", bytes, strerror(errno));
	else if ((own->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own->fd, 0)) == MAP_FAILED)
		set_error(err, blinkOutOfMemory, "%zu bytes of address space: %s", bytes, strerror(errno));
	else
		own->listener = open_listener(address, err);
	return give_own(own, address, out, err);
}

int
shm_open_handle(int fd, void *memory, const struct net_keys *keys, unsigned char address[SHM_ADDRESS],
    struct shm **out, struct blink_error *err)
{
	struct shm *own = new_own(memory, fd, keys);
	if (!own)
		return set_error_memory(err);
	own->handle = true;
	own->listener = open_listener(address, err);
	if (err->code != blinkSuccess)
		own->fd = -1;
	return give_own(own, address, out, err);
}

void
shm_when_free(struct shm *own, void (*release)(void *of, bool forked), void *of)
{
	own->release = release;
	own->release_of = of;
}

void *
shm_memory(const struct shm *own)
{
	return own->memory;
}

void
shm_drop(struct shm *of)
{
	if (of->users-- > 1)
		return;
	if (of->release)
		of->release(of->release_of, of->process != getpid());
	if (of->memory != MAP_FAILED && !of->handle)
		munmap(of->memory, of->bytes);
	free(of);
}

void
shm_forget_peers(struct shm *own)
{
	while (own->mapped) {
		struct mapping *m = own->mapped;
		own->mapped = m->next;
		if (m->same)
			shm_drop(m->same);
		else
			munmap(m->memory, m->bytes);
		free(m);
	}
}

void
shm_close(struct shm *own)
{
	if (!own)
		return;
	shm_forget_peers(own);
	if (own->fd >= 0)
		close(own->fd);
	if (own->listener >= 0)
		close(own->listener);
	own->fd = own->listener = -1;
	unlist_open(own);
	shm_drop(own);
}
