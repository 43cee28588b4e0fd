#!/bin/bash
# Collectives on virtual GPUs whose links are slowed down to what the topology file says, at a scale: what a
# schedule reaches of its proven bound when kernels, flags and chunks are in the way, beside rings of NCCL's kind on the
# same GPUs. Rates are those of the machine: bytes by time, times the scale. GPUs are threads of this machine, and a
# scale must be so large that its CPUs are idle for a part of the time: a line says how many were busy. All machines
# take some 15 minutes.
#
#	BUILD=build CALLS=1 tests/bench/gpu.sh [BYTES [MACHINE:RANKS:SCALE[:COLLECTIVE,...]...]]
set -eu
. tests/bench/gpu_run.sh
bytes=${1:-$((64 << 20))}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- dgx1v:8:40000 dgx1p:8:20000 dgx2:16:100000
printf '# virtual GPUs, links of topologies/MACHINE.xml slowed down by `scale`, on %s CPUs; messages of %s bytes\n' \
	"$(nproc)" "$bytes"
printf '# GB/s of algorithm bandwidth, with links as they are; bound: no algorithm exceeds it; ratio: to the bound\n'
printf '# %-8s %4s %7s %-10s %8s | %8s %6s %4s | %8s %6s %4s | %s\n' machine GPUs scale collective bound \
	ours ratio CPUs rings \
	ratio CPUs 'ours / rings'
for machine in "$@"; do
	IFS=: read -r name ranks scale collectives <<<"$machine"
	collectives=${collectives:-broadcast,allgather,allreduce}
	for coll in ${collectives//,/ }; do
		plan "$work/trees.json" "topologies/$name.xml" -c $coll
		measure "$work/trees.json" "$name" "$ranks" "$scale" $coll "$bytes"
		of=$bound ours=$reached
		printf '  %-8s %4d %7d %-10s %8.2f | %8.2f %6.3f %4.1f |' "$name" "$ranks" "$scale" \
			$coll "$bound" "$ours" \
			"$(by "$ours" "$of")" "$busy"
		if plan "$work/rings.json" "topologies/$name.xml" -c $coll -a ring; then
			measure "$work/rings.json" "$name" "$ranks" "$scale" $coll "$bytes"
			printf ' %8.2f %6.3f %4.1f | %6.3f\n' "$reached" "$(by "$reached" "$of")" "$busy" \
				"$(by "$ours" "$reached")"
		else
			printf ' %8s %6s %4s | %6s\n' none - - -
		fi
	done
done
