/* Links of a simulated schedule: their names, and how far they are in use. */
#include "schedule/schedule.h"
#include "verb/simulate/simulation.h"

void
put_link(Text *out, const Topology *topo, int link)
{
	int end[2] = { topo->link[link].from, topo->link[link].to };
	for (int i = 0; i < 2; i++) {
		const Vertex *v = &topo->vertex[end[i]];
		text_put(out, i ? " -> " : "");
		if (topo->n_nodes > 1 && v->node >= 0) {
			text_printable(out, topo->node[v->node]);
			text_put(out, ":");
		}
		text_printable(out, v->id);
	}
}

/* Packets are told apart from what else goes by memory or port channels. */
static void
put_transfer(Text *out, const SimMscclpp *plan, int transfer)
{
	const MscclppTransfer *of = &plan->transfer[transfer];
	const MscclppBlock *b = plan->place[of->block].block;
	const MscclppOp *op = &b->op[of->op];
	text_printf(out, "tb %d op %d %s, %s%s", b->id, of->op, mscclpp_ops[op->kind].name,
	    op->type < 0 ? "" : mscclpp_channels[op->type], of->packets ? " packets" : "");
}

void
put_hop(Text *out, const Simulation *s, const SimHop *hop)
{
	if (s->program && s->program->mscclpp)
		put_transfer(out, s->program->mscclpp, hop->edge);
	else if (s->program)
		text_printf(out, "channel %d", hop->edge);
	else
		text_printf(out, "tree %d %s", hop->segment, hop->up ? "up" : "down");
}

const char *
what_moves(const Simulation *s)
{
	return s->program ? "message" : "chunk";
}

double
link_use(const Simulation *s, const SimRow *row, int link)
{
	double most = (double)s->plan->sched->topo->link[link].capacity * (double)row->result.time / 1e12;
	return most > 0 ? (double)row->result.moved[link] / most : 0;
}

unsigned
assumed_latency(const Simulation *s)
{
	unsigned classes = sched_without_latency(s->plan->sched);
	for (int c = 0; c < N_LINK_CLASSES; c++)
		if (s->p.latency[c] == 0)
			classes &= ~(1u << c);
	return classes;
}
