# blinkc job: the groups of a job planned at once, held against closed forms, linear programs and its own check.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# job NAME CALLS [MEMBER]: $work/NAME.json, of one phase
job() {
	printf '{ "format": "blink-job", "version": 1, %s "phases": [ { "name": "step", "calls": [ %s ] } ] }\n' \
		"${3:-}" "$2" >"$work/$1.json"
}

# plan NAME OPTION...: its bundle in $work/NAME, and its summary
plan() {
	local name=$1
	shift
	expect "$name: planned" "$blinkc" job "$work/$name.json" -o "$work/$name" --summary json "$@"
	cp "$work/out" "$work/$name.summary"
	expect "$name: check" "$blinkc" check -q "$work/$name"
}

# times NAME: "time bound" of each level, and what each alone takes, in us
times() {
	"$python" -c '
import json, sys
phase = json.load(open(sys.argv[1]))["phases"][0]
levels = ["%.9g %.9g" % (one["time"], one["bound"]) for one in phase["levels"]]
print(*levels, "%.9g" % phase["alone"])' "$work/$1.summary"
}

# same NAME WANT: those times
same() {
	local got
	got=$(times "$1")
	if [ "$got" = "$2" ]; then ok "$1: $2 us"; else not_ok "$1: $got us, want $2"; fi
}

# ---- the example, and what is written ----

expect "the example" "$blinkc" job examples/jobs/dgx1v.json -o "$work/example"
cp "$work/out" "$work/text"
expect "the example: check" "$blinkc" check "$work/example"
expect "schema of the job" oracle validate schemas/job.schema.json examples/jobs/dgx1v.json
expect "schema of phases" oracle validate schemas/phases.schema.json "$work/example/phases.json"
expect "schema of the index" oracle validate schemas/index.schema.json "$work/example/index.json"
expect "schema of schedules" oracle validate schemas/schedule.schema.json "$work"/example/*/*/*.json
(cd "$work" && LC_ALL=C.UTF-8 "$blinkc" job -q "$top/examples/jobs/dgx1v.json" -o again)
expect "the same bytes again" diff -r "$work/example" "$work/again"
expect "an index that shows a group's schedule" "$blinkc" show "$work/example" -g 0,2,4,6
expect "libblink executes it" "$perf" "$work/example/index.json" -g 0,2,4,6 -b 64K -e 64K -n 1 -w 0
# A rank has the same GPU in the communicator of each of its groups. Each is a server of its own: on one, short messages
# have built-in schedules.
mkdir "$work/ranks"
printf 'allreduce -1 65536 1 %s\n' "0 1 0 1 0 1 0 1" "0 0 1 1 2 2 3 3" >"$work/calls"
for rank in 0 1 2 3 4 5 6 7; do
	BLINK_HOST_ID=host$rank BLINK_SCHEDULES="$work/example" BLINK_DEBUG=INFO timeout 60 \
		"$build/tests/job/phase" $rank 8 "$work/ranks" "$work/calls" 1 >"$work/ranks/$rank" 2>&1 &
done
wait
cat "$work"/ranks/? >"$work/said"
for file in backward/dp-allreduce/0 backward/dp-allreduce/1 forward/tp-allreduce/3; do
	expect "a communicator split off has the schedule of its GPUs: $file" \
		grep -qF "allreduce of 0 to 9223372036854775807 bytes: $work/example/$file.json: trees" "$work/said"
done
# Of two servers each is the machine of an index of one.
mkdir "$work/servers"
printf 'allreduce -1 65536 1 %s\n' "0 0 0 0 1 1 1 1" >"$work/calls"
"$blinkc" topology -q --synthetic "gpu:4 mesh:50" -o "$work/mesh.xml" &&
	"$blinkc" batch -q "$work/mesh.xml" -n 4 --collectives allreduce -o "$work/four" || not_ok "a batch: exit $?"
for rank in 0 1 2 3 4 5 6 7; do
	BLINK_HOST_ID=host$rank BLINK_SCHEDULES="$work/four" BLINK_DEBUG=INFO timeout 60 \
		"$build/tests/job/phase" $rank 8 "$work/servers" "$work/calls" 1 >"$work/servers/$rank" 2>&1 &
done
wait
expect "each of two servers has the schedule of the index" [ "$(cat "$work"/servers/? |
	grep -cF "allreduce of 0 to 9223372036854775807 bytes: $work/four/")" = 8 ]
