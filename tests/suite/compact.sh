# Compact schedules: the same as their lists of trees to all that read them, and small and fast where a list is too
# long.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# ---- both forms of one schedule ----

# both NAME ARGUMENT...: compiled as a list and compact, they are converted into each other, valid and equal
both() {
	local name=$1
	shift
	"$blinkc" -q "$@" -o "$work/list.json" || not_ok "$name: not compiled"
	"$blinkc" -q "$@" --format compact -o "$work/compact.json" || not_ok "$name: not compiled compact"
	expect "$name: compact files are valid" "$blinkc" check -q "$work/compact.json"
	expect "$name: the schema" oracle validate schemas/schedule.schema.json "$work/compact.json"
	expect "$name: listed by another program, its trees are valid" oracle images \
		"$work/compact.json" "$work/other.json"
	expect "$name: in a replay, too" oracle replay "$work/other.json"
	expect "$name: the list is that of the default" oracle images "$work/compact.json" --same "$work/list.json"
	expect "$name: converted to a list" "$blinkc" convert "$work/compact.json" -o "$work/back.json"
	expect "$name: which is the same" oracle images "$work/compact.json" --same "$work/back.json"
	expect "$name: diff of both forms" "$blinkc" diff "$work/list.json" "$work/compact.json"
	expect "$name: and the other way" "$blinkc" diff "$work/compact.json" "$work/back.json"
	expect "$name: folded" "$blinkc" convert "$work/back.json" --format compact -o "$work/again.json"
	expect "$name: into the same trees" cmp <(sed '1,/"symmetry"/d' "$work/compact.json") \
		<(sed '1,/"symmetry"/d' "$work/again.json")
}

both "rails, allreduce" --synthetic "server:4 gpu:4 switch:300 net:25 rails"
[ ! "$full" ] || both "rails, allgather" --synthetic "server:4 gpu:4 switch:300 net:25 rails" -c allgather
[ ! "$full" ] || both "rails, alltoall" --synthetic "server:3 gpu:4 switch:300 net:25 rails" -c alltoall
both "NICs, reducescatter" --synthetic "server:4 gpu:4 switch:300 nic:2@25 pcie:24" -c reducescatter
[ ! "$full" ] || both "SuperPOD, allreduce" topologies/superpod-h100.xml -g 0-127

for verb in show simulate "convert --format msccl" "convert --format cu"; do
	# shellcheck disable=SC2086 # words
	"$blinkc" $verb "$work/list.json" 2>&1 |
		sed 's/list.json/FILE/; s/sha256:[0-9a-f]*/DIGEST/; s/file is [^ ]*/FILE/' >"$work/want"
	# shellcheck disable=SC2086
	"$blinkc" $verb "$work/compact.json" 2>&1 |
		sed 's/compact.json/FILE/; s/sha256:[0-9a-f]*/DIGEST/; s/file is [^ ]*/FILE/' >"$work/got"
	if [ -s "$work/want" ] && cmp -s "$work/want" "$work/got"; then ok "$verb of both"; else
		not_ok "$verb: differs: $(diff "$work/want" "$work/got" | head -3)"
	fi
done
for form in list compact; do
	"$perf" "$work/$form.json" -b 64K -e 64K -n 1 -w 0 -o all >"$work/$form.log" 2>&1 ||
		not_ok "blink-perf, $form: exit $?"
	expect "libblink runs a $form" grep -q '^# Out of bounds values : 0 OK' "$work/$form.log"
	timeout 120 "$perf" --ranks 16 --threads-as-ranks "$work/$form.json" -b 64K -e 64K -n 1 -w 0 \
		>"$work/$form.log" 2>&1 ||
		not_ok "blink-perf of ranks, $form: exit $?"
	expect "each rank loads its part of a $form" grep -q '^# Out of bounds values : 0 OK' "$work/$form.log"
done

# A rank finds its part of an alltoall by the paths that it is on alone.
"$blinkc" -q --synthetic "server:4 gpu:4 switch:300 net:25 rails" -c alltoall --format compact -o "$work/pairs.json"
timeout 120 "$perf" --ranks 16 --threads-as-ranks "$work/pairs.json" -b 64K -e 64K -n 1 -w 0 >"$work/pairs.log" 2>&1 ||
	not_ok "blink-perf of ranks, alltoall: exit $?"
expect "each rank loads its part of an alltoall" grep -q '^# Out of bounds values : 0 OK' "$work/pairs.log"

# Where a server lost a GPU, its others stay in their places.
"$blinkc" -q --synthetic "server:5 gpu:4 switch:300 net:25" --without s1/gpu1 -c alltoall -o "$work/list.json"
oracle staying "$work/list.json" >"$work/staying.json" || not_ok "a compact alltoall of which GPUs stay"
expect "GPUs that stay: valid" "$blinkc" check -q "$work/staying.json"
expect "GPUs that stay: the rate and bound of the list" grep -q '^29.6875 29.6875$' <(oracle pairs "$work/staying.json")
expect "GPUs that stay: listed" "$blinkc" convert "$work/staying.json" -o "$work/back.json"
expect "GPUs that stay: by another program, too" oracle images "$work/staying.json" --same "$work/back.json"
expect "GPUs that stay: simulated" "$blinkc" simulate -q "$work/staying.json"
timeout 120 "$perf" --ranks 19 --threads-as-ranks "$work/staying.json" -b 64K -e 64K -n 1 -w 0 \
	>"$work/pairs.log" 2>&1 || not_ok "blink-perf of ranks, GPUs that stay: exit $?"
