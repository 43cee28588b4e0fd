#!/usr/bin/env python3
"""The tables of docs/simulator.md, held against blinkc: parameters and their defaults, model beside measurement.

usage: measured.py BLINKC DOCS DIR          a line for each table
       measured.py BLINKC DOCS DIR --write  the rows of the second table, for the page
"""
import json
import os
import re
import subprocess
import sys

from closed import Mesh, chain, flipped

KB, MB = 1 << 10, 1 << 20
CHAIN_CHUNK = 10**9 // 49
V100 = "Blink, microbenchmarks, V100"
H100 = "MSCCL++ tutorials, H100"


def mesh(n, capacity):
    m = Mesh(n, 3.4)
    for link in m.topology["links"]:
        link["capacity"] = capacity
    return m


def scaled(schedule, capacity):
    for name in ("achieved", "bound"):
        schedule["rate"][name] *= capacity / 25
    return schedule


def forward(n):
    return "broadcast", 0, [(0, [], chain(range(n)))]


def reduce(n):
    return "reduce", 0, [(0, flipped(chain(range(n))), [])]


def both(n):
    return "allreduce", None, [(0, flipped(chain(range(n))), chain(range(n)))]


# What, source, executor, trees, ranks, GB/s of a link, bytes, bytes of a chunk, measured, in us (else GB/s).
MEASURED = [
    ("chain, forward, 3 GPUs, 1000 MB", V100, "kernel", forward, 3, 25, 10**9, CHAIN_CHUNK, 22, False),
    ("chain, forward, 8 GPUs, 1000 MB", V100, "kernel", forward, 8, 25, 10**9, CHAIN_CHUNK, 20, False),
    ("chain, reduce and forward, 3 GPUs, 1000 MB", V100, "kernel", reduce, 3, 25, 10**9, CHAIN_CHUNK, 21, False),
    ("chain, reduce and forward, 8 GPUs, 1000 MB", V100, "kernel", reduce, 8, 25, 10**9, CHAIN_CHUNK, 19, False),
    ("chain, reduce and broadcast, 3 GPUs, 1000 MB", V100, "kernel", both, 3, 25, 10**9, CHAIN_CHUNK, 19, False),
    ("chain, reduce and broadcast, 8 GPUs, 1000 MB", V100, "kernel", both, 8, 25, 10**9, CHAIN_CHUNK, 16, False),
    ("one link, 64 MB by copy engines", "Dell, p2pBandwidthLatencyTest, V100-SXM2", "copy", forward, 2, 25, 64 * MB,
     64 * MB, 23.95, False),
    ("two GPUs, 1 KB, packets", H100, "kernel", forward, 2, 450, KB, MB, 4.1, True),
    ("two GPUs, 1 MB", H100, "kernel", forward, 2, 450, MB, MB, 113, False),
    ("two GPUs, 128 MB", H100, "kernel", forward, 2, 450, 128 * MB, 128 * MB, 345, False),
    ("two GPUs, 1 KB", H100, "copy", forward, 2, 450, KB, MB, 20.5, True),
    ("two GPUs, 1 MB", H100, "copy", forward, 2, 450, MB, MB, 42, False),
    ("two GPUs, 128 MB", H100, "copy", forward, 2, 450, 128 * MB, 128 * MB, 367, False),
]


def simulate(blinkc, path, *options):
    out = subprocess.run([blinkc, "simulate", path, "--format", "json", *options], stdout=subprocess.PIPE, check=True,
                         timeout=60)
    return json.loads(out.stdout)


def measured_rows(blinkc, where):
    path = os.path.join(where, "measured.json")
    for what, source, executor, make, n, capacity, size, chunk, measured, us in MEASURED:
        with open(path, "w") as f:
            json.dump(scaled(mesh(n, capacity).schedule(*make(n)), capacity), f)
        with open(os.path.join(where, "no_lines.json"), "w") as f:    # no program that was measured has any
            f.write('{"kernel": {"line_most": 0}}')
        row = simulate(blinkc, path, "--executor", executor, "--size", str(size), "--chunk", str(chunk),
                       "--parameters", os.path.join(where, "no_lines.json"))["sizes"][0]
        model = row["time_ps"] / 10**6 if us else row["algbw"]
        unit = "us" if us else "GB/s"
        off = f"{100 * (model / measured - 1):+.0f} %"
        yield f"| {what} | {executor} | {measured} {unit} | {model:.4g} {unit} | {off} | {source} |"


def parameter_rows(blinkc, where):
    path = os.path.join(where, "measured.json")
    of = [simulate(blinkc, path, "--executor", x, "--size", "1K")["parameters"] for x in ("kernel", "copy", "host")]
    for name in of[0]:
        if name in ("efficiency", "latency"):
            continue
        yield f"| `{name}` | " + " | ".join(f"{p[name]}" for p in of) + " |"
    for name in of[0]["efficiency"]:
        yield f"| `{name}` | " + " | ".join(f"{p['efficiency'][name]}" for p in of) + f" | {of[0]['latency'][name]} |"


def main():
    blinkc, page, where = sys.argv[1:4]
    measured, parameters = list(measured_rows(blinkc, where)), list(parameter_rows(blinkc, where))
    if sys.argv[4:]:
        print("\n".join(measured + parameters))
        return
    text = open(page).read()
    missing = [row for row in measured + parameters if not re.search("^" + re.escape(row.rstrip("|")), text, re.M)]
    far = [row for row in measured if abs(int(re.search(r"([+-]\d+) %", row)[1])) > 15]
    for name, wrong in (("rows of the page", missing), ("within 15 %", far)):
        print(f"{name}: {'WRONG: ' + wrong[0] if wrong else 'ok'}")
    sys.exit(bool(missing or far))


if __name__ == "__main__":
    main()
