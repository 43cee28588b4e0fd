# Seeded random topologies: direct, one-way, switched, several classes, odd capacities. Achieved is at most the bound and
# both are what independent readers find; laws of the bound: relabelling keeps it, doubling doubles it, a new link never
# lowers it; the reader reads what the writer wrote.
. tests/lib.sh

seeds=${SEEDS:-60}
for seed in $(seq 1 "$seeds"); do
	oracle random_topology "$seed" >"$work/t$seed.json"
	for c in broadcast reduce allreduce; do
		"$blinkc" -q "$work/t$seed.json" -l all -c $c -o "$work/s$seed-$c.json" || not_ok "seed $seed $c: exit $?"
	done
done
files=("$work"/s*.json)
expect "${#files[@]} random schedules replayed" oracle replay "${files[@]}"
expect "${#files[@]} bounds against brute force" oracle brute "${files[@]}"
expect "${#files[@]} checked by blinkc" "$blinkc" check -q "${files[@]}"

bound() { "$python" -B - "$1" <<'PY'
import json, sys
print("%.12g" % json.load(open(sys.argv[1]))["rate"]["bound"])
PY
}
# variant KIND IN OUT: the topology with all capacities doubled, its GPUs in reverse order, or one more link
variant() { "$python" -B - "$@" <<'PY'
import json, sys
kind, source, target = sys.argv[1:]
t = json.load(open(source))
gpus = [g["id"] for n in t["nodes"] for g in n["gpus"]]
if kind == "double":
    for l in t["links"]:
        l["capacity"] *= 2
elif kind == "link":
    t["links"].append({"from": gpus[0], "to": gpus[-1], "class": "nvlink", "capacity": 7, "latency": 1})
json.dump(t, open(target, "w"))
print(",".join(reversed(gpus)) if kind == "reverse" else ",".join(gpus))
PY
}
# law KIND WAS NOW: does it hold?
law() { "$python" -B -c '
import sys
kind, was, now = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
want = 2 * was if kind == "double" else was
sys.exit(not (now >= want * (1 - 1e-9) and (kind == "link" or now <= want * (1 + 1e-9))))' "$@"; }
for seed in $(seq 1 15); do
	for c in broadcast allreduce; do
		was=$(bound "$work/s$seed-$c.json")
		for kind in double reverse link; do
			gpus=$(variant $kind "$work/t$seed.json" "$work/v.json")
			last=$(($(tr -cd , <<<"$gpus" | wc -c)))
			root=()
			# The root stays the same GPU.
			[ $c = broadcast ] && { [ $kind = reverse ] && root=(-r $last) || root=(-r 0); }
			if ! "$blinkc" -q "$work/v.json" -l all -g "$gpus" -c $c "${root[@]}" -o "$work/v-s.json" 2>"$work/err"; then
				# Twice a capacity may be past the limit.
				[ $kind = double ] && continue
				not_ok "seed $seed $c $kind: exit $?"
				continue
			fi
			now=$(bound "$work/v-s.json")
			if law $kind "$was" "$now"; then
				ok "seed $seed $c $kind"
			else
				not_ok "seed $seed $c: bound $was, $kind $now"
			fi
		done
	done
done
