#include "format/format.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The line of --synthetic has items for these; what --live finds is first to be looked at, and named in a file. */
static Status
check_no_cluster(Ctx *ctx, const Options *opt, const char *with)
{
	static const int cluster[] = { OPT_SERVERS, OPT_NIC_RATE, OPT_RAILS, OPT_LEAF, OPT_OVERSUBSCRIPTION };
	for (size_t i = 0; i < sizeof cluster / sizeof *cluster; i++)
		if (opt->value[cluster[i]])
			return fail(ctx, USAGE, "%s: want none of --servers, --nic-rate, --rails, --leaf and "
			    "--oversubscription with it", with);
	return OK;
}

/* Variables of hwloc could put another machine in the place of this one, or print to stderr. */
static Status
clear_environment(Ctx *ctx)
{
	for (char **entry = environ; *entry;) {
		char name[64];
		size_t n = strcspn(*entry, "=");
		bool hwloc = strncmp(*entry, "HWLOC_", 6) == 0 && n < sizeof name;
		snprintf(name, sizeof name, "%.*s", hwloc ? (int)n : 0, *entry);
		if (hwloc && unsetenv(name) == 0)
			entry = environ;
		else
			entry++;
	}
	return setenv("HWLOC_HIDE_ERRORS", "2", 1) == 0 ? OK : fail_memory(ctx);
}

static Status
look_at_machine(Ctx *ctx, const Options *opt, const char **label, Text *out)
{
	if (opt->n_files || opt->value[OPT_SYNTHETIC] || opt->value[OPT_FROM])
		return fail(ctx, USAGE, "--live: want no file, --synthetic or --from with it");
	TRY(check_no_cluster(ctx, opt, "--live"));
	TRY(clear_environment(ctx));
	*label = "this machine";
	return live_write(ctx, out);
}

/* The text of a cluster file, which is then read like any other. */
Status
verb_topology(Ctx *ctx, const Options *opt)
{
	const char *format, *label;
	ClusterRequest ask;
	Text text = { 0 };
	Status status = OK;
	TRY(request_from(ctx, opt, &(const char *){ NULL }));
	TRY(request_format(ctx, opt, TOPOLOGY, "json", &format));
	if (opt->value[OPT_LIVE]) {
		status = look_at_machine(ctx, opt, &label, &text);
	} else if (opt->value[OPT_SYNTHETIC]) {
		TRY(check_no_cluster(ctx, opt, "--synthetic"));
		status = input_topology(ctx, opt, &label, &text);
	} else {
		TRY(request_cluster(ctx, opt, &label, &ask));
		cluster_write(&ask, &text);
	}
	if (status == OK)
		status = output_topology(ctx, opt, format, label, &text, output_path(opt));
	text_free(&text);
	return status;
}
