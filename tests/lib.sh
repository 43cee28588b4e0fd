# What every suite uses. A suite prints `ok NAME`, `not ok NAME: why` and `skip NAME: why`; tests/run counts them.
# shellcheck shell=bash
set -u
export LC_ALL=C
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$top/$build ;; esac
blinkc=$build/blinkc
perf=$build/blink-perf
python=/usr/bin/python3
[ -x $python ] || python=python3
oracle() { local name=$1; shift; "$python" -B "$top/tests/oracle/$name.py" "$@"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ok() { echo "ok $suite: $*"; }
not_ok() { echo "not ok $suite: $*"; }
skip() { echo "skip $suite: $*"; }

# expect NAME COMMAND...: it succeeds
expect() {
	local name=$1
	shift
	if "$@" >"$work/out" 2>&1; then ok "$name"; else
		not_ok "$name: exit $? of $*"
		sed 's/^/# /' "$work/out" | head -20
	fi
}

# expect_exit NAME CODE COMMAND...: it exits so, with one line on stderr; $work/err keeps the line
expect_exit() {
	local name=$1 code=$2 got
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	if [ $got != "$code" ]; then
		not_ok "$name: exit $got, want $code: $(head -c 300 "$work/err")"
	elif [ "$code" != 0 ] && [ "$(wc -l <"$work/err")" != 1 ]; then
		not_ok "$name: want one line on stderr, got $(wc -l <"$work/err")"
	else
		ok "$name"
	fi
}
