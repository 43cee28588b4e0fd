# Files of other tools: topologies of NCCL and RCCL, what nvidia-smi and rocm-smi print. Held against a program that
# reads them itself (tests/oracle/foreign.py), against what the machines have by their data sheets, and against each
# other.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

# machine NAME FILE MODEL EXPECTED: what blinkc makes of FILE is what foreign.py sees in it, and has what EXPECTED says;
# it is valid by both schemas, and what is written reads as the same
machine() {
	local name=$1 file=$2 model=$3 want=$4 got
	if ! "$blinkc" convert "$file" ${model:+--gpu-model "$model"} -o "$work/$name.json" 2>"$work/err"; then
		not_ok "$name: $(tail -1 "$work/err")"
		return
	fi
	"$blinkc" convert -q "$file" ${model:+--gpu-model "$model"} -o "$work/$name.xml"
	oracle foreign "$file" "$model" "$work/$name.json" >"$work/out" 2>&1 || not_ok "$name: $(tail -1 "$work/out")"
	got=$(oracle foreign --table "$file" "$model" "$work/$name.json")
	if [ "$got" = "$want" ]; then ok "$name: $got"; else not_ok "$name: $got: want $want"; fi
	oracle validate schemas/topology.schema.json "$work/$name.json" >"$work/out" 2>&1 &&
		xmllint --noout --nonet --schema schemas/topology.xsd "$work/$name.xml" >"$work/out" 2>&1 ||
			not_ok "$name: $(tail -1 "$work/out")"
	# Notes, too, are in the file, and are printed when it is read.
	"$blinkc" convert "$work/$name.xml" -o "$work/again.json" 2>"$work/again" && cmp -s "$work/err" "$work/again" &&
		cmp -s "$work/again.json" "$work/$name.json" || not_ok "$name: convert and back: other bytes or notes"
	[ "$(grep -vc '^assumed     ' "$work/err")" = 0 ] || not_ok "$name: $(cat "$work/err")"
}

# refuses NAME CODE TEXT COMMAND...
refuses() {
	local name=$1 code=$2 text=$3
	shift 3
	expect_exit "$name" "$code" "$@"
	if grep -qF -e "$text" "$work/err"; then ok "$name: says why"; else not_ok "$name: $(cat "$work/err")"; fi
}

# ---- each shape ----

# file, model, what it has: links as bundles x links x GB/s of each
while IFS='|' read -r file model want; do
	every 2 || continue
	machine "$(basename "${file%.*}")" "tests/foreign/$file" "$model" "$want"
