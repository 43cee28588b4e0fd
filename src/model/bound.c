/* Names of certificates, and what they prove. */
#include "model/bound.h"

static const char *const names[] = { CERTIFICATE_LIST(ROW_TEXT) };

const Names certificate_names = { N_CERTIFICATES, names };

const char *
certificate_name(CertificateKind kind)
{
	return names[kind];
}

bool
certificate_parse(const char *text, CertificateKind *out)
{
	int kind;
	if (!names_find(certificate_names, text, &kind))
		return false;
	*out = (CertificateKind)kind;
	return true;
}

/* Cuts count data, whatever it codes. Where every rank needs all blocks, or has a share in all, cuts are what limits
 * the prices of its trees (Edmonds), and so they are for paths from or to one rank (Ford, Fulkerson). */
static const char any[] = "", forwards[] = " that forwards blocks", separate[] = " that treats elements separately",
    pairs[] = " by pairs of trees";

static const char *const claims[N_CERTIFICATES][N_COLLECTIVES] = {
	[CERTIFICATE_CUT] = { any, any, any, any, any, any, any, any },
	[CERTIFICATE_PARTITION] = { [ALLREDUCE] = separate },
	[CERTIFICATE_PRICES] = { [BROADCAST] = any, [REDUCE] = any, [ALLREDUCE] = pairs },
	[CERTIFICATE_LENGTHS] = { [GATHER] = any, [SCATTER] = any, [ALLGATHER] = any, [REDUCESCATTER] = any,
		[ALLTOALL] = forwards },
};

const char *
bound_claim(const Bound *bound, Collective coll)
{
	/* Of two parts, the lower of the two cuts proves no more than half of what leaves both. */
	if (bound->kind == CERTIFICATE_PARTITION && bound->n_parts == 2)
		return any;
	return claims[bound->kind][coll];
}
