#!/usr/bin/env python3
"""The page of `blinkc report` in a browser, against the files that it was made of.

usage: page.py PAGE DIR...           all checks; a line `ok NAME` or `not ok NAME: why` each
       page.py --hostile PAGE TEXT   TEXT is on the page, as text, and did nothing
       page.py --large PAGE          times of a large page
       page.py --shot PAGE FILE WIDTH [dark]   a picture

Exit status 77 where there is no browser. What is expected is computed here from index.json and the schedule files
alone.
"""
import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    print("python3-selenium is not there")
    sys.exit(77)

COLLECTIVES = ["broadcast", "reduce", "allreduce", "gather", "scatter", "allgather", "reducescatter", "alltoall"]


def check(name, wrong):
    print(f"not ok {name}: {str(wrong)[:300]}" if wrong else f"ok {name}")


def differ(got, want):
    return "" if got == want else f"{str(got)[:140]}, want {str(want)[:140]}"


def start(width=1280, height=900):
    options = Options()
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    except (WebDriverException, OSError, ValueError) as error:
        print(f"chromium does not start: {str(error).splitlines()[0]}")
        sys.exit(77)


def size(browser, width, height=900):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})


def media(browser, kind="", scheme="light"):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                            {"media": kind, "features": [{"name": "prefers-color-scheme", "value": scheme}]})


def address(page, place=""):
    return Path(page).resolve().as_uri() + (f"#{place}" if place else "")


class Job:
    """A row: an entry of an index, with its schedule file."""

    def __init__(self, series, directory, entry, schedule):
        self.series, self.file, self.schedule = series, entry["file"], schedule
        self.gpus, self.ranks, self.collective = entry["gpus"], entry["ranks"], entry["collective"]
        self.root = -1 if entry["root"] is None else self.gpus[entry["root"]]
        self.rate, self.bound, self.trees, self.depth = entry["rate"], entry["bound"], entry["trees"], entry["depth"]
        self.key = (directory, self.file)

    def gpu(self, role):
        return self.gpus[self.ranks.index(role)]


def load(directories):
    jobs, schedules = [], {}
    for s, directory in enumerate(directories):
        index = json.loads((Path(directory) / "index.json").read_text())
        entries = sorted(index["schedules"],
                         key=lambda e: (len(e["gpus"]), e["gpus"], COLLECTIVES.index(e["collective"]),
                                        -1 if e["root"] is None else e["root"]))
        for entry in entries:
            key = (directory, entry["file"])
            if key not in schedules:
                schedules[key] = json.loads((Path(directory) / entry["file"]).read_text())
            jobs.append(Job(s, directory, entry, schedules[key]))
    return index["topology"], jobs


def labels(jobs, directories):
    algorithms = []
    for s in range(len(directories)):
        kinds = {job.schedule["algorithm"] for job in jobs if job.series == s}
        algorithms.append(kinds.pop() if len(kinds) == 1 else "mixed")
    return [a if algorithms.count(a) == 1 else f"{a} of {Path(d).name}" for a, d in zip(algorithms, directories)]


def place_of(job, names):
    place = f"{job.collective}/{','.join(map(str, job.gpus))}" + (f"/{job.root}" if job.root >= 0 else "")
    return place + (("/" if job.root >= 0 else "//") + quote(names[job.series], safe="") if len(names) > 1 else "")


# ---- what is there when it opens ----

def check_open(browser, page):
    check("opens from a file, and its console is empty", browser.get_log("browser"))
    check("asks for nothing else", browser.execute_script("return performance.getEntriesByType('resource').map(e => "
                                                          "e.name)"))
    policy = browser.find_element(By.CSS_SELECTOR, "meta[http-equiv]").get_attribute("content")
    check("policy: nothing by default, and nothing unsafe",
          "" if policy.startswith("default-src 'none'; ") and "unsafe" not in policy else policy)
    browser.execute_script("const s = document.createElement('script'); try { s.text = 'window.strange = 1'; "
                           "document.body.append(s); } catch { }")
    check("policy: a script that is not the page's does not run", browser.execute_script("return window.strange"))
    browser.execute_script("const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);")
    time.sleep(.2)
    check("policy: no picture is fetched",
          "" if any("Content Security Policy" in line["message"] for line in browser.get_log("browser")) else "it was")
    browser.get(address(page))