done <<END
nccl/nccl-dgx1v.xml||8 gpus 2 cpus 4 switches 4 nics; nvlink 8x1x25 8x2x25; pcie 16x1x12; qpi 1x1x6; ports 12.5
nccl/nccl-dgx1v-1456.xml||4 gpus 2 cpus 3 switches 4 nics; nvlink 2x1x25 2x2x25; pcie 11x1x12; qpi 1x1x6; ports 12.5
nccl/nccl-vm.xml||4 gpus 2 cpus 4 switches 3 nics; nvlink 4x18x25; pcie 2x1x6 1x1x6.25 3x1x12 4x1x48; qpi 1x1x22; \
ports 6.25 25
nccl/nccl-power9.xml||4 gpus 2 cpus 0 switches 0 nics; nvlink 6x3x25; pcie 4x1x0.1875; qpi 1x1x32
nccl/nccl-gb200.xml||4 gpus 4 cpus 1 switches 0 nics; nvlink 4x18x50; c2c 4x5x44.712; pcie 4x1x48; qpi 2x1x110
nccl/nccl-gb200-rack.xml||18 gpus 18 cpus 1 switches 0 nics; nvlink 18x18x50; c2c 18x5x44.712; pcie 18x1x48; qpi 9x1x110
nccl/nccl-oneway.xml||3 gpus 1 cpus 0 switches 0 nics; nvlink 0.5x2x25 1x4x25; pcie 2x1x12 1x1x24
nccl/rccl-mi50.xml||4 gpus 1 cpus 0 switches 0 nics; xgmi 4x1x46; pcie 4x1x12
nccl/rccl-mi250.xml||4 gpus 1 cpus 0 switches 0 nics; xgmi 2x1x50 1x2x50 2x4x50; pcie 4x1x12
nccl/rccl-mi300x.xml||4 gpus 1 cpus 0 switches 0 nics; xgmi 6x1x64; pcie 4x1x48
nvidia_smi/topo-dgx1v.txt|V100|8 gpus 2 cpus 4 switches 4 nics; nvlink 8x1x25 8x2x25; pcie 16x1x12; qpi 1x1x10
nvidia_smi/topo-dgx1v-cut.txt|V100|8 gpus 2 cpus 0 switches 0 nics; nvlink 8x1x25 8x2x25; pcie 8x1x12; qpi 1x1x10
nvidia_smi/topo-dgx1v-1456.txt|V100|4 gpus 2 cpus 3 switches 4 nics; nvlink 2x1x25 2x2x25; pcie 11x1x12; qpi 1x1x10
nvidia_smi/topo-h100.txt|H100-SXM|8 gpus 2 cpus 9 switches 10 nics; nvlink 8x18x25; pcie 26x1x48; qpi 1x1x22
nvidia_smi/topo-k80.txt|K80|8 gpus 2 cpus 6 switches 0 nics; pcie 14x1x12; qpi 1x1x10
nvidia_smi/topo-a100-pcie.txt|A100-PCIE|4 gpus 1 cpus 0 switches 0 nics; nvlink 2x12x25; pcie 4x1x24
nvidia_smi/topo-dgx2.txt|V100|16 gpus 1 cpus 1 switches 0 nics; nvlink 16x6x25; pcie 16x1x12
nvidia_smi/topo-one.txt||1 gpus 1 cpus 0 switches 0 nics; pcie 1x1x12
nvidia_smi/topo-vm.txt||2 gpus 1 cpus 1 switches 1 nics; pcie 4x1x12
nvidia_smi/topo-h100-nvl.txt|H100-NVL|4 gpus 2 cpus 0 switches 0 nics; nvlink 2x12x25; pcie 4x1x48; qpi 1x1x16
nvidia_smi/topo-l40s.txt|L40S|8 gpus 2 cpus 0 switches 0 nics; pcie 8x1x24; qpi 1x1x22
nvidia_smi/topo-gb200.txt|GB200|4 gpus 2 cpus 1 switches 0 nics; nvlink 4x18x50; c2c 4x1x225; pcie 4x1x48; qpi 1x1x110
nvidia_smi/topo-a6000.txt|RTX-A6000|2 gpus 1 cpus 0 switches 0 nics; nvlink 1x4x14.0625; pcie 2x1x24
nvidia_smi/topo-4090.txt|RTX-4090|2 gpus 1 cpus 0 switches 0 nics; pcie 2x1x24
nvidia_smi/topo-3090-pairs.txt|RTX-3090|4 gpus 1 cpus 0 switches 0 nics; nvlink 2x4x14.0625; pcie 4x1x24
nvidia_smi/topo-station-v100.txt|V100|4 gpus 1 cpus 0 switches 0 nics; nvlink 4x1x25 2x2x25; pcie 4x1x12
nvidia_smi/topo-station-a100.txt|A100-SXM4|4 gpus 1 cpus 0 switches 0 nics; nvlink 6x4x25; pcie 4x1x24
nvidia_smi/topo-gh200-quad.txt|GH200|4 gpus 4 cpus 0 switches 0 nics; nvlink 6x6x25; c2c 4x1x450; pcie 4x1x48; \
qpi 6x1x110
nvidia_smi/topo-a40-pairs.txt|A40|8 gpus 2 cpus 0 switches 0 nics; nvlink 4x4x14.0625; pcie 8x1x24; qpi 1x1x10
nvidia_smi/topo-h200.txt|H200|8 gpus 2 cpus 9 switches 8 nics; nvlink 8x18x25; pcie 24x1x48; qpi 1x1x22
nvidia_smi/topo-b200.txt|B200|8 gpus 2 cpus 1 switches 0 nics; nvlink 8x18x50; pcie 8x1x48; qpi 1x1x22
nvidia_smi/topo-t4.txt|T4|4 gpus 2 cpus 0 switches 0 nics; pcie 4x1x12; qpi 1x1x10
nvidia_smi/topo-l4.txt|L4|8 gpus 2 cpus 4 switches 0 nics; pcie 12x1x24; qpi 1x1x22
nvidia_smi/topo-v100-pcie.txt|V100-PCIE|4 gpus 1 cpus 2 switches 0 nics; pcie 6x1x12
nvidia_smi/topo-p100-four.txt|P100|4 gpus 2 cpus 0 switches 0 nics; nvlink 6x1x20; pcie 4x1x12; qpi 1x1x10
rocm_smi/rocm-mi210.txt|MI210|4 gpus 2 cpus 0 switches 0 nics; xgmi 2x1x50; pcie 4x1x24; qpi 1x1x16
rocm_smi/rocm-mi100.txt|MI100|8 gpus 2 cpus 0 switches 0 nics; xgmi 12x1x46; pcie 8x1x24; qpi 1x1x16
rocm_smi/rocm-mi250.txt|MI250X|4 gpus 1 cpus 0 switches 0 nics; xgmi 3x1x50 2x4x50; pcie 4x1x24
rocm_smi/rocm-pcie.txt||4 gpus 2 cpus 0 switches 0 nics; pcie 4x1x12; qpi 1x1x16
END

# ---- published files, where they are at hand ----

shared=$top/../shared/data
if [ -d "$shared/nccl_xml" ] && [ -d "$shared/topo_m" ]; then
	while IFS='|' read -r file model want; do
		every 3 || continue
		machine "shared-$(basename "${file%.*}")" "$shared/$file" "$model" "$want"
	done <<END