expect "GPUs that stay: each rank loads its part" grep -q '^# Out of bounds values : 0 OK' "$work/pairs.log"

# ---- what has none ----

expect_exit "no symmetry" 5 "$blinkc" -q topologies/dgx1v.xml --format compact -o "$work/x.json"
expect "no symmetry: what it says" grep -qF "no compact form: no symmetry of its links makes its" "$work/err"
expect "no symmetry: no file" [ ! -e "$work/x.json" ]

# ---- lists that are too long ----

rails() { "$blinkc" --synthetic "server:$1 gpu:8 switch:300 net:25 rails" -c "$2" -o "$work/$2.json" 2>"$work/err"; }

# long SERVERS COLLECTIVE EDGES: written compact by itself, at the bound; what needs all trees refuses it
long() {
	rails "$1" "$2" || not_ok "$1 servers, $2: exit $?: $(cat "$work/err")"
	local n=$((8 * $1))
	expect "$n GPUs, $2: it says so" grep -q "^compact     a list of all trees would be too long" "$work/err"
	expect "$n GPUs, $2: trees" grep -q "^trees       $n, depth [24]; images of 1 under a group of $n\$" "$work/err"
	expect "$n GPUs, $2: at the bound" grep -q "^ratio       1.000" "$work/err"
	expect "$n GPUs, $2: below 50 MB" [ "$(wc -c <"$work/$2.json")" -lt 50000000 ]
	expect "$n GPUs, $2: valid" "$blinkc" check -q "$work/$2.json"
	expect "$n GPUs, $2: shown" "$blinkc" show "$work/$2.json" -o "$work/shown"
	expect "$n GPUs, $2: is itself" "$blinkc" diff "$work/$2.json" "$work/$2.json"
	expect_exit "$n GPUs, $2: a list" 4 "$blinkc" convert "$work/$2.json" --format json -o "$work/x.json"
	expect "$n GPUs, $2: what it says" grep -qF \
		"$n trees with $3 edges, where all are listed: want at most 524288 and 4194304" "$work/err"
}

long 256 allreduce 8384512
expect_exit "2048 GPUs, allreduce: run by one process" 4 "$perf" "$work/allreduce.json" -b 64K -e 64K -n 1 -w 0
expect "2048 GPUs, allreduce: what it says" grep -qF \
	"2048 trees with 8384512 edges, where all are listed: want at most" "$work/err"
if [ "$full" ]; then
	long 2048 allreduce 536838144
	long 2048 allgather 268419072
	long 2048 reducescatter 268419072
fi

# ---- with a root: a list of few trees, or of paths ----

# replays COLLECTIVE FILE: by another program, if that takes about a second: not with a path for each GPU
replays() {
	case $1 in broadcast | reduce) oracle replay "$2" ;; *) "$blinkc" check -q "$2" ;; esac
}

# rooted SERVERS COLLECTIVE TREES: at the bound
rooted() {
	"$blinkc" --synthetic "server:$1 gpu:8 switch:300 net:25 rails" -c "$2" -r 5 -o "$work/$2.json" 2>"$work/err" ||
		not_ok "$1 servers, $2: exit $?: $(cat "$work/err")"
	local n=$((8 * $1))
	expect "$n GPUs, $2: trees" grep -q "^trees       $3\$" "$work/err"
	expect "$n GPUs, $2: at the bound" grep -q "^ratio       1.000" "$work/err"
	expect "$n GPUs, $2: valid" "$blinkc" check -q "$work/$2.json"
	[ "$1" -gt 1000 ] || expect "$n GPUs, $2: replayed" replays "$2" "$work/$2.json"
}

rooted 513 reduce "8, depth 10"
rooted 513 scatter "4103, depth 2"
if [ "$full" ]; then
	rooted 513 broadcast "8, depth 10"
	rooted 513 gather "4103, depth 2"
	expect "4104 GPUs, scatter: replayed by another program" oracle replay "$work/scatter.json"
	rooted 2048 broadcast "8, depth 12"
	rooted 8192 reduce "8, depth 14"
	rooted 8192 scatter "65535, depth 2"
	expect "4104 GPUs: gather runs" "$perf" "$work/gather.json" -b 64K -e 64K -n 1 -w 0
fi

