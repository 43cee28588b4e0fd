# What `blinkc show` says of a schedule, in each format: byte for byte in a few cases, and by independent readers in
# many.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# ---- byte for byte: tests/golden/show/NAME.txt begins with the options of compile and of show ----

for file in tests/golden/show/*.txt; do
	name=$(basename "$file" .txt)
	compile=$(sed -n '1s/^# //p' "$file") show=$(sed -n '2s/^# *//p' "$file")
	# shellcheck disable=SC2086 # lists of words
	if ! "$blinkc" -q $compile -o "$work/s.json" || ! "$blinkc" show $show "$work/s.json" >"$work/shown"; then
		not_ok "$name: exit $?"
		continue
	fi
	{
		sed -n 1,2p "$file"
		cat "$work/shown"
	} >"$work/now"
	if [ "${BLESS:-}" ]; then
		cp "$work/now" "$file"
		ok "$name blessed"
	elif cmp -s "$work/now" "$file"; then
		ok "$name"
	else
		not_ok "$name: $(diff "$file" "$work/now" | head -5 | tr '\n' ' ')"
	fi
done
[ -z "${BLESS:-}" ] || exit 0

# ---- each collective, each kind of machine ----

have_dot=$(command -v nop)
[ "$have_dot" ] || skip "Graphviz: nop is not there, so that nothing reads what show writes for it"
mkdir "$work/all"
names=()
# all NAME: every format of all/NAME.json, for judge_all
all() {
	local format
	for format in txt svg dot; do
		"$blinkc" show "$work/all/$1.json" -o "$work/all/$1.$format" || not_ok "$1: $format: exit $?"
	done
	names+=("$1")
}

# judge WHAT ENDING COMMAND...: of all files with that ending at once; where that fails, of one after the other
judge() {
	local what=$1 ending=$2 name
	shift 2
	if "$@" "${names[@]/%/.$ending}" >"$work/out" 2>&1; then
		for name in "${names[@]}"; do ok "$name: $what"; done
	else
		for name in "${names[@]}"; do expect "$name: $what" "$@" "$name.$ending"; done
	fi
}
as_shown() {	# SCHEDULE.json...
	local pairs=() file
	for file; do pairs+=("$file" "${file%.json}.txt"); done
	oracle show "${pairs[@]}"
}
judge_all() {
	cd "$work/all" || exit 1
	judge "what is said" json as_shown
	judge "what is drawn" svg oracle svg
	judge "XML" svg xmllint --noout --nonet
	[ -z "$have_dot" ] || judge "Graphviz takes it" dot nop -p
	cd "$top" || exit 1
}

machines='dgx1v dgx2 mi250 pcie-8gpu summit dgx-h100-nvls'
other=0
for c in broadcast reduce allreduce gather scatter allgather reducescatter alltoall; do
	# Without $full, a collective on every other machine, and the next one on the others.
	other=$((!other))
	for m in $machines; do
		other=$((!other))
		[ "$full" ] || [ $other = 0 ] || continue
		every 2 || continue
		# The largest take longest.
		case $full$m:$c in mi250:reducescatter | mi250:reduce | mi250:gather) continue ;; esac
		"$blinkc" -q "topologies/$m.xml" -c $c -o "$work/all/$m $c.json" || not_ok "$m $c: exit $?"
		all "$m $c"
	done
	"$blinkc" -q topologies/two-dgx1v.xml -c $c -g 0,1,2,8,11,15 -o "$work/all/two servers, $c.json"
	all "two servers, $c"
	"$blinkc" -q topologies/dgx1v.xml --hybrid -c $c -g 5,4,7,6 -o "$work/all/hybrid, $c.json"
	all "hybrid, $c"
done
some=(broadcast reduce allreduce allgather alltoall)
for seed in $(seq 1 "${SEEDS:-24}"); do
	oracle random_topology "$seed" >"$work/t.json"
	c=${some[seed % 5]}
	"$blinkc" -q "$work/t.json" -l all -c "$c" -o "$work/all/seed $seed, $c.json" || not_ok "seed $seed: exit $?"
	all "seed $seed, $c"
	sed -nE 's/.*"kind": "([a-z]*)".*/\1/p' "$work/all/seed $seed, $c.json" >>"$work/kinds"
