#include "format/format.h"
#include "verb/request.h"
#include "verb/verb.h"

/* The line of --synthetic has items for these. */
static Status
check_no_cluster(Ctx *ctx, const Options *opt)
{
	static const int cluster[] = { OPT_SERVERS, OPT_NIC_RATE, OPT_RAILS, OPT_LEAF, OPT_OVERSUBSCRIPTION };
	for (size_t i = 0; i < sizeof cluster / sizeof *cluster; i++)
		if (opt->value[cluster[i]])
			return fail(ctx, USAGE,
			    "--synthetic: want none of --servers, --nic-rate, --rails, --leaf and --oversubscription "
			    "with it");
	return OK;
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
	if (opt->value[OPT_SYNTHETIC]) {
		TRY(check_no_cluster(ctx, opt));
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
