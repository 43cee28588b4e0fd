#!/usr/bin/env python3
"""Names with characters that must not reach a terminal or a log, through every verb and format.

usage: names.py BLINKC PERF FOLDER [--full]

Makes files whose names have each such character, runs the verbs on them, and looks at every byte that comes out: on
standard output, standard error and in the files that are written. Prints `ok NAME` or `not ok NAME: why`.

The characters are those of Unicode's categories Cc, Cf, Zl and Zp. JSON and XML may hold them as escapes.
"""
import json
import os
import subprocess
import sys
import unicodedata

EXAMPLE = "tests/fuzz/corpus/fuzz_schedule/allreduce-triangle.json"
# Prepended marks of Arabic and of other scripts have a glyph.
VISIBLE = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd,
           *range(0x13430, 0x13440)}
DANGEROUS = [chr(c) for c in range(1, 0xe0080) if unicodedata.category(chr(c)) in ("Cc", "Cf", "Zl", "Zp")
             and c not in VISIBLE]
READABLE = "ü漢字é😀"


def bad(data):
    """The first thing that must not be in the output; newlines and tabs are part of formats."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8: {data[max(0, error.start - 20):error.start + 5]}"
    for at, c in enumerate(text):
        if c in FORBIDDEN and c not in "\n\t":
            return f"U+{ord(c):04X} in {text[max(0, at - 30):at + 10]!r}"
    for line in text.split("\n"):
        # In a line that is a command, ##[ is none; XML is for a file.
        forged = "##[" in line and not line.startswith("::") and "<testcase" not in line
        if line.lstrip().startswith("::error::forged") or forged or line.startswith("0 OK"):
            return f"a forged line: {line[:80]!r}"
    return None


FORBIDDEN = frozenset(DANGEROUS)


class Test:
    def __init__(self, blinkc, perf, folder):
        self.blinkc, self.perf, self.folder = blinkc, perf, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, title, command, outputs=(), codes=None, readable=False):
        done = subprocess.run([part.encode("utf-8", "surrogateescape") for part in command], capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        shown = {"standard output": done.stdout, "standard error": done.stderr}
        for name in outputs:
            if os.path.exists(name):
                with open(name, "rb") as file:
                    shown[os.path.basename(name)] = file.read()
                os.remove(name)
        for where, data in shown.items():
            why = bad(data)
            if why:
                print(f"not ok names: {title}: {where}: {why}")
                return
        if codes is not None and done.returncode not in codes:
            print(f"not ok names: {title}: exit {done.returncode}: {done.stderr[:200]}")
        elif readable and not any(READABLE.encode() in data for data in shown.values()):
            print(f"not ok names: {title}: {READABLE} is not readable: {shown}")
        else:
            print(f"ok names: {title}")


def write(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    return path


def schedule(name):
    with open(EXAMPLE, encoding="utf-8") as file:
        made = json.load(file)
    made["topology"]["name"] = made["algorithm"] = made["generator"]["name"] = name
    made["topology"]["digest"] = made["generator"]["version"] = name
    made["generator"]["options"] = {name: name, "gpus": [name, name]}
    for rank in made["topology"]["ranks"]:
        rank["node"] = name
    return made


def schedules(test, title, name):
    path, other = test.path("a.json"), test.path("b.json")
    made = schedule(name)
    write(path, json.dumps(made))
    made["topology"]["name"] += "2"
    made["generator"]["options"] = {name + "2": name}
    made["algorithm"] += "2"
    write(other, json.dumps(made))
    junit, out = test.path("junit.xml"), test.path("out")
    for verb in (["check", path], ["check", "--junit", junit, path], ["check", "--github", path],
                 ["check", test.folder], ["show", path], ["show", "--format", "svg", path],
                 ["show", "--format", "dot", path],
                 ["diff", path, other], ["diff", "-v", path, other], ["diff", "--format", "json", path, other],
                 ["diff", "--junit", junit, path, other], ["diff", "--github", path, other]):
        test.run(f"{title}: {' '.join(v for v in verb if not v.startswith('/'))}", [test.blinkc, *verb], [junit, out],
                 (0, 9))
    for form in ("json", "cu"):
        test.run(f"{title}: convert {form}", [test.blinkc, "convert", "--format", form, path, "-o", out], [out])
    test.run(f"{title}: blink-perf", [test.perf, path, "-b", "1K", "-e", "1K", "-n", "1", "-w", "0"], (), (0,))


def errors(test, title, name):
    """In places where the file or the command line is at fault: the name is in the message."""
    made = schedule("m")
    for place, change in (
            ("collective", lambda m: m.update(collective=name)), ("format", lambda m: m.update(format=name)),
            ("key", lambda m: m.update(version={name: 1})),
            ("gpu", lambda m: m["topology"]["ranks"][0].update(gpu=name)),
            ("class", lambda m: m["topology"]["links"][0].update({"class": name})),
            ("end", lambda m: m["topology"]["links"][0].update({"from": name})),
            ("segment", lambda m: m["trees"][0].update(segment=[name, name])),
            ("kind", lambda m: m["rate"]["certificate"].update(kind=name))):
        wrong = json.loads(json.dumps(made))
        change(wrong)
        path = write(test.path("wrong.json"), json.dumps(wrong))
        for verb in (["check", path], ["check", "--github", path], ["show", path], ["check", test.folder]):
            test.run(f"{title}: {place}: {' '.join(v for v in verb if not v.startswith('/'))}",
                     [test.blinkc, *verb], (),
                     (3, 4, 6, 0 if place == "gpu" else 3))
        test.run(f"{title}: {place}: blink-perf", [test.perf, path], (), (3, 4, 6, 0 if place == "gpu" else 3))
    os.remove(test.path("wrong.json"))
    topology = {"format": "blink-topology", "version": 1, "name": name,
                "nodes": [{"id": "s", "gpus": [{"id": "a"}, {"id": "b"}], name: 1}], "links": []}
    path = write(test.path("topology.json"), json.dumps(topology))
    test.run(f"{title}: topology", [test.blinkc, path], (), (3,))
    topology["nodes"][0].pop(name)
    topology["links"] = [{"from": "a", "to": "b", "class": "nvlink", "count": 1, "capacity": 1, "latency": 1,
                          "source": name}]
    write(path, json.dumps(topology))
    out = test.path("out")
    for form in ("xml", "json"):
        test.run(f"{title}: topology as {form}", [test.blinkc, "convert", "--format", form, path, "-o", out], [out])
    test.run(f"{title}: summary", [test.blinkc, path, "-v", "-o", out], [out])
    os.remove(path)
    for option in ("--gpus", "--collective", "--links", "--root", "--algorithm", "--format", "--synthetic", "--packing",
                   "--sizes", "--budget", "--max-depth", "--size", "--layout", "--shard", name):
        test.run(f"{title}: {'an option' if option is name else option}",
                 [test.blinkc, *(["--synthetic", name] if option == "--synthetic" else [option, name, EXAMPLE])])
    for option in ("-b", "-e", "-t", "-o", "--gpus", "--algorithm", name):
        test.run(f"{title}: blink-perf {'an option' if option is name else option}", [test.perf, option, name, EXAMPLE])
    test.run(f"{title}: blink-perf, a path", [test.perf, name])
    test.run(f"{title}: a path", [test.blinkc, "check", name], (), (8, 3))
    test.run(f"{title}: an output", [test.blinkc, "--synthetic", "gpu:2 full 1", "-o", f"/nowhere/{name}"])


def paths(test, title, name):
    """File names."""
    folder = test.path("d")
    os.makedirs(folder, exist_ok=True)
    raw = os.path.join(folder, name.replace("/", "_")[:60]) + ".json"
    try:
        write(raw, '{"format": "blink-schedule"}')
    except OSError:
        return
    junit = test.path("junit.xml")
    for verb in (["check", raw], ["check", folder], ["check", "--github", folder], ["check", "--junit", junit, folder],
                 ["show", raw], [raw], ["diff", raw, raw], ["diff", folder, folder], ["report", folder],
                 ["diff", "--format", "json", folder, folder]):
        test.run(f"{title}: file name: {verb[0] if len(verb) > 1 else 'compile'} {len(verb)} {verb[-1] == folder}",
                 [test.blinkc, *verb], [junit])
    test.run(f"{title}: file name: blink-perf", [test.perf, raw])
    os.remove(raw)


def main():
    test = Test(*sys.argv[1:4])
    # All of them in one name, and in short ones, which messages do not cut.
    groups = ["".join(DANGEROUS[i:i + 20]) for i in range(0, len(DANGEROUS), 20)]
    forged = ["x\n::error::forged\n0 OK\n##[error]x", "::error::forged", "a*/b\\", "\x1b[31mred\x1b]0;title\x07\x9b31m"]
    some = [groups[1], forged[0], forged[2]] if len(sys.argv) < 5 else groups + forged
    everything = "".join(DANGEROUS)
    for i, name in enumerate([everything, *some]):
        title = f"name {i}"
        schedules(test, title, name)
        if i != 0:
            errors(test, title, name)
        paths(test, title, name)
    paths(test, "bytes that are not UTF-8", "a\udcff\udc80b\udce2\udc80")
    test.run("readable: check", [test.blinkc, "check", write(test.path("a.json"), json.dumps(schedule(READABLE)))], (),
             (0,), True)
    test.run("readable: show", [test.blinkc, "show", test.path("a.json")], (), (0,), True)
    test.run("readable: blink-perf",
             [test.perf, test.path("a.json"), "-b", "1K", "-e", "1K", "-n", "1", "-w", "0"], (), (0,),
             True)
    test.run("readable: cu", [test.blinkc, "convert", "--format", "cu", test.path("a.json")], (), (0,), True)
    test.run("readable: an error", [test.blinkc, "check", test.path(READABLE)], (), (8,), True)
    test.run("readable: svg", [test.blinkc, "show", "--format", "svg", test.path("a.json")], (), (0,), True)


if __name__ == "__main__":
    main()
