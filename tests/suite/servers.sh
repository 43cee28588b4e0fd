# Jobs over several servers: all collectives over unequal fragments, a single GPU of a server, NICs of two speeds,
# oversubscribed leaves and rails without a spine; each at its bound, and in three phases; replayed, and executed on the
# host.
. tests/lib.sh

cat >"$work/speeds.json" <<'END'
{ "format": "blink-topology", "version": 1, "name": "two speeds",
  "nodes": [{ "id": "v", "file": "dgx1v.xml", "count": 2 }, { "id": "a", "file": "dgx-a100.xml" }],
  "fabrics": [{}] }
END
"$blinkc" topology --servers 4 topologies/dgx1v.xml --leaf 2 --oversubscription 4 --format cluster \
	-o "$work/leaves.json" || not_ok "leaves"
"$blinkc" topology --servers 3 topologies/dgx1v.xml --rails --format cluster -o "$work/rails.json" || not_ok "rails"

jobs() {	# NAME, TOPOLOGY, GPUs
	cat <<-END
	3+5_GPUs topologies/two-dgx1v.xml 0,1,2,11,12,13,14,15
	8+1_GPUs topologies/two-dgx1v.xml 0,1,2,3,4,5,6,7,13
	1+1_GPUs topologies/two-dgx1v.xml 2,8
	2+3+4_GPUs_at_two_speeds $work/speeds.json 0,1,8,9,10,16,17,18,19
	1+1+1_GPUs_at_two_speeds $work/speeds.json 3,12,20
	2+2+2+2_GPUs_oversubscribed $work/leaves.json 0,1,8,9,16,17,24,25
	3+2+1_GPUs_on_rails $work/rails.json 0,1,2,8,9,21
	END
}

bytes=$([ "$full" ] && echo 96K || echo 24K)
# right NAME TOPOLOGY OPTIONS...: compiles to $work/s.json, which is checked, replayed and executed; $work/err has the
# summary
right() {
	local name=$1
	shift
	if ! "$blinkc" "$@" -o "$work/s.json" 2>"$work/err"; then
		not_ok "$name: $(cat "$work/err")"
		return
	fi
	expect "$name, checked" "$blinkc" check -q "$work/s.json"
	expect "$name, replayed" oracle replay "$work/s.json"
	expect "$name, executed" "$perf" "$work/s.json" -b "$bytes" -e "$bytes" -n 1 -w 0
}

jobs_seen=0
while read -r name topology gpus; do
	jobs_seen=$((jobs_seen + 1))
	root=$(($(tr -cd , <<<"$gpus" | wc -c) / 2))
	# In the quick check each job has some: those that none has are others turned round.
	for c in broadcast reduce allreduce gather scatter allgather reducescatter alltoall; do
		case $full-$((jobs_seen % 2)):$c in
		1-* | -0:allreduce | -0:scatter | -1:broadcast | -1:allgather | -1:alltoall) ;;
		*) continue ;;
		esac
		options=(-c $c -g "$gpus")
		case $c in broadcast | reduce | gather | scatter) options+=(-r $root) ;; esac
		right "$name $c" "$topology" "${options[@]}"
		ratio=$(awk '/^ratio/ { print $2 }' "$work/err")
		if awk -v r="$ratio" 'BEGIN { exit !(r >= 0.9999) }'; then
			ok "$name $c: ratio $ratio"
		else
			not_ok "$name $c: ratio $ratio"
		fi
		case $full$c in 1* | allreduce | broadcast | alltoall) ;; *) continue ;; esac
		right "$name $c in three phases" "$topology" "${options[@]}" -a threephase
	done
done < <(jobs)

# Larger ones. An allreduce over 2048 ranks is executed by `make bench`, for it takes gigabytes.
for n in 2 ${full:+4 16}; do
	"$blinkc" topology --servers $n topologies/dgx-a100.xml --format cluster -o "$work/boxes.json" ||
		not_ok "$n x DGX A100"
	for c in allreduce ${full:+allgather broadcast}; do
		right "$n x DGX A100 $c" "$work/boxes.json" -c $c
	done
