"""Descriptions of machines by other tools, read once more: foreign.py [--table] FILE MODEL TOPOLOGY.json

Holds the topology that blinkc made of FILE (of NCCL or RCCL, nvidia-smi topo -m, or rocm-smi --showtopo) against FILE
itself:
GPUs, NICs, NVLinks, xGMI, C2C with their numbers and rates, and for each pair of GPUs and NICs what the path over PCIe
crosses and what it carries. It shares no code with blinkc. --table: prints what the topology has, in one line.
"""
import json
import re
import sys
import xml.etree.ElementTree as ElementTree

# GB/s of a link in one direction, nominal.
SM = {60: 20, 70: 25, 75: 25, 80: 25, 86: 14.0625, 90: 25, 100: 50, 103: 50}
GCN = {"906": 46, "908": 46, "910": 50, "gfx90a": 50, "gfx906": 46, "gfx908": 46, "gfx942": 64, "942": 64,
       "gfx950": 76.8}
# rate, links, generation of PCIe, links between the dies of a package
MODELS = {
    "V100": (25, 6, 3, 0), "P100": (20, 4, 3, 0), "K80": (0, 0, 3, 0), "A100-PCIE": (25, 12, 4, 0),
    "A100": (25, 12, 4, 0), "H100-NVL": (25, 12, 5, 0), "L40S": (0, 0, 4, 0), "GB200": (50, 18, 5, 0),
    "H100-SXM": (25, 18, 5, 0), "MI100": (46, 3, 4, 0), "MI250X": (50, 8, 4, 4), "": (None, None, 3, 0),
    "RTX-A6000": (14.0625, 4, 4, 0), "RTX-3090": (14.0625, 4, 4, 0), "A40": (14.0625, 4, 4, 0),
    "RTX-4090": (0, 0, 4, 0), "A100-SXM4": (25, 12, 4, 0), "GH200": (25, 18, 5, 0), "H200": (25, 18, 5, 0),
    "B200": (50, 18, 5, 0), "T4": (0, 0, 3, 0), "L4": (0, 0, 4, 0), "V100-PCIE": (0, 0, 3, 0), "MI210": (50, 3, 4, 0),
}
C2C = {"GB200": 225, "GH200": 450}     # GB/s of a GPU
LANE = {1: 15, 2: 30, 3: 60, 4: 120, 5: 240, 6: 480}
SPEED = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32": 5, "32.0": 5, "64.0": 6}
UNKNOWN = 0xFFFFFFFFFFFFF


class Wrong(Exception):
    pass


def pcie(width, generation):
    return width * LANE[generation] / 80


# ---- the topology that blinkc made ----

class Made:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            top = json.load(file)
        self.kind, self.node, self.port, self.gpus = {}, {}, {}, []
        places = [(node["id"], node) for node in top["nodes"]] + [(None, {"switches": top.get("switches", [])})]
        for node, place in places:
            for plural, kind in (("gpus", "gpu"), ("cpus", "cpu"), ("switches", "switch"), ("nics", "nic")):
                for vertex in place.get(plural, []):
                    self.kind[vertex["id"]] = kind
                    self.node[vertex["id"]] = node
                    self.port[vertex["id"]] = vertex.get("capacity")
                    if kind == "gpu":
                        self.gpus.append(vertex["id"])
        classes = {c["name"]: c for c in top.get("classes", [])}
        self.links = []     # (from, to, class, count, rate of one)
        for link in top.get("links", []):
            rate = link.get("capacity", classes.get(link["class"], {}).get("capacity"))
            entry = (link["from"], link["to"], link["class"], link.get("count", 1), rate)
            self.links.append(entry)
            if link.get("duplex") != "simplex":
                self.links.append((entry[1], entry[0]) + entry[2:])
            if link["class"] != "net" and not (link.get("source") or classes.get(link["class"], {}).get("source")):
                raise Wrong(f"{entry}: no source")

    def direct(self, classes):
        """{(from, to, class): (count, rate)} of links of these classes."""
        out = {}
        for a, b, name, count, rate in self.links:
            if name in classes:
                if (a, b, name) in out:
                    raise Wrong(f"{a} to {b}: two links of {name}")
                out[a, b, name] = (count, rate)
        return out

    def paths(self, start):
        """{end: (GB/s, vertices between)} of the widest paths over pcie and qpi; those are trees and cliques of
        CPUs."""
        out, seen, todo = {}, {start}, [(start, float("inf"), ())]
        while todo:
            v, rate, between = todo.pop(0)
            out[v] = (rate, between)
            if v != start and self.kind[v] in ("gpu", "nic"):
                continue
            for a, b, name, count, capacity in self.links:
                if a == v and name in ("pcie", "qpi") and b not in seen:
                    seen.add(b)
                    todo.append((b, min(rate, count * capacity), between + ((v,) if v != start else ())))
        return out