# near NAME MACHINE COLLECTIVE RATIO OPTIONS...: where the bound is not reached, or ways are others
near() {
	expect "$1, $3" "$blinkc" --synthetic "$2" -c "$3" "${@:5}" -o "$work/x.json"
	cp "$work/out" "$work/err"
	expect "$1, $3: ratio $4" awk -v want="$4" '/^ratio/ { found = $2 >= want } END { exit !found }' "$work/err"
	expect "$1, $3: replayed" replays "$3" "$work/x.json"
}
near "72 GPUs in a server" "server:57 gpu:72 switch:900 net:50" gather 0.96
# Without a root: links of hundreds of orbits, and trees of many rounds.
near "1536 GPUs" "torus:48x32@25 open:1" allreduce 1
near "2304 GPUs" "dragonfly:6x16x6@25 groups:24" allgather 1
near "1056 GPUs" "dragonfly:4x8x4@25" alltoall 1
near "NICs that GPUs share" "server:513 gpu:8 switch:300 nic:4@25 pcie:24" reduce 1
near "servers of one GPU" "server:4100 gpu:1 net:25" broadcast 1
if [ "$full" ]; then
	# The program begins anew a few times.
	near "4096 GPUs" "dragonfly:8x16x8@25 groups:32" alltoall 0.9999
	near "72 GPUs in a server" "server:57 gpu:72 switch:900 net:50" broadcast 1
	near "one NIC" "server:1025 gpu:4 switch:300 nic:1@25 pcie:24" broadcast 1
	near "slow switches" "server:513 gpu:8 switch:20 net:25 rails" reduce 0.444
	near "servers of one GPU" "server:4100 gpu:1 net:25" scatter 1
fi
expect_exit "without one of 4104 GPUs" 4 "$blinkc" --synthetic "server:513 gpu:8 switch:300 net:25" --without s5/gpu3 \
	-c gather -o "$work/x.json"
expect "without one: what it says" grep -qF \
	"gather over 4103 GPUs: want at most 4096, or equal servers with a switch" "$work/err"
# Over more than 4096 GPUs, servers of a broadcast or reduce may differ.
near "without one of 4104 GPUs" "server:513 gpu:8 switch:300 net:25 rails" broadcast 1 --without s5/gpu3
[ ! "$full" ] || near "36863 GPUs" "server:512 gpu:72 switch:900 net:50 rails" reduce 1 --without s4/gpu5

# ---- an alltoall: a path for each pair of GPUs ----

# More hops than are simulated: what it takes at least, by the rate, and for small messages by latency.
"$blinkc" --synthetic "dragonfly:4x8x4@25" -c alltoall --size 64M -o "$work/large.json" 2>"$work/err" ||
	not_ok "1056 GPUs, alltoall of 64 MiB: exit $?: $(cat "$work/err")"
expect "1056 GPUs, alltoall of 64 MiB: at least" grep -q \
	"^time        at least 29[0-9]*\.[0-9]* us .*too many hops" "$work/err"
"$blinkc" simulate "$work/large.json" --size 1K,64M --format csv >"$work/times.csv" 2>"$work/err" ||
	not_ok "1056 GPUs, alltoall, simulated: exit $?: $(cat "$work/err")"
expect "1056 GPUs, alltoall, simulated: not below the least time, nor far from it" awk -F, \
	'NR > 1 && ($5 < $8 || $5 > 2 * $8) { bad = 1 } END { exit bad || NR != 3 }' "$work/times.csv"
expect "1056 GPUs, alltoall: its lines say so" sh -c \
	"'$blinkc' simulate '$work/large.json' --size 64M | grep -q '(at least)'"
expect_exit "1056 GPUs, alltoall: no trace" 4 \
	"$blinkc" simulate "$work/large.json" --size 64M --trace "$work/trace.json"

# Each of the 24 GPUs of a group has paths of its own; lengths prove the rate, in fractions that fit.
"$blinkc" --synthetic "dragonfly:4x6x3@25" -c alltoall -o "$work/pairs.json" 2>"$work/err" ||
	not_ok "456 GPUs at a dragonfly, alltoall: exit $?: $(cat "$work/err")"
expect "456 GPUs at a dragonfly, alltoall: what lengths prove" \
	grep -q "^bound       19.4727 GB/s, proven by lengths" "$work/err"
expect "456 GPUs at a dragonfly, alltoall: at it" grep -qE "^ratio       (0.99999[0-9]|1.000)" "$work/err"
expect "456 GPUs at a dragonfly, alltoall: valid" "$blinkc" check -q "$work/pairs.json"

