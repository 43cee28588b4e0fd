# Isomorphic servers: boxes of A100 up to 1024 GPUs and of MI250, at the rates that are known for them, flat, and each
# rank's trees isomorphic; boxes with a GPU missing; GPUs in any order; NICs behind PCIe switches, racks and rails.
. tests/lib.sh

# plan NAME TOPOLOGY "RATE DEPTH" OPTIONS...: the rate in GB/s, which is the bound, and at most this number of hops
plan() {
	local name=$1 topology=$2 want=$3 got
	shift 3
	if ! "$blinkc" "$topology" "$@" -o "$work/s.json" 2>"$work/err"; then
		not_ok "$name: $(cat "$work/err")"
		return
	fi
	got=$(awk '/^trees/ { d = $4 } /^rate/ { r = $2 } /^bound/ { b = $2 } /^ratio/ { x = $2 }
		END { print r, b, x, d }' "$work/err")
	if awk -v got="$got" -v want="$want" 'BEGIN { split(got, g, " "); split(want, w, " ")
		exit !(g[1] == w[1] && g[2] == w[1] && g[3] == "1.000" && g[4] <= w[2]) }'; then
		ok "$name: $got"
	else
		not_ok "$name: rate, bound, ratio and depth $got, want $want"
	fi
}
# Larger ones take the oracle long.
small=$([ "$full" ] && echo 4 || echo 2)
replayed() { expect "$1, replayed" oracle replay "$work/s.json"; }

# n boxes of 8 GPUs: NVLink's 8/7 * 300 for one; 200 n / (n - 1) from four on, the network's; half of that for
# allreduce.
for case in 1:342.857:171.429 2:346.667:173.333 4:266.667:133.333 \
	${full:+3:300:150 8:228.571:114.286 32:206.452:103.226 128:201.575:100.787}; do
	IFS=: read -r n gather reduce <<<"$case"
	oracle cluster "$n" 8 300 25 >"$work/t.json"
	for c in allgather ${full:+reducescatter}; do
		plan "$n boxes, $c" "$work/t.json" "$gather 2" -c $c
		[ "$n" -gt "$small" ] || replayed "$n boxes, $c"
	done
	plan "$n boxes, allreduce" "$work/t.json" "$reduce 4"
	[ "$n" -gt "$small" ] || replayed "$n boxes, allreduce"
done
expect "the largest, read again" "$blinkc" check -q "$work/s.json"
oracle cluster 4 8 300 25 >"$work/t.json"
if [ "$full" ]; then
	plan "4 boxes, broadcast" "$work/t.json" "200 6" -c broadcast -r 9
	replayed "4 boxes, broadcast"
fi
plan "4 boxes, alltoall" "$work/t.json" "33.3333 2" -c alltoall
replayed "4 boxes, alltoall"

# MI250 in ForestColl's model: 16 dies a box; of two boxes the first 8 dies each, where an allreduce by trees beats
# reducescatter and allgather, 128 to 104 GB/s.
cases=("1:allgather:342.857" "2 8:allreduce:128")
[ ! "$full" ] || cases+=("1:allreduce:171.429" "2 8:allgather:208" "2 8:reducescatter:208" "2:allreduce:177.067"
	"2:allgather:354.133" "4:allreduce:170.667")
for case in "${cases[@]}"; do
	IFS=: read -r boxes c rate <<<"$case"
	# shellcheck disable=SC2086 # boxes, and perhaps dies
	oracle mi250 $boxes >"$work/t.json"
	plan "MI250, $boxes: $c" "$work/t.json" "$rate 99" -c "$c"
	replayed "MI250, $boxes: $c"
done

# One GPU is missing: the other servers are still isomorphic. Bounds by brute force are out of reach; the replay
# recomputes them.
oracle cluster 6 8 300 25 7 >"$work/t.json"
for c in allreduce ${full:+allgather} broadcast scatter; do
	"$blinkc" -q "$work/t.json" -c $c -o "$work/s.json" || not_ok "47 GPUs, $c: exit $?"
	got=$(oracle replay "$work/s.json" | sed 's/.*ratio //')
	if awk -v r="$got" 'BEGIN { exit !(r >= 0.9999) }'; then
		ok "47 GPUs, $c: ratio $got"
	else
		not_ok "47 GPUs, $c: ratio $got"
	fi
done

