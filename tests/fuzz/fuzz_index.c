/* An index is refused, or it is in order and survives writing and reading. */
#include "json_mutator.h"
#include "format/format.h"

const Mutator mutators[] = { json_mutate, NULL };

const char *const dictionary[] = { "blink-index", "format", "version", "topology", "name", "digest", "gpus",
	"schedules", "collective", "root", "file", "ranks", "rate", "bound", "trees", "depth", "without",
	"isomorphic", "links", "changes", "index", "machine", "nodes", "vertices", "form", "gpu0-gpu3:1",
	"0123456789abcdef", "nvlink", "broadcast", "reduce",
	"allreduce", "gather", "scatter", "allgather", "reducescatter", "alltoall", "null", "true", "[0,1]", "[1,0]",
	"[]", "{}", "..", "./", "/", "1e15", "1e-9", "4096", "65536", "[", "]", "{", "}", "\"", ",", ":", "\\u0000",
	"\\n", "\\ud800", "\xc3\xa9", "\xff", NULL };

static const char label[] = "input";

static void
check(const Index *index)
{
	for (int i = 0; i < index->n_entries; i++) {
		const IndexEntry *e = &index->entry[i];
		REQUIRE(e->n >= 2 && e->n <= index->n_gpus && e->root >= -1 && e->root < e->n, "entry %d", i);
		REQUIRE((e->root >= 0) == collective_rooted(e->coll), "entry %d: root %d", i, e->root);
		REQUIRE(*e->file && *e->file != '/' && strcmp(e->file, "..") != 0 && strncmp(e->file, "../", 3) != 0
			&& !strstr(e->file, "/../"),
		    "entry %d: %s", i, e->file);
		for (int k = 0; k < e->n; k++)
			REQUIRE(e->gpu[k] >= 0 && e->gpu[k] < index->n_gpus && e->rank[k] >= 0 && e->rank[k] < e->n,
			    "entry %d", i);
		REQUIRE(i == 0 || index_order(&index->entry[i - 1], e) < 0, "entry %d: out of order", i);
	}
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	Index *index, *again;
	Text json = { 0 }, json_again = { 0 };
	ctx_init(&ctx);
	Status status = index_read(&ctx, label, (const char *)data, size, &index);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT, label);
		ctx_free(&ctx);
		return;
	}
	check(index);
	index_write(index, &json);
	REQUIRE(!json.failed && index_read(&ctx, label, json.data, json.size, &again) == OK,
	    "%s\nfor what we wrote:\n%s", ctx.error.text, json.data);
	index_write(again, &json_again);
	REQUIRE(
	    !json_again.failed && json_again.size == json.size && memcmp(json_again.data, json.data, json.size) == 0,
	    "%s\nbecame\n%s", json.data, json_again.data);
	outcome = (uint64_t)index->n_entries << 16 | (uint64_t)index->n_gpus;
	n_accepted++;
	text_free(&json);
	text_free(&json_again);
	ctx_free(&ctx);
}
