# A job of processes by libblink: collectives and their results, their order, and what happens when ranks fail. The
# programs are tests/job/*.c; the full test runs more, a part of it in each round, and under the round's sanitizer.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# run KIND PROGRAM ARGUMENT...: the lines of the program, named by the suite
run() {
	local kind=$1 program=$build/$1tests/job/$2 code
	shift 2
	if [ ! -x "$program" ]; then
		not_ok "$program: not built"
		return
	fi
	"$program" "$@" >"$work/log" 2>&1
	code=$?
	for word in ok "not ok" skip; do sed -n "s|^$word |$word $suite: $kind|p" "$work/log"; done
	if [ $code != 0 ]; then
		grep -q '^not ok' "$work/log" || not_ok "$program $*: exit $code"
		grep -v '^ok' "$work/log" | head -40 | sed 's/^/# /'
	fi
}

# ---- results ----

calls=$([ "$full" ] && echo 276 || echo 140)
schedules dgx1v dgx1v.xml 0,1,2 "0 1 2"
schedules two two-dgx1v.xml 0,1,2,8,9 "0 3"
run "" matrix -n 2 -c "$calls" "built in, 2 processes"
run "" matrix -n 5 -t -c "$calls" "built in, 5 threads"
run "" matrix -n 4 -c 100 -r -b 64 "built in, 4 processes, registered memory"
run "" matrix -n 4 -s 2 -c 140 "built in, 2 servers"
run "" matrix -n 3 -d "$work/dgx1v" -c "$calls" -b 1024 "dgx1v"
run "" matrix -n 5 -d "$work/two" -c 100 -b 4096 "two-dgx1v, one server"
run "" matrix -n 5 -d "$work/two" -c 100 -s 2 "two-dgx1v, two servers"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 4 --collectives all -o "$work/index" || not_ok "batch: exit $?"
run "" matrix -d "$work/index" -g 5,1,4,7 -c 100 "an index, GPUs 5,1,4,7"
"$blinkc" batch -q topologies/dgx1v.xml --sizes 4 --distinct --collectives all -o "$work/shapes" ||
	not_ok "batch: exit $?"
run "" matrix -d "$work/shapes" -g 6,5,1,4 -c 100 "an index of shapes, GPUs 6,5,1,4"
if [ "$full" ]; then
	for n in 1 3 4 6 7 8 16; do run "" matrix -n $n -c 400 -m 10007 -S $n "built in, $n processes"; done
	for n in 2 3 8; do run "" matrix -n $n -t -c 276 -m 40001 -S $n "built in, $n threads"; done
	run "" matrix -n 8 -s 3 -c 276 -m 10007 "built in, 3 servers"
	run "" matrix -n 4 -s 4 -c 276 -m 40001 "built in, 4 servers"
	run "" matrix -n 3 -c 60 -m 131072 -S 9 "built in, large"
	schedules dgx1v-8 dgx1v.xml 0-7 "0 7"
	schedules dgx2 dgx2.xml 0-15 3
	schedules onehop dgx2.xml 0-4 1 --algorithm onehop
	schedules mi250 mi250.xml 0-7 5
	schedules hybrid dgx1v.xml 0,1,4 "0 2" --hybrid
	schedules two-8 two-dgx1v.xml 1,3,5,7,8,9,10,11 6
	run "" matrix -n 8 -d "$work/dgx1v-8" -c 276 -m 10007 -b 4096 "dgx1v, 8 ranks"
	run "" matrix -n 16 -d "$work/dgx2" -c 276 -m 1025 -b 512 "dgx2, 16 ranks"
	run "" matrix -n 5 -d "$work/onehop" -c 276 -m 10007 "dgx2, one hop"
	run "" matrix -n 8 -d "$work/mi250" -c 276 -m 10007 "mi250, 8 ranks"
	run "" matrix -n 3 -d "$work/hybrid" -c 276 -m 131072 "dgx1v, hybrid"
	run "" matrix -n 8 -d "$work/two-8" -c 200 -m 10007 -s 2 "two-dgx1v, 8 ranks, two servers"
	run "" matrix -n 8 -d "$work/two-8" -c 100 -m 10007 -t -r -b 512 "two-dgx1v, 8 threads, registered memory"
	run tsan/ matrix -n 3 -t -d "$work/dgx1v" -c 100 -b 1024 "dgx1v, threads"
	run tsan/ matrix -n 4 -t -c 276 "built in, threads"
	run tsan/ matrix -n 4 -t -c 60 -r -b 64 "registered memory, threads"
	run tsan/ matrix -n 4 -s 2 -c 60 "built in, 2 servers"
