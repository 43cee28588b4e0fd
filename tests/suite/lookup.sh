# What blinkc batch writes is what libblink finds: every job of an index is run in the ranks of the job, and every
# element checked.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# right INDEX OPTIONS...: runs, and reports no wrong element
right() { "$perf" "$@" -b 1K -e 48K -i 47K -n 1 -w 0 >"$work/log" 2>&1 &&
	grep -q '^# Out of bounds values : 0 OK' "$work/log"; }

expect "all collectives over up to 4 GPUs of a DGX-1V" "$blinkc" batch -q topologies/dgx1v.xml --sizes 2-4 \
	--collectives all -o "$work/s"
every=${full:+13}	# in `make check` an eighth of them
every=${every:-104}
oracle snippet - "$work/s/index.json" "$every" >"$work/jobs" <<'END'
import itertools, json, random, sys
random.seed(3)
entries = json.load(open(sys.argv[1]))["schedules"]
for entry in entries[::int(sys.argv[2])]:
    gpus = entry["gpus"]
    order = random.choice(list(itertools.permutations(gpus)))
    root = order.index(gpus[entry["root"]]) if entry["root"] is not None else 0
    print(entry["collective"], ",".join(map(str, order)), root)
END
n=0 wrong=0
while read -r coll gpus root; do
	n=$((n + 1))
	right "$work/s" --collective "$coll" -g "$gpus" -r "$root" && continue
	wrong=$((wrong + 1))
	not_ok "$coll over $gpus from $root: $(tail -3 "$work/log" | tr '\n' ' ')"
done <"$work/jobs"
if [ $n -lt $((2600 / every)) ]; then not_ok "only $n jobs"; elif [ $wrong = 0 ]; then ok \
	"$n jobs, GPUs in other orders"; fi

# Ids are numbers, too; what is not said is all GPUs, allreduce, and root 0.
expect "GPUs by id" right "$work/s/index.json" -g gpu3,0,gpu5 --collective scatter
"$perf" "$work/s" -g gpu3,0,gpu5 --collective scatter -b 1K -e 1K -n 1 >"$work/log"
if grep -q '^# collective   scatter over 3 ranks, root 0, of GPUs gpu3,0,gpu5$' "$work/log"; then
	ok "says which job"
else
	not_ok "$(grep '^# collective' "$work/log")"; fi
"$blinkc" batch -q topologies/dgx1v.xml --sizes 8 -o "$work/all" || not_ok "batch: exit $?"
expect "a directory alone" right "$work/all"
expect_exit "no such job" 5 "$perf" "$work/s"
expect_exit "no such GPU" 2 "$perf" "$work/s" -g 0,gpu8
expect_exit "an empty GPU" 2 "$perf" "$work/s" -g 0,1,
expect_exit "more GPUs than there are" 2 "$perf" "$work/s" -g 0,1,2,3,4,5,6,7,0
expect_exit "a GPU twice" 2 "$perf" "$work/s" -g 0,1,0
expect_exit "no such root" 2 "$perf" "$work/s" -g 0,1 -r 2 --collective reduce
expect_exit "no such collective" 2 "$perf" "$work/s" -g 0,1 --collective reducs
expect_exit "a schedule is no index" 3 "$perf" "$work/s/allreduce/0,1.json" -g 0,1
expect_exit "a directory without an index" 8 "$perf" "$work/s/allreduce"
rm "$work/s/allreduce/0,1.json"
expect_exit "a schedule that is gone" 8 "$perf" "$work/s" -g 1,0

# A schedule that is wrong is found and refused, whoever put it there.
oracle mutate "$work/s/allreduce/0-2.json" 1 --kind drop-edge >"$work/bad.json" 2>"$work/err" ||
	not_ok "mutate: exit $?"
cp "$work/bad.json" "$work/s/allreduce/0-2.json"
expect_exit "a schedule that misses an edge" 6 "$perf" "$work/s" -g 0,1,2

# A list in an order of its own, and roots of a kind.
printf '7,1,4\n4,1,7,0\n' >"$work/lists"
expect "lists in orders of their own" "$blinkc" batch -q topologies/dgx1v.xml --gpus "$work/lists" --collectives \
	reducescatter,gather -o "$work/l"
expect "as the list has it" right "$work/l" -g 7,1,4 --collective reducescatter
expect "as the list has it, from a root" right "$work/l" -g 4,1,7,0 --collective gather -r 2
expect "in another order, by the links of its GPUs" right "$work/l" -g 1,4,7 --collective reducescatter

# ---- jobs that the index does not list ----