done
printf '{ "format": "blink-topology", "version": 1, "name": "dies",
  "nodes": [{ "id": "s", "file": "mi250.xml", "count": 2 }], "fabrics": [{}] }' >"$work/dies.json"
for c in allgather ${full:+allreduce}; do
	right "8 + 8 dies of MI250 $c" "$work/dies.json" -c $c -g 0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23
done
if [ "$full" ]; then
	right "2048 GPUs of ABCI broadcast" topologies/abci-2048.xml -c broadcast
	expect "2048 GPUs of ABCI allreduce" "$blinkc" -q topologies/abci-2048.xml -o "$work/s.json"
	expect "2048 GPUs of ABCI allreduce, checked" "$blinkc" check -q "$work/s.json"
fi

# Servers of unequal sizes and GPUs at two speeds, more than 32 together: trees for types of servers. At most one more
# than there are hubs for each GPU of a server of each size; with a switch too slow for them, other trees.
unequal() {	# NAME, TREES MORE THAN RANKS, OPTIONS...
	local name=$1 most=$2 c
	shift 2
	jobs_seen=$((jobs_seen + 1))
	for c in allreduce allgather reducescatter; do
		# One of both in the quick check.
		case $full-$((jobs_seen % 2)):$c in 1-* | -0:allreduce | -1:allgather) ;; *) continue ;; esac
		right "$name $c" "$@" -c $c --summary json
		if oracle snippet - "$work/err" "$most" <<'PY'; then ok \
			"$name $c: at the bound, few trees"; else not_ok "$name $c: $(cat "$work/err")"; fi
import json, sys
with open(sys.argv[1]) as file:
    told = json.load(file)
sys.exit(not told["bound_reached"] or told["trees"] > told["topology"]["ranks"] + int(sys.argv[2]))
PY
	done
}
boxes() { echo "server:$1 gpu:8 switch:${2:-300} net:25"; }
some=$(oracle snippet - <<'PY'
import random
draw = random.Random(8)
print(",".join(f"s{s}/gpu{g}" for s in range(8) for g in sorted(draw.sample(range(8), 4 + s % 5))))
PY
)
unequal "39 of 40 A100" 15 --synthetic "$(boxes 5)" --without s2/gpu3
unequal "8 servers of 4 to 8 A100" 30 --synthetic "$(boxes 8)" -g "$some"
nics="server:5 gpu:8 switch:300 nic:8@25 pcie:24"
unequal "39 of 40 A100 on rails" 30 --synthetic "$(boxes 5) rails" --without s2/gpu3
unequal "39 of 40 A100 with NICs" 15 --synthetic "$nics" --without s2/gpu3
unequal "39 of 40 A100 with NICs on rails" 30 --synthetic "$nics rails" --without s2/gpu3
unequal "40 A100 without a NIC" 20 --synthetic "$nics" --without nic:s2/nic3
unequal "8 servers of 4 to 8 A100 with NICs on rails" 60 --synthetic "${nics/5/8} rails" -g "$some"
oracle snippet - >"$work/speeds.json" <<'PY'
import json, sys
links = []
for s in range(5):
    for g in range(6 + s % 3):
        links.append({"from": f"s{s}/g{g}", "to": "net", "class": "net", "capacity": 50 if s == 1 and g > 3 else 25})
        links.append({"from": f"s{s}/g{g}", "to": f"s{s}/switch", "class": "nvlink", "capacity": 300})
nodes = [{"id": f"s{s}", "gpus": [{"id": f"s{s}/g{g}"} for g in range(6 + s % 3)], "switches": [{"id": f"s{s}/switch"}]}
         for s in range(5)]
json.dump({"format": "blink-topology", "version": 1, "name": "two speeds", "nodes": nodes, "switches": [{"id": "net"}],
           "links": links}, sys.stdout)
