/* Speeds of PCI links as hwloc has them, and the widths and generations that they stand for. */
#include "format/hwloc/machine.h"

/* Of a lane, by generation. */
static const int64_t lanes[] = { 250000000, 500000000, 984615385, 1969230769, 3938461538, 7562500000 };

int64_t
hwloc_pcie_speed(int width, int generation)
{
	return width * lanes[generation - 1];
}

bool
hwloc_pcie_of_speed(int64_t speed, int *width, int *generation)
{
	static const int widths[] = { 16, 8, 4, 2, 1, 32, 12 };
	for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
		for (size_t g = 0; g < sizeof lanes / sizeof *lanes; g++) {
			int64_t rate = widths[w] * lanes[g], off = speed > rate ? speed - rate : rate - speed;
			if (off <= rate / 200) {
				*width = widths[w];
				*generation = (int)g + 1;
				return true;
			}
		}
	}
	return false;
}
