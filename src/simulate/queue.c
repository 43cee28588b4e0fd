#include "simulate/queue.h"
#include "base/array.h"
#include "base/heap.h"

Status
clocks_new(Ctx *ctx, int n, Clocks *out)
{
	*out = (Clocks){ .first_leaf = 1 };
	while (out->first_leaf < n)
		out->first_leaf *= 2;
	TRY(TEMP(ctx, out->node, 2 * (size_t)out->first_leaf));
	for (int i = 0; i < 2 * out->first_leaf; i++)
		out->node[i].time = INT64_MAX;
	for (int i = 0; i < out->first_leaf; i++)
		out->node[out->first_leaf + i].id = i;
	return OK;
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
	for (int i = 0; i < q->n_lines; i++)
		if (q->line[i].n > 0)
			clocks_set(&heads, i, clocks_time_of(&q->heads, i));
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
	int at = clocks_first(&q->heads);
	Line *line = &q->line[at];
	Event event = line->ring[line->first];
	line->first = (line->first + 1) & (line->room - 1);
	if (--line->n > 0)
		clocks_set(&q->heads, at, line->ring[line->first].time);
	else
		clocks_unset(&q->heads, at);
	return event;
}

#define EARLIER(q, a, b) ((a) < (b))

HEAP(keys_put, const Keys, int64_t, EARLIER, HEAP_UNMOVED)

void
keys_add(Keys *q, int64_t key)
{
	q->n++;
	keys_put(q, q->heap, q->n, q->n - 1, key);
}

int64_t
keys_pop(Keys *q)
{
	int64_t first = q->heap[0];
	q->n--;
	keys_put(q, q->heap, q->n, 0, q->heap[q->n]);
	return first;
}
