# What README.md, docs/*.md and the man pages say: each example is executed, each list is compared with the source, and
# each path exists.
# shellcheck shell=bash disable=SC2016,SC2154
. tests/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL

# ---- examples ----

# README.md and docs/guide.md run in a copy of the tree, so that a test can ask git what they leave behind. Its build/
# is a directory of its own, with links to what is built.
command -v git >/dev/null || { not_ok "git is missing"; exit 1; }
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
in_copy() { git -C "$copy" "$@"; }
copy=$work/copy
mkdir -p "$copy/build"
tar -C "$top" -cf - --exclude=./.git --exclude=./build --exclude=./tests/bad --exclude=./tests/fuzz \
	--exclude=./tests/golden --exclude=./tests/mutations . | tar -C "$copy" -xf - ||
	not_ok "the tree is not copied"
for entry in "$build"/{blinkc,blink-perf,libblink.so*,libnccl-tuner-blink.so,flags,src,runtime,gen,completions}; do
	ln -s "$entry" "$copy/build"
done
in_copy init -q
in_copy config core.looseCompression 0
in_copy add -A
in_copy -c user.name=blinkc -c user.email=blinkc@localhost commit -qm copy

# Man pages are for programs that are installed: here their paths lead to the tree.
linked=$work/linked
mkdir "$linked"
for entry in "$top"/*; do
	[ "$(basename "$entry")" = build ] || ln -s "$entry" "$linked"
done
ln -s "$build" "$linked/build"
PATH=$build:$PATH

# Commands begin with "$ " and go on while lines end with a backslash, or to the END of a here-document; what follows
# must come out, where "..." is anything. Commands whose output is not given may print what they like. They succeed,
# unless "$ echo $?" comes next; those whose output is one line of blinkc's on what is wrong do not.
last=0 tried=0 failed=0
run_command() {	# NAME COMMAND WANTED MAY-FAIL
	local before=$last pattern refused=
	tried=$((tried + 1))
	# These take seconds, and nothing else needs what they leave.
	[ "${full:-}" ] || case $2 in
	'make quickstart' | *'-c broadcast cluster.xml -o'* | 'blinkc tune -q dgx1v '* | 'blinkc what-if dgx1v' | \
		*'hierarchy topologies/abci-rack.xml -g 0-15 --top 3' | \
		*' odd7.xml -l nvlink -g 0,1,2,3,4,5 --pareto' | \
		*'dgx1v.xml -c broadcast --pareto' | 'gcc -x c '* | *'blink-perf '*'.so '* | 'blink-perf ar.json '* | \
		*'dgx1v.xml -c allreduce -o ar.json' | 'blink-perf schedules '*' -e 4M '*) return ;;
	esac
	(cd "$scratch" && eval "(exit $before)
$2") >"$work/got" 2>&1 </dev/null
	last=$?
	[[ $3 != 'blinkc: '* || $3 == *$'\n'* ]] || refused=1
	if { [ $last != 0 ] && [ -z "$4$refused" ]; } || { [ $last = 0 ] && [ "$refused" ]; }; then
		failed=$((failed + 1))
		not_ok "$1: exit $last of: $2"
		head -5 "$work/got" | sed 's/^/# /'
		return
	fi
	[ "$3" ] || return
	pattern=${3//\\/\\\\}
	pattern=${pattern//'['/'\['}
	pattern=${pattern//']'/'\]'}
	pattern=${pattern//'*'/'\*'}
	pattern=${pattern//'?'/'\?'}
	pattern=${pattern//.../'*'}
	# shellcheck disable=SC2053 # a pattern
	if [[ $(<"$work/got") != $pattern ]]; then
		failed=$((failed + 1))
		not_ok "$1: other output of: $2"
		diff <(printf '%s\n' "$3") "$work/got" | head -12 | sed 's/^/# /'
	fi
}

run_block() {	# NAME, lines on stdin
	local line more='' next i
	local -a commands=() wants=()
	while IFS= read -r line; do
		if [ "$more" ]; then
			commands[-1]+=$'\n'$line
		elif [[ $line == '$ '* ]]; then
			commands+=("${line#??}")
			wants+=('')
		elif [ ${#commands[@]} -gt 0 ]; then
			wants[-1]+=${wants[-1]:+$'\n'}$line
		fi
		more=
		[[ ${#commands[@]} -gt 0 && ! ${wants[-1]} ]] || continue
		if [[ $line == *\\ ]] || [[ ${commands[-1]} == *"<<'END'"* && $line != END ]]; then more=1; fi
	done
	for ((i = 0; i < ${#commands[@]}; i++)); do
		next=${commands[i + 1]:-}
		run_command "$1" "${commands[i]}" "${wants[i]}" "${next#"${next%echo \$\?}"}"
	done
}

# Blocks of a document, each in a file of $work/blocks.
console_blocks() {
	awk -v out="$work/blocks/" '/^```console$/ { inside = 1; n++; next } /^```/ { inside = 0 }
		inside { print > sprintf("%s%03d", out, n) }' "$1"
}
man_blocks() {
	awk -v out="$work/blocks/" '/^\.Sh/ { examples = $2 == "EXAMPLES" } /^\.Ed/ { inside = 0 }
		inside {
			gsub(/\\&/, ""); gsub(/\\\(mi|\\-/, "-"); gsub(/\\\(aq/, "\047"); gsub(/\\e/, "\\")
			print > sprintf("%s%03d", out, n)
		}
		examples && /^\.Bd -literal/ { inside = 1; n++ }' "$1"
}

has_gpu() { command -v nvcc >/dev/null && [ -e /dev/nvidia0 ]; }

# The tutorial begins in an empty directory, with the tree elsewhere.
for doc in README.md docs/*.md man/*.[1-9]; do
	# The quick check leaves the examples of the tour, of the operator's day and of the longest page to the full
	# one.
	[[ ${full:-} || $doc != @(docs/guide.md|docs/operator.md|man/blinkc-compile.1) ]] || continue
	rm -rf "$work/blocks"
	mkdir "$work/blocks"
	case $doc in
	docs/tutorial.md) scratch=$work/tutorial; mkdir "$scratch"; export BLINK=$linked; console_blocks "$doc" ;;
	*.md) scratch=$copy; console_blocks "$doc" ;;
	*) scratch=$linked; man_blocks "$doc" ;;
	esac
	tried=0 failed=0
	for block in "$work"/blocks/*; do
		[ -e "$block" ] || continue
		text=$(<"$block")
		# Blocks without a prompt are commands, too, if they begin with one of ours.
		if [[ $'\n'$text != *$'\n$ '* ]]; then
			[[ $text == @(blinkc|blink-perf)' '* ]] || continue
			text="$ ${text//$'\n'/$'\n'$ }"
		fi
		if [[ $'\n'$text == *$'\n$ nvcc '* ]]; then
			has_gpu || { skip "$doc: an example for GPUs: nvcc or a GPU is missing"; continue; }
			text=${text//\/usr\/local\/include/$top/runtime/include}
		fi
		run_block "$doc" <<<"$text"
	done
	[ $failed != 0 ] || [ $tried = 0 ] || ok "$doc: $tried commands do what it says"
	if [ "$scratch" = "$copy" ]; then
		expect "$doc: git status is as before" test -z "$(in_copy status --porcelain)"
		in_copy clean -fdq
	fi
done
for doc in README.md:1 docs/guide.md:20 docs/tutorial.md:15; do
	[ "$(grep -c '^```console$' ${doc%:*})" -ge ${doc#*:} ] || not_ok "${doc%:*}: its examples are not found"
done
expect "README.md has at most 150 lines" test "$(wc -l <README.md)" -le 150
for doc in docs/*.md; do
	[ "$(wc -l <"$doc")" -le 100 ] ||
		expect "$doc: it is long, and has a list of contents" grep -qE '^- \[.*\]\(#' "$doc"
done

# ---- what the tutorial makes ----

made=$work/tutorial
expect "docs/tutorial.md makes examples/odd7.xml" cmp "$made/odd7.xml" examples/odd7.xml
expect "docs/tutorial.md draws docs/odd7-five.svg" cmp "$made/odd7-five.svg" docs/odd7-five.svg
expect "examples/odd7.xml is valid" xmllint --noout --nonet --schema schemas/topology.xsd examples/odd7.xml
# The manual's table has each link twice, once at each end.
awk '/^GPU[0-9] / { for (i = 0; i < 7; i++) if ($(i + 2) ~ /^NV/) print tolower($1), "gpu" i, substr($(i + 2), 3) }' \
	docs/tutorial.md | sort >"$work/manual"
"$python" -c 'import json, sys
for l in json.load(sys.stdin)["links"]:
    if l["class"] == "nvlink":
        for a, b in ("from", "to"), ("to", "from"):
            print(l[a], l[b], l.get("count", 1))' <"$made/odd7.json" | sort >"$work/file"
expect "docs/tutorial.md: the manual's table has $(wc -l <"$work/file") links" test "$(wc -l <"$work/file")" -gt 7
expect "docs/tutorial.md: the file has the links of the manual's table" diff "$work/manual" "$work/file"

# ---- machines ----

summary() {	# FILE COLLECTIVE: GPUs, links, and the rate where it is the bound
	local said
	said=$work/said/$(basename "$1" .xml)-$2
	"$blinkc" "$1" -c "$2" -o /dev/null 2>"$said"
	awk '/^topology/ { gpus = $3; sub(/.*links: /, ""); links = $0 } /^rate/ { rate = $2 }
		/^ratio/ { print gpus " | " links " | " ($2 == "1.000" ? rate : "not at the bound") }' "$said"
}
mkdir "$work/said"
for t in topologies/*.xml; do
	row=$(grep -F "| [$(basename "$t" .xml)](../$t) | " docs/machines.md)
	expect "docs/machines.md: a row of $t" test "$row"
	# Of large machines without $full the row only has to be there.
	[[ ${full:-} || ! $row =~ '| '[0-9]{3,4}' | '[a-z] ]] || continue
	allreduce=$(summary "$t" allreduce)
	expect "docs/machines.md: the row of $t" grep -qF "| $(summary "$t" allgather) | ${allreduce##* } |" <<<"$row"
done

# ---- what was measured ----

# Without $full, only what takes less than half a second.
results=docs/results.md
oracle achieved ${full:+--all} --said "$work/said" "$blinkc" >"$work/rows" || not_ok "achieved.py: exit $?"
oracle fig22 ${full:+--all} "$blinkc" >>"$work/rows" || not_ok "fig22.py: exit $?"
while IFS= read -r row; do
	case $row in
	'|'*) if grep -qxF "$row" $results; then ok "$results: $row"; else not_ok "$results: has no row $row"; fi ;;
	esac
done <"$work/rows"
rings=$(sed -n 's/ of 46 on DGX-1V have no ring$//p' "$work/rows")
expect "README.md: $rings of the 46 sets have no ring" grep \
	-qE "46 different connected sets.* $rings have no ring" <(tr '\n' ' ' <README.md)
rows=$(sed -n '/^## Results/,/^## /{/^|/p}' README.md)
expect "README.md: a table of results" test "$(wc -l <<<"$rows")" -gt 5
while IFS= read -r row; do
	expect "README.md: the row $row is that of $results" grep -qxF "$row" $results
done <<<"$rows"

# ---- options ----

# same NAME ONE OTHER: two lists of words, in any order
same() {
	local one other
	one=$(printf '%s\n' "$2" | sort -u) other=$(printf '%s\n' "$3" | sort -u)
	if [ "$one" ] && [ "$one" = "$other" ]; then ok "$1"; else
		not_ok "$1: $(diff <(printf '%s\n' "$one") <(printf '%s\n' "$other") | grep '^[<>]' | tr '\n' ' ')"
	fi
}

# help_options PROGRAM-VERB: of what it says to --help
mkdir "$work/help"
for verb in $(verbs | grep -vx help); do "$blinkc" "$verb" --help >"$work/help/blinkc-$verb"; done
"$perf" --help >"$work/help/blink-perf"
help_options() { sed -nE 's/^ *(-(.), )? *--([a-z_-]+).*/\2 \3/p' "$work/help/$1" | sed 's/^ //'; }
man_options() { sed -nE 's/^\.It Fl ((.) , )?-([a-z_-]+).*/\2 \3/p' "$1" | sed 's/^ //'; }
synopsis() {	# PAGE: its options, letters one by one
	awk '/^\.Sh/ { inside = $2 == "SYNOPSIS" } !inside { next }
		{ for (i = 1; i < NF; i++) if ($i ~ /^\.?Fl$/) {
			if ($(i + 1) ~ /^-/) print substr($(i + 1), 2)
			else { gsub(/./, "&\n", $(i + 1)); printf "%s", $(i + 1) }
		} }' "$1"
}