nccl_xml/dgx1v.xml||8 gpus 2 cpus 4 switches 4 nics; nvlink 8x1x25 8x2x25; pcie 16x1x12; qpi 1x1x6; ports 12.5
nccl_xml/dgx1p.xml||8 gpus 2 cpus 4 switches 4 nics; nvlink 16x1x20; pcie 16x1x12; qpi 1x1x6; ports 12.5
nccl_xml/dgx2.xml||16 gpus 2 cpus 9 switches 0 nics; nvlink 16x6x25; pcie 24x1x12; qpi 1x1x10
nccl_xml/4xV100_nv2_2edr.xml||4 gpus 2 cpus 2 switches 2 nics; nvlink 6x2x25; pcie 8x1x12; qpi 1x1x10; ports 12.5
nccl_xml/csstorm_8xK80.xml||16 gpus 2 cpus 10 switches 0 nics; pcie 26x1x12; qpi 1x1x6
nccl_xml/oci_h100.xml||8 gpus 2 cpus 17 switches 16 nics; nvlink 8x18x25; pcie 8x1x6 32x1x48; qpi 1x1x22; ports 22.5
nccl_xml/partial_dev0134.xml||4 gpus 4 cpus 0 switches 1 nics; pcie 1x1x3 4x1x24; qpi 6x1x16; ports 0.125
nccl_xml/summit_6xV100.xml||6 gpus 2 cpus 0 switches 2 nics; nvlink 12x2x25; pcie 6x1x0.1875 2x1x12; qpi 1x1x32; \
ports 12.5
nccl_xml/rccl_topo_16p1h.xml||16 gpus 4 cpus 12 switches 8 nics; xgmi 16x1x50 4x2x50 8x4x50; pcie 16x1x12 20x1x24; \
qpi 6x1x16; ports 25
nccl_xml/rccl_topo_8p1h.xml||8 gpus 2 cpus 6 switches 4 nics; xgmi 6x1x50 2x2x50 4x4x50; pcie 8x1x12 10x1x24; \
qpi 1x1x16; ports 25
nccl_xml/rccl_topo_8p_940.xml||8 gpus 2 cpus 8 switches 8 nics; xgmi 28x1x64; pcie 24x1x48; qpi 1x1x22; ports 50
nccl_xml/rccl_topo_4p2h.xml||8 gpus 1 cpus 2 switches 1 nics; xgmi 8x1x46; pcie 11x1x12; ports 12.5
nccl_xml/rccl_topo_8p_rome.xml||8 gpus 2 cpus 0 switches 1 nics; xgmi 8x1x46; pcie 9x1x24; qpi 1x1x16; ports 25
nccl_xml/rccl_topo_3p_pcie.xml||3 gpus 2 cpus 0 switches 1 nics; pcie 4x1x24; qpi 1x1x16; ports 25
topo_m/dgx1v_msccl_tools_test.txt|V100|8 gpus 2 cpus 4 switches 4 nics; nvlink 8x1x25 8x2x25; pcie 16x1x12; qpi 1x1x10
END
	"$blinkc" "$shared/nccl_xml/azure_ndv4_input_only.xml" --gpu-model A100-SXM4 -o "$work/x.json" 2>"$work/err"
	if grep -q '^rate        171.429 GB/s .*, decided by an assumed link (NVLink)$' "$work/err"; then
		ok "an input of NCCL"
	else
		not_ok "an input of NCCL: $(cat "$work/err")"
	fi
	"$blinkc" "$shared/nccl_xml/azure_ncv4_malformed.xml" -o "$work/x.json" 2>"$work/err"
	if grep -q '^assumed     NVLinks of 0001:00:00.0.* GPU itself; nvidia-smi topo -m ' "$work/err"; then
		ok "NVLinks to the GPU itself"
	else
		not_ok "NVLinks to the GPU itself: $(cat "$work/err")"
	fi
	refuses "a graph of NCCL" 3 "NCCL_GRAPH_DUMP_FILE" "$blinkc" "$shared/nccl_graph/dgx1v_8gpu_nccl2.21.5.xml"
	refuses "a schedule of MSCCL" 3 "an algorithm of MSCCL" "$blinkc" \
		"$shared/msccl_xml/sccl_dgx1_allgather_s3r7c6.msccl.xml"
	for f in nccl_xml/dgx1v nccl_xml/dgx1p; do
		if cmp -s <("$blinkc" convert -q "$shared/$f.xml" --format json | sed -n '/"links"/,$p') \
			<("$blinkc" convert -q "$shared/$f.xml" --format json | sed -n '/"links"/,$p'); then ok \
				"$f twice"; else not_ok "$f twice"; fi
	done
else
	skip "published files: no $shared"
fi

# ---- one machine in several formats ----

# Rates of all sets of GPUs, from an index; in `make check` all eight, which take longest, in one format only.
sizes=$([ "$full" ] && echo 3-8 || echo 3-7)
rates() {
	"$blinkc" batch -q "$1" ${2:+--gpu-model "$2"} --sizes "$sizes" -l nvlink -o "$work/batch" 2>/dev/null
	oracle snippet - "$work/batch/index.json" <<'END'
import json, sys
with open(sys.argv[1]) as file:
    index = json.load(file)
print(index["topology"]["gpus"])
for entry in index["schedules"]:
    print(entry["gpus"], entry["rate"], entry["bound"])
END
	rm -rf "$work/batch"
}
"$blinkc" batch -q topologies/dgx1v.xml --sizes 3-8 -l nvlink -o "$work/batch" 2>"$work/err"
n=$(find "$work/batch/allreduce" -name '*.json' | wc -l)
rm -rf "$work/batch"
rates topologies/dgx1v.xml >"$work/ours"
# Of 3 to 8 GPUs 46 classes are connected by NVLinks.
if [ "$n" = 46 ]; then ok "46 classes"; else not_ok "$n classes: want 46"; fi
if [ "$(wc -l <"$work/ours")" -gt 150 ]; then
	ok "$(wc -l <"$work/ours") sets"
