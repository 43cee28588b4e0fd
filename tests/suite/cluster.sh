# Clusters: files by reference and fabrics, against a program that spells them out; the way to the network; generated
# and synthetic topologies; servers without a NIC.
. tests/lib.sh

canonical() { "$blinkc" convert "$1" --format canonical; }

# flat NAME FILE: FILE is what expand.py makes of it, there and back in both spellings
flat() {
	oracle expand "$2" topologies >"$work/flat.json" || not_ok "$1: expand.py: exit $?"
	canonical "$2" >"$work/a" 2>"$work/err" || { not_ok "$1: $(cat "$work/err")"; return; }
	canonical "$work/flat.json" >"$work/b"
	"$blinkc" convert "$2" -o "$work/again.xml" && canonical "$work/again.xml" >"$work/c"
	"$blinkc" convert "$2" -o "$work/again.json" && canonical "$work/again.json" >"$work/d"
	if cmp "$work/a" "$work/b" && cmp "$work/a" "$work/c" && cmp "$work/a" "$work/d"; then
		ok "$1 is what it stands for"
	else
		not_ok "$1: expand.py says otherwise, or not the same after convert"; fi
}

mkdir "$work/racks"
cp topologies/dgx1v.json "$work/racks/server.json"
cat >"$work/racks/rack.xml" <<'END'
<topology format="blink-topology" version="1" name="rack">
  <class name="net" capacity="12.5" latency="2"/>
  <node id="s" file="server.json" count="3"/>
  <fabric id="leaf"/>
</topology>
END
cat >"$work/rows.json" <<'END'
{ "format": "blink-topology", "version": 1, "name": "rows",
  "classes": [{ "name": "net", "capacity": 10 }, { "name": "nvlink", "capacity": 20, "source": "none" }],
  "nodes": [
    { "id": "r", "file": "racks/rack.xml", "count": 2 },
    { "id": "own", "gpus": [{ "id": "g0" }], "nics": [{ "id": "n0", "capacity": 25 }] },
    { "id": "p", "file": "dgx1p.json" } ],
  "switches": [{ "id": "spine" }],
  "fabrics": [{ "id": "ib", "rails": true, "servers": 2, "oversubscription": 3, "latency": 0.7 }],
  "links": [
    { "from": "g0", "to": "n0", "class": "pcie", "capacity": 12 },
    { "from": "r0/leaf", "to": "spine", "class": "net", "capacity": 50 },
    { "from": "r1/leaf", "to": "spine", "class": "net", "capacity": 50, "duplex": "simplex" } ] }
END
for f in "$work/rows.json" "$work/racks/rack.xml" tests/fuzz/corpus/fuzz_topology/fabric.json \
	tests/fuzz/corpus/fuzz_topology/cluster.xml; do
	flat "$(basename "$f")" "$f"
done
for f in topologies/*.xml; do
	case $f in */abci-2048.xml | */superpod-h100-4su.xml) [ "$full" ] || continue ;; esac
	if grep -q '<fabric\|<node [^>]*file=' "$f" && every 3; then flat "$f" "$f"; fi
done
seeds=$([ "$full" ] && echo 40 || echo 5)
for seed in $(seq 1 "$seeds"); do
	rm -rf "$work/random"
	f=$(oracle random_cluster "$seed" "$work/random")
	find "$work/random" -type f | while read -r x; do
		case $(head -c 1 "$x") in
		"<") xmllint --noout --nonet --schema schemas/topology.xsd "$x" >"$work/out" 2>&1 ;;
		*) oracle validate schemas/topology.schema.json "$x" >"$work/out" 2>&1 ;;
		esac || not_ok "random cluster $seed: $x is not valid: $(head -1 "$work/out")"
	done
	# A fabric may find no port left, or have no capacity from anywhere.
	if canonical "$f" >"$work/out" 2>"$work/err"; then
		flat "random cluster $seed" "$f"; n_clusters=$((${n_clusters:-0} + 1))
	else
		grep -q 'fabrics\[[01]\]\(.capacity\)\?: \|: fabric\( capacity\)\?: ' "$work/err" ||
			not_ok "random cluster $seed: $(cat "$work/err")"; fi
done
if [ "${n_clusters:-0}" -gt $((seeds * 3 / 4)) ]; then
	ok "$n_clusters random clusters"
