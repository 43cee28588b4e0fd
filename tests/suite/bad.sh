# shellcheck shell=bash source=tests/lib.sh
# Bad input is refused: exit 3, 4 or 6, one line that says where and what, nothing on stdout, no file. The line for
# FILE is in FILE.err, as printed inside the file's directory.
. tests/lib.sh

mkdir "$work/o"

# left_nothing: no output, nor a temporary beside it
left_nothing() { [ -z "$(ls -A "$work/o")" ]; }

# refused NAME CODES COMMAND...: exits with one of CODES, with one line on stderr; nothing else anywhere
refused() {
	local name=$1 codes=$2 got
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	if [[ " $codes " != *" $got "* ]]; then
		not_ok "$name: exit $got, want one of $codes: $(head -c 300 "$work/err")"
	elif [ -s "$work/out" ]; then
		not_ok "$name: something on stdout"
	elif ! left_nothing; then
		not_ok "$name: left $(ls -A "$work/o")"
		rm -rf "$work/o" && mkdir "$work/o"
	elif [ "$(wc -l <"$work/err")" != 1 ]; then
		not_ok "$name: want one line on stderr, got $(wc -l <"$work/err")"
	elif ! iconv -f UTF-8 -t UTF-8 <"$work/err" >"$work/iconv" 2>&1; then
		not_ok "$name: the message is not UTF-8"
	else
		return 0
	fi
	return 1
}

# says NAME FILE: $work/err is FILE; where libxml2 has the word, up to the line number
says() {
	local name=$1 want=$2
	case $name in
	*attribute-twice.xml | *end-tag-missing.xml | *end-tag-wrong.xml | *entity-unknown.xml)
		if [ "$(cut -d: -f1-3 "$want")" != "$(cut -d: -f1-3 "$work/err")" ]; then
			not_ok "$name: $(cat "$work/err")"
			return 1
		fi
		;;
	*)
		if ! cmp -s "$want" "$work/err"; then
			not_ok "$name: want and got:"
			sed 's/^/# /' "$want" "$work/err"
			return 1
		fi
		;;
	esac
}

# ---- topologies ----

cd "$top/tests/bad/topology" || exit 1
for f in *.json *.xml; do
	if [ ! -f "$f.err" ]; then
		not_ok "topology/$f: no $f.err"
		continue
	fi
	refused "topology/$f" "3 4" "$blinkc" "$f" -o "$work/o/x.json" && says "topology/$f" "$f.err" && ok "topology/$f"
done
for f in *.err; do
	[ -f "${f%.err}" ] || not_ok "topology/$f: no such file to refuse"
done

# The other verb that reads them, and stdin, which has no name.
for f in capacity-negative.json capacity-negative.xml nesting-too-deep.xml entity-bomb.xml; do
	refused "convert $f" "3 4" "$blinkc" convert "$f" -o "$work/o/x.json" && says "convert $f" "$f.err" && ok "convert $f"
	"$blinkc" - -o "$work/o/x.json" <"$f" >"$work/out" 2>"$work/err"
	sed "s/^blinkc: $f:/blinkc: -:/" "$f.err" >"$work/want"
	if cmp -s "$work/want" "$work/err" && left_nothing; then ok "stdin $f"; else not_ok "stdin $f: $(cat "$work/err")"; fi
done

# ---- schedules ----

cd "$top/tests/bad/schedule" || exit 1
for f in *.json; do
	if [ ! -f "$f.err" ]; then
		not_ok "schedule/$f: no $f.err"
		continue
	fi
	refused "schedule/$f" "3 4 6" "$blinkc" check "$f" && says "schedule/$f" "$f.err" && ok "schedule/$f"
done
for f in *.err; do
	[ -f "${f%.err}" ] || not_ok "schedule/$f: no such file to refuse"
done
cd "$top" || exit 1

# ---- what the readers can say, is said above ----

# Each text that a check of schedules can end in, as far as a file can bring it about.
grep -ho '"%s: [^"]*\(\\"[^"]*\)*"' src/verify.c src/certify.c src/schedule.c | sed 's/^"%s: //; s/"$//; s/\\"/"/g' |
	sed 's/%[-.0-9]*\(ll\)*[a-z]/\n/g' | awk 'length > 12' | sort -u >"$work/phrases"
