# Two servers, as network namespaces joined by a link of a known rate: a net's messages arrive; they fill the link; and
# where it is cut, both ends hear of it in time. With each kind of net that can be used here. Needs root.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

pair=$build/tests/net_pair
left=blink-$$-0 right=blink-$$-1
mbit=400

skip_all() {
	skip "all of it: $*"
	exit 0
}

end() {
	local job
	for job in $(jobs -p); do kill "$job" 2>/dev/null; done
	wait
	ip netns del "$left" 2>/dev/null
	ip netns del "$right" 2>/dev/null
	rm -rf "$work"
}

# at SIDE COMMAND...: on one of the servers
at() {
	local side=$1
	shift
	ip netns exec "$side" "$@"
}

# both MODE ARGUMENT...: a rank on each server; what they print is in $work/0 and $work/1
both() {
	local code first
	rm -rf "$work/meet"
	mkdir "$work/meet"
	at "$right" "$pair" 1 10.77.0.2 "$work/meet" "$@" >"$work/1" 2>&1 &
	first=$!
	at "$left" "$pair" 0 10.77.0.1 "$work/meet" "$@" >"$work/0" 2>&1
	code=$?
	wait "$first" && [ $code = 0 ]
}

if [ ! -x "$pair" ]; then
	not_ok "net_pair is not built"
	exit 0
fi
[ "$(id -u)" = 0 ] || skip_all "not root"
for tool in ip tc; do command -v $tool >/dev/null || skip_all "no $tool here"; done
trap end EXIT
trap 'exit 1' INT TERM
ip netns add "$left" 2>"$work/err" || skip_all "no network namespaces here: $(head -1 "$work/err")"
if ! { ip netns add "$right" &&
	ip link add name end netns "$left" type veth peer name end netns "$right"; } 2>"$work/err"; then
	skip_all "no virtual links here: $(head -1 "$work/err")"
fi
at "$left" ip address add 10.77.0.1/24 dev end
at "$right" ip address add 10.77.0.2/24 dev end
for side in "$left" "$right"; do at "$side" ip link set end up && at "$side" ip link set lo up; done

# shape VERB MBIT: the link has this rate
shape() {
	local side
	for side in "$left" "$right"; do
		at "$side" tc qdisc "$1" dev end root tbf rate "$2mbit" burst 256k latency 50ms 2>"$work/err" || return
	done
}
if ! shape add $mbit; then
	skip "a link of a known rate: $(head -1 "$work/err")"
	exit 0
fi

# ---- a job: 16 ranks on two servers, by a schedule for two DGX-1V ----

# job MODE ARGUMENT...: ranks 0 to 7 on one, 8 to 15 on the other; what they print is in $work/rank.N
job() {
	local code=0 side rank pids=()
	rm -rf "$work/meet"
	mkdir "$work/meet"
	for rank in {0..15}; do
		side=$left
		[ "$rank" -ge 8 ] && side=$right
		at "$side" "$build/tests/job/launched" "$rank" 16 "$work/meet" "$@" >"$work/rank.$rank" 2>&1 &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do wait "$rank" || code=1; done
	return $code
}

# Shared memory on each server, the link between them. It is cut in the middle: all 16 fail, and say why.
job_cut() {
	local pid late
	export BLINK_TIMEOUT=3s
	rm -rf "$work/meet"
	(job cut 4000000) &
	pid=$!
	# Each of them has made a call.
	while kill -0 $pid 2>/dev/null && [ "$(find "$work/meet" -name 'flows.*' 2>/dev/null | wc -l)" -lt 16 ]; do
		sleep 0.1
	done
	touch "$work/meet/cut"
	at "$left" ip link set end down
	if wait $pid; then ok "$kind: all ranks hear of a cut"; else not_ok "$kind: a cut: $(cat "$work"/rank.*)"; fi
	at "$left" ip link set end up
	late=$(cat "$work"/rank.* | awk '$1 > 9000 || $2 != "ms:"' | head -3)
	if [ -z "$late" ]; then ok "$kind: in time: $(sort -n "$work"/rank.* | tail -1)"; else
		not_ok "$kind: late, or without a reason: $late"
	fi
	unset BLINK_TIMEOUT
}

