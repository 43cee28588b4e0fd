/* A cluster of servers that are alike, as a topology file that names theirs (blink-topology(5)). */
#include "passes.h"

static void
put_gb(Text *out, const char *member, int64_t capacity)
{
	if (!capacity)
		return;
	text_printf(out, ", \"%s\": ", member);
	text_gb(out, (Frac){ capacity, 1 });
}

void
emit_cluster(const ClusterRequest *ask, Text *out)
{
	text_put(out, "{\n  \"format\": \"blink-topology\",\n  \"version\": 1,\n  \"name\": ");
	text_json(out, ask->name);
	text_printf(out, ",\n  \"nodes\": [\n    { \"id\": \"s\", \"file\": ");
	text_json(out, ask->file);
	text_printf(out, ", \"count\": %d }\n  ],\n  \"fabrics\": [\n    { \"id\": \"net\"", ask->servers);
	put_gb(out, "capacity", ask->nic_rate);
	if (ask->rails)
		text_put(out, ", \"rails\": true");
	if (ask->leaf)
		text_printf(out, ", \"servers\": %d", ask->leaf);
	put_gb(out, "oversubscription", ask->oversubscription);
	text_put(out, " }\n  ]\n}\n");
}