else
	not_ok "only $(wc -l <"$work/ours") sets"
fi
for f in nccl/nccl-dgx1v.xml nvidia_smi/topo-dgx1v-cut.txt ${full:+nvidia_smi/topo-dgx1v.txt}; do
	case $f in nvidia*) model=V100 ;; *) model='' ;; esac
	rates "tests/foreign/$f" "$model" >"$work/theirs"
	if cmp -s "$work/ours" "$work/theirs"; then
		ok "$f: the rates of dgx1v.xml"
	else
		not_ok "$f: $(diff "$work/ours" "$work/theirs" | head -3)"
	fi
done
# Four of its GPUs: as the four of the whole.
for f in nccl/nccl-dgx1v-1456.xml nvidia_smi/topo-dgx1v-1456.txt; do
	"$blinkc" "tests/foreign/$f" --gpu-model V100 -o "$work/a.json" 2>"$work/err"
	want=$("$blinkc" topologies/dgx1v.xml -g 1,4,5,6 -o "$work/b.json" 2>&1 | grep ^rate)
	if grep -qxF "$want" "$work/err"; then
		ok "$f: $want"
	else
		not_ok "$f: $(grep ^rate "$work/err"): want $want"
	fi
done

# ---- the command line ----

"$blinkc" convert -q --gpu-model v100-sxm2-32gb - --format canonical <tests/foreign/nvidia_smi/topo-dgx1v.txt >"$work/a"
"$blinkc" convert -q --gpu-model "Tesla V100-SXM2-16GB" tests/foreign/nvidia_smi/topo-dgx1v.txt \
	--format canonical >"$work/b"
if [ -s "$work/a" ] && cmp -s "$work/a" "$work/b"; then
	ok "standard input; names as nvidia-smi prints them"
else
	not_ok "standard input"
fi
for f in nccl/nccl-dgx1v.xml:nccl nvidia_smi/topo-one.txt:nvidia-smi rocm_smi/rocm-pcie.txt:rocm-smi; do
	if cmp -s <("$blinkc" convert -q "tests/foreign/${f%:*}" --format canonical) \
		<("$blinkc" convert -q --from "${f#*:}" "tests/foreign/${f%:*}" --format canonical); then ok \
			"--from ${f#*:}"; else not_ok "--from ${f#*:}"; fi
done
refuses "--from another kind" 3 "no line with GPU0" "$blinkc" --from nvidia-smi tests/foreign/nccl/nccl-dgx1v.xml
refuses "--from, unknown" 2 "--from: zzz: want one of nccl, " "$blinkc" --from zzz tests/foreign/nccl/nccl-dgx1v.xml
refuses "--from our own" 3 "want a <topology format=\"blink-topology\"> element" "$blinkc" --from xml \
	tests/foreign/nccl/nccl-dgx1v.xml
refuses "--gpu-model, unknown" 2 "--gpu-model: \"V1000\": want one of K80, " "$blinkc" --gpu-model V1000 \
	tests/foreign/nvidia_smi/topo-dgx1v.txt
refuses "--gpu-model without NVLinks" 3 "GPU0 and others have 6 NVLinks each, model K80 has 0" "$blinkc" --gpu-model \
	K80 tests/foreign/nvidia_smi/topo-dgx1v.txt
refuses "--gpu-model with fewer NVLinks" 3 "GPU0 and others have 18 NVLinks each, model A100 has 12" "$blinkc" \
	--gpu-model A100 tests/foreign/nvidia_smi/topo-h100.txt
refuses "--gpu-model without xGMI" 3 "xGMI links, but model V100 has none" "$blinkc" --gpu-model V100 \
	tests/foreign/rocm_smi/rocm-mi250.txt
refuses "--gpu-model with fewer xGMI links" 3 "GPU0: 3 links at least by these tables, model MI60 has 2" "$blinkc" \
	--gpu-model MI60 tests/foreign/rocm_smi/rocm-mi100.txt
expect "--gpu-model for what NCCL does not know" "$blinkc" convert -q --gpu-model B200 \
	tests/bad/foreign/nccl-sm-unknown.xml -o "$work/x.json"

# Servers of a cluster: as copies, side by side, from several folders.
mkdir -p "$work/ra" "$work/rb"
cp tests/foreign/nccl/nccl-dgx1v.xml "$work/ra/v.xml"
cp topologies/dgx1p.xml "$work/rb/p.xml"
cluster() { # NAME GPUS NICS COMMAND...
	local name=$1 want="$2 gpus $3 nics" got
	shift 3
	"$blinkc" topology "$@" -o "$work/cluster.json" 2>"$work/err" || not_ok "$name: $(cat "$work/err")"
	got=$(oracle foreign --table x '' "$work/cluster.json" | sed 's/;.*//; s/ [0-9]* cpus [0-9]* switches//')
	if [ "$got" = "$want" ] && "$blinkc" -q "$work/cluster.json" -l all -o "$work/x.json"; then
		ok "$name"
	else
		not_ok "$name: $got"
	fi
}
cluster "four servers that NCCL describes" 32 16 --servers 4 tests/foreign/nccl/nccl-dgx1v.xml
cluster "different servers" 16 8 "$work/ra/v.xml" "$work/rb/p.xml"
cluster "numbers of different servers" 24 12 --servers 2,1 "$work/ra/v.xml" "$work/rb/p.xml"
cluster "one number for all" 32 16 --servers 2 "$work/ra/v.xml" "$work/rb/p.xml"
cluster "servers of nvidia-smi" 16 8 --servers 2 --gpu-model V100 --nic-rate 12.5 \
	tests/foreign/nvidia_smi/topo-dgx1v.txt
