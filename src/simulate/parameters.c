/* What is known of executors, as data: the lists are in simulate.h. */
#include "simulate/simulate.h"

#include <string.h>

static const char *const names[] = { EXECUTOR_LIST(ROW_TEXT) };
const Names executor_names = { N_EXECUTORS, names };

const SimParameter sim_parameters[] = {
#define X(member, text, unit, least, most, kernel, copy, host, what, source) \
	{ text, unit, least, most, offsetof(SimParameters, member), what, source },
	SIM_PARAMETER_LIST(X)
#undef X
	{ .name = NULL },
};

void
sim_defaults(Executor executor, SimParameters *out)
{
	*out = (SimParameters){ 0 };
#define X(member, text, unit, least, most, kernel, copy, host, what, source) \
	out->member = executor == EXECUTOR_KERNEL ? (kernel) : executor == EXECUTOR_COPY ? (copy) : (host);
	SIM_PARAMETER_LIST(X)
#undef X
#define X(class, kernel, copy, host, ns, source) \
	out->efficiency[class] = executor == EXECUTOR_KERNEL ? (kernel) : executor == EXECUTOR_COPY ? (copy) : (host); \
	out->latency[class] = (ns);
	SIM_CLASS_LIST(X)
#undef X
}

static int64_t *
value_of(SimParameters *p, const Parameter *of)
{
	LinkClass class;
	if (of->class)
		return link_class_parse(of->class, &class)
		    ? &(strcmp(of->name, "efficiency") == 0 ? p->efficiency : p->latency)[class] : NULL;
	for (const SimParameter *row = sim_parameters; row->name; row++)
		if (strcmp(row->name, of->name) == 0)
			return (int64_t *)((char *)p + row->at);
	return NULL;
}

void
sim_parameters_for(Executor executor, const Parameters *machine, const Parameters *own, SimParameters *out)
{
	const Parameters *list[] = { machine, own };
	sim_defaults(executor, out);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; list[k] && i < list[k]->n; i++) {
			const Parameter *given = &list[k]->of[i];
			int64_t *value = value_of(out, given);
			if (value && strcmp(given->executor, executor_names.name[executor]) == 0)
				*value = given->value;
		}
	}
}