# One set of each class, and one root of each orbit: every job, from every root, is found by the links of its GPUs.
expect "one job of each class" "$blinkc" batch -q topologies/dgx1v.xml -n 2-5 --distinct --roots canonical \
	--collectives allreduce,broadcast,alltoall -o "$work/c"
"$blinkc" batch -q topologies/dgx1v.xml -n 2-5 --collectives allreduce,broadcast,alltoall -o "$work/whole"
oracle snippet - "$work/whole/index.json" "$work/c/index.json" "${full:+7}" >"$work/jobs" <<'END'
import json, random, sys
random.seed(5)
whole, some = (json.load(open(path))["schedules"] for path in sys.argv[1:3])
have = {(tuple(e["gpus"]), e["collective"], e["root"]) for e in some}
for e in [e for e in whole if (tuple(e["gpus"]), e["collective"], e["root"]) not in have][::int(sys.argv[3] or 31)]:
    order = random.sample(e["gpus"], len(e["gpus"]))
    at = None if e["root"] is None else e["gpus"][e["root"]]
    print(e["collective"], ",".join(map(str, order)), 0 if at is None else order.index(at), e["rate"],
          "" if at is None else f"gpu{at}")
END
n=0 wrong=0
while read -r coll gpus root rate gpu; do
	n=$((n + 1))
	if ! right "$work/c" --collective "$coll" -g "$gpus" -r "$root"; then
		not_ok "$coll over $gpus from $root: $(tail -3 "$work/log" | tr '\n' ' ')"
		wrong=$((wrong + 1))
	fi
	"$blinkc" show "$work/c" -c "$coll" -g "$gpus" ${gpu:+-r "$gpu"} >"$work/log" 2>&1
	found=$(awk '$1 == "rate" { print $2 }' "$work/log")
	if ! awk -v a="$found" -v b="$rate" 'BEGIN { exit !(a > 0 && (a - b) / b < 1e-5 && (b - a) / b < 1e-5) }' ||
		{ [ "$gpu" ] && ! grep -q "^collective  $coll from root [0-9]* ($gpu)\$" "$work/log"; }; then
		not_ok "show: $coll over $gpus from $gpu: rate $found, want $rate: $(head -3 "$work/log")"
		wrong=$((wrong + 1))
	fi
done <"$work/jobs"
if [ $n -lt 30 ]; then not_ok "only $n jobs"; elif [ $wrong = 0 ]; then ok "$n jobs that the index does not list"; fi
expect "a list has its machine, too" right "$work/l" -g 3,5,0 --collective reducescatter
expect_exit "a size that it does not have" 5 "$perf" "$work/c" -g 0,1,2,3,4,5
expect_exit "a collective that it does not have" 5 "$perf" "$work/c" -g 0,1 --collective gather
sed 's/,"form":"[^"]*"//; /"machine":/d' "$work/c/index.json" >"$work/no-machine"
cp "$work/c/index.json" "$work/kept"
cp "$work/no-machine" "$work/c/index.json"
expect_exit "without the machine" 5 "$perf" "$work/c" -g 6,7
expect_exit "show: without the machine" 3 "$blinkc" show "$work/c" -g 6,7
expect "show: with --topology" "$blinkc" show "$work/c" -g 6,7 --topology topologies/dgx1v.xml
cp "$work/out" "$work/log"
expect "show: its GPUs" grep -q '^topology    dgx1v, 2 ranks: gpu[67] gpu[67];' "$work/log"
expect_exit "show: --topology of another machine" 3 "$blinkc" show "$work/c" -g 6,7 --topology topologies/dgx1p.xml
sed 's/,25000000000,/,26000000000,/' "$work/kept" >"$work/c/index.json"
expect_exit "a machine of another digest" 3 "$perf" "$work/c" -g 6,7
expect "its message" grep -q 'machine: its digest is sha256:.*: want that of the index' "$work/err"
sed 's/"form":"[^"]*"/"form":"0123456789abcdef"/' "$work/kept" >"$work/c/index.json"
expect_exit "forms of no job" 5 "$perf" "$work/c" -g 6,7
# Where all forms are equal, files are told apart by their links alone.
form=$(oracle snippet --field "$work/kept" \
	'[e["form"] for e in d["schedules"] if e["gpus"] == [0, 3] and e["collective"] == "allreduce"][0]')
sed 's/"form":"[^"]*"/"form":"'"$form"'"/' "$work/kept" >"$work/c/index.json"
expect "one form for all" right "$work/c" -g 6,7
"$blinkc" show "$work/c" -g 6,7 >"$work/log"
expect "one form for all: its links" grep -q '^rate        50 GB/s' "$work/log"
cp "$work/kept" "$work/c/index.json"
expect "shapes of a cluster" "$blinkc" batch -q --synthetic "server:8 gpu:8 switch:300 net:25" \
	--distinct -n 4 -o "$work/shapes"
