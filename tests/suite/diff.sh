# blinkc diff: changes that were planted are found, and nothing else; numbers are those of an oracle; exit status,
# --fail-on, --jobs, reports for CI systems; names and files made to do harm.
# shellcheck shell=bash disable=SC2016 source=tests/lib.sh
. tests/lib.sh

v=topologies/dgx1v.xml
compile() { "$blinkc" -q "$@" || not_ok "blinkc $*: exit $?"; }
both() { mkdir -p "$work/$1/old" "$work/$1/new"; cd "$work/$1" || exit 1; }
kinds() { oracle snippet --field "$1" '" ".join(sorted({i["kind"] for f in d["files"] for i in f["differences"]}))'; }

# diff NAME CODE ARGUMENT...: exits so; $work/text is what it prints, $work/err what it says besides
diff_exits() {
	local name=$1 code=$2 got
	shift 2
	"$blinkc" diff "$@" >"$work/text" 2>"$work/err" </dev/null
	got=$?
	if [ $got = "$code" ]; then
		ok "$name"
	else
		not_ok "$name: exit $got, want $code: $(head -c 300 "$work/text" "$work/err")"
	fi
}

# judged NAME OLD NEW: the oracle and the schema agree with the JSON, which is left in $work/diff.json
judged() {
	"$blinkc" diff --format json "$2" "$3" -o "$work/diff.json" 2>"$work/err"
	expect "$1: as the oracle says" oracle diff "$2" "$3" "$work/diff.json"
	expect "$1: schema" oracle validate "$top/schemas/diff.schema.json" "$work/diff.json"
}

# ---- what was planted ----

mkdir "$work/base"
compile $v -o "$work/base/allreduce.json"
compile $v -c broadcast --hybrid -o "$work/base/hybrid.json"
compile $v -c broadcast -r 5 -o "$work/base/broadcast.json"
compile $v -c allgather -g 0,1,2,3,4 -o "$work/base/allgather.json"
compile $v -c alltoall -g 0,1,2,3 -o "$work/base/alltoall.json"
compile $v -c gather -r 3 -g 0,1,2,3,5 -o "$work/base/gather.json"
compile topologies/dgx-h100-nvls.xml -o "$work/base/nvls.json"
compile topologies/two-dgx1v.xml -g s0/gpu0,s0/gpu1,s1/gpu3 -o "$work/base/servers.json"
both planted
oracle change --plant old new "$work"/base/*.json || not_ok "change.py: exit $?"
judged planted old new
planted=$(find new -name '*.json' | wc -l)
expect "each of $planted planted changes is found, and nothing else" oracle change --expect "$work/diff.json"
[ "$planted" -ge 150 ] || not_ok "only $planted changes were planted"
for file in new/*/*.json; do
	every 3 || continue
	kind=${file%/*} want=9
	kind=${kind##*/}
	case $kind in indent | keys | generator | name | renumber | to-all) want=0 ;; wrong) want=6 ;; esac
	"$blinkc" diff -q "old${file#new}" "$file" 2>/dev/null
	got=$?
	[ $got = $want ] || not_ok "$file: exit $got, want $want"
done
ok "exit status of each"

# ---- many pairs ----

both pairs
n=0
for gpus in 0,1,2 0,1,4,5 1,4,5,6 0,7 0,1,2,3,4 0,1,2,3,4,5,6,7; do
	for c in broadcast reduce allreduce allgather; do
		n=$((n + 1))
		mkdir -p old/$c new/$c
		options=("--tolerance 0.2" "-p mwu" "--max-depth 4" "--no-minimise" "-l all" \
			"-c reducescatter" "-a onehop")
		option=${options[n % 7]}
		case $c$option in allgather*mwu) option="-l all" ;; esac
		# That one takes long.
		[ "$full" ] || case $gpus$c$option in *7allreduce--max-depth*) option="--tolerance 0.2" ;; esac
		compile "$top/$v" -g $gpus -c $c -o old/$c/$gpus.json
		# Not every collective can have every option; where it cannot, the pair is the same, and the oracle
		# expects that of it.
		# shellcheck disable=SC2086 # a list of words
		"$blinkc" -q "$top/$v" -g $gpus -c $c $option -o new/$c/$gpus.json 2>/dev/null ||
			cp old/$c/$gpus.json new/$c/
	done
