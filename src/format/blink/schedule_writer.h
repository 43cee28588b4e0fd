/* What other files have in common with schedules. */
#ifndef BLINK_FORMAT_SCHEDULE_WRITER_H
#define BLINK_FORMAT_SCHEDULE_WRITER_H

#include "base/json_write.h"
#include "model/topology.h"

/* The member "topology": ranks and links. */
void schedule_put_topology(JsonWriter *w, const Topology *topo);

#endif