# Ranges that sched_read checks before; blocks that the limits keep small; a bound is proven, so nothing is above it.
grep -vF -e "want a rank" -e ": want 0 to " -e "too many blocks" -e "is above the bound" -e "needs more than 64 bits" \
	-e "segments need more than 64 bits" -e "prices of so many" \
	"$work/phrases" >"$work/reachable"
cat tests/bad/schedule/*.err >"$work/said"
if [ "$(wc -l <"$work/reachable")" -lt 20 ]; then not_ok "messages: found only $(wc -l <"$work/reachable") in the source"; fi
while read -r phrase; do
	if grep -qF -e "$phrase" "$work/said"; then ok "message: $phrase"; else not_ok "no bad file brings about: $phrase"; fi
done <"$work/reachable"

# ---- mutants of right schedules ----

mkdir "$work/right" "$work/mutants"
for request in "allreduce 0,1,2,3" "allreduce 0,1,4" "broadcast 1,4,5,7" "reduce 0,2,3"; do
	read -r coll gpus <<<"$request"
	"$blinkc" -q -c "$coll" -g "$gpus" topologies/dgx1v.xml -o "$work/right/$coll-$gpus.json" || not_ok "cannot compile $request"
done
for kind in switched mixed; do
	"$blinkc" -q -c broadcast "tests/fuzz/corpus/fuzz_topology/$kind.json" -o "$work/right/broadcast-$kind.json" ||
		not_ok "cannot compile $kind.json"
done
cp tests/fuzz/corpus/fuzz_schedule/*.json "$work/right"
oracle mutate --list >"$work/kinds"
"$python" -B - "$work" tests/oracle <<'END' || not_ok "mutate.py fails"
import json, os, sys
sys.path.insert(0, sys.argv[2])
import mutate
right, mutants = (os.path.join(sys.argv[1], name) for name in ("right", "mutants"))
for name in sorted(os.listdir(right)):
    with open(os.path.join(right, name), "rb") as file:
        data = file.read()
    for kind in mutate.KINDS:
        mutant = mutate.mutate(data, 1, kind)
        if mutant:
            with open(os.path.join(mutants, f"{kind}.{name}"), "w", encoding="utf-8") as file:
                file.write(mutant[0])
END
while read -r kind; do
	n=0 bad=0
	for m in "$work/mutants/$kind".*; do
		[ -f "$m" ] || continue
		n=$((n + 1))
		refused "mutant $(basename "$m")" "3 4 5 6" "$blinkc" check "$m" || bad=$((bad + 1))
	done
	if [ $n = 0 ]; then not_ok "mutants $kind: it applies to no schedule here"; elif [ $bad = 0 ]; then ok "mutants $kind: $n"; fi
done <"$work/kinds"
if oracle replay "$work"/mutants/* >"$work/out" 2>&1 || [ "$(grep -c ': WRONG: ' "$work/out")" != "$(wc -l <"$work/out")" ]; then
	not_ok "replay.py takes $(grep -v ': WRONG: ' "$work/out" | head -3)"
else
	ok "replay.py refuses all $(wc -l <"$work/out") mutants, too"
fi

# ---- too big, too deep, too many ----

# quickly NAME SECONDS CODE TEXT COMMAND...: refused so, with TEXT in the line, before the time is over
quickly() {
	local name=$1 seconds=$2 code=$3 text=$4
	shift 4
	if refused "$name" "$code" timeout "$seconds" "$@"; then
		if grep -qF -e "$text" "$work/err"; then ok "$name"; else not_ok "$name: $(head -c 300 "$work/err")"; fi
	fi
}

truncate -s $(((128 << 20) + 1)) "$work/big"
quickly "a topology of 128 MiB + 1" 20 4 "more than 128 MiB" "$blinkc" "$work/big" -o "$work/o/x.json"
quickly "a schedule of 128 MiB + 1" 20 4 "more than 128 MiB" "$blinkc" check "$work/big"
quickly "an endless file" 20 4 "more than 128 MiB" "$blinkc" /dev/zero -o "$work/o/x.json"
head -c $((128 << 20)) /dev/zero | tr '\0' ' ' >"$work/big"
quickly "128 MiB of blanks" 20 3 "end of file" "$blinkc" "$work/big" -o "$work/o/x.json"
rm "$work/big"

"$python" - "$work" <<'END'
import json, sys
def put(name, *parts):
    with open(f"{sys.argv[1]}/{name}", "w") as file:
        file.writelines(parts)
n = 100000
put("deep.json", "[" * n, "]" * n)
put("deep-open.json", "[" * n)
put("deep-objects.json", '{"a":' * n, "1", "}" * n)
put("deep.xml", "<a>" * n, "</a>" * n)
put("twice.json", "{", ", ".join(['"version": 1'] * 400000), "}")
put("twice.xml", "<topology ", " ".join(['version="1"'] * 400000), "/>")
put("keys.json", "{", ", ".join(f'"a{i}": 1' for i in range(400000)), "}")
put("attributes.xml", "<topology ", " ".join(f'a{i}="1"' for i in range(400000)), "/>")
put("elements.xml", "<topology>", *(f"<a{i}/>" for i in range(400000)), "</topology>")
put("values.json", "[", ",".join("0" * (1 << 24)), "]")
n = 420
vertices = [(r, "sw") for r in range(n)] + [("sw", r) for r in range(n)]
put("prices.json", json.dumps({"format": "blink-schedule", "version": 1,
    "generator": {"name": "hand", "version": "1", "options": {}},
    "topology": {"name": "star", "digest": "sha256:0", "ranks": [{"gpu": f"g{r}", "node": "n"} for r in range(n)],
        "links": [{"from": u, "to": v, "class": "nvlink", "capacity": 1, "latency": 0} for u, v in vertices]},
    "collective": "allreduce", "root": None, "algorithm": "hand",
    "rate": {"achieved": 1, "bound": 840, "certificate": {"kind": "prices", "price": [1] * (2 * n)}},
    "trees": [{"segment": ["0/1", "1/1"], "root": 0, "up": [[r, 0, [r, n]] for r in range(1, n)],
               "down": [[0, r, [0, n + r]] for r in range(1, n)]}]}))
put("digits.json", "9" * 5000000)
put("string.json", '{"format": "', "x" * 5000000, '"}')
put("bomb.xml", '<!DOCTYPE a [<!ENTITY e0 "x">', *(f'<!ENTITY e{i} "{f"&e{i-1};" * 10}">' for i in range(1, 64)), "]>\n<a>&e63;</a>")
END
for verb in compile check; do
	set -- "$blinkc" $verb
	for f in deep deep-open deep-objects; do
		quickly "$verb $f.json" 20 4 "nesting: want at most 32 deep" "$@" "$work/$f.json"
	done
	quickly "$verb twice.json" 20 3 "given twice" "$@" "$work/twice.json"
	quickly "$verb keys.json" 20 3 "format: missing" "$@" "$work/keys.json"
	quickly "$verb values.json" 60 4 "more than 16777216 values" "$@" "$work/values.json"
	quickly "$verb digits.json" 20 3 "want at most 40" "$@" "$work/digits.json"
done
quickly "check string.json" 20 4 "want at most 4096" "$blinkc" check "$work/string.json"
quickly "deep.xml" 20 4 "nesting: want at most 32 deep" "$blinkc" "$work/deep.xml"
quickly "check prices.json" 20 4 "prices of so many are not checked" "$blinkc" check "$work/prices.json"
quickly "twice.xml" 20 4 "more than 64 attributes" "$blinkc" "$work/twice.xml"
quickly "attributes.xml" 20 4 "more than 64 attributes" "$blinkc" "$work/attributes.xml"
quickly "elements.xml" 20 3 "topology" "$blinkc" "$work/elements.xml"
quickly "bomb.xml" 20 3 "a DOCTYPE: want none" "$blinkc" "$work/bomb.xml"