# pairs NAME GPUS MACHINE: at the bound, of which a cut is the proof; paths of all pairs from those of one GPU
pairs() {
	local n=$2
	"$blinkc" --synthetic "$3" -c alltoall -o "$work/pairs.json" 2>"$work/err" ||
		not_ok "$1, alltoall: exit $?: $(cat "$work/err")"
	expect "$1, alltoall: trees" grep \
		-q "^trees       $((n * (n - 1))), depth [12]; images of $((n - 1)) under a group of $n\$" "$work/err"
	expect "$1, alltoall: at the bound" grep -q "^ratio       1.000" "$work/err"
	expect "$1, alltoall: valid" "$blinkc" check -q "$work/pairs.json"
	expect "$1, alltoall: shown" "$blinkc" show "$work/pairs.json" -o "$work/shown"
	expect "$1, alltoall: is itself" "$blinkc" diff "$work/pairs.json" "$work/pairs.json"
	if [ $((n * (n - 1))) -gt 524288 ]; then
		expect_exit "$1, alltoall: a list" 4 \
			"$blinkc" convert "$work/pairs.json" --format json -o "$work/x.json"
		expect "$1, alltoall: what it says" grep -qF "$((n * (n - 1))) trees with " "$work/err"
	else
		expect "$1, alltoall: a list" "$blinkc" convert "$work/pairs.json" --format json -o "$work/x.json"
		expect "$1, alltoall: it is valid" "$blinkc" check -q "$work/x.json"
	fi
}
if [ "$full" ]; then
	pairs "512 GPUs below leaves" 512 "server:64 gpu:8 switch:300 net:25 leaf:8 oversubscription:2"
	pairs "512 GPUs of slow switches" 512 "server:64 gpu:8 switch:20 net:25 rails"
	pairs "1024 GPUs on rails" 1024 "server:128 gpu:8 switch:300 net:25 rails"
	pairs "4096 GPUs on rails" 4096 "server:512 gpu:8 switch:300 net:25 rails"
fi
pairs "512 GPUs with NICs" 512 "server:64 gpu:8 switch:300 nic:4@25 pcie:24"
pairs "512 GPUs on rails" 512 "server:64 gpu:8 switch:300 net:25 rails"
sed 's/\["[0-9/]*", *"\([0-9/]*\)"\]/["0\/1", "\1"]/' "$work/pairs.json" >"$work/x.json"
expect_exit "paths in one block: invalid" 6 "$blinkc" check -q "$work/x.json"

# torus SIDE@RATE...: shortest paths fill the slowest side evenly in both directions: the bound, by lengths
torus() {
	"$python" - "$@" >"$work/torus.json" <<'END' || not_ok "a torus"
import itertools, json, sys
sides = [[int(x) for x in word.split("@")] for word in sys.argv[1:]]
cells = list(itertools.product(*(range(side) for side, _ in sides)))
print(json.dumps({
    "format": "blink-topology", "version": 1, "name": "torus",
    "nodes": [{"id": "n", "gpus": [{"id": f"g{i}"} for i in range(len(cells))]}],
    "links": [{"from": f"g{cells.index(cell)}", "class": "nvlink", "capacity": rate, "duplex": "full",
               "to": f"g{cells.index(cell[:axis] + ((cell[axis] + 1) % side,) + cell[axis + 1:])}"}
              for cell in cells for axis, (side, rate) in enumerate(sides)]}))
END
	local rate
	rate=$("$python" -c "print('%.6g' % min(2 * side * rate / (side * side // 4)
		for side, rate in [map(int, word.split('@')) for word in '$*'.split()]))")
	"$blinkc" "$work/torus.json" -c alltoall -o "$work/pairs.json" 2>"$work/err" ||
		not_ok "torus $*, alltoall: exit $?: $(cat "$work/err")"
	expect "torus $*, alltoall: the rate" grep -q "^rate        $rate GB/s" "$work/err"
	expect "torus $*, alltoall: at the bound" grep -q "^bound       $rate GB/s, proven by lengths" "$work/err"
	expect "torus $*, alltoall: valid" "$blinkc" check -q "$work/pairs.json"
	shallow "$(("$(printf '%s\n' "$@" | sed 's,@.*,/2,' | paste -sd+)"))"
}
# shallow DEPTH [OPTION...]: of the torus, allgather: the bound, exactly, by trees of the least depth
shallow() {
	"$blinkc" "$work/torus.json" -c allgather "${@:2}" -o "$work/gathered.json" 2>"$work/err" ||
		not_ok "torus, allgather ${*:2}: exit $?: $(cat "$work/err")"
	expect "torus, allgather ${*:2}: depth $1" grep -q "^trees .* depth $1\($\|;\)" "$work/err"
	expect "torus, allgather ${*:2}: at the bound" grep -q "^ratio       1.000$" "$work/err"
	expect "torus, allgather ${*:2}: proven" bash -c "! grep '^unproven' '$work/err'"
	expect "torus, allgather ${*:2}: valid" "$blinkc" check -q "$work/gathered.json"
}
torus 5@10 6@20 13@40
torus 8@50 8@50 8@50
shallow 12 --without g5
# Lengths that the symmetries do not keep are searched from every GPU: here those around the first would do alone.
"$python" - "$work/pairs.json" >"$work/x.json" <<'END' || not_ok "lengths that differ"
import fractions, json, sys
doc = json.load(open(sys.argv[1]))
links, rate = doc["topology"]["links"], doc["rate"]
length = [fractions.Fraction(each) * (10 if link["from"] == 0 else fractions.Fraction(9, 10))
          for each, link in zip(rate["certificate"]["length"], links)]
