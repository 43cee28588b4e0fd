# Ranks on GPUs, on the virtual driver of tests/virtual_gpu, whose kernels run as their twins: collectives and their
# results, graphs, streams, messages, and what happens when ranks or functions of the driver fail.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if ! have_kernels; then
	skip "no kernels were built: want nvcc or clang"
	exit 0
fi
export BLINK_BACKEND=cuda

# run KIND PROGRAM ARGUMENT...: the lines of the program, named by the suite
run() {
	local kind=$1 program=$build/$1tests/job/$2 gpus=$build/$1tests/virtual_gpu code
	shift 2
	# Alone: other libraries are beside it.
	mkdir -p "$work/${kind}driver"
	ln -sf "${driver:-$gpus/libcuda.so.1}" "$work/${kind}driver/libcuda.so.1"
	LD_LIBRARY_PATH=$work/${kind}driver VIRTUAL_GPU_KERNELS=$gpus/libblink-twins.so \
		"$program" "$@" >"$work/log" 2>&1
	code=$?
	for word in ok "not ok" skip; do sed -n "s|^$word |$word $suite: $kind$prefix|p" "$work/log"; done
	if [ $code != 0 ]; then
		grep -q '^not ok' "$work/log" || not_ok "$program $*: exit $code"
		grep -v '^ok' "$work/log" | head -40 | sed 's/^/# /'
	fi
}
prefix=

# ---- results ----

export VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml
schedules dgx1v dgx1v.xml 0-3 "0 2"
run "" matrix -n 4 -t -c "$([ "$full" ] && echo 276 || echo 140)" "built in, 4 threads"
run "" matrix -n 3 -c 100 "built in, 3 processes"
BLINK_DEBUG=WARN BLINK_DEBUG_FILE=$work/warned run "" matrix -n 4 -v -d "$work/dgx1v" -c 60 \
	"4 processes, each sees one GPU"
expect "who sees one GPU alone warns of none" [ "$(grep -c 'WARN cuda: ' "$work/warned")" = 0 ]
rm "$work/warned"
BLINK_P2P=0 BLINK_DEBUG=WARN BLINK_DEBUG_FILE=$work/warned run "" matrix -n 3 -c 40 "BLINK_P2P=0, 3 processes"
expect "BLINK_P2P=0 warns of 3 pairs" [ "$(sed -n 's/.*WARN cuda: /cuda: /p' "$work/warned")" = \
	"cuda: 3 pairs of GPUs through memory of the host, as ranks 0 (0000:10:00.0) and 1 (0000:11:00.0): \
BLINK_P2P=0; built-in schedules use all pairs, those of blinkc the links that are there (BLINK_SCHEDULES)" ]
run "" matrix -n 4 -t -d "$work/dgx1v" -c 60 -b 512 "dgx1v, 4 threads, chunks of 512 bytes"
# Lines: with all of a schedule's ranks joined by NVLink, as on a DGX-2, or those of a plan of blinkc on a DGX-1V, but
# not all pairs, as built-in schedules have there; nor for a part over PCIe. Who sees one GPU alone asks NVML.
protocol_of() {	# TEXT, lines|packets|slots, PROGRAM ARGUMENT...
	local text=$1 want=$2
	shift 2
	BLINK_PROTOCOL=lines BLINK_DEBUG=TRACE BLINK_DEBUG_FILE=$work/trace run "" "$@"
	expect "$text: $want" [ "$(sed -n '/ of 0: /d; s/.* strips, \([a-z]*\) of .*/\1/p' "$work/trace" | sort -u)" = \
		"$want" ]
	mv "$work/trace" "$work/traced"
}
out_of_sight() { grep -c "INFO cuda: no lines to GPUs out of sight: ${1:-}" "$work/traced"; }
VIRTUAL_GPU_TOPOLOGY=topologies/dgx2.xml VIRTUAL_GPU_WEAK=1 VIRTUAL_GPU_DELAY=3 VIRTUAL_GPU_THREADS=3 \
	protocol_of "an NVSwitch" lines matrix -n 4 -t -c 60 -m 4001 "lines seen late, 3 threads a block"
