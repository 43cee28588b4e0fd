"""Published points, and ours beside them.

A file of a paper (blink.py and so on) has a PAPER. Its figures are rows: a name as in the data file, and a function
that
gives our value for each published point. All else follows: deviations, orders, tables and charts.
"""
import collections
import csv
import itertools
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))
WITHIN = 0.15           # a point is met if ours is within this part of the published value
SAME = 0.02             # two published values that differ by less have no order

# x: a number if x_unit counts something, else what it names. unit: "x" is a ratio of two algorithms, "count" a number
# of things that follows from the machine alone.
Point = collections.namedtuple("Point", "figure series x x_unit value unit source")

# ours: called with a Lab and a Point, gives the value in the unit of the point, or None where we have none. curves:
# called with a Lab, gives {(series, unit): [(x, value), ...]} for the chart, points that the paper does not have.
# formula: the published values are those of a paper's formula or model, nobody measured them; they have a sum of their
# own. less: ours is met also by less than the published value, as our plan may be faster than theirs. curve_x: what the
# x of curves counts, where no published point says it. causes: why a point is missed, by (series, x), by series, or for
# all others by None. pairs: False where the series are no algorithms that could be ordered. calibrates: what of ours
# was fitted to this figure; it is shown, and left out of the sums over all figures. tables: called with a Lab, gives a
# Table of ours alone. points: called with a Lab, gives points besides those of the data: what the paper's formula says
# for published numbers.
Figure = collections.namedtuple("Figure", "name title ours note curves causes pairs calibrates points curve_x formula "
                                          "less tables",
                                defaults=("", None, {}, True, "", None, "", False, False, None))

# data: name of a file in data/. year orders the papers.
Paper = collections.namedtuple("Paper", "key title cite year data figures")

Row = collections.namedtuple("Row", "point ours deviation met cause")
Pair = collections.namedtuple("Pair", "first second right")
Table = collections.namedtuple("Table", "head rows")
Result = collections.namedtuple("Result", "figure rows pairs curves table")

COLUMNS = list(Point._fields)


def number(text):
    """A number, or the text where it is none."""
    try:
        return float(text)
    except ValueError:
        return text


def read_points(name):
    """The published points of a paper: an error says which line is wrong."""
    with open(os.path.join(HERE, "data", name), encoding="utf-8", newline="") as file:
        rows = csv.reader(line for line in file if not line.startswith("#"))
        if next(rows) != COLUMNS:
            raise ValueError(f"{name}: want the columns {','.join(COLUMNS)}")
        points = []
        for at, row in enumerate(rows, 1):
            if len(row) != len(COLUMNS) or not all(row[i] for i in (0, 1, 2, 5, 6)):
                raise ValueError(f"{name}: row {at}: {row}: want {len(COLUMNS)} columns, none empty but x_unit")
            value = number(row[4])
            if not isinstance(value, float) or not 0 < value < math.inf:
                raise ValueError(f"{name}: row {at}: value {row[4]!r}: want a number above 0")
            points.append(Point(*row[:2], number(row[2]), row[3], value, *row[5:]))
    keys = [point[:4] + (point.unit,) for point in points]
    twice = [key for key, n in collections.Counter(keys).items() if n > 1]
    if twice:
        raise ValueError(f"{name}: {twice[0]}: want each point once")
    return points


def cause_of(figure, point):
    for key in ((point.series, point.x), point.series, None):
        if key in figure.causes:
            return figure.causes[key]
    return ""


def compared(figure, point, ours):
    deviation = None if ours is None else ours / point.value - 1
    most = 0 if point.unit == "count" else WITHIN + 1e-9
    met = deviation is not None and (abs(deviation) <= most or figure.less and deviation < 0)
    return Row(point, ours, deviation, met, "" if met else cause_of(figure, point))


def ordered(rows):
    """Pairs of algorithms at one x, and whether ours are in the published order. A ratio is a pair in itself."""
    pairs = []
    rows = [row for row in rows if row.ours is not None and row.point.unit != "count"]
    for row in rows:
        if row.point.unit == "x" and abs(row.point.value - 1) >= SAME:
            pairs.append(Pair(row, None, (row.ours > 1) == (row.point.value > 1)))
    for a, b in itertools.combinations([row for row in rows if row.point.unit != "x"], 2):
        if a.point.x != b.point.x or (a.point.x_unit, a.point.unit) != (b.point.x_unit, b.point.unit):
            continue
        if abs(math.log(a.point.value / b.point.value)) >= math.log1p(SAME):
            pairs.append(Pair(a, b, (a.ours > b.ours) == (a.point.value > b.point.value)))
    return pairs


def evaluate(lab, paper, names=None):
    """The results of a paper's figures, or of those that are named."""
    points = read_points(paper.data)
    known = {figure.name for figure in paper.figures}
    left = sorted({point.figure for point in points} - known)
    if left:
        raise ValueError(f"{paper.data}: figure {left[0]}: want a row in {paper.key}.py")
    for figure in paper.figures:
        if names and figure.name not in names:
            continue
        its = [point for point in points if point.figure == figure.name] + (figure.points(lab) if figure.points else [])
        ours = lab.map(lambda point, figure=figure: figure.ours(lab, point), its)
        rows = [compared(figure, point, value) for point, value in zip(its, ours)]
        curves = figure.curves(lab) if figure.curves else {}
        table = figure.tables(lab) if figure.tables else None
        yield Result(figure, rows, ordered(rows) if figure.pairs else [], curves, table)


def counted(rows):
    """Published points that are rates, times or ratios; and those of them that are met."""
    rows = [row for row in rows if row.point.unit != "count"]
    return len(rows), sum(row.met for row in rows)