rate["certificate"]["length"] = [f"{each.numerator}/{each.denominator}" for each in length]
rate["bound"] = float(sum(each * fractions.Fraction(str(link["capacity"])) for each, link in zip(length, links)))
json.dump(doc, sys.stdout)
END
expect_exit "lengths that the symmetries do not keep" 6 "$blinkc" check "$work/x.json"
expect "lengths that the symmetries do not keep: what it says" grep -q "a tree costs less than 1" "$work/err"
if [ "$full" ]; then
	torus 20@50 20@50
	torus 16@25 16@25 4@25
	torus 32@50 64@50
	torus 12@50 12@50 12@50
	torus 15@7 16@11 17@13
fi
expect_exit "8200 GPUs, alltoall" 4 rails 1025 alltoall
expect "8200 GPUs, alltoall: what it says" grep -qF "alltoall over 8200 GPUs, with a tree for each pair of them: "\
"want at most 524288 trees, or 67108864 of symmetric servers" "$work/err"

# Without a symmetry there is a list. lost MACHINE GPUS RATE LOST: direct paths are at the bound of the server that lost
# one.
lost() {
	expect "$1 without $4, alltoall" bash -c "ulimit -t 10
		exec '$blinkc' --synthetic '$1' --without $4 -c alltoall -o '$work/x.json' 2>'$work/err'"
	expect "$1 without $4: a path for each pair" grep -q "^trees       $(($2 * ($2 - 1))), depth 1$" "$work/err"
	expect "$1 without $4: the rate" grep -q "^rate        $3 GB/s" "$work/err"
	expect "$1 without $4: the bound" grep -q "^bound       $3 GB/s, proven by a cut for any algorithm" "$work/err"
	expect "$1 without $4: valid" "$blinkc" check -q "$work/x.json"
}
# n GPUs, k in the server that lost some: each of its NICs has to send n - k of n blocks.
lost "server:64 gpu:8 switch:300 net:25" 511 25.3472 s5/gpu3
if [ "$full" ]; then
	lost "server:8 gpu:72 switch:900 net:50" 575 57.0437 s5/gpu3
	lost "server:8 gpu:72 switch:900 net:50" 573 56.9583 s5/gpu3,s5/gpu4,s2/gpu0
	lost "server:16 gpu:36 switch:900 net:50" 575 53.2407 s15/gpu35
fi
# lost_gpus LOST: an allreduce over so many ranks that a schedule has no room for the edges of a tree of each.
lost_gpus() {
	expect "28 servers of 72 GPUs without $1, allreduce" bash -c "ulimit -t 20
		exec '$blinkc' --synthetic 'server:28 gpu:72 switch:900 net:50' --without $1 -c allreduce \
		-o '$work/x.json' 2>'$work/err'"
	expect "28 servers of 72 GPUs without $1: depth" grep -q "^trees .* depth 6$" "$work/err"
	expect "28 servers of 72 GPUs without $1: within 1e-5 of the bound" \
		grep -q "^ratio       0.99999[0-9]$" "$work/err"
	expect "28 servers of 72 GPUs without $1: valid" "$blinkc" check -q "$work/x.json"
}
if [ "$full" ]; then
	lost_gpus s5/gpu3
	lost_gpus s5/gpu3,s9/gpu1
fi
# Where a list is too long, all paths are images of those of servers that lost parts, and of one of the others.
# without_parts MACHINE LOST RATE TREES: at the bound; another program adds up all images, and the cut
without_parts() {
	expect "$1 without $2, alltoall" bash -c "ulimit -t 60
		exec '$blinkc' --synthetic '$1' --without $2 -c alltoall -o '$work/x.json' 2>'$work/err'"
	expect "$1 without $2: images" grep -q "^trees .* images of $4 under a group" "$work/err"
	expect "$1 without $2: the bound" grep -q "^bound       $3 GB/s, proven by a cut for any algorithm" "$work/err"
	expect "$1 without $2: at it" awk '/^ratio/ { found = $2 >= 0.99999 } END { exit !found }' "$work/err"
	expect "$1 without $2: valid" "$blinkc" check -q "$work/x.json"
	expect "$1 without $2: shown" "$blinkc" show "$work/x.json" -o "$work/shown"
	expect "$1 without $2: is itself" "$blinkc" diff "$work/x.json" "$work/x.json"
	oracle pairs "$work/x.json" >"$work/sums" || not_ok "$1 without $2: $(cat "$work/sums")"
	expect "$1 without $2: by another program" awk -v want="$3" '{ rate = $1 / want; bound = $2 / want
		exit !(rate > 0.99999 && rate < 1.00001 && bound > 0.99999 && bound < 1.00001) }' "$work/sums"
}
# n GPUs, k in the server that lost some, with l NICs: k (n - k) / n of M leave it.
without_parts "server:96 gpu:8 switch:300 net:25" s5/gpu3 25.2303 6226
without_parts "server:32 gpu:36 switch:900 net:50 rails" s5/gpu3-net/rail3 50.1792 44060
if [ "$full" ]; then
	without_parts "server:32 gpu:36 switch:900 net:50" s5/gpu3 51.5681 43850
	without_parts "server:32 gpu:36 switch:900 net:50 rails" s5/gpu3,s9/gpu7-net/rail7,s20:8-11 50.1863 55538
	without_parts "server:16 gpu:72 switch:900 net:50 rails" s5/gpu3-net/rail3 52.5926 93308
	without_parts "server:32 gpu:72 switch:900 net:50" s5/gpu3,s9/gpu1-net 50.8968 196486