else
	not_ok "only ${n_clusters:-0} random clusters are right"
fi
(cd "$work/racks" && canonical - <rack.xml) >"$work/a" 2>&1
canonical "$work/racks/rack.xml" >"$work/b"
if cmp -s "$work/a" "$work/b"; then
	ok "files by reference from standard input"
else
	not_ok "standard input: $(head -c 200 "$work/a")"
fi

# One file under many names: refused before all are read.
mkdir "$work/many"
for i in $(seq 1 30); do ln -s . "$work/many/l$i"; done
{
	echo '<topology format="blink-topology" version="1" name="t"><node id="n"><gpu id="g"/><switch id="w"/></node>'
	for i in {1..120}; do echo '<link from="g" to="w" class="pcie" capacity="1"/>'; done
	echo '</topology>'
} >"$work/many/s.xml"
printf '<topology format="blink-topology" version="1" name="t"><node id="s" file="s.xml" count="4000"/></topology>' \
	>"$work/many/m.xml"
{ printf '<topology format="blink-topology" version="1" name="t">'; for i in $(seq 1 30); do printf \
	'<node id="a%s" file="l%s/m.xml"/>' "$i" "$i"; done
	printf '</topology>'; } >"$work/many/top.xml"
expect_exit "too many servers in many files" 4 bash -c 'ulimit -v 800000; exec "$@"' - "$blinkc" \
	convert "$work/many/top.xml"

# ---- generated ----

for options in "" "--nic-rate 25" "--rails" "--rails --oversubscription 2" "--leaf 2" \
	"--leaf 2 --oversubscription 3 --nic-rate 6.25" "--rails --leaf 3"; do
	# shellcheck disable=SC2086 # a list of options
	"$blinkc" topology --servers 4 topologies/dgx1v.xml $options --format cluster \
		-o "$work/cluster.json" 2>"$work/err" &&
		"$blinkc" topology --servers 4 topologies/dgx1v.xml $options --format canonical \
			-o "$work/a" 2>"$work/err" &&
		oracle expand "$work/cluster.json" topologies >"$work/flat.json" &&
			canonical "$work/flat.json" >"$work/b"
	if cmp "$work/a" "$work/b" 2>>"$work/err" && [ "$(wc -c <"$work/cluster.json")" -lt 400 ]; then
		ok "4 servers $options"
	else
		not_ok "4 servers $options: $(cat "$work/err")"
	fi
done
expect "a cluster file validates" oracle validate schemas/topology.schema.json "$work/cluster.json" "$work/rows.json"
expect "so does XML" xmllint --noout --nonet --schema schemas/topology.xsd "$work/racks/rack.xml"
# Names of files: the schemas refuse what blinkc does.
for name in . .. a/. ../a a//b /a a/ "a b"; do
	printf '<topology format="blink-topology" version="1" name="t"><node id="s" file="%s"/></topology>' "$name" \
		>"$work/t.xml"
	printf '{"format":"blink-topology","version":1,"name":"t","nodes":[{"id":"s","file":"%s"}]}' \
		"$name" >"$work/t.json"
	if xmllint --noout --nonet --schema schemas/topology.xsd "$work/t.xml" >/dev/null 2>&1 ||
		oracle validate schemas/topology.schema.json "$work/t.json" >/dev/null ||
			! "$blinkc" convert "$work/t.xml" 2>&1 | grep -q "want the name"; then
		not_ok "file name '$name' is valid"
	else
		ok "file name '$name' is refused"
	fi
done
for name in .a ..a ... a/...b a..; do
	printf '<topology format="blink-topology" version="1" name="t"><node id="s" file="%s"/></topology>' "$name" \
		>"$work/t.xml"
	expect "file name '$name' is valid" xmllint --noout --nonet --schema schemas/topology.xsd "$work/t.xml"
done
expect_exit "no number of servers" 2 "$blinkc" topology topologies/dgx1v.xml
expect_exit "a server's file that is not there" 8 "$blinkc" topology --servers 2 "$work/no/dgx1v.xml"
expect_exit "servers of a synthetic topology" 2 "$blinkc" topology --synthetic "gpu:2 net:1" --rails
expect_exit "servers of standard input" 2 "$blinkc" topology --servers 2 -
expect_exit "a rate that is none" 2 "$blinkc" topology --servers 2 --nic-rate 0 topologies/dgx1v.xml
expect_exit "a server without a NIC" 3 "$blinkc" topology --servers 2 tests/fuzz/corpus/fuzz_topology/direct.json

