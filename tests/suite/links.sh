# The links of a job by default, the one route of each pair of GPUs (--routes), and the line on links that are idle.
. tests/lib.sh

# lacks NAME PATTERN FILE
lacks() { if grep -qE -e "$2" "$3"; then not_ok "$1: $2 in: $(grep -E -e "$2" "$3" | head -3)"; else ok "$1"; fi; }

# Four GPUs on one CPU, two of them joined by a bridge, and the other two.
cat >"$work/box.xml" <<'END'
<topology format="blink-topology" version="1" name="bridges">
  <class name="nvlink" capacity="25"/>
  <class name="pcie" capacity="24"/>
  <node id="n">
    <gpu id="gpu0"/><gpu id="gpu1"/><gpu id="gpu2"/><gpu id="gpu3"/>
    <cpu id="cpu0"/>
  </node>
  <link from="gpu0" to="gpu1" class="nvlink" count="12"/>
  <link from="gpu2" to="gpu3" class="nvlink" count="12"/>
  <link from="gpu0" to="cpu0" class="pcie"/>
  <link from="gpu1" to="cpu0" class="pcie"/>
  <link from="gpu2" to="cpu0" class="pcie"/>
  <link from="gpu3" to="cpu0" class="pcie"/>
</topology>
END
box=$work/box.xml

# rate NAME WANTED ARGUMENTS...: GB/s of a schedule, $work/s.json; $work/err has the summary
rate() {
	local name=$1 want=$2 got
	shift 2
	"$blinkc" "$@" -o "$work/s.json" 2>"$work/err" || { not_ok "$name: $(cat "$work/err")"; return; }
	got=$(sed -n 's/^rate        \([0-9.]*\) GB.*/\1/p' "$work/err")
	if [ "$got" = "$want" ]; then ok "$name: $want GB/s"; else not_ok "$name: $got GB/s, want $want"; fi
}

# ---- the default ----

rate "bridges" 48 "$box"
cp "$work/s.json" "$work/default.json"
has "routes are recorded" '"routes": "pair",' "$work/default.json"
rate "bridges, over PCIe" 16 "$box" -l pcie
rate "bridges, one class or all" 16 "$box" --routes any
lacks "without routes nothing is recorded" '"routes"' "$work/s.json"
rate "two GPUs with a bridge" 300 "$box" -g 0,1
lacks "a class that connects the GPUs is used alone" '"routes"' "$work/s.json"
rate "two GPUs without" 24 "$box" -g 1,2
lacks "PCIe that connects the GPUs is used alone" '"routes"' "$work/s.json"
rate "three GPUs" 24 "$box" -g 0,1,2
has "three GPUs have routes" '"routes": "pair",' "$work/s.json"
for c in broadcast:48 reduce:48 gather:96 scatter:96 allgather:96 reducescatter:96 alltoall:48; do
	rate "bridges, ${c%:*}" "${c#*:}" "$box" -c "${c%:*}"
	cp "$work/s.json" "$work/default-${c%:*}.json"
done
expect "edges keep to routes" oracle pair_routes --edges "$work"/default*.json
expect "they are valid" "$blinkc" check -q --topology "$box" "$work"/default*.json
for f in "$work"/default*.json; do
	expect "$(basename "$f") is executed" "$perf" "$f" -b 64K -e 64K -n 1 -w 0
done

# What is recorded makes the file again.
links=$(sed -n 's/.*"links": \[\(.*\)\].*/\1/p' "$work/default.json" | head -1 | tr -d '" ')
"$blinkc" -q "$box" -l "$links" --routes pair -o "$work/again.json"
expect "the recorded links and routes make it again" cmp "$work/default.json" "$work/again.json"

# ---- what --routes goes with ----

# GPUs whose NVLinks do not connect them, and all of a DGX-1V.
rate "DGX-1V, parts" 6 topologies/dgx1v.xml -g 0,1,6
rate "DGX-1V, NVLink" 85.7143 topologies/dgx1v.xml
lacks "DGX-1V has no routes" '"routes"' "$work/s.json"
rate "DGX-1V, pairs" 86.5714 topologies/dgx1v.xml --routes pair
has "the optimum of these routes" \
	'^best        86.5714 GB/s of trees by the route of each pair, by the linear program$' "$work/err"
has "the bound is of all" '^bound       92.5714 GB/s, proven by a partition' "$work/err"
lacks "nothing is open: trees by any routes reach the bound" '^unproven' "$work/err"
n=0
for options in "--max-depth 4" "--max-trees 3" "--packing mwu" "--no-minimise" "-a onehop -c alltoall" \
	"-a onehop" "-a ring" \
	"-a threephase" "-a ring -c allgather" "-c broadcast --max-depth 2" "-c alltoall --max-depth 2"; do
	for machine in topologies/dgx1v.xml "$box" topologies/two-dgx1v.xml; do
		n=$((n + 1))
		# shellcheck disable=SC2086
		"$blinkc" -q "$machine" --routes pair $options -o "$work/limited-$n.json" 2>"$work/err" || {
			[ $? = 5 ] || not_ok "$machine $options: $(cat "$work/err")"
			rm -f "$work/limited-$n.json"
		}
	done
done
n=$(find "$work" -name 'limited-*' | wc -l)
if [ "$n" -ge 30 ]; then
	ok "limits and algorithms have routes: $n"
else
	not_ok "only $n limits and algorithms have routes"
fi
expect "limits and algorithms keep to routes" oracle pair_routes --edges "$work"/limited-*.json
expect_exit "a kind that is none" 2 "$blinkc" "$box" --routes best
has "which there are" '^blinkc: --routes: best: want any or pair$' "$work/err"
expect_exit "not with --hybrid" 2 "$blinkc" "$box" --routes pair --hybrid