fi
# Of many servers that lost different parts there are too many pairs; where many lost the same, the others stay.
some=$(for i in {0..21}; do echo "s$i/gpu$i"; done | paste -sd,)
racks="server:32 gpu:36 switch:900 net:50"
[ ! "$full" ] || without_parts "$racks" "$some" 51.5982 181355
# ---- an alltoall: trees into each rank ----

# into MACHINE LOST RATE [RATIO]: near the bound, or at that ratio of it; RATE is what is printed of the bound
into() {
	expect "$1 without $2, alltoall" bash -c "ulimit -t 100
		exec '$blinkc' --synthetic '$1' --without $2 -c alltoall -o '$work/x.json' 2>'$work/err'"
	expect "$1 without $2: trees" grep -q "^trees .* into each rank\$" "$work/err"
	expect "$1 without $2: it says so" grep -q "^compact .* version 3 of the format" "$work/err"
	expect "$1 without $2: the bound" grep -q "^bound       $3 GB/s, proven by" "$work/err"
	expect "$1 without $2: near it" awk -v least="${4:-0.9999}" \
		'/^ratio/ { found = $2 >= least } END { exit !found }' "$work/err"
	expect "$1 without $2: valid" "$blinkc" check -q "$work/x.json"
	expect "$1 without $2: the schema" oracle validate schemas/schedule.schema.json "$work/x.json"
	expect "$1 without $2: shown" "$blinkc" show "$work/x.json" -o "$work/shown"
	expect "$1 without $2: is itself" "$blinkc" diff "$work/x.json" "$work/x.json"
	expect_exit "$1 without $2: a list" 4 "$blinkc" convert "$work/x.json" --format json -o "$work/y.json"
	expect "$1 without $2: what it says" grep -qF ", where all are listed: want at most" "$work/err"
}
# Of a mesh its shortest paths alone have too many edges. Another program walks all paths.
into "torus:36x18@25 open:2" s5/gpu0 2.78208
oracle in_trees "$work/x.json" >"$work/sums" || not_ok "a mesh of 36 x 18: $(cat "$work/sums")"
expect "a mesh of 36 x 18: by another program" awk '{ exit !($1 > 2.7818 && $1 <= $2 && $2 < 2.7822) }' "$work/sums"
if [ "$full" ]; then
	into "torus:16x16x4@50" s5/gpu0 24.829
	into "dragonfly:4x8x4@25" s5/gpu0 25.0237
	into "hammingmesh:2x2x16x16@25" s5/gpu0 26.6406 1
	into "hammingmesh:2x2x14x16@25" s3/gpu0,s77/gpu0 26.6389 1
	into "torus:12x12x12@25" s5/gpu0 16.6184
	into "fattree:16x16x16@25 oversubscription:2" s5/gpu0 6.66678 1
	# Links of the group that lost a GPU have half the price of others: 16,384 blocks of a pair of groups, 128 / 31
	# of them by way of that group, over 4 links. In a row that lost one 127 GPUs have as many links.
	into "dragonfly:8x16x8@25 groups:32" s5/gpu0 25.0002
	into "hammingmesh:2x2x32x32@25" s1569/gpu0,s3002/gpu0,s3864/gpu0 25.8006 0.99999
	into "torus:17x51@25" s5/gpu0 3.81192
fi
# Of servers that lost different numbers of GPUs images would have too many edges at those that stay.
uneven=$(for s in {0..159}; do
	at=$((3 + (7 * s + s * s / 3) % 6))
	[ $at = 8 ] || echo "s$s:$at-7"
done | paste -sd,)
[ ! "$full" ] || into "server:160 gpu:8 mesh:50 net:25 rails" "$uneven" 25.0948
# A small one is listed, and each rank loads its part.
ring=tests/fuzz/corpus/fuzz_schedule/compact-into.json
expect "into each rank of a ring: valid" "$blinkc" check -q $ring
expect "into each rank of a ring: a list" "$blinkc" convert $ring --format json -o "$work/list.json"
expect "into each rank of a ring: valid" "$blinkc" check -q "$work/list.json"
expect "into each rank of a ring: diff of both forms" "$blinkc" diff $ring "$work/list.json"
oracle in_trees $ring --list "$work/list.json" >"$work/sums" || not_ok "into each rank of a ring: $(cat "$work/sums")"
timeout 120 "$perf" --ranks 4 --threads-as-ranks $ring -b 64K -e 64K -n 1 -w 0 >"$work/ring.log" 2>&1 ||
	not_ok "blink-perf of ranks, into each rank of a ring: exit $?"
expect "each rank of a ring loads its part" grep -q '^# Out of bounds values : 0 OK' "$work/ring.log"
expect "into each rank of a ring: by another program" grep -qx "20 20" "$work/sums"

