# NCCL's interface (libblink-nccl.so): its names and parameters beside every NCCL that is found, programs as NCCL's
# documentation has them, and a program that has a real NCCL, too.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

shim=$build/libblink-nccl.so
names() { nm -D --defined-only "$1" | awk '$3 ~ /^p?nccl/ { print $3 }' | sort; }

# ---- names and parameters ----
names "$shim" >"$work/ours"
# Of each collective two: X(M, NAME has NAMEConfig as well.
sed -nE 's/^	X\(M, ([A-Za-z]+),.*/nccl\1\nnccl\1Config/p; t; s/^	X\(([A-Za-z0-9]+).*/nccl\1/p' \
	runtime/nccl/nccl.h | sort >"$work/table"
if grep -v '^p' "$work/ours" | cmp -s - "$work/table" && sed 's/^/p/' "$work/table" |
	cmp -s - <(grep '^p' "$work/ours"); then
	ok "it exports what its table has, twice"
else
	not_ok "it exports what its table has, twice: $(diff "$work/ours" "$work/table" | head -5)"
fi
left=$(nm -D --defined-only "$shim" | awk '$3 !~ /^p?nccl/ { print $3 }')
if [ "$left" = blink_nccl_is_this ]; then ok "and nothing else"; else not_ok "and nothing else: $left"; fi

# What programs need, as of their binaries and sources, also where none is installed.
for needed in tests/nccl/needed/*; do
	missing=$(grep -v '^#' "$needed" | comm -13 "$work/ours" - | tr '\n' ' ')
	if [ -z "$missing" ]; then
		ok "names that ${needed##*/} needs"
	else
		not_ok "names that ${needed##*/} needs: $missing"
	fi
done

# NCCL_LIBRARIES: more of them, for instance of Python packages.
found=
for library in ${NCCL_LIBRARIES:-} /usr/local/cuda*/lib/libnccl.so.2 /usr/local/cuda*/lib64/libnccl.so.2 \
	/usr/lib/x86_64-linux-gnu/libnccl.so.2 \
		"$("$python" -c 'import nvidia.nccl as n; print(list(n.__path__)[0])' 2>/dev/null)/lib/libnccl.so.2"; do
	[ -f "$library" ] || continue
	real=$(readlink -f "$library")
	case " $found " in *" $real "*) continue ;; esac
	found+=" $real"
	missing=$(names "$library" | comm -13 "$work/ours" - | tr '\n' ' ')
	if [ -z "$missing" ]; then ok "names of ${real##*/}"; else not_ok "names of $real: $missing"; fi
done
[ "$found" ] || skip "names of a real NCCL: none is installed"

found=
for header in ${NCCL_HEADERS:-} /usr/local/cuda/include/nccl.h /usr/include/nccl.h; do
	[ -f "$header" ] || continue
	found=1
	expect "parameters as in $header" "${CXX:-g++}" -std=c++17 -Wall -Wextra -Werror -Iruntime \
		-I"$(dirname "$header")" \
		-I/usr/local/cuda/include -fsyntax-only tests/nccl/signatures.cc
done
[ "$found" ] || skip "parameters of a real NCCL: no nccl.h is installed"

# ---- programs ----
count() {
	local name=$1
	shift
	"$@" >"$work/tap" 2>&1 || not_ok "$name: exit $?: $(tail -3 "$work/tap" | tr '\n' ' ')"
	sed -n "s/^ok [0-9]* - /ok $suite: $name: /p; s/^not ok [0-9]* - /not ok $suite: $name: /p; s/^# /# /p" \
		"$work/tap"
}
export BLINK_BACKEND=host BLINK_TIMEOUT=60s
unset BLINK_SCHEDULES BLINK_DEBUG LD_PRELOAD
scenarios="processes deaths threads one_thread groups nonblocking scalable split shrink operations errors failing"
for n in 1 ${full:+2 3} 8; do
	# shellcheck disable=SC2086
	BLINK_NCCL=none count "alone, $n ranks" "$build/tests/nccl/program" $n $scenarios
done

