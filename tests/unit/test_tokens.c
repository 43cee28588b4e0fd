/* Lists of schedules and indexes are read from their tokens, or, where something is unusual, from Docs. Both must say
 * the same: documents, many of them faulty, are read as they are, and again with a member that no reader knows in each
 * entry, which makes it unusual. */
#include "format/format.h"
#include "quick.h"
#include "random.h"

#include <string.h>

enum { PLAIN, UNUSUAL };

/* What a member may be: the first is good, and its place in the list of members is that of its name. */
struct choice {
	const char *name;
	const char *value[9];
};

static const struct choice tree_members[] = {
	{ "segment", { "[\"0/1\",\"1/1\"]", "[\"0/1\",\"1/2\"]", "[\"0/2\",\"1/1\"]", "[\"0/1\"]",
		"[\"0/1\",\"3/2\"]",
		"[ \"0\\/1\" , \"1/1\" ]", "[0,1]", "\"0/1\"", "[\"0/1\",\"1/1\",\"1/1\"]" } },
	{ "root", { "0", "0.0", "3", "-0", "-1", "\"0\"", "null", "1e0", "99999999999" } },
	{ "down", { "[[0,1,[0]],[1,2,[2]]]", "[ [ 0 , 1 , [ 0 ] ] ,\n[1,2,[2]]]", "[[0,1,[0]],[1,2,[2.0]]]", "[]",
		"[[0,1,[0]],[1,2,[]]]", "[[0,1,[0]],[1,3,[2]]]", "[[0,1,[0]],[1,2,[4]]]", "[[0,1,[0,0]],[1,2]]",
		"[[0,1,0],[1,2,[2]]]" } },
	{ "up", { NULL, "[]", "[[1,0,[1]]]", "[[2,1,[3]],[1,0,[1]]]", "null", "[1,2]", "{}", "[[[]]]",
		"[[1,0,[1]],0]" } },
	{ "to", { NULL, "[2,1]", "[1]", "[]", "[3]", "[0,1,2,0]", "[1,1]", "1", "[1,2.0]" } },
	{ "part", { NULL, "0", "7", "null", "[0]", "\"0\"", "0", "0", "0" } },
};

static const struct choice entry_members[] = {
	{ "gpus", { "[0,1]", "[1,0]", "[2,1,0]", "[0]", "[0,0]", "[0,3]", "[0,1.0]", "[]", "\"0,1\"" } },
	{ "ranks", { "[0,1]", "[1,0]", "[2,0,1]", "[0]", "[1,1]", "[0,2]", "[0,1.0]", "[]", "null" } },
	{ "collective", { "\"allreduce\"", "\"broadcast\"", "\"allgather\"", "\"all\"", "\"\"",
		"\"\\u0061llreduce\"", "7",
		"null", "\"allreduceallreduceallreduceallreduce\"" } },
	{ "root", { "null", "0", "1", "-1", "2", "1.0", "\"0\"", "nul", "1e400" } },
	{ "bytes", { NULL, "[0,65536]", "[65537,9007199254740992]", "[0,9007199254740993]", "[2,1]", "[0]", "[0,1e3]",
		"[0.5,1]", "[99999999999999999999,1]" } },
	{ "file", { "\"a/b.json\"", "\"c.json\"", "\"../c.json\"", "\"/c\"", "\"\"", "\"a\\u002fb\"", "\"a//b\"", "1",
		"\"caf\xc3\xa9\"" } },
	{ "rate", { "85.7142857142857", "75", "0.1", "1e2", "1000000000000000", "1000000000000001", "-1",
		"3.0000000000000004",
		"\"1\"" } },
	{ "bound", { "85.7142857142857", "0", "0.000123456789", "1234567.89012345", "123456789012345.6", "00",
		"1e16", "1.5e-3",
		"null" } },
	{ "trees", { "6", "1", "524288", "524289", "0", "6.0", "-6", "9999999999", "[6]" } },
	{ "depth", { "2", "1", "8192", "8193", "0", "2.0", "-2", "02", "\"2\"" } },
	{ "form", { NULL, "\"0123456789abcdef\"", "\"0000000000000000\"", "\"0123456789ABCDEF\"", "\"0123\"", "1",
		"null",
		"\"0123456789abcdef0\"", "\"\"" } },
	{ "baselines", { NULL, "{\"nccl-2.4\":75,\"nccl-2.8\":80.5}", "{\"nccl-2.4\":75}", "{}", "{\"nccl-2.4\":-1}",
		"{\"a\":1,\"a\":2}", "{\"a b\":1}", "[]",
		"{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1}" } },
};

