# blinkc batch: every set of GPUs has its schedule, isomorphic sets the same one; complete, whatever the number of
# processes, where it is killed, and what it finds there. Held against brute force by tests/oracle/batch.py.
# shellcheck shell=bash disable=SC2154,SC2054
. tests/lib.sh

batch() { "$blinkc" batch "$@"; }

# same_tree NAME: $work/reference and $work/again have the same files, hidden ones too
same_tree() {
	if diff -r "$work/reference" "$work/again" >"$work/out" 2>&1; then
		ok "$1"
	else
		not_ok "$1: $(head -3 "$work/out" | tr '\n' ' ')"
	fi
}

# ---- DGX-1V: 247 sets, all roots ----

few=$([ "$full" ] && echo 1 || echo 7)	# one job in so many is compiled alone, too
all=$work/whole
expect "dgx1v: allreduce and broadcast" batch topologies/dgx1v.xml --collectives allreduce,broadcast -o "$all"
grep -E '^( |index|schedules)' "$work/out" >"$work/summary"
classes=$(awk '$1 >= 3 && $1 <= 8 { n += $3 } END { print n }' "$work/summary")
if [ "$classes" = 46 ]; then
	ok "dgx1v: 46 classes of 3 to 8 GPUs on NVLink"
else
	not_ok "dgx1v: $classes classes on NVLink, want 46"
