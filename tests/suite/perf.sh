# Jobs of blink-perf: processes and threads, on the host and on virtual GPUs, what programs read of them, and what
# happens when a rank dies.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

small="-b 1K -e 64K -f 8 -n 2 -w 1"

# job NAME ROWS OPTION...: runs, and every element is right
job() {
	local name=$1 rows=$2
	shift 2
	# shellcheck disable=SC2086 # a list of words
	if timeout ${limit:-120} "$perf" $small "$@" >"$work/text" 2>"$work/err" &&
		awk -v rows="$rows" '!/^#/ { n++; right += $9 == "0" && $13 == "0" && $6 > 0 && $10 > 0 }
			END { exit n != rows || right != n }' "$work/text" &&
		grep -q '^# Out of bounds values : 0 OK' "$work/text"; then
		ok "$name"
	else
		not_ok "$name: exit $?: $(tail -3 "$work/text" "$work/err" | tr '\n' ' ')"
	fi
}

job "3 processes" 3 --ranks 3
expect "the job is named" grep -qx '# job          3 ranks, each a process' "$work/text"
expect "so is a schedule" grep -q '^# schedule     .* over 3 ranks, built in' "$work/text"
expect "2 processes, SIGCHLD ignored" timeout 60 env --ignore-signal=CHLD "$perf" --ranks 2 -b 4 -e 4 -n 1 -w 0
job "3 threads" 3 --ranks 3 --threads-as-ranks
job "a job of one" 3 --ranks 1 --threads-as-ranks
for c in $([ "$full" ] && echo broadcast gather scatter allgather alltoall) reduce reducescatter; do
	job "3 threads, $c" 3 --ranks 3 --threads-as-ranks --collective "$c"
