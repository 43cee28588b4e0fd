# What every suite uses. A suite prints `ok NAME`, `not ok NAME: why` and `skip NAME: why`; tests/run counts them.
# shellcheck shell=bash
set -u
export LC_ALL=C
full=${full:-}	# set by tests/run --full
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export BUILD=${BUILD:-build}
build=$BUILD
case $build in /*) ;; *) build=$top/$build ;; esac
blinkc=$build/blinkc
perf=$build/blink-perf
# The tree was built with these warnings; with others make would build all of it again.
! grep -qs -- ' -Werror ' "$build/flags" || export WERROR=-Werror
read -ra cc <<<"${CC:-cc}"	# perhaps several words: ccache gcc
python=/usr/bin/python3
[ -x $python ] || python=python3
# oracle NAME ARGUMENT...: tests/oracle/NAME.py, in the suite's one Python process (tests/warm.py), or in a new one
oracle() {
	local script=$top/tests/oracle/$1.py
	shift
	if [ "${ORACLE_SOCKET:-}" ] && [ -x "$build/tests/oracle" ]; then
		"$build/tests/oracle" "$script" "$@"
	else
		"$python" -B "$script" "$@"
	fi
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ok() { echo "ok $suite: $*"; }
not_ok() { echo "not ok $suite: $*"; }
skip() { echo "skip $suite: $*"; }

# Was there a compiler for kernels when libblink was built? Their twins need none.
have_kernels() { [ -e "$build/gen/ptx/move.ptx" ]; }

# expect NAME COMMAND...: it succeeds
expect() {
	local name=$1
	shift
	if "$@" >"$work/out" 2>&1; then ok "$name"; else
		not_ok "$name: exit $? of $*"
		sed 's/^/# /' "$work/out" | head -20
	fi
}

# has NAME PATTERN [FILE]: a line of the file matches; without one, of what the last command of `expect` printed
has() {
	local file=${3:-$work/out}
	if grep -qE -e "$2" "$file"; then ok "$1"; else not_ok "$1: no $2 in: $(head -c 300 "$file")"; fi
}

# is NAME FOUND WANT: two texts are equal
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1: $2, want $3"; fi; }

# A name that a suite does not define must not pass for a case that holds.
command_not_found_handle() {
	not_ok "$1: no such command"
	return 127
}

# The verbs of blinkc, a line each, from its list of them.
verbs() { "$blinkc" help | sed -nE 's/^  ([a-z]+ +| {9})([a-z-]+) .*/\2/p'; }

# every N: in the quick check one time in N, the first one too; in the full test always. For cases that are much alike.
turn=0
every() { [ "$full" ] || [ $((turn++ % $1)) = 0 ]; }

# one_line FILE: that is all it has
one_line() {
	local text
	IFS= read -rd '' text <"$1"
	[[ $text == *$'\n' && ${text%$'\n'} != *$'\n'* ]]
}

# on_machine TOPOLOGY COMMAND...: on this machine, as a virtual driver and a virtual libhwloc tell of it
# (tests/virtual_gpu)
on_machine() {
	local virtual=$build/tests/virtual_gpu
	VIRTUAL_GPU_TOPOLOGY=$1 LD_LIBRARY_PATH=$virtual:$virtual/hwloc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "${@:2}"
}

# expect_exit NAME CODE COMMAND...: it exits so, with one line on stderr; $work/err keeps the line
expect_exit() {
	local name=$1 code=$2 got
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	if [ $got != "$code" ]; then
		not_ok "$name: exit $got, want $code: $(head -c 300 "$work/err")"
	elif [ "$code" != 0 ] && ! one_line "$work/err"; then
		not_ok "$name: want one line on stderr, got $(wc -l <"$work/err")"
	else
		ok "$name"
	fi
}

# torch_python CONDITION: a Python with a PyTorch, `torch`, and torch.distributed, `d`, for which it holds; or nothing
torch_python() {
	local candidate
	for candidate in ${TORCH_PYTHON:+"$TORCH_PYTHON"} "$build/torch/bin/python" "$python" python3; do
		if "$candidate" -c "import torch, torch.distributed as d
assert $1" 2>/dev/null; then
			echo "$candidate"
			return
		fi
	done
}

# schedules DIRECTORY MACHINE GPUS ROOTS [OPTION...]: of all collectives, in $work
schedules() {
	local to=$1 machine=$2 gpus=$3 roots=$4 c r
	shift 4
	mkdir -p "$work/$to"
	for c in allreduce allgather reducescatter alltoall; do
		"$blinkc" -q "topologies/$machine" -g "$gpus" -c $c "$@" -o "$work/$to/$c.json" ||
			not_ok "$to $c: exit $?"
	done
	for c in broadcast reduce gather scatter; do
		for r in $roots; do
			"$blinkc" -q "topologies/$machine" -g "$gpus" -c $c -r "$r" "$@" -o "$work/$to/$c.r$r.json" ||
				not_ok "$to $c: exit $?"
		done
	done
}
