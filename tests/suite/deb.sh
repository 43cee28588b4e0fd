# Debian packages: they build from what is committed, twice the same, hold what they should, and go away again.
# shellcheck shell=bash source=tests/lib.sh disable=SC2086
. tests/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL

# ---- one version ----

version=$(sed -n 's/^VERSION = //p' Makefile)
heading=$(sed -n 's/^## //p' CHANGELOG.md | head -1)
if [ "${heading%% *}" = "$version" ]; then
	ok "CHANGELOG.md begins with $version"
else
	not_ok "CHANGELOG.md begins with $heading, VERSION is $version"
fi
first=$(sed -nE '1s/^blinkc \(([^)]*)\) .*/\1/p' debian/changelog)
if [ "$first" = "$version" ]; then
	ok "debian/changelog begins with $version"
else
	not_ok "debian/changelog begins with $first, VERSION is $version"
fi
soversion=$(sed -n 's/^SOVERSION = //p' Makefile)
expect "the package of the library is libblink$soversion" grep -qx "Package: libblink$soversion" debian/control
if cmp -s <(sed 's/@@/@/' tests/symbols) <(awk '/^ blink/ { print $1 }' debian/libblink"$soversion".symbols); then
	ok "debian/libblink$soversion.symbols has the symbols of tests/symbols"
else
	not_ok "debian/libblink$soversion.symbols: other symbols than tests/symbols"
fi
# shellcheck disable=SC2013 # words
for package in $(sed -n '/^DEPS = /s/.*= //p' Makefile); do
	expect "Build-Depends: $package" grep -qx " $package," debian/control
done

for tool in dpkg-buildpackage dh git; do
	command -v $tool >/dev/null || { skip "packages: $tool is not there"; exit 0; }
done
git rev-parse HEAD >/dev/null 2>&1 || { skip "packages: this is no checkout of git"; exit 0; }
if nm -D "$blinkc" | grep -q '__[at]san_init'; then
	skip "packages: this build has a sanitizer, and packages have none"
	exit 0
fi

# ---- built twice, elsewhere and by others ----

# The second time only every eighth object is compiled anew, chosen by a checksum. The rest are those of the first time,
# if they were asked for by the same words: no source asks for the time, and no object names the place where it was
# made.
export DEB_BUILD_OPTIONS=noautodbgsym
mkdir "$work/bin" "$work/kept"
cat >"$work/bin/cc" <<END
#!/bin/sh
# The compiler; it keeps objects, by what was asked.
PATH='$PATH' kept='$work/kept'
case "\$*" in
*" -c -o "*) ;;
*) exec cc "\$@" ;;
esac
for word; do
	[ "\$before" != -o ] || object=\$word
	before=\$word
done
asked=\$(printf '%s\n' "\$*" | sed "s|\$PWD|.|g" | cksum | cut -d ' ' -f 1)
if [ -e "\$kept/\$asked.o" ] && [ \$((asked % 8)) != 0 ]; then
	echo kept >>"\$kept/log"
	exec cp "\$kept/\$asked.o" "\$object"
fi
[ ! -e "\$kept/\$asked.o" ] || echo anew >>"\$kept/log"
cc "\$@" && cp "\$object" "\$kept/\$asked.o"
END
# And what it makes of the kernels, which the second time are all as they were; the first time, too, where this build
# has those of what is committed, by the same words.
ready=
[[ $(cat "$build/gen/ptx/flags" 2>/dev/null) != "clang clang "* ]] ||
	! git diff --quiet HEAD -- Makefile runtime/cuda runtime/include || ready=$build/gen/ptx
[ ! "$(command -v clang)" ] || cat >"$work/bin/clang" <<END
#!/bin/sh
PATH='$PATH' kept='$work/kept'
for word; do
	[ "\$before" != -o ] || made=\$word
	before=\$word
