/* Numbers, segments and routes in words. */
#include "view/parts.h"

double
per_cent(double value, bool whole)
{
	return whole ? 100 : value * 100 > 99.99 ? 99.99 : value * 100;
}

void
put_rank(Text *out, const Explained *e, int rank)
{
	text_put(out, e->name[rank]);
	if (e->shows_ranks)
		text_printf(out, " [%d]", rank);
}

static void
put_guess(Text *out, const char *before, Assumed assumed)
{
	static const char *const names[N_LINK_CLASSES] = { [LINK_NVLINK] = "NVLink", [LINK_XGMI] = "xGMI",
		[LINK_C2C] = "NVLink-C2C", [LINK_PCIE] = "PCIe", [LINK_QPI] = "CPU to CPU", [LINK_NET] = "network" };
	bool several = assumed.classes & (assumed.classes - 1);
	int n = 0;
	if (!assumed.classes)
		return;
	text_printf(out, "%s%s", before, assumed.most ? "decided by" : "in part by");
	text_put(out, several ? " assumed links (" : " an assumed link (");
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (assumed.classes >> c & 1)
			text_printf(out, "%s%s", n++ ? ", " : "",
			    c == LINK_QPI && assumed.of_cores ? "rank to CPU" : names[c]);
	text_put(out, assumed.of_cores ? "): blinkc topology --measure measures it"
	    : assumed.classes >> LINK_QPI & 1 ? "): state it with --cpu-link" : ")");
}

void
put_assumed(Text *out, Assumed assumed)
{
	put_guess(out, ", ", assumed);
}

void
put_starred(Text *out, Assumed assumed)
{
	put_guess(out, "*           ", assumed);
	text_put(out, assumed.classes ? "\n" : "");
}

static void
put_span(Text *out, Frac begin, Frac end)
{
	if (begin.num == 0 && frac_cmp(end, FRAC_ONE) == 0)
		return;
	text_printf(out, "%lld/%lld to %lld/%lld of ", (long long)begin.num, (long long)begin.den, (long long)end.num,
	    (long long)end.den);
}

void
put_segment(Text *out, const Explained *e, int tree)
{
	const Schedule *sched = e->sched;
	const Segment *segment = &sched->segment[tree];
	int n = sched->topo->n_ranks;
	int64_t blocks = collective_blocks(sched->coll, n), block;
	Frac begin = segment->offset, end = FRAC_ONE, length = segment->length;
	if (blocks > 1) {
		frac_mul(begin, (Frac){ blocks, 1 }, &begin);
		frac_mul(length, (Frac){ blocks, 1 }, &length);
	}
	block = (int64_t)(begin.num / begin.den);
	begin.num %= begin.den;
	begin = begin.num ? begin : FRAC_ZERO;
	frac_add(begin, length, &end);
	put_span(out, begin, end);
	if (blocks == 1) {
		text_put(out, begin.num == 0 && frac_cmp(end, FRAC_ONE) == 0 ? "all of the buffer" : "the buffer");
	} else if (sched->coll == ALLTOALL) {
		text_printf(out, "the block from %s to ", e->name[block / n]);
		text_put(out, e->name[block % n]);
	} else {
		text_printf(out, "the block of %s", e->name[block]);
	}
}

/* Vertex i of the route, seen from the child. */
static int
vertex_on_route(const Explained *e, const Edge *edge, bool up, int i)
{
	const Link *link = &e->topo->link[edge->link[up ? i : edge->n_links - 1 - i]];
	return up ? link->to : link->from;
}

void
put_route(Text *out, const Explained *e, const Edge *edge, bool up)
{
	const Topology *topo = e->topo;
	unsigned seen = 0;
	bool any = false;
	for (int i = 0; i < edge->n_links; i++) {
		LinkClass class = topo->link[edge->link[up ? i : edge->n_links - 1 - i]].class;
		if (!(seen >> class & 1))
			text_printf(out, seen ? ", %s" : "%s", link_class_name(class));
		seen |= 1u << class;
	}
	for (int i = 0; i < edge->n_links; i++) {
		int v = vertex_on_route(e, edge, up, i);
		if (v < topo->n_ranks)
			continue;
		text_put(out, any ? ", " : " via ");
		text_add(out, e->name[v], device_length(e->name[v]));
		any = true;
	}
	/* An edge may end at a switch, which adds or copies for several edges. */
	int v = vertex_on_route(e, edge, up, edge->n_links - 1);
	if (v >= topo->n_ranks)
		text_put(out, up ? ", which reduces" : ", which multicasts");
}
