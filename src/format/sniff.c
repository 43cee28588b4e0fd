#include "format/sniff.h"
#include "format/xml_markup.h"

#include <stdio.h>
#include <string.h>

/* Where the first element begins; `size`: nowhere. *doctype: one without declarations before it; its end is 0 where
 * there is none. */
static size_t
first_element(const char *data, size_t size, Markup *doctype)
{
	size_t at = xml_begins(data, size, 0, "\xef\xbb\xbf") ? 3 : 0;
	*doctype = (Markup){ .end = 0 };
	for (;;) {
		Markup m = xml_markup(data, size, at);
		while (at < m.begin && data[at] && strchr(" \t\r\n", data[at]))
			at++;
		if (at < m.begin || m.kind == MARKUP_NONE)
			return size;
		if (xml_begins(data, size, at, "<!DOCTYPE") && doctype->end == 0) {
			*doctype = m;
			if (memchr(data + at, '[', m.end - at))
				return size;
		} else if (m.kind != MARKUP_ASIDE || data[at + 2] == '[') {
			return at;
		}
		at = m.end;
	}
}

bool
sniff_element(const char *data, size_t size, const char *name)
{
	Markup doctype;
	size_t at = first_element(data, size, &doctype), n = strlen(name);
	return at < size && xml_begins(data, size, at + 1, name) && at + 1 + n < size
	    && strchr(" \t\r\n/>", data[at + 1 + n]) && data[at + 1 + n];
}

Status
sniff_no_doctype(Ctx *ctx, const char **data, size_t size)
{
	Markup doctype;
	char *copy;
	if (first_element(*data, size, &doctype) == size || doctype.end == 0)
		return OK;
	TRY(TEMP(ctx, copy, size + 1));
	memcpy(copy, *data, size);
	for (size_t i = doctype.begin; i < doctype.end; i++)
		copy[i] = copy[i] == '\n' ? '\n' : ' ';
	*data = copy;
	return OK;
}

const char *
sniff_name(const char *path, char *space, size_t room)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	size_t n = strcspn(file, ".");
	bool none = n == 0 || strcmp(file, "-") == 0 || strncmp(file, "--", 2) == 0;
	snprintf(space, room, "%.*s", none ? 7 : (int)(n < room ? n : room - 1), none ? "machine" : file);
	return space;
}
