# Alltoalls that are planned for a matrix of bytes: against closed forms, linear programs, and their own check; and that
# libblink executes them for other bytes.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# plan NAME MACHINE GPUS OPTION...: for $work/NAME.bytes
plan() {
	local name=$1 machine=$2 gpus=$3
	shift 3
	expect "$name: planned" "$blinkc" "$machine" -g "$gpus" -c alltoall --matrix "$work/$name.bytes" \
		-o "$work/$name.json" "$@"
	cp "$work/out" "$work/$name.text"
	expect "$name: check" "$blinkc" check -q "$work/$name.json"
}

# takes NAME US: time and bound
takes() {
	local got
	got=$("$python" -c 'import json, sys; m = json.load(open(sys.argv[1]))["matrix"]; print("%.9g %.9g" % (
		m["time"], m["bound"]))' "$work/$1.json")
	if [ "$got" = "$2 $2" ]; then ok "$1: $2 us"; else not_ok "$1: $got us, want $2"; fi
}

# Behind a switch with ports of 300 GB/s, who sends or receives most takes all the time.
printf '0 300000 0\n0 0 300000\n0 300000,0 # rank 2\n' >"$work/star.bytes"
plan star dgx-a100 0-2
takes star 2
# Of one pair of GPUs that has 50 GB/s to each other, and to others: all ways of a DGX-1V from GPU 0 have 150 GB/s, of
# which a block takes what leads to GPU 1.
"$python" -c 'print([[150000000 * (i == 0 and j == 3) for j in range(8)] for i in range(8)])' >"$work/pair.bytes"
plan pair dgx1v 0-7
takes pair 1000
expect "schema of the schedule" oracle validate schemas/schedule.schema.json "$work/pair.json"
"$blinkc" dgx1v -c alltoall --matrix examples/moe-dgx1v.matrix --summary json -o "$work/moe.json" 2>"$work/summary" ||
	not_ok "the example: $(cat "$work/summary")"
expect "schema of the summary" oracle validate schemas/summary.schema.json "$work/summary"

# A schedule for a matrix is one for any.
expect "libblink executes it" "$perf" "$work/moe.json" -b 64K -e 64K -n 1 -w 0
BLINK_SCHEDULES=$work/moe.json "$build/tests/job/order" -n 8 uneven >"$work/log" 2>&1
sed "s/^\(not \)\?ok /&$suite: for other bytes: /" "$work/log"

# ---- refused ----

# refuses NAME WANT OPTION...
refuses() {
	local name=$1 want=$2
	shift 2
	if "$blinkc" -q dgx1v -o "$work/none.json" "$@" >"$work/out" 2>&1 || ! grep -qF -- "$want" "$work/out"; then
		not_ok "$name: $(head -c 200 "$work/out")"
	else
		ok "$name"
	fi
}
echo '1 2 3' >"$work/short"
echo '[[0, 1], [1, 0]]' >"$work/small"
for _ in 1 2 3; do echo '0 0 0'; done >"$work/zeros"
printf '0 1 2\n0 x 0\n0 0 0\n' >"$work/word"
refuses "one line" "short: 1 lines: want 3" -g 0-2 -c alltoall --matrix "$work/short"
refuses "more ranks" "want an array of 3 rows" -g 0-2 -c alltoall --matrix "$work/small"
refuses "no bytes" "0 bytes between ranks: want 1 to 2^53" -g 0-2 -c alltoall --matrix "$work/zeros"
refuses "no number" "word:2: x: want a number" -g 0-2 -c alltoall --matrix "$work/word"
refuses "another collective" "--matrix: want it with -c alltoall" -c allreduce --matrix "$work/zeros"
refuses "another algorithm" "--matrix: want none of" -c alltoall --algorithm direct --matrix "$work/zeros"

# ---- against linear programs ----

expect "random matrices" oracle random_matrix "$blinkc" 1 "$([ "$full" ] && echo 60 || echo 30)"