PY
c=allreduce
right "NICs of two speeds $c" "$work/speeds.json" -c $c
# Switches that the file has in no server, each server and GPU with a rate of its own.
oracle snippet - >"$work/stars.json" <<'PY'
import json, sys
links, nodes = [], []
for s in range(16):
    gpus = [f"s{s}g{g}" for g in range(4)]
    links += [{"from": gpu, "to": f"sw{s}", "class": "nvlink", "capacity": 23 + (5 * s + 3 * g) % 7}
              for g, gpu in enumerate(gpus)]
    links.append({"from": f"sw{s}", "to": "net", "class": "net", "capacity": 17 + s % 3})
    nodes.append({"id": f"s{s}", "gpus": [{"id": gpu} for gpu in gpus]})
switches = [{"id": "net"}] + [{"id": f"sw{s}"} for s in range(16)]
json.dump({"format": "blink-topology", "version": 1, "name": "stars", "nodes": nodes, "switches": switches,
           "links": links}, sys.stdout)
PY
unequal "switches of no server" 0 "$work/stars.json"
# Where a server's switch is too slow for such trees.
right "39 of 40 A100 behind slow switches $c" --synthetic "$(boxes 5 40)" --without s2/gpu3 -c $c
# Where the switches of large servers and the network limit the rate together: at the bound, by shallow trees.
shallow() {	# NAME, DEPTH, OPTIONS...; least: of the bound
	local name=$1 most=$2
	shift 2
	right "$name" "$@" --summary json
	if oracle snippet - "$work/err" "$most" "${least:-1}" <<'PY'; then ok "$name: depth $most"; else not_ok \
		"$name: $(cat "$work/err")"; fi
import json, sys
with open(sys.argv[1]) as file:
    told = json.load(file)
near = told["bound_reached"] or told["ratio"] >= float(sys.argv[3])
sys.exit(not near or told["depth"] > int(sys.argv[2]))
PY
}
racks() { echo "server:$1 gpu:$2 switch:900 net:50"; }
for job in "8 18" ${full:+"8 72" "16 36"}; do
	# shellcheck disable=SC2086
	shallow "$job, one lost, allgather" 3 --synthetic "$(racks $job)" --without s5/gpu3 -c allgather
	# shellcheck disable=SC2086
	least=0.9999 shallow "$job, one lost, allreduce" 6 --synthetic "$(racks $job)" --without s5/gpu3 -c allreduce \
		--max-depth 6
done
# An allreduce's trees, turned back: a server that lost an uplink limits each block of an allgather, but not these.
least=0.9995 shallow "6 servers, one of which lost a NIC, allreduce" 6 \
	--synthetic "server:6 gpu:8 switch:400 net:50" --without s1/gpu3-net -c allreduce
shallow "racks of 18 on rails, one lost, allgather" 4 --synthetic "$(racks 8 18) rails" --without s5/gpu3 -c allgather
if [ "$full" ]; then
	# More rails than files may have fabrics; both took minutes.
	least=0.9999 shallow "racks of 72 on rails, one lost, allreduce" 8 --synthetic "$(racks 8 72) rails" \
		--without s5/gpu3 -c allreduce
	# A server that lost four GPUs would be no hub, and send nothing.
	least=0.9999 shallow "24 racks of 36 on rails, a rail and a tray lost, allreduce" 6 \
		--synthetic "$(racks 24 36) rails" --without net/rail7,s3:4-7 -c allreduce
	# Nearly as many trees as a schedule may have.
	least=0.9993 shallow "28 racks of 72 on rails, allgather" 3 --synthetic "$(racks 28 72) rails" -c allgather
fi
# Trees at the bound, of which parts enter servers over different uplinks, would be too many.
for case in "17 allgather" ${full:+"24 reducescatter s5/gpu7"}; do
	read -r n c lost <<<"$case"
	least=0.999 shallow "$n racks of 72${lost:+, one lost}, $c" 3 --synthetic "$(racks "$n" 72)" \
		${lost:+--without "$lost"} -c "$c"
