# The kernels of the CUDA backend compile without warnings by clang and by nvcc, for the oldest GPUs of each, in the
# full test for the latest, too; ptxas takes the PTX that libblink has; the kernels keep all they have in registers, of
# which a block of 512 threads has enough, and have as many loads under way as they should (tests/cuda/sass.py).
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

include="-Iruntime/include -Iruntime -Iruntime/cuda"
clang=${CLANG:-$(command -v clang || true)} nvcc=${NVCC:-$(command -v nvcc || true)}
# beside PROGRAM OTHER: where it is, in $PATH or in the directory of the other. Empty where there is none: what needs it
# is skipped then, with that reason.
beside() { command -v "$1" || { [ "$2" ] && ls "$(dirname "$2")/$1" 2>/dev/null; } || true; }
ptxas=$(beside ptxas "$nvcc")
nvdisasm=${NVDISASM:-$(beside nvdisasm "$ptxas")}
all="move $(sed -n 's/^\tX.blink[^,]*, \([a-z0-9]*\),.*/\1/p' runtime/include/blink_types.h | tr '\n' ' ')"

# some LIST...: in the quick test the first
some() { if [ "$full" ]; then printf '%s\n' "$@"; else echo "$1"; fi; }

# ends LIST: the first line and the last
ends() { sed -n '1p; 1!{$p}' <<<"$1"; }

# compiles NAME TYPE COMMAND...
compiles() {
	local name=$1 type=$2 source=module
	shift 2
	[ "$type" != multicast ] || source=multicast
	[ "$type" = move ] || [ "$type" = multicast ] || set -- "$@" "-DKERNEL_TYPE=$type"
	# shellcheck disable=SC2086 # flags
	expect "$name" "$@" $include -o "$work/$type.ptx" "runtime/cuda/kernels/$source.cu"
}

# What compilers read differs below and from capability 7.0 alone (kernels/portable.h): the oldest, the first of the
# others, the latest.
for arch in $(some sm_60 sm_70 sm_86); do
	[ "$clang" ] || { skip "no clang"; break; }
	for type in ${full:+move} float32 multicast; do
		compiles "$type by clang for $arch" "$type" "$clang" -x cuda --cuda-device-only \
			"--cuda-gpu-arch=$arch" \
			-nocudainc -nocudalib -Wno-unknown-cuda-version -Wall -Wextra -Werror -O3 -ffp-contract=off -S
	done
done
# shellcheck disable=SC2046 # names
for arch in $(if [ "$nvcc" ]; then some $(ends "$("$nvcc" --list-gpu-arch)"); else echo none; fi); do
	[ "$nvcc" ] || { skip "no nvcc"; break; }
	for type in move ${full:+float16} multicast; do
		compiles "$type by nvcc for $arch" "$type" "$nvcc" -x cu -ptx "-arch=$arch" -Werror all-warnings \
			-std=c++17 -O3 -fmad=false
	done
done

# assembled FILE TYPE ARCH: in registers alone; the loads of a pass at once
assembled() {
	local wrong name="$1 for $3"
	if ! "$ptxas" -v "-arch=$3" "$build/gen/ptx/$1.ptx" -o "$work/cubin" 2>"$work/log"; then
		not_ok "$name: $(grep -m1 -v '^ptxas info' "$work/log")"
		return
	fi
	wrong=$(awk '/stack frame/ && !/^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/
		/Used [0-9]+ registers/ { n = $0; sub(/.*Used /, "", n); if (n + 0 > 128) print }' "$work/log")
	if [ "$wrong" ]; then not_ok "$name: $wrong"; else ok "$name: in registers alone"; fi
	[ "$nvdisasm" ] && [ "$1" = "$2$later" ] || [ "$2" = multicast ] || return 0
	[ "$nvdisasm" ] || return 0
	wrong=$("$nvdisasm" -c "$work/cubin" 2>&1 | "$python" -B tests/cuda/sass.py "$2" 2>&1)
	if [ "$wrong" ]; then not_ok "$name: $wrong"; else ok "$name: loads at once, short fences"; fi
}

# stated FILE FENCE: all entries their bounds, all fences of that kind
stated() {
	local file=$build/gen/ptx/$1.ptx
	expect "$1: bounds of its launches" [ "$(grep -c '^\.entry\|^\.visible \.entry' "$file") 4" = \
		"$(grep -c '^\.maxntid 512' "$file") $(grep -c '^\.minnctapersm 1' "$file")" ]
	expect "$1: fences" [ "$(grep -o '\(membar\|fence\.[a-z_]*\)\.sys' "$file" | sort -u)" = "$2" ]
}

# As code: for one kind that nvcc knows; 99, which it does not, is left out. A fat binary begins with these bytes.
if [ ! "$nvcc" ] || ! have_kernels; then
	skip "no nvcc, or no kernels"
elif [ "$full" ]; then
	mkdir "$work/cubins"
	kind=$("$nvcc" --list-gpu-code | sed -n 's/^sm_//p' | head -1)
	fat=$work/cubins/move.fatbin
	expect "a fat binary" make -s PTX_DIR="$work/cubins" CUBINS="$kind 99" "$fat"
	expect "a fat binary is one" [ "$(head -c 4 "$fat" | od -An -tx1)" = " 50 ed 55 ba" ]
	expect "of one kind" [ "$(cat "$work/cubins/kinds")" = "$kind" ]
fi

archs=
[ ! "$ptxas" ] || archs=$("$ptxas" --help | grep -o "'sm_[0-9]*'" | tr -d "'" | sort -t_ -k2n -u)
if [ ! "$archs" ]; then
	skip "no ptxas"
elif ! have_kernels; then
	skip "no kernels were built: want nvcc or clang"
else
	# nvcc makes one set of PTX, for later GPUs.
	later=.70
	[ -e "$build/gen/ptx/move$later.ptx" ] || later=
	[ ! "$later" ] || stated float32 membar.sys
	stated "float32$later" fence.acq_rel.sys
	# All types for two kinds of GPU for which ptxas takes more registers than for those before; for the others
	# the three types of which one needs most wherever it was looked at.
	[ "$nvdisasm" ] || skip "no nvdisasm: which loads are under way at once is not seen"
	for arch in $([ "$full" ] && echo "$archs" || ends "$archs"); do
		types="${full:+move bfloat16 }float32"
		case $full$arch in 1sm_90 | 1sm_120) types=$all ;; esac
		for type in $types; do assembled "$type$later" "$type" "$arch"; done
	done
	[ ! "$later" ] || assembled float32 float32 "${archs%%$'\n'*}"
	# What a switch adds: for GPUs of capability 9.0 and later.
	for arch in $(ends "$(awk -F_ '$2 >= 90' <<<"$archs")"); do
		[ ! -e "$build/gen/ptx/multicast.90.ptx" ] || assembled multicast.90 multicast "$arch"
	done
fi
