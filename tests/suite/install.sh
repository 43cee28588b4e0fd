# What `make install` puts where, and that a program builds against it.
. tests/lib.sh

root=$work/root
expect "make install" $MAKE -s install B="$build" DESTDIR="$root" PREFIX=/usr
for f in bin/blinkc bin/blink-perf lib/libblink.so lib/pkgconfig/blink.pc include/blink.h include/blink_device.h \
	share/blinkc/topologies/dgx1v.xml share/blinkc/schemas/schedule.schema.json share/man/man1/blinkc.1; do
	if [ -e "$root/usr/$f" ]; then ok "$f"; else not_ok "$f is not installed"; fi
done
so=$root/usr/lib/libblink.so
for library in glpk xml2 gmp; do
	if ldd "$so" | grep -q "lib$library"; then not_ok "libblink needs $library"; else ok "libblink does not need $library"; fi
done
nm -D --defined-only "$so" | awk '{ print $3 }' | grep -v '^BLINK_' | sort >"$work/exported"
grep -o 'blink[A-Z][A-Za-z0-9]*' runtime/libblink.map | sort -u >"$work/mapped"
grep -oE '\bblink[A-Z][A-Za-z0-9]*\(' runtime/include/blink.h | tr -d '(' | sort -u >"$work/declared"
sed -i 's/@.*//' "$work/exported"
if cmp -s "$work/exported" "$work/declared"; then ok "exports what blink.h declares"; else
	not_ok "exports: $(diff "$work/exported" "$work/declared" | tr '\n' ' ')"; fi
if grep -q '^blink' "$work/exported" && ! grep -qv '^blink' "$work/exported"; then ok "exports nothing else"; else
	not_ok "exports $(grep -v '^blink' "$work/exported" | tr '\n' ' ')"; fi

export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
if flags=$(pkg-config --cflags --libs blink); then
	# shellcheck disable=SC2086 # a list of words
	expect "examples/allreduce.c builds against it" "${CC:-cc}" -Wall -Werror examples/allreduce.c -o "$work/example" $flags
	"$root/usr/bin/blinkc" -q "$root/usr/share/blinkc/topologies/dgx1v.xml" -o "$work/s.json" || not_ok "installed blinkc: exit $?"
	printf '<topology format="blink-topology" version="1" name="t"><node id="s" file="dgx1v.xml" count="2"/></topology>' >"$work/t.xml"
	expect "a topology that is installed, by reference" "$root/usr/bin/blinkc" convert "$work/t.xml" -o "$work/flat.json"
	expect "the example runs" env LD_LIBRARY_PATH="$root/usr/lib" "$work/example" "$work/s.json"
	expect "installed blink-perf runs" "$root/usr/bin/blink-perf" "$work/s.json" -b 1K -e 1K -n 1
	if command -v g++ >/dev/null; then
		printf '#include <blink.h>\nint main() { return blinkGetErrorString(blinkSuccess) == nullptr; }\n' >"$work/x.cc"
		# shellcheck disable=SC2086 # a list of words
		expect "blink.h is C++ too" g++ -Wall -Werror "$work/x.cc" -o "$work/x" $flags
	fi
else
	not_ok "pkg-config does not find blink"
fi
expect "make uninstall" $MAKE -s uninstall B="$build" DESTDIR="$root" PREFIX=/usr
left=$(find "$root" ! -type d)
if [ -z "$left" ]; then ok "uninstall leaves nothing"; else not_ok "uninstall leaves $left"; fi
