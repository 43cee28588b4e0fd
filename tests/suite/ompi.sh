# tune --format ompi-rules: the file, and Open MPI itself, which reads it: what ranks send to each other is what our
# schedules of the algorithms send (tests/ompi/traffic.py).
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

rules() { "$blinkc" tune -q --format ompi-rules "$@"; }

# ---- the file ----

net="server:8 gpu:1 net:12.5"
rules --synthetic "$net" --collectives allreduce --size 1K,1M -o "$work/rules"
is "of one collective and two sizes" "$(sed 's/ *#.*//; /^$/d' "$work/rules" | tr '\n' ';')" \
	"1;2;3;0;1;0 0 0 0;8;3;0 0 0 0;1 3 0 0;1048576 4 0 0;9;1;0 0 0 0;"
rules --synthetic "$net" --collectives allreduce --size 1K,1M >"$work/printed"
expect "to standard output" cmp "$work/rules" "$work/printed"
"$blinkc" tune --format ompi-rules --synthetic "$net" --collectives broadcast --size 16M -o "$work/one" 2>"$work/err"
expect "a line for each rule, with its segment" grep -qE '^broadcast +8 +16777216 .* [0-9]+  pipeline$' "$work/err"
segment=$(sed -n 's/^broadcast .* \([0-9]*\)  pipeline$/\1/p' "$work/err")
expect "the same in the file" grep -qx "1 3 0 $segment # pipeline" "$work/one"
# Between 2 and 4 ranks Open MPI chooses, and from 5 on.
printf '0,1\n0-2\n4-7\n0-4,6\n' >"$work/sets"
rules --synthetic "$net" -g "$work/sets" --collectives gather --size 1K -o "$work/sets.out"
is "ranks of several jobs" "$(sed -n 's/^\([0-9]*\) # ranks\( and more\)*$/\1/p' "$work/sets.out" | tr '\n' ' ')" \
	"0 2 3 4 5 6 7 "
rules topologies/dgx1v.xml -l nvlink --collectives allreduce --size 1G -o "$work/dgx1v"
expect "hops that links do not have: another algorithm" grep -q '# rabenseifner$' "$work/dgx1v"
printf '3,4,0,7\n' >"$work/ring"
rules topologies/dgx1v.xml -l nvlink -g "$work/ring" --collectives allgather --size 1G -o "$work/none" 2>"$work/err" ||
	status=$?
is "no algorithm with its hops" "$status $(grep -c 'Open MPI has no algorithm' "$work/err")" "5 1"
printf '0-3\n4-7\n' >"$work/two"
expect_exit "two sets of one size" 2 rules --synthetic "$net" -g "$work/two" -o "$work/x"
expect_exit "no such format" 2 "$blinkc" tune --synthetic "$net" --format rules -o "$work/x"
"$blinkc" tune -q --synthetic "$net" --collectives gather --size 1K --format json -o "$work/index.d"
expect "an index by name, in a directory with a dot" [ -f "$work/index.d/index.json" ]

# ---- Open MPI ----

if ! command -v mpirun >/dev/null || ! mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
	skip "Open MPI reads the rules: no mpirun of it: want openmpi-bin"
elif ! mpicc -O1 -o "$work/calls" tests/ompi/calls.c 2>"$work/err"; then
	skip "Open MPI reads the rules: no compiler of it: want libopenmpi-dev"
elif ! ompi_info 2>/dev/null | grep -q 'MCA pml: monitoring'; then
	skip "Open MPI reads the rules: no component monitoring, which counts what ranks send"
else
	root=$PWD
	(cd "$work" && "$python" -B "$root/tests/ompi/traffic.py" "$blinkc" "$work/calls" \
		${full:+8 6 4}) >"$work/tap" 2>&1 || tail -3 "$work/tap" | sed 's/^/# /'
	sed -n "s/^ok [0-9]* - /ok $suite: Open MPI: /p; s/^not ok [0-9]* - /not ok $suite: Open MPI: /p" "$work/tap"
	expect "Open MPI: all was looked at" grep -q '^1\.\.' "$work/tap"
fi
