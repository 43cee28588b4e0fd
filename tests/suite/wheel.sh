# The wheel: built twice the same, installed by pip where nothing else is, and the package runs there.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh
unset MAKEFLAGS MFLAGS MAKELEVEL

wheel() { $MAKE -s wheel B="$BUILD" >"$work/name" 2>"$work/err" && tail -1 "$work/name"; }
first=$(wheel) || not_ok "make wheel: $(tail -3 "$work/err")"
[ -f "$first" ] || { not_ok "make wheel: no file"; exit 0; }
ok "make wheel: $(basename "$first")"
cp "$first" "$work/first.whl"
touch runtime/python/blink/__init__.py
second=$(umask 077; TZ=Asia/Tokyo wheel)
expect "the same bytes again" cmp "$work/first.whl" "$second"
# Half of it is the kernels as PTX, once for all GPUs and once for those of capability 7.0 and later.
expect "at most 2.6 MB" test "$(wc -c <"$first")" -lt 2600000

needed=$(objdump -p "$build/wheel/libblink.so.0" | awk '/NEEDED/ { print $2 }' |
	grep -vE '^(lib(c|m|dl|pthread|rt)\.so|ld-linux)' | tr '\n' ' ')
case $first in
*manylinux*) expect "manylinux: needs glibc alone: $needed" test -z "$needed" ;;
*) expect "linux: needs $needed" test -n "$needed" ;;
esac
exported() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort; }
expect "it exports what libblink.so does" diff <(exported "$build/libblink.so") <(exported "$build/wheel/libblink.so.0")

if ! "$python" -m venv "$work/venv" >"$work/out" 2>&1; then
	skip "pip install: $python has no venv: $(head -1 "$work/out")"
	exit 0
fi
expect "pip installs it" "$work/venv/bin/pip" install -q --no-index --disable-pip-version-check "$second"
cd "$work" || exit 1
expect "all files are as RECORD says" "$work/venv/bin/python" - <<'END'
import base64, hashlib, importlib.metadata as metadata
files = metadata.files("libblink")
assert len(files) > 10
for file in files:
    if file.hash:
        digest = hashlib.sha256(file.read_binary()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value, file
END
env -u BLINK_LIBRARY -u PYTHONPATH timeout 120 "$work/venv/bin/python" -B "$top/tests/python/job.py" >"$work/out" 2>&1
expect "what tests/python/job.py tries, by its own library: $(grep -v '^ok' "$work/out" | head -3)" \
	test "$(grep -c '^ok' "$work/out") $(grep -vc '^ok' "$work/out")" = "11 0"
expect "the library is the wheel's" "$work/venv/bin/python" -c \
	'from blink._library import library; import blink; assert library()._name.startswith(blink.__path__[0])'
expect "pip removes it" "$work/venv/bin/pip" uninstall -q -y libblink
left=$(find "$work/venv" -name '*blink*')
expect "nothing is left: $left" test -z "$left"
