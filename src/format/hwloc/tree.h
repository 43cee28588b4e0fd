/* A machine as hwloc describes it: objects in a tree, and matrices of bandwidths between some of them. tree.c
 * reads it from XML, read_topology.c makes a Topology of it. */
#ifndef BLINK_FORMAT_HWLOC_TREE_H
#define BLINK_FORMAT_HWLOC_TREE_H

#include "base/status.h"
#include "format/doc.h"
#include "model/units.h"

typedef enum {
	HW_OTHER, HW_MACHINE, HW_PACKAGE, HW_NUMA, HW_CORE, HW_PU, HW_HOST_BRIDGE, HW_BRIDGE, HW_PCI, HW_OS
} HwKind;

/* What an OS device is, by the bits of hwloc 3. */
enum { HW_OS_NETWORK = 1 << 4, HW_OS_OPENFABRICS = 1 << 5 };

typedef struct {
	bool known;
	unsigned domain, bus, device, function;
	unsigned class, vendor, model;	/* class: 0x0302; 0 where the file has none */
} HwPci;

typedef struct {
	HwKind kind;
	int parent;			/* -1: none */
	int end;			/* its descendants are the objects after it, up to this one */
	int os_index;			/* -1: not given */
	const char *name, *subtype;	/* "" where not given */
	unsigned os_types;
	HwPci pci;			/* of PCI devices and bridges */
	int64_t speed;			/* of its PCI link, bytes/s as hwloc has it; 0: not known */
	const Doc *doc;			/* its element; NULL: it is not in the file (seen.c) */
} HwObject;

/* value[i * n + j]: MB/s from object[i] to object[j], or the distance; the diagonal has no meaning. */
typedef struct {
	const char *name;		/* "NVLinkBandwidth" */
	int n;
	int *object;			/* different ones */
	int64_t *value;
	const Doc *doc;
} HwMatrix;

typedef struct {
	int version;			/* of the XML: 1, 2 or 3 */
	const char *label;
	const Doc *doc;			/* the root element */
	int n_objects;
	HwObject *object;		/* in the order of the file: before its descendants; object[0]: HW_MACHINE */
	int n_matrices;
	HwMatrix *matrix;		/* names end in "Bandwidth" or "Hops"; with NUMA nodes: NUMALatency, too */
} HwTree;

/* label, data, size: as of topo_read. Attributes, elements and matrices that are not needed are not looked at, whatever
 * they hold. distances: between NUMA nodes, too. Fails: BAD_INPUT, LIMIT, NO_MEMORY. Memory: scratch arena.
 * Cost: O(n log n). */
Status hwloc_tree_read(Ctx *ctx, const char *label, const char *data, size_t size, bool distances, HwTree **out);

/* The value of the object's <info> of this name, else NULL. */
const char *hwloc_info(const Doc *element, const char *name);

/* The same for all of the machine: of its root object, or of the file. */
const char *hwloc_machine_info(const HwTree *tree, const char *name);

/* "0000:34:00.0", or the object's type where it has no PCI address. */
typedef struct {
	char text[32];
} HwBusId;
HwBusId hwloc_bus_id(const HwObject *object);

#endif