# ---- charts ----

def check_charts(browser, jobs, names):
    found = browser.execute_script("""
        const charts = [];
        for (const h of document.querySelectorAll('h3')) {
            const all = h.nextElementSibling;
            if (!all || all.className !== 'charts') continue;
            for (const f of all.querySelectorAll('figure'))
                charts.push({ collective: h.textContent, n: parseInt(f.querySelector('b').textContent),
                    unit: f.querySelector('.unit').textContent,
                    axis: [...f.querySelectorAll('.tick')].map(
                        t => [Number(t.textContent), Number(t.getAttribute('y'))]),
                    classes: [...f.querySelectorAll('g.class')].map(g => ({ label: g.querySelector('text').textContent,
                        pairs: [...g.querySelectorAll('a')].map(a => ({ href: a.getAttribute('href'),
                            title: a.querySelector('title').textContent,
                            bars: [...a.querySelectorAll('rect:not(.hit)')].map(r => [
                                r.classList[0], Number(r.dataset.value),
                                Number(r.getAttribute('height')), Number(r.getAttribute('y'))]) })) })) });
        }
        return charts;""")
    want, wrong = defaultdict(list), defaultdict(list)
    cells = defaultdict(list)
    for job in jobs:
        cells[job.collective, tuple(job.gpus)].append(job)
    kinds = defaultdict(list)
    for (collective, gpus), mine in cells.items():
        kinds[collective, len(gpus), tuple(sorted((j.series, j.file) for j in mine))].append((gpus, mine))
    for (collective, n, _), sets in kinds.items():
        want[collective, n].append(min(sets, key=lambda item: item[0]))
    check("charts: one for each collective and number of GPUs",
          differ(sorted((c["collective"], c["n"]) for c in found), sorted(want)))
    places = {place_of(job, names): job for job in jobs}
    for chart in found:
        at = f"{chart['collective']}, {chart['n']} GPUs"
        classes = want[chart["collective"], chart["n"]]
        if len(chart["classes"]) != len(classes):
            wrong["classes"].append(f"{at}: {len(chart['classes'])}, want {len(classes)}")
        if chart["unit"] != "GB/s":
            wrong["unit"].append(at)
        (low, base), (high, top) = chart["axis"][0], chart["axis"][-1]
        scale = (base - top) / (high - low)
        seen = set()
        for one in chart["classes"]:
            for pair in one["pairs"]:
                job = places.get(pair["href"][1:])
                mine = cells.get((job.collective, tuple(job.gpus))) if job else None
                if not mine:
                    wrong["links"].append(pair["href"])
                    continue
                seen.add(tuple(job.gpus))
                rates = [j.rate for j in mine if j.series == job.series]
                bars = {kind: (value, height, y) for kind, value, height, y in pair["bars"]}
                lowest = bars.get("worst", bars.get("all"))
                if abs(bars["rate"][0] - max(rates)) > 1e-6 or abs(lowest[0]
                        - min(rates)) > 1e-6 or abs(bars["bound"][0] - job.bound) > 1e-6:
                    wrong["values"].append(f"{pair['href']}: {bars}")
                for value, height, y in bars.values():
                    if abs(height - value * scale) > .11 or abs(y + height - (base - 4)) > .11:
                        wrong["heights"].append(f"{pair['href']}: {value} GB/s has {height} px, want "
                                                f"{value * scale:.1f}")
                if "GB/s" not in pair["title"] or "bound" not in pair["title"]:
                    wrong["titles"].append(pair["title"])
        if seen != {gpus for gpus, _ in classes}:
            wrong["classes"].append(f"{at}: {seen ^ {gpus for gpus, _ in classes}}")
    for what in ("classes", "unit", "links", "values", "heights", "titles"):
        check(f"charts: {what}", wrong[what])


