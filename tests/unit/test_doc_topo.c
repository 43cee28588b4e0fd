/* doc and topology reading: both spellings, round trips, limits, mutated files. Run at the root of the repository. */
#include "format/doc.h"
#include "format/format.h"
#include "quick.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUTANTS = 1000, QUICK_MUTANTS = 20 };	/* of each file; in the quick check */

/* A copy of exactly `size` bytes, so that a sanitizer sees a read past the end. */
static char *
exact_copy(const char *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	if (!copy)
		exit(99);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

static Text
load(const char *path)
{
	Text text = { 0 };
	char piece[4096];
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		exit(99);
	}
	for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;)
		text_add(&text, piece, n);
	fclose(file);
	return text;
}

static Status
read_text(Ctx *ctx, const char *data, size_t size, Topology **topo)
{
	char *copy = exact_copy(data, size);
	ctx_init(ctx);
	Status status = topo_read(ctx, "f", NULL, copy, size, topo);
	free(copy);
	return status;
}

/* The status of reading, and the message in `message`. */
static Status
status_of(const Text *text, char message[1024])
{
	Ctx ctx;
	Topology *topo;
	Status status = read_text(&ctx, text->data ? text->data : "", text->size, &topo);
	memcpy(message, ctx.error.text, 1024);
	ctx_free(&ctx);
	return status;
}

