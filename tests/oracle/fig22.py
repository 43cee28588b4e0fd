#!/usr/bin/env python3
"""Allreduce over three GPUs of a DGX-1V and five of another, for networks of 40 to 800 Gb/s: the rows of the tables in
docs/results.md that are Blink's figure 22(b).

usage: fig22.py [--all] BLINKC       from the top directory; without --all the first and the last row of each
"""
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import rings

GPUS = "0,1,2,11,12,13,14,15"
NETWORK = [40, 100, 200, 300, 400, 500, 600, 800]     # Gb/s of a server, in each direction, over its four NICs


def servers(pcie):
    """Two DGX-1V; pcie: GB/s of each link on the way to a NIC, None: as the file says."""
    with open("topologies/dgx1v.xml", encoding="utf-8") as file:
        text = file.read()
    return text if pcie is None else re.sub(r'(<class name="(?:pcie|qpi)" capacity=)"[^"]*"', rf'\1"{pcie}"', text)


def compiled(blinkc, folder, network, pcie, algorithm):
    stem = f"{folder}/{network}-{pcie}"
    with open(f"{stem}.xml", "w", encoding="utf-8") as file:
        file.write(servers(pcie))
    subprocess.run([blinkc, "topology", "--servers", "2", f"{stem}.xml", "--nic-rate", str(network / 8 / 4), "-o",
                    f"{stem}-{algorithm}.json"], check=True)
    done = subprocess.run([blinkc, "-q", "-a", algorithm, "-g", GPUS, f"{stem}-{algorithm}.json"], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def why(schedule):
    """The parts between which links are full; or, where no partition proves the bound, the links that have a price."""
    certificate, topology = schedule["rate"]["certificate"], schedule["topology"]
    name = {r: f"{'ab'[r > 2]}{r}" for r in range(8)}
    if "parts" in certificate:
        parts = [sorted(v for v in part if isinstance(v, int)) for part in certificate["parts"]]
        return " \\| ".join(" ".join(name[r] for r in part) for part in parts)
    dear = [l for l, price in zip(topology["links"], certificate["price"]) if price not in (0, "0/1")]
    nvlinks = sorted({"-".join(sorted((name[l["from"]], name[l["to"]]))) for l in dear if l["class"] == "nvlink"})
    others = sorted({l["class"] for l in dear} - {"nvlink"})
    return "prices of " + ", ".join(nvlinks + others)


def row(blinkc, folder, network, pcie):
    exact, phases = (compiled(blinkc, folder, network, pcie, algorithm) for algorithm in ("trees", "threephase"))
    flat = rings.best_rings(exact["topology"])
    rate, bound, three = exact["rate"]["achieved"], exact["rate"]["bound"], phases["rate"]["achieved"]
    tight = why(exact)
    assert bound - rate < 1e-9 * bound
    return f"| {network} | {network / 8:g} | {rate:.4g} | {three:.4g} | {flat:.4g} | {tight} |"


def main(blinkc, every):
    network = NETWORK if every else [NETWORK[0], NETWORK[-1]]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        for pcie in (None, 100):
            print("\n".join(pool.map(lambda rate: row(blinkc, folder, rate, pcie), network)), end="\n\n")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1:-1] not in ([], ["--all"]):
        sys.exit(__doc__)
    main(sys.argv[-1], sys.argv[1] == "--all")
