# blinkc hierarchy: rates, costs and orders are those of the formula worked by hand; the pruned search finds what the
# exhaustive one does; parameters come back from measurements; the published hierarchies, and files that are wrong.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

abci=topologies/abci-2048.xml
worked() { expect "$1: as worked by hand" oracle hierarchy "$blinkc" best "${@:2}"; }

worked "ABCI, 4 servers of 4" topologies/abci-rack.xml 0-15 134217728
worked "two servers, of 3 and 5" topologies/two-dgx1v.xml s0:0-2,s1:0-4 1048576 layer=12.5
if [ "$full" ]; then
	worked "DGX-1V" topologies/dgx1v.xml 0-7 1000000
	worked "DGX-2, 12 GPUs" topologies/dgx2.xml 0-11 5000 layer=0,alpha=1.5,server=2
	worked "two servers, 4 GPUs of each" topologies/two-dgx1v.xml s0:0-3,s1:0-3 1048576 network=0.5,steps=3
	worked "PCIe" topologies/pcie-8gpu.xml 0-7 1048576
	worked "servers of 16" topologies/kesch-12.xml 0-47 134217728
fi

# ---- the search ----

# same NAME OPTION...: the best of all hierarchies, one by one, and by divisors
same() {
	local name=$1
	shift
	"$blinkc" hierarchy "$@" --no-simulate --top 40 >"$work/pruned" || not_ok "$name: exit $?"
	"$blinkc" hierarchy "$@" --no-simulate --top 40 --exhaustive >"$work/all" || not_ok "$name: exit $?"
	if [ "$(grep -c x "$work/pruned")" -gt 10 ] &&
		cmp -s <(sed '/^search/d' "$work/pruned") <(sed '/^search/d' "$work/all")
	then ok "$name: pruned and exhaustive"; else not_ok \
		"$name: pruned and exhaustive: $(diff "$work/pruned" "$work/all" | head -3)"; fi
}
same "12 servers of 16 GPUs" topologies/kesch-12.xml
same "the same without start-ups" topologies/kesch-12.xml --cost alpha=0,layer=0
same "8 and 7 GPUs of servers, and 6" topologies/superpod-a100.xml -g s0:0-7,s1:0-6,s2:0-7,s3:0-6,s4:0-5
if [ "$full" ]; then
	for cost in layer=0 layer=100 alpha=0,layer=0 alpha=40,server=3; do
		same "ABCI, 1024 GPUs, $cost" $abci -g 0-1023 --cost $cost
	done
	same "ABCI, 576 GPUs, 1 MB" $abci -g 0-575 --size 1M
fi

# ---- the published ones: with one switch between all servers of ABCI ----

"$blinkc" topology topologies/abci.xml --servers 512 -o "$work/flat.xml" || not_ok "512 servers: exit $?"
# best GPUS RANK HIERARCHY: where the published one stands
best() {
	expect "$1 GPUs" "$blinkc" hierarchy "$work/flat.xml" -g "0-$(($1 - 1))" --no-simulate
	has "$1 GPUs: $3" "^ +$2 .* $3\$"
}
best 128 1 4x8x4
best 256 3 4x8x4x2
best 512 1 4x8x4x4
best 1024 1 4x8x8x4
best 2048 1 4x8x8x8
expect "128 GPUs without start-ups of layers" "$blinkc" hierarchy "$work/flat.xml" -g 0-127 --no-simulate --cost layer=0
has "as few in each ring as there can be" '^ +1 .* 4x2x2x2x2x2$'

# ---- what is simulated ----

expect "simulated" "$blinkc" hierarchy topologies/abci-rack.xml -g 0-15 --chunk 1M --top 2
has "a hierarchy" '^ +2 +[0-9.]+ +[0-9.]+x +[0-9.]+ +[0-9.]+x  4x2x2$'
has "the least time" '^ +- +- +[0-9.]+ +[0-9.]+x  least time of any algorithm$'
"$blinkc" hierarchy topologies/abci-rack.xml -g 0-15 --chunk 1M --top 2 -o "$work/h.json"
expect "its schema" oracle validate schemas/hierarchy.schema.json "$work/h.json"
"$blinkc" -q topologies/abci-rack.xml -g 0-15 -a hierarchical-ring --hierarchy 4x4 -o "$work/s.json"
"$blinkc" simulate "$work/s.json" --size 128M --chunk 1M --format csv >"$work/sim"
expect "as blinkc simulate has it" oracle snippet -c '
import json, sys
rows = {tuple(r["layers"]): r for r in json.load(open(sys.argv[1]))["hierarchies"]}
us = float(open(sys.argv[2]).read().split()[1].split(",")[4])
assert abs(rows[4, 4]["simulated_us"] - us) < 1e-6, (rows, us)
' "$work/h.json" "$work/sim"

# ---- measurements ----

expect "parameters from measurements" oracle hierarchy "$blinkc" fit topologies/abci-rack.xml 0-15 "$work" ${full:+all}
fit() { "$blinkc" hierarchy topologies/abci-rack.xml -g 0-15 --no-simulate --measurements "$1" "${@:2}"; }
expect "one size and between servers alone" fit \
	<(printf '4x4,1000000,500\n4x2x2,1000000,620\n4x4,1000,310\n4x2x2,1000,400\n16,1000,300\n2x2x4,500,420\n')
