# examples/ci: what a user copies, in a repository of its own. Each fault that is planted fails `make check`, by a line
# that names it.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154,SC2016
. tests/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL GITHUB_ACTIONS
command -v git >/dev/null || { skip "git is not there"; exit; }
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
repo=$work/repo
mkdir -p "$repo/machines" "$repo/.github/workflows"
cp "$top/examples/ci/Makefile" "$repo"
cp "$top/examples/ci/blinkc.yml" "$repo/.github/workflows"
cp "$top/topologies/dgx1v.xml" "$repo/machines"
cd "$repo" || exit 1
echo /build/ >.gitignore
git init -q .
git config user.name blinkc
git config user.email blinkc@localhost
m=schedules/dgx1v

run_make() { "${MAKE:-make}" BLINKC="$blinkc" "$@" >"$work/log" 2>&1 </dev/null; }
passes() {
	local name=$1
	shift
	if run_make "$@"; then ok "$name"; else not_ok "$name: exit $?: $(tail -5 "$work/log")"; fi
}
# caught NAME REGEXP [VARIABLE=VALUE...]: make check fails, with such a line; then all is as it was
caught() {
	local name=$1 line=$2
	shift 2
	if run_make check "$@"; then
		not_ok "$name: make check passes"
	elif grep -qE -e "$line" "$work/log"; then
		ok "$name"
	else
		not_ok "$name: no $line in: $(head -20 "$work/log")"
	fi
	git reset -q --hard
	git clean -fdq
}
commit() { git add -A && git commit -qm "$1"; }

commit "a machine"
caught "nothing is blessed yet" '^schedules/dgx1v: nothing for machines/dgx1v.xml: make bless\?$'
passes "make bless, at first" bless
expect "it says what is new" grep -qE "^ $m/index.json +\| +[0-9]+ \++$" "$work/log"
commit "schedules"
passes "make check" check
for report in build/report.xml build/report-dgx1v.xml; do
	expect "$report" xmllint --noout --nonet --schema "$top/tests/junit.xsd" $report
done
passes "make bless, once more" bless
expect "changes no byte" git diff --quiet
passes "make schedules" schedules
expect "the same bytes elsewhere" diff -r build/$m $m