# ---- the table ----

ALL_ROWS = """
    const rows = [];
    const press = (text) => [...document.querySelectorAll('#pager button')].find(b => b.textContent === text);
    if (!press('first').disabled) press('first').click();
    for (;;) {
        for (const tr of document.querySelectorAll('#table tr.job'))
            rows.push([Number(tr.dataset.job), ...(arguments[0] ? [...tr.children].map(c => c.textContent) : [])]);
        if (press('next').disabled) return rows;
        press('next').click();
    }"""


def six(value):
    text = f"{value:.6g}"
    return text if "e" not in text else repr(float(text))


def columns_of(jobs, names):
    same_file = Counter((job.series, job.file) for job in jobs)
    columns = {
        "gpus": (lambda j: (len(j.gpus), j.gpus), lambda j: ",".join(map(str, j.gpus))),
        "collective": (lambda j: COLLECTIVES.index(j.collective), lambda j: j.collective),
        "root": (lambda j: j.root, lambda j: "" if j.root < 0 else str(j.root)),
        "series": (lambda j: j.series, lambda j: names[j.series]),
        "rate": (lambda j: j.rate, lambda j: six(j.rate)),
        "bound": (lambda j: j.bound, lambda j: six(j.bound)),
        "ratio": (lambda j: j.rate / j.bound,
                  lambda j: "1.000" if j.rate >= j.bound else f"{min(j.rate / j.bound, .999):.3f}"),
        "trees": (lambda j: j.trees, lambda j: str(j.trees)),
        "depth": (lambda j: j.depth, lambda j: str(j.depth)),
        "jobs": (lambda j: same_file[j.series, j.file], lambda j: f"{same_file[j.series, j.file]:,}"),
        "file": (lambda j: j.file, lambda j: j.file),
        "ranks": (lambda j: (len(j.ranks), j.ranks), lambda j: ",".join(map(str, j.ranks))),
    }
    if len(names) == 1:
        del columns["series"]
    return columns


def check_table(browser, jobs, names):
    columns = columns_of(jobs, names)
    rows = {row[0]: row[1:] for row in browser.execute_script(ALL_ROWS, True)}
    check("table: as many rows as the index has entries", differ(len(rows), len(jobs)))
    wrong = [(rows.get(i), want) for i, job in enumerate(jobs)
             if rows.get(i) != (want := [text(job) for _, text in columns.values()])]
    check("table: each cell", wrong[:1])
    for name, (key, _) in columns.items():
        for down in (False, True):
            # The table begins sorted by GPUs.
            sorted_by = "return document.querySelector('[aria-sort]').dataset.column"
            if name != "gpus" or down or browser.execute_script(sorted_by) != "gpus":
                browser.find_element(By.ID, f"sort-{name}").click()
            got = [row[0] for row in browser.execute_script(ALL_ROWS, False)]
            want = sorted(range(len(jobs)), key=lambda i: key(jobs[i]), reverse=down)   # equal ones stay as they were
            state = browser.execute_script("const h = document.querySelectorAll('[aria-sort]'); return [h.length, "
                                           "h[0].getAttribute('aria-sort'), h[0].dataset.column]")
            check(f"table: sorted by {name}, {'down' if down else 'up'}",
                  differ(got, want) or differ(state, [1, "descending" if down else "ascending", name]))
    browser.find_element(By.ID, "sort-gpus").click()


