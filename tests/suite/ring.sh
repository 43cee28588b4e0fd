# --algorithm ring: as many rings as the links allow, counted by another method; rates by the formula of a ring; what
# moves, replayed.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# Every isomorphism class of a DGX-1V and of a DGX-1P over NVLinks. Of the 58 and 31 pairs of a class and an orbit of
# roots that are connected, these have a ring.
for machine in dgx1v:101 dgx1p:17; do
	IFS=: read -r name count <<<"$machine"
	expect "$name: batch" "$blinkc" batch -q "topologies/$name.xml" -a ring -l nvlink --collectives broadcast \
		--roots canonical -o "$work/$name"
	oracle ring_count "$work/$name"
	found=$(find "$work/$name" -name '*.json' ! -name index.json | wc -l)
	if [ "$found" = "$count" ]; then
		ok "$name: $count broadcasts"
	else
		not_ok "$name: $found broadcasts, want $count"
	fi
done

# Rates: k rings of c GB/s for each hop give k c to a broadcast or reduce, k c n/(n-1) to an allgather or reducescatter,
# and half of that to an allreduce. The numbers of rings: 6 links of a DGX-1V in 6 rings, 4 of a DGX-1P in 4, 7 of an
# MI300X in 7 (a complete digraph of 8 vertices has a decomposition into Hamiltonian cycles; one of 4 or 6 has not:
# Tillson 1980), one ring over a switch.
algorithm=ring
case_of() {
	local name=$1 rate=$2 n=$3 coll out want
	shift 3
	for coll in broadcast reduce allgather reducescatter allreduce; do
		out=$work/$coll.json
		if ! "$blinkc" -a $algorithm -c "$coll" "$@" -o "$out" 2>"$work/err"; then
			not_ok "$name, $coll: $(cat "$work/err")"
			continue
		fi
		want=$(awk -v y="$rate" -v n="$n" -v c="$coll" 'BEGIN {
			if (c != "broadcast" && c != "reduce") y = y * n / (n - 1)
			printf "%.6g", c == "allreduce" ? y / 2 : y }')
		got=$(awk '$1 == "rate" { print $2 }' "$work/err")
		if [ "$got" = "$want" ]; then
			ok "$name, $coll: $got GB/s"
		else
			not_ok "$name, $coll: $got GB/s, want $want"
		fi
		expect "$name, $coll: blinkc check" "$blinkc" check -q "$out"
		expect "$name, $coll: replayed" oracle replay "$out"
	done
}
case_of "DGX-1V" 150 8 topologies/dgx1v.xml
case_of "two GPUs" 50 2 topologies/dgx1v.xml -g 0,3
case_of "6 of an MI300X" 192 6 topologies/mi300x.xml -g 0,1,2,3,4,5
if [ "$full" ]; then
	case_of "DGX-1P" 80 8 topologies/dgx1p.xml
	case_of "MI300X" 336 8 topologies/mi300x.xml
	case_of "4 of an MI300X" 96 4 topologies/mi300x.xml -g 0,1,2,3
	case_of "DGX-2" 150 16 topologies/dgx2.xml
fi
case_of "two boxes of A100" 200 16 --synthetic "server:2 gpu:8 switch:300 nic:8@25 rails pcie:50"
# Rings that share links: a prism has two rings of whole links, and of parts three; all GPUs have six either way.
case_of "a prism of a DGX-1P" 40 6 topologies/dgx1p.xml -g 0,1,2,4,5,6 -l nvlink
algorithm=shared-ring
case_of "links shared: a prism of a DGX-1P" 60 6 topologies/dgx1p.xml -g 0,1,2,4,5,6
[ ! "$full" ] || case_of "links shared: DGX-1V" 150 8 topologies/dgx1v.xml
# One server after the other: as much as the NICs, 4 of 24 GB/s and 16 through the other socket's, or of a DGX-1P 4 of
# 12.
"$blinkc" topology --servers 2 topologies/mi250.xml -o "$work/mi250.json" &&
	"$blinkc" topology --servers 2 topologies/dgx1p.xml -o "$work/dgx1p.json"
[ ! "$full" ] || case_of "links shared: 8 dies of two MI250 each" 112 16 "$work/mi250.json" -g s0:0-7,s1:0-7
case_of "links shared: two DGX-1P" 48 16 "$work/dgx1p.json"
algorithm=ring
if [ "$full" ]; then
	case_of "8 boxes of A100" 200 64 --synthetic "server:8 gpu:8 switch:300 net:25"
fi

# The same bytes every time, and what generated code and libblink make of them.
"$blinkc" -q -a ring topologies/dgx1p.xml -o "$work/a.json" &&
	"$blinkc" -q -a ring topologies/dgx1p.xml -o "$work/b.json"
expect "the same bytes" cmp "$work/a.json" "$work/b.json"
expect "executed" "$perf" "$work/a.json" -b 1K -e 64K -f 8 -n 1 -w 0
expect "schema" oracle validate schemas/schedule.schema.json "$work/a.json"

expect_exit "no ring over NVLinks" 5 "$blinkc" -a ring -g 1,4,5,6 topologies/dgx1v.xml
expect "which says so" grep -q 'dgx1v: no ring through all 4 GPUs over these links' "$work/err"
expect_exit "alltoall" 2 "$blinkc" -a ring -c alltoall topologies/dgx1v.xml
expect_exit "limits" 2 "$blinkc" -a ring --max-trees 2 topologies/dgx1v.xml
