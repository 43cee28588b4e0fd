#include "base/hash.h"
#include "schedule/schedule.h"

static void
take(uint64_t *h, int64_t n)
{
	*h = hash64(*h ^ (uint64_t)n);
}

static void
take_lanes(uint64_t *h, const RankLane *lane, int n)
{
	take(h, n);
	for (int i = 0; i < n; i++) {
		take(h, lane[i].rank);
		take(h, lane[i].lane);
	}
}

static void
take_extent(uint64_t *h, const Extent *x)
{
	const int64_t member[] = { x->send_block, x->recv_block, x->part, (int64_t)x->begin.num,
	    (int64_t)x->begin.den, (int64_t)x->end.num, (int64_t)x->end.den };
	for (size_t i = 0; i < sizeof member / sizeof *member; i++)
		take(h, member[i]);
}

uint64_t
rank_program_fingerprint(const RankProgram *prog)
{
	uint64_t h = 0;
	take(&h, (int64_t)prog->coll);
	take(&h, prog->root);
	take(&h, prog->n_ranks);
	take(&h, prog->rank);
	take(&h, prog->n_tasks);
	for (int t = 0; t < prog->n_tasks; t++) {
		const RankTask *task = &prog->task[t];
		take_extent(&h, &prog->extent[task->extent]);
		take(&h, task->own);
		take(&h, task->output);
		take(&h, task->complete);
		take_lanes(&h, task->from, task->n_from);
		take_lanes(&h, task->to, task->n_to);
	}
	return h;
}