# ---- synthetic ----

# rate WANT ARGUMENTS...: the allreduce runs at this rate, GB/s, which is the bound
rate() {
	local want=$1 got
	shift
	"$blinkc" "$@" -o "$work/s.json" 2>"$work/err"
	got=$(awk '/^rate/ { r = $2 } /^ratio/ { print r, $2 }' "$work/err")
	if [ "$got" = "$want 1.000" ] && oracle replay "$work/s.json" >/dev/null; then ok "$*: $want GB/s"; else
		not_ok "$*: $got, want $want 1.000: $(head -c 200 "$work/err")"; fi
}
# A partition into servers with C each to the network: n C / (2 (n - 1)); into GPUs in a server: as many links between
# parts.
rate 133.333 --synthetic "server:4 gpu:8 switch:300 net:25"
rate 133.333 --synthetic "server:4 gpu:8 switch:300 nic:8@25 pcie:50"
rate 96 --synthetic "server:2 gpu:8 switch:300 nic:4@25 pcie:24"
rate 66.6667 --synthetic "server:4 gpu:8 switch:300 nic:8@25 pcie:50 rails leaf:2 oversubscription:6"
rate 133.333 --synthetic "server:4 gpu:8 switch:300 nic:8@25 pcie:50 rails"
rate 40 --synthetic "gpu:4 mesh:20"
rate 50 --synthetic "gpu:5 ring:40"
rate 300 --synthetic "gpu:4 switch:300 multicast reduce"
rate 12 --synthetic "gpu:2 pcie:12"
# Into GPUs with 6 links each; bytes that cross the middle of a mesh, and that leave a part of a fat tree of 16 of 64
# GPUs with 100 GB/s; what a GPU next to a lost one, or any, has.
rate 76.1905 --synthetic "torus:4x4x4@25"
rate 12.5 --synthetic "gpu:4 torus:4x4x8@25 open:1" -c alltoall
rate 8.33333 --synthetic "fattree:4x4x4@25 oversubscription:2" -c alltoall
rate 127.016 --synthetic "hammingmesh:2x2x4x4@25 gpu:4 mesh:25" --without s3/gpu1 -c allgather
rate 25.3521 --synthetic "dragonfly:2x4x2@25" -c alltoall
rate 25.3521 --synthetic "dragonfly+:2x4x4x2@25" -c allgather
# What papers say of every two vertices.
while IFS= read -r line; do
	"$blinkc" topology -q --synthetic "$line" --format canonical >"$work/network" 2>"$work/err" &&
		got=$(oracle network "$line" "$work/network" 2>&1) && ok "$line: $got" ||
		not_ok "$line: $got $(cat "$work/err")"
done <<'END'
torus:3x4x2@25
gpu:4 torus:4x4@25 open:1
torus:2x5x1@25 open:3
dragonfly:2x4x2@25
dragonfly:2x3x2@25 groups:4
dragonfly:1x2x4@25 groups:2
dragonfly+:2x3x2x2@25
dragonfly+:1x2x4x3@25 groups:6
fattree:3x2x4@25 oversubscription:3
fattree:4@25
gpu:4 hammingmesh:2x2x2x3@25
hammingmesh:1x3x2x2@25
END
for line in "" "server:2" "gpu:0" "gpu:x" "gpu:8 gpu:8" "gpu:8 nic:2@25" "gpu:8 nic:2 pcie:12" "gpu:8 rails" \
	"gpu:8 rails:1 net:25" "gpu:8 colour:1" \
	"gpu:8 net:25 nic:1@1 pcie:1" "gpu:4 switch:-1" "gpu:8 switch:1e99" \
	"torus:4x4" "torus:4xx4@25" "torus:2x2x2x2x2x2x2x2x2@1" "torus:4x4@25 open:3" "gpu:3 torus:4x4@1" \
	"torus:4x4@1 net:1" "server:2 torus:4x4@1" "gpu:4 mesh:1 open:1" "torus:4x4@1 groups:2" "dragonfly:2x4@1" \
	"dragonfly:2x4x2@1 groups:10" "torus:4x4@1 dragonfly:2x4x2@1" "torus:4x4@1 oversubscription:2" \
	"hammingmesh:2x2x2x2x2@1" \
	"gpu:8 mesh:1 multicast" "gpu:8 net:1 reduce" "gpu:8 net:1 leaf:1 oversubscription:0.0001" \
	"server:8 gpu:8 net:25 oversubscription:2" "gpu:8 nic:9@25 pcie:24"; do
	expect_exit "--synthetic \"$line\"" 2 "$blinkc" --synthetic "$line"