fi
expect "dgx1v: 1263 jobs" grep -qx 'index       1263 jobs: broadcast 1016 allreduce 247; .*' "$work/summary"
files=("$all"/*/*.json)
expect "dgx1v: ${#files[@]} files replayed" oracle replay "${files[@]}"
expect "dgx1v: blinkc check" "$blinkc" check -q "${files[@]}"
expect "dgx1v: complete, and each job the machine of its file" \
	oracle batch "$blinkc" topologies/dgx1v.xml "$all" --collectives allreduce,broadcast --every "$few"
classes=$(batch topologies/dgx1p.xml --sizes 3-8 -o "$work/dgx1p" 2>&1 | awk '$1 == "all" { print $3 }')
if [ "$classes" = 14 ]; then
	ok "dgx1p: 14 classes on NVLink"
else
	not_ok "dgx1p: $classes classes on NVLink, want 14"
fi
# Other suites judge the files of a batch where they mean what compile gives.
every=$([ "$full" ] && echo 1 || echo 10)
expect "each file is what compile gives" oracle compiled "$blinkc" topologies/dgx1v.xml "$all" --every "$every"

# ---- the same bytes ----

# Below, the same batch is planned many times: without the sets of six GPUs and more, which take longer than all others.
most=()
[ "$full" ] || most=(--sizes 2-5)
both=(topologies/dgx1v.xml --collectives allreduce,broadcast "${most[@]}")
batch "${both[@]}" -o "$work/reference" >"$work/summary" 2>&1 || not_ok "the batch to compare with: exit $?"
n_files=$(sed -n 's/^schedules   \([0-9]*\) of .*/\1/p' "$work/summary")

for jobs in 1 ${full:+3} 7; do
	rm -rf "$work/again"
	batch -q "${both[@]}" -j $jobs -o "$work/again"
	same_tree "--jobs $jobs: the same bytes"
done
rm -rf "$work/again"
for i in 3 1 2; do batch -q "${both[@]}" --shard $i/3 -o "$work/again" || not_ok "--shard $i/3: exit $?"; done
if [ -e "$work/again/index.json" ]; then not_ok "--shard: an index of a part"; else ok "--shard: no index of a part"; fi
expect "shards together: nothing is left to plan" grep \
	-q "^schedules   $n_files of $n_files: 0 planned, $n_files kept$" \
	<(batch "${both[@]}" -o "$work/again" 2>&1)
same_tree "shards: the same bytes"

rm -rf "$work/again"
for task in 2 1 0; do
	SLURM_ARRAY_TASK_ID=$task BLINKC=$blinkc BLINKC_OPTIONS="-q ${both[*]:1}" examples/slurm.sh \
		topologies/dgx1v.xml "$work/again" 2 ||
		not_ok "examples/slurm.sh: task $task: exit $?"
done
same_tree "examples/slurm.sh: the same bytes"

# ---- killed ----

# By progress rather than by the clock: as soon as a file is there, in the order in which another run wrote them.
rm -rf "$work/again"
batch -q "${both[@]}" -o "$work/again"
mapfile -t written < <(cd "$work/again" && ls -tr -- */*.json)
mkfifo "$work/never"
exec 8<>"$work/never"
moments=3 early=0
[ ! "$full" ] || moments=21
for ((i = 1; i <= moments; i++)); do
	rm -rf "$work/again"
	after=${written[(i * 7919 % moments) * ${#written[@]} / moments]}
	"$blinkc" batch -q "${both[@]}" -o "$work/again" 2>/dev/null &
	pid=$!
	until [ -e "$work/again/$after" ] || ! kill -0 $pid 2>/dev/null; do read -rt 0.002 -u 8; done
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	found=("$work"/again/*/*.json)
	[ -e "$work/again/index.json" ] || early=$((early + 1))
	[ ! -e "${found[0]}" ] || "$blinkc" check -q "${found[@]}" || not_ok "killed at $after: a broken file"
	batch -q "${both[@]}" -o "$work/again" || not_ok "killed at $after: exit $? of the next run"
	diff -r "$work/reference" "$work/again" >"$work/out" || not_ok "killed at $after: $(head -2 "$work/out")"
done 2>/dev/null
exec 8>&-
if [ $early -ge $((moments / 2)) ]; then
	ok "killed at $moments moments, $early before the end: the same bytes"
else
	not_ok "killed too late: $early of $moments before the end"
fi

# Files that another process is writing stay; files that nobody writes are removed.
exec 9>"$work/again/allreduce/.blink.abcdef"
flock 9
: >"$work/again/allreduce/.blink.ABCDEF"
batch -q "${both[@]}" -o "$work/again"
if [ -e "$work/again/allreduce/.blink.abcdef" ] && [ ! -e "$work/again/allreduce/.blink.ABCDEF" ]; then
	ok "temporaries go, those in use stay"
else
	not_ok "temporaries: $(find "$work/again/allreduce" -name ".*" | tr "\n" " ")"
fi
exec 9>&-
batch -q "${both[@]}" -o "$work/again"
same_tree "temporaries: the next run removes them"

# ---- earlier files ----

# spoilt NAME: after $work/again was spoilt, a run says what it replaced, and all is as it was
spoilt() {
	local code=0
	batch "${both[@]}" -o "$work/again" >"$work/err" 2>&1 || code=$?
	if [ $code = 0 ] && grep -q "^replaced    .*$2" "$work/err"; then
		ok "$1: told"
	else
		not_ok "$1: exit $code: $(head -3 "$work/err")"
	fi
	same_tree "$1: mended"
}
again=$work/again
truncate -s 700 "$again/allreduce/0-4.json"
spoilt "cut short" 'allreduce/0-4.json'
: >"$again/allreduce/0,1.json"
spoilt "empty" 'allreduce/0,1.json: '
cp "$again/allreduce/0-2.json" "$again/allreduce/0-3.json"
spoilt "another set's schedule" 'allreduce/0-3.json: different options, version or machine'
sed -i 's|"latency": 0|"latency": 7|' "$again/broadcast/0-4.r0.json"
sed -i 's|"capacity": 50,|"capacity": 75,|' "$again/allreduce/0-2,4,5.json"
spoilt "other links" 'allreduce/0-2,4,5.json: '
sed -i 's|"version": "[^"]*"|"version": "0.0.1"|' "$again/allreduce/0,1,6.json"
spoilt "another version" 'allreduce/0,1,6.json: different options'
batch -q topologies/dgx1v.xml "${most[@]}" --tolerance 0.2 -o "$again"
spoilt "other options" 'different options'
oracle snippet - "$again"/*/0,*.json <<-'END'
	import random, sys
	r = random.Random(1)
	for path in sys.argv[1:]:
	    with open(path, "r+b") as file:
	        data = bytearray(file.read())
	        for _ in range(5):
	            data[r.randrange(len(data))] = r.randrange(33, 127)
	        file.seek(0)
	        file.write(data)
	END
batch -q "${both[@]}" -o "$again" || not_ok "flipped bytes: exit $?"
same_tree "flipped bytes: mended"
echo '{' >"$again/index.json"
batch -q "${both[@]}" -o "$again" || not_ok "index: exit $?"
same_tree "a spoilt index: mended"

# ---- what cannot be written ----

rm "$again/allreduce/0-4.json"
mkdir "$again/allreduce/0-4.json"
expect_exit "a directory in the way" 8 batch -q "${both[@]}" -o "$again"
expect "a directory in the way is named" grep -q 'allreduce/0-4.json: Is a directory' "$work/err"
rmdir "$again/allreduce/0-4.json"
batch -q "${both[@]}" -o "$again"
same_tree "without it: whole"
: >"$work/file"
expect_exit "a file for the directory" 8 batch -q "${both[@]}" -o "$work/file"
mkdir "$work/half"
: >"$work/half/allreduce"
expect_exit "a file for a collective" 8 batch -q "${both[@]}" -o "$work/half"
expect_exit "no directory to make it in" 8 batch -q "${both[@]}" -o "$work/none/such"

# Files of more than 2 KiB cannot be written; what could be is there, and whole.
rm -rf "$again"
(ulimit -f 2 && batch -q "${both[@]}" -o "$again" >"$work/err" 2>&1)
code=$?
if [ $code = 8 ] && grep -q 'File too large; [0-9]* other schedules are missing, too' "$work/err" &&
	[ "$(wc -l <"$work/err")" = 1 ]; then
	ok "no room for large files: told in one line"
else
	not_ok "no room for large files: exit $code: $(head -3 "$work/err")"
fi
left=$(find "$again" -name '.*' -type f)
if [ -z "$left" ] && [ ! -e "$again/index.json" ]; then
	ok "no room: no part of a file, no index"
else
	not_ok "no room: $left"
fi
batch -q "${both[@]}" -o "$again"
same_tree "then there is: whole"
mkdir "$work/full"
if mount -t tmpfs -o size=300k tmpfs "$work/full" 2>/dev/null; then
	expect_exit "a full disk" 8 batch -q "${both[@]}" -o "$work/full/s"
	expect "a full disk is named" grep -q 'No space left on device' "$work/err"
	found=("$work"/full/s/*/*.json)
	expect "a full disk: ${#found[@]} files are whole" "$blinkc" check -q "${found[@]}"
	mount -o remount,size=16m "$work/full"
	batch -q "${both[@]}" -o "$work/full/s"
	expect "the disk has room again: the same bytes" diff -r "$work/reference" "$work/full/s"
	rm "$work/full/s/allreduce/0-4.json"
	if mount -o remount,ro "$work/full" 2>/dev/null; then
		expect_exit "a read-only directory" 8 batch -q "${both[@]}" -o "$work/full/s"
		expect "a read-only directory is named" grep -q 'Read-only file system' "$work/err"
	fi
	umount "$work/full"