# Each verb but help has a page, whose list and synopsis have its options.
same "pages of blinkc" "$(verbs | grep -vx help | sed 's/.*/blinkc-&.1/')"$'\n'blinkc.1 "$(cd man && ls blinkc*.1)"
same "blinkc(1) names the page of each verb" "$(verbs | grep -vx help)" \
	"$(sed -n 's/^\.It Xr blinkc-\(.*\) 1$/\1/p' man/blinkc.1)"
for verb in $(verbs | grep -vx help); do
	page=man/blinkc-$verb.1
	# One word more, as a verb may have none.
	options=$(echo verb; help_options "blinkc-$verb" | grep -vx 'h help\|V version')
	same "blinkc $verb --help and blinkc-$verb(1) have the same options" "$options" \
		"$(echo verb; man_options "$page")"
	same "blinkc $verb --help and the synopsis have the same options" "$(sed 's/ .*//' <<<"$options")" \
		"$(echo verb; synopsis "$page")"
done
if [ -e man/blink-perf.1 ]; then
	same "blink-perf --help and blink-perf(1) have the same options" "$(help_options blink-perf)" \
		"$(man_options man/blink-perf.1)"
else
	skip "blink-perf(1): there is no such page"
fi

# Each number of an option's help is in its item of the page, or of the page that this names for it.
oracle snippet - "$work/help" >"$work/numbers" <<'PY'
import os, re, sys

