# The tuner plugin for NCCL: a program plays NCCL's part in each version of the interface; in the full test also under
# AddressSanitizer.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh
unset BLINK_SCHEDULES BLINK_MACHINE BLINK_GPUS

v=topologies/dgx1v.xml
five=broadcast,reduce,allgather,reducescatter,allreduce
printf '0-7\n0-3\n' | "$blinkc" batch -q $v -a ring -l nvlink -g - --collectives $five --roots canonical \
	-o "$work/rings" || not_ok "batch"
printf '0-15\n' | "$blinkc" batch -q topologies/two-dgx1v.xml -a ring -g - -o "$work/two" ||
	not_ok "batch of two servers"
"$blinkc" batch -q $v -n 8 -l nvlink -o "$work/trees" || not_ok "batch of trees"
# Trees for an allreduce of up to 1 MiB, rings above.
mkdir "$work/sized"
cp -r "$work/rings/." "$work/sized"
cp "$work/trees/allreduce/"*.json "$work/sized/tree.json"
"$python" - "$work/sized/index.json" <<'END' || not_ok "an index with sizes"
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    index = json.load(file)
rings = [e for e in index["schedules"] if e["collective"] == "allreduce" and len(e["gpus"]) == 8]
index["schedules"].append(dict(rings[0], file="tree.json", bytes=[0, 1 << 20]))
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(index, file)
END

# play NAME RANKS SERVERS RING HOP FROM TEXT [VARIABLE=VALUE...]
play() {
	local name=$1 kind plugin
	for kind in "" ${full:+asan/}; do
		plugin=$build/${kind}libnccl-tuner-blink.so
		expect "$kind$name" env "${@:8}" ASAN_OPTIONS=detect_leaks=1 \
			"$build/${kind}tests/nccl_play" "$plugin" "${@:2:6}"
	done
}
play "all GPUs" 8 1 150 3.4 0 "8 ranks: rings for broadcast 150 GB/s after " BLINK_SCHEDULES="$work/rings"
play "four, which are named" 4 1 100 3.4 0 "4 ranks: rings for broadcast 100 GB/s" BLINK_SCHEDULES="$work/rings" \
	BLINK_GPUS=gpu3,1,2,gpu0
play "of two machines, the one that is stated" 8 1 150 3.4 0 "8 ranks: rings" \
	BLINK_SCHEDULES="$work/two:$work/rings" BLINK_MACHINE=dgx1v
play "by size" 8 1 150 3.4 1048577 "8 ranks: rings" BLINK_SCHEDULES="$work/sized"

# Nothing is known, and nothing changes.
play "no schedules" 8 1 0 0 0 "BLINK_SCHEDULES names nothing"
play "other ranks" 4 1 0 0 0 "4 ranks, of a machine with 8 GPUs: BLINK_GPUS does not say which GPUs they have" \
	BLINK_SCHEDULES="$work/rings"
play "GPUs for other ranks" 3 1 0 0 0 "BLINK_GPUS does not say" BLINK_SCHEDULES="$work/rings" BLINK_GPUS=0,1,2,3
play "GPUs that it has no schedule for" 4 1 0 0 0 "no schedule of rings for them" \
	BLINK_SCHEDULES="$work/rings" BLINK_GPUS=0,1,4,5
play "a GPU twice" 4 1 0 0 0 "no schedule of rings for them" BLINK_SCHEDULES="$work/rings" BLINK_GPUS=0,1,2,2
play "other servers" 8 2 0 0 0 "no schedule of rings for them" BLINK_SCHEDULES="$work/rings"
play "trees" 8 1 0 0 0 "no schedule of rings for them" BLINK_SCHEDULES="$work/trees"
play "another machine" 8 1 0 0 0 "no schedule of rings for them" BLINK_SCHEDULES="$work/rings" BLINK_MACHINE=dgx2
play "no file" 8 1 0 0 0 "/nowhere: No such file" BLINK_SCHEDULES=/nowhere
play "a directory without an index" 8 1 0 0 0 "directory without index.json" BLINK_SCHEDULES="$work"
play "no machine" 8 1 0 0 0 "BLINK_MACHINE: sha256:1: want a name" BLINK_SCHEDULES="$work/rings" BLINK_MACHINE=sha256:1
play "one rank" 1 1 0 0 0 "BLINK_SCHEDULES names nothing" BLINK_SCHEDULES="$work/rings"
play "more ranks than any machine has" 1000000 1 0 0 0 "" BLINK_SCHEDULES="$work/rings"

# ---- the file ----

so=$build/libnccl-tuner-blink.so
exported=$(nm -D --defined-only "$so" | awk '{ print $3 }' | tr '\n' ' ')
want=$(echo ncclTunerPlugin_v{2..6})
if [ "$exported" = "$want " ]; then ok "it exports what NCCL looks for"; else not_ok "it exports $exported"; fi
needed=$(objdump -p "$so" | awk '/NEEDED/ { print $2 }' | grep -vE '^(lib(c|m|md|dl|pthread|rt)\.so|ld-linux)')
if [ ! "$needed" ]; then ok "it needs what libblink needs"; else not_ok "it needs $needed"; fi
