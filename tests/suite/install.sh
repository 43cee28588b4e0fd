# What `make install` puts where, that a program builds against it, and that `make uninstall` takes all of it away.
# shellcheck shell=bash source=tests/lib.sh disable=SC2086
. tests/lib.sh

root=$work/root
unset MAKEFLAGS MFLAGS MAKELEVEL
install_to() { (umask 077; $MAKE -s "${@:2}" install B="$BUILD" DESTDIR="$1"); }
uninstall_from() { $MAKE -s "${@:2}" uninstall B="$BUILD" DESTDIR="$1"; }

expect "make install" install_to "$root" PREFIX=/usr
while IFS= read -r f; do
	if [ -f "$root/usr/$f" ]; then ok "$f"; else not_ok "$f is not installed"; fi
done <<'END'
bin/blinkc
bin/blink-perf
lib/libblink.so
lib/libnccl-tuner-blink.so
lib/pkgconfig/blink.pc
include/blink.h
include/blink_device.h
include/blink_float.h
include/blink_kernel.h
include/blink_types.h
share/blinkc/topologies/dgx1v.xml
share/blinkc/schemas/index.schema.json
share/man/man1/blinkc.1
share/man/man1/blinkc-compile.1
share/man/man5/blink-index.5
share/man/man7/nccl-tuner-blink.7
share/bash-completion/completions/blinkc
share/bash-completion/completions/blink-perf
share/zsh/site-functions/_blinkc
share/fish/vendor_completions.d/blinkc.fish
share/doc/blinkc/README.md
share/doc/blinkc/docs/tutorial.md
END
# What the manual pages name, and what the pages that are installed link to beside them.
for f in $(grep -ohE '\b(docs|examples)/[a-z0-9./-]*[a-z0-9]' man/*.[1-9] | sort -u); do
	expect "share/doc/blinkc/$f, which a manual page names" test -f "$root/usr/share/doc/blinkc/$f"
done
for f in docs/*.* examples/*.* examples/ci/*; do
	cmp -s "$f" "$root/usr/share/doc/blinkc/$f" || not_ok "share/doc/blinkc/$f is missing or differs"
done
runs=(\( -path '*/bin/*' -o -name '*.sh' \))
modes=$(find "$root/usr" -type d ! -perm 755 -o -type f "${runs[@]}" ! -perm 755 -o -type f ! "${runs[@]}" ! -perm 644)
if [ ! "$modes" ]; then ok "whatever the umask, all can read it"; else not_ok "not to be read by all: $modes"; fi
listed() { (cd "$root" && find . -ls | sed 's/^ *[0-9]* *[0-9]* //; s/  *[A-Z][a-z][a-z]  *[0-9]* *[0-9:]* / /'); }
listed >"$work/once"
if [ "$full" ]; then
	expect "make install again" install_to "$root" PREFIX=/usr
	listed >"$work/twice"
	if cmp -s "$work/once" "$work/twice"; then
		ok "leaves the same"
	else
		not_ok "leaves something else: $(diff "$work/once" "$work/twice" | head -5)"
	fi
fi

# ---- the library ----

so=$root/usr/lib/libblink.so
for library in glpk xml2 cjson gmp nauty; do
	if ldd "$so" | grep -q "lib$library"; then
		not_ok "libblink needs $library"
	else
		ok "libblink does not need $library"
	fi
done
# What programs that were linked with a release find in later ones (libblink(3), Compatibility).
exported() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort; }
exported "$so" >"$work/exported"
if cmp -s "$work/exported" tests/symbols; then ok "exports the symbols of tests/symbols, in their versions"; else
	not_ok "exports: $(diff tests/symbols "$work/exported" | grep '^[<>]' | tr '\n' ' ')"; fi
grep -oE '\bblink[A-Z][A-Za-z0-9]*\(' runtime/include/blink.h | tr -d '(' | sort -u >"$work/declared"
if cmp -s <(sed 's/@.*//' "$work/exported") "$work/declared"; then ok "exports what blink.h declares"; else
	not_ok "exports: $(diff "$work/exported" "$work/declared" | tr '\n' ' ')"; fi
soname=$(readelf -d "$so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
if [ "$soname" = "libblink.so.$(sed -n 's/^SOVERSION = //p' Makefile)" ] && [ -e "$root/usr/lib/$soname" ]; then
	ok "$soname"
else
	not_ok "SONAME $soname"
fi

# ---- programs that use it ----

export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
if flags=$(pkg-config --cflags --libs blink); then
	for example in allreduce lookup job; do
			expect "examples/$example.c builds against it" "${cc[@]}" -Wall -Werror examples/$example.c \
				-o "$work/$example" $flags
	done
	expect "types and numbers are those that programs were compiled with" "${cc[@]}" -std=c99 -Wall -Wextra \
		-Wpedantic -Werror -c \
		tests/consumer/abi.c -o "$work/abi.o" $flags
	# shellcheck disable=SC2013 # words
	for name in $(sed 's/@.*//' tests/symbols); do
		grep -q "= *$name;\|^    $name;" tests/consumer/abi.c || not_ok "tests/consumer/abi.c: $name is missing"
	done
	"$root/usr/bin/blinkc" -q "$root/usr/share/blinkc/topologies/dgx1v.xml" -o "$work/s.json" ||
		not_ok "installed blinkc: exit $?"
	printf '<topology format="blink-topology" version="1" name="t">%s</topology>' \
		'<node id="s" file="dgx1v.xml" count="2"/>' >"$work/t.xml"
	expect "a topology that is installed, by reference" "$root/usr/bin/blinkc" convert \
		"$work/t.xml" -o "$work/flat.json"
	expect "as C and as C++" env LD_LIBRARY_PATH="$root/usr/lib" $MAKE -s -C tests/consumer OUT="$work" \
		SCHEDULE="$work/s.json"
	expect "a program that loads libblink compiles" "${cc[@]}" -std=c99 -Wall -Wextra -Werror -D_GNU_SOURCE \
		-I"$root/usr/include" \
		tests/consumer/local.c -rdynamic -ldl -o "$work/local"
	expect "RTLD_LOCAL, in a program that has a cJSON of its own" "$work/local" "$so" "$work/s.json"
	expect "the example runs" env LD_LIBRARY_PATH="$root/usr/lib" "$work/allreduce" "$work/s.json"
	expect "installed blink-perf runs" "$root/usr/bin/blink-perf" "$work/s.json" -b 1K -e 1K -n 1
	if command -v g++ >/dev/null; then
		printf '#include <blink.h>\nint main() { return blinkGetErrorString(blinkSuccess) == nullptr; }\n' \
			>"$work/x.cc"
			expect "blink.h is C++ too" g++ -Wall -Werror "$work/x.cc" -o "$work/x" $flags
	fi
else
	not_ok "pkg-config does not find blink"
fi
version=$(pkg-config --modversion blink)
if [ "$version" = "$("$blinkc" --version | sed 's/blinkc //')" ]; then
	ok "pkg-config knows version $version"
else
	not_ok "pkg-config has version $version"
fi
expect "make uninstall" uninstall_from "$root" PREFIX=/usr
left=$(find "$root" ! -type d)
if [ -z "$left" ]; then ok "uninstall leaves nothing"; else not_ok "uninstall leaves $left"; fi
left=$(find "$root/usr/share" -name blinkc)
if [ -z "$left" ]; then ok "and none of our directories"; else not_ok "uninstall leaves $left"; fi

# ---- elsewhere ----

unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
# A prefix with blanks, a library in a directory of its own, and files of others beside ours.
root=$work/other place="/opt/my tools"
mkdir -p "$root$place/share/man/man1" "$root$place/lib/x/pkgconfig"
mkdir -p "$root$place/share/doc/blinkc/examples"
: >"$root$place/share/doc/blinkc/examples/mine.sh"
: >"$root$place/share/man/man1/other.1"
: >"$root$place/lib/x/libblink.so.7"
expect "make install to $place" install_to "$root" PREFIX="$place" LIBDIR="$place/lib/x" BINDIR="$place/sbin/y"
export PKG_CONFIG_PATH=$root$place/lib/x/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
if eval "set -- $(pkg-config --cflags --libs blink)" && [ $# -ge 3 ]; then
	expect "a program builds against that" "${cc[@]}" -Wall -Werror examples/allreduce.c -o "$work/there" "$@"
	expect "and runs" env LD_LIBRARY_PATH="$root$place/lib/x" "$work/there" "$work/s.json"
else
	not_ok "pkg-config does not find blink in $place"
fi
mv "$root$place" "$work/moved place"
expect "installed blink-perf finds its library, wherever it is" "$work/moved place/sbin/y/blink-perf" \
	"$work/s.json" -b 1K -e 1K -n 1
mv "$work/moved place" "$root$place"
unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
expect "make uninstall from $place" uninstall_from "$root" PREFIX="$place" LIBDIR="$place/lib/x" BINDIR="$place/sbin/y"
left=$(cd "$root$place" && find . ! -type d | sort | tr '\n' ' ')
if [ "$left" = "./lib/x/libblink.so.7 ./share/doc/blinkc/examples/mine.sh ./share/man/man1/other.1 " ]; then
	ok "what others put there stays"
else
	not_ok "uninstall leaves $left"
fi
[ ! "$full" ] || expect "make uninstall where nothing is" uninstall_from "$work/nowhere" PREFIX=/usr