done
for seed in 1 2 3 4 5 6; do
	mkdir -p old/random new/random
	oracle random_topology $seed >topology.json
	compile topology.json -l all -o old/random/$seed.json
	compile topology.json -l all -c broadcast --no-minimise -o new/random/$seed.json
done
rm old/reduce/0,7.json new/broadcast/0,1,2.json
judged "$n pairs" old new
cp "$work/diff.json" forth.json
judged "$n pairs, the other way" new old
expect "what is better one way is worse the other" oracle snippet - forth.json "$work/diff.json" <<'END'
import json, sys
turned = {"better": "worse", "worse": "better", "other": "other"}
one, other = ([(f["file"], i["kind"], i["change"]) for f in json.load(open(path))["files"] for i in f["differences"]
               if i["kind"] in ("rate", "trees", "depth")] for path in sys.argv[1:])
assert [(f, k, turned[c]) for f, k, c in one] == other and {"better", "worse"} <= {c for _, _, c in one}
END

# ---- the same bytes however many processes ----

for format in text json; do
	"$blinkc" diff -j 1 --format $format old new >want
	for jobs in 3 ${full:+2 7} 100; do
		"$blinkc" diff --jobs $jobs --format $format old new >got
		expect "--jobs $jobs, $format" cmp want got
	done
done
# They differ, which the exit status says; what is compared is the output.
(cd new && "$blinkc" diff -v ../old . >../got) || true
"$blinkc" diff -v old/ new >want
expect "a directory by another name" cmp want got

# ---- --fail-on ----

cd "$top" || exit 1
o=tests/golden/diff/old n=tests/golden/diff/new
a=$o/allreduce/0-3.json b=$n/allreduce/0-3.json		# the rate falls, and there are fewer trees
diff_exits "any, as it is without --fail-on" 9 --fail-on any $a $b
diff_exits "any, also what is better" 9 --fail-on any,rate $b $a
diff_exits "a rate that falls" 9 --fail-on rate $a $b
diff_exits "a rate that rises" 0 --fail-on rate $b $a
diff_exits "fewer trees" 0 --fail-on trees $a $b
diff_exits "more trees" 9 --fail-on trees $b $a
diff_exits "segments" 9 --fail-on depth,segments $a $b
diff_exits "edges" 9 --fail-on edges $a $b
diff_exits "options" 9 --fail-on options $b $a
diff_exits "none of these" 0 --fail-on topology,root,collective,algorithm,bound,depth,parts,order,missing,new,file $a $b
diff_exits "only what is wrong" 0 --fail-on wrong $a $b
[ -s "$work/text" ] || not_ok "what does not fail is not shown"
diff_exits "order" 9 --fail-on order $o/broadcast/0-2.r0.json $n/broadcast/0-2.r0.json
diff_exits "no rate" 0 --fail-on rate,trees $o/broadcast/0-2.r0.json $n/broadcast/0-2.r0.json
diff_exits "missing" 9 --fail-on missing $o $n
diff_exits "new" 9 --fail-on new $o $n
diff_exits "a job's file" 9 --fail-on file $o $n
diff_exits "of nothing" 2 --fail-on "" $o $n
diff_exits "of what is no kind" 2 --fail-on rate,,trees $o $n
mkdir "$work/deep"
"$blinkc" -q $v -c broadcast --max-depth 3 -o "$work/deep/3.json"
"$blinkc" -q $v -c broadcast -o "$work/deep/7.json"
diff_exits "deeper" 9 --fail-on depth "$work/deep/3.json" "$work/deep/7.json"
diff_exits "less deep" 0 --fail-on depth "$work/deep/7.json" "$work/deep/3.json"
mv "$work/planted/new/wrong/broadcast.json" "$work/deep/wrong.json"
diff_exits "what is wrong fails always" 6 --fail-on rate "$work/deep/7.json" "$work/deep/wrong.json"
expect "its reason is a difference" grep '^wrong .*wrong.json: trees' "$work/text"
expect "its reason is said" grep '^blinkc: .*wrong.json: trees' "$work/err"
diff_exits "wrong on both sides" 6 "$work/deep/wrong.json" "$work/deep/wrong.json"

# ---- reports ----

