# --format nccl-graph: a program that reads the file as NCCL does accepts it, and finds what it claims on the machine's
# links.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# graph NAME WANT SERVERS DEVICES NICS LOST MACHINE OPTION...: the file of a machine's rings, and of the schedule once
# written
graph() {
	local name=$1 want=$2 servers=$3 devices=$4 nics=$5 lost=$6 machine=$7 got
	shift 7
	if ! "$blinkc" -a ring "$@" --format nccl-graph -o "$work/graph.xml" 2>"$work/err"; then
		not_ok "$name: $(tail -1 "$work/err")"
		return
	fi
	expect "$name: its schedule" "$blinkc" -q -a ring "$@" -o "$work/rings.json"
	expect "$name: converted" "$blinkc" convert -q "$work/rings.json" --format nccl-graph -o "$work/again.xml"
	expect "$name: the same bytes" cmp "$work/graph.xml" "$work/again.xml"
	"$blinkc" convert -q "$machine" -o "$work/machine.json"
	if ! got=$(oracle nccl_graph "$work/graph.xml" "$servers" "$devices" "$nics" "$work/machine.json" \
		"$work/rings.json" "$lost" 2>&1); then
		not_ok "$name: $got"
	elif [ "$got" = "$want" ]; then ok "$name: $got"; else not_ok "$name: $got: want $want"; fi
}

# refused NAME TEXT OPTION...: exit status 5, one error that has TEXT, and no file
refused() {
	local name=$1 text=$2
	shift 2
	rm -f "$work/none.xml"
	expect_exit "$name" 5 "$blinkc" -q "$@" --format nccl-graph -o "$work/none.xml"
	if grep -qF -e "$text" "$work/err" && [ ! -e "$work/none.xml" ]; then
		ok "$name: says why"
	else
		not_ok "$name: $(cat "$work/err")"
	fi
}

v=topologies/dgx1v.xml
graph "DGX-1V" "rings and trees, 6 x 25 GB/s" 1 0-7 - 0 $v $v
if grep -qx 'nccl-graph  6 channels of 25 GB/s; nothing of the rings is lost' "$work/err"; then
	ok "the summary"
else
	not_ok "the summary: $(cat "$work/err")"
fi
# What NCCL 2.21.5 itself wrote for these eight GPUs has the form that the reader wants, and ours has that form.
dump=$top/../shared/data/nccl_graph/dgx1v_8gpu_nccl2.21.5.xml
form() { sed -E 's/ dev="[^"]*"//; s/speed(intra|inter)="[^"]*"/speed\1/g' "$1"; }
if [ -f "$dump" ]; then
	expect "a dump of NCCL" oracle nccl_graph "$dump" 1 0-7 -
	if [ "$(cat "$work/out")" = "rings and trees, 6 x 20 GB/s" ]; then
		ok "it has six rings"
	else
		not_ok "it has: $(cat "$work/out")"
	fi
	expect "the form of the dump" cmp <(form "$dump") <(form "$work/graph.xml")
else
	skip "a dump of NCCL: $dump is not there"
fi
graph "GPUs 0 to 3" "rings and trees, 4 x 25 GB/s" 1 0-3 - 0 $v $v -g 0-3
graph "GPUs in another order" "rings and trees, 2 x 25 GB/s" 1 4-5,7 - 0 $v $v -g 7,4,5
graph "DGX-2" "rings and trees, 6 x 25 GB/s" 1 0-15 - 0 topologies/dgx2.xml topologies/dgx2.xml

# each NAME WANT DEVICES NICS MACHINE OPTION...: a file for each of two servers
each() {
	local name=$1 want=$2 devices=$3 nics=$4 machine=$5 got server
	shift 5
	for server in s0 s1; do
		expect "$name, $server" "$blinkc" -a ring "$@" --format nccl-graph --server \
			$server -o "$work/$server.xml"
	done
	"$blinkc" -q -a ring "$@" -o "$work/rings.json"
	expect "$name: converted" "$blinkc" convert -q "$work/rings.json" --format nccl-graph --server \
		s1 -o "$work/again.xml"
	expect "$name: the same bytes" cmp "$work/s1.xml" "$work/again.xml"
	"$blinkc" convert -q "$machine" -o "$work/machine.json"
	if ! got=$(oracle nccl_graph "$work/s0.xml,$work/s1.xml" 2 "$devices" "$nics" "$work/machine.json" \
		"$work/rings.json" 0 2>&1); then
		not_ok "$name: $got"
	elif [ "$got" = "$want" ]; then ok "$name: $got"; else not_ok "$name: $got: want $want"; fi
}
each "unequal servers" "rings, 1 x 12 GB/s" 0,3/0 0-3 topologies/two-dgx1v.xml topologies/two-dgx1v.xml -g "s0:0,3 s1:0"