fi
if [ "$full" ]; then
	run asan/ matrix -n 3 -d "$work/dgx1v" -c 276 -b 1024 "dgx1v"
	run asan/ matrix -n 4 -s 2 -c 100 "built in, 2 servers"
	run asan/ matrix -n 4 -t -c 100 -r -b 64 "registered memory"
fi

# ---- registered memory ----

run "" windows -n 3
run "" windows -n 3 -t
if [ "$full" ]; then
	run "" windows -n 4 -s 2
	run "" windows -n 8 many crossed
	run "" windows -n 2 -k 10000 again
fi
if [ "$full" ]; then
	run asan/ windows -n 3 -k 1000
	run asan/ windows -n 3 -t -k 1000
fi
[ ! "$full" ] || run tsan/ windows -n 3 -t

# ---- order ----

run "" order -n 4 -k "$([ "$full" ] && echo 1000 || echo 200)"
run "" order -n 3 -t -k "$([ "$full" ] && echo 300 || echo 100)"
# Small calls by trees, too: they have places of their own in the arena.
BLINK_SMALL=0 run "" order -n 4 -k 200 stream ahead waited
for n in 2 ${full:+3 4} 5; do run "" order -n $n -t same_bits; done
run "" order -n 2 -s 2 same_bits
run "" order -n 5 -s 2 same_bits
run "" order -n 3 -s 2 messages messages_differ refused
run "" order -n 5 -s 2 uneven uneven_differs
BLINK_SCHEDULES=$work/dgx1v/alltoall.json run "" order -n 3 uneven
BLINK_SMALL=0 run "" order -n 4 uneven
if [ "$full" ]; then
	run "" order -n 4 -k 10000 stream
	if [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 8 ]; then
		run "" order -n 2 huge
	else
		skip "more than 2^31 elements: needs 8 GiB"
	fi
	run "" order -n 8 -S 2 several splits messages groups leaving
	run "" order -n 4 -s 2 -S 3 stream several splits messages groups aborted leaving
fi
[ ! "$full" ] || run asan/ order -n 3 -k 300
[ ! "$full" ] || run tsan/ order -n 4 -t -k 300

# ---- faults ----

if [ ! "$full" ]; then
	run "" faults -n 3 -d "$work/dgx1v" killed stopped leaves "larger count" "other collective" "same rank twice" \
		"never comes" "other shared memory" "other schedules" "refused at init" "few files"
	run "" faults -r 4
else
	run "" faults -n 3 -d "$work/dgx1v"
	run "" faults -n 4
	run "" faults -n 4 -s 2
	run "" faults -n 2 killed stopped exits leaves
	run "" faults -r 60 -S 2
	run "" faults -r 40 -s 2 -S 3
fi
[ ! "$full" ] || run asan/ faults -n 3 killed stopped leaves "larger count" "other collective" \
	"same rank twice" strangers

# ---- strangers ----

run "" flood
[ ! "$full" ] || run asan/ flood

# ---- UCX between servers ----

why=$("$build/tests/net_pair" kinds | sed -n 's/^ucx: //p')
if [ "$why" ]; then
	skip "UCX: $why"
