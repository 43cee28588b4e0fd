#!/usr/bin/env python3
"""What ptxas made of a module of kernels, as nvdisasm -c lists it: are the loads under way at once that should be?

usage: sass.py TYPE < listing

TYPE is that of the module, or "move" or "multicast". A line for each function that is wrong, and what is wrong. Fences
are of acquire and release, which GPUs of capability 7.0 and later have, and what a block shares is accessed as shared
memory.

A group are the loads of 16 bytes of a stretch without branches, up to the first instruction that needs what one of them
loads; where ptxas gives two loads one register, the second needs it, too. In the pass over whole vectors
(runtime/cuda/kernels/pass.h) a thread has AT_ONCE loads under way, of its own input, of its first source, and where it
reduces, of the others; of packets it has those of four sources. So there are as many groups of this size or more, and
none that is smaller but single loads. Where it reduces, one group has two sources, but for types of 16 bits, whose
arithmetic takes the registers.
"""
import re
import sys

INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(@!?U?P\d+\s+)?([A-Z][A-Z0-9_.x]*)\s*([^;]*);")
LOAD = re.compile(r"LDG?\.E.*\.128|LDGMC.*x[48]\.")


def registers(text, width=1):
    """Those that an operand list names; `width` of each."""
    return {int(n) + i for n in re.findall(r"(?<![A-Z])R(\d+)", text) for i in range(width)}


def groups_of(lines):
    """Sizes of the groups."""
    pending, n = set(), 0

    def end():
        nonlocal n
        size, n = n, 0
        pending.clear()
        return [size] if size else []

    for line in lines:
        m = INSTRUCTION.search(line)
        if not m:
            if re.match(r"\s*\.L", line):
                yield from end()
            continue
        opcode, operands = m.group(2), m.group(3)
        wide = 4 if ".128" in opcode else 2 if ".64" in opcode or ".WIDE" in opcode else 1
        used = registers(operands, 1)
        if LOAD.match(opcode):
            to = registers(operands.split(",")[0], 4)
            if (used | to) & pending:
                yield from end()
            pending |= to
            n += 1
        elif opcode.split(".")[0] in ("BRA", "EXIT", "CALL", "RET", "BRX", "BSYNC", "BAR", "WARPSYNC"):
            yield from end()
        elif registers(operands, wide) & pending:
            yield from end()
    yield from end()


def functions(text):
    name, lines = None, []
    for line in text:
        m = re.match(r"\s*\.section\s+\.text\.([A-Za-z0-9_$]+)", line)
        if m:
            if name:
                yield name, lines
            name, lines = m.group(1), []
        elif name:
            lines.append(line)
    if name:
        yield name, lines


def wrong_of(name, lines, kind):
    """What is wrong with a function."""
    at_once = 2 if kind.endswith("int8") or kind.startswith("float8") else 4
    sizes, text = list(groups_of(lines)), "".join(lines)
    whole = sum(size >= at_once for size in sizes)
    want = 4 if name.startswith(f"blink_{kind}_") else 3 if name == "blink_move" else 0
    if name == "blink_multicast":       # and of those that a switch adds, of three types
        want = 3 + 3
    if whole < want:
        yield f"{whole} groups of {at_once} loads or more, want {want}: {sorted(sizes)}"
    two = name.startswith(f"blink_{kind}_") and not kind.endswith("float16")
    if two and max(sizes, default=0) < 2 * at_once:
        yield f"no group of {2 * at_once} loads, of two sources: {sorted(sizes)}"
    parts = [size for size in sizes if 1 < size < at_once]
    if parts:
        yield f"groups of {parts} loads, want {at_once} in each"
    if "MEMBAR.SC" in text and name != "blink_multicast":       # its fence for two addresses is made of them
        yield "a sequentially consistent fence, want one of acquire and release"
    generic = re.findall(r"\b(?:LD|ST)\.E\b[^;]*", text)
    if generic:
        yield f"{len(generic)} generic accesses, want LDS and STS: {generic[0]}"
    local = len(re.findall(r"\b(?:LDL|STL)\b", text))
    if local:
        yield f"{local} accesses to local memory"


def main():
    seen = 0
    for name, lines in functions(sys.stdin):
        seen += name.startswith("blink_")
        for wrong in wrong_of(name, lines, sys.argv[1]):
            print(f"{name}: {wrong}")
    want = {"move": 5, "multicast": 1}.get(sys.argv[1], 4)
    if seen != want:
        print(f"{seen} kernels, want {want}")


main()
