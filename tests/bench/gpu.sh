#!/bin/bash
# Collectives on virtual GPUs whose links are slowed down to what the topology file says, at a scale: what a schedule
# reaches of its proven bound when kernels, flags and chunks are in the way, beside rings of NCCL's kind. The rates are
# those of the machine: bytes by time, times the scale. GPUs are threads of this machine: of those with fast links and
# many GPUs it can't keep up, so that a line says how busy its CPUs were.
#
#	BUILD=build tests/bench/gpu.sh [BYTES [MACHINE...]]
set -eu
build=${BUILD:-build}
bytes=${1:-$((64 << 20))}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- dgx1v:8:40000 dgx1p:8:40000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gpus=$build/tests/virtual_gpu
export LD_LIBRARY_PATH=$gpus VIRTUAL_GPU_KERNELS=$gpus/libblink-twins.so VIRTUAL_GPU_BLOCKS=${VIRTUAL_GPU_BLOCKS:-80} BLINK_BACKEND=cuda
printf '# %d bytes; rates in GB/s of algorithm bandwidth\n' "$bytes"
printf '# %-8s %-10s %-6s %8s %8s %8s %6s\n' machine collective by bound measured ratio CPUs
for machine in "$@"; do
	IFS=: read -r name ranks scale <<<"$machine"
	export VIRTUAL_GPU_TOPOLOGY=topologies/$name.xml VIRTUAL_GPU_SCALE=$scale
	for coll in broadcast allgather allreduce; do
		# Some have no schedule of rings.
		for algorithm in trees ring; do
			env -u LD_LIBRARY_PATH "$build/blinkc" -q "topologies/$name.xml" -c $coll -a $algorithm -o "$work/s.json" --summary json \
				>"$work/summary" 2>/dev/null || continue
			bound=$(grep -o '"bound_gb_per_s":[0-9.]*' "$work/summary" | cut -d: -f2)
			export TIMEFORMAT='%R %U %S'
			{ time BLINK_SCHEDULES=$work/s.json "$build/tests/bench/gpu" -n "$ranks" -c $coll -b "$bytes" >"$work/seconds"; } 2>"$work/times"
			read -r real user sys <"$work/times"
			awk -v n="$name" -v c=$coll -v a=$algorithm -v bound="$bound" -v bytes="$bytes" -v scale="$scale" -v s="$(cat "$work/seconds")" \
				-v busy="$real $user $sys" 'BEGIN { split(busy, t, " "); rate = bytes / s * scale / 1e9
				printf "  %-8s %-10s %-6s %8.2f %8.2f %8.3f %6.1f\n", n, c, a, bound, rate, rate / bound, (t[2] + t[3]) / t[1] }'
		done
	done
done
