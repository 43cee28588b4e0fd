# Plans of MSCCL++: what blinkc writes of schedules, what check and lint say of files, and an interpreter in Python that
# executes them in random orders. tests/mscclpp/run holds them against MSCCL++'s own loader.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

# ---- what is written ----

mkdir "$work/own"
written=()
# compile NAME ARGUMENT...
compile() {
	local file=$work/own/$1.json
	shift
	"$blinkc" -q "$@" --format mscclpp -o "$file" 2>"$work/err" || not_ok "$*: $(cat "$work/err")"
	written+=("$file")
}
collectives="allreduce allgather reducescatter broadcast reduce gather scatter alltoall"
compile two topologies/two-dgx1v.xml --gpus 's0:0,3 s1:0,3'
compile doubling topologies/dgx2.xml --gpus 0-5 --algorithm recursive-doubling
compile ring topologies/dgx1v.xml --gpus 0,1,2,3 --algorithm ring
for collective in $collectives; do
	compile $collective topologies/dgx1v.xml --gpus 1,4,5,6 --collective $collective
done
compile root topologies/dgx1v.xml --gpus 1,4,5,6 --collective gather --root 2
# Sixteen neighbours are too many for one threadblock: the root has two, with a semaphore.
compile dgx2 topologies/dgx2.xml
expect "a semaphore between two threadblocks" grep -q '"sem_acquire"' "$work/own/dgx2.json"
# Switches that copy and add do so by one operation.
for collective in allreduce allgather; do
	compile nvls.$collective topologies/dgx-h100-nvls.xml --collective $collective
done
cat "$work"/own/nvls.* | grep -oE '"(glres|gstore)"' | sort | uniq -c | tr -s ' \n' ' ' >"$work/out"
expect "switch channels" [ "$(cat "$work/out")" = ' 32 "glres" 32 "gstore" ' ]
# In packets.
# packets NAME ARGUMENT...
packets() {
	local file=$work/own/packets.$1.json
	shift
	"$blinkc" -q "$@" --format mscclpp-packets -o "$file" 2>"$work/err" || not_ok "$*: $(cat "$work/err")"
	written+=("$file")
}
for collective in allreduce allgather alltoall; do
	packets $collective topologies/dgx1v.xml --gpus 1,4,5,6 --collective $collective
done
packets ring topologies/dgx1v.xml --gpus 0,1,2,3 --algorithm ring
packets h100 topologies/dgx-h100.xml
# A port that one thread has told is not flushed by another one before.
compile ports topologies/two-dgx1v.xml --algorithm double-binary-tree
# In place, where it can be.
for collective in allreduce allgather reducescatter broadcast reduce; do
	compile in-place.$collective topologies/dgx1v.xml --gpus 1,4,5,6 --collective $collective --in-place
done
compile in-place.two topologies/two-dgx1v.xml --gpus 's0:0,3 s1:0,1' --in-place
compile in-place.nvls topologies/dgx-h100-nvls.xml --collective allgather --in-place
for collective in allreduce allgather; do
	packets in-place.$collective topologies/dgx1v.xml --gpus 1,4,5,6 --collective $collective --in-place
done
expect "a summary says so" grep -q '^collective  allreduce, in place$' \
	<("$blinkc" check "$work/own/in-place.allreduce.json")
