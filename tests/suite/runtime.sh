# Schedules executed on the host backend, as JSON and as generated code compiled for the host, every element checked.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# right NAME FILE [blink-perf options]: runs, and reports no wrong element
right() {
	local name=$1
	shift
	if "$perf" "$@" >"$work/log" 2>&1 && grep -q '^# Out of bounds values : 0 OK' "$work/log"; then ok "$name"; else
		not_ok "$name: $(tail -3 "$work/log" | tr '\n' ' ')"
	fi
}
sizes="-b 4 -e 1M -f 16 -n 1 -w 0"	# of 4 bytes to 256 KiB: five
# For each type and operator without $full: five up to 16 KiB. The large ones take most of the time.
each_size=$([ "$full" ] && echo "$sizes" || echo "-b 4 -e 16K -f 8 -n 1 -w 0")
one_thread=$([ "$full" ] && echo 1M || echo 256K)

# right_for_each_op NAME TYPE FILE: a case for each operator, or one where nothing is reduced; of five sizes, in place
# and out of place
right_for_each_op() {
	local name=$1 type=$2 op ops=none
	case $name in *reduce*) ops="sum prod max min" ;; esac
	# shellcheck disable=SC2086 # a list of words
	"$perf" "$3" $each_size -d "$type" -o all >"$work/log" 2>&1 ||
		not_ok "$name $type: exit $?: $(tail -1 "$work/log")"
	for op in $ops; do
		if awk -v type="$type" -v op="$op" '$3 == type && $4 == op { n++; right += $9 == "0" && $13 == "0" }
			END { exit n != 5 || right != n }' "$work/log"; then
			ok "$name $type $op"
		else
			not_ok "$name $type $op: $(grep " $type *$op " "$work/log")"
		fi
	done
	if grep -q '^# Out of bounds values : 0 OK' "$work/log"; then ok "$name $type"; else
		not_ok "$name $type: $(tail -3 "$work/log" | tr '\n' ' ')"
	fi
}

