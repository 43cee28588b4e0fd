/* What is implausible in a topology: valid, but seldom what a machine has. */
#ifndef BLINK_TOPOLOGY_LINT_H
#define BLINK_TOPOLOGY_LINT_H

#include "model/model.h"

/* name of the rule, what it finds */
#define LINT_LIST(X) \
	X(LINT_TWICE, "twice", \
	    "several entries for the links of a class from one vertex to another: written twice, or a count") \
	X(LINT_CAPACITY, "capacity", \
	    "a link that no hardware of its class has: too slow, or too fast, as where several are given as one") \
	X(LINT_COUNT, "count", "more links of a class than any GPU has") \
	X(LINT_ONE_WAY, "one-way", "links from a vertex to another, and none of that class back") \
	X(LINT_ASYMMETRIC, "asymmetric", "other links from a vertex to another than back: their number or capacity") \
	X(LINT_NO_LINKS, "no-links", "a GPU, switch, CPU or NIC that nothing joins") \
	X(LINT_NO_PORT, "no-port", "a NIC with neither a port nor links to a network") \
	X(LINT_SIBLING, "sibling", "a GPU with other links than most of its server") \
	X(LINT_DISCONNECTED, "disconnected", "GPUs that no links join to the others") \
	X(LINT_MODEL, "model", "links that GPUs of the model do not have, or lack")

typedef enum { LINT_LIST(ROW_NAME) N_LINT_RULES } LintRule;

const char *lint_rule_name(LintRule rule);	/* "one-way" */

typedef struct {
	LintRule rule;
	const char *at;		/* "gpu3 to gpu5, nvlink", or "gpu3" */
	const char *text;	/* what was found, and what is wanted */
} LintFinding;

/* In the order of the rules, then of the file. Of a rule no more than LINT_MOST; the last one then says how many more
 * there are. topo: passes topo_check; ids are printable. *out: in the run arena. */
enum { LINT_MOST = 20 };
Status topo_lint(Ctx *ctx, const Topology *topo, LintFinding **out, int *n);

#endif
