# Every connected subset of 3 to 8 GPUs of DGX-1V and DGX-1P, up to isomorphism (46 and 14 classes): broadcast and reduce
# for every root, and allreduce. Rates at the bound, or with MWU within 5 % of it; bounds as brute force finds them, replayed
# by an independent reader.
. tests/lib.sh

for machine in dgx1v dgx1p; do
	mapfile -t sets < <(oracle subsets $machine | grep -o '^[0-9,]*$')
	want=$([ $machine = dgx1v ] && echo 46 || echo 14)
	if [ ${#sets[@]} = "$want" ]; then ok "$machine: $want classes"; else not_ok "$machine: ${#sets[@]} classes, want $want"; fi
	for packing in exact mwu; do
		least=$([ $packing = exact ] && echo 1 || echo 0.95)
		# The default, as it is when nobody asks.
		options=(-q)
		[ $packing = exact ] || options+=(-p $packing)
		for gpus in "${sets[@]}"; do
			n=$(tr -cd , <<<"$gpus" | wc -c)
			for root in $(seq 0 "$n"); do
				for c in broadcast reduce; do
					"$blinkc" "${options[@]}" topologies/$machine.xml -g "$gpus" -c $c -r "$root" \
						-o "$work/$machine-$packing-$gpus-$c-$root.json" || not_ok "$machine $packing $gpus $c $root: exit $?"
				done
			done
			"$blinkc" "${options[@]}" topologies/$machine.xml -g "$gpus" -o "$work/$machine-$packing-$gpus-allreduce.json" ||
				not_ok "$machine $packing $gpus: exit $?"
		done
		files=("$work/$machine-$packing"-*.json)
		expect "$machine $packing: ${#files[@]} schedules replayed" oracle replay "${files[@]}"
		expect "$machine $packing: blinkc check" "$blinkc" check -q "${files[@]}"
		expect "$machine $packing: bounds equal brute force" oracle brute "${files[@]}"
		oracle replay "${files[@]}" | sed 's/.*ratio //' | sort -n >"$work/ratios"
		if [ "$(wc -l <"$work/ratios")" = ${#files[@]} ] && awk -v least="$least" '$1 < least { exit 1 }' "$work/ratios"; then
			ok "$machine $packing: least ratio $(head -1 "$work/ratios")"
		else
			not_ok "$machine $packing: ratio $(head -1 "$work/ratios") is below $least"
		fi
	done
done

# Blink 3.2: MWU finds many trees, the ILP keeps as many as the bound has links.
for case in dgx1v:6:150 dgx1p:4:80; do
	IFS=: read -r machine trees rate <<<"$case"
	for root in 0 1 2 3 4 5 6 7; do
		"$blinkc" -v -p mwu topologies/$machine.xml -c broadcast -r $root -o "$work/x.json" 2>"$work/err"
		got=$(awk '/^trees/ { t = $2 + 0 } /^rate/ { r = $2 } /^ratio/ { x = $2 } END { print t, r, x }' "$work/err")
		if [ "$got" = "$trees $rate 1.000" ] && grep -q '^mwu: [0-9]* trees' "$work/err"; then
			ok "$machine broadcast from $root: $got"
		else
			not_ok "$machine broadcast from $root: $got, want $trees trees, $rate GB/s, ratio 1.000"
		fi
	done
done
got=$("$blinkc" topologies/dgx1v.xml -o /dev/null 2>&1 | awk '/^bound/ { print $2 }')
if [ "$got" = 85.7143 ]; then ok "dgx1v allreduce: bound 24/7 links"; else not_ok "dgx1v allreduce: bound $got, want 600/7"; fi
