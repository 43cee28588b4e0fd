# blinkc probe: a machine of topologies/, as a virtual NVML and a virtual libhwloc tell of it, is written as its file
# has it; and what a driver may refuse leaves one line and no file. tests/unit/test_probe.c has every call and every
# machine.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

v=$top/topologies/dgx1v.xml

# without_driver COMMAND...: as on a machine that has none
without_driver() {
	env -u LD_LIBRARY_PATH "$@"
}

# ---- what is written ----

expect "dgx1v: a file" on_machine "$v" "$blinkc" probe -o "$work/dgx1v.xml"
expect "dgx1v: valid" xmllint --noout --nonet --schema schemas/topology.xsd "$work/dgx1v.xml"
for class in nvlink pcie qpi; do
	oracle hwloc links "$v" $class | sed 's/plx/pcie/g' | sort >"$work/want"
	oracle hwloc links "$work/dgx1v.xml" $class | sort >"$work/got"
	expect "dgx1v: links of class $class" diff "$work/want" "$work/got"
done
on_machine "$v" "$blinkc" probe >"$work/dgx1v.json" 2>"$work/err"
expect "dgx1v: what was found, in words" diff - "$work/err" <<'END'
found       8 GPUs, Tesla V100-SXM2-32GB, 6 NVLinks each, driver 999.99.01
assumed     mlx5_0 and other NICs: no port that is up, with a rate; --nic-rate sets it for a cluster
assumed     link between the CPUs: 6 GB/s (Xeon Broadwell or earlier, QPI)
END
"$blinkc" convert -q "$work/dgx1v.xml" -o "$work/again.json"
expect "dgx1v: JSON on standard output, the same machine" diff <(grep -v '"name"' "$work/dgx1v.json") \
	<(grep -v '"name"' "$work/again.json")
expect "dgx1v: it is told by the driver's version" grep \
	-q 'source="machine that hwloc 2.9.0 found (XML 2.x); GPUs and NVLinks: NVML of driver 999.99.01' \
	"$work/dgx1v.xml"
expect "dgx1v: quiet" on_machine "$v" "$blinkc" probe -q -o "$work/quiet.xml"
expect "quiet says nothing" test ! -s "$work/out"

# Plans on it are those on ours.
for gpus in 0-7 1,4-6; do
	for machine in "$v" "$work/dgx1v.xml"; do
		"$blinkc" -q "$machine" -g $gpus -o "$work/plan.json" &&
			grep -o '"\(bound\|achieved\)":[^,}]*' "$work/plan.json" | head -2
	done >"$work/rates"
	expect "dgx1v: GPUs $gpus: the rate of ours" test \
		"$(sort -u "$work/rates" | wc -l)-$(wc -l <"$work/rates")" = 2-4
done

# ---- some of the GPUs ----

