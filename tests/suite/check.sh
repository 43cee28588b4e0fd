# blinkc check of directories and indexes: every planted fault is reported, in order, and nothing else is; reports for
# CI systems.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154,SC2016
. tests/lib.sh
mkdir "$work/d"
cd "$work/d" || exit 1

# says NAME EXIT COMMAND...: it exits so; stdout and stderr to out and err
says() {
	local name=$1 want=$2 got
	shift 2
	"$@" >out 2>err </dev/null
	got=$?
	if [ $got = "$want" ]; then ok "$name"; else not_ok "$name: exit $got, want $want: $(head -c 300 err)"; fi
}
same() { if cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1: $(cmp "$2" "$3" 2>&1)"; fi; }
empty() { if [ -s "$2" ]; then not_ok "$1: $(head -c 300 "$2")"; else ok "$1"; fi; }
# line NAME FILE LINE: FILE is this one line
line() { if [ "$(cat "$2")" = "$3" ]; then ok "$1"; else not_ok "$1: want $3 and got $(head -c 400 "$2")"; fi; }

"$blinkc" batch -q "$top/topologies/dgx1v.xml" --collectives allreduce,broadcast --roots canonical --sizes 2-4 \
	-o right 2>err || not_ok "batch: $(cat err)"
n=$(find right -name '*.json' | wc -l)
if [ "$n" -ge 60 ]; then ok "a directory of $n files"; else not_ok "a directory: only $n files"; fi
summary="$n files: $n valid, 0 invalid; ratio to the bound at least 1.000"

# ---- what is right ----

says "a directory that is right" 0 "$blinkc" check right
empty "and nothing is on stderr" err
line "and a summary is on stdout" out "$summary (right/allreduce/0,1,4,5.json)"
says "a name that ends in slashes" 0 "$blinkc" check right//
line "and paths are the same" out "$summary (right/allreduce/0,1,4,5.json)"
says "a directory, quietly" 0 "$blinkc" check -q right
empty "--quiet" out
says "an index stands for its files" 0 "$blinkc" check right/index.json
line "and is reported" out "right/index.json: valid
$n files: $n valid, 0 invalid; ratio to the bound at least 1.000 (right/allreduce/0,1,4,5.json)"
says "from within" 0 env -C right "$blinkc" check .
says "a directory and two files of it" 0 "$blinkc" check right right/allreduce/0,1.json right/allreduce/0,3.json
expect "files given by name are reported one by one" grep -q '^right/allreduce/0,3.json: valid$' out
expect "with their summaries" test "$(grep -c '^trees  ' out)" = 2
cp -r right least
"$blinkc" -q -p mwu --tolerance 0.3 -g 0,1,2,3 "$top/topologies/dgx1v.xml" -o least/zz.json
"$blinkc" -q -p mwu --tolerance 0.3 --max-depth 2 -g 0,1,2 "$top/topologies/dgx1v.xml" -o least/zy.json 2>err ||
	"$blinkc" -q --max-trees 1 -g 0,1,2,3 "$top/topologies/dgx1v.xml" -o least/zy.json
says "a schedule below its bound" 0 "$blinkc" check least
ratio=$(oracle snippet -c 'import glob, json, math
r = [json.load(open(f))["rate"] for f in glob.glob("least/*.json") if not f.endswith("index.json")]
print("%.3f" % (math.floor(min(x["achieved"] / x["bound"] for x in r) * 1000) / 1000))')
expect "the least ratio is reported" grep -qE "; ratio to the bound at least $ratio \(least/z[yz]\.json\)$" out
expect "files that no index names are reported" test "$(grep -c '^least/z[yz].json: not in any index$' out)" = 2

# ---- ranges of sizes ----

# ranges "0 8192" "8193 9000": the entry of allreduce over GPUs 0, 1 and 2 once for each, the first in place of it
ranges() {
	oracle snippet - "$@" <<'END'
import json, sys
d = json.load(open("right/index.json"))
entry = next(e for e in d["schedules"] if e["gpus"] == [0, 1, 2] and e["collective"] == "allreduce")
more = [dict(entry, bytes=[int(n) for n in r.split()]) for r in sys.argv[1:]]
d["schedules"].remove(entry)
json.dump(dict(d, schedules=more + d["schedules"]), open("sized/index.json", "w"))
END
}
cp -r right sized
ranges "0 8192" "8193 9007199254740992"
says "ranges of sizes" 0 "$blinkc" check sized
line "count as one job" out "$summary (sized/allreduce/0,1,4,5.json)"
sed -i 's/"depth": [0-9]*/"depth": 77/' sized/index.json
says "an entry of a range that is wrong" 3 "$blinkc" check sized
expect "is named by its range" grep -q 'allreduce over GPUs 0,1,2, 0 to 8192 bytes: depth: 77: the file has' err
ranges "0 8192" "8192 9000"
says "ranges that overlap" 3 "$blinkc" check sized
expect "are shown" grep -q 'index.json: schedules: two entries for 8192 bytes of the same GPUs, collective and root' err
ranges "0 8192" "8193 9000"
sed -i 's|"allreduce/[^"]*"|"none.json"|' sized/index.json	# the first on its line: that to 8192 bytes
expect "show and libblink know no size: the entry for the largest" "$blinkc" show sized -g 2,0,1
expect "likewise for isomorphic GPUs" "$blinkc" show sized -g 6,4,5

# ---- what is wrong ----

cp -r right wrong
oracle plant wrong >want || not_ok "plant.py: exit $?"
faults=$(wc -l <want)
says "faults are planted" 6 "$blinkc" check -j 1 wrong
mv out out-1
mv err err-1
found=0
exec 3<want 4<err-1
while read -r pattern <&3; do
	read -r got <&4
	if grep -qxP -e "$pattern" <<<"$got"; then found=$((found + 1)); else not_ok "want $pattern and got $got"; fi
done
if [ $found = "$(wc -l <err-1)" ] && [ $found = "$faults" ] && [ "$faults" -ge 20 ]; then
	ok "$found faults are reported, in order, and nothing else"
else
	not_ok "$found of $faults faults are reported"
fi
expect "the summary counts files" grep -qE '^[0-9]+ files: [0-9]+ valid, 15 invalid; ratio' out-1
for jobs in 2 7; do
	says "faults, --jobs $jobs" 6 "$blinkc" check --jobs $jobs wrong
	same "--jobs $jobs: the same on stdout" out out-1
	same "--jobs $jobs: the same on stderr" err err-1
done
says "--jobs=all CPUs" 6 "$blinkc" check wrong
same "all CPUs: the same on stderr" err err-1
says "the exit status is that of the first" 8 "$blinkc" check wrong/allreduce/nowhere.json wrong
says "the exit status is that of the first" 3 "$blinkc" check wrong/index.json /nowhere

mkdir nothing
says "an empty directory" 3 "$blinkc" check nothing
line "an empty directory" err "blinkc: nothing: no file that ends in .json: want schedules"
says "an empty directory and others" 3 "$blinkc" check nothing right
expect "others are checked" grep -q "^$n files: $n valid" out
says "no such directory" 8 "$blinkc" check nowhere/
line "no such directory" err "blinkc: nowhere/: No such file or directory"
mkdir topology
cp "$top/topologies/dgx1v.json" "$top/topologies/dgx1p.json" topology
says "topologies in a directory" 0 "$blinkc" check topology
line "topologies are read" out "2 files: 2 valid, 0 invalid"
sed -i '0,/"gpu7"/s//"gpu77"/' topology/dgx1p.json
says "a topology that is wrong" 3 "$blinkc" check topology
says "a topology by name is no schedule" 3 "$blinkc" check topology/dgx1v.json
line "a topology by name is no schedule" err \
	'blinkc: topology/dgx1v.json: a topology: want a schedule; blinkc FILE compiles one'

# An index that is wrong as a whole.
for change in 's/"version": 1/"version": 2/' 's/"gpu7"/"gpu6"/' 's/"version": 1/&, "version": 1/' '$d'; do
	rm -rf book
	cp -r right book
	sed -i "$change" book/index.json
	says "index: $change" 3 "$blinkc" check book
	expect "index: $change: once" test "$(grep -c '^blinkc: book/index.json:' err)" = 1 -a "$(wc -l <err)" = 1
done
for change in 's/sha256:0/sha256:1/' 's/"gpu7"/"gpu8"/'; do
	sed "$change" right/index.json >book/index.json
	says "index with its machine: $change" 3 "$blinkc" check book
	digest='^blinkc: book/index.json: machine: its digest is sha256:[0-9a-f]*: want that of the index, sha256:'
	expect "index with its machine: $change: the machine is another" test "$(grep -c "$digest" err)" = 1
done
# Indexes of jobs that are all listed have no machine.
sed '/^  "machine": /d; s/sha256:0/sha256:1/' right/index.json >book/index.json
says "index: another digest" 3 "$blinkc" check book
expect "another digest is reported for each file" test \
	"$(grep -c 'topology.digest: .*: the file has sha256:0c' err)" = $((n - 1))
sed -i 's/sha256:1/sha256:0/; s/"gpu7"/"gpu8"/' book/index.json
says "index: another GPU" 3 "$blinkc" check book
expect "another GPU is reported" grep -q 'topology.gpus: no gpu7: the file has it as rank 3' err

# What an index names has to be a schedule, though it is right as what it is.
cp right/index.json book/index.json
cp "$top/topologies/dgx1v.json" book/topology.json
sed -i 's|"file":"allreduce/0,1.json"|"file":"topology.json"|
	s|"file":"allreduce/0,3.json"|"file":"index.json"|' book/index.json
says "index: no schedules" 3 "$blinkc" check book
expect "index: a topology for a schedule" grep \
	-qx 'blinkc: book/index.json: topology.json: a topology: want a schedule' err
expect "index: itself for a schedule" grep -qx 'blinkc: book/index.json: index.json: an index: want a schedule' err
mkdir beside
cp -r right beside/in
cp least/zz.json beside
says "beside the directory of an index" 0 env -C beside/in "$blinkc" check index.json .. --github
expect "nothing beside it has to be named" test "$(grep -c '^::warning' out)" = 0

# ---- --topology ----

v=$top/topologies/dgx1v.xml
says "--topology" 0 "$blinkc" check --topology "$v" right
for options in "--hybrid=host --sizes 3" "--links all --sizes 2" "--sizes 8 --collectives all --roots best"; do
	rm -rf other
	# shellcheck disable=SC2086 # words
	"$blinkc" batch -q "$v" $options -o other 2>err || not_ok "batch $options: $(cat err)"
	says "--topology: $options" 0 "$blinkc" check --topology "$v" other
done
printf '%s\n' 0,1,8,9 4,5,12,13 2,3,14,15 1,0,9,8 >sets
"$blinkc" batch -q "$top/topologies/two-dgx1v.xml" -g sets -o servers 2>err || not_ok "batch -g: $(cat err)"
says "--topology: servers" 0 "$blinkc" check --topology "$top/topologies/two-dgx1v.xml" servers
says "--topology: another machine" 3 "$blinkc" check --topology "$top/topologies/dgx1p.xml" right/allreduce/0,1.json
expect "another machine is reported" grep -q '^blinkc: .*/dgx1p.xml: another machine than that of 1 of 1 schedule: '\
'1 has other links between its GPUs$' err
expect "and each link that differs, once" test \
	"$(grep -c '^blinkc: .*/dgx1p.xml: link gpu0 -> gpu1, nvlink: 20 GB/s, was 25 GB/s$' err)" = 1
# Of many schedules, too, and whatever the number of processes; each file is a failure in JUnit XML.
sed '0,/<link from="gpu0" to="gpu3" class="nvlink"/s//& capacity="20"/' "$v" >changed.xml
says "--topology: a link that changed" 3 "$blinkc" check -q -j 1 --topology changed.xml right --junit changed.junit
cp err err1
printf 'blinkc: changed.xml: link gpu%s, nvlink: 40 GB/s, was 50 GB/s\n' '0 -> gpu3' '3 -> gpu0' >want
expect "its two directions" diff want <(head -2 err)
expect "and a count of schedules" grep -qx "blinkc: changed.xml: another machine than that of $((n - 1)) of \
$((n - 1)) schedules: [0-9]* have other links between their GPUs" err
expect "nothing else" test "$(wc -l <err)" = 3
says "--topology: many processes" 3 "$blinkc" check -q -j 7 --topology changed.xml right
expect "the same lines" cmp err err1
expect "each schedule failed" test "$(grep -c '<failure .*topology.digest' changed.junit)" = $((n - 1))
says "--topology: --github" 3 "$blinkc" check --github --topology changed.xml right
expect "--github: an annotation for each link, and one for all" test \
	"$(grep -c '^::error file=changed.xml' out) $(grep -c '^::error' out)" = "3 3"
sed '/<link from="gpu0" to="gpu3" class="nvlink"/d; s/<node id="dgx1v">/<node id="box">/' "$v" >changed.xml
says "--topology: a link that is gone" 3 "$blinkc" check -q --topology changed.xml right
expect "it is named" grep -qx 'blinkc: changed.xml: link gpu0 -> gpu3, nvlink: removed, had 50 GB/s' err
expect "so is the server" grep -qx 'blinkc: changed.xml: server box, was dgx1v' err
says "--topology: no such file" 8 "$blinkc" check --topology nowhere.xml right
says "--topology: no topology" 3 "$blinkc" check --topology right/index.json right
wrong_ranks=0
for seed in 1 2 3 4 5 6; do
	rm -rf ranks
	cp -r right ranks
	oracle permute ranks "$top/topologies/dgx1v.json" $seed >want || not_ok "permute.py: exit $?"
	"$blinkc" check --topology "$v" ranks >out 2>err
	sed -nE 's/^blinkc: ranks\/index.json: ([^:]*): .*: ranks: the links of these GPUs are not those of .*/\1/p' \
		err >got
	# A root that moved is found first.
	sed -nE 's/^blinkc: ranks\/index.json: ([^:]*): .*: root: .*/\1/p' err >roots
	expect "ranks of seed $seed: those that are wrong, and no others" diff <(grep -vxFf roots want) got
	wrong_ranks=$((wrong_ranks + $(wc -l <got)))
done
expect "some are wrong" test $wrong_ranks -ge 20
# A file whose links are not those of the machine, though it is right for what it says.
rm -rf ranks
cp -r right ranks
sed -i '0,/"latency": [0-9.]*/s//"latency": 77/' ranks/allreduce/0-3.json
says "another latency than there is" 0 "$blinkc" check -q ranks/allreduce/0-3.json
says "--topology: another latency than there is" 3 "$blinkc" check -q --topology "$v" ranks/allreduce/0-3.json
line "it is reported" err \
	"blinkc: ranks/allreduce/0-3.json: topology.links: not those that --topology has between these GPUs"
sed '0,/"links": \["nvlink"\]/s//"links": ["nvlink", "wire"]/' right/allreduce/0-3.json >wire.json
says "--topology: a class that there is not" 3 "$blinkc" check -q --topology "$v" wire.json
expect "it is reported" grep -q '^blinkc: wire.json: generator.options: --links: ' err
sed 's/"gpu": "gpu3"/"gpu": "gpu9"/' right/allreduce/0-3.json >gpu.json
says "--topology: a GPU that there is not" 3 "$blinkc" check -q --topology "$v" gpu.json

# ---- names ----

odd=$'odd/a\n%"<&\'>,:;é\x01\xff.json'
mkdir odd
cp wrong/allreduce/package.json "$odd"
says "a name of odd characters" 3 "$blinkc" check odd --junit odd.xml
expect "is on one line" grep -qaxF $'blinkc: odd/a?%"<&\'>,:;é??.json: format: missing: want "blink-schedule"' err
expect "and in XML" oracle snippet -c 'import xml.etree.ElementTree as e; c = e.parse("odd.xml").getroot()[0][0]
assert c.get("file") == c.get("name") == "odd/a\n%\"<&\x27>,:;é\ufffd\ufffd.json", c.attrib
assert c[0].get("message") == "format: missing: want \"blink-schedule\"", c[0].attrib
assert c[0].get("type") == "BAD_INPUT", c[0].attrib'
says "a name of odd characters, in annotations" 3 "$blinkc" check --github odd
empty "annotations alone" err
expect "is escaped" grep -qaxF \
	$'::error file=odd/a%0A%25"<&\'>%2C%3A;é??.json,title=blinkc check::format: missing: want "blink-schedule"' out
long=$(printf 'd%.0s' {1..240})
mkdir -p "long/$long/$long/$long/$long/$long"
echo '{}' >"long/$long/$long/$long/$long/$long/x.json"
says "a path of 1200 bytes" 3 "$blinkc" check long
line "a path of 1200 bytes" err \
	"blinkc: long/$long/$long/$long/$long/$long/x.json: format: missing: want \"blink-schedule\""

# ---- reports ----

counted() {	# NAME FILE DIRECTORY: JUnit XML that others can read, and whose counts are those of its cases
	expect "$1: valid" xmllint --noout --nonet --schema "$top/tests/junit.xsd" "$2"
	expect "$1: counts" oracle snippet - "$2" "$3" <<-'END'
		import glob, sys, xml.etree.ElementTree as e
		top = e.parse(sys.argv[1]).getroot()
		cases, failed = top.findall("testsuite/testcase"), top.findall("testsuite/testcase/failure")
		for counts in top, top[0]:
		    got = int(counts.get("tests")), int(counts.get("failures")), counts.get("errors")
		    assert got == (len(cases), len(failed), "0"), counts.attrib
		assert len({c.get("name") for c in cases}) == len(cases)
		files = glob.glob(sys.argv[2] + "/**/*.json", recursive=True)
		files = {f for f in files if "/up.json/" not in f and not f.endswith("/up.json")}
		assert files == {c.get("file") for c in cases}, files ^ {c.get("file") for c in cases}
		print(len(failed))
	END
	failures=$(cat "$work/out")
}
says "--junit" 0 "$blinkc" check --junit right.xml right
counted "JUnit of what is right" right.xml right
line "no failures" <(echo "$failures") 0
says "--junit of faults" 6 "$blinkc" check wrong --junit=wrong.xml -j 1
same "--junit changes no line" err err-1
counted "JUnit of faults" wrong.xml wrong
line "as many failures as faults" <(echo "$failures") "$faults"
says "--junit of faults, again" 6 "$blinkc" check wrong --junit again.xml -j 3
same "the same bytes" again.xml wrong.xml
expect "the words of the lines" oracle snippet -c 'import re, sys, xml.etree.ElementTree as e
cases = e.parse("wrong.xml").getroot().iter("testcase")
lines = ["blinkc: %s: %s" % (c.get("name"), c[0].get("message")) for c in cases if c.find("failure") is not None]
lines = [re.sub(r": line (\d+), column (\d+): ", r":\1:\2: ", line) for line in lines]
assert lines == open("err-1").read().splitlines()'
says "--junit -" 0 "$blinkc" check -q right --junit -
same "--junit -: on stdout" out right.xml
says "--junit: no such directory" 8 "$blinkc" check right --junit nowhere/x.xml
expect "--junit: no such directory" grep -q '^blinkc: nowhere/x.xml: No such file or directory$' err
says "--junit to a full disk" 8 "$blinkc" check right --junit /dev/full
expect "--junit to a full disk" grep -q '^blinkc: /dev/full: No space left on device$' err
says "--junit to a full disk, of faults" 6 "$blinkc" check wrong --junit /dev/full
expect "both are reported" test "$(wc -l <err)" = $((faults + 1))
expect_exit "a summary to a full disk" 8 bash -c '"$1" check right >/dev/full' - "$blinkc"

says "--github" 6 "$blinkc" check --github wrong
empty "--github: stderr" err
sed -nE 's/^blinkc: ([^:]*)(:[0-9]+:[0-9]+)?: (.*)/\1\2 \3/p' err-1 | sed 's/,/%2C/g' >want
grep '^::error ' out |
	sed -E 's/^::error file=([^,]*),(line=([0-9]+),col=([0-9]+),)?title=blinkc check::(.*)/\1:\3:\4 \5/
		s/,/%2C/g; s/^([^ ]*):: /\1 /' >got
same "--github: an error for each fault" got want
expect "--github: a notice" grep \
	-qxE '::notice title=blinkc check::[0-9]+ files: [0-9]+ valid, 15 invalid; ratio .*' out
expect "--github: no other line" test "$(wc -l <out)" = $((faults + 1))
says "--github: paths from the repository" 0 env -C least "$blinkc" check --github ./
expect "--github: warnings" grep -qxF '::warning file=zz.json,title=blinkc check::not in any index' out

# ---- workers ----

# One that waits for a pipe is ended; the others go on.
mkfifo pipe
"$blinkc" check -q --jobs 2 right/allreduce/0,1.json pipe wrong/allreduce/package.json right/allreduce/0,3.json \
	>out 2>err &
check=$!
for _ in $(seq 2400); do
	# Those that are no zombies.
	left=$(ps -o pid=,stat= --ppid $check | awk '$2 !~ /Z/ { print $1 }')
	[ "$(wc -w <<<"$left")" = 1 ] && [ "$(ps -o pid= --ppid $check | wc -l)" = 2 ] && break
	sleep 0.05
done
kill -9 "$left"
wait $check
code=$?
if [ $code = 1 ]; then ok "a worker that is killed: exit 1"; else not_ok "a worker that is killed: exit $code"; fi
line "its file is reported, and others are checked" err "blinkc: pipe: the worker was killed by signal 9
blinkc: wrong/allreduce/package.json: format: missing: want \"blink-schedule\""
for jobs in 0 -1 x "" 1025 1.5; do
	says "--jobs '$jobs'" 2 "$blinkc" check --jobs "$jobs" right
done

# ---- links ----

mkdir "$work/links"
ln -s nowhere "$work/links/x.json"
"$blinkc" check "$work/links" >"$work/out" 2>"$work/err"
expect "a link that leads nowhere is a file that cannot be read" \
	cmp "$work/err" <(echo "blinkc: $work/links/x.json: No such file or directory")
