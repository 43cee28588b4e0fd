/* How a message is divided among the parts of a hybrid schedule (Blink 3.4, eq. 8), for any number of parts.
 *
 * Part i carries r_i bytes/s, but starts only s_i after the others may. All end together, at the time t that solves
 *
 * 	sum over i of max(0, r_i (t - s_i)) = M
 *
 * as water fills a vessel with steps: the part with the least setup begins, and each further part starts once the
 * level t is above its setup. With R the rates of all parts that have started, R' of those up to part i, and W, W'
 * likewise the sums of r_j s_j, that is
 *
 * 	t = (M + W) / R		part i ends at R'/R M + (R'/R W - W')
 *
 * and the next part, of setup s, starts at M = R s - W. For two parts, of which the first has no setup, that is eq.
 * 8:
 *
 * 	NVLink 150 GB/s, PCIe 6 GB/s and 2200 us:   PCIe starts at 150e9 * 0.0022 = 330 MB; of a larger message,
 * 	NVLink carries 150/156 M + 6/156 * 150e9 * 0.0022 bytes, 974.2 MB of 1 GB, and both end after 6.495 ms.
 *
 * M is whole, so that only the floor of (R'/R W - W') times the denominator of R'/R counts, and a division of
 * integers gives the byte, or the element, in which a part ends: the same number here, in libblink and in generated
 * code. Rates are the shares of the schedule times what all parts achieve together: with shares m_i / Q and the rate
 * A of all, that is
 *
 * 	floor(A/Q (m' sum(m s) - m sum'(m s)))	m, m': sums of m_i of the parts that have started, and up to i
 *
 * over the common divisor of m and m'. Such products may need more than 128 bits. */
#include "schedule/schedule.h"


/* ---- whole numbers of up to 384 bits ---- */

__extension__ typedef unsigned __int128 Product;

enum { BIG_WORDS = 6 };

typedef struct {
	uint64_t word[BIG_WORDS];	/* the least first */
} Big;

static Big
big_mul(Big a, int64_t times)
{
	Product carry = 0;
	for (int i = 0; i < BIG_WORDS; i++) {
		carry += (Product)a.word[i] * (uint64_t)times;
		a.word[i] = (uint64_t)carry;
		carry >>= 64;
	}
	return a;
}

static Big
big_add(Big a, Big b)
{
	Product carry = 0;
	for (int i = 0; i < BIG_WORDS; i++) {
		carry += (Product)a.word[i] + b.word[i];
		a.word[i] = (uint64_t)carry;
		carry >>= 64;
	}
	return a;
}

static int
big_cmp(Big a, Big b)
{
	for (int i = BIG_WORDS - 1; i >= 0; i--)
		if (a.word[i] != b.word[i])
			return a.word[i] > b.word[i] ? 1 : -1;
	return 0;
}

/* a - b, for a >= b. */
static Big
big_sub(Big a, Big b)
{
	uint64_t borrow = 0;
	for (int i = 0; i < BIG_WORDS; i++) {
		Product less = (Product)b.word[i] + borrow;
		borrow = a.word[i] < less;
		a.word[i] -= (uint64_t)less;
	}
	return a;
}

/* *rest is set where something is left over. */
static Big
big_div(Big a, int64_t by, bool *rest)
{
	Product left = 0;
	for (int i = BIG_WORDS - 1; i >= 0; i--) {
		left = left << 64 | a.word[i];
		a.word[i] = (uint64_t)(left / (uint64_t)by);
		left %= (uint64_t)by;
	}
	*rest = *rest || left > 0;
	return a;
}

/* ---- shares ---- */

/* What is in so far. */
struct level {
	int64_t share;		/* sum of m_i */
	Big wait;		/* sum of m_i s_i */
};

struct division {
	int n;
	int64_t share[N_LINK_CLASSES];	/* m_i */
	int64_t setup[N_LINK_CLASSES];	/* ns */
	int64_t all;		/* Q, the sum of all m_i */
	Frac rate;		/* A, bytes/s */
	int order[N_LINK_CLASSES];	/* parts by setup; of equals the first comes first */
};

static void
let_in(const struct division *d, int part, struct level *level)
{
	level->share += d->share[part];
	level->wait = big_add(level->wait, big_mul((Big){ { (uint64_t)d->share[part] } }, d->setup[part]));
}

