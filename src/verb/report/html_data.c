/* The data that the script of the page reads, as JSON that a script element may hold. Members have short names and
 * arrays are flat, since there may be a million numbers. */
#include "verb/report/report.h"

/* An array of numbers; edges as src, dst, number of links, links. */
static void
put_edges(JsonWriter *w, const char *name, const Edge *edge, int n)
{
	if (!n)
		return;
	json_array(w, name, JSON_TIGHT);
	for (int e = 0; e < n; e++) {
		json_int(w, NULL, edge[e].src);
		json_int(w, NULL, edge[e].dst);
		json_int(w, NULL, edge[e].n_links);
		for (int l = 0; l < edge[e].n_links; l++)
			json_int(w, NULL, edge[e].link[l]);
	}
	json_end(w);
}

static void
put_tree(JsonWriter *w, const Segment *segment)
{
	json_object(w, NULL, JSON_TIGHT);
	json_frac(w, "o", segment->offset);
	json_frac(w, "l", segment->length);
	json_int(w, "r", segment->tree.root);
	put_edges(w, "u", segment->tree.up, segment->tree.n_up);
	put_edges(w, "d", segment->tree.down, segment->tree.n_down);
	if (segment->n_to)
		json_ints(w, "to", segment->to, segment->n_to);
	json_end(w);
}

/* The certificate: the part of each vertex, or the price of each link; and the arithmetic from it to the bound. */
static void
put_proof(JsonWriter *w, const Explained *e)
{
	const Bound *bound = &e->sched->bound;
	bool parts = bound->kind == CERTIFICATE_CUT || bound->kind == CERTIFICATE_PARTITION;
	Text why = { 0 };
	json_string(w, "k", certificate_name(bound->kind));
	json_array(w, "proof", JSON_TIGHT);
	for (int i = 0; i < (parts ? e->sched->topo->n_vertices : e->sched->topo->n_links); i++) {
		if (parts)
			json_int(w, NULL, bound->part[i]);
		else
			json_frac(w, NULL, bound->price[i]);
	}
	json_end(w);
	put_arithmetic(&why, e);
	json_string(w, "why", why.data ? why.data : "");
	json_string(w, "claim", bound_claim(bound, e->sched->coll));
	text_drop(w->out, &why);
}

/* The middle of each vertex in a picture; nothing if the picture would leave vertices out. */
static void
put_layout(JsonWriter *w, const Topology *topo, const Layout *layout)
{
	if (layout->aggregated || layout->left_out)
		return;
	for (int v = 0; v < topo->n_vertices; v++)
		if (layout->spot_of[v] < 0)
			return;
	json_array(w, "at", JSON_TIGHT);
	for (int v = 0; v < topo->n_vertices; v++) {
		const Spot *spot = &layout->spot[layout->spot_of[v]];
		json_int(w, NULL, (int)(spot->x + 0.5));
		json_int(w, NULL, (int)(spot->y + 0.5));
	}
	json_end(w);
}

static void
put_links(JsonWriter *w, const Topology *topo)
{
	json_array(w, "link", JSON_TIGHT);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		json_int(w, NULL, link->from);
		json_int(w, NULL, link->to);
		json_int(w, NULL, (int)link->class);
		json_gb(w, NULL, (Frac){ link->capacity, 1 });
	}
	json_end(w);
}

void
html_schedule(const Explained *e, const Layout *layout, Text *out)
{
	const Schedule *sched = e->sched;
	const Topology *topo = sched->topo;
	JsonWriter w = { .out = out, .in_script = true };
	json_object(&w, NULL, JSON_TIGHT);
	json_int(&w, "c", (int)sched->coll);
	json_int(&w, "root", sched->root);
	json_int(&w, "n", topo->n_ranks);
	json_gb(&w, "x", sched->achieved);
	json_gb(&w, "b", sched->bound.rate);
	if (bound_assumed(topo, sched->coll, &sched->bound).classes)
		json_bool(&w, "guess", true);
	json_array(&w, "ring", JSON_TIGHT);
	for (int i = 0; i < sched->n_baselines; i++) {
		json_string(&w, NULL, sched->baseline[i].name);
		json_number(&w, NULL, sched->baseline[i].rate);
	}
	json_end(&w);
	json_array(&w, "gpu", JSON_TIGHT);
	for (int v = 0; v < topo->n_vertices; v++)
		json_string(&w, NULL, topo->vertex[v].id);
	json_end(&w);
	put_links(&w, topo);
	put_layout(&w, topo, layout);
	put_proof(&w, e);
	json_array(&w, "tree", JSON_TIGHT);
	for (int t = 0; t < sched->n_segments; t++)
		put_tree(&w, &sched->segment[t]);
	json_end(&w);
	json_end(&w);
}

/* "0,1;0,2": as one string, a list of lists parses five times as fast. */
static void
put_lists(JsonWriter *w, const char *name, const PageList *list, int n)
{
	json_value(w, name);
	text_put(w->out, "\"");
	for (int i = 0; i < n; i++) {
		text_put(w->out, i ? ";" : "");
		html_gpus(w->out, list[i].value, list[i].n, false);
	}
	text_put(w->out, "\"");
}

/* A number for each job, by series: its set, order or file, as the difference from that of the previous job. */
static void
put_column(JsonWriter *w, const Page *page, const char *name, size_t of)
{
	int last = 0;
	json_array(w, name, JSON_TIGHT);
	for (int s = 0; s < page->n_series; s++) {
		const PageSeries *series = &page->series[s];
		const int *value = *(int *const *)((const char *)series + of);
		for (int i = 0; i < series->index->n_entries; i++) {
			json_int(w, NULL, value[i] - last);
			last = value[i];
		}
	}
	json_end(w);
}

static void
put_file_names(JsonWriter *w, const Page *page)
{
	json_array(w, "file", JSON_TIGHT);
	for (int f = 0; f < page->n_files; f++) {
		json_new_line(w);
		json_array(w, NULL, JSON_TIGHT);
		json_int(w, NULL, page->file[f].series);
		json_int(w, NULL, page->file[f].facts.depth);
		json_string(w, NULL, page->file[f].path);
		json_end(w);
	}
	json_end(w);
}

static void
put_vocabulary(JsonWriter *w, const Page *page)
{
	json_names(w, "collective", collective_names, ~0u);
	json_names(w, "linkClass", link_class_names, ~0u);
	json_array(w, "series", JSON_LINE);
	for (int s = 0; s < page->n_series; s++)
		json_string(w, NULL, page->series[s].label);
	json_end(w);
	json_array(w, "gpu", JSON_LINE);
	for (int g = 0; g < page->n_gpus; g++)
		json_string(w, NULL, page->gpu[g]);
	json_end(w);
}

void
html_data(const Page *page, const Text *drawings, Text *out)
{
	JsonWriter w = { .out = out, .in_script = true };
	json_object(&w, NULL, JSON_ROWS);
	put_vocabulary(&w, page);
	put_lists(&w, "set", page->set, page->n_sets);
	put_lists(&w, "order", page->order, page->n_orders);
	put_column(&w, page, "jobSet", offsetof(PageSeries, set));
	put_column(&w, page, "jobOrder", offsetof(PageSeries, order));
	put_column(&w, page, "jobFile", offsetof(PageSeries, file));
	put_file_names(&w, page);
	html_times_data(&w, page);
	json_value(&w, "schedule");
	text_add(out, drawings->data, drawings->size);
	json_end(&w);
}
