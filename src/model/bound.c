/* Names of certificates. */
#include "model/bound.h"

static const char *const names[] = {
#define X(name, text) text,
	CERTIFICATE_LIST(X)
#undef X
};

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
