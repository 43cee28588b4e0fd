# PyTorch for CUDA with libblink-nccl in the place of its NCCL: names, imports, and its backend "nccl" on virtual GPUs.
# `make check-torch` installs PyTorch, 6 GB; TORCH_PYTHON: a Python that has another.
# shellcheck shell=bash source=tests/lib.sh disable=SC2154
. tests/lib.sh

torch=$(torch_python 'torch.version.cuda and d.is_nccl_available()')
if [ ! "$torch" ]; then
	skip "all of it: PyTorch for CUDA is missing; make check-torch installs it"
	exit 0
fi
export PYTHONPATH=$top/runtime/python PYTHONDONTWRITEBYTECODE=1 BLINK_LIBRARY=$build/libblink.so
unset BLINK_NCCL BLINK_SCHEDULES BLINK_BACKEND LD_PRELOAD
IFS=' ' read -r version cuda libraries < <("$torch" -c 'import torch
print(torch.__version__, torch.version.cuda.split(".")[0], torch.__path__[0] + "/lib")')

# ---- names ----

nm -D --undefined-only "$libraries"/*.so | awk '$2 ~ /^p?nccl/ { print $2 }' | sort -u >"$work/needs"
missing=$(nm -D --defined-only "$build/libblink-nccl.so" | awk '{ print $3 }' | sort |
	comm -13 - "$work/needs" | tr '\n' ' ')
expect "names that PyTorch $version needs of NCCL" test -s "$work/needs" -a -z "$missing"
# The suite nccl holds a list for those who have no PyTorch.
case $version in
2.15.*) expect "tests/nccl/needed/pytorch" cmp <(grep -v '^#' tests/nccl/needed/pytorch) "$work/needs" ;;
*) skip "tests/nccl/needed/pytorch: it is of PyTorch 2.15" ;;
esac

# ---- imports ----

# way NAME WHOSE SAID VARIABLE...: whose id PyTorch gets, ours or NCCL's, and what libblink-nccl says
way() {
	local name=$1 whose=$2 said=$3 got
	shift 3
	got=$(env BLINK_DEBUG=INFO "$@" timeout 120 "$torch" -c 'import torch
print("by", "libblink" if torch.cuda.nccl.unique_id().startswith(b"blinkid") else "NCCL")' 2>&1)
	if [[ $got == *"by $whose" && $got == *"$said"* ]]; then
		ok "import, $name"
	else
		not_ok "import, $name: $got"
	fi
}

preload=LD_PRELOAD=$build/libblink-nccl.so
audit=LD_AUDIT=$build/blink/libblink-audit.so
way "preloaded, alone" libblink "nccl: alone" "$preload" BLINK_NCCL=none
way "audited, alone" libblink "nccl: alone" "$audit"
real=$(readlink -f "$libraries/../../nvidia/nccl/lib/libnccl.so.2")
if [ -f "$real" ]; then
	way "preloaded, beside NCCL" NCCL "/lib/libnccl.so.2" "$preload"
	way "audited, beside NCCL" NCCL "nccl: beside $real" "$audit" "BLINK_NCCL=$real"
	way "by LD_LIBRARY_PATH: it has no effect" NCCL "" "LD_LIBRARY_PATH=$build/blink"
else
	skip "import beside NCCL: PyTorch has brought none"
fi

# ---- virtual GPUs ----

# NVIDIA's libcudart does not take the virtual driver: that of tests/virtual_gpu is preloaded.
cudart=$build/tests/virtual_gpu/libcudart.so.$cuda
if [ "$cuda" -lt 13 ] || [ ! -e "$cudart" ] || ! have_kernels; then
	skip "on virtual GPUs: want a PyTorch for CUDA 13, CUDA's headers of the same version, and nvcc or clang"
	exit 0
fi
mkdir "$work/driver"
ln -s "$build/tests/virtual_gpu/libcuda.so.1" "$cudart" "$work/driver/"
LD_PRELOAD="$cudart $build/libblink-nccl.so" LD_LIBRARY_PATH=$work/driver BLINK_NCCL=none \
	VIRTUAL_GPU_TOPOLOGY=topologies/dgx-a100.xml \
	VIRTUAL_GPU_KERNELS=$build/tests/virtual_gpu/libblink-twins.so timeout 500 "$torch" \
		tests/torch/nccl.py 2>"$work/err" ||
	not_ok "tests/torch/nccl.py: exit $?"
sed 's/^/# /' "$work/err" | tail -20
