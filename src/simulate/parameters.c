/* What is known of executors, as data: the lists are in simulate.h. */
#include "simulate/simulate.h"

static const char *const names[] = {
#define X(name, text, what) text,
	EXECUTOR_LIST(X)
#undef X
};
const Names executor_names = { N_EXECUTORS, names };

const SimParameter sim_parameters[] = {
#define X(member, text, unit, least, most, kernel, copy, host, what, source) \
	{ text, unit, least, most, offsetof(SimParameters, member), what, source },
	SIM_PARAMETER_LIST(X)
#undef X
	{ .name = NULL },
};

const char *
sim_class_source(LinkClass class)
{
	switch (class) {
#define X(name, kernel, copy, host, latency, source) \
	case name:                                   \
		return source;
	SIM_CLASS_LIST(X)
#undef X
	default:
		return NULL;
	}
}

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