# fills NAME TRY: one of the tries reaches 85 % of the rate of the link; TRY RATE prints the percent that it has.
# Processors that are busy with other things fill no fast link, so that it is slower after two tries, and slower still.
fills() {
	local name=$1 best=0 percent rate
	shift
	for rate in $mbit $mbit $((mbit / 2)) $((mbit / 4)) $((mbit / 8)); do
		shape change $rate || not_ok "$kind: $rate Mbit/s: $(cat "$work/err")"
		percent=$("$@" $rate)
		[ "${percent:-0}" -gt "$best" ] && best=$percent
		[ "$best" -ge 85 ] && break
	done
	shape change $mbit
	if [ "$best" -ge 85 ]; then
		ok "$kind: $name: $best % of $rate Mbit/s"
	else
		not_ok "$kind: $name: $best % at most: $(cat "$work"/rank.0 "$work/1")"
	fi
}

# The bound of the schedule on this link: each server sends and receives the message once. So many bytes take 1.3 s.
job_rate() {
	local bytes=$(($1 * 167772))
	job rate $bytes 2
	sed -n 's/ s$//p' "$work/rank.0" |
		awk -v bytes=$bytes -v mbit="$1" '{ printf "%d", bytes * 8 / $1 / 1e6 / mbit * 100 }'
}

# ---- two ranks ----

# The link goes down while rank 0 sends; 3 s without a sign of the other server are too long.
pair_cut() {
	local job rank ms
	rm -f "$work/meet/flows1"
	both cut 0 1000000 &
	job=$!
	while kill -0 $job 2>/dev/null && [ ! -e "$work/meet/flows1" ]; do sleep 0.05; done
	touch "$work/meet/cut"
	at "$left" ip link set end down
	if wait $job; then
		ok "$kind: both ranks hear of a cut: $(cat "$work/0" "$work/1" | tr '\n' ';')"
		for rank in 0 1; do
			ms=$(sed -n 's/ ms: .*//p' "$work/$rank")
			if [ "$ms" -ge 0 ] && [ "$ms" -le 12000 ]; then
				ok "$kind: rank $rank in time"
			else
				not_ok "$kind: rank $rank hears of a cut after $ms ms"
			fi
		done
	else
		not_ok "$kind: a cut: $(cat "$work/0" "$work/1")"
	fi
	at "$left" ip link set end up
}

pair_rate() {
	sleep 1
	both rate 1 $(($1 * 167772))
	sed -n 's| GB/s||p' "$work/1" | awk -v mbit="$1" '{ printf "%d", $1 * 8000 / mbit * 100 }'
}

expect "a schedule for two servers" "$build/blinkc" -q two-dgx1v -c allreduce -o "$work/allreduce.json"
export BLINK_SCHEDULES=$work/allreduce.json
# These servers have one memory, which UCX would find.
export UCX_TLS=tcp
"$pair" kinds >"$work/kinds"
while IFS=: read -r kind why; do
	if [ "$why" ]; then
		skip "$kind:$why"
		continue
	fi
	export BLINK_NET=$kind
	expect "$kind: messages of many sizes arrive over a link of $mbit Mbit/s" both check 60 300000
	if job check 3000004; then ok "$kind: 16 ranks on two servers: sums"; else
		not_ok "$kind: 16 ranks on two servers: $(cat "$work"/rank.*)"
	fi
	[ ! "$full" ] && [ "$kind" != tcp ] && continue
	job_cut
	pair_cut
	[ ! "$full" ] || { fills "an allreduce over 16 ranks" job_rate && fills "messages of 1.3 s" pair_rate; }
done <"$work/kinds"
