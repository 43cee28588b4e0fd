# Machines by hwloc: XML of 1.x, 2.x and 3.x made from published tables, files that libhwloc writes, broken files, and
# the machine that runs this.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# convert NAME VERSION: $work/NAME.VERSION.xml becomes $work/NAME.VERSION.topo.xml, with what is assumed in .err
convert() {
	oracle hwloc write "$1" "$2" "$work/$1.$2.xml" &&
		"$blinkc" convert "$work/$1.$2.xml" -o "$work/$1.$2.topo.xml" 2>"$work/$1.$2.err"
}

# same NAME A B: two files hold the same
same() {
	if cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1: $(diff "$2" "$3" | head -5 | tr '\n' ';')"; fi
}

# links_are NAME CLASS: the links of this class in $work/NAME.topo.xml are the lines of standard input
links_are() {
	sort >"$work/want"
	oracle hwloc links "$work/$1.topo.xml" "$2" | sort >"$work/got"
	same "$1: links of class $2" "$work/want" "$work/got"
}

# assumed NAME TEXT: a note has it
assumed() {
	if grep -q "^assumed     .*$2" "$work/$1.err"; then ok "$1: assumed: $2"; else
		not_ok "$1: no note has: $2: $(cat "$work/$1.err")"; fi
}

machines="dgx1v dgx1p a100-2.9.0 a100-2.9.1 h100 mi300x mi250x mi250x-smi mi250x-4 t4-idle mi60-idle ac922 rtx3090 \
slow-port one-way"
for machine in $machines; do
	for version in 1 2 3; do
		convert $machine $version || not_ok "$machine, XML $version.x: $(cat "$work/$machine.$version.err")"
	done
	for version in 2 3; do
		"$blinkc" convert -q "$work/$machine.$version.xml" --format canonical -o "$work/$version.canonical"
	done
	same "$machine: XML 2.x and 3.x are one machine" "$work/2.canonical" "$work/3.canonical"
done

# A DGX-1 has the links of ours: NVLink and PCIe, with their rates.
for machine in dgx1v dgx1p; do
	for class in nvlink pcie qpi; do
		oracle hwloc links topologies/$machine.xml $class | sed 's/plx/pcie/g' | links_are $machine.2 $class
	done
done
for machine in dgx1v ${full:+dgx1p}; do
	oracle subsets $machine | if [ "$full" ]; then cat; else grep -v 0,1,2,3,4,5,6,7; fi >"$work/sets"
	for file in topologies/$machine.xml "$work/$machine.2.xml"; do
		"$blinkc" batch -q "$file" -g "$work/sets" --collectives broadcast,allreduce -o "$work/batch" ||
			not_ok "batch of $file: exit $?"
		grep -o '^{"gpus":.*"bound":[^,]*' "$work/batch/index.json" |
			sed 's/"file":"[^"]*"//; s/"digest":"[^"]*"//' |
			sed 's/"schedule":"[^"]*"//' >"$work/rates.$(basename "$(dirname "$file")")"
		"$blinkc" check -q "$work/batch" || not_ok "$file: schedules: exit $?"
		rm -r "$work/batch"
	done
	n=$(wc -l <"$work/sets")
	if [ -s "$work/rates.topologies" ]; then
		same "$machine: $n classes, rates of all jobs as with ours" "$work/rates.topologies" \
			"$work/rates.$(basename "$work")"
	else
		not_ok "$machine: no jobs in the index"
	fi
done

# What hwloc counts: both directions in 2.9.0, ports of switches, rates that are none.
printf 'gpu0 gpu1 12 25\ngpu2 gpu3 12 25\n' | links_are a100-2.9.0.2 nvlink
printf 'gpu0 gpu1 12 25\ngpu2 gpu3 12 25\n' | links_are a100-2.9.1.2 nvlink
assumed a100-2.9.0.2 "NVLinkBandwidth halved"
if grep -q halved "$work/a100-2.9.1.2.err"; then not_ok "hwloc 2.9.1: halved"; else ok "hwloc 2.9.1: not halved"; fi
for g in 0 1 2 3 4 5 6 7; do echo "gpu$g nvswitch 18 25"; done | links_are h100.2 nvlink
assumed h100.2 "4 NVSwitches are one"
for a in 0 1 2 3 4 5 6 7; do for b in 0 1 2 3 4 5 6 7; do [ $a -ge $b ] || echo "gpu$a gpu$b 1 64"; done; done |
	links_are mi300x.2 xgmi