done
for line in "server:8192 gpu:9" "torus:300x300@1" "torus:16384@1" "dragonfly:1x40000x1@1 groups:1" \
	"dragonfly:1x60000x60000@1" "fattree:2x2x2@1000000 oversubscription:0.001" \
	"fattree:2x2x2x2x2x2x2x2@1000 oversubscription:0.001"; do
	expect_exit "--synthetic \"$line\"" 4 "$blinkc" --synthetic "$line"
done
expect_exit "--oversubscription without leaves" 2 "$blinkc" topology --servers 4 --oversubscription 2 \
	topologies/dgx1v.xml
# What is wanted has its least and most; numbers too large to be counted are none.
while IFS='|' read -r line text; do
	"$blinkc" topology --synthetic "$line" >/dev/null 2>"$work/err"
	is "--synthetic \"$line\"" "$(cat "$work/err")" "blinkc: --synthetic: $text"
done <<'END'
server:0|server:0: want a whole number, 1 to 8192
gpu:8 net:1e30|net:1e30: want 1e-06 to 1e+06 GB/s
gpu:8 nic:1|nic:1: want NUMBER@GB/s, 1 to 65536 and 1e-06 to 1e+06 GB/s
gpu:8 switch:5000@1|switch:5000@1: want GB/s or LINKS@GB/s, 1e-06 to 1e+06 GB/s and 1 to 1024 links
gpu:8 rails:1|rails:1: want no value
torus:100000@25|torus:100000@25: want at most 8 numbers, 1 to 65536, and 1e-06 to 1e+06 GB/s, as 4x4x4@25
hammingmesh:1x1@5|hammingmesh:1x1@5: want 4 numbers, 1 to 65536, and 1e-06 to 1e+06 GB/s, as 4x4x4x4@25
gpu:8 nic:9@25 pcie:1|nic: 9 NICs: want at most the 8 GPUs of a server
hammingmesh:999x999x999x999@25|more than 65536 GPUs: want at most that many
dragonfly:1000x1000x1000@25|more than 65536 GPUs: want at most that many
END
"$blinkc" topology --synthetic "$(head -c 100000 /dev/zero | tr '\0' a)" >/dev/null 2>"$work/err"
expect "a long word is cut, and all keys are named" \
	grep -qE '^blinkc: --synthetic: a{40}: want one of server .* multicast reduce$' "$work/err"
expect_exit "--synthetic and a file" 2 "$blinkc" --synthetic gpu:2 topologies/dgx1v.xml

# ---- the way to the network ----

printf '<topology format="blink-topology" version="1" name="two"><class name="net" capacity="12.5"/>
<node id="s" file="dgx1v.xml" count="2"/><node id="t" file="dgx1p.xml"/><fabric/></topology>' >"$work/three.xml"
"$blinkc" convert "$work/three.xml" -o "$work/machine.json"
for gpus in 0,1,2,11,12,13,14,15 0,8 1,2,5,9 0,7,8,15 3,4,11,12,13 0,1,2,3,4,5,6,7,8 4,9,16,23 \
	0,1,2,3,8,9,10,11,16,17,18,19; do
	every 2 || continue
	for c in allreduce gather; do
		"$blinkc" -q "$work/three.xml" -g $gpus -c $c -o "$work/$c-$gpus.json" || not_ok "$gpus $c: exit $?"
	done
	expect "GPUs $gpus, replayed" oracle replay "$work/allreduce-$gpus.json" "$work/gather-$gpus.json"
	expect "GPUs $gpus reach their NICs" oracle access "$work/machine.json" "$work/allreduce-$gpus.json"
