#include "tune/tuner.h"

#include <string.h>

struct search *
tuner_find(struct tuner *t, Collective coll, int64_t bytes)
{
	int class = 0;
	while (bytes > 1 && class < TUNER_CLASSES - 1) {
		bytes /= 2;
		class++;
	}
	return &t->search[coll][class];
}

/* The largest message of the class bounds the search, so that all its messages share one. */
static void
start(struct search *s, int64_t bytes)
{
	int64_t most = 1;
	while (most <= bytes)
		most *= 2;
	miad_start(&s->miad, most);
	s->began = true;
}

bool
tuner_begin(struct tuner *t, struct search *s, int64_t bytes, int64_t now, int64_t *chunk)
{
	if (!s->began)
		start(s, bytes);
	if (t->agrees == s) {
		miad_report(&s->miad, t->all);
		s->calls = 0;
		t->agrees = NULL;
	} else if (!s->miad.settled && s->calls == TUNER_CALLS) {
		t->agrees = s;
		t->mine = s->seconds;
		return false;
	}
	t->timed = s->miad.settled ? NULL : s;
	t->began = now;
	*chunk = s->miad.chunk;
	return true;
}

void
tuner_end(struct tuner *t, int64_t now)
{
	struct search *s = t->timed;
	double seconds = (double)(now - t->began) * 1e-9;
	if (!s)
		return;
	if (s->calls == 0 || seconds < s->seconds)
		s->seconds = seconds;
	s->calls++;
	t->timed = NULL;
}

void
tuner_take(struct tuner *t, const TunerChunks chunks)
{
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int k = 0; k < TUNER_CLASSES; k++)
			if (chunks[c][k] > 0)
				t->search[c][k] = (struct search){ .began = true, .miad = { .chunk = chunks[c][k],
				    .best = chunks[c][k], .trials = 1, .settled = true } };
}

void
tuner_give(const struct tuner *t, TunerChunks chunks)
{
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int k = 0; k < TUNER_CLASSES; k++)
			chunks[c][k] = t->search[c][k].miad.settled && t->search[c][k].miad.trials > 0
			    ? t->search[c][k].miad.chunk : 0;
}