assumed mi300x.2 "XGMIBandwidth is 100000 MB/s for every pair of GPUs, which is no rate"
# Where hwloc only says that there are links: those of a machine that is known, and a rate that says so.
mi250x=("gpu0 gpu1 4 50" "gpu0 gpu2 1 50" "gpu0 gpu6 2 50" "gpu1 gpu3 1 50" "gpu1 gpu5 1 50" "gpu2 gpu3 4 50"
	"gpu2 gpu4 2 50" "gpu3 gpu7 1 50" "gpu4 gpu5 4 50" "gpu4 gpu6 1 50" "gpu5 gpu7 1 50" "gpu6 gpu7 4 50")
printf '%s\n' "${mi250x[@]}" | links_are mi250x.2 xgmi
assumed mi250x.2 "links between the GPUs: none in the file; as in HPE Cray EX235a"
printf '' | links_are mi250x-4.2 xgmi
assumed mi250x-4.2 "no xGMI links: XGMIBandwidth is 100000"
printf '%s\n' "cpu0 gpu0 3 25" "cpu0 gpu1 3 25" "cpu1 gpu2 3 25" "cpu1 gpu3 3 25" "gpu0 gpu1 3 25" "gpu2 gpu3 3 25" |
	links_are ac922.2 nvlink
assumed ac922.2 "as in an IBM Power System AC922"
# Ports that save power: 8 lanes of generation 3, as the GPU and the CPU have; of AMD 16 lanes.
for n in 0 1; do
	echo "cpu$n pcie$n 1 12"
	for end in $((2 * n)) $((2 * n + 1)); do echo "gpu$end pcie$n 1 6"; done
done | links_are t4-idle.2 pcie
assumed t4-idle.2 "PCIe links to GPUs that idle, x8 of generation 1, are what they can be: 7.877 GB/s"
for n in 0 1; do
	echo "cpu$n pcie$n 1 24"
	for end in $((2 * n)) $((2 * n + 1)); do echo "gpu$end pcie$n 1 12"; done
done | links_are mi60-idle.2 pcie
summary() { # NAME LINE COMMAND...: the summary has this line
	local name=$1 line=$2
	shift 2
	"$@" -o "$work/x.json" 2>"$work/err"
	if grep -qxF "$line" "$work/err"; then
		ok "$name: $line"
	else
		not_ok "$name: $(cat "$work/err"): want $line"
	fi
}
summary "an idle port" "rate        6 GB/s algorithm bandwidth = 1 x 6 GB/s, decided by an assumed link (PCIe)" \
	"$blinkc" -g 0,1 "$work/t4-idle.2.xml"
more="and 3 more: blinkc lint"
summary "PCIe of an AC922" \
	"doubtful    gpu0: 1.5 GB/s over pcie: want up to 12, as V100-SXM2 has x16 of generation 3; $more" \
	"$blinkc" -l pcie,qpi "$work/ac922.2.xml"
summary "NVLinks of a DGX-1V that hwloc 1.x does not have" \
	"doubtful    no nvlink links: want up to 6 of a GPU, as V100-SXM2 has; nvidia-smi topo -m lists them" \
	"$blinkc" "$work/dgx1v.1.xml"
"$blinkc" --summary json "$work/dgx1v.1.xml" -o "$work/x.json" 2>"$work/out"
sed -n '$p' "$work/out" >"$work/summary.json"
if grep -q '"doubtful":"no nvlink links: ' "$work/summary.json" &&
	oracle validate schemas/summary.schema.json "$work/summary.json" >"$work/err" 2>&1; then
	ok "JSON: doubtful"
else
	not_ok "JSON: $(cat "$work/out" "$work/err")"
fi
for machine in dgx1v.1:"no nvlink links" ac922.2:"1.5 GB/s over pcie"; do
	"$blinkc" lint "$work/${machine%%:*}.xml" >"$work/out" 2>/dev/null
	if grep -q "model: ${machine#*:}" "$work/out"; then ok "lint: ${machine#*:}"; else
		not_ok "lint: $(cat "$work/out")"; fi
done
printf '%s\n' "gpu0 gpu1 4 50" "gpu0 gpu3 1 50" "gpu1 gpu2 2 50" "gpu1 gpu3 1 50" "gpu2 gpu3 4 50" |
	links_are mi250x-smi.2 xgmi
printf '%s\n' "gpu0 gpu1 1 25" "gpu1 >gpu2 2 25" | links_are one-way.2 nvlink
for n in 0 1; do
	echo "cpu$n pcie$n 1 6"
	for end in gpu$((2 * n)) gpu$((2 * n + 1)) mlx5_$n; do echo "$end pcie$n 1 12"; done
