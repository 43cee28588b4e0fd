/* The nouns of blinkc, their units and invariants: the table of contents. Read this first, then the header of each
 * folder in the order of the pipeline. compile.c is the pipeline itself.
 *
 *   read     ->  Topology      XML or JSON, with the files of servers that it names
 *   induce   ->  Topology      only the GPUs and links that a job may use, with paths to the NICs
 *   symmetry ->  Symmetry      automorphism group: one rank of each orbit is planned
 *   bound    ->  Bound         what no schedule can beat, and the cut or partition that proves it
 *   plan     ->  Packing       weighted trees, by the algorithm of the Ask; if hybrid, for NVLink and for PCIe
 *   build    ->  Schedule  -+-> verify            exact: is every rank's result right?
 *                           +-> split             which part moves how much of a message
 *                           +-> write             json
 *                           +-> explain           trees, loads and proof, for people: text, svg, dot, pages of reports
 *                           +-> diff              what changed in meaning
 *                           +-> lower -> Program -> write cu, or the runtime's executor
 *   batch    ->  Index         the same for many sets of GPUs, isomorphic ones once: which schedule serves which set
 * */
#ifndef BLINK_MODEL_H
#define BLINK_MODEL_H

#include "model/units.h"
#include "model/topology.h"
#include "model/symmetry.h"
#include "model/collective.h"
#include "model/tree.h"
#include "model/packing.h"
#include "model/bound.h"
#include "model/baseline.h"
#include "model/schedule.h"
#include "model/index.h"
#include "model/program.h"
#include "model/ask.h"
#include "model/workload.h"

#endif