def item(option, pages):
    """The lines of the pages on this option."""
    inside = False
    for line in "".join(open(page).read() for page in pages).splitlines():
        if re.match(r"\.(It|El|Ss|Sh)", line):
            inside = line.startswith(".It Fl") and option in line.split()[2:]
        if inside:
            yield line

def options(text):
    """Name and help of each."""
    for found in re.finditer(r"^ *(?:-., )? *(--.*(?:\n {20}.*)*)", text, re.M):
        words = re.sub(r", as [^()]*", "", re.sub(r"\s+", " ", found[1]), count=1)
        name = re.match(r"-(-[a-z_-]+)(?: |$)(.*)", words)
        if name:
            yield name[1], name[2]

for program in sorted(os.listdir(sys.argv[1])):
    page = f"man/{program}.1"
    verbs = re.findall(r"^\.Xr (blinkc-[a-z-]*) 1", open(page).read(), re.M)
    pages = [page, *sorted({f"man/{name}.1" for name in verbs})]
    missing = [(name, number) for name, text in options(open(os.path.join(sys.argv[1], program)).read())
               for number in re.findall(r"[0-9]+(?:\.[0-9]+)?[KMG]?", text)
               if not any(re.search(rf"(^|[^0-9.]){re.escape(number)}([^0-9]|$)", line) for line in item(name, pages))]
    for name, number in missing:
        print(f"not ok docs: {page}: -{name}: help says {number}, the page does not")
    if not missing:
        print(f"ok docs: {page} has the numbers of --help")
