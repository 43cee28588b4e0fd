#ifndef BLINK_FORMAT_MSCCLPP_PACKETS_H
#define BLINK_FORMAT_MSCCLPP_PACKETS_H

#include "format/mscclpp/writer.h"

/* Fails: INFEASIBLE packets cannot do it. */
Status writer_check_packets(struct writer *w);

/* Threadblocks for all pieces, whose hops are listed. */
Status writer_add_packets(struct writer *w);

#endif
