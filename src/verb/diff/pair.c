/* A pair of files is read and compared by a worker. */
#include "base/file.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "verb/diff/pair.h"

#include <stdio.h>
#include <string.h>

/* ---- one file ---- */

struct loaded {
	Ctx ctx;		/* with the error of this file */
	Text in;
	Status status;
	Schedule *sched;
	Index *index;
	int depth;
};

static Status
read_valid(struct loaded *file, const char *path)
{
	Ctx *ctx = &file->ctx;
	if (index_file_name(path))
		return index_read(ctx, path, file->in.data, file->in.size, &file->index);
	TRY(sched_read_verified(ctx, path, file->in.data, file->in.size, &file->sched));
	return sched_depth(ctx, file->sched, &file->depth);
}

static bool
same_bytes(const Text *a, const Text *b)
{
	return a->data && a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* other: NULL, or the other file, loaded: equal bytes are parsed and verified once. *unreadable: the file cannot be
 * read. */
static void
load(struct loaded *file, const char *path, const struct loaded *other, bool *unreadable)
{
	ctx_init(&file->ctx);
	if (!path)
		return;
	file->status = file_read(&file->ctx, path, &file->in);
	if (file->status != OK) {
		*unreadable = true;
	} else if (other && other->status == OK && same_bytes(&other->in, &file->in)) {
		file->sched = other->sched;
		file->index = other->index;
		file->depth = other->depth;
	} else {
		file->status = read_valid(file, path);
	}
}

static void
unload(struct loaded *file)
{
	text_free(&file->in);
	ctx_free(&file->ctx);
}

/* ---- one pair ---- */

static Status
put_line(Ctx *ctx, Differences *list, DifferenceKind kind, const char *line)
{
	Text text = { 0 };
	text_put(&text, line);
	return difference_put(ctx, list, (Difference){ .kind = kind, .old_tree = -1, .new_tree = -1 }, &text,
	    NULL, NULL);
}

static Status
put_invalid(Ctx *ctx, Differences *list, Status status, const char *reason, struct result *result)
{
	if (result->invalid == OK) {
		result->invalid = status;
		snprintf(result->reason, sizeof result->reason, "%.*s", (int)sizeof result->reason - 1, reason);
	}
	return put_line(ctx, list, DIFF_INVALID, reason);
}

static bool
same_maps(const Schedule *a, const Schedule *b)
{
	const Symmetry *s = a->symmetry, *t = b->symmetry;
	bool same = s && t && s->n_maps == t->n_maps && a->topo->n_ranks == b->topo->n_ranks
	    && a->topo->n_links == b->topo->n_links;
	for (int i = 0; same && i < s->n_maps; i++)
		same = s->map[i].order == t->map[i].order
		    && memcmp(s->map[i].vertex, t->map[i].vertex, (size_t)a->topo->n_ranks * sizeof(int)) == 0
		    && memcmp(s->map[i].link, t->map[i].link, (size_t)a->topo->n_links * sizeof(int)) == 0;
	return same;
}

static bool
same_in_trees(const Schedule *a, const Schedule *b)
{
	bool same = a->n_in_trees > 0 && a->n_in_trees == b->n_in_trees && a->n_edges == b->n_edges
	    && tree_same_edges(a->edge, b->edge, a->n_edges);
	for (int t = 0; same && t < a->n_in_trees; t++) {
		const InTree *s = &a->in_tree[t], *u = &b->in_tree[t];
		same = s->root == u->root && frac_cmp(s->offset, u->offset) == 0 && frac_cmp(s->length, u->length) == 0
		    && s->n_links == u->n_links && memcmp(s->link, u->link, (size_t)s->n_links * sizeof *s->link) == 0;
	}
	return same;
}

/* Where all trees are too many, representatives are compared, if both have the same images; trees of each rank are
 * the same, or not compared. */
static Status
list_trees(Ctx *ctx, struct loaded *old, struct loaded *new)
{
	const Error error = ctx->error;
	Schedule *a = old->sched, *b = new->sched;
	Status status = !sched_is_list(a) ? sched_expand(ctx, "old", a, &a) : OK;
	if (status == OK && !sched_is_list(b))
		status = sched_expand(ctx, "new", b, &b);
	if (status == LIMIT && (same_maps(old->sched, new->sched) || same_in_trees(old->sched, new->sched))) {
		ctx->error = error;
		return OK;
	}
	TRY(status);
	old->sched = a;
	new->sched = b;
	return OK;
}

static Status
compare(Ctx *ctx, const struct pair *pair, struct loaded *old, struct loaded *new, Comparison *out,
    struct result *result)
{
	Differences *list = &out->list;
	if (old->status != OK)
		TRY(put_invalid(ctx, list, old->status, old->ctx.error.text, result));
	if (new->status != OK)
		TRY(put_invalid(ctx, list, new->status, new->ctx.error.text, result));
	if (!pair->old || !pair->new)
		TRY(put_line(ctx, list, pair->old ? DIFF_MISSING : DIFF_NEW,
		    pair->old ? "only in the old directory" : "only in the new directory"));
	if (old->sched && new->sched && !result->invalid) {
		TRY(list_trees(ctx, old, new));
		TRY(diff_schedules(ctx, old->sched, new->sched, list));
		result->has_rates = old->sched->coll == new->sched->coll;
		result->order = frac_cmp(old->sched->achieved, new->sched->achieved);
		result->ratio = 1;
		if (result->order)
			result->ratio = frac_double(new->sched->achieved) / frac_double(old->sched->achieved);
	}
	if (old->index && new->index)
		TRY(diff_indexes(ctx, old->index, new->index, list));
	out->state = result->invalid ? STATE_INVALID : !pair->new ? STATE_MISSING : !pair->old ? STATE_NEW
	    : list->n ? STATE_CHANGED : STATE_SAME;
	out->old = old->status == OK ? old->sched : NULL;
	out->new = new->status == OK ? new->sched : NULL;
	out->old_depth = old->depth;
	out->new_depth = new->depth;
	return OK;
}

static Status
spool_finding(Ctx *ctx, const struct diff *diff, const Comparison *out, struct result *result)
{
	Text message = { 0 }, detail = { 0 };
	result->kind = emit_diff_finding(out, diff->fail_on, &message, &detail);
	Status status = spool_put(ctx, &diff->spool, &message, &result->message);
	if (status != OK)
		text_free(&detail);
	return status == OK ? spool_put(ctx, &diff->spool, &detail, &result->detail) : status;
}

static Status
write_pair(Ctx *ctx, const struct diff *diff, Comparison *out, struct result *result)
{
	Text text = { 0 };
	for (int i = 0; i < out->list.n; i++)
		out->fails = out->fails || difference_fails(&out->list.difference[i], diff->fail_on);
	result->state = out->state;
	result->fails = out->fails;
	if (diff->json)
		emit_diff_json(out, &text);
	else
		emit_diff_text(out, diff->all, &text);
	TRY(spool_put(ctx, &diff->spool, &text, &result->text));
	return diff->findings && out->list.n ? spool_finding(ctx, diff, out, result) : OK;
}

Status
compare_pair(Ctx *ctx, void *of, int i)
{
	const struct diff *diff = of;
	const struct pair *pair = &diff->pair[i];
	struct loaded old = { .status = OK }, new = { .status = OK };
	Comparison out = { .file = pair->file };
	struct result *result = &diff->result[i];
	bool unreadable = false;
	load(&old, pair->old, NULL, &unreadable);
	load(&new, pair->new, &old, &unreadable);
	const struct loaded *first = old.status != OK ? &old : &new;
	Status status = OK;
	/* Files that were named must be readable; those of directories are reported one by one. Without memory nothing
	 * is known of a file. */
	if ((unreadable && !pair->file) || first->status == NO_MEMORY || first->status == INTERNAL)
		status = fail(ctx, first->status, "%s", first->ctx.error.text);
	if (status == OK)
		status = compare(ctx, pair, &old, &new, &out, result);
	if (status == OK)
		status = write_pair(ctx, diff, &out, result);
	unload(&old);
	unload(&new);
	return status;
}
