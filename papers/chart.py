"""Charts of a figure as SVG: published points are hollow, ours are filled and joined. One chart for each unit."""
import html
import math

LEFT, RIGHT, TOP, BOTTOM = 56, 12, 26, 46
WIDTH, HEIGHT = 460, 230
BAR, GAP = 11, 16
COLOURS = 6


def nice(most):
    """A step of 1, 2 or 5 times a power of ten, of which four to ten reach `most`."""
    power = 10.0 ** math.floor(math.log10(most / 4))
    return power * next(f for f in (1, 2, 5, 10) if power * f * 10 >= most)


def label(value):
    for size, letter in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if value >= size and value % size == 0:
            return f"{value / size:g}{letter}"
    for size, letter in ((1e9, "e9"), (1e6, "e6")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def decades(low, high):
    return [10.0 ** n for n in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


class Scale:
    """Values to px from the bottom; logarithmic where they span more than a factor of 30."""

    def __init__(self, values, length):
        low, high = min(values), max(values)
        self.length, self.log = length, high > 30 * low
        if self.log:
            self.ticks = decades(low, high)
            self.first, self.last = self.ticks[0], self.ticks[-1]
        else:
            step = nice(high)
            self.ticks = [step * i for i in range(math.ceil(high / step - 1e-9) + 1)]
            self.first, self.last = 0, self.ticks[-1]

    def __call__(self, value):
        if self.log:
            return self.length * math.log(value / self.first) / math.log(self.last / self.first)
        return self.length * value / self.last


def element(name, text=None, **attributes):
    words = ""
    for key, value in attributes.items():
        value = f"{value:.1f}" if isinstance(value, float) else html.escape(str(value))
        words += f' {key.rstrip("_").replace("_", "-")}="{value}"'
    return f"<{name}{words}/>" if text is None else f"<{name}{words}>{text}</{name}>"


def title(series, x, value, unit, whose):
    return element("title", html.escape(f"{series}, {x}: {value:.4g} {unit}, {whose}"))


def frame(scale, width, unit):
    parts = [element("text", html.escape(unit), class_="unit", x=LEFT - 6, y=12)]
    for tick in scale.ticks:
        y = TOP + HEIGHT - scale(tick)
        parts.append(element("line", class_="line", x1=LEFT, x2=LEFT + width, y1=y, y2=y))
        if tick or not scale.log:
            parts.append(element("text", label(tick), class_="tick", x=LEFT - 6, y=y + 4))
    return parts


def drawing(parts, width, name):
    size = {"width": LEFT + width + RIGHT, "height": TOP + HEIGHT + BOTTOM}
    return element("svg", "".join(parts), role="img", aria_label=name,
                   viewBox=f"0 0 {size['width']} {size['height']}", **size)


def lines(name, unit, x_unit, published, ours, order):
    """published, ours: {series: [(x, value)]} with numbers as x."""
    every = [p for points in (*published.values(), *ours.values()) for p in points]
    scale = Scale([value for _, value in every], HEIGHT)
    low, high = min(x for x, _ in every), max(x for x, _ in every)
    logarithmic = low > 0 and (high > 100 * low or low >= 1024 and high > 8 * low)
    to = (lambda x: math.log2(x / low) / math.log2(high / low)) if logarithmic else (lambda x: (x - low) / (high - low))

    def px(x):
        return LEFT + 10 + (WIDTH - 20) * (to(x) if high > low else .5)

    def py(value):
        return TOP + HEIGHT - scale(value)

    def circle(series, x, value, whose, **attributes):
        return element("circle", title(series, f"{label(x)} {x_unit}", value, unit, whose), cx=px(x), cy=py(value),
                       **attributes)

    parts = frame(scale, WIDTH, unit)
    xs = sorted({x for x, _ in every})
    last = -math.inf
    for x in xs:
        if px(x) - last >= 34:
            last = px(x)
            parts.append(element("text", label(x), x=px(x), y=TOP + HEIGHT + 16, text_anchor="middle"))
    parts.append(element("text", html.escape(x_unit), x=LEFT + WIDTH / 2, y=TOP + HEIGHT + 34, text_anchor="middle"))
    for series, points in ours.items():
        points = sorted(points)
        path = " ".join(f"{px(x):.1f},{py(value):.1f}" for x, value in points)
        parts.append(element("polyline", points=path, class_=f"ours c{order[series] % COLOURS}"))
        parts += [circle(series, x, value, "ours", class_=f"all c{order[series] % COLOURS}", r=2.5) for x,
                  value in points]
    for series, points in published.items():
        parts += [circle(series, x, value, "published", class_=f"published c{order[series] % COLOURS}", r=5) for x,
                  value in points]
    return drawing(parts, WIDTH, name)


def bars(name, unit, rows, order):
    """Rows whose x is a name: a pair of bars each, published hollow, ours filled."""
    scale = Scale([v for row in rows for v in (row.point.value, row.ours) if v], HEIGHT)
    width = max(120, len(rows) * (2 * BAR + GAP) + GAP)
    parts, x, before = frame(scale, width, unit), LEFT + GAP, None
    for row in rows:
        p = row.point
        colour = order[p.series] % COLOURS
        for at, value, kind, whose in ((x, p.value, "published", "published"), (x + BAR, row.ours, "all", "ours")):
            if value:
                h = max(scale(value), 1.0)
                parts.append(element("rect", title(p.series, p.x, value, unit, whose), class_=f"{kind} c{colour}",
                                     x=at, width=BAR - 1, y=TOP + HEIGHT - h, height=h))
        if p.x != before:
            text = element("title", html.escape(str(p.x))) + html.escape(str(p.x)[:14] if isinstance(p.x, str)
                                                                         else label(p.x))
            parts.append(element("text", text, x=x, y=TOP + HEIGHT + (16 if (x - LEFT) // (2 * BAR + GAP) % 2 else 30)))
        before, x = p.x, x + 2 * BAR + GAP
    return drawing(parts, width, name)


def axes(row):
    """Rows with the same have a chart in common."""
    return row.point.unit, row.point.x_unit, isinstance(row.point.x, float)


def figure_charts(result):
    """The charts of a figure, with a legend."""
    order = {}
    for row in result.rows:
        order.setdefault(row.point.series, len(order))
    for series, _ in result.curves:
        order.setdefault(series, len(order))
    units = list(dict.fromkeys(axes(row) for row in result.rows if row.point.unit != "count"))
    units += [(unit, result.figure.curve_x, True) for unit in dict.fromkeys(unit for _, unit in result.curves)
              if not any(unit == known and numeric for known, _, numeric in units)]
    out = []
    for unit, x_unit, numeric in units:
        rows = [row for row in result.rows if axes(row) == (unit, x_unit, numeric)]
        shown = "times" if unit == "x" else unit
        if numeric:
            x_unit = x_unit or result.figure.curve_x
            published, ours = {}, {s: list(points) for (s, u), points in result.curves.items() if u == unit}
            for row in rows:
                published.setdefault(row.point.series, []).append((row.point.x, row.point.value))
                if row.ours:
                    mine = ours.setdefault(row.point.series, [])
                    if row.point.x not in [x for x, _ in mine]:
                        mine.append((row.point.x, row.ours))
            out.append(lines(result.figure.title, shown, x_unit, published, ours, order))
        else:
            out.append(bars(result.figure.title, shown, rows, order))
    if not out:
        return ""
    keys = "".join(f'<li><svg class="part" width="12" height="12"><rect class="all c{at % COLOURS}" width="12" '
                   f'height="12"/></svg>'
                   f"{html.escape(series)}</li>" for series, at in order.items())
    figures = "".join(f"<figure>{svg}</figure>" for svg in out)
    return f'<ul class="legend">{keys}</ul><div class="charts">{figures}</div>'
