#include "model/baseline.h"

#include "model/topology.h"

#include <string.h>

bool
baseline_name_valid(const char *name)
{
	return strlen(name) < BASELINE_NAME && topo_id_valid(name);
}
