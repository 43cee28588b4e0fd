# The figures of papers: docs/papers.md has what the planner and the simulator give now; the page; what is wrong in
# data.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

run() { python3 papers/run.py --blinkc "$blinkc" --folder "$work/papers" --jobs 1 "$@"; }

# ---- docs/papers.md ----

# One figure beside the logs that NCCL is simulated for, in the full test all that take little.
chosen=(blink/chains blink/trees logs/dgx1v logs/h100)
[ "$full" ] && chosen+=(logs/a100 blink/16 blink/19 blink/21 sccl/frontier sccl/allgather-by-size linear/3 linear/4 \
	ueno/place) || chosen=("${chosen[0]}")
[ ! "$full" ] || chosen+=(logs/dgx2)
chosen+=(logs/servers)
run --check docs/papers.md "${chosen[@]}" >"$work/judged" 2>"$work/err"
[ ! -s "$work/err" ] || not_ok "run.py: $(tail -1 "$work/err")"
while IFS= read -r line; do
	case $line in "ok "*) ok "${line#ok }" ;; "not ok "*) not_ok "${line#not ok }" ;; *) echo "$line" ;; esac
done <"$work/judged"
run --list >"$work/list" || not_ok "run.py --list: exit $?"
while IFS=$'\t' read -r figure title; do
	if grep -qxF "### $title" docs/papers.md; then
		ok "docs/papers.md has $figure"
	else
		not_ok "docs/papers.md has no section $title: make papers"
	fi
done <"$work/list"

# ---- what is wrong in data, and how points are judged ----

# read_points refuses what is no point, and says where
refuses() {	# NAME MESSAGE LINE...
	local name=$1 message=$2
	shift 2
	printf '%s\n' "$@" >"$work/points.csv"
	python3 -c 'import sys
sys.path.insert(0, "papers")
import figure
figure.HERE = ""
figure.read_points(sys.argv[1])' "$work/points.csv" 2>"$work/err" &&
		not_ok "$name: accepted"
	if grep -qF -- "$message" "$work/err"; then
		ok "$name"
	else
		not_ok "$name: want \"$message\": $(tail -1 "$work/err")"
	fi
}
columns=figure,series,x,x_unit,value,unit,source
refuses "other columns" "want the columns $columns" figure,series,x,value 1,a,1,2
refuses "a value of 0" "row 1: value '0': want a number above 0" $columns 1,a,1,GPUs,0,us,text
refuses "no source" "row 2: ['1', 'a', '2', 'GPUs', '3', 'us', '']: want 7 columns, none empty but x_unit" $columns \
	1,a,1,GPUs,3,us,text 1,a,2,GPUs,3,us,
refuses "a point twice" "want each point once" $columns 1,a,1,GPUs,3,us,text 1,a,1.0,GPUs,4,us,text

expect "points are judged" python3 -c '
import sys
sys.path.insert(0, "papers")
from figure import Figure, Point, compared, counted, ordered
def row(series, value, ours, x=1.0, unit="us", **more):
    figure = Figure("1", "t", None, causes={(series, x): "at", series: "of", None: "all"}, **more)
    return compared(figure, Point("1", series, x, "", value, unit, "s"), ours)
assert [row("a", 100, v).met for v in (115, 116, 85, 84, None)] == [True, False, True, False, False]
assert row("a", 100, 80, less=True).met and not row("a", 100, 120, less=True).met
assert row("a", 6, 6, unit="count").met and not row("a", 6, 5.9, unit="count").met
assert (row("a", 100, 50).cause, row("a", 100, 50, x=1.0).deviation, row("a", 100, 99).cause) == ("at", -.5, "")
rows = [row("a", 100, 100), row("b", 110, 90), row("c", 101, 99), row("d", 50, 10),
        row("r", 2, 1.5, unit="x"), row("s", 3, .9, unit="x")]
assert [(p.first.point.series, p.second and p.second.point.series, p.right) for p in ordered(rows)] == [
    ("r", None, True), ("s", None, False), ("a", "b", False), ("a", "d", True), ("b", "c", False),
    ("b", "d", True), ("c", "d", True)]
assert counted(rows) == (6, 2), counted(rows)
'

# ---- NCCL by its source ----

