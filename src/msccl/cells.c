#include "msccl/cells.h"

Status
cells_make(Ctx *ctx, Cells *cells, int64_t n_cells)
{
	TRY(TEMP(ctx, cells->cell, n_cells));
	for (int64_t c = 0; c < n_cells; c++)
		cells->cell[c].wrote.actor = -1;
	return OK;
}

static bool
is_before(const Access *access, const Access *now, const int *clock)
{
	return access->actor < 0 || clock[access->actor] >= access->time
	    || (access->actor == now->actor && access->step == now->step);
}

Status
cells_read(Ctx *ctx, Cells *cells, int64_t at, Access now, const int *after, Access *other)
{
	Cell *cell = &cells->cell[at];
	Access *read = cell->reads;
	other->actor = -1;
	if (!is_before(&cell->wrote, &now, after))
		*other = cell->wrote;
	while (read && read->actor != now.actor)
		read = read->next;
	if (!read) {
		read = cells->unused;
		if (read)
			cells->unused = read->next;
		else
			TRY(TEMP(ctx, read, 1));
		now.next = cell->reads;
		cell->reads = read;
	} else {
		now.next = read->next;
	}
	*read = now;
	return OK;
}

void
cells_write(Cells *cells, int64_t at, Access now, const int *after, const int *after_reads, Access *other, bool *wrote)
{
	Cell *cell = &cells->cell[at];
	other->actor = -1;
	*wrote = !is_before(&cell->wrote, &now, after);
	if (*wrote)
		*other = cell->wrote;
	while (cell->reads) {
		Access *read = cell->reads;
		if (other->actor < 0 && !is_before(read, &now, after_reads))
			*other = *read;
		cell->reads = read->next;
		read->next = cells->unused;
		cells->unused = read;
	}
	cell->wrote = now;
}
