/* Flags under way. A store of a flag to memory elsewhere is seen there after a while, which the thread that stores does
 * not wait for, but its next fence does: stores go into a queue, all with the same delay, and a thread puts them in
 * place when they are due. What a thread has stored before a flag is in place long since, so no order is lost. */
#include "grid.h"

#include <string.h>
#include <time.h>

enum { MOST = 1 << 16 };		/* under way: who stores more waits */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	_Atomic uint64_t sent, landed;	/* so far */
	struct under_way {
		int64_t due;
		char *at, value[LINE_BYTES];
		unsigned bytes;
	} flag[MOST];
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
land(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_mutex_lock(&queue.lock);
		while (queue.landed == queue.sent)
			pthread_cond_wait(&queue.more, &queue.lock);
		pthread_mutex_unlock(&queue.lock);
		const struct under_way *f = &queue.flag[queue.landed % MOST];
		sleep_until(f->due);
		store_bytes(f->at, f->value, f->bytes);
		memory_stored(f->at, f->bytes);
		atomic_fetch_add(&queue.landed, 1);
	}
}

static void
begin(void)
{
	pool_start(land, NULL);
}

static void
wait_for(uint64_t landed)
{
	for (unsigned turns = 0; queue.landed < landed; turns++)
		back_off(turns);
}

uint64_t
flag_send(char *at, const char *value, unsigned bytes, int64_t after_ns)
{
	pthread_once(&once, begin);
	pthread_mutex_lock(&queue.lock);
	wait_for(queue.sent < MOST ? 0 : queue.sent - MOST + 1);
	struct under_way *f = &queue.flag[queue.sent % MOST];
	*f = (struct under_way){ .due = clock_ns() + after_ns, .at = at, .bytes = bytes };
	memcpy(f->value, value, bytes);
	uint64_t number = atomic_fetch_add(&queue.sent, 1) + 1;
	pthread_cond_signal(&queue.more);
	pthread_mutex_unlock(&queue.lock);
	return number;
}

void
flag_wait(uint64_t number)
{
	if (queue.landed < number)
		sleep_until(queue.flag[(number - 1) % MOST].due);
	wait_for(number);
}