done
# Two servers are a cluster, too.
shallow "two racks of 36, one lost, allgather" 3 --synthetic "$(racks 2 36)" --without s1/gpu3 -c allgather
shallow "two racks of 36, one lost, allreduce" 6 --synthetic "$(racks 2 36)" --without s1/gpu3 -c allreduce
# What leaves a server is at the GPUs that send it on before it is at others.
least=0.9999 shallow "two racks of 36 on rails without a NIC, allreduce" 6 --synthetic "$(racks 2 36) rails" \
	--without s1/gpu3-net/rail3 -c allreduce
# A server that lost a part has less hubs, so that it sends to each other one as often as it has.
nic=s0/gpu0-net/rail0
for case in "8 8 s5:4-7" ${full:+"8 8 $nic" "12 10 $nic" "16 10 $nic"} \
	${full:+"8 8 s1/gpu3,s2/gpu4-net/rail4"}; do
	read -r n most lost <<<"$case"
	least=0.9995 shallow "$n racks of 18 on rails without $lost, allreduce" "$most" \
		--synthetic "$(racks "$n" 18) rails" --without "$lost" -c allreduce
done
shallow "racks of 36, three lost, reducescatter" 3 --synthetic "$(racks 4 36)" --without s1/gpu3,s2/gpu4,s2/gpu5 \
	-c reducescatter
# With at most N trees: of one way each no N trees have a higher rate than N times that of a way, up to where they are
# at the bound; a few more reach nearly all of it. Trees of one server that leads to all others are shallower.
few() {	# NAME, TREES, RATE AT LEAST (GB/s), DEPTH AT MOST, OPTIONS...
	local name="$1, at most $2 trees, depth $4" trees=$2 rate=$3 depth=$4
	shift 4
	right "$name" "$@" -c allreduce --max-trees "$trees" --summary json
	if oracle snippet - "$work/err" "$trees" "$rate" "$depth" <<'PY'; then ok "$name: $rate GB/s"; else not_ok \
		"$name: $(cat "$work/err")"; fi
import json, sys
with open(sys.argv[1]) as file:
    told = json.load(file)
trees, rate, depth = int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
sys.exit(told["trees"] > trees or told["rate_gb_per_s"] < rate * 0.999999 or told["depth"] > depth)
PY
}
lost="$(boxes 5)"
few "39 of 40 A100" 4 100 6 --synthetic "$lost" --without s2/gpu3
few "39 of 40 A100 on rails" 16 115 8 --synthetic "$lost rails" --without s2/gpu3
if [ "$full" ]; then
	few "39 of 40 A100" 1 25 6 --synthetic "$lost" --without s2/gpu3
	few "39 of 40 A100" 12 120 8 --synthetic "$lost" --without s2/gpu3
	few "39 of 40 A100" 32 121.875 8 --synthetic "$lost" --without s2/gpu3
	few "40 A100" 5 125 6 --synthetic "$lost"
	few "127 of 128 A100" 64 100 6 --synthetic "$(boxes 16)" --without s2/gpu3 --max-depth 6
	few "39 of 40 A100 on rails" 4 100 10 --synthetic "$lost rails" --without s2/gpu3
	few "8 servers of 4 to 8 A100 with NICs on rails" 32 69 40 --synthetic "${nics/5/8} rails" -g "$some"
fi
few "switches of no server" 8 9.35 14 "$work/stars.json"
few "NICs of two speeds" 16 115.384 8 "$work/speeds.json"
# What limits cost is said in the summary.
"$blinkc" --synthetic "$lost" --without s2/gpu3 --max-trees 4 -o "$work/s.json" 2>"$work/said"
expect "limits, said" grep -q "^limits      without them 121.875 GB/s by 52 trees, depth 4$" "$work/said"
"$blinkc" --synthetic "$lost" --without s2/gpu3 -o "$work/s.json" 2>"$work/said"
if grep -q "^limits" "$work/said"; then not_ok "limits, said without any"; else ok "limits, not said"; fi
# A NIC is lost: trees of its rail enter the server over another one.
right "128 A100 with NICs on rails without one, $c" --synthetic "${nics/5/16} rails" --without nic:s2/nic3 \
	-c allreduce --summary json
