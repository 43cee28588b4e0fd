#!/usr/bin/env python3
"""Machines as hwloc writes them, made from published tables of links; and what a topology file must have of them.

usage: hwloc.py write NAME VERSION FILE     XML of hwloc, VERSION 1, 2 or 3; NAME: see MACHINES
       hwloc.py sysfs FOLDER                a /proc and /sys of two sockets with two GPUs and a NIC each
       hwloc.py numa NAME VERSION FILE      a machine without GPUs; NAME: see NUMA
       hwloc.py links FILE CLASS            the links of a topology file of blinkc: "gpu0 gpu1 2 25" in each line,
       sorted
       hwloc.py hostile FOLDER              broken files, and FOLDER/want: file, exit status, a part of the message
"""
import os
import struct
import sys
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import quoteattr

from subsets import MACHINES as DGX1

V100, P100 = ("10de", "1db1", "Tesla V100-SXM2-16GB"), ("10de", "15f9", "Tesla P100-SXM2-16GB")
A100, RTX = ("10de", "20f1", "NVIDIA A100-PCIE-40GB"), ("10de", "2204", "NVIDIA GeForce RTX 3090")
MI300X, MI250X = ("1002", "74a1", "AMD Instinct MI300X OAM"), ("1002", "7408", "AMD INSTINCT MI200 (MCM) OAM")
T4, MI60 = ("10de", "1eb8", "Tesla T4"), ("1002", "66a1", "AMD Instinct MI60")
H100 = ("10de", "2330", "NVIDIA H100 80GB HBM3")


def pairs(n, value):
    return {(i, j): value for i in range(n) for j in range(n) if i != j}


def both(table, value):
    return {pair: value * count for (i, j), count in table.items() for pair in ((i, j), (j, i))}


# model, GPUs, name of the matrix, MB/s by pair, version of hwloc, more: NVSwitches; PCI class; GB/s of PCIe, of its
# root ports
MACHINES = {
    "dgx1v": (V100, 8, "NVLinkBandwidth", both(DGX1["dgx1v"], 25000), "2.10.0", {}),
    "dgx1p": (P100, 8, "NVLinkBandwidth", both(DGX1["dgx1p"], 20000), "2.10.0", {}),
    # Pairs with bridges of 12 links: 300 GB/s each way, which hwloc 2.9.0 has as 600.
    "a100-2.9.0": (A100, 4, "NVLinkBandwidth", both({(0, 1): 12, (2, 3): 12}, 50000), "2.9.0", {"speed": 31.507692}),
    "a100-2.9.1": (A100, 4, "NVLinkBandwidth", both({(0, 1): 12, (2, 3): 12}, 25000), "2.9.1", {"speed": 31.507692}),
    # 8 GPUs on 4 switches, 18 links of a GPU: 5, 4, 4 and 5.
    "h100": (H100, 8, "NVLinkBandwidth", {(g, 8 + s): 25000 * (5 if s in (0, 3) else 4) for g in range(8)
             for s in range(4)}, "2.12.0", {"switches": 4, "speed": 63.015385}),
    "mi300x": (MI300X, 8, "XGMIBandwidth", pairs(8, 100000), "2.9.0", {"class": "1200", "speed": 63.015385}),
    "mi250x": (MI250X, 8, "XGMIBandwidth", pairs(8, 100000), "2.9.0", {"class": "0380", "speed": 31.507692}),
    # With AMD SMI: rates by pair, and how far apart they are.
    "mi250x-smi": (MI250X, 4, "XGMIBandwidth", {**pairs(4, 50000), **both({(0, 1): 4, (2, 3): 4, (1, 2): 2}, 50000)},
                   "2.14.0", {"class": "0380", "speed": 31.507692, "hops": {**pairs(4, 1), (0, 2): 2, (2, 0): 2}}),
    "mi250x-4": (MI250X, 4, "XGMIBandwidth", pairs(4, 100000), "2.9.0", {"class": "0380", "speed": 31.507692}),
    # Ports to GPUs that idle, of generation 1: with the lanes that they have, and with fewer.
    "t4-idle": (T4, 4, None, {}, "2.9.0", {"idle": 2.0}),
    "mi60-idle": (MI60, 4, None, {}, "2.9.0", {"class": "0300", "speed": 31.507692, "idle": 1.0}),
    # PCIe of two lanes, and NVLinks of which the file has nothing.
    "ac922": (V100, 4, None, {}, "2.9.0", {"arch": "ppc64le", "idle": 1.969231}),
    "rtx3090": (RTX, 4, None, {}, "2.9.0", {"class": "0300", "handles": False, "speed": 15.753846}),
    # The root ports have 8 lanes, what is below them 16.
    "slow-port": (V100, 4, "NVLinkBandwidth", both({(0, 1): 6, (2, 3): 6}, 25000), "2.10.0", {"port": 7.876923}),
    "one-way": (V100, 3, "NVLinkBandwidth", {**both({(0, 1): 1}, 25000), (1, 2): 50000}, "2.10.0", {}),
}


