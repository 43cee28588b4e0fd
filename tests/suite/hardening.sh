# What the programs and the library are built with, read from their ELF files: `make` hardens as Debian does, with the
# flags that the compiler and the target have.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if grep -q -- -fsanitize "$build/flags"; then
	skip "all of it: $build is built under a sanitizer"
	exit 0
fi
read -r -a cc <<<"$(sed 's/ -std=.*//' "$build/flags")"
accepts() { echo 'int main(void) { return 0; }' | "${cc[@]}" -Werror "$@" -x c - -o /dev/null 2>/dev/null; }

# has NAME PATTERN COMMAND...: what the command prints has the pattern
has() {
	local name=$1 pattern=$2
	shift 2
	if "$@" 2>/dev/null | grep -qE -- "$pattern"; then ok "$name"; else not_ok "$name: no $pattern in $*"; fi
}
lacks() {
	local name=$1 pattern=$2
	shift 2
	if "$@" 2>/dev/null | grep -qE -- "$pattern"; then not_ok "$name: $pattern in $*"; else ok "$name"; fi
}

for file in blinkc blink-perf libblink.so libnccl-tuner-blink.so; do
	elf=$build/$file
	has "$file: all symbols are bound at the start" '\(FLAGS_1\).*\bNOW\b' readelf -dW "$elf"
	has "$file: what is relocated is read-only then" '^ *GNU_RELRO ' readelf -lW "$elf"
	has "$file: the stack is not executable" '^ *GNU_STACK .* RW ' readelf -lW "$elf"
	lacks "$file: no memory to write and execute" '^ *LOAD .* RWE ' readelf -lW "$elf"
	lacks "$file: no relocations in code" TEXTREL readelf -dW "$elf"
	has "$file: moves in memory" 'Type: *DYN' readelf -hW "$elf"
	[[ $file == *.so ]] || has "$file: is a position-independent executable" \
		'\(FLAGS_1\).*\bPIE\b' readelf -dW "$elf"
	! accepts -fstack-protector-strong || has "$file: stack protector" ' U __stack_chk_fail\b' nm -D "$elf"
	case $(<"$build/flags") in *-O[123s]*) has "$file: fortified functions" \
		' U __[a-z]*printf_chk\b' nm -D "$elf" ;; esac
done

# These leave no symbol. A function of large frame touches each page of it; the first instruction of any is a target.
flags=$(<"$build/flags")
for flag in -fstack-protector-strong -fstack-clash-protection -fcf-protection -mbranch-protection=standard; do
	if ! accepts $flag; then
		case $flags in *" $flag "*) not_ok "$flag: used, but not known to ${cc[*]}" ;; *) \
			[ $flag = -mbranch-protection=standard ] || skip "$flag: not known to ${cc[*]}" ;; esac
	else
		case $flags in *" $flag "*) ok "$flag" ;; *) not_ok "$flag: not used" ;; esac
	fi
done
if [ "$(uname -m)" = x86_64 ] && accepts -fcf-protection && command -v objdump >/dev/null; then
	has "functions begin where they may be jumped to" endbr64 objdump \
		-d --disassemble=blinkVersion "$build/libblink.so"
fi

# ---- compilers that know less ----

unset MAKEFLAGS MFLAGS MAKELEVEL
cat >"$work/cc" <<END
#!/bin/sh
case " \$* " in *" -fcf-protection "* | *" -fstack-clash-protection "* | *"-z,now"*) exit 1 ;; esac
exec ${cc[*]} "\$@"
END
chmod +x "$work/cc"
dry() { $MAKE -n V=1 B="$work/b" "$@" "$work/b/src/base/arena.o" "$work/b/libblink.so" 2>&1; }
dry CC="$work/cc" >"$work/dry"
has "a compiler that knows less: what it knows" ' -fstack-protector-strong .* -c ' cat "$work/dry"
lacks "a compiler that knows less: nothing else" '-fcf-protection|-fstack-clash|-z,now' cat "$work/dry"
dry CFLAGS="-O0 -g" >"$work/dry"
lacks "without optimisation: no fortified functions, of which libc would warn" FORTIFY cat "$work/dry"
dry CPPFLAGS=-D_FORTIFY_SOURCE=2 >"$work/dry"
lacks "as dpkg-buildflags asks: once, and so" '-D_FORTIFY_SOURCE=3' cat "$work/dry"
dry CFLAGS="-O1 -fsanitize=address" >"$work/dry"
lacks "under a sanitizer: none" '-fstack-protector|-D_FORTIFY_SOURCE|-z,relro' cat "$work/dry"