has "how far off" '^fit         6 measurements, rms [0-9.]+ %, worst [-+][0-9.]+ % in line [1-6]$'
printf '2x2,4096,10\n2x2,1048576,90\n4,4096,9\n' >"$work/within.csv"
expect "within a server alone" fit "$work/within.csv"
has "what is not measured stays" ' network 1$'
# refused NAME EXIT MESSAGE TEXT
refused() {
	printf '%b' "$4" >"$work/m.csv"
	expect_exit "$1" "$2" fit "$work/m.csv"
	if grep -qF -- "m.csv:$3" "$work/err"; then ok "$1: told"; else not_ok "$1: $(cat "$work/err")"; fi
}
refused "nothing" 3 " no measurement" ''
refused "a comment alone" 3 " no measurement" '# 4x4,1,2\n\n'
refused "no hierarchy" 3 "2: 4x,5,6: want a hierarchy" 'hierarchy,bytes,us\n4x,5,6\n'
refused "a ring of 1" 3 "1: 4x1,5,6: want a hierarchy" '4x1,5,6'
refused "thirteen layers" 3 "1: 2x2x" '2x2x2x2x2x2x2x2x2x2x2x2x2,5,6\n'
refused "no bytes" 3 "1: 4x4,0,6: want bytes" '4x4,0,6\n'
refused "too many bytes" 3 "1: 4x4,9007199254740993,6: want bytes" '4x4,9007199254740993,6\n'
refused "no time" 3 "1: 4x4,5,-1: want us" '4x4,5,-1\n'
refused "NaN" 3 "1: 4x4,5,nan: want us" '4x4,5,nan\n'
refused "no end of time" 3 "1: 4x4,5,1e13: want us" '4x4,5,1e13\n'
refused "two values" 3 "1: 4x4,5: want hierarchy,bytes,us" '4x4,5\n'
refused "four values" 3 "1: 4x4,5,6,7: want three" '4x4,5,6,7\n'
refused "a comma too many" 3 "1: 4x4,5,6,: want three" '4x4,5,6,\n'
refused "a head that is not first" 3 "2: hierarchy,bytes,us: want" '4x4,5,6\nhierarchy,bytes,us\n'
refused "a NUL" 3 "1: " '4x4,5\0,6\n'
refused "a long line" 3 "1: 444" "$(printf '4%.0s' $(seq 300)),5,6"
refused "ranks that do not divide" 3 "2: 3x5: want a product that divides 16" '4x4,5,6\n3x5,5,6\n'
refused "more ranks than there are" 3 "1: 4x8: want a product that divides 16" '4x8,5,6\n'
refused "too few" 3 " 1 measurements do not tell" '4x4,5,6\n'
refused "one hierarchy alone" 3 " 3 measurements do not tell" '4x4,5,6\n4x4,50,7\n4x4,500,8\n'
refused "times of another world" 3 " the fitted" \
	'4x4,1,1e12\n2x2x2x2,1,1e11\n4x2x2,2,1e12\n16,2,1e12\n2x8,1,3e11\n8x2,3,1e12\n'
yes '4x4,5,6' | head -65537 >"$work/long.csv"
expect_exit "too many lines" 4 fit "$work/long.csv"
expect_exit "no file" 8 fit "$work/none.csv"

# ---- options ----

usage() { expect_exit "$1" 2 "$blinkc" hierarchy topologies/abci-rack.xml "${@:2}"; }
usage "two sizes" --size 1K,2K
usage "too large a size" --size 1024000000G
expect "as large as there is, and slow" "$blinkc" hierarchy topologies/dgx2.xml -g 0-6 --size 9007199254740992 \
	--no-simulate --cost server=1000
has "no longer than three days" '^ +1 +2\.8823e\+08 .* 7$'
usage "no parameter" --cost beta=1
usage "a value out of range" --cost alpha=-1
usage "no value" --cost alpha
usage "no rows" --top 0
usage "a hierarchy" --hierarchy 4x4
expect_exit "one GPU" 3 "$blinkc" hierarchy topologies/abci-rack.xml -g 3

# ---- docs/hierarchy.md ----

expect "parameters in its table" oracle snippet -c '
import json, re, sys
cost = json.load(open(sys.argv[1]))["cost"]
rows = dict(re.findall(r"^\| `(\w+)` \| ([0-9.]+) \|", open("docs/hierarchy.md").read(), re.M))
assert {k: float(v) for k, v in rows.items()} == cost, (rows, cost)
' "$work/h.json"
sed -n '/^hierarchy,bytes,us$/,/^```/{/^```/d;p}' docs/hierarchy.md >"$work/page.csv"
expect "its file of measurements" "$blinkc" hierarchy topologies/abci-2048.xml -g 0-127 --no-simulate \
	--measurements "$work/page.csv"
expect "published points" oracle snippet -c '
import csv
rows = list(csv.DictReader(line for line in open("papers/data/ueno.csv") if line[0] != "#"))
best = [row for row in rows if row["figure"] == "best"]
page = open("docs/hierarchy.md").read()
for row in best:
    assert "| {x} | {series} | {value} |".format(**row) in page, row
assert len(best) == 5
'

# Each column has a heading above it, and no two the same words for different things.
"$blinkc" hierarchy topologies/abci-rack.xml -g 0-15 --top 3 --size 1M >"$work/out"
head=$(grep '^ *# ' "$work/out")
if [ "$(tr -s ' ' <<<"$head")" = " # cost ms x ring simulated ms x ring hierarchy" ] &&
	[ "$(grep -c '^   [1-3] ' "$work/out")" = 3 ]; then ok "headings"; else not_ok "headings: $head"; fi