on_machine "$v" "$blinkc" probe -g gpu7,0,4,3 -o "$work/four.xml" 2>"$work/err" || not_ok "four GPUs: exit $?"
expect "four GPUs: their ids" test \
	"$(grep -o '<gpu id="[^"]*"' "$work/four.xml" | tr -dc '0-9\n' | tr '\n' ' ')" = "0 3 4 7 "
expect "four GPUs: what their NVLinks lead to" grep \
	-q "GPU 0: left out: 2 NVLinks to GPUs that are not written" "$work/err"
on_machine "$v" env CUDA_VISIBLE_DEVICES=2 "$blinkc" probe -q -o "$work/visible.xml"
expect "CUDA_VISIBLE_DEVICES changes nothing" cmp "$work/visible.xml" "$work/dgx1v.xml"
on_machine "$v" env VIRTUAL_GPU_NAME=$'V100\033[2J\n' "$blinkc" probe -o "$work/odd.xml" 2>"$work/err"
expect "a name with control characters" grep -q '^found       8 GPUs, V100?\[2J?, 6 NVLinks each' "$work/err"

# ---- what fails ----

# refused NAME CODE WORDS COMMAND...: with these words in one line, and no file $work/none.xml
refused() {
	local name=$1 code=$2 words=$3
	shift 3
	rm -f "$work/none.xml"
	expect_exit "$name" "$code" "$@" -o "$work/none.xml"
	grep -qF -- "$words" "$work/err" || not_ok "$name: $(cat "$work/err")"
	[ ! -e "$work/none.xml" ] || not_ok "$name: it leaves a file"
}
if without_driver "$blinkc" probe >/dev/null 2>&1; then skip "no driver: this machine has one"; else
	refused "no driver" 8 "" without_driver "$blinkc" probe
fi
mkdir "$work/odd"
: >"$work/odd/libnvidia-ml.so.1"
refused "a library that is none" 8 "libnvidia-ml.so.1: " env LD_LIBRARY_PATH="$work/odd" "$blinkc" probe
refused "a file" 2 "dgx1v: want no file" "$blinkc" probe dgx1v
refused "a GPU that is not there" 3 "gpu8" on_machine "$v" "$blinkc" probe -g gpu8
refused "a format that is not written" 2 "--format" "$blinkc" probe --format nccl
refused "a model that is not known" 2 "--gpu-model" on_machine "$v" "$blinkc" probe --gpu-model V1000
refused "a driver that is not loaded" 8 "is not loaded" on_machine "$v" env \
	VIRTUAL_GPU_FAIL=nvmlInit_v2:1:9 "$blinkc" probe
refused "a driver of another version" 8 "want both of one driver" on_machine "$v" env \
	VIRTUAL_GPU_FAIL=nvmlInit_v2:1:18 "$blinkc" probe
refused "a GPU that is lost" 8 "GPU 2: lost" on_machine "$v" env \
	VIRTUAL_GPU_FAIL=nvmlDeviceGetNvLinkState:15:15 "$blinkc" probe
refused "no GPU" 3 "no GPU" on_machine "$v" env VIRTUAL_GPU_SHOW= "$blinkc" probe
refused "hwloc fails" 8 "libhwloc" on_machine "$v" env VIRTUAL_GPU_FAIL=hwloc_topology_load:1 "$blinkc" probe

# The first call of each function.
VIRTUAL_GPU_CALLS=$work/calls on_machine "$v" "$blinkc" probe -q -o "$work/quiet.xml"
mapfile -t functions < <(sort -u "$work/calls" | grep -v nvmlShutdown)
programs=("$blinkc")
[ ! "${full:-}" ] || programs+=("$build/asan/blinkc")
for program in "${programs[@]}"; do
	for function in "${functions[@]}"; do
		refused "$function fails" 8 "" on_machine "$v" env VIRTUAL_GPU_FAIL="$function:1" "$program" probe
	done >"$work/lines"
	grep -v '^ok ' "$work/lines"
	expect "${program#"$build"/}: the first call of ${#functions[@]} functions fails" test \
		"$(grep -c '^ok ' "$work/lines")" = ${#functions[@]} -a ${#functions[@]} -ge 20
done

# ---- a container with libcuda and without NVML ----

mkdir "$work/cuda"
ln -s "$build/tests/virtual_gpu/hwloc/libhwloc.so.15" "$build/tests/virtual_gpu/driver/libcuda.so.1" "$work/cuda"
by_cuda() {
	VIRTUAL_GPU_TOPOLOGY=$1 LD_LIBRARY_PATH=$work/cuda "${@:2}"
}
if ! without_driver "$blinkc" probe >/dev/null 2>&1; then
	for machine in dgx1v dgx1p abci dgx-a100; do
		by_cuda topologies/$machine.xml "$blinkc" probe -o "$work/cuda.xml" 2>"$work/err"
		grep -q 'no NVML, so that only pairs of GPUs with NVLinks are known' "$work/err" ||
			not_ok "$machine by libcuda: $(cat "$work/err")"
		oracle hwloc links topologies/$machine.xml nvlink | sort >"$work/want"
		oracle hwloc links "$work/cuda.xml" nvlink | sort >"$work/got"
		expect "$machine by libcuda: its NVLinks" diff "$work/want" "$work/got"
	done
	VIRTUAL_GPU_CALLS=$work/cuda.calls by_cuda "$v" "$blinkc" probe -q -o "$work/quiet.xml"
	mapfile -t functions < <(sort -u "$work/cuda.calls" | grep '^cu')
	for function in "${functions[@]}"; do
		refused "$function fails" 8 "libcuda.so.1: $function: error 999: unknown error" by_cuda "$v" env \
			VIRTUAL_GPU_FAIL="$function:1" "$blinkc" probe
	done >"$work/lines"
	grep -v '^ok ' "$work/lines"
	expect "the first call of ${#functions[@]} functions of libcuda fails" test \
		"$(grep -c '^ok ' "$work/lines")-${#functions[@]}" = 8-8
	refused "libcuda without a GPU" 3 "no GPU" by_cuda "$v" env VIRTUAL_GPU_FAIL=cuInit:1:100 "$blinkc" probe
fi

# ---- libblink: a job whose ranks know the PCI addresses of their GPUs ----

"${cc[@]}" -O1 -Iruntime/include examples/launched.c -o "$work/launched" -L"$build" -lblink -Wl,-rpath,"$build" ||
	not_ok "launched.c does not build"
"$blinkc" batch -q "$top/topologies/dgx1p.xml" --distinct -n 4 -o "$work/pascal" &&
	"$blinkc" batch -q "$v" --distinct -n 4 -o "$work/volta" || not_ok "batch"

# job NAME WORDS ADDRESS...: a rank with each of these GPUs; rank 0's log has the words
job() {
	local name=$1 words=$2 r=0 address pids=() failed=0
	shift 2
	rm -f "$work/id" "$work/log"
	for address; do
		RANK=$r WORLD_SIZE=$# BLINK_GPU=$address BLINK_SCHEDULES=${BLINK_SCHEDULES:-$work/pascal:$work/volta} \
			BLINK_DEBUG=INFO BLINK_DEBUG_FILE=$work/log \
			BLINK_TIMEOUT=30000 on_machine "$v" timeout 60 "$work/launched" "$work/id" >>"$work/said" 2>&1 &
		pids+=($!)
		r=$((r + 1))
	done
	for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
	if [ $failed = 0 ] && grep '\[0\] BLINK [A-Z]* allreduce of [0-9]* to 9223372036854775807' "$work/log" |
		grep -qF -- "$words"; then
		ok "$name"
	else
		not_ok "$name: $(cat "$work/said" "$work/log" | tail -n 5 | tr '\n' ';')"; fi
}
job "GPUs 1, 4, 5 and 6 of a DGX-1V, not of a DGX-1P" "/volta/allreduce/0-2,5.json: trees, 50 GB/s" 0000:11:00.0 \
	0000:14:00.0 0000:15:00.0 0000:16:00.0
job "GPUs 0 to 3" "/volta/allreduce/0-3.json: trees, 75 GB/s" 00000000:10:00.0 0000:11:00.0 0000:12:00.0 0000:13:00.0
VIRTUAL_GPU_DOWN=0:0 job "a link is down" \
	"has no GPUs with the NVLinks of those of this job" \
	0000:10:00.0 0000:11:00.0 0000:12:00.0 0000:13:00.0
RANK=0 WORLD_SIZE=1 BLINK_GPU=0000:fe:00.0 on_machine "$v" timeout 60 "$work/launched" "$work/id2" >"$work/said" 2>&1
code=$?
expect "a GPU that the driver does not show" grep \
	-q "GPU 0000:fe:00.0: NVIDIA's driver shows 8 GPUs, and not this one" "$work/said"
[ $code != 0 ] || not_ok "a GPU that the driver does not show: exit 0"

# A schedule file has no index that knows its GPUs: where a link is missing, rank 0 warns.
"$blinkc" -q "$v" -g 0-3 -c allreduce -o "$work/first4.json" || not_ok "schedule"
named() {
	BLINK_SCHEDULES=$work/first4.json job "$@"
}
named "a schedule file for the GPUs" "first4.json: trees, 75 GB/s" 0000:10:00.0 0000:11:00.0 0000:12:00.0 0000:13:00.0
expect "a schedule file for the GPUs: no warning" test "$(grep -c NVLinks "$work/log")" = 0
named "a schedule file for other GPUs" "first4.json: trees, 75 GB/s" 0000:11:00.0 0000:14:00.0 0000:15:00.0 0000:16:00.0
expect "a schedule file for other GPUs: a warning" grep \
	-q '\[0\] BLINK WARN .*/first4.json: .*: NVLinks of rank 0 to rank 1: 1 in its machine, 0 of the GPUs here' \
	"$work/log"
expect "a schedule file for other GPUs: one warning" test "$(grep -c NVLinks "$work/log")" = 1

# The same with the backend cuda, on the virtual driver, where no rank says anything: each has the device of its number.
if have_kernels; then
	gpus=$build/tests/virtual_gpu
	LD_LIBRARY_PATH=$gpus VIRTUAL_GPU_TOPOLOGY=$v VIRTUAL_GPU_KERNELS=$gpus/libblink-twins.so BLINK_BACKEND=cuda \
		CUDA_VISIBLE_DEVICES=1,4,5,6 \
		BLINK_SCHEDULES=$work/pascal:$work/volta BLINK_DEBUG=INFO BLINK_DEBUG_FILE=$work/log.cuda timeout 100 \
		"$build/tests/job/matrix" -n 4 -c 30 -m 100000 cuda >"$work/said" 2>&1
	code=$?
	expect "backend cuda: the calls are right" test "$code-$(cat "$work/said")" = "0-ok cuda"
	expect "backend cuda: GPUs 1, 4, 5 and 6 of a DGX-1V" grep \
		-q 'allreduce of .*/volta/allreduce/0-2,5.json' "$work/log.cuda"
else
	skip "backend cuda: no kernels were built: want nvcc or clang"
fi
