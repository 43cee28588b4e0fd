"""Give the entries of an index other ranks: permute.py DIRECTORY MACHINE.json SEED. Of each file one entry is left,
with its ranks in a
random order. Prints the files whose entry then is wrong: where some two of its GPUs have other NVLinks than the ranks
they play."""
import json
import os
import random
import sys

top, machine, seed = sys.argv[1], json.load(open(sys.argv[2], encoding="utf-8")), int(sys.argv[3])
path = os.path.join(top, "index.json")
index = json.load(open(path, encoding="utf-8"))
rng = random.Random(seed)
gpus = index["topology"]["gpus"]

links = {}
for link in machine["links"]:
    if link["class"] == "nvlink":
        for ends in ((link["from"], link["to"]),) + (((link["to"], link["from"]),) if link.get("duplex", True) else ()):
            links[ends] = links.get(ends, 0) + link.get("count", 1)

entries = {}
for entry in index["schedules"]:
    entries.setdefault(entry["file"], []).append(entry)
index["schedules"] = []
for name, some in sorted(entries.items()):
    file = json.load(open(os.path.join(top, name), encoding="utf-8"))
    if file["generator"]["options"]["links"] != ["nvlink"]:
        continue
    entry = rng.choice(some)
    rng.shuffle(entry["ranks"])
    index["schedules"].append(entry)
    ours = [gpus[g] for g in entry["gpus"]]
    theirs = [file["topology"]["ranks"][r]["gpu"] for r in entry["ranks"]]
    if any(links.get((ours[i], ours[j])) != links.get((theirs[i], theirs[j])) for i in range(len(ours))
           for j in range(len(ours))):
        print(name)
json.dump(index, open(path, "w", encoding="utf-8"))
