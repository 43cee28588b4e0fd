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

# ---- simulated ----

# simulated NAME OPTION...: ps
simulated() {
	"$blinkc" simulate "$work/$1.json" --parameters "$work/free.json" --format json -o "$work/simulated.json" \
		"${@:2}" || return
	"$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["sizes"][0]["time_ps"])' \
		"$work/simulated.json"
}
echo '{ "kernel": { "call": 0, "step": 0, "at_once": 0, "reduce_by_link": 0, "packet_most": 0,
	"line_most": 0, "efficiency": { "nvlink": 1 }, "latency": { "nvlink": 0 } } }' >"$work/free.json"
got=$(simulated star --matrix "$work/star.bytes" 2>&1)
# 2 us, and the latency of two links, 1.7 us each.
if [ "$got" = 5400000 ]; then ok "star: simulated in 5.4 us"; else not_ok "star: simulated: $got ps, want 5400000"; fi
expect "schema of a simulation" oracle validate schemas/simulate.schema.json "$work/simulated.json"
"$blinkc" -q dgx1v -c alltoall -o "$work/even.json"
for _ in 1 2 3 4 5 6 7 8; do echo '65536 65536 65536 65536 65536 65536 65536 65536'; done >"$work/even.bytes"
got="$(simulated even --matrix "$work/even.bytes" 2>&1), $(simulated even --size 512K 2>&1)"
simulated even --matrix "$work/even.bytes" >"$work/log" 2>&1
expect "equal blocks: bytes of that message" grep -q '"bytes": 524288,' "$work/simulated.json"
if [ "${got%, *}" = "${got#*, }" ]; then ok "equal blocks: as a message"; else not_ok "equal blocks: $got ps"; fi
# What these bytes take by the links alone is the least, by paths for equal blocks as by those for the matrix.
"$python" -c 'import json, sys; m = json.load(open(sys.argv[1]))["matrix"]; print(int(m["bound"] * 1e6))' \
	"$work/moe.json" >"$work/least"
least=$(cat "$work/least")
own=$(simulated moe --matrix examples/moe-dgx1v.matrix 2>&1)
even=$(simulated even --matrix examples/moe-dgx1v.matrix 2>&1)
if "$python" -c 'import sys; least, own, even = map(int, sys.argv[1:])
sys.exit(not least <= own < 1.3 * least < even)' "$least" "$own" "$even"; then
	ok "the example: its own paths are faster"
else
	not_ok "the example: at least $least ps, simulated $own and $even"
fi

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

# not_simulated NAME WANT ARGUMENT...
not_simulated() {
	"$blinkc" simulate "${@:3}" >"$work/said" 2>&1
	expect "simulate: $1" test $? = 2
	expect "simulate: $1, the text" grep -qF -- "$2" "$work/said"
}
"$blinkc" -q dgx1v -g 0-3 -o "$work/reduced.json"
not_simulated "another collective" "is a schedule of allreduce: want one of alltoall" "$work/reduced.json" \
	--matrix "$work/even.bytes"
not_simulated "a size" "--matrix: want no --size with it" "$work/even.json" --matrix "$work/even.bytes" --size 1M
"$blinkc" simulate "$work/even.json" --matrix "$work/short" >"$work/out" 2>&1
expect "simulate: of other ranks" test $? = 3

# ---- against linear programs ----

expect "random matrices" oracle random_matrix "$blinkc" 1 "$([ "$full" ] && echo 60 || echo 30)"
