# The figures of papers: docs/papers.md has what the planner and the simulator give now; the page; what is wrong in data.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

run() { python3 papers/run.py --blinkc "$blinkc" --folder "$work/papers" --jobs 1 "$@"; }

# ---- docs/papers.md ----

# One figure with each commit, in the full test all that take little.
chosen=(blink/chains blink/trees logs/dgx1v logs/h100)
[ "$full" ] && chosen+=(blink/16 blink/21 sccl/frontier sccl/allgather-by-size linear/3 linear/4 ueno/place) || chosen=("${chosen[$(turn 4)]}")
run --check docs/papers.md "${chosen[@]}" >"$work/judged" 2>"$work/err"
[ ! -s "$work/err" ] || not_ok "run.py: $(tail -1 "$work/err")"
while IFS= read -r line; do
	case $line in "ok "*) ok "${line#ok }" ;; "not ok "*) not_ok "${line#not ok }" ;; *) echo "$line" ;; esac
done <"$work/judged"
run --list >"$work/list" || not_ok "run.py --list: exit $?"
while IFS=$'\t' read -r figure title; do
	if grep -qxF "### $title" docs/papers.md; then ok "docs/papers.md has $figure"; else not_ok "docs/papers.md has no section $title: make papers"; fi
done <"$work/list"

# ---- what is wrong in data, and how points are judged ----

# read_points refuses what is no point, and says where
refuses() {	# NAME MESSAGE LINE...
	local name=$1 message=$2
	shift 2
	printf '%s\n' "$@" >"$work/points.csv"
	python3 -c 'import sys; sys.path.insert(0, "papers"); import figure; figure.HERE = ""; figure.read_points(sys.argv[1])' "$work/points.csv" 2>"$work/err" &&
		not_ok "$name: accepted"
	if grep -qF -- "$message" "$work/err"; then ok "$name"; else not_ok "$name: want \"$message\": $(tail -1 "$work/err")"; fi
}
columns=figure,series,x,x_unit,value,unit,source
refuses "other columns" "want the columns $columns" figure,series,x,value 1,a,1,2
refuses "a value of 0" "row 1: value '0': want a number above 0" $columns 1,a,1,GPUs,0,us,text
refuses "no source" "row 2: ['1', 'a', '2', 'GPUs', '3', 'us', '']: want 7 columns, none empty but x_unit" $columns 1,a,1,GPUs,3,us,text 1,a,2,GPUs,3,us,
refuses "a point twice" "want each point once" $columns 1,a,1,GPUs,3,us,text 1,a,1.0,GPUs,4,us,text

expect "points are judged" python3 -c '
import sys
sys.path.insert(0, "papers")
from figure import Figure, Point, compared, counted, ordered
def row(series, value, ours, x=1.0, unit="us", **more):
    return compared(Figure("1", "t", None, causes={(series, x): "at", series: "of", None: "all"}, **more), Point("1", series, x, "", value, unit, "s"), ours)
assert [row("a", 100, v).met for v in (115, 116, 85, 84, None)] == [True, False, True, False, False]
assert row("a", 100, 80, less=True).met and not row("a", 100, 120, less=True).met
assert row("a", 6, 6, unit="count").met and not row("a", 6, 5.9, unit="count").met
assert (row("a", 100, 50).cause, row("a", 100, 50, x=1.0).deviation, row("a", 100, 99).cause) == ("at", -.5, "")
rows = [row("a", 100, 100), row("b", 110, 90), row("c", 101, 99), row("d", 50, 10), row("r", 2, 1.5, unit="x"), row("s", 3, .9, unit="x")]
assert [(p.first.point.series, p.second and p.second.point.series, p.right) for p in ordered(rows)] == [
    ("r", None, True), ("s", None, False), ("a", "b", False), ("a", "d", True), ("b", "c", False), ("b", "d", True), ("c", "d", True)]
assert counted(rows) == (6, 2), counted(rows)
'
