/* Rings (model/rank_program.h): where in a publisher's memory its value of a tree lies depends on how many trees before
 * it published in. Up a tree all ranks do so but the top; down it those with children. How many these were follows from
 * how many trees began at each server, and had each number of leader. Sums of these over many servers or numbers are
 * those of a few ranges of a power of two (Fenwick 1994), so that 65536 ranks take a second, not minutes. */
#include "choose/built_in_trees.h"

enum { FEW = 4 };			/* counts that are added one by one */

static Status
sums_new(Ctx *ctx, int n, struct sums *out)
{
	out->n = n;
	return TEMP(ctx, out->sum, n + 1);
}

static void
sums_count(struct sums *s, int i)
{
	for (i++; i <= s->n; i += i & -i)
		s->sum[i]++;
}

/* Of the first n counts. */
static int
sums_below(const struct sums *s, int n)
{
	int sum = 0;
	for (; n > 0; n -= n & -n)
		sum += s->sum[n];
	return sum;
}

/* Of `length` counts up to that of `last`, around in a circle of `size` counts from `begin` on, of which only those
 * there are count. */
static int
sums_around(const struct sums *s, int begin, int size, int last, int length)
{
	int end = begin + size < s->n ? begin + size : s->n, first = last - length + 1;
	int upto = begin + last + 1 < end ? begin + last + 1 : end, from = begin + first < end ? begin + first : end;
	if (first >= 0)
		return sums_below(s, upto) - sums_below(s, from);
	from = begin + first + size < end ? begin + first + size : end;
	return sums_below(s, upto) - sums_below(s, begin) + sums_below(s, end) - sums_below(s, from);
}

Status
rings_new(struct maker *m)
{
	TRY(TEMP(m->ctx, m->n_top, m->n));
	TRY(TEMP(m->ctx, m->n_first, m->n_servers));
	TRY(TEMP(m->ctx, m->n_which, m->n));
	TRY(sums_new(m->ctx, m->n_servers, &m->sum_first));
	return sums_new(m->ctx, m->n, &m->sum_which);
}

void
rings_count(struct maker *m, const struct tree *t)
{
	m->n_trees++;
	m->n_top[t->top]++;
	m->n_first[t->first]++;
	m->n_which[t->which]++;
	sums_count(&m->sum_first, t->first);
	sums_count(&m->sum_which, t->which);
}

/* Is the collective's root above the leader of this server? */
static bool
has_root_above(const struct maker *m, int q)
{
	int root = m->prog->root;
	return root >= 0 && !m->root_leads && m->server[root] == q && size_of(m, q) > 1;
}

/* Trees so far in which the rank leads its server: leader_of, of all `which` at once. */
static int
n_led(const struct maker *m, int rank)
{
	int q = m->server[rank], i = m->index[rank], period = size_of(m, q), root = m->prog->root, n = 0;
	if (root >= 0 && m->root_leads && m->server[root] == q)
		return rank == root ? m->n_trees : 0;
	if (has_root_above(m, q)) {
		i = (i + period - m->index[root] - 1) % period;
		period--;
	}
	for (; i < m->largest; i += period)
		n += m->n_which[i];
	return n;
}

/* Trees so far in which the only rank of a server has children: all but those in which the server is at one of the last
 * places. */
static int
n_inner_alone(const struct maker *m, int q)
{
	int servers = m->n_servers, first = (servers - 2 + m->far) / m->far, n = 0;
	if (servers - first > FEW)
		n = sums_around(&m->sum_first, 0, servers, q - first + (q < first ? servers : 0), servers - first);
	for (int place = first; place < servers && servers - first <= FEW; place++)
		n += m->n_first[q - place + (q < place ? servers : 0)];
	return m->n_trees - n;
}

/* Trees so far that one of `many` ranks leads: this one, or one of those before it in its server. */
static int
n_led_by_many(const struct maker *m, int rank, int many)
{
	int q = m->server[rank], at = m->index[rank], size = size_of(m, q), root = m->prog->root, n = 0;
	if (root >= 0 && m->server[root] == q)
		return (at - m->index[root] + size) % size < many ? m->n_trees : 0;
	for (int begin = 0; begin < m->largest; begin += size)
		n += sums_around(&m->sum_which, begin, size, at, many);
	return n;
}

/* Trees so far in which it has children. A rank alone below what is above leads in all of them, and has none where its
 * server is at one of the last places. In other servers the leader has some, and the i-th rank after it as far as the
 * heap goes. */
static int
n_inner(const struct maker *m, int rank)
{
	int q = m->server[rank], size = size_of(m, q), n = 0, many = 1 + (size - 2) / m->near;
	bool above = has_root_above(m, q);
	if (above && rank == m->prog->root)
		return m->n_trees;
	if (size - above == 1)
		return n_inner_alone(m, q);
	if (many > FEW && !above)
		return n_led_by_many(m, rank, many);
	for (int i = 0; (int64_t)i * m->near + 1 < size; i++)
		n += n_led(m, member_at(m, rank, size - i));
	return n;
}

int
rings_of(const struct maker *m, int rank)
{
	return (m->up ? m->n_trees - m->n_top[rank] : 0) + (m->down ? n_inner(m, rank) : 0);
}
