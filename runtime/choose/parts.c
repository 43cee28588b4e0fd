#include "choose/parts.h"
#include "schedule/schedule.h"

Status
part_ends(Ctx *ctx, const PartEnd *end, int n_parts, struct blink_part_end **out)
{
	int n = n_parts * (n_parts - 1);
	TRY(NEW(ctx, *out, n));
	for (int i = 0; i < n; i++) {
		int64_t high, low;
		part_end_add(&end[i], &high, &low);
		(*out)[i] = (struct blink_part_end){ end[i].from, end[i].num, end[i].den, high, low };
	}
	return OK;
}
