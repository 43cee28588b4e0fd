# --algorithm threephase: boxes at the rate of a formula, servers of unequal sizes and NICs, fragments of two DGX-1V,
# and against an exact linear program over all three-phase trees.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

all="allreduce allgather broadcast reduce reducescatter gather scatter alltoall"

# plan NAME TOPOLOGY RATE OPTIONS...: GB/s, as rate and as the best of the family; replayed, and three-phase trees
plan() {
	local name=$1 topology=$2 want=$3 got
	shift 3
	if ! "$blinkc" -v -a threephase "$topology" "$@" -o "$work/s.json" 2>"$work/err"; then
		not_ok "$name: $(cat "$work/err")"
		return
	fi
	got=$(awk '/^rate/ { r = $2 } /^best/ { x = $2 } END { print r, x }' "$work/err")
	if [ "$got" = "$want $want" ]; then ok "$name: $got"; else not_ok "$name: rate and best $got, want $want"; fi
	expect "$name: replayed" oracle replay "$work/s.json"
	expect "$name: three phases" oracle families --shape "$topology" "$work/s.json"
}

# n boxes of A100: 171.429 inside, and 8 NICs of 25 GB/s each, of which a tree needs n - 1 in and out at its root and as
# many at all others together: n * 200 / (2 (n - 1)).
for n in 2 3 4 ${full:+8 16}; do
	oracle cluster $n 8 300 25 >"$work/t.json"
	plan "$n boxes" "$work/t.json" \
		"$(awk -v n=$n 'BEGIN { x = n * 200 / (2 * (n - 1)); printf "%.6g", x < 1200 / 7 ? x : 1200 / 7 }')"
	[ $n -gt 2 ] || expect "2 boxes: what is lost" grep -qx \
		'threephase: the best is 1.1 % below the bound, which trees of any kind reach' "$work/err"
	[ $n -lt 3 ] || expect "$n boxes: nothing is lost" grep -qx \
		'threephase: the best is at the bound, no algorithm that treats elements separately is faster' \
		"$work/err"
	expect "$n boxes: every NIC works" oracle snippet -c 'import json, sys
s = json.load(open(sys.argv[1]))
links = s["topology"]["links"]
used = {l for t in s["trees"] for e in t["up"] + t["down"] for l in e[2]}
assert all(l in used for l, link in enumerate(links) if link["class"] == "net"), "idle"' "$work/s.json"
	expect "$n boxes: schema" oracle validate schemas/schedule.schema.json "$work/s.json"
done
many=$([ "$full" ] && echo 128 || echo 16)
oracle cluster "$many" 8 300 25 >"$work/t.json"
for c in allreduce allgather ${full:+reducescatter}; do
	got=$("$blinkc" -a threephase "$work/t.json" -c $c -o "$work/s.json" 2>&1 |
		awk '/^trees/ { t = $2 + 0 } /^ratio/ { x = $2 } END { print t, x }')
	want="$((8 * many)) 1.000"
	[ $c != allreduce ] || want="$((4 * many)) 1.000"
	if [ "$got" = "$want" ]; then ok "$many boxes, $c: $got"; else not_ok "$many boxes, $c: $got, want $want"; fi
done
expect "$many boxes, checked" "$blinkc" check -q "$work/s.json"

# A broadcast leaves its server once, for another one, which sends it to the rest: all that the NICs of one box can
# send.
for n in ${full:+2} 3 ${full:+4 8}; do
	oracle cluster $n 8 300 25 >"$work/t.json"
	for c in broadcast ${full:+reduce}; do plan "$n boxes, $c" "$work/t.json" 200 -c $c; done
done
oracle cluster 64 8 300 25 >"$work/t.json"
for c in broadcast ${full:+reduce}; do
	got=$("$blinkc" -a threephase "$work/t.json" -c $c -o "$work/s.json" 2>&1 | awk '/^ratio/ { print $2 }')
	if [ "$got" = 1.000 ]; then ok "64 boxes, $c: at the bound"; else not_ok "64 boxes, $c: $got of the bound"; fi
done
expect "64 boxes, checked" "$blinkc" check -q "$work/s.json"
oracle cluster 4 8 300 25 >"$work/t.json"
for case in gather:266.667 scatter:266.667 alltoall:33.3333; do
	plan "4 boxes, ${case%:*}" "$work/t.json" "${case#*:}" -c "${case%:*}"
done