class Writer:
    """XML with numbers for objects, in the order in which they are opened."""

    def __init__(self, version):
        self.version, self.lines, self.depth, self.gp, self.stack = version, [], 1, 0, []

    def line(self, text):
        self.lines.append("  " * self.depth + text)

    def open(self, kind, **attributes):
        self.gp += 1
        given = {"type": kind, **attributes}
        if self.version > 1:
            given["gp_index"] = self.gp
        self.line("<object " + " ".join(f"{k}={quoteattr(str(v))}" for k, v in given.items()) + ">")
        self.depth += 1
        return self.gp

    def info(self, name, value):
        self.line(f"<info name={quoteattr(name)} value={quoteattr(value)}/>")

    def close(self):
        self.depth -= 1
        self.line("</object>")


def sets(cpus, nodes):
    return {key + kind: value for kind, value in (("cpuset", cpus), ("nodeset", nodes)) for key in ("", "complete_")}


def device(out, bus, kind, vendor, model, speed):
    more = " 00" if out.version == 3 else ""
    out.open("PCIDev", pci_busid=f"0000:{bus:02x}:00.0", pci_type=f"{kind} [{vendor}:{model}] [0000:0000] a1{more}",
             pci_link_speed=f"{speed:.6f}")


def bridge(out, bus, slot, first, last, speed):
    more = " 00" if out.version == 3 else ""
    out.open("Bridge", bridge_type="1-1", depth="1", bridge_pci=f"0000:[{first:02x}-{last:02x}]",
             pci_busid=f"0000:{bus:02x}:{slot:02x}.0", pci_type=f"0604 [10b5:9765] [0000:0000] ca{more}",
             pci_link_speed=f"{speed:.6f}")


def gpu(out, number, bus, machine, handles):
    (vendor, pci_model, model), more = machine[0], machine[5]
    device(out, bus, more.get("class", "0302"), vendor, pci_model, more.get("speed", 15.753846))
    backend = "rsmi" if vendor == "1002" else "nvml"
    if more.get("handles", True):
        types = {1: "1", 2: "1", 3: "4"}[out.version]
        handles.append(out.open("OSDev", name=f"{backend}{number}", subtype=backend.upper(), osdev_type=types))
        out.info("GPUModel", model)
        out.close()
    out.close()


def nic(out, number, bus):
    device(out, bus, "0207", "15b3", "1013", 15.753846)
    for name, kind in ((f"ib{number}", "network"), (f"mlx5_{number}", "openfabrics")):
        code = {"network": {1: "2", 2: "2", 3: "16"}, "openfabrics": {1: "3", 2: "3", 3: "48"}}[kind][out.version]
        out.open("OSDev", name=name, osdev_type=code)
        out.close()
    out.close()


