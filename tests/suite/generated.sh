# Kernels that blinkc writes for a schedule: on virtual GPUs (tests/virtual_gpu) ranks that have them and ranks that
# interpret get the same bits as one process on the host; modules of something else are refused; the code compiles
# without warnings by clang and nvcc, and ptxas keeps all in registers.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

GENERATED=${GENERATED:-}
level=0	# of twins: of those that move much, 1
twins=$build/tests/virtual_gpu/libblink-twins.so
clang=${CLANG:-$(command -v clang || true)} nvcc=${NVCC:-$(command -v nvcc || true)}
ptxas=$(command -v ptxas || { [ "$nvcc" ] && ls "$(dirname "$nvcc")/ptxas" 2>/dev/null; } || true)

# file_of MACHINE: of this tree, or a path
file_of() { case $1 in */*) echo "$1" ;; *) echo "topologies/$1.xml" ;; esac; }

# generate DIRECTORY MACHINE COLLECTIVE OPTION...: a schedule and its kernels
generate() {
	local to=$work/$1 c=$3
	mkdir -p "$to"
	"$blinkc" -q "$(file_of "$2")" -c "$c" "${@:4}" -o "$to/$c.json" || not_ok "$*: exit $?"
	"$blinkc" convert "$to/$c.json" --format cuda-kernel -o "$to/$c.cu" || not_ok "$*: kernels: exit $?"
}

# twin FILE TYPE OP: FILE.cu for the virtual GPUs, and what their driver reads of a module; without a type it only moves
twin() {
	local name
	"${cc[@]}" -x c -std=gnu11 "-O$level" -Wall -Wextra -Werror -ffp-contract=off -shared -fPIC -D_GNU_SOURCE \
		${2:+"-DBLINK_TYPE=$2" "-DBLINK_OP=$3"} \
		-Itests "$1.cu" -o "$1.so" -x none "$build/tests/virtual_gpu/libcuda.so.1" ||
			not_ok "$1 for the host: exit $?"
	name=$(sed -n 's/^#define GENERATED_NAME //p' "$1.cu")_${2:-move}${3:+_$3}
	{
		printf '.version 7.0\n.target sm_60\n'
		sed -n 's/^#define GENERATED_MARK \(.*\)/.visible .global .u32 \1;/p' "$1.cu"
		sed -n '/^#define GENERATED_RANKS/,/^$/{
			s/^.X(\([0-9]*\), \([0-9a-f]*\)).*/.visible .global .u32 blink_\2_rank\1;/p
		}' "$1.cu"
		printf '.visible .entry %s(\n' "$name"
	} >"$1.ptx"
}