done
job "a root" 3 --ranks 3 --collective gather --root 2
small="-b 64K -e 1M -f 16 -n 2 -w 0" job "3 threads, chunks are searched" 2 --ranks 3 --threads-as-ranks --miad
# chosen NAME: the last search chose a size that it had tried, and none that was slower than half of another
chosen() {
	local why
	if why=$(awk '$2 != "miad" || $3 != 1048576 { next }
		$NF == "chosen" { last = $5 $6; ends++; next }
		{ n++; time[$5 $6] = $7 == "size" ? $8 : $7; if (!least || time[$5 $6] < least) least = time[$5 $6] }
		END {
			print n, ends, last, time[last], least
			exit n < 3 || ends != 1 || time[last] * 0.97 > least
		}' "$work/text"); then
		ok "$1"
	else
		not_ok "$1: $why: $(grep miad "$work/text")"
	fi
}
chosen "the fastest is chosen"
# More ranks on a server than a queue of a Unix socket had room for, which was 64; 512 take 30 s of CPU time.
for n in 80 $([ "$full" ] && echo 200 512); do
	limit=500 small="-b 1K -e 1K -n 1 -w 0" job "$n processes" 1 --ranks "$n"
done
job "another type and operator" 3 --ranks 3 --threads-as-ranks -d bfloat16 -o prod
"$blinkc" batch -q topologies/dgx1v.xml --sizes 3 --collectives broadcast -o "$work/jobs" || not_ok "batch: exit $?"
job "GPUs of an index, and the id of one" 3 "$work/jobs" --ranks 3 -g 6,4,5 --collective broadcast --root gpu5
expect "the root's rank" grep -q '^# collective   broadcast over 3 ranks, root 2, of GPUs 6,4,5' "$work/text"
expect "the index's schedule" grep -q "^# schedule     .*jobs/broadcast/.*\.json: " "$work/text"

# ---- for programs ----

cat >"$work/columns.py" <<'END'
"""The rows of the table, of CSV and of JSON have the same columns, and what does not depend on time is the same."""
import csv, json, sys
text, rows, document = sys.argv[1], list(csv.DictReader(open(sys.argv[2]))), json.load(open(sys.argv[3]))
table = [line.split() for line in open(text) if not line.startswith("#")]
side = ["time_us", "algbw_GBps", "busbw_GBps", "wrong"]
places = ["out_of_place", "in_place"]
same = ["size_B", "count_elements", "type", "redop", "root"]
def near(rate, shown):
    """But for how the two were rounded: rates have two to four decimals."""
    return abs(rate - shown) <= max(0.02 * rate, 0.0002)
assert len(table) == len(rows) == len(document["rows"]) > 1, "rows"
assert list(rows[0]) == same + [f"{p}_{s}" for p in places for s in side] + ["schedule"], list(rows[0])
for line, row, entry in zip(table, rows, document["rows"]):
    assert line[:5] == [row[k] for k in same] == [str(entry[k]) for k in same], (line, row, entry)
    assert row["schedule"] == entry["schedule"] and row["schedule"], entry["schedule"]
    factor = float(sys.argv[4])
    for i, place in enumerate(places):
        numbers = [entry[place][s] for s in side[:3]]
        for time, algbw, busbw in (numbers, [float(row[f"{place}_{s}"]) for s in side[:3]]):
            assert time > 0 and near(entry["size_B"] / time / 1e3, algbw), (time, algbw)
            assert near(algbw * factor, busbw), (busbw, algbw)
        wrong = line[8 + 4 * i]
        assert (wrong, row[f"{place}_wrong"], entry[place]["wrong"]) in (("0", "0", 0), ("N/A", "", None)), wrong
for key in ("machine", "version", "backend"):
    assert document[key], key
print(document["backend"], document["ranks"], document["ranks_as"], document["collective"], document["wrong"])
END
# columns NAME WANTED FACTOR OPTION...
columns() {
	local name=$1 want=$2 factor=$3 f got
	shift 3
	for f in text csv json; do
		# A locale with decimal commas, where there is one, changes nothing.
		LC_ALL=de_DE.UTF-8 timeout 120 "$perf" "$@" --format $f >"$work/$f" 2>"$work/err" ||
			not_ok "$name, $f: exit $?: $(cat "$work/err")"
	done
	got=$(python3 "$work/columns.py" "$work/text" "$work/csv" "$work/json" "$factor" 2>&1)
	if [ "$got" = "$want" ]; then ok "$name"; else not_ok "$name: ${got: -300}"; fi
}
large="-b 64K -e 128K -i 64K -n 2 -w 0"
# shellcheck disable=SC2086 # a list of words
columns "formats of a job" "host 3 processes allreduce 0" 1.33333 --ranks 3 $large
# shellcheck disable=SC2086 # a list of words
columns "formats without a check" "host 4 threads reducescatter None" 0.75 --ranks 4 --threads-as-ranks --collective \
	reducescatter -c 0 $large
"$blinkc" -q topologies/dgx1v.xml -g 0-2 -c broadcast -o "$work/s.json" || not_ok "broadcast: exit $?"
# shellcheck disable=SC2086 # a list of words
columns "formats of a schedule file" "host 3 None broadcast 0" 1 "$work/s.json" $large

# ---- failures ----

# refuses NAME TEXT OPTION...: one line, and exit status 2
refuses() {
	local name=$1 text=$2 code
	shift 2
	timeout 60 "$perf" "$@" >"$work/out" 2>"$work/err"
	code=$?
	if [ $code = 2 ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -qF -- "$text" "$work/err"; then ok "$name"; else
		not_ok "$name: exit $code: $(head -3 "$work/err")"
	fi
}
refuses "no ranks" "--ranks: 0: want N" --ranks 0
refuses "a graph on the host" "--graph: backend host: want cuda" --ranks 2 --graph 3
refuses "a graph of no job" "--graph: is of a job: want --ranks, too" --graph 3 "$work/s.json"
refuses "an option that jobs do not have" "--threads: a job has no such option" --ranks 2 --threads 1
refuses "another backend" "--backend: opencl: want " --ranks 2 --backend opencl
refuses "another format" "--format: xml: want " --format xml "$work/s.json"
refuses "a root that is no rank" "--root: 2: want a rank, 0 to 1" --ranks 2 --root 2
refuses "too few GPUs" "--gpus: 2 GPUs: want one for each of the 3 ranks" --ranks 3 -g 0,1 "$work/jobs"
refuses "GPUs of no machine" "--gpus: of no machine" --ranks 2 -g 0,1
BLINK_BACKEND=opencl refuses "a bad environment" 'rank 0: backend: "opencl"' --ranks 2
expect_exit "no such schedule" 8 timeout 60 "$perf" --ranks 3 "$work/nowhere"
expect "one line says so" [ "$(grep -c "nowhere: No such file" "$work/err")$(wc -l <"$work/err")" = 11 ]
if [ -e /dev/full ]; then
	code=0
	# shellcheck disable=SC2086 # a list of words
	timeout 60 "$perf" --ranks 2 $small >/dev/full 2>"$work/err" || code=$?
	expect "standard output is full: exit $code" [ $code = 8 ]
fi

# dies NAME OPTION...: the second process of a job is killed; the others end, and a line says which it was
dies() {
	local name=$1 pid victim='' code=0 tries=0
	shift
	# What ran before has left its own, which the new process empties only once it has begun.
	rm -f "$work/out"
	"$perf" -b 4K -e 4K -n 100000000 -w 0 "$@" >"$work/out" 2>"$work/err" &
	pid=$!
	until grep -qs '#wrong' "$work/out" || [ $tries = 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	read -r _ victim _ <"/proc/$pid/task/$pid/children"
	# Without ranks it ends at once, and they with it.
	kill -9 "${victim:-$pid}"
	wait "$pid" || code=$?
	if [ $code = 8 ] && [ "$(cat "$work/err")" = "blink-perf: rank 1: signal 9 ended it: Killed" ]; then
		ok "$name"
	else
		not_ok "$name: exit $code: $(head -3 "$work/err")"
	fi
}
dies "a process dies" --ranks 3

# ---- GPUs ----

if ! have_kernels; then
	skip "no kernels were built: want nvcc or clang"
	exit 0
fi
mkdir "$work/driver"
ln -s "$build/tests/virtual_gpu/libcuda.so.1" "$work/driver/"
export LD_LIBRARY_PATH=$work/driver VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so
export VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml
small="-b 1K -e 8K -f 8 -n 2 -w 1"
job "3 GPUs, processes" 2 --ranks 3 --backend cuda
expect "the backend is named" grep -q '^# backend      cuda, rank 0 on Virtual ' "$work/text"
BLINK_BACKEND=cuda job "3 GPUs, threads, graphs" 2 --ranks 3 --threads-as-ranks --graph 3
expect "graphs are named" grep -qx '# graph        of 3 calls, replayed in each iteration' "$work/text"
job "3 GPUs, processes, graphs" 2 --ranks 3 --backend cuda --graph 2 --collective alltoall
# shellcheck disable=SC2086 # a list of words
columns "formats of a job on GPUs" "cuda 2 processes allreduce 0" 1 --ranks 2 --backend cuda -b 16K \
	-e 32K -i 16K -n 1 -w 0
BLINK_DEVICE_MAP=0,1 expect_exit "a rank without a GPU" 2 timeout 60 "$perf" --ranks 3 --threads-as-ranks --backend cuda
expect "one line names it" [ "$(grep -c '^blink-perf: rank 2: BLINK_DEVICE_MAP: ' "$work/err")$(wc \
	-l <"$work/err")" = 11 ]
if [ "$full" ]; then
	for graph in "" "--graph 2"; do
		# shellcheck disable=SC2086 # a list of words
		VIRTUAL_GPU_SCALE=300 small="-b 64K -e 1M -f 16 -n 2 -w 0" job \
			"4 GPUs, chunks are searched${graph:+, graphs}" 2 --ranks 4 --backend cuda --miad $graph
		chosen "the fastest is chosen${graph:+, graphs}"
	done
	dies "a process with a GPU dies" --ranks 3 --backend cuda
	dies "a process with a GPU dies, graphs" --ranks 3 --backend cuda --graph 2
fi