done | links_are slow-port.2 pcie
assumed one-way.2 "differs by direction"
assumed rtx3090.2 "4 PCI devices are GPUs, by their class"
assumed rtx3090.2 "no NVLinks: hwloc gave no NVLinkBandwidth"
assumed dgx1v.1 "no NVLinks: hwloc 1.x does not know them"
oracle hwloc links topologies/dgx1v.xml pcie | sed 's/plx/pcie/g' | links_are dgx1v.1 pcie
expect_exit "1.x has no NVLinks" 5 "$blinkc" -q -l nvlink "$work/dgx1v.1.xml" -o "$work/x.json"
expect "a plan from hwloc's file is a plan for ours" "$blinkc" -l nvlink -c allgather \
	"$work/dgx1v.2.xml" -o "$work/x.json"
expect "ours has its links" "$blinkc" check -q --topology "$work/dgx1v.2.topo.xml" "$work/x.json"
"$blinkc" -q -c allgather "$work/dgx1v.2.xml" --gpu-model H100 -o "$work/x.json" 2>"$work/err" ||
	not_ok "--gpu-model: $(cat "$work/err")"
expect_exit "--gpu-model, unknown" 2 "$blinkc" "$work/dgx1v.2.xml" --gpu-model X1 -o "$work/x.json"

