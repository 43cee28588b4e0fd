/* The parts that large schedules lean on: arrays read entry by entry, loads with many denominators, integers and
 * UTF-8. */
#include "format/doc.h"
#include "schedule/schedule.h"
#include "tap.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lists --------------------------------------------------------------------------------------------- */

static void
put_doc(Text *out, const Doc *at)
{
	switch (at->kind) {
	case DOC_ARRAY:
	case DOC_OBJECT:
		text_put(out, at->kind == DOC_ARRAY ? "[" : "{");
		for (int i = 0; i < at->n; i++) {
			text_put(out, i ? "," : "");
			if (at->kind == DOC_OBJECT)
				text_printf(out, "%s:", at->child[i]->name);
			put_doc(out, at->child[i]);
		}
		text_put(out, at->kind == DOC_ARRAY ? "]" : "}");
		break;
	case DOC_STRING:
		text_json(out, at->text);
		break;
	case DOC_NUMBER:
		text_int(out, (int)at->number);
		break;
	default:
		text_put(out, at->kind == DOC_NULL ? "null" : at->flag ? "true" : "false");
		break;
	}
}

/* The root and then each entry of "list", one a line; else the message. */
static void
read_list(Ctx *ctx, const char *data, size_t size, Text *out)
{
	Doc *root;
	DocList list;
	Status status = doc_read_json_list(ctx, "f", data, size, "list", &root, &list);
	if (status == OK)
		put_doc(out, root);
	for (int i = 0; status == OK && i < list.n; i++) {
		ArenaMark mark = arena_mark(&ctx->scratch);
		const Doc *entry;
		status = doc_list_next(ctx, "f", &list, &entry);
		if (status == OK && (entry->index != i || entry->parent != doc_get(root, "list")))
			text_put(out, " misplaced");
		if (status == OK) {
			text_put(out, "\n");
			put_doc(out, entry);
		}
		arena_release(&ctx->scratch, mark);
	}
	if (status != OK)
		text_printf(out, "%s%s", out->size ? "\n" : "", ctx->error.text);
}

static void
check_list(const char *name, const char *json, const char *want)
{
	Ctx ctx;
	Text got = { 0 };
	size_t size = strlen(json);
	char *copy = malloc(size);	/* no NUL behind it */
	if (!copy)
		exit(99);
	memcpy(copy, json, size);
	ctx_init(&ctx);
	read_list(&ctx, copy, size, &got);
	char title[96];
	snprintf(title, sizeof title, "list: %s", name);
	check(!got.failed && strcmp(got.data, want) == 0, title, "%s", got.data);
	text_free(&got);
	ctx_free(&ctx);
	free(copy);
}

static void
test_lists(void)
{
	check_list("first", "{\"list\":[1,[2,3],{\"a\":[]}],\"b\":4}", "{list:[],b:4}\n1\n[2,3]\n{a:[]}");
	check_list("last, with blanks and a mark",
	    "\xef\xbb\xbf { \"b\" : 4 ,\n\"list\" : [ 1 ,\t[ 2 ] ,\r\n\"]\" ] } ", "{b:4,list:[]}\n1\n[2]\n\"]\"");
	check_list("marks in texts", "{\"list\":[\",\",\"\\\",[\",{\"],\":\"}\"}]}",
	    "{list:[]}\n\",\"\n\"\\\",[\"\n{],:\"}\"}");
	check_list(
	    "equal objects", "{\"list\":[{\"a\":1,\"b\":2},{\"a\":3,\"b\":4}]}", "{list:[]}\n{a:1,b:2}\n{a:3,b:4}");
	check_list("empty", "{\"list\":[ ],\"b\":[1]}", "{list:[],b:[1]}");
	check_list("none", "{\"b\":[1]}", "{b:[1]}");
	check_list("not in the root", "{\"b\":{\"list\":[1]},\"list\":[2]}", "{b:{list:[1]},list:[]}\n2");
	check_list("the root is an array", "[{\"list\":[1]}]", "[{list:[1]}]");
	check_list("the root is a string", "\"list\"", "\"list\"");
	check_list("not an array", "{\"list\":{\"list\":[1]}}", "{list:{list:[1]}}");
	check_list("a value called so", "{\"b\":\"list\",\"c\":[1]}", "{b:\"list\",c:[1]}");
	check_list("an escaped name", "{\"l\\u0069st\":[1,[2]]}", "{list:[1,[2]]}\n1\n[2]");
	check_list("twice", "{\"list\":[1],\"list\":[2]}", "f: list: given twice: want it once");
	check_list("twice, once escaped", "{\"l\\u0069st\":[1],\"list\":[2]}", "f: list: given twice: want it once");
	check_list("twice, once empty", "{\"list\":[],\"list\":[2]}", "f: list: given twice: want it once");
	check_list("an entry's key twice", "{\"list\":[0,{\"a\":[{\"b\":1,\"b\":2}]}]}",
	    "{list:[]}\n0\nf: list[1].a[0].b: given twice: want it once");
	check_list(
	    "an entry's number", "{\"list\":[0,[1,1e999]]}", "{list:[]}\n0\nf: list[1][1]: a number beyond 1.8e308");
	check_list("not JSON inside", "{\"list\":[0,\n[1 2]]}", "f:2:4: '2': want ',' or ']'");
	check_list("not JSON behind", "{\"list\":[0]]", "f:1:12: ']': want ',' or '}'");
	check_list("no end", "{\"list\":[0", "f:1:11: end of file: want ',' or ']'");
}