else
	export BLINK_NET=ucx UCX_TLS=tcp
	run "" matrix -n 4 -s 2 -c 60 "built in, 2 servers, UCX"
	if [ ! "$full" ]; then
		run "" faults -n 3 -s 2 killed
	else
		run "" matrix -n 4 -s 2 -c 140 -S 2 "built in, 2 servers, UCX, more"
		run "" matrix -n 8 -s 4 -c 276 -m 40001 "built in, 4 servers, UCX"
		run "" order -n 4 -s 2 -S 3 stream several splits messages groups aborted leaving
		run "" faults -n 4 -s 2
		run asan/ matrix -n 4 -s 2 -c 100 "built in, 2 servers, UCX"
		UCX_TLS=all run "" matrix -n 4 -s 2 -c 140 "built in, 2 servers, UCX with shared memory"
	fi
	[ ! "$full" ] || run tsan/ matrix -n 4 -s 2 -c 60 "built in, 2 servers, UCX"
	unset BLINK_NET UCX_TLS
fi

# launch ARGUMENTS SETTINGS...: a rank for each of these settings; what it prints is in $work/rank.N. False: one failed.
launch() {
	local arguments=$1 rank=0 settings pids=() code=0
	shift
	rm -rf "$work/meet"
	mkdir "$work/meet"
	for settings; do
		# shellcheck disable=SC2086 # lists
		env $settings timeout 60 "$build/tests/job/launched" $rank $# "$work/meet" $arguments \
			>"$work/rank.$rank" 2>&1 &
		pids+=($!)
		rank=$((rank + 1))
	done
	for rank in "${pids[@]}"; do wait "$rank" || code=1; done
	return $code
}

# same_reason NAME WANT SETTINGS...: each of three ranks ends with this line, which it found itself or heard from
# another
same_reason() {
	local want=$2 said
	! launch "check 1000" "${@:3}" || not_ok "$1: none failed"
	said=$(sed -E 's/^(init: [0-9]*: )rank [0-9]: BLINK/\1BLINK/' "$work"/rank.[012])
	if [ "$said" = "$want"$'\n'"$want"$'\n'"$want" ]; then ok "$1"; else not_ok "$1: $(cat "$work"/rank.[012])"; fi
}
same_reason "ranks with different networks" \
	"init: 13: BLINK_NET: rank 2 has ucx, rank 0 has tcp: want the same on all ranks" \
	"BLINK_HOST_ID=0 BLINK_NET=tcp" "BLINK_HOST_ID=1 BLINK_NET=auto" "BLINK_HOST_ID=2 BLINK_NET=ucx"

same_reason "a network that is none" 'init: 2: BLINK_NET: "foo": want auto, tcp or ucx' BLINK_NET=foo BLINK_NET=foo \
	BLINK_NET=foo

# ---- settings that have no effect ----

other=BLINK_SCHEDULES=$work/dgx1v/broadcast.r0.json
# warned SETTINGS: what rank 0 of three says of these, which it alone has, in $work/warned, without what is before each
warned() {
	rm -f "$work/log"
	launch "check 100000" "BLINK_DEBUG=WARN BLINK_DEBUG_FILE=$work/log $1" "${@:2}" ||
		not_ok "a job with settings of no effect: $(cat "$work"/rank.*)"
	sed 's/^[^ ]* \[0\] BLINK WARN //' "$work/log" >"$work/warned"
}
warned "BLINK_PORT=7 BLINK_BLOCKS=4 BLINK_NVLS=0 BLINK_GPU=gpu99 BLINK_MACHINE=zz BLINK_NET=tcp BLINK_TCP_ZEROCOPY=0 \
	BLINK_MIAD=0 BLINK_CHUNK=64K $other" "BLINK_CHUNK=64K $other" "BLINK_CHUNK=64K $other"