else
	skip "a full disk, a read-only directory: no file system can be mounted here"
fi

# A process that is killed from outside fails its schedule, and no other; one that is killed between two schedules fails
# none.
for a in 0 1 2 3; do for b in 4 5 6; do echo "$a,$b,7-9,12-14"; done; done >"$work/eight"
for _ in $(seq 20); do
	rm -rf "$again"
	"$blinkc" batch -q topologies/mi250.xml --gpus "$work/eight" --collectives all -j 2 -o "$again" 2>"$work/err" &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		worker=$(pgrep -P $pid | tail -1)
		[ -z "$worker" ] || { [ -e "$again/alltoall" ] && kill -9 "$worker" && break; }
		sleep 0.01
	done
	wait $pid
	code=$?
	[ $code = 0 ] || break
done
if [ $code = 1 ] && grep -q '^blinkc: [a-z]*/[0-9,r.-]*.json: the worker was killed by signal 9$' "$work/err"; then
	ok "a killed worker is named"
elif [ $code = 0 ] && [ -z "$worker" ]; then
	skip "a killed worker: it was done before"
else
	not_ok "a killed worker: exit $code: $(cat "$work/err")"
fi

# ---- DGX-2, random machines, clusters ----

IFS=: read -r sizes sets classes <<<"$([ "$full" ] && echo 2-16:65519:15 || echo 2-4,13-16:3197:7)"
expect "dgx2: $sets sets" batch topologies/dgx2.xml --sizes "$sizes" -o "$work/dgx2"
cp "$work/out" "$work/err"
expect "dgx2: $classes classes" grep -qEx "  all +$sets +$classes" "$work/err"
expect "dgx2: $classes files" test "$(find "$work/dgx2/allreduce" -name '*.json' | wc -l)" = "$classes"
expect "dgx2: $sets jobs, of their classes" oracle snippet - "$work/dgx2/index.json" "$sets" "$full" <<-'END'
	import json, sys
	jobs = json.load(open(sys.argv[1]))["schedules"]
	assert len(jobs) == len({tuple(j["gpus"]) for j in jobs}) == int(sys.argv[2])
	assert all(sorted(j["ranks"]) == list(range(len(j["gpus"]))) for j in jobs)
	sizes = range(2, 17) if sys.argv[3] else (2, 3, 4, 13, 14, 15, 16)
	assert {(len(j["gpus"]), j["file"]) for j in jobs} == \
	    {(n, "allreduce/0,1.json" if n == 2 else f"allreduce/0-{n - 1}.json") for n in sizes}
	END