PY
cat "$work/numbers"
expect "pages and their numbers" test "$(wc -l <"$work/numbers")" -ge "$(ls "$work/help" | wc -l)"

# ---- lists in the source ----

# Rows of the X-macro list of this name, in whatever header it is.
list() { grep -rhA99 --include='*.h' "^#define $1(X)" src | awk 'NR > 1 && !/^\tX\(/ { exit } NR > 1'; }
quoted() { sed -E 's/^[^"]*"([^"]*)".*/\1/'; }	# the first string of each row
items() {	# PAGE SECTION: the names of its list
	awk -v want="$2" '/^\.S[hs]/ { line = $0; sub(/^\.S[hs] /, "", line); inside = line == want }
		inside && /^\.It/ { sub(/^\.It ?(Cm )?/, ""); if ($1 != "" && $1 != "Ta") print $1 }' "$1"
}
status=$(list STATUS_LIST | sed -E 's/.*, ([0-9]+), .*/\1/')
collectives=$(list COLLECTIVE_LIST | quoted)
rooted=$(list COLLECTIVE_LIST | grep '", true,' | quoted)
classes=$(list LINK_CLASS_LIST | quoted)
differences=$(list DIFFERENCE_LIST | quoted)
states=$(list DIFF_STATE_LIST | quoted)
algorithms=$(awk '/^static const Algorithm algorithms/ { inside = 1 } /^};/ { inside = 0 } inside && /^\t\{ "/' \
	src/plan/algorithm.c | quoted)
