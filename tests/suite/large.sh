# Large schedules: read and replayed in memory that grows with them, and refused at the right place where one thing is
# wrong. Files that would take long to judge, if a tree cost more than it has edges.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# right NAME FILE
right() { expect "$1: replayed" "$blinkc" check -q "$2"; }

# The generator, by a reader that is no relation.
for request in "allgather 3 4" "allreduce 2 5" "alltoall 3 2"; do
	# shellcheck disable=SC2086 # words
	oracle boxes $request >"$work/small.json"
	expect "$request: replay.py" oracle replay "$work/small.json"
	right "$request" "$work/small.json"
done
oracle boxes allgather 32 8 >"$work/allgather.json"
right "allgather of 256 ranks" "$work/allgather.json"
if [ "$full" ]; then
	oracle boxes alltoall 32 8 >"$work/alltoall.json"
	right "alltoall of 256 ranks, 65280 trees" "$work/alltoall.json"
	oracle boxes allreduce 128 8 >"$work/large.json"
	ranks=1024 mib=400	# the file itself is 51 MiB; it has 2 million edges and 12 million values
else
	oracle boxes allreduce 64 8 >"$work/large.json"
	ranks=512 mib=130	# 12 MiB
fi
if nm -D "$blinkc" | grep -q '__[at]san_init'; then
	skip "$ranks ranks in little memory: this build has a sanitizer"
else
	expect "allreduce of $ranks ranks in $mib MiB" bash \
		-c "ulimit -v $((mib << 10)) && '$blinkc' check -q '$work/large.json'"
fi
rm "$work/large.json"

# ---- one thing wrong in many ----

oracle boxes allreduce 16 8 >"$work/right.json"
oracle snippet - "$work" <<'END' >"$work/cases"
import json, sys
with open(f"{sys.argv[1]}/right.json") as file:
    text = file.read()
right = json.loads(text)
last = len(right["trees"]) - 1


def case(name, code, message, change):
    wrong = json.loads(text)
    change(wrong, wrong["trees"][last])
    with open(f"{sys.argv[1]}/{name}.json", "w") as file:
        file.write(json.dumps(wrong))
    print(name, code, message, sep="\t")


def drop(phase, at):
    return lambda s, t: t[phase].pop(at)


up, down = (len(right["trees"][last][phase]) - 1 for phase in ("up", "down"))
case("up-less", 6, f"trees[{last}]: rank 0 ends with 0 times the data of rank 126: want 1", drop("up", 0))
case("down-less", 6, f"trees[{last}]: rank 126 ends with 0 times the data of rank 0: want 1", drop("down", down))
case("up-twice", 3, f"trees[{last}].up[0]: rank 126: sends twice", lambda s, t: t["up"].insert(0, t["up"][0]))
case("link-none", 3, f"trees[{last}].down[{down}][2][1]: 512: want a whole number, 0 to 511",
     lambda s, t: t["down"][-1][2].__setitem__(1, 512))
case("link-other", 3, f"trees[{last}].up[{up}]: link 0 leaves gpu0: want one that leaves",
     lambda s, t: t["up"][-1][2].__setitem__(0, 0))
case("edge-short", 3, f"trees[{last}].up[3]: not an edge", lambda s, t: t["up"][3].pop())
case("edge-text", 3, f'trees[{last}].up[3][0]: "x": want a whole number', lambda s, t: t["up"][3].__setitem__(0, "x"))
case("tree-number", 3, f"trees[{last}]: not an object: want a tree", lambda s, t: s["trees"].__setitem__(last, 7))
case("tree-gone", 6, f"trees: no segment at {last}/{last + 1} of the buffer serves rank 0",
     lambda s, t: s["trees"].pop())
case("tree-again", 6, f"trees[{last + 1}].segment: starts at {last}/{last + 1}: rank 0 wants 1/1 next",
     lambda s, t: s["trees"].append(t))
case("served-not", 6, f"trees: no segment at {last}/{last + 1} of the buffer serves rank 5",
     lambda s, t: t.__setitem__("to", [r for r in range(last + 1) if r != 5]))
case("served-twice", 6, f"trees[{last + 1}].segment: starts at {last}/{last + 1}: rank 5 wants 1/1 next",
     lambda s, t: s["trees"].append({**t, "to": [5]}))
