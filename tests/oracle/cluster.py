#!/usr/bin/env python3
"""Boxes of GPUs on a switch each, and a network switch between boxes: a topology file on standard output.

usage: cluster.py BOXES GPUS INSIDE OUTSIDE [LAST]
       INSIDE, OUTSIDE: GB/s each way of a GPU to its box's switch and to the network's; LAST: GPUs of the last box
"""
import json
import sys


def boxes(n, gpus, inside, outside, last):
    ids = [[f"n{b}/g{g}" for g in range(last if b == n - 1 else gpus)] for b in range(n)]
    links = [{"from": g, "to": f"n{b}/sw", "class": "nvlink", "capacity": inside} for b in range(n) for g in ids[b]]
    if n > 1:
        links += [{"from": g, "to": "ib", "class": "net", "capacity": outside} for b in range(n) for g in ids[b]]
    return {"format": "blink-topology", "version": 1, "name": f"{n} boxes of {gpus}",
            "nodes": [{"id": f"n{b}", "gpus": [{"id": g} for g in ids[b]], "switches": [{"id": f"n{b}/sw"}]}
                      for b in range(n)],
            "switches": [{"id": "ib"}] if n > 1 else [], "links": links}


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__.split("\n\n")[1])
    n, gpus = int(sys.argv[1]), int(sys.argv[2])
    print(json.dumps(boxes(n, gpus, float(sys.argv[3]), float(sys.argv[4]), int((sys.argv + [gpus])[5]))))
