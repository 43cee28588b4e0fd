# blinkc lint finds what is implausible, and nothing else: every change to a machine is found by its rule.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

# ---- machines that come along ----

for t in topologies/*; do
	"$blinkc" lint -q "$t" >"$work/out" 2>"$work/err"
	expect "$t is plausible: exit $?, $(head -1 "$work/out")" [ "$(cat "$work/out" "$work/err" | wc -c)" = 0 ]
done
expect "all at once" cmp <("$blinkc" lint topologies/*) <(echo "$(ls topologies | wc -l) machines: no findings")
# An odd one: its seventh GPU does have fewer links.
expect "examples/odd7.xml has an odd GPU" cmp <("$blinkc" lint -q examples/odd7.xml) \
	<(echo "examples/odd7.xml: gpu6: sibling: 2 nvlink links: want 5, as 6 of the 7 GPUs of odd7")

# ---- machines that NCCL describes ----

# finds NAME WORDS ARGUMENT...: lint ends with 10, and a line has these words
finds() {
	"$blinkc" lint -q "${@:3}" >"$work/found" 2>&1
	expect "$1: exit $?, $(head -1 "$work/found")" grep -q "$2" "$work/found"
}
# PCIe as it is where data come another way: of GPUs whose model is not known, and of one that is.
sed '/class="0x030200"/s/link_speed="8 GT.s" link_width="16"/link_speed="2.5 GT\/s" link_width="1"/' \
	tests/foreign/nccl/nccl-dgx1v.xml >"$work/slow.xml"
finds "PCIe slower than any GPU has" ': gpu0: model: 0.1875 GB/s over pcie: want 1 or more: ' "$work/slow.xml"
finds "slower than this model has" ': gpu0: model: 0.1875 GB/s over pcie: want up to 12, as V100-SXM2 has' \
	--gpu-model V100-SXM2 "$work/slow.xml"
expect "a plain one is plausible" "$blinkc" lint -q --gpu-model V100-SXM2 tests/foreign/nccl/nccl-dgx1v.xml

# ---- changes ----

changed=0
for machine in dgx1v dgx1p; do
	mkdir "$work/$machine"
	"$blinkc" convert -q topologies/$machine.xml --format json -o "$work/flat.json"
	oracle odd_machine "$work/flat.json" "$work/$machine" || not_ok "$machine: odd_machine.py: exit $?"
	for file in "$work/$machine"/*.json; do
		name=$(basename "$file" .json)
		rule=${name%%.*}
		changed=$((changed + 1))
		"$blinkc" lint -q "$file" >"$work/out" 2>"$work/err"
		code=$?
		if [ "$rule" = none ]; then
			expect "$machine, $name: nothing is found: $(head -1 "$work/out")" \
				[ "$code $(wc -c <"$work/out")" = "0 0" ]
		elif [ $code != 10 ] || [ -s "$work/err" ]; then
			not_ok "$machine, $name: exit $code, want 10: $(head -1 "$work/err")"
		elif grep -qF ": $rule: " "$work/out"; then
			ok "$machine, $name"
		else
			not_ok "$machine, $name: not found: $(head -3 "$work/out")"
		fi
	done
done
expect "changes were tried" [ $changed -ge 40 ]
# Each rule is in the list of the source, of the tests, and of the page.
rules=$(sed -nE 's/^\tX\(LINT_[A-Z_]+, "([a-z-]+)".*/\1/p' src/topology/lint.h | sort)
expect "each rule is tried" cmp <(echo "$rules") \
	<(for f in "$work"/dgx1v/*; do f=${f##*/}; echo "${f%%.*}"; done | grep -vx none | sort -u)
expect "each rule is in blinkc-lint(1)" cmp <(echo "$rules") \
	<(awk '/^\.Ss Odd machines/ { inside = 1; next } /^\.S[hs]/ { inside = 0 } inside && /^\.It Cm/ { print $3 }' \
		man/blinkc-lint.1 | sort)

line() { grep -qxF -- "$2" "$work/got" && ok "$1" || not_ok "$1: no line $2 in $(head -3 "$work/got")"; }
"$blinkc" lint "$work/dgx1v/one-way.one_way.json" >"$work/got"
line "where, and what is wanted" \
	"$work/dgx1v/one-way.one_way.json: gpu0 to gpu1, nvlink: one-way: 1 link, none back: want links both ways"
"$blinkc" lint "$work/dgx1v/sibling.lost_link.json" >"$work/got"
line "the siblings" \
	"$work/dgx1v/sibling.lost_link.json: gpu0: sibling: 5 nvlink links: want 6, as 6 of the 8 GPUs of dgx1v"
line "the summary" "1 machine: 2 findings"

# A large cluster of the same fault: some are listed, the rest is counted.
"$blinkc" lint --synthetic "server:64 gpu:8 switch:300 net:25" >"$work/got"
expect "many are counted" [ "$(wc -l <"$work/got")" = 21 ]
line "the rest" "--synthetic: capacity: and 493 more like these"

# ---- reports ----

cd "$work" || exit 1
cp "$top/topologies/dgx1v.xml" fine.xml
cp dgx1v/no-port.no_port.json odd.json
echo '{' >broken.json
"$blinkc" lint --junit j.xml --github fine.xml odd.json broken.json >got 2>err
expect "a file that is not valid: its status" [ $? = 3 ]
line "annotation" "::error file=odd.json,title=blinkc lint::mlx5_0: no-port: a NIC without port: want a capacity, \
or links of class net"
line "a file that is not valid: where" \
	"::error file=broken.json,line=2,col=1,title=blinkc lint::end of file: want a key in double quotes"
line "notice" "::notice title=blinkc lint::3 machines: 1 finding, 1 not valid"
expect "nothing else" [ "$(grep -vc '^::' got) $(wc -c <err)" = "0 0" ]
expect "JUnit XML" xmllint --noout --nonet --schema "$top/tests/junit.xsd" j.xml
expect "JUnit XML: three cases, two failures" grep -q 'tests="3" failures="2"' j.xml
expect "JUnit XML: the rule" grep -q 'type="no-port"' j.xml
"$blinkc" lint fine.xml broken.json odd.json >got 2>err
expect "without reports: the others are looked at" [ "$? $(wc -l <got)" = "3 3" ]
expect_exit "no file" 2 "$blinkc" lint
expect_exit "a file and a line" 2 "$blinkc" lint fine.xml --synthetic "gpu:2 mesh:25"
expect "a line" "$blinkc" lint -q --synthetic "gpu:2 mesh:25"
"$blinkc" lint nowhere.xml >got
expect "a file that is not there: its status" [ $? = 8 ]
expect "names that control a terminal" [ "$(printf '{"format":"blink-topology","version":1,"name":"a","nodes":[
	{"id":"n","gpus":[{"id":"a"},{"id":"b"}]}],"links":[]}' | "$blinkc" lint -q - | tr -d '\n -~' | wc -c)" = 0 ]
# Findings of one vertex are several test cases, whose names differ, also in a file that is given twice.
"$blinkc" lint --junit j.xml dgx1v/capacity.in_bits.json dgx1v/twice.all_twice.json dgx1v/capacity.in_bits.json >got
names=$(grep -o '<testcase name="[^"]*"' j.xml)
expect "JUnit XML: names of cases are unique" [ "$(wc -l <<<"$names")" -gt 20 ] &&
	expect "JUnit XML: none is there twice" [ -z "$(sort <<<"$names" | uniq -d)" ]
expect_exit "--format is for others" 2 "$blinkc" lint --format junit fine.xml
expect "--junit is named" grep -qF -- "--junit FILE" err
