# Switches that multicast or reduce: rates that only they make possible, at their bounds, replayed by an independent
# reader; and what a schedule must not claim of a switch.
. tests/lib.sh

# abilities BOXES INSIDE OUTSIDE [IB]: boxes of 8 GPUs whose switch can do both; with IB the network's can, too
abilities() {
	oracle cluster "$1" 8 "$2" "$3" | oracle snippet -c '
import json, sys
topology = json.load(sys.stdin)
switches = [s for node in topology["nodes"] for s in node["switches"]]
for switch in switches + (topology["switches"] if sys.argv[1:] else []):
    switch.update(multicast=True, reduce=True)
print(json.dumps(topology))' ${4:+"$4"} >"$work/t.json"
}

# at NAME COLLECTIVE "RATE TREES DEPTH": GB/s at the bound, and at most this number of trees and hops
at() {
	local got
	"$blinkc" "$work/t.json" -c "$2" -o "$work/s.json" 2>"$work/err" || { not_ok "$1: $(cat "$work/err")"; return; }
	got=$(awk '/^trees/ { t = $2 + 0; d = $4 } /^rate/ { r = $2 } /^ratio/ { x = $2 } END { print r, t, d, x }' \
		"$work/err")
	if awk -v got="$got" -v want="$3" 'BEGIN { split(got, g, " "); split(want, w, " ")
		exit !(g[1] == w[1] && g[2] <= w[2] && g[3] <= w[3] && g[4] == "1.000") }'; then
		ok "$1: $got"
	else
		not_ok "$1: rate, trees, depth and ratio $got, want $3"
	fi
	expect "$1: replayed" oracle replay "$work/s.json"
}

# One box with ports of 450 GB/s. Forwarding, an allreduce has 450 * 8 / 14; adding and copying on the way, the whole
# port.
oracle cluster 1 8 450 0 >"$work/t.json"
at "a switch that forwards, allreduce" allreduce "257.143 8 2"
abilities 1 450 0
at "a switch that adds and copies, allreduce" allreduce "450 8 2"
expect "its schema" oracle validate schemas/schedule.schema.json "$work/s.json"
expect "its topology's schema" oracle validate schemas/topology.schema.json "$work/t.json"
"$blinkc" convert "$work/t.json" -o "$work/t.xml" && "$blinkc" convert "$work/t.xml" -o "$work/back.json" &&
	"$blinkc" convert "$work/t.json" -o "$work/there.json"
expect "there and back" cmp "$work/back.json" "$work/there.json"
expect "XML schema" xmllint --noout --nonet --schema schemas/topology.xsd "$work/t.xml"
if "$blinkc" convert "$work/t.json" --format canonical | grep -q '\["n0/sw","switch",0,"multicast","reduce"\]'; then
	ok "the digest counts it"
else
	not_ok "the canonical text does not name what the switch can do"
fi
if "$perf" "$work/s.json" -b 64K -e 64K >"$work/out" 2>&1; then
	ok "executed on the host"
else
	not_ok "perf: $(tail -1 "$work/out")"
fi
at "broadcast in one hop" broadcast "450 1 1"
at "reduce in one hop" reduce "450 1 1"
at allgather allgather "514.286 8 1"
at reducescatter reducescatter "514.286 8 1"
at alltoall alltoall "514.286 56 1"

# Several boxes: the network's 8 * 50 GB/s bound an allreduce, twice over if it only forwards between many.
abilities 4 450 50
at "4 boxes, allreduce" allreduce "266.667 32 4"
abilities 4 450 50 ib
at "4 boxes and their network, allreduce" allreduce "400 32 4"
at "4 boxes and their network, broadcast" broadcast "400 99 5"

# A switch that only adds, or only copies: n GPUs send, or receive, 2 (n - 1) messages for each element.
for word in reduce multicast; do
	got=$("$blinkc" --synthetic "gpu:8 switch:25 $word" -o "$work/s.json" 2>&1 |
		awk '/^rate/ { r = $2 } /^ratio/ { print r, $2 }')
	if [ "$got" = "14.2857 1.000" ]; then
		ok "$word only: $got"
	else
		not_ok "$word only: rate and ratio $got, want 14.2857 1.000"
	fi
	expect "$word only: replayed" oracle replay "$work/s.json"
	"$blinkc" show "$work/s.json" >"$work/shown" &&
		expect "$word only: shown" oracle show "$work/s.json" "$work/shown"
	"$blinkc" --synthetic "server:4 gpu:4 switch:50 net:25 $word" -o "$work/s.json" 2>"$work/err"
	expect "4 servers, $word only" grep -qx 'ratio       1.000' "$work/err"
	expect "4 servers, $word only: replayed" oracle replay "$work/s.json"
done

