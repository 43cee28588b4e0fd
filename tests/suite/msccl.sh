# Algorithms of MSCCL: what blinkc writes of schedules, what check and lint say of files, and an interpreter in Python
# that executes them in random orders.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

# ---- what is written ----

mkdir "$work/own"
written=()
# compile NAME ARGUMENT...
compile() {
	local file=$work/own/$1.xml
	shift
	"$blinkc" -q "$@" --format msccl -o "$file" 2>"$work/err" || not_ok "$*: $(cat "$work/err")"
	written+=("$file")
}
compile four topologies/dgx1v.xml --gpus 0,1,2,3
compile kesch topologies/kesch.xml
for collective in broadcast reduce gather scatter; do
	compile $collective topologies/dgx1v.xml --gpus 1,4,5,6 --collective $collective --root 2
done
for collective in allgather reducescatter alltoall; do
	compile $collective topologies/dgx1v.xml --gpus 1,4,5,6 --collective $collective
done
compile ring topologies/dgx1v.xml --gpus 0,1,2,3 --algorithm ring
# A rank sends its input while its own sum is made: never in place.
compile doubling topologies/dgx2.xml --gpus 0-5 --algorithm recursive-doubling
expect "recursive doubling is out of place" grep -q 'inplace="0"' "$work/own/doubling.xml"
if [ "$full" ]; then
	for machine in dgx1p dgx1v dgx2 dgx-a100 dgx-h100 hgx-b200 mi250 mi300x p4d pcie-8gpu summit kesch \
		gb200-tray two-dgx1v; do
		for collective in allreduce allgather reducescatter broadcast; do
			compile $machine.$collective topologies/$machine.xml --collective $collective
		done
	done
fi
"$blinkc" check "${written[@]}" >"$work/out" 2>"$work/err"
expect "${#written[@]} files are written: $(head -1 "$work/err")" \
	[ "$(grep -c ': valid$' "$work/out") $(wc -c <"$work/err")" = "${#written[@]} 0" ]