# ---- an allgather or reducescatter: trees of numbered edges ----

# Of 1450 ranks 64 trees each, which differ in nothing: a short file, but a long walk. It is refused before.
python3 - 1450 >"$work/many.json" <<'END'
import sys
from fractions import Fraction
n = int(sys.argv[1])
print('{ "format": "blink-schedule", "version": 3, "generator": {"name": "hand", "version": "1", "options": {}},')
print('"topology": {"name": "ring", "digest": "sha256:0", "ranks": [')
print(*(f'{{"gpu": "g{r}", "node": "n"}}' for r in range(n)), sep=", ", end='], "links": [')
for r in range(n):
    print(f'{{"from": {r}, "to": {(r + 1) % n}, "class": "net", "capacity": 1, "latency": 1}}' + "," * (r < n - 1))
print(']}, "collective": "allgather", "root": null, "algorithm": "trees", "rate": {"achieved": 1, "bound": 1,')
print('"certificate": {"kind": "cut", "side": [0]}}, "edges": [')
print(*([r, (r + 1) % n, [r]] for r in range(n)), sep=", ", end='], "trees": [\n')
trees = [(r, Fraction(k, 64), [(v - 1) % n for v in range(n) if v != r and k == 0])
         for r in range(n) for k in range(64)]
print(*(f'{{"root": {r}, "segment": ["{at.numerator}/{at.denominator}", "1/64"], "edges": {edges}}}'
        for r, at, edges in trees), sep=",\n", end="]}\n")
END
expect_exit "many trees of numbered edges" 4 bash -c "ulimit -t 5
	exec '$blinkc' check -q '$work/many.json' 2>'$work/err'"
expect "many trees of numbered edges: what it says" grep -qF \
	"trees: 92800 over 1450 GPUs and switches: more than 2000000000 steps to verify them: want" "$work/err"

for c in allgather reducescatter; do
	ring=tests/fuzz/corpus/fuzz_schedule/compact-numbered.json way=from
	[ $c = allgather ] || ring=${ring%.json}-up.json way=into
	expect "numbered edges, $c: valid" "$blinkc" check -q $ring
	expect "numbered edges, $c: the schema" oracle validate schemas/schedule.schema.json $ring
	expect "numbered edges, $c: what check says" bash -c "'$blinkc' check $ring |
		grep -qx 'trees       8, depth 2 $way each rank'"
	expect "numbered edges, $c: a list" "$blinkc" convert $ring --format json -o "$work/list.json"
	expect "numbered edges, $c: valid" "$blinkc" check -q "$work/list.json"
	expect "numbered edges, $c: diff of both forms" "$blinkc" diff $ring "$work/list.json"
	expect "numbered edges, $c: simulated" "$blinkc" simulate $ring --size 64K -o "$work/times"
	expect "numbered edges, $c: of the list" "$blinkc" simulate "$work/list.json" --size 64K -o "$work/times-list"
	expect "numbered edges, $c: the same times" cmp "$work/times" "$work/times-list"
	oracle numbered $ring --list "$work/list.json" >"$work/sums" || not_ok "numbered edges, $c: $(cat "$work/sums")"
	expect "numbered edges, $c: by another program" grep -qx "26.6666667 26.6666667" "$work/sums"
	timeout 120 "$perf" --ranks 4 --threads-as-ranks $ring -b 64K -e 64K -n 1 -w 0 >"$work/ring.log" 2>&1 ||
		not_ok "blink-perf of ranks, numbered edges, $c: exit $?"
	expect "numbered edges, $c: each rank loads its part" grep -q '^# Out of bounds values : 0 OK' "$work/ring.log"
done

# What no planner serves is refused before a bound is searched for, which would take minutes of a maximum flow for each
# GPU. refused_soon NAME COLLECTIVE WHAT
{
	echo '<topology format="blink-topology" version="1" name="path"><node id="n">'
	seq -f '<gpu id="g%.0f"/>' 0 19999
	echo '</node>'
	seq 1 19999 | awk '{ printf "<link from=\"g%d\" to=\"g%d\" class=\"nvlink\" capacity=\"1\"/>\n", $1 - 1, $1 }'
	echo '</topology>'
} >"$work/path.xml"
refused_soon() {
	expect_exit "$1" 4 bash -c "ulimit -t 20; exec '$blinkc' '$work/path.xml' -c $2 -o '$work/x.json'"
	expect "$1: what it says" grep -qF "$2 over 20000 GPUs$3" "$work/err"
}
refused_soon "a path of 20000 GPUs" allreduce ": want at most 4096, or symmetric servers"
refused_soon "a path of 20000 GPUs, from one" broadcast ": want at most 4096, or servers with a switch"
refused_soon "a path of 20000 GPUs, all pairs" alltoall ", with a tree for each pair of them: want at most 524288 trees"
expect_exit "too many edges of a torus that lost a GPU, within a depth" 4 bash -c "ulimit -t 10; exec '$blinkc' \
	--synthetic 'torus:16x16x16@25' --without s5/gpu0 -c allgather --max-depth 40 -o '$work/x.json'"