# Random machines, against a linear program over all trees: no bound below it, no rate above it, and most of both equal
# to it.
last=${full:+400}
oracle innetwork make "$work" 1 ${last:-60}
for i in $(seq ${last:-60}); do "$blinkc" -q "$work/t$i.json" -o "$work/r$i.json" || not_ok "machine $i"; done
if ! oracle innetwork "$work"/r*.json >"$work/out"; then
	not_ok "random machines: $(grep WRONG "$work/out" | head -3)"
elif tail -1 "$work/out" | awk '{ exit !($3 >= 0.98 * $1 && $6 >= 0.98 * $1) }'; then
	ok "random machines: $(tail -1 "$work/out")"
else
	not_ok "random machines: $(tail -1 "$work/out")"
fi
for coll in broadcast reduce allgather reducescatter; do
	some=()
	for i in $(seq 1 4 ${last:-60}); do
		"$blinkc" -q -c $coll "$work/t$i.json" -o "$work/$coll.r$i.json" || not_ok "machine $i, $coll"
		some+=("$work/$coll.r$i.json")
	done
	expect "random machines, $coll" oracle innetwork "${some[@]}"
done

# ---- what is not so ----

# claim NAME WORDS CODE: the last schedule, changed by CODE, is refused with exit 3 or 6 and these words, by both
# readers
claim() {
	oracle snippet - "$work/a.json" "$work/b.json" "$3" <<'PY'
import json, sys
s = json.load(open(sys.argv[1]))
exec(sys.argv[3])
json.dump(s, open(sys.argv[2], "w"))
PY
	"$blinkc" check -q "$work/b.json" 2>"$work/err"
	case $? in 3 | 6) ;; *) not_ok "$1: exit $?"; return ;; esac
	if ! grep -qF -- "$2" "$work/err"; then
		not_ok "$1: $(cat "$work/err")"
	elif oracle replay "$work/b.json" >"$work/out"; then
		not_ok "$1: the oracle takes it"
	else
		ok "$1: refused"
	fi
}
abilities 1 450 0
"$blinkc" -q "$work/t.json" -o "$work/a.json"
claim "a switch without abilities" "want one that leaves" 'del s["topology"]["switches"]'
claim "multicast only" "enters" 's["topology"]["switches"][0].pop("reduce")'
claim "reduce only" "want one that leaves" 's["topology"]["switches"][0].pop("multicast")'
claim "no edge before it feeds the switch" "want one that leaves" 's["trees"][0]["down"].reverse()'
claim "no edge before it takes the sum along" "enters" 's["trees"][0]["up"].reverse()'
claim "an edge that begins nowhere" "no link" 's["trees"][0]["down"][1][2] = []'
claim "an ability of a switch that is not there" "want a rank or a switch" \
	's["topology"]["switches"][0]["id"] = "other"'
claim "an ability that is a number" "want true or false" 's["topology"]["switches"][0]["reduce"] = 1'
claim "switches as an object" "topology.switches" 's["topology"]["switches"] = {}'
claim "a switch as a string" "topology.switches[0]" 's["topology"]["switches"] = ["n0/sw"]'
claim "a partition that leaves the switch out" "n0/sw multicasts, n0/sw reduces: want one of them in a part" \
	's["rate"]["certificate"] = {"kind": "partition", "parts": [[r] for r in range(8)]}'
claim "prices of trees that share links" "proves nothing for allreduce where switches multicast or reduce" \
	's["rate"]["certificate"] = {"kind": "prices", "price": [1] * len(s["topology"]["links"])}'
for value in '"yes"' 1 null; do
	printf '{"format":"blink-topology","version":1,"name":"x","nodes":[{"id":"n","gpus":[{"id":"a"}],
		"switches":[{"id":"s","reduce":%s}]}]}' "$value" >"$work/bad.json"
	expect_exit "reduce: $value" 3 "$blinkc" convert "$work/bad.json"
	grep -q 'switches\[0\].reduce: .*want true or false' "$work/err" || not_ok "reduce: $value: $(cat "$work/err")"
done
printf '{"format":"blink-topology","version":1,"name":"x","nodes":[{"id":"n","gpus":[{"id":"a","multicast":true}]}]}' \
	>"$work/bad.json"
expect_exit "a GPU that multicasts" 3 "$blinkc" convert "$work/bad.json"

# Broadcast, reduce, allgather and reducescatter where prices are proofs although switches combine or copy: by what any
# algorithm needs.
oracle coded "$blinkc" 1 "$([ "$full" ] && echo 150 || echo 20)" >"$work/out" 2>&1
case $? in
0) ok "coding: $(tail -1 "$work/out")" ;;
77) skip "coding: $(tail -1 "$work/out")" ;;
*) not_ok "coding: $(head -c 1000 "$work/out")" ;;
esac