done
for seed in $(seq 1 "$([ "$full" ] && echo 30 || echo 2)"); do
	oracle random_servers "$seed" >"$work/t.json"
	"$blinkc" convert "$work/t.json" -o "$work/machine.json" || not_ok "random servers $seed: exit $?"
	gpus=$(oracle random_servers "$seed" --job)
	"$blinkc" -q "$work/t.json" -l nvlink,net -g "$gpus" -c allgather -o "$work/s.json" 2>"$work/err" ||
		not_ok "random servers $seed: $(cat "$work/err")"
	expect "random servers $seed reach their NICs" oracle access "$work/machine.json" "$work/s.json"
	# No GPU reaches a CPU by NVLink, so qpi is for the ways to NICs only.
	"$blinkc" -q "$work/t.json" -l nvlink,qpi,net -g "$gpus" -c allgather -o "$work/s.json" 2>"$work/err" ||
		not_ok "random servers $seed: $(cat "$work/err")"
	expect "random servers $seed reach their NICs over qpi" oracle access "$work/machine.json" "$work/s.json"
done

# Many NICs, all near or all but one behind another switch.
for place in p q; do
	{ printf '<topology format="blink-topology" version="1" name="t"><class name="net" capacity="12.5"/>'
		echo '<class name="pcie" capacity="12"/><class name="nvlink" capacity="25"/>'
		for s in 0 1; do
			printf '<node id="s%d"><switch id="w%d"/><switch id="p%d"/><switch id="q%d"/>\n' $s $s $s $s
			for i in {0..999}; do printf '<gpu id="s%d/g%d"/><nic id="s%d/n%d"/>\n' $s $i $s $i; done
			printf '</node><link from="p%d" to="q%d" class="pcie"/>\n' $s $s
			near=p
			for i in {0..999}; do
				printf '<link from="s%d/g%d" to="w%d" class="nvlink"/>' $s $i $s
				printf '<link from="s%d/g%d" to="p%d" class="pcie"/>' $s $i $s
				printf '<link from="s%d/n%d" to="%s%d" class="pcie"/>\n' $s $i $near $s
				near=$place
			done
		done
		echo '<fabric/></topology>'; } >"$work/t.xml"
	expect_exit "2000 NICs at $place in seconds" 3 bash -c 'ulimit -t 8; exec "$@"' - "$blinkc" "$work/t.xml" \
		-l nvlink,net -c broadcast -r none
done

# classes WANT FILES: servers of these files, and which classes are used by default
classes() {
	local want=$1 n=0 got
	shift
	{ printf '<topology format="blink-topology" version="1" name="mixed">'
		for f in "$@"; do printf '<node id="n%s" file="%s"/>' $n "$f"; n=$((n + 1)); done
		printf '<fabric capacity="12.5"/></topology>'; } >"$work/t.xml"
	"$blinkc" -q "$work/t.xml" -c broadcast -o "$work/s.json" || not_ok "$*: exit $?"
	got=$(oracle snippet --field "$work/s.json" '",".join(d["generator"]["options"]["links"])')
	if [ "$got" = "$want" ]; then ok "$*: $want"; else not_ok "$*: $got, want $want"; fi
}
classes nvlink,net dgx1v.xml dgx1p.xml
classes nvlink,xgmi,net dgx1v.xml mi300x.xml
"$blinkc" convert "$work/t.xml" -o "$work/machine.json"
expect "servers of two kinds reach their NICs" oracle access "$work/machine.json" "$work/s.json"
classes nvlink,xgmi,net dgx-a100.xml dgx1v.xml mi300x.xml
classes nvlink,pcie,qpi,net dgx1v.xml pcie-8gpu.xml

printf '<topology format="blink-topology" version="1" name="t">
<class name="nvlink" capacity="25"/><class name="net" capacity="12.5"/>
<node id="a"><gpu id="g0"/><gpu id="g1"/><nic id="n0"/></node><node id="b"><gpu id="g2"/></node><switch id="ib"/>
<link from="g0" to="g1" class="nvlink"/><link from="g0" to="n0" class="pcie" capacity="12"/>
<link from="n0" to="ib" class="net"/></topology>' >"$work/t.xml"
expect_exit "a server without a NIC, in a job" 5 "$blinkc" "$work/t.xml"
if grep -q 'server b has no NIC' "$work/err"; then ok "says so"; else not_ok "says $(cat "$work/err")"; fi
expect "and without it" "$blinkc" -q "$work/t.xml" -g g0,g1 -o "$work/s.json"