graph "two servers" "rings, 2 x 12 GB/s" 2 0-1 0-3 0 topologies/two-dgx1v.xml \
	topologies/two-dgx1v.xml -g "s0:0,1 s1:0,1"
if [ "$full" ]; then
	"$blinkc" topology --servers 2 --rails topologies/dgx-a100.xml -o "$work/rails.json"
	each "servers on rails" "rings, 8 x 24 GB/s" 0-7 0-3,6-9 "$work/rails.json" "$work/rails.json"
	refused "servers with ways of their own" "want --server, and a file for each" "$work/rails.json" -a ring
	graph "two DGX-1V" "rings, 4 x 12 GB/s" 2 0-7 0-3 0 topologies/two-dgx1v.xml topologies/two-dgx1v.xml
	graph "DGX-1P" "rings and trees, 4 x 20 GB/s" 1 0-7 - 0 topologies/dgx1p.xml topologies/dgx1p.xml
	graph "two GPUs" "rings and trees, 2 x 25 GB/s" 1 0,3 - 0 $v $v -g 3,0
	graph "over PCIe" "rings and trees, 1 x 6 GB/s" 1 1,4-6 - 0 $v $v -g 1,4-6 -l pcie,qpi
	graph "an allgather" "rings and trees, 6 x 25 GB/s" 1 0-7 - 0 $v $v -c allgather
fi

# ---- one speed for all channels ----

# circle FILE THERE BACK: three GPUs in a circle, as many links of 1 GB/s in each direction
circle() {
	local links
	printf -v links '{"from":"gpu%d","to":"gpu%d","class":"nvlink","duplex":"simplex","capacity":1,"count":%d},' \
		0 1 "$2" 1 0 "$3" 1 2 "$2" 2 1 "$3" 2 0 "$2" 0 2 "$3"
	printf '{"format":"blink-topology","version":1,"name":"circle","nodes":[%s],"links":[%s]}\n' \
		'{"id":"n0","gpus":[{"id":"gpu0"},{"id":"gpu1"},{"id":"gpu2"}]}' "${links%,}" >"$1"
}
circle "$work/exact.json" 50 30
graph "rings of 50 and 30 GB/s" "rings, 8 x 10 GB/s" 1 0-2 - 0 "$work/exact.json" "$work/exact.json"
circle "$work/lossy.json" 20 7
graph "rings of 20 and 7 GB/s" "rings, 4 x 6.666 GB/s" 1 0-2 - 0.336 "$work/lossy.json" "$work/lossy.json"
if grep -q '^nccl-graph  4 channels of 6.666 GB/s; 0.336 GB/s of the rings are lost' "$work/err"; then
	ok "what is lost"
else
	not_ok "what is lost: $(cat "$work/err")"
fi

# ---- what the format cannot hold: one error, and no file ----

refused "trees" "want rings, as of an allreduce with --algorithm ring" $v
refused "a broadcast" "its trees close no ring: want rings" $v -a ring -c broadcast
refused "xGMI" "links of xGMI: want those that NCCL has" topologies/mi250.xml -a ring
refused "servers with ways of their own" "want --server, and a file for each" topologies/two-dgx1v.xml \
	-a ring -g "s0:0,3 s1:0"
refused "servers without NICs" "no NIC between" -a ring --synthetic "server:2 gpu:2 switch:300 net:25"
sed 's/"gpu2"/"two"/g' "$work/exact.json" >"$work/id.json"
refused "a GPU without a number" "two: no number at its end" "$work/id.json" -a ring
sed 's/"gpu2"/"x1"/g' "$work/exact.json" >"$work/id.json"
refused "two GPUs of one number" "two GPUs of a server with one number" "$work/id.json" -a ring
expect_exit "no such server" 2 "$blinkc" -q $v -a ring --format nccl-graph --server s7
expect_exit "a server for another format" 2 "$blinkc" -q $v -a ring --format json --server dgx1v