# What JUnit XML and annotations say is what the JSON says: of each file, does it fail, why, and what else differs?
reported() {	# NAME EXIT OLD NEW KINDS...
	local name=$1 code=$2 old=$3 new=$4
	shift 4
	for kinds; do
		diff_exits "$name: --github, $kinds" "$code" --fail-on "$kinds" --github --junit "$work/r.xml" \
			-o "$work/r.json" "$old" "$new"
		expect "$name: stderr" cmp /dev/null "$work/err"
		expect "$name: valid" xmllint --noout --nonet --schema "$top/tests/junit.xsd" "$work/r.xml"
		expect "$name: as the JSON says, $kinds" oracle diff_reports "$old" "$new" \
			"$work"/{r.json,r.xml,text} "$kinds"
		tail -1 "$work/out" >>"$work/counts"
	done
}
reported planted 6 "$work/planted/old" "$work/planted/new" any rate depth,trees wrong
reported pairs 9 "$work/pairs/old" "$work/pairs/new" any rate missing,order
reported golden 9 $o $n any file,new
reported "nothing that fails" 0 $o $n root
expect "files that fail, that differ, and that do neither" awk \
	'{ same += $1 - $2 - $3; failed += $2; noted += $3 } END { exit !(same && failed && noted) }' "$work/counts"
"$blinkc" diff --github --junit "$work/one.xml" -j 1 "$work/planted/old" "$work/planted/new" >"$work/one"
"$blinkc" diff --github --junit "$work/many.xml" -j 7 "$work/planted/old" "$work/planted/new" >"$work/many"
expect "annotations, whatever --jobs" cmp "$work/one" "$work/many"
expect "JUnit XML, whatever --jobs" cmp "$work/one.xml" "$work/many.xml"
diff_exits "two files" 9 --github $a $b
expect "two files: an error and a notice" \
	[ "$(grep -c "^::error file=$a,title=blinkc diff::" "$work/text") $(wc -l <"$work/text")" = "1 2" ]
"$blinkc" diff --github - $b <$a >"$work/text"
expect "standard input is in no repository" grep -q "^::error file=$b," "$work/text"
diff_exits "-q with annotations" 9 -q --github $a $b
expect "-q leaves annotations" grep -q '^::error ' "$work/text"
diff_exits "--junit -" 9 -q --junit - $o $n
expect "--junit - is on standard output" xmllint --noout "$work/text"
diff_exits "--junit beside text" 9 --junit "$work/r.xml" $o $n
"$blinkc" diff $o $n >"$work/want"
expect "--junit changes no line" cmp "$work/want" "$work/text"
diff_exits "--junit to nowhere" 8 -q --junit "$work/nowhere/r.xml" $a $b
diff_exits "--junit to a full disk" 8 -q --junit /dev/full $a $b
mkdir -p "$work/odd/old" "$work/odd/new"
cp $a "$work/odd/old/"$'a\n%25:"<&,\x01\xff.json'
cp $b "$work/odd/new/"$'a\n%25:"<&,\x01\xff.json'
(cd "$work/odd" && "$blinkc" diff --github --junit r.xml old new >text)
expect "a name of odd characters: valid" xmllint --noout --nonet --schema tests/junit.xsd "$work/odd/r.xml"
expect "a name of odd characters: two lines" [ "$(wc -l <"$work/odd/text")" = 2 ]
expect "a name of odd characters is escaped" grep -qaF \
	$'::error file=old/a%0A%2525%3A"<&%2C??.json,title=blinkc diff::' "$work/odd/text"

# ---- arguments and output ----

"$blinkc" diff - $b <$a >"$work/got"
"$blinkc" diff $a $b >"$work/want"
expect "standard input is the old one" cmp "$work/want" "$work/got"
diff_exits "-q" 9 -q $o $n
expect "-q prints nothing" cmp /dev/null <(cat "$work/text" "$work/err")
diff_exits "-o x.json" 9 -o "$work/x.json" $o $n
"$blinkc" diff --format json $o $n >"$work/want"
expect "-o x.json is JSON" cmp "$work/want" "$work/x.json"
diff_exits "-o of another ending" 9 -o "$work/x.log" $a $b
"$blinkc" diff $a $b >"$work/want"
expect "is text" cmp "$work/want" "$work/x.log"
diff_exits "--format xml" 2 --format xml $a $b
diff_exits "a file that is not there" 8 $a "$work/nowhere.json"
diff_exits "a directory without schedules" 3 schemas/../src man
diff_exits "three" 2 $a $b $a
expect_exit "--jobs 0" 2 "$blinkc" diff --jobs 0 $a $b
expect_exit "a full disk" 8 bash -c '"$1" diff "$2" "$3" >/dev/full' - "$blinkc" $a $b
sed 's/"version": "0.1.0"/"version": "0.2.0"/' $a >"$work/later.json"
diff_exits "another version" 0 $a "$work/later.json"
expect "is not said" cmp /dev/null "$work/text"
diff_exits "another version, -v" 0 -v $a "$work/later.json"
expect "is said" grep '^note .*made by blinkc 0.2.0, was by blinkc 0.1.0$' "$work/text"

