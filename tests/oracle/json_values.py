#!/usr/bin/env python3
"""The reader of JSON against Python's: the same documents are accepted, with the same values.

usage: json_values.py PROGRAM NUMBER [FILE...]     PROGRAM: build/tests/json_values

NUMBER random documents, and three mutants of each; and of each FILE some mutants. A document is accepted if Python's
strict parser
does so, except what doc.h refuses besides: NaN and Infinity, a name twice in an object, a NUL or half of a surrogate
pair in a text,
numbers of more than 40 characters or beyond the largest double, values nested deeper than 32. A byte order mark is
skipped.
"""
import json
import struct
import subprocess
import sys

from lcg import Lcg

DEPTH, NUMBER_BYTES = 32, 40
TOKENS = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"null", b"true", b"false", b"NaN", b"-Infinity", b"nul",
          b"-", b"0", b"00", b"1.",
          b".5", b"1e", b"1E+2", b"-0", b"1e999", b"-1e-999", b"9" * 41, b"0." + b"1" * 39, b"\\u0000", b"\\ud800",
          b"\\udc00", b"\\ud83d\\ude00",
          b"\\uD83D\\u0041", b"\\u00e9", b"\\u12g4", b"\\x41", b"\\/", b"\x00", b"\x01", b"\x1f", b"\x7f", b"\xc3\xa9",
          b"\xff", b"\xc0\x80",
          b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\xa0", b"\x0b", b"\x0c",
          b"// x\n", b"/**/", b"'a'", b" ",
          b"\n", b"\r\n", b"\t", b'"a":1,', b'"a":1,"a":2', b'"list":[', b"[" * 33, b"]" * 33, b"0x10", b"+1", b"1_0",
          b"Infinity", b"True"]
NAMES = ["a", "b", "list", "", "name", "é", "\U0001f600", "a\"b", "\\", "\n", "lis", "list2"]


class Refused(Exception):
    pass


# ---- what Python makes of it ----

def number(text):
    value = float(text)
    if len(text) > NUMBER_BYTES or value in (float("inf"), float("-inf")):
        raise Refused(text)
    return value


def constant(text):
    raise Refused(text)


def unique(pairs):
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refused("a name twice")
    return dict(pairs)


def text_of(text):
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
        raise Refused("NUL or a surrogate")
    return '"' + text.encode().hex() + '"'


def canonical(value, depth=1):
    if isinstance(value, (dict, list)) and depth > DEPTH:
        raise Refused("depth")
    if isinstance(value, dict):
        return "{" + ",".join(text_of(name) + canonical(child, depth + 1) for name, child in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(child, depth + 1) for child in value) + "]"
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    return {None: "null", True: "true", False: "false"}[value]


def by_python(data):
    """The line that the program prints; None: refused."""
    try:
        text = data.decode("utf-8-sig")
        if "\0" in text:
            return None
        return canonical(json.loads(text, parse_int=number, parse_float=number, parse_constant=constant,
                                    object_pairs_hook=unique))
    except (ValueError, Refused, RecursionError):
        return None


# ---- documents ----

def blank(rng):
    return "".join(rng.choice(["", "", "", " ", "\n", "\t", "\r\n"]) for _ in range(rng.below(3)))


def random_number(rng):
    digits = "".join(str(rng.below(10)) for _ in range(rng.choice([1, 1, 2, 3, 9, 15, 16, 17, 19, 20, 25, 38])))
    text = rng.choice(["", "", "-"]) + (digits.lstrip("0") or "0")
    if rng.below(2):
        text += "." + "".join(str(rng.below(10)) for _ in range(rng.between(1, 18)))
    if rng.below(3) == 0:
        text += rng.choice("eE") + rng.choice(["", "+",
                                               "-"]) + str(rng.choice([0, 1, 5, 15, 22, 23, 100, 290, 308, 324, 400]))
    return text


