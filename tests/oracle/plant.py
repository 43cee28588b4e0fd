"""Spoil schedules of a directory and its index, each in another way: plant.py DIRECTORY. Prints, for each fault, what
must be said of it:
a regular expression for a whole line, in the order of the paths."""
import json
import os
import re
import sys

top = sys.argv[1]
said = []


def text(name):
    with open(os.path.join(top, name), encoding="utf-8") as f:
        return f.read()


def write(name, new):
    with open(os.path.join(top, name), "w", encoding="utf-8") as f:
        f.write(new)


def expect(name, pattern, part=""):
    said.append((os.path.join(top, name), part, re.escape(part + ": " if part else "") + pattern))


def spoil(name, pattern, change):
    """change: of the document, by which nothing else changes"""
    doc = json.loads(text(name))
    change(doc)
    write(name, json.dumps(doc))
    expect(name, pattern)


def swap(edges):
    edges[0], edges[-1] = edges[-1], edges[0]


index = json.loads(text("index.json"))
named = sorted({e["file"] for e in index["schedules"]})
# One by one, so that no file is spoiled twice.
rooted = [f for f in named if f.startswith("broadcast/")]
plain = [f for f in named if f.startswith("allreduce/") and len(json.loads(text(f))["trees"]) == 1]
whole = [f for f in named if f.startswith("allreduce/") and len(json.loads(text(f))["trees"]) > 1]
deep = [f for f in rooted if len(json.loads(text(f))["trees"][0]["down"]) > 2
        and json.loads(text(f))["trees"][0]["down"][-1][0] != json.loads(text(f))["root"]]

spoil(whole[0], r"trees: no segment at .* serves rank 0", lambda d: d["trees"].pop())
spoil(whole[1], r"trees\[1\]\.segment: .*", lambda d: d["trees"][0].update(segment=["0/1", "1/7"]))
spoil(deep[0], r"trees\[0\]\.down\[0\]: .*: sends before it is reached.*", lambda d: swap(d["trees"][0]["down"]))
rooted.remove(deep[0])
spoil(rooted[0], r"trees\[0\]: rank 0 ends with 0 times the data of rank 1: want 1",
      lambda d: d.update(root=1 - d["root"]))
spoil(whole[2], r"rate\.achieved: .*: the trees achieve .*",
      lambda d: d["rate"].update(achieved=1 + d["rate"]["achieved"]))
spoil(whole[3], r"rate\.bound: .*: the certificate proves .*", lambda d: d["rate"].update(bound=2 * d["rate"]["bound"]))
spoil(whole[4], r"format: \"blink-schedules\": want \"blink-schedule\"", lambda d: d.update(format="blink-schedules"))
write(whole[5], text(whole[5])[:700])
expect(whole[5], r"\d+:\d+: end of file: .*")
write(whole[6], "")
expect(whole[6], "an empty file: want a schedule")
write("allreduce/package.json", '{ "name": "schedules", "version": "1.0.0" }\n')
expect("allreduce/package.json", 'format: missing: want "blink-schedule"')

# What cannot be read: a device whose start is nowhere, links that lead to each other, or nowhere. A link to a directory
# is left out.
os.symlink("/proc/self/mem", os.path.join(top, "allreduce/unreadable.json"))
expect("allreduce/unreadable.json", "Input/output error")
os.symlink("loop1.json", os.path.join(top, "allreduce/loop0.json"))
os.symlink("loop0.json", os.path.join(top, "allreduce/loop1.json"))
expect("allreduce/loop0.json", "Too many levels of symbolic links")
expect("allreduce/loop1.json", "Too many levels of symbolic links")
os.symlink("nowhere", os.path.join(top, "allreduce/nowhere.json"))
expect("allreduce/nowhere.json", "No such file or directory")
os.symlink("..", os.path.join(top, "allreduce/up.json"))

# The index, each time for a file that is right.
os.remove(os.path.join(top, whole[7]))
expect("index.json", "no such file", whole[7])


def entry_of(name):
    return next(e for e in index["schedules"] if e["file"] == name)


def lie(name, pattern, **members):
    entry_of(name).update(members)
    expect("index.json", r"(allreduce|(broadcast|reduce) from root \d) over GPUs [0-9,]+: " + pattern, name)


lie(plain[0], r"rate: .*: the file has .* GB/s", rate=entry_of(plain[0])["rate"] - 1)
lie(plain[1], r"bound: .*: the file has .* GB/s", bound=entry_of(plain[1])["bound"] * (1 + 1e-14))
lie(plain[2], r"trees: 77: the file has \d", trees=77)
lie(plain[3], r"depth: 77: the file has \d", depth=77)
first = entry_of(rooted[1])
lie(rooted[1], r"root: \d, which is rank \d of the file: the file has root \d",
    ranks=first["ranks"][1:] + first["ranks"][:1])
second = entry_of(rooted[2])
lie(rooted[2], r"gpus: \d entries: the file has \d ranks",
    gpus=second["gpus"] + [min(set(range(8)) - set(second["gpus"]))],
    ranks=second["ranks"] + [len(second["ranks"])])
third = entry_of(rooted[3])
lie(rooted[3], r"collective: reduce: the file has broadcast", collective="reduce")
write("index.json", json.dumps(index))

for path, _, pattern in sorted(said, key=lambda s: (s[0].encode(), s[1])):
    # A place in the file is told with its name.
    print(f"blinkc: {re.escape(path)}:{'' if pattern.startswith(chr(92) + 'd+:') else ' '}{pattern}")
