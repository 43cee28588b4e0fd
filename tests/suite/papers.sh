# The figures of papers: docs/papers.md has what the planner and the simulator give now; the page; what is wrong in data.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

run() { python3 papers/run.py --blinkc "$blinkc" --folder "$work/papers" --jobs 1 "$@"; }

# ---- docs/papers.md ----

# One figure with each commit, in the full test all that take little.
cheap=(blink/chains blink/trees blink/21 blink/16 sccl/frontier "sccl/allgather by size" "sccl/allreduce by size" linear/3 linear/4 logs/dgx1v logs/h100)
[ "$full" ] && chosen=("${cheap[@]}") || chosen=("${cheap[$(turn ${#cheap[@]})]}")
run --check docs/papers.md "${chosen[@]}" >"$work/judged" 2>"$work/err"
[ ! -s "$work/err" ] || not_ok "run.py: $(tail -1 "$work/err")"
while IFS= read -r line; do
	case $line in "ok "*) ok "${line#ok }" ;; "not ok "*) not_ok "${line#not ok }" ;; *) echo "$line" ;; esac
done <"$work/judged"
run --list >"$work/list" || not_ok "run.py --list: exit $?"
while IFS=$'\t' read -r figure title; do
	if grep -qxF "### $title" docs/papers.md; then ok "docs/papers.md has $figure"; else not_ok "docs/papers.md has no section $title: make papers"; fi
done <"$work/list"
