/* What the reader of JSON makes of documents, for tests/oracle/json_values.py. Standard input has documents, each after
 * its size in bytes and a newline. Of each it prints two lines, as doc_read_json and doc_read_json_list read it (the
 * root's member "list"): the value, with numbers as the bits of a double and texts as the bytes of UTF-8, both in hex,
 * or an exclamation mark, the status and the message. */
#include "format/doc.h"
#include "base/text.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
put_hex(Text *out, const char *text)
{
	text_put(out, "\"");
	for (; *text; text++)
		text_printf(out, "%02x", (unsigned char)*text);
	text_put(out, "\"");
}

static Status put_value(Ctx *ctx, Text *out, const Doc *at, DocList *list);

static Status
put_entries(Ctx *ctx, Text *out, DocList *list)
{
	text_put(out, "[");
	for (int i = 0; i < list->n; i++) {
		const Doc *entry;
		TRY(doc_list_next(ctx, "list", list, &entry));
		text_put(out, i ? "," : "");
		TRY(put_value(ctx, out, entry, NULL));
	}
	text_put(out, "]");
	return OK;
}

/* list: NULL, or its array is read entry by entry. */
static Status
put_value(Ctx *ctx, Text *out, const Doc *at, DocList *list)
{
	static const char *const ends[] = { "[", "]", "{", "}" };
	uint64_t bits;
	if (list && at == list->array && at->kind == DOC_ARRAY)
		return put_entries(ctx, out, list);
	switch (at->kind) {
	case DOC_ARRAY:
	case DOC_OBJECT:
		text_put(out, ends[2 * (at->kind == DOC_OBJECT)]);
		for (int i = 0; i < at->n; i++) {
			text_put(out, i ? "," : "");
			if (at->kind == DOC_OBJECT)
				put_hex(out, at->child[i]->name);
			TRY(put_value(ctx, out, at->child[i], list));
		}
		text_put(out, ends[2 * (at->kind == DOC_OBJECT) + 1]);
		break;
	case DOC_STRING:
		put_hex(out, at->text);
		break;
	case DOC_NUMBER:
		memcpy(&bits, &at->number, sizeof bits);
		text_printf(out, "%016llx", (unsigned long long)bits);
		break;
	default:
		text_put(out, at->kind == DOC_NULL ? "null" : at->flag ? "true" : "false");
		break;
	}
	return OK;
}

static void
print_document(const char *data, size_t size, bool by_entry)
{
	Ctx ctx;
	Text out = { 0 };
	Doc *root;
	DocList list;
	ctx_init(&ctx);
	Status status = by_entry ? doc_read_json_list(&ctx, "list", data, size, "list", &root, &list)
	    : doc_read_json(&ctx, "document", data, size, &root);
	if (status == OK)
		status = put_value(&ctx, &out, root, by_entry ? &list : NULL);
	if (status == OK)
		printf("%s\n", out.data);
	else
		printf("! %s %s\n", status_name(status), ctx.error.text);
	text_free(&out);
	ctx_free(&ctx);
}

int
main(void)
{
	size_t size;
	setlocale(LC_ALL, "");
	while (scanf("%zu", &size) == 1 && getchar() == '\n') {
		char *data = malloc(size + 1);
		if (!data || fread(data, 1, size, stdin) != size)
			return 1;
		/* Without a zero behind it, a byte too many is found by sanitizers alone. */
		char *exact = size ? realloc(data, size) : data;
		if (!exact)
			return 1;
		print_document(exact, size, false);
		print_document(exact, size, true);
		free(exact);
	}
	return 0;
}
