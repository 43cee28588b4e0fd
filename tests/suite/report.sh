# The page of `blinkc report`: what it is made of, what it refuses, and, in a browser, that it shows what the files say.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

cd "$work" || exit 1
v=$top/topologies/dgx1v.xml

# same NAME FILE FILE
same() { if cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1: $(cmp "$2" "$3" 2>&1)"; fi; }

# fails NAME CODE TEXT ARGUMENT...: blinkc report with these arguments, with TEXT in its one line on stderr, and no page
fails() {
	local name=$1 code=$2 text=$3
	shift 3
	rm -f page.html
	expect_exit "$name" "$code" "$blinkc" report -o page.html "$@"
	if ! grep -qF -e "$text" "$work/err"; then not_ok "$name: want \"$text\": $(cat "$work/err")"; fi
	if [ -e page.html ]; then not_ok "$name: a page is there"; fi
}

# edit FILE EXPRESSION: of the document d
edit() { oracle snippet --edit "$1" "$2"; }

# ---- pages ----

expect "batch of a DGX-1V" "$blinkc" batch -q "$v" --collectives allreduce,broadcast -o one
expect "batch of a DGX-1P" "$blinkc" batch -q "$top/topologies/dgx1p.xml" --sizes 2-3 --collectives all \
	--roots canonical -o all
expect "batch of a DGX-1P, fewer trees" "$blinkc" batch -q "$top/topologies/dgx1p.xml" --sizes 2-3 --collectives all \
	--roots canonical --tolerance 0.4 \
	-o few
expect "a page" "$blinkc" report one -o one.html
expect "a page of two directories" "$blinkc" report all few -o two.html
"$blinkc" report one -o summary.html 2>summary
expect "says what it made" grep -qx 'schedules   259 for 1263 jobs, all valid' summary
"$blinkc" report -q one >stdout.html 2>quiet
same "standard output" stdout.html one.html
if [ -s quiet ]; then not_ok "--quiet: $(cat quiet)"; else ok "--quiet"; fi
for way in "-j 1" "-j 7" "--jobs=3"; do
	# shellcheck disable=SC2086
	TZ=Asia/Tokyo LC_ALL=C.UTF-8 "$blinkc" report -q $way one/ >again.html
	same "the same bytes: $way" again.html one.html
done
for page in one two; do
	expect "$page.html is XML, too" xmllint --noout --nonet $page.html
	if grep -oE '(src|href|action)="?[a-z]+:[^"]*"' $page.html | grep -vxF 'href="data:,"'; then
		not_ok "$page.html refers to something else"
	else
		ok "$page.html refers to nothing else"
	fi
	if grep -qE '<[^>]* (on[a-z]+|style)=' <(sed '/<script/,/<\/script>/d' $page.html); then
		not_ok "$page.html: code or style in attributes"
	else
		ok "$page.html: neither code nor style in attributes"
	fi
	tr '>' '\n' <$page.html | grep -oE ' id="[^"]*"' | sort | uniq -d >twice
	if [ -s twice ]; then
		not_ok "$page.html: ids given twice: $(tr '\n' ' ' <twice)"
	else
		ok "$page.html: each id once"
	fi
done

# ---- what is refused ----

fails "no directory" 2 "want at least one"
fails "a directory twice" 2 "given twice" one one
fails "no directory of this name" 8 "blinkc: nowhere: No such file or directory" nowhere
mkdir empty
fails "no index" 8 "blinkc: empty: a directory without index.json: want one that blinkc batch wrote" empty
fails "a bad number of processes" 2 "--jobs" one -j 0
fails "another machine" 3 "want schedules of one machine" one all

# wrong NAME CODE TEXT FILE EXPRESSION: a copy of which a file is edited so
wrong() {
	rm -rf copy
	cp -r one copy
	edit "copy/$4" "$5"
	fails "$1" "$2" "$3" copy
}
file=broadcast/0-2.r0.json
wrong "a schedule that is not right" 6 "copy/$file" $file 'd["trees"][0]["down"].pop()'
wrong "a schedule of another machine" 3 "copy/$file: topology.digest" $file \
	'd["topology"]["digest"] = "sha256:" + 64 * "0"'
wrong "an index without entries" 3 "none" index.json 'd["schedules"] = []'
for what in rate bound trees depth; do
	every 2 || continue
	wrong "an index with another $what" 3 "$what of the entry for broadcast/" index.json \
		"d['schedules'][0]['$what'] += 1"
done
wrong "an index with another root" 3 "root of the entry for" index.json \
	'r = next(e for e in d["schedules"] if e["file"] == "broadcast/0-7.r0.json")["ranks"]; r.append(r.pop(0))'
wrong "an index with another collective" 3 "collective of the entry for allreduce/" index.json \
	'e = next(e for e in d["schedules"] if e["collective"] == "allreduce"); e["collective"] = "allgather"'
wrong "an index with another set" 3 "gpus of the entry for allreduce/0,1.json" index.json \
	'next(e for e in d["schedules"] if len(e["gpus"]) == 3 and e["root"] is None)["file"] = "allreduce/0,1.json"'
wrong "a way out of the directory" 3 "want a path below the index" index.json \
	'd["schedules"][0]["file"] = "../one/broadcast/0,1.r0.json"'
rm -rf copy
cp -r one copy
rm copy/$file
fails "a file that is missing" 8 "copy/$file" copy
fails "a page that cannot be written" 8 "nowhere" one -o nowhere/page.html

# ---- names that want to be more than names ----

# Behind a comment that nobody closes lies U+2028, which ends a line of JavaScript.
name='</script><img src=x onerror="window.bad=1">'"'"'&amp;<!--'$'\xe2\x80\xa8''{{data}}'
mkdir hostile
"$blinkc" batch -q "$v" --sizes 2 -o hostile
oracle snippet - "$name" <<'EOF'
import json, pathlib, sys
name, path = sys.argv[1], pathlib.Path("hostile")
index = json.loads((path / "index.json").read_text())
index["topology"]["name"] = name
for entry in index["schedules"]:
    file = entry["file"]
    entry["file"] = f"{name.replace('/', '-')} {file.replace('/', '-')}"
    if (path / file).exists():
        schedule = json.loads((path / file).read_text())
        schedule["algorithm"] = schedule["generator"]["name"] = schedule["topology"]["name"] = name
        (path / entry["file"]).write_text(json.dumps(schedule))
        (path / file).unlink()
(path / "index.json").write_text(json.dumps(index))
EOF
expect "a page of hostile names" "$blinkc" report hostile -o hostile.html
expect "hostile names: XML" xmllint --noout --nonet hostile.html
if grep -qF "$(printf '\342\200\250')" <(sed -n '/<script/,/<\/script>/p' hostile.html); then
	not_ok "hostile names: U+2028 in a script"
else
	ok "hostile names: no U+2028 in a script"
fi

# ---- charts over sizes ----

sizes=1K,1M,100M
expect "a batch for charts over sizes" "$blinkc" batch -q "$v" --sizes 2-3 --distinct --roots best --collectives \
	allreduce,broadcast,alltoall -o few-gpus
expect "charts over sizes" "$blinkc" report -q few-gpus --topology "$v" --size $sizes -o sizes.html
expect "charts over sizes: XML" xmllint --noout --nonet sizes.html
"$blinkc" report -q -j 1 few-gpus --topology "$v" --size $sizes >again.html
same "charts over sizes: the same bytes" again.html sizes.html
if grep -q "Time over the size" one.html; then
	not_ok "charts over sizes that nobody asked for"
else
	ok "charts over sizes are asked for"
fi
fails "sizes without a machine" 2 "want --topology" one --size 1K
fails "sizes of another machine" 3 "want sha256:" one --topology "$top/topologies/dgx1p.xml"
fails "a bad size" 2 "--size: 0" one --topology "$v" --size 0
oracle snippet - sizes.html 3 >judged <<'EOF'
import json, re, sys
page, n_sizes = open(sys.argv[1], encoding="utf-8").read(), int(sys.argv[2])
data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.S).group(1))
tables = re.findall(r'<details>.*?<tbody>(.*?)</tbody>', page[page.index('id="h-times"'):], re.S)
wrong = []
def want(name, right):
    if not right: wrong.append(name)