protocol_of "plans of NVLinks" lines matrix -n 4 -t -d "$work/dgx1v" -c 60 "dgx1v, lines"
schedules hybrid4 dgx1v.xml 0-3 "0 2" --hybrid
BLINK_SMALL=0 protocol_of "a part over PCIe" slots matrix -n 4 -t -d "$work/hybrid4" -k allreduce -c 10 \
	"a part over PCIe"
protocol_of "who sees one GPU, without NVML" slots matrix -n 4 -v -d "$work/dgx1v" -c 10 "one GPU seen, no NVML"
expect "each rank says so" [ "$(out_of_sight 'libnvidia-ml.so.1: not found')" = 4 ]
ln -s "$build/tests/virtual_gpu/libnvidia-ml.so.1" "$work/driver/"
protocol_of "who sees one GPU" lines matrix -n 4 -v -d "$work/dgx1v" -c 30 "one GPU seen, lines"
expect "no rank complains" [ "$(out_of_sight)" = 0 ]
VIRTUAL_GPU_TOPOLOGY=topologies/dgx2.xml protocol_of "who sees one GPU of an NVSwitch" lines matrix -n 3 -v -c 10 \
	"one GPU at a switch seen, lines"
VIRTUAL_GPU_TOPOLOGY=topologies/pcie-8gpu.xml protocol_of "PCIe, who sees one GPU" slots matrix -n 4 -v -c 10 \
	"one GPU seen, PCIe"
expect "no rank complains of PCIe" [ "$(out_of_sight)" = 0 ]
VIRTUAL_GPU_SHOW=0,1,2 protocol_of "a GPU that NVML does not show" slots matrix -n 4 -v -d "$work/dgx1v" -k allreduce \
	-c 5 "one GPU seen, one hidden"
rm "$work/driver/libnvidia-ml.so.1"
VIRTUAL_GPU_TOPOLOGY=topologies/pcie-8gpu.xml protocol_of "PCIe" slots matrix -n 4 -t -c 10 "PCIe, no lines"
VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml protocol_of "pairs without NVLink" slots matrix -n 8 -t -k allreduce -c 5 \
	"8 threads, not all joined"
# Ranks that are asked for unlike protocols, or for none that there is.
mkdir "$work/unlike"
printf 'allreduce -1 1024 1 0 0\n' >"$work/one_call"
for rank in 0 1; do
	BLINK_PROTOCOL=$([ $rank = 0 ] && echo lines || echo flags) LD_LIBRARY_PATH=$work/driver \
		VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so timeout 60 "$build/tests/job/phase" \
		$rank 2 "$work/unlike" "$work/one_call" 1 >"$work/unlike.$rank" 2>&1 &
done
wait
for rank in 0 1; do
	expect "unlike protocols, rank $rank" grep -q 'BLINK_PROTOCOL: rank 1 has another than rank 0' \
		"$work/unlike.$rank"
done
BLINK_PROTOCOL=LL128 LD_LIBRARY_PATH=$work/driver "$build/blink-perf" --ranks 2 --threads-as-ranks -b 1K -e 1K \
	>"$work/unlike.2" 2>&1
expect "a protocol that is none" grep -q 'BLINK_PROTOCOL: "LL128": want packets, lines or flags' "$work/unlike.2"
# The streams of one GPU share 8 connections: with more than one of the library, a rank waited behind another's kernel.
VIRTUAL_GPU_TOPOLOGY='' VIRTUAL_GPU_COUNT=1 run "" matrix -n 7 -t -c 40 "7 threads on one GPU"
if [ "$full" ]; then
	run "" matrix -n 4 -t -d "$work/dgx1v" -c 120 "dgx1v, 4 threads"
	schedules dgx1v-8 dgx1v.xml 0-7 "0 7"
	schedules hybrid dgx1v.xml 0,1,4 "0 2" --hybrid
	run "" matrix -n 8 -t -d "$work/dgx1v-8" -c 70 -m 10007 "dgx1v, 8 threads"
	run "" matrix -n 8 -d "$work/dgx1v-8" -c 40 -m 40001 -b 4096 "dgx1v, 8 processes"
	run "" matrix -n 1 -c 276 "built in, 1 process"
	VIRTUAL_GPU_WEAK=1 VIRTUAL_GPU_DELAY=3 VIRTUAL_GPU_THREADS=3 run "" matrix -n 4 -t -c 100 -m 40001 \
		"late stores, 3 threads a block"
	export VIRTUAL_GPU_TOPOLOGY=topologies/dgx1p.xml
	schedules dgx1p dgx1p.xml 0-7 "1"
	run "" matrix -n 8 -t -d "$work/dgx1p" -c 70 -m 4099 "dgx1p, 8 threads"
	export VIRTUAL_GPU_TOPOLOGY=topologies/dgx2.xml
	schedules dgx2 dgx2.xml 0-15 3
	VIRTUAL_GPU_BLOCKS=256 run "" matrix -n 16 -t -d "$work/dgx2" -c 60 -m 1025 "dgx2, 16 threads"
	export VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml
	VIRTUAL_GPU_TOPOLOGY='' VIRTUAL_GPU_COUNT=2 run "" matrix -n 4 -t -c 140 "2 ranks on each of 2 GPUs"
	BLINK_BLOCKS=3 run "" matrix -n 4 -t -d "$work/dgx1v" -c 140 -m 10007 "3 blocks that take turns"