/* `n` entries of `m` zeros: refused where one of them, with what is in none, is more than LIMIT_DOC_VALUES. */
static void
check_values(const char *name, int n, int m, const char *want)
{
	Text json = { 0 }, zeros = { 0 };
	Ctx ctx;
	Doc *root;
	DocList list;
	const Doc *entry;
	text_put(&zeros, "[0");
	for (int i = 1; i < m; i++)
		text_add(&zeros, ",0", 2);
	text_put(&json, "{\"list\":[");
	for (int i = 0; i < n; i++) {
		text_put(&json, i ? "," : "");
		text_add(&json, zeros.data, zeros.size);
		text_put(&json, "]");
	}
	text_put(&json, "]}");
	ctx_init(&ctx);
	Status status = doc_read_json_list(&ctx, "f", json.data, json.size, "list", &root, &list);
	if (status == OK)
		status = doc_list_next(&ctx, "f", &list, &entry);
	check(!json.failed && !zeros.failed && (want ? status == LIMIT && strstr(ctx.error.text, want)
	    : status == OK && list.n == n && entry->n == m), name, "status %d, %s", (int)status, ctx.error.text);
	text_free(&json);
	text_free(&zeros);
	ctx_free(&ctx);
}

/* ---- Loads --------------------------------------------------------------------------------------------- */

enum { MANY = 64 };

/* The rate over one link of capacity 1 whose loads are these lengths, against sums of fractions. */
static void
check_loads(const char *name, const Frac *length, int n, Status want)
{
	static const int link[] = { 0 };
	static Edge edge = { .src = 0, .dst = 1, .n_links = 1, .link = link };
	Link only = { .to = 1, .count = 1, .capacity = 1 };
	Topology topo = { .n_ranks = 2, .n_vertices = 2, .n_links = 1, .link = &only };
	Segment segment[MANY] = { 0 };
	Schedule sched = { .topo = &topo, .coll = BROADCAST, .n_segments = n, .segment = segment };
	Frac sum = FRAC_ZERO, rate = FRAC_ZERO, achieved = FRAC_ZERO;
	bool fits = true;
	Ctx ctx;
	for (int i = 0; i < n; i++) {
		segment[i] = (Segment){ .length = length[i], .tree = { .n_down = 1, .down = &edge } };
		fits = fits && frac_add(sum, length[i], &sum);
	}
	fits = fits && frac_div(FRAC_ONE, sum, &rate);
	ctx_init(&ctx);
	Status status = sched_achieved(&ctx, "f", &sched, &achieved);
	check(status == want && fits == (want == OK) && (!fits || frac_cmp(achieved, rate) == 0), name,
	    "status %d, %s: %lld/%lld, want %lld/%lld", (int)status, ctx.error.text, (long long)achieved.num,
	    (long long)achieved.den, (long long)rate.num, (long long)rate.den);
	ctx_free(&ctx);
}

static void
test_loads(void)
{
	/* p and q are primes: 1/(3p) and 1/(3q) need 3pq, which has 64 bits, and 2/(3p) + 1/(3q) only pq: 3 divides
	 * 2q + p. */
	const int64_t p = 2147483647, q = 2147483629;
	Frac like[MANY], odd[MANY];
	for (int i = 0; i < MANY; i++) {
		like[i] = (Frac){ 1, MANY };
		frac_make(1, 1 + i % 40, &odd[i]);
	}
	check_loads("loads: one denominator", like, MANY, OK);
	check_loads("loads: forty denominators", odd, 40, OK);
	check_loads("loads: they return", (Frac[]){ { 1, 2 }, { 1, 3 }, { 1, 6 }, { 1, 4 }, { 1, 2 } }, 5, OK);
	check_loads("loads: a sum in lower terms", (Frac[]){ { 2, 3 * p }, { 1, 3 * q } }, 2, OK);
	check_loads("loads: and more after it", (Frac[]){ { 2, 3 * p }, { 1, 3 * q }, { 1, p }, { 1, q } }, 4, OK);
	check_loads("loads: a sum of 64 bits", (Frac[]){ { 1, 3 * p }, { 1, 5 * q } }, 2, LIMIT);
}

/* ---- Text ---------------------------------------------------------------------------------------------- */

static void
test_text(void)
{
	static const int value[] = { 0, 1, 9, 10, 99, 100, 65535, -1, -10, INT_MAX, INT_MIN };
	for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
		Text text = { 0 };
		char want[32];
		snprintf(want, sizeof want, "%d", value[i]);
		text_int(&text, value[i]);
		check(!text.failed && strcmp(text.data, want) == 0, want, "%s", text.data);
		text_free(&text);
	}
	bool good = true;
	for (size_t size = 0; size <= 40; size++) {
		for (size_t at = 0; at < size; at++) {
			char *data = malloc(size);
			if (!data)
				exit(99);
			memset(data, 'a', size);
			data[at] = '\x80';
			good = good && utf8_valid(data, size) == at;
			if (at > 0) {
				data[at - 1] = '\xc3';
				good = good && utf8_valid(data, size) == size;
			}
			free(data);
		}
	}
	check(good, "UTF-8 at each place", "a wrong byte is missed, or a right one is not taken");
}

int
main(void)
{
	test_lists();
	check_values("values: more than are in memory at once", 100000, 200, NULL);
	check_values("values: an entry of too many", 1, LIMIT_DOC_VALUES, "more than 16777216 values");
	test_loads();
	test_text();
	return end_tests();
}
