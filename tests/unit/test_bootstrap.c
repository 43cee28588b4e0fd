/* The bootstrap (runtime/bootstrap/bootstrap.h) with ranks as threads and as processes. Prints TAP. */
#include "ranks.h"

static int
leave(struct rank *r)
{
	bootstrap_leave(r->b, (uint64_t)r->number);
	return blinkSuccess;
}

static void
joins(void)
{
	static struct rank r[RANKS];
	for (int n = 1; n <= RANKS; n++) {
		blinkUniqueId_t id = new_id();
		job(r, &id, n, 20000 * MS, leave);
		ok(all_are(r, n, blinkSuccess), "%d ranks join and leave", n);
	}
	int64_t begin = now_ns();
	bool good = true;
	for (int i = 0; i < 200 && good; i++) {
		blinkUniqueId_t id = new_id();
		job(r, &id, 4, 20000 * MS, leave);
		good = all_are(r, 4, blinkSuccess);
	}
	ok(good, "200 jobs of 4 ranks, one after the other");
	printf("# %.2f ms each\n", (double)(now_ns() - begin) / 200e6);
}

static int
exchange(struct rank *r)
{
	static const size_t sizes[] = { 4, 0, 128, 65536, 1 };
	unsigned char *mine = malloc(65536), *all = malloc((size_t)r->n * 65536);
	int code = mine && all ? blinkSuccess : blinkOutOfMemory;
	for (size_t s = 0; s < 100 && code == blinkSuccess; s++) {
		size_t bytes = sizes[s % 5];
		memset(mine, r->number * 7 + (int)s, bytes);
		code = bootstrap_allgather(r->b, mine, bytes, all, now_ns() + 20000 * MS, &r->err);
		for (size_t i = 0; code == blinkSuccess && i < bytes * (size_t)r->n; i++)
			if (all[i] != (unsigned char)((int)(i / bytes) * 7 + (int)s))
				code = -1;
	}
	free(mine);
	free(all);
	bootstrap_leave(r->b, 0);
	return code;
}

static void
exchanges(void)
{
	static struct rank r[RANKS];
	blinkUniqueId_t id = new_id();
	job(r, &id, 8, 20000 * MS, exchange);
	ok(all_are(r, 8, blinkSuccess), "100 exchanges of 8 ranks, from 0 to 65536 bytes");
}

int
main(void)
{
	alarm(300);
	joins();
	exchanges();
	printf("1..%d\n", n_tests);
	return n_bad != 0;
}