# On GPUs: the virtual ones. Of tests/virtual_gpu the library of the driver alone.
if have_kernels; then
	[ "$full" ] && some=$scenarios || some="deaths threads one_thread nonblocking split errors"
	for n in 4 ${full:+8}; do
		# shellcheck disable=SC2086
		BLINK_NCCL=none BLINK_BACKEND='' LD_LIBRARY_PATH=$build/tests/virtual_gpu \
			VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so \
			count "alone, $n GPUs" "$build/tests/nccl/program" $n servers $some
	done
	for kind in ${full:+asan} ${full:+tsan}; do
		gpus=$build/$kind/tests/virtual_gpu
		[ $kind = asan ] && some=$scenarios || some="one_thread groups nonblocking shrink failing"
		mkdir "$work/$kind"
		ln -s "$gpus/libcuda.so.1" "$work/$kind/"
		# shellcheck disable=SC2086
		BLINK_NCCL=none BLINK_BACKEND='' LD_LIBRARY_PATH=$work/$kind \
			VIRTUAL_GPU_KERNELS=$gpus/libblink-twins.so \
			count "$kind, 2 GPUs" "$build/$kind/tests/nccl/program" 2 $some
	done
	for n in 2 ${full:+4}; do
		BLINK_NCCL=none BLINK_BACKEND='' LD_LIBRARY_PATH=$build/tests/virtual_gpu \
			VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so \
			"$python" -B tests/nccl/by_name.py "$build/blink/libnccl.so.2" \
				tests/nccl/needed/vllm "$n" 2>"$work/err" ||
			not_ok "functions by name, $n GPUs: exit $?: $(tail -1 "$work/err")"
	done
else
	skip "programs on GPUs: no kernels were built: want nvcc or clang"
fi

# ---- beside a real one ----
fake=$build/tests/nccl/libnccl.so.2
count "the real one" "$build/tests/nccl/beside" 4 0
if have_kernels; then
	LD_PRELOAD=$shim BLINK_COLLECTIVES=allreduce BLINK_BACKEND='' LD_LIBRARY_PATH=$build/tests/virtual_gpu \
		VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so count "preloaded, GPUs" \
			"$build/tests/nccl/beside" 4 1
fi
LD_PRELOAD=$shim BLINK_COLLECTIVES=allreduce count "preloaded" "$build/tests/nccl/beside" 4 1
LD_PRELOAD=$shim BLINK_COLLECTIVES=allreduce:1K-1M count "a range of sizes that holds them" \
	"$build/tests/nccl/beside" 3 1
LD_PRELOAD=$shim BLINK_COLLECTIVES=allreduce:1M-,broadcast count "a range that does not" "$build/tests/nccl/beside" 3 0
LD_PRELOAD=$shim count "no schedules: all is the real one's" "$build/tests/nccl/beside" 4 0
LD_PRELOAD=$shim BLINK_NCCL=$fake BLINK_COLLECTIVES=allreduce count "the real one by its path" \
	"$build/tests/nccl/beside" 2 1