for seed in $(seq "$([ "$full" ] && echo 12 || echo 2)"); do
	case $((seed % 4)) in 0) kind=direct ;; 1) kind=oneway ;; 2) kind=switched ;; *) kind=mixed ;; esac
	oracle random_topology "$seed" --kind $kind --ranks 5 >"$work/random.json"
	rm -rf "$work/random"
	expect "random $kind $seed" batch -q "$work/random.json" --collectives allgather,reduce -o "$work/random"
	expect "random $kind $seed: complete and true" \
		oracle batch "$blinkc" "$work/random.json" "$work/random" --collectives allgather,reduce
done

# Pairs of GPUs that differ from the first in one thing each, but for the last, which is like it; the second line is of
# roots.
oracle snippet - >"$work/pairs.json" <<-'END'
	import json
	def link(a, b, **more):
	    return {"from": f"g{a}", "to": b if isinstance(b, str) else f"g{b}", "class": "nvlink", "capacity": 24,
	            "latency": 1, **more}
	links = [link(0, 1), link(2, 3, latency=2), link(4, 5, count=2, capacity=12), link(6, 7, capacity=25),
	         link(8, 9, **{"class": "xgmi"}), link(10, 11), link(12, 13, duplex="simplex"),
	         link(13, 12, duplex="simplex", latency=3), link(14, "s"), link(15, "s"), link(16, "m"), link(17, "m"),
	         link(18, "r"), link(19, "r"), link(20, 21)]
	switches = [{"id": "s"}, {"id": "m", "multicast": True}, {"id": "r", "reduce": True}]
	nodes = [{"id": "n0", "gpus": [{"id": f"g{g}"} for g in range(22) if g != 11], "switches": switches},
	         {"id": "n1", "gpus": [{"id": "g11"}]}]
	print(json.dumps({"format": "blink-topology", "version": 1, "name": "pairs", "links": links, "nodes": nodes}))
	END
