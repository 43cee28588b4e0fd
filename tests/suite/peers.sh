# blinkc simulate of algorithms of MSCCL and plans of MSCCL++: as plain simulators have it; of MSCCL equal to the same
# schedule's time, to the ps, where the assumptions of both hold.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

v=topologies/dgx1v.xml

# ---- a plain simulator ----

"$blinkc" -q $v -g 0-3 -o "$work/four.json"
"$blinkc" convert -q "$work/four.json" --format msccl -o "$work/four.xml"
oracle peers chain "$work" "$work/four.json" 3
oracle peers relays 1 "$work"
# plain JOB FILE ARGUMENT...: as the plain simulator
plain() { expect "${2##*/}: as the plain simulator" oracle peers times "$blinkc" "$work/$2" "$work/$1.json" \
	--topology $v "${@:3}"; }
plain four relays.xml -g 0-3 --size 300000
plain four relays.xml -g 0-3 --executor copy --chunk 64K --size 900000
if [ "$full" ]; then
	for protocol in Simple LL LL128; do
		plain four chain.$protocol.xml -g 0-3 --size 1000,3000001,20M
	done
	plain four chain.Simple.xml -g 0-3 --executor host --chunk 64K --size 3000001
	plain four four.xml -g 0-3 --executor copy --size 1000,3000001
else
	plain four chain.LL128.xml -g 0-3 --size 1000,5M
fi

# ---- schedules, and the same as algorithms ----

echo '{"kernel": {"packet_most": 0, "line_most": 0, "by_length": 0}}' >"$work/equal.json"
# same NAME SIZES TOLERANCE GPUS ARGUMENT...: the times of a schedule and of its algorithm differ by this part at most
same() {
	local name=$1 sizes=$2 tolerance=$3 gpus=$4
	shift 4
	"$blinkc" -q $v -g "$gpus" "$@" -o "$work/$name.json" &&
		"$blinkc" convert -q "$work/$name.json" --format msccl -o "$work/$name.xml" ||
		not_ok "$name: not compiled"
	for one in "$name.json" "$name.xml --topology $v -g $gpus"; do
		# shellcheck disable=SC2086
		"$blinkc" simulate "$work/"$one --parameters "$work/equal.json" --chunk 256K --size \
			"$sizes" --format csv |
			cut -d, -f1,5 >"$work/${one%% *}.csv"
	done
	expect "$name: $(tail -1 "$work/$name.xml.csv"), as a schedule $(tail -1 "$work/$name.json.csv")" \
		awk -F, -v most="$tolerance" '
		NR == FNR { us[FNR] = $2; next }
		FNR > 1 && ($2 - us[FNR] > most * us[FNR] || us[FNR] - $2 > most * us[FNR]) { exit 1 }
		END { if (FNR != 3) exit 1 }' "$work/$name.json.csv" "$work/$name.xml.csv"
}
same chain 48M,192M 0 0-3 --algorithm chain --collective broadcast
same ring 48M,192M 0 0-3 --algorithm ring
same onehop 48M,192M 0 0-3 --algorithm onehop
same direct 48M,192M 0 0-3 --algorithm direct --collective allgather
same reduce 48M,192M 0 0-3 --algorithm knomial --collective reduce
# Steps of several chunks, which are waited for as a whole.
same trees 768M,1536M 0.03 0-7

# ---- plans of MSCCL++ ----

# planned FILE GPUS ARGUMENT...: as the plain simulator, whose links are those of these GPUs of $machine
planned() {
	local file=$1 gpus=$2
	shift 2
	"$blinkc" -q $machine -g "$gpus" -o "$work/links.json" || not_ok "$machine, $gpus"
	expect "${file##*/}: as the plain simulator" oracle planned times "$blinkc" "$file" "$work/links.json" \
		--topology $machine -g "$gpus" "$@"
}
# write NAME GPUS ARGUMENT...
write() {
	local name=$1 gpus=$2
	shift 2
	"$blinkc" -q $machine -g "$gpus" "$@" -o "$work/$name.json" || not_ok "$name: not compiled"
}
machine=$v
write plan 0-3 --format mscclpp
write packets 0-3 --format mscclpp-packets
planned "$work/plan.json" 0-3 --size 1000,300000
planned "$work/packets.json" 0-3 --size 1000,300000
machine=topologies/two-dgx1v.xml
write ports s0:0,s0:3,s1:0,s1:3 --format mscclpp
planned "$work/ports.json" s0:0,s0:3,s1:0,s1:3 --size 300000
machine=topologies/dgx-h100-nvls.xml
write switches 0-7 --format mscclpp
planned "$work/switches.json" 0-7 --size 3000001
mkdir "$work/kinds"
oracle mscclpp broken "$work/plan.json" "$work/ports.json" "$work/kinds"
machine=$v
# Gets, a barrier, semaphores, ports with flushes, by the executor of copy engines, where adding takes time.
planned "$work/kinds/right.3.json" 0,1 --size 3000001
planned "$work/plan.json" 0-3 --size 300000 --executor copy
if [ "$full" ]; then
	planned "$work/packets.json" 0-3 --size 300000 --executor copy
	for collective in allgather reducescatter broadcast reduce gather scatter alltoall; do
		write plan.$collective 1,4,5,6 --format mscclpp --collective $collective
		planned "$work/plan.$collective.json" 1,4,5,6 --size 3000001
	done
	machine=topologies/dgx2.xml
	write semaphores 0-15 --format mscclpp
	planned "$work/semaphores.json" 0-15 --size 1000,3000001