# 64 messages of 32 MiB over one NVLink of 25 GB/s each way.
expect "the time of the example" grep -q '^  time        85.9 ms; bound 85.9 ms, ratio 1.000$' "$work/text"
# Of two phases with the same schedules there is one file each.
expect "files" [ "$(find "$work/example" -name '*.json' | wc -l)" = 8 ]

# ---- closed forms ----

# Behind a switch an allreduce of M over n GPUs puts 2 (n - 1) / n x M on the port of each, a broadcast M, an alltoall
# (n - 1) / n x M; what groups of one GPU do adds up: ports have 300 GB/s.
grid='"topology": "dgx-a100", "grid": { "dp": 4, "tp": 2 },'
job ports '{ "groups": "tp", "collective": "allreduce", "bytes": 300000000 },
	{ "groups": "dp", "collective": "allreduce", "bytes": 600000000, "times": 2 }' "$grid"
plan ports
same ports "7000 7000 7000"
job more '{ "groups": "tp", "collective": "alltoall", "bytes": 600000000 },
	{ "groups": "dp", "collective": "reducescatter", "bytes": 400000000 },
	{ "groups": "dp-tp", "collective": "allgather", "bytes": 800000000 }' "$grid"
plan more
same more "4333.33333 4333.33333 4333.33333"
# Of two priorities the first has the links to itself, and both are done when all is sent.
job first '{ "groups": "tp", "collective": "allreduce", "bytes": 300000000 },
	{ "groups": "dp", "collective": "allreduce", "bytes": 600000000, "times": 2, "priority": 3 }' "$grid"
plan first
same first "1000 1000 7000 7000 7000"
# A ring of four: the broadcast takes the links that pairs leave idle where it can.
cat >"$work/ring.topo.json" <<'END'
{ "format": "blink-topology", "version": 1, "name": "ring", "nodes": [ { "id": "s", "gpus": [ { "id": "a" },
  { "id": "b" }, { "id": "c" }, { "id": "d" } ] } ],
  "links": [ { "from": "a", "to": "b", "class": "nvlink", "capacity": 10 },
    { "from": "b", "to": "c", "class": "nvlink", "capacity": 10 },
    { "from": "c", "to": "d", "class": "nvlink", "capacity": 10 },
    { "from": "d", "to": "a", "class": "nvlink", "capacity": 10 } ] }
END
job ring '{ "groups": "pairs", "collective": "allreduce", "bytes": 10000000 },
	{ "groups": "all", "collective": "broadcast", "bytes": 10000000 }' \
	'"topology": "ring.topo.json", "groups": { "pairs": [[0, 1], [2, 3]], "all": [[0, 1, 2, 3]] },'
plan ring
same ring "1500 1500 1500"
# Three links of 25 GB/s in a ring of six cut it into three parts, between which an allreduce has four messages.
"$python" - >"$work/six.topo.json" <<'END'
import json
links = [{"from": f"g{i}", "to": f"g{(i + 1) % 6}", "class": "nvlink", "capacity": capacity}
         for i, capacity in enumerate((75, 25, 25, 75, 75, 25))]
print(json.dumps({"format": "blink-topology", "version": 1, "name": "six", "links": links,
                  "nodes": [{"id": "s", "gpus": [{"id": f"g{i}"} for i in range(6)]}]}))
END
job six '{ "groups": "dp", "collective": "allreduce", "bytes": 37500000 }' \
	'"topology": "six.topo.json", "grid": { "dp": 6 },'
plan six
same six "1000 1000 1000"
# Groups of one rank send nothing.
job ones '{ "groups": "pp", "collective": "allreduce", "bytes": 1 }, { "groups": "tp", "collective": "allreduce",
	"bytes": 300000000 }' '"topology": "dgx-a100", "grid": { "pp": 1, "dp": 4, "tp": 2 },'
plan ones
same ones "1000 1000 1000"

# Bytes without a common divisor: the time is that of the largest sum over a port.
job uncommon '{ "groups": "tp", "collective": "allreduce", "bytes": 299999999 },
	{ "groups": "dp", "collective": "allreduce", "bytes": 600000001, "times": 2 }' "$grid"
