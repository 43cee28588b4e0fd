# A machine, looked at: `blinkc show TOPOLOGY` against an oracle that works the matrix out again, pictures in a renderer
# other than a browser, `blinkc list`, and topologies by name from any directory.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

mkdir "$work/all"
machines=()
# machine NAME ARGUMENT...: flat file, text, SVG and DOT of a machine
machine() {
	local name=$1 format
	shift
	"$blinkc" convert -q "$@" --format json -o "$work/all/$name.json" || not_ok "$name: convert: exit $?"
	for format in txt svg dot; do
		"$blinkc" show -q "$@" -o "$work/all/$name.$format" || not_ok "$name: show: $format: exit $?"
	done
	machines+=("$name")
}

# ---- the machines that come along, some in another order, and random ones ----

for t in topologies/*.xml; do
	case $t in *superpod-h100* | *abci-*)
		[ "$full" ] || [ "$t" = topologies/abci-rack.xml ] || continue
		[ "$t" != topologies/abci-2048.xml ] || continue ;;
	esac
	machine "$(basename "$t" .xml)" "$t"
done
for t in dgx1v dgx-a100 mi250 kesch summit mi300x; do
	oracle machine shuffle 7 "$work/all/$t.json" >"$work/shuffled.json"
	machine "shuffled $t" "$work/shuffled.json"
	links() { sed -n '/^links /,/^$/p' "$work/all/$1.txt"; }
	expect "shuffled $t: the same kinds of links" cmp <(links "$t") <(links "shuffled $t")
	entries() { sed -n '/ CPU$/,/^$/p' "$work/all/$1.txt" |
		grep -oE '\<(NV[0-9]+|XGMI[0-9]+|PIX|PXB|PHB|NODE|SYS)\>' | sort | uniq -c; }
	expect "shuffled $t: the same entries" cmp <(entries "$t") <(entries "shuffled $t")
done
for seed in $(seq 1 "${SEEDS:-$([ "$full" ] && echo 12 || echo 3)}"); do
	oracle random_machine "$seed" >"$work/t.json"
	machine "random $seed" "$work/t.json"
done
while IFS= read -r line; do machine "$line" --synthetic "$line"; done <<'END'
server:3 gpu:8 switch:300 nic:4@25 pcie:20 rails
server:40 gpu:2 mesh:50 net:10
gpu:100 switch:10
gpu:5 ring:10 pcie:12
END

# Several host bridges of a CPU, joined by PCIe: NODE. One-way NVLinks, and others back. A GPU below another GPU.
cat >"$work/node.json" <<'END'
{ "format": "blink-topology", "version": 1, "name": "bridges",
  "nodes": [{ "id": "n", "gpus": [{ "id": "a" }, { "id": "b" }, { "id": "c" }, { "id": "d" }],
    "cpus": [{ "id": "h0" }, { "id": "h1" }], "switches": [{ "id": "p" }, { "id": "q" }],
    "nics": [{ "id": "m", "capacity": 25 }] }],
  "links": [{ "from": "a", "to": "p", "class": "pcie", "capacity": 12 },
    { "from": "p", "to": "q", "class": "pcie", "capacity": 12 },
    { "from": "b", "to": "q", "class": "pcie", "capacity": 12 },
    { "from": "q", "to": "h0", "class": "pcie", "capacity": 12 },
    { "from": "h0", "to": "h1", "class": "pcie", "capacity": 12 },
    { "from": "c", "to": "h1", "class": "pcie", "capacity": 12 },
    { "from": "m", "to": "p", "class": "pcie", "capacity": 12 },
    { "from": "a", "to": "b", "class": "nvlink", "count": 3, "capacity": 25, "duplex": "simplex" },
    { "from": "b", "to": "a", "class": "nvlink", "count": 2, "capacity": 20, "duplex": "simplex" },
    { "from": "a", "to": "c", "class": "nvlink", "capacity": 25, "duplex": "simplex" },
    { "from": "c", "to": "d", "class": "pcie", "capacity": 12 }] }
END
machine "host bridges" "$work/node.json"
t="$work/all/host bridges.txt"
has "NODE over two CPUs joined by PCIe; other links back" '^b +NV2 +X +NODE +- ' "$t"
has "no way leads through a GPU" '^d +- +- +PIX +X +- +-$' "$t"
has "other links each way" '^nvlink +gpu - gpu +1 +3 x 25 / 2 x 20 ' "$t"
has "one way only" '^nvlink +gpu - gpu +1 +25 / none ' "$t"

# ---- a matrix of nvidia-smi topo -m ----

tr -s ' ' '\t' >"$work/smi.txt" <<'END'
 GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 mlx5_0 mlx5_1 mlx5_2 mlx5_3 CPU-Affinity
GPU0 X NV1 NV1 NV2 NV2 SYS SYS SYS PIX PHB SYS SYS 0-19
GPU1 NV1 X NV2 NV1 SYS NV2 SYS SYS PIX PHB SYS SYS 0-19
GPU2 NV1 NV2 X NV2 SYS SYS NV1 SYS PHB PIX SYS SYS 0-19
GPU3 NV2 NV1 NV2 X SYS SYS SYS NV1 PHB PIX SYS SYS 0-19
GPU4 NV2 SYS SYS SYS X NV1 NV1 NV2 SYS SYS PIX PHB 20-39
GPU5 SYS NV2 SYS SYS NV1 X NV2 NV1 SYS SYS PIX PHB 20-39
GPU6 SYS SYS NV1 SYS NV1 NV2 X NV2 SYS SYS PHB PIX 20-39
GPU7 SYS SYS SYS NV1 NV2 NV1 NV2 X SYS SYS PHB PIX 20-39
END
sed -i 's/CPU-Affinity/CPU Affinity/' "$work/smi.txt"
expect "a DGX-1V, as nvidia-smi prints it" oracle machine smi "$work/all/dgx1v.json" "$work/smi.txt"
sed 's/NV2/NV3/' "$work/smi.txt" >"$work/wrong.txt"
if oracle machine smi "$work/all/dgx1v.json" "$work/wrong.txt" >"$work/out"; then
	not_ok "another matrix passes"
else
	ok "another matrix is refused"
fi
data=$top/../shared/data/topo_m
if [ -d "$data" ]; then
	for file in "$data"/dgx1v*.txt; do
		expect "$(basename "$file")" oracle machine smi "$work/all/dgx1v.json" "$file"
	done
else
	skip "matrices of real machines: ../shared/data/topo_m is not there"
fi

# ---- names of strangers ----

oracle snippet - "$work/hostile.json" <<'PY'
import json, sys
name = "</title><script>alert(1)</script> & \"quoted\" 'too' `id` $(id) \\\\n [31mred \u202e \\N ]]> -->"
ids = ["a.:@/+-", "_", "--", "x" * 64, "&amp", "sw/1"][:4] + ["sw/1"]
doc = {"format": "blink-topology", "version": 1, "name": name.replace("\n", " "), "source": name.replace("\n", " "),
       "nodes": [{"id": "n/", "gpus": [{"id": i} for i in ids[:4]], "switches": [{"id": ids[4]}],
                  "nics": [{"id": "n/m"}]}],
       "links": [{"from": i, "to": ids[4], "class": "nvlink", "capacity": 25} for i in ids[:4]]}
json.dump(doc, open(sys.argv[1], "w"))
PY
machine hostile "$work/hostile.json"
for f in txt svg dot; do
	expect "hostile names, $f: no control character" \
		[ "$(tr -d '\n\t -~\200-\377' <"$work/all/hostile.$f" | wc -c)" = 0 ]
done
expect "hostile names, svg: no element of a stranger" [ "$(grep -c '<script' "$work/all/hostile.svg")" = 0 ]

# ---- all of them ----

cd "$work/all" || exit 1
pairs=()
for name in "${machines[@]}"; do pairs+=("$name.json" "$name.txt"); done
oracle machine text "${pairs[@]}" >"$work/out"
expect "the text of ${#machines[@]} machines is what their files have: $(grep -v ": ok: " "$work/out" | head -3)" \
	[ "$(grep -c ": ok: " "$work/out")" = ${#machines[@]} ]
expect "what is drawn" oracle svg "${machines[@]/%/.svg}"
expect "XML" xmllint --noout --nonet "${machines[@]/%/.svg}"
if command -v nop >/dev/null; then
	expect "Graphviz takes it" nop -p "${machines[@]/%/.dot}"
else
	skip "Graphviz: nop is not there"
fi
sed 's/NV1 /NV4 /' dgx1v.txt >wrong.txt
if oracle machine text dgx1v.json wrong.txt >"$work/out"; then
	not_ok "a wrong matrix passes"
else
	ok "a wrong matrix is seen"
fi
sed -E 's/^(pcie .* )12( +12 )/\1 9\2/' dgx1v.txt >wrong.txt
if oracle machine text dgx1v.json wrong.txt >"$work/out"; then
	not_ok "a wrong rate passes"
else
	ok "a wrong rate is seen"
fi
cd "$top" || exit 1
expect "a superpod: its servers are one box" grep -q '>s0-s19: 20 x 8 GPUs<' "$work/all/superpod-a100.svg"
expect "a superpod: its rails are one box" grep -q '>rail0-rail7<' "$work/all/superpod-a100.svg"

expect "docs/dgx1v.svg is what blinkc draws" cmp "$work/all/dgx1v.svg" docs/dgx1v.svg

# ---- pictures in a renderer that knows no CSS variables ----

if command -v rsvg-convert >/dev/null; then
	mkdir "$work/png"
	for c in ${full:+broadcast} allreduce; do
		"$blinkc" -q topologies/dgx1v.xml -c $c -o "$work/$c.json" &&
			"$blinkc" show "$work/$c.json" -o "$work/png/$c.svg"
	done
	"$blinkc" -q topologies/mi250.xml -o "$work/s.json" && "$blinkc" show "$work/s.json" -o "$work/png/mi250.svg"
	cp "$work/all/dgx1v.svg" "$work/png"
	[ ! "$full" ] || cp "$work/all/dgx-a100.svg" "$work/all/superpod-a100.svg" docs/*.svg "$work/png"
	for svg in "$work"/png/*.svg; do
		rsvg-convert "$svg" -o "${svg%.svg}.png" || not_ok "$(basename "$svg"): rsvg-convert: exit $?"
	done
	expect "pictures have colours in librsvg" oracle pixels "$work"/png/*.svg
	sed 's/class="paper"/style="fill: var(--paper)"/; s/fill: #ffffff/fill: var(--node)/' \
		"$work/png/allreduce.svg" >"$work/black.svg"
	rsvg-convert "$work/black.svg" -o "$work/black.png"
	if oracle pixels "$work/black.svg" >"$work/out"; then
		not_ok "a black picture passes"
	else
		ok "a black picture is seen"
	fi
else
	skip "pictures: rsvg-convert is not there (Debian: librsvg2-bin)"
fi

# Trees of one form are drawn once, in full with --tree; on direct links each is drawn.
"$blinkc" -q topologies/dgx2.xml -o "$work/s.json"
"$blinkc" show "$work/s.json" -o "$work/t.svg"
expect "16 trees of one form are drawn once" [ "$(grep -c '<g class="tree"' "$work/t.svg")" = 1 ]
expect "and counted" grep -q '16 trees of this form, each 5 GB/s' "$work/t.svg"
"$blinkc" show "$work/s.json" --tree 3,4,5,6,7 -o "$work/t.svg"
expect "--tree draws each" [ "$(grep -c '<g class="tree"' "$work/t.svg")" = 5 ]
[ -e "$work/allreduce.json" ] || "$blinkc" -q topologies/dgx1v.xml -o "$work/allreduce.json"
"$blinkc" show "$work/allreduce.json" -o "$work/t.svg"
expect "of few trees each is drawn" [ "$(grep -c '<g class="tree"' "$work/t.svg")" = 6 ]

# ---- some GPUs; options ----

"$blinkc" show -q topologies/dgx1v.xml -g 6,gpu1,4 >"$work/t.txt"
has "-g: these GPUs, in this order" '^gpus +gpu6 gpu1 gpu4$' "$work/t.txt"
has "-g: links between them" '^gpu6 +X +SYS +NV1 ' "$work/t.txt"
has "-g: no others" '^parts +1 server, 3 GPUs, 2 CPUs, 4 switches, 4 NICs$' "$work/t.txt"
"$blinkc" show -q topologies/two-dgx1v.xml -g s1/gpu0,s1/gpu1 >"$work/t.txt"
has "-g: servers without any are left out" '^parts +1 server, 2 GPUs, ' "$work/t.txt"
expect_exit "-g: no such GPU" 3 "$blinkc" show -q topologies/dgx1v.xml -g 9
for option in "-c broadcast" "-r 1" "-t 0" "-l nvlink"; do
	# shellcheck disable=SC2086 # two words
	expect_exit "show of a topology, $option" 2 "$blinkc" show -q topologies/dgx1v.xml $option
done
expect_exit "two machines" 2 "$blinkc" show -q topologies/dgx1v.xml topologies/dgx2.xml
expect_exit "a file and a line" 2 "$blinkc" show -q topologies/dgx1v.xml --synthetic "gpu:2 mesh:1"
expect "a machine on standard input" cmp <("$blinkc" show - <topologies/dgx1v.xml) "$work/all/dgx1v.txt"
for f in text svg dot; do
	expect "$f: the same in any locale" cmp <("$blinkc" show -q dgx1v --format $f) \
		<(LC_ALL=C.UTF-8 LANG=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 "$blinkc" show -q dgx1v --format $f)
done

# ---- the topologies that come along ----

"$blinkc" list >"$work/list.txt" || not_ok "list: exit $?"
"$blinkc" list --format json -o "$work/list.json" || not_ok "list of JSON: exit $?"
expect "schema of the list" oracle validate schemas/list.schema.json "$work/list.json"
expect "list has each file once" cmp <(sed 1d "$work/list.txt" | awk '{ print $1 }') \
	<(for f in topologies/*.*; do basename "${f%.*}"; done | sort -u)
expect "list has what the files have" oracle snippet - "$work/list.json" "$work/list.txt" "$work/all" <<'PY'
import json, os, sys
rows = json.load(open(sys.argv[1]))["topologies"]
lines = open(sys.argv[2]).read().splitlines()[1:]
assert len(rows) == len(lines) > 20
for row, line in zip(rows, lines):
    assert line.split()[:3] == [row["name"], str(row["gpus"]), str(row["servers"])], line
    assert line.endswith(row["what"]) and row["what"], line
    assert os.path.isabs(row["file"]) and os.path.exists(row["file"])
    flat = f"{sys.argv[3]}/{row['name']}.json"
    if not os.path.exists(flat):
        continue
    doc = json.load(open(flat))
    classes = {c["name"]: c for c in doc.get("classes", [])}
    gpus = [g["id"] for n in doc["nodes"] for g in n["gpus"]]
    assert (row["gpus"], row["servers"]) == (len(gpus), len(doc["nodes"])), row
    out = {}
    for l in doc["links"]:
        ends = [l["from"]] + ([l["to"]] if l.get("duplex", "full") == "full" else [])
        for end in ends:
            key = l["class"], end
            capacity = l.get("capacity", classes.get(l["class"], {}).get("capacity"))
            out[key] = out.get(key, 0) + l.get("count", 1) * capacity
    best = max((sum(out.get((c, g), 0) for g in gpus), c) for c in {c for c, _ in out if c != "net"})[1]
    assert row["links"] == best and abs(row["capacity"] - min(out.get((best, g), 0) for g in gpus)) < 1e-9, row
PY
expect_exit "list of something" 2 "$blinkc" list dgx1v

# ---- topologies by name ----

"$blinkc" -q topologies/dgx1v.xml -g 1,4,5,6 -o "$work/s.json"
mkdir -p "$work/else/dgx2" "$work/prefix/bin" "$work/prefix/share/blinkc"
cp "$blinkc" "$work/prefix/bin"
cp -r topologies "$work/prefix/share/blinkc"
cd "$work/else" || exit 1
for program in "$blinkc" "$work/prefix/bin/blinkc"; do
	for name in dgx1v dgx1v.xml dgx1v.json; do
		"$program" $name -v -g 1,4,5,6 -o named.json 2>err || not_ok "$name: exit $?"
		expect "$name from another directory" cmp named.json "$work/s.json"
		expect "$name: the file is said" grep -qxE "taken +/.*/topologies/dgx1v\.(xml|json)" err
	done
