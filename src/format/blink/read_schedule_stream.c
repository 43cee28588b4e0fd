/* Schedule files as blinkc writes them, with all trees listed: read and verified in one pass, tree by tree. Of a file
 * of 124 MB a few MB are in memory at once, and what a rank does in each tree.
 *
 * blinkc writes "trees" last, on a line of its own. What is before it is read as a file without trees; then each tree
 * is taken from its tokens (schedule_tree_tokens.c), verified and projected, and may be forgotten. Whatever is unusual
 * or wrong, also in what the trees do, ends this: then the file is read as a whole, and there are messages for it. So
 * nothing is accepted here that would be refused there. */
#include "base/array.h"
#include "format/blink/schedule_reader.h"
#include "format/file_kind.h"
#include "schedule/schedule.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20 };

static const char trees_begin[] = "\n  \"trees\": [";
static const char version_1[] = "{\n  \"format\": \"blink-schedule\",\n  \"version\": 1,";

/* The text of a file: a part of it, which begins with what is not read yet. */
struct stream {
	int fd;				/* -1: all of it is there */
	const char *data;
	size_t size, at;
	Text own;			/* what `data` is in, of a file */
	off_t read;			/* of the file so far */
	Digest *digest;			/* of it; NULL: nobody asks */
	bool end;			/* there is no more */
};

/* More of the file; false: there is no more, it cannot be read, or memory ran out. */
static bool
read_more(struct stream *s)
{
	if (s->end || !text_reserve(&s->own, PIECE_BYTES))
		return false;
	ssize_t n;
	do
		n = pread(s->fd, s->own.data + s->own.size, PIECE_BYTES, s->read);
	while (n < 0 && errno == EINTR);
	s->end = n <= 0 || s->read + n > LIMIT_FILE_BYTES;
	if (n <= 0)
		return false;
	if (s->digest)
		digest_add(s->digest, s->own.data + s->own.size, (size_t)n);
	s->own.size += (size_t)n;
	s->read += n;
	s->data = s->own.data;
	s->size = s->own.size;
	return s->read <= LIMIT_FILE_BYTES;
}

/* Likewise, without what was read before. */
static bool
go_on(struct stream *s)
{
	if (s->end)
		return false;
	memmove(s->own.data, s->own.data + s->at, s->own.size - s->at);
	s->own.size -= s->at;
	s->size = s->own.size;
	s->at = 0;
	return read_more(s);
}

/* The next character that is not blank, at s->at; 0: the file ends. */
static char
next_character(struct stream *s)
{
	do {
		s->at = (size_t)(json_skip_blanks(s->data + s->at, s->data + s->size) - s->data);
		if (s->at < s->size)
			return s->data[s->at];
	} while (go_on(s));
	return 0;
}

/* Up to the first entry of "trees"; *head: the text before, as a file that has none. */
static bool
take_head(struct stream *s, Text *head)
{
	const char *found = NULL;
	size_t from = 0, length = sizeof trees_begin - 1, first = sizeof version_1 - 1;
	if ((s->size < first && !read_more(s)) || s->size < first || memcmp(s->data, version_1, first) != 0)
		return false;
	while (!(found = memmem(s->data + from, s->size - from, trees_begin, length))) {
		from = s->size > length ? s->size - length : 0;
		if (!read_more(s))
			return false;
	}
	s->at = (size_t)(found - s->data) + length;
	text_add(head, s->data, s->at);
	text_put(head, "]\n}\n");
	return !head->failed;
}

/* What is made of the trees. */
struct pass {
	struct stream *stream;
	struct reader r;
	Verification *verification;
	struct projection *projection;	/* NULL: trees are kept instead */
	int room;			/* of segments */
};

/* One tree; false: its text is unusual, or is cut off here. */
static Status
take_tree(struct pass *p, bool *done)
{
	struct stream *s = p->stream;
	Schedule *sched = p->r.sched;
	int t = sched->n_segments;
	TRY(GROW(p->r.ctx, sched->segment, t, p->room));
	ArenaMark mark = arena_mark(&p->r.ctx->run);
	Segment *segment = &sched->segment[t];
	do {
		JsonTokens at = { s->data + s->at, s->data + s->size };
		TRY(schedule_tree_at(&p->r, &at, segment, done));
		if (*done)
			s->at = (size_t)(at.at - s->data);
	} while (!*done && go_on(s));
	if (!*done)
		return OK;
	sched->n_segments++;
	TRY(verify_tree(p->verification, t));
	if (!p->projection)
		return OK;
	TRY(project_segment(p->projection, t));
	segment->tree = (Tree){ .root = segment->tree.root };
	/* The ranks in `to` are compared at the end. */
	if (!segment->n_to)
		arena_release(&p->r.ctx->run, mark);
	return OK;
}