for a in 0 2 4 6 8 10 12 14 16 18 20; do echo "g$a,g$((a + 1))"; done >"$work/pairs"
expect "pairs that differ in one thing" batch -q "$work/pairs.json" -g "$work/pairs" --collectives \
	broadcast,allreduce -o "$work/pair"
expect "pairs that differ in one thing: a class for each" oracle snippet - "$work/pair/index.json" <<-'END'
	import json, sys
	of = {}
	for e in json.load(open(sys.argv[1]))["schedules"]:
	    of.setdefault(e["collective"], {}).setdefault(e["file"], []).append(sorted(e["gpus"])[0])
	assert sorted(map(len, of["allreduce"].values())) == [1] * 9 + [2], of["allreduce"]
	assert any(len(v) == 2 and 0 in v for v in of["allreduce"].values()), of
	assert sorted(map(len, of["broadcast"].values())) == [1] * 2 + [2] * 8 + [4], of["broadcast"]
	END

sizes=$([ "$full" ] && echo 3-4 || echo 3)
expect "roots: best" batch -q topologies/dgx1v.xml --sizes "$sizes" --collectives broadcast --roots best -o "$work/best"
expect "roots: one of each set" oracle batch "$blinkc" topologies/dgx1v.xml "$work/best" --sizes "$sizes" \
	--collectives broadcast --roots best --every "$few"
batch -q topologies/dgx1v.xml --sizes "$sizes" --collectives broadcast -o "$work/all"
expect "roots: the best is" oracle snippet - "$work/best/index.json" "$work/all/index.json" <<-'END'
	import json, sys
	best, every = (json.load(open(p))["schedules"] for p in sys.argv[1:])
	for b in best:
	    assert b["rate"] == max(e["rate"] for e in every if e["gpus"] == b["gpus"]), b
	END
# From all roots of a DGX-1V the rate is the same; over one-way links it is not.
oracle random_topology 5 --kind oneway --ranks 5 >"$work/oneway.json"
batch -q "$work/oneway.json" --collectives broadcast --roots best -o "$work/best"
batch -q "$work/oneway.json" --collectives broadcast -o "$work/all"
expect "roots: the best is, where they differ" oracle snippet - "$work/best/index.json" "$work/all/index.json" <<-'END'
	import json, sys
	best, every = (json.load(open(p))["schedules"] for p in sys.argv[1:])
	differ = 0
	for b in best:
	    rates = [e["rate"] for e in every if e["gpus"] == b["gpus"]]
	    assert b["rate"] == max(rates), b
	    differ += min(rates) < max(rates)
	assert differ > 2, differ
	END
expect "roots: canonical" batch -q topologies/dgx1v.xml --sizes "$sizes" --collectives broadcast --roots \
	canonical -o "$work/canonical"
expect "roots: one of each class" \
	oracle batch "$blinkc" topologies/dgx1v.xml "$work/canonical" --sizes "$sizes" --collectives \
		broadcast --roots canonical

# Brute force over all sets of these sizes.
sizes=$([ "$full" ] && echo 2-5 || echo 2-3)
for t in dgx1p ${full:+dgx1v}; do
	expect "$t: --distinct" batch -q topologies/$t.xml --distinct --sizes "$sizes" -o "$work/distinct-$t"
	expect "$t: --distinct leaves nothing out" \
		oracle batch "$blinkc" topologies/$t.xml "$work/distinct-$t" --sizes "$sizes" --shapes
done
IFS=: read -r nvlink left <<<"$([ "$full" ] && echo 2-8:50 || echo 2-3:36)"
expect "dgx1v: sets without NVLinks are left out" grep -qx "left out    $left sets that the links do not connect" \
	<(batch topologies/dgx1v.xml --sizes "$nvlink" -l nvlink -o "$work/nvlink" 2>&1)
expect "dgx1v: and the others are there" \
	oracle batch "$blinkc" topologies/dgx1v.xml "$work/nvlink" --sizes "$nvlink" -- -l nvlink
