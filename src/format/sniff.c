#include "format/sniff.h"

#include <stdio.h>
#include <string.h>

static bool
begins(const char *data, size_t size, size_t at, const char *with)
{
	size_t n = strlen(with);
	return size - at >= n && memcmp(data + at, with, n) == 0;
}

static size_t
after(const char *data, size_t size, size_t at, const char *end)
{
	const char *found = memmem(data + at, size - at, end, strlen(end));
	return found ? (size_t)(found - data) + strlen(end) : size;
}

static size_t
skip_blanks(const char *data, size_t size, size_t at)
{
	while (at < size && data[at] && strchr(" \t\r\n", data[at]))
		at++;
	return at;
}

/* Where the first element begins; `size`: nowhere. A DOCTYPE without declarations: where it begins and ends. */
static size_t
first_element(const char *data, size_t size, size_t *doctype, size_t *doctype_end)
{
	size_t at = begins(data, size, 0, "\xef\xbb\xbf") ? 3 : 0;
	*doctype = *doctype_end = 0;
	for (;;) {
		at = skip_blanks(data, size, at);
		if (begins(data, size, at, "<!--")) {
			at = after(data, size, at + 4, "-->");
		} else if (begins(data, size, at, "<?")) {
			at = after(data, size, at + 2, "?>");
		} else if (begins(data, size, at, "<!DOCTYPE") && *doctype_end == 0) {
			*doctype = at;
			at = *doctype_end = after(data, size, at, ">");
			if (memchr(data + *doctype, '[', at - *doctype))
				return size;
		} else {
			return at < size && data[at] == '<' ? at : size;
		}
	}
}

bool
sniff_element(const char *data, size_t size, const char *name)
{
	size_t doctype, end, at = first_element(data, size, &doctype, &end), n = strlen(name);
	return at < size && begins(data, size, at + 1, name) && at + 1 + n < size
	    && strchr(" \t\r\n/>", data[at + 1 + n]) && data[at + 1 + n];
}

Status
sniff_no_doctype(Ctx *ctx, const char **data, size_t size)
{
	size_t doctype, end, at = first_element(*data, size, &doctype, &end);
	char *copy;
	if (at == size || end == 0)
		return OK;
	TRY(TEMP(ctx, copy, size + 1));
	memcpy(copy, *data, size);
	for (size_t i = doctype; i < end; i++)
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
