#!/usr/bin/env python3
"""Hold what blinkc says of a machine that has lost parts, or whose GPUs forward, against its topology file edited by
hand.

usage: losses.py BLINKC what-if TOPOLOGY [--sizes 2-8] [-c COLLECTIVE] [--every N] [--first N]
       losses.py BLINKC index TOPOLOGY DIRECTORY [--every N] [--first N]
       losses.py BLINKC advise TOPOLOGY --sizes 4 [-c COLLECTIVE]
       losses.py BLINKC relay TOPOLOGY GPUS RELAYS [-c COLLECTIVE]

The edit is of the topology in JSON: entries are taken out, or their counts lowered. Rates without a part are those of
`blinkc batch` over the edited file, which knows of no losses; its digest is that of the edited file.

what-if: each loss that it ranks, every Nth, has the jobs, rates and digest of the edited file; no loss is missing.
index: each index of --failures has the jobs of the edited file, with its rates; its files, in its ranks, use links that
it has.
advise: each class is an isomorphism class of NVLinks by brute force over permutations, and has the rates of a batch;
Links= of --format slurm are the numbers of links.
relay: a schedule with relays has the rate of the machine whose relays are switches.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import combinations, permutations

KINDS = {"gpus": "gpu", "switches": "switch", "nics": "nic", "cpus": "cpu"}


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(args)}: exit {done.returncode}: {done.stderr[:300]}")
    return done.stdout


def machine_of(blinkc, path):
    return json.loads(run(blinkc, "convert", "--format", "json", path))


def vertices(machine):
    """(id, kind) of every vertex."""
    for place in machine["nodes"] + [machine]:
        for many, kind in KINDS.items():
            for vertex in place.get(many, []):
                yield vertex["id"], kind


def ends(link):
    return frozenset((link["from"], link["to"]))


def without_vertex(machine, gone):
    out = json.loads(json.dumps(machine))
    for place in out["nodes"] + [out]:
        for many in KINDS:
            if many in place:
                place[many] = [v for v in place[many] if v["id"] != gone]
                if not place[many]:
                    del place[many]
    out["links"] = [l for l in out["links"] if gone not in ends(l)]
    return out


def without_link(machine, pair, count):
    """count: of each link entry between them; None: all. For machines with one entry, full duplex, for each pair."""
    out = json.loads(json.dumps(machine))
    found = [l for l in out["links"] if ends(l) == pair]
    assert len(found) == 1 and found[0].get("duplex", "full") == "full", found
    if count is None or found[0].get("count", 1) == count:
        out["links"].remove(found[0])
    else:
        found[0]["count"] -= count
    return out


def losses(machine):
    """Every single loss by its name, and the machine after it."""
    ids = dict(vertices(machine))
    for link in machine["links"]:
        a, b = link["from"], link["to"]
        if link.get("count", 1) > 1:
            yield (f"{a}-{b}:1", f"{b}-{a}:1"), without_link(machine, ends(link), 1)
        yield (f"{a}-{b}", f"{b}-{a}"), without_link(machine, ends(link), None)
    for v, kind in ids.items():
        if kind != "cpu":
            yield (v,), without_vertex(machine, v)


def gpus_of(machine):
    return [v for v, kind in vertices(machine) if kind == "gpu"]


def batch(blinkc, machine, where, options):
    """The index of a batch over an edited machine: {(ids, root id): rate} of its jobs, and its digest."""
    path, out = os.path.join(where, "edited.json"), os.path.join(where, "edited")
    with open(path, "w") as file:
        json.dump(machine, file)
    run(blinkc, "batch", "-q", "--no-minimise", path, "-o", out, *options)
    with open(os.path.join(out, "index.json")) as file:
        index = json.load(file)
    ids = index["topology"]["gpus"]
    jobs = {}
    for entry in index["schedules"]:
        names = tuple(ids[g] for g in entry["gpus"])
        jobs[names, None if entry["root"] is None else names[entry["root"]]] = entry["rate"]
    return jobs, index["topology"]["digest"]


def best_roots(jobs):
    best = {}
    for (names, _), rate in jobs.items():
        best[names] = max(best.get(names, 0), rate)
    return best


def same(a, b):
    return abs(a - b) <= 1e-9 * max(a, b)


def chosen(machine, args):
    all_losses = list(losses(machine))
    return all_losses, all_losses[args.first::args.every]


def batch_options(args, n):
    """Sizes as far as the machine has GPUs."""
    sizes = args.sizes or f"2-{n}"
    first, _, last = sizes.partition("-")
    return ["--sizes", f"{first}-{min(int(last or first), n)}", "--collectives", args.c]


def check_what_if(args):
    machine = machine_of(args.blinkc, args.topology)
    n = len(gpus_of(machine))
    sizes = ["--sizes", args.sizes] if args.sizes else []
    found = json.loads(run(args.blinkc, "what-if", "--format", "json", args.topology, "-c", args.c, *sizes))
    ids = found["topology"]["gpus"]
    ranked = {loss["without"]: loss for loss in found["losses"]}
    every, some = chosen(machine, args)
    assert len(ranked) == len(found["losses"]) == len(every), (len(ranked), len(every))
    means = [loss["mean_loss"] for loss in found["losses"]]
    assert means == sorted(means, reverse=True), "not the most expensive first"
    with tempfile.TemporaryDirectory() as where:
        before = best_roots(batch(args.blinkc, machine, where, batch_options(args, n))[0])
        for names, edited in some:
            loss = next(ranked[name] for name in names if name in ranked)
            after, digest = batch(args.blinkc, edited, where, batch_options(args, len(gpus_of(edited))))
            after = best_roots(after)
            assert loss["digest"] == digest, f"{names[0]}: another digest than the edited file"
            changed = {tuple(ids[g] for g in job["gpus"]): job for job in loss["jobs"]}
            total = 0
            for job, rate in before.items():
                now = after.get(job)
                total += 1 - (now or 0) / rate
                if now is not None and same(now, rate):
                    assert job not in changed, f"{names[0]}: {job} changes nothing"
                    continue
                told = changed.pop(job)
                gone = not set(job) <= set(gpus_of(edited))
                state = "lost" if gone else "disconnected" if now is None else "slower" if now < rate else "faster"
                assert told["state"] == state, f"{names[0]}: {job}: {told}: want {state}"
                assert same(told["before"], rate), f"{names[0]}: {job}: {told}: {rate}"
                assert (told["after"] is None) == (now is None) and (now is None
                                                                     or same(told["after"], now)), (told, now)
            assert not changed, f"{names[0]}: no such jobs: {changed}"
            assert abs(loss["mean_loss"] - max(total / len(before), 0)) < 1e-6, (loss["mean_loss"], total / len(before))
    print(f"{len(some)} of {len(every)} losses, {len(before)} jobs")


def key(link):
    return link["class"], link["capacity"], link["latency"]


def links_of(schedule, names):
    """Links between GPUs, by their ids, of a schedule whose rank r is GPU names[r]."""
    found = []
    for link in schedule["topology"]["links"]:
        if isinstance(link["from"], int) and isinstance(link["to"], int):
            found.append((names[link["from"]], names[link["to"]], *key(link)))
    return sorted(found)


def check_index(args):
    machine = machine_of(args.blinkc, args.topology)
    with open(os.path.join(args.directory, "index.json")) as file:
        whole = json.load(file)
    changes = {change["without"]: change for change in whole["changes"]}
    every, some = chosen(machine, args)
    collectives = sorted({e["collective"] for e in whole["schedules"]})
    sizes = sorted({len(e["gpus"]) for e in whole["schedules"]})
    assert len(changes) == len(every), (len(changes), len(every))
    n_jobs = 0
    with tempfile.TemporaryDirectory() as where:
        for names, edited in some:
            change = next(changes[name] for name in names if name in changes)
            n = len(gpus_of(edited))
            wanted, digest = batch(args.blinkc, edited, where, [
                "--sizes", f"{sizes[0]}-{min(sizes[-1], n)}", "--collectives", ",".join(collectives)])
            assert change["digest"] == digest, f"{names[0]}: another digest than the edited file"
            with open(os.path.join(args.directory, change["index"])) as file:
                index = json.load(file)
            ids = index["topology"]["gpus"]
            found = {}
            for entry in index["schedules"]:
                job = tuple(ids[g] for g in entry["gpus"])
                found[job, None if entry["root"] is None else job[entry["root"]]] = entry
            assert found.keys() == wanted.keys(), f"{names[0]}: {len(found)} jobs, want {len(wanted)}"
            for (job, root), entry in found.items():
                assert same(entry["rate"], wanted[job, root]), f"{names[0]}: {entry}: want {wanted[job, root]}"
            n_jobs += len(found)
            check_links(args, edited, found, where)
    print(f"{len(some)} of {len(every)} losses, {n_jobs} jobs")


def check_links(args, edited, found, where):
    """Of some jobs: the links between the GPUs are those that compile finds in the edited file."""
    for (job, root), entry in list(found.items())[::max(1, len(found) // 3)]:
        with open(os.path.join(args.directory, entry["file"])) as file:
            schedule = json.load(file)
        own = json.loads(run(args.blinkc, "-q", os.path.join(where, "edited.json"), "-g", ",".join(job), "-c",
                             entry["collective"], *(["-r", root] if root else [])))
        names = [None] * len(job)
        for i, rank in enumerate(entry["ranks"]):
            names[rank] = job[i]
        assert links_of(schedule, names) == links_of(own, job), f"{job}: other links than in {entry['file']}"


def nvlinks(machine):
    """Capacity between two GPUs, over NVLink."""
    rate = {c["name"]: c.get("capacity") for c in machine["classes"]}
    out = {}
    for link in machine["links"]:
        if link["class"] == "nvlink":
            out[ends(link)] = out.get(ends(link), 0) + link.get("count", 1) * link.get("capacity", rate["nvlink"])
    return out


def connected(job, links):
    seen, queue = {job[0]}, [job[0]]
    while queue:
        a = queue.pop()
        for b in job:
            if b not in seen and frozenset((a, b)) in links:
                seen.add(b)
                queue.append(b)
    return len(seen) == len(job)


def matrix(job, links):
    return [[links.get(frozenset((a, b)), 0) for b in job] for a in job]


def isomorphic(a, b, links):
    wanted = matrix(b, links)
    return any(matrix(p, links) == wanted for p in permutations(a))


def check_advise(args):
    machine = machine_of(args.blinkc, args.topology)
    ids, links = gpus_of(machine), nvlinks(machine)
    found = json.loads(run(args.blinkc, "advise", "--format", "json", args.topology, "-c", args.c, "--sizes",
                           args.sizes))
    with tempfile.TemporaryDirectory() as where:
        rates = best_roots(batch(args.blinkc, machine, where, ["--sizes", args.sizes, "--collectives", args.c])[0])
    sets = [tuple(found["topology"]["gpus"][g] for g in job) for c in found["classes"] for job in c["sets"]]
    first, _, last = args.sizes.partition("-")
    wanted = [job for n in range(int(first), int(last or first) + 1) for job in combinations(ids, n)]
    assert sorted(sets) == sorted(wanted), "not every set once"
    order = [(c["gpus"], -c["rate"]) for c in found["classes"]]
    assert order == sorted(order), "not the fastest first"
    representatives = []
    for c in found["classes"]:
        jobs = [tuple(found["topology"]["gpus"][g] for g in job) for job in c["sets"]]
        for job in jobs:
            assert same(rates[job], c["rate"]), f"{job}: {c['rate']}, a batch has {rates[job]}"
        best = max(rates[job] for job in rates if len(job) == c["gpus"])
        assert abs(c["share"] - c["rate"] / best) < 1e-9 and c["rate"] <= c["bound"] * (1 + 1e-9), c
        if connected(jobs[0], links):
            assert c["links"] == ["nvlink"] and all(isomorphic(jobs[0], job, links) for job in jobs), c
            representatives.append(jobs[0])
        else:
            assert not any(connected(job, links) for job in jobs), c
    for a, b in combinations(representatives, 2):
        assert len(a) != len(b) or not isomorphic(a, b, links), f"{a} and {b} are isomorphic"
    check_slurm(args, machine, found, rates)
    print(f"{len(sets)} sets, {len(found['classes'])} classes, {len(representatives)} on nvlink")


def check_slurm(args, machine, found, rates):
    """Links= of each GPU; the devices that the script takes are a fastest set."""
    ids = gpus_of(machine)
    count = {ends(l): l.get("count", 1) for l in machine["links"] if l["class"] == "nvlink"}
    lines = run(args.blinkc, "advise", "--format", "slurm", args.topology, "-c", args.c, "--sizes",
                args.sizes).splitlines()
    told = [line.rpartition("Links=")[2] for line in lines if line.startswith("NodeName=")]
    wanted = [",".join(str(-1 if a == b else count.get(frozenset((a, b)), 0)) for b in ids) for a in ids]
    assert told == wanted, (told, wanted)
    taken = [line.rpartition("CUDA_VISIBLE_DEVICES=")[2] for line in lines if line.startswith("export")]
    for devices in taken:
        job = tuple(ids[int(d)] for d in devices.split(","))
        assert same(rates[job], max(r for j, r in rates.items() if len(j) == len(job))), job
    assert len(taken) == len({c["gpus"] for c in found["classes"]}), taken


def check_relay(args):
    machine = machine_of(args.blinkc, args.topology)
    relays = args.relays.split(",")
    switched = without_relays(machine, relays)
    ranks = args.gpus.split(",")
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "switched.json")
        with open(path, "w") as file:
            json.dump(switched, file)
        wanted = json.loads(run(args.blinkc, "-q", path, "-g", args.gpus, "-c", args.c))
    found = json.loads(run(args.blinkc, "-q", args.topology, "-g", args.gpus, "--relay", args.relays, "-c", args.c))
    assert same(found["rate"]["achieved"], wanted["rate"]["achieved"]), (found["rate"]["achieved"],
                                                                         wanted["rate"]["achieved"])
    assert [r["gpu"] for r in found["topology"]["ranks"]] == ranks
    assert found["generator"]["options"]["relays"] == relays
    used = {v for l in found["topology"]["links"] for v in (l["from"], l["to"]) if isinstance(v, str)}
    assert not used & set(ranks) and used & set(gpus_of(machine)) <= set(relays), used
    print(f"{found['rate']['achieved']} GB/s")


def without_relays(machine, relays):
    """Relays as switches of their server."""
    out = json.loads(json.dumps(machine))
    for node in out["nodes"]:
        gone = [v for v in node["gpus"] if v["id"] in relays]
        node["gpus"] = [v for v in node["gpus"] if v["id"] not in relays]
        node["switches"] = node.get("switches", []) + [{"id": v["id"]} for v in gone]
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("blinkc")
    parser.add_argument("what", choices=["what-if", "index", "advise", "relay"])
    parser.add_argument("topology")
    parser.add_argument("more", nargs="*")
    parser.add_argument("--sizes")
    parser.add_argument("-c", default="allreduce")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    if args.what == "index":
        args.directory, = args.more
    if args.what == "relay":
        args.gpus, args.relays = args.more
    {"what-if": check_what_if, "index": check_index, "advise": check_advise, "relay": check_relay}[args.what](args)


if __name__ == "__main__":
    main()