if [ "$full" ]; then
	"$blinkc" batch -q topologies/dgx1v.xml --distinct -o "$work/classes" || not_ok "batch"
	for file in "$work"/classes/allreduce/*.json; do
		for collective in $collectives; do
			compile "dgx1v-$(basename "$file" .json).$collective" topologies/dgx1v.xml \
				--gpus "$(basename "$file" .json)" --collective $collective
		done
	done
	for collective in $collectives; do
		for machine in dgx1p dgx2 dgx-a100 dgx-h100 hgx-b200 mi250 mi300x p4d pcie-8gpu summit gb200-tray \
			two-dgx1v; do
			compile $machine.$collective topologies/$machine.xml --collective $collective
		done
		compile a100x2.$collective topologies/superpod-a100.xml --gpus 0-15 --collective $collective
	done
fi
"$blinkc" check "${written[@]}" >"$work/out" 2>"$work/err"
expect "${#written[@]} files are written: $(head -1 "$work/err")" \
	[ "$(grep -c ': valid$' "$work/out") $(wc -c <"$work/err")" = "${#written[@]} 0" ]
executed=("${written[@]}")
[ "$full" ] || executed=("${written[@]:0:9}" "$work"/own/nvls.*.json "$work"/own/packets.*.json \
	"$work"/own/in-place.*.json)
oracle mscclpp run 1 "${executed[@]}" >"$work/out"
expect "they do what they are for, in random orders: $(grep -v ': right$' "$work/out" | head -1)" \
	[ "$(grep -c ': right$' "$work/out")" = ${#executed[@]} ]
# That the executor knows no root is a finding about each rooted one.
"$blinkc" lint -q "${written[@]}" | grep -v ': root: ' >"$work/out"
expect "its limits hold: $(head -1 "$work/out")" [ "$(wc -c <"$work/out")" = 0 ]
expect "a rooted one is right for its root" grep -q '^collective  gather, root 2, out of place$' \
	<("$blinkc" check "$work/own/root.json")
"$blinkc" check --summary json "$work/own/root.json" "$work/own/ring.json" >"$work/lines"
expect "a line of JSON for each" grep \
	-q '^{ *"format": *"blink-mscclpp-summary".*"collective": *"gather", *"root": *2,' "$work/lines"
sed -n 1p "$work/lines" >"$work/line.json"
[ ! "$full" ] || expect "its schema" oracle validate schemas/mscclpp-summary.schema.json "$work/line.json"
expect "with the note of the summary" grep \
	-q '^mscclpp  .* threadblocks of a GPU at most; for inputs of a multiple of [0-9]* bytes, messages up to ' \
	<("$blinkc" topologies/dgx1v.xml --gpus 0,1,2,3 --format mscclpp -o "$work/note.json" 2>&1)

# ---- a set for ranges of sizes ----

echo 1,4,5,6 >"$work/four"
# tuned NAME GPUS PLANS COLLECTIVES NODE ARGUMENT...
tuned() {
	local set=$work/$1 gpus=$2 collectives=$3 node=$4
	shift 4
	expect "tune $*" "$blinkc" tune "$@" --format mscclpp -o "$set"
	"$blinkc" check "$set"/*/*.json >"$work/out" 2>&1
	expect "its plans are valid" [ "$(grep -c ': valid$' "$work/out")" = "$(ls "$set"/*/*.json | wc -l)" ]
	oracle mscclpp run 1 "$set"/*/*.json >"$work/out"
	expect "and right" [ "$(grep -c ': right$' "$work/out")" = "$(ls "$set"/*/*.json | wc -l)" ]
	oracle mscclpp registered "$set" "$gpus" "$node" >"$work/registered"
	expect "and registered: $(cat "$work/registered")" grep -q " of $collectives collectives\$" "$work/registered"
}
tuned set 4 4 4 topologies/dgx1v.xml -g "$work/four" --size 4K,1M,16M
tuned set.in-place 4 2 2 topologies/two-dgx1v.xml -g <(echo s0:0,s0:3,s1:0,s1:3) --size 4K,16M --in-place \
	--collectives allreduce,allgather
# The first range has the least time at the first size, as its plan has it.
"$blinkc" tune topologies/dgx1v.xml -g "$work/four" --size 4K,1M,16M --collectives allreduce --format mscclpp \
	-o "$work/times" 2>"$work/summary"
us=$("$blinkc" simulate "$work"/times/allreduce/*.0.json --topology topologies/dgx1v.xml -g 1,4,5,6 --size 4K \
	--format csv | sed -n '2s/^[^,]*,[^,]*,[^,]*,[^,]*,\([0-9.]*\),.*/\1/p')
expect "the time of a range, $us" awk -v us="$us" '
	$1 ~ /^allreduce/ && $2 == 0 { found = $3 - us < 0.001 && us - $3 < 0.001 } END { exit !found }' "$work/summary"
expect_exit "several sets of GPUs" 2 "$blinkc" tune topologies/dgx1v.xml -n 2-3 --format mscclpp -o "$work/none"
expect_exit "a root" 2 "$blinkc" tune topologies/dgx1v.xml --collectives reduce --format mscclpp -o "$work/none"
expect_exit "in place without plans" 2 "$blinkc" tune topologies/dgx1v.xml --in-place -o "$work/none"
expect_exit "an alltoall in place" 2 "$blinkc" tune topologies/dgx1v.xml --collectives alltoall --in-place \
	--format mscclpp -o "$work/none"
expect_exit "another order" 2 "$blinkc" tune topologies/dgx1v.xml -g <(echo 3,0) --format mscclpp -o "$work/none"
expect_exit "messages of 2 GiB" 2 "$blinkc" tune topologies/dgx1v.xml --size 2G --format mscclpp -o "$work/none"

# ---- what MSCCL++ has no room for ----

# refused EXIT TEXT ARGUMENT...
refused() {
	local want=$1 text=$2
	shift 2
	case "$*" in
	*--format*) ;;
	*) set -- "$@" --format mscclpp ;;
	esac
	"$blinkc" -q "$@" -o "$work/refused.json" 2>"$work/err"
	got=$?
	if [ $got = "$want" ] && grep -qF -e "$text" "$work/err"; then ok "refused: $text"; else
		not_ok "refused: $text: exit $got, $(cat "$work/err")"
	fi
}
refused 5 "a reduce in packets: a rank would not hear of those that it sends to" topologies/dgx1v.xml \
	--collective reduce --format mscclpp-packets
