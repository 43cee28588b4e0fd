# --budget holds, whatever phase runs, and what is written is valid. Limits are of CPU time, which is no more than time.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# within NAME MS OPTION...: the plan of $work/t.json takes at most a second, or a tenth, more
within() {
	local name="$1, $2 ms" ms=$2 cpu
	shift 2
	cpu=$({ TIMEFORMAT='%U %S'; time "$blinkc" "$work/t.json" --budget "${ms}ms" -o "$work/s.json" \
		"$@" 2>"$work/err"; } 2>&1)
	if ! "$blinkc" check -q "$work/s.json" 2>"$work/out"; then
		not_ok "$name: $(tail -1 "$work/err") $(cat "$work/out")"
	elif awk -v ms="$ms" -v cpu="$cpu" 'BEGIN { split(cpu, t, " "); more = ms / 10 > 1000 ? ms / 10 : 1000
		exit !((t[1] + t[2]) * 1000 <= ms + more) }'; then
		ok "$name"
	else
		not_ok "$name: $cpu s of CPU time, user and system"
	fi
	rm -f "$work/s.json"
}

# Sparse: the bound alone takes 14 s of CPU time.
oracle sparse 1024 3 1 >"$work/t.json"
within "1024 GPUs, allreduce" 300 -c allreduce
for part in 'cut short "symmetries and bound"' "more time may find up to"; do
	expect "a line says what the budget cost" grep -q "^budget      0.3 s, .*$part" "$work/err"
done
for c in ${full:+broadcast reduce gather scatter allgather reducescatter}; do within "1024 GPUs, $c" 1000 -c "$c"; done

# Dense: so does each round of the linear program, and of multiplicative weights.
oracle sparse 320 60 1 >"$work/t.json"
within "320 GPUs, allreduce" 300 -c allreduce
[ ! "$full" ] || within "320 GPUs, allgather" 300 -c allgather
within "320 GPUs, broadcast, mwu" 300 -c broadcast -p mwu
[ ! "$full" ] || within "320 GPUs, trees of limited depth" 300 -c allreduce --max-depth 12
for c in ${full:+broadcast reduce gather scatter reducescatter}; do within "320 GPUs, $c" 300 -c "$c"; done
if [ "$full" ]; then
	oracle sparse 512 64 2 >"$work/t.json"
	for c in allreduce reducescatter; do within "512 GPUs, $c" 2000 -c "$c"; done
fi

# Nothing is cut short: no line, the same bytes but for the option, and an hour where none is given.
ask=(topologies/dgx1v.xml)
[ "$full" ] || ask+=(-g 0-4,6)
"$blinkc" "${ask[@]}" -o "$work/a.json" 2>"$work/err"
expect "no budget line" test -z "$(grep ^budget "$work/err")"
"$blinkc" "${ask[@]}" --budget 10m -o "$work/b.json" 2>"$work/err"
expect "no budget line with time to spare" test -z "$(grep ^budget "$work/err")"
expect "no other bytes with time to spare" test \
	"$(grep -v '"budget"\|"minimise"' "$work/b.json")" = "$(grep -v '"minimise"' "$work/a.json")"

# ---- simulations ----

# stops NAME MS TEXT COMMAND...: exit status 4 and a line with the text, after at most 1 s of CPU time more than the
# budget
stops() {
	local name="$1, $2 ms" ms=$2 text=$3 cpu
	cpu=$({ TIMEFORMAT='%U %S'; time "${@:4}" --budget "${ms}ms" >"$work/out" 2>"$work/err"; echo \
		$? >"$work/code"; } 2>&1)
	if [ "$(cat "$work/code")" != 4 ] || ! one_line "$work/err" || ! grep -qE -- "$text" "$work/err"; then
		not_ok "$name: exit $(cat "$work/code"): $(head -c 300 "$work/err")"
	elif awk -v ms="$ms" -v cpu="$cpu" \
		'BEGIN { split(cpu, t, " "); exit !((t[1] + t[2]) * 1000 <= ms + 1000) }'; then
		ok "$name"
	else
		not_ok "$name: $cpu s of CPU time, user and system"
	fi
}

# Steps that enter one queue, most of them in its middle: a minute of CPU time for a hundred thousand.
oracle hostile unequal_trees 60000 "$work/unequal" >/dev/null
echo '{"kernel": {"at_once": 0, "by_length": 0, "step": 0}}' >"$work/p.json"
simulate=("$blinkc" simulate "$work/unequal/x.json" --parameters "$work/p.json" --size 64M)
stops "steps in one queue" 300 '^blinkc: --budget: 300ms: m: a message of 67108864 bytes in chunks of 2237: '\
'60000 steps to simulate, [0-9]+ of them begun: want more time, or larger chunks$' "${simulate[@]}"
stops "steps in one queue, which are kept" 300 ' steps to simulate, ' "${simulate[@]}" --trace "$work/trace"
expect "no trace of half a simulation" test ! -e "$work/trace"
# Millions of steps.
"$blinkc" -q topologies/two-dgx1v.xml -g s0:0-3,s1:0-2 -o "$work/s.json"
stops "many chunks" 200 'bytes in chunks of 4096: [0-9]{7,} steps to simulate, [0-9]+ of them begun: ' "$blinkc" \
	simulate "$work/s.json" --size 4G --chunk 4K
stops "many sizes" 100 '^blinkc: --budget: 100ms: two-dgx1v: ' "$blinkc" simulate "$work/s.json" --size 1M-512G
"$blinkc" -q dgx1v -g 0-3 --format msccl -o "$work/m.xml"
stops "messages of MSCCL" 200 ' steps to simulate, ' "$blinkc" simulate -q "$work/m.xml" --topology dgx1v \
	-g 0-3 --size 4G --chunk 4K
"$blinkc" simulate "$work/s.json" --size 1M >"$work/sim.a" 2>&1
"$blinkc" simulate "$work/s.json" --size 1M --budget 10m >"$work/sim.b" 2>&1
expect "no other results with time to spare" cmp "$work/sim.a" "$work/sim.b"

# How many steps it would be: chunks of a byte, those of 60000 segments rounded up, on one edge; and on 14.
most=1152921504606846976
expect_exit "too many steps, by their number" 4 "$blinkc" simulate "$work/unequal/x.json" --size $most --chunk 1
expect "their number" grep \
	-q "in chunks of 1: 11529215046068[0-9]* steps to simulate: want at most 268435456, by larger chunks" \
	"$work/err"
expect_exit "too many steps for 64 bits" 4 "$blinkc" simulate "$work/a.json" --size $most --chunk 1
expect "no number of more than 64 bits" grep \
	-q "in chunks of 1: more than 9223372036854775807 steps to simulate: want at most" "$work/err"

[ "$full" ] || exit 0
# The choice of an algorithm takes what is simulated by then, and what has no shorter way: 3.3 to 4.1 s in all, where it
# took 7 s more.
cpu=$({ TIMEFORMAT='%U %S'; time "$blinkc" -q --synthetic "server:32 gpu:8 switch:300 net:25" --size 1G --budget 1s \
	-o "$work/s.json" 2>"$work/err"; } 2>&1)
expect "the choice of an algorithm, 1 s: valid" "$blinkc" check -q "$work/s.json"
if awk -v cpu="$cpu" 'BEGIN { split(cpu, t, " "); exit !(t[1] + t[2] <= 6) }'; then
	ok "the choice of an algorithm, 1 s: in time"
else
	not_ok "the choice of an algorithm, 1 s: $cpu s of CPU time, user and system"
fi
