#!/bin/sh
# tests/bench/peers on 2, 4 and 8 ranks, beside what is installed of Open MPI, MPICH, gloo (PyTorch's) and oneCCL.
# Further arguments go to it; RANKS="2 4" sets the ranks. On a machine with other work: chrt -r 10 make bench-peers.
build=${BUILD:-build}
run=$build/tests/bench
here=tests/bench

# Its compiler by its own name, or by the common one, if its version says so.
compiler() {
	for c in "mpicc.$1" mpicc; do
		if command -v "$c" >/dev/null && "$c" -show 2>/dev/null | grep -q "$2"; then
			echo "$c"
			return
		fi
	done
}

rm -f "$run"/peers_openmpi "$run"/peers_mpich "$run"/peers_ccl
cc=$(compiler openmpi openmpi) && [ "$cc" ] && "$cc" -O2 -o "$run/peers_openmpi" $here/peers_mpi.c &&
	launch=mpirun$([ "$cc" = mpicc ] || echo .openmpi) &&
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 &&
	set -- "$@" -O "$launch --oversubscribe --bind-to none --mca btl self,vader -n %d $run/peers_openmpi"
cc=$(compiler mpich mpich) && [ "$cc" ] && "$cc" -O2 -o "$run/peers_mpich" $here/peers_mpi.c &&
	launch=mpiexec$([ "$cc" = mpicc ] || echo .mpich) && set -- "$@" -M "$launch -n %d $run/peers_mpich"
for python in python3 /usr/bin/python3; do
	if $python -c 'import torch' 2>/dev/null; then
		set -- "$@" -g "$python $here/peers_gloo.py %d"
		break
	fi
done
# Of pip, where the interpreter has its packages; CCL_ROOT says where else. By its own network, on one thread a rank.
root=${CCL_ROOT:-$(python3 -c 'import sys; print(sys.prefix)' 2>/dev/null)}
if [ -f "$root/include/oneapi/ccl.hpp" ] && "${CXX:-c++}" -std=c++17 -O2 -isystem "$root/include" -o "$run/peers_ccl" \
	$here/peers_ccl.cpp -L"$root/lib" -Wl,-rpath,"$root/lib" -lccl -pthread 2>/dev/null; then
	set -- "$@" -C "env CCL_ROOT=$root LD_LIBRARY_PATH=$root/lib CCL_ATL_TRANSPORT=ofi CCL_WORKER_OFFLOAD=0 \
CCL_YIELD=sched_yield $run/peers_ccl %d"
fi
for n in ${RANKS:-2 4 8}; do
	"$run/peers" -n "$n" "$@" || exit
	echo
done
