# What is predicted is what is measured, on links of known rates: schedules over TCP in network namespaces that have the
# NVLinks of a DGX-1V (tests/bench/links.py), of sets of 3, 4 and 8 GPUs. In the full test alone. Needs root.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# Percent: chunks that do not fit a full network reach some 60, and this machine may be busy.
least=80

# measured MBIT SET...: a line for each: the set, and the percent of what is predicted
measured() {
	local mbit=$1
	shift
	"$python" -B tests/bench/links.py --alone --mbit "$mbit" --size $((mbit * 200000)) --times 3 \
		--sets "$@" >"$work/out" 2>&1
	awk -F'|' '/^  [0-9]/ { split($1, name, " "); split($2, rate, " "); print name[1], int(100 * rate[3]) }' \
		"$work/out"
}

# And of ranks that share memory: simulated times, by parameters that fit, beside measured ones. Other
# programs and virtual machines use the same processors: more processes, with pauses, while few times are near.
"$python" -B tests/bench/predicted.py memory --ranks 2,4 --collectives allreduce --algorithms ring,chain,knomial \
	--sizes 64K,4M,16M --times 9 --repeat 2 --max-repeat 12 --fit-every 1 --want 50 >"$work/out" 2>&1
if grep -q '^skipped' "$work/out"; then skip "simulated beside measured: $(sed -n 's/^skipped: //p' "$work/out")"; else
	within=$(sed -nE 's/^  all +[0-9]+ +([0-9]+)[.0-9]* %.*/\1/p' "$work/out")
	if [ "${within:-0}" -ge 50 ]; then ok "ranks that share memory: $within % of times within 15 %"; else
		not_ok "ranks that share memory: ${within:-none} % of times within 15 %: $(tail -2 "$work/out")"
	fi
fi

# Groups that call at once: a broadcast beside allreduces of pairs is done sooner as planned together. Four tries.
for _ in 1 2 3 4; do
	"$python" -B tests/bench/groups_links.py --job "a broadcast" --mib 1 --times 2 >"$work/out" 2>&1
	grep -q '^skipped' "$work/out" && break
	read -r ratio together alone < <(awk -F'|' '/^  a broadcast/ { split($3, t, " "); split($5, a, " ")
		print int(100 * t[2]), int(1000 * t[1]), int(1000 * a[1]) }' "$work/out")
	[ "${ratio:-999}" -le 125 ] && [ "$together" -lt "$alone" ] && break
done
if grep -q '^skipped' "$work/out"; then skip "groups at once: $(sed -n 's/^skipped: //p' "$work/out")"
elif [ "${ratio:-999}" -le 125 ] && [ "$together" -lt "$alone" ]; then
	ok "groups at once: $ratio % of the planned time, $together ms, each alone $alone"
else
	not_ok "groups at once: ${ratio:-none} % of the planned time: $(tail -2 "$work/out")"
fi

# Processors that are busy with other things fill no link: those that are not filled are tried again, at half the rate.
left=(0,2,3 1,4,5,6 0,1,2,3,4,5,6,7)
for mbit in 40 40 20; do
	measured $mbit "${left[@]}" >"$work/rates"
	if grep -q '^skipped' "$work/out"; then
		skip "all of it: $(sed -n 's/^skipped: //p' "$work/out")"
		exit 0
	fi
	left=()
	while read -r gpus percent; do
		if [ "$percent" -ge $least ]; then ok "GPUs $gpus: $percent % of what is predicted, $mbit Mbit/s"; else
			left+=("$gpus")
		fi
	done <"$work/rates"
	[ -s "$work/rates" ] || break
	[ ${#left[@]} = 0 ] && exit 0
done
not_ok "${left[*]:-no set}: less than $least % of what is predicted: $(tail -3 "$work/out" | tr "\n" " ")"