def same(what, got, want):
    if got == want:
        return
    if isinstance(got, dict):
        for key in sorted(set(got) | set(want), key=str):
            if got.get(key) != want.get(key):
                raise Wrong(f"{what}: {key}: {got.get(key)}: want {want.get(key)}")
    raise Wrong(f"{what}: {got}: want {want}")


# ---- NCCL ----

def bus_number(text):
    return int(text.replace(":", "").replace(".", ""), 16)


def intercpu(cpu):
    if cpu.get("arch", "").startswith("ppc"):
        return 32
    if cpu.get("arch", "").startswith(("arm", "aarch")):
        return 6 if cpu.find(".//c2c") is None else 110
    if cpu.get("vendor") == "AuthenticAMD":
        return 16
    if cpu.get("vendor") == "GenuineIntel":
        model = int(cpu.get("modelid", -1))
        return 40 if model >= 207 else 22 if model >= 143 else 10 if model >= 85 else 6
    return 10


def check_nccl(path, made, model):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"<!DOCTYPE[^>]*>", "", file.read()).strip()
    system = ElementTree.fromstring(text)
    hosts = []
    for cpu in system.findall("cpu"):
        if cpu.get("host_hash", "") not in hosts:
            hosts.append(cpu.get("host_hash", ""))
    gpus, ends, ports = [], [], {}      # ends: (id, chain of (element, GB/s) from the device up, cpu)

    def prefix(cpu):
        return f"node{hosts.index(cpu.get('host_hash', ''))}/" if len(hosts) > 1 else ""

    def walk(cpu, element, chain):
        for pci in element.findall("pci"):
            width = int(pci.get("link_width") or 0) or 16
            speed = SPEED.get(pci.get("link_speed", "").split(" ")[0], 3)
            here = [(pci, pcie(width, speed))] + chain
            for gpu in pci.findall("gpu"):
                gpus.append((hosts.index(cpu.get("host_hash", "")), int(gpu.get("dev")),
                             bus_number(pci.get("busid")), gpu, cpu))
                ends.append((prefix(cpu) + "gpu" + gpu.get("dev"), here, cpu))
            for net in pci.findall("nic/net"):
                ends.append((net.get("name"), here, cpu))
                ports[net.get("name")] = int(net.get("speed")) / 8000
            walk(cpu, pci, here)

    for cpu in system.findall("cpu"):
        walk(cpu, cpu, [])
    gpus.sort(key=lambda g: g[:2])
    names = {id(g[3]): prefix(g[4]) + f"gpu{g[1]}" for g in gpus}
    same("GPUs", made.gpus, [names[id(g[3])] for g in gpus])

    def rate_of(gpu):
        if model:
            return MODELS[model][0]
        return GCN[gpu.get("gcn")] if gpu.get("gcn") else SM.get(int(gpu.get("sm")))

    want = {}

    def add(a, b, name, count, rate):
        old = want.get((a, b, name), (0, rate))
        want[a, b, name] = (old[0] + count, min(rate, old[1]))

    for host, _, _, gpu, cpu in gpus:
        me = names[id(gpu)]
        mine = prefix(cpu) + "cpu" + cpu.get("numaid")
        for kind in ("nvlink", "xgmi"):
            for link in gpu.findall(kind):
                count, rate, tclass = int(link.get("count", 1)), rate_of(gpu), link.get("tclass", "")
                target = bus_number(link.get("target"))
                if tclass == "0x068000" or target == UNKNOWN:
                    add(me, "nvswitch", kind, count, rate)
                    add("nvswitch", me, kind, count, rate)
                elif tclass == "0x068001":
                    add(me, mine, kind, count, rate)
                    add(mine, me, kind, count, rate)
                else:
                    for other in gpus:
                        if other[2] == target and other[0] == host:
                            add(me, names[id(other[3])], kind, count, min(rate, rate_of(other[3])))
        for link in gpu.findall("c2c"):
            for a, b in ((me, mine), (mine, me)):
                add(a, b, "c2c", int(link.get("count", 1)), int(link.get("bw")) / 1000)
    same("links", made.direct(("nvlink", "xgmi", "c2c")), want)

    for name, port in ports.items():
        same(f"port of {name}", (made.kind.get(name), made.port.get(name)), ("nic", port))
    for a, up_a, cpu_a in ends:
        found = made.paths(a)
        for b, up_b, cpu_b in ends:
            if a == b or cpu_a.get("host_hash") != cpu_b.get("host_hash"):
                continue
            shared = [p for p, _ in up_a if any(p is q for q, _ in up_b)]
            rates = [r for p, r in up_a if p not in shared] + [r for p, r in up_b if p not in shared]
            if cpu_a is not cpu_b:
                rates.append(min(intercpu(cpu_a), intercpu(cpu_b)))
            if not rates:       # two ports of one NIC
                continue
            if b not in found:
                raise Wrong(f"{a} to {b}: no path over PCIe")
            rate, between = found[b]
            cpus = sum(made.kind[v] == "cpu" for v in between)
            want_cpus = 2 if cpu_a is not cpu_b else 0 if shared else 1
            same(f"{a} to {b} over PCIe", (rate, cpus), (min(rates), want_cpus))


