"""Random machines as NCCL and nvidia-smi describe them: random_foreign.py N DIR writes SEED.xml and SEED.topo for each
seed."""
import random
import sys

SPEEDS = ["2.5 GT/s", "5.0 GT/s PCIe", "8 GT/s", "16.0 GT/s PCIe", "32.0 GT/s PCIe", ""]


def nccl(rng):
    gpus, out = [], ['<system version="1">']
    n = rng.randint(1, 9)
    devs = rng.sample(range(16), n)
    sms = rng.choice([[70], [80], [90], [60, 70]])
    buses = iter(rng.sample(range(1, 255), 200))
    nets = iter(range(100))
    cpus = rng.randint(1, 3)
    places = [[] for _ in range(cpus)]
    for dev in devs:
        gpus.append((dev, f"0000:{next(buses):02x}:00.0", rng.choice(sms)))
        places[rng.randrange(cpus)].append(("gpu", len(gpus) - 1))
    for _ in range(rng.randint(0, 4)):
        places[rng.randrange(cpus)].append(("nic", rng.randint(1, 2)))
    pairs = {}
    for i in range(n):
        for j in range(i):
            count = rng.choice([0, 0, 1, 2, 4])
            # Now and then one direction has more than the other, or there is but one.
            pairs[i, j], pairs[j, i] = count, count if rng.random() < 0.9 else rng.choice([0, 1, 2])
    switched = rng.random() < 0.2

    def attributes(bus):
        return f'busid="{bus}" link_speed="{rng.choice(SPEEDS)}" link_width="{rng.choice([1, 4, 8, 16, 16, 16, 0])}"'

    def links(i):
        lines = []
        for j in range(n):
            if not switched and pairs.get((i, j)):
                lines.append(f'<nvlink target="{gpus[j][1]}" count="{pairs[i, j]}" tclass="0x030200"/>')
        if switched:
            lines += [f'<nvlink target="0000:f{k}:00.0" count="{k + 1}" tclass="0x068000"/>' for k in range(3)]
        if rng.random() < 0.2:
            lines.append('<nvlink target="00ff:ee:00.0" count="2" tclass="0x030200"/>')
        if rng.random() < 0.2:
            lines.append('<nvlink target="00ff:cc:00.0" count="1" tclass="0x068001"/>')
        rng.shuffle(lines)
        return "".join(lines)

    def device(kind, which):
        if kind == "gpu":
            dev, bus, sm = gpus[which]
            return f'<pci {attributes(bus)}><gpu dev="{dev}" sm="{sm}" rank="0">{links(which)}</gpu></pci>'
        ports = "".join(f'<net name="mlx5_{next(nets)}" speed="{rng.choice([100000, 200000, 25000])}"/>'
                        for _ in range(which))
        return f'<pci {attributes(f"0000:{next(buses):02x}:00.0")}><nic>{ports}</nic></pci>'

    def tree(items, depth):
        if not items:
            return ""
        if depth == 0 or (len(items) == 1 and rng.random() < 0.5):
            return "\n".join(device(*item) for item in items)
        groups = [[] for _ in range(rng.randint(1, 3))]
        for item in items:
            rng.choice(groups).append(item)
        return "\n".join(f'<pci {attributes(f"0001:{next(buses):02x}:00.0")} '
                         f'class="0x060400">{tree(g, depth - 1)}</pci>' for g in groups)

    vendor, model = rng.choice([("GenuineIntel", 79), ("GenuineIntel", 85), ("GenuineIntel", 143),
                                ("GenuineIntel", 207), ("AuthenticAMD", 1)])
    for numa, place in enumerate(places):
        out.append(f'<cpu numaid="{numa}" arch="x86_64" vendor="{vendor}" familyid="{6 if vendor[0] == "G" else 143}" '
                   f'modelid="{model}">')
        out.append(tree(place, rng.randint(0, 3)))
        out.append("</cpu>")
    return "\n".join(out + ["</system>"]) + "\n"


def topo(rng):
    """A tree of PCIe with up to three levels below each CPU, and NVLinks that hide some of it."""
    n, nics = rng.randint(1, 8), rng.randint(0, 4)
    cpus, place = rng.randint(1, 2), []
    for _ in range(n + nics):
        cpu = rng.randrange(cpus)
        bridge = rng.randrange(2)
        place.append((cpu, rng.randrange(2), bridge, rng.randrange(2)))

    def near(a, b):
        for level, word in enumerate(("SYS", "NODE", "PHB", "PXB")):
            if a[level] != b[level]:
                return word
        return "PIX"

    names = [f"GPU{i}" for i in range(n)] + [f"NIC{i}" if nics > 2 else f"mlx5_{i}" for i in range(nics)]
    cell = {}
    spare = [12] * n
    for i in range(n + nics):
        for j in range(i):
            cell[i, j] = cell[j, i] = near(place[i], place[j])
            count = rng.choice([0, 0, 1, 2, 4])
            if i < n and j < n and count and spare[i] >= count and spare[j] >= count:
                spare[i] -= count
                spare[j] -= count
                cell[i, j] = cell[j, i] = f"NV{count}"
        cell[i, i] = " X "
    tabs, affine = rng.random() < 0.5, rng.random() < 0.7
    between = "\t" if tabs else "   "
    lines = [("\t" if tabs else rng.choice(["", "        "])) + between.join(names) + between + "CPU Affinity"
             + between + "NUMA Affinity"]
    for i, name in enumerate(names):
        row = [cell[i, j] if tabs else cell[i, j].strip() for j in range(n + nics)]
        if i < n and affine:
            row += [f"{8 * place[i][0]}-{8 * place[i][0] + 7}", str(place[i][0])]
        lines.append(between.join([name] + row))
    if rng.random() < 0.3 and n + nics > 1:
        lines[-1] = lines[-1][:rng.randint(len(lines[-1]) // 2, len(lines[-1]))]
    if nics > 2:
        lines += ["", "NIC Legend:", ""] + [f"  NIC{i}: mlx5_{i + 3}" for i in range(nics)]
    return "\n".join(lines) + "\n"


def main():
    for seed in range(int(sys.argv[1])):
        for name, make in (("xml", nccl), ("topo", topo)):
            with open(f"{sys.argv[2]}/{seed}.{name}", "w", encoding="utf-8") as file:
                file.write(make(random.Random(seed)))


if __name__ == "__main__":
    main()