plan uncommon
same uncommon "7000.00001 7000.00001 7000.00001"
# Groups that call the same in a later phase have the files of the earlier, others of that call their own.
cat >"$work/twice.json" <<'END'
{ "format": "blink-job", "version": 1, "topology": "dgx-a100", "groups": { "some": [[0, 1, 2], [3, 4]] }, "phases": [
  { "name": "a", "calls": [ { "groups": "some", "collective": "alltoall", "matrix": [[0, 1, 1, 0, 0], [1, 0, 1, 0, 0],
    [1, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]] } ] },
  { "name": "b", "calls": [ { "groups": "some", "collective": "alltoall", "matrix": [[0, 1, 1, 0, 0], [1, 0, 1, 0, 0],
    [1, 1, 0, 0, 0], [0, 0, 0, 0, 2], [0, 0, 0, 2, 0]] } ] } ] }
END
plan twice
expect "files of two phases" diff - <(cd "$work/twice" && find . -name '[0-9].json' | sort) <<'END'
./a/some-alltoall/0.json
./a/some-alltoall/1.json
./b/some-alltoall/1.json
END

# ---- alltoalls of unequal blocks ----

# Behind a switch who receives, or sends, most takes all the time: rank 0 of each group here gets 6/9 of what each rank
# has, 200 of 300 MB, from the others.
experts='"topology": "dgx-a100", "grid": { "dp": 2, "ep": 4 },'
job to '{ "groups": "ep", "collective": "alltoall", "bytes": 300000000, "skew": { "to": [6, 1, 1, 1] } }' "$experts"
plan to
same to "2000 2000 2000"
job from '{ "groups": "ep", "collective": "alltoall", "bytes": 300000000, "times": 2, "skew": {
	"from": [6, 1, 1, 1] } }' "$experts"
plan from
# It sends 4/4 x 6/9 x 4 of 300 MB, less its own block.
same from "4000 4000 4000"
# The same blocks as a matrix of a group, and with other groups at once.
rows='[[0, 600000, 0, 0], [0, 0, 0, 300000], [0, 0, 0, 0], [0, 300000, 0, 0]]'
job rows '{ "groups": "ep", "collective": "alltoall", "matrix": '"$rows"' },
	{ "groups": "dp", "collective": "allreduce", "bytes": 300000 }' "$experts"
plan rows
same rows "4 4 4"
expect "schema of a job with a matrix" oracle validate schemas/job.schema.json "$work/rows.json"
expect "schema of phases with a matrix" oracle validate schemas/phases.schema.json "$work/rows/phases.json"
# Of a matrix of all ranks each group has a part; a group of rank 7 and 0 sends 900 KB at most.
"$python" - >"$work/sent" <<'END'
rows = [[0] * 8 for _ in range(8)]
rows[0][7], rows[7][0], rows[1][6], rows[2][3], rows[6][1] = 900000, 300000, 600000, 10 ** 12, 1
print(rows)
END
job parts '{ "groups": "some", "collective": "alltoall", "matrix": '"$(cat "$work/sent")"' }' \
	'"topology": "dgx-a100", "groups": { "some": [[7, 0], [1, 6, 4]] },'
plan parts
same parts "3 3 3"
expect "parts of a matrix" diff - <(grep -h -A3 '"bytes": \[' "$work"/parts/step/some-alltoall/?.json |
	grep -o '[0-9][0-9, ]*\]') <<'END'
0, 300000]
900000, 0]
0, 600000, 0]
1, 0, 0]
0, 0, 0]
END
# One link, both ways: simulated without start-up times, as planned, and the latency of the link, 3.4 us.
echo '{ "kernel": { "call": 0, "step": 0, "at_once": 0, "reduce_by_link": 0, "packet_most": 0,
	"line_most": 0, "efficiency": { "nvlink": 1 }, "latency": { "nvlink": 0 } } }' >"$work/free.json"
job pair '{ "groups": "pair", "collective": "alltoall", "matrix": [[7, 25000000], [75000000, 9]], "times": 2 }' \
	'"topology": "dgx1v", "groups": { "pair": [[0, 1]] },'
plan pair
same pair "6000 6000 6000"
"$blinkc" simulate "$work/pair" --parameters "$work/free.json" --format json -o "$work/phase.json"
expect "a matrix is simulated as planned" grep -q '"time_ps": 6003400000,' "$work/phase.json"
expect "the example of experts" "$blinkc" job examples/jobs/moe-dgx1v.json -o "$work/moe"
cp "$work/out" "$work/text"
expect "the example of experts: at its bound" [ "$(grep -c '^  time        1.342 ms; bound 1.342 ms, ratio 1.000$' \
	"$work/text")" = 2 ]
