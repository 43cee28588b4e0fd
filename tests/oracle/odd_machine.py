#!/usr/bin/python3
"""Changes to a machine that blinkc lint must find, each with the rule that finds it.

usage: odd_machine.py FLAT.json FOLDER     FOLDER/RULE-WHAT.json for each change, and FOLDER/none-WHAT.json for those
that are plausible

FLAT.json is what `blinkc convert` writes of a server with direct links between GPUs and NICs below PCIe switches.
"""
import copy
import json
import os
import sys


def direct(doc, kind):
    gpus = {one["id"] for one in doc["nodes"][0]["gpus"]}
    return next(link for link in doc["links"] if link["class"] == kind and {link["from"], link["to"]} <= gpus)


def of(doc, one):
    return [link for link in doc["links"] if one in (link["from"], link["to"])]


def capacity_of(doc, link):
    defaults = {one["name"]: one for one in doc["classes"]}
    return link.get("capacity", defaults[link["class"]].get("capacity"))


def twice(doc):
    doc["links"].append(dict(direct(doc, "nvlink")))


def twice_reversed(doc):
    """Once at each end, as tables in manuals have it."""
    link = dict(direct(doc, "nvlink"))
    link["from"], link["to"] = link["to"], link["from"]
    doc["links"].append(link)


def all_twice(doc):
    doc["links"] += [dict(link) for link in doc["links"]]


def in_bits(doc):
    """Gb/s where GB/s is wanted."""
    for link in doc["links"]:
        if link["class"] == "nvlink":
            link["capacity"] = 8 * capacity_of(doc, link)


def slow(doc):
    direct(doc, "nvlink")["capacity"] = 0.025


def bundle(doc):
    """All links of a switch as one."""
    doc["nodes"][0]["switches"].append({"id": "nvswitch"})
    gpus = [one["id"] for one in doc["nodes"][0]["gpus"]]
    doc["links"] = [link for link in doc["links"] if link["class"] != "nvlink"]
    doc["links"] += [{"from": gpu, "to": "nvswitch", "class": "nvlink", "capacity": 150} for gpu in gpus]


def fast_port(doc):
    doc["nodes"][0]["nics"][0]["capacity"] = 400	# Gb/s


def pcie(doc):
    next(link for link in doc["links"] if link["class"] == "pcie")["capacity"] = 256


def many(doc):
    direct(doc, "nvlink")["count"] = 40


def one_way(doc):
    direct(doc, "nvlink")["duplex"] = "simplex"


def one_way_host(doc):
    next(link for link in doc["links"] if link["class"] == "pcie")["duplex"] = "simplex"


def halves(doc, **back):
    link = direct(doc, "nvlink")
    link["duplex"] = "simplex"
    doc["links"].append({**link, "from": link["to"], "to": link["from"], **back})


def other_count(doc):
    halves(doc, count=direct(doc, "nvlink").get("count", 1) + 1)


def other_capacity(doc):
    halves(doc, capacity=capacity_of(doc, direct(doc, "nvlink")) * 0.8)


def lone_gpu(doc):
    doc["nodes"][0]["gpus"].append({"id": "gpu99"})


def lone_nic(doc):
    doc["nodes"][0]["nics"].append({"id": "mlx9", "capacity": 12.5})


def lone_switch(doc):
    doc["nodes"][0]["switches"].append({"id": "plx9"})


def no_port(doc):
    del doc["nodes"][0]["nics"][0]["capacity"]


def lost_link(doc):
    doc["links"].remove(direct(doc, "nvlink"))


def slow_slot(doc):
    """A GPU in a slot of half the width."""
    gpu = doc["nodes"][0]["gpus"][3]["id"]
    link = next(link for link in of(doc, gpu) if link["class"] == "pcie")
    link["capacity"] = capacity_of(doc, link) / 2


def two_islands(doc):
    """Nothing between the halves."""
    gpus = [one["id"] for one in doc["nodes"][0]["gpus"]]
    doc["links"] = [link for link in doc["links"] if link["class"] == "nvlink"
                    and (gpus.index(link["from"]) < 4) == (gpus.index(link["to"]) < 4)]
    for plural in "cpus", "switches", "nics":
        doc["nodes"][0].pop(plural, None)


def renamed(doc):
    doc["name"] = "another"


def other_latency(doc):
    for link in doc["links"]:
        link["latency"] = 7


def fewer(doc):
    """Every GPU without its links over PCIe, and the host, as where nothing is known of it."""
    doc["links"] = [link for link in doc["links"] if link["class"] == "nvlink"]
    for plural in "cpus", "switches", "nics":
        doc["nodes"][0].pop(plural, None)


def without_nvlinks(doc):
    """GPUs that have some, by their model."""
    doc["gpu_model"] = "P100"
    doc["links"] = [link for link in doc["links"] if link["class"] != "nvlink"]


def of_others(doc):
    """A card without NVLinks."""
    doc["gpu_model"] = "NVIDIA L40S"


def two_lanes(doc):
    doc["gpu_model"] = "P100"
    gpus = {one["id"] for one in doc["nodes"][0]["gpus"]}
    for link in doc["links"]:
        if link["class"] == "pcie" and {link["from"], link["to"]} & gpus:
            link["capacity"] = 1.5


CHANGES = {
    "twice": [twice, twice_reversed, all_twice],
    "capacity": [in_bits, slow, bundle, fast_port, pcie],
    "count": [many],
    "one-way": [one_way, one_way_host],
    "asymmetric": [other_count, other_capacity],
    "no-links": [lone_gpu, lone_nic, lone_switch],
    "no-port": [no_port],
    "sibling": [lost_link, slow_slot, lone_gpu],
    "disconnected": [two_islands],
    "model": [without_nvlinks, of_others, two_lanes],
    "none": [renamed, other_latency, fewer],
}


def main(flat, folder):
    with open(flat, encoding="utf-8") as file:
        machine = json.load(file)
    for rule, changes in CHANGES.items():
        for change in changes:
            doc = copy.deepcopy(machine)
            change(doc)
            assert doc != machine, change
            with open(os.path.join(folder, f"{rule}.{change.__name__}.json"), "w", encoding="utf-8") as file:
                json.dump(doc, file)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
