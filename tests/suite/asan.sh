# Under AddressSanitizer, UBSan and LeakSanitizer: what the plain build does, the same bytes, messages and exit codes.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

asan=$build/asan/blinkc
if [ ! -x "$asan" ]; then
	skip "all of it: no $asan"
	exit 0
fi
if ! nm "$asan" | grep -q __asan_init; then not_ok "$asan is built without it"; fi
export UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
if ! "$asan" --version >"$work/out" 2>&1; then
	skip "leaks: LeakSanitizer does not run here: $(tail -1 "$work/out")"
	ASAN_OPTIONS=${ASAN_OPTIONS/detect_leaks=1/detect_leaks=0}
fi

# both NAME ARGUMENT...: exit code, stdout and stderr are those of the plain build
both() {
	local name=$1 want got
	shift
	"$blinkc" "$@" >"$work/out" 2>"$work/err" </dev/null
	want=$?
	"$asan" "$@" >"$work/out-asan" 2>"$work/err-asan" </dev/null
	got=$?
	if [ $got != $want ] || ! cmp -s "$work/err" "$work/err-asan"; then
		not_ok "$name: exit $got, want $want"
		head -40 "$work/err-asan" | sed 's/^/# /'
	elif ! cmp -s "$work/out" "$work/out-asan"; then
		not_ok "$name: other bytes on stdout"
	else
		return 0
	fi
	return 1
}

# ---- compile, check ----

for machine in dgx1v dgx1p; do
	wrong=0 n=0
	while read -r gpus; do
		for coll in "broadcast -r 1" "reduce" "allreduce"; do
			n=$((n + 1))
			# shellcheck disable=SC2086 # words
			both "$machine $gpus $coll" -c $coll -g "$gpus" "topologies/$machine.xml" ||
				wrong=$((wrong + 1))
			mv "$work/out" "$work/schedule.json"
			both "check $machine $gpus $coll" check "$work/schedule.json" || wrong=$((wrong + 1))
		done
	done < <(oracle subsets $machine | awk 'NR % 5 == 1')
	if [ $n -lt 9 ]; then
		not_ok "$machine: only $n requests"
	elif [ $wrong = 0 ]; then
		ok "$machine: compile and check, $n requests"
	fi
done
v=topologies/dgx1v
for request in "$v.json" "-g 0-5 --format cu $v.json" "-v --no-minimise $v.xml" "-l all --epsilon 0.2 $v.xml" \
	"-l pcie,qpi -c reduce $v.xml" \
	"--tolerance 0 -g 0,1,2 $v.xml --format cu" "-g 0,7 -l nvlink $v.xml" "-g 3 $v.xml" \
		"--nothing" "-c nothing $v.xml" \
	"--hybrid -c broadcast --size 1,1G $v.xml" "--hybrid=host -c alltoall -g 0,1,4 --format cu $v.json" \
	"--hybrid -g 0,7 $v.xml" "-a ring --format nccl-graph $v.xml" "--format nccl-graph $v.xml" \
	"-a ring --format nccl-graph topologies/two-dgx1v.xml" "-a ring -c broadcast --format nccl-graph $v.xml" \
	"check $v.json" "diff -j 1 tests/golden/diff/old tests/golden/diff/new" "convert $v.xml" \
	"convert $v.json --format xml" "convert $v.xml --format canonical" "--help" "--version" \
	"-v topologies/two-dgx1v.xml -g 0,1,2,11,12" "-c alltoall topologies/two-dgx1v.xml -g 0,9,10" \
	"convert tests/fuzz/corpus/fuzz_topology/cluster.xml" \
	"topology --servers 3 $v.xml --rails --leaf 2 --oversubscription 3" \
	"topology --servers 2 $v.xml --nic-rate 1 --format cluster" \
	"/nowhere" "tests" ""; do
	# shellcheck disable=SC2086 # words
	both "blinkc $request" $request && ok "blinkc $request"
done
for line in "server:2 gpu:2 mesh:50 nic:1@12.5 pcie:12" \
	"server:3 gpu:2 switch:50 net:5 leaf:2 rails multicast reduce" "gpu:3 ring:2" "gpu:0" "nothing"; do
	both "--synthetic $line" --synthetic "$line" && ok "--synthetic $line"
done
for f in tests/fuzz/corpus/fuzz_topology/*.json; do
	for request in "" "-c broadcast" "-c reduce --format cu" "convert" "convert --format xml"; do
		# shellcheck disable=SC2086 # words
		both "$(basename "$f") $request" $request "$f" && ok "$(basename "$f") $request"
	done
done
for f in tests/fuzz/corpus/fuzz_schedule/*.json; do
	both "check $(basename "$f")" check "$f" && ok "check $(basename "$f")"
done
expect "to a file" "$asan" -q "$v.xml" -o "$work/schedule.json"
expect "over that file" "$asan" -q "$v.xml" -o "$work/schedule.json"

# ---- directories ----

for request in "$v.xml --sizes 3 --collectives all" "topologies/two-dgx1v.xml --distinct --sizes 2-3" \
	"$v.xml --hybrid --sizes 7"; do
	rm -rf "$work/plain" "$work/asan"
	# shellcheck disable=SC2086 # words
	"$blinkc" batch -q $request -o "$work/plain" || not_ok "batch $request: exit $?"
	# shellcheck disable=SC2086 # words
	expect "batch $request" "$asan" batch -q -j 2 $request -o "$work/asan"
	expect "batch $request: the same bytes" diff -r "$work/plain" "$work/asan"
	expect "batch $request: kept" "$asan" batch -q -j 1 $request -o "$work/asan"
	file=$(find "$work/asan/allreduce" -name '*.json' | sort | tail -1)
	both "check $request" check "$work/asan" && ok "check of $request"
	both "report $request" report -q "$work/asan" && ok "report of $request"
	for format in text svg dot; do both "show $request" show --format $format "$file" &&
		ok "show $format of $request"; done
done

# ---- bad files ----

for f in tests/bad/topology/*.json tests/bad/topology/*.xml; do
	both "bad $f" "$f" && ok "bad $(basename "$f")"
done
for f in tests/bad/schedule/*.json; do
	both "bad $f" check "$f" && ok "bad $(basename "$f")"
done

# ---- the runtime ----

expect "blink-perf" "$build/asan/blink-perf" "$work/schedule.json" -b 1 -e 256K -f 8 -n 2 -w 1
expect "blink-perf, all types" "$build/asan/blink-perf" "$work/schedule.json" \
	-b 40000 -e 40000 -n 1 -w 0 -d all -o all -C 1000
for request in "broadcast 1,4,5,7" "reduce 0,1,2,3"; do
	read -r coll gpus <<<"$request"
	"$asan" -q -c "$coll" -g "$gpus" "$v.xml" -o "$work/other.json"
	expect "blink-perf $coll" "$build/asan/blink-perf" "$work/other.json" -b 3 -e 300K -f 10 -n 1 -w 0 -d all
done
for f in segment-over-blocks reduced-twice prices-too-low topology-missing; do
	"$build/asan/blink-perf" "tests/bad/schedule/$f.json" >"$work/out" 2>"$work/err"
	case $? in
	0 | 99 | 1[0-9][0-9]) not_ok "blink-perf takes $f.json, or dies: $(head -3 "$work/err")" ;;
	*)
		if grep -q Sanitizer "$work/err"; then
			not_ok "blink-perf $f.json: $(head -3 "$work/err")"
		else
			ok "blink-perf refuses $f.json"
		fi
		;;
	esac
done
