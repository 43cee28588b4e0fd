# The machines in topologies/: each says where its numbers come from, and its schedules have the rate that its wiring
# allows, as worked out here by hand. That the files are valid is for the schema suite.
# shellcheck shell=bash disable=SC2154
. tests/lib.sh

# ---- sources ----

# What of a flat topology on stdin has no source, or one that does not say what kind of number it is.
unsourced='
import json, re, sys
topo = json.load(sys.stdin)
source = {c["name"]: c.get("source", "") for c in topo.get("classes", [])}
texts = {link["class"]: link.get("source") or source.get(link["class"], "") for link in topo["links"]}
texts |= {c["name"]: c.get("source", "") for c in topo.get("classes", []) if "capacity" in c}
texts |= {"net": source.get("net", "") for node in topo["nodes"] for nic in node.get("nics", []) if "capacity" in nic}
missing = [name for name, text in texts.items() if not re.search("nominal|effective|measured|estimate", text)]
missing += [] if topo.get("source") else ["the topology"]
print(*missing)
sys.exit(bool(missing))'
for t in topologies/*.xml topologies/*.json; do
	"$blinkc" convert "$t" -o "$work/flat.json" || not_ok "$t: convert: exit $?"
	expect "$t: every number has a source" oracle snippet -c "$unsourced" <"$work/flat.json"
done
for t in topologies/*.json; do
	expect "$t: the same machine in XML" cmp <("$blinkc" convert "$t" --format canonical) \
		<("$blinkc" convert "${t%.json}.xml" --format canonical)
done

# ---- rates ----

# Allgather: into a set T of the n GPUs go the blocks of the others, over the links into T, of capacity in(T) together:
# the rate is at most n in(T) / (n - |T|). Allreduce: where the GPUs are divided into k parts, the buffer crosses into
# parts at least k - 1 times to be reduced, and as often to be broadcast: the rate is at most the sum of all in(P),
# divided by 2 (k - 1). The least of these is reached. Of a row the first pair is for the link classes that blinkc uses,
# the second for PCIe and the links between sockets alone, where those connect all GPUs. GB/s; a NIC gets 12, 24 or 48
# over PCIe, less than its port has.
table() {
	cat <<-'TABLE'
	# 4 and 6 NVLinks into each GPU; 6 between sockets
	dgx1p          8   nvlink           8*80/7         8*80/14        8*6/4          2*6/2
	dgx1v          8   nvlink           8*150/7        8*150/14       8*6/4          2*6/2
	# the NVLinks into a GPU; 12, 24 or 48 over PCIe into a GPU, or 22 between sockets, which is less than 48 * 4/7
	dgx2           16  nvlink           16*150/15      16*150/30      16*12/15       16*12/30
	dgx-a100       8   nvlink           8*300/7        8*300/14       8*24/7         8*24/14
	p4d            8   nvlink           8*300/7        8*300/14       8*12/7         8*12/14
	dgx-h100       8   nvlink           8*450/7        8*450/14       8*22/4         2*22/2
	hgx-b200       8   nvlink           8*900/7        8*900/14       8*48/7         8*48/14
	gb200-nvl72    72  nvlink           72*900/71      72*900/142     -              -
	# the switch adds and copies: each GPU sends its buffer once, and receives the sum once
	dgx-h100-nvls  8   nvlink           8*450/7        450            8*22/4         2*22/2
	# 110 between the CPUs
	gb200-tray     4   c2c,qpi          4*110/2        2*110/2        -              -
	# a package of two dies, 3 links of 50 into each, not counting those between the two, and 24 over the PCIe
	# switch of both: the routes of pairs are the default; 24 over PCIe into a die
	mi250          16  xgmi,pcie,qpi    16*324/14      8*324/14       16*24/15       16*24/30
	# 7 links of 48 into a GPU; 22 between sockets
	mi300x         8   xgmi             8*336/7        8*336/14       8*22/4         2*22/2
	# 32 between sockets
	summit         6   nvlink,qpi       6*32/3         2*32/2         -              -
	# 6 NVLinks, or 12 over PCIe, into a GPU
	abci           4   nvlink           4*150/3        4*150/6        4*12/3         4*12/6
	# 6 between sockets
	kesch          16  pcie,qpi         16*6/8         2*6/2          16*6/8         2*6/2
	# 24 over PCIe into a GPU
	pcie-8gpu      8   pcie,qpi         8*24/7         8*24/14        8*24/7         8*24/14
	# the NICs of a server: 4 x 12, 8 x 24, 8 x 48, 2 x 12
	two-dgx1v      16  nvlink,pcie,net  16*48/8        2*48/2         -              -
	superpod-a100  160 nvlink,pcie,net  160*192/152    20*192/38      -              -
	superpod-h100  256 nvlink,pcie,net  256*384/248    32*384/62      -              -
	abci-rack      136 nvlink,pcie,net  136*24/132     34*24/66       -              -
	abci-racks     408 nvlink,pcie,net  408*24/404     102*24/202     -              -
	abci-2048      2048 nvlink,pcie,net 2048*24/2044   512*24/1022    -              -
	superpod-h100-4su 1024 nvlink,pcie,net 1024*384/1016 128*384/254  -              -
	# 12 over PCIe into a GPU
	kesch-12       192 pcie,qpi,net     192*12/191     192*12/382     -              -
	TABLE
}

# compiles FILE COLLECTIVE GPUS LINKS RATE OPTIONS...: this number of ranks, over these links, at the rate of this
# formula, the bound
compiles() {
	local file=$1 collective=$2 want got
	want="$3 $4 $(awk "BEGIN { printf \"%.6g\", $5 }") 1.000"
	got=$("$blinkc" topologies/"$file".xml -c "$collective" "${@:6}" -o /dev/null 2>&1 | awk '
		/^topology/ { gpus = $3; sub(/.*links: /, ""); gsub(/ /, ","); links = $0 }
		/^rate/ { rate = $2 } /^ratio/ { ratio = $2 } END { print gpus, links, rate, ratio }')
	if [ "$got" = "$want" ]; then
		ok "$file: $collective ${*:6}: $got"
	else
		not_ok "$file: $collective ${*:6}: $got, want $want"
	fi
}
while read -r file gpus links allgather allreduce pcie_allgather pcie_allreduce; do
	# More take a second or several.
	[ "$full" ] || [ "$gpus" -le 160 ] || continue
	compiles "$file" allgather "$gpus" "$links" "$allgather"
	compiles "$file" allreduce "$gpus" "$links" "$allreduce"
	[ "$pcie_allgather" != - ] || continue
	compiles "$file" allgather "$gpus" pcie,qpi "$pcie_allgather" -l pcie,qpi
	compiles "$file" allreduce "$gpus" pcie,qpi "$pcie_allreduce" -l pcie,qpi
done < <(table | grep -v '^#')
for t in topologies/*.xml; do
	expect "$t: has its rates here" grep -q "^$(basename "$t" .xml) " <(table)
done

# ---- what repeats ----

expect "dgx-h100-nvls.xml is dgx-h100.xml, but for its switch" cmp \
	<("$blinkc" convert topologies/dgx-h100.xml --format canonical) \
	<("$blinkc" convert topologies/dgx-h100-nvls.xml --format canonical | sed 's/,"multicast","reduce"//')
# 34 nodes of two ports are three times what leaves a rack
expect "abci-racks.xml: 283.333 GB/s leave a rack" grep -q '"to": "ib/spine", "class": "net", "capacity": 283.3333' \
	<("$blinkc" convert topologies/abci-racks.xml)
