#include "bootstrap/crowd.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#define OF_LATE (2 * CROWD_TIME)

/* Of this process: a forked child, which has none of the threads, counts anew. */
static struct {
	_Atomic pid_t process;
	atomic_int ports;
} all;

void
crowd_open(struct crowd *c)
{
	*c = (struct crowd){ .last = &c->first, .process = getpid() };
	if (atomic_exchange(&all.process, c->process) != c->process)
		atomic_store(&all.ports, 0);
	atomic_fetch_add(&all.ports, 1);
}

void
crowd_close(struct crowd *c)
{
	if (c->process && c->process == getpid())
		atomic_fetch_sub(&all.ports, 1);
	c->process = 0;
}

static int
share(void)
{
	struct rlimit files;
	int most = CROWD_MOST, ports = atomic_load(&all.ports);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < CROWD_MOST)
		most = (int)(files.rlim_cur / 4);
	most /= ports > 1 ? ports : 1;
	return most > 1 ? most : 1;
}

bool
crowd_full(const struct crowd *c)
{
	return c->n > 0 && c->n >= share();
}

void
crowd_enter(struct crowd *c, struct stranger *s, int64_t now)
{
	*s = (struct stranger){ .since = now, .back = c->last };
	*c->last = s;
	c->last = &s->next;
	c->n++;
}

void
crowd_leave(struct crowd *c, struct stranger *s)
{
	*s->back = s->next;
	if (s->next)
		s->next->back = s->back;
	else
		c->last = s->back;
	c->n--;
}

struct stranger *
crowd_evict(struct crowd *c, int64_t now)
{
	struct stranger *s = c->first;
	while (s && s->spoke)
		s = s->next;
	if (!s && c->first && c->first->since + CROWD_PATIENCE <= now)
		s = c->first;
	if (s) {
		c->n_evicted++;
		c->evicted_at = now;
	}
	return s;
}

int64_t
crowd_room_at(const struct crowd *c)
{
	return c->first ? c->first->since + CROWD_PATIENCE : 0;
}

bool
crowd_presses(const struct crowd *c, int64_t now)
{
	return c->evicted_at && now - c->evicted_at < OF_LATE;
}
