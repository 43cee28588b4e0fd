# Schedules of all eight collectives, made by hand (tests/oracle/selftest.py): checked, and executed with every element
# checked. One rank alone is not accepted.
. tests/lib.sh

most=$([ "$full" ] && echo 400K || echo 60K)	# bytes
clang=${CLANG:-$(command -v clang || true)}
# executed NAME FILE OPTION...: with every element checked
executed() {
	local name=$1
	shift
	if "$perf" -b 24 -e "$most" -f 7 -n 1 -w 0 "$@" >"$work/log" 2>&1 &&
		grep -q '^# Out of bounds values : 0 OK' "$work/log"; then
		ok "$name"
	else
		not_ok "$name: $(tail -3 "$work/log" | tr '\n' ' ')"
	fi
}

oracle selftest "$work" >"$work/log" || not_ok "the oracles' own test: $(tail -1 "$work/log")"
seen=
for file in "$work"/*.json; do
	name=$(basename "$file" .json)
	case $name in
	*-alone) expect_exit "$name is refused" 3 "$blinkc" check "$file"; continue ;;
	esac
	c=${name%%-*}
	# In `make check` all types for the first schedule of each collective, and source code of two of these, one of
	# them by clang.
	case "$seen " in *" $c "*) first= ;; *) first=1 ;; esac
	seen="$seen $c"
	expect "$name: blinkc check" "$blinkc" check -q "$file"
	executed "$name int32" "$file" -d int32 -o all
	[ "$first$full" ] || continue
	for type in float double; do executed "$name $type" "$file" -d $type -o all; done
	case $full$c in 1* | allreduce | alltoall) ;; *) continue ;; esac
	"$blinkc" convert "$file" -o "$work/s.cu" || not_ok "$name: convert: exit $?"
	expect "$name: as source code" "${cc[@]}" -x c -std=gnu11 "-O${full:-0}" -Wall -Wextra -Werror -shared \
		-fPIC -Iruntime/include \
		"$work/s.cu" -o "$work/s.so" -pthread
	for type in int32 float double; do executed "$name $type so" "$work/s.so" -d $type; done
	# clang's UBSan, unlike that of gcc, also sees an offset to a null pointer.
	[ "$full" ] || [ "$c" = allreduce ] || continue
	[ "$clang" ] || { skip "$name: no clang"; continue; }
	expect "$name: by clang, with UBSan" "$clang" -x c -std=gnu11 -O1 -fsanitize=undefined \
		-fsanitize-trap=undefined -shared -fPIC \
		-Iruntime/include "$work/s.cu" -o "$work/ubsan.so" -pthread
	executed "$name so with UBSan" "$work/ubsan.so" -b 4
done
for c in broadcast reduce allreduce gather scatter allgather reducescatter alltoall; do
	case "$seen " in *" $c "*) ok "$c is among them" ;; *) not_ok "no schedule of $c" ;; esac
done