# ---- nvidia-smi topo -m ----

def check_nvidia(path, made, model):
    with open(path, encoding="utf-8") as file:
        text = re.sub("\x1b\\[[0-9;]*m", "", file.read())
    lines = [line.split() for line in text.split("\n")]
    at = next(i for i, w in enumerate(lines) if w and w[0] == "GPU0" and w[1:2] != ["X"])
    columns = []
    for word in lines[at]:
        if word in ("CPU", "NUMA"):
            break
        columns.append(word)
    legend = {w[0][:-1]: w[1] for w in lines if len(w) == 2 and w[0].endswith(":") and w[0] != "Legend:"}
    name = [legend.get(c, c) if not c.startswith("GPU") else "gpu" + c[3:] for c in columns]
    n, cell, affinity = len(columns), {}, {}
    known = re.compile("X|NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC")
    for words in lines[at + 1:]:
        if words and words[0] in columns:
            i = columns.index(words[0])
            for j, word in enumerate(words[1:n + 1]):
                if known.fullmatch(word):
                    cell[i, j] = word
                    cell.setdefault((j, i), word)
            if len(words) > n + 1 and words[n + 1] != "N/A":
                affinity[i] = words[n + 1]
    for _ in range(n):      # a NIC is below the CPU of what it is near to
        for (i, j), near in cell.items():
            if near in ("PIX", "PXB", "PHB", "NODE") and i in affinity:
                affinity.setdefault(j, affinity[i])
    rate, links, generation, _ = MODELS[model]
    same("GPUs", made.gpus, [x for c, x in zip(columns, name) if c.startswith("GPU")])
    same("NICs", sorted(v for v in made.kind if made.kind[v] == "nic"),
         sorted(x for c, x in zip(columns, name) if not c.startswith("GPU")))
    nv = {p: int(c[2:]) for p, c in cell.items() if c.startswith("NV")}
    want = {}
    n_gpus = len(made.gpus)
    switched = n_gpus > 2 and len(set(nv.values())) == 1 and len(nv) == n_gpus * (n_gpus - 1) \
        and next(iter(nv.values())) * (n_gpus - 1) > links
    for (i, j), count in nv.items():
        if switched:
            want[name[i], "nvswitch", "nvlink"] = want["nvswitch", name[i], "nvlink"] = (count, rate)
        else:
            want[name[i], name[j], "nvlink"] = (count, rate)
    if model in C2C:
        for a, b, kind, count, got in made.links:
            if kind == "c2c":
                same(f"C2C of {a}", (count, got), (1, C2C[model]))
                want[a, b, "c2c"] = (count, got)
        same("ends of C2C", sorted(a for a, _, kind in want if kind == "c2c" and a in made.gpus), sorted(made.gpus))
    same("links", made.direct(("nvlink", "xgmi", "c2c")), want)
    for i in range(n):
        found = made.paths(name[i])
        for j in range(n):
            near = cell.get((i, j))
            if i == j:
                continue
            if name[j] not in found:
                raise Wrong(f"{name[i]} to {name[j]}: no path over PCIe")
            between = [made.kind[v] for v in found[name[j]][1]]
            cpus, switches = between.count("cpu"), between.count("switch")
            one = affinity.get(i, 1) == affinity.get(j, 2)
            good = {"PIX": (cpus, switches) == (0, 1), "PXB": cpus == 0 and switches >= 1, "PHB": cpus == 1,
                    "NODE": cpus == 1,
                    "SYS": cpus == (1 if one else 2), "SOC": cpus == (1 if one else 2)}
            if not good.get(near, True):
                raise Wrong(f"{name[i]} to {name[j]}: {near}, but the path crosses {between}")
            if cpus < 2:
                same(f"{name[i]} to {name[j]} over PCIe", found[name[j]][0], pcie(16, generation))


