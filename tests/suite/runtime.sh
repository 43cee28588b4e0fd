# Schedules executed on the host backend, as JSON and as generated code compiled for the host, every element checked.
. tests/lib.sh

# right NAME FILE [blink-perf options]: runs, and reports no wrong element
right() {
	local name=$1
	shift
	if "$perf" "$@" >"$work/log" 2>&1 && grep -q '^# Out of bounds values : 0 OK' "$work/log"; then ok "$name"; else
		not_ok "$name: $(tail -3 "$work/log" | tr '\n' ' ')"; fi
}
sizes="-b 4 -e 1M -f 16 -n 1 -w 0"

for machine in dgx1v dgx1p; do
	mapfile -t sets < <(oracle subsets $machine | grep -o '^[0-9,]*$')
	for gpus in "${sets[@]}"; do
		"$blinkc" -q topologies/$machine.xml -g "$gpus" -o "$work/s.json" || not_ok "$machine $gpus: exit $?"
		# shellcheck disable=SC2086 # a list of words
		right "$machine $gpus allreduce" "$work/s.json" $sizes
	done
done

for case in dgx1v:broadcast:gpu3: dgx1v:reduce:gpu5: dgx1v:allreduce:: dgx1p:allreduce:: \
	dgx1v:gather:gpu3: dgx1v:scatter:gpu6:1,4,5,6 dgx1v:allgather:: dgx1p:reducescatter:: dgx1v:alltoall::0,1,2,4,5 \
	dgx1v:broadcast:gpu5:1,4,5,6 dgx1p:reduce:gpu4:0,1,4 dgx1v:allreduce::0,7; do
	IFS=: read -r machine c root gpus <<<"$case"
	options=(-c "$c" ${root:+-r "$root"} ${gpus:+-g "$gpus"})
	name="$machine $c ${gpus:-all}"
	"$blinkc" -q topologies/$machine.xml "${options[@]}" -o "$work/s.json" || not_ok "$name: exit $?"
	"$blinkc" -q topologies/$machine.xml "${options[@]}" -o "$work/s.cu" || not_ok "$name .cu: exit $?"
	expect "$name: the .cu compiles with ${CC:-cc}" "${CC:-cc}" -x c -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC \
		-Iruntime/include "$work/s.cu" -o "$work/s.so" -pthread
	for type in int32 float double; do
		for op in sum prod min max; do
			# shellcheck disable=SC2086 # a list of words
			right "$name $type $op json" "$work/s.json" $sizes -d $type -o $op
			# shellcheck disable=SC2086 # a list of words
			right "$name $type $op so" "$work/s.so" $sizes -d $type -o $op
		done
	done
	right "$name: odd sizes" "$work/s.json" -b 4 -e 404 -i 36 -n 1 -w 0 --chunk 64
	right "$name: odd sizes, so" "$work/s.so" -b 4 -e 404 -i 36 -n 1 -w 0 --chunk 64
	right "$name: one thread" "$work/s.json" -b 1M -e 1M -n 1 -w 0 --threads 1
	if [ "$(sed -n 's/^# *\(sha256:\)/\1/p' <("$perf" "$work/s.so" -b 4 -e 4 -n 1 -w 0))" = "sha256:$(sha256sum <"$work/s.json" | cut -d' ' -f1)" ]; then
		ok "$name: digest of the schedule"; else not_ok "$name: the .so names another schedule"; fi
done

# What was not verified is not executed.
"$blinkc" -q topologies/dgx1v.xml -g 0,1,2 -o "$work/s.json"
oracle mutate "$work/s.json" 1 --kind drop-edge >"$work/bad.json" 2>"$work/err"
expect_exit "a schedule that misses an edge is refused" 6 "$perf" "$work/bad.json" -b 4 -e 4
