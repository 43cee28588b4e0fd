/* Hierarchies as JSON (schemas/hierarchy.schema.json). */
#include "base/json_write.h"
#include "verb/hierarchy/hierarchies.h"

#include <math.h>

static void
put_row(JsonWriter *w, const char *name, const HierarchyRow *row)
{
	json_object(w, name, JSON_LINE);
	if (row->layers.n > 0)
		json_ints(w, "layers", row->layers.size, row->layers.n);
	if (row->layers.n > 0)
		json_ps(w, "cost_us", row->cost);
	json_ps(w, "simulated_us", row->simulated);
	json_end(w);
}

static void
put_fit(JsonWriter *w, const HierarchyFit *fit)
{
	if (fit->n == 0) {
		json_null(w, "fit");
		return;
	}
	json_object(w, "fit", JSON_BLOCK);
	json_int(w, "measurements", fit->n);
	json_array(w, "fitted", JSON_LINE);
	for (const HierarchyParameter *row = hierarchy_parameters; row->name; row++)
		if (fit->fitted[row - hierarchy_parameters])
			json_string(w, NULL, row->name);
	json_end(w);
	json_number(w, "rms", floor(fit->rms * 1e6 + 0.5) / 1e6);
	json_number(w, "worst", floor(fabs(fit->worst) * 1e6 + 0.5) / 1e6);
	json_int(w, "worst_line", fit->line);
	json_end(w);
}

static void
put_rates(JsonWriter *w, const HierarchyMachine *machine)
{
	int n = machine->n_sizes;
	json_array(w, "rates", JSON_ROWS);
	for (int i = 0; i < n; i++)
		for (int j = i + 1; j < n; j++)
			if (machine->rate[i * n + j] > 0) {
				json_object(w, NULL, JSON_LINE);
				json_int(w, "from", machine->size[i]);
				json_int(w, "to", machine->size[j]);
				json_gb(w, "rate", (Frac){ machine->rate[i * n + j], 1 });
				json_end(w);
			}
	json_end(w);
}

void
hierarchies_json(const Hierarchies *h, Text *out)
{
	JsonWriter w = { .out = out };
	HierarchyCost cost = h->model.cost;
	json_file(&w, JSON_BLOCK, "blink-hierarchies");
	json_string(&w, "topology", h->machine->name);
	json_int(&w, "ranks", h->model.machine->n_ranks);
	json_int(&w, "server_ranks", h->model.machine->server);
	json_int64(&w, "bytes", h->model.m);
	json_object(&w, "cost", JSON_BLOCK);
	for (const HierarchyParameter *row = hierarchy_parameters; row->name; row++)
		json_number(&w, row->name, (double)*hierarchy_parameter(&cost, row) / (double)row->unit);
	json_end(&w);
	put_fit(&w, &h->fit);
	json_bool(&w, "exhaustive", h->exhaustive);
	json_int64(&w, "tried", h->tried);
	json_string(&w, "executor", h->simulate ? executor_names.name[h->executor] : NULL);
	json_array(&w, "hierarchies", JSON_ROWS);
	for (int i = 0; i < h->n_rows; i++)
		put_row(&w, NULL, &h->row[i]);
	json_end(&w);
	put_row(&w, "ring", &h->ring);
	put_row(&w, "trees", &h->trees);
	json_ps(&w, "least_us", h->least);
	put_rates(&w, h->model.machine);
	json_file_end(&w);
}
