# Under valgrind: no use of memory that has no value, no leak, whether it goes well or not.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if ! command -v valgrind >/dev/null; then
	skip "all of it: valgrind is missing"
	exit 0
fi
if nm -D "$blinkc" | grep -q '__[at]san_init'; then
	skip "all of it: this build has a sanitizer"
	exit 0
fi

# glibc's memmove and memcpy may be one function, which memcheck then takes for the other.
cat >"$work/overlap" <<'END'
{
   moved
   Memcheck:Overlap
   fun:__memcpy_chk
   fun:memmove
}
END

# clean NAME CODE ARGUMENT...: exits with CODE, and valgrind (99) finds nothing
clean() {
	local name=$1 code=$2 got
	shift 2
	valgrind -q --suppressions="$work/overlap" --error-exitcode=99 --leak-check=full --show-leak-kinds=all \
		--errors-for-leak-kinds=definite,indirect,possible --track-fds=yes "$blinkc" "$@" >"$work/out" \
			2>"$work/err" </dev/null
	got=$?
	if [ $got = "$code" ]; then ok "$name"; else
		not_ok "$name: exit $got, want $code"
		head -40 "$work/err" | sed 's/^/# /'
	fi
}

clean "compile XML" 0 -q -g 0,1,2,5,6 topologies/dgx1v.xml -o "$work/x.json"
clean "a machine by hwloc" 0 convert -q tests/foreign/hwloc/h100-3.xml -o "$work/hwloc.xml"
clean "a file of hwloc without GPUs" 3 convert tests/bad/topology/hwloc.xml
clean "compile JSON to cu" 0 -q -c reduce -g 4,5,6,7 topologies/dgx1v.json -o "$work/x.cu"
clean "compile over PCIe" 0 -q -g 0,1,4 -l pcie,qpi topologies/dgx1v.xml
clean "compile with all trees" 0 -v -c broadcast --no-minimise topologies/dgx1p.xml
clean "check" 0 check "$work/x.json" "$work/x.json"
clean "batch" 0 batch -q -j 1 topologies/dgx1v.xml --sizes 3 --collectives allreduce,scatter -o "$work/batch"
clean "batch, kept" 0 batch -q -j 1 topologies/dgx1v.xml --sizes 3 --collectives allreduce,scatter -o "$work/batch"
clean "shapes" 0 batch -q -j 1 topologies/two-dgx1v.xml --distinct --sizes 2 -o "$work/shapes"
clean "check of a directory" 0 check -j 1 "$work/batch" --topology topologies/dgx1v.xml
clean "report" 0 report -j 1 "$work/batch" -o "$work/report.html"
clean "show" 0 show "$work/batch" -g 0,1,2 -c allreduce
clean "show a picture" 0 show "$work/x.json" -o "$work/x.svg"
clean "diff" 9 diff -j 1 tests/golden/diff/old tests/golden/diff/new -o "$work/x.txt"
clean "diff of what is wrong" 3 diff --format json tests/golden/diff/old/index.json tests/bad/schedule/up-twice.json
clean "convert XML" 0 convert topologies/dgx1v.xml -o "$work/y.json"
clean "convert JSON" 0 convert topologies/dgx1v.json -o "$work/y.xml"
clean "compile a cluster" 0 -q topologies/two-dgx1v.xml -g 0,1,2,11,12 -o "$work/c.json"
clean "write a cluster" 0 topology --servers 3 topologies/dgx1v.xml --rails --leaf 2 -o "$work/c.json"
clean "synthetic" 0 topology --synthetic "server:2 gpu:3 ring:50 nic:1@12.5 pcie:12" -o "$work/c.json"
clean "a cluster of itself" 4 tests/bad/topology/file-of-itself.xml
clean "canonical" 0 convert topologies/dgx1v.json --format canonical
clean "help" 0 --help
clean "usage" 2 --nothing
clean "a bad XML file" 3 tests/bad/topology/end-tag-wrong.xml -o "$work/z.json"
clean "a DOCTYPE" 3 tests/bad/topology/entity-bomb.xml
clean "a bad JSON file" 3 tests/bad/topology/id-twice.json
clean "JSON that is none" 3 tests/bad/topology/surrogate-alone.json
clean "too deep" 4 tests/bad/topology/nesting-too-deep.json
clean "not connected" 5 -g 0,7 -l nvlink topologies/dgx1v.xml
clean "a schedule that is malformed" 3 check tests/bad/schedule/up-twice.json
clean "a schedule that is wrong" 6 check tests/bad/schedule/reduced-twice.json
clean "a certificate that proves nothing" 6 check tests/bad/schedule/prices-too-low.json
clean "no such directory" 8 -g 0,1 topologies/dgx1v.xml -o /nowhere/x.json