# Whatever the order of the GPUs, the rate is the same; and the same request gives the same bytes.
oracle cluster 4 4 100 10 >"$work/t.json"
for c in allreduce allgather alltoall; do
	"$blinkc" "$work/t.json" -c $c -o "$work/a.json" 2>"$work/err"
	want=$(awk '/^rate|^bound/ { print $2 }' "$work/err" | tr '\n' ' ')
	for order in 15,3,7,11,14,2,6,10,13,1,5,9,12,0,4,8 8,1,14,5,0,11,2,7,12,3,10,9,6,13,4,15; do
		"$blinkc" "$work/t.json" -c $c -g $order -o "$work/b.json" 2>"$work/err"
		got=$(awk '/^rate|^bound/ { print $2 }' "$work/err" | tr '\n' ' ')
		if [ "$got" = "$want" ]; then
			ok "$c of ranks in another order: $got"
		else
			not_ok "$c of ranks in another order: $got, want $want"
		fi
	done
	"$blinkc" -q "$work/t.json" -c $c -o "$work/again.json"
	expect "$c: the same bytes" cmp "$work/a.json" "$work/again.json"
done

# NICs behind PCIe switches, in racks whose uplinks are oversubscribed. s servers can each let C out, racks U. In an
# allreduce each part of a partition into k is left, on average, by 2 (k - 1) / k copies: s C / (2 (s - 1)) over
# servers, r U / (2 (r - 1)) over r racks; an allgather brings all but 1 / s of it into each server: s C / (s - 1), and
# r U / (r - 1). A broadcast has to get into each: C, and U. What is less holds. ABCI: C = 2 * 12 by PCIe, U = 2 * 12.5
# * servers / oversubscription. Rails: C = 8 * 50; behind leaves the spine has room for all.
#      fabric     servers C  racks U      trees of an allreduce
fabrics=("abci 2 4:8:24:2:33.333333:16" "rails 2 4 1:8:400:2:1600:64")
[ ! "$full" ] || fabrics+=("abci 2 4 64:8:24:2:1.5625:999" "abci 2 16:32:24:2:133.333333:32"
	"abci 2 16 64:32:24:2:6.25:999" "abci 4 8:32:24:4:66.666667:32" "rails 1 16 0:16:400:1:1e9:128"
	"rails 2 12 1:24:400:2:4800:192")