done
oracle random_topology 4 --kind oneway >"$work/t.json"
"$blinkc" -q "$work/t.json" -o "$work/all/one way.json"
all "one way"
sed -nE 's/.*"kind": "([a-z]*)".*/\1/p' "$work/all/one way.json" >>"$work/kinds"
for kind in cut partition prices lengths; do
	[ "${SEEDS:-24}" -lt 24 ] || expect "some random schedule has a bound by $kind" grep -qx $kind "$work/kinds"
done
while IFS= read -r line; do
	"$blinkc" -q --synthetic "$line" -o "$work/all/$line.json" || not_ok "$line: exit $?"
	all "$line"
done <<'END'
server:3 gpu:8 switch:300 nic:4@25 pcie:20 rails
server:4 gpu:4 ring:50 nic:4@25 pcie:20 leaf:2
server:40 gpu:2 mesh:50 net:10
gpu:100 switch:10
gpu:40 ring:10
server:32 gpu:1 net:10
gpu:8 switch:100 multicast reduce
END
"$blinkc" -q topologies/superpod-a100.xml -c broadcast -o "$work/all/160 GPUs.json"
all "160 GPUs"
"$blinkc" show "$work/all/160 GPUs.json" --links all --tree 0,1,2 >"$work/t.txt"
expect "a line for each link" [ "$(grep -c ' GB/s' "$work/t.txt")" -ge 5 ]
n=$(oracle snippet --field "$work/all/160 GPUs.json" 'len(d["topology"]["links"])')
expect "$n links have a line each" [ "$(sed -n '/^from /,/^$/p' "$work/t.txt" | grep -c ' %')" = "$n" ]

# The reader refuses what is not so.
"$blinkc" -q topologies/dgx1v.xml -g 0,1,2,3 -c broadcast -o "$work/s.json"
"$blinkc" show "$work/s.json" >"$work/t.txt"
for change in '0,/ 50 /s/ 50 / 51 /' '0,/50 GB\/s; down/s//49 GB\/s; down/' 's/^│  └─ gpu/└─ gpu/' \
	's/ = 100 GB/ = 101 GB/' 's/^4 links/5 links/' \
	's/100 %/99 %/' 's/  cut$//' '/─ gpu3/s/gpu3/gpu2/'; do
	sed "$change" "$work/t.txt" >"$work/wrong.txt"
	cmp -s "$work/t.txt" "$work/wrong.txt" && continue
	oracle show "$work/s.json" "$work/wrong.txt" >"$work/seen"
	if grep -q WRONG "$work/seen"; then ok "it is seen that $change"; else not_ok "it is not seen that $change"; fi
	echo changed >>"$work/changes"
done
expect "five changes or more were tried" [ "$(wc -l <"$work/changes")" -ge 5 ]

# One rank collects for itself: trees with "to".
oracle snippet - "$work/s.json" >"$work/all/trees that serve one rank.json" <<'PY'
import json, sys
doc = json.load(open(sys.argv[1]))
link = {(l["from"], l["to"]): i for i, l in enumerate(doc["topology"]["links"])}
doc.update(collective="allreduce", root=None)
doc["trees"] = [{"segment": ["0/1", "1/1"], "root": r, "up": [[s, r, [link[s, r]]] for s in range(4) if s != r],
                 "to": [r]} for r in range(4)]
doc["rate"] = {"achieved": 25, "bound": 75, "certificate": {"kind": "partition", "parts": [[0], [1], [2], [3]]}}
total = sum(l["capacity"] for l in doc["topology"]["links"])
doc["rate"]["bound"] = total / 6
print(json.dumps(doc))
PY
all "trees that serve one rank"
expect "whom a tree serves" grep -q '; for gpu2 only; up to gpu2; depth 1' \
	<("$blinkc" show "$work/all/trees that serve one rank.json")

# ---- names of strangers ----

oracle snippet - "$work/s.json" "$work/all/hostile names.json" <<'PY'
import json, sys
doc = json.load(open(sys.argv[1]))
doc["topology"]["name"] = "</title><script>alert(1)</script> & \"quoted\" 'too' `id` $(id) \\\\n\n\x1b[31mred " \
    "\u009b \\N ]]> -->"
