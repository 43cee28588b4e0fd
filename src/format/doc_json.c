/* JSON documents to Doc, by cJSON.
 *
 * cJSON takes more than JSON (01, 1., control characters, any byte up to a blank as white space, \u0000 as the end of a
 * string), recurses, rounds large integers, and returns NULL for an invalid file as it does without memory. So the text
 * is checked first, which takes neither memory nor stack. If cJSON then returns NULL, memory ran out. Numbers are read
 * from their digits, in the order of the file. */
#include "format/doc.h"
#include "format/json_reader.h"

#include <cjson/cJSON.h>
#include <string.h>

static Status
copy_text(const JsonReader *r, const char *text, const char *like, const char **out)
{
	bool same = like && strcmp(like, text) == 0;
	*out = same ? like : arena_text(r->texts, text, strlen(text));
	return *out ? OK : fail_memory(r->ctx);
}

/* The next number of the text, which has one. */
static Status
fill_number(JsonReader *r, Doc *to)
{
	while (!json_is_digit(*r->at) && *r->at != '-')
		if (*r->at++ == '"')
			for (; *r->at++ != '"';)
				r->at += r->at[-1] == '\\';
	size_t length = doc_number_length(r->at, (size_t)(r->end - r->at));
	r->at += length;
	return json_read_number(r, r->at - length, length, to);
}

static Status fill(JsonReader *r, const cJSON *from, Doc *to);

/* Recurses as deep as the check allowed: LIMIT_DEPTH. In an array, objects with equal keys share them. */
static Status
fill_children(JsonReader *r, const cJSON *from, Doc *to)
{
	Doc *children;
	const Doc *of = to->parent, *like = of && of->kind == DOC_ARRAY && to->index ? of->child[to->index - 1] : NULL;
	to->kind = cJSON_IsObject(from) ? DOC_OBJECT : DOC_ARRAY;
	int n = cJSON_GetArraySize(from), i = 0;
	TRY(TEMP(r->ctx, to->child, n));
	TRY(TEMP(r->ctx, children, n));
	for (const cJSON *item = from->child; item; item = item->next, i++) {
		bool known = like && like->kind == DOC_OBJECT && i < like->n;
		children[i] = (Doc){ .parent = to, .index = i };
		to->child[to->n++] = &children[i];
		if (item->string)
			TRY(copy_text(r, item->string, known ? like->child[i]->name : NULL, &children[i].name));
		TRY(fill(r, item, &children[i]));
	}
	return to->kind == DOC_OBJECT ? doc_check_unique(r->ctx, r->label, to) : OK;
}

static Status
fill(JsonReader *r, const cJSON *from, Doc *to)
{
	if (cJSON_IsObject(from) || cJSON_IsArray(from))
		return fill_children(r, from, to);
	if (cJSON_IsNumber(from))
		return fill_number(r, to);
	to->kind = cJSON_IsString(from) ? DOC_STRING : cJSON_IsBool(from) ? DOC_BOOL : DOC_NULL;
	to->flag = cJSON_IsTrue(from);
	return to->kind == DOC_STRING ? copy_text(r, from->valuestring, NULL, &to->text) : OK;
}

/* cJSON and strtod read the decimal point of the locale: this thread parses in the C locale, which takes no memory. */
Status
doc_read_json(Ctx *ctx, const char *label, const char *data, size_t size, Doc **out)
{
	JsonReader r;
	Doc *root;
	TRY(json_check(ctx, label, data, size, (const char *const[DOC_LISTS]){ NULL }, &r));
	TRY(TEMP(ctx, root, 1));
	r.texts = &ctx->run;
	r.c = newlocale(LC_ALL_MASK, "C", NULL);
	if (!r.c)
		return fail_memory(ctx);
	locale_t before = uselocale(r.c);
	cJSON *json = cJSON_ParseWithLength(r.at, (size_t)(r.end - r.at));
	Status status = json ? fill(&r, json, root) : fail_memory(ctx);
	cJSON_Delete(json);
	uselocale(before);
	freelocale(r.c);
	if (status == OK)
		*out = root;
	return status;
}