fi
[ ! "$full" ] || run asan/ matrix -n 3 -c 100 "built in, 3 processes"
[ ! "$full" ] || run tsan/ matrix -n 4 -t -d "$work/dgx1v" -c 60 "dgx1v, 4 threads"

# A fence takes 2 us of the virtual machine, and whoever wakes up late more.
VIRTUAL_GPU_SCALE=2000 BLINK_DEBUG=INFO BLINK_DEBUG_FILE=$work/measured run "" matrix -n 3 -c 2 "chunks are measured"
expect "what chunks cost is the same on all ranks" [ "$(sed -n 's/.*INFO chunks, measured: //p' "$work/measured" |
	sort -u | wc -l) $(grep -c 'INFO chunks, measured: ' "$work/measured")" = "1 3" ]
fence=$(sed -n 's/.*INFO chunks, measured: .* each, \([0-9]*\) ns a fence, .*/\1/p' "$work/measured" | head -n 1)
expect "a fence takes what it costs" [ "${fence:-0}" -ge 2000 ]
expect "and no more" [ "${fence:-0}" -lt 4000 ]
# A block of one thread waits for the fence of each chunk.
chunk=$(sed -n 's/.*INFO chunks, measured: \([0-9]*\) ns each, .*/\1/p' "$work/measured" | head -n 1)
expect "a chunk takes its fence" [ "${chunk:-0}" -ge 1500 ]
BLINK_MEASURE=0 BLINK_DEBUG=INFO BLINK_DEBUG_FILE=$work/assumed run "" matrix -n 2 -c 2 "chunks are not measured"
expect "BLINK_MEASURE=0: what is assumed" [ "$(grep -c 'INFO chunks, assumed: 900 ns each, 600 ns a fence' \
	"$work/assumed")" = 2 ]

# Of two ranks each has three tasks: as many strips of each as 8 blocks have room for.
LD_LIBRARY_PATH=$work/driver VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so BLINK_BLOCKS=8 \
	BLINK_DEBUG=TRACE BLINK_DEBUG_FILE=$work/strips "$build/blink-perf" --ranks 2 --threads-as-ranks \
	-b 4M -e 4M -n 1 -w 0 >"$work/log" 2>&1 || not_ok "blink-perf: $(tail -n 3 "$work/log")"
expect "a built-in schedule has strips for its blocks" grep -q ': 6 blocks, 2 strips, slots of' "$work/strips"

# ---- the command for a machine with GPUs ----

if [ "$full" ]; then
	env -u BLINK_BACKEND -u VIRTUAL_GPU_TOPOLOGY BUILD="$build" CUDA_VISIBLE_DEVICES='' \
		tests/check_gpu/check_gpu.py --steps results,parts,sizes,protocols,planned,generated,chunks \
		>"$work/log" 2>&1 || not_ok "make check-gpu: $(tail -n 3 "$work/log")"
	expect "make check-gpu: every step has passed, on virtual GPUs" [ "$(grep -c '\.\.\. passed' "$work/log")" = 7 ]
	expect "its report has fences and flags" /usr/bin/python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["tables"]["parts"]
sys.exit({"fence", "barrier", "round trip of a flag", "copy by kernel"} - {row["part"] for row in rows} != set())' \
		"$build/check_gpu/report.json"
