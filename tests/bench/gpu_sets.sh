#!/bin/bash
# Sets of 3 to 8 GPUs of a machine, one of each isomorphism class that NVLinks connect: schedules beside
# rings of NCCL's kind on the same virtual GPUs, as Blink (MLSys 2020) measured it on DGX-1. Rings are over NVLink;
# where no NVLinks make a ring through all GPUs of a set, its hops take NVLink where there is one, else PCIe. The root
# of a broadcast is the first GPU of a set. The scale of a call is such that it takes 0.6 s for each GPU if it has the
# rate of its schedule. Rates as gpu.sh has them. 106 classes take some 20 minutes.
#
#	BUILD=build CALLS=1 tests/bench/gpu_sets.sh [BYTES [MACHINE:COLLECTIVE[:GPUS]...]]
set -eu
. tests/bench/gpu_run.sh
bytes=${1:-$((16 << 20))}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- dgx1v:broadcast dgx1p:broadcast dgx1v:allreduce

# The sets, a line each.
classes() {
	"$build/blinkc" batch -q --distinct -n 3-8 "topologies/$1.xml" -o "$work/$1" >"$work/log"
	grep -o '^{"gpus":\[[0-9,]*\]' "$work/$1/index.json" | tr -dc '0-9,\n'
}

# Of the schedule that was planned last.
measure_set() {
	local ranks=$(awk -F, '{ print NF }' <<<"$gpus") scale
	scale=$(awk -v n="$ranks" -v r="$rate" -v b="$bytes" 'BEGIN { printf "%.0f", 0.6 * n * r * 1e9 / b }')
	CUDA_VISIBLE_DEVICES=$gpus measure "$1" "$name" "$ranks" "$scale" "$coll" "$bytes"
}

printf '# virtual GPUs, links of topologies/MACHINE.xml slowed down, on %s CPUs; messages of %s bytes\n' "$(nproc)" \
	"$bytes"
printf '# GB/s of algorithm bandwidth, with links as they are; plan: rate of the schedule without kernels and chunks\n'
for figure in "$@"; do
	IFS=: read -r name coll only <<<"$figure"
	printf '# %s, %s\n# %-15s | %8s %8s %6s | %-6s %8s %8s | %s\n' "$name" "$coll" GPUs plan ours \
		ratio rings plan reached \
		'ours / rings'
	while read -r gpus; do
		plan "$work/trees.json" "topologies/$name.xml" -g "$gpus" -c "$coll" -l nvlink || continue
		measure_set "$work/trees.json"
		ours=$reached
		printf '  %-15s | %8.2f %8.2f %6.3f |' "$gpus" "$rate" "$ours" "$(by "$ours" "$rate")"
		kind=nvlink
		plan "$work/rings.json" "topologies/$name.xml" -g "$gpus" -c "$coll" -a ring -l nvlink || {
			kind=pcie
			plan "$work/rings.json" "topologies/$name.xml" -g "$gpus" -c "$coll" -a ring --routes pair
		}
		measure_set "$work/rings.json"
		printf ' %-6s %8.2f %8.2f | %6.3f\n' $kind "$rate" "$reached" "$(by "$ours" "$reached")"
	done < <(if [ "$only" ]; then echo "$only"; else classes "$name"; fi) | tee "$work/rows"
	awk '{ s += log($NF); q = $NF > q ? $NF : q }
		END { printf "# %d classes: geometric mean %.3f, most %.3f\n", NR, exp(s / NR), q }' "$work/rows"
done
