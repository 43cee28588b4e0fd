/* What changed between the machines of two schedules: GPUs, switches, and links, which are matched by their ends and
 * class. */
#include "verb/diff/diff.h"

#include <stdlib.h>
#include <string.h>

/* ---- links ---- */

struct numbered {	/* a link of one of the two */
	const Topology *topo;
	int link, *number;
};

static int
vertex_order(const Topology *a, int v, const Topology *b, int w)
{
	bool rank = v < a->n_ranks, other = w < b->n_ranks;
	if (rank && other)
		return (v > w) - (v < w);
	return rank != other ? (rank ? -1 : 1) : strcmp(a->vertex[v].id, b->vertex[w].id);
}

/* By ends and class. */
static int
link_order(const struct numbered *a, const struct numbered *b)
{
	const Link *l = &a->topo->link[a->link], *m = &b->topo->link[b->link];
	int order = vertex_order(a->topo, l->from, b->topo, m->from);
	order = order ? order : vertex_order(a->topo, l->to, b->topo, m->to);
	return order ? order : (l->class > m->class) - (l->class < m->class);
}

/* Links of the same ends and class by capacity and latency, so that their numbers make no difference. */
static int
by_link(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	const Link *l = &x->topo->link[x->link], *m = &y->topo->link[y->link];
	int order = link_order(x, y);
	order = order ? order : (l->capacity > m->capacity) - (l->capacity < m->capacity);
	order = order ? order : (l->latency > m->latency) - (l->latency < m->latency);
	return order ? order : (x->link > y->link) - (x->link < y->link);
}

static void
sort_links(const Topology *topo, int *number, struct numbered *end)
{
	for (int l = 0; l < topo->n_links; l++)
		end[l] = (struct numbered){ topo, l, number };
	qsort(end, (size_t)topo->n_links, sizeof *end, by_link);
}

