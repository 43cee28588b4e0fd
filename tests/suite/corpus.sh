# The corpora of the fuzz targets, by the plain build: each input is refused or does what its target says, within what
# an input of its size may cost. And the driver sees what costs more.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

export FUZZ_TOPOLOGIES=$top/topologies
for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	shopt -s nullglob
	files=("$top/tests/fuzz/corpus/$name/"*)
	[ ! "$full" ] || files+=("$top/tests/fuzz/found/$name/"*)
	(cd "$work" && exec "$build/tests/fuzz/$name" "${files[@]}") >"$work/out" 2>&1
	got=$?
	n=$(sed -n 's/^.*: \([0-9]*\) files, .*/\1/p' "$work/out")
	if [ $got = 0 ] && [ "${n:-0}" -ge ${#files[@]} ]; then ok "$name: $n files"; else
		not_ok "$name: exit $got after ${n:-0} of ${#files[@]} files"
		tail -5 "$work/out" | cut -c1-400 | sed 's/^/# /'
	fi
done

# plant NAME WANT BODY: a target whose input costs too much
plant() {
	cat >"$work/target.c" <<-END
		#include "driver.h"
		const char *const dictionary[] = { "x", NULL };
		static void test_input(const uint8_t *data, size_t size)
		{
			(void)data; (void)size; (void)judge_refusal; $3
		}
	END
	"${cc[@]}" -std=gnu11 -D_GNU_SOURCE -Isrc -Itests/fuzz "$work/target.c" "$build/shared.a" \
		-o "$work/target" 2>"$work/err" ||
		not_ok "$1: does not compile: $(head -3 "$work/err")"
	: >"$work/input"
	if (cd "$work" && ./target input) >"$work/out" 2>&1; then not_ok "$1: is not seen"
	elif grep -q "$2" "$work/out"; then ok "$1: is seen"; else not_ok "$1: $(head -3 "$work/out")"; fi
}
plant "an input that takes long" "of CPU time" \
	"for (volatile long i = 0; i < 1000000000; i++) if (clock() > CLOCKS_PER_SEC) return;"
plant "an input that takes memory" "bytes of memory" "free(memset(malloc(64 << 20), 1, 64 << 20));"

# A schedule that is mutated as such stays one more often than one whose bytes are: of 3000 mutants some hundred run.
(cd "$work" && exec "$build/tests/fuzz/fuzz_execute" --runs 3000 --seed 3 \
	"$top"/tests/fuzz/corpus/fuzz_schedule/*.json) >"$work/out" 2>&1
accepted=$(sed -n 's/^.* files, [0-9]* mutants .* \([0-9]*\) accepted.*/\1/p' "$work/out")
if [ "${accepted:-0}" -ge 60 ]; then ok "$accepted of 3000 mutants of schedules run"; else
	not_ok "mutants of schedules: ${accepted:-0} of 3000 run"; fi
