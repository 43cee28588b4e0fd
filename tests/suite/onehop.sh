# --algorithm onehop: on a DGX-2 and on parts of it at the bound, by as many equal trees as there are GPUs; on full
# meshes; switches that multicast or reduce; and against an exact linear program over all one-hop trees.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# plan NAME TOPOLOGY "RATE BOUND TREES DEPTH" OPTIONS...: GB/s, at most this number of trees and hops; replayed, and
# one-hop trees
plan() {
	local name=$1 topology=$2 want=$3 got
	shift 3
	if ! "$blinkc" -a onehop "$topology" "$@" -o "$work/s.json" 2>"$work/err"; then
		not_ok "$name: $(cat "$work/err")"
		return
	fi
	got=$(awk '/^trees/ { t = $2 + 0; d = $4 } /^rate/ { r = $2 } /^bound/ { b = $2 } /^best/ { x = $2 }
		END { print r, b, t, d, x }' "$work/err")
	if awk -v got="$got" -v want="$want" 'BEGIN { split(got, g, " "); split(want, w, " ")
		exit !(g[1] == w[1] && g[2] == w[2] && g[3] <= w[3] && g[4] <= w[4] && g[5] == w[1]) }'; then
		ok "$name: $got"
	else
		not_ok "$name: rate, bound, trees, depth and best $got, want $want"
	fi
	expect "$name: replayed" oracle replay "$work/s.json"
	expect "$name: blinkc check" "$blinkc" check -q "$work/s.json"
	case $topology in *.json) expect "$name: one hop" oracle families --shape "$topology" "$work/s.json" ;; esac
}
# equal NAME: all trees of the last schedule have the same part of the buffer, and each rank is the root of one
equal() {
	expect "$1: equal trees, one for each rank" oracle snippet -c 'import json, sys
s = json.load(open(sys.argv[1]))
assert len({t["segment"][1] for t in s["trees"]}) == 1, "lengths"
assert sorted(t["root"] for t in s["trees"]) == list(range(len(s["topology"]["ranks"]))), "roots"' "$work/s.json"
}

# A DGX-2: 16 GPUs with 6 links of 25 GB/s each. In links: allreduce 3.2, allgather and reducescatter 6.4, from or to a
# root 6.
oracle cluster 1 16 150 0 >"$work/dgx2.json"
for case in allreduce:80:16:2 allgather:160:16:1 reducescatter:160:16:1 broadcast:150:15:2 \
	reduce:150:15:2 gather:160:15:1 \
	scatter:160:15:1 alltoall:160:240:1; do
	IFS=: read -r c rate trees depth <<<"$case"
	plan "DGX-2, $c" "$work/dgx2.json" "$rate $rate $trees $depth" -c "$c"
	case $c in allreduce | allgather | reducescatter) equal "DGX-2, $c" ;; esac
	expect "DGX-2, $c: schema" oracle validate schemas/schedule.schema.json "$work/s.json"
	expect "DGX-2, $c: executed on the host" "$perf" "$work/s.json" -b 64K -e 64K
done
plan "DGX-2, broadcast from 11" "$work/dgx2.json" "150 150 15 2" -c broadcast -r 11

# Parts of it, n GPUs: allreduce 150 n / (2 (n - 1)), allgather twice that.
for gpus in 0,1,2,3,4,5,6,7 8,9,10,11,12,13,14,15 3,9,14 0,1,2,3,4 1,2,4,7,8,11,13 0,1,2,3,4,5,6,7,8 \
	15,14,13,12,11,10,9,8,7,6,5 0,1,2,3,4,5,6,7,8,9,10,11,12; do
	n=$(($(tr -cd , <<<"$gpus" | wc -c) + 1))
	rates=$(awk -v n=$n 'BEGIN { printf "%.6g %.6g", 75 * n / (n - 1), 150 * n / (n - 1) }')
	read -r reduce gather <<<"$rates"
	plan "$n GPUs, allreduce" "$work/dgx2.json" "$reduce $reduce $n 2" -g "$gpus"
	equal "$n GPUs, allreduce"
	plan "$n GPUs, allgather" "$work/dgx2.json" "$gather $gather $n 1" -g "$gpus" -c allgather
	equal "$n GPUs, allgather"
	plan "$n GPUs, broadcast" "$work/dgx2.json" "150 150 $((n - 1)) 2" -g "$gpus" -c broadcast -r 1
done

# Full meshes of direct links. On a DGX-1V GPUs 0 to 3 have unequal ones, and trees of more hops are faster.
plan "DGX-1V, 4 GPUs" topologies/dgx1v.json "50 75 4 2" -g 0,1,2,3
plan "DGX-1P, 4 GPUs" topologies/dgx1p.json "40 40 4 2" -g 0,1,2,3
plan "DGX-1P, 4 GPUs, broadcast" topologies/dgx1p.json "60 60 3 2" -g 0,1,2,3 -c broadcast
plan "DGX-1V, 2 GPUs" topologies/dgx1v.json "25 25 1 2" -g 0,1
"$blinkc" -v -a onehop topologies/dgx1v.xml -g 0,1,2,3 -o "$work/s.json" 2>"$work/err"
expect "-v: what is lost" grep -qx \
	'onehop: the best is 33.3 % below the bound, which trees of any kind reach' "$work/err"
expect_exit "no hop between two GPUs" 5 "$blinkc" -a onehop topologies/dgx1v.xml -g 0,1,2,3,4
expect "no hop: which GPUs" grep -qF \
	"dgx1v: one-hop trees: no direct hop from gpu1 to gpu4: want one from each GPU to each other" "$work/err"

# A switch that adds and copies on the way: the whole port.
oracle cluster 1 8 450 0 | oracle snippet -c 'import json, sys
topology = json.load(sys.stdin)
topology["nodes"][0]["switches"][0].update(multicast=True, reduce=True)
print(json.dumps(topology))' >"$work/nvls.json"
for case in allreduce:450:8:2 broadcast:450:1:1 reduce:450:1:1 allgather:514.286:8:1 reducescatter:514.286:8:1; do
	IFS=: read -r c rate trees depth <<<"$case"
	plan "a switch that adds and copies, $c" "$work/nvls.json" "$rate $rate $trees $depth" -c "$c"
done

# No other one-hop trees are better.
for seed in $(seq 1 "${SEEDS:-$([ "$full" ] && echo 30 || echo 4)}"); do
	oracle random_topology "$seed" --kind switched --ranks $((2 + seed % 4)) >"$work/t.json"
	files=()
	for c in allreduce allgather broadcast reduce reducescatter gather scatter alltoall; do
		"$blinkc" -q -l all -a onehop "$work/t.json" -c $c -o "$work/r-$c.json" ||
			not_ok "random $seed $c: exit $?"
		files+=("$work/r-$c.json")
	done
	expect "random $seed: the best of all trees" oracle families "$work/t.json" "${files[@]}"
	expect "random $seed: replayed" oracle replay "${files[@]}"
done