# ---- an index ----

both index
cp -r "$top/$o"/. old && cp -r "$top/$o"/. new
# GPUs of the machine by other numbers, and entries in another order: the same jobs.
oracle snippet - <<'END'
import json
d = json.load(open("old/index.json"))
d["topology"]["gpus"].reverse()
for entry in d["schedules"]:
    entry["gpus"] = [7 - g for g in entry["gpus"]]
d["schedules"].reverse()
json.dump(d, open("new/index.json", "w"))
END
"$blinkc" diff --format json old new -o d.json
if [ "$(kinds d.json)" = topology ]; then
	ok "jobs are known by the ids of their GPUs"
else
	not_ok "renumbered: $(kinds d.json)"
fi
oracle snippet - <<'END'
import json
d = json.load(open("old/index.json"))
d["schedules"][1].update(depth=9, trees=1)
d["schedules"][2].update(file="allreduce/0-3.json")
d["schedules"][3].update(ranks=[0, 2, 1], bound=51)
del d["schedules"][4]
json.dump(d, open("new/index.json", "w"), indent=1)
END
"$blinkc" diff --format json old new -o d.json
expect "jobs that changed" oracle snippet - d.json <<'END'
import json, sys
entry = [f for f in json.load(open(sys.argv[1]))["files"] if f["file"] == "index.json"][0]
found = sorted((i["kind"], ",".join(i["job"]["gpus"]), i["job"]["collective"], i["change"])
               for i in entry["differences"])
assert found == [("bound", "gpu0,gpu1,gpu2", "broadcast", "other"), ("depth", "gpu0,gpu1,gpu2", "allreduce", "worse"),
                 ("file", "gpu0,gpu1,gpu2", "broadcast", "other"), ("file", "gpu0,gpu1,gpu4", "allreduce", "other"),
                 ("missing", "gpu0,gpu1,gpu2,gpu3", "allreduce", "other"),
                 ("trees", "gpu0,gpu1,gpu2", "allreduce", "better")], found
END
# The same schedule, in two ranges instead of any size: other jobs.
oracle snippet - <<'END'
import json
d = json.load(open("old/index.json"))
for entry in d["schedules"]:
    if entry["gpus"] == [0, 1, 2] and entry["collective"] == "allreduce":
        d["schedules"].append(dict(entry, bytes=[0, 8192]))
        entry["bytes"] = [8193, 2 ** 53]
        break
json.dump(d, open("new/index.json", "w"))
END
"$blinkc" diff --format json old new -o d.json
expect "ranges of sizes" oracle snippet - d.json <<'END'
import json, sys
entry = [f for f in json.load(open(sys.argv[1]))["files"] if f["file"] == "index.json"][0]
found = sorted((i["kind"], i["job"].get("bytes")) for i in entry["differences"])
assert found == [("missing", None), ("new", [0, 8192]), ("new", [8193, 9007199254740992])], found
END
expect "ranges of sizes in words" grep -q 'allreduce of gpu0,gpu1,gpu2, 0 to 8192 bytes' <("$blinkc" diff old new)
mkdir -p old/deeper new/deeper
cp old/index.json old/deeper && cp new/index.json new/deeper
"$blinkc" diff -q old new
expect "an index further down is one, too" grep -q 'deeper/index.json' <("$blinkc" diff old new)
echo '{ "format": "blink-index", "version": 1 }' >new/index.json
diff_exits "an index that is none" 3 old new
sed 's/"gpu7"/"gpu6"/' old/index.json >new/index.json
diff_exits "an index with a GPU twice" 3 old new
rm new/index.json
diff_exits "an index that is gone" 9 --fail-on missing old new

