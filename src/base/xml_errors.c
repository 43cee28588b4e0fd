#include "base/xml_errors.h"

static void
on_text(void *user, const char *format, ...)
{
	const XmlErrors *errors = user;
	xmlError error = { .level = XML_ERR_FATAL, .code = XML_ERR_NO_MEMORY };
	(void)format;
	errors->found(errors->user, &error);
}

void
xml_errors_begin(XmlErrors *errors, void (*found)(void *user, XmlError error), void *user)
{
	*errors = (XmlErrors){ found, user, xmlStructuredError, xmlStructuredErrorContext, xmlGenericError,
		xmlGenericErrorContext };
	xmlSetGenericErrorFunc(errors, on_text);
	xmlSetStructuredErrorFunc(user, (xmlStructuredErrorFunc)found);
}

void
xml_errors_end(const XmlErrors *errors)
{
	xmlResetLastError();
	xmlSetStructuredErrorFunc(errors->structured_user, errors->structured);
	xmlSetGenericErrorFunc(errors->generic_user, errors->generic);
}
