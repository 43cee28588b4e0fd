/* Where segments lie in blocks and in parts of a hybrid schedule, and where parts lie in blocks. */
#include "schedule/schedule.h"

/* Numerators stay within denominators, so that nothing overflows. */
void
sched_block_extent(const Schedule *sched, const Segment *s, Frac *begin, Frac *end)
{
	int64_t blocks = collective_blocks(sched->coll, sched->topo->n_ranks),
	    block = frac_floor_mul(s->offset, blocks);
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