expect "the example of experts: check" "$blinkc" check -q "$work/moe"
sed 's/"by_matrix": true,//' "$work/moe/phases.json" >"$work/moe/equal.json"
expect_exit "the example of experts, as if blocks were equal" 6 "$blinkc" check "$work/moe/equal.json"
sed 's/"bytes": 671[0-9]*/"bytes": 67000000/' "$work/moe/phases.json" >"$work/moe/less.json"
expect_exit "the example of experts, another message" 3 "$blinkc" check "$work/moe/less.json"
sed 's/"matrix": {/"matrices": {/' "$work/moe/dispatch/ep-alltoall/0.json" >"$work/plain.json"
cp "$work/plain.json" "$work/moe/dispatch/ep-alltoall/0.json"
expect_exit "a schedule without its matrix" 3 "$blinkc" check "$work/moe/phases.json"

# ---- grids ----

# ranks NAME: of the groups of each call
ranks() {
	"$python" -c '
import json, sys
for call in json.load(open(sys.argv[1]))["phases"][0]["calls"]:
    groups = [",".join(map(str, one["ranks"])) for one in call["schedules"]]
    print(call["groups"], *groups)' "$work/$1/phases.json"
}
all=$(printf '{ "groups": "%s", "collective": "allreduce", "bytes": 1024 }, ' tp dp pp tp-dp)
all=${all%, }
job mesh "$all" '"topology": "dgx1v", "grid": { "pp": 2, "dp": 2, "tp": 2 },'
plan mesh
job megatron "$all" '"topology": "dgx1v", "grid": { "pp": 2, "dp": 2, "tp": 2 }, "order": "dp-tp-pp",'
plan megatron
expect "a grid, the last dimension first" diff - <(ranks mesh) <<'END'
tp 0,1 2,3 4,5 6,7
dp 0,2 1,3 4,6 5,7
pp 0,4 1,5 2,6 3,7
tp-dp 0,1,2,3 4,5,6,7
END
expect "a grid in an order" diff - <(ranks megatron) <<'END'
tp 0,2 1,3 4,6 5,7
dp 0,1 2,3 4,5 6,7
pp 0,4 1,5 2,6 3,7
tp-dp 0,1,2,3 4,5,6,7
END

# ---- large machines ----

# Symmetries plan few of the groups; with GPUs in any order, by lists, there are none, and the times are the same.
"$blinkc" topology -q dgx-h100 --servers 4 --rails -o "$work/four.xml"
job rails '{ "groups": "tp", "collective": "allreduce", "bytes": 67108864, "times": 16 },
	{ "groups": "dp", "collective": "reducescatter", "bytes": 1073741824 },
	{ "groups": "tp-dp", "collective": "alltoall", "bytes": 67108864 }' '"grid": { "dp": 4, "tp": 8 },'
plan rails --topology "$work/four.xml"
"$python" - "$work/rails.json" "$work/lists.json" <<'END'
import json, random, sys
job = json.load(open(sys.argv[1]))
order = list(range(32))
random.Random(1).shuffle(order)
place = {gpu: rank for rank, gpu in enumerate(order)}
job["gpus"] = ",".join(map(str, order))
kinds = {"tp": [range(s * 8, s * 8 + 8) for s in range(4)], "dp": [range(r, 32, 8) for r in range(8)],
         "all": [range(32)]}
job["groups"] = {name: [[place[gpu] for gpu in group] for group in groups] for name, groups in kinds.items()}
del job["grid"]
job["phases"][0]["calls"][2]["groups"] = "all"
json.dump(job, open(sys.argv[2], "w"))
END
plan lists --topology "$work/four.xml"
expect "ranks in another order" [ "$(times rails)" = "$(times lists)" ]
# With a NIC lost, groups that each take the nearest other one are slower than all together.
plan rails --topology "$work/four.xml" --without nic:s1/mlx5_3
read -r time bound alone <<<"$(times rails)"
if [ "$time" = "$bound" ] && "$python" -c "exit(not $alone > 1.3 * $time)"; then ok "a NIC lost: $alone, $time us"; else
	not_ok "a NIC lost: time $time, bound $bound, alone $alone us"; fi