fi

# ---- several servers ----

schedules two two-dgx1v.xml 0,1,2,8,9 "0 3"
run "" matrix -n 4 -s 2 -c "$([ "$full" ] && echo 140 || echo 60)" "built in, 2 servers"
run "" matrix -n 5 -s 2 -d "$work/two" -c 60 -b 512 "two-dgx1v, 2 servers, chunks of 512 bytes"
expect "an alltoall over rails" "$blinkc" -q --synthetic "server:2 gpu:3 switch:900 rails nic:3@50 pcie:60" \
	-c alltoall -o "$work/rails.json"
BLINK_SCHEDULES=$work/rails.json prefix="blocks passed on: " run "" order -n 6 -s 2 uneven uneven_differs
BLINK_SCHEDULES=$work/rails.json prefix="blocks passed on: " run "" gpu -n 6 -s 2 -k 4 graph_uneven
if [ "$full" ]; then
	run "" matrix -n 6 -s 3 -c 60 -m 40001 "built in, 3 servers"
	run "" gpu -n 4 -s 2 graph streams messages killed
else
	run "" gpu -n 4 -s 2 -k 10 graph messages
fi
if [ "$full" ]; then
	schedules two-8 two-dgx1v.xml 1,3,5,7,8,9,10,11 6
	run "" matrix -n 8 -s 2 -d "$work/two-8" -c 276 -m 10007 "two-dgx1v, 8 ranks, 2 servers"
	run "" matrix -n 6 -s 3 -c 276 -m 100003 "built in, 3 servers"
	VIRTUAL_GPU_WEAK=1 VIRTUAL_GPU_DELAY=3 VIRTUAL_GPU_THREADS=3 run "" matrix -n 4 -s 2 -c 100 -m 40001 \
		"late stores, 2 servers"
	BLINK_BLOCKS=2 run "" matrix -n 5 -s 2 -d "$work/two" -c 60 -m 40001 -b 4096 \
		"2 blocks that take turns, 2 servers"
	BLINK_COPY_ENGINES=1 run "" matrix -n 4 -s 2 -c 60 "copy engines are not used, 2 servers"
	run "" gpu -n 4 -s 2 -k 100 graph graph_forked
	run "" gpu -n 6 -s 3 default_stream killed_in_queue stopped late leaves differs \
		message_differs aborted bad_pointer
	run "" gpu -n 3 -s 3 -f "allreduce:2 broadcast:3 alltoall:4 allreduce:9" killed_in_step
	run "" gpu -n 2 -s 2 -f "MemHostAlloc:1 MemHostAlloc:2 LaunchKernel:2 EventRecord:3" driver_fails
fi
if [ "$full" ]; then
	run asan/ matrix -n 4 -s 2 -c 60 "built in, 2 servers"
	run asan/ gpu -n 4 -s 2 graph messages
fi
[ ! "$full" ] || run tsan/ matrix -n 4 -s 2 -c 40 -m 10007 "built in, 2 servers"

# ---- order ----

few=10	# replays and calls of the quick check
[ ! "$full" ] || few=

run "" gpu -n "$([ "$full" ] && echo 8 || echo 4)" -t idle
run "" gpu -n 4 -t ${few:+-k "$few"} graph graph_forked graph_uneven graph_beside_call streams default_stream \
	one_thread messages stream_refused
# A GPU of any size holds the kernels of two communicators.
for blocks in $([ "$full" ] && seq 1 24 || echo 1 2 7); do
	VIRTUAL_GPU_BLOCKS=$blocks prefix="$blocks blocks: " run "" gpu -n 4 -t two_communicators
done
BLINK_DEBUG=TRACE BLINK_DEBUG_FILE=$work/messages run "" gpu -n 3 -t messages
VIRTUAL_GPU_WEAK=1 VIRTUAL_GPU_THREADS=3 prefix="late stores, 3 threads: " run "" gpu -n 3 -t ${few:+-k "$few"} messages
expect "several blocks move a message" awk '
	/ messages: / { for (i = 2; i < NF; i++) if ($i == "messages:" && $(i + 1) > $(i - 1)) more++ }
	END { exit !more }' "$work/messages"
