# Completion scripts, driven by the shells that they are for.
# shellcheck shell=bash source=tests/lib.sh disable=SC2016,SC2046
. tests/lib.sh

mkdir "$work/d" "$work/zsh"
for shell in bash zsh fish; do
	"$blinkc" completion $shell >"$work/blinkc.$shell" || not_ok "blinkc completion $shell: exit $?"
	"$perf" --completion $shell >"$work/blink-perf.$shell" || not_ok "blink-perf --completion $shell: exit $?"
done
expect_exit "no shell" 2 "$blinkc" completion
expect_exit "two shells" 2 "$blinkc" completion bash zsh
expect_exit "another shell" 2 "$blinkc" completion tcsh
expect_exit "another shell, blink-perf" 2 "$perf" --completion tcsh
if command -v shellcheck >/dev/null; then
	expect "shellcheck" shellcheck -s bash "$work/blinkc.bash" "$work/blink-perf.bash"
fi
cp topologies/dgx1v.xml "$work/d/machine one.xml"
: >"$work/d/other.json"

# What there is of a list, from the program: the words of the help that it takes.
verbs=$(verbs)
options() { "$@" --help | sed -nE 's/^ *(-., )? *(--[a-z_-]+).*/\2/p' | tr '\n' ' ' | sed 's/ $//'; }
first() { printf '%s\n' "$1" | tr ' ' '\n' | sort | tr '\n' ' ' | sed 's/ $//'; }

