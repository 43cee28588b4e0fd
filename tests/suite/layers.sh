# The directions between the folders of src/: every #include and every call goes the way that src/LAYERS says, and no
# files form a circle. Lines of code, of the tests' shell and Python too, have at most 120 columns. Mutations apply.
# shellcheck shell=bash
. "$(dirname "$0")/../lib.sh"

oracle layers "$top" "$build"

mapfile -t files < <(cd "$top" && find src runtime tests .ci -type f)
wide=$(cd "$top" && awk -F '\t' 'FNR == 1 && FILENAME !~ /\.([ch]|sh|py)$/ && !/^#!/ { nextfile }
{
	width = 0
	for (i = 1; i < NF; i++) {
		width += length($i)
		width += 8 - width % 8
	}
	if (width + length($NF) > 120)
		print FILENAME ":" FNR
}' "${files[@]}")
if [ -z "$wide" ]; then ok "lines of at most 120 columns"; else not_ok "longer than 120 columns: ${wide:0:300}"; fi

# Each edit of tests/mutations still has its lines in the sources.
lost=$(cd "$top" && tests/mutate --apply 2>&1)
if [ -z "$lost" ]; then ok "mutations apply"; else not_ok "mutations: ${lost:0:300}"; fi
expect "tests/mutations/README.md: what finds them" \
	cmp <(cd "$top" && tests/mutate --table) <(sed -n '/^| suite/,$p' "$top/tests/mutations/README.md")
