"""Is the index of `blinkc tune` whole, and has each size what `blinkc --size` chooses for it?

usage: tuned.py BLINKC MACHINE GPUS DIR SIZE,SIZE...    GPUS: of the job, or all; prints what is wrong
       tuned.py BLINKC --files DIR SIZE,SIZE...         prints the files of the one job for these sizes
"""
import json
import subprocess
import sys

MOST = 1 << 53


def entries(directory):
    with open(f"{directory}/index.json", encoding="utf-8") as file:
        return json.load(file)["schedules"]


def of_size(ranges, size):
    return next(entry for entry in ranges if entry["bytes"][0] <= size <= entry["bytes"][1])


def ranges_of(directory):
    """Of each collective and root its entries by size, and what is wrong with them."""
    jobs, wrong = {}, []
    for entry in entries(directory):
        jobs.setdefault((entry["collective"], entry["root"]), []).append(entry)
    for job, ranges in jobs.items():
        ranges.sort(key=lambda entry: entry["bytes"])
        bounds = [entry["bytes"] for entry in ranges]
        if bounds[0][0] != 0 or bounds[-1][1] != MOST:
            wrong.append(f"{job}: from {bounds[0][0]} to {bounds[-1][1]} bytes")
        for a, b in zip(ranges, ranges[1:]):
            if a["bytes"][1] + 1 != b["bytes"][0]:
                wrong.append(f"{job}: {a['bytes']}, and then {b['bytes']}")
            if a["file"] == b["file"]:
                wrong.append(f"{job}: {a['bytes']} and {b['bytes']} have {a['file']}, want one range")
    return jobs, wrong


def edges(path):
    """What a schedule does, whatever was asked."""
    with open(path, encoding="utf-8") as file:
        schedule = json.load(file)
    return schedule["trees"], schedule["topology"]


def chosen(blinkc, machine, gpus, coll, root, size, path):
    args = [blinkc, "-q", machine, "-c", coll, "--size", str(size), "-o", path]
    args += [] if gpus == "all" else ["-g", gpus]
    args += [] if root is None else ["-r", str(root)]
    subprocess.run(args, check=True)
    return edges(path)


def main():
    if sys.argv[2] == "--files":
        jobs, _ = ranges_of(sys.argv[3])
        print(*(of_size(next(iter(jobs.values())), int(size))["file"] for size in sys.argv[4].split(",")))
        return 0
    blinkc, machine, gpus, directory, sizes = sys.argv[1:]
    jobs, wrong = ranges_of(directory)
    for (coll, root), ranges in jobs.items():
        # Roots that are isomorphic to an earlier one have its file, in other ranks.
        if ranges[0]["ranks"] != sorted(ranges[0]["ranks"]):
            continue
        for size in map(int, sizes.split(",")):
            entry = of_size(ranges, size)
            if edges(f"{directory}/{entry['file']}") != chosen(blinkc, machine, gpus, coll, root, size,
                                                               f"{directory}/../chosen.json"):
                wrong.append(f"{coll} {root} {size}: {entry['file']}: not what --size chooses")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