# Each shell has a function NAME_complete LINE, which prints what it offers for the last word, a line each.
cat >"$work/drive.bash" <<'END'
shopt -s extglob
complete() { builtin complete "$@"; }
compopt() { echo "$2" >>"$options"; }
options=$1 program=$2 script=$3 line=$4
source "$script"
# As readline cuts the line, "=" is a word of its own.
read -ra COMP_WORDS <<<"${line//=/ = }"
[[ $line == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(builtin complete -p "$program" | sed 's/.*-F \([^ ]*\) .*/\1/')
"$function" "$program" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
END
bash_complete() { (cd "$work/d" &&
	bash --norc "$work/drive.bash" "$work/options" "${1%% *}" "$work/${1%% *}.bash" "$1"); }

fish_complete() { (cd "$work/d" &&
	HOME=$work fish --no-config -c 'source $argv[1]; complete -C "$argv[2]"' "$work/${1%% *}.fish" "$1" |
	sed 's/\t.*//'); }

# A terminal of zsh's own, in which it completes; its offers are written to a file instead.
cat >"$work/drive.zsh" <<'END'
zmodload zsh/zpty || exit 1
zpty z zsh -f -i
expect() { local text; while zpty -r z text; do [[ $text == *$1* ]] && return; done }
zpty -w z "PS1=; cd ${(q)2}; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -d ${(q)1}/dump; "\
"setopt rcquotes; bindkey '^I' complete-word"
zpty -w z 'compadd() { local -a found; local -A o; '\
'if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)* ]]; then builtin compadd "$@"; return; fi; '\
'builtin compadd -A found "$@"; print -rl -- $IPREFIX${^found} >>$offered; builtin compadd "$@" }'
zpty -w z "offered=${(q)3}; stty -echo; print -r ready-\$((1+1))"
expect ready-2
zpty -n -w z "$4"$'\t'
sleep 0.01
zpty -n -w z $'\C-u'
zpty -w z 'print -r done-$((1+1))'
expect done-2
zpty -d z
END
zsh_complete() {
	cp "$work/${1%% *}.zsh" "$work/zsh/_${1%% *}"
	: >"$work/offered"
	# It waits for text that may never come.
	HOME=$work timeout 300 zsh -f "$work/drive.zsh" "$work/zsh" "$work/d" "$work/offered" "$1" >/dev/null \
		2>"$work/err" </dev/null
	sort -u "$work/offered" | sed '/^$/d'
}

# offers NAME LINE WORDS...: exactly these, in any order, "..." at the end: these and more
offers() {
	local name=$1 line=$2 got want more=''
	shift 2
	[ "${*: -1}" != ... ] || { more=1; set -- "${@:1:$#-1}"; }
	want=$(printf '%s\n' "$@" | sort -u)
	got=$(${shell}_complete "$line" | sort -u)
	[ ! "$more" ] || got=$(comm -12 <(printf '%s\n' "$want") <(printf '%s\n' "$got"))
	if [ "$got" = "$want" ]; then
		ok "$shell: $name"
	else
		not_ok "$shell: $name: '$line' has $(tr '\n' ' ' <<<"$got")"
	fi
}

for shell in bash zsh fish; do
	if ! command -v $shell >/dev/null; then
		skip "$shell: it is not there"
		continue
	fi
	compile=$(options "$blinkc" compile)
	# shellcheck disable=SC2086 # lists of words
	{
		offers "verbs, before one is there" "blinkc " $verbs ...
		offers "a verb that begins so" "blinkc con" convert
		offers "options of compile, which need not be named" "blinkc --" $compile ...
		offers "options that begin so" "blinkc --al" --algorithm
		offers "options of check" "blinkc check --" $(options "$blinkc" check)
		offers "no option of another verb" "blinkc check --al"
		offers "options of topology" "blinkc topology --s" --synthetic --servers
		offers "algorithms" "blinkc --algorithm " trees onehop threephase ring shared-ring \
			reducescatter-allgather chain direct knomial double-binary-tree \
			scatter-allgather halving-doubling recursive-doubling bruck hierarchical-ring \
				host-staged-knomial bine linear-pipeline binomial minimum-spanning-tree rabenseifner \
			bidirectional-exchange swing
		offers "algorithms that begin so" "blinkc -a on" onehop
		offers "formats of compile" "blinkc compile --format " json compact cu cuda-kernel \
			nccl-graph msccl mscclpp mscclpp-packets chakra
		offers "formats of topology" "blinkc topology --format " json xml canonical cluster
		offers "collectives" "blinkc -c all" allreduce allgather alltoall
		offers "shells" "blinkc completion " bash zsh fish
		offers "roots" "blinkc batch --roots b" best
		offers "no value where none is fixed" "blinkc --max-depth "
		offers "types" "blink-perf -d u" uint8 uint32 uint64
		offers "check or not" "blink-perf -c " 0 1
		offers "options of blink-perf" "blink-perf --" $(options "$perf")
		offers "files" "blinkc check o" other.json
		offers "topologies that come along" "blinkc lint dgx1" dgx1p dgx1v
		offers "the same without a verb" "blinkc superpod-a" superpod-a100
		offers "files beside them" "blinkc show o" other.json
		offers "files of -o" "blinkc -o o" other.json
		offers "files of blink-perf" "blink-perf o" other.json
	}
done

# What stands before the value is said again by some shells.
value_offers() { # NAME LINE BEFORE WORDS...
	local name=$1 line=$2 before=$3 got want
	shift 3
	want=$(printf '%s\n' "$@" | sort)
	got=$(${shell}_complete "$line" | sed "s/^$before//" | sort -u)
	if [ "$got" = "$want" ]; then
		ok "$shell: $name"
	else
		not_ok "$shell: $name: '$line' has $(tr '\n' ' ' <<<"$got")"
	fi
}
for shell in bash zsh fish; do
	command -v $shell >/dev/null || continue
	value_offers "a value behind =" "blinkc --packing=m" --packing= mwu
	value_offers "a value that may be left out" "blinkc --hybrid=" --hybrid= peer host
	value_offers "the next of a list" "blinkc --links nvlink,p" nvlink, pcie
	value_offers "collectives of a batch" "blinkc batch --collectives broadcast,all" broadcast, all \
		allreduce allgather alltoall
	value_offers "a list behind =" "blinkc --links=xgmi,q" "--links=\|xgmi,\|--links=xgmi," qpi
	value_offers "a name with a blank" "blinkc check mach" "" \
		"$([ $shell = zsh ] && echo 'machine\ one.xml' || echo 'machine one.xml')"
done

# ---- the lists are whole ----

# Of each option with a fixed set of values, what bash is offered: the program takes it, and takes no other word of its
# help.
"$blinkc" topology -q --synthetic "gpu:2 mesh:50 pcie:12" >"$work/small.json" || not_ok "topology: exit $?"
rejects() {
	local more=("$work/small.json") said
	# What lets the verb look at this option at all.
	case $1 in batch | tune) more+=(--sizes 2 -o "$work/batch") ;; diff) more+=("$work/small.json") ;; esac
	case $1$2 in batch*=scatter-allgather) more+=(--collectives broadcast) ;; *=scatter-allgather) \
		more+=(-c broadcast) ;; esac
	case $1$2 in compile--executor*) more+=(--size 1K) ;; esac
	case $2 in --layout*) more+=(--format svg) ;; --hybrid*) more=(topologies/dgx1v.xml -g 0,1) ;; esac
	said=$'\n'$("$blinkc" "$1" "$2" "${more[@]}" </dev/null 2>&1 >/dev/null)
	[[ $said == *$'\n'"blinkc: ${2%%=*}: "* ]]
}
wrong=0 n=0 seen=
for verb in $verbs; do
	while read -r option help; do
		n=$((n + 1))
		case $option in --hybrid) line="blinkc $verb $option=" ;; *) line="blinkc $verb $option " ;; esac
		# What another verb has in the same words is asked of it, too, in the full check.
		[[ $full || $seen != *"$option $help"$'\n'* ]] || continue
		words=$(bash_complete "$line")
		for word in $words; do
			rejects "$verb" "$option=$word" &&
				{ wrong=1; not_ok "blinkc $verb $option $word is offered, and refused"; }
		done
		rejects "$verb" "$option=zzz" || { [ ! "$words" ] &&
			continue; wrong=1; not_ok "blinkc $verb $option zzz is not refused"; }
		seen+=$option' '$help$'\n'
		# shellcheck disable=SC2013 # words
		for word in $(grep -oE '\b[a-z][a-z0-9]+' <<<"$help" | sort -u | sed -n "1~${full:-4}p"); do
			rejects "$verb" "$option=$word" || [[ $'\n'$words$'\n' == *$'\n'$word$'\n'* ]] ||
				{ wrong=1; not_ok "blinkc $verb $option $word is taken, and not offered"; }
		done
	done < <("$blinkc" "$verb" --help |
		awk '/^ *(-., )? *--/ { if (line) print line; line = $0; next }
			/^                    / && line { line = line $0; next }
			{ if (line) print line; line = "" }' |
		sed -nE 's/^ *(-., )? *(--[a-z_-]+)(\[=| )(NAME|KIND|LIST)[] ]+(.*)/\2 \5/p' |
		grep -vE '^--(gpus|sizes?) ')
done
if [ $n -lt 10 ]; then not_ok "only $n options with values"; elif [ $wrong = 0 ]; then ok \
	"values of $n options are those that blinkc takes"; fi