expect "a job of four servers" right "$work/shapes" -g 63,12,20,41
expect "a job of two servers" right "$work/shapes" -g 63,57,20,21

# ---- the example ----

if nm -D "$build/libblink.so" | grep -q '__[at]san_init'; then
	skip "examples/lookup.c: this build has a sanitizer"
	exit 0
fi
expect "examples/lookup.c compiles" "${cc[@]}" -std=c99 -Wall -Wextra -Wpedantic -Werror -Iruntime/include \
	examples/lookup.c -o "$work/lookup" \
	-L"$build" -lblink -Wl,-rpath,"$build"
expect "examples/lookup.c" "$work/lookup" "$work/s" 3 0 5
cp "$work/out" "$work/log"
expect "examples/lookup.c says what it did" grep -qx \
	'dgx1v, broadcast from gpu3: broadcast/0,3,5.r0.json, trees: 1, 6 GB/s: 0 wrong' "$work/log"
expect_exit "examples/lookup.c without a schedule" 5 "$work/lookup" "$work/s" 3 0 5 1 2

# By the lookup file of an index what its JSON finds: listed jobs, and isomorphic ones, whose files libblink has to try.
expect "one root of each class" "$blinkc" batch -q topologies/dgx1v.xml --distinct --sizes 3,4 --roots canonical \
	--collectives broadcast -o "$work/d"
cp -R "$work/d" "$work/by"
cp -R "$work/s" "$work/sby"
expect "the lookup file of an index" "$blinkc" convert "$work/by/index.json" -o "$work/by/index.lookup"
"$blinkc" convert "$work/s/index.json" -o "$work/sby/index.lookup" || not_ok "convert: exit $?"
n=0 wrong=0 found=0
while read -r gpus; do
	for pair in d:by s:sby; do
		n=$((n + 1))
		# shellcheck disable=SC2086
		"$work/lookup" "$work/${pair%:*}" $gpus 2>&1 | sed "s|$work/[a-z]*||g" >"$work/json.out"
		# shellcheck disable=SC2086
		"$work/lookup" "$work/${pair#*:}" $gpus 2>&1 | sed "s|$work/[a-z]*||g" >"$work/lookup.out"
		cmp -s "$work/json.out" "$work/lookup.out" || wrong=$((wrong + 1))
		grep -q ': 0 wrong' "$work/lookup.out" && found=$((found + 1))
	done
done < <(oracle snippet - "$([ "$full" ] && echo 300 || echo 15)" <<'END'
import random, sys
random.seed(5)
for _ in range(int(sys.argv[1])):
    print(*random.sample(range(8), random.choice([3, 3, 4, 4, 5])))
END
)
if [ $wrong = 0 ] && [ $found -gt $((n / 2)) ]; then ok "$n look-ups, $found found, the same by the lookup file"; else
	not_ok "$wrong of $n look-ups differ, $found found"; fi

# blinkc batch writes one where reading the index takes long, and blinkc check holds it against its index.
expect "a batch of many jobs" "$blinkc" batch -q topologies/dgx2.xml --sizes 2,3 --collectives all -o "$work/many"
if [ -s "$work/many/index.lookup" ] && [ ! -e "$work/all/index.lookup" ]; then
	ok "a lookup file for a large index"
else
	not_ok "lookup files: $(ls "$work/many" "$work/all")"; fi
expect "blinkc check takes it" "$blinkc" check -q "$work/many"
"$blinkc" convert "$work/many/index.json" --format lookup >"$work/again" || not_ok "convert: exit $?"
expect "convert writes the same bytes" cmp "$work/again" "$work/many/index.lookup"
sed -i 's/"trees":1,/"trees":1 ,/' "$work/many/index.json"
expect_exit "blinkc check refuses it beside another index" 3 "$blinkc" check -q "$work/many"
if grep -q "index.json: its lookup file: not of this index, or damaged: want what blinkc convert makes of it" \
	"$work/err"; then
	ok "and says how to make it again"; else not_ok "$(cat "$work/err")"; fi
expect "a batch renews it" "$blinkc" batch -q topologies/dgx2.xml --sizes 2,3 --collectives all -o "$work/many"
expect "blinkc check takes it again" "$blinkc" check -q "$work/many"
rm "$work/many/index.lookup"
mkdir "$work/many/index.lookup"
expect_exit "blinkc check refuses a directory in its place" 3 "$blinkc" check -q "$work/many"
expect "and says what it is" grep -q "index.json: its lookup file: a directory: want a file, or none" "$work/err"
