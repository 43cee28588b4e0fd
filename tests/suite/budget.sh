# --budget holds, whatever phase runs, and what is written is valid. Limits are of CPU time, which is no more than time.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# within NAME MS OPTION...: the plan of $work/t.json takes at most a second, or a tenth, more
within() {
	local name="$1, $2 ms" ms=$2 cpu
	shift 2
	cpu=$({ TIMEFORMAT='%U %S'; time "$blinkc" "$work/t.json" --budget "${ms}ms" -o "$work/s.json" "$@" 2>"$work/err"; } 2>&1)
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
within "320 GPUs, allgather" 300 -c allgather
within "320 GPUs, broadcast, mwu" 300 -c broadcast -p mwu
within "320 GPUs, trees of limited depth" 300 -c allreduce --max-depth 12
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
expect "no other bytes with time to spare" test "$(grep -v '"budget"\|"minimise"' "$work/b.json")" = "$(grep -v '"minimise"' "$work/a.json")"
