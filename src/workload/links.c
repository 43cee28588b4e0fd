/* Links by the ids of their ends. */
#include "workload/links.h"

#include <stdlib.h>
#include <string.h>

/* Ends and class of a link, and how many of the same come before it, so that each has a name of its own. */
struct named_link {
	const char *from, *to;
	LinkClass class;
	int before, link;
};

static int
order_names(const void *a, const void *b)
{
	const struct named_link *x = a, *y = b;
	int from = strcmp(x->from, y->from), to = strcmp(x->to, y->to);
	if (from || to)
		return from ? from : to;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return (x->before > y->before) - (x->before < y->before);
}

static int
order_links(const void *a, const void *b)
{
	const struct named_link *x = a, *y = b;
	int order = order_names(a, b);
	return order ? order : (x->link > y->link) - (x->link < y->link);
}

/* plx0 of its copies. */
static const char *
without_ending(Ctx *ctx, const char *id)
{
	const char *ending = strrchr(id, ':');
	bool copy = ending && (strcmp(ending, ":out") == 0 || strcmp(ending, ":in") == 0);
	return copy ? arena_text(&ctx->scratch, id, (size_t)(ending - id)) : id;
}

/* Links by the ids of their ends, sorted; those with the same ends and class are counted. */
static Status
name_links(Ctx *ctx, const Topology *topo, bool copies, struct named_link **out)
{
	struct named_link *named;
	TRY(TEMP(ctx, named, topo->n_links));
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		const char *from = topo->vertex[link->from].id, *to = topo->vertex[link->to].id;
		if (copies && link->from >= topo->n_ranks)
			from = without_ending(ctx, from);
		if (copies && link->to >= topo->n_ranks)
			to = without_ending(ctx, to);
		if (!from || !to)
			return fail_memory(ctx);
		named[l] = (struct named_link){ from, to, link->class, 0, l };
	}
	qsort(named, (size_t)topo->n_links, sizeof *named, order_links);
	for (int l = 1; l < topo->n_links; l++) {
		const struct named_link *last = &named[l - 1];
		bool same = strcmp(last->from, named[l].from) == 0 && strcmp(last->to, named[l].to) == 0
		    && last->class == named[l].class;
		named[l].before = same ? last->before + 1 : 0;
	}
	*out = named;
	return OK;
}

Status
link_names(Ctx *ctx, const Topology *topo, LinkNames *out)
{
	struct named_link *named;
	TRY(name_links(ctx, topo, false, &named));
	*out = (LinkNames){ topo->n_links, named };
	return OK;
}

Status
link_names_find(Ctx *ctx, const LinkNames *names, const Topology *topo, int *of)
{
	memset(of, -1, (size_t)topo->n_links * sizeof *of);
	for (int copies = 0; copies < 2; copies++) {
		ArenaMark mark = arena_mark(&ctx->scratch);
		struct named_link *named;
		TRY(name_links(ctx, topo, copies, &named));
		for (int i = 0; i < topo->n_links; i++) {
			const struct named_link *found = bsearch(&named[i], names->link, (size_t)names->n,
			    sizeof *named, order_names);
			if (of[named[i].link] < 0 && found)
				of[named[i].link] = found->link;
		}
		arena_release(&ctx->scratch, mark);
	}
	return OK;
}
