#!/usr/bin/env python3
"""CPU time and peak memory for each byte of input, above those of the smallest file.

usage: cost.py corpus BLINKC COST FOLDER [--mutants N] [--part I/N] [--report]    every file of the repository, or part
I of N of
                                                                                  them, and N mutants of each
       cost.py hostile BLINKC COST FOLDER [--full] [KIND...]         files that hostile.py makes

COST is build/tests/cost. Prints `ok ...` or `not ok ...: why`; with --report the distribution over the corpus.

The limits: 50 ns and 50 bytes for each byte, and where a certificate has to be searched through, at most what
LIMIT_VERIFY_STEPS allows. CPU time is allowed four times that, for busy and slow machines; memory is not.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import hostile

NS, BYTES = 50, 50
SLACK_NS, SLACK_BYTES = 20e6, 1 << 20
RETRIED_NS = 200e6
# Of a search through a certificate: 2e9 steps of about a ns, and the matrix of LIMIT_RANKS.
SEARCH_NS, SEARCH_BYTES = 2e9, 320 << 20
MARGIN = 4

# Kinds: a number that makes a file of some size, for the quick test and for the full one, and whether it is searched.
SIZES = {
    "lengths_untiled": (1024, 4096, False), "lengths_ring_untiled": (2048, 4096, False),
    "lengths_star": (150, 1100, True), "lengths_gather": (1024, 4096, False),
    "prices_star": (1000, 4096, True), "prices_pairs": (100, 1000, True), "prices_pairs_ring": (500, 4096, True),
    "prices_pairs_of_many": (1400, 4096, True),
    "prices_nested": (1000, 4096, True), "switches": (5000, 20000, False), "switch_chain": (10000, 60000, False),
    "many_parts": (4096, 4096, False), "node_names": (4096, 4096, False), "long_node_names": (2048, 4096, False),
    "gpu_names": (2048, 4096, False), "scalars": (500000, 16000000, False), "many_strings": (200000, 4000000, False),
    "empties": (200000, 4000000, False), "nested": (60000, 1000000, False), "keys": (100000, 1000000, False),
    "escapes": (40000, 400000, False), "options": (100000, 400000, False), "options_of_two": (20000, 100000, False),
    "vertex_ids": (20000, 60000, False), "empty_trees": (20000, 65536, False), "same_tree": (10000, 65536, False),
    "unequal_trees": (20000, 100000, False), "served_twice": (2048, 4096, False), "unserved": (2048, 4096, False),
    "machine_gpus": (4096, 4096, False),
    "machine_links": (20000, 500000, False), "machine_unknown": (20000, 500000, False),
    "machine_nodes": (4096, 4096, False), "xml_quote_in_comment": (100000, 1000000, False),
    "xml_tag_in_comment": (100000, 1000000, False), "xml_quote_in_instruction": (100000, 1000000, False),
    "xml_quote_in_cdata": (100000, 1000000, False), "xml_after_error": (100000, 1000000, False),
    "xml_in_declaration": (100000, 1000000, False), "xml_namespaces": (100000, 1000000, False),
    "xml_elements": (100000, 1000000, False), "xml_gpus": (100000, 1000000, False),
    "xml_mixed": (50000, 500000, False), "xml_element_names": (50000, 500000, False),
    "xml_comments": (100000, 1000000, False), "xml_text": (1000000, 10000000, False),
    "xml_references": (100000, 1000000, False),
    "hwloc_objects": (100000, 1000000, False), "hwloc_gpus": (4000, 1000000, False),
    "hwloc_numas": (4000, 100000, False),
    "hwloc_infos": (50000, 500000, False), "hwloc_matrix": (64, 64, False),
    "hwloc_matrix_of_none": (100000, 1000000, False),
    "same_file": (2000, 19900, False), "index_gpus": (4096, 4096, False),
    "index_ids": (4096, 4096, False),
}


LIMITED = {"prices_pairs_of_many": "more than 2000000000 steps to verify it"}


class Meter:
    """Runs commands one by one; what they cost above the smallest file."""

    def __init__(self, blinkc, cost, folder):
        self.blinkc = blinkc
        self.process = subprocess.Popen([cost, "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        tiny = os.path.join(folder, "tiny.json")
        with open(tiny, "w", encoding="utf-8") as file:
            file.write("[]")
        runs = [self.raw(["check", tiny]) for _ in range(5)]
        self.floor = sorted(run[0] for run in runs)[2], max(run[1] for run in runs)

    def raw(self, arguments):
        self.process.stdin.write("\t".join([self.blinkc, *arguments]).encode() + b"\n")
        self.process.stdin.flush()
        us, kib, code, text = self.process.stdout.readline().decode(errors="replace").rstrip("\n").split(" ", 3)
        return int(us) * 1e3, int(kib) * 1024, int(code), text

    def close(self):
        """Its time counts in that of the suite once it is waited for."""
        self.process.stdin.close()
        self.process.wait()

    def run(self, arguments):
        """ns, bytes, exit code, message. What seems slow runs up to eight times more: on a loaded machine caches are
        cold, and a process takes more CPU, never less."""
        time, memory, code, text = self.raw(arguments)
        for _ in range(8):
            if not SLACK_NS < time - self.floor[0] < RETRIED_NS:
                break
            time = min(time, self.raw(arguments)[0])
        return max(0, time - self.floor[0]), max(0, memory - self.floor[1]), code, text


def fault(time, memory, code, text, size, searched):
    most = MARGIN * (NS * size + SEARCH_NS * searched) + SLACK_NS
    if time > most:
        return f"{time / 1e9:.2f} s for {size} bytes, want {most / 1e9:.2f}"
    room = BYTES * size + SEARCH_BYTES * searched + SLACK_BYTES
    if memory > room:
        return f"{memory >> 20} MiB for {size} bytes, want {int(room) >> 20}"
    if code not in (0, 3, 4, 6):
        return f"exit {code}: {text}"
    return None


# ---- the corpus ----

PLACES = ("tests/fuzz/corpus", "tests/foreign", "tests/bad", "topologies", "examples", "tests/golden")


def corpus():
    for place in PLACES:
        for folder, _, names in sorted(os.walk(place)):
            for name in sorted(names):
                if name.endswith((".json", ".xml")):
                    yield os.path.join(folder, name)


def arguments_for(path, text):
    if b'"blink-topology"' in text or path.endswith(".xml"):
        return ["convert", path, "-o", "/dev/null"]
    return ["check", "-q", path]


def mutant(text, draw):
    """A piece again and again, a number made large, or a piece of another place: what makes files cost more."""
    at = draw.randrange(len(text))
    end = min(len(text), at + draw.choice([1, 2, 8, 40, 200]))
    kind = draw.randrange(4)
    if kind == 0:
        return text[:at] + text[at:end] * draw.choice([2, 100, 2000]) + text[end:]
    if kind == 1:
        digits = [i for i in range(len(text)) if text[i:i + 1].isdigit()] or [at]
        at = draw.choice(digits)
        return text[:at] + draw.choice([b"0", b"99999", b"4095", b"1e300", b"65535"]) + text[at + 1:]
    if kind == 2:
        return text[:at] + text[end:]
    to = draw.randrange(len(text))
    return text[:to] + text[at:end] + text[to:]


def measure_corpus(meter, folder, mutants, part, report):
    found, n, bad = [], 0, 0
    first, parts = map(int, part.split("/"))
    for path in list(corpus())[first - 1::parts]:
        with open(path, "rb") as file:
            text = file.read()
        draw = random.Random(path)
        for i in range(1 + mutants):
            if not text:
                continue
            made = mutant(text, draw) if i else text
            name = os.path.join(folder, os.path.basename(path)) if i else path
            if i:
                with open(name, "wb") as file:
                    file.write(made)
            time, memory, code, message = meter.run(arguments_for(name, made))
            # A file of a cluster is expanded up to the limits of topologies.
            why = fault(time, memory, code, message, len(made), b"file" in made or b"fabric" in made)
            if len(made) >= 2048:
                found.append((time / len(made), memory / len(made), path, i))
            n += 1
            if why:
                bad += 1
                print(f"not ok cost: {path}, mutant {i}: {why}")
    if not bad:
        print(f"ok cost: {n} files of the corpus and mutants of them")
    if report:
        for what, index in (("ns", 0), ("bytes of memory", 1)):
            value = sorted((f[index], f[2], f[3]) for f in found)
            pick = [value[len(value) // 2], value[len(value) * 99 // 100], value[-1]]
            print(what, "for each byte, of", len(value), "files from 2 KB on: median, 99 %, most:",
                  *(f"{v[0]:.1f}" for v in pick), pick[-1][1:])


# ---- hostile files ----

def measure_hostile(meter, folder, full, kinds, report):
    for kind in kinds or SIZES:
        quick, large, searched = SIZES[kind]
        with tempfile.TemporaryDirectory(dir=folder) as place:
            arguments, size = hostile.write(kind, large if full else quick, place)
            time, memory, code, text = meter.run(arguments)
        why = fault(time, memory, code, text, size, searched)
        if kind in LIMITED and LIMITED[kind] not in text:
            why = f"exit {code}: {text}: want {LIMITED[kind]}"
        print(f"not ok cost: {kind}: {why}" if why else f"ok cost: {kind}")
        if report:
            print(f"# {size} bytes, {time / 1e9:.3f} s, {time / size:.1f} ns and {memory / size:.1f} bytes a byte, "
                  f"exit {code}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("what", "blinkc", "cost", "folder"):
        parser.add_argument(name)
    parser.add_argument("--mutants", type=int, default=0)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("kinds", nargs="*")
    args = parser.parse_args()
    meter = Meter(args.blinkc, args.cost, args.folder)
    if args.what == "corpus":
        measure_corpus(meter, args.folder, args.mutants, args.part, args.report)
    else:
        measure_hostile(meter, args.folder, args.full, args.kinds, args.report)
    meter.close()


if __name__ == "__main__":
    main()