cluster "servers of a kind that is named" 16 8 --servers 2 --from nccl "$work/ra/v.xml"
(cd "$work/ra" && "$blinkc" topology v.xml v.xml --format cluster) >"$work/cluster.json"
if [ "$(grep -c '"file": "v.xml"' "$work/cluster.json")" = 2 ]; then
	ok "a cluster file of several servers"
else
	not_ok "cluster file: $(cat "$work/cluster.json")"
fi
refuses "a number for each of them" 2 "--servers: 1,2,3: want a whole number" "$blinkc" topology --servers 1,2,3 \
	"$work/ra/v.xml" "$work/rb/p.xml"
refuses "a file that is not there" 8 "no such file" "$blinkc" topology "$work/ra/v.xml" "$work/none.xml"

# ---- what was assumed ----

notes() { # NAME COMMAND...: the notes are those on standard input
	local name=$1
	shift
	sed 's/^/assumed     /' >"$work/want"
	"$@" >/dev/null 2>"$work/err"
	if cmp -s "$work/want" "$work/err"; then
		ok "notes: $name"
	else
		not_ok "notes: $name: $(diff "$work/want" "$work/err" | head -4)"
	fi
}
notes "links to GPUs of others" "$blinkc" convert tests/foreign/nccl/nccl-dgx1v-1456.xml <<END
12 links to 0000:06:00.0, 0000:0a:00.0, 0000:0b:00.0, 0000:8a:00.0: left out, as the file does not have the other end: \
no GPU of this job
END
notes "one direction" "$blinkc" convert tests/foreign/nccl/nccl-oneway.xml <<'END'
gpu0 to gpu1: 4 links, and back 2, as the file has it
gpu0 to gpu2: 4 links, and back 0, as the file has it
END
notes "a virtual machine" "$blinkc" convert tests/foreign/nccl/nccl-vm.xml <<END
network interface eth0: joined to cpu1 at the rate of its port, as it has no PCI device
PCIe of 0000:30:00.0: where the file has no width or speed, x16 of generation 3, as NCCL takes it
PCIe of 0000:10:00.0, 0000:11:00.0: much slower than a link below it, as the file has it: \
if the link only saved power, it is faster
network interfaces docker0: left out, as they have no PCI device
END
notes "NVSwitch" "$blinkc" convert --gpu-model H100 tests/foreign/nvidia_smi/topo-h100.txt <<'END'
NICs: the table has no rates of network ports; --nic-rate sets them for a cluster
NVLink: 25 GB/s for each link and direction, model H100
NVSwitch: each of 8 GPUs has NV18 to all others, and model H100 18 NVLinks: they lead to a switch
PCIe: x16 of generation 5 everywhere, as of model H100
link between the CPUs: 22 GB/s (Xeon Sapphire Rapids, UPI), a guess: --cpu or --cpu-link states it
END
notes "--quiet" "$blinkc" convert -q --gpu-model H100 tests/foreign/nvidia_smi/topo-h100.txt </dev/null

# ---- what was guessed ----

# With which summary, and what else tells of the rate.
nvl=(tests/foreign/nvidia_smi/topo-h100-nvl.txt --gpu-model H100-NVL)
guess=", decided by an assumed link (CPU to CPU): state it with --cpu-link"
rate_line() { # NAME LINE COMMAND...: the line of the rate
	local name=$1 line=$2 got
	shift 2
	got=$("$@" -o "$work/guess.json" 2>&1 | grep '^rate')
	if [ "$got" = "rate        $line" ]; then ok "$name: $line"; else not_ok "$name: $got: want $line"; fi
}
rate_line "a guess between bridged pairs" "16 GB/s algorithm bandwidth = 4 x 4 GB/s$guess" "$blinkc" "${nvl[@]}"
oracle validate schemas/schedule.schema.json "$work/guess.json" >"$work/out" 2>&1 ||
	not_ok "guess: $(tail -1 "$work/out")"
got=$(grep -c '"class": "qpi".*"assumed": true' "$work/guess.json"; grep -c '"assumed"' "$work/guess.json")
if [ "$got" = $'2\n2' ]; then ok "links of a schedule are marked"; else not_ok "links of a schedule: $got"; fi
for verb in check show; do
	if "$blinkc" $verb "$work/guess.json" 2>&1 | grep -qF "16 GB/s algorithm bandwidth = 4 x 4 GB/s$guess"; then
		ok "$verb: the same mark"
	else
		not_ok "$verb: no mark"
	fi
done
if "$blinkc" show "$work/guess.json" | grep -qF "= 16 GB/s$guess; no allreduce is faster"; then
	ok "show: also in the proof"
else
	not_ok "show: no mark in the proof"
