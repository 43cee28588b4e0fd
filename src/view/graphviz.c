/* Positions by Graphviz. Its library is opened on request, so blinkc needs neither it nor its headers; these few
 * functions of its interface have not changed since Graphviz 2.30. Its input is numbers only, its output the format
 * "plain". */
#include "view/parts.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { DPI = 72 };

struct graphviz {
	void *library;
	void *(*context)(void);
	void *(*read)(const char *text);
	int (*layout)(void *context, void *graph, const char *engine);
	int (*render)(void *context, void *graph, const char *format, char **text, size_t *size);
	void (*free_text)(char *text);
	int (*free_layout)(void *context, void *graph);
	int (*free_graph)(void *graph);
	int (*free_context)(void *context);
	int (*quiet)(int level);
};

/* The address of a function; by memcpy, since C has no cast from a pointer to data to one to a function. */
static bool
find(struct graphviz *g, const char *name, void *function)
{
	void *symbol = dlsym(g->library, name);
	memcpy(function, &symbol, sizeof symbol);
	return symbol;
}

static bool
open_library(struct graphviz *g)
{
	static const char *const names[] = { "libgvc.so.6", "libgvc.so.7", "libgvc.so" };
	for (size_t i = 0; i < sizeof names / sizeof *names && !g->library; i++)
		g->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return g->library && find(g, "gvContext", &g->context) && find(g, "agmemread", &g->read)
	    && find(g, "gvLayout", &g->layout) && find(g, "gvRenderData", &g->render)
	    && find(g, "gvFreeRenderData", &g->free_text)
	    && find(g, "gvFreeLayout", &g->free_layout) && find(g, "agclose", &g->free_graph)
	    && find(g, "gvFreeContext", &g->free_context) && find(g, "agseterr", &g->quiet);
}

static void
put_inches(Text *out, const char *name, double pixels)
{
	text_printf(out, "%s=%d.%02d", name, (int)pixels / DPI, (int)(pixels * 100 / DPI) % 100);
}

static void
put_graph(Text *out, const Layout *layout)
{
	text_put(out,
	    "graph { graph [overlap=false, splines=false, rankdir=TB]; "
	    "node [shape=box, fixedsize=true, label=\"\"];\n");
	for (int p = 0; p < layout->n_spots; p++) {
		text_printf(out, "p%d [", p);
		put_inches(out, "width", layout->spot[p].w + 8);
		put_inches(out, ", height", layout->spot[p].h + 8);
		text_put(out, "];\n");
	}
	for (int c = 0; c < layout->n_cables; c++)
		text_printf(out, "p%d -- p%d;\n", layout->cable[c].a, layout->cable[c].b);
	text_put(out, "}\n");
}

/* Lines "node p3 1.5 2.25 ..." with the middle of a spot, in inches, y upwards. */
static int
read_plain(const char *text, Layout *layout)
{
	int found = 0, p;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		char *end;
		if (strncmp(line, "node p", 6) != 0)
			continue;
		p = (int)strtol(line + 6, &end, 10);
		if (p < 0 || p >= layout->n_spots)
			continue;
		layout->spot[p].x = strtod(end, &end) * DPI;
		layout->spot[p].y = -strtod(end, &end) * DPI;
		found++;
	}
	return found;
}

/* The upper left corner becomes 0, 0. */
static void
fit(Layout *layout)
{
	double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9, widest = 0;
	for (int p = 0; p < layout->n_spots; p++) {
		const Spot *spot = &layout->spot[p];
		left = spot->x < left ? spot->x : left;
		right = spot->x > right ? spot->x : right;
		top = spot->y < top ? spot->y : top;
		bottom = spot->y > bottom ? spot->y : bottom;
		widest = spot->w > widest ? spot->w : widest;
	}
	for (int p = 0; p < layout->n_spots; p++) {
		layout->spot[p].x = layout->spot[p].x - left + widest / 2;
		layout->spot[p].y = layout->spot[p].y - top + 20;
	}
	layout->w = right - left + widest;
	layout->h = bottom - top + 40;
	layout->scale = layout->w > LAYOUT_WIDTH ? LAYOUT_WIDTH / layout->w : 1;
	layout->n_frames = 0;
	for (int c = 0; c < layout->n_cables; c++)
		layout->cable[c].bend = 0;
}

static bool
run(struct graphviz *g, const char *engine, const char *dot, Layout *layout)
{
	char *plain = NULL;
	size_t size = 0;
	bool done = false;
	g->quiet(3);	/* AGMAX: nothing on standard error */
	void *context = g->context(), *graph = context ? g->read(dot) : NULL;
	if (graph && g->layout(context, graph, engine) == 0) {
		done = g->render(context, graph, "plain", &plain, &size) == 0 && plain
		    && read_plain(plain, layout) == layout->n_spots;
		g->free_text(plain);
		g->free_layout(context, graph);
	}
	if (graph)
		g->free_graph(graph);
	if (context)
		g->free_context(context);
	return done;
}

Status
layout_graphviz(Ctx *ctx, const Explained *e, const char *engine, Layout *out)
{
	struct graphviz g = { 0 };
	Text dot = { 0 };
	TRY(layout_own(ctx, e, out));
	/* The library stays open: closing it breaks its plug-ins. */
	if (!open_library(&g))
		return fail(ctx, USAGE, "--layout: %s: libgvc of Graphviz is not installed: want own",
		    engine);
	put_graph(&dot, out);
	bool done = !dot.failed && run(&g, engine, dot.data, out);
	text_free(&dot);
	if (!done)
		return fail(ctx, INTERNAL, "--layout: %s: Graphviz computed no positions", engine);
	fit(out);
	return OK;
}
