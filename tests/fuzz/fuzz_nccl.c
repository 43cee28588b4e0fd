/* Topologies of NCCL and RCCL. */
#define COST_FLOOR_MS 1000
#include "foreign.h"
#include "xml_mutator.h"

const char kind[] = "nccl";

const Mutator mutators[] = { xml_mutate, NULL };

const char *const dictionary[] = { "<system", "</system>", "version=\"2\"", "<cpu", "</cpu>", "<pci", "</pci>",
	"<gpu", "</gpu>", "<nvlink", "<xgmi", "<c2c", "<nic>", "</nic>", "<net", "/>", "numaid=\"", "busid=\"",
	"class=\"", "link_speed=\"", "link_width=\"", "dev=\"", "sm=\"70\"", "sm=\"", "gcn=\"gfx942\"", "gcn=\"",
	"target=\"", "count=\"", "tclass=\"", "0x068000", "0x068001", "0x030200", "fffffff:ffff:ff", "0000:06:00.0",
	"8 GT/s", "32.0 GT/s PCIe", "bw=\"", "name=\"", "speed=\"", "arch=\"", "vendor=\"", "host_hash=\"",
	"familyid=\"", "modelid=\"", "GenuineIntel", "ppc64", "<!--", "-->", "<?xml", "?>", "<!DOCTYPE system>",
	"<!DOCTYPE", "&lt;", "&#10;", "1024", "-1", "99999999999", "\xff", "\xc3\xa9", NULL };
