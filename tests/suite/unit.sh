# The unit tests in C: each prints ok and not ok lines of its own; in the full test also under sanitizers.
# $unit_program: that one alone.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

kinds=("")
only=${unit_program:-*}
[ ! "$full" ] || kinds+=(asan/)
[ ! "$full" ] || kinds+=(tsan/)
# Threads are in the runtime only.
threaded='^test_(runtime|program|index|process|net|ucx|net_broken|net_zero|bootstrap|deaths|strangers|bell|shm|'
threaded+='gpu_memory|gpu_relay|kernels|virtual_.*)$'
for kind in "${kinds[@]}"; do
	# ThreadSanitizer does not survive UCX's shared memory, where it looks for a shadow of 500 TB.
	[ "$kind" != tsan/ ] || export UCX_TLS=tcp
	for source in tests/unit/$only.c; do
		name=$(basename "$source" .c)
		[ "$kind" = tsan/ ] && [[ ! $name =~ $threaded ]] && continue
		program=$build/${kind}tests/unit/$name
		if [ ! -x "$program" ]; then
			not_ok "$kind$name: not built"
			continue
		fi
		# Seed, and how many random schedules of each collective are executed; so are jobs and deaths.
		schedules=15
		[ ! "$full" ] || schedules=30
		# libhwloc's plugin for PCI devices leaks 1 kB, and is unloaded before anybody could say whose it is.
		leaks=1
		[ "$kind$name" != asan/test_live ] || leaks=0
		ASAN_OPTIONS=detect_leaks=$leaks "$program" 1 $schedules >"$work/log" 2>&1
		code=$?
		for word in ok "not ok" skip; do sed -n "s|^$word |$word $suite: $kind$name: |p" "$work/log"; done
		if [ $code != 0 ]; then
			not_ok "$kind$name: exit $code"
			tail -30 "$work/log" | sed 's/^/# /'
		fi
	done
done