for rank, name in zip(doc["topology"]["ranks"], ["a.:@/+-", "_", "--", "x" * 64]):
    rank["gpu"] = name
json.dump(doc, open(sys.argv[2], "w"))
PY
all "hostile names"
for f in txt svg dot; do
	expect "$f: no control character" [ "$(tr -d '\n\t -~\200-\377' <"$work/all/hostile names.$f" | wc -c)" = 0 ]
done
expect "svg: no element of a stranger" [ "$(grep -c '<script' "$work/all/hostile names.svg")" = 0 ]

judge_all

# ---- the same bytes ----

for f in text svg dot; do
	"$blinkc" show "$work/s.json" --format $f >"$work/one"
	LC_ALL=C.UTF-8 LANG=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 "$blinkc" show "$work/s.json" -o "$work/two" --format $f
	expect "$f: the same in any locale" cmp "$work/one" "$work/two"
done
picture=docs/allreduce-dgx1v.svg
"$blinkc" show "$work/all/dgx1v allreduce.json" -o "$work/p.svg"
expect "$picture is what blinkc draws" cmp "$work/p.svg" $picture

# Ways through many switches, another one back.
oracle snippet - >"$work/ways.json" <<'END'
import json
there, back = ([f"{way}{i}-" + "x" * 50 for i in range(25)] for way in ("there", "back"))
hops = [h for way in (["a", *there, "b"], ["b", *back, "a"]) for h in zip(way, way[1:])]
print(json.dumps({"format": "blink-topology", "version": 1, "name": "ways",
                  "nodes": [{"id": "n", "gpus": [{"id": "a"}, {"id": "b"}],
                             "switches": [{"id": s} for s in there + back]}],
                  "links": [{"from": x, "to": y, "class": "pcie", "capacity": 1, "duplex": "simplex"}
                            for x, y in hops]}))
END
"$blinkc" -q "$work/ways.json" -o "$work/w.json" || not_ok "ways: exit $?"
expect "ways through many switches" grep \
	-q '  up pcie via back0-x*, .*, back24-x*; down pcie via there24-x*, .*, there0-x*$' \
	<("$blinkc" show "$work/w.json")

# ---- a directory of schedules ----

"$blinkc" batch -q topologies/dgx1v.xml --sizes 3 --collectives allreduce,broadcast -o "$work/dir"
"$blinkc" show "$work/dir" -g gpu7,2,6 -c broadcast -r gpu2 >"$work/t.txt"
expect "by index: its GPUs, ranks in the order of -g" grep -q '^topology .*, 3 ranks: gpu7 gpu2 gpu6;' "$work/t.txt"
expect "by index: its root" grep -q '^collective  broadcast from root . (gpu2)$' "$work/t.txt"
"$blinkc" -q topologies/dgx1v.xml -g 2,6,7 -c broadcast -r gpu2 -o "$work/own.json"
expect "by index: the same rate" \
	[ "$(grep '^rate' "$work/t.txt")" = "$("$blinkc" show "$work/own.json" | grep '^rate')" ]
grep -oE '^gpu[0-9]+ +gpu[0-9]+ +nvlink +[0-9]+' "$work/t.txt" | sort >"$work/links"
"$blinkc" show "$work/own.json" | grep -oE '^gpu[0-9]+ +gpu[0-9]+ +nvlink +[0-9]+' | sort >"$work/own"
expect "by index: links of these GPUs" cmp "$work/links" "$work/own"
cp -r "$work/dir" "$work/dir.p"
"$blinkc" -q topologies/dgx1p.xml -g 0,1,2 -o "$work/dir.p/allreduce/0-2.json"
expect_exit "a file of another machine" 3 "$blinkc" show "$work/dir.p" -g 0,1,2
long=$work/$(printf 'x%.0s' {1..200})
long=$long/$(printf 'x%.0s' {1..250})/$(printf 'x%.0s' {1..250})/$(printf 'x%.0s' {1..250})/$(printf 'x%.0s' {1..250})
mkdir -p "$long"
cp -r "$work/dir" "$long"
expect "a path of more than 1000 bytes" grep -q "^file        $long/dir/allreduce/0-2.json, with" \
	<("$blinkc" show "$long/dir" -g 0,1,2)
