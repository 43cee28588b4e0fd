#include "simulate/blocks.h"

/* Steps that neither send nor receive take less time to simulate than messages. */
enum { PARTS_OF_MESSAGE = 16 };

static Status
too_long(struct blocks *b)
{
	return fail(b->run.ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days", b->name,
	    (long long)b->asked->m);
}

Status
blocks_new(Ctx *ctx, const SimPlan *plan, const char *name, const struct blocks_kind *kind, int n,
    const SimAsk *asked, SimResult *out, struct blocks *b)
{
	int n_links = plan->sched->topo->n_links;
	b->asked = asked;
	b->ask = *asked;
	b->ask.chunk = INT64_MAX;
	b->ask.p.packet_most = 0;
	b->ask.p.at_once = 0;
	b->run = (struct run){ .ctx = ctx, .net = &b->net, .ask = &b->ask, .out = out, .most = INT64_MAX };
	b->kind = kind;
	b->plan = plan;
	b->name = name;
	*out = (SimResult){ .protocol = sim_protocol(plan, &asked->p, asked->m), .last = -1 };
	TRY(NEW_EACH(ctx, n_links, out->moved, out->busy));
	TRY(TEMP_EACH(ctx, n, b->woken, b->is_woken));
	TRY(TEMP(ctx, b->moved, n_links));
	TRY(TEMP(ctx, b->run.hop, plan->n_hops));
	TRY(net_bare(ctx, plan, &b->ask, &b->net));
	return links_new(&b->run);
}

Status
blocks_room(struct blocks *b, Wide messages, Wide steps, const char *cut)
{
	SimResult *out = b->run.out;
	int64_t most = b->asked->steps ? LIMIT_SIM_KEPT : LIMIT_SIM_STEPS;
	if (messages > most)
		return fail(b->run.ctx, LIMIT, "%s: a message of %lld bytes in %s: %s%lld messages to %s: want at most "
		    "%lld, by larger ones", b->name, (long long)b->asked->m, cut, more_than(messages),
		    at_most(messages), b->asked->steps ? "keep" : "simulate", (long long)most);
	if (steps > LIMIT_SIM_STEPS * PARTS_OF_MESSAGE)
		return fail(b->run.ctx, LIMIT, "%s: a message of %lld bytes in %s: %s%lld steps of threadblocks: want "
		    "at most %lld, by larger ones", b->name, (long long)b->asked->m, cut, more_than(steps),
		    at_most(steps), (long long)LIMIT_SIM_STEPS * PARTS_OF_MESSAGE);
	b->run.n_steps = (int64_t)steps;
	if (b->asked->steps)
		TRY(NEW(b->run.ctx, out->step, (size_t)messages));
	return OK;
}

void
blocks_wake(struct blocks *b, int t)
{
	if (!b->is_woken[t])
		b->woken[b->n_woken++] = t;
	b->is_woken[t] = true;
}

Status
blocks_after(struct blocks *b, int64_t wait, int id, int message)
{
	if (wait > SIM_TIME_MOST - b->run.now)
		return too_long(b);
	return events_add(b->run.ctx, &b->run.events, b->run.now, wait, id, message);
}

int
blocks_begin(struct blocks *b, int hop, int cause, int64_t number)
{
	int message = (int)b->run.out->n_steps++;
	if (b->asked->steps)
		b->run.out->step[message] = (SimStep){ .hop = hop, .cause = cause, .chunk = number,
			.begin = b->run.now };
	return message;
}

void
blocks_move(struct blocks *b, int hop, int message, int64_t bytes, int64_t wire)
{
	const SimHop *of = &b->plan->hop[hop];
	b->net.bytes[hop] = wire;
	b->run.active[hop] = (struct active){ .hop = hop, .step = message };
	links_enter(&b->run, hop);
	for (int i = 0; i < of->n_links; i++)
		b->moved[of->link[i]] += bytes;
	if (b->asked->steps)
		b->run.out->step[message].move = b->run.now;
}

void
blocks_end(struct blocks *b, int message)
{
	if (b->asked->steps)
		b->run.out->step[message].end = b->run.now;
}

void
blocks_arrive(struct blocks *b, int message)
{
	if (b->asked->steps)
		b->run.out->step[message].arrive = b->run.now;
	b->run.out->last = message;
}

/* Everything that happens now, until all that is left takes time. */
static Status
happen(struct blocks *b)
{
	int64_t time;
	for (;;) {
		if (b->n_woken) {
			int t = b->woken[--b->n_woken];
			b->is_woken[t] = false;
			TRY(b->kind->go_on(b, t));
		} else if (!run_next_time(&b->run, &time) || time > b->run.now) {
			TRY(run_spend(&b->run, 0));
			return links_share(&b->run);
		} else if (events_time(&b->run.events) == time) {
			TRY(b->kind->happens(b, events_pop(&b->run.events)));
		} else {
			TRY(b->kind->moved(b, links_leave(&b->run)));
		}
	}
}

Status
blocks_run(struct blocks *b, int n)
{
	SimResult *out = b->run.out;
	int64_t time;
	b->run.now = b->asked->p.call * PS_PER_NS;
	for (int t = 0; t < n; t++)
		blocks_wake(b, t);
	TRY(happen(b));
	while (run_next_time(&b->run, &time)) {
		b->run.now = time;
		TRY(happen(b));
	}
	out->time = b->run.now;
	for (int l = 0; l < b->plan->sched->topo->n_links; l++) {
		TRY(links_carried(b->run.ctx, b->name, b->asked->m, b->moved[l], &out->moved[l]));
		out->busy[l] = b->run.link[b->net.link_class[l]].busy;
	}
	return OK;
}