/* floor(A/Q (a - b)), of times in ns; false: it needs more than 124 bits. */
static bool
floor_of(const struct division *d, Big a, Big b, Wide *out)
{
	bool below = big_cmp(a, b) < 0, rest = false;
	Big x = big_mul(below ? big_sub(b, a) : big_sub(a, b), (int64_t)d->rate.num);
	x = big_div(big_div(big_div(x, d->rate.den, &rest), d->all, &rest), NS_PER_S, &rest);
	*out = (Wide)x.word[1] << 64 | x.word[0];
	for (int i = 2; i < BIG_WORDS; i++)
		if (x.word[i])
			return false;
	if (x.word[1] >> 60)
		return false;
	*out = below ? -*out - rest : *out;
	return true;
}

/* The least whole M at which a part starts: A/Q (m s - sum(m s)), rounded up. */
static bool
comes_in(const struct division *d, const struct level *level, int part, int64_t *from)
{
	Wide down;
	bool fits = floor_of(d, level->wait, big_mul((Big){ { (uint64_t)level->share } }, d->setup[part]), &down);
	*from = fits ? (int64_t)-down : 0;
	return fits && -down <= INT64_MAX;
}

static bool
end_of(const struct division *d, const struct level *all, const struct level *up_to, int64_t from, PartEnd *out)
{
	int64_t common = gcd64(up_to->share, all->share);
	*out = (PartEnd){ .from = from, .num = up_to->share / common, .den = all->share / common };
	return floor_of(d, big_mul(all->wait, out->num), big_mul(up_to->wait, out->den), &out->add);
}

/* One stage: the first `n` parts of the order are in. end: of all parts but the last. */
static bool
fill_stage(const struct division *d, int n, int64_t from, PartEnd *end)
{
	struct level all = { 0 }, up_to = { 0 };
	for (int k = 0; k < n; k++)
		let_in(d, d->order[k], &all);
	for (int i = 0; i + 1 < d->n; i++) {
		for (int k = 0; k < n; k++)
			if (d->order[k] == i)
				let_in(d, i, &up_to);
		if (!end_of(d, &all, &up_to, from, &end[i]))
			return false;
	}
	return true;
}

/* Shares as whole numbers, over the least common denominator of where parts end. */
static bool
make_division(const Schedule *sched, struct division *d)
{
	*d = (struct division){ .n = sched->n_parts, .all = 1, .rate = sched->achieved };
	if (!frac_fits(d->rate))
		return false;
	for (int i = 0; i < d->n; i++) {
		Wide all = (Wide)d->all * (sched->part[i].end.den / gcd64(d->all, sched->part[i].end.den));
		if (all > INT64_MAX)
			return false;
		d->all = (int64_t)all;
	}
	for (int i = 0, k; i < d->n; i++) {
		const Part *part = &sched->part[i];
		d->share[i] = (int64_t)(part->end.num * (d->all / part->end.den)
		    - part->begin.num * (d->all / part->begin.den));
		d->setup[i] = part->setup;
		for (k = i; k > 0 && d->setup[d->order[k - 1]] > d->setup[i]; k--)
			d->order[k] = d->order[k - 1];
		d->order[k] = i;
	}
	return true;
}

Status
sched_split(Ctx *ctx, const char *label, const Schedule *sched, PartEnd **out)
{
	struct division d;
	struct level level = { 0 };
	int n = sched->n_parts;
	PartEnd *split;
	bool fits = make_division(sched, &d);
	TRY(NEW(ctx, split, n * (n - 1)));
	for (int k = 0; k < n && fits; k++) {
		int64_t from = 0;
		fits = k == 0 || comes_in(&d, &level, d.order[k], &from);
		let_in(&d, d.order[k], &level);
		fits = fits && fill_stage(&d, k + 1, from, &split[k * (n - 1)]);
	}
	if (!fits)
		return fail(ctx, LIMIT, "%s: parts: their division of a message needs more than 64 bits", label);
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
	Wide unit = (Wide)1 << 62;
	*high = (int64_t)(end->add / unit - (end->add % unit < 0));
	*low = (int64_t)(end->add - *high * unit);
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