fi
"$blinkc" check --summary json "$work/guess.json" >"$work/out" 2>/dev/null
if grep -qF '"assumed_links":["qpi"]' "$work/out" &&
	oracle validate schemas/summary.schema.json "$work/out" >"$work/err" 2>&1; then ok "the mark in JSON"; else
	not_ok "the mark in JSON: $(cat "$work/out" "$work/err")"; fi
rate_line "--cpu-link" "37.5 GB/s algorithm bandwidth = 25 x 1.5 GB/s" "$blinkc" "${nvl[@]}" --cpu-link 37.5
rate_line "--cpu" "40 GB/s algorithm bandwidth = 10 x 4 GB/s" "$blinkc" "${nvl[@]}" --cpu emerald-rapids
"$blinkc" convert "${nvl[@]}" -o "$work/guess.xml" 2>/dev/null
rate_line "a file of ours keeps the mark" "16 GB/s algorithm bandwidth = 4 x 4 GB/s$guess" "$blinkc" "$work/guess.xml"
rate_line "--cpu-link for a file of ours" "30 GB/s algorithm bandwidth = 5 x 6 GB/s" "$blinkc" "$work/guess.xml" \
	--cpu-link 30
"$blinkc" convert "$work/guess.xml" --cpu-link 30 -o "$work/stated.xml" 2>"$work/err"
if grep -q 'class name="qpi" capacity="30" source="stated by --cpu-link"' "$work/stated.xml" &&
	! grep -q 'assumed=\|link between' "$work/stated.xml" "$work/err"; then ok "what is stated is no guess"; else
	not_ok "what is stated: $(grep qpi "$work/stated.xml"; cat "$work/err")"; fi
rate_line "another link decides" "300 GB/s algorithm bandwidth = 1 x 300 GB/s" "$blinkc" "${nvl[@]}" -g 0,1
cat >"$work/lesser.xml" <<'END'
<topology format="blink-topology" version="1" name="lesser">
  <node id="s">
    <gpu id="gpu0"/>
    <gpu id="gpu1"/>
    <cpu id="cpu0"/>
    <cpu id="cpu1"/>
  </node>
  <link from="gpu0" to="gpu1" class="nvlink" capacity="100"/>
  <link from="gpu0" to="cpu0" class="pcie" capacity="24"/>
  <link from="gpu1" to="cpu1" class="pcie" capacity="24"/>
  <link from="cpu0" to="cpu1" class="qpi" capacity="10" assumed="true"/>
</topology>
END
rate_line "a guess that is the lesser part" "110 GB/s algorithm bandwidth = 55 x 2 GB/s${guess/decided/in part}" \
	"$blinkc" "$work/lesser.xml" -l all -c broadcast
rate_line "PCIe of no model" "6.85714 GB/s algorithm bandwidth = 1.714 x 4 GB/s, decided by an assumed link (PCIe)" \
	"$blinkc" tests/foreign/nvidia_smi/topo-l40s.txt
refuses "--cpu, unknown" 2 '--cpu: "zen": want one of emerald-rapids, ' "$blinkc" "${nvl[@]}" --cpu zen
refuses "--cpu-link, no number" 2 '--cpu-link: x: want a number' "$blinkc" "${nvl[@]}" --cpu-link x
"$blinkc" advise -q "${nvl[@]}" >"$work/out" 2>&1
if grep -q '^    3     3       4         16\*   100 %' "$work/out" &&
	grep -qxF "*           ${guess#, }" "$work/out" &&
	grep -q '^    1     2       2        300    100 %' "$work/out"; then ok "advise: stars"; else
	not_ok "advise: $(cat "$work/out")"; fi
"$blinkc" advise -q "${nvl[@]}" --format json -o "$work/advice.json"
if oracle validate schemas/advise.schema.json "$work/advice.json" >"$work/err" 2>&1 &&
	[ "$(grep -c '"assumed_links": \["qpi"\]' "$work/advice.json")" = 3 ]; then ok "advise: JSON"; else
	not_ok "advise: $(cat "$work/err" "$work/advice.json")"; fi
"$blinkc" what-if -q "${nvl[@]}" --without gpu3-cpu1 >"$work/out" 2>&1
if grep -q '^         16\*' "$work/out" && grep -qxF "*           ${guess#, }" "$work/out"; then
	ok "what-if: stars"
else
	not_ok "what-if: $(cat "$work/out")"
fi
"$blinkc" what-if -q "${nvl[@]}" --without gpu3-cpu1 --format json -o "$work/whatif.json"
if oracle validate schemas/what-if.schema.json "$work/whatif.json" >"$work/err" 2>&1 &&
	grep -q '"assumed_links": \["qpi"\]' "$work/whatif.json"; then ok "what-if: JSON"; else
	not_ok "what-if: $(cat "$work/err" "$work/whatif.json")"; fi
"$blinkc" batch -q "${nvl[@]}" --sizes 4 -o "$work/batch" 2>/dev/null
"$blinkc" report -q "$work/batch" -o "$work/report.html"
if grep -qF "16$guess" "$work/report.html" && grep -q '"guess":true' "$work/report.html"; then
	ok "report: the mark"
else
	not_ok "report: no mark"
fi
rm -rf "$work/batch"

# ---- JSON of rocm-smi and amd-smi ----