expect "128 A100 with NICs on rails without one, near the bound" oracle snippet - "$work/err" <<-'PY'
	import json, sys
	with open(sys.argv[1]) as file:
	    sys.exit(json.load(file)["ratio"] < 0.99)
PY
# limited SECONDS ARGUMENT...: blinkc, in so much time of a CPU, to $work/s.json; $work/err has the summary
limited() { (ulimit -t "$1" && exec "$blinkc" --summary json -o "$work/s.json" "${@:2}" 2>"$work/err"); }
# As many trees as GPUs: at the bound an allgather has some more.
for c in allgather ${full:+reducescatter}; do
	for line in ${full:+"$(boxes 32)"} "$(boxes 32) rails"; do
		expect "255 of $line, $c, 255 trees in 10 s of CPU" \
			limited 10 --synthetic "$line" --without s5/gpu3 -c $c --max-trees 255
		expect "255 of $line, $c, 255 trees, checked" "$blinkc" check -q "$work/s.json"
		expect "255 of $line, $c, 255 trees near the bound" oracle snippet - "$work/err" <<-'PY'
			import json, sys
			with open(sys.argv[1]) as file:
			    told = json.load(file)
			sys.exit(told["ratio"] < 0.97 or told["trees"] != 255 or told["depth"] > 3)
		PY
	done
done

# A rate that is hardly higher, by trees that take six times as long, is not worth it.
least=0.9999 shallow "13 servers of 16 on rails, three parts lost, allreduce" 6 \
	--synthetic "server:13 gpu:16 switch:450 net:25 rails" \
	--without s10/gpu3-net/rail3,s2/gpu3-net/rail3,s6/gpu4 -c allreduce

# From a root, and to one, below leaf switches that have less to the spine: each server has no room for a hop more.
leaves="server:$([ "$full" ] && echo 72 || echo 40) gpu:8 switch:150 nic:8@25 pcie:48 leaf:8 oversubscription:3"
for c in ${full:+broadcast} reduce; do
	expect "$leaves, $c in 10 s of CPU" limited 10 --synthetic "$leaves" --without s4/gpu4,s33/gpu0,s9/gpu2 -c $c
	expect "$leaves, $c, checked" "$blinkc" check -q "$work/s.json"
	expect "$leaves, $c, at the bound by few trees" oracle snippet - "$work/err" <<-'PY'
		import json, sys
		with open(sys.argv[1]) as file:
		    told = json.load(file)
		sys.exit(not told["bound_reached"] or told["trees"] > 14 or told["depth"] > 10)
	PY
done
if [ "$full" ]; then
	# The linear program took minutes, though greedy trees were near the bound.
	expect "${leaves/leaf:8/leaf:4}, in 60 s of CPU" limited 60 --synthetic "${leaves/leaf:8/leaf:4}" \
		--without s4/gpu4,s33/gpu0,s9/gpu2 -c broadcast
fi

# Servers of 4 to 8 GPUs, some of which share no rail, more than 512 GPUs: trees that enter each server once, not deep.
boxes=$(oracle snippet - <<'PY'
import random
draw = random.Random(1)
print(",".join(f"s{s}/gpu{g}" for s in range(96) for g in sorted(draw.sample(range(8), 4 + s % 5))))
PY
)
for case in "reduce 8 7" "allgather 4 20 rails" "broadcast 4 9" ${full:+"broadcast 8 9 rails" "allreduce 8 30 rails"} \
	${full:+"broadcast 4 10 rails" "reducescatter 4 15" "allreduce 4 6"}; do
	read -r c n_nics most on_rails <<<"$case"
	expect "576 GPUs of 96 servers, $case, in 15 s of CPU" limited 15 -g "$boxes" -c "$c" \
		--synthetic "server:96 gpu:8 switch:300 nic:$n_nics@25 pcie:24 $on_rails"
	expect "576 GPUs of 96 servers, $case, checked" "$blinkc" check -q "$work/s.json"
	expect "576 GPUs of 96 servers, $case, near the bound" oracle snippet - "$work/err" "$most" <<-'PY'
		import json, sys
		with open(sys.argv[1]) as file:
		    told = json.load(file)
		sys.exit(told["ratio"] < 0.992 or told["depth"] > int(sys.argv[2]))
	PY