certificates=$(list CERTIFICATE_LIST | quoted)

same "exit status in blinkc(1)" "$status" "$(items man/blinkc.1 'EXIT STATUS')"
guide_status=$(sed -n '/^## Exit status/,/^## /{//!p}' docs/guide.md | grep '^| [0-9]')
same "exit status in docs/guide.md" "$status" "$(sed -E 's/^\| ([0-9]+) .*/\1/' <<<"$guide_status")"
same "exit status in docs/guide.md, in the words of --help" \
	"$({ "$blinkc" help --help; cat "$work"/help/blinkc-*; } | sed -nE 's/^  ([0-9]+)  (.*)/| \1 | \2 |/p')" \
	"$guide_status"
# What is for programs alone is no result of the library; those of a job of processes are no exit status.
results=$(list STATUS_LIST | grep -vE 'X\((DIFFERENT|IMPLAUSIBLE),' | sed -E 's/.*, ([0-9]+), .*/\1/')
in_header=$(sed -n '/^typedef enum/,/blinkResult_t/p' runtime/include/blink.h | sed '/blinkResult_t/q' |
	sed -nE 's/^\t(blink[A-Za-z]+) = ([0-9]+),?.*/\1 \2/p')
same "exit status in blink.h" "$results" "$(sed -E 's/.* //' <<<"$in_header" | grep -x '[0-8]')"
same "results in libblink(3)" "$in_header" \
	"$(sed -nE 's/^\.It Dv (blink[A-Za-z]+) Pq ([0-9]+)$/\1 \2/p' man/libblink.3)"
# Each function has its place in one of the two pages.
functions() { sed -nE 's/^\.Fn (blink[A-Z][A-Za-z]+).*/\1/p; /^\.Sh DESCRIPTION/q' "man/$1.3"; }
same "functions in libblink(3) and libblink-schedule(3)" \
	"$(grep -oE '\bblink[A-Z][A-Za-z]+;' runtime/libblink.map | tr -d ';')" \
	"$(functions libblink)"$'\n'"$(functions libblink-schedule)"