# Groups planned alone, and rings, have their own times and the same bound.
cp examples/jobs/mi250.json "$work/kinds.json"
plan kinds
want=$(times kinds)
for kind in alone rings; do
	plan kinds --schedules $kind
	if [ "$(times kinds)" = "${want##* } ${want#* }" ]; then ok "schedules $kind: $(times kinds) us"; else
		not_ok "schedules $kind: $(times kinds), together $want"; fi
done
job six '{ "groups": "dp", "collective": "allreduce", "bytes": 1048576 }' \
	'"topology": "dgx1v", "gpus": "0-2,5-7", "grid": { "dp": 3, "tp": 2 },'
expect_exit "rings that there are not" 5 "$blinkc" job "$work/six.json" --schedules rings
expect_exit "no such schedules" 2 "$blinkc" job examples/jobs/dgx1v.json --schedules best

# ---- simulated ----

# A phase of one schedule takes what the schedule takes, to the ps.
job whole '{ "groups": "dp", "collective": "allreduce", "bytes": 67108864 }' '"topology": "dgx1v", "grid": { "dp": 8 },'
plan whole
expect "a phase of one schedule" "$blinkc" simulate "$work/whole" --chunk 1M --format json -o "$work/phase.json"
expect "its schedule" "$blinkc" simulate "$work/whole/step/dp-allreduce/0.json" --size 64M --chunk 1M --format json \
	-o "$work/one.json"
expect "schema of simulated phases" oracle validate schemas/phase-simulation.schema.json "$work/phase.json"
ps_of() { grep -o -m 1 '"time_ps": [0-9]*' "$1"; }
if [ "$(ps_of "$work/phase.json")" = "$(ps_of "$work/one.json")" ]; then ok "as long"; else
	not_ok "a phase $(ps_of "$work/phase.json"), its schedule $(ps_of "$work/one.json")"; fi

# simulated NAME OPTION...: of each call its beginning, end and time by itself, in us, the link's latency of 3 us aside
simulated() {
	"$blinkc" simulate "$work/$1" --parameters "$work/free.json" --format json -o "$work/phase.json" "${@:2}"
	"$python" -c '
import json, sys
for call in json.load(open(sys.argv[1]))["phases"][0]["calls"]:
    print(*(round(call[at] / 1e7) * 10 for at in ("begin_ps", "end_ps", "alone_ps")))' "$work/phase.json"
}
# Two broadcasts of 25 and 75 MB over one link of 25 GB/s, without start-up times: 4 ms, in shares of their bytes; the
# second alone takes 3. Where it begins after 10 ms it is alone, and where it begins after 0.5 ms it shares the link
# until the first has had its 25 MB: 0.5 ms at 25 GB/s, then 12.5 MB at a quarter of it, 2 ms.
call='{ "groups": "pair", "collective": "broadcast", "root": 0, "bytes"'
job two "$call: 25000000 }, $call: 75000000 }" '"topology": "dgx1v", "groups": { "pair": [[0, 1]] },'
plan two
expect "two calls that share a link" diff <(simulated two) <(printf '0 4000 1000\n0 4000 3000\n')
expect "one after the other" diff <(simulated two --offset 0,10ms) <(printf '0 1000 1000\n10000 13000 3000\n')
expect "one begins later" diff <(simulated two --offset 0,0.5ms) <(printf '0 2500 1000\n500 4000 3000\n')
expect "a trace" "$blinkc" simulate "$work/two" --trace "$work/trace.json"
expect "a trace: groups have names" grep -q '"name": "pair broadcast 0, 0 -> 1 chunk 0"' "$work/trace.json"
expect "of the example a phase" "$blinkc" simulate "$work/example" --phase backward
expect_exit "no such phase" 2 "$blinkc" simulate "$work/example" --phase sideways
expect_exit "a trace of two phases" 2 "$blinkc" simulate "$work/example" --trace "$work/trace.json"
expect_exit "two offsets for one call" 2 "$blinkc" simulate "$work/whole" --offset 0,1ms
expect_exit "one offset for two calls" 2 "$blinkc" simulate "$work/two" --offset 0
expect_exit "an offset without a unit" 2 "$blinkc" simulate "$work/two" --offset 0,5
expect_exit "a size of phases" 2 "$blinkc" simulate "$work/two" --size 1M
expect_exit "an offset of a schedule" 2 "$blinkc" simulate "$work/whole/step/dp-allreduce/0.json" --offset 0
expect_exit "CSV of phases" 2 "$blinkc" simulate "$work/two" --format csv