done
# Their first 16: near the bound where the uplinks of a server fill evenly over its rails.
least=0.9998 shallow "96 GPUs of 16 servers on rails, allgather" 4 -g "${boxes%%,s16/*}" -c allgather \
	--synthetic "server:16 gpu:8 switch:300 nic:4@25 pcie:24 rails"
if [ "$full" ]; then
	for line in "$(boxes 128)" "$(boxes 128) rails" "${nics/5/128}"; do
		expect "1023 of $line, 64 trees in 10 s of CPU" \
			limited 10 --synthetic "$line" --without s5/gpu3 --max-trees 64
		expect "1023 of $line, 64 trees near the bound" oracle snippet - "$work/err" <<-'PY'
			import json, sys
			with open(sys.argv[1]) as file:
			    told = json.load(file)
			sys.exit(told["ratio"] < 0.999 or told["trees"] > 64 or told["depth"] > 10)
		PY
	done
	# At the bound they have more edges than a schedule may have: fewer trees, a little below it.
	for c in allreduce allgather; do
		expect "2047 of 2048 A100 $c in 60 s of CPU" \
			limited 60 --synthetic "$(boxes 256) rails" --without s5/gpu3 -c $c
		expect "2047 of 2048 A100 $c near the bound" oracle snippet - "$work/err" <<-'PY'
			import json, sys
			with open(sys.argv[1]) as file:
			    sys.exit(json.load(file)["ratio"] < 0.98)
		PY
	done
	for c in allreduce allgather; do
		for line in "$(boxes 128)" "$(boxes 128) rails" "${nics/5/128}" "${nics/5/128} rails"; do
			expect "1023 of $line $c in 60 s of CPU" \
				limited 60 --synthetic "$line" --without s5/gpu3 -c $c
			expect "1023 of $line $c, checked" "$blinkc" check -q "$work/s.json"
		done
	done
fi

# -v says which packers ran, in the order of their table, and which of them is kept.
oracle cluster 40 8 300 25 >"$work/t.json"
"$blinkc" -v -c broadcast "$work/t.json" -o /dev/null 2>"$work/err"
expect "-v: the packers that ran" oracle snippet - "$work/err" <<-'PY'
	import re, sys
	with open(sys.argv[1]) as file:
	    lines = [line for line in file if line.startswith("packer ")]
	ran = [re.fullmatch(r"packer ([\w, ]+): \S+ GB/s, \d+ trees, depth \d+, 64 MiB in \S+ us, \S+ of \S+ s: (.*)\n",
	                    line) for line in lines[:-1]]
	kept = re.fullmatch(r"packer ([\w, ]+) is kept; from .+\n", lines[-1]).group(1)
	names = [m.group(1) for m in ran]
	better = [m.group(1) for m in ran if m.group(2) != "not better"]
	sys.exit(names != ["rooted", "greedy"] or kept != better[-1]
	         or ran[0].group(2) != "the first")
PY
# Each way to plan has a line, and all lines together nearly the CPU time of the run.
told()
{
	expect "-v: $1" oracle snippet - "$blinkc" "$@" <<-'PY'
	import re, resource, subprocess, sys
	program, names, *words = sys.argv[1:]
	done = subprocess.run([program, *words, "-v", "-o", "/dev/null"], stderr=subprocess.PIPE, text=True, check=True)
	usage = resource.getrusage(resource.RUSAGE_CHILDREN)
	whole = usage.ru_utime + usage.ru_stime
	steps = re.findall(r"^(?!exchanges)(?:packer )?([a-z, ]+): (?:.*, )?([0-9.e-]+)(?: of [0-9.e-]+)? s(?:: .*)?$",
	                   done.stderr, re.M)
	took = sum(float(seconds) for _, seconds in steps)
	want = ["the machine, and its links", "symmetries and bound", *names.split("; "), "the rest of planning",
	        "the schedule, written, read and verified"]
	if [name for name, _ in steps] != want or not 0.7 * whole - 0.2 <= took <= 1.1 * whole + 0.1:
	    sys.exit(f"{took:.3f} of {whole:.3f} s: {steps}")
	PY
}
line="server:512 gpu:8 switch:300 net:25 rails"
told "shortest paths, one tree and its images; images of servers that lost nothing" \
	--synthetic "$line" --without s0/gpu3 -c allgather
