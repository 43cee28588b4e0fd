# The generated code as CUDA: compiled without warnings where nvcc is; executed on virtual GPUs (tests/virtual_gpu),
# where it gives the same bits as the host, and on the GPU where there is one.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

nvcc=${NVCC:-$(command -v nvcc || true)}
if [ -z "$nvcc" ]; then
	skip "no nvcc: the generated .cu is compiled for the host only"
	exit 0
fi

# Alone: other libraries are beside them.
for of in "" asan/ tsan/; do
	mkdir -p "$work/${of}driver"
	for library in "$build/$of"tests/virtual_gpu/libcuda.so.1 "$build/$of"tests/virtual_gpu/libcudart.so.*; do
		[ ! -e "$library" ] || ln -s "$library" "$work/${of}driver/"
	done
done
# on_gpus MACHINE COMMAND...: on its virtual GPUs; kind: those of another build
kind=
on_gpus() {
	VIRTUAL_GPU_TOPOLOGY=topologies/$1.xml VIRTUAL_GPU_KERNELS=$build/${kind}tests/virtual_gpu/libprogram-twins.so \
		LD_LIBRARY_PATH=$work/${kind}driver timeout 120 "${@:2}"
}

# same NAME MACHINE SCHEDULE: of its program, linked with the runtime's shared library
same() {
	expect "$1: the same bits on virtual GPUs as on the host" on_gpus "$2" "$build/${kind}tests/same_bits" \
		"$3.json" "$3.shared.so" 1
}

# generate FILE MACHINE COLLECTIVE [OPTION...]: a schedule and its program
generate() {
	"$blinkc" -q "topologies/$2.xml" -c "$3" "${@:4}" -o "$1.cu" &&
		"$blinkc" -q "topologies/$2.xml" -c "$3" "${@:4}" -o "$1.json" ||
		not_ok "$*: exit $?"
}

n=0
cases=dgx1v:allreduce:0,1,2,3:--hybrid
[ ! "$full" ] || cases+=" dgx1v:allgather:0,1,2,3:--hybrid dgx1v:reduce:0,1,2 dgx1v:broadcast:1,4,5,6
	dgx1v:allreduce:0,1,2,3,4,5,6,7 dgx1v:allreduce:0,7
	dgx2:allreduce:0,1,2,5,7:--algorithm=onehop two-dgx1v:allreduce:0,1,2,11,12:--algorithm=threephase"
for case in $cases; do
	IFS=: read -r machine c gpus option <<<"$case"
	n=$((n + 1))
	generate "$work/$n" "$machine" "$c" -g "$gpus" ${option:+"$option"}
	expect "$case compiles with nvcc" "$nvcc" -O2 -c -Werror all-warnings -Xcompiler -fPIC,-Wall,-Wextra,-Werror \
		-Iruntime/include "$work/$n.cu" -o "$work/$n.o"
	expect "$case is linked" "$nvcc" -shared "$work/$n.o" -o "$work/$n.so"
	"$nvcc" -shared -cudart shared "$work/$n.o" -o "$work/$n.shared.so" ||
		not_ok "$case with the shared runtime: exit $?"
	# The driver has the GPUs of one server.
	[ $machine = two-dgx1v ] || same "$case" $machine "$work/$n"
done

# ---- on virtual GPUs ----

if [ "$full" ]; then
	# What a GPU would execute is not read there: PTX is enough, and takes half the time.
	for machine in dgx1v dgx2; do
		for c in allreduce allgather alltoall broadcast gather reduce reducescatter scatter; do
			generate "$work/$machine.$c" $machine "$c"
			"$nvcc" -shared -cudart shared -arch=compute_75 -code=compute_75 -Xcompiler \
				-fPIC -Iruntime/include \
				"$work/$machine.$c.cu" -o "$work/$machine.$c.shared.so" ||
					not_ok "$machine $c: nvcc: exit $?"
			same "$machine $c" $machine "$work/$machine.$c"
		done
	done
	VIRTUAL_GPU_DELAY=7 VIRTUAL_GPU_THREADS=3 same "late, 3 threads a block" dgx1v "$work/dgx1v.allreduce"
	CUDA_VISIBLE_DEVICES=0,2,4 same "several ranks on a GPU" dgx1v "$work/dgx1v.allreduce"
