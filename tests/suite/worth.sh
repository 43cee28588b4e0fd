# What a plan is worth: the baselines beside its rate, against a linear program over all rings; the table of
# docs/results.md; times with latency, by hand; the summary as JSON.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# judge NAME MACHINE DIR [ARGUMENT...]: baselines of a batch
judge() {
	local name=$1 machine=$2 dir=$3 line
	shift 3
	oracle worth rings "$machine" "$dir" "$@" >"$work/judged" 2>"$work/err"
	case $? in
	77) skip "$name: no python3-scipy" ;;
	0) while IFS= read -r line; do case $line in "ok "*) ok "$name: ${line#ok }" ;; *) not_ok \
		"$name: ${line#not ok }" ;; esac; done <"$work/judged" ;;
	*) not_ok "$name: $(tail -1 "$work/err")" ;;
	esac
}

# ---- all classes, and the table ----

# Over NVLink, 46 classes of 3 to 8 GPUs of a DGX-1V and 14 of a DGX-1P; with NCCL's rate of a link, and with the
# nominal one. All eight GPUs take as long as all other sets; the table has them.
most=()
[ "$full" ] || most=(--sizes 2-7)
for machine in dgx1v:20 dgx1p:18; do
	IFS=: read -r name rate <<<"$machine"
	expect "$name: batch" "$blinkc" batch -q "topologies/$name.xml" "${most[@]}" --distinct --collectives \
		broadcast,allreduce,allgather --roots best -o "$work/$name"
	judge "$name" "topologies/$name.xml" "$work/$name" --most $([ "$full" ] && echo 8 || echo 6)
	sed "/name=\"nvlink\"/s/capacity=\"[0-9]*\"/capacity=\"$rate\"/" "topologies/$name.xml" >"$work/$name-$rate.xml"
	for file in "topologies/$name.xml" "$work/$name-$rate.xml"; do
		# Who has one rate has the other by proportion.
		[ "$full" ] || [ "$file" = "topologies/$name.xml" ] || continue
		rm -rf "$work/table"
		"$blinkc" batch -q "$file" -l nvlink --sizes 3-8 --distinct --collectives broadcast,allreduce --roots \
			best -o "$work/table" || not_ok "$file: exit $?"
		capacity=$(sed -n '/ class="nvlink"/d; s/.*<class name="nvlink" capacity="\([0-9]*\)".*/\1/p' "$file")
		oracle worth table "$name, $capacity GB/s" "$work/table" >"$work/rows"
		[ "$(wc -l <"$work/rows")" = 2 ] || not_ok "$file: $(wc -l <"$work/rows") rows, want 2"
		while IFS= read -r row; do
			if grep -qxF "$row" docs/results.md; then
				ok "table: $row"
			else
				not_ok "docs/results.md has no row $row"
			fi
		done <"$work/rows"
	done
done

# ---- machines of other links ----

for seed in $(seq 1 $([ "$full" ] && echo 40 || echo 3)); do
	oracle worth random "$seed" >"$work/m.json"
	rm -rf "$work/random"
	"$blinkc" batch -q "$work/m.json" --distinct --collectives broadcast --roots best -o "$work/random" ||
		not_ok "random $seed: exit $?"
	judge "random $seed" "$work/m.json" "$work/random"
done

# line NAME TEXT ARGUMENT...: the summary has the line
line() {
	local name=$1 text=$2
	shift 2
	"$blinkc" "$@" -o "$work/s.json" 2>"$work/err" || not_ok "$name: exit $?"
	if grep -qxF "$text" "$work/err"; then
		ok "$name: $text"
	else
		not_ok "$name: no line \"$text\": $(grep -E '^(nccl|baselines|rings)' "$work/err" | tr '\n' '|')"
	fi
}
line "PCIe where NVLink has no ring" "nccl-2.4    6 GB/s by rings over pcie,qpi, as nvlink has none; trees 8.33x" \
	-c broadcast -g 1,4,5,6 topologies/dgx1v.xml
line "through a GPU" "nccl-2.8    50 GB/s by rings over nvlink, some hops through a GPU; trees 1x" -c broadcast \
	-g 1,4,5,6 topologies/dgx1v.xml