# ---- rocm-smi --showtopo ----

def check_rocm(path, made, model):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    tables = {}
    for title in ("Weight", "Link Type"):
        rows = re.search(title + r" between two GPUs =+\n(.*?)\n\n", text + "\n\n", re.S).group(1).split("\n")
        tables[title] = [row.split()[1:] for row in rows[1:]]
    n = len(tables["Weight"])
    numa = dict(re.findall(r"GPU\[(\d+)\].*Numa Node: (\d+)", text))
    rate, _, generation, dies = MODELS[model]
    same("GPUs", made.gpus, [f"gpu{i}" for i in range(n)])
    pairs = [(i, j) for i in range(n) for j in range(n) if tables["Link Type"][i][j] == "XGMI"]
    least = min((int(tables["Weight"][i][j]) for i, j in pairs), default=0)
    want = {}
    for i, j in pairs:
        if int(tables["Weight"][i][j]) == least:
            count = dies if dies and abs(i - j) == 1 and min(i, j) % 2 == 0 else 1
            want[f"gpu{i}", f"gpu{j}", "xgmi"] = (count, rate)
    same("links", made.direct(("nvlink", "xgmi", "c2c")), want)
    for i in range(n):
        found = made.paths(f"gpu{i}")
        for j in range(n):
            if i != j:
                cpus = sum(made.kind[v] == "cpu" for v in found[f"gpu{j}"][1])
                same(f"gpu{i} to gpu{j} over PCIe", (found[f"gpu{j}"][0], cpus), (pcie(16, generation), 1)
                     if numa[str(i)] == numa[str(j)] else (min(16, pcie(16, generation)), 2))


# ---- the whole ----

def table(made):
    """Links of each class, both directions as one: number of bundles, links and GB/s of each."""
    kinds = list(made.kind.values())
    out = [f"{kinds.count('gpu')} gpus {kinds.count('cpu')} cpus {kinds.count('switch')} switches "
           f"{kinds.count('nic')} nics"]
    for name in ("nvlink", "xgmi", "c2c", "pcie", "qpi"):
        groups = {}
        for a, b, kind, count, rate in made.links:
            if kind == name:
                groups[count, rate] = groups.get((count, rate), 0) + 0.5
        if groups:
            out.append(name + " " + " ".join(f"{n:g}x{count}x{rate:g}" for (count, rate), n in sorted(groups.items())))
    ports = sorted({p for v, p in made.port.items() if made.kind[v] == "nic" and p})
    if ports:
        out.append("ports " + " ".join(f"{p:g}" for p in ports))
    return "; ".join(out)


def main():
    args = [a for a in sys.argv[1:] if a != "--table"]
    path, model = args[0], args[1]
    try:
        made = Made(args[2])
        if "--table" in sys.argv:
            print(table(made))
            return 0
        with open(path, encoding="utf-8") as file:
            text = file.read()
        check = check_nccl if "<system" in text else check_rocm if "between two GPUs" in text else check_nvidia
        check(path, made, model)
    except Wrong as wrong:
        print(f"{path}: WRONG: {wrong}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
