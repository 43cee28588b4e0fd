/* Rates of NICs' ports, which hwloc does not have. InfiniBand devices, also those for RDMA over Ethernet, have a folder
 * for each port, with its state and rate: "4: ACTIVE" and "200 Gb/sec (4X HDR)". Others have their speed in Mb/s. */
#include "format/hwloc/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of a file below the folder of a class; false: there is none. */
static bool
read_line(const char *sysfs, const char *class, const char *name, const char *file, char *line, int size)
{
	char path[512];
	if (snprintf(path, sizeof path, "%s/class/%s/%s/%s", sysfs, class, name, file) >= (int)sizeof path)
		return false;
	FILE *f = fopen(path, "re");
	bool got = f && fgets(line, size, f);
	if (f)
		fclose(f);
	return got;
}

/* A port that is down has the rate that it would come up with. */
static int64_t
infiniband_rate(const char *sysfs, const char *name, int port)
{
	char file[32], line[80], *end;
	snprintf(file, sizeof file, "ports/%d/state", port);
	if (!read_line(sysfs, "infiniband", name, file, line, sizeof line) || !strstr(line, "ACTIVE"))
		return 0;
	snprintf(file, sizeof file, "ports/%d/rate", port);
	if (!read_line(sysfs, "infiniband", name, file, line, sizeof line))
		return 0;
	double gbits = strtod(line, &end);
	return strncmp(end, " Gb/sec", 7) == 0 && gbits > 0 && gbits < 1e6 ? (int64_t)(gbits * 1e9 / 8) : 0;
}

int64_t
nic_port_rate(const char *sysfs, const char *name)
{
	enum { PORTS_MOST = 4 };
	char line[80];
	int64_t most = 0;
	if (strchr(name, '/'))
		return 0;
	for (int port = 1; port <= PORTS_MOST; port++) {
		int64_t rate = infiniband_rate(sysfs, name, port);
		most = rate > most ? rate : most;
	}
	if (most == 0 && read_line(sysfs, "net", name, "speed", line, sizeof line)) {
		long mbits = strtol(line, NULL, 10);
		most = mbits > 0 && mbits < 100000000 ? (int64_t)mbits * 1000000 / 8 : 0;
	}
	return most;
}