# The program in the page is the example.
expect "libblink(3) has the program examples/job.c" diff <(sed -n '/^#include <blink.h>/,$p' examples/job.c) \
	<(awk '/^\.Sh/ { examples = $2 == "EXAMPLES" } /^\.Ed/ && inside { exit } inside { gsub(/\\e/, "\\"); print }
		examples && /^\.Bd/ { inside = 1 }' man/libblink.3)
[ ! -e man/blink-perf.1 ] || for code in $(items man/blink-perf.1 'EXIT STATUS'); do
	expect "exit status $code in blink-perf(1)" grep -qx "$code" <<<"$status"
done
same "collectives in blink-schedule(5)" "$collectives" "$(items man/blink-schedule.5 Collectives)"
same "algorithms in blinkc-compile(1)" "$algorithms" \
	"$(awk '/^\.It Fl a/ { inside = 1; next } inside && /^\.It Fl/ { exit } inside && /^\.It Cm/ { print $3 }' \
		man/blinkc-compile.1)"
same "algorithms in blink-schedule(5)" "$algorithms" \
	"$(awk '/^\.It Cm algorithm$/ { inside = 1; next } inside && /^\.It/ { exit } inside && /^\.Qq/ { print $2 }' \
		man/blink-schedule.5)"
same "certificates in blink-schedule(5)" "$certificates" "$(items man/blink-schedule.5 'Rate and bound')"
same "link classes in blink-topology(5)" "$classes" \
	"$(awk '/^\.Ss Links/ { links = 1 } links && /^\.It Cm class$/ { inside = 1; next }
		inside && /^\.El/ { exit } inside && /^\.It Cm/ { print $3 }' man/blink-topology.5)"
same "link classes in blinkc-compile(1)" "$classes" \
	"$(awk '/^\.It Fl l/ { inside = 1; next } inside && /^\.It/ { exit } inside && /^\.Cm nvlink/' \
		man/blinkc-compile.1 | grep -oE '\b[a-z][a-z0-9]+')"

enum() {	# FILE EXPRESSION: the words of a list in a schema
	"$python" -c 'import json, sys; s = json.load(open(sys.argv[1])); print("\n".join(eval(sys.argv[2])))' "$1" "$2"
}
schema=schemas/schedule.schema.json
same "collectives in $schema" "$collectives" "$(enum $schema 's["properties"]["collective"]["enum"]')"
same "rooted collectives in $schema" "$rooted" "$(enum $schema 's["if"]["properties"]["collective"]["enum"]')"
same "link classes in $schema" "$classes" "$(enum $schema 's["$defs"]["link"]["properties"]["class"]["enum"]')"
same "certificates in $schema" "$certificates" \
	"$(enum $schema 's["$defs"]["certificate"]["properties"]["kind"]["enum"]')"
same "certificates with members in $schema" "$certificates" \
	"$(enum $schema '[c["if"]["properties"]["kind"]["const"] for c in s["$defs"]["certificate"]["allOf"]]')"
same "differences in blinkc-diff(1)" "$differences" "$(items man/blinkc-diff.1 Differences)"
schema=schemas/diff.schema.json
same "differences in $schema" "$differences" "$(enum $schema 's["$defs"]["difference"]["properties"]["kind"]["enum"]')"
same "states in $schema" "$states" "$(enum $schema 's["$defs"]["file"]["properties"]["state"]["enum"]')"
schema=schemas/topology.schema.json
same "link classes in $schema" "$classes" "$(enum $schema 's["$defs"]["linkClass"]["enum"]')"
same "link classes in schemas/topology.xsd" "$classes" \
	"$(sed -n '/simpleType name="link-class"/,/<\/xs:simpleType>/p' schemas/topology.xsd |
		grep -o 'enumeration value="[^"]*"' | sed 's/.*="//; s/"//')"

# ---- folders ----

same "folders of src/ in docs/design.md" "$(find src -mindepth 1 -maxdepth 1 -type d)" \
	"$(sed -nE 's:^\| `(src/[a-z]+)/` .*:\1:p' docs/design.md)"
expect "docs/design.md: directions are those of src/LAYERS" diff <(grep -v '^#' src/LAYERS) \
	<(sed -n '/^## Directions/,/^## /p' docs/design.md | sed -n '/^```$/,/^```$/{//!p}')

same "folders of runtime/ in docs/design.md" "$(find runtime -mindepth 1 -maxdepth 1 -type d)" \
	"$(sed -nE 's:^\| `(runtime/[a-z_]+)/` .*:\1:p' docs/design.md)"

same "packers in docs/design.md" \
	"$(sed -n '/^static const struct packer packers/,/^};/p' src/plan/packers.c |
		sed -nE 's/^\t\{ "([^"]+)".*/\1/p')" \
	"$(sed -n '/^| packer | serves/,/^$/p' docs/design.md | sed -nE '3,$s/^\| ([^|]+) \|.*/\1/p')"

