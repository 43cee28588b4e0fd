#!/usr/bin/env python3
"""The figures of papers, with our planner and simulator: a page with charts, and docs/papers.md.

usage: run.py [--blinkc PROGRAM] [--folder DIRECTORY] [--jobs N] [--html FILE] [--markdown FILE]
       run.py --check FILE [PAPER/FIGURE...]      holds the page against what these figures give now; without figures
       all of it
       run.py --list                              the figures and their titles
       run.py --show PAPER/FIGURE...              prints them
"""
import argparse
import glob
import importlib
import os
import sys

import page
import table
from figure import HERE, evaluate
from lab import TOP, Lab

HTML = "build/papers/papers.html"


def all_papers():
    """Each file here that has a PAPER."""
    modules = []
    for path in sorted(glob.glob(os.path.join(HERE, "*.py"))):
        with open(path, encoding="utf-8") as file:
            if "\nPAPER = " in file.read():
                modules.append(importlib.import_module(os.path.basename(path)[:-3]))
    return sorted((module.PAPER for module in modules), key=lambda paper: (paper.year, paper.key))


def save(path, text):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.part", path)


def evaluated(lab, papers, names):
    chosen = {}
    for name in names:
        key, _, figure = name.partition("/")
        chosen.setdefault(key, []).append(figure)
    known = {paper.key: [figure.name for figure in paper.figures] for paper in papers}
    for key, figures in chosen.items():
        for figure in figures:
            if figure not in known.get(key, []):
                sys.exit(f"run.py: {key}/{figure}: no such figure: want one of --list")
    return [(paper, list(evaluate(lab, paper, chosen.get(paper.key)))) for paper in papers if not names
            or paper.key in chosen]


def without_cause(results):
    return [f"{paper.key}/{result.figure.name}: {row.point.series}, {table.place(row.point)}: published "
            f"{row.point.value:g}, "
            f"ours {table.number(row.ours)}" for paper, of in results for result in of for row in result.rows
            if not row.met and not row.cause]


def check(results, path, whole):
    """Whether the page has these figures, to the byte; `whole`: and nothing else."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if whole:
        wanted = {"the page": table.page(results, HTML)}
        right = {"the page": text == wanted["the page"]}
    else:
        wanted = {f"{paper.key}/{result.figure.name}": table.figure_text(result) for paper,
                  of in results for result in of}
        right = {name: section in text for name, section in wanted.items()}
    for name, is_right in right.items():
        print(f"{'ok' if is_right else 'not ok'} {path} has what {name} gives")
        if not is_right:
            print("".join(f"# {line}\n" for line in wanted[name].splitlines() if line not in text), end="")
    return all(right.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--blinkc", default=os.path.join(TOP, "build", "blinkc"))
    parser.add_argument("--folder", default=os.path.join(TOP, "build", "papers"))
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    parser.add_argument("--html")
    parser.add_argument("--markdown")
    parser.add_argument("--check")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("figures", nargs="*", metavar="PAPER/FIGURE")
    args = parser.parse_args()
    papers = all_papers()
    if args.list:
        print("\n".join(f"{paper.key}/{figure.name}\t{figure.title}" for paper in papers for figure in paper.figures))
        return 0
    results = evaluated(Lab(args.blinkc, args.folder, args.jobs), papers, args.figures)
    lost = without_cause(results)
    for line in lost:
        print(f"no cause: {line}", file=sys.stderr)
    if args.check:
        return 0 if check(results, args.check, not args.figures) and not lost else 1
    if args.show:
        print("\n".join(table.figure_text(result) for _, of in results for result in of))
    if args.html:
        save(args.html, page.page(results))
    if args.markdown:
        save(args.markdown, table.page(results, HTML))
    if not args.show:
        print(table.summary(results), end="")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
