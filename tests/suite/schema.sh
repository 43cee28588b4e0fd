# The JSON Schemas and the XML schema hold for all that we write and ship.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

for s in schemas/*.json; do
	expect "the schema of $s" oracle validate "$s"
done
for t in topologies/*.json; do
	expect "schema of $t" oracle validate schemas/topology.schema.json "$t"
done
for t in topologies/*.xml; do
	expect "xsd of $t" xmllint --noout --nonet --schema schemas/topology.xsd "$t"
done
n=0
for t in dgx1v dgx1p; do
	for gpus in 0,1,2 0,1,4,5 0,7 0,1,2,3,4,5,6,7; do
		for c in broadcast reduce allreduce; do
			every 3 || continue
			n=$((n + 1))
			"$blinkc" -q topologies/$t.xml --gpus $gpus -c $c -o "$work/$n.json" ||
				not_ok "$t $gpus $c: exit $?"
		done
	done
done
for seed in $(seq 1 "$([ "$full" ] && echo 20 || echo 6)"); do
	oracle random_topology "$seed" >"$work/topology.json"
	"$blinkc" -q "$work/topology.json" -l all -o "$work/random-$seed.json" || not_ok "random $seed: exit $?"
	"$blinkc" convert "$work/topology.json" -o "$work/topology.xml" || not_ok "random $seed: convert: exit $?"
	expect "xsd of random $seed" xmllint --noout --nonet --schema schemas/topology.xsd "$work/topology.xml"
	rm "$work/topology.json" "$work/topology.xml"
done
expect "schema of $(find "$work" -name '*.json' | wc -l) schedules" \
	oracle validate schemas/schedule.schema.json "$work"/*.json
sed 's/"1\/1"/"2\/2"/;s/"0\/1"/"0\/2"/' "$work/1.json" |
	sed 's/"collective": "broadcast"/"collective": "broadcst"/' >"$work/bad"
if oracle validate schemas/schedule.schema.json "$work/bad" >/dev/null 2>&1; then not_ok "a wrong schedule passes"; else
	ok "a wrong schedule is refused"; fi

# ---- indexes ----

"$blinkc" batch -q topologies/dgx1v.xml --sizes 2-3 --collectives all -o "$work/all" || not_ok "batch: exit $?"
printf 's0/gpu7,s1/gpu1\n' | "$blinkc" batch -q topologies/two-dgx1v.xml --gpus - -o "$work/two" ||
	not_ok "batch of two servers: exit $?"
expect "schema of indexes" oracle validate schemas/index.schema.json "$work/all/index.json" "$work/two/index.json"
head=$(sed '/"schedules"/q' "$work/two/index.json")
entry=$(sed -n '/"gpus":\[[0-9]/p' "$work/two/index.json")
n=0
# What the schema refuses, the reader refuses, too.
while IFS= read -r change; do
	n=$((n + 1))
	printf '%s\n%s\n]}\n' "$head" "$entry" | sed "$change" >"$work/wrong.json"
	if cmp -s "$work/wrong.json" <(printf '%s\n%s\n]}\n' "$head" "$entry"); then
		not_ok "index, $change: changes nothing"
	elif oracle validate schemas/index.schema.json "$work/wrong.json" >/dev/null 2>&1; then
		not_ok "index, $change: the schema takes it"
	else
		expect_exit "index, $change" 3 "$perf" "$work/wrong.json" -g 7,9
	fi
done <<'END'
s/"blink-index"/"blink-indx"/
s/"version": 1/"version": 2/
s/"gpus": \["[^]]*\]/"gpus": ["a"]/
s/"gpus":\[7,9\]/"gpus":[7,7]/
s/"gpus":\[7,9\]/"gpus":[7]/
s/"gpus":\[7,9\]/"gpus":[-7,9]/
s/"gpus":\[7,9\]/"gpus":[7.5,9]/
s/"allreduce",/"allredce",/
s/"root":null/"root":0/
s/"root":null,//
s/"allreduce","root"/"reduce","root"/
s/"file":"[^"]*"/"file":"..\/x.json"/
s/"file":"[^"]*"/"file":"a\/.\/x.json"/
s/"file":"[^"]*"/"file":"\/x.json"/
s/"file":"[^"]*"/"file":"x\/"/
s/"file":"[^"]*"/"file":""/
s/"file":"[^"]*"/"file":"a\/\/x"/
s/"file":"[^"]*"/"file":"x\\u0001"/
s/"ranks":\[0,1\]/"ranks":[1,1]/
s/"rate":[0-9.]*/"rate":-1/
s/"bound":[0-9.]*/"bound":"1"/
s/"trees":[0-9]*/"trees":0/
s/"depth":[0-9]*/"depth":1.5/
END
[ $n -gt 20 ] || not_ok "wrong indexes: only $n"

