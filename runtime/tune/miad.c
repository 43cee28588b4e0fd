#include "tune/miad.h"

/* Faster by so much is faster. */
#define FASTER 0.98

void
miad_start(struct miad *m, int64_t most)
{
	*m = (struct miad){ .chunk = MIAD_LEAST, .most = most < MIAD_MOST ? most : MIAD_MOST, .best = MIAD_LEAST };
	m->settled = most <= 2 * MIAD_LEAST;
}

static void
settle(struct miad *m)
{
	m->chunk = m->best;
	m->settled = true;
}

/* The last doubling did not help, or there is none: what lies between the best size and the last. */
static void
lower(struct miad *m)
{
	if (!m->lowers)
		m->step = m->best / 4 / 4096 * 4096;
	m->lowers = true;
	m->chunk -= m->step;
	if (m->step == 0 || m->chunk <= m->best / 2 || m->chunk == m->best)
		settle(m);
}

void
miad_report(struct miad *m, double seconds)
{
	bool faster = m->trials == 0 || seconds < FASTER * m->best_seconds;
	m->trials++;
	if (m->settled)
		return;
	if (faster) {
		m->best = m->chunk;
		m->best_seconds = seconds;
	}
	if (!m->lowers && faster && 2 * m->chunk <= m->most)
		m->chunk *= 2;
	else if (!m->lowers || faster)
		lower(m);
	else
		settle(m);
}
