/* Files of servers on the command line, for a cluster file that names them. */
#ifndef BLINK_VERB_CLUSTER_PATHS_H
#define BLINK_VERB_CLUSTER_PATHS_H

#include "format/format.h"
#include "verb/options.h"

/* Names of the files relative to a folder that all of them are in or below, into servers[i].file; *label: a path in
 * that folder. Fails: IO. */
Status cluster_paths(Ctx *ctx, const Options *opt, const char **label, ClusterServers *servers);

#endif