done
expect "installed: its own file" grep -q "^taken  *$(realpath "$work")/prefix/share/blinkc/topologies/dgx1v.json$" err
"$blinkc" dgx1v -g 1,4,5,6 -o named.json 2>err
expect "without -v it is not said" [ "$(grep -c "^taken" err)" = 0 ]
expect "-q: nothing is said" [ -z "$("$blinkc" -q dgx1v -c reduce -o named.json 2>&1)" ]
"$blinkc" batch -q dgx1v --sizes 8 --collectives reduce -o batch || not_ok "batch of a name: exit $?"
expect "check of a name" "$blinkc" check -q --topology dgx1v batch
expect "convert of a name" cmp <("$blinkc" convert -q dgx1p) <("$blinkc" convert -q "$top/topologies/dgx1p.xml")
expect "a cluster of a name" cmp <("$blinkc" topology -q dgx-a100 --servers 2) \
	<(cd "$top/topologies" && "$blinkc" topology -q dgx-a100.xml --servers 2)
expect "lint of a name" "$blinkc" lint -q dgx1v
expect "a directory is no topology" cmp <("$blinkc" convert -q dgx2) <("$blinkc" convert -q "$top/topologies/dgx2.xml")
"$blinkc" convert -q dgx1p -o own.json
cp own.json dgx1v
expect "a file here wins" cmp <("$blinkc" convert -q dgx1v 2>err) own.json
expect "a file here: nothing to say" [ -z "$("$blinkc" convert dgx1v 2>&1 >/dev/null)" ]
rm dgx1v
expect_exit "a name that is none" 8 "$blinkc" dgx1x
expect "what was meant" grep -q 'did you mean dgx1p or dgx1v' "$work/err"
expect_exit "nothing like it" 8 "$blinkc" convert -q nowhere-at-all
expect "the list is named" grep -q 'blinkc list' "$work/err"
expect_exit "a path is no name" 8 "$blinkc" ./dgx1v
expect_exit "nor one of a directory above" 8 "$blinkc" convert ../dgx1v
expect_exit "an empty name" 8 "$blinkc" convert ''
expect_exit "a hidden name" 8 "$blinkc" convert ..
cd "$top" || exit 1