/* All of them, and what must follow: the end of the root, and of the file. */
static Status
take_trees(struct pass *p, bool *done)
{
	struct stream *s = p->stream;
	do {
		if (p->r.sched->n_segments == LIMIT_TREES)
			*done = false;
		else
			TRY(take_tree(p, done));
		if (!*done)
			return OK;
		char c = next_character(s);
		*done = c == ',' || c == ']';
		s->at++;
		if (c == ']')
			break;
	} while (*done);
	*done = *done && next_character(s) == '}';
	s->at++;
	*done = *done && next_character(s) == 0 && s->at == s->size && s->end;
	return OK;
}

static Status
read_head(struct pass *p, const Text *head, bool *done)
{
	Ctx *ctx = p->r.ctx;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Doc *root;
	TRY(doc_read_json_list(ctx, p->r.label, head->data, head->size, NULL, &root, NULL));
	*done = !doc_get(root, "parts") && !doc_get(root, "matrix");
	TRY(schedule_read_members(&p->r, root));
	*done = *done && p->r.version == 1;
	/* Ids of vertices are needed no longer. */
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* part: memory of the program; NULL: no rank's part is asked for. */
static Status
read_stream(struct stream *s, Ctx *ctx, Ctx *part, const char *label, int n_ranks, int rank, SchedulePart *out,
    bool *done)
{
	Text head = { 0 };
	struct pass p = { .stream = s };
	*done = take_head(s, &head);
	Status status = *done ? schedule_new_reader(ctx, label, &p.r) : OK;
	if (*done && status == OK)
		status = read_head(&p, &head, done);
	text_free(&head);
	TRY(status);
	*done = *done && (!part || p.r.topo->n_ranks == n_ranks);
	if (!*done)
		return OK;
	TRY(verify_begin(ctx, label, p.r.sched, &p.verification));
	if (part)
		TRY(project_begin(part, p.r.sched, rank, &p.projection));
	TRY(take_trees(&p, done));
	if (!*done)
		return OK;
	TRY(verify_end(p.verification));
	if (part)
		TRY(project_end(p.projection, &out->prog));
	out->sched = p.r.sched;
	if (part)
		p.r.sched->n_segments = 0;
	return OK;
}

/* What fails here is for the reader of whole files to say. */
static Status
try_stream(struct stream *s, Ctx *ctx, Ctx *part, const char *label, int n_ranks, int rank, SchedulePart *out,
    bool *done)
{
	ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
	const Ctx *other = part ? part : ctx;
	ArenaMark part_run = arena_mark(&other->run), part_scratch = arena_mark(&other->scratch);
	Status status = read_stream(s, ctx, part, label, n_ranks, rank, out, done);
	bool no_memory = status == NO_MEMORY || s->own.failed;
	text_free(&s->own);
	*done = *done && status == OK;
	limit_steps(ctx, 0);
	arena_release(&ctx->scratch, scratch);
	if (part)
		arena_release(&part->scratch, part_scratch);
	if (*done)
		return OK;
	if (part)
		arena_release(&part->run, part_run);
	arena_release(&ctx->run, run);
	if (no_memory)
		return fail_memory(ctx);
	ctx->error.status = OK;
	if (part)
		part->error.status = OK;
	return OK;
}

Status
sched_read_verified(Ctx *ctx, const char *label, const char *data, size_t size, Schedule **out)
{
	struct stream s = { .fd = -1, .data = data, .size = size, .end = true };
	SchedulePart all;
	bool done;
	TRY(try_stream(&s, ctx, NULL, label, 0, 0, &all, &done));
	if (done) {
		*out = all.sched;
		return OK;
	}
	TRY(sched_read_compact(ctx, label, data, size, out));
	return sched_verify_read(ctx, label, *out);
}

Status
sched_read_part(Ctx *ctx, Ctx *part, const char *label, int fd, int n_ranks, int rank, SchedulePart *out, bool *done)
{
	Digest digest;
	struct stream s = { .fd = fd, .data = "", .digest = &digest };
	digest_begin(&digest);
	TRY(try_stream(&s, ctx, part, label, n_ranks, rank, out, done));
	if (*done)
		digest_end(&digest, out->digest);
	return OK;
}

Status
sched_read_file(Ctx *ctx, const char *label, int fd, SchedulePart *out, bool *done)
{
	return sched_read_part(ctx, NULL, label, fd, 0, 0, out, done);
}
