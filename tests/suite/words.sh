# What a newcomer types and reads: kinds of files, spellings, mistyped words, help and its examples, pages on a
# terminal.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

mkdir "$work/d"
ln -s "$top/topologies" "$work/d/topologies"
cd "$work/d" || exit 1
v=topologies/dgx1v.xml

# says NAME CODE TEXT COMMAND...: it exits so, with TEXT on the one line of stderr
says() {
	local name=$1 code=$2 text=$3
	shift 3
	expect_exit "$name" "$code" "$@"
	grep -qF -e "$text" "$work/err" || not_ok "$name: want \"$text\": $(head -c 300 "$work/err")"
}

# ---- what a file is ----

"$blinkc" -q $v -g 0-2 -o s.json
"$blinkc" -q $v -g 0-2 -o s.cu
"$blinkc" show s.json -o s.svg
"$blinkc" batch -q $v --sizes 3 -o batch
"$blinkc" diff s.json s.json -o d.json
"$blinkc" report -q batch -o r.html
cp batch/index.json i.json
"$blinkc" convert i.json -o i.lookup
printf '<?xml version="1.0"?>\n<!-- of NCCL -->\n<system version="1"><cpu numaid="0"/></system>\n' >nccl.xml
printf '<graphs version="1"/>\n' >graph.xml
printf '<algo name="x" ngpus="2"></algo>\n' >msccl.xml
printf '{ "name": "x", "collective": "allreduce", "protocol": "Simple", "inplace": true, "gpus": [] }\n' >mscclpp.json
printf '%s\n' '<?xml version="1.0"?>' '<!DOCTYPE topology SYSTEM "hwloc2.dtd">' \
	'<topology version="2.0"><object type="Machine"/></topology>' >hwloc.xml
printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0-3\nGPU1\tNV1\t X \t0-3\n' >smi.txt
printf '#include <stdio.h>\n' >a.c
printf 'hello\n' >plain
printf ' \n' >blank
: >none
printf '\177ELF\2\1\1' >program
printf '\37\213\10\0' >packed.gz
printf 'a\1\2\3b' >bytes
mkdir empty
# A file, what it is called, and what helps where a schedule is wanted.
cat >kinds <<'END'
topologies/dgx1v.xml|a topology: want a schedule; blinkc FILE compiles one
topologies/dgx1v.json|a topology: want a schedule; blinkc FILE compiles one
i.json|an index of schedules: want a schedule; name one of those that it names, or its directory
s.cu|source code of a schedule: want a schedule: the file in JSON that the code was made from
a.c|source code: want a schedule
nccl.xml|a topology of NCCL or RCCL: want a schedule; blinkc FILE compiles one
graph.xml|a graph dump of NCCL (NCCL_GRAPH_DUMP_FILE): want a schedule
hwloc.xml|a topology of hwloc: want a schedule; blinkc FILE compiles one
smi.txt|output of nvidia-smi topo -m: want a schedule; blinkc FILE compiles one
s.svg|a picture in SVG: want a schedule
r.html|a page in HTML: want a schedule
d.json|differences of blinkc diff: want a schedule
plain|plain text: want a schedule
blank|an empty file: want a schedule
none|an empty file: want a schedule
program|a program or shared object: want a schedule
packed.gz|a compressed file: want a schedule
bytes|a binary file: want a schedule
i.lookup|the lookup file of an index: want a schedule; name its directory
END
while IFS='|' read -r file text; do
	says "check $file" 3 "$file: $text" "$blinkc" check "$file"
	# In the quick check the other verbs see the first kinds.
	n_kinds=$((${n_kinds:-0} + 1))
	[ "$full" ] || [ $n_kinds -le 4 ] || [ $file = none ] || continue
	says "diff $file" 3 "$file: $text" "$blinkc" diff -q s.json "$file"
	says "convert $file" 3 "$file: $text" "$blinkc" convert --format cu "$file"
	# A topology is drawn, and an ELF file is loaded by the dynamic linker.
	case $text in
	*"compiles one") ;;
	*) says "show $file" 3 "$file: $text" "$blinkc" show "$file" ;;
	esac
	[ $file = program ] || says "blink-perf $file" 3 "$file: $text" "$perf" "$file"
