#include "simulate/queue.h"
#include "base/array.h"

Status
clocks_new(Ctx *ctx, int n, Clocks *out)
{
	*out = (Clocks){ .n = 0 };
	TRY(TEMP(ctx, out->heap, n));
	TRY(TEMP(ctx, out->place, n));
	TRY(TEMP(ctx, out->time, n));
	for (int i = 0; i < n; i++)
		out->place[i] = -1;
	return OK;
}

static bool
sooner(const Clocks *q, int a, int b)
{
	return q->time[a] < q->time[b] || (q->time[a] == q->time[b] && a < b);
}

static void
put(Clocks *q, int at, int id)
{
	q->heap[at] = id;
	q->place[id] = at;
}

static void
rise(Clocks *q, int at, int id)
{
	for (; at > 0 && sooner(q, id, q->heap[(at - 1) / 2]); at = (at - 1) / 2)
		put(q, at, q->heap[(at - 1) / 2]);
	put(q, at, id);
}

static void
sink(Clocks *q, int at, int id)
{
	for (int next; (next = 2 * at + 1) < q->n; at = next) {
		if (next + 1 < q->n && sooner(q, q->heap[next + 1], q->heap[next]))
			next++;
		if (!sooner(q, q->heap[next], id))
			break;
		put(q, at, q->heap[next]);
	}
	put(q, at, id);
}

void
clocks_set(Clocks *q, int id, int64_t time)
{
	int at = q->place[id];
	bool later = at >= 0 && time > q->time[id];
	q->time[id] = time;
	if (later)
		sink(q, at, id);
	else
		rise(q, at >= 0 ? at : q->n++, id);
}

int
clocks_pop(Clocks *q)
{
	int id = q->heap[0];
	q->place[id] = -1;
	if (--q->n > 0)
		sink(q, 0, q->heap[q->n]);
	return id;
}

static bool
before(const Event *a, const Event *b)
{
	return a->time < b->time || (a->time == b->time && a->id < b->id);
}

Status
events_add(Ctx *ctx, Events *q, Event event)
{
	TRY(GROW_TEMP(ctx, q->heap, q->n, q->room));
	int at = q->n++;
	for (; at > 0 && before(&event, &q->heap[(at - 1) / 2]); at = (at - 1) / 2)
		q->heap[at] = q->heap[(at - 1) / 2];
	q->heap[at] = event;
	return OK;
}

Event
events_pop(Events *q)
{
	Event first = q->heap[0], last = q->heap[--q->n];
	int at = 0;
	for (int next; (next = 2 * at + 1) < q->n; at = next) {
		if (next + 1 < q->n && before(&q->heap[next + 1], &q->heap[next]))
			next++;
		if (!before(&q->heap[next], &last))
			break;
		q->heap[at] = q->heap[next];
	}
	q->heap[at] = last;
	return first;
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
