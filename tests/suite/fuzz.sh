# The corpus of each fuzz target, the bad files among it, and a short run from a fixed seed, with sanitizers. An input
# that fails is kept beside the target. Runs have a number of mutants, not of seconds: other load must not shorten them.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

export FUZZ_TOPOLOGIES=$top/topologies
for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	target=$build/asan/tests/fuzz/$name
	if [ ! -x "$target" ]; then
		skip "$name: no $target"
		continue
	fi
	shopt -s nullglob
	corpus=("$top/tests/fuzz/corpus/$name/"* "$top/tests/fuzz/found/$name/"*)
	export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
	if ! "$build/asan/blinkc" --version >/dev/null 2>&1; then
		skip "$name: leaks: LeakSanitizer does not run here"
		ASAN_OPTIONS=detect_leaks=0
	fi
	# Whole indexes are few, and mutants are made of all that is in them.
	case $name in
	fuzz_index | fuzz_lookup | fuzz_request | fuzz_hwloc | fuzz_parameters | fuzz_measurements | fuzz_tuner | \
		fuzz_workload) least=4 ;;
	fuzz_msccl | fuzz_mscclpp) least=13 ;;
	fuzz_frames) least=24 ;;
	fuzz_execute | fuzz_view | fuzz_verb) least=20 ;;
	*) least=51 ;;
	esac
	case $name in
	fuzz_schedule | fuzz_nccl | fuzz_*_smi) mutants=20000 ;;
	fuzz_index | fuzz_execute | fuzz_measurements) mutants=10000 ;;
	fuzz_parameters | fuzz_tuner | fuzz_verb | fuzz_frames | fuzz_request | fuzz_topology | fuzz_hwloc)
		mutants=3000 ;;
	*) mutants=5000 ;;
	esac
	(cd "$(dirname "$target")" && exec "$target" --runs $mutants --seed 1 "${corpus[@]}") >"$work/out" 2>&1
	got=$?
	read -r n runs accepted < <(sed -n \
		's/^.*: \([0-9]*\) files, \([0-9]*\) mutants .* \([0-9]*\) accepted.*/\1 \2 \3/p' "$work/out")
	if [ $got = 0 ] && [ "${n:-0}" -ge $least ]; then ok "$name: corpus, $n files"; else
		not_ok "$name: corpus: exit $got after ${n:-0} files"
	fi
	if [ $got = 0 ] && [ "${runs:-0}" = $mutants ] && [ "${accepted:-0}" -gt 0 ]; then
		ok "$name: $runs mutants, $accepted accepted"
	else
		not_ok "$name: exit $got after ${runs:-0} mutants, ${accepted:-0} accepted"
		tail -60 "$work/out" | cut -c1-400 | sed 's/^/# /'
		continue
	fi
	# The same seed gives the same run, but for the number of the process in what AddressSanitizer says of fibers.
	for i in 1 2; do
		(cd "$work" && exec "$target" --runs 1000 --seed 7 "$top/tests/fuzz/corpus/$name/"*) 2>&1 |
			sed '/^==[0-9]*==WARNING: ASan does/d; s/ in [0-9.]* s//' >"$work/run$i"
	done
	if cmp -s "$work/run1" "$work/run2"; then
		ok "$name: one seed, one run"
	else
		not_ok "$name: $(cat "$work/run1" "$work/run2")"
	fi
done
