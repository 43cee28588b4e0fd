# The reader of JSON against Python's: random documents, the corpora, and mutants of both.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

mapfile -t files < <(find tests/fuzz/corpus tests/bad -type f -size -20k | LC_ALL=C sort |
	awk -v step="$([ "$full" ] && echo 1 || echo 5)" 'NR % step == 0')
for kind in "" ${full:+asan/}; do
	program=$build/${kind}tests/json_values
	if [ ! -x "$program" ]; then
		not_ok "$kind: json_values is not built"
		continue
	fi
	# strtod reads the decimal point of the locale, and cJSON the first byte of it: here it has two.
	if localedef -i ps_AF -f UTF-8 "$work/ps_AF" >"$work/err" 2>&1; then
		if LOCPATH=$work LC_ALL=ps_AF oracle json_values "$program" 500 >"$work/out" 2>&1; then
			ok "${kind}by Python, where the decimal point is another: $(tail -1 "$work/out")"
		else
			not_ok "${kind}by Python, where the decimal point is another: $(head -c 1500 "$work/out")"
		fi
	else
		skip "${kind}json_values: no locale with another decimal point: $(head -1 "$work/err")"
	fi
	if oracle json_values "$program" "$([ "$full" ] && echo 15000 || echo 1500)" "${files[@]}" \
		>"$work/out" 2>&1; then
		ok "${kind}by Python: $(tail -1 "$work/out")"
	else
		not_ok "${kind}by Python: $(head -c 1500 "$work/out")"
	fi
done
