/* An entry of an index from its tokens: an index of 589,791 entries is 126 MB of text. Whatever is unusual is left to
 * the reader of Docs. */
#include "format/blink/index_reader.h"
#include "base/limits.h"

#define MEMBER_LIST(X)                                                         \
	X(GPUS, "gpus") \
	X(RANKS, "ranks") \
	X(COLLECTIVE, "collective") \
	X(ROOT, "root") \
	X(BYTES, "bytes") \
	X(FILE, "file") \
	X(RATE, "rate") \
	X(BOUND, "bound") \
	X(TREES, "trees") \
	X(DEPTH, "depth") \
	X(FORM, "form") \
	X(BASELINES, "baselines")

enum member {
#define X(name, text) MEMBER_##name,
	MEMBER_LIST(X)
#undef X
	N_MEMBERS
};

static const struct json_name member_names[N_MEMBERS] = {
#define X(name, text) { text, sizeof text - 1 },
	MEMBER_LIST(X)
#undef X
};

enum { MAY_BE_MISSING = 1 << MEMBER_BYTES | 1 << MEMBER_FORM | 1 << MEMBER_BASELINES };

/* An entry while it is read. Functions return false where something is unusual, and where memory ran out. */
struct entry_tokens {
	struct index_reader *r;
	JsonTokens at;
	IndexEntry entry;
	bool no_memory;
};

/* [0, 2, ...]: each once, below `most`, into value[]. */
static bool
take_distinct(struct entry_tokens *t, int most, int *value, int *n_out)
{
	bool *seen = t->r->seen, good = json_token(&t->at, '[');
	int n = 0;
	while (good) {
		good = n < most && json_token_int(&t->at, 0, most - 1, &value[n]) && !seen[value[n]];
		if (good)
			seen[value[n++]] = true;
		if (!good || !json_token(&t->at, ','))
			break;
	}
	for (int i = 0; i < n; i++)
		seen[value[i]] = false;
	*n_out = n;
	return good && json_token(&t->at, ']');
}

/* A string without escapes, as C has it. */
static bool
take_text(struct entry_tokens *t, char *text, size_t room)
{
	const char *at;
	size_t length;
	if (!json_token_string(&t->at, &at, &length) || length >= room)
		return false;
	memcpy(text, at, length);
	text[length] = 0;
	return true;
}

static bool
take_rate(struct entry_tokens *t, double *out)
{
	return json_token_number(&t->at, out) && *out <= 1e15;
}

static bool
take_file(struct entry_tokens *t)
{
	char path[256];
	if (!take_text(t, path, sizeof path) || !index_path_is_inside(path))
		return false;
	t->no_memory = index_keep_file(t->r, path, strlen(path), &t->entry.file) != OK;
	return !t->no_memory;
}

static bool
take_form(struct entry_tokens *t)
{
	char text[17];
	if (!take_text(t, text, sizeof text) || strspn(text, "0123456789abcdef") != 16)
		return false;
	for (const char *c = text; *c; c++)
		t->entry.form = t->entry.form << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
	return true;
}

static bool
take_sizes(struct entry_tokens *t)
{
	IndexEntry *entry = &t->entry;
	entry->sized = true;
	return json_token(&t->at, '[') && json_token_int64(&t->at, LIMIT_MESSAGE, &entry->from)
	    && json_token(&t->at, ',') && json_token_int64(&t->at, LIMIT_MESSAGE, &entry->to)
	    && json_token(&t->at, ']') && entry->from <= entry->to;
}

/* "name": rate */
static bool
take_baseline(struct entry_tokens *t, IndexBaseline *baseline, int n)
{
	char name[BASELINE_NAME];
	if (!take_text(t, name, sizeof name) || !baseline_name_valid(name) || !json_token(&t->at, ':')
	    || !take_rate(t, &baseline[n].rate))
		return false;
	t->no_memory = index_keep_name(t->r, name, &baseline[n].name) != OK;
	for (int i = 0; i < n && !t->no_memory; i++)
		if (strcmp(baseline[i].name, baseline[n].name) == 0)
			return false;
	return !t->no_memory;
}