def pcie_switch(out, first_gpu, machine, handles, n_nics):
    """A root port, a switch, and below each of its ports a GPU or NIC: as in a DGX-1."""
    bus, speed = 0x10 + 0x10 * (first_gpu // 2), machine[5].get("speed", 15.753846)
    bridge(out, 0, first_gpu // 2 + 1, bus, bus + 15, machine[5].get("port", speed))
    bridge(out, bus, 0, bus + 1, bus + 15, speed)
    below = [("gpu", g) for g in range(first_gpu, min(first_gpu + 2, machine[1]))] + [("nic", first_gpu // 2)] * n_nics
    for i, (what, number) in enumerate(below):
        to_gpu = machine[5].get("idle", speed)
        bridge(out, bus + 1, 4 * i, bus + 2 + i, bus + 2 + i, to_gpu if what == "gpu" else 15.753846)
        if what == "gpu":
            gpu(out, number, bus + 2 + i, machine, handles)
        else:
            nic(out, number, bus + 2 + i)
        out.close()
    out.close()
    out.close()


def package(out, number, machine, handles, switches):
    cpu, node = f"0x{1 << number:08x}", f"0x{1 << number:08x}"
    first = out.version == 1
    if first:
        out.open("NUMANode", os_index=number, **sets(cpu, node), local_memory="1048576")
    out.open("Socket" if first else "Package", os_index=number, **sets(cpu, node))
    for key, value in (("CPUVendor", "GenuineIntel"), ("CPUFamilyNumber", "6"), ("CPUModelNumber", "79")):
        out.info(key, value)
    if not first:
        out.open("NUMANode", os_index=number, **sets(cpu, node), local_memory="1048576")
        out.close()
    out.open("Core", os_index=0, **sets(cpu, node))
    out.open("PU", os_index=number, **sets(cpu, node))
    out.close()
    out.close()
    out.open("Bridge", bridge_type="0-1", depth="0",
             bridge_pci=f"0000:[{0x80 * number:02x}-{0x80 * number + 0x7f:02x}]")
    half = -(-machine[1] // 2)
    for g in range(number * half, min(machine[1], (number + 1) * half), 2):
        pcie_switch(out, g, machine, handles, 1 if machine[0] in (V100, P100) else 0)
    for s in range(machine[5].get("switches", 0) * (number == 0)):
        device(out, 0xa0 + s, "0680", "10de", "22a3", 1)
        switches.append(out.gp)
        out.close()
    out.close()
    out.close()
    if first:
        out.close()


def write_matrix(out, name, kind, members, values):
    n = len(members)
    flat = [str(values.get((i, j), values.get((j, i), 0) if i >= 8 or j >= 8 else 0) if i != j else 0)
            for i in range(n) for j in range(n)]
    hetero = len({k for k, _ in members}) > 1
    indexes = [f"{k}:{gp}" if hetero else str(gp) for k, gp in members]
    if hetero:
        out.line(f'<distances2hetero nbobjs="{n}" kind="{kind + 16}" name="{name}">')
    else:
        out.line(f'<distances2 type="{members[0][0]}" nbobjs="{n}" kind="{kind}" name="{name}" indexing="gp">')
    for tag, words in (("indexes", indexes), ("u64values", flat)):
        for i in range(0, len(words), 10):
            text = " ".join(words[i:i + 10]) + " "
            out.line(f'  <{tag} length="{len(text)}">{text}</{tag}>')
    out.line("</distances2hetero>" if hetero else "</distances2>")


def machine_xml(name, version):
    machine = MACHINES[name]
    out, handles, switches = Writer(version), [], []
    infos = (("Architecture", machine[5].get("arch", "x86_64")),
             ("hwlocVersion", "1.11.13" if version == 1 else machine[4]))
    out.open("Machine", os_index=0, **sets("0x00000003", "0x00000003"), allowed_cpuset="0x00000003",
             allowed_nodeset="0x00000003")
    for info in infos if version < 3 else ():
        out.info(*info)
    for number in range(2):
        package(out, number, machine, handles, switches)
    out.close()
    members = [("OSDev", gp) for gp in handles] + [("PCIDev", gp) for gp in switches]
    if machine[2] and version > 1:
        write_matrix(out, machine[2], 9, members, machine[3])
        if "hops" in machine[5]:
            write_matrix(out, "XGMIHops", 5, members, machine[5]["hops"])
    for info in infos if version == 3 else ():
        out.info(*info)
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f'<!DOCTYPE topology SYSTEM '
                                                      f'"hwloc{"" if version == 1 else 2}.dtd">',
            "<topology>" if version == 1 else f'<topology version="{version}.0">']
    return "\n".join(head + out.lines + ["</topology>", ""])


# ---- machines whose ranks are CPUs ----

# packages, nodes of each, cores of a node, distances: in a package, between packages (p, q); vendor, family, model;
# more: nodes without CPUs; MB/s that were measured
NUMA = {
    "one": (1, 1, 4, 10, lambda p, q: 10, ("GenuineIntel", 6, 143), {}),
    "two": (2, 1, 4, 10, lambda p, q: 21, ("GenuineIntel", 6, 143), {"memory": 2}),
    "snc2": (2, 2, 2, 12, lambda p, q: 21, ("GenuineIntel", 6, 143), {}),
    "square": (4, 1, 2, 10, lambda p, q: 31 if (p - q) % 2 == 0 else 21, ("GenuineIntel", 6, 85), {}),
    # The corners of a cube, as servers of eight sockets with three links each.
    "cube": (8, 1, 2, 10, lambda p, q: 11 + 10 * (p ^ q).bit_count(), ("GenuineIntel", 6, 85), {}),
    "nps4": (2, 4, 2, 12, lambda p, q: 32, ("AuthenticAMD", 25, 1), {}),
    "odd": (3, 1, 2, 10, lambda p, q: 40 if q == 2 or p == 2 else 20, (None, -1, -1), {}),
    "measured": (2, 2, 2, 12, lambda p, q: 32, ("AuthenticAMD", 25, 1), {
        "core": lambda k: 9000 + k,
        "rate": lambda i, j: 50000 if i == j else 40000 - i if i // 2 == j // 2 else 21000 + i}),
}


def numa_node(out, k, cores):
    cpus = f"0x{((1 << 2 * cores) - 1) << 2 * cores * k:08x}"
    out.open("NUMANode", os_index=k, **sets(cpus, f"0x{1 << k:08x}"))


def numa_package(out, p, machine, rates):
    """Cores of two threads, whose PUs are side by side."""
    _, nodes, cores, _, _, cpu, _ = machine
    everything = ((1 << 2 * cores * nodes) - 1) << 2 * cores * nodes * p
    if out.version == 1:    # of one node each
        numa_node(out, p, cores)
    out.open("Socket" if out.version == 1 else "Package", os_index=p, **sets(f"0x{everything:08x}", f"0x{1 << p:08x}"))
    for key, value in zip(("CPUVendor", "CPUFamilyNumber", "CPUModelNumber"), cpu if cpu[0] else ()):
        out.info(key, str(value))
    for k in range(nodes * p, nodes * (p + 1)):
        if out.version > 1:
            numa_node(out, k, cores)
            if "core" in rates:
                out.info("CoreBandwidth", str(rates["core"](k)))
            out.close()
        for c in range(k * cores, (k + 1) * cores):
            out.open("Core", os_index=c, **sets(f"0x{3 << 2 * c:08x}", f"0x{1 << k:08x}"))
            out.close()
    out.close()
    if out.version == 1:
        out.close()


def numa_matrix(out, name, kind, n, value):
    out.line(f'<distances2 type="NUMANode" nbobjs="{n}" kind="{kind}" name="{name}" indexing="os">')
    for tag, words in (("indexes", range(n)), ("u64values", [value(i, j) for i in range(n) for j in range(n)])):
        text = "".join(f"{word} " for word in words)
        out.line(f'  <{tag} length="{len(text)}">{text}</{tag}>')
    out.line("</distances2>")


def numa_xml(name, version):
    machine = NUMA[name]
    packages, nodes, cores, near, far, _, more = machine
    out, n = Writer(version), packages * nodes
    out.open("Machine", os_index=0, **sets(f"0x{(1 << 2 * cores * n) - 1:08x}", f"0x{(1 << n) - 1:08x}"))
    if version < 3:
        out.info("Architecture", "x86_64")
    for p in range(packages):
        numa_package(out, p, machine, more)
    for k in range(more.get("memory", 0) if version > 1 else 0):
        out.open("NUMANode", os_index=n + k, **sets("0x0", f"0x{1 << n + k:08x}"))
        out.close()
    out.close()
    if version > 1 and n > 1:
        numa_matrix(out, "NUMALatency", 5, n, lambda i, j: 10 if i == j else near if i // nodes == j // nodes
                    else far(i // nodes, j // nodes))
        if "rate" in more:
            numa_matrix(out, "NUMABandwidth", 10, n, more["rate"])
    if version == 3:
        out.info("Architecture", "x86_64")
    head = ["<topology>" if version == 1 else f'<topology version="{version}.0">']
    return "\n".join(head + out.lines + ["</topology>", ""])


# ---- /proc and /sys ----

def put(root, path, content):
    path = root + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def put_link(root, path, target):
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    os.symlink(target, root + path)


def put_cpus(root):
    for cpu in range(4):
        base = f"/sys/devices/system/cpu/cpu{cpu}/topology/"
        package_cpus = f"{3 << cpu // 2 * 2:x}\n"
        for key, value in (("physical_package_id", f"{cpu // 2}\n"), ("core_id", f"{cpu % 2}\n"),
                           ("package_cpus", package_cpus),
                           ("core_siblings", package_cpus), ("thread_siblings", f"{1 << cpu:x}\n"),
                           ("core_cpus", f"{1 << cpu:x}\n")):
            put(root, base + key, value)
    for key in ("online", "possible", "present"):
        put(root, "/sys/devices/system/cpu/" + key, "0-3\n")
    for node in range(2):
        base = f"/sys/devices/system/node/node{node}/"
        put(root, base + "cpumap", f"{3 << 2 * node:x}\n")
        put(root, base + "meminfo", f"Node {node} MemTotal: 1048576 kB\n")
        put(root, base + "distance", ("10 21\n", "21 10\n")[node])
    put(root, "/sys/devices/system/node/online", "0-1\n")
    put(root, "/proc/cpuinfo", "".join(f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: "
                                       f"6\nmodel\t\t: 79\n"
                                       f"physical id\t: {cpu // 2}\n\n" for cpu in range(4)))
    put(root, "/proc/meminfo", "MemTotal: 2097152 kB\n")
    put(root, "/proc/mounts", "")


def put_pci(root, above, bus, kind, vendor, model, node, below=None):
    """A device in the folder of the one above; below: first and last bus behind a bridge."""
    config = bytearray(256)
    struct.pack_into("<HHH", config, 0, vendor, model, 0)
    struct.pack_into("<H", config, 6, 0x10)
    config[0x0a], config[0x0b], config[0x34], config[0x40] = kind & 255, kind >> 8, 0x40, 0x10
    struct.pack_into("<H", config, 0x52, 3 | 16 << 4)
    if below:
        config[0x0e], config[0x18], config[0x19], config[0x1a] = 1, int(bus[5:7], 16), *below
    base = f"{above}/{bus}"
    for key, value in (("config", bytes(config)), ("class", f"0x{kind:04x}00\n"), ("vendor", f"0x{vendor:04x}\n"),
                       ("device", f"0x{model:04x}\n"), ("numa_node", f"{node}\n"),
                       ("local_cpus", f"{3 << 2 * node:x}\n"),
                       ("current_link_speed", "8.0 GT/s PCIe\n"), ("current_link_width", "16\n")):
        put(root, f"{base}/{key}", value)
    put_link(root, f"/sys/bus/pci/devices/{bus}", "../../.." + base[len("/sys"):])
    return base


def write_sysfs(root):
    put_cpus(root)
    for node, bus in enumerate((0x00, 0x80)):
        at = put_pci(root, f"/sys/devices/pci0000:{bus:02x}", f"0000:{bus:02x}:01.0", 0x604, 0x8086, 0x2030, node,
                     (bus + 1, bus + 6))
        at = put_pci(root, at, f"0000:{bus + 1:02x}:00.0", 0x604, 0x10b5, 0x9765, node, (bus + 2, bus + 6))
        for i in range(3):
            port = put_pci(root, at, f"0000:{bus + 2:02x}:{4 * i:02x}.0", 0x604, 0x10b5, 0x9765, node,
                           (bus + 3 + i, bus + 3 + i))
            kind, vendor, model = (0x207, 0x15b3, 0x1013) if i == 2 else (0x302, 0x10de, 0x1db1)
            end = put_pci(root, port, f"0000:{bus + 3 + i:02x}:00.0", kind, vendor, model, node)
            if i == 2:
                put(root, f"{end}/infiniband/mlx5_{node}/node_guid", "0\n")
                put_link(root, f"{end}/infiniband/mlx5_{node}/device", "../../../" + os.path.basename(end))
                put_link(root, f"/sys/class/infiniband/mlx5_{node}", f"../..{end[len('/sys'):]}/infiniband/mlx5_{node}")


# ---- topology files ----

def links(path, wanted):
    root = ElementTree.parse(path).getroot()
    default = {c.get("name"): float(c.get("capacity", 0)) for c in root.findall("class")}
    total = {}
    for link in root.findall("link"):
        if link.get("class") != wanted:
            continue
        ends = link.get("from"), link.get("to")
        key = (*(sorted(ends) if link.get("duplex", "full") == "full" else (ends[0], ">" + ends[1])),
               float(link.get("capacity", default[wanted])))
        total[key] = total.get(key, 0) + int(link.get("count", 1))
    return [f"{a} {b} {n} {rate:g}" for (a, b, rate), n in sorted(total.items())]


# ---- broken files ----

def broken():
    """name, XML, exit status, part of the message; status 0: it is read."""
    good = machine_xml("dgx1v", 2)
    first_list = good[good.index("<indexes"):good.index("</indexes>") + len("</indexes>")]
    deep = "".join('<object type="Group">' for _ in range(40)) + "</object>" * 40
    yield "truncated.xml", good[:len(good) // 2], 3, "end of file"
    yield "no-objects.xml", '<topology version="2.0">\n</topology>\n', 3, "topology"
    yield "version.xml", good.replace('version="2.0"', 'version="4.0"'), 3, "want 1.x, 2.x or 3.x"
    yield "version-text.xml", good.replace('version="2.0"', 'version="two"'), 3, "want 1.x, 2.x or 3.x"
    yield "no-gpu.xml", good.replace("0302 [10de:1db1]", "0200 [8086:1db1]").replace("nvml", "eth"), 3, "no GPU"
    yield "no-pci.xml", '<topology version="2.0"><object type="Machine"/></topology>\n', 3, "has no PCI devices"
    yield "deep.xml", good.replace("</object>\n  <distances2", deep + "</object>\n  <distances2"), 4, "deep"
    yield "entities.xml", good.replace('.dtd">', '.dtd" [<!ENTITY a "b">]>'), 3, "DOCTYPE"
    yield "count.xml", good.replace('nbobjs="8"', 'nbobjs="4294967295"'), 3, "nbobjs"
    yield "count-65537.xml", good.replace('nbobjs="8"', 'nbobjs="65537"'), 3, "nbobjs"
    yield "count-none.xml", good.replace('nbobjs="8" ', ""), 3, "nbobjs"
    yield "count-negative.xml", good.replace('nbobjs="8"', 'nbobjs="-1"'), 3, "nbobjs"
    yield "count-nan.xml", good.replace('nbobjs="8"', 'nbobjs="NaN"'), 3, "nbobjs"
    yield "count-more.xml", good.replace('nbobjs="8"', 'nbobjs="9"'), 3, "too few indexes"
    yield "count-less.xml", good.replace('nbobjs="8"', 'nbobjs="7"'), 3, "too many indexes"
    words = first_list.split(">")[1].split("<")[0].split()
    yield "index-none.xml", good.replace(first_list,
                                         first_list.replace(words[0], "999999")), 3, "no object has gp_index 999999"
    yield "index-twice.xml", good.replace(first_list, first_list.replace(words[0], words[1])), 3, "twice"
    yield "index-text.xml", good.replace(first_list, first_list.replace(words[0], "x" * 100)), 3, "want a whole number"
    yield "index-large.xml", good.replace(first_list, first_list.replace(words[0], "9" * 40)), 3, "want a whole number"
    yield "gp-twice.xml", good.replace('gp_index="2"', f'gp_index="{words[0]}"'), 3, "two objects have gp_index"
    yield "value-nan.xml", good.replace(" 25000 ", " nan ", 1), 3, "want a whole number"
    yield "value-negative.xml", good.replace(" 25000 ", " -25000 ", 1), 3, "want a whole number"
    yield "value-large.xml", good.replace(" 25000 ", " 18446744073709551615 ", 1), 3, "want a whole number"
    yield "value-most.xml", good.replace(" 25000 ", " 1000000001 ", 1), 4, "want at most"
    yield "value-links.xml", good.replace(" 25000 ", " 100000000 ", 1), 4, "want at most 1024 links"
    yield "value-fewer.xml", good.replace(" 25000 ", " ", 1), 3, "too few values"
    yield "value-more.xml", good.replace(" 25000 ", " 25000 25000 ", 1), 3, "too many values"
    yield "indexing.xml", good.replace('indexing="gp"', 'indexing="os"'), 3, "want gp"
    yield "matrix-twice.xml", good.replace("</topology>", good[good.index("<distances2"):]), 3, "two matrices"
    yield "element-in-text.xml", good.replace("</indexes>", "<info/></indexes>", 1), 3, "want text only"
    yield "text.xml", good.replace("</object>", "</object> text", 1), 3, "text between tags"
    yield "bus.xml", good.replace("0000:12:00.0", "0000:zz:00.0", 1), 3, "want a PCI address"
    yield "bus-long.xml", good.replace("0000:12:00.0", "123456789:12:00.0", 1), 3, "want a PCI address"
    yield "pci-type.xml", good.replace("0302 [10de:1db1]", "0302 10de", 1), 3, "want a class and a device"
    yield "speed-nan.xml", good.replace("15.753846", "nan", 1), 3, "pci_link_speed"
    yield "speed-negative.xml", good.replace("15.753846", "-1", 1), 3, "pci_link_speed"
    yield "speed-large.xml", good.replace("15.753846", "1e300", 1), 4, "pci_link_speed"
    yield "type.xml", good.replace('type="PCIDev" ', "", 1), 3, "type"
    yield "control.xml", good.replace("Tesla", "&#27;[31m", 1), 3, ""
    # Read, though odd.
    yield "unknown.xml", good.replace("</topology>", "<future a='1'/></topology>"), 0, ""
    yield "no-doctype.xml", "\n".join(line for line in good.split("\n") if "DOCTYPE" not in line), 0, ""
    yield "no-model.xml", good.replace("GPUModel", "Model"), 0, ""
    yield "uneven.xml", good.replace(" 25000 ", " 12345 ", 1), 0, "NVLinkBandwidth has no multiples"
    yield "speed-none.xml", good.replace("15.753846", "0.000000"), 0, "PCIe links without a speed"
    yield "speed-odd.xml", good.replace("15.753846", "5.3", 1), 0, ""
    yield "os-type.xml", good.replace('osdev_type="2"', 'osdev_type="4000000000"'), 0, ""


def write_broken(folder):
    with open(os.path.join(folder, "want"), "w", encoding="ascii") as want:
        for name, text, status, message in broken():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            want.write(f"{name}\t{status}\t{message}\n")


def main(arguments):
    if len(arguments) == 4 and arguments[0] == "write":
        with open(arguments[3], "w", encoding="ascii") as file:
            file.write(machine_xml(arguments[1], int(arguments[2])))
    elif len(arguments) == 4 and arguments[0] == "numa":
        with open(arguments[3], "w", encoding="ascii") as file:
            file.write(numa_xml(arguments[1], int(arguments[2])))
    elif len(arguments) == 2 and arguments[0] == "sysfs":
        write_sysfs(arguments[1])
    elif len(arguments) == 3 and arguments[0] == "links":
        print("".join(line + "\n" for line in links(*arguments[1:])), end="")
    elif len(arguments) == 2 and arguments[0] == "hostile":
        write_broken(arguments[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