fi
expect "a table" "$blinkc" simulate "$work/plan.json" --topology $v -g 0-3 --size 1M,64M
has "its head" '^plan        allreduce over 4 ranks of dgx1v, blinkc trees allreduce: [0-9]+ threadblocks, '
expect "one size" "$blinkc" simulate "$work/ports.json" --topology topologies/two-dgx1v.xml \
	-g s0:0,s0:3,s1:0,s1:3 --size 1M --trace "$work/ports.trace"
has "its path" '^            tb [0-9]+ op [0-9]+ [a-z]+, (memory|port), s[01]/gpu[0-9] -> s[01]/gpu[0-9], messages? 0'
expect "ports are told apart in a trace" \
	grep -q '"name": "tb [0-9]* op [0-9]* pws, port [0-9] -> [0-9] message 0"' "$work/ports.trace"
"$blinkc" simulate "$work/packets.json" --topology $v -g 0-3 --size 4K --trace "$work/packets.trace" >/dev/null
expect "and packets" grep -q '"name": "tb [0-9]* op [0-9]* respkt, memory packets ' "$work/packets.trace"
"$blinkc" simulate "$work/plan.json" --topology $v -g 0-3 --size 1M --format json -o "$work/plan.sim"
expect "its schema" oracle validate schemas/simulate.schema.json "$work/plan.sim"
expect_exit "no machine" 2 "$blinkc" simulate "$work/plan.json"
expect_exit "another number of GPUs" 3 "$blinkc" simulate "$work/plan.json" --topology $v
expect_exit "a size of messages" 2 "$blinkc" simulate "$work/plan.json" --topology $v -g 0-3 --chunk 64K
expect_exit "switch channels without such a switch" 5 "$blinkc" simulate "$work/switches.json" \
	--topology topologies/dgx-h100.xml
expect_exit "a wrong one" 6 "$blinkc" simulate "$work/kinds/deadlock.1.json" --topology $v -g 0,1
expect_exit "too many messages" 4 "$blinkc" simulate "$work/plan.json" --topology $v -g 0-3 --size 1048576G

# ---- ASTRA-sim ----

# Times of its analytical backend (docs/simulator.md) for an allreduce of 64 MiB over links of 25 GiB/s and 0.5 us.
echo '{"kernel": {"call": 0, "step": 0, "reduce": 0, "reduce_by_link": 0, "at_once": 0, "packet_most": 0,
	"line_most": 0, "by_length": 0, "efficiency": {"nvlink": 1}, "latency": {"nvlink": 0.5}}}' >"$work/ideal.json"
# as_astra LINE ALGORITHM CHUNK NS: within 1 %
as_astra() {
	local name="${1// /-}.$2.$3"
	[ -e "$work/$1.machine.json" ] || "$blinkc" topology -q --synthetic "$1:26.8435456" -o "$work/$1.machine.json"
	[ -e "$work/$1.$2.json" ] || "$blinkc" -q "$work/$1.machine.json" --algorithm "$2" -o "$work/$1.$2.json"
	"$blinkc" simulate "$work/$1.$2.json" --size 64M --chunk "$3" --parameters "$work/ideal.json" --format \
		csv -o "$work/astra.csv"
	expect "ASTRA-sim: $name takes $4 ns: $(tail -1 "$work/astra.csv")" awk -F, -v ns="$4" '
		NR == 2 { exit !($5 * 1000 > ns * 0.99 && $5 * 1000 < ns * 1.01) }' "$work/astra.csv"
}
as_astra "gpu:8 ring" ring 4M 2194507
as_astra "gpu:4 mesh" trees 8M 2189502
as_astra "gpu:8 switch" ring 128K 4380154
if [ "$full" ]; then
	as_astra "gpu:8 ring" ring 1M 2187972
	as_astra "gpu:8 ring" ring 256K 2187860
	as_astra "gpu:8 ring" chain 4M 4538257
	as_astra "gpu:4 mesh" trees 32M 5002002
	as_astra "gpu:4 mesh" trees 2M 1486377
	as_astra "gpu:8 mesh" onehop 1M 625492
	as_astra "gpu:8 mesh" double-binary-tree 4M 2500500
	as_astra "gpu:8 switch" trees 128K 4409446