# ---- blinkc lint --schema ----

# lint_finds FILE LINE: lint --schema prints LINE, maybe among others, exits with 3, and says nothing else.
lint_finds() {
	"$blinkc" lint -q --schema "$1" >"$work/got" 2>"$work/err"
	local code=$?
	if [ $code = 3 ] && [ ! -s "$work/err" ] && grep -qF -- "$1:$2" "$work/got"; then ok "lint --schema $1"; else
		not_ok "lint --schema $1: exit $code: $(head -c 300 "$work/got" "$work/err")"; fi
}

# It finds what xmllint finds, with its lines, but that of text, which is the line of its element there.
tried=0
for f in tests/bad/topology/*.xml; do
	xmllint --noout --nonet --schema schemas/topology.xsd "$f" 2>&1 |
		sed -nE 's/: element [^ ]*: Schemas validity error :/: schema:/; t found; b; :found; s/\.$//p' \
			>"$work/want"
	[ -s "$work/want" ] && grep -q blink-topology "$f" && ! grep -qE "DOCTYPE|xmlns| and$" "$f" || continue
	tried=$((tried + 1))
	"$blinkc" lint -q --schema "$f" >"$work/got" 2>"$work/err"
	code=$?
	if [ $code = 3 ] && [ ! -s "$work/err" ] && cmp -s "$work/want" "$work/got"; then ok "lint --schema $f"; else
		not_ok "lint --schema $f: exit $code: $(diff "$work/want" "$work/got" | head -3)"; fi
done
expect "$tried files that the schema refuses" [ $tried -ge 20 ]
expect_exit "lint --schema: all that come along" 0 "$blinkc" lint --schema topologies/*.xml
# What the schema cannot know is found by the reader, as is what is not well formed.
for f in capacity-missing end-tag-missing doctype-remote; do
	expect "lint --schema $f" cmp <(cd tests/bad/topology && "$blinkc" lint -q --schema $f.xml) \
		<(sed 's/^blinkc: //' tests/bad/topology/$f.xml.err)
done
for f in topologies/dgx1v.json tests/foreign/hwloc/dgx1v-2.xml tests/bad/topology/root-unknown.xml; do
	lint_finds $f " --schema: want a topology of blinkc in XML: "
done
lint_finds tests/bad/topology/text-between-tags.xml "5: schema: Element 'topology': Character content"
# Lines of a long file: libxml2 keeps 16 bits of them.
{
	sed '/<\/topology>/d' topologies/dgx1v.xml
	yes '' | head -70000
	printf '  <switch id="s" ports="4"/>\n</topology>\n'
} >"$work/long.xml"
n=$(grep -n 'ports=' "$work/long.xml" | cut -d: -f1)
lint_finds "$work/long.xml" "$n: schema: Element 'switch', attribute 'ports'"
expect_exit "a long file" 3 "$blinkc" "$work/long.xml"
expect "line $n of a long file" grep -qF "long.xml:$n: switch ports: unknown attribute" "$work/err"