# ---- links side by side ----

both parallel
oracle snippet - >machine.json <<-'END'
	import json
	links = [{"from": "a", "to": "b", "class": "nvlink", "capacity": c, "duplex": "full"} for c in (1, 2)]
	print(json.dumps({"format": "blink-topology", "version": 1, "name": "parallel",
	                  "nodes": [{"id": "n", "gpus": [{"id": "a"}, {"id": "b"}]}], "links": links}))
	END
compile machine.json -o one.json
oracle snippet - one.json >other.json <<-'END'
	import json, sys
	d = json.load(open(sys.argv[1]))
	d["topology"]["links"].reverse()
	for tree in d["trees"]:
	    for edge in tree["down"] + tree["up"]:
	        edge[2] = [len(d["topology"]["links"]) - 1 - link for link in edge[2]]
	print(json.dumps(d))
	END
cp one.json old
cp one.json new
expect_exit "standard output is closed" 8 bash -c '"$1" diff old new >&-' - "$blinkc"
diff_exits "numbers of links of other capacities side by side" 0 one.json other.json

# ---- files and names made to do harm ----

both harm
bad=$'x\e[31m "\\\n\xff\xc3.json'
cp "$top/$a" "old/$bad" && cp "$top/$b" "new/$bad"
cp "$top/$a" old/good.json && cp "$top/$a" new/good.json
"$blinkc" diff old new >got
if tr -d '\n' <got | grep -q '[[:cntrl:]]'; then
	not_ok "control characters come out"
else
	ok "no control characters come out"
fi
expect "what comes out is UTF-8" iconv -f UTF-8 -t UTF-8 got
"$blinkc" diff --format json old new -o d.json
expect "what comes out is JSON" oracle validate "$top/schemas/diff.schema.json" d.json
truncate -s 129M new/large.json
: >new/empty.json
cp "$top/$a" old/large.json
mkdir -p old/.hidden new/directory.json
cp "$top/$a" old/.hidden/
ln -s ../old new/loop
diff_exits "files that are too large or empty" 3 old new
for name in large empty; do
	expect "$name.json is wrong, and others are compared" grep -A2 "^$name.json" "$work/text"
done
expect "all are counted" grep '^files  *4: 1 same, 1 changed, 0 missing, 0 new, 2 wrong' "$work/text"

# Each mutant is wrong, or differs from its original; no worker dies.
both mutants
oracle mutate --each 7 new "$work"/base/*.json || not_ok "mutate.py: exit $?"
for file in "$work"/base/*.json; do
	made=(new/*."${file##*/}")
	tee "${made[@]/#new/old}" <"$file" >/dev/null
done
mutants=$(find new -type f | wc -l)
"$blinkc" diff --format json old new -o d.json 2>/dev/null
got=$?
expect "$mutants mutants are wrong" oracle snippet - d.json $got <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert len(d["files"]) > 100 and sys.argv[2] in "346", (len(d["files"]), sys.argv[2])
assert all(f["state"] == "wrong" and "worker" not in f["differences"][0]["message"] for f in d["files"]), d["summary"]
END
both bytes
oracle snippet - "$work/base" <<'END'
import os, random, sys
random.seed(5)
for name in sorted(os.listdir(sys.argv[1])):
    data = open(f"{sys.argv[1]}/{name}", "rb").read()
    for i in range(40):
        copy = bytearray(data)
        for _ in range(random.choice([1, 1, 2, 5])):
            at = random.randrange(len(copy))
            if random.random() < 0.3:
                del copy[at:at + random.randrange(1, 40)]
            else:
                copy[at] = random.choice(b"0123456789-/,.[]{}\"ae\xff\x00")
        for directory, content in (("old", data), ("new", copy)):
            open(f"{directory}/{i}-{name}", "wb").write(content)
END
"$blinkc" diff -v --format json old new -o d.json 2>/dev/null
expect "files with other bytes" oracle snippet - d.json <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
states = {f["state"] for f in d["files"]}
assert len(d["files"]) == 320 and states >= {"wrong", "same"} and not states & {"missing", "new"}, d["summary"]
assert not any("worker" in i["message"] for f in d["files"] for i in f["differences"])
END
expect "schema of what comes of them" oracle validate "$top/schemas/diff.schema.json" d.json
