/* Servers and switches that have one form in a picture of a cluster become one spot, with their number.
 *
 * Two servers have one form if they have as many GPUs and the same links, of the same capacity and load, to the same
 * switches; then switches have one form if they have the same links to servers that do, and so on. So 20 servers on 8
 * rails are two spots, and no line of 160 crosses another. What differs stays apart: the server of a root, a slower
 * link. */
#include "base/hash.h"
#include "view/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
	uint64_t of;
	int spot;
};

static int
by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	return (x->spot > y->spot) - (x->spot < y->spot);
}

/* GB/s in kB/s: sums in another order are equal. */
static uint64_t
rounded(double value)
{
	return (uint64_t)(value * 1e6 + 0.5);
}

/* A cable, seen from one end: what it leads to, and what it carries away (0) and back (1). */
static uint64_t
hash_end(const Cable *cable, int other, bool back)
{
	uint64_t hash = hash64((uint64_t)other << 8 | (uint64_t)cable->class);
	for (int i = 0; i < 2; i++) {
		int d = back ? !i : i;
		hash = hash64(hash ^ rounded(cable->capacity[d]));
		hash = hash64(hash ^ rounded(cable->load[d]));
		hash = hash64(hash + (uint64_t)cable->tight[d]);
	}
	return hash;
}

/* Which side of a cut it is on, or in which part, unless its parts are of this server alone. */
static int
part_of(const Explained *e, const Spot *spot, int gpus)
{
	const Bound *bound = e->sched ? &e->sched->bound : NULL;
	int size = 0;
	if (!bound || !bound->part || (bound->kind != CERTIFICATE_CUT && bound->kind != CERTIFICATE_PARTITION))
		return 0;
	for (int r = 0; r < e->topo->n_ranks; r++)
		size += bound->part[r] == bound->part[spot->vertex];
	return bound->kind == CERTIFICATE_PARTITION && size <= gpus ? -2 : bound->part[spot->vertex];
}

/* What a spot is by itself. */
static Status
hash_spots(Ctx *ctx, const Explained *e, const Layout *out, uint64_t *self)
{
	int *gpus;
	TRY(TEMP(ctx, gpus, e->n_servers));
	for (int r = 0; r < e->topo->n_ranks; r++)
		gpus[e->server[r]]++;
	for (int p = 0; p < out->n_spots; p++) {
		const Spot *spot = &out->spot[p];
		int n = spot->is_server ? gpus[spot->server] : 0;
		self[p] = hash64((uint64_t)n << 1 | (uint64_t)spot->is_server);
		self[p] = hash64(self[p] + (uint64_t)(unsigned)part_of(e, spot, n));
	}
	return OK;
}

/* group[p]: the first spot that looks like p; servers, or the others. key: work space. */
static void
regroup(const Layout *out, const uint64_t *self, bool servers, struct key *key, int *group)
{
	for (int p = 0; p < out->n_spots; p++)
		key[p] = (struct key){ hash64(self[p]), p };
	for (int c = 0; c < out->n_cables; c++) {
		const Cable *cable = &out->cable[c];
		key[cable->a].of += hash_end(cable, group[cable->b], false);
		key[cable->b].of += hash_end(cable, group[cable->a], true);
	}
	qsort(key, (size_t)out->n_spots, sizeof *key, by_key);
	for (int i = 0, first = 0; i < out->n_spots; i++) {
		first = i > 0 && key[i].of == key[i - 1].of ? first : i;
		if (out->spot[key[i].spot].is_server == servers)
			group[key[i].spot] = key[first].spot;
	}
}

/* "s0-s19: 20 x 8 GPUs", "rail0-rail7"; where others lie between, "s0 and 19 more: 8 GPUs each". */
static Status
label_group(Ctx *ctx, Spot *spot, const char *last, bool in_row)
{
	char text[96];
	const char *colon = strchr(spot->label, ':');
	int n = colon ? (int)(colon - spot->label) : (int)strlen(spot->label);
	if (in_row)
		snprintf(text, sizeof text, "%.*s-%.*s", n, spot->label, (int)strcspn(last, ":"), last);
	else
		snprintf(text, sizeof text, "%.*s and %d more", n, spot->label, spot->n_same - 1);
	size_t at = strlen(text);
	if (colon && in_row)
		snprintf(text + at, sizeof text - at, ": %d x%s", spot->n_same, colon + 1);
	else if (colon)
		snprintf(text + at, sizeof text - at, "%s each", colon);
	spot->w = 12 + 7.0 * (double)strlen(text);
	return printable_line(ctx, text, &spot->label);
}

Status
layout_merge_same(Ctx *ctx, const Explained *e, Layout *out)
{
	enum { ROUNDS = 4 };
	struct key *key;
	uint64_t *self;
	int *group, *last, *place, n = 0;
	bool *in_row;
	TRY(TEMP_EACH(ctx, out->n_spots, key, self, group, last, place, in_row));
	TRY(hash_spots(ctx, e, out, self));
	for (int p = 0; p < out->n_spots; p++)
		group[p] = p;
	for (int round = 0; round < ROUNDS; round++)
		regroup(out, self, round == 0, key, group);
	for (int p = 0; p < out->n_spots; p++) {
		int g = group[p];
		in_row[g] = p == g || (in_row[g] && last[g] == p - 1);
		last[g] = p;
		out->spot[g].n_same += p != g;
	}
	for (int p = 0; p < out->n_spots; p++)
		if (out->spot[group[p]].n_same > 1 && group[p] == p)
			TRY(label_group(ctx, &out->spot[p], out->spot[last[p]].label, in_row[p]));
	for (int p = 0; p < out->n_spots; p++) {
		place[p] = group[p] == p ? n : place[group[p]];
		if (group[p] == p)
			out->spot[n++] = out->spot[p];
	}
	for (int v = 0; v < e->topo->n_vertices; v++)
		out->spot_of[v] = out->spot_of[v] < 0 ? -1 : place[out->spot_of[v]];
	out->n_spots = n;
	return OK;
}