/* Equal names are one text, but where there are more of them than are kept. */
static bool
same_baselines(const IndexEntry *entry, const IndexBaseline *baseline, int n)
{
	bool same = entry && entry->n_baselines == n;
	for (int i = 0; i < n && same; i++)
		same = entry->baseline[i].name == baseline[i].name && entry->baseline[i].rate == baseline[i].rate;
	return same;
}

static bool
take_baselines(struct entry_tokens *t)
{
	IndexBaseline baseline[LIMIT_BASELINES], *kept;
	int n = 0;
	if (!json_token(&t->at, '{'))
		return false;
	do {
		if (n == LIMIT_BASELINES || !take_baseline(t, baseline, n++))
			return false;
	} while (json_token(&t->at, ','));
	if (!json_token(&t->at, '}'))
		return false;
	t->entry.n_baselines = n;
	if (same_baselines(t->r->before, baseline, n)) {
		t->entry.baseline = t->r->before->baseline;
		return true;
	}
	t->no_memory = NEW(t->r->ctx, kept, n) != OK;
	if (!t->no_memory)
		memcpy(kept, baseline, (size_t)n * sizeof *kept);
	t->entry.baseline = kept;
	return !t->no_memory;
}

static bool
take_member(struct entry_tokens *t, enum member member)
{
	struct index_reader *r = t->r;
	IndexEntry *entry = &t->entry;
	char text[32];
	int n;
	switch (member) {
	case MEMBER_GPUS:
		return take_distinct(t, r->index->n_gpus, r->number, &entry->n) && entry->n >= 2;
	case MEMBER_RANKS:		/* behind gpus, which says how many there are */
		return entry->n && take_distinct(t, entry->n, r->number + entry->n, &n) && n == entry->n;
	case MEMBER_COLLECTIVE:
		return take_text(t, text, sizeof text) && collective_parse(text, &entry->coll);
	case MEMBER_ROOT:
		entry->root = -1;
		return json_token_null(&t->at) || json_token_int(&t->at, 0, LIMIT_RANKS, &entry->root);
	case MEMBER_BYTES:
		return take_sizes(t);
	case MEMBER_FILE:
		return take_file(t);
	case MEMBER_RATE:
		return take_rate(t, &entry->rate);
	case MEMBER_BOUND:
		return take_rate(t, &entry->bound);
	case MEMBER_TREES:
		return json_token_int(&t->at, 1, LIMIT_TREES, &entry->trees);
	case MEMBER_DEPTH:
		return json_token_int(&t->at, 1, 2 * LIMIT_RANKS, &entry->depth);
	case MEMBER_FORM:
		return take_form(t);
	case MEMBER_BASELINES:
		return take_baselines(t);
	default:
		return false;
	}
}

static bool
take_entry(struct entry_tokens *t)
{
	struct json_members m = { member_names, N_MEMBERS, .at = -1 };
	const IndexEntry *entry = &t->entry;
	while (json_token_member(&t->at, &m))
		if (!take_member(t, (enum member)m.at))
			return false;
	return m.ended && (m.seen | MAY_BE_MISSING) == (1u << N_MEMBERS) - 1
	    && (collective_rooted(entry->coll) ? entry->root >= 0 && entry->root < entry->n : entry->root < 0);
}

/* gpus and ranks in one array. */
static bool
keep_ranks(struct entry_tokens *t)
{
	size_t n = 2 * (size_t)t->entry.n;
	int *kept = arena_raw(&t->r->ctx->run, n, sizeof *kept);
	t->no_memory = !kept;
	if (!kept)
		return false;
	memcpy(kept, t->r->number, n * sizeof *kept);
	t->entry.gpu = kept;
	t->entry.rank = kept + t->entry.n;
	return true;
}

Status
index_entry_tokens(struct index_reader *r, IndexEntry *entry, bool *done)
{
	struct entry_tokens t = { .r = r, .at = doc_list_tokens(&r->entries) };
	*done = t.at.at && take_entry(&t) && keep_ranks(&t);
	if (t.no_memory)
		return fail_memory(r->ctx);
	if (!*done)
		return OK;
	doc_list_took(&r->entries, t.at.at);
	*entry = t.entry;
	if (entry->n_baselines)
		r->before = entry;
	return OK;
}
