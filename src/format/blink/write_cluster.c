/* A cluster, as a topology file that names those of its servers (blink-topology(5)). */
#include "base/json_write.h"
#include "format/format.h"

#include <stdio.h>

/* s0, s1, ...: copies of one file, or an entry for each server. */
static void
put_servers(JsonWriter *w, const ClusterRequest *ask)
{
	char id[16] = "s";
	int n = 0;
	for (int i = 0; i < ask->n_files; i++) {
		for (int copy = 0; copy < (ask->n_files == 1 ? 1 : ask->servers[i].count); copy++) {
			if (ask->n_files > 1)
				snprintf(id, sizeof id, "s%d", n++);
			json_object(w, NULL, JSON_LINE);
			json_string(w, "id", id);
			json_string(w, "file", ask->servers[i].file);
			if (ask->n_files == 1)
				json_int(w, "count", ask->servers[i].count);
			json_end(w);
		}
	}
}

void
cluster_write(const ClusterRequest *ask, Text *out)
{
	JsonWriter w = { .out = out };
	json_file(&w, JSON_BLOCK, "blink-topology");
	json_string(&w, "name", ask->name);
	json_array(&w, "nodes", JSON_BLOCK);
	put_servers(&w, ask);
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
	json_file_end(&w);
}
