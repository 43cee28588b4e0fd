"""A machine of topologies/ as NCCL writes it (NCCL_TOPO_DUMP_FILE), for NCCL's own reader.

Generations of GPUs and CPUs, which topologies do not have, are found by the rates that they have."""
import re
import sys
import xml.etree.ElementTree as ET

# Compute capability, by GB/s of an NVLink and its number in a GPU: the fifth generation has twice the rate.
GPU_OF_LINKS = {20: 60, 50: 100}
GPU_OF_COUNT = {6: 70, 12: 80, 18: 90}
PCIE = {12: "8.0 GT/s PCIe", 24: "16.0 GT/s PCIe", 48: "32.0 GT/s PCIe"}	# x16
# Rates between sockets as src/graph/topo.h of NCCL has them, and CPUs that have those.
CPU = {
    6: dict(arch="x86_64", vendor="GenuineIntel", familyid="6", modelid="79"),
    10: dict(arch="x86_64", vendor="GenuineIntel", familyid="6", modelid="85"),
    16: dict(arch="x86_64", vendor="AuthenticAMD", familyid="143", modelid="49"),
    22: dict(arch="x86_64", vendor="GenuineIntel", familyid="6", modelid="143"),
    32: dict(arch="ppc64"),
    40: dict(arch="x86_64", vendor="GenuineIntel", familyid="6", modelid="207"),
}


class Machine:
    def __init__(self, path):
        top = ET.parse(path).getroot()
        node = top.find("node")
        self.rate = {c.get("name"): float(c.get("capacity", 0)) for c in top.iter("class")}
        self.kind = {v.get("id"): v.tag for v in node}
        self.nic = {v.get("id"): float(v.get("capacity")) for v in node if v.tag == "nic"}
        self.links = [(a, b, link.get("class"), int(link.get("count", 1)), float(link.get("capacity", 0)))
                      for link in top.iter("link") for a, b in ((link.get("from"), link.get("to")),)]
        names = list(self.kind)
        # Every device has a bus of its own; functions of one would be parts of one device.
        self.bus = {v: "%04x:%02x:00.0" % divmod(i + 1, 256) for i, v in enumerate(names)}

    def neighbours(self, v, kind):
        for a, b, cls, count, _ in self.links:
            if cls == kind and v in (a, b):
                yield (b if a == v else a), count

    def speed(self, a, b):
        for x, y, cls, count, own in self.links:
            if cls == "pcie" and {x, y} == {a, b}:
                return PCIE[own or self.rate["pcie"]]
        raise KeyError((a, b))

    def compute_capability(self):
        if "nvlink" not in self.rate:
            return 80 if self.rate["pcie"] > 12 else 37
        count = sum(n for _, n in self.neighbours("gpu0", "nvlink"))
        return GPU_OF_LINKS.get(self.rate["nvlink"]) or GPU_OF_COUNT[count]


def number(name):
    return re.search(r"\d+$", name)[0]


def put_gpu(machine, parent, v):
    gpu = ET.SubElement(parent, "gpu", dev=number(v), sm=str(machine.compute_capability()), rank=number(v), gdr="1")
    for w, count in machine.neighbours(v, "nvlink"):
        kind = {"gpu": "0x030200", "switch": "0x068000", "cpu": "0x068001"}[machine.kind[w]]
        if machine.kind[w] == "cpu":	# it says only that this is the CPU of the GPU
            kind, target = "0x060400", "ffff:ff:ff.%s" % number(w)
        ET.SubElement(gpu, "nvlink", target=target if machine.kind[w] == "cpu" else machine.bus[w],
                      count=str(count), tclass=kind)


def put_device(machine, parent, v, above, nets):
    classes = {"gpu": "0x030200", "nic": "0x020700", "switch": "0x060400"}
    pci = ET.SubElement(parent, "pci", {"busid": machine.bus[v], "class": classes[machine.kind[v]],
                                        "link_speed": machine.speed(v, above), "link_width": "16"})
    if machine.kind[v] == "gpu":
        put_gpu(machine, pci, v)
    elif machine.kind[v] == "nic":
        ET.SubElement(ET.SubElement(pci, "nic"), "net", name=v, dev=number(v), speed=str(int(machine.nic[v] * 8000)),
                      port="1", latency="0", guid="0x%x" % (len(nets) + 1), maxconn="262144", gdr="1")
        nets.append(v)
    else:
        for w, _ in machine.neighbours(v, "pcie"):
            if w != above:
                put_device(machine, pci, w, v, nets)


def convert(path):
    machine = Machine(path)
    system, nets = ET.Element("system", version="1"), []
    for v, kind in machine.kind.items():
        if kind != "cpu":
            continue
        cpu = ET.SubElement(system, "cpu", numaid=number(v), **CPU[machine.rate["qpi"]])
        for w, _ in machine.neighbours(v, "pcie"):
            put_device(machine, cpu, w, v, nets)
    ET.indent(system)
    return ET.tostring(system, "unicode") + "\n"


if __name__ == "__main__":
    sys.stdout.write(convert(sys.argv[1]))