for case in "${fabrics[@]}"; do
	IFS=: read -r fabric servers nics racks up trees <<<"$case"
	# shellcheck disable=SC2086 # words
	oracle fabric $fabric >"$work/t.json"
	for c in allreduce allgather ${full:+reducescatter} broadcast ${full:+reduce}; do
		rate=$(awk -v c=$c -v s="$servers" -v n="$nics" -v r="$racks" -v u="$up" '
			function least(a, b) { return a < b ? a : b }
			BEGIN {
				if (c ~ /^(broadcast|reduce)$/) x = least(n, u)
				else x = least(n * s / (s - 1), r > 1 ? u * r / (r - 1) : 1e9)
				printf "%.6g", c == "allreduce" ? x / 2 : x
			}')
		plan "$fabric: $c" "$work/t.json" "$rate 40" -l all -c $c
		[ $c != allreduce ] || allreduce=$(awk '/^trees/ { print $2 + 0 }' "$work/err")
		if [ "$servers" -le $((2 * small)) ] || [ $c = allreduce ]; then replayed "$fabric: $c"; fi
	done
	# GPUs of a server share its NICs: a tree for each server is enough, where servers can be turned in themselves.
	if [ "$allreduce" -le "$trees" ]; then
		ok "$fabric: $allreduce trees"
	else
		not_ok "$fabric: $allreduce trees, want at most $trees"
	fi
done
# From a root to many ranks a few trees of one rate.
oracle fabric abci 4 16 >"$work/t.json"
plan "256 GPUs, broadcast from the last" "$work/t.json" "24 30" -l all -c broadcast -r 255
replayed "256 GPUs, broadcast from the last"
trees=$(awk '/^trees/ { print $2 + 0 }' "$work/err")
if [ "$trees" -le 8 ]; then
	ok "256 GPUs, broadcast: $trees trees"
else
	not_ok "256 GPUs, broadcast: $trees trees, want at most 8"
fi
# The last server lacks GPUs, and a NIC of two: each server is still at what its NICs let through.
fabrics=("abci 2 4 LAST=3" "rails 1 3 0 LAST=5")
[ ! "$full" ] || fabrics+=("abci 2 3 LAST=1" "abci 2 16 LAST=3" "abci 2 12 LAST=1" "rails 1 10 0 LAST=5")
for case in "${fabrics[@]}"; do
	# shellcheck disable=SC2086 # words
	oracle fabric $case >"$work/t.json"
	for c in allreduce ${full:+allgather} broadcast ${full:+reduce}; do
		"$blinkc" -q "$work/t.json" -l all -c $c -o "$work/s.json" || not_ok "$case, $c: exit $?"
		got=$(oracle replay "$work/s.json" | sed 's/.*ratio //')
		if awk -v r="$got" 'BEGIN { exit !(r >= 0.9999) }'; then
			ok "$case, $c: ratio $got"
		else
			not_ok "$case, $c: ratio $got"
		fi
	done
done
# Ranks in any order: servers turned, and trees grown.
servers=$([ "$full" ] && echo 24 || echo 8)
n=$((4 * servers))
oracle fabric abci 2 $((servers / 2)) >"$work/t.json"
order=$(awk -v n=$n 'BEGIN { for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", i * 35 % n }')
for c in "allreduce:$(awk -v s="$servers" 'BEGIN { printf "%.6g", 12 * s / (s - 1) }')" broadcast:24; do
	plan "$n GPUs in another order, ${c%:*}" "$work/t.json" "${c#*:} 30" -l all -g "$order" -c "${c%:*}"
	replayed "$n GPUs in another order, ${c%:*}"
	"$blinkc" -q "$work/t.json" -l all -g "$order" -c "${c%:*}" -o "$work/again.json"
	expect "$n GPUs in another order, ${c%:*}: the same bytes" cmp "$work/s.json" "$work/again.json"
done

# [ratio=RATIO] within SECONDS NAME "TREES, depth DEPTH" MACHINE OPTIONS...: this plan, at the bound, or at this ratio
# to it, in that much CPU time; and it is valid
within() {
	local seconds=$1 name=$2 want=$3 got
	shift 3
	if ! (ulimit -t "$seconds" && exec "$blinkc" "$@" -o "$work/s.json") 2>"$work/err"; then
		not_ok "$name: not within $seconds s: $(tail -n 1 "$work/err")"
		return
	fi
	got=$(awk '/^trees/ { t = substr($0, 13) } /^ratio/ { r = $2 } END { print t ", ratio " r }' "$work/err")
	if [ "$got" = "$want, ratio ${ratio:-1.000}" ]; then
		ok "$name: $got"
	else
		not_ok "$name: $got, want $want, ratio ${ratio:-1.000}"
	fi
	expect "$name: valid" "$blinkc" check -q "$work/s.json"
}
# The paths of a gather to its root are found at once, backwards; one by one they take 20 times as long.
within 4 "512 GPUs of a SuperPOD, gather" "511, depth 2" topologies/superpod-h100-4su.xml -g 0-511 -c gather
[ ! "$full" ] || within 20 "1024 GPUs of a SuperPOD, gather" "1023, depth 2" topologies/superpod-h100-4su.xml -c gather
# Trees of equal servers come first; what grows then ends where it is too deep to be better.
within 10 "16 servers on rails, broadcast" "8, depth 7" --synthetic \
	"server:16 gpu:8 switch:300 net:25 rails" -c broadcast
[ ! "$full" ] || within 10 "$((16 * small)) servers of 16 GPUs and 8 NICs, broadcast" "16, depth 7" \
	--synthetic "server:$((16 * small)) gpu:16 switch:150 nic:8@12 pcie:12" -c broadcast
# A linear program would search a table of all pairs of ranks for half a minute and more, and find no more; what serves
# these is not left out for its estimate, nor tried where it cannot serve.
[ ! "$full" ] || {
	within 10 "4088 GPUs, broadcast" "8, depth 10" --synthetic "server:511 gpu:8 switch:300 net:25" -c broadcast
	ratio=1.000, within 10 "4095 of 4096 GPUs, allreduce" "7665, depth 6; images of 15 under a group of 511" \
		--synthetic "server:512 gpu:8 switch:300 net:25" --without s0/gpu3 -c allreduce
}
# No links inside servers: their GPUs need not be entered together.
within 10 "264 GPUs of a dragonfly, reduce" "2, depth 12" --synthetic "dragonfly:1x8x4@25 gpu:8" -c reduce
within 10 "4095 of 4096 GPUs, broadcast" "14, depth 9" \
	--synthetic "server:512 gpu:8 switch:300 net:25" --without s0/gpu3 -c broadcast
# Below leaf switches, whose links to the spine are oversubscribed, trees enter each server once.
leaves="server:111 gpu:4 switch:450 net:12.5 leaf:4 oversubscription:3"
within 10 "444 GPUs below leaf switches, allgather" "444, depth 6" --synthetic "$leaves" -c allgather
within 10 "444 GPUs below leaf switches, allreduce" "444, depth 12" --synthetic "$leaves" -c allreduce
leaves="server:8 gpu:8 switch:300 net:25 leaf:3 oversubscription:2"
for case in "allgather:63, depth 3" "reducescatter:63, depth 3" "allreduce:57, depth 8"; do
	IFS=: read -r c trees <<<"$case"
	within 10 "63 of 64 GPUs below leaf switches, $c" "$trees" --synthetic "$leaves" --without s0/gpu3 -c "$c"
	[ ! "$full" ] || replayed "63 of 64 GPUs below leaf switches, $c"
done
# The other GPUs have the NIC of a lost one by PCIe. Of an allreduce as many trees begin in each server as it needs.
leaves="server:40 gpu:8 switch:450 nic:8@25 pcie:48 leaf:8 oversubscription:2"
within 10 "319 of 320 GPUs and all NICs, allreduce" "319, depth 8" --synthetic "$leaves" --without s3/gpu2 -c allreduce
[ ! "$full" ] || {
	replayed "319 of 320 GPUs and all NICs, allreduce"
	for case in "allreduce:1023, depth 8" "allgather:1023, depth 4"; do
		IFS=: read -r c trees <<<"$case"
		within 10 "1023 of 1024 GPUs and all NICs, $c" "$trees" --synthetic "${leaves/40/128}" \
			--without s3/gpu2 -c "$c"
	done
}
# Where switches have less than the rate, trees enter a server several times: a narrow leaf switch once, and from there
# the servers below it, each by several NICs.
leaves="server:6 gpu:36 switch:450 net:50 leaf:2 oversubscription:2"
for case in "allgather:441, depth 4:1.000" "reducescatter:441, depth 4:1.000" "allreduce:216, depth 6:0.999978"; do
	IFS=: read -r c trees ratio <<<"$case"
	within 10 "215 of 216 GPUs at slow switches below leaf switches, $c" "$trees" --synthetic "$leaves" \
		--without s0/gpu1 -c "$c"
	[ ! "$full" ] || replayed "215 of 216 GPUs at slow switches below leaf switches, $c"
done
unset ratio
leaves="server:48 gpu:8 switch:150 net:25 leaf:8 oversubscription:3"
ratio=0.999980 within 15 "383 of 384 GPUs at slow switches below leaf switches, allreduce" "386, depth 8" \
	--synthetic "$leaves" --without s5/gpu0 -c allreduce
# Servers below a smaller leaf switch send less to each other, and pass trees on to others.
within 10 "178 of 180 GPUs below leaf switches of 4, 4 and 2 servers, allreduce" "277, depth 10" --synthetic \
	"server:10 gpu:18 switch:900 net:50 leaf:4 oversubscription:2" --without s0/gpu4,s5/gpu11 -c allreduce
# A server that has a narrow leaf switch alone also sends to itself over it.
leaves="server:13 gpu:18 switch:450 net:100 leaf:3 oversubscription:2"
for case in "allgather:500, depth 4:1.000" "allreduce:232, depth 6:0.999981"; do
	IFS=: read -r c trees ratio <<<"$case"
	within 10 "231 of 234 GPUs, one server at a leaf switch, $c" "$trees" --synthetic "$leaves" \
		--without s3/gpu5,s4/gpu0,s6/gpu3 -c "$c"
done
unset ratio
# Where all GPUs of a server are entries none has to send to others.
within 10 "393 of 396 GPUs below leaf switches of 8 and 3 servers, allgather" "393, depth 3" -c allgather \
	--synthetic "server:11 gpu:36 switch:300 net:100 leaf:8 oversubscription:2" \
	--without s2/gpu30,s7/gpu27,s9/gpu24
# Where trees that enter servers once at the bound are not found, a little below it.
ratio=0.994 within 15 "173 of 176 GPUs below leaf switches, allgather" "173, depth 4" --synthetic \
	"server:22 gpu:8 switch:450 net:12.5 leaf:2 oversubscription:3" --without s20/gpu4,s3/gpu3,s8/gpu7 -c allgather
[ ! "$full" ] || {
	leaves="server:64 gpu:16 switch:300 net:25 leaf:4 oversubscription:2"
	within 20 "1023 of 1024 GPUs at slow switches below leaf switches, allgather" "2144, depth 8" \
		--synthetic "$leaves" --without s5/gpu0 -c allgather
	leaves="server:9 gpu:72 switch:450 nic:72@12.5 pcie:64 leaf:4 oversubscription:2"
	ratio=0.999965 within 20 "646 of 648 GPUs of racks below leaf switches, allreduce" "995, depth 8" \
		--synthetic "$leaves" --without s1/gpu7,s3/gpu5 -c allreduce
}
# Of rails at narrow leaf switches hops keep to one, as from one to another they pass the spine.
within 10 "511 of 512 GPUs on rails at narrow leaf switches, broadcast" "32, depth 11" --synthetic \
	"server:64 gpu:8 switch:450 nic:8@50 pcie:64 leaf:16 oversubscription:2 rails" --without s3/gpu7 -c broadcast
# A tree enters each server by four or five of its ranks, on a rail each.
within 10 "899 of 900 GPUs at slow switches on rails, reduce" "33, depth 6" --synthetic \
	"server:50 gpu:18 switch:150 nic:18@100 pcie:48 rails" --without s7/gpu7 -c reduce
# Where such leaf switches are narrow, what they have is shared likewise.
within 10 "415 of 416 GPUs at narrow leaf switches, reduce" "8, depth 5" --synthetic \
	"server:104 gpu:4 switch:300 net:100 leaf:1 oversubscription:4" --without s49/gpu0 -c reduce
# Where they have few hops, each tree enters a leaf once, and servers of the leaf send to the others.
within 10 "944 GPUs at narrow leaf switches, broadcast" "8, depth 9" --synthetic \
	"server:59 gpu:16 switch:300 net:12.5 leaf:3 oversubscription:4" -c broadcast
within 10 "877 of 880 GPUs at narrow leaf switches, reduce" "8, depth 8" --synthetic \
	"server:110 gpu:8 switch:450 net:12.5 leaf:4 oversubscription:4" --without s0/gpu1,s3/gpu2,s7/gpu3 -c reduce
within 10 "768 GPUs, switches, NICs and leaf switches are narrow, broadcast" "8, depth 9" --synthetic \
	"server:96 gpu:8 switch:300 net:100 leaf:2 oversubscription:2" -c broadcast
within 10 "319 of 320 GPUs on rails at very narrow leaf switches, broadcast" "14, depth 10" --synthetic \
	"server:40 gpu:8 switch:450 net:50 rails leaf:8 oversubscription:4" --without s1/gpu2 -c broadcast
# A server alone at a leaf switch enters itself over it, where its own switch has no room for all of a tree.
within 10 "162 GPUs, one server at each leaf switch, reduce" "14, depth 6" --synthetic \
	"server:9 gpu:18 switch:300 net:50 leaf:1 oversubscription:2" -c reduce
within 10 "839 of 840 GPUs, one server at the last leaf switch, reduce" "10, depth 8" --synthetic \
	"server:105 gpu:8 switch:150 net:100 leaf:8 oversubscription:3" --without s31/gpu5 -c reduce
# Ranks that send early in a tree, and are not entered by it again, are few.
within 10 "950 of 952 GPUs at slow switches, reduce" "10, depth 6" --synthetic \
	"server:119 gpu:8 switch:150 net:100 leaf:5" --without s29/gpu4,s69/gpu6 -c reduce
within 10 "144 GPUs of 2 servers at slow switches, broadcast" "13, depth 4" --synthetic \
	"server:2 gpu:72 switch:150 net:12.5" -c broadcast
# Hops of a server exchange the ranks that they leave from: without that, 26 trees.
within 10 "144 GPUs of 2 servers with NICs at slow switches, broadcast" "13, depth 4" --synthetic \
	"server:2 gpu:72 switch:150 nic:72@12.5 pcie:64 leaf:5" -c broadcast
# The NIC of a lost GPU is shared by others, by whole slots of each tree.
within 10 "1023 of 1024 GPUs and all NICs on rails, broadcast" "32, depth 7" --synthetic \
	"server:128 gpu:8 switch:450 nic:8@50 pcie:64 rails" --without s13/gpu3 -c broadcast
within 10 "1023 of 1024 GPUs and all NICs at narrow leaf switches, broadcast" "32, depth 10" --synthetic \
	"server:128 gpu:8 switch:450 nic:8@50 pcie:64 leaf:16 oversubscription:2" --without s3/gpu7 -c broadcast
within 10 "805 of 808 GPUs and all NICs on rails, reduce" "16, depth 7" --synthetic \
	"server:101 gpu:8 switch:300 nic:8@12.5 pcie:24 rails" --without s13/gpu3,s23/gpu5,s4/gpu5 -c reduce
# The last server has a leaf switch of its own, which is not the switch of its GPUs.
leaves="server:9 gpu:18 switch:300 net:50 leaf:2"
for case in "reduce:14, depth 5" "allreduce:162, depth 6" "allgather:162, depth 3"; do
	IFS=: read -r c trees <<<"$case"
	within 10 "9 servers of 18 at 5 leaf switches, $c" "$trees" --synthetic "$leaves" -c "$c"
done
# Leaf switches that are as wide as what is below them are planned as one network, as if there were none.
for leaf in "" leaf:2; do
	ratio=0.999997 within 10 "251 of 252 GPUs of 7 racks, allreduce, ${leaf:-one switch}" "432, depth 6" \
		--synthetic "server:7 gpu:36 switch:900 net:50 $leaf" --without s0/gpu5 -c allreduce
done
# Those without room for the hops between servers are seen before a search.
"$blinkc" -v --synthetic "server:12 gpu:8 switch:450 net:50 leaf:3 oversubscription:6" --without s0/gpu5 -o /dev/null \
	2>"$work/err"
expect "leaf switches without room for trees of one hop" grep -q "^packer unequal servers: no trees" "$work/err"
# What GPUs of a server that lost a NIC receive together is less than a cut around one of them says.
within 10 "222 GPUs of 28 servers less a NIC, allgather" "447, depth 3" --synthetic \
	"server:28 gpu:8 switch:150 nic:8@25 pcie:48" --without nic:s3/nic2,s0/gpu3,s7/gpu1 -c allgather
# The NICs of a server that lost a GPU have seventh parts, which weights of trees hold to the byte, or nearly so.
shared="gpu:8 switch:900 nic:4@12.5 pcie:48"
ratio=1.000, within 10 "639 of 640 GPUs that share NICs, allreduce" "658, depth 6" \
	--synthetic "server:80 $shared" --without s11/gpu0 -c allreduce
within 10 "959 of 960 GPUs that share NICs, allreduce" "977, depth 6" \
	--synthetic "server:120 $shared" --without s11/gpu0 -c allreduce
# Likewise, of a broadcast, where two GPUs share each NIC.
within 10 "160 GPUs that share NICs, broadcast" "14, depth 6" --synthetic \
	"server:10 gpu:16 switch:150 nic:4@100 pcie:100 rails" -c broadcast
[ ! "$full" ] || ratio=0.999769 within 10 "142 of 144 GPUs that share NICs, reduce" "30, depth 8" --synthetic \
	"server:4 gpu:36 switch:720 nic:18@50 pcie:100" --without s1/gpu3,s2/gpu7 -c reduce
# Two GPUs receive what their NIC brings once: the certificate of an allreduce over any number of them has it once, too.
ratio=0.999918 within 10 "1007 of 1008 GPUs that share NICs, allreduce" "1767, depth 6" \
	--synthetic "server:14 gpu:72 switch:150 nic:36@50 pcie:24 rails" --without s4/gpu38 -c allreduce
within 10 "360 GPUs that share NICs on rails, broadcast" "26, depth 8" \
	--synthetic "server:10 gpu:36 switch:300 nic:18@100 pcie:24 rails" -c broadcast
# At the bound of these trees would be many; hardly below it a few have whole slots of all links.
ratio=0.999658 within 10 "430 of 432 GPUs that share NICs, broadcast" "39, depth 7" \
	--synthetic "server:6 gpu:72 switch:450 nic:36@100 pcie:24" --without s4/gpu38,s2/gpu3 -c broadcast
ratio=0.999 within 10 "322 of 324 GPUs that share NICs on rails less one, reduce" "61, depth 7" \
	--synthetic "server:18 gpu:18 switch:300 nic:9@100 pcie:48 rails" --without nic:s13/nic4,s0/gpu10,s10/gpu3 \
	-c reduce
# Each tree leaves the server in which it begins, also where others have used up nearly all of its ways.
[ ! "$full" ] || within 10 "310 of 312 GPUs and all NICs, reducescatter" "328, depth 7" --synthetic \
	"server:39 gpu:8 switch:450 nic:8@12.5 pcie:24 leaf:4 oversubscription:1.5" --without s1/gpu2,s38/gpu6 \
	-c reducescatter
# Two GPUs share a NIC; on rails leaf switches have the same servers.
[ ! "$full" ] || {
	leaves="server:62 gpu:8 switch:300 nic:4@25 pcie:24 leaf:8 oversubscription:2"
	within 10 "495 of 496 GPUs with shared NICs, allreduce" "495, depth 12" \
		--synthetic "$leaves" --without s0/gpu3 -c allreduce
	leaves="server:62 gpu:8 switch:300 net:25 leaf:8 rails oversubscription:2"
	within 10 "495 of 496 GPUs on rails below leaf switches, allgather" "504, depth 8" \
		--synthetic "$leaves" --without s3/gpu2 -c allgather
}
# One GPU lost from networks of switches: homes of GPUs have as many hops as these can send.
within 10 "511 of 512 GPUs at a fat tree, allgather" "511, depth 3" \
	--synthetic "fattree:8x8x8@25 oversubscription:2" --without s5/gpu0 -c allgather
# Where switches have less above than below, few GPUs send in each tree, to many.
within 10 "574 of 576 GPUs at a tapered fat tree, broadcast" "8, depth 7" \
	--synthetic "fattree:6x8x12@25 oversubscription:4" --without s5/gpu0,s77/gpu0 -c broadcast
within 10 "285 of 288 GPUs at a tapered fat tree, reduce" "16, depth 7" \
	--synthetic "fattree:6x4x12@25 oversubscription:4" --without s5/gpu0,s77/gpu0,s99/gpu0 -c reduce
within 10 "287 of 288 GPUs at a tapered fat tree, reducescatter" "287, depth 5" \
	--synthetic "fattree:6x6x8@25 oversubscription:4" --without s3/gpu0 -c reducescatter
ratio=0.999 within 10 "1535 of 1536 GPUs at a tapered fat tree, allreduce" "16, depth 10" \
	--synthetic "fattree:12x16x8@25 oversubscription:3" --without s5/gpu0 -c allreduce
[ ! "$full" ] || ratio=0.999 within 20 "2047 of 2048 GPUs at a tapered fat tree, allreduce" "8, depth 12" \
	--synthetic "fattree:2x32x32@25 oversubscription:4" --without s5/gpu0 -c allreduce
within 10 "511 of 512 GPUs of a HammingMesh, reducescatter" "511, depth 5" \
	--synthetic "hammingmesh:2x2x8x16@25" --without s5/gpu0 -c reducescatter
within 10 "511 of 512 GPUs of a torus that is open in two dimensions, allgather" "518, depth 18" \
	--synthetic "torus:16x8x4@25 open:2" --without s5/gpu0 -c allgather
# Where a list would be too long, trees of each rank.
[ ! "$full" ] || {
	within 40 "4095 of 4096 GPUs of a torus, allgather" "4117, depth 24 from each rank" \
		--synthetic "torus:16x16x16@25" --without s5/gpu0 -c allgather
	within 30 "4095 of 4096 GPUs at a dragonfly, reducescatter" "4095, depth 3 into each rank" \
		--synthetic "dragonfly:8x16x8@25 groups:32" --without s5/gpu0 -c reducescatter
	within 20 "4095 of 4096 GPUs below leaf switches, allgather" "4095, depth 4 from each rank" \
		--synthetic "server:512 gpu:8 switch:450 net:50 leaf:32 oversubscription:2" --without s5/gpu0 \
		-c allgather
}
# A list with room for a tree of each, but hardly for parts of these.
[ ! "$full" ] || within 20 "2046 of 2048 GPUs of a torus, allgather" "2060, depth 64 from each rank" \
	--synthetic "torus:64x32@25 open:1" --without s1094/gpu0,s1616/gpu0 -c allgather
# More trees that are less deep are taken where the sum of trees and depth is less.
oracle fabric abci 2 16 >"$work/t.json"
within 10 "128 GPUs of racks, broadcast" "2, depth 10" "$work/t.json" -l all -c broadcast
within 10 "9 servers of rings, broadcast" "3, depth 7" --synthetic "server:9 gpu:8 ring:25 net:25" -c broadcast
# GPUs at one switch of a network are like one server, where servers have one GPU.
within 10 "127 of 128 GPUs at a fat tree, allgather" "127, depth 3" \
	--synthetic "fattree:8x4x4@25 oversubscription:2" --without s5/gpu0 -c allgather
within 10 "143 of 144 GPUs at a dragonfly, allgather" "143, depth 3" \
	--synthetic "dragonfly:4x4x2@25 groups:9" --without s5/gpu0 -c allgather
within 10 "144 GPUs at a dragonfly, broadcast" "8, depth 7" --synthetic "dragonfly:4x4x2@25 groups:9" -c broadcast
# An allreduce by an allgather's trees is less deep than trees of its own.
within 10 "143 of 144 GPUs at a dragonfly, allreduce" "143, depth 6" \
	--synthetic "dragonfly:4x4x2@25 groups:9" --without s5/gpu0 -c allreduce
# Each rank of each tree chooses its parent, so that no link has too much: at the bound, or hardly below it where this
# takes less time, and not deep.
within 5 "63 of 64 GPUs of an open torus, allreduce" "58, depth 12" \
	--synthetic "torus:4x4x4@25 open:1" --without s5/gpu0 -c allreduce
replayed "63 of 64 GPUs of an open torus, allreduce"
ratio=0.999910 within 5 "511 of 512 GPUs of an open torus, allreduce" "94, depth 24" \
	--synthetic "torus:8x8x8@25 open:1" --without s5/gpu0 -c allreduce
[ ! "$full" ] || ratio=0.999908 within 30 "4095 of 4096 GPUs of an open torus, allreduce" "102, depth 50" \
	--synthetic "torus:16x16x16@25 open:1" --without s5/gpu0 -c allreduce
[ ! "$full" ] || ratio=0.999927 within 60 "4094 of 4096 GPUs of an open torus, allreduce" "78, depth 48" \
	--synthetic "torus:16x16x16@25 open:1" --without s5/gpu0,s1000/gpu0 -c allreduce
# Of few units no tree is light; the bound itself takes most of the time.
within 5 "511 of 512 GPUs of a mesh, allreduce" "5, depth 24" \
	--synthetic "torus:8x8x8@25 open:3" --without s5/gpu0 -c allreduce
[ ! "$full" ] || within 90 "4095 of 4096 GPUs of a mesh, allreduce" "14, depth 48" \
	--synthetic "torus:16x16x16@25 open:3" --without s5/gpu0 -c allreduce
# Where a little finds no room, the lightest trees are left out.
[ ! "$full" ] || ratio=0.999 within 60 "4095 of 4096 GPUs of a mesh, a rate of many units, allreduce" "125, depth 54" \
	--synthetic "torus:16x16x16@25 open:3" --without s1706/gpu0 -c allreduce
# Of limited depth, from a tree of each root.
ratio=0.998 within 20 "575 of 576 GPUs on rails, allreduce of 4 hops" "557, depth 4" --max-depth 4 \
	--synthetic "server:16 gpu:36 switch:900 net:50 rails" --without s4/gpu11 -c allreduce
# Through switches a hop takes two links.
within 10 "255 of 256 GPUs of a HammingMesh, allreduce" "95, depth 8" \
	--synthetic "hammingmesh:2x2x8x8@25" --without s5/gpu0 -c allreduce
within 10 "511 of 512 GPUs of a HammingMesh, allreduce" "111, depth 8" \
	--synthetic "hammingmesh:2x2x8x16@25" --without s5/gpu0 -c allreduce
# Where the bound, and what is within 1e-4 of it, have too many trees, or none are found, the simplest rate within 1e-3.
[ ! "$full" ] || ratio=0.999 within 20 "1021 of 1024 GPUs of a HammingMesh, allreduce" "105, depth 8" \
	--synthetic "hammingmesh:2x2x16x16@25" --without s14/gpu0,s26/gpu0,s7/gpu0 -c allreduce
[ ! "$full" ] || within 20 "511 of 512 GPUs of a HammingMesh, allgather" "511, depth 5" \
	--synthetic "hammingmesh:2x2x8x16@25" --without s5/gpu0 -c allgather
# GPUs with one link each: trees by numbers of children.
[ ! "$full" ] || ratio=0.999756 within 10 "4095 of 4096 GPUs at a dragonfly, allreduce" "16, depth 12" \
	--synthetic "dragonfly:8x16x8@25 groups:32" --without s5/gpu0 -c allreduce
ratio=0.999756 within 8 "4095 of 4096 GPUs at a fat tree, allreduce" "16, depth 12" \
	--synthetic "fattree:16x16x16@25 oversubscription:2" --without s5/gpu0 -c allreduce
[ ! "$full" ] || within 20 "543 of 544 GPUs at a dragonfly, allreduce" "543, depth 6" \
	--synthetic "dragonfly:4x8x4@25 groups:17" --without s5/gpu0 -c allreduce

# A broken budget still ends in a schedule that is right.
oracle cluster 16 8 300 25 5 >"$work/t.json"
"$blinkc" -q "$work/t.json" -c allgather --budget 20ms -o "$work/s.json" || not_ok "budget of 20 ms: exit $?"
expect "budget of 20 ms: what is written" "$blinkc" check -q "$work/s.json"
# What was grown is better than what the linear program has by then.
oracle fabric rails 2 16 1 >"$work/t.json"
"$blinkc" "$work/t.json" -l all -c broadcast --budget 400ms -o "$work/s.json" 2>"$work/err" ||
	not_ok "budget of 400 ms: exit $?"
expect "budget of 400 ms: what is written" "$blinkc" check -q "$work/s.json"