def random_text(rng):
    pieces = []
    for _ in range(rng.choice([0, 1, 2, 5, 20])):
        code = rng.choice([rng.between(32, 126), rng.between(0xa0, 0x7ff), rng.between(0x800, 0xd7ff),
                           rng.between(0xe000, 0xffff),
                           rng.between(0x10000, 0x10ffff), rng.between(1, 31)])
        char = chr(code)
        escaped = json.dumps(char)[1:-1]
        must = char in '"\\' or code < 32
        pieces.append(escaped.upper().replace("\\U", "\\u") if escaped.startswith("\\u") and rng.below(2) else
                      escaped if must or rng.below(3) == 0 else "\\/" if char == "/" and rng.below(2) else char)
    return '"' + "".join(pieces) + '"'


def random_value(rng, depth):
    kind = rng.below(8 if depth < 6 else 4)
    if kind == 0:
        return rng.choice(["null", "true", "false"])
    if kind < 3:
        return random_number(rng)
    if kind == 3:
        return random_text(rng)
    count = rng.choice([0, 1, 2, 3, 6])
    if kind < 6:
        return "[" + ",".join(blank(rng) + random_value(rng, depth + 1) + blank(rng)
                              for _ in range(count)) + blank(rng) + "]"
    names = rng.shuffled(NAMES)[:count]
    if count and rng.below(12) == 0:
        names[-1] = names[0]
    return "{" + ",".join(blank(rng) + json.dumps(name, ensure_ascii=bool(rng.below(2))) + blank(rng) + ":"
                          + blank(rng) +
                          random_value(rng, depth + 1) + blank(rng) for name in names) + blank(rng) + "}"


def nested(rng):
    """About as deep as is allowed."""
    depth = rng.between(29, 35)
    inner = rng.choice(["", "1", "{}", "[]"])
    if rng.below(2):
        return "[" * depth + inner + "]" * depth
    return '{"list":[' * (depth // 2) + inner + "]}" * (depth // 2)


def document(rng):
    text = nested(rng) if rng.below(25) == 0 else random_value(rng, rng.below(6))
    return rng.choice([b""] * 20 + [b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf"]) + (blank(rng) + text
                                                                                      + blank(rng)).encode()


def mutant(rng, data):
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at, kind = rng.below(len(data) + 1), rng.below(5)
        if kind == 0:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif kind == 1:
            data = data[:at] + data[at + 1 + rng.below(3):]
        elif kind == 2 and data:
            at %= len(data)
            data = data[:at] + bytes([rng.choice([data[at] ^ 1 << rng.below(8), rng.below(256)])]) + data[at + 1:]
        elif kind == 3:
            start = rng.below(len(data) + 1)
            data = data[:at] + data[start:start + rng.below(30)] + data[at:]
        else:
            data = data[:at] if rng.below(4) == 0 else data[:at] + rng.choice(TOKENS) + data[at + 1:]
    return data


# ---- the comparison ----

def read(program, documents):
    sent = b"".join(b"%d\n" % len(data) + data for data in documents)
    done = subprocess.run([program], input=sent, capture_output=True, check=False)
    lines = done.stdout.decode().split("\n")[:-1]
    if done.returncode or len(lines) != 2 * len(documents):
        sys.exit(f"{program}: exit status {done.returncode}, {len(lines)} lines for {len(documents)} documents")
    return list(zip(documents, lines[::2], lines[1::2]))


def main(program, count, paths):
    rng = Lcg(count)
    documents = []
    for _ in range(count):
        data = document(rng)
        documents += [data, mutant(rng, data), mutant(rng, data), mutant(rng, data)]
    for path in paths:
        with open(path, "rb") as file:
            data = file.read(20000)
        documents += [data] + [mutant(rng, data) for _ in range(3)]
    wrong = accepted = 0
    for data, whole, by_entry in read(program, documents):
        want = by_python(data)
        accepted += want is not None
        for got in (whole, by_entry):
            if (None if got.startswith("! ") else got) != want:
                wrong += 1
                print(f"{data[:300]!r}: {got[:200]}, want {want and want[:200]}")
    print(f"{len(documents)} documents, {accepted} accepted, {len(documents) - accepted} refused, {wrong} read "
          f"otherwise")
    return 1 if wrong or not len(documents) // 5 < accepted < len(documents) * 4 // 5 else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("\n\n")[1])
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