Status
diff_links(Ctx *ctx, const Topology *old, const Topology *new, int *old_number, int *new_number)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct numbered *a, *b;
	TRY(TEMP(ctx, a, old->n_links));
	TRY(TEMP(ctx, b, new->n_links));
	sort_links(old, old_number, a);
	sort_links(new, new_number, b);
	for (int i = 0, j = 0, n = 0; i < old->n_links || j < new->n_links; n++) {
		int order = i == old->n_links ? 1 : j == new->n_links ? -1 : link_order(&a[i], &b[j]);
		if (order <= 0) {
			old_number[a[i].link] = n;
			i++;
		}
		if (order >= 0) {
			new_number[b[j].link] = n;
			j++;
		}
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- topology ---- */

static const Difference of_topology = { .kind = DIFF_TOPOLOGY, .old_tree = -1, .new_tree = -1 };

static void
put_link_name(Text *text, const Topology *topo, const Link *link)
{
	text_put(text, "link ");
	put_vertex_name(text, topo, link->from);
	text_put(text, " -> ");
	put_vertex_name(text, topo, link->to);
	text_printf(text, ", %s", link_class_name(link->class));
}

static void
put_link_json(Text *text, const Topology *topo, const Link *link)
{
	text_put(text, "{ \"from\": ");
	link->from < topo->n_ranks ? text_int(text, link->from) : text_json(text, topo->vertex[link->from].id);
	text_put(text, ", \"to\": ");
	link->to < topo->n_ranks ? text_int(text, link->to) : text_json(text, topo->vertex[link->to].id);
	text_printf(text, ", \"class\": \"%s\", \"capacity\": ", link_class_name(link->class));
	text_gb(text, (Frac){ link->capacity, 1 });
	text_put(text, ", \"latency\": ");
	text_us(text, link->latency);
	text_put(text, " }");
}

/* was, is: either may be NULL; link: one that is not, in topo. */
static Status
diff_link(Ctx *ctx, const Topology *old, const Link *was, const Topology *new, const Link *is, const Topology *topo,
    const Link *link, Differences *list)
{
	Text text = { 0 }, a = { 0 }, b = { 0 };
	if (was && is && was->capacity == is->capacity && was->latency == is->latency)
		return OK;
	put_link_name(&text, topo, link);
	text_put(&text, !is ? ": removed, had " : !was ? ": added, has " : ": ");
	bool capacity = !was || !is || was->capacity != is->capacity;
	if (capacity) {
		text_gb(&text, (Frac){ link->capacity, 1 });
		text_put(&text, " GB/s");
	}
	if (capacity && was && is) {
		text_put(&text, ", was ");
		text_gb(&text, (Frac){ was->capacity, 1 });
		text_put(&text, " GB/s");
	}
	if (was && is && was->latency != is->latency) {
		text_put(&text, capacity ? "; latency " : "latency ");
		text_us(&text, is->latency);
		text_put(&text, " us, was ");
		text_us(&text, was->latency);
		text_put(&text, " us");
	}
	if (was)
		put_link_json(&a, old, was);
	if (is)
		put_link_json(&b, new, is);
	return difference_put(ctx, list, of_topology, &text, was ? &a : NULL, is ? &b : NULL);
}

static Status
diff_all_links(Ctx *ctx, const Topology *old, const Topology *new, const int *old_number, const int *new_number,
    Differences *list)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int n = old->n_links + new->n_links;
	const Link **was, **is;
	TRY(TEMP_EACH(ctx, n, was, is));
	for (int l = 0; l < old->n_links; l++)
		was[old_number[l]] = &old->link[l];
	for (int l = 0; l < new->n_links; l++)
		is[new_number[l]] = &new->link[l];
	for (int i = 0; i < n; i++) {
		const Link *link = is[i] ? is[i] : was[i];
		if (link)
			TRY(diff_link(ctx, old, was[i], new, is[i], is[i] ? new : old, link, list));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

static Status
diff_rank(Ctx *ctx, const Topology *old, const Topology *new, int r, Differences *list)
{
	const Vertex *was = r < old->n_ranks ? &old->vertex[r] : NULL, *is = r < new->n_ranks ? &new->vertex[r] : NULL;
	const char *server = was && was->node >= 0 ? old->node[was->node] : "",
	    *other = is && is->node >= 0 ? new->node[is->node] : "";
	Text text = { 0 }, a = { 0 }, b = { 0 };
	if (was && is && strcmp(was->id, is->id) == 0 && strcmp(server, other) == 0)
		return OK;
	text_printf(&text, is ? "rank %d is %s of %s" : "rank %d was removed", r, is ? is->id : "", other);
	text_printf(&text, was ? ", was %s of %s" : ", added", was ? was->id : "", server);
	if (was)
		text_json(&a, was->id);
	if (is)
		text_json(&b, is->id);
	return difference_put(ctx, list, of_topology, &text, was ? &a : NULL, is ? &b : NULL);
}

static const char *
ability(const Vertex *v)
{
	if (v->multicast)
		return v->reduce ? "multicasts and reduces" : "multicasts";
	return v->reduce ? "reduces" : "forwards only";
}

static int
by_id(const void *a, const void *b)
{
	return strcmp((*(const Vertex *const *)a)->id, (*(const Vertex *const *)b)->id);
}

static Status
sort_switches(Ctx *ctx, const Topology *topo, const Vertex ***out, int *n)
{
	*n = topo->n_vertices - topo->n_ranks;
	TRY(TEMP(ctx, *out, *n));
	for (int i = 0; i < *n; i++)
		(*out)[i] = &topo->vertex[topo->n_ranks + i];
	qsort(*out, (size_t)*n, sizeof **out, by_id);
	return OK;
}

/* Of switches that both have: those of a switch that is gone or new show as links. */
static Status
diff_switches(Ctx *ctx, const Topology *old, const Topology *new, Differences *list)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Vertex **was, **is;
	int n_was, n_is;
	TRY(sort_switches(ctx, old, &was, &n_was));
	TRY(sort_switches(ctx, new, &is, &n_is));
	for (int i = 0, j = 0; i < n_was && j < n_is;) {
		int order = by_id(&was[i], &is[j]);
		if (order == 0 && (was[i]->multicast != is[j]->multicast || was[i]->reduce != is[j]->reduce)) {
			Text text = { 0 }, a = { 0 }, b = { 0 };
			text_printf(&text, "switch %s: %s, was: %s", is[j]->id, ability(is[j]), ability(was[i]));
			text_json(&a, ability(was[i]));
			text_json(&b, ability(is[j]));
			TRY(difference_put(ctx, list, of_topology, &text, &a, &b));
		}
		i += order <= 0;
		j += order >= 0;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
diff_topologies(Ctx *ctx, const Topology *old, const Topology *new, const int *old_number, const int *new_number,
    Differences *list)
{
	enum { SHORT = 19 };	/* "sha256:" and 12 digits */
	if (strcmp(old->digest, new->digest) != 0) {
		Text text = { 0 }, a = { 0 }, b = { 0 };
		text_put(&text, "machine ");
		text_short(&text, new->name, 60);
		text_put(&text, " ");
		text_short(&text, new->digest, SHORT);
		text_put(&text, ", was ");
		text_short(&text, old->name, 60);
		text_put(&text, " ");
		text_short(&text, old->digest, SHORT);
		text_json(&a, old->digest);
		text_json(&b, new->digest);
		TRY(difference_put(ctx, list, of_topology, &text, &a, &b));
	}
	for (int r = 0; r < old->n_ranks || r < new->n_ranks; r++)
		TRY(diff_rank(ctx, old, new, r, list));
	TRY(diff_switches(ctx, old, new, list));
	return diff_all_links(ctx, old, new, old_number, new_number, list);
}