smi=tests/foreign/rocm_smi
expect "JSON of rocm-smi is its tables" cmp <("$blinkc" convert -q --gpu-model MI100 $smi/rocm-mi100.json \
	--format canonical) <("$blinkc" convert -q --gpu-model MI100 $smi/rocm-mi100.txt --format canonical)
"$blinkc" convert --gpu-model MI100 $smi/amd-mi100.json -o "$work/t.json" 2>"$work/err"
table() { oracle foreign --table x '' "$1"; }
is "JSON of amd-smi, which has no NUMA nodes" "$(table "$work/t.json")" \
	"8 gpus 1 cpus 0 switches 0 nics; xgmi 12x1x46; pcie 8x1x24"
expect "that is said" grep -q '^assumed     CPUs: one for all GPUs, as the text has no NUMA nodes$' "$work/err"
is "xGMI links of both" "$(grep -c '"class": "xgmi"' "$work/t.json")" \
	"$("$blinkc" convert -q --gpu-model MI100 $smi/rocm-mi100.txt --format json | grep -c '"class": "xgmi"')"
bad_smi() { # NAME TEXT SED
	sed "$3" $smi/$1 >"$work/bad.json"
	cmp -s "$work/bad.json" $smi/$1 && not_ok "$1: $3: changes nothing"
	refuses "$1, $3" 3 "$2" "$blinkc" convert --from rocm-smi --gpu-model MI100 "$work/bad.json"
}
bad_smi rocm-mi100.json "GPU0 and GPU1: no link type" 's/Link type between DRM devices 0 and 1"/x"/'
bad_smi rocm-mi100.json '"CXL": want XGMI or PCIE' 's/"XGMI"/"CXL"/'
bad_smi amd-mi100.json '7: want each GPU once' 's/^        "gpu": 6,/        "gpu": 7,/'
bad_smi amd-mi100.json '9: want a GPU of the list' 's/^                "gpu": 6,/                "gpu": 9,/'
bad_smi amd-mi100.json 'GPU0 to GPU1 and back' '0,/"weight": 15/s//"weight": 16/'

# ---- what is written of them ----

kinds=$("$blinkc" convert --from x topologies/dgx1v.xml 2>&1 | sed 's/.*want one of //; s/,//g')
for kind in $kinds; do
	expect "docs/formats.md says what of $kind is read, derived and assumed" \
		awk -F'|' -v kind="\`$kind\`" 'NF == 7 && index($2, kind) {found = 1} END {exit !found}' docs/formats.md
done

# ---- names of models ----

# name NAME MODEL: what people say of a card
name() {
	sed s/NV12/NV2/ tests/foreign/nvidia_smi/topo-a100-pcie.txt >"$work/few.txt"
	"$blinkc" convert "$work/few.txt" --gpu-model "$1" -o "$work/t.json" 2>"$work/err"
	if grep -q "model $2\$" "$work/err"; then ok "$1 is $2"; else not_ok "$1: $(cat "$work/err")"; fi
}
name A6000 RTX-A6000
name 3090 RTX-3090
name "Quadro RTX 8000" RTX-8000
refuses "a number that is no model" 2 '--gpu-model: "6000": want one of' "$blinkc" convert \
	tests/foreign/nvidia_smi/topo-a100-pcie.txt --gpu-model 6000 -o "$work/t.json"

# ---- files of clouds ----

template=tests/foreign/nccl/nccl-template.xml
"$blinkc" convert $template -o "$work/t.json" 2>"$work/err"
is "a template without --gpu-model" "$(table "$work/t.json")" \
	"8 gpus 2 cpus 4 switches 8 nics; pcie 20x1x48; qpi 1x1x22"
for name in "Azure NDv2" "Azure NDv4" "AWS p4d" "Azure NDv5" "AWS g5"; do
	grep -q "^assumed     no links between the GPUs: --gpu-model states what they are.*$name" "$work/err" ||
		not_ok "a template: no word of $name: $(cat "$work/err")"
done
while IFS='|' read -r model words want; do
	"$blinkc" convert $template --gpu-model "$model" -o "$work/t.json" 2>"$work/err"
	is "a template, $model" "$(table "$work/t.json")" "8 gpus 2 cpus $want"
	grep -qF "$words" "$work/err" || not_ok "a template, $model: $(cat "$work/err"): want $words"
done <<END
H100-SXM|as in HGX H100 8-GPU|5 switches 8 nics; nvlink 8x18x25; pcie 20x1x48; qpi 1x1x22
NVIDIA A100-SXM4-80GB|as in HGX A100 8-GPU|5 switches 8 nics; nvlink 8x12x25; pcie 20x1x48; qpi 1x1x22
Tesla V100-SXM2-32GB|as in DGX-1V|4 switches 8 nics; nvlink 8x1x25 8x2x25; pcie 20x1x48; qpi 1x1x22
NVIDIA A10G|GPUs: 8 PCI devices|4 switches 8 nics; pcie 20x1x48; qpi 1x1x22
MI300X|as in Instinct MI300X platform|4 switches 8 nics; xgmi 28x1x64; pcie 20x1x48; qpi 1x1x22
H100-NVL|no machine is known that has 8 H100-NVL|4 switches 8 nics; pcie 20x1x48; qpi 1x1x22
END
# By their bus ids: 0001 is GPU 0, whose switch also has 0002.
is "GPUs of a template are numbered by bus ids" \
	"$(grep -o '"from": "gpu[0-3]", "to": "[^"]*", "class": "pcie"' "$work/t.json" | cut -d'"' -f4,8 |
		tr '\n' ' ')" \
	"gpu2\"ffff:ff:01.0 gpu3\"ffff:ff:01.0 gpu0\"ffff:ff:02.0 gpu1\"ffff:ff:02.0 "