# An edge that leaves the route of its pair is no other schedule than it was asked for.
sed 's/^    "options": {$/&\n      "routes": "pair",/' \
	<("$blinkc" -q topologies/dgx1v.xml -l all -g 0,1,2,3 -c alltoall) >"$work/off.json"
expect "without a machine it is a schedule" "$blinkc" check -q "$work/off.json"
expect_exit "with it, it is none" 3 "$blinkc" check -q "$work/off.json" --topology topologies/dgx1v.xml

# ---- servers ----

# A server with NVLink beside one without; and one whose NVLink joins only some.
cat >"$work/servers.json" <<'END'
{ "format": "blink-topology", "version": 1, "name": "servers that differ",
  "nodes": [{ "id": "v", "file": "dgx1v.xml" }, { "id": "p", "file": "pcie-8gpu.xml" }],
  "fabrics": [{ "capacity": 12.5 }] }
END
for gpus in v/gpu0,v/gpu1,v/gpu2,p/gpu0,p/gpu1,p/gpu2 v/gpu0,v/gpu1,v/gpu6,p/gpu0 \
	v/gpu0,v/gpu1,v/gpu2,v/gpu7,p/gpu0,p/gpu4; do
	"$blinkc" -q "$work/servers.json" -g "$gpus" -o "$work/servers-${#gpus}.json" 2>"$work/err" ||
		not_ok "$gpus: $(cat "$work/err")"
done
expect "servers: edges keep to routes" oracle pair_routes --edges "$work"/servers-*.json
expect "servers: they are valid" "$blinkc" check -q --topology "$work/servers.json" "$work"/servers-*.json

# ---- batches ----

expect "batch of the box" "$blinkc" batch -q "$box" --collectives all -o "$work/batch"
expect "batch: as compile" oracle compiled "$blinkc" "$box" "$work/batch"
expect "batch: fits the machine" "$blinkc" check -q "$work/batch" --topology "$box"
expect "batch: what is there stays" "$blinkc" batch -q "$box" --collectives all -o "$work/batch"

# ---- where pairs gain more than 5 % ----

m=topologies/mi250.xml
"$blinkc" $m -o "$work/pairs.json" 2>"$work/err"
has "it is said, and how to go back" "^routes      pair: an allreduce over all GPUs has 185.143 GB/s, over xgmi alone \
at most 171.429; --routes any goes back$" "$work/err"
"$blinkc" $m --summary json -o "$work/s.json" 2>"$work/err"
lacks "not in a summary for programs" '^routes' "$work/err"
"$blinkc" $m --routes pair -o "$work/s.json" 2>"$work/err"
expect "it is --routes pair" cmp "$work/pairs.json" "$work/s.json"
lacks "that is not said where it is asked for" '^routes' "$work/err"
rate "--routes any" 171.429 $m --routes any
rate "-l xgmi" 171.429 $m -l xgmi
rate "a smaller gain is not taken" 85.7143 topologies/dgx1v.xml
rate "another collective of that machine" 370.286 $m -c allgather
sed 's|\(class="qpi"\)/>|\1 assumed="true"/>|' $m >"$work/guess.xml"
expect "a machine with a guess" grep -q 'class="qpi" assumed="true"' "$work/guess.xml"
rate "a gain by a guess is not taken" 171.429 "$work/guess.xml"
"$blinkc" batch -q $m --sizes 3,16 --distinct --no-minimise -o "$work/dies"
expect "batch: as compile" oracle compiled "$blinkc" $m "$work/dies" -- --no-minimise
expect "batch: the index has the routes" grep -q '"routes": "pair"' "$work/dies/index.json"
expect "batch: fits the machine" "$blinkc" check -q "$work/dies" --topology $m

# ---- idle links ----

"$blinkc" topologies/dgx1v.xml -c broadcast -o "$work/s.json" 2>"$work/err"
has "what idle links would add" \
	'^idle        pcie, qpi; --hybrid: 156 GB/s from 330 MB on; --routes pair: 151.5 GB/s$' "$work/err"
rate "hybrid, as the line says" 156 topologies/dgx1v.xml -c broadcast --hybrid
lacks "hybrid: nothing is idle" '^idle' "$work/err"
"$blinkc" topologies/dgx1v.xml -l pcie,qpi -o "$work/s.json" 2>"$work/err"
has "asked for" '^idle        nvlink; -l all: at most 92.5714 GB/s$' "$work/err"
"$blinkc" "$box" -g 0,1 -o "$work/s.json" 2>"$work/err"
has "what may be had, where times of peer access are not known" '^idle        pcie; -l all: at most ' "$work/err"
lacks "nothing about what the file lacks" 'peer_accesses' "$work/err"
"$blinkc" "$box" -o "$work/s.json" 2>"$work/err"
lacks "all are in use" '^idle' "$work/err"
"$blinkc" check "$work/s.json" >"$work/out" 2>&1
lacks "check knows no machine" '^idle' "$work/out"

# ---- random boxes ----

last=3 most=5
[ ! "$full" ] || last=90 most=7
if oracle pair_routes "$blinkc" 1 "$last" --most "$most" >"$work/log" 2>&1; then
	if grep -q '^skip' "$work/log"; then
		skip "boxes with bridges: python3 has no scipy"
	else
		ok "boxes 1 to $last"
	fi
else
	not_ok "boxes 1 to $last: $(grep -v '^box [0-9]*: ' "$work/log" | head -5)"
fi