line "an NVSwitch" "nccl-2.4    456.338 GB/s by rings over nvlink; trees 1x" topologies/gb200-nvl72.xml
line "PCIe alone" "nccl-2.8    9.14286 GB/s by rings over pcie,qpi; trees 1.5x" topologies/pcie-8gpu.xml
line "two servers" "nccl-2.4    25.6 GB/s by rings over nvlink,pcie,net; trees 1.88x" topologies/two-dgx1v.xml
line "16 dies" "nccl-2.4    300 GB/s by rings over xgmi; trees 1x" -c broadcast --routes any topologies/mi250.xml
line "not proven" "baselines   none known" topologies/superpod-a100.xml
sed '/class="pcie"/d; /class="qpi"/d' topologies/dgx1v.xml >"$work/no-pcie.xml"
line "no ring at all" "nccl-2.4    no ring" -g 1,4,5,6 "$work/no-pcie.xml"
"$blinkc" -c alltoall -g 1,4,5,6 topologies/dgx1v.xml -o "$work/s.json" 2>"$work/err"
if grep -qE '^(nccl|baselines)' "$work/err"; then not_ok "alltoall has baselines"; else ok "none of an alltoall"; fi

# ---- files ----

# They are in files and indexes, the same bytes every time; who repeats a batch keeps the files.
"$blinkc" -q -g 1,4,5,6 topologies/dgx1v.xml -o "$work/a.json" &&
	"$blinkc" -q -g 1,4,5,6 topologies/dgx1v.xml -o "$work/b.json"
expect "the same bytes" cmp "$work/a.json" "$work/b.json"
"$blinkc" batch topologies/dgx1v.xml "${most[@]}" --distinct --collectives broadcast,allreduce,allgather --roots best \
	-o "$work/dgx1v" 2>"$work/err"
has_kept=$(grep -c '^schedules   .* 0 planned' "$work/err")
[ "$has_kept" = 1 ] && ok "a batch keeps its files" || not_ok "kept: $(grep '^schedules' "$work/err")"
expect "check" "$blinkc" check -q "$work/dgx1v" "$work/dgx1p"
expect "schemas" oracle validate schemas/schedule.schema.json "$work/a.json" "$work/dgx1v/allreduce/"*.json
expect "schema of the index" oracle validate schemas/index.schema.json "$work/dgx1v/index.json"
expect "libblink" "$perf" "$work/a.json" -b 1K -e 1K -n 1 -w 0
# refused CHANGE: by the reader and by the schema
n=0
while IFS= read -r change; do
	n=$((n + 1))
	sed "$change" "$work/a.json" >"$work/wrong.json"
	cmp -s "$work/a.json" "$work/wrong.json" && not_ok "$change: changes nothing"
	expect_exit "file, $change" 3 "$blinkc" check -q "$work/wrong.json"
	if oracle validate schemas/schedule.schema.json "$work/wrong.json" >/dev/null 2>&1; then
		not_ok "$change: the schema takes it"
	fi
