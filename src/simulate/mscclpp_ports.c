/* Port channels of a plan of MSCCL++: requests of threadblocks to the proxy of their GPU, one after the other, and then
 * those of each port. */
#include "simulate/mscclpp_run.h"

static void
append(struct requests *to, struct request *request)
{
	if (to->first)
		to->last->next = request;
	else
		to->first = request;
	to->last = request;
}

static void
give_back(struct plan_run *p, struct request *request)
{
	request->next = p->unused;
	p->unused = request;
}

Status
mscclpp_ask_proxy(struct plan_run *p, int t, struct request of)
{
	struct gpu *gpu = &p->gpu[p->of->place[t].gpu];
	struct request *request = p->unused;
	if (request)
		p->unused = request->next;
	else
		TRY(TEMP(p->all.run.ctx, request, 1));
	*request = of;
	append(&gpu->requests, request);
	p->end[of.end].unsent++;
	if (gpu->busy)
		return OK;
	gpu->busy = true;
	return blocks_after(&p->all, p->all.asked->p.step * PS_PER_NS, id_of_proxy(p, p->of->place[t].gpu), NOBODY);
}

Status
mscclpp_send_signal(struct plan_run *p, int end, int64_t latency, int cause)
{
	return blocks_after(&p->all, latency, id_of_end(p, p->of->end[end].other), cause);
}

/* What the port does next; its signals take no time. */
static Status
go_on_port(struct plan_run *p, int e)
{
	struct channel_end *end = &p->end[e];
	int64_t latency = p->latency[p->of->end[e].pair];
	while (!end->moves && end->requests.first) {
		struct request *request = end->requests.first;
		end->requests.first = request->next;
		if (request->hop >= 0 && p->of->plan.hop[request->hop].n_links > 0) {
			bool packets = p->of->transfer[request->hop].packets;
			end->moves = request;
			request->message = blocks_begin(&p->all, request->hop, request->cause, request->unit);
			p->message[request->hop] = request->message;
			blocks_move(&p->all, request->hop, request->message, request->bytes,
			    request->bytes * (packets ? 2 : 1));
			return OK;
		}
		end->unsent--;
		if (request->signals)
			TRY(mscclpp_send_signal(p, e, latency, request->cause));
		give_back(p, request);
	}
	if (end->unsent == 0 && end->flusher >= 0)
		mscclpp_wake(p, end->flusher, p->block[end->flusher].cause);
	return OK;
}

/* The proxy has told a port. */
Status
mscclpp_go_on_proxy(struct plan_run *p, int g)
{
	struct gpu *gpu = &p->gpu[g];
	struct request *request = gpu->requests.first;
	gpu->requests.first = request->next;
	gpu->busy = request->next != NULL;
	request->next = NULL;
	append(&p->end[request->end].requests, request);
	if (gpu->busy)
		TRY(blocks_after(&p->all, p->all.asked->p.step * PS_PER_NS, id_of_proxy(p, g), NOBODY));
	return go_on_port(p, request->end);
}

Status
mscclpp_end_put(struct plan_run *p, int e)
{
	struct channel_end *end = &p->end[e];
	struct request *request = end->moves;
	end->moves = NULL;
	end->unsent--;
	if (end->flusher >= 0 && end->unsent == 0)
		mscclpp_wake(p, end->flusher, request->message);
	if (request->signals)
		TRY(mscclpp_send_signal(p, e, p->latency[p->of->end[e].pair], request->message));
	give_back(p, request);
	return go_on_port(p, e);
}
