# blinkc advise: every set once, its class and rate as brute force and a batch have them; for people, programs and
# Slurm.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

v=topologies/dgx1v.xml
has() { if grep -qE -e "$2" "$work/out"; then ok "$1"; else not_ok "$1: no $2 in: $(head -c 300 "$work/out")"; fi; }

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
expect_exit "no such size" 2 "$blinkc" advise $v -n 9
expect_exit "no such part" 3 "$blinkc" advise $v -n 2 --without gpu0-gpu5
expect_exit "fewer GPUs than asked for" 3 "$blinkc" advise $v -n 8 --without gpu0
expect_exit "no such format" 2 "$blinkc" advise $v --format svg
expect_exit "too many sets" 4 "$blinkc" advise --synthetic "server:8 gpu:8 switch:300 net:25" -n 8
