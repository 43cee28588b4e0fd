"""Break the tree on purpose, and see that a suite fails.

usage: tests/mutate [--apply | --table] [NAME...]

A mutation is a patch, tests/mutations/NAME.patch. Lines before the patch say what it breaks, then:

  suite: NAME     the suite that must fail
  case: TEXT      what the line of a failed case has in it (without: any)
  program: NAME   of the suite unit: the only program that is built and run
  tier: full      the case is only in the full test
  build: TARGET   what make builds besides the programs and their tests: tests-asan or tests-tsan

Lines of the patch are looked for in the file that it names, or in another of that name if the file has moved, wherever
they are; context lines only where it needs them to tell two places apart. A patch that does not apply is a failure.
Each is applied to a copy of the tree and of what is built, what the suite needs is built there, the suite runs until
the case fails, and the copy has its own files again. Without names: all of them, which takes an hour of two cores.
--apply only looks whether they apply; --table prints which suite finds which, as README.md has it.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runner

FOLDER = "tests/mutations"
# What a copy has no use for; of the programs under sanitizers, where the patch does not name them.
LEFT_OUT = {".git", "asan", "tsan", "deb", "distcheck"}
SANITIZED = {"tests-asan": "asan", "tests-tsan": "tsan"}


def header(name):
    """What stands before the patch, by word."""
    with open(f"{FOLDER}/{name}.patch") as file:
        lines = file.read().split("\n--- ", 1)[0].split("\n")
    return dict(line.split(": ", 1) for line in lines if re.match("(suite|case|program|tier|build): ", line))


def copy_tree(folder, build, target):
    left_out = LEFT_OUT - {SANITIZED.get(target)}
    shutil.copytree(".", folder, symlinks=True, ignore=lambda path, names: left_out.intersection(names) | (
        {"build"} - {build} if path == "." else set()))


# ---- patches ----

def read_patch(name):
    """The path of each file, and its hunks: lists of lines that begin with a blank, - or +."""
    files = []
    with open(f"{FOLDER}/{name}.patch") as file:
        for line in file.read().split("\n--- ", 1)[1].splitlines(keepends=True):
            if line.startswith("+++ b/"):
                files.append((line[6:].rstrip("\n"), []))
            elif line.startswith("@@ "):
                files[-1][1].append([])
            elif files and files[-1][1] and line[0] in " -+":
                files[-1][1][-1].append(line)
    return files


def without_context(hunk):
    """The hunk from its first to its last changed line."""
    changed = [i for i, line in enumerate(hunk) if line[0] != " "]
    return hunk[changed[0]:changed[-1] + 1]


def change(lines, hunk):
    """The lines with the hunk applied; None: its old lines are nowhere, or in several places."""
    for part in hunk, without_context(hunk):
        old = [line[1:] for line in part if line[0] != "+"]
        places = [i for i in range(len(lines) - len(old) + 1) if lines[i:i + len(old)] == old] if old else []
        if len(places) == 1:
            return lines[:places[0]] + [line[1:] for line in part if line[0] != "-"] + lines[places[0] + len(old):]
    return None


def changed_text(path, hunks):
    with open(path, errors="surrogateescape") as file:
        lines = file.read().splitlines(keepends=True)
    for hunk in hunks:
        lines = lines and change(lines, hunk)
    return lines and "".join(lines)


def of_that_name(path, build):
    for folder, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name != build and name[0] != "."]
        if os.path.basename(path) in names:
            yield os.path.join(folder, os.path.basename(path))


def patched(name, build):
    """The new text of each file that the patch changes, by path; what does not apply has None."""
    changed = {}
    for path, hunks in read_patch(name):
        texts = {path: changed_text(path, hunks)} if os.path.exists(path) else {}
        if not texts.get(path):
            texts = {other: changed_text(other, hunks) for other in of_that_name(path, build)}
        texts = {other: text for other, text in texts.items() if text}
        changed.update(texts if len(texts) == 1 else {path: None})
    return changed


def write(path, new):
    with open(path, "w", errors="surrogateescape") as file:
        file.write(new)


def all_apply(names, build):
    """Whether each has its suite and its lines in the sources; those that have not, for people."""
    bad = [f"{name}: {path} has none of its lines" for name in names
           for path, new in patched(name, build).items() if not new]
    bad += [f"{name} names no suite" for name in names if not os.path.exists(f"tests/suite/{header(name)['suite']}.sh")]
    for line in bad:
        print(line)
    return not bad


def table(names):
    """Which suite finds which, and what only the full test does."""
    found = {}
    for name in names:
        head = header(name)
        found.setdefault(head["suite"], []).append(f"*{name}*" if head.get("tier") == "full" else name)
    yield "| suite | mutations | which |\n| --- | --- | --- |"
    for suite, of in sorted(found.items()):
        yield f"| {suite} | {len(of)} | {', '.join(of)} |"


# ---- trials ----


def make(words):
    """None, or the last lines of what make says. What is broken on purpose may warn, in CI too."""
    done = subprocess.run([os.environ["MAKE"], "-s", "WERROR=", *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    return None if done.returncode == 0 else f"does not build: {done.stderr[-600:]}"


def fails(suite, pattern, log, full):
    """Run the suite until a case fails whose line has the pattern; the line, or None, and the log."""
    pid, ended = runner.start(suite, log, full), False
    try:
        while True:
            found = re.search(pattern, text(log), re.MULTILINE)
            if found or ended:
                return found and found[0], text(log)
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
            if not ended:
                time.sleep(0.1)
    finally:
        runner.end(pid)
        if not ended:
            os.waitpid(pid, 0)


def text(path):
    if not os.path.exists(path):
        return ""
    with open(path, errors="surrogateescape") as file:
        return file.read()


def goals(head, build):
    """What make builds for the suite."""
    if "build" in head:
        return ["tests", head["build"]]
    return ["suite-programs", f"{build}/tests/unit/{head['program']}"] if "program" in head else \
        ["tests" if head["suite"] in ("unit", "fuzz", "corpus", "hwloc") else "suite-programs"]


def verdict(name, build):
    """In a copy of the tree: the line of a failed case, or None; why it could not be tried."""
    head = header(name)
    if "suite" not in head or not os.path.exists(f"tests/suite/{head['suite']}.sh"):
        return None, "names no suite"
    changed = patched(name, build)
    before = {path: text(path) for path, new in changed.items() if new}
    log = os.path.abspath(f"../{name}.log")
    try:
        for path, new in changed.items():
            if not new:
                return None, f"does not apply to {path}"
            write(path, new)
        os.environ.update(BUILD=build, unit_program=head.get("program", ""))
        wrong = make([f"B={build}", *goals(head, build)])
        if wrong:
            return None, wrong
        pattern = f"^not ok {head['suite']}: .*{re.escape(head.get('case', ''))}.*"
        line, said = fails(head["suite"], pattern, log, head.get("tier") == "full")
        runs = re.search("^ok ", said, re.MULTILINE)
        return line, f"{head['suite']} passes" if runs else f"{head['suite']} does not run: {said[-300:]}"
    finally:
        for path, old in before.items():
            write(path, old)


def judge(name, top, folder, build):
    """In a process that tries one after the other, in its own copy of the tree: the line for people."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.chdir(top)
    target = header(name).get("build", "plain")
    tree = f"{folder}/{os.getpid()}.{target}/tree"
    if not os.path.exists(tree):
        copy_tree(tree, build, target)
    os.chdir(tree)
    found, why = verdict(name, build)
    if found:
        return f"ok mutations: {name}\n# {found[:160]}"
    return f"not ok mutations: {name}: {why}"


def main():
    parser = argparse.ArgumentParser(prog="tests/mutate", usage=__doc__.split("\n\n")[1].removeprefix("usage: "),
                                     description=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    names = args.names or sorted(name.removesuffix(".patch") for name in os.listdir(FOLDER) if name.endswith(".patch"))
    os.environ.setdefault("MAKE", "make")
    # A build directory elsewhere is not copied; its copy is built from nothing.
    build, failed = os.path.relpath(os.environ.get("BUILD", "build")), 0
    build = "build" if os.sep in build else build
    if args.table:
        print("\n".join(table(names)))
        return 0
    if args.apply:
        return not all_apply(names, build)
    folder = tempfile.mkdtemp()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with ProcessPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
            for line in pool.map(judge, names, repeat(os.getcwd()), repeat(folder), repeat(build)):
                print(line, flush=True)
                failed += line.startswith("not ok ")
    finally:
        shutil.rmtree(folder)
    print(f"# {len(names) - failed} of {len(names)} mutations are found")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
