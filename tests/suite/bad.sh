# shellcheck shell=bash source=tests/lib.sh
# Bad input is refused: exit 3, 4 or 6, one line that says where and what, nothing on stdout, no file. The line for
# FILE is in FILE.err, as printed inside the file's directory.
. tests/lib.sh

mkdir "$work/o"

# refused PREFIX ARGUMENT...: of refused.py, whose lines become those of this suite
refused() {
	local prefix=$1
	shift
	oracle refused "$@" >"$work/refused" 2>&1 || not_ok "refused.py: $(tail -1 "$work/refused")"
	sed -nE "s|^(ok\|not ok) |\1 $suite: $prefix|p" "$work/refused"
}

at_once=--at-once
[ ! "$full" ] || at_once=

# ---- topologies ----

cd "$top/tests/bad/topology" || exit 1
refused topology/ --said "3 4" "$work/o" *.json *.xml -- "$blinkc" {} -o "$work/o/x.json"
for f in *.err; do
	[ -f "${f%.err}" ] || not_ok "topology/$f: no such file to refuse"
done

# The other verb that reads them, and stdin, which has no name.
others=(capacity-negative.json capacity-negative.xml nesting-too-deep.xml entity-bomb.xml)
refused "convert " --said "3 4" "$work/o" "${others[@]}" -- "$blinkc" convert {} -o "$work/o/x.json"
for f in "${others[@]}"; do
	"$blinkc" - -o "$work/o/x.json" <"$f" >"$work/out" 2>"$work/err"
	sed "s/^blinkc: $f:/blinkc: -:/" "$f.err" >"$work/want"
	if cmp -s "$work/want" "$work/err" && [ -z "$(ls -A "$work/o")" ]; then
		ok "stdin $f"
	else
		not_ok "stdin $f: $(cat "$work/err")"
	fi
done

# ---- schedules ----

cd "$top/tests/bad/schedule" || exit 1
# A process for each; in `make check` one for all.
refused schedule/ --said ${at_once:+"$at_once"} "3 4 6" "$work/o" *.json -- "$blinkc" check {}
for f in *.err; do
	[ -f "${f%.err}" ] || not_ok "schedule/$f: no such file to refuse"
done
cd "$top" || exit 1

# ---- what the readers can say, is said above ----

# Each text that a check of schedules can end in, as far as a file can bring it about.
find src/schedule '(' -name build.c -o -name check.c -o -name check_symmetry.c -o -name certificate.c -o -name \
	extent.c -o -name in_trees.c -o -name loads.c -o -name root_trees.c -o -name verify.c ')' \
	-exec grep -ho '"%s: [^"]*\(\\"[^"]*\)*"' {} + | sed 's/^"%s: //; s/"$//; s/\\"/"/g' |
	sed 's/%[-.0-9]*\(ll\)*[a-z]/\n/g' | awk 'length > 12' | sort -u >"$work/phrases"
# Ranges that sched_read checks before; blocks that the limits keep small; a bound is proven, so nothing is above it;
# what takes a file of many MB.
grep -vF -e "want a rank" -e ": want 0 to " -e "too many blocks" -e "is above the bound" -e "needs more than" \
	-e " GPUs and switches: more than " -e " steps to verify them: " \
	-e " trees: want at most " -e " edges at ranks that stay" -e "segments need more than 64 bits" \
		-e ", where all are listed" \
		-e "no tree over topology.links reaches the ranks" \
	"$work/phrases" >"$work/reachable"
cat tests/bad/schedule/*.err >"$work/said"
if [ "$(wc -l <"$work/reachable")" -lt 40 ]; then
	not_ok "messages: found only $(wc -l <"$work/reachable") in the source"
fi
while read -r phrase; do
	if grep -qF -e "$phrase" "$work/said"; then
		ok "message: $phrase"
	else
		not_ok "no bad file brings about: $phrase"
	fi
done <"$work/reachable"

# ---- mutants of right schedules ----

mkdir "$work/right" "$work/mutants"
for request in "allreduce 0,1,2,3" "allreduce 0,1,4" "broadcast 1,4,5,7" "reduce 0,2,3"; do
	read -r coll gpus <<<"$request"
	"$blinkc" -q -c "$coll" -g "$gpus" topologies/dgx1v.xml -o "$work/right/$coll-$gpus.json" ||
		not_ok "cannot compile $request"
done
for kind in switched mixed; do
	"$blinkc" -q -c broadcast "tests/fuzz/corpus/fuzz_topology/$kind.json" -o "$work/right/broadcast-$kind.json" ||
		not_ok "cannot compile $kind.json"
done
# Compact ones are changed in tests/unit/test_compact.c, and by the fuzzer.
cp tests/fuzz/corpus/fuzz_schedule/[!c]*.json tests/fuzz/corpus/fuzz_schedule/compiled-*.json "$work/right"
oracle mutate --each 1 "$work/mutants" "$work"/right/*.json || not_ok "mutate.py: exit $?"
# A process for each; in `make check` for one of a kind.
some=()
for kind in $(oracle mutate --list); do
	mutants=("$work/mutants/$kind".*)
	[ -e "${mutants[0]}" ] || not_ok "mutants $kind: it applies to no schedule here"
	if [ "$full" ]; then some+=("${mutants[@]}"); else some+=("${mutants[@]:0:1}"); fi
done
refused "mutants " --kinds "3 4 5 6" "$work/o" "${some[@]}" -- "$blinkc" check {}
# And all of them in a few processes: each has one line, and nothing is right.
"$blinkc" check "$work/mutants" >"$work/out" 2>"$work/err"
got=$?
for f in "$work"/mutants/*; do echo "blinkc: $f"; done >"$work/want"
sed -E 's/^(blinkc: [^:]*):.*/\1/' "$work/err" | sort >"$work/got"
if [[ $got == [3456] ]] && diff <(sort "$work/want") "$work/got" >"$work/diff" &&
	grep -q ": 0 valid, " "$work/out"; then
	ok "$(wc -l <"$work/want") mutants in one directory"