done <kinds
for verb in "diff -q s.json" "convert --format cu" show; do
	# shellcheck disable=SC2086
	says "$verb msccl.xml" 3 "msccl.xml: an algorithm of MSCCL: want a schedule" "$blinkc" $verb msccl.xml
	# shellcheck disable=SC2086
	says "$verb mscclpp.json" 3 "mscclpp.json: a plan of MSCCL++: want a schedule" "$blinkc" $verb mscclpp.json
done
says "a schedule for a topology" 3 \
	"s.json: a schedule: want a topology; blinkc show FILE draws what there is" "$blinkc" s.json
says "an index for a topology" 3 "i.json: an index of schedules: want a topology" "$blinkc" batch i.json -o x
says "an index for a topology, to convert" 3 "i.json: an index of schedules: --format json: want --format lookup" \
	"$blinkc" convert i.json
says "a lookup file for an index" 3 \
	"i.lookup: the lookup file of an index: want an index of schedules, as the index.json beside it" \
	"$blinkc" convert i.lookup --format lookup
says "a program for a topology" 3 "program: a program or shared object: want a topology" "$blinkc" program
says "a graph for a topology" 3 "NCCL_TOPO_DUMP_FILE" "$blinkc" graph.xml
says "a schedule for an index" 3 "s.json: a schedule: want an index of schedules" "$perf" s.json -g 0,1
says "a directory for a topology" 8 "empty: a directory: want a file" "$blinkc" empty
for verb in show report; do
	says "$verb of an empty directory" 8 \
		"empty: a directory without index.json: want one that blinkc batch wrote" "$blinkc" $verb empty
	says "$verb of nothing" 8 "nowhere/x: No such file or directory" "$blinkc" $verb nowhere/x
done
says "report of a file" 8 "s.json: not a directory: want one that blinkc batch wrote" "$blinkc" report s.json
says "blink-perf of an empty directory" 8 "empty: a directory without index.json" "$perf" empty

# ---- what was meant ----

says "a mistyped verb" 2 "bacth: no such verb, and no such file: blinkc help lists the verbs; did you mean batch?" \
	"$blinkc" bacth $v -o x
says "a mistyped verb alone" 2 "did you mean check?" "$blinkc" chek
says "a verb behind options" 2 "convert: want the verb first, before options: blinkc convert ..." \
	"$blinkc" -q convert $v -o x.xml
says "a word before a file" 2 "frob: no such verb, and no such file: blinkc help lists the verbs" "$blinkc" frob $v
says "a file that is not there" 8 "frob.xml: " "$blinkc" frob.xml
says "names of machines are no verbs" 2 "2 topology files: want one" "$blinkc" dgx1v dgx2
says "a collective before a topology" 2 "allreduce: a collective: want the topology first, then -c allreduce" \
	"$blinkc" allreduce dgx1v
says "a collective behind a topology" 2 "AllReduce: a collective: want -c AllReduce" "$blinkc" dgx1v AllReduce
says "a part of a machine's name" 8 "did you mean dgx-h100, dgx-h100-nvls or superpod-h100? blinkc list" \
	"$blinkc" H100
for verb in simulate check; do
	says "$verb of a machine" 3 \
		"dgx1v: a machine that comes along: want a schedule; blinkc dgx1v -o FILE compiles one" \
		"$blinkc" $verb dgx1v
done
says "report of a machine" 3 \
	"dgx1v: a machine that comes along: want a directory; blinkc batch dgx1v -o DIR writes one" \
	"$blinkc" report dgx1v
says "one GPU, where four were meant" 3 \
	"--gpus: one GPU, gpu4: want at least 2 for a collective, as 0-3; blinkc advise -n N" \
	"$blinkc" dgx1v --gpus 4
says "a number for a file of sets" 8 \
	"--gpus: 4: no such file: want one with a list of GPUs in each line; -n N takes all" \
	"$blinkc" advise dgx1v -g 4
says "help of no verb" 2 "did you mean convert?" "$blinkc" help convret
says "a mistyped option" 2 "--colective=reduce: no such option; did you mean --collective?" \
	"$blinkc" --colective=reduce $v
