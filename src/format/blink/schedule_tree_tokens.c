/* A tree of a schedule file from its tokens. The trees of 2048 GPUs are 100 MB of text; each as Docs would take ten
 * times the time. Whatever is unusual is left to the reader of Docs. */
#include "base/array.h"
#include "base/sort.h"
#include "format/blink/schedule_reader.h"

#include <endian.h>
#include <stdlib.h>

enum member { SEGMENT, ROOT, PART, DOWN, UP, TO, N_MEMBERS };

static const struct json_name member_names[N_MEMBERS] = { { "segment", 7 }, { "root", 4 }, { "part", 4 },
    { "down", 4 }, { "up", 2 }, { "to", 2 } };

/* A tree while it is read. Functions return false where something is unusual, and where memory ran out. */
struct tree_tokens {
	struct reader *r;
	JsonTokens at;
	Segment segment;
	int n_edges;		/* of the tree */
	bool no_memory;
};

static bool
grow_edges(struct tree_tokens *t, int n)
{
	struct tree_work *work = &t->r->work;
	t->no_memory = GROW_TEMP(t->r->ctx, work->edge, n, work->edge_room) != OK;
	return !t->no_memory;
}

static bool
grow_numbers(struct tree_tokens *t, int n)
{
	struct tree_work *work = &t->r->work;
	t->no_memory = GROW_TEMP(t->r->ctx, work->number, n, work->number_room) != OK;
	return !t->no_memory;
}

/* n elements from the work space, in the run arena. */
static void *
keep(struct tree_tokens *t, const void *from, int n, size_t size)
{
	void *kept = arena_raw(&t->r->ctx->run, (size_t)n, size);
	t->no_memory = !kept;
	return kept ? memcpy(kept, from, (size_t)n * size) : NULL;
}

/* [link, ...], which go behind the `n` numbers that there are. */
static bool
take_links(struct tree_tokens *t, int n, int *n_links)
{
	struct tree_work *work = &t->r->work;
	int most = t->r->topo->n_links - 1;
	if (!json_token(&t->at, '['))
		return false;
	*n_links = 0;
	do {
		if (*n_links == LIMIT_ROUTE_LINKS)
			return false;
		if (n + *n_links >= work->number_room && !grow_numbers(t, n + *n_links))
			return false;
		if (!json_token_int(&t->at, 0, most, &work->number[n + *n_links]))
			return false;
		++*n_links;
	} while (json_token(&t->at, ','));
	return json_token(&t->at, ']');
}

/* [src, dst, [link, ...]] */
static bool
take_edge(struct tree_tokens *t, Edge *edge, int n_numbers)
{
	int most = t->r->topo->n_ranks - 1;
	return json_token(&t->at, '[') && json_token_int(&t->at, 0, most, &edge->src) && json_token(&t->at, ',')
	    && json_token_int(&t->at, 0, most, &edge->dst) && json_token(&t->at, ',')
	    && take_links(t, n_numbers, &edge->n_links) && json_token(&t->at, ']');
}

/* 0 to `most`, of at most 7 digits. NULL: something else, which take_edge judges. Eight characters at once, since how
 * many of them are digits cannot be predicted. The first is the lowest byte; what is above 9 behind '0' sets the high
 * bit of its byte. Digits move up behind zeros, and are added in pairs, in fours, and all. */
