/* Schedule files read and verified tree by tree (format/blink/read_schedule_stream.c) against the reader of whole files
 * and sched_verify: of files that were changed at random both give the same, or say the same; and what a rank does is
 * what sched_project makes of the whole. Prints TAP. Arguments: seed, changes of each file, times 20. */
#include "compiled.h"
#include "random.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed;

static void
ok(bool good, const char *what, const char *line, Collective coll)
{
	printf("%s %s: %s: %s\n", good ? "ok" : "not ok", line, collective_name(coll), what);
	failed += !good;
}

static int
file_of(const Text *text)
{
	FILE *file = tmpfile();
	int fd = file ? dup(fileno(file)) : -1;
	if (fd < 0 || fwrite(text->data, 1, text->size, file) != text->size || fclose(file) != 0) {
		printf("Bail out! no temporary file\n");
		exit(1);
	}
	return fd;
}

/* ---- equality ---- */

static bool
same_schedule(const Schedule *a, const Schedule *b)
{
	bool same = a->n_segments == b->n_segments && frac_cmp(a->achieved, b->achieved) == 0
	    && frac_cmp(a->bound.rate, b->bound.rate) == 0 && a->coll == b->coll && a->root == b->root
	    && a->n_parts == b->n_parts && !a->symmetry == !b->symmetry && a->n_baselines == b->n_baselines
	    && strcmp(a->topo->digest, b->topo->digest) == 0;
	for (int t = 0; t < a->n_segments && same; t++) {
		const Segment *s = &a->segment[t], *u = &b->segment[t];
		same = frac_cmp(s->offset, u->offset) == 0 && frac_cmp(s->length, u->length) == 0
		    && s->tree.root == u->tree.root && s->tree.n_down == u->tree.n_down && s->tree.n_up == u->tree.n_up
		    && s->n_to == u->n_to && s->part == u->part
		    && tree_same_edges(s->tree.down, u->tree.down, s->tree.n_down)
		    && tree_same_edges(s->tree.up, u->tree.up, s->tree.n_up);
		for (int i = 0; i < s->n_to && same; i++)
			same = s->to[i] == u->to[i];
	}
	return same;
}

static bool
same_program(const RankProgram *a, const RankProgram *b)
{
	return rank_program_fingerprint(a) == rank_program_fingerprint(b) && a->n_tasks == b->n_tasks
	    && a->n_rings == b->n_rings && a->rings_max == b->rings_max && a->n_peers == b->n_peers
	    && a->lanes_max == b->lanes_max && a->segments_max == b->segments_max && a->depth == b->depth
	    && a->keep_input == b->keep_input && frac_cmp(a->longest[0], b->longest[0]) == 0
	    && memcmp(a->peer, b->peer, (size_t)a->n_peers * sizeof *a->peer) == 0;
}

/* ---- one file ---- */

static Status
read_whole(Ctx *ctx, const Text *text, Schedule **out)
{
	TRY(sched_read_compact(ctx, "x", text->data, text->size, out));
	return sched_verify(ctx, "x", *out);
}

/* Do all readers say the same? *valid, *taken: is it valid, and was it read tree by tree? */
static bool
agree(const Text *text, bool *valid, bool *taken)
{
	Ctx whole, once, part;
	Schedule *want, *got;
	SchedulePart of_file, of_rank;
	RankProgram *prog;
	bool read;
	char digest[DIGEST_ROOM];
	ctx_init(&whole);
	ctx_init(&once);
	ctx_init(&part);
	Status status = read_whole(&whole, text, &want);
	*valid = status == OK;
	bool good = sched_read_verified(&once, "x", text->data, text->size, &got) == status
	    && strcmp(once.error.text, whole.error.text) == 0 && (!*valid || same_schedule(want, got));
	int fd = file_of(text), n = *valid ? want->topo->n_ranks : 4, rank = below(n);
	/* Both contexts begin anew: they may hold an error. */
	ctx_free(&once);
	ctx_init(&once);
	good = good && sched_read_file(&once, "x", fd, &of_file, taken) == OK && once.error.status == OK
	    && (!*taken || *valid);
	if (good && *taken)
		good = same_schedule(want, of_file.sched);
	good = good && sched_read_part(&once, &part, "x", fd, n, rank, &of_rank, &read) == OK && read == *taken;
	if (good && *taken) {
		digest_of(text->data, text->size, digest);
		must(&whole, sched_project(&whole, want, rank, &prog));
		good = strcmp(of_rank.digest, digest) == 0 && strcmp(of_file.digest, digest) == 0
		    && of_rank.sched->n_segments == 0 && frac_cmp(of_rank.sched->achieved, want->achieved) == 0
		    && same_program(of_rank.prog, prog);
		good = good && sched_read_part(&once, &part, "x", fd, n + 1, rank, &of_rank, &read) == OK && !read;
	}
	if (!good)
		printf("# whole: %d %s\n# else: %d %s\n", (int)status, whole.error.text, (int)once.error.status,
		    once.error.text);
	close(fd);
	ctx_free(&whole);
	ctx_free(&once);
	ctx_free(&part);
	return good;
}

/* ---- random changes ---- */

static void
replace(Text *text, size_t at, size_t n, const char *by)
{
	Text out = { 0 };
	text_add(&out, text->data, at);
	text_put(&out, by);
	text_add(&out, text->data + at + n, text->size - at - n);
	text_free(text);
	*text = out;
}