# ---- linear programs ----

expect "random jobs" oracle random_job "$blinkc" 1 "$([ "$full" ] && echo 300 || echo 12)"

# ---- what is not right is found ----

# wrong NAME CODE EDIT: phases.json with an edit of sed
wrong() {
	sed "$3" "$work/example/phases.json" >"$work/example/wrong.json"
	if cmp -s "$work/example/phases.json" "$work/example/wrong.json"; then not_ok "$1: $3 changes nothing"; else
		expect_exit "$1" "$2" "$blinkc" check "$work/example/wrong.json"; fi
}
wrong "another time" 6 's/"time": 85899.34592/"time": 85899.345/'
wrong "another bound" 6 's/"bound": 85899.34592/"bound": 85999.34592/'
wrong "other prices" 6 's/\[1, 1, 0/[1, 1, 1/'
wrong "more bytes" 6 's/"bytes": 1073741824/"bytes": 8589934592/'
wrong "times" 6 's/"times": 64/"times": 65/'
wrong "bytes that overflow" 4 's/"bytes": 1073741824/"bytes": 9007199254740992/; s/"times": 1,/"times": 2,/'
wrong "a faster link" 3 's/"capacity": 25,/"capacity": 26,/'
wrong "another group" 3 's/"ranks": \[0, 1\]/"ranks": [1, 0]/'
wrong "another collective" 3 's/"collective": "allreduce"/"collective": "allgather"/'
wrong "a file of another group" 3 's/allreduce\/0.json/allreduce\/1.json/'
wrong "a file elsewhere" 3 's/"file": "/"file": "..\//'
wrong "a rank twice" 3 's/"ranks": \[2, 3\]/"ranks": [1, 3]/'
wrong "a price too few" 3 's/\[1, 1, 0/[1, 1/'
wrong "a price that is too high" 3 's/\[1, 1, 0/[17592186044416, 1, 0/'
wrong "no such file" 3 's/allreduce\/0.json/allreduce\/9.json/'

# refused MESSAGE EDIT: of the example
refused() {
	sed "$2" examples/jobs/dgx1v.json >"$work/bad.json"
	expect_exit "refused: $1" "${3:-3}" "$blinkc" job "$work/bad.json" -o "$work/none"
	grep -qF -- "$1" "$work/err" || not_ok "refused: $1: $(cat "$work/err")"
	[ ! -e "$work/none" ] || not_ok "refused: $1: there is a directory"
}
refused 'format: "blink-jobs": want "blink-job"' 's/"blink-job"/"blink-jobs"/'
refused "grid.tp: 0: want a whole number, 1 to 65536" 's/"tp": 2 }/"tp": 0 }/'
refused "grid.tp: more than 65536 ranks" 's/"tp": 2 }/"tp": 65536 }/' 4
refused "groups are over 16 ranks: the job has 8 GPUs" 's/"tp": 2 }/"tp": 4 }/'
refused "grid.t p: the name of a dimension" 's/"tp": 2 }/"t p": 2 }/'
refused 'phases[0].calls[0].groups: "ep": want a dimension of the grid' 's/"groups": "tp"/"groups": "ep"/'
refused 'phases[0].calls[0].bytes: 0: want a whole number, 1 to' 's/"bytes": 33554432/"bytes": 0/'
refused 'phases[0].calls[0].bytes: 1.5: want' 's/"bytes": 33554432/"bytes": 1.5/'
refused "9007199254740992 bytes 64 times: want at most 9007199254740992 together" \
	's/33554432, "times": 64/9007199254740992, "times": 64/' 4
refused 'phases[0].calls[0].collective: "allreduces": want a collective' 's/"allreduce"/"allreduces"/'
refused 'phases[1].name: "forward": want a name that no phase before it has' 's/"backward"/"forward"/'
refused 'phases[0].name: "../x": want letters' 's/"forward"/"..\/x"/'
refused "groups.odd[1][0]: 1: given twice: want each rank in one group" \
	's/"grid"/"groups": { "odd": [[0, 1], [1, 2]] }, "grid"/; s/"groups": "tp"/"groups": "odd"/'