says "an option of another verb" 2 "--sizes: not an option of blinkc compile: want it with batch" "$blinkc" $v --sizes 2
says "a plural of another verb" 2 "; or --size" "$blinkc" $v --sizes 64K
says "a singular is no prefix" 2 "--size: not an option of blinkc batch: " "$blinkc" batch $v --size 3 -o x
says "a singular of another verb" 2 "; or --collectives" "$blinkc" tune $v -c allreduce -o x
says "an option of another verb, by its letter" 2 \
	"--sizes: not an option of blinkc compile: want it with batch" "$blinkc" $v -n 2
says "a prefix of several" 2 "--ma: no such option: want one of --matrix, --max-depth, --max-trees" "$blinkc" --ma 2 $v
expect "a prefix of one, though other verbs have more" "$blinkc" -q --collectiv reduce $v -g 0,1 -o x.json
says "a mistyped collective" 2 "did you mean broadcast?" "$blinkc" -c brodcast $v
says "a mistyped collective of a batch" 2 "did you mean allgather?" "$blinkc" batch --collectives \
	reduce,algather $v -o x
says "a mistyped algorithm" 2 "did you mean onehop?" "$blinkc" -a onehpo $v
says "a mistyped format" 2 \
	"--format: jsn: want json, compact, cu, cuda-kernel, nccl-graph, msccl, mscclpp, mscclpp-packets or chakra" \
	"$blinkc" --format jsn $v
says "a mistyped class" 2 "did you mean nvlink?" "$blinkc" -l pcie,nvlnk $v
says "a mistyped kind of roots" 2 "did you mean best?" "$blinkc" batch --roots bets $v -o x
says "a mistyped difference" 2 "did you mean trees?" "$blinkc" diff --fail-on rate,tres s.json s.json
says "blink-perf: a mistyped option" 2 "did you mean --gpus?" "$perf" --gups 0,1 batch
says "blink-perf: a mistyped collective" 2 "did you mean reduce?" "$perf" --collective redcue batch
says "nothing like it" 2 "--quux: no such option; blinkc compile --help lists them" "$blinkc" --quux $v

# ---- spellings, and lists of GPUs ----

for name in all_reduce AllReduce ALL-REDUCE; do
	"$blinkc" -q -c $name $v -g 0-2 -o x.json
	expect "-c $name" cmp x.json s.json
	expect "show -c $name" "$blinkc" show batch -c $name -g 0-2
	expect "blink-perf --collective $name" "$perf" batch -g 0-2 --collective $name -b 1K -e 1K -n 1 -w 0
done
expect "--collectives in other spellings" "$blinkc" batch -q $v --sizes 3 --collectives \
	all_to_all,ReduceScatter,All-Gather -o spelled
