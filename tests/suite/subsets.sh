# --packing mwu on every connected subset of 3 to 8 GPUs of DGX-1V and DGX-1P, up to isomorphism (46 and 14 classes):
# broadcast and reduce for every root, and allreduce. Rates within 5 % of the bound; bounds as brute force finds them,
# replayed by an independent reader. The suite exact does the same for --packing exact.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# A batch plans one of the roots that automorphisms map to each other; `make check-full` compiles the others, too.
every=$([ "$full" ] && echo 1 || echo 50)
for machine in dgx1v dgx1p; do
	oracle subsets "$machine" >"$work/sets"
	"$blinkc" batch -q -p mwu topologies/"$machine".xml -g "$work/sets" --collectives broadcast,reduce,allreduce \
		-o "$work/$machine" || not_ok "$machine: batch: exit $?"
	mkdir "$work/roots"
	expect "$machine mwu: files of a batch are what compile gives" oracle compiled "$blinkc" \
		topologies/"$machine".xml \
		"$work/$machine" --every "$every" ${full:+--others "$work/roots"} -- -p mwu
	# n ranks: an allreduce, and two collectives from n roots
	want=$(awk -F, '{ n += 1 + 2 * NF } END { print n }' "$work/sets")
	expect "$machine mwu: $want jobs, every root" test \
		"$(grep -c '^{"gpus":' "$work/$machine/index.json")" = "$want"
	files=("$work/$machine"/*/*.json)
	[ ! "$full" ] || files+=("$work/roots"/*.json)
	expect "$machine mwu: ${#files[@]} schedules replayed" oracle replay "${files[@]}"
	sed 's/.*ratio //' "$work/out" | sort -n >"$work/ratios"
	if [ "$(wc -l <"$work/ratios")" = ${#files[@]} ] && awk '$1 < 0.95 { exit 1 }' "$work/ratios"; then
		ok "$machine mwu: least ratio $(head -1 "$work/ratios")"
	else
		not_ok "$machine mwu: ratio $(head -1 "$work/ratios") is below 0.95"
	fi
	expect "$machine mwu: blinkc check" "$blinkc" check -q "${files[@]}"
	expect "$machine mwu: bounds equal brute force" oracle brute "${files[@]}"
	rm -r "$work/roots"
done

# Blink 3.2: MWU finds many trees, the ILP keeps as many as the bound has links.
for case in dgx1v:6:150 dgx1p:4:80; do
	IFS=: read -r machine trees rate <<<"$case"
	for root in 0 1 2 3 4 5 6 7; do
		"$blinkc" -v -p mwu topologies/$machine.xml -c broadcast -r $root -o "$work/x.json" 2>"$work/err"
		got=$(awk '/^trees/ { t = $2 + 0 } /^rate/ { r = $2 } /^ratio/ { x = $2 } END { print t, r, x }' \
			"$work/err")
		if [ "$got" = "$trees $rate 1.000" ] && grep -q '^mwu: [0-9]* trees' "$work/err"; then
			ok "$machine broadcast from $root: $got"
		else
			not_ok "$machine broadcast from $root: $got, want $trees trees, $rate GB/s, ratio 1.000"
		fi
	done
done
got=$("$blinkc" topologies/dgx1v.xml -o /dev/null 2>&1 | awk '/^bound/ { print $2 }')
if [ "$got" = 85.7143 ]; then
	ok "dgx1v allreduce: bound 24/7 links"
else
	not_ok "dgx1v allreduce: bound $got, want 600/7"
fi