sed 's/^\(allreduce of\) .*\(broadcast.r0.json\)/\1 \2/' "$work/warned" | sort >"$work/got"
cat >"$work/want" <<END
BLINK_BLOCKS, BLINK_NVLS: no effect without BLINK_BACKEND=cuda
BLINK_GPU: no effect without an index in BLINK_SCHEDULES, or with a schedule file a PCI address
BLINK_MACHINE: no effect without an index in BLINK_SCHEDULES
BLINK_MIAD: no effect without buffers on the host, and chunks whose size is not set
BLINK_NET: no effect without ranks on several servers, or BLINK_SHM=0
BLINK_PORT: no such setting: libblink(3) has them all
BLINK_TCP_ZEROCOPY: no effect without TCP between ranks: several servers, or BLINK_SHM=0, and no other BLINK_NET
allreduce of broadcast.r0.json is for broadcast, root 0, over 3 ranks
END
expect "rank 0 names settings that are none or have no effect, and says why a schedule is not used" \
	diff "$work/want" "$work/got"
# unasked SETTINGS: what rank 0 says of these on standard error, without BLINK_DEBUG
unasked() {
	launch "check 100000" "BLINK_CHUNK=64K $1 $other" "BLINK_CHUNK=64K $other" "BLINK_CHUNK=64K $other" ||
		not_ok "a job with settings of no effect: $(cat "$work"/rank.*)"
	sed -n 's/^[^ ]* \[0\] BLINK WARN //; s/^\(allreduce of\) .*\(broadcast.r0.json\)/\1 \2/; /:\|^allreduce/p' \
		"$work/rank.0" | sort
}
expect "without BLINK_DEBUG, of what cannot have been meant" test \
	"$(unasked "BLINK_PORT=7 BLINK_BLOCKS=4 BLINK_GPU=gpu99 BLINK_NET=tcp")" = \
	"$(grep '^BLINK_[GP]\|^allreduce' "$work/want")"
expect "BLINK_DEBUG=NONE: of nothing" test "$(unasked "BLINK_DEBUG=NONE BLINK_PORT=7")" = ""
"$blinkc" batch -q topologies/dgx1v.xml -n 3 --distinct -o "$work/index" || not_ok "batch"
export BLINK_CHUNK=64K BLINK_TIMEOUT=5m BLINK_DEBUG=WARN BLINK_DEBUG_FILE=$work/otherwise
rm -f "$work/otherwise"
run "" matrix -n 3 -c 4 -b 1024 "a program that sets chunks and time-outs"
unset BLINK_CHUNK BLINK_TIMEOUT BLINK_DEBUG BLINK_DEBUG_FILE
expect "rank 0 names what the program sets otherwise, once" test "$(sed 's/.* WARN //' "$work/otherwise")" = \
	"BLINK_CHUNK, BLINK_TIMEOUT: no effect, as the program sets another value"
common="BLINK_SHM=0 BLINK_SCHEDULES=$work/index"
warned "BLINK_GPU=0 BLINK_MACHINE=dgx1v BLINK_NET=tcp BLINK_TCP_ZEROCOPY=0 BLINK_PIN=0 $common" "BLINK_GPU=1 $common" \
	"BLINK_GPU=2 $common"
expect "and none of those that have one" test "$(cat "$work/warned")" = ""
warned "BLINK_GPU=gpu99 $common" "BLINK_GPU=1 $common" "BLINK_GPU=2 $common"
expect "a GPU that the index has not" grep -q 'index has no GPU "gpu99" (rank 0)$' "$work/warned"
warned "BLINK_MACHINE=zz $common" "$common" "$common"
expect "a machine that is not the index's" grep -q 'as no index that was named is of machine zz$' "$work/warned"

# ---- sizes of chunks, sought while a job works ----

