# Jobs over several servers: all collectives over unequal fragments, a single GPU of a server, NICs of two speeds, oversubscribed
# leaves and rails without a spine; each at its bound, and in three phases; replayed, and executed on the host.
. tests/lib.sh

cat >"$work/speeds.json" <<'END'
{ "format": "blink-topology", "version": 1, "name": "two speeds",
  "nodes": [{ "id": "v", "file": "dgx1v.xml", "count": 2 }, { "id": "a", "file": "dgx-a100.xml" }],
  "fabrics": [{}] }
END
"$blinkc" topology --servers 4 topologies/dgx1v.xml --leaf 2 --oversubscription 4 --format cluster -o "$work/leaves.json" || not_ok "leaves"
"$blinkc" topology --servers 3 topologies/dgx1v.xml --rails --format cluster -o "$work/rails.json" || not_ok "rails"

jobs() {	# NAME, TOPOLOGY, GPUs
	cat <<-END
	3+5_GPUs topologies/two-dgx1v.xml 0,1,2,11,12,13,14,15
	8+1_GPUs topologies/two-dgx1v.xml 0,1,2,3,4,5,6,7,13
	1+1_GPUs topologies/two-dgx1v.xml 2,8
	2+3+4_GPUs_at_two_speeds $work/speeds.json 0,1,8,9,10,16,17,18,19
	1+1+1_GPUs_at_two_speeds $work/speeds.json 3,12,20
	2+2+2+2_GPUs_oversubscribed $work/leaves.json 0,1,8,9,16,17,24,25
	3+2+1_GPUs_on_rails $work/rails.json 0,1,2,8,9,21
	END
}

bytes=$([ "$full" ] && echo 96K || echo 24K)
# right NAME TOPOLOGY OPTIONS...: compiles to $work/s.json, which is checked, replayed and executed; $work/err has the summary
right() {
	local name=$1
	shift
	if ! "$blinkc" "$@" -o "$work/s.json" 2>"$work/err"; then
		not_ok "$name: $(cat "$work/err")"
		return
	fi
	expect "$name, checked" "$blinkc" check -q "$work/s.json"
	expect "$name, replayed" oracle replay "$work/s.json"
	expect "$name, executed" "$perf" "$work/s.json" -b "$bytes" -e "$bytes" -n 1 -w 0
}

while read -r name topology gpus; do
	root=$(($(tr -cd , <<<"$gpus" | wc -c) / 2))
	# Those left out of the quick check are others turned round.
	for c in broadcast ${full:+reduce} allreduce ${full:+gather} scatter allgather ${full:+reducescatter} alltoall; do
		options=(-c $c -g "$gpus")
		case $c in broadcast | reduce | gather | scatter) options+=(-r $root) ;; esac
		right "$name $c" "$topology" "${options[@]}"
		ratio=$(awk '/^ratio/ { print $2 }' "$work/err")
		if awk -v r="$ratio" 'BEGIN { exit !(r >= 0.9999) }'; then ok "$name $c: ratio $ratio"; else not_ok "$name $c: ratio $ratio"; fi
		case $full$c in 1* | allreduce | broadcast | alltoall) ;; *) continue ;; esac
		right "$name $c in three phases" "$topology" "${options[@]}" -a threephase
	done
done < <(jobs)

# Larger ones. An allreduce over 2048 ranks is executed by `make bench`, for it takes gigabytes.
for n in 2 ${full:+4 16}; do
	"$blinkc" topology --servers $n topologies/dgx-a100.xml --format cluster -o "$work/boxes.json" || not_ok "$n x DGX A100"
	for c in allreduce allgather broadcast; do
		right "$n x DGX A100 $c" "$work/boxes.json" -c $c
	done
done
printf '{ "format": "blink-topology", "version": 1, "name": "dies", "nodes": [{ "id": "s", "file": "mi250.xml", "count": 2 }], "fabrics": [{}] }' >"$work/dies.json"
for c in allreduce allgather; do
	right "8 + 8 dies of MI250 $c" "$work/dies.json" -c $c -g 0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23
done
if [ "$full" ]; then
	right "2048 GPUs of ABCI broadcast" topologies/abci-2048.xml -c broadcast
	expect "2048 GPUs of ABCI allreduce" "$blinkc" -q topologies/abci-2048.xml -o "$work/s.json"
	expect "2048 GPUs of ABCI allreduce, checked" "$blinkc" check -q "$work/s.json"
fi
