# blinkc batch --failures 1: an index for each single loss, which has the jobs and rates of the edited topology file
# (tests/oracle/losses.py), and which show, check, diff and libblink find; isomorphic jobs of all machines are planned
# once.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

v=topologies/dgx1v.xml
sizes=$([ "$full" ] && echo 2-8 || echo 2-3)
every=8
[ ! "$full" ] || every=1

expect "DGX-1V, $sizes GPUs" "$blinkc" batch $v --failures 1 -n "$sizes" --collectives allreduce,broadcast -o "$work/f"
has "how many losses" '^failures    57 single losses: [0-9]+ schedules more; 8 of them change no job$'
n=$(sed -n 's/^schedules   \([0-9]*\) of .*/\1/p' "$work/out")
expect "their jobs and rates" oracle losses "$blinkc" index $v "$work/f" --every "$every"
expect "DGX-1P: 3 GPUs" "$blinkc" batch -q topologies/dgx1p.xml --failures 1 -n 3 -o "$work/p"
expect "DGX-1P: jobs and rates" oracle losses "$blinkc" index topologies/dgx1p.xml "$work/p" --every 5
expect "all are valid, and fit the machine" "$blinkc" check --topology $v "$work/f"
has "with their indexes" "^$((n + 50)) files: $((n + 50)) valid, 0 invalid"
mapfile -t files < <(find "$work/f" -name '*without*' -path '*/allreduce/*' | sort | awk 'NR % 9 == 1')
expect "${#files[@]} files are replayed" oracle replay "${files[@]}"
mapfile -t indexes < <(printf '%s\n' "$work/f"/index.without*.json |
	awk -v every="$((every * 3 - 2))" 'NR % every == 1 || every == 1')
expect "the schema of ${#indexes[@]} of its indexes" oracle validate schemas/index.schema.json \
	"$work/f/index.json" "${indexes[@]}"
expect "the same batch again" "$blinkc" batch $v --failures 1 -n "$sizes" --collectives allreduce,broadcast -o "$work/f"
has "keeps all" "^schedules   $n of $n: 0 planned, $n kept$"
"$blinkc" batch -q $v -n "$sizes" --collectives allreduce,broadcast -o "$work/plain"
oracle snippet - "$work/f/index.json" "$work/plain/index.json" >"$work/out" 2>&1 <<-'END'
	import json, sys
	f, plain = (json.load(open(path)) for path in sys.argv[1:])
	assert len(f.pop("changes")) == 57 and f == plain
	END
if [ $? = 0 ]; then
	ok "without the changes, the index is that of a plain batch"
else
	not_ok "the index: $(tail -1 "$work/out")"
fi
expect "diff: no difference" "$blinkc" diff "$work/f" "$work/f"

# ---- found ----

expect "show" "$blinkc" show "$work/f" -g 4,0,3 --without gpu3-gpu0
has "another schedule" '^file        .*/allreduce/0,2,4\.without-gpu0-gpu2\.json, with the GPUs of this job'
has "of what is left" '^rate        12 GB/s'
expect "show: by the digest" "$blinkc" show "$work/f" -g 0,3 --without \
	"$(oracle snippet --field "$work/f/index.json" \
		'[c["digest"] for c in d["changes"] if c["without"] == "gpu0-gpu3:1"][0]')"
has "one link is left" '^rate        25 GB/s'
expect "show: a loss that changes no job" "$blinkc" show "$work/f" -g 0,3 --without mlx5_0
expect_exit "show: a GPU that is lost" 3 "$blinkc" show "$work/f" -g 0,3 --without gpu3
expect_exit "show: no such loss" 3 "$blinkc" show "$work/f" -g 0,3 --without gpu0-gpu5
expect_exit "show: of an index without losses" 3 "$blinkc" show "$work/plain" -g 0,3 --without gpu0-gpu3
expect_exit "show: of a file" 2 "$blinkc" show "$work/f/allreduce/0,1.json" --without gpu0-gpu3

# right OPTIONS...: libblink finds the job, runs it, and no element is wrong
right() { "$perf" "$work/f" "$@" -b 1K -e 48K -i 47K -n 1 -w 0 >"$work/log" 2>&1 &&
	grep -q '^# Out of bounds values : 0 OK' "$work/log"; }
expect "libblink: without a link" right -g 4,0,3 --without gpu3-gpu0
expect "libblink: without one of two" right -g 0,3 --without gpu3-gpu0:1
expect "libblink: a broadcast without a switch" right -g 6,2,3 --collective broadcast -r 2 --without plx1
expect "libblink: a loss that changes no job" right -g 6,2,3 --without mlx5_0
expect_exit "libblink: no such loss" 5 "$perf" "$work/f" -g 0,1 --without gpu0-gpu5
expect_exit "libblink: a GPU that is lost" 5 "$perf" "$work/f" -g 0,1 --without gpu1
mv "$work/f/index.without-gpu0-gpu3.json" "$work/kept"
expect_exit "libblink: an index that is gone" 8 "$perf" "$work/f" -g 0,3 --without gpu0-gpu3
cp "$work/f/index.without-gpu0-gpu4.json" "$work/f/index.without-gpu0-gpu3.json"
expect_exit "libblink: the index of another loss" 3 "$perf" "$work/f" -g 0,3 --without gpu0-gpu3
expect_exit "show: the index of another loss" 3 "$blinkc" show "$work/f" -g 0,3 --without gpu0-gpu3
oracle snippet - "$work/kept" >"$work/f/index.without-gpu0-gpu3.json" <<-'END'
	import json, sys
	index = json.load(open(sys.argv[1]))
	index["topology"]["isomorphic"] = []
	print(json.dumps(index))
	END
expect_exit "libblink: a file for a machine that the index does not name" 3 "$perf" "$work/f" -g 0,1 --without gpu0-gpu3
"$blinkc" check -q "$work/f" >"$work/out" 2>&1
got=$?
has "check: likewise, exit $got" \
	'/index.without-gpu0-gpu3.json: allreduce/0,1.json: topology.digest: sha256:.*: the file has sha256:'

# ---- the rest ----

expect "a machine that has lost a link from the start" "$blinkc" batch -q $v --without gpu0-gpu3 -n 2-3 -o "$work/left"
expect "it fits" "$blinkc" check -q --topology $v "$work/left"
expect "libblink finds its jobs" "$perf" "$work/left" -g 0,3 -b 1K -e 1K -n 1
expect_exit "--failures: another number" 2 "$blinkc" batch $v --failures 2 -o "$work/s"
expect_exit "--failures with --without" 2 "$blinkc" batch $v --failures 1 --without gpu0 -o "$work/s"
expect_exit "--failures with --distinct" 2 "$blinkc" batch $v --failures 1 --distinct -o "$work/s"
printf '0,1\n2,3\n' >"$work/lists"
expect "ids with a slash" "$blinkc" batch -q topologies/two-dgx1v.xml --failures 1 -g "$work/lists" -o "$work/two"
expect "names of files without it" "$blinkc" show "$work/two" -g 2,3 --without s0/gpu2-s0/gpu3:1
has "found" '/allreduce/0,1\.json, with|^rate        25 GB/s'