fi

# ---- the command ----

expect "a table" "$blinkc" simulate "$work/four.xml" --topology $v -g 0-3 --size 1M,64M
has "its head" '^algorithm   allreduce over 4 ranks of dgx1v, blinkc trees allreduce: '\
'[0-9]+ channels, [0-9]+ threadblocks, bound [0-9.]+ GB/s$'
expect "one size" "$blinkc" simulate "$work/four.xml" --topology $v -g 0-3 --size 1M --trace "$work/trace.json"
has "its path" '^            channel [0-9]+, gpu[0-9] -> gpu[0-9], message 0: '
expect "a trace" grep -q '"name": "channel [0-9]* [0-9] -> [0-9] message 0"' "$work/trace.json"
"$blinkc" simulate "$work/four.xml" --topology $v -g 0-3 --size 1M --format json -o "$work/sim.json"
expect "its schema" oracle validate schemas/simulate.schema.json "$work/sim.json"
"$blinkc" simulate "$work/four.xml" --topology $v -g 0-3 --size 64M --format csv --chunk auto -o "$work/auto.csv"
"$blinkc" simulate "$work/four.xml" --topology $v -g 0-3 --size 64M --format csv -o "$work/slots.csv"
expect "the best size of a message is no slower than the protocol's" awk -F, \
	'NR == FNR { us = $5; next } FNR == 2 && us > $5 { exit 1 }' \
	"$work/auto.csv" "$work/slots.csv"
# GPUs of other servers, and those that no NVLink joins: over the network, and over PCIe.
"$blinkc" -q topologies/two-dgx1v.xml -g s0:0,s0:1,s1:0,s1:1 -o "$work/two.json"
"$blinkc" convert -q "$work/two.json" --format msccl -o "$work/two.xml"
expect "two servers" "$blinkc" simulate "$work/two.xml" --topology topologies/two-dgx1v.xml \
	-g s0:0,s0:1,s1:0,s1:1 --size 1M
expect "GPUs that no NVLink joins" "$blinkc" simulate "$work/four.xml" --topology $v -g 0,1,6,7 --size 1M --format \
	json -o "$work/pcie.sim"
expect_exit "no machine" 2 "$blinkc" simulate "$work/four.xml"
expect_exit "a machine of more GPUs" 3 "$blinkc" simulate "$work/four.xml" --topology $v
expect_exit "--gpus of a schedule" 2 "$blinkc" simulate "$work/four.json" -g 0-3
sed '0,/type="s"/s//type="nop"/' "$work/four.xml" >"$work/wrong.xml"
expect_exit "a wrong one" 3 "$blinkc" simulate "$work/wrong.xml" --topology $v -g 0-3
expect_exit "too many messages" 4 "$blinkc" simulate "$work/four.xml" --topology $v -g 0-3 --chunk 1 --size 1G

# ---- files of others ----

samples=../shared/data/msccl_xml
if [ -d $samples ]; then
	# SCCL's allgather is optimal: 14 of 48 chunks cross each link of 50 GB/s, of which kernels get 84 %.
	"$blinkc" simulate $samples/sccl_dgx1_allgather_s3r7c6.msccl.xml --topology $v -g 0,3,1,2,4,7,5,6 --size 1G \
		--format csv -o "$work/sccl.csv"
	expect "SCCL's allgather: $(tail -1 "$work/sccl.csv")" awk -F, \
		'NR == 2 { exit !($6 > 142 && $6 < 144) }' "$work/sccl.csv"
	if [ "$full" ]; then
		"$blinkc" -q $v -o "$work/all.json"
		for sample in "$samples"/*; do
			expect "${sample##*/}: as the plain simulator" oracle peers times "$blinkc" "$sample" \
				"$work/all.json" --topology $v \
				--size 3000000
		done
	fi
else
	skip "samples of ForestColl and SCCL: no $samples"
fi
samples=../shared/data/mscclpp
if [ -d $samples ] && [ "$full" ]; then
	machine=topologies/dgx-h100-nvls.xml
	for sample in allreduce allreduce_packet reduce transfer_pack; do
		planned $samples/$sample.json 0,1 --size 1000,3000001
	done
	planned $samples/allreduce_pipeline.json 0-3 --size 1000,3000001
fi
