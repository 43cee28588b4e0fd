"""docs/papers.md: one summary, a table for each figure, and the misses with their causes."""
from figure import SAME, WITHIN, counted

UNITS = {"x": "times", "count": ""}

HEAD = """\
# The figures of papers

`make papers` plans and simulates anew what papers have published, and writes this page, and {html} with
charts. Ours are our plans and our simulator ([simulator.md](simulator.md)), with its default parameters, those that a
paper states, or those of the [libraries and machines](#libraries-and-machines) that were measured; no number is fitted
to a figure, but some rules were chosen with figures in view, as their rows say. [papers/README.md](../papers/README.md) says where each published value is from.

A point is met if ours is within {within:.0%} of the published value. Orders are those of two algorithms at one place of a figure,
where the published values differ by {same:.0%} or more; a ratio of two algorithms is an order, too. Counts follow from the
machine alone, are not among the points, and have to be equal. Figures that something of ours was fitted to say so, and
are not in the sums; what a paper's formula says, and nobody measured, has a sum of its own.
"""

MODELS = """\
Where a figure is a measurement of somebody's library on somebody's machine, ours simulates what that library does by
its own source, with rates that were published for that machine. The same holds for all points of a library and machine.

| what | how | from |
| --- | --- | --- |
| NCCL's choice | the algorithm, protocol and channels that it expects to be fastest for a message, for one server and for several | tuning.cc and enqueue.cc of 2.5.6, 2.7.8, 2.8.4 and 2.20.3; of 2.4 enqueue.cc and init.cc |
| NCCL's protocols | LL: packets, half of which is flags; LL128: 120 of 128 bytes, within the rate that NCCL counts for it; Simple: chunks. Each with its own latency of a hop over NVLink and network, and its own time of a call | tuning.cc |
| NCCL's chunks | allreduce by rings: a rank's part whole, up to 4 steps of 512 KiB in each channel; broadcast and reduce: a step; trees: a step, halved while a tree would not be filled | the kernels and enqueue.cc; that a ring's hops count in full: tuning.cc |
| NCCL's channels over servers | a channel is one block, which moves its part at the rate of a channel, although the links of its GPU are free; of a tree by Simple each hop takes 6.2 us and a chunk at 12 GB/s, once for the way up and once for the way down. Where that takes longer than the links, and by LL128, each way has half of the rate, also while the other is idle. This rule was chosen among four with the logs of several servers in view, and so was where it holds | tuning.cc: the rates of channels; 28 us of 256 KiB; all_reduce.h: a block's threads are divided between both ways, by Simple in halves that work side by side, by LL128 7 to 3; that both take turns, and halves for LL128, are ours |
| NCCL's trees by LL128 | have the part of their rate that NCCL counts for a size, 0.5 to 1 | tuning.cc: treeCorrectionFactor |
| NCCL's trees | in a server chains of its GPUs, over servers double binary trees, both for each network card; `papers/nccl.py` writes them as schedules, which `blinkc check` finds valid. In one server NCCL 2.4 has none | connect.cc, trees.cc; ncclTreeThreshold in init.cc of 2.4 |
| nccl-tests | 20 calls are timed together, none waits for another: a broadcast or reduce begins at its root while the one before goes on, so 20 of them are simulated as one | common.cu of nccl-tests |
| the start of a call | what the least message of a log takes besides its simulation, added to all others; where one process starts all GPUs, a call takes at least that and a time for each channel, which is from the log's allreduce of 256 KiB | the figures of the start of a call, which are not in the sums |
| A100 | 235 of 300 GB/s of NVLink | tuning.cc of NCCL 2.7 to 2.18 |
| NVLink SHARP | 0.85 of the rate of kernels; a GPU's own part passes the switch, too, so 9/8 of a message each way for eight GPUs | nvlsEfficiency in tuning.cc of NCCL 2.28.3; NVIDIA/nccl-tests, issue 238, and NVIDIA/nccl, issue 2140 |
| Blink, made anew by ForestColl's author | trees that multiplicative weights find from one root, each for the way up and the way down: `--packing mwu`. Chosen with the figures in view: three-phase trees, and those of the best broadcast, miss; which its author took is not public | Blink, sections 3 and 4: packing from a root, and allreduce over the same trees |
| ForestColl | an allreduce is the trees of the best allgather, backwards and forwards: `--algorithm reducescatter-allgather` | README.md and to_xml.py of liangyuRain/ForestColl |
| RCCL's rings on MI250 | the fastest that there are, which share links: `--algorithm shared-ring`; those that its search finds may be slower. Chosen with the figure in view: whole links give 25.6 GB/s | no log of them is public |
| MI250 | 36 of 50 GB/s of a link | Pearson, arXiv 2302.14827; MI200_XGMI_WIDTH in topo.h of RCCL |
| EFA | NCCL_PROTO is Simple, and 75 us count as a hop's latency when NCCL chooses | platform-aws.c of aws-ofi-nccl |
| Blink's runtime on V100 | 18 of 25 GB/s where trees take more than one link of a GPU | Blink, microbenchmarks: two trees through a GPU |
| formulas of Awan et al. | the direct broadcast has a message for the root itself, so it goes to one GPU more | section 4: n messages for n GPUs |
"""


