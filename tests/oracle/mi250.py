#!/usr/bin/env python3
"""Boxes of MI250 in ForestColl's model (Zhao et al. 2024): a topology file on standard output.

usage: mi250.py BOXES [DIES]    16 dies a box, GB/s each way; 16 GB/s of each die to one network switch; DIES: the first
ones only
"""
import json
import sys

XGMI = {200: "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15", 100: "0-4 3-7 8-12 11-15",
        50: "0-8 1-5 1-9 1-10 2-6 2-9 2-10 3-11 4-6 5-6 5-7 9-13 10-14 12-14 13-14 13-15"}


def topology(boxes, dies):
    links = []
    for box in range(boxes):
        for capacity, pairs in XGMI.items():
            for a, b in (map(int, pair.split("-")) for pair in pairs.split()):
                if a < dies and b < dies:
                    links.append({"from": f"n{box}/d{a}", "to": f"n{box}/d{b}", "class": "xgmi", "capacity": capacity})
        if boxes > 1:
            links += [{"from": f"n{box}/d{d}", "to": "ib", "class": "net", "capacity": 16} for d in range(dies)]
    return {"format": "blink-topology", "version": 1, "name": f"{boxes} boxes of {dies} MI250 dies",
            "nodes": [{"id": f"n{b}", "gpus": [{"id": f"n{b}/d{d}"} for d in range(dies)]} for b in range(boxes)],
            "switches": [{"id": "ib"}] if boxes > 1 else [], "links": links}


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.split("\n\n")[1])
    print(json.dumps(topology(int(sys.argv[1]), int((sys.argv + [16])[2]))))
