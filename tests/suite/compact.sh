# Compact schedules: the same as their lists of trees to all that read them, and small and fast where a list is too long.
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
	expect "$name: listed by another program, its trees are valid" oracle images "$work/compact.json" "$work/other.json"
	expect "$name: in a replay, too" oracle replay "$work/other.json"
	expect "$name: the list is that of the default" oracle images "$work/compact.json" --same "$work/list.json"
	expect "$name: converted to a list" "$blinkc" convert "$work/compact.json" -o "$work/back.json"
	expect "$name: which is the same" oracle images "$work/compact.json" --same "$work/back.json"
	expect "$name: diff of both forms" "$blinkc" diff "$work/list.json" "$work/compact.json"
	expect "$name: and the other way" "$blinkc" diff "$work/compact.json" "$work/back.json"
	expect "$name: folded" "$blinkc" convert "$work/back.json" --format compact -o "$work/again.json"
	expect "$name: into the same trees" sh -c "[ \"\$(sed '1,/\"symmetry\"/d' '$work/compact.json')\" = \"\$(sed '1,/\"symmetry\"/d' '$work/again.json')\" ]"
}

both "rails, allreduce" --synthetic "server:4 gpu:4 switch:300 net:25 rails"
both "rails, allgather" --synthetic "server:4 gpu:4 switch:300 net:25 rails" -c allgather
both "rails, alltoall" --synthetic "server:3 gpu:4 switch:300 net:25 rails" -c alltoall
both "NICs, reducescatter" --synthetic "server:4 gpu:4 switch:300 nic:2@25 pcie:24" -c reducescatter
[ ! "$full" ] || both "SuperPOD, allreduce" topologies/superpod-h100.xml -g 0-127

for verb in show simulate "convert --format msccl" "convert --format cu"; do
	# shellcheck disable=SC2086 # words
	"$blinkc" $verb "$work/list.json" 2>&1 | sed 's/list.json/FILE/; s/sha256:[0-9a-f]*/DIGEST/; s/file is [^ ]*/FILE/' >"$work/want"
	# shellcheck disable=SC2086
	"$blinkc" $verb "$work/compact.json" 2>&1 | sed 's/compact.json/FILE/; s/sha256:[0-9a-f]*/DIGEST/; s/file is [^ ]*/FILE/' >"$work/got"
	if [ -s "$work/want" ] && cmp -s "$work/want" "$work/got"; then ok "$verb of both"; else
		not_ok "$verb: differs: $(diff "$work/want" "$work/got" | head -3)"
	fi
done
for form in list compact; do
	"$perf" "$work/$form.json" -b 64K -e 64K -n 1 -w 0 -o all >"$work/$form.log" 2>&1 || not_ok "blink-perf, $form: exit $?"
	expect "libblink runs a $form" grep -q '^# Out of bounds values : 0 OK' "$work/$form.log"
	timeout 120 "$perf" --ranks 16 --threads-as-ranks "$work/$form.json" -b 64K -e 64K -n 1 -w 0 >"$work/$form.log" 2>&1 ||
		not_ok "blink-perf of ranks, $form: exit $?"
	expect "each rank loads its part of a $form" grep -q '^# Out of bounds values : 0 OK' "$work/$form.log"
done

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
	expect "$n GPUs, $2: what it says" grep -qF "$n trees with $3 edges, where all are listed: want at most 131072 and 4194304" "$work/err"
}

long 256 allreduce 8384512
expect_exit "2048 GPUs, allreduce: run by one process" 4 "$perf" "$work/allreduce.json" -b 64K -e 64K -n 1 -w 0
expect "2048 GPUs, allreduce: what it says" grep -qF "2048 trees with 8384512 edges, where all are listed: want at most" "$work/err"
if [ "$full" ]; then
	long 2048 allreduce 536838144
	long 2048 allgather 268419072
	long 2048 reducescatter 268419072
fi
expect_exit "8192 GPUs from a root" 4 rails 1024 broadcast
expect_exit "of limited depth" 4 "$blinkc" -q --synthetic "server:1024 gpu:8 switch:300 net:25" --max-depth 3 -o "$work/x.json"
expect_exit "by another algorithm" 4 "$blinkc" -q --synthetic "server:1024 gpu:8 switch:300 net:25" -a ring -o "$work/x.json"
