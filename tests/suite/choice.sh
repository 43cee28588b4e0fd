# blinkc --size: the best of all algorithms, each planned and simulated alone; never below the least time; the same
# bytes each time, and the trees that its options plan again; messages.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

v=topologies/dgx1v.xml colls=()
best() { expect "best of all: $*" oracle choice "$blinkc" "$@"; }

# ---- never slower than an algorithm of the literature ----

best $v 1,4,5,6,7 1000,64M allreduce
if [ "$full" ]; then
	colls=(broadcast reduce allreduce gather scatter allgather reducescatter alltoall)
	best $v all 1K,64K,1M,100000000 "${colls[@]}"
	best $v 0,1,4,6,7 64K,1M,1G "${colls[@]}" -- --executor copy
	best topologies/dgx1p.xml 1,2,4,5,6 64K,1M,100M "${colls[@]}"
	best topologies/pcie-8gpu.xml 0,1,2,3,4 1K,1M broadcast -- --executor host
	best topologies/two-dgx1v.xml s0:0-2,s1:0-2 4K,16M allreduce
fi

# ---- where trees lose, another is taken ----

# way SIZE ARGUMENT...: what is chosen
way() { "$blinkc" $v --size "$1" --summary json -o "$work/chosen.json" "${@:2}" 2>&1 |
	sed 's/.*"chosen":{"way":"\([^"]*\)".*/\1/'; }
is "64 KB: flat trees" "$(way 64K -g 0-4)" reducescatter-allgather
is "16 MB: other trees" "$(way 16M -g 0-4)" halving-doubling
if [ "$full" ]; then
	is "1 KB: few hops" "$(way 1K)" recursive-doubling
	is "1 MB: rings, by lines" "$(way 1M)" ring
	is "1 GB: rings" "$(way 1G)" ring
fi

# ---- the table of docs/choice.md ----