# The files that fuzzing and the pages begin with are made so, too.
for file in tests/foreign/hwloc/*.xml; do
	[ "$file" != tests/foreign/hwloc/snc2-2.xml ] || continue
	name=$(basename "$file" .xml) version=${file%.xml}
	machine=$(echo "${name%-?}" | sed 's/2-9-0/2.9.0/')
	oracle hwloc write "$machine" "${version##*-}" "$work/$name.xml"
	same "$file" "$work/$name.xml" "$file"
done
oracle hwloc numa snc2 2 "$work/snc2-2.xml"
same "tests/foreign/hwloc/snc2-2.xml" "$work/snc2-2.xml" tests/foreign/hwloc/snc2-2.xml

# libhwloc reads and writes these files: what it made of them is the same machine.
again=$build/tests/unit/test_live
for machine in $machines; do
	for version in 1 2; do
		if "$again" again "$work/$machine.$version.xml" 2 >"$work/again.xml" 2>"$work/err"; then
			for file in "$work/again.xml" "$work/$machine.$version.xml"; do
				"$blinkc" convert -q "$file" --format canonical \
					-o "$work/$(basename "$file" .xml).canonical"
			done
			same "$machine, XML $version.x: by libhwloc" "$work/again.canonical" \
				"$work/$machine.$version.canonical"
		else
			not_ok "$machine, XML $version.x: libhwloc: exit $?: $(head -1 "$work/err")"
		fi
	done
done
"$again" again "$work/dgx1v.2.xml" 1 >"$work/again1.xml" 2>"$work/err"
if grep -q '^<topology>' "$work/again1.xml"; then
	"$blinkc" convert -q "$work/again1.xml" --format canonical -o "$work/again1.canonical"
	"$blinkc" convert -q "$work/dgx1v.1.xml" --format canonical -o "$work/dgx1v.1.canonical"
	same "XML 1.x that libhwloc writes" "$work/again1.canonical" "$work/dgx1v.1.canonical"
else
	skip "XML 1.x: this libhwloc does not write it"
fi

# Broken files are refused by one line, or read with a note.
mkdir "$work/broken"
oracle hwloc hostile "$work/broken"
while IFS=$'\t' read -r file code message; do
	"$blinkc" convert --from hwloc "$work/broken/$file" -o "$work/x.xml" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	if [ $got != "$code" ]; then not_ok "$file: exit $got, want $code: $(head -c 300 "$work/err")"
	elif [ "$code" != 0 ] && [ "$(wc -l <"$work/err")" != 1 ]; then not_ok "$file: $(wc -l <"$work/err") lines"
	elif ! grep -qF -- "$message" "$work/err"; then not_ok "$file: want $message: $(head -c 300 "$work/err")"
	elif LC_ALL=C grep -q '[[:cntrl:]]' <(tr -d '\n' <"$work/err"); then not_ok "$file: control characters"
	else ok "$file"; fi
done <"$work/broken/want"

# This machine, and one that is made of files.
"$blinkc" topology --live -o "$work/live.xml" >"$work/out" 2>"$work/err"
got=$?
if [ $got = 0 ] || { [ $got = 3 ] && grep -q 'this machine: no GPU.*nvidia-smi topo -m' "$work/err"; }; then
	ok "--live: exit $got"
else
	not_ok "--live: exit $got: $(cat "$work/err")"
fi
cp "$work/err" "$work/err.plain"
HWLOC_XMLFILE=$work/dgx1v.2.xml HWLOC_THISSYSTEM=1 HWLOC_COMPONENTS=xml HWLOC_SYNTHETIC=pu:2 "$blinkc" topology --live \
	-o "$work/live2.xml" >"$work/out" 2>"$work/err"
if [ $? = $got ]; then
	ok "--live: whatever HWLOC_XMLFILE says"
else
	not_ok "--live: HWLOC_XMLFILE replaces the machine"
fi
same "--live: the same words" "$work/err.plain" "$work/err"
expect_exit "--live and a file" 2 "$blinkc" topology --live "$work/dgx1v.2.xml"
expect_exit "--live and --synthetic" 2 "$blinkc" topology --live --synthetic gpu:2
expect_exit "--live and --servers" 2 "$blinkc" topology --live --servers 2
oracle hwloc sysfs "$work/root"
if HWLOC_FSROOT=$work/root HWLOC_COMPONENTS=linux,stop "$again" print >"$work/live.json" 2>"$work/err"; then
	"$blinkc" convert -q "$work/live.json" -o "$work/live.topo.xml"
	for n in 0 1; do
		echo "cpu$n pcie$n 1 12"
		echo "gpu$((2 * n)) pcie$n 1 12"
		echo "gpu$((2 * n + 1)) pcie$n 1 12"
		echo "mlx5_$n pcie$n 1 12"
	done | links_are live pcie
	echo "cpu0 cpu1 1 10" | links_are live qpi
elif grep -q "no PCI devices" "$work/err"; then
	skip "a machine of files: this libhwloc finds no PCI devices below HWLOC_FSROOT"
else
	not_ok "a machine of files: $(cat "$work/err")"
fi

# Ranks that are CPUs: one for each NUMA node, of 1 to 8; what they are joined by; and plans over them.
# numa NAME VERSION [OPTION...]: $work/NAME.xml becomes $work/NAME.topo.xml
numa() {
	local name=$1 version=$2
	shift 2
	oracle hwloc numa "$name" "$version" "$work/$name.xml" &&
		"$blinkc" convert "$work/$name.xml" "$@" -o "$work/$name.topo.xml" 2>"$work/$name.err"
}
# ranks N RATE: "cpu0 numa0 1 RATE" and so on
ranks() { for ((k = 0; k < $1; k++)); do echo "cpu$k numa$k 1 $2"; done; }

for name in two snc2 square cube nps4 odd; do
	for version in 3 2; do
		numa $name $version --cpu-ranks || not_ok "$name, XML $version.x: $(cat "$work/$name.err")"
		"$blinkc" convert -q "$work/$name.topo.xml" --format canonical -o "$work/$version.canonical"
	done
	same "$name: XML 2.x and 3.x are one machine" "$work/2.canonical" "$work/3.canonical"
	expect "$name: is valid" "$blinkc" lint --schema "$work/$name.topo.xml"
	expect "$name: a plan" "$blinkc" -q "$work/$name.topo.xml" -o "$work/x.json"
	expect "$name: its schedule" "$blinkc" check -q --topology "$work/$name.topo.xml" "$work/x.json"
done
{ ranks 2 10; echo "cpu0 cpu1 1 22"; } | links_are two qpi
assumed two "left out: 2 NUMA nodes without CPUs"
assumed two "packages at distance 21: 22 GB/s (Xeon Sapphire Rapids"
{ ranks 4 10; for k in 0 1 2 3; do echo "cpu$k package$((k / 2)) 1 36.6667"; done; echo "package0 package1 1 22"; } |
	links_are snc2 qpi
{ ranks 4 10; for k in 0 1 2; do echo "cpu$k cpu$((k + 1)) 1 10"; done; echo "cpu0 cpu3 1 10"; } | links_are square qpi
{ ranks 8 10; for k in 0 2 4 6; do echo "cpu$k cpu$((k + 1)) 1 10"; done
	for k in 0 1 4 5; do echo "cpu$k cpu$((k + 2)) 1 10"; done
	for k in 0 1 2 3; do echo "cpu$k cpu$((k + 4)) 1 10"; done; } | links_are cube qpi
{ ranks 8 10; for k in 0 1 2 3 4 5 6 7; do echo "cpu$k package$((k / 4)) 1 26.6667"; done
	echo "package0 package1 1 16"; } | links_are nps4 qpi
{ ranks 3 10; echo "cpu0 cpu1 1 10"; echo "cpu0 cpu2 1 5"; echo "cpu1 cpu2 1 5"; } | links_are odd qpi
numa measured 2 --cpu-ranks || not_ok "measured: $(cat "$work/measured.err")"
{ for k in 0 1 2 3; do echo "cpu$k numa$k 1 9.00$k"; done; echo "cpu0 package0 1 39.999"; echo "cpu1 package0 1 39.999"
	echo "cpu2 package1 1 39.997"; echo "cpu3 package1 1 39.997"; echo "package0 package1 1 21.001"; } |
	sed 's/9.000/9/' | links_are measured qpi
if grep -q assumed "$work/measured.topo.xml" "$work/measured.err"; then not_ok "measured: something is assumed"; else
	ok "measured: nothing is assumed"; fi
"$blinkc" "$work/two.topo.xml" -o "$work/x.json" 2>"$work/out"
if grep -q 'decided by an assumed link (rank to CPU): blinkc topology --measure' "$work/out"; then
	ok "a rate that a core's copies decide"
else
	not_ok "a rate that a core's copies decide: $(cat "$work/out")"
fi
numa two 2 --cpu-ranks=8
printf 'PUs %s\n' 0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15 >"$work/want"
grep -o '"PUs [-0-9,]*' "$work/two.topo.xml" | tr -d '"' >"$work/got"
same "two: a core for each of 8 ranks" "$work/want" "$work/got"
numa two 2 --cpu-ranks=2 && grep -q '"PUs 0-7;' "$work/two.topo.xml" || not_ok "two: all cores for each of 2 ranks"
numa two 2 --cpu-ranks --cpu-link 33
{ ranks 2 10; echo "cpu0 cpu1 1 33"; } | links_are two qpi
numa square 1 --cpu-ranks || not_ok "square, XML 1.x: $(cat "$work/square.err")"
{ ranks 4 10; for p in "0 1" "0 2" "0 3" "1 2" "1 3" "2 3"; do echo "cpu${p% *} cpu${p#* } 1 10"; done; } |
	links_are square qpi
expect_exit "ranks that nodes cannot share" 2 "$blinkc" convert "$work/snc2.xml" --cpu-ranks=6 -o "$work/x.xml"
expect_exit "more ranks than cores" 2 "$blinkc" convert "$work/snc2.xml" --cpu-ranks=12 -o "$work/x.xml"
expect_exit "CPUs of a file that has no cores" 2 "$blinkc" convert topologies/dgx1v.xml --cpu-ranks -o "$work/x.xml"
expect_exit "--cpu-ranks of a file, by topology" 2 "$blinkc" topology "$work/two.xml" --cpu-ranks -o "$work/x.xml"
expect_exit "--measure without --cpu-ranks" 2 "$blinkc" topology --live --measure -o "$work/x.xml"
numa one 2 --cpu-ranks
links_are one qpi <<<"cpu0 numa0 1 10"
sed 's/ cpuset="0x000000ff"/ cpuset="0x0000000g"/' "$work/two.xml" >"$work/bad.xml"
expect_exit "a cpuset that is none" 3 "$blinkc" convert "$work/bad.xml" --cpu-ranks -o "$work/x.xml"
sed 's/>0 1 </>0 7 </' "$work/two.xml" >"$work/bad.xml"
expect_exit "distances of a node that is not there" 3 "$blinkc" convert "$work/bad.xml" --cpu-ranks -o "$work/x.xml"
# NICs are joined to their NUMA nodes.
"$blinkc" convert -q "$work/dgx1v.2.xml" --cpu-ranks -o "$work/nics.topo.xml"
for n in 0 1 2 3; do echo "cpu$((n / 2)) mlx5_$n 1 12"; done | links_are nics pcie
expect "a cluster of CPUs" "$blinkc" topology "$work/nics.topo.xml" --servers 2 --nic-rate 12.5 -o "$work/cluster.xml"
expect "a plan over it" "$blinkc" -q -l all "$work/cluster.xml" -o "$work/x.json"

# The same by libhwloc: machines of a line, and this one, with rates that are measured.
if HWLOC_SYNTHETIC="pack:2 [numa] core:4 pu:2" HWLOC_COMPONENTS=synthetic,stop "$again" cpus 4 >"$work/live.json" \
	2>"$work/err"; then
	"$blinkc" convert -q "$work/live.json" -o "$work/live.topo.xml"
	printf '%s\n' "cpu0 numa0.0 1 10" "cpu0 numa0.1 1 10" "cpu1 numa1.0 1 10" "cpu1 numa1.1 1 10" "cpu0 cpu1 1 10" |
		links_are live qpi
else
	not_ok "a synthetic machine: $(cat "$work/err")"
fi
expect "--live --cpu-ranks" "$blinkc" topology --live --cpu-ranks -q -o "$work/live.topo.xml"
if "$blinkc" topology --live --cpu-ranks --measure -o "$work/live.topo.xml" 2>"$work/err"; then
	oracle hwloc links "$work/live.topo.xml" qpi >"$work/got"
	if [ -s "$work/got" ] && ! grep -q 'assumed="true"' "$work/live.topo.xml" &&
		awk '{ if ($4 < 0.2 || $4 > 2000) exit 1 }' "$work/got"; then
		ok "--live --cpu-ranks --measure: $(head -1 "$work/got")"
	else
		not_ok "--measure: $(cat "$work/got")"
	fi
elif grep -q 'cannot bind threads and memory' "$work/err"; then
	skip "--measure: $(cat "$work/err")"
else
	not_ok "--measure: $(cat "$work/err")"
fi

# Files of real machines.
real=../shared/data/hwloc
if [ ! -d $real ]; then
	skip "real machines: no $real"
	exit 0
fi
for file in nvidiaDGX2.v2 power8gpudistances.v2 mpibind_mi250x; do
	"$blinkc" convert $real/$file.xml -o "$work/$file.topo.xml" 2>"$work/$file.err" ||
		not_ok "$file: $(cat "$work/$file.err")"
done
oracle hwloc links topologies/dgx2.xml nvlink | links_are nvidiaDGX2.v2 nvlink
assumed nvidiaDGX2.v2 "12 NVSwitches are one"
"$blinkc" -q -l nvlink topologies/dgx2.xml -o "$work/ours.json"
"$blinkc" -q -l nvlink $real/nvidiaDGX2.v2.xml -o "$work/theirs.json"
rates() { grep -o '"\(bound\|achieved\)":[^,}]*' "$1" | head -2; }
if [ "$(rates "$work/ours.json")" = "$(rates "$work/theirs.json")" ]; then ok "DGX-2: the rate of ours"; else
	not_ok "DGX-2: $(rates "$work/theirs.json"), want $(rates "$work/ours.json")"; fi
printf '%s\n' "gpu0 gpu1 2 20" "gpu2 gpu3 2 20" "cpu0 gpu0 2 20" "cpu0 gpu1 2 20" "cpu1 gpu2 2 20" "cpu1 gpu3 2 20" |
	links_are power8gpudistances.v2 nvlink
printf '%s\n' "cpu0 gpu0 1 6" "cpu0 gpu1 1 6" "cpu1 gpu2 1 6" "cpu1 gpu3 1 6" | links_are power8gpudistances.v2 pcie
printf '%s\n' "${mi250x[@]}" | links_are mpibind_mi250x xgmi
assumed mpibind_mi250x "as in HPE Cray EX235a"
for c in 0:4 0:5 1:2 1:3 2:6 2:7 3:0 3:1; do echo "cpu${c%:*} gpu${c#*:} 1 24"; done >"$work/pcie"
for c in 0:2 1:1 2:3 3:0; do echo "cpu${c%:*} hsi${c#*:} 1 24"; done >>"$work/pcie"
links_are mpibind_mi250x pcie <"$work/pcie"

for file in nvidiaDGX2.v2 power8gpudistances.v2 mpibind_mi250x; do
	"$blinkc" convert -q $real/$file.xml --cpu-ranks -o "$work/$file.topo.xml" || not_ok "$file, CPUs: exit $?"
	expect "$file, CPUs: a plan" "$blinkc" -q "$work/$file.topo.xml" -o "$work/x.json"
done
{ ranks 2 10; echo "cpu0 cpu1 1 10"; } | links_are nvidiaDGX2.v2 qpi
{ ranks 2 10; echo "cpu0 cpu1 1 32"; } | links_are power8gpudistances.v2 qpi
{ ranks 4 10; for k in 0 1 2 3; do echo "cpu$k package0 1 26.6667"; done; } | links_are mpibind_mi250x qpi
