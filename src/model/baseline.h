/* Baseline: the most that another method can give for the same job, to hold the rate of a schedule against. */
#ifndef BLINK_MODEL_BASELINE_H
#define BLINK_MODEL_BASELINE_H

#include <stdbool.h>

enum {
	LIMIT_BASELINES = 8,	/* of a schedule, and of an entry of an index */
	BASELINE_NAME = 32	/* bytes, with the NUL */
};

typedef struct {
	char name[BASELINE_NAME];	/* "nccl-2.4": see topo_id_valid */
	unsigned classes;	/* of the links that its rings use, a bit set; 0: there is no ring */
	int rings;
	bool through;		/* some hop of a ring leads through another GPU of the job */
	double rate;		/* GB/s of algorithm bandwidth; 0: there is no ring */
} Baseline;

/* What an index says of one. */
typedef struct {
	const char *name;
	double rate;		/* as above */
} IndexBaseline;

/* Fewer than BASELINE_NAME bytes of a valid id. */
bool baseline_name_valid(const char *name);

#endif
