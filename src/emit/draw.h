/* Schedules as pictures. */
#ifndef BLINK_DRAW_H
#define BLINK_DRAW_H

#include "explain.h"

/* A page that stands for itself: the topology with what each link carries, and a picture of each tree (blinkc(1)).
 * Fails: USAGE trees that are not there, a layout that this blinkc has not. */
Status emit_svg(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);

/* For Graphviz: the topology, and the edges of trees. */
Status emit_dot(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out);

#endif
