# The algorithms of the literature (src/plan/classic): schedules of each for each collective, on a switch, a full mesh
# and machines, checked by blinkc and by the oracle, which count all loads; orders of ranks, what has no hop, options,
# and results on the host. tests/unit/test_classic.c holds the forests against their formulas for all numbers of ranks.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

all="broadcast reduce allreduce gather scatter allgather reducescatter alltoall"
one_tree="broadcast reduce allreduce" rooted="broadcast reduce allreduce gather scatter" \
	exchange="allreduce allgather reducescatter"
cases=("chain:$rooted" "direct:$all" "knomial:$rooted" "knomial --radix 3:$rooted" "double-binary-tree:$one_tree"
	"scatter-allgather:broadcast reduce" "halving-doubling:broadcast reduce $exchange" \
		"recursive-doubling:allreduce"
	"bruck:$exchange alltoall" "bruck --radix 4:$exchange alltoall" "hierarchical-ring:$exchange"
	"bine:$rooted allgather reducescatter" "reducescatter-allgather:allreduce")

# made NAME OPTION...: a schedule in $work/made, if there is one
made() {
	local name=$1
	shift
	"$blinkc" -q "$@" -o "$work/made/$name.json" 2>"$work/err" || not_ok "$name: $(cat "$work/err")"
}

# 2 to 17 ranks in turn: in the quick test one number for each collective, in the full one all.
mkdir "$work/made"
n=2 some=$([ "$full" ] && echo 16 || echo 1)
for case in "${cases[@]}"; do
	read -ra options <<<"${case%%:*}"
	for c in ${case#*:}; do
		for _ in $(seq "$some"); do
			n=$(((n + 3) % 16 + 2))
			machine="switch:100"
			[ $((n % 3)) != 0 ] || [ $n -gt 9 ] || machine="mesh:10"
			root=()
			case $c in broadcast | reduce | gather | scatter) root=(-r $((n / 2))) ;; esac
			made "${options[0]}-${options[2]-}-$c-$n" --synthetic "server:1 gpu:$n $machine" \
				-a "${options[@]}" -c "$c" "${root[@]}"
		done
	done
done
[ ! "$full" ] || for a in chain knomial halving-doubling hierarchical-ring bine reducescatter-allgather; do
	made "dgx1v-$a" topologies/dgx1v.xml -a $a
	made "two-$a" topologies/two-dgx1v.xml -a $a
	made "kesch-$a" topologies/kesch.xml -a $a
