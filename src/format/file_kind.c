#include "format/file_kind.h"

#include "format/mscclpp/mscclpp.h"
#include "format/sniff.h"

#include <string.h>

#define LOOKUP_BEGINS "blink-lookup\r\n"	/* of LOOKUP_MAGIC */
enum { LOOK_AT = 4096 };	/* bytes from the start; but for "format", which may be anywhere */

static const char *const names[] = {
#define X(name, what) what,
	FILE_KIND_LIST(X)
#undef X
};

const char *
file_kind_name(FileKind kind)
{
	return names[kind];
}

/* The part of a file that is looked at. */
struct head {
	const char *at;
	size_t size;
};

static bool
has(struct head head, const char *text)
{
	return memmem(head.at, head.size, text, strlen(text)) != NULL;
}

static bool
begins(struct head head, const char *text)
{
	size_t n = strlen(text);
	return head.size >= n && memcmp(head.at, text, n) == 0;
}

static struct head
skip(struct head head, size_t n)
{
	return (struct head){ head.at + n, head.size - n };
}

static struct head
skip_blanks(struct head head)
{
	while (head.size > 0 && memchr(" \t\r\n", *head.at, 4))
		head = skip(head, 1);
	return head;
}

/* ---- by syntax ---- */

/* The string behind the first "format":. */
static FileKind
kind_of_json(const char *data, size_t size)
{
	static const struct {
		const char *format;
		FileKind kind;
	} formats[] = { { "\"blink-topology\"", FILE_TOPOLOGY }, { "\"blink-schedule\"", FILE_SCHEDULE },
		{ "\"blink-index\"", FILE_INDEX }, { "\"blink-diff\"", FILE_DIFFERENCES },
		{ "\"blink-job\"", FILE_JOB }, { "\"blink-phases\"", FILE_PHASES } };
	static const char key[] = "\"format\"";
	const char *found = memmem(data, size, key, sizeof key - 1);
	if (!found)
		return mscclpp_is(data, size) ? FILE_MSCCLPP : FILE_OTHER;
	struct head head = { found, size - (size_t)(found - data) };
	head = skip_blanks(skip(head, sizeof key - 1));
	head = skip_blanks(skip(head, begins(head, ":")));
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (begins(head, formats[i].format))
			return formats[i].kind;
	return FILE_OTHER;
}

static FileKind
kind_of_xml(const char *data, size_t size)
{
	static const struct {
		const char *element;
		FileKind kind;
	} elements[] = { { "system", FILE_NCCL }, { "graphs", FILE_NCCL_GRAPH }, { "algo", FILE_MSCCL },
		{ "svg", FILE_PICTURE }, { "html", FILE_PAGE } };
	struct head head = { data, size < LOOK_AT ? size : LOOK_AT };
	if (sniff_element(data, size, "topology"))
		return has(head, "blink-topology") ? FILE_TOPOLOGY
		    : has(head, "\"hwloc") || has(head, "<object") ? FILE_HWLOC : FILE_OTHER;
	for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
		if (sniff_element(data, size, elements[i].element))
			return elements[i].kind;
	return FILE_OTHER;
}

static FileKind
kind_of_bytes(struct head head)
{
	static const char *const compressed[] = { "\x1f\x8b", "\xfd" "7zXZ", "BZh", "\x28\xb5\x2f\xfd", "PK\x03\x04" };
	if (begins(head, "\x7f" "ELF"))
		return FILE_PROGRAM;
	if (begins(head, LOOKUP_BEGINS))
		return FILE_LOOKUP;
	/* Text in UTF-16, or what begins as a file of ours does: a reader says which byte is wrong. */
	if (begins(head, "\xff\xfe") || begins(head, "\xfe\xff") || head.size == 0
	    || memchr("{[<", *head.at, 3))
		return FILE_OTHER;
	for (size_t i = 0; i < sizeof compressed / sizeof *compressed; i++)
		if (begins(head, compressed[i]))
			return FILE_COMPRESSED;
	/* Names may be cut, or have a byte of another encoding: control characters tell. */
	for (size_t i = 0; i < head.size; i++)
		if ((unsigned char)head.at[i] < ' ' && !memchr("\t\n\r\f\x1b", head.at[i], 5))
			return FILE_BINARY;
	return FILE_OTHER;
}