fi

if [ "$full" ]; then
	for kind in ${full:+asan/} ${full:+tsan/}; do
		same "${kind%/}, ${cases%% *}" dgx1v "$work/1"
	done
	kind=
fi

# Calls that fail: it says so, and does not crash.
fails="MemAlloc_v2:2:OUT_OF_MEMORY ModuleLoadData:2 LaunchKernel:3 LaunchKernel:2:ILLEGAL_ADDRESS"
[ ! "$full" ] || fails+=" Init:1:NO_DEVICE DeviceGetCount:1 DevicePrimaryCtxRetain:2 CtxSetCurrent:2 CtxGetDevice:2
	DeviceCanAccessPeer:2 CtxEnablePeerAccess:2 StreamCreate:2 MemcpyPeerAsync:2 EventCreate:2 EventRecord:2
	StreamWaitEvent:2 ModuleGetFunction:2 StreamSynchronize:2 CtxSynchronize:2 Memcpy:2"
for fail in $fails; do
	VIRTUAL_GPU_FAIL=$fail on_gpus dgx1v "$perf" "$work/1.shared.so" -b 64K -e 64K -n 1 -w 0 \
		>"$work/out" 2>"$work/err"
	code=$?
	want=8
	[[ $fail != *MEMORY ]] || want=7
	if [ $code = $want ] && grep -q ' cuda: ' "$work/err"; then
		ok "$fail is an error"
	else
		not_ok "$fail: exit $code: $(head -c 300 "$work/err")"
	fi
done

# ---- NVIDIA's nccl-tests, over libblink-nccl.so, on virtual GPUs ----

# nccl_test NAME OPTION...
nccl_test() {
	VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml \
		VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so BLINK_BACKEND=cuda \
		LD_LIBRARY_PATH=$work/driver:$work/nccl/lib timeout 120 "$work/nccl-tests/all_reduce_perf" -c 0 -b 4 \
			-e 64K -f 8 -n 2 -w 1 \
		"${@:2}" >"$work/log" 2>&1
	local code=$?
	if [ $code = 0 ] && grep -q '^# Out of bounds values : 0 OK' "$work/log"; then ok "nccl-tests, $1"; else
		not_ok "nccl-tests, $1: exit $code: $(tail -3 "$work/log" | tr '\n' ' ')"
	fi
}

# NCCL_TESTS: their source. Their check of results is a kernel without a twin: -c 0.
if [ "${NCCL_TESTS:-}" ]; then
	mkdir -p "$work/nccl/lib"
	ln -s "$build/libblink-nccl.so" "$work/nccl/lib/libnccl.so"
	ln -s "$build/libblink-nccl.so" "$work/nccl/lib/libnccl.so.2"
	ln -s "$build/libblink.so.0" "$work/nccl/lib/"
	cp -r "$NCCL_TESTS" "$work/source"
	expect "nccl-tests are built" make -C "$work/source/src" NVCC="$nvcc" NCCL_HOME="$work/nccl" \
		BUILDDIR="$work/nccl-tests" \
		NVCC_GENCODE="-gencode=arch=compute_90,code=sm_90" os.build "$work/nccl-tests/all_reduce_perf"
	nccl_test "4 threads" -t 4 -g 1
	nccl_test "4 GPUs of a thread" -t 1 -g 4
	nccl_test "graphs" -t 4 -g 1 -G 2
else
	skip "nccl-tests: want NCCL_TESTS, the directory of their source"
fi

# ---- on the GPU ----

if [ ! -e /dev/nvidia0 ]; then
	expect_exit "without a GPU it says so" 8 "$perf" "$work/1.so" -b 4 -e 4
	skip "no GPU: the compiled CUDA code is executed on virtual ones only"
	exit 0
fi
for so in "$work"/[0-9].so; do
	if "$perf" "$so" -b 4 -e 16M -f 8 >"$work/log" 2>&1 &&
		grep -q '^# Out of bounds values : 0 OK' "$work/log"; then
		ok "$(basename "$so") on the GPU"
	else
		not_ok "$(basename "$so") on the GPU: $(tail -3 "$work/log" | tr '\n' ' ')"
	fi
done