"$blinkc" $template --gpu-model H100-SXM -o "$work/t.json" 2>"$work/err"
if grep -q '^rate        257.143 GB/s .*, decided by an assumed link (NVLink)$' "$work/err"; then
	ok "a template: the rate says that it is by assumed links"
else
	not_ok "a template: $(cat "$work/err")"
fi
# As that of AWS p5, whose devices have no class, and no GPUs; and of AWS g5, where some of them are GPUs.
sed 's/ class="0x030200"/ class="0x020000"/; s/ class="[^"]*"//' $template >"$work/no-gpus.xml"
refuses "a template without classes" 3 "it has 16 PCI devices, 16 of them without a class, which tells GPUs, and \
no NVLinks: want what NCCL writes: run any job of NCCL on all GPUs of the machine with NCCL_TOPO_DUMP_FILE=topo.xml in \
its environment; or class=\"0x030200\" on each device that is a GPU; or a machine that blinkc list has" \
	"$blinkc" "$work/no-gpus.xml" -o "$work/t.json"
sed 's/busid="000[0-9a-e]:00:00.0"/& class="0x030200"/' "$work/no-gpus.xml" >"$work/with-gpus.xml"
"$blinkc" convert "$work/with-gpus.xml" --gpu-model A10G -o "$work/t.json" 2>"$work/err"
is "with the class of its GPUs it is read" "$(table "$work/t.json")" \
	"8 gpus 2 cpus 4 switches 0 nics; pcie 12x1x48; qpi 1x1x22"
notes "NVLinks to the GPU itself" "$blinkc" convert tests/foreign/nccl/nccl-self.xml <<END
PCIe of 0001:00:00.0, 0002:00:00.0: where the file has no width or speed, x16 of generation 3, as NCCL takes it
NVLinks of 0001:00:00.0, 0002:00:00.0: left out, as the file has them lead to the GPU itself; nvidia-smi topo -m \
prints where they lead
END
for speed in 200000000 fast -5; do
	sed "s/speed=\"100000\"/speed=\"$speed\"/" tests/foreign/nccl/nccl-dgx1v.xml >"$work/odd.xml"
	"$blinkc" convert "$work/odd.xml" -o "$work/t.json" 2>"$work/err"
	is "a NIC with speed $speed: a line for each" \
		"$(grep -cF " Mb/s in the file, which no port has: left out; --nic-rate sets it" "$work/err")" 4
done
sed 's/\x1b//g' tests/foreign/nvidia_smi/topo-h100.txt >"$work/no-esc.txt"
expect "a table that has lost its ESC bytes has colours" grep -q '\[4mGPU0' "$work/no-esc.txt"
expect "it is the same table" cmp <("$blinkc" convert -q --gpu-model H100 "$work/no-esc.txt" --format canonical) \
	<("$blinkc" convert -q --gpu-model H100 tests/foreign/nvidia_smi/topo-h100.txt --format canonical)
expect "a model with a letter behind" cmp \
	<("$blinkc" convert -q --gpu-model Tesla-V100-SXM3-32GB-H tests/foreign/nvidia_smi/topo-dgx2.txt) \
	<("$blinkc" convert -q --gpu-model V100-SXM3 tests/foreign/nvidia_smi/topo-dgx2.txt)

# ---- bad files ----

cd "$top/tests/bad/foreign" || exit 1
mkdir "$work/o"
oracle refused --said "3 4" "$work/o" *.xml *.txt -- "$blinkc" convert {} -o "$work/o/x.json" >"$work/refused" 2>&1 ||
	not_ok "refused.py: $(tail -1 "$work/refused")"
sed -nE "s|^(ok\|not ok) |\1 $suite: bad/|p" "$work/refused"
for f in *.err; do
	[ -f "${f%.err}" ] || not_ok "bad/$f: no such file to refuse"
done
cd "$top" || exit 1

# ---- random machines ----

seeds=$([ "$full" ] && echo 400 || echo 12)
mkdir "$work/random"
oracle random_foreign "$seeds" "$work/random" || not_ok "random_foreign.py: exit $?"
n=0
for f in "$work"/random/*; do
	case $f in *.topo) model=A100 ;; *) model='' ;; esac
	if ! "$blinkc" convert -q "$f" ${model:+--gpu-model $model} -o "$work/x.json" 2>"$work/err"; then
		not_ok "$(basename "$f"): $(cat "$work/err")"
	elif oracle foreign "$f" "$model" "$work/x.json" >"$work/out" 2>&1; then n=$((n + 1)); else not_ok \
		"$(basename "$f"): $(tail -1 "$work/out")"; fi
done
if [ $n -ge $((2 * seeds)) ]; then
	ok "$n random machines"
else
	not_ok "only $n of $((2 * seeds)) random machines are right"
fi