done
name=\$(basename "\$made" .new)
[ "$ready" ] && [ "\${name%.ptx}" != "\$name" ] && [ -e "$ready/\$name" ] && exec cp "$ready/\$name" "\$made"
asked=\$(printf '%s\n' "\$*" | sed "s|\$made||g" | cksum | cut -d ' ' -f 1)
[ "\$made" ] && [ -e "\$kept/\$asked.ptx" ] && exec cp "\$kept/\$asked.ptx" "\$made"
clang "\$@" && { [ ! "\$made" ] || cp "\$made" "\$kept/\$asked.ptx"; }
END
chmod +x "$work"/bin/*
# Of a clone, as there may be commits meanwhile.
expect "git clone" git clone -q --shared "$top" "$work/source"
make_deb() { PATH=$work/bin:$PATH $MAKE -s -C "$work/source" deb B="$1"; }
expect "make deb" make_deb "$work/one"
again() { (umask 027; TZ=Pacific/Apia DEB_BUILD_OPTIONS='noautodbgsym nocheck' make_deb "$work/quite/elsewhere"); }
expect "make deb again" again
objects=$(find "$work/one/deb/blinkc-$version/build" -name '*.o' | wc -l)
anew=$(grep -c anew "$work/kept/log")
if [ "$anew" -gt 0 ] && [ $((anew + $(grep -c kept "$work/kept/log"))) = "$objects" ]; then
	ok "$anew of $objects objects are compiled anew"
else
	not_ok "$anew of $objects objects are compiled anew: want some, and the rest kept"
fi
named=$(grep -rlF "$work" "$work/one/deb/blinkc-$version/build" --include='*.o' | head -3)
if [ ! "$named" ]; then ok "no object names its place"; else not_ok "objects name their place: $named"; fi
timed=$(grep -rnE '__(DATE|TIME|TIMESTAMP)__' src runtime --include='*.[ch]')
if [ ! "$timed" ]; then ok "no source asks for the time"; else not_ok "sources ask for the time: $timed"; fi
n=0
for file in "$work"/one/deb/*.deb "$work"/one/deb/*.tar.xz; do
	n=$((n + 1))
	name=$(basename "$file")
	if cmp -s "$file" "$work/quite/elsewhere/deb/$name"; then
		ok "$name: the same bytes"
	else
		not_ok "$name: other bytes"
	fi
done
[ $n = 7 ] || not_ok "$n files: want six packages and the source"
if command -v lintian >/dev/null; then
	lintian --allow-root --display-info --pedantic "$work"/one/deb/*.changes >"$work/log" 2>&1
	if grep -q '^[EWIP]: ' "$work/log"; then
		not_ok "lintian: $(grep '^[EWIP]: ' "$work/log" | tr '\n' ' ')"
	else
		ok "lintian finds nothing"
	fi
else
	skip "lintian: it is not there"
fi

# ---- what is in them ----

depends() { dpkg-deb -f "$work"/one/deb/"$1"_*.deb Depends; }
for library in glpk xml nauty; do
	case "$(depends libblink"$soversion") $(depends blink-perf) $(depends nccl-tuner-blink)" in
	*lib$library*) not_ok "libblink, blink-perf or the plugin for NCCL depends on $library" ;;
	*) ok "libblink, blink-perf and the plugin for NCCL do not depend on $library" ;; esac
done
case $(depends blink-perf) in
*libblink$soversion*) ok "blink-perf depends on libblink$soversion" ;;
*) not_ok "blink-perf depends on $(depends blink-perf)" ;;
esac
mkdir "$work/tree"
for file in "$work"/one/deb/*.deb; do
	dpkg-deb -x "$file" "$work/tree"
	dpkg-deb -c "$file" | awk '$1 !~ /^d/ { print $6 }'
done | sort >"$work/files"
if [ ! "$(uniq -d "$work/files")" ]; then
	ok "no file is in two packages"
else
	not_ok "in two packages: $(uniq -d "$work/files")"
fi
lib=$(dirname "$(find "$work/tree/usr/lib" -name libblink.so)")
bin=$work/tree/usr/bin
expect "blinkc runs" "$bin/blinkc" -q "$work/tree/usr/share/blinkc/topologies/dgx1v.xml" -o "$work/s.json"
expect "blink-perf runs" env LD_LIBRARY_PATH="$lib" "$bin/blink-perf" "$work/s.json" -b 1K -e 1K -n 1
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/tree
# shellcheck disable=SC2046 # a list of words
expect "an example builds with it" "${cc[@]}" "$work/tree/usr/share/doc/libblink-dev/examples/allreduce.c" \
	-o "$work/allreduce" $(pkg-config --cflags --libs blink)
expect "and runs" env LD_LIBRARY_PATH="$lib" "$work/allreduce" "$work/s.json"
for f in $(grep -ohE '\b(docs|examples)/[a-z0-9./-]*[a-z0-9]' man/*.[1-9] | sort -u); do
	expect "a package has $f, which a manual page names" ls "$work"/tree/usr/share/doc/*/"${f%.md}"*
done
for elf in "$bin"/* "$lib"/libblink.so "$lib"/libnccl-tuner-blink.so; do
	if readelf -dlW "$elf" | grep -q GNU_RELRO && readelf -dW "$elf" | grep -q 'FLAGS_1.*NOW' && nm -D "$elf" |
		grep -q __stack_chk_fail &&
		nm -D "$elf" | grep -q '_chk@'; then ok "$(basename "$elf") is hardened"; else not_ok \
			"$(basename "$elf") is not hardened"; fi
done
if readelf -d "$bin"/* "$lib"/*.so | grep -qE 'RPATH|RUNPATH'; then
	not_ok "a run path"
else
	ok "no run path"
fi

# ---- installed, and purged ----

as_root=()
[ "$(id -u)" = 0 ] || as_root=(fakeroot)
if [ "${as_root[*]}" ] && ! command -v fakeroot >/dev/null; then
	skip "dpkg --install: neither root nor fakeroot"
	exit 0
fi
root=$work/root
mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/triggers"
: >"$root/var/lib/dpkg/status"
dpkg_there() { "${as_root[@]}" dpkg --root="$root" --log=/dev/null --force-depends --force-not-root "$@"; }
expect "dpkg --install" dpkg_there --install "$work"/one/deb/*.deb
if [ -x "$root/usr/bin/blinkc" ]; then ok "is installed"; else not_ok "is not installed"; fi
expect "dpkg --verify" dpkg_there --verify
expect "dpkg --purge" dpkg_there --purge blinkc blink-perf nccl-tuner-blink libblink-nccl"$soversion" \
	libblink"$soversion" libblink-dev
left=$(find "$root" -path "$root/var/lib/dpkg" -prune -o ! -type d -print -o -path '*blink*' -print)
if [ ! "$left" ]; then ok "purging leaves nothing"; else not_ok "purging leaves $left"; fi