want("a table for each class", len(tables) == len(data["times"]) > 0)
for times, table in zip(data["times"], tables):
    rows, name = re.findall(r"<tr>.*?</tr>", table, re.S), (times["collective"], times["gpus"])
    want((name, "rows"), len(rows) == len(times["points"]) == n_sizes)
    for point, row in zip(times["points"], rows):
        rings = [t for t in point["rings_us"] if t is not None]
        nccl = [c["us"] for c in point["nccl"] if c["us"] is not None]
        want((name, point["size"], "least"), all(point["least_us"] <= t for t in [point["us"], *rings, *nccl]))
        want((name, point["size"], "a ring is faster"), all(point["us"] <= t * 1.000001 for t in rings))
        shown = re.findall(r'<td class="n">(?:none|([0-9.e+]+))</td>', row)
        numbers = [f"{t:.2f}" for t in (point["us"], *rings, *nccl, point["least_us"])]
        want((name, point["size"], numbers, shown), [s for i, s in enumerate(shown) if s and i != 1] == numbers)
    n_nccl = 0 if times["collective"] == "alltoall" else len(data["nccl"])
    want((name, "NCCL"), len(times["points"][0]["nccl"]) == n_nccl)
    want((name, "why"), (times["without_nccl"] is None) == (times["collective"] != "alltoall"))