# In the quick test half of them.
executed=("${written[@]}")
[ "$full" ] || executed=("${written[@]:0:${#written[@]}/2}")
oracle msccl run 1 "${executed[@]}" >"$work/out"
expect "they do what they are for, in random orders: $(grep -v ': right$' "$work/out" | head -1)" \
	[ "$(grep -c ': right$' "$work/out")" = ${#executed[@]} ]
# That executors know no root is a finding about each rooted one, and microsoft/msccl spells or lacks some collectives.
"$blinkc" lint -q "${written[@]}" | grep -vE ': root: |\(msccl\)$' >"$work/out"
expect "RCCL's limits hold: $(head -1 "$work/out")" [ "$(wc -c <"$work/out")" = 0 ]
expect "a rooted one is right for its root" grep -q '^collective  gather, root 2, in place and out of place$' \
	<("$blinkc" check "$work/own/gather.xml")
"$blinkc" check --summary json "$work/own/gather.xml" "$work/own/ring.xml" >"$work/lines" 2>"$work/err"
expect "a line of JSON for each" grep \
	-q '^{ *"format": *"blink-msccl-summary".*"collective": *"gather", *"root": *2,' "$work/lines"
sed -n 1p "$work/lines" >"$work/line.json"
[ ! "$full" ] || expect "its schema" oracle validate schemas/msccl-summary.schema.json "$work/line.json"
expect "with the note of the summary" grep \
	-q '^msccl  .* channels, .* threadblocks of a GPU at most; for messages of a multiple of [0-9]* elements$' \
	<("$blinkc" topologies/dgx1v.xml --gpus 0,1,2,3 --format msccl -o "$work/note.xml" 2>&1)

# ---- what the format has no room for ----

# refuses CODE TEXT ARGUMENT...
refuses() {
	local want=$1 text=$2 got
	shift 2
	"$blinkc" -q "$@" --format msccl -o "$work/refused.xml" 2>"$work/err"
	got=$?
	if [ $got = "$want" ] && grep -qF "$text" "$work/err"; then ok "refused: $text"; else
		not_ok "refused: $text: exit $got, $(cat "$work/err")"
	fi
}
[ ! "$full" ] || refuses 4 "RCCL has at most 64 threadblocks" topologies/gb200-nvl72.xml
refuses 5 "MSCCL XML has no parts" topologies/dgx1v.xml --gpus 0,1,2,3 --hybrid

# ---- a file for each rule ----

mkdir "$work/broken"
oracle msccl broken "$work/own/four.xml" "$work/broken"
"$blinkc" check "$work/broken"/[!l]*.xml >"$work/said" 2>&1
"$blinkc" lint -q "$work/broken"/lint-*.xml >>"$work/said"
# What is said of each file, in lines.
declare -A said=()
while IFS= read -r line; do
	file=${line#*"$work/broken/"}
	said[${file%%:*}]+=$line$'\n'
done <"$work/said"
names=()
for file in "$work/broken"/*; do
	name=${file##*/}
	rule=${name%%.*}
	rule=${rule#lint-}
	found=0 other=
	while IFS= read -r line; do
		[ "$line" ] || continue
		found=1
		if [ "$rule" = right ]; then want=': valid$'; else want="$name:[0-9]+: $rule: "; fi
		[[ $line =~ $want ]] || other=$line
	done <<<"${said[$name]:-}"
	[ "$found$other" = 1 ] || not_ok "$name: ${other:-nothing is said}"
	names+=("$rule")
done
for pair in "check hasdep 3" "check race 6" "check deadlock 6" "check result 6" "lint lint-root 10" "lint race 10" \
	"lint right.ahead 10" \
	"lint right.relay 0"; do
	read -r verb name want <<<"$pair"
	file=$(echo "$work/broken/$name"*.xml)
	"$blinkc" "$verb" -q "${file%% *}" >"$work/out" 2>&1
	expect "$pair" [ $? = "$want" ]
done
rules=$(sed -n 's/^\tX(MSCCL_RULE_[A-Z_]*, "\([a-z-]*\)".*/\1/p' src/msccl/msccl.h | sort)
expect "each rule but syntax is broken by a file: ${#names[@]} files" \
	cmp <(printf '%s\n' "${names[@]}" right syntax | sort -u) <(printf '%s\nright\n' "$rules" | sort)
expect "executors' parsers read no prolog" grep -q ':1: syntax: a prolog: ' \
	<("$blinkc" lint -q <(echo '<?xml version="1.0"?>' && cat "$work/own/four.xml"))
expect "nor tabs inside tags" grep -q ':1: syntax: a tab' \
	<("$blinkc" lint -q <(sed '1s/ name/\tname/' "$work/own/four.xml"))

# ---- verdicts on changed files ----

count=20 bases=four
[ "$full" ] && count=120 bases="four reducescatter gather alltoall allgather"
for base in $bases; do
	mkdir "$work/$base"
	oracle msccl mutants 1 $count "$work/own/$base.xml" "$work/$base"
	"$blinkc" check "$work/$base"/*.xml >"$work/verdicts" 2>&1
	oracle msccl judge 1 "$work/$base" "$work/verdicts" >"$work/out" 2>"$work/judged"
	cat "$work/judged" >>"$work/judged.all"
	expect "$base: $(cat "$work/judged") $(head -1 "$work/out")" \
		[ "$(wc -c <"$work/out") $(grep -c judged "$work/judged")" = "0 1" ]
done
expect "of all kinds" grep -q 'deadlock=.* race=.* result=.* valid=' \
	<(tr '\n' ' ' <"$work/judged.all" | tr -s ' ' | sed 's/judged//g')

# ---- files of others ----

samples=../shared/data/msccl_xml
if [ -d $samples ]; then
	expect "samples are valid" "$blinkc" check -q $samples/*.xml
	[ ! "$full" ] || expect "and right" \
		[ "$(oracle msccl run 1 $samples/*.xml |
		grep -c ': right$')" = "$(find $samples -name '*.xml' | wc -l)" ]
else
	skip "samples of ForestColl and SCCL: no $samples"
fi

# ---- Chakra traces ----

# An allreduce of 64 MiB by two trees of depth 4, over links of 20 GiB/s: half of it takes 1.5625 ms, and c chunks
# overlap.
for c in 4 ${full:+1 2 8 16}; do
	"$blinkc" -q topologies/dgx1p.xml --gpus 0-3 --size 64M --format chakra --chunks $c -o "$work/trace"
	expect "allreduce, $c chunks" cmp <(oracle chakra 20 "$work/trace" | sed 's/,.*//') \
		<("$python" -c "from fractions import Fraction as F
print('4 ranks:', F(25, 16) * (1 + F(3, $c)), 'ms')")
done
expect "files are the same again" cmp <(cat "$work"/trace.*.et) \
	<("$blinkc" -q topologies/dgx1p.xml --gpus 0-3 --size 64M --format chakra --chunks "$c" -o "$work/again" &&
		cat "$work"/again.*.et)
if [ "$full" ]; then
	"$blinkc" -q topologies/dgx1v.xml --gpus 1,4,5,6 -o "$work/schedule.json"
	for collective in broadcast reduce allreduce gather scatter allgather reducescatter alltoall; do
		"$blinkc" -q topologies/dgx1v.xml --gpus 1,4,5,6 --collective $collective --format chakra \
			--size 1000003 --chunks 7 \
			-o "$work/$collective"
		expect "a trace of $collective" grep -q '^4 ranks: ' <(oracle chakra 25 "$work/$collective")
	done
	expect "converted" "$blinkc" convert -q "$work/schedule.json" --format chakra --size 1000003 \
		--chunks 7 -o "$work/converted"
	expect "as compiled" cmp "$work/allreduce.2.et" "$work/converted.2.et"
fi
for arguments in "-o -" "--chunks 0 -o x" "--chunks 1x -o x" "--chunks 9999999 -o x"; do
	# shellcheck disable=SC2086
	(cd "$work" && "$blinkc" -q dgx1p -g 0-3 --format chakra $arguments) >"$work/out" 2>"$work/err"
	got=$?
	expect "chakra $arguments: $(cat "$work/err")" [ $got = 2 ]
done
expect "--chunks is for traces" grep -q '^blinkc: --chunks: --format json: want chakra$' \
	<("$blinkc" -q topologies/dgx1p.xml --chunks 2 2>&1)
