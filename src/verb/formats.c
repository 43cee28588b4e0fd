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

void
formats_of(int verb, FormatName out[FORMATS_MAX])
{
	int n = 0;
	switch (verb) {
	case COMPILE:
		n = add_schedule_formats(out, n, false);
		break;
	case CONVERT:
		n = add_schedule_formats(out, add_topology_formats(out, n), true);
		n = add(out, n, FORMAT_LOOKUP, FORMAT_LOOKUP);
		break;
	case TOPOLOGY:
		n = add(out, add_topology_formats(out, n), "cluster", "cluster");
		break;
	case PROBE:
		n = add_topology_formats(out, n);
		break;
	case DIFF:
	case LIST:
		n = add(out, add(out, n, "text", "text"), "json", "json");
		break;
	case ADVISE:
		n = add(out, add(out, add(out, n, "text", "txt"), "json", "json"), "slurm", "slurm");
		break;
	case WHATIF:
		n = add(out, add(out, n, "text", "txt"), "json", "json");
		break;
	case HIERARCHY:
		n = add(out, add(out, n, "text", "txt"), "json", "json");
		break;
	case SIMULATE:
		n = add(out, add(out, add(out, n, "text", "txt"), "json", "json"), "csv", "csv");
		break;
	case SHOW:
		n = add(out, add(out, add(out, n, "text", "txt"), "svg", "svg"), "dot", "dot");
		break;
	}
	out[n] = (FormatName){ NULL, NULL };
}

/* ---- help ---- */

void
formats_read(Text *out)
{
	for (const TopologyFormat *f = topology_formats; f->name; f++) {
		if (!f->read)
			continue;
		text_put(out, out->size ? ", " : "");
		text_put(out, f->name);
	}
}

void
formats_from_help(Text *out)
{
	text_put(out, "what kind of topology the file is, if not by its content");
	for (const TopologyFormat *f = topology_formats; f->name; f++)
		if (f->read)
			text_printf(out, "; %s: %s", f->name, f->what);
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
put_formats_of(Text *out, int verb)
{
	FormatName list[FORMATS_MAX];
	int n = 0;
	formats_of(verb, list);
	while (list[n].name)
		n++;
	put_names(out, list, n);
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

void
formats_help(int verbs, Text *out)
{
	static const struct {
		int bit;
		const char *name, *otherwise;
		void (*put)(Text *out);
	} row[] = {
		{ COMPILE, "compile", "json", NULL },
		{ CONVERT, "convert", "json", put_convert },
		{ TOPOLOGY, "topology", "json", put_topology },
		{ PROBE, "probe", "json", NULL },
		{ DIFF, "diff", "text", NULL },
		{ SHOW, "show", "text", NULL },
		{ LIST, "list", "text", NULL },
		{ ADVISE, "advise", "text", NULL },
		{ WHATIF, "what-if", "text", NULL },
		{ SIMULATE, "simulate", "text", NULL },
		{ HIERARCHY, "hierarchy", "text", NULL },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		if (!(verbs & row[i].bit))
			continue;
		if (verbs != row[i].bit)
			text_printf(out, "%s: ", row[i].name);
		if (row[i].put)
			row[i].put(out);
		else
			put_formats_of(out, row[i].bit);
		text_put(out, "; ");
		if (verbs == row[i].bit)
			text_printf(out, "default: by the suffix of FILE; without one %s", row[i].otherwise);
	}
	if (verbs & (verbs - 1))
		text_put(out, "default: by the suffix of FILE; without one json, for diff, list, show, advise, "
		    "what-if, simulate and hierarchy text");
}
