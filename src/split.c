/* How a message is divided between the parts of a hybrid schedule (Blink 3.4, eq. 8), for any number of parts.
 *
 * Part i carries r_i bytes/s, but starts only s_i after the others may. All end together, at the time t that solves
 *
 *	sum over i of max(0, r_i (t - s_i)) = M
 *
 * as water fills a vessel of steps: the part with the least setup begins, and each further one comes in once the level t is
 * above its setup. With the parts that are in, of rates R together and R' up to and with part i, and W, W' likewise the sums
 * of r_j s_j, that is
 *
 *	t = (M + W) / R		part i ends at R'/R M + (R'/R W - W')
 *
 * and the next part, of setup s, comes in at M = R s - W. For two parts, of which the first has no setup, that is eq. 8:
 *
 *	NVLink 150 GB/s, PCIe 6 GB/s and 2200 us:   PCIe comes in at 150e9 * 0.0022 = 330 MB; of a larger message NVLink gets
 *	150/156 M + 6/156 * 150e9 * 0.0022 bytes, so of 1 GB 974.2 MB, which both take 6.495 ms for.
 *
 * M is whole, so that only the floor of (R'/R W - W') times the denominator of R'/R counts, and a division of integers gives
 * the byte, or the element, in which a part ends: the same here, in libblink and in generated code. */
#include "passes.h"

/* What is in so far: all parts of `order` before `n`. */
struct level {
	Frac rate, wait;	/* sums of r_j and of r_j s_j: bytes/s, bytes */
};

static bool
wait_of(const Part *part, Frac *out)
{
	Frac seconds;
	return frac_make(part->setup, 1000000000, &seconds) && frac_mul(part->rate, seconds, out);
}

static bool
let_in(struct level *level, const Part *part)
{
	Frac wait;
	return wait_of(part, &wait) && frac_add(level->rate, part->rate, &level->rate) && frac_add(level->wait, wait, &level->wait);
}

static Wide
floor_div(Wide a, Wide b)
{
	return a / b - (a % b < 0);
}

/* The least whole M at which a part comes in. */
static bool
comes_in(const struct level *level, const Part *part, int64_t *from)
{
	Frac seconds, at;
	if (!frac_make(part->setup, 1000000000, &seconds) || !frac_mul(level->rate, seconds, &at) || !frac_sub(at, level->wait, &at))
		return false;
	Wide least = -floor_div(-(Wide)at.num, at.den);
	*from = (int64_t)least;
	return least <= INT64_MAX;
}

static bool
end_of(const struct level *all, const struct level *up_to, int64_t from, PartEnd *out)
{
	Frac share, shift;
	if (!frac_div(up_to->rate, all->rate, &share) || !frac_mul(share, all->wait, &shift) || !frac_sub(shift, up_to->wait, &shift))
		return false;
	*out = (PartEnd){ from, share.num, share.den, floor_div((Wide)shift.num * share.den, shift.den) };
	return out->add >> 124 == 0 || out->add >> 124 == -1;
}

/* One stage: the first `n` parts of `order` are in. end: of all parts but the last. */
static bool
fill_stage(const Schedule *sched, const int *order, int n, int64_t from, PartEnd *end)
{
	struct level all = { FRAC_ZERO, FRAC_ZERO }, up_to = all;
	for (int k = 0; k < n; k++)
		if (!let_in(&all, &sched->part[order[k]]))
			return false;
	for (int i = 0; i + 1 < sched->n_parts; i++) {
		for (int k = 0; k < n; k++)
			if (order[k] == i && !let_in(&up_to, &sched->part[i]))
				return false;
		if (!end_of(&all, &up_to, from, &end[i]))
			return false;
	}
	return true;
}

Status
sched_split(Ctx *ctx, const char *label, const Schedule *sched, PartEnd **out)
{
	struct level level = { FRAC_ZERO, FRAC_ZERO };
	int n = sched->n_parts, order[N_LINK_CLASSES];
	PartEnd *split;
	TRY(NEW(ctx, split, n * (n - 1)));
	/* By setup; of equals the first comes first. */
	for (int i = 0; i < n; i++) {
		int k = i;
		for (; k > 0 && sched->part[order[k - 1]].setup > sched->part[i].setup; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	for (int k = 0; k < n; k++) {
		int64_t from = 0;
		if ((k > 0 && !comes_in(&level, &sched->part[order[k]], &from)) || !let_in(&level, &sched->part[order[k]])
		    || !fill_stage(sched, order, k + 1, from, &split[k * (n - 1)]))
			return fail(ctx, LIMIT, "%s: parts: their division of a message needs more than 64 bits", label);
	}
	*out = split;
	return OK;
}

void
split_message(const PartEnd *split, int n_parts, int64_t m, int64_t *end)
{
	int stage = 0;
	while (stage + 1 < n_parts && split[(stage + 1) * (n_parts - 1)].from <= m)
		stage++;
	for (int i = 0; i + 1 < n_parts; i++) {
		const PartEnd *e = &split[stage * (n_parts - 1) + i];
		end[i] = (int64_t)(((Wide)e->num * m + e->add) / e->den);
	}
	end[n_parts - 1] = m;
}

void
part_end_add(const PartEnd *end, int64_t *high, int64_t *low)
{
	*high = (int64_t)floor_div(end->add, (Wide)1 << 62);
	*low = (int64_t)(end->add - (Wide)*high * ((Wide)1 << 62));
}

/* The level at which what is in has all of the message, from part to part until the next one's setup lies above it. */
double
split_seconds(const Schedule *sched, int64_t m)
{
	double rate = 0, wait = 0, level = 0, after = -1;
	if (!sched->n_parts)
		return (double)m / frac_double(sched->achieved);
	for (;;) {
		double next = -1;
		for (int i = 0; i < sched->n_parts; i++) {
			double setup = (double)sched->part[i].setup / 1e9;
			if (setup > after && (next < 0 || setup < next))
				next = setup;
		}
		if (next < 0 || (rate > 0 && next >= level))
			return level;
		for (int i = 0; i < sched->n_parts; i++) {
			if ((double)sched->part[i].setup / 1e9 != next)
				continue;
			rate += frac_double(sched->part[i].rate);
			wait += frac_double(sched->part[i].rate) * next;
		}
		after = next;
		level = ((double)m + wait) / rate;
	}
}