static FileKind
kind_of_text(struct head head)
{
	static const char *const code[] = { "/*", "//", "#include", "#pragma", "#ifndef", "#define" };
	if (has(head, "GPU0") && (has(head, " X ") || has(head, "\tX")))
		return FILE_NVIDIA_SMI;
	if (has(head, "between two GPUs"))
		return FILE_ROCM_SMI;
	for (size_t i = 0; i < sizeof code / sizeof *code; i++)
		if (begins(head, code[i]))
			return has(head, "Written by blinkc") ? FILE_CODE : FILE_SOURCE;
	/* What no JSON begins with. */
	return memchr("[\"-0123456789tfn", *head.at, 16) || (unsigned char)*head.at >= 0x80 ? FILE_OTHER : FILE_TEXT;
}

FileKind
file_kind(const char *data, size_t size)
{
	struct head head = { data, size < LOOK_AT ? size : LOOK_AT };
	if (size == 0)
		return FILE_EMPTY;
	if (begins(head, "\xef\xbb\xbf"))
		head = skip(head, 3);
	FileKind kind = kind_of_bytes(head);
	head = skip_blanks(head);
	if (kind != FILE_OTHER)
		return kind;
	if (head.size == 0)
		return size <= LOOK_AT ? FILE_EMPTY : FILE_OTHER;
	if (*head.at == '<')
		return kind_of_xml(data, size);
	return *head.at == '{' ? kind_of_json(data, size) : kind_of_text(head);
}

/* ---- messages ---- */

/* What leads from what there is to what is wanted. */
static const char *
hint(FileKind found, FileKind want)
{
	if (found == FILE_JOB)
		return "; blinkc job FILE -o DIR plans one for each group";
	if (want == FILE_SCHEDULE) {
		switch (found) {
		case FILE_TOPOLOGY:
		case FILE_NCCL:
		case FILE_HWLOC:
		case FILE_NVIDIA_SMI:
		case FILE_ROCM_SMI:
			return "; blinkc FILE compiles one";
		case FILE_CODE:
			return ": the file in JSON that the code was made from";
		case FILE_INDEX:
			return "; name one of those that it names, or its directory";
		case FILE_LOOKUP:
			return "; name its directory";
		default:
			return "";
		}
	}
	if (want == FILE_INDEX && found == FILE_LOOKUP)
		return ", as the index.json beside it";
	if (want != FILE_TOPOLOGY)
		return "";
	switch (found) {
	case FILE_NCCL:
	case FILE_HWLOC:
	case FILE_NVIDIA_SMI:
	case FILE_ROCM_SMI:
		return " of blink-topology(5)";
	case FILE_NCCL_GRAPH:
		return ", which NCCL writes to NCCL_TOPO_DUMP_FILE";
	case FILE_SCHEDULE:
		return "; blinkc show FILE draws what there is";
	default:
		return "";
	}
}

Status
file_kind_check(Ctx *ctx, const char *label, const char *data, size_t size, FileKind want)
{
	FileKind found = file_kind(data, size);
	if (found == want || found == FILE_OTHER)
		return OK;
	/* Of another format: its own reader, or --from, decides. */
	if (want == FILE_TOPOLOGY && (found == FILE_NCCL || found == FILE_HWLOC || found == FILE_NVIDIA_SMI
	    || found == FILE_ROCM_SMI))
		return OK;
	return fail(ctx, BAD_INPUT, "%s%s%s: want %s%s", label, *label ? ": " : "", file_kind_name(found),
	    file_kind_name(want), hint(found, want));
}