# spoil FILE EXPRESSION: d is the document, written as it was spelled but for what is changed
spoil() {
	"$python" - "$1" "$2" <<-'END'
		import json, sys
		text = open(sys.argv[1]).read()
		d = json.loads(text)
		exec(sys.argv[2])
		open(sys.argv[1], "w").write(json.dumps(d))
	END
}
f=$m/allreduce/0-2.json
spoil $f 'd["trees"].pop()'
caught "a tree that was dropped" "^blinkc: $f: trees: no segment at 1/2"
spoil $f 'd["trees"][0]["segment"] = ["0/1", "1/3"]'
caught "a weight that was changed" "^blinkc: $f: trees\[1\]\.segment: starts at 1/2: rank 0 wants 1/3 next"
# Of edges that may come in any order, too.
b=$("$python" -c 'import glob, json
def down(file):
    return json.load(open(file))["trees"][0]["down"]
print(next(f for f in sorted(glob.glob("schedules/dgx1v/broadcast/*.json"))
    if len({(e[0], len(e[2])) for e in down(f)[:2]}) == 1 < len(down(f))))')
spoil "$b" 'e = d["trees"][0]["down"]; e[0], e[1] = e[1], e[0]'
expect "a schedule with two edges swapped is right" "$blinkc" check -q "$b"
caught "edges that were swapped" '^  order ' FAIL_ON=order
rm $f
caught "a schedule that went missing" "^blinkc: $m/index.json: allreduce/0-2.json: no such file"
git rm -rq $m/broadcast
caught "more of them" "^blinkc: $m/index.json: broadcast/0-2.r0.json: no such file"
rm $m/index.json
caught "an index that went missing" "^$m: nothing for machines/dgx1v.xml: make bless\?"
sed -i '0,/"rate":50/s//"rate":60/' $m/index.json
caught "an index that says too much" "^blinkc: $m/index.json: .*: rate: 60: the file has 50 GB/s"
cp -r $m schedules/other
caught "schedules of no machine" '^schedules/other: there is no machines/other.xml'

expect "the machine in JSON" "$blinkc" convert machines/dgx1v.xml -o machines/dgx1v.json
rm machines/dgx1v.xml
passes "a machine that is spelled otherwise" check
git reset -q --hard
rm machines/dgx1v.json
sed -i '0,/capacity="25"/s//capacity="20"/' machines/dgx1v.xml
git diff --quiet && not_ok "the machine did not change"
cp machines/dgx1v.xml "$work/changed.xml"
caught "a machine that has changed" '^machines/dgx1v.xml: another machine than that of schedules/dgx1v: make bless\?'
cp "$work/changed.xml" machines/dgx1v.xml
caught "and which of its links" '^blinkc: machines/dgx1v.xml: link gpu0 -> gpu1, nvlink: 20 GB/s, was 25 GB/s$'
cp "$work/changed.xml" machines/dgx1v.xml
caught "a machine that has changed: an annotation for each link" \
	'^::error file=machines/dgx1v.xml,title=blinkc check::link gpu0 -> gpu1, nvlink: 20 GB/s, was 25 GB/s$' \
		GITHUB_ACTIONS=true
cp "$work/changed.xml" machines/dgx1v.xml
caught "and one that says what to do" '^::error file=machines/dgx1v.xml,title=make check::another machine than that '\
'of schedules/dgx1v: make bless\?$' GITHUB_ACTIONS=true
rm machines/dgx1v.xml
caught "a machine that is gone" '^machines: no topology file'

# Planners that are not what they were.
planner() { printf '#!/bin/sh\n[ "$1" != batch ] || %s\nexec %q "$@"\n' "$1" "$blinkc" \
	>"$work/planner"; chmod +x "$work/planner"; }
planner 'set -- "$@" --tolerance 0.3'
caught "a planner that finds less" '^  rate +[0-9.]+ -> [0-9.]+ GB/s \(-' BLINKC="$work/planner" FAIL_ON=rate
caught "and other options" '^  options +tolerance: 0 -> 0.3' BLINKC="$work/planner"
planner 'set -- "$@" -p mwu'
caught "a planner that is another" '^  options +packing: "exact" -> "mwu"' BLINKC="$work/planner"
planner 'sleep 60'
caught "a planner that takes long" '^machines/dgx1v.xml: planning takes more than 1 s \(PLAN_SECONDS\)$' \
	BLINKC="$work/planner" PLAN_SECONDS=1
planner 'exit 5'
caught "a planner that fails" 'plan-dgx1v.* Error 5' BLINKC="$work/planner"

# Two faults at once, on two machines; then what is meant is taken.
cp "$top/topologies/dgx1p.xml" machines
passes "make bless of another machine" bless
commit "another machine"
rm $f
sed -i '0,/capacity="20"/s//capacity="10"/' machines/dgx1p.xml
run_make check
expect "both are reported: one" grep -q "^blinkc: $m/index.json: allreduce/0-2.json: no such file" "$work/log"
expect "both are reported: other" grep -q '^machines/dgx1p.xml: another machine' "$work/log"
git checkout -q $f
passes "make bless of what is meant" bless
expect "git diff --stat shows it" grep -qE '^ schedules/dgx1p/index.json +\|' "$work/log"
expect "and no more" test "$(grep -c dgx1v/ "$work/log")" = 0
passes "make check after make bless" check
rm $f
GITHUB_ACTIONS=true run_make check
expect "annotations" grep -q "^::error file=$m/index.json,title=blinkc check::allreduce/0-2.json: no such file" \
	"$work/log"
git checkout -q $f

# Differences are annotated where the file is in git: those that fail as errors, and others as warnings.
planner 'set -- "$@" --tolerance 0.3'
GITHUB_ACTIONS=true run_make check BLINKC="$work/planner" FAIL_ON=rate
expect "a difference that fails is an error" grep -qE \
	"^::error file=$m/[^,]*(%2C[^,]*)*,title=blinkc diff::rate: [0-9.]+ -> [0-9.]+ GB/s \(-" "$work/log"
expect "one that does not is a warning" grep -qE "^::warning file=$m/[^,]*,title=blinkc diff::options: " "$work/log"
expect "failures are failures in JUnit XML" test \
	"$(grep -c "^::error file=$m/.*title=blinkc diff::" "$work/log")" = "$(grep -c '<failure .*type="rate"' \
		build/report-dgx1v.xml)"
expect "every file in git has a test case" test \
	"$(git ls-files $m | wc -l)" = "$(grep -c "<testcase name=\"$m/" build/report-dgx1v.xml)"

# The workflow does no more than to call make.
expect "the workflow calls make check" grep -qx ' *run: make check' "$top/examples/ci/blinkc.yml"
if "$python" -c 'import yaml' 2>/dev/null; then
	expect "the workflow is YAML" "$python" \
		-c 'import sys, yaml; print(len(yaml.safe_load(open(sys.argv[1]))["jobs"]["check"]["steps"]))' \
		"$top/examples/ci/blinkc.yml"
else
	skip "the workflow as YAML: python3-yaml is not there"
fi
