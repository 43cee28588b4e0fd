# The generated code as CUDA: compiled without warnings where nvcc is; executed where there is a GPU.
. tests/lib.sh

nvcc=${NVCC:-$(command -v nvcc || true)}
if [ -z "$nvcc" ]; then
	skip "no nvcc: the generated .cu is compiled for the host only"
	exit 0
fi
n=0
cases=dgx1v:allgather:0,1,2,3:--hybrid
[ ! "$full" ] || cases+=" dgx1v:reduce:0,1,2 dgx1v:broadcast:1,4,5,6 dgx1v:allreduce:0,1,2,3,4,5,6,7 dgx1v:allreduce:0,7
	dgx2:allreduce:0,1,2,5,7:--algorithm=onehop two-dgx1v:allreduce:0,1,2,11,12:--algorithm=threephase"
for case in $cases; do
	IFS=: read -r machine c gpus option <<<"$case"
	n=$((n + 1))
	"$blinkc" -q topologies/$machine.xml -c "$c" -g "$gpus" ${option:+"$option"} -o "$work/$n.cu" ||
		not_ok "$case: exit $?"
	expect "$case compiles with nvcc" "$nvcc" -O2 -shared -Werror all-warnings -Xcompiler -fPIC,-Wall,-Wextra,-Werror \
		-Iruntime/include "$work/$n.cu" -o "$work/$n.so"
done
if [ ! -e /dev/nvidia0 ]; then
	expect_exit "without a GPU it says so" 8 "$perf" "$work/1.so" -b 4 -e 4
	skip "no GPU: the compiled CUDA code is not executed"
	exit 0
fi
for so in "$work"/*.so; do
	if "$perf" "$so" -b 4 -e 16M -f 8 >"$work/log" 2>&1 && grep -q '^# Out of bounds values : 0 OK' "$work/log"; then
		ok "$(basename "$so") on the GPU"
	else
		not_ok "$(basename "$so") on the GPU: $(tail -3 "$work/log" | tr '\n' ' ')"
	fi
done