def of(n, all_of):
    return f"{n} of {all_of} ({n / all_of:.0%})" if all_of else "none"


def number(value):
    """Four digits, without an exponent."""
    if value is None:
        return "none"
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}"


def with_unit(value, unit):
    return f"{number(value)} {UNITS.get(unit, unit)}".strip()


def place(point):
    return f"{number(point.x) if isinstance(point.x, float) else point.x} {point.x_unit}".strip()


def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


def deviation(row):
    if row.deviation is None:
        return ""
    return "equal" if row.deviation == 0 else f"{100 * row.deviation:+.1f} %"


def name(paper, figure):
    return f"{paper.title}, {figure.title}"


def table_lines(table):
    return ["| " + " | ".join(row) + " |" for row in (table.head, ["---"] * len(table.head), *table.rows)]


def figure_text(result):
    """The section of a figure."""
    figure = result.figure
    lines = [f"### {figure.title}", ""]
    lines += [line for text in (figure.note, figure.calibrates and f"Calibrates: {figure.calibrates}") if text
              for line in (text, "")]
    if result.table:
        lines += [*table_lines(result.table), ""]
    if not result.rows:
        return "\n".join(lines)
    lines += ["| series | at | published | ours | deviation | source |", "| --- | --- | --- | --- | --- | --- |"]
    for row in result.rows:
        p = row.point
        cells = (p.series, place(p), with_unit(p.value, p.unit), with_unit(row.ours, p.unit), deviation(row), p.source)
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
    return "\n".join(lines) + "\n"


def summary(papers):
    lines = ["| paper | figure | met | orders | counts |", "| --- | --- | --- | --- | --- |"]
    for paper, results in papers:
        for result in results:
            star = " (calibrates)" if result.figure.calibrates else ""
            lines.append("| " + " | ".join([paper.title, result.figure.title + star,
                                            *tallies(result.rows, result.pairs)]) + " |")
    lines += ["| " + " | ".join(["**all**", f"**{what}**", *(f"**{text}**" if text else "" for text in tally)]) + " |"
              for what, tally in totals(papers)]
    return "\n".join(lines) + "\n"


def totals(papers):
    """What was measured or stated, and what formulas say; without what something of ours was fitted to."""
    for what, formula in (("measured", False), ("by formulas", True)):
        results = [result for _, of in papers for result in of if not result.figure.calibrates
                   and result.figure.formula == formula]
        if results:
            yield what, tallies([row for result in results for row in result.rows],
                                [pair for result in results for pair in result.pairs])


def tallies(rows, pairs):
    n, met = counted(rows)
    counts = [row for row in rows if row.point.unit == "count"]
    return (of(met, n) if n else "", of(sum(pair.right for pair in pairs), len(pairs)) if pairs else "",
            of(sum(row.met for row in counts), len(counts)) if counts else "")


def misses(papers):
    lines = ["| paper | point | published | ours | deviation | likely cause |", "| --- | --- | --- | --- | --- | --- |"]
    for paper, results in papers:
        for result in results:
            for row in (row for row in result.rows if not row.met):
                p = row.point
                cells = (paper.title, f"{result.figure.title}: {p.series}, {place(p)}", with_unit(p.value, p.unit),
                         with_unit(row.ours, p.unit), deviation(row), row.cause)
                lines.append("| " + " | ".join(map(cell, cells)) + " |")
    return "\n".join(lines) + "\n"


def wrong_orders(papers):
    lines = []
    for paper, results in papers:
        for result in results:
            for first, second, right in result.pairs:
                if not right:
                    lines.append(f"- {name(paper, result.figure)}, {place(first.point)}: {against(first, second)}")
    return "\n".join(lines or ["None."]) + "\n"


def against(first, second):
    if second is None:
        return f"{first.point.series}: {number(first.point.value)} times, ours {number(first.ours)}"
    up, down = sorted((first, second), key=lambda row: -row.point.value)
    unit = up.point.unit
    return (f"{up.point.series} {with_unit(up.point.value, unit)} over {down.point.series} "
            f"{with_unit(down.point.value, unit)}, "
            f"ours {number(up.ours)} and {number(down.ours)}")


def contents(titles):
    """A list of links to sections, by what a heading's anchor is on GitHub and GitLab."""
    def anchor(title):
        return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")
    return "".join(f"- [{title}](#{anchor(title)})\n" for title in titles)


def page(papers, html):
    first = {"Libraries and machines": MODELS, "All figures": summary(papers), "Points that are missed": misses(papers),
             "Orders that are wrong": wrong_orders(papers)}
    parts = [HEAD.format(html=f"`{html}`", within=WITHIN, same=SAME),
             contents([*first, *(paper.title for paper, _ in papers)])]
    parts += [f"## {title}\n\n{text}" for title, text in first.items()]
    for paper, results in papers:
        parts += [f"## {paper.title}\n", f"{paper.cite}\n", *map(figure_text, results)]
    return "\n".join(parts)
