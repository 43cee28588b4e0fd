# --hybrid: schedules that divide a message between NVLink and PCIe. They are right, by the replay of the oracle too,
# and executed with every element checked; libblink, generated code and `--size` divide as equation 8 of Blink does.
# shellcheck shell=bash disable=SC2154
. tests/lib.sh

n=0
for kind in peer host; do
	for case in broadcast::gpu0 broadcast:0,1,2:gpu1 reduce:1,4,5,6:gpu4 allreduce:: allreduce:0,1: \
		allreduce:2,3,6,7,5: gather::gpu2 scatter:0,1,2,3:gpu3 allgather:: reducescatter:0,3,4,7: \
		alltoall:0,1,2,3,6:; do
		IFS=: read -r c gpus root <<<"$case"
		n=$((n + 1))
		# In the quick check through the host only some.
		case $full$kind:$c in 1* | peer:* | host:broadcast | host:gather | host:alltoall) ;; *) continue ;; esac
		name="$kind $c ${gpus:-all}"
		expect "$name" "$blinkc" --hybrid=$kind -c "$c" ${gpus:+-g "$gpus"} ${root:+-r "$root"} \
			topologies/dgx1v.xml -o "$work/$kind-$n.json"
		expect "$name: blinkc check" "$blinkc" check -q "$work/$kind-$n.json"
		expect "$name: replay" oracle replay "$work/$kind-$n.json"
		if "$perf" "$work/$kind-$n.json" -b 4 -e 2M -f 128 -n 1 -w 0 >"$work/log" 2>&1 &&
			grep -q '^# Out of bounds values : 0 OK' "$work/log"; then ok "$name: executed"; else
			not_ok "$name: $(tail -3 "$work/log" | tr '\n' ' ')"; fi
	done
