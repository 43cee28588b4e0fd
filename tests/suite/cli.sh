# The command line: options, exit codes, where output goes, and that the same request gives the same bytes.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# A list of short words; the commands below run where they leave nothing behind but in $work.
v=$top/topologies/dgx1v.xml
mkdir "$work/d"
cd "$work/d" || exit 1
shopt -s nullglob dotglob

# call ARGUMENT...: stdout, stderr and exit code to $work/out, $work/err and $got
call() {
	"$blinkc" "$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
}

# fails NAME CODE TEXT ARGUMENT...: so, with TEXT in one line on stderr, nothing on stdout, nothing left in this
# directory
fails() {
	local name=$1 code=$2 text=$3 line files
	shift 3
	call "$@"
	echo "$got" >>"$work/met"
	IFS= read -rd '' line <"$work/err"
	files=(*)
	if [ $got != "$code" ]; then
		not_ok "$name: exit $got, want $code: ${line:0:300}"
	elif [[ $line != 'blinkc: '*$'\n' || ${line%$'\n'} == *$'\n'* ]]; then
		not_ok "$name: want one line on stderr that starts with blinkc: and got ${line:0:300}"
	elif [[ $line != *"$text"* ]]; then
		not_ok "$name: want \"$text\" on stderr: $line"
	elif [ -s "$work/out" ]; then
		not_ok "$name: something on stdout"
	elif [ ${#files[@]} != 0 ]; then
		not_ok "$name: left ${files[*]}"
	else
		ok "$name"
	fi
}

# does NAME ARGUMENT...: exit 0
does() {
	local name=$1
	shift
	call "$@"
	if [ $got = 0 ]; then ok "$name"; else not_ok "$name: exit $got: $(head -c 300 "$work/err")"; fi
}

# same NAME FILE FILE
same() { if cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1: $(cmp "$2" "$3" 2>&1)"; fi; }


# empty NAME FILE
empty() { if [ -s "$2" ]; then not_ok "$1: $(head -c 300 "$2")"; else ok "$1"; fi; }

# alone NAME FILE...: this directory holds just these; then they go
alone() {
	local name=$1
	shift
	if [ "$(ls -A)" = "$(printf '%s\n' "$@" | sort)" ]; then
		ok "$name"
	else
		not_ok "$name: there is $(ls -A | tr '\n' ' ')"
	fi
	rm -rf -- ./* ./.[!.]*
}

# field FILE EXPRESSION: of the document d
field() { oracle snippet --field "$1" "$2"; }

# field_is NAME FILE EXPRESSION WANT
field_is() {
	local found
	found=$(field "$2" "$3" 2>&1)
	if [ "$found" = "$4" ]; then ok "$1"; else not_ok "$1: $3 is $found, want $4"; fi
}

# ---- help and version ----

for option in --help -h; do
	does "$option" $option
	empty "$option: stderr" "$work/err"
done
cp "$work/out" "$work/help"
expect "--help is one screen of 24 lines and 80 columns" awk \
	'{ if (length($0) > 79) exit 1 } END { exit NR > 23 }' "$work/help"
grep -oE '^	X\([A-Z]+, [a-z_]+, "[a-z]+", ' "$top/src/verb/verb.h" |
	sed -E 's/.*, ([a-z_]+), .*/\1/; s/_/-/' >"$work/verbs"
expect "--help lists the verbs" diff "$work/verbs" <(verbs)
for verb in $(verbs); do
	does "$verb --help" $verb --help
	has "$verb --help names it" "blinkc $verb " "$work/out"
	cat "$work/out" >>"$work/help-of-verbs"
done
does "--help goes before bad operands" --help /nowhere /nowhere
for option in --version -V; do
	does "$option" $option
	has "$option says which" "^blinkc $(sed -n 's/^VERSION = //p' "$top/Makefile")\$" "$work/out"
done

# What the source accepts, the help of a verb lists, and a test below uses.
grep -oE 'X\(OPT_[A-Z_]+, "[a-z-]+", [^,]*' $(find "$top/src" -name options.h) |
	sed -E "s/.*\"(.*)\", '?([a-zA-Z0])'?/\1 \2/" >"$work/options"
[ "$(wc -l <"$work/options")" -ge 18 ] || not_ok "options: found only $(wc -l <"$work/options") in the source"
used=" "
while read -r long short; do
	left="--$long"
	[ "$short" = 0 ] || left="-$short, --$long"
	has "some verb's --help lists $left" "^ +$left( |\[|\$)" "$work/help-of-verbs"
done <"$work/options"
listed=$(sed -nE 's/^ +(-., )?--([a-z-]+).*/\2/p' "$work/help-of-verbs" | sort -u | wc -l)
expect "no verb's --help lists others" test "$listed" = "$(wc -l <"$work/options")"
sed -nE 's/^\tX\(([A-Z_]+), ([0-9]), "(.*)"\).*/  \2  \3/p' $(find "$top/src" -name status.h) >"$work/codes"
grep -E '^  [0-9]  ' "$work/help-of-verbs" | sort -u >"$work/listed"
same "the verbs' --help lists the exit codes" "$work/codes" "$work/listed"

# On a terminal the summary alone, and how to get the schedule; with what asks for it, the schedule.
terminal() { script -qec "$(printf '%q ' "$@")" /dev/null </dev/null | tr -d '\r' >"$work/out"; }
if command -v script >/dev/null; then
	terminal "$blinkc" -g 0,1 "$v"
	has "on a terminal: the summary" '^rate        25 GB/s' "$work/out"
	has "on a terminal: how to write the file" '^file        none: -o FILE writes the schedule' "$work/out"
	expect "on a terminal: no schedule" test "$(grep -c '"trees"' "$work/out")" = 0
	for option in "-o -" "--format json" -q; do
		# shellcheck disable=SC2086 # two words
		terminal "$blinkc" -g 0,1 $option "$v"
		has "on a terminal, $option: the schedule" '"trees"' "$work/out"
	done
else
	skip "on a terminal: script(1) is missing"
fi

# ---- each option ----

# pair LONG SHORT ARGUMENT...: works, and both spellings give the same bytes on stdout and stderr
pair() {
	local long=$1 short=$2
	shift 2
	does "--$long $*" --"$long" "$@"
	cp "$work/out" "$work/out-long"
	cp "$work/err" "$work/err-long"
	used="$used$long "
	if [ -n "$short" ]; then
		call "-$short" "$@"
		same "-$short is --$long" "$work/out" "$work/out-long"
		same "-$short is --$long on stderr" "$work/err" "$work/err-long"
		if [ $# -gt 1 ]; then
			call "-$short$1" "${@:2}"
			same "-$short$1 is --$long $1" "$work/out" "$work/out-long"
		fi
	fi
	if [ $# -gt 1 ]; then
		call "--$long=$1" "${@:2}"
		same "--$long=$1 is --$long $1" "$work/out" "$work/out-long"
	fi
}

does "defaults" "$v"
has "the summary is on stderr" '^collective  allreduce$' "$work/err"
cp "$work/out" "$work/default.json"
# That takes long, for its ILP. A reduce does not, and serves where any schedule does.
"$blinkc" -q -c reduce "$v" >"$work/reduce.json"
does "the verb compile is the default" compile -c reduce "$v"
same "the same bytes" "$work/out" "$work/reduce.json"
pair collective c broadcast "$v"
field_is "--collective" "$work/out-long" 'd["collective"], d["root"]' "('broadcast', 0)"
does "--collective reduce" -c reduce "$v"
field_is "--collective reduce" "$work/out" 'd["collective"], d["root"]' "('reduce', 0)"
pair root r 3 -c reduce "$v"
field_is "--root" "$work/out-long" 'd["root"]' 3
pair gpus g 3,gpu0,2,gpu1 "$v"
field_is "--gpus: by index or id, in the order given" "$work/out-long" '[r["gpu"] for r in d["topology"]["ranks"]]' \
	"['gpu3', 'gpu0', 'gpu2', 'gpu1']"
pair links l pcie,qpi -g 0,1,4 "$v"
field_is "--links" "$work/out-long" 'sorted({l["class"] for l in d["topology"]["links"]})' "['pcie', 'qpi']"
pair epsilon "" 0.2 -c reduce "$v"
field_is "--epsilon" "$work/out-long" 'd["generator"]["options"]["epsilon"]' 0.2
pair tolerance "" 0.3 -c reduce "$v"
field_is "--tolerance" "$work/out-long" 'd["generator"]["options"]["tolerance"]' 0.3
pair algorithm a onehop -g 0,1,2 "$v"
field_is "--algorithm" "$work/out-long" 'd["algorithm"], d["generator"]["options"]["algorithm"]' "('onehop', 'onehop')"
has "--algorithm says what its trees can do" '^best +50 GB/s of one-hop trees, by the linear program$' "$work/err-long"
does "--algorithm trees" -a trees -c reduce "$v"
same "--algorithm trees is the default" "$work/out" "$work/reduce.json"
pair packing p mwu -c reduce "$v"
field_is "--packing" "$work/out-long" \
	'd["generator"]["options"]["packing"], d["generator"]["options"]["tolerance"]' "('mwu', 0.05)"
field_is "exact is the default" "$work/default.json" \
	'd["generator"]["options"]["packing"], d["generator"]["options"]["tolerance"]' "('exact', 0)"
field_is "and reaches the bound" "$work/default.json" 'd["rate"]["achieved"] == d["rate"]["bound"]' True
does "--packing exact" -p exact -c reduce "$v"
same "--packing exact is the default" "$work/out" "$work/reduce.json"
pair max-depth "" 4 -c broadcast "$v"
field_is "--max-depth" "$work/out-long" 'd["generator"]["options"]["max_depth"]' 4
has "--max-depth keeps to it" '^trees .*, depth 4$' "$work/err-long"
pair max-trees "" 2 -c broadcast "$v"
field_is "--max-trees" "$work/out-long" 'd["generator"]["options"]["max_trees"], len(d["trees"]) <= 2' "(2, True)"
pair budget "" 1m -c reduce "$v"
field_is "--budget" "$work/out-long" 'd["generator"]["options"]["budget"]' True
does "--pareto" --pareto -g 0,1,2 "$v"
empty "--pareto: stderr" "$work/err"
has "--pareto: a table" '^trees  depth    rate GB/s  ratio to the bound of 50 GB/s$' "$work/out"
has "--pareto: its first line" '^    2      2           50  1\.000$' "$work/out"
used="${used}pareto "
does "--hybrid" --hybrid "$v"
cp "$work/out" "$work/hybrid.json"
field_is "--hybrid" "$work/out" \
	'[p["links"] for p in d["parts"]], d["generator"]["options"]["hybrid"], d["generator"]["options"]["links"]' \
	"([['nvlink'], ['pcie', 'qpi']], 'peer', ['nvlink', 'pcie', 'qpi'])"
has "--hybrid: the summary" '^hybrid      nvlink 85.7143 \+ pcie,qpi 6 GB/s; 2200 us to set up pcie,qpi; '\
'messages up to 188.6 MB go over nvlink alone$' "$work/err"
"$blinkc" -q --hybrid -c reduce "$v" >"$work/want"
does "--hybrid=peer" --hybrid=peer -c reduce "$v"
same "--hybrid=peer is --hybrid" "$work/out" "$work/want"
does "--hybrid=host" --hybrid=host -c reduce "$v"
field_is "--hybrid=host" "$work/out" \
	'd["generator"]["options"]["hybrid"], [p["setup"] for p in d["parts"]]' "('host', [0, 0])"
used="${used}hybrid "
does "check --jobs" check --jobs 2 "$work/default.json" "$work/hybrid.json"
cp "$work/out" "$work/out-long"
does "check -j" check -j2 "$work/default.json" "$work/hybrid.json"
same "-j is --jobs" "$work/out" "$work/out-long"
does "check --junit" check --junit j.xml "$work/default.json"
has "--junit" '<testsuite name="blinkc check" tests="1" failures="0"' j.xml
alone "--junit" j.xml
does "check --github" check --github "$work/default.json"
has "--github" '^::notice title=blinkc check::1 file: 1 valid, 0 invalid; ratio to the bound at least 1.000 ' \
	"$work/out"
does "diff --github --junit" diff --github --junit j.xml "$work/default.json" "$work/default.json"
has "diff --github" '^::notice title=blinkc diff::1 file: 1 same, ' "$work/out"
has "diff --junit" '<testsuite name="blinkc diff" tests="1" failures="0"' j.xml
alone "diff --junit" j.xml
does "check --topology" check --topology "$v" "$work/default.json"
used="${used}jobs junit github topology "
pair size "" 10,1K,3M,2G -g 0,1,2 "$v"
field_is "--size changes no byte" "$work/out-long" 'd["rate"]["achieved"]' 50
has "--size: a line for each" '^  2147483648     42956.5   49.9921$' "$work/err-long"
does "--size of check" check --size 1G "$work/hybrid.json"
has "--size of check" '^  1073741824    1015833480      57908344     11908.4   90.1668     4.638$' "$work/out"
does "--size with --quiet" check -q --size 1G "$work/hybrid.json"
empty "--size with --quiet" "$work/out"
field_is "limits that were not given are not named" "$work/default.json" 'sorted(d["generator"]["options"])' \
	"['epsilon', 'gpus', 'links', 'minimise', 'packing', 'tolerance']"
few=$(field "$work/default.json" 'len(d["trees"])')
pair no-minimise "" "$v"
field_is "--no-minimise keeps more trees" "$work/out-long" "len(d['trees']) > $few" True
u=$top/topologies/pcie-8gpu.xml
does "neither --quiet nor --verbose" "$u"
cp "$work/out" "$work/plain.json"
pair quiet q "$u"
empty "--quiet" "$work/err-long"
same "--quiet changes no byte" "$work/out-long" "$work/plain.json"
pair verbose v "$u"
same "--verbose changes no byte" "$work/out-long" "$work/plain.json"
if [ "$(wc -l <"$work/err-long")" -gt 6 ]; then
	ok "--verbose says more than the summary"
else
	not_ok "--verbose: $(cat "$work/err-long")"
fi
pair synthetic "" "server:2 gpu:2 mesh:50 net:25"
field_is "--synthetic" "$work/out-long" '[r["gpu"] for r in d["topology"]["ranks"]], d["rate"]["bound"]' \
	"(['s0/gpu0', 's0/gpu1', 's1/gpu0', 's1/gpu1'], 50)"
does "topology --servers 3" topology --servers 3 "$v"
field_is "--servers" "$work/out" '[n["id"] for n in d["nodes"]]' "['s0', 's1', 's2']"
does "topology --nic-rate" topology --servers 4 --nic-rate=25 --leaf 2 --oversubscription 5 "$v"
field_is "--nic-rate" "$work/out" 'sorted({(l["class"], l.get("capacity")) for l in d["links"]
	if l["from"].endswith("/mlx5_0") and l["class"] == "net"})' "[('net', 25)]"
field_is "--leaf" "$work/out" '[s["id"] for s in d["switches"]]' "['net/leaf0', 'net/leaf1', 'net/spine']"
field_is "--oversubscription" "$work/out" '{l["capacity"] for l in d["links"] if l["to"] == "net/spine"}' "{40}"
does "topology --rails" topology --servers 2 --rails "$v"
field_is "--rails" "$work/out" '[s["id"] for s in d["switches"]]' "['net/rail0', 'net/rail1', 'net/rail2', 'net/rail3']"
used="${used}servers nic-rate leaf oversubscription rails "
does "diff --fail-on --jobs" diff --fail-on order,file --jobs=2 "$work/default.json" "$work/hybrid.json"
call diff --fail-on rate "$work/hybrid.json" "$work/default.json"
echo "$got" >>"$work/met"
if [ "$got" = 9 ] && [ ! -s "$work/err" ]; then
	ok "diff --fail-on rate"
else
	not_ok "diff --fail-on rate: exit $got, $(cat "$work/err")"
fi
has "--fail-on: what fails is shown" '^rate        .* -> 85\.7143 GB/s' "$work/out"
has "--fail-on: what does not fail is shown" '^trees ' "$work/out"
used="${used}fail-on jobs "
pair format "" cu -c reduce "$v"
has "--format cu" '__global__|blink_program|#include' "$work/out-long"
does "--output" --output=o.json -c reduce "$v"
empty "--output: stdout" "$work/out"
same "--output" o.json "$work/reduce.json"
does "-o" -o p.json -c reduce "$v"
same "-o" p.json "$work/reduce.json"
alone "-o and --output" o.json p.json
"$blinkc" -q "$v" -g 0,1,2 -o "$work/three.json"
does "show --tree" show --tree 1,0 "$work/three.json"
cp "$work/out" "$work/out-long"
does "show -t" show -t 1,0 "$work/three.json"
same "-t is --tree" "$work/out" "$work/out-long"
does "show --layout own" show --format svg --layout own "$work/three.json"
cp "$work/out" "$work/own.svg"
does "show --svg" show --svg "$work/three.json"
same "show --svg is --format svg" "$work/out" "$work/own.svg"
expect_exit "show --svg --format dot" 2 "$blinkc" show --svg --format dot "$work/three.json"
used="${used}tree layout svg "
used="${used}output help version "
does "options behind the operand" "$v" -q -g 0,1
empty "options behind the operand" "$work/err"
does "several letters in one word" -qvg0,1 "$v"
does "--: no options behind it" -q -c reduce -- "$v"
while read -r long short; do
	[[ $used == *" $long "* ]] || grep -qE -- " (--$long|-$short)[ =]" "$top"/tests/suite/*.sh ||
		not_ok "--$long: no test uses it"
done <"$work/options"

# ---- bad usage: exit 2 ----

fails "nothing at all" 2 "want one"
fails "two topologies" 2 "want one" "$v" "$v"
fails "convert of two" 2 "want one" convert "$v" "$v"
fails "check of none" 2 "want at least one" check
fails "unknown option" 2 "--nothing: no such option" --nothing "$v"
fails "unknown letter" 2 "-Z: no such option" -Z "$v"
fails "unknown letter among others" 2 "-Z: no such option" "$v" -qZv
fails "a prefix, beside an option of another verb" 2 "--siz: no such option; did you mean --sizes?" batch --siz 8 "$v"
fails "ambiguous option" 2 "--v: no such option" --v "$v"
fails "unwanted argument" 2 "--quiet=3: takes no argument" --quiet=3 "$v"
for option in -o -c -r -g -l -p --packing --output --format --collective --root --gpus --links --epsilon \
	--tolerance --max-depth \
	--max-trees --budget --size -j --synthetic; do
	fails "$option without argument" 2 "$option: needs an argument" "$v" $option
done
while read -r verb options; do
	for option in $options; do
		fails "$verb $option without argument" 2 "$option: needs an argument" "$verb" x "$option"
	done
done <<'END'
check --jobs --junit --topology
diff --fail-on
topology --servers --nic-rate --leaf --oversubscription
END
for option in --output=x --collective=reduce --gpus=0,1 --format=json --verbose --max-depth=3 --pareto \
	--budget=1s --hybrid; do
	fails "check $option" 2 "${option%%=*}: not an option of blinkc check" check "$option" "$work/default.json"
done
for option in --collective=reduce --gpus=0,1 --verbose --epsilon=0.1 --no-minimise --max-trees=3 --pareto \
	--budget=1s --hybrid; do
	fails "convert $option" 2 "${option%%=*}: not an option of blinkc convert" convert "$option" "$v"
done
fails "convert --size" 2 "--size: convert --format json: want chakra" convert --size=1 "$v"
for option in --servers=2 --nic-rate=1 --rails --leaf=2 --oversubscription=3; do
	fails "compile $option" 2 "${option%%=*}: not an option of blinkc compile" "$option" "$v"
done
for option in servers leaf; do
	for number in 0 -1 1.0 "" x 8193 99999999999999999999; do
		every 3 || continue
		fails "--$option '$number'" 2 "--$option: " topology --servers 2 --$option="$number" "$v"
	done
done
for option in nic-rate oversubscription; do
	for number in 0 -1 "" x 1e99 nan; do
		every 3 || continue
		fails "--$option '$number'" 2 "--$option: " topology --servers 2 --$option="$number" "$v"
	done
done
for coll in alltoall2 all nothing "" "all reduce"; do
	every 3 || continue
	fails "--collective '$coll'" 2 "--collective: $coll" -c "$coll" "$v"
done
for links in nothing "" nvlink, ,nvlink "nvlink pcie" NVLINK all,nvlink \
	aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; do
	every 3 || continue
	fails "--links '$links'" 2 "--links: " -l "$links" "$v"
done
for number in nan inf -nan 0 0.0009 0.5 1 -0.1 0,05 0x1p-3 "" " 0.1" "0.1 " 0.1x .1 1. 1e 1e999 1e-999 \
	99999999999999999999 --; do
	every 3 || continue
	fails "--epsilon '$number'" 2 "--epsilon: " --epsilon="$number" "$v"
done
for number in nan inf 1 0.991 -0.1 -0 0,05 "" x 1e99 --1; do
	every 3 || continue
	fails "--tolerance '$number'" 2 "--tolerance: " --tolerance="$number" "$v"
done
for number in 0.001 0.49 1e-2 4.9E-1 0.1000000000000000000000000000000000000000001; do
	does "--epsilon $number" -q --epsilon $number -g 0,1,2 "$v"
done
for number in 0 0.99 0.0; do
	does "--tolerance $number" -q --tolerance $number -g 0,1,2 "$v"
done
for option in max-depth max-trees; do
	for number in 0 -1 +1 1.0 1e1 "" x " 1" "1 " 524289 99999999999999999999 0x10 inf --; do
		every 3 || continue
		fails "--$option '$number'" 2 "--$option: " --$option="$number" "$v"
	done
	does "--$option 524288" -q --$option 524288 -g 0,1,2 "$v"
done
for time in 0 0s -1s +1s "" s ms 1h 1S "1 s" " 1s" .5s 1e3 0.0001ms 99999999s 99999999999999999999 inf 1ss; do
	every 3 || continue
	fails "--budget '$time'" 2 "--budget: " --budget="$time" "$v"
done
for time in 1 1.5 10s 500ms 2m 0.5s 1ms; do
	does "--budget $time" -q --budget $time -g 0,1,2 "$v"
done
for option in --max-depth=4 --max-trees=4 --pareto; do
	fails "--packing mwu $option" 2 \
		"--packing: mwu: want exact with --max-depth, --max-trees or --pareto" -p mwu $option "$v"
done
for option in --output=x.json -ox.json --format=json --format=cu; do
	fails "--pareto $option" 2 "--pareto: writes no schedule" --pareto $option "$v"
done
for kind in nothing PEER peer,host 1; do
	fails "--hybrid=$kind" 2 "--hybrid: $kind: want peer or host" --hybrid="$kind" "$v"
done
for option in --links=nvlink -lall --pareto --max-trees=9 "-p mwu"; do
	# shellcheck disable=SC2086 # one word or two
	fails "--hybrid $option" 2 "--hybrid: want none of --links, --pareto, --max-trees and --packing mwu with it" \
		--hybrid $option "$v"
done
does "--hybrid with --packing exact" -q --hybrid -p exact -g 0,1,2 "$v"
for sizes in 0 "" , 1, ,1 1k 1KB 1.5M -1 +1 " 1" 1T 1152921504606846977 1073741825G 99999999999999999999 1,2x; do
	every 3 || continue
	fails "--size '$sizes'" 2 "--size: " --size="$sizes" "$v"
	fails "check --size '$sizes'" 2 "--size: " check --size="$sizes" "$work/default.json"
done
fails "--size of 65" 2 "want up to 64 sizes" --size="$(seq -s, 65)" "$v"
does "--size of 64" -q --size="$(seq -s, 64)" -g 0,1,2 "$v"
does "--size of 2^60" --size=1152921504606846976,1024M,1G,1 --hybrid -g 0,1,2 "$v"
fails "--pareto=3" 2 "--pareto=3: takes no argument" --pareto=3 "$v"
fails "--root of allreduce" 2 "allreduce has no root" -r 0 "$v"
for format in xml canonical nothing "" JSON; do
	every 3 || continue
	fails "compile --format '$format'" 2 "--format: $format" --format "$format" "$v"
done
fails "convert a topology --format cu" 3 "dgx1v.xml: a topology: want a schedule; blinkc FILE compiles one" \
	convert --format cu "$v"
for ending in txt xml JSON cuda "" so; do
	every 3 || continue
	fails "compile -o x.$ending" 2 "no format ends in \".$ending\"" -o "x.$ending" "$v"
done
fails "convert -o x.txt" 2 "no format ends in" convert -o x.txt "$v"
does "convert a schedule" convert "$work/default.json" -o "$work/schedule.cu"
has "it is source code" "blink_program" "$work/schedule.cu"
for packing in nothing "" MWU; do
	fails "--packing '$packing'" 2 "--packing: " --packing "$packing" "$v"
done
fails "--algorithm chains" 2 "--algorithm: chains: want one of trees, onehop, threephase, ring, shared-ring, \
reducescatter-allgather, chain, direct, " -a chains "$v"
for option in "-p mwu" --max-depth=2 --max-trees=4 --pareto; do
	# shellcheck disable=SC2086 # words
	fails "--algorithm onehop $option" 2 \
		"--algorithm: onehop: want trees with --packing mwu, --max-depth, --max-trees or --pareto" \
		-a onehop $option "$v"
	# shellcheck disable=SC2086 # words
	does "--algorithm trees $option" -q -a trees $option -g 0,1,2 -c broadcast "$v"
done
fails "--packing mwu of blocks" 2 "--packing: mwu: want exact for gather" -p mwu -c gather "$v"
does "--packing mwu" -q -p mwu -g 0,1,2 "$v"
does "--packing exact" -q --packing=exact -g 0,1,2 "$v"
does "--budget of mwu" -q -p mwu --budget 10s -c reduce "$v"

# ---- bad choices: exit 3, 5; files: exit 8 ----

for gpus in 8 gpu8 "" , 0, ,0 "0 9" " 0," 0x1 -1 gpu 4294967296 99999999999999999999 0,1,gpu1 0,0; do
	every 3 || continue
	fails "--gpus '$gpus'" 3 "--gpus: " -g "$gpus" "$v"
done
fails "--gpus 3: alone" 3 "want at least 2" -g 3 "$v"
fails "--gpus 1,gpu1: twice" 3 "gpu1 is given twice" -g 1,gpu1 "$v"
for root in 3 -1 gpu3 1.5 "" 99999999999999999999 nvlink; do
	every 3 || continue
	fails "--root '$root' of three" 3 "--root: $root" -c broadcast -g 0,1,2 -r "$root" "$v"
done
does "--root by id" -q -c broadcast -g gpu5,gpu7,gpu4 -r gpu4 "$v"
field_is "--root by id" "$work/out" 'd["root"]' 2
fails "GPUs that no NVLink connects" 5 "no path from gpu0 to gpu7" -g 0,7 -l nvlink "$v"
fails "a class that the machine lacks" 5 "no path" -l xgmi "$v"
fails "--max-depth 3 of an allreduce" 5 \
	"--max-depth: 3: allreduce over these 8 ranks needs at least 4" --max-depth 3 "$v"
fails "--max-trees 7 of eight blocks" 5 "--max-trees: 7: allgather over 8 ranks needs at least 8" \
	-c allgather --max-trees 7 "$v"
fails "--pareto --max-depth 3" 5 "--max-depth: 3: allreduce over these 8 ranks needs at least 4" \
	--pareto --max-depth 3 "$v"
does "--max-depth 2 of a broadcast" -q -c broadcast --max-depth 2 "$v"
does "--max-depth 11, within which one root has trees" -q --max-depth 11 --synthetic "torus:4x4x4@25" --without s5/gpu0
does "--max-trees 8 of eight blocks" -q -c allgather --max-trees 8 "$v"
does "GPUs that only PCIe connects" -q -g 0,7 "$v"
does "--links all" -q -l all "$v"
fails "no such input" 8 "/nowhere/x.xml: No such file" /nowhere/x.xml
fails "a directory for input" 8 "directory" "$top"
fails "check: no such input" 8 "No such file" check /nowhere/x.json
fails "check -q of a topology" 3 'a topology: want a schedule; blinkc FILE compiles one' check \
	"$top/topologies/dgx1v.json"
cat >"$work/ids.json" <<'END'
{ "format": "blink-topology", "version": 1, "name": "ids that look like indices",
  "nodes": [{ "id": "n", "gpus": [{ "id": "2" }, { "id": "1" }, { "id": "zero" }] }],
  "links": [{ "from": "1", "to": "2", "class": "pcie", "capacity": 1 },
            { "from": "2", "to": "zero", "class": "pcie", "capacity": 1 }] }
END
does "an id wins over an index" -q -g 0,1 "$work/ids.json"
field_is "an id wins over an index" "$work/out" '[r["gpu"] for r in d["topology"]["ranks"]]' "['2', '1']"
fails "and then may be given twice" 3 "2 is given twice" -g 0,2 "$work/ids.json"

# ---- check ----

sed 's/"achieved": /&1/' "$work/default.json" >"$work/wrong.json"
does "check" check "$work/default.json"
has "check says so on stdout" ': valid$' "$work/out"
empty "check: stderr" "$work/err"
does "check --quiet" check --quiet "$work/default.json" "$work/default.json"
empty "check --quiet: stdout" "$work/out"
fails "check -q of a wrong one" 6 "rate.achieved" check -q "$work/wrong.json"
fails "check -q of a right and a wrong one" 6 "wrong.json: " check -q "$work/default.json" "$work/wrong.json"

fails "a limit" 4 "nesting" "$top/tests/bad/topology/nesting-too-deep.json"
# 0 by all that went well, 1 by a defect only, 7 by oom.sh
printf '%s\n' 0 1 7 >>"$work/met"
if [ "$(sort -u "$work/met")" = "$(cut -c3 "$work/codes")" ]; then
	ok "every exit code"
else
	not_ok "met only exit codes $(sort -u "$work/met" | tr '\n' ' ')"
fi

# ---- standard input and output ----

"$blinkc" -q -c reduce - <"$v" >"$work/stdin.json"
same "- is standard input, and its name is not in the output" "$work/stdin.json" "$work/reduce.json"
"$blinkc" convert - <"$v" >"$work/out"
same "convert -" "$work/out" "$top/topologies/dgx1v.json"
if "$blinkc" check -q - <"$work/default.json"; then ok "check -"; else not_ok "check -"; fi
"$blinkc" -q -c reduce -o - "$v" >"$work/out"
same "-o - is standard output" "$work/out" "$work/reduce.json"
alone "- makes no file"

expect_exit "standard input is closed" 8 bash -c '"$1" - <&-' - "$blinkc"
expect_exit "standard output is closed" 8 bash -c '"$1" -q -c reduce "$2" >&-' - "$blinkc" "$v"
expect_exit "standard output is closed, for check" 8 bash -c '"$1" check "$2" >&-' - "$blinkc" "$work/default.json"
expect_exit "standard output is closed, for help" 8 bash -c '"$1" --help >&-' - "$blinkc"
expect_exit "nothing to say, so it may be closed" 0 bash -c '"$1" check -q "$2" >&-' - "$blinkc" "$work/default.json"
bash -c '"$1" -q -c reduce "$2" -o all-closed.json <&- >&- 2>&-' - "$blinkc" "$v"
got=$?
[ $got = 0 ] || not_ok "all three closed: exit $got"
same "all three closed" all-closed.json "$work/reduce.json"
alone "all three closed" all-closed.json
expect_exit "a reader that goes away" 8 bash \
	-c 'set -o pipefail; mkfifo pipe; (exec 3<pipe) & exec 4>pipe; wait; "$1" -q --no-minimise "$2" >&4' - \
	"$blinkc" "$v"
rm -f pipe

if [ -c /dev/full ]; then
	fails "-o /dev/full" 8 "No space left" -q -c reduce "$v" -o /dev/full --format json
	expect_exit "-o - to /dev/full" 8 bash -c '"$1" -q -c reduce "$2" -o - >/dev/full' - "$blinkc" "$v"
	expect_exit "check to /dev/full" 8 bash -c '"$1" check "$2" >/dev/full' - "$blinkc" "$work/default.json"
	expect_exit "convert to /dev/full" 8 bash -c '"$1" convert "$2" >/dev/full' - "$blinkc" "$v"
	expect_exit "--help to /dev/full" 8 bash -c '"$1" --help >/dev/full' - "$blinkc"
	if [ -c /dev/full ]; then ok "/dev/full is still a device"; else not_ok "/dev/full was replaced"; fi
else
	skip "/dev/full: there is none"
fi
does "-o /dev/null" -q -c reduce "$v" -o /dev/null
if [ -c /dev/null ]; then ok "/dev/null is still a device"; else not_ok "/dev/null was replaced"; fi
mkfifo pipe
cat pipe >"$work/piped" &
does "-o of a pipe" -q -c reduce "$v" -o pipe --format json
wait
same "-o of a pipe" "$work/piped" "$work/reduce.json"
if [ -p pipe ]; then ok "the pipe is still one"; else not_ok "the pipe was replaced"; fi
alone "-o of a pipe" pipe

# ---- progress: for people who look on ----

# on_terminal FILE ARGUMENT...: standard error is a terminal, and FILE is what it gets
on_terminal() {
	oracle terminal "$1" "$blinkc" "${@:2}"
	got=$?
	[ $got = 0 ] || not_ok "on a terminal: exit $got: $(head -c 300 "$1")"
}

# progress FILE: how often a line was shown, and what is left once the terminal did as told: \r, and escape [J to erase
progress() {
	oracle snippet - "$1" <<'END'
import re, sys
text = open(sys.argv[1], newline="").read().replace("\r\n", "\n")
shown = len(re.findall(r"\r\x1b\[J[^\r\n\x1b]+, [0-9]+\.[0-9] s\r", text))
left = "\n".join(line.split("\r\x1b[J")[-1] for line in text.split("\n"))
left = re.sub("(?m)^budget .*\n", "", left)
print("some" if shown else "none", repr(left))
END
}
# This machine's takes longer than any budget here, and ends with each.
long=$top/topologies/dgx1v.xml
does "--pareto, no terminal" --pareto --budget 600ms "$long"
expect "no progress where standard error is a file" test -z "$(grep -v '^budget ' "$work/err")"
if ! "$python" -c "import pty; pty.openpty()" 2>"$work/err"; then
	skip "progress on a terminal: $(tail -1 "$work/err")"
else
	on_terminal "$work/seen" --pareto --budget 700ms "$long"
	found=$(progress "$work/seen")
	if [ "$found" = "some ''" ]; then
		ok "progress on a terminal, and nothing of it stays"
	else
		not_ok "progress: $found"
	fi
	has "progress says what it is at" 'fewest trees: trying|linear program|pareto' "$work/seen"
	for option in -q ${full:+-v}; do
		on_terminal "$work/seen" $option --pareto --budget 600ms "$long"
		case $(progress "$work/seen") in
		none*) ok "no progress with $option" ;;
		*) not_ok "progress with $option: $(head -c 300 "$work/seen")" ;;
		esac
	done
	on_terminal "$work/seen" -c broadcast "$v" -o x.json
	found=$(progress "$work/seen")
	case $found in
	none*'ratio       1.000'*) ok "no progress of what is done soon, and the summary" ;;
	*) not_ok "a short job on a terminal: $found" ;;
	esac
	alone "progress" x.json
	# Whatever the width, also while it changes: no line reaches the end of the row, and none of it stays.
	ms=750ms
	[ ! "$full" ] || ms=1100ms
	# shellcheck disable=SC2086 # words
	for widths in 25,550:60,650:16 ${full:+19 200 40 12 80,700:30}; do
		oracle terminal --widths $widths "$blinkc" --pareto --budget "$ms" "$long" >"$work/seen"
		oracle snippet - "$work/seen" >"$work/out" 2>&1 <<'END'
import json, sys
*bad, last = open(sys.argv[1]).read().splitlines()
found = json.loads(last)
rest = "".join(found["screen"])
assert not bad, bad
assert found["lines"] > 0, found
assert rest.startswith("budget ") and rest.endswith("there may be better plans"), found
assert rest.count("budget") == 1, found
END
		if [ -s "$work/out" ]; then
			not_ok "a terminal of $widths columns: $(tail -1 "$work/out" | head -c 300)"
		else
			ok "a terminal of $widths columns"
		fi
	done
fi

# ---- a file is there whole, or as it was ----

fails "no such directory" 8 "No such file" -c reduce "$v" -o none/x.json
fails "a file for a directory" 8 "Not a directory" -c reduce "$v" -o "$v/x.json"
mkdir dir.json
call -c reduce "$v" -o dir.json
if [ $got = 8 ] && [ -d dir.json ]; then ok "-o of a directory"; else not_ok "-o of a directory: exit $got"; fi
alone "-o of a directory" dir.json

for bytes in 1 2; do
	write='ulimit -f "$3"; "$1" -q -c reduce "$2" -o x.json'
	expect_exit "no room after $bytes KiB" 8 bash -c "$write" - "$blinkc" "$v" $bytes
	alone "no room after $bytes KiB: nothing is left"
	echo precious >x.json
	expect_exit "no room after $bytes KiB, over a file" 8 bash -c "$write" - "$blinkc" "$v" $bytes
	echo precious >"$work/precious"
	same "it is as it was" x.json "$work/precious"
	alone "no temporary" x.json
done
for arguments in "$top/tests/bad/topology/capacity-zero.json" "-g 0,7 -l nvlink $v" \
	"-c nothing $v" "$v $v" "/nowhere"; do
	echo precious >x.json
	# shellcheck disable=SC2086 # words
	call $arguments -o x.json
	if [ $got != 0 ] && cmp -s x.json "$work/precious"; then
		ok "x.json survives: $arguments"
	else
		not_ok "x.json after exit $got of $arguments"
	fi
	alone "no temporary: $arguments" x.json
done

echo old >target.json
chmod 640 target.json
ln -s target.json link.json
ln -s "$PWD/link.json" "$work/far.json"
does "-o of a link" -q -c reduce "$v" -o "$work/far.json"
if [ -L link.json ] && [ -L "$work/far.json" ] && [ ! -L target.json ]; then
	ok "links stay"
else
	not_ok "a link was replaced"
fi
same "its target is written" target.json "$work/reduce.json"
if [ "$(stat -c %a target.json)" = 640 ]; then
	ok "permissions stay"
else
	not_ok "permissions: $(stat -c %a target.json)"
fi
alone "-o of a link" link.json target.json
rm "$work/far.json"
(umask 027 && exec "$blinkc" -q -c reduce "$v" -o x.json)
if [ "$(stat -c %a x.json)" = 640 ]; then
	ok "permissions of a new file: umask"
else
	not_ok "permissions: $(stat -c %a x.json)"
fi
alone "a new file" x.json

# Permissions do not bind root, so as root these run as another user, with a copy of the program that it can reach.
as=()
if [ "$(id -u)" = 0 ]; then
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	chmod 755 "$work"
	chown 65534:65534 .
fi
cp "$blinkc" "$work/blinkc"
cp "$v" "$work/v.xml"
chmod 755 "$work/blinkc"
chmod 644 "$work/v.xml"
if "${as[@]}" "$work/blinkc" --version >"$work/out" 2>&1; then
	mkdir closed
	chmod 555 closed
	compile=("${as[@]}" "$work/blinkc" -q -c reduce "$work/v.xml")
	expect_exit "a directory that may not be written" 8 "${compile[@]}" -o closed/x.json
	if [ -z "$(ls -A closed)" ]; then ok "nothing is in it"; else not_ok "in it is $(ls -A closed)"; fi
	echo precious >x.json
	chmod 444 x.json
	[ ${#as[@]} = 0 ] || chown 65534 x.json
	expect_exit "a file that may not be written, though its directory may" 8 "${compile[@]}" -o x.json
	same "it is as it was" x.json "$work/precious"
	chmod 000 x.json
	expect_exit "a file that may not be read" 8 "${as[@]}" "$work/blinkc" x.json
	alone "permissions" closed x.json
else
	skip "permissions: root, and no other user to be: $(head -1 "$work/out")"
fi

# ---- formats ----

for case in "x.json json" "x.cu cu" "x json" "x.d/x json" "x.d/x.cu cu" "./x json" "../d/x json"; do
	read -r path format <<<"$case"
	mkdir -p x.d
	"$blinkc" -q -c reduce "$v" --format "$format" >"$work/want"
	does "-o $path" -q -c reduce "$v" -o "$path"
	same "-o $path is $format" "$path" "$work/want"
	rm -rf x.d "$path"
done
does "--format wins over the ending" -q -c reduce "$v" -o x.txt --format cu
does "--format wins over another's ending" -q -c reduce "$v" -o x.json --format cu
same "--format wins over the ending" x.txt x.json
alone "formats" x.json x.txt

# ---- the same request, the same bytes ----

jobs=("-c reduce" "-c reduce --format cu" "--no-minimise" ${full:+"-g 0-5" "-g 0-5 --format cu"})
for i in "${!jobs[@]}"; do
	# shellcheck disable=SC2086 # words
	"$blinkc" -q ${jobs[i]} "$v" >"$work/want-$i"
done
# again NAME COMMAND...: a way to run the program that must not change what it makes
again() {
	local name=$1 i
	shift
	for i in "${!jobs[@]}"; do
		# shellcheck disable=SC2086 # words
		"$@" "$blinkc" -q ${jobs[i]} "$v" >"$work/out" 2>"$work/err" ||
			{ not_ok "$name: $(head -1 "$work/err")"; return; }
		same "$name, ${jobs[i]}" "$work/out" "$work/want-$i"
	done
}
again "twice" env
again "in an empty environment" env -i
for byte in 1 85 255; do
	again "in memory of other contents ($byte)" env MALLOC_PERTURB_=$byte
done
if setarch -R true 2>"$work/err"; then
	again "at fixed addresses" setarch -R
else
	skip "at fixed addresses: $(head -1 "$work/err")"
fi
if localedef -i de_DE -f ISO-8859-1 "$work/de_DE" >"$work/err" 2>&1 &&
	[ "$(LOCPATH=$work LC_ALL=de_DE locale decimal_point)" = , ]; then
	again "where the decimal point is a comma" env LOCPATH="$work" LC_ALL=de_DE
	for format in json xml canonical; do
		LOCPATH=$work LC_ALL=de_DE "$blinkc" convert --format $format "$v" >"$work/out"
		"$blinkc" convert --format $format "$v" >"$work/want"
		same "convert to $format where the decimal point is a comma" "$work/out" "$work/want"
	done
else
	skip "where the decimal point is a comma: no such locale can be made: $(head -1 "$work/err")"
fi
mkdir elsewhere
(cd elsewhere && exec "$blinkc" -q -c reduce ../../v.xml) >"$work/out"
same "from another directory, by another name" "$work/out" "$work/reduce.json"
alone "another directory" elsewhere
for machine in dgx1v dgx1p; do
	for arguments in "-c reduce" "-c broadcast -r 1 -g 0,1,2" "-l all" "-c reduce --format cu" \
		${full:+"" "--format cu"}; do
		# shellcheck disable=SC2086 # words
		"$blinkc" -q $arguments "$top/topologies/$machine.xml" >"$work/xml" &&
			"$blinkc" -q $arguments "$top/topologies/$machine.json" >"$work/json"
		same "$machine.xml and .json, $arguments" "$work/xml" "$work/json"
	done
done

# What a schedule says of itself is enough to make it again.
for request in "-c broadcast -r 2" "-c reduce -r gpu6 -g 4,gpu6,7,5" \
	"-g 3,0,2,1 --epsilon 0.123456789 --tolerance 0.25" \
	"--no-minimise --epsilon 0.3" "-l pcie,qpi -g 0,1,4" "-g 0,7" "--tolerance 0 --epsilon 1e-2 -g 0,1,3,2" \
	"-p mwu --tolerance 0 -c reduce" "-c scatter -r gpu1 -g 2,1,0" "-c alltoall -g 0,1,2,3" \
	"--max-depth 6 -g 0,1,2,3" "-c reduce --max-trees 2 --max-depth 5 -g 0,1,2,3" \
	${full:+"-c reduce --max-trees 2" "-c broadcast --max-trees 3 --max-depth 4" "" "-p exact -c reduce" "-p mwu"} \
	${full:+"-p exact" "--max-trees 2"} "-g 0-6"; do
	# shellcheck disable=SC2086 # words
	"$blinkc" -q $request "$v" >"$work/first.json" || not_ok "compile $request"
	oracle snippet - "$work/first.json" >"$work/arguments" <<'END'
import json, sys
from decimal import Decimal
doc = json.load(open(sys.argv[1]), parse_float=Decimal)
asked = doc["generator"]["options"]
assert set(asked) - {"max_depth", "max_trees"} == \
    {"gpus", "links", "epsilon", "tolerance", "packing", "minimise"}, asked
words = ["-c", doc["collective"], "-g", ",".join(asked["gpus"]), "-l", ",".join(asked["links"]),
         "--epsilon", asked["epsilon"], "--tolerance", asked["tolerance"], "--packing", asked["packing"]]
words += [] if asked["minimise"] else ["--no-minimise"]
for key in ("max_depth", "max_trees"):
    words += ["--" + key.replace("_", "-"), asked[key]] if key in asked else []
words += [] if doc["root"] is None else ["-r", doc["root"]]
print(*words)
END
	# shellcheck disable=SC2046 # words
	"$blinkc" -q $(cat "$work/arguments") "$v" >"$work/second.json"
	same "made again: ${request:-defaults}" "$work/first.json" "$work/second.json"
done

# ---- convert ----

for xml in "$top"/topologies/*.xml; do
	name=$(basename "$xml" .xml) json=${xml%.xml}.json
	# Of a thousand GPUs and more: they are made of servers as those of others.
	[ "$full" ] || case $name in abci-2048 | superpod-h100-4su) continue ;; esac
	every 3 || continue
	does "convert $name.xml to JSON" convert "$xml" -o x.json
	does "and back" convert x.json -o y.xml
	does "and again" convert y.xml -o z.json
	does "to XML at once" convert "$xml" -o w.xml
	same "$name: XML to JSON to XML" y.xml w.xml
	same "$name: JSON to XML to JSON" x.json z.json
	if [ -f "$json" ]; then
		same "$name.json is $name.xml" x.json "$json"
		same "$name.xml is what we write" y.xml "$xml"
		"$blinkc" convert --format canonical "$json" >canonical.json
	fi
	"$blinkc" convert --format canonical "$xml" >canonical.xml
	[ ! -f "$json" ] || same "$name: one canonical text" canonical.xml canonical.json
	"$blinkc" -q -l all -g "0,1" "$xml" >s.json
	digest=$(sha256sum <canonical.xml)
	has "$name: the digest is of the canonical text" "^    \"digest\": \"sha256:${digest%% *}\",\$" s.json
	rm -f -- *
done
for json in "$top"/topologies/*.json "$top"/tests/fuzz/corpus/fuzz_topology/*.json; do
	every 2 || continue
	name=$(basename "$json" .json)
	"$blinkc" convert "$json" -o x.xml && "$blinkc" convert x.xml -o y.json && "$blinkc" convert y.json -o y.xml &&
		"$blinkc" convert "$json" -o z.json
	same "$name: JSON to XML to JSON" y.json z.json
	same "$name: XML to JSON to XML" x.xml y.xml
	rm -f -- *
done