told "shortest paths, one tree and its images; templates" --synthetic "$line" -c allgather
told "unequal servers; within limits, all trees of this depth; within limits, linear program" \
	--synthetic "server:9 gpu:4 switch:300 net:25" --without s0/gpu3 -c allreduce --max-depth 3
# This one takes long enough for the sum to tell.
told "templates; templates of paths; unequal servers; flows; trees into each rank" \
	--synthetic "torus:36x18@25 open:2" --without s5/gpu0 -c alltoall
# From a root to 33 to 64 GPUs few trees of five hops or more are at the bound; those of four take less time.
for job in "5 8" "8 8" "16 4"; do
	read -r servers gpus <<<"$job"
	for c in broadcast reduce; do
		"$blinkc" -c $c --synthetic "server:$servers gpu:$gpus switch:300 net:25" --summary json \
			-o "$work/s.json" 2>"$work/said"
		expect "$c, $servers servers of $gpus: at the bound, depth 4" oracle snippet - "$work/said" <<-'PY'
			import json, sys
			with open(sys.argv[1]) as file:
			    told = json.load(file)
			sys.exit(not told["bound_reached"] or told["depth"] > 4)
		PY
	done
done
# Less depth is not always less time: short parts of a message along deep trees take as long as all of it.
python3 "$top/tests/bench/irregular.py" asym256 1 >"$work/t.json"
"$blinkc" -q -c broadcast "$work/t.json" -o "$work/s.json"
expect "irregular directions: a few deeper trees in less time" oracle snippet - "$work/s.json" <<-'PY'
	import json, sys
	with open(sys.argv[1]) as file:
	    told = json.load(file)
	sys.exit(len(told["trees"]) > 20)
PY
# Where one tree has the bound it is the one of least depth; and trees take links that have room.
oracle sparse 64 3 1 >"$work/t.json"
"$blinkc" -c allreduce "$work/t.json" -o /dev/null 2>"$work/err"
expect "64 GPUs of a sparse machine: one tree of depth 9" grep -q "^trees       1, depth 9$" "$work/err"
"$blinkc" -c broadcast topologies/two-dgx1v.xml -o /dev/null 2>"$work/err"
expect "two DGX-1V: broadcast of depth 5" grep -q "^trees       4, depth 5$" "$work/err"
# A NIC that two GPUs share is lost: the partition's bound counts PCIe between those two. Prices of kinds of links prove
# one that is no higher than the optimum with all NICs, which the linear program has, and close to the rate.
machine="server:10 gpu:18 switch:450 nic:9@50 pcie:64"
"$blinkc" -c allreduce --synthetic "$machine" --summary json -o /dev/null 2>"$work/whole"
"$blinkc" -c allreduce --synthetic "$machine" --without nic:s8/nic3 --summary json -o "$work/s.json" 2>"$work/err"
expect "a shared NIC lost, checked" "$blinkc" check -q "$work/s.json"
expect "a shared NIC lost: a bound by prices, below the optimum of the whole" \
	oracle snippet - "$work/whole" "$work/err" <<-'PY'
	import json, sys
	whole, less = [json.load(open(name)) for name in sys.argv[1:]]
	rate, bound, most = less["rate_gb_per_s"], less["bound_gb_per_s"], whole["rate_gb_per_s"]
	sys.exit(not whole["bound_reached"] or less["certificate"] != "prices"
	    or not 0.9999 * bound <= rate <= bound <= most or less["depth"] > 8)
PY
