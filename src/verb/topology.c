#include "verb/request.h"
#include "verb/verb.h"

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

static Status
look_at_machine(Ctx *ctx, const Options *opt, const char **label, Text *out)
{
	if (opt->n_files || opt->value[OPT_SYNTHETIC] || opt->value[OPT_FROM])
		return fail(ctx, USAGE, "--live: want no file, --synthetic or --from with it");
	TRY(check_no_cluster(ctx, opt, "--live"));
	*label = "this machine";
	if (opt->value[OPT_MEASURE] && !opt->value[OPT_CPU_RANKS])
		return fail(ctx, USAGE, "--measure: want --cpu-ranks with it: rates of GPUs are not measured");
	return read_live(ctx, opt->value[OPT_MEASURE], out);
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
	TRY(request_format(ctx, opt, TOPOLOGY, &format));
	if (!opt->value[OPT_LIVE] && (opt->value[OPT_CPU_RANKS] || opt->value[OPT_MEASURE]))
		return fail(ctx, USAGE, "--%s: want --live with it; a file of hwloc: by blinkc convert",
		    opt->value[OPT_MEASURE] ? "measure" : "cpu-ranks");
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
