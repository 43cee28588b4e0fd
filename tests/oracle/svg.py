#!/usr/bin/python3
"""Check the geometry of drawings by `blinkc show --format svg`.

usage: svg.py FILE...

Each stands for itself: no script, no reference, no event. All that is drawn lies inside the viewBox; no GPU, switch or
server lies over
another; GPUs have labels no wider than themselves; captions of trees do not run into each other. Prints a line per
file.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

SPACE = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "title", "style", "rect", "g", "path", "text", "circle"}
SLACK = 0.6


class Wrong(Exception):
    pass


def want(ok, *what):
    if not ok:
        raise Wrong(": ".join(str(part) for part in what))


def shapes(element, x=0.0, y=0.0, scale=1.0, inside=()):
    """(element, x, y, scale, classes around it) of all below; x, y and scale take its coordinates to those of the
    page."""
    for child in element:
        tag = child.tag.removeprefix(SPACE)
        want(tag in ALLOWED, "an element that has no place here", tag)
        want(not any(name.startswith("on") or "href" in name for name in child.attrib),
             "an attribute that has no place here", child.attrib)
        move = re.fullmatch(r"translate\(([0-9.-]+) ([0-9.-]+)\)(?: scale\(([0-9.]+)\))?",
                            child.get("transform", "translate(0 0)"))
        want(move, "transform", child.get("transform"))
        at = (x + float(move[1]), y + float(move[2]), scale * float(move[3] or 1))
        around = inside + tuple(child.get("class", "").split())
        yield child, *at, around
        yield from shapes(child, *at, around)


def columns(text):
    return sum(1 if ord(c) < 0x1100 else 2 for c in text)


def box_of(child, x, y, scale, around):
    box = own_box(child, around)
    return box and tuple(scale * value + shift for value, shift in zip(box, (x, y, x, y)))


def own_box(child, around, x=0, y=0):
    """left, top, right, bottom; texts as wide as letters mostly are."""
    tag = child.tag.removeprefix(SPACE)
    at = {name: float(value) for name, value in child.attrib.items() if re.fullmatch(r"-?[0-9.]+", value)}
    if tag == "circle":
        return (x + at["cx"] - at["r"], y + at["cy"] - at["r"], x + at["cx"] + at["r"], y + at["cy"] + at["r"])
    if tag == "rect":
        left, top = x + at.get("x", 0), y + at.get("y", 0)
        return (left, top, left + at["width"], top + at["height"])
    if tag == "path":
        numbers = [float(n) for n in re.findall(r"-?[0-9.]+", child.get("d"))]
        want(len(numbers) % 2 == 0 and numbers, "a path", child.get("d"))
        xs, ys = numbers[::2], numbers[1::2]
        if "Q" in child.get("d"):	# the middle of the curve is half as far as its handle
            ys[1] = (ys[0] + ys[2]) / 4 + ys[1] / 2
        return (x + min(xs), y + min(ys), x + max(xs), y + max(ys))
    if tag == "text":
        size = {"title": 20, "note": 12, "count": 12, "s1": 11, "s2": 9.5,
                "s3": 8}.get(next((c for c in around[::-1]
                                   if c in ("title", "note", "count", "s1", "s2", "s3")), ""), 13)
        width = columns(child.text or "") * size * 0.54
        left = x + at["x"] - (width / 2 if {"mid", "num"} & set(around) else 0)
        return (left, y + at["y"] - size * 0.8, left + width, y + at["y"] + size * 0.25)
    return None


def overlap(a, b):
    return min(a[2], b[2]) - max(a[0], b[0]) > SLACK and min(a[3], b[3]) - max(a[1], b[1]) > SLACK


def apart(boxes, what):
    boxes.sort(key=lambda one: one[0][1])
    for i, (a, name) in enumerate(boxes):
        for b, other in boxes[i + 1:]:
            if b[1] >= a[3]:
                break
            want(not overlap(a, b), what, f"{name} {a} lies over {other} {b}")


def check(path):
    root = ElementTree.parse(path).getroot()
    want(root.tag == SPACE + "svg", "not an svg")
    _, _, width, height = map(float, root.get("viewBox").split())
    spots, circles, captions = [], [], []
    for child, x, y, scale, around in shapes(root):
        if child.tag == SPACE + "style":
            want("url(" not in child.text and "@import" not in child.text, "a reference in the style")
        box = box_of(child, x, y, scale, around)
        if not box:
            continue
        want(box[0] >= -SLACK and box[1] >= -SLACK and box[2] <= width + SLACK and box[3] <= height + SLACK,
             f"outside of {width} x {height}", box, child.attrib, child.text or "")
        tag = child.tag.removeprefix(SPACE)
        if tag == "circle" or "box" in around:
            (spots if "topology" in around else circles).append((box, around))
        if tag == "text" and "num" in around:
            shape = (spots if "topology" in around else circles)[-1][0]
            want(box[2] - box[0] <= shape[2] - shape[0] + 6, "a label wider than its GPU", child.text)
        if tag == "text" and ("note" in around or "name" in around) and "tree" in around:
            captions.append((box, child.text))
    apart(spots, "topology")
    apart(circles, "trees")
    apart(captions, "captions")
    want(spots, "nothing is drawn")
    return f"{len(spots)} spots, {len(circles)} ranks in trees"


def main(paths):
    wrong = False
    for path in paths:
        try:
            print(f"{path}: ok: {check(path)}")
        except (Wrong, ElementTree.ParseError, AttributeError) as error:
            print(f"{path}: WRONG: {error}"[:600])
            wrong = True
    return int(wrong)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