rm -f "$work/messages"
# Threads that each have a communicator make its calls in unlike order on ranks: their streams want a queue each.
in_queues() { CUDA_DEVICE_MAX_CONNECTIONS=32 "$@"; }
in_queues run "" order -n 3 -t -k "${few:-100}" several
run "" order -n 3 -t -k "${few:-100}" stream in_turn groups uneven leaving

# Blocks of other lengths, of which ranks pass some on: what these learn of them comes with the data.
expect "an alltoall whose blocks are passed on" "$blinkc" -q topologies/dgx1v.xml -c alltoall -o "$work/passed.json"
BLINK_DEBUG=TRACE BLINK_DEBUG_FILE=$work/passed BLINK_SCHEDULES=$work/passed.json prefix="blocks passed on: " \
	run "" order -n 8 -t uneven uneven_differs uneven_refused
BLINK_DEBUG=TRACE BLINK_DEBUG_FILE=$work/passed BLINK_SCHEDULES=$work/passed.json prefix="blocks passed on: " \
	run "" gpu -n 8 -t ${few:+-k "$few"} graph_uneven
expect "they go by its schedule" awk '/blocks of other/ { n++ } / messages: / { other++ }
	END { exit n < 400 || other }' "$work/passed"
rm -f "$work/passed"
seeds=$([ "$full" ] && echo 10 || echo 1)
# Ranks that share a context take memory and give it back while kernels of the others wait for them.
for ((seed = 1; seed <= seeds; seed++)); do
	export VIRTUAL_GPU_DELAY=$seed VIRTUAL_GPU_COUNT=1 CUDA_DEVICE_MAX_CONNECTIONS=32
	VIRTUAL_GPU_TOPOLOGY='' prefix="one GPU: " run "" order -n 4 -t -k 10 uneven splits
	VIRTUAL_GPU_TOPOLOGY='' prefix="one GPU: " run "" gpu -n 4 -t -k 10 graph_uneven messages
	unset VIRTUAL_GPU_DELAY VIRTUAL_GPU_COUNT CUDA_DEVICE_MAX_CONNECTIONS
done
BLINK_BLOCKS=2 VIRTUAL_GPU_WEAK=1 BLINK_SCHEDULES=$work/passed.json prefix="blocks passed on, in turns: " \
	run "" order -n 8 uneven