case("rate", 6, "rate.achieved: 13.5: the trees achieve 106.666666666667 GB/s",
     lambda s, t: s["rate"].__setitem__("achieved", 13.5))
END
while IFS=$'\t' read -r name code message; do
	"$blinkc" check "$work/$name.json" >"$work/out" 2>"$work/err"
	got=$?
	if [ $got = "$code" ] && grep -qF -e "$work/$name.json: $message" "$work/err"; then ok "$name"; else
		not_ok "$name: exit $got, want $code and $message: $(head -c 300 "$work/err")"
	fi
done <"$work/cases"
[ "$(wc -l <"$work/cases")" = 13 ] || not_ok "only $(wc -l <"$work/cases") cases"

# ---- made to take long ----

oracle snippet - "$work" "$full" <<'END'
import json, sys
def put(name, n, collective, trees):
    links = [{"from": u, "to": v, "class": "nvlink", "capacity": 1, "latency": 0}
             for r in range(n) for u, v in ((r, "sw"), ("sw", r))]
    doc = {"format": "blink-schedule", "version": 1, "generator": {"name": "hand", "version": "1", "options": {}},
           "topology": {"name": "star", "digest": "sha256:0", "links": links,
                        "ranks": [{"gpu": f"g{r}", "node": "n"} for r in range(n)]},
           "collective": collective, "root": None, "algorithm": "hand",
           "rate": {"achieved": 1, "bound": 2, "certificate": {"kind": "cut", "side": [0]}}, "trees": trees}
    with open(f"{sys.argv[1]}/{name}.json", "w") as file:
        file.write(json.dumps(doc))
def edge(s, d):
    return [s, d, [2 * s, 2 * d + 1]]
N, MANY = 4096, 524288
# Each block, in 128 parts, is where it belongs; no other rank gets it.
segments = [[f"{2 * t + 1}/{2 * MANY}", f"1/{2 * MANY}"] for t in range(MANY)]
own = [{"segment": segment, "root": t // 128, "to": [t // 128]} for t, segment in enumerate(segments)]
put("own", N, "allgather", own)
put("empty", N, "allreduce", [{"segment": segment, "root": 0} for segment in segments])
# Sums of sums: after 64 rounds 2^64 times the data of rank 0, if anyone counted.
put("doublings", 2, "allreduce", [{"segment": ["0/1", "1/1"], "root": 0, "up": [edge(0, 1), edge(1, 0)] * 2000}])
put("to-all", N, "allgather", [{"segment": segment, "root": 0, "to": list(range(N)),
                                "down": [edge(0, r) for r in range(1, N)]} for segment in segments[:16]])
# More values than are ever in memory at once.
if sys.argv[2]:
    put("values", 2, "allreduce", [{"segment": ["0/1", "1/1"], "root": 0, "other": [0] * 1024}] * 17000)
put("too-many", 2, "allreduce", [0] * (MANY + 1))
END
expect_exit "524288 trees that move nothing" 6 "$blinkc" check "$work/own.json"
expect "524288 trees that move nothing: what it says" grep -qF \
	"trees[0].segment: starts at 1/1048576: rank 0 wants 0/1 next" "$work/err"
expect_exit "524288 trees that reduce nothing" 6 "$blinkc" check "$work/empty.json"
expect "524288 trees that reduce nothing: what it says" grep -qF \
	"trees[0]: rank 0 ends with 0 times the data of rank 1: want 1" "$work/err"
expect_exit "sums of sums" 3 "$blinkc" check "$work/doublings.json"
expect "sums of sums: what it says" grep -qF "trees[0].up[3998]: rank 0: sends twice" "$work/err"
expect_exit "all ranks in to" 6 "$blinkc" check "$work/to-all.json"
expect "all ranks in to: what it says" grep -qF "trees[0].segment: starts at 1/1048576" "$work/err"
if [ "$full" ]; then
	expect_exit "17 million values" 6 "$blinkc" check "$work/values.json"
	expect "17 million values: what it says" grep -qF \
		"trees[0]: rank 0 ends with 0 times the data of rank 1: want 1" "$work/err"
fi
expect_exit "524289 trees" 4 "$blinkc" check "$work/too-many.json"
expect "524289 trees: what it says" grep -qF "trees: 524289 entries: want at most 524288" "$work/err"