done
made kesch-staged topologies/kesch.xml -a host-staged-knomial -c broadcast -r 5
# The host leads nowhere else: no other GPU is below it, or on the other side of it.
made kesch-card topologies/kesch.xml -g 0-2 -a host-staged-knomial -c broadcast
made rack-staged topologies/abci-rack.xml -g 0-7 -l all -a host-staged-knomial --radix 3 -c reduce
made layers --synthetic "server:1 gpu:12 switch:100" -a hierarchical-ring --hierarchy 3x2x2
expect "all are valid" "$blinkc" check -q "$work/made"
expect "the host is the machine's" "$blinkc" check -q --topology topologies/kesch.xml "$work/made/kesch-card.json"
expect "the oracle agrees" oracle replay "$work"/made/*.json
[ ! "$full" ] || expect "their schema" oracle validate schemas/schedule.schema.json "$work/made/layers.json" \
	"$work/made/kesch-staged.json"

# rate NAME "TREES DEPTH RATE" OPTION...
rate() {
	local name=$1 want=$2 got
	shift 2
	got=$("$blinkc" "$@" -o "$work/s.json" 2>&1 |
		awk '/^trees/ { t = $2 + 0; d = $4 } /^rate/ { r = $2 } END { print t, d, r }')
	if [ "$got" = "$want" ]; then ok "$name: $got"; else not_ok "$name: trees, depth and rate $got, want $want"; fi
}

v=topologies/dgx1v.xml two=topologies/two-dgx1v.xml
# A path through double links alone: 0 4 7 6 5 1 2 3. Halves of one share go over the doubled diagonal.
rate "DGX-1V, a chain" "1 7 50" $v -a chain -c broadcast
rate "DGX-1V, halving and doubling" "8 6 50" $v -a halving-doubling
rate "two DGX-1V, halving and doubling: its bound" "16 8 48" $two -a halving-doubling
rate "two DGX-1V, a hierarchical ring: of a server, of servers" "16 16 48" $two -a hierarchical-ring
rate "DGX-1V, the trees of an allgather: the bound" "20 4 85.7143" $v -a reducescatter-allgather
# Switches of a NIC that lead one way: back over those that lead the other.
rate "two DGX-1V, the trees of an allgather: the bound" "16 6 48" $two -a reducescatter-allgather
# Both phases at once: one after the other they would have 3/4 of it, as all blocks but one pass the middle.
expect "a path of three" oracle snippet -c 'import json, sys
links = [{"from": f"g{a}", "to": f"g{b}", "class": "nvlink", "capacity": 12, "duplex": "simplex"}
         for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))]
node = {"id": "n0", "gpus": [{"id": f"g{i}"} for i in range(3)]}
path = {"format": "blink-topology", "version": 1, "name": "path", "nodes": [node], "links": links}
json.dump(path, open(sys.argv[1], "w"))
links[0]["capacity"] = 13
json.dump({**path, "name": "slope"}, open(sys.argv[2], "w"))' \
	"$work/path.json" "$work/slope.json"
rate "a path of three, the trees of an allgather" "3 4 12" "$work/path.json" -a reducescatter-allgather
rate "a DGX-2, a double binary tree: its bound" "2 4 150" topologies/dgx2.xml -a double-binary-tree -c broadcast
rate "a DGX-2, recursive doubling: 15 times all data, 4 hops" "16 4 10" topologies/dgx2.xml -a recursive-doubling
# The trees of any kind would be more than a schedule holds: their rate is not known, and the chain stays.
[ ! "$full" ] || rate "4096 GPUs" "1 8190 25" --synthetic "server:512 gpu:8 switch:300 net:25" -a chain
# A switch for each GPU, in a ring: hops of 1, 1, 3 and 5 places take less of it than those of 1, 2, 4 and 8.
[ ! "$full" ] || expect "a ring of switches" oracle snippet -c 'import json, sys
n = 16
links = [{"from": f"g{i}", "to": f"s{i}", "class": "nvlink", "capacity": 1000} for i in range(n)]
links += [{"from": f"s{i}", "to": f"s{(i + 1) % n}", "class": "nvlink", "capacity": 10} for i in range(n)]
node = {"id": "n0", "gpus": [{"id": f"g{i}"} for i in range(n)], "switches": [{"id": f"s{i}"} for i in range(n)]}
json.dump({"format": "blink-topology", "version": 1, "name": "torus", "nodes": [node], "links": links},
          open(sys.argv[1], "w"))' \
	"$work/torus.json"
[ ! "$full" ] || rate "a ring of switches, Swing" "16 8 5.71429" "$work/torus.json" -a swing
[ ! "$full" ] || rate "a ring of switches, Rabenseifner" "16 8 3.80952" "$work/torus.json" -a rabenseifner

# ---- what is not there ----

expect_exit "a missing hop" 5 "$blinkc" $v -a direct
grep -qx 'blinkc: dgx1v: direct trees: no order of the GPUs has a hop for every edge: want one as from gpu0 to gpu5; '\
'or other links, as --links all' "$work/err" ||
	not_ok "a missing hop: $(cat "$work/err")"
expect "all links have it" "$blinkc" -q $v -a direct --links all -o /dev/null
expect_exit "a link that is slower on the way back" 5 "$blinkc" "$work/slope.json" -a reducescatter-allgather
grep -qx 'blinkc: slope: reduce-scatter and allgather trees: want links that are as fast in both directions, '\
'and switches that only forward' "$work/err" ||
	not_ok "a link that is slower on the way back: $(cat "$work/err")"
expect_exit "no host" 5 "$blinkc" $v -l nvlink -a host-staged-knomial
grep -q 'has a hop through a host for every edge: want one as from gpu0 to gpu' "$work/err" ||
	not_ok "no host: $(cat "$work/err")"
expect_exit "no host on the route of a pair" 5 "$blinkc" $v -l all --routes pair -a host-staged-knomial
expect_exit "a hybrid of whole buffers" 5 "$blinkc" $v --hybrid -a recursive-doubling
expect_exit "too many trees" 4 "$blinkc" --synthetic "server:1 gpu:730 switch:100" -a bruck -c alltoall

# wrong NAME TEXT OPTION...: bad usage, and one line that has TEXT
wrong() {
	local name=$1 text=$2
	shift 2
	expect_exit "$name" 2 "$blinkc" "$@" -o /dev/null
	grep -qF -e "$text" "$work/err" || not_ok "$name: $(cat "$work/err")"
}
wrong "a radix of 1" "--radix: 1: want a whole number from 2 on" $v -a knomial --radix 1
wrong "a radix of no number" "--radix: k: want a whole number, 1 to 4096" $v -a bruck --radix k
wrong "a radix of a chain" "--radix: 2: want it with --algorithm knomial, bruck or host-staged-knomial" $v -a chain \
	--radix 2
wrong "a radix of no algorithm" "--radix: 2: want it with" $v --radix 2
wrong "a binomial tree of radix 3" "--radix: 3: want 2 for binomial, or --algorithm knomial" $v -a binomial --radix 3
wrong "a hierarchy of no layers" "--hierarchy: 4xx2: want numbers from 2 on, as 4x8x4" $v \
	-a hierarchical-ring --hierarchy 4xx2
wrong "layers of 1" "--hierarchy: 8x1: want numbers from 2 on" $v -a hierarchical-ring --hierarchy 8x1
wrong "another product" "--hierarchy: 3x3: want numbers with the product 8, the ranks of the job" $v \
	-a hierarchical-ring --hierarchy 3x3
wrong "a hierarchy of a ring" "--hierarchy: 4x2: want it with --algorithm hierarchical-ring" $v -a ring --hierarchy 4x2
wrong "a chain of blocks" "--algorithm: chain: want another for allgather" $v -a chain -c allgather
wrong "Bruck's exchange from a root" "--algorithm: bruck: want another for scatter" $v -a bruck -c scatter

# ---- other names; what a file records ----

# alias NAME ROW COLLECTIVE: the same bytes
alias_of() {
	"$blinkc" -q -g 0,1,2,3 $v -a "$1" -c "$3" -o "$work/a.json" &&
		"$blinkc" -q -g 0,1,2,3 $v -a "$2" -c "$3" -o "$work/b.json" &&
		cmp "$work/a.json" "$work/b.json"
}
for case in linear-pipeline:chain:reduce binomial:knomial:gather minimum-spanning-tree:knomial:allreduce \
	rabenseifner:halving-doubling:allreduce bidirectional-exchange:scatter-allgather:broadcast \
	bidirectional-exchange:halving-doubling:reduce recursive-doubling:halving-doubling:allgather \
		swing:bine:allreduce; do
	IFS=: read -r alias row c <<<"$case"
	expect "$alias is $row for $c" alias_of "$alias" "$row" "$c"
done
expect "what was asked" oracle snippet -c 'import json, sys
o, s = (json.load(open(f)) for f in sys.argv[1:])
assert (o["algorithm"], o["generator"]["options"]["hierarchy"]) == ("hierarchical-ring", "3x2x2"), o["generator"]
assert (s["algorithm"], s["generator"]["options"]["radix"]) == ("host-staged-knomial", 3), s["generator"]' \
	"$work/made/layers.json" "$work/made/rack-staged.json"

# ---- results ----

# In the quick test half of them.
i=0
for case in "${cases[@]}"; do
	[ "$full" ] || [ $((i++ % 2)) = 0 ] || continue
	read -ra options <<<"${case%%:*}"
	c=${case##* }
	[ "${c#*:}" = "$c" ] || c=${c#*:}
	"$blinkc" -q --synthetic "server:1 gpu:6 switch:100" -a "${options[@]}" -c "$c" -o "$work/s.json" ||
		not_ok "${options[*]}: not compiled"
	expect "results of ${options[*]}, $c" "$perf" -b 1000 -e 1000 -n 1 -w 1 -t 2 "$work/s.json"
done