# GPUs 0, 1 and 4 are a chain by NVLink: rings of 2.4 are over PCIe, those of 2.8 go back through GPU 0; LL for what is
# small.
chain = next(t for t in data["times"] if t["collective"] == "allreduce" and t["gpus"] == [0, 1, 4])
large, small = chain["points"][-1], chain["points"][0]
want("a chain", large["rings_us"][0] > 2 * large["rings_us"][1])
want("protocols", all(c["protocol"] == "LL" for c in small["nccl"])
     and all(c["protocol"] == "Simple" for c in large["nccl"]))
want("what NCCL expects", "expects_us" not in small["nccl"][0] and all(c["expects_us"] > 0 for c in small["nccl"][1:]))
print("\n".join(str(w) for w in wrong))
EOF
if [ ! -s judged ] || [ -n "$(cat judged)" ]; then
	not_ok "charts over sizes: $(head -3 judged)"
else
	ok "charts over sizes: bounds, tables, NCCL's choices"
fi

# ---- a large machine ----

IFS=: read -r sizes jobs <<<"$([ "$full" ] && echo 2-16:65519 || echo 2-5,13-16:7565)"
expect "sets of $sizes GPUs of a DGX-2" "$blinkc" batch -q "$top/topologies/dgx2.xml" --sizes "$sizes" -o large
expect "a page of $jobs jobs" "$blinkc" report large -o large.html
expect "they are $jobs" test "$(grep -o '"gpus":' large/index.json | wc -l)" -ge "$jobs"
bytes=$(stat -c %s large.html)
most=$([ "$full" ] && echo 4000000 || echo 600000)
if [ "$bytes" -lt "$most" ]; then
	ok "$jobs jobs: $bytes bytes"
else
	not_ok "$jobs jobs: $bytes bytes, want less than $most"
fi

# ---- in a browser ----

[ "$full" ] || exit 0

# Files for short messages have low rates on purpose: the rate is that of the longest, and an allreduce has no root.
expect "schedules for ranges of sizes" "$blinkc" tune -q "$v" --sizes 3 --distinct --collectives allreduce \
	--size 1K,1M,64M -o tuned
expect "a page of them" "$blinkc" report tuned -o tuned.html
is "rates of the longest messages alone" "$(sed -n 's/^mixed: \([0-9.]* GB.*\)/\1/p' tuned.html | tr '\n' ';')" \
	"62.5 GB/s;50 GB/s;50 GB/s;25 GB/s;25 GB/s;6 GB/s;6 GB/s;6 GB/s;6 GB/s;"
# browse ARGUMENT...: of page.py, whose lines become those of this suite
browse() {
	oracle page "$@" >browsed 2>&1
	case $? in
	0) sed -nE "s/^(ok|not ok) /\1 $suite: /p" browsed ;;
	77) skip "$1 $2 in a browser: $(tail -1 browsed)" ;;
	*) not_ok "page.py $*: $(tail -3 browsed | tr '\n' ' ')" ;;
	esac
}
expect "batch of a DGX-1V, some sizes" "$blinkc" batch -q "$v" --sizes 2-3,8 --collectives allreduce,broadcast -o some
expect "a page of them" "$blinkc" report some -o some.html
browse some.html some
browse two.html all few
browse --hostile hostile.html "$name"
browse --large large.html
