/* What a schedule does: the server of each vertex, the load of each link, and which links count in the bound. */
#include "schedule/schedule.h"
#include "view/parts.h"

#include <string.h>

/* ---- servers ---- */

/* A schedule gives servers of GPUs only. Another vertex is in the server of its nearest GPUs, not over the network, if
 * all of them are in one. */
static Status
find_servers(Ctx *ctx, Explained *e)
{
	const Topology *topo = e->topo;
	int *distance, *queue, head = 0, tail = 0;
	TRY(TEMP_EACH(ctx, topo->n_vertices, distance, queue));
	for (int v = 0; v < topo->n_vertices; v++) {
		distance[v] = v < topo->n_ranks ? 0 : -1;
		e->server[v] = v < topo->n_ranks ? topo->vertex[v].node : -1;
		if (v < topo->n_ranks)
			queue[tail++] = v;
		e->n_servers = e->server[v] >= e->n_servers ? e->server[v] + 1 : e->n_servers;
	}
	while (head < tail) {
		int v = queue[head++];
		int n_out = topo->first_out[v + 1] - topo->first_out[v];
		int n_in = topo->first_in[v + 1] - topo->first_in[v];
		for (int i = 0; i < n_out + n_in; i++) {
			bool out = i < n_out;
			const Link *link = &topo->link[out ? topo->out[topo->first_out[v] + i]
			    : topo->in[topo->first_in[v] + i - n_out]];
			int w = out ? link->to : link->from;
			if (link->class == LINK_NET || (distance[w] >= 0 && distance[w] <= distance[v]))
				continue;
			if (distance[w] < 0) {
				distance[w] = distance[v] + 1;
				e->server[w] = e->server[v];
				queue[tail++] = w;
			} else if (e->server[w] != e->server[v]) {
				e->server[w] = -1;
			}
		}
	}
	return OK;
}

/* ---- links ---- */

static Status
find_loads(Ctx *ctx, const char *label, Explained *e)
{
	const Schedule *sched = e->sched;
	const Topology *topo = sched->topo;
	Frac *load, rate;
	TRY(TEMP(ctx, load, topo->n_links));
	TRY(sched_loads(ctx, label, sched, load));
	for (int l = 0; l < topo->n_links; l++) {
		e->load[l] = frac_double(load[l]) * frac_double(sched->achieved) / 1e9;
		/* The rate is the least of the links' rates. A quotient of more bits than a fraction has is not it. */
		e->saturated[l] = load[l].num > 0 && frac_div((Frac){ topo->link[l].capacity, 1 }, load[l], &rate)
		    && frac_cmp(rate, sched->achieved) == 0;
		if (e->saturated[l])
			e->load[l] = explain_capacity(e, l);
	}
	return OK;
}

Status
explain(Ctx *ctx, const char *label, const Schedule *sched, Explained *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = sched->topo;
	Explained *e = out;
	*e = (Explained){ .sched = sched, .topo = topo };
	TRY(NEW(ctx, e->name, topo->n_vertices));
	TRY(NEW(ctx, e->short_name, topo->n_ranks));
	TRY(NEW_EACH(ctx, topo->n_vertices, e->server, e->device));
	TRY(NEW_EACH(ctx, topo->n_links, e->load, e->saturated, e->tight));
	TRY(name_vertices(ctx, e));
	TRY(find_servers(ctx, e));
	TRY(find_loads(ctx, label, e));
	e->counts_entering = sched->bound.part && bound_enters(topo, sched->coll, &sched->bound);
	for (int l = 0; l < topo->n_links; l++)
		e->tight[l] = bound_counts(topo, &sched->bound, e->counts_entering, l);
	arena_release(&ctx->scratch, mark);
	return OK;
}

double
explain_capacity(const Explained *e, int link)
{
	return (double)e->topo->link[link].capacity / 1e9;
}

double
explain_use(const Explained *e, int link)
{
	return e->load[link] / explain_capacity(e, link);
}

double
explain_rate(const Explained *e, int tree)
{
	const Schedule *sched = e->sched;
	double shares = sched->coll == ALLTOALL ? sched->topo->n_ranks : 1;
	return frac_double(sched->segment[tree].length) * shares * frac_double(sched->achieved) / 1e9;
}

Status
parse_trees(Ctx *ctx, const Explained *e, const char *text, bool *chosen)
{
	int n = e->sched->n_segments;
	int64_t tree;
	for (const char *at = text; at; at = strchr(at, ',')) {
		at += *at == ',';
		size_t digits = strspn(at, "0123456789");
		if (digits == 0 || digits > 9 || (at[digits] && at[digits] != ',')
		    || !decimal_parse(at, digits, 1, &tree) || tree >= n)
			return fail(ctx, USAGE, "--tree: %.40s: want numbers of trees, 0 to %d, comma separated",
			    text, n - 1);
		chosen[tree] = true;
	}
	for (int t = 0; t < n && !text; t++)
		chosen[t] = true;
	return OK;
}
