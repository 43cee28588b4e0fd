# --packing exact: the rate is the bound itself, for every DGX-1 class and for random topologies of all kinds; an
# independent reader recomputes both, prices by a tree search of its own.
. tests/lib.sh

# at_bound NAME FILE...: all replay, and none is below its bound
at_bound() {
	local name=$1
	shift
	oracle replay "$@" >"$work/replay"
	if [ "$(grep -c ': ok .*ratio 1\.000$' "$work/replay")" = $# ]; then ok "$name: $# schedules at the bound"; else
		not_ok "$name: $(grep -v 'ratio 1\.000$' "$work/replay" | head -3 | tr '\n' ' ')"; fi
}
for machine in dgx1v dgx1p; do
	while read -r gpus; do
		for c in broadcast reduce allreduce; do
			"$blinkc" -q -p exact topologies/$machine.xml -g "$gpus" -c $c -o "$work/$machine-$gpus-$c.json" ||
				not_ok "$machine $gpus $c: exit $?"
		done
	done < <(oracle subsets $machine | grep -o '^[0-9,]*$')
	at_bound $machine "$work/$machine"-*.json
done
seeds=${SEEDS:-60}
for seed in $(seq 1 "$seeds"); do
	oracle random_topology "$seed" >"$work/t.json"
	for c in broadcast reduce allreduce; do
		"$blinkc" -q -p exact -l all "$work/t.json" -c $c -o "$work/random-$seed-$c.json" || not_ok "random $seed $c: exit $?"
	done
done
at_bound random "$work"/random-*.json
expect "their bounds against brute force" oracle brute "$work"/random-*.json

# A one-way ring: no cut and no partition is tight, prices are.
cat >"$work/ring.json" <<'TOPOLOGY'
{ "format": "blink-topology", "version": 1, "name": "ring",
  "nodes": [ { "id": "n", "gpus": [ { "id": "a" }, { "id": "b" }, { "id": "c" } ] } ],
  "links": [ { "from": "a", "to": "b", "class": "nvlink", "capacity": 10, "duplex": "simplex" },
             { "from": "b", "to": "c", "class": "nvlink", "capacity": 50, "duplex": "simplex" },
             { "from": "c", "to": "a", "class": "nvlink", "capacity": 50, "duplex": "simplex" } ] }
TOPOLOGY
got=$("$blinkc" "$work/ring.json" -p exact -o "$work/ring-s.json" 2>&1 | awk '/^rate/ { r = $2 } /^bound/ { b = $2 } END { print r, b }')
if [ "$got" = "10 10" ]; then ok "one-way ring: $got"; else not_ok "one-way ring: rate and bound $got, want 10 10"; fi
at_bound "one-way ring" "$work/ring-s.json"

# Switches: sixteen one-hop trees reach 16/30 of the port (schedule-format's star); 200n/(n-1)/2 GB/s for 4 boxes of 8.
star() { "$python" -B - "$@" <<'PY'
import json, sys
boxes, gpus, inside, outside = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
ids = [[f"n{b}/g{g}" for g in range(gpus)] for b in range(boxes)]
links = [{"from": g, "to": f"n{b}/sw", "class": "nvlink", "capacity": inside} for b in range(boxes) for g in ids[b]]
if boxes > 1:
    links += [{"from": g, "to": "ib", "class": "net", "capacity": outside} for b in range(boxes) for g in ids[b]]
print(json.dumps({"format": "blink-topology", "version": 1, "name": "boxes",
    "nodes": [{"id": f"n{b}", "gpus": [{"id": g} for g in ids[b]], "switches": [{"id": f"n{b}/sw"}]} for b in range(boxes)],
    "switches": [{"id": "ib"}] if boxes > 1 else [], "links": links}))
PY
}
for case in 1:16:150:0:80 1:8:300:0:171.429 4:8:300:25:133.333; do
	IFS=: read -r boxes gpus inside outside rate <<<"$case"
	star "$boxes" "$gpus" "$inside" "$outside" >"$work/star.json"
	got=$("$blinkc" "$work/star.json" -p exact -o "$work/star-$boxes-$gpus.json" 2>&1 |
		awk '/^rate/ { r = $2 } /^bound/ { b = $2 } /^ratio/ { x = $2 } END { print r, b, x }')
	if [ "$got" = "$rate $rate 1.000" ]; then ok "$boxes x $gpus GPUs: $got"; else not_ok "$boxes x $gpus GPUs: $got, want $rate"; fi
	at_bound "$boxes x $gpus GPUs" "$work/star-$boxes-$gpus.json"
done
