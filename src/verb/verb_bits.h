/* The verbs as bits, for sets of verbs: those that an option belongs to, or values of options. */
#ifndef BLINK_VERB_VERB_BITS_H
#define BLINK_VERB_VERB_BITS_H

enum {
	COMPILE = 1, BATCH = 2, CHECK = 4, DIFF = 8, SHOW = 16, CONVERT = 32, TOPOLOGY = 64, COMPLETION = 128,
	REPORT = 256, HELP = 512, LIST = 1024, LINT = 2048, PROBE = 0x1000, ADVISE = 0x2000, WHATIF = 0x4000,
	SIMULATE = 0x8000, TUNE = 0x10000, HIERARCHY = 0x20000, FIT = 0x40000, JOB = 0x80000,
	EVERY = 0xfffff,
	/* as argument, also by its name */
	NAMES_TOPOLOGY = COMPILE | BATCH | TUNE | CONVERT | TOPOLOGY | SHOW | LINT | ADVISE | WHATIF | HIERARCHY,
	READS_TOPOLOGY = NAMES_TOPOLOGY | CHECK | SIMULATE | JOB	/* a topology file of any format */
};

#endif
