# Servers that are alike: boxes of A100 up to 1024 GPUs and of MI250, at the rates that are known for them, flat, and each rank's
# trees alike; boxes with a GPU missing; GPUs in any order.
. tests/lib.sh

# plan NAME TOPOLOGY "RATE DEPTH" OPTIONS...: the rate in GB/s, which is the bound, and no more than so many hops
plan() {
	local name=$1 topology=$2 want=$3 got
	shift 3
	if ! "$blinkc" "$topology" "$@" -o "$work/s.json" 2>"$work/err"; then
		not_ok "$name: $(cat "$work/err")"
		return
	fi
	got=$(awk '/^trees/ { d = $4 } /^rate/ { r = $2 } /^bound/ { b = $2 } /^ratio/ { x = $2 } END { print r, b, x, d }' "$work/err")
	if awk -v got="$got" -v want="$want" 'BEGIN { split(got, g, " "); split(want, w, " ")
		exit !(g[1] == w[1] && g[2] == w[1] && g[3] == "1.000" && g[4] <= w[2]) }'; then
		ok "$name: $got"
	else
		not_ok "$name: rate, bound, ratio and depth $got, want $want"
	fi
}
replayed() { expect "$1, replayed" oracle replay "$work/s.json"; }

# n boxes of 8 GPUs: NVLink's 8/7 * 300 for one; 200 n / (n - 1) from four on, the network's; half of that for allreduce.
for case in 1:342.857:171.429 2:346.667:173.333 3:300:150 4:266.667:133.333 8:228.571:114.286 32:206.452:103.226 128:201.575:100.787; do
	IFS=: read -r n gather reduce <<<"$case"
	oracle cluster "$n" 8 300 25 >"$work/t.json"
	for c in allgather reducescatter; do
		plan "$n boxes, $c" "$work/t.json" "$gather 2" -c $c
		[ "$n" -gt 4 ] || replayed "$n boxes, $c"
	done
	plan "$n boxes, allreduce" "$work/t.json" "$reduce 4"
	[ "$n" -gt 4 ] || replayed "$n boxes, allreduce"
done
expect "1024 ranks, read again" "$blinkc" check -q "$work/s.json"
oracle cluster 4 8 300 25 >"$work/t.json"
plan "4 boxes, broadcast" "$work/t.json" "200 6" -c broadcast -r 9
replayed "4 boxes, broadcast"
plan "4 boxes, alltoall" "$work/t.json" "33.3333 2" -c alltoall
replayed "4 boxes, alltoall"

# MI250 in ForestColl's model: 16 dies a box; of two boxes the first 8 dies each, where an allreduce by trees beats
# reducescatter and allgather, 128 to 104 GB/s.
for case in "1:allreduce:171.429" "1:allgather:342.857" "2:allreduce:177.067" "2:allgather:354.133" "4:allreduce:170.667" \
	"2 8:allreduce:128" "2 8:allgather:208" "2 8:reducescatter:208"; do
	IFS=: read -r boxes c rate <<<"$case"
	# shellcheck disable=SC2086 # boxes, and perhaps dies
	oracle mi250 $boxes >"$work/t.json"
	plan "MI250, $boxes: $c" "$work/t.json" "$rate 99" -c "$c"
	replayed "MI250, $boxes: $c"
done

# One GPU is missing: the other servers are still alike. Bounds by brute force are out of reach; the replay recomputes them.
oracle cluster 6 8 300 25 7 >"$work/t.json"
for c in allreduce allgather broadcast scatter; do
	"$blinkc" -q "$work/t.json" -c $c -o "$work/s.json" || not_ok "47 GPUs, $c: exit $?"
	got=$(oracle replay "$work/s.json" | sed 's/.*ratio //')
	if awk -v r="$got" 'BEGIN { exit !(r >= 0.9999) }'; then ok "47 GPUs, $c: ratio $got"; else not_ok "47 GPUs, $c: ratio $got"; fi
done

# Whatever the order of the GPUs, the rate is the same; and the same request gives the same bytes.
oracle cluster 4 4 100 10 >"$work/t.json"
for c in allreduce allgather alltoall; do
	"$blinkc" "$work/t.json" -c $c -o "$work/a.json" 2>"$work/err"
	want=$(awk '/^rate|^bound/ { print $2 }' "$work/err" | tr '\n' ' ')
	for order in 15,3,7,11,14,2,6,10,13,1,5,9,12,0,4,8 8,1,14,5,0,11,2,7,12,3,10,9,6,13,4,15; do
		"$blinkc" "$work/t.json" -c $c -g $order -o "$work/b.json" 2>"$work/err"
		got=$(awk '/^rate|^bound/ { print $2 }' "$work/err" | tr '\n' ' ')
		if [ "$got" = "$want" ]; then ok "$c of ranks in another order: $got"; else not_ok "$c of ranks in another order: $got, want $want"; fi
	done
	"$blinkc" -q "$work/t.json" -c $c -o "$work/again.json"
	expect "$c: the same bytes" cmp "$work/a.json" "$work/again.json"
done

# A broken budget still ends in a schedule that is right.
oracle cluster 16 8 300 25 5 >"$work/t.json"
"$blinkc" -q "$work/t.json" -c allgather --budget 20ms -o "$work/s.json" || not_ok "budget of 20 ms: exit $?"
expect "budget of 20 ms: what is written" "$blinkc" check -q "$work/s.json"
