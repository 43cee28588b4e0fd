# blinkc advise: every set once, its class and rate as brute force and a batch have them; for people, programs and
# Slurm.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

v=topologies/dgx1v.xml

expect "DGX-1V: 3 to 5 GPUs" oracle losses "$blinkc" advise $v --sizes 3-5
expect "DGX-1V: 2 to $([ "$full" ] && echo 8 || echo 3) GPUs, broadcast from the best root" \
	oracle losses "$blinkc" advise $v --sizes "2-$([ "$full" ] && echo 8 || echo 3)" -c broadcast
expect "DGX-1P: 4 GPUs" oracle losses "$blinkc" advise topologies/dgx1p.xml --sizes 4
if [ "$full" ]; then expect "DGX-1V: 6 to 8 GPUs" oracle losses "$blinkc" advise $v --sizes 6-8; fi

expect "a table" "$blinkc" advise $v -n 4
has "the machine" '^machine     dgx1v, 8 GPUs$'
has "sets and classes" '^sets        70 in 19 isomorphism classes; allreduce$'
has "the best sets" '^best        2 of 70 sets of 4 GPUs, 75 GB/s: 0-3 4-7$'
has "the worst sets" '^worst       14 of 70 sets of 4 GPUs, 6 GB/s: .* and 2 more$'
expect "all of them" "$blinkc" advise $v -n 4 -v
has "every worst set" '^worst       14 of 70 sets of 4 GPUs, 6 GB/s:( [0-9,-]+){14}$'
expect "several sizes" "$blinkc" advise $v -n 2-8
has "a size with one set" '^best        1 of 1 sets of 8 GPUs, 85.7143 GB/s: 0-7$'
has "rows that are left out" '^  \.\.\.   38 classes more: -v$'
expect "a file of sets" "$blinkc" advise $v -g <(printf '0-3\ngpu1,4-6\n1,4,7\n')
has "of its sets alone" '^sets        3 in 3 isomorphism classes; allreduce$'
expect "rings alone" "$blinkc" advise $v -n 4 -a ring -l nvlink
has "sets that have none" ' none +- +- +nvlink '
has "sets that the links do not connect" '^left out    14 sets that the links do not connect$'
expect "without a GPU and a link" "$blinkc" advise $v -n 7 --without gpu3
has "one set is left" '^best        1 of 1 sets of 7 GPUs, .* GB/s: 0-2,4-7$'
expect "one class of 16 GPUs behind a switch" "$blinkc" advise topologies/dgx2.xml -n 4
has "all sets are best" '^best        1820 of 1820 sets of 4 GPUs, .* and 1808 more$'
if grep -q '^worst' "$work/out"; then not_ok "a worst set among equal ones"; else ok "no worst set among equal ones"; fi

expect "links through a switch, for Slurm" "$blinkc" advise topologies/dgx2.xml -n 2 --format slurm
has "their number" '^NodeName=NODE Name=gpu File=/dev/nvidia0 Links=-1(,6){15}$'
expect "GPUs that are lost" "$blinkc" advise $v -n 2 --without gpu0 --format slurm
has "devices keep their numbers" '^NodeName=NODE Name=gpu File=/dev/nvidia1 Links=-1,2,1,0,2,0,0$'
has "a script takes them" '^export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1,2$'
expect "servers of a cluster" "$blinkc" advise topologies/two-dgx1v.xml -n 2 --format slurm
has "a node for each" '^NodeName=s1 Name=gpu File=/dev/nvidia7 Links=0,0,0,1,2,1,2,-1$'

"$blinkc" advise $v -n 4 -j 1 --format json >"$work/1.json" && "$blinkc" advise $v -n 4 -j 7 -o "$work/7.json"
expect "the same bytes with any number of processes" cmp "$work/1.json" "$work/7.json"
expect "its schema" oracle validate schemas/advise.schema.json "$work/1.json"
# ---- which GPU each rank of a job should have ----

# Pairs of two NVLinks; a loop of single ones that both groups of four take in half of their links each.
expect "a job" "$blinkc" advise --job examples/jobs/dgx1v.json
grep -q '^in order    128.8 ms, 2.000 times as long$' "$work/out" || not_ok "a job: in order: $(cat "$work/out")"
grep -q 'were looked at; no other is faster$' "$work/out" || not_ok "a job: not proven: $(cat "$work/out")"
gpus=$(sed -n 's/^job file    "gpus": "\(.*\)"$/\1/p' "$work/out")
sed "s/\"grid\"/\"gpus\": \"$gpus\", &/" examples/jobs/dgx1v.json >"$work/placed.json"
"$blinkc" job "$work/placed.json" >"$work/out" 2>&1
grep -q '^step        64.42 ms' "$work/out" || not_ok "a job: placed so: $(tail -3 "$work/out")"
expect "a job: JSON" "$blinkc" advise --job examples/jobs/dgx1v.json --format json -o "$work/job.json"
expect "a job: its schema" oracle validate schemas/placement.schema.json "$work/job.json"
expect "a job: the same bytes again" cmp "$work/job.json" \
	<(LC_ALL=C.UTF-8 "$blinkc" advise --job examples/jobs/dgx1v.json --format json)
# One of nine GPUs behind a switch has a slow link: eight ranks are told to leave it out.
printf '{ "format": "blink-job", "version": 1, "grid": { "dp": 4, "tp": 2 }, "phases": [ { "name": "step", "calls": [
	{ "groups": "dp", "collective": "allreduce", "bytes": 1048576 } ] } ] }\n' >"$work/eight.json"