/* Mostly good, seldom twice or missing, seldom in another order. */
static void
put_entry(Text *out, const struct choice *choices, int n, bool unusual)
{
	int first = below(8) ? 0 : below(n), bad = below(3) ? -1 : below(n), twice = below(24) ? -1 : below(n);
	bool begun = unusual;
	text_put(out, unusual ? "{\"-\":null" : "{");
	for (int i = 0; i < n; i++) {
		const struct choice *choice = &choices[(first + i) % n];
		int at = (first + i) % n;
		const char *value = choice->value[at == bad ? below(9) : below(6) ? 0 : 1];
		for (int k = 0; value && k < (at == twice ? 2 : 1); k++, begun = true)
			text_printf(out,
		"%s\"%s\"%s%s", begun ? "," : "", choice->name, below(9) ? ":" : " :\t", value);
	}
	text_put(out, "}");
}

static void
put_list(Text *out, const struct choice *choices, int n, bool unusual)
{
	int entries = 1 + below(4);
	for (int i = 0; i < entries; i++) {
		text_put(out, i ? "," : "");
		text_put(out, below(4) ? "" : " \r\n\t");
		put_entry(out, choices, n, unusual);
	}
	if (below(40) == 0)
		text_put(out, ",7");
}

static const char schedule_head[] =
    "{\"format\":\"blink-schedule\",\"version\":1,\"generator\":{\"name\":\"t\",\"version\":\"1\","
    "\"options\":{}},\"topology\":{\"name\":\"t\",\"digest\":\"d\",\"ranks\":[{\"gpu\":\"a\",\"node\":\"n\"},"
    "{\"gpu\":\"b\",\"node\":\"n\"},{\"gpu\":\"c\",\"node\":\"n\"}],\"links\":["
    "{\"from\":0,\"to\":1,\"class\":\"nvlink\",\"capacity\":25,\"latency\":1},"
    "{\"from\":1,\"to\":0,\"class\":\"nvlink\",\"capacity\":25,\"latency\":1},"
    "{\"from\":1,\"to\":2,\"class\":\"nvlink\",\"capacity\":25,\"latency\":1},"
    "{\"from\":2,\"to\":1,\"class\":\"nvlink\",\"capacity\":25,\"latency\":1}]},"
    "\"collective\":\"broadcast\",\"root\":0,\"algorithm\":\"t\",\"rate\":{\"achieved\":25,\"bound\":25,"
    "\"certificate\":{\"kind\":\"cut\",\"side\":[0]}},\"trees\":[";

static const char index_head[] =
    "{\"format\":\"blink-index\",\"version\":1,\"topology\":{\"name\":\"t\",\"digest\":\"d\","
    "\"gpus\":[\"a\",\"b\",\"c\"]},\"schedules\":[";

/* What comes of a document: what is read, written again, or the message. */
static Status
read_again(const Text *document, bool schedule, Text *out)
{
	Ctx ctx;
	Schedule *sched;
	Index *index;
	ctx_init(&ctx);
	Status status = schedule ? sched_read(&ctx, "t", document->data, document->size, &sched)
	    : index_read(&ctx, "t", document->data, document->size, &index);
	if (status == OK && schedule)
		sched_write_json(sched, out);
	else if (status == OK)
		index_write(index, out);
	else
		text_put(out, ctx.error.text);
	ctx_free(&ctx);
	return status;
}

/* "t:2:194: ...": of the scan, which comes before all reading, and whose columns differ. */
static bool
is_place(const char *message)
{
	return strncmp(message, "t:", 2) == 0 && message[2] != ' ';
}

/* Documents of which both readings differ. *good: those that are valid. */
static int
compare(bool schedule, int rounds, int *good)
{
	const struct choice *members = schedule ? tree_members : entry_members;
	int n_members = (int)((schedule ? sizeof tree_members : sizeof entry_members) / sizeof *members), wrong = 0;
	*good = 0;
	for (int i = 0; i < rounds; i++) {
		Text result[2] = { 0 };
		Status status[2];
		uint64_t seed = state;
		for (int unusual = PLAIN; unusual <= UNUSUAL; unusual++) {
			Text document = { 0 };
			state = seed;
			text_put(&document, schedule ? schedule_head : index_head);
			put_list(&document, members, n_members, unusual);
			text_put(&document, "]}");
			status[unusual] = read_again(&document, schedule, &result[unusual]);
			text_free(&document);
		}
		bool same = status[0] == status[1] && (text_same(result[0].data, result[1].data)
		    || (is_place(result[0].data) && is_place(result[1].data)));
		if (!same && wrong++ < 5)
			printf("# seed %llu: %.300s\n# but: %.300s\n", (unsigned long long)seed, result[0].data,
			    result[1].data);
		*good += status[0] == OK;
		text_free(&result[0]);
		text_free(&result[1]);
	}
	return wrong;
}

int
main(void)
{
	int failed = 0, good, rounds = quick_check() ? 4000 : 20000;
	failed += report(compare(true, rounds, &good), "trees from tokens are those from Docs");
	failed += report(good < rounds / 20, "some of them are valid");
	failed += report(compare(false, rounds, &good), "entries from tokens are those from Docs");
	failed += report(good < rounds / 20, "some of them are valid");
	return failed > 0;
}