# ranks MACHINE N DIRECTORY MODULES ARGUMENT...: a job of N threads, or as `on` has it; $work/log and $work/debug
on=(-t)
ranks() {
	local libraries=$twins
	for so in "$work/$3"/*.so; do libraries+=:$so; done
	rm -f "$work/debug"
	VIRTUAL_GPU_TOPOLOGY=$(file_of "$1") VIRTUAL_GPU_KERNELS=$libraries VIRTUAL_GPU_BLOCKS=256 \
		BLINK_BACKEND=cuda BLINK_KERNELS=$4 \
		LD_LIBRARY_PATH=$work/driver BLINK_DEBUG=INFO BLINK_DEBUG_FILE=$work/debug timeout 120 \
			"$build/tests/job/matrix" \
		-n "$2" "${on[@]}" -d "$work/$3" "${@:5}" job >"$work/log" 2>&1
}

# same NAME KERNELS MACHINE N DIRECTORY MODULES ARGUMENT...: the bits are right, and so many ranks and modules met
same() {
	local name=$1 kernels=$2 used
	shift 2
	if ! ranks "$@"; then
		not_ok "$name: $(grep -v '^ok' "$work/log" | head -3 | tr '\n' ' ')"
		return
	fi
	used=$(grep -c 'its kernel is used' "$work/debug")
	if [ "$used" = "$kernels" ]; then
		ok "$name: the same bits as on the host"
	else
		not_ok "$name: $used kernels: want $kernels"
	fi
}

# refused NAME TEXT MODULES: for the ranks of "small"
refused() {
	if ranks dgx1v 4 small "$3" -c 4 -k "allreduce float32 sum"; then
		not_ok "$1: taken"
	else
		has "$1" "$2" "$work/log"
	fi
}

# has NAME PATTERN FILE
has() { if grep -q -e "$2" "$3"; then ok "$1"; else not_ok "$1: $(head -c 300 "$3")"; fi; }

# ---- on virtual GPUs ----

if have_kernels; then
	mkdir "$work/driver"
	ln -s "$build/tests/virtual_gpu/libcuda.so.1" "$work/driver/"
	generate small dgx1v allreduce -g 0-3
	twin "$work/small/allreduce" float32 sum
	same "allreduce" 4 dgx1v 4 small "$work/small/allreduce.ptx" -c 60 -m 4099 -k "allreduce float32"
	sed '/_rank[13];/d' "$work/small/allreduce.ptx" >"$work/half.ptx"
	same "every other rank is interpreted" 2 dgx1v 4 small "$work/half.ptx" -c 30 -m 4099 -k "allreduce float32"
	generate two two-dgx1v allreduce -g 0,1,8,9
	twin "$work/two/allreduce" float32 sum
	on=(-s 2)
	same "allreduce over two servers" 4 dgx1v 4 two "$work/two/allreduce.ptx" -c 40 -m 4099 -k "allreduce float32"
	on=(-t)
	generate steps dgx2 alltoall -g 0-4
	has "tasks in equal steps are one case" 'case 0 \.\.\. [0-9]*: .*+ i, ' "$work/steps/alltoall.cu"
	twin "$work/steps/alltoall"
	same "tasks in equal steps" 5 dgx2 5 steps "$work/steps/alltoall.ptx" -c 6 -m 4099 -k "alltoall float32"
	generate other dgx1v allreduce -g 0-2
	twin "$work/other/allreduce" float32 sum
	mv "$work/other/allreduce.so" "$work/small/other.so"
	mv "$work/other/allreduce.ptx" "$work/other.ptx"
	refused "of another schedule" 'other.ptx: for schedule sha256:[0-9a-f]\{12\}: want one for '\
'sha256:[0-9a-f]\{12\}, by which this allreduce goes' "$work/other.ptx"
	sed 's/blink_kernels_[0-9]*/blink_kernels_1/' "$work/small/allreduce.ptx" >"$work/older.ptx"
	refused "of another version" 'older.ptx: of another version of blinkc' "$work/older.ptx"
	refused "a schedule for a module" 'allreduce.json: want PTX or a cubin of what blinkc' \
		"$work/small/allreduce.json"
	refused "no file" 'nothing.ptx: No such file' "$work/nothing.ptx"
	sed '/entry/,$d' "$work/small/allreduce.ptx" >"$work/short.ptx"
	refused "cut short before its kernel" \
		'short.ptx: no kernel of its schedule: want a whole file' "$work/short.ptx"
	sed '/version/d' "$work/small/allreduce.ptx" >"$work/later.cubin"
	refused "that the driver does not take" \
		'later.cubin: device [0-3] does not take it: .*: want a whole file, for this GPU' "$work/later.cubin"
	if [ "$full" ]; then
		refused "a directory" "BLINK_KERNELS: $work/small" "$work/small"
		: >"$work/empty.ptx"
		refused "an empty file" 'empty.ptx: want PTX or a cubin of what blinkc' "$work/empty.ptx"
		{ cat "$work/small/allreduce.ptx"; echo 'add.ftz.f32 %f1, %f2, %f3;'; } >"$work/fast.ptx"
		refused "arithmetic of other results" \
			'fast.ptx: compiled with -ftz=true or -use_fast_math' "$work/fast.ptx"
	fi
else
	skip "no kernels were built: want nvcc or clang"
fi

# A name that ends a comment, as one that text of a file might.
sed '0,/name="[^"]*"/s||name="*/ injected */ ??/"|' topologies/dgx1v.xml >"$work/hostile.xml"
"$blinkc" -q "$work/hostile.xml" -g 0-2 --format cuda-kernel -o "$work/hostile.cu" || not_ok "a hostile name: exit $?"
if "${cc[@]}" -x c -E -Itests "$work/hostile.cu" >"$work/log" 2>&1 && ! grep -q injected "$work/log" &&
	grep -q injected "$work/hostile.cu"; then
	ok "names stay in comments"
else
	not_ok "names stay in comments"
fi

# ---- all machines and collectives: in the full test one; GENERATED=all: all of them ----

# assembled NAME PTX ARCH: in registers alone, as many as a block of 512 threads has for each
assembled() {
	local wrong
	if ! "$ptxas" -v "-arch=$3" "$2" -o "$work/cubin" 2>"$work/log"; then
		not_ok "$1: $(grep -m1 -v '^ptxas info' "$work/log")"
		return
	fi
	wrong=$(awk '/stack frame/ && !/^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/
		/Used [0-9]+ registers/ { n = $0; sub(/.*Used /, "", n); if (n + 0 > 128) print }' "$work/log")
	if [ "$wrong" ]; then not_ok "$1: $wrong"; else ok "$1: in registers alone"; fi
}

# later A B: the architecture of a higher number
later() { printf 'sm_%s\n' "${1#*_}" "${2#*_}" | sort -t_ -k2n | tail -1; }

# compiled NAME FILE ARCH_OF_CLANG ARCH_OF_NVCC DEFINITION...: by one compiler, in turn
compiled() {
	local name=$1 file=$2 clang_arch=$3 nvcc_arch=$4
	shift 4
	if [ "$clang" ] && { [ ! "$nvcc" ] || [ "$GENERATED" ] || [ $((n % 2)) = 0 ]; }; then
		expect "$name by clang for $clang_arch" "$clang" -x cuda --cuda-device-only \
			"--cuda-gpu-arch=$clang_arch" -nocudainc \
			-nocudalib -Wno-unknown-cuda-version -Wall -Wextra -Werror -O3 -ffp-contract=off "$@" -S \
				"$file" -o "$work/clang.ptx"
		[ ! "$ptxas" ] || assembled "$name by clang for $nvcc_arch" "$work/clang.ptx" \
			"$(later "$clang_arch" "$nvcc_arch")"
	fi
	if [ "$nvcc" ] && { [ ! "$clang" ] || [ "$GENERATED" ] || [ $((n % 2)) = 1 ]; }; then
		expect "$name by nvcc for $nvcc_arch" "$nvcc" -ptx -fmad=false "-arch=$nvcc_arch" -Werror all-warnings \
			"$@" "$file" -o "$work/nvcc.ptx"
		[ ! "$ptxas" ] || assembled "$name by nvcc for $nvcc_arch" "$work/nvcc.ptx" "${nvcc_arch/compute/sm}"
	fi
}

[ "$full" ] || exit 0

# Hybrid schedules; and tasks in a table, with ranks that share GPUs.
"$blinkc" topology --synthetic "gpu:24 ring:25" -o "$work/ring.xml" || not_ok "a ring: exit $?"
generate table "$work/ring.xml" alltoall
if [ -e "$twins" ]; then
	generate hybrid dgx1v allreduce --hybrid
	twin "$work/hybrid/allreduce" float32 sum
	same "hybrid allreduce" 8 dgx1v 8 hybrid "$work/hybrid/allreduce.ptx" -c 6 -m 4099 -k "allreduce float32 sum"
	generate hybrid dgx1v alltoall --hybrid=host
	twin "$work/hybrid/alltoall"
	same "hybrid alltoall" 8 dgx1v 8 hybrid "$work/hybrid/alltoall.ptx" -c 6 -m 4099 -k "alltoall float32"
	twin "$work/table/alltoall"
	same "tasks in a table" 24 dgx2 24 table "$work/table/alltoall.ptx" -c 1 -m 99 -k "alltoall float32"
fi
has "too many cases are a table" '^DEVICE_TABLE struct gpu_task program_row' "$work/table/alltoall.cu"
"$blinkc" topology --synthetic "gpu:64 switch:900" -o "$work/switch.xml" || not_ok "a switch: exit $?"
generate runs "$work/switch.xml" alltoall
expect "many tasks in equal steps are few cases" test "$(grep -c 'TASK(' "$work/runs/alltoall.cu")" -lt 300

# The commands of a page, for a small machine, but those that run a program.
page() {
	mkdir "$work/page"
	sed -n '/^\.Ss Kernels for GPUs/,/^\.S[hs] [^K]/p' man/blinkc-convert.1 |
		awk '{ if (sub(/\\e$/, "")) printf "%s", $0; else print }' |
		sed -n 's/^\$ //p' | grep -v ' program$' | while read -r command; do
		[ "$(command -v "${command%% *}")" ] || [ "${command%% *}" = blinkc ] || continue
		command=${command/ dgx1v / $top/topologies/gb200-tray.xml }
		(cd "$work/page" && PATH="${blinkc%/*}:$PATH" bash -c "$command") 2>&1 || return
		echo "$command" >>"$work/commands"
	done
}
expect "the commands of blinkc-convert(1)" page
expect "they say nothing" test ! -s "$work/out"
has "are found there" '^blinkc convert' "$work/commands"
[ "$clang$nvcc" ] || skip "no clang and no nvcc"
# Machines by their GPUs; the architectures that compilers know are tried in turn.
machines=(dgx1p:8 dgx1v:8 dgx2:16 summit:6 dgx-a100:8 abci:4 pcie-8gpu:8 dgx-h100:8 dgx-h100-nvls:8 gb200-tray:4 \
	hgx-b200:8 kesch:16 mi250:16 mi300x:8 p4d:8)
collectives=(allreduce allgather reducescatter broadcast reduce gather scatter alltoall)
types=("float32 sum" "float16 max" "int64 prod" "bfloat16 sum" "float8e4m3 sum" "uint8 min" "float64 sum")
clang_archs=(sm_60 sm_61 sm_70 sm_72 sm_75 sm_80 sm_86)
nvcc_archs=(compute_75)
# shellcheck disable=SC2207 # names
[ ! "$nvcc" ] || nvcc_archs=($("$nvcc" --list-gpu-arch))
n=0
level=1
while [ "$n" -lt $((${#GENERATED} > 0 ? 120 : 1)) ]; do
	IFS=: read -r machine gpus <<<"${machines[n % 15]}"
	c=${collectives[n / 15 % 8]}
	type=
	case $c in *reduce*) type=${types[n % 7]} ;; esac
	read -r type op <<<"$type"
	generate all "$machine" "$c"
	compiled "$machine $c" "$work/all/$c.cu" "${clang_archs[n % 7]}" "${nvcc_archs[n % ${#nvcc_archs[@]}]}" \
		${type:+"-DBLINK_TYPE=$type" "-DBLINK_OP=$op"}
	calls=12
	case $c in broadcast | reduce | gather | scatter)	# of root 0, which calls have by chance
		mv "$work/all/$c.json" "$work/all/$c.r0.json"
		calls=$((gpus * 6)) ;;
	esac
	if [ -e "$twins" ]; then
		twin "$work/all/$c" "$type" "$op"
		same "$machine $c $type" "$gpus" "$machine" "$gpus" all "$work/all/$c.ptx" -c $calls -m 4099 \
			-k "$c ${type:-float32}${op:+ $op}"
	fi
	rm -r "$work/all"
	n=$((n + 1))
done