def choose(browser, text, **selects):
    browser.execute_script("""
        document.getElementById('filter').value = arguments[0];
        for (const id of ['by-collective', 'by-size', 'by-series']) {
            const s = document.getElementById(id), want = arguments[1][id];
            s.value = want === undefined ? '' : [...s.options].find(o => o.textContent === want).value;
        }
        document.getElementById('by-size').dispatchEvent(new Event('change'));""", text,
        {k.replace("_", "-"): v for k, v in selects.items()})
    return [row[0] for row in browser.execute_script(ALL_ROWS, False)]


def check_filter(browser, jobs, names, gpu):
    n = max(len(job.gpus) for job in jobs)
    cases = [
        ("0,1", {}, lambda j: {0, 1} <= set(j.gpus)), ("=0,1", {}, lambda j: set(j.gpus) == {0, 1}),
        (f"0-{n - 2}", {}, lambda j: set(range(n - 1)) <= set(j.gpus)),
        (f"{gpu[0]},{gpu[1]} BROAD", {}, lambda j: {0, 1} <= set(j.gpus) and j.collective == "broadcast"),
        ("allreduce", {}, lambda j: "allreduce" in j.collective or "allreduce" in j.file),
        ("no-such-word", {}, lambda j: False),
        ("", {"by_size": "3"}, lambda j: len(j.gpus) == 3),
        ("1", {"by_collective": "broadcast", "by_size": str(n)},
         lambda j: j.collective == "broadcast" and len(j.gpus) == n and 1 in j.gpus),
    ]
    if len(names) > 1:
        cases.append(("", {"by_series": names[1]}, lambda j: j.series == 1))
    for text, selects, test in cases:
        got = choose(browser, text, **selects)
        check(f"filter: {text or '-'} {' '.join(selects.values())}".rstrip(),
              differ(sorted(got), [i for i, job in enumerate(jobs) if test(job)]))
    choose(browser, "")
    box = browser.find_element(By.ID, "filter")
    box.send_keys("=" + ",".join(map(str, jobs[0].gpus)))
    time.sleep(.4)
    status = browser.find_element(By.ID, "status").text
    count = sum(job.gpus == jobs[0].gpus for job in jobs)
    check("filter: as it is typed", "" if f"of {count} job" in status else status)
    choose(browser, "")


# ---- one job ----

def want_edges(job):
    edges = set()
    for t, tree in enumerate(job.schedule["trees"]):
        up = {(job.gpu(e[0]), job.gpu(e[1])) for e in tree.get("up", [])}
        down = {(job.gpu(e[0]), job.gpu(e[1])) for e in tree.get("down", [])}
        if up and up == {(b, a) for a, b in down}:
            edges |= {(t, a, b, "both") for a, b in down}
        else:
            edges |= {(t, a, b, "up") for a, b in up} | {(t, a, b, "down") for a, b in down}
    return edges


def want_loads(job):
    """Sorted (capacity, load) of each link, GB/s."""
    links = job.schedule["topology"]["links"]
    loads = [Fraction(0)] * len(links)
    for tree in job.schedule["trees"]:
        for phase in ("up", "down"):
            for _, _, way in tree.get(phase, []):
                for link in way:
                    loads[link] += Fraction(tree["segment"][1])
    most = max(load / Fraction(str(link["capacity"])) for load, link in zip(loads, links))
    return sorted((link["capacity"], float(load / most)) for load, link in zip(loads, links))


SHOWN = """
    const d = document.querySelector('.detail');
    return { edges: [...d.querySelectorAll('.edge')].map(
            l => [Number(l.dataset.tree), Number(l.dataset.from), Number(l.dataset.to), l.dataset.direction]),
        loads: [...d.querySelectorAll('.links tbody tr')].map(
            r => [Number(r.cells[3].textContent), Number(r.cells[2].textContent)]),
        proof: d.querySelector('.proof').textContent, text: d.querySelector('pre').textContent,
        others: [...d.querySelectorAll('.others a')].map(a => [a.getAttribute('href'), a.nextSibling.textContent]),
        link: d.querySelector('.permalink').getAttribute('href'),
        open: document.querySelectorAll('.detail').length, focus: document.activeElement.id,
        row: Number(document.querySelector('tr.open').dataset.job),
        top: document.querySelector('tr.open').getBoundingClientRect().top, high: innerHeight };"""


