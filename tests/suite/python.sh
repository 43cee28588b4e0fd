# The Python package without PyTorch: calls of libblink between processes, by buffers of the standard library.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

export BLINK_LIBRARY=$build/libblink.so PYTHONPATH=runtime/python
timeout 120 "$python" -B tests/python/job.py || not_ok "tests/python/job.py: exit $?"

# What the package declares is what blink.h declares, by number of arguments, and nothing of a job is left out.
"$python" -B - runtime/include/blink.h >"$work/out" <<'END' || not_ok "declarations: $(cat "$work/out")"
import re, sys
from blink import _library as library, DataType, Op, _errors
text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
declared = {name: 0 if arguments == "void" else arguments.count(",") + 1
            for name, arguments in re.findall(r"\b(blink[A-Z]\w*)\(([^)]*)\);", text)}
ours = {name: len(arguments) for name, arguments in library._FUNCTIONS.items()}
ours |= {name: len(arguments) for name, (_, arguments) in library._OTHERS.items()}
for name, count in ours.items():
    assert declared.get(name) == count, f"{name}: {count} arguments: want {declared.get(name)}"
values = {name: int(value) for name, value in re.findall(r"\b(blink\w+) = (\d+)", text)}
for kind in DataType:
    name = "blink" + kind.name.capitalize().replace("_e", "e").replace("_E", "e")
    assert values.pop(name) == kind, name
for op in Op:
    assert values.pop("blink" + op.name.capitalize()) == op, op
for code, kind in _errors._BY_CODE.items():
    name = {"Limit": "blinkLimit", "SystemFailure": "blinkSystemError"}.get(kind.__name__, "blink" + kind.__name__)
    assert values.pop(name) == code, name
left = [name for name in values if not name.startswith(("blinkColl", "blinkShrink"))]
assert set(left) == {"blinkSuccess", "blinkInProgress", "blinkOpNext"}, left
END
[ -s "$work/out" ] || ok "declarations are those of blink.h"

without() { env -u PYTHONPATH BLINK_LIBRARY="$1" PYTHONPATH=runtime/python "$python" -B \
	-c 'import blink; blink.version()'; }
if without "$work/nowhere.so" >"$work/out" 2>&1 ||
	! grep -q "ImportError: .*nowhere.so.*: want libblink" "$work/out"; then
	not_ok "a library that is not there: $(tail -1 "$work/out")"
else
	ok "a library that is not there"
fi
if without /lib/x86_64-linux-gnu/libc.so.6 >"$work/out" 2>&1 ||
	! grep -q "ImportError: .*want libblink" "$work/out"; then
	not_ok "another library: $(tail -1 "$work/out")"
else
	ok "another library"
fi