/* Mostly in the trees. */
static size_t
place(const Text *text)
{
	const char *trees = strstr(text->data, "\n  \"trees\"");
	size_t first = below(8) && trees ? (size_t)(trees - text->data) : 0;
	return first + (size_t)below((int)(text->size - first));
}

static void
change(Text *text)
{
	static const char *const words[] = { "", " ", "\n", ",", "]", "[", "}", "{", "0", "1", "-", ".5", "e0", "\"",
		"\\", "null", "[]", "\"x\": 1, ", "\"part\": 0, ", "\"to\": [0, 1], ", "99999999999", "\x01", "\xff" };
	size_t at = place(text), n = (size_t)below(3);
	char piece[200] = "";
	if (at + n > text->size)
		n = text->size - at;
	switch (below(6)) {
	case 0:		/* a digit becomes another: it stays a file */
		while (at < text->size && (text->data[at] < '0' || text->data[at] > '9'))
			at++;
		if (at < text->size)
			text->data[at] = (char)('0' + below(10));
		break;
	case 1:		/* a piece comes twice */
		n = (size_t)below(sizeof piece - 1);
		n = n < text->size - at ? n : text->size - at;
		memcpy(piece, text->data + at, n);
		replace(text, at, 0, piece);
		break;
	case 2:
		if (below(4) == 0) {
			text->size = at;
			text->data[at] = 0;
		}
		break;
	case 3:		/* the same, laid out in another way */
		while (at < text->size && text->data[at] != ',')
			at++;
		replace(text, at, 0, below(2) ? "\n " : " ");
		break;
	case 4:		/* a member that no reader knows */
		while (at < text->size && text->data[at] != '{')
			at++;
		if (at < text->size)
			replace(text, at + 1, 0, " \"other\": [1, {}],");
		break;
	default:
		replace(text, at, n, words[below(sizeof words / sizeof *words)]);
		break;
	}
}

struct counts {
	int wrong, valid, taken, invalid;
};

static void
try_change(const Text *from, struct counts *counts)
{
	Text text = { 0 };
	bool valid, taken;
	text_add(&text, from->data, from->size);
	for (int i = below(3); i >= 0 && text.size > 1; i--)
		change(&text);
	counts->wrong += !agree(&text, &valid, &taken);
	counts->valid += valid;
	counts->taken += taken;
	counts->invalid += !valid;
	text_free(&text);
}

/* ---- tests ---- */

/* Does it change nothing that a tree has a member "to" with all ranks, whose list is needed at the end? */
static void
test_served(const Text *from, int n)
{
	Text text = { 0 }, to = { 0 };
	bool valid, taken;
	text_put(&to, "\"to\": [");
	for (int r = 0; r < n; r++)
		text_printf(&to, r ? ",%d" : "%d", r);
	text_put(&to, "], ");
	const char *at = from->data, *next;
	while ((next = strstr(at, "\"segment\": "))) {
		text_add(&text, at, (size_t)(next - at));
		text_put(&text, to.data);
		text_put(&text, "\"segment\": ");
		at = next + strlen("\"segment\": ");
	}
	text_put(&text, at);
	ok(agree(&text, &valid, &taken) && valid && taken, "each tree names the ranks that it serves", "list",
	    ALLREDUCE);
	text_free(&text);
	text_free(&to);
}

static void
test(const char *line, Collective coll, bool listed, int changes, struct counts *counts)
{
	Ctx ctx;
	Text text;
	bool valid, taken, good;
	ctx_init(&ctx);
	schedule_of_all(&ctx, line, coll, 1, &text);
	ctx_free(&ctx);
	good = agree(&text, &valid, &taken);
	ok(good && valid && taken == listed, listed ? "tree by tree" : "as a whole", line, coll);
	for (int i = 0; i < changes; i++)
		try_change(&text, counts);
	if (coll == ALLREDUCE && changes && listed)
		test_served(&text, strstr(line, "gpu:2") ? 6 : 8);
	text_free(&text);
}

int
main(int argc, char **argv)
{
	static const Collective of_all[] = { BROADCAST, REDUCE, ALLREDUCE, GATHER, ALLGATHER, ALLTOALL };
	struct counts counts = { 0 };
	state = argc > 1 ? (uint64_t)atoll(argv[1]) : 1;
	int changes = 20 * (argc > 2 ? atoi(argv[2]) : 15);
	for (size_t c = 0; c < sizeof of_all / sizeof *of_all; c++)
		test("server:3 gpu:2 mesh:20 net:7", of_all[c], true, changes, &counts);
	test("server:2 gpu:4 switch:100 net:10 multicast reduce", ALLREDUCE, true, changes, &counts);
	/* Of some MB, so that the text comes in pieces. */
	test("server:32 gpu:8 switch:300 net:25", ALLGATHER, true, 0, &counts);
	test("server:32 gpu:8 switch:300 net:25", ALLREDUCE, true, 0, &counts);
	printf("# changed: %d valid, %d of them tree by tree, %d invalid\n", counts.valid, counts.taken,
	    counts.invalid);
	failed += report(counts.wrong || counts.taken < 20 || counts.valid - counts.taken < 20 || counts.invalid < 100,
	    "changed at random, all readers say the same");
	return failed > 0;
}