step=12
[ ! "$full" ] || step=1
for machine in dgx1v dgx1p; do
	mapfile -t sets < <(oracle subsets $machine | grep -o '^[0-9,]*$')
	for ((i = 0; i < ${#sets[@]}; i += step)); do
		gpus=${sets[i]}
		"$blinkc" -q topologies/$machine.xml -g "$gpus" -o "$work/s.json" || not_ok "$machine $gpus: exit $?"
		# shellcheck disable=SC2086 # a list of words
		right "$machine $gpus allreduce" "$work/s.json" $sizes
	done
done

cases="dgx1v:broadcast:gpu3: dgx1v:reduce:gpu5: dgx1v:allreduce:: dgx1v:gather:gpu3: dgx1v:scatter:gpu6:1,4,5,6
	dgx1v:allgather:: dgx1p:reducescatter:: dgx1v:alltoall::0,1,2,4,5 dgx1v:allreduce::0,7"
so_types=float
# Without $full, other types of one collective alone: tests/unit has them for each.
json_types() { if [ "$full" ] || [ "$1" = reduce ]; then echo "int32 float double"; else echo float; fi; }
if [ "$full" ]; then
	cases+=" dgx1p:allreduce:: dgx1v:broadcast:gpu5:1,4,5,6 dgx1p:reduce:gpu4:0,1,4"
	so_types="int32 float double"
fi
for case in $cases; do
	IFS=: read -r machine c root gpus <<<"$case"
	options=(-c "$c" ${root:+-r "$root"} ${gpus:+-g "$gpus"})
	name="$machine $c ${gpus:-all}"
	"$blinkc" -q topologies/$machine.xml "${options[@]}" -o "$work/s.json" || not_ok "$name: exit $?"
	for type in $(json_types "$c"); do right_for_each_op "$name json" $type "$work/s.json"; done
	right "$name: odd sizes" "$work/s.json" -b 4 -e 404 -i 36 -n 1 -w 0 --chunk 64
	right "$name: one thread" "$work/s.json" -b "$one_thread" -e "$one_thread" -n 1 -w 0 --threads 1
	# Without $full two are compiled; the suite collectives and tests/unit/test_program.c have others.
	[ "$full" ] || case $c in broadcast | scatter) ;; *) continue ;; esac
	if [ "$full" ]; then
		"$blinkc" -q topologies/$machine.xml "${options[@]}" -o "$work/s.cu" || not_ok "$name .cu: exit $?"
	else
		"$blinkc" convert -q "$work/s.json" -o "$work/s.cu" || not_ok "$name .cu: exit $?"
	fi
	# Most of the time would go into -O2.
	optimise=-O0
	[ ! "$full" ] && [ "$c" != scatter ] || optimise=-O2
	expect "$name: the .cu compiles with ${CC:-cc}" "${cc[@]}" -x c -std=gnu11 $optimise -Wall \
		-Wextra -Werror -shared \
		-fPIC -Iruntime/include "$work/s.cu" -o "$work/s.so" -pthread
	for type in $so_types; do right_for_each_op "$name so" $type "$work/s.so"; done
	right "$name: odd sizes, so" "$work/s.so" -b 4 -e 404 -i 36 -n 1 -w 0 --chunk 64
	if [ "$(sed -n 's/^# *\(sha256:\)/\1/p' <("$perf" "$work/s.so" -b 4 -e 4 -n 1 -w 0))" = \
		"sha256:$(sha256sum <"$work/s.json" | cut -d' ' -f1)" ]; then
		ok "$name: digest of the schedule"
	else
		not_ok "$name: the .so names another schedule"
	fi
done
"$blinkc" -q topologies/dgx1v.xml -c broadcast -o "$work/s.json"
right "an operator means nothing to a broadcast" "$work/s.json" -b 4 -e 4 -n 1 -w 0 -o prod

# What is wrong is seen: a program that lacks a copy.
"$blinkc" -q topologies/dgx1v.xml -c broadcast -g 0,1,2 -o "$work/s.cu" || not_ok "broadcast .cu: exit $?"
sed '0,/^\tblink_copy(/{/^\tblink_copy(/d}' "$work/s.cu" >"$work/wrong.cu"
expect "a program that lacks a copy compiles" "${cc[@]}" -x c -std=gnu11 -O0 -shared -fPIC -Iruntime/include \
	"$work/wrong.cu" -o "$work/wrong.so" -pthread
"$perf" "$work/wrong.so" -b 64K -e 64K -n 1 -w 0 >"$work/log" 2>&1
got=$?
if [ $got = 6 ] && grep -q '^# Out of bounds values : [1-9][0-9]* FAILED' "$work/log"; then
	ok "a program that lacks a copy: wrong elements are counted"
else
	not_ok "a program that lacks a copy: exit $got: $(tail -3 "$work/log" | tr '\n' ' ')"
fi

# What was not verified is not executed.
"$blinkc" -q topologies/dgx1v.xml -g 0,1,2 -o "$work/s.json"
oracle mutate "$work/s.json" 1 --kind drop-edge >"$work/bad.json" 2>"$work/err"
expect_exit "a schedule that misses an edge is refused" 6 "$perf" "$work/bad.json" -b 4 -e 4

# ---- data only ----

# An object that would leave a mark, were it loaded; under the name of a schedule, too, and behind a pipe.
"$blinkc" -q topologies/dgx1v.xml -g 0,1,2 -o "$work/s.json" || not_ok "three GPUs: exit $?"
"$blinkc" -q topologies/dgx1v.xml -g 0,1,2 -o "$work/mark.cu" || not_ok "three GPUs .cu: exit $?"
printf '#include <fcntl.h>\n__attribute__((constructor)) static void mark(void) { creat("%s/mark", 0600); }\n' \
	"$work" >>"$work/mark.cu"
expect "an object that leaves a mark compiles" "${cc[@]}" -x c -std=gnu11 -O0 -shared -fPIC \
	-Iruntime/include "$work/mark.cu" \
	-o "$work/mark.so" -pthread
right "it runs" "$work/mark.so" -b 4 -e 4 -n 1 -w 0
if [ -e "$work/mark" ]; then ok "and leaves its mark"; else not_ok "it leaves no mark"; fi
rm -f "$work/mark"
cp "$work/mark.so" "$work/mark.json"
mkdir -p "$work/d/allreduce"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 3 -o "$work/d" || not_ok "batch: exit $?"
for f in "$work/d/allreduce/"*.json; do cp "$work/mark.so" "$f"; done
right "a schedule is data" "$work/s.json" -b 4 -e 4 -n 1 -w 0 --data-only
expect_exit "data only: an object" 3 "$perf" "$work/mark.so" --data-only -b 4 -e 4
grep -q "mark.so: a shared object: want a schedule file" "$work/err" || not_ok "data only: $(cat "$work/err")"
expect_exit "data only: an object with another name" 3 "$perf" "$work/mark.json" --data-only -b 4 -e 4
expect_exit "data only: an object that an index names" 3 "$perf" "$work/d" -g 0,1,2 --data-only -b 4 -e 4
expect_exit "an object that an index names" 3 "$perf" "$work/d" -g 0,1,2 -b 4 -e 4
printf '\177ELF' >"$work/elf.json"
expect_exit "data only: four bytes of an object" 3 "$perf" "$work/elf.json" --data-only -b 4 -e 4
if [ ! -e "$work/mark" ]; then ok "no code is loaded"; else not_ok "code was loaded"; fi