# Servers with NICs of two speeds on one switch, C(s) each in sum: sum C / (2 (n - 1)), and no more than the least of
# them has.
fabric() {	# SIZE:SPEED...
	oracle snippet - "$@" <<'PY'
import json, sys
servers = [tuple(map(int, word.split(":"))) for word in sys.argv[1:]]
nodes, links = [], []
for s, (size, speed) in enumerate(servers):
    gpus = [f"n{s}g{i}" for i in range(size)]
    node = {"id": f"n{s}", "gpus": [{"id": g} for g in gpus]}
    nodes.append({**node, "switches": [{"id": f"n{s}sw"}]} if size > 1 else node)
    links += [{"from": g, "to": f"n{s}sw", "class": "nvlink", "capacity": 300} for g in gpus if size > 1]
    links += [{"from": g, "to": "net", "class": "net", "capacity": speed} for g in gpus]
print(json.dumps({"format": "blink-topology", "version": 1, "name": "fabric", "nodes": nodes,
                  "switches": [{"id": "net"}], "links": links}))
PY
}
for servers in "4:25 4:25 4:50" "8:25 4:50 2:100" "1:10 1:10 1:20" "8:25 8:10 4:25" "2:25 1:25 3:5 1:40" "5:20 3:40"; do
	every 2 || continue
	# shellcheck disable=SC2086 # words
	fabric $servers >"$work/t.json"
	want=$(awk -v s="$servers" 'BEGIN {
		n = split(s, w, " ")
		for (i = 1; i <= n; i++) {
			split(w[i], x, ":"); c = x[1] * x[2]; sum += c; least = i == 1 || c < least ? c : least
		}
		r = sum / (2 * (n - 1)); printf "%.6g", r < least ? r : least }')
	plan "servers $servers" "$work/t.json" "$want"
done
for c in $all; do
	every 2 || continue
	"$blinkc" -q -a threephase "$work/t.json" -c "$c" -o "$work/s.json" || not_ok "5 and 3 GPUs, $c: exit $?"
	expect "5 and 3 GPUs, $c: executed on the host" "$perf" "$work/s.json" -b 64K -e 64K
done

# GPUs 0 to 2 of a DGX-1V, which reach 50 GB/s, and five of another; each server has this rate to the network, GB/s: the
# lower of both.
fragments() {	# GPUS GB/S
	oracle snippet - "$1" "$2" <<'PY'
import json, sys
V = "0-1:1 0-2:1 0-3:2 0-4:2 1-2:2 1-3:1 1-5:2 2-3:2 2-6:1 3-7:1 4-5:1 4-6:1 4-7:2 5-6:2 5-7:1 6-7:2"
sets, links = ["012", sys.argv[1]], []
for s, own in enumerate(sets):
    for word in V.split():
        if word[0] in own and word[2] in own:
            links.append({"from": f"n{s}g{word[0]}", "to": f"n{s}g{word[2]}", "class": "nvlink",
                          "count": int(word[4]), "capacity": 25})
    capacity = round(float(sys.argv[2]) / len(own), 6)
    links += [{"from": f"n{s}g{g}", "to": "net", "class": "net", "capacity": capacity} for g in own]
print(json.dumps({"format": "blink-topology", "version": 1, "name": "two DGX-1V", "nodes": [
    {"id": f"n{s}", "gpus": [{"id": f"n{s}g{g}"} for g in own]} for s, own in enumerate(sets)],
    "switches": [{"id": "net"}], "links": links}))
PY
}
for case in 01234:15:15 01234:37.5:37.5 01234:60:50 34567:15:15 34567:37.5:25; do
	IFS=: read -r gpus speed want <<<"$case"
	fragments "$gpus" "$speed" >"$work/t.json"
	plan "3 and 5 GPUs ($gpus) at $speed GB/s" "$work/t.json" "$want"
done

# One server: all trees, as many of them as the default has.
one=(topologies/dgx1v.xml)
[ "$full" ] || one+=(-g 0,1,2,3,4,5,6)	# all eight take longer
"$blinkc" -q "${one[@]}" -o "$work/a.json" && "$blinkc" -q -a threephase "${one[@]}" -o "$work/b.json"
expect "one server" oracle snippet -c 'import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
assert a["trees"] == b["trees"] and b["algorithm"] == "threephase" == b["generator"]["options"]["algorithm"]' \
	"$work/a.json" "$work/b.json"

# What cannot be.
cat >"$work/apart.json" <<'TOPOLOGY'
{ "format": "blink-topology", "version": 1, "name": "apart",
  "nodes": [ { "id": "A", "gpus": [ { "id": "a0" }, { "id": "a1" } ] }, { "id": "B", "gpus": [ { "id": "b" } ] } ],
  "switches": [ { "id": "net" } ],
  "links": [ { "from": "a0", "to": "net", "class": "net", "capacity": 1 },
             { "from": "a1", "to": "net", "class": "net", "capacity": 1 },
             { "from": "b", "to": "net", "class": "net", "capacity": 1 } ] }
