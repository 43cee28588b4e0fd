#!/bin/sh
# A schedule for each of several sets of GPUs, and what it achieves:
#
#	examples/subsets.sh topologies/dgx1v.xml allreduce 0,1,2 1,4,5,6 0,1,2,3,4,5,6,7
#  writes allreduce-0-1-2.json and so on here. BLINKC names the compiler (default build/blinkc). A set that its links do
# not connect is reported and left out; then the exit status is 1.
set -eu
blinkc=${BLINKC:-build/blinkc}
if [ $# -lt 3 ]; then
	echo "usage: examples/subsets.sh TOPOLOGY COLLECTIVE GPUS..." >&2
	exit 2
fi
topology=$1 collective=$2
shift 2
status=0

printf '%-16s  %5s  %5s  %11s  %11s  %5s\n' gpus trees depth 'rate (GB/s)' bound ratio
for gpus; do
	out=$collective-$(echo "$gpus" | tr , -).json
	summary=$("$blinkc" "$topology" -c "$collective" -g "$gpus" -o "$out" 2>&1) || {
		echo "$summary" >&2
		status=1
		continue
	}
	echo "$summary" | awk -v gpus="$gpus" '
		/^trees/ { trees = $2 + 0; depth = $4 }
		/^rate/ { rate = $2 }
		/^bound/ { bound = $2 }
		/^ratio/ { printf "%-16s  %5d  %5d  %11s  %11s  %5s\n", gpus, trees, depth, rate, bound, $2 }'
done
exit $status
