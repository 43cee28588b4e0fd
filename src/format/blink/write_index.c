/* The index of schedules (blink-index(5)): one line for each entry. */
#include "base/json_write.h"
#include "format/format.h"
#include "topology/topology.h"

#include <inttypes.h>
#include <stdio.h>

static void
put_topology(JsonWriter *w, const Index *index)
{
	json_object(w, "topology", JSON_BLOCK);
	json_string(w, "name", index->name);
	json_string(w, "digest", index->digest);
	if (index->without)
		json_string(w, "without", index->without);
	if (index->n_others > 0) {
		json_array(w, "isomorphic", JSON_ROWS);
		for (int i = 0; i < index->n_others; i++)
			json_string(w, NULL, index->other[i]);
		json_end(w);
	}
	if (index->links)
		json_names(w, "links", link_class_names, index->links);
	if (index->routes != ROUTES_CHOSEN)
		json_string(w, "routes", index->routes == ROUTES_PAIR ? "pair" : "any");
	json_array(w, "gpus", JSON_LINE);
	for (int g = 0; g < index->n_gpus; g++)
		json_string(w, NULL, index->gpu[g]);
	json_end(w);
	json_end(w);
}

static void
put_changes(JsonWriter *w, const Index *index)
{
	if (index->n_changes == 0)
		return;
	json_array(w, "changes", JSON_ROWS);
	for (int i = 0; i < index->n_changes; i++) {
		json_object(w, NULL, JSON_TIGHT);
		json_string(w, "without", index->change[i].without);
		json_string(w, "digest", index->change[i].digest);
		json_string(w, "index", index->change[i].file);
		json_end(w);
	}
	json_end(w);
}

static void
put_entry(JsonWriter *w, const IndexEntry *entry)
{
	json_object(w, NULL, JSON_TIGHT);
	json_ints(w, "gpus", entry->gpu, entry->n);
	json_string(w, "collective", collective_name(entry->coll));
	json_rank(w, "root", entry->root);
	if (entry->sized) {
		json_array(w, "bytes", JSON_TIGHT);
		json_int64(w, NULL, entry->from);
		json_int64(w, NULL, entry->to);
		json_end(w);
	}
	json_string(w, "file", entry->file);
	json_ints(w, "ranks", entry->rank, entry->n);
	json_number(w, "rate", entry->rate);
	json_number(w, "bound", entry->bound);
	json_int(w, "trees", entry->trees);
	json_int(w, "depth", entry->depth);
	if (entry->form) {
		char digits[20];
		snprintf(digits, sizeof digits, "%016" PRIx64, entry->form);
		json_string(w, "form", digits);
	}
	if (entry->n_baselines) {
		json_object(w, "baselines", JSON_TIGHT);
		for (int i = 0; i < entry->n_baselines; i++)
			json_number(w, entry->baseline[i].name, entry->baseline[i].rate);
		json_end(w);
	}
	json_end(w);
}

void
index_write(const Index *index, Text *out)
{
	JsonWriter w = { .out = out };
	json_file(&w, JSON_BLOCK, "blink-index");
	put_topology(&w, index);
	put_changes(&w, index);
	if (index->machine) {
		json_value(&w, "machine");
		topo_canonical_text(index->machine, out);
	}
	json_array(&w, "schedules", JSON_ROWS);
	for (int i = 0; i < index->n_entries; i++)
		put_entry(&w, &index->entry[i]);
	json_end(&w);
	json_file_end(&w);
}