TOPOLOGY
expect_exit "a server without links" 5 "$blinkc" -a threephase "$work/apart.json"
expect "a server without links: which ranks" grep -qF "apart: three-phase trees: no path from a0 to a1 over links of A\
: want ranks of one server that its own links connect" "$work/err"
# Of such servers some collectives have trees: paths need none of its links, and a broadcast only those out of a local
# root.
cat >"$work/oneway.json" <<'TOPOLOGY'
{ "format": "blink-topology", "version": 1, "name": "oneway",
  "nodes": [ { "id": "A", "gpus": [ { "id": "a0" }, { "id": "a1" } ] }, { "id": "B", "gpus": [ { "id": "b" } ] } ],
  "switches": [ { "id": "net" } ],
  "links": [ { "from": "a0", "to": "a1", "class": "nvlink", "capacity": 5, "duplex": "simplex" },
             { "from": "a0", "to": "net", "class": "net", "capacity": 2 },
             { "from": "a1", "to": "net", "class": "net", "capacity": 4 },
             { "from": "b", "to": "net", "class": "net", "capacity": 3 } ] }
TOPOLOGY
for case in apart:scatter:1.5 apart:gather:1.5 oneway:broadcast:2 oneway:reduce:3 \
	oneway:scatter:4.5 oneway:gather:4.5; do
	IFS=: read -r name c want <<<"$case"
	plan "servers that links do not connect: $name, $c" "$work/$name.json" "$want" -l all -c "$c" -r b
	expect "servers that links do not connect: $name, $c: the best of all trees" oracle families \
		"$work/$name.json" "$work/s.json"
done
expect_exit "a server with a link one way, allreduce" 5 "$blinkc" -l all -a threephase "$work/oneway.json"
expect "a server with a link one way: which ranks" grep -qF \
	"oneway: three-phase trees: no path from a1 to a0 over links of A: want" "$work/err"
expect_exit "a server with a link one way, broadcast from its end" 5 "$blinkc" -l all -a threephase \
	"$work/oneway.json" -c broadcast -r a1
chain() {	# SERVER...
	oracle snippet - "$@" <<'PY'
import json, sys
ids = sys.argv[1:]
print(json.dumps({"format": "blink-topology", "version": 1, "name": "chain",
    "nodes": [{"id": s.upper(), "gpus": [{"id": s}]} for s in ids],
    "links": [{"from": u, "to": v, "class": "net", "capacity": 10} for u, v in zip(ids, ids[1:])]}))
PY
}
chain a b c >"$work/chain.json"
plan "a chain of servers" "$work/chain.json" 10
for c in broadcast reduce; do
	plan "a chain of servers, $c, its middle" "$work/chain.json" 10 -c $c -r b
	plan "a chain of servers, $c, its end" "$work/chain.json" 10 -c $c -r a
done
chain a b c d >"$work/chain.json"
expect_exit "a chain of four servers" 5 "$blinkc" -a threephase "$work/chain.json"
expect "servers two hops apart: which" grep -qF \
	"chain: three-phase trees: no hop between d of D and any GPU of A: want servers that are one hop apart" \
	"$work/err"
expect_exit "a chain of four servers, broadcast from its end" 5 "$blinkc" -a threephase "$work/chain.json" -c broadcast
expect "three hops to the last server: from which" grep -qF \
	"chain: three-phase trees: from a: no GPU of A, or one hop from it, has hops to all other servers: want one" \
	"$work/err"
expect_exit "a chain of four servers, reduce to its end" 5 "$blinkc" -a threephase "$work/chain.json" -c reduce -r d
expect "three hops from the first server: to which" grep -qF \
	"chain: three-phase trees: to d: no GPU of D, or one hop from it, has hops from all other servers: want one" \
	"$work/err"

# The test of shapes finds that data of a chain passes three servers, and of a mesh two relays.
"$blinkc" -q -c broadcast "$work/chain.json" -o "$work/any.json" &&
	sed -i 's/"algorithm": "trees"/"algorithm": "threephase"/' "$work/any.json"