expect "files have the names of the format" test \
	"$(grep -o '"collective":"[^"]*"' spelled/index.json | sort -u | tr '\n' ' ')" \
	= '"collective":"allgather" "collective":"alltoall" "collective":"reducescatter" '
sed 's/"collective": "allreduce"/"collective": "AllReduce"/' s.json >x.json
expect_exit "and no others" 3 "$blinkc" check x.json

"$blinkc" topology --servers 2 $v -o two.json
# gpus LIST WANT: the ids of the GPUs, in order, everywhere
gpus() {
	"$blinkc" -q -l all two.json -g "$1" -o x.json || { not_ok "-g $1"; return; }
	got=$(oracle snippet --field x.json '" ".join(r["gpu"] for r in d["topology"]["ranks"])')
	if [ "$got" = "$2" ]; then ok "-g $1"; else not_ok "-g $1: $got"; fi
	printf '%s\n' "$1" | "$blinkc" batch -q -l all two.json -g - -o lists
	expect "show: $1" grep -q "^topology .* ranks: $2;" <("$blinkc" show lists -g "$1" 2>&1)
	expect "blink-perf: $1" "$perf" lists -g "$1" -b 1K -e 1K -n 1 -w 0
	rm -rf lists
}
gpus 1-3 "s0/gpu1 s0/gpu2 s0/gpu3"
gpus s0:0-1,s1:3 "s0/gpu0 s0/gpu1 s1/gpu3"
gpus "s1:2,0 s0:5" "s1/gpu2 s1/gpu0 s0/gpu5"
gpus s1:gpu4,s1/gpu0 "s1/gpu4 s1/gpu0"
gpus "CUDA_VISIBLE_DEVICES=7,9;0" "s0/gpu7 s1/gpu1 s0/gpu0"
gpus "gpu:3(IDX:0-1,12)" "s0/gpu0 s0/gpu1 s1/gpu4"
while IFS='|' read -r list text; do
	says "-g '$list'" 3 "--gpus: $text" "$blinkc" two.json -g "$list"
	n_lists=$((${n_lists:-0} + 1))
	[ "$full" ] || [ $n_lists -le 3 ] || continue
	says "show -g '$list'" 3 "--gpus: " "$blinkc" show batch -g "$list"
	says "blink-perf -g '$list'" 2 "--gpus: " "$perf" batch -g "$list"
done <<'END'
0-16|"0-16": 2 x dgx1v has no such GPU: want an index 0 to 15, a range as 0-15, or an id, as s0/gpu0
s1:6-8|"s1:6-8": want a GPU of that server, by index or id
s2:0|"s2:0": 2 x dgx1v has no such GPU
0-999999999999|"0-999999999999": 2 x dgx1v has no such GPU
3-1|"3-1": want a GPU by index or id, or a range as 0-3
1-|"1-": want a GPU by index or id, or a range as 0-3
1--2|"1--2": want
0,2-4,3|s0/gpu3 is given twice: want each GPU once
0,,1|"0,,1": want GPUs by index or id, or ranges as 0-3, comma separated
s0:|"s0:": want GPUs
END
says "an index has the name of its machine" 3 '"99": dgx1v has no such GPU' "$blinkc" show batch -g 99
expect_exit "nothing is called (null)" 3 "$blinkc" show batch -g 99
grep -qF '(null)' "$work/err" && not_ok "$(cat "$work/err")"
"$blinkc" batch -q $v --sizes 3 --collectives broadcast,gather -o rooted
expect "blink-perf: a root by id" grep -q '^# collective   broadcast over 3 ranks, root 2, of GPUs 5,1,4$' \
	<("$perf" rooted -g 5,1,4 -r gpu4 --collective broadcast -b 1K -e 1K -n 1 -w 0)
says "blink-perf: a root that is none of the job" 2 \
	"--root: gpu7: want a rank, 0 to 2, or the id of a GPU of the job, as gpu5" \
	"$perf" rooted -g 5,1,4 -r gpu7 --collective broadcast
# Ranks are numbered as -g has them: the block of rank 1 is that of the second GPU.
"$blinkc" show rooted -g 5,1,4 -c gather -r gpu4 >x.txt
expect "show: ranks in the order of -g" grep -q '^topology .*, 3 ranks: gpu5 gpu1 gpu4;' x.txt
expect "show: the root among them" grep -qx 'collective  gather from root 2 (gpu4)' x.txt
expect "show: blocks of these ranks" grep -q 'the block of gpu1, .*gpu1 \[1\] → gpu5 \[0\] → gpu4 \[2\]' x.txt

# ---- the table of a batch ----

oracle snippet - >chain.json <<'END'
import json
classes = ["nvlink", "xgmi", "c2c", "pcie", "qpi"]
print(json.dumps({"format": "blink-topology", "version": 1, "name": "chain",
                  "nodes": [{"id": "n", "gpus": [{"id": f"g{i}"} for i in range(6)]}],
                  "links": [{"from": f"g{i}", "to": f"g{i + 1}", "class": c, "capacity": 10, "duplex": "full"}
                            for i, c in enumerate(classes)]}))
END
"$blinkc" batch -l all chain.json -o chain 2>table
expect "every set of links has a column" oracle snippet - table chain/index.json <<'END'
import json, re, sys
table, jobs = open(sys.argv[1]).read().splitlines(), json.load(open(sys.argv[2]))["schedules"]
names = [n for line in table if line.startswith(" GPUs ") for n in re.findall(r"on (\S+)", line)]
totals = [int(n) for line in table if line.startswith("  all ") for n in line.split()[2:]]
assert len(names) == len(set(names)) == len(totals) == 15, names
assert sum(totals) == len({j["file"] for j in jobs}) == 15, totals
END

# ---- help ----

verbs >verbs.txt
for verb in $(cat verbs.txt); do
	"$blinkc" help "$verb" >help.txt
	expect "$verb --help is help $verb" cmp help.txt <("$blinkc" "$verb" --help)
	expect "$verb: at least two examples" test "$(sed '1,/^Examples:/d' help.txt | grep -c '^  # ')" -ge 2
	expect "$verb: lines of 79 columns, but for commands" test \
		-z "$(grep -vE '^  [^#0-9 -]' help.txt | awk 'length($0) > 79')"
	others=$(grep -vx -e "$verb" verbs.txt | tr '\n' '|')
	expect "$verb: its options alone" test \
		-z "$(sed -n '/^Options:/,/^Examples:/p' help.txt | grep -E "; (${others%|}): ")"
	want=$(sed -nE 's/^  ([0-9]+)  .*/\1/p' help.txt | grep -vx '[01278]' | tr '\n' ' ')
	[ "$verb" != help ] || continue
	page=$(sed -n '/^\.Sh EXIT STATUS/{n;p}' "$top/man/blinkc-$verb.1" | grep -oE '[0-9]+' |
		grep -vx '[01278]' | tr '\n' ' ')
	expect "$verb: exit statuses of the page" test "$want" = "$page"
done
# The examples, one after the other: they use files of each other. In the quick test tune looks at two sizes.
mkdir "$work/e"
ln -s "$top/topologies" "$top/examples" "$work/e"
for verb in $(verbs); do
	less=
	[ "$full" ] || [ "$verb" != tune ] || less=' --size 64K,1M'
	while IFS= read -r line; do
		(cd "$work/e" && PATH=$build:$PATH on_machine "$top/topologies/dgx1v.xml" bash -c "$line$less") \
			>"$work/out" 2>"$work/err" </dev/null
		case $?$verb in
		0* | 9diff) ok "example: $line" ;;
		*) not_ok "example: $line: $(head -c 300 "$work/err")" ;;
		esac
	done < <("$blinkc" help "$verb" | sed '1,/^Examples:/d;/^$/,$d' | grep -v '^  # ' | sed 's/^  //')