def check_jobs(browser, page, jobs, names, gpu):
    wrong = defaultdict(list)
    step = max(1, len(jobs) // 24)
    for turn, i in enumerate([*range(0, len(jobs), step), len(jobs) - 1]):
        job = jobs[i]
        # Every eighth time the page is loaded anew; else only its address changes: that is much faster.
        if turn % 8 == 0:
            browser.get("about:blank")
        else:
            browser.execute_script("document.querySelector('tr.open .toggle').click()")
        browser.get(address(page, place_of(job, names)))
        shown = browser.execute_script(SHOWN)
        if (shown["row"], shown["open"], shown["focus"]) != (i, 1, f"job-{i}") \
                or not 0 <= shown["top"] <= shown["high"]:
            wrong["the address opens the row"].append(f"{place_of(job, names)}: {shown['row']}, want {i}; top "
                                                      f"{shown['top']}")
        if {tuple(e) for e in shown["edges"]} != want_edges(job) or len(shown["edges"]) != len(want_edges(job)):
            wrong["edges of the trees"].append(f"{place_of(job, names)}: {shown['edges']}")
        got, want = sorted(map(tuple, shown["loads"])), want_loads(job)
        if len(got) != len(want) or any(abs(a - c) > 1e-4 * c or abs(b - d) > 1e-4 * c for (a, b),
                                        (c, d) in zip(got, want)):
            wrong["loads of links"].append(f"{place_of(job, names)}: {got}, want {want}")
        said = Counter(re.findall(r"^ +(?:up|down) +(\S+) \u2192 (\S+)", shown["text"], re.M))
        meant = Counter((gpu[job.gpu(e[0])], gpu[job.gpu(e[1])]) for tree in job.schedule["trees"]
                        for phase in ("up", "down") for e in tree.get(phase, []))
        if said != meant:
            wrong["trees as text"].append(place_of(job, names))
        if f"{six(job.schedule['rate']['bound'])} GB/s" not in shown["proof"]:
            wrong["what proves the bound"].append(shown["proof"])
        alike = [[f"#{place_of(o, names)}", f" {six(o.rate)} GB/s"] for o in jobs
                 if (o.collective, o.gpus, o.root) == (job.collective, job.gpus, job.root) and o is not job]
        if [[href, text.rstrip(", ")] for href, text in shown["others"]] != alike:
            wrong["the same job by others"].append(f"{shown['others']}, want {alike}")
        if shown["link"] != f"#{place_of(job, names)}":
            wrong["link to the job"].append(shown["link"])
    for what in ("the address opens the row", "edges of the trees", "loads of links", "trees as text",
                 "what proves the bound", "the same job by others", "link to the job"):
        check(f"jobs: {what}", wrong[what])


def check_keys(browser, page, jobs, names):
    browser.get("about:blank")
    browser.get(address(page))
    row = browser.find_element(By.CSS_SELECTOR, "#table tr.job")
    row.find_elements(By.TAG_NAME, "td")[3].click()
    check("a click on a row opens it", differ(len(browser.find_elements(By.CLASS_NAME, "detail")), 1))
    check("and puts it into the address", differ(browser.current_url, address(page, place_of(jobs[0], names))))
    button = browser.find_element(By.CSS_SELECTOR, "#table .toggle")
    check("the button says that it is open", differ(button.get_attribute("aria-expanded"), "true"))
    button.send_keys(Keys.ENTER)
    check("Enter closes it", differ(len(browser.find_elements(By.CLASS_NAME, "detail")), 0))
    browser.find_element(By.CSS_SELECTOR, "#table .toggle").send_keys(Keys.SPACE)
    check("Space opens it", differ(len(browser.find_elements(By.CLASS_NAME, "detail")), 1))
    browser.find_element(By.ID, "sort-rate").send_keys(Keys.ENTER)
    check("Enter sorts, and keeps the focus", differ(browser.execute_script(
        "return [document.querySelector('[aria-sort]').dataset.column, document.activeElement.id]"),
        ["rate", "sort-rate"]))
    browser.execute_script("document.querySelector('g.class a').dispatchEvent(new MouseEvent('click', { bubbles: true, "
                           "cancelable: true }))")
    time.sleep(.2)
    check("a bar leads to its job", "" if "/" in browser.current_url.split("#")[1]
          and browser.find_elements(By.CLASS_NAME, "detail") else browser.current_url)
    browser.get("about:blank")
    browser.get(address(page, "allreduce/0,0,0"))
    check("an address of no job says so",
          "" if "no such job" in browser.find_element(By.ID, "status").text
          else browser.find_element(By.ID, "status").text)
    check("no message on the console", browser.get_log("browser"))


# ---- ways to look at it ----

def luminance(colour):
    parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
    return sum(w * (c / 12.92 if c <= .03928 else ((c + .055) / 1.055) ** 2.4) for w,
               c in zip((.2126, .7152, .0722), parts))


def contrast(a, b):
    bright, dim = sorted((luminance(a), luminance(b)), reverse=True)
    return (bright + .05) / (dim + .05)


def check_views(browser, page, jobs, names):
    place = place_of(max(jobs, key=lambda job: len(job.schedule["trees"])), names)
    for width in (360, 600, 905, 1024, 1280):
        size(browser, width)
        browser.get("about:blank")
        browser.get(address(page, place))
        browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        check(f"{width} px: nothing is wider than the page", differ(*browser.execute_script("const h = "
                                                                                            "document.documentElement; "
                                                                                            "return [h.scrollWidth, "
                                                                                            "h.clientWidth]")))
    size(browser, 1280)
    for scheme in ("light", "dark"):
        media(browser, "", scheme)
        colours = browser.execute_script("""
            const of = (e, what) => getComputedStyle(document.querySelector(e))[what];
            return [of('html', 'backgroundColor'), of('html', 'color'), of('.hint', 'color'), of('.toggle', 'color'),
                of('svg text', 'fill'), of('.all, .worst', 'fill'), of('.u5', 'stroke')];""")
        check(f"{scheme}: the paper is {scheme}",
              "" if (luminance(colours[0]) > .5) == (scheme == "light") else colours[0])
        check(f"{scheme}: contrast", [f"{c} on {colours[0]}: {contrast(c, colours[0]):.1f}" for i,
                                      c in enumerate(colours[1:]) if contrast(c, colours[0]) < (4.5 if i < 4 else 3)])
    size(browser, 794)
    media(browser, "print", "dark")
    shown = browser.execute_script("""
        const s = (e) => getComputedStyle(e).display, all = (e) => [...document.querySelectorAll(e)];
        return [...['#classes', '#controls', '#pager'].map(e => s(all(e)[0])),
            all('tr.job, tr.detail').filter(e => s(e) !== 'none').length,
            getComputedStyle(document.documentElement).backgroundColor];""")
    check("print: the table of classes, no controls, the job that is open, on white",
          differ(shown, ["block", "none", "none", 2, "rgb(255, 255, 255)"]))
    check("print: nothing is wider than the page", differ(*browser.execute_script("const h = document.documentElement; "
                                                                                  "return [h.scrollWidth, "
                                                                                  "h.clientWidth]")))
    media(browser)
    size(browser, 1280)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get("about:blank")
    browser.get(address(page))
    files = len({job.key for job in jobs})
    check("without scripts: the table of classes",
          "" if browser.find_element(By.ID, "classes").is_displayed() else "hidden")
    check("without scripts: a row for each file",
          differ(len(browser.find_elements(By.CSS_SELECTOR, "#classes tbody tr")), min(files, 1001)))
    check("without scripts: charts", "" if browser.find_element(By.CSS_SELECTOR, "figure svg").is_displayed()
          else "hidden")
    check("without scripts: no table that would be empty",
          "shown" if browser.find_element(By.ID, "jobs").is_displayed() else "")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def check_page(page, directories):
    topology, jobs = load(directories)
    names = labels(jobs, directories)
    browser = start()
    try:
        browser.get(address(page))
        check_open(browser, page)
        check_charts(browser, jobs, names)
        check_table(browser, jobs, names)
        check_filter(browser, jobs, names, topology["gpus"])
        check_jobs(browser, page, jobs, names, topology["gpus"])
        check_keys(browser, page, jobs, names)
        check_views(browser, page, jobs, names)
    finally:
        browser.quit()


def check_hostile(page, text):
    browser = start()
    text = text.replace("\u2028", "\ufffd")    # what cannot be printed
    try:
        browser.get(address(page))
        check("hostile names: the console is empty", browser.get_log("browser"))
        check("hostile names: the page's own script alone",
              differ(browser.execute_script("return document.scripts.length"), 2))
        check("hostile names: no elements", browser.execute_script("return [...document.querySelectorAll('img, b bdi, "
                                                                   "bdi *, iframe, [onerror], [onload]')].map(e => "
                                                                   "e.outerHTML)"))
        check("hostile names: nothing ran", browser.execute_script("return window.bad"))
        shown = browser.execute_script("return [document.title, ...[...document.querySelectorAll('bdi')].map(e => "
                                       "e.textContent)]")
        check("hostile names: in the heading and in the title",
              "" if shown[0].startswith(text) and text in shown[1:] else shown[:3])
        browser.find_element(By.CSS_SELECTOR, "#table .toggle").click()
        check("hostile names: a row opens", differ(len(browser.find_elements(By.CLASS_NAME, "detail")), 1))
        cells = browser.execute_script("return [...document.querySelectorAll('td[data-column=file]')].map(e => "
                                       "e.textContent)")
        check("hostile names: the file as text",
              "" if any(text.replace("/", "-") in cell for cell in cells) else cells[:3])
        check("hostile names: the console stays empty", browser.get_log("browser"))
    finally:
        browser.quit()


def check_large(page):
    browser = start()
    try:
        browser.get(address(page))
        opened = browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
        check(f"large: {Path(page).stat().st_size / 1e6:.1f} MB, its first row after {opened:.0f} ms",
              "" if 0 < opened < 10000 else opened)
        slowest = max(browser.execute_script("""
            const time = (id) => {
                const t = performance.now();
                document.getElementById('sort-' + id).click();
                document.body.getBoundingClientRect();
                return performance.now() - t;
            };
            return ['rate', 'root', 'file', 'ranks', 'gpus'].map(time)"""))
        check(f"large: sorts in {slowest:.0f} ms at most", "" if slowest < 5000 else slowest)
        check("large: the console is empty", browser.get_log("browser"))
        print(browser.find_element(By.ID, "status").text)
    finally:
        browser.quit()


def shoot(page, to, width, scheme="light"):
    browser = start(int(width), 1400)
    try:
        size(browser, int(width), 1400)
        media(browser, "", scheme)
        name, _, place = page.partition("#")
        browser.get(address(name, place))
        browser.save_screenshot(to)
    finally:
        browser.quit()


if __name__ == "__main__":
    args = sys.argv[1:]
    if len(args) == 3 and args[0] == "--hostile":
        check_hostile(*args[1:])
    elif len(args) == 2 and args[0] == "--large":
        check_large(args[1])
    elif len(args) >= 4 and args[0] == "--shot":
        shoot(*args[1:])
    elif len(args) >= 2 and not args[0].startswith("-"):
        check_page(args[0], args[1:])
    else:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
