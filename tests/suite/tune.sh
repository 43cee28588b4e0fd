# blinkc tune: ranges of sizes without gaps, each with what `blinkc --size` chooses; the same bytes by any number of
# processes; libblink takes other schedules for other sizes; messages.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

v=topologies/dgx1v.xml

# ---- the index ----

echo 1,4,5,6,7 >"$work/five"
"$blinkc" tune -q $v -g "$work/five" --collectives allreduce,broadcast --roots canonical --size \
	1K-16M -o "$work/five.d" -j 1
"$blinkc" tune -q $v -g "$work/five" --collectives allreduce,broadcast --roots canonical --size 1K-16M \
	-o "$work/again.d" -j 2
expect "the same bytes, and no other files" diff -r "$work/five.d" "$work/again.d"
expect "check" "$blinkc" check --topology $v "$work/five.d"
expect "ranges, and what --size chooses in them" oracle tuned "$blinkc" $v 1,4,5,6,7 "$work/five.d" \
	1024,16384,262144,262145,1048576,16777216
"$blinkc" tune $v -g "$work/five" --collectives allreduce --size 1K,16M -o "$work/two.d" 2>"$work/out"
is "a line for each range" "$(grep -c '^allreduce/1,4-7 ' "$work/out")" \
	"$(grep -o '"bytes"' "$work/two.d/index.json" | wc -l)"
"$blinkc" tune -q $v -g "$work/five" --collectives allreduce --size 1K -o "$work/one.d"
is "one size: one range" "$(sed -n 's/.*"bytes": *\(\[[^]]*\]\).*/\1/p' "$work/one.d/index.json")" \
	"[0,9007199254740992]"
"$blinkc" tune -q $v -g "$work/five" --collectives allreduce --executor copy --size 1K-16M -o "$work/copy.d"
! cmp -s "$work/five.d/index.json" "$work/copy.d/index.json" && ok "copy engines have other ranges" ||
	not_ok "copy engines have other ranges: the same index"

# ---- libblink obeys it ----

"$blinkc" tune -q $v --collectives allgather --size 1K-16M -o "$work/eight.d"
timeout 100 "$perf" --ranks 8 --threads-as-ranks --collective allgather -b 16K -e 8M -f 512 -n 1 -w 0 \
	"$work/eight.d/index.json" >"$work/out" 2>&1
is "a job of the host backend: right results" "$(grep -c 'Out of bounds values : 0 OK' "$work/out")" 1
small=$(sed -n '/^# schedule /h; /^ *16384 /{g;s/.*allgather/allgather/;s/: .*//;p}' "$work/out")
large=$(sed -n '/^# schedule /h; /^ *8388608 /{g;s/.*allgather/allgather/;s/: .*//;p}' "$work/out")
is "a small and a large call: the schedules of their ranges" "$small $large" \
	"$(oracle tuned "$blinkc" --files "$work/eight.d" 16384,8388608)"
[ "$small" != "$large" ] && ok "which differ" || not_ok "which differ: $small and $large"

# ---- all of a DGX-1V ----

if [ "$full" ]; then
	start=$({ TIMEFORMAT=%U; time "$blinkc" tune -q $v -o "$work/all.d" -j 1; } 2>&1)
	awk -v t="$start" 'BEGIN { exit !(t < 15) }' && ok "all collectives, sizes and roots: $start s of CPU time" ||
		not_ok "all collectives, sizes and roots: $start s, want 15"
	expect "check: all" "$blinkc" check --topology $v "$work/all.d"
	expect "ranges: allgather" oracle tuned "$blinkc" $v all "$work/eight.d" 1024,4194304,16777216
	"$blinkc" tune -q topologies/two-dgx1v.xml --collectives allreduce --size 4K,16M --sizes 3 \
		--distinct -o "$work/sets.d"
	expect "sets of a cluster" "$blinkc" check --topology topologies/two-dgx1v.xml "$work/sets.d"
fi

# ---- messages ----

expect_exit "no directory" 2 "$blinkc" tune $v
expect_exit "--size 0" 2 "$blinkc" tune $v --size 0 -o "$work/x"
expect_exit "--size 1Z" 2 "$blinkc" tune $v --size 1Z -o "$work/x"
expect_exit "sizes that descend" 2 "$blinkc" tune $v --size 1M,1K -o "$work/x"
expect_exit "a size that no index has" 2 "$blinkc" tune $v --size 1152921504606846976 -o "$work/x"
expect_exit "an algorithm" 2 "$blinkc" tune $v -a ring -o "$work/x"
expect_exit "limits of trees" 2 "$blinkc" tune $v --max-trees 2 -o "$work/x"
expect_exit "no such executor" 2 "$blinkc" tune $v --executor gpu -o "$work/x"
expect_exit "no such file of parameters" 8 "$blinkc" tune $v --parameters "$work/nowhere" -o "$work/x"
expect_exit "a directory that cannot be" 8 "$blinkc" tune -q $v -o "$work/nowhere/x"
status=0
"$blinkc" tune $v -o "$work/nowhere/x" 2>"$work/err" || status=$?
is "the same, with all that it says" "$status" 8
if grep -q '^tuned' "$work/err"; then not_ok "no plan: none is told of"; else ok "no plan: none is told of"; fi
expect "nothing is written" [ ! -e "$work/x" ]
