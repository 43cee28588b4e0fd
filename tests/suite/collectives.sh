# Schedules of all eight collectives, made by hand (tests/oracle/selftest.py): checked, and executed with every element
# checked. One rank alone is not accepted.
. tests/lib.sh

oracle selftest "$work" >"$work/log" || not_ok "the oracles' own test: $(tail -1 "$work/log")"
seen=
for file in "$work"/*.json; do
	name=$(basename "$file" .json)
	case $name in
	*-alone) expect_exit "$name is refused" 3 "$blinkc" check "$file"; continue ;;
	esac
	seen="$seen ${name%%-*}"
	expect "$name: blinkc check" "$blinkc" check -q "$file"
	"$blinkc" convert "$file" -o "$work/s.cu" || not_ok "$name: convert: exit $?"
	expect "$name: as source code" "${CC:-cc}" -x c -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -Iruntime/include \
		"$work/s.cu" -o "$work/s.so" -pthread
	for type in int32 float double; do
		if "$perf" "$work/s.so" -b 24 -e 400K -f 7 -n 1 -w 0 -d $type >"$work/log" 2>&1 &&
			grep -q '^# Out of bounds values : 0 OK' "$work/log"; then ok "$name $type so"; else
			not_ok "$name $type so: $(tail -3 "$work/log" | tr '\n' ' ')"; fi
		if "$perf" "$file" -b 24 -e 400K -f 7 -n 1 -w 0 -d $type -o all >"$work/log" 2>&1 &&
			grep -q '^# Out of bounds values : 0 OK' "$work/log"; then ok "$name $type"; else
			not_ok "$name $type: $(tail -3 "$work/log" | tr '\n' ' ')"; fi
	done
done
for c in broadcast reduce allreduce gather scatter allgather reducescatter alltoall; do
	case "$seen " in *" $c "*) ok "$c is among them" ;; *) not_ok "no schedule of $c" ;; esac
done
