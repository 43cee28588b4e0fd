# The stack that libblink needs, from the call graph of its objects, as the compiler writes it;
# tests/unit/test_process.c measures it. And that no function of blinkc has a larger frame than the Makefile allows,
# which `make` warns of.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if grep -q -- -fsanitize "$build/flags"; then
	skip "all of it: $build is built under a sanitizer"
	exit 0
fi
limit=$((16 * 1024))
if ! echo 'int x;' | "${cc[@]}" -fcallgraph-info=su -x c -c - -o "$work/x.o" 2>/dev/null; then
	skip "the call graph: ${CC:-cc} has no -fcallgraph-info"
	exit 0
fi
# Not by ccache, which does not keep the graph.
export CCACHE_DISABLE=1
unset MAKEFLAGS MFLAGS MAKELEVEL
# Of the objects that libblink may have, those that the linker took.
listed() { $MAKE -s B="$build" --eval="print: ; @printf '%s\n' \$($1)" print; }
listed SHARED_OBJ | xargs ar rcsT "$work/shared.a"
mapfile -t runtime < <(listed RUNTIME_OBJ)
mapfile -t objects < <("${cc[@]}" -shared -o "$work/x.so" -Wl,-t "${runtime[@]}" "$work/shared.a" |
	sed -n "s|^$build/|$work/su/|p")
expect "libblink is made of ${#objects[@]} objects" test ${#objects[@]} -gt ${#runtime[@]}
# The kernels, which are in no graph, are those that were built.
expect "they build with their call graph" $MAKE -s -j2 B="$work/su" PTX_DIR="$build/gen/ptx" \
	CFLAGS="-O2 -fcallgraph-info=su" WERROR=-Werror "${objects[@]}"
expect "each call needs at most $limit bytes" python3 tests/stack.py "$work/su" $limit
sed 's/^/# /' "$work/out"

# What it is there to find: a buffer on the stack, a new recursion, a pointer to anything.
plant() {
	local name=$1 want=$2
	rm -rf "$work/planted"
	mkdir -p "$work/planted/runtime"
	cat >"$work/planted/runtime/api.c"
	(cd "$work/planted" && "${cc[@]}" -O0 -fcallgraph-info=su -c runtime/api.c -o runtime/api.o) ||
		not_ok "$name: does not compile"
	if ! python3 tests/stack.py "$work/planted" $limit >"$work/out" && grep -q "$want" "$work/out"; then
		ok "finds $name"
	else
		not_ok "does not find $name: $(cat "$work/out")"
	fi
}
plant "a buffer" "blinkLoad: may need 6[5-9].* bytes" <<'END'
int read(int, void *, unsigned long);
static int load(void) { char part[65536]; return read(0, part, sizeof part); }
int blinkLoad(void) { return load(); }
END
plant "a recursion" "recursion, how deep? runtime/api.c:walk -> runtime/api.c:walk" <<'END'
static int walk(int n) { return n ? walk(n - 1) + n : 0; }
int blinkLoad(int n) { return walk(n); }
END
plant "a pointer" "blinkLoad: calls through a pointer" <<'END'
int blinkLoad(int (*call)(void)) { return call(); }
END
plant "a frame of any size" "a frame without a bound" <<'END'
void *memset(void *, int, unsigned long);
int blinkLoad(int n) { char part[n]; memset(part, 0, sizeof part); return part[n - 1]; }
END
plant "a function of a library" "getaddrinfo: how much stack" <<'END'
int getaddrinfo(void);
int blinkLoad(void) { return getaddrinfo(); }
END