# tried ARGUMENTS: of that job, the chunk sizes that rank 0 and rank 2 have tried, in order, in $work/tried.N
tried() {
	rm -f "$work"/trace.*
	launch "$1" "${sought[@]}" || return 1
	for rank in 0 2; do
		sed -n 's/.*allreduce of [0-9]* bytes: chunks of \([0-9]*\) bytes took.*/\1/p' \
			"$work/trace.$rank" >"$work/tried.$rank"
	done
	cmp "$work/tried.0" "$work/tried.2"
}
sought=()
for rank in 0 1 2; do
	sought+=("BLINK_MIAD=$work/chunks.json BLINK_DEBUG=TRACE BLINK_DEBUG_FILE=$work/trace.$rank")
done
# A search takes 3 calls for each of 20 sizes at most. What rank 0 then writes is not sought again.
expect "BLINK_MIAD: all ranks try the same sizes" tried "rate 1000000 70"
chunk=$(oracle snippet --field "$work/chunks.json" '[c["chunk_bytes"] for c in d["chunks"] if
	(c["ranks"], c["servers"], c["collective"], c["log2_bytes"]) == (3, 1, "allreduce", 19)]')
if [ "$(sort -u "$work/tried.0" | wc -l)" -ge 3 ] && grep -qx "${chunk//[][]/}" "$work/tried.0"; then
	ok "BLINK_MIAD: one of several is kept"; else not_ok "BLINK_MIAD: $(cat "$work/tried.0"): kept: $chunk"; fi
cp "$work/chunks.json" "$work/chunks.before"
expect "BLINK_MIAD: a second job" tried "rate 1000000 5"
expect "BLINK_MIAD: it does not search again" [ ! -s "$work/tried.0" ]
expect "BLINK_MIAD: its file is as it was" cmp "$work/chunks.json" "$work/chunks.before"
# A split searches for itself; it does not keep what its parent was just trying.
rm "$work/chunks.json"
expect "BLINK_MIAD: a split of a job" tried "split 1000000"
expect "BLINK_MIAD: a split searches, too" [ "$(cat "$work/tried.0")" = $'16384\n16384' ]
echo '{' >"$work/chunks.json"
! launch "check 1000" "${sought[@]}" || not_ok "BLINK_MIAD: a file that is none: no rank failed"
if [ "$(cat "$work"/rank.[012] |
	grep -cE "^init: (3|11: rank [0-9]): BLINK_MIAD: rank 0: $work/chunks.json:2:1: ")" = 3 ]; then
	ok "BLINK_MIAD: a file that is none"; else not_ok \
		"BLINK_MIAD: a file that is none: $(cat "$work"/rank.[012])"; fi
same_reason "BLINK_MIAD: not on all ranks" \
	"init: 13: BLINK_MIAD: rank 1 does not search chunk sizes, rank 0 does: want the same on all ranks" \
	BLINK_MIAD=1 BLINK_MIAD=0 BLINK_MIAD=1

# ---- examples ----

flags=(-Wall -Wextra -Werror -Iruntime/include "-L$build" -lblink "-Wl,-rpath,$build")
if grep -q -- -fsanitize "$build/flags"; then
	skip "examples: $build is built under a sanitizer"
	exit 0
fi
expect "examples/job.c compiles" "${cc[@]}" -std=gnu11 examples/job.c -o "$work/job" "${flags[@]}"
# says NAME LINE COMMAND...: it succeeds and prints this line
says() {
	local name=$1 line=$2
	shift 2
	if timeout 60 "$@" >"$work/said" 2>&1 && [ "$(cat "$work/said")" = "$line" ]; then ok "$name"; else
		not_ok "$name: $(head -c 300 "$work/said")"
	fi
}
says "examples/job.c" "rank 0 of 4: sum 10, 0 wrong" "$work/job" 4
if ! command -v mpicc >/dev/null; then
	skip "examples/mpi.c: no mpicc"
	exit 0
fi
expect "examples/mpi.c compiles" mpicc examples/mpi.c -o "$work/mpi" "${flags[@]}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
says "examples/mpi.c" "rank 0 of 3: sum 6, 0 wrong" mpirun --oversubscribe -n 3 "$work/mpi"
