/* Simulated times as JSON (schemas/simulate.schema.json): an entry for each size. */
#include "base/json_write.h"
#include "verb/simulate/simulation.h"

void
simulation_parameters(JsonWriter *w, const char *name, const SimParameters *p)
{
	json_object(w, name, JSON_BLOCK);
	for (const SimParameter *row = sim_parameters; row->name; row++) {
		int64_t value = *(const int64_t *)((const char *)p + row->at);
		if (row->unit == NS_PER_US)
			json_us(w, row->name, value);
		else if (row->unit == BYTES_PER_GB)
			json_gb(w, row->name, (Frac){ value, 1 });
		else
			json_int64(w, row->name, value);
	}
	json_object(w, "efficiency", JSON_LINE);
	for (int c = 0; c < N_LINK_CLASSES; c++)
		json_number(w, link_class_name(c), (double)p->efficiency[c] / (double)PPM);
	json_end(w);
	json_object(w, "latency", JSON_LINE);
	for (int c = 0; c < N_LINK_CLASSES; c++)
		json_us(w, link_class_name(c), p->latency[c]);
	json_end(w);
	json_end(w);
}

static void
put_msccl(JsonWriter *w, const SimMsccl *program)
{
	json_object(w, "msccl", JSON_LINE);
	json_string(w, "protocol", program->algo->protocol);
	json_int(w, "channels", program->algo->n_channels);
	json_int(w, "threadblocks", program->plan.n_hops);
	json_int(w, "slots", program->slots);
	json_end(w);
}

static void
put_mscclpp(JsonWriter *w, const SimMscclpp *plan)
{
	json_object(w, "mscclpp", JSON_LINE);
	json_string(w, "protocol", plan->of->protocol);
	json_int(w, "threadblocks", plan->n_blocks);
	json_end(w);
}

static void
put_links(JsonWriter *w, const Simulation *s, const SimRow *row)
{
	const Topology *topo = s->plan->sched->topo;
	json_array(w, "links", JSON_ROWS);
	for (int l = 0; l < topo->n_links; l++) {
		if (!row->result.moved[l])
			continue;
		json_object(w, NULL, JSON_LINE);
		json_int(w, "link", l);
		json_int64(w, "bytes", row->result.moved[l]);
		json_ps(w, "busy_us", row->result.busy[l]);
		json_number(w, "use", link_use(s, row, l));
		json_end(w);
	}
	json_end(w);
}

static void
put_row(JsonWriter *w, const Simulation *s, const SimRow *row)
{
	json_object(w, NULL, JSON_BLOCK);
	json_int64(w, "bytes", row->m);
	json_int64(w, "time_ps", row->result.time);
	json_int64(w, "least_ps", row->least);
	json_gb(w, "algbw", row->algorithm);
	json_gb(w, "busbw", row->bus);
	json_int64(w, "chunk", row->result.chunk);
	json_int64(w, "chunks", row->result.n_chunks);
	json_int64(w, "steps", row->result.n_steps);
	if (row->result.limited)
		json_bool(w, "limited", true);
	json_bool(w, "packets", row->result.protocol == SIM_PACKETS);
	json_bool(w, "lines", row->result.protocol == SIM_LINES);
	json_rank(w, "bottleneck", row->bottleneck);
	put_links(w, s, row);
	json_end(w);
}

void
simulation_json(const Simulation *s, Text *out)
{
	JsonWriter w = { .out = out };
	const Schedule *sched = s->plan->sched;
	json_file(&w, JSON_BLOCK, "blink-simulation");
	json_string(&w, "topology", sched->topo->name);
	json_string(&w, "collective", collective_name(sched->coll));
	json_string(&w, "algorithm", sched->algorithm);
	json_int(&w, "ranks", sched->topo->n_ranks);
	json_int64(&w, "trees", sched_trees(sched));
	if (s->plan->too_large)
		json_bool(&w, "at_least", true);
	if (s->program && s->program->msccl)
		put_msccl(&w, s->program->msccl);
	if (s->program && s->program->mscclpp)
		put_mscclpp(&w, s->program->mscclpp);
	json_gb(&w, "bound", sched->bound.rate);
	json_string(&w, "executor", executor_names.name[s->executor]);
	simulation_parameters(&w, "parameters", &s->p);
	json_names(&w, "assumed_latency", link_class_names, assumed_latency(s));
	json_array(&w, "sizes", JSON_BLOCK);
	for (int i = 0; i < s->n_rows; i++)
		put_row(&w, s, &s->row[i]);
	json_end(&w);
	json_file_end(&w);
}
