"""The HTML page: charts and tables of all figures, in one file that needs no network."""
import html
import os

import chart
import table
from figure import HERE

CSS = [os.path.join(HERE, "..", "src", "verb", "report", "report.css"), os.path.join(HERE, "page.css")]


def cells(row, tag="td"):
    return "".join(f"<{tag}>{html.escape(str(text))}</{tag}>" for text in row)


def rows_of(result):
    for row in result.rows:
        p = row.point
        line = cells((p.series, table.place(p), table.with_unit(p.value, p.unit), table.with_unit(row.ours, p.unit),
                      table.deviation(row), p.source, row.cause))
        yield f'<tr class="missed">{line}</tr>' if not row.met else f"<tr>{line}</tr>"


def section(paper, result):
    head = cells(("series", "at", "published", "ours", "deviation", "source", "likely cause of a miss"), "th")
    texts = (result.figure.note, result.figure.calibrates and f"Calibrates: {result.figure.calibrates}")
    note = "".join(f"<p>{html.escape(text)}</p>" for text in texts if text)
    if result.table:
        body = "".join(f"<tr>{cells(row)}</tr>" for row in result.table.rows)
        note += f'<div class="scroll"><table><thead><tr>{cells(result.table.head, "th")}</tr></thead><tbody>{body}</tbody></table></div>'
    body = "".join(rows_of(result))
    rows = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>' if body else ""
    return (f'<section id="{paper.key}-{result.figure.name}"><h3>{html.escape(result.figure.title)}</h3>'
            f"{note}{chart.figure_charts(result)}{rows}</section>")


def summary(papers):
    lines = []
    for paper, results in papers:
        for result in results:
            link = f'<a href="#{paper.key}-{result.figure.name}">{html.escape(result.figure.title)}</a>'
            star = " (calibrates)" if result.figure.calibrates else ""
            tally = cells(table.tallies(result.rows, result.pairs))
            lines.append(f"<tr><td>{html.escape(paper.title)}</td><td>{link}{star}</td>{tally}</tr>")
    lines += [f"<tr><th>all</th><th>{what}</th>{cells(tally, 'th')}</tr>" for what, tally in table.totals(papers)]
    return (f'<div class="scroll"><table><thead><tr>{cells(("paper", "figure", "met", "orders", "counts"), "th")}</tr></thead>'
            f'<tbody>{"".join(lines)}</tbody></table></div>')


def page(papers):
    style = ""
    for path in CSS:
        with open(path, encoding="utf-8") as file:
            style += file.read()
    lead = "Published values are hollow, those of blinkc's planner and simulator filled."
    body = [f'<header><h1>The figures of papers</h1><p class="lead">{lead}</p></header><main>{summary(papers)}']
    for paper, results in papers:
        body.append(f"<h2>{html.escape(paper.title)}</h2><p>{html.escape(paper.cite)}</p>")
        body += [section(paper, result) for result in results]
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>The figures of papers</title>'
            f'<meta name="viewport" content="width=device-width"><style>\n{style}</style></head>\n'
            f"<body>{chr(10).join(body)}</main></body></html>\n")
