#!/usr/bin/python3
"""Do pictures have the colours that they name, once a program has drawn them?

usage: pixels.py PICTURE.svg...     PICTURE.png is beside each

The paper is light and covers most of it, little is black, and each class of links that the picture has is there in its
colour.
Reads PNG by itself: 8 bits a channel, not interlaced. Prints a line for each; exit status 1 if any is wrong.
"""
import re
import struct
import sys
import zlib
from collections import Counter
from itertools import accumulate


class Wrong(Exception):
    pass


def want(ok, *what):
    if not ok:
        raise Wrong(": ".join(str(part) for part in what))


def unfilter(kind, line, before, step):
    """A row of bytes as it was before it was filtered; where the row above is the answer, that very object."""
    if kind in (0, 2) and not any(line):
        return bytes(len(line)) if kind == 0 else before
    if kind == 0:
        return line
    if kind == 1:
        line = bytearray(line)
        for i in range(step):
            line[i::step] = bytes(total & 255 for total in accumulate(line[i::step]))
        return bytes(line)
    if kind == 2:
        return bytes((a + b) & 255 for a, b in zip(line, before))
    line = bytearray(line)
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        up, corner = before[i], before[i - step] if i >= step else 0
        if kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif line[i] or left != up or up != corner:
            # Paeth's predictor: of the three the nearest to left + up - corner
            guess = left + up - corner
            line[i] = (line[i] + min((left, up, corner), key=lambda one: abs(guess - one))) & 255
        else:
            line[i] = up
    return bytes(line)


def pixels(path):
    """How often each colour (red, green, blue) is there."""
    with open(path, "rb") as file:
        data = file.read()
    want(data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG")
    at, packed, head = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        head = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else head
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    width, height, depth, colour, _, _, interlace = head
    want(depth == 8 and colour in (2, 6) and not interlace, "a PNG of another kind", head)
    step = 4 if colour == 6 else 3
    raw, row, found = zlib.decompress(packed), bytes(width * step), Counter()
    for y in range(height):
        begin, before = y * (width * step + 1), row
        row = unfilter(raw[begin], raw[begin + 1:begin + 1 + width * step], before, step)
        if y == 0 or row is not before:
            counted = Counter(zip(*(row[i::step] for i in range(step))))
        for pixel, n in counted.items():
            found[pixel[:3] if step == 3 or pixel[3] else (255, 255, 255)] += n
    return found


def rgb(text):
    return tuple(int(text[i:i + 2], 16) for i in (1, 3, 5))


def check(path):
    with open(path, encoding="utf-8") as file:
        svg = file.read()
    want("var(" not in svg, "a CSS variable, which only browsers know")
    found = pixels(re.sub(r"\.svg$", ".png", path))
    area = sum(found.values())
    light = sum(n for colour, n in found.items() if min(colour) >= 235)
    black = sum(n for colour, n in found.items() if max(colour) <= 16)
    want(light > area * 0.5, "the paper is not light", f"{light} of {area} pixels")
    want(black < area * 0.1, "too much is black", f"{black} of {area} pixels")
    style = svg.split("@media", 1)[0]
    seen = 0
    for name, text in re.findall(r"^\.c-(\w+) \{ stroke: (#[0-9a-f]{6})", style, re.M):
        if f'class="load c-{name}"' not in svg:
            continue
        near = sum(n for colour, n in found.items() if max(abs(a - b) for a, b in zip(colour, rgb(text))) <= 40)
        want(near >= 30, f"{name} is not there in {text}", f"{near} pixels")
        seen += 1
    return f"{area} pixels, {light * 100 // area} % light, {seen} classes of links"


def main(paths):
    wrong = False
    for path in paths:
        try:
            print(f"{path}: ok: {check(path)}")
        except (Wrong, OSError, zlib.error) as error:
            print(f"{path}: WRONG: {error}")
            wrong = True
    return int(wrong)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
