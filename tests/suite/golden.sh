# tests/golden/NAME.test: the lines `options: ...` (arguments of blinkc, run from the top directory) and `exit: N`, then
# `stdout:` and `stderr:` and what must come out, byte for byte. BLESS=1 rewrites what came out; review the diff.
. tests/lib.sh

for file in tests/golden/*.test; do
	name=$(basename "$file" .test)
	options=$(sed -n 's/^options: //p;/^stdout:/q' "$file")
	# shellcheck disable=SC2086 # a list of words
	"$blinkc" $options >"$work/stdout" 2>"$work/stderr" </dev/null
	code=$?
	{
		sed -n '/^#/p;/^[^#]/q' "$file"
		printf 'options: %s\nexit: %s\nstdout:\n' "$options" $code
		cat "$work/stdout"
		printf 'stderr:\n'
		cat "$work/stderr"
	} >"$work/now"
	if [ "${BLESS:-}" ]; then
		cp "$work/now" "$file"
		ok "$name blessed"
	elif cmp -s "$work/now" "$file"; then
		ok "$name"
	else
		not_ok "$name: $(diff "$file" "$work/now" | head -5 | tr '\n' ' ')"
	fi
done