# first_failure SETTING...: of a program of one rank, which chooses no device, with these settings: the function, its
# result and text; or "none"
first_failure() {
	env BLINK_BACKEND= BLINK_NCCL=none "$@" "$python" -B - "$shim" <<'END' 2>&1
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.ncclGetLastError.restype = ctypes.c_char_p
class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
id, comm, memory = Id(), ctypes.c_void_p(), ctypes.c_void_p()
for name, arguments in (("GetUniqueId", lambda: [ctypes.byref(id)]),
                        ("CommInitRank", lambda: [ctypes.byref(comm), 1, id, 0]),
                        ("MemAlloc", lambda: [ctypes.byref(memory), ctypes.c_size_t(100 << 20)]),
                        ("MemFree", lambda: [memory]), ("CommDestroy", lambda: [comm])):
    result = getattr(library, "nccl" + name)(*arguments())
    if result:
        print(name, result, library.ncclGetLastError(None).decode())
        break
else:
    print("none")
END
}
fails_with() {
	local want=$1 failure
	failure=$(first_failure "${@:2}")
	if [[ $failure == $want ]]; then
		ok "a program, ${*: -1}: $want"
	else
		not_ok "a program, ${*: -1}: $failure: want $want"
	fi
}
if have_kernels; then
	mkdir "$work/nothing"
	ln -s "$build/tests/cuda/nothing.so" "$work/nothing/libcuda.so.1"
	fails_with "CommInitRank 1 *libcuda.so.1*" "LD_LIBRARY_PATH=$work/nothing"
	gpus=("LD_LIBRARY_PATH=$build/tests/virtual_gpu" \
		"VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so")
	fails_with none "${gpus[@]}"
	fails_with "CommInitRank 1 *the current device*" "${gpus[@]}" VIRTUAL_GPU_FAIL=CtxGetCurrent:1
	fails_with "CommInitRank 1 *use a device*" "${gpus[@]}" VIRTUAL_GPU_FAIL=DeviceGetCount:1
	fails_with "CommInitRank 1 *use a device*" "${gpus[@]}" VIRTUAL_GPU_FAIL=DevicePrimaryCtxRetain:1
	fails_with "MemAlloc 1 *allocate memory*" "${gpus[@]}" VIRTUAL_GPU_MEMORY=100000000
	fails_with "MemFree 1 *free memory*" "${gpus[@]}" VIRTUAL_GPU_FAIL=MemFree_v2:1
	# Beside the real one, which has to carry an id.
	gpus+=("BLINK_NCCL=$fake" BLINK_COLLECTIVES=allreduce)
	fails_with none "${gpus[@]}"
	for f in MemAlloc_v2:1:"allocate memory" StreamCreate:1:"make a stream" MemcpyHtoDAsync_v2:1:"copy an id" \
		MemcpyDtoHAsync_v2:1:"copy an id"; do
		fails_with "CommInitRank 1 *${f##*:}*" "${gpus[@]}" "VIRTUAL_GPU_FAIL=${f%:*}"
	done
fi

# Programs that open it by name or by path.
opens() {
	"$python" -B - "$1" <<'END'
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
version = ctypes.c_int()
assert library.ncclGetVersion(ctypes.byref(version)) == 0
print(version.value)
END
}
is_version() {
	local name=$1 want=$2 got
	shift 2
	got=$("$@" 2>&1)
	if [ "$got" = "$want" ]; then ok "$name"; else not_ok "$name: ${got##*$'\n'}: want $want"; fi
}
by_name() { LD_LIBRARY_PATH=$build/blink BLINK_NCCL=none opens libnccl.so.2; }
by_path() { LD_AUDIT=$build/blink/libblink-audit.so BLINK_NCCL=none opens "$fake"; }
by_path_beside() { LD_AUDIT=$build/blink/libblink-audit.so BLINK_NCCL=$fake opens "$fake"; }
is_version "opened by name" 22809 by_name
is_version "opened by path, redirected" 22809 by_path
is_version "opened by path, redirected, beside the real one" 22705 by_path_beside
is_version "opened by path" 22705 opens "$fake"

# What of the environment is wrong is said where a communicator is made, and no other NCCL takes its place.
is_said() {
	local want=$1 set=$2 result
	result=$(BLINK_BACKEND=host env "$set" "$python" -B -c 'import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.ncclGetLastError.restype = ctypes.c_char_p
result = library.ncclGetUniqueId(ctypes.create_string_buffer(128))
print(result, library.ncclGetLastError(None).decode())' "$shim" 2>&1)
	if [[ $result == $want ]]; then ok "said: $set"; else not_ok "said: $set: $result: want $want"; fi
}
is_said "5 BLINK_NCCL: */nowhere/libnccl.so.2:*: want the path*" BLINK_NCCL=/nowhere/libnccl.so.2
is_said "5 BLINK_NCCL: *libm.so.6: it has no ncclGetVersion: want*" BLINK_NCCL=libm.so.6
is_said "5 BLINK_NCCL: *: it is this library itself: want*" "BLINK_NCCL=$build/blink/libnccl.so.2"
is_said '5 BLINK_BACKEND: "gpu": want cuda or host' BLINK_BACKEND=gpu
for wrong in allreduc allreduce:64K allreduce:2K-1K allreduce,,all ALL messages:1K-; do
	is_said '5 BLINK_COLLECTIVES: "*": want collectives*' BLINK_COLLECTIVES=$wrong
done