large=$([ "$full" ] && echo 7-8 || echo 7)
expect "hybrid" batch -q topologies/dgx1v.xml --hybrid --sizes "$large" -o "$work/hybrid"
expect "hybrid: complete and true" oracle batch "$blinkc" topologies/dgx1v.xml "$work/hybrid" \
	--sizes "$large" -- --hybrid

"$blinkc" topology --servers 8 topologies/dgx-a100.xml -o "$work/a100.json" || not_ok "8 x DGX A100"
expect "8 x DGX A100: every shape of $sizes GPUs" batch "$work/a100.json" --distinct --sizes "$sizes" -o "$work/shapes"
expect "8 x DGX A100: their machines" oracle batch "$blinkc" "$work/a100.json" "$work/shapes" \
	--distinct --sizes "$sizes"
expect "8 x DGX A100: replayed" oracle replay "$work"/shapes/allreduce/*.json
cat >"$work/jobs" <<-'END'
	# as schedulers give them
	n0:0-3 n3:0,1 n7:7
	CUDA_VISIBLE_DEVICES=3,1,0
	gpu:a100:4(IDX:0-2,5)
	n5/gpu0,n5/gpu1; n6:0
	8-11,16
END
sed -n 's/.*"id": "\([^"]*\)".*/\1/p' "$work/a100.json" | head -3 >"$work/ids"
node=$(oracle snippet --field "$work/a100.json" 'd["nodes"][1]["id"]')
sed -i "s|\bn\([0-9]\)|${node%1}\1|g" "$work/jobs"
expect "lists of a scheduler" batch -q "$work/a100.json" -g "$work/jobs" -o "$work/lists"
expect "lists: the GPUs in their order" oracle snippet - "$work/lists/index.json" <<-'END'
	import json, sys
	got = [j["gpus"] for j in json.load(open(sys.argv[1]))["schedules"]]
	assert got == [[3, 1, 0], [40, 41, 48], [0, 1, 2, 5], [8, 9, 10, 11, 16], [0, 1, 2, 3, 24, 25, 63]], got
	END
oracle snippet - "$([ "$full" ] && echo 60 || echo 10)" >"$work/fragments" <<-'END'
	import random, sys
	r = random.Random(1)
	most = 4 if sys.argv[1] == "60" else 2
	for _ in range(int(sys.argv[1])):
	    gpus = [s * 8 + g for s in r.sample(range(8), r.randint(1, 4))
	            for g in r.sample(range(8), r.randint(1, most))]
	    if len(gpus) > 1:
	        print(",".join(map(str, gpus)))
	END
expect "fragments of 8 x DGX A100" batch "$work/a100.json" -g "$work/fragments" -o "$work/fragmented"
expect "fragments: complete and true" oracle batch "$blinkc" "$work/a100.json" "$work/fragmented" \
	--lists "$work/fragments"

printf '%s\n' 0,3 0,1 3,0 1,0 0,2 >"$work/orders"
expect "a list, --distinct" batch -q topologies/dgx1v.xml -g "$work/orders" --distinct -o "$work/orders.d"
got=$(grep -o '^{"gpus":\[[0-9,]*' "$work/orders.d/index.json" | sed 's/.*\[//' | tr '\n' ' ')
if [ "$got" = "0,1 0,3 " ]; then
	ok "a list, --distinct: each class once, whatever the order of its GPUs"
else
	not_ok "a list, --distinct: $got"
fi

# Rates have 15 digits; those of 496/7 GB/s end otherwise when they are rounded to a double first.
expect "rates in sevenths" batch -q --synthetic "gpu:8 switch:62" --sizes 8 --collectives allgather -o "$work/sevenths"
expect "rates in sevenths are those of the file" "$blinkc" check -q "$work/sevenths"

