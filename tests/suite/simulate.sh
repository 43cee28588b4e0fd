# blinkc simulate: equal to a plain simulator of its own and to the closed formulas of the literature, to the ps; never
# below the bound; its files, messages and limits.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

v=topologies/dgx1v.xml
same() { expect "$1: as the plain simulator" oracle simulated "$blinkc" "${@:2}"; }

"$blinkc" -q $v -g 0-3,5 -o "$work/s.json"
same "allreduce, kernel" --size 1000,3000001 "$work/s.json"
same "allreduce, copy engines" --executor copy --size 70000 "$work/s.json"
same "allreduce, host" --executor host --size 300000 "$work/s.json"
same "packets, lines and chunks" --chunk 16K --size 65536,65537,1000001,2097152,2097153 "$work/s.json"
# by NAME WANT SCHEDULE OPTION...: the protocols of its sizes
by() {
	"$blinkc" simulate "$3" "${@:4}" >"$work/by"
	got=$(awk '/ us / { rows = 1; next }
		rows { print /\(packets\)/ ? "packets" : /\(lines\)/ ? "lines" : "chunks" }' "$work/by" | xargs)
	expect "$1: $2" [ "$got" = "$2" ]
}
by "NVLinks of a V100" "packets lines lines chunks" "$work/s.json" --size 65536,65537,2097152,2097153
by "copy engines" "chunks chunks" "$work/s.json" --executor copy --size 64K,1M
# No room for what a pair has of the longest segment; NVLinks of a P100; a part over PCIe; switches that add and copy.
echo '{"kernel": {"line_most": 1000000000}}' >"$work/long.json"
by "no more than there is room for" "lines chunks" "$work/s.json" --parameters "$work/long.json" --size 2M,40M
same "no more than there is room for" --parameters "$work/long.json" --chunk 1024K --size 2000000,40000000 \
	"$work/s.json"
"$blinkc" -q topologies/dgx1p.xml -g 0-3 -o "$work/pascal.json"
by "NVLinks of a P100" "packets chunks" "$work/pascal.json" --size 256K,1M
same "NVLinks of a P100" --chunk 16K --size 100000,1000000 "$work/pascal.json"
"$blinkc" -q $v -g 0-3 --hybrid -o "$work/hybrid.json"
by "a part over PCIe" "packets chunks" "$work/hybrid.json" --size 256K,1M
"$blinkc" -q topologies/dgx-h100-nvls.xml -g 0-3 -o "$work/nvls.json"
by "switches that add and copy" "packets chunks" "$work/nvls.json" --size 256K,1M
# Ranks that several others reduce into, over links that several trees share.
"$blinkc" -q topologies/pcie-8gpu.xml -g 0-2,4,5 -o "$work/pcie.json"
same "shared links, kernel" --chunk 128K --size 1000000 "$work/pcie.json"
same "shared links, copy engines" --executor copy --chunk 128K --size 1000000 "$work/pcie.json"
# Steps of which many end at a whole ps: rates that are rounded down make them late, and the last one by 148 ps.
same "ends at whole ps, copy engines" --executor copy --chunk 64K --size 4M "$work/pcie.json"
# Links that share in chains: levels of 2^-40 bytes/s made the time one ps too short.
"$blinkc" -q topologies/pcie-8gpu.xml -g 0,1,3,6,7 -o "$work/chains.json"
echo '{"copy": {"at_once": 2, "by_length": 1, "step": 0}}' >"$work/p.json"
same "links that share in chains, copy engines" --executor copy --parameters "$work/p.json" --chunk 128K --size \
	3000000 "$work/chains.json"
# More than a hundred steps over several links at once.
"$blinkc" -q topologies/pcie-8gpu.xml -o "$work/pcie.json"
same "shared links of 8 GPUs, kernel" --chunk 256K --size 3000000 "$work/pcie.json"
same "shared links of 8 GPUs, copy engines" --executor copy --chunk 256K --size 3000000 "$work/pcie.json"
"$blinkc" -q topologies/two-dgx1v.xml -g s0:0-2,s1:0-1 -o "$work/two.json"
same "two servers" --chunk 128K --size 1000000 "$work/two.json"
if [ "$full" ]; then
	oracle innetwork make "$work" 1 6 >"$work/out"
	for t in "$work"/t[1-6].json; do
		"$blinkc" -q "$t" -o "$work/in.json" &&
			same "switches that multicast or reduce, ${t##*/}" --chunk 16K --size 300000 "$work/in.json"
	done
fi

# Servers of unequal size: no classes, and links that bound steps by turns.
"$blinkc" -q --synthetic "server:3 gpu:4 switch:300 net:25" --without s1/gpu2 -o "$work/lost.json"
same "servers of which one lost a GPU, kernel" --chunk 256K --size 3000000 "$work/lost.json"
echo '{"kernel": {"at_once": 6, "by_length": 0, "step": 0}}' >"$work/p.json"
same "servers of which one lost a GPU, equal weights" --parameters "$work/p.json" --chunk 256K --size \
	3000000 "$work/lost.json"

# ---- one hop of each class for all ----

# folds NAME OPTIONS: one hop of each class gives the bytes of all; a trace needs all
folds() {
	expect "classes of hops, $1" "$blinkc" simulate "$work/alike.json" "${@:2}" --format json -o "$work/one.sim"
	expect "all hops, $1" "$blinkc" simulate "$work/alike.json" "${@:2}" --format json -o "$work/all.sim" \
		--trace "$work/all.trace"
	expect "classes of hops, $1: the same bytes" cmp "$work/one.sim" "$work/all.sim"
}
"$blinkc" -q topologies/dgx2.xml -o "$work/alike.json"
echo '{"kernel": {"at_once": 3, "fused": 0, "reduce_step": 1}}' >"$work/p.json"
folds "copy engines" --executor copy --size 30M --chunk 100000
folds "kernel with few blocks" --parameters "$work/p.json" --size 30M --chunk 300000
# Servers in units: GPUs issue, and trees go, around their own unit first.
cp topologies/dgx-h100.xml "$work"
echo '<topology format="blink-topology" version="1" name="units">
<node id="s" file="dgx-h100.xml" count="8"/> <fabric id="ib" rails="true" servers="2"/> </topology>' >"$work/units.xml"
"$blinkc" -q "$work/units.xml" -g s0:0-1,s1:0-1,s2:0-1,s3:0-1 -o "$work/alike.json"
same "units of servers" --parameters "$work/p.json" --chunk 16K --size 300000 "$work/alike.json"
"$blinkc" -q "$work/units.xml" -o "$work/alike.json"
folds "units of servers" --size 4M --chunk 32K
if [ "$full" ]; then
	expect "units of servers: more steps than without classes" "$blinkc" simulate "$work/alike.json" --size 8G \
		--chunk 2K --format csv
fi
if [ "$full" ]; then
	"$blinkc" -q topologies/kesch-12.xml -o "$work/alike.json"
	folds "thousands of steps that share links" --size 64M --chunk 300000
	folds host --executor host --size 9M --chunk 100000
	expect "more steps than without classes" "$blinkc" simulate "$work/alike.json" --size 1G \
		--chunk 100 --format csv
	for t in p4d mi300x two-dgx1v pcie-8gpu; do
		"$blinkc" -q topologies/$t.xml -o "$work/alike.json"
		folds "$t, kernel" --size 48M --chunk 1M
		folds "$t, copy engines" --executor copy --size 48M --chunk 1M
	done
	"$blinkc" -q topologies/two-dgx1v.xml -c broadcast -r 3 -o "$work/alike.json"
	folds "broadcast" --size 48M --chunk 1M
fi

# ---- closed formulas ----

if [ "$full" ]; then
	expect "closed formulas" oracle closed "$blinkc" "$work"
else
	expect "closed formulas: some" oracle closed "$blinkc" "$work" --every 13 --first 0
fi

# ---- every machine, collective and executor: never below the bound ----

# never_below TOPOLOGY SIZES COLLECTIVE...: each time is at least the least time of any algorithm, and the rate at most
# the bound
never_below() {
	local machine=$1 sizes=$2 c x
	shift 2
	for c; do
		"$blinkc" -q "$machine" -c "$c" --budget 5s -o "$work/b.json" 2>"$work/err" ||
			{ not_ok "$machine, $c: $(cat "$work/err")"; continue; }
		for x in kernel copy host; do
			"$blinkc" simulate "$work/b.json" --executor $x --size "$sizes" --format \
				json -o "$work/b.sim" ||
				{ not_ok "$machine, $c, $x: exit $?"; continue; }
			expect "${machine##*/}, $c, $x: not below the bound" oracle snippet -c '
import json, sys
d = json.load(open(sys.argv[1]))
for r in d["sizes"]:
    assert r["time_ps"] >= r["least_ps"] > 0 and r["algbw"] <= d["bound"], r
    assert r["time_ps"] >= r["bytes"] / d["bound"] * 1000, r
    assert all(link["use"] <= 1 for link in r["links"])
' "$work/b.sim"
		done
	done
}
if [ "$full" ]; then
	for machine in dgx1p dgx2 mi300x pcie-8gpu dgx1v two-dgx1v kesch summit mi250 dgx-h100 abci p4d; do
		never_below topologies/$machine.xml 1,64K,100M broadcast allreduce allgather
	done
	never_below topologies/dgx1v.xml 1000,1M reduce gather scatter reducescatter alltoall
else
	never_below $v 1,64K,1G allreduce
fi

# ---- the command ----

expect "sizes" "$blinkc" simulate "$work/s.json" --size 1K-4K,1M
has "a line for each" '^ +4096 +[0-9]+ '
if [ "$(wc -l <"$work/out")" = 7 ]; then ok "4 sizes"; else not_ok "$(wc -l <"$work/out") lines, want 7"; fi
expect "one size" "$blinkc" simulate "$work/s.json" --size 1M --trace "$work/1.trace"
has "its critical path" '^path        of steps of which each let the next begin; from the call: 3\.3 us$'
expect "a trace" "$blinkc" simulate "$work/s.json" --size 1M --trace "$work/2.trace" --format csv
expect "the same bytes" cmp "$work/1.trace" "$work/2.trace"
expect "rows do not overlap, each with a name" oracle snippet -c '
import json, sys
from fractions import Fraction
events = json.load(open(sys.argv[1]), parse_float=Fraction)["traceEvents"]
names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
until = {}
for e in events:
    if e["ph"] == "X":
        assert e["ts"] >= until.get(e["tid"], 0) and e["dur"] > 0, e
        until[e["tid"]] = e["ts"] + e["dur"]
assert set(until) == set(names) and len(set(names.values())) == len(names)
' "$work/1.trace"
"$blinkc" simulate "$work/s.json" --size 1K,1M --format json -o "$work/s.sim"
expect "its schema" oracle validate schemas/simulate.schema.json "$work/s.sim"
expect "for this machine" "$blinkc" simulate "$work/s.json" --size 1K --topology $v
expect_exit "for another machine" 3 "$blinkc" simulate "$work/s.json" --size 1K --topology topologies/dgx2.xml

# ---- parameters ----

echo '{"kernel": {"call": 10, "at_once": 1, "efficiency": {"nvlink": 0.5}}, "copy": {}}' >"$work/p.json"
expect "parameters of a file" "$blinkc" simulate "$work/s.json" --parameters "$work/p.json" --size 1G --format csv
expect "their schema" oracle validate schemas/simulate-parameters.schema.json "$work/p.json"
same "parameters of a file" --parameters "$work/p.json" --size 2000000 "$work/s.json"
# refused NAME EXIT MESSAGE JSON
refused() {
	echo "$4" >"$work/p.json"
	expect_exit "$1" "$2" "$blinkc" simulate "$work/s.json" --parameters "$work/p.json"
	if grep -qF -- "$3" "$work/err"; then ok "$1: told"; else not_ok "$1: $(cat "$work/err")"; fi
}
refused "no such executor" 3 'gpu' '{"gpu": {}}'
refused "no such parameter" 3 'kernel.calls' '{"kernel": {"calls": 1}}'
refused "a rate above the link" 4 'copy.efficiency.nvlink: 1.5' '{"copy": {"efficiency": {"nvlink": 1.5}}}'
refused "a rate far above the link" 4 'want at most 1 (of the capacity)' '{"kernel": {"efficiency": {"nvlink": 2}}}'
refused "no object" 3 'want an object' '[]'
refused "below 0" 3 'kernel.step: -1' '{"kernel": {"step": -1}}'

# Of a topology file: as those of a file alone, in both spellings; the digest, and so the schedule, is the same.
cat >"$work/with.xml" <<'X'
<topology format="blink-topology" version="1" name="two">
  <parameters><kernel call="10" at_once="1"><efficiency nvlink="0.5"/><latency nvlink="2"/></kernel><host/></parameters>
  <node id="n"><gpu id="a"/><gpu id="b"/></node>
  <link from="a" to="b" class="nvlink" capacity="25"/>
</topology>
X
grep -v parameters "$work/with.xml" >"$work/plain.xml"
echo '<topology format="blink-topology" version="1" name="three"><node id="m" file="with.xml"/></topology>' \
	>"$work/inside.xml"
echo '{"kernel": {"call": 10, "at_once": 1, "efficiency": {"nvlink": 0.5}, "latency": {"nvlink": 2}}}' >"$work/p.json"
expect "its schema" xmllint --noout --schema schemas/topology.xsd "$work/with.xml"
expect "as JSON" "$blinkc" convert "$work/with.xml" --format json -o "$work/with.json"
expect "its schema of JSON" oracle validate schemas/topology.schema.json "$work/with.json"
expect "and back" "$blinkc" convert "$work/with.json" --format xml -o "$work/again.xml"
"$blinkc" convert "$work/with.xml" --format xml -o "$work/once.xml"
expect "the same bytes again" cmp "$work/once.xml" "$work/again.xml"
"$blinkc" -q "$work/plain.xml" -o "$work/two.json"
"$blinkc" -q "$work/with.xml" -o "$work/three.json"
expect "the same schedule" cmp "$work/two.json" "$work/three.json"
"$blinkc" simulate "$work/two.json" --size 1K,1M --parameters "$work/p.json" --format csv >"$work/want"
for t in with.xml with.json inside.xml; do
	g=$work/two.json
	[ $t = inside.xml ] && g=$work/in.json && "$blinkc" -q "$work/inside.xml" -o "$g"
	"$blinkc" simulate "$g" --size 1K,1M --topology "$work/$t" --format csv >"$work/have"
	expect "parameters of $t" cmp "$work/want" "$work/have"
done
echo '{"kernel": {"call": 7}}' >"$work/p.json"
"$blinkc" simulate "$work/two.json" --size 1K --topology "$work/with.xml" --parameters "$work/p.json" \
	--format json >"$work/out"
has "a file has the last word" '"call": 7,'
has "and leaves the rest" '"at_once": 1,'
"$blinkc" "$work/with.xml" --size 1K -o "$work/three.json" 2>"$work/out"
has "a choice of a size takes them" '^time +10\.[0-9]+ us'

# ---- limits ----

expect_exit "too many chunks" 4 "$blinkc" simulate "$work/s.json" --size 1G --chunk 1
expect_exit "too many chunks for a trace" 4 "$blinkc" simulate "$work/s.json" --size 1G --chunk 100 --trace "$work/t"
expect_exit "longer than 53 days" 4 "$blinkc" simulate "$work/s.json" --size 1152921504606846976 \
	--chunk 1152921504606846976
# A root of 1200 GPUs sends 1199 times the message over one link: 1.08e19 bytes, then 8.99e18, which 63 bits hold.
"$blinkc" -q --synthetic "gpu:1200 switch:1000000" -a direct -c broadcast -o "$work/star.json"
expect_exit "2^63 bytes on a link" 4 "$blinkc" simulate "$work/star.json" --size 9007199254740992
"$blinkc" simulate "$work/star.json" --size 7500000000000000 --format json >"$work/out"
has "almost 2^63 bytes on a link" '"link": 0, "bytes": 8992500000000000000,'
expect_exit "no chunk" 2 "$blinkc" simulate "$work/s.json" --chunk 0
expect_exit "several chunks" 2 "$blinkc" simulate "$work/s.json" --chunk 1K-4K
expect_exit "no such executor" 2 "$blinkc" simulate "$work/s.json" --executor gpu
expect_exit "a trace of several sizes" 2 "$blinkc" simulate "$work/s.json" --trace "$work/t"
expect_exit "no file" 2 "$blinkc" simulate
sed 's/"latency": 3.4/"latency": 0/' "$work/s.json" >"$work/none.json"
expect "links without latency" "$blinkc" simulate "$work/none.json" --size 1M
has "what is assumed" '^assumed     latency of nvlink, '

# ---- ranks that share memory, or processors ----

takes() { # NAME US OPTIONS: of a message of 1000 bytes
	"$blinkc" simulate --executor host --parameters "$work/p.json" --size 1000 --format csv "${@:3}" >"$work/out"
	if [ "$(awk -F, 'NR == 2 { print $5 }' "$work/out")" = "$2" ]; then ok "$1: $2 us"; else
		not_ok "$1: want $2 us: $(tail -1 "$work/out")"
	fi
}
for n in 2 3; do "$blinkc" -q --synthetic "gpu:$n switch:1" -c broadcast -a chain -o "$work/chain$n.json"; done
# A byte takes 1 ns each time: the root reads its input and writes a ring, who forwards reads one and writes its own and
# the output, the last reads and writes. Half of a call comes before, half when a rank begins to wait.
shares() { # CORES TASK LANE [CACHE [EXCHANGE]]
	echo "{\"host\": {\"by_memory\": 1, \"cores\": $1, \"call\": 1, \"task\": $2, \"lane\": $3, \"cached\": 1,
		\"exchange\": ${5:-1}, \"turn\": 10, \"wake\": 5, \"cache\": ${4:-0},
		\"memory\": 0.5, \"memory_alone\": 0.25}}" >"$work/p.json"
}
shares 3 1 0
takes "two ranks that share memory" 6.5 "$work/chain2.json"
takes "three" 10.5 "$work/chain3.json"
shares 3 1 1
takes "each rank that a chunk comes from or goes to" 14.5 "$work/chain3.json"
shares 3 40 0
takes "the others sleep meanwhile, and wake up" 137.5 "$work/chain3.json"
shares 1 1 0
takes "three on one processor, whose first turns take as long as waking up" 30 "$work/chain3.json"
shares 3 1 0 1
takes "nearly all from memory, where caches hold a byte, for one processor at a time" 18.4958 "$work/chain2.json"
shares 3 1 0 0 0.5
takes "rings of small calls, by a rate of their own" 8.5 "$work/chain2.json"
shares 1 1 0
expect_exit "no trace of them" 2 "$blinkc" simulate --executor host --parameters "$work/p.json" --size 1000 \
	"$work/chain3.json" --trace "$work/t.trace"
expect "no critical path" "$blinkc" simulate --executor host --parameters "$work/p.json" --size 1000 "$work/chain3.json"
"$blinkc" -q --synthetic "gpu:1025 switch:1" -c broadcast -a chain -o "$work/many.json"
expect_exit "more of them than a server has" 4 "$blinkc" simulate --executor host --parameters "$work/p.json" \
	--size 1K "$work/many.json"
# Four GPUs that send at once over links of their own: start-ups of 10 us, by two processors or one.
"$blinkc" -q --synthetic "gpu:4 switch:1" -c alltoall -o "$work/all.json"
startups() {
	echo "{\"host\": {\"cores\": $1, \"at_once\": 0, \"call\": 0, \"step\": 10, \"latency\": {\"nvlink\": 0},
		\"efficiency\": {\"nvlink\": 1}}}" >"$work/p.json"
}
startups 1
takes "twelve start-ups by one processor" 120.25 "$work/all.json"
startups 2
takes "by two" 60.5 "$work/all.json"
startups 12
takes "by twelve" 10.75 "$work/all.json"
# Links with buckets.
shapes() { # PARAMETERS [AT_ONCE]
	echo "{\"host\": {\"at_once\": ${2:-0}, \"call\": 0, \"step\": 0, \"latency\": {\"nvlink\": 0},
		\"efficiency\": {\"nvlink\": 1}, $1}}" >"$work/p.json"
}
shapes '"burst": 400'
takes "of 1000 bytes a bucket lets 400 pass at once" 0.6 "$work/chain2.json"
takes "each link has one" 1.2 "$work/chain3.json"
takes "in short chunks, too" 0.6 "$work/chain2.json" --chunk 100
# Messages with headers.
shapes '"header": 122'
takes "1000 bytes and a header" 1.122 "$work/chain2.json"
takes "each of ten chunks has one" 2.22 "$work/chain2.json" --chunk 100
# Four GPUs: each sends to the next first, so that none gets from several at once.
shapes '"reduce": 0' 1
takes "an alltoall goes around" 0.75 "$work/all.json"
# A root of two: its second message moves once the first has.
"$blinkc" -q --synthetic "gpu:4 switch:1" -c broadcast -a knomial -o "$work/two.json"
shapes '"in_order": 0'
takes "two messages share the way out of a root, and who forwards waits" 3 "$work/two.json" --chunk 1000
shapes '"in_order": 1'
takes "in order one comes after the other" 2 "$work/two.json" --chunk 1000
echo '{"host": {"at_once": 0, "in_order": 1, "header": 122}}' >"$work/p.json"
for s in all two pcie chain3; do
	same "messages in order, $s" --executor host --parameters "$work/p.json" --chunk 2K --size 1000,30000 \
		"$work/$s.json"
done
echo '{"kernel": {"header": 100}}' >"$work/p.json"
same "headers of packets, lines and chunks" --parameters "$work/p.json" --chunk 16K --size 1000,100000,3000000 \
	"$work/s.json"

# ---- parameters from measured times ----

# fits NAME PARAMETERS FIRST: times with parameters are met, from others.
fits() {
	echo "$2" >"$work/p.json"
	echo "$3" >"$work/first.json"
	: >"$work/times.csv"
	for s in chain3 all; do
		"$blinkc" simulate --executor host --parameters "$work/p.json" --size 1K,64K,4M --format csv \
			"$work/$s.json" | awk -F, -v s="$work/$s.json" 'NR > 1 { printf "%s,%s,%.3f\n", s, $1, $5 }' \
			>>"$work/times.csv"
	done
	"$blinkc" fit "$work/times.csv" --parameters "$work/first.json" -o "$work/fitted.json" 2>"$work/out"
	has "$1" '^fit +6 measurements, (8.|9.|100).[0-9] % of them within 15 %'
	expect "$1: their schema" oracle validate schemas/simulate-parameters.schema.json "$work/fitted.json"
}
fits "of links" \
	'{"host": {"at_once": 0, "call": 50, "step": 20, "efficiency": {"nvlink": 0.5}, "latency": {"nvlink": 9}}}' \
	'{"host": {"at_once": 0}}'
fits "of ranks that share memory" \
	'{"host": {"by_memory": 1, "cores": 2, "call": 6, "task": 3, "turn": 9, "cached": 20}}' \
	'{"host": {"by_memory": 1, "cores": 2}}'
refuses() { # NAME TEXT MESSAGE
	printf '%b' "$2" >"$work/times.csv"
	"$blinkc" fit "$work/times.csv" >"$work/out" 2>&1
	[ $? = 3 ] || not_ok "$1: exit"
	has "$1" "$3"
}
refuses "a measurement without a time" 'a.json,5\n' 'times.csv:1: want schedule,bytes,us'
refuses "no bytes" "$work/all.json,0,5\n" 'times.csv:1: bytes: want a number from 1'
refuses "no time" "# first\n$work/all.json,8,0\n" 'times.csv:2: us: want a number above 0'
refuses "nothing" '\n' 'no measurement'

# ---- the search for a size of chunks ----

# Half a million steps or more: the last size that is tried took least.
"$blinkc" -q --synthetic "server:64 gpu:4 switch:300 net:25" -c broadcast --algorithm chain -o "$work/chain.json"
"$blinkc" simulate --size 1M,1G "$work/chain.json" >"$work/out"
has "a chain, 1 GiB: the search is cut off" '^ +1073741824 .*smaller chunks are not tried'
is "a chain, 1 MiB: it is not" "$(grep -c 'smaller chunks' "$work/out")" 1
"$blinkc" simulate --size 1G --format json "$work/chain.json" >"$work/limited.json"
expect "a chain, 1 GiB: its schema" oracle validate schemas/simulate.schema.json "$work/limited.json"
expect "a chain, 1 GiB: in JSON" grep -q '"limited": true' "$work/limited.json"

# ---- docs/simulator.md ----

expect "its tables" oracle measured "$blinkc" docs/simulator.md "$work"
