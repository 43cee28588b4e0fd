# The backend of torch.distributed, where PyTorch is: each collective, type and operation, against gloo; calls, errors,
# training; and that types are complete. `make check-torch` installs PyTorch; TORCH_PYTHON: a Python that has another.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

torch=$(torch_python 'd.is_gloo_available() and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 6)')
if [ ! "$torch" ]; then
	skip "all of it: PyTorch 2.6 or newer is missing; make check-torch installs it"
	exit 0
fi
export BLINK_LIBRARY=$build/libblink.so PYTHONPATH=$top/runtime/python PYTHONDONTWRITEBYTECODE=1

for part in collectives calls errors training; do
	timeout 280 "$torch" tests/torch/$part.py || not_ok "tests/torch/$part.py: exit $?"
done

# The programs of docs/pytorch.md, as files, and its commands.
mkdir "$work/doc"
awk -v out="$work/doc/" '/^```python$/ { n++; inside = 1; next } /^```/ { inside = 0 }
	inside { print > (out n ".py") }' docs/pytorch.md
expect "docs/pytorch.md has programs" test -s "$work/doc/1.py"
for program in "$work"/doc/*.py; do
	expect "docs/pytorch.md: $(basename "$program")" env OMP_NUM_THREADS=1 timeout 120 \
		"$torch" -m torch.distributed.run --standalone --nproc-per-node 3 "$program"
done
grep -qF 'loss 0.' "$work/out" || not_ok "docs/pytorch.md: prints no loss: $(head -3 "$work/out")"

# The example: the tokens of one rank, by both backends.
expect "examples/tensor_parallel.py" env OMP_NUM_THREADS=1 ROUNDS=1 timeout 120 \
	"$torch" -m torch.distributed.run --standalone --nproc-per-node 2 examples/tensor_parallel.py
grep -q '^blink .* tokens/s .*step$' "$work/out" || not_ok "examples/tensor_parallel.py: prints $(head -3 "$work/out")"

# Groups of a DeviceMesh, in flight at once, take the schedules that were planned for all of them together.
"$blinkc" job -q examples/jobs/dgx1v.json -o "$work/groups" || not_ok "job: exit $?"
expect "groups of a DeviceMesh" env OMP_NUM_THREADS=1 BLINK_SCHEDULES="$work/groups" BLINK_DEBUG=INFO timeout 120 \
	"$torch" -m torch.distributed.run --standalone --nproc-per-node 8 tests/torch/mesh.py
for file in backward/dp-allreduce/0.json backward/dp-allreduce/1.json forward/tp-allreduce/3.json; do
	grep -qF "allreduce of 0 to 9223372036854775807 bytes: $work/groups/$file: trees" "$work/out" ||
		not_ok "groups of a DeviceMesh: no $file: $(grep -m 3 allreduce "$work/out")"
done

if "$torch" -c 'import mypy' 2>/dev/null; then
	cd runtime/python || exit 1
	expect "mypy --strict: the package" "$torch" -m mypy --strict --cache-dir "$work/mypy" -p blink
	cd "$top" || exit 1
	MYPYPATH=runtime/python:tests/torch expect "mypy --strict: the tests" "$torch" -m mypy --strict \
		--cache-dir "$work/mypy" \
		--explicit-package-bases tests/torch tests/python runtime/python/wheel.py examples/tensor_parallel.py
else
	skip "mypy: it is missing; make check-torch installs it"
fi