# Ids that are numbers: those of another node are not taken for GPUs of this one.
oracle snippet - >"$work/digits.json" <<-'END'
	import itertools, json
	nodes = [{"id": n, "gpus": [{"id": g} for g in gpus]} for n, gpus in (("a", "01"), ("b", "23"))]
	links = [{"from": x, "to": y, "class": "net", "capacity": 1, "duplex": "full"}
	         for x, y in itertools.combinations("0123", 2)]
	print(json.dumps({"format": "blink-topology", "version": 1, "name": "digits", "nodes": nodes, "links": links}))
	END
echo b:0,1 >"$work/digits"
expect "numbers of a node" batch -q "$work/digits.json" -g "$work/digits" -o "$work/digits.d"
expect "numbers of a node are not ids of another" grep -q '^{"gpus":\[2,3\],' "$work/digits.d/index.json"
echo a:2 1 >"$work/digits"
expect_exit "an id of another node" 3 batch -q "$work/digits.json" -g "$work/digits" -o "$work/digits.d"

# ---- usage ----

expect_exit "no directory" 2 batch topologies/dgx1v.xml
expect_exit "standard output" 2 batch topologies/dgx1v.xml -o -
expect_exit "sizes" 2 batch topologies/dgx1v.xml --sizes 1-3 -o "$work/x"
expect_exit "more than there are" 2 batch topologies/dgx1v.xml --sizes 9 -o "$work/x"
expect_exit "sizes that are none" 2 batch topologies/dgx1v.xml --sizes 3, -o "$work/x"
expect_exit "an unknown collective" 2 batch topologies/dgx1v.xml --collectives all,ring -o "$work/x"
expect_exit "collectives that MWU does not plan" 2 batch topologies/dgx1v.xml --collectives \
	allreduce,gather -p mwu -o "$work/x"
expect_exit "roots" 2 batch topologies/dgx1v.xml --roots some -o "$work/x"
for shard in 0/2 3/2 1 a/b 1/2/3 1/; do
	expect_exit "--shard $shard" 2 batch topologies/dgx1v.xml --shard $shard -o "$work/x"
done
expect_exit "--jobs 0" 2 batch topologies/dgx1v.xml -j 0 -o "$work/x"
expect_exit "too many sets" 4 batch topologies/gb200-nvl72.xml -o "$work/x"
bad_list() {	# NAME MESSAGE LINE...
	printf '%b\n' "${@:3}" >"$work/list"
	expect_exit "list: $1" 3 batch topologies/dgx1v.xml -g "$work/list" -o "$work/x"
	expect "list: $1: $2" grep -qF -- "$2" "$work/err"
}
bad_list "a GPU twice" "list:2: 0: want each GPU once" 0,1 0,2,0
bad_list "no such GPU" "list:1: 8: want a GPU of the machine" 7,8
bad_list "a range that ends before it begins" "list:1: 3-1: want a GPU" 3-1
bad_list "no such id" "list:1: gpu9: want a GPU" gpu0,gpu9
bad_list "one GPU" "list:3: 1 GPU: want at least 2" 0,1 "" 2
bad_list "nothing" "no list of GPUs" "# none"
bad_list "a NUL byte" "a NUL byte" '0,1\0000'
bad_list "an open bracket" "want indices in (IDX:...)" 'gpu(IDX:0-1'
expect_exit "no such list" 8 batch topologies/dgx1v.xml -g "$work/none" -o "$work/x"
[ ! -e "$work/x" ] || not_ok "bad usage made a directory"

if command -v script >/dev/null; then
	# It is shown after half a second: the work takes two or more.
	script -qec "'$blinkc' batch -j 1 topologies/mi250.xml --sizes 5 -o '$work/bar' --collectives \
		allreduce,allgather,reducescatter,broadcast" /dev/null >"$work/terminal" </dev/null
	expect "a bar, and the time that is left" grep \
		-q 'planning \[#[#.]*\] [0-9]* of [0-9]*, [0-9.]* s, about [0-9.]* s left' "$work/terminal"
else
	skip "a progress bar: script(1) is not there"
fi