rows=$(awk -F' *[|] *' '$2 ~ /^all/ { coll = $2; sub(/,.*/, "", coll) }
	$2 ~ /iB$/ { sub(/ /, "", $2); sub(/iB/, "", $2); print coll ";" $2 ";" $3 ";" $4 }' docs/choice.md)
[ "$full" ] || rows=$(grep ';64K;' <<<"$rows" | head -1)
while IFS=';' read -r coll size name us; do
	got=$("$blinkc" $v -c "$coll" --size "$size" --summary json -o "$work/chosen.json" 2>&1 |
		sed 's/.*"chosen":{"way":"\([^"]*\)".*"time_us":\([0-9.]*\),"least_us".*/\1;\2/')
	[ "${got%;*}" = "$name" ] &&
		awk -v a="${got#*;}" -v b="$us" 'BEGIN { exit !(a < b * 1.002 && a > b * 0.998) }' \
		&& ok "docs/choice.md: $coll of $size" ||
			not_ok "docs/choice.md: $coll of $size: $name;$us, blinkc says $got"
done <<<"$rows"

# ---- what NCCL would choose ----

if "$build/tests/nccl_table" >"$work/nccl" &&
	held=$(python3 -B "$top/tests/oracle/nccl_model.py" "$([ "$full" ] && echo 1 || echo 5)" \
		<"$work/nccl" 2>&1); then
	ok "NCCL's model in C and in Python: $held"
else
	not_ok "NCCL's model in C and in Python: $held"
fi

# ---- the summary speaks of times ----

"$blinkc" $v --size 64K -o "$work/chosen.json" 2>"$work/err"
is "a line for each way, and none of rates" "$(cut -c1-11 "$work/err" | tr -s ' \n' ' ')" \
	"topology collective trees time chunks nccl-2.4 nccl-2.8 nccl-2.30.7 least "
us_of() { sed -n "s/^$1  *\([0-9.]*\) us.*/\1/p" "$work/err"; }
time=$(us_of time) least=$(us_of least)
while read -r name us _ factor; do
	expect "$name: $us us, $factor times ours" awk -v t="$time" -v l="$least" -v u="$us" -v f="$factor" \
		'BEGIN { exit !(l <= t && l <= u && f > u / t * 0.99 && f < u / t * 1.01) }'
done < <(sed -nE 's/^(nccl-[0-9.]+) +([0-9.]+) us by (.*): ([0-9.]+) times that$/\1 \2 x \4/p' "$work/err")
"$blinkc" $v --size 64K -v -o "$work/chosen.json" 2>"$work/err"
is "with -v also rates" "$(grep -c '^time \|^rate \|^bound \|^ratio ' "$work/err")" 4
"$blinkc" $v --size 64K --summary json -o "$work/chosen.json" 2>"$work/summary.json"
expect "JSON: valid" oracle validate schemas/summary.schema.json "$work/summary.json"
is "JSON: times of others" "$(grep -o '"name":"nccl-[0-9.]*","by":' "$work/summary.json" | wc -l)" 3
is "rings are no trees" "$("$blinkc" $v -a ring -o "$work/chosen.json" 2>&1 | grep -c '^nccl.*; this plan 1x$')" 2
is "nothing of NCCL for what it has no rings for" \
	"$("$blinkc" $v --size 1K -c alltoall -o "$work/chosen.json" 2>&1 | grep -c '^nccl')" 0

# ---- the file ----

"$blinkc" -q $v --size 64K -g 0-4 -o "$work/a.json" && "$blinkc" -q $v --size 64K -g 0-4 -o "$work/b.json"
expect "the same bytes" cmp "$work/a.json" "$work/b.json"
expect "check" "$blinkc" check "$work/a.json"
grep -q '"size": 65536,' "$work/a.json" && grep -q '"executor": "kernel",' "$work/a.json" &&
	grep -q '"chunk": [0-9]' "$work/a.json" \
	&& ok "options of the file" || not_ok "options of the file: $(grep -A 20 options "$work/a.json" | head -25)"
"$blinkc" -q $v --size 8M -c broadcast --executor host -o "$work/a.json"
mapfile -t again < <(sed -nE 's/^ *"(algorithm|radix|hierarchy|max_depth)": "?([^",]*)"?,?$/--\1\n\2/p' "$work/a.json" |
	sed 's/^--max_/--max-/' | awk 'NR % 2 { o = $0; next } !seen[o]++ { print o; print }')
"$blinkc" -q $v -c broadcast "${again[@]}" -o "$work/b.json"
expect "planned again by its options, ${again[*]}" "$blinkc" diff --fail-on rate,trees "$work/a.json" "$work/b.json"
printf '{ "kernel": { "step": 100 } }' >"$work/slow.json"
is "--parameters: large start-ups" "$(way 16M -g 0-4 --parameters "$work/slow.json")" reducescatter-allgather
"$blinkc" $v -g 0-4 --pareto --size 1K,1M >"$work/out" 2>"$work/err"
is "--pareto: the shortest latency first" "$(awk 'NR > 1 { print $1 }' "$work/out")" \
	"$(awk 'NR > 1 { print $1 }' "$work/out" | sort -g)"
is "--pareto: then each has a higher rate" "$(awk 'NR > 1 { print $2 }' "$work/out")" \
	"$(awk 'NR > 1 { print $2 }' "$work/out" | sort -gu)"

# Trees within each smaller depth, and those of some algorithms, would take minutes where links have no symmetry.
expect "143 GPUs without symmetry" timeout 30 "$blinkc" -q --synthetic "dragonfly:4x4x2@25 groups:9" --without s5/gpu0 \
	--size 64K -o "$work/a.json"

# ---- messages ----

for option in "--max-depth 4" "--max-trees 2" "--packing mwu"; do
	# shellcheck disable=SC2086 # words
	expect_exit "--size with $option" 2 "$blinkc" $v --size 64K $option
done
expect_exit "--size 0" 2 "$blinkc" $v --size 0
expect_exit "--size 1Z" 2 "$blinkc" $v --size 1Z
expect_exit "--executor without a size" 2 "$blinkc" $v --executor copy
expect_exit "--executor with an algorithm" 2 "$blinkc" $v --executor copy --size 64K -a ring
expect_exit "--parameters without a size" 2 "$blinkc" $v --parameters "$work/slow.json"
expect_exit "no such executor" 2 "$blinkc" $v --size 64K --executor gpu
expect_exit "no links" 5 "$blinkc" $v --size 64K -g 0,5 -l nvlink