# In the logs the bus bandwidth leaps between two sizes, where NCCL changes its protocol; and both in the same place.
expect "NCCL's choices change where the logs leap" python3 -c '
import sys
sys.path.insert(0, "papers")
import logs, nccl
def changes(name, collective="allreduce"):
    of = {size: nccl.choice(logs.JOBS[name][0], collective, size) for size in (1 << n for n in range(16, 33))}
    return [(size, *of[size]) for size in of if size == 1 << 16 or of[size] != of[size // 2]]
K, M = 1 << 10, 1 << 20
ring, tree = nccl.RING, nccl.TREE
assert changes("dgx2") == [(64 * K, ring, "LL"), (2 * M, ring, "LL128"), (32 * M, ring, "Simple")], changes("dgx2")
assert changes("dgx2", "broadcast") == [(64 * K, ring, "LL"), (128 * K, ring, "LL128"), (16 * M, ring, "Simple")], \
    changes("dgx2", "broadcast")
assert changes("dgx2", "reduce")[1:] == [(128 * K, ring, "LL128"), (2 * M, ring, "Simple")], changes("dgx2", "reduce")
assert changes("a100")[:2] == [(64 * K, ring, "LL"), (2 * M, ring, "LL128")], changes("a100")
assert changes("2 x 8 A100")[-1] == (1024 * M, tree, "Simple"), changes("2 x 8 A100")
rings = [size for size, algorithm, _ in changes("4 x DGX A100") if algorithm == ring]
assert rings[0] == 8 * M, changes("4 x DGX A100")
assert [nccl.channels(logs.JOBS["a100"][0], ring, "LL", n * K) for n in (16, 64, 256, 4096)] == [1, 2, 8, 24]
'

# Each server but the root has a parent, both trees reach all, and no server of an even number sends on in both.
expect "NCCL's two trees over servers" python3 -c '
import sys
sys.path.insert(0, "papers")
import nccl
for n in range(2, 40):
    first, second = nccl.parents(n)
    for tree in (first, second):
        depths = [nccl.depth(tree, server) for server in range(n)]
        assert tree.count(None) == 1 and max(depths) <= n.bit_length() + 1, (n, tree)
    assert n % 2 or not set(first) & set(second) - {None}, (n, first, second)
assert nccl.parents(4) == [[None, 2, 0, 2], [1, 3, 1, None]]
'

# Chunks of 64 KiB for 16 MiB over four cards: 32 to each of 8 channels, each 2 x 11.66 us, 22.5 GB/s.
expect "which NCCL's trees have half of a link each way" python3 -c '
import sys
sys.path.insert(0, "papers")
import logs, nccl
efa, ib = logs.JOBS["2 x p4de"][0], logs.JOBS["2 x 8 A100"][0]
M = 1 << 20
assert nccl.channel_chunk(efa, nccl.TREE, nccl.SIMPLE, 16 * M) == 65536
assert abs(nccl.block_rate(efa, 16 * M) - 2 * 22.5) < .1, nccl.block_rate(efa, 16 * M)
assert nccl.divided(efa, nccl.SIMPLE, 1 << 30) and not nccl.divided(ib, nccl.SIMPLE, 1 << 30)
assert nccl.divided(ib, nccl.LL128, M) and not nccl.divided(ib, nccl.LL, M)
assert [nccl.correction(ib, nccl.LL128, n * M) for n in (1, 16, 256)] == [.6, .9, 1]
'

run_trees() {	# MACHINE SERVERS CARDS [divided]
	python3 -c 'import sys
sys.path.insert(0, "papers")
import lab, nccl
blinkc, folder, name, servers, cards, *divide = sys.argv[1:]
of = lab.Lab(blinkc, folder, 1)
topology = of.topology("--servers", servers, name)
print(nccl.trees(of, topology, int(servers), int(cards), bool(divide)))' "$blinkc" "$work/papers" "$@"
}
for machine in "p4d 3 4" "p4d 2 4 divided" ${full:+"dgx-a100 2 8" "dgx-a100 4 8"}; do
	# shellcheck disable=SC2086
	expect "NCCL's trees of $machine are a valid schedule" "$blinkc" check -q "$(run_trees $machine)"
done