refused 5 "packets between servers: want --format mscclpp" topologies/two-dgx1v.xml --format mscclpp-packets
refused 4 "needs more threadblocks than MSCCL++ has: want fewer trees" topologies/gb200-nvl72.xml
refused 5 "alltoall in place: want it out of place" topologies/dgx1v.xml --collective alltoall --in-place
refused 5 "in place, a rank would write over its input before all have read it" topologies/dgx-h100.xml \
	--algorithm recursive-doubling --in-place
refused 2 "--in-place: --format msccl: want mscclpp or mscclpp-packets" topologies/dgx1v.xml --in-place --format msccl
expect "and nothing is written" [ ! -e "$work/refused.json" ]

# ---- rules: each is broken by some file ----

mkdir "$work/broken"
oracle mscclpp broken "$work/own/ring.json" "$work/own/two.json" "$work/broken"
names=()
for file in "$work"/broken/*.json; do
	rule=$(basename "$file" | sed 's/\..*//')
	said=$("$blinkc" lint -q "$file" 2>&1)
	if [ "$rule" = right ]; then
		expect "$(basename "$file"): $said" [ ! "$said" ]
		continue
	fi
	names+=("$rule")
	case $said in
	*": $rule: "*) ;;
	*) not_ok "$(basename "$file"): $said" ;;
	esac
done
rules=$(sed -n 's/^\tX(MSCCLPP_RULE_[A-Z_]*, "\([a-z-]*\)".*/\1/p' src/mscclpp/mscclpp.h | sort)
expect "all rules are broken: $(diff <(printf '%s\n' "${names[@]}" | sort -u) <(echo "$rules") | tr '\n' ' ')" \
	cmp <(printf '%s\n' "${names[@]}" | sort -u) <(echo "$rules")
for pair in "signals 3" "race 6" "deadlock 6" "result 6" "entry 6" "exit 6"; do
	read -r rule code <<<"$pair"
	"$blinkc" check "$work/broken/$rule.1.json" >/dev/null 2>&1
	got=$?
	expect "check of a plan with $rule" [ $got = "$code" ]
done

# ---- verdicts on changed files ----

count=20 bases="allreduce packets.allgather"
[ "$full" ] && count=120 bases="two packets.allreduce packets.alltoall allreduce reducescatter gather allgather"
for base in $bases; do
	mkdir "$work/$base"
	oracle mscclpp mutants 1 $count "$work/own/$base.json" "$work/$base"
	"$blinkc" check "$work/$base"/*.json >"$work/verdicts" 2>&1
	oracle mscclpp judge 1 "$work/$base" "$work/verdicts" >"$work/out"
	expect "$base: $(tail -1 "$work/out"): $(head -1 "$work/out")" \
		[ "$(grep -vc '^judged' "$work/out") $(grep -c '^judged' "$work/out")" = "0 1" ]
done

# ---- plans of MSCCL++ itself ----

samples=../shared/data/mscclpp
if [ -d $samples ]; then
	expect "its own plans are valid" "$blinkc" check -q $samples/*.json
	oracle mscclpp run 1 $samples/*.json >"$work/out"
	expect "and right" [ "$(grep -c ': right$' "$work/out")" = 5 ]
	"$blinkc" lint -q $samples/*.json >"$work/out"
	expect "one is for an older loader" \
		[ "$(sed 's/.*json: \([a-z-]*\):.*/\1/' "$work/out" | sort | uniq -c | tr -s ' \n' ' ')" = \
			" 4 switch-buffer 4 zero-chunks " ]
else
	skip "no plans of MSCCL++"
fi
