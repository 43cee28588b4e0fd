# --packing exact: the rate is the bound itself, for every DGX-1 class, collective and root, and for random topologies;
# an independent reader recomputes both, prices by a tree search of its own.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# at_bound NAME FILE...: all replay, and none is below its bound
at_bound() {
	local name=$1
	shift
	oracle replay "$@" >"$work/replay"
	if [ "$(grep -c ': ok .*ratio 1\.000$' "$work/replay")" = $# ]; then ok "$name: $# schedules at the bound"; else
		not_ok "$name: $(grep -v 'ratio 1\.000$' "$work/replay" | head -3 | tr '\n' ' ')"; fi
}

# ---- DGX-1V and DGX-1P ----

# Each class of connected sets of 3 to 8 GPUs (46 and 14), each collective and root. A batch plans them, and one of the
# roots that automorphisms map to each other. `make check-full` also compiles each of them, and all other roots, without
# --packing: exact is the default.
every=$([ "$full" ] && echo 1 || echo 50)
for machine in dgx1v:46 dgx1p:14; do
	classes=${machine#*:} machine=${machine%:*}
	oracle subsets "$machine" >"$work/sets"
	expect "$machine: $classes classes" test "$(wc -l <"$work/sets")" = "$classes"
	# In the quick check every third.
	[ "$full" ] || sed -i -n 1~3p "$work/sets"
	"$blinkc" batch -q -p exact topologies/"$machine".xml -g "$work/sets" --collectives all -o "$work/$machine" ||
		not_ok "$machine: batch: exit $?"
	mkdir "$work/roots"
	expect "$machine: files of a batch are what compile gives" oracle compiled "$blinkc" topologies/"$machine".xml \
		"$work/$machine" --every "$every" ${full:+--others "$work/roots"}
	# n ranks: four collectives, and four others from n roots
	want=$(awk -F, '{ n += 4 + 4 * NF } END { print n }' "$work/sets")
	got=$(grep -c '^{"gpus":' "$work/$machine/index.json")
	expect "$machine: $want jobs, every collective and root" test "$got" = "$want"
	files=("$work/$machine"/*/*.json)
	[ ! "$full" ] || files+=("$work/roots"/*.json)
	at_bound "$machine, every collective and root" "${files[@]}"
	expect "$machine: blinkc check" "$blinkc" check -q "${files[@]}"
	expect "$machine: bounds against brute force" oracle brute "${files[@]}"
	some=("$work/$machine"/*/0-2.*json)
	[ ! "$full" ] || some+=("$work/$machine"/allto*/*.json "$work/$machine"/*/0-2*.json)
	expect "$machine: schema" oracle validate schemas/schedule.schema.json "${some[@]}"
	rm -r "$work/roots"
done

# ---- random topologies ----

seeds=${SEEDS:-$([ "$full" ] && echo 200 || echo 6)}
oracle random_topology 1 --last "$seeds" --into "$work"
# Of few seeds a maximum flow has to take back what an earlier path has sent.
rare=162
[ "$seeds" -ge $rare ] || oracle random_topology $rare --last $rare --into "$work"
for seed in $(seq 1 "$seeds") $([ "$seeds" -ge $rare ] || echo $rare); do
	for c in broadcast reduce allreduce gather scatter allgather reducescatter alltoall; do
		"$blinkc" -q -p exact -l all "$work/t$seed.json" -c $c -o "$work/s$seed-$c.json" ||
			not_ok "random $seed $c: exit $?"
	done
done
files=("$work"/s*.json)
expect "${#files[@]} random schedules replayed" oracle replay "${files[@]}"
expect "${#files[@]} bounds against brute force" oracle brute "${files[@]}"
expect "${#files[@]} checked by blinkc" "$blinkc" check -q "${files[@]}"
# Of seed 3 the capacities are primes of 15 digits: its alltoall is rounded, to 0.9998 of a bound that is, too.
if [ "$seeds" -ge 3 ]; then
	got=$(oracle replay "$work/s3-alltoall.json" | sed 's/.*ratio //')
	expect "odd capacities: ratio $got" awk -v r="$got" 'BEGIN { exit !(r >= 0.999) }'
	rm "$work/s3-alltoall.json"
fi
at_bound random "$work"/s*.json

# Ranks in another order: neither the rate nor the bound changes.
variants=$([ "$full" ] && echo 40 || echo 3)
while read -r seed kind gpus _; do
	for c in allreduce allgather reducescatter alltoall; do
		[ -e "$work/s$seed-$c.json" ] || continue	# rounded, see above
		"$blinkc" -q -l all "$work/t$seed.json" -c $c -g "$gpus" -o "$work/v$seed-$kind-$c.json" ||
			not_ok "random $seed $c in order $gpus: exit $?"
		echo "$seed $c $kind" >&3
	done
done < <(oracle laws variants "$work" 1 $((seeds < variants ? seeds : variants)) shuffled) 3>"$work/cases"
oracle laws judge "$work" <"$work/cases" | sed "s/^\(not \)\?ok /&$suite: /"

# ---- where links alone do not say it ----

# A one-way ring: no cut and no partition is tight, prices are.
cat >"$work/ring.json" <<'TOPOLOGY'
{ "format": "blink-topology", "version": 1, "name": "ring",
  "nodes": [ { "id": "n", "gpus": [ { "id": "a" }, { "id": "b" }, { "id": "c" } ] } ],
  "links": [ { "from": "a", "to": "b", "class": "nvlink", "capacity": 10, "duplex": "simplex" },
             { "from": "b", "to": "c", "class": "nvlink", "capacity": 50, "duplex": "simplex" },
             { "from": "c", "to": "a", "class": "nvlink", "capacity": 50, "duplex": "simplex" } ] }
TOPOLOGY
got=$("$blinkc" "$work/ring.json" -p exact -o "$work/ring-s.json" 2>&1 |
	awk '/^rate/ { r = $2 } /^bound/ { b = $2 } END { print r, b }')
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
    "nodes": [{"id": f"n{b}", "gpus": [{"id": g} for g in ids[b]], "switches": [{"id": f"n{b}/sw"}]}
              for b in range(boxes)],
    "switches": [{"id": "ib"}] if boxes > 1 else [], "links": links}))
PY
}
for case in ${full:+1:16:150:0:allreduce:80 1:8:300:0:allreduce:171.429} 4:8:300:25:allreduce:133.333 \
	1:16:6:0:allgather:6.4 1:8:300:0:reducescatter:342.857 2:8:300:25:gather:346.667 4:8:300:25:alltoall:33.3333; do
	IFS=: read -r boxes gpus inside outside c rate <<<"$case"
	name="$c, $boxes x $gpus GPUs"
	star "$boxes" "$gpus" "$inside" "$outside" >"$work/star.json"
	got=$("$blinkc" "$work/star.json" -p exact -c "$c" -o "$work/star-s.json" 2>&1 |
		awk '/^rate/ { r = $2 } /^bound/ { b = $2 } /^ratio/ { x = $2 } END { print r, b, x }')
	if [ "$got" = "$rate $rate 1.000" ]; then ok "$name: $got"; else not_ok "$name: $got, want $rate"; fi
	at_bound "$name" "$work/star-s.json"
done