expect "too many edges of a torus that lost a GPU, within a depth: what it says" grep -qF \
	"allgather over 4095 ranks: want a schedule of at most 524288 trees and 4194304 edges" "$work/err"

# Few symmetries: the bound is that of whole servers, or of single GPUs.
unequal="server:513 gpu:8 switch:300 net:25 rails"
expect "4103 of 4104 GPUs" bash -c "ulimit -t 60; exec '$blinkc' --synthetic '$unequal' -g 0-4102 -o '$work/x.json'"
cp "$work/out" "$work/err"
expect "4103 of 4104 GPUs: near the bound" awk '/^ratio/ { found = $2 >= 0.997 } END { exit !found }' "$work/err"
expect "4103 of 4104 GPUs: valid" "$blinkc" check -q "$work/x.json"

# Where a GPU is missing, its server is entered over seven rails in turn: trees of one round have half of the rate.
# without_one COLLECTIVE MACHINE GPUS
without_one() {
	expect "$1 over $3 of $2" bash -c "ulimit -t 60; exec '$blinkc' --synthetic '$2' -g $3 -c $1 -o '$work/x.json'"
	cp "$work/out" "$work/err"
	expect "$1 over $3 of $2: at the bound" grep -q "^ratio       1.000" "$work/err"
	expect "$1 over $3 of $2: images" grep -q "^trees  .*; images of [0-9]* under a group of [0-9]*\$" "$work/err"
	expect "$1 over $3 of $2: valid" "$blinkc" check -q "$work/x.json"
}
lost="server:512 gpu:8 switch:300 net:25"
without_one allgather "$lost rails" 0-4094
[ ! "$full" ] || without_one reducescatter "$lost rails" 0-4094
[ ! "$full" ] || without_one allgather "$lost" 1-4093
[ ! "$full" ] || without_one allgather "server:2048 gpu:8 switch:300 net:25 rails" 0-16382

# Racks whose switches and NICs both limit the rate, one of which lost a GPU or a tray; and a NIC.
# images COLLECTIVE MACHINE LOST
images() {
	expect "$1 over $2 without $3" bash -c "ulimit -t 60; exec '$blinkc' --synthetic '$2' --without $3 -c $1 \
		-o '$work/x.json'"
	cp "$work/out" "$work/err"
	expect "$1 over $2 without $3: within 1e-4 of the bound" grep -qE "^ratio       (1.000|0.9999)" "$work/err"
	expect "$1 over $2 without $3: few hops" grep -qE "^trees  .*, depth [2-6]; images of " "$work/err"
	expect "$1 over $2 without $3: valid" "$blinkc" check -q "$work/x.json"
}
images reducescatter "server:512 gpu:8 switch:300 net:25 rails" s0/gpu3,s7/gpu1,s9/gpu0
[ ! "$full" ] || images allgather "server:56 gpu:72 switch:900 net:50" s0/gpu3
[ ! "$full" ] || images reducescatter "server:56 gpu:72 switch:900 net:50 rails" s0:4-7
[ ! "$full" ] || images allgather "server:512 gpu:8 switch:300 nic:4@25 pcie:32" nic:s0/nic3

# ---- behind PCIe switches, each of which leads to every GPU ----

# nics COLLECTIVE MACHINE TREES
nics() {
	expect "$1 behind PCIe switches" "$blinkc" --synthetic "$2" -c "$1" -o "$work/x.json"
	cp "$work/out" "$work/err"
	expect "$1 behind PCIe switches: trees" grep -q "^trees       $3\$" "$work/err"
	expect "$1 behind PCIe switches: at the bound" grep -q "^ratio       1.000" "$work/err"
	expect "$1 behind PCIe switches: valid" "$blinkc" check -q "$work/x.json"
}
[ ! "$full" ] || nics allreduce "server:513 gpu:8 switch:300 nic:8@25 pcie:24 rails" \
	"4104, depth 4; images of 1 under a group of 4104"
nics reducescatter "server:513 gpu:8 switch:300 nic:4@50 pcie:24" "4104, depth 2; images of 1 under a group of 4104"
[ ! "$full" ] || nics allgather "server:2048 gpu:8 switch:300 nic:8@25 pcie:24 rails" \
	"16384, depth 2; images of 1 under a group of 16384"
if [ "$full" ]; then
	expect_exit "65536 GPUs with a NIC each" 4 "$blinkc" -q --synthetic \
		"server:8192 gpu:8 switch:300 nic:8@25 pcie:24 rails" -o "$work/x.json"
	expect "65536 GPUs with a NIC each: what it says" grep -qF \
		"335880 vertices of a job over 65536 GPUs: want at most 262144" "$work/err"
fi

expect_exit "of limited depth" 4 "$blinkc" -q --synthetic "server:1024 gpu:8 switch:300 net:25" \
	--max-depth 3 -o "$work/x.json"
expect_exit "by another algorithm" 4 "$blinkc" -q --synthetic "server:1024 gpu:8 switch:300 net:25" \
	-a ring -o "$work/x.json"
