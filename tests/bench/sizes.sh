# !/bin/sh The table of docs/results.md, "DGX-1: time over sizes": of each class of 3 to 8 GPUs what rings take, by what
# the choice takes, and that no choice is slower than any candidate. Exit status 1, if that fails, or the document has
# other rows.
cd "$(dirname "$0")/../.." || exit 1
B=${BUILD:-build}
work=$(mktemp -d "${TMPDIR:-/tmp}/sizes.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
status=0
for name in DGX-1V DGX-1P; do
	machine=topologies/$(echo $name | tr -d - | tr 'DGXVP' 'dgxvp').xml
	"$B/blinkc" batch -q "$machine" -l nvlink --sizes 3-8 --distinct --collectives broadcast,allreduce --roots \
		best -o "$work/$name" \
		&& "$B/tests/bench/sizes" $name "$machine" "$work/$name/index.json" >>"$work/rows" || status=1
done
echo "| machine | collective | classes | size | rings of 2.4 | rings of 2.8 | NCCL 2.4.8 | NCCL 2.30.7 |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
cat "$work/rows"
grep '^|' "$work/rows" | grep -vxFf docs/results.md >"$work/other" && {
	echo "not in docs/results.md:"
	cat "$work/other"
	status=1
}
exit $status