# The steps of a call: each function is in its file.
steps=0 missing=
while read -r function file; do
	steps=$((steps + 1))
	grep -qE "^($function|[a-z].*[ *]$function)\(" "$file" || missing="$missing $file:$function"
done < <(sed -nE 's:^\| `(\w+)` \| `((src|runtime)/[^`]+\.[ch])` \|.*:\1 \2:p' docs/design.md)
if [ "$steps" -ge 20 ] && [ ! "$missing" ]; then ok "docs/design.md: the $steps steps of a call are there"; else
	not_ok "docs/design.md: $steps steps of a call; not where it says:$missing"
fi

# ---- paths, targets, verbs ----

mapfile -t pages < <(find docs examples -name '*.md' | sort)
docs=(README.md CHANGELOG.md "${pages[@]}" man/*.[1-9])
missing=
while IFS= read -r path; do
	compgen -G "$path" >/dev/null || missing="$missing $path"
done < <(cat "${docs[@]}" |
	grep -oE '(^|[^A-Za-z0-9_/.-])(src|runtime|topologies|schemas|tests|examples|man|docs)/[A-Za-z0-9_./*-]*' |
	sed -E 's/^[^a-z]//; s/\.$//' | sort -u)
# What is installed in share/doc/blinkc is there under the same path.
while IFS= read -r path; do
	[ -f "$path" ] || missing="$missing $path"
done < <(cat "${docs[@]}" | grep -oE 'share/doc/blinkc/[A-Za-z0-9_./-]*[A-Za-z0-9]' |
	sed 's:^share/doc/blinkc/::' | sort -u)
if [ "$missing" ]; then not_ok "paths that do not exist:$missing"; else ok "every path exists"; fi

# Relative links of Markdown, and anchors of headings.
anchors() { sed -nE 's/^#+ //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n_-'; }
declare -A known=()
missing=
for doc in README.md "${pages[@]}"; do
	folder=$(dirname "$doc")
	while IFS= read -r link; do
		target=${link%%#*}
		target=${target:+$folder/$target}
		target=${target:-$doc}
		[ -e "$target" ] || missing="$missing $doc:$link"
		[[ $link == *#* ]] || continue
		[ "${known[$target]:-}" ] || known[$target]=$'\n'$(anchors "$target")$'\n'
		[[ ${known[$target]} == *$'\n'"${link#*#}"$'\n'* ]] || missing="$missing $doc:$link"
	done < <(grep -oE '\]\([^)]*\)' "$doc" | sed 's/^](//; s/)$//' | grep -v '^https\?:')
done
if [ "$missing" ]; then not_ok "links that lead nowhere:$missing"; else ok "every link leads somewhere"; fi

missing=
while IFS= read -r target; do
	grep -qE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile || missing="$missing $target"
done < <(cat "${docs[@]}" | grep -oE '([`"]|^\$ |Dq )make [a-z][a-z-]*|^make [a-z-]+ +#' |
	sed 's/ *#//; s/.* //' | sort -u)
if [ "$missing" ]; then not_ok "targets that do not exist:$missing"; else ok "every target of make exists"; fi

missing=$(cat "${docs[@]}" runtime/include/*.h examples/*.[ch] |
	grep -oE '(`|Ql |blinkc:|^\$ |"|\*	)blinkc [a-z][a-z0-9._/-]*' |
	sed 's/.* //; s/\.$//' | grep -x '[a-z]*' | grep -vxF "$(verbs)"$'\n'topologies | sort -u)
if [ "$missing" ]; then not_ok "verbs that do not exist: $missing"; else ok "every verb exists"; fi

# ---- form ----

if command -v mandoc >/dev/null; then
	for page in man/*.[1-9]; do expect "mandoc -Tlint $page" mandoc -Tlint -Wwarning "$page"; done
else
	skip "mandoc -Tlint: mandoc is not there"
fi
for picture in docs/*.svg; do expect "$picture is XML" xmllint --noout --nonet "$picture"; done
