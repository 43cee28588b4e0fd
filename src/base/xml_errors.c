#include "base/xml_errors.h"

/* Errors as text alone: memory that ran out before there was a parser, whose maker then returns NULL. */
static void
ignore(void *user, const char *format, ...)
{
	(void)user, (void)format;
}

void
xml_errors_begin(XmlErrors *before, void (*found)(void *user, XmlError error), void *user)
{
	*before = (XmlErrors){ xmlStructuredError, xmlStructuredErrorContext, xmlGenericError, xmlGenericErrorContext };
	xmlSetGenericErrorFunc(NULL, ignore);
	xmlSetStructuredErrorFunc(user, found);
}

void
xml_errors_end(const XmlErrors *before)
{
	xmlResetLastError();
	xmlSetStructuredErrorFunc(before->structured_user, before->structured);
	xmlSetGenericErrorFunc(before->generic_user, before->generic);
}
