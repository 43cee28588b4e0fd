/* blinkc list: the topologies that come along. */
#include "base/file.h"
#include "base/json_write.h"
#include "topology/topology.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <string.h>

/* A line of the list. */
struct row {
	const char *name, *path, *what;
	int gpus, servers;
	FastestLinks fastest;
};

/* The first clause of its source: what the machine is. */
static Status
first_clause(Ctx *ctx, const char *source, const char **out)
{
	size_t n = 0;
	while (source && source[n] && source[n] != ';'
	    && !(source[n] == ':' && (source[n + 1] == ' ' || !source[n + 1])))
		n++;
	char *what = arena_text(&ctx->run, source ? source : "", n);
	if (!what)
		return fail_memory(ctx);
	make_printable(what);
	*out = what;
	return OK;
}

/* In a context of its own: a topology may be large, and only its row stays. */
static Status
read_row(Ctx *ctx, const Shipped *one, struct row *row)
{
	Ctx own;
	Text in = { 0 };
	Topology *topo;
	ctx_init(&own);
	Status status = file_read_regular(&own, one->path, &in);
	if (status == OK)
		status = topo_read(&own, one->path, topology_dirs(), in.data ? in.data : "", in.size, &topo);
	text_free(&in);
	if (status == OK) {
		*row = (struct row){ one->name, one->path, NULL, topo->n_ranks, topo->n_nodes,
			topo_fastest_links(topo) };
		status = first_clause(ctx, topo->source, &row->what);
	} else {
		status = fail(ctx, status, "%s", own.error.text);
	}
	ctx_free(&own);
	return status;
}

static void
put_fastest(Text *out, FastestLinks fastest)
{
	text_put(out, link_class_name(fastest.class));
	text_put(out, " ");
	text_gb(out, (Frac){ fastest.capacity, 1 });
}

/* Columns as wide as their widest entries; the last is as long as it is. */
static void
put_table(Text *out, const struct row *row, int n)
{
	int widest = 4;
	for (int i = 0; i < n; i++)
		widest = (int)strlen(row[i].name) > widest ? (int)strlen(row[i].name) : widest;
	text_printf(out, "%-*s  %4s  %7s  %-11s  %s\n", widest, "name", "GPUs", "servers", "GB/s a GPU", "machine");
	for (int i = 0; i < n; i++) {
		Text fastest = { 0 };
		if (row[i].fastest.capacity)
			put_fastest(&fastest, row[i].fastest);
		text_printf(out, "%-*s  %4d  %7d  %-11s  %s\n", widest, row[i].name, row[i].gpus, row[i].servers,
		    fastest.data ? fastest.data : "-", row[i].what);
		text_drop(out, &fastest);
	}
}

static void
put_json(Text *out, const struct row *row, int n)
{
	JsonWriter w = { .out = out };
	json_file(&w, JSON_BLOCK, "blink-list");
	json_array(&w, "topologies", JSON_BLOCK);
	for (int i = 0; i < n; i++) {
		bool any = row[i].fastest.capacity;
		json_object(&w, NULL, JSON_LINE);
		json_string(&w, "name", row[i].name);
		json_string(&w, "file", row[i].path);
		json_int(&w, "gpus", row[i].gpus);
		json_int(&w, "servers", row[i].servers);
		json_string(&w, "links", any ? link_class_name(row[i].fastest.class) : NULL);
		json_gb(&w, "capacity", (Frac){ row[i].fastest.capacity, 1 });
		json_string(&w, "what", row[i].what);
		json_end(&w);
	}
	json_end(&w);
	json_file_end(&w);
}

Status
verb_list(Ctx *ctx, const Options *opt)
{
	const char *format;
	Shipped *shipped;
	struct row *row;
	Text out = { 0 };
	int n;
	TRY(request_format(ctx, opt, LIST, &format));
	if (opt->n_files != 0)
		return fail(ctx, USAGE, "list: %d files: want none", opt->n_files);
	TRY(shipped_list(ctx, &shipped, &n));
	if (n == 0)
		return fail(ctx, IO, "%s: no topologies: want those of the installation", topology_dirs()[0]);
	TRY(NEW(ctx, row, n));
	for (int i = 0; i < n; i++)
		TRY(read_row(ctx, &shipped[i], &row[i]));
	if (strcmp(format, "json") == 0)
		put_json(&out, row, n);
	else
		put_table(&out, row, n);
	return output_text(ctx, opt, OK, &out);
}