VIRTUAL_GPU_CALLS=$work/calls.split run "" order -n 3 -t -k 20 splits
modules=$((3 * ($(ls "$build"/gen/ptx/*.ptx | grep -vc '[.][79]0[.]ptx'))))
expect "communicators of a process share modules" [ "$(grep -c '^ModuleLoadData$' "$work/calls.split")" = $modules ]
expect "the last one unloads them" [ "$(grep -c '^ModuleUnload$' "$work/calls.split")" = $modules ]
if [ "$full" ]; then
	run "" gpu -n 2 -t -k 1000 graph
	run "" gpu -n 8 -t -k 40 graph
	run "" gpu -n 4 -k 50 graph graph_forked streams default_stream messages
	in_queues run "" order -n 4 -k 300 several
	run "" order -n 4 -k 300 stream in_turn one_by_one splits split_outlives groups leaving waited alone
	run asan/ gpu -n 3 graph streams messages
fi
[ ! "$full" ] || run tsan/ gpu -n 4 -t graph graph_forked streams one_thread messages

# ---- groups of a job at once ----

# Each rank has a communicator for each of its groups, and their calls are under way at once, by schedules that were
# planned together.
"$blinkc" job -q examples/jobs/dgx1v.json -o "$work/groups" || not_ok "groups of a job: exit $?"
mkdir "$work/ranks"
printf 'allreduce -1 65536 3 %s\n' "0 1 0 1 0 1 0 1" "0 0 1 1 2 2 3 3" >"$work/calls"
for rank in 0 1 2 3 4 5 6 7; do
	LD_LIBRARY_PATH=$work/driver VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so BLINK_GPU=$rank \
		BLINK_SCHEDULES=$work/groups BLINK_DEBUG=INFO timeout 120 "$build/tests/job/phase" \
		$rank 8 "$work/ranks" "$work/calls" 2 >"$work/ranks/$rank" 2>&1 ||
		not_ok "groups of a job: rank $rank: $(tail -2 "$work/ranks/$rank")" &
done
wait
cat "$work"/ranks/? >"$work/said"
for file in dp-allreduce/0 dp-allreduce/1 tp-allreduce/3; do
	expect "groups of a job: $file" grep -q "allreduce of .* bytes: $work/groups/.*$file.json: trees" "$work/said"
done
expect "groups of a job: results" grep -q '^[0-9.]* s$' "$work/ranks/0"

# ---- copy engines ----

# with_copies PROGRAM ARGUMENT...: calls that do not reduce are copies, in many streams that wait for other ranks and
# share 8 connections. In $work/trace is what each rank says of its calls.
with_copies() {
	prefix="copies: "
	BLINK_COPY_ENGINES=1 BLINK_DEBUG=TRACE BLINK_DEBUG_FILE=$work/trace run "$@"
	prefix=
}

VIRTUAL_GPU_CALLS=$work/calls with_copies "" matrix -n 4 -t -d "$work/dgx1v" -c 60 -b 512 \
	"dgx1v, 4 threads, chunks of 512 bytes"
[ ! "$full" ] || VIRTUAL_GPU_DELAY=5 with_copies "" matrix -n 4 -t -d "$work/dgx1v" -c 30 -b 512 "4 threads, late"
expect "copies: those of a stream are batches" grep -q '^MemcpyBatchAsync$' "$work/calls"
expect "copies: whoever waits for a flag sees what came before it over PCIe, too" \
	[ "$(grep -c '^flush$' "$work/calls")" = "$(grep -c '^StreamWaitValue32_v2$' "$work/calls")" ]
expect "copies: copy engines have served calls" grep -q 'allgather of [0-9]*: copy engines, [1-9]' "$work/trace"
with_copies "" gpu -n 4 -t ${few:+-k "$few"} graph streams
# This thread copies input of its own between the calls of its ranks, which may wait behind as many streams as there are
# connections.
CUDA_DEVICE_MAX_CONNECTIONS=32 with_copies "" gpu -n 4 -t ${few:+-k "$few"} one_thread
# Trees of two hops, in more streams than connections: their order is that of one stream.
VIRTUAL_GPU_TOPOLOGY=topologies/dgx2.xml with_copies "" matrix -n 16 -t -c 40 -m 1025 "dgx2, 16 threads"
[ ! "$full" ] || VIRTUAL_GPU_TOPOLOGY=topologies/dgx2.xml with_copies "" matrix -n 16 -t -d "$work/dgx2" -c 40 -m 1025 \
	"dgx2, planned, 16 threads"
with_copies "" gpu -n 3 -f StreamWaitValue32:60:die killed
if [ "$full" ]; then
	with_copies "" matrix -n 8 -t -d "$work/dgx1v-8" -c 60 -m 10007 -b 1K "dgx1v, 8 threads"
	with_copies "" matrix -n 8 -d "$work/dgx1v-8" -c 40 -m 40001 -b 4096 "dgx1v, 8 processes"
	with_copies "" matrix -n 3 -d "$work/hybrid" -c 60 -m 40001 -b 4096 "hybrid, 3 processes"
	VIRTUAL_GPU_WEAK=1 VIRTUAL_GPU_DELAY=3 VIRTUAL_GPU_THREADS=3 with_copies "" matrix -n 4 -t -c 60 -m 40001 \
		-b 1000 "late, 3 threads a block"
	with_copies "" gpu -n 2 -t -k 1000 graph
	with_copies "" gpu -n 3 graph_forked unlike aborted
	with_copies "" gpu -n 4 -t leaves
	for seed in 1 2 3; do
		CUDA_DEVICE_MAX_CONNECTIONS=32 VIRTUAL_GPU_DELAY=$seed with_copies "" gpu -n 4 -t one_thread
	done
	for f in StreamWaitValue32:3 MemcpyAsync:40 MemcpyBatchAsync:5 EventRecord:13 StreamCreate:5; do
		with_copies "" gpu -n 3 -f $f driver_fails
	done
	# A driver before CUDA 12.8 has no batches. The other name has the same hash, by which the loader finds it.
	sed 's/cuMemcpyBatchAsync/cuMemcpyBbSchAsync/g' "$build/tests/virtual_gpu/libcuda.so.1" >"$work/older.so"
	driver=$work/older.so VIRTUAL_GPU_CALLS=$work/calls.older with_copies "" matrix -n 4 -t -d "$work/dgx1v" -c 60 \
		-b 512 "a driver without batches"
	expect "copies: there, one by one" [ "$(grep -c '^MemcpyAsync$' "$work/calls.older")" -gt \
		"$(grep -c '^MemcpyAsync$' "$work/calls")" ]
	# Kernels, where streams cannot wait for memory, and where ranks share a GPU.
	rm "$work/trace"
	VIRTUAL_GPU_VALUES=0 with_copies "" matrix -n 3 -t -c 40 "streams that cannot wait"
	VIRTUAL_GPU_TOPOLOGY='' VIRTUAL_GPU_COUNT=2 with_copies "" matrix -n 4 -t -c 40 "2 ranks on each of 2 GPUs"
	served=$(grep -c 'copy engines' "$work/trace")
	expect "copies: none where they cannot be" [ "$served" = 0 ]
fi
[ ! "$full" ] || with_copies asan/ matrix -n 4 -d "$work/dgx1v" -c 30 "4 processes"
if [ "$full" ]; then
	with_copies tsan/ matrix -n 4 -t -d "$work/dgx1v" -c 40 -b 512 "4 threads"
	with_copies tsan/ gpu -n 3 -t leaves
fi

# ---- NVSwitches that add and copy ----

# by_switch PROGRAM ARGUMENT...: on a machine that has them; in $work/trace is what each rank says.
by_switch() {
	rm -f "$work/trace"
	prefix="by the switch: "
	VIRTUAL_GPU_TOPOLOGY=topologies/dgx-h100-nvls.xml BLINK_DEBUG=TRACE BLINK_DEBUG_FILE=$work/trace run "$@"
	prefix=
}

# calls WORDS: how many of all ranks' calls are said with these words in $work/trace
calls() { grep -c "$1" "$work/trace"; }

# switched_by COLLECTIVE...: they have been
switched_by() {
	for c; do expect "by the switch: $c" grep -q " $c of [0-9]*: .*, by the switch" "$work/trace"; done
}

schedules nvls dgx-h100-nvls.xml 0-3 "0 2"
if [ ! -e "$build/gen/ptx/multicast.90.ptx" ]; then
	skip "no kernel for multicast objects: want clang, or nvcc for GPUs of capability 9.0"
else
	by_switch "" matrix -n 4 -t -o -d "$work/nvls" -c 140 -m 10007 -b 4096 "4 threads"
	switched_by allreduce reduce reducescatter broadcast allgather
	by_switch "" matrix -n 4 -v -o -d "$work/nvls" -c 60 -b 512 "4 processes, each sees one GPU"
	switched_by allreduce broadcast
	"$blinkc" batch -q topologies/dgx-h100-nvls.xml -n 4 --distinct -o "$work/nvls-index" || not_ok "batch: exit $?"
	by_switch "" matrix -n 4 -t -o -d "$work/nvls-index" -g 0,1,2,3 -c 20 -k allreduce -b 512 "by an index"
	switched_by allreduce
	by_switch "" matrix -n 4 -t -o -d "$work/nvls" -c 12 -m 200003 -k "allreduce int32" "chunks by themselves"
	expect "by the switch: long calls" [ "$(calls 'by the switch')" -gt 0 ]
	expect "by the switch: short calls are packets" [ "$(calls 'packets of')" -gt 0 ]
	BLINK_NVLS=0 by_switch "" matrix -n 4 -t -d "$work/nvls" -c 40 -b 512 "BLINK_NVLS=0"
	expect "BLINK_NVLS=0: none is by the switch" [ "$(calls 'by the switch\|multicast object')" = 0 ]
	VIRTUAL_GPU_WEAK=1 VIRTUAL_GPU_DELAY=3 VIRTUAL_GPU_THREADS=3 by_switch "" matrix -n 4 -t -o -d "$work/nvls" \
		-c "$([ "$full" ] && echo 140 || echo 40)" -m 4099 -b 512 "late stores, 3 threads a block"
	BLINK_BLOCKS=2 by_switch "" matrix -n 4 -t -o -d "$work/nvls" -c 40 -m 10007 -b 512 "2 blocks that take turns"
	# Whatever fails as memory is made is said, and leaves the plain way to all ranks.
	for f in MulticastCreate:1 MulticastAddDevice:3 MulticastBindMem:2:OUT_OF_MEMORY \
		${full:+MulticastGetGranularity:5 MemExportToShareableHandle:5 MemImportFromShareableHandle:2} \
		${full:+MemCreate:6 ModuleLoadData:14}; do
		# Modules are counted by process: of four threads, any could load any as the 14th.
		threads=(-t)
		[ $f != ModuleLoadData:14 ] || threads=()
		VIRTUAL_GPU_FAIL=$f by_switch "" matrix -n 4 "${threads[@]}" -d "$work/nvls" -c 20 -b 512 "$f fails"
		expect "$f fails: all say so, and do without" [ \
			"$(calls 'INFO no multicast object: ') $(calls 'by the switch')" = "4 0" ]
	done
	# A rank that leaves has nothing in its memory that others still add.
	list=$(printf '%s:' "$work"/nvls/*.json)
	export BLINK_SCHEDULES=${list%:} BLINK_SMALL=0 BLINK_CHUNK=512
	VIRTUAL_GPU_DELAY=1 by_switch "" order -n 4 -t -k "${few:-20}" leaving
	by_switch "" gpu -n 4 -t ${few:+-k "$few"} graph graph_forked streams one_thread two_communicators
	switched_by allreduce
	by_switch "" gpu -n 4 ${few:+-k "$few"} killed leaves aborted
	if [ "$full" ]; then
		by_switch "" gpu -n 4 killed_in_queue differs late bad_pointer crossed
		in_queues by_switch "" order -n 4 -k 100 several
		by_switch "" order -n 4 -k 100 stream in_turn groups splits split_outlives waited alone
		for f in MulticastCreate MulticastAddDevice MulticastBindMem MulticastUnbind MulticastGetGranularity; do
			by_switch "" gpu -n 4 -f $f:1 driver_fails
		done
		by_switch tsan/ gpu -n 4 -t graph streams
		by_switch asan/ gpu -n 4 graph leaves
	fi
	unset BLINK_SCHEDULES BLINK_SMALL BLINK_CHUNK
	if [ "$full" ]; then
		schedules nvls-8 dgx-h100-nvls.xml 0-7 "5"
		by_switch "" matrix -n 8 -t -o -d "$work/nvls-8" -c 140 -m 40001 "8 threads"
		by_switch "" matrix -n 8 -o -d "$work/nvls-8" -c 70 -m 10007 -b 4096 "8 processes"
		by_switch asan/ matrix -n 4 -o -d "$work/nvls" -c 60 -b 512 "4 processes"
		by_switch tsan/ matrix -n 4 -t -o -d "$work/nvls" -c 60 -b 512 "4 threads"
	fi
fi

# ---- faults ----

run "" gpu -n "$([ "$full" ] && echo 4 || echo 3)" ${few:+-k "$few"} killed killed_in_queue differs aborted leaves \
	bad_pointer crossed
if [ "$full" ]; then
	for seed in 1 2 3 4; do run "" gpu -n 4 -S $seed killed; done
	# In each step of a small schedule of each collective.
	steps=
	for c in broadcast reduce allreduce gather scatter allgather reducescatter alltoall; do
		for ((k = 1; k <= 18; k++)); do steps+=" $c:$k"; done
	done
	run "" gpu -n 3 -f "${steps# }" killed_in_step
	run "" gpu -n 3 -t late leaves differs message_differs aborted crossed
	# Each function of the driver that two ranks call: the first call, and a later one.
	VIRTUAL_GPU_CALLS=$work/calls run "" gpu -n 2 -f Init:1000 driver_fails
	fails=$(sort "$work/calls" | uniq -c |
		awk '{ printf " %s:1", $2 } $1 >= 4 { printf " %s:%d", $2, 2 + NR % ($1 / 2 - 1) }')
	expect "two ranks call functions of the driver" [ "$(wc -w <<<"$fails")" -gt 60 ]
	run "" gpu -n 2 -f "${fails# }" driver_fails
fi
[ ! "$full" ] || run tsan/ gpu -n 3 -t leaves differs aborted
