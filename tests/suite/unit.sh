# The unit tests in C: each prints ok and not ok lines of its own, also under the sanitizers.
. tests/lib.sh

for kind in "" asan/ tsan/; do
	for source in tests/unit/*.c; do
		name=$(basename "$source" .c)
		# Threads are in the runtime only.
		[ $kind = tsan/ ] && [ "$name" != test_runtime ] && [ "$name" != test_index ] && continue
		program=$build/${kind}tests/unit/$name
		if [ ! -x "$program" ]; then
			not_ok "$kind$name: not built"
			continue
		fi
		"$program" >"$work/log" 2>&1
		code=$?
		sed -n "s|^ok |ok $suite: $kind$name: |p; s|^not ok |not ok $suite: $kind$name: |p; s|^skip |skip $suite: $kind$name: |p" \
			"$work/log"
		if [ $code != 0 ]; then
			not_ok "$kind$name: exit $code"
			tail -30 "$work/log" | sed 's/^/# /'
		fi
	done
done
