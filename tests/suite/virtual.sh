# The driver of virtual GPUs as a library: what it exports and needs, and that its page names its settings.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

library=$build/tests/virtual_gpu/libcuda.so.1
exports=$(nm -D --defined-only "$library" | awk '{ print $3 }')
others=$(grep -v '^\(cu[A-Z]\|virtual_gpu_\)' <<<"$exports")
if [ -z "$others" ]; then ok "it exports CUDA's names and those for twins"; else not_ok "it exports $others"; fi

missing=$(grep -o '^	X([a-z0-9_]*, cu[A-Za-z0-9_]*' runtime/driver/driver.h | sed 's/.* //' | grep -vxF "$exports")
if [ -z "$missing" ]; then ok "all that libblink may call"; else not_ok "it lacks $missing"; fi

if readelf -dW "$library" | grep -q 'SONAME.*\[libcuda.so.1\]'; then ok "its name"; else not_ok "it has no soname"; fi

for page in README.md virtual_gpu.h; do
	for variable in $(grep -oh '"VIRTUAL_GPU_[A-Z]*"' tests/virtual_gpu/[!n]*.c | tr -d '"' | sort -u); do
		grep -q "$variable\b" "tests/virtual_gpu/$page" || not_ok "$page does not name $variable"
	done
done
ok "settings are named"
