# The directions between the folders of src/: every #include and every call goes the way that src/LAYERS says, and no
# files form a circle. Lines of code have at most 120 columns.
# shellcheck shell=bash
. "$(dirname "$0")/../lib.sh"

oracle layers "$top" "$build"

wide=$(find "$top/src" "$top/runtime" -name '*.[ch]' -exec expand {} + | awk 'length > 120')
if [ -z "$wide" ]; then ok "lines of at most 120 columns"; else not_ok "longer than 120 columns: ${wide:0:300}"; fi