static inline const char *
plain_int(const char *at, int most, int *out)
{
	uint64_t text, other;
	memcpy(&text, at, sizeof text);
	text = le64toh(text) ^ 0x3030303030303030;
	other = (((text & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676) | text) & 0x8080808080808080;
	int n = other ? __builtin_ctzll(other) / 8 : 8;
	if (n == 0 || n == 8 || (n > 1 && *at == '0'))
		return NULL;
	text <<= 8 * (8 - n);
	text = (text * (10 * 256 + 1) >> 8) & 0x00ff00ff00ff00ff;
	text = (text * (100 * 65536 + 1) >> 16) & 0x0000ffff0000ffff;
	text = text * (10000 * (UINT64_C(1) << 32) + 1) >> 32;
	*out = (int)text;
	return text > (uint64_t)most ? NULL : at + n;
}

/* These two characters. */
static inline const char *
plain_pair(const char *at, char c, char d)
{
	return at && at[0] == c && at[1] == d ? at + 2 : NULL;
}

/* An edge as blinkc writes it, [12, 34, [5, 6]]. False: t stays where it is. The end of the file is not looked for: so
 * only with that many bytes left. */
static inline bool
take_plain_edge(struct tree_tokens *t, Edge *edge, int n_numbers)
{
	enum { EDGE_BYTES = (LIMIT_ROUTE_LINKS + 4) * (JSON_DIGITS + 3) };
	struct tree_work *work = &t->r->work;
	int most = t->r->topo->n_ranks - 1, n = 0;
	const char *at = t->at.at;
	if (t->at.end - at < EDGE_BYTES || work->number_room - n_numbers < LIMIT_ROUTE_LINKS)
		return false;
	at += *at == ' ';
	at = *at == '[' ? plain_pair(plain_int(at + 1, most, &edge->src), ',', ' ') : NULL;
	at = at ? plain_pair(plain_int(at, most, &edge->dst), ',', ' ') : NULL;
	at = at && *at == '[' ? at + 1 : NULL;
	most = t->r->topo->n_links - 1;
	while (at && n < LIMIT_ROUTE_LINKS) {
		at = plain_int(at, most, &work->number[n_numbers + n++]);
		const char *end = plain_pair(at, ']', ']');
		if (end) {
			t->at.at = end;
			edge->n_links = n;
			return true;
		}
		at = plain_pair(at, ',', ' ');
	}
	return false;
}

static bool
keep_edges(struct tree_tokens *t, int n, int n_numbers, Edge **out)
{
	struct tree_work *work = &t->r->work;
	*out = keep(t, work->edge, n, sizeof **out);
	int *link = *out ? keep(t, work->number, n_numbers, sizeof *link) : NULL;
	if (!link)
		return false;
	for (int e = 0; e < n; e++) {
		(*out)[e].link = link;
		link += (*out)[e].n_links;
	}
	return true;
}

static bool
take_edges(struct tree_tokens *t, Edge **out, int *n_out)
{
	struct tree_work *work = &t->r->work;
	int n = 0, n_numbers = 0;
	if (!json_token(&t->at, '['))
		return false;
	do {
		if (n == LIMIT_RANKS || t->r->n_edges + t->n_edges == LIMIT_TREE_EDGES)
			return false;
		if (n >= work->edge_room && !grow_edges(t, n))
			return false;
		if (!take_plain_edge(t, &work->edge[n], n_numbers) && !take_edge(t, &work->edge[n], n_numbers))
			return false;
		n_numbers += work->edge[n++].n_links;
		t->n_edges++;
	} while (json_token(&t->at, ','));
	*n_out = n;
	return json_token(&t->at, ']') && keep_edges(t, n, n_numbers, out);
}

static bool
take_to(struct tree_tokens *t)
{
	struct tree_work *work = &t->r->work;
	int n = 0, n_ranks = t->r->topo->n_ranks;
	if (!json_token(&t->at, '['))
		return false;
	do {
		if (n == n_ranks || (n >= work->number_room && !grow_numbers(t, n)))
			return false;
		if (!json_token_int(&t->at, 0, n_ranks - 1, &work->number[n++]))
			return false;
	} while (json_token(&t->at, ','));
	t->segment.to = json_token(&t->at, ']') ? keep(t, work->number, n, sizeof *t->segment.to) : NULL;
	if (!t->segment.to)
		return false;
	t->segment.n_to = n;
	sort_array(t->segment.to, n, sizeof *t->segment.to, order_of_ints);
	return true;
}

/* "p/q", at most 1 */
static bool
take_fraction(struct tree_tokens *t, Frac *out)
{
	char text[48];
	const char *at;
	size_t length;
	if (!json_token_string(&t->at, &at, &length) || length >= sizeof text)
		return false;
	memcpy(text, at, length);
	text[length] = 0;
	return frac_parse(text, out) && frac_cmp(*out, (Frac){ 1, 1 }) <= 0;
}

static bool
take_member(struct tree_tokens *t, enum member member)
{
	const struct reader *r = t->r;
	Segment *segment = &t->segment;
	switch (member) {
	case SEGMENT:
		return json_token(&t->at, '[') && take_fraction(t, &segment->offset) && json_token(&t->at, ',')
		    && take_fraction(t, &segment->length) && json_token(&t->at, ']');
	case ROOT:
		return json_token_int(&t->at, 0, r->topo->n_ranks - 1, &segment->tree.root);
	case PART:
		return json_token_int(&t->at, 0, r->sched->n_parts - 1, &segment->part);
	case DOWN:
		return take_edges(t, &segment->tree.down, &segment->tree.n_down);
	case UP:
		return take_edges(t, &segment->tree.up, &segment->tree.n_up);
	case TO:
		return take_to(t);
	default:
		return false;
	}
}

static bool
take_tree(struct tree_tokens *t)
{
	struct json_members m = { member_names, N_MEMBERS, .at = -1 };
	unsigned want = 1u << SEGMENT | 1u << ROOT | (t->r->sched->n_parts ? 1u << PART : 0);
	while (json_token_member(&t->at, &m))
		if (!take_member(t, (enum member)m.at))
			return false;
	return m.ended && (m.seen & want) == want;
}

Status
schedule_tree_at(struct reader *r, JsonTokens *at, Segment *segment, bool *done)
{
	struct tree_tokens t = { .r = r, .at = *at };
	ArenaMark mark = arena_mark(&r->ctx->run);
	*done = take_tree(&t);
	if (t.no_memory)
		return fail_memory(r->ctx);
	if (!*done) {
		arena_release(&r->ctx->run, mark);
		return OK;
	}
	*at = t.at;
	r->n_edges += t.n_edges;
	*segment = t.segment;
	return OK;
}

static bool
take_table(struct tree_tokens *t, int n, Edge *edge)
{
	struct tree_work *work = &t->r->work;
	int n_numbers = 0;
	for (int e = 0; e < n; e++) {
		if (e > 0 && !json_token(&t->at, ','))
			return false;
		if (!take_plain_edge(t, &edge[e], n_numbers) && !take_edge(t, &edge[e], n_numbers))
			return false;
		n_numbers += edge[e].n_links;
	}
	const int *link = keep(t, work->number, n_numbers, sizeof *link);
	for (int e = 0; e < n && link; e++) {
		edge[e].link = link;
		link += edge[e].n_links;
	}
	return link;
}

Status
schedule_edge_tokens(struct reader *r, Edge **out, bool *done)
{
	ArenaMark mark = arena_mark(&r->ctx->run);
	struct tree_tokens t = { .r = r, .at = doc_list_tokens(&r->edges) };
	TRY(NEW(r->ctx, *out, r->edges.n));
	*done = t.at.at && take_table(&t, r->edges.n, *out);
	if (t.no_memory)
		return fail_memory(r->ctx);
	if (!*done)
		arena_release(&r->ctx->run, mark);
	return OK;
}

Status
schedule_tree_tokens(struct reader *r, Segment *segment, bool *done)
{
	JsonTokens at = doc_list_tokens(&r->trees);
	*done = false;
	if (!at.at)
		return OK;
	TRY(schedule_tree_at(r, &at, segment, done));
	if (*done)
		doc_list_took(&r->trees, at.at);
	return OK;
}
