#include "simulate/queue.h"
#include "base/array.h"
#include "base/frac.h"

Status
clocks_new(Ctx *ctx, int n, Clocks *out)
{
	*out = (Clocks){ .n = 0 };
	TRY(TEMP(ctx, out->heap, (size_t)n + 1));
	TRY(TEMP(ctx, out->place, n));
	TRY(TEMP(ctx, out->time, n));
	for (int i = 0; i < n; i++)
		out->place[i] = -1;
	return OK;
}

/* Without branches, as half of them would be guessed wrong. */
static inline bool
sooner(Clock a, Clock b)
{
	return ((Wide)a.time << 32 | a.id) < ((Wide)b.time << 32 | b.id);
}

static inline void
put(Clocks *q, int at, Clock clock)
{
	q->heap[at] = clock;
	q->place[clock.id] = at;
}

static void
rise(Clocks *q, int at, Clock clock)
{
	for (; at > 0 && sooner(clock, q->heap[(at - 1) / 2]); at = (at - 1) / 2)
		put(q, at, q->heap[(at - 1) / 2]);
	put(q, at, clock);
}

static void
sink(Clocks *q, int at, Clock clock)
{
	for (int next; (next = 2 * at + 1) < q->n; at = next) {
		next += (next + 1 < q->n) & sooner(q->heap[next + 1], q->heap[next]);
		if (!sooner(q->heap[next], clock))
			break;
		put(q, at, q->heap[next]);
	}
	put(q, at, clock);
}

void
clocks_set(Clocks *q, int id, int64_t time)
{
	int at = q->place[id];
	bool later = at >= 0 && time > q->time[id];
	q->time[id] = time;
	if (later)
		sink(q, at, (Clock){ time, id });
	else
		rise(q, at >= 0 ? at : q->n++, (Clock){ time, id });
}

int
clocks_pop(Clocks *q)
{
	int id = q->heap[0].id;
	q->place[id] = -1;
	if (--q->n > 0)
		sink(q, 0, q->heap[q->n]);
	return id;
}

void
clocks_unset(Clocks *q, int id)
{
	int at = q->place[id];
	q->place[id] = -1;
	if (at < 0 || at == --q->n)
		return;
	Clock last = q->heap[q->n];
	if (at > 0 && sooner(last, q->heap[(at - 1) / 2]))
		rise(q, at, last);
	else
		sink(q, at, last);
}

/* ---- events ---- */

static int
key_of(const Events *q, int64_t wait)
{
	uint64_t at = (uint64_t)wait * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	for (;; at++) {
		int line = q->key[at & (uint64_t)(q->n_keys - 1)];
		if (!line || q->line[line - 1].wait == wait)
			return (int)(at & (uint64_t)(q->n_keys - 1));
	}
}

/* Room for twice as many lines. */
static Status
more_lines(Ctx *ctx, Events *q)
{
	Clocks heads;
	int n = q->n_keys ? 2 * q->n_keys : 32;
	TRY(TEMP(ctx, q->key, n));
	q->n_keys = n;
	for (int i = 0; i < q->n_lines; i++)
		q->key[key_of(q, q->line[i].wait)] = i + 1;
	TRY(clocks_new(ctx, n / 2, &heads));
	for (int i = 0; i < q->heads.n; i++)
		clocks_set(&heads, q->heads.heap[i].id, q->heads.heap[i].time);
	q->heads = heads;
	return OK;
}

static Status
line_of(Ctx *ctx, Events *q, int64_t wait, int *out)
{
	int key = q->n_keys ? key_of(q, wait) : 0;
	if (!q->n_keys || (!q->key[key] && 2 * (q->n_lines + 1) > q->n_keys)) {
		TRY(more_lines(ctx, q));
		key = key_of(q, wait);
	}
	if (!q->key[key]) {
		TRY(GROW_TEMP(ctx, q->line, q->n_lines, q->room));
		q->line[q->n_lines] = (Line){ .wait = wait };
		q->key[key] = ++q->n_lines;
	}
	*out = q->key[key] - 1;
	return OK;
}

static Status
longer_ring(Ctx *ctx, Line *line)
{
	Event *ring;
	int room = line->room ? 2 * line->room : 8;
	TRY(TEMP(ctx, ring, room));
	for (int i = 0; i < line->n; i++)
		ring[i] = line->ring[(line->first + i) & (line->room - 1)];
	line->ring = ring;
	line->room = room;
	line->first = 0;
	return OK;
}

Status
events_add(Ctx *ctx, Events *q, int64_t now, int64_t wait, int id, int step)
{
	int at;
	TRY(line_of(ctx, q, wait, &at));
	Line *line = &q->line[at];
	if (line->n == line->room)
		TRY(longer_ring(ctx, line));
	line->ring[(line->first + line->n) & (line->room - 1)] = (Event){ now + wait, id, step };
	if (line->n++ == 0)
		clocks_set(&q->heads, at, now + wait);
	return OK;
}

Event
events_pop(Events *q)
{
	int at = q->heads.heap[0].id;
	Line *line = &q->line[at];
	Event event = line->ring[line->first];
	line->first = (line->first + 1) & (line->room - 1);
	if (--line->n > 0)
		clocks_set(&q->heads, at, line->ring[line->first].time);
	else
		clocks_pop(&q->heads);
	return event;
}

void
keys_add(Keys *q, int64_t key)
{
	int at = q->n++;
	for (; at > 0 && key < q->heap[(at - 1) / 2]; at = (at - 1) / 2)
		q->heap[at] = q->heap[(at - 1) / 2];
	q->heap[at] = key;
}

int64_t
keys_pop(Keys *q)
{
	int64_t first = q->heap[0], last = q->heap[--q->n];
	int at = 0;
	for (int next; (next = 2 * at + 1) < q->n; at = next) {
		if (next + 1 < q->n && q->heap[next + 1] < q->heap[next])
			next++;
		if (q->heap[next] >= last)
			break;
		q->heap[at] = q->heap[next];
	}
	q->heap[at] = last;
	return first;
}