done <<'END'
s/"name": "nccl-2.4"/"name": "nccl 2.4"/
s/"name": "nccl-2.4"/"name": "a234567890123456789012345678901x"/
s/"name": "nccl-2.4", //
s/"links": \["pcie", "qpi"\], "rings"/"links": ["pcie", "pcie"], "rings"/
s/"links": \["pcie", "qpi"\], "rings"/"links": ["pci"], "rings"/
s/"links": \["pcie", "qpi"\], "rings"/"links": [], "rings"/
s/"rings": 1,/"rings": 0,/
s/"rings": 1,/"rings": -1,/
s/"through": false/"through": 0/
s/"rate": 4 }/"rate": 0 }/
s/"rate": 4 }/"rate": -4 }/
s/"rate": 4 }/"rate": 1e16 }/
s/"baselines": \[/"baselines": [1,/
END
[ $n = 13 ] || not_ok "wrong files: only $n"
grep -v '"name": "nccl' "$work/a.json" | sed '/"baselines"/,/\]/d' >"$work/without.json"
expect "a file without them" "$blinkc" check -q "$work/without.json"
sed '0,/"nccl-2.4":[0-9.]*/s//"nccl-2.4":7.5/' "$work/dgx1v/index.json" >"$work/index.json"
cp "$work/index.json" "$work/dgx1v/index.json"
expect_exit "an index of other baselines" 3 "$blinkc" check -q "$work/dgx1v"
expect "which says so" grep -q 'baselines: not those of the file' "$work/err"

# ---- latency ----

# Most of the time goes to an allreduce over all eight GPUs.
seven=$([ "$full" ] || echo "-g 0-6")

# time_of FILE SIZE: us, as check prints it
time_of() { "$blinkc" check "$1" --size "$2" | awk -v m="$2" '$1 == m { print $2 }'; }
for job in "-c broadcast -g 1,4,5,6" "-c allreduce $seven" "-c reducescatter -g 0,1,2,3" "-c alltoall -g 0,1,4"; do
	# shellcheck disable=SC2086 # words
	"$blinkc" -q $job topologies/dgx1v.xml -o "$work/s.json" || not_ok "$job: exit $?"
	for size in 1 1024 67108864; do
		want=$(oracle worth latency "$work/s.json" $size) got=$(time_of "$work/s.json" $size)
		if [ "$got" = "$want" ]; then
			ok "latency, $job, $size B: $got us"
		else
			not_ok "latency, $job, $size B: $got us, want $want"
		fi
	done
done
# A chain of three GPUs of a DGX-1V, 4 - 0 - 1: an allreduce at GPU 0 goes one hop up and one down, 2 x 3.4 us, and 1000
# B at 25 GB/s take 0.04 us.
"$blinkc" -q -g 0,1,4 topologies/dgx1v.xml -o "$work/s.json"
[ "$(time_of "$work/s.json" 1000)" = 6.84 ] && ok "by hand" ||
	not_ok "by hand: $(time_of "$work/s.json" 1000) us, want 6.84"
sed 's/ latency="[0-9.]*"//' topologies/dgx1v.xml >"$work/timeless.xml"
line "no latency" "latency     none given for nvlink: times are of bytes alone" \
	"$work/timeless.xml" -c reduce --size 1K,2K
line "some latency" "latency     22.8 us along the longest path of the trees; none given for qpi, counted as 0" \
	topologies/dgx1v.xml -l pcie,qpi -g 0,4 --size 1K,2K

# ---- JSON ----

servers=$([ "$full" ] && echo superpod-a100 || echo two-dgx1v)
n=0
while IFS= read -r job; do
	n=$((n + 1))
	# shellcheck disable=SC2086 # words
	"$blinkc" $job --summary json -o "$work/s$n.json" 2>"$work/j$n.json" || not_ok "$job: exit $?"
	[ "$(wc -l <"$work/j$n.json")" = 1 ] || not_ok "$job: $(wc -l <"$work/j$n.json") lines, want 1"
done <<END
topologies/dgx1v.xml $seven
topologies/dgx1v.xml -c broadcast -g 1,4,5,6 --size 1K,1M
topologies/dgx1v.xml --hybrid $seven --size 1M,1G
topologies/dgx1v.xml -a onehop -g 0,1,2
topologies/dgx1v.xml -c alltoall -g 0,1,4
topologies/dgx1p.xml --max-trees 1
topologies/$servers.xml -c broadcast
topologies/dgx1v.xml -g 1,4,6 --relay gpu5
dgx1v -g 0-3 --size 64K
END
expect "schema of summaries" oracle validate schemas/summary.schema.json "$work"/j?.json
"$blinkc" check "$work"/s[1-6].json --size 1K --summary json >"$work/lines" || not_ok "check: exit $?"
split -l 1 "$work/lines" "$work/line-"
[ "$(wc -l <"$work/lines")" = 6 ] || not_ok "check: $(wc -l <"$work/lines") lines, want 6"
expect "schema of what check prints" oracle validate schemas/summary.schema.json "$work"/line-*
expect "idle links and relays" "$python" -B - "$work/j2.json" "$work/j8.json" <<'END'
import json, sys
with_idle, with_relays = (json.load(open(path)) for path in sys.argv[1:])
idle, relays = with_idle["idle"], with_relays["relays"]
assert idle["links"] == ["pcie", "qpi"] and idle["hybrid_gb_per_s"] == with_idle["rate_gb_per_s"] + 6, idle
assert relays == {"gpus": ["gpu5"], "rate_without_gb_per_s": 6} and "relays" not in with_idle, relays
END
# The text and the JSON say the same.
"$blinkc" topologies/dgx1v.xml -c broadcast -g 1,4,5,6 --size 1K,1M -o "$work/s.json" 2>"$work/text"
expect "the text says the same" "$python" -B - "$work/j2.json" "$work/text" <<'END'
import json, sys
s, text = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
lines = [f"trees       {s['trees']}, depth {s['depth']}\n", f"rate        {s['rate_gb_per_s']:.6g} GB/s",
    f"bound       {s['bound_gb_per_s']:.6g} GB/s", f"ratio       {s['ratio']:.3f}\n",
    f"latency     {s['latency_us'][0]:.6g} us"]
lines += [f"{b['name']:11} {b['rate_gb_per_s']:.6g} GB/s by rings over {','.join(b['links'])}" for b in s["baselines"]]
lines += [f"trees {b['speedup']:.3g}x\n" for b in s["baselines"]]
lines += [f"{z['bytes']:12}  {z['time_us']:10.6g}  {z['rate_gb_per_s']:8.6g}\n" for z in s["sizes"]]
assert len(s["baselines"]) == 2 and len(s["sizes"]) == 2
sys.exit("\n".join(line for line in lines if line not in text) or 0)
END
expect_exit "another kind" 2 "$blinkc" topologies/dgx1v.xml --summary yaml -o "$work/s.json"
"$blinkc" -q topologies/dgx1v.xml -c reduce --summary json -o "$work/s.json" 2>"$work/err"
[ -s "$work/err" ] && not_ok "-q prints a summary" || ok "-q prints none"
