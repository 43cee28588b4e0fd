/* Where segments lie in blocks and in parts of a hybrid schedule, and where parts lie in blocks. */
#include "schedule/schedule.h"

#include <stdlib.h>

/* Numerators stay within denominators, so that nothing overflows. */
void
sched_block_extent(const Schedule *sched, const Segment *s, Frac *begin, Frac *end)
{
	int64_t blocks = collective_blocks(sched->coll, sched->topo->n_ranks), block = sched_segment_block(sched, s);
	Frac last = FRAC_ONE;
	frac_add(s->offset, s->length, &last);
	frac_make((Wide)s->offset.num * blocks - (Wide)block * s->offset.den, s->offset.den, begin);
	frac_make((Wide)last.num * blocks - (Wide)block * last.den, last.den, end);
}

void
sched_part_spans(const Schedule *sched, Part *part)
{
	Frac begin, end;
	for (int i = 0; i < sched->n_parts; i++)
		part[i].begin = part[i].end = FRAC_ZERO;
	for (int t = 0; t < sched->n_segments && sched->n_parts; t++) {
		Frac *last = &part[sched->segment[t].part].end;
		sched_block_extent(sched, &sched->segment[t], &begin, &end);
		*last = frac_cmp(end, *last) > 0 ? end : *last;
	}
	for (int i = 1; i < sched->n_parts; i++)
		part[i].begin = part[i - 1].end;
}

bool
sched_extent(const Schedule *sched, const Segment *segment, Frac *begin, Frac *end)
{
	sched_block_extent(sched, segment, begin, end);
	if (!sched->n_parts)
		return true;
	const Part *part = &sched->part[segment->part];
	Frac share;
	return frac_sub(part->end, part->begin, &share) && frac_sub(*begin, part->begin, begin)
	    && frac_div(*begin, share, begin)
	    && frac_sub(*end, part->begin, end) && frac_div(*end, share, end);
}

int64_t
sched_segment_block(const Schedule *sched, const Segment *seg)
{
	return frac_floor_mul(seg->offset, collective_blocks(sched->coll, sched->topo->n_ranks));
}

Status
sched_segment_extent(Ctx *ctx, const Schedule *sched, const Segment *seg, Extent *out)
{
	int n = sched->topo->n_ranks;
	int64_t block = sched_segment_block(sched, seg);
	if (!sched_extent(sched, seg, &out->begin, &out->end))
		return fail(ctx, LIMIT, "%s: a segment needs more than 64 bits", sched->topo->name);
	out->part = seg->part;
	/* A rank sends its own block of a gather or allgather, and receives its own of a scatter or reducescatter. */
	bool send_whole = sched->coll == SCATTER || sched->coll == REDUCESCATTER;
	bool recv_whole = sched->coll == GATHER || sched->coll == ALLGATHER;
	out->send_block = send_whole ? block : sched->coll == ALLTOALL ? block % n : 0;
	out->recv_block = recv_whole ? block : sched->coll == ALLTOALL ? block / n : 0;
	return OK;
}

static int
by_offset(const void *a, const void *b)
{
	const Segment *const *x = a, *const *y = b;
	return frac_cmp((*x)->offset, (*y)->offset);
}

/* Trees that serve different ranks may read and write the same segment; the blocks that ranks i and j exchange
 * lie at the same place of both their buffers. */
Status
sched_overlaps(Ctx *ctx, const Schedule *sched, bool *out)
{
	const Segment **by;
	bool overlap = sched->coll == ALLTOALL && sched->topo->n_ranks > 1;
	/* Images tile the buffer. */
	if (collective_reduces(sched->coll) && !sched->symmetry) {
		TRY(TEMP(ctx, by, sched->n_segments));
		for (int s = 0; s < sched->n_segments; s++)
			by[s] = &sched->segment[s];
		qsort(by, (size_t)sched->n_segments, sizeof *by, by_offset);
		for (int s = 1; s < sched->n_segments && !overlap; s++) {
			Frac end = FRAC_ONE;
			frac_add(by[s - 1]->offset, by[s - 1]->length, &end);
			overlap = frac_cmp(by[s]->offset, end) < 0;
		}
	}
	*out = overlap;
	return OK;
}