expect_exit "a job that is not there" 3 "$blinkc" show "$work/dir" -g 0,1
expect_exit "no such GPU" 3 "$blinkc" show "$work/dir" -g 0,1,9
expect_exit "no index" 8 "$blinkc" show "$work"
expect_exit "GPUs of a file" 2 "$blinkc" show "$work/s.json" -g 0,1,2

# ---- options ----

expect_exit "no file" 2 "$blinkc" show
expect_exit "no such tree" 2 "$blinkc" show "$work/s.json" --tree 99
expect_exit "no number" 2 "$blinkc" show "$work/s.json" --tree 1,x
expect_exit "a list that ends in a comma" 2 "$blinkc" show "$work/s.json" --tree 1,
expect_exit "no such class" 2 "$blinkc" show "$work/s.json" --links copper
expect_exit "no such format" 2 "$blinkc" show "$work/s.json" --format png
expect_exit "links of a drawing" 2 "$blinkc" show "$work/s.json" --format svg --links all
expect_exit "a layout of text" 2 "$blinkc" show "$work/s.json" --layout neato
expect_exit "no such layout" 2 "$blinkc" show "$work/s.json" --format svg --layout circo
sed 's|"1/2"|"1/3"|' "$work/s.json" >"$work/wrong.json"
expect_exit "a schedule that is wrong" 6 "$blinkc" show "$work/wrong.json"
expect_exit "a file that is no schedule" 3 "$blinkc" show README.md

# ---- Graphviz ----

[ -z "$have_dot" ] || expect "dot lays it out" dot -Tsvg -o "$work/dot.svg" "$work/all/hostile names.dot"

cat >"$work/none.c" <<'END'
#include <stddef.h>
void *dlopen(const char *name, int mode) { (void)name; (void)mode; return NULL; }
END
sanitized=$(grep -c -e -fsanitize "$build/flags")
if [ "$sanitized" != 0 ]; then
	skip "a machine without Graphviz: a sanitizer has to be the first library"
elif "${cc[@]}" -shared -fPIC -o "$work/none.so" "$work/none.c"; then
	expect_exit "without Graphviz" 2 env LD_PRELOAD="$work/none.so" "$blinkc" show "$work/s.json" \
		--format svg --layout neato
	expect "it is said that it is missing" grep -q 'libgvc of Graphviz is not installed' "$work/err"
else
	not_ok "no library for a machine without Graphviz"
fi
# What Graphviz keeps until the end is no leak of ours.
export ASAN_OPTIONS=detect_leaks=0
if "$python" -c 'import ctypes; ctypes.CDLL("libgvc.so.6")' 2>/dev/null; then
	for layout in neato dot; do
		"$blinkc" -q topologies/dgx2.xml -c broadcast -o "$work/s.json"
		expect "--layout $layout" "$blinkc" show "$work/s.json" --layout $layout -o "$work/t.svg"
		expect "--layout $layout: what is drawn" oracle svg "$work/t.svg"
		"$blinkc" show "$work/s.json" -o "$work/own.svg"
		expect "--layout $layout is another" [ "$(cmp "$work/t.svg" "$work/own.svg" | wc -l)" = 1 ]
	done
else
	skip "--layout neato, dot: libgvc.so.6 is not there"
fi

# ---- meshes of many GPUs ----

"$blinkc" show -q topologies/mi250.xml -o "$work/mesh.svg"
expect "16 dies: no link lies over a die, no label over another" oracle mesh_picture "$work/mesh.svg" 16
{
	echo '<topology format="blink-topology" version="1" name="torus"><node id="s">'
	for g in {0..15}; do echo "<gpu id=\"gpu$g\"/>"; done
	echo '</node>'
	for g in {0..15}; do
		for to in $((g / 4 * 4 + (g + 1) % 4)) $(((g + 4) % 16)); do
			echo "<link from=\"gpu$g\" to=\"gpu$to\" class=\"nvlink\" capacity=\"50\"/>"
		done
	done
	echo '</topology>'
} >"$work/torus.xml"
"$blinkc" show -q "$work/torus.xml" -o "$work/mesh.svg"
expect "a torus: the same" oracle mesh_picture "$work/mesh.svg" 16