"$blinkc" topology -q --synthetic "gpu:9 switch:100" -o "$work/nine.xml"
sed -i '/from="s0\/gpu3"/s/capacity="100"/capacity="10"/' "$work/nine.xml"
expect "a slow link" grep -q 'capacity="10"' "$work/nine.xml"
expect "a job of 8 of 9 GPUs" "$blinkc" advise --job "$work/eight.json" "$work/nine.xml"
grep -q '^job file    "gpus": "\([0-9],\)*3' "$work/out" && not_ok "a job of 8 of 9 GPUs: $(cat "$work/out")"
grep -q 'no other is faster$' "$work/out" || not_ok "a job of 8 of 9 GPUs: not proven: $(cat "$work/out")"
# Two servers of four: groups of four that the job deals out to both are put into one each.
printf '{ "format": "blink-job", "version": 1, "grid": { "tp": 4, "dp": 2 }, "phases": [ { "name": "step", "calls": [
	{ "groups": "tp", "collective": "allreduce", "bytes": 1048576 } ] } ] }\n' >"$work/eight.json"
expect "a job over two servers" "$blinkc" advise -q --job "$work/eight.json" topologies/two-dgx1v.xml
grep -q '^in order .* [1-9][0-9.]* times as long$' "$work/out" || not_ok "a job over two servers: $(cat "$work/out")"
expect_exit "a job: no such file" 8 "$blinkc" advise --job "$work/none.json"
expect_exit "a job and sizes of sets" 2 "$blinkc" advise --job examples/jobs/dgx1v.json -n 4
expect_exit "a job for Slurm" 2 "$blinkc" advise --job examples/jobs/dgx1v.json --format slurm
expect_exit "a job without a machine" 2 "$blinkc" advise --job "$work/eight.json"
expect_exit "a job over more ranks than GPUs" 3 "$blinkc" advise --job examples/jobs/mi250.json dgx1v
# Of jobs 10 and 86 no change of two ranks leads from those in order to the best.
expect "a placement that is found by branch and bound" oracle random_placement "$blinkc" 10 10
expect "another one" oracle random_placement "$blinkc" 86 86
# Of job 89 groups of one kind have ranks of different other groups.
expect "groups that are unlike" oracle random_placement "$blinkc" 89 89
# Behind one switch all placements are alike, and ports carry no more than ranks send: 2 x 3 / 4 of both messages of
# all 16, at 150 GB/s each.
cat >"$work/ports.json" <<'END'
{ "format": "blink-job", "version": 1, "topology": "dgx2", "grid": { "dp": 4, "tp": 4 }, "phases": [ { "name": "step",
  "calls": [ { "groups": "tp", "collective": "allreduce", "bytes": 100000000 },
    { "groups": "dp", "collective": "allreduce", "bytes": 50000000, "times": 2 } ] } ] }
END
expect "a job whose first placement is proven" "$blinkc" advise --job "$work/ports.json"
cp "$work/out" "$work/text"
expect "a job whose first placement is proven: its time" grep -q '^best        2 ms for all phases' "$work/text"
expect "a job whose first placement is proven: it says so" grep -q '^placements  1 was looked at; no other is faster$' \
	"$work/text"
# Of the 16 dies of an MI250 half of the links between modules are single: what is found first is 4 % slower.
cat >"$work/dies.json" <<'END'
{ "format": "blink-job", "version": 1, "topology": "mi250", "grid": { "dp": 4, "tp": 4 }, "phases": [ { "name": "step",
  "calls": [ { "groups": "tp", "collective": "allreduce", "bytes": 67108864, "times": 8 },
    { "groups": "dp", "collective": "allreduce", "bytes": 1073741824 } ] } ] }
END
expect "16 dies" "$blinkc" advise --job "$work/dies.json"
cp "$work/out" "$work/text"
expect "16 dies: the least time" grep -q '^best        21.47 ms for all phases' "$work/text"
expect "16 dies: it is proven" grep -q 'were looked at; no other is faster$' "$work/text"
gpus=$(sed -n 's/^job file    "gpus": "\(.*\)"$/\1/p' "$work/text")
sed "s/\"grid\"/\"gpus\": \"$gpus\", &/" "$work/dies.json" >"$work/placed.json"
expect "16 dies: placed so" "$blinkc" job "$work/placed.json"
grep -q '^  time        21.47 ms; bound 21.47 ms' "$work/out" || not_ok "16 dies: placed so: $(cat "$work/out")"
if [ "$full" ]; then
	expect "16 dies, three kinds of groups" "$blinkc" advise --job examples/jobs/mi250.json
	has "16 dies, three kinds of groups: it is proven" 'were looked at; no other is faster$'
fi
# Of job 1 some ranks of a group change places without any change of its blocks, and others do not.
expect "ranks of unequal blocks" oracle random_placement "$blinkc" 1 1
expect "random jobs, all placements" oracle random_placement "$blinkc" 18 "$([ "$full" ] && echo 60 || echo 22)"

expect_exit "no such size" 2 "$blinkc" advise $v -n 9
expect_exit "no such part" 3 "$blinkc" advise $v -n 2 --without gpu0-gpu5
expect_exit "fewer GPUs than asked for" 3 "$blinkc" advise $v -n 8 --without gpu0
expect_exit "no such format" 2 "$blinkc" advise $v --format svg
expect_exit "too many sets" 4 "$blinkc" advise --synthetic "server:8 gpu:8 switch:300 net:25" -n 8