refused "groups.odd[0][1]: 8: want a whole number, 0 to 7" \
	's/"grid"/"groups": { "odd": [[0, 8]] }, "grid"/; s/"groups": "tp"/"groups": "odd"/'
refused "groups.odd[0]: an array: want a list of two ranks or more" \
	's/"grid"/"groups": { "odd": [[0]] }, "grid"/; s/"groups": "tp"/"groups": "odd"/'
refused "groups.tp: a dimension of the grid has this name" 's/"grid"/"groups": { "tp": [[0, 1]] }, "grid"/'
refused "phases[1].calls[0].skew: want it with an alltoall alone" 's/"times": 64/"skew": { "to": [1, 2] }/'
ep='s/"groups": "dp", "collective": "allreduce", "bytes": 1073741824/"groups": "dp", "collective": "alltoall", '
refused "calls[1].matrix: bytes beside it: want the matrix alone" "$ep"'"bytes": 1, "matrix": [[0]]/'
refused "calls[1].matrix: want a row for each rank of a group, 4 of 4 numbers, or for each rank of the job, 8" \
	"$ep"'"matrix": [[0, 1], [1, 0]]/'
refused "calls[1].matrix[1]: want an array of 4 numbers" "$ep"'"matrix": [[0, 1, 2, 3], [1], [1], [1]]/'
refused "calls[1].matrix[0][1]: -1: want a whole number" "$ep"'"matrix": [[0, -1, 2, 3], [1], [1], [1]]/'
refused "no bytes between the ranks of a group: want some in each" \
	"$ep"'"bytes": 1, "skew": { "to": [1, 1, 1, 1] }/'
refused "4500000000000000 bytes between the ranks of a group, 3 times: want at most" \
	"$ep"'"times": 3, "bytes": 1500000000000000, "skew": { "to": [1, 1, 1, 1] }/' 4
refused "calls[1].skew: 9007199254740992 bytes of each of 4 ranks: want at most 9007199254740992 together" \
	"$ep"'"bytes": 9007199254740992, "skew": { "to": [1, 1, 1, 1] }/' 4
refused "calls[1].matrix: groups of unlike sizes: want a row for each rank of the job, 8 of 8 numbers" \
	"s/\"grid\"/\"groups\": { \"odd\": [[0, 1, 2], [3, 4]] }, &/; s/\"groups\": \"dp\"/\"groups\": \"odd\"/; "\
's/"allreduce", "bytes": 1073741824/"alltoall", "matrix": [[0, 1], [1, 0]]/'
refused "calls[1].skew.to: want a whole number for each rank of a group, 4" \
	"$ep"'"bytes": 64, "skew": { "to": [1, 1] }/'
refused "calls[1].skew.to: all are 0: want some" "$ep"'"bytes": 64, "skew": { "to": [0, 0, 0, 0] }/'
refused "calls[1].skew.too: unknown member" "$ep"'"bytes": 64, "skew": { "too": [0, 0, 0, 0] }/'
refused 'order: "tp": want each dimension of the grid once' 's/"grid"/"order": "tp", "grid"/'
refused "topology: missing: want it there, or --topology" 's/"topology": "dgx1v",//' 2
refused "gpus: \"8\": dgx1v has no such GPU" 's/"grid"/"gpus": "0-6,8", "grid"/'
refused "more: unknown member" 's/"grid"/"more": 1, "grid"/'
call='{ "groups": "tp", "collective": "allreduce", "bytes": 1 }'
job many "$(printf "$call, %.0s" 1 2 3 4 5 6 7 8)$call" "$grid"
expect_exit "nine calls of a rank at once" 4 "$blinkc" job "$work/many.json"
expect "nine calls: the message" grep -q "calls\[8\]: rank 0 is in more than 8 calls at once" "$work/err"
job apart '{ "groups": "odd", "collective": "allreduce", "bytes": 1 }' '"topology": "dgx-h100-nvls", "groups": { "odd":
	[[0, 1]] },'
expect_exit "switches that multicast" 3 "$blinkc" job "$work/apart.json"
for verb in compile check show simulate; do
	expect_exit "blinkc $verb of a job" 3 "$blinkc" $verb examples/jobs/dgx1v.json
	expect "blinkc $verb of a job: what to type" grep -q "blinkc job FILE" "$work/err"
done
