#!/bin/bash
# Collectives on virtual GPUs over sizes: what the protocol of kernels keeps of the proven bound of a schedule where
# fences, flags and launches take their time (tests/virtual_gpu/README.md). Links are so slow that a call takes 25
# ms for each MiB on each GPU if it has the rate of the bound, and at least 2 s, so that the CPUs that play the GPUs
# do not matter. Where they do, as on a machine that has other work, "CPUs" says that the row counts for nothing:
# these calls kept them busy for more than 70 %, or threads woke up late by more than 0.1 us of the machine that is
# played, a tenth of what a flag takes: SLOWER=2 has all calls take twice as long. BEFORE names another build, of
# which the same calls come first. sendrecv, by messages of a group, moves what an alltoall does, whose bound it
# has; on a DGX-1 some pairs have no NVLink. Where a collective has a root, that is rank 0.
#
#	BUILD=build BEFORE=DIR SLOWER=1 tests/bench/gpu_rates.sh [MACHINE:RANKS:SMS[:COLLECTIVE,...[:MIB,...]]...]
set -eu
. tests/bench/gpu_run.sh
usual=broadcast,allgather,allreduce,alltoall
[ $# -gt 0 ] || set -- dgx1v:8:80:$usual,alltoallv dgx1p:8:56 dgx2:16:80:$usual,sendrecv dgx-h100:8:132:$usual,sendrecv
export VIRTUAL_GPU_THREADS=2

# One call of the schedule that was planned last, by BUILD.
one() {
	local build=$1 scale seconds
	seconds=$(awk -v n="$ranks" -v m="$mib" -v f="${SLOWER:-1}" \
		'BEGIN { s = n * m * 0.025; print (s < 2 ? 2 : s) * f }')
	scale=$(awk -v s="$seconds" -v r="$bound" -v b=$((mib << 20)) 'BEGIN { printf "%.0f", s * r * 1e9 / b }')
	VIRTUAL_GPU_BLOCKS=$sms measure "$work/trees.json" "$name" "$ranks" "$scale" "$coll" $((mib << 20))
	printf ' %8.2f %6.3f %4.1f' "$reached" "$(by "$reached" "$bound")" "$busy"
	awk -v b="$busy" -v n="$(nproc)" -v l="$late" -v s="$scale" \
		'BEGIN { exit b <= 0.7 * n && l * 1e6 <= 100 * s }' && printf ' CPUs' || :
}

printf '# virtual GPUs on %s CPUs, links slowed down; GB/s with links as they are; ratio: to the bound\n' "$(nproc)"
printf '# %-9s %4s %-10s %4s %8s |%s %8s %6s %4s\n' machine GPUs collective MiB bound \
	"${BEFORE:+ before   ratio CPUs |}" now ratio CPUs
for machine in "$@"; do
	IFS=: read -r name ranks sms collectives sizes <<<"$machine"
	collectives=${collectives:-$usual}
	sizes=${sizes:-1,4,16,64}
	for coll in ${collectives//,/ }; do
		case $coll in alltoallv | sendrecv) of=alltoall ;; *) of=$coll ;; esac
		plan "$work/trees.json" "topologies/$name.xml" -c "$of"
		for mib in ${sizes//,/ }; do
			printf '  %-9s %4d %-10s %4d %8.2f |' "$name" "$ranks" $coll "$mib" "$bound"
			[ ! "${BEFORE:-}" ] || { one "$BEFORE"; printf ' |'; }
			one "$build"
			printf '\n'
		done
	done
done