done
expect "blinkc --help | head" bash -c '
	{ "$1" --help 2>err.txt; echo >>ended; } | head -1
	while [ ! -e ended ]; do sleep 0.1; done
	! [ -s err.txt ]' - "$blinkc"
expect_exit "blinkc alone says what it wants" 2 "$blinkc"

# ---- pages on a terminal of 80 columns ----

if command -v mandoc >/dev/null; then
	for page in "$top"/man/*.[1-9]; do
		mandoc -Tutf8 -Owidth=80 "$page" >page.txt
		oracle snippet - "$page" page.txt >"$work/out" 2>&1 <<'END'
# Commands, what they print and files are as they are: blocks of literal text. All else fits.
import re, sys
source, text = (open(name).read() for name in sys.argv[1:])
def plain(line):
    for escape, text in ("\\&", ""), ("\\e", "\\"), ("\\(mi", "-"), ("\\-", "-"), ("\\(aq", "'"):
        line = line.replace(escape, text)
    return re.sub(r"\s+", " ", line.strip())

literal = {plain(line)
           for block in re.findall(r"(?ms)^\.Bd -literal.*?\n(.*?)^\.Ed", source) for line in block.splitlines()}
for line in re.sub(".\b", "", text).splitlines():
    line = line.expandtabs()
    if len(line) > 80 and re.sub(r"\s+", " ", line.strip().replace("−", "-")) not in literal:
        print(len(line), line)
END
		if [ -s "$work/out" ]; then
			not_ok "$(basename "$page"): wider than 80 columns: $(head -3 "$work/out")"
		else
			ok "$(basename "$page") fits 80 columns"
		fi
	done
else
	skip "pages on a terminal: mandoc is not there"
fi
