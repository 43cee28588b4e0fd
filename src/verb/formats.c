#include "verb/formats.h"
#include "format/format.h"
#include "verb/verb_bits.h"

#include <assert.h>

static int
add(FormatName *list, int n, const char *name, const char *suffix)
{
	assert(n + 1 < FORMATS_MAX);
	list[n] = (FormatName){ name, suffix };
	return n + 1;
}

static int
add_topology_formats(FormatName *list, int n)
{
	for (const TopologyFormat *f = topology_formats; f->name; f++)
		if (f->write)
			n = add(list, n, f->name, f->suffix);
	return n;
}

/* Without those whose names topologies have, too, if a verb writes both: such a name is for a topology. */
static int
add_schedule_formats(FormatName *list, int n, bool both)
{
	for (const ScheduleFormat *f = schedule_formats; f->name; f++)
		if (!both || !topology_format(f->name))
			n = add(list, n, f->name, f->suffix);
	return n;
}

/* "json, xml or canonical" */
static void
put_names(Text *out, const FormatName *list, int n)
{
	for (int i = 0; i < n; i++) {
		text_put(out, i == 0 ? "" : i + 1 < n ? ", " : " or ");
		text_put(out, list[i].name);
	}
}

static void
put_convert(Text *out)
{
	FormatName list[FORMATS_MAX];
	put_names(out, list, add_topology_formats(list, 0));
	text_put(out, " of a topology, ");
	put_names(out, list, add_schedule_formats(list, 0, false));
	text_put(out, " of a schedule, " FORMAT_LOOKUP " of an index");
}

static void
put_topology(Text *out)
{
	FormatName list[FORMATS_MAX];
	int n = add_topology_formats(list, 0);
	for (int i = 0; i < n; i++)
		text_printf(out, "%s, ", list[i].name);
	text_put(out, "or cluster, which names the server's file");
}

/* What a verb writes; put: its help, if that is not a list of names. */
static const struct row {
	int bit;
	const char *name, *otherwise;	/* otherwise: without --format and suffix */
	void (*put)(Text *out);
	bool topologies, schedules;
	FormatName own[4];
} rows[] = {
	{ COMPILE, "compile", "json", .schedules = true },
	{ CONVERT, "convert", "json", put_convert, true, true, { { FORMAT_LOOKUP, FORMAT_LOOKUP } } },
	{ TOPOLOGY, "topology", "json", put_topology, true, false, { { "cluster", "cluster" } } },
	{ PROBE, "probe", "json", .topologies = true },
	{ DIFF, "diff", "text", .own = { { "text", "text" }, { "json", "json" } } },
	{ SHOW, "show", "text", .own = { { "text", "txt" }, { "svg", "svg" }, { "dot", "dot" } } },
	{ LIST, "list", "text", .own = { { "text", "text" }, { "json", "json" } } },
	{ ADVISE, "advise", "text", .own = { { "text", "txt" }, { "json", "json" }, { "slurm", "slurm" } } },
	{ WHATIF, "what-if", "text", .own = { { "text", "txt" }, { "json", "json" } } },
	{ SIMULATE, "simulate", "text", .own = { { "text", "txt" }, { "json", "json" }, { "csv", "csv" } } },
	{ TUNE, "tune", "json", .own = { { "json", "json" }, { SCHEDULE_MSCCLPP, SCHEDULE_MSCCLPP },
	    { FORMAT_OMPI_RULES, FORMAT_OMPI_RULES } } },
	{ HIERARCHY, "hierarchy", "text", .own = { { "text", "txt" }, { "json", "json" } } },
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* Those of a row, and how many. */
static int
list_formats(const struct row *row, FormatName out[FORMATS_MAX])
{
	int n = row->topologies ? add_topology_formats(out, 0) : 0;
	n = row->schedules ? add_schedule_formats(out, n, row->topologies) : n;
	for (const FormatName *own = row->own; own->name; own++)
		n = add(out, n, own->name, own->suffix);
	return n;
}

int
formats_of(int verb, FormatName out[FORMATS_MAX], const char **otherwise)
{
	for (int i = 0; i < N_ROWS; i++) {
		*otherwise = rows[i].otherwise;
		if (rows[i].bit == verb)
			return list_formats(&rows[i], out);
	}
	return 0;
}

int
formats_read(const char *name[FORMATS_MAX])
{
	int n = 0;
	for (const TopologyFormat *f = topology_formats; f->name; f++)
		if (f->read)
			name[n++] = f->name;
	return n;
}

/* ---- help ---- */

void
formats_from_help(Text *out)
{
	text_put(out, "what kind of topology the file is, if not by its content");
	for (const TopologyFormat *f = topology_formats; f->name; f++)
		if (f->read)
			text_printf(out, "; %s: %s", f->name, f->what);
}

void
formats_help(int verbs, Text *out)
{
	for (int i = 0; i < N_ROWS; i++) {
		FormatName list[FORMATS_MAX];
		if (!(verbs & rows[i].bit))
			continue;
		if (verbs != rows[i].bit)
			text_printf(out, "%s: ", rows[i].name);
		if (rows[i].put)
			rows[i].put(out);
		else
			put_names(out, list, list_formats(&rows[i], list));
		text_put(out, "; ");
		if (verbs == TUNE)
			text_printf(out, "default: %s", rows[i].otherwise);
		else if (verbs == rows[i].bit)
			text_printf(out, "default: by the suffix of FILE; without one %s", rows[i].otherwise);
	}
	if (verbs & (verbs - 1))
		text_put(out, "default: by the suffix of FILE; without one json, for diff, list, show, advise, "
		    "what-if, simulate and hierarchy text");
}