done
expect "schema of $(find "$work" -name '*.json' | wc -l) schedules" \
	oracle validate schemas/schedule.schema.json "$work"/*.json
expect "through the host: each edge passes a CPU" oracle hybrid --host "$work"/host-*.json
if oracle hybrid --host "$work"/peer-*.json >"$work/log" 2>&1; then
	not_ok "the test of edges through the host passes others"
fi

# The threshold, from the schedule and from the program: the peer access of this machine takes 50 ns.
step=$([ "$full" ] && echo 1000 || echo 3000)
sed 's/<peer_access gpus="8" time="[0-9]*"/<peer_access gpus="8" time="0.05"/' topologies/dgx1v.xml >"$work/quick.xml"
for c in broadcast reduce allreduce gather scatter allgather reducescatter alltoall; do
	"$blinkc" -q --hybrid -c $c "$work/quick.xml" -o "$work/quick-$c.json" || not_ok "quick $c: exit $?"
	files=("$work/quick-$c.json")
	# The compiler takes longer than all else here.
	case $full$c in
	1* | alltoall)
		"$blinkc" -q --hybrid -c $c "$work/quick.xml" -o "$work/quick-$c.cu" || not_ok "quick $c .cu: exit $?"
		expect "quick $c: the .cu compiles" "${cc[@]}" -x c -std=gnu11 -O0 -Wall -Wextra -Werror -shared -fPIC \
			-Iruntime/include "$work/quick-$c.cu" -o "$work/quick-$c.so" -pthread
		files+=("$work/quick-$c.so")
		;;
	esac
	for file in "${files[@]}"; do
		if "$perf" "$file" -b 1K -e 32K -i "$step" -n 1 -w 0 -c 1 >"$work/log" 2>&1 &&
			grep -q '^# Out of bounds values : 0 OK' "$work/log"; then
			ok "quick $c ${file##*.}: sizes around the threshold"
		else
			not_ok "quick $c ${file##*.}: $(tail -3 "$work/log" | tr '\n' ' ')"
		fi
	done
done
# A library comes after its schedule.
files=("$work"/peer-*.json "$work"/host-*.json)
for file in "$work"/quick-*.json; do
	files+=("$file")
	[ ! -e "${file%.json}.so" ] || files+=("${file%.json}.so")
done
if nm -D "$build/libblink.so" | grep -q '__[at]san_init'; then
	skip "libblink by equation 8: python cannot load one with a sanitizer"
else
	expect "libblink and --size divide by equation 8" oracle hybrid "$build/libblink.so" "$blinkc" "${files[@]}"
fi

# Two levels of PCIe switches, one without a CPU, and two that are equally far from one.
mkdir "$work/t"
oracle snippet - "$work/t" <<'END'
import json, sys
def put(name, pcie, cpus=("c0",), peer=()):
    switches = sorted({v for pair in pcie for v in pair if v.startswith("s")})
    json.dump({"format": "blink-topology", "version": 1, "name": name,
        "peer_accesses": [{"gpus": n, "time": t} for n, t in peer],
        "nodes": [{"id": "n", "gpus": [{"id": f"g{i}"} for i in range(4)], "cpus": [{"id": c} for c in cpus],
                   "switches": [{"id": s} for s in switches]}],
        "links": [{"from": f"g{i}", "to": f"g{j}", "class": "nvlink", "capacity": 25}
                  for i in range(4) for j in range(i)]
               + [{"from": u, "to": v, "class": "pcie", "capacity": 12} for u, v in pcie]},
        open(f"{sys.argv[1]}/{name}.json", "w"))
put("levels", [("g0", "s0"), ("g1", "s0"), ("g2", "s1"), ("g3", "s1"), ("s0", "s2"), ("s1", "s2"), ("s2", "c0")],
    peer=[(4, 5), (2, 1), (3, 2)])
put("headless", [("g0", "s0"), ("g1", "s0"), ("g2", "s0"), ("g3", "s0")], cpus=())
put("crossed", [("g0", "s0"), ("g1", "s0"), ("g2", "s1"), ("g3", "s1"), ("s0", "c0"), ("s1", "c0"), ("s0", "s1")])
END
for g in 0,1,2,3 0,1,2 0,3; do
	"$blinkc" -q --hybrid -g $g "$work/t/levels.json" -o "$work/levels.json" || not_ok "levels $g: exit $?"
	setup=$(oracle snippet --field "$work/levels.json" 'd["parts"][1]["setup"]')
	case $g:$setup in
	0,1,2,3:5 | 0,1,2:2 | 0,3:1) ok "peer access of $g" ;;
	*) not_ok "peer access of $g: $setup" ;;
	esac
done
sed -i 's/{"gpus": 4, "time": 5}, //' "$work/t/levels.json"
"$blinkc" -q --hybrid "$work/t/levels.json" -o "$work/levels.json" || not_ok "levels: exit $?"
expect "peer access of more GPUs than any entry" grep -q '"setup": 2 }' "$work/levels.json"
for g in 0,1,2,3 0,1 0,2; do
	"$blinkc" -q --hybrid=host -c reduce -g $g "$work/t/levels.json" -o "$work/host-levels-$g.json" ||
		not_ok "levels $g: exit $?"
	expect "two levels of switches: $g" oracle replay "$work/host-levels-$g.json"
done
sed -i 's/"c0"/"cpu0"/g' "$work"/host-levels-*.json
expect "two levels of switches: each edge passes the CPU" oracle hybrid --host "$work"/host-levels-*.json

# refuses NAME CODE TEXT OPTION...
refuses() {
	local name=$1 code=$2 text=$3
	shift 3
	expect_exit "$name" "$code" "$blinkc" "$@" -o "$work/no.json"
	if grep -qF -e "$text" "$work/err"; then ok "$name says so"; else not_ok "$name: $(cat "$work/err")"; fi
}
refuses "a switch without a CPU" 3 "s0: no CPU above it over pcie" --hybrid=host "$work/t/headless.json"
refuses "switches side by side" 3 "s0 and s1: equally far from a CPU" --hybrid=host "$work/t/crossed.json"
refuses "nothing known of peer access" 3 "crossed: no peer_accesses: want the time to switch peer access" \
	--hybrid=peer "$work/t/crossed.json"
refuses "no NVLink between these" 5 "dgx1v over nvlink: no path from gpu0 to gpu7" --hybrid -g 0,7 topologies/dgx1v.xml
grep -v 'class="nvlink"' topologies/dgx1v.xml >"$work/t/bus.xml"
refuses "no NVLink at all" 5 "dgx1v: only links of pcie and qpi: want others, too" --hybrid "$work/t/bus.xml"
# PCIe is faster than a single NVLink, and yet the second way.
sed 's/name="pcie" capacity="12"/name="pcie" capacity="120"/' topologies/dgx1v.xml >"$work/t/fast.xml"
"$blinkc" --hybrid -g 0,1,2 "$work/t/fast.xml" -o "$work/fast.json" 2>"$work/log" || not_ok "fast PCIe: exit $?"
expect "faster PCIe" grep -q '^hybrid      nvlink 50 + pcie,qpi 90 GB/s' "$work/log"
grep -v 'class="pcie"' topologies/dgx1v.xml >"$work/t/bare.xml"
refuses "no PCIe" 5 "dgx1v over pcie,qpi: no path from gpu0 to gpu1" --hybrid -c reduce "$work/t/bare.xml"
refuses "no PCIe through the host" 5 "dgx1v over pcie,qpi: no path from gpu0 to gpu1" \
	--hybrid=host -c reduce "$work/t/bare.xml"
refuses "--max-depth of all parts" 5 "--max-depth: 1: broadcast over these 8 ranks needs at least" \
	--hybrid -c broadcast --max-depth 1 topologies/dgx1v.xml
"$blinkc" --hybrid -c broadcast --max-depth 3 topologies/dgx1v.xml -o "$work/flat.json" 2>"$work/log" ||
	not_ok "--max-depth: exit $?"
expect "--max-depth holds in all parts" grep -q '^trees .*, depth 3$' "$work/log"