static bool
same(const Text *a, const Text *b)
{
	return !a->failed && !b->failed && a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* Write in a spelling, read that, and write it again in both: `json` and `xml` must come out. */
static bool
survives(const Topology *topo, void (*spell)(const Topology *, Text *), const Text *json, const Text *xml)
{
	Text written = { 0 }, json2 = { 0 }, xml2 = { 0 };
	Ctx ctx;
	Topology *again;
	spell(topo, &written);
	bool good = read_text(&ctx, written.data, written.size, &again) == OK
	    && strcmp(again->digest, topo->digest) == 0;
	if (good) {
		topo_write_json(again, &json2);
		topo_write_xml(again, &xml2);
		good = same(json, &json2) && same(xml, &xml2);
	}
	text_free(&written);
	text_free(&json2);
	text_free(&xml2);
	ctx_free(&ctx);
	return good;
}

static bool
round_trips(const Topology *topo)
{
	Text json = { 0 }, xml = { 0 };
	topo_write_json(topo, &json);
	topo_write_xml(topo, &xml);
	bool good = survives(topo, topo_write_json, &json, &xml) && survives(topo, topo_write_xml, &json, &xml);
	text_free(&json);
	text_free(&xml);
	return good;
}

/* ---- Both spellings ------------------------------------------------------------------------------------ */

static const char head_json[] = "{\"format\":\"blink-topology\",\"version\":1,\"name\":\"t\"";
static const char head_xml[] = "<topology format=\"blink-topology\" version=\"1\" name=\"t\">";

/* One link with this capacity and latency, in both spellings: the same integers? */
static void
check_numbers(const char *capacity, const char *latency, int64_t bytes, int64_t ns)
{
	char name[128];
	for (int xml = 0; xml < 2; xml++) {
		Text text = { 0 };
		Ctx ctx;
		Topology *topo;
		text_printf(&text, xml ? "%s<node id=\"n\"><gpu id=\"a\"/><gpu id=\"b\"/></node>"
		    "<link from=\"a\" to=\"b\" class=\"net\" capacity=\"%s\" latency=\"%s\"/></topology>"
		    : "%s,\"nodes\":[{\"id\":\"n\",\"gpus\":[{\"id\":\"a\"},{\"id\":\"b\"}]}],\"links\":["
		    "{\"from\":\"a\",\"to\":\"b\",\"class\":\"net\",\"capacity\":%s,\"latency\":%s}]}",
		    xml ? head_xml : head_json, capacity, latency);
		Status status = read_text(&ctx, text.data, text.size, &topo);
		const Link *link = status == OK ? topo->link : NULL;
		snprintf(name, sizeof name, "numbers %s %s %s", capacity, latency, xml ? "xml" : "json");
		check(link && topo->n_links == 2 && link->capacity == bytes && link->latency == ns, name,
		    "%lld, %lld, %s", link ? (long long)link->capacity : -1, link ? (long long)link->latency : -1,
		    ctx.error.text);
		ctx_free(&ctx);
		text_free(&text);
	}
}

static void
test_numbers(void)
{
	check_numbers("25", "1.9", 25000000000, 1900);
	check_numbers("12.5", "0", 12500000000, 0);
	check_numbers("18.3", "2.85", 18300000000, 2850);
	check_numbers("20.6", "3.4", 20600000000, 3400);
	check_numbers("1e-6", "1e6", 1000, 1000000000);
	check_numbers("1000000", "1000000", 1000000000000000, 1000000000);
	check_numbers("999999.999999999", "0.0005", 999999999999999, 1);
	check_numbers("2.5E+1", "1.0005", 25000000000, 1001);
	check_numbers("0.0000010005", "0.0004", 1001, 0);
	check_numbers("12.3456789012345", "-0", 12345678901, 0);
}

/* Order of vertices: GPUs first, then by node and kind, then the fabric; of links: as in the file. */
static void
test_order(void)
{
	static const char *const id[] = { "g0", "g1", "g2", "c0", "p0", "n0", "c1", "ib" };
	static const char xml[] = "<topology format='blink-topology' version='1' name='&lt;&amp;\"&gt;é'>"
	    "<switch id='ib'/><link from='g0' to='g2' class='nvlink' count='3'/>"
	    "<node id='b'><nic id='n0'/><gpu id='g0'/><cpu id='c0'/><switch id='p0'/><gpu id='g1'/></node>"
	    "<class name='nvlink' capacity='20' latency='2'/><node id='a'><cpu id='c1'/><gpu id='g2'/></node>"
	    "<link from='p0' to='ib' class='net' capacity='1' duplex='simplex' source='s'/>"
	    "<link from='ib' to='p0' class='net' capacity='1' duplex='simplex'/></topology>";
	Ctx ctx;
	Topology *topo;
	Status status = read_text(&ctx, xml, sizeof xml - 1, &topo);
	check(status == OK, "order: read", "%s", ctx.error.text);
	if (status == OK) {
		bool good = topo->n_ranks == 3 && topo->n_vertices == 8 && topo->n_nodes == 2 && topo->n_links == 4;
		for (int v = 0; good && v < 8; v++)
			good = strcmp(topo->vertex[v].id, id[v]) == 0;
		check(good, "order: vertices", "other than in the format");
		check(topo->link[0].capacity == 60000000000 && topo->link[0].count == 3 && topo->link[0].latency == 2000
			&& topo->link[1].from == 2 && topo->link[1].to == 0,
		    "order: full duplex", "not two links of 3 * 20 GB/s");
		check(topo->link[2].source && !topo->link[3].source, "order: simplex", "sources mixed up");
		check(round_trips(topo), "order: round trip", "the bytes differ");
	}
	ctx_free(&ctx);
}

static void
test_file(const char *machine)
{
	static const char *const ending[] = { "xml", "json" };
	Text text[2];
	char path[128], name[160];
	for (int i = 0; i < 2; i++) {
		Ctx ctx;
		Topology *topo;
		Text again = { 0 };
		snprintf(path, sizeof path, "topologies/%s.%s", machine, ending[i]);
		text[i] = load(path);
		Status status = read_text(&ctx, text[i].data, text[i].size, &topo);
		snprintf(name, sizeof name, "%s: as written", path);
		if (status == OK)
			(i ? topo_write_json : topo_write_xml)(topo, &again);
		check(status == OK && same(&again, &text[i]), name, "%s", ctx.error.text);
		snprintf(name, sizeof name, "%s: round trip", path);
		check(status == OK && round_trips(topo), name, "the bytes differ");
		ctx_free(&ctx);
		text_free(&again);
	}
	text_free(&text[0]);
	text_free(&text[1]);
}

/* ---- Limits -------------------------------------------------------------------------------------------- */

/* before 0 after, before 1 after, ... */
static void
repeat_numbered(Text *text, int n, const char *before, const char *after)
{
	for (int i = 0; i < n; i++) {
		text_put(text, before);
		text_printf(text, "%d", i);
		text_put(text, after);
	}
}

static void
repeat(Text *text, int n, const char *what)
{
	enum { MANY = 1024 };
	Text many = { 0 };
	for (int i = 0; i < MANY && i < n; i++)
		text_put(&many, what);
	for (; n >= MANY; n -= MANY)
		text_add(text, many.data, many.size);
	for (; n > 0; n--)
		text_put(text, what);
	text_free(&many);
}

/* A file made by `make` is read at the limit, and refused with LIMIT one past it. */
static void
check_limit(const char *name, void (*make)(Text *, int), int limit)
{
	for (int past = 0; past < 2; past++) {
		Text text = { 0 };
		char message[1024], full[128];
		make(&text, limit + past);
		snprintf(full, sizeof full, "limit: %s %s", name, past ? "one past" : "at");
		Status status = status_of(&text, message);
		check(!text.failed && status == (past ? LIMIT : OK), full, "status %d, %s", (int)status, message);
		text_free(&text);
	}
}

static void
make_gpus(Text *text, int n)
{
	text_printf(text, "%s,\"nodes\":[{\"id\":\"n\",\"gpus\":[", head_json);
	repeat_numbered(text, n - 1, "{\"id\":\"g", "\"},");
	text_put(text, "{\"id\":\"g\"}]}]}");
}

static void
make_nodes(Text *text, int n)
{
	text_printf(text, "%s<switch id=\"s\"/><node id=\"n\"><gpu id=\"g\"/></node>", head_xml);
	repeat_numbered(text, n - 1, "<node id=\"n", "\"/>");
	text_put(text, "</topology>");
}

static void
make_vertices(Text *text, int n)
{
	text_printf(text, "%s<node id=\"n\"><gpu id=\"g\"/>", head_xml);
	repeat_numbered(text, n - 1, "<nic id=\"n", "\"/>");
	text_put(text, "</node></topology>");
}

static void
make_links(Text *text, int n)
{
	text_printf(text, "%s,\"nodes\":[{\"id\":\"n\",\"gpus\":[{\"id\":\"a\"},{\"id\":\"b\"}]}],"
	    "\"classes\":[{\"name\":\"c2c\",\"capacity\":1}],\"links\":[", head_json);
	repeat(text, n / 2 - 1, "{\"from\":\"a\",\"to\":\"b\",\"class\":\"c2c\"},");
	repeat(text, 1 + n % 2, "{\"from\":\"a\",\"to\":\"b\",\"class\":\"c2c\",\"duplex\":\"simplex\"},");
	text_put(text, "{\"from\":\"a\",\"to\":\"b\",\"class\":\"c2c\",\"duplex\":\"simplex\"}]}");
}

static void
make_count(Text *text, int n)
{
	text_printf(text,
	    "%s<node id=\"n\"><gpu id=\"a\"/><gpu id=\"b\"/></node><link from=\"a\" to=\"b\" class=\"c2c\" "
	    "capacity=\"1\" count=\"%d\"/></topology>",
	    head_xml, n);
}

static void
make_capacity(Text *text, int n)
{
	text_printf(text, "%s,\"nodes\":[{\"id\":\"n\",\"gpus\":[{\"id\":\"a\"},{\"id\":\"b\"}]}],"
	    "\"links\":[{\"from\":\"a\",\"to\":\"b\",\"class\":\"c2c\",\"capacity\":%d}]}", head_json, n);
}

/* n links of 1e6 GB/s each way, 1000 to a bundle: 2e15 bytes/s * 1000 a link. */
static void
make_capacity_sum(Text *text, int n)
{
	text_printf(text,
	    "%s<class name=\"c2c\" capacity=\"1000000\"/><node id=\"n\"><gpu id=\"a\"/><gpu id=\"b\"/></node>",
	    head_xml);
	repeat(text, n, "<link from=\"a\" to=\"b\" class=\"c2c\" count=\"1000\"/>");
	text_put(text, "</topology>");
}

static void
make_latency(Text *text, int n)
{
	text_printf(text,
	    "%s<node id=\"n\"><gpu id=\"a\"/><gpu id=\"b\"/></node><link from=\"a\" to=\"b\" class=\"c2c\" "
	    "capacity=\"1\" latency=\"%d\"/></topology>",
	    head_xml, n);
}

static void
make_id(Text *text, int n)
{
	text_printf(text, "%s,\"nodes\":[{\"id\":\"n\",\"gpus\":[{\"id\":\"", head_json);
	repeat(text, n, "g");
	text_put(text, "\"}]}]}");
}

static void
make_source(Text *text, int n)
{
	text_put(text, "<topology format=\"blink-topology\" version=\"1\" name=\"t\" source=\"");
	repeat(text, n, "s");
	text_put(text, "\"><node id=\"n\"><gpu id=\"g\"/></node></topology>");
}

static void
make_bytes(Text *text, int n)
{
	make_gpus(text, 1);
	repeat(text, n - (int)text->size, " ");
}

/* Not a topology, so BAD_INPUT where the nesting is fine. */
static void
check_shape(const char *name, const char *open, const char *inside, const char *close, int n, Status want)
{
	Text text = { 0 };
	char message[1024];
	repeat(&text, n, open);
	text_put(&text, inside);
	repeat(&text, n, close);
	Status status = status_of(&text, message);
	check(!text.failed && status == want, name, "status %d, %s", (int)status, message);
	text_free(&text);
}

static void
test_limits(void)
{
	check_limit("GPUs", make_gpus, LIMIT_RANKS);
	check_limit("nodes", make_nodes, LIMIT_NODES);
	check_limit("count", make_count, LIMIT_LINK_COUNT);
	check_limit("capacity", make_capacity, LIMIT_CAPACITY_MAX / BYTES_PER_GB);
	check_limit("sum of capacities", make_capacity_sum, LIMIT_CAPACITY_SUM / (2000 * LIMIT_CAPACITY_MAX));
	check_limit("latency", make_latency, LIMIT_LATENCY_NS / NS_PER_US);
	check_limit("id", make_id, LIMIT_ID_BYTES);
	check_limit("source", make_source, LIMIT_TEXT_BYTES);
	/* Those of many MB take longest: in the quick check the suite `bad` alone has files as large as that. */
	if (!quick_check()) {
		check_limit("vertices", make_vertices, LIMIT_VERTICES);
		check_limit("links", make_links, LIMIT_LINKS);
		check_limit("bytes", make_bytes, LIMIT_FILE_BYTES);
	}
	check_shape("limit: depth of json at", "[", "0", "]", LIMIT_DEPTH, BAD_INPUT);
	check_shape("limit: depth of json one past", "[", "0", "]", LIMIT_DEPTH + 1, LIMIT);
	check_shape("limit: depth of xml at", "<a>", "", "</a>", LIMIT_DEPTH, BAD_INPUT);
	check_shape("limit: depth of xml one past", "<a>", "", "</a>", LIMIT_DEPTH + 1, LIMIT);
}

/* The array and LIMIT_DOC_VALUES zeros in it: refused by the scan, before memory is spent. */
static void
test_values(void)
{
	Text text = { 0 };
	char message[1024];
	text_put(&text, "[");
	repeat(&text, LIMIT_DOC_VALUES - 1, "0,");
	text_put(&text, "0]");
	Status status = status_of(&text, message);
	check(status == LIMIT, "limit: values one past", "status %d, %s", (int)status, message);
	text_free(&text);
}

/* Many keys of one object cost no more than sorting them; one given twice is found. */
static void
test_keys(void)
{
	Text text = { 0 };
	char message[1024];
	text_put(&text, "{");
	repeat_numbered(&text, 200000, "\"k", "\":0,");
	text_put(&text, "\"k77777\":1}");
	Status status = status_of(&text, message);
	check(status == BAD_INPUT && strstr(message, "k77777: given twice"), "many keys", "status %d, %s", (int)status,
	    message);
	text_free(&text);
}

/* ---- Mutants ------------------------------------------------------------------------------------------- */

static uint32_t
next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

static void
mutate(Text *text, uint64_t *random)
{
	static const char *const piece[] = { "\"", "<", "/>", "{", "}", "[", "]", ",", ":", "-", "0", "1e999",
	    "\\u0000", "&#1;", "&amp;", "<!DOCTYPE a [", "]]>", "<![CDATA[", "<!--", "-->", "\xff", "\xc3", "null",
	    "true", "\n", "=", "gpu0" };
	for (uint32_t edits = 1 + next_random(random) % 3; edits; edits--) {
		size_t at = next_random(random) % text->size, n = next_random(random) % 24;
		const char *p = piece[next_random(random) % (sizeof piece / sizeof *piece)];
		switch (next_random(random) % 5) {
		case 0:
			text->data[at] = (char)next_random(random);
			break;
		case 1:
			if (at + strlen(p) <= text->size)
				memcpy(text->data + at, p, strlen(p));
			break;
		case 2:
			n = n < text->size - at ? n : text->size - at - 1;
			memmove(text->data + at, text->data + at + n, text->size - at - n);
			text->size -= n;
			break;
		case 3:
			n = n < text->size - at ? n : text->size - at;
			memmove(text->data + next_random(random) % (text->size - n + 1), text->data + at, n);
			break;
		default:
			text->size = next_random(random) % 8 ? text->size : at + 1;
			break;
		}
	}
}

/* Refused with one line, or a topology that survives both spellings. */
static bool
mutant_is_handled(const Text *text)
{
	Ctx ctx;
	Topology *topo;
	Status status = read_text(&ctx, text->data, text->size, &topo);
	bool good = status == OK ? round_trips(topo) : (status == BAD_INPUT || status == LIMIT) && ctx.error.text[0]
	    && !strchr(ctx.error.text, '\n');
	ctx_free(&ctx);
	return good;
}

static void
test_mutants(const char *path)
{
	Text text = load(path);
	uint64_t random = 20;
	int bad = -1, n = quick_check() ? QUICK_MUTANTS : MUTANTS;
	for (int i = 0; i < n && bad < 0; i++) {
		Text mutant = { 0 };
		text_add(&mutant, text.data, text.size);
		mutate(&mutant, &random);
		if (!mutant_is_handled(&mutant))
			bad = i;
		text_free(&mutant);
	}
	char name[160];
	snprintf(name, sizeof name, "mutants of %s", path);
	check(bad < 0, name, "mutant %d of seed 20", bad);
	text_free(&text);
}

int
main(void)
{
	test_numbers();
	test_order();
	test_file("dgx1v");
	test_file("dgx1p");
	test_limits();
	if (!quick_check())
		test_values();
	test_keys();
	test_mutants("topologies/dgx1v.json");
	test_mutants("topologies/dgx1p.xml");
	return end_tests();
}
