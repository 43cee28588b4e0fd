#!/usr/bin/python3
"""Is a picture of direct links between GPUs legible: does no link cross a GPU that it does not join, and no label lie
on a GPU or another label?

usage: mesh_picture.py FILE.svg GPUS        exit status 1 if not, with what overlaps; GPUS: how many circles there are
"""
import itertools
import re
import sys


def numbers(pattern, text):
    return [tuple(float(x) for x in found) for found in re.findall(pattern, text)]


def distance(point, a, b):
    dx, dy = b[0] - a[0], b[1] - a[1]
    along = max(0, min(1, ((point[0] - a[0]) * dx + (point[1] - a[1]) * dy) / (dx * dx + dy * dy)))
    return ((a[0] + along * dx - point[0]) ** 2 + (a[1] + along * dy - point[1]) ** 2) ** 0.5


def main(path, n):
    with open(path, encoding="utf-8") as file:
        picture = file.read().split("Through the host")[0]
    circles = numbers(r'<circle[^>]* cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', picture)
    lanes = numbers(r'class="lane [^"]*" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', picture)
    plates = numbers(r'class="plate"[^>]* x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"', picture)
    wrong = [] if len(circles) == n and lanes else [f"{len(circles)} GPUs, {len(lanes)} lanes"]
    for x0, y0, x1, y1 in lanes:
        for x, y, r in circles:
            ends = min((x - x0) ** 2 + (y - y0) ** 2, (x - x1) ** 2 + (y - y1) ** 2) ** 0.5
            if ends > r and distance((x, y), (x0, y0), (x1, y1)) < r:
                wrong.append(f"the lane {x0},{y0} to {x1},{y1} crosses the GPU at {x},{y}")
    for (x, y, w, h), (v, u, o, k) in itertools.combinations(plates, 2):
        if x < v + o and v < x + w and y < u + k and u < y + h:
            wrong.append(f"labels at {x},{y} and {v},{u}")
    for (x, y, w, h), (cx, cy, r) in itertools.product(plates, circles):
        if abs(x + w / 2 - cx) < w / 2 + r * 0.7 and abs(y + h / 2 - cy) < h / 2 + r * 0.7:
            wrong.append(f"a label at {x},{y} on the GPU at {cx},{cy}")
    print("\n".join(wrong) or f"{len(lanes)} lanes, {len(plates)} labels")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
