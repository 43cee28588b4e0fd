/* The division of a message between parts (split.c) against every division that there is, and libblink's against the
 * compiler's. */
#include "api/schedule.h"
#include "random.h"
#include "schedule/schedule.h"

enum { PARTS = 3 };

/* Seconds that a division takes: the last part that carries anything. */
static double
cost(const Schedule *sched, const int64_t *bytes)
{
	double last = 0;
	for (int i = 0; i < sched->n_parts; i++) {
		double end = (double)sched->part[i].setup / 1e9 + (double)bytes[i] / frac_double(sched->part[i].rate);
		last = bytes[i] > 0 && end > last ? end : last;
	}
	return last;
}

static double
best_of_all(const Schedule *sched, int64_t m)
{
	double best = -1;
	for (int64_t a = 0; a <= m; a++) {
		for (int64_t b = 0; a + b <= m; b++) {
			double now = cost(sched, (int64_t[]){ a, b, m - a - b });
			best = best < 0 || now < best ? now : best;
		}
	}
	return best;
}

/* Shares of three whole numbers; a rate of all, bytes/s, up to 120 * most; setups in units of `unit` ns. */
static void
random_parts(Schedule *sched, int64_t most, int64_t unit)
{
	int share[PARTS], all = 0;
	for (int i = 0; i < PARTS; i++)
		all += share[i] = 1 + below(40);
	frac_make((Wide)all * (1 + below((int)most)), 1 + below(3), &sched->achieved);
	for (int i = 0, at = 0; i < PARTS; i++) {
		Part *part = &sched->part[i];
		*part = (Part){ .classes = 1u << i, .setup = below(4) ? below(40) * unit : 0 };
		frac_make(at, all, &part->begin);
		frac_make(at += share[i], all, &part->end);
		frac_make((Wide)sched->achieved.num * share[i], (Wide)sched->achieved.den * all, &part->rate);
	}
}

/* No division is faster than split_seconds says, which all parts together take; rounding to bytes costs less than a
 * byte of each. */
static bool
fills_as_water(const Schedule *sched, const PartEnd *split, int64_t m)
{
	int64_t end[PARTS], bytes[PARTS];
	double level = split_seconds(sched, m), slowest = 0;
	split_message(split, PARTS, m, end);
	for (int i = 0; i < PARTS; i++) {
		bytes[i] = end[i] - (i ? end[i - 1] : 0);
		double byte = 1 / frac_double(sched->part[i].rate);
		slowest = byte > slowest ? byte : slowest;
		if (bytes[i] < 0)
			return false;
	}
	double mine = cost(sched, bytes), best = best_of_all(sched, m);
	return end[PARTS - 1] == m && best >= level - 1e-9 && mine <= level + slowest + 1e-9;
}

static int
test_water(void)
{
	Part part[PARTS];
	Schedule sched = { .n_parts = PARTS, .part = part };
	bool good = true;
	int all_in = 0;
	for (int i = 0; i < 300 && good; i++) {
		Ctx ctx;
		PartEnd *split;
		ctx_init(&ctx);
		random_parts(&sched, 1, 25000000);
		good = sched_split(&ctx, "test", &sched, &split) == OK;
		for (int64_t m = 1; m <= 60 && good; m += 1 + below(7)) {
			good = fills_as_water(&sched, split, m);
			all_in += m >= split[2 * (PARTS - 1)].from;
			if (!good)
				printf("# case %d, %lld bytes\n", i, (long long)m);
		}
		ctx_free(&ctx);
	}
	return report(!good || all_in < 100, "three parts: no division is faster");
}

/* Numbers as large as they come: the same in the compiler's 128 bits and from the table of a program. */
static int
test_table(void)
{
	Part part[PARTS];
	Schedule sched = { .n_parts = PARTS, .part = part };
	bool good = true;
	int made = 0;
	for (int i = 0; i < 2000 && good; i++) {
		Ctx ctx;
		PartEnd *split;
		struct blink_part_end row[PARTS * (PARTS - 1)];
		struct blink_program program = {
			.collective = below(N_COLLECTIVES), .n_ranks = 1 + below(9), .n_parts = PARTS, .part_end = row
		};
		ctx_init(&ctx);
		random_parts(&sched, 2000000000, 1 + below(25000000));
		bool fits = sched_split(&ctx, "test", &sched, &split) == OK;
		made += fits;
		for (int k = 0; k < PARTS * (PARTS - 1) && fits; k++) {
			row[k] = (struct blink_part_end){
				.from = split[k].from, .num = split[k].num, .den = split[k].den
			};
			part_end_add(&split[k], &row[k].add_high, &row[k].add_low);
		}
		for (int k = 0; k < 20 && fits && good; k++) {
			int64_t end[PARTS], element[BLINK_PARTS_MAX], size = INT64_C(1) << below(4);
			int64_t unit = size * blink_message_blocks(&program);
			int64_t count = k < 4 ? split[PARTS - 1 + (k & 2)].from / unit + (k & 1)
					      : (int64_t)below(1 << 30) << below(24);
			split_message(split, PARTS, count * unit, end);
			blink_part_ends(&program, count, size, element);
			for (int p = 0; p < PARTS; p++)
				good = good && element[p] == end[p] / unit;
		}
		ctx_free(&ctx);
	}
	return report(!good || made < 2000, "libblink divides as the compiler does");
}

int
main(void)
{
	int wrong = test_water();
	return test_table() || wrong;
}