else
	not_ok "mutants in one directory: exit $got: $(head -3 "$work/diff" | tr '\n' ' ') $(cat "$work/out")"
fi
if oracle replay "$work"/mutants/* >"$work/out" 2>&1 ||
	[ "$(grep -c ': WRONG: ' "$work/out")" != "$(wc -l <"$work/out")" ]; then
	not_ok "replay.py takes $(grep -v ': WRONG: ' "$work/out" | head -3)"
else
	ok "replay.py refuses all $(wc -l <"$work/out") mutants, too"
fi

# ---- too big, too deep, too many ----

# quickly NAME SECONDS CODE TEXT COMMAND...: refused so, with TEXT in the line, within SECONDS of CPU time
quickly() { refused "" --seconds "$2" --text "$4" "$3" "$work/o" "$1" -- "${@:5}"; }

truncate -s $(((256 << 20) + 1)) "$work/big"
quickly "a topology of 256 MiB + 1" 20 4 "more than 256 MiB" "$blinkc" "$work/big" -o "$work/o/x.json"
quickly "a schedule of 256 MiB + 1" 20 4 "more than 256 MiB" "$blinkc" check "$work/big"
quickly "an endless file" 20 4 "more than 256 MiB" "$blinkc" /dev/zero -o "$work/o/x.json"
if [ "$full" ]; then
	head -c $((256 << 20)) /dev/zero | tr '\0' ' ' >"$work/big"
	quickly "256 MiB of blanks" 20 3 "end of file" "$blinkc" "$work/big" -o "$work/o/x.json"
fi
rm "$work/big"

oracle snippet - "$work" $full <<'END'
import json, sys
def put(name, *parts):
    with open(f"{sys.argv[1]}/{name}", "w") as file:
        file.writelines(parts)
many = 400000 if sys.argv[2:] else 200000
n = 100000
put("deep.json", "[" * n, "]" * n)
put("deep-open.json", "[" * n)
put("deep-objects.json", '{"a":' * n, "1", "}" * n)
put("deep.xml", "<a>" * n, "</a>" * n)
put("twice.json", "{", ", ".join(['"version": 1'] * many), "}")
put("twice.xml", "<topology ", " ".join(['version="1"'] * many), "/>")
put("keys.json", "{", ", ".join(f'"a{i}": 1' for i in range(many)), "}")
put("attributes.xml", "<topology ", " ".join(f'a{i}="1"' for i in range(many)), "/>")
for name, more in ("long-tag.xml", 0), ("longer-tag.xml", 1):
    head = '<topology format="blink-topology" version="1" name="x" source="'
    put(name, "<!-- -->\n", head, "x" * ((8 << 20) - len(head) - 4 + more), '" />')
put("long-text.xml", "<topology>", "\n" * 20000001, "</topology>")
# The time that it takes grows with the square of the number.
put("elements.xml", "<topology>", *(f"<a{i}/>" for i in range(many if sys.argv[2:] else 100000)), "</topology>")
put("values.json", "[", ",".join("0" * (1 << 24)), "]")
put("digits.json", "9" * 5000000)
put("string.json", '{"format": "', "x" * 5000000, '"}')
put("bomb.xml", '<!DOCTYPE a [<!ENTITY e0 "x">',
    *(f'<!ENTITY e{i} "{f"&e{i-1};" * 10}">' for i in range(1, 64)), "]>\n<a>&e63;</a>")
END
for verb in compile check; do
	set -- "$blinkc" $verb
	for f in deep ${full:+deep-open deep-objects}; do
		quickly "$verb $f.json" 20 4 "nesting: want at most 32 deep" "$@" "$work/$f.json"
	done
	quickly "$verb twice.json" 20 3 "given twice" "$@" "$work/twice.json"
	[ "$full" ] || [ $verb = compile ] || continue
	quickly "$verb keys.json" 20 3 "format: missing" "$@" "$work/keys.json"
	quickly "$verb values.json" 60 4 "more than 16777216 values" "$@" "$work/values.json"
	quickly "$verb digits.json" 20 3 "want at most 40" "$@" "$work/digits.json"
done
quickly "check string.json" 20 4 "want at most 4096" "$blinkc" check "$work/string.json"
quickly "deep.xml" 20 4 "nesting: want at most 32 deep" "$blinkc" "$work/deep.xml"
quickly "twice.xml" 20 4 "more than 64 attributes" "$blinkc" "$work/twice.xml"
quickly "attributes.xml" 20 4 "more than 64 attributes" "$blinkc" "$work/attributes.xml"
quickly "long-tag.xml" 20 4 ":2: topology source: 8388541 bytes: want at most 4096" "$blinkc" "$work/long-tag.xml"
quickly "longer-tag.xml" 20 4 ":2: a tag, a comment or text of 8388609 bytes: want at most 8388608" \
	"$blinkc" "$work/longer-tag.xml"
quickly "long-text.xml" 20 4 ":1: a tag, a comment or text of 20000001 bytes: want at most 8388608" \
	"$blinkc" "$work/long-text.xml"
quickly "elements.xml" 20 3 "unknown element" "$blinkc" "$work/elements.xml"
quickly "bomb.xml" 20 3 "a DOCTYPE: want none" "$blinkc" "$work/bomb.xml"
