#!/usr/bin/env python3
"""Hold JUnit XML and annotations of `blinkc diff` against its JSON: does a file fail, why, and what else differs?

usage: diff_reports.py OLD NEW DIFF.json JUNIT.xml ANNOTATIONS KINDS     KINDS as of --fail-on

Prints how many files there are, how many fail, and how many differ and do not fail.
"""
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

CODES = {"0A": "\n", "0D": "\r", "25": "%", "3A": ":", "2C": ","}


def unescape(text):
    return re.sub("%(0A|0D|25|3A|2C)", lambda match: CODES[match[1]], text)


def expectations(old, new, diff, kinds):
    """(path, level, kind, message, messages of all differences) of each file; level is None where nothing differs."""
    def fails(item):
        return item["kind"] == "wrong" or "any" in kinds or (item["kind"] in kinds and item["change"] != "better")

    for entry in diff["files"]:
        items = entry["differences"]
        path = os.path.join(old, entry["file"])
        path = path if os.path.exists(path) else os.path.join(new, entry["file"])
        if not items:
            yield path, None, None, None, []
            continue
        first = next(filter(fails, items), items[0])
        message = f"{first['kind']}: {first['message']}" + (f"; {len(items)} differences" if len(items) > 1 else "")
        yield path, "error" if fails(first) else "warning", first["kind"], message, [item["message"] for item in items]


def check_file(expected, annotation, case):
    path, level, kind, message, every = expected
    got, place, text = re.fullmatch("::([a-z]+) file=([^,:]*),title=blinkc diff::(.*)", annotation).groups()
    assert (got, unescape(place)) == (level, path), (got, place, level, path)
    text = unescape(text).split("\n")
    found = list(case)
    if level == "error":
        assert [child.tag for child in found] == ["failure"], path
        assert (found[0].get("message"), found[0].get("type")) == (message, kind), path
        body = [message] + (found[0].text or "").splitlines()
    else:
        assert [child.tag for child in found] == ["system-out"], path
        body = found[0].text.splitlines()
    assert text == body and body[0] == message, (text, body)
    listed = [line[12:] for line in body[1:] if "more; -v shows them" not in line]
    assert set(listed) <= set(every) and (len(listed) > 1 or len(every) == 1 and not listed), path


def main(old, new, diff, junit, annotations, kinds):
    with open(diff, encoding="utf-8") as file:
        want = list(expectations(old, new, json.load(file), set(kinds.split(","))))
    with open(annotations, encoding="utf-8") as file:
        lines = file.read().splitlines()
    top = ElementTree.parse(junit).getroot()
    cases = top.findall("testsuite/testcase")
    n_failing = sum(level == "error" for _, level, *_ in want)
    for counts in top, top[0]:
        assert (counts.get("tests"), counts.get("failures")) == (str(len(want)), str(n_failing)), counts.attrib
    assert [case.get("file") for case in cases] == [case.get("name") for case in cases] == [path for path, *_ in want]
    notice = re.fullmatch(r"::notice title=blinkc diff::(\d+) files?: .* wrong.*", lines.pop())
    assert int(notice[1]) == len(want), notice
    for expected, case in zip(want, cases):
        if expected[1]:
            check_file(expected, lines.pop(0), case)
        else:
            assert not list(case), expected[0]
    assert not lines
    print(len(want), n_failing, sum(level == "warning" for _, level, *_ in want))


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
