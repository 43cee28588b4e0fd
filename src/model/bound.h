/* Bound: a rate that no algorithm of a kind exceeds, and the certificate that proves it. */
#ifndef BLINK_MODEL_BOUND_H
#define BLINK_MODEL_BOUND_H

#include "base/names.h"
#include "model/collective.h"

/* name in files */
#define CERTIFICATE_LIST(X)                                                    \
	X(CERTIFICATE_CUT, "cut")                                              \
	X(CERTIFICATE_PARTITION, "partition")                                  \
	X(CERTIFICATE_PRICES, "prices")                                        \
	X(CERTIFICATE_LENGTHS, "lengths")

typedef enum { CERTIFICATE_LIST(ROW_NAME) N_CERTIFICATES } CertificateKind;

const char *certificate_name(CertificateKind kind);	/* "cut" */
bool certificate_parse(const char *text, CertificateKind *out);
extern const Names certificate_names;

/* No algorithm's algorithm bandwidth exceeds `rate`, of those that bound_claim names. The certificate proves it:
 *   cut         part[v] is 1 for the vertices on the side, else 0
 *   partition   part[v] is the part of vertex v, 0 .. n_parts-1, or -1 outside (switches only)
 *   prices      price[l] >= 0, rate is the sum of capacity * price: every tree of the collective costs at least 1
 *   lengths     price[l] >= 0, likewise, for collectives of blocks: the cheapest trees of all demands together cost at
 *               least M by the size of a demand (the dual of a maximum concurrent flow) */
typedef struct {
	Frac rate;		/* bytes/s; FRAC_ZERO with n_ranks = 1, where nothing moves */
	CertificateKind kind;
	int n_parts;
	int *part;		/* n_vertices, for cut and partition */
	Frac *price;		/* n_links, for prices and lengths */
	bool reached;		/* while planning: trees of this rate are known, but for rounding; not in files */
} Bound;

/* What of the capacity that counts in a certificate is a guess. */
typedef struct {
	unsigned classes;	/* of these links, a bit set; 0: none is */
	bool most;		/* they are half of it or more */
	bool of_cores;		/* some are of ranks that are CPUs: what a core copies */
} Assumed;

/* Relative: what a rate that was rounded may be below its bound. */
#define RATE_ROUNDING 1e-9

/* Of which algorithms the certificate proves it: what completes "no algorithm ... is faster" and "any algorithm ...".
 * "": of all; else " that forwards blocks", with the space before it. docs/bounds.md has the proofs. */
const char *bound_claim(const Bound *bound, Collective coll);

#endif