refused() {	# NAME SCHEDULE WHY
	if oracle families --shape "$work/chain.json" "$2" >"$work/out" 2>&1 ||
		! grep -qF "WRONG: trees[0]: $3" "$work/out"; then
		not_ok "not three phases: $1: $(tail -1 "$work/out")"
	else
		ok "not three phases: $1"
	fi
}
refused "three servers in a row" "$work/any.json" "a server that two others are between"
oracle snippet - "$work/any.json" "$work/two.json" <<'PY'
import json, sys
s = json.load(open(sys.argv[1]))
s["topology"]["links"] = [{"from": u, "to": v, "class": "net", "capacity": 10, "latency": 0}
                          for u in range(4) for v in range(4) if u != v]
at = {(link["from"], link["to"]): i for i, link in enumerate(s["topology"]["links"])}
s["trees"] = [{"segment": ["0/1", "1/1"], "root": 0, "down": [[u, v, [at[u, v]]] for u, v in ((0, 1), (0, 2), (2, 3))]}]
json.dump(s, open(sys.argv[2], "w"))
PY
refused "a server leads to two others, and one of them on" "$work/two.json" "a server that two others are between"

# A ring through all GPUs of all servers can be shifted by one, which takes no server to a server.
oracle snippet - >"$work/ring.json" <<'PY'
import json
gpus = [f"g{i}" for i in range(24)]
links = [{"from": a, "to": b, "class": "nvlink", "capacity": 10} for a, b in zip(gpus, gpus[1:] + gpus[:1])]
links += [{"from": g, "to": "net", "class": "net", "capacity": 5} for g in gpus]
print(json.dumps({"format": "blink-topology", "version": 1, "name": "ring", "nodes": [
    {"id": f"n{s}", "gpus": [{"id": g} for g in gpus[8 * s:8 * s + 8]]} for s in range(3)],
    "switches": [{"id": "net"}], "links": links}))
PY
plan "a ring through all servers" "$work/ring.json" 10 -l all

# The rate does not depend on the order of GPUs, and the same request gives the same bytes.
oracle cluster 3 4 100 10 >"$work/t.json"
for c in allreduce allgather; do
	"$blinkc" -a threephase "$work/t.json" -c $c -o "$work/a.json" 2>"$work/err"
	want=$(awk '/^rate|^best/ { print $2 }' "$work/err" | tr '\n' ' ')
	"$blinkc" -a threephase "$work/t.json" -c $c -g 8,1,5,0,11,2,7,3,10,9,6,4 -o "$work/b.json" 2>"$work/err"
	got=$(awk '/^rate|^best/ { print $2 }' "$work/err" | tr '\n' ' ')
	if [ "$got" = "$want" ]; then
		ok "$c of ranks in another order: $got"
	else
		not_ok "$c of ranks in another order: $got, want $want"
	fi
	"$blinkc" -q -a threephase "$work/t.json" -c $c -o "$work/again.json"
	expect "$c: the same bytes" cmp "$work/a.json" "$work/again.json"
done
"$blinkc" -q -a threephase --budget 1ms "$work/t.json" -o "$work/s.json" || not_ok "budget of 1 ms: exit $?"
expect "budget of 1 ms: what is written" "$blinkc" check -q "$work/s.json"

# No other three-phase trees are better.
for seed in $(seq 1 "${SEEDS:-$([ "$full" ] && echo 30 || echo 3)}"); do
	oracle servers "$seed" >"$work/t.json"
	files=()
	for c in $all; do
		"$blinkc" -q -l all -a threephase "$work/t.json" -c "$c" -o "$work/r-$c.json" ||
			not_ok "random $seed $c: exit $?"
		files+=("$work/r-$c.json")
	done
	expect "random $seed: the best of all trees" oracle families "$work/t.json" "${files[@]}"
	expect "random $seed: replayed" oracle replay "${files[@]}"
done
for boxes in "2 3 10 3" "3 2 7 4" "2 2 5 20"; do
	every 3 || continue
	# shellcheck disable=SC2086 # words
	oracle cluster $boxes >"$work/t.json"
	files=()
	for c in $all; do
		"$blinkc" -q -a threephase "$work/t.json" -c "$c" -o "$work/r-$c.json" ||
			not_ok "boxes $boxes, $c: exit $?"
		files+=("$work/r-$c.json")
	done
	expect "boxes $boxes: the best of all trees" oracle families "$work/t.json" "${files[@]}"
done
for case in 101:2,2,2 102:3,2 103:2,3 104:3,3; do
	oracle servers "${case%:*}" "${case#*:}" >"$work/t.json"
	for c in allreduce broadcast; do
		"$blinkc" -q -l all -a threephase "$work/t.json" -c $c -o "$work/r-$c.json" ||
			not_ok "servers of ${case#*:}: exit $?"
		expect "servers of ${case#*:}, $c: the best of all trees" oracle families \
			"$work/t.json" "$work/r-$c.json"
	done
done
