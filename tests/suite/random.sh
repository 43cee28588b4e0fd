# Laws of the bound, on seeded random topologies: direct, one-way, switched, several classes, odd capacities.
# Relabelling keeps it, doubling doubles it, a new link never lowers it. For the same topologies the suite exact shows
# that achieved is at most the bound, and that independent readers find both.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

last=${SEEDS:-15}
oracle random_topology 1 --last "$last" --into "$work"
for seed in $(seq 1 "$last"); do
	for c in broadcast allreduce; do
		"$blinkc" -q "$work/t$seed.json" -l all -c $c -o "$work/s$seed-$c.json" ||
			not_ok "seed $seed $c: exit $?"
	done
done
oracle laws variants "$work" 1 "$last" double reverse link >"$work/variants"
while read -r seed kind gpus root; do
	for c in broadcast allreduce; do
		options=(-l all -g "$gpus" -c $c)
		# The root stays the same GPU.
		[ $c = allreduce ] || options+=(-r "$root")
		if "$blinkc" -q "$work/v$seed-$kind.json" "${options[@]}" \
			-o "$work/v$seed-$kind-$c.json" 2>"$work/err"; then
			echo "$seed $c $kind" >&3
		# Twice a capacity may exceed the limit.
		elif [ "$kind" != double ]; then
			not_ok "seed $seed $c $kind: $(cat "$work/err")"
		fi
	done
done <"$work/variants" 3>"$work/cases"
oracle laws judge "$work" <"$work/cases" | sed "s/^\(not \)\?ok /&$suite: /"
