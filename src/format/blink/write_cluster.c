/* A cluster of equal servers, as a topology file that names theirs (blink-topology(5)). */
#include "base/json_write.h"
#include "format/format.h"

void
cluster_write(const ClusterRequest *ask, Text *out)
{
	JsonWriter w = { .out = out };
	json_object(&w, NULL, JSON_BLOCK);
	json_string(&w, "format", "blink-topology");
	json_int(&w, "version", 1);
	json_string(&w, "name", ask->name);
	json_array(&w, "nodes", JSON_BLOCK);
	json_object(&w, NULL, JSON_LINE);
	json_string(&w, "id", "s");
	json_string(&w, "file", ask->file);
	json_int(&w, "count", ask->servers);
	json_end(&w);
	json_end(&w);
	json_array(&w, "fabrics", JSON_BLOCK);
	json_object(&w, NULL, JSON_LINE);
	json_string(&w, "id", "net");
	if (ask->nic_rate)
		json_gb(&w, "capacity", (Frac){ ask->nic_rate, 1 });
	if (ask->rails)
		json_bool(&w, "rails", true);
	if (ask->leaf)
		json_int(&w, "servers", ask->leaf);
	if (ask->oversubscription)
		json_gb(&w, "oversubscription", (Frac){ ask->oversubscription, 1 });
	json_end(&w);
	json_end(&w);
	json_end(&w);
	text_put(out, "\n");
}
