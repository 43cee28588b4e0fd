# For gpu.sh and gpu_sets.sh: schedules, and how long their calls take on virtual GPUs. BUILD names the build directory.
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Plan FILE, with what more blinkc is told; sets `rate` and `bound`, of the schedule, GB/s. False: there is no such
# schedule.
plan() {
	local file=$1
	shift
	"$build/blinkc" "$@" -o "$file" --summary json 2>"$work/summary" || return 1
	rate=$(grep -o '"rate_gb_per_s":[0-9.]*' "$work/summary" | head -n 1 | cut -d: -f2)
	bound=$(grep -o '"bound_gb_per_s":[0-9.]*' "$work/summary" | cut -d: -f2)
}

# A call of FILE on RANKS GPUs of MACHINE whose links are SCALE times slower; sets `reached`, GB/s with links as they
# are, `busy`, how many CPUs worked, and `late`, ms: how late threads woke up. The first ranks are on
# the GPUs of CUDA_VISIBLE_DEVICES.
measure() {
	local file=$1 machine=$2 ranks=$3 scale=$4 coll=$5 bytes=$6 gpus=$build/tests/virtual_gpu real user sys seconds
	local TIMEFORMAT='%R %U %S'
	{ time env LD_LIBRARY_PATH="$gpus" VIRTUAL_GPU_KERNELS="$gpus/libblink-twins.so" \
		VIRTUAL_GPU_TOPOLOGY="topologies/$machine.xml" VIRTUAL_GPU_SCALE="$scale" \
		VIRTUAL_GPU_BLOCKS="${VIRTUAL_GPU_BLOCKS:-80}" BLINK_BACKEND=cuda BLINK_SCHEDULES="$file" \
		"$build/tests/bench/gpu" -n "$ranks" -c "$coll" -b "$bytes" -k "${CALLS:-1}" \
			>"$work/seconds"; } 2>"$work/times" || {
		cat "$work/seconds" "$work/times" >&2
		return 1
	}
	read -r seconds late <"$work/seconds"
	read -r real user sys < <(tail -n 1 "$work/times")
	reached=$(awk -v b="$bytes" -v s="$seconds" -v x="$scale" 'BEGIN { printf "%.3f", b / s * x / 1e9 }')
	busy=$(awk -v r="$real" -v u="$user" -v s="$sys" 'BEGIN { printf "%.1f", (u + s) / r }')
}

# A quotient with three digits.
by() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'
}
