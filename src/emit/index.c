/* The index of schedules (blink-index(5)): one line for each entry. */
#include "passes.h"

static void
put_ints(Text *out, const char *name, const int *value, int n)
{
	text_printf(out, "\"%s\":[", name);
	for (int i = 0; i < n; i++) {
		text_put(out, i ? "," : "");
		text_int(out, value[i]);
	}
	text_put(out, "],");
}

static void
put_entry(Text *out, const IndexEntry *entry)
{
	text_put(out, "{");
	put_ints(out, "gpus", entry->gpu, entry->n);
	text_printf(out, "\"collective\":\"%s\",", collective_name(entry->coll));
	text_printf(out, entry->root < 0 ? "\"root\":null,\"file\":" : "\"root\":%d,\"file\":", entry->root);
	text_json(out, entry->file);
	text_put(out, ",");
	put_ints(out, "ranks", entry->rank, entry->n);
	text_put(out, "\"rate\":");
	text_number(out, entry->rate);
	text_put(out, ",\"bound\":");
	text_number(out, entry->bound);
	text_printf(out, ",\"trees\":%d,\"depth\":%d}", entry->trees, entry->depth);
}

void
emit_index(const Index *index, Text *out)
{
	text_put(out, "{\n  \"format\": \"blink-index\",\n  \"version\": 1,\n  \"topology\": {\n    \"name\": ");
	text_json(out, index->name);
	text_put(out, ",\n    \"digest\": ");
	text_json(out, index->digest);
	text_put(out, ",\n    \"gpus\": [");
	for (int g = 0; g < index->n_gpus; g++) {
		text_put(out, g ? ", " : "");
		text_json(out, index->gpu[g]);
	}
	text_put(out, "]\n  },\n  \"schedules\": [\n");
	for (int i = 0; i < index->n_entries; i++) {
		put_entry(out, &index->entry[i]);
		text_put(out, i + 1 < index->n_entries ? ",\n" : "\n");
	}
	text_put(out, "  ]\n}\n");
}
